// SPDX-License-Identifier: GPL-2.0-only
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A request may name all of the kernel's events many times over. */
#define EVENTS_MAX 8192

/* trace-cmd's grammar for events: "all", "system:event", or a name for both. */
static bool matches(const char *pattern, const char *system, const char *event)
{
	const char *colon = strchr(pattern, ':');
	char head[128];
	size_t len = colon ? (size_t)(colon - pattern) : 0;

	if (!strcmp(pattern, "all"))
		return true;
	if (!colon)
		return !fnmatch(pattern, system, 0) || !fnmatch(pattern, event, 0);
	if (len >= sizeof(head))
		return false;
	memcpy(head, pattern, len);
	head[len] = 0;
	return (!len || !fnmatch(head, system, 0)) && (!colon[1] || !fnmatch(colon + 1, event, 0));
}

static bool allowed(const struct strlist *allow, const char *system, const char *event)
{
	for (size_t i = 0; i < allow->n; i++)
		if (matches(allow->v[i], system, event))
			return true;
	return false;
}

struct narrow {
	const struct strlist *allow;
	const struct buffer_plan *old;
	struct event_plan *v;
	size_t n;
	size_t dropped;
};

static int add_event(struct narrow *nw, const struct event_plan *e, const char *system, const char *event)
{
	struct event_plan *v, *one;
	int ret = 0;

	if (nw->n == EVENTS_MAX)
		return -E2BIG;
	v = realloc(nw->v, (nw->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	nw->v = v;
	one = &v[nw->n++];
	*one = (struct event_plan){ .name = str_printf("%s:%s", system, event), .negate = e->negate };
	if (e->filter)
		one->filter = strdup(e->filter);
	for (size_t i = 0; i < e->triggers.n && !ret; i++)
		ret = strlist_add(&one->triggers, e->triggers.v[i]);
	return ret || !one->name || (e->filter && !one->filter) ? -ENOMEM : 0;
}

static int each_event(struct narrow *nw, const char *system, const char *event)
{
	int ret = 0;

	for (size_t i = 0; i < nw->old->n_events && !ret; i++) {
		const struct event_plan *e = &nw->old->events[i];

		if (!matches(e->name, system, event))
			continue;
		if (allowed(nw->allow, system, event))
			ret = add_event(nw, e, system, event);
		else if (!e->negate)
			nw->dropped++;
	}
	return ret;
}

static int each_system(struct narrow *nw, int dirfd, const char *system)
{
	char *path = str_printf("events/%s", system);
	DIR *d = path ? open_dir_at(dirfd, path) : NULL;
	struct dirent *de;
	int ret = path ? 0 : -ENOMEM;

	while (!ret && d && (de = readdir(d)))
		if (de->d_name[0] != '.' && de->d_type == DT_DIR)
			ret = each_event(nw, system, de->d_name);
	if (d)
		closedir(d);
	free(path);
	return ret;
}

static int each(struct narrow *nw, int dirfd)
{
	DIR *d = open_dir_at(dirfd, "events");
	struct dirent *de;
	int ret = 0;

	if (!d)
		return -errno;
	while (!ret && (de = readdir(d)))
		if (de->d_name[0] != '.' && de->d_type == DT_DIR)
			ret = each_system(nw, dirfd, de->d_name);
	closedir(d);
	return ret;
}

static void release(struct event_plan *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].filter);
		strlist_release(&v[i].triggers);
	}
	free(v);
}

/* Those that cannot switch on another event. */
static bool tame_trigger(const char *t)
{
	static const char *const names[] = { "traceon", "traceoff", "stacktrace", "snapshot" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(t, names[i], strlen(names[i])) && !strstr(t, "event"))
			return true;
	return false;
}

/* Ways around a list of events. */
static const char *way_around(const struct buffer_plan *b)
{
	if ((b->tracer && strcmp(b->tracer, "nop")) || b->funcs.n || b->graph.n || b->notrace.n)
		return "only events are allowed here, no tracer";
	for (size_t i = 0; i < b->n_events; i++)
		for (size_t n = 0; n < b->events[i].triggers.n; n++)
			if (!tame_trigger(b->events[i].triggers.v[n]))
				return "this trigger is not allowed here";
	return NULL;
}

int allow_apply(const struct strlist *allow, int dirfd, struct buffer_plan *b, const struct log *log,
		char **why)
{
	struct narrow nw = { .allow = allow, .old = b };
	const char *way;
	int ret;

	if (!allow->n)
		return 0;
	way = way_around(b);
	ret = way ? -EACCES : each(&nw, dirfd);
	if (!ret && b->n_events && !nw.n) {
		way = "none of these events is allowed here";
		ret = -EACCES;
	}
	if (way)
		*why = strdup(way);
	if (ret) {
		release(nw.v, nw.n);
		return ret;
	}
	if (nw.dropped)
		log_warn(log, "%zu events of the request are not allowed and left out", nw.dropped);
	release(b->events, b->n_events);
	b->events = nw.v;
	b->n_events = nw.n;
	return 0;
}
