// SPDX-License-Identifier: GPL-2.0-only
/* Options of hyptrace_record and hyptrace_recover on their way to a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hyptrace.h"
#include "record/session/session.h"

static int stop_fd;

/* In place of the library's, which would record. */
int session_record(const struct record_plan *plan, const struct session_opts *opts,
		   struct session_summary *summary)
{
	stop_fd = opts->stop_fd;
	return 0;
}

int session_recover(const char *spool, const char *output, const struct session_opts *opts,
		    struct session_summary *summary)
{
	stop_fd = opts->stop_fd;
	return 0;
}

/* -1 is none, and what a caller without options has; 0 is a descriptor. */
static void test_stop_fd(void **state)
{
	static const char *const argv[] = { "record", "-e", "sched", "-o", "x.dat", "true" };
	struct hyptrace_record_opts opts = { .size = sizeof(opts) };
	struct hyptrace_plan *plan;

	assert_int_equal(hyptrace_plan_parse(&plan, 6, argv, NULL, 0), 0);
	for (int fd = -1; fd < 2; fd++) {
		opts.stop_fd = fd;
		assert_int_equal(hyptrace_record(plan, &opts, NULL), 0);
		assert_int_equal(stop_fd, fd);
	}
	assert_int_equal(hyptrace_record(plan, NULL, NULL), 0);
	assert_int_equal(stop_fd, -1);
	stop_fd = 7;
	assert_int_equal(hyptrace_recover("spool", NULL, NULL, NULL), 0);
	assert_int_equal(stop_fd, -1);
	hyptrace_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stop_fd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
