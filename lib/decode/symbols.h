/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYMBOLS_H
#define HYPTRACE_SYMBOLS_H

#include "util/base.h"

/* Addresses to names, from text as in /proc/kallsyms or System.map: "ADDRESS TYPE NAME ...". */
struct symbols; /* opaque */

/* -EBADMSG: a line of another form; -ENOMEM. */
int symbols_parse(const void *data, size_t len, struct symbols **out);
void symbols_free(struct symbols *s);
/* The symbol that starts at or below addr, and how far below; NULL: none, or s is NULL. */
const char *symbols_find(const struct symbols *s, uint64_t addr, uint64_t *offset);

#endif
