// SPDX-License-Identifier: LGPL-2.1-or-later
/* Guests of all files by number, and the host threads that are theirs or work for them. */
#include "ask/latency/vcpu-map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cursor.h"

struct vcpu_map_guest {
	const char *name;
	uint64_t trace_id; /* 0: none */
};

/* A thread vhost-PID. */
struct vcpu_map_vhost {
	int64_t tid, owner;
};

struct vcpu_map_input {
	uint32_t guest; /* it is this one's file */
	uint32_t lone;
	uint32_t *named;	       /* by the file's GUEST options */
	struct vcpu_map_vhost *vhosts; /* by tid */
	size_t n_vhosts;
};

struct vcpu_map {
	const struct inputs *in;
	struct vcpu_map_input *v;
	struct vcpu_map_guest *guests;
	size_t n;
};

/* ---- guests ----------------------------------------------------------------------------- */

static int vcpu_map_add(struct vcpu_map *w, const char *name, uint64_t trace_id, uint32_t *number)
{
	struct vcpu_map_guest g = { name ? name : "", trace_id };

	for (size_t i = 0; i < w->n; i++)
		if (trace_id && w->guests[i].trace_id == trace_id) {
			*number = (uint32_t)i;
			return 0;
		}
	*number = (uint32_t)w->n;
	return array_push(&w->guests, &w->n, &g, sizeof(g));
}

/* ---- vhost ---------------------------------------------------------------------------------- */

static bool vcpu_map_below_tid(const void *entry, const void *tid)
{
	return ((const struct vcpu_map_vhost *)entry)->tid < *(const int64_t *)tid;
}

static int vcpu_map_by_tid(const void *a, const void *b)
{
	const struct vcpu_map_vhost *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* A line "1793 vhost-1781" of the file's tasks. */
static int vcpu_map_add_task(struct vcpu_map_input *v, const char *line, size_t len)
{
	char text[64], *end;
	struct vcpu_map_vhost task;

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

/* Adds the guests that a file names, and its vhost threads. */
static int vcpu_map_add_input(struct vcpu_map *w, size_t input)
{
	const struct input *in = &w->in->v[input];
	const struct dat_text *tasks = &reader_info(in->reader)->cmdlines;
	struct cursor c = cursor_at(tasks->data, tasks->len);
	struct vcpu_map_input *v = &w->v[input];
	const char *line;
	size_t len;
	int ret = 0;

	v->named = calloc(in->n_guests + 1, sizeof(*v->named));
	if (!v->named)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_guests && !ret; i++)
		ret = vcpu_map_add(w, in->guests[i].name, in->guests[i].trace_id, &v->named[i]);
	v->lone = in->n_guests == 1 ? v->named[0] : VCPU_MAP_NOBODY;
	while (!ret && cursor_line(&c, &line, &len))
		ret = vcpu_map_add_task(v, line, len);
	if (v->n_vhosts)
		qsort(v->vhosts, v->n_vhosts, sizeof(*v->vhosts), vcpu_map_by_tid);
	return ret;
}

/* ---- questions --------------------------------------------------------------------------------- */

size_t vcpu_map_guests(const struct vcpu_map *w)
{
	return w->n;
}

const char *vcpu_map_name(const struct vcpu_map *w, uint32_t guest)
{
	return w->guests[guest].name;
}

uint32_t vcpu_map_of_input(const struct vcpu_map *w, size_t input)
{
	return w->v[input].guest;
}

uint32_t vcpu_map_lone(const struct vcpu_map *w, size_t input)
{
	return w->v[input].lone;
}

uint32_t vcpu_map_vcpu(const struct vcpu_map *w, size_t input, int64_t tid, uint32_t *vcpu)
{
	const struct input *in = &w->in->v[input];
	const struct offset_guest *guest;
	const struct offset_vcpu *of = input_vcpu(in, tid, &guest);

	if (!of)
		return VCPU_MAP_NOBODY;
	*vcpu = of->cpu;
	return w->v[input].named[guest - in->guests];
}

int64_t vcpu_map_works_for(const struct vcpu_map *w, size_t input, int64_t tid)
{
	const struct vcpu_map_input *v = &w->v[input];
	size_t i = array_lower_bound(v->vhosts, v->n_vhosts, sizeof(*v->vhosts), vcpu_map_below_tid, &tid);

	return i < v->n_vhosts && v->vhosts[i].tid == tid ? v->vhosts[i].owner : tid;
}

/* ---- open and close ------------------------------------------------------------------------------ */

int vcpu_map_open(struct vcpu_map **out, const struct inputs *in)
{
	struct vcpu_map *w = calloc(1, sizeof(*w));
	int ret = -ENOMEM;

	if (!w)
		return ret;
	w->in = in;
	w->v = calloc(in->n + 1, sizeof(*w->v));
	if (!w->v)
		goto fail;
	for (size_t i = 0; i < in->n; i++) {
		ret = vcpu_map_add_input(w, i);
		if (ret)
			goto fail;
	}
	for (size_t i = 0; i < in->n; i++) {
		w->v[i].guest = VCPU_MAP_NOBODY;
		ret = in->v[i].guest ? vcpu_map_add(w, in->v[i].machine, in->v[i].trace_id, &w->v[i].guest)
				     : 0;
		if (ret)
			goto fail;
	}
	*out = w;
	return 0;
fail:
	vcpu_map_close(w);
	return ret;
}

void vcpu_map_close(struct vcpu_map *w)
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
