// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * KVM's events on arm64, in the kernel's own words (arch/arm64/kvm/trace_arm.h,
 * arch/arm64/kvm/trace_handle_exit.h, arch/arm64/kvm/vgic/trace.h), followed by the meaning of numbers in
 * parentheses; the function that the guest was in comes last.
 */
#include "base/decode/esr.h"
#include "plugin.h"
#include "base/array.h"

static struct tep_plugin_option options[] = {
	{ .name = (char *)"plain",
	  .plugin_alias = (char *)"kvm-arm64",
	  .description = (char *)"the kernel's text alone, without what it means" },
	{ .name = NULL },
};

static bool kvm_explain(void)
{
	return !options[0].set;
}

static void kvm_put_esr(struct trace_seq *s, uint64_t esr)
{
	char text[ESR_TEXT_MAX];

	if (kvm_explain())
		trace_seq_printf(s, " (%s)", esr_text(esr, text, sizeof(text)));
}

static void put_function(struct trace_seq *s, struct view *v, const char *pc)
{
	if (kvm_explain())
		view_put_function(s, v, pc);
}

static const char *on_off(uint64_t v)
{
	return v ? "on" : "off";
}

static const char *exit_reason_name(const struct tep_event *event, uint64_t code)
{
	return kvm_exit_arm_name((uint32_t)code);
}

static const char *class_name(const struct tep_event *event, uint64_t ec)
{
	return esr_ec_name((uint32_t)ec);
}

static void print_guest_fault(struct trace_seq *s, struct view *v)
{
	uint64_t hsr = view_u64(v, "hsr");

	trace_seq_printf(s, "ipa %#" PRIx64 ", hsr %#08" PRIx64 ", hxfar %#08" PRIx64 ", pc %#016" PRIx64,
			 view_u64(v, "ipa"), hsr, view_u64(v, "hxfar"), view_u64(v, "vcpu_pc"));
	kvm_put_esr(s, hsr);
	put_function(s, v, "vcpu_pc");
}

static void print_access_fault(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "IPA: %" PRIx64, view_u64(v, "ipa"));
}

static void print_mmio_nisv(struct trace_seq *s, struct view *v)
{
	uint64_t esr = view_u64(v, "esr");

	trace_seq_printf(s, "ipa %#016" PRIx64 ", esr %#016" PRIx64 ", far %#016" PRIx64 ", pc %#016" PRIx64,
			 view_u64(v, "ipa"), esr, view_u64(v, "far"), view_u64(v, "vcpu_pc"));
	kvm_put_esr(s, esr);
	put_function(s, v, "vcpu_pc");
}

static void print_mmio_emulate(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "Emulate MMIO at: 0x%016" PRIx64 " (instr: %08" PRIx64 ", cpsr: %08" PRIx64 ")",
			 view_u64(v, "vcpu_pc"), view_u64(v, "instr"), view_u64(v, "cpsr"));
	put_function(s, v, "vcpu_pc");
}

static const char *const mmio_types[] = { "unsatisfied-read", "read", "write" };

static void print_mmio(struct trace_seq *s, struct view *v)
{
	uint64_t type = view_u64(v, "type");

	if (type < ARRAY_SIZE(mmio_types))
		trace_seq_printf(s, "mmio %s", mmio_types[type]);
	else
		trace_seq_printf(s, "mmio 0x%" PRIx64, type);
	trace_seq_printf(s, " len %u gpa 0x%" PRIx64 " val 0x%" PRIx64, (unsigned int)view_u64(v, "len"),
			 view_u64(v, "gpa"), view_u64(v, "val"));
}

static void print_wfx(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "guest executed wf%c at: 0x%016" PRIx64, view_u64(v, "is_wfe") ? 'e' : 'i',
			 view_u64(v, "vcpu_pc"));
	put_function(s, v, "vcpu_pc");
}

static void print_hvc(struct trace_seq *s, struct view *v)
{
	uint64_t r0 = view_u64(v, "r0"), imm = view_u64(v, "imm");
	char text[SMCCC_TEXT_MAX];

	trace_seq_printf(s, "HVC at 0x%016" PRIx64 " (r0: 0x%016" PRIx64 ", imm: 0x%" PRIx64 ")",
			 view_u64(v, "vcpu_pc"), r0, imm);
	if (kvm_explain() && !imm) /* other immediates are not SMCCC calls */
		trace_seq_printf(s, " (%s)", smccc_text((uint32_t)r0, text, sizeof(text)));
	put_function(s, v, "vcpu_pc");
}

static void print_handle_sys_reg(struct trace_seq *s, struct view *v)
{
	uint64_t hsr = view_u64(v, "hsr");

	trace_seq_printf(s, "HSR 0x%08" PRIx64, hsr);
	kvm_put_esr(s, hsr);
}

