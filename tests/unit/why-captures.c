// SPDX-License-Identifier: LGPL-2.1-or-later
/* Causes: every instance of every capture is the sum of its stretches, to the nanosecond. */
#include "dat-fixture.h"

#include "ask/why/why-priv.h"
#include "read/inputs.h"
#include "../leaks.h"

static const struct {
	const char *host, *guest;
} pairs[] = {
	{ "tests/data/steal/trace.dat", "tests/data/steal/trace-Guest.dat" },
	{ "tests/data/guest/trace.dat", "tests/data/guest/trace-Guest.dat" },
	{ "tests/data/functions/trace.dat", "tests/data/functions/trace-Guest.dat" },
	{ "tests/data/stock/trace.dat", "tests/data/stock/trace-Guest.dat" },
	{ "tests/data/raw/trace.dat", "tests/data/raw/trace-Guest.dat" },
	{ "tests/data/sync/trace.dat", "tests/data/sync/trace-Guest.dat" },
	{ "tests/data/x86/trace.dat", "tests/data/x86/trace-Guest.dat" },
	{ "tests/data/vhost/standard.dat", "tests/data/vhost/standard-Guest.dat" },
	{ "tests/data/vhost/vhost.dat", "tests/data/vhost/vhost-Guest.dat" },
	{ "tests/data/lab-protected.dat", NULL },
	{ "tests/data/lab-nvhe.dat", NULL },
	{ "tests/data/lab-stock-arm64.dat", NULL },
	{ "tests/data/profile/trace.dat", NULL },
	{ "tests/data/regions.dat", NULL },
};

struct counted {
	size_t instances, stretches, undecided, preempted;
};

static void check_instance(const struct why *w, const struct why_instance *one, struct counted *n)
{
	uint64_t at = one->from, sum = 0;

	assert_true(one->n > 0);
	for (size_t i = 0; i < one->n; i++) {
		const struct why_stretch *s = &one->v[i];

		assert_int_equal(s->from, at);
		assert_true(s->from < s->to && s->cause < w->n_causes);
		assert_true(!i || one->v[i - 1].cause != s->cause);
		n->undecided += w->causes[s->cause].kind == WHY_UNDECIDED;
		n->preempted += w->causes[s->cause].kind == STATE_PREEMPTED;
		sum += s->to - s->from;
		at = s->to;
	}
	assert_int_equal(at, one->to);
	assert_int_equal(sum, one->to - one->from);
	n->instances++;
	n->stretches += one->n;
}

/* Shares add up to 1, and means to those of the groups. */
static void check_comparison(const struct why *w, const struct why_instance *v, size_t n)
{
	struct why_comparison c;
	double share = 0, typical = 0;

	assert_int_equal(why_compare(w, 0.9, &c), 0);
	for (size_t i = 0; i < c.n; i++) {
		share += c.v[i].share;
		typical += c.v[i].typical;
		assert_true(c.v[i].low <= c.v[i].high);
		assert_true(!c.v[i].in || (c.v[i].example >= v && c.v[i].example < v + n));
	}
	assert_true(!n || c.n_typical);
	assert_true(c.n_all == n && c.seen == n);
	assert_true(typical - c.v[c.n].typical < 1 && c.v[c.n].typical - typical < 1);
	if (c.stands_out)
		assert_true(share > 0.999 && share < 1.001);
	else
		assert_true(share < 0.001);
	if (c.n_tail)
		assert_int_equal(c.p_tail, v[n * 9 / 10].to - v[n * 9 / 10].from);
}

static void check_preset(const struct inputs *in, const struct latency_preset *p, struct counted *n)
{
	struct latency_plan plan = { 0 };
	struct latency *l = NULL;
	struct why *w = NULL;
	uint64_t damaged;

	latency_preset_plan(p, in, &plan);
	assert_int_equal(why_open(&w, in, p), 0);
	plan.each = why_chain;
	plan.ctx = w;
	assert_int_equal(latency_open(&l, in, &plan, NULL), 0);
	assert_int_equal(latency_read(l, NULL, &damaged), 0);
	assert_int_equal(why_cut(w, latency_result(l).vcpus), 0);
	for (size_t i = 0; i < w->n; i++)
		check_instance(w, &w->v[i], n);
	check_comparison(w, w->v, w->n);
	why_close(w);
	latency_close(l);
}

static void test_sums(void **state)
{
	struct counted n = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		char *const paths[] = { (char *)pairs[i].host, (char *)pairs[i].guest };
		struct inputs in;
		const struct latency_preset *p;

		assert_int_equal(inputs_open(&in, paths, pairs[i].guest ? 2 : 1, 0, NULL), 0);
		assert_int_equal(inputs_load(&in, NULL), 0);
		for (size_t k = 0; (p = latency_preset_at(k)); k++)
			check_preset(&in, p, &n);
		inputs_release(&in);
	}
	/* what hyptrace latency counts as complete in these files, and more causes than one each */
	assert_true(n.instances > 700);
	assert_true(n.stretches > 3 * n.instances && n.undecided > 100 && n.preempted > 100);
}

