// SPDX-License-Identifier: LGPL-2.1-or-later
/* Steps of our captures against their records, and passes with and without order. */
#include <stdatomic.h>
#include <unistd.h>

#include "captures.h"

#include "../integration/trace-maker.h"

#include "ask/states/pass.h"
#include "base/decode/esr.h"
#include "read/timeline.h"

/* ---- what records mean --------------------------------------------------------------- */

static uint64_t value_of(const struct timeline_record *r, const char *field)
{
	const struct tep_format_field *f = tep_find_field(r->event, field);
	uint64_t v;

	return f && field_number(f, r->tep.data, r->m->len, &v) ? v : STEP_UNKNOWN;
}

static void check_step(const struct step *s, const struct timeline_record *r)
{
	const char *name = r->event->name;

	assert_int_equal(s->ts, r->ts);
	assert_int_equal(s->cpu, r->cpu);
	assert_int_equal(s->pid, r->pid);
	if (!strcmp(name, "sched_switch")) {
		assert_int_equal(s->kind, STEP_SWITCH);
		assert_int_equal(s->a, value_of(r, "next_pid"));
		assert_int_equal(s->b, value_of(r, "prev_state"));
	} else if (!strcmp(name, "hyp_enter") || !strcmp(name, "hyp_exit")) {
		assert_int_equal(s->kind, name[4] == 'e' && name[5] == 'n' ? STEP_HYP_ENTER : STEP_HYP_EXIT);
		assert_int_equal(s->a, value_of(r, "reason"));
		assert_int_equal(s->b, value_of(r, "vcpu"));
	} else if (!strcmp(name, "irq_handler_entry")) {
		assert_int_equal(s->kind, STEP_IRQ_ENTER);
		assert_int_equal(s->a, value_of(r, "irq"));
	} else if (!strcmp(name, "vgic_update_irq_pending")) {
		assert_int_equal(s->kind, STEP_VIRQ);
		assert_int_equal(s->a, value_of(r, "vcpu_id"));
		assert_int_equal(s->b, value_of(r, "irq"));
	} else if (!strcmp(name, "kvm_entry")) {
		assert_int_equal(s->kind, STEP_KVM_ENTRY);
	} else if (!strcmp(name, "kvm_exit")) {
		assert_int_equal(s->kind, STEP_KVM_EXIT);
		assert_int_equal((uint32_t)s->a,
				 value_of(r, tep_find_field(r->event, "ret") ? "ret" : "exit_reason"));
	} else if (!strcmp(name, "kvm_mmio")) {
		assert_int_equal(s->kind, STEP_MMIO);
		assert_int_equal(s->a, value_of(r, "gpa"));
		assert_int_equal(s->b, value_of(r, "type"));
	} else if (!strcmp(name, "kvm_sys_access")) {
		assert_int_equal(s->kind, STEP_SYSREG);
		assert_int_equal(s->a >> 20 & 3, value_of(r, "Op0"));
		assert_int_equal(s->a >> 17 & 7, value_of(r, "Op2"));
		assert_int_equal(s->a >> 14 & 7, value_of(r, "Op1"));
		assert_int_equal(s->a >> 10 & 15, value_of(r, "CRn"));
		assert_int_equal(s->a >> 1 & 15, value_of(r, "CRm"));
		assert_int_equal(s->b, value_of(r, "is_write"));
	} else if (!strcmp(name, "kvm_handle_sys_reg")) { /* of the same exit as kvm_sys_access */
		assert_int_equal(s->kind, STEP_SYSREG);
		assert_int_equal(s->a, value_of(r, "hsr") & ESR_SYSREG);
		assert_int_equal(s->b, !(value_of(r, "hsr") & 1));
	}
}

static bool is_stepped(const struct timeline_record *r)
{
	static const char *const names[] = { "sched_switch",	  "hyp_enter",
					     "hyp_exit",	  "kvm_entry",
					     "irq_handler_entry", "vgic_update_irq_pending",
					     "kvm_exit",	  "kvm_mmio",
					     "kvm_sys_access",	  "kvm_handle_sys_reg" };

	for (size_t i = 0; r->event && i < ARRAY_SIZE(names); i++)
		if (!strcmp(r->event->name, names[i]))
			return true;
	return false;
}

