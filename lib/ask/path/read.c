// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads files for a chain of causes: the moment in question, the steps before it, events as text. */
#include "ask/path/path.h"

#define PATH_DONE 1
#define PATH_KEPT 3 /* a joined reading keeps rows for so many times what a chain needs */

/* Steps but for the contents of exits and for programs' marks; a STEP_LOST has both ends of a loss. */
#define PATH_STEPS ((STEP_SET(STEP_MMIO) - 1) & ~STEP_SET(STEP_GAP))

/* include/linux/trace_events.h */
#define PATH_TRACE_HARDIRQ 0x08
#define PATH_TRACE_SOFTIRQ 0x10

/* Fields and ids of an input's events that steps leave out. */
struct path_fields {
	struct event_match match;
	int born, accept,
		handler; /* ids: sched_wakeup_new, kvm_apic_accept_irq, irq_handler_entry; -1: none */
	struct field_load flags, vgic_level, vtimer_level, irq_name;
	uint64_t bound; /* the greatest that was met, ns */
	bool sched;	/* sched_switch was seen, in that buffer first */
	uint16_t buffer;
};

/* A CPU of a buffer: its first and last record. */
struct path_stream {
	uint64_t first, last;
	uint32_t bound;		       /* of the first */
	const struct merge_stream *at; /* NULL: it had none yet */
	int32_t pid;		       /* runs after the last; -1: unknown */
	int32_t out;		       /* left the CPU since the next one's last record; -1: nobody */
	bool gap;		       /* events were lost after it */
	bool end;		       /* nothing comes after it */
	bool after;		       /* it had one after the moment */
};

struct path_reading {
	const struct inputs *in;
	struct timeline *t;
	const struct steps *steps;
	const struct path_ask *ask;
	struct path_found *f;
	struct path_fields *fields;
	uint64_t nr; /* of the run's first record */
	struct path_stream *streams;
	size_t n_streams, left; /* left: streams whose losses are not read yet */
	bool counted;		/* they are */
	uint64_t until;		/* rows are kept up to then; 0: the moment is not found yet */
	bool joins;		/* a pass of others, whose steps learn */
	struct path_found own;	/* then that is what f has */
	bool waits;		/* for the task to run again */
};

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

static bool path_low(const struct field_load *level, const struct merge_record *m)
{
	uint64_t v;

	return level->kind == FIELD_NUMBER && field_load_number(level, m->data, m->len, &v) && !v;
}

/* Fills the members that a step does not have; false: the row is of no use here. */
static bool path_row_refine(const struct path_reading *r, struct path_row *row, const struct merge_record *m)
{
	const struct path_fields *f = &r->fields[row->input];
	int id = (int)timeline_id(m);
	const uint8_t *name;
	char text[64] = "";
	size_t n;

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
		if (id == f->handler && field_load_bytes(&f->irq_name, m->data, m->len, &name, &n) == 1)
			memcpy(text, name, n < sizeof(text) - 1 ? n : sizeof(text) - 1);
		row->irq = id != f->handler	   ? PATH_VECTOR
			   : strstr(text, "timer") ? PATH_TIMER
			   : !strcmp(text, "IPI")  ? PATH_IPI
						   : PATH_DEVICE;
		break;
	}
	return true;
}

static int path_take(struct path_reading *r, const struct step *s, const struct merge_record *m)
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

	if (!(STEP_SET(s->kind) & (PATH_STEPS | STEP_SET(STEP_PRINT))))
		return 0; /* of another part of the pass, but for marks, which a page shows */
	if (s->kind == STEP_LOST) {
		row.b = r->streams[m->stream].last;
		row.pid = -1;
	} else if ((r->until && row.ts > r->until) || !path_row_refine(r, &row, m)) {
		return 0;
	}
	return path_window_add(&r->f->window, &row);
}

static void path_moment_found(struct path_reading *r, const struct path_moment *m)
{
	uint64_t bound = 0;

	for (size_t i = 0; i < r->in->n; i++)
		bound = r->fields[i].bound > bound ? r->fields[i].bound : bound;
	r->f->moment = *m;
	r->f->found = true;
	r->until = m->ts + bound;
}

