// SPDX-License-Identifier: LGPL-2.1-or-later
/* The plan of a recording: adds to its lists, and frees it. */
#include "record/plan/plan.h"

void event_plans_release(struct event_plan *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].define);
		free(v[i].filter);
		strlist_release(&v[i].triggers);
	}
	free(v);
}

void record_plan_release(struct record_plan *p)
{
	for (size_t i = 0; i < p->n_buffers; i++) {
		struct buffer_plan *b = &p->buffers[i];

		event_plans_release(b->events, b->n_events);
		strlist_release(&b->funcs);
		strlist_release(&b->notrace);
		strlist_release(&b->graph);
		strlist_release(&b->options);
		free(b->name);
		free(b->tracer);
		free(b->clock);
		free(b->cpumask);
	}
	free(p->buffers);
	for (size_t i = 0; i < p->n_guests; i++) {
		free(p->guests[i].spec);
		free(p->guests[i].name);
		strlist_release(&p->guests[i].args);
	}
	free(p->guests);
	strlist_release(&p->pids);
	free(p->output);
	free(p->user);
	free(p->line);
	free(p->compression);
	free(p->start_on.event);
	free(p->start_on.filter);
	free(p->stop_on.event);
	free(p->stop_on.filter);
	free(p->dump_on.event);
	free(p->dump_on.filter);
	strlist_release(&p->notes);
	strlist_release(&p->rings);
	*p = (struct record_plan){ 0 };
}

struct buffer_plan *record_plan_add_buffer(struct record_plan *p, const char *name)
{
	struct buffer_plan *v = array_next(&p->buffers, p->n_buffers, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct buffer_plan){ .name = strdup(name), .max_graph_depth = -1 };
	p->n_buffers += !!v->name;
	return v->name ? v : NULL;
}

int record_plan_marks(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *p = ctx;
	const char *file = arg ? strchr(arg, '=') : NULL;
	struct buffer_plan *b = NULL;
	int ret = 0;

	if (arg && (!file || file == arg || !file[1] || strpbrk(arg, "\t\n")))
		return opts_wrong(err, o, arg, "not GUEST=FILE");
	if (arg)
		ret = strlist_add(&p->rings, arg);
	if (ret || p->marks)
		return ret;
	p->marks = true;
	/* the doorbells, in their own buffer; the kernel's filter follows once their addresses are known */
	for (size_t i = 1; i < p->n_buffers; i++)
		if (!strcmp(p->buffers[i].name, "hypertrace"))
			b = &p->buffers[i];
	if (!b)
		b = record_plan_add_buffer(p, "hypertrace");
	if (!b || !buffer_plan_add_event(b, "kvm:kvm_mmio", false))
		return -ENOMEM;
	return b->clock ? 0 : str_take(&b->clock, strdup("boot"));
}

void event_name_colon(char *name)
{
	char *slash = strchr(name, '/');

	if (slash && !strchr(name, ':'))
		*slash = ':';
}

struct event_plan *buffer_plan_add_event(struct buffer_plan *b, const char *name, bool negate)
{
	struct event_plan *v = array_next(&b->events, b->n_events, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct event_plan){ .name = strdup(name), .negate = negate };
	if (!v->name)
		return NULL;
	event_name_colon(v->name);
	b->n_events++;
	return v;
}

int buffer_plan_move_event(struct buffer_plan *from, size_t i, struct buffer_plan *to)
{
	struct event_plan *e = &from->events[i];
	int ret = array_push(&to->events, &to->n_events, e, sizeof(*e));

	if (!ret)
		memmove(e, e + 1, (--from->n_events - i) * sizeof(*e));
	return ret;
}

bool event_name_is_hyp(const char *name)
{
	size_t len = strcspn(name, ":/");

	return name[len] &&
	       ((len == 3 && !strncmp(name, "hyp", 3)) || (len == 10 && !strncmp(name, "hypervisor", 10)));
}

struct buffer_plan *record_plan_hyp(struct record_plan *p)
{
	struct buffer_plan *b;

	for (size_t i = 0; i < p->n_buffers; i++)
		if (p->buffers[i].is_hyp)
			return &p->buffers[i];
	b = record_plan_add_buffer(p, "hyp");
	if (b)
		b->is_hyp = true;
	return b;
}

int record_plan_route(struct record_plan *p)
{
	for (size_t i = 0; i < p->buffers[0].n_events;) {
		const struct event_plan *e = &p->buffers[0].events[i];
		struct buffer_plan *hyp;

		if (e->define || !event_name_is_hyp(e->name)) {
			i++;
			continue;
		}
		hyp = record_plan_hyp(p);
		if (!hyp || buffer_plan_move_event(&p->buffers[0], i, hyp))
			return -ENOMEM;
	}
	return 0;
}

const char *record_plan_remote(const char *name)
{
	if (!strcmp(name, "hyp") || !strcmp(name, "hypervisor") || !strcmp(name, "remote:hypervisor"))
		return "hyp";
	return !strncmp(name, "remote:", 7) && name[7] ? name : NULL;
}

