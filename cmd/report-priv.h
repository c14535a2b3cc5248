/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_REPORT_PRIV_H
#define HYPTRACE_CMD_REPORT_PRIV_H

#include <traceevent/trace-seq.h>

#include "cmd.h"
#include "base/workers.h"
#include "read/print.h"

/* Shared by report.c and report-*.c. */

struct report_buffer {
	char *label;	/* printed in front of its lines; "" for none */
	bool wanted;	/* -B */
	bool *shown;	/* by CPU: the last record was; its stack trace follows */
	bool skip_next; /* it was printed with the record before it */
};

struct report_file {
	const struct report_input *opts;
	struct input *in; /* the handle's */
	const struct reader_info *info;
	char *label;		 /* of the main buffer's lines; "" for a single file */
	struct filters *filters; /* NULL: none */
	struct graph *graph;	 /* NULL: not without plugins */
	struct report_buffer *buffers;
	size_t n_buffers;
};

struct report {
	const struct report_opts *o;
	const struct log *log;
	struct report_file *files;
	size_t n;
	struct hyptrace *handle; /* on all of them */
	bool labels;
	size_t label_width;
	bool terminal; /* where the text ends up, perhaps through a pager */
	bool color;
	uint64_t base; /* --align-ts: what is taken off the times */
	struct print *print;
	struct timeline *timeline; /* the handle's */
	/* the record that is looked at, for function_graph */
	OWN_LINE const struct merge_run *run;
	size_t at;
	struct padded room;
	struct follow *follow; /* --follow; NULL: all of the file */
};

static inline void label_widen(struct report *r, const char *label)
{
	if (strlen(label) > r->label_width)
		r->label_width = strlen(label);
}

/* ---- report-events.c: lines ---------------------------------------------------------------- */

/* Prints the events of open files on standard output. 0 or -errno, logged. */
int report_events_print(struct report *r);
/* "cpus=4" of a file. */
void line_head(const struct report *r, const struct report_file *f, FILE *out);
/* "    20.105093" as in a line, of that file; all digits when asked for. */
void line_time(const struct report *r, const struct report_file *f, uint64_t ts, FILE *out);

/* ---- report.c: a running recording ---------------------------------------------------- */

/* A CPU of a buffer, in one look. */
struct follow_cpu {
	const char *buffer; /* the file's, until it is closed */
	unsigned int cpu;
	uint64_t *before; /* records that earlier looks took, the recording's count */
	uint64_t seen, taken;
	bool holds; /* one, and so all after it */
};

/*
 * A look prints what is not newer than the newest record of the look before: what other CPUs have
 * recorded until then has come meanwhile, or is late.
 */
struct follow {
	struct live *live;
	struct follow_cpu *cpus;
	size_t n;
	uint64_t horizon;    /* until there, this look */
	uint64_t newest;     /* seen in this look */
	uint64_t from, late; /* until there was printed before; records older than that */
	uint64_t held;
	bool first, last, no_memory;
};

/* ---- report-open.c: files, formats, plugins, filters -------------------------------- */

/* Opens all files; the log has what is wrong. -errno; report_close in any case. */
int report_open(struct report *r);
void report_close(struct report *r);
/* libtraceevent's list of the events, NULL-ended; NULL: there are none. */
struct tep_event **report_events(const struct report_file *f, bool by_system);

/* Do f->filters show a record? A stack trace is shown when the record before it on the CPU was. */
bool filters_show(const struct report_file *f, const struct timeline *t, const struct merge_record *m);

/* The command line of `hyptrace report`: the grammar of trace-cmd-report(1), 3.1.6. */

enum report_filter_kind { FILTER_TEXT, FILTER_PID, FILTER_COMM };

struct report_filter {
	char *text;	   /* libtraceevent's grammar; a pid or a task's name after --pid and --comm */
	unsigned int kind; /* enum report_filter_kind */
	bool negate;
};

struct report_filters {
	struct report_filter *v;
	size_t n;
};

struct report_input {
	const char *path;
	int64_t ts_offset; /* ns; ticks when they are not converted */
	uint64_t hz;	   /* ticks per second; 0: the file's */
	struct report_filters filters;
};

struct cpu_range {
	unsigned int first, last;
};

enum report_what {
	REPORT_EVENTS,
	REPORT_CHECK,	    /* --check-events */
	REPORT_CPUS,	    /* --cpus */
	REPORT_ENDIAN,	    /* -e */
	REPORT_EVENT_NAMES, /* -E */
	REPORT_FORMATS,	    /* --events, --event */
	REPORT_FUNCTIONS,   /* -f */
	REPORT_PAGE_SIZE,   /* -p */
	REPORT_PRINTK,	    /* -P */
	REPORT_STAT,	    /* --stat */
	REPORT_UNAME,	    /* --uname */
	REPORT_VERSION,	    /* --version */
	REPORT_COMMAND,	    /* --command */
};

enum report_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct report_opts {
	struct report_input *inputs;
	size_t n_inputs;
	struct report_filters filters; /* for all files */
	uint64_t hz;		       /* ... that have none of their own */
	struct strlist buffers, raw, no_handler, plugins;
	struct cpu_range *cpus; /* none: all */
	size_t n_cpus;
	enum report_what what;
	const char *event;    /* --event: of which the formats are shown */
	const char *kallsyms; /* a file of symbols */
	enum report_color color;
	bool first_event, last_event; /* with REPORT_CPUS */
	bool test_filters, no_irq, no_softirq;
	struct time_part time;
	bool verbose, nanoseconds, ts_diff, ts_check, no_date, no_sync, no_guests, raw_ts;
	bool align_ts, wall;
	bool raw_fields, latency, irq_info, wakeup;
	bool no_plugins, no_system_plugins;
	bool no_pager, quiet;
	bool json;   /* lines as export has them */
	bool follow; /* a running recording */
	bool negate; /* -v: of the filters that follow */
};

#endif
