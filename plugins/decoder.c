// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tables of events, for the libtraceevent plugins: a function or rows that print each. */
#include <inttypes.h>
#include <string.h>

#include "plugin.h"

/* ---- names ------------------------------------------------------------------------- */

void view_put_task(struct trace_seq *s, struct view *v, const char *field)
{
	int pid = (int)view_s64(v, field);
	const char *comm = pid > 0 ? tep_data_comm_from_pid(v->event->tep, pid) : NULL;

	if (comm && strcmp(comm, "<...>") != 0)
		trace_seq_printf(s, " (%s)", comm);
}

void view_put_function(struct trace_seq *s, struct view *v, const char *pc)
{
	unsigned long long at = view_u64(v, pc), start = at;
	const char *func = NULL;

	if (tep_plugin_kvm_get_func)
		func = tep_plugin_kvm_get_func(v->event, (struct tep_record *)v->record, &start);
	if (!func)
		return;
	trace_seq_printf(s, " (%s", func);
	if (at != start)
		trace_seq_printf(s, "+0x%llx", at - start);
	trace_seq_puts(s, ")");
	if (tep_plugin_kvm_put_func)
		tep_plugin_kvm_put_func(func);
}

/* ---- events -------------------------------------------------------------------- */

static void put_row(struct trace_seq *s, struct view *v, const struct event_text *row)
{
	uint64_t value = view_u64(v, row->field);
	const char *name;

	value = row->bits == 32 ? (uint32_t)value : value;
	trace_seq_puts(s, row->before);
	switch (row->kind) {
	case EVENT_TEXT_HEX:
		trace_seq_printf(s, "%0*" PRIx64, row->digits, value);
		break;
	case EVENT_TEXT_SIGNED:
		trace_seq_printf(s, "%d", (int)value);
		break;
	case EVENT_TEXT_NAME:
	case EVENT_TEXT_HEX_NAME:
		name = row->name(v->event, value);
		if (name)
			trace_seq_puts(s, name);
		else
			trace_seq_printf(s, row->kind == EVENT_TEXT_NAME ? "%" PRIu64 : "0x%" PRIx64, value);
		break;
	case EVENT_TEXT_TASK:
		view_put_task(s, v, row->field);
		break;
	case EVENT_TEXT_FUNCTION:
		view_put_function(s, v, row->field);
		break;
	}
}

/* How many rows are to be printed. */
static size_t told_rows(const struct told *t)
{
	size_t n = 0;

	while (n < ROWS_MAX && t->rows[n].field && !(t->plain->set && t->rows[n].kind >= EVENT_TEXT_TASK))
		n++;
	return n;
}

static void told_print(struct trace_seq *s, struct view *v, const struct told *t)
{
	for (size_t i = 0; i < told_rows(t); i++)
		put_row(s, v, &t->rows[i]);
}

int decode(struct trace_seq *s, struct tep_record *record, struct tep_event *event, void *context)
{
	const struct decoder *d = context;
	struct view v = { event, record, false };

	for (size_t i = 0; i < NEEDS_MAX && d->needs[i]; i++) {
		if (!view_has(&v, d->needs[i]))
			return -1;
		view_u64(&v, d->needs[i]);
	}
	if (v.bad)
		trace_seq_puts(s, "[record too short]");
	else if (d->print)
		d->print(s, &v);
	else
		told_print(s, &v, context);
	return 0;
}

enum event_text_answer decoder_text(const struct decoder *d, const struct tep_event *event,
				    const struct event_text **rows, size_t *n)
{
	const struct view v = { (struct tep_event *)event, NULL, false };

	if (!d)
		return EVENT_TEXT_ALONE;
	for (size_t i = 0; i < NEEDS_MAX && d->needs[i]; i++)
		if (!view_has(&v, d->needs[i]))
			return EVENT_TEXT_LEAVE;
	if (d->print)
		return EVENT_TEXT_CALL;
	*rows = ((const struct told *)d)->rows;
	*n = told_rows((const struct told *)d);
	return EVENT_TEXT_ROWS;
}

const struct decoder *decoder_find(const struct decoder *v, size_t n, size_t size, const char *event)
{
	for (; n--; v = (const struct decoder *)((const char *)v + size))
		if (!strcmp(v->event, event))
			return v;
	return NULL;
}

void decoders_register(struct tep_handle *tep, const char *sys, const struct decoder *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tep_register_event_handler(tep, -1, sys, v[i].event, decode, (void *)&v[i]);
}

void decoders_unregister(struct tep_handle *tep, const char *sys, const struct decoder *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tep_unregister_event_handler(tep, -1, sys, v[i].event, decode, (void *)&v[i]);
}
