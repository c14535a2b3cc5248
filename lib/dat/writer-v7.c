// SPDX-License-Identifier: LGPL-2.1-or-later
/* trace-cmd.dat.v7(5): sections, found through options. */
#include "dat/writer-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_COMPRESSED 1
/* id, flags, string id, size */
#define SECTION_SIZE_AT (2 + 2 + 4)
#define SECTION_HEAD	(SECTION_SIZE_AT + 8)

struct v7 {
	struct dat_writer *w;
	struct buf strings; /* what the sections are called */
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

static int put_zipped(struct v7 *v, uint16_t id, const char *desc, const struct buf *body)
{
	struct dat_out *o = &v->w->out;
	size_t cap = ZSTD_compressBound(body->len);
	uint8_t *data = malloc(cap);
	size_t n;

	if (!data)
		return -ENOMEM;
	n = ZSTD_compress2(v->w->zip, data, cap, body->data, body->len);
	if (!ZSTD_isError(n)) {
		section_head(v, id, true, desc, 8 + n);
		dat_out_u32(o, (uint32_t)n);
		dat_out_u32(o, (uint32_t)body->len);
		dat_out_write(o, data, n);
	}
	free(data);
	return ZSTD_isError(n) ? -EIO : o->err;
}

static int v7_put_section(struct v7 *v, uint16_t id, bool zip, const char *desc, const struct buf *body)
{
	if (body->bad)
		return -ENOMEM;
	if (body->len > INT32_MAX)
		return -EFBIG;
	if (zip && v->w->zip)
		return put_zipped(v, id, desc, body);
	section_head(v, id, false, desc, body->len);
	dat_out_write(&v->w->out, body->data, body->len);
	return v->w->out.err;
}

static int v7_put_parts(struct v7 *v)
{
	static const char *const desc[] = {
		[DAT_HEADER_INFO] = "headers",
		[DAT_FTRACE_EVENTS] = "ftrace events",
		[DAT_EVENT_FORMATS] = "events format",
		[DAT_KALLSYMS] = "kallsyms",
		[DAT_PRINTK] = "printk",
		[DAT_CMDLINES] = "command lines",
	};

	for (unsigned int id = DAT_HEADER_INFO; id <= DAT_CMDLINES; id++) {
		uint64_t at = v->w->out.pos;
		struct buf body = { 0 };
		int ret = dat_part(v->w->f, id, &body) ?: v7_put_section(v, id, true, desc[id], &body);

		buf_release(&body);
		if (ret)
			return ret;
		dat_add_option(&v->options, id, &at, sizeof(at));
	}
	return 0;
}

/* The BUFFER option up to its list of CPUs. */
static void buffer_head(struct buf *out, const struct dat_buffer *b, uint64_t section)
{
	const char *clock = b->clock ? b->clock : "local";

	buf_add(out, &section, sizeof(section));
	buf_add(out, b->name, strlen(b->name) + 1);
	buf_add(out, clock, strlen(clock) + 1);
	buf_add(out, &b->page_size, sizeof(b->page_size));
	buf_add(out, &b->n_cpus, sizeof(b->n_cpus));
}

/* pad: empty pages after those of the last CPU that has any. */
static int put_cpus(struct dat_writer *w, const struct dat_buffer *b, uint64_t pad, struct buf *option)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < b->n_cpus; i++)
		if (b->cpus[i].fd >= 0 && b->cpus[i].size)
			last = i;
	for (uint32_t i = 0; i < b->n_cpus; i++) {
		struct dat_place place;
		int ret = dat_put_cpu(w, b, i, i == last ? pad : 0, &place);

		if (ret)
			return ret;
		buf_add(option, &i, sizeof(i));
		buf_add(option, &place.offset, sizeof(place.offset));
		buf_add(option, &place.size, sizeof(place.size));
	}
	return 0;
}

