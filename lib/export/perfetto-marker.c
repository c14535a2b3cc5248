// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spans that programs write into trace_marker: crosvm's by its Enter and Exit
 * lines, hypertrace's by events that a description calls X_start and X_end.
 * What overlaps in a thread is spread over lanes, tracks of the same name, for
 * slices of one track must nest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/mark-fields.h"
#include "decode/crosvm.h"
#include "util/field.h"
#include "export/perfetto-priv.h"

#define THREADS_MAX 4096
#define LANES	    16

static const char *const kinds[] = {
	[PF_CROSVM] = "crosvm", [PF_HYPERTRACE] = "hypertrace", [PF_CLIENTS] = "hypertrace"
};

struct lane {
	uint64_t track; /* 0: not made yet */
	bool open;
	uint64_t id;   /* crosvm: of the span */
	char name[64]; /* hypertrace: what it is called, without "_start" */
};

/* What one thread, or a guest's client, does of one kind. */
struct thread {
	struct pf_item item; /* number: the thread; kind: enum pf_parent */
	char *client;	     /* PF_CLIENTS: what it is called; the kept arena's */
	struct lane lanes[LANES];
};

/* ---- threads and lanes ----------------------------------------------------------------- */

/* NULL: there are too many. */
static struct thread *get_thread(struct perfetto *pf, const struct pf_record *r, enum pf_parent kind)
{
	struct thread *t = pf_map_find(&pf->threads, r->input, (unsigned int)r->pid, kind);

	if (t || pf->threads.n == THREADS_MAX)
		return t;
	t = pf_map_add(&pf->threads, sizeof(*t), r->input, (unsigned int)r->pid, kind);
	pf->bad |= !t;
	return t;
}

static void lane_track(struct perfetto *pf, const struct thread *t, struct lane *l)
{
	int tid = (int)t->item.number;
	const char *comm = pf_comm(pf, t->item.input, tid);
	uint64_t parent;

	if (l->track)
		return;
	parent = pf_parent(pf, t->item.input, 0, t->client ? PF_HYPERTRACE : t->item.kind,
			   kinds[t->item.kind]);
	l->track = pf_track(pf, t->item.input, parent,
			    t->client ?: arena_printf(&pf->arena, "%s %d", comm ? comm : "thread", tid), tid);
}

static struct lane *free_lane(struct thread *t)
{
	for (size_t i = 0; i < LANES; i++)
		if (!t->lanes[i].open)
			return &t->lanes[i];
	return NULL;
}

/* The latest of that name or id. */
static struct lane *open_lane(struct thread *t, uint64_t id, const char *name)
{
	for (size_t i = LANES; i-- > 0;) {
		struct lane *l = &t->lanes[i];

		if (l->open && l->id == id && !strcmp(l->name, name))
			return l;
	}
	return NULL;
}

/* ---- spans ---------------------------------------------------------------------------- */

static void begin_span(struct perfetto *pf, struct thread *t, uint64_t ts, uint64_t id, const char *key,
		       const char *name, const struct pf_args *args)
{
	struct lane *l = free_lane(t);

	if (!l) /* ends of so many were lost that the first one is taken for ended */
		l = &t->lanes[0];
	lane_track(pf, t, l);
	if (l->open)
		pf_end(pf, t->item.input, l->track, ts);
	l->open = true;
	l->id = id;
	snprintf(l->name, sizeof(l->name), "%s", key);
	pf_begin(pf, t->item.input, l->track, ts, kinds[t->item.kind], name, args);
}

static void mark_instant(struct perfetto *pf, struct thread *t, uint64_t ts, const char *name,
			 const struct pf_args *args)
{
	struct lane *l = free_lane(t);

	l = l ? l : &t->lanes[0];
	lane_track(pf, t, l);
	pf_instant(pf, t->item.input, l->track, ts, kinds[t->item.kind], name, args);
}

static void end_span(struct perfetto *pf, struct thread *t, uint64_t ts, uint64_t id, const char *key,
		     const char *name, const struct pf_args *args)
{
	struct lane *l = open_lane(t, id, key);

	if (!l) { /* its begin was lost, or lies in another thread */
		mark_instant(pf, t, ts, name, args);
		return;
	}
	l->open = false;
	pf_end(pf, t->item.input, l->track, ts);
}

