// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Times of a plain-nVHE host: an excerpt from the lab, and captures of a
 * simulated CPU whose true times are known at every record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "nvhe-sim.h"

/* ---- steps as text ---------------------------------------------------------------- */

struct steps {
	struct nvhe_step v[64];
	size_t n;
};

static void on_step(void *ctx, const struct nvhe_step *s)
{
	struct steps *steps = ctx;

	if (steps->n < ARRAY_SIZE(steps->v))
		steps->v[steps->n] = *s;
	steps->n++;
}

/* ---- the lab ------------------------------------------------------------------------ */

static const struct seen {
	uint64_t ts; /* modulo 2^59 */
	const char *reason;
	int vcpu;
	uint64_t want;
} lab[] = {
	{ 117778655000, "hvc", 0, 117778655000 },
	{ 107831066512, "eret_host", 0, 117778655999 }, /* vCPU loaded: minus CNTVOFF */
	{ 107831281512, "hvc", 0, 117778870999 },
	{ 107831410512, "eret_guest", 87, 117778999999 },
	{ 107831781512, "guest_exit", 87, 117779370999 },
	{ 107832114512, "hvc", 0, 117779703999 },
	{ 117779709512, "eret_host", 0, 117779709512 }, /* put */
};

static void lab_excerpt(void **state)
{
	struct steps steps = { .n = 0 };
	struct nvhe *n = nvhe_new(on_step, &steps);
	uint64_t wraps = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lab); i++) {
		uint64_t have;

		/* as text shows it: cut to us, once more by 2^59 for each step back */
		if (i && lab[i].ts < lab[i - 1].ts)
			wraps++;
		have = nvhe_time(n, (lab[i].ts + (wraps << 59)) / 1000 * 1000, lab[i].reason, lab[i].vcpu);
		assert_in_range(have, lab[i].want - 2 * USEC, lab[i].want + 2 * USEC);
	}
	assert_int_equal(steps.n, 2);
	assert_true(steps.v[0].loaded);
	assert_int_equal(steps.v[0].vcpu_pid, 0);
	assert_in_range(steps.v[0].low, 9947588488 - 2 * USEC, 9947588488);
	assert_true(steps.v[0].high == UINT64_MAX);
	assert_false(steps.v[1].loaded);
	assert_int_equal(steps.v[1].vcpu_pid, 87);
	assert_in_range(steps.v[1].low, 9947588488 - 2 * USEC, 9947588488);
	assert_in_range(steps.v[1].high, 9947595000, 9947595000 + 2 * USEC);
	assert_in_range(steps.v[1].offset, 9947588488, 9947595000);
	nvhe_free(n);
}

/* ---- no defect --------------------------------------------------------------------------- */

static void without_steps_nothing_changes(void **state)
{
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct steps steps = { .n = 0 };
		struct nvhe *n = nvhe_new(on_step, &steps);
		struct sim s;

		sim_init(&s, seed);
		for (int i = 0; i < 60; i++) {
			sim_span(&s, 87 + i % 3, 0); /* protected guests: CNTVOFF 0 */
			sim_host(&s);
		}
		for (size_t i = 0; i < s.n; i++) { /* what clock fits do */
			if (!(rnd(&s) % 50))
				s.v[i].ts -= rnd(&s) % (999 * USEC);
			assert_int_equal(nvhe_time(n, s.v[i].ts, s.v[i].reason, s.v[i].vcpu), s.v[i].ts);
		}
		assert_int_equal(steps.n, 0);
		nvhe_free(n);
		sim_free(&s);
	}
}

static void no_reasons_nothing_changes(void **state)
{
	struct nvhe *n = nvhe_new(NULL, NULL);
	struct sim s;

	sim_init(&s, 5);
	for (int i = 0; i < 100; i++)
		sim_host(&s);
	for (size_t i = 0; i < s.n; i++)
		assert_int_equal(nvhe_time(n, s.v[i].ts, NULL, 0), s.v[i].ts);
	nvhe_free(n);
	sim_free(&s);
}

/* ---- guests ------------------------------------------------------------------------------- */

