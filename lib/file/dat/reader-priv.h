/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_READER_PRIV_H
#define HYPTRACE_READER_PRIV_H

#include <zstd.h>

#include "file/dat/reader.h"
#include "base/cursor.h"
#include "base/workers.h"

/* Inside the reader: its bytes, the parts that both versions have, its pages. */

struct reader {
	int fd;
	const char *path; /* for messages */
	uint64_t size;	  /* of the file */
	const struct log *log;
	struct reader_info info;
	bool zstd;
	struct pool *unzips; /* contexts of zstd, 100 kB each */
	/* the bytes that info points into, freed at the end */
	struct buf *bodies;
	size_t n_bodies;
	uint64_t sections_size; /* of version 7, unpacked; bytes */
	uint64_t symbols_at;	/* their section */
	size_t block_size;	/* of pages that are not packed; bytes, at most */
};

/* Room for bytes that live as long as the reader; NULL: out of memory. */
struct buf *reader_add_body(struct reader *r);
/*
 * Such a body: len bytes at offset, unpacked when `zipped`. -EBADMSG (logged): not in the file, or
 * damaged; -ENOMEM; else the read call's error.
 */
int reader_body(struct reader *r, uint64_t offset, uint64_t len, bool zipped, struct cursor *out);
/* Exactly len bytes at offset; -EBADMSG: the file is shorter; else the read call's error. */
int reader_read(const struct reader *r, uint64_t offset, void *data, size_t len);
/* Logs what is wrong with the file; -EBADMSG. */
int reader_bad(const struct reader *r, const char *what);
/* The same when the error is -EBADMSG; any other error is passed on for the caller to log. */
int reader_failed(const struct reader *r, int error, const char *what);

#define READER_BODY_MAX (512u << 20)
/* Of version 7's together: a few bytes of the file can name the same section many times. */
#define READER_SECTIONS_MAX (256u << 20)
#define READER_CPUS_MAX	    65536
/* Bytes of pages in memory: of one CPU, of all together. */
#define READER_BLOCK_MAX   (64u << 10)
#define READER_BLOCKS	   (32u << 20)
#define READER_BUFFERS_MAX 1024

#endif
