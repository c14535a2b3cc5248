// SPDX-License-Identifier: GPL-2.0-only
#include "report-opts.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE "trace.dat"
#define CPU_MAX	     65535

struct parse {
	struct report_opts *o;
	struct opts_error *err;
	bool negate; /* -v */
};

struct opt;
typedef int opt_set(struct parse *p, const struct opt *o, const char *arg);

/* One row per option of trace-cmd report, served or not, and ours. */
struct opt {
	struct opt_row row; /* first: opts.h */
	opt_set *set;
	size_t off; /* of the field that `set` fills */
	int value;  /* ... and with what */
};

/* ---- what options set ------------------------------------------------------------ */

static int no_memory(struct parse *p)
{
	opts_error(p->err, "out of memory");
	return -ENOMEM;
}

static int fail_opt(struct parse *p, const struct opt *o, const char *arg, const char *why)
{
	char name[32];

	return opts_error(p->err, "%s %s: %s", opt_name(&o->row, name), *arg ? arg : "''", why);
}

static void *field(struct parse *p, const struct opt *o)
{
	return (char *)p->o + o->off;
}

static int set_flag(struct parse *p, const struct opt *o, const char *arg)
{
	*(bool *)field(p, o) = true;
	return 0;
}

static int set_text(struct parse *p, const struct opt *o, const char *arg)
{
	*(const char **)field(p, o) = arg;
	return 0;
}

static int add_text(struct parse *p, const struct opt *o, const char *arg)
{
	return strlist_add(field(p, o), arg) ? no_memory(p) : 0;
}

static int set_what(struct parse *p, const struct opt *o, const char *arg)
{
	p->o->what = (enum report_what)o->value;
	return 0;
}

static int set_event(struct parse *p, const struct opt *o, const char *arg)
{
	p->o->event = arg;
	return set_what(p, o, arg);
}

static int set_cpus_shown(struct parse *p, const struct opt *o, const char *arg)
{
	set_flag(p, o, arg);
	return set_what(p, o, arg);
}

static int set_help(struct parse *p, const struct opt *o, const char *arg)
{
	return OPTS_STOP;
}

static int add_input(struct parse *p, const char *path)
{
	struct report_input *v = realloc(p->o->inputs, (p->o->n_inputs + 1) * sizeof(*v));

	if (!v)
		return no_memory(p);
	p->o->inputs = v;
	v[p->o->n_inputs++] = (struct report_input){ .path = path };
	return 0;
}

static int set_input(struct parse *p, const struct opt *o, const char *arg)
{
	return add_input(p, arg);
}

/* The file that an option after it belongs to; NULL: none yet. */
static struct report_input *last_input(struct parse *p)
{
	return p->o->n_inputs ? &p->o->inputs[p->o->n_inputs - 1] : NULL;
}

static int set_negate(struct parse *p, const struct opt *o, const char *arg)
{
	p->negate = true;
	return 0;
}

/* Before the first file for all of them, else for the last one. */
static int add_filter(struct parse *p, const char *text, size_t len, int kind)
{
	struct report_input *in = last_input(p);
	struct report_filters *f = in ? &in->filters : &p->o->filters;
	struct report_filter *v = realloc(f->v, (f->n + 1) * sizeof(*v));

	if (!v)
		return no_memory(p);
	f->v = v;
	v[f->n] = (struct report_filter){ .text = strndup(text, len),
					  .kind = kind,
					  .negate = kind == FILTER_TEXT && p->negate };
	return v[f->n++].text ? 0 : no_memory(p);
}

static int set_filter(struct parse *p, const struct opt *o, const char *arg)
{
	return add_filter(p, arg, strlen(arg), FILTER_TEXT);
}

/* --pid 1,2 and --comm a,b: a filter for each; one that matches is enough. */
static int set_tasks(struct parse *p, const struct opt *o, const char *arg)
{
	while (*arg) {
		size_t len = strcspn(arg, ",");
		int ret = 0;

		if (o->value == FILTER_PID && len && strspn(arg, "0123456789") != len)
			return fail_opt(p, o, arg, "not a list of numbers");
		if (len)
			ret = add_filter(p, arg, len, o->value);
		if (ret)
			return ret;
		arg += len + (arg[len] == ',');
	}
	return 0;
}

/* The number at *s, and *s behind it. */
static bool take_cpu(const char **s, unsigned int *cpu)
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
static int set_cpus(struct parse *p, const struct opt *o, const char *arg)
{
	const char *s = arg;

	do {
		struct cpu_range r, *v;

		if (!take_cpu(&s, &r.first))
			return fail_opt(p, o, arg, "not a list of CPUs");
		r.last = r.first;
		if (*s == '-' && (s++, !take_cpu(&s, &r.last)))
			return fail_opt(p, o, arg, "not a list of CPUs");
		if (r.last < r.first)
			return fail_opt(p, o, arg, "a range goes from the lower to the higher");
		v = realloc(p->o->cpus, (p->o->n_cpus + 1) * sizeof(*v));
		if (!v)
			return no_memory(p);
		p->o->cpus = v;
		v[p->o->n_cpus++] = r;
		if (*s && *s != ',' && *s != ':')
			return fail_opt(p, o, arg, "not a list of CPUs");
	} while (*s++);
	return 0;
}

