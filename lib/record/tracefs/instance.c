// SPDX-License-Identifier: LGPL-2.1-or-later
/* A buffer of the host's: its files, the reasons when one is refused, opening, regions, start and stop. */
#include "record/tracefs/instance.h"

#include <stdarg.h>

#define TEXT_MAX      (1u << 20)
#define SET_EVENT_MAX (16u << 20)

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

int instance_read_errors(const struct instance *i, struct buf *out)
{
	char path[INSTANCE_PATH];

	return read_file_at(undo_dirfd(i->undo), instance_file(i, path, "error_log"), TEXT_MAX, out);
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

	if (instance_read_errors(i, &text) || !buf_str(&text))
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
	char *says = kernel_says(i, value), list[1024] = "", *end;

	if (choices && ret == -EINVAL)
		read_line_at(undo_dirfd(i->undo), list, sizeof(list), "%s", choices);
	for (end = list + strlen(list); end > list && end[-1] == ' ';)
		*--end = 0;
	if (*list)
		log_msg(i->o.log, level, "cannot write '%s' to '%s': %s (there are: %s)", value, path,
			strerror(-ret), list);
	else
		log_msg(i->o.log, level, "cannot write '%s' to '%s': %s%s%s%s", value, path, strerror(-ret),
			instance_hint(ret), says ? ": " : "", says ? says : "");
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
	if (ret && ret != -EEXIST)
		log_err(o->log, "cannot make the buffer 'instances/%s': %s%s", b->name, strerror(-ret),
			instance_hint(ret));
	else
		ret = undo_lock(u, i->path);
	if (ret)
		instance_free(i);
	else
		*out = i;
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

static bool region_is_one_event(const struct record_plan *plan)
{
	return plan->start_on.event && plan->stop_on.event &&
	       !strcmp(plan->start_on.event, plan->stop_on.event);
}

/* Recordings of different buffers have one each. */
static const char *region_second_event(char name[INSTANCE_EVENT])
{
	snprintf(name, INSTANCE_EVENT, INSTANCE_OWN_EVENTS "/region_stop_%d", (int)getpid());
	return name;
}

const char *instance_region_stop(const struct record_plan *plan, char name[INSTANCE_EVENT],
				 const char **filter)
{
	*filter = region_is_one_event(plan) ? NULL : plan->stop_on.filter;
	return region_is_one_event(plan) ? region_second_event(name) : plan->stop_on.event;
}

static int region_check_event(struct instance *top, const char *option, const struct trigger_plan *t)
{
	char path[INSTANCE_PATH];

	if (!t->event || instance_has(top, instance_file(top, path, "events/%s/trigger", t->event)))
		return 0;
	return log_fail(top->o.log, -ENOENT,
			"%s: no event %s with triggers in this kernel (see trace-cmd list -e)", option,
			t->event);
}

int instance_make_region(struct undo *u, const struct record_plan *plan, const struct log *log)
{
	struct instance top = { .undo = u, .path = (char *)".", .o = { .log = log } };
	const struct trigger_plan *t = &plan->stop_on;
	char name[INSTANCE_EVENT], *line;
	int ret = region_check_event(&top, "--start-on", &plan->start_on)
			  ?: region_check_event(&top, "--stop-on", t);

	if (ret || !region_is_one_event(plan))
		return ret;
	line = str_printf("e:%s %s%s%s", region_second_event(name), t->event, t->filter ? " if " : "",
			  t->filter ? t->filter : "");
	ret = line ? undo_make_event(u, line) : -ENOMEM;
	if (ret && line) {
		instance_complain(&top, LOG_ERROR, "dynamic_events", line, ret, NULL);
		log_err(log,
			"--start-on and --stop-on are both for %s: such a filter needs eprobes (Linux 6.0), "
			"or name two events",
			t->event);
	}
	free(line);
	return ret;
}

static int region_put(struct instance *i, const char *event, const char *action, const char *filter)
{
	char *line = filter ? str_printf("%s if %s", action, filter) : strdup(action);
	char path[INSTANCE_PATH];
	int ret;

	if (!line)
		return -ENOMEM;
	ret = undo_add(i->undo, instance_file(i, path, "events/%s/trigger", event), line);
	if (ret == -EEXIST)
		log_err(i->o.log,
			"'%s' has a traceon or traceoff of somebody else's, which is left alone, and the "
			"kernel takes one",
			path);
	else if (ret)
		instance_complain(i, LOG_ERROR, path, line, ret, NULL);
	free(line);
	return ret;
}

/* The end first: no region may begin that does not end. */
int instance_begin_region(struct instance *i)
{
	const struct record_plan *plan = i->o.plan;
	const struct trigger_plan *start = &plan->start_on;
	char name[INSTANCE_EVENT];
	const char *filter, *stop = instance_region_stop(plan, name, &filter);
	int ret = stop ? region_put(i, stop, "traceoff", filter) : 0;

	if (ret || !start->event)
		return ret;
	ret = region_put(i, start->event, "traceon", start->filter);
	i->begins = !ret;
	return ret;
}

int instance_forget_region(struct undo *u, const char *path, const char *event)
{
	char file[INSTANCE_PATH];

	snprintf(file, sizeof(file), "%s/events/%s/trigger", path, event);
	return undo_poke(u, file, "!traceon");
}

/* Triggers that switch tracing off may remain until all is put back. */
void instance_end_region(struct instance *i)
{
	if (i->begins)
		instance_forget_region(i->undo, i->path, i->o.plan->start_on.event);
	i->begins = false;
}

int instance_is_on(const struct instance *i)
{
	char path[INSTANCE_PATH], on[8];
	int ret =
		read_line_at(undo_dirfd(i->undo), on, sizeof(on), "%s", instance_file(i, path, "tracing_on"));

	return ret ?: *on && *on != '0';
}

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

int instance_set_pids(struct instance *i, const struct strlist *pids, pid_t one)
{
	struct buf list = { 0 };
	int ret;

	for (size_t p = 0; p < pids->n; p++)
		buf_printf(&list, "%s\n", pids->v[p]);
	if (one)
		buf_printf(&list, "%d\n", (int)one);
	ret = buf_str(&list) ? 0 : -ENOMEM;
	/* first: a child must not slip out between the two */
	if (!ret && i->o.plan->follow_children)
		ret = instance_put_file(i, "options/event-fork", "1");
	if (!ret && i->o.plan->follow_children && has_file(i, "options/function-fork"))
		ret = instance_put_file(i, "options/function-fork", "1");
	ret = ret ?: instance_put_list(i, "set_event_pid", buf_str(&list));
	if (!ret && has_file(i, "set_ftrace_pid"))
		ret = instance_put_list(i, "set_ftrace_pid", buf_str(&list));
	buf_release(&list);
	return ret;
}

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
	char path[INSTANCE_PATH];
	uint64_t events;

	return tracefs_counts(undo_dirfd(i->undo), instance_file(i, path, "per_cpu/cpu%u/stats", cpu),
			      &events, lost);
}
