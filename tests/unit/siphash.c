// SPDX-License-Identifier: GPL-2.0-only
/* SipHash-2-4 gives the values that its authors publish. */
#include "convert/export/export.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/array.h"

/* Of the bytes 0, 1, 2, ... with the key 0, 1, ..., 15 (vectors.h of the reference implementation). */
static void test_vectors(void **state)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} rows[] = {
		{ 0, 0x726fdb47dd0e0e31 }, { 1, 0x74f839c593dc67fd },  { 7, 0xab0200f58b01d137 },
		{ 8, 0x93f5f5799a932462 }, { 15, 0xa129ca6149be45e5 },
	};
	const struct siphash_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	uint8_t bytes[16];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_true(siphash(&key, bytes, rows[i].len) == rows[i].hash);
}

static void test_key(void **state)
{
	const struct siphash_key a = { { 1, 2 } }, b = { { 1, 3 } };

	assert_true(siphash(&a, "name", 4) == siphash(&a, "name", 4));
	assert_true(siphash(&a, "name", 4) != siphash(&b, "name", 4));
	assert_true(siphash(&a, "name", 4) != siphash(&a, "name", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
