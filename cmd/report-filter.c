// SPDX-License-Identifier: GPL-2.0-only
/* Which records of hyptrace report are shown: -F, -v, --pid and --comm. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/filter.h"
#include "read/filter-syntax.h"
#include "report-priv.h"
#include "util/array.h"

/* Those of one file: any of shown, none of hidden. */
struct filters {
	struct filter **shown, **hidden;
	size_t n_shown, n_hidden;
	int stacks[2]; /* ids of the stack traces, -1: none */
};

/* ---- building ---------------------------------------------------------------------- */

static int filter_add(const struct report *r, struct report_file *f, const char *text, bool negate)
{
	struct filters *all = f->filters;
	char why[1024];
	struct filter *filter;
	int ret = filter_open(&filter, f->in->tep, text, why, sizeof(why));

	if (ret == -EINVAL)
		log_err(r->log, "filter '%s': %s", text, why);
	if (ret)
		return ret;
	ret = negate ? array_push(&all->hidden, &all->n_hidden, &filter, sizeof(filter))
		     : array_push(&all->shown, &all->n_shown, &filter, sizeof(filter));
	if (ret)
		filter_free(filter);
	return ret;
}

static void filter_text_pid(struct buf *text, int pid)
{
	buf_printf(text, "%s(common_pid==%d)||(pid==%d)||(next_pid==%d)", text->len ? "||" : ".*:", pid, pid,
		   pid);
}

static void filter_text_comm(const struct report *r, struct report_file *f, const char *comm,
			     struct buf *text)
{
	struct tep_cmdline *c = tep_data_pid_from_comm(f->in->tep, comm, NULL);

	if (!c)
		log_warn(r->log, "%s has no task named '%s'", f->in->path, comm);
	for (; c; c = tep_data_pid_from_comm(f->in->tep, comm, c))
		filter_text_pid(text, tep_cmdline_pid(f->in->tep, c));
}

/* --pid and --comm of a list together are one filter, over what says whose an event is. */
static int filter_add_tasks(const struct report *r, struct report_file *f, const struct report_filters *list)
{
	struct buf text = { 0 };
	bool any = false;
	int ret = 0;

	for (size_t i = 0; i < list->n; i++) {
		any = any || list->v[i].kind != FILTER_TEXT;
		if (list->v[i].kind == FILTER_PID)
			filter_text_pid(&text, atoi(list->v[i].text));
		else if (list->v[i].kind == FILTER_COMM)
			filter_text_comm(r, f, list->v[i].text, &text);
	}
	/* nobody has these names: nothing is shown, not all; no pid is so large */
	if (any && !text.len)
		buf_addstr(&text, ".*:common_pid==4294967295");
	if (any)
		ret = buf_str(&text) ? filter_add(r, f, buf_str(&text), false) : -ENOMEM;
	buf_release(&text);
	return ret;
}

static int filter_add_checked(const struct report *r, struct report_file *f,
			      const struct report_filter *filter)
{
	char why[256];
	int ret = filter_syntax(filter->text, why, sizeof(why));

	if (ret)
		log_err(r->log, "filter '%s': %s", filter->text, why);
	return ret ? ret : filter_add(r, f, filter->text, filter->negate);
}

static int filter_add_list(const struct report *r, struct report_file *f, const struct report_filters *list)
{
	int ret = filter_add_tasks(r, f, list);

	for (size_t i = 0; i < list->n; i++) {
		if (ret)
			return ret;
		if (list->v[i].kind == FILTER_TEXT)
			ret = filter_add_checked(r, f, &list->v[i]);
	}
	return ret;
}

static int filter_event_id(struct tep_handle *tep, const char *name)
{
	struct tep_event *e = tep_find_event_by_name(tep, "ftrace", name);

	return e ? e->id : -1;
}

int filters_open(struct report *r, struct report_file *f)
{
	int ret;

	if (!r->o->filters.n && !f->opts->filters.n)
		return 0;
	f->filters = calloc(1, sizeof(*f->filters));
	if (!f->filters)
		return -ENOMEM;
	f->filters->stacks[0] = filter_event_id(f->in->tep, "kernel_stack");
	f->filters->stacks[1] = filter_event_id(f->in->tep, "user_stack");
	if (r->o->test_filters)
		tep_set_test_filters(f->in->tep, 1);
	ret = filter_add_list(r, f, &r->o->filters);
	return ret ? ret : filter_add_list(r, f, &f->opts->filters);
}

static void filters_free_list(struct filter **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		filter_free(v[i]);
	free(v);
}

void filters_free(struct filters *all)
{
	if (!all)
		return;
	filters_free_list(all->shown, all->n_shown);
	filters_free_list(all->hidden, all->n_hidden);
	free(all);
}

/* ---- asking ------------------------------------------------------------------------- */

static bool filter_any(struct filter *const *v, size_t n, const struct filter_record *rec)
{
	for (size_t i = 0; i < n; i++)
		if (filter_match(v[i], rec))
			return true;
	return false;
}

bool filters_show(const struct report_file *f, const struct timeline *t, const struct merge_record *m)
{
	const struct filters *all = f->filters;
	const struct merge_stream *at = timeline_stream(t, m);
	struct filter_record rec = { .data = m->data, .len = m->len, .cpu = at->cpu };
	bool *shown = &f->buffers[at->buffer].shown[at->index], stack, match;

	timeline_event(t, m, &rec.id);
	stack = (int)rec.id == all->stacks[0] || (int)rec.id == all->stacks[1];
	match = !all->n_shown || filter_any(all->shown, all->n_shown, &rec) || (stack && *shown);
	*shown = match && !filter_any(all->hidden, all->n_hidden, &rec);
	return *shown;
}
