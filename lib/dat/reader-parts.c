// SPDX-License-Identifier: LGPL-2.1-or-later
/* The texts of a trace.dat: the same bytes in both versions, in version 7 each in a section. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/reader-priv.h"
#include "util/array.h"

static struct dat_text take_text(struct cursor *c, uint64_t len)
{
	const char *data = len <= SIZE_MAX ? cursor_take(c, (size_t)len) : NULL;

	if (!data)
		c->bad = true;
	return (struct dat_text){ .data = data ? data : "", .len = data ? (size_t)len : 0 };
}

static int take_headers(struct reader *r, struct cursor *c)
{
	const char *name = cursor_str(c);

	if (!name || strcmp(name, "header_page"))
		return reader_bad(r, "header_page");
	r->info.header_page = take_text(c, cursor_u64(c));
	name = cursor_str(c);
	if (!name || strcmp(name, "header_event"))
		return reader_bad(r, "header_event");
	r->info.header_event = take_text(c, cursor_u64(c));
	if (c->bad)
		return reader_bad(r, "header_event");
	if (page_layout_parse(r->info.header_page.data, r->info.header_page.len, &r->info.layout))
		return reader_bad(r, "header_page");
	return 0;
}

static int take_event_formats(struct reader *r, const char *system, struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	struct reader_format *v;

	/* each takes at least its length */
	if (c->bad || n > cursor_left(c) / 8)
		return reader_bad(r, "the number of event formats");
	v = realloc(r->info.formats, (r->info.n_formats + n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->info.formats = v;
	for (uint32_t i = 0; i < n && !c->bad; i++) {
		uint64_t len = cursor_u64(c);

		v[r->info.n_formats++] = (struct reader_format){ system, take_text(c, len) };
	}
	return c->bad ? reader_bad(r, "an event format") : 0;
}

static int take_systems(struct reader *r, struct cursor *c)
{
	uint32_t n = cursor_u32(c);

	if (c->bad || n > cursor_left(c))
		return reader_bad(r, "the number of event systems");
	for (uint32_t i = 0; i < n; i++) {
		const char *system = cursor_str(c);
		int ret = system ? take_event_formats(r, system, c) : reader_bad(r, "an event system");

		if (ret)
			return ret;
	}
	return 0;
}

static int take_one(struct reader *r, struct cursor *c, struct dat_text *out, uint64_t len)
{
	*out = take_text(c, len);
	return c->bad ? reader_bad(r, "symbols or names") : 0;
}

int reader_part(struct reader *r, uint16_t id, struct cursor *c)
{
	switch (id) {
	case DAT_HEADER_INFO:
		return take_headers(r, c);
	case DAT_FTRACE_EVENTS:
		return take_event_formats(r, "ftrace", c);
	case DAT_EVENT_FORMATS:
		return take_systems(r, c);
	case DAT_KALLSYMS:
		return take_one(r, c, &r->info.kallsyms, cursor_u32(c));
	case DAT_PRINTK:
		return take_one(r, c, &r->info.printk, cursor_u32(c));
	default:
		return take_one(r, c, &r->info.cmdlines, cursor_u64(c));
	}
}

int reader_add_option(struct reader *r, uint16_t id, const void *data, size_t len)
{
	struct reader_option option = { id, { data, len } };

	return array_push(&r->info.options, &r->info.n_options, &option, sizeof(option));
}

struct reader_buffer *reader_add_buffer(struct reader *r, const char *name, const char *clock,
					uint32_t page_size, size_t n_cpus)
{
	struct reader_buffer *v = array_grow(r->info.buffers, r->info.n_buffers, sizeof(*v));

	if (!v)
		return NULL;
	r->info.buffers = v;
	v += r->info.n_buffers;
	*v = (struct reader_buffer){ .name = name, .clock = clock, .page_size = page_size };
	v->cpus = calloc(n_cpus ? n_cpus : 1, sizeof(*v->cpus));
	if (!v->cpus)
		return NULL;
	v->n_cpus = n_cpus;
	r->info.n_buffers++;
	return v;
}
