// SPDX-License-Identifier: GPL-2.0-only
#include "record-opts-priv.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------- */

#define PLAN(field)   offsetof(struct record_plan, field)
#define BUFFER(field) offsetof(struct buffer_plan, field)
#define NO_PROXY      "an agent is reached directly, with -A"
#define NO_FIFOS      "guests send their data over sockets only: leave it out"
#define NO_NET	      "not sent over a network: record into a file and copy it, or use trace-cmd record -N"
#define NO_PROFILE    "profiles are not made by this version: use trace-cmd profile"

/* clang-format off */
#define OPT(k, n, a, h, fn, ...) { .row = { k, n, a, h, NULL }, .set = fn, __VA_ARGS__ }
#define REFUSED(k, n, a, text) { .row = { k, n, a, NULL, text } }
#define HEADING(h) { .row = { .help = h } }
/* clang-format on */
#define HOST_ONLY .host = true
#define FOR_GUEST .for_guest = true

static const struct opt opts[] = {
	HEADING("Events"),
	OPT('e', NULL, "EVENT", "event: system, system:event, event, globs, all", set_event, FOR_GUEST),
	OPT('f', NULL, "FILTER", "filter of the -e before it", set_filter, FOR_GUEST),
	OPT('R', NULL, "TRIGGER", "trigger for the -e before it", set_trigger, FOR_GUEST),
	OPT('v', NULL, NULL, "switch the events of the following -e off again", set_negate, FOR_GUEST),
	OPT('T', NULL, NULL, "a stack trace with every event", add_to_list, .off = BUFFER(options), FOR_GUEST,
	    HOST_ONLY, .also = "stacktrace"),
	OPT('i', NULL, NULL, "go on when an event is not there", set_flag, .off = PLAN(ignore_event_errors)),

	HEADING("Buffers"),
	OPT('B', NULL, "NAME", "options after it are for this instance; hyp: the hypervisor", set_buffer),
	OPT('b', NULL, "KIB", "size of the buffer per CPU", set_buffer_u64, .off = BUFFER(size_kb),
	    FOR_GUEST),
	OPT(0, "subbuf-size", "KIB", "size of the buffer's pages", set_buffer_u64, .off = BUFFER(subbuf_kb),
	    HOST_ONLY, FOR_GUEST),
	OPT('C', NULL, "CLOCK", "trace clock", set_clock, FOR_GUEST),
	OPT('M', NULL, "MASK", "CPUs to trace, hexadecimal; -1: all", set_cpumask, HOST_ONLY, FOR_GUEST),
	OPT('O', NULL, "OPTION", "ftrace option to set (noOPTION: to clear)", add_to_list,
	    .off = BUFFER(options), HOST_ONLY, FOR_GUEST),
	OPT(0, "cmdlines-size", "N", "task names that the kernel keeps", set_u64, .off = PLAN(cmdlines_size)),

	HEADING("Guests"),
	OPT('A', NULL, "GUEST", "a guest by name, CID or address; options after it are the guest's",
	    set_guest),
	OPT(0, "name", "NAME", "what the guest before it is called", set_guest_name),
	OPT(0, "tsync", "METHOD", "guests' clocks by: exact, hyp, kvm, ping, none (auto)", set_tsync),
	OPT(0, "tsync-interval", "MS", "between looks at the guests' clocks; 0: start and end (250)",
	    set_tsync_interval),

	HEADING("Functions"),
	OPT('p', NULL, "TRACER", "function, function_graph ...", set_tracer, HOST_ONLY, FOR_GUEST),
	OPT('l', NULL, "FUNC", "trace this function only", add_to_list, .off = BUFFER(funcs), FOR_GUEST,
	    HOST_ONLY),
	OPT('n', NULL, "FUNC", "do not trace this function", add_to_list, .off = BUFFER(notrace), FOR_GUEST,
	    HOST_ONLY),
	OPT('g', NULL, "FUNC", "graph this function", add_to_list, .off = BUFFER(graph), HOST_ONLY,
	    FOR_GUEST),
	OPT('d', NULL, NULL, "no function tracing by other tracers", add_to_list, .off = BUFFER(options),
	    HOST_ONLY, .also = "nofunction-trace", FOR_GUEST),
	OPT(0, "max-graph-depth", "N", "depth of function_graph", set_depth, HOST_ONLY, FOR_GUEST),
	OPT(0, "func-stack", NULL, "a stack trace with every function (needs -l)", set_flag,
	    .off = PLAN(func_stack)),

	HEADING("Tasks"),
	OPT('F', NULL, NULL, "trace the command only", set_flag, .off = PLAN(filter_command)),
	OPT('P', NULL, "PID,...", "trace these processes only", set_pids),
	OPT('c', NULL, NULL, "with -F or -P: their children too", set_flag, .off = PLAN(follow_children)),
	OPT(0, "no-filter", NULL, "trace the recorder itself too", set_flag, .off = PLAN(no_filter)),
	OPT(0, "user", "NAME", "run the command as this user", set_text, .off = PLAN(user)),
	OPT(0, "proc-map", NULL, "keep the address maps of the traced processes", set_flag,
	    .off = PLAN(proc_map)),

	HEADING("Recording"),
	OPT('o', NULL, "FILE", "output file (trace.dat)", set_output, .off = PLAN(output)),
	OPT(0, "file-version", "N", "6 or 7 (7)", set_version),
	OPT(0, "compression", "NAME", "zstd, none or any (zstd)", set_compression),
	OPT(0, "date", NULL, "keep the time of day in the file", set_flag, .off = PLAN(date)),
	OPT('s', NULL, "USECS", "sleep of the recorder between two reads", set_sleep),
	OPT('r', NULL, "PRIO", "real-time priority of the recorder", set_prio),
	OPT('k', NULL, NULL, "leave the tracing files as they are at the end", set_flag, .off = PLAN(keep)),
	OPT(0, "best-effort", NULL, "record what is there, say what is not", set_flag,
	    .off = PLAN(best_effort)),
	OPT('q', "quiet", NULL, "print errors only", set_flag, .off = PLAN(quiet)),
	OPT('h', "help", NULL, "print this text", set_help),

	/* options of trace-cmd that are refused */
	REFUSED('a', NULL, NULL,
		"the formats of every system with an event switched on are kept: name further ones "
		"with -e"),
	REFUSED('D', NULL, NULL,
		"would switch function tracing off for everybody: use -d, or sysctl "
		"kernel.ftrace_enabled=0"),
	REFUSED('G', NULL, NULL, NO_PROFILE),
	REFUSED('H', NULL, "", NO_PROFILE),
	REFUSED('N', NULL, "", NO_NET),
	REFUSED('S', NULL, NULL, NO_PROFILE),
	REFUSED('V', NULL, "", NO_NET),
	REFUSED('m', NULL, "",
		"the file's size is not bounded: bound the time (record ... sleep 10), or use "
		"trace-cmd record -m"),
	REFUSED('t', NULL, NULL, NO_NET),
	REFUSED(0, "by-comm", NULL, NO_PROFILE),
	REFUSED(0, "daemonize", NULL, "run it in the background of the shell (&)"),
	REFUSED(0, "debug", NULL, "messages have no levels: leave it out"),
	REFUSED(0, "fork", NULL, "run it in the background of the shell (&)"),
	REFUSED(0, "module", "", "write the module behind the function: -l 'FUNC:mod:MODULE'"),
	REFUSED(0, "nofifos", NULL, NO_FIFOS),
	REFUSED(0, "nosplice", NULL, "splice is used only where it works: leave it out"),
	REFUSED(0, "notimeout", NULL, "a guest that does not answer is given up after 10 s: leave it out"),
	REFUSED(0, "poll", NULL, "-s sets how often the buffers are read"),
	REFUSED(0, "profile", NULL, NO_PROFILE),
	REFUSED(0, "proxy", "", NO_PROXY),
	REFUSED(0, "stderr", NULL, "messages go to stderr anyway: leave it out"),
	REFUSED(0, "temp", "",
		"pages are kept beside the output file while recording: choose the place with -o"),
	REFUSED(0, "ts-offset", "", "give it to the report: trace-cmd report --ts-offset"),
	REFUSED(0, "tsc2nsec", NULL, "for times in nanoseconds use -C boot or -C mono"),
	REFUSED(0, "verbose", "[LEVEL]", "messages have no levels: leave it out, or use -q for errors only"),
};

