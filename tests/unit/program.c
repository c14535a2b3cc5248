// SPDX-License-Identifier: GPL-2.0-only
/* What a program prints: found in PATH, bounded in length and time. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/program.h"

static struct buf out;

static int prints(size_t max, int timeout_ms, const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };

	buf_release(&out);
	return program_output(argv, &out, max, timeout_ms);
}

static int release(void **state)
{
	buf_release(&out);
	return 0;
}

static void test_output(void **state)
{
	assert_int_equal(prints(100, 10000, "echo one; echo lost >&2; cat; echo two"), 0);
	assert_string_equal(buf_str(&out), "one\ntwo\n");
	assert_int_equal(prints(100, 10000, "echo one; exit 3"), 3);
	assert_string_equal(buf_str(&out), "one\n");
}

static void test_no_shell(void **state)
{
	const char *echo[] = { "echo", "$HOME; *", NULL }, *none[] = { "/no/such program", NULL };

	buf_release(&out);
	assert_int_equal(program_output(echo, &out, 100, 10000), 0);
	assert_string_equal(buf_str(&out), "$HOME; *\n");
	assert_int_equal(program_output(none, &out, 100, 10000), -ENOENT);
}

static void test_bounds(void **state)
{
	assert_int_equal(prints(10000, 60000, "while :; do echo more; done"), -EFBIG);
	assert_in_range(out.len, 10001, 10000 + 4096);
	assert_int_equal(prints(100, 100, "exec sleep 60"), -ETIMEDOUT);
}

/* As a recorder has them: a program that cannot be ended would outlive it. */
static void test_signals(void **state)
{
	sigset_t term, old;
	int ret;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &old);
	ret = prints(100, 10000, "kill -TERM $$; exit 0");
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(ret, -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_output, release),
		cmocka_unit_test_teardown(test_no_shell, release),
		cmocka_unit_test_teardown(test_bounds, release),
		cmocka_unit_test_teardown(test_signals, release),
	};

	return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
