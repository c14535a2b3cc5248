// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where time goes: steps that make no sense, more tasks than are kept, and our captures. */
#include "captures.h"
#include "ask/states/states-priv.h"
#include "states-rig.h"

/* ---- nonsense ------------------------------------------------------------------------------------ */

struct tiling {
	uint64_t at[20000], wall;
	struct state_totals totals;
};

static int tile(void *ctx, const struct state_span *s)
{
	struct tiling *t = ctx;

	assert_true(s->owner->index < ARRAY_SIZE(t->at) && s->from < s->to);
	assert_true(!t->at[s->owner->index] || t->at[s->owner->index] == s->from);
	assert_true((s->state == STATE_STOLEN) == (s->by != STATE_UNKNOWN));
	t->at[s->owner->index] = s->to;
	return state_totals_span(&t->totals, s);
}

static void check_tiling(struct tiling *t, const struct states *st)
{
	uint64_t wall = states_to(st) - states_from(st);

	for (size_t i = 0; i < t->totals.n; i++) {
		uint64_t sum = 0;

		for (int s = 0; s < STATES; s++)
			sum += t->totals.v[i].all[s].ns;
		assert_int_equal(sum, t->totals.v[i].owner ? wall : 0);
		assert_true(t->totals.v[i].n_thieves <= STATE_THIEVES_MAX);
	}
	state_totals_release(&t->totals);
}

static uint64_t any(const uint64_t *of, size_t n)
{
	return of[(size_t)rand() % n];
}

static struct step any_step(uint64_t *ts)
{
	static const uint64_t values[] = { 0,
					   1,
					   2,
					   5,
					   7,
					   11,
					   12,
					   50,
					   0x100,
					   INT32_MAX,
					   UINT32_MAX,
					   1ull << 32,
					   (uint64_t)INT64_MAX,
					   UINT64_MAX },
			      pids[] = { 0, 1, 11, 12, 50, 51, INT32_MAX, UINT32_MAX, (uint64_t)INT32_MIN },
			      cpus[] = { 0, 1, 2, 3, 63, 65535, 65536, UINT32_MAX };

	*ts += (uint64_t)(rand() % 100);
	if (rand() % 50 == 0)
		*ts -= (uint64_t)(rand() % 1000);
	return (struct step){ .ts = *ts,
			      .a = any(values, ARRAY_SIZE(values)),
			      .b = any(values, ARRAY_SIZE(values)),
			      .cpu = (uint32_t)any(cpus, rand() % 3 ? 3 : ARRAY_SIZE(cpus)),
			      .pid = (int32_t)any(pids, ARRAY_SIZE(pids)),
			      .input = (uint16_t)(rand() % 20 ? rand() % 2 : rand()),
			      .buffer = (uint16_t)(rand() % 20 ? 0 : rand()),
			      .kind = (uint8_t)(rand() % (STEP_KINDS + 2)) };
}

static void test_nonsense(void **state)
{
	for (unsigned int seed = 0; seed < 300; seed++) {
		struct tiling *t = calloc(1, sizeof(*t));
		struct rig_states r;
		uint64_t ts = 5000;

		assert_non_null(t);
		srand(seed);
		rig_inputs(&r, RIG_GUEST | (seed % 2 ? RIG_X86 : 0), 11, 3);
		assert_int_equal(states_open(&r.st, &r.in, NULL, r.steps, seed % 8, tile, t), 0);
		assert_int_equal(states_begin(r.st, ts), 0);
		for (int i = 0; i < 2000; i++) {
			struct step s = any_step(&ts);

			assert_int_equal(states_step(r.st, &s, s.a), 0);
		}
		assert_int_equal(states_end(r.st), 0);
		check_tiling(t, r.st);
		rig_states_close(&r);
		free(t);
	}
}

static int no_span(void *ctx, const struct state_span *s)
{
	return 0;
}

static int stop_span(void *ctx, const struct state_span *s)
{
	return ++*(int *)ctx == 3 ? -EINTR : 0;
}

/* From that task to the one behind it. */
static struct step a_switch(uint64_t ts, int32_t pid)
{
	return (struct step){ .ts = ts, .kind = STEP_SWITCH, .pid = pid, .a = (uint64_t)pid + 1, .b = 1 };
}

