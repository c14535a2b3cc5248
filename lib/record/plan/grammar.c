// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The one grammar of record: a row for each option of trace-cmd record and of ours, and what it sets in
 * the plan.
 */
#include "record/plan/plan.h"
#include "base/escape.h"

/* One parse. */
struct grammar {
	struct record_plan *plan;
	const struct log *log;
	size_t buffer;	   /* the one that options belong to: the last -B, 0 = top */
	bool request;	   /* of a recorder, to an agent */
	bool has_event;	   /* -f and -R have an event to belong to */
	bool negate;	   /* -v */
	bool guest;	   /* options are for the last -A */
	bool guest_negate; /* -v among them */
	bool output;	   /* -o was given */
};

/* Flags of the rows. */
enum {
	IN_PLAN = 1,   /* `off` counts in the plan */
	IN_BUFFER = 2, /* ... in the buffer */
	NOT_HYP = 4,   /* means nothing for the hypervisor's buffer */
	GUEST = 8,     /* after -A it is the guest's, and goes to its agent as it is */
	AGENT = 16,    /* an agent takes it from a recorder */
	SKIPPED = 32,  /* means nothing to an agent and harms nothing: recorders send it */
};

static struct buffer_plan *grammar_buffer(struct grammar *g)
{
	return &g->plan->buffers[g->buffer];
}

static int plan_name(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return *arg ? opts_add_text(ctx, o, arg, err) : opts_wrong(err, o, arg, "empty");
}

/* An event that is made first. */
static int plan_made_event(struct grammar *g, const struct opt *o, const char *line, struct opts_error *err)
{
	const char *why;
	char *name = dynamic_event_name(line, &why);
	struct event_plan *e;

	if (!name)
		return opts_wrong(err, o, line, why);
	e = buffer_plan_add_event(grammar_buffer(g), name, false);
	free(name);
	if (!e)
		return -ENOMEM;
	return str_take(&e->define, strdup(line));
}

static int plan_event(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;
	bool made = dynamic_event_defined(arg);
	int ret = 0;

	if (!*arg)
		return opts_wrong(err, o, arg, "empty");
	if (made && g->negate)
		return opts_wrong(err, o, arg, "made to be switched off: give it before -v");
	if (made)
		ret = plan_made_event(g, o, arg, err);
	else if (!buffer_plan_add_event(grammar_buffer(g), arg, g->negate))
		ret = -ENOMEM;
	g->has_event |= !ret;
	return ret;
}

#define HOST_PROBES "probes of programs of the host: give it before -A"

static bool preset_is_sdt(const char *name)
{
	const char *const *lines = dynamic_preset(name);

	return lines && !dynamic_event_defined(*lines);
}

/* Probes that a question needs; a kernel without some of the functions has the others. */
static int plan_preset(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	const char *const *lines = dynamic_preset(arg);
	struct grammar *g = ctx;
	bool sdt = preset_is_sdt(arg);
	int ret = lines ? 0 : opts_wrong_word(err, o, arg);

	if (sdt && g->request)
		return opts_wrong(err, o, arg, HOST_PROBES);
	for (; !ret && *lines; lines++) {
		struct buffer_plan *b = grammar_buffer(g);

		if (!sdt)
			ret = plan_made_event(g, o, *lines, err);
		else if (!buffer_plan_add_event(b, *lines, false))
			ret = -ENOMEM;
		if (ret)
			break;
		b->events[b->n_events - 1].optional = true;
		b->events[b->n_events - 1].sdt = sdt;
	}
	g->has_event = false; /* none of them is an -e */
	return ret;
}

/* The event that -f or -R belongs to; NULL with the reason in err. */
static struct event_plan *event_before(struct grammar *g, const struct opt *o, const char *arg,
				       struct opts_error *err)
{
	struct buffer_plan *b = grammar_buffer(g);

	if (g->has_event && *arg)
		return &b->events[b->n_events - 1];
	opts_wrong(err, o, arg, g->has_event ? "empty" : "must come after the -e that it is for");
	return NULL;
}

static int plan_filter(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct event_plan *e = event_before(ctx, o, arg, err);

	if (!e)
		return -EINVAL;
	return str_take(&e->filter, e->filter ? str_printf("(%s)&&(%s)", e->filter, arg) : strdup(arg));
}

