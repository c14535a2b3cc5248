// SPDX-License-Identifier: LGPL-2.1-or-later
/* The chains that have a name, as KVM's and the kernel's events tell them on arm64 and x86. */
#include "latency/presets.h"

#include <string.h>

#define KVM	    "-e kvm"
#define SCHED	    "-e sched"
#define GUEST_SCHED "-A GUEST -e sched"
#define GUEST_IRQ   "-A GUEST -e irq -e ipi (x86: -e irq -e irq_vectors)"
#define GUEST_TIMER "-A GUEST -e timer"

/* clang-format off */
#define OF(by_, ...) { .by = (by_), __VA_ARGS__ }
/* The rest of a row. It is written once where all of it is the vCPU whose thread, or CPU, it is. */
#define VCPU OF(BY_VCPU)
#define AT(p, words, options) .event = (words), .point = (p), .record = (options)

/* An interrupt for a vCPU becomes pending. */
#define INJECTED(p, ...) \
	{ AT(p, "vgic_update_irq_pending@host/level==1", KVM), \
	  .look = OF(BY_VCPU_FIELD, "vcpu_id"), .next = OF(BY_VCPU_FIELD, "vcpu_id"), __VA_ARGS__ }, \
	{ AT(p, "kvm_apic_accept_irq@host", KVM), \
	  .look = OF(BY_VCPU_FIELD, "apicid"), .next = OF(BY_VCPU_FIELD, "apicid"), __VA_ARGS__ }, \
	{ AT(p, "kvm_apicv_accept_irq@host", KVM), \
	  .look = OF(BY_VCPU_FIELD, "apicid"), .next = OF(BY_VCPU_FIELD, "apicid"), __VA_ARGS__ }
#define ENTERED(p) { AT(p, "kvm_entry@host", KVM), .look = VCPU, .next = VCPU }
#define HANDLER(p, name, options, ...) { AT(p, name "@guest", options), .look = VCPU, __VA_ARGS__ }
/* clang-format on */

/*
 * A task of a guest is woken on a CPU that sleeps. For its own CPU, or one that runs, nothing is injected:
 * it switches before.
 */
