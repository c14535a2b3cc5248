// SPDX-License-Identifier: GPL-2.0-only
/* System register names. */
#include "base/decode/esr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"

static void test_names(void **state)
{
	static const struct {
		struct sysreg r;
		const char *name;
	} rows[] = {
		{ { 3, 0, 1, 0, 0 }, "SCTLR_EL1" },	 { { 3, 0, 12, 11, 5 }, "ICC_SGI1R_EL1" },
		{ { 3, 3, 14, 3, 1 }, "CNTV_CTL_EL0" },	 { { 3, 4, 5, 2, 0 }, "ESR_EL2" },
		{ { 2, 0, 0, 3, 4 }, "DBGBVR3_EL1" },	 { { 3, 3, 14, 8, 5 }, "PMEVCNTR5_EL0" },
		{ { 1, 3, 7, 14, 1 }, "DC CIVAC" },	 { { 1, 0, 8, 3, 1 }, "TLBI VAE1IS" },
		{ { 3, 0, 15, 2, 0 }, "S3_0_C15_C2_0" }, { { 1, 7, 15, 15, 7 }, "sys 1,7,C15,C15,7" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[SYSREG_NAME_MAX];

		assert_string_equal(sysreg_text(&rows[i].r, name, sizeof(name)), rows[i].name);
	}
}

/* Numbers out of range are no register, also when their low bits are one. */
static void test_range(void **state)
{
	static const struct sysreg bad[] = {
		{ 7, 0, 1, 0, 0 },  { 3, 8, 1, 0, 0 }, { 3, 0, 17, 0, 0 },
		{ 3, 0, 1, 16, 0 }, { 3, 0, 1, 0, 8 }, { 255, 255, 255, 255, 255 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char name[SYSREG_NAME_MAX];

		assert_null(sysreg_name(&bad[i]));
		assert_true(strlen(sysreg_text(&bad[i], name, sizeof(name))) < sizeof(name) - 1);
	}
}

#define R(...) +1
enum {
	ENTRIES = 0
#include "base/decode/sysreg-table.h"
};
#undef R

/* Each is found (the table is sorted), and fits. */
static void test_all(void **state)
{
	size_t n = 0;

	for (unsigned int key = 0; key < 1 << 16; key++) {
		const struct sysreg r = { key >> 14 & 3, key >> 11 & 7, key >> 7 & 15, key >> 3 & 15,
					  key & 7 };
		const char *name = sysreg_name(&r);

		if (name) {
			assert_true(strlen(name) < SYSREG_NAME_MAX);
			n++;
		}
	}
	assert_int_equal(n, ENTRIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
