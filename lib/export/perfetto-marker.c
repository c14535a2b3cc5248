// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spans that programs write into trace_marker: crosvm's by its Enter and Exit
 * lines, hypertrace's by events that a description calls X_start and X_end.
 * What overlaps in a thread is spread over lanes, tracks of the same name, for
 * slices of one track must nest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/crosvm.h"
#include "util/field.h"
#include "export/perfetto-priv.h"

#define THREADS_MAX 4096
#define LANES	    16

static const char *const kinds[] = { [PF_CROSVM] = "crosvm", [PF_HYPERTRACE] = "hypertrace" };

struct lane {
	uint64_t track; /* 0: not made yet */
	bool open;
	uint64_t id;   /* crosvm: of the span */
	char name[64]; /* hypertrace: what it is called, without "_start" */
};

/* What one thread does of one kind. */
struct thread {
	struct pf_item item; /* number: the thread; kind: enum pf_parent */
	struct lane lanes[LANES];
};

/* ---- threads and lanes ----------------------------------------------------------------- */

/* 0 with *out NULL when there are too many. */
static int get_thread(struct perfetto *pf, const struct timeline_record *r, enum pf_parent kind,
		      struct thread **out)
{
	*out = pf_map_find(&pf->threads, r->input, (unsigned int)r->pid, kind);
	if (*out || pf->threads.n == THREADS_MAX)
		return 0;
	*out = pf_map_add(&pf->threads, sizeof(**out), r->input, (unsigned int)r->pid, kind);
	return *out ? 0 : -ENOMEM;
}

static int lane_track(struct perfetto *pf, const struct thread *t, struct lane *l,
		      const struct timeline_record *r)
{
	const char *comm = timeline_comm(r), *name;
	int tid = (int)t->item.number, ret;
	uint64_t parent;

	if (l->track)
		return 0;
	ret = pf_parent(pf, t->item.input, 0, t->item.kind, kinds[t->item.kind], &parent);
	if (ret)
		return ret;
	name = arena_printf(&pf->arena, "%s %d", comm ? comm : "thread", tid);
	return pf_track(pf, t->item.input, parent, name, tid, &l->track);
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

static int begin_span(struct perfetto *pf, struct thread *t, const struct timeline_record *r, uint64_t id,
		      const char *key, const char *name, const struct pf_args *args)
{
	struct lane *l = free_lane(t);
	int ret;

	if (!l) /* ends of so many were lost that the first one is taken for ended */
		l = &t->lanes[0];
	ret = lane_track(pf, t, l, r);
	if (ret)
		return ret;
	if (l->open) {
		ret = pf_end(pf, t->item.input, l->track, r->ts);
		if (ret)
			return ret;
	}
	l->open = true;
	l->id = id;
	snprintf(l->name, sizeof(l->name), "%s", key);
	return pf_begin(pf, t->item.input, l->track, r->ts, kinds[t->item.kind], name, args);
}

static int mark_instant(struct perfetto *pf, struct thread *t, const struct timeline_record *r,
			const char *name, const struct pf_args *args)
{
	struct lane *l = free_lane(t);
	int ret;

	l = l ? l : &t->lanes[0];
	ret = lane_track(pf, t, l, r);
	return ret ? ret : pf_instant(pf, t->item.input, l->track, r->ts, kinds[t->item.kind], name, args);
}

static int end_span(struct perfetto *pf, struct thread *t, const struct timeline_record *r, uint64_t id,
		    const char *key, const char *name, const struct pf_args *args)
{
	struct lane *l = open_lane(t, id, key);

	if (!l) /* its begin was lost, or lies in another thread */
		return mark_instant(pf, t, r, name, args);
	l->open = false;
	return pf_end(pf, t->item.input, l->track, r->ts);
}

/* ---- crosvm ----------------------------------------------------------------------------- */

static int crosvm_span(struct perfetto *pf, const struct timeline_record *r, const struct crosvm_line *line)
{
	struct arena *a = &pf->arena;
	struct pf_args args = { .arena = a };
	struct thread *t;
	int ret = get_thread(pf, r, PF_CROSVM, &t);
	const char *name = arena_text(a, line->name.p, line->name.len);
	struct piece left = line->args, expr, value;

	if (ret || !t)
		return ret;
	if (line->category.p)
		pf_arg_text(&args, "category", line->category.p, line->category.len);
	pf_arg_u64(&args, "id", line->id);
	while (left.p && crosvm_arg(&left, &expr, &value))
		pf_arg_text(&args, arena_text(a, expr.p, expr.len), value.p, value.len);
	return line->enter ? begin_span(pf, t, r, line->id, "", name, &args)
			   : end_span(pf, t, r, line->id, "", name, &args);
}

/* ---- hypertrace --------------------------------------------------------------------------- */

/* Length of X in "X_start" (1), "X_end" (-1) or neither (0), by *way. */
static size_t span_name(const char *name, int *way)
{
	static const struct {
		const char *suffix;
		int way;
	} v[] = { { "_start", 1 }, { "_begin", 1 }, { "_enter", 1 },
		  { "_end", -1 },  { "_stop", -1 }, { "_exit", -1 } };
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		size_t n = strlen(v[i].suffix);

		if (len > n && !strcmp(name + len - n, v[i].suffix)) {
			*way = v[i].way;
			return len - n;
		}
	}
	*way = 0;
	return len;
}

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

static int hypertrace_span(struct perfetto *pf, const struct timeline_record *r,
			   const struct hypertrace_event *e)
{
	struct arena *a = &pf->arena;
	struct pf_args args = { .arena = a };
	struct thread *t;
	int ret = get_thread(pf, r, PF_HYPERTRACE, &t);
	const char *name = hypertrace_name(pf->desc, e);
	char *text, *key;
	size_t len;
	int way;

	if (ret || !t)
		return ret;
	if (!name && e->n_args)
		name = arena_printf(a, "%llu", (unsigned long long)e->arg[0]);
	hypertrace_args(pf, e, &args);
	text = arena_text(a, name ? name : HYPERTRACE_EVENT, 256);
	len = span_name(text, &way);
	key = arena_printf(a, "%.*s", (int)(len < 63 ? len : 63), text);
	if (way > 0)
		return begin_span(pf, t, r, 0, key, key, &args);
	if (way < 0)
		return end_span(pf, t, r, 0, key, text, &args);
	return mark_instant(pf, t, r, text, &args);
}

int pf_marker_record(struct perfetto *pf, const struct timeline_record *r)
{
	struct crosvm_line line;
	struct hypertrace_event e;
	const uint8_t *data;
	size_t n;

	if (strcmp(r->event->name, "print") || strcmp(r->event->system, "ftrace"))
		return 0;
	if (field_bytes(tep_find_field(r->event, "buf"), r->tep.data, (size_t)r->tep.size, &data, &n) != 1)
		return 0;
	n = strnlen((const char *)data, n);
	while (n && (data[n - 1] == '\n' || data[n - 1] == '\r'))
		n--;
	if (crosvm_line_parse((const char *)data, n, &line))
		return crosvm_span(pf, r, &line);
	if (hypertrace_line_parse((const char *)data, n, &e))
		return hypertrace_span(pf, r, &e);
	return 0;
}
