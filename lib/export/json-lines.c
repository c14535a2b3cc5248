// SPDX-License-Identifier: LGPL-2.1-or-later
/* hyptrace export --json: a line for each record, with what is the same in many of them made once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "read/pipeline.h"
#include "read/print.h"
#include "util/arena.h"
#include "util/field.h"
#include "util/json.h"

/* Of a line. */
struct part {
	const void *p;
	size_t len;
};

struct line_field {
	struct part key; /* `,"name":` */
	struct field_load load;
	struct field_load item; /* of an array */
	bool is_bool, is_text, is_signed;
};

/* How the records of an event are written, by its format. */
struct line_event {
	struct part head; /* `,"system":"sched","event":"sched_switch","fields":{` */
	size_t n;
	struct line_field v[];
};

struct line_input {
	struct line_event **events; /* by id */
	struct part *places;	    /* by buffer: `{"file":"trace.dat","guest":null,"buffer":"","cpu":` */
};

struct lines {
	struct export_job *job;
	struct print *print;
	struct line_input *v; /* by input */
	struct arena kept;
	struct buf scratch;
};

/* A run's. */
struct lines_run {
	struct buf ready; /* for print_fields */
	struct buf info;  /* of one record */
	size_t worker;	  /* who has it */
	size_t n;
	struct print_record v[MERGE_RUN_MAX];
};

/* ---- what is made once ------------------------------------------------------------- */

static struct part part_keep(struct lines *l)
{
	struct part part = { "", l->scratch.len };
	void *p = arena_alloc(&l->kept, part.len + 1);

	l->kept.bad |= l->scratch.bad;
	if (p && part.len)
		part.p = memcpy(p, l->scratch.data, part.len);
	return part;
}

static struct part place_new(struct lines *l, const struct input *in, const char *buffer)
{
	struct json json = { .out = &l->scratch, .compact = true };
	const char *base = strrchr(in->path, '/');

	l->scratch.len = 0;
	json_object(&json);
	json_key_str(&json, "file", base ? base + 1 : in->path);
	json_key_str(&json, "guest", in->guest ? in->machine : NULL);
	json_key_str(&json, "buffer", buffer);
	json_key(&json, "cpu");
	return part_keep(l);
}

static struct part key_new(struct lines *l, const char *name, bool first)
{
	l->scratch.len = 0;
	buf_addstr(&l->scratch, first ? "" : ",");
	json_quoted(&l->scratch, name, strlen(name));
	buf_addstr(&l->scratch, ":");
	return part_keep(l);
}

static struct part head_new(struct lines *l, const struct tep_event *e)
{
	struct buf *b = &l->scratch;

	b->len = 0;
	buf_addstr(b, ",\"system\":");
	json_quoted(b, e->system, strlen(e->system));
	buf_addstr(b, ",\"event\":");
	json_quoted(b, e->name, strlen(e->name));
	buf_addstr(b, ",\"fields\":{");
	return part_keep(l);
}

static struct line_field line_field_new(struct lines *l, const struct tep_format_field *f, bool first)
{
	struct line_field out = { .key = key_new(l, f->name, first),
				  .load = field_load(f),
				  .item = field_load_item(f),
				  .is_bool = !strcmp(f->type, "bool") || !strcmp(f->type, "_Bool"),
				  .is_text = f->flags & TEP_FIELD_IS_STRING,
				  .is_signed = f->flags & TEP_FIELD_IS_SIGNED };

	return out;
}

static struct line_event *line_event_new(struct lines *l, const struct tep_event *e)
{
	struct line_event *out;
	size_t n = 0;

	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		n++;
	out = arena_alloc(&l->kept, sizeof(*out) + n * sizeof(out->v[0]));
	if (!out)
		return NULL;
	out->head = head_new(l, e);
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		out->v[out->n] = line_field_new(l, f, !out->n);
		out->n++;
	}
	return out;
}

/* ---- fields --------------------------------------------------------------------- */

static void put_part(struct buf *out, struct part part)
{
	buf_add(out, part.p, part.len);
}