static int plan_trigger(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct event_plan *e = event_before(ctx, o, arg, err);

	return e ? strlist_add(&e->triggers, arg) : -EINVAL;
}

static int plan_buffer(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;
	const char *remote = g->request ? NULL : record_plan_remote(arg);
	struct buffer_plan *b;

	if (!name_fits_file(arg))
		return opts_wrong(err, o, arg, "not a name for a buffer");
	if (g->negate)
		return opts_error(err,
				  "-v before -B %s would delete that buffer, which record does not do"
				  ": remove its directory below 'instances', or give -v after -B",
				  arg);
	if (g->guest && !remote)
		return opts_error(err,
				  "-B %s after -A: instances in a guest are not served; give the host's "
				  "-B before -A",
				  arg);
	g->guest = false; /* the hypervisor's is never a guest's */
	g->has_event = false;
	for (g->buffer = 1; g->buffer < g->plan->n_buffers; g->buffer++) {
		b = grammar_buffer(g);
		if (!strcmp(b->name, remote ? remote : arg))
			return 0;
		if (remote && b->is_hyp)
			return opts_error(err, "-B %s: one remote at a time, and -B %s is one", arg, b->name);
	}
	b = record_plan_add_buffer(g->plan, remote ? remote : arg);
	if (!b)
		return -ENOMEM;
	b->is_hyp = remote != NULL;
	return 0;
}

static int plan_tracer(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	/* these leave their result outside of the ring buffer, in the snapshot */
	static const char *const latency[] = { "wakeup",  "wakeup_rt",	"wakeup_dl",
					       "irqsoff", "preemptoff", "preemptirqsoff" };
	struct grammar *g = ctx;
	struct buffer_plan *b = grammar_buffer(g);
	size_t len;

	if (b->tracer)
		return opts_wrong(err, o, arg, "this buffer has a tracer already, and takes only one");
	while (isspace((unsigned char)*arg))
		arg++;
	for (len = strlen(arg); len && isspace((unsigned char)arg[len - 1]); len--)
		;
	if (!len)
		return opts_wrong(err, o, "", "empty");
	b->tracer = strndup(arg, len);
	if (!b->tracer)
		return -ENOMEM;
	if (b->is_hyp && strcmp(b->tracer, "function"))
		return opts_wrong(err, o, arg, "the hypervisor has function only: give others before -B");
	for (size_t i = 0; i < ARRAY_SIZE(latency) && !g->request; i++)
		if (!strcmp(b->tracer, latency[i]))
			return opts_error(err,
					  "-p %s: latency tracers are not recorded by this version"
					  ": use trace-cmd record -p %s",
					  b->tracer, b->tracer);
	return 0;
}

static int plan_clock(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct buffer_plan *b = ctx;

	if (*arg && b->is_hyp && strcmp(arg, "boot"))
		return opts_wrong(err, o, arg,
				  "the hypervisor's clock is always boot: for the host's, give -C before -B");
	return opts_set_copy(b, o, arg, err);
}

static int plan_output(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;

	if (g->output)
		return opts_wrong(err, o, arg, "only one output file");
	g->output = true;
	return opts_set_copy(g->plan, o, arg, err);
}

static struct guest_plan *last_guest(struct grammar *g)
{
	return &g->plan->guests[g->plan->n_guests - 1];
}

static int plan_guest(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;
	struct guest_plan *v;

	if (!*arg)
		return opts_wrong(err, o, arg, "empty");
	v = array_next(&g->plan->guests, g->plan->n_guests, sizeof(*v));
	if (!v || !(v->spec = strdup(arg)))
		return -ENOMEM;
	g->plan->n_guests++;
	g->guest = true;
	g->guest_negate = false;
	g->has_event = false;
	return 0;
}

static int plan_guest_name(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;

	if (!g->guest)
		return opts_wrong(err, o, arg, "must come after the -A that it names");
	if (!name_fits_file(arg))
		return opts_wrong(err, o, arg, "not a name for a guest");
	return opts_set_copy(last_guest(g), o, arg, err);
}

