// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Times of a plain-nVHE host repaired with a view of what comes, as recorder and
 * import do it: captures of a simulated CPU, given in pieces as reads give them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nvhe-sim.h"
#include "record/remote-hold.h"

struct run {
	const struct sim *s;
	struct hold *hold;
	size_t given, taken;
	size_t held_most;
	int64_t worst; /* error of any record */
	size_t wrong;  /* records of a vCPU that are off by more than ERROR_MAX */
	int fail_at;   /* the record whose taking fails; -1: none */
};

static int take(void *ctx, const struct hyprecord *rec)
{
	struct run *r = ctx;
	const struct record *want = &r->s->v[r->taken];
	int64_t error = llabs((int64_t)rec->ts - want->truth);
	size_t index;

	assert_in_range(rec->len, sizeof(index), sizeof(index) + 6);
	memcpy(&index, rec->data, sizeof(index));
	assert_int_equal(index, r->taken);
	assert_int_equal(rec->cpu, index % 5);
	assert_int_equal(rec->lost, want->lost ? 7 : 0);
	if ((int)r->taken++ == r->fail_at)
		return -28;
	if (error > r->worst)
		r->worst = error;
	r->wrong += want->vcpu > 0 && error > ERROR_MAX;
	return 0;
}

static void give(struct run *r)
{
	const struct record *v = &r->s->v[r->given];
	uint8_t data[16] = { 0 };
	struct hyprecord rec = { .ts = v->ts,
				 .cpu = (unsigned int)(r->given % 5),
				 .data = data,
				 .len = sizeof(r->given) + r->given % 7,
				 .lost = v->lost ? 7 : 0 };

	memcpy(data, &r->given, sizeof(r->given));
	assert_int_equal(hold_add(r->hold, &rec, v->reason, v->vcpu), 0);
	r->given++;
}

static struct run repair(const struct sim *s, size_t chunk, bool bounds)
{
	struct run r = { .s = s, .fail_at = -1 };

	r.hold = hold_new(1, NULL, take, &r);
	while (r.given < s->n) {
		if (bounds) {
			size_t last = r.given + chunk < s->n ? r.given + chunk - 1 : s->n - 1;

			hold_bounds(r.hold, (uint64_t)(s->v[r.given].truth - 100 * MSEC),
				    (uint64_t)(s->v[last].truth + 100 * MSEC));
		}
		for (size_t i = 0; i < chunk && r.given < s->n; i++)
			give(&r);
		assert_int_equal(hold_release(r.hold, false), 0);
		if (r.given - r.taken > r.held_most)
			r.held_most = r.given - r.taken;
	}
	assert_int_equal(hold_release(r.hold, true), 0);
	assert_int_equal(r.taken, s->n);
	hold_free(r.hold);
	return r;
}

/* Each VM's first load on the CPU takes long, or the recording begins inside a span. */
static void first_spans(void **state)
{
	static const int64_t vms[] = { 9947590123, 64123456789, 9987590123 };
	static const size_t chunks[] = { 1, 7, 100 };

	for (uint64_t seed = 1; seed < 60; seed++) {
		struct sim s;
		struct run r;

		sim_init(&s, seed);
		s.text = seed % 2;
		s.busy = true;
		for (size_t i = 0; i < 3; i++) {
			if (i || seed % 4) {
				sim_host(&s);
				sim_record(&s, "hvc", 0);
				s.now += 20 * USEC << rnd(&s) % 6;
				s.offset = vms[i];
				sim_record(&s, "eret_host", 0);
			} else {
				s.offset = vms[i];
				s.written = (uint64_t)(s.now - s.offset);
			}
			sim_runs(&s, 87 + (int)i * 2);
			sim_hypercall(&s, 0);
			sim_guests(&s, vms, i + 1, 10);
		}
		r = repair(&s, chunks[seed % 3], seed % 4 == 0);
		assert_in_range(r.worst, 0, ERROR_MAX);
		sim_free(&s);
	}
}