/* So many tasks and vCPUs at most; and what the listener says ends it. */
static void test_bounds(void **state)
{
	struct rig_states r;
	int spans = 0, ret = 0;

	rig_inputs(&r, RIG_X86, 11, 3);
	assert_int_equal(states_open(&r.st, &r.in, NULL, r.steps, STATES_TASKS | STATES_VCPUS, no_span, NULL),
			 0);
	assert_int_equal(states_begin(r.st, 1), 0);
	for (int i = 1; i <= 2 * STATES_TASKS_MAX; i++) {
		const struct step s = a_switch((uint64_t)i, i);

		assert_int_equal(states_step(r.st, &s, 0), 0);
	}
	assert_int_equal(r.st->n_tracks, STATES_TASKS_MAX);
	for (int i = 1; i <= STATES_VCPUS_MAX + 10; i++) {
		const struct step s = { .ts = 2 * STATES_TASKS_MAX, .kind = STEP_KVM_ENTRY, .pid = i };

		assert_int_equal(states_step(r.st, &s, 0), 0);
	}
	assert_int_equal(r.st->n_tracks, STATES_TASKS_MAX + STATES_VCPUS_MAX);
	assert_int_equal(states_left_out(r.st), 2 * STATES_TASKS_MAX + 11);
	states_close(r.st);

	assert_int_equal(states_open(&r.st, &r.in, NULL, r.steps, STATES_TASKS, stop_span, &spans), 0);
	assert_int_equal(states_begin(r.st, 1), 0);
	for (int i = 1; i <= 10 && !ret; i++) {
		const struct step s = a_switch((uint64_t)i * 10, i);

		ret = states_step(r.st, &s, 0);
	}
	assert_int_equal(ret, -EINTR);
	assert_int_equal(states_end(r.st), -EINTR);
	rig_states_close(&r);
}

/* ---- our captures ---------------------------------------------------------------------------------- */

/* What each vCPU did in all: "113: lost 1, guest 2", and the thieves of its CPU. */
static void put_totals(struct buf *out, const struct state_total *t)
{
	buf_printf(out, "%d:", t->owner->pid);
	for (int s = 0; s < STATES; s++)
		if (t->all[s].n)
			buf_printf(out, " %s %llu", state_name(s), (unsigned long long)t->all[s].ns);
	for (size_t i = 0; i < t->n_thieves; i++)
		buf_printf(out, " <%d %llu", t->thieves[i].pid, (unsigned long long)t->thieves[i].sum.ns);
	buf_addstr(out, "\n");
}

static void check_capture(char *const *paths, size_t n, const char *want)
{
	struct tiling *t = calloc(1, sizeof(*t));
	struct steps *steps;
	struct pass_part part;
	struct buf out = { 0 };
	struct states *st;
	struct opened o;

	assert_non_null(t);
	assert_int_equal(inputs_open(&o.in, paths, n, 0, NULL), 0);
	assert_int_equal(inputs_load(&o.in, NULL), 0);
	assert_int_equal(timeline_open(&o.t, &o.in, NULL, NULL, NULL), 0);
	assert_int_equal(steps_open(&steps, &o.in), 0);
	assert_int_equal(states_open(&st, &o.in, o.t, steps, STATES_VCPUS | STATES_TASKS | STATES_GUEST_TASKS,
				     tile, t),
			 0);
	part = states_part(st);
	assert_int_equal(pass_read(o.t, steps, &part, 1), 0);
	assert_int_equal(states_end(st), 0);
	for (size_t i = 0; i < t->totals.n; i++)
		if (t->totals.v[i].owner->kind == STATE_OF_VCPU)
			put_totals(&out, &t->totals.v[i]);
	assert_string_equal(buf_str(&out), want);
	check_tiling(t, st);
	states_close(st);
	steps_close(steps);
	close_captures(&o);
	buf_release(&out);
	free(t);
}

