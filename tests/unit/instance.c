// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host buffer made ready by a plan, on a fake tracefs of plain files
 * (fake-tracefs.h): which events a name stands for, what is written where, what
 * is said when it cannot be.
 */
#include "record/tracefs/instance.h"
#include "fake-tracefs.h"
#include "base/array.h"

#include <errno.h>

static struct fake fake;
static struct undo *undo;
static struct record_plan plan;

static const char *const events[] = {
	"kvm/kvm_entry",      "kvm/kvm_exit",
	"kvm/kvm_ack_irq",    "sched/sched_switch",
	"sched/sched_waking", "sched/sched_wakeup",
	"irq/softirq_entry",  "other/kvm",
	"other/sched_switch", INSTANCE_OWN_EVENTS "/voff_1",
};

static const struct {
	const char *path, *text;
} files[] = {
	{ "tracing_on", "1\n" },
	{ "current_tracer", "nop\n" },
	{ "available_tracers", "function_graph function nop\n" },
	{ "trace_clock", "[local] global boot\n" },
	{ "trace", "old\n" },
	{ "set_event", "old:event\n" },
	{ "set_event_pid", "7\n" },
	{ "set_event_notrace_pid", "" },
	{ "set_ftrace_pid", "no pid\n" },
	{ "set_ftrace_notrace_pid", "no pid\n" },
	{ "set_ftrace_filter", "#### all functions enabled ####\n" },
	{ "set_ftrace_notrace", "#### no functions disabled ####\n" },
	{ "available_filter_functions", "kvm_init\nkvm_exit\nbr_kvm [bridge]\nschedule\n" },
	{ "buffer_size_kb", "7 (expanded: 1408)\n" },
	{ "buffer_subbuf_size_kb", "4\n" },
	{ "tracing_cpumask", "f\n" },
	{ "error_log", "" },
	{ "options/stacktrace", "0\n" },
	{ "options/overwrite", "1\n" },
	{ "options/nohup", "0\n" },
	{ "options/event-fork", "0\n" },
	{ "options/function-fork", "0\n" },
	{ "options/func_stack_trace", "0\n" },
	{ "events/enable", "0\n" },
	{ "per_cpu/cpu0/stats", "entries: 5\noverrun: 3\ncommit overrun: 9\ndropped events: 4\n" },
	{ "per_cpu/cpu1/stats", "entries: 0\n" },
};

/* Below dir, "" or "instances/x/". */
static void make_buffer(const char *dir)
{
	char path[128];

	for (size_t n = 0; n < ARRAY_SIZE(files); n++) {
		snprintf(path, sizeof(path), "%s%s", dir, files[n].path);
		fake_put(&fake, path, files[n].text);
	}
	for (size_t n = 0; n < ARRAY_SIZE(events); n++) {
		static const char *const parts[][2] = { { "enable", "0\n" },
							{ "filter", "none\n" },
							{ "trigger", "# Available triggers:\n" } };

		for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
			snprintf(path, sizeof(path), "%sevents/%s/%s", dir, events[n], parts[p][0]);
			fake_put(&fake, path, parts[p][1]);
		}
		snprintf(path, sizeof(path), "%sevents/%.*s/enable", dir, (int)strcspn(events[n], "/"),
			 events[n]);
		fake_put(&fake, path, "0\n");
	}
	/* ftrace's own: formats without an enable file */
	snprintf(path, sizeof(path), "%sevents/ftrace/function/format", dir);
	fake_put(&fake, path, "x\n");
}

static int setup(void **state)
{
	fake_open(&fake);
	make_buffer("");
	fake_put(&fake, "saved_cmdlines_size", "128\n");
	fake_put(&fake, "max_graph_depth", "0\n");
	fake_put(&fake, "set_graph_function", "#### all functions enabled ####\n");
	fake_put(&fake, "set_graph_notrace", "#### no functions disabled ####\n");
	fake_put(&fake, "instances/old/keep", "");
	assert_int_equal(undo_open(&undo, fake.dir, AT_FDCWD, NULL, &fake.to), 0);
	plan = (struct record_plan){ 0 };
	assert_non_null(record_plan_add_buffer(&plan, ""));
	return 0;
}

