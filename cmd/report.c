// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace report: prints the events of trace.dat files as text, or, look by look, of a recording that goes
 * on. */
#include <regex.h>

#include "ask/live/live.h"
#include "report-priv.h"
#include "file/dat/options.h"
#include "base/cursor.h"

#define WAIT_MS 10000
#define STEP_MS 50
#define PAST_NS 10000000000

int live_wait(struct live **out, const char *output, const struct log *log)
{
	bool ended;
	int ret;

	for (int waited = 0;; waited += STEP_MS) {
		ret = live_open(out, output, log);
		/* a recorder that was just started has made nothing yet */
		if ((ret != -EAGAIN && ret != -ENOENT) || waited >= WAIT_MS)
			break;
		usleep(STEP_MS * 1000);
	}
	if (ret == -ENOENT || ret == -EAGAIN)
		return log_fail(log, ret, "'%s' is not being recorded: start `hyptrace record -o %s` first",
				output, output);
	if (ret)
		return log_fail_errno(log, ret, "cannot read the recording '%s'", output);
	ret = live_look(*out, &ended);
	if (ret > 0)
		ret = live_drop_older(*out, PAST_NS);
	if (ret > 0)
		log_info(log, "%s: what it recorded more than ten seconds ago is left out here", output);
	if (ret < 0)
		live_close(*out);
	return ret < 0 ? ret : 0;
}

/* ---- facts about files instead of their events: --cpus, --events, --stat ... ---- */

/* "SYSTEM:EVENT", or one for both: a system that matches it is shown whole. */
struct pattern {
	regex_t system, event;
	bool both; /* ... must match */
};

static bool format_matches(const struct pattern *p, const struct reader_format *f)
{
	struct cursor c = cursor_at(f->text.data, f->text.len);
	bool system = !regexec(&p->system, f->system, 0, NULL, 0), event;
	const char *line = "";
	size_t len = 0;
	char *name;

	cursor_line(&c, &line, &len);
	if (len > 6 && !strncmp(line, "name: ", 6)) {
		line += 6;
		len -= 6;
	}
	name = strndup(line, len);
	event = name && !regexec(&p->event, name, 0, NULL, 0);
	free(name);
	return p->both ? system && event : system || event;
}

static int info_formats(const struct report *r, const struct report_file *f, FILE *out)
{
	const char *text = r->o->event ? r->o->event : ".*", *colon = strchr(text, ':');
	char *before = colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
	const char *system = "";
	struct pattern p = { .both = colon };
	int wrong;

	if (!before)
		return -ENOMEM;
	wrong = regcomp(&p.system, before, REG_ICASE | REG_NOSUB);
	free(before);
	if (!wrong) {
		wrong = regcomp(&p.event, colon ? colon + 1 : text, REG_ICASE | REG_NOSUB);
		if (wrong)
			regfree(&p.system);
	}
	if (wrong)
		return log_fail(r->log, -EINVAL, "'%s' is not a regular expression", text);
	for (size_t i = 0; i < f->info->n_formats; i++) {
		const struct reader_format *format = &f->info->formats[i];

		if (!format_matches(&p, format))
			continue;
		if (strcmp(format->system, system))
			fprintf(out, "\nsystem: %s\n", ESCAPED(format->system));
		system = format->system;
		fprintf(out, "%.*s\n", (int)format->text.len, format->text.data);
	}
	regfree(&p.system);
	regfree(&p.event);
	return 0;
}

