// SPDX-License-Identifier: LGPL-2.1-or-later
/* The model of where time goes: takes steps in the order of time and keeps what is known. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/states-priv.h"

/* ---- opening ------------------------------------------------------------------------------ */

static void hyp_words(const struct states *st, struct state_input *in)
{
	static const struct {
		const char *word;
		uint8_t to;
	} rows[] = { { "eret_host", HYP_HOST },
		     { "eret_guest", HYP_GUEST },
		     { "smc", HYP_EL3 },
		     { "psci", HYP_EL3 } };

	for (unsigned int i = 0; i < STATE_REASONS; i++) {
		const char *word = steps_reason(st->steps, in->index, STEP_HYP_EXIT, i);

		for (size_t r = 0; r < ARRAY_SIZE(rows) && word; r++)
			if (!strcmp(word, rows[r].word))
				in->hyp_exit_to[i] = rows[r].to;
	}
}

static void input_begin(const struct states *st, struct state_input *in, const struct input *of)
{
	struct tep_event *exit = of->tep ? tep_find_event_by_name(of->tep, "kvm", "kvm_exit") : NULL;

	in->in = of;
	in->index = (uint16_t)(in - st->in);
	in->x86 = exit && tep_find_field(exit, "exit_reason");
	names_init(&in->names, of->tep);
	hyp_words(st, in);
}

static uint8_t buffer_of(size_t buffer)
{
	return buffer < STATE_BUFFERS_MAX ? (uint8_t)buffer : STATE_BUFFERS_MAX - 1;
}

/* How many CPUs give records, and on which of them events were lost before the first. */
static int gaps_begin(struct states *st, const struct timeline *t)
{
	for (uint32_t i = 0; t && i < timeline_streams(t); i++) {
		const struct merge_stream *s = timeline_stream_at(t, i);
		struct step gap = { .kind = STEP_GAP, .buffer = (uint16_t)s->buffer };
		struct state_input *in = &st->in[s->input];
		struct state_cpu *c = s->gap ? state_cpu_of(st, in, s->cpu) : NULL;

		in->streams[buffer_of(s->buffer)]++;
		if (c)
			state_gap_step(st, c, &gap);
	}
	return st->error;
}

int states_open(struct states **out, const struct inputs *in, const struct timeline *t,
		const struct steps *steps, unsigned int want, state_listener *span, void *ctx)
{
	struct states *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	*st = (struct states){ .steps = steps, .want = want, .span = span, .ctx = ctx };
	st->in = calloc(in->n + 1, sizeof(*st->in));
	if (!st->in) {
		free(st);
		return -ENOMEM;
	}
	for (st->n = 0; st->n < in->n && st->n < STATE_NO_INPUT; st->n++)
		input_begin(st, &st->in[st->n], &in->v[st->n]);
	if (gaps_begin(st, t)) {
		states_close(st);
		return -ENOMEM;
	}
	*out = st;
	return 0;
}

void states_close(struct states *st)
{
	if (!st)
		return;
	for (size_t i = 0; i < st->n; i++) {
		names_release(&st->in[i].names);
		free(st->in[i].cpus);
	}
	free(st->in);
	free(st->tasks);
	free(st->tracks);
	arena_release(&st->arena);
	free(st);
}

/* ---- whose guest --------------------------------------------------------------------------- */

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

		if (!v || v->track.owner.vcpu != STATE_NO_CPU)
			continue;
		v->track.owner.vcpu = of->cpu;
		v->track.owner.guest_name = g->name;
		c = guest ? state_cpu_of(st, guest, of->cpu) : NULL;
		if (guest)
			v->track.owner.guest = guest->index;
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
	return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void bound_find(struct state_input *in, uint64_t raw)
{
	const struct offset_table *knots = in->in->time.shift.cpus;
	uint32_t low = 0, high = knots ? knots->n : 0, n = high;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (knots->v[mid].time < raw)
			low = mid + 1;
		else
			high = mid;
	}
	in->bound = filetime_bound(&in->in->time, raw);
	in->bound_from = raw; /* a knot's own bound is not that of its surroundings */
	in->bound_to = low == n ? UINT64_MAX : knots->v[low].time > raw ? knots->v[low].time : raw + 1;
}