static int teardown(void **state)
{
	undo_free(undo);
	record_plan_release(&plan);
	fake_close(&fake);
	return 0;
}

static struct event_plan *add_event(struct buffer_plan *b, const char *name)
{
	b->events = realloc(b->events, (b->n_events + 1) * sizeof(*b->events));
	b->events[b->n_events] = (struct event_plan){ .name = strdup(name) };
	return &b->events[b->n_events++];
}

static struct instance *open_buffer(size_t n, const char *clock)
{
	struct instance_opts o = {
		.plan = &plan, .clock = clock, .log = &fake.to, .match = instance_match_functions
	};
	struct instance *i;

	assert_int_equal(instance_open(&i, undo, &plan.buffers[n], &o), 0);
	return i;
}

/* Sets up the top buffer by the plan and lets go of it. */
static int setup_top(void)
{
	struct instance *i = open_buffer(0, NULL);
	int ret = instance_setup(i);

	instance_free(i);
	return ret;
}

/* The enable files that hold "1", in the order of a listing of the fake's tables. */
static const char *enabled(const char *dir)
{
	static char out[1024];
	const char *last = "";
	char path[128];

	out[0] = 0;
	for (size_t n = 0; n < ARRAY_SIZE(events); n++) {
		size_t len = strcspn(events[n], "/");

		if (strncmp(last, events[n], len + 1)) {
			snprintf(path, sizeof(path), "%sevents/%.*s/enable", dir, (int)len, events[n]);
			if (!strcmp(fake_line(&fake, path), "1"))
				snprintf(out + strlen(out), sizeof(out) - strlen(out), "%.*s ", (int)len,
					 events[n]);
		}
		last = events[n];
		snprintf(path, sizeof(path), "%sevents/%s/enable", dir, events[n]);
		if (!strcmp(fake_line(&fake, path), "1"))
			snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s ", events[n]);
	}
	return out;
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *enabled;
	} cases[] = {
		{ "kvm", "kvm other/kvm " },
		{ "kvm:", "kvm " },
		{ "kvm:*", "kvm " },
		{ "sched:sched_switch", "sched/sched_switch " },
		{ "sched_switch", "sched/sched_switch other/sched_switch " },
		{ "*:sched_switch", "sched/sched_switch other/sched_switch " },
		{ ":kvm_entry", "kvm/kvm_entry " },
		{ "sched:*wak*", "sched/sched_waking sched/sched_wakeup " },
		{ "*kvm*", "kvm other/kvm " },
		{ "kvm_e*", "kvm/kvm_entry kvm/kvm_exit " },
		{ "s?hed:sched_wakeu[p]", "sched/sched_wakeup " },
		{ "i*", "irq " },
		{ "all", "kvm sched irq other " },
		{ "*", "kvm sched irq other " },
		{ "*:*", "kvm sched irq other " },
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct buffer_plan *b = &plan.buffers[0];

		add_event(b, cases[n].name);
		assert_int_equal(setup_top(), 0);
		assert_string_equal(enabled(""), cases[n].enabled);
		free(b->events[--b->n_events].name);
		make_buffer("");
	}
	assert_string_equal(fake.log, "");
}

static void test_unknown_names(void **state)
{
	static const char *const names[] = { "nosuch", "kvm:nosuch",	  "nosuch:kvm_entry",
					     "ftrace", "ftrace:function", "../kvm",
					     "x*" };
	struct buffer_plan *b = &plan.buffers[0];
	char want[128];

	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		fake.log[0] = 0;
		add_event(b, names[n]);
		assert_int_equal(setup_top(), -ENOENT);
		snprintf(want, sizeof(want),
			 "-e %s: no such event or system in the top buffer "
			 "(see trace-cmd list -e)\n",
			 names[n]);
		assert_string_equal(fake.log, want);
		free(b->events[--b->n_events].name);
	}
	plan.ignore_event_errors = true;
	fake.log[0] = 0;
	add_event(b, "nosuch");
	add_event(b, "irq");
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake.log, "warning: -e nosuch: no such event or system in the top buffer "
				      "(see trace-cmd list -e)\n");
	assert_string_equal(enabled(""), "irq ");
}

