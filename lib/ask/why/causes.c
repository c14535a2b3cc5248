// SPDX-License-Identifier: LGPL-2.1-or-later
/* Causes: what a state means for who waits, their numbers and their words; sums that become findings. */

#include "ask/why/why-priv.h"

_Static_assert(sizeof(struct why_cause) == 48, "has no padding, and is compared as bytes");

static struct why_cause why_cause_key(const struct why_cause *c)
{
	struct why_cause key = *c;

	if (*c->comm)
		key.pid = STATE_NO_TASK;
	return key;
}

static bool why_cause_same(const void *causes, size_t index, const void *wanted)
{
	struct why_cause key = why_cause_key((const struct why_cause *)causes + index);

	return !memcmp(&key, wanted, sizeof(key));
}

void why_cause_plain(struct why_cause *c, unsigned int kind)
{
	memset(c, 0, sizeof(*c)); /* in place: a copy would wait for its stores */
	c->kind = kind;
	c->cpu = STATE_NO_CPU;
	c->pid = STATE_NO_TASK;
}

static uint32_t why_cause_find(struct why *w, const struct why_cause *c)
{
	struct why_cause key = why_cause_key(c);
	uint32_t hash = map_hash_bytes(&key, sizeof(key));
	size_t i = map_find(&w->by_cause, hash, why_cause_same, w->causes, &key);

	if (i != MAP_NONE) {
		if (w->causes[i].pid != c->pid)
			w->causes[i].pid = STATE_NO_TASK;
		return (uint32_t)i;
	}
	if (w->n_causes == WHY_CAUSES_MAX)
		return CAUSE_OTHERS;
	if (map_push(&w->by_cause, hash, &w->causes, &w->n_causes, c, sizeof(*c)))
		return UINT32_MAX;
	return (uint32_t)(w->n_causes - 1);
}

uint32_t why_cause_of(struct why *w, const struct why_cause *c)
{
	uint64_t at = map_hash(c->reason ^ c->class << 20 ^ (uint64_t)c->kind << 40 ^ (uint32_t)c->pid);
	struct why_met *met = &w->met[at % ARRAY_SIZE(w->met)];

	if (memcmp(&met->is, c, sizeof(*c))) /* no cause is all zero, as an empty place is */
		*met = (struct why_met){ *c, why_cause_find(w, c) };
	return met->cause;
}

void why_cause_span(const struct why *w, const struct state_span *s, bool pending, struct why_cause *c)
{
	const struct offset_guest *guest;
	const char *comm;

	why_cause_plain(c, s->state == STATE_RUNNABLE ? STATE_PREEMPTED : s->state);
	if (s->owner->kind == STATE_OF_GUEST_TASK)
		c->kind = STATE_GUEST;
	else if (c->kind == STATE_UNKNOWN && s->lost)
		c->kind = WHY_LOST;
	if (c->kind == STATE_RUNNING || s->owner->kind == STATE_OF_GUEST_TASK) {
		c->pid = s->owner->pid;
	} else if (c->kind == STATE_GUEST && pending) {
		c->kind = WHY_INJECTION;
	} else if (c->kind == STATE_PREEMPTED && !s->other) { /* the CPU was idle */
		c->kind = STATE_WAKING;
	} else if (c->kind == STATE_PREEMPTED) {
		c->cpu = s->cpu;
		c->pid = s->other;
		comm = steps_comm(w->steps, s->other_input, s->other, s->to);
		if (comm && !input_vcpu(&w->in->v[s->other_input], s->other, &guest))
			memccpy(c->comm, comm, 0, sizeof(c->comm) - 1);
	} else if (c->kind >= STATE_HYP && c->kind <= STATE_VMM) {
		c->why = s->why;
		c->reason = s->reason;
		c->class = s->class;
	}
	if (c->pid != STATE_NO_TASK || c->why)
		c->input = s->owner->input;
}

