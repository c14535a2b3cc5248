// SPDX-License-Identifier: LGPL-2.1-or-later
/* The traced command: held back, let go, followed, killed when never let go. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/program.h"

static void wait_end(struct command *c)
{
	for (int i = 0; i < 1000 && !command_ended(c); i++)
		poll(NULL, 0, 10);
	assert_true(command_ended(c));
}

static void test_runs_only_when_let_go(void **state)
{
	char marker[] = "/tmp/hyptrace-command-XXXXXX";
	char *argv[] = { "rm", marker, NULL };
	struct command c;

	close(mkstemp(marker));
	assert_int_equal(command_fork(&c, argv, NULL), 0);
	assert_int_equal(access(marker, F_OK), 0);
	assert_false(command_ended(&c));
	assert_int_equal(command_go(&c), 0);
	wait_end(&c);
	assert_int_equal(WEXITSTATUS(c.status), 0);
	assert_int_equal(access(marker, F_OK), -1);
	command_release(&c);
}

static void test_status(void **state)
{
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	struct command c;

	assert_int_equal(command_fork(&c, argv, NULL), 0);
	assert_int_equal(command_go(&c), 0);
	wait_end(&c);
	assert_int_equal(WEXITSTATUS(c.status), 7);
	command_release(&c);
}

static void test_end_is_told(void **state)
{
	char *argv[] = { "true", NULL };
	struct pollfd p = { .events = POLLIN };
	struct command c;

	assert_int_equal(command_fork(&c, argv, NULL), 0);
	p.fd = c.end_fd;
	if (p.fd < 0) { /* an old kernel, or a sandbox */
		command_release(&c);
		skip();
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(command_go(&c), 0);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(command_ended(&c));
	command_release(&c);
	assert_int_equal(c.end_fd, -1);
}

static void test_not_found(void **state)
{
	char *argv[] = { "/nowhere/to/be/found", NULL };
	struct command c;

	assert_int_equal(command_fork(&c, argv, NULL), 0);
	assert_int_equal(command_go(&c), -ENOENT);
	wait_end(&c);
	command_release(&c);
}

static void test_no_such_user(void **state)
{
	char *argv[] = { "true", NULL };
	struct command c;

	assert_int_equal(command_fork(&c, argv, "no such user"), -ENOENT);
	command_release(&c);
}

static void test_never_let_go(void **state)
{
	char *argv[] = { "sleep", "1000", NULL };
	struct command c;
	pid_t pid;

	assert_int_equal(command_fork(&c, argv, NULL), 0);
	pid = c.pid;
	command_release(&c);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void test_signal(void **state)
{
	char *argv[] = { "sleep", "1000", NULL };
	sigset_t set, old;
	struct command c;

	/* what is blocked here is not blocked in the command */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	assert_int_equal(command_fork(&c, argv, NULL), 0);
	assert_int_equal(command_go(&c), 0);
	assert_int_equal(kill(c.pid, SIGTERM), 0);
	wait_end(&c);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(WTERMSIG(c.status), SIGTERM);
	command_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_only_when_let_go),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_end_is_told),
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_no_such_user),
		cmocka_unit_test(test_never_let_go),
		cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