static const int64_t one_vm[] = { 9947590123 };
static const int64_t three_vms[] = { 9947590123, 64123456789, 9987590123 };

static void check_guests(const int64_t *cntvoff, size_t n_vms, bool text, bool bounded)
{
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct steps steps = { .n = 0 };
		struct nvhe *n;
		struct sim s;

		sim_init(&s, seed);
		s.text = text;
		s.long_runs = true;
		sim_guests(&s, cntvoff, n_vms, 200);
		n = sim_learn(&s, nvhe_new(NULL, NULL), bounded, on_step, &steps);
		assert_in_range(sim_pass(&s, n, 0, NULL), 0, ERROR_MAX);
		assert_int_equal(steps.n, 400);
		for (size_t i = 1; i < ARRAY_SIZE(steps.v); i += 2) {
			int64_t truth = cntvoff[(steps.v[i].vcpu_pid - 87) / 2];

			assert_false(steps.v[i].loaded);
			assert_true(steps.v[i].low <= (uint64_t)truth && (uint64_t)truth <= steps.v[i].high);
			assert_true(steps.v[i].high - steps.v[i].low < 15 * USEC);
		}
		nvhe_free(n);
		sim_free(&s);
	}
}

static void one_guest(void **state)
{
	check_guests(one_vm, 1, false, UNBOUNDED);
}

static void one_guest_as_text(void **state)
{
	check_guests(one_vm, 1, true, UNBOUNDED);
}

static void three_guests_on_a_cpu(void **state)
{
	check_guests(three_vms, 3, false, UNBOUNDED);
	check_guests(three_vms, 3, true, UNBOUNDED);
}

static void bounds_do_no_harm(void **state)
{
	check_guests(three_vms, 3, false, BOUNDED);
	check_guests(three_vms, 3, true, BOUNDED);
}

/*
 * VMs that were started, or stopped and resumed, together: the records of a vCPU are
 * right, also when a hypercall takes longer than the VMs are apart; once each vCPU was
 * there once or twice, that is. What comes before a load has named its vCPU may be
 * early by as much.
 */
static void vms_close_together(void **state)
{
	static const int64_t apart[] = { 200 * USEC, 700 * USEC, 2165 * USEC, 7 * MSEC };

	for (size_t i = 0; i < ARRAY_SIZE(apart); i++) {
		const int64_t vms[] = { 15973203244, 15973203244 + apart[i] };
		size_t wrong = 0, all = 0;

		for (uint64_t seed = 1; seed < 40; seed++) {
			struct nvhe *n;
			struct sim s;

			sim_init(&s, seed);
			s.text = seed % 2;
			s.interrupt = 5 * MSEC;
			sim_guests(&s, vms, 2, 300);
			n = sim_learn(&s, nvhe_new(NULL, NULL), UNBOUNDED, NULL, NULL);
			for (size_t k = 0; k < s.n; k++) {
				const struct record *r = &s.v[k];
				int64_t error = (int64_t)nvhe_time(n, r->ts, r->reason, r->vcpu) - r->truth;

				assert_in_range(llabs(error), 0, 12 * MSEC);
				all += r->vcpu > 0;
				wrong += r->vcpu > 0 && llabs(error) > ERROR_MAX + 2 * USEC;
			}
			nvhe_free(n);
			sim_free(&s);
		}
		print_message("%lld us apart: %zu of %zu wrong\n", (long long)apart[i] / 1000, wrong, all);
		assert_in_range(wrong, 0, all / 10000);
	}
}

/* Only hyp_enter, or only hyp_exit, is recorded. */
static void half_the_events(void **state)
{
	for (int on = 0; on < 2; on++) {
		struct sim s;

		sim_init(&s, 4);
		s.enters = on;
		s.exits = !on;
		sim_guests(&s, one_vm, 1, 200);
		/* the step is seen at the next record: the first span's offset is as good as that
		 * was near */
		assert_in_range(worst(&s, 100, UNBOUNDED), 0, 250 * USEC);
		sim_free(&s);
	}
}

