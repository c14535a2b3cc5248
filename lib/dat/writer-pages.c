// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages on their way into a trace.dat: read from the spool, fixed, compressed chunk by chunk. */
#include "dat/writer-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pages in a compressed chunk: stock's number. */
#define CHUNK_PAGES 10

/* One CPU's pages on their way into the file. */
struct copy {
	struct dat_writer *w;
	const struct dat_buffer *b;
	unsigned int cpu;
	uint64_t n_pages; /* on disk */
	uint64_t total;	  /* ... and the empty ones after them */
	uint64_t last_ts; /* of the last page on disk */
};

int dat_pages_init(struct dat_writer *w)
{
	uint32_t max = dat_max_page(w->f);

	if (!max)
		return 0;
	w->zipped_cap = ZSTD_compressBound((size_t)max * CHUNK_PAGES);
	w->pages = malloc((size_t)max * CHUNK_PAGES);
	w->zipped = malloc(w->zipped_cap);
	return w->pages && w->zipped ? 0 : -ENOMEM;
}

void dat_pages_release(struct dat_writer *w)
{
	free(w->pages);
	free(w->zipped);
	w->pages = w->zipped = NULL;
}

/* Reads n pages from page `first` on into w->pages and has them fixed. */
static int load_pages(struct copy *c, uint64_t first, size_t n)
{
	const struct dat_cpu *cpu = &c->b->cpus[c->cpu];
	size_t size = c->b->page_size;
	ssize_t got;

	if (!n)
		return 0;
	got = pread_all(cpu->fd, c->w->pages, n * size, cpu->offset + first * size);
	if (got < (ssize_t)(n * size)) {
		got = got < 0 ? got : -EIO;
		log_err(c->w->log, "cannot read the pages of cpu %u of buffer '%s': %s", c->cpu, c->b->name,
			strerror((int)-got));
		return (int)got;
	}
	for (size_t i = 0; i < n && c->b->fix_page; i++) {
		int ret = c->b->fix_page(c->b->fix_ctx, c->cpu, c->w->pages + i * size, size);
		if (ret < 0)
			return ret;
	}
	memcpy(&c->last_ts, c->w->pages + (n - 1) * size, sizeof(c->last_ts));
	return 0;
}

/* A page without events: the time stamp, a commit of 0. */
static void make_empty(struct copy *c, size_t from, size_t to)
{
	size_t size = c->b->page_size;

	for (size_t i = from; i < to; i++) {
		memset(c->w->pages + i * size, 0, size);
		memcpy(c->w->pages + i * size, &c->last_ts, sizeof(c->last_ts));
	}
}

static int put_chunk(struct dat_writer *w, size_t len)
{
	size_t n;

	if (!w->zip) {
		dat_out_write(&w->out, w->pages, len);
		return w->out.err;
	}
	n = ZSTD_compress2(w->zip, w->zipped, w->zipped_cap, w->pages, len);
	if (ZSTD_isError(n))
		return -EIO;
	dat_out_u32(&w->out, (uint32_t)n);
	dat_out_u32(&w->out, (uint32_t)len);
	dat_out_write(&w->out, w->zipped, n);
	return w->out.err;
}

static int copy_pages(struct copy *c)
{
	struct dat_writer *w = c->w;

	for (uint64_t at = 0; at < c->total; at += CHUNK_PAGES) {
		uint64_t left = c->total - at;
		size_t n = left < CHUNK_PAGES ? (size_t)left : CHUNK_PAGES;
		uint64_t on_disk = c->n_pages > at ? c->n_pages - at : 0;
		size_t real = on_disk < n ? (size_t)on_disk : n;
		int ret = load_pages(c, at, real);

		if (ret)
			return ret;
		make_empty(c, real, n);
		ret = put_chunk(w, n * c->b->page_size);
		if (ret)
			return ret;
		w->done += (uint64_t)real * c->b->page_size;
		if (w->f->progress)
			w->f->progress(w->f->progress_ctx, w->done, w->total);
	}
	return 0;
}

int dat_put_cpu(struct dat_writer *w, const struct dat_buffer *b, unsigned int cpu, uint64_t pad,
		struct dat_place *place)
{
	const struct dat_cpu *dc = &b->cpus[cpu];
	struct copy c = { .w = w, .b = b, .cpu = cpu };
	int ret;

	dat_out_align(&w->out, b->page_size);
	*place = (struct dat_place){ .offset = w->out.pos };
	c.n_pages = dc->fd < 0 ? 0 : dc->size / b->page_size;
	if (!c.n_pages)
		return w->out.err;
	c.total = c.n_pages + pad;
	if (w->zip) {
		uint64_t chunks = (c.total + CHUNK_PAGES - 1) / CHUNK_PAGES;

		if (chunks > INT32_MAX)
			return -EFBIG;
		dat_out_u32(&w->out, (uint32_t)chunks);
	}
	ret = copy_pages(&c);
	place->size = w->out.pos - place->offset;
	return ret ? ret : w->out.err;
}
