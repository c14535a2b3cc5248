// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * trace-cmd.dat.v6(5): the parts one after the other, no sections, nothing
 * compressed. One page size and one number of CPUs for all buffers.
 */
#include "dat/writer-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As trace-cmd writes it: the chosen clock alone, after each table. Stock reads the first. */
static void v6_put_clock(struct dat_writer *w)
{
	const char *clock = w->f->n_buffers ? w->f->buffers[0].clock : NULL;

	if (!dat_find_option(w->f, DAT_TRACECLOCK))
		return;
	if (!clock)
		clock = "local";
	dat_out_u64(&w->out, strlen(clock) + 2);
	dat_out_write(&w->out, "[", 1);
	dat_out_write(&w->out, clock, strlen(clock));
	dat_out_write(&w->out, "]", 1);
}

/* "flyrecord", the table of {offset, size}, the clock; then the pages. */
static int v6_put_buffer(struct dat_writer *w, const struct dat_buffer *b, uint32_t n_cpus)
{
	uint64_t table;

	dat_out_write(&w->out, "flyrecord", 10);
	table = w->out.pos;
	for (uint32_t i = 0; i < 2 * n_cpus; i++)
		dat_out_u64(&w->out, 0);
	v6_put_clock(w);
	for (uint32_t i = 0; b && i < b->n_cpus; i++) {
		struct dat_place place;
		int ret = dat_put_cpu(w, b, i, 0, &place);

		if (ret)
			return ret;
		dat_out_patch(&w->out, table + i * 16, place.offset);
		dat_out_patch(&w->out, table + i * 16 + 8, place.size);
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

static int v6_put_parts(struct dat_writer *w)
{
	for (unsigned int id = DAT_HEADER_INFO; id <= DAT_CMDLINES; id++) {
		struct buf body = { 0 };
		int ret = dat_part(w->f, id, &body);

		if (!ret)
			dat_out_write(&w->out, body.data, body.len);
		buf_release(&body);
		if (ret)
			return ret;
	}
	return w->out.err;
}

int dat_write_v6(struct dat_writer *w)
{
	const struct dat_file *f = w->f;
	const struct dat_buffer *top = dat_top(f);
	uint32_t n_cpus = dat_max_cpus(f);
	uint64_t *at = calloc(f->n_buffers + 1, sizeof(*at));
	int ret;

	if (!at)
		return -ENOMEM;
	dat_put_magic(&w->out, 6, f->n_buffers ? f->buffers[0].page_size : f->page_size);
	ret = v6_put_parts(w);
	if (ret)
		goto out;
	dat_out_u32(&w->out, n_cpus);
	ret = v6_put_options(w, at) ?: v6_put_buffer(w, top, n_cpus);
	for (size_t i = top ? 1 : 0; i < f->n_buffers && !ret; i++) {
		dat_out_patch(&w->out, at[i], w->out.pos);
		ret = v6_put_buffer(w, &f->buffers[i], n_cpus);
	}
out:
	free(at);
	return ret;
}
