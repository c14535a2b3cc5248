// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pages of one CPU in a trace.dat, in order: as they are, or chunk by chunk out of zstd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/reader-priv.h"

#define CHUNK_MAX (64u << 20)

struct reader_pages {
	const struct reader *r;
	uint32_t page_size;
	uint64_t at, end; /* in the file */
	bool zipped;
	uint32_t chunks; /* left in the file */
	uint8_t *plain, *packed;
	size_t plain_len, plain_at;
};

static int pages_room(uint8_t **data, size_t len)
{
	uint8_t *v = realloc(*data, len ? len : 1);

	if (!v)
		return -ENOMEM;
	*data = v;
	return 0;
}

/* Compressed pages begin with the number of chunks. */
static int take_chunks(struct reader_pages *p)
{
	if (p->end - p->at < sizeof(p->chunks))
		return 0;
	p->at += sizeof(p->chunks);
	p->end += sizeof(p->chunks); /* trace-cmd convert does not count this number in */
	return reader_read(p->r, p->at - sizeof(p->chunks), &p->chunks, sizeof(p->chunks));
}

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
	ret = p->zipped ? take_chunks(p) : pages_room(&p->plain, p->page_size);
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
	free(p->plain);
	free(p->packed);
	free(p);
}

/* u32 compressed, u32 plain size, data */
static int next_chunk(struct reader_pages *p)
{
	uint32_t head[2];
	int ret;

	if (p->end - p->at < sizeof(head))
		return -EBADMSG;
	ret = reader_read(p->r, p->at, head, sizeof(head));
	if (ret)
		return ret;
	p->at += sizeof(head);
	if (head[0] > p->end - p->at || head[0] > CHUNK_MAX || head[1] > CHUNK_MAX || !head[1] ||
	    head[1] % p->page_size)
		return -EBADMSG;
	ret = pages_room(&p->packed, head[0]) ?: pages_room(&p->plain, head[1])
		?: reader_read(p->r, p->at, p->packed, head[0])
		?: reader_unzip(p->packed, head[0], p->plain, head[1]);
	if (ret)
		return ret;
	p->at += head[0];
	p->chunks--;
	p->plain_len = head[1];
	p->plain_at = 0;
	return 0;
}

static int next_zipped(struct reader_pages *p, const uint8_t **page)
{
	if (p->plain_at == p->plain_len) {
		int ret;

		if (!p->chunks)
			return 0;
		ret = next_chunk(p);
		if (ret)
			return ret;
	}
	*page = p->plain + p->plain_at;
	p->plain_at += p->page_size;
	return 1;
}

int reader_pages_next(struct reader_pages *p, const uint8_t **page)
{
	int ret;

	if (p->zipped)
		return next_zipped(p, page);
	if (p->end - p->at < p->page_size)
		return 0;
	ret = reader_read(p->r, p->at, p->plain, p->page_size);
	if (ret)
		return ret;
	p->at += p->page_size;
	*page = p->plain;
	return 1;
}
