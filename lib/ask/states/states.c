// SPDX-License-Identifier: LGPL-2.1-or-later
/* The model of where time goes: takes steps in the order of time; names of states, and sums of spans. */
#include "ask/states/states-priv.h"

static void input_begin(const struct states *st, struct state_input *in, const struct input *of)
{
	static const struct {
		const char *word;
		uint8_t to;
	} rows[] = { { "eret_host", HYP_HOST },
		     { "eret_guest", HYP_GUEST },
		     { "smc", HYP_EL3 },
		     { "psci", HYP_EL3 } };
	struct tep_event *exit = of->tep ? tep_find_event_by_name(of->tep, "kvm", "kvm_exit") : NULL;

	in->in = of;
	in->index = (uint16_t)(in - st->in);
	memset(in->buffer, STATE_BUFFERS_MAX, sizeof(in->buffer));
	in->over_at = in->covered_to = UINT64_MAX;
	in->widest = of->time.shift.bounds || !of->guest ? filetime_widest_bound(&of->time) : UINT64_MAX;
	in->x86 = exit && tep_find_field(exit, "exit_reason");
	for (unsigned int i = 0; i < STATE_REASONS; i++) {
		const char *word = steps_reason(st->steps, in->index, STEP_HYP_EXIT, i);

		for (size_t r = 0; r < ARRAY_SIZE(rows) && word; r++)
			if (!strcmp(word, rows[r].word))
				in->hyp_exit_to[i] = rows[r].to;
	}
}

static uint8_t buffer_of(size_t buffer)
{
	return buffer < STATE_BUFFERS_MAX ? (uint8_t)buffer : STATE_BUFFERS_MAX - 1;
}

int states_open(struct states **out, const struct inputs *in, const struct timeline *t,
		const struct steps *steps, unsigned int want, state_listener *span, void *ctx)
{
	struct states *st = cache_lines_new(1, sizeof(*st));
	size_t n = t ? merge_streams(t->merge) : 0;

	if (!st)
		return -ENOMEM;
	st->steps = steps;
	st->in = calloc(in->n + 1, sizeof(*st->in));
	st->streams = calloc(n + 1, sizeof(*st->streams));
	if (!st->in || !st->streams || states_listen(st, want, span, ctx))
		goto fail;
	for (st->n = 0; st->n < in->n && st->n < STATE_NO_INPUT; st->n++)
		input_begin(st, &st->in[st->n], &in->v[st->n]);
	/* counts the CPUs that give records, and notes those on which events were lost before the first */
	for (uint32_t i = 0; i < n; i++) {
		const struct merge_stream *s = merge_stream_at(t->merge, i);
		struct step gap = { .kind = STEP_GAP, .buffer = (uint16_t)s->buffer };
		struct state_input *of = &st->in[s->input];
		struct state_cpu *c = s->gap || of->in->guest ? state_cpu_of(st, of, s->cpu) : NULL;

		of->streams[buffer_of(s->buffer)]++;
		st->streams[i] = of->in->guest ? c : NULL;
		if (of->in->guest)
			st->n_streams = n;
		if (c && s->gap)
			state_gap_step(st, c, &gap);
	}
	if (st->error)
		goto fail;
	*out = st;
	return 0;
fail:
	states_close(st);
	return -ENOMEM;
}

int states_listen(struct states *st, unsigned int want, state_listener *span, void *ctx)
{
	const struct state_listening one = { want, span, ctx };

	st->want |= want;
	st->later |= span != state_totals_span;
	return array_push(&st->listeners, &st->n_listeners, &one, sizeof(one));
}

void states_close(struct states *st)
{
	if (!st)
		return;
	for (size_t i = 0; i < st->n; i++)
		free(st->in[i].cpus);
	free(st->in);
	free(st->listeners);
	free(st->streams);
	free(st->tasks);
	map_release(&st->by_task);
	free(st->tracks);
	free(st->holding);
	arena_release(&st->arena);
	arena_release(&st->owners);
	free(st);
}

static struct state_input *guest_input(struct states *st, const struct state_input *host,
				       const struct offset_guest *g)
{
	for (size_t i = 0; i < st->n && g->trace_id; i++) {
		struct state_input *in = &st->in[i];
		const struct state_input *up = host;

		if (in->in->trace_id != g->trace_id || !in->in->guest || (in->host && in->host != host))
			continue;
		while (up && up != in) /* files may claim to be each other's guests */
			up = up->host;
		if (!up)
			return in;
	}
	return NULL;
}

