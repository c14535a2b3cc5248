// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeps spans to be drawn, by CPU and by task. */
#include "shown.h"

#include "hyp-reason.h"
#include "spans/marks.h"
#include "spans/visits.h"

struct cpu_state {
	int machine, cpu;
	struct visit visit;
	size_t guest_exit; /* 1 + its last one in v, until KVM enters the guest again */
};

struct thread_state {
	int machine, pid;
	struct exit_side exit;
};

struct spans {
	struct shown *v;
	size_t n;
	size_t count[SHOWN_KINDS];
	unsigned int reasons;
	struct cpu_state *cpu;
	size_t n_cpu;
	struct thread_state *thread; /* those that left a guest, on x86 */
	size_t n_thread;
	struct marks marks; /* tags: how many a span lies in */
	const struct shown **by_cpu, **by_task;
};

struct spans *spans_new(void)
{
	return calloc(1, sizeof(struct spans));
}

void spans_free(struct spans *s)
{
	if (!s)
		return;
	free(s->v);
	free(s->cpu);
	free(s->thread);
	marks_release(&s->marks);
	free(s->by_cpu);
	free(s->by_task);
	free(s);
}

/* From a span's begin to its end, with the row of its begin as the one that explains it. */
static struct shown shown_of(enum shown_kind kind, const struct span *v)
{
	return (struct shown){ .kind = kind,
			       .machine = (int)v->machine,
			       .cpu = (int)v->cpu,
			       .pid = v->pid,
			       .reason = -1,
			       .left = -1,
			       .start = (int64_t)v->from,
			       .end = (int64_t)v->to,
			       .first = v->first,
			       .last = v->last,
			       .detail = v->first };
}

static int spans_add(struct spans *s, const struct shown *span)
{
	if (array_push(&s->v, &s->n, span, sizeof(*span)))
		return -ENOMEM;
	s->count[span->kind]++;
	if (span->kind == SHOWN_HYP)
		s->reasons |= 1u << (span->reason < 0 ? HYP_UNKNOWN : span->reason);
	return 0;
}

static struct cpu_state *cpu_state(struct spans *s, int machine, int cpu)
{
	const struct cpu_state new = { .machine = machine, .cpu = cpu };

	for (size_t i = 0; i < s->n_cpu; i++)
		if (s->cpu[i].cpu == cpu && s->cpu[i].machine == machine)
			return &s->cpu[i];
	return array_push(&s->cpu, &s->n_cpu, &new, sizeof(new)) ? NULL : &s->cpu[s->n_cpu - 1];
}

/* NULL: it has not left a guest yet, or there is no memory for one that does. */
static struct thread_state *thread_state(struct spans *s, const struct span_point *p)
{
	const struct thread_state new = { .machine = (int)p->machine, .pid = p->pid };

	for (size_t i = 0; i < s->n_thread; i++)
		if (s->thread[i].pid == new.pid && s->thread[i].machine == new.machine)
			return &s->thread[i];
	if (p->kind != POINT_KVM_EXIT || array_push(&s->thread, &s->n_thread, &new, sizeof(new)))
		return NULL;
	return &s->thread[s->n_thread - 1];
}

static int spans_exit(struct spans *s, const struct span_point *p)
{
	struct thread_state *t = thread_state(s, p);
	struct shown exit;
	struct span v;

	if (!t)
		return p->kind == POINT_KVM_EXIT ? -ENOMEM : 0;
	if (!exit_take(&t->exit, p, &v) || v.end != SPAN_PAIRED)
		return 0;
	exit = shown_of(v.why == X86_HALT ? SHOWN_HALT : SHOWN_EXIT, &v);
	exit.last = p->row;
	return spans_add(s, &exit);
}

int spans_point(struct spans *s, const struct span_point *p)
{
	struct cpu_state *c = cpu_state(s, (int)p->machine, (int)p->cpu);
	struct shown visit;
	struct span v = { 0 };
	uint64_t why;
	int ret;

	if (!c)
		return -ENOMEM;
	if (p->kind == POINT_KVM_ENTRY || (p->kind == POINT_KVM_EXIT && p->reason != SPAN_UNKNOWN)) {
		ret = spans_exit(s, p);
		if (ret)
			return ret;
	}
	if (p->kind == POINT_KVM_EXIT && c->guest_exit && s->v[c->guest_exit - 1].pid == p->pid)
		s->v[c->guest_exit - 1].detail = p->row;
	if (p->kind == POINT_KVM_ENTRY || p->kind == POINT_LOST)
		c->guest_exit = 0;
	if (!visit_take(&c->visit, p, &v) || v.end != SPAN_PAIRED)
		return 0;
	why = v.why < SPAN_REASONS ? v.why : v.why - SPAN_REASONS;
	visit = shown_of(SHOWN_HYP, &v);
	visit.pid = v.vcpu > 0 ? v.vcpu : v.pid;
	visit.reason = v.why == SPAN_UNKNOWN || why >= HYP_REASONS ? -1 : (int)why;
	visit.left = v.left < HYP_REASONS ? (int)v.left : -1;
	visit.detail = v.detail;
	ret = spans_add(s, &visit);
	if (!ret && visit.reason == HYP_GUEST_EXIT)
		c->guest_exit = s->n;
	return ret;
}