static int info_cpus(const struct report *r, size_t input, FILE *out)
{
	const struct report_file *f = &r->files[input];
	const struct inputs *in = handle_inputs(r->handle);
	uint64_t damaged = 0;

	fprintf(out, "List of CPUs in %s with data:\n", ESCAPED(f->in->path));
	for (size_t b = 0; b < f->info->n_buffers; b++) {
		const struct reader_buffer *from = &f->info->buffers[b];

		/* of the main buffer, as stock has it, or of those that -B names */
		if (r->o->buffers.n ? !f->buffers[b].wanted : *from->name)
			continue;
		for (size_t i = 0; i < from->n_cpus; i++) {
			uint64_t first = UINT64_MAX, last = 0;
			int ret = part_extent_cpu(&in->v[input], b, i, in->from, in->to, &first, &last,
						  &damaged);

			if (ret)
				return ret;
			if (first > last)
				continue;
			fprintf(out, "  %u", from->cpus[i].cpu);
			if (r->o->first_event) {
				fputs("\tFirst event:", out);
				line_time(r, f, first, out);
			}
			if (r->o->last_event) {
				fputs("\tLast event:", out);
				line_time(r, f, last, out);
			}
			fputc('\n', out);
		}
	}
	return log_damage(r->log, damaged);
}

static void info_option(const struct report_file *f, uint16_t id, const char *what, FILE *out)
{
	const struct reader_option *o = reader_option(f->in->reader, id);
	char text[ESCAPE_LINE];

	if (o) {
		snprintf(text, sizeof(text), "%.*s", (int)o->data.len, o->data.data);
		fprintf(out, "%s\n", ESCAPED(text));
	} else
		fprintf(out, " %s was not recorded in this file\n", what);
}

static void info_stats(const struct report_file *f, FILE *out)
{
	bool any = false;

	fputs("\nKernel buffer statistics:\n"
	      "  Note: \"entries\" are the entries left in the kernel ring buffer and are not\n"
	      "        recorded in the trace data. They should all be zero.\n\n",
	      out);
	for (size_t i = 0; i < f->info->n_options; i++) {
		const struct reader_option *o = &f->info->options[i];

		if (o->id != DAT_CPUSTAT || !o->data.len)
			continue;
		/* its last byte is a NUL or a newline */
		fprintf(out, "%.*s\n", (int)o->data.len - 1, o->data.data);
		any = true;
	}
	fputs(any ? "\n" : " No stats in this file\n", out);
	for (size_t b = 0; b < f->info->n_buffers; b++) {
		const struct reader_buffer *from = &f->info->buffers[b];

		for (size_t i = 0; !*from->name && i < from->n_cpus; i++)
			fprintf(out,
				"CPU%u data recorded at offset=0x%llx\n"
				"    %llu bytes in size\n",
				from->cpus[i].cpu, (unsigned long long)from->cpus[i].offset,
				(unsigned long long)from->cpus[i].size);
	}
}

/* Prints the facts of o->what. -EINVAL: a wrong pattern; -EBADMSG: damage, formats that cannot be parsed;
 * -ENOMEM. */
static int info_file(const struct report *r, size_t input, FILE *out)
{
	const struct report_file *f = &r->files[input];
	enum report_what what = r->o->what;
	struct tep_event **events;

	/* trace-cmd prints these after "cpus=4", in place of the events */
	if (what == REPORT_STAT || what == REPORT_UNAME || what == REPORT_VERSION || what == REPORT_COMMAND)
		line_head(r, f, out);
	else if (r->n > 1 && what != REPORT_CPUS)
		fprintf(out, "%s:\n", ESCAPED(f->in->path));
	switch (what) {
	case REPORT_CHECK:
		return f->in->format_failures
			       ? log_fail(r->log, -EBADMSG, "%s: %zu event formats cannot be parsed",
					  f->in->path, f->in->format_failures)
			       : 0;
	case REPORT_CPUS:
		return info_cpus(r, input, out);
	case REPORT_ENDIAN:
		fprintf(out, "file is little endian and host is %s endian\n",
			__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "little" : "big");
		return 0;
	case REPORT_EVENT_NAMES:
		for (events = report_events(f, true); events && *events; events++)
			if ((*events)->id <= UINT16_MAX) /* others are a decoder's own */
				fprintf(out, "%s:%s\n", ESCAPED((*events)->system), (*events)->name);
		return 0;
	case REPORT_FORMATS:
		return info_formats(r, f, out);
	case REPORT_FUNCTIONS:
		if (tepfile_functions(f->in->tep))
			return -ENOMEM;
		tep_print_funcs(f->in->tep);
		return 0;
	case REPORT_PAGE_SIZE:
		fprintf(out, "file page size is %u, and host page size is %d\n", f->info->page_size,
			getpagesize());
		return 0;
	case REPORT_PRINTK:
		tep_print_printk(f->in->tep);
		return 0;
	case REPORT_STAT:
		info_stats(f, out);
		return 0;
	case REPORT_UNAME: /* stock prints the version with it, too */
		info_option(f, DAT_UNAME, "uname", out);
		info_option(f, DAT_VERSION, "version", out);
		return 0;
	case REPORT_COMMAND:
		info_option(f, DAT_COMMAND, "command", out);
		return 0;
	default:
		info_option(f, DAT_VERSION, "version", out);
		return 0;
	}
}