static void test_meaning(void **state)
{
	struct step_batch b = { 0 };
	struct merge_run run = { 0 };
	struct padded room = { 0 };
	struct steps *steps;
	struct opened o;
	size_t found = 0, there = 0, lost = 0, missed = 0, gaps = 0, ends = 0;

	open_captures(&o, 0, ARRAY_SIZE(captures));
	assert_int_equal(steps_open(&steps, &o.in), 0);
	assert_int_equal(padded_init(&room), 0);
	while (merge_take(o.t->merge, &run) == 1) {
		struct timeline_record r;

		assert_int_equal(steps_fill(steps, o.t, &run, STEPS_ALL, &b), 0);
		for (size_t i = 0; i < run.n; i++) {
			timeline_fill(o.t, &run.v[i], &room, &r);
			there += is_stepped(&r);
			missed += !!r.missed;
		}
		for (size_t i = 0; i < b.n; i++) {
			lost += b.v[i].kind == STEP_LOST;
			gaps += b.v[i].kind == STEP_GAP;
			ends += b.v[i].kind == STEP_END;
			if (b.v[i].kind == STEP_LOST || b.v[i].kind == STEP_GAP || b.v[i].kind == STEP_END)
				continue;
			timeline_fill(o.t, &run.v[b.v[i].at], &room, &r);
			assert_non_null(r.event);
			check_step(&b.v[i], &r);
			found += is_stepped(&r);
		}
	}
	assert_true(there > 1000);
	assert_int_equal(found, there);
	assert_int_equal(lost, missed);
	for (uint32_t i = 0; i < merge_streams(o.t->merge); i++)
		gaps += merge_stream(o.t->merge, &(struct merge_record){ .stream = i })->gap;
	assert_int_equal(ends, merge_streams(o.t->merge));
	assert_int_equal(gaps, lost); /* each begins behind a record or before the first one */
	padded_release(&room);
	step_batch_release(&b);
	merge_run_release(&run);
	steps_close(steps);
	close_captures(&o);
}

/* Of a set there are those and the losses. */
static void test_sets(void **state)
{
	const uint64_t set = STEP_SET(STEP_SWITCH) | STEP_SET(STEP_MMIO);
	struct step_batch all = { 0 }, some = { 0 };
	struct merge_run run = { 0 };
	struct steps *steps;
	struct opened o;
	size_t found = 0;

	open_captures(&o, 0, ARRAY_SIZE(captures));
	assert_int_equal(steps_open(&steps, &o.in), 0);
	while (merge_take(o.t->merge, &run) == 1) {
		uint64_t kinds = 0;
		size_t n = 0;

		assert_int_equal(steps_fill(steps, o.t, &run, STEPS_ALL, &all), 0);
		assert_int_equal(steps_fill(steps, o.t, &run, set, &some), 0);
		for (size_t i = 0; i < all.n; i++) {
			if (!(STEP_SET(all.v[i].kind) & (set | STEPS_LOSSES)))
				continue;
			kinds |= STEP_SET(all.v[i].kind);
			assert_memory_equal(&some.v[n++], &all.v[i], offsetof(struct step, kind) + 1);
		}
		assert_int_equal(some.n, n);
		assert_int_equal(some.set, kinds);
		found += n;
	}
	assert_true(found > 100);
	step_batch_release(&all);
	step_batch_release(&some);
	merge_run_release(&run);
	steps_close(steps);
	close_captures(&o);
}