static const struct latency_term wakeup_terms[] = {
	{ AT(0, "sched_waking@guest", GUEST_SCHED), .next = OF(BY_VCPU_FIELD, "target_cpu"),
	  .carry = OF(BY_GUEST_FIELD, "pid") },
	INJECTED(1),
	{ AT(1, "sched_waking@host", SCHED), .look = OF(BY_VCPU_TID, "pid"), .next = OF(BY_VCPU_TID, "pid") },
	ENTERED(2),
	HANDLER(3, "ipi_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	HANDLER(3, "irq_handler_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	HANDLER(3, "reschedule_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	HANDLER(3, "call_function_single_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	HANDLER(3, "local_timer_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	{ AT(4, "sched_switch@guest", GUEST_SCHED), .look = OF(BY_GUEST_FIELD, "next_pid") },
	{ AT(1, "sched_switch@guest", GUEST_SCHED), .cancels = true, .look = VCPU },
	{ AT(2, "sched_switch@guest", GUEST_SCHED), .cancels = true, .look = VCPU },
	{ AT(3, "sched_switch@guest", GUEST_SCHED), .cancels = true, .look = VCPU },
};

static const struct latency_term irq_terms[] = {
	INJECTED(0),
	ENTERED(1),
	HANDLER(2, "irq_handler_entry", GUEST_IRQ),
	HANDLER(2, "local_timer_entry", GUEST_IRQ),
	HANDLER(2, "reschedule_entry", GUEST_IRQ),
	HANDLER(2, "call_function_single_entry", GUEST_IRQ),
	HANDLER(2, "call_function_entry", GUEST_IRQ),
};

/* The thread that writes to the device wakes the one that does its work, before it enters the guest again. */
#define NOTIFIED(...)	      .next = OF(BY_PID), .carry = VCPU, .row = OF(BY_PAIR, __VA_ARGS__)
#define BY_WORKER_IRQ(field_) .look = OF(BY_WORKER), .next = OF(BY_CARRIED_FIELD, field_)
static const struct latency_term virtio_terms[] = {
	{ AT(0, "kvm_mmio@host/type==2", KVM), NOTIFIED("gpa", "val") },
	{ AT(0, "kvm_fast_mmio@host", KVM), NOTIFIED("gpa") },
	{ AT(0, "kvm_pio@host/rw==1", KVM), NOTIFIED("port", "val") },
	{ AT(1, "sched_waking@host", SCHED), .look = OF(BY_PID), .next = OF(BY_WORKER_TID, "pid") },
	{ AT(1, "kvm_entry@host", KVM), .cancels = true, .look = OF(BY_PID) },
	{ AT(2, "sched_switch@host", SCHED), .look = OF(BY_WORKER_TID, "next_pid"),
	  .next = OF(BY_WORKER_TID, "next_pid") },
	{ AT(3, "vgic_update_irq_pending@host/level==1", KVM), BY_WORKER_IRQ("vcpu_id") },
	{ AT(3, "kvm_apic_accept_irq@host", KVM), BY_WORKER_IRQ("apicid") },
	{ AT(3, "kvm_apicv_accept_irq@host", KVM), BY_WORKER_IRQ("apicid") },
	/* KVM has no event for an MSI through arm64's ITS: what shows is that it wakes the vCPU's thread */
	{ AT(3, "sched_waking@host", SCHED), .look = OF(BY_WORKER), .next = OF(BY_VCPU_TID, "pid") },
	{ AT(4, "irq_handler_entry@guest/name=~\"^virtio\"", GUEST_IRQ), .look = VCPU },
};

/* What the guest programs is seen only as its hrtimer_start: the last one on the vCPU counts. */
static const struct latency_term timer_terms[] = {
	{ AT(0, "hrtimer_start@guest", GUEST_TIMER), .next = VCPU },
	{ AT(1, "kvm_timer_update_irq@host/level==1", KVM), .look = OF(BY_VCPU_FIELD, "vcpu_id"),
	  .next = OF(BY_VCPU_FIELD, "vcpu_id") },
	{ AT(1, "kvm_apic_accept_irq@host/vec==0xec", KVM), /* LOCAL_TIMER_VECTOR of Linux on x86 */
	  .look = OF(BY_VCPU_FIELD, "apicid"), .next = OF(BY_VCPU_FIELD, "apicid") },
	{ AT(1, "kvm_apicv_accept_irq@host/vec==0xec", KVM), .look = OF(BY_VCPU_FIELD, "apicid"),
	  .next = OF(BY_VCPU_FIELD, "apicid") },
	ENTERED(2),
	HANDLER(3, "hrtimer_expire_entry", GUEST_TIMER),
};

/* arm64: traps of HVC and SMC (ESR_ELx_EC_HVC32 ...); x86: VMCALL of VMX, VMMCALL of SVM. */
static const struct latency_term hypercall_terms[] = {
	{ AT(0, "kvm_exit@host/ret==2&&(esr_ec==0x12||esr_ec==0x13||esr_ec==0x16||esr_ec==0x17)", KVM),
	  .next = VCPU },
	{ AT(0, "kvm_exit@host/(isa==1&&exit_reason==18)||(isa==2&&exit_reason==0x81)", KVM), .next = VCPU },
	ENTERED(1),
};

/* arm64: instruction and data aborts of a lower level; x86: EPT violations, nested page faults. */
static const struct latency_term abort_terms[] = {
	{ AT(0, "kvm_exit@host/ret==2&&(esr_ec==0x20||esr_ec==0x24)", KVM), .next = VCPU },
	{ AT(0, "kvm_exit@host/(isa==1&&exit_reason==48)||(isa==2&&exit_reason==0x400)", KVM), .next = VCPU },
	{ AT(1, "kvm_guest_fault@host", KVM), .look = VCPU, .next = VCPU },
	{ AT(1, "kvm_page_fault@host", KVM), .look = VCPU, .next = VCPU },
	{ AT(1, "kvm_entry@host", KVM), .cancels = true, .look = VCPU },
	ENTERED(2),
};

#define TERMS(which) .terms = which##_terms, .n_terms = ARRAY_SIZE(which##_terms)

static const struct latency_preset presets[] = {
	{ .name = "wakeup",
	  .summary = "a guest's wake-up of a task on a vCPU that sleeps",
	  .row = "vCPU",
	  .points = { "wake-up", "injection", "vCPU runs", "handler", "task runs" },
	  .n_points = 5,
	  .least = 5,
	  TERMS(wakeup) },
	{ .name = "irq",
	  .summary = "an interrupt from KVM to the guest's handler",
	  .row = "vCPU",
	  .points = { "injection", "vCPU runs", "handler" },
	  .n_points = 3,
	  .least = 2,
	  TERMS(irq) },
	{ .name = "virtio",
	  .summary = "a device's notification to its interrupt, by queue",
	  .row = "queue",
	  .points = { "notification", "worker woken", "worker runs", "interrupt", "handler" },
	  .n_points = 5,
	  .least = 4,
	  TERMS(virtio) },
	{ .name = "timer",
	  .summary = "a guest's timer from programming to its handler",
	  .row = "vCPU",
	  .points = { "programmed", "fired", "vCPU runs", "handler" },
	  .n_points = 4,
	  .least = 4,
	  TERMS(timer) },
	{ .name = "hypercall",
	  .summary = "a guest's HVC, SMC or VMCALL to its answer",
	  .row = "vCPU",
	  .points = { "call", "answer" },
	  .n_points = 2,
	  .least = 2,
	  TERMS(hypercall) },
	{ .name = "abort",
	  .summary = "a guest's abort to its next entry",
	  .row = "vCPU",
	  .points = { "abort", "fault handled", "entry" },
	  .n_points = 3,
	  .least = 3,
	  TERMS(abort) },
};

const struct latency_preset *latency_preset_at(size_t i)
{
	return i < ARRAY_SIZE(presets) ? &presets[i] : NULL;
}

const struct latency_preset *latency_preset(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
		if (!strcmp(presets[i].name, name))
			return &presets[i];
	return NULL;
}

void latency_preset_plan(const struct latency_preset *p, const struct inputs *in, struct latency_plan *plan)
{
	bool guest = false;

	plan->terms = p->terms;
	plan->n_terms = p->n_terms;
	plan->n_points = p->n_points;
	plan->lenient = true;
	for (size_t i = 0; i < in->n; i++)
		guest |= in->v[i].guest;
	if (guest)
		return;
	plan->n_points = p->least;
	while (plan->n_terms && plan->terms[plan->n_terms - 1].point >= p->least)
		plan->n_terms--;
}
