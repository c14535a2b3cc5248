// SPDX-License-Identifier: LGPL-2.1-or-later
/* Columns of our captures against their records and fields one by one. */
#include "captures.h"

#include "read/columns.h"

/* ---- columns ------------------------------------------------------------------------- */

static const char *const fields[] = { "common_pid", "common_type", "prev_comm", "vcpu",	    "reason", "buf",
				      "caller",	    "name",	   "parent_ip", "next_pid", "no_such" };

static void check_value(const struct columns_rows *rows, size_t f, size_t i)
{
	const struct merge_record *m = rows->records[i];
	const struct tep_format_field *field =
		tep_find_any_field((struct tep_event *)rows->of->event, fields[f]);
	const struct field_load *l = &rows->of->fields[f];
	const uint8_t *data;
	uint64_t v;
	size_t n;

	if (!field) {
		assert_int_equal(l->kind, FIELD_NONE);
	} else if (field_is_number(field)) {
		assert_int_equal(l->kind, FIELD_NUMBER);
		field_number(field, m->data, m->len, &v);
		assert_int_equal(rows->fields[f].numbers[i], v);
	} else {
		field_bytes(field, m->data, m->len, &data, &n);
		assert_int_equal(rows->fields[f].bytes[i].len, n);
		assert_memory_equal(rows->fields[f].bytes[i].data, data, n);
	}
}

/* Its records are those of the event in the run, in their order. */
static size_t check_rows(const struct opened *o, const struct merge_run *run, const struct columns_rows *rows)
{
	const struct merge_record *m = run->v;

	for (size_t i = 0; i < rows->n; i++, m++) {
		while (timeline_stream(o->t, m)->input != rows->of->input || m->len < 2 ||
		       (int)timeline_id(m) != rows->of->event->id)
			m++;
		assert_ptr_equal(rows->records[i], m);
		assert_int_equal(rows->ts[i], m->ts);
		for (size_t f = 0; f < ARRAY_SIZE(fields); f++)
			check_value(rows, f, i);
	}
	return rows->n;
}

static size_t count_known(const struct opened *o, const struct merge_run *run)
{
	unsigned int id;
	size_t n = 0;

	for (size_t i = 0; i < run->n; i++)
		n += !!timeline_event(o->t, &run->v[i], &id);
	return n;
}

static void test_columns(void **state)
{
	const struct columns_want want = { .fields = fields, .n_fields = ARRAY_SIZE(fields) };
	struct columns_batch b = { 0 };
	struct merge_run run = { 0 };
	struct columns *c;
	struct opened o;
	size_t seen = 0;

	open_captures(&o, 0, ARRAY_SIZE(captures));
	assert_int_equal(columns_open(&c, &o.in, &want, 1), 0);
	while (timeline_take(o.t, &run) == 1) {
		size_t n = 0;

		assert_int_equal(columns_fill(c, o.t, &run, &b), 0);
		for (size_t i = 0; i < b.n; i++)
			n += check_rows(&o, &run, &b.v[i]);
		assert_int_equal(n, count_known(&o, &run));
		seen += n;
	}
	assert_true(seen > 30000);
	merge_run_release(&run);
	columns_batch_release(&b);
	columns_close(c);
	close_captures(&o);
}

/* Only what is wanted, by the first who wants it; other fields of each. */
static void test_wants(void **state)
{
	static const char *const next[] = { "next_pid", "next_comm" }, *const vcpu[] = { "vcpu" };
	static const struct columns_want wants[] = {
		{ "sched", "sched_switch", next, 2 },
		{ NULL, "hyp_exit", vcpu, 1 },
		{ "sched", NULL, NULL, 0 },
		{ "nothing", NULL, vcpu, 1 },
	};
	const struct columns_event *events;
	struct columns *c;
	struct opened o;
	size_t n, of[ARRAY_SIZE(wants)] = { 0 };

	open_captures(&o, 0, 1);
	assert_int_equal(columns_open(&c, &o.in, wants, ARRAY_SIZE(wants)), 0);
	events = columns_events(c, &n);
	for (size_t i = 0; i < n; i++) {
		of[events[i].want]++;
		assert_int_equal(events[i].n_fields, wants[events[i].want].n_fields);
		if (events[i].want != 1)
			assert_string_equal(events[i].event->system, "sched");
		if (events[i].want == 0)
			assert_int_equal(events[i].fields[1].kind, FIELD_BYTES);
	}
	assert_int_equal(of[0], 1);
	assert_int_equal(of[1], 1);
	assert_true(of[2] >= 1);
	assert_int_equal(of[3], 0);
	columns_close(c);
	close_captures(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
