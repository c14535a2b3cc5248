// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads files for a chain of causes: the moment that is asked for, and the steps before it. */
#include "path/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pass.h"
#include "util/array.h"

#define PATH_DONE 1

/* All but what exits are for and what programs write. */
#define PATH_STEPS (STEP_SET(STEP_MMIO) - 1)

/* include/linux/trace_events.h */
#define PATH_TRACE_HARDIRQ 0x08
#define PATH_TRACE_SOFTIRQ 0x10

/* What steps leave out of an input's events. */
struct path_fields {
	struct event_match match;
	int born, accept,
		handler; /* ids: sched_wakeup_new, kvm_apic_accept_irq, irq_handler_entry; -1: none */
	struct field_load flags, vgic_level, vtimer_level, irq_name;
	uint64_t bound; /* the greatest that was met, ns */
};

/* A CPU of a buffer: its last record. */
struct path_stream {
	uint64_t last;
	const struct merge_stream *at; /* NULL: it had none yet */
	int32_t pid;
	bool gap;    /* events were lost behind it */
	bool behind; /* it had one behind the moment */
};

struct path_reading {
	const struct inputs *in;
	struct timeline *t;
	const struct path_ask *ask;
	struct path_found *f;
	struct path_fields *fields;
	uint64_t nr; /* of the run's first record */
	struct path_stream *streams;
	size_t n_streams, left; /* left: whose losses are not told yet */
	bool counted;		/* they are */
	uint64_t until;		/* rows are kept up to then; 0: the moment is not found yet */
	bool waits;		/* for the task to run again */
};

/* ---- opening ---------------------------------------------------------------------------------- */

static struct field_load path_field(struct tep_handle *tep, const char *system, const char *name,
				    const char *field)
{
	struct tep_event *e = tep_find_event_by_name(tep, system, name);

	return field_load(e ? tep_find_field(e, field) : NULL);
}

static int path_event_id(struct tep_handle *tep, const char *system, const char *name)
{
	struct tep_event *e = tep_find_event_by_name(tep, system, name);

	return e ? e->id : -1;
}

static struct field_load path_flags_field(const struct input *in)
{
	for (unsigned int id = 0; id < in->n_known; id++)
		if (input_event(in, id))
			return field_load(tep_find_common_field(in->known[id].event, "common_flags"));
	return (struct field_load){ 0 };
}

static int path_fields_open(struct path_reading *r, size_t i, const struct log *log)
{
	const struct input *in = &r->in->v[i];
	struct path_fields *f = &r->fields[i];
	char why[1024];
	int ret = 0;

	f->born = path_event_id(in->tep, "sched", "sched_wakeup_new");
	f->accept = path_event_id(in->tep, "kvm", "kvm_apic_accept_irq");
	f->handler = path_event_id(in->tep, "irq", "irq_handler_entry");
	f->flags = path_flags_field(in);
	f->vgic_level = path_field(in->tep, "kvm", "vgic_update_irq_pending", "level");
	f->vtimer_level = path_field(in->tep, "kvm", "kvm_timer_update_irq", "level");
	f->irq_name = path_field(in->tep, "irq", "irq_handler_entry", "name");
	if (r->ask->event && (r->ask->input == SIZE_MAX || r->ask->input == i))
		ret = event_match_open(&f->match, r->ask->event, in, why, sizeof(why));
	if (ret == -EINVAL)
		log_err(log, "%s: %s", in->path, why);
	return ret;
}

/* ---- rows --------------------------------------------------------------------------------------- */

static uint8_t path_flags_of(const struct path_fields *f, const struct merge_record *m)
{
	uint64_t v = 0;

	if (f->flags.kind == FIELD_NUMBER)
		field_load_number(&f->flags, m->data, m->len, &v);
	return (uint8_t)((v & PATH_TRACE_HARDIRQ ? PATH_HARDIRQ : 0) |
			 (v & PATH_TRACE_SOFTIRQ ? PATH_SOFTIRQ : 0));
}

