// SPDX-License-Identifier: GPL-2.0-only
/* The libtraceevent plugins, loaded as a tool loads them: what they print of an event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "plugin-rig.h"

#include "hypevents.h"

struct row {
	struct rig_event event;
	uint64_t values[RIG_FIELDS_MAX];
	const char *text;
};

static void check_rows(struct rig *r, struct row *rows, size_t n)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		rows[i].event.id = 300 + (int)i;
		rig_add(r, &rows[i].event);
		rig_record(&rows[i].event, rows[i].values, NULL, 0, &b);
		assert_string_equal(rig_print(r, b.data, b.len), rows[i].text);
	}
	buf_release(&b);
}

#define KVM(event_name, event_fields)                                                              \
	{                                                                                          \
		.sys = "kvm", .name = event_name, .fields = event_fields                           \
	}
#define EXIT_FMT                                                                                   \
	"\"%s: HSR_EC: 0x%04x (%s), PC: 0x%016lx\", __print_symbolic(REC->ret, { 0, \"IRQ\" }), "  \
	"REC->esr_ec, __print_symbolic(REC->esr_ec, { 0, \"UNKNOWN\" }), REC->vcpu_pc"
#define KVM_EXIT                                                                                   \
	{                                                                                          \
		"kvm", "kvm_exit", "int ret; unsigned int esr_ec; unsigned long vcpu_pc",          \
			EXIT_FMT, .id = 0                                                          \
	}

/* The talk's listing (standard virtio, host side), as the kernel meant it. */
static void test_kvm_talk(void **state)
{
	struct row rows[] = {
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
		{ KVM("kvm_entry", "unsigned long vcpu_pc"),
		  { 0xfffffff00872cd78 },
		  "PC: 0xfffffff00872cd78" },
		{ KVM_EXIT,
		  { 2, 1, 0xfffffff008be07e8 },
		  "TRAP: HSR_EC: 0x0001 (WFx), PC: 0xfffffff008be07e8" },
		{ KVM("kvm_wfx_arm64", "unsigned long vcpu_pc; bool is_wfe"),
		  { 0xfffffff008be07e8, 0 },
		  "guest executed wfi at: 0xfffffff008be07e8" },
		{ KVM("kvm_get_timer_map", "unsigned long vcpu_id; int direct_vtimer; int "
					   "direct_ptimer; int emul_ptimer"),
		  { 0, 1, -1, 0 },
		  "VCPU: 0, dv: 1, dp: -1, ep: 0 (direct vtimer, emulated ptimer)" },
		{ KVM("kvm_timer_save_state",
		      "unsigned long ctl; unsigned long long cval; int timer_idx"),
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
		{ KVM("kvm_timer_restore_state",
		      "unsigned long ctl; unsigned long long cval; int timer_idx"),
		  { 5, 0xf6643c1, 1 },
		  "CTL: 0x000005 CVAL:        0xf6643c1 arch_timer_ctx_index: 1 (vtimer enabled, "
		  "condition met)" },
		{ KVM("kvm_timer_emulate", "int timer_idx; bool should_fire"),
		  { 0, 0 },
		  "arch_timer_ctx_index: 0 (should_fire: 0) (ptimer)" },
		{ KVM("kvm_mmio", "u32 type; u32 len; u64 gpa; u64 val"),
		  { 0, 4, 0xa003a60, 0 },
		  "mmio unsatisfied-read len 4 gpa 0xa003a60 val 0x0" },
		{ KVM_EXIT,
		  { 0, 0, 0xffffffffc0080f32 },
		  "IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffffffffc0080f32" },
	};
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	/* one format of a name in a file: a second one of the same name would be ours too */
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_rows(&r, rows + i, 1);
		rig_close(&r);
		rig_open(&r, NULL, true, rig_plugins());
	}
	rig_close(&r);
}

