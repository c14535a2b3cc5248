// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole of lib/read on files made by a recipe: what the pipeline prints is what one thread
 * prints that takes run after run, of the records that come one after the other; compiled texts are
 * libtraceevent's; and the CPUs side by side have the same records with the same fields.
 */
#include <errno.h>
#include <pthread.h>
#include <traceevent/trace-seq.h>

#include "draft.h"

#include "read/timeline.h"
#include "read/print.h"
#include "read/filetime.h"
#include "../leaks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	bool raw;
	struct inputs in;
	struct timeline *t;
	struct print *print;
	struct buf text;
};

struct lines {
	struct buf ready;
	struct print_record v[MERGE_RUN_MAX];
};

static int begin_lines(void *ctx, struct pipeline_run *run)
{
	struct reading *r = ctx;
	struct lines *l = run->own ? run->own : calloc(1, sizeof(*l));

	run->own = l;
	if (!l)
		return -ENOMEM;
	l->ready.len = 0;
	for (size_t i = 0; i < run->records.n; i++)
		if (print_begin(r->print, r->t, &run->records.v[i], &l->v[i], &l->ready))
			return -ENOMEM;
	return 0;
}

static void print_line(const struct print *print, const struct print_record *r, const struct buf *ready,
		       size_t worker, struct buf *out)
{
	buf_printf(out, "%zu %u %s-%d %llu %lld: ", r->at->input, r->at->cpu, r->comm ?: "?", r->pid,
		   (unsigned long long)r->m->ts, (long long)r->m->missed);
	if (r->m->data)
		print_fields(print, r, ready, worker, out);
	buf_add(out, "\n", 1);
}

static int make_lines(void *ctx, struct pipeline_run *run)
{
	const struct reading *r = ctx;
	const struct lines *l = run->own;

	for (size_t i = 0; i < run->records.n; i++)
		print_line(r->print, &l->v[i], &l->ready, run->worker, &run->out);
	return buf_status(&run->out);
}

static int keep_lines(void *ctx, struct pipeline_run *run)
{
	struct reading *r = ctx;

	buf_add(&r->text, run->out.data, run->out.len);
	return buf_status(&r->text);
}

static void free_lines(void *own)
{
	struct lines *l = own;

	buf_release(&l->ready);
	free(l);
}

static const struct pipeline_job job = {
	.before = begin_lines, .work = make_lines, .after = keep_lines, .release = free_lines
};

static bool few_cpus(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	return cpu < 64;
}

/* Both files, or the one that is whole. */
static int reading_open(struct reading *r, char *const *paths, bool raw)
{
	*r = (struct reading){ .raw = raw };
	if (inputs_open(&r->in, paths, DRAFT_FILES, 0, NULL)) {
		inputs_release(&r->in);
		if (inputs_open(&r->in, paths, 1, 0, NULL))
			return -1;
	}
	/* what plugins remember is of the process; commands.c has them */
	for (size_t i = 0; i < r->in.n; i++)
		tep_set_flag(r->in.v[i].tep, TEP_DISABLE_PLUGINS);
	if (inputs_load(&r->in, NULL) || inputs_convert_ticks(&r->in, NULL) ||
	    timeline_open(&r->t, &r->in, few_cpus, NULL, NULL) || print_open(&r->print, &r->in, raw))
		return -1;
	return 0;
}

static void reading_close(struct reading *r)
{
	timeline_close(r->t);
	print_close(r->print);
	inputs_release(&r->in);
	buf_release(&r->text);
}

/* Without threads. */
static int one_by_one(struct reading *r)
{
	struct pipeline_run run = { 0 };
	int ret;

	while ((ret = merge_take(r->t->merge, &run.records)) == 1) {
		run.out.len = 0;
		if (begin_lines(r, &run) || make_lines(r, &run) || keep_lines(r, &run))
			abort();
	}
	merge_run_release(&run.records);
	buf_release(&run.out);
	if (run.own)
		free_lines(run.own);
	return ret;
}

static void same_text(struct reading *a, struct reading *b)
{
	if (pipeline_work(a->t, &job, a) || one_by_one(b) || a->text.len != b->text.len ||
	    (a->text.len && memcmp(a->text.data, b->text.data, a->text.len)) ||
	    merge_damaged(a->t->merge) != merge_damaged(b->t->merge) || merge_fraction(a->t->merge) != 1)
		abort();
}

static bool same_bytes(const struct timeline_record *one, const struct merge_record *m)
{
	return one->ts == m->ts && one->missed == m->missed && one->tep.size >= (int)m->len &&
	       (!m->len || !memcmp(one->tep.data, m->data, m->len));
}

/* Behind that of a run lies one of the same buffer. */
static void look_ahead(const struct reading *r, const struct merge_run *run, size_t i)
{
	const struct merge_stream *at = merge_stream(r->t->merge, &run->v[i]), *other;
	struct merge_record next;
	struct buf copy = { 0 };

	if (!timeline_ahead(r->t, run, i, &next))
		return;
	other = merge_stream(r->t->merge, &next);
	if (other->input != at->input || other->buffer != at->buffer)
		abort();
	buf_add(&copy, next.data, next.len);
	buf_release(&copy);
}

