// SPDX-License-Identifier: GPL-2.0-only
/*
 * The events of hyptrace report: which are shown, in order, and their lines in the layout of trace-cmd
 * report 3.1:
 *
 *	           comm-pid   [cpu]  sec.usec: event:               fields
 *
 * All but the fields is put together here: libtraceevent takes longer for it than for most events' fields.
 */
#include <time.h>

#include "ask/live/live.h"
#include "convert/export/export.h"
#include "base/cursor.h"
#include "report-priv.h"

/* include/linux/trace_events.h */
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10

#define NAME_WIDTH 20
/* Bytes of a line without the texts in it: label, task, name, fields. */
#define LINE_ROOM 256

/* A record that is shown, or only what was lost before it: one line, or two. */
struct shown {
	struct print_record rec;
	const struct report_file *file;
	const struct report_buffer *buffer;
	uint64_t since; /* --ts-diff: from the line before, in the unit that is shown */
	bool has_before, lost;
	/* among the run's ready texts: after -l flags and depth, after -w the latency */
	uint32_t state, state_len, tail, tail_len;
	/* in the output: its label and task, which most later lines of its CPU have, too */
	uint32_t head, head_len;
};

#define LINES_BEFORE 64 /* CPUs' last lines, which are looked at */

static char *lay_text(char *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}

static char *lay_spaces(char *at, size_t n)
{
	memset(at, ' ', n);
	return at + n;
}

/* Seconds "%5llu.%06llu" (with all nine digits after -t); other clocks "%12llu". */
static char *lay_time(char *at, const struct report *r, bool seconds, uint64_t ts)
{
	if (!seconds)
		return put_decimal(at, ts, 12, ' ');
	if (!r->o->nanoseconds) {
		ts = ts + 500 < ts ? ts / 1000 : (ts + 500) / 1000;
		at = put_decimal(at, ts / 1000000, 5, ' ');
		*at++ = '.';
		return put_decimal(at, ts % 1000000, 6, '0');
	}
	at = put_decimal(at, ts / 1000000000, 5, ' ');
	*at++ = '.';
	return put_decimal(at, ts % 1000000000, 9, '0');
}

/* "2026-11-26T07:29:07.123456Z" */
static char *lay_wall(char *at, const struct report *r, const struct input *in, uint64_t ts)
{
	uint64_t utc, bound = 0;
	struct tm day;
	time_t seconds;

	inputs_utc(handle_inputs(r->handle), in, ts, &utc, &bound);
	utc += r->o->nanoseconds ? 0 : 500;
	seconds = (time_t)(utc / 1000000000);
	at += strftime(at, 32, "%FT%T.", gmtime_r(&seconds, &day));
	at = r->o->nanoseconds ? put_decimal(at, utc % 1000000000, 9, '0')
			       : put_decimal(at, utc % 1000000000 / 1000, 6, '0');
	*at++ = 'Z';
	return at;
}

void line_time(const struct report *r, const struct report_file *f, uint64_t ts, FILE *out)
{
	char text[LINE_ROOM], *end = lay_time(text, r, f->in->time.seconds, ts);

	fwrite(text, 1, (size_t)(end - text), out);
}

/* A NUL begins a code (terminal.c). */
static char *lay_color(char *at, const struct report *r, enum terminal_code code)
{
	if (!r->color)
		return at;
	at[0] = '\0';
	at[1] = (char)code;
	return at + 2;
}

/* The name in front, when there are several. */
static char *lay_label(char *at, const struct report *r, const char *label)
{
	size_t len = strlen(label), width = r->label_width;

	if (!r->labels)
		return at;
	at = lay_spaces(at, len < width ? width - len : 0);
	at = lay_text(at, label, len);
	return lay_text(at, *label ? ": " : "  ", 2);
}

static char *lay_colored_label(char *at, const struct report *r, const char *label)
{
	if (!*label)
		return lay_label(at, r, label);
	at = lay_color(at, r, CODE_LABEL);
	at = lay_label(at, r, label);
	return lay_color(at, r, CODE_PLAIN);
}

