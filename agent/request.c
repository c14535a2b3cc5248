// SPDX-License-Identifier: GPL-2.0-only
/*
 * Judges what a recorder asks for. The grammar (record/plan/grammar.c) makes a plan
 * of its words; here every text and number of that plan is held against what may
 * pass: no path, no command, nothing that costs the guest without bound.
 */
#include "agent.h"

#include <fnmatch.h>

#define TEXT_MAX   4000
#define WORD_MAX   100
#define SLEEP_MAX  10000000 /* us */
#define EVENTS_MAX 256	    /* each may stand for all of the kernel's */

/* Letters, digits, '_', and the characters of extra. */
static bool has_only(const char *s, const char *extra)
{
	size_t len = strlen(s);

	return len && len <= WORD_MAX && word_len(s, len, extra) == len;
}

static bool is_plain(const char *s)
{
	return has_only(s, "-.") && s[0] != '.';
}

/* No regular expressions: one of a few bytes can cost any amount of memory. */
static bool is_function_name(const char *s)
{
	return has_only(s, "*?.:-");
}

/* Filters and triggers: one line of the kernel's language. */
static bool is_one_line(const char *s)
{
	if (!*s || strlen(s) > TEXT_MAX)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static bool all_pass(const struct strlist *l, bool (*pass)(const char *))
{
	for (size_t i = 0; i < l->n; i++)
		if (!pass(l->v[i]))
			return false;
	return true;
}

/* The fault in the request, or NULL. */
static const char *wrong_buffer(const struct buffer_plan *b)
{
	if (*b->name && !is_plain(b->name))
		return "-B: not a buffer's name";
	if (b->n_events > EVENTS_MAX)
		return "-e: too many";
	for (size_t i = 0; i < b->n_events; i++) {
		const struct event_plan *e = &b->events[i];

		/* it becomes a part of a path: no '/', and no part that is only dots */
		if (!has_only(e->name, "*?[]!^:-"))
			return "-e: not an event's name";
		if (e->define && !is_one_line(e->define))
			return "-e: not a probe";
		if (e->filter && !is_one_line(e->filter))
			return "-f: not a filter";
		if (!all_pass(&e->triggers, is_one_line))
			return "-R: not a trigger";
	}
	if (b->tracer && !is_plain(b->tracer))
		return "-p: not a name";
	if (b->clock && !is_plain(b->clock))
		return "-C: not a name";
	if (b->cpumask && strcmp(b->cpumask, "-1") && !has_only(b->cpumask, ","))
		return "-M: not a mask";
	if (!all_pass(&b->options, is_plain))
		return "-O: not an option's name";
	if (!all_pass(&b->funcs, is_function_name))
		return "-l: not a function's name (expressions are not taken from afar)";
	if (!all_pass(&b->notrace, is_function_name))
		return "-n: not a function's name (expressions are not taken from afar)";
	if (!all_pass(&b->graph, is_function_name))
		return "-g: not a function's name (expressions are not taken from afar)";
	if (b->size_kb > UINT32_MAX)
		return "-b: not a number that can be";
	if (b->subbuf_kb > 1024)
		return "--subbuf-size: not a number that can be";
	return b->max_graph_depth > 1000 ? "--max-graph-depth: not a number that can be" : NULL;
}

int request_parse(struct record_plan *plan, const struct strlist *args, const struct log *log, char **why)
{
	char command[] = "record", **argv = calloc(args->n + 2, sizeof(*argv));
	struct opts_error err = { "" };
	const char *wrong;
	int ret;

	*plan = (struct record_plan){ 0 };
	*why = NULL;
	if (!argv)
		return -ENOMEM;
	argv[0] = command;
	for (size_t i = 0; i < args->n; i++)
		argv[i + 1] = args->v[i];
	ret = grammar_parse_request(plan, (int)args->n + 1, argv, log, &err);
	free(argv);
	wrong = ret ? err.text : NULL;
	for (size_t i = 0; i < plan->n_buffers && !wrong; i++)
		wrong = wrong_buffer(&plan->buffers[i]);
	if (!wrong && ((plan->start_on.filter && !is_one_line(plan->start_on.filter)) ||
		       (plan->stop_on.filter && !is_one_line(plan->stop_on.filter))))
		wrong = "--start-on, --stop-on: not a filter";
	if (!wrong && plan->sleep_us > SLEEP_MAX)
		wrong = "-s: not a number that can be";
	if (!wrong && plan->cmdlines_size > 1u << 20)
		wrong = "--cmdlines-size: not a number that can be";
	if (!wrong)
		return 0;
	record_plan_release(plan);
	*why = strdup(wrong);
	return *why ? ret ? ret : -EINVAL : -ENOMEM;
}

struct buffer_plan *request_buffer(struct record_plan *plan)
{
	struct buffer_plan *top = &plan->buffers[0];

	if (plan->n_buffers == 1)
		return top;
	if (plan->n_buffers > 2 || top->n_events || top->tracer)
		return NULL;
	/* -C before -B is what the recorder puts in by itself */
	if (!plan->buffers[1].clock) {
		plan->buffers[1].clock = top->clock;
		top->clock = NULL;
	}
	return &plan->buffers[1];
}

/* ---- --allow: narrows the events to those that the guest lets be traced ---------------------- */

/* A request may name all of the kernel's events many times over. */
#define NARROWED_MAX 8192

/* trace-cmd's grammar for events: "all", "system:event", or a name for both. */
static bool event_matches(const char *pattern, const char *system, const char *event)
{
	const char *colon = strchr(pattern, ':');
	char head[128];
	size_t len = colon ? (size_t)(colon - pattern) : 0;

	if (!strcmp(pattern, "all"))
		return true;
	if (!colon)
		return !fnmatch(pattern, system, 0) || !fnmatch(pattern, event, 0);
	if (len >= sizeof(head))
		return false;
	snprintf(head, sizeof(head), "%.*s", (int)len, pattern);
	return (!len || !fnmatch(head, system, 0)) && (!colon[1] || !fnmatch(colon + 1, event, 0));
}

static bool is_allowed(const struct strlist *allow, const char *system, const char *event)
{
	for (size_t i = 0; i < allow->n; i++)
		if (event_matches(allow->v[i], system, event))
			return true;
	return false;
}

bool allow_samples(const struct strlist *allow)
{
	return !allow->n || is_allowed(allow, PROFILE_SYSTEM, PROFILE_SAMPLE);
}

bool allow_trigger(const struct strlist *allow, const struct trigger_plan *t)
{
	size_t system = t->event ? strcspn(t->event, "/") : 0;
	char name[128];

	if (!t->event || !allow->n)
		return true;
	if (system >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)system, t->event);
	return is_allowed(allow, name, t->event + system + 1);
}

