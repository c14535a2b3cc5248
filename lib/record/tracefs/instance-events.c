// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events of a buffer: what a name of the plan stands for, filters, triggers, switches. */
#include "record/tracefs/dynamic.h"
#include "record/tracefs/instance-priv.h"

#include <fnmatch.h>

/* A name of the plan stands for a path below events/: an event ("kvm/kvm_exit"), or a system ("kvm"). */

static bool has_enable(const struct instance *i, const char *what)
{
	char path[INSTANCE_PATH];

	return instance_has(i, instance_file(i, path, "events/%s/enable", what));
}

/* Adds the events of a system; without an enable file it is one of ftrace's own, for formats only. */
static int events_of(const struct instance *i, const char *system, const char *glob, struct strlist *out)
{
	struct strlist names = { 0 };
	char path[INSTANCE_PATH];
	int ret = read_dir_at(undo_dirfd(i->undo), instance_file(i, path, "events/%s", system), &names);

	for (size_t n = 0; !ret && n < names.n; n++) {
		char *event;

		if (fnmatch(glob, names.v[n], 0))
			continue;
		event = str_printf("%s/%s", system, names.v[n]);
		if (!event)
			ret = -ENOMEM;
		else if (has_enable(i, event))
			ret = strlist_add(out, event);
		free(event);
	}
	strlist_release(&names);
	return ret;
}

static int match_events(const struct instance *i, const char *system, const char *pattern,
			struct strlist *out)
{
	char what[INSTANCE_PATH];

	if (strpbrk(pattern, "*?["))
		return events_of(i, system, pattern, out);
	snprintf(what, sizeof(what), "%s/%s", system, pattern);
	return has_enable(i, what) ? strlist_add(out, what) : 0;
}

/*
 * The grammar of trace-cmd: "all", "system:event" (an empty part is "*"), or a
 * name for systems as well as for events of the other systems; globs anywhere.
 */
static int match_name(const struct instance *i, const struct strlist *systems, const char *name,
		      struct strlist *out)
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
			ret = strlist_add(out, systems->v[n]);
		else if (hit)
			ret = match_events(i, systems->v[n], event, out);
		else if (!colon)
			ret = match_events(i, systems->v[n], name, out);
	}
	free(system);
	return ret;
}

/*
 * Fields differ from event to event: enough that one of many takes it. Not by
 * the system's own filter file: its text belongs to all instances at once, and would remain in the others.
 */
static int put_everywhere(struct instance *i, const struct event_plan *e, const struct strlist *matches,
			  bool trigger, const char *value)
{
	const char *what = trigger ? "trigger" : "filter";
	struct strlist events = { 0 };
	size_t refused = 0;
	char path[INSTANCE_PATH];
	int why = 0, ret = 0;

	for (size_t n = 0; !ret && n < matches->n; n++)
		ret = strchr(matches->v[n], '/') ? strlist_add(&events, matches->v[n])
						 : events_of(i, matches->v[n], "*", &events);
	if (ret)
		goto out;
	for (size_t n = 0; n < events.n; n++) {
		int (*put)(struct undo *, const char *, const char *) = trigger ? undo_add : undo_write;
		int one = put(i->undo, instance_file(i, path, "events/%s/%s", events.v[n], what), value);
		if (one == -EEXIST && trigger) {
			log_warn(i->o.log, "'%s' has a trigger like '%s' already", path, value);
			one = 0;
		}
		refused += one != 0;
		why = one ? one : why;
	}
	if (refused && refused < events.n) {
		log_warn(i->o.log, "-e %s: %zu of %zu events do not take the %s '%s'", e->name, refused,
			 events.n, what, value);
	} else if (refused) {
		instance_complain(i, LOG_ERROR, instance_file(i, path, "events/%s/%s", matches->v[0], what),
				  value, why, NULL);
		ret = why;
	}
out:
	strlist_release(&events);
	return ret;
}

