// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where time goes: small cases by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ask/states/states-priv.h"
#include "states-rig.h"

/* ---- cases: steps, and the spans that must come of them ------------------------------------------ */

/* The hypervisor's reasons by tests/data/formats. */
enum { R_SMC, R_HVC, R_SYS, R_PSCI, R_ABORT, R_GUEST_EXIT, R_ERET_HOST, R_ERET_GUEST };
enum { TRAP = 2, IRQ = 0, WFX = 1, DABT = 0x24 };
#define S	1 /* prev_state */
#define R	0x100
#define Z	0x20
#define NO	STEP_UNKNOWN
#define HLT_VMX (1ull << 32 | 12)
#define INTR	(1ull << 32 | 1)

/* clang-format off */
#define SWITCH(i, t, c, prev, left, next) { .ts = t, .input = i, .cpu = c, .kind = STEP_SWITCH, .pid = prev, .a = next, .b = left }
#define WAKING(i, t, c, who, whom, to)	  { .ts = t, .input = i, .cpu = c, .kind = STEP_WAKING, .pid = who, .a = whom, .b = to }
#define ENTRY(t, c, who)		  { .ts = t, .cpu = c, .kind = STEP_KVM_ENTRY, .pid = who }
#define EXIT(t, c, who, reason, class)	  { .ts = t, .cpu = c, .kind = STEP_KVM_EXIT, .pid = who, .a = reason, .b = class }
#define USER(t, c, who)			  { .ts = t, .cpu = c, .kind = STEP_USER_EXIT, .pid = who, .a = 6 }
#define WOKEN(t, c, who, ns)		  { .ts = t, .cpu = c, .kind = STEP_VCPU_WAKEUP, .pid = who, .a = ns }
#define HYP_IN(t, c, reason)		  { .ts = t, .cpu = c, .buffer = 1, .kind = STEP_HYP_ENTER, .pid = -1, .a = reason }
#define HYP_OUT(t, c, reason, who)	  { .ts = t, .cpu = c, .buffer = 1, .kind = STEP_HYP_EXIT, .pid = -1, .a = reason, .b = who }
#define GAP(i, t, c, of)		  { .ts = t, .input = i, .cpu = c, .buffer = of, .kind = STEP_GAP }
#define LOST(i, t, c, of)		  { .ts = t, .input = i, .cpu = c, .buffer = of, .kind = STEP_LOST, .a = 5 }
/* clang-format on */

struct shown {
	struct buf lines[16]; /* by owner */
	struct states *st;
};

/* "10 host TRAP", "20 halted TRAP by 7": where it begins, what it is, why and by whom. */
static int show_span(void *ctx, const struct state_span *s)
{
	struct shown *to = ctx;
	struct buf *line = &to->lines[s->owner->index];
	const char *why = states_reason(to->st, s);

	assert_true(s->owner->index < ARRAY_SIZE(to->lines) && s->from < s->to);
	buf_printf(line, "%s%llu %s", line->len ? ", " : "", (unsigned long long)s->from,
		   state_name(s->state));
	if (s->by)
		buf_printf(line, " by %s", state_name(s->by));
	buf_addstr(line, s->coarse ? "~" : "");
	if (why)
		buf_printf(line, " %s", why);
	if (s->other != STATE_NO_TASK)
		buf_printf(line, " <%d", s->other);
	if (s->from_bound || s->to_bound)
		buf_printf(line, " +-%llu/%llu", (unsigned long long)s->from_bound,
			   (unsigned long long)s->to_bound);
	return 0;
}

static const char *owner_line(struct shown *to, enum state_kind kind, int32_t pid)
{
	for (size_t i = 0; i < to->st->n_tracks; i++) {
		const struct state_owner *o = to->st->tracks[i]->owner;

		if (o->kind == kind && o->pid == pid)
			return buf_str(&to->lines[i]);
	}
	return "none";
}

struct expected {
	enum state_kind kind;
	int32_t pid;
	const char *spans;
};