/* "%16s-%-5d [%03d]", with -l "%8.8s-%-5d %3d" */
static char *lay_task(char *at, const struct report *r, const char *comm, int pid, unsigned int cpu)
{
	bool latency = r->o->latency;
	size_t width = latency ? 8 : 16, len = strlen(comm);
	char *from;

	len = latency && len > width ? width : len;
	at = lay_spaces(at, len < width ? width - len : 0);
	at = lay_text(at, comm, len);
	*at++ = '-';
	from = at;
	if (pid < 0)
		*at++ = '-';
	at = put_decimal(at, pid < 0 ? -(uint64_t)pid : (uint64_t)pid, 1, ' ');
	at = at - from < 5 ? lay_spaces(at, 5 - (size_t)(at - from)) : at;
	*at++ = ' ';
	if (latency)
		return put_decimal(at, cpu, 3, ' ');
	*at++ = '[';
	at = put_decimal(at, cpu, 3, '0');
	*at++ = ']';
	return at;
}

void line_head(const struct report *r, const struct report_file *f, FILE *out)
{
	const struct reader_option *o = reader_option(f->in->reader, DAT_CPUCOUNT);
	struct cursor c = o ? cursor_at(o->data.data, o->data.len) : (struct cursor){ 0 };
	unsigned int n = o ? cursor_u32(&c) : 0;
	struct buf text = { 0 };
	char *label = buf_room(&text, r->label_width + strlen(f->label) + LINE_ROOM);

	/* as stock counts them: CPUCOUNT, or more when the main buffer has a higher number */
	for (size_t b = 0; b < f->info->n_buffers; b++)
		for (size_t i = 0; i < f->info->buffers[b].n_cpus && !*f->info->buffers[b].name; i++)
			if (f->info->buffers[b].cpus[i].cpu >= n)
				n = f->info->buffers[b].cpus[i].cpu + 1;
	if (label)
		fwrite(label, 1, (size_t)(lay_label(label, r, f->label) - label), out);
	fprintf(out, "cpus=%u\n", n);
	buf_release(&text);
}

/* All in front of the fields. before: a line in the same output; NULL: none. */
static void line_columns(const struct report *r, struct shown *s, const struct shown *before,
			 const struct buf *ready, struct buf *out)
{
	const char *comm = s->rec.comm ? s->rec.comm : "<...>", *label = s->buffer->label;
	const char *name = s->rec.event ? s->rec.event->event->name : "(NULL)";
	bool same = before && before->rec.at == s->rec.at && before->rec.pid == s->rec.pid &&
		    before->rec.comm == s->rec.comm;
	size_t head = same ? before->head_len : r->label_width + strlen(label) + strlen(comm);
	size_t len = strlen(name);
	char *from = buf_room(out, head + s->state_len + len + LINE_ROOM), *at = from, diff[32] = "";

	if (!from)
		return;
	if (same) {
		at = lay_text(at, (char *)out->data + before->head, head);
	} else {
		at = lay_colored_label(at, r, label);
		at = lay_task(at, r, comm, s->rec.pid, s->rec.at->cpu);
	}
	s->head = (uint32_t)out->len;
	s->head_len = (uint32_t)(at - from);
	if (s->state_len)
		at = lay_text(at, (char *)ready->data + s->state, s->state_len);
	at = lay_color(at, r, CODE_TIME);
	if (s->file->in->time.seconds || r->o->wall)
		*at++ = ' ';
	at = r->o->wall ? lay_wall(at, r, s->file->in, s->rec.m->ts)
			: lay_time(at, r, s->file->in->time.seconds, s->rec.m->ts - r->base);
	*at++ = ':';
	at = lay_color(at, r, CODE_PLAIN);
	/* " (+12)  ", in us unless all digits are shown */
	if (s->has_before)
		snprintf(diff, sizeof(diff), "(+%lld)", (long long)s->since);
	if (r->o->ts_diff)
		at += sprintf(at, " %-8s", diff);
	*at++ = ' ';
	at = lay_color(at, r, CODE_NAME);
	at = lay_text(at, name, len);
	at = lay_text(at, ": ", 2);
	at = lay_color(at, r, CODE_PLAIN);
	at = lay_spaces(at, len < NAME_WIDTH ? NAME_WIDTH - len : 0);
	out->len += (size_t)(at - from);
}

