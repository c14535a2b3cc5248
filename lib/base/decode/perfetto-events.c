// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel's events that Perfetto has a message for: its fields there, and the format that kernels have
 * (Linux 7.2; where that has a field that Perfetto lacks, the one of the kernels before).
 */
#include "base/array.h"
#include "base/decode/perfetto-events.h"

#define SOFTIRQ                                                                                              \
	"\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, "                  \
	"\"TIMER\" }, { 2, \"NET_TX\" }, { 3, \"NET_RX\" }, { 4, \"BLOCK\" }, { 5, \"IRQ_POLL\" }, { "       \
	"6, \"TASKLET\" }, { 7, \"SCHED\" }, { 8, \"HRTIMER\" }, { 9, \"RCU\" })"

/* protos/perfetto/trace/ftrace/ of Perfetto's tree has the numbers. */
static const struct perfetto_event perfetto_events[] = {
	{ 3, true, "ftrace", "print", "+u64 ip=1;rest buf=2", "\"%s\", REC->buf" },
	{ 4, true, "sched", "sched_switch",
	  "char16 prev_comm=1;s32 prev_pid=2;s32 prev_prio=3;s64 prev_state=4;char16 "
	  "next_comm=5;s32 next_pid=6;s32 next_prio=7",
	  "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d "
	  "next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & "
	  "((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | "
	  "0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & "
	  "((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | "
	  "0x00000020 | 0x00000040) + 1) << 1) - 1), \"|\", { 0x00000001, \"S\" }, { 0x00000002, "
	  "\"D\" }, { 0x00000004, \"T\" }, { 0x00000008, \"t\" }, { 0x00000010, \"X\" }, { 0x00000020, "
	  "\"Z\" }, { 0x00000040, \"P\" }, { 0x00000080, \"I\" }) : \"R\", REC->prev_state & "
	  "(((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | "
	  "0x00000020 | 0x00000040) + 1) << 1) ? \"+\" : \"\", REC->next_comm, REC->next_pid, "
	  "REC->next_prio" },
	{ 11, true, "power", "cpu_frequency", "u32 state=1;u32 cpu_id=2",
	  "\"state=%lu cpu_id=%lu\", (unsigned long)REC->state, (unsigned long)REC->cpu_id" },
	{ 12, false, "power", "cpu_frequency_limits", "u32 min_freq=1;u32 max_freq=2;u32 cpu_id=3",
	  "\"min=%lu max=%lu cpu_id=%lu\", (unsigned long)REC->min_freq, (unsigned "
	  "long)REC->max_freq, (unsigned long)REC->cpu_id" },
	{ 13, true, "power", "cpu_idle", "u32 state=1;u32 cpu_id=2",
	  "\"state=%lu cpu_id=%lu\", (unsigned long)REC->state, (unsigned long)REC->cpu_id" },
	{ 14, false, "power", "clock_enable", "text name=1;u64 state=2;u64 cpu_id=3",
	  "\"%s state=%lu cpu_id=%lu\", __get_str(name), (unsigned long)REC->state, (unsigned "
	  "long)REC->cpu_id" },
	{ 15, false, "power", "clock_disable", "text name=1;u64 state=2;u64 cpu_id=3",
	  "\"%s state=%lu cpu_id=%lu\", __get_str(name), (unsigned long)REC->state, (unsigned "
	  "long)REC->cpu_id" },
	{ 16, false, "power", "clock_set_rate", "text name=1;u64 state=2;u64 cpu_id=3",
	  "\"%s state=%lu cpu_id=%lu\", __get_str(name), (unsigned long)REC->state, (unsigned "
	  "long)REC->cpu_id" },
	{ 17, true, "sched", "sched_wakeup",
	  "char16 comm=1;s32 pid=2;s32 prio=3;+s32 success=4;s32 target_cpu=5",
	  "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, "
	  "REC->target_cpu" },
	{ 18, false, "sched", "sched_blocked_reason", "s32 pid=1;sym caller=2;u8 io_wait=3",
	  "\"pid=%d iowait=%d caller=%pS\", REC->pid, REC->io_wait, (void *)REC->caller" },
	{ 20, true, "sched", "sched_waking",
	  "char16 comm=1;s32 pid=2;s32 prio=3;+s32 success=4;s32 target_cpu=5",
	  "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, "
	  "REC->target_cpu" },
	{ 21, false, "ipi", "ipi_entry", "text reason=1", "\"(%s)\", __get_str(reason)" },
	{ 22, false, "ipi", "ipi_exit", "text reason=1", "\"(%s)\", __get_str(reason)" },
	{ 23, false, "ipi", "ipi_raise", "u32 target_cpus=1;text reason=2",
	  "\"target_mask=%08x (%s)\", REC->target_cpus, __get_str(reason)" },
	{ 24, true, "irq", "softirq_entry", "u32 vec=1", SOFTIRQ },
	{ 25, true, "irq", "softirq_exit", "u32 vec=1", SOFTIRQ },
	{ 26, true, "irq", "softirq_raise", "u32 vec=1", SOFTIRQ },
	{ 36, true, "irq", "irq_handler_entry", "s32 irq=1;text name=2",
	  "\"irq=%d name=%s\", REC->irq, __get_str(name)" },
	{ 37, true, "irq", "irq_handler_exit", "s32 irq=1;s32 ret=2",
	  "\"irq=%d ret=%s\", REC->irq, REC->ret ? \"handled\" : \"unhandled\"" },
	{ 56, false, "workqueue", "workqueue_activate_work", "sym work=1;sym function=2",
	  "\"work struct %p function=%ps \", REC->work, REC->function" },
	{ 57, false, "workqueue", "workqueue_execute_end", "sym work=1;sym function=2",
	  "\"work struct %p: function %ps\", REC->work, REC->function" },
	{ 58, false, "workqueue", "workqueue_execute_start", "sym work=1;sym function=2",
	  "\"work struct %p: function %ps\", REC->work, REC->function" },
	{ 59, false, "workqueue", "workqueue_queue_work",
	  "sym work=1;sym function=2;text workqueue=6;s32 req_cpu=4;s32 cpu=5",
	  "\"work struct=%p function=%ps workqueue=%s req_cpu=%d cpu=%d\", REC->work, "
	  "REC->function, __get_str(workqueue), REC->req_cpu, REC->cpu" },
	{ 113, true, "power", "suspend_resume", "text action=1;s32 val=2;u8 start=3",
	  "\"%s[%u] %s\", __get_str(action), (unsigned int)REC->val, (REC->start)?\"begin\":\"end\"" },
	{ 114, true, "sched", "sched_wakeup_new",
	  "char16 comm=1;s32 pid=2;s32 prio=3;+s32 success=4;s32 target_cpu=5",
	  "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, "
	  "REC->target_cpu" },
	{ 235, true, "task", "task_newtask", "s32 pid=1;char16 comm=2;u64 clone_flags=3;s16 oom_score_adj=4",
	  "\"pid=%d comm=%s clone_flags=%llx oom_score_adj=%hd\", REC->pid, REC->comm, "
	  "REC->clone_flags, REC->oom_score_adj" },
	{ 236, true, "task", "task_rename", "s32 pid=1;char16 oldcomm=2;char16 newcomm=3;s16 oom_score_adj=4",
	  "\"pid=%d oldcomm=%s newcomm=%s oom_score_adj=%hd\", REC->pid, REC->oldcomm, "
	  "REC->newcomm, REC->oom_score_adj" },
	{ 237, true, "sched", "sched_process_exec", "text filename=1;s32 pid=2;s32 old_pid=3",
	  "\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid" },
	{ 238, true, "sched", "sched_process_exit", "char16 comm=1;s32 pid=2;+s32 tgid=3;s32 prio=4",
	  "\"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio" },
	{ 239, true, "sched", "sched_process_fork",
	  "text parent_comm=1;s32 parent_pid=2;text child_comm=3;s32 child_pid=4",
	  "\"comm=%s pid=%d child_comm=%s child_pid=%d\", __get_str(parent_comm), "
	  "REC->parent_pid, __get_str(child_comm), REC->child_pid" },
	{ 240, true, "sched", "sched_process_free", "text comm=1;s32 pid=2;s32 prio=3",
	  "\"comm=%s pid=%d prio=%d\", __get_str(comm), REC->pid, REC->prio" },
	{ 241, false, "sched", "sched_process_hang", "char16 comm=1;s32 pid=2",
	  "\"comm=%s pid=%d\", REC->comm, REC->pid" },
	{ 242, true, "sched", "sched_process_wait", "text comm=1;s32 pid=2;s32 prio=3",
	  "\"comm=%s pid=%d prio=%d\", __get_str(comm), REC->pid, REC->prio" },
	{ 324, false, "signal", "signal_deliver", "s32 sig=3;s32 code=1;u64 sa_flags=2", NULL },
	{ 325, false, "signal", "signal_generate",
	  "s32 sig=6;s32 code=1;char16 comm=2;s32 pid=4;s32 group=3;s32 result=5", NULL },
	{ 329, false, "raw_syscalls", "sys_enter", "s64 id=1", NULL },
	{ 330, false, "raw_syscalls", "sys_exit", "s64 id=1;s64 ret=2",
	  "\"NR %ld = %ld\", REC->id, REC->ret" },
	{ 353, true, "sched", "sched_pi_setprio", "text comm=1;s32 pid=4;s32 oldprio=3;s32 newprio=2",
	  "\"comm=%s pid=%d oldprio=%d newprio=%d\", __get_str(comm), REC->pid, REC->oldprio, "
	  "REC->newprio" },
	{ 368, true, "kvm", "kvm_access_fault", "u64 ipa=1", "\"IPA: %lx\", REC->ipa" },
	{ 369, false, "kvm", "kvm_ack_irq", "u32 irqchip=1;u32 pin=2",
	  "\"irqchip %d pin %u\", REC->irqchip, REC->pin" },
	{ 370, false, "kvm", "kvm_age_hva", "u64 start=2;u64 end=1",
	  "\"mmu notifier age hva: %#016lx -- %#016lx\", REC->start, REC->end" },
	{ 371, false, "kvm", "kvm_age_page", "u64 gfn=1;u64 hva=2;u32 level=3;u32 referenced=4", NULL },
	{ 372, false, "kvm", "kvm_arm_clear_debug", "u32 guest_debug=1",
	  "\"flags: 0x%08x\", REC->guest_debug" },
	{ 373, false, "kvm", "kvm_arm_set_dreg32", "text name=1;u64 value=2",
	  "\"%s: 0x%llx\", __get_str(name), REC->value" },
	{ 374, false, "kvm", "kvm_arm_set_regset", "s32 len=1;text name=2", NULL },
	{ 375, false, "kvm", "kvm_arm_setup_debug", "u64 vcpu=2;u32 guest_debug=1",
	  "\"vcpu: %p, flags: 0x%08x\", REC->vcpu, REC->guest_debug" },
	{ 376, true, "kvm", "kvm_entry", "u64 vcpu_pc=1", "\"PC: 0x%016lx\", REC->vcpu_pc" },
	{ 377, true, "kvm", "kvm_exit", "s32 ret=2;u32 esr_ec=1;u64 vcpu_pc=3",
	  "\"%s: HSR_EC: 0x%04x (%s), PC: 0x%016lx\", __print_symbolic(REC->ret, {0, \"IRQ\" }, "
	  "{1, \"SERROR\" }, {2, \"TRAP\" }, {0xbadca11, \"HYP_GONE\" }), REC->esr_ec, "
	  "__print_symbolic(REC->esr_ec, { (((0x00UL))), \"UNKNOWN\" }, { (((0x01UL))), \"WFx\" }, "
	  "{ (((0x03UL))), \"CP15_32\" }, { (((0x04UL))), \"CP15_64\" }, { (((0x05UL))), \"CP14_MR\" "
	  "}, { (((0x06UL))), \"CP14_LS\" }, { (((0x07UL))), \"FP_ASIMD\" }, { (((0x08UL))), "
	  "\"CP10_ID\" }, { (((0x09UL))), \"PAC\" }, { (((0x0CUL))), \"CP14_64\" }, { (((0x15UL))), "
	  "\"SVC64\" }, { (((0x16UL))), \"HVC64\" }, { (((0x17UL))), \"SMC64\" }, { (((0x18UL))), "
	  "\"SYS64\" }, { (((0x19UL))), \"SVE\" }, { (((0x1fUL))), \"IMP_DEF\" }, { (((0x20UL))), "
	  "\"IABT_LOW\" }, { (((0x21UL))), \"IABT_CUR\" }, { (((0x22UL))), \"PC_ALIGN\" }, { "
	  "(((0x24UL))), \"DABT_LOW\" }, { (((0x25UL))), \"DABT_CUR\" }, { (((0x26UL))), "
	  "\"SP_ALIGN\" }, { (((0x28UL))), \"FP_EXC32\" }, { (((0x2CUL))), \"FP_EXC64\" }, { "
	  "(((0x2FUL))), \"SERROR\" }, { (((0x30UL))), \"BREAKPT_LOW\" }, { (((0x31UL))), "
	  "\"BREAKPT_CUR\" }, { (((0x32UL))), \"SOFTSTP_LOW\" }, { (((0x33UL))), \"SOFTSTP_CUR\" }, "
	  "{ (((0x34UL))), \"WATCHPT_LOW\" }, { (((0x35UL))), \"WATCHPT_CUR\" }, { (((0x38UL))), "
	  "\"BKPT32\" }, { (((0x3AUL))), \"VECTOR32\" }, { (((0x3CUL))), \"BRK64\" }, { "
	  "(((0x1aUL))), \"ERET\" }), REC->vcpu_pc" },
	{ 378, false, "kvm", "kvm_fpu", "u32 load=1",
	  "\"%s\", __print_symbolic(REC->load, {0, \"unload\"}, {1, \"load\"})" },
	{ 379, true, "kvm", "kvm_get_timer_map",
	  "u64 vcpu_id=4;s32 direct_vtimer=2;s32 direct_ptimer=1;s32 emul_ptimer=3",
	  "\"VCPU: %ld, dv: %d, dp: %d, ep: %d\", REC->vcpu_id, REC->direct_vtimer, "
	  "REC->direct_ptimer, REC->emul_ptimer" },
	{ 380, true, "kvm", "kvm_guest_fault", "u64 vcpu_pc=4;u64 hsr=1;u64 hxfar=2;u64 ipa=3",
	  "\"ipa %#llx, hsr %#08lx, hxfar %#08lx, pc %#016lx\", REC->ipa, REC->hsr, REC->hxfar, "
	  "REC->vcpu_pc" },
	{ 381, true, "kvm", "kvm_handle_sys_reg", "u64 hsr=1", "\"HSR 0x%08lx\", REC->hsr" },
	{ 382, true, "kvm", "kvm_hvc_arm64", "u64 vcpu_pc=3;u64 r0=2;u64 imm=1",
	  "\"HVC at 0x%016lx (r0: 0x%016lx, imm: 0x%lx)\", REC->vcpu_pc, REC->r0, REC->imm" },
	{ 383, true, "kvm", "kvm_irq_line", "u32 type=3;s32 vcpu_idx=4;s32 irq_num=1;s32 level=2",
	  "\"Inject %s interrupt (%d), vcpu->idx: %d, num: %d, level: %d\", (REC->type == 0) ? "
	  "\"CPU\" : (REC->type == 2) ? \"VGIC PPI\" : (REC->type == 1) ? \"VGIC SPI\" : \"UNKNOWN\", "
	  "REC->type, REC->vcpu_idx, REC->irq_num, REC->level" },
	{ 384, true, "kvm", "kvm_mmio", "u32 type=3;u32 len=2;u64 gpa=1;u64 val=4",
	  "\"mmio %s len %u gpa 0x%llx val 0x%llx\", __print_symbolic(REC->type, { 0, "
	  "\"unsatisfied-read\" }, { 1, \"read\" }, { 2, \"write\" }), REC->len, REC->gpa, REC->val" },
	{ 385, true, "kvm", "kvm_mmio_emulate", "u64 vcpu_pc=3;u64 instr=2;u64 cpsr=1",
	  "\"Emulate MMIO at: 0x%016lx (instr: %08lx, cpsr: %08lx)\", REC->vcpu_pc, REC->instr, "
	  "REC->cpsr" },
	{ 386, false, "kvm", "kvm_set_guest_debug", "u64 vcpu=2;u32 guest_debug=1",
	  "\"vcpu: %p, flags: 0x%08x\", REC->vcpu, REC->guest_debug" },
	{ 387, false, "kvm", "kvm_set_irq", "u32 gsi=1;s32 level=3;s32 irq_source_id=2",
	  "\"gsi %u level %d source %d\", REC->gsi, REC->level, REC->irq_source_id" },
	{ 388, false, "kvm", "kvm_set_spte_hva", "u64 hva=1",
	  "\"mmu notifier set pte hva: %#016lx\", REC->hva" },
	{ 389, true, "kvm", "kvm_set_way_flush", "u64 vcpu_pc=2;u8 cache=1",
	  "\"S/W flush at 0x%016lx (cache %s)\", REC->vcpu_pc, ((REC->cache) ? \"on\" : \"off\")" },
	{ 390, true, "kvm", "kvm_sys_access",
	  "u64 vcpu_pc=8;u8 is_write=6;text name=7;u8 Op0=3;u8 Op1=4;u8 CRn=2;u8 CRm=1;u8 Op2=5",
	  "\"PC: %lx %s (%d,%d,%d,%d,%d) %s\", REC->vcpu_pc, __get_str(name) ? __get_str(name) : "
	  "\"UNKN\", REC->Op0, REC->Op1, REC->CRn, REC->CRm, REC->Op2, ((!(REC->is_write)) ? "
	  "\"read\" : \"write\")" },
	{ 391, false, "kvm", "kvm_test_age_hva", "u64 hva=1",
	  "\"mmu notifier test age hva: %#016lx\", REC->hva" },
	{ 392, true, "kvm", "kvm_timer_emulate", "s32 timer_idx=2;u8 should_fire=1",
	  "\"arch_timer_ctx_index: %d (should_fire: %d)\", REC->timer_idx, REC->should_fire" },
	{ 393, true, "kvm", "kvm_timer_hrtimer_expire", "s32 timer_idx=1",
	  "\"arch_timer_ctx_index: %d\", REC->timer_idx" },
	{ 394, true, "kvm", "kvm_timer_restore_state", "u64 ctl=1;u64 cval=2;s32 timer_idx=3",
	  "\"CTL: %#08lx CVAL: %#16llx arch_timer_ctx_index: %d\", REC->ctl, REC->cval, "
	  "REC->timer_idx" },
	{ 395, true, "kvm", "kvm_timer_save_state", "u64 ctl=1;u64 cval=2;s32 timer_idx=3",
	  "\"   CTL: %#08lx CVAL: %#16llx arch_timer_ctx_index: %d\", REC->ctl, REC->cval, "
	  "REC->timer_idx" },
	{ 396, true, "kvm", "kvm_timer_update_irq", "u64 vcpu_id=3;u32 irq=1;s32 level=2",
	  "\"VCPU: %ld, IRQ %d, level %d\", REC->vcpu_id, REC->irq, REC->level" },
	{ 397, true, "kvm", "kvm_toggle_cache", "u64 vcpu_pc=2;u8 was=3;u8 now=1",
	  "\"VM op at 0x%016lx (cache was %s, now %s)\", REC->vcpu_pc, ((REC->was) ? \"on\" : "
	  "\"off\"), ((REC->now) ? \"on\" : \"off\")" },
	{ 398, false, "kvm", "kvm_unmap_hva_range", "u64 start=2;u64 end=1",
	  "\"mmu notifier unmap range: %#016lx -- %#016lx\", REC->start, REC->end" },
	{ 399, true, "kvm", "kvm_userspace_exit", "u32 reason=1", NULL },
	{ 400, true, "kvm", "kvm_vcpu_wakeup", "u64 ns=1;u8 waited=3;u8 valid=2",
	  "\"%s time %lld ns, polling %s\", REC->waited ? \"wait\" : \"poll\", REC->ns, REC->valid ? "
	  "\"valid\" : \"invalid\"" },
	{ 401, true, "kvm", "kvm_wfx_arm64", "u64 vcpu_pc=2;u8 is_wfe=1",
	  "\"guest executed wf%s at: 0x%016lx\", REC->is_wfe ? \"e\" : \"i\", REC->vcpu_pc" },
	{ 402, false, "kvm", "trap_reg", "text fn=1;u32 is_write=2;s32 reg=3;u64 write_value=4", NULL },
	{ 403, true, "kvm", "vgic_update_irq_pending", "u64 vcpu_id=3;u32 irq=1;u8 level=2",
	  "\"VCPU: %ld, IRQ %d, level: %d\", REC->vcpu_id, REC->irq, REC->level" },
	{ 404, false, "power", "wakeup_source_activate", "text name=1;u64 state=2",
	  "\"%s state=0x%lx\", __get_str(name), (unsigned long)REC->state" },
	{ 405, false, "power", "wakeup_source_deactivate", "text name=1;u64 state=2",
	  "\"%s state=0x%lx\", __get_str(name), (unsigned long)REC->state" },
	{ 491, false, "sched", "sched_migrate_task",
	  "text comm=1;s32 pid=2;s32 prio=3;s32 orig_cpu=4;s32 dest_cpu=5",
	  "\"comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d\", __get_str(comm), REC->pid, "
	  "REC->prio, REC->orig_cpu, REC->dest_cpu" },
	{ 542, false, "perfetto", "kprobe_event", "text name=1;s32 type=2",
	  "\"%s %s\", __get_str(name), __print_symbolic(REC->type, { 1, \"begin\" }, { 2, \"end\" }, "
	  "{ 3, \"instant\" })" },
	{ 551, false, "timer", "hrtimer_start",
	  "sym hrtimer=1;sym function=2;s64 expires=3;s64 softexpires=4;u32 mode=5",
	  "\"hrtimer=%p function=%ps expires=%llu softexpires=%llu mode=0x%x\", REC->hrtimer, "
	  "REC->function, (unsigned long long) REC->expires, (unsigned long long) "
	  "REC->softexpires, REC->mode" },
	{ 552, false, "timer", "hrtimer_cancel", "sym hrtimer=1", "\"hrtimer=%p\", REC->hrtimer" },
	{ 553, false, "timer", "hrtimer_expire_entry", "sym hrtimer=1;s64 now=2;sym function=3",
	  "\"hrtimer=%p function=%ps now=%llu\", REC->hrtimer, REC->function, (unsigned long "
	  "long) REC->now" },
	{ 554, false, "timer", "hrtimer_expire_exit", "sym hrtimer=1", "\"hrtimer=%p\", REC->hrtimer" },
	{ 555, false, "timer", "timer_start",
	  "sym timer=1;sym function=2;u64 expires=3;u64 bucket_expiry=7;u64 now=4;u32 flags=6",
	  "\"timer=%p function=%ps expires=%lu [timeout=%ld] bucket_expiry=%lu cpu=%u idx=%u "
	  "flags=%s\", REC->timer, REC->function, REC->expires, (long)REC->expires - REC->now, "
	  "REC->bucket_expiry, REC->flags & 0x0003FFFF, REC->flags >> 22, "
	  "__print_flags(REC->flags & (0x00040000 | 0x00080000 | 0x00100000 | 0x00200000), "
	  "\"|\", { 0x00040000, \"M\" }, { 0x00080000, \"D\" }, { 0x00100000, \"P\" }, { 0x00200000, "
	  "\"I\" })" },
	{ 556, false, "timer", "timer_cancel", "sym timer=1", "\"timer=%p\", REC->timer" },
	{ 557, false, "timer", "timer_expire_entry", "sym timer=1;u64 now=2;sym function=3;u64 baseclk=4",
	  "\"timer=%p function=%ps now=%lu baseclk=%lu\", REC->timer, REC->function, REC->now, "
	  "REC->baseclk" },
	{ 558, false, "timer", "timer_expire_exit", "sym timer=1", "\"timer=%p\", REC->timer" },
	{ 614, false, "power", "psci_domain_idle_exit", "u32 cpu_id=1;u32 state=2;u32 s2idle=3", NULL },
	{ 615, false, "power", "psci_domain_idle_enter", "u32 cpu_id=1;u32 state=2;u32 s2idle=3", NULL },
	/* The hypervisor's, of Android's first generation; import_known_print() has their print formats. */
	{ 476, true, "hyp", "hyp_enter", "", NULL },
	{ 477, true, "hyp", "hyp_exit", "", NULL },
	{ 478, true, "hyp", "host_hcall", "u32 id=1;u8 invalid=2", NULL },
	{ 479, true, "hyp", "host_smc", "u64 id=1;u8 forwarded=2", NULL },
	{ 480, true, "hyp", "host_mem_abort", "u64 esr=1;u64 addr=2", NULL },
	{ 578, true, "hyp", "host_ffa_call",
	  "u64 func_id=1;u64 res_a1=2;u64 res_a2=3;u64 res_a3=4;u64 res_a4=5;s32 handled=6;s32 err=7", NULL },
	{ 580, true, "hyp", "iommu_idmap", "u64 from=1;u64 to=2;s32 prot=3", NULL },
	{ 581, true, "hyp", "psci_mem_protect", "u64 count=1;u64 was=2", NULL },
	/* Of its second generation. */
	{ 582, true, "hypervisor", "host_hcall", "u32 id=1;u8 invalid=2", NULL },
	{ 583, true, "hypervisor", "host_smc", "u64 id=1;u8 forwarded=2", NULL },
	{ 584, true, "hypervisor", "hyp_exit", "", NULL },
	{ 585, true, "hypervisor", "iommu_idmap", "u64 from=1;u64 to=2;s32 prot=3", NULL },
	{ 586, true, "hypervisor", "psci_mem_protect", "u64 count=1;u64 was=2", NULL },
	{ 587, true, "hypervisor", "host_mem_abort", "u64 esr=1;u64 addr=2", NULL },
	{ 588, true, "hypervisor", "hyp_enter", "", NULL },
	{ 589, true, "hypervisor", "iommu_idmap_complete", "u8 map=1", NULL },
	{ 590, true, "hypervisor", "vcpu_illegal_trap", "u64 esr=1", NULL },
	/* hyptrace's own (record/drain/spool-to-dat.h), as export --perfetto writes it. */
	{ 0, false, "hypervisor", "hyp_cntvoff", "s32 vcpu=0;s64 offset=0;u64 low=0;u64 high=0",
	  "\"vcpu=%d offset=%lld low=%llu high=%llu\", REC->vcpu, REC->offset, REC->low, REC->high" },
};

