// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pages of one CPU in a trace.dat, in order: as they are, or chunk by chunk out of zstd. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dat/reader-priv.h"

#define CHUNK_MAX (64u << 20)

struct reader_block {
	atomic_uint holders;
	size_t len; /* bytes: whole pages */
	uint8_t data[];
};

struct reader_pages {
	const struct reader *r;
	uint32_t page_size;
	uint64_t at, end; /* in the file */
	bool zipped;
	uint32_t chunks; /* left in the file */
	uint8_t *packed;
	struct reader_block *block; /* NULL: none yet */
	size_t block_at;	    /* of the next page in it; bytes */
};

/* ---- blocks -------------------------------------------------------------------------- */

struct reader_block *reader_block_hold(struct reader_pages *p)
{
	atomic_fetch_add_explicit(&p->block->holders, 1, memory_order_relaxed);
	return p->block;
}

void reader_block_drop(struct reader_block *b)
{
	if (b && atomic_fetch_sub_explicit(&b->holders, 1, memory_order_acq_rel) == 1)
		free(b);
}

/* In place of the block before. The caller fills it. */
static int new_block(struct reader_pages *p, size_t len)
{
	struct reader_block *b = malloc(sizeof(*b) + len);

	if (!b)
		return -ENOMEM;
	atomic_init(&b->holders, 1);
	b->len = len;
	reader_block_drop(p->block);
	p->block = b;
	p->block_at = 0;
	return 0;
}

/* A block without pages in it, after an error. */
static int empty_block(struct reader_pages *p, int error)
{
	p->block->len = p->block_at = 0;
	return error;
}

/* ---- pages as they are ------------------------------------------------------------------ */

static int read_block(struct reader_pages *p, size_t len)
{
	int ret = new_block(p, len) ?: reader_read(p->r, p->at, p->block->data, len);

	if (ret && p->block)
		return empty_block(p, ret);
	p->at += len;
	return 0;
}

/* 1, 0: the end. */
static int next_plain(struct reader_pages *p)
{
	uint64_t left = p->end - p->at;
	size_t len = left < p->r->block_size ? (size_t)left : p->r->block_size;
	int ret = -EIO;

	if (left < p->page_size)
		return 0;
	len -= len % p->page_size;
	if (len > p->page_size)
		ret = read_block(p, len);
	/* alone, a page in front of one that cannot be read can */
	if (ret && ret != -ENOMEM)
		ret = read_block(p, p->page_size);
	return ret ? ret : 1;
}

/* ---- chunks out of zstd -------------------------------------------------------------------- */

/* Compressed pages begin with the number of chunks. */
static int take_chunks(struct reader_pages *p)
{
	if (p->end - p->at < sizeof(p->chunks))
		return 0;
	p->at += sizeof(p->chunks);
	p->end += sizeof(p->chunks); /* trace-cmd convert does not count this number in */
	return reader_read(p->r, p->at - sizeof(p->chunks), &p->chunks, sizeof(p->chunks));
}

static int packed_room(struct reader_pages *p, size_t len)
{
	uint8_t *v = realloc(p->packed, len ? len : 1);

	if (!v)
		return -ENOMEM;
	p->packed = v;
	return 0;
}

static int unpack_chunk(struct reader_pages *p, uint32_t packed, uint32_t plain)
{
	int ret = packed_room(p, packed) ?: new_block(p, plain);

	if (ret)
		return ret;
	ret = reader_read(p->r, p->at, p->packed, packed)
		      ?: unzip(p->r->unzips, p->packed, packed, p->block->data, plain);
	if (ret)
		return empty_block(p, ret);
	p->at += packed;
	p->chunks--;
	return 1;
}

/* u32 compressed, u32 plain size, data. 1, 0: the end. */
static int next_chunk(struct reader_pages *p)
{
	uint32_t head[2];
	int ret;

	if (!p->chunks)
		return 0;
	if (p->end - p->at < sizeof(head))
		return -EBADMSG;
	ret = reader_read(p->r, p->at, head, sizeof(head));
	if (ret)
		return ret;
	p->at += sizeof(head);
	if (head[0] > p->end - p->at || head[0] > CHUNK_MAX || head[1] > CHUNK_MAX || !head[1] ||
	    head[1] % p->page_size)
		return -EBADMSG;
	return unpack_chunk(p, head[0], head[1]);
}

/* ---- both --------------------------------------------------------------------------------- */

int reader_pages_open(struct reader_pages **out, const struct reader *r, size_t buffer, size_t cpu)
{
	const struct reader_buffer *b = &r->info.buffers[buffer];
	struct reader_pages *p;
	int ret;

	if (buffer >= r->info.n_buffers || cpu >= b->n_cpus)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct reader_pages){ .r = r,
				    .page_size = b->page_size,
				    .at = b->cpus[cpu].offset,
				    .end = b->cpus[cpu].offset + b->cpus[cpu].size,
				    .zipped = r->zstd };
	ret = p->zipped ? take_chunks(p) : 0;
	if (ret)
		reader_pages_close(p);
	else
		*out = p;
	return ret;
}

void reader_pages_close(struct reader_pages *p)
{
	if (!p)
		return;
	reader_block_drop(p->block);
	free(p->packed);
	free(p);
}

uint64_t reader_pages_at(const struct reader_pages *p)
{
	return p->at;
}

int reader_pages_next(struct reader_pages *p, const uint8_t **page)
{
	if (!p->block || p->block_at == p->block->len) {
		int ret = p->zipped ? next_chunk(p) : next_plain(p);

		if (ret != 1)
			return ret;
	}
	*page = p->block->data + p->block_at;
	p->block_at += p->page_size;
	return 1;
}

const uint8_t *reader_pages_ahead(const struct reader_pages *p)
{
	return p->block && p->block_at < p->block->len ? p->block->data + p->block_at : NULL;
}
