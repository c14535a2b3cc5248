// SPDX-License-Identifier: GPL-2.0-only
/* The command line of report: the table of its options, and what each sets. */
#include "report-priv.h"

#define DEFAULT_FILE "trace.dat"
#define CPU_MAX	     65535

/* Facts shown instead of the events. */
static int take_what(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	((struct report_opts *)ctx)->what = (enum report_what)o->flags;
	return 0;
}

/* Tables show the main buffer as "-". */
static int take_buffer(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return opts_add_text(ctx, o, strcmp(arg, "-") ? arg : "", err);
}

static int take_format_names(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	((struct report_opts *)ctx)->event = arg;
	return take_what(ctx, o, arg, err);
}

static int take_cpus_shown(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	opts_set_flag(ctx, o, arg, err);
	return take_what(ctx, o, arg, err);
}

static int add_input(struct report_opts *o, const char *path)
{
	struct report_input input = { .path = path };

	return array_push(&o->inputs, &o->n_inputs, &input, sizeof(input));
}

static int take_input(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return add_input(ctx, arg);
}

/* The file that an option after it belongs to; NULL: none yet. */
static struct report_input *last_input(struct report_opts *r)
{
	return r->n_inputs ? &r->inputs[r->n_inputs - 1] : NULL;
}

/* Before the first file for all of them, else for the last one. */
static int add_event_filter(struct report_opts *r, const char *text, size_t len, unsigned int kind)
{
	struct report_input *in = last_input(r);
	struct report_filters *f = in ? &in->filters : &r->filters;
	struct report_filter *v = array_next(&f->v, f->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*v = (struct report_filter){ .text = strndup(text, len),
				     .kind = kind,
				     .negate = kind == FILTER_TEXT && r->negate };
	f->n++;
	return v->text ? 0 : -ENOMEM;
}

static int take_event_filter(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return add_event_filter(ctx, arg, strlen(arg), FILTER_TEXT);
}

/* --pid 1,2 and --comm a,b: a filter for each; one that matches is enough. */
static int take_tasks(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	while (*arg) {
		size_t len = strcspn(arg, ",");
		int ret = 0;

		if (o->flags == FILTER_PID && len && strspn(arg, "0123456789") != len)
			return opts_wrong(err, o, arg, "not a list of numbers");
		if (len)
			ret = add_event_filter(ctx, arg, len, o->flags);
		if (ret)
			return ret;
		arg += len + (arg[len] == ',');
	}
	return 0;
}

/* Reads the number at *s and moves *s after it. */
static bool take_cpu_number(const char **s, unsigned int *cpu)
{
	char *end;
	unsigned long v;

	*s += strspn(*s, " \t");
	if (**s < '0' || **s > '9')
		return false;
	v = strtoul(*s, &end, 10);
	*s = end;
	*cpu = (unsigned int)v;
	return v <= CPU_MAX;
}

/* "0,3" or "2-4" or "0:5-7" */
static int take_cpus(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct report_opts *r = ctx;
	const char *s = arg;

	do {
		struct cpu_range range;

		if (!take_cpu_number(&s, &range.first))
			return opts_wrong(err, o, arg, "not a list of CPUs");
		range.last = range.first;
		if (*s == '-' && (s++, !take_cpu_number(&s, &range.last)))
			return opts_wrong(err, o, arg, "not a list of CPUs");
		if (range.last < range.first)
			return opts_wrong(err, o, arg, "a range goes from the lower to the higher");
		if (array_push(&r->cpus, &r->n_cpus, &range, sizeof(range)))
			return -ENOMEM;
		if (*s && *s != ',' && *s != ':')
			return opts_wrong(err, o, arg, "not a list of CPUs");
	} while (*s++);
	return 0;
}

static int take_ts_offset(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct report_input *in = last_input(ctx);
	bool back = *arg == '-';
	uint64_t ns;

	if (!in)
		return opts_error(err, "--ts-offset must come after the -i of its file");
	if (parse_amount(arg + (back || *arg == '+'), duration_units, 1, &ns) || ns > INT64_MAX)
		return opts_wrong(err, o, arg, "not a duration such as 250, -10ms, 2s; a plain number: ns");
	in->ts_offset = back ? -(int64_t)ns : (int64_t)ns;
	return 0;
}

static int take_hz(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct report_input *in = last_input(ctx);
	uint64_t *hz = in ? &in->hz : &((struct report_opts *)ctx)->hz;

	return parse_u64(arg, hz) || !*hz ? opts_wrong(err, o, arg, "not a frequency in Hz") : 0;
}

static int take_color(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	static const char *const names[] = { "auto", "always", "never" };
	struct report_opts *r = ctx;

	r->color = COLOR_ALWAYS;
	if (!arg)
		return 0;
	for (int i = 0; i < (int)ARRAY_SIZE(names); i++) {
		if (strcmp(arg, names[i]))
			continue;
		r->color = (enum report_color)i;
		return 0;
	}
	return opts_wrong(err, o, arg, "not auto, always or never");
}

#define AT(field)  .off = offsetof(struct report_opts, field)
#define NO_PROFILE "profiles are not made by this version: use trace-cmd split and trace-cmd report --profile"
#define NO_DEBUG   "pages are not shown: use trace-cmd report --debug"
#define NO_LEVELS  "messages have no levels: leave it out, or use -q for errors only"

static const struct opt report_rows[] = {
	OPT_HEADING("Files"),
	OPT('i', NULL, "FILE", "a file to read (trace.dat); several are merged by time", take_input),
	OPT(0, "ts-offset", "DURATION", "add to the times of the file before it; a plain number: ns",
	    take_ts_offset),
	OPT(0, "ts2secs", "HZ", "rate of the clock of the file before it, or of all", take_hz),
	OPT(0, "follow", NULL, "a recording that goes on, until it ends", opts_set_flag, AT(follow)),
	OPT(0, "kallsyms", "FILE", "symbols to use besides the file's own", opts_set_text, AT(kallsyms)),

	OPT_HEADING("Which events"),
	OPT(0, "cpu", "CPU,...", "of these CPUs only: 0,3 or 2-4", take_cpus),
	OPT('B', NULL, "BUFFER", "of this buffer only; '' or -: the top buffer", take_buffer, AT(buffers)),
	OPT('F', NULL, "FILTER", "that match: 'EVENT,...[: FIELD == VALUE ...]'", take_event_filter),
	OPT('v', NULL, NULL, "not those that match the following -F", opts_set_flag, AT(negate)),
	OPT(0, "pid", "PID,...", "of these tasks", take_tasks, .flags = FILTER_PID),
	OPT(0, "comm", "NAME,...", "of the tasks of these names", take_tasks, .flags = FILTER_COMM),
	OPT('I', NULL, NULL, "none of hard interrupts", opts_set_flag, AT(no_irq)),
	OPT('S', NULL, NULL, "none of soft interrupts", opts_set_flag, AT(no_softirq)),
	OPT('T', "filter-test", NULL, "show what became of the filters, and exit", opts_set_flag,
	    AT(test_filters)),

	OPT_HEADING("Times"),
	OPT('t', NULL, NULL, "all digits of the time", opts_set_flag, AT(nanoseconds)),
	OPT_NO_SYNC(AT(no_sync)),
	OPT_NO_GUESTS(AT(no_guests)),
	OPT_TIME(AT(time)),
	OPT(0, "ts-diff", NULL, "the time since the line before it as well", opts_set_flag, AT(ts_diff)),
	OPT(0, "align-ts", NULL, "as from the first event on", opts_set_flag, AT(align_ts)),
	OPT(0, "wall", NULL, "as the time of day (UTC), by what record noted of it", opts_set_flag, AT(wall)),
	OPT(0, "nodate", NULL, "not as the time of day (record --date)", opts_set_flag, AT(no_date)),
	OPT(0, "raw-ts", NULL, "as recorded, with no correction", opts_set_flag, AT(raw_ts)),
	OPT(0, "ts-check", NULL, "warn when times go backwards", opts_set_flag, AT(ts_check)),

	OPT_HEADING("Lines"),
	OPT('l', NULL, NULL, "with interrupt state and preemption depth", opts_set_flag, AT(latency)),
	OPT(0, "irq-info", NULL, "the same after the CPU, as trace-cmd 3.3 and 3.4 have it", opts_set_flag,
	    AT(irq_info)),
	OPT('R', NULL, NULL, "fields as numbers, for all events", opts_set_flag, AT(raw_fields)),
	OPT('r', NULL, "EVENT", "fields as numbers, for events that match", opts_add_text, AT(raw)),
	OPT('n', NULL, "EVENT", "no plugin for events that match", opts_add_text, AT(no_handler)),
	OPT('w', NULL, NULL, "latencies of wakeups", opts_set_flag, AT(wakeup)),
	OPT('j', "json", NULL, "as JSON, with all fields, as hyptrace export has them", opts_set_flag,
	    AT(json)),
	OPT(0, "color", "[=WHEN]", "auto, always or never", take_color),
	OPT(0, "no-pager", NULL, "straight to the terminal", opts_set_flag, AT(no_pager)),
	OPT_QUIET(AT(quiet)),

	OPT_HEADING("Plugins of libtraceevent"),
	OPT('O', NULL, "OPTION", "option of a plugin: [PLUGIN:]OPTION[=VALUE]", opts_add_text, AT(plugins)),
	OPT('L', NULL, NULL, "none of the system's plugins", opts_set_flag, AT(no_system_plugins)),
	OPT('N', NULL, NULL, "no plugins at all", opts_set_flag, AT(no_plugins)),

	OPT_HEADING("About the file, instead of its events"),
	OPT(0, "cpus", NULL, "CPUs that have events", take_what, .flags = REPORT_CPUS),
	OPT(0, "first-event", NULL, "... and the time of the first one", take_cpus_shown, AT(first_event),
	    .flags = REPORT_CPUS),
	OPT(0, "last-event", NULL, "... and of the last one", take_cpus_shown, AT(last_event),
	    .flags = REPORT_CPUS),
	OPT('E', NULL, NULL, "names of the events that it has formats of", take_what,
	    .flags = REPORT_EVENT_NAMES),
	OPT(0, "events", NULL, "formats of all events", take_what, .flags = REPORT_FORMATS),
	OPT(0, "event", "EVENT", "formats of events that match: [SYSTEM:]EVENT", take_format_names,
	    .flags = REPORT_FORMATS),
	OPT(0, "check-events", NULL, "exit with 1 when a format cannot be parsed", take_what,
	    .flags = REPORT_CHECK),
	OPT('f', NULL, NULL, "addresses of functions", take_what, .flags = REPORT_FUNCTIONS),
	OPT('P', NULL, NULL, "formats of trace_printk", take_what, .flags = REPORT_PRINTK),
	OPT(0, "stat", NULL, "the buffers' statistics", take_what, .flags = REPORT_STAT),
	OPT(0, "uname", NULL, "the machine it was recorded on", take_what, .flags = REPORT_UNAME),
	OPT(0, "version", NULL, "the program that recorded it", take_what, .flags = REPORT_VERSION),
	OPT(0, "command", NULL, "the command line that recorded it", take_what, .flags = REPORT_COMMAND),
	OPT('e', NULL, NULL, "byte orders", take_what, .flags = REPORT_ENDIAN),
	OPT('p', NULL, NULL, "page sizes", take_what, .flags = REPORT_PAGE_SIZE),
	OPT(0, "verbose", "[=LEVEL]", "say which events libtraceevent had to print", opts_set_flag,
	    AT(verbose)),
	OPT('h', "help", NULL, "print this text", opts_help),

	/* options of trace-cmd that are refused */
	OPT_REFUSED('G', NULL, NULL, NO_PROFILE),
	OPT_REFUSED('H', NULL, "", NO_PROFILE),
	OPT_REFUSED('V', NULL, "[=LEVEL]", NO_LEVELS),
	OPT_REFUSED(0, "boundary", NULL, NO_DEBUG),
	OPT_REFUSED(0, "by-comm", NULL, NO_PROFILE),
	OPT_REFUSED(0, "debug", NULL, NO_DEBUG),
	OPT_REFUSED(0, "profile", NULL, NO_PROFILE),
};

const struct opts_table report_table = {
	.command = "report",
	.usage = "usage: hyptrace report [OPTION...] [FILE...]\n\n"
		 "Prints the events of trace.dat files as text, in the order of their times.\n",
	.foot = "\nThe grammar is that of trace-cmd-report(1).\n",
	.rows = report_rows,
	.n = ARRAY_SIZE(report_rows),
};

int report_opts_parse(int argc, char **argv, struct report_opts *o, struct opts_error *err)
{
	int ret = opts_parse(&report_table, &argc, argv, o, err);

	if (ret)
		return ret;
	for (int i = 1; i < argc; i++)
		if (add_input(o, argv[i]))
			goto no_memory;
	if (!o->n_inputs && add_input(o, DEFAULT_FILE))
		goto no_memory;
	if (o->wakeup && o->n_inputs > 1)
		return opts_error(err, "-w needs one file: it cannot distinguish the tasks of several");
	if (o->follow && (o->n_inputs > 1 || o->wakeup || o->align_ts || o->what != REPORT_EVENTS))
		return opts_error(err,
				  "--follow prints the events of one recording, without -w and --align-ts");
	if (o->wall && (o->align_ts || o->raw_ts || o->what != REPORT_EVENTS))
		return opts_error(err,
				  "--wall prints events at their corrected times: without --align-ts and "
				  "--raw-ts");
	if (o->json && (o->wall || o->wakeup || o->align_ts || o->ts_diff || o->raw_fields || o->latency ||
			o->irq_info || o->test_filters || o->what != REPORT_EVENTS))
		return opts_error(
			err, "--json has times and fields as recorded, and events only: without -w, -l, "
			     "-R, -T, --irq-info, --align-ts, --ts-diff, --wall and what is about the file");
	return 0;
no_memory:
	opts_error(err, "out of memory");
	return -ENOMEM;
}

static void filters_release(struct report_filters *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].text);
	free(f->v);
}

void report_opts_release(struct report_opts *o)
{
	for (size_t i = 0; i < o->n_inputs; i++)
		filters_release(&o->inputs[i].filters);
	filters_release(&o->filters);
	strlist_release(&o->buffers);
	strlist_release(&o->raw);
	strlist_release(&o->no_handler);
	strlist_release(&o->plugins);
	free(o->cpus);
	free(o->inputs);
	*o = (struct report_opts){ 0 };
}