/* -v takes away after everything is on, wherever it stands. */
static void test_negate(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	add_event(b, "sched_switch")->negate = true;
	add_event(b, "*:sched*");
	add_event(b, "kvm_e*");
	add_event(b, "kvm:kvm_exit")->negate = true;
	assert_int_equal(setup_top(), 0);
	assert_string_equal(enabled(""), "kvm/kvm_entry sched/sched_waking sched/sched_wakeup ");
}

static void test_filter(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	add_event(b, "kvm:kvm_entry")->filter = strdup("vcpu_pc > 0");
	add_event(b, "sched")->filter = strdup("common_pid == 1");
	fake_put(&fake, "events/sched/sched_waking/filter", "prio < 5\n");
	assert_int_equal(setup_top(), 0);
	assert_string_equal(enabled(""), "kvm/kvm_entry sched ");
	assert_string_equal(fake_line(&fake, "events/kvm/kvm_entry/filter"), "vcpu_pc > 0");
	assert_string_equal(fake_line(&fake, "events/sched/sched_switch/filter"), "common_pid == 1");
	assert_string_equal(fake_line(&fake, "events/sched/sched_waking/filter"), "common_pid == 1");
	assert_string_equal(fake_line(&fake, "events/kvm/kvm_exit/filter"), "none");
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_line(&fake, "events/sched/sched_waking/filter"), "prio < 5");
	assert_string_equal(fake_line(&fake, "events/kvm/kvm_entry/filter"), "0");
}

/* The kernel's own words come from error_log; a directory stands for a refused file. */
static void test_refused_filter(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];
	struct event_plan *e = add_event(b, "kvm:kvm_entry");

	e->filter = strdup("foo == 1");
	fake_put(&fake, "error_log",
		 "[  1.0] event filter parse error: error: Too many operands\n"
		 "  Command: bar\n          ^\n"
		 "[  2.0] event filter parse error: error: Field not found\n"
		 "  Command: foo == 1\n               ^\n");
	unlinkat(fake.fd, "events/kvm/kvm_entry/filter", 0);
	assert_int_equal(mkdirat(fake.fd, "events/kvm/kvm_entry/filter", 0755), 0);
	assert_int_equal(setup_top(), -EISDIR);
	assert_string_equal(fake.log, "cannot write 'foo == 1' to 'events/kvm/kvm_entry/filter': "
				      "Is a directory: Field not found\n");
	assert_string_equal(enabled(""), "");

	/* of many events, one that takes it is enough */
	fake.log[0] = 0;
	free(e->name);
	e->name = strdup("kvm");
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake.log, "warning: -e kvm: 1 of 4 events do not take the filter 'foo == 1'\n");
	assert_string_equal(enabled(""), "kvm other/kvm ");
}

static void test_trigger(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];
	struct event_plan *e = add_event(b, "sched_waking");

	e->negate = true; /* the trigger only */
	assert_int_equal(strlist_add(&e->triggers, "traceoff if prio > 3"), 0);
	assert_int_equal(strlist_add(&e->triggers, "stacktrace:5"), 0);
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake_get(&fake, "events/sched/sched_waking/trigger"),
			    "# Available triggers:\ntraceoff if prio > 3\nstacktrace:5\n");
	assert_string_equal(enabled(""), "");
}