/* Prints the loss before a record, and the record; any thread. ready: the run's texts. */
static void line_print(const struct report *r, struct shown *s, const struct shown *before,
		       const struct buf *ready, size_t worker, struct buf *out)
{
	size_t fields;

	if (s->lost) {
		const struct merge_record *m = s->rec.m;
		char *from = buf_room(out, r->label_width + strlen(s->buffer->label) + LINE_ROOM), *at = from;

		if (from) {
			at = lay_colored_label(at, r, s->buffer->label);
			at = lay_color(at, r, CODE_LOST);
			if (m->missed > 0)
				at += sprintf(at, "CPU:%u [%lld EVENTS DROPPED]", s->rec.at->cpu,
					      (long long)m->missed);
			else
				at += sprintf(at, "CPU:%u [EVENTS DROPPED]", s->rec.at->cpu);
			at = lay_color(at, r, CODE_PLAIN);
			*at++ = '\n';
			out->len += (size_t)(at - from);
		}
	}
	if (!s->rec.m->data)
		return;
	line_columns(r, s, before, ready, out);
	fields = out->len;
	print_fields(r->print, &s->rec, ready, worker, out);
	/* up to a NUL, as stock has it; a NUL is also what terminal codes begin with */
	if (out->len > fields)
		out->len = fields + strnlen((char *)out->data + fields, out->len - fields);
	buf_add(out, ready->data + s->tail, s->tail_len);
	buf_add(out, "\n", 1);
}

/* ---- -w: from sched_wakeup (or _new) of a task to the sched_switch that it begins to run at ---- */

struct stats {
	uint64_t n, total;
	uint64_t max, max_at, min, min_at; /* ns */
};

struct waiting {
	int pid;
	uint64_t since; /* 0: not */
};

struct wakeup_event {
	int id; /* -1: none */
	struct tep_format_field *pid, *success;
};

struct wakeups {
	struct wakeup_event woken[2];
	int switch_id;
	struct tep_format_field *next_pid, *next_prio;
	struct waiting *tasks;
	size_t n;
	struct map map; /* of tasks, by pid */
	struct stats all, rt;
};

static bool waiting_is(const void *tasks, size_t i, const void *pid)
{
	return ((const struct waiting *)tasks)[i].pid == *(const int *)pid;
}

/* NULL: it was never woken. */
static struct waiting *waiting_find(const struct wakeups *w, int pid)
{
	size_t i = map_find(&w->map, map_hash((uint32_t)pid), waiting_is, w->tasks, &pid);

	return i == MAP_NONE ? NULL : &w->tasks[i];
}

static void stats_add(struct stats *s, uint64_t ns, uint64_t at)
{
	if (!s->n || ns > s->max) {
		s->max = ns;
		s->max_at = at;
	}
	if (!s->n || ns < s->min) {
		s->min = ns;
		s->min_at = at;
	}
	s->total += ns;
	s->n++;
}

static bool wakeup_number(struct tep_format_field *f, const struct tep_record *rec, int *out)
{
	unsigned long long v;

	if (!f || tep_read_number_field(f, rec->data, &v))
		return false;
	*out = (int)v;
	return true;
}

/* Appends the lines that follow a record's line to *out. -ENOMEM. */
static int wakeups_record(struct wakeups *w, struct tep_handle *tep, struct tep_record *rec, struct buf *out)
{
	int id = tep_data_type(tep, rec), pid, prio, success;
	struct waiting *t;

	if (id == w->switch_id) {
		uint64_t ns;

		if (!wakeup_number(w->next_prio, rec, &prio) || !wakeup_number(w->next_pid, rec, &pid))
			return 0;
		t = waiting_find(w, pid);
		if (!t || !t->since)
			return 0;
		ns = rec->ts - t->since;
		t->since = 0;
		stats_add(&w->all, ns, rec->ts);
		if (prio < 100)
			stats_add(&w->rt, ns, rec->ts);
		buf_printf(out, " Latency: %llu.%03llu usecs", (unsigned long long)ns / 1000,
			   (unsigned long long)ns % 1000);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(w->woken); i++) {
		const struct wakeup_event *e = &w->woken[i];

		if (id != e->id || (wakeup_number(e->success, rec, &success) && !success) ||
		    !wakeup_number(e->pid, rec, &pid))
			continue;
		t = waiting_find(w, pid);
		if (t)
			t->since = rec->ts;
		if (t || !pid)
			return 0;
		return map_push(&w->map, map_hash((uint32_t)pid), &w->tasks, &w->n,
				&(struct waiting){ pid, rec->ts }, sizeof(*t));
	}
	return 0;
}

