// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hyptrace export --parquet: a file for each machine and system of events, whose row groups are of one event
 * each. Parquet, since it is what DuckDB, Spark, Trino and ClickHouse all read best; by hand, since no
 * library of it is packaged and little of it is needed.
 */
#include "convert/export/parquet-priv.h"
#include "base/outfile.h"

#define HELD_MAX     (64u << 20) /* bytes of rows, of all events together */
#define ROW_BYTES    64		 /* of the columns that each event has, about */
#define METADATA_MAX (4u << 20)	 /* bytes of a file's */

struct parquet {
	struct export_job *job;
	struct outfile out;
	struct parquet_file **files;
	struct parquet_rows **events, ***slots; /* all; by input and id */
	size_t n_files, n;
	size_t held; /* bytes */
	unsigned int parts;
	struct parquet_behind behind;
	atomic_size_t left; /* of the events at the end: those before are packed */
	atomic_int ret;	    /* of that */
	struct print *print;
	uint64_t run; /* the last one's number, from 1 on */
	struct parquet_met {
		uint64_t run;
		uint32_t group;
	} * *met; /* by input and id: the run's group of that event */
	struct arena names;
};

/* Behind the ids of an input's events. */
#define SLOT_UNKNOWN(in) ((size_t)(in)->n_known)
#define SLOT_LOSS(in)	 ((in)->n_known + 1)

static const char *parquet_machine_name(const struct input *in)
{
	return in->guest ? in->machine : "host";
}

/* NULL: no memory. */
static char *parquet_system_dir(const struct export_job *job, size_t input, const char *system,
				unsigned int id)
{
	const struct inputs *in = job->in;
	const char *machine = parquet_machine_name(&in->v[input]);
	bool taken = in->v[input].guest && !strcmp(machine, "host");
	struct buf own = { 0 }, dir = { 0 };

	/* a second one of a name, and a guest that is called host, get a number */
	for (size_t i = 0; i < input; i++)
		taken |= !strcmp(parquet_machine_name(&in->v[i]), machine);
	parquet_text_put(&own, machine, strlen(machine)); /* hashed as in tables */
	if (job->key)
		anonymize_text(job->key, &own, 0);
	if (taken)
		buf_printf(&own, "~%zu", input + 1);
	parquet_dir(&dir, "machine", buf_str(&own), (unsigned int)input);
	parquet_dir(&dir, "system", system, id);
	dir.bad |= own.bad;
	buf_release(&own);
	return (char *)buf_str(&dir);
}

/*
 * The file that the columns of an event join: one of that system that has no rows yet, and room for them, or
 * a new one. Takes the directory's name.
 */
static int parquet_file_find(struct parquet *p, char *dir, size_t fields, struct parquet_file **out)
{
	struct parquet_file *f;
	int ret = -ENOMEM;

	for (size_t i = 0; i < p->n_files && dir; i++) {
		*out = p->files[i];
		if (!(*out)->begun && !strcmp((*out)->dir, dir) &&
		    (*out)->n_columns + fields <= PARQUET_OWN + PARQUET_FIELDS_MAX) {
			free(dir);
			return 0;
		}
	}
	f = dir ? calloc(1, sizeof(*f)) : NULL;
	ret = f ? array_push(&p->files, &p->n_files, &f, sizeof(f)) : ret;
	if (ret) {
		free(dir);
		free(f);
		return ret;
	}
	*f = (struct parquet_file){ .dir = dir, .part = p->parts++ };
	*out = f;
	return parquet_file_events(f, p->job->key);
}

static int parquet_event_new(struct parquet *p, size_t input, size_t slot, struct parquet_rows **out)
{
	const struct input *in = &p->job->in->v[input];
	const struct known_event *known = input_event(in, (unsigned int)slot);
	const struct tep_event *event = known ? known->event : NULL;
	char *dir = parquet_system_dir(p->job, input, event ? event->system : NULL, (unsigned int)slot);
	size_t fields = slot == SLOT_LOSS(in) ? 0 : parquet_fields(event);
	struct parquet_file *f;
	int ret = parquet_file_find(p, dir, fields, &f);
	struct parquet_rows *r = ret ? NULL : calloc(1, sizeof(*r));

	if (!r || array_push(&p->events, &p->n, &r, sizeof(r))) {
		free(r);
		return ret ?: -ENOMEM;
	}
	*r = (struct parquet_rows){ .file = f, .own = PARQUET_OWN, .fields = f->n_columns };
	if (fields)
		ret = parquet_file_fields(f, event, p->job->key, &p->names);
	r->chunks = calloc(PARQUET_OWN + f->n_columns - r->fields, sizeof(*r->chunks));
	if (ret || !r->chunks)
		return ret ?: -ENOMEM;
	r->n_chunks = PARQUET_OWN + f->n_columns - r->fields;
	*out = r;
	return 0;
}