static void test_kvm_others(void **state)
{
	struct row rows[] = {
		{ KVM("kvm_sys_access",
		      "unsigned long vcpu_pc; bool is_write; const char * name; u8 Op0; u8 Op1; u8 "
		      "CRn; u8 CRm; u8 Op2"),
		  { 0xffff8000805595ac, 1, 0xffff800080967860, 3, 0, 12, 11, 5 },
		  "PC: ffff8000805595ac ICC_SGI1R_EL1 (3,0,12,11,5) write" },
		{ KVM("kvm_handle_sys_reg", "unsigned long hsr"),
		  { 0x623a3016 },
		  "HSR 0x623a3016 (SYS64 write ICC_SGI1R_EL1 from x0)" },
		{ KVM("kvm_hvc_arm64",
		      "unsigned long vcpu_pc; unsigned long r0; unsigned long imm"),
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
		{ KVM("kvm_mmio_nisv",
		      "unsigned long vcpu_pc; unsigned long esr; unsigned long far; "
		      "unsigned long ipa"),
		  { 0x1000, 0x92000007, 0x2000, 0x3000 },
		  "ipa 0x00000000003000, esr 0x00000092000007, far 0x00000000002000, pc "
		  "0x00000000001000 (DABT_LOW read, level 3 translation fault)" },
		{ KVM("kvm_mmio_emulate",
		      "unsigned long vcpu_pc; unsigned long instr; unsigned long cpsr"),
		  { 0x1000, 0xb8000020, 0x60000305 },
		  "Emulate MMIO at: 0x0000000000001000 (instr: b8000020, cpsr: 60000305)" },
		{ KVM("kvm_access_fault", "unsigned long ipa"), { 0x40000000 }, "IPA: 40000000" },
		{ KVM("kvm_timer_hrtimer_expire", "int timer_idx"),
		  { 3 },
		  "arch_timer_ctx_index: 3 (hptimer)" },
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
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows, ARRAY_SIZE(rows) - 1);
	rig_close(&r);
	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows + ARRAY_SIZE(rows) - 1, 1);
	rig_close(&r);
}

/* ---- load order ----------------------------------------------------------------------- */

/* The directory of the stock plugins: libtraceevent has loaded them. */
static bool stock_dir(char *out, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 128], *path;
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f)) {
		path = strchr(line, '/');
		if (!path || !strstr(path, "/plugin_kvm.so"))
			continue;
		*strstr(path, "/plugin_kvm.so") = 0;
		snprintf(out, size, "%s", path);
		found = true;
	}
	fclose(f);
	return found;
}

static void check_both_archs(const char *first, bool stock, const char *last)
{
	struct rig_event arm = KVM_EXIT, arm_entry = KVM("kvm_entry", "unsigned long vcpu_pc");
	struct rig_event x86 = {
		.sys = "kvm",
		.name = "kvm_exit",
		.fields = "unsigned int exit_reason; unsigned long guest_rip; u32 isa; "
			  "u64 info1; u64 info2"
	};
	struct rig_event x86_entry = KVM("kvm_entry", "unsigned int vcpu_id; unsigned long rip");
	const uint64_t trap[] = { 2, 0x16, 0x1000 }, hlt[] = { 12, 0xffffffff81000000, 1, 0, 0 };
	const uint64_t entry[] = { 1, 0xffffffff81000000 };
	struct buf b = { 0 };
	struct rig r;

	arm.id = x86.id = 300;
	arm_entry.id = x86_entry.id = 301;
	rig_open(&r, first, stock, last);
	rig_add(&r, &arm);
	rig_add(&r, &arm_entry);
	rig_record(&arm, trap, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len),
			    "TRAP: HSR_EC: 0x0016 (HVC64), PC: 0x0000000000001000");
	rig_record(&arm_entry, trap + 2, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len), "PC: 0x0000000000001000");
	rig_close(&r);

	rig_open(&r, first, stock, last);
	rig_add(&r, &x86);
	rig_add(&r, &x86_entry);
	rig_record(&x86, hlt, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len),
			    "reason HLT rip 0xffffffff81000000 info 0 0");
	rig_record(&x86_entry, entry, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len), " vcpu 1 rip 0xffffffff81000000");
	rig_close(&r);
	buf_release(&b);
}

