// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pages of one CPU in a trace.dat, in order: as they are, or chunk by chunk out of zstd. */
#include <zstd_errors.h>

#include "file/dat/reader-priv.h"
#include "base/files.h"

/* Any thread. Exactly `usize` bytes come out, else -EBADMSG; -ENOMEM. */
static int unzip(struct pool *unzips, const void *in, size_t csize, void *out, size_t usize)
{
	ZSTD_DCtx *d = pool_take(unzips) ?: ZSTD_createDCtx();
	size_t n;

	if (!d)
		return -ENOMEM;
	n = ZSTD_decompressDCtx(d, out, usize, in, csize);
	ZSTD_freeDCtx(pool_put(unzips, d));
	if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	return ZSTD_isError(n) || n != usize ? -EBADMSG : 0;
}

int reader_bad(const struct reader *r, const char *what)
{
	return log_fail(r->log, -EBADMSG, "not a whole trace.dat: %s", what);
}

int reader_failed(const struct reader *r, int error, const char *what)
{
	return error == -EBADMSG ? reader_bad(r, what) : error;
}

int reader_read(const struct reader *r, uint64_t offset, void *data, size_t len)
{
	ssize_t n;

	if (offset > r->size || len > r->size - offset)
		return -EBADMSG;
	n = pread_all(r->fd, data, len, offset);
	if (n < 0)
		return (int)n;
	return (size_t)n < len ? -EBADMSG : 0;
}

/* A block: u32 compressed, u32 plain size, data. */
static int unzip_body(struct pool *unzips, struct buf *body)
{
	struct cursor c = cursor_at(body->data, body->len);
	uint32_t csize = cursor_u32(&c), usize = cursor_u32(&c);
	const void *in = cursor_take(&c, csize);
	struct buf plain = { .len = usize, .cap = usize };
	int ret;

	if (!in || usize > READER_BODY_MAX)
		return -EBADMSG;
	plain.data = malloc(usize ? usize : 1);
	if (!plain.data)
		return -ENOMEM;
	ret = unzip(unzips, in, csize, plain.data, usize);
	if (ret) {
		buf_release(&plain);
		return ret;
	}
	buf_release(body);
	*body = plain;
	return 0;
}

struct buf *reader_add_body(struct reader *r)
{
	struct buf *v = array_next(&r->bodies, r->n_bodies, sizeof(*v));

	r->n_bodies += !!v;
	return v;
}

int reader_body(struct reader *r, uint64_t offset, uint64_t len, bool zipped, struct cursor *out)
{
	struct buf *b;
	int ret;

	if (len > READER_BODY_MAX || offset > r->size || len > r->size - offset)
		return reader_bad(r, "a section reaches beyond the file");
	b = reader_add_body(r);
	if (!b)
		return -ENOMEM;
	*b = (struct buf){ .data = malloc(len ? len : 1), .len = len, .cap = len };
	if (!b->data)
		return -ENOMEM;
	ret = reader_read(r, offset, b->data, len);
	if (!ret && zipped)
		ret = r->zstd ? unzip_body(r->unzips, b) : -EBADMSG;
	if (ret)
		return reader_failed(r, ret, "a section cannot be read");
	*out = cursor_at(b->data, b->len);
	return 0;
}

#define CHUNK_MAX (64u << 20)
#define AHEAD	  (16u << 10) /* bytes that are read at once at least: most chunks are smaller */

struct reader_block {
	atomic_uint holders;
	uint64_t at; /* of data in the CPU's pages; bytes, unpacked */
	size_t len;  /* bytes: whole pages */
	uint8_t data[];
};

