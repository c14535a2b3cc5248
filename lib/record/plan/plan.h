/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PLAN_H
#define HYPTRACE_PLAN_H

#include "base/opts.h"
#include "base/log.h"

struct opts_error;

/*
 * A recording as it was asked for: filled in by the grammar, carried out by the session. Plain data;
 * the words are those of trace-cmd-record(1).
 */

struct event_plan {
	char *name;		 /* as given: "kvm", "sched:sched_switch", "kvm_entry", "all", globs */
	char *define;		 /* the line that makes it first (dynamic.c), or NULL */
	bool optional;		 /* the line may name what this kernel lacks: a preset's */
	bool sdt;		 /* a program's own static probe, whose line is still to be asked of perf */
	char *filter;		 /* -f after it, or NULL; several are joined: (a)&&(b) */
	struct strlist triggers; /* -R after it */
	bool negate;		 /* -v came before: switch these off again */
};

/* --start-on, --stop-on: an event of the kernel's that switches tracing_on. */
struct trigger_plan {
	char *event;  /* as below events/: "sched/sched_switch"; NULL: not given */
	char *filter; /* the kernel's, or NULL: every one */
};

struct buffer_plan {
	char *name;  /* "" for the top buffer, else the instance's (-B) */
	bool is_hyp; /* -B hyp (or hypervisor), or another of tracefs's remotes: -B remote:NAME */
	struct event_plan *events;
	size_t n_events;
	char *tracer;		 /* -p, NULL = nop */
	struct strlist funcs;	 /* -l */
	struct strlist notrace;	 /* -n */
	struct strlist graph;	 /* -g */
	struct strlist options;	 /* -O; -T is "stacktrace", -d is "nofunction-trace" here */
	char *clock;		 /* -C, NULL = the session's choice */
	char *cpumask;		 /* -M, as given (hex mask, or "-1" = all) */
	uint64_t size_kb;	 /* -b, per CPU; 0 = not given */
	uint64_t subbuf_kb;	 /* --subbuf-size; 0 = not given */
	int64_t max_graph_depth; /* --max-graph-depth; -1 = not given */
	bool joined; /* --take-over found it running: its settings remain (the session logs that) */
};

/* -A: a guest, recorded through its agent into a file of its own. */
struct guest_plan {
	char *spec;	     /* as given: "name@cid:port" ... (guest.h) */
	char *name;	     /* --name after it, or NULL: by the spec or the VM */
	struct strlist args; /* the options after it, as trace-cmd's agent takes them: "-e", "sched" */
	bool events;	     /* an -e or -p is among them */
	bool on;	     /* a -p or -R is, or an -e that no -v came before */
	uint64_t profile_hz; /* --profile after it; 0 = none */
};

/* --tsync: how the guests' clocks are tied to the host's. */
enum tsync_method {
	TSYNC_AUTO,    /* the best that can be had */
	TSYNC_COUNTER, /* counters and CNTVOFF */
	TSYNC_HYP,     /* the hypervisor's windows */
	TSYNC_KVM,     /* kvm_entry and kvm_exit */
	TSYNC_PING,    /* counters, CNTVOFF bounded by questions and answers */
	TSYNC_NONE,
};

struct record_plan {
	struct buffer_plan *buffers; /* [0] is the top buffer, always there (maybe empty) */
	size_t n_buffers;
	struct guest_plan *guests;
	size_t n_guests;
	char *output;		  /* -o, "trace.dat" by default */
	char **command;		  /* argv of the command, or NULL: until a signal; not owned */
	struct strlist pids;	  /* -P */
	bool filter_command;	  /* -F: only the command's (and -P's) pids */
	bool follow_children;	  /* -c, with -F or -P */
	bool func_stack;	  /* --func-stack */
	uint64_t sleep_us;	  /* -s: recorder's sleep between reads; 0 = not given */
	uint64_t rt_prio;	  /* -r; 0 = not given */
	bool take_over;		  /* --take-over: a buffer that runs is read from where it is */
	bool keep;		  /* -k: leave tracing as it is set up */
	bool ignore_event_errors; /* -i */
	bool quiet;		  /* -q */
	bool date;		  /* --date */
	bool no_filter;		  /* --no-filter: the recorder's own pids are traced too */
	bool proc_map;		  /* --proc-map */
	char *user;		  /* --user for the command */
	char *compression;	  /* --compression zstd or none; NULL = zstd (version 6: none) */
	uint64_t file_version;	  /* 6 or 7; 0 = default (7) */
	enum tsync_method tsync;
	int64_t tsync_interval_ms; /* --tsync-interval; 0 = start and end only; TSYNC_INTERVAL_MS */
	int64_t guest_timeout_ms;  /* --guest-timeout; GUEST_TIMEOUT_MS */
	uint64_t cmdlines_size;	   /* --cmdlines-size; 0 = not given */
	bool best_effort;	   /* --best-effort: record what is there */
	uint64_t profile_hz;	   /* --profile: samples a second of each CPU; 0 = none */
	bool marks;		   /* --hypertrace: its buffer, of that name, is among the buffers */
	struct strlist rings;	   /* "GUEST=FILE" of it */
	uint64_t duration_ms;	   /* of --config: the recording ends then; 0 = not given */
	uint64_t rotate_bytes;	   /* --rotate SIZE: of pages, all buffers and guests; 0 = not given */
	uint64_t rotate_ms;	   /* --rotate TIME; 0 = not given */
	uint64_t keep_files;	   /* --keep: the newest so many; 0 = all */
	uint64_t max_cpu_kb;	   /* -m: of each CPU's pages, the newest; 0 = not given */
	uint64_t max_bytes;	   /* --max-size: of pages, all buffers and guests; 0 = not given */
	uint64_t flight_ms;	   /* --flight; 0 = not given */
	bool ring;		   /* --ring, with --flight */
	struct strlist notes;	   /* parts of --config that are not used, for messages */
	char *line;		   /* the command line, for a shell; NULL: there is none */
	struct trigger_plan start_on, stop_on;
	struct trigger_plan dump_on; /* --dump-on, with --flight */
};

