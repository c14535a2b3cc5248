// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parts of both versions of a trace.dat: the magic, the texts, the options. */
#include "file/dat/writer-parts.h"
#include "base/files.h"

void dat_put_magic(struct dat_out *o, int version, uint32_t page_size)
{
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	const char digit[] = { (char)('0' + version), '\0' };
	const uint8_t big_endian = 0;
	const uint8_t long_size = 8; /* 64-bit kernels only: see page.h */

	dat_out_write(o, magic, sizeof(magic));
	dat_out_write(o, digit, sizeof(digit));
	dat_out_write(o, &big_endian, 1);
	dat_out_write(o, &long_size, 1);
	dat_out_u32(o, page_size);
}

static void add_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

/* Appends a text after its length, of 4 or 8 bytes. */
static void add_sized_text(struct buf *b, const struct dat_text *t, size_t width)
{
	uint64_t len = t->len;
	uint32_t low = (uint32_t)len;

	buf_add(b, width == 4 ? (const void *)&low : &len, width);
	buf_add(b, t->data, t->len);
}

static void add_formats(struct buf *b, const struct dat_text *formats, size_t n)
{
	add_u32(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		add_sized_text(b, &formats[i], 8);
}

int dat_part(const struct dat_file *f, uint16_t id, struct buf *out)
{
	switch (id) {
	case DAT_HEADER_INFO:
		buf_add(out, "header_page", sizeof("header_page"));
		add_sized_text(out, &f->header_page, 8);
		buf_add(out, "header_event", sizeof("header_event"));
		add_sized_text(out, &f->header_event, 8);
		break;
	case DAT_FTRACE_EVENTS:
		add_formats(out, f->ftrace, f->n_ftrace);
		break;
	case DAT_EVENT_FORMATS:
		add_u32(out, (uint32_t)f->n_systems);
		for (size_t i = 0; i < f->n_systems; i++) {
			buf_add(out, f->systems[i].name, strlen(f->systems[i].name) + 1);
			add_formats(out, f->systems[i].formats, f->systems[i].n);
		}
		break;
	case DAT_KALLSYMS:
		add_sized_text(out, &f->kallsyms, 4);
		break;
	case DAT_PRINTK:
		add_sized_text(out, &f->printk, 4);
		break;
	case DAT_CMDLINES:
		add_sized_text(out, &f->cmdlines, 8);
		break;
	}
	return buf_status(out);
}

void dat_add_option(struct buf *out, uint16_t id, const void *data, uint32_t len)
{
	buf_add(out, &id, sizeof(id));
	add_u32(out, len);
	buf_add(out, data, len);
}

static void add_stat(struct buf *out, const char *text)
{
	dat_add_option(out, DAT_CPUSTAT, text, (uint32_t)strlen(text) + 1);
}

/* Stock shows all CPUSTATs as one text. A heading, itself a CPUSTAT, separates the buffers. */
static void add_stats(struct buf *out, const struct dat_buffer *b)
{
	bool headed = !b->name[0];

	for (uint32_t i = 0; i < b->n_cpus; i++) {
		if (!b->cpus[i].stat)
			continue;
		if (!headed) {
			char *head = str_printf("\nBuffer: %s\n\n", b->name);

			out->bad |= !head;
			add_stat(out, head ? head : "");
			free(head);
			headed = true;
		}
		add_stat(out, b->cpus[i].stat);
	}
}

void dat_add_options(struct buf *out, const struct dat_file *f)
{
	for (size_t i = 0; i < f->n_options; i++)
		dat_add_option(out, f->options[i].id, f->options[i].data, f->options[i].len);
	for (size_t i = 0; i < f->n_buffers; i++)
		add_stats(out, &f->buffers[i]);
}

uint32_t dat_max_page(const struct dat_file *f)
{
	uint32_t max = 0;

	for (size_t i = 0; i < f->n_buffers; i++)
		if (f->buffers[i].page_size > max)
			max = f->buffers[i].page_size;
	return max;
}

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
		size_t size;

		if (ret)
			return ret;
		/* A page without events: the time stamp, a commit of 0. */
		size = c->b->page_size;
		for (size_t i = real; i < n; i++) {
			memset(c->w->pages + i * size, 0, size);
			memcpy(c->w->pages + i * size, &c->last_ts, sizeof(c->last_ts));
		}
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