static void test_values(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	b->size_kb = 512;
	b->subbuf_kb = 16;
	b->max_graph_depth = 3;
	b->clock = strdup("boot");
	b->cpumask = strdup("-1");
	plan.cmdlines_size = 4096;
	assert_int_equal(strlist_add(&b->options, "stacktrace"), 0);
	assert_int_equal(strlist_add(&b->options, "nooverwrite"), 0);
	assert_int_equal(strlist_add(&b->options, "nohup"), 0);
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake_line(&fake, "tracing_on"), "0");
	assert_string_equal(fake_get(&fake, "trace"), "");
	assert_string_equal(fake_get(&fake, "set_event"), "");
	assert_string_equal(fake_get(&fake, "set_event_pid"), "");
	assert_string_equal(fake_line(&fake, "trace_clock"), "boot");
	assert_string_equal(fake_line(&fake, "buffer_size_kb"), "512");
	assert_string_equal(fake_line(&fake, "buffer_subbuf_size_kb"), "16");
	assert_string_equal(fake_line(&fake, "tracing_cpumask"), "3");
	assert_string_equal(fake_line(&fake, "options/stacktrace"), "1");
	assert_string_equal(fake_line(&fake, "options/overwrite"), "0");
	assert_string_equal(fake_line(&fake, "options/nohup"), "1");
	assert_string_equal(fake_line(&fake, "saved_cmdlines_size"), "4096");
	assert_string_equal(fake_line(&fake, "max_graph_depth"), "3");
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_line(&fake, "tracing_on"), "1");
	assert_string_equal(fake_get(&fake, "set_event"), "old:event\n");
	assert_string_equal(fake_get(&fake, "set_event_pid"), "7\n");
	assert_string_equal(fake_line(&fake, "trace_clock"), "local");
	assert_string_equal(fake_line(&fake, "buffer_size_kb"), "1408");
	assert_string_equal(fake_line(&fake, "buffer_subbuf_size_kb"), "4");
	assert_string_equal(fake_line(&fake, "tracing_cpumask"), "f");
	assert_string_equal(fake_line(&fake, "options/overwrite"), "1");
	assert_string_equal(fake_line(&fake, "saved_cmdlines_size"), "128");
	assert_string_equal(fake.log, "");
}

static void test_full_masks(void **state)
{
	static const struct {
		int cpus;
		const char *mask;
	} cases[] = { { 32, "ffffffff" }, { 34, "3,ffffffff" }, { 64, "ffffffff,ffffffff" } };
	char path[64];

	plan.buffers[0].cpumask = strdup("-1");
	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		snprintf(path, sizeof(path), "per_cpu/cpu%d/stats", cases[n].cpus - 1);
		fake_put(&fake, path, "");
		assert_int_equal(setup_top(), 0);
		assert_string_equal(fake_line(&fake, "tracing_cpumask"), cases[n].mask);
	}
}

static void test_unknown_option(void **state)
{
	assert_int_equal(strlist_add(&plan.buffers[0].options, "nosuch"), 0);
	assert_int_equal(setup_top(), -ENOENT);
	assert_string_equal(fake.log, "there is no option 'nosuch' for the top buffer in this kernel\n");
}

static void test_clock(void **state)
{
	struct instance *i = open_buffer(0, "boot");

	assert_null(i->clock);
	assert_int_equal(instance_setup(i), 0);
	assert_string_equal(i->clock, "boot");
	instance_free(i);
	assert_int_equal(undo_all(undo), 0);

	fake_put(&fake, "trace_clock", "local [global] boot\n");
	i = open_buffer(0, NULL);
	assert_int_equal(instance_setup(i), 0);
	assert_string_equal(i->clock, "global");
	instance_free(i);
}

static void test_functions(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	b->tracer = strdup("function");
	plan.func_stack = true;
	assert_int_equal(strlist_add(&b->funcs, "sched*"), 0);
	assert_int_equal(strlist_add(&b->funcs, "^[kb].*_[ik][nv][im]t*$"), 0);
	assert_int_equal(strlist_add(&b->notrace, "schedule"), 0);
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake_get(&fake, "set_ftrace_filter"), "sched*\nkvm_init\nbr_kvm:mod:bridge\n");
	assert_string_equal(fake_get(&fake, "set_ftrace_notrace"), "schedule\n");
	assert_string_equal(fake_line(&fake, "current_tracer"), "function");
	assert_string_equal(fake_line(&fake, "options/func_stack_trace"), "1");
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_get(&fake, "set_ftrace_filter"), "");
	assert_string_equal(fake_line(&fake, "current_tracer"), "nop");
}

