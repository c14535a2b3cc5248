// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The triggers of --start-on and --stop-on in a buffer. The kernel has one traceon or traceoff for each event
 * of a buffer: where both are for the same event, an eprobe makes a second one of it.
 */
#include "tracefs/dynamic.h"
#include "tracefs/instance-priv.h"
#include "tracefs/region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	log_err(top->o.log, "%s: no event %s with triggers in this kernel (see trace-cmd list -e)", option,
		t->event);
	return -ENOENT;
}

static int region_make_second(struct instance *top, const struct trigger_plan *t)
{
	char name[INSTANCE_EVENT];
	char *line = str_printf("e:%s %s%s%s", region_second_event(name), t->event, t->filter ? " if " : "",
				t->filter ? t->filter : "");
	int ret = line ? dynamic_event_make(top->undo, line) : -ENOMEM;

	if (ret && line) {
		instance_complain(top, LOG_ERROR, "dynamic_events", line, ret, NULL);
		log_err(top->o.log,
			"--start-on and --stop-on are both for %s: such a filter needs eprobes (Linux 6.0), "
			"or "
			"name two events",
			t->event);
	}
	free(line);
	return ret;
}

int instance_make_region(struct undo *u, const struct record_plan *plan, const struct log *log)
{
	struct instance top = { .undo = u, .path = (char *)".", .o = { .log = log } };
	int ret = region_check_event(&top, "--start-on", &plan->start_on)
			  ?: region_check_event(&top, "--stop-on", &plan->stop_on);

	return ret || !region_is_one_event(plan) ? ret : region_make_second(&top, &plan->stop_on);
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

/* What switches tracing off may stay until all is put back. */
void instance_end_region(struct instance *i)
{
	if (i->begins)
		instance_forget_region(i->undo, i->path, i->o.plan->start_on.event);
	i->begins = false;
}

int instance_is_on(const struct instance *i)
{
	struct buf text = { 0 };
	int ret = instance_read(i, "tracing_on", 64, &text);

	ret = ret ?: text.len && text.data[0] != '0';
	buf_release(&text);
	return ret;
}