static int vcpus_begin(struct states *st, struct state_input *host, const struct offset_guest *g)
{
	struct state_input *guest = guest_input(st, host, g);

	if (guest)
		guest->host = host;
	for (uint32_t i = 0; i < g->n && !st->error; i++) {
		const struct offset_vcpu *of = &g->vcpus[i];
		struct state_vcpu *v =
			of->pid <= INT32_MAX ? state_vcpu_of(st, host, (int32_t)of->pid) : NULL;
		struct state_cpu *c;

		if (!v || v->track.owner->vcpu != STATE_NO_CPU)
			continue;
		v->track.owner->vcpu = of->cpu;
		v->track.owner->guest_name = g->name;
		c = guest ? state_cpu_of(st, guest, of->cpu) : NULL;
		if (guest)
			v->track.owner->guest = guest->index;
		if (c && !c->vcpu) {
			c->vcpu = v;
			v->guest = c;
		}
	}
	return st->error;
}

int states_begin(struct states *st, uint64_t ts)
{
	st->begun = true;
	st->from = st->now = ts;
	for (size_t i = 0; i < st->n; i++)
		for (size_t g = 0; g < st->in[i].in->n_guests; g++)
			if (vcpus_begin(st, &st->in[i], &st->in[i].in->guests[g]))
				return st->error;
	states_cover(st);
	return 0;
}

/* That kind is seen for the first time, and perhaps its buffer. */
static void state_learn(struct states *st, struct state_input *in, enum step_kind kind, uint8_t buffer)
{
	state_gap_learn(in, kind, buffer);
	if (!(in->needed & 1ull << buffer))
		in->begun = st->now;
	in->needed |= 1ull << buffer;
	states_cover(st);
}

/* STEP_END, STEP_GAP, STEP_LOST. */
static int state_loss(struct states *st, struct state_input *in, uint8_t buffer, const struct step *s)
{
	struct state_cpu *c = s->kind == STEP_END ? NULL : state_cpu_of(st, in, s->cpu);

	if (c) {
		if (in->over & ~c->gaps)
			state_gap_apply(st, c);
		if (s->kind == STEP_LOST && s->a) /* else tracing was off */
			in->lost = st->now;
		state_gap_step(st, c, s);
	} else if (s->kind == STEP_END && in->streams[buffer] && !--in->streams[buffer]) {
		if (in->needed & 1ull << buffer && st->now < in->over_at)
			in->over_at = st->now;
		states_cover(st);
		state_gap_over(st, in, buffer);
	}
	return st->error;
}

/* Inlined into both callers: there are millions of steps. */
static int step_take(struct states *st, const struct step *s, const uint64_t *raw)
	__attribute__((always_inline));
static inline int step_take(struct states *st, const struct step *s, const uint64_t *raw)
{
	uint8_t buffer = buffer_of(s->buffer);
	uint64_t kind = STEP_SET(s->kind);
	struct state_input *in = s->input < st->n ? &st->in[s->input] : NULL;
	struct state_cpu *c;

	if (!in || st->error)
		return st->error;
	st->now = s->ts > st->now ? s->ts : st->now;
	if (st->given < st->n_holding)
		state_tracks_give(st);
	in->live[buffer] = st->now;
	if (kind & STATES_STEPS) { /* of the buffer in which such events were seen first */
		if (in->buffer[s->kind] != buffer && in->kinds & kind)
			return 0;
		if (in->buffer[s->kind] != buffer)
			state_learn(st, in, s->kind, buffer);
	} else if (!(kind & STEPS_LOSSES)) {
		return 0;
	}
	st->cause_input = s->input;
	if (kind & STATE_HYP_KINDS)
		st->cause_bound = (s->ts - (uint64_t)in->in->time.add) % STATE_HYP_STEP ? 0 : STATE_HYP_STEP;
	else
		st->cause_bound = in->bound = in->in->guest ? filetime_bound(&in->in->time, *raw) : 0;
	if (kind & STEPS_LOSSES)
		return state_loss(st, in, buffer, s);
	c = state_cpu_of(st, in, s->cpu);
	if (!c)
		return st->error;
	if (in->over & ~c->gaps)
		state_gap_apply(st, c);
	if (c->hyp == HYP_UNTOLD)
		state_hyp_is_guest(st, c);
	if (c->vcpu && c->vcpu->in->without_reasons)
		state_hyp_shown(st, c->vcpu, s->ts, st->cause_bound);
	if (kind & STATE_HYP_KINDS) {
		state_hyp_step(st, c, s);
		return st->error;
	}
	if ((c->hyp == HYP_UNKNOWN || c->hyp == HYP_UNTOLD) && state_seen_hyp(in))
		state_hyp_is_host(st, c);
	if (kind & STATE_SCHED_KINDS)
		state_sched_step(st, c, s);
	else
		state_kvm_step(st, c, s);
	return st->error;
}

