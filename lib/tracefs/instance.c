// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tracefs/instance-priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (1u << 20)

/* ---- files ---------------------------------------------------------------- */

char *instance_file(const struct instance *i, const char *fmt, ...)
{
	char *file, *path;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&file, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	if (!strcmp(i->path, "."))
		return file;
	path = str_printf("%s/%s", i->path, file);
	free(file);
	return path;
}

bool instance_has(const struct instance *i, const char *path)
{
	return !faccessat(undo_dirfd(i->undo), path, F_OK, 0);
}

/* ---- complaints ------------------------------------------------------------ */

static void one_line(char *s)
{
	size_t len = strlen(s);

	while (len && (s[len - 1] == '\n' || s[len - 1] == ' '))
		s[--len] = 0;
	for (; *s; s++)
		if (*s == '\n')
			*s = ' ';
}

/*
 * The last entry of error_log, if it is about this value:
 *   [  117.6] event filter parse error: error: Field not found
 *     Command: foo == 1
 *              ^
 */
static char *kernel_says(const struct instance *i, const char *value)
{
	char *path = instance_file(i, "error_log"), *says = NULL;
	char *entry = NULL, *p, *error, *command;
	struct buf text = { 0 };

	if (!path || read_file_at(undo_dirfd(i->undo), path, TEXT_MAX, &text) || !buf_str(&text))
		goto out;
	for (p = (char *)text.data; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (*p == '[')
			entry = p;
		else if (!*p)
			break;
	}
	error = entry ? strstr(entry, ": error: ") : NULL;
	command = error ? strstr(error, "Command: ") : NULL;
	if (!command)
		goto out;
	command += strlen("Command: ");
	command[strcspn(command, "\n")] = 0;
	error += strlen(": error: ");
	error[strcspn(error, "\n")] = 0;
	if (strstr(value, command) || strstr(command, value))
		says = strdup(error);
out:
	buf_release(&text);
	free(path);
	return says;
}

static const char *hint(int ret)
{
	switch (ret) {
	case -EACCES:
	case -EPERM:
		return " (be root)";
	case -ENOENT:
		return " (not in this kernel)";
	case -EBUSY:
		return " (somebody reads this buffer)";
	}
	return "";
}

void instance_complain(const struct instance *i, enum log_level level, const char *path, const char *value,
		       int ret, const char *choices)
{
	char *says = kernel_says(i, value);
	struct buf list = { 0 };

	if (choices && ret == -EINVAL && !read_file_at(undo_dirfd(i->undo), choices, TEXT_MAX, &list) &&
	    buf_str(&list)) {
		one_line((char *)list.data);
		log_msg(i->log, level, "cannot write '%s' to '%s': %s (there are: %s)", value, path,
			strerror(-ret), (char *)list.data);
	} else {
		log_msg(i->log, level, "cannot write '%s' to '%s': %s%s%s%s", value, path, strerror(-ret),
			hint(ret), says ? ": " : "", says ? says : "");
	}
	buf_release(&list);
	free(says);
}

int instance_put(struct instance *i, const char *path, const char *value, const char *choices)
{
	int ret = path ? undo_write(i->undo, path, value) : -ENOMEM;

	if (ret && path)
		instance_complain(i, LOG_ERROR, path, value, ret, choices);
	return ret;
}

/* ---- opening --------------------------------------------------------------- */

static int make_dir(struct instance *i)
{
	int ret;

	if (!strcmp(i->path, "."))
		return 0;
	ret = undo_mkdir(i->undo, i->path);
	if (!ret || ret == -EEXIST)
		return 0;
	log_err(i->log, "cannot make the buffer '%s': %s%s", i->path, strerror(-ret), hint(ret));
	return ret;
}

int instance_open(struct instance **out, struct undo *u, const struct buffer_plan *b,
		  const struct instance_opts *o)
{
	struct instance *i = calloc(1, sizeof(*i));
	int ret = -ENOMEM;

	if (!i)
		return ret;
	i->undo = u;
	i->buffer = b;
	i->plan = o->plan;
	i->want_clock = b->clock ? b->clock : o->clock;
	i->log = o->log;
	i->path = *b->name ? str_printf("instances/%s", b->name) : strdup(".");
	if (i->path)
		ret = make_dir(i);
	if (ret) {
		instance_free(i);
		return ret;
	}
	*out = i;
	return 0;
}

void instance_free(struct instance *i)
{
	if (!i)
		return;
	free(i->path);
	free(i->clock);
	free(i);
}

const char *instance_path(const struct instance *i)
{
	return i->path;
}

const char *instance_clock(const struct instance *i)
{
	return i->clock;
}

/* ---- the steps of setup ----------------------------------------------------- */

int instance_put_file(struct instance *i, const char *file, const char *value)
{
	char *path = instance_file(i, "%s", file);
	int ret = instance_put(i, path, value, NULL);

	free(path);
	return ret;
}

static int put_number(struct instance *i, const char *path, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return instance_put(i, path, text, NULL);
}

int instance_put_list(struct instance *i, const char *file, const char *lines)
{
	char *path = instance_file(i, "%s", file);
	int ret = path ? undo_list(i->undo, path, lines) : -ENOMEM;

	if (ret == -ENOENT && !*lines)
		ret = 0;
	if (ret && path)
		instance_complain(i, LOG_ERROR, path, lines, ret, NULL);
	free(path);
	return ret;
}