static void test_graph(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	b->tracer = strdup("function_graph");
	assert_int_equal(strlist_add(&b->graph, "schedule"), 0);
	assert_int_equal(strlist_add(&b->notrace, "kvm_init"), 0);
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake_get(&fake, "set_graph_function"), "schedule\n");
	assert_string_equal(fake_get(&fake, "set_graph_notrace"), "kvm_init\n");
	assert_string_equal(fake_get(&fake, "set_ftrace_notrace"), "#### no functions disabled ####\n");
}

/* A command is added to what is there, and taken off with '!'. */
static void test_function_command(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];
	bool taken_off = false;

	assert_int_equal(strlist_add(&b->funcs, "schedule:traceoff:3"), 0);
	assert_int_equal(setup_top(), 0);
	assert_string_equal(fake_line(&fake, "set_ftrace_filter"), "schedule:traceoff:3");
	for (size_t n = undo_mark(undo); n-- && !taken_off;) {
		assert_int_equal(undo_to(undo, n), 0);
		taken_off = !strcmp(fake_line(&fake, "set_ftrace_filter"), "!schedule:traceoff:3");
	}
	assert_true(taken_off);
}

static void test_no_such_function(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	assert_int_equal(strlist_add(&b->funcs, "^nosuch"), 0);
	assert_int_equal(setup_top(), -ENOENT);
	assert_string_equal(fake.log, "-l ^nosuch: no function of that name can be traced "
				      "(see available_filter_functions)\n");
	unlinkat(fake.fd, "set_ftrace_filter", 0);
	fake.log[0] = 0;
	assert_int_equal(setup_top(), -ENOENT);
	assert_string_equal(fake.log, "-l ^nosuch: this kernel has no 'set_ftrace_filter'\n");
}

static void test_pids(void **state)
{
	struct instance *i;

	plan.follow_children = true;
	i = open_buffer(0, NULL);
	assert_int_equal(instance_setup(i), 0);
	assert_int_equal(instance_set_pids(i, &(struct strlist){ .v = (char *[]){ "12" }, .n = 1 }, 34), 0);
	assert_string_equal(fake_get(&fake, "set_event_pid"), "12\n34\n");
	assert_string_equal(fake_get(&fake, "set_ftrace_pid"), "12\n34\n");
	assert_string_equal(fake_line(&fake, "options/event-fork"), "1");
	assert_string_equal(fake_line(&fake, "options/function-fork"), "1");
	assert_int_equal(instance_set_pids(i, &(struct strlist){ 0 }, 56), 0);
	assert_string_equal(fake_get(&fake, "set_event_pid"), "56\n");
	assert_int_equal(instance_hide_pids(i, "9\n"), 0);
	assert_string_equal(fake_get(&fake, "set_event_notrace_pid"), "9\n");
	assert_string_equal(fake_get(&fake, "set_ftrace_notrace_pid"), "no pid\n"); /* no tracer */
	unlinkat(fake.fd, "set_event_notrace_pid", 0);
	assert_int_equal(instance_hide_pids(i, "9\n"), 0);
	fake_put(&fake, "set_event_notrace_pid", "");
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_get(&fake, "set_event_pid"), "7\n");
	assert_string_equal(fake_line(&fake, "options/event-fork"), "0");
	instance_free(i);
}

static void test_run(void **state)
{
	struct strlist systems = { 0 };
	struct instance *i = open_buffer(0, NULL);
	uint64_t lost;

	assert_string_equal(i->path, ".");
	assert_int_equal(instance_setup(i), 0);
	assert_int_equal(instance_start(i), 0);
	assert_string_equal(fake_line(&fake, "tracing_on"), "1");
	assert_int_equal(instance_stop(i), 0);
	assert_string_equal(fake_line(&fake, "tracing_on"), "0");

	fake_put(&fake, "set_event", "kvm:kvm_entry\nkvm:kvm_exit\nirq:x\n*:*:mod:foo\n");
	assert_int_equal(instance_systems(i, &systems), 0);
	assert_int_equal(systems.n, 2);
	assert_string_equal(systems.v[0], "kvm");
	assert_string_equal(systems.v[1], "irq");
	strlist_release(&systems);

	assert_int_equal(instance_lost(i, 0, &lost), 0);
	assert_int_equal(lost, 16);
	assert_int_equal(instance_lost(i, 5, &lost), -ENOENT);
	instance_free(i);
}