#define PID_LIMIT (4u << 20) /* PID_MAX_LIMIT of 64-bit kernels */

int plan_cpumask(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	if (strcmp(arg, "-1") && (!strcspn(arg, ",") || arg[strspn(arg, "0123456789abcdefABCDEF,")]))
		return opts_wrong(err, o, arg, "not a mask: hexadecimal digits, or -1 for all CPUs");
	return opts_set_copy(ctx, o, arg, err);
}

int plan_pids(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	const char *s = arg;

	do {
		char text[24];
		int len = (int)strcspn(s, ","), ret;
		uint64_t pid;

		snprintf(text, sizeof(text), "%.*s", len, s);
		if (parse_u64(text, &pid) || !pid || pid > PID_LIMIT)
			return opts_wrong(err, o, arg, "not a list of process numbers");
		snprintf(text, sizeof(text), "%llu", (unsigned long long)pid);
		ret = strlist_add(&((struct record_plan *)ctx)->pids, text);
		if (ret)
			return ret;
		s += len;
	} while (*s++);
	return 0;
}

int plan_compression(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx;

	if (!strcmp(arg, "any")) {
		free(plan->compression);
		plan->compression = NULL;
		return 0;
	}
	if (!strcmp(arg, "zlib") || !strcmp(arg, "lzma"))
		return opts_wrong(err, o, arg,
				  "many builds of trace-cmd cannot read it: use zstd, none or any");
	if (strcmp(arg, "zstd") && strcmp(arg, "none"))
		return opts_wrong_word(err, o, arg);
	return opts_set_copy(plan, o, arg, err);
}

int plan_tsync(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	static const struct {
		const char *name;
		enum tsync_method method;
	} methods[] = {
		{ "auto", TSYNC_AUTO },	    { "counter", TSYNC_COUNTER }, { "hyp", TSYNC_HYP },
		{ "kvm", TSYNC_KVM },	    { "ping", TSYNC_PING },	  { "none", TSYNC_NONE },
		{ "exact", TSYNC_COUNTER }, /* the former name of "counter" */
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (!strcmp(arg, methods[i].name)) {
			((struct record_plan *)ctx)->tsync = methods[i].method;
			return 0;
		}
	return opts_wrong_word(err, o, arg);
}

/* As in trace-cmd: 0 is the start and the end only, less than 0 none at all. */
int plan_tsync_interval(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx, unused;
	int ret;

	if (*arg != '-')
		return opts_set_amount(plan, o, arg, err);
	ret = opts_set_amount(&unused, o, arg + 1, err);
	if (!ret)
		plan->tsync = TSYNC_NONE;
	return ret;
}

int plan_rotate(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx;
	uint64_t n = 0;
	bool size = !parse_amount(arg, size_units, 0, &n);

	if ((!size && parse_amount(arg, duration_units, 0, &n)) || n > INT64_MAX || n < (size ? 1 : UNIT_MS))
		return opts_wrong(err, o, arg,
				  "neither a size (64K, 100M, 2G) nor a duration (30s, 5min, 1h)");
	plan->rotate_bytes = size ? n : 0;
	plan->rotate_ms = size ? 0 : n / UNIT_MS;
	return 0;
}

int region_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct trigger_plan *t = (struct trigger_plan *)((char *)ctx + o->off);
	/* names that become parts of a path */
	size_t system = word_len(arg, SIZE_MAX, "");
	size_t event = arg[system] == ':' ? word_len(arg + system + 1, SIZE_MAX, "") : 0;
	const char *end = arg + system + 1 + event;

	if (!strncmp(arg, "hyp:", 4) || !strncmp(arg, "hypervisor:", 11))
		return opts_wrong(err, o, arg, "the hypervisor's events have no triggers");
	if (!system || !event || (*end && (*end != '/' || !end[1])))
		return opts_wrong(err, o, arg,
				  "not SYSTEM:EVENT or SYSTEM:EVENT/FILTER (for marks of a guest's code see "
				  "hypertrace(7))");
	if (t->event)
		return opts_wrong(err, o, arg, "there is one already");
	t->event = str_printf("%.*s/%.*s", (int)system, arg, (int)event, arg + system + 1);
	t->filter = *end ? strdup(end + 1) : NULL;
	return t->event && (t->filter || !*end) ? 0 : -ENOMEM;
}

bool region_asked(const struct record_plan *plan)
{
	return plan->start_on.event || plan->stop_on.event;
}

bool region_has_buffer(const struct record_plan *plan)
{
	bool has = plan->buffers[0].n_events || plan->buffers[0].tracer;

	for (size_t i = 1; i < plan->n_buffers; i++)
		has |= !plan->buffers[i].is_hyp;
	return has;
}

static int only_off(struct opts_error *err, const char *what, const char *name)
{
	return opts_error(err,
			  "-v switches off the only events of %s%s, so nothing would be recorded there: "
			  "leave it out (it does not mean verbose)",
			  what, name);
}