/* timeline_next gives what is in the runs. */
static void same_records(struct reading *a, struct reading *b)
{
	struct merge_run run = { 0 };
	struct timeline_record one;

	while (merge_take(b->t->merge, &run) == 1)
		for (size_t i = 0; i < run.n; i++) {
			look_ahead(b, &run, i);
			if (timeline_next(a->t, &one) != 1 || !same_bytes(&one, &run.v[i]))
				abort();
		}
	if (timeline_next(a->t, &one))
		abort();
	merge_run_release(&run);
}

/* A text that was compiled is libtraceevent's. */
static void same_as_stock(struct reading *a, struct reading *b)
{
	const char *how = a->raw ? TEP_PRINT_INFO_RAW : TEP_PRINT_INFO;
	struct timeline_record one;
	struct merge_run run = { 0 };
	struct print_record r;
	struct buf ready = { 0 }, text = { 0 };
	struct trace_seq seq;

	trace_seq_init(&seq);
	for (size_t i = 0; i < a->in.n; i++) /* it prints by itself */
		if (tepfile_functions(a->in.v[i].tep))
			abort();
	while (merge_take(b->t->merge, &run) == 1)
		for (size_t i = 0; i < run.n; i++) {
			if (timeline_next(a->t, &one) != 1 ||
			    print_begin(b->print, b->t, &run.v[i], &r, &ready))
				abort();
			if (!one.event || r.ready)
				continue;
			text.len = 0;
			print_fields(b->print, &r, &ready, 0, &text);
			trace_seq_reset(&seq);
			tep_print_event(one.event->tep, &seq, &one.tep, "%s", how);
			if (seq.len && seq.buffer[seq.len - 1] == '\n')
				seq.len--;
			if (seq.len != text.len || memcmp(seq.buffer, text.data, text.len))
				abort();
		}
	merge_run_release(&run);
	trace_seq_destroy(&seq);
	buf_release(&ready);
	buf_release(&text);
}

static const char *const fields[] = { "common_pid", "prev_pid", "prev_comm", "vcpu_pc", "buf" };

/* Sums by which they are compared, whatever the order. */
struct sums {
	const struct timeline *t;
	uint64_t records, times, rows, values;
	pthread_mutex_t lock;
};

static uint64_t sum_bytes(const uint8_t *p, size_t n)
{
	uint64_t sum = n;

	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)p[i] << (i % 8 * 8);
	return sum;
}

static void add_fields(struct sums *sums, const struct tep_event *e, const struct merge_record *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct tep_format_field *f = tep_find_any_field((struct tep_event *)e, fields[i]);
		const uint8_t *bytes;
		uint64_t number = 0;
		size_t n = 0;

		if (!f)
			continue;
		if (!field_is_number(f) && field_bytes(f, m->data, m->len, &bytes, &n) == 1)
			sums->values += sum_bytes(bytes, n);
		else if (field_number(f, m->data, m->len, &number))
			sums->values += number;
	}
}

static int add_run(void *ctx, const struct merge_run *run, size_t worker)
{
	struct sums *sums = ctx;
	unsigned int id;

	pthread_mutex_lock(&sums->lock);
	for (size_t i = 0; i < run->n; i++) {
		const struct known_event *e = timeline_event(sums->t, &run->v[i], &id);

		sums->records++;
		sums->times += run->v[i].ts;
		if (!e)
			continue;
		sums->rows++;
		add_fields(sums, e->event, &run->v[i]);
	}
	pthread_mutex_unlock(&sums->lock);
	return 0;
}

static void same_streams(struct reading *a, struct reading *b)
{
	struct sums side = { .t = a->t, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct sums all = { .t = b->t, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct merge_run run = { 0 };

	if (streams_work(a->t, add_run, &side))
		abort();
	while (merge_take(b->t->merge, &run) == 1)
		add_run(&all, &run, 0);
	if (side.records != all.records || side.times != all.times || side.rows != all.rows ||
	    side.values != all.values || merge_damaged(a->t->merge) != merge_damaged(b->t->merge))
		abort();
	merge_run_release(&run);
}

static void read_twice(char *const *paths, bool raw, void (*same)(struct reading *a, struct reading *b))
{
	struct reading a, b;
	bool bad = reading_open(&a, paths, raw) | reading_open(&b, paths, raw);

	if (!bad)
		same(&a, &b);
	reading_close(&a);
	reading_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ways[])(struct reading *, struct reading *) = { same_text, same_records,
									    same_as_stock, same_streams };
	char *paths[DRAFT_FILES];
	uint32_t sum = 0;
	int saved;

	put_files(data, size);
	for (int i = 0; i < DRAFT_FILES; i++)
		if (!(paths[i] = str_printf("%s/FILE%d", scratch_dir(), i)))
			abort();
	saved = quiet_begin();
	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	read_twice(paths, sum & 1, ways[sum / 2 % ARRAY_SIZE(ways)]);
	quiet_end(saved);
	for (int i = 0; i < DRAFT_FILES; i++)
		free(paths[i]);
	return 0;
}