static void path_moment_of_event(struct path_reading *r, const struct merge_record *m, uint64_t nr)
{
	const struct merge_stream *at = merge_stream(r->t->merge, m);
	const struct path_window *w = &r->f->window;
	const struct path_row *row = w->n ? &w->v[w->n - 1] : NULL;
	struct path_moment moment = { .ts = m->ts, .nr = nr, .input = (uint16_t)at->input, .cpu = at->cpu };
	const struct event_match *match = &r->fields[at->input].match;
	struct filter_record rec = { m->data, m->len, timeline_id(m), at->cpu };
	size_t i = 0;

	while (i < match->n && match->v[i].id != rec.id)
		i++;
	if (!m->data || i == match->n || (match->v[i].filter && !filter_match(match->v[i].filter, &rec)) ||
	    ++r->f->matches < r->ask->nth)
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

/* The time that a machine's file covers: the buffer that has sched_switch. */
static void path_machine_covers(struct path_reading *r, size_t input)
{
	struct path_window *w = &r->f->window;
	struct path_machine *m = input < w->n_machines ? &w->machines[input] : NULL;
	struct path_row before = { .input = (uint16_t)input,
				   .kind = STEP_LOST,
				   .pid = PATH_NOBODY,
				   .guest = r->in->v[input].guest };
	struct path_row after = before;
	bool over = true;

	for (size_t i = 0; i < r->n_streams; i++) {
		const struct merge_stream *of = merge_stream_at(r->t->merge, i);
		const struct path_stream *st = &r->streams[i];

		if (of->input != input || of->buffer != r->fields[input].buffer)
			continue;
		over &= st->end;
		if (st->at && (!before.ts || st->first < before.ts)) {
			before.ts = st->first;
			before.bound = st->bound;
			before.cpu = of->cpu;
		}
		if (st->at && st->last > after.b)
			after.b = st->last;
	}
	if (!m || !r->fields[input].sched)
		return;
	after.ts = over ? UINT64_MAX : 0;
	m->before = before;
	m->after = after;
}

/* Finds the task that ran at the time, as the first record after it comes. */
static void path_moment_of_time(struct path_reading *r, uint64_t nr)
{
	const struct path_ask *ask = r->ask;
	const struct path_window *w = &r->f->window;
	const struct path_row *row = path_window_switch(w, w->n, (uint16_t)ask->input,
							ask->pid > 0 ? (int32_t)ask->pid : PATH_NOBODY);
	const struct path_stream *st = NULL;

	/* the stream of sched events of that CPU, or of the CPU on which the task was last seen */
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct path_stream *one = &r->streams[i];

		if (one->at && one->at->input == ask->input &&
		    one->at->buffer == r->fields[ask->input].buffer &&
		    (ask->pid > 0 ? one->pid == ask->pid : one->pid >= 0 && one->at->cpu == ask->cpu) &&
		    (!st || one->last > st->last))
			st = one;
	}
	r->waits = true;
	path_machine_covers(r, ask->input);
	if (!st || st->gap || !r->fields[ask->input].sched ||
	    (ask->pid > 0 && row && row->ts > st->last) || /* it was seen to leave that CPU */
	    (w->machines[ask->input].after.ts && ask->time > w->machines[ask->input].after.b))
		return;
	path_moment_found(r, &(struct path_moment){ .ts = ask->time,
						    .nr = nr - 1,
						    .input = (uint16_t)ask->input,
						    .cpu = st->at->cpu,
						    .pid = st->pid,
						    .runs = true });
}

/* The moment in which a task comes to a CPU. */
static struct path_moment path_moment_of_switch(const struct path_row *row)
{
	return (struct path_moment){ .ts = row->ts,
				     .nr = row->nr,
				     .bound = row->bound,
				     .input = row->input,
				     .cpu = row->cpu,
				     .pid = (int32_t)row->a,
				     .runs = true };
}

static bool path_row_enters(const struct path_row *row, size_t input, int64_t pid)
{
	return row->kind == STEP_SWITCH && row->input == input && (int32_t)row->a == pid;
}

/* True if the stream's next record ends a loss that began before the moment. */
static bool path_stream_gap(const struct path_reading *r, size_t stream)
{
	const struct path_stream *st = &r->streams[stream];

	return st->at ? st->gap : merge_stream_at(r->t->merge, stream)->gap;
}

