// SPDX-License-Identifier: GPL-2.0-only
/*
 * Speed of events' texts: compiled beside tep_print_event, over the records of a trace.dat.
 * usage: text [-v] FILE [PLUGIN_DIR]   (-v: a line per event)
 * Prints: records, ns of CPU per event of each, how many times faster; events that libtraceevent prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "read/text.h"
#include "read/timeline.h"
#include "base/array.h"

#define ROUNDS 5

struct record {
	uint8_t *data;
	size_t len;
	struct tep_record tep;
	struct tep_event *event;
};

struct kind {
	struct text_program *p;
	char why[TEXT_WHY_MAX];
	size_t n;
	double tep, text; /* ns */
};

static struct record *records;
static size_t n_records;
static struct kind kinds[UINT16_MAX + 1];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void collect(struct inputs *in)
{
	struct timeline_record r;
	struct timeline *t;

	if (timeline_open(&t, in, NULL, NULL, NULL))
		exit(1);
	while (timeline_next(t, &r) == 1) {
		struct record *rec;

		if (!r.event || r.tep.size <= 0)
			continue;
		records = array_grow(records, n_records, sizeof(*records));
		rec = &records[n_records++];
		*rec = (struct record){ .len = (size_t)r.tep.size, .tep = r.tep, .event = r.event };
		rec->data = calloc(1, rec->len + 64);
		memcpy(rec->data, r.tep.data, rec->len);
		rec->tep.data = rec->data;
	}
	timeline_close(t);
}

static void compile(void)
{
	for (size_t i = 0; i < n_records; i++) {
		struct kind *k = &kinds[records[i].event->id];

		if (!k->n++)
			text_compile(&k->p, records[i].event, k->why);
	}
}

static void print_tep(const struct record *r, struct trace_seq *s)
{
	trace_seq_reset(s);
	tep_print_event(r->event->tep, s, (struct tep_record *)&r->tep, "%s", TEP_PRINT_INFO);
}

static void print_all(bool compiled, bool each, struct text_scratch *own, struct trace_seq *s,
		      struct buf *out)
{
	for (size_t i = 0; i < n_records; i++) {
		const struct record *r = &records[i];
		struct kind *k = &kinds[r->event->id];
		const struct tep_format_field *named = compiled && k->p ? text_named(k->p) : NULL;
		unsigned long long pid = 0;
		double start = each ? now() : 0;

		if (out->len > 1 << 16)
			out->len = 0;
		if (compiled && k->p)
			text_print(k->p, r->data, r->len,
				   named && !tep_read_number_field((struct tep_format_field *)named, r->data,
								   &pid)
					   ? tep_data_comm_from_pid(r->event->tep, (int)pid)
					   : NULL,
				   own, out);
		else
			print_tep(r, s);
		if (each)
			*(compiled ? &k->text : &k->tep) += now() - start;
	}
}

static double best(bool compiled, struct text_scratch *own, struct trace_seq *s, struct buf *out)
{
	double min = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now(), took;

		print_all(compiled, false, own, s, out);
		took = (now() - start) / (double)n_records;
		min = !i || took < min ? took : min;
	}
	return min;
}

static void show_each(struct text_scratch *own, struct trace_seq *s, struct buf *out)
{
	print_all(false, true, own, s, out);
	print_all(true, true, own, s, out);
	for (size_t i = 0; i <= UINT16_MAX; i++)
		if (kinds[i].n)
			for (size_t k = 0; k < n_records; k++)
				if (records[k].event->id == (int)i) {
					printf("%-28s %7zu %8.0f %8.0f %s\n", records[k].event->name,
					       kinds[i].n, kinds[i].tep / (double)kinds[i].n,
					       kinds[i].text / (double)kinds[i].n, kinds[i].why);
					break;
				}
}

int main(int argc, char **argv)
{
	bool each = argc > 1 && !strcmp(argv[1], "-v");
	char **args = argv + 1 + each;
	struct text_scratch own;
	struct inputs in;
	struct trace_seq s;
	struct buf out = { 0 };
	double tep, text;

	if (argc - each < 2 || inputs_open(&in, args, 1, 0, NULL))
		return 1;
	if (args[1])
		tep_add_plugin_path(in.v[0].tep, args[1], TEP_PLUGIN_LAST);
	if (inputs_load(&in, NULL) || text_scratch_init(&own))
		return 1;
	trace_seq_init(&s);
	collect(&in);
	compile();
	tep = best(false, &own, &s, &out);
	text = best(true, &own, &s, &out);
	printf("%zu records: tep_print_event %.0f ns, text_print %.0f ns, %.1f times\n", n_records, tep, text,
	       tep / text);
	if (each)
		show_each(&own, &s, &out);
	return 0;
}