int instance_make_events(struct undo *u, const struct buffer_plan *b, const struct log *log)
{
	struct instance top = { .undo = u, .path = (char *)".", .o = { .log = log } };
	size_t n_optional = 0, n_made = 0;
	for (size_t n = 0; n < b->n_events; n++) {
		const struct event_plan *e = &b->events[n];
		const char *event = e->define ? strchr(e->name, ':') + 1 : NULL;
		char path[INSTANCE_PATH];
		int ret = 0;

		if (event)
			snprintf(path, sizeof(path), "%.*s/%s", (int)(event - 1 - e->name), e->name, event);
		if (event && has_enable(&top, path))
			return log_fail(log, -EEXIST, "-e '%s': there is an event %s already", e->define,
					e->name);
		ret = event ? dynamic_event_make(u, e->define) : 0;
		if (ret)
			instance_complain(&top, e->optional ? LOG_INFO : LOG_ERROR, "dynamic_events",
					  e->define, ret, NULL);
		n_optional += e->define && e->optional;
		n_made += e->define && e->optional && !ret;
		if (ret && (!e->optional || ret == -EEXIST))
			return ret;
	}
	if (n_made || !n_optional)
		return 0;
	return log_fail(log, -ENOENT, "--preset: this kernel takes none of its probes");
}

/* Filters and triggers come before the switch, so that no event slips past them. */
static int setup_one_event(struct instance *i, const struct strlist *systems, const struct event_plan *e)
{
	struct strlist m = { 0 };
	bool path = strchr(e->name, '/'); /* "../kvm" would be found */
	int ret = path ? 0 : match_name(i, systems, e->name, &m);

	if (ret)
		goto out;
	if (!m.n) {
		bool go_on = i->o.plan->ignore_event_errors || i->o.plan->best_effort;

		ret = e->optional || go_on ? 0 : -ENOENT;
		if (!e->optional)
			log_msg(i->o.log, go_on ? LOG_WARN : LOG_ERROR,
				"-e %s: no such event or system in %s%s (see trace-cmd list -e)", e->name,
				*i->buffer->name ? "the buffer " : "the top buffer", i->buffer->name);
		goto out;
	}
	if (e->filter && !e->negate)
		ret = put_everywhere(i, e, &m, false, e->filter);
	for (size_t n = 0; !ret && n < e->triggers.n; n++)
		ret = put_everywhere(i, e, &m, true, e->triggers.v[n]);
	for (size_t n = 0; !ret && n < m.n; n++) {
		const char *value = e->negate ? "0" : "1";
		char file[INSTANCE_PATH];
		bool grave;

		ret = undo_poke(i->undo, instance_file(i, file, "events/%s/enable", m.v[n]), value);
		grave = (m.n == 1 && strchr(m.v[n], '/')) || ret == -EACCES || ret == -EPERM ||
			ret == -ENOMEM;
		if (ret)
			instance_complain(i, grave ? LOG_ERROR : LOG_WARN, file, value, ret, NULL);
		ret = grave ? ret : 0;
	}
out:
	strlist_release(&m);
	return ret;
}

/* As trace-cmd does: first all that is to be on, then what -v takes away again. */
int instance_setup_events(struct instance *i)
{
	const struct buffer_plan *b = i->buffer;
	struct strlist all = { 0 }, systems = { 0 };
	char path[INSTANCE_PATH];
	int ret;

	if (!b->n_events)
		return 0;
	ret = read_dir_at(undo_dirfd(i->undo), instance_file(i, path, "events"), &all);
	if (ret)
		log_err(i->o.log, "cannot list '%s': %s", path, strerror(-ret));
	for (size_t n = 0; !ret && n < all.n; n++)
		if (strcmp(all.v[n], "ftrace") && strcmp(all.v[n], INSTANCE_OWN_EVENTS) &&
		    has_enable(i, all.v[n]))
			ret = strlist_add(&systems, all.v[n]);
	strlist_release(&all);
	for (int negate = 0; negate < 2; negate++)
		for (size_t n = 0; !ret && n < b->n_events; n++)
			if (b->events[n].negate == negate)
				ret = setup_one_event(i, &systems, &b->events[n]);
	strlist_release(&systems);
	return ret;
}