static int plan_profile(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;

	return opts_set_number(g->guest ? &last_guest(g)->profile_hz : &g->plan->profile_hz, o, arg, err);
}

#define NO_PROXY   "an agent is reached directly, with -A"
#define NO_FIFOS   "guests send their data over sockets only: leave it out"
#define NO_NET	   "not sent over a network: record into a file and copy it, or use trace-cmd record -N"
#define NO_PROFILE "trace-cmd's profiles are not made: use trace-cmd profile, or --profile HZ for samples"

/* clang-format off */
#define KEY(k, arg, help, ...)	    OPT(k, NULL, arg, help, __VA_ARGS__)
#define NAME(name, arg, help, ...)  OPT(0, name, arg, help, __VA_ARGS__)
#define NO_KEY(k, arg, ...)	    OPT_REFUSED(k, NULL, arg, __VA_ARGS__)
#define NO_NAME(name, arg, ...)	    OPT_REFUSED(0, name, arg, __VA_ARGS__)
/* clang-format on */
#define PLAN(field, f)	 .off = offsetof(struct record_plan, field), .flags = IN_PLAN | (f)
#define BUFFER(field, f) .off = offsetof(struct buffer_plan, field), .flags = IN_BUFFER | (f)
#define ANYWHERE	 (GUEST | AGENT)
#define HOSTS		 (NOT_HYP | GUEST | AGENT) /* of a buffer, but not of the hypervisor's */
#define KIB_MAX		 (INT64_MAX >> 10)	   /* the kernel shifts it */

