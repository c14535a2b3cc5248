/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_ELF_H
#define HYPTRACE_FLAME_ELF_H

#include "base/buf.h"

/*
 * A file that processes ran, and the names of its functions: where this machine has the file at that path
 * with that build id, or debuginfod has it (DEBUGINFOD_URLS), and hyptrace was built with libdw.
 */
struct flame_elf;

struct flame_elf_key {
	const char *path;
	const uint8_t *id; /* its build id */
	size_t path_len, id_len;
};

struct flame_elf *flame_elf_new(const struct flame_elf_key *key); /* copies the key; NULL: out of memory */
void flame_elf_free(struct flame_elf *e);
bool flame_elf_is(const struct flame_elf *e, const struct flame_elf_key *key);
/* Appends "function", else "name+0x1234". offset: in the file, bytes. */
void flame_elf_text(struct flame_elf *e, uint64_t offset, struct buf *out);

#endif
