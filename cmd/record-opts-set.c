// SPDX-License-Identifier: GPL-2.0-only
#include "record-opts-priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PID_LIMIT (4u << 20) /* PID_MAX_LIMIT of 64-bit kernels */

/* ---- helpers -------------------------------------------------------------- */

int opts_fail(struct parse *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	opts_verror(p->err, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int opts_no_memory(struct parse *p)
{
	opts_fail(p, "out of memory");
	return -ENOMEM;
}

static int fail_opt(struct parse *p, const struct opt *o, const char *arg, const char *why)
{
	char name[32];

	return opts_fail(p, "%s %s: %s", opt_name(&o->row, name), *arg ? arg : "''", why);
}

struct buffer_plan *opts_buffer(struct parse *p)
{
	return &p->plan->buffers[p->buffer];
}

static void *plan_field(struct parse *p, const struct opt *o)
{
	return (char *)p->plan + o->off;
}

static void *buffer_field(struct parse *p, const struct opt *o)
{
	return (char *)opts_buffer(p) + o->off;
}

static int number(struct parse *p, const struct opt *o, const char *arg, uint64_t min, uint64_t max,
		  uint64_t *out)
{
	char why[80];

	if (parse_u64(arg, out))
		return fail_opt(p, o, arg, "not a number");
	if (*out >= min && *out <= max)
		return 0;
	if (*out < min)
		snprintf(why, sizeof(why), "must be at least %llu", (unsigned long long)min);
	else
		snprintf(why, sizeof(why), "must be at most %llu", (unsigned long long)max);
	return fail_opt(p, o, arg, why);
}

static int replace(struct parse *p, char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return opts_no_memory(p);
	free(*field);
	*field = copy;
	return 0;
}

/* ---- what options set ------------------------------------------------------ */

int set_help(struct parse *p, const struct opt *o, const char *arg)
{
	return OPTS_STOP;
}

int set_flag(struct parse *p, const struct opt *o, const char *arg)
{
	*(bool *)plan_field(p, o) = true;
	return 0;
}

int set_text(struct parse *p, const struct opt *o, const char *arg)
{
	if (!*arg)
		return fail_opt(p, o, arg, "empty");
	return replace(p, plan_field(p, o), arg);
}

int set_u64(struct parse *p, const struct opt *o, const char *arg)
{
	return number(p, o, arg, 1, INT64_MAX, plan_field(p, o));
}

int set_buffer_u64(struct parse *p, const struct opt *o, const char *arg)
{
	/* KiB: the kernel shifts it */
	return number(p, o, arg, 1, INT64_MAX >> 10, buffer_field(p, o));
}

int add_to_list(struct parse *p, const struct opt *o, const char *arg)
{
	const char *value = o->also ? o->also : arg;

	if (!*value)
		return fail_opt(p, o, arg, "empty");
	return strlist_add(buffer_field(p, o), value) ? opts_no_memory(p) : 0;
}

int set_sleep(struct parse *p, const struct opt *o, const char *arg)
{
	return number(p, o, arg, 0, INT64_MAX, &p->plan->sleep_us);
}

int set_depth(struct parse *p, const struct opt *o, const char *arg)
{
	uint64_t n;
	int ret = number(p, o, arg, 0, INT32_MAX, &n);

	if (!ret)
		opts_buffer(p)->max_graph_depth = (int64_t)n;
	return ret;
}

int set_prio(struct parse *p, const struct opt *o, const char *arg)
{
	uint64_t n;
	int ret = number(p, o, arg, 1, 99, &n);

	if (!ret)
		p->plan->rt_prio = (int)n;
	return ret;
}

int set_event(struct parse *p, const struct opt *o, const char *arg)
{
	struct buffer_plan *b = opts_buffer(p);
	struct event_plan *v, e = { .negate = p->negate };

	if (!*arg)
		return fail_opt(p, o, arg, "empty");
	v = realloc(b->events, (b->n_events + 1) * sizeof(*v));
	if (!v)
		return opts_no_memory(p);
	b->events = v;
	e.name = strdup(arg);
	if (!e.name)
		return opts_no_memory(p);
	v[b->n_events++] = e;
	p->has_event = true;
	return 0;
}

static int last_event(struct parse *p, const struct opt *o, const char *arg, struct event_plan **e)
{
	if (!p->has_event)
		return fail_opt(p, o, arg, "must come after the -e that it is for");
	if (!*arg)
		return fail_opt(p, o, arg, "empty");
	*e = &opts_buffer(p)->events[opts_buffer(p)->n_events - 1];
	return 0;
}

int set_filter(struct parse *p, const struct opt *o, const char *arg)
{
	struct event_plan *e = NULL;
	char *both;
	int ret = last_event(p, o, arg, &e);

	if (ret)
		return ret;
	if (!e->filter)
		return replace(p, &e->filter, arg);
	both = str_printf("(%s)&&(%s)", e->filter, arg);
	if (!both)
		return opts_no_memory(p);
	free(e->filter);
	e->filter = both;
	return 0;
}

int set_trigger(struct parse *p, const struct opt *o, const char *arg)
{
	struct event_plan *e = NULL;
	int ret = last_event(p, o, arg, &e);

	if (ret)
		return ret;
	return strlist_add(&e->triggers, arg) ? opts_no_memory(p) : 0;
}

int set_negate(struct parse *p, const struct opt *o, const char *arg)
{
	p->negate = true;
	return 0;
}

static bool hyp_name(const char *name)
{
	return !strcmp(name, "hyp") || !strcmp(name, "hypervisor");
}

int set_buffer(struct parse *p, const struct opt *o, const char *arg)
{
	bool hyp = hyp_name(arg);
	struct buffer_plan *b;
	size_t i;

	if (!*arg || strchr(arg, '/') || !strcmp(arg, ".") || !strcmp(arg, ".."))
		return fail_opt(p, o, arg, "not a name for a buffer");
	if (p->negate)
		return opts_fail(p,
				 "-v before -B %s would delete that buffer, which record does not do"
				 ": remove its directory below 'instances', or give -v after -B",
				 arg);
	if (p->guest && !hyp)
		return opts_fail(p,
				 "-B %s after -A: instances in a guest are not served; give the host's "
				 "-B before -A",
				 arg);
	p->guest = false; /* the hypervisor's is never a guest's */
	p->has_event = false;
	for (i = 1; i < p->plan->n_buffers; i++) {
		b = &p->plan->buffers[i];
		if (hyp ? b->is_hyp : !strcmp(b->name, arg))
			break;
	}
	p->buffer = i;
	if (i < p->plan->n_buffers)
		return 0;
	b = record_plan_add_buffer(p->plan, arg);
	if (!b)
		return opts_no_memory(p);
	b->is_hyp = hyp;
	return 0;
}

/* These leave their result outside of the ring buffer, in the snapshot. */
static bool latency_tracer(const char *name)
{
	static const char *const names[] = { "wakeup",	"wakeup_rt",  "wakeup_dl",
					     "irqsoff", "preemptoff", "preemptirqsoff" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

int set_tracer(struct parse *p, const struct opt *o, const char *arg)
{
	size_t len;
	char *name;

	if (opts_buffer(p)->tracer)
		return fail_opt(p, o, arg, "this buffer has a tracer already, and takes only one");
	while (isspace((unsigned char)*arg))
		arg++;
	for (len = strlen(arg); len && isspace((unsigned char)arg[len - 1]); len--)
		;
	if (!len)
		return fail_opt(p, o, "", "empty");
	name = strndup(arg, len);
	if (!name)
		return opts_no_memory(p);
	opts_buffer(p)->tracer = name;
	if (latency_tracer(name))
		return opts_fail(p,
				 "-p %s: latency tracers are not recorded by this version"
				 ": use trace-cmd record -p %s",
				 name, name);
	return 0;
}

int set_clock(struct parse *p, const struct opt *o, const char *arg)
{
	if (!*arg)
		return fail_opt(p, o, arg, "empty");
	if (opts_buffer(p)->is_hyp && strcmp(arg, "boot"))
		return fail_opt(p, o, arg,
				"the hypervisor's clock is always boot"
				": for the host's, give -C before -B");
	return replace(p, &opts_buffer(p)->clock, arg);
}

int set_cpumask(struct parse *p, const struct opt *o, const char *arg)
{
	if (strcmp(arg, "-1") && (!strcspn(arg, ",") || arg[strspn(arg, "0123456789abcdefABCDEF,")]))
		return fail_opt(p, o, arg, "not a mask: hexadecimal digits, or -1 for all CPUs");
	return replace(p, &opts_buffer(p)->cpumask, arg);
}

static int add_pid(struct parse *p, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return strlist_add(&p->plan->pids, text) ? opts_no_memory(p) : 0;
}

int set_pids(struct parse *p, const struct opt *o, const char *arg)
{
	char *list = strdup(arg), *rest = list, *pid;
	uint64_t n;
	int ret = list ? 0 : opts_no_memory(p);

	while (!ret && (pid = strsep(&rest, ","))) {
		if (parse_u64(pid, &n) || !n || n > PID_LIMIT)
			ret = fail_opt(p, o, arg, "not a list of process numbers");
		else
			ret = add_pid(p, n);
	}
	free(list);
	return ret;
}

int set_output(struct parse *p, const struct opt *o, const char *arg)
{
	if (p->output)
		return fail_opt(p, o, arg, "only one output file");
	p->output = true;
	return set_text(p, o, arg);
}

int set_compression(struct parse *p, const struct opt *o, const char *arg)
{
	if (!strcmp(arg, "any")) {
		free(p->plan->compression);
		p->plan->compression = NULL;
		return 0;
	}
	if (!strcmp(arg, "zlib") || !strcmp(arg, "lzma"))
		return fail_opt(p, o, arg,
				"many builds of trace-cmd cannot read it"
				": use zstd, none or any");
	if (strcmp(arg, "zstd") && strcmp(arg, "none"))
		return fail_opt(p, o, arg, "unknown: use zstd, none or any");
	return replace(p, &p->plan->compression, arg);
}

int set_version(struct parse *p, const struct opt *o, const char *arg)
{
	uint64_t n;
	int ret = number(p, o, arg, 6, 7, &n);

	if (!ret)
		p->plan->file_version = (int)n;
	return ret;
}

/* ---- guests ------------------------------------------------------------------ */

static struct guest_plan *last_guest(struct parse *p)
{
	return &p->plan->guests[p->plan->n_guests - 1];
}

int set_guest(struct parse *p, const struct opt *o, const char *arg)
{
	if (!*arg)
		return fail_opt(p, o, arg, "empty");
	if (!record_plan_add_guest(p->plan, arg))
		return opts_no_memory(p);
	p->guest = true;
	p->guest_negate = false;
	p->has_event = false;
	return 0;
}

int set_guest_name(struct parse *p, const struct opt *o, const char *arg)
{
	if (!p->guest)
		return fail_opt(p, o, arg, "must come after the -A that it names");
	if (!*arg || strchr(arg, '/') || arg[0] == '.')
		return fail_opt(p, o, arg, "not a name for a guest");
	return replace(p, &last_guest(p)->name, arg);
}

int set_tsync(struct parse *p, const struct opt *o, const char *arg)
{
	static const struct {
		const char *name;
		enum tsync_method method;
	} methods[] = {
		{ "auto", TSYNC_AUTO }, { "exact", TSYNC_COUNTER }, { "hyp", TSYNC_HYP },
		{ "kvm", TSYNC_KVM },	{ "ping", TSYNC_PING },	    { "none", TSYNC_NONE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (!strcmp(arg, methods[i].name)) {
			p->plan->tsync = methods[i].method;
			return 0;
		}
	return fail_opt(p, o, arg, "unknown: use auto, exact, hyp, kvm, ping or none");
}

/* As in trace-cmd: 0 is the start and the end only, less than 0 none at all. */
int set_tsync_interval(struct parse *p, const struct opt *o, const char *arg)
{
	uint64_t ms;
	int ret;

	if (*arg == '-') {
		ret = number(p, o, arg + 1, 0, INT32_MAX, &ms);
		if (!ret)
			p->plan->tsync = TSYNC_NONE;
		return ret;
	}
	ret = number(p, o, arg, 0, INT32_MAX, &ms);
	if (!ret)
		p->plan->tsync_interval_ms = (int64_t)ms;
	return ret;
}

int opts_for_guest(struct parse *p, const struct opt *o, const char *arg)
{
	struct guest_plan *g = last_guest(p);
	char name[32];

	if ((o->row.key == 'f' || o->row.key == 'R') && !p->has_event)
		return fail_opt(p, o, arg ? arg : "", "must come after the -e that it is for");
	if (o->row.arg && (!arg || !*arg))
		return fail_opt(p, o, "", "empty");
	if (strlist_add(&g->args, opt_name(&o->row, name)) || (o->row.arg && strlist_add(&g->args, arg)))
		return opts_no_memory(p);
	p->guest_negate |= o->row.key == 'v';
	g->events |= o->row.key == 'e' || o->row.key == 'p';
	g->on |= o->row.key == 'p' || o->row.key == 'R' || (o->row.key == 'e' && !p->guest_negate);
	p->has_event |= o->row.key == 'e';
	return 0;
}