static void want_trigger(struct trigger_plan *t, const char *event, const char *filter)
{
	t->event = strdup(event);
	t->filter = filter ? strdup(filter) : NULL;
}

/* Plain files keep all that is written, one after the other. */
static const char *triggers(const char *event)
{
	char path[128];

	snprintf(path, sizeof(path), "events/%s/trigger", event);
	return fake_get(&fake, path);
}

static void test_region(void **state)
{
	struct instance *i;

	want_trigger(&plan.start_on, "sched/sched_switch", "next_pid == 1");
	want_trigger(&plan.stop_on, "kvm/kvm_exit", NULL);
	assert_int_equal(instance_make_region(undo, &plan, &fake.to), 0);
	i = open_buffer(0, NULL);
	assert_int_equal(instance_setup(i), 0);
	fake_put(&fake, "events/sched/sched_switch/trigger", "");
	fake_put(&fake, "events/kvm/kvm_exit/trigger", "");
	assert_int_equal(instance_start(i), 0);
	assert_string_equal(triggers("sched/sched_switch"), "traceon if next_pid == 1\n");
	assert_string_equal(triggers("kvm/kvm_exit"), "traceoff\n");
	assert_int_equal(instance_is_on(i), 0); /* the event does it */
	fake_put(&fake, "tracing_on", "1\n");
	assert_int_equal(instance_is_on(i), 1);
	fake_put(&fake, "events/sched/sched_switch/trigger", "");
	assert_int_equal(instance_stop(i), 0);
	assert_string_equal(triggers("sched/sched_switch"), "!traceon\n");
	assert_int_equal(instance_is_on(i), 0);
	instance_free(i);
	assert_string_equal(fake.log, "");
}

/* --stop-on alone: on from the start. */
static void test_region_stop(void **state)
{
	struct instance *i;

	want_trigger(&plan.stop_on, "kvm/kvm_exit", "ret < 0");
	assert_int_equal(instance_make_region(undo, &plan, &fake.to), 0);
	i = open_buffer(0, NULL);
	assert_int_equal(instance_setup(i), 0);
	fake_put(&fake, "events/kvm/kvm_exit/trigger", "");
	assert_int_equal(instance_start(i), 0);
	assert_string_equal(triggers("kvm/kvm_exit"), "traceoff if ret < 0\n");
	assert_int_equal(instance_is_on(i), 1);
	assert_int_equal(instance_stop(i), 0);
	assert_string_equal(triggers("kvm/kvm_exit"), "traceoff if ret < 0\n");
	instance_free(i);
}

/* The kernel takes one traceon or traceoff for an event. */
static void test_region_of_one_event(void **state)
{
	char made[128], event[64];
	struct instance *i;

	want_trigger(&plan.start_on, "kvm/kvm_exit", "ret == 1");
	want_trigger(&plan.stop_on, "kvm/kvm_exit", "ret == 0");
	assert_int_equal(instance_make_region(undo, &plan, &fake.to), -ENOENT);
	assert_non_null(strstr(fake.log, "both for kvm/kvm_exit: "));
	fake.log[0] = 0;
	fake_put(&fake, "dynamic_events", "");
	snprintf(event, sizeof(event), INSTANCE_OWN_EVENTS "/region_stop_%d", getpid());
	snprintf(made, sizeof(made), "events/%s/trigger", event);
	fake_put(&fake, made, "");
	assert_int_equal(instance_make_region(undo, &plan, &fake.to), 0);
	snprintf(made, sizeof(made), "e:%s kvm/kvm_exit if ret == 0", event);
	assert_string_equal(fake_line(&fake, "dynamic_events"), made);

	i = open_buffer(0, NULL);
	assert_int_equal(instance_setup(i), 0);
	fake_put(&fake, "events/kvm/kvm_exit/trigger", "");
	assert_int_equal(instance_start(i), 0);
	assert_string_equal(triggers("kvm/kvm_exit"), "traceon if ret == 1\n");
	assert_string_equal(triggers(event), "traceoff\n");
	instance_free(i);
	undo_all(undo);
	snprintf(made, sizeof(made), "-:%s", event);
	assert_string_equal(fake_line(&fake, "dynamic_events"), made);
	assert_string_equal(fake.log, "");
}

