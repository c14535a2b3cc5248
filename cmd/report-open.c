// SPDX-License-Identifier: GPL-2.0-only
/* Opens the files of hyptrace report, with the plugins, flags and filters (-F, -v, --pid, --comm) that its
 * options ask for, and a program for function_graph. */
#include <regex.h>

#include "report-priv.h"

#define INDENT	  2
#define DEPTH_MAX 256 /* the kernel's own limit is 50 */

/*
 * function_graph's two events as a call tree: an entry whose return is the
 * buffer's next record is a leaf, printed as one line. libtraceevent has no
 * plugin for them; the columns are those of trace-cmd and of the kernel itself.
 */
struct graph {
	struct report *r;
	struct report_file *f;
	const struct tep_event *ret; /* funcgraph_exit; NULL: not looked up yet */
	struct tep_plugin_option options[3];
	struct padded room; /* for the record after it */
};

enum { TAILPRINT, DEPTH };

/* false: an event without this field. */
static bool graph_field(const struct tep_event *event, const char *name, const struct tep_record *rec,
			unsigned long long *value)
{
	struct tep_format_field *field = tep_find_field((struct tep_event *)event, name);

	return field && !tep_read_number_field(field, rec->data, value);
}

static bool graph_times(const struct tep_event *ret, const struct tep_record *rec,
			unsigned long long *duration)
{
	unsigned long long called, returned;

	if (!graph_field(ret, "calltime", rec, &called) || !graph_field(ret, "rettime", rec, &returned))
		return false;
	*duration = returned - called;
	return true;
}

/* "+ 12.345 us |  " */
static void graph_put_duration(struct trace_seq *s, unsigned long long ns)
{
	static const struct {
		unsigned long long above;
		char mark;
	} marks[] = { { 1000000000, '$' }, { 1000000, '#' }, { 100000, '!' }, { 10000, '+' } };
	char text[40];
	char mark = ' ';
	int len;

	for (size_t i = 0; i < ARRAY_SIZE(marks) && mark == ' '; i++)
		if (ns > marks[i].above)
			mark = marks[i].mark;
	len = snprintf(text, sizeof(text), "%llu", ns / 1000);
	if (len < 7)
		len += snprintf(text + len, sizeof(text) - (size_t)len, ".%03llu", ns % 1000);
	trace_seq_printf(s, "%c %s us %*s|  ", mark, text, len < 7 ? 7 - len : 0, "");
}

static void graph_put_indent(struct trace_seq *s, unsigned long long depth)
{
	int d = (int)depth;

	trace_seq_printf(s, "%*s", d < 0 ? 0 : d > DEPTH_MAX ? DEPTH_MAX * INDENT : d * INDENT, "");
}

static void graph_put_depth(struct trace_seq *s, const struct graph *g, unsigned long long depth)
{
	if (g->options[DEPTH].set)
		trace_seq_printf(s, " (%lld)", (long long)depth);
}

/* The return of a function that was entered by a record of this pid, when it comes next. */
static bool graph_leaf_duration(struct graph *g, int pid, unsigned long long func,
				unsigned long long *duration)
{
	const struct report *r = g->r;
	struct timeline_record next;
	unsigned long long returned;
	struct merge_record m;

	if (!timeline_ahead(r->timeline, r->run, r->at, &m))
		return false;
	timeline_fill(r->timeline, &m, &g->room, &next);
	/* what was lost between them is no leaf */
	return next.event == g->ret && !next.missed && !m.paused &&
	       tep_data_pid(g->f->in->tep, &next.tep) == pid &&
	       graph_field(g->ret, "func", &next.tep, &returned) && returned == func &&
	       graph_times(g->ret, &next.tep, duration);
}

/* -1: not as a function graph, but by the event's own format. */
static int graph_entry(struct trace_seq *s, struct tep_record *rec, struct tep_event *event, void *context)
{
	struct graph *g = context;
	const struct merge_record *m = &g->r->run->v[g->r->at];
	unsigned long long func, depth, duration;
	const char *name;
	bool leaf;

	if (!g->ret)
		g->ret = tep_find_event_by_name(event->tep, "ftrace", "funcgraph_exit");
	if (!g->ret || !graph_field(event, "func", rec, &func) || !graph_field(event, "depth", rec, &depth))
		return -1;
	leaf = graph_leaf_duration(g, tep_data_pid(event->tep, rec), func, &duration);
	if (leaf)
		graph_put_duration(s, duration);
	else
		trace_seq_printf(s, "%13s|  ", "");
	graph_put_indent(s, depth);
	name = tep_find_function(event->tep, func);
	if (name)
		trace_seq_puts(s, name);
	else
		trace_seq_printf(s, "%llx", func);
	trace_seq_puts(s, leaf ? "();" : "() {");
	graph_put_depth(s, g, depth);
	if (leaf)
		g->f->buffers[merge_stream(g->r->timeline->merge, m)->buffer].skip_next = true;
	return 0;
}

