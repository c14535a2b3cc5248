// SPDX-License-Identifier: GPL-2.0-only
/* What the plugins print of each event of KVM on arm64 and of the hypervisor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plugin-rows.h"

#include "record/hyp/hypevents.h"

/* The talk's listing (standard virtio, host side), as the kernel meant it. */
static struct row talk[] = {
	{ KVM_EXIT,
	  { 2, 0x24, 0xfffffff00872cd74 },
	  "TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xfffffff00872cd74" },
	{ KVM("kvm_guest_fault", "unsigned long vcpu_pc; unsigned long hsr; unsigned long "
				 "hxfar; unsigned long long ipa"),
	  { 0xfffffff00872cd74, 0x93810046, 0xfffffff009675a50, 0xa003000 },
	  "ipa 0xa003000, hsr 0x93810046, hxfar 0xfffffff009675a50, pc 0xfffffff00872cd74 "
	  "(DABT_LOW write of 4 bytes from w1, level 2 translation fault)" },
	{ KVM("kvm_mmio", "u32 type; u32 len; u64 gpa; u64 val"),
	  { 2, 4, 0xa003a50, 1 },
	  "mmio write len 4 gpa 0xa003a50 val 0x1" },
	{ KVM("kvm_entry", "unsigned long vcpu_pc"), { 0xfffffff00872cd78 }, "PC: 0xfffffff00872cd78" },
	{ KVM_EXIT, { 2, 1, 0xfffffff008be07e8 }, "TRAP: HSR_EC: 0x0001 (WFx), PC: 0xfffffff008be07e8" },
	{ KVM("kvm_wfx_arm64", "unsigned long vcpu_pc; bool is_wfe"),
	  { 0xfffffff008be07e8, 0 },
	  "guest executed wfi at: 0xfffffff008be07e8" },
	{ KVM("kvm_get_timer_map", "unsigned long vcpu_id; int direct_vtimer; int "
				   "direct_ptimer; int emul_ptimer"),
	  { 0, 1, -1, 0 },
	  "VCPU: 0, dv: 1, dp: -1, ep: 0 (direct vtimer, emulated ptimer)" },
	{ KVM("kvm_timer_save_state", "unsigned long ctl; unsigned long long cval; int timer_idx"),
	  { 1, 0xf6643c1, 1 },
	  "   CTL: 0x000001 CVAL:        0xf6643c1 arch_timer_ctx_index: 1 (vtimer "
	  "enabled)" },
	{ KVM("kvm_irq_line", "unsigned int type; int vcpu_idx; int irq_num; int level"),
	  { 1, 0, 77, 1 },
	  "Inject VGIC SPI interrupt (1), vcpu->idx: 0, num: 77, level: 1" },
	{ KVM("vgic_update_irq_pending", "unsigned long vcpu_id; __u32 irq; bool level"),
	  { 0, 77, 1 },
	  "VCPU: 0, IRQ 77, level: 1 (SPI 45)" },
	{ KVM("kvm_timer_update_irq", "unsigned long vcpu_id; __u32 irq; int level"),
	  { 0, 27, 0 },
	  "VCPU: 0, IRQ 27, level 0 (PPI 11, virtual timer)" },
	{ KVM("kvm_timer_restore_state", "unsigned long ctl; unsigned long long cval; int timer_idx"),
	  { 5, 0xf6643c1, 1 },
	  "CTL: 0x000005 CVAL:        0xf6643c1 arch_timer_ctx_index: 1 (vtimer enabled, "
	  "condition met)" },
	{ KVM("kvm_timer_emulate", "int timer_idx; bool should_fire"),
	  { 0, 0 },
	  "arch_timer_ctx_index: 0 (should_fire: 0) (ptimer)" },
	{ KVM("kvm_mmio", "u32 type; u32 len; u64 gpa; u64 val"),
	  { 0, 4, 0xa003a60, 0 },
	  "mmio unsatisfied-read len 4 gpa 0xa003a60 val 0x0" },
	{ KVM_EXIT, { 0, 0, 0xffffffffc0080f32 }, "IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffffffffc0080f32" },
};