/* ---- events ---- */

/* Prints the answer to the options on standard output; call report_close in any case. 0 or -errno, logged. */
static int report_print(struct report *r)
{
	const struct strlist *plugins = &r->o->plugins;
	bool filters = false;
	int ret;

	/* options of plugins come before the plugins: those that load later take them */
	for (size_t i = 0; i < plugins->n; i++) {
		char *value = strchr(plugins->v[i], '=');

		if (value)
			*value++ = '\0';
		if (tep_plugin_add_option(plugins->v[i], value))
			return -ENOMEM;
	}
	ret = report_open(r);
	for (size_t i = 0; i < r->n; i++)
		filters = filters || r->files[i].filters;
	/* -T means nothing without a filter */
	if (ret || (filters && r->o->test_filters))
		return ret;
	if (r->o->what == REPORT_EVENTS)
		return report_events_print(r);
	for (size_t i = 0; i < r->n && (!ret || ret == -EBADMSG); i++)
		ret = info_file(r, i, stdout) ?: ret;
	return ret;
}

#define LOOK_MS 1000

/* path: of the input of o. */
static int follow_looks(struct follow *f, const struct report_opts *o, const char **path,
			const struct log *log)
{
	bool warned = false;

	for (;;) {
		int ret = live_look(f->live, &f->last);

		if (ret < 0)
			return ret;
		if (live_forgets(f->live))
			return log_fail(
				log, -EOPNOTSUPP,
				"its recorder throws pages away as it goes on (--rotate, -m, --flight): "
				"read its files, or see `hyptrace top`");
		if (ret || f->held || f->first || f->last) {
			struct report r = { .o = o, .log = log, .follow = f };

			f->n = f->held = f->late = 0;
			ret = live_write(f->live, path, log);
			if (!ret) {
				r.terminal = isatty(STDOUT_FILENO);
				ret = report_print(&r);
				for (size_t i = 0; i < f->n && !ret; i++)
					if (f->cpus[i].before)
						*f->cpus[i].before += f->cpus[i].taken;
					else
						ret = -EINVAL;
				report_close(&r);
				fflush(stdout);
				ret = ret ?: f->no_memory ? -ENOMEM : live_drop_taken(f->live);
			}
			if (f->late)
				log_warn(log,
					 "%" PRIu64
					 " events are printed out of order: their pages were handed over "
					 "more than %d ms after younger ones",
					 f->late, LOOK_MS);
			f->from = f->horizon;
			f->horizon = f->newest;
			f->first = false;
		}
		if (ret < 0 || f->last || ferror(stdout))
			return ret;
		if (!warned && live_is_early(f->live)) {
			log_warn(log,
				 "hyp: times of this plain-nVHE host are early by what vCPUs' counters are "
				 "behind: only the finished file has them right");
			warned = true;
		}
		usleep(LOOK_MS * 1000);
	}
}

static int report_follow(const struct report_opts *o, const struct log *log)
{
	struct follow f = { .first = true };
	struct report_input input = o->inputs[0];
	struct report_opts ours = *o;
	int ret = live_wait(&f.live, input.path, log);

	if (ret)
		return ret;
	ours.inputs = &input;
	ret = follow_looks(&f, &ours, &input.path, log);
	if (ret)
		log_err(log, "cannot follow '%s': %s", o->inputs[0].path, errno_text(ret));
	free(f.cpus);
	live_close(f.live);
	return ret;
}