/* An example is a stretch of the recording, and no longer than what was lost in all. */
static void test_findings(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		char *const paths[] = { (char *)pairs[i].host, (char *)pairs[i].guest };
		struct findings f = { 0 };
		uint64_t damaged = 0, from, to;
		struct inputs in;

		assert_int_equal(inputs_open(&in, paths, pairs[i].guest ? 2 : 1, 0, NULL), 0);
		assert_int_equal(inputs_load(&in, NULL), 0);
		assert_int_equal(part_extent(in.v, in.n, 0, 0, &from, &to, &damaged), 0);
		assert_int_equal(findings_read(&f, &in, NULL, &damaged), 0);
		for (size_t k = 0; k < f.n; k++) {
			const struct finding_stretch *s = &f.v[k].example;

			if (!s->to)
				continue;
			n++;
			assert_true(from <= s->from && s->from < s->to && s->to <= to);
			/* of chains, exits and wake-ups what is lost is what exceeds the median */
			assert_true(strstr(f.v[k].what, "tail") || strstr(f.v[k].what, "interrupts from") ||
				    strstr(f.v[k].what, "exit") || strstr(f.v[k].what, "waking") ||
				    s->to - s->from <= f.v[k].lost);
		}
		free(f.v);
		inputs_release(&in);
	}
	assert_true(n > 30);
}

struct vcpu_spans {
	struct vcpu_span {
		uint64_t from, to, pid, state, other;
	} * v;
	size_t n;
};

static int take_vcpu(void *ctx, const struct state_span *s)
{
	struct vcpu_spans *all = ctx;
	const struct vcpu_span new = { s->from, s->to, (uint64_t)s->owner->pid, s->state,
				       (uint64_t)s->other };

	return s->owner->kind == STATE_OF_VCPU ? array_push(&all->v, &all->n, &new, sizeof(new)) : 0;
}

static int vcpu_span_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct vcpu_span));
}

/* vCPUs do the same whether the spans of tasks are asked for as well, or not. */
static void test_owners(void **state)
{
	static const unsigned int owners[] = { STATES_VCPUS,
					       STATES_VCPUS | STATES_TASKS | STATES_GUEST_TASKS };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		char *const paths[] = { (char *)pairs[i].host, (char *)pairs[i].guest };
		struct vcpu_spans spans[2] = { 0 };
		struct inputs in;
		struct why *w = NULL;

		assert_int_equal(inputs_open(&in, paths, pairs[i].guest ? 2 : 1, 0, NULL), 0);
		assert_int_equal(inputs_load(&in, NULL), 0);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(why_open(&w, &in, NULL), 0);
			assert_int_equal(why_states(w, owners[k], take_vcpu, &spans[k]), 0);
			why_close(w);
			qsort(spans[k].v, spans[k].n, sizeof(*spans[k].v), vcpu_span_order);
		}
		assert_true(spans[0].n > 2);
		assert_int_equal(spans[0].n, spans[1].n);
		assert_memory_equal(spans[0].v, spans[1].v, spans[0].n * sizeof(*spans[0].v));
		free(spans[0].v);
		free(spans[1].v);
		inputs_release(&in);
	}
}

/* Of more chains than are kept every second, fourth ... stays: durations of the whole range, evenly. */
static void test_many(void **state)
{
	char *const path = "tests/data/lab-protected.dat";
	const struct latency_key row = { 0 };
	const uint64_t n = 100000;
	struct why *w = NULL;
	struct inputs in;

	(void)state;
	assert_int_equal(inputs_open(&in, &path, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	assert_int_equal(why_open(&w, &in, NULL), 0);
	for (uint64_t i = 0; i < n; i++) {
		struct latency_worst chain = { .took = i + 1, .v[0].ts = 1000 * i };

		chain.v[1].ts = chain.v[0].ts + chain.took;
		assert_int_equal(why_chain(w, &chain, &row, 2), 0);
	}
	assert_int_equal(w->seen, n);
	assert_int_equal(w->stride, 4);
	assert_int_equal(w->n, n / 4);
	for (size_t i = 0; i < w->n; i++)
		assert_int_equal(w->v[i].to - w->v[i].from, 4 * i + 1);
	why_close(w);
	inputs_release(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums), cmocka_unit_test(test_findings),
					    cmocka_unit_test(test_owners), cmocka_unit_test(test_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
