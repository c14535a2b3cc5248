// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report-priv.h"

/*
 * A line in the layout of trace-cmd report 3.1:
 *
 *	           comm-pid   [cpu]  sec.usec: event:               fields
 *
 * All but the fields is put together here: libtraceevent takes longer for it than
 * for most events' fields.
 */
struct line {
	const struct report *r;
	struct trace_seq fields;
	uint64_t base;	  /* --align-ts */
	uint64_t last_ts; /* --ts-diff: of the line before; 0: none */
	bool color;
};

#define NAME_WIDTH 20

/* ---- numbers and spaces -------------------------------------------------------------- */

static void put_spaces(FILE *out, size_t n)
{
	static const char spaces[] = "                                ";

	while (n) {
		size_t part = n < sizeof(spaces) - 1 ? n : sizeof(spaces) - 1;

		fwrite_unlocked(spaces, 1, part, out);
		n -= part;
	}
}

static void put(FILE *out, const char *text, size_t len)
{
	fwrite_unlocked(text, 1, len, out);
}

/* Writes the digits of v, at least so many, in front of end; returns where they begin. */
static char *digits(char *end, uint64_t v, int least)
{
	while (v || least > 0) {
		*--end = (char)('0' + v % 10);
		v /= 10;
		least--;
	}
	return end;
}

/* Right-aligned in `width`. */
static char *align(char *end, char *at, int width)
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
		return align(end, digits(end, ts, 1), 12);
	if (r->o->nanoseconds) {
		at = digits(end, ts % 1000000000, 9);
		ts /= 1000000000;
	} else {
		ts = ts + 500 < ts ? ts / 1000 : (ts + 500) / 1000;
		at = digits(end, ts % 1000000, 6);
		ts /= 1000000;
	}
	*--at = '.';
	return align(at, digits(at, ts, 1), 5);
}

void print_time(const struct report *r, size_t file, uint64_t ts, FILE *out)
{
	char text[64], *end = text + sizeof(text);
	char *at = time_text(r, r->inputs[file].time.seconds, ts, end);

	put(out, at, (size_t)(end - at));
}

/* ---- columns --------------------------------------------------------------------------- */

enum paint { PLAIN, LABEL, TIME, NAME, LOST };

static void paint(const struct line *l, enum paint p)
{
	static const char *const codes[] = { [PLAIN] = "\033[m",
					     [LABEL] = "\033[36m",
					     [TIME] = "\033[33m",
					     [NAME] = "\033[1m",
					     [LOST] = "\033[1;31m" };

	if (l->color)
		fputs_unlocked(codes[p], stdout);
}

void line_label(const struct report *r, const char *label)
{
	size_t len = strlen(label), width = r->label_width;

	if (!r->labels)
		return;
	put_spaces(stdout, len < width ? width - len : 0);
	put(stdout, label, len);
	put(stdout, *label ? ": " : "  ", 2);
}

static void put_label(struct line *l, const struct report_buffer *b)
{
	if (*b->label)
		paint(l, LABEL);
	line_label(l->r, b->label);
	if (*b->label)
		paint(l, PLAIN);
}

static void put_number(FILE *out, uint64_t v, int least)
{
	char text[32], *end = text + sizeof(text), *at = digits(end, v, least);

	put(out, at, (size_t)(end - at));
}

/* "-%-5d" */
static void put_pid(FILE *out, int pid)
{
	char text[32], *end = text + sizeof(text);
	char *at = digits(end, pid < 0 ? -(uint64_t)pid : (uint64_t)pid, 1);

	if (pid < 0)
		*--at = '-';
	put(out, "-", 1);
	put(out, at, (size_t)(end - at));
	put_spaces(out, end - at < 5 ? 5 - (size_t)(end - at) : 0);
}

/* "%16s-%-5d [%03d]", with -l "%8.8s-%-5d %3d" */
static void put_task(const struct line *l, const char *comm, int pid, unsigned int cpu)
{
	bool latency = l->r->o->latency;
	size_t width = latency ? 8 : 16, len = strlen(comm);

	len = latency && len > width ? width : len;
	put_spaces(stdout, len < width ? width - len : 0);
	put(stdout, comm, len);
	put_pid(stdout, pid);
	if (latency) {
		put_spaces(stdout, cpu < 10 ? 3 : cpu < 100 ? 2 : 1);
		put_number(stdout, cpu, 1);
	} else {
		put(stdout, " [", 2);
		put_number(stdout, cpu, 3);
		put(stdout, "]", 1);
	}
}