static const struct opts_table table = {
	.command = "record",
	.rows = opts,
	.n = ARRAY_SIZE(opts),
	.size = sizeof(opts[0]),
	.in_order = true, /* the command's options are its own */
};

/* ---- parsing --------------------------------------------------------------- */

static int apply(void *ctx, const struct opt_row *row, const char *arg)
{
	const struct opt *o = (const struct opt *)row;
	struct parse *p = ctx;
	char name[32];

	if (p->guest && o->for_guest)
		return opts_for_guest(p, o, arg);
	if (o->host && opts_buffer(p)->is_hyp)
		return opts_fail(p, "%s has no meaning for the hypervisor's buffer: give it before -B %s",
				 opt_name(row, name), opts_buffer(p)->name);
	return o->set(p, o, arg ? arg : "");
}

static bool anything_to_record(const struct record_plan *plan)
{
	if (plan->n_guests)
		return true;
	for (size_t i = 0; i < plan->n_buffers; i++) {
		const struct buffer_plan *b = &plan->buffers[i];

		if (b->n_events || b->tracer || b->is_hyp)
			return true;
	}
	return false;
}

/* A trigger works for an event that is off too; the hypervisor's are all on when none is named. */
static bool stays_empty(const struct buffer_plan *b)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (!b->events[i].negate || b->events[i].triggers.n)
			return false;
	return b->n_events && !b->tracer && !b->is_hyp;
}

