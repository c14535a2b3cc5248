// SPDX-License-Identifier: GPL-2.0-only
/* Conversions of print formats. */
#include "base/decode/conversion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const char *scan(const char *s, struct conversion *c)
{
	return conversion_scan(s, s + strlen(s), c);
}

static void test_parts(void **state)
{
	static const char all[] = "-0# +12.3llx rest";
	struct conversion c;

	assert_ptr_equal(scan(all, &c), all + strlen("-0# +12.3llx"));
	assert_true(c.left && c.zero && c.alternate && c.plus);
	assert_int_equal(c.width, 12);
	assert_int_equal(c.precision, 3);
	assert_int_equal(c.n_length, 2);
	assert_true(conversion_length_of(&c, "lL"));
	assert_false(conversion_length_of(&c, "h"));
	assert_int_equal(c.letter, 'x');

	assert_non_null(scan("*.*s", &c));
	assert_true(c.width_is_arg && c.precision_is_arg);
	assert_int_equal(c.width, 0);

	assert_non_null(scan("d", &c));
	assert_int_equal(c.precision, -1);
	assert_true(conversion_length_of(&c, ""));
	assert_non_null(scan(".d", &c));
	assert_int_equal(c.precision, 0);
	assert_non_null(scan("99999999999999999999u", &c));
	assert_int_equal(c.width, CONVERSION_MOST);
}

/* The end of the text is the end, NUL or not. */
static void test_ends(void **state)
{
	static const char *const cut[] = { "", "-", "08", "08.", "3.4", "ll", "*" };
	static const char text[] = "08lx";
	struct conversion c;

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		assert_null(scan(cut[i], &c));
	for (size_t n = 0; n < 4; n++)
		assert_null(conversion_scan(text, text + n, &c));
	assert_ptr_equal(conversion_scan(text, text + 4, &c), text + 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