static void wakeup_find(struct tep_handle *tep, const char *name, struct wakeup_event *e)
{
	struct tep_event *event = tep_find_event_by_name(tep, "sched", name);

	*e = (struct wakeup_event){ .id = -1 };
	if (!event)
		return;
	e->id = event->id;
	e->pid = tep_find_field(event, "pid");
	e->success = tep_find_field(event, "success");
}

/* NULL without error when the file has no events to measure by. -ENOMEM. */
static int wakeups_open(struct wakeups **out, struct tep_handle *tep)
{
	struct tep_event *event = tep_find_event_by_name(tep, "sched", "sched_switch");
	struct wakeups *w = calloc(1, sizeof(*w));

	*out = NULL;
	if (!w)
		return -ENOMEM;
	wakeup_find(tep, "sched_wakeup", &w->woken[0]);
	wakeup_find(tep, "sched_wakeup_new", &w->woken[1]);
	if (event) {
		w->switch_id = event->id;
		w->next_pid = tep_find_field(event, "next_pid");
		w->next_prio = tep_find_field(event, "next_prio");
	}
	if (!w->woken[0].pid || !w->next_pid || !w->next_prio) {
		free(w);
		return 0;
	}
	*out = w;
	return 0;
}

static void stats_print_at(const char *what, uint64_t ns, uint64_t at, FILE *out)
{
	fprintf(out, "%s Latency: %llu.%03llu usecs at timestamp: %llu.%06llu\n", what,
		(unsigned long long)ns / 1000, (unsigned long long)ns % 1000,
		(unsigned long long)at / 1000000000, (unsigned long long)((at + 500) % 1000000000) / 1000);
}

static void stats_print(const struct stats *s, FILE *out)
{
	uint64_t mean = s->total / s->n;

	fprintf(out, "\nAverage wakeup latency: %llu.%03llu usecs\n", (unsigned long long)mean / 1000,
		(unsigned long long)mean % 1000);
	stats_print_at("Maximum", s->max, s->max_at, out);
	stats_print_at("Minimum", s->min, s->min_at, out);
	fputc('\n', out);
}

/* ---- which records are shown ---- */

static bool record_wanted(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct report *r = ctx;
	const struct report_opts *o = r->o;

	if (!r->files[input].buffers[buffer].wanted)
		return false;
	for (size_t i = 0; i < o->n_cpus; i++)
		if (cpu >= o->cpus[i].first && cpu <= o->cpus[i].last)
			return true;
	return !o->n_cpus;
}

struct events {
	struct report *r;
	struct wakeups *wakeups;
	OWN_LINE uint64_t last_ts; /* --ts-check */
	uint64_t diff_ts;	   /* --ts-diff: of the line before; 0: none */
	struct trace_seq state;
};

/* A run's, its own. */
struct lines {
	size_t n;
	struct buf ready; /* texts that are ready when the lines are made */
	struct shown v[];
};

static struct follow_cpu *follow_cpu(struct follow *f, const char *buffer, unsigned int cpu)
{
	struct follow_cpu c = { .buffer = buffer, .cpu = cpu };

	for (size_t i = 0; i < f->n; i++)
		if (f->cpus[i].cpu == cpu && !strcmp(f->cpus[i].buffer, buffer))
			return &f->cpus[i];
	c.before = live_taken(f->live, buffer, cpu);
	f->no_memory = f->no_memory || array_push(&f->cpus, &f->n, &c, sizeof(c));
	return f->no_memory ? NULL : &f->cpus[f->n - 1];
}

/* True: this look at a running recording shows the record. Once for each, in the order of time. */
static bool follow_takes(struct follow *f, const char *buffer, unsigned int cpu, const struct merge_record *m)
{
	struct follow_cpu *c = follow_cpu(f, buffer, cpu);

	if (!c)
		return false;
	if (!m->data) /* a loss after the last record is printed before the next one, too */
		return f->last;
	if (c->before && c->seen++ < *c->before)
		return false;
	f->newest = m->ts > f->newest ? m->ts : f->newest;
	c->holds = c->holds || (!f->last && m->ts > f->horizon);
	f->held += c->holds;
	if (c->holds)
		return false;
	c->taken++;
	f->late += m->ts < f->from;
	return true;
}