/* For another row group: a file of so many ends, and its next one begins another. */
static int parquet_file_room(struct parquet *p, struct parquet_file *f)
{
	int ret = 0;

	if (f->groups.len >= METADATA_MAX) {
		ret = parquet_file_end(f, p->out.fd);
		f->part = p->parts++;
	}
	return ret;
}

/* The rows so far become a row group of the file. */
static int parquet_flush(struct parquet *p, struct parquet_rows *r)
{
	int ret = parquet_behind_wait(&p->behind) ?: parquet_file_room(p, r->file);

	p->held -= r->bytes;
	return ret ?: parquet_behind_flush(&p->behind, r);
}

/* Records of an event in a run. */
struct parquet_group {
	size_t input, slot, n, end; /* end: in `order`, of those that are there so far */
};

/* A run's. */
struct parquet_run {
	struct buf ready; /* for print_begin() */
	struct print_record v[MERGE_RUN_MAX];
	uint32_t group[MERGE_RUN_MAX]; /* of each record */
	struct parquet_group groups[MERGE_RUN_MAX];
	size_t n, n_groups;
	/* records by groups, and the columns that all have */
	uint32_t order[MERGE_RUN_MAX];
	union value own[PARQUET_OWN][MERGE_RUN_MAX + 8]; /* columns that do not share sets of the cache */
};

static void parquet_run_free(void *own)
{
	struct parquet_run *r = own;

	buf_release(&r->ready);
	free(r);
}

/* Names of tasks are known, and learned, as report does it. */
static int parquet_before(void *ctx, struct pipeline_run *run)
{
	struct parquet *p = ctx;
	struct parquet_run *own = run->own = run->own ?: calloc(1, sizeof(*own));
	int ret = own ? export_tell(p->job) : -ENOMEM;

	if (ret)
		return ret;
	own->n = run->records.n;
	own->n_groups = own->ready.len = 0;
	p->run++;
	for (size_t i = 0; i < own->n && !ret; i++) {
		const struct merge_record *m = &run->records.v[i];
		struct print_record *r = &own->v[i];
		const struct input *in;
		struct parquet_met *met;
		size_t slot;

		ret = print_begin(p->print, p->job->timeline, m, r, &own->ready);
		p->job->records += m->len > 0;
		p->job->unknown += m->len && !r->event;
		in = &p->job->in->v[r->at->input];
		slot = !m->len ? SLOT_LOSS(in) : r->event ? r->id : SLOT_UNKNOWN(in);
		met = &p->met[r->at->input][slot];
		if (met->run != p->run) {
			*met = (struct parquet_met){ p->run, (uint32_t)own->n_groups };
			own->groups[own->n_groups++] = (struct parquet_group){ r->at->input, slot, 0, 0 };
		}
		own->group[i] = met->group;
		own->groups[met->group].n++;
	}
	return ret;
}

static union value parquet_number(bool known, uint64_t v)
{
	return (union value){ .number = known ? (int64_t)v : VALUE_NULL };
}

/* The columns that each event has. */
static int parquet_work(void *ctx, struct pipeline_run *run)
{
	const struct parquet *p = ctx;
	struct parquet_run *own = run->own;
	size_t at = 0;

	for (size_t g = 0; g < own->n_groups; at += own->groups[g++].n)
		own->groups[g].end = at;
	for (size_t i = 0; i < own->n; i++) {
		const struct print_record *r = &own->v[i];
		const struct input *in = &p->job->in->v[r->at->input];
		/* the host's times are its clock: its own are exact */
		uint64_t bound = in->guest || in->time.shift.cpus ? filetime_bound(&in->time, r->m->raw) : 0;
		uint64_t utc, utc_bound = bound;
		bool known = inputs_utc(p->job->in, in, r->m->ts, &utc, &utc_bound);
		const union value values[PARQUET_OWN] = {
			parquet_number(true, r->m->ts),
			parquet_number(true, r->at->cpu),
			parquet_number(r->event && r->pid >= 0, (uint64_t)r->pid),
			{ .text = r->event ? r->comm : NULL },
			{ .text = reader_info(in->reader)->buffers[r->at->buffer].name },
			parquet_number(r->m->missed, (uint64_t)r->m->missed),
			parquet_number(bound <= INT64_MAX, bound),
			parquet_number(known && utc <= INT64_MAX, utc),
			parquet_number(known && utc_bound <= INT64_MAX, utc_bound),
			{ .text = !r->m->len ? "lost"
				  : r->event ? r->event->event->name
					     : "unknown" },
		};

		at = own->groups[own->group[i]].end++;
		own->order[at] = (uint32_t)i;
		for (size_t k = 0; k < PARQUET_OWN; k++)
			own->own[k][at] = values[k];
	}
	return 0;
}