const struct perfetto_event *perfetto_event_numbered(uint32_t number)
{
	for (size_t i = 0; number && i < ARRAY_SIZE(perfetto_events); i++)
		if (perfetto_events[i].number == number)
			return &perfetto_events[i];
	return NULL;
}

const struct perfetto_event *perfetto_event_named(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(perfetto_events); i++)
		if (strlen(perfetto_events[i].name) == len && !memcmp(perfetto_events[i].name, name, len))
			return &perfetto_events[i];
	return NULL;
}

const struct perfetto_event *perfetto_event_written(const char *system, const char *name)
{
	bool second = !strcmp(system, "hypervisor");
	const struct perfetto_event *other = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(perfetto_events); i++) {
		const struct perfetto_event *e = &perfetto_events[i];

		if (!e->written || strcmp(e->name, name) != 0)
			continue;
		if (!strcmp(e->system, "hypervisor")) {
			if (second)
				return e;
		} else {
			other = other ?: e;
		}
	}
	return other;
}

bool perfetto_field_next(const char **fields, struct perfetto_field *f)
{
	char type[16];
	int n = 0;

	*f = (struct perfetto_field){ .old = **fields == '+' };
	*fields += f->old;
	if (sscanf(*fields, "%15s %63[^=]=%u%n", type, f->name, &f->number, &n) != 3)
		return false;
	*fields += n + ((*fields)[n] == ';');
	if (!strcmp(type, "text")) {
		f->kind = PERFETTO_TEXT;
	} else if (!strcmp(type, "rest")) {
		f->kind = PERFETTO_REST;
	} else if (!strncmp(type, "char", 4)) {
		f->kind = PERFETTO_CHARS;
		f->size = (unsigned int)atoi(type + 4);
	} else if (!strcmp(type, "sym")) {
		f->kind = PERFETTO_SYMBOL;
		f->size = 8;
	} else {
		f->is_signed = type[0] == 's';
		f->size = (unsigned int)atoi(type + 1) / 8;
	}
	return true;
}
