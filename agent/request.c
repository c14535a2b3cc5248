// SPDX-License-Identifier: GPL-2.0-only
#include "agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The words of a recorder become a plan here, and nothing else: no path, no
 * command, and no text with characters that could be one is let through.
 */

#define TEXT_MAX   4000
#define WORD_MAX   100
#define SLEEP_MAX  10000000 /* us */
#define EVENTS_MAX 256	    /* each may stand for all of the kernel's */

enum what {
	SERVED,
	IGNORED, /* means nothing here, harms nothing */
	REFUSED,
};

struct parse {
	struct record_plan *plan;
	const struct log *log;
	char **why;
	size_t buffer;	/* the one that options belong to */
	bool has_event; /* in that buffer, so that -f has something to filter */
	bool negate;	/* -v */
};

struct opt {
	char key;
	const char *name;
	bool arg;
	enum what what;
	int (*set)(struct parse *p, const char *arg);
};

static int refuse(struct parse *p, const char *what, const char *why)
{
	if (!*p->why)
		*p->why = str_printf("%.60s: %s", what, why);
	return *p->why ? -EINVAL : -ENOMEM;
}

static struct buffer_plan *buffer(struct parse *p)
{
	return &p->plan->buffers[p->buffer];
}

/* ---- texts that may pass ---------------------------------------------------------------- */

static bool only(const char *s, const char *extra, size_t max)
{
	size_t len = strlen(s);

	if (!len || len > max)
		return false;
	for (; *s; s++) {
		bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			    (*s >= '0' && *s <= '9') || *s == '_';

		if (!word && !strchr(extra, *s))
			return false;
	}
	return true;
}

static bool plain(const char *s)
{
	return only(s, "-.", WORD_MAX) && s[0] != '.';
}

/* Becomes a part of a path: no '/', and no part that is only dots. */
static bool event_name(const char *s)
{
	return only(s, "*?[]!^:-", WORD_MAX);
}

/* No regular expressions: one of a few bytes can cost any amount of memory. */
static bool function_name(const char *s)
{
	return only(s, "*?.:-", WORD_MAX);
}