static void test_reasons(void **state)
{
	struct steps *steps;
	struct opened o;

	open_captures(&o, 0, ARRAY_SIZE(captures));
	assert_int_equal(steps_open(&steps, &o.in), 0);
	assert_string_equal(steps_reason(steps, 0, STEP_KVM_EXIT, 2), "TRAP");
	assert_null(steps_reason(steps, 0, STEP_KVM_EXIT, 77));
	assert_string_equal(steps_reason(steps, 2, STEP_KVM_EXIT, 1ull << 32 | 12), "HLT");
	assert_string_equal(steps_reason(steps, 2, STEP_KVM_EXIT, 2ull << 32 | 0x78), "hlt");
	assert_string_equal(steps_reason(steps, 0, STEP_HYP_ENTER, 1), "hvc");
	assert_null(steps_reason(steps, 2, STEP_HYP_ENTER, 1));
	steps_close(steps);
	close_captures(&o);
}

/* True if the same task gets another name in the run at the same time. */
static bool named_again(const struct step_batch *b, size_t i)
{
	for (size_t k = i + 1; k < b->n && b->v[k].ts == b->v[i].ts; k++)
		if (b->v[k].kind == STEP_SWITCH && b->v[k].a == b->v[i].a)
			return true;
	return false;
}

/*
 * The guest's table of names was cut off with its capture: its switches have them. Here two tasks take turns
 * with the names of all that get a CPU: each switch's is right at its time, though later ones are known.
 */
static void test_names(void **state)
{
	struct step_batch b = { 0 };
	struct merge_run run = { 0 };
	struct steps *steps;
	struct opened o;
	struct tep_handle *tep;
	struct tep_format_field *next, *pid;
	uint64_t first = 0;
	size_t checked = 0;

	open_captures(&o, 0, 1);
	tep = o.in.v[0].tep;
	next = tep_find_field(tep_find_event_by_name(tep, "sched", "sched_switch"), "next_comm");
	pid = tep_find_field(next->event, "next_pid");
	assert_int_equal(steps_open(&steps, &o.in), 0);
	assert_false(tep_is_pid_registered(tep, 3200000));
	while (merge_take(o.t->merge, &run) == 1) {
		assert_int_equal(steps_fill(steps, o.t, &run, STEPS_ALL, &b), 0);
		for (size_t i = 0; i < b.n; i++) {
			int32_t other = 3200000 + (int32_t)(i % 2);

			if (b.v[i].kind != STEP_SWITCH)
				continue;
			memcpy((uint8_t *)run.v[b.v[i].at].data + pid->offset, &other, sizeof(other));
		}
		assert_int_equal(steps_fill(steps, o.t, &run, STEPS_ALL, &b), 0);
		steps_learn(steps, &run, b.v, b.n);
		for (size_t i = 0; i < b.n; i++) {
			const char *comm = (const char *)run.v[b.v[i].at].data + next->offset;

			if (b.v[i].kind != STEP_SWITCH || named_again(&b, i))
				continue;
			first = first ?: b.v[i].a == 3200000 ? b.v[i].ts : 0;
			assert_string_equal(steps_comm(steps, 0, (int32_t)b.v[i].a, b.v[i].ts), comm);
			checked++;
		}
	}
	assert_true(checked > 100);
	assert_null(steps_comm(steps, 0, 3200000, first - 1));
	assert_true(tep_is_pid_registered(tep, 3200000));
	assert_string_not_equal(tep_data_comm_from_pid(tep, 3200000), "<...>");
	step_batch_release(&b);
	merge_run_release(&run);
	steps_close(steps);
	close_captures(&o);
}

/* ---- passes ----------------------------------------------------------------------------- */

struct counting {
	atomic_size_t records, steps, given;
	uint64_t last; /* in order: time of the step before */
	double part;   /* read before the run before */
	bool order;
};

static int count_work(void *ctx, struct pass_run *run)
{
	struct counting *c = ctx;

	assert_true(run->worker < pipeline_workers());
	c->records += run->records->n;
	c->steps += run->n_steps;
	if (!run->own)
		run->own = calloc(1, 1);
	return run->own ? 0 : -ENOMEM;
}