/* As nvhe.c's vms_close_together; the look ahead tells what the first spans of each were. */
static void vms_close_together(void **state)
{
	static const int64_t apart[] = { 200 * USEC, 2165 * USEC, 7 * MSEC };

	for (size_t i = 0; i < ARRAY_SIZE(apart); i++) {
		const int64_t vms[] = { 15973203244, 15973203244 + apart[i] };
		size_t wrong = 0, all = 0;

		for (uint64_t seed = 1; seed < 40; seed++) {
			struct sim s;
			struct run r;

			sim_init(&s, seed);
			s.text = seed % 2;
			s.interrupt = 5 * MSEC;
			sim_guests(&s, vms, 2, 300);
			r = repair(&s, 100, false);
			wrong += r.wrong;
			for (size_t k = 0; k < s.n; k++)
				all += s.v[k].vcpu > 0;
			sim_free(&s);
		}
		print_message("%lld us apart: %zu of %zu wrong\n", (long long)apart[i] / 1000, wrong, all);
		assert_in_range(wrong, 0, all / 200);
	}
}

/* The VM was stopped: what lies ahead is not what was. */
static void offset_changes(void **state)
{
	static const int64_t stops[] = { 2 * MSEC, 333 * MSEC, 70 * SEC };

	for (uint64_t seed = 1; seed < 60; seed++) {
		struct sim s;
		struct run r;

		sim_init(&s, seed);
		for (int i = 0; i < 60; i++) {
			if (i % 20 == 19) /* while the VM stands, the time goes on */
				s.now += stops[seed % 3];
			sim_span(&s, 87, 20 * SEC + i / 20 * stops[seed % 3]);
			sim_host(&s);
		}
		r = repair(&s, 200, false);
		assert_in_range(r.worst, 0, ERROR_MAX);
		sim_free(&s);
	}
}

static void losses(void **state)
{
	static const int64_t vm[] = { 9947590123 };

	for (uint64_t seed = 1; seed < 40; seed++) {
		struct sim s;
		struct run r;

		sim_init(&s, seed);
		s.busy = true; /* a chunk's bounds are less than CNTVOFF apart */
		sim_guests(&s, vm, 1, 300);
		for (size_t at = 60; at + 100 < s.n; at += 20 + rnd(&s) % 100)
			sim_lose(&s, at, at + 1 + rnd(&s) % 40);
		r = repair(&s, 50, true);
		assert_in_range(r.worst, 0, ERROR_MAX);
		sim_free(&s);
	}
}

/* Nothing is held beyond what was read when nothing is open, and never more than the limit. */
static void what_is_held(void **state)
{
	struct run r;
	struct sim s;

	sim_init(&s, 3);
	for (int i = 0; i < 2000; i++)
		sim_host(&s);
	r = repair(&s, 10, false);
	assert_int_equal(r.held_most, 0);
	sim_free(&s);

	sim_init(&s, 3);
	sim_hypercall(&s, 10 * SEC); /* and never put */
	for (int i = 0; i < 20000; i++)
		sim_run(&s, 87);
	r = repair(&s, 10, false);
	assert_in_range(r.held_most, 1000, 40000);
	sim_free(&s);
}

static void a_failure_is_told(void **state)
{
	struct run r = { .fail_at = 5 };
	struct sim s;

	sim_init(&s, 3);
	while (s.n < 10)
		sim_host(&s);
	r.s = &s;
	r.hold = hold_new(1, NULL, take, &r);
	while (r.given < s.n)
		give(&r);
	assert_int_equal(hold_release(r.hold, true), -28);
	assert_int_equal(r.taken, 6);
	hold_free(r.hold);
	sim_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_spans),	  cmocka_unit_test(vms_close_together),
		cmocka_unit_test(offset_changes), cmocka_unit_test(losses),
		cmocka_unit_test(what_is_held),	  cmocka_unit_test(a_failure_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
