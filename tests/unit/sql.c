// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries: what is pushed down changes how much is read, and no answer; what statements may do. */
#include "captures.h"

#include "sql/sql-priv.h"

/* ---- queries ---------------------------------------------------------------------------- */

static int buf_begin(void *ctx, const char *const *names, size_t n)
{
	return 0;
}

/* "1|2.5|text|" */
static int buf_row(void *ctx, const struct sql_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].kind == SQL_INTEGER)
			buf_add_i64(ctx, v[i].integer);
		else if (v[i].kind == SQL_REAL)
			buf_printf(ctx, "%.9g", v[i].real);
		else if (v[i].kind == SQL_TEXT)
			buf_addstr(ctx, v[i].text);
		buf_addstr(ctx, "|");
	}
	buf_addstr(ctx, "\n");
	return 0;
}

static int buf_end(void *ctx)
{
	return 0;
}

static const struct sql_sink buf_sink = { buf_begin, buf_row, buf_end };

/* What a query gives, by the caller to be freed. */
static char *answer(struct sql *s, const char *query)
{
	char why[SQL_WHY_MAX];
	struct buf out = { 0 };
	int ret = sql_run(s, query, &buf_sink, &out, why);

	if (ret)
		fail_msg("%s: %d: %s", query, ret, why);
	assert_non_null(buf_str(&out));
	return (char *)out.data ? (char *)out.data : strdup("");
}

static void expect_answer(struct sql *s, const char *query, const char *expected)
{
	char *got = answer(s, query);

	if (strcmp(got, expected) != 0)
		fail_msg("%s:\n%s, not\n%s", query, got, expected);
	free(got);
}

static void expect_same(struct sql *s, const char *query, const char *other)
{
	char *got = answer(s, other);

	expect_answer(s, query, got);
	free(got);
}

static struct sql *open_all(struct opened *o)
{
	struct sql *s;

	open_captures(o, 0, ARRAY_SIZE(captures));
	assert_int_equal(sql_open(&s, &o->in, NULL), 0);
	return s;
}

static void close_all(struct opened *o, struct sql *s)
{
	sql_close(s);
	close_captures(o);
}

/* ---- the same answers --------------------------------------------------------------------- */

static const char *const tables[][5] = {
	/* table, columns that are pushed down */
	{ "events", "ts", "cpu", "name", "machine" },
	{ "hyp_calls", "ts", "cpu", "dur", "machine" },
	{ "pkvm_hypervisor_events", "ts", "cpu", "dur", "slice_id" },
	{ "slices", "ts", "cpu", "dur", "id" },
	{ "lost", "ts", "cpu", "machine", NULL },
	{ "kvm_exits", "machine", NULL, NULL, NULL },
};

/* Behind the CAST it is SQLite alone that tests. */
static void check_condition(struct sql *s, const char *table, const char *column, const char *rest)
{
	bool text = !strcmp(column, "name") || !strcmp(column, "machine");
	char *pushed = str_printf("SELECT count(*), sum(ts) FROM %s WHERE %s %s", table, column, rest);
	char *plain = str_printf("SELECT count(*), sum(ts) FROM %s WHERE CAST(%s AS %s) %s", table, column,
				 text ? "TEXT" : "INTEGER", rest);

	expect_same(s, pushed, plain);
	free(pushed);
	free(plain);
}

/* Values of each column's own, and others. */
static void check_column(struct sql *s, const char *table, const char *column)
{
	static const char *const ops[] = { "=", "<", ">", "<=", ">=", "IS", "<>" };
	static const char *const odd[] = { "NULL", "'abc'", "x'00'", "1e300", "-1", "9223372036854775807",
					   "1.5" };
	char *query =
		str_printf("SELECT %s FROM %s WHERE %s IS NOT NULL LIMIT 1 OFFSET 20", column, table, column);
	char *value = answer(s, query), rest[128];

	free(query);
	value[strcspn(value, "|")] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		snprintf(rest, sizeof(rest), "%s '%s'", ops[i], value);
		check_condition(s, table, column, rest);
		snprintf(rest, sizeof(rest), "%s CAST('%s' AS NUMERIC) + 0.5", ops[i], value);
		check_condition(s, table, column, rest);
		snprintf(rest, sizeof(rest), "%s %s", ops[i], odd[i]);
		check_condition(s, table, column, rest);
	}
	snprintf(rest, sizeof(rest), "IN ('%s', 'hyp_exit', NULL, 3)", value);
	check_condition(s, table, column, rest);
	snprintf(rest, sizeof(rest), "= '%s' COLLATE NOCASE", value);
	check_condition(s, table, column, rest);
	free(value);
}

