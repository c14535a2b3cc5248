// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hyptrace export --parquet: a file for each machine and event. Parquet, since it is what DuckDB, Spark,
 * Trino and ClickHouse all read best; by hand, since no library of it is packaged and little of it is needed.
 */
#include "convert/export/parquet-priv.h"
#include "base/outfile.h"

#define HELD_MAX     (64u << 20) /* bytes of rows, of all events together */
#define ROW_BYTES    40		 /* of the columns that each event has, about */
#define METADATA_MAX (16u << 20) /* bytes of files that are not ended, likewise */

struct parquet {
	struct export_job *job;
	struct print *print;
	struct outfile out;
	struct parquet_rows **events, ***slots; /* all; by input and id */
	size_t n;
	size_t held, metadata; /* bytes */
	unsigned int parts;
	struct arena names;
};

/* A run's. */
struct parquet_run {
	struct buf ready; /* for print_begin */
	struct print_record v[MERGE_RUN_MAX];
	uint64_t bounds[MERGE_RUN_MAX];
};

/* Behind the ids of an input's events. */
#define SLOT_UNKNOWN(in) ((size_t)(in)->n_known)
#define SLOT_LOSS(in)	 ((in)->n_known + 1)

static const char *parquet_machine_name(const struct input *in)
{
	return in->guest ? in->machine : "host";
}

/* NULL: no memory. */
static char *parquet_event_dir(const struct export_job *job, size_t input, const char *system,
			       const char *name, unsigned int id)
{
	const struct inputs *in = job->in;
	const char *machine = parquet_machine_name(&in->v[input]);
	bool taken = in->v[input].guest && !strcmp(machine, "host");
	struct buf own = { 0 }, dir = { 0 };

	/* a second one of a name, and a guest that is called host, get a number */
	for (size_t i = 0; i < input; i++)
		taken |= !strcmp(parquet_machine_name(&in->v[i]), machine);
	buf_addstr(&own, machine);
	if (job->key)
		anonymize_text(job->key, &own, 0);
	if (taken)
		buf_printf(&own, "~%zu", input + 1);
	parquet_dir(&dir, "machine", buf_str(&own), (unsigned int)input);
	parquet_dir(&dir, "system", system, id);
	parquet_dir(&dir, "event", name, id);
	dir.bad |= own.bad;
	buf_release(&own);
	return (char *)buf_str(&dir);
}

static void parquet_event_free(struct parquet_rows *e)
{
	parquet_rows_release(e);
	free(e);
}

static int parquet_event_new(struct parquet *p, size_t input, size_t slot, struct parquet_rows **out)
{
	const struct input *in = &p->job->in->v[input];
	const struct known_event *known = input_event(in, (unsigned int)slot);
	const char *system = known ? known->event->system : NULL;
	const char *name = known ? known->event->name : slot == SLOT_LOSS(in) ? "lost" : "unknown";
	struct parquet_rows *e = calloc(1, sizeof(*e));
	int ret = -ENOMEM;

	if (!e)
		return ret;
	e->file.dir = parquet_event_dir(p->job, input, system, name, (unsigned int)slot);
	if (e->file.dir)
		ret = slot == SLOT_UNKNOWN(in) ? parquet_columns_unknown(&e->file.columns, &e->file.n_columns)
					       : parquet_columns(&e->file.columns, &e->file.n_columns,
								 known ? known->event : NULL, &p->names);
	for (size_t i = 0; i < e->file.n_columns && !ret; i++)
		e->file.columns[i].key = p->job->key;
	if (!ret) {
		e->chunks = calloc(e->file.n_columns, sizeof(*e->chunks));
		ret = e->chunks ? array_push(&p->events, &p->n, &e, sizeof(e)) : -ENOMEM;
	}
	if (ret)
		parquet_event_free(e);
	else
		*out = e;
	return ret;
}

/* Ends the event's file. Rows that come later have another. */
static int parquet_event_end(struct parquet *p, struct parquet_rows *e)
{
	p->metadata -= e->file.groups.cap;
	return e->file.size ? parquet_file_end(&e->file, p->out.fd) : 0;
}

/* The rows so far become a row group of the file. */
static int parquet_flush(struct parquet *p, struct parquet_rows *e)
{
	int ret;

	if (!e->n)
		return 0;
	if (!e->file.size)
		e->file.part = p->parts++;
	p->held -= e->bytes;
	p->metadata -= e->file.groups.cap;
	ret = parquet_rows_flush(e, p->out.fd);
	p->metadata += e->file.groups.cap;
	return ret;
}