static void check_case(unsigned int flags, const struct step *steps, size_t n, uint64_t end,
		       const struct expected *want, size_t n_want)
{
	struct rig_states r;
	struct shown to = { 0 };

	rig_inputs(&r, flags, 11, 3);
	assert_int_equal(states_open(&r.st, &r.in, NULL, r.steps,
				     STATES_VCPUS | STATES_TASKS | STATES_GUEST_TASKS, show_span, &to),
			 0);
	to.st = r.st;
	assert_int_equal(states_begin(r.st, 0), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(states_step(r.st, &steps[i], steps[i].ts), 0);
	states_until(r.st, end);
	assert_int_equal(states_end(r.st), 0);
	for (size_t i = 0; i < n_want; i++)
		assert_string_equal(owner_line(&to, want[i].kind, want[i].pid), want[i].spans);
	for (size_t i = 0; i < ARRAY_SIZE(to.lines); i++)
		buf_release(&to.lines[i]);
	rig_states_close(&r);
}

#define CASE(flags, end, steps, ...)                                                                         \
	check_case(flags, steps, ARRAY_SIZE(steps), end, (struct expected[]){ __VA_ARGS__ },                 \
		   ARRAY_SIZE(((struct expected[]){ __VA_ARGS__ })))
#define VCPU  STATE_OF_VCPU
#define TASK  STATE_OF_TASK
#define GTASK STATE_OF_GUEST_TASK

/* One round trip of an arm64 vCPU under pKVM, a preemption by 50 and a halt that 60's interrupt ends. */
static void test_arm(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 1010, 0, 0, R, 11),
		HYP_OUT(1015, 0, R_ERET_HOST, 0),
		ENTRY(1020, 0, 11),
		HYP_IN(1030, 0, R_HVC),
		HYP_OUT(1040, 0, R_ERET_GUEST, 11),
		HYP_IN(1100, 0, R_GUEST_EXIT),
		HYP_OUT(1110, 0, R_ERET_GUEST, 11),
		HYP_IN(1150, 0, R_GUEST_EXIT),
		HYP_OUT(1155, 0, R_SMC, 11),
		HYP_IN(1158, 0, R_SMC),
		HYP_OUT(1160, 0, R_ERET_HOST, 0),
		EXIT(1170, 0, 11, IRQ, 0),
		SWITCH(HOST, 1180, 0, 11, R, 50),
		SWITCH(HOST, 1190, 0, 50, R, 51),
		SWITCH(HOST, 1200, 0, 51, S, 11),
		ENTRY(1210, 0, 11),
		HYP_IN(1211, 0, R_HVC),
		HYP_OUT(1212, 0, R_ERET_GUEST, 11),
		HYP_IN(1220, 0, R_GUEST_EXIT),
		HYP_OUT(1221, 0, R_ERET_HOST, 0),
		EXIT(1230, 0, 11, TRAP, WFX),
		SWITCH(HOST, 1240, 0, 11, S, 0),
		WAKING(HOST, 1300, 1, 60, 11, 0),
		SWITCH(HOST, 1310, 0, 0, R, 11),
		ENTRY(1320, 0, 11),
		HYP_IN(1330, 0, R_HVC),
		HYP_OUT(1340, 0, R_ERET_GUEST, 11),
		HYP_IN(1350, 0, R_GUEST_EXIT),
	};

	CASE(0, 1400, steps,
	     { VCPU, 11,
	       "0 lost, 1020 host~, 1030 hypervisor hvc, 1040 guest, 1100 hypervisor guest_exit, "
	       "1110 guest, 1150 hypervisor guest_exit, 1155 firmware smc, 1158 hypervisor smc, 1160 host~, "
	       "1170 host~ IRQ, 1180 preempted IRQ <50, 1190 preempted IRQ <51, 1200 host~ IRQ, 1210 host~, "
	       "1211 hypervisor hvc, 1212 guest, 1220 hypervisor guest_exit, 1221 host~, 1230 host~ TRAP, "
	       "1240 halted~ TRAP <60, 1300 waking TRAP, 1310 host~ TRAP, 1320 host~, "
	       "1330 hypervisor hvc, 1340 guest, 1350 lost" },
	     { TASK, 11,
	       "0 lost, 1010 running, 1180 runnable <50, 1200 running, 1240 sleeping <60, 1300 runnable "
	       "<0, 1310 running, 1320 lost" },
	     { TASK, 50, "0 lost, 1180 running, 1190 runnable <51, 1320 lost" },
	     { TASK, 51, "0 lost, 1190 running, 1200 sleeping~, 1320 lost" });
}