/* ---- the command line ---- */

#define DEFAULT_FILE "trace.dat"
#define CPU_MAX	     65535

/* Facts shown instead of the events; an option with a field sets that, too. */
static int take_what(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	((struct report_opts *)ctx)->what = (enum report_what)o->flags;
	return !o->off ? 0 : (arg ? opts_set_text : opts_set_flag)(ctx, o, arg, err);
}

/* Tables show the main buffer as "-". */
static int take_buffer(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return opts_add_text(ctx, o, strcmp(arg, "-") ? arg : "", err);
}

/* o: NULL: a word that is no option. */
static int take_input(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct report_input input = { .path = arg };
	struct report_opts *r = ctx;

	return array_push(&r->inputs, &r->n_inputs, &input, sizeof(input));
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

		if (o->flags == FILTER_PID && len && strspn(arg, "0123456789") != len)
			return opts_wrong(err, o, arg, "not a list of numbers");
		if (len && add_event_filter(ctx, arg, len, o->flags))
			return -ENOMEM;
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
	for (int i = 0; i < (int)ARRAY_SIZE(names); i++)
		if (!strcmp(arg, names[i])) {
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
	OPT(0, "first-event", NULL, "... and the time of the first one", take_what, AT(first_event),
	    .flags = REPORT_CPUS),
	OPT(0, "last-event", NULL, "... and of the last one", take_what, AT(last_event),
	    .flags = REPORT_CPUS),
	OPT('E', NULL, NULL, "names of the events that it has formats of", take_what,
	    .flags = REPORT_EVENT_NAMES),
	OPT(0, "events", NULL, "formats of all events", take_what, .flags = REPORT_FORMATS),
	OPT(0, "event", "EVENT", "formats of events that match: [SYSTEM:]EVENT", take_what, AT(event),
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
	OPT_ROWS(report_rows),
};

/*
 * argv[0] is the command's own name. Fills *o, which must be zeroed, and which
 * the caller releases in any case; it points into argv. 0, OPTS_STOP (-h) or
 * -errno with the reason in err. Prints nothing.
 */
static int report_opts_parse(int argc, char **argv, struct report_opts *o, struct opts_error *err)
{
	int ret = opts_parse(&report_table, &argc, argv, o, err);

	if (ret)
		return ret;
	for (int i = 1; i < argc && !ret; i++)
		ret = take_input(o, NULL, argv[i], err);
	if (ret || (!o->n_inputs && take_input(o, NULL, DEFAULT_FILE, err)))
		return opts_error(err, "out of memory");
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
}

static void filters_release(struct report_filters *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].text);
	free(f->v);
}

static void report_opts_release(struct report_opts *o)
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
}

bool report_takes(int argc, char **argv)
{
	struct report_opts o = { 0 };
	struct opts_error err;
	bool takes = !report_opts_parse(argc, argv, &o, &err);

	report_opts_release(&o);
	return takes;
}

int cmd_report(int argc, char **argv)
{
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	struct report_opts o = { 0 };
	struct report r = { .o = &o, .log = &log };
	struct opts_error err = { "" };
	int ret = report_opts_parse(argc, argv, &o, &err);

	if (ret) {
		ret = command_stopped(&report_table, ret, &err);
		goto out;
	}
	console.quiet = o.quiet;
	tep_set_loglevel(o.quiet ? TEP_LOG_NONE : TEP_LOG_ERROR);
	if (o.no_pager || o.follow || o.json)
		pager_want(false);
	r.terminal = pager_start();
	ret = o.follow ? report_follow(&o, &log) : report_print(&r);
	report_close(&r);
	if (ret == -ENOMEM)
		log_err(&log, "out of memory");
	ret = ret ? EXIT_FAILED : EXIT_OK;
out:
	report_opts_release(&o);
	return ret;
}
