/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYMBOLS_H
#define HYPTRACE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

/* Addresses to names, from text as in /proc/kallsyms or System.map: "ADDRESS TYPE NAME ...". */
struct symbols {
	struct symbol {
		uint64_t addr;
		char *name;
	} * v; /* sorted by address */
	size_t n;
};

/* -EBADMSG: a line of another form; -ENOMEM. On error *out is empty. */
int symbols_parse(const void *data, size_t len, struct symbols *out);
void symbols_release(struct symbols *s);
/* The symbol that starts at or below addr, owned by s, and how far below; NULL: none. */
const char *symbols_find(const struct symbols *s, uint64_t addr, uint64_t *offset);

#endif