static int only_off(struct parse *p, const char *what, const char *name)
{
	return opts_fail(p,
			 "-v switches off the only events of %s%s, so nothing would be recorded "
			 "there: leave it out (it does not mean verbose)",
			 what, name);
}

/* -v alone makes an empty recording, and -v is what other programs call verbose. */
static int check_negated(struct parse *p)
{
	const struct record_plan *plan = p->plan;

	for (size_t i = 0; i < plan->n_buffers; i++)
		if (stays_empty(&plan->buffers[i]))
			return only_off(p, i ? "the buffer " : "the top buffer", plan->buffers[i].name);
	for (size_t i = 0; i < plan->n_guests; i++)
		if (plan->guests[i].events && !plan->guests[i].on)
			return only_off(p, "the guest ", plan->guests[i].spec);
	return 0;
}

/* what only the whole command line can tell */
static int check(struct parse *p)
{
	const struct record_plan *plan = p->plan;

	if (plan->follow_children && !plan->filter_command && !plan->pids.n)
		return opts_fail(p, "-c goes with -F or -P only");
	if (plan->filter_command && !plan->command && !plan->pids.n)
		return opts_fail(p, "-F needs a command to trace, or -P");
	if (plan->user && !plan->command)
		return opts_fail(p, "--user needs a command to run");
	if (plan->proc_map && !plan->command && !plan->pids.n)
		return opts_fail(p, "--proc-map needs a command, or -P");
	if (plan->func_stack && !plan->buffers[0].funcs.n)
		return opts_fail(p, "--func-stack needs -l before any -B: the stacks of all functions "
				    "can bring the machine to a stop");
	if (plan->file_version == 6 && plan->compression && strcmp(plan->compression, "none"))
		return opts_fail(p, "--compression %s: files of version 6 are not compressed",
				 plan->compression);
	if (!anything_to_record(plan))
		return opts_fail(p, "nothing to record: give events (-e), a tracer (-p) or -B hyp");
	return check_negated(p);
}

int record_opts_parse(int argc, char **argv, struct record_plan *plan, struct opts_error *err)
{
	struct parse p = { .plan = plan, .err = err };
	int ret;

	err->text[0] = 0;
	plan->output = strdup("trace.dat");
	plan->tsync_interval_ms = TSYNC_INTERVAL_MS;
	if (!plan->output || !record_plan_add_buffer(plan, ""))
		return opts_no_memory(&p);
	ret = opts_parse(&table, argc, argv, apply, &p, err);
	if (ret)
		return ret == OPTS_STOP ? RECORD_OPTS_HELP : ret;
	if (optind < argc)
		plan->command = argv + optind;
	return check(&p);
}

/* ---- usage ----------------------------------------------------------------- */

void record_opts_usage(struct buf *out)
{
	buf_addstr(out, "usage: hyptrace record [OPTION...] [--] [COMMAND [ARG...]]\n\n"
			"Records until the command ends, or until Ctrl-C.\n");
	opts_usage(&table, out);
	buf_addstr(out, "\nThe grammar is that of trace-cmd-record(1).\n");
}
