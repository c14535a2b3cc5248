// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events of a buffer: what a name of the plan stands for, filters, triggers, switches. */
#include "tracefs/instance-priv.h"
#include "util/array.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a name of the plan stands for: an event, or a whole system. */
struct match {
	char *system;
	char *event; /* NULL: the whole system */
};

struct matches {
	struct match *v;
	size_t n;
};

/* ---- matching ---------------------------------------------------------------- */

static void matches_release(struct matches *m)
{
	for (size_t n = 0; n < m->n; n++) {
		free(m->v[n].system);
		free(m->v[n].event);
	}
	free(m->v);
	*m = (struct matches){ 0 };
}

static int add_match(struct matches *m, const char *system, const char *event)
{
	struct match *v = array_grow(m->v, m->n, sizeof(*v)), *one;

	if (!v)
		return -ENOMEM;
	m->v = v;
	one = &v[m->n++];
	*one = (struct match){ .system = strdup(system), .event = event ? strdup(event) : NULL };
	return !one->system || (event && !one->event) ? -ENOMEM : 0;
}

static bool has_enable(const struct instance *i, const char *system, const char *event)
{
	char path[INSTANCE_PATH];

	return instance_has(i,
			    instance_file(i, path, "events/%s/%s%senable", system, event, *event ? "/" : ""));
}

/* The events of a system; without an enable file it is one of ftrace's own, for formats only. */
static int events_of(const struct instance *i, const char *system, struct strlist *out)
{
	char path[INSTANCE_PATH];
	int ret = read_dir_at(undo_dirfd(i->undo), instance_file(i, path, "events/%s", system), out);
	size_t kept = 0;

	for (size_t n = 0; n < out->n; n++) {
		if (has_enable(i, system, out->v[n]))
			out->v[kept++] = out->v[n];
		else
			free(out->v[n]);
	}
	out->n = kept;
	return ret;
}

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[");
}

static int match_events(const struct instance *i, const char *system, const char *pattern,
			struct matches *out)
{
	struct strlist events = { 0 };
	int ret;

	if (!is_glob(pattern))
		return has_enable(i, system, pattern) ? add_match(out, system, pattern) : 0;
	ret = events_of(i, system, &events);
	for (size_t n = 0; !ret && n < events.n; n++)
		if (!fnmatch(pattern, events.v[n], 0))
			ret = add_match(out, system, events.v[n]);
	strlist_release(&events);
	return ret;
}

/*
 * The grammar of trace-cmd: "all", "system:event" (an empty part is "*"), or a
 * name for systems as well as for events of the other systems; globs anywhere.
 */
static int match_name(const struct instance *i, const struct strlist *systems, const char *name,
		      struct matches *out)
{
	const char *colon = strchr(name, ':');
	char *system = strndup(name, colon ? (size_t)(colon - name) : strlen(name));
	const char *event = colon && colon[1] ? colon + 1 : "*";
	bool whole = !strcmp(event, "*");
	const char *pattern;
	int ret = 0;

	if (!system)
		return -ENOMEM;
	pattern = *system && strcmp(name, "all") ? system : "*";
	for (size_t n = 0; !ret && n < systems->n; n++) {
		bool hit = !fnmatch(pattern, systems->v[n], 0);

		if (hit && whole)
			ret = add_match(out, systems->v[n], NULL);
		else if (hit)
			ret = match_events(i, systems->v[n], event, out);
		else if (!colon)
			ret = match_events(i, systems->v[n], name, out);
	}
	free(system);
	return ret;
}

/* ---- filters and triggers ------------------------------------------------------ */

/* How it went with the events that one name stands for. */
struct tally {
	size_t done, refused;
	int ret; /* of the last one refused */
};

static void tally_add(struct tally *t, int ret)
{
	if (ret) {
		t->refused++;
		t->ret = ret;
	} else {
		t->done++;
	}
}

static int put_filter(struct instance *i, const char *system, const char *event, const char *filter)
{
	char path[INSTANCE_PATH];

	return undo_write(i->undo, instance_file(i, path, "events/%s/%s/filter", system, event), filter);
}

static int put_trigger(struct instance *i, const char *system, const char *event, const char *trigger)
{
	char path[INSTANCE_PATH];
	int ret = undo_add(i->undo, instance_file(i, path, "events/%s/%s/trigger", system, event), trigger);

	if (ret != -EEXIST)
		return ret;
	log_warn(i->o.log, "'%s' has a trigger like '%s' already", path, trigger);
	return 0;
}

typedef int put_fn(struct instance *i, const char *system, const char *event, const char *value);

/*
 * Not by the system's own filter file: its text belongs to all instances at
 * once, and would stay behind in the others.
 */
static int put_each(struct instance *i, const struct match *m, put_fn *put, const char *value,
		    struct tally *t)
{
	struct strlist events = { 0 };
	int ret;

