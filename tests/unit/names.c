// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tasks' names are those that libtraceevent knows, from when it knows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "read/tepfile.h"

static void test_learned(void **state)
{
	struct tep_handle *tep = tep_alloc();
	struct names n;

	names_init(&n, tep);
	assert_int_equal(tep_register_comm(tep, "shell", 7), 0);
	assert_int_equal(tep_register_comm(tep, "<...>", 9), 0);
	assert_string_equal(names_find(&n, 7), "shell");
	assert_string_equal(names_find(&n, 9), "<...>"); /* one that is called so */
	assert_string_equal(names_find(&n, 0), "<idle>");
	assert_null(names_find(&n, 8));
	assert_null(names_find(&n, -1));
	assert_int_equal(tep_register_comm(tep, "cat", 8), 0);
	names_learned(&n);
	assert_string_equal(names_find(&n, 8), "cat");
	assert_null(names_find(&n, -1));
	assert_string_equal(names_find(&n, 7), "shell");
	names_release(&n);
	tep_free(tep);
}

static void test_many(void **state)
{
	struct tep_handle *tep = tep_alloc();
	struct names n;
	char name[16];

	names_init(&n, tep);
	for (int pid = 1; pid < 3000; pid += 2) {
		snprintf(name, sizeof(name), "t%d", pid);
		assert_int_equal(tep_register_comm(tep, name, pid), 0);
	}
	for (int round = 0; round < 3; round++)
		for (int pid = 1; pid < 3000; pid++) {
			snprintf(name, sizeof(name), "t%d", pid);
			if (pid % 2)
				assert_string_equal(names_find(&n, pid), name);
			else
				assert_null(names_find(&n, pid));
		}
	names_release(&n);
	tep_free(tep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learned),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
