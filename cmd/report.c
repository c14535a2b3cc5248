// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace report: prints the events of trace.dat files as text, one line each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pager.h"
#include "report-priv.h"

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

		line_head(r, f);
		for (size_t b = 0; b < f->info->n_buffers; b++) {
			instances = instances || *f->info->buffers[b].name;
			label_widen(r, f->buffers[b].label);
		}
	}
	r->labels = r->labels || instances;
}

/* ---- the events -------------------------------------------------------------------------- */

struct events {
	struct report *r;
	struct line *line;
	struct wakeups *wakeups;
	uint64_t last_ts; /* --ts-check */
};

static void check_ts(struct events *e, const struct timeline_record *m)
{
	if (e->r->o->ts_check && e->last_ts > m->ts)
		log_warn(e->r->log, "record on cpu %u went backwards: %llu to %llu delta: -%llu", m->cpu,
			 (unsigned long long)e->last_ts, (unsigned long long)m->ts,
			 (unsigned long long)(e->last_ts - m->ts));
	e->last_ts = m->ts;
}

static int show_record(struct events *e, struct timeline_record *m)
{
	struct report_file *f = &e->r->files[m->input];
	struct report_buffer *b = report_buffer(f, m);
	bool skip = b->skip_next;
	int ret = 0;

	b->skip_next = false;
	if (!m->tep.size) {
		line_lost(e->line, f, m);
		return 0;
	}
	if (skip || (f->filter && !filter_match(f->filter, f, m)) || in_interrupt(e->r, f->in->tep, &m->tep))
		return 0;
	check_ts(e, m);
	if (m->missed)
		line_lost(e->line, f, m);
	line_print(e->line, f, m);
	if (e->wakeups)
		ret = wakeups_record(e->wakeups, f->in->tep, &m->tep, stdout);
	putc_unlocked('\n', stdout);
	return ret;
}

static int show_all(struct events *e)
{
	struct hyptrace_event event = { .size = sizeof(event) };
	int ret;

	while ((ret = hyptrace_next(e->r->handle, &event)) == 1) {
		ret = show_record(e, handle_record(e->r->handle));
		/* whoever reads it may have seen enough */
		if (ret || ferror(stdout))
			return ret;
	}
	return ret;
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

static int events_open(struct events *e)
{
	struct report *r = e->r;
	uint64_t base = 0;
	int ret = r->o->align_ts ? first_time(r, &base) : 0;

	if (ret)
		return ret;
	ret = line_open(&e->line, r, base);
	if (ret)
		return ret;
	handle_want(r->handle, record_wanted, r);
	return r->o->wakeup ? wakeups_open(&e->wakeups, r->files[0].in->tep) : 0;
}

static int print_events(struct report *r)
{
	struct events e = { .r = r };
	int ret = events_open(&e);

	if (ret)
		goto out;
	print_heads(r);
	ret = show_all(&e);
	if (ret)
		goto out;
	if (e.wakeups)
		wakeups_finish(e.wakeups, stdout);
	if (hyptrace_damaged(r->handle))
		ret = -EBADMSG; /* the log has said where */
out:
	wakeups_free(e.wakeups);
	line_free(e.line);
	return ret;
}

/* ---- the command ---------------------------------------------------------------------------- */

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

static void drop_warning(void *ctx, enum log_level level, const char *msg)
{
	if (level <= LOG_ERROR)
		console_log(ctx, level, msg);
}

/* -T means nothing without a filter. */
static bool only_filters(const struct report *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->files[i].filter)
			return r->o->test_filters;
	return false;
}

/* What the options ask for, on standard output. */
static int report_print(struct report *r)
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

static int report_files(const struct report_opts *o)
{
	struct console console = { .quiet = o->quiet };
	struct log log = { .fn = o->quiet ? drop_warning : console_log, .ctx = &console };
	struct report r = { .o = o, .log = &log };
	int ret;

	tep_set_loglevel(o->quiet ? TEP_LOG_NONE : TEP_LOG_ERROR);
	r.terminal = pager_start(!o->no_pager);
	ret = report_print(&r);
	report_close(&r);
	if (ret == -ENOMEM)
		log_err(&log, "out of memory");
	return ret ? EXIT_FAILED : EXIT_OK;
}

int cmd_report(int argc, char **argv)
{
	struct report_opts o = { 0 };
	struct opts_error err = { "" };
	int ret = report_opts_parse(argc, argv, &o, &err);

	memory_or_end();
	ret = ret ? command_stopped(&report_table, ret, &err) : report_files(&o);
	report_opts_release(&o);
	return ret;
}
