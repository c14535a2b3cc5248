// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries: what is pushed down changes how much is read, and no answer; what statements may do. */
#include "captures.h"

#include "ask/latency/latency.h"
#include "ask/sql/sql-priv.h"
#include "../leaks.h"

#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define WINDOWS	   15
#define OPS_EVERY  3 /* of a column's operators */
#define JOIN_LIMIT "20"
#else
#define WINDOWS	   60
#define OPS_EVERY  1
#define JOIN_LIMIT "60"
#endif

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
static void check_column(struct sql *s, const char *table, const char *column, size_t first)
{
	static const char *const ops[] = { "=", "<", ">", "<=", ">=", "IS", "<>" };
	static const char *const odd[] = { "NULL", "'abc'", "x'00'", "1e300", "-1", "9223372036854775807",
					   "1.5" };
	char *query =
		str_printf("SELECT %s FROM %s WHERE %s IS NOT NULL LIMIT 1 OFFSET 20", column, table, column);
	char *value = answer(s, query), rest[128];

	free(query);
	value[strcspn(value, "|")] = '\0';
	for (size_t i = first % OPS_EVERY; i < ARRAY_SIZE(ops); i += OPS_EVERY) {
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
			check_column(s, tables[i][0], tables[i][k], i + k);
	check_condition(s, "events", "ts",
			"BETWEEN 24700000000 AND 24800000000 AND name = 'kvm_exit' AND cpu = 3");
	for (unsigned int i = 0; i < WINDOWS; i++) {
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

/* Conditions on two columns, each a scan of its own, in which the same rows may come. */
static void check_either(struct sql *s, const char *table, const char *column, const char *other)
{
	char *query = str_printf("SELECT '%s = ' || quote(%s) || ' OR %s = ' || quote(%s) FROM %s "
				 "ORDER BY %s DESC LIMIT 1 OFFSET (SELECT count(*) / 2 FROM %s)",
				 column, column, other, other, table, other, table);
	char *either = answer(s, query), *scans, *one;

	free(query);
	assert_true(*either);
	either[strcspn(either, "|")] = '\0';
	scans = str_printf("SELECT count(*), min(rowid), max(rowid), count(DISTINCT rowid) FROM %s WHERE %s",
			   table, either);
	one = str_printf(
		"SELECT sum(r), min(CASE WHEN r THEN row END), max(CASE WHEN r THEN row END), sum(r) "
		"FROM (SELECT %s AS r, rowid AS row FROM %s)",
		either, table);
	expect_same(s, scans, one);
	free(either);
	free(scans);
	free(one);
}

static void test_either(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);

	/* no capture has rows for the table lost: sql-random.c makes one */
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (size_t k = 1; k < 5 && tables[i][k] && strcmp(tables[i][0], "lost") != 0; k++)
			for (size_t n = k + 1; n < 5 && tables[i][n]; n++)
				check_either(s, tables[i][0], tables[i][k], tables[i][n]);
	expect_answer(s,
		      "SELECT count(*) FROM events WHERE machine = 'lab-protected' AND (cpu = 0 OR name = "
		      "'kvm_entry')",
		      "525|\n");
	close_all(&o, s);
}

/* Each row of each table has a number of its own, which does not depend on what else is read. */
static void test_numbers(void **state)
{
	static const char *const conditions[] = { "ts > 65700000000", "cpu = 1", "machine = 'trace'",
						  "name = 'kvm_exit'" };
	struct opened o;
	struct sql *s = open_all(&o);

	for (size_t i = 0; i < sql_tables_n; i++) {
		char *query = str_printf("SELECT count(*) > 0, count(*) - count(DISTINCT rowid) FROM %s",
					 sql_tables[i]->name);

		/* no capture has rows for lost; relatives are those of a slice that is asked for */
		expect_answer(s, query,
			      sql_tables[i] == &sql_lost_table || sql_tables[i] == &sql_ancestor_table ||
					      sql_tables[i] == &sql_descendant_table
				      ? "0|0|\n"
				      : "1|0|\n");
		free(query);
	}
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		char *query =
			str_printf("SELECT count(*) > 0, count(*) - count(b.id) FROM (SELECT rowid AS r, id, "
				   "ts FROM events WHERE %s) AS a LEFT JOIN (SELECT id, ts, rowid AS r "
				   "FROM events WHERE +%s) AS b USING (id, ts, r)",
				   conditions[i], conditions[i]);

		expect_answer(s, query, "1|0|\n");
		free(query);
	}
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

/* Whether the query's plan is to count kinds of events. */
static bool plan_counts(struct sql *s, const char *query)
{
	char *explain = str_printf("EXPLAIN QUERY PLAN %s", query), *plan = answer(s, explain);
	const char *index = strstr(plan, " INDEX ");
	bool counts = index && (atoi(index + strlen(" INDEX ")) & 0xff) == ORDER_COUNTED;

	free(explain);
	free(plan);
	return counts;
}

/* A query that kinds of events suffice for has the answer that reading the records gives, and their order. */
static void test_counted(void **state)
{
	static const char *const queries[] = {
		"SELECT count(*) FROM %s",
		"SELECT name, count(*) FROM %s GROUP BY name",
		"SELECT name, count(*) FROM %s GROUP BY name ORDER BY name DESC",
		"SELECT machine, buffer, cpu, count(*) FROM %s GROUP BY machine, buffer, cpu",
		"SELECT cpu, system, count(*) FROM %s GROUP BY cpu, system ORDER BY cpu DESC, system",
		"SELECT DISTINCT buffer FROM %s ORDER BY buffer DESC",
		"SELECT machine, cpu, system, name, count(*) FROM %s GROUP BY machine, cpu, system, name",
		"SELECT count(DISTINCT name), max(cpu), min(machine) FROM %s",
		"SELECT cpu FROM %s ORDER BY cpu LIMIT 3 OFFSET 300",
	};
	static const char *const others[] = {
		"SELECT name, count(*), max(ts) FROM events GROUP BY name",
		"SELECT name FROM events WHERE cpu = 1",
		"SELECT a.name FROM events a JOIN events b ON a.name = b.name LIMIT 1",
		"SELECT comm, count(*) FROM events GROUP BY comm",
		"SELECT buffer FROM lost",
		/* from here on rows have numbers */
		"SELECT count(DISTINCT rowid) FROM events",
		"SELECT count(*) FROM events",
	};
	struct opened o;
	struct sql *s = open_all(&o);

	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		char *counted = str_printf(queries[i], "events");
		char *plain = str_printf(queries[i], "(SELECT * FROM events WHERE ts IS NOT NULL)");

		assert_true(plan_counts(s, counted));
		assert_false(plan_counts(s, plain));
		expect_same(s, counted, plain);
		free(counted);
		free(plain);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (plan_counts(s, others[i]))
			fail_msg("counted: %s", others[i]);
	close_all(&o, s);
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
	expect_answer(s,
		      "SELECT count(*) FROM (SELECT id, ts, cpu, text FROM events ORDER BY text, ts LIMIT "
		      "3000) AS a "
		      "CROSS JOIN events AS b ON a.id = b.id WHERE a.ts = b.ts AND a.cpu = b.cpu AND a.text "
		      "= b.text",
		      "3000|\n");
	/* two records of one stream at a time, far from each other */
	expect_answer(s,
		      "WITH e AS MATERIALIZED (SELECT id, ts, text FROM events WHERE id >> 38 = (SELECT id "
		      ">> 38 FROM "
		      "events GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)) SELECT sum(a.ts = x.ts AND a.text "
		      "= x.text), "
		      "sum(b.ts = y.ts AND b.text = y.text) FROM (SELECT max(id) AS id, ts, text FROM e) AS "
		      "x, (SELECT "
		      "min(id) AS id, ts, text FROM e) AS y CROSS JOIN events AS a ON a.id = x.id CROSS JOIN "
		      "events AS b "
		      "ON b.id = y.id",
		      "1|1|\n");
	expect_same(s, "SELECT count(*) FROM pkvm_hypervisor_events",
		    "SELECT count(*) FROM pkvm_hypervisor_events AS h JOIN slices ON h.slice_id = slices.id");
	/* another condition beside the id is kept */
	expect_answer(
		s,
		"SELECT count(*), count(b.id), sum(a.reason = 'hvc') - count(c.id), count(d.slice_id) - "
		"sum(a.reason = 'host_abort') FROM (SELECT id, reason FROM hyp_calls LIMIT 300) AS a LEFT "
		"JOIN hyp_calls AS b ON b.id = a.id AND b.reason = 'none such' LEFT JOIN hyp_calls AS c ON "
		"c.arg_set_id = a.id AND c.reason = 'hvc' LEFT JOIN pkvm_hypervisor_events AS d ON "
		"d.slice_id = a.id AND d.reason = 'host_mem_abort'",
		"300|0|0|0|\n");
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
	/* several rows have one arg_set_id: a join with them is not without effect */
	expect_same(s, "SELECT count(*) FROM args AS a LEFT JOIN args AS b ON a.arg_set_id = b.arg_set_id",
		    "SELECT sum(n * n) FROM (SELECT count(*) AS n FROM args GROUP BY arg_set_id)");
	expect_same(s,
		    "SELECT a.key FROM (SELECT * FROM args LIMIT 50) AS a LEFT JOIN args AS b ON "
		    "a.arg_set_id = b.arg_set_id",
		    "SELECT a.key FROM (SELECT * FROM args LIMIT 50) AS a LEFT JOIN args AS b ON "
		    "a.arg_set_id = b.arg_set_id "
		    "WHERE b.key IS NOT NULL");
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
	/* pages in front of the time are passed over */
	assert_true(records_of(s, "SELECT count(*), max(id) FROM events WHERE ts > 65700000000") < all / 2);
	/* one record is found without those before it */
	assert_true(records_of(s, "SELECT text FROM events WHERE id = (SELECT max(id) FROM events)") - all <=
		    2 * MERGE_RUN_MAX);
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

/* ---- joins --------------------------------------------------------------------------------------- */

/* A table is not read again for each row of another one; SQLite's own index of the same rows knows the
 * answer. */
static void test_joins(void **state)
{
	static const char *const joins[][2] = {
		{ "kvm_exits AS b ON b.event_id = a.id", "b.dur" },
		{ "kvm_exits AS b ON b.event_id = a.id AND b.machine = 'trace' AND b.ts <= a.ts",
		  "b.reason" },
		{ "thread_states AS b ON b.ts = a.ts AND b.machine = a.machine", "b.state" },
		{ "events AS b ON b.ts > a.ts - 20000 AND b.ts < a.ts", "b.ts" },
		{ "hyp_calls AS b ON b.ts = a.ts AND b.cpu = a.cpu", "b.reason" },
		{ "kvm_exits AS b ON b.reason = a.cpu OR b.tid = a.tid", "b.ts" },
	};
	struct opened o;
	struct sql *s = open_all(&o);
	uint64_t all = records_of(s, "SELECT count(*) FROM events");
	char *plan;

	for (size_t i = 0; i < ARRAY_SIZE(joins); i++) {
		const char *on = strstr(joins[i][0], " AS b ");
		char *table = strndup(joins[i][0], (size_t)(on - joins[i][0]));
		char *text = str_printf(
			"SELECT count(*), count(%s), min(%s), sum(a.id * 31 %% 1009 + b.ts %% 997) "
			"FROM (SELECT * FROM events LIMIT " JOIN_LIMIT " OFFSET 4100) AS a LEFT JOIN %s",
			joins[i][1], joins[i][1], joins[i][0]);
		char *plain =
			str_printf("WITH c AS MATERIALIZED (SELECT * FROM %s) SELECT count(*), count(%s), "
				   "min(%s), sum(a.id * 31 %% 1009 + b.ts %% 997) FROM (SELECT * FROM events "
				   "LIMIT " JOIN_LIMIT " OFFSET 4100) AS a LEFT JOIN c%s",
				   table, joins[i][1], joins[i][1], on);

		assert_true(records_of(s, text) < 9 * all);
		expect_same(s, text, plain);
		free(table);
		free(text);
		free(plain);
	}
	/* of two ways to ask for a row of a copy, in the order of time, and one that does not end it */
	expect_same(
		s,
		"SELECT sum(b) FROM (SELECT (SELECT ts FROM kvm_exits AS k WHERE k.tid = a.tid AND k.ts >= "
		"a.ts "
		"ORDER BY ts LIMIT 1) AS b FROM events AS a WHERE name = 'kvm_exit' AND cpu = 1 LIMIT 40)",
		"SELECT sum(b) FROM (SELECT (SELECT min(+ts) FROM kvm_exits AS k WHERE +k.tid = a.tid AND "
		"+k.ts >= a.ts) AS b FROM events AS a WHERE name = 'kvm_exit' AND cpu = 1 LIMIT 40)");
	assert_null(s->copies);
	/* a view is made once, with an index; without, this took minutes for 60,000 states */
	plan = answer(
		s, "EXPLAIN QUERY PLAN SELECT count(*) FROM sched AS a LEFT JOIN thread_state AS b ON b.ts = "
		   "a.ts");
	assert_non_null(strstr(plan, "SEARCH (subquery"));
	assert_null(strstr(plan, "SCAN _state LEFT-JOIN"));
	free(plan);
	close_all(&o, s);
}

/* ---- Perfetto's statements --------------------------------------------------------------------- */

static void expect_failure(struct sql *s, const char *query, const char *message)
{
	char why[SQL_WHY_MAX];
	struct buf out = { 0 };

	assert_int_equal(sql_run(s, query, &buf_sink, &out, why), -EINVAL);
	if (!strstr(why, message))
		fail_msg("%s: %s", query, why);
	buf_release(&out);
}

static void test_temporary(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);

	expect_answer(s,
		      "CREATE PERFETTO TABLE x(a INT /* ) */, b JOINID(slice.id)) AS SELECT 1 AS a, 2 AS b;"
		      "INSERT INTO x VALUES (3, 4); SELECT sum(a), sum(b) FROM x; DROP TABLE x",
		      "4|6|\n");
	expect_answer(s,
		      "create or replace perfetto view v as select 1 as a; CREATE OR REPLACE PERFETTO VIEW v "
		      "AS SELECT 2 AS a; SELECT a FROM v; DROP VIEW IF EXISTS v; DROP VIEW IF EXISTS v",
		      "2|\n");
	expect_answer(s,
		      "CREATE TEMP TABLE IF NOT EXISTS \"x y\"(a, b); CREATE PERFETTO INDEX i ON \"x y\"(a); "
		      "CREATE UNIQUE INDEX temp.j ON \"x y\"(b); INSERT INTO \"x y\" VALUES (1, 2); SELECT a "
		      "FROM \"x y\" WHERE b = 2",
		      "1|\n");
	/* what a query makes hides a name for the query alone */
	expect_answer(s,
		      "CREATE VIEW machines AS SELECT 7 AS z; SELECT z FROM machines; SELECT count(name) > 1 "
		      "FROM machine; DROP VIEW machines; SELECT count(*) > 1 FROM machines",
		      "7|\n1|\n1|\n");
	expect_failure(s, "SELECT * FROM android_logs", "no table 'android_logs': hyptrace has events");
	expect_failure(s, "SELECT abs_time_str(1)", "no function 'abs_time_str': hyptrace has clocks");
	expect_failure(s, "SELECT * FROM nonsense", "no such table: nonsense");
	expect_failure(s, "CREATE PERFETTO FUNCTION f() RETURNS INT AS SELECT 1", "CREATE PERFETTO TABLE");
	close_all(&o, s);
}

/* Temporary tables have a size limit, which queries cannot change. */
static void test_temporary_limit(void **state)
{
	struct opened o;
	struct sql *s = open_all(&o);
	sqlite3_stmt *stmt;

	sqlite3_set_authorizer(s->db, NULL, NULL);
	assert_int_equal(sqlite3_prepare_v2(s->db, "PRAGMA temp.max_page_count", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(stmt, 0), 1048576);
	sqlite3_finalize(stmt);
	assert_int_equal(sqlite3_exec(s->db, "PRAGMA temp.max_page_count = 100", NULL, NULL, NULL),
			 SQLITE_OK);
	expect_failure(
		s,
		"CREATE TABLE x AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT "
		"i, zeroblob(1000) AS b FROM n",
		"full");
	expect_answer(s, "CREATE TABLE y AS SELECT 1 AS a; SELECT * FROM y", "1|\n");
	close_all(&o, s);
}

/* A span join's time against counting its instants one by one; spans end and begin at random, and touch. */
static void test_span_join(void **state)
{
	static const char *const kinds[][2] = { { "SPAN_JOIN", "a IS NOT NULL AND b IS NOT NULL" },
						{ "SPAN_LEFT_JOIN", "a IS NOT NULL" },
						{ "SPAN_OUTER_JOIN", "a IS NOT NULL OR b IS NOT NULL" } };
	struct opened o;
	struct sql *s = open_all(&o);

	free(answer(
		s, "CREATE TABLE n AS WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n LIMIT "
		   "400) SELECT i FROM n;"
		   /* every third is missing, and widths change */
		   "CREATE TABLE l AS SELECT i * 7 + i % 4 AS ts, 4 + (i % 4 = 0) * 4 AS dur, p, i AS a FROM "
		   "n, (SELECT 1 "
		   "AS p UNION SELECT 2 UNION SELECT 5) WHERE i % 3 AND (i + p) % 5;"
		   "CREATE TABLE r AS SELECT i * 11 + i % 6 AS ts, 5 + (i % 6 < 5) * (i % 3) * 3 AS dur, i + "
		   "1000 AS b, p FROM n, "
		   "(SELECT 2 AS p UNION SELECT 5 UNION SELECT 6) WHERE (i + p) % 4 AND i < 230;"
		   "CREATE INDEX li ON l(p, ts); CREATE INDEX ri ON r(p, ts);"
		   "CREATE TABLE ticks AS SELECT x.i + 400 * y.i AS t FROM n AS x, n AS y WHERE y.i < 8"));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char *joined =
			str_printf("DROP TABLE IF EXISTS j; CREATE VIRTUAL TABLE j USING %s(l PARTITIONED p, "
				   "r PARTITIONED p); SELECT p, a, b, sum(dur), min(ts) FROM j GROUP BY "
				   "1, 2, 3 ORDER BY 1, 2, 3",
				   kinds[i][0]);
		char *counted =
			str_printf("WITH p(p) AS (VALUES (1), (2), (5), (6)), at AS (SELECT p, t, (SELECT a "
				   "FROM l WHERE "
				   "l.p = p.p AND ts <= t AND ts > t - 12 AND ts + dur > t) AS a, (SELECT b "
				   "FROM r WHERE r.p = "
				   "p.p AND ts <= t AND ts > t - 12 AND ts + dur > t) AS b FROM p, ticks) "
				   "SELECT p, a, b, "
				   "count(*), min(t) FROM at WHERE %s GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
				   kinds[i][1]);

		expect_same(s, joined, counted);
		free(joined);
		free(counted);
	}
	/* points, as trace_processor 56 answers them; one side without partitions */
	expect_answer(
		s,
		"CREATE TABLE u(ts INT, dur INT, c TEXT); INSERT INTO u VALUES (3, 4, 'u1'), (15, 20, 'u2'), "
		"(50, -1, 'u3'); CREATE TABLE q(ts INT, dur INT, p INT, a TEXT); INSERT INTO q VALUES (1, 0, "
		"0, "
		"'z'), (5, -1, 0, 'open'), (10, 10, 1, 'x'), (30, 10, 1, 'y'); CREATE VIRTUAL TABLE m USING "
		"span_left_join(q PARTITIONED p, u); SELECT * FROM m",
		"1|0|0|z||\n5|-1|0|open|u1|\n10|5|1|x||\n15|5|1|x|u2|\n30|5|1|y|u2|\n35|5|1|y||\n");
	expect_failure(s, "CREATE VIRTUAL TABLE z USING SPAN_JOIN(l PARTITIONED p, r PARTITIONED b)",
		       "the same column");
	expect_failure(s, "CREATE VIRTUAL TABLE z USING SPAN_JOIN(l, nonsense)", "no such table: nonsense");
	close_all(&o, s);
}

/* ---- names --------------------------------------------------------------------------------------- */

static const char exec_format[] =
	"name: sched_process_exec\nID: 245\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
	"\tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;\n\n"
	"print fmt: \"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid\n";

static void add_exec(struct pages *p, uint64_t ts, int pid, const char *path)
{
	struct {
		struct common c;
		uint16_t at, len;
		int32_t pid, old_pid;
		char path[64];
	} r = { { .type = 245, .pid = pid }, 20, (uint16_t)(strlen(path) + 1), pid, pid, "" };

	strcpy(r.path, path);
	pages_add(p, ts, &r, 20 + strlen(path) + 1);
}

/* A task has the name that it had last; what is read or printed before changes nothing. */
static void test_threads(void **state)
{
	struct fixture *x = *state;
	struct dat_text sched[] = { x->sched[0], { exec_format, sizeof(exec_format) - 1 } };
	struct pages *cpus = add_buffer(x, "", 4096, 2);
	char *path = x->path, *before, *after;
	struct inputs in;
	struct sql *s;

	x->systems[0] = (struct dat_system){ "sched", 2, sched };
	add_switch(&cpus[0], 1000, "bash", 101, "bash", 102);
	add_exec(&cpus[0], 2000, 102, "/usr/bin/a-name-longer-than-fifteen");
	add_switch(&cpus[1], 2500, "kworker/1:1", 7, "bash", 101);
	add_exec(&cpus[1], 3000, 101, "ls");
	add_switch(&cpus[0], 4000, "renamed", 103, "swapper/0", 0);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	assert_int_equal(inputs_open(&in, &path, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	assert_int_equal(sql_open(&s, &in, NULL), 0);
	expect_answer(
		s, "SELECT id, tid, name FROM threads",
		"1|7|kworker/1:1|\n2|87|CPU 0/KVM|\n3|101|ls|\n4|102|a-name-longer-t|\n5|103|renamed|\n");
	before = answer(s, "SELECT tid, comm FROM events");
	free(answer(s, "SELECT text FROM events"));
	after = answer(s, "SELECT tid, comm FROM events");
	assert_string_equal(after, before);
	assert_string_equal(after, "101|bash|\n102||\n7||\n101|bash|\n103||\n");
	free(before);
	free(after);
	sql_close(s);
	inputs_release(&in);
}

/* ---- what statements may do ----------------------------------------------------------------------- */

static void test_guard(void **state)
{
	static const char *const refused[] = {
		"ATTACH 'x.db' AS x",
		"CREATE TABLE main.x(a)",
		"CREATE VIEW main.x AS SELECT 1",
		"CREATE VIRTUAL TABLE x USING fts5(a)",
		"CREATE TRIGGER x AFTER INSERT ON machines BEGIN SELECT 1; END",
		"CREATE TEMP TRIGGER x AFTER INSERT ON machines BEGIN SELECT 1; END",
		"CREATE INDEX main.x ON machines(name)",
		"CREATE PERFETTO FUNCTION x() RETURNS INT AS SELECT 1",
		"CREATE OR REPLACE PERFETTO MACRO x() RETURNS INT AS SELECT 1",
		"ALTER TABLE machines RENAME TO x",
		"DROP VIEW thread",
		"SAVEPOINT x",
		"CREATE TABLE x AS SELECT load_extension('x')",
		"CREATE VIEW x AS SELECT 1 AS a; INSERT INTO x VALUES (1)",
		"INSERT INTO sqlite_temp_master VALUES (1, 2, 3, 4, 5)",
		"PRAGMA temp.max_page_count = 0",
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
		"CREATE TABLE x AS SELECT 1; SELECT * FROM thread_state",
	};
	struct opened o;
	struct sql *s = open_all(&o);
	char why[SQL_WHY_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
		assert_int_equal(sql_run(s, queries[i], &sink, s, why), -EINTR);
	expect_answer(s, "SELECT 1", "1|\n");
	close_all(&o, s);
}

/* ---- several tables by one reading ------------------------------------------------------------ */

struct taken {
	size_t columns[SQL_COLUMNS_MAX], rows;
};

static int take_cell(void *ctx, size_t column, struct cell v)
{
	((struct taken *)ctx)->columns[column]++;
	return 0;
}

static void take_values(void *ctx, size_t column, const union value *v, size_t n)
{
	((struct taken *)ctx)->columns[column] += n;
}

static int take_rows(void *ctx, size_t n)
{
	((struct taken *)ctx)->rows += n;
	return 0;
}

static int refuse_rows(void *ctx, size_t n)
{
	return -EXDEV;
}

/* The part that has been read only grows: one reading makes all tables. */
static int read_on(void *ctx, double part)
{
	double *before = ctx;

	assert_true(part >= *before && part <= 1);
	*before = part;
	return 0;
}

static int read_no_more(void *ctx, double part)
{
	return -ECANCELED;
}

static void test_together(void **state)
{
	static const struct cell_sink sink = { take_cell, take_values, take_rows },
				      refuses = { take_cell, take_values, refuse_rows };
	static const char *const names[] = { "vcpu_states", "findings",	     "lost",  "kvm_exits",
					     "hyp_calls",   "thread_states", "steal", "threads" };
	struct taken taken[ARRAY_SIZE(names)] = { 0 };
	struct sql_reader v[ARRAY_SIZE(names)];
	struct opened o;
	struct sql *s = open_all(&o);
	double part = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		v[i] = (struct sql_reader){ names[i], &sink, &taken[i], false };
	assert_int_equal(sql_read_tables(s, v, ARRAY_SIZE(v), read_on, &part), 0);
	assert_true(part > 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *query = str_printf("SELECT count(*) FROM %s", names[i]), expected[32];

		assert_int_equal(v[i].kept, !strcmp(names[i], "findings") || !strcmp(names[i], "threads"));
		snprintf(expected, sizeof(expected), "%zu|\n", taken[i].rows);
		if (!v[i].kept)
			expect_answer(s, query, expected);
		assert_int_equal(taken[i].columns[0], taken[i].rows);
		free(query);
	}
	v[0].sink = &refuses;
	assert_int_equal(sql_read_tables(s, v, 1, NULL, NULL), -EXDEV);
	assert_int_equal(sql_read_tables(s, v, 1, read_no_more, NULL), -ECANCELED);
	close_all(&o, s);
}

static bool stopped(void *ctx)
{
	return true;
}

/* The preset irq reads the files twice: already the first reading can be ended. */
static void test_interrupt_survey(void **state)
{
	static char *const files[] = { "tests/data/guest/trace.dat", "tests/data/guest/trace-Guest.dat" };
	struct latency_plan plan = { 0 };
	struct latency *l;
	struct inputs in;

	assert_int_equal(inputs_open(&in, files, ARRAY_SIZE(files), 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	latency_preset_plan(latency_preset("irq"), &in, &plan);
	assert_true(plan.lines);
	plan.stopped = stopped;
	assert_int_equal(latency_open(&l, &in, &plan, NULL), 0);
	assert_int_equal(latency_survey(l), -EINTR);
	latency_close(l);
	inputs_release(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_either),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_reading),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_interrupt_survey),
		cmocka_unit_test(test_temporary),
		cmocka_unit_test(test_temporary_limit),
		cmocka_unit_test(test_span_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
