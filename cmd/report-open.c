// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "report-priv.h"

/* ---- events ---------------------------------------------------------------------- */

struct tep_event **report_events(const struct report_file *f, bool by_system)
{
	if (!tep_get_events_count(f->in.tep))
		return NULL;
	return tep_list_events(f->in.tep, by_system ? TEP_EVENT_SORT_SYSTEM : TEP_EVENT_SORT_ID);
}

/* Events or systems that a whole regular expression matches. */
static int set_flag(const struct report *r, struct report_file *f, const char *pattern, int flag)
{
	struct tep_event **events = report_events(f, false);
	char *whole = str_printf("^%s$", pattern);
	regex_t regex;
	int ret;

	if (!whole)
		return -ENOMEM;
	ret = regcomp(&regex, whole, REG_ICASE | REG_NOSUB);
	free(whole);
	if (ret) {
		log_err(r->log, "'%s' is not a regular expression", pattern);
		return -EINVAL;
	}
	for (; events && *events; events++)
		if (!regexec(&regex, (*events)->name, 0, NULL, 0) ||
		    !regexec(&regex, (*events)->system, 0, NULL, 0))
			(*events)->flags |= flag;
	regfree(&regex);
	return 0;
}

static int set_flags(const struct report *r, struct report_file *f)
{
	int ret = 0;

	for (size_t i = 0; i < r->o->raw.n && !ret; i++)
		ret = set_flag(r, f, r->o->raw.v[i], TEP_EVENT_FL_PRINTRAW);
	for (size_t i = 0; i < r->o->no_handler.n && !ret; i++)
		ret = set_flag(r, f, r->o->no_handler.v[i], TEP_EVENT_FL_NOHANDLE);
	return ret;
}

#define KALLSYMS_MAX (256u << 20)

static int add_symbols(const struct report *r, struct report_file *f)
{
	struct buf text = { 0 };
	int ret;

	if (!r->o->kallsyms)
		return 0;
	ret = read_file(r->o->kallsyms, KALLSYMS_MAX, &text);
	if (ret)
		log_err(r->log, "cannot read '%s': %s", r->o->kallsyms, errno_text(ret));
	else if (buf_str(&text))
		tep_parse_kallsyms(f->in.tep, buf_str(&text));
	else
		ret = -ENOMEM;
	buf_release(&text);
	return ret;
}

/* Handlers register for formats that are parsed after them. */
static int load(struct report *r, struct report_file *f)
{
	const struct report_opts *o = r->o;
	int ret = 0;

	if (o->no_plugins)
		tep_set_flag(f->in.tep, TEP_DISABLE_PLUGINS);
	if (o->no_system_plugins)
		tep_set_flag(f->in.tep, TEP_DISABLE_SYS_PLUGINS);
	if (!o->no_plugins && !o->no_system_plugins)
		ret = graph_open(r, f);
	return ret ? ret : input_load(&f->in, r->log);
}

unsigned int report_top_cpus(const struct report_file *f)
{
	for (size_t i = 0; i < f->info->n_buffers; i++)
		if (!*f->info->buffers[i].name)
			return (unsigned int)f->info->buffers[i].n_cpus;
	return 0;
}

/* ---- labels ---------------------------------------------------------------------- */

static bool buffer_wanted(const struct report_opts *o, const char *name)
{
	return !o->buffers.n || strlist_has(&o->buffers, name);
}

static int open_buffers(const struct report *r, struct report_file *f)
{
	const char *slash = strrchr(f->in.path, '/');

	f->label = r->o->n_inputs < 2 ? "" : slash ? slash + 1 : f->in.path;
	f->buffers = calloc(f->info->n_buffers + 1, sizeof(*f->buffers));
	if (!f->buffers)
		return -ENOMEM;
	for (size_t i = 0; i < f->info->n_buffers; i++) {
		const struct reader_buffer *from = &f->info->buffers[i];
		struct report_buffer *b = &f->buffers[i];

		b->label = *from->name ? from->name : f->label;
		b->wanted = buffer_wanted(r->o, from->name);
		b->shown = calloc(from->n_cpus + 1, sizeof(*b->shown));
		if (!b->shown)
			return -ENOMEM;
	}
	return 0;
}

static int check_buffers(const struct report *r)
{
	for (size_t i = 0; i < r->o->buffers.n; i++) {
		const char *name = r->o->buffers.v[i];
		bool there = false;

		for (size_t k = 0; k < r->n; k++)
			for (size_t b = 0; b < r->files[k].info->n_buffers; b++)
				there = there || !strcmp(r->files[k].info->buffers[b].name, name);
		if (!there) {
			log_err(r->log, "no buffer '%s' in %s", name,
				r->n > 1 ? "these files" : r->files[0].in.path);
			return -ENOENT;
		}
	}
	return 0;
}

/* ---- files -------------------------------------------------------------------------- */

static int open_input(const struct report *r, struct report_file *f)
{
	unsigned int flags = (r->o->raw_ts ? FILETIME_RAW : 0) | (r->o->no_date ? FILETIME_NO_DATE : 0);
	uint64_t hz = f->opts->hz ? f->opts->hz : r->o->hz;
	struct filetime *t = &f->in.time;
	int ret = input_open(&f->in, f->opts->path, flags, r->log);

	if (ret)
		return ret;
	f->info = reader_info(f->in.reader);
	if (r->o->raw_ts)
		return 0;
	t->add = (int64_t)((uint64_t)t->add + (uint64_t)f->opts->ts_offset);
	if (hz)
		filetime_set_hz(t, hz);
	return 0;
}

static int open_file(struct report *r, struct report_file *f)
{
	int ret = open_input(r, f);

	if (!ret)
		ret = open_buffers(r, f);
	if (!ret)
		ret = load(r, f);
	if (!ret)
		ret = add_symbols(r, f);
	if (!ret)
		ret = set_flags(r, f);
	return ret ? ret : filters_open(r, f);
}

int report_open(struct report *r)
{
	const struct report_opts *o = r->o;
	int ret = 0;

	r->files = calloc(o->n_inputs, sizeof(*r->files));
	r->inputs = calloc(o->n_inputs, sizeof(*r->inputs));
	if (!r->files || !r->inputs)
		return -ENOMEM;
	for (; r->n < o->n_inputs && !ret; r->n++) {
		struct report_file *f = &r->files[r->n];

		f->opts = &o->inputs[r->n];
		ret = open_file(r, f);
		r->inputs[r->n] = input_for_merge(&f->in);
	}
	return ret ? ret : check_buffers(r);
}

static void close_file(struct report_file *f)
{
	for (size_t i = 0; f->buffers && i < f->info->n_buffers; i++)
		free(f->buffers[i].shown);
	free(f->buffers);
	filter_free(f->filter);
	input_release(&f->in);
	graph_close(f);
}

void report_close(struct report *r)
{
	merge_close(r->merge);
	for (size_t i = 0; i < r->n; i++)
		close_file(&r->files[i]);
	free(r->files);
	free(r->inputs);
}
