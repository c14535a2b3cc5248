/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_UNZIP_H
#define HYPTRACE_UNZIP_H

#include <stddef.h>

/* What zstd needs to unpack a chunk (100 kB), kept for the next one: as many as threads unpack at a time. */
struct unzips; /* opaque */

/* NULL: out of memory. */
struct unzips *unzips_new(void);
void unzips_free(struct unzips *u);
/* Any thread. Exactly `usize` bytes come out, else -EBADMSG; -ENOMEM. */
int unzip(struct unzips *u, const void *in, size_t csize, void *out, size_t usize);

#endif
