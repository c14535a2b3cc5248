// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat with the event formats of another from a script, for latency.t. A line of standard
 * input is one of
 *
 *   # ...
 *   id HEX				TRACEID
 *   guest NAME HEX [CPU:PID]...	a GUEST of that TRACEID
 *   shift HEX NS [BOUND]		TIME_SHIFT against the file of that TRACEID; BOUND: its bound, ns
 *   task PID COMM
 *   buffer NAME			what follows goes there; at first the top buffer
 *   lost CPU N				events lost before the CPU's next record
 *   SECONDS CPU PID EVENT [FIELD=VALUE]...	a record; a VALUE of a string ends at the next blank
 *
 * usage: latency-trace FORMATS.dat OUT < SCRIPT
 */
#define MAKER_CPUS 8
#include "trace-maker.h"

#include "dat-texts.h"
#include "read/inputs.h"

static struct inputs formats;

/* ---- records -------------------------------------------------------------------------- */

static size_t record_size(const struct tep_event *e)
{
	size_t end = 8;

	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		if ((size_t)f->offset + (size_t)f->size > end)
			end = (size_t)f->offset + (size_t)f->size;
	return end;
}

static void put_value(uint8_t *rec, size_t *len, const struct tep_format_field *f, const char *value)
{
	uint64_t v = strtoull(value, NULL, 0);
	size_t n = strlen(value);

	if (f->flags & TEP_FIELD_IS_DYNAMIC) {
		uint32_t loc = (uint32_t)(n + 1) << 16 | (uint32_t)*len;

		memcpy(rec + f->offset, &loc, 4);
		memcpy(rec + *len, value, n);
		*len += n + 1;
	} else if (f->flags & TEP_FIELD_IS_STRING) {
		memcpy(rec + f->offset, value, n < (size_t)f->size ? n : (size_t)f->size);
	} else {
		memcpy(rec + f->offset, &v, (size_t)f->size);
	}
}

static void put_record(struct maker_buffer *b, char *line)
{
	unsigned long long sec;
	char name[64], ns_text[16] = "", *save, *word;
	uint8_t rec[1024] = { 0 };
	struct tep_event *e;
	unsigned int cpu;
	uint16_t id;
	int pid, used;
	size_t len;

	if (sscanf(line, "%llu.%15[0-9] %u %d %63s%n", &sec, ns_text, &cpu, &pid, name, &used) != 5 ||
	    cpu >= MAKER_CPUS)
		die(line);
	e = tep_find_event_by_name(formats.v[0].tep, NULL, name);
	if (!e)
		die(name);
	for (size_t i = strlen(ns_text); i < 9; i++)
		ns_text[i] = '0';
	len = record_size(e);
	id = (uint16_t)e->id;
	memcpy(rec, &id, sizeof(id));
	memcpy(rec + 4, &pid, sizeof(pid));
	for (word = strtok_r(line + used, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		struct tep_format_field *f;

		if (!value)
			die(word);
		*value++ = '\0';
		f = tep_find_field(e, word);
		if (!f)
			die(word);
		put_value(rec, &len, f, value);
	}
	must(page_write(&b->w[cpu], sec * 1000000000 + strtoull(ns_text, NULL, 10), rec,
			(len + 3) & ~(size_t)3));
}

/* ---- the script ------------------------------------------------------------------------ */

static struct maker_buffer *take_line(struct maker_buffer *b, char *line)
{
	char *rest;

	if (maker_line(b, line))
		return b;
	if ((rest = after(line, "shift")))
		put_shift(rest, 2);
	else if ((rest = after(line, "buffer")))
		return maker_add(rest);
	else
		put_record(b, line);
	return b;
}

int main(int argc, char **argv)
{
	struct maker_buffer *b = maker_add("");
	char line[2048];
	struct dat_file f;

	if (argc != 3)
		die("usage: latency-trace FORMATS.dat OUT < SCRIPT");
	must(inputs_open(&formats, argv + 1, 1, 0, NULL));
	must(inputs_load(&formats, NULL));
	must(dat_options_add_clock(&maker.options, "mono"));
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (*line && *line != '#')
			b = take_line(b, line);
	}
	must(dat_texts(&f, reader_info(formats.v[0].reader)));
	f.version = 7;
	f.compression = "none";
	f.cmdlines = (struct dat_text){ "", 0 };
	maker_end(&f, "mono", MAKER_CPUS);
	maker_write(&f, argv[2]);
	_exit(0); /* nothing was freed, for nothing needs to be */
}
