/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYP_PRINTK_H
#define HYPTRACE_HYP_PRINTK_H

#include "base/decode/id-table.h"
#include "base/buf.h"

/*
 * The hypervisor's own printk: a record holds the number of a format and its
 * arguments; no file in tracefs gives the formats, so a text file does: lines
 * "NUMBER FORMAT", a '#' at the start makes a comment.
 */

/* -EBADMSG, -ENOMEM: *out is empty. */
int hyp_formats_parse(const void *data, size_t len, struct id_table *out);

/*
 * Appends the text. Integer conversions and %c and %p take the next argument,
 * %s shows the number, since a record holds no string; arguments that are not
 * there show as '?'.
 */
void hyp_format_print(const char *fmt, const uint64_t *args, size_t n, struct buf *out);

#endif
