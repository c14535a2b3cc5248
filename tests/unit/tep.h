/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEST_TEP_H
#define HYPTRACE_TEST_TEP_H

/* libtraceevent as the judge of what we write. Include after cmocka.h. */
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "record/hyp/hypevents.h"

static inline struct tep_handle *judge_new(const struct hypevents *e)
{
	struct tep_handle *tep = tep_alloc();

	assert_non_null(tep);
	tep_set_long_size(tep, 8);
	tep_set_page_size(tep, 4096);
	for (size_t i = 0; i <= e->n; i++) {
		struct buf text = { 0 };
		struct tep_event *event;

		hypevents_format(e, i, &text);
		assert_int_equal(buf_status(&text), 0);
		assert_int_equal(tep_parse_event(tep, buf_str(&text), text.len, e->system), 0);
		event = tep_find_event(tep, i < e->n ? (int)e->v[i].id : (int)e->unknown_id);
		assert_non_null(event);
		if (event->flags & TEP_EVENT_FL_FAILED)
			fail_msg("libtraceevent cannot parse:\n%s", buf_str(&text));
		buf_release(&text);
	}
	return tep;
}

/* What trace-cmd report would print of a record, behind the event's name. */
static inline void judge_print(struct tep_handle *tep, const void *data, size_t len, char *out, size_t size)
{
	struct tep_record rec = { .data = (void *)data, .size = (int)len };
	struct trace_seq s;

	trace_seq_init(&s);
	tep_print_event(tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	assert_true(s.len < size);
	memcpy(out, s.buffer, s.len + 1);
	trace_seq_destroy(&s);
	assert_null(strstr(out, "FAILED"));
}

#endif
