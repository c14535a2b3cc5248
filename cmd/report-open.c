// SPDX-License-Identifier: GPL-2.0-only
/* Opens the files of hyptrace report, with the plugins, flags and filters that its options ask for. */
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "report-priv.h"
#include "util/visible.h"

/* ---- events ---------------------------------------------------------------------- */

struct tep_event **report_events(const struct report_file *f, bool by_system)
{
	if (!tep_get_events_count(f->in->tep))
		return NULL;
	return tep_list_events(f->in->tep, by_system ? TEP_EVENT_SORT_SYSTEM : TEP_EVENT_SORT_ID);
}

/* Events or systems that a whole regular expression matches. */
static int flag_events(const struct report *r, struct report_file *f, const char *pattern, int flag)
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

static int flag_all(const struct report *r, struct report_file *f)
{
	const struct report_opts *o = r->o;
	int ret;

	for (size_t i = 0; i < o->raw.n; i++) {
		ret = flag_events(r, f, o->raw.v[i], TEP_EVENT_FL_PRINTRAW);
		if (ret)
			return ret;
	}
	for (size_t i = 0; i < o->no_handler.n; i++) {
		ret = flag_events(r, f, o->no_handler.v[i], TEP_EVENT_FL_NOHANDLE);
		if (ret)
			return ret;
	}
	return 0;
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
		tep_parse_kallsyms(f->in->tep, buf_str(&text));
	else
		ret = -ENOMEM;
	buf_release(&text);
	return ret;
}

/* ---- labels ---------------------------------------------------------------------- */

static bool buffer_wanted(const struct report_opts *o, const char *name)
{
	return !o->buffers.n || strlist_has(&o->buffers, name);
}

/* A name in a column of one line; NULL: no memory. */
static char *make_label(const char *name)
{
	return strdup(VISIBLE(name));
}

static int file_buffers(const struct report *r, struct report_file *f)
{
	const char *slash = strrchr(f->in->path, '/');

	f->label = make_label(r->o->n_inputs < 2 ? "" : slash ? slash + 1 : f->in->path);
	if (!f->label)
		return -ENOMEM;
	f->buffers = calloc(f->info->n_buffers + 1, sizeof(*f->buffers));
	if (!f->buffers)
		return -ENOMEM;
	while (f->n_buffers < f->info->n_buffers) {
		const struct reader_buffer *from = &f->info->buffers[f->n_buffers];
		struct report_buffer *b = &f->buffers[f->n_buffers++];

		b->label = make_label(*from->name ? from->name : f->label);
		b->wanted = buffer_wanted(r->o, from->name);
		b->shown = calloc(from->n_cpus + 1, sizeof(*b->shown));
		if (!b->label || !b->shown)
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
				r->n > 1 ? "these files" : r->files[0].in->path);
			return -ENOENT;
		}
	}
	return 0;
}

/* ---- files -------------------------------------------------------------------------- */

/* What comes before the formats are parsed: handlers register for those behind them. */
static int file_begin(struct report *r, struct report_file *f)
{
	const struct report_opts *o = r->o;
	uint64_t hz = f->opts->hz ? f->opts->hz : o->hz;
	struct filetime *t = &f->in->time;
	int ret;

	f->info = reader_info(f->in->reader);
	if (!o->raw_ts) {
		t->add = (int64_t)((uint64_t)t->add + (uint64_t)f->opts->ts_offset);
		if (hz)
			filetime_set_hz(t, hz);
	}
	ret = file_buffers(r, f);
	if (ret)
		return ret;
	if (o->no_plugins)
		tep_set_flag(f->in->tep, TEP_DISABLE_PLUGINS);
	if (o->no_system_plugins)
		tep_set_flag(f->in->tep, TEP_DISABLE_SYS_PLUGINS);
	return o->no_plugins || o->no_system_plugins ? 0 : graph_open(r, f);
}

static int file_finish(struct report *r, struct report_file *f)
{
	int ret = add_symbols(r, f);

	if (ret)
		return ret;
	ret = flag_all(r, f);
	return ret ? ret : filters_open(r, f);
}

static int open_handle(struct report *r)
{
	struct hyptrace_open_opts opts = { sizeof(opts), .log = handle_log_to, .log_ctx = (void *)r->log };
	const struct report_opts *o = r->o;
	const char **paths = calloc(o->n_inputs, sizeof(*paths));
	int ret;

	if (!paths)
		return -ENOMEM;
	for (size_t i = 0; i < o->n_inputs; i++)
		paths[i] = o->inputs[i].path;
	opts.flags = (o->raw_ts ? HYPTRACE_RAW_TIMES : 0) | (o->no_date ? HYPTRACE_NO_DATE : 0);
	ret = hyptrace_open(&r->handle, paths, o->n_inputs, &opts);
	free(paths);
	return ret;
}

int report_open(struct report *r)
{
	const struct report_opts *o = r->o;
	int ret = open_handle(r);

	if (ret)
		return ret;
	r->files = calloc(o->n_inputs, sizeof(*r->files));
	if (!r->files)
		return -ENOMEM;
	while (r->n < o->n_inputs) {
		struct report_file *f = &r->files[r->n];

		f->opts = &o->inputs[r->n];
		f->in = &handle_inputs(r->handle)->v[r->n++];
		ret = file_begin(r, f);
		if (ret)
			return ret;
	}
	ret = handle_load(r->handle);
	if (ret)
		return ret;
	for (size_t i = 0; i < r->n; i++) {
		ret = file_finish(r, &r->files[i]);
		if (ret)
			return ret;
	}
	return check_buffers(r);
}

void report_close(struct report *r)
{
	for (size_t i = 0; i < r->n; i++)
		filters_free(r->files[i].filters);
	timeline_close(r->timeline);
	print_close(r->print);
	padded_release(&r->room);
	hyptrace_close(r->handle);
	for (size_t i = 0; i < r->n; i++) {
		struct report_file *f = &r->files[i];

		graph_close(f);
		for (size_t b = 0; b < f->n_buffers; b++) {
			free(f->buffers[b].label);
			free(f->buffers[b].shown);
		}
		free(f->buffers);
		free(f->label);
	}
	free(r->files);
}