static int set_ts_offset(struct parse *p, const struct opt *o, const char *arg)
{
	struct report_input *in = last_input(p);
	char *end;

	if (!in)
		return opts_error(p->err, "--ts-offset must come after the -i of its file");
	errno = 0;
	in->ts_offset = strtoll(arg, &end, 0);
	return errno || *end || end == arg ? fail_opt(p, o, arg, "not a number") : 0;
}

static int set_hz(struct parse *p, const struct opt *o, const char *arg)
{
	struct report_input *in = last_input(p);

	if (parse_u64(arg, in ? &in->hz : &p->o->hz) || !*(in ? &in->hz : &p->o->hz))
		return fail_opt(p, o, arg, "not a frequency in Hz");
	return 0;
}

static int set_color(struct parse *p, const struct opt *o, const char *arg)
{
	static const char *const names[] = { "auto", "always", "never" };

	p->o->color = COLOR_ALWAYS;
	if (!arg)
		return 0;
	for (int i = 0; i < (int)ARRAY_SIZE(names); i++) {
		if (strcmp(arg, names[i]))
			continue;
		p->o->color = (enum report_color)i;
		return 0;
	}
	return fail_opt(p, o, arg, "not auto, always or never");
}

/* ---- the table ------------------------------------------------------------------- */

#define AT(field)  .off = offsetof(struct report_opts, field)
#define NO_PROFILE "profiles are not made by this version: use trace-cmd report --profile"
#define NO_DEBUG   "pages are not shown: use trace-cmd report --debug"
#define NO_LEVELS  "messages have no levels: leave it out, or use -q for errors only"

/* clang-format off */
#define OPT(k, n, a, h, fn, ...) { .row = { k, n, a, h, NULL }, .set = fn, __VA_ARGS__ }
#define REFUSED(k, n, a, text) { .row = { k, n, a, NULL, text } }
#define HEADING(h) { .row = { .help = h } }
/* clang-format on */

