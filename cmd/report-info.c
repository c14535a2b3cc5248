// SPDX-License-Identifier: GPL-2.0-only
/* Prints facts about files instead of their events: --cpus, --events, --stat ... */
#include <regex.h>

#include "report-priv.h"
#include "file/dat/options.h"
#include "base/cursor.h"

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

int report_info(const struct report *r, FILE *out)
{
	int ret = 0;

	for (size_t i = 0; i < r->n && !ret; i++)
		ret = info_file(r, i, out);
	return ret;
}
