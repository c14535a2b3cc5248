// SPDX-License-Identifier: LGPL-2.1-or-later
/* The chain of causes, link by link. */
#include "path/path.h"

#include <errno.h>
#include <stdlib.h>

#include "path/path-priv.h"

#define PATH_LINKS 1000

int path_find(struct path *p, const struct path_window *w, const struct inputs *in,
	      const struct path_moment *m)
{
	struct path_search s = { .w = w,
				 .in = in,
				 .path = p,
				 .now = m->ts,
				 .edge = path_no_row(m->input, m->ts),
				 .input = m->input,
				 .cpu = m->cpu,
				 .pid = m->pid,
				 .flags = m->flags,
				 .runs = m->runs,
				 .pos = path_window_behind(w, m->nr) };

	s.edge.bound = m->bound;
	s.edge.guest = in->v[m->input].guest;
	if (!s.pid && !s.flags)
		path_stop(&s, PATH_IDLE, NULL, "CPU %u was idle", s.cpu);
	for (size_t links = 0; p->end == PATH_OPEN; links++) {
		if (links > PATH_LINKS) /* foreign times can make a circle */
			path_stop(&s, PATH_UNKNOWN, NULL, "its events contradict each other");
		if (s.flags || !s.pid)
			path_interrupt(&s);
		else
			path_task(&s);
	}
	for (size_t i = 0; i < p->n; i++)
		path_exits(&s, &p->v[i]);
	return s.bad ? -ENOMEM : 0;
}

void path_release(struct path *p)
{
	free(p->v);
	*p = (struct path){ 0 };
}

const char *path_state_name(enum path_state state)
{
	static const char *const names[PATH_STATES] = {
		[PATH_RUNS] = "runs",
		[PATH_RUNNABLE] = "runnable",
		[PATH_ASLEEP] = "asleep",
		[PATH_PENDING] = "irq pending",
		[PATH_SOFTIRQ_PENDING] = "softirq",
		[PATH_HANDLES] = "handles",
	};

	return names[state];
}

const char *path_end_name(enum path_end end)
{
	static const char *const names[PATH_ENDS] = {
		[PATH_OPEN] = "open",
		[PATH_INTERRUPT] = "interrupt",
		[PATH_OWN] = "own",
		[PATH_UNDER_WAY] = "under way",
		[PATH_PREEMPTED] = "preempted",
		[PATH_BEGAN] = "began",
		[PATH_IDLE] = "idle",
		[PATH_UNKNOWN] = "unknown",
		[PATH_UNDECIDED] = "undecided",
		[PATH_LONG] = "long",
	};

	return names[end];
}
