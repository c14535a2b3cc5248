// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX (64u << 20)

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

/* Adds the functions that the expression matches; -ENOENT: none. */
static int add_matches(struct instance *i, const char *pattern, struct buf *out)
{
	struct buf text = { 0 };
	struct cursor c;
	const char *line;
	size_t len, before = out->len;
	regex_t re;
	int ret;

	if (regcomp(&re, pattern, REG_ICASE | REG_NOSUB))
		return -EINVAL;
	ret = read_file_at(undo_dirfd(i->undo), "available_filter_functions", FUNCTIONS_MAX, &text);
	c = cursor_at(text.data, ret ? 0 : text.len);
	while (cursor_line(&c, &line, &len)) {
		const char *mod = memmem(line, len, " [", 2);
		size_t name_len = mod ? (size_t)(mod - line) : len;
		char *name = strndup(line, name_len);

		if (name && !regexec(&re, name, 0, NULL, 0)) {
			buf_addstr(out, name);
			if (mod)
				buf_printf(out, ":mod:%.*s", (int)(len - name_len - 3), mod + 2);
			buf_addstr(out, "\n");
		}
		free(name);
	}
	buf_release(&text);
	regfree(&re);
	return ret || out->len > before ? ret : -ENOENT;
}

static void say_no_function(struct instance *i, const char *opt, const char *name, int ret)
{
	if (ret == -EINVAL || ret == -ENOENT)
		log_err(i->log,
			"%s %s: no function of that name can be traced "
			"(see available_filter_functions)",
			opt, name);
	else
		log_err(i->log, "%s %s: %s", opt, name, strerror(-ret));
}

/* The names of a list, patterns resolved, commands left out. */
static int expand(struct instance *i, const char *opt, const struct strlist *names, struct buf *out)
{
	for (size_t n = 0; n < names->n; n++) {
		int ret = 0;

		if (is_command(names->v[n]))
			continue;
		if (is_regex(names->v[n]))
			ret = add_matches(i, names->v[n], out);
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
	int ret = 0;

	if (!path)
		return -ENOMEM;
	if (!instance_has(i, path)) {
		if (names->n)
			log_err(i->log, "%s %s: this kernel has no '%s'", opt, names->v[0], path);
		return names->n ? -ENOENT : 0;
	}
	ret = expand(i, opt, names, &lines);
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

/* "schedule:traceoff:1" stands in the same file, but lives by its own rules. */
static int put_commands(struct instance *i, const char *path, const struct strlist *names)
{
	int ret = path ? 0 : -ENOMEM;

	for (size_t n = 0; !ret && n < names->n; n++) {
		size_t mark = undo_mark(i->undo);
		char *remove = str_printf("!%s", names->v[n]);

		if (!is_command(names->v[n])) {
			free(remove);
			continue;
		}
		ret = remove ? undo_at_end(i->undo, path, remove) : -ENOMEM;
		if (!ret)
			ret = undo_poke(i->undo, path, names->v[n]);
		if (ret) {
			undo_drop(i->undo, mark);
			instance_complain(i, LOG_ERROR, path, names->v[n], ret, NULL);
		}
		free(remove);
	}
	return ret;
}

/* function_graph has a file of its own for -n, in the top directory. */
static int setup_notrace(struct instance *i, bool graph)
{
	bool top = !strcmp(i->path, ".");
	char *path = instance_file(i, graph && top ? "set_graph_notrace" : "set_ftrace_notrace");
	int ret = put_functions(i, "-n", path, &i->buffer->notrace);

	free(path);
	return ret;
}

static int setup_filters(struct instance *i, bool graph)
{
	const struct buffer_plan *b = i->buffer;
	char *path = instance_file(i, "set_ftrace_filter");
	int ret = put_functions(i, "-l", path, &b->funcs);

	if (!ret)
		ret = put_commands(i, path, &b->funcs);
	if (!ret)
		ret = setup_notrace(i, graph);
	if (!ret && (graph || b->graph.n))
		ret = put_functions(i, "-g", "set_graph_function", &b->graph);
	free(path);
	return ret;
}

static int clear_pids(struct instance *i, const char *file)
{
	char *path = instance_file(i, "%s", file);
	int ret = path ? undo_list(i->undo, path, "") : -ENOMEM;

	free(path);
	return ret == -ENOENT ? 0 : ret;
}

/* The tracer comes last: its filters must be there when it begins. */
static int setup_tracer(struct instance *i)
{
	char *stack = instance_file(i, "options/func_stack_trace");
	char *path = instance_file(i, "current_tracer");
	char *choices = instance_file(i, "available_tracers");
	int ret = stack && path && choices ? 0 : -ENOMEM;

	if (!ret && i->plan->func_stack && !strcmp(i->path, "."))
		ret = instance_put(i, stack, "1", NULL);
	if (!ret)
		ret = clear_pids(i, "set_ftrace_pid");
	if (!ret)
		ret = clear_pids(i, "set_ftrace_notrace_pid");
	if (!ret)
		ret = instance_put(i, path, i->buffer->tracer, choices);
	free(stack);
	free(path);
	free(choices);
	return ret;
}

int instance_setup_functions(struct instance *i)
{
	const struct buffer_plan *b = i->buffer;
	bool graph = b->tracer && !strcmp(b->tracer, "function_graph");
	int ret;

	if (!b->tracer && !b->funcs.n && !b->notrace.n && !b->graph.n)
		return 0;
	ret = setup_filters(i, graph);
	if (!ret && b->tracer)
		ret = setup_tracer(i);
	return ret;
}
