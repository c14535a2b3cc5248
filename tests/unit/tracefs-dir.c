// SPDX-License-Identifier: GPL-2.0-only
/* Where tracefs is: by what is given, and by the text of /proc/self/mountinfo. */
#include "record/tracefs/undo.h"
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PROC  "22 27 0:20 / /proc rw,nosuid - proc proc rw\n"
#define OTHER "40 27 0:30 / /mnt/tracefs rw - ext4 /dev/tracefs rw\n"

static const struct {
	const char *mountinfo, *want; /* NULL: nowhere */
} cases[] = {
	{ PROC "35 24 0:12 / /sys/kernel/tracing rw,nosuid shared:11 - tracefs tracefs rw\n",
	  "/sys/kernel/tracing" },
	/* further optional fields, or none; no newline at the end */
	{ OTHER "35 24 0:12 / /t rw shared:1 master:2 - tracefs none rw", "/t" },
	{ "35 24 0:12 / /t rw - tracefs none rw\n", "/t" },
	/* the first of several */
	{ "1 2 0:1 / /a rw - tracefs x rw\n1 2 0:1 / /b rw - tracefs x rw\n", "/a" },
	/* one instance alone, mounted elsewhere, is not the whole */
	{ "1 2 0:1 /instances/x /a rw - tracefs x rw\n1 2 0:1 / /b rw - tracefs x rw\n", "/b" },
	/* debugfs has it too, when there is nothing better */
	{ "1 2 0:1 / /d rw - debugfs x rw\n", "/d/tracing" },
	{ "1 2 0:1 / /d rw - debugfs x rw\n1 2 0:1 / /b rw - tracefs x rw\n", "/b" },
	/* blanks and backslashes are written in octal */
	{ "1 2 0:1 / /a\\040b\\134c rw - tracefs x rw\n", "/a b\\c" },
	{ "1 2 0:1 / /a\\04 rw - tracefs x rw\n", "/a\\04" },
	{ PROC OTHER, NULL },
	{ "1 2 0:1 / /a rw - tracefs2 x rw\n", NULL },
	{ "1 2 0:1 - tracefs x\n - tracefs x\n-\n\n", NULL },
	{ "", NULL },
};

static void test_mountinfo(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *dir = tracefs_mounted(cases[i].mountinfo, strlen(cases[i].mountinfo));

		if (cases[i].want)
			assert_string_equal(dir, cases[i].want);
		else
			assert_null(dir);
		free(dir);
	}
}

static char said[256];

static void note(void *ctx, enum log_level level, const char *msg)
{
	strncpy(said, msg, sizeof(said) - 1);
}

static void test_given(void **state)
{
	struct log log = { .fn = note };
	char *dir = tracefs_dir("/", &log);

	assert_string_equal(dir, "/");
	free(dir);
	assert_null(tracefs_dir("/there/is/none", &log));
	assert_string_equal(said, "cannot open '/there/is/none': No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mountinfo),
		cmocka_unit_test(test_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
