/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_REPORT_PRIV_H
#define HYPTRACE_CMD_REPORT_PRIV_H

#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "cmd.h"
#include "read/inputs.h"
#include "read/merge.h"
#include "report-opts.h"
#include "read/tepfile.h"

/* Shared by report.c and report-*.c. */

struct report_buffer {
	const char *label; /* printed in front of its lines; "" for none */
	bool wanted;	   /* -B */
	bool *shown;	   /* by CPU: the last record was; its stack trace follows */
	bool skip_next;	   /* it was printed with the record before it */
};

struct report_file {
	const struct report_input *opts;
	struct input in;
	const struct reader_info *info;
	const char *label;     /* of the top buffer's lines; "" for a lone file */
	struct filter *filter; /* NULL: none */
	struct graph *graph;   /* NULL: not without plugins */
	struct report_buffer *buffers;
};

struct report {
	const struct report_opts *o;
	const struct log *log;
	struct report_file *files;
	struct merge_input *inputs; /* the same files, for the merge */
	size_t n;
	struct merge *merge;
	const struct merge_record *rec; /* the one that is being printed */
	bool labels;
	size_t label_width;
	bool terminal; /* where the text ends up, perhaps through a pager */
};

/* report.c: "cpus=4" of a file. */
void report_print_head(const struct report *r, const struct report_file *f);

/* ---- report-open.c: files, formats and plugins -------------------------------------- */

/* 0 or -errno, said in the log. */
int report_open(struct report *r);
void report_close(struct report *r);
/* libtraceevent's list of the events, NULL-ended; NULL: there are none. */
struct tep_event **report_events(const struct report_file *f, bool by_system);
/* The number of CPUs of the file's top buffer. */
unsigned int report_top_cpus(const struct report_file *f);

/* ---- report-filter.c: -F, --pid, --comm ------------------------------------------------ */

int filters_open(struct report *r, struct report_file *f);
void filter_free(struct filter *f);
/* Is a record shown? A stack trace is when the record before it on the CPU was. */
bool filter_match(struct filter *f, const struct report_file *file, const struct merge_record *m,
		  struct tep_record *rec);

/* ---- report-graph.c: function_graph ------------------------------------------------------ */

/* Before the file's formats are parsed. -ENOMEM. */
int graph_open(struct report *r, struct report_file *f);
void graph_close(struct report_file *f);

/* ---- report-line.c: one record, one line --------------------------------------------------- */

struct line;
int line_open(struct line **out, const struct report *r, uint64_t time_base);
void line_free(struct line *l);
/* The name in front, when there are several. */
void line_label(const struct report *r, const char *label);
/* What was lost on a CPU before the record, or at its end. */
void line_lost(struct line *l, const struct report_buffer *b, const struct merge_record *m);
void line_print(struct line *l, const struct report_file *f, const struct merge_record *m,
		struct tep_record *rec);
/* "    20.105093" as in a line; all digits when asked for. */
void print_time(const struct report *r, size_t file, uint64_t ts, FILE *out);

/* ---- report-wakeup.c: -w ----------------------------------------------------------------- */

struct wakeups;
/* NULL without error when the file has no events to measure by. -ENOMEM. */
int wakeups_open(struct wakeups **out, struct tep_handle *tep);
/* Behind the line of the record. -ENOMEM. */
int wakeups_record(struct wakeups *w, struct tep_handle *tep, struct tep_record *rec, FILE *out);
void wakeups_finish(const struct wakeups *w, FILE *out);
void wakeups_free(struct wakeups *w);

/* ---- report-info.c: about the file, instead of its events ----------------------------------- */

/* What o->what asks for. 0 or -errno. */
int report_info(const struct report *r, FILE *out);

#endif