/* What is there from before must neither be recorded nor narrow the recording. */
static int setup_quiet(struct instance *i)
{
	static const char *const lists[] = { "set_event", "set_event_pid", "set_event_notrace_pid" };
	char *trace = instance_file(i, "trace");
	int ret = trace ? instance_put_file(i, "tracing_on", "0") : -ENOMEM;

	for (size_t n = 0; !ret && n < ARRAY_SIZE(lists); n++)
		ret = instance_put_list(i, lists[n], "");
	if (!ret)
		ret = instance_put_file(i, "current_tracer", "nop");
	if (!ret) {
		ret = undo_poke(i->undo, trace, "");
		if (ret)
			log_err(i->log, "cannot clear '%s': %s%s", trace, strerror(-ret), hint(ret));
	}
	free(trace);
	return ret;
}

static int setup_clock(struct instance *i)
{
	char *path = instance_file(i, "trace_clock");
	int ret = path ? 0 : -ENOMEM;

	if (!ret && i->want_clock)
		ret = instance_put(i, path, i->want_clock, path);
	if (!ret) {
		free(i->clock);
		ret = undo_read(i->undo, path, &i->clock);
	}
	free(path);
	return ret;
}

/*
 * A change of the sub-buffers' size resizes the buffer, so its own size is put
 * back after it as well as before.
 */
static int setup_size(struct instance *i)
{
	char *size = instance_file(i, "buffer_size_kb");
	char *subbuf = instance_file(i, "buffer_subbuf_size_kb");
	int ret = size && subbuf ? 0 : -ENOMEM;

	if (!ret && i->buffer->subbuf_kb) {
		if (instance_has(i, subbuf))
			ret = undo_save(i->undo, size);
		if (!ret)
			ret = put_number(i, subbuf, i->buffer->subbuf_kb);
	}
	if (!ret && i->buffer->size_kb)
		ret = put_number(i, size, i->buffer->size_kb);
	free(size);
	free(subbuf);
	return ret;
}

/* CPUs with a directory in per_cpu, that is all possible ones. */
static unsigned int count_cpus(const struct instance *i)
{
	char *path = instance_file(i, "per_cpu");
	DIR *d = path ? open_dir_at(undo_dirfd(i->undo), path) : NULL;
	unsigned int n = 0, cpu;
	struct dirent *de;

	while (d && (de = readdir(d)))
		if (sscanf(de->d_name, "cpu%u", &cpu) == 1 && cpu + 1 > n)
			n = cpu + 1;
	if (d)
		closedir(d);
	free(path);
	return n;
}

/* "3,ffffffff" for 34 CPUs */
static void full_mask(unsigned int cpus, struct buf *out)
{
	unsigned int first = cpus % 32;

	if (first || !cpus)
		buf_printf(out, "%x", (1u << first) - 1);
	for (unsigned int words = cpus / 32; words; words--)
		buf_printf(out, "%sffffffff", out->len ? "," : "");
}

static int setup_cpumask(struct instance *i)
{
	struct buf mask = { 0 };
	int ret;

	if (!i->buffer->cpumask)
		return 0;
	if (strcmp(i->buffer->cpumask, "-1"))
		return instance_put_file(i, "tracing_cpumask", i->buffer->cpumask);
	full_mask(count_cpus(i), &mask);
	ret = buf_str(&mask) ? instance_put_file(i, "tracing_cpumask", buf_str(&mask)) : -ENOMEM;
	buf_release(&mask);
	return ret;
}

/* "x", or "nox" for clearing x; an option's own name may begin with "no". */
static int set_option(struct instance *i, const char *name)
{
	char *path = instance_file(i, "options/%s", name);
	const char *value = "1";
	int ret = path ? 0 : -ENOMEM;

	if (!ret && !instance_has(i, path) && !strncmp(name, "no", 2)) {
		free(path);
		path = instance_file(i, "options/%s", name + 2);
		ret = path ? 0 : -ENOMEM;
		value = "0";
	}
	if (!ret && (strchr(name, '/') || !instance_has(i, path))) {
		log_err(i->log, "there is no option '%s' for %s%s in this kernel", name,
			*i->buffer->name ? "the buffer " : "the top buffer", i->buffer->name);
		ret = -ENOENT;
	}
	if (!ret)
		ret = instance_put(i, path, value, NULL);
	free(path);
	return ret;
}

static int setup_options(struct instance *i)
{
	const struct strlist *o = &i->buffer->options;
	int ret = 0;

	for (size_t n = 0; !ret && n < o->n; n++)
		ret = set_option(i, o->v[n]);
	return ret;
}

/* Files of the top directory, whatever the buffer. */
static int setup_globals(struct instance *i)
{
	int ret = 0;

	if (i->plan->cmdlines_size)
		ret = put_number(i, "saved_cmdlines_size", i->plan->cmdlines_size);
	if (!ret && i->buffer->max_graph_depth >= 0)
		ret = put_number(i, "max_graph_depth", (uint64_t)i->buffer->max_graph_depth);
	return ret;
}

/*
 * What the kernel logs about refused filters is passed on by then; a log that
 * was empty is left empty. What was in it cannot be put back.
 */
static bool empty_error_log(struct instance *i, bool clear)
{
	char *path = instance_file(i, "error_log");
	struct buf text = { 0 };
	bool empty = !path || read_file_at(undo_dirfd(i->undo), path, TEXT_MAX, &text) || !text.len;

	if (clear && !empty)
		undo_poke(i->undo, path, "");
	buf_release(&text);
	free(path);
	return empty;
}

int instance_setup(struct instance *i)
{
	static int (*const steps[])(struct instance *) = {
		setup_quiet,
		setup_clock,
		setup_size,
		setup_cpumask,
		setup_options,
		setup_globals,
		instance_setup_functions,
		instance_setup_events,
	};
	bool clean = empty_error_log(i, false);
	int ret = 0;

	for (size_t n = 0; !ret && n < ARRAY_SIZE(steps); n++)
		ret = steps[n](i);
	if (clean)
		empty_error_log(i, true);
	return ret;
}