/* Defaults. */
#define TSYNC_INTERVAL_MS 250
#define GUEST_TIMEOUT_MS  30000

/* True if one recording becomes several files, with numbers. */
static inline bool record_plan_numbered(const struct record_plan *p)
{
	return p->rotate_bytes || p->rotate_ms || p->flight_ms;
}

/* Frees what the plan owns; the struct itself is the caller's. */
void record_plan_release(struct record_plan *p);
/* Checks that its parts go together, and that anything would be recorded. -EINVAL with the reason in err. */
int record_plan_check(const struct record_plan *p, struct opts_error *err);
/* Adds a buffer (zeroed but for name and the "not given" values); NULL: out of memory. */
struct buffer_plan *record_plan_add_buffer(struct record_plan *p, const char *name);
/* The name by which a remote is recorded that -B calls so: "hyp", "remote:NAME"; NULL: a host's buffer. */
const char *record_plan_remote(const char *name);
/* --hypertrace[=GUEST=FILE], as an option of a table: ctx is the plan. */
struct opt;
int record_plan_marks(void *ctx, const struct opt *o, const char *arg, struct opts_error *err);
/* "system/event", as Perfetto and the event's directory have it, becomes "system:event"; in place. */
void event_name_colon(char *name);
/* Adds an event without filter or triggers; NULL: out of memory. The list grows by this call only ... */
struct event_plan *buffer_plan_add_event(struct buffer_plan *b, const char *name, bool negate);
/* ... and this: the i'th event of the one goes to the end of the other. -ENOMEM. */
int buffer_plan_move_event(struct buffer_plan *from, size_t i, struct buffer_plan *to);
/* True if the name's system is the hypervisor's, "hyp" or "hypervisor", ended by ':' or '/'. */
bool event_name_is_hyp(const char *name);
/* The hypervisor's buffer, created if missing; NULL: out of memory. */
struct buffer_plan *record_plan_hyp(struct record_plan *p);
/* The hypervisor's events among those of the top buffer go to its own. -ENOMEM. */
int record_plan_route(struct record_plan *p);
/* Frees n events and the array. */
void event_plans_release(struct event_plan *v, size_t n);

/* Each fills a record_plan by one option's value; plan_cpumask the field of a buffer_plan. */
opt_set plan_cpumask, plan_pids, plan_compression, plan_tsync, plan_tsync_interval, plan_rotate;

/* Regions of a recording: from an event of --start-on to one of --stop-on, and so on. */

/* Fills a trigger_plan from "SYSTEM:EVENT" or "SYSTEM:EVENT/FILTER". */
opt_set region_option;
/* True if --start-on or --stop-on was given. */
bool region_asked(const struct record_plan *plan);
/* True if a buffer of the host's is recorded. Else the first has a region's triggers, and others follow it.
 */
bool region_has_buffer(const struct record_plan *plan);

/*
 * The words of record, in one table: the command line of `hyptrace record` (the
 * grammar of trace-cmd-record(1), 3.1.6), and what a recorder sends to an agent.
 * Both fill a plan, which must be zeroed, and which the caller releases in any
 * case. argv[0] is the command's own name, argv[argc] is NULL; argv is changed.
 */

extern const struct opts_table grammar_table; /* for the usage text */

/*
 * `hyptrace record`: plan->command points into argv. 0, OPTS_STOP when -h was
 * given, or -errno with the reason in err. Prints nothing.
 */
int grammar_parse_line(struct record_plan *plan, int argc, char **argv, struct opts_error *err);

/*
 * An agent's request: takes what makes sense in a guest, ignores what else stock recorders send,
 * refuses the rest and any command (-EINVAL). Names are not looked at: what may pass is for the
 * caller to judge by the plan.
 */
int grammar_parse_request(struct record_plan *plan, int argc, char **argv, const struct log *log,
			  struct opts_error *err);

/*
 * Perfetto's configuration as text (TraceConfig of its protos/perfetto/config): the events of
 * linux.ftrace, the size of their buffer, the instance and duration_ms go into the plan; all else
 * becomes a note of the plan. -EINVAL with the place and the reason in err, -ENOMEM.
 */
int perfetto_config(struct record_plan *plan, const char *text, size_t len, struct opts_error *err);
/* record --config FILE: ctx is the plan. The kernel then need not have all of the events, as for Perfetto. */
opt_set perfetto_config_option;

/* ---- dynamic.c ---- */

/*
 * Events that are made for a recording: a line of tracefs's dynamic_events, as
 * Documentation/trace/kprobetrace.rst, fprobetrace.rst, eprobetrace.rst and
 * uprobetracer.rst of the kernel have them:
 *   p:virt/kick virtqueue_notify vq=$arg1
 */

/* The rest after the kind and the number at once ("r10:"); NULL: no such line. */
const char *dynamic_behind_kind(const char *line);

/* An -e is such a line and no event's name: a letter, digits, a colon, then a space somewhere. */
bool dynamic_event_defined(const char *text);
/*
 * The event's name as "GROUP:EVENT" (malloc'ed); NULL with the reason in *why: the line does not
 * name both, or has a second line in it. Out of memory: NULL, too, with *why set.
 */
char *dynamic_event_name(const char *line, const char **why);
/*
 * The lines of --preset: ended by NULL. NULL: no such preset. A program's static probes are named,
 * as perf has them: "sdt_qemu:virtio_notify".
 */
const char *const *dynamic_preset(const char *name);

#endif
