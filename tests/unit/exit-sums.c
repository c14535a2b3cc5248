// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rows of exit tables are found again, and there is an end to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ask/states/exit-sums.h"

static struct exits_row row(enum exits_table table, size_t vcpu, uint64_t key, uint32_t info)
{
	return (struct exits_row){ .table = table, .vcpu = vcpu, .key = key, .info = info };
}

static size_t find(struct exits_map *m, struct exits_row like)
{
	size_t index;

	assert_int_equal(exits_map_row(m, &like, &index), 0);
	return index;
}

/* Each of table, vCPU, key and info makes another row. */
static void test_rows(void **state)
{
	struct exits_map m = { 0 };

	(void)state;
	assert_int_equal(find(&m, row(EXITS_REASON, 0, 2, 0)), 0);
	assert_int_equal(find(&m, row(EXITS_MMIO, 0, 2, 0)), 1);
	assert_int_equal(find(&m, row(EXITS_REASON, 1, 2, 0)), 2);
	assert_int_equal(find(&m, row(EXITS_REASON, 0, 3, 0)), 3);
	assert_int_equal(find(&m, row(EXITS_REASON, 0, 2, 1)), 4);
	assert_int_equal(find(&m, row(EXITS_REASON, 0, 2 | 1ull << 32, 0)), 5);
	assert_int_equal(find(&m, row(EXITS_REASON, 0, 2, 0)), 0);
	assert_int_equal(find(&m, row(EXITS_REASON, 0, 2, 1)), 4);
	assert_int_equal(m.n, 6);
	exits_map_release(&m);
}

static void test_too_many(void **state)
{
	struct exits_map m = { 0 };

	(void)state;
	for (uint64_t key = 0; key < EXITS_ROWS_MAX; key++)
		assert_int_equal(find(&m, row(EXITS_IOPORT, key % 7, key * 4096, 0)), key);
	assert_int_equal(find(&m, row(EXITS_IOPORT, 0, 1, 0)), EXITS_NO_ROW);
	for (uint64_t key = 0; key < EXITS_ROWS_MAX; key++)
		assert_int_equal(find(&m, row(EXITS_IOPORT, key % 7, key * 4096, 0)), key);
	exits_map_release(&m);
}

/* A stay's kind tells exits apart: of x86 by VMX and SVM, of arm64 by traps' classes. */
static void test_kinds(void **state)
{
	(void)state;
	assert_int_not_equal(exits_kind(1, 0), exits_kind(1, EXITS_ARM64));
	assert_int_not_equal(exits_kind(1 | 1ull << 32, 0), exits_kind(1 | 2ull << 32, 0));
	assert_int_not_equal(exits_kind(2, EXITS_CLASS + 1), exits_kind(2, EXITS_CLASS + 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