/* x86: no hypervisor, HLT by VMX, a VMM; and the same by a file without sched, then without kvm_exit. */
static void test_x86(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 10, 2, 0, R, 11),
		SWITCH(HOST, 15, 3, 0, R, 50),
		ENTRY(20, 2, 11),
		EXIT(30, 2, 11, INTR, NO),
		ENTRY(40, 2, 11),
		EXIT(50, 2, 11, HLT_VMX, NO),
		SWITCH(HOST, 60, 2, 11, S, 0),
		WAKING(HOST, 70, 3, 50, 11, 2),
		SWITCH(HOST, 80, 2, 0, R, 11),
		ENTRY(90, 2, 11),
		EXIT(100, 2, 11, INTR, NO),
		USER(110, 2, 11),
		SWITCH(HOST, 120, 2, 11, S, 0),
		SWITCH(HOST, 130, 2, 0, R, 11),
		ENTRY(140, 2, 11),
		EXIT(150, 2, 11, HLT_VMX, NO),
		WOKEN(170, 2, 11, 15),
		ENTRY(180, 2, 11),
		EXIT(190, 2, 11, INTR, NO),
		SWITCH(HOST, 200, 2, 11, Z, 0),
	};
	static const struct step unscheduled[] = {
		ENTRY(20, 2, 11),  EXIT(30, 2, 11, HLT_VMX, NO), WOKEN(60, 2, 11, 20),
		ENTRY(70, 2, 11),  EXIT(80, 2, 11, INTR, NO),	 USER(90, 2, 11),
		ENTRY(100, 3, 11),
	};

	CASE(RIG_X86, 210, steps,
	     { VCPU, 11,
	       "0 lost, 20 guest, 30 host~ EXTERNAL_INTERRUPT, 40 guest, 50 host~ HLT, 60 halted~ HLT "
	       "<50, "
	       "70 waking HLT, 80 host~ HLT, 90 guest, 100 host~ EXTERNAL_INTERRUPT, 110 VMM, "
	       "120 blocked, 130 VMM, 140 guest, 150 host HLT, 155 halted HLT, 170 host HLT, 180 guest, "
	       "190 host EXTERNAL_INTERRUPT, 200 lost" },
	     { TASK, 11,
	       "0 lost, 10 running, 60 sleeping <50, 70 runnable <0, 80 running, 120 sleeping, "
	       "130 running, 200 lost" });
	CASE(RIG_X86, 110, unscheduled,
	     { VCPU, 11,
	       "0 lost, 20 guest, 30 not recorded HLT, 40 halted~ HLT, 60 not recorded HLT, 70 guest, "
	       "80 not recorded EXTERNAL_INTERRUPT, 90 not recorded, 100 lost" });
}

/* arm64 without a hypervisor's buffer: from kvm_entry to kvm_exit, coarse. */
static void test_no_hyp(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 10, 0, 0, R, 11), ENTRY(20, 0, 11),
		EXIT(30, 0, 11, TRAP, DABT),   ENTRY(40, 0, 11),
		EXIT(50, 0, 11, TRAP, WFX),    SWITCH(HOST, 60, 0, 11, S, 0),
		SWITCH(HOST, 70, 0, 0, R, 11), ENTRY(80, 0, 11),
	};

	CASE(0, 90, steps,
	     { VCPU, 11,
	       "0 lost, 20 guest~, 30 host~ TRAP, 40 guest~, 50 host~ TRAP, 60 halted~ TRAP, "
	       "70 host~ TRAP, 80 lost" });
}

/* Android's: hyp_enter and hyp_exit say nothing. The second exit behind an entry goes who knows where. */
static void test_no_reasons(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 11, 0, 0, R, 11),
		ENTRY(21, 0, 11),
		HYP_IN(31, 0, NO),
		HYP_OUT(41, 0, NO, NO),
		HYP_IN(51, 0, NO),
		HYP_OUT(61, 0, NO, NO),
		EXIT(71, 0, 11, IRQ, 0),
		HYP_IN(81, 0, NO),
		HYP_OUT(82, 0, NO, NO),
		ENTRY(91, 0, 11),
		HYP_IN(93, 0, NO),
		HYP_OUT(94, 0, NO, NO),
		HYP_IN(95, 0, NO),
		HYP_OUT(96, 0, NO, NO),
		HYP_IN(97, 0, NO),
	};

	CASE(0, 99, steps,
	     { VCPU, 11,
	       "0 lost, 21 guest~, 31 hypervisor, 41 guest, 51 hypervisor, 61 host~, 71 host~ IRQ, "
	       "81 hypervisor, 82 host~ IRQ, 91 host~, 93 hypervisor, 94 guest, 95 hypervisor, 96 lost, "
	       "97 lost" });
}

/* Only the hypervisor's buffer: in the guest, in the hypervisor for it, and else not told. */
static void test_only_hyp(void **state)
{
	static const struct step steps[] = {
		HYP_IN(11, 0, R_HVC),	     HYP_OUT(21, 0, R_ERET_GUEST, 11),
		HYP_IN(31, 0, R_GUEST_EXIT), HYP_OUT(41, 0, R_ERET_HOST, 0),
		HYP_IN(51, 0, R_HVC),	     HYP_OUT(61, 0, R_ERET_GUEST, 11),
		HYP_IN(71, 0, R_GUEST_EXIT),
	};

	CASE(0, 80, steps,
	     { VCPU, 11, "0 lost, 21 guest, 31 hypervisor guest_exit, 41 not recorded, 61 guest, 71 lost" });
}