static void test_kvm_talk(void **state)
{
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	/* one format of a name in a file: a second one of the same name would be ours too */
	for (size_t i = 0; i < ARRAY_SIZE(talk); i++) {
		check_rows(&r, talk + i, 1);
		rig_close(&r);
		rig_open(&r, NULL, true, rig_plugins());
	}
	rig_close(&r);
}

static struct row others[] = {
	{ KVM("kvm_sys_access", "unsigned long vcpu_pc; bool is_write; const char * name; u8 Op0; u8 Op1; u8 "
				"CRn; u8 CRm; u8 Op2"),
	  { 0xffff8000805595ac, 1, 0xffff800080967860, 3, 0, 12, 11, 5 },
	  "PC: ffff8000805595ac ICC_SGI1R_EL1 (3,0,12,11,5) write" },
	{ KVM("kvm_handle_sys_reg", "unsigned long hsr"),
	  { 0x623a3016 },
	  "HSR 0x623a3016 (SYS64 write ICC_SGI1R_EL1 from x0)" },
	{ KVM("kvm_hvc_arm64", "unsigned long vcpu_pc; unsigned long r0; unsigned long imm"),
	  { 0xffff800080010000, 0xc4000003, 0 },
	  "HVC at 0xffff800080010000 (r0: 0x00000000c4000003, imm: 0x0) (PSCI_CPU_ON "
	  "SMC64)" },
	{ KVM("kvm_toggle_cache", "unsigned long vcpu_pc; bool was; bool now"),
	  { 0xffff800080010000, 0, 1 },
	  "VM op at 0xffff800080010000 (cache was off, now on)" },
	{ KVM("kvm_set_way_flush", "unsigned long vcpu_pc; bool cache"),
	  { 0xffff800080010000, 1 },
	  "S/W flush at 0xffff800080010000 (cache on)" },
	{ KVM("kvm_forward_sysreg_trap", "u64 pc; u32 sysreg; bool is_read"),
	  { 0x1000, 3u << 19 | 12 << 12 | 11 << 8 | 5 << 5, 0 },
	  "1000 W (3,0,12,11,5) (ICC_SGI1R_EL1)" },
	{ KVM("kvm_mmio_nisv", "unsigned long vcpu_pc; unsigned long esr; unsigned long far; "
			       "unsigned long ipa"),
	  { 0x1000, 0x92000007, 0x2000, 0x3000 },
	  "ipa 0x00000000003000, esr 0x00000092000007, far 0x00000000002000, pc "
	  "0x00000000001000 (DABT_LOW read, level 3 translation fault)" },
	{ KVM("kvm_mmio_emulate", "unsigned long vcpu_pc; unsigned long instr; unsigned long cpsr"),
	  { 0x1000, 0xb8000020, 0x60000305 },
	  "Emulate MMIO at: 0x0000000000001000 (instr: b8000020, cpsr: 60000305)" },
	{ KVM("kvm_access_fault", "unsigned long ipa"), { 0x40000000 }, "IPA: 40000000" },
	{ KVM("kvm_timer_hrtimer_expire", "int timer_idx"), { 3 }, "arch_timer_ctx_index: 3 (hptimer)" },
	{ KVM("kvm_nested_eret", "struct kvm_vcpu * vcpu; unsigned long elr_el2; unsigned "
				 "long spsr_el2; unsigned long target_mode; unsigned long "
				 "hcr_el2"),
	  { 0, 0x1000, 0x3c5, 5, 0x80 },
	  "elr_el2: 0x1000 spsr_el2: 0x000003c5 (M: EL1h) hcr_el2: 80" },
	{ KVM("kvm_inject_nested_exception",
	      "struct kvm_vcpu * vcpu; unsigned long esr_el2; int type; unsigned long "
	      "spsr_el2; unsigned long pc; unsigned long source_mode; unsigned long "
	      "hcr_el2"),
	  { 0, 0x5a000000, 0, 0x3c5, 0x1000, 5, 0x80 },
	  "SYNC: esr_el2 0x5a000000 elr_el2: 0x1000 spsr_el2: 0x000003c5 (M: EL1h) "
	  "hcr_el2: "
	  "80 (HVC64 #0)" },
	{ KVM_EXIT, { 7, 0x3f, 16 }, "0x7: HSR_EC: 0x003f (0x3f), PC: 0x0000000000000010" },
	/* formats that are not known print as they say themselves */
	{ KVM("kvm_entry", "unsigned int another"), { 1 }, "FALLBACK" },
	{ KVM("kvm_guest_fault", "unsigned long hsr"), { 1 }, "FALLBACK" },
};