static int graph_return(struct trace_seq *s, struct tep_record *rec, struct tep_event *event, void *context)
{
	struct graph *g = context;
	unsigned long long func, depth, duration;
	const char *name;

	if (!graph_times(event, rec, &duration) || !graph_field(event, "depth", rec, &depth))
		return -1;
	graph_put_duration(s, duration);
	graph_put_indent(s, depth);
	trace_seq_putc(s, '}');
	name = g->options[TAILPRINT].set && graph_field(event, "func", rec, &func)
		       ? tep_find_function(event->tep, func)
		       : NULL;
	if (name)
		trace_seq_printf(s, " /* %s */", name);
	graph_put_depth(s, g, depth);
	return 0;
}

/* Before the file's formats are parsed. -ENOMEM. */
static int graph_open(struct report *r, struct report_file *f)
{
	struct tep_handle *tep = f->in->tep;
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	*g = (struct graph){
		.r = r,
		.f = f,
		.options = {
			[TAILPRINT].name = "tailprint",
			[TAILPRINT].plugin_alias = "fgraph",
			[TAILPRINT].description = "Print function name at function exit in function graph",
			[DEPTH].name = "depth",
			[DEPTH].plugin_alias = "fgraph",
			[DEPTH].description = "Show the depth of each entry",
		},
	};
	f->graph = g;
	tep_plugin_add_options("ftrace", g->options);
	if (tep_register_event_handler(tep, -1, "ftrace", "funcgraph_entry", graph_entry, g) < 0 ||
	    tep_register_event_handler(tep, -1, "ftrace", "funcgraph_exit", graph_return, g) < 0)
		return -ENOMEM;
	return padded_init(&g->room);
}

struct filter_list {
	struct filter **v;
	size_t n;
};

/* Those of one file: any of shown, none of hidden. */
struct filters {
	struct filter_list shown, hidden;
	int stacks[2]; /* ids of the stack traces, -1: none */
};

static int filter_add(const struct report *r, struct report_file *f, const char *text, bool negate)
{
	struct filter_list *list = negate ? &f->filters->hidden : &f->filters->shown;
	char why[1024];
	struct filter *filter;
	int ret = filter_open(&filter, f->in->tep, text, why, sizeof(why));

	if (ret == -EINVAL)
		log_err(r->log, "filter '%s': %s", text, why);
	if (ret)
		return ret;
	ret = array_push(&list->v, &list->n, &filter, sizeof(filter));
	if (ret)
		filter_free(filter);
	return ret;
}

static void filter_text_pid(struct buf *text, int pid)
{
	buf_printf(text, "%s(common_pid==%d)||(pid==%d)||(next_pid==%d)", text->len ? "||" : ".*:", pid, pid,
		   pid);
}

static int filter_add_list(const struct report *r, struct report_file *f, const struct report_filters *list)
{
	struct buf text = { 0 };
	struct tep_cmdline *c;
	const char *dash;
	uint64_t pid;
	bool any = false;
	int ret = 0;

	/* --pid and --comm of a list together are one filter, over the fields with an event's tasks. */
	for (size_t i = 0; i < list->n; i++) {
		any = any || list->v[i].kind != FILTER_TEXT;
		if (list->v[i].kind == FILTER_PID)
			filter_text_pid(&text, atoi(list->v[i].text));
		if (list->v[i].kind != FILTER_COMM)
			continue;
		c = tep_data_pid_from_comm(f->in->tep, list->v[i].text, NULL);
		dash = strrchr(list->v[i].text, '-');
		if (!c && dash && !parse_u64(dash + 1, &pid) && pid <= INT32_MAX) /* NAME-PID, as printed */
			filter_text_pid(&text, (int)pid);
		else if (!c)
			log_warn(r->log, "%s has no task named '%s'", f->in->path, list->v[i].text);
		for (; c; c = tep_data_pid_from_comm(f->in->tep, list->v[i].text, c))
			filter_text_pid(&text, tep_cmdline_pid(f->in->tep, c));
	}
	/* no task has these names: nothing is shown, not everything; no pid is so large */
	if (any && !text.len)
		buf_addstr(&text, ".*:common_pid==4294967295");
	if (any)
		ret = buf_str(&text) ? filter_add(r, f, buf_str(&text), false) : -ENOMEM;
	buf_release(&text);
	for (size_t i = 0; i < list->n && !ret; i++) {
		const struct report_filter *one = &list->v[i];
		char why[256];

		if (one->kind != FILTER_TEXT)
			continue;
		ret = filter_syntax(one->text, why, sizeof(why));
		if (ret)
			log_err(r->log, "filter '%s': %s", one->text, why);
		else
			ret = filter_add(r, f, one->text, one->negate);
	}
	return ret;
}

