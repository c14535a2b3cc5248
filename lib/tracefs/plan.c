// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tracefs/plan.h"

#include <stdlib.h>
#include <string.h>

static void buffer_release(struct buffer_plan *b)
{
	for (size_t i = 0; i < b->n_events; i++) {
		free(b->events[i].name);
		free(b->events[i].filter);
		strlist_release(&b->events[i].triggers);
	}
	free(b->events);
	strlist_release(&b->funcs);
	strlist_release(&b->notrace);
	strlist_release(&b->graph);
	strlist_release(&b->options);
	free(b->name);
	free(b->tracer);
	free(b->clock);
	free(b->cpumask);
}

void record_plan_release(struct record_plan *p)
{
	for (size_t i = 0; i < p->n_buffers; i++)
		buffer_release(&p->buffers[i]);
	free(p->buffers);
	for (size_t i = 0; i < p->n_guests; i++) {
		free(p->guests[i].spec);
		free(p->guests[i].name);
		strlist_release(&p->guests[i].args);
	}
	free(p->guests);
	strlist_release(&p->pids);
	free(p->output);
	free(p->user);
	free(p->compression);
	*p = (struct record_plan){ 0 };
}

struct buffer_plan *record_plan_add_buffer(struct record_plan *p, const char *name)
{
	struct buffer_plan *v = realloc(p->buffers, (p->n_buffers + 1) * sizeof(*v));
	struct buffer_plan b = { .max_graph_depth = -1 };

	if (!v)
		return NULL;
	p->buffers = v;
	b.name = strdup(name);
	if (!b.name)
		return NULL;
	v[p->n_buffers] = b;
	return &v[p->n_buffers++];
}

struct guest_plan *record_plan_add_guest(struct record_plan *p, const char *spec)
{
	struct guest_plan *v = realloc(p->guests, (p->n_guests + 1) * sizeof(*v));

	if (!v)
		return NULL;
	p->guests = v;
	v[p->n_guests] = (struct guest_plan){ .spec = strdup(spec) };
	return v[p->n_guests].spec ? &v[p->n_guests++] : NULL;
}