static void test_kvm_others(void **state)
{
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, others, ARRAY_SIZE(others) - 1);
	rig_close(&r);
	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, others + ARRAY_SIZE(others) - 1, 1);
	rig_close(&r);
}

/* ---- the hypervisor -------------------------------------------------------------------- */

static struct row hyp_rows[] = {
	{ HYP("hyp_enter", "u8 reason; pid_t vcpu",
	      "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu"),
	  { 1, 87 },
	  "reason=hvc vcpu=87 (CPU 0/KVM)" },
	{ HYP("hyp_exit", "u8 reason; pid_t vcpu",
	      "\"reason=%s vcpu=%d\", __print_symbolic(REC->reason, { 7, \"eret_guest\" }, "
	      "{ "
	      "128, \"new_one\" }), REC->vcpu"),
	  { 128, 0 },
	  "reason=new_one vcpu=0" },
	{ HYP("host_hcall", "unsigned int id; u8 invalid", NULL), { 9, 0 }, "id=9 invalid=0" },
	{ HYP("host_smc", "u64 id; u8 forwarded", NULL),
	  { 0xc4000003, 1 },
	  "id=3288334339 forwarded=1 (0xc4000003 PSCI_CPU_ON SMC64)" },
	{ HYP("host_mem_abort", "u64 esr; u64 addr", NULL),
	  { 0x93c08047, 0x40001000 },
	  "esr=0x93c08047 addr=0x40001000 (DABT_LOW write of 8 bytes from x0, level 3 "
	  "translation fault, ipa 0x40001000)" },
	{ HYP("__hyp_printk", "u8 fmt_id; u64 a; u64 b; u64 c; u64 d", NULL),
	  { 3, 1, 2, 3, 0xffff },
	  "fmt_id=3 args=0x1 0x2 0x3 0xffff" },
	{ HYP("host_ffa_call",
	      "u64 func_id; u64 res_a1; u64 res_a2; u64 res_a3; u64 res_a4; int handled; "
	      "int "
	      "err",
	      NULL),
	  { 0x84000073, 1, 2, 3, 4, 1, (uint64_t)-6 },
	  "ffa_func=0x84000073 a1=0x1 a2=0x2 a3=0x3 a4=4 handled=1 err=-6 (0x84000073 "
	  "FFA_MEM_SHARE SMC32) (DENIED)" },
	{ HYP("guest_ffa_call",
	      "u64 func_id; u64 res_a1; u64 res_a2; u64 res_a3; u64 res_a4; int handled; "
	      "int "
	      "err; u64 exit_code; u64 vm_handle",
	      NULL),
	  { 0x84000063, 0, 0, 0, 0, 1, 0, 2, 0x1000 },
	  "ffa_func=0x84000063 a1=0x0 a2=0x0 a3=0x0 a4=0 handled=1 err=0 exit_code=0x2 "
	  "vm_handle=0x1000 (0x84000063 FFA_VERSION SMC32)" },
	{ HYP("psci_mem_protect", "u64 count; u64 was", NULL), { 2, 1 }, "count=2 was=1" },
	{ HYP("iommu_idmap", "u64 from; u64 to; int prot", NULL),
	  { 0x40000000, 0x40004000, 7 },
	  "from=0x40000000 to=0x40004000 prot=0x7 (16 KiB)" },
	{ HYP("iommu_idmap_complete", "bool map", NULL), { 1 }, "map=1 (mapped)" },
	{ HYP("vcpu_illegal_trap", "u64 esr", NULL),
	  { 0x62300069 },
	  "esr_el2=62300069 (SYS64 read ID_AA64PFR0_EL1 to x3)" },
	{ HYP("power_lock", "pid_t vm; u64 device; bool lock; int ret", NULL),
	  { 87, 0x1000, 1, (uint64_t)-1 },
	  "vm=87 device=0x1000 lock=1 ret=-1 (CPU 0/KVM)" },
	{ HYP("func", "unsigned long ip; unsigned long parent", NULL),
	  { 0x1000, 0x2004 },
	  "hyp_one <- hyp_two+0x4" },
	{ HYP("func_ret", "unsigned long ip", NULL), { 0x10 }, "0x10" },
	{ HYP("vendor_event", "u64 what", "\"what=%llu\", REC->what"), { 5 }, "what=5" },
	/* of our names, with other fields */
	{ HYP("selftest", "u64 id", "\"id=%llu\", REC->id"), { 5 }, "id=5" },
};