#define PUT(out, text) buf_add(out, text, sizeof(text) - 1)

/* Readers with numbers of 53 bits (jq, JavaScript) round wider ones: those of 64 are strings. */
static void put_integer(struct buf *out, const struct line_field *f, size_t size, uint64_t v)
{
	if (size == 8)
		PUT(out, "\"");
	if (f->is_signed)
		buf_add_i64(out, (int64_t)v);
	else
		buf_add_u64(out, v);
	if (size == 8)
		PUT(out, "\"");
}

static void put_array(struct buf *out, const struct line_field *f, const uint8_t *data, size_t n)
{
	PUT(out, "[");
	for (size_t i = 0; i + f->item.size <= n; i += f->item.size) {
		if (i)
			PUT(out, ",");
		put_integer(out, f, f->item.size, field_word(&f->item, data + i));
	}
	PUT(out, "]");
}

static void put_bytes(struct buf *out, const struct line_field *f, const struct merge_record *m)
{
	const uint8_t *data;
	size_t n;

	if (field_load_bytes(&f->load, m->data, m->len, &data, &n) != 1)
		PUT(out, "null");
	else if (f->is_text)
		json_quoted(out, (const char *)data, strnlen((const char *)data, n));
	else
		put_array(out, f, data, n);
}

static void put_field(struct buf *out, const struct line_field *f, const struct merge_record *m)
{
	uint64_t v;

	put_part(out, f->key);
	if (f->load.kind != FIELD_NUMBER)
		put_bytes(out, f, m);
	else if (!field_load_number(&f->load, m->data, m->len, &v))
		PUT(out, "null");
	else if (f->is_bool)
		buf_addstr(out, v ? "true" : "false");
	else
		put_integer(out, f, f->load.size, v);
}

/* ---- records -------------------------------------------------------------------- */

static void line_event_put(const struct lines *l, const struct print_record *r, struct lines_run *own,
			   struct buf *out)
{
	const struct line_event *e = l->v[r->at->input].events[r->id];
	struct buf *info = &own->info;

	put_part(out, e->head);
	for (size_t i = 0; i < e->n; i++)
		put_field(out, &e->v[i], r->m);
	PUT(out, "},\"info\":");
	info->len = 0;
	print_fields(l->print, r, &own->ready, own->worker, info);
	json_quoted(out, (const char *)info->data,
		    info->len ? strnlen((const char *)info->data, info->len) : 0);
}

static void line_unknown(const struct print_record *r, struct buf *out)
{
	PUT(out, ",\"system\":null,\"event\":null,\"id\":");
	buf_add_u64(out, r->id);
	PUT(out, ",\"data\":[");
	for (size_t i = 0; i < r->m->len; i++) {
		if (i)
			PUT(out, ",");
		buf_add_u64(out, r->m->data[i]);
	}
	PUT(out, "]");
}

/* Where it is from. */
static void line_place_put(const struct lines *l, const struct print_record *r, struct buf *out)
{
	put_part(out, l->v[r->at->input].places[r->at->buffer]);
	buf_add_u64(out, r->at->cpu);
	if (!r->m->missed)
		return;
	PUT(out, ",\"lost\":");
	if (r->m->missed < 0)
		PUT(out, "true");
	else
		buf_add_u64(out, (uint64_t)r->m->missed);
}

static void line_task(const struct print_record *r, struct buf *out)
{
	PUT(out, ",\"time\":");
	buf_add_u64(out, r->m->ts);
	PUT(out, ",\"pid\":");
	if (r->event && r->pid >= 0)
		buf_add_u64(out, (uint64_t)r->pid);
	else
		PUT(out, "null");
	PUT(out, ",\"comm\":");
	if (r->event && r->comm)
		json_quoted(out, r->comm, strlen(r->comm));
	else
		PUT(out, "null");
}

static void line_write(const struct lines *l, const struct print_record *r, struct lines_run *own,
		       struct buf *out)
{
	line_place_put(l, r, out);
	if (r->m->len) {
		line_task(r, out);
		if (r->event)
			line_event_put(l, r, own, out);
		else
			line_unknown(r, out);
	}
	PUT(out, "}\n");
}