static int filter_event_id(struct tep_handle *tep, const char *name)
{
	struct tep_event *e = tep_find_event_by_name(tep, "ftrace", name);

	return e ? e->id : -1;
}

static void filter_list_release(struct filter_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		filter_free(l->v[i]);
	free(l->v);
}

static bool filter_any(const struct filter_list *l, const struct filter_record *rec)
{
	for (size_t i = 0; i < l->n; i++)
		if (filter_match(l->v[i], rec))
			return true;
	return false;
}

bool filters_show(const struct report_file *f, const struct timeline *t, const struct merge_record *m)
{
	const struct filters *all = f->filters;
	const struct merge_stream *at = merge_stream(t->merge, m);
	struct filter_record rec = { .data = m->data, .len = m->len, .cpu = at->cpu };
	bool *shown = &f->buffers[at->buffer].shown[at->index], stack, match;

	timeline_event(t, m, &rec.id);
	stack = (int)rec.id == all->stacks[0] || (int)rec.id == all->stacks[1];
	match = !all->shown.n || filter_any(&all->shown, &rec) || (stack && *shown);
	*shown = match && !filter_any(&all->hidden, &rec);
	return *shown;
}

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
	if (ret)
		return log_fail(r->log, -EINVAL, "'%s' is not a regular expression", pattern);
	for (; events && *events; events++)
		if (!regexec(&regex, (*events)->name, 0, NULL, 0) ||
		    !regexec(&regex, (*events)->system, 0, NULL, 0))
			(*events)->flags |= flag;
	regfree(&regex);
	return 0;
}

#define KALLSYMS_MAX (256u << 20)

/* Applies the options that need the formats: symbols, flags of events, filters. */
static int file_finish(struct report *r, struct report_file *f)
{
	const struct report_opts *o = r->o;
	struct buf text = { 0 };
	int ret = 0;

	if (o->kallsyms) {
		ret = read_file(o->kallsyms, KALLSYMS_MAX, &text);
		if (ret)
			log_err(r->log, "cannot read '%s': %s", o->kallsyms, errno_text(ret));
		else if (buf_str(&text))
			tep_parse_kallsyms(f->in->tep, buf_str(&text));
		else
			ret = -ENOMEM;
		buf_release(&text);
	}
	for (size_t i = 0; i < o->raw.n && !ret; i++)
		ret = flag_events(r, f, o->raw.v[i], TEP_EVENT_FL_PRINTRAW);
	for (size_t i = 0; i < o->no_handler.n && !ret; i++)
		ret = flag_events(r, f, o->no_handler.v[i], TEP_EVENT_FL_NOHANDLE);
	if (ret || (!o->filters.n && !f->opts->filters.n))
		return ret;
	f->filters = calloc(1, sizeof(*f->filters));
	if (!f->filters)
		return -ENOMEM;
	f->filters->stacks[0] = filter_event_id(f->in->tep, "kernel_stack");
	f->filters->stacks[1] = filter_event_id(f->in->tep, "user_stack");
	if (o->test_filters)
		tep_set_test_filters(f->in->tep, 1);
	return filter_add_list(r, f, &o->filters) ?: filter_add_list(r, f, &f->opts->filters);
}

/* Settings of a file, its labels and its buffers, before the formats are parsed. */
static int report_file_open(struct report *r, struct report_file *f)
{
	const struct report_opts *o = r->o;
	uint64_t hz = f->opts->hz ? f->opts->hz : o->hz;
	struct filetime *t = &f->in->time;

	f->info = reader_info(f->in->reader);
	if (!o->raw_ts) {
		t->add = (int64_t)((uint64_t)t->add + (uint64_t)f->opts->ts_offset);
		if (hz)
			filetime_set_hz(t, hz);
	}
	f->label = strdup(ESCAPED(r->labels ? basename(f->in->path) : ""));
	f->buffers = calloc(f->info->n_buffers + 1, sizeof(*f->buffers));
	if (!f->label || !f->buffers)
		return -ENOMEM;
	while (f->n_buffers < f->info->n_buffers) {
		const struct reader_buffer *from = &f->info->buffers[f->n_buffers];
		struct report_buffer *b = &f->buffers[f->n_buffers++];

		b->label = strdup(ESCAPED(*from->name ? from->name : f->label));
		b->wanted = !o->buffers.n || strlist_has(&o->buffers, from->name);
		b->shown = calloc(from->n_cpus + 1, sizeof(*b->shown));
		if (!b->label || !b->shown)
			return -ENOMEM;
	}
	if (o->no_plugins)
		tep_set_flag(f->in->tep, TEP_DISABLE_PLUGINS);
	if (o->no_system_plugins)
		tep_set_flag(f->in->tep, TEP_DISABLE_SYS_PLUGINS);
	/* handlers register for formats that come later */
	return o->no_plugins || o->no_system_plugins ? 0 : graph_open(r, f);
}

