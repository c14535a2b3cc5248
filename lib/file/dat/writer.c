// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes a trace.dat: what no file can hold is refused first, then one of the two versions is made. */
#include "file/dat/writer.h"

#include <zstd.h>

#include "base/array.h"
#include "base/files.h"

/* One write of a file. */
struct dat_writer {
	const struct dat_file *f;
	const struct log *log;
	struct dat_out out;
	ZSTD_CCtx *zip;	 /* NULL: not compressed */
	uint8_t *pages;	 /* room for one chunk of pages */
	uint8_t *zipped; /* ... and for what it compresses to */
	size_t zipped_cap;
	uint64_t done, total; /* bytes of pages, for progress */
	uint32_t max_cpus;    /* most that any buffer has */
	uint32_t max_page;    /* the largest size of any buffer, bytes; 0: there is no buffer */
};

/* Place of a CPU's pages. */
struct dat_place {
	uint64_t offset, size; /* bytes in the file */
};

/* The top buffer, or NULL. */
static const struct dat_buffer *dat_top(const struct dat_file *f)
{
	return f->n_buffers && !f->buffers[0].name[0] ? &f->buffers[0] : NULL;
}

/* Bytes of pages in a buffer. */
static uint64_t dat_buffer_size(const struct dat_buffer *b)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < b->n_cpus; i++)
		size += b->cpus[i].fd < 0 ? 0 : b->cpus[i].size;
	return size;
}

/* ---- parts: version 6 strings them together, version 7 wraps each in a section ---- */

static void add_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

/* Appends a text after its length, of 4 or 8 bytes. */
static void add_sized_text(struct buf *b, const struct dat_text *t, size_t width)
{
	uint64_t len = t->len;

	buf_add(b, &len, width); /* little-endian, as page.h */
	buf_add(b, t->data, t->len);
}

