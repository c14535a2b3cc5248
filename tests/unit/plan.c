// SPDX-License-Identifier: GPL-2.0-only
/* record_plan: adding buffers, releasing what was filled in. */
#include "record/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_add_buffers(void **state)
{
	struct record_plan p = { 0 };
	struct buffer_plan *b = record_plan_add_buffer(&p, "");

	assert_non_null(b);
	assert_string_equal(b->name, "");
	assert_int_equal(b->max_graph_depth, -1);
	assert_int_equal(b->size_kb, 0);
	assert_false(b->is_hyp);
	for (int i = 0; i < 40; i++)
		assert_non_null(record_plan_add_buffer(&p, "more"));
	assert_int_equal(p.n_buffers, 41);
	assert_string_equal(p.buffers[0].name, "");
	assert_string_equal(p.buffers[40].name, "more");
	record_plan_release(&p);
	assert_null(p.buffers);
	assert_int_equal(p.n_buffers, 0);
}

static void test_release(void **state)
{
	struct record_plan p = { 0 };
	struct buffer_plan *b = record_plan_add_buffer(&p, "x");

	assert_non_null(b);
	b->events = calloc(1, sizeof(*b->events));
	b->n_events = 1;
	b->events[0].name = strdup("kvm");
	b->events[0].filter = strdup("a == 1");
	assert_int_equal(strlist_add(&b->events[0].triggers, "traceoff"), 0);
	assert_int_equal(strlist_add(&b->funcs, "f"), 0);
	assert_int_equal(strlist_add(&b->notrace, "f"), 0);
	assert_int_equal(strlist_add(&b->graph, "f"), 0);
	assert_int_equal(strlist_add(&b->options, "f"), 0);
	b->tracer = strdup("function");
	b->clock = strdup("boot");
	b->cpumask = strdup("3");
	assert_int_equal(strlist_add(&p.pids, "1"), 0);
	p.output = strdup("trace.dat");
	p.user = strdup("nobody");
	p.compression = strdup("none");
	record_plan_release(&p); /* the leak checker is the judge (SAN=1) */
	record_plan_release(&p); /* and again: empty is fine */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_buffers),
		cmocka_unit_test(test_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