static void test_region_of_nothing(void **state)
{
	want_trigger(&plan.start_on, "kvm/nosuch", NULL);
	assert_int_equal(instance_make_region(undo, &plan, &fake.to), -ENOENT);
	assert_string_equal(fake.log, "--start-on: no event kvm/nosuch with triggers in this kernel "
				      "(see trace-cmd list -e)\n");
}

static void test_instances(void **state)
{
	struct instance_opts o = { .plan = &plan, .log = &fake.to };
	struct instance *i;

	assert_non_null(record_plan_add_buffer(&plan, "new"));
	assert_non_null(record_plan_add_buffer(&plan, "old"));
	assert_int_equal(instance_open(&i, undo, &plan.buffers[1], &o), 0);
	assert_string_equal(i->path, "instances/new");
	assert_int_equal(faccessat(fake.fd, "instances/new", F_OK, 0), 0);
	instance_free(i);

	make_buffer("instances/old/");
	add_event(&plan.buffers[2], "irq");
	i = open_buffer(2, NULL);
	assert_int_equal(instance_setup(i), 0);
	assert_string_equal(enabled("instances/old/"), "irq ");
	assert_string_equal(enabled(""), "");
	assert_string_equal(fake_line(&fake, "instances/old/tracing_on"), "0");
	assert_string_equal(fake_line(&fake, "tracing_on"), "1");
	instance_free(i);

	assert_int_equal(undo_all(undo), 0);
	assert_int_not_equal(faccessat(fake.fd, "instances/new", F_OK, 0), 0);
	assert_string_equal(fake_get(&fake, "instances/old/set_event"), "old:event\n");
	assert_string_equal(fake_line(&fake, "instances/old/tracing_on"), "1");
	assert_string_equal(fake.log, "");
}

/* The event that a line makes; plain files make none, so all that is to be seen is what is written. */
static void make_event(const char *define, const char *name, bool optional)
{
	struct event_plan *e = add_event(&plan.buffers[0], name);

	e->define = strdup(define);
	e->optional = optional;
}

static int make_defined(void)
{
	return instance_make_events(undo, &plan.buffers[0], &fake.to);
}

static void test_made_event(void **state)
{
	make_event("p:hv/x do_it", "hv:x", false);
	assert_int_equal(make_defined(), -ENOENT);
	assert_string_equal(fake.log, "cannot write 'p:hv/x do_it' to 'dynamic_events': No such file or "
				      "directory (not in this kernel)\n");
	fake.log[0] = 0;
	fake_put(&fake, "dynamic_events", "");
	assert_int_equal(make_defined(), 0);
	assert_int_equal(setup_top(), -ENOENT); /* plain files do not make it */
	assert_string_equal(fake_get(&fake, "dynamic_events"), "p:hv/x do_it\n");
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_line(&fake, "dynamic_events"), "-:hv/x");
}

/* A second line would be added to it, and what is somebody's removed in the end. */
static void test_made_event_is_there(void **state)
{
	fake_put(&fake, "dynamic_events", "p:kvm/kvm_exit it\n");
	make_event("p:kvm/kvm_exit do_it", "kvm:kvm_exit", false);
	assert_int_equal(make_defined(), -EEXIST);
	assert_string_equal(fake.log, "-e 'p:kvm/kvm_exit do_it': there is an event kvm:kvm_exit already\n");
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_get(&fake, "dynamic_events"), "p:kvm/kvm_exit it\n");
}