const struct why_kind_words *why_kind(unsigned int kind)
{
	static const struct why_kind_words rows[WHY_KINDS] = {
		[STATE_UNKNOWN] = { "not recorded", "no event shows it, and none was lost",
				    "hyptrace stat --show vcpus" },
		[STATE_GUEST] = { "guest" },
		[STATE_HYP] = { "hypervisor", .next = "hyptrace stat --show hyp,longest", .class = OF_PARTS },
		[STATE_FIRMWARE] = { "firmware", .next = "hyptrace stat --show firmware", .class = OF_PARTS },
		[STATE_HOST] = { "exit handling",
				 .next = "hyptrace stat --show exits,mmio,ioport,sysreg,hypercall",
				 .class = OF_EXITS },
		[STATE_VMM] = { "VMM", .next = "hyptrace stat --show exits,mmio,ioport,hypercall" },
		[STATE_PREEMPTED] = { "preempted", .next = "hyptrace stat --show steal" },
		[STATE_WAKING] = { "waking", "the CPU was idle, and had to wake up",
				   "hyptrace why --preset irq", OF_WAKES },
		[STATE_HALTED] = { "halted" },
		[STATE_BLOCKED] = { "blocked", "the thread slept while its guest had not halted",
				    "hyptrace stat --show vcpus" },
		[STATE_OUTSIDE] = { "out of the guest", "only sched_switch shows more: record -e sched",
				    "hyptrace stat --show vcpus" },
		[STATE_RUNNING] = { "host task" },
		[STATE_SLEEPING] = { "host task asleep" },
		[STATE_ENDED] = { "ended" },
		[WHY_UNDECIDED] = { "undecided",
				    "nearer to a border than the clocks' bounds; record --tsync "
				    "counter has the least",
				    "hyptrace sync" },
		[WHY_INJECTION] = { "injection" },
		[WHY_LOST] = { "lost", "events were lost; -b has larger buffers",
			       "hyptrace stat --show lost,vcpus" },
		[WHY_OTHERS] = { "others" },
		[WHY_TOTAL] = { "total" },
	};

	return &rows[kind];
}

void why_cause_text(const struct why *w, const struct why_cause *c, struct buf *out)
{
	const char *word = c->why && w->steps ? steps_reason(w->steps, c->input, c->why, c->reason) : NULL;
	char name[STEPS_TASK_MAX];

	word = steps_class(c->why, c->reason, c->class) ?: word;
	buf_addstr(out, why_kind(c->kind)->name);
	if (word)
		buf_printf(out, " (%s)", word);
	if (c->pid == STATE_NO_TASK && !*c->comm)
		return;
	buf_addstr(out, c->kind == STATE_PREEMPTED ? " by " : c->kind == STATE_GUEST ? " task " : " ");
	if (c->pid == STATE_NO_TASK)
		buf_addstr(out, c->comm);
	else if (*c->comm)
		buf_printf(out, "%s-%d", c->comm, c->pid);
	else
		buf_addstr(out, steps_task(w->steps, w->in, c->input, c->pid, UINT64_MAX, name));
	if (c->kind == STATE_PREEMPTED && c->cpu != STATE_NO_CPU)
		buf_printf(out, " on CPU %u", c->cpu);
}

struct finding_vcpu *finding_vcpu_of(const struct finding_job *j, uint32_t guest, uint32_t cpu)
{
	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++)
		if (v->wall && v->owner.guest == guest && v->owner.vcpu == cpu)
			return v;
	return NULL;
}

struct finding_vcpu *finding_thread_of(const struct finding_job *j, uint32_t input, int32_t pid)
{
	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++)
		if (v->owner.input == input && v->owner.pid == pid && v->wall)
			return v;
	return NULL;
}

#define DEAR_TIMES 10 /* an exit that takes so many times its price is dear */

void finding_sum(const struct finding_job *j, struct finding *f, enum finding_class class)
{
	uint64_t price = j->price[class == OF_HALTS || class == OF_WAKES], dear = DEAR_TIMES * price;
	uint64_t vmm = class == OF_ACCESSES && j->vmm.n ? j->vmm.ns / j->vmm.n / 2 : UINT64_MAX;

	dear = vmm > dear ? dear : vmm > price ? vmm : price;
	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++) {
		const struct finding_part p = v->part;
		double rate = v->wall ? (double)p.n * 1e9 / (double)v->wall : 0;
		uint64_t lost = p.ns;

		if (class != OF_ALL && rate < FINDING_STORM)
			lost = p.ns > p.n * dear ? p.ns - p.n * price : 0;
		if (class == OF_EXITS || class == OF_HALTS) {
			v->ordinary.ns += p.ns - lost;
			v->ordinary.n += lost < p.ns ? p.n : 0;
		}
		f->lost += lost;
		f->n += lost ? p.n : 0;
		if ((double)lost > f->share * (double)v->wall) {
			f->share = (double)lost / (double)v->wall;
			f->rate = rate;
			f->example = p.longest;
			f->on = v->owner;
		}
		v->part = (struct finding_part){ 0 };
	}
}

int finding_push(const struct finding_job *j, struct finding *f, struct buf *what)
{
	const struct why *w = j->why;
	char name[STEPS_TASK_MAX];
	int ret = 0;

	if (f->share >= FINDING_LEAST) {
		snprintf(f->vcpu, sizeof(f->vcpu), "%s",
			 steps_task(w->steps, w->in, f->on.input, f->on.pid, UINT64_MAX, name));
		snprintf(f->what, sizeof(f->what), f->rate >= FINDING_STORM ? "%s, %.0f a second" : "%s",
			 buf_str(what) ?: "", f->rate);
		ret = array_push(&j->to->v, &j->to->n, f, sizeof(*f));
	}
	buf_release(what);
	return ret;
}