int spans_mark(struct spans *s, const struct mark *p)
{
	struct mark mark = *p;
	struct mark_place at;
	struct shown shown;
	struct span done;
	int ret;

	if (mark.begins)
		mark.tag = 0;
	/* the tag counts those of its kind that are open in its thread */
	for (size_t i = 0; mark.begins && i < s->marks.n; i++)
		for (unsigned int l = 0; l < MARKS_OPEN; l++) {
			const struct mark *o = &s->marks.v[i].open[l];

			mark.tag += s->marks.v[i].is_open >> l & 1 && o->machine == p->machine &&
				    o->pid == p->pid && (o->id == MARK_NO_ID) == (p->id == MARK_NO_ID);
		}
	ret = marks_take(&s->marks, &mark, &at, &done);
	if (ret != 1 || done.end != SPAN_PAIRED)
		return ret < 0 ? ret : 0;
	shown = shown_of(p->id == MARK_NO_ID ? SHOWN_HYPERTRACE : SHOWN_CROSVM, &done);
	shown.depth = (unsigned int)done.detail;
	return spans_add(s, &shown);
}

int spans_numbered_mark(struct spans *s, const struct mark *p, uint64_t number)
{
	struct mark mark = *p;
	int ret = spans_mark(s, &mark);

	mark.begins = true;
	return ret || !number ? ret : spans_mark(s, &mark);
}

int spans_lost(struct spans *s, const struct mark *at)
{
	const struct span_point p = { .kind = POINT_LOST, .machine = at->machine, .cpu = at->cpu };
	struct mark_place place = { 0 };
	struct span lost;

	while (marks_lost(&s->marks, at->buffer, &place, &lost))
		;
	for (size_t i = 0; i < s->n_thread; i++)
		if (s->thread[i].machine == (int)at->machine)
			exit_take(&s->thread[i].exit, &p, &lost);
	return spans_point(s, &p);
}

static int compare(const struct shown *a, const struct shown *b, int key_a, int key_b)
{
	return ORDER(a->machine, b->machine) ?: ORDER(key_a, key_b) ?: ORDER(a->start, b->start)
		       ?: ORDER(a->first, b->first);
}

static int compare_cpu(const void *p, const void *q)
{
	const struct shown *a = *(const struct shown *const *)p, *b = *(const struct shown *const *)q;

	return compare(a, b, a->cpu, b->cpu);
}

static int compare_task(const void *p, const void *q)
{
	const struct shown *a = *(const struct shown *const *)p, *b = *(const struct shown *const *)q;

	return compare(a, b, a->pid, b->pid);
}

static bool before_cpu(const void *entry, const void *key)
{
	return compare_cpu(entry, key) < 0;
}

static bool before_task(const void *entry, const void *key)
{
	return compare_task(entry, key) < 0;
}

int spans_finish(struct spans *s)
{
	size_t n_hyp = 0;

	s->by_cpu = calloc(s->n + 1, sizeof(*s->by_cpu));
	s->by_task = calloc(s->n + 1, sizeof(*s->by_task));
	if (!s->by_cpu || !s->by_task)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		s->by_task[i] = &s->v[i];
		if (s->v[i].kind == SHOWN_HYP)
			s->by_cpu[n_hyp++] = &s->v[i];
	}
	qsort(s->by_cpu, n_hyp, sizeof(*s->by_cpu), compare_cpu);
	qsort(s->by_task, s->n, sizeof(*s->by_task), compare_task);
	return 0;
}

size_t spans_count(const struct spans *s, enum shown_kind kind)
{
	return s->count[kind];
}

unsigned int spans_reasons(const struct spans *s)
{
	return s->reasons;
}

size_t spans_of_cpu(const struct spans *s, int machine, int cpu, const struct shown *const **v)
{
	const struct shown at = { .machine = machine, .cpu = cpu, .start = INT64_MIN }, *from = &at;
	const struct shown next = { .machine = machine, .cpu = cpu + 1, .start = INT64_MIN }, *to = &next;
	size_t n = s->count[SHOWN_HYP];
	size_t low = array_lower_bound(s->by_cpu, n, sizeof(*s->by_cpu), before_cpu, &from);

	*v = s->by_cpu + low;
	return array_lower_bound(s->by_cpu, n, sizeof(*s->by_cpu), before_cpu, &to) - low;
}

size_t spans_of_task(const struct spans *s, int machine, int pid, const struct shown *const **v)
{
	const struct shown at = { .machine = machine, .pid = pid, .start = INT64_MIN }, *from = &at;
	const struct shown next = { .machine = machine, .pid = pid + 1, .start = INT64_MIN }, *to = &next;
	size_t low = array_lower_bound(s->by_task, s->n, sizeof(*s->by_task), before_task, &from);

	*v = s->by_task + low;
	return array_lower_bound(s->by_task, s->n, sizeof(*s->by_task), before_task, &to) - low;
}