/* What the guest runs is stolen while its vCPU is not in the guest, by whom its vCPU lost the CPU to. */
static void test_stolen(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 10, 2, 0, R, 11),
		SWITCH(HOST, 11, 3, 0, R, 50),
		ENTRY(20, 2, 11),
		SWITCH(GUEST, 25, 0, 0, R, 201),
		EXIT(40, 2, 11, INTR, NO),
		SWITCH(HOST, 50, 2, 11, R, 60),
		SWITCH(HOST, 60, 2, 60, R, 11),
		ENTRY(70, 2, 11),
		SWITCH(GUEST, 80, 0, 201, R, 202),
		SWITCH(GUEST, 90, 0, 202, S, 201),
		SWITCH(GUEST, 100, 0, 201, S, 0),
		EXIT(110, 2, 11, HLT_VMX, NO),
		SWITCH(HOST, 120, 2, 11, S, 0),
		WAKING(HOST, 130, 3, 50, 11, 2),
		SWITCH(HOST, 140, 2, 0, R, 11),
		ENTRY(150, 2, 11),
		WAKING(GUEST, 155, 0, 0, 201, 0),
		SWITCH(GUEST, 160, 0, 0, R, 201),
		EXIT(170, 2, 11, INTR, NO),
		SWITCH(HOST, 171, 2, 11, R, 60),
		SWITCH(GUEST, 172, 0, 201, S, 0),
	};

	CASE(RIG_X86 | RIG_GUEST, 180, steps,
	     { GTASK, 201,
	       "0 lost +-0/3, 25 running +-3/0, 40 stolen by host~ EXTERNAL_INTERRUPT, "
	       "50 stolen by preempted EXTERNAL_INTERRUPT <60, 60 stolen by host~ EXTERNAL_INTERRUPT, "
	       "70 running +-0/3, 80 runnable <202 +-3/3, 90 running +-3/3, 100 sleeping <0 +-3/3, "
	       "155 runnable <0 +-3/3, 160 running +-3/2, 170 stolen by host~ EXTERNAL_INTERRUPT +-0/2, "
	       "171 stolen by preempted EXTERNAL_INTERRUPT <60 +-0/3, 172 lost +-3/0" },
	     { GTASK, 202, "0 lost +-0/3, 80 running +-3/3, 90 sleeping~ +-3/0, 172 lost" },
	     { VCPU, 11,
	       "0 lost, 20 guest, 40 host~ EXTERNAL_INTERRUPT, 50 preempted EXTERNAL_INTERRUPT <60, "
	       "60 host~ EXTERNAL_INTERRUPT, 70 guest, 110 host~ HLT, 120 halted~ HLT <50, "
	       "130 waking HLT, 140 host~ HLT, 150 guest, 170 host~ EXTERNAL_INTERRUPT, "
	       "171 lost" },
	     { VCPU, 12, "0 lost" });
}

/* A guest whose host says nothing: what its scheduler says. */
static void test_guest_alone(void **state)
{
	static const struct step steps[] = {
		SWITCH(GUEST, 10, 5, 0, R, 201),
		SWITCH(GUEST, 20, 5, 201, S, 0),
		SWITCH(GUEST, 30, 5, 0, R, 202),
	};

	CASE(RIG_X86 | RIG_GUEST, 40, steps,
	     { GTASK, 201, "0 lost +-0/3, 10 running~ +-3/3, 20 sleeping~ +-3/0, 30 lost" });
}

