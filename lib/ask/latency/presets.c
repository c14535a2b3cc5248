// SPDX-License-Identifier: LGPL-2.1-or-later
/* The chains that have a name, by KVM's and the kernel's events on arm64 and x86. */
#include "ask/latency/latency.h"

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

#define ENTERED(p) { AT(p, "kvm_entry@host", KVM), .look = VCPU, .next = VCPU }
#define IRQ_ENTERED(kind_) { AT(1, "kvm_entry@host", KVM), .look = VCPU, .next = VCPU, .kind = (kind_) }
#define HANDLER(p, name, options, ...) { AT(p, name "@guest", options), .look = VCPU, __VA_ARGS__ }
#define SWITCHED(p) { AT(p, "sched_switch@guest", GUEST_SCHED), .cancels = true, .look = VCPU }
/* An interrupt that KVM has for a vCPU: the filter selects it by GIC number, or by vector. */
#define LINE(p, event_, filter_, field_, ...) \
	{ AT(p, event_ "@host/" filter_, KVM), .look = OF(BY_VCPU_FIELD, field_), \
	  .next = OF(BY_VCPU_FIELD, field_), __VA_ARGS__ }
#define VECTOR(p, filter_, ...) \
	LINE(p, "kvm_apic_accept_irq", filter_, "apicid", __VA_ARGS__), \
	LINE(p, "kvm_apicv_accept_irq", filter_, "apicid", __VA_ARGS__)
/* clang-format on */

/*
 * A task of a guest is woken on a CPU that sleeps: the waker's CPU sends an interrupt, for which its vCPU's
 * thread leaves the guest and, in its own context (TRACE_FLAG_HARDIRQ and _SOFTIRQ are not set), wakes the
 * thread of a vCPU that KVM has halted. The task is the last that the waker's CPU woke before.
 */
static const struct latency_term wakeup_terms[] = {
	{ AT(0, "sched_waking@guest", GUEST_SCHED), .next = VCPU, .carry = OF(BY_GUEST_FIELD, "pid"),
	  .row = OF(BY_VCPU_FIELD, "target_cpu") },
	{ AT(1, "sched_waking@host/!(common_flags&24)", SCHED), .look = VCPU, .next = OF(BY_VCPU_TID, "pid"),
	  .row = OF(BY_VCPU_TID, "pid") },
	{ AT(2, "kvm_vcpu_wakeup@host/waited==1", KVM), .look = VCPU, .next = VCPU },
	{ AT(2, "kvm_entry@host", KVM), .cancels = true, .look = VCPU },
	ENTERED(3),
	HANDLER(4, "ipi_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	{ AT(4, "irq_handler_entry@guest/name==\"IPI\"", GUEST_IRQ), .look = VCPU, .next = OF(BY_CARRIED) },
	HANDLER(4, "reschedule_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	HANDLER(4, "call_function_single_entry", GUEST_IRQ, .next = OF(BY_CARRIED)),
	{ AT(5, "sched_switch@guest", GUEST_SCHED), .look = OF(BY_GUEST_FIELD, "next_pid"), .at = VCPU },
	SWITCHED(1),
	SWITCHED(2),
	SWITCHED(3),
	SWITCHED(4),
};

/*
 * The interrupt decides which handler is its: 27 is the timer's of all arm64 virtual machines,
 * 236, 251, 252 and 253 are vectors of Linux on x86 (LOCAL_TIMER_VECTOR ...). Devices' have other numbers in
 * the guest (struct lines).
 */
