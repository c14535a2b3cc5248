// SPDX-License-Identifier: LGPL-2.1-or-later
/* Shared by the libtraceevent plugins: fields of records, tables of events with a function or rows that print
 * each, warnings. */
#include "plugin.h"
#include "base/decode/mark-lines.h"
#include "base/field.h"

static size_t view_len(const struct view *v)
{
	return v->record->size > 0 ? (size_t)v->record->size : 0;
}

bool view_has(const struct view *v, const char *field)
{
	return field_is_number(tep_find_any_field(v->event, field));
}

uint64_t view_u64(struct view *v, const char *field)
{
	struct tep_format_field *f = tep_find_any_field(v->event, field);
	uint64_t value = 0;

	if (field_is_number(f) && !field_number(f, v->record->data, view_len(v), &value))
		v->bad = true;
	return value;
}

bool view_bytes(struct view *v, const char *field, const uint8_t **data, size_t *len)
{
	const struct tep_format_field *f = tep_find_any_field(v->event, field);
	int ret = field_bytes(f, v->record->data, view_len(v), data, len);

	if (ret < 0)
		v->bad = true;
	return ret;
}

bool view_text(struct view *v, const char *field, const char **text, size_t *len)
{
	const uint8_t *data;

	if (!view_bytes(v, field, &data, len))
		return false;
	*text = (const char *)data;
	*len = strnlen(*text, *len);
	while (*len && ((*text)[*len - 1] == '\n' || (*text)[*len - 1] == '\r'))
		(*len)--;
	return true;
}

bool mark_record(struct view *v, struct mark_event *e)
{
	const uint8_t *data;
	char name[16];
	size_t len;

	*e = (struct mark_event){ .has_cpu = view_has(v, "cpu"), .has_client = view_has(v, "client") };
	e->cpu = view_u64(v, "cpu");
	e->client = view_u64(v, "client");
	while (e->n_args < MARK_ARGS_MAX) {
		snprintf(name, sizeof(name), "arg%zu", e->n_args + 1);
		if (!view_has(v, name))
			break;
		e->arg[e->n_args++] = view_u64(v, name);
	}
	if (!e->n_args && view_bytes(v, "args", &data, &len))
		for (; len >= 8 && e->n_args < MARK_ARGS_MAX; data += 8, len -= 8)
			e->arg[e->n_args++] = tep_read_number(v->event->tep, data, 8);
	return e->n_args || v->bad;
}

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

/* Count of rows to print. */
static size_t rows_shown(const struct row_decoder *t)
{
	size_t n = 0;

	while (n < ROWS_MAX && t->rows[n].field && !(t->plain->set && t->rows[n].kind >= EVENT_TEXT_TASK))
		n++;
	return n;
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
		for (size_t i = 0; i < rows_shown(context); i++)
			put_row(s, &v, &((const struct row_decoder *)context)->rows[i]);
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
	*rows = ((const struct row_decoder *)d)->rows;
	*n = rows_shown((const struct row_decoder *)d);
	return EVENT_TEXT_ROWS;
}

const struct decoder *decoder_find(const struct decoder *v, size_t n, size_t size, const char *event)
{
	for (; n--; v = (const struct decoder *)((const char *)v + size))
		if (!strcmp(v->event, event))
			return v;
	return NULL;
}

void decoders_change(handler_change *change, struct tep_handle *tep, const char *sys, const struct decoder *v,
		     size_t n)
{
	for (size_t i = 0; i < n; i++)
		change(tep, -1, sys, v[i].event, decode, (void *)&v[i]);
}

void plugin_warn(const char *plugin, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "hyptrace %s: ", plugin);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}