static void test_order(void **state)
{
	char stock[PATH_MAX];
	struct rig r;
	bool found;

	rig_open(&r, NULL, true, NULL);
	found = stock_dir(stock, sizeof(stock));
	rig_close(&r);
	if (!found)
		skip();
	check_both_archs(NULL, true, rig_plugins());
	check_both_archs(rig_plugins(), true, NULL);
	check_both_archs(rig_plugins(), false, stock);
	check_both_archs(rig_plugins(), true,
			 rig_plugins());	      /* ours twice: installed, and in the tree */
	check_both_archs(rig_plugins(), true, stock); /* stock's twice */
}

/* The decoy does not outlive its work: a tool that looks for events finds the file's own. */
static void test_decoy(void **state)
{
	struct rig_event e = KVM_EXIT;
	const uint64_t values[] = { 0, 0, 0 };
	struct buf b = { 0 };
	struct rig r;

	e.id = 300;
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	assert_int_equal(tep_find_event_by_name(r.tep, "kvm", "kvm_exit")->id, 300);
	rig_record(&e, values, NULL, 0, &b);
	rig_print(&r, b.data, b.len);
	for (int i = 0; i < tep_get_events_count(r.tep); i++) {
		struct tep_event *event = tep_get_event(r.tep, i);

		if (!strcmp(event->name, "kvm_exit"))
			assert_true(event->id == 300 || strcmp(event->system, "kvm") != 0);
	}
	rig_close(&r);
	buf_release(&b);
}

/* ---- the hypervisor -------------------------------------------------------------------- */

#define HYP(name, fields, fmt)                                                                     \
	{                                                                                          \
		"hypervisor", name, fields, fmt, .packed = true                                    \
	}

static void check_hyp(const char *sys, bool short_header)
{
	struct row rows[] = {
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
		{ HYP("host_hcall", "unsigned int id; u8 invalid", NULL),
		  { 9, 0 },
		  "id=9 invalid=0" },
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
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	tep_register_comm(r.tep, "CPU 0/KVM", 87);
	tep_register_function(r.tep, (char *)"hyp_one", 0x1000, NULL);
	tep_register_function(r.tep, (char *)"hyp_two", 0x2000, NULL);
	tep_register_function(r.tep, (char *)"end", 0x3000, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rows[i].event.sys = sys;
		rows[i].event.short_header = short_header;
	}
	check_rows(&r, rows, ARRAY_SIZE(rows));
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
		char *text = i < hyp_reasons_n ? strf("reason=%s vcpu=0", hyp_reasons[i])
					       : strf("reason=%zu vcpu=0", i);

		rig_record(&e, values, NULL, 0, &b);
		assert_string_equal(rig_print(&r, b.data, b.len), text);
		free(text);
	}
	rig_close(&r);
	buf_release(&b);
}

/* ---- trace_marker -------------------------------------------------------------------------- */

#define PRINT                                                                                      \
	{                                                                                          \
		"ftrace", "print", "unsigned long ip; char buf[]",                                 \
			"\"%ps: %s\", (void *)REC->ip, REC->buf", .id = 5                          \
	}

