/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COMPRESS_H
#define HYPTRACE_COMPRESS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Compression of blocks, each a frame of its own: what trace-cmd.dat.v7(5)
 * calls a compressed section or chunk.
 */

struct zip;

/* Level 0 is zstd's default. NULL: out of memory, or no such level (errno). */
struct zip *zip_open(int level);
/* Takes NULL. */
void zip_close(struct zip *z);
/* The version text that goes into a trace.dat beside the name "zstd". */
const char *zip_version(void);
/* Most bytes that zip_block makes of len. */
size_t zip_bound(size_t len);
/* The number of bytes written to out, which has room for cap; -EIO: they do not fit. */
ssize_t zip_block(struct zip *z, const void *in, size_t len, void *out, size_t cap);

#endif
