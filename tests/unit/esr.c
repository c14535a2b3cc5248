// SPDX-License-Identifier: GPL-2.0-only
/*
 * Syndromes and exit reasons. The tables themselves are compared with the kernel's
 * headers by tests/integration/tables.t.
 */
#include "base/decode/esr.h"
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_text(void **state)
{
	static const struct {
		uint64_t esr;
		const char *text;
	} rows[] = {
		/* the seed talk's kvm_guest_fault, behind which a kvm_mmio write len 4 comes */
		{ 0x93810046, "DABT_LOW write of 4 bytes from w1, level 2 translation fault" },
		/* seen in the lab */
		{ 0x8200000f, "IABT_LOW fetch, level 3 permission fault" },
		{ 0x623a3016, "SYS64 write ICC_SGI1R_EL1 from x0" },
		/* MRS x3, ID_AA64PFR0_EL1: 3,0,0,4,0 */
		{ 0x62300069, "SYS64 read ID_AA64PFR0_EL1 to x3" },
		/* DC CIVAC, x5: 1,3,7,14,1 */
		{ 0x6212dcbc, "SYS64 DC CIVAC, x5" },
		/* TLBI VMALLE1IS: no register */
		{ 0x621023e6, "SYS64 TLBI VMALLE1IS" },
		{ 0x04000000 | 1, "WFx wfe" },
		{ 0x04000000, "WFx wfi" },
		{ 0x04000000 | 2, "WFx wfit" },
		{ 0x5a000000, "HVC64 #0" },
		{ 0x5e000011, "SMC64 #17" },
		{ 0x00000000, "UNKNOWN" },
		{ 0xfe000000, "EC 0x3f" },
		/* no syndrome, on a stage 1 walk, reserved fault status */
		{ 0x920000ff, "DABT_LOW write, fault status 0x3f, on a stage 1 walk" },
		/* 1 byte to wzr, sign-extended; 8 bytes to x30 with acquire */
		{ 0x933f0007, "DABT_LOW read of 1 byte to wzr, level 3 translation fault, sign-extended" },
		{ 0x93dec007, "DABT_LOW read of 8 bytes to x30, level 3 translation fault, acquire/release" },
		{ 0x96000410, "DABT_CUR read, synchronous external abort, FAR not valid" },
		{ 0x92000147, "DABT_LOW write, level 3 translation fault, cache maintenance" },
		/* ISS2 above bit 31 does not count */
		{ 0x1f93810046, "DABT_LOW write of 4 bytes from w1, level 2 translation fault" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[ESR_TEXT_MAX];

		assert_string_equal(esr_text(rows[i].esr, text, sizeof(text)), rows[i].text);
	}
}

/* Every syndrome fits in ESR_TEXT_MAX, and any size is kept to. */
static void test_size(void **state)
{
	char text[ESR_TEXT_MAX], all[2 * ESR_TEXT_MAX];
	size_t longest = 0;

	for (uint64_t ec = 0; ec < 64; ec++)
		for (uint64_t iss = 0; iss < 1 << 25; iss += 0x1fff) {
			uint64_t esr = ec << 26 | iss;

			esr_text(esr, all, sizeof(all));
			if (strlen(all) > longest)
				longest = strlen(all);
		}
	for (uint64_t fsc = 0; fsc < 64; fsc++) {
		esr_text(0x933fc5c0 | 0xc00000 | fsc, all, sizeof(all));
		if (strlen(all) > longest)
			longest = strlen(all);
	}
	assert_true(longest < ESR_TEXT_MAX);
	memset(text, 0x78, sizeof(text));
	esr_text(0x93810046, text, 9);
	assert_string_equal(text, "DABT_LOW");
	assert_int_equal(text[9], 'x');
	esr_text(0x93810046, text, 1);
	assert_string_equal(text, "");
}

static void test_exit(void **state)
{
	assert_string_equal(kvm_exit_arm_name(0), "IRQ");
	assert_string_equal(kvm_exit_arm_name(KVM_EXIT_ARM_TRAP), "TRAP");
	assert_string_equal(kvm_exit_arm_name(0xbadca11), "HYP_GONE");
	assert_null(kvm_exit_arm_name(4));
	assert_null(esr_ec_name(64));
	assert_null(esr_fault(64));
	assert_string_equal(pstate_mode_name(5), "EL1h");
	assert_null(pstate_mode_name(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