static int v7_put_buffer(struct v7 *v, const struct dat_buffer *b, uint64_t pad)
{
	struct dat_out *o = &v->w->out;
	uint64_t at = o->pos;
	struct buf desc = { 0 }, option = { 0 };
	int ret = -ENOMEM;

	buf_printf(&desc, "buffer flyrecord %s", b->name);
	if (!buf_str(&desc))
		goto out;
	section_head(v, DAT_BUFFER, v->w->zip, buf_str(&desc), 0);
	buffer_head(&option, b, at);
	ret = put_cpus(v->w, b, pad, &option);
	if (ret)
		goto out;
	dat_out_patch(o, at + SECTION_SIZE_AT, o->pos - at - SECTION_HEAD);
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
 * Stock takes the page size in front of the file for the top buffer's, and
 * only the instances' from their BUFFER option.
 */
static uint32_t front_page_size(const struct dat_file *f)
{
	const struct dat_buffer *top = dat_top(f);

	if (top && dat_buffer_size(top))
		return top->page_size;
	return f->n_buffers ? dat_max_page(f) : f->page_size;
}

/*
 * Stock's reader lays out uncompressed pages at offsets of its own: the first
 * CPU at one page, each next one after it, instances after the top buffer. An
 * instance whose pages are larger than the top's must not begin in the middle
 * of one, or reading stops after its first page. So many empty pages at the
 * end of the top buffer make it come out even.
 */
static uint64_t pad_pages(const struct dat_writer *w)
{
	const struct dat_buffer *top = dat_top(w->f);
	uint64_t used, per;

	if (!w->zip || !top || !dat_buffer_size(top))
		return 0;
	used = 1 + dat_buffer_size(top) / top->page_size;
	per = dat_max_page(w->f) / top->page_size;
	return per > 1 ? -used & (per - 1) : 0;
}

static int v7_put_options(struct v7 *v)
{
	uint32_t n_cpus = dat_max_cpus(v->w->f);
	uint64_t next = 0;

	dat_add_options(&v->options, v->w->f);
	/* without it KernelShark finds no entries */
	dat_add_option(&v->options, DAT_CPUCOUNT, &n_cpus, sizeof(n_cpus));
	dat_add_option(&v->options, DAT_DONE, &next, sizeof(next));
	return v7_put_section(v, DAT_DONE, false, "options", &v->options);
}

static void v7_put_front(struct dat_writer *w)
{
	const char *name = w->zip ? "zstd" : "none";
	const char *version = w->zip ? ZSTD_versionString() : "";

	dat_put_magic(&w->out, 7, front_page_size(w->f));
	dat_out_write(&w->out, name, strlen(name) + 1);
	dat_out_write(&w->out, version, strlen(version) + 1);
}

/* Last, for its own name is in it too. */
static int put_strings(struct v7 *v)
{
	struct dat_out *o = &v->w->out;
	static const char own[] = "strings";

	section_head(v, DAT_STRINGS, false, own, v->strings.len + sizeof(own));
	dat_out_write(o, v->strings.data, v->strings.len);
	return v->strings.bad ? -ENOMEM : o->err;
}

static int v7_put_all(struct v7 *v)
{
	const struct dat_file *f = v->w->f;
	struct dat_out *o = &v->w->out;
	uint64_t at, options;
	int ret;

	v7_put_front(v->w);
	at = o->pos;
	dat_out_u64(o, 0);
	ret = v7_put_parts(v);
	for (size_t i = 0; i < f->n_buffers && !ret; i++)
		ret = v7_put_buffer(v, &f->buffers[i], i == 0 ? pad_pages(v->w) : 0);
	if (ret)
		return ret;
	options = o->pos;
	ret = v7_put_options(v);
	if (ret)
		return ret;
	dat_out_patch(o, at, options);
	return put_strings(v);
}

int dat_write_v7(struct dat_writer *w)
{
	struct v7 v = { .w = w };
	int ret = v7_put_all(&v);

	buf_release(&v.strings);
	buf_release(&v.options);
	return ret;
}