static const struct opt rows[] = {
	OPT_HEADING("Events"),
	KEY('e', "EVENT", "event: system, system:event, event, globs, all; a probe", plan_event,
	    .flags = ANYWHERE),
	NAME("preset", "NAME",
	     "probes of virtio's queues (kicks, doorbells, signals, interrupts), or static ones of QEMU",
	     plan_preset, .flags = ANYWHERE, .words = "virtio qemu"),
	KEY('f', "FILTER", "filter of the -e before it", plan_filter, .flags = ANYWHERE),
	KEY('R', "TRIGGER", "trigger for the -e before it", plan_trigger, .flags = ANYWHERE),
	KEY('v', NULL, "switch the events of the following -e off again", opts_set_flag,
	    .off = offsetof(struct grammar, negate), .flags = ANYWHERE),
	KEY('T', NULL, "a stack trace with every event", opts_add_text, BUFFER(options, HOSTS),
	    .text = "stacktrace"),
	KEY('i', NULL, "go on when an event is not there", opts_set_flag, PLAN(ignore_event_errors, AGENT)),

	OPT_HEADING("Buffers"),
	KEY('B', "BUFFER", "options after it are for this instance; hyp: the hypervisor; remote:X",
	    plan_buffer, .flags = AGENT),
	OPT_SIZE('b', NULL, "size of the buffer per CPU: 512K, 8M", UNIT_KIB, UNIT_KIB,
		 BUFFER(size_kb, ANYWHERE), .min = 1, .max = KIB_MAX),
	OPT_SIZE(0, "subbuf-size", "size of the buffer's pages: 4K, 64K", UNIT_KIB, UNIT_KIB,
		 BUFFER(subbuf_kb, HOSTS), .min = 1, .max = KIB_MAX),
	KEY('C', "CLOCK", "trace clock", plan_clock, BUFFER(clock, ANYWHERE)),
	KEY('M', "MASK", "CPUs to trace, hexadecimal; -1: all", plan_cpumask, BUFFER(cpumask, HOSTS)),
	KEY('O', "OPTION", "ftrace option to set (noOPTION: to clear)", plan_name, BUFFER(options, HOSTS)),
	NAME("cmdlines-size", "N", "task names that the kernel keeps", opts_set_number,
	     PLAN(cmdlines_size, AGENT), .min = 1, .max = INT64_MAX),

	OPT_HEADING("Guests"),
	KEY('A', "GUEST", "a guest by name, CID or address; options after it are the guest's", plan_guest),
	NAME("name", "NAME", "what the guest before it is called", plan_guest_name,
	     .off = offsetof(struct guest_plan, name)),
	NAME("tsync", "METHOD", "how guests' clocks are aligned (auto)", plan_tsync, .flags = IN_PLAN,
	     .words = "auto counter hyp kvm ping none"),
	NAME("tsync-interval", "DURATION", "between looks at the guests' clocks; 0: start and end (250ms)",
	     plan_tsync_interval, PLAN(tsync_interval_ms, SKIPPED), .max = INT32_MAX, .units = duration_units,
	     .plain = UNIT_MS, .unit = UNIT_MS),
	OPT_DURATION(0, "guest-timeout", "a guest that is silent for so long is dropped (30s)", UNIT_S,
		     UNIT_MS, PLAN(guest_timeout_ms, 0), .min = 100, .max = 3600000),
	NAME("hypertrace", "[=GUEST=FILE]",
	     "marks of guests' programs, of their shared memory; FILE: of GUEST", record_plan_marks,
	     .flags = IN_PLAN),

	OPT_HEADING("Functions"),
	KEY('p', "TRACER", "function, function_graph ...", plan_tracer, .flags = ANYWHERE),
	KEY('l', "FUNC", "trace this function only", plan_name, BUFFER(funcs, ANYWHERE)),
	KEY('n', "FUNC", "do not trace this function", plan_name, BUFFER(notrace, ANYWHERE)),
	KEY('g', "FUNC", "graph this function", plan_name, BUFFER(graph, HOSTS)),
	KEY('d', NULL, "no function tracing by other tracers", opts_add_text, BUFFER(options, HOSTS),
	    .text = "nofunction-trace"),
	NAME("max-graph-depth", "N", "depth of function_graph", opts_set_number,
	     BUFFER(max_graph_depth, HOSTS), .max = INT32_MAX),
	NAME("func-stack", NULL, "a stack trace with every function (needs -l)", opts_set_flag,
	     PLAN(func_stack, AGENT)),
	NAME("profile", "HZ", "stacks of each CPU, HZ times a second", plan_profile, .min = 1,
	     .max = 1000000),

	OPT_HEADING("Tasks"),
	KEY('F', NULL, "trace the command only", opts_set_flag, PLAN(filter_command, 0)),
	KEY('P', "PID,...", "trace these processes only", plan_pids, .flags = AGENT | IN_PLAN),
	KEY('c', NULL, "with -F or -P: their children too", opts_set_flag, PLAN(follow_children, AGENT)),
	NAME("no-filter", NULL, "trace the recorder itself too", opts_set_flag, PLAN(no_filter, SKIPPED)),
	NAME("user", "NAME", "run the command as this user", opts_set_copy, PLAN(user, 0)),
	NAME("proc-map", NULL, "keep the address maps of the traced processes", opts_set_flag,
	     PLAN(proc_map, SKIPPED)),

	OPT_HEADING("Recording"),
	KEY('o', "FILE", "output file (trace.dat)", plan_output, .off = offsetof(struct record_plan, output)),
	NAME("config", "FILE", "events and duration by Perfetto's text configuration", perfetto_config_option,
	     .flags = IN_PLAN),
	NAME("file-version", "N", "6 or 7 (7)", opts_set_number, PLAN(file_version, SKIPPED), .min = 6,
	     .max = 7),
	NAME("compression", "NAME", "of the file (zstd)", plan_compression, PLAN(compression, SKIPPED),
	     .words = "zstd none any"),
	NAME("date", NULL, "keep the time of day in the file", opts_set_flag, PLAN(date, SKIPPED)),
	OPT_DURATION('s', NULL, "sleep of the recorder between two reads", UNIT_US, UNIT_US,
		     PLAN(sleep_us, AGENT), .max = INT64_MAX / UNIT_US),
	KEY('r', "PRIO", "real-time priority of the recorder", opts_set_number, PLAN(rt_prio, SKIPPED),
	    .min = 1, .max = 99),
	NAME("rotate", "SIZE|DURATION", "a file of its own, FILE.NNN, each 100M, each 30s ...", plan_rotate,
	     .flags = IN_PLAN),
	NAME("keep", "N", "with --rotate or --flight: the newest N files only", opts_set_number,
	     PLAN(keep_files, 0), .min = 1, .max = INT32_MAX),
	OPT_SIZE('m', NULL, "keep so much of each CPU only, the newest", UNIT_KIB, UNIT_KIB,
		 PLAN(max_cpu_kb, 0), .min = 64, .max = KIB_MAX),
	OPT_SIZE(0, "max-size", "end when so much is recorded: 100M, 2G", 0, 1, PLAN(max_bytes, 0), .min = 1,
		 .max = INT64_MAX),
	OPT_DURATION(0, "flight", "keep so much of the past in memory, write it on SIGUSR1", UNIT_S, UNIT_MS,
		     PLAN(flight_ms, 0), .min = 1000, .max = 3600000),
	NAME("ring", NULL, "with --flight: in the kernel's own buffers, which nobody reads before",
	     opts_set_flag, PLAN(ring, 0)),
	NAME("dump-on", "EVENT[/FILTER]", "write what is kept there when this event comes", region_option,
	     PLAN(dump_on, 0)),
	KEY('k', NULL, "leave the tracing files as they are at the end", opts_set_flag, PLAN(keep, 0)),
	NAME("start-on", "EVENT[/FILTER]", "record from this event on, by a trigger of the kernel's",
	     region_option, PLAN(start_on, ANYWHERE)),
	NAME("stop-on", "EVENT[/FILTER]", "record until this event; with the one before, again and again",
	     region_option, PLAN(stop_on, ANYWHERE)),
	NAME("take-over", NULL, "go on with a buffer that runs: keep what is in it and switched on",
	     opts_set_flag, PLAN(take_over, 0)),
	NAME("best-effort", NULL, "record what is available, report what is not", opts_set_flag,
	     PLAN(best_effort, 0)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, PLAN(quiet, SKIPPED)),
	OPT('h', "help", NULL, "print this text", opts_help),

	/* options of trace-cmd that are refused */
	NO_KEY('a', NULL,
	       "the formats of every system with an event switched on are kept: name further ones "
	       "with -e",
	       .flags = SKIPPED),
	NO_KEY('D', NULL,
	       "would switch function tracing off for everybody: use -d, or sysctl "
	       "kernel.ftrace_enabled=0",
	       .flags = SKIPPED),
	NO_KEY('G', NULL, NO_PROFILE),
	NO_KEY('H', "", NO_PROFILE),
	NO_KEY('K', NULL, "--take-over goes on with a buffer, and what is in it, as it is"),
	NO_KEY('N', "", NO_NET),
	NO_KEY('S', NULL, NO_PROFILE, .flags = SKIPPED),
	NO_KEY('V', "", NO_NET),
	NO_KEY('t', NULL, NO_NET),
	NO_NAME("by-comm", NULL, NO_PROFILE),
	NO_NAME("daemonize", NULL, "run it in the background of the shell (&)"),
	NO_NAME("debug", NULL, "messages have no levels: leave it out", .flags = SKIPPED),
	NO_NAME("fork", NULL, "run it in the background of the shell (&)"),
	NO_NAME("module", "", "write the module after the function: -l 'FUNC:mod:MODULE'"),
	NO_NAME("nofifos", NULL, NO_FIFOS, .flags = SKIPPED),
	NO_NAME("nosplice", NULL, "splice is used only where it works: leave it out", .flags = SKIPPED),
	NO_NAME("notimeout", NULL, "--guest-timeout sets how long a guest may be silent", .flags = SKIPPED),
	NO_NAME("poll", NULL, "-s sets how often the buffers are read", .flags = SKIPPED),
	NO_NAME("proxy", "", NO_PROXY),
	NO_NAME("stderr", NULL, "messages go to stderr anyway: leave it out"),
	NO_NAME("temp", "",
		"pages are kept next to the output file while recording: choose the place with -o"),
	NO_NAME("ts-offset", "", "give it to the report: trace-cmd report --ts-offset"),
	NO_NAME("tsc2nsec", NULL, "for times in nanoseconds use -C boot or -C mono"),
	NO_NAME("verbose", "[=LEVEL]", "messages have no levels: leave it out, or use -q for errors only"),
};