static void records_without_reasons(void **state)
{
	struct sim s;

	sim_init(&s, 4);
	for (int i = 0; i < 100; i++)
		sim_span(&s, 0, one_vm[0]);
	for (size_t i = 0; i < s.n; i++) {
		s.v[i].reason = NULL;
		s.v[i].vcpu = 0;
	}
	assert_in_range(worst(&s, 0, UNBOUNDED), 0, ERROR_MAX);
	sim_free(&s);
}

/* The VM was paused: its CNTVOFF grows. */
static void offset_changes(void **state)
{
	struct sim s;

	sim_init(&s, 9);
	for (int i = 0; i < 300; i++) {
		sim_span(&s, 87, 20 * SEC + i / 30 * 333 * MSEC);
		sim_host(&s);
	}
	assert_in_range(worst(&s, 0, UNBOUNDED), 0, ERROR_MAX);
	sim_free(&s);
}

/* ---- lost events --------------------------------------------------------------------------- */

/* Anything may be missing: after each loss the first vCPU seen puts it right at the latest. */
static void losses(void **state)
{
	for (uint64_t seed = 1; seed < 40; seed++) {
		struct sim s;

		sim_init(&s, seed);
		sim_guests(&s, one_vm, 1, 300);
		for (size_t at = 60; at + 100 < s.n; at += 20 + rnd(&s) % 100)
			sim_lose(&s, at, at + 1 + rnd(&s) % 40);
		assert_in_range(worst(&s, 0, BOUNDED), 0, ERROR_MAX);
		sim_free(&s);
	}
}

/*
 * A recorder that is killed leaves no mark of what it has read and not written: what reads like one span
 * goes on with another VM's vCPU, whose CNTVOFF it has.
 */
static void missing_without_a_mark(void **state)
{
	static const int64_t vms[] = { 8039756244, 7987657744 };

	for (uint64_t seed = 1; seed < 40; seed++) {
		struct sim s;
		size_t from;

		sim_init(&s, seed);
		sim_guests(&s, vms, 2, 100);
		sim_hypercall(&s, vms[0]);
		sim_run(&s, 87);
		sim_record(&s, "hvc", 0);
		pass(&s, 40 * MSEC);
		s.offset = vms[1];
		from = s.n;
		sim_record(&s, "eret_guest", 89);
		pass(&s, MSEC);
		sim_record(&s, "guest_exit", 89);
		pass(&s, 5 * USEC);
		sim_record(&s, "eret_host", 0);
		sim_hypercall(&s, 0);
		sim_guests(&s, vms, 2, 20);
		assert_in_range(worst(&s, from, UNBOUNDED), 0, ERROR_MAX);
		sim_free(&s);
	}
}

/* Share of wrong records in a million, with many losses. */
static size_t wrong_ppm(const int64_t *cntvoff, size_t n_vms, bool bounded)
{
	size_t wrong = 0, all = 0;

	for (uint64_t seed = 1; seed < 40; seed++) {
		struct nvhe *n;
		struct sim s;

		sim_init(&s, seed);
		sim_guests(&s, cntvoff, n_vms, 300);
		for (size_t at = 400; at + 100 < s.n; at += 100 + rnd(&s) % 100)
			sim_lose(&s, at, at + 1 + rnd(&s) % 40);
		n = sim_learn(&s, nvhe_new(NULL, NULL), bounded, NULL, NULL);
		sim_pass(&s, n, 0, &wrong);
		all += s.n;
		nvhe_free(n);
		sim_free(&s);
	}
	print_message("%zu VMs: %zu of %zu wrong\n", n_vms, wrong, all);
	return wrong * 1000000 / all;
}

/*
 * Two of three VMs are 40 ms apart: after a loss nothing tells them from each
 * other before a vCPU is named. And a load lost in a time longer than CNTVOFF goes
 * unseen until then. What names it shows how the records after the loss began.
 */
static void losses_that_leave_doubt(void **state)
{
	assert_in_range(wrong_ppm(three_vms, 3, BOUNDED), 0, 100);
	assert_in_range(wrong_ppm(one_vm, 1, BOUNDED), 0, 100);
	assert_in_range(wrong_ppm(three_vms, 3, UNBOUNDED), 0, 100);
	assert_in_range(wrong_ppm(one_vm, 1, UNBOUNDED), 0, 100);
}