static void check_hyp(const char *sys, bool short_header)
{
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	tep_register_comm(r.tep, "CPU 0/KVM", 87);
	tep_register_function(r.tep, (char *)"hyp_one", 0x1000, NULL);
	tep_register_function(r.tep, (char *)"hyp_two", 0x2000, NULL);
	tep_register_function(r.tep, (char *)"end", 0x3000, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(hyp_rows); i++) {
		hyp_rows[i].event.sys = sys;
		hyp_rows[i].event.short_header = short_header;
	}
	check_rows(&r, hyp_rows, ARRAY_SIZE(hyp_rows));
	rig_close(&r);
}

static void test_hyp_ours(void **state)
{
	check_hyp("hypervisor", false);
	check_hyp("hyp", false);
}

/* Other tools' captures: the hypervisor's own header. */
static void test_hyp_raw(void **state)
{
	check_hyp("hypervisor", true);
	check_hyp("hyp", true);
}

/* The fieldless ones of Android, whose print format libtraceevent cannot parse. */
static void test_hyp_bare(void **state)
{
	struct row rows[] = {
		{ { "hyp", "hyp_enter", "", "\" \", ", .packed = true }, { 0 }, "" },
		{ { "hyp", "hyp_exit", "", "\" \", ", .packed = true }, { 0 }, "" },
		{ { "hyp", "host_smc", "u64 id; u8 invalid", .packed = true },
		  { 0x84000000, 0 },
		  "id=2214592512 invalid=0 (0x84000000 PSCI_VERSION SMC32)" },
	};
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);
}

/* The plugin's numbering is that of the files. */
static void test_reasons(void **state)
{
	struct rig_event e = HYP("hyp_enter", "u8 reason; pid_t vcpu", NULL);
	struct buf b = { 0 };
	struct rig r;

	e.id = 300;
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	for (size_t i = 0; i <= hyp_reasons_n; i++) {
		const uint64_t values[] = { i, 0 };
		char *text = i < hyp_reasons_n ? str_printf("reason=%s vcpu=0", hyp_reasons[i])
					       : str_printf("reason=%zu vcpu=0", i);

		rig_record(&e, values, NULL, 0, &b);
		assert_string_equal(rig_print(&r, b.data, b.len), text);
		free(text);
	}
	rig_close(&r);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kvm_talk), cmocka_unit_test(test_kvm_others),
		cmocka_unit_test(test_hyp_ours), cmocka_unit_test(test_hyp_raw),
		cmocka_unit_test(test_hyp_bare), cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
