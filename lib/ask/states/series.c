// SPDX-License-Identifier: LGPL-2.1-or-later
/* A recording as figures by slices of its time. */
#include "ask/states/series.h"

#include "ask/states/reading.h"
#include "ask/states/states.h"

/* An owner's state, of which rows are. Has no padding, and is compared as bytes. */
struct series_state {
	uint32_t owner; /* its index */
	uint16_t state, why;
	uint64_t reason, class; /* of lost time as a state_span's; PREEMPTED: the task's PID, and its input */
	const char *comm;	/* of that task, or of a task that owns the state: tasks change their names */
};

/* Indices of its rows; cause: of a vCPU's lost time. */
struct series_seen {
	struct series_state is;
	size_t row, cause;
};

struct series_run {
	struct series *to;
	const struct inputs *in;
	struct reading read;
	struct counts events; /* by the same slices */
	/* stays and states */
	struct tally tally;
	struct hyptime *hyp;
	struct series_seen *seen;
	size_t n_seen;
	struct map by_state;
};

/* The row of that name, a new one if need be. Rows move when one is added: *row is valid until then. */
static int series_find(struct series *s, enum series_group group, const char *machine, const char *name,
		       struct series_row **row)
{
	struct series_row new = { .group = group };
	int ret = -ENOMEM;

	for (size_t i = 0; i < s->n; i++) {
		*row = &s->v[i];
		if ((*row)->group == group && !strcmp((*row)->machine, machine) &&
		    !strcmp((*row)->name, name))
			return 0;
	}
	new.machine = strdup(machine);
	new.name = strdup(name);
	if (new.machine &&new.name)
		ret = array_push(&s->v, &s->n, &new, sizeof(new));
	if (ret) {
		free(new.machine);
		free(new.name);
		return ret;
	}
	*row = &s->v[s->n - 1];
	return 0;
}

/* "host", or the guest's name: the same in both recordings whatever their files are called. */
static const char *series_machine(const struct input *in)
{
	return in->guest ? in->machine : "host";
}

static int series_events(struct series_run *r)
{
	const struct counts *c = &r->events;

	for (size_t i = 0; i < c->n_cpus; i++) {
		const struct input *in = &r->in->v[c->cpus[i].input];
		const char *buffer = reader_info(in->reader)->buffers[c->cpus[i].buffer].name;

		if (i && c->at[i].from == c->at[i - 1].from) /* a CPU of the same buffer */
			continue;
		for (unsigned int id = 0; id < in->n_known; id++) {
			const struct known_event *e = input_event(in, id);
			struct series_row *row = NULL;
			char name[256];

			for (size_t k = 0; e && k < SERIES_SLICES; k++) {
				uint64_t n = counts_of(c, i, id, k);

				if (n && !row) {
					snprintf(name, sizeof(name), "%s%s%s:%s", buffer ?: "",
						 buffer && *buffer ? "/" : "", e->event->system,
						 e->event->name);
					if (series_find(r->to, SERIES_EVENTS, series_machine(in), name, &row))
						return -ENOMEM;
				}
				if (n)
					row->v[k] += (double)n;
			}
		}
	}
	return 0;
}

static int series_spans_row(struct series_run *r, const struct tally_row *from, enum series_group count,
			    enum series_group time, const char *name)
{
	const char *machine = series_machine(&r->in->v[from->input]);
	struct series_row *row;
	int ret = series_find(r->to, count, machine, name, &row);

	for (size_t i = 0; i < from->room && i <= SERIES_SLICES && !ret; i++)
		row->v[i < SERIES_SLICES ? i : SERIES_SLICES - 1] += (double)from->cells[i].n;
	ret = ret ?: series_find(r->to, time, machine, name, &row);
	for (size_t i = 0; i < from->room && i <= SERIES_SLICES && !ret; i++)
		row->v[i < SERIES_SLICES ? i : SERIES_SLICES - 1] += (double)from->cells[i].ns;
	return ret ?: histogram_join(&row->time, &from->time);
}

/*
 * A name that the task has in another recording, too: threads that the kernel has on each CPU are one
 * (kworker/0:1, kworker/u8:2, ksoftirqd/0), and so are those that do vhost's work (vhost-PID).
 */
static void series_task_name(struct series_run *r, size_t input, int32_t pid, uint64_t ts, char *name,
			     size_t size)
{
	const char *comm = steps_comm(r->read.steps, input, pid, ts) ?: "?";
	const char *slash = strchr(comm, '/');
	size_t len = strlen(comm);
	const struct offset_guest *guest;

	if (input_vcpu(&r->in->v[input], pid, &guest)) {
		steps_task(r->read.steps, r->in, input, pid, ts, name);
		return;
	}
	if (!strncmp(comm, "vhost-", 6) && isdigit((unsigned char)comm[6]))
		len = 5;
	else if (slash && (slash[1] == 'u' || isdigit((unsigned char)slash[1])))
		len = (size_t)(slash - comm);
	snprintf(name, size, "%.*s", (int)len, comm);
}