/* ---- begun with a vCPU loaded ---------------------------------------------------------------- */

static void sim_begin_loaded(struct sim *s, size_t *first_right)
{
	s->offset = one_vm[0];
	s->written = (uint64_t)(s->now - s->offset);
	sim_runs(s, 87);
	sim_record(s, "hvc", 0);
	pass(s, 2 * USEC);
	s->offset = 0;
	*first_right = s->n;
	sim_record(s, "eret_host", 0);
	pass(s, 3 * USEC);
	sim_guests(s, one_vm, 1, 50);
}

/* The put shows what was loaded since records began. */
static void begun_loaded(void **state)
{
	struct steps steps = { .n = 0 };
	struct nvhe *n;
	size_t right;
	struct sim s;

	sim_init(&s, 3);
	sim_begin_loaded(&s, &right);
	n = sim_learn(&s, nvhe_new(NULL, NULL), UNBOUNDED, on_step, &steps);
	assert_in_range(sim_pass(&s, n, 0, NULL), 0, ERROR_MAX);
	assert_false(steps.v[0].loaded);
	assert_int_equal(steps.v[0].vcpu_pid, 87);
	assert_in_range(steps.v[0].offset, one_vm[0] - 5 * USEC, one_vm[0] + 5 * USEC);
	nvhe_free(n);
	assert_in_range(worst(&s, 0, BOUNDED), 0, ERROR_MAX);
	sim_free(&s);
}

static void sim_never_put(struct sim *s)
{
	sim_init(s, 3);
	s->offset = one_vm[0];
	s->written = (uint64_t)(s->now - s->offset);
	for (int i = 0; i < 20; i++)
		sim_runs(s, 87);
}

/* No step: bounds alone leave the first record where tracing was switched on. */
static void never_put(void **state)
{
	struct nvhe *n = nvhe_new(NULL, NULL);
	struct sim s;

	sim_never_put(&s);
	assert_in_range(worst(&s, 0, UNBOUNDED), one_vm[0], one_vm[0]);
	nvhe_bounds(n, (uint64_t)(s.v[0].truth - 70 * MSEC), (uint64_t)s.v[s.n - 1].truth);
	assert_in_range(sim_pass(&s, n, 0, NULL), 60 * MSEC, 75 * MSEC);
	nvhe_free(n);
	sim_free(&s);
}

/* ... but another CPU has shown the vCPU's CNTVOFF. */
static void never_put_and_known(void **state)
{
	struct nvhe *n, *again;
	struct sim s;

	sim_never_put(&s);
	for (int bounded = 0; bounded < 2; bounded++) {
		n = nvhe_new(NULL, NULL);
		if (bounded)
			nvhe_bounds(n, (uint64_t)s.v[0].truth, (uint64_t)s.v[s.n - 1].truth);
		nvhe_known(n, 87, one_vm[0] - 2 * USEC, one_vm[0] + 2 * USEC);
		/* from the first record that names the vCPU */
		assert_in_range(sim_pass(&s, n, 1, NULL), 0, ERROR_MAX);
		again = nvhe_again(n, NULL, NULL);
		assert_in_range(sim_pass(&s, again, 0, NULL), 0, ERROR_MAX);
		nvhe_free(again);
		nvhe_free(n);
	}
	sim_free(&s);
}

/* The hypercall that loads a new VM's CNTVOFF takes long: what comes after it tells the time since. */
static void slow_loads(void **state)
{
	static const int64_t slow[] = { 16 * USEC, 90 * USEC, 700 * USEC };

	for (size_t i = 0; i < 3 * 40; i++) {
		struct nvhe *alone = nvhe_new(NULL, NULL);
		struct sim s;

		sim_init(&s, i + 1);
		s.text = i % 2;
		sim_host(&s);
		sim_record(&s, "hvc", 0);
		s.now += slow[i % 3];
		s.offset = one_vm[0];
		sim_record(&s, "eret_host", 0);
		sim_runs(&s, 87);
		sim_hypercall(&s, 0);
		sim_guests(&s, one_vm, 1, 3);
		assert_in_range(worst(&s, 0, UNBOUNDED), 0, ERROR_MAX);
		/* what it is for */
		assert_in_range(sim_pass(&s, alone, 0, NULL), slow[i % 3] / 2, slow[i % 3] + ERROR_MAX);
		nvhe_free(alone);
		sim_free(&s);
	}
}