	if (m->event) {
		tally_add(t, put(i, m->system, m->event, value));
		return 0;
	}
	ret = events_of(i, m->system, &events);
	for (size_t n = 0; !ret && n < events.n; n++)
		tally_add(t, put(i, m->system, events.v[n], value));
	strlist_release(&events);
	return ret;
}

/* Fields differ from event to event: enough that one of many takes it. */
static int put_everywhere(struct instance *i, const struct event_plan *e, const struct matches *m,
			  put_fn *put, const char *what, const char *value)
{
	struct tally t = { 0 };
	char path[INSTANCE_PATH];
	int ret = 0;

	for (size_t n = 0; !ret && n < m->n; n++)
		ret = put_each(i, &m->v[n], put, value, &t);
	if (ret || !t.refused)
		return ret;
	if (t.done) {
		log_warn(i->o.log, "-e %s: %zu of %zu events do not take the %s '%s'", e->name, t.refused,
			 t.refused + t.done, what, value);
		return 0;
	}
	instance_file(i, path, "events/%s%s%s/%s", m->v[0].system, m->v[0].event ? "/" : "",
		      m->v[0].event ? m->v[0].event : "", what);
	instance_complain(i, LOG_ERROR, path, value, t.ret, NULL);
	return t.ret;
}

/* ---- switching ------------------------------------------------------------------ */

static int switch_one(struct instance *i, const struct event_plan *e, const struct match *m, bool exact)
{
	const char *value = e->negate ? "0" : "1";
	char path[INSTANCE_PATH];
	bool grave;
	int ret;

	instance_file(i, path, "events/%s/%s%senable", m->system, m->event ? m->event : "",
		      m->event ? "/" : "");
	ret = undo_poke(i->undo, path, value);
	grave = exact || ret == -EACCES || ret == -EPERM || ret == -ENOMEM;
	if (ret)
		instance_complain(i, grave ? LOG_ERROR : LOG_WARN, path, value, ret, NULL);
	return grave ? ret : 0;
}

static int no_match(struct instance *i, const struct event_plan *e)
{
	bool go_on = i->o.plan->ignore_event_errors || i->o.plan->best_effort;
	enum log_level level = go_on ? LOG_WARN : LOG_ERROR;

	log_msg(i->o.log, level, "-e %s: no such event or system in %s%s (see trace-cmd list -e)", e->name,
		*i->buffer->name ? "the buffer " : "the top buffer", i->buffer->name);
	return go_on ? 0 : -ENOENT;
}

/* Filters and triggers come before the switch, so that no event slips past them. */
static int setup_one_event(struct instance *i, const struct strlist *systems, const struct event_plan *e)
{
	struct matches m = { 0 };
	bool path = strchr(e->name, '/'); /* "../kvm" would be found */
	int ret = path ? 0 : match_name(i, systems, e->name, &m);

	if (ret)
		goto out;
	if (!m.n) {
		ret = no_match(i, e);
		goto out;
	}
	if (e->filter && !e->negate)
		ret = put_everywhere(i, e, &m, put_filter, "filter", e->filter);
	for (size_t n = 0; !ret && n < e->triggers.n; n++)
		ret = put_everywhere(i, e, &m, put_trigger, "trigger", e->triggers.v[n]);
	for (size_t n = 0; !ret && n < m.n; n++)
		ret = switch_one(i, e, &m.v[n], m.n == 1 && m.v[n].event);
out:
	matches_release(&m);
	return ret;
}

static bool is_recordable(const struct instance *i, const char *system)
{
	return strcmp(system, "ftrace") && strcmp(system, INSTANCE_OWN_EVENTS) && has_enable(i, system, "");
}

static int list_systems(const struct instance *i, struct strlist *out)
{
	struct strlist all = { 0 };
	char path[INSTANCE_PATH];
	int ret = read_dir_at(undo_dirfd(i->undo), instance_file(i, path, "events"), &all);

	if (ret)
		log_err(i->o.log, "cannot list '%s': %s", path, strerror(-ret));
	for (size_t n = 0; !ret && n < all.n; n++)
		if (is_recordable(i, all.v[n]))
			ret = strlist_add(out, all.v[n]);
	strlist_release(&all);
	return ret;
}

/* As trace-cmd does: first all that is to be on, then what -v takes away again. */
int instance_setup_events(struct instance *i)
{
	const struct buffer_plan *b = i->buffer;
	struct strlist systems = { 0 };
	int ret = b->n_events ? list_systems(i, &systems) : 0;

	for (int negate = 0; negate < 2; negate++)
		for (size_t n = 0; !ret && n < b->n_events; n++)
			if (b->events[n].negate == negate)
				ret = setup_one_event(i, &systems, &b->events[n]);
	strlist_release(&systems);
	return ret;
}