/* -l: 3.1 shows flags and depth with it only */
static void put_state(struct line *l, const struct report_file *f, struct tep_record *rec)
{
	if (!l->r->o->latency)
		return;
	trace_seq_reset(&l->fields);
	if (l->r->o->raw_fields)
		trace_seq_printf(&l->fields, "-0x%x", (unsigned int)tep_data_flags(f->in.tep, rec));
	else
		tep_print_event(f->in.tep, &l->fields, rec, "%s", TEP_PRINT_LATENCY);
	put(stdout, l->fields.buffer, l->fields.len);
}

/* " (+12)  ", in us unless all digits are shown */
static void put_diff(struct line *l, const struct filetime *t, uint64_t ts)
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

static void put_time(struct line *l, const struct filetime *t, uint64_t ts)
{
	char text[64], *end = text + sizeof(text), *at;

	*--end = ':';
	at = time_text(l->r, t->seconds, ts, end);
	if (t->seconds)
		*--at = ' ';
	paint(l, TIME);
	put(stdout, at, (size_t)(end + 1 - at));
	paint(l, PLAIN);
	put_diff(l, t, ts);
}

static void put_name(const struct line *l, const char *name)
{
	size_t len = strlen(name);

	put(stdout, " ", 1);
	paint(l, NAME);
	put(stdout, name, len);
	put(stdout, ": ", 2);
	paint(l, PLAIN);
	put_spaces(stdout, len < NAME_WIDTH ? NAME_WIDTH - len : 0);
}

/* Its first two bytes, in every format; libtraceevent does not say without any. */
static unsigned int record_type(const struct tep_record *rec)
{
	uint16_t type;

	memcpy(&type, rec->data, sizeof(type));
	return type;
}

static void put_fields(struct line *l, const struct report_file *f, const struct tep_event *event,
		       struct tep_record *rec)
{
	struct trace_seq *s = &l->fields;

	trace_seq_reset(s);
	if (event)
		tep_print_event(f->in.tep, s, rec, "%s",
				l->r->o->raw_fields ? TEP_PRINT_INFO_RAW : TEP_PRINT_INFO);
	else
		trace_seq_printf(s, "[UNKNOWN EVENT %u]", record_type(rec));
	if (s->len && s->buffer[s->len - 1] == '\n')
		s->len--;
	put(stdout, s->buffer, s->len);
}

/* ---- lines ------------------------------------------------------------------------------ */

void line_lost(struct line *l, const struct report_buffer *b, const struct merge_record *m)
{
	put_label(l, b);
	paint(l, LOST);
	if (m->missed > 0)
		printf("CPU:%u [%lld EVENTS DROPPED]", m->cpu, (long long)m->missed);
	else
		printf("CPU:%u [EVENTS DROPPED]", m->cpu);
	paint(l, PLAIN);
	put(stdout, "\n", 1);
}

void line_print(struct line *l, const struct report_file *f, const struct merge_record *m,
		struct tep_record *rec)
{
	struct tep_event *event = tep_find_event_by_record(f->in.tep, rec);
	/* plugins have formats of their own, which tell nothing of this file */
	int pid = f->info->n_formats ? tep_data_pid(f->in.tep, rec) : -1;
	const struct filetime *t = &l->r->inputs[m->input].time;

	put_label(l, &f->buffers[m->buffer]);
	put_task(l, tep_data_comm_from_pid(f->in.tep, pid), pid, m->cpu);
	put_state(l, f, rec);
	put_time(l, t, m->ts - l->base);
	put_name(l, event ? event->name : "(NULL)");
	put_fields(l, f, event, rec);
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
	trace_seq_init(&l->fields);
	*out = l;
	return 0;
}

void line_free(struct line *l)
{
	if (!l)
		return;
	trace_seq_destroy(&l->fields);
	free(l);
}
