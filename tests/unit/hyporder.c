// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge tests/tools/hyporder itself: does it see what is wrong? */
#include "dat-fixture.h"

enum fault { NONE, NO_ENTRY, NO_GUEST_EXIT, ONE_EXIT_LOST, ONE_EXIT_MISSING, OTHER_VCPU };

/* 20 runs of a guest on one CPU; hyp times cut to us. */
static void make_runs(struct fixture *x, enum fault fault)
{
	struct pages *top = add_buffer(x, "", 4096, 1), *hyp = add_buffer(x, "hyp", 4096, 1);

	for (unsigned int i = 0; i < 20; i++) {
		int vcpu = fault == OTHER_VCPU && i == 10 ? 88 : 87;
		uint64_t t = 1000000300 + i * 100000;

		if (fault != NO_ENTRY)
			add_entry(top, t, 87);
		add_hyp(hyp, (t + 2000) / 1000 * 1000, HYP_EXIT, ERET_GUEST, vcpu);
		if (fault != NO_GUEST_EXIT)
			add_hyp(hyp, (t + 40000) / 1000 * 1000, HYP_ENTER, GUEST_EXIT, vcpu);
		add_hyp(hyp, (t + 41000) / 1000 * 1000, HYP_EXIT, ERET_HOST, 0);
		if (i != 10 || (fault != ONE_EXIT_LOST && fault != ONE_EXIT_MISSING))
			add_exit(top, t + 50000, 87);
		if (i == 10 && fault == ONE_EXIT_LOST) {
			pages_cut(top);
			top->lost = 1;
		}
	}
	dat_from_spool(x);
}

static void expect_order(struct fixture *x, int status, const char *expected)
{
	char *out;

	assert_int_equal(write_dat(x), 0);
	out = run(status, "%s/hyporder %s hyp", tools(), x->path);
	if (!strstr(out, expected))
		fail_msg("%s", out);
	free(out);
	drop_buffers(x);
}

/* Shifts a page's times. */
static int shift(void *ctx, unsigned int cpu, void *page, size_t size)
{
	uint64_t ts;

	memcpy(&ts, page, 8);
	ts += *(int64_t *)ctx;
	memcpy(page, &ts, 8);
	return 0;
}

static void test_hyporder(void **state)
{
	static const struct {
		int64_t shift; /* of the hypervisor's times */
		enum fault fault;
		int status;
		const char *expected;
	} cases[] = {
		{ 0, NONE, 0, "pairs checked 20, violations 0, within the microsecond cut 0\n" },
		/* then eret_guest is 300 ns before kvm_entry */
		{ -2000, NONE, 0, "pairs checked 20, violations 0, within the microsecond cut 20\n" },
		/* then 1300 ns; the first one is before all host events */
		{ -3000, NONE, 1, "pairs checked 19, violations 19, within the microsecond cut 0\n" },
		/* then guest_exit is after kvm_exit */
		{ 11000, NONE, 1, "pairs checked 20, violations 20, within the microsecond cut 0\n" },
		{ 10000000000, NONE, 1, "pairs checked 0, violations 0, within the microsecond cut 0\n" },
		{ 0, OTHER_VCPU, 1, "pairs checked 20, violations 1, within the microsecond cut 0\n" },
		{ 0, NO_ENTRY, 3, "pairs checked 0, violations 0, within the microsecond cut 0\n" },
		{ 0, NO_GUEST_EXIT, 3, "pairs checked 0, violations 0, within the microsecond cut 0\n" },
		{ 0, ONE_EXIT_LOST, 0, "pairs checked 19, violations 0, within the microsecond cut 0\n" },
		{ 0, ONE_EXIT_MISSING, 3, "pairs checked 19, violations 0, within the microsecond cut 0\n" },
	};
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t by = cases[i].shift;

		make_runs(x, cases[i].fault);
		x->buffers[1].fix_page = shift;
		x->buffers[1].fix_ctx = &by;
		expect_order(x, cases[i].status, cases[i].expected);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_hyporder),
	};

	return cmocka_run_group_tests_name("hyporder", tests, NULL, NULL);
}