/*
 * Flushes the rows, or ends the files, that are at least half as large as the mean: they hold at least half
 * of all.
 */
static int parquet_make_room(struct parquet *p, bool files)
{
	size_t half = (files ? p->metadata : p->held) / p->n / 2;
	int ret = 0;

	for (size_t i = 0; i < p->n && !ret; i++) {
		struct parquet_rows *e = p->events[i];

		if ((files ? e->file.groups.cap : e->bytes) >= half)
			ret = files ? parquet_event_end(p, e) : parquet_flush(p, e);
	}
	return ret;
}

static int parquet_add(struct parquet *p, const struct print_record *r, uint64_t bound)
{
	const struct input *in = &p->job->in->v[r->at->input];
	size_t slot = !r->m->len ? SLOT_LOSS(in) : r->event ? r->id : SLOT_UNKNOWN(in);
	struct parquet_rows **slots = p->slots[r->at->input], *e = slots[slot];
	size_t bytes = ROW_BYTES + r->m->len + (r->event && r->comm ? strlen(r->comm) : 0);
	int ret = e ? 0 : parquet_event_new(p, r->at->input, slot, &slots[slot]);

	if (ret)
		return ret;
	e = slots[slot];
	for (size_t i = 0; i < e->file.n_columns; i++)
		parquet_chunk_record(&e->chunks[i], &e->file.columns[i], p->job->in, r, bound);
	p->held += bytes;
	if (parquet_rows_full(e, bytes))
		ret = parquet_flush(p, e);
	if (!ret && p->held > HELD_MAX)
		ret = parquet_make_room(p, false);
	return !ret && p->metadata > METADATA_MAX ? parquet_make_room(p, true) : ret;
}

static void parquet_run_free(void *own)
{
	struct parquet_run *r = own;

	buf_release(&r->ready);
	free(r);
}

/* Task names are known, and learned, as report does it. */
static int parquet_before(void *ctx, struct pipeline_run *run)
{
	struct parquet *p = ctx;
	struct parquet_run *own = run->own ? run->own : calloc(1, sizeof(*own));
	int ret = 0;

	run->own = own;
	if (!own)
		return -ENOMEM;
	own->ready.len = 0;
	for (size_t i = 0; i < run->records.n && !ret; i++) {
		const struct merge_record *m = &run->records.v[i];
		struct print_record *r = &own->v[i];

		*r = (struct print_record){ .m = m,
					    .at = merge_stream(p->job->timeline->merge, m),
					    .pid = -1 };
		if (!m->len)
			continue;
		ret = print_begin(p->print, p->job->timeline, m, r, &own->ready);
		p->job->records++;
		p->job->unknown += !r->event;
	}
	return ret ?: export_tell(p->job);
}

/* Times are the host's clock: its own are exact. */
static int parquet_work(void *ctx, struct pipeline_run *run)
{
	const struct parquet *p = ctx;
	struct parquet_run *own = run->own;

	for (size_t i = 0; i < run->records.n; i++) {
		const struct input *in = &p->job->in->v[own->v[i].at->input];

		own->bounds[i] = in->guest || in->time.shift.cpus
					 ? filetime_bound(&in->time, run->records.v[i].raw)
					 : 0;
	}
	return 0;
}

static int parquet_after(void *ctx, struct pipeline_run *run)
{
	struct parquet_run *own = run->own;
	int ret = 0;

	for (size_t i = 0; i < run->records.n && !ret; i++)
		ret = parquet_add(ctx, &own->v[i], own->bounds[i]);
	return ret;
}

static const struct pipeline_job parquet_job = {
	.before = parquet_before,
	.work = parquet_work,
	.after = parquet_after,
	.release = parquet_run_free,
};

int export_parquet(struct export_job *job, const char *dir, const struct log *log)
{
	const struct inputs *in = job->in;
	struct parquet p = { .job = job };
	int ret = outdir_open(&p.out, dir, log);

	if (ret)
		return ret;
	p.slots = inputs_table(in, 2, sizeof(**p.slots));
	ret = p.slots ? 0 : -ENOMEM;
	ret = ret ?: print_open(&p.print, in, false) ?: pipeline_work(job->timeline, &parquet_job, &p);
	for (size_t i = 0; i < p.n && !ret; i++)
		ret = parquet_flush(&p, p.events[i]) ?: parquet_event_end(&p, p.events[i]);
	for (size_t i = 0; i < p.n; i++)
		parquet_event_free(p.events[i]);
	free(p.events);
	free(p.slots);
	print_close(p.print);
	arena_release(&p.names);
	return outdir_close(&p.out, ret);
}