static const struct {
	const char *line, *text;
} marker_rows[] = {
	/* the seeds: crosvm's guide, QEMU's hypertrace document */
	{ "503 VirtioFs Enter: release - (self.tag: \"mtdroot\")(inode: 42)(handle: 35)\n",
	  "crosvm 503 VirtioFs enter release self.tag=\"mtdroot\", inode=42, handle=35" },
	{ "503 VirtioFs Exit: release", "crosvm 503 VirtioFs exit release" },
	{ "512 VirtioFs Enter: process_fs_queue - (slot: 0)",
	  "crosvm 512 VirtioFs enter process_fs_queue slot=0" },
	{ "512 VirtioFs Exit: process_fs_queue", "crosvm 512 VirtioFs exit process_fs_queue" },
	{ "guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe "
	  "arg3=0x000000000000dead arg4=0x000000000000beef\n",
	  "guest_hypertrace cpu=0x5602e1f49c10 arg1=1 arg2=0xcafe arg3=0xdead arg4=0xbeef" },
	{ "23071@1473096086.756117:guest_hypertrace cpu=0x5602e1f49c10  arg1=0 "
	  "arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef",
	  "guest_hypertrace cpu=0x5602e1f49c10 arg1=0 arg2=0xcafe arg3=0xdead arg4=0xbeef" },
	/* an Exit without its category, a name with spaces, values with all kinds of brackets */
	{ "7 Exit: handle RxTap event", "crosvm 7 exit handle RxTap event" },
	{ "8 VirtioScsi Enter: READ(10)", "crosvm 8 VirtioScsi enter READ(10)" },
	{ "9 USB Enter: a - b - (x: Some(\"a)(\\\"b\"))(y)", "crosvm 9 USB enter a - b "
							     "x=Some(\"a)(\\\"b\"), y=" },
	{ "9 USB Enter: open - (x: (1", "crosvm 9 USB enter open - (x: (1" },
	/* other lines are as stock prints them */
	{ "Hello world.", "tracing_mark_write: Hello world." },
	{ "fuse server: handle_message: in_header=InHeader { len: 64 }",
	  "tracing_mark_write: fuse server: handle_message: in_header=InHeader { len: 64 }" },
	{ "99999999999999999999 A Enter: b",
	  "tracing_mark_write: 99999999999999999999 A Enter: b" },
	{ "5 Enter: ", "tracing_mark_write: 5 Enter: " },
	{ "guest_hypertrace arg1=x", "tracing_mark_write: guest_hypertrace arg1=x" },
	{ "guest_hypertrace arg2=1", "tracing_mark_write: guest_hypertrace arg2=1" },
	{ "guest_hypertraced arg1=1", "tracing_mark_write: guest_hypertraced arg1=1" },
	{ "", "tracing_mark_write: " },
};

static void check_markers(const char *first, const char *last)
{
	const uint64_t ip[] = { 0xffff800080001000 };
	struct rig_event e = PRINT;
	struct buf b = { 0 };
	struct rig r;

	rig_open(&r, first, true, last);
	tep_register_function(r.tep, (char *)"tracing_mark_write", ip[0], NULL);
	tep_register_function(r.tep, (char *)"end", ip[0] + 0x1000, NULL);
	rig_add(&r, &e);
	for (size_t i = 0; i < ARRAY_SIZE(marker_rows); i++) {
		rig_record(&e, ip, marker_rows[i].line, strlen(marker_rows[i].line) + 1, &b);
		assert_string_equal(rig_print(&r, b.data, b.len), marker_rows[i].text);
	}
	rig_close(&r);
	buf_release(&b);
}

static void link_plugin(const char *dir, const char *name)
{
	char *from = strf("%s/%s", rig_plugins(), name), *to = strf("%s/%s", dir, name);

	assert_int_equal(symlink(from, to), 0);
	free(from);
	free(to);
}

static void remove_dir(const char *dir, const char *name)
{
	char *path = strf("%s/%s", dir, name);

	unlink(path);
	rmdir(dir);
	free(path);
}

/* Two plugins of ours want the print event: either may be loaded last. */
static void test_markers(void **state)
{
	char crosvm[] = "/tmp/hyptrace-test.XXXXXX", hypertrace[] = "/tmp/hyptrace-test.XXXXXX";

	assert_non_null(mkdtemp(crosvm));
	assert_non_null(mkdtemp(hypertrace));
	link_plugin(crosvm, "crosvm.so");
	link_plugin(hypertrace, "hypertrace.so");
	check_markers(crosvm, hypertrace);
	check_markers(hypertrace, crosvm);
	check_markers(NULL, rig_plugins());
	check_markers(rig_plugins(), rig_plugins());
	remove_dir(crosvm, "crosvm.so");
	remove_dir(hypertrace, "hypertrace.so");
}

