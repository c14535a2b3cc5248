// SPDX-License-Identifier: LGPL-2.1-or-later
/* A buffer that is ready: whose tasks it records, its start and stop, and what it holds. */
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATS_MAX     (64u << 10)
#define SET_EVENT_MAX (16u << 20)

/* ---- pids -------------------------------------------------------------------- */

/* What only some kernels have, and what they can do without. */
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

static int follow_children(struct instance *i)
{
	int ret = instance_put_file(i, "options/event-fork", "1");

	return ret || !has_file(i, "options/function-fork")
		       ? ret
		       : instance_put_file(i, "options/function-fork", "1");
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
	ret = i->o.plan->follow_children ? follow_children(i) : 0;
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
	return instance_put_file(i, "tracing_on", "1");
}

/* Not journalled: at the end tracing_on goes back through the entries of start and setup. */
int instance_stop(struct instance *i)
{
	char path[INSTANCE_PATH];
	int ret = undo_poke(i->undo, instance_file(i, path, "tracing_on"), "0");

	if (ret)
		instance_complain(i, LOG_ERROR, path, "0", ret, NULL);
	return ret;
}

/* ---- what it holds ------------------------------------------------------------- */

int instance_systems(const struct instance *i, struct strlist *out)
{
	struct buf text = { 0 };
	struct cursor c;
	const char *line;
	size_t len;
	int ret = instance_read(i, "set_event", SET_EVENT_MAX, &text);

	c = cursor_at(text.data, ret ? 0 : text.len);
	while (!ret && cursor_line(&c, &line, &len)) {
		const char *colon = memchr(line, ':', len);
		char *name = colon ? strndup(line, (size_t)(colon - line)) : NULL;

		if (colon && !name)
			ret = -ENOMEM;
		else if (name && strcmp(name, "*") && !strlist_has(out, name))
			ret = strlist_add(out, name);
		free(name);
	}
	buf_release(&text);
	return ret;
}

int instance_lost(const struct instance *i, unsigned int cpu, uint64_t *lost)
{
	static const char *const names[] = { "overrun: ", "dropped events: " };
	struct buf text = { 0 };
	struct cursor c;
	const char *line;
	size_t len;
	char file[40];
	int ret;

	snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
	ret = instance_read(i, file, STATS_MAX, &text);
	*lost = 0;
	c = cursor_at(text.data, ret ? 0 : text.len);
	while (cursor_line(&c, &line, &len)) {
		for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
			size_t skip = strlen(names[n]);
			char number[24];
			uint64_t v;

			if (len <= skip || memcmp(line, names[n], skip))
				continue;
			snprintf(number, sizeof(number), "%.*s", (int)(len - skip), line + skip);
			if (!parse_u64(number, &v))
				*lost += v;
		}
	}
	buf_release(&text);
	return ret;
}
