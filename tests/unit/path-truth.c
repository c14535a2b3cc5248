// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Chains of causes at random moments of made-up machines (states-world.h), whose files are written, with
 * losses, late begins and early ends, and read back. Each hop, its begin, who is to blame for it and the end
 * of the chain are held against the truth. MOMENTS: how many; SEED: one machine alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/wait.h>

#include "states-world.h"

#include "../integration/trace-maker.h"

#include "api/handle.h"
#include "ask/path/path.h"

#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define MOMENTS 250
#else
#define MOMENTS 1000
#endif
#define PER_WORLD 20

/* ---- the files ------------------------------------------------------------------------------------- */

/* Fields are at 8 and 16 of each record. */
static const struct made {
	const char *sys, *name, *a, *b, *print;
} made[STEP_KINDS] = {
	[STEP_KVM_ENTRY] = { "kvm", "kvm_entry", "unsigned long vcpu_pc", NULL, NULL },
	[STEP_KVM_EXIT] = { "kvm", "kvm_exit", "unsigned long ret", "unsigned long esr_ec", NULL },
	[STEP_USER_EXIT] = { "kvm", "kvm_userspace_exit", "unsigned long reason", NULL, NULL },
	[STEP_VCPU_WAKEUP] = { "kvm", "kvm_vcpu_wakeup", "unsigned long ns", NULL, NULL },
	[STEP_SWITCH] = { "sched", "sched_switch", "unsigned long next_pid", "long prev_state", NULL },
	[STEP_WAKING] = { "sched", "sched_waking", "unsigned long pid", "unsigned long target_cpu", NULL },
	[STEP_HYP_ENTER] = { "hypervisor", "hyp_enter", "unsigned long reason", "unsigned long vcpu",
			     "__print_symbolic(REC->reason, {0, \"smc\"}, {1, \"hvc\"}, {5, "
			     "\"guest_exit\"})" },
	[STEP_HYP_EXIT] = { "hypervisor", "hyp_exit", "unsigned long reason", "unsigned long vcpu",
			    "__print_symbolic(REC->reason, {0, \"smc\"}, {6, \"eret_host\"}, {7, "
			    "\"eret_guest\"})" },
};

static void put_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void put_line(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	maker_line(line);
}

static bool made_fields(const struct world *w, const struct made *e)
{
	return w->set.reasons || *e->sys != 'h';
}

static void put_events(const struct world *w)
{
	for (const struct made *e = made; e < made + STEP_KINDS; e++) {
		if (!e->name)
			continue;
		if (made_fields(w, e))
			put_line("event %s:%s %s; %s | \"%s\"%s%s", e->sys, e->name, e->a, e->b ?: "",
				 e->print ? "%s" : "", e->print ? ", " : "", e->print ?: "");
		else
			put_line("event %s:%s | \"\"", e->sys, e->name);
	}
}

static void put_buffer(const struct world *w, int buffer, const char *name)
{
	put_line("buffer %s", name);
	for (size_t cpu = 0; cpu < CPUS; cpu++) {
		size_t at = (size_t)buffer * CPUS + cpu;

		for (size_t i = 0; i < w->streams[at].n; i++) {
			const struct step *s = &w->streams[at].v[i];
			const struct made *e = &made[s->kind];
			char values[64] = "";

			if (s->kind == STEP_LOST) {
				put_line("lost %zu 3", cpu);
				continue;
			}
			if (made_fields(w, e))
				snprintf(values, sizeof(values), e->b ? " %llu %llu" : " %llu",
					 (unsigned long long)s->a, (unsigned long long)s->b);
			put_line("%llu %zu %d %s%s", (unsigned long long)s->ts, cpu, s->pid < 0 ? 0 : s->pid,
				 e->name, values);
		}
	}
}

static void write_file(const struct world *w, bool guest, const char *path)
{
	maker_open();
	put_line("cpus %d", CPUS);
	put_line("clock boot");
	put_events(w);
	put_line("id %s", guest ? "b" : "a");
	if (guest) {
		put_buffer(w, GUEST_TOP, "");
		put_line("shift a 0 %llu", (unsigned long long)w->set.bound);
	} else {
		put_buffer(w, TOP, "");
		if (w->set.kvm_apart)
			put_buffer(w, KVM_BUFFER, "kvm");
		if (w->set.hyp)
			put_buffer(w, HYP_BUFFER, "hyp");
		put_line("guest vm b 0:%d 1:%d", FIRST, FIRST + 1);
	}
	maker_write(path);
}

