// SPDX-License-Identifier: GPL-2.0-only
/* The hash map: indices of an array's entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/map.h"

static bool same(const void *array, size_t i, const void *wanted)
{
	return ((const uint64_t *)array)[i] == *(const uint64_t *)wanted;
}

/* hash: of a value; all that are looked for are found, and no others. */
static void check_map(uint32_t (*hash)(uint64_t), size_t n)
{
	uint64_t *v = calloc(n, sizeof(*v));
	struct map m = { 0 };

	assert_non_null(v);
	for (size_t i = 0; i < n; i++) {
		v[i] = i * i * 7 + 3;
		assert_int_equal(map_find(&m, hash(v[i]), same, v, &v[i]), MAP_NONE);
		assert_int_equal(map_insert(&m, hash(v[i]), i), 0);
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t other = v[i] + 1;

		assert_int_equal(map_find(&m, hash(v[i]), same, v, &v[i]), i);
		assert_int_equal(map_find(&m, hash(other), same, v, &other), MAP_NONE);
	}
	assert_int_equal(m.n, n);
	map_release(&m);
	assert_int_equal(map_find(&m, hash(v[0]), same, v, &v[0]), MAP_NONE);
	free(v);
}

static uint32_t all_alike(uint64_t key)
{
	return UINT32_MAX;
}

static void many(void **state)
{
	check_map(map_hash, 100000);
}

static void colliding(void **state)
{
	check_map(all_alike, 200);
}

/* Appended to an array and found there, by a key of bytes. */
static void pushed(void **state)
{
	uint64_t *v = NULL, one;
	struct map m = { 0 };
	size_t n = 0;

	for (one = 0; one < 1000; one++)
		assert_int_equal(map_push(&m, map_hash_bytes(&one, sizeof(one)), &v, &n, &one, sizeof(one)),
				 0);
	assert_int_equal(n, 1000);
	for (one = 0; one < 1000; one++)
		assert_int_equal(map_find(&m, map_hash_bytes(&one, sizeof(one)), same, v, &one), one);
	assert_int_equal(map_find(&m, map_hash_bytes(&one, sizeof(one)), same, v, &one), MAP_NONE);
	map_release(&m);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many),
		cmocka_unit_test(colliding),
		cmocka_unit_test(pushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