/* True: run->v[i] is shown; once for each, in order. *full is filled where it is needed. */
static bool is_shown(struct events *e, const struct merge_run *run, size_t i, struct timeline_record *full)
{
	const struct merge_record *m = &run->v[i];
	const struct merge_stream *at = merge_stream(e->r->timeline->merge, m);
	struct report_file *f = &e->r->files[at->input];
	struct report_buffer *b = &f->buffers[at->buffer];
	const struct report_opts *o = e->r->o;
	bool skip = b->skip_next;
	int flags;

	if (e->r->follow && !follow_takes(e->r->follow, f->info->buffers[at->buffer].name, at->cpu, m))
		return false;
	if (skip)
		b->skip_next = false;
	if (m->data && (skip || (f->filters && !filters_show(f, e->r->timeline, m))))
		return false;
	/* rare outputs need the record as libtraceevent reads it */
	if (!m->data || !(o->no_irq || o->no_softirq || o->latency || o->irq_info || e->wakeups))
		return true;
	timeline_fill(e->r->timeline, m, &e->r->room, full);
	if (!o->no_irq && !o->no_softirq)
		return true;
	flags = tep_data_flags(f->in->tep, &full->tep);
	return !(o->no_irq && flags & FLAG_HARDIRQ) && !(o->no_softirq && flags & FLAG_SOFTIRQ);
}

/* run->v[i], which is shown, into *s. */
static int see_record(struct events *e, const struct merge_run *run, size_t i, struct timeline_record *full,
		      struct shown *s, struct buf *ready)
{
	const struct merge_record *m = &run->v[i];
	const struct merge_stream *at = merge_stream(e->r->timeline->merge, m);
	struct report_file *f = &e->r->files[at->input];
	const struct report_opts *o = e->r->o;
	const struct filetime *t = &f->in->time;
	struct tep_handle *tep = f->in->tep;
	uint64_t ts = m->ts - e->r->base;
	int ret;

	*s = (struct shown){
		.rec = { .m = m, .at = at }, .file = f, .buffer = &f->buffers[at->buffer], .lost = m->missed
	};
	if (!m->data)
		return 0;
	if (o->ts_check && e->last_ts > m->ts)
		log_warn(e->r->log, "record on cpu %u went backwards: %llu to %llu delta: -%llu", at->cpu,
			 (unsigned long long)e->last_ts, (unsigned long long)m->ts,
			 (unsigned long long)(e->last_ts - m->ts));
	e->last_ts = m->ts;
	e->r->at = i;
	ret = print_begin(e->r->print, e->r->timeline, m, &s->rec, ready);
	if (ret)
		return ret;
	if (o->ts_diff) {
		/* between lines, in us unless all digits are shown */
		if (*t->clock && !t->ns_per_tick && !o->nanoseconds)
			ts = (ts + 500) / 1000;
		s->has_before = e->diff_ts;
		s->since = ts - e->diff_ts;
		e->diff_ts = ts;
	}
	if (o->latency || o->irq_info) {
		/* 3.1 shows flags and depth with -l only, 3.3 always (--irq-info) */
		trace_seq_reset(&e->state);
		if (o->raw_fields)
			trace_seq_printf(&e->state, "-0x%x", (unsigned int)tep_data_flags(tep, &full->tep));
		else
			tep_print_event(tep, &e->state, &full->tep, o->latency ? "%s" : " %s",
					TEP_PRINT_LATENCY);
		s->state = (uint32_t)ready->len;
		s->state_len = e->state.len;
		buf_add(ready, e->state.buffer, e->state.len);
	}
	s->tail = (uint32_t)ready->len;
	ret = e->wakeups ? wakeups_record(e->wakeups, tep, &full->tep, ready) : 0;
	s->tail_len = (uint32_t)ready->len - s->tail;
	return ret;
}

static void free_lines(void *own)
{
	struct lines *l = own;

	buf_release(&l->ready);
	free(l);
}

#define LINES_MAX 1024 /* of a run, whose texts are kept until they are printed */