static void test_captures(void **state)
{
	static char *const guest[] = { "tests/data/guest/trace.dat", "tests/data/guest/trace-Guest.dat" };
	static char *const functions[] = { "tests/data/functions/trace.dat",
					   "tests/data/functions/trace-Guest.dat" };
	static char *const x86[] = { "tests/data/x86/trace.dat", "tests/data/x86/trace-Guest.dat" };

	/*
	 * By the report's lines: 113 is 14 times in the guest, 8,687 us; halts four times, 15,654 us, and
	 * four times waits for its CPU to wake up, 9,471 us. 114: 22 times, 7,508 us, and behind them until
	 * the hypervisor's last event, 8,042 us.
	 */
	check_capture(guest, 2,
		      "113: lost 2966349 guest 8687000 hypervisor 776000 host 4946748 waking 9470776 "
		      "halted 15654569\n"
		      "114: lost 660442 guest 15550000 hypervisor 13324000 host 3673849 waking 319687 "
		      "halted 8973464\n");
	/* 114's first exit lasts 58 us and comes before the first sched_switch */
	check_capture(functions, 2,
		      "114: lost 1987978 guest 6214000 hypervisor 733000 host 5922767 not recorded 58497\n"
		      "115: lost 412008 guest 8616000 hypervisor 1647000 host 4241234\n");
	/* a host without sched_switch; the guest's clock is ahead of it, so that much is unknown; in ticks */
	check_capture(x86, 2,
		      "120: lost 64221365572 guest 2242809868 not recorded 11876288710\n"
		      "118: lost 64222204514 guest 3954979356 not recorded 10163280280\n");
}

/* ---- a file with losses ------------------------------------------------------------------------------ */

struct asked {
	enum state_kind kind;
	struct buf out;
};

/* Each span of 11. */
static int put_11(void *ctx, const struct state_span *s)
{
	struct asked *a = ctx;

	if (s->owner->pid == 11 && s->owner->kind == a->kind)
		buf_printf(&a->out, "%llu %s\n", (unsigned long long)s->from, state_name(s->state));
	return 0;
}

/* Writes the fixture's buffers, and reads them. */
static void check_file(struct fixture *x, enum state_kind kind, const char *want)
{
	char *const paths[] = { x->path };
	struct asked a = { .kind = kind };
	struct steps *steps;
	struct pass_part part;
	struct states *st;
	struct opened o;

	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	assert_int_equal(inputs_open(&o.in, paths, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&o.in, NULL), 0);
	assert_int_equal(timeline_open(&o.t, &o.in, NULL, NULL, NULL), 0);
	assert_int_equal(steps_open(&steps, &o.in), 0);
	assert_int_equal(states_open(&st, &o.in, o.t, steps, STATES_TASKS | STATES_VCPUS, put_11, &a), 0);
	part = states_part(st);
	assert_int_equal(pass_read(o.t, steps, &part, 1), 0);
	assert_int_equal(states_end(st), 0);
	assert_string_equal(buf_str(&a.out), want);
	states_close(st);
	steps_close(steps);
	close_captures(&o);
	buf_release(&a.out);
}

/* What was lost on CPU 1 before its first record and between its two: 11 could have run there. */
static void test_file_with_losses(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 2);

	add_switch(&top[0], 1000, "idle", 0, "a", 11);
	add_switch(&top[0], 1100, "a", 11, "idle", 0);
	add_switch(&top[0], 1200, "idle", 0, "a", 11);
	add_switch(&top[0], 1500, "a", 11, "idle", 0);
	add_switch(&top[0], 1700, "idle", 0, "a", 11);
	add_switch(&top[0], 1800, "a", 11, "idle", 0);
	add_switch(&top[0], 1900, "idle", 0, "a", 11);
	add_switch(&top[1], 1300, "idle", 0, "b", 12);
	top[1].lost = -1;
	pages_cut(&top[1]);
	add_switch(&top[1], 1600, "b", 12, "idle", 0);
	top[1].lost = -1;
	pages_cut(&top[1]);
	check_file(x, STATE_OF_TASK,
		   "1000 running\n1100 lost\n1200 running\n1500 lost\n1700 running\n1800 runnable\n");
}

/* sched_switch's buffer ends long before KVM's: whether the thread still waits, nobody knows. */
static void test_file_that_ends(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 2), *kvm = add_buffer(x, "kvm", 4096, 2);

	add_switch(&top[0], 1000, "idle", 0, "CPU 0/KVM", 11);
	add_switch(&top[1], 1010, "idle", 0, "b", 12);
	add_entry(&kvm[0], 1050, 11);
	add_exit(&kvm[0], 1100, 11);
	add_switch(&top[0], 1200, "CPU 0/KVM", 11, "idle", 0);
	add_switch(&top[1], 1300, "b", 12, "idle", 0);
	add_entry(&kvm[0], 2200, 11);
	add_exit(&kvm[0], 2300, 11);
	add_entry(&kvm[0], 2400, 11);
	check_file(x, STATE_OF_VCPU,
		   "1000 lost\n1050 guest\n1100 host\n1200 waking\n1300 lost\n2200 guest\n"
		   "2300 lost\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_captures),
		cmocka_unit_test_setup_teardown(test_file_with_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_that_ends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
