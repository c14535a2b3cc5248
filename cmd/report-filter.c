// SPDX-License-Identifier: GPL-2.0-only
/* Which records of hyptrace report are shown: -F, -v, --pid and --comm. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/filter-syntax.h"
#include "report-priv.h"
#include "util/array.h"

/* The filters of one file, in libtraceevent's form: any of v, none of negated. */
struct filter {
	struct tep_event_filter **v, **negated;
	size_t n, n_negated;
	int stacks[2]; /* ids of the stack traces, -1: none */
};

/* ---- building ---------------------------------------------------------------------- */

static int filter_add(const struct report *r, struct report_file *f, const char *text, bool negate)
{
	struct tep_event_filter ***list = negate ? &f->filter->negated : &f->filter->v;
	size_t *n = negate ? &f->filter->n_negated : &f->filter->n;
	struct tep_event_filter **v = array_grow(*list, *n, sizeof(*v));
	enum tep_errno error;
	char why[1024] = "";
	const char *line;

	if (!v)
		return -ENOMEM;
	*list = v;
	v[*n] = tep_filter_alloc(f->in->tep);
	if (!v[*n])
		return -ENOMEM;
	error = tep_filter_add_filter_str(v[(*n)++], text);
	if ((int)error >= 0)
		return 0;
	tep_filter_strerror(v[*n - 1], error, why, sizeof(why));
	/* it may show the place in two lines before */
	line = strrchr(why, '\n');
	log_err(r->log, "filter '%s': %s", text, line ? line + 1 : why);
	return -EINVAL;
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
	f->filter = calloc(1, sizeof(*f->filter));
	if (!f->filter)
		return -ENOMEM;
	f->filter->stacks[0] = filter_event_id(f->in->tep, "kernel_stack");
	f->filter->stacks[1] = filter_event_id(f->in->tep, "user_stack");
	if (r->o->test_filters)
		tep_set_test_filters(f->in->tep, 1);
	ret = filter_add_list(r, f, &r->o->filters);
	return ret ? ret : filter_add_list(r, f, &f->opts->filters);
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		tep_filter_free(f->v[i]);
	for (size_t i = 0; i < f->n_negated; i++)
		tep_filter_free(f->negated[i]);
	free(f->v);
	free(f->negated);
	free(f);
}

/* ---- asking ------------------------------------------------------------------------- */

static bool filter_any(struct tep_event_filter **v, size_t n, struct tep_record *rec)
{
	for (size_t i = 0; i < n; i++) {
		enum tep_errno ret = tep_filter_match(v[i], rec);

		if (ret == TEP_ERRNO__FILTER_MATCH || ret == TEP_ERRNO__NO_FILTER)
			return true;
	}
	return false;
}

bool filter_match(struct filter *f, const struct report_file *file, struct timeline_record *m)
{
	bool *shown = &report_buffer(file, m)->shown[m->index];
	bool stack = (int)m->id == f->stacks[0] || (int)m->id == f->stacks[1];
	bool match = !f->n || filter_any(f->v, f->n, &m->tep) || (stack && *shown);

	*shown = match && !filter_any(f->negated, f->n_negated, &m->tep);
	return *shown;
}