/* "vCPU 0" */
static const char *series_vcpu_name(const struct state_owner *o, char name[24])
{
	snprintf(name, 24, o->vcpu == STATE_NO_CPU ? "vCPU thread" : "vCPU %u", o->vcpu);
	return name;
}

static int series_state_find(struct series_run *r, const struct state_span *span, struct series_row **row)
{
	const struct state_owner *o = span->owner;
	char name[128], vcpu[24];

	if (o->kind == STATE_OF_TASK) {
		series_task_name(r, o->input, o->pid, span->to, name, sizeof(name));
		return series_find(r->to, SERIES_TASKS, series_machine(&r->in->v[o->input]), name, row);
	}
	snprintf(name, sizeof(name), "%s %s",
		 o->kind == STATE_OF_GUEST_TASK ? "tasks" : series_vcpu_name(o, vcpu),
		 state_name(span->state));
	return series_find(r->to, SERIES_STATES,
			   o->kind == STATE_OF_GUEST_TASK ? series_machine(&r->in->v[o->input])
							  : o->guest_name ?: "a guest",
			   name, row);
}

static void series_add(const struct series_run *r, struct series_row *row, const struct state_span *span)
{
	uint64_t at = span->from;

	while (at < span->to) {
		size_t slice = counts_slice(&r->events, at);
		uint64_t end = r->to->from + (slice + 1) * r->events.width;

		end = end < span->to && slice + 1 < SERIES_SLICES ? end : span->to;
		row->v[slice] += (double)(end - at);
		at = end;
	}
}

static bool series_state_same(const void *seen, size_t index, const void *wanted)
{
	return !memcmp(&((const struct series_seen *)seen)[index].is, wanted, sizeof(struct series_state));
}

/* "vCPU 0 preempted by hog", "vCPU 0 hypervisor (hvc)", "vCPU 1 host (DABT_LOW)" */
static int series_cause_find(struct series_run *r, const struct state_span *span, struct series_row **row)
{
	const char *reason = states_reason(r->read.states, span), *state = state_name(span->state);
	char name[160], vcpu[24], by[STEPS_TASK_MAX];

	series_vcpu_name(span->owner, vcpu);
	reason = steps_class(span->why, span->reason, span->class) ?: reason;
	if (span->state == STATE_PREEMPTED) {
		series_task_name(r, span->other_input, span->other, span->to, by, sizeof(by));
		snprintf(name, sizeof(name), "%s preempted by %s", vcpu, by);
	} else if (reason && span->state <= STATE_VMM) {
		snprintf(name, sizeof(name), "%s %s (%s)", vcpu, state, reason);
	} else {
		snprintf(name, sizeof(name), "%s %s", vcpu, state);
	}
	return series_find(r->to, SERIES_CAUSES, span->owner->guest_name ?: "a guest", name, row);
}

static int series_span(void *ctx, const struct state_span *span)
{
	struct series_run *r = ctx;
	enum state_kind kind = span->owner->kind;
	bool preempted = span->state == STATE_PREEMPTED && span->other > 0;
	bool lost = kind == STATE_OF_VCPU &&
		    ((span->state >= STATE_HYP && span->state <= STATE_VMM) || preempted ||
		     span->state == STATE_WAKING || span->state == STATE_BLOCKED);
	struct series_seen new = { .is = { .owner = span->owner->index, .state = (uint16_t)span->state } };
	const struct series_state *is = &new.is;
	struct series_row *row;
	uint32_t hash;
	size_t i;

	if ((kind == STATE_OF_GUEST_TASK && span->state != STATE_STOLEN) ||
	    (kind == STATE_OF_TASK && span->state != STATE_RUNNING))
		return 0;
	if (lost) { /* also by what */
		new.is.why = preempted ? 0 : span->why;
		new.is.reason = preempted ? (uint32_t)span->other : span->reason;
		new.is.class = preempted ? span->other_input : span->class;
	}
	if (kind == STATE_OF_TASK)
		new.is.comm = steps_comm(r->read.steps, span->owner->input, span->owner->pid, span->to);
	else if (preempted)
		new.is.comm = steps_comm(r->read.steps, span->other_input, span->other, span->to);
	/* of its fields: bytes of it would wait until all are stored */
	hash = map_hash(is->reason ^ is->class << 16 ^ (uint64_t)is->why << 32 ^ (uint64_t)is->state << 40 ^
			(uint64_t)is->owner << 48 ^ (uint64_t)(uintptr_t)is->comm);
	i = map_find(&r->by_state, hash, series_state_same, r->seen, &new.is);
	if (i == MAP_NONE) {
		int ret = series_state_find(r, span, &row);

		new.row = ret ? 0 : (size_t)(row - r->to->v);
		ret = ret || !lost ? ret : series_cause_find(r, span, &row);
		new.cause = ret ? 0 : (size_t)(row - r->to->v);
		ret = ret ?: map_push(&r->by_state, hash, &r->seen, &r->n_seen, &new, sizeof(new));
		if (ret)
			return ret;
		i = r->n_seen - 1;
	}
	series_add(r, &r->to->v[r->seen[i].row], span);
	if (lost)
		series_add(r, &r->to->v[r->seen[i].cause], span);
	return 0;
}

