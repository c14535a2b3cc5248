// SPDX-License-Identifier: LGPL-2.1-or-later
/* A buffer of the host's: opening it, writing to its files, and saying why that failed. */
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (1u << 20)

/* ---- files ---------------------------------------------------------------- */

const char *instance_file(const struct instance *i, char path[INSTANCE_PATH], const char *fmt, ...)
{
	int head = 0, n;
	va_list ap;

	/* "." is no part of a path for the journal */
	if (strcmp(i->path, "."))
		head = snprintf(path, INSTANCE_PATH, "%s/", i->path);
	if (head >= INSTANCE_PATH)
		return strcpy(path, "");
	va_start(ap, fmt);
	n = vsnprintf(path + head, INSTANCE_PATH - (size_t)head, fmt, ap);
	va_end(ap);
	return head + n < INSTANCE_PATH ? path : strcpy(path, "");
}

bool instance_has(const struct instance *i, const char *path)
{
	return file_there(undo_dirfd(i->undo), path);
}

int instance_read(const struct instance *i, const char *file, size_t max, struct buf *out)
{
	char path[INSTANCE_PATH];

	return read_file_at(undo_dirfd(i->undo), instance_file(i, path, "%s", file), max, out);
}

/* ---- complaints ------------------------------------------------------------ */

static void join_lines(char *s)
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
	char *says = NULL, *entry = NULL, *p, *error, *command;
	struct buf text = { 0 };

	if (instance_read(i, "error_log", TEXT_MAX, &text) || !buf_str(&text))
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
	return says;
}

const char *instance_hint(int ret)
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
		join_lines((char *)list.data);
		log_msg(i->o.log, level, "cannot write '%s' to '%s': %s (there are: %s)", value, path,
			strerror(-ret), (char *)list.data);
	} else {
		log_msg(i->o.log, level, "cannot write '%s' to '%s': %s%s%s%s", value, path, strerror(-ret),
			instance_hint(ret), says ? ": " : "", says ? says : "");
	}
	buf_release(&list);
	free(says);
}

int instance_put(struct instance *i, const char *path, const char *value, const char *choices)
{
	int ret = undo_write(i->undo, path, value);

	if (ret)
		instance_complain(i, LOG_ERROR, path, value, ret, choices);
	return ret;
}

int instance_put_number(struct instance *i, const char *path, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return instance_put(i, path, text, NULL);
}

int instance_put_file(struct instance *i, const char *file, const char *value)
{
	char path[INSTANCE_PATH];

	return instance_put(i, instance_file(i, path, "%s", file), value, NULL);
}

int instance_put_list(struct instance *i, const char *file, const char *lines)
{
	char path[INSTANCE_PATH];
	int ret = undo_list(i->undo, instance_file(i, path, "%s", file), lines);

	if (ret == -ENOENT && !*lines)
		return 0;
	if (ret)
		instance_complain(i, LOG_ERROR, path, lines, ret, NULL);
	return ret;
}

/* ---- opening --------------------------------------------------------------- */

int instance_open(struct instance **out, struct undo *u, const struct buffer_plan *b,
		  const struct instance_opts *o)
{
	struct instance *i = calloc(1, sizeof(*i));
	int ret;

	if (!i)
		return -ENOMEM;
	*i = (struct instance){ .undo = u, .buffer = b, .o = *o };
	i->path = *b->name ? str_printf("instances/%s", b->name) : strdup(".");
	ret = !i->path ? -ENOMEM : *b->name ? undo_mkdir(u, i->path) : 0;
	if (ret && ret != -EEXIST) {
		log_err(o->log, "cannot make the buffer 'instances/%s': %s%s", b->name, strerror(-ret),
			instance_hint(ret));
		goto fail;
	}
	ret = undo_lock(u, i->path);
	if (ret)
		goto fail;
	*out = i;
	return 0;
fail:
	instance_free(i);
	return ret;
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