static int grammar_apply(struct grammar *g, const struct opt *o, const char *arg, struct opts_error *err)
{
	void *into = o->flags & IN_BUFFER ? (void *)grammar_buffer(g)
		     : o->flags & IN_PLAN ? (void *)g->plan
					  : g;

	return o->set(into, o, arg, err);
}

static int apply_line(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;
	char name[32], number[24];

	if (o->instead)
		return opts_error(err, "%s is not served: %s", opt_name(o, name), o->instead);
	if (g->guest && o->flags & GUEST) {
		struct guest_plan *guest = last_guest(g);

		/* Hands an option on to the guest of the last -A. */
		if ((o->key == 'f' || o->key == 'R') && !g->has_event)
			return opts_wrong(err, o, arg, "must come after the -e that it is for");
		if (o->arg && !*arg)
			return opts_wrong(err, o, "", "empty");
		if (o->set == plan_preset && preset_is_sdt(arg))
			return opts_wrong(err, o, arg, HOST_PROBES);
		if (o->set == opts_set_amount) { /* stock agents know no units */
			struct opt plain = *o;
			uint64_t n;

			plain.off = 0;
			if (opts_set_amount(&n, &plain, arg, err))
				return -EINVAL;
			snprintf(number, sizeof(number), "%llu", (unsigned long long)n);
			arg = number;
		}
		if (strlist_add(&guest->args, opt_name(o, name)) ||
		    (o->arg && strlist_add(&guest->args, arg)))
			return -ENOMEM;
		if (o->key == 'e')
			event_name_colon(guest->args.v[guest->args.n - 1]);
		g->guest_negate |= o->key == 'v';
		guest->events |= o->key == 'e' || o->key == 'p' || o->set == plan_preset;
		guest->on |= o->key == 'p' || o->set == plan_preset || o->key == 'R' ||
			     (o->key == 'e' && !g->guest_negate);
		g->has_event |= o->key == 'e';
		return 0;
	}
	if (o->flags & NOT_HYP && grammar_buffer(g)->is_hyp)
		return opts_error(err, "%s has no meaning for the hypervisor's buffer: give it before -B %s",
				  opt_name(o, name), grammar_buffer(g)->name);
	return grammar_apply(g, o, arg, err);
}

