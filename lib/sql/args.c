// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments: the fields of an event, and what is known of a time in the hypervisor. The table args,
 * EXTRACT_ARG. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sql/sql-priv.h"

/* ---- sets ---------------------------------------------------------------------------------------- */

static struct sql_arg *sql_arg_of(struct sql_args *a, const char *key)
{
	struct sql_arg *v = a->v;

	/* as in Perfetto a later one replaces an earlier one of the same name */
	while (v < a->v + a->n && strcmp(v->key, key) != 0)
		v++;
	if (v == a->v + SQL_ARGS)
		return NULL;
	if (v == a->v + a->n)
		a->n++;
	*v = (struct sql_arg){ .key = key };
	return v;
}

static void sql_arg_number(struct sql_args *a, const char *key, int64_t value)
{
	struct sql_arg *v = sql_arg_of(a, key);

	if (!v)
		return;
	v->number = true;
	v->value = value;
}

static void sql_arg_text(struct sql_args *a, const char *key, const void *text, size_t n)
{
	struct sql_arg *v = sql_arg_of(a, key);

	if (!v)
		return;
	v->text = a->texts.len;
	buf_add(&a->texts, text, strnlen(text, n));
	buf_add(&a->texts, "", 1);
}

/* An array: its bytes in hexadecimal. */
static void sql_arg_bytes(struct sql_args *a, const char *key, const uint8_t *data, size_t n)
{
	struct sql_arg *v = sql_arg_of(a, key);

	if (!v)
		return;
	v->text = a->texts.len;
	for (size_t i = 0; i < n; i++)
		buf_printf(&a->texts, "%02x", data[i]);
	buf_add(&a->texts, "", 1);
}

static void sql_arg_fields(struct sql_args *a, const struct tep_event *e, const struct merge_record *m)
{
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		struct field_load l = field_load(f);
		const uint8_t *data;
		uint64_t number;
		size_t n;

		if (l.kind == FIELD_NUMBER && field_load_number(&l, m->data, m->len, &number))
			sql_arg_number(a, f->name, (int64_t)number);
		else if (field_load_bytes(&l, m->data, m->len, &data, &n) != 1)
			continue;
		else if (f->flags & TEP_FIELD_IS_STRING)
			sql_arg_text(a, f->name, data, n);
		else
			sql_arg_bytes(a, f->name, data, n);
	}
}

static void sql_args_of_span(struct sql *s, struct sql_args *a, const struct sql_span *span)
{
	const char *reason = s->hyp->words[span->reason], *left = s->hyp->words[span->left];

	if (reason)
		sql_arg_text(a, "hyp_enter_reason", reason, SIZE_MAX);
	if (left)
		sql_arg_text(a, "left_for", left, SIZE_MAX);
	if (span->vcpu)
		sql_arg_number(a, "vcpu", span->vcpu);
}

/* From hyp_enter to what ends it, with the fields of the events that tell reasons. */
static int sql_args_hyp(struct sql *s, size_t stream, uint64_t record, struct sql_args *a)
{
	size_t input = s->streams[stream].input;
	struct sql_span_maker k = { .record = record };
	struct sql_span span = { 0 };
	int ret = sql_hyp_open(s);

	if (ret || !s->streams[stream].hyp)
		return ret;
	do {
		const struct merge_record *m;
		const struct timeline *t;
		const struct sql_hyp_event *e;
		unsigned int id;

		ret = sql_record(s, stream, k.record, &m, &t);
		if (ret != 1 || sql_span_make(s, input, &k, m, &span))
			break;
		e = k.open ? sql_hyp_event(s, input, m) : NULL;
		if (e && e->role == SPAN_TELLS)
			sql_arg_fields(a, timeline_event(t, m, &id)->event, m);
	} while (k.open);
	sql_span_last(&k, &span);
	sql_args_of_span(s, a, &span);
	return ret < 0 ? ret : 0;
}

int sql_args_of(struct sql *s, int64_t id, struct sql_args *a)
{
	size_t stream = sql_id_stream(id);
	const struct merge_record *m;
	const struct timeline *t;
	const struct known_event *k;
	unsigned int type;
	int ret;

	a->n = a->texts.len = 0;
	if (id < 0 || stream >= s->n_streams)
		return 0;
	if (sql_id_kind(id) == ID_HYP)
		return sql_args_hyp(s, stream, sql_id_record(id), a) ?: buf_status(&a->texts);
	if (sql_id_kind(id) != ID_EVENT)
		return 0;
	ret = sql_record(s, stream, sql_id_record(id), &m, &t);
	k = ret == 1 && m->data ? timeline_event(t, m, &type) : NULL;
	if (k)
		sql_arg_fields(a, k->event, m);
	return ret < 0 ? ret : buf_status(&a->texts);
}

/* ---- EXTRACT_ARG ----------------------------------------------------------------------------------- */

static void sql_arg_give(const struct sql_args *a, const struct sql_arg *v, sqlite3_context *to)
{
	if (v->number)
		sqlite3_result_int64(to, v->value);
	else
		sqlite3_result_text(to, (const char *)a->texts.data + v->text, -1, SQLITE_TRANSIENT);
}

