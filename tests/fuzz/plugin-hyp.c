// SPDX-License-Identifier: LGPL-2.1-or-later
/* The plugin of the hypervisor's events over records of any content. */
#include "../../plugins/plugin.c"
#include "../../plugins/hyp-reason.c"
#include "../../plugins/hyp.c"

#include "plugin-events.h"

#define FFA "u64 func_id; u64 res_a1; u64 res_a2; u64 res_a3; u64 res_a4; int handled; int err"

#define EVENT(event_name, event_fields)                                                                      \
	{                                                                                                    \
		.sys = "hypervisor", .name = event_name, .fields = event_fields, .packed = true              \
	}

static struct rig_event events[] = {
	EVENT("hyp_enter", "u8 reason; pid_t vcpu"),
	EVENT("hyp_exit", ""),
	EVENT("host_hcall", "unsigned int id; u8 invalid"),
	EVENT("host_smc", "u64 id; u8 forwarded"),
	EVENT("host_mem_abort", "u64 esr; u64 addr"),
	EVENT("host_ffa_call", FFA),
	EVENT("guest_ffa_call", FFA "; u64 exit_code; u64 vm_handle"),
	EVENT("psci_mem_protect", "u64 count; u64 was"),
	EVENT("iommu_idmap", "u64 from; u64 to; int prot"),
	EVENT("iommu_idmap_complete", "bool map"),
	EVENT("vcpu_illegal_trap", "u64 esr"),
	EVENT("power_lock", "pid_t vm; u64 device; bool lock; int ret"),
	EVENT("func", "unsigned long ip; unsigned long parent"),
	EVENT("func_ret", "unsigned long ip"),
	EVENT("__hyp_printk", "u16 fmt_id; u64 a; u64 b; u64 c; u64 d"),
	EVENT("hyp_printk", "u16 fmt_id; __data_loc u64[] args"),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_record(events, ARRAY_SIZE(events), data, size);
}
