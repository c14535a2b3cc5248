/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_READER_PRIV_H
#define HYPTRACE_READER_PRIV_H

#include "dat/reader.h"

/* Shared by reader.c, reader-parts.c (texts, both versions) and reader-pages.c. */

struct reader {
	int fd;
	uint64_t size; /* of the file */
	const struct log *log;
	struct reader_info info;
	bool zstd;
	/* the bytes that info points into, freed at the end */
	struct buf *bodies;
	size_t n_bodies;
	uint64_t sections_size; /* of version 7, unpacked; bytes */
};

/* A body that lives as long as the reader: len bytes at offset, unpacked when `zipped`. */
int reader_body(struct reader *r, uint64_t offset, uint64_t len, bool zipped, struct cursor *out);
/* Exactly len bytes at offset, or -EBADMSG. */
int reader_read(const struct reader *r, uint64_t offset, void *data, size_t len);
int reader_bad(const struct reader *r, const char *what);
/* zstd: exactly `usize` bytes come out, else -EBADMSG. */
int reader_unzip(const void *in, size_t csize, void *out, size_t usize);

/* The bytes of one part (DAT_HEADER_INFO ... DAT_CMDLINES). */
int reader_part(struct reader *r, uint16_t id, struct cursor *c);
int reader_add_option(struct reader *r, uint16_t id, const void *data, size_t len);
/* A buffer with room for n_cpus; NULL: out of memory. */
struct reader_buffer *reader_add_buffer(struct reader *r, const char *name, const char *clock,
					uint32_t page_size, size_t n_cpus);

#define READER_BODY_MAX (512u << 20)
/* Of version 7's together: a few bytes of the file can name the same section many times. */
#define READER_SECTIONS_MAX (256u << 20)
#define READER_CPUS_MAX	    65536
#define READER_BUFFERS_MAX  1024

#endif