/* Adds up to VALUES_MAX rows of an event, from that place in the run's order on. */
static int parquet_add(struct parquet *p, struct parquet_rows *e, const struct parquet_run *own, size_t at,
		       size_t n)
{
	size_t bytes = 0, half;
	int ret = 0;

	for (size_t i = 0; i < PARQUET_OWN; i++)
		parquet_chunk_values(&e->chunks[i], &e->file->columns[i], &own->own[i][at], n);
	for (size_t i = PARQUET_OWN; i < e->n_chunks; i++)
		for (size_t k = at; k < at + n; k++)
			parquet_chunk_field(&e->chunks[i], parquet_rows_column(e, i),
					    own->v[own->order[k]].m);
	for (size_t k = at; k < at + n; k++)
		bytes += ROW_BYTES + 2 * own->v[own->order[k]].m->len;
	p->held += bytes;
	if (parquet_rows_full(e, n, bytes))
		ret = parquet_flush(p, e);
	/* rows of events that are at least half as many as the mean are at least half of all */
	half = p->held / p->n / 2;
	for (size_t i = 0; i < p->n && p->held > HELD_MAX && !ret; i++)
		if (p->events[i]->n && p->events[i]->bytes >= half)
			ret = parquet_flush(p, p->events[i]);
	return ret;
}

static int parquet_after(void *ctx, struct pipeline_run *run)
{
	struct parquet *p = ctx;
	const struct parquet_run *own = run->own;
	size_t at = 0;
	int ret = 0;

	for (size_t g = 0; g < own->n_groups && !ret; g++) {
		const struct parquet_group *group = &own->groups[g];
		struct parquet_rows **e = &p->slots[group->input][group->slot];

		ret = *e ? 0 : parquet_event_new(p, group->input, group->slot, e);
		for (size_t end = at + group->n; at < end && !ret;) {
			size_t n = end - at < VALUES_MAX ? end - at : VALUES_MAX;

			ret = parquet_add(p, *e, own, at, n);
			at += n;
		}
	}
	return ret;
}

static const struct pipeline_job parquet_job = {
	.before = parquet_before,
	.work = parquet_work,
	.after = parquet_after,
	.release = parquet_run_free,
};

/* Packs what is left of the events, by every core. */
static void parquet_pack_left(void *ctx, size_t worker)
{
	struct parquet *p = ctx;

	for (size_t i; (i = p->left++) < p->n;) {
		int ret = parquet_rows_pack(p->events[i], &p->behind.packers);

		if (ret)
			p->ret = ret;
	}
}

/* The files as far as they are not written. */
static int parquet_end(struct parquet *p)
{
	int ret = parquet_behind_wait(&p->behind);

	if (ret)
		return ret;
	workers_share(pipeline_workers(), parquet_pack_left, p);
	ret = p->ret;
	for (size_t i = 0; i < p->n_files && !ret; i++) {
		struct parquet_file *f = p->files[i];

		for (size_t e = 0; e < p->n && !ret; e++)
			if (p->events[e]->file == f && p->events[e]->n)
				ret = parquet_file_room(p, f)
					      ?: parquet_rows_write(p->events[e], p->out.fd,
								    &p->behind.packers);
		if (!ret && f->size)
			ret = parquet_file_end(f, p->out.fd);
	}
	return ret;
}

int export_parquet(struct export_job *job, const char *dir, const struct log *log)
{
	struct parquet p = { .job = job };
	int ret = outdir_open(&p.out, dir, log);

	if (ret)
		return ret;
	p.behind.output = p.out.fd;
	p.slots = inputs_table(job->in, 2, sizeof(**p.slots));
	p.met = inputs_table(job->in, 2, sizeof(**p.met));
	ret = p.slots && p.met ? print_open(&p.print, job->in, false) : -ENOMEM;
	ret = ret ?: pipeline_work(job->timeline, &parquet_job, &p);
	ret = ret ?: parquet_end(&p);
	parquet_behind_release(&p.behind);
	for (size_t i = 0; i < p.n; i++) {
		parquet_rows_release(p.events[i]);
		free(p.events[i]);
	}
	for (size_t i = 0; i < p.n_files; i++) {
		parquet_file_release(p.files[i]);
		free(p.files[i]);
	}
	free(p.events);
	free(p.files);
	free(p.slots);
	free(p.met);
	print_close(p.print);
	arena_release(&p.names);
	return outdir_close(&p.out, ret);
}