static const struct opt opts[] = {
	HEADING("Files"),
	OPT('i', NULL, "FILE", "a file to read (trace.dat); several are merged by time", set_input),
	OPT(0, "ts-offset", "NS", "add to the times of the file before it", set_ts_offset),
	OPT(0, "ts2secs", "HZ", "rate of the clock of the file before it, or of all", set_hz),
	OPT(0, "kallsyms", "FILE", "symbols to use besides the file's own", set_text, AT(kallsyms)),

	HEADING("Which events"),
	OPT(0, "cpu", "CPU,...", "of these CPUs only: 0,3 or 2-4", set_cpus),
	OPT('B', NULL, "NAME", "of this buffer only; '': the top buffer", add_text, AT(buffers)),
	OPT('F', NULL, "FILTER", "that match: 'EVENT,...[: FIELD == VALUE ...]'", set_filter),
	OPT('v', NULL, NULL, "not those that match the following -F", set_negate),
	OPT(0, "pid", "PID,...", "of these tasks", set_tasks, .value = FILTER_PID),
	OPT(0, "comm", "NAME,...", "of the tasks of these names", set_tasks, .value = FILTER_COMM),
	OPT('I', NULL, NULL, "none of hard interrupts", set_flag, AT(no_irq)),
	OPT('S', NULL, NULL, "none of soft interrupts", set_flag, AT(no_softirq)),
	OPT('T', "filter-test", NULL, "show what became of the filters, and exit", set_flag,
	    AT(test_filters)),

	HEADING("Times"),
	OPT('t', NULL, NULL, "all digits of the time", set_flag, AT(nanoseconds)),
	OPT(0, "ts-diff", NULL, "the time since the line before it as well", set_flag, AT(ts_diff)),
	OPT(0, "align-ts", NULL, "as from the first event on", set_flag, AT(align_ts)),
	OPT(0, "nodate", NULL, "not as the time of day (record --date)", set_flag, AT(no_date)),
	OPT(0, "raw-ts", NULL, "as recorded, with no correction", set_flag, AT(raw_ts)),
	OPT(0, "ts-check", NULL, "warn when times go backwards", set_flag, AT(ts_check)),

	HEADING("Lines"),
	OPT('l', NULL, NULL, "with interrupt state and preemption depth", set_flag, AT(latency)),
	OPT('R', NULL, NULL, "fields as numbers, for all events", set_flag, AT(raw_fields)),
	OPT('r', NULL, "EVENT", "fields as numbers, for events that match", add_text, AT(raw)),
	OPT('n', NULL, "EVENT", "no plugin for events that match", add_text, AT(no_handler)),
	OPT('w', NULL, NULL, "latencies of wakeups", set_flag, AT(wakeup)),
	OPT(0, "color", "[WHEN]", "auto, always or never", set_color),
	OPT(0, "no-pager", NULL, "straight to the terminal", set_flag, AT(no_pager)),
	OPT('q', NULL, NULL, "print errors only, no warnings", set_flag, AT(quiet)),

	HEADING("Plugins of libtraceevent"),
	OPT('O', NULL, "OPTION", "option of a plugin: [PLUGIN:]OPTION[=VALUE]", add_text, AT(plugins)),
	OPT('L', NULL, NULL, "none of the system's plugins", set_flag, AT(no_system_plugins)),
	OPT('N', NULL, NULL, "no plugins at all", set_flag, AT(no_plugins)),

	HEADING("About the file, instead of its events"),
	OPT(0, "cpus", NULL, "CPUs that have events", set_what, .value = REPORT_CPUS),
	OPT(0, "first-event", NULL, "... and the time of the first one", set_cpus_shown, AT(first_event),
	    .value = REPORT_CPUS),
	OPT(0, "last-event", NULL, "... and of the last one", set_cpus_shown, AT(last_event),
	    .value = REPORT_CPUS),
	OPT('E', NULL, NULL, "names of the events that it has formats of", set_what,
	    .value = REPORT_EVENT_NAMES),
	OPT(0, "events", NULL, "formats of all events", set_what, .value = REPORT_FORMATS),
	OPT(0, "event", "EVENT", "formats of events that match: [SYSTEM:]EVENT", set_event,
	    .value = REPORT_FORMATS),
	OPT(0, "check-events", NULL, "exit with 1 when a format cannot be parsed", set_what,
	    .value = REPORT_CHECK),
	OPT('f', NULL, NULL, "addresses of functions", set_what, .value = REPORT_FUNCTIONS),
	OPT('P', NULL, NULL, "formats of trace_printk", set_what, .value = REPORT_PRINTK),
	OPT(0, "stat", NULL, "the buffers' statistics", set_what, .value = REPORT_STAT),
	OPT(0, "uname", NULL, "the machine it was recorded on", set_what, .value = REPORT_UNAME),
	OPT(0, "version", NULL, "the program that recorded it", set_what, .value = REPORT_VERSION),
	OPT('e', NULL, NULL, "byte orders", set_what, .value = REPORT_ENDIAN),
	OPT('p', NULL, NULL, "page sizes", set_what, .value = REPORT_PAGE_SIZE),
	OPT('h', "help", NULL, "print this text", set_help),

	/* options of trace-cmd that are refused */
	REFUSED('G', NULL, NULL, NO_PROFILE),
	REFUSED('H', NULL, "", NO_PROFILE),
	REFUSED('V', NULL, "[LEVEL]", NO_LEVELS),
	REFUSED(0, "boundary", NULL, NO_DEBUG),
	REFUSED(0, "by-comm", NULL, NO_PROFILE),
	REFUSED(0, "debug", NULL, NO_DEBUG),
	REFUSED(0, "profile", NULL, NO_PROFILE),
	REFUSED(0, "verbose", "[LEVEL]", NO_LEVELS),
};

static const struct opts_table table = {
	.command = "report",
	.rows = opts,
	.n = ARRAY_SIZE(opts),
	.size = sizeof(opts[0]),
};

/* ---- parsing ---------------------------------------------------------------------- */

static int apply(void *ctx, const struct opt_row *row, const char *arg)
{
	const struct opt *o = (const struct opt *)row;

	return o->set(ctx, o, arg);
}

int report_opts_parse(int argc, char **argv, struct report_opts *o, struct opts_error *err)
{
	struct parse p = { .o = o, .err = err };
	int ret;

	err->text[0] = 0;
	ret = opts_parse(&table, argc, argv, apply, &p, err);
	if (ret)
		return ret == OPTS_STOP ? REPORT_OPTS_HELP : ret;
	for (int i = optind; i < argc && !ret; i++)
		ret = add_input(&p, argv[i]);
	if (!ret && !o->n_inputs)
		ret = add_input(&p, DEFAULT_FILE);
	if (!ret && o->wakeup && o->n_inputs > 1)
		ret = opts_error(err, "-w needs one file: tasks of several cannot be told apart");
	return ret;
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

void report_opts_usage(struct buf *out)
{
	buf_addstr(out, "usage: hyptrace report [OPTION...] [FILE...]\n\n"
			"Prints the events of trace.dat files as text, in the order of their times.\n");
	opts_usage(&table, out);
	buf_addstr(out, "\nThe grammar is that of trace-cmd-report(1).\n");
}
