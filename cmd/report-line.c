// SPDX-License-Identifier: GPL-2.0-only
/*
 * A line in the layout of trace-cmd report 3.1:
 *
 *	           comm-pid   [cpu]  sec.usec: event:               fields
 *
 * All but the fields is put together here: libtraceevent takes longer for it than
 * for most events' fields.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report-priv.h"
#include "terminal.h"

struct line {
	const struct report *r;
	struct trace_seq state;
	uint64_t base;	  /* --align-ts */
	uint64_t last_ts; /* --ts-diff: of the line before; 0: none */
	bool color;
};

#define NAME_WIDTH 20

/* ---- numbers and spaces -------------------------------------------------------------- */

static void out_spaces(FILE *out, size_t n)
{
	static const char spaces[] = "                                ";

	while (n) {
		size_t part = n < sizeof(spaces) - 1 ? n : sizeof(spaces) - 1;

		fwrite_unlocked(spaces, 1, part, out);
		n -= part;
	}
}

static void out_text(FILE *out, const char *text, size_t len)
{
	fwrite_unlocked(text, 1, len, out);
}

/* Writes the digits of v, at least so many, in front of end; returns where they begin. */
static char *digits_of(char *end, uint64_t v, int least)
{
	while (v || least > 0) {
		*--end = (char)('0' + v % 10);
		v /= 10;
		least--;
	}
	return end;
}

/* Right-aligned in `width`. */
static char *digits_align(char *end, char *at, int width)
{
	while (end - at < width)
		*--at = ' ';
	return at;
}

/* Seconds "%5llu.%06llu" (with all nine digits after -t); other clocks "%12llu". */
static char *time_text(const struct report *r, bool seconds, uint64_t ts, char *end)
{
	char *at;

	if (!seconds)
		return digits_align(end, digits_of(end, ts, 1), 12);
	if (r->o->nanoseconds) {
		at = digits_of(end, ts % 1000000000, 9);
		ts /= 1000000000;
	} else {
		ts = ts + 500 < ts ? ts / 1000 : (ts + 500) / 1000;
		at = digits_of(end, ts % 1000000, 6);
		ts /= 1000000;
	}
	*--at = '.';
	return digits_align(at, digits_of(at, ts, 1), 5);
}

void line_time(const struct report *r, const struct report_file *f, uint64_t ts, FILE *out)
{
	char text[64], *end = text + sizeof(text);
	char *at = time_text(r, f->in->time.seconds, ts, end);

	out_text(out, at, (size_t)(end - at));
}

/* ---- columns --------------------------------------------------------------------------- */

static void paint(const struct line *l, enum terminal_code code)
{
	if (l->color)
		terminal_code(stdout, code);
}

/* The name in front, when there are several. */
static void label_print(const struct report *r, const char *label)
{
	size_t len = strlen(label), width = r->label_width;

	if (!r->labels)
		return;
	out_spaces(stdout, len < width ? width - len : 0);
	out_text(stdout, label, len);
	out_text(stdout, *label ? ": " : "  ", 2);
}

static void out_label(struct line *l, const struct report_buffer *b)
{
	if (*b->label)
		paint(l, CODE_LABEL);
	label_print(l->r, b->label);
	if (*b->label)
		paint(l, CODE_PLAIN);
}

static void out_number(FILE *out, uint64_t v, int least)
{
	char text[32], *end = text + sizeof(text), *at = digits_of(end, v, least);

	out_text(out, at, (size_t)(end - at));
}

/* "-%-5d" */
static void out_pid(FILE *out, int pid)
{
	char text[32], *end = text + sizeof(text);
	char *at = digits_of(end, pid < 0 ? -(uint64_t)pid : (uint64_t)pid, 1);

	if (pid < 0)
		*--at = '-';
	out_text(out, "-", 1);
	out_text(out, at, (size_t)(end - at));
	out_spaces(out, end - at < 5 ? 5 - (size_t)(end - at) : 0);
}

/* "%16s-%-5d [%03d]", with -l "%8.8s-%-5d %3d" */
static void out_task(const struct line *l, const char *comm, int pid, unsigned int cpu)
{
	bool latency = l->r->o->latency;
	size_t width = latency ? 8 : 16, len = strlen(comm);

	len = latency && len > width ? width : len;
	out_spaces(stdout, len < width ? width - len : 0);
	out_text(stdout, comm, len);
	out_pid(stdout, pid);
	if (latency) {
		out_spaces(stdout, cpu < 10 ? 3 : cpu < 100 ? 2 : 1);
		out_number(stdout, cpu, 1);
	} else {
		out_text(stdout, " [", 2);
		out_number(stdout, cpu, 3);
		out_text(stdout, "]", 1);
	}
}

