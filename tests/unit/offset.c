// SPDX-License-Identifier: LGPL-2.1-or-later
/* Offset tables: as stock applies them, and their bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "file/dat/offset.h"

/* What libtracecmd does (timestamp_correction_calc), written down plainly. */
static uint64_t stock_line(const struct offset_point *min, const struct offset_point *max, uint64_t ts)
{
	int64_t delta = (int64_t)(max->time - min->time);
	int64_t rise = (int64_t)(ts - min->time) * (max->offset - min->offset);
	int64_t cor = min->offset + (rise + delta / 2) / delta;

	return (ts * (uint64_t)min->scaling >> min->frac) + (uint64_t)cor;
}

static uint64_t stock(const struct offset_point *v, int n, uint64_t ts)
{
	int min = 0, max = n - 1, mid = (min + max) / 2;

	if (n == 1)
		return ts + (uint64_t)v[0].offset;
	if (n == 2 || ts <= v[0].time)
		return stock_line(&v[0], &v[1], ts);
	if (ts >= v[n - 1].time)
		return stock_line(&v[n - 2], &v[n - 1], ts);
	while (min <= max) {
		if (ts < v[mid].time)
			max = mid - 1;
		else if (ts > v[mid].time)
			min = mid + 1;
		else
			break;
		mid = (min + max) / 2;
	}
	return stock_line(&v[mid], &v[mid + 1], ts);
}

static void test_as_stock(void **state)
{
	srand(1);
	for (int round = 0; round < 2000; round++) {
		struct offset_point v[9] = { { 0 } };
		struct offset_table t = { v, 1 + (uint32_t)rand() % 9 };

		for (uint32_t i = 0; i < t.n; i++) {
			v[i].time = (i ? v[i - 1].time : 1000000) + 1 + (uint64_t)rand() % 1000000000;
			v[i].offset = rand() - RAND_MAX / 2;
			v[i].scaling = 1;
		}
		for (int k = 0; k < 20; k++) {
			uint64_t ts = k < (int)t.n ? v[k].time : (uint64_t)rand() * 2;

			assert_int_equal(offset_apply(&t, OFFSET_INTERPOLATE, ts), stock(v, (int)t.n, ts));
		}
	}
}

static void test_corners(void **state)
{
	struct offset_point v[] = { { 100, -50, 1, 0 }, { 200, 50, 1, 0 } };
	struct offset_table t = { v, 2 }, none = { 0 };

	assert_int_equal(offset_apply(&none, 1, 77), 77);
	assert_int_equal(offset_apply(&t, OFFSET_INTERPOLATE, 150), 150);
	assert_int_equal(offset_apply(&t, OFFSET_INTERPOLATE, 300), 450); /* the line goes on */
	assert_int_equal(offset_apply(&t, 0, 150), 100);		  /* a step */
	t.n = 1;
	assert_int_equal(offset_apply(&t, OFFSET_INTERPOLATE, 1000), 950);
	v[0].scaling = 3;
	v[0].frac = 1;
	t.n = 2;
	assert_int_equal(offset_apply(&t, 0, 100), 100 * 3 / 2 - 50);
	/* from one end of what there is to the other: 64 bits wrap */
	v[0] = (struct offset_point){ 0, INT64_MIN, 1, 0 };
	v[1] = (struct offset_point){ UINT64_MAX, INT64_MAX, 1, 0 };
	assert_int_equal(offset_apply(&t, OFFSET_INTERPOLATE, 5), (uint64_t)INT64_MIN + 10);
}

static void test_time_shift(void **state)
{
	const struct offset_point v[] = { { 10, -5, 1, 0 }, { 20, 7, 1, 0 }, { 40, INT64_MIN, 1, 0 } };
	struct offset_shift s, back;
	struct buf b = { 0 };

	assert_int_equal(offset_shift_fill(&s, 0x123456789abcdef0, 3, v, 3), 0);
	offset_shift_encode(&s, &b);
	assert_int_equal(buf_status(&b), 0);
	assert_int_equal(b.len, 16 + 3 * (4 + 3 * 24) + 3 * 3 * 8);
	assert_int_equal(offset_shift_decode(b.data, b.len, &back), 0);
	assert_int_equal(back.peer, s.peer);
	assert_int_equal(back.flags, OFFSET_INTERPOLATE);
	assert_int_equal(back.n_cpus, 3);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(back.cpus[i].v, v, sizeof(v));
	assert_int_equal(offset_shift_apply(&back, 3, 99), 99);
	offset_shift_release(&back);
	/* without fractions, as 2.9 wrote it */
	assert_int_equal(offset_shift_decode(b.data, b.len - 72, &back), 0);
	offset_shift_release(&back);
	for (size_t len = 0; len < b.len; len++)
		if (len != b.len - 72)
			assert_int_equal(offset_shift_decode(b.data, len, &back), -EBADMSG);
	buf_release(&b);
	offset_shift_release(&s);
}

