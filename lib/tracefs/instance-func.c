// SPDX-License-Identifier: LGPL-2.1-or-later
/* The part of a buffer's setup that has to do with functions: filters, commands, the tracer. */
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* trace-cmd's rule: other characters than a glob's make it a regular expression. */
static bool is_regex(const char *name)
{
	return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_*?.:-")] != 0;
}

/* "func:traceoff", but not "func:mod:name" */
static bool is_command(const char *name)
{
	return strchr(name, ':') && !strstr(name, ":mod:");
}

static void say_no_function(struct instance *i, const char *opt, const char *name, int ret)
{
	if (ret == -EINVAL || ret == -ENOENT)
		log_err(i->o.log,
			"%s %s: no function of that name can be traced "
			"(see available_filter_functions)",
			opt, name);
	else
		log_err(i->o.log, "%s %s: %s", opt, name, strerror(-ret));
}

/* The names of a list, patterns resolved, commands left out. */
static int expand_functions(struct instance *i, const char *opt, const struct strlist *names, struct buf *out)
{
	for (size_t n = 0; n < names->n; n++) {
		int ret = 0;

		if (is_command(names->v[n]))
			continue;
		if (is_regex(names->v[n]))
			ret = i->o.match ? i->o.match(undo_dirfd(i->undo), names->v[n], out) : -EINVAL;
		else
			buf_printf(out, "%s\n", names->v[n]);
		if (ret) {
			say_no_function(i, opt, names->v[n], ret);
			return ret;
		}
	}
	return buf_str(out) ? 0 : -ENOMEM;
}

/* Makes the names the content of a filter file; no names: clears it. */
static int put_functions(struct instance *i, const char *opt, const char *path, const struct strlist *names)
{
	struct buf lines = { 0 };
	int ret;

	if (!instance_has(i, path)) {
		if (names->n)
			log_err(i->o.log, "%s %s: this kernel has no '%s'", opt, names->v[0], path);
		return names->n ? -ENOENT : 0;
	}
	ret = expand_functions(i, opt, names, &lines);
	if (ret)
		goto out;
	ret = undo_list(i->undo, path, buf_str(&lines));
	if (ret && undo_refused(i->undo))
		say_no_function(i, opt, undo_refused(i->undo), ret);
	else if (ret)
		instance_complain(i, LOG_ERROR, path, "", ret, NULL);
out:
	buf_release(&lines);
	return ret;
}

static int put_command(struct instance *i, const char *path, const char *command)
{
	size_t mark = undo_mark(i->undo);
	char *remove = str_printf("!%s", command);
	int ret = remove ? undo_at_end(i->undo, path, remove) : -ENOMEM;

	free(remove);
	if (!ret)
		ret = undo_poke(i->undo, path, command);
	if (!ret)
		return 0;
	undo_drop(i->undo, mark);
	instance_complain(i, LOG_ERROR, path, command, ret, NULL);
	return ret;
}

/* "schedule:traceoff:1" stands in the same file, but lives by its own rules. */
static int put_commands(struct instance *i, const char *path, const struct strlist *names)
{
	int ret = 0;

	for (size_t n = 0; !ret && n < names->n; n++)
		if (is_command(names->v[n]))
			ret = put_command(i, path, names->v[n]);
	return ret;
}

static int setup_filters(struct instance *i, bool graph)
{
	const struct buffer_plan *b = i->buffer;
	bool top = !strcmp(i->path, ".");
	char path[INSTANCE_PATH];
	int ret = put_functions(i, "-l", instance_file(i, path, "set_ftrace_filter"), &b->funcs);

	if (ret)
		return ret;
	ret = put_commands(i, path, &b->funcs);
	if (ret)
		return ret;
	/* function_graph has a file of its own for -n, in the top directory */
	instance_file(i, path, graph && top ? "set_graph_notrace" : "set_ftrace_notrace");
	ret = put_functions(i, "-n", path, &b->notrace);
	if (ret || (!graph && !b->graph.n))
		return ret;
	return put_functions(i, "-g", "set_graph_function", &b->graph);
}

/* The tracer comes last: its filters must be there when it begins. */
static int setup_tracer(struct instance *i)
{
	static const char *const lists[] = { "set_ftrace_pid", "set_ftrace_notrace_pid" };
	char path[INSTANCE_PATH], choices[INSTANCE_PATH];
	int ret = 0;

	if (i->o.plan->func_stack && !strcmp(i->path, "."))
		ret = instance_put(i, "options/func_stack_trace", "1", NULL);
	for (size_t n = 0; !ret && n < ARRAY_SIZE(lists); n++) {
		ret = undo_list(i->undo, instance_file(i, path, "%s", lists[n]), "");
		if (ret == -ENOENT)
			ret = 0;
	}
	if (ret)
		return ret;
	instance_file(i, choices, "available_tracers");
	return instance_put(i, instance_file(i, path, "current_tracer"), i->buffer->tracer, choices);
}

int instance_setup_functions(struct instance *i)
{
	const struct buffer_plan *b = i->buffer;
	bool graph = b->tracer && !strcmp(b->tracer, "function_graph");
	int ret;

	if (!b->tracer && !b->funcs.n && !b->notrace.n && !b->graph.n)
		return 0;
	ret = setup_filters(i, graph);
	return ret || !b->tracer ? ret : setup_tracer(i);
}