static int see_records(void *ctx, struct pipeline_run *run)
{
	struct events *e = ctx;
	struct lines *l = run->own ? run->own : calloc(1, sizeof(*l) + LINES_MAX * sizeof(l->v[0]));

	run->own = l;
	if (!l)
		return -ENOMEM;
	l->n = l->ready.len = 0;
	e->r->run = &run->records;
	for (size_t i = 0; i < run->records.n; i++) {
		struct timeline_record full;
		int ret;

		if (!is_shown(e, &run->records, i, &full))
			continue;
		ret = see_record(e, &run->records, i, &full, &l->v[l->n++], &l->ready);
		if (ret)
			return ret;
	}
	return buf_status(&l->ready);
}

static int make_lines(void *ctx, struct pipeline_run *run)
{
	const struct events *e = ctx;
	const struct shown *before[LINES_BEFORE] = { NULL };
	struct lines *l = run->own;

	for (struct shown *s = l->v; s < l->v + l->n; s++) {
		const struct shown **last = &before[s->rec.m->stream % LINES_BEFORE];

		line_print(e->r, s, *last, &l->ready, run->worker, &run->out);
		*last = s->rec.m->data ? s : *last;
	}
	return buf_status(&run->out);
}

/* The reader may have closed the pipe. */
static int write_run(void *ctx, struct pipeline_run *run)
{
	if (run->out.len)
		fwrite_unlocked(run->out.data, 1, run->out.len, stdout);
	return ferror(stdout) ? -EPIPE : 0;
}

static const struct pipeline_job report_job = {
	.run = LINES_MAX,
	.before = see_records,
	.work = make_lines,
	.after = write_run,
	.release = free_lines,
};

static bool json_wanted(void *ctx, const struct merge_run *run, size_t i)
{
	struct events *e = ctx;
	struct timeline_record full;

	e->r->run = run;
	e->r->at = i;
	return is_shown(e, run, i, &full);
}

int report_events_print(struct report *r)
{
	const struct report_opts *o = r->o;
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	const struct inputs *in = handle_inputs(r->handle);
	struct events e = { .r = r };
	uint64_t last, damaged = 0;
	int ret = 0;

	trace_seq_init(&e.state);
	r->color = o->color != COLOR_AUTO ? o->color == COLOR_ALWAYS
					  : !(no && *no) && term && strcmp(term, "dumb") && r->terminal;
	if (o->align_ts) /* to the first time of all, whatever is shown */
		ret = part_extent(in->v, in->n, in->from, in->to, &r->base, &last, &damaged);
	if (ret == -ENODATA)
		r->base = ret = 0;
	ret = ret ?: padded_init(&r->room) ?:
	      print_open(&r->print, in, o->raw_fields) ?:
	      handle_iterate(r->handle, record_wanted, r, &r->timeline);
	if (!ret && o->wakeup)
		ret = wakeups_open(&e.wakeups, r->files[0].in->tep);
	if (ret)
		goto out;
	if (o->json) {
		struct export_job job = { .timeline = r->timeline,
					  .in = handle_inputs(r->handle),
					  .fd = STDOUT_FILENO,
					  .wanted = json_wanted,
					  .wanted_ctx = &e };

		/* Past stdout, in which nothing is left. */
		ret = stdout_written(export_json(&job), r->log);
	} else {
		bool instances = false;

		/* As in stock, the names of a file's instances widen the lines after its head. */
		for (size_t i = 0; i < r->n; i++) {
			const struct report_file *f = &r->files[i];

			if (!r->follow || r->follow->first)
				line_head(r, f, stdout);
			for (size_t b = 0; b < f->info->n_buffers; b++) {
				instances = instances || *f->info->buffers[b].name;
				label_widen(r, f->buffers[b].label);
			}
		}
		r->labels = r->labels || instances;
		ret = pipeline_work(r->timeline, &report_job, &e);
	}
	if (ret && !(ret == -EPIPE && ferror(stdout)))
		goto out;
	ret = 0;
	if (e.wakeups && e.wakeups->all.n)
		stats_print(&e.wakeups->all, stdout);
	if (e.wakeups && e.wakeups->rt.n) {
		fputs("RT task timings:\n", stdout);
		stats_print(&e.wakeups->rt, stdout);
	}
	if (o->verbose)
		print_explain(r->print, r->log);
	if (hyptrace_damaged(r->handle))
		ret = -EBADMSG; /* the places are in the log */
out:
	if (e.wakeups) {
		map_release(&e.wakeups->map);
		free(e.wakeups->tasks);
		free(e.wakeups);
	}
	trace_seq_destroy(&e.state);
	return ret;
}
