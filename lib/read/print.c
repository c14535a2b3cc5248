// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records as text: by a program for each event, or by libtraceevent where that cannot be. */
#include "read/print.h"

#include "read/text.h"

/* Way to print an event of an input. */
struct way {
	struct text_program *text; /* NULL: libtraceevent */
	const struct tep_format_field *named;
	char why[TEXT_WHY_MAX]; /* not */
};

struct print_input {
	const struct input *in;
	struct names names;
	struct way **ways; /* by id; NULL: not tried */
};

struct print {
	bool raw;
	struct print_input *v;
	size_t n;
	struct text_scratch own; /* for libtraceevent */
	struct text_scratch *workers;
	size_t n_workers;
};

int print_open(struct print **out, const struct inputs *in, bool raw)
{
	struct print *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->raw = raw;
	p->v = calloc(in->n + 1, sizeof(*p->v));
	p->workers = cache_lines_new(pipeline_workers(), sizeof(*p->workers));
	if (!p->v || !p->workers || text_scratch_init(&p->own))
		goto fail;
	for (; p->n_workers < pipeline_workers(); p->n_workers++)
		if (text_scratch_init(&p->workers[p->n_workers]))
			goto fail;
	for (; p->n < in->n; p->n++) {
		struct print_input *one = &p->v[p->n];

		one->in = &in->v[p->n];
		names_init(&one->names, one->in->tep);
		one->ways = calloc(one->in->n_known + 1, sizeof(*one->ways));
		if (!one->ways)
			goto fail;
	}
	*out = p;
	return 0;
fail:
	print_close(p);
	return -ENOMEM;
}

void print_close(struct print *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		for (size_t id = 0; id < p->v[i].in->n_known; id++) {
			text_free(p->v[i].ways[id] ? p->v[i].ways[id]->text : NULL);
			free(p->v[i].ways[id]);
		}
		free(p->v[i].ways);
		names_release(&p->v[i].names);
	}
	free(p->v);
	for (size_t i = 0; i < p->n_workers; i++)
		text_scratch_release(&p->workers[i]);
	free(p->workers);
	text_scratch_release(&p->own);
	free(p);
}

int print_begin(struct print *p, const struct timeline *t, const struct merge_record *m,
		struct print_record *r, struct buf *ready)
{
	struct trace_seq *s = &p->own.seq;
	const struct text_task *tasks;
	struct print_input *one;
	struct tep_record rec;
	struct way *w;
	uint64_t pid;
	int ret;

	*r = (struct print_record){ .m = m, .at = merge_stream(t->merge, m), .pid = -1 };
	if (!m->data)
		return 0;
	one = &p->v[r->at->input];
	r->event = timeline_event(t, m, &r->id);
	r->pid = timeline_pid(r->event ? &r->event->pid : &one->in->pid, m);
	r->comm = r->pid < 0 ? NULL : names_find(&one->names, r->pid);
	if (!r->event)
		return 0;
	if (!one->ways[r->id]) {
		w = calloc(1, sizeof(*w));
		ret = w ? -ENOTSUP : -ENOMEM;
		if (w && !p->raw)
			ret = text_compile(&w->text, r->event->event, w->why);
		if (ret == -ENOTSUP)
			ret = padded_init(&p->own.room) ?: tepfile_functions(one->in->tep);
		if (ret) {
			free(w);
			return ret;
		}
		w->named = w->text ? text_named(w->text) : NULL;
		one->ways[r->id] = w;
	}
	w = one->ways[r->id];
	if (!w->text) {
		names_learned(&one->names);
		rec = padded_record(&p->own.room, m->data, m->len);
		rec.ts = m->ts;
		rec.cpu = (int)r->at->cpu;
		if (rec.size < r->event->least)
			rec.size = r->event->least;
		trace_seq_reset(s);
		tep_print_event(r->event->event->tep, s, &rec, "%s",
				p->raw ? TEP_PRINT_INFO_RAW : TEP_PRINT_INFO);
		if (s->state != TRACE_SEQ__GOOD)
			return -ENOMEM;
		r->ready = true;
		r->text = (uint32_t)ready->len;
		r->text_len = s->len;
		buf_add(ready, s->buffer, s->len);
		return buf_status(ready);
	}
	if (w->named && field_number(w->named, m->data, m->len, &pid))
		r->named = names_find(&one->names, (int)pid);
	/* printing it makes its tasks known to those behind it */
	for (size_t i = 0, n = text_tasks(w->text, &tasks); i < n; i++) {
		const uint8_t *comm;
		size_t len;
		char name[256];

		if (!field_number(tasks[i].pid, m->data, m->len, &pid) || names_find(&one->names, (int)pid) ||
		    field_bytes(tasks[i].comm, m->data, m->len, &comm, &len) != 1)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, (const char *)comm);
		tep_register_comm(one->in->tep, name, (int)pid);
		names_learned(&one->names);
	}
	return 0;
}

void print_fields(const struct print *p, const struct print_record *r, const struct buf *ready, size_t worker,
		  struct buf *out)
{
	size_t from = out->len;

	if (r->ready)
		buf_add(out, ready->data + r->text, r->text_len);
	else if (r->event)
		text_print(p->v[r->at->input].ways[r->id]->text, r->m->data, r->m->len, r->named,
			   &p->workers[worker], out);
	else
		buf_printf(out, "[UNKNOWN EVENT %u]", r->id);
	if (out->len > from && out->data[out->len - 1] == '\n')
		out->len--;
}

void print_explain(const struct print *p, const struct log *log)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t id = 0; id < p->v[i].in->n_known; id++) {
			const struct way *w = p->v[i].ways[id];
			const struct tep_event *e = p->v[i].in->known[id].event;

			if (w && !w->text)
				log_info(log, "%s: libtraceevent prints %s:%s: %s", p->v[i].in->path,
					 e->system, e->name, p->raw ? "fields as numbers" : w->why);
		}
}
