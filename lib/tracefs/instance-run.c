// SPDX-License-Identifier: LGPL-2.1-or-later
/* A buffer that is ready: whose tasks it records, its start and stop, and what it holds. */
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATS_MAX     (64u << 10)
#define SET_EVENT_MAX (16u << 20)

/* ---- pids -------------------------------------------------------------------- */

/* For what only some kernels have. */
static bool has_file(const struct instance *i, const char *file)
{
	char path[INSTANCE_PATH];

	return instance_has(i, instance_file(i, path, "%s", file));
}

int instance_hide_pids(struct instance *i, const char *pids)
{
	static const char *const files[] = { "set_event_notrace_pid", "set_ftrace_notrace_pid" };
	size_t n_files = i->buffer->tracer ? 2 : 1;
	int ret = 0;

	for (size_t n = 0; !ret && n < n_files; n++)
		if (has_file(i, files[n]))
			ret = instance_put_list(i, files[n], pids);
	return ret;
}

int instance_set_pids(struct instance *i, const pid_t *pids, size_t n)
{
	struct buf list = { 0 };
	int ret;

	for (size_t p = 0; p < n; p++)
		buf_printf(&list, "%d\n", pids[p]);
	ret = buf_str(&list) ? 0 : -ENOMEM;
	if (ret)
		goto out;
	/* first: a child must not slip out between the two */
	if (i->o.plan->follow_children)
		ret = instance_put_file(i, "options/event-fork", "1");
	if (!ret && i->o.plan->follow_children && has_file(i, "options/function-fork"))
		ret = instance_put_file(i, "options/function-fork", "1");
	if (ret)
		goto out;
	ret = instance_put_list(i, "set_event_pid", buf_str(&list));
	if (!ret && has_file(i, "set_ftrace_pid"))
		ret = instance_put_list(i, "set_ftrace_pid", buf_str(&list));
out:
	buf_release(&list);
	return ret;
}

/* ---- running ------------------------------------------------------------------ */

int instance_start(struct instance *i)
{
	int ret = instance_begin_region(i);

	return ret || i->o.plan->start_on.event ? ret : instance_put_file(i, "tracing_on", "1");
}

/* Not journalled: at the end tracing_on goes back through the entries of start and setup. */
int instance_stop(struct instance *i)
{
	char path[INSTANCE_PATH];
	int ret = undo_poke(i->undo, instance_file(i, path, "tracing_on"), "0");

	if (i->begins) {
		instance_end_region(i);
		ret = undo_poke(i->undo, path, "0") ?: ret;
	}
	if (ret)
		instance_complain(i, LOG_ERROR, path, "0", ret, NULL);
	return ret;
}

/* ---- what it holds ------------------------------------------------------------- */

int instance_systems(const struct instance *i, struct strlist *out)
{
	struct strlist lines = { 0 };
	char path[INSTANCE_PATH];
	int ret = read_lines_at(undo_dirfd(i->undo), instance_file(i, path, "set_event"), SET_EVENT_MAX,
				&lines);

	for (size_t n = 0; !ret && n < lines.n; n++) {
		char *colon = strchr(lines.v[n], ':');

		if (!colon)
			continue;
		*colon = 0;
		if (strcmp(lines.v[n], "*") && !strlist_has(out, lines.v[n]))
			ret = strlist_add(out, lines.v[n]);
	}
	strlist_release(&lines);
	return ret;
}

int instance_lost(const struct instance *i, unsigned int cpu, uint64_t *lost)
{
	static const char *const names[] = { "overrun: ", "dropped events: " };
	struct strlist lines = { 0 };
	char path[INSTANCE_PATH];
	int ret = read_lines_at(undo_dirfd(i->undo), instance_file(i, path, "per_cpu/cpu%u/stats", cpu),
				STATS_MAX, &lines);

	*lost = 0;
	for (size_t n = 0; n < lines.n; n++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			size_t skip = strlen(names[k]);
			uint64_t v;

			if (!strncmp(lines.v[n], names[k], skip) && !parse_u64(lines.v[n] + skip, &v))
				*lost += v;
		}
	strlist_release(&lines);
	return ret;
}