/* Lost events of CPU 0's buffer: nothing that they could say, whoever ran there or could have come there. */
static void test_lost(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 10, 0, 0, R, 11),
		SWITCH(HOST, 11, 1, 0, R, 12),
		ENTRY(20, 0, 11),
		ENTRY(21, 1, 12),
		EXIT(30, 0, 11, INTR, NO),
		SWITCH(HOST, 31, 0, 11, S, 50),
		SWITCH(HOST, 33, 0, 50, S, 51),
		GAP(HOST, 33, 0, 0),
		EXIT(40, 1, 12, INTR, NO),
		ENTRY(45, 1, 12),
		EXIT(50, 1, 12, HLT_VMX, NO),
		SWITCH(HOST, 52, 1, 12, S, 0),
		LOST(HOST, 60, 0, 0),
		SWITCH(HOST, 61, 0, 50, R, 51),
		WAKING(HOST, 70, 0, 51, 12, 1),
		SWITCH(HOST, 75, 1, 0, R, 12),
		ENTRY(80, 1, 12),
		SWITCH(HOST, 90, 0, 51, R, 0),
	};

	CASE(RIG_X86, 100, steps,
	     { VCPU, 11,
	       "0 lost, 20 guest, 30 host~ EXTERNAL_INTERRUPT, 31 blocked~ EXTERNAL_INTERRUPT, "
	       "33 lost" },
	     { VCPU, 12,
	       "0 lost, 21 guest, 40 host~ EXTERNAL_INTERRUPT, 45 guest, 50 host~ HLT, "
	       "52 lost, 70 waking, 75 lost, 80 guest, 90 lost" },
	     { TASK, 12, "0 lost, 11 running, 52 lost, 70 runnable <0, 75 running, 90 lost" },
	     { TASK, 50, "0 lost, 31 running, 33 lost, 61 runnable <51, 90 lost" },
	     { TASK, 51, "0 lost, 33 lost, 61 running, 90 lost" });
}

/* The hypervisor's buffer loses events; what the host's says stays. */
static void test_lost_hyp(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 1011, 0, 0, R, 11),
		ENTRY(1021, 0, 11),
		HYP_IN(1031, 0, R_HVC),
		HYP_OUT(1041, 0, R_ERET_GUEST, 11),
		GAP(HOST, 1041, 0, 1),
		EXIT(1071, 0, 11, TRAP, WFX),
		SWITCH(HOST, 1081, 0, 11, S, 0),
		SWITCH(HOST, 1091, 0, 0, R, 11),
		LOST(HOST, 1095, 0, 1),
		HYP_IN(1095, 0, R_HVC),
		HYP_OUT(1099, 0, R_ERET_HOST, 0),
		ENTRY(1101, 0, 11),
	};

	CASE(0, 1101, steps,
	     { VCPU, 11,
	       "0 lost, 1021 guest~, 1031 hypervisor hvc, 1041 lost, 1081 halted~ TRAP, 1091 lost, "
	       "1095 hypervisor hvc, 1099 host~ TRAP" });
}

/* A kvm_entry or kvm_exit without the other, and a thread that leaves its CPU in the guest. */
static void test_unpaired(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 10, 0, 0, R, 11),
		ENTRY(20, 0, 11),
		ENTRY(30, 0, 11),
		EXIT(40, 0, 11, INTR, NO),
		EXIT(50, 0, 11, INTR, NO),
		ENTRY(60, 0, 11),
		SWITCH(HOST, 70, 0, 11, R, 0),
		SWITCH(HOST, 80, 0, 0, R, 11),
		EXIT(90, 0, 11, INTR, NO),
		SWITCH(HOST, 95, 0, 11, R, 0),
		SWITCH(HOST, 97, 1, 11, R, 0),
	};

	CASE(RIG_X86, 100, steps,
	     { VCPU, 11,
	       "0 lost, 20 lost, 30 guest, 40 lost, 50 host~ EXTERNAL_INTERRUPT, 60 lost, 70 "
	       "waking, "
	       "80 lost, 90 host~ EXTERNAL_INTERRUPT, 95 lost, 97 lost" });
}

/* A task comes to a CPU without having left the other, and another leaves that nobody saw come. */
static void test_contradicting(void **state)
{
	static const struct step steps[] = {
		SWITCH(HOST, 10, 0, 0, R, 50),	SWITCH(HOST, 20, 1, 0, R, 50), SWITCH(HOST, 30, 1, 50, R, 51),
		SWITCH(HOST, 40, 1, 52, R, 50), SWITCH(HOST, 50, 1, 50, S, 0),
	};

	CASE(RIG_X86, 60, steps,
	     { TASK, 50, "0 lost, 10 lost, 20 running, 30 runnable <51, 40 running, 50 lost" },
	     { TASK, 51, "0 lost, 30 lost" }, { TASK, 52, "0 lost, 40 runnable <50, 50 lost" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arm),	      cmocka_unit_test(test_x86),
		cmocka_unit_test(test_no_hyp),	      cmocka_unit_test(test_no_reasons),
		cmocka_unit_test(test_only_hyp),      cmocka_unit_test(test_stolen),
		cmocka_unit_test(test_guest_alone),   cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_hyp),      cmocka_unit_test(test_unpaired),
		cmocka_unit_test(test_contradicting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
