// SPDX-License-Identifier: GPL-2.0-only
/*
 * function_graph's two events as a call tree: an entry whose return is the
 * buffer's next record is a leaf, printed as one line. libtraceevent has no
 * plugin for them; the columns are those of trace-cmd and of the kernel itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report-priv.h"
#include "base/array.h"

#define INDENT	  2
#define DEPTH_MAX 256 /* the kernel's own limit is 50 */

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
	if (next.event != g->ret || next.missed || m.paused)
		return false;
	return tep_data_pid(g->f->in->tep, &next.tep) == pid &&
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

int graph_open(struct report *r, struct report_file *f)
{
	struct tep_handle *tep = f->in->tep;
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->r = r;
	g->f = f;
	if (padded_init(&g->room)) {
		free(g);
		return -ENOMEM;
	}
	g->options[TAILPRINT] = (struct tep_plugin_option){
		.name = "tailprint",
		.plugin_alias = "fgraph",
		.description = "Print function name at function exit in function graph",
	};
	g->options[DEPTH] = (struct tep_plugin_option){
		.name = "depth",
		.plugin_alias = "fgraph",
		.description = "Show the depth of each entry",
	};
	f->graph = g;
	tep_plugin_add_options("ftrace", g->options);
	if (tep_register_event_handler(tep, -1, "ftrace", "funcgraph_entry", graph_entry, g) < 0 ||
	    tep_register_event_handler(tep, -1, "ftrace", "funcgraph_exit", graph_return, g) < 0)
		return -ENOMEM;
	return 0;
}

void graph_close(struct report_file *f)
{
	if (!f->graph)
		return;
	tep_plugin_remove_options(f->graph->options);
	padded_release(&f->graph->room);
	free(f->graph);
}