/* -l: 3.1 shows flags and depth with it only */
static void out_state(struct line *l, const struct report_file *f, struct tep_record *rec)
{
	if (!l->r->o->latency)
		return;
	trace_seq_reset(&l->state);
	if (l->r->o->raw_fields)
		trace_seq_printf(&l->state, "-0x%x", (unsigned int)tep_data_flags(f->in->tep, rec));
	else
		tep_print_event(f->in->tep, &l->state, rec, "%s", TEP_PRINT_LATENCY);
	out_text(stdout, l->state.buffer, l->state.len);
}

/* " (+12)  ", in us unless all digits are shown */
static void out_diff(struct line *l, const struct filetime *t, uint64_t ts)
{
	char text[32] = "";

	if (!l->r->o->ts_diff)
		return;
	if (*t->clock && !t->ns_per_tick && !l->r->o->nanoseconds)
		ts = (ts + 500) / 1000;
	if (l->last_ts)
		snprintf(text, sizeof(text), "(+%lld)", (long long)(ts - l->last_ts));
	l->last_ts = ts;
	printf(" %-8s", text);
}

static void out_time(struct line *l, const struct filetime *t, uint64_t ts)
{
	char text[64], *end = text + sizeof(text), *at;

	*--end = ':';
	at = time_text(l->r, t->seconds, ts, end);
	if (t->seconds)
		*--at = ' ';
	paint(l, CODE_TIME);
	out_text(stdout, at, (size_t)(end + 1 - at));
	paint(l, CODE_PLAIN);
	out_diff(l, t, ts);
}

static void out_name(const struct line *l, const char *name)
{
	size_t len = strlen(name);

	out_text(stdout, " ", 1);
	paint(l, CODE_NAME);
	out_text(stdout, name, len);
	out_text(stdout, ": ", 2);
	paint(l, CODE_PLAIN);
	out_spaces(stdout, len < NAME_WIDTH ? NAME_WIDTH - len : 0);
}

/* Up to a NUL, as stock has it; a NUL is also what terminal codes begin with. */
static void out_fields(const struct line *l)
{
	size_t len = 0;
	const char *text = handle_text(l->r->handle, l->r->o->raw_fields, &len);

	if (text)
		out_text(stdout, text, strnlen(text, len));
}

/* ---- lines ------------------------------------------------------------------------------ */

/* As stock counts them: what CPUCOUNT says, or more when the top buffer has a higher number. */
static unsigned int file_cpus(const struct report_file *f)
{
	const struct reader_option *o = reader_option(f->in->reader, DAT_CPUCOUNT);
	struct cursor c = o ? cursor_at(o->data.data, o->data.len) : (struct cursor){ 0 };
	unsigned int n = o ? cursor_u32(&c) : 0;

	for (size_t b = 0; b < f->info->n_buffers; b++)
		for (size_t i = 0; i < f->info->buffers[b].n_cpus && !*f->info->buffers[b].name; i++)
			if (f->info->buffers[b].cpus[i].cpu >= n)
				n = f->info->buffers[b].cpus[i].cpu + 1;
	return n;
}

void line_head(const struct report *r, const struct report_file *f)
{
	label_print(r, f->label);
	printf("cpus=%u\n", file_cpus(f));
}

void line_lost(struct line *l, const struct report_file *f, const struct timeline_record *m)
{
	out_label(l, report_buffer(f, m));
	paint(l, CODE_LOST);
	if (m->missed > 0)
		printf("CPU:%u [%lld EVENTS DROPPED]", m->cpu, (long long)m->missed);
	else
		printf("CPU:%u [EVENTS DROPPED]", m->cpu);
	paint(l, CODE_PLAIN);
	out_text(stdout, "\n", 1);
}

void line_print(struct line *l, const struct report_file *f, struct timeline_record *m)
{
	struct tep_handle *tep = f->in->tep;
	/* plugins have formats of their own, which say nothing about this file */
	int pid = f->info->n_formats ? tep_data_pid(tep, &m->tep) : -1;

	out_label(l, report_buffer(f, m));
	out_task(l, tep_data_comm_from_pid(tep, pid), pid, m->cpu);
	out_state(l, f, &m->tep);
	out_time(l, &f->in->time, m->ts - l->base);
	out_name(l, m->event ? m->event->name : "(NULL)");
	out_fields(l);
}

static bool want_color(const struct report *r)
{
	const struct report_opts *o = r->o;
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (o->color != COLOR_AUTO)
		return o->color == COLOR_ALWAYS;
	return !(no && *no) && term && strcmp(term, "dumb") && r->terminal;
}

int line_open(struct line **out, const struct report *r, uint64_t time_base)
{
	struct line *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->r = r;
	l->base = time_base;
	l->color = want_color(r);
	trace_seq_init(&l->state);
	*out = l;
	return 0;
}

void line_free(struct line *l)
{
	if (!l)
		return;
	trace_seq_destroy(&l->state);
	free(l);
}