/* ---- options --------------------------------------------------------------------------------- */

static char *temp_file(const char *text)
{
	char *path = strdup("/tmp/hyptrace-test.XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	close(fd);
	return path;
}

static void add_option(const char *name, const char *value)
{
	assert_int_equal(tep_plugin_add_option(name, value), 0);
}

static void test_hyp_options(void **state)
{
	struct row rows[] = {
		{ HYP("host_hcall", "unsigned int id; u8 invalid", NULL),
		  { 9, 0 },
		  "id=9 invalid=0 (__kvm_vcpu_run)" },
		{ HYP("func", "unsigned long ip; unsigned long parent", NULL),
		  { 0x1000, 0x1fff },
		  "__kvm_hyp_one <- __kvm_hyp_two+0xf" },
		{ HYP("__hyp_printk", "u16 fmt_id; u64 a; u64 b; u64 c; u64 d", NULL),
		  { 3, 0xfffffff6, 0x1000, 77, 0 },
		  "x=-10 at 0x0000000000001000 77% ok 0x0" },
		{ HYP("__hyp_printk2", "u64 a", NULL), { 1 }, "FALLBACK" },
	};
	char *hcalls = temp_file("9 __kvm_vcpu_run\n");
	char *symbols = temp_file("ffff800080002ff0 t __kvm_hyp_two\n"
				  "ffff800080002000 T __kvm_hyp_one\n");
	char *printk = temp_file("# id format\n3 x=%d at %#018lx %llu%% ok %p\n");
	struct rig r;

	add_option("hyp:hcalls", hcalls);
	add_option("hyp:symbols", symbols);
	add_option("hyp:symbols_offset", "0xffff800080001000");
	add_option("hyp:printk", printk);
	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);
	add_option("hyp:hcalls", "");
	add_option("hyp:symbols", "");
	add_option("hyp:symbols_offset", "");
	add_option("hyp:printk", "");
	unlink(hcalls);
	unlink(symbols);
	unlink(printk);
	free(hcalls);
	free(symbols);
	free(printk);
}

static void test_plain(void **state)
{
	struct row rows[] = {
		{ HYP("host_smc", "u64 id; u8 forwarded", NULL),
		  { 0x84000000, 0 },
		  "id=2214592512 forwarded=0" },
		{ KVM("kvm_handle_sys_reg", "unsigned long hsr"),
		  { 0x623a3016 },
		  "HSR 0x623a3016" },
	};
	struct rig r;

	add_option("hyp:plain", "1");
	add_option("kvm-arm64:plain", "1");
	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);
	add_option("hyp:plain", "0");
	add_option("kvm-arm64:plain", "0");
}

static const char *hypertrace_marker(struct rig *r, const struct rig_event *e, const char *line)
{
	static const uint64_t ip[] = { 0 };
	static struct buf b;

	rig_record(e, ip, line, strlen(line) + 1, &b);
	return rig_print(r, b.data, b.len);
}