/* All losses from before the moment are read. */
static bool path_all_read(struct path_reading *r, const struct merge_record *m)
{
	if (m->ts <= r->until)
		return false;
	for (size_t i = 0; i < r->n_streams && !r->counted; i++)
		r->left += path_stream_gap(r, i);
	r->counted = true;
	if (!r->streams[m->stream].after && path_stream_gap(r, m->stream))
		r->left--;
	r->streams[m->stream].after = true;
	return !r->left;
}

/* next: the task that comes to the CPU; -1: the record is no sched_switch. */
static void path_stream_note(struct path_reading *r, const struct merge_record *m, int32_t next)
{
	struct path_stream *st = &r->streams[m->stream];
	const struct known_event *e;
	int32_t before = st->pid, own;
	unsigned int id;

	if (!st->at) {
		st->out = -1;
		st->at = merge_stream(r->t->merge, m);
		st->first = m->ts;
		st->bound = path_bound_at(r, st->at->input, m);
	}
	st->last = m->ts;
	st->gap = m->gap;
	st->end = m->end;
	st->pid = next;
	if (next >= 0 && !r->fields[st->at->input].sched) {
		r->fields[st->at->input].sched = true;
		r->fields[st->at->input].buffer = (uint16_t)st->at->buffer;
	}
	if (r->f->found || r->joins || !m->data) /* nobody asks for the task that runs */
		return;
	e = timeline_event(r->t, m, &id);
	if (e && e->hyp)
		return;
	own = timeline_pid(e ? &e->pid : &r->in->v[st->at->input].pid, m);
	if (next >= 0) {
		st->out = own;
	} else if (own >= 0 && own == st->out && !m->missed) {
		/* between sched_switch and the switch itself the kernel still acts as the task that leaves */
		st->pid = before;
	} else {
		st->pid = own;
		st->out = -1;
	}
}

static int path_run(void *ctx, struct pass_run *run)
{
	struct path_reading *r = ctx;
	const struct merge_run *records = run->records;
	struct path_window *w = &r->f->window;

	w->asked = w->n ? w->v[w->n - 1].ts : 0;
	for (size_t i = 0, k = 0; i < records->n; i++) {
		const struct merge_record *m = &records->v[i];
		bool before = r->until && r->streams[m->stream].after;
		const struct path_row *row = NULL;
		int32_t next = -1;

		if (!r->f->found && !r->ask->event && !r->waits && m->ts > r->ask->time)
			path_moment_of_time(r, r->nr + i);
		for (; k < run->n_steps && run->steps[k].at == i; k++) {
			if (!r->f->found && !r->joins)
				steps_learn(r->steps, records, &run->steps[k], 1);
			if (!before && path_take(r, &run->steps[k], m))
				return -ENOMEM;
			if (run->steps[k].kind == STEP_SWITCH)
				next = (int32_t)run->steps[k].a;
		}
		if (r->f->found && path_all_read(r, m))
			return PATH_DONE;
		path_stream_note(r, m, next);
		if (!r->f->found && r->ask->event)
			path_moment_of_event(r, m, r->nr + i);
		else if (!r->f->found && r->waits && r->ask->pid >= 0)
			row = w->n ? &w->v[w->n - 1] : NULL;
		/* the task that is waited for comes to a CPU */
		if (row && row->nr == r->nr + i && path_row_enters(row, r->ask->input, r->ask->pid)) {
			struct path_moment came = path_moment_of_switch(row);

			path_moment_found(r, &came);
		}
	}
	r->nr += records->n;
	return 0;
}

static void path_reading_release(struct path_reading *r)
{
	for (size_t i = 0; r->fields && i < r->in->n; i++)
		event_match_release(&r->fields[i].match);
	free(r->streams);
	free(r->fields);
}

