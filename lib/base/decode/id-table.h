/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ID_TABLE_H
#define HYPTRACE_ID_TABLE_H

#include "base/buf.h"

/* Lines of users' text files, and texts by number. */

/*
 * Calls fn with a copy of each line that is not empty; fn may write into it. '#' at
 * the start of a line makes a comment; with `trailing` it does so anywhere, and
 * blanks at a line's end do not count. Ends at the first error of fn and returns it.
 * -EBADMSG: a NUL in a line; -ENOMEM. *number, if not NULL, is the number of the
 * line read last, from 1.
 */
int text_lines(const void *data, size_t len, bool trailing, int (*fn)(void *ctx, char *line), void *ctx,
	       unsigned int *number);

/* Texts by number; holes are NULL. Zero-initialised = empty. */
struct id_table {
	char **v;
	size_t n;
};

/* Copies the text, in place of what the number had. -ENOMEM. */
int id_table_set(struct id_table *t, size_t id, const char *text);
/* Owned by t; NULL: none of that number. */
const char *id_table_get(const struct id_table *t, uint64_t id);
void id_table_release(struct id_table *t);

/*
 * The hypervisor's own printk: a record holds the number of a format and its arguments; no file in tracefs
 * gives the formats, so a text file does: lines "NUMBER FORMAT", a '#' at the start makes a comment.
 */

/* -EBADMSG, -ENOMEM: *out is empty. *line: the number of the line read last, from 1. */
int hyp_formats_parse(const void *data, size_t len, struct id_table *out, unsigned int *line);

/*
 * Appends the text. Integer conversions and %c and %p take the next argument, %s shows the number, since a
 * record holds no string; arguments that are not there show as '?'.
 */
void hyp_format_print(const char *fmt, const uint64_t *args, size_t n, struct buf *out);

/*
 * Names of the hypercalls that the host makes to pKVM (the event host_hcall). The numbers are positions in
 * the kernel's enum __kvm_host_smccc_func, which changes with every kernel, so they come from a file:
 *
 *  - BTF, as in /sys/kernel/btf/vmlinux of that kernel; the prefix
 *    __KVM_HOST_SMCCC_FUNC_ is taken off the names;
 *  - or text: lines "NUMBER NAME", numbers as in C, '#' starts a comment.
 */

/*
 * From the bytes of a file, which are copied. -EBADMSG: neither of the two, or
 * damaged; -ENOENT: a BTF without that enum; -ENOMEM. On error *out is empty.
 * *line: of text, the number of the line read last, from 1; of BTF, unchanged.
 */
int hcall_names_parse(const void *data, size_t len, struct id_table *out, unsigned int *line);
/* The name, owned by `names`, or NULL. The whole function id (0xc6000000 + number) serves as well. */
const char *hcall_name(const struct id_table *names, uint32_t id);

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