int states_step(struct states *st, const struct step *s, uint64_t raw)
{
	return step_take(st, s, &raw);
}

void states_until(struct states *st, uint64_t ts)
{
	st->now = ts > st->now ? ts : st->now;
}

/* Shows that a guest ran by its other events, where its host's hypervisor gives no reasons. */
static void records_show(struct states *st, const struct merge_record *m, size_t n)
{
	for (; n && st->without_reasons; m++, n--) {
		struct state_cpu *c = m->stream < st->n_streams ? st->streams[m->stream] : NULL;

		if (!c || !c->vcpu || !c->vcpu->in->without_reasons || !m->data)
			continue;
		states_until(st, m->ts);
		c->in->bound = filetime_bound(&c->in->in->time, m->raw);
		state_hyp_shown(st, c->vcpu, m->ts, c->in->bound);
	}
}

int states_run(void *states, struct pass_run *run)
{
	struct states *st = states;
	const struct merge_run *records = run->records;
	size_t shown = 0;
	int ret = 0;

	if (!st->begun && records->n)
		ret = states_begin(st, records->v[0].ts);
	for (const struct step *s = run->steps, *end = s + run->n_steps; s < end && !ret; s++) {
		if (st->without_reasons && s->at > shown)
			records_show(st, &records->v[shown], s->at - shown);
		shown = s->at;
		ret = step_take(st, s, &records->v[s->at].raw);
	}
	records_show(st, &records->v[shown], records->n - shown);
	if (records->n)
		states_until(st, records->v[records->n - 1].ts);
	return ret;
}

/* Follows the run's steps, and keeps the spans for states_after() if a listener needs that. */
static int states_first(void *states, struct pass_run *run)
{
	struct states *st = states;
	int ret;

	st->spans = st->later ? run->out : NULL;
	ret = states_run(st, run);
	st->spans = NULL;
	return ret ?: buf_status(run->out);
}

static int states_after(void *states, struct pass_run *run)
{
	const struct state_span *s = (const void *)run->out->data;
	int ret = 0;

	for (size_t n = run->out->len / sizeof(*s); n && !ret; n--)
		ret = states_tell(states, s++);
	return ret;
}

struct pass_part states_part(struct states *st)
{
	return (struct pass_part){
		.ctx = st, .steps = STATES_STEPS, .first = states_first, .after = states_after, .uses = st
	};
}

int states_end(struct states *st)
{
	if (st->ended || st->error)
		return st->error;
	st->ended = true;
	for (size_t i = 0; i < st->n_tracks && !st->error; i++)
		state_track_end(st, st->tracks[i]);
	return st->error;
}

uint64_t states_from(const struct states *st)
{
	return st->from;
}

uint64_t states_to(const struct states *st)
{
	return st->now;
}

uint64_t states_left_out(const struct states *st)
{
	return st->left_out;
}

const char *states_reason(const struct states *st, const struct state_span *span)
{
	const struct state_owner *o = span->owner;
	size_t input = o->input;

	if (span->why == STEP_NONE)
		return NULL;
	if (o->kind == STATE_OF_GUEST_TASK && st->in[input].host) /* the reasons of its vCPU */
		input = st->in[input].host->index;
	return steps_reason(st->steps, input, span->why, span->reason);
}

const char *state_name(enum state state)
{
	static const char *const names[STATES] = { [STATE_UNKNOWN] = "lost",
						   [STATE_GUEST] = "guest",
						   [STATE_HYP] = "hypervisor",
						   [STATE_FIRMWARE] = "firmware",
						   [STATE_HOST] = "host",
						   [STATE_VMM] = "VMM",
						   [STATE_PREEMPTED] = "preempted",
						   [STATE_WAKING] = "waking",
						   [STATE_HALTED] = "halted",
						   [STATE_BLOCKED] = "blocked",
						   [STATE_OUTSIDE] = "not recorded",
						   [STATE_RUNNING] = "running",
						   [STATE_STOLEN] = "stolen",
						   [STATE_RUNNABLE] = "runnable",
						   [STATE_SLEEPING] = "sleeping",
						   [STATE_ENDED] = "ended" };

	return (unsigned int)state < STATES ? names[state] : "lost";
}