/* The name's pointer means nothing outside of that kernel: the encoding identifies the register. */
static void print_sys_access(struct trace_seq *s, struct view *v)
{
	struct sysreg r = {
		.op0 = (uint8_t)view_u64(v, "Op0"),
		.op1 = (uint8_t)view_u64(v, "Op1"),
		.crn = (uint8_t)view_u64(v, "CRn"),
		.crm = (uint8_t)view_u64(v, "CRm"),
		.op2 = (uint8_t)view_u64(v, "Op2"),
	};
	char name[SYSREG_NAME_MAX];

	trace_seq_printf(s, "PC: %" PRIx64 " %s (%u,%u,%u,%u,%u) %s", view_u64(v, "vcpu_pc"),
			 sysreg_text(&r, name, sizeof(name)), r.op0, r.op1, r.crn, r.crm, r.op2,
			 view_u64(v, "is_write") ? "write" : "read");
	put_function(s, v, "vcpu_pc");
}

static void print_forward_sysreg(struct trace_seq *s, struct view *v)
{
	uint32_t reg = (uint32_t)view_u64(v, "sysreg");
	struct sysreg r = { reg >> 19 & 3, reg >> 16 & 7, reg >> 12 & 15, reg >> 8 & 15, reg >> 5 & 7 };
	char name[SYSREG_NAME_MAX];

	trace_seq_printf(s, "%" PRIx64 " %c (%u,%u,%u,%u,%u)", view_u64(v, "pc"),
			 view_u64(v, "is_read") ? 'R' : 'W', r.op0, r.op1, r.crn, r.crm, r.op2);
	if (kvm_explain())
		trace_seq_printf(s, " (%s)", sysreg_text(&r, name, sizeof(name)));
	put_function(s, v, "pc");
}

static void print_set_way_flush(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "S/W flush at 0x%016" PRIx64 " (cache %s)", view_u64(v, "vcpu_pc"),
			 on_off(view_u64(v, "cache")));
	put_function(s, v, "vcpu_pc");
}

static void print_toggle_cache(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "VM op at 0x%016" PRIx64 " (cache was %s, now %s)", view_u64(v, "vcpu_pc"),
			 on_off(view_u64(v, "was")), on_off(view_u64(v, "now")));
	put_function(s, v, "vcpu_pc");
}

static void put_mode(struct trace_seq *s, uint64_t mode)
{
	const char *name = mode < 32 ? pstate_mode_name((uint32_t)mode) : NULL;

	if (name)
		trace_seq_printf(s, " (M: %s)", name);
	else
		trace_seq_printf(s, " (M: 0x%" PRIx64 ")", mode);
}

static void print_nested_eret(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "elr_el2: 0x%" PRIx64 " spsr_el2: 0x%08" PRIx64, view_u64(v, "elr_el2"),
			 view_u64(v, "spsr_el2"));
	put_mode(s, view_u64(v, "target_mode"));
	trace_seq_printf(s, " hcr_el2: %" PRIx64, view_u64(v, "hcr_el2"));
}

/* enum exception_type of arch/arm64/include/asm/ptrace.h */
static const char *exception_name(int64_t type)
{
	static const char *const names[] = { "SYNC", "IRQ", "FIQ", "SERROR" }; /* from 0 on, 0x80 apart */

	return type < 0 || type > 0x180 || type % 0x80 ? "unknown" : names[type / 0x80];
}

static void print_nested_exception(struct trace_seq *s, struct view *v)
{
	uint64_t esr = view_u64(v, "esr_el2");
	int64_t type = view_s64(v, "type");

	trace_seq_printf(s, "%s: esr_el2 0x%" PRIx64 " elr_el2: 0x%" PRIx64 " spsr_el2: 0x%08" PRIx64,
			 exception_name(type), esr, view_u64(v, "pc"), view_u64(v, "spsr_el2"));
	put_mode(s, view_u64(v, "source_mode"));
	trace_seq_printf(s, " hcr_el2: %" PRIx64, view_u64(v, "hcr_el2"));
	if (!type)
		kvm_put_esr(s, esr);
	put_function(s, v, "pc");
}

/* The PPIs are those that KVM gives a guest unless its VMM asks for others. */
static void put_irq(struct trace_seq *s, uint32_t irq)
{
	static const char *const ppi[32] = {
		[23] = "PMU",		[25] = "GIC maintenance",   [26] = "hyp physical timer",
		[27] = "virtual timer", [28] = "hyp virtual timer", [30] = "physical timer"
	};

	if (!kvm_explain())
		return;
	if (irq < 16)
		trace_seq_printf(s, " (SGI %u)", irq);
	else if (irq < 32 && ppi[irq])
		trace_seq_printf(s, " (PPI %u, %s)", irq - 16, ppi[irq]);
	else if (irq < 32)
		trace_seq_printf(s, " (PPI %u)", irq - 16);
	else if (irq < 1020)
		trace_seq_printf(s, " (SPI %u)", irq - 32);
	else if (irq >= 8192)
		trace_seq_puts(s, " (LPI)");
}