enum { IRQ_TIMER, IRQ_DEVICE, IRQ_RESCHEDULE, IRQ_CALL, IRQ_CALL_SINGLE };
#define IRQ_DEVICE_OF(...) .carry = OF(BY_VCPU_LINE, __VA_ARGS__), .kind = IRQ_DEVICE, .line = true
static const struct latency_term irq_terms[] = {
	LINE(0, "vgic_update_irq_pending", "level==1&&irq==27", "vcpu_id", .kind = IRQ_TIMER),
	LINE(0, "vgic_update_irq_pending", "level==1&&irq>31", "vcpu_id", IRQ_DEVICE_OF("vcpu_id", "irq")),
	LINE(0, "kvm_apic_accept_irq", "vec>31&&vec<236", "apicid", IRQ_DEVICE_OF("apicid", "vec")),
	LINE(0, "kvm_apicv_accept_irq", "vec>31&&vec<236", "apicid", IRQ_DEVICE_OF("apicid", "vec")),
	VECTOR(0, "vec==236", .kind = IRQ_TIMER),
	VECTOR(0, "vec==251", .kind = IRQ_CALL_SINGLE),
	VECTOR(0, "vec==252", .kind = IRQ_CALL),
	VECTOR(0, "vec==253", .kind = IRQ_RESCHEDULE),
	LINE(1, "vgic_update_irq_pending", "level==0&&irq==27", "vcpu_id", .cancels = true),
	IRQ_ENTERED(IRQ_TIMER),
	{ AT(1, "kvm_entry@host", KVM), .look = VCPU, .next = OF(BY_CARRIED), .kind = IRQ_DEVICE },
	IRQ_ENTERED(IRQ_RESCHEDULE),
	IRQ_ENTERED(IRQ_CALL),
	IRQ_ENTERED(IRQ_CALL_SINGLE),
	LINE(2, "vgic_update_irq_pending", "level==0&&irq==27", "vcpu_id", .cancels = true),
	{ AT(2, "irq_handler_entry@guest/name==\"arch_timer\"", GUEST_IRQ), .look = VCPU, .kind = IRQ_TIMER },
	{ AT(2, "irq_handler_entry@guest/name!=\"arch_timer\"&&name!=\"IPI\"", GUEST_IRQ),
	  .look = OF(BY_VCPU_LINE, "irq"), .kind = IRQ_DEVICE, .line = true },
	HANDLER(2, "local_timer_entry", GUEST_IRQ, .kind = IRQ_TIMER),
	HANDLER(2, "reschedule_entry", GUEST_IRQ, .kind = IRQ_RESCHEDULE),
	HANDLER(2, "call_function_entry", GUEST_IRQ, .kind = IRQ_CALL),
	HANDLER(2, "call_function_single_entry", GUEST_IRQ, .kind = IRQ_CALL_SINGLE),
};

/*
 * A device's interrupt on the host, whose handler has an interrupt for a vCPU that is in its guest: KVM kicks
 * it, by an IPI for which it exits. On the vCPU's own CPU it has left the guest before. 8:
 * TRACE_FLAG_HARDIRQ.
 */
static const struct latency_term kick_terms[] = {
	{ AT(0, "irq_handler_entry@host", "-e irq"), .next = OF(BY_CPU), .row = OF(BY_FIELD, "irq") },
	{ AT(1, "vgic_update_irq_pending@host/common_flags&8&&level==1&&irq>31", KVM), .look = OF(BY_CPU),
	  .next = OF(BY_LONE_FIELD, "vcpu_id") },
	{ AT(1, "kvm_apic_accept_irq@host/common_flags&8&&vec>31&&vec<236", KVM), .look = OF(BY_CPU),
	  .next = OF(BY_LONE_FIELD, "apicid") },
	{ AT(1, "irq_handler_exit@host", "-e irq"), .cancels = true, .look = OF(BY_CPU) },
	/* any exit; if it is for an interrupt, the chain waits for the entry by then: later terms come first
	 */
	{ AT(2, "kvm_exit@host", KVM), .cancels = true, .look = VCPU },
	{ AT(2, "kvm_exit@host/ret==0", KVM), .look = VCPU, .next = VCPU }, /* ARM_EXCEPTION_IRQ */
	/* EXIT_REASON_EXTERNAL_INTERRUPT, SVM_EXIT_INTR */
	{ AT(2, "kvm_exit@host/(isa==1&&exit_reason==1)||(isa==2&&exit_reason==0x60)", KVM), .look = VCPU,
	  .next = VCPU },
	{ AT(2, "kvm_entry@host", KVM), .cancels = true, .look = VCPU },
	ENTERED(3),
};

/* The thread that writes to the device wakes the one that does its work, before it enters the guest again. */
#define NOTIFIED(...)	      .next = OF(BY_PID), .carry = VCPU, .row = OF(BY_PAIR, __VA_ARGS__)
#define BY_WORKER_IRQ(field_) .look = OF(BY_WORKER), .next = OF(BY_CARRIED_FIELD, field_)
static const struct latency_term virtio_terms[] = {
	{ AT(0, "kvm_mmio@host/type==2", KVM), NOTIFIED("gpa", "val") },
	{ AT(0, "kvm_fast_mmio@host", KVM), NOTIFIED("gpa") },
	/* PCI devices' ports begin there (PCIBIOS_MIN_IO): below are the serial port, the PIC, CMOS ... */
	{ AT(0, "kvm_pio@host/rw==1&&port>=0x1000", KVM), NOTIFIED("port", "val") },
	{ AT(1, "sched_waking@host/!(common_flags&24)", SCHED), .look = OF(BY_PID),
	  .next = OF(BY_WORKER_TID, "pid"), .shares = true },
	{ AT(1, "kvm_userspace_exit@host", KVM), .cancels = true, .look = OF(BY_PID) },
	{ AT(1, "kvm_entry@host", KVM), .cancels = true, .look = OF(BY_PID) },
	{ AT(2, "sched_switch@host", SCHED), .look = OF(BY_WORKER_TID, "next_pid"),
	  .next = OF(BY_WORKER_TID, "next_pid"), .shares = true },
	{ AT(3, "vgic_update_irq_pending@host/level==1", KVM), BY_WORKER_IRQ("vcpu_id") },
	{ AT(3, "kvm_apic_accept_irq@host", KVM), BY_WORKER_IRQ("apicid") },
	{ AT(3, "kvm_apicv_accept_irq@host", KVM), BY_WORKER_IRQ("apicid") },
	/* KVM has no event for an MSI through arm64's ITS: what shows is that it wakes the vCPU's thread */
	{ AT(3, "sched_waking@host", SCHED), .look = OF(BY_WORKER), .next = OF(BY_VCPU_TID, "pid") },
	{ AT(4, "irq_handler_entry@guest/name=~\"^virtio\"", GUEST_IRQ), .look = VCPU },
};