static void sum_add(struct state_sum *to, const struct state_sum *part)
{
	to->ns += part->ns;
	to->n += part->n;
	to->undecided += part->undecided;
}

/* The same by causes, and by what stole. Not inlined: few spans need it. */
static int total_detail(struct state_total *t, bool causes, const struct state_span *s,
			const struct state_sum *part) __attribute__((noinline));
static int total_detail(struct state_total *t, bool causes, const struct state_span *s,
			const struct state_sum *part)
{
	if (causes) {
		uint64_t reason = s->why == STEP_NONE ? 0 : s->reason;
		size_t i = 0;

		while (i < t->n_causes && (t->causes[i].state != s->state || t->causes[i].why != s->why ||
					   t->causes[i].reason != reason))
			i++;
		if (i == t->n_causes &&
		    array_push(&t->causes, &t->n_causes,
			       &(struct state_cause){ s->state, s->why, reason, { 0 } }, sizeof(*t->causes)))
			return -ENOMEM;
		sum_add(&t->causes[i].sum, part);
	}
	if (s->state == STATE_STOLEN)
		sum_add(&t->stolen[s->by], part);
	if (s->state == STATE_PREEMPTED || (s->state == STATE_STOLEN && s->by == STATE_PREEMPTED)) {
		struct state_thief thief = { s->other, s->other_input, { 0 } };
		size_t i = 0;

		while (i < t->n_thieves &&
		       (t->thieves[i].pid != thief.pid || t->thieves[i].input != thief.input))
			i++;
		if (i == t->n_thieves && i >= STATE_THIEVES_MAX - 1) { /* the last is all others */
			i = STATE_THIEVES_MAX - 1;
			thief.pid = STATE_NO_TASK;
			thief.input = STATE_NO_INPUT;
		}
		if (i == t->n_thieves && array_push(&t->thieves, &t->n_thieves, &thief, sizeof(thief)))
			return -ENOMEM;
		sum_add(&t->thieves[i].sum, part);
	}
	return 0;
}

static inline int total_add(const struct state_totals *all, struct state_total *t, const struct state_span *s)
{
	struct state_sum part = { .ns = s->to - s->from, .n = 1 };

	if (__builtin_add_overflow(s->from_bound, s->to_bound, &part.undecided) || part.undecided > part.ns)
		part.undecided = part.ns;
	t->owner = s->owner;
	sum_add(&t->all[s->state], &part);
	if (!all->with_causes && s->state != STATE_STOLEN && s->state != STATE_PREEMPTED)
		return 0;
	return total_detail(t, all->with_causes, s, &part);
}

/* Adds an owner's first span, or the part of one that lies in the time that is covered, and forgets what was
 * before it. */
static int total_edge(struct state_totals *all, const struct state_span *s) __attribute__((noinline));
static int total_edge(struct state_totals *all, const struct state_span *s)
{
	static const struct state_total empty;
	struct state_total *t;
	struct state_span cut;

	while (all->n <= s->owner->index)
		if (array_push(&all->v, &all->n, &empty, sizeof(empty)))
			return -ENOMEM;
	t = &all->v[s->owner->index];
	t->owner = s->owner;
	if (all->st && t->from < s->covered_from) { /* a buffer began since */
		free(t->thieves);
		free(t->causes);
		*t = (struct state_total){ .owner = s->owner, .from = s->covered_from };
	}
	s = all->st ? states_cut(s, &cut) : s;
	return s ? total_add(all, t, s) : 0;
}

int state_totals_span(void *totals, const struct state_span *s)
{
	struct state_totals *all = totals;
	struct state_total *t = s->owner->index < all->n ? &all->v[s->owner->index] : NULL;
	bool edge = !t || (all->st &&
			   (t->from < s->covered_from || s->from < s->covered_from || s->to > s->covered_to));

	return edge ? total_edge(all, s) : total_add(all, t, s);
}

void state_totals_release(struct state_totals *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].thieves);
		free(t->v[i].causes);
	}
	free(t->v);
	*t = (struct state_totals){ 0 };
}