static int path_reading_begin(struct path_reading *r, const struct log *log)
{
	char why[1024];
	int ret = 0;

	r->n_streams = merge_streams(r->t->merge);
	r->fields = calloc(r->in->n + 1, sizeof(*r->fields));
	r->streams = calloc(r->n_streams + 1, sizeof(*r->streams));
	if (!r->fields || !r->streams)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < r->in->n; i++) {
		const struct input *in = &r->in->v[i];
		struct path_fields *f = &r->fields[i];

		f->born = path_event_id(in->tep, "sched", "sched_wakeup_new");
		f->accept = path_event_id(in->tep, "kvm", "kvm_apic_accept_irq");
		f->handler = path_event_id(in->tep, "irq", "irq_handler_entry");
		for (unsigned int id = 0; id < in->n_known && f->flags.kind == FIELD_NONE; id++)
			if (input_event(in, id))
				f->flags = field_load(
					tep_find_common_field(in->known[id].event, "common_flags"));
		f->vgic_level = path_field(in->tep, "kvm", "vgic_update_irq_pending", "level");
		f->vtimer_level = path_field(in->tep, "kvm", "kvm_timer_update_irq", "level");
		f->irq_name = path_field(in->tep, "irq", "irq_handler_entry", "name");
		if (r->ask->event && (r->ask->input == SIZE_MAX || r->ask->input == i))
			ret = event_match_open(&f->match, r->ask->event, in, why, sizeof(why));
		if (ret == -EINVAL)
			log_err(log, "%s: %s", in->path, why);
	}
	return ret;
}

struct pass_part path_reading_part(struct path_reading *r)
{
	return (struct pass_part){ .ctx = r, .steps = PATH_STEPS, .after = path_run, .learns = !r->joins };
}

int path_read(struct path_found *f, const struct inputs *in, struct timeline *t, const struct steps *steps,
	      const struct path_ask *ask, const struct log *log)
{
	struct path_reading r = { .in = in, .t = t, .steps = steps, .ask = ask, .f = f };
	const struct pass_part part = path_reading_part(&r);
	int ret = path_reading_begin(&r, log) ?: pass_read(t, steps, &part, 1);

	for (size_t i = 0; ret >= 0 && i < in->n; i++)
		path_machine_covers(&r, i);
	if (f->found && f->moment.ts > f->window.within)
		path_window_keep(&f->window, f->moment.ts - f->window.within);
	path_reading_release(&r);
	return ret < 0 ? ret : 0;
}

static const struct path_ask path_ask_later = { .time = UINT64_MAX, .input = SIZE_MAX, .cpu = -1, .pid = -1 };

int path_reading_open(struct path_reading **out, const struct inputs *in, struct timeline *t, uint64_t within,
		      size_t max)
{
	struct path_reading *r = *out = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct path_reading){ .in = in, .t = t, .ask = &path_ask_later, .f = &r->own, .joins = true };
	r->own.window = (struct path_window){ .within = PATH_KEPT * within, .max = max };
	return path_reading_begin(r, NULL);
}

void path_reading_close(struct path_reading *r)
{
	if (!r)
		return;
	path_window_release(&r->f->window);
	path_reading_release(r);
	free(r);
}

const struct path_window *path_reading_window(const struct path_reading *r)
{
	return &r->f->window;
}

bool path_reading_reached(const struct path_reading *r, uint64_t ts)
{
	const struct path_window *w = &r->f->window;

	if (!w->n || w->v[w->n - 1].ts <= ts)
		return false;
	for (size_t i = 0; i < r->n_streams; i++)
		if ((!r->streams[i].at || r->streams[i].last <= ts) && path_stream_gap(r, i))
			return false;
	return true;
}

int path_reading_find(struct path_reading *r, size_t input, int32_t pid, uint64_t ts, struct path_moment *m,
		      struct path *p, bool *found)
{
	const struct path_window *all = &r->f->window;
	struct path_window w = path_window_since(all, ts + 1);
	const struct path_row *row = w.v;
	uint64_t since;

	*found = false;
	if (all->cut && all->from > ts) /* rows of that time are gone */
		return 0;
	while (row < w.v + w.n && !path_row_switches(row, (uint16_t)input, pid))
		row++;
	*found = row < w.v + w.n && path_row_enters(row, input, pid);
	if (!*found)
		return 0;
	*m = path_moment_of_switch(row);
	for (size_t i = 0; i < r->in->n; i++)
		path_machine_covers(r, i);
	since = all->within / PATH_KEPT;
	w = path_window_since(all, m->ts > since ? m->ts - since : 0);
	return path_find(p, &w, r->in, m);
}
