// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments: the fields of an event, and what is known of a time in the hypervisor. The table args,
 * EXTRACT_ARG. */
#include "ask/sql/sql-priv.h"

/* As in Perfetto a later one replaces an earlier one of the same name. */
static void sql_arg_add(struct sql_args *a, const char *key, struct cell value)
{
	struct sql_arg *v = a->v;

	while (v < a->v + a->n && strcmp(v->key, key) != 0)
		v++;
	if (v == a->v + SQL_ARGS)
		return;
	a->n += v == a->v + a->n;
	*v = (struct sql_arg){ key, value };
}

char *sql_hex(struct arena *to, const uint8_t *data, size_t n)
{
	char *text = arena_alloc(to, 2 * n + 1);

	for (size_t i = 0; i < n && text; i++)
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	return text;
}

/* A string, or another array as its bytes in hexadecimal. */
static struct cell sql_arg_bytes(struct sql_args *a, const uint8_t *data, size_t n, bool string)
{
	char *text;

	n = string ? strnlen((const char *)data, n) : n;
	text = string ? arena_alloc(&a->texts, n + 1) : sql_hex(&a->texts, data, n);
	if (string && text)
		memcpy(text, data, n);
	return (struct cell){ .kind = CELL_COPY, .text = text };
}

static void sql_arg_fields(struct sql_args *a, const struct tep_event *e, const struct merge_record *m)
{
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		struct field_load l = field_load(f);
		const uint8_t *data;
		uint64_t number;
		size_t n;

		if (l.kind == FIELD_NUMBER && field_load_number(&l, m->data, m->len, &number))
			sql_arg_add(a, f->name, sql_number((int64_t)number));
		else if (field_load_bytes(&l, m->data, m->len, &data, &n) == 1)
			sql_arg_add(a, f->name, sql_arg_bytes(a, data, n, f->flags & TEP_FIELD_IS_STRING));
	}
}

int sql_span_read(struct sql *s, size_t stream, uint64_t record, struct sql_span *out, struct sql_args *args)
{
	struct sql_span_maker k = { 0 };
	bool found = false;
	struct sql_scan *c;
	unsigned int id;
	int ret;

	if (!s->streams[stream].hyp)
		return 0;
	for (ret = sql_record(s, stream, record, &c); ret == 1; ret = sql_scan_next(c)) {
		sql_spans_feed(&k, c->t, &c->run, c->at - 1, c->at);
		found = sql_spans_next(s, &k, out);
		if (found || !k.visit.open)
			break;
		if (args && steps_kind(s->steps, k.input, timeline_id(c->m)) == STEP_HYP_OTHER)
			sql_arg_fields(args, timeline_event(c->t, c->m, &id)->event, c->m);
	}
	return ret < 0 ? ret : found || sql_span_last(s, &k, out);
}

/* Of a visit: what is known of it, with the fields of the events that have reasons. */
static int sql_args_hyp(struct sql *s, size_t stream, uint64_t record, struct sql_args *a)
{
	struct sql_span span = { 0 };
	int ret = sql_hyp_open(s) ?: sql_span_read(s, stream, record, &span, a);
	const char *reason, *left;

	if (ret != 1)
		return ret;
	reason = s->hyp->words[span.event ?: span.reason];
	left = s->hyp->words[span.left];
	if (reason)
		sql_arg_add(a, "hyp_enter_reason", sql_text(reason));
	if (left)
		sql_arg_add(a, "left_for", sql_text(left));
	if (span.vcpu)
		sql_arg_add(a, "vcpu", sql_number(span.vcpu));
	return 0;
}

/* Those of an event, or of a time in the hypervisor, by its id, in place of those before. */
static int sql_args_of(struct sql *s, int64_t id, struct sql_args *a)
{
	size_t stream = sql_id_stream(id);
	const struct known_event *k;
	struct sql_scan *c;
	unsigned int type;
	int ret = 0;

	a->n = 0;
	arena_reset(&a->texts);
	if (id < 0 || stream >= s->n_streams)
		return 0;
	if (sql_id_kind(id) == ID_HYP) {
		ret = sql_args_hyp(s, stream, sql_id_record(id), a);
	} else if (sql_id_kind(id) == ID_EVENT) {
		ret = sql_record(s, stream, sql_id_record(id), &c);
		k = ret == 1 ? timeline_event(c->t, c->m, &type) : NULL;
		if (k)
			sql_arg_fields(a, k->event, c->m);
	}
	return ret < 0 ? ret : a->texts.bad ? -ENOMEM : 0;
}