static uint32_t path_bound_at(const struct path_reading *r, size_t input, const struct merge_record *m)
{
	const struct input *in = &r->in->v[input];
	uint64_t bound = in->guest ? filetime_bound(&in->time, m->raw) : 0;

	if (bound < UINT32_MAX && bound > r->fields[input].bound)
		r->fields[input].bound = bound;
	return bound < UINT32_MAX ? (uint32_t)bound : UINT32_MAX;
}

static enum path_irq path_irq_of(const struct path_fields *f, const struct merge_record *m)
{
	const uint8_t *name;
	char text[64] = "";
	size_t n;

	if (field_load_bytes(&f->irq_name, m->data, m->len, &name, &n) == 1)
		memcpy(text, name, n < sizeof(text) - 1 ? n : sizeof(text) - 1);
	if (strstr(text, "timer"))
		return PATH_TIMER;
	return !strcmp(text, "IPI") ? PATH_IPI : PATH_DEVICE;
}

static bool path_low(const struct field_load *level, const struct merge_record *m)
{
	uint64_t v;

	return level->kind == FIELD_NUMBER && field_load_number(level, m->data, m->len, &v) && !v;
}

/* What the step does not tell; false: it is of no use here. */
static bool path_row_refine(const struct path_reading *r, struct path_row *row, const struct merge_record *m)
{
	const struct path_fields *f = &r->fields[row->input];
	int id = (int)timeline_id(m);

	row->flags = path_flags_of(f, m);
	switch (row->kind) {
	case STEP_WAKEUP:
		row->kind = id == f->born ? PATH_BORN : STEP_WAKEUP;
		break;
	case STEP_VIRQ:
		row->irq = id == f->accept ? PATH_VECTOR : PATH_DEVICE;
		return !path_low(&f->vgic_level, m) || id == f->accept;
	case STEP_VTIMER:
		return !path_low(&f->vtimer_level, m);
	case STEP_IRQ_ENTER:
		row->irq = id == f->handler ? path_irq_of(f, m) : PATH_VECTOR;
		break;
	}
	return true;
}

static struct path_row path_row_of(const struct path_reading *r, const struct step *s,
				   const struct merge_record *m)
{
	struct path_row row = { .ts = s->ts,
				.a = s->a,
				.b = s->b,
				.nr = r->nr + s->at,
				.pid = s->pid,
				.cpu = s->cpu,
				.bound = path_bound_at(r, s->input, m),
				.input = s->input,
				.buffer = s->buffer,
				.kind = s->kind,
				.guest = r->in->v[s->input].guest };

	return row;
}

static int path_take(struct path_reading *r, const struct step *s, const struct merge_record *m)
{
	struct path_row row = path_row_of(r, s, m);

	if (s->kind == STEP_GAP || s->kind == STEP_END)
		return 0; /* a STEP_LOST tells from when to when */
	if (s->kind == STEP_LOST) {
		row.b = r->streams[m->stream].last;
		row.pid = -1;
	} else if ((r->until && row.ts > r->until) || !path_row_refine(r, &row, m)) {
		return 0;
	}
	return path_window_add(&r->f->window, &row);
}

/* ---- the moment ----------------------------------------------------------------------------------- */

static void path_moment_found(struct path_reading *r, const struct path_moment *m)
{
	uint64_t bound = 0;

	for (size_t i = 0; i < r->in->n; i++)
		bound = r->fields[i].bound > bound ? r->fields[i].bound : bound;
	r->f->moment = *m;
	r->f->found = true;
	r->until = m->ts + bound;
}

static bool path_matches(const struct path_reading *r, const struct merge_record *m, size_t input)
{
	const struct event_match *match = &r->fields[input].match;
	struct filter_record rec = { m->data, m->len, timeline_id(m), timeline_stream(r->t, m)->cpu };

	for (size_t i = 0; m->data && i < match->n; i++)
		if (match->v[i].id == rec.id)
			return !match->v[i].filter || filter_match(match->v[i].filter, &rec);
	return false;
}

