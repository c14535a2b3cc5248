// SPDX-License-Identifier: GPL-2.0-only
/* The events of hyptrace report: which are shown, in order, and their lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/export.h"
#include "read/pipeline.h"
#include "report-priv.h"
#include "terminal.h"

/* include/linux/trace_events.h */
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10

/* ---- which records ----------------------------------------------------------------- */

static bool cpu_wanted(const struct report_opts *o, unsigned int cpu)
{
	for (size_t i = 0; i < o->n_cpus; i++)
		if (cpu >= o->cpus[i].first && cpu <= o->cpus[i].last)
			return true;
	return !o->n_cpus;
}

static bool record_wanted(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct report *r = ctx;

	return r->files[input].buffers[buffer].wanted && cpu_wanted(r->o, cpu);
}

static bool in_interrupt(const struct report *r, struct tep_handle *tep, struct tep_record *rec)
{
	int flags;

	if (!r->o->no_irq && !r->o->no_softirq)
		return false;
	flags = tep_data_flags(tep, rec);
	return (r->o->no_irq && flags & FLAG_HARDIRQ) || (r->o->no_softirq && flags & FLAG_SOFTIRQ);
}

/* ---- labels and heads ------------------------------------------------------------------ */

static void label_widen(struct report *r, const char *label)
{
	if (strlen(label) > r->label_width)
		r->label_width = strlen(label);
}

static void open_labels(struct report *r)
{
	r->labels = r->n > 1;
	for (size_t i = 0; i < r->n; i++)
		label_widen(r, r->files[i].label);
}

/* As in stock, the names of a file's instances widen the lines behind its head. */
static void print_heads(struct report *r)
{
	bool instances = false;

	for (size_t i = 0; i < r->n; i++) {
		const struct report_file *f = &r->files[i];

		if (!r->follow || follow_is_first(r->follow))
			line_head(r, f, stdout);
		for (size_t b = 0; b < f->info->n_buffers; b++) {
			instances = instances || *f->info->buffers[b].name;
			label_widen(r, f->buffers[b].label);
		}
	}
	r->labels = r->labels || instances;
}

/* ---- which are shown, in order ------------------------------------------------------------ */

struct events {
	struct report *r;
	struct wakeups *wakeups;
	uint64_t last_ts; /* --ts-check */
	uint64_t diff_ts; /* --ts-diff: of the line before; 0: none */
	struct trace_seq state;
};

/* A run's, its own. */
struct lines {
	size_t n;
	struct buf ready; /* texts that are ready when the lines are made */
	struct shown v[];
};

static void check_ts(struct events *e, const struct merge_record *m, unsigned int cpu)
{
	if (e->r->o->ts_check && e->last_ts > m->ts)
		log_warn(e->r->log, "record on cpu %u went backwards: %llu to %llu delta: -%llu", cpu,
			 (unsigned long long)e->last_ts, (unsigned long long)m->ts,
			 (unsigned long long)(e->last_ts - m->ts));
	e->last_ts = m->ts;
}

/* Between lines, in us unless all digits are shown. */
static void find_diff(struct events *e, struct shown *s)
{
	const struct filetime *t = &s->file->in->time;
	uint64_t ts = s->rec.m->ts - e->r->base;

	if (!e->r->o->ts_diff)
		return;
	if (*t->clock && !t->ns_per_tick && !e->r->o->nanoseconds)
		ts = (ts + 500) / 1000;
	s->has_before = e->diff_ts;
	s->since = ts - e->diff_ts;
	e->diff_ts = ts;
}

/* 3.1 shows flags and depth with -l only, 3.3 always (--irq-info) */
static void find_state(struct events *e, struct shown *s, struct tep_record *rec, struct buf *ready)
{
	struct tep_handle *tep = s->file->in->tep;

	trace_seq_reset(&e->state);
	if (e->r->o->raw_fields)
		trace_seq_printf(&e->state, "-0x%x", (unsigned int)tep_data_flags(tep, rec));
	else
		tep_print_event(tep, &e->state, rec, e->r->o->latency ? "%s" : " %s", TEP_PRINT_LATENCY);
	s->state = (uint32_t)ready->len;
	s->state_len = e->state.len;
	buf_add(ready, e->state.buffer, e->state.len);
}