/* In a process of its own: the maker keeps what it made. */
static void write_files(const struct world *w, char paths[2][96])
{
	for (int guest = 0; guest < 2; guest++) {
		pid_t pid = fork();
		int status = 0;

		if (!pid) {
			write_file(w, guest, paths[guest]);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* ---- what was not recorded ----------------------------------------------------------------------------- */

static void file_loses(struct world *w, size_t at)
{
	size_t n = w->streams[at].n, first, some;
	struct step *v = w->streams[at].v;

	if (n < 10)
		return;
	first = 1 + roll(&w->d, n - 8);
	some = 2 + roll(&w->d, n - first - 2 < 40 ? n - first - 3 : 38);
	v[first].kind = STEP_LOST;
	memmove(&v[first + 1], &v[first + some], (n - first - some) * sizeof(*v));
	w->streams[at].n = n - some + 1;
}

/* That time, or where a loss of the CPU that is under way then is over: what comes after it tells of it. */
static uint64_t file_end(const struct world *w, size_t at, uint64_t ts)
{
	const struct step *v = w->streams[at].v;

	for (size_t i = 0; i + 1 < w->streams[at].n && v[i].ts < ts; i++)
		if (v[i].kind == STEP_LOST && v[i + 1].ts >= ts)
			return v[i + 1].ts + 1;
	return ts;
}

/* From then, or until then, nothing is in that buffer. */
static void file_ends(struct world *w, size_t buffer, uint64_t ts, bool begins)
{
	for (size_t n = 0; n < 2 * CPUS; n++)
		ts = file_end(w, buffer * CPUS + n % CPUS, ts);
	for (size_t at = buffer * CPUS; at < (buffer + 1) * CPUS; at++) {
		struct step *v = w->streams[at].v;
		size_t i = 0, n = w->streams[at].n;

		while (i < n && v[i].ts < ts)
			i++;
		if (begins && n)
			memmove(v, v + i, (n - i) * sizeof(*v));
		w->streams[at].n = begins ? n - i : i;
	}
}

/* ---- the judge
 * --------------------------------------------------------------------------------------------- */

struct judge {
	const struct world *w;
	const struct path *path;
	const struct path_moment *moment;
	uint64_t seed, near; /* how far apart shown and true times can be */
	const char *wrong;
};

/* All of the truth from `from` to `to`, borders left out, is that state (and that task). */
static bool truth_is(const struct judge *j, const struct truth *t, uint64_t from, uint64_t to,
		     unsigned int states, int32_t other)
{
	from += j->near;
	to -= to < j->near ? to : j->near;
	for (size_t i = 0; i < t->n && from < to; i++) {
		uint64_t end = i + 1 < t->n ? t->v[i + 1].from : UINT64_MAX;

		if (t->v[i].from >= to || end <= from)
			continue;
		if (states && !(states & 1u << t->v[i].state))
			return false;
		if (other != STATE_NO_TASK && t->v[i].other != other)
			return false;
	}
	return true;
}

/* Some time around `at` it was that task. */
static bool truth_has(const struct judge *j, const struct truth *t, uint64_t at, int32_t other)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].other == other && t->v[i].from <= at + j->near &&
		    (i + 1 == t->n || t->v[i + 1].from + j->near > at))
			return true;
	return false;
}

static const struct truth *task_truth(const struct judge *j, uint16_t input, int32_t pid)
{
	size_t at = input == GUEST ? VCPUS + THREADS + (size_t)(pid - GFIRST) : VCPUS + (size_t)(pid - FIRST);

	assert_true(at >= VCPUS && at < OWNERS);
	return &j->w->truth[at];
}

static const struct truth *cpu_truth(const struct judge *j, uint16_t input, uint32_t cpu)
{
	assert_true(cpu < (input == GUEST ? VCPUS : CPUS));
	return &j->w->cpus[input == GUEST ? CPUS + cpu : cpu];
}

static const char *judge_hop(const struct judge *j, const struct path_cause *h)
{
	const unsigned int on = 1u << STATE_RUNNING | 1u << STATE_STOLEN;
	const struct truth *t = h->pid ? task_truth(j, h->input, h->pid) : NULL;
	bool guest = h->input == GUEST, told = !guest || !j->path->vcpu_unknown;

	switch (h->state) {
	case PATH_RUNS:
	case PATH_HANDLES:
		if (!truth_is(j, t, h->from, h->to, on, STATE_NO_TASK) ||
		    !truth_is(j, cpu_truth(j, h->input, h->cpu), h->from, h->to, 0, h->pid))
			return "the task did not have that CPU";
		break;
	case PATH_RUNNABLE:
		if (!truth_is(j, t, h->from, h->to, 1u << STATE_RUNNABLE, STATE_NO_TASK))
			return "the task was not runnable";
		if (!truth_is(j, cpu_truth(j, h->input, h->cpu), h->from, h->to, 0, h->by))
			return "another had the CPU";
		break;
	case PATH_ASLEEP:
		if (!truth_is(j, t, h->from, h->to, 1u << STATE_SLEEPING, STATE_NO_TASK))
			return "the task did not sleep";
		return NULL;
	default:
		return "nobody recorded interrupts";
	}
	if (guest && told &&
	    !truth_is(j, &j->w->truth[VCPUS + h->cpu], h->from, h->to, 1u << STATE_RUNNING, STATE_NO_TASK))
		return "its vCPU's thread did not run";
	return NULL;
}