static void test_preset(void **state)
{
	make_event("p:hv/x do_it", "hv:x", true);
	make_event("p:hv/y do_it", "hv:y", true);
	add_event(&plan.buffers[0], "sdt_qemu:z")->optional = true; /* perf told no line of it */
	fake_put(&fake, "dynamic_events", "");
	assert_int_equal(make_defined(), 0);
	assert_int_equal(setup_top(), 0); /* neither is found afterwards: no error for a preset's */
	assert_int_equal(unlinkat(fake.fd, "dynamic_events", 0), 0);
	fake.log[0] = 0;
	assert_int_equal(make_defined(), -ENOENT);
	assert_non_null(strstr(fake.log, "--preset: this kernel takes none of its probes\n"));
}

/* --take-over: nothing is cleared, and nothing but events changes. */
static void test_join(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];
	struct instance *i;

	fake_put(&fake, "set_event", "");
	assert_false(instance_runs(fake.fd, "."));
	assert_false(instance_runs(fake.fd, "instances/none"));
	fake_put(&fake, "current_tracer", "function\n");
	assert_true(instance_runs(fake.fd, "."));
	fake_put(&fake, "set_event", "old:event\n");
	fake_put(&fake, "trace", "what is in it");

	add_event(b, "kvm_entry")->filter = strdup("vcpu_pc > 1");
	b->size_kb = 99;
	i = open_buffer(0, "boot");
	assert_int_equal(instance_join(i), 0);
	assert_string_equal(enabled(""), "kvm/kvm_entry ");
	assert_string_equal(fake_get(&fake, "set_event"), "old:event\n");
	assert_string_equal(fake_line(&fake, "tracing_on"), "1");
	assert_string_equal(fake_line(&fake, "current_tracer"), "function");
	assert_string_equal(fake_get(&fake, "trace"), "what is in it");
	assert_string_equal(i->clock, "local");
	assert_string_equal(
		fake.log, "warning: the buffer runs already: of what was asked only its events are added\n");
	fake_put(&fake, "tracing_on", "0\n"); /* as the recorder does at the end */
	instance_free(i);
	assert_int_equal(undo_all(undo), 0);
	assert_string_equal(fake_line(&fake, "tracing_on"), "1");
	assert_string_equal(fake_line(&fake, "events/kvm/kvm_entry/filter"), "0");
}

/* What the kernel logged meanwhile goes, if there was nothing before. */
static void test_error_log(void **state)
{
	struct buffer_plan *b = &plan.buffers[0];

	add_event(b, "nosuch");
	fake_put(&fake, "error_log", "[  1.0] somebody's: error: x\n  Command: y\n");
	assert_int_equal(setup_top(), -ENOENT);
	assert_string_equal(fake_get(&fake, "error_log"), "[  1.0] somebody's: error: x\n  Command: y\n");
}

static void test_not_tracefs(void **state)
{
	struct instance_opts o = { .plan = &plan, .log = &fake.to };
	struct instance *i;

	unlinkat(fake.fd, "tracing_on", 0);
	assert_int_equal(setup_top(), -ENOENT);
	assert_string_equal(fake.log, "cannot write '0' to 'tracing_on': No such file or directory "
				      "(not in this kernel)\n");
	fake.log[0] = 0;
	assert_int_equal(renameat(fake.fd, "instances", fake.fd, "elsewhere"), 0);
	assert_non_null(record_plan_add_buffer(&plan, "x"));
	assert_int_equal(instance_open(&i, undo, &plan.buffers[1], &o), -ENOENT);
	assert_string_equal(fake.log, "cannot make the buffer 'instances/x': "
				      "No such file or directory (not in this kernel)\n");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_names),
		T(test_region),
		T(test_region_stop),
		T(test_region_of_one_event),
		T(test_region_of_nothing),
		T(test_unknown_names),
		T(test_negate),
		T(test_filter),
		T(test_refused_filter),
		T(test_trigger),
		T(test_values),
		T(test_full_masks),
		T(test_unknown_option),
		T(test_clock),
		T(test_functions),
		T(test_graph),
		T(test_function_command),
		T(test_no_such_function),
		T(test_pids),
		T(test_run),
		T(test_instances),
		T(test_made_event),
		T(test_made_event_is_there),
		T(test_preset),
		T(test_join),
		T(test_error_log),
		T(test_not_tracefs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