/* --wall: each file has to say it. Logs the bound, which is about the same all over a recording. */
static int wall_check(const struct report *r)
{
	const struct inputs *all = handle_inputs(r->handle);

	for (size_t i = 0; i < all->n; i++) {
		const struct input *in = &all->v[i];
		const struct wall *w = &in->time.wall;
		uint64_t utc, bound = 0, from = w->v[0].trace + (uint64_t)in->time.add;
		char text[16];

		if (!inputs_utc(all, in, from, &utc, &bound))
			return log_fail(
				r->log, -ENODATA,
				"%s: it does not say the time of day; record it with -C boot, mono or tai",
				in->path);
		if (w->n && !r->follow) /* each look opens the recording anew */
			log_info(r->log, "%s: the time of day is %s%s", in->path,
				 bound != UINT64_MAX ? "within " : "not bounded: ",
				 bound != UINT64_MAX ? duration_text(bound, text)
				 : w->n > 1	     ? "nothing synchronised the system's clock"
						     : "the recorder did not end");
	}
	return 0;
}

int report_open(struct report *r)
{
	const struct report_opts *o = r->o;
	unsigned int flags = (o->raw_ts ? HYPTRACE_RAW_TIMES : 0) | (o->no_date ? HYPTRACE_NO_DATE : 0);
	struct strlist paths = { .v = calloc(o->n_inputs, sizeof(*paths.v)) };
	/* times that --ts-offset corrects need no other correction */
	struct times_opts times = { .no_sync = o->no_sync || o->what != REPORT_EVENTS, .time = o->time };
	static const struct report_input beside = { 0 }; /* of files of guests that are not named */
	size_t n, named = 0;
	int ret;

	if (!paths.v)
		return -ENOMEM;
	/* pids are those of one machine */
	times.no_guests = o->no_guests || o->raw_ts || o->wakeup || o->filters.n || o->what != REPORT_EVENTS;
	while (paths.n < o->n_inputs) {
		paths.v[paths.n] = (char *)o->inputs[paths.n].path;
		times.no_sync |= o->inputs[paths.n].ts_offset != 0;
		times.no_guests |= o->inputs[paths.n].ts_offset || o->inputs[paths.n].filters.n;
		paths.n++;
	}
	ret = command_open(&r->handle, &paths, flags | COMMAND_UNLOADED, &times, r->log);
	free(paths.v);
	if (ret)
		return ret;
	n = handle_inputs(r->handle)->n;
	r->files = calloc(n, sizeof(*r->files));
	if (!r->files)
		return -ENOMEM;
	r->labels = n > 1;
	while (r->n < n) {
		struct report_file *f = &r->files[r->n];

		f->in = &handle_inputs(r->handle)->v[r->n++];
		f->opts = named < o->n_inputs && !strcmp(o->inputs[named].path, f->in->path)
				  ? &o->inputs[named++]
				  : &beside;
		ret = report_file_open(r, f);
		if (ret)
			return ret;
		label_widen(r, f->label);
	}
	ret = handle_load(r->handle) ?: o->wall ? wall_check(r) : 0;
	for (size_t i = 0; i < r->n && !ret; i++)
		ret = file_finish(r, &r->files[i]);
	if (ret)
		return ret;
	for (size_t i = 0; i < r->o->buffers.n; i++) {
		const char *name = r->o->buffers.v[i];
		bool there = false;

		for (size_t k = 0; k < r->n; k++)
			for (size_t b = 0; b < r->files[k].info->n_buffers; b++)
				there = there || !strcmp(r->files[k].info->buffers[b].name, name);
		if (!there)
			return log_fail(r->log, -ENOENT, "no buffer '%s' in %s", name,
					r->n > 1 ? "these files" : r->files[0].in->path);
	}
	return 0;
}

void report_close(struct report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct report_file *f = &r->files[i];

		if (f->filters) {
			filter_list_release(&f->filters->shown);
			filter_list_release(&f->filters->hidden);
			free(f->filters);
		}
		if (f->graph) {
			tep_plugin_remove_options(f->graph->options);
			padded_release(&f->graph->room);
		}
		free(f->graph);
		for (size_t b = 0; b < f->n_buffers; b++) {
			free(f->buffers[b].label);
			free(f->buffers[b].shown);
		}
		free(f->buffers);
		free(f->label);
	}
	free(r->files);
	print_close(r->print);
	padded_release(&r->room);
	hyptrace_close(r->handle);
}
