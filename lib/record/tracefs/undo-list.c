// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files of tracefs that hold a list: read in the form in which they can be written back. */
#include "record/tracefs/undo.h"

#define LIST_MAX (16u << 20)

/* From here on function names are written by number: see func_index(). */
#define MANY_FUNCS 32

enum list_kind {
	LIST_EVENTS,  /* set_event */
	LIST_FUNCS,   /* set_ftrace_filter, set_ftrace_notrace */
	LIST_GRAPH,   /* set_graph_function, set_graph_notrace */
	LIST_PIDS,    /* set_event_pid, set_ftrace_pid ... */
	LIST_TRIGGER, /* an event's trigger file */
	LIST_OTHER,
};

static enum list_kind list_kind(const char *path)
{
	const char *name = basename(path);
	size_t len = strlen(name);

	if (!strcmp(name, "set_event"))
		return LIST_EVENTS;
	if (!strncmp(name, "set_ftrace_", 11) && strcmp(name + len - 4, "_pid"))
		return LIST_FUNCS;
	if (!strncmp(name, "set_graph_", 10))
		return LIST_GRAPH;
	if (len > 4 && !strcmp(name + len - 4, "_pid"))
		return LIST_PIDS;
	return strcmp(name, "trigger") ? LIST_OTHER : LIST_TRIGGER;
}

/* "0*" in its enable file: the event is on for a trigger only. 1, 0 or -errno. */
static int soft_only(int dirfd, const char *path, const char *line)
{
	size_t dir = (size_t)(basename(path) - path);
	const char *colon = strchr(line, ':');
	char enable[8];
	int ret;

	if (!colon || strchr(colon + 1, ':')) /* sys:event:mod:name waits for a module */
		return 0;
	ret = read_line_at(dirfd, enable, sizeof(enable), "%.*sevents/%.*s/%s/enable", (int)dir, path,
			   (int)(colon - line), line, colon + 1);
	return ret == -ENOENT ? 0 : ret ?: *enable == '0';
}

/* "func [module]" is taken as "func:mod:module" only. */
static void add_func(struct buf *out, const char *line, bool graph)
{
	const char *mod = strstr(line, " [");
	const char *end = mod ? strchr(mod, ']') : NULL;

	if (!end) {
		buf_printf(out, "%s\n", line);
		return;
	}
	buf_add(out, line, (size_t)(mod - line));
	if (!graph)
		buf_printf(out, ":mod:%.*s", (int)(end - mod - 2), mod + 2);
	buf_addstr(out, "\n");
}

/*
 * traceoff:unlimited and traceoff:count=5 are taken as traceoff and traceoff:5;
 * a histogram's state is ":pause" before its filter.
 */
static void add_trigger(struct buf *out, const char *line)
{
	const char *filter = strstr(line, " if ");
	size_t len = filter ? (size_t)(filter - line) : strlen(line);
	const char *colon = memrchr(line, ':', len);
	const char *state = strstr(line, " [paused]");
	bool hist = !strncmp(line, "hist:", 5);
	const char *end = hist ? state ?: strstr(line, " [active]") : NULL;

	if (end && end < line + len)
		len = (size_t)(end - line);
	if (!hist && colon && !strncmp(colon, ":unlimited", 10))
		buf_add(out, line, (size_t)(colon - line));
	else if (!hist && colon && !strncmp(colon, ":count=", 7))
		buf_printf(out, "%.*s:%.*s", (int)(colon - line), line, (int)(line + len - colon - 7),
			   colon + 7);
	else
		buf_add(out, line, len);
	if (hist && state)
		buf_addstr(out, ":pause");
	if (filter)
		buf_add(out, filter, end ? (size_t)(end - filter) : strlen(filter));
	buf_addstr(out, "\n");
}

int list_read(int dirfd, const char *path, struct buf *out)
{
	enum list_kind kind = list_kind(path);
	struct strlist lines = { 0 };
	int ret = read_lines_at(dirfd, path, LIST_MAX, &lines);

	for (size_t i = 0; i < lines.n && ret >= 0; i++) {
		const char *line = lines.v[i];

		if (!*line || *line == '#' || !strcmp(line, "no pid"))
			continue;
		ret = kind == LIST_EVENTS ? soft_only(dirfd, path, line) : 0;
		if (ret)
			continue;
		if (kind == LIST_TRIGGER)
			add_trigger(out, line);
		else if (kind == LIST_GRAPH)
			add_func(out, line, true);
		else if (kind != LIST_FUNCS)
			buf_printf(out, "%s\n", line);
		else if (!strchr(line, ':') || strstr(line, ":mod:"))
			add_func(out, line, false);
	}
	strlist_release(&lines);
	return ret < 0 ? ret : buf_status(out);
}

/*
 * A name costs the kernel a walk over all its functions (60,000), a number does
 * not; so a long list is written by the numbers of available_filter_functions.
 */
