// SPDX-License-Identifier: LGPL-2.1-or-later
/* Many pieces of memory that are freed together. */
#include "base/arena.h"
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void test_many(void **state)
{
	struct arena a = { 0 };
	uint8_t *v[100];

	/* small ones share a chunk, large ones have their own; none overlap */
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		size_t n = i % 10 ? i : 20000;

		v[i] = arena_alloc(&a, n);
		assert_non_null(v[i]);
		assert_int_equal((uintptr_t)v[i] % _Alignof(max_align_t), 0);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(v[i][k], 0);
		memset(v[i], (int)i + 1, n);
	}
	for (size_t i = 1; i < ARRAY_SIZE(v); i++)
		assert_int_equal(v[i][(i % 10 ? i : 20000) - 1], i + 1);
	assert_true(a.used >= 10 * 20000);
	arena_reset(&a);
	assert_int_equal(a.used, 0);
	v[0] = arena_alloc(&a, 64);
	for (size_t k = 0; k < 64; k++)
		assert_int_equal(v[0][k], 0);
	arena_release(&a);
}

static void test_text(void **state)
{
	struct arena a = { 0 };

	assert_string_equal(arena_text(&a, "abc", 3), "abc");
	assert_string_equal(arena_text(&a, "abcdef", 3), "abc");
	assert_string_equal(arena_text(&a, "ab\0cd", 5), "ab");
	assert_string_equal(arena_text(&a, "", 0), "");
	assert_string_equal(arena_text(&a, "\xc3\xa4", 2), "\xc3\xa4");
	/* wrong bytes, each by itself; one cut off at the end */
	assert_string_equal(arena_text(&a, "\xff\xfe!", 3), "\xef\xbf\xbd\xef\xbf\xbd!");
	assert_string_equal(arena_text(&a, "x\xc3\xa4", 2), "x\xef\xbf\xbd");
	assert_string_equal(arena_printf(&a, "%s %d", "\xff", 7), "\xef\xbf\xbd 7");
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
