// SPDX-License-Identifier: LGPL-2.1-or-later
/* A format file of any content: what we make of it is one again, and libtraceevent likes it. */
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "record/hyp/hypevents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static int drop(void *ctx, const struct hyprecord *r)
{
	must(r->len >= HYP_HEADER_SIZE && r->len <= 4064);
	return 0;
}

static void judge(const struct hypevents *e, unsigned int id, struct buf *text)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event;

	tep_set_long_size(tep, 8);
	must(!tep_parse_event(tep, buf_str(text), text->len, e->system));
	event = tep_find_event(tep, (int)id);
	must(event && !(event->flags & TEP_EVENT_FL_FAILED));
	tep_free(tep);
}

static void rewrite(const struct hypevents *e)
{
	tep_set_loglevel(TEP_LOG_NONE);
	for (size_t i = 0; i <= e->n; i++) {
		struct event_format f;
		struct buf text = { 0 };

		hypevents_format(e, i, &text);
		must(!buf_status(&text));
		must(!event_format_parse((char *)text.data, text.len, &f));
		must(f.n_common == 4 && f.id == (i < e->n ? e->v[i].id : e->unknown_id));
		judge(e, f.id, &text);
		event_format_release(&f);
		buf_release(&text);
	}
}

/* The end of the input is also a line of the event's text. */
static void transcode(struct hypevents *e, const uint8_t *data, size_t size)
{
	struct hyptext *t = hyptext_new(e);
	struct buf line = { 0 };
	size_t n = size < 64 ? size : 64;

	buf_printf(&line, "[000]\t    1.000000: %s ", e->v[0].fmt.name);
	buf_add(&line, data + size - n, n);
	buf_addstr(&line, "\n");
	must(t && !hyptext_feed(t, line.data, line.len, drop, NULL));
	hyptext_free(t);
	buf_release(&line);
}

static void use(const uint8_t *data, size_t size, bool raw)
{
	struct hypevents e;

	must(!hypevents_init(&e, "hypervisor"));
	e.raw = raw;
	if (!hypevents_add(&e, (const char *)data, size)) {
		must(!hypevents_number(&e, 100));
		if (!raw)
			transcode(&e, data, size);
		rewrite(&e);
	}
	hypevents_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_format f;

	if (!event_format_parse((const char *)data, size, &f))
		must(f.name && f.print_fmt && !event_format_field(&f, "no such field"));
	event_format_release(&f);
	use(data, size, false);
	use(data, size, true);
	return 0;
}