/* EXTRACT_ARG(arg_set_id, key) */
static void sql_extract_arg(sqlite3_context *to, int n, sqlite3_value **v)
{
	struct sql *s = sqlite3_user_data(to);
	const char *key = (const char *)sqlite3_value_text(v[1]);
	struct sql_args a = { 0 };
	int ret = 0;

	if (key && sqlite3_value_type(v[0]) == SQLITE_INTEGER)
		ret = sql_args_of(s, sqlite3_value_int64(v[0]), &a);
	if (ret == -ENOMEM)
		sqlite3_result_error_nomem(to);
	else if (ret)
		sqlite3_result_error(to, errno_text(ret), -1);
	for (size_t i = 0; !ret && i < a.n; i++)
		if (!strcmp(a.v[i].key, key))
			sql_arg_give(&a, &a.v[i], to);
	buf_release(&a.texts);
}

int sql_functions_add(struct sql *s)
{
	return sqlite3_create_function_v2(s->db, "extract_arg", 2, SQLITE_UTF8 | SQLITE_INNOCUOUS, s,
					  sql_extract_arg, NULL, NULL, NULL);
}

/* ---- the table --------------------------------------------------------------------------------------- */

enum { ARG_SET, ARG_KEY, ARG_FLAT_KEY, ARG_INT, ARG_STRING, ARG_VALUE_TYPE, ARG_DISPLAY };

static const struct sql_column sql_arg_columns[] = {
	[ARG_SET] = { "arg_set_id", "INTEGER", KEY_ID },
	[ARG_KEY] = { "key", "TEXT", KEY_NONE },
	[ARG_FLAT_KEY] = { "flat_key", "TEXT", KEY_NONE },
	[ARG_INT] = { "int_value", "INTEGER", KEY_NONE },
	[ARG_STRING] = { "string_value", "TEXT", KEY_NONE },
	[ARG_VALUE_TYPE] = { "value_type", "TEXT", KEY_NONE },
	[ARG_DISPLAY] = { "display_value", "TEXT", KEY_NONE },
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

	if (c->scan.t)
		sql_scan_close(&c->scan);
	buf_release(&c->args.texts);
	c->args.n = 0;
}

static int sql_arg_filter(struct sql_cursor *cursor)
{
	struct sql_arg_cursor *c = (struct sql_arg_cursor *)cursor;

	sql_arg_close(cursor);
	c->hyp = false;
	c->i = SIZE_MAX; /* in front of the first */
	c->one = cursor->want.id.from == cursor->want.id.to;
	c->set = cursor->want.id.from;
	return c->one ? sql_args_of(cursor->sql, c->set, &c->args)
		      : sql_scan_open(&c->scan, cursor->sql, NULL, PART_ALL);
}

/* The next record's set: those of all events, and then those of times in the hypervisor. */
static int sql_arg_next_set(struct sql_arg_cursor *c)
{
	struct sql *s = c->c.sql;
	int ret = sql_scan_next(&c->scan);

	if (!ret && !c->hyp) {
		c->hyp = true;
		sql_scan_close(&c->scan);
		ret = sql_hyp_open(s) ?: sql_scan_open(&c->scan, s, NULL, PART_HYP) ?: sql_scan_next(&c->scan);
	}
	if (ret != 1)
		return ret;
	c->i = SIZE_MAX;
	c->args.n = 0;
	c->set = sql_id(c->hyp ? ID_HYP : ID_EVENT, c->scan.stream, c->scan.record);
	if (c->hyp) {
		const struct sql_hyp_event *e = sql_hyp_event(s, s->streams[c->scan.stream].input, c->scan.m);

		if (!e || e->role != SPAN_ENTER)
			return 1;
	}
	ret = sql_args_of(s, c->set, &c->args);
	return ret ? ret : 1;
}

static int sql_arg_next(struct sql_cursor *cursor)
{
	struct sql_arg_cursor *c = (struct sql_arg_cursor *)cursor;

	while (++c->i >= c->args.n) {
		int ret = c->one ? 0 : sql_arg_next_set(c);

		if (ret != 1)
			return ret;
	}
	return 1;
}

static void sql_arg_column(struct sql_cursor *cursor, sqlite3_context *to, int i)
{
	const struct sql_arg_cursor *c = (const struct sql_arg_cursor *)cursor;
	const struct sql_arg *v = &c->args.v[c->i];

	if (i == ARG_SET)
		sqlite3_result_int64(to, c->set);
	else if (i == ARG_KEY || i == ARG_FLAT_KEY)
		sqlite3_result_text(to, v->key, -1, SQLITE_STATIC);
	else if (i == ARG_VALUE_TYPE)
		sqlite3_result_text(to, v->number ? "int" : "string", -1, SQLITE_STATIC);
	else if (i == ARG_DISPLAY && v->number)
		sqlite3_result_text(to, sqlite3_mprintf("%lld", v->value), -1, sqlite3_free);
	else if (i == ARG_DISPLAY || (i == ARG_INT) == v->number)
		sql_arg_give(&c->args, v, to);
}

const struct sql_table sql_args_table = {
	.name = "args",
	.columns = sql_arg_columns,
	.n = ARRAY_SIZE(sql_arg_columns),
	.bytes = 10,
	.size = sizeof(struct sql_arg_cursor),
	.filter = sql_arg_filter,
	.next = sql_arg_next,
	.column = sql_arg_column,
	.close = sql_arg_close,
};