/* A hop that begins with a wake-up: that was the one by which the task became runnable, and who woke it comes
 * next. */
static const char *judge_wake(const struct judge *j, const struct path_cause *h,
			      const struct path_cause *next)
{
	const struct truth *t = task_truth(j, h->input, h->pid);

	if (h->event.kind != STEP_WAKING || h->state != PATH_RUNNABLE || (int32_t)h->event.a != h->pid ||
	    h->event.input != h->input)
		return NULL;
	if (!j->near && !truth_is(j, t, h->from - 1, h->from, 1u << STATE_SLEEPING, STATE_NO_TASK))
		return "it had not been asleep";
	for (size_t i = 0; i < j->w->n_wakes; i++) {
		const struct wake *k = &j->w->wakes[i];

		if (k->guest == (h->input == GUEST) && k->whom == h->pid && k->at + j->near >= h->from &&
		    k->at <= h->from + j->near && k->by == h->event.pid)
			return next && next->input == h->input && next->state == PATH_RUNS &&
					       next->pid != k->by
				       ? "another one woke it"
				       : NULL;
	}
	return "nobody woke it then";
}

static const char *judge_end(const struct judge *j)
{
	const struct path *p = j->path;
	const struct path_row *out = &p->event;

	if (p->end == PATH_IDLE &&
	    !truth_has(j, cpu_truth(j, j->moment->input, j->moment->cpu), j->moment->ts, 0))
		return "the CPU was not idle";
	if (p->end == PATH_PREEMPTED && !j->near &&
	    !truth_is(j, task_truth(j, out->input, out->pid), out->ts - 1, out->ts,
		      1u << STATE_RUNNING | 1u << STATE_STOLEN, STATE_NO_TASK))
		return "it was not preempted";
	if (p->end == PATH_BEGAN)
		return "no task began";
	return NULL;
}

static const char *judge_path(const struct judge *j)
{
	const struct path *p = j->path;
	uint64_t at = j->moment->ts;

	for (size_t i = 0; i < p->n; i++) {
		const struct path_cause *h = &p->v[i];
		const char *wrong = h->to != at ? "hops do not join" : judge_hop(j, h);

		wrong = wrong ?: judge_wake(j, h, i + 1 < p->n ? h + 1 : NULL);
		if (wrong)
			return wrong;
		at = h->from;
	}
	return judge_end(j);
}

static void blame(const struct judge *j)
{
	const struct path *p = j->path;

	print_error("seed %llu: machine %u CPU %u at %llu, +-%llu: pid %d: %s\n", (unsigned long long)j->seed,
		    j->moment->input, j->moment->cpu, (unsigned long long)j->moment->ts,
		    (unsigned long long)j->near, j->moment->pid, j->wrong);
	for (size_t i = 0; i < p->n; i++)
		print_error("  %-9s m%u cpu %u pid %d by %d  %llu - %llu event %u of %d at %llu\n",
			    path_state_name(p->v[i].state), p->v[i].input, p->v[i].cpu, p->v[i].pid,
			    p->v[i].by, (unsigned long long)p->v[i].from, (unsigned long long)p->v[i].to,
			    p->v[i].event.kind, p->v[i].event.pid, (unsigned long long)p->v[i].event.ts);
	print_error("  %s: %s\n", path_end_name(p->end), p->why);
}

/* ---- moments
 * ------------------------------------------------------------------------------------------------- */

struct counts {
	uint64_t moments, refused, ends[PATH_ENDS], hops, wrong;
	uint64_t could,
		did; /* of what is all there: moments whose task, or idle CPU, was to be told, and was */
};

/* The time that a machine's sched events cover. */
static void covered(const struct world *w, bool guest, uint64_t *from, uint64_t *to)
{
	*from = UINT64_MAX;
	*to = 0;
	for (size_t at = guest ? GUEST_TOP * CPUS : 0, end = at + CPUS; at < end; at++) {
		size_t n = w->streams[at].n;

		if (n && w->streams[at].v[0].ts < *from)
			*from = w->streams[at].v[0].ts;
		if (n && w->streams[at].v[n - 1].ts > *to)
			*to = w->streams[at].v[n - 1].ts;
	}
}