/* KVM_ARM_IRQ_TYPE_... of arch/arm64/include/uapi/asm/kvm.h */
static const char *const irq_types[] = { "CPU", "VGIC SPI", "VGIC PPI" };

static void print_irq_line(struct trace_seq *s, struct view *v)
{
	uint64_t type = view_u64(v, "type");

	trace_seq_printf(s, "Inject %s interrupt (%d), vcpu->idx: %d, num: %d, level: %d",
			 type < ARRAY_SIZE(irq_types) ? irq_types[type] : "UNKNOWN", (int)type,
			 (int)view_s64(v, "vcpu_idx"), (int)view_s64(v, "irq_num"),
			 (int)view_s64(v, "level"));
}

/* Of the GIC and of the timer, whose text has no second colon. */
static void print_virq(struct trace_seq *s, struct view *v)
{
	uint32_t irq = (uint32_t)view_u64(v, "irq");

	trace_seq_printf(s, "VCPU: %" PRId64 ", IRQ %d, level%s %d", view_s64(v, "vcpu_id"), (int)irq,
			 strcmp(v->event->name, "kvm_timer_update_irq") ? ":" : "",
			 (int)view_s64(v, "level"));
	put_irq(s, irq);
}

/* enum kvm_arch_timers of include/kvm/arm_arch_timer.h; NULL: none. */
static const char *timer_name(int64_t idx)
{
	static const char *const names[] = { "ptimer", "vtimer", "hvtimer", "hptimer" };

	return idx >= 0 && idx < (int64_t)ARRAY_SIZE(names) ? names[idx] : NULL;
}

static void print_timer_map(struct trace_seq *s, struct view *v)
{
	/* kernels before nested virtualisation do not have all of them */
	static const struct {
		const char *field, *text, *what;
	} map[] = { { "direct_vtimer", "dv", "direct" },
		    { "direct_ptimer", "dp", "direct" },
		    { "emul_vtimer", "ev", "emulated" },
		    { "emul_ptimer", "ep", "emulated" } };
	const char *sep = " (";

	trace_seq_printf(s, "VCPU: %" PRId64, view_s64(v, "vcpu_id"));
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (view_has(v, map[i].field))
			trace_seq_printf(s, ", %s: %d", map[i].text, (int)view_s64(v, map[i].field));
	for (size_t i = 0; i < ARRAY_SIZE(map) && kvm_explain(); i++) {
		const char *name = timer_name(view_s64(v, map[i].field));

		if (!view_has(v, map[i].field) || !name)
			continue;
		trace_seq_printf(s, "%s%s %s", sep, map[i].what, name);
		sep = ", ";
	}
	if (*sep == ',')
		trace_seq_puts(s, ")");
}

/* CNTx_CTL: bit 0 enable, 1 mask, 2 status. */
static void print_timer_state(struct trace_seq *s, struct view *v)
{
	uint64_t ctl = view_u64(v, "ctl");
	int64_t idx = view_s64(v, "timer_idx");
	const char *name = timer_name(idx);

	trace_seq_printf(s, "CTL: %#08" PRIx64 " CVAL: %#16" PRIx64 " arch_timer_ctx_index: %d", ctl,
			 view_u64(v, "cval"), (int)idx);
	if (kvm_explain())
		trace_seq_printf(s, " (%s %s%s%s)", name ? name : "timer", ctl & 1 ? "enabled" : "disabled",
				 ctl & 2 ? ", masked" : "", ctl & 4 ? ", condition met" : "");
}

static void print_timer_save(struct trace_seq *s, struct view *v)
{
	trace_seq_puts(s, "   ");
	print_timer_state(s, v);
}

static void print_timer(struct trace_seq *s, struct view *v)
{
	int64_t idx = view_s64(v, "timer_idx");

	trace_seq_printf(s, "arch_timer_ctx_index: %d", (int)idx);
	if (view_has(v, "should_fire"))
		trace_seq_printf(s, " (should_fire: %d)", (int)view_s64(v, "should_fire"));
	if (kvm_explain() && timer_name(idx))
		trace_seq_printf(s, " (%s)", timer_name(idx));
}