int series_read(struct series *s, const struct inputs *in, const struct log *log)
{
	static const bool things[SERIES_GROUPS] = {
		[SERIES_EVENTS] = true, [SERIES_EXITS] = true, [SERIES_HYP] = true
	};
	struct series_run r = { .to = s, .in = in };
	uint64_t width;
	char name[EXITS_NAME_MAX];
	uint64_t seen = 0;
	int ret;

	*s = (struct series){ 0 };
	ret = part_extent(in->v, in->n, 0, 0, &s->from, &s->to, &s->damaged);
	s->from = in->from > s->from ? in->from : s->from;
	s->to = in->to && in->to <= s->to ? in->to - 1 : s->to;
	if (ret || s->from >= s->to)
		return ret ?: -ENODATA;
	width = (s->to - s->from) / SERIES_SLICES + 1;
	s->length = (double)width * SERIES_SLICES / 1e9;
	ret = reading_open(&r.read, in, NULL, log) ?:
	      counts_open(&r.events, in, r.read.timeline, SERIES_SLICES, s->from, width) ?:
	      tally_open(&r.tally, 0, width) ?:
	      reading_exits(&r.read, &r.tally) ?:
	      hyptime_open(&r.hyp, in, r.read.timeline, r.read.steps, &r.tally) ?:
	      reading_states(&r.read, STATES_VCPUS | STATES_TASKS | STATES_GUEST_TASKS, series_span, &r);
	if (ret)
		goto out;
	tally_begin(&r.tally, s->from);
	reading_add(&r.read, hyptime_part(r.hyp));
	reading_add(&r.read, counts_part(&r.events));
	ret = reading_run(&r.read);
	/* a page that could be read before may fail now */
	merge_damage_join(&s->damaged, reading_damaged(&r.read));
	if (ret)
		goto out;
	hyptime_finish(r.hyp);
	counts_finish(&r.events);
	for (const struct counts_cpu *cpu = r.events.cpus; cpu < r.events.cpus + r.events.n_cpus; cpu++) {
		seen += cpu->events;
		s->lost += cpu->lost + cpu->gaps;
	}
	ret = seen > 1 ? series_events(&r) : -ENODATA;
	for (size_t i = 0; i < r.tally.n_rows && !ret; i++) {
		const struct tally_row *from = &r.tally.rows[i];

		if (from->what == SPAN_EXIT)
			ret = series_spans_row(&r, from, SERIES_EXITS, SERIES_EXIT_TIME,
					       exits_kind_name(r.read.exits, from->input, from->why, name));
		else
			ret = series_spans_row(&r, from, SERIES_HYP, SERIES_HYP_TIME,
					       hyptime_name(r.hyp, from->input, from->why) ?: "-");
	}
	/* until now rows had whole numbers, of things and of ns: the same sums in any order of the workers'
	 */
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < SERIES_SLICES; k++)
			s->v[i].v[k] *= (things[s->v[i].group] ? 1e9 : 1) / (double)width;
out:
	hyptime_close(r.hyp);
	counts_release(&r.events);
	tally_release(&r.tally);
	free(r.seen);
	map_release(&r.by_state);
	reading_close(&r.read);
	return ret;
}

int series_per(struct series *s, const char *event)
{
	const char *at = strchr(event, '@');
	size_t len = at ? (size_t)(at - event) : strlen(event);
	double rate = 0; /* a second */

	s->per = calloc(SERIES_SLICES, sizeof(*s->per));
	if (!s->per)
		return -ENOMEM;
	for (const struct series_row *row = s->v; row < s->v + s->n; row++) {
		const char *name = row->name, *colon = strrchr(name, ':');

		/* [BUFFER/]SYSTEM:EVENT is the name */
		if (!memchr(event, ':', len) && colon)
			name = colon + 1;
		if (row->group != SERIES_EVENTS || (at && strcmp(at + 1, row->machine)) ||
		    strlen(name) != len || memcmp(name, event, len))
			continue;
		for (size_t k = 0; k < SERIES_SLICES; k++) {
			s->per[k] += row->v[k];
			rate += row->v[k] / SERIES_SLICES;
		}
	}
	s->length *= rate;
	return rate > 0 ? 0 : -ENOENT;
}

void series_release(struct series *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].machine);
		free(s->v[i].name);
		histogram_release(&s->v[i].time);
	}
	free(s->v);
	free(s->per);
	*s = (struct series){ 0 };
}
