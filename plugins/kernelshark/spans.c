// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs events that begin and end something to spans, by CPU and by task. */
#include "spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hyp-reason.h"

#define OPEN_MAX 4096 /* begins without an end; more, and the oldest is forgotten */

struct cpu_state {
	int machine, cpu;
	bool open;
	struct span span;
	size_t guest_exit; /* 1 + its last one in v, until KVM enters the guest again */
};

struct open_span {
	uint64_t id;
	uint32_t name; /* a hash of it */
	struct span span;
};

struct spans {
	struct span *v;
	size_t n, cap;
	size_t count[SPAN_HYPERTRACE + 1];
	unsigned int reasons;
	struct cpu_state *cpu;
	size_t n_cpu;
	struct open_span open[OPEN_MAX];
	size_t n_open;
	const struct span **by_cpu, **by_task;
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
	free(s->by_cpu);
	free(s->by_task);
	free(s);
}

static int spans_add(struct spans *s, const struct span *span)
{
	size_t cap = s->cap ? 2 * s->cap : 1024;
	struct span *v;

	if (s->n == s->cap) {
		v = reallocarray(s->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = *span;
	s->count[span->kind]++;
	if (span->kind == SPAN_HYP)
		s->reasons |= 1u << (span->reason < 0 ? HYP_UNKNOWN : span->reason);
	return 0;
}

static struct span spans_at(enum span_kind kind, const struct spot *at)
{
	return (struct span){ .kind = kind,
			      .machine = at->machine,
			      .cpu = at->cpu,
			      .pid = at->pid,
			      .reason = -1,
			      .left = -1,
			      .start = at->ts,
			      .first = at->row,
			      .detail = at->row };
}

static int close_span(struct spans *s, struct span *span, const struct spot *at)
{
	span->end = at->ts;
	span->last = at->row;
	return spans_add(s, span);
}

/* ---- the hypervisor ---------------------------------------------------------------- */

static struct cpu_state *cpu_state(struct spans *s, const struct spot *at)
{
	struct cpu_state *v;

	for (size_t i = 0; i < s->n_cpu; i++)
		if (s->cpu[i].cpu == at->cpu && s->cpu[i].machine == at->machine)
			return &s->cpu[i];
	v = reallocarray(s->cpu, s->n_cpu + 1, sizeof(*v));
	if (!v)
		return NULL;
	s->cpu = v;
	v[s->n_cpu] = (struct cpu_state){ .machine = at->machine, .cpu = at->cpu };
	return &v[s->n_cpu++];
}

int spans_hyp_enter(struct spans *s, const struct spot *at, int reason, int vcpu)
{
	struct cpu_state *c = cpu_state(s, at);

	if (!c)
		return -ENOMEM;
	c->span = spans_at(SPAN_HYP, at);
	c->span.reason = reason;
	if (vcpu > 0)
		c->span.pid = vcpu;
	c->open = true;
	return 0;
}

int spans_hyp_exit(struct spans *s, const struct spot *at, int left, int vcpu)
{
	struct cpu_state *c = cpu_state(s, at);
	int ret;

	if (!c)
		return -ENOMEM;
	if (!c->open)
		return 0;
	c->open = false;
	c->span.left = left;
	if (vcpu > 0)
		c->span.pid = vcpu;
	ret = close_span(s, &c->span, at);
	if (ret)
		return ret;
	if (c->span.reason == HYP_GUEST_EXIT)
		c->guest_exit = s->n;
	return 0;
}

int spans_hyp_event(struct spans *s, const struct spot *at, int reason)
{
	struct cpu_state *c = cpu_state(s, at);

	if (!c)
		return -ENOMEM;
	if (!c->open)
		return 0;
	c->span.detail = at->row;
	if (c->span.reason < 0)
		c->span.reason = reason;
	return 0;
}

int spans_kvm_says(struct spans *s, const struct spot *at)
{
	struct cpu_state *c = cpu_state(s, at);

	if (!c)
		return -ENOMEM;
	if (c->guest_exit && s->v[c->guest_exit - 1].pid == at->pid)
		s->v[c->guest_exit - 1].detail = at->row;
	return 0;
}

int spans_kvm_entry(struct spans *s, const struct spot *at)
{
	struct cpu_state *c = cpu_state(s, at);

	if (!c)
		return -ENOMEM;
	c->guest_exit = 0;
	return 0;
}

int spans_lost(struct spans *s, const struct spot *at)
{
	struct cpu_state *c = cpu_state(s, at);

	if (!c)
		return -ENOMEM;
	c->open = false;
	c->guest_exit = 0;
	return 0;
}

/* ---- crosvm and hypertrace ------------------------------------------------------------ */

static uint32_t hash(const char *name, size_t len)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	while (len--)
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return h;
}

static void spans_forget(struct spans *s, size_t i)
{
	s->n_open--;
	memmove(&s->open[i], &s->open[i + 1], (s->n_open - i) * sizeof(s->open[0]));
}

static void open_span(struct spans *s, struct span span, uint64_t id, uint32_t name)
{
	for (size_t i = 0; i < s->n_open; i++) {
		const struct span *o = &s->open[i].span;

		span.depth += o->kind == span.kind && o->machine == span.machine && o->pid == span.pid;
	}
	if (s->n_open == OPEN_MAX)
		spans_forget(s, 0);
	s->open[s->n_open++] = (struct open_span){ id, name, span };
}

static bool spans_match(const struct open_span *o, enum span_kind kind, int machine, uint64_t id,
			uint32_t name)
{
	return o->span.kind == kind && o->span.machine == machine && o->id == id && o->name == name;
}

int spans_begin(struct spans *s, const struct spot *at, uint64_t id, const char *name, size_t len)
{
	open_span(s, spans_at(SPAN_CROSVM, at), id, hash(name, len));
	return 0;
}

int spans_end(struct spans *s, const struct spot *at, uint64_t id, const char *name, size_t len)
{
	uint32_t h = hash(name, len);
	size_t found = s->n_open;
	int ret;

	for (size_t i = s->n_open; i--;) {
		if (!spans_match(&s->open[i], SPAN_CROSVM, at->machine, id, h))
			continue;
		if (s->open[i].span.pid == at->pid) {
			found = i;
			break;
		}
		if (found == s->n_open)
			found = i;
	}
	if (found == s->n_open)
		return 0;
	ret = close_span(s, &s->open[found].span, at);
	spans_forget(s, found);
	return ret;
}

int spans_hypertrace(struct spans *s, const struct spot *at, uint64_t source, uint64_t number)
{
	int ret = 0;

	for (size_t i = s->n_open; i--;)
		if (spans_match(&s->open[i], SPAN_HYPERTRACE, at->machine, source, 0)) {
			ret = close_span(s, &s->open[i].span, at);
			spans_forget(s, i);
			break;
		}
	if (number)
		open_span(s, spans_at(SPAN_HYPERTRACE, at), source, 0);
	return ret;
}

/* ---- looking them up -------------------------------------------------------------------- */

static int compare(const struct span *a, const struct span *b, int key_a, int key_b)
{
	if (a->machine != b->machine)
		return a->machine < b->machine ? -1 : 1;
	if (key_a != key_b)
		return key_a < key_b ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static int compare_cpu(const void *p, const void *q)
{
	const struct span *a = *(const struct span *const *)p, *b = *(const struct span *const *)q;

	return compare(a, b, a->cpu, b->cpu);
}

static int compare_task(const void *p, const void *q)
{
	const struct span *a = *(const struct span *const *)p, *b = *(const struct span *const *)q;

	return compare(a, b, a->pid, b->pid);
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
		if (s->v[i].kind == SPAN_HYP)
			s->by_cpu[n_hyp++] = &s->v[i];
	}
	qsort(s->by_cpu, n_hyp, sizeof(*s->by_cpu), compare_cpu);
	qsort(s->by_task, s->n, sizeof(*s->by_task), compare_task);
	return 0;
}

size_t spans_count(const struct spans *s, enum span_kind kind)
{
	return s->count[kind];
}

unsigned int spans_reasons(const struct spans *s)
{
	return s->reasons;
}

/* The first in v[0..n) that is not before a span with that key. */
static size_t lower_bound(const struct span *const *v, size_t n, const struct span *key,
			  int (*less)(const void *, const void *))
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (less(&v[mid], &key) < 0)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

size_t spans_of_cpu(const struct spans *s, int machine, int cpu, const struct span *const **v)
{
	const struct span from = { .machine = machine, .cpu = cpu, .start = INT64_MIN };
	const struct span to = { .machine = machine, .cpu = cpu + 1, .start = INT64_MIN };
	size_t n = s->count[SPAN_HYP];
	size_t low = lower_bound(s->by_cpu, n, &from, compare_cpu);

	*v = s->by_cpu + low;
	return lower_bound(s->by_cpu, n, &to, compare_cpu) - low;
}

size_t spans_of_task(const struct spans *s, int machine, int pid, const struct span *const **v)
{
	const struct span from = { .machine = machine, .pid = pid, .start = INT64_MIN };
	const struct span to = { .machine = machine, .pid = pid + 1, .start = INT64_MIN };
	size_t low = lower_bound(s->by_task, s->n, &from, compare_task);

	*v = s->by_task + low;
	return lower_bound(s->by_task, s->n, &to, compare_task) - low;
}
