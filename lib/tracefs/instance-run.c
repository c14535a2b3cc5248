// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATS_MAX     (64u << 10)
#define SET_EVENT_MAX (16u << 20)

/* ---- pids -------------------------------------------------------------------- */

int instance_hide_pids(struct instance *i, const char *pids)
{
	static const char *const files[] = { "set_event_notrace_pid", "set_ftrace_notrace_pid" };
	size_t n_files = i->buffer->tracer ? 2 : 1;
	int ret = 0;

	for (size_t n = 0; !ret && n < n_files; n++) {
		char *path = instance_file(i, "%s", files[n]);

		if (!path)
			ret = -ENOMEM;
		else if (instance_has(i, path))
			ret = instance_put_list(i, files[n], pids);
		free(path);
	}
	return ret;
}

/* What only some kernels have, and what they can do without. */
static int put_if_there(struct instance *i, const char *file, const char *value)
{
	char *path = instance_file(i, "%s", file);
	int ret = 0;

	if (!path)
		ret = -ENOMEM;
	else if (instance_has(i, path))
		ret = instance_put(i, path, value, NULL);
	free(path);
	return ret;
}

int instance_set_pids(struct instance *i, const pid_t *pids, size_t n)
{
	struct buf list = { 0 };
	char *path;
	int ret;

	for (size_t p = 0; p < n; p++)
		buf_printf(&list, "%d\n", pids[p]);
	ret = buf_str(&list) ? 0 : -ENOMEM;
	/* first: a child must not slip out between the two */
	if (!ret && i->plan->follow_children)
		ret = instance_put_file(i, "options/event-fork", "1");
	if (!ret && i->plan->follow_children)
		ret = put_if_there(i, "options/function-fork", "1");
	if (!ret)
		ret = instance_put_list(i, "set_event_pid", buf_str(&list));
	path = instance_file(i, "set_ftrace_pid");
	if (!ret && path && instance_has(i, path))
		ret = instance_put_list(i, "set_ftrace_pid", buf_str(&list));
	free(path);
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
	char *path = instance_file(i, "tracing_on");
	int ret = path ? undo_poke(i->undo, path, "0") : -ENOMEM;

	if (ret && path)
		instance_complain(i, LOG_ERROR, path, "0", ret, NULL);
	free(path);
	return ret;
}

/* ---- what it holds ------------------------------------------------------------- */

static int read_into(const struct instance *i, size_t max, struct buf *out, const char *file)
{
	char *path = instance_file(i, "%s", file);
	int ret = path ? read_file_at(undo_dirfd(i->undo), path, max, out) : -ENOMEM;

	free(path);
	return ret;
}

int instance_systems(const struct instance *i, struct strlist *out)
{
	struct buf text = { 0 };
	struct cursor c;
	const char *line;
	size_t len;
	int ret = read_into(i, SET_EVENT_MAX, &text, "set_event");

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

static int read_stats(const struct instance *i, unsigned int cpu, struct buf *out)
{
	char file[40];

	snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
	return read_into(i, STATS_MAX, out, file);
}

int instance_lost(const struct instance *i, unsigned int cpu, uint64_t *lost)
{
	static const char *const names[] = { "overrun: ", "dropped events: " };
	struct buf text = { 0 };
	struct cursor c;
	const char *line;
	size_t len;
	int ret = read_stats(i, cpu, &text);

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