static void test_hypertrace_desc(void **state)
{
	char *desc = temp_file("# the game\n"
			       "1 frame_start  width:u16 height:u32 where:hex\n"
			       "0x2 state what:enum(0=idle,1=busy) ok:bool c:char f:f64 n:s8\n");
	struct rig_event e = PRINT;
	struct row rows[] = {
		{ { "qemu", "guest_hypertrace", "u64 cpu; u64 arg1; u64 arg2; u64 arg3", .id = 0 },
		  { 0x1000, 1, 640, 480 },
		  "guest_hypertrace cpu=0x1000 frame_start(width=640, height=480)" },
	};
	struct rig_event array = { "hypertrace", "guest_hypertrace",
				   "unsigned int client; __data_loc u64[] args", .id = 400 };
	const uint64_t args[] = { 2, 1, 1, 'x', 0x4009000000000000, 0xff };
	uint64_t values[] = { 7, 0 };
	struct buf b = { 0 };
	struct rig r;

	add_option("hypertrace:desc", desc);
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	assert_string_equal(hypertrace_marker(&r, &e,
					      "guest_hypertrace arg1=1 arg2=0x10280 arg3=480 "
					      "arg4=0xcafe arg5=5"),
			    "guest_hypertrace frame_start(width=640, height=480, where=0xcafe) "
			    "arg5=0x5");
	assert_string_equal(hypertrace_marker(&r, &e, "guest_hypertrace arg1=9 arg2=1"),
			    "guest_hypertrace arg1=9 arg2=0x1");
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);

	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &array);
	values[1] = sizeof(args) << 16 | array.len;
	rig_record(&array, values, args, sizeof(args), &b);
	assert_string_equal(
		rig_print(&r, b.data, b.len),
		"guest_hypertrace client=7 state(what=busy, ok=true, c='x', f=3.125, n=-1)");
	rig_close(&r);
	add_option("hypertrace:desc", "");
	buf_release(&b);
	unlink(desc);
	free(desc);
}

/* ---- hostile records ---------------------------------------------------------------------------
 */

/* The handler alone, with an exact copy: a byte too far is seen by ASan. */
static void call_handler(struct tep_event *event, const void *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct tep_record rec = { .data = copy, .size = (int)len };
	struct trace_seq s;

	memcpy(copy, data, len);
	trace_seq_init(&s);
	if (event->handler(&s, &rec, event, event->context) < 0)
		assert_int_equal(s.len, 0);
	trace_seq_destroy(&s);
	free(copy);
}

static void test_short(void **state)
{
	struct rig_event events[] = {
		KVM_EXIT,
		KVM("kvm_sys_access",
		    "unsigned long vcpu_pc; bool is_write; const char * name; u8 Op0; "
		    "u8 Op1; u8 CRn; u8 CRm; u8 Op2"),
		HYP("hyp_enter", "u8 reason; pid_t vcpu", NULL),
		HYP("host_mem_abort", "u64 esr; u64 addr", NULL),
		HYP("hyp_printk", "u16 fmt_id; __data_loc u64[] args", NULL),
		PRINT,
		{ "qemu", "guest_hypertrace", "u64 arg1; u64 arg2", .id = 0 },
		{ "qemu", "guest_hypertrace", "__data_loc u64[] args", .id = 0 },
	};
	uint8_t data[64];
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct tep_event *event;

		events[i].id = 500 + (int)i;
		event = rig_add(&r, &events[i]);
		if (!event->handler)
			continue; /* the second guest_hypertrace: one handler, one event */
		for (int fill = 0; fill < 256; fill += 51) {
			memset(data, fill, sizeof(data));
			for (size_t len = 0; len <= sizeof(data); len++)
				call_handler(event, data, len);
		}
	}
	rig_close(&r);
}

static void test_short_text(void **state)
{
	struct rig_event e = HYP("host_smc", "u64 id; u8 forwarded", NULL);
	const uint64_t values[] = { 0x84000000, 1 };
	struct buf b = { 0 };
	struct rig r;

	e.id = 300;
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	rig_record(&e, values, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, 12), "[record too short]");
	rig_close(&r);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kvm_talk), cmocka_unit_test(test_kvm_others),
		cmocka_unit_test(test_order),	 cmocka_unit_test(test_decoy),
		cmocka_unit_test(test_hyp_ours), cmocka_unit_test(test_hyp_raw),
		cmocka_unit_test(test_hyp_bare), cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_markers),	 cmocka_unit_test(test_hyp_options),
		cmocka_unit_test(test_plain),	 cmocka_unit_test(test_hypertrace_desc),
		cmocka_unit_test(test_short),	 cmocka_unit_test(test_short_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