/* What is rarely asked for and needs the record as libtraceevent reads it. */
static bool needs_record(const struct events *e)
{
	const struct report_opts *o = e->r->o;

	return o->no_irq || o->no_softirq || o->latency || o->irq_info || e->wakeups;
}

static int find_tail(struct events *e, struct shown *s, struct timeline_record *m, struct buf *ready)
{
	int ret;

	s->tail = (uint32_t)ready->len;
	ret = e->wakeups ? wakeups_record(e->wakeups, s->file->in->tep, &m->tep, ready) : 0;
	s->tail_len = (uint32_t)ready->len - s->tail;
	return ret;
}

/* Whether run->v[i] is shown; once for each, in order. *full is filled where it is needed. */
static bool is_shown(struct events *e, const struct merge_run *run, size_t i, struct timeline_record *full)
{
	const struct merge_record *m = &run->v[i];
	const struct merge_stream *at = timeline_stream(e->r->timeline, m);
	struct report_file *f = &e->r->files[at->input];
	struct report_buffer *b = &f->buffers[at->buffer];
	bool skip = b->skip_next;

	if (e->r->follow && !follow_takes(e->r->follow, f->info->buffers[at->buffer].name, at->cpu, m))
		return false;
	b->skip_next = false;
	if (m->data && (skip || (f->filters && !filters_show(f, e->r->timeline, m))))
		return false;
	if (!m->data || !needs_record(e))
		return true;
	timeline_fill(e->r->timeline, m, &e->r->room, full);
	return !in_interrupt(e->r, f->in->tep, &full->tep);
}

/* run->v[i], which is shown, into *s. */
static int see_record(struct events *e, const struct merge_run *run, size_t i, struct timeline_record *full,
		      struct shown *s, struct buf *ready)
{
	const struct merge_record *m = &run->v[i];
	const struct merge_stream *at = timeline_stream(e->r->timeline, m);
	struct report_file *f = &e->r->files[at->input];
	int ret;

	*s = (struct shown){
		.rec = { .m = m, .at = at }, .file = f, .buffer = &f->buffers[at->buffer], .lost = m->missed
	};
	if (!m->data)
		return 0;
	check_ts(e, m, at->cpu);
	e->r->at = i;
	ret = print_begin(e->r->print, e->r->timeline, m, &s->rec, ready);
	if (ret)
		return ret;
	find_diff(e, s);
	if (e->r->o->latency || e->r->o->irq_info)
		find_state(e, s, &full->tep, ready);
	return needs_record(e) ? find_tail(e, s, full, ready) : 0;
}

static struct lines *own_lines(struct pipeline_run *run)
{
	struct lines *l = run->own ? run->own : calloc(1, sizeof(*l) + MERGE_RUN_MAX * sizeof(l->v[0]));

	run->own = l;
	if (l)
		l->n = l->ready.len = 0;
	return l;
}

static void free_lines(void *own)
{
	struct lines *l = own;

	buf_release(&l->ready);
	free(l);
}

