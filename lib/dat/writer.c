// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes a trace.dat: what no file can hold is refused first, then one of the two versions is made. */
#include "dat/writer.h"

#include <errno.h>
#include <string.h>

#include "dat/writer-parts.h"

/* What a mapping can begin at, and the kernel's largest sub-buffer (RB_WRITE_MASK + 1). */
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

static int writer_check_texts(const struct dat_file *f)
{
	const struct dat_text one[] = { f->header_page, f->header_event, f->kallsyms, f->printk,
					f->cmdlines };

	if (!f->header_page.len || !f->header_event.len || !texts_ok(one, ARRAY_SIZE(one)) ||
	    !texts_ok(f->ftrace, f->n_ftrace))
		return -EINVAL;
	for (size_t i = 0; i < f->n_systems; i++)
		if (!f->systems[i].name || !texts_ok(f->systems[i].formats, f->systems[i].n))
			return -EINVAL;
	return 0;
}

static int check_buffer(const struct dat_file *f, size_t i)
{
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
	return 0;
}

bool dat_writes_option(uint16_t id)
{
	return id == DAT_DONE || id == DAT_CPUSTAT || id == DAT_BUFFER || id == DAT_CPUCOUNT ||
	       (id >= DAT_STRINGS && id <= DAT_BUFFER_TEXT);
}

static int writer_check_options(const struct dat_file *f)
{
	for (size_t i = 0; i < f->n_options; i++) {
		const struct dat_option *o = &f->options[i];

		if (dat_writes_option(o->id) || o->len > TEXT_MAX || (o->len && !o->data))
			return -EINVAL;
	}
	return 0;
}

static int writer_check(const struct dat_file *f)
{
	int ret;

	if (f->version != 6 && f->version != 7)
		return -ENOTSUP;
	if (f->version == 7 && f->compression && strcmp(f->compression, "zstd") &&
	    strcmp(f->compression, "none"))
		return -ENOTSUP;
	if (!page_size_ok(f->page_size) || (f->n_buffers && !f->buffers))
		return -EINVAL;
	ret = writer_check_texts(f) ?: writer_check_options(f);
	for (size_t i = 0; i < f->n_buffers && !ret; i++)
		ret = check_buffer(f, i);
	return ret;
}

/* Of version 7, unless it is not wanted. */
static int zip_start(struct dat_writer *w)
{
	if (w->f->version != 7 || (w->f->compression && !strcmp(w->f->compression, "none")))
		return 0;
	w->zip = ZSTD_createCCtx();
	return w->zip ? 0 : -ENOMEM;
}

static int write_dat(struct dat_writer *w, int fd)
{
	int ret = dat_out_init(&w->out, fd) ?: dat_pages_init(w) ?: zip_start(w);

	if (!ret)
		ret = w->f->version == 6 ? dat_write_v6(w) : dat_write_v7(w);
	if (!ret)
		ret = dat_out_flush(&w->out);
	ZSTD_freeCCtx(w->zip);
	dat_pages_release(w);
	dat_out_release(&w->out);
	return ret;
}

int dat_write(const struct dat_file *f, int fd, const struct log *log)
{
	struct dat_writer w = { .f = f, .log = log };
	int ret = writer_check(f);

	if (!ret) {
		for (size_t i = 0; i < f->n_buffers; i++)
			w.total += dat_buffer_size(&f->buffers[i]);
		ret = write_dat(&w, fd);
	}
	if (ret)
		log_err(log, "cannot write a version %d trace file: %s", f->version, strerror(-ret));
	return ret;
}