/*
 * The interrupt is for the hrtimer that expires first in its handler: the one that was programmed is that
 * one's last hrtimer_start. No event shows all timers that are set, nor which of them is next.
 */
static const struct latency_term timer_terms[] = {
	{ AT(0, "hrtimer_start@guest", GUEST_TIMER), .carry = OF(BY_GUEST_FIELD, "hrtimer") },
	{ AT(0, "hrtimer_cancel@guest", GUEST_TIMER), .cancels = true,
	  .carry = OF(BY_GUEST_FIELD, "hrtimer") },
	LINE(1, "kvm_timer_update_irq", "level==1&&irq==27", "vcpu_id"),
	VECTOR(1, "vec==236"),
	ENTERED(2),
	LINE(2, "kvm_timer_update_irq", "level==0&&irq==27", "vcpu_id", .cancels = true),
	HANDLER(3, "hrtimer_expire_entry", GUEST_TIMER, .carry = OF(BY_GUEST_FIELD, "hrtimer")),
	LINE(3, "kvm_timer_update_irq", "level==0&&irq==27", "vcpu_id", .cancels = true),
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

_Static_assert(ARRAY_SIZE(irq_terms) <= LATENCY_TERMS_MAX, "of the preset with most");
#define TERMS(which) .terms = which##_terms, .n_terms = ARRAY_SIZE(which##_terms)

static const struct latency_preset presets[] = {
	{ .name = "wakeup",
	  .summary = "a guest's wake-up of a task on a vCPU that sleeps",
	  .row = "vCPU",
	  .points = { "wake-up", "injection", "vCPU wakes", "vCPU runs", "handler", "task runs" },
	  .n_points = 6,
	  .least = 6,
	  TERMS(wakeup) },
	{ .name = "irq",
	  .summary = "an interrupt from KVM to the guest's handler",
	  .doubt = ", or nothing shows which handler is the device's",
	  .row = "vCPU",
	  .points = { "injection", "vCPU runs", "handler" },
	  .n_points = 3,
	  .least = 2,
	  .lines = true,
	  TERMS(irq) },
	{ .name = "virtio",
	  .summary = "a device's notification to its interrupt, by queue",
	  .doubt = ", or a worker had several queues",
	  .row = "queue",
	  .points = { "notification", "worker woken", "worker runs", "interrupt", "handler" },
	  .n_points = 5,
	  .least = 4,
	  .evident = true,
	  .queues = true,
	  TERMS(virtio) },
	{ .name = "timer",
	  .summary = "a guest's timer from programming to its handler",
	  .row = "vCPU",
	  .points = { "programmed", "fired", "vCPU runs", "handler" },
	  .n_points = 4,
	  .least = 4,
	  .recalls = true,
	  TERMS(timer) },
	{ .name = "hypercall",
	  .summary = "a guest's HVC, SMC or VMCALL to its answer",
	  .row = "vCPU",
	  .points = { "call", "answer" },
	  .n_points = 2,
	  .least = 2,
	  TERMS(hypercall) },
	{ .name = "kick",
	  .summary = "a device's interrupt on another CPU to the vCPU's exit for it, and its entry",
	  .row = "irq",
	  .points = { "interrupt", "injection", "exit", "entry" },
	  .n_points = 4,
	  .least = 4,
	  .evident = true,
	  TERMS(kick) },
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
	plan->recalls = p->recalls;
	plan->queues = p->queues;
	for (size_t i = 0; i < in->n; i++)
		guest |= in->v[i].guest;
	plan->lines = p->lines && guest;
	if (guest)
		return;
	plan->n_points = p->least;
	while (plan->n_terms && plan->terms[plan->n_terms - 1].point >= p->least)
		plan->n_terms--;
}