static int count_after(void *ctx, struct pass_run *run)
{
	struct counting *c = ctx;

	assert_non_null(run->own);
	for (size_t i = 0; i < run->n_steps; i++) {
		assert_true(run->steps[i].ts >= c->last);
		c->last = run->steps[i].ts;
	}
	c->given += run->n_steps;
	return 0;
}

/* It never falls. */
static int count_before(void *ctx, double part)
{
	struct counting *c = ctx;

	assert_true(part >= c->part && part <= 1);
	c->part = part;
	return 0;
}

static int refuse_before(void *ctx, double part)
{
	return -EILSEQ;
}

static int count_refuse(void *ctx, struct pass_run *run)
{
	return -EILSEQ;
}

static int run_pass_of(size_t capture, const struct pass_part *parts, size_t n)
{
	struct steps *steps;
	struct opened o;
	int ret;

	open_captures(&o, capture, 1);
	assert_int_equal(steps_open(&steps, &o.in), 0);
	ret = pass_read(o.t, steps, parts, n);
	steps_close(steps);
	close_captures(&o);
	return ret;
}

static int run_pass(const struct pass_part *parts, size_t n)
{
	return run_pass_of(0, parts, n);
}

#define MANY_RUNS 4 /* the capture that has several runs */

static void test_passes(void **state)
{
	struct counting plain = { 0 }, ordered = { 0 }, without = { 0 }, others = { 0 }, early = { 0 };
	const struct pass_part parts[] = {
		{ .ctx = &plain, .work = count_work, .release = free },
		{ .ctx = &ordered,
		  .steps = STEPS_ALL,
		  .before = count_before,
		  .work = count_work,
		  .after = count_after,
		  .release = free },
		{ .ctx = &without, .steps = STEPS_ALL, .work = count_work, .release = free },
		{ .after = count_refuse },
		{ .work = count_refuse },
		{ .ctx = &others, .steps = STEP_SET(STEP_HYPERCALL), .work = count_work, .release = free },
		{ .ctx = &early,
		  .steps = STEPS_ALL,
		  .work = count_work,
		  .first = count_after,
		  .release = free },
		{ .first = count_refuse },
		{ .before = refuse_before, .after = count_after },
	};

	assert_int_equal(run_pass(parts, 2), 0);
	assert_int_equal(plain.records, 4148 - 1); /* lines of the report but "cpus=4" */
	assert_int_equal(plain.steps, 0);
	assert_int_equal(ordered.records, plain.records);
	assert_int_equal(ordered.given, ordered.steps);
	assert_true(ordered.steps > 1000);
	assert_true(ordered.part > 0);
	/* no order: by streams */
	assert_int_equal(run_pass(&parts[2], 1), 0);
	assert_int_equal(without.records, plain.records);
	assert_int_equal(without.steps, ordered.steps);
	assert_int_equal(run_pass(&parts[3], 1), -EILSEQ);
	assert_int_equal(run_pass(&parts[4], 1), -EILSEQ);
	/* first() of a part alone keeps the order, too */
	assert_int_equal(run_pass(&parts[6], 1), 0);
	assert_int_equal(early.given, ordered.steps);
	assert_int_equal(run_pass(&parts[7], 1), -EILSEQ);
	assert_int_equal(run_pass(&parts[8], 1), -EILSEQ);
	ordered = (struct counting){ 0 };
	/* a run that has none of a part's kinds, and no loss or end, gives it none */
	assert_int_equal(run_pass_of(MANY_RUNS, (const struct pass_part[]){ parts[1], parts[5] }, 2), 0);
	assert_true(others.steps > 0);
	assert_true(others.steps < ordered.steps);
}

/* Counts the calls that use it: those that go on now, and all. */
struct used {
	atomic_int at_it;
	size_t calls;
};

static int use(void *ctx, struct pass_run *run)
{
	struct used *u = ctx;

	assert_int_equal(u->at_it++, 0);
	usleep(2000);
	u->calls++;
	u->at_it--;
	return 0;
}

