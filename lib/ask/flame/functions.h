/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_SYMBOLS_H
#define HYPTRACE_FLAME_SYMBOLS_H

#include "file/dat/reader.h"
#include "base/buf.h"

/*
 * Names of the addresses in a file's stacks: functions by its kallsyms, with their modules, which
 * libtraceevent does not keep; and files of processes by its PROCMAPS. By several threads at a time.
 */
struct flame_symbols {
	struct flame_symbol {
		uint64_t addr;
		const char *name;     /* the reader's, not NUL-ended */
		uint32_t len, module; /* of "[module]" behind it; 0: none */
	} * v;			      /* by address */
	size_t n;
	struct flame_map {
		uint64_t from, to, base; /* base: where the file's first mapping begins */
		int64_t pid;
		const char *name; /* of the file, the reader's, not NUL-ended */
		size_t len;
	} * maps; /* by process and address */
	size_t n_maps;
};

/* info outlives it. Lines that make no sense are left out. -ENOMEM; it is to be released in any case. */
int flame_symbols_read(struct flame_symbols *s, const struct reader_info *info);
void flame_symbols_release(struct flame_symbols *s);

/*
 * The function that begins at or below the address, at most 1 MiB below: an index of v, or n: none.
 * Of several at one place it is the first in the file.
 */
size_t flame_symbols_find(const struct flame_symbols *s, uint64_t addr);
/* "func" or "func [module]" */
void flame_symbol_text(const struct flame_symbols *s, size_t symbol, struct buf *out);
/* "libc.so.6+0x2a4b0", by that process's maps; else "0x7f12345678": where no function is found. */
void flame_address_text(const struct flame_symbols *s, int64_t pid, uint64_t addr, struct buf *out);

#endif
