// SPDX-License-Identifier: GPL-2.0-only
/* SMCCC function ids, and the names of host_hcall's ids from text and BTF. */
#include "base/decode/esr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/decode/id-table.h"
#include "base/array.h"
#include "base/buf.h"

static void test_text(void **state)
{
	static const struct {
		uint32_t id;
		const char *text;
	} rows[] = {
		{ 0x84000000, "PSCI_VERSION SMC32" },
		{ 0xc4000003, "PSCI_CPU_ON SMC64" },
		{ 0x80000000, "SMCCC_VERSION SMC32" },
		{ 0x80008000, "SMCCC_ARCH_WORKAROUND_1 SMC32" },
		{ 0x80007fff, "SMCCC_ARCH_WORKAROUND_2 SMC32" },
		{ 0x80003fff, "SMCCC_ARCH_WORKAROUND_3 SMC32" },
		{ 0x84000073, "FFA_MEM_SHARE SMC32" },
		{ 0xc400008d, "FFA_MSG_SEND_DIRECT_REQ2 SMC64" },
		{ 0xc4000053, "TRNG_RND SMC64" },
		{ 0xc4000020, "SDEI_VERSION SMC64" },
		{ 0xc5000020, "PV_TIME_FEATURES SMC64" },
		{ 0x86000001, "KVM_PTP SMC32" },
		{ 0xc6000003, "KVM_MEM_SHARE SMC64" },
		{ 0x8600ff01, "VendorHyp CALL_UID SMC32" },
		{ 0x84010000, "PSCI_VERSION SMC32 no-SVE" },
		{ 0x82000012, "SiP 0x0012 SMC32" },
		{ 0xc3001234, "OEM 0x1234 SMC64" },
		{ 0x32000001, "TOS 0x0001 SMC32 yielding" },
		{ 0x04000000, "Std 0x0000 SMC32 yielding" }, /* PSCI's are fast calls */
		{ 0xb0000000, "TA 0x0000 SMC32" },
		{ 0x8a000000, "reserved 0x0000 SMC32" },
		{ 0x8400008f, "Std 0x008f SMC32" },
		{ 0xffffffff, "TOS 0xffff SMC64 no-SVE" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[SMCCC_TEXT_MAX];

		assert_string_equal(smccc_text(rows[i].id, text, sizeof(text)), rows[i].text);
	}
}

static void test_ffa_errors(void **state)
{
	assert_string_equal(ffa_error_name(-1), "NOT_SUPPORTED");
	assert_string_equal(ffa_error_name(-6), "DENIED");
	assert_string_equal(ffa_error_name(-9), "NO_DATA");
	assert_null(ffa_error_name(0));
	assert_null(ffa_error_name(-10));
	assert_null(ffa_error_name(INT32_MIN));
}

static void test_hcall_text(void **state)
{
	static const char text[] = "# pKVM's\n0 __kvm_hyp_init\n\n 0x9\t__kvm_vcpu_run # often\n";
	static const char *const bad[] = { "",	      "# nothing\n", "nine __kvm_vcpu_run\n", "9\n",
					   "9 a b\n", "99999 far\n", "9 na\x01me\n" };
	struct id_table h;
	unsigned int line;

	assert_int_equal(hcall_names_parse(text, strlen(text), &h, &line), 0);
	assert_string_equal(hcall_name(&h, 0), "__kvm_hyp_init");
	assert_string_equal(hcall_name(&h, 9), "__kvm_vcpu_run");
	assert_string_equal(hcall_name(&h, 0xc6000009), "__kvm_vcpu_run");
	assert_null(hcall_name(&h, 1));
	assert_null(hcall_name(&h, 10));
	id_table_release(&h);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(hcall_names_parse(bad[i], strlen(bad[i]), &h, &line), -EBADMSG);
		assert_int_equal(h.n, 0);
	}
}

/* ---- BTF, made by hand ------------------------------------------------------------- */

static void put32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

static uint32_t put_name(struct buf *strings, const char *name)
{
	uint32_t at = (uint32_t)strings->len;

	buf_add(strings, name, strlen(name) + 1);
	return at;
}

static void make_btf(struct buf *out, const char *enum_name)
{
	static const struct {
		const char *name;
		uint32_t value;
	} values[] = {
		{ "__KVM_HOST_SMCCC_FUNC___pkvm_init", 1 },
		{ "__KVM_HOST_SMCCC_FUNC_MIN_PKVM", 2 },
		{ "__after__KVM_HOST_SMCCC_FUNC_MIN_PKVM", 1 },
		{ "__KVM_HOST_SMCCC_FUNC___kvm_adjust_pc", 2 },
		{ "__KVM_HOST_SMCCC_FUNC_MAX", 3 },
	};
	struct buf types = { 0 }, strings = { 0 };
	const uint16_t magic = 0xeb9f, version = 1;

	put_name(&strings, "");
	put32(&types, put_name(&strings, "int")); /* INT, 4 bytes behind it */
	put32(&types, 1u << 24);
	put32(&types, 4);
	put32(&types, 32);
	put32(&types, put_name(&strings, "list")); /* STRUCT of two members */
	put32(&types, 4u << 24 | 2);
	put32(&types, 8);
	for (int i = 0; i < 6; i++)
		put32(&types, 0);
	put32(&types, put_name(&strings, enum_name));
	put32(&types, 6u << 24 | (uint32_t)ARRAY_SIZE(values));
	put32(&types, 4);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		put32(&types, put_name(&strings, values[i].name));
		put32(&types, values[i].value);
	}
	buf_add(out, &magic, 2);
	buf_add(out, &version, 2);
	put32(out, 24);
	put32(out, 0);
	put32(out, (uint32_t)types.len);
	put32(out, (uint32_t)types.len);
	put32(out, (uint32_t)strings.len);
	buf_add(out, types.data, types.len);
	buf_add(out, strings.data, strings.len);
	buf_release(&types);
	buf_release(&strings);
}

static void test_hcall_btf(void **state)
{
	struct id_table h;
	unsigned int line;
	struct buf b = { 0 };
	size_t len;

	make_btf(&b, "__kvm_host_smccc_func");
	assert_int_equal(hcall_names_parse(b.data, b.len, &h, &line), 0);
	assert_string_equal(hcall_name(&h, 0), "__kvm_hyp_init");
	assert_string_equal(hcall_name(&h, 1), "__pkvm_init");
	assert_string_equal(hcall_name(&h, 2), "__kvm_adjust_pc");
	assert_null(hcall_name(&h, 3));
	id_table_release(&h);
	for (len = 0; len < b.len; len++) { /* cut anywhere */
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, b.data, len);
		assert_int_equal(hcall_names_parse(copy, len, &h, &line), -EBADMSG);
		free(copy);
	}
	buf_release(&b);
	make_btf(&b, "another");
	assert_int_equal(hcall_names_parse(b.data, b.len, &h, &line), -ENOENT);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_ffa_errors),
		cmocka_unit_test(test_hcall_text),
		cmocka_unit_test(test_hcall_btf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
