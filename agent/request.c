// SPDX-License-Identifier: GPL-2.0-only
/*
 * Judges what a recorder asks for. The grammar (record/plan/grammar.h) makes a plan
 * of its words; here every text and number of that plan is held against what may
 * pass: no path, no command, nothing that costs the guest without bound.
 */
#include "agent.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/plan/grammar.h"

#define TEXT_MAX   4000
#define WORD_MAX   100
#define SLEEP_MAX  10000000 /* us */
#define EVENTS_MAX 256	    /* each may stand for all of the kernel's */

/* ---- texts that may pass ---------------------------------------------------------------- */

/* Letters, digits, '_', and the characters of extra. */
static bool has_only(const char *s, const char *extra)
{
	size_t len = strlen(s);

	if (!len || len > WORD_MAX)
		return false;
	while (isalnum((unsigned char)*s) || *s == '_' || (*s && strchr(extra, *s)))
		s++;
	return !*s;
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

/* ---- the plan --------------------------------------------------------------------------- */

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

static const char *wrong_plan(const struct record_plan *plan)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < plan->n_buffers && !wrong; i++)
		wrong = wrong_buffer(&plan->buffers[i]);
	if (wrong)
		return wrong;
	if ((plan->start_on.filter && !is_one_line(plan->start_on.filter)) ||
	    (plan->stop_on.filter && !is_one_line(plan->stop_on.filter)))
		return "--start-on, --stop-on: not a filter";
	if (plan->sleep_us > SLEEP_MAX)
		return "-s: not a number that can be";
	return plan->cmdlines_size > 1u << 20 ? "--cmdlines-size: not a number that can be" : NULL;
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
	wrong = ret ? err.text : wrong_plan(plan);
	if (!wrong)
		return 0;
	record_plan_release(plan);
	*why = strdup(wrong);
	return *why ? ret ? ret : -EINVAL : -ENOMEM;
}

/* ---- the buffer ------------------------------------------------------------------------- */

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

bool request_has_probe(const struct buffer_plan *b)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (b->events[i].define && !b->events[i].optional)
			return true;
	return false;
}