/* ---- odd offsets -------------------------------------------------------------------------------
 */

static void negative_offset(void **state)
{
	static const int64_t restored[] = { -86400 * SEC };
	struct steps steps = { .n = 0 };
	struct nvhe *n;
	struct sim s;

	sim_init(&s, 8);
	sim_guests(&s, restored, 1, 200);
	n = sim_learn(&s, nvhe_new(NULL, NULL), BOUNDED, on_step, &steps);
	assert_in_range(sim_pass(&s, n, 0, NULL), 0, ERROR_MAX);
	assert_in_range(steps.v[1].offset + 86400 * SEC + 10 * USEC, 0, 20 * USEC);
	assert_true((int64_t)steps.v[1].low <= restored[0] && restored[0] <= (int64_t)steps.v[1].high);
	nvhe_free(n);
	sim_free(&s);
}

/*
 * A counter whose period is no power of two in ns: times before the clock's epoch
 * come out moved by (mult << (64 - shift)) besides. That is no CNTVOFF, but it
 * can be repaired.
 */
static void moved_by_the_clocks_wrap(void **state)
{
	static const int64_t moved[] = { 9947590123 - 5 * (1ll << 41), 9947590123 + 7 * (1ll << 41) };

	for (size_t i = 0; i < ARRAY_SIZE(moved); i++) {
		struct sim s;

		sim_init(&s, 8);
		sim_guests(&s, &moved[i], 1, 200);
		assert_in_range(worst(&s, 0, BOUNDED), 0, ERROR_MAX);
		sim_free(&s);
	}
}

/* ---- nonsense -----------------------------------------------------------------------------------
 */

static void any_input(void **state)
{
	static const char *const reasons[] = { "hvc", "eret_host", "eret_guest", "guest_exit", "smc", NULL };
	struct nvhe *n = nvhe_new(NULL, NULL), *again;
	struct sim s;

	sim_init(&s, 77);
	for (int i = 0; i < 200000; i++) {
		uint64_t what = rnd(&s), a = rnd(&s), b = rnd(&s);

		if (what % 100 == 0)
			nvhe_bounds(n, what % 3 ? a : 0, what % 5 ? b : 0);
		if (what % 100 == 1)
			nvhe_known(n, (int)(a % 50), (int64_t)a >> 6, ((int64_t)a >> 6) + (int64_t)(b >> 40));
		if (what % 100 == 2)
			nvhe_lost(n);
		if (what % 10000 == 3) {
			again = nvhe_again(n, NULL, NULL);
			nvhe_free(n);
			n = again;
		}
		nvhe_time(n, a >> (b % 64), reasons[what % 6], (int)(b % 100 > 80 ? b % 70 : 0));
	}
	nvhe_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lab_excerpt),
		cmocka_unit_test(without_steps_nothing_changes),
		cmocka_unit_test(no_reasons_nothing_changes),
		cmocka_unit_test(one_guest),
		cmocka_unit_test(one_guest_as_text),
		cmocka_unit_test(three_guests_on_a_cpu),
		cmocka_unit_test(bounds_do_no_harm),
		cmocka_unit_test(vms_close_together),
		cmocka_unit_test(half_the_events),
		cmocka_unit_test(records_without_reasons),
		cmocka_unit_test(offset_changes),
		cmocka_unit_test(losses),
		cmocka_unit_test(losses_that_leave_doubt),
		cmocka_unit_test(missing_without_a_mark),
		cmocka_unit_test(begun_loaded),
		cmocka_unit_test(never_put),
		cmocka_unit_test(never_put_and_known),
		cmocka_unit_test(slow_loads),
		cmocka_unit_test(negative_offset),
		cmocka_unit_test(moved_by_the_clocks_wrap),
		cmocka_unit_test(any_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