/* Filters and triggers: one line of the kernel's language. */
static bool one_line(const char *s)
{
	if (!*s || strlen(s) > TEXT_MAX)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int set_string(struct parse *p, char **field, const char *opt, const char *arg)
{
	char *copy;

	if (!plain(arg))
		return refuse(p, opt, "not a name");
	copy = strdup(arg);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int number(struct parse *p, const char *opt, const char *arg, uint64_t max, uint64_t *out)
{
	if (parse_u64(arg, out) || *out > max)
		return refuse(p, opt, "not a number that can be");
	return 0;
}

/* ---- options ---------------------------------------------------------------- */

static int set_event(struct parse *p, const char *arg)
{
	struct buffer_plan *b = buffer(p);
	struct event_plan *v;

	if (!event_name(arg) || b->n_events == EVENTS_MAX)
		return refuse(p, "-e", event_name(arg) ? "too many" : "not an event's name");
	v = realloc(b->events, (b->n_events + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	b->events = v;
	v[b->n_events] = (struct event_plan){ .name = strdup(arg), .negate = p->negate };
	if (!v[b->n_events].name)
		return -ENOMEM;
	b->n_events++;
	p->has_event = true;
	return 0;
}

static struct event_plan *last_event(struct parse *p)
{
	return p->has_event ? &buffer(p)->events[buffer(p)->n_events - 1] : NULL;
}

static int set_filter(struct parse *p, const char *arg)
{
	struct event_plan *e = last_event(p);
	char *text;

	if (!e || !one_line(arg))
		return refuse(p, "-f", e ? "not a filter" : "no event before it");
	text = e->filter ? str_printf("(%s)&&(%s)", e->filter, arg) : strdup(arg);
	if (!text)
		return -ENOMEM;
	free(e->filter);
	e->filter = text;
	return 0;
}

static int set_trigger(struct parse *p, const char *arg)
{
	struct event_plan *e = last_event(p);

	if (!e || !one_line(arg))
		return refuse(p, "-R", e ? "not a trigger" : "no event before it");
	return strlist_add(&e->triggers, arg);
}

static int set_negate(struct parse *p, const char *arg)
{
	p->negate = true;
	return 0;
}

static int set_buffer(struct parse *p, const char *arg)
{
	if (!plain(arg) || p->negate)
		return refuse(p, "-B", "not a buffer's name");
	p->has_event = false;
	for (p->buffer = 1; p->buffer < p->plan->n_buffers; p->buffer++)
		if (!strcmp(buffer(p)->name, arg))
			return 0;
	return record_plan_add_buffer(p->plan, arg) ? 0 : -ENOMEM;
}

static int set_tracer(struct parse *p, const char *arg)
{
	return set_string(p, &buffer(p)->tracer, "-p", arg);
}

static int set_clock(struct parse *p, const char *arg)
{
	return set_string(p, &buffer(p)->clock, "-C", arg);
}

static int add_name(struct parse *p, struct strlist *l, const char *opt, const char *arg)
{
	if (!function_name(arg))
		return refuse(p, opt, "not a function's name (expressions are not taken from afar)");
	return strlist_add(l, arg);
}

static int set_function(struct parse *p, const char *arg)
{
	return add_name(p, &buffer(p)->funcs, "-l", arg);
}

static int set_notrace(struct parse *p, const char *arg)
{
	return add_name(p, &buffer(p)->notrace, "-n", arg);
}

static int set_graph(struct parse *p, const char *arg)
{
	return add_name(p, &buffer(p)->graph, "-g", arg);
}

static int set_option(struct parse *p, const char *arg)
{
	if (!plain(arg))
		return refuse(p, "-O", "not an option's name");
	return strlist_add(&buffer(p)->options, arg);
}

static int set_stack(struct parse *p, const char *arg)
{
	return strlist_add(&buffer(p)->options, "stacktrace");
}

static int set_mask(struct parse *p, const char *arg)
{
	free(buffer(p)->cpumask);
	buffer(p)->cpumask = NULL;
	if (strcmp(arg, "-1") && (!only(arg, ",", WORD_MAX) || arg[strspn(arg, "0123456789abcdefABCDEF,")]))
		return refuse(p, "-M", "not a mask");
	buffer(p)->cpumask = strdup(arg);
	return buffer(p)->cpumask ? 0 : -ENOMEM;
}

static int set_size(struct parse *p, const char *arg)
{
	return number(p, "-b", arg, UINT32_MAX, &buffer(p)->size_kb);
}

static int set_subbuf(struct parse *p, const char *arg)
{
	return number(p, "--subbuf-size", arg, 1024, &buffer(p)->subbuf_kb);
}

static int set_sleep(struct parse *p, const char *arg)
{
	return number(p, "-s", arg, SLEEP_MAX, &p->plan->sleep_us);
}

static int set_cmdlines(struct parse *p, const char *arg)
{
	return number(p, "--cmdlines-size", arg, 1u << 20, &p->plan->cmdlines_size);
}

static int set_depth(struct parse *p, const char *arg)
{
	uint64_t n;
	int ret = number(p, "--max-graph-depth", arg, 1000, &n);

	if (!ret)
		buffer(p)->max_graph_depth = (int64_t)n;
	return ret;
}

static int set_ignore_errors(struct parse *p, const char *arg)
{
	p->plan->ignore_event_errors = true;
	return 0;
}

static int set_func_stack(struct parse *p, const char *arg)
{
	p->plan->func_stack = true;
	return 0;
}

static int set_children(struct parse *p, const char *arg)
{
	p->plan->follow_children = true;
	return 0;
}

/* The guest's own process numbers. */
static int set_pids(struct parse *p, const char *arg)
{
	char *list = strdup(arg), *rest = list, *pid;
	int ret = list ? 0 : -ENOMEM;
	uint64_t n;

	while (!ret && (pid = strsep(&rest, ","))) {
		ret = number(p, "-P", pid, 1u << 22, &n);
		if (!ret)
			ret = strlist_add(&p->plan->pids, pid);
	}
	free(list);
	return ret;
}

static const struct opt opts[] = {
	{ 'e', NULL, true, SERVED, set_event },
	{ 'f', NULL, true, SERVED, set_filter },
	{ 'R', NULL, true, SERVED, set_trigger },
	{ 'v', NULL, false, SERVED, set_negate },
	{ 'B', NULL, true, SERVED, set_buffer },
	{ 'p', NULL, true, SERVED, set_tracer },
	{ 'C', NULL, true, SERVED, set_clock },
	{ 'l', NULL, true, SERVED, set_function },
	{ 'n', NULL, true, SERVED, set_notrace },
	{ 'g', NULL, true, SERVED, set_graph },
	{ 'O', NULL, true, SERVED, set_option },
	{ 'T', NULL, false, SERVED, set_stack },
	{ 'M', NULL, true, SERVED, set_mask },
	{ 'b', NULL, true, SERVED, set_size },
	{ 's', NULL, true, SERVED, set_sleep },
	{ 'i', NULL, false, SERVED, set_ignore_errors },
	{ 'c', NULL, false, SERVED, set_children },
	{ 'P', NULL, true, SERVED, set_pids },
	{ 0, "subbuf-size", true, SERVED, set_subbuf },
	{ 0, "cmdlines-size", true, SERVED, set_cmdlines },
	{ 0, "max-graph-depth", true, SERVED, set_depth },
	{ 0, "func-stack", false, SERVED, set_func_stack },
	{ 'a', NULL, false, IGNORED, NULL },
	{ 'D', NULL, false, IGNORED, NULL },
	{ 'S', NULL, false, IGNORED, NULL },
	{ 'q', "quiet", false, IGNORED, NULL },
	{ 'r', NULL, true, IGNORED, NULL },
	{ 0, "nosplice", false, IGNORED, NULL },
	{ 0, "nofifos", false, IGNORED, NULL },
	{ 0, "no-filter", false, IGNORED, NULL },
	{ 0, "notimeout", false, IGNORED, NULL },
	{ 0, "debug", false, IGNORED, NULL },
	{ 0, "poll", false, IGNORED, NULL },
	{ 0, "date", false, IGNORED, NULL },
	{ 0, "proc-map", false, IGNORED, NULL },
	{ 0, "tsync-interval", true, IGNORED, NULL },
	{ 0, "compression", true, IGNORED, NULL },
	{ 0, "file-version", true, IGNORED, NULL },
	/* named here so that the words after them are not taken for commands */
	{ 'o', NULL, true, REFUSED, NULL },
	{ 'N', NULL, true, REFUSED, NULL },
	{ 'V', NULL, true, REFUSED, NULL },
	{ 'A', NULL, true, REFUSED, NULL },
	{ 'm', NULL, true, REFUSED, NULL },
	{ 'H', NULL, true, REFUSED, NULL },
	{ 'F', NULL, false, REFUSED, NULL },
	{ 'k', NULL, false, REFUSED, NULL },
};

static const struct opt *by_key(char key)
{
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++)
		if (opts[i].key == key)
			return &opts[i];
	return NULL;
}

static const struct opt *by_name(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++)
		if (opts[i].name && strlen(opts[i].name) == len && !strncmp(opts[i].name, name, len))
			return &opts[i];
	return NULL;
}

static int apply(struct parse *p, const struct opt *o, const char *word, const char *arg)
{
	if (!o)
		return refuse(p, word, "this option is not known here");
	if (o->what == REFUSED)
		return refuse(p, word, "this option is not for a guest");
	if (o->arg && !arg)
		return refuse(p, word, "needs an argument");
	if (o->what == SERVED)
		return o->set(p, arg);
	log_debug(p->log, "%.60s is ignored", word);
	return 0;
}

/* One word of the request, and the next one if it is its argument. */
static int parse_word(struct parse *p, const struct strlist *args, size_t *i)
{
	const char *word = args->v[(*i)++], *next = *i < args->n ? args->v[*i] : NULL;
	const struct opt *o;
	int ret = 0;

	if (word[0] != '-' || !word[1] || !strcmp(word, "--"))
		return refuse(p, "command", "nothing is run here");
	if (word[1] == '-') {
		const char *eq = strchr(word, '=');

		o = by_name(word + 2, eq ? (size_t)(eq - word - 2) : strlen(word + 2));
		if (o && o->arg && !eq && next)
			++*i;
		return apply(p, o, word, eq ? eq + 1 : next);
	}
	for (const char *key = word + 1; *key && !ret; key++) {
		char name[3] = { '-', *key, 0 };

		o = by_key(*key);
		if (!o || !o->arg) {
			ret = apply(p, o, name, NULL);
			continue;
		}
		if (!key[1] && next)
			++*i;
		return apply(p, o, name, key[1] ? key + 1 : next);
	}
	return ret;
}

int request_parse(struct record_plan *plan, const struct strlist *args, const struct log *log, char **why)
{
	struct parse p = { .plan = plan, .log = log, .why = why };
	int ret = 0;

	*plan = (struct record_plan){ 0 };
	*why = NULL;
	if (!record_plan_add_buffer(plan, ""))
		return -ENOMEM;
	for (size_t i = 0; i < args->n && !ret;)
		ret = parse_word(&p, args, &i);
	if (ret)
		record_plan_release(plan);
	return ret;
}

static bool asked_for(const struct buffer_plan *b)
{
	return b->n_events || b->tracer;
}

struct buffer_plan *request_buffer(struct record_plan *plan)
{
	struct buffer_plan *top = &plan->buffers[0];

	if (plan->n_buffers == 1)
		return top;
	if (plan->n_buffers > 2 || asked_for(top))
		return NULL;
	/* -C before -B is what the recorder puts in by itself */
	if (!plan->buffers[1].clock) {
		plan->buffers[1].clock = top->clock;
		top->clock = NULL;
	}
	return &plan->buffers[1];
}
