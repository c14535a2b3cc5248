/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DAT_OUT_H
#define HYPTRACE_DAT_OUT_H

#include "base/std.h"

/*
 * The file being written: small writes gathered, places patched afterwards. The first error stays in err and
 * makes every later call do nothing: check it once after a run of writes.
 */
struct dat_out {
	int fd;
	int err;      /* -errno of the first failure, or 0 */
	uint64_t pos; /* of the next byte, from the start of the file */
	uint8_t *buf; /* the last `used` bytes before pos, not yet in the file */
	size_t used;
};

/* Writes to fd, which stays the caller's; pos begins at 0. -ENOMEM. */
int dat_out_init(struct dat_out *o, int fd);
/* Frees the buffer without writing it: see dat_out_flush(). */
void dat_out_release(struct dat_out *o);
/* Append bytes, and integers in native byte order. */
void dat_out_write(struct dat_out *o, const void *data, size_t len);
void dat_out_u16(struct dat_out *o, uint16_t v);
void dat_out_u32(struct dat_out *o, uint32_t v);
void dat_out_u64(struct dat_out *o, uint64_t v);
/* Zeros up to a multiple of align, a power of two. */
void dat_out_align(struct dat_out *o, uint32_t align);
/* Overwrites 8 bytes written earlier, at `at`. */
void dat_out_patch(struct dat_out *o, uint64_t at, uint64_t v);
/* Everything into the file; returns err. */
int dat_out_flush(struct dat_out *o);

#endif