static int apply_request(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct grammar *g = ctx;
	char name[32];

	if (o->flags & AGENT)
		return grammar_apply(g, o, arg, err);
	if (!(o->flags & SKIPPED))
		return opts_error(err, "%s: this option is not for a guest", opt_name(o, name));
	log_debug(g->log, "%s is ignored", opt_name(o, name));
	return 0;
}

const struct opts_table grammar_table = {
	.command = "record",
	.usage = "usage: hyptrace record [OPTION...] [--] [COMMAND [ARG...]]\n\n"
		 "Records until the command ends, or until Ctrl-C.\n",
	.foot = "\nThe grammar is that of trace-cmd-record(1).\n",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.in_order = true, /* the command's options are its own */
	.dispatch = apply_line,
};

static const struct opts_table request_table = {
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.in_order = true,
	.whole_names = true,
	.dispatch = apply_request,
};

int grammar_parse_request(struct record_plan *plan, int argc, char **argv, const struct log *log,
			  struct opts_error *err)
{
	struct grammar g = { .plan = plan, .log = log, .request = true };
	int ret;

	if (!record_plan_add_buffer(plan, ""))
		return -ENOMEM;
	ret = opts_parse(&request_table, &argc, argv, &g, err);
	if (!ret && argc > 1)
		ret = opts_error(err, "command: nothing is run here");
	return ret;
}

int grammar_parse_line(struct record_plan *plan, int argc, char **argv, struct opts_error *err)
{
	struct grammar g = { .plan = plan };
	int ret;

	plan->output = strdup("trace.dat");
	plan->tsync_interval_ms = TSYNC_INTERVAL_MS;
	plan->guest_timeout_ms = GUEST_TIMEOUT_MS;
	if (!plan->output || !record_plan_add_buffer(plan, "")) {
		opts_error(err, "out of memory");
		return -ENOMEM;
	}
	ret = opts_parse(&grammar_table, &argc, argv, &g, err);
	if (ret)
		return ret;
	plan->command = argc > 1 ? argv + 1 : NULL;
	return record_plan_route(plan) ?: record_plan_check(plan, err);
}
