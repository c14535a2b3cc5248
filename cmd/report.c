// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace report: prints the events of trace.dat files as text, or, look by look, of a recording that goes
 * on. */
#include <regex.h>
#include <sys/mman.h>

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
		log_err(log, "'%s' is not being recorded: start `hyptrace record -o %s` first", output,
			output);
	else if (ret)
		log_err(log, "cannot read the recording '%s': %s", output, errno_text(ret));
	if (ret)
		return ret;
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

struct one_cpu {
	size_t input, buffer;
	unsigned int cpu;
};

static bool only_cpu(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct one_cpu *c = ctx;

	return c->input == input && c->buffer == buffer && c->cpu == cpu;
}

/* 1: it has events, and these are the times of the first and, when asked for, the last. */
static int cpu_times(const struct report *r, struct one_cpu *c, uint64_t *first, uint64_t *last)
{
	struct timeline_record rec;
	struct timeline *t;
	bool any = false;
	int ret = timeline_open(&t, handle_inputs(r->handle), only_cpu, c, r->log);

	if (ret)
		return ret;
	while ((ret = timeline_next(t, &rec)) == 1) {
		if (!any)
			*first = rec.ts;
		*last = rec.ts;
		any = true;
		if (!r->o->last_event)
			break;
	}
	timeline_close(t);
	return ret < 0 ? ret : any;
}

static int info_cpus(const struct report *r, size_t input, FILE *out)
{
	const struct report_file *f = &r->files[input];

	fprintf(out, "List of CPUs in %s with data:\n", ESCAPED(f->in->path));
	for (size_t b = 0; b < f->info->n_buffers; b++) {
		const struct reader_buffer *from = &f->info->buffers[b];

		/* of the main buffer, as stock has it, or of those that -B names */
		if (r->o->buffers.n ? !f->buffers[b].wanted : *from->name)
			continue;
		for (size_t i = 0; i < from->n_cpus; i++) {
			struct one_cpu c = { input, b, from->cpus[i].cpu };
			uint64_t first = 0, last = 0;
			int ret = cpu_times(r, &c, &first, &last);

			if (ret < 0)
				return ret;
			if (!ret)
				continue;
			fprintf(out, "  %u", c.cpu);
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
	return 0;
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
		if (!f->in->format_failures)
			return 0;
		return log_fail(r->log, -EBADMSG, "%s: %zu event formats cannot be parsed", f->in->path,
				f->in->format_failures);
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

/* Prints the facts of o->what. -EINVAL: a wrong pattern; -EBADMSG: formats that cannot be parsed; -ENOMEM. */
static int report_info(const struct report *r, FILE *out)
{
	int ret = 0;

	for (size_t i = 0; i < r->n && !ret; i++)
		ret = info_file(r, i, out);
	return ret;
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
	return r->o->what == REPORT_EVENTS ? report_events_print(r) : report_info(r, stdout);
}

#define LOOK_MS 1000

static int follow_looks(struct follow *f, const struct report_opts *o, int fd, const struct log *log)
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
			ret = live_write(f->live, fd, log);
			if (!ret) {
				r.terminal = isatty(STDOUT_FILENO);
				ret = report_print(&r);
				for (size_t i = 0; i < f->n && !ret; i++)
					ret = live_take(f->live, f->cpus[i].buffer, f->cpus[i].cpu,
							f->cpus[i].taken);
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
	char path[48];
	int fd, ret = live_wait(&f.live, input.path, log);

	if (ret)
		return ret;
	fd = memfd_create("look", MFD_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		goto out;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	input.path = path;
	ours.inputs = &input;
	ret = follow_looks(&f, &ours, fd, log);
	close(fd);
out:
	if (ret)
		log_err(log, "cannot follow '%s': %s", o->inputs[0].path, errno_text(ret));
	free(f.cpus);
	live_close(f.live);
	return ret;
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
	struct log log = console_as_log(&console);
	struct report_opts o = { 0 };
	struct report r = { .o = &o, .log = &log };
	struct opts_error err = { "" };
	int ret = report_opts_parse(argc, argv, &o, &err);

	memory_or_end();
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
