// SPDX-License-Identifier: GPL-2.0-only
/*
 * A line in the layout of trace-cmd report 3.1:
 *
 *	           comm-pid   [cpu]  sec.usec: event:               fields
 *
 * All but the fields is put together here: libtraceevent takes longer for it than for most events' fields.
 */
#include <time.h>

#include "report-priv.h"
#include "base/cursor.h"

#define NAME_WIDTH 20
/* Bytes of a line without the texts in it: label, task, name, fields. */
#define LINE_ROOM 256

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

static size_t digits_count(uint64_t v)
{
	size_t n = 1;

	while (v >= 10) {
		v /= 10;
		n++;
	}
	return n;
}

/* `width` digits of v, zeros in front. */
static char *lay_digits(char *at, uint64_t v, size_t width)
{
	for (size_t i = width; i--; v /= 10)
		at[i] = (char)('0' + v % 10);
	return at + width;
}

/* "%*llu" */
static char *lay_right(char *at, uint64_t v, size_t width)
{
	size_t n = digits_count(v);

	if (n < width)
		at = lay_spaces(at, width - n);
	return lay_digits(at, v, n);
}

/* Seconds "%5llu.%06llu" (with all nine digits after -t); other clocks "%12llu". */
static char *lay_time(char *at, const struct report *r, bool seconds, uint64_t ts)
{
	if (!seconds)
		return lay_right(at, ts, 12);
	if (!r->o->nanoseconds) {
		ts = ts + 500 < ts ? ts / 1000 : (ts + 500) / 1000;
		at = lay_right(at, ts / 1000000, 5);
		*at++ = '.';
		return lay_digits(at, ts % 1000000, 6);
	}
	at = lay_right(at, ts / 1000000000, 5);
	*at++ = '.';
	return lay_digits(at, ts % 1000000000, 9);
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
	if (r->o->nanoseconds)
		at = lay_digits(at, utc % 1000000000, 9);
	else
		at = lay_digits(at, utc % 1000000000 / 1000, 6);
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
	size_t width = latency ? 8 : 16, len = strlen(comm), digits = digits_count(cpu);
	char *from;

	len = latency && len > width ? width : len;
	at = lay_spaces(at, len < width ? width - len : 0);
	at = lay_text(at, comm, len);
	*at++ = '-';
	from = at;
	if (pid < 0)
		*at++ = '-';
	at = lay_right(at, pid < 0 ? -(uint64_t)pid : (uint64_t)pid, 1);
	at = at - from < 5 ? lay_spaces(at, 5 - (size_t)(at - from)) : at;
	*at++ = ' ';
	if (latency)
		return lay_right(at, cpu, 3);
	*at++ = '[';
	at = lay_digits(at, cpu, digits < 3 ? 3 : digits);
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

/* All in front of the fields. */
static void line_columns(const struct report *r, const struct shown *s, const struct buf *ready,
			 struct buf *out)
{
	const char *comm = s->rec.comm ? s->rec.comm : "<...>", *label = s->buffer->label;
	const char *name = s->rec.event ? s->rec.event->event->name : "(NULL)";
	size_t len = strlen(name);
	size_t texts = r->label_width + strlen(label) + strlen(comm) + s->state_len + len;
	char *from = buf_room(out, texts + LINE_ROOM), *at = from, diff[32] = "";

	if (!from)
		return;
	at = lay_colored_label(at, r, label);
	at = lay_task(at, r, comm, s->rec.pid, s->rec.at->cpu);
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

void line_print(const struct report *r, const struct shown *s, const struct buf *ready, size_t worker,
		struct buf *out)
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
	line_columns(r, s, ready, out);
	fields = out->len;
	print_fields(r->print, &s->rec, ready, worker, out);
	/* up to a NUL, as stock has it; a NUL is also what terminal codes begin with */
	if (out->len > fields)
		out->len = fields + strnlen((char *)out->data + fields, out->len - fields);
	buf_add(out, ready->data + s->tail, s->tail_len);
	buf_add(out, "\n", 1);
}