static void test_fill(void **state)
{
	const struct offset_point one = { 10, 5, 1, 0 }, twice[] = { one, one };
	struct offset_shift s;

	assert_int_equal(offset_shift_fill(&s, 1, 2, &one, 1), 0);
	assert_int_equal(s.cpus[1].n, 2); /* stock wants two */
	assert_int_equal(offset_shift_apply(&s, 1, 1000000), 1000005);
	offset_shift_release(&s);
	assert_int_equal(offset_shift_fill(&s, 1, 2, twice, 2), -EINVAL);
	assert_int_equal(offset_shift_fill(&s, 1, 2, &one, 0), -EINVAL);
}

/* The points' bounds are stored after the CPUs, where stock sees one CPU more. */
static void test_bounds(void **state)
{
	const struct offset_point v[] = { { 10, -5, 1, 0 }, { 20, 7, 1, 0 }, { 40, 9, 1, 0 } };
	const uint64_t bounds[] = { 100, 200, UINT64_MAX };
	struct offset_shift s, back;
	struct buf b = { 0 };

	assert_int_equal(offset_shift_fill(&s, 1, 2, v, 3), 0);
	assert_int_equal(offset_shift_set_bounds(&s, bounds, 3, "kvm windows", "soft"), 0);
	offset_shift_encode(&s, &b);
	assert_int_equal(b.len, 16 + 3 * (4 + 3 * 24) + 3 * 3 * 8);
	assert_int_equal(((uint32_t *)b.data)[3], 3);
	assert_int_equal(offset_shift_decode(b.data, b.len, &back), 0);
	assert_int_equal(back.n_cpus, 2);
	assert_memory_equal(back.cpus[1].v, v, sizeof(v));
	assert_string_equal(back.method, "kvm windows");
	assert_string_equal(back.class, "soft");
	assert_int_equal(back.n_bounds, 3);
	assert_int_equal(back.bounds[1], 200);
	assert_int_equal(back.bounds[2], UINT64_MAX);
	offset_shift_release(&back);
	for (size_t len = 0; len < b.len; len++)
		if (len != b.len - 72)
			assert_int_equal(offset_shift_decode(b.data, len, &back), -EBADMSG);
	buf_release(&b);
	offset_shift_release(&s);
}

static void test_guest(void **state)
{
	struct offset_vcpu v[] = { { 0, 100 }, { 1, 102 } };
	const struct offset_guest g = { (char *)"Guest", 42, 2, v };
	struct offset_guest back;
	struct buf b = { 0 };

	offset_guest_encode(&g, &b);
	assert_int_equal(b.len, 6 + 8 + 4 + 16);
	assert_int_equal(offset_guest_decode(b.data, b.len, &back), 0);
	assert_string_equal(back.name, "Guest");
	assert_int_equal(back.trace_id, 42);
	assert_int_equal(back.n, 2);
	assert_memory_equal(back.vcpus, v, sizeof(v));
	offset_guest_release(&back);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(offset_guest_decode(b.data, len, &back), -EBADMSG);
	buf_release(&b);
}

static void test_clocks(void **state)
{
	assert_true(clock_in_ticks("counter") && clock_in_ticks("x86-tsc") && clock_in_ticks("ppc-tb"));
	assert_false(clock_in_ticks("boot") || clock_in_ticks("local") || clock_in_ticks(""));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_stock),   cmocka_unit_test(test_corners),
		cmocka_unit_test(test_time_shift), cmocka_unit_test(test_fill),
		cmocka_unit_test(test_guest),	   cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