/* Parts that use the same are never called at once, whatever stands between them; there may be many parts. */
static void test_uses(void **state)
{
	struct used u = { 0 }, each[PIPELINE_FIRSTS_MAX + 1] = { 0 };
	struct pass_part parts[ARRAY_SIZE(each) + 3] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		parts[n++] = (struct pass_part){ .ctx = &each[i], .first = use };
		if (i < 3)
			parts[n++] = (struct pass_part){ .ctx = &u, .first = use, .uses = &u };
	}
	assert_int_equal(run_pass_of(MANY_RUNS, parts, n), 0);
	assert_true(each[0].calls > 2);
	assert_int_equal(u.calls, 3 * each[0].calls);
	for (size_t i = 0; i < ARRAY_SIZE(each); i++)
		assert_int_equal(each[i].calls, each[0].calls);
}

/* Numbers of any size, signed or not, from the record's first bytes to its last, and beyond. */
static void test_fields(void **state)
{
	static const char *const lines[] = {
		"event kvm:kvm_userspace_exit s8 reason@2:1 | \"\"",
		"event sched:sched_waking short pid@10:2; u8 target_cpu@3:1 | \"\"",
		"event kvm:kvm_wfx_arm64 u16 is_wfe@12:2 | \"\"",
		"event kvm:kvm_vcpu_wakeup s64 ns@8:8 | \"\"",
		"raw 1000 0 64 00 fe 07 2a 00 00 00",
		"raw 2000 0 65 00 00 c8 ff ff ff ff 00 00 fd ff",
		"raw 3000 0 66 00 00 00 2a 00 00 00 00 00 00 00",
		"raw 4000 0 66 00 00 00 2a 00 00 00 00 00 00 00 01 80 00 00",
		"raw 5000 0 67 00 00 00 2a 00 00 00 01 02 03 04 05 06 07 88",
	};
	static const struct step wanted[] = {
		{ .ts = 1000, .kind = STEP_USER_EXIT, .pid = 42, .a = UINT64_MAX - 1, .b = STEP_UNKNOWN },
		{ .ts = 2000, .kind = STEP_WAKING, .pid = -1, .a = UINT64_MAX - 2, .b = 0xc8 },
		{ .ts = 3000, .kind = STEP_WFX, .pid = 42, .a = STEP_UNKNOWN, .b = STEP_UNKNOWN },
		{ .ts = 4000, .kind = STEP_WFX, .pid = 42, .a = 0x8001, .b = STEP_UNKNOWN },
		{ .ts = 5000,
		  .kind = STEP_VCPU_WAKEUP,
		  .pid = 42,
		  .a = 0x8807060504030201,
		  .b = STEP_UNKNOWN },
	};
	char path[] = "/tmp/hyptrace-steps-XXXXXX", *paths[] = { path };
	struct step_batch b = { 0 };
	struct merge_run run = { 0 };
	struct steps *steps;
	struct opened o;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	maker_open();
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char *line = strdup(lines[i]);

		maker_line(line);
		free(line);
	}
	maker_write(path);
	assert_int_equal(inputs_open(&o.in, paths, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&o.in, NULL), 0);
	assert_int_equal(timeline_open(&o.t, &o.in, NULL, NULL, NULL), 0);
	assert_int_equal(steps_open(&steps, &o.in), 0);
	assert_int_equal(merge_take(o.t->merge, &run), 1);
	assert_int_equal(steps_fill(steps, o.t, &run, ~STEPS_LOSSES, &b), 0);
	assert_true(b.n >= ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_int_equal(b.v[i].ts, wanted[i].ts);
		assert_int_equal(b.v[i].kind, wanted[i].kind);
		assert_int_equal(b.v[i].pid, wanted[i].pid);
		assert_int_equal(b.v[i].a, wanted[i].a);
		assert_int_equal(b.v[i].b, wanted[i].b);
	}
	step_batch_release(&b);
	merge_run_release(&run);
	steps_close(steps);
	close_captures(&o);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meaning), cmocka_unit_test(test_sets),   cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_names),	cmocka_unit_test(test_passes), cmocka_unit_test(test_uses),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