static void path_moment_of_event(struct path_reading *r, const struct merge_record *m, uint64_t nr)
{
	const struct merge_stream *at = timeline_stream(r->t, m);
	const struct path_window *w = &r->f->window;
	const struct path_row *row = w->n ? &w->v[w->n - 1] : NULL;
	struct path_moment moment = { .ts = m->ts, .nr = nr, .input = (uint16_t)at->input, .cpu = at->cpu };

	if (!path_matches(r, m, at->input) || ++r->f->matches < r->ask->nth)
		return;
	moment.bound = path_bound_at(r, at->input, m);
	moment.pid = timeline_pid(&r->in->v[at->input].known[timeline_id(m)].pid, m);
	moment.flags = path_flags_of(&r->fields[at->input], m);
	if (row && row->nr == nr && row->kind == STEP_SWITCH) {
		moment.pid = (int32_t)row->a;
		moment.flags = 0;
		moment.runs = true;
	}
	path_moment_found(r, &moment);
}

/* Where the task was last seen to run; NULL: it was seen to leave its CPU since, or not at all. */
static const struct path_row *path_ran(const struct path_window *w, size_t input, int64_t pid)
{
	for (size_t i = w->n; i-- > 0;) {
		const struct path_row *row = &w->v[i];

		if (row->input != input || row->kind == STEP_LOST)
			continue;
		if (row->kind == STEP_SWITCH ? (int64_t)(int32_t)row->a == pid : row->pid == pid)
			return row;
		if (row->kind == STEP_SWITCH && row->pid == pid)
			return NULL;
	}
	return NULL;
}

/* The stream that had the last record of that CPU, or of that task; NULL: none. */
static const struct path_stream *path_stream_of(const struct path_reading *r)
{
	const struct path_ask *ask = r->ask;
	const struct path_stream *found = NULL;

	for (size_t i = 0; i < r->n_streams; i++) {
		const struct path_stream *st = &r->streams[i];

		if (st->at && st->at->input == ask->input && (!found || st->last > found->last) &&
		    (ask->pid >= 0 ? st->pid == ask->pid : st->at->cpu == ask->cpu))
			found = st;
	}
	return found;
}

/* By its steps the task was not seen to leave its CPU before its last record. */
static bool path_stream_tells(const struct path_reading *r, const struct path_stream *st)
{
	const struct path_window *w = &r->f->window;
	const struct path_row *row;

	if (r->ask->pid < 0)
		return true;
	row = path_window_switch(w, w->n, (uint16_t)r->ask->input, (int32_t)r->ask->pid);
	return !row || row->ts < st->last;
}

/* As the first record behind the time comes: who ran then, by the last step and by the last record. */
static void path_moment_of_time(struct path_reading *r, uint64_t nr)
{
	const struct path_ask *ask = r->ask;
	const struct path_window *w = &r->f->window;
	const struct path_stream *st = path_stream_of(r);
	const struct path_row *row = ask->pid >= 0 ? path_ran(w, ask->input, ask->pid)
						   : path_window_last(w, w->n, (uint16_t)ask->input,
								      (uint32_t)ask->cpu, STEP_NONE);
	struct path_moment moment = {
		.ts = ask->time, .nr = nr - 1, .input = (uint16_t)ask->input, .runs = true
	};

	r->waits = true;
	if (row && (!st || row->ts >= st->last)) {
		moment.cpu = row->cpu;
		moment.pid = row->kind == STEP_SWITCH ? (int32_t)row->a : row->pid;
	} else if (st && path_stream_tells(r, st)) {
		moment.cpu = st->at->cpu;
		moment.pid = st->pid;
	} else {
		return;
	}
	path_moment_found(r, &moment);
}

