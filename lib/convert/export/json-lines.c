// SPDX-License-Identifier: LGPL-2.1-or-later
/* hyptrace export --json: a line for each record, with what is the same in many of them made once. */
#include "convert/export/export.h"
#include "read/print.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/files.h"

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

/* The parts of an event's lines, by its format. */
struct line_event {
	struct part head; /* `,"system":"sched","event":"sched_switch","fields":{` */
	size_t n;
	struct line_field v[];
};

struct lines {
	struct export_job *job;
	struct print *print;
	struct line_event ***events; /* by input and id */
	struct part **places; /* by input and buffer: `{"file":"trace.dat","guest":null,"buffer":"","cpu":` */
	struct arena kept;
	struct buf scratch;
};

/* A run's. */
struct lines_run {
	struct buf ready; /* for print_fields */
	struct buf info;  /* of one record */
	size_t worker;	  /* the thread that has it */
	size_t n;
	struct print_record v[MERGE_RUN_MAX];
};

static struct part part_keep(struct lines *l)
{
	struct part part = { "", l->scratch.len };
	void *p = arena_alloc(&l->kept, part.len + 1);

	l->kept.bad |= l->scratch.bad;
	if (p && part.len)
		part.p = memcpy(p, l->scratch.data, part.len);
	return part;
}

static struct line_event *line_event_new(struct lines *l, const struct tep_event *e)
{
	struct buf *b = &l->scratch;
	struct line_event *out =
		arena_alloc(&l->kept, sizeof(*out) + (size_t)e->format.nr_fields * sizeof(out->v[0]));

	if (!out)
		return NULL;
	b->len = 0;
	buf_addstr(b, ",\"system\":");
	json_quoted(b, e->system, strlen(e->system));
	buf_addstr(b, ",\"event\":");
	json_quoted(b, e->name, strlen(e->name));
	buf_addstr(b, ",\"fields\":{");
	out->head = part_keep(l);
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		b->len = 0;
		buf_addstr(b, out->n ? "," : "");
		json_quoted(b, f->name, strlen(f->name));
		buf_addstr(b, ":");
		out->v[out->n] =
			(struct line_field){ .key = part_keep(l),
					     .load = field_load(f),
					     .item = field_load_item(f),
					     .is_bool = !strcmp(f->type, "bool") || !strcmp(f->type, "_Bool"),
					     .is_text = f->flags & TEP_FIELD_IS_STRING,
					     .is_signed = f->flags & TEP_FIELD_IS_SIGNED };
		out->n++;
	}
	return out;
}

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

static void put_field(struct buf *out, const struct line_field *f, const struct merge_record *m)
{
	bool is_number = f->load.kind == FIELD_NUMBER;
	const uint8_t *data;
	uint64_t v;
	size_t n;

	put_part(out, f->key);
	if (is_number ? !field_load_number(&f->load, m->data, m->len, &v)
		      : field_load_bytes(&f->load, m->data, m->len, &data, &n) != 1) {
		PUT(out, "null");
	} else if (is_number && f->is_bool) {
		buf_addstr(out, v ? "true" : "false");
	} else if (is_number) {
		put_integer(out, f, f->load.size, v);
	} else if (f->is_text) {
		json_quoted(out, (const char *)data, strnlen((const char *)data, n));
	} else {
		PUT(out, "[");
		for (size_t i = 0; i + f->item.size <= n; i += f->item.size) {
			if (i)
				PUT(out, ",");
			put_integer(out, f, f->item.size, field_word(&f->item, data + i));
		}
		PUT(out, "]");
	}
}

static void line_write(const struct lines *l, const struct print_record *r, struct lines_run *own,
		       struct buf *out)
{
	struct buf *info = &own->info;

	put_part(out, l->places[r->at->input][r->at->buffer]);
	buf_add_u64(out, r->at->cpu);
	if (r->m->missed > 0) {
		PUT(out, ",\"lost\":");
		buf_add_u64(out, (uint64_t)r->m->missed);
	} else if (r->m->missed) {
		PUT(out, ",\"lost\":true");
	}
	if (r->m->len) {
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
		if (r->event) {
			const struct line_event *e = l->events[r->at->input][r->id];

			put_part(out, e->head);
			for (size_t i = 0; i < e->n; i++)
				put_field(out, &e->v[i], r->m);
			PUT(out, "},\"info\":");
			info->len = 0;
			print_fields(l->print, r, &own->ready, own->worker, info);
			json_quoted(out, (const char *)info->data,
				    info->len ? strnlen((const char *)info->data, info->len) : 0);
		} else {
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
	}
	PUT(out, "}\n");
}

static void lines_run_free(void *own)
{
	struct lines_run *r = own;

	buf_release(&r->ready);
	buf_release(&r->info);
	free(r);
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
		const struct merge_record *m = &run->records.v[i];
		struct print_record *r = &own->v[own->n];
		struct line_event **e;
		int ret;

		if (l->job->wanted && !l->job->wanted(l->job->wanted_ctx, &run->records, i))
			continue;
		own->n++;
		ret = print_begin(l->print, l->job->timeline, m, r, &own->ready);
		if (ret)
			return ret;
		l->job->records += m->len > 0;
		l->job->unknown += m->len && !r->event;
		if (!r->event)
			continue;
		e = &l->events[r->at->input][r->id];
		if (!*e)
			*e = line_event_new(l, r->event->event);
		if (!*e || l->kept.bad)
			return -ENOMEM;
	}
	return export_tell(l->job) ?: buf_status(&own->ready);
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

int export_json(struct export_job *job)
{
	struct lines l = { .job = job };
	int ret;

	l.events = inputs_table(job->in, 0, sizeof(**l.events));
	l.places = calloc(job->in->n + 1, sizeof(*l.places));
	ret = l.events && l.places ? 0 : -ENOMEM;
	for (size_t i = 0; i < job->in->n && !ret; i++) {
		const struct input *in = &job->in->v[i];
		const struct reader_info *info = reader_info(in->reader);

		l.places[i] = calloc(info->n_buffers + 1, sizeof(**l.places));
		for (size_t b = 0; l.places[i] && b < info->n_buffers; b++) {
			struct json json = { .out = &l.scratch, .compact = true };

			l.scratch.len = 0;
			json_object(&json);
			json_key_str(&json, "file", basename(in->path));
			json_key_str(&json, "guest", in->guest ? in->machine : NULL);
			json_key_str(&json, "buffer", info->buffers[b].name);
			json_key(&json, "cpu");
			l.places[i][b] = part_keep(&l);
		}
		ret = !l.places[i] || l.kept.bad ? -ENOMEM : 0;
	}
	ret = ret ?: print_open(&l.print, job->in, false) ?: pipeline_work(job->timeline, &lines_job, &l);
	for (size_t i = 0; l.places && i < job->in->n; i++)
		free(l.places[i]);
	free(l.places);
	free(l.events);
	print_close(l.print);
	arena_release(&l.kept);
	buf_release(&l.scratch);
	return ret;
}
