// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments: the fields of an event, and what is known of a time in the hypervisor. The table args,
 * EXTRACT_ARG. */
#include "ask/sql/sql-priv.h"

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

/* hex: an array, as its bytes in hexadecimal. */
static void sql_arg_text(struct sql_args *a, const char *key, const void *text, size_t n, bool hex)
{
	const uint8_t *data = text;
	struct sql_arg *v = sql_arg_of(a, key);

	if (!v)
		return;
	v->text = a->texts.len;
	for (size_t i = 0; i < n && hex; i++)
		buf_printf(&a->texts, "%02x", data[i]);
	if (!hex)
		buf_add(&a->texts, text, strnlen(text, n));
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
		else
			sql_arg_text(a, f->name, data, n, !(f->flags & TEP_FIELD_IS_STRING));
	}
}

/* From hyp_enter to its end, with the fields of the events that have reasons. */
static int sql_args_hyp(struct sql *s, size_t stream, uint64_t record, struct sql_args *a)
{
	size_t input = s->streams[stream].input;
	struct sql_span_maker k = { 0 };
	struct sql_span span = { 0 };
	const char *reason, *left;
	struct sql_scan *c;
	int ret = sql_hyp_open(s);

	if (ret || !s->streams[stream].hyp)
		return ret;
	for (ret = sql_record(s, stream, record, &c); ret == 1; ret = sql_scan_next(c)) {
		unsigned int id;

		sql_spans_feed(&k, c->t, &c->run, c->at - 1, c->at);
		if (sql_spans_next(s, &k, &span) || !k.visit.open)
			break;
		if (steps_kind(s->steps, input, timeline_id(c->m)) == STEP_HYP_OTHER)
			sql_arg_fields(a, timeline_event(c->t, c->m, &id)->event, c->m);
	}
	sql_span_last(s, &k, &span);
	reason = s->hyp->words[span.event ?: span.reason];
	left = s->hyp->words[span.left];
	if (reason)
		sql_arg_text(a, "hyp_enter_reason", reason, SIZE_MAX, false);
	if (left)
		sql_arg_text(a, "left_for", left, SIZE_MAX, false);
	if (span.vcpu)
		sql_arg_number(a, "vcpu", span.vcpu);
	return ret < 0 ? ret : 0;
}

/* Those of an event, or of a time in the hypervisor, by its id, in place of those before. */
static int sql_args_of(struct sql *s, int64_t id, struct sql_args *a)
{
	size_t stream = sql_id_stream(id);
	const struct known_event *k;
	struct sql_scan *c;
	unsigned int type;
	int ret;

	a->n = a->texts.len = 0;
	if (id < 0 || stream >= s->n_streams)
		return 0;
	if (sql_id_kind(id) == ID_HYP)
		return sql_args_hyp(s, stream, sql_id_record(id), a) ?: buf_status(&a->texts);
	if (sql_id_kind(id) != ID_EVENT)
		return 0;
	ret = sql_record(s, stream, sql_id_record(id), &c);
	k = ret == 1 ? timeline_event(c->t, c->m, &type) : NULL;
	if (k)
		sql_arg_fields(a, k->event, c->m);
	return ret < 0 ? ret : buf_status(&a->texts);
}

static struct cell sql_arg_cell(const struct sql_args *a, const struct sql_arg *v)
{
	return v->number ? sql_number(v->value)
			 : (struct cell){ .kind = CELL_COPY, .text = (const char *)a->texts.data + v->text };
}

/* EXTRACT_ARG(arg_set_id, key). A row asks for several of one set. */
static void sql_extract_arg(sqlite3_context *to, int n, sqlite3_value **v)
{
	struct sql *s = sqlite3_user_data(to);
	const char *key = (const char *)sqlite3_value_text(v[1]);
	int64_t id = sqlite3_value_int64(v[0]);
	int ret = 0;

	if (!key || sqlite3_value_type(v[0]) != SQLITE_INTEGER)
		return;
	if (s->args_id != id) {
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
			sql_cell_give(sql_arg_cell(&s->args, &s->args.v[i]), to);
}

int sql_functions_add(struct sql *s)
{
	return sqlite3_create_function_v2(s->db, "extract_arg", 2, SQLITE_UTF8 | SQLITE_INNOCUOUS, s,
					  sql_extract_arg, NULL, NULL, NULL);
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
	buf_release(&c->args.texts);
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

	if (what == ARG_SET)
		return sql_number(c->set);
	if (what == ARG_KEY)
		return sql_text(v->key);
	if (what == ARG_VALUE_TYPE)
		return sql_text(v->number ? "int" : "string");
	if (what == ARG_DISPLAY && v->number)
		return sql_number_text(cursor, v->value);
	if (what != ARG_DISPLAY && (what == ARG_INT) != v->number)
		return SQL_NOTHING;
	return sql_arg_cell(&c->args, v);
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
