// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which events of the hypervisor a command line names, and the files that switch them. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/remote-priv.h"

static bool is_system(const struct remote *r, const char *pattern)
{
	return !fnmatch(pattern, r->events.system, 0) ||
	       (r->hyp && (!fnmatch(pattern, "hyp", 0) || !fnmatch(pattern, "hypervisor", 0)));
}

/* Whether a command-line name takes in this event. */
static bool name_matches(const struct remote *r, const char *name, const char *event)
{
	const char *colon = strpbrk(name, ":/");
	char system[128];

	if (!strcmp(name, "all"))
		return true;
	if (!colon)
		return !fnmatch(name, event, 0) || (!strpbrk(name, "*?[") && is_system(r, name));
	if ((size_t)(colon - name) >= sizeof(system))
		return false;
	memcpy(system, name, (size_t)(colon - name));
	system[colon - name] = 0;
	return is_system(r, system) && (!colon[1] || !fnmatch(colon + 1, event, 0));
}

bool remote_has_event(const struct remote *r, const char *name)
{
	for (size_t i = 0; i < r->events.n; i++)
		if (name_matches(r, name, r->events.v[i].name))
			return true;
	return false;
}

int remote_wants(const struct remote *r, const struct buffer_plan *b, const char *event, int none)
{
	for (size_t i = b->n_events; i-- > 0;)
		if (name_matches(r, b->events[i].name, event))
			return !b->events[i].negate;
	return none;
}

int remote_undo_file(struct remote *r, int (*write)(struct undo *, const char *, const char *),
		     const char *name, const char *value)
{
	char *path = str_printf("%s/%s", r->path, name);
	int ret = path ? write(r->undo, path, value) : -ENOMEM;

	free(path);
	return ret;
}

int remote_switch(struct remote *r, const char *event, bool on)
{
	char name[300];
	int ret;

	snprintf(name, sizeof(name), "events/%s/%s/enable", r->events.system, event);
	ret = remote_undo_file(r, undo_write, name, on ? "1" : "0");
	if (ret)
		log_err(r->log, "cannot switch %s/%s: %s", r->path, name, errno_text(ret));
	return ret;
}