/* The task that is waited for comes to a CPU. */
static void path_moment_of_task(struct path_reading *r, uint64_t nr)
{
	const struct path_window *w = &r->f->window;
	const struct path_row *row = w->n ? &w->v[w->n - 1] : NULL;

	if (r->ask->pid < 0 || !row || row->nr != nr || row->kind != STEP_SWITCH ||
	    row->input != r->ask->input || (int32_t)row->a != r->ask->pid)
		return;
	path_moment_found(r, &(struct path_moment){ .ts = row->ts,
						    .nr = nr,
						    .bound = row->bound,
						    .input = row->input,
						    .cpu = row->cpu,
						    .pid = (int32_t)row->a,
						    .runs = true });
}

/* ---- reading -------------------------------------------------------------------------------------- */

/* Whether its next record tells of a loss that began before the moment. */
static bool path_stream_gap(const struct path_reading *r, size_t stream)
{
	const struct path_stream *st = &r->streams[stream];

	return st->at ? st->gap : timeline_stream_at(r->t, stream)->gap;
}

/* All losses from before the moment are told. */
static bool path_all_behind(struct path_reading *r, const struct merge_record *m)
{
	if (m->ts <= r->until)
		return false;
	for (size_t i = 0; i < r->n_streams && !r->counted; i++)
		r->left += path_stream_gap(r, i);
	r->counted = true;
	if (!r->streams[m->stream].behind && path_stream_gap(r, m->stream))
		r->left--;
	r->streams[m->stream].behind = true;
	return !r->left;
}

static void path_stream_note(struct path_reading *r, const struct merge_record *m)
{
	struct path_stream *st = &r->streams[m->stream];
	const struct known_event *e;
	unsigned int id;

	st->last = m->ts;
	st->at = timeline_stream(r->t, m);
	st->gap = m->gap;
	if (r->f->found || !m->data)
		return;
	e = timeline_event(r->t, m, &id);
	st->pid = timeline_pid(e ? &e->pid : &r->in->v[st->at->input].pid, m);
}

static int path_run(void *ctx, struct pass_run *run)
{
	struct path_reading *r = ctx;
	const struct merge_run *records = run->records;

	for (size_t i = 0, k = 0; i < records->n; i++) {
		const struct merge_record *m = &records->v[i];
		bool before = r->until && r->streams[m->stream].behind;

		if (!r->f->found && !r->ask->event && !r->waits && m->ts > r->ask->time)
			path_moment_of_time(r, r->nr + i);
		for (; k < run->n_steps && run->steps[k].at == i; k++)
			if (!before && path_take(r, &run->steps[k], m))
				return -ENOMEM;
		if (r->f->found && path_all_behind(r, m))
			return PATH_DONE;
		path_stream_note(r, m);
		if (!r->f->found && r->ask->event)
			path_moment_of_event(r, m, r->nr + i);
		else if (!r->f->found && r->waits)
			path_moment_of_task(r, r->nr + i);
	}
	r->nr += records->n;
	return 0;
}

int path_read(struct path_found *f, const struct inputs *in, struct timeline *t, const struct path_ask *ask,
	      const struct log *log)
{
	struct path_reading r = { .in = in, .t = t, .ask = ask, .f = f, .n_streams = timeline_streams(t) };
	const struct pass_part part = { .ctx = &r, .steps = PATH_STEPS, .after = path_run };
	struct steps *steps = NULL;
	int ret = -ENOMEM;

	r.fields = calloc(in->n + 1, sizeof(*r.fields));
	r.streams = calloc(r.n_streams + 1, sizeof(*r.streams));
	if (!r.fields || !r.streams)
		goto out;
	ret = steps_open(&steps, in);
	for (size_t i = 0; !ret && i < in->n; i++)
		ret = path_fields_open(&r, i, log);
	if (!ret)
		ret = pass_read(t, steps, &part, 1);
	if (f->found && f->moment.ts > f->window.within)
		path_window_keep(&f->window, f->moment.ts - f->window.within);
out:
	steps_close(steps);
	for (size_t i = 0; r.fields && i < in->n; i++)
		event_match_release(&r.fields[i].match);
	free(r.streams);
	free(r.fields);
	return ret < 0 ? ret : 0;
}
