// SPDX-License-Identifier: LGPL-2.1-or-later
/* The plugin of KVM's events on arm64 over records of any content. */
#include "../../plugins/plugin.c"
#include "../../plugins/relay.c"
#include "../../plugins/kvm-arm64.c"

#include "plugin-events.h"

#define EVENT(event_name, event_fields)                                                                      \
	{                                                                                                    \
		.sys = "kvm", .name = event_name, .fields = event_fields                                     \
	}

static struct rig_event events[] = {
	EVENT("kvm_exit", "int ret; unsigned int esr_ec; unsigned long vcpu_pc"),
	EVENT("kvm_entry", "unsigned long vcpu_pc"),
	EVENT("kvm_guest_fault", "unsigned long vcpu_pc; unsigned long hsr; unsigned long hxfar; "
				 "unsigned long long ipa"),
	EVENT("kvm_access_fault", "unsigned long ipa"),
	EVENT("kvm_mmio_nisv", "unsigned long vcpu_pc; unsigned long esr; unsigned long far; "
			       "unsigned long ipa"),
	EVENT("kvm_mmio_emulate", "unsigned long vcpu_pc; unsigned long instr; unsigned long cpsr"),
	EVENT("kvm_mmio", "u32 type; u32 len; u64 gpa; u64 val"),
	EVENT("kvm_wfx_arm64", "unsigned long vcpu_pc; bool is_wfe"),
	EVENT("kvm_hvc_arm64", "unsigned long vcpu_pc; unsigned long r0; unsigned long imm"),
	EVENT("kvm_handle_sys_reg", "unsigned long hsr"),
	EVENT("kvm_sys_access", "unsigned long vcpu_pc; bool is_write; const char * name; u8 Op0; "
				"u8 Op1; u8 CRn; u8 CRm; u8 Op2"),
	EVENT("kvm_forward_sysreg_trap", "u64 pc; u32 sysreg; bool is_read"),
	EVENT("kvm_set_way_flush", "unsigned long vcpu_pc; bool cache"),
	EVENT("kvm_toggle_cache", "unsigned long vcpu_pc; bool was; bool now"),
	EVENT("kvm_nested_eret", "unsigned long elr_el2; unsigned long spsr_el2; unsigned long "
				 "target_mode; unsigned long hcr_el2"),
	EVENT("kvm_inject_nested_exception",
	      "unsigned long esr_el2; int type; unsigned long spsr_el2; unsigned long pc; unsigned "
	      "long source_mode; unsigned long hcr_el2"),
	EVENT("kvm_irq_line", "unsigned int type; int vcpu_idx; int irq_num; int level"),
	EVENT("vgic_update_irq_pending", "unsigned long vcpu_id; __u32 irq; bool level"),
	EVENT("kvm_timer_update_irq", "unsigned long vcpu_id; __u32 irq; int level"),
	EVENT("kvm_get_timer_map", "unsigned long vcpu_id; int direct_vtimer; int direct_ptimer; "
				   "int emul_vtimer; int emul_ptimer"),
	EVENT("kvm_timer_save_state", "unsigned long ctl; u64 cval; int timer_idx"),
	EVENT("kvm_timer_restore_state", "unsigned long ctl; u64 cval; int timer_idx"),
	EVENT("kvm_timer_hrtimer_expire", "int timer_idx"),
	EVENT("kvm_timer_emulate", "int timer_idx; bool should_fire"),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_record(events, ARRAY_SIZE(events), data, size);
}