static int see_records(void *ctx, struct pipeline_run *run)
{
	struct events *e = ctx;
	struct lines *l = own_lines(run);

	if (!l)
		return -ENOMEM;
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

/* ---- their lines ----------------------------------------------------------------------------- */

static int make_lines(void *ctx, struct pipeline_run *run)
{
	const struct events *e = ctx;
	const struct lines *l = run->own;

	for (size_t i = 0; i < l->n; i++)
		line_print(e->r, &l->v[i], &l->ready, run->worker, &run->out);
	return buf_status(&run->out);
}

/* Whoever reads it may have seen enough. */
static int write_run(void *ctx, struct pipeline_run *run)
{
	if (run->out.len)
		fwrite_unlocked(run->out.data, 1, run->out.len, stdout);
	return ferror(stdout) ? -EPIPE : 0;
}

static const struct pipeline_job report_job = {
	.before = see_records,
	.work = make_lines,
	.after = write_run,
	.release = free_lines,
};

/* ---- as JSON ----------------------------------------------------------------------------------- */

static bool json_wanted(void *ctx, const struct merge_run *run, size_t i)
{
	struct events *e = ctx;
	struct timeline_record full;

	e->r->run = run;
	e->r->at = i;
	return is_shown(e, run, i, &full);
}

/* Past stdout, in which nothing is left. */
static int events_json(struct events *e)
{
	struct export_job job = { .timeline = e->r->timeline,
				  .in = handle_inputs(e->r->handle),
				  .fd = STDOUT_FILENO,
				  .wanted = json_wanted,
				  .wanted_ctx = e };
	int ret = export_json(&job);

	if (ret == -EPIPE)
		terminal_reader_gone();
	if (ret)
		log_err(e->r->log, "cannot write the output: %s", errno_text(ret));
	return ret;
}

/* ---- all of them ------------------------------------------------------------------------------- */

static int show_all(struct events *e)
{
	int ret = e->r->o->json ? events_json(e) : pipeline_work(e->r->timeline, &report_job, e);

	return ret == -EPIPE && ferror(stdout) ? 0 : ret;
}

/* The first time of all, whatever is shown. */
static int first_time(const struct report *r, uint64_t *ts)
{
	struct timeline_record rec;
	struct timeline *t;
	int ret = timeline_open(&t, handle_inputs(r->handle), NULL, NULL, NULL);

	if (ret)
		return ret;
	ret = timeline_next(t, &rec);
	*ts = ret == 1 ? rec.ts : 0;
	timeline_close(t);
	return ret < 0 ? ret : 0;
}

static bool want_color(const struct report *r)
{
	const struct report_opts *o = r->o;
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (o->color != COLOR_AUTO)
		return o->color == COLOR_ALWAYS;
	return !(no && *no) && term && strcmp(term, "dumb") && r->terminal;
}

static int events_open(struct events *e)
{
	struct report *r = e->r;
	const struct inputs *in = handle_inputs(r->handle);
	int ret = r->o->align_ts ? first_time(r, &r->base) : 0;

	r->color = want_color(r);
	return ret ?: padded_init(&r->room) ?: print_open(&r->print, in, r->o->raw_fields) ?:
		      timeline_open(&r->timeline, in, record_wanted, r, r->log) ?:
		      r->o->wakeup ? wakeups_open(&e->wakeups, r->files[0].in->tep) : 0;
}

static int print_events(struct report *r)
{
	struct events e = { .r = r };
	int ret;

	trace_seq_init(&e.state);
	ret = events_open(&e);
	if (ret)
		goto out;
	if (!r->o->json)
		print_heads(r);
	ret = show_all(&e);
	if (ret)
		goto out;
	if (e.wakeups)
		wakeups_finish(e.wakeups, stdout);
	if (r->o->verbose)
		print_explain(r->print, r->log);
	if (timeline_damaged(r->timeline))
		ret = -EBADMSG; /* the log has said where */
out:
	wakeups_free(e.wakeups);
	trace_seq_destroy(&e.state);
	return ret;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Options of plugins come before the plugins: those that load later take them. */
static int set_plugin_options(const struct report_opts *o)
{
	for (size_t i = 0; i < o->plugins.n; i++) {
		char *value = strchr(o->plugins.v[i], '=');

		if (value)
			*value++ = '\0';
		if (tep_plugin_add_option(o->plugins.v[i], value))
			return -ENOMEM;
	}
	return 0;
}

/* -T means nothing without a filter. */
static bool only_filters(const struct report *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->files[i].filters)
			return r->o->test_filters;
	return false;
}

int report_print(struct report *r)
{
	int ret = set_plugin_options(r->o);

	if (ret)
		return ret;
	ret = report_open(r);
	if (ret)
		return ret;
	open_labels(r);
	if (only_filters(r))
		return 0;
	return r->o->what == REPORT_EVENTS ? print_events(r) : report_info(r, stdout);
}