static void judge_moment(struct counts *c, struct world *w, uint64_t seed, const struct inputs *in,
			 bool whole)
{
	struct path_found found = { .window.within =
					    roll(&w->d, 2) ? 1000000000 : 1000 + roll(&w->d, 500000) };
	struct path_ask ask = { .input = roll(&w->d, 2), .pid = -1 };
	struct path p = { 0 };
	struct judge j = { w, &p, &found.moment, seed, 2 * w->set.bound, NULL };
	const struct truth *cpu;
	struct timeline *t;
	struct steps *steps;
	uint64_t from, to, length = w->t - BEGIN;

	ask.cpu = (int64_t)roll(&w->d, ask.input == GUEST ? VCPUS : CPUS);
	ask.time = BEGIN - length / 10 + roll(&w->d, length + length / 5);
	covered(w, ask.input == GUEST, &from, &to);
	cpu = cpu_truth(&j, (uint16_t)ask.input, (uint32_t)ask.cpu);
	assert_int_equal(timeline_open(&t, in, NULL, NULL, NULL), 0);
	assert_int_equal(steps_open(&steps, in), 0);
	assert_int_equal(path_read(&found, in, t, steps, &ask, NULL), 0);
	c->moments++;
	if (found.found) {
		assert_int_equal(path_find(&p, &found.window, in, &found.moment), 0);
		if (ask.time < from || ask.time > to)
			j.wrong = "the machine is not recorded then";
		else if (!truth_has(&j, cpu, ask.time, found.moment.pid))
			j.wrong = "another task ran then";
		j.wrong = j.wrong ?: judge_path(&j);
		c->ends[p.end]++;
		c->hops += p.n;
	} else {
		c->refused++;
	}
	if (j.wrong && !c->wrong++)
		blame(&j);
	if (whole && ask.time > from + (to - from) / 4 && ask.time < to) {
		c->could++;
		c->did += found.found && (p.n || p.end == PATH_IDLE);
	}
	path_release(&p);
	path_window_release(&found.window);
	steps_close(steps);
	timeline_close(t);
}

static void judge_world(struct counts *c, uint64_t seed, char paths[2][96])
{
	const char *const names[] = { paths[0], paths[1] };
	struct hyptrace_open_opts opts = { sizeof(opts), .flags = 0 };
	static struct world w;
	struct hyptrace *h;
	uint64_t length;
	bool whole;

	world_play(&w, seed);
	length = w.t - BEGIN;
	whole = w.set.sched && w.set.wakings && seed % 3 == 0;
	for (unsigned int i = 0; !whole && i < w.set.losses; i++)
		file_loses(&w, roll(&w.d, STREAMS));
	if (!whole && roll(&w.d, 2))
		file_ends(&w, GUEST_TOP, BEGIN + length / 4 + roll(&w.d, length / 2), roll(&w.d, 2));
	if (!whole && !roll(&w.d, 3))
		file_ends(&w, TOP, BEGIN + length / 4 + roll(&w.d, length / 2), roll(&w.d, 2));
	write_files(&w, paths);
	assert_int_equal(hyptrace_open(&h, names, 2, &opts), 0);
	assert_int_equal(handle_load(h), 0);
	for (int i = 0; i < PER_WORLD; i++)
		judge_moment(c, &w, seed, handle_inputs(h), whole);
	hyptrace_close(h);
	world_release(&w);
}

static void test_moments(void **state)
{
	const char *one = getenv("SEED"), *moments = getenv("MOMENTS"), *tmp = getenv("TMPDIR");
	uint64_t n = moments ? strtoull(moments, NULL, 0) : MOMENTS, first = one ? strtoull(one, NULL, 0) : 0;
	char dir[64], paths[2][96];
	struct counts c = { 0 };

	assert_true(snprintf(dir, sizeof(dir), "%s/path-truth.XXXXXX", tmp ? tmp : "/tmp") <
		    (int)sizeof(dir));
	assert_non_null(mkdtemp(dir));
	strcat(strcpy(paths[0], dir), "/host.dat");
	strcat(strcpy(paths[1], dir), "/vm.dat");
	for (uint64_t seed = first; c.moments < n; seed++) {
		if (seed % 4 == 3) /* x86's exits have other fields */
			continue;
		judge_world(&c, seed, paths);
		if (one)
			break;
	}
	unlink(paths[0]);
	unlink(paths[1]);
	rmdir(dir);
	for (size_t i = 0; i < PATH_ENDS; i++)
		if (c.ends[i])
			print_message("# %s: %llu\n", path_end_name((enum path_end)i),
				      (unsigned long long)c.ends[i]);
	print_message(
		"# %llu moments: %llu refused, %llu hops, %llu wrong; %llu of %llu that were recorded told\n",
		(unsigned long long)c.moments, (unsigned long long)c.refused, (unsigned long long)c.hops,
		(unsigned long long)c.wrong, (unsigned long long)c.did, (unsigned long long)c.could);
	assert_int_equal(c.wrong, 0);
	assert_true(c.did * 100 >= c.could * 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
