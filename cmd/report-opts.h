/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_REPORT_OPTS_H
#define HYPTRACE_REPORT_OPTS_H

#include "base/opts.h"
#include "base/strings.h"
#include "cmd.h"

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
	bool align_ts;
	bool raw_fields, latency, irq_info, wakeup;
	bool no_plugins, no_system_plugins;
	bool no_pager, quiet;
	bool json;   /* lines as export has them */
	bool follow; /* a running recording */
	bool negate; /* -v: of the filters that follow */
};

/*
 * argv[0] is the command's own name. Fills *o, which must be zeroed, and which
 * the caller releases in any case; it points into argv. 0, OPTS_STOP (-h) or
 * -errno with the reason in err. Prints nothing.
 */
int report_opts_parse(int argc, char **argv, struct report_opts *o, struct opts_error *err);
void report_opts_release(struct report_opts *o);

#endif
