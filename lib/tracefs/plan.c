// SPDX-License-Identifier: LGPL-2.1-or-later
/* The plan of a recording: adds to its lists, and frees it. */
#include "tracefs/plan.h"
#include "util/array.h"
#include "util/opts.h"

#include <stdlib.h>
#include <string.h>

void event_plans_release(struct event_plan *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].define);
		free(v[i].filter);
		strlist_release(&v[i].triggers);
	}
	free(v);
}

static void buffer_plan_release(struct buffer_plan *b)
{
	event_plans_release(b->events, b->n_events);
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
		buffer_plan_release(&p->buffers[i]);
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
	free(p->start_on.event);
	free(p->start_on.filter);
	free(p->stop_on.event);
	free(p->stop_on.filter);
	free(p->dump_on.event);
	free(p->dump_on.filter);
	strlist_release(&p->notes);
	strlist_release(&p->rings);
	*p = (struct record_plan){ 0 };
}

struct buffer_plan *record_plan_add_buffer(struct record_plan *p, const char *name)
{
	struct buffer_plan *v = array_grow(p->buffers, p->n_buffers, sizeof(*v));

	if (!v)
		return NULL;
	p->buffers = v;
	v[p->n_buffers] = (struct buffer_plan){ .name = strdup(name), .max_graph_depth = -1 };
	return v[p->n_buffers].name ? &v[p->n_buffers++] : NULL;
}

/* The doorbells, in a buffer of their own; which of all writes they are, the kernel is told as they are
 * known. */
static int add_doorbells(struct record_plan *p)
{
	struct buffer_plan *b = NULL;

	for (size_t i = 1; i < p->n_buffers; i++)
		if (!strcmp(p->buffers[i].name, "hypertrace"))
			b = &p->buffers[i];
	if (!b)
		b = record_plan_add_buffer(p, "hypertrace");
	if (!b || !buffer_plan_add_event(b, "kvm:kvm_mmio", false))
		return -ENOMEM;
	if (!b->clock)
		b->clock = strdup("boot");
	return b->clock ? 0 : -ENOMEM;
}

int record_plan_hypertrace(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *p = ctx;
	const char *file = arg ? strchr(arg, '=') : NULL;
	int ret = 0;

	if (arg && (!file || file == arg || !file[1] || strpbrk(arg, "\t\n")))
		return opts_wrong(err, o, arg, "not GUEST=FILE");
	if (arg)
		ret = strlist_add(&p->rings, arg);
	if (!ret && !p->hypertrace)
		ret = add_doorbells(p);
	p->hypertrace = true;
	return ret;
}

struct guest_plan *record_plan_add_guest(struct record_plan *p, const char *spec)
{
	struct guest_plan *v = array_grow(p->guests, p->n_guests, sizeof(*v));

	if (!v)
		return NULL;
	p->guests = v;
	v[p->n_guests] = (struct guest_plan){ .spec = strdup(spec) };
	return v[p->n_guests].spec ? &v[p->n_guests++] : NULL;
}

void event_name_colon(char *name)
{
	char *slash = strchr(name, '/');

	if (slash && !strchr(name, ':'))
		*slash = ':';
}

struct event_plan *buffer_plan_add_event(struct buffer_plan *b, const char *name, bool negate)
{
	struct event_plan *v = array_grow(b->events, b->n_events, sizeof(*v));

	if (!v)
		return NULL;
	b->events = v;
	v[b->n_events] = (struct event_plan){ .name = strdup(name), .negate = negate };
	if (!v[b->n_events].name)
		return NULL;
	event_name_colon(v[b->n_events].name);
	return &v[b->n_events++];
}

int buffer_plan_move_event(struct buffer_plan *from, size_t i, struct buffer_plan *to)
{
	struct event_plan *e = &from->events[i];
	int ret = array_push(&to->events, &to->n_events, e, sizeof(*e));

	if (!ret)
		memmove(e, e + 1, (--from->n_events - i) * sizeof(*e));
	return ret;
}

bool event_name_is_hyp(const char *name)
{
	size_t len = strcspn(name, ":/");

	return name[len] &&
	       ((len == 3 && !strncmp(name, "hyp", 3)) || (len == 10 && !strncmp(name, "hypervisor", 10)));
}

struct buffer_plan *record_plan_hyp(struct record_plan *p)
{
	struct buffer_plan *b;

	for (size_t i = 0; i < p->n_buffers; i++)
		if (p->buffers[i].is_hyp)
			return &p->buffers[i];
	b = record_plan_add_buffer(p, "hyp");
	if (b)
		b->is_hyp = true;
	return b;
}

int record_plan_route(struct record_plan *p)
{
	for (size_t i = 0; i < p->buffers[0].n_events;) {
		const struct event_plan *e = &p->buffers[0].events[i];
		struct buffer_plan *hyp;

		if (e->define || !event_name_is_hyp(e->name)) {
			i++;
			continue;
		}
		hyp = record_plan_hyp(p);
		if (!hyp || buffer_plan_move_event(&p->buffers[0], i, hyp))
			return -ENOMEM;
	}
	return 0;
}

const char *record_plan_remote(const char *name)
{
	if (!strcmp(name, "hyp") || !strcmp(name, "hypervisor") || !strcmp(name, "remote:hypervisor"))
		return "hyp";
	return !strncmp(name, "remote:", 7) && name[7] ? name : NULL;
}