/* ---- crosvm ----------------------------------------------------------------------------- */

static void crosvm_span(struct perfetto *pf, const struct pf_record *r, const struct crosvm_line *line)
{
	struct thread *t = get_thread(pf, r, PF_CROSVM);
	const char *name = arena_text(&pf->arena, line->name.p, line->name.len);
	struct piece left = line->args, expr, value;
	struct pf_args *args = pf_args(pf);

	if (!t)
		return;
	if (line->category.p)
		pf_arg_text(args, "category", line->category.p, line->category.len);
	pf_arg_u64(args, "id", line->id);
	while (left.p && crosvm_arg(&left, &expr, &value))
		pf_arg_text(args, arena_text(&pf->arena, expr.p, expr.len), value.p, value.len);
	if (line->enter)
		begin_span(pf, t, r->ts, line->id, "", name, args);
	else
		end_span(pf, t, r->ts, line->id, "", name, args);
}

/* ---- hypertrace --------------------------------------------------------------------------- */

static void hypertrace_args(struct perfetto *pf, const struct hypertrace_event *e, struct pf_args *args)
{
	struct buf value = { 0 };
	char number[24];

	if (e->has_client)
		pf_arg_u64(args, "client", e->client);
	if (e->has_cpu)
		pf_arg_hex(args, "cpu", e->cpu);
	for (size_t i = 1; i < e->n_args; i++) {
		const char *name;

		value.len = 0;
		name = hypertrace_arg(pf->desc, e, i, &value);
		snprintf(number, sizeof(number), "arg%zu", i + 1);
		if (buf_str(&value))
			pf_arg_text(args, name ? name : number, buf_str(&value), value.len);
	}
	buf_release(&value);
}

static void hypertrace_span(struct perfetto *pf, const struct pf_record *r, struct thread *t,
			    const struct hypertrace_event *e)
{
	const char *name = hypertrace_name(pf->desc, e);
	struct pf_args *args = pf_args(pf);
	struct arena *a = &pf->arena;
	char *text, *key;
	size_t len;
	int way;

	if (!t)
		return;
	if (!name && e->n_args)
		name = arena_printf(a, "%llu", (unsigned long long)e->arg[0]);
	hypertrace_args(pf, e, args);
	text = arena_text(a, name ? name : HYPERTRACE_EVENT, 256);
	len = hypertrace_span_name(text, &way);
	key = arena_printf(a, "%.*s", (int)(len < 63 ? len : 63), text);
	if (way > 0)
		begin_span(pf, t, r->ts, 0, key, key, args);
	else if (way < 0)
		end_span(pf, t, r->ts, 0, key, text, args);
	else
		mark_instant(pf, t, r->ts, text, args);
}

/* A guest's program goes from vCPU to vCPU, and stays the same client. */
static void mark_record(struct perfetto *pf, const struct pf_record *r)
{
	struct hypertrace_event e;
	struct pf_record client = *r;
	const char *guest;
	struct thread *t;
	uint64_t source;
	size_t n;

	if (!r->event->marks || !marks_load(r->event->marks, r->data, r->len, &e, &guest, &n))
		return;
	source = hypertrace_source(e.client, guest, n);
	client.pid = (int)(source ^ source >> 32);
	t = get_thread(pf, &client, PF_CLIENTS);
	if (t && !t->client)
		t->client = arena_printf(&pf->kept, "%s client %llu", arena_text(&pf->arena, guest, n),
					 (unsigned long long)e.client);
	hypertrace_span(pf, r, t, &e);
}

void pf_marker_record(struct perfetto *pf, const struct pf_record *r)
{
	struct crosvm_line line;
	struct hypertrace_event e;
	const uint8_t *data;
	size_t n;

	if (r->event->role == PF_MARK) {
		mark_record(pf, r);
		return;
	}
	if (field_load_bytes(&r->event->text, r->data, r->len, &data, &n) != 1)
		return;
	n = strnlen((const char *)data, n);
	while (n && (data[n - 1] == '\n' || data[n - 1] == '\r'))
		n--;
	if (crosvm_line_parse((const char *)data, n, &line))
		crosvm_span(pf, r, &line);
	else if (hypertrace_line_parse((const char *)data, n, &e))
		hypertrace_span(pf, r, get_thread(pf, r, PF_HYPERTRACE), &e);
}