static uint64_t step_bound(struct state_input *in, const struct step *s, uint64_t raw)
{
	if (s->kind == STEP_HYP_ENTER || s->kind == STEP_HYP_EXIT)
		return (s->ts - (uint64_t)in->in->time.add) % STATE_HYP_STEP ? 0 : STATE_HYP_STEP;
	if (!in->in->guest)
		return 0;
	if (raw < in->bound_from || raw >= in->bound_to)
		bound_find(in, raw);
	return in->bound;
}

static void step_take(struct states *st, struct state_cpu *c, const struct step *s)
{
	if (s->kind == STEP_GAP || s->kind == STEP_LOST) {
		state_gap_step(st, c, s);
		return;
	}
	if (s->kind == STEP_HYP_ENTER || s->kind == STEP_HYP_EXIT) {
		state_hyp_step(st, c, s);
		return;
	}
	if (state_seen_hyp(c->in) && (c->hyp == HYP_UNKNOWN || c->hyp == HYP_UNTOLD))
		state_hyp_is_host(st, c);
	if (s->kind == STEP_SWITCH || s->kind == STEP_WAKING || s->kind == STEP_WAKEUP)
		state_sched_step(st, c, s);
	else
		state_kvm_step(st, c, s);
}

/* Whether it is of the buffer that tells such events. */
static bool step_counts(struct state_input *in, const struct step *s, uint8_t buffer)
{
	if (s->kind == STEP_GAP || s->kind == STEP_LOST || s->kind == STEP_END)
		return true;
	if (!(STEP_SET(s->kind) & STATES_STEPS))
		return false;
	if (!state_seen(in, s->kind))
		state_gap_learn(in, s->kind, buffer);
	return in->buffer[s->kind] == buffer;
}

int states_step(struct states *st, const struct step *s, uint64_t raw)
{
	uint8_t buffer = buffer_of(s->buffer);
	struct state_input *in = s->input < st->n ? &st->in[s->input] : NULL;
	struct state_cpu *c;

	if (!in || st->error)
		return st->error;
	st->now = s->ts > st->now ? s->ts : st->now;
	in->live[buffer] = st->now;
	if (!step_counts(in, s, buffer))
		return 0;
	st->cause = (struct state_event){ s->ts, s->cpu, s->input, s->buffer, s->kind };
	st->cause_bound = step_bound(in, s, raw);
	if (s->kind == STEP_END) {
		if (in->streams[buffer] && !--in->streams[buffer])
			state_gap_over(st, in, buffer);
		return st->error;
	}
	c = state_cpu_of(st, in, s->cpu);
	if (!c)
		return st->error;
	if (in->over & ~c->gaps)
		state_gap_tell(st, c);
	step_take(st, c, s);
	return st->error;
}

void states_until(struct states *st, uint64_t ts)
{
	st->now = ts > st->now ? ts : st->now;
}

int states_run(struct states *st, const struct pass_run *run)
{
	const struct merge_run *records = run->records;
	int ret = 0;

	if (!st->begun && records->n)
		ret = states_begin(st, records->v[0].ts);
	for (size_t i = 0; i < run->n_steps && !ret; i++)
		ret = states_step(st, &run->steps[i], records->v[run->steps[i].at].raw);
	if (records->n)
		states_until(st, records->v[records->n - 1].ts);
	return ret;
}

static int states_after(void *ctx, struct pass_run *run)
{
	return states_run(ctx, run);
}

struct pass_part states_part(struct states *st)
{
	return (struct pass_part){ .ctx = st, .steps = STATES_STEPS, .after = states_after };
}

int states_end(struct states *st)
{
	if (st->ended || st->error)
		return st->error;
	st->ended = true;
	for (size_t i = 0; i < st->n_tracks && !st->error; i++)
		state_track_end(st, st->tracks[i], state_proven(st, st->tracks[i]), st->now);
	return st->error;
}

/* ---- what there is ------------------------------------------------------------------------- */

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

size_t states_owners(const struct states *st)
{
	return st->n_tracks;
}

const struct state_owner *states_owner(const struct states *st, size_t index)
{
	return &st->tracks[index]->owner;
}

const char *states_comm(struct states *st, size_t input, int32_t pid)
{
	if (input >= st->n || !st->in[input].in->tep)
		return NULL;
	names_learned(&st->in[input].names); /* by steps_learn */
	return names_find(&st->in[input].names, pid);
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