struct reader_pages {
	const struct reader *r;
	uint32_t page_size;
	uint64_t at, end;  /* in the file */
	uint64_t begin;	   /* of the first page or chunk there */
	uint64_t unpacked; /* bytes of the pages before `at` */
	bool zipped;
	uint32_t chunks, all_chunks; /* left in the file; in total */
	uint8_t *packed;	     /* bytes of the file from packed_at on */
	uint64_t packed_at;
	size_t packed_len, packed_room;
	struct reader_block *block; /* NULL: none yet */
	size_t block_at;	    /* of the next page in it; bytes */
	_Atomic uint64_t done;	    /* of the file, up to the end of that block; bytes */
	bool beside;		    /* unpack the next block while this one is used */
	struct errand unpack;	    /* makes these: */
	struct reader_block *next;
	int ret; /* 1: it is there; 0: the end; -errno */
};

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

/* In p->next. The caller fills it. */
static int new_block(struct reader_pages *p, size_t len)
{
	struct reader_block *b = malloc(sizeof(*b) + len);

	if (!b)
		return -ENOMEM;
	atomic_init(&b->holders, 1);
	b->at = p->unpacked;
	b->len = len;
	p->next = b;
	return 0;
}

bool reader_block_has(const struct reader_block *b, const uint8_t *data, uint64_t *at)
{
	if (data < b->data || data > b->data + b->len)
		return false;
	*at = b->at + (uint64_t)(data - b->data);
	return true;
}

/* Frees p->next; returns the error. */
static int drop_next(struct reader_pages *p, int error)
{
	reader_block_drop(p->next);
	p->next = NULL;
	return error;
}

static int read_block(struct reader_pages *p, size_t len)
{
	int ret = new_block(p, len) ?: reader_read(p->r, p->at, p->next->data, len);

	if (ret)
		return drop_next(p, ret);
	p->at += len;
	p->unpacked += len;
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
	/* read one by one, a page before an unreadable one still arrives */
	if (ret && ret != -ENOMEM)
		ret = read_block(p, p->page_size);
	return ret ? ret : 1;
}

/* The bytes of the file at p->at, which are good until the next call, and perhaps some that follow. */
static int packed_bytes(struct reader_pages *p, size_t len, const uint8_t **bytes)
{
	uint64_t left = p->r->size > p->at ? p->r->size - p->at : 0;
	size_t n = len > AHEAD ? len : left < AHEAD ? (size_t)left : AHEAD;
	int ret = 0;

	if (p->at < p->packed_at || p->at - p->packed_at > p->packed_len ||
	    len > p->packed_len - (p->at - p->packed_at)) {
		p->packed_len = 0;
		p->packed_at = p->at;
		ret = len > left ? -EBADMSG : array_room(&p->packed, &p->packed_room, n, 1);
		if (!ret && (ret = reader_read(p->r, p->at, p->packed, n)) && ret != -ENOMEM && n > len)
			ret = reader_read(p->r, p->at, p->packed, n = len);
		p->packed_len = ret ? 0 : n;
	}
	*bytes = p->packed + (p->at - p->packed_at);
	return ret;
}

/* u32 compressed, u32 plain size, data: the two sizes. 1, 0: the end. */
static int next_head(struct reader_pages *p, uint32_t head[2])
{
	const uint8_t *bytes;
	int ret;

	if (!p->chunks)
		return 0;
	if (p->end - p->at < 2 * sizeof(*head))
		return -EBADMSG;
	ret = packed_bytes(p, 2 * sizeof(*head), &bytes);
	if (ret)
		return ret;
	memcpy(head, bytes, 2 * sizeof(*head));
	p->at += 2 * sizeof(*head);
	if (head[0] > p->end - p->at || head[0] > CHUNK_MAX || head[1] > CHUNK_MAX || !head[1] ||
	    head[1] % p->page_size)
		return -EBADMSG;
	return 1;
}

static int next_chunk(struct reader_pages *p)
{
	const uint8_t *bytes;
	uint32_t head[2] = { 0 };
	int ret = next_head(p, head);

	if (ret != 1)
		return ret;
	ret = new_block(p, head[1]);
	if (ret)
		return ret;
	ret = packed_bytes(p, head[0], &bytes) ?: unzip(p->r->unzips, bytes, head[0], p->next->data, head[1]);
	if (ret)
		return drop_next(p, ret);
	p->at += head[0];
	p->unpacked += head[1];
	p->chunks--;
	return 1;
}

