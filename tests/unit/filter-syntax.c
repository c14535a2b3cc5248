// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filters that libtraceevent can be given, and those that it cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "read/filter.h"

static void test_right(void **state)
{
	static const char *const filters[] = {
		"kvm",
		"sched/sched_switch, kvm.*",
		"sched_switch: prev_pid == 0",
		"sched_switch:prev_pid==0||(next_prio<0x64&&!(next_pid!=3))",
		"sched: prev_comm =~ \"a && (\" || prev_comm !~ 'b\"'",
		".*:COMM != \"trace-cmd\"",
		"x: !a & 8",
		"x: a >= 2 && c <= 1 && d << 2 && e >> 1 && f + 1 && g - 1 && h * 2 && i / 3 && j "
		"% 4",
	};
	char why[128];

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		if (filter_syntax(filters[i], why, sizeof(why)))
			fail_msg("'%s': %s", filters[i], why);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *filter, *why;
	} rows[] = {
		{ "x:", "a field is missing at its end" },
		{ "x: a", "a comparison is missing at its end" },
		{ "x: a && b == 1", "a comparison is missing at '&& b == 1'" },
		{ "x: a ==", "a value is missing at its end" },
		{ "x: a == )", "a value is missing at ')'" },
		{ "x: == 1", "a field is missing at '== 1'" },
		{ "x: a == 1 &&", "a field is missing at its end" },
		{ "x: a == 1 b", "nothing is expected at 'b'" },
		{ "x: a == 1 == 2", "nothing is expected at '== 2'" },
		{ "x: a == 1)", "nothing is expected at ')'" },
		{ "x: (a == 1", "a ')' is missing at its end" },
		{ "x: !", "a field is missing at its end" },
		{ "x: !!a == 1", "two '!' are none at 'a == 1'" },
		{ "x: 5 == a", "a field comes first at '5 == a'" },
		{ "x: a == b", "neither a number nor a string in quotes at 'b'" },
		{ "x: a == 5x", "neither a number nor a string in quotes at '5x'" },
		{ "x: a == \"b,c\"", "only ASCII without a comma is understood at ',c\"'" },
		{ "x: a == \"\303\244\"", "only ASCII without a comma is understood at '\303\244\"'" },
		{ "x: a == \"b", "a string is not closed at '\"b'" },
		{ "x: a == -1", "no negative numbers here (a field of 4 bytes holds -1 as "
				"0xffffffffffffffff) at '-1'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char why[128] = "";

		assert_true(filter_syntax(rows[i].filter, why, sizeof(why)) < 0);
		assert_string_equal(why, rows[i].why);
	}
}

static void test_long(void **state)
{
	char filter[1000] = "x:", why[128] = "";

	for (int i = 0; i < 40; i++)
		strcat(filter, "a == 1 || ");
	strcat(filter, "a == 1");
	assert_true(filter_syntax(filter, why, sizeof(why)) < 0);
	assert_string_equal(why, "longer than 400 characters: give several");
	memset(filter + 2, '(', 300);
	filter[302] = '\0';
	assert_true(filter_syntax(filter, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "too many parentheses at "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests_name("filter-syntax", tests, NULL, NULL);
}