static void add_formats(struct buf *b, const struct dat_text *formats, size_t n)
{
	add_u32(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		add_sized_text(b, &formats[i], 8);
}

/* Appends the bytes of section `id` (DAT_HEADER_INFO ... DAT_CMDLINES) as both versions have them. -ENOMEM */
static int dat_part(const struct dat_file *f, uint16_t id, struct buf *out)
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

/* The caller's options and the CPUSTATs. */
static void dat_add_options(struct buf *out, const struct dat_file *f)
{
	for (size_t i = 0; i < f->n_options; i++)
		dat_add_option(out, f->options[i].id, f->options[i].data, f->options[i].len);
	/* Stock shows all CPUSTATs as one text. A heading, itself a CPUSTAT, separates the buffers. */
	for (const struct dat_buffer *b = f->buffers; b < f->buffers + f->n_buffers; b++) {
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

/* Reads n pages from page `first` on into w->pages and has them fixed. */
static int load_pages(struct copy *c, uint64_t first, size_t n)
{
	const struct dat_cpu *cpu = &c->b->cpus[c->cpu];
	size_t size = c->b->page_size;
	ssize_t got;

	if (!n)
		return 0;
	got = pread_all(cpu->fd, c->w->pages, n * size, cpu->offset + first * size);
	if (got < (ssize_t)(n * size))
		return log_fail_errno(c->w->log, got < 0 ? (int)got : -EIO,
				      "cannot read the pages of cpu %u of buffer '%s'", c->cpu, c->b->name);
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
		size_t size = c->b->page_size;
		int ret = load_pages(c, at, real);

		if (ret)
			return ret;
		/* A page without events: the time stamp, a commit of 0. */
		for (size_t i = real; i < n; i++) {
			memset(c->w->pages + i * size, 0, size);
			memcpy(c->w->pages + i * size, &c->last_ts, sizeof(c->last_ts));
		}
		ret = put_chunk(w, n * size);
		if (ret)
			return ret;
		w->done += (uint64_t)real * size;
		if (w->f->progress)
			w->f->progress(w->f->progress_ctx, w->done, w->total);
	}
	return 0;
}

/*
 * Copies one CPU's pages to the next page-aligned place, compressed when w->zip
 * is set, and appends `pad` empty pages. An empty CPU takes no room.
 */
static int dat_put_cpu(struct dat_writer *w, const struct dat_buffer *b, unsigned int cpu, uint64_t pad,
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

/* ---- version 6 ---- */

/* "flyrecord", the table of {offset, size}, the clock; then the pages. */
static int v6_put_buffer(struct dat_writer *w, const struct dat_buffer *b)
{
	uint64_t table;
	const char *clock;
	bool clocked = false;

	dat_out_write(&w->out, "flyrecord", 10);
	table = w->out.pos;
	for (uint32_t i = 0; i < 2 * w->max_cpus; i++)
		dat_out_u64(&w->out, 0);
	/* as trace-cmd writes it: only the chosen clock, after each table; stock reads the first */
	clock = w->f->n_buffers ? w->f->buffers[0].clock : NULL;
	for (size_t i = 0; i < w->f->n_options; i++)
		clocked |= w->f->options[i].id == DAT_TRACECLOCK;
	if (clocked) {
		if (!clock)
			clock = "local";
		dat_out_u64(&w->out, strlen(clock) + 2);
		dat_out_write(&w->out, "[", 1);
		dat_out_write(&w->out, clock, strlen(clock));
		dat_out_write(&w->out, "]", 1);
	}
	for (uint32_t i = 0; b && i < b->n_cpus; i++) {
		struct dat_place place;
		int ret = dat_put_cpu(w, b, i, 0, &place);

		if (ret)
			return ret;
		dat_out_patch(&w->out, table + i * 16, place.offset, 8);
		dat_out_patch(&w->out, table + i * 16 + 8, place.size, 8);
	}
	return w->out.err;
}

/* Notes in at[] where each instance's offset is to go once it is known. */
static int v6_put_options(struct dat_writer *w, uint64_t *at)
{
	const struct dat_file *f = w->f;
	struct dat_out *o = &w->out;
	struct buf b = { 0 };
	int ret;

	dat_add_options(&b, f);
	ret = buf_status(&b);
	dat_out_write(o, "options  ", 10);
	dat_out_write(o, b.data, b.len);
	buf_release(&b);
	for (size_t i = 0; i < f->n_buffers; i++) {
		const char *name = f->buffers[i].name;

		if (!name[0])
			continue;
		dat_out_u16(o, DAT_BUFFER);
		dat_out_u32(o, 8 + (uint32_t)strlen(name) + 1);
		at[i] = o->pos;
		dat_out_u64(o, 0);
		dat_out_write(o, name, strlen(name) + 1);
	}
	dat_out_u16(o, DAT_DONE);
	return ret ? ret : o->err;
}

static int dat_write_v6(struct dat_writer *w)
{
	const struct dat_file *f = w->f;
	const struct dat_buffer *top = dat_top(f);
	uint64_t *at = calloc(f->n_buffers + 1, sizeof(*at));
	int ret = 0;

	if (!at)
		return -ENOMEM;
	dat_out_magic(&w->out, 6, f->n_buffers ? f->buffers[0].page_size : f->page_size);
	for (unsigned int id = DAT_HEADER_INFO; id <= DAT_CMDLINES && !ret; id++) {
		struct buf body = { 0 };

		ret = dat_part(w->f, id, &body);
		dat_out_write(&w->out, body.data, body.len);
		buf_release(&body);
	}
	dat_out_u32(&w->out, w->max_cpus);
	ret = ret ?: v6_put_options(w, at) ?: v6_put_buffer(w, top);
	for (size_t i = top ? 1 : 0; i < f->n_buffers && !ret; i++) {
		dat_out_patch(&w->out, at[i], w->out.pos, 8);
		ret = v6_put_buffer(w, &f->buffers[i]);
	}
	free(at);
	return ret;
}

/* ---- version 7 ---- */

#define SECTION_COMPRESSED 1
/* id, flags, string id, size */
#define SECTION_SIZE_AT (2 + 2 + 4)
#define SECTION_HEAD	(SECTION_SIZE_AT + 8)

struct v7 {
	struct dat_writer *w;
	struct buf strings; /* names of the sections */
	struct buf options; /* all of them, in the end one section */
};

static void section_head(struct v7 *v, uint16_t id, bool zipped, const char *desc, uint64_t size)
{
	struct dat_out *o = &v->w->out;

	dat_out_u16(o, id);
	dat_out_u16(o, zipped ? SECTION_COMPRESSED : 0);
	dat_out_u32(o, (uint32_t)v->strings.len);
	dat_out_u64(o, size);
	buf_add(&v->strings, desc, strlen(desc) + 1);
}

static int v7_put_section(struct v7 *v, uint16_t id, bool zip, const char *desc, const struct buf *body)
{
	if (body->bad)
		return -ENOMEM;
	if (body->len > INT32_MAX)
		return -EFBIG;
	if (zip && v->w->zip) {
		struct dat_out *o = &v->w->out;
		size_t cap = ZSTD_compressBound(body->len);
		uint8_t *data = malloc(cap);
		size_t n;

		if (!data)
			return -ENOMEM;
		/* the default level takes half as long again, for 2 % less of a text; pages gain more */
		n = ZSTD_compressCCtx(v->w->zip, data, cap, body->data, body->len, 1);
		if (!ZSTD_isError(n)) {
			section_head(v, id, true, desc, 8 + n);
			dat_out_u32(o, (uint32_t)n);
			dat_out_u32(o, (uint32_t)body->len);
			dat_out_write(o, data, n);
		}
		free(data);
		return ZSTD_isError(n) ? -EIO : o->err;
	}
	section_head(v, id, false, desc, body->len);
	dat_out_write(&v->w->out, body->data, body->len);
	return v->w->out.err;
}

/* Several frames are one to readers: the text's length, which comes first in the section, has its own. */
static int v7_put_symbols(struct v7 *v, const char *desc, const struct dat_zipped *z)
{
	struct dat_out *o = &v->w->out;
	uint8_t length[ZSTD_COMPRESSBOUND(sizeof(z->plain))];
	size_t n = ZSTD_compressCCtx(v->w->zip, length, sizeof(length), &z->plain, sizeof(z->plain), 1);

	if (ZSTD_isError(n))
		return -EIO;
	section_head(v, DAT_KALLSYMS, true, desc, 8 + n + z->len);
	dat_out_u32(o, (uint32_t)(n + z->len));
	dat_out_u32(o, z->plain + (uint32_t)sizeof(z->plain));
	dat_out_write(o, length, n);
	dat_out_write(o, z->data, z->len);
	return o->err;
}

static int v7_put_part(struct v7 *v, unsigned int id)
{
	static const char *const desc[] = {
		[DAT_HEADER_INFO] = "headers",
		[DAT_FTRACE_EVENTS] = "ftrace events",
		[DAT_EVENT_FORMATS] = "events format",
		[DAT_KALLSYMS] = "kallsyms",
		[DAT_PRINTK] = "printk",
		[DAT_CMDLINES] = "command lines",
	};
	const struct dat_file *f = v->w->f;
	uint64_t place = v->w->out.pos;
	struct dat_zipped z = { 0 };
	struct buf body = { 0 };
	int ret = id == DAT_KALLSYMS && f->symbols ? f->symbols(f->symbols_ctx, &z) : 0;

	if (!ret && z.len)
		ret = v7_put_symbols(v, desc[id], &z);
	else
		ret = ret ?: dat_part(f, id, &body) ?: v7_put_section(v, id, true, desc[id], &body);
	buf_release(&body);
	dat_add_option(&v->options, id, &place, sizeof(place));
	return ret;
}

/* pad: empty pages after those of the last CPU that has any. */
static int v7_put_buffer(struct v7 *v, const struct dat_buffer *b, uint64_t pad)
{
	struct dat_out *o = &v->w->out;
	uint64_t at = o->pos;
	struct buf desc = { 0 }, option = { 0 };
	int ret = -ENOMEM;
	const char *clock = b->clock ? b->clock : "local";
	uint32_t last = 0;

	buf_printf(&desc, "buffer flyrecord %s", b->name);
	if (!buf_str(&desc))
		goto out;
	section_head(v, DAT_BUFFER, v->w->zip, buf_str(&desc), 0);
	buf_add(&option, &at, sizeof(at));
	buf_add(&option, b->name, strlen(b->name) + 1);
	buf_add(&option, clock, strlen(clock) + 1);
	buf_add(&option, &b->page_size, sizeof(b->page_size));
	buf_add(&option, &b->n_cpus, sizeof(b->n_cpus));
	for (uint32_t i = 0; i < b->n_cpus; i++)
		if (b->cpus[i].fd >= 0 && b->cpus[i].size)
			last = i;
	for (uint32_t i = 0; i < b->n_cpus; i++) {
		struct dat_place place;

		ret = dat_put_cpu(v->w, b, i, i == last ? pad : 0, &place);
		if (ret)
			goto out;
		buf_add(&option, &i, sizeof(i));
		buf_add(&option, &place.offset, sizeof(place.offset));
		buf_add(&option, &place.size, sizeof(place.size));
	}
	dat_out_patch(o, at + SECTION_SIZE_AT, o->pos - at - SECTION_HEAD, 8);
	if (option.bad)
		ret = -ENOMEM;
	else
		dat_add_option(&v->options, DAT_BUFFER, option.data, (uint32_t)option.len);
out:
	buf_release(&desc);
	buf_release(&option);
	return ret ? ret : o->err;
}

/*
 * Stock's reader lays out uncompressed pages at offsets of its own: the first CPU at one page, each next one
 * after it, instances after the top buffer. An instance whose pages are larger than the top's must not begin
 * in the middle of one, or reading stops after its first page. So many empty pages at the end of the top
 * buffer make it come out even.
 */
static uint64_t pad_pages(const struct dat_writer *w)
{
	const struct dat_buffer *top = dat_top(w->f);
	uint64_t used, per;

	if (!w->zip || !top || !dat_buffer_size(top))
		return 0;
	used = 1 + dat_buffer_size(top) / top->page_size;
	per = w->max_page / top->page_size;
	return per > 1 ? -used & (per - 1) : 0;
}

/* The whole file but for the last flush. -errno or 0. */
static int dat_write_v7(struct dat_writer *w)
{
	struct v7 v = { .w = w };
	const struct dat_file *f = w->f;
	struct dat_out *o = &w->out;
	uint64_t at, options;
	int ret = 0;
	const char *name = w->zip ? "zstd" : "none";
	const char *version = w->zip ? ZSTD_versionString() : "";
	static const char own[] = "strings";
	const uint64_t next = 0;
	const struct dat_buffer *top = dat_top(f);
	uint32_t front = w->max_page ?: f->page_size;

	/* stock takes the size in front for the top buffer's, and only the instances' from their option */
	if (top && dat_buffer_size(top))
		front = top->page_size;
	dat_out_magic(o, 7, front);
	dat_out_write(o, name, strlen(name) + 1);
	dat_out_write(o, version, strlen(version) + 1);
	at = o->pos;
	dat_out_u64(o, 0);
	for (unsigned int id = DAT_HEADER_INFO; id <= DAT_CMDLINES && !ret; id++)
		ret = id == DAT_KALLSYMS ? 0 : v7_put_part(&v, id);
	for (size_t i = 0; i < f->n_buffers && !ret; i++)
		ret = v7_put_buffer(&v, &f->buffers[i], i == 0 ? pad_pages(w) : 0);
	ret = ret ?: v7_put_part(&v, DAT_KALLSYMS); /* last: they may still be on their way */
	if (ret)
		goto out;
	options = o->pos;
	dat_add_options(&v.options, f);
	/* without it KernelShark finds no entries */
	dat_add_option(&v.options, DAT_CPUCOUNT, &w->max_cpus, sizeof(w->max_cpus));
	dat_add_option(&v.options, DAT_DONE, &next, sizeof(next));
	ret = v7_put_section(&v, DAT_DONE, false, "options", &v.options);
	if (ret)
		goto out;
	dat_out_patch(o, at, options, 8);
	/* last: its own name is in it too */
	section_head(&v, DAT_STRINGS, false, own, v.strings.len + sizeof(own));
	dat_out_write(o, v.strings.data, v.strings.len);
	ret = v.strings.bad ? -ENOMEM : o->err;
out:
	buf_release(&v.strings);
	buf_release(&v.options);
	return ret;
}

/* Smallest alignment of a mapping, and the kernel's largest sub-buffer (RB_WRITE_MASK + 1). */
#define PAGE_MIN 4096u
#define PAGE_MAX (1u << 20)
/* Stock's readers keep the sizes of texts and options in an int. */
#define TEXT_MAX ((size_t)INT32_MAX)

static bool page_size_ok(uint32_t size)
{
	return size >= PAGE_MIN && size <= PAGE_MAX && !(size & (size - 1));
}

static bool texts_ok(const struct dat_text *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].len > TEXT_MAX || (t[i].len && !t[i].data))
			return false;
	return true;
}

bool dat_writes_option(uint16_t id)
{
	return id == DAT_DONE || id == DAT_CPUSTAT || id == DAT_BUFFER || id == DAT_CPUCOUNT ||
	       (id >= DAT_STRINGS && id <= DAT_BUFFER_TEXT);
}

bool dat_zips(const struct dat_file *f)
{
	return f->version == 7 && (!f->compression || strcmp(f->compression, "none"));
}

static int writer_check(const struct dat_file *f)
{
	const struct dat_text one[] = { f->header_page, f->header_event, f->kallsyms, f->printk,
					f->cmdlines };

	if (f->version != 6 && f->version != 7)
		return -ENOTSUP;
	if (f->version == 7 && f->compression && strcmp(f->compression, "zstd") &&
	    strcmp(f->compression, "none"))
		return -ENOTSUP;
	if (!page_size_ok(f->page_size) || (f->n_buffers && !f->buffers))
		return -EINVAL;
	if (f->symbols && !dat_zips(f))
		return -EINVAL;
	if (!f->header_page.len || !f->header_event.len || !texts_ok(one, ARRAY_SIZE(one)) ||
	    !texts_ok(f->ftrace, f->n_ftrace))
		return -EINVAL;
	for (size_t i = 0; i < f->n_systems; i++)
		if (!f->systems[i].name || !texts_ok(f->systems[i].formats, f->systems[i].n))
			return -EINVAL;
	for (size_t i = 0; i < f->n_options; i++) {
		const struct dat_option *o = &f->options[i];

		if (dat_writes_option(o->id) || o->len > TEXT_MAX || (o->len && !o->data))
			return -EINVAL;
	}
	for (size_t i = 0; i < f->n_buffers; i++) {
		const struct dat_buffer *b = &f->buffers[i];

		if (!b->name || !page_size_ok(b->page_size) || (b->n_cpus && !b->cpus))
			return -EINVAL;
		for (size_t other = 0; other < i; other++)
			if (!strcmp(b->name, f->buffers[other].name))
				return -EINVAL;
		if (i && !b->name[0]) /* the top buffer comes first */
			return -EINVAL;
		for (uint32_t cpu = 0; cpu < b->n_cpus; cpu++)
			if (b->cpus[cpu].size % b->page_size)
				return -EINVAL;
		/* version 6 has one page size, in front of the file */
		if (f->version == 6 && b->page_size != f->buffers[0].page_size)
			return -ENOTSUP;
	}
	return 0;
}

int dat_write(const struct dat_file *f, int fd, const struct log *log)
{
	struct dat_writer w = { .f = f, .log = log };
	int ret = writer_check(f);
	size_t chunk;

	if (ret)
		return log_fail(log, ret, "cannot write a version %d trace file: %s", f->version,
				strerror(-ret));
	for (const struct dat_buffer *b = f->buffers; b < f->buffers + f->n_buffers; b++) {
		w.total += dat_buffer_size(b);
		w.max_cpus = b->n_cpus > w.max_cpus ? b->n_cpus : w.max_cpus;
		w.max_page = b->page_size > w.max_page ? b->page_size : w.max_page;
	}
	/* one chunk of the largest pages: all the memory that the pages take */
	chunk = (size_t)w.max_page * CHUNK_PAGES;
	w.zipped_cap = ZSTD_compressBound(chunk);
	w.pages = malloc(chunk + 1);
	w.zipped = malloc(w.zipped_cap + 1);
	ret = w.pages && w.zipped ? dat_out_init(&w.out, fd) : -ENOMEM;
	if (!ret && dat_zips(f)) {
		w.zip = ZSTD_createCCtx();
		ret = w.zip ? 0 : -ENOMEM;
	}
	ret = ret ?: w.f->version == 6 ? dat_write_v6(&w) : dat_write_v7(&w);
	ret = ret ?: dat_out_flush(&w.out);
	ZSTD_freeCCtx(w.zip);
	free(w.pages);
	free(w.zipped);
	dat_out_release(&w.out);
	return ret;
}
