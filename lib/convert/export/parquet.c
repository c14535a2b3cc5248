// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hyptrace export --parquet: a file for each machine and event. Parquet, since it is what DuckDB, Spark,
 * Trino and ClickHouse all read best; by hand, since no library of it is packaged and little of it is needed.
 */
#include <stdatomic.h>

#include "convert/export/parquet-priv.h"
#include "read/print.h"
#include "base/outfile.h"
#include "base/workers.h"

#define HELD_MAX     (64u << 20) /* bytes of rows, of all events together */
#define METADATA_MAX (16u << 20) /* bytes of files that are not ended, likewise */
#define PACKERS_MAX  4		 /* threads, each with a column of a group in memory */

/* An event of an input: its rows so far, and its file. */
struct parquet_event {
	struct parquet_file file;
	struct buf rows;
	size_t n_rows;
};

struct parquet {
	struct export_job *job;
	struct print *print;
	struct outfile out;
	struct parquet_event **events, ***slots; /* all; by input and id */
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
static char *parquet_event_dir(const struct inputs *in, size_t input, const char *system, const char *name,
			       unsigned int id)
{
	const char *machine = parquet_machine_name(&in->v[input]);
	bool taken = in->v[input].guest && !strcmp(machine, "host");
	struct buf own = { 0 }, dir = { 0 };

	/* a second one of a name, and a guest that is called host, get a number */
	for (size_t i = 0; i < input; i++)
		taken |= !strcmp(parquet_machine_name(&in->v[i]), machine);
	buf_addstr(&own, machine);
	if (taken)
		buf_printf(&own, "~%zu", input + 1);
	parquet_dir(&dir, "machine", buf_str(&own), (unsigned int)input);
	parquet_dir(&dir, "system", system, id);
	parquet_dir(&dir, "event", name, id);
	dir.bad |= own.bad;
	buf_release(&own);
	return (char *)buf_str(&dir);
}

static void parquet_event_free(struct parquet_event *e)
{
	if (!e)
		return;
	parquet_file_release(&e->file);
	buf_release(&e->rows);
	free(e);
}

static int parquet_event_new(struct parquet *p, size_t input, size_t slot, struct parquet_event **out)
{
	const struct input *in = &p->job->in->v[input];
	const struct known_event *known = input_event(in, (unsigned int)slot);
	const char *system = known ? known->event->system : NULL;
	const char *name = known ? known->event->name : slot == SLOT_LOSS(in) ? "lost" : "unknown";
	struct parquet_event *e = calloc(1, sizeof(*e));
	int ret = -ENOMEM;

	if (!e)
		return ret;
	e->file.dir = parquet_event_dir(p->job->in, input, system, name, (unsigned int)slot);
	if (e->file.dir)
		ret = slot == SLOT_UNKNOWN(in) ? parquet_columns_unknown(&e->file.columns, &e->file.n_columns)
					       : parquet_columns(&e->file.columns, &e->file.n_columns,
								 known ? known->event : NULL, &p->names);
	if (!ret)
		ret = array_push(&p->events, &p->n, &e, sizeof(e));
	if (ret)
		parquet_event_free(e);
	else
		*out = e;
	return ret;
}

/* Ends the event's file. Rows that come later have another. */
static int parquet_event_end(struct parquet *p, struct parquet_event *e)
{
	p->metadata -= e->file.groups.cap;
	return e->file.size ? parquet_file_end(&e->file, p->out.fd) : 0;
}

struct packing {
	const struct parquet_event *event;
	struct parquet_source source;
	struct parquet_chunk *chunks;
	atomic_size_t next;
	atomic_int ret;
};

static void parquet_pack_columns(void *ctx, size_t worker)
{
	struct packing *k = ctx;
	const struct parquet_event *e = k->event;
	size_t i;

	while ((i = atomic_fetch_add(&k->next, 1)) < e->file.n_columns) {
		int ret =
			parquet_chunk_fill(&k->chunks[i], &e->file.columns[i], &k->source,
					   (const struct parquet_row *)(const void *)e->rows.data, e->n_rows);

		if (ret)
			atomic_store(&k->ret, ret);
	}
}

/* The rows so far become a row group of the file. */
static int parquet_flush(struct parquet *p, struct parquet_event *e)
{
	struct packing k = { .event = e, .source = { p->job->timeline, p->job->in } };
	size_t workers = pipeline_workers();
	int ret;

	if (!e->n_rows)
		return 0;
	k.chunks = calloc(e->file.n_columns, sizeof(*k.chunks));
	if (!k.chunks)
		return -ENOMEM;
	/* threads for some rows take longer than the rows */
	workers = e->n_rows < GROUP_ROWS_MAX / 16 ? 1 : workers < PACKERS_MAX ? workers : PACKERS_MAX;
	workers_share(workers, parquet_pack_columns, &k);
	ret = atomic_load(&k.ret);
	if (!ret && !e->file.size)
		e->file.part = p->parts++;
	p->metadata -= e->file.groups.cap;
	ret = ret ?: parquet_file_group(&e->file, p->out.fd, k.chunks, e->n_rows);
	p->metadata += e->file.groups.cap;
	for (size_t i = 0; i < e->file.n_columns; i++)
		parquet_chunk_release(&k.chunks[i]);
	free(k.chunks);
	p->held -= e->rows.cap;
	buf_release(&e->rows);
	e->n_rows = 0;
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
		struct parquet_event *e = p->events[i];

		if ((files ? e->file.groups.cap : e->rows.cap) >= half)
			ret = files ? parquet_event_end(p, e) : parquet_flush(p, e);
	}
	return ret;
}

static void parquet_row_put(struct parquet_event *e, const struct print_record *r, uint64_t bound)
{
	const char *comm = r->event ? r->comm : NULL;
	struct parquet_row row = { .ts = r->m->ts,
				   .bound = bound,
				   .lost = r->m->missed,
				   .pid = r->event ? r->pid : -1,
				   .stream = r->m->stream,
				   .len = r->m->len,
				   .comm = PARQUET_NO_COMM };
	size_t comm_len = comm ? strnlen(comm, PARQUET_NO_COMM - 1) : 0;
	uint8_t *at = buf_room(&e->rows, sizeof(row) + comm_len + row.len + 8), *end;

	if (!at)
		return;
	if (comm)
		row.comm = (uint16_t)comm_len;
	memcpy(at, &row, sizeof(row));
	end = at + sizeof(row);
	memcpy(end, comm ?: "", comm_len);
	end += comm_len;
	if (row.len)
		memcpy(end, r->m->data, row.len);
	e->rows.len += PARQUET_ALIGN(sizeof(row) + comm_len + row.len);
	e->n_rows++;
}

static int parquet_add(struct parquet *p, const struct print_record *r, uint64_t bound)
{
	const struct input *in = &p->job->in->v[r->at->input];
	size_t slot = !r->m->len ? SLOT_LOSS(in) : r->event ? r->id : SLOT_UNKNOWN(in);
	struct parquet_event **e = &p->slots[r->at->input][slot];
	int ret = *e ? 0 : parquet_event_new(p, r->at->input, slot, e);

	if (ret)
		return ret;
	p->held -= (*e)->rows.cap;
	parquet_row_put(*e, r, bound);
	p->held += (*e)->rows.cap;
	ret = buf_status(&(*e)->rows);
	if (!ret && ((*e)->n_rows == GROUP_ROWS_MAX || (*e)->rows.len >= GROUP_BYTES_MAX))
		ret = parquet_flush(p, *e);
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