struct func_index {
	struct func_number {
		const char *name;
		size_t number; /* from 1, as the kernel counts */
	} * v;
	size_t n;
	struct buf names;
};

static int func_number_cmp(const void *a, const void *b)
{
	const struct func_number *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void func_index_open(struct func_index *fi, int dirfd)
{
	struct strlist lines = { 0 };
	char *p, *save;
	int ret = read_lines_at(dirfd, "available_filter_functions", 4 * LIST_MAX, &lines);

	for (size_t i = 0; i < lines.n; i++)
		add_func(&fi->names, lines.v[i], false);
	fi->v = calloc(lines.n + 1, sizeof(*fi->v));
	strlist_release(&lines);
	p = (char *)buf_str(&fi->names);
	if (ret || !p || !fi->v)
		return;
	for (p = strtok_r(p, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		fi->v[fi->n] = (struct func_number){ .name = p, .number = fi->n + 1 };
		fi->n++;
	}
	qsort(fi->v, fi->n, sizeof(*fi->v), func_number_cmp);
}

int write_line(int fd, const char *line)
{
	char *text = str_printf("%s\n", line);
	int ret = text ? write_all(fd, text, strlen(text)) : -ENOMEM;

	free(text);
	return ret;
}

/* Writes the numbers of all functions of that name; false: no such name. */
static bool write_number(int fd, const struct func_index *fi, const char *name, int *ret)
{
	struct func_number key = { .name = name };
	const struct func_number *f = bsearch(&key, fi->v, fi->n, sizeof(*f), func_number_cmp);
	char number[32];

	if (!f)
		return false;
	while (f > fi->v && !strcmp(f[-1].name, name))
		f--;
	for (; f < fi->v + fi->n && !strcmp(f->name, name) && !*ret; f++) {
		snprintf(number, sizeof(number), "%zu", f->number);
		*ret = write_line(fd, number);
	}
	return true;
}

static int write_lines(int fd, const struct func_index *fi, const struct strlist *lines, bool go_on,
		       char **refused)
{
	int ret = 0;

	for (size_t i = 0; i < lines->n && (go_on || !ret); i++) {
		int err = 0;

		if (*lines->v[i] && !(fi->n && write_number(fd, fi, lines->v[i], &err)))
			err = write_line(fd, lines->v[i]);
		if (err && !ret) {
			ret = err;
			*refused = strdup(lines->v[i]);
		}
	}
	return ret;
}

int list_write(int dirfd, const char *path, const char *text, bool go_on, char **refused)
{
	enum list_kind kind = list_kind(path);
	struct strlist lines = { 0 }, todo = { 0 };
	struct func_index fi = { 0 };
	int fd, ret = strlist_add_lines(&lines, text, strlen(text));

	if (!ret && kind == LIST_TRIGGER) {
		struct strlist old = { 0 };
		struct buf now = { 0 };

		/* Triggers go and come one by one, last one first: the kernel shows the newest first. */
		ret = list_read(dirfd, path, &now) ?: strlist_add_lines(&old, now.data, now.len);
		for (size_t i = old.n; i-- > 0 && !ret;)
			if (!strlist_has(&lines, old.v[i]))
				ret = strlist_take(&todo, str_printf("!%s", old.v[i]));
		for (size_t i = lines.n; i-- > 0 && !ret;)
			if (!strlist_has(&old, lines.v[i]))
				ret = strlist_add(&todo, lines.v[i]);
		strlist_release(&old);
		buf_release(&now);
	} else if (!ret) {
		/*
		 * Lines that wait for a module ("*:*:mod:name") are shown newest first, so they
		 * are written last one first; the order of the others does not matter.
		 */
		for (size_t i = 0; i < lines.n && !ret; i++)
			if (!strstr(lines.v[i], ":mod:"))
				ret = strlist_add(&todo, lines.v[i]);
		for (size_t i = lines.n; i-- > 0 && !ret;)
			if (strstr(lines.v[i], ":mod:"))
				ret = strlist_add(&todo, lines.v[i]);
	}
	if (ret || (kind == LIST_TRIGGER && !todo.n))
		goto out;
	if (kind == LIST_FUNCS && todo.n > MANY_FUNCS)
		func_index_open(&fi, dirfd); /* without it: by name, slowly */
	/* O_TRUNC clears the histograms among the triggers, and nothing else there */
	fd = openat(dirfd, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (kind == LIST_TRIGGER ? 0 : O_TRUNC));
	if (fd < 0) {
		ret = -errno;
		goto out;
	}
	if (kind == LIST_PIDS) { /* the kernel takes them all or none, and waits for RCU on each write */
		ret = write_all(fd, text, strlen(text));
		if (ret)
			*refused = strdup(text);
	} else {
		ret = write_lines(fd, &fi, &todo, go_on, refused);
	}
	if (close(fd) < 0 && !ret)
		ret = -errno;
out:
	free(fi.v);
	buf_release(&fi.names);
	strlist_release(&lines);
	strlist_release(&todo);
	return ret;
}