static const struct decoder decoders[] = {
	{ "kvm_guest_fault", print_guest_fault, { "vcpu_pc", "hsr", "hxfar", "ipa" } },
	{ "kvm_access_fault", print_access_fault, { "ipa" } },
	{ "kvm_mmio_nisv", print_mmio_nisv, { "vcpu_pc", "esr", "far", "ipa" } },
	{ "kvm_mmio_emulate", print_mmio_emulate, { "vcpu_pc", "instr", "cpsr" } },
	{ "kvm_mmio", print_mmio, { "type", "len", "gpa", "val" } },
	{ "kvm_wfx_arm64", print_wfx, { "vcpu_pc", "is_wfe" } },
	{ "kvm_hvc_arm64", print_hvc, { "vcpu_pc", "r0", "imm" } },
	{ "kvm_handle_sys_reg", print_handle_sys_reg, { "hsr" } },
	{ "kvm_sys_access", print_sys_access, { "vcpu_pc", "is_write", "Op0", "Op1", "CRn", "CRm", "Op2" } },
	{ "kvm_forward_sysreg_trap", print_forward_sysreg, { "pc", "sysreg", "is_read" } },
	{ "kvm_set_way_flush", print_set_way_flush, { "vcpu_pc", "cache" } },
	{ "kvm_toggle_cache", print_toggle_cache, { "vcpu_pc", "was", "now" } },
	{ "kvm_nested_eret", print_nested_eret, { "elr_el2", "spsr_el2", "target_mode", "hcr_el2" } },
	{ "kvm_inject_nested_exception",
	  print_nested_exception,
	  { "esr_el2", "type", "spsr_el2", "pc", "source_mode", "hcr_el2" } },
	{ "kvm_irq_line", print_irq_line, { "type", "vcpu_idx", "irq_num", "level" } },
	{ "vgic_update_irq_pending", print_virq, { "vcpu_id", "irq", "level" } },
	{ "kvm_timer_update_irq", print_virq, { "vcpu_id", "irq", "level" } },
	{ "kvm_get_timer_map", print_timer_map, { "vcpu_id", "direct_vtimer" } },
	{ "kvm_timer_save_state", print_timer_save, { "ctl", "cval", "timer_idx" } },
	{ "kvm_timer_restore_state", print_timer_state, { "ctl", "cval", "timer_idx" } },
	{ "kvm_timer_hrtimer_expire", print_timer, { "timer_idx" } },
	{ "kvm_timer_emulate", print_timer, { "timer_idx", "should_fire" } },
};

/* Those that the stock plugin handles as well, for x86. */
static const struct row_decoder shared[] = {
	{ { "kvm_exit", NULL, { "ret", "esr_ec", "vcpu_pc" } },
	  { { "", "ret", EVENT_TEXT_HEX_NAME, 32, 0, exit_reason_name },
	    { ": HSR_EC: 0x", "esr_ec", EVENT_TEXT_HEX, 32, 4, NULL },
	    { " (", "esr_ec", EVENT_TEXT_HEX_NAME, 32, 0, class_name },
	    { "), PC: 0x", "vcpu_pc", EVENT_TEXT_HEX, 64, 16, NULL },
	    { "", "vcpu_pc", EVENT_TEXT_FUNCTION, 64, 0, NULL } },
	  &options[0] },
	{ { "kvm_entry", NULL, { "vcpu_pc" } },
	  { { "PC: 0x", "vcpu_pc", EVENT_TEXT_HEX, 64, 16, NULL },
	    { "", "vcpu_pc", EVENT_TEXT_FUNCTION, 64, 0, NULL } },
	  &options[0] },
};

static int decode_shared(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			 void *context)
{
	const struct view v = { event, record, false };
	struct relay *r = context;

	relay_retire(r);
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		if (!strcmp(event->name, shared[i].d.event) &&
		    !decode(s, record, event, (void *)&shared[i].d))
			return 0;
	/* the stock plugin knows x86's; of another format it would print half a line */
	return view_has(&v, "exit_reason") || view_has(&v, "vcpu_id") ? relay_pass(r, s, record, event) : -1;
}

enum event_text_answer hyptrace_plugin_text(const struct tep_event *event, const struct event_text **rows,
					    size_t *n)
{
	const struct decoder *both =
		decoder_find(&shared->d, ARRAY_SIZE(shared), sizeof(*shared), event->name);
	const struct decoder *d =
		decoder_find(decoders, ARRAY_SIZE(decoders), sizeof(*decoders), event->name);

	if (both && decoder_text(both, event, rows, n) != EVENT_TEXT_ROWS)
		return EVENT_TEXT_ALONE; /* it may be the stock plugin's */
	return decoder_text(both ? both : d, event, rows, n);
}

int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	options[0].set = 0; /* a bare word switches it again for each tep */
	tep_plugin_add_options("kvm-arm64", options);
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		relay_new(tep, "kvm", shared[i].d.event, decode_shared);
	decoders_change(tep_register_event_handler, tep, "kvm", decoders, ARRAY_SIZE(decoders));
	return 0;
}

int TEP_PLUGIN_UNLOADER(struct tep_handle *tep)
{
	tep_plugin_remove_options(options);
	decoders_change(tep_unregister_event_handler, tep, "kvm", decoders, ARRAY_SIZE(decoders));
	relays_free(tep);
	return 0;
}