static int narrow_add(struct buffer_plan *out, const struct event_plan *e, const char *system,
		      const char *event)
{
	struct event_plan *one;
	char name[520];

	if (out->n_events == NARROWED_MAX)
		return -E2BIG;
	snprintf(name, sizeof(name), "%s:%s", system, event);
	one = buffer_plan_add_event(out, name, e->negate);
	if (!one)
		return -ENOMEM;
	if (e->filter && !(one->filter = strdup(e->filter)))
		return -ENOMEM;
	for (size_t i = 0; i < e->triggers.n; i++)
		if (strlist_add(&one->triggers, e->triggers.v[i]))
			return -ENOMEM;
	return 0;
}

/* Adds the allowed ones of old's events to out. */
static int narrow_plan(const struct strlist *allow, int dirfd, const struct buffer_plan *old,
		       struct buffer_plan *out, size_t *dropped)
{
	struct strlist systems = { 0 };
	int ret = read_dir_at(dirfd, "events", &systems);

	for (size_t i = 0; i < systems.n && !ret; i++) {
		struct strlist events = { 0 };
		char path[600];

		snprintf(path, sizeof(path), "events/%s", systems.v[i]);
		read_dir_at(dirfd, path, &events); /* a file has none */
		for (size_t n = 0; n < events.n && !ret; n++) {
			const char *system = systems.v[i], *event = events.v[n];

			snprintf(path, sizeof(path), "events/%s/%s/.", system, event);
			if (!file_there(dirfd, path))
				continue;
			for (size_t k = 0; k < old->n_events && !ret; k++) {
				const struct event_plan *e = &old->events[k];

				if (!event_matches(e->name, system, event))
					continue;
				if (is_allowed(allow, system, event))
					ret = narrow_add(out, e, system, event);
				else if (!e->negate)
					++*dropped;
			}
		}
		strlist_release(&events);
	}
	strlist_release(&systems);
	return ret;
}

/* Ways around a list of events. */
static const char *way_around(const struct buffer_plan *b)
{
	/* triggers that cannot switch on another event */
	static const char *const triggers[] = { "traceon", "traceoff", "stacktrace", "snapshot" };
	/* others bring marks, trace_printk or what is in a task's memory into the buffer */
	static const char options[] = "stacktrace function-trace overwrite event-fork";

	if ((b->tracer && strcmp(b->tracer, "nop")) || b->funcs.n || b->graph.n || b->notrace.n)
		return "only events are allowed here, no tracer";
	for (size_t i = 0; i < b->n_events; i++) {
		if (b->events[i].define)
			return "only events that are there are allowed here, no probe";
		for (size_t n = 0; n < b->events[i].triggers.n; n++) {
			const char *t = b->events[i].triggers.v[n];
			bool tame = false;

			for (size_t k = 0; k < ARRAY_SIZE(triggers); k++)
				tame |= !strncmp(t, triggers[k], strlen(triggers[k])) && !strstr(t, "event");
			if (!tame)
				return "this trigger is not allowed here";
		}
	}
	for (size_t i = 0; i < b->options.n; i++) {
		const char *o = b->options.v[i];

		if (!words_have(options, strncmp(o, "no", 2) ? o : o + 2))
			return "this option is not allowed here (-O)";
	}
	return NULL;
}

int allow_apply(const struct strlist *allow, int dirfd, struct buffer_plan *b, const struct log *log,
		char **why)
{
	struct buffer_plan out = { 0 }; /* its events only */
	size_t dropped = 0;
	const char *way;
	int ret;

	if (!allow->n)
		return 0;
	way = way_around(b);
	ret = way ? -EACCES : narrow_plan(allow, dirfd, b, &out, &dropped);
	if (!ret && b->n_events && !out.n_events) {
		way = "none of these events is allowed here";
		ret = -EACCES;
	}
	if (way)
		*why = strdup(way);
	if (ret) {
		event_plans_release(out.events, out.n_events);
		return ret;
	}
	if (dropped)
		log_warn(log, "%zu events of the request are not allowed and left out", dropped);
	event_plans_release(b->events, b->n_events);
	b->events = out.events;
	b->n_events = out.n_events;
	return 0;
}