void sql_extract_arg(sqlite3_context *to, int n, sqlite3_value **v)
{
	struct sql *s = sqlite3_user_data(to);
	const char *key = (const char *)sqlite3_value_text(v[1]);
	int64_t id = sqlite3_value_int64(v[0]);
	int ret = 0;

	if (!key || sqlite3_value_type(v[0]) != SQLITE_INTEGER)
		return;
	if (s->args_id != id) { /* a row asks for several of one set */
		s->args_id = -1;
		ret = sql_args_of(s, id, &s->args);
	}
	if (ret == -ENOMEM)
		sqlite3_result_error_nomem(to);
	else if (ret)
		sqlite3_result_error(to, errno_text(ret), -1);
	if (ret)
		return;
	s->args_id = id;
	for (size_t i = 0; i < s->args.n; i++)
		if (!strcmp(s->args.v[i].key, key))
			sql_cell_give(s->args.v[i].value, to);
}

enum { ARG_SET, ARG_KEY, ARG_INT, ARG_STRING, ARG_VALUE_TYPE, ARG_DISPLAY };

static const struct sql_column sql_arg_columns[] = {
	{ "arg_set_id", "INTEGER", KEY_ID, ARG_SET },
	{ "key", "TEXT", KEY_NONE, ARG_KEY },
	{ "flat_key", "TEXT", KEY_NONE, ARG_KEY },
	{ "int_value", "INTEGER", KEY_NONE, ARG_INT },
	{ "string_value", "TEXT", KEY_NONE, ARG_STRING },
	{ "value_type", "TEXT", KEY_NONE, ARG_VALUE_TYPE },
	{ "display_value", "TEXT", KEY_NONE, ARG_DISPLAY },
};

struct sql_arg_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	struct sql_args args;
	int64_t set;
	size_t i; /* in args: the row */
	bool one, hyp;
};

static void sql_arg_close(struct sql_cursor *cursor)
{
	struct sql_arg_cursor *c = (struct sql_arg_cursor *)cursor;

	sql_scan_close(&c->scan);
	arena_release(&c->args.texts);
}

static int sql_arg_filter(struct sql_cursor *cursor)
{
	struct sql_arg_cursor *c = (struct sql_arg_cursor *)cursor;

	c->i = SIZE_MAX; /* in front of the first */
	c->one = cursor->want.id.from == cursor->want.id.to;
	c->set = cursor->want.id.from;
	return c->one ? sql_args_of(cursor->sql, c->set, &c->args)
		      : sql_scan_open(&c->scan, cursor->sql, NULL, PART_ALL);
}

/* The sets of all events, and then those of times in the hypervisor. */
static int sql_arg_next(struct sql_cursor *cursor)
{
	struct sql_arg_cursor *c = (struct sql_arg_cursor *)cursor;
	struct sql *s = cursor->sql;

	while (++c->i >= c->args.n) {
		int ret = c->one ? 0 : sql_scan_next(&c->scan);
		size_t stream;

		if (!ret && !c->one && !c->hyp) {
			c->hyp = true;
			sql_scan_close(&c->scan);
			ret = sql_hyp_open(s) ?: sql_scan_open(&c->scan, s, NULL, PART_HYP) ?: sql_scan_next(&c->scan);
		}
		if (ret != 1)
			return ret;
		stream = c->scan.stream;
		c->i = SIZE_MAX;
		c->args.n = 0;
		c->set = sql_id(c->hyp ? ID_HYP : ID_EVENT, stream, sql_scan_record(&c->scan));
		if (!c->hyp ||
		    steps_kind(s->steps, s->streams[stream].input, timeline_id(c->scan.m)) == STEP_HYP_ENTER)
			ret = sql_args_of(s, c->set, &c->args);
		if (ret < 0)
			return ret;
	}
	return 1;
}

static struct cell sql_arg_column(struct sql_cursor *cursor, int i)
{
	const struct sql_arg_cursor *c = (const struct sql_arg_cursor *)cursor;
	const struct sql_arg *v = &c->args.v[c->i];
	int what = cursor->table->columns[i].what;
	bool number = v->value.kind == CELL_NUMBER;

	if (what == ARG_SET)
		return sql_number(c->set);
	if (what == ARG_KEY)
		return sql_text(v->key);
	if (what == ARG_VALUE_TYPE)
		return sql_text(number ? "int" : "string");
	if (what == ARG_DISPLAY && number)
		return sql_number_text(cursor, v->value.number);
	return what != ARG_DISPLAY && (what == ARG_INT) != number ? SQL_NOTHING : v->value;
}

static int64_t sql_arg_row(const struct sql_cursor *cursor)
{
	const struct sql_arg_cursor *c = (const struct sql_arg_cursor *)cursor;

	return c->set * SQL_ARGS + (int64_t)c->i;
}

const struct sql_table sql_args_table = {
	SQL_TABLE("args", sql_arg_columns, arg),
	.column = sql_arg_column,
	.sets = true,
	.bytes = 10,
	.patience = 2,
	.number = sql_arg_row,
};