static void test_conditions(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (size_t k = 1; k < 5 && tables[i][k]; k++)
			check_column(s, tables[i][0], tables[i][k]);
	check_condition(s, "events", "ts",
			"BETWEEN 24700000000 AND 24800000000 AND name = 'kvm_exit' AND cpu = 3");
	for (unsigned int i = 0; i < 60; i++) {
		char rest[128];

		snprintf(rest, sizeof(rest), "BETWEEN %u * 0.99e9 + 24600000000 AND %u * 1e9 + 24700000000",
			 i, i);
		check_condition(s, "events", "ts", rest);
		check_condition(s, "hyp_calls", "ts", rest);
	}
	check_condition(s, "events", "name", "= 'hyp_exit' AND name = 'hyp_enter'");
	check_condition(s, "events", "name",
			"IN ('hyp_exit', 'kvm_exit') AND name IN ('hyp_enter', 'kvm_exit')");
	close_all(&o, s);
}

/* GROUP BY without sorting, out of memory and out of the files. */
static void check_groups(struct sql *s)
{
	static const char *const by[] = { "cpu",	 "reason",	"cpu, reason",
					  "reason, cpu", "reason DESC", "dur, cpu" };
	static const char *const names[] = { "pkvm_hypervisor_events", "hyp_calls" };

	for (size_t t = 0; t < ARRAY_SIZE(names); t++)
		for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
			char *pushed =
				str_printf("SELECT %s, count(*), max(dur), sum(ts) FROM %s GROUP BY %s "
					   "ORDER BY %s",
					   *by[i] == 'c' ? "cpu" : "reason", names[t],
					   strstr(by[i], "DESC") ? "reason" : by[i], by[i]);
			char *plain = str_printf(
				"SELECT %s, count(*), max(dur), sum(ts) FROM (SELECT +cpu AS cpu, "
				"+reason AS reason, dur, ts FROM %s LIMIT 1000000) GROUP BY %s ORDER BY %s",
				*by[i] == 'c' ? "cpu" : "reason", names[t],
				strstr(by[i], "DESC") ? "reason" : by[i], by[i]);

			expect_same(s, pushed, plain);
			free(pushed);
			free(plain);
		}
	expect_same(s, "SELECT DISTINCT reason FROM hyp_calls",
		    "SELECT DISTINCT +reason FROM hyp_calls ORDER BY 1");
	expect_answer(s,
		      "SELECT count(*) FROM (SELECT ts, lag(ts) OVER () AS before FROM hyp_calls) WHERE ts < "
		      "before",
		      "0|\n");
	expect_same(s, "SELECT sum(ts) FROM (SELECT ts FROM hyp_calls ORDER BY ts LIMIT 100)",
		    "SELECT sum(ts) FROM (SELECT ts FROM hyp_calls ORDER BY +ts LIMIT 100)");
}