/* A lone -v makes an empty recording; in other programs -v is verbose. */
static int check_negated(const struct record_plan *plan, struct opts_error *err)
{
	for (size_t i = 0; i < plan->n_buffers; i++) {
		const struct buffer_plan *b = &plan->buffers[i];
		/* a trigger works for an event that is off too; the hypervisor's are all on when none is
		 * named */
		bool empty = b->n_events && !b->tracer && !b->is_hyp;

		for (size_t n = 0; n < b->n_events; n++)
			empty &= b->events[n].negate && !b->events[n].triggers.n;
		if (empty)
			return only_off(err, i ? "the buffer " : "the top buffer", b->name);
	}
	for (size_t i = 0; i < plan->n_guests; i++)
		if (plan->guests[i].events && !plan->guests[i].on)
			return only_off(err, "the guest ", plan->guests[i].spec);
	return 0;
}

/* Options of a long recording that exclude each other. */
static int check_long(const struct record_plan *p, struct opts_error *err)
{
	const bool rotate = p->rotate_bytes || p->rotate_ms, numbered = record_plan_numbered(p);

	if (rotate + (p->max_cpu_kb > 0) + (p->flight_ms > 0) > 1)
		return opts_error(err, "--rotate, -m and --flight: each is another way, take one");
	if (p->keep_files && !numbered)
		return opts_error(err, "--keep goes with --rotate or --flight only");
	if (p->ring && !p->flight_ms)
		return opts_error(err, "--ring goes with --flight only");
	if (p->dump_on.event && !p->flight_ms)
		return opts_error(err, "--dump-on goes with --flight only");
	if (p->marks && (numbered || p->max_cpu_kb))
		return opts_error(err, "--hypertrace is joined with doorbells at the end of a recording: not "
				       "with --rotate, -m or --flight");
	if (numbered && p->n_guests && !p->tsync_interval_ms && p->tsync != TSYNC_NONE)
		return opts_error(
			err, "--tsync-interval 0: each file needs looks at the guests' clocks of its own");
	return 0;
}

int record_plan_check(const struct record_plan *plan, struct opts_error *err)
{
	const char *region = plan->start_on.event ? "--start-on" : "--stop-on";
	bool any = plan->n_guests || plan->profile_hz || plan->take_over;
	int ret;

	if (plan->follow_children && !plan->filter_command && !plan->pids.n)
		return opts_error(err, "-c goes with -F or -P only");
	if (plan->filter_command && !plan->command && !plan->pids.n)
		return opts_error(err, "-F needs a command to trace, or -P");
	if (plan->user && !plan->command)
		return opts_error(err, "--user needs a command to run");
	if (plan->proc_map && !plan->command && !plan->pids.n)
		return opts_error(err, "--proc-map needs a command, or -P");
	if (plan->func_stack && !plan->buffers[0].funcs.n)
		return opts_error(err, "--func-stack needs -l before any -B: the stacks of all functions can "
				       "bring the machine to a stop");
	if (plan->file_version == 6 && plan->compression && strcmp(plan->compression, "none"))
		return opts_error(err, "--compression %s: files of version 6 are not compressed",
				  plan->compression);
	for (size_t i = 1; i < plan->n_buffers && plan->profile_hz; i++)
		if (!strcmp(plan->buffers[i].name, "profile"))
			return opts_error(err, "-B profile: --profile has a buffer of that name");
	for (size_t i = 0; i < plan->n_buffers; i++)
		any |= plan->buffers[i].n_events || plan->buffers[i].tracer || plan->buffers[i].is_hyp;
	if (!any)
		return opts_error(err, "nothing to record: give events (-e), a tracer (-p), -B hyp or "
				       "--profile");
	/* a ring's events are tied to doorbells by the boot clock, and vCPUs' threads are who ring */
	if (plan->marks && (plan->filter_command || plan->pids.n))
		return opts_error(err, "--hypertrace: with -F or -P doorbells are not seen, for they are "
				       "rung by the threads of vCPUs");
	for (size_t i = 0; i < plan->n_buffers && plan->marks; i++)
		if (plan->buffers[i].clock && strcmp(plan->buffers[i].clock, "boot"))
			return opts_error(err, "-C %s: --hypertrace has times of the clock boot",
					  plan->buffers[i].clock);
	ret = check_long(plan, err) ?: check_negated(plan, err);
	if (ret || !region_asked(plan))
		return ret;
	if (plan->take_over)
		return opts_error(err, "%s with --take-over: a buffer that runs already has no region",
				  region);
	if (!region_has_buffer(plan) && !plan->profile_hz && plan->n_buffers == 1)
		return opts_error(err, "%s: nothing of the host is recorded (after -A it is the guest's)",
				  region);
	if (!strcmp(plan->start_on.event ?: "", plan->stop_on.event ?: "") &&
	    !strcmp(plan->start_on.filter ?: "", plan->stop_on.filter ?: ""))
		return opts_error(err, "--start-on and --stop-on name the same events");
	return 0;
}