static void unpack_next(void *ctx)
{
	struct reader_pages *p = ctx;

	p->ret = p->zipped ? next_chunk(p) : next_plain(p);
}

/* To the block behind the one that is used, which stays where there is none. 1, 0: the end. */
static int next_block(struct reader_pages *p)
{
	if (!p->beside)
		unpack_next(p);
	errand_finish(&p->unpack);
	if (p->ret != 1)
		return p->ret;
	reader_block_drop(p->block);
	p->block = p->next;
	p->next = NULL;
	p->block_at = 0;
	p->done = p->at - p->begin;
	if (p->beside)
		errand_begin(&p->unpack, unpack_next, p);
	return 1;
}

void reader_pages_beside(struct reader_pages *p)
{
	if (!p->zipped || p->beside)
		return;
	p->beside = true;
	errand_begin(&p->unpack, unpack_next, p);
}

/* Nothing is unpacked beside any more. */
static void end_beside(struct reader_pages *p)
{
	errand_drop(&p->unpack);
	drop_next(p, 0);
	p->beside = false;
}

/* Passes over the chunks before the one with that page. */
static int seek_chunk(struct reader_pages *p, uint64_t page)
{
	uint32_t head[2] = { 0 };
	int ret;

	if (page < p->unpacked) {
		p->at = p->begin;
		p->chunks = p->all_chunks;
		p->unpacked = 0;
	}
	while ((ret = next_head(p, head)) == 1) {
		if (page - p->unpacked < head[1] || (page == READER_LAST && p->chunks == 1)) {
			p->at -= sizeof(head);
			break;
		}
		p->at += head[0];
		p->unpacked += head[1];
		p->chunks--;
	}
	return ret;
}

int reader_pages_open(struct reader_pages **out, const struct reader *r, size_t buffer, size_t cpu)
{
	const struct reader_buffer *b = &r->info.buffers[buffer];
	struct reader_pages *p;
	int ret = 0;

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
	/* compressed pages begin with the number of chunks, which trace-cmd convert does not count in */
	if (p->zipped && p->end - p->at >= sizeof(p->chunks)) {
		ret = reader_read(r, p->at, &p->chunks, sizeof(p->chunks));
		p->at += sizeof(p->chunks);
		p->end += sizeof(p->chunks);
	}
	p->begin = p->at;
	p->all_chunks = p->chunks;
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
	end_beside(p);
	reader_block_drop(p->block);
	free(p->packed);
	free(p);
}

uint64_t reader_pages_done(const struct reader_pages *p)
{
	return p->done;
}

int reader_pages_next(struct reader_pages *p, const uint8_t **page)
{
	if (!p->block || p->block_at == p->block->len) {
		int ret = next_block(p);

		if (ret != 1)
			return ret;
	}
	*page = p->block->data + p->block_at;
	p->block_at += p->page_size;
	return 1;
}

int reader_pages_seek(struct reader_pages *p, uint64_t at)
{
	uint64_t page;

	if (at == READER_LAST && !p->zipped)
		at = p->end - p->begin - p->page_size;
	page = at == READER_LAST ? at : at - at % p->page_size;
	if (p->block && page >= p->block->at && page - p->block->at < p->block->len) {
		p->block_at = (size_t)(page - p->block->at);
		return 1;
	}
	end_beside(p);
	reader_block_drop(p->block);
	p->block = NULL;
	if (p->zipped) {
		int ret = seek_chunk(p, page);

		/* a damaged chunk is reported when its successor is asked for */
		if (ret == 1 && at != READER_LAST && next_block(p) == 1)
			p->block_at = (size_t)(page - p->block->at);
		return ret;
	}
	if (page >= p->end - p->begin)
		return 0;
	p->at = p->begin + page;
	p->unpacked = page;
	return 1;
}

const uint8_t *reader_pages_ahead(const struct reader_pages *p)
{
	return p->block && p->block_at < p->block->len ? p->block->data + p->block_at : NULL;
}