static void test_groups(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);
	char *all = answer(s, "SELECT * FROM hyp_calls"), *none;

	check_groups(s);
	assert_non_null(s->hyp->store);
	sql_close(s);
	assert_int_equal(sql_open(&s, &o.in, NULL), 0);
	s->store_room = 3u << 18; /* for three pieces of a stream */
	none = answer(s, "SELECT * FROM hyp_calls");
	assert_string_equal(none, all);
	assert_true(s->hyp->too_many);
	check_groups(s);
	free(all);
	free(none);
	close_all(&o, s);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void test_ids(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);

	/* each row is found by its id, forwards and backwards */
	for (int back = 0; back < 2; back++) {
		expect_answer(
			s,
			back ? "SELECT count(*) FROM (SELECT id, ts FROM hyp_calls ORDER BY id DESC LIMIT "
			       "50) AS a "
			       "CROSS JOIN hyp_calls AS b ON a.id = b.id WHERE a.ts = b.ts"
			     : "SELECT count(*) FROM (SELECT id, ts FROM hyp_calls LIMIT 50) AS a CROSS JOIN "
			       "hyp_calls AS b ON a.id = b.id WHERE a.ts = b.ts",
			"50|\n");
		expect_answer(s,
			      back ? "SELECT count(*) FROM (SELECT id, ts, text FROM events ORDER BY ts DESC "
				     "LIMIT 50) "
				     "AS a CROSS JOIN events AS b ON a.id = b.id WHERE a.ts = b.ts AND "
				     "a.text = b.text"
				   : "SELECT count(*) FROM (SELECT id, ts, text FROM events LIMIT 50) AS a "
				     "CROSS JOIN "
				     "events AS b ON a.id = b.id WHERE a.ts = b.ts AND a.text = b.text",
			      "50|\n");
	}
	expect_same(s, "SELECT count(*) FROM pkvm_hypervisor_events",
		    "SELECT count(*) FROM pkvm_hypervisor_events AS h JOIN slices ON h.slice_id = slices.id");
	expect_same(s, "SELECT count(DISTINCT id), count(*) FROM events",
		    "SELECT count(*), count(*) FROM events");
	expect_answer(s,
		      "WITH x(id) AS (VALUES (-1), (NULL), ('abc'), (1.5), (9223372036854775807), (1 << 50), "
		      "(1 << 51), "
		      "(-9223372036854775808), (4095 << 38), ((1 << 38) - 1), (3 << 50), ((1 << 50) | (4095 "
		      "<< 38))) "
		      "SELECT (SELECT count(*) FROM events JOIN x USING (id)), (SELECT count(*) FROM args "
		      "JOIN x ON "
		      "arg_set_id = x.id), (SELECT count(extract_arg(id, 'pc')) FROM x), (SELECT count(*) "
		      "FROM slices "
		      "JOIN x USING (id))",
		      "0|0|0|0|\n");
	close_all(&o, s);
}

/* An event's arguments are its fields. */
static void test_args(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);

	expect_same(s,
		    "SELECT count(*) FROM events WHERE name = 'sched_switch' AND text LIKE '%:' || "
		    "extract_arg(id, "
		    "'prev_pid') || ' [%'",
		    "SELECT count(*) FROM events WHERE name = 'sched_switch'");
	expect_same(
		s, "SELECT sum(int_value) FROM args WHERE key = 'next_pid'",
		"SELECT sum(extract_arg(arg_set_id, 'next_pid')) FROM events WHERE name = 'sched_switch'");
	expect_same(s, "SELECT count(*) FROM args WHERE key = 'hyp_enter_reason'",
		    "SELECT count(*) FROM hyp_calls WHERE reason IS NOT NULL");
	expect_answer(
		s,
		"SELECT count(*) FROM hyp_calls WHERE reason <> extract_arg(arg_set_id, 'hyp_enter_reason')",
		"0|\n");
	expect_answer(s, "SELECT extract_arg(1, NULL), extract_arg(NULL, 'x'), extract_arg('a', 'x')",
		      "|||\n");
	close_all(&o, s);
}

/* ---- how much is read --------------------------------------------------------------------------- */

static uint64_t records_of(struct sql *s, const char *query)
{
	uint64_t before = sql_counts(s).records;

	free(answer(s, query));
	return sql_counts(s).records - before;
}

