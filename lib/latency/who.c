// SPDX-License-Identifier: LGPL-2.1-or-later
/* Guests of all files by number, and the host threads that are theirs or work for them. */
#include "latency/who.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

struct who_guest {
	const char *name;
	uint64_t trace_id; /* 0: none */
};

/* A thread vhost-PID. */
struct who_vhost {
	int64_t tid, owner;
};

struct who_input {
	uint32_t guest; /* it is this one's file */
	uint32_t lone;
	uint32_t *named;	  /* by the file's GUEST options */
	struct who_vhost *vhosts; /* by tid */
	size_t n_vhosts;
};

struct who {
	const struct inputs *in;
	struct who_input *v;
	struct who_guest *guests;
	size_t n;
};

/* ---- guests ----------------------------------------------------------------------------- */

static int who_add(struct who *w, const char *name, uint64_t trace_id, uint32_t *number)
{
	struct who_guest g = { name ? name : "", trace_id };

	for (size_t i = 0; i < w->n; i++)
		if (trace_id && w->guests[i].trace_id == trace_id) {
			*number = (uint32_t)i;
			return 0;
		}
	*number = (uint32_t)w->n;
	return array_push(&w->guests, &w->n, &g, sizeof(g));
}

static int who_add_named(struct who *w, size_t input)
{
	const struct input *in = &w->in->v[input];
	struct who_input *v = &w->v[input];
	int ret = 0;

	v->named = calloc(in->n_guests + 1, sizeof(*v->named));
	if (!v->named)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_guests && !ret; i++)
		ret = who_add(w, in->guests[i].name, in->guests[i].trace_id, &v->named[i]);
	v->lone = in->n_guests == 1 ? v->named[0] : WHO_NOBODY;
	return ret;
}

/* ---- vhost ---------------------------------------------------------------------------------- */

static bool who_below_tid(const void *entry, const void *tid)
{
	return ((const struct who_vhost *)entry)->tid < *(const int64_t *)tid;
}

static int who_by_tid(const void *a, const void *b)
{
	const struct who_vhost *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* A line "1793 vhost-1781" of the file's tasks. */
static int who_add_task(struct who_input *v, const char *line, size_t len)
{
	char text[64], *end;
	struct who_vhost task;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, line, len);
	text[len] = '\0';
	task.tid = strtoll(text, &end, 10);
	if (end == text || strncmp(end, " vhost-", 7) || end[7] < '0' || end[7] > '9')
		return 0;
	task.owner = strtoll(end + 7, &end, 10);
	return *end ? 0 : array_push(&v->vhosts, &v->n_vhosts, &task, sizeof(task));
}

static int who_add_tasks(struct who *w, size_t input)
{
	const struct dat_text *tasks = &reader_info(w->in->v[input].reader)->cmdlines;
	struct cursor c = cursor_at(tasks->data, tasks->len);
	struct who_input *v = &w->v[input];
	const char *line;
	size_t len;
	int ret = 0;

	while (!ret && cursor_line(&c, &line, &len))
		ret = who_add_task(v, line, len);
	if (v->n_vhosts)
		qsort(v->vhosts, v->n_vhosts, sizeof(*v->vhosts), who_by_tid);
	return ret;
}

/* ---- questions --------------------------------------------------------------------------------- */

size_t who_guests(const struct who *w)
{
	return w->n;
}

const char *who_name(const struct who *w, uint32_t guest)
{
	return w->guests[guest].name;
}

uint32_t who_of_input(const struct who *w, size_t input)
{
	return w->v[input].guest;
}

uint32_t who_lone(const struct who *w, size_t input)
{
	return w->v[input].lone;
}

uint32_t who_vcpu(const struct who *w, size_t input, int64_t tid, uint32_t *vcpu)
{
	const struct input *in = &w->in->v[input];
	const struct offset_guest *guest;
	const struct offset_vcpu *of = input_vcpu(in, tid, &guest);

	if (!of)
		return WHO_NOBODY;
	*vcpu = of->cpu;
	return w->v[input].named[guest - in->guests];
}

int64_t who_works_for(const struct who *w, size_t input, int64_t tid)
{
	const struct who_input *v = &w->v[input];
	size_t i = array_lower_bound(v->vhosts, v->n_vhosts, sizeof(*v->vhosts), who_below_tid, &tid);

	return i < v->n_vhosts && v->vhosts[i].tid == tid ? v->vhosts[i].owner : tid;
}

/* ---- open and close ------------------------------------------------------------------------------ */

int who_open(struct who **out, const struct inputs *in)
{
	struct who *w = calloc(1, sizeof(*w));
	int ret = -ENOMEM;

	if (!w)
		return ret;
	w->in = in;
	w->v = calloc(in->n + 1, sizeof(*w->v));
	if (!w->v)
		goto fail;
	for (size_t i = 0; i < in->n; i++) {
		ret = who_add_named(w, i) ?: who_add_tasks(w, i);
		if (ret)
			goto fail;
	}
	for (size_t i = 0; i < in->n; i++) {
		w->v[i].guest = WHO_NOBODY;
		ret = in->v[i].guest ? who_add(w, in->v[i].machine, in->v[i].trace_id, &w->v[i].guest) : 0;
		if (ret)
			goto fail;
	}
	*out = w;
	return 0;
fail:
	who_close(w);
	return ret;
}

void who_close(struct who *w)
{
	if (!w)
		return;
	for (size_t i = 0; w->v && i < w->in->n; i++) {
		free(w->v[i].named);
		free(w->v[i].vhosts);
	}
	free(w->v);
	free(w->guests);
	free(w);
}