/* ---- runs of them ------------------------------------------------------------------ */

static void lines_run_free(void *own)
{
	struct lines_run *r = own;

	buf_release(&r->ready);
	buf_release(&r->info);
	free(r);
}

static int lines_begin(struct lines *l, const struct merge_record *m, struct print_record *r,
		       struct buf *ready)
{
	struct line_event **e;
	int ret;

	l->job->records += m->len > 0;
	*r = (struct print_record){ .m = m, .at = timeline_stream(l->job->timeline, m) };
	if (!m->len)
		return 0;
	ret = print_begin(l->print, l->job->timeline, m, r, ready);
	if (ret)
		return ret;
	l->job->unknown += !r->event;
	if (!r->event)
		return 0;
	e = &l->v[r->at->input].events[r->id];
	if (!*e)
		*e = line_event_new(l, r->event->event);
	return *e && !l->kept.bad ? 0 : -ENOMEM;
}

static int lines_before(void *ctx, struct pipeline_run *run)
{
	struct lines *l = ctx;
	struct lines_run *own = run->own ? run->own : calloc(1, sizeof(*own));

	run->own = own;
	if (!own)
		return -ENOMEM;
	own->ready.len = own->n = 0;
	for (size_t i = 0; i < run->records.n; i++) {
		int ret;

		if (l->job->wanted && !l->job->wanted(l->job->wanted_ctx, &run->records, i))
			continue;
		ret = lines_begin(l, &run->records.v[i], &own->v[own->n++], &own->ready);
		if (ret)
			return ret;
	}
	export_tell(l->job);
	return buf_status(&own->ready);
}

static int lines_work(void *ctx, struct pipeline_run *run)
{
	struct lines_run *own = run->own;

	own->worker = run->worker;
	for (size_t i = 0; i < own->n; i++)
		line_write(ctx, &own->v[i], own, &run->out);
	return own->info.bad ? -ENOMEM : buf_status(&run->out);
}

static int lines_after(void *ctx, struct pipeline_run *run)
{
	const struct lines *l = ctx;

	return write_all(l->job->fd, run->out.data, run->out.len);
}

static const struct pipeline_job lines_job = {
	.before = lines_before,
	.work = lines_work,
	.after = lines_after,
	.release = lines_run_free,
};

/* ---- all of it ------------------------------------------------------------------------ */

static int lines_open_input(struct lines *l, size_t i)
{
	const struct input *in = &l->job->in->v[i];
	const struct reader_info *info = reader_info(in->reader);
	struct line_input *one = &l->v[i];

	one->events = calloc(in->n_known + 1, sizeof(*one->events));
	one->places = calloc(info->n_buffers + 1, sizeof(*one->places));
	if (!one->events || !one->places)
		return -ENOMEM;
	for (size_t b = 0; b < info->n_buffers; b++)
		one->places[b] = place_new(l, in, info->buffers[b].name);
	return l->kept.bad ? -ENOMEM : 0;
}

static int lines_open(struct lines *l)
{
	l->v = calloc(l->job->in->n + 1, sizeof(*l->v));
	if (!l->v)
		return -ENOMEM;
	for (size_t i = 0; i < l->job->in->n; i++) {
		int ret = lines_open_input(l, i);

		if (ret)
			return ret;
	}
	return print_open(&l->print, l->job->in, false);
}

static void lines_release(struct lines *l)
{
	for (size_t i = 0; l->v && i < l->job->in->n; i++) {
		free(l->v[i].events);
		free(l->v[i].places);
	}
	free(l->v);
	print_close(l->print);
	arena_release(&l->kept);
	buf_release(&l->scratch);
}

int export_json(struct export_job *job)
{
	struct lines l = { .job = job };
	int ret = lines_open(&l) ?: pipeline_work(job->timeline, &lines_job, &l);

	lines_release(&l);
	return ret;
}
