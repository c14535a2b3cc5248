// SPDX-License-Identifier: GPL-2.0-only
/* The hypervisor's share in windows of its text, and the error of their mean. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/array.h"
#include "record/hyp/hypevents.h"
#include "record/watch/watcher.h"

#define HYP_FORMAT(name, id)                                                                                 \
	"name: " name "\nID: " id "\nformat:\n"                                                              \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"                             \
	"\tfield:u8 reason;\toffset:2;\tsize:1;\tsigned:0;\n"                                                \
	"\tfield:pid_t vcpu;\toffset:3;\tsize:4;\tsigned:1;\n\n"                                             \
	"print fmt: \"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu\n"

/* A window of two CPUs from 10 s on that lasts for 100 ms. */
#define FROM 10000000000ull
#define TO   10100000000ull

static void window_add(struct hyp_windows *h, const char *text)
{
	static const char *const formats[] = { HYP_FORMAT("hyp_enter", "0"), HYP_FORMAT("hyp_exit", "1") };
	struct hypevents e;

	assert_int_equal(hypevents_init(&e, "hypervisor"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		assert_int_equal(hypevents_add(&e, formats[i], strlen(formats[i])), 0);
	assert_int_equal(hypevents_number(&e, 1), 0);
	assert_int_equal(hyp_window_add(h, &e, text, strlen(text), 2, FROM, TO), 0);
	hypevents_release(&e);
}

static double newest(const struct hyp_windows *h, const char *reason)
{
	for (size_t i = 0; i <= hyp_reasons_n; i++)
		if (!strcmp(hyp_windows_reason(i), reason))
			return h->shares[i][(h->n - 1) % HYP_WINDOWS];
	return -1;
}

/* Time outside of the window is cut off, and so is a visit whose begin or end is not there. */
static void test_window(void **state)
{
	struct hyp_windows h = { 0 };

	window_add(&h, "[000]\t    9.999000: hyp_enter reason=hvc vcpu=0\n"
		       "[000]\t   10.001000: hyp_exit reason=eret_host vcpu=0\n"
		       "[001]\t   10.010000: hyp_exit reason=eret_guest vcpu=87\n"
		       "[000]\t   10.020000: hyp_enter reason=smc vcpu=0\n"
		       "[000]\t   10.024000: hyp_exit reason=eret_host vcpu=0\n"
		       "[000]\t   10.030000: hyp_enter reason=hvc vcpu=0\n"
		       "[000]\t   10.031000: hyp_exit reason=eret_host vcpu=0\n"
		       "[001]\t   10.092000: hyp_enter reason=guest_exit vcpu=87\n");
	assert_int_equal(h.n, 1);
	assert_float_equal(newest(&h, "hvc"), 0.01, 1e-9);
	assert_float_equal(newest(&h, "smc"), 0.02, 1e-9);
	assert_float_equal(newest(&h, "guest_exit"), 0.04, 1e-9);
	/* by its end alone a visit has the reason of that */
	assert_float_equal(newest(&h, "eret_guest"), 0.05, 1e-9);
}

static void test_missed(void **state)
{
	struct hyp_windows h = { 0 };

	window_add(&h, "CPU:0 [LOST 5 EVENTS]\n[000]\t   10.020000: hyp_enter reason=hvc vcpu=0\n"
		       "[000]\t   10.024000: hyp_exit reason=eret_host vcpu=0\n");
	/* plain nVHE, while a vCPU is loaded */
	window_add(&h, "[000]\t    2.020000: hyp_enter reason=hvc vcpu=0\n");
	window_add(&h, "[000]\t   10.020000: hyp_enter reason=hvc vcpu=0\n"
		       "[000]\t   10.024000: hyp_enter reason=hvc vcpu=0\n");
	window_add(&h, "no line of the kernel's\n");
	assert_int_equal(h.n, 0);
	assert_int_equal(h.missed, 4);
	window_add(&h, "");
	assert_int_equal(h.n, 1);
}

static void test_mean(void **state)
{
	struct hyp_windows h = { .n = 1, .shares[0] = { 0.01, 0.03 } };
	double mean, error;

	assert_false(hyp_windows_mean(&h, 0, &mean, &error));
	h.n = 2;
	assert_true(hyp_windows_mean(&h, 0, &mean, &error));
	assert_float_equal(mean, 0.02, 1e-12);
	assert_float_equal(error, 0.01, 1e-12);
	/* the oldest ones are gone */
	h.n = HYP_WINDOWS + 2;
	for (size_t i = 0; i < HYP_WINDOWS; i++)
		h.shares[0][i] = i % 2 ? 0.04 : 0.06;
	assert_true(hyp_windows_mean(&h, 0, &mean, &error));
	assert_float_equal(mean, 0.05, 1e-12);
	assert_float_equal(error, 0.01 / sqrt(HYP_WINDOWS - 1), 1e-12);
}

/* A kernel may have further ones. */
static void test_reasons(void **state)
{
	struct hyp_windows h = { 0 };

	assert_true(hyp_reasons_n < HYP_REASONS);
	window_add(&h, "[000]\t   10.020000: hyp_enter reason=r1 vcpu=0\n"
		       "[000]\t   10.021000: hyp_exit reason=eret_host vcpu=0\n"
		       "[000]\t   10.030000: hyp_enter reason=r2 vcpu=0\n"
		       "[000]\t   10.032000: hyp_exit reason=eret_host vcpu=0\n");
	assert_float_equal(newest(&h, "(others)"), 0.015, 1e-9);
}

/* The journal of another that lives, or was killed: it has what must be put back. */
static void test_journal_of_another(void **state)
{
	char journal[] = "/tmp/hyp-windows-XXXXXX";
	struct hyp_windows h = { 0 };
	int fd = mkstemp(journal);

	assert_true(fd >= 0);
	assert_int_equal(hyp_window_take(&h, "/tmp", journal, 0, NULL), -EEXIST);
	assert_int_equal(access(journal, F_OK), 0);
	unlink(journal);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_window), cmocka_unit_test(test_missed),
					    cmocka_unit_test(test_mean), cmocka_unit_test(test_reasons),
					    cmocka_unit_test(test_journal_of_another) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
