// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dat/writer.h"

#include <errno.h>
#include <string.h>

#include "dat/writer-pages.h"

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

static int check_texts(const struct dat_file *f)
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

/* Those that the writer makes itself are not the caller's to give. */
static int check_options(const struct dat_file *f)
{
	for (size_t i = 0; i < f->n_options; i++) {
		const struct dat_option *o = &f->options[i];
		bool own = o->id == DAT_DONE || o->id == DAT_CPUSTAT || o->id == DAT_BUFFER ||
			   o->id == DAT_CPUCOUNT || (o->id >= DAT_STRINGS && o->id <= DAT_BUFFER_TEXT);

		if (own || o->len > TEXT_MAX || (o->len && !o->data))
			return -EINVAL;
	}
	return 0;
}

static int check(const struct dat_file *f)
{
	int ret;

	if (f->version != 6 && f->version != 7)
		return -ENOTSUP;
	if (f->version == 7 && f->compression && strcmp(f->compression, "zstd") &&
	    strcmp(f->compression, "none"))
		return -ENOTSUP;
	if (!page_size_ok(f->page_size) || (f->n_buffers && !f->buffers))
		return -EINVAL;
	ret = check_texts(f);
	if (!ret)
		ret = check_options(f);
	for (size_t i = 0; i < f->n_buffers && !ret; i++)
		ret = check_buffer(f, i);
	return ret;
}

static bool is_zipped(const struct dat_file *f)
{
	return f->version == 7 && (!f->compression || strcmp(f->compression, "none"));
}

static int write_file(struct dat_writer *w, int fd)
{
	int ret = dat_out_init(&w->out, fd);

	if (!ret)
		ret = dat_pages_init(w);
	if (!ret && is_zipped(w->f)) {
		w->zip = zip_open(w->f->level);
		if (!w->zip)
			ret = -errno;
	}
	if (!ret)
		ret = w->f->version == 6 ? dat_write_v6(w) : dat_write_v7(w);
	if (!ret)
		ret = dat_out_flush(&w->out);
	zip_close(w->zip);
	dat_pages_release(w);
	dat_out_release(&w->out);
	return ret;
}

int dat_write(const struct dat_file *f, int fd, const struct log *log)
{
	struct dat_writer w = { .f = f, .log = log };
	int ret = check(f);

	for (size_t i = 0; i < f->n_buffers && !ret; i++)
		w.total += dat_buffer_size(&f->buffers[i]);
	if (!ret)
		ret = write_file(&w, fd);
	if (ret)
		log_err(log, "cannot write a version %d trace file: %s", f->version, strerror(-ret));
	return ret;
}