static void test_reading(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);
	uint64_t all = records_of(s, "SELECT count(*) FROM events"), hyp, rows;

	assert_true(all > 30000);
	hyp = records_of(s, "SELECT count(*) FROM events WHERE name = 'hyp_enter'");
	assert_true(hyp < all / 2);
	assert_int_equal(records_of(s, "SELECT count(*) FROM events WHERE name = 'no_such'"), 0);
	assert_int_equal(records_of(s, "SELECT count(*) FROM events WHERE machine = 'nobody'"), 0);
	assert_int_equal(records_of(s, "SELECT count(*) FROM events WHERE cpu = 99"), 0);
	assert_true(records_of(s, "SELECT count(*) FROM events WHERE cpu = 1") < all / 2);
	assert_true(records_of(s, "SELECT ts FROM events ORDER BY ts LIMIT 1") <= MERGE_RUN_MAX);
	assert_true(records_of(s, "SELECT * FROM events LIMIT 10") <= MERGE_RUN_MAX);
	assert_true(records_of(s, "SELECT * FROM events WHERE ts < 24700000000") < all / 2);
	assert_true(records_of(s, "SELECT * FROM hyp_calls WHERE ts < 24700000000") <= hyp);
	/* pages in front of the time are passed over, unless records are to be counted */
	assert_true(records_of(s, "SELECT count(*), sum(ts) FROM events WHERE ts > 65700000000") < all / 2);
	assert_true(records_of(s, "SELECT count(*), max(id) FROM events WHERE ts > 65700000000") > all / 2);
	assert_true(
		records_of(s, "SELECT count(*) FROM events WHERE ts BETWEEN 65650000000 AND 65660000000") <
		all / 4);
	/* the hypervisor's buffers alone, once */
	assert_int_equal(records_of(s, "SELECT count(*) FROM hyp_calls"), hyp);
	assert_int_equal(records_of(s, "SELECT count(*) FROM slices"), 0);
	/* rows that are not wanted are not made */
	rows = sql_counts(s).rows;
	free(answer(s, "SELECT * FROM events WHERE name = 'kvm_vcpu_wakeup'"));
	assert_true(sql_counts(s).rows - rows < all / 20);
	close_all(&o, s);
}

/* ---- what statements may do ----------------------------------------------------------------------- */

static void test_guard(void **state)
{
	static const char *const refused[] = {
		"ATTACH 'x.db' AS x",
		"CREATE TABLE x(a)",
		"CREATE TEMP TABLE x(a)",
		"CREATE VIEW x AS SELECT 1",
		"CREATE VIRTUAL TABLE x USING events",
		"INSERT INTO threads VALUES (1, 2, 3, 4, 5)",
		"DELETE FROM threads",
		"UPDATE machines SET name = 'x'",
		"DROP TABLE threads",
		"DROP TABLE events",
		"VACUUM INTO 'x.db'",
		"PRAGMA query_only = 0",
		"PRAGMA temp_store_directory = '/'",
		"PRAGMA writable_schema = 1",
		"SELECT load_extension('x')",
		"INSERT INTO events(ts) VALUES (1)",
		"DETACH main",
		"BEGIN",
		"ANALYZE",
		"SELECT * FROM",
		"SELECT no_such FROM events",
		"EXPLAIN CREATE TABLE x(a)",
	};
	struct opened o;
	struct sql *s = open_all(&o);

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		char why[SQL_WHY_MAX];
		struct buf out = { 0 };

		if (sql_run(s, refused[i], &buf_sink, &out, why) != -EINVAL || !*why || out.len)
			fail_msg("%s: %s", refused[i], why);
		buf_release(&out);
	}
	expect_answer(s, "", "");
	expect_answer(s, " ; -- nothing\n;/* */", "");
	expect_answer(s, "SELECT IMPORT('pkvm.hypervisor'); select  import ( \"x\" ) ; SELECT 1;", "1|\n");
	expect_answer(
		s,
		"-- a\nINCLUDE PERFETTO MODULE pkvm.hypervisor;\ninclude /**/ perfetto\nmodule a.*; SELECT 2",
		"2|\n");
	expect_answer(s, "SELECT x'00ff', 1.5, NULL, 'a'; SELECT 1 WHERE 0; SELECT 3",
		      "X'00ff'|1.5||a|\n3|\n");
	close_all(&o, s);
}

static int stop_row(void *s, const struct sql_value *v, size_t n)
{
	sql_interrupt(s);
	return 0;
}

/* In SQLite and in a table. */
static void test_interrupt(void **state)
{
	static const struct sql_sink sink = { buf_begin, stop_row, buf_end };
	static const char *const queries[] = {
		"SELECT * FROM events",
		"WITH RECURSIVE x(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM x) SELECT n FROM x",
	};
	struct opened o;
	struct sql *s = open_all(&o);
	char why[SQL_WHY_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
		assert_int_equal(sql_run(s, queries[i], &sink, s, why), -EINTR);
	expect_answer(s, "SELECT 1", "1|\n");
	close_all(&o, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions), cmocka_unit_test(test_groups),
		cmocka_unit_test(test_ids),	   cmocka_unit_test(test_args),
		cmocka_unit_test(test_reading),	   cmocka_unit_test(test_guard),
		cmocka_unit_test(test_interrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
