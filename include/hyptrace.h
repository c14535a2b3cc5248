/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_H
#define HYPTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * libhyptrace: reads the recordings of a host, its hypervisor and its guests as one
 * timeline, computes the offsets of guests' clocks, records and recovers. hyptrace(3)
 * has an example.
 *
 * Errors: calls return 0 or -errno unless they say otherwise; the log callback gets
 * the reason in words. -EBADMSG: a file that is no trace.dat or contradicts itself;
 * -ENOTSUP: a version, byte order or compression that is not read; -EINVAL: wrong
 * arguments; -ENOMEM; and what the system says about files (-ENOENT, -EIO ...).
 *
 * Sizes: each struct begins with its size, which the caller sets to sizeof: a program
 * that was built against an older or newer header works. A newer one's members that
 * this library does not know must be 0 (-E2BIG).
 *
 * Threads: different handles may be used by different threads at the same time, one
 * handle by one thread at a time. The library has no state of its own beside handles;
 * libtraceevent's plugins, which it loads, are the process's.
 *
 * Out of memory: calls return -ENOMEM or NULL. But libtraceevent checks few of its own
 * allocations: where one of those fails the process may crash, or a text be another. The
 * program hyptrace gives itself a malloc() that ends it instead.
 *
 * Memory: what a call returns belongs to its handle and is valid as long as the call
 * says; handles are freed by their own call, for which NULL is fine.
 */

/* ---- version ----------------------------------------------------------------------- */

#define HYPTRACE_VERSION_MAJOR 0
#define HYPTRACE_VERSION_MINOR 1
#define HYPTRACE_VERSION_PATCH 0
/* Numbers that compare as versions do: HYPTRACE_VERSION_OF(0, 1, 0) is 0x000100. Parts are below 256. */
#define HYPTRACE_VERSION_OF(major, minor, patch) ((unsigned int)(major) << 16 | (minor) << 8 | (patch))
#define HYPTRACE_VERSION_NUMBER                                                                              \
	HYPTRACE_VERSION_OF(HYPTRACE_VERSION_MAJOR, HYPTRACE_VERSION_MINOR, HYPTRACE_VERSION_PATCH)

/* Of the library that runs, where HYPTRACE_VERSION_NUMBER is that of the header. */
unsigned int hyptrace_version(void);

/* ---- log --------------------------------------------------------------------------- */

enum hyptrace_log_level { HYPTRACE_ERROR, HYPTRACE_WARNING, HYPTRACE_INFO, HYPTRACE_DEBUG };

/* message: one line without a newline, valid during the call. */
typedef void hyptrace_log_fn(void *ctx, enum hyptrace_log_level level, const char *message);

/* ---- reading ----------------------------------------------------------------------- */

/* Files that were opened together. */
struct hyptrace;

enum {
	HYPTRACE_RAW_TIMES = 1, /* times as recorded: no offset, date or conversion is applied */
	HYPTRACE_NO_DATE = 2,	/* not the time of day, where the file has it (record --date) */
	HYPTRACE_ALIGN = 4,	/* compute offsets of guests whose files have no bounds, see hyptrace_open */
};

struct hyptrace_open_opts {
	size_t size;
	unsigned int flags; /* HYPTRACE_RAW_TIMES ... */
	hyptrace_log_fn *log;
	void *log_ctx;
};

/*
 * hyptrace_open - open the trace.dat files of a host and its guests as one timeline
 * @out: the handle, for hyptrace_close
 * @paths: @n files, the host's first
 * @opts: NULL for defaults
 *
 * Event formats and libtraceevent's plugins are not loaded before the first
 * hyptrace_next, hyptrace_filter or hyptrace_next_span. Then, too, times of a clock that counts ticks,
 * x86-tsc say, become ns: by the file (TSC2NSEC), else by a rate estimated from its events, which the log
 * reports; where nothing shows a rate they stay ticks. HYPTRACE_ALIGN does as hyptrace_sync for each guest
 * whose file has no bounds and whose host's file is open, too; the log gets a line of each.
 */
int hyptrace_open(struct hyptrace **out, const char *const *paths, size_t n,
		  const struct hyptrace_open_opts *opts);
void hyptrace_close(struct hyptrace *h);

#define HYPTRACE_UNKNOWN UINT64_MAX /* of a bound */

/* One event. Pointers are valid until the next call of hyptrace_next, _seek, _sync or _close. */
struct hyptrace_event {
	size_t size;
	uint64_t time;	     /* ns of the host's clock; ticks where the clock has no ns */
	uint64_t bound;	     /* the true time is within time +- bound ns; 0: the file's own clock is */
			     /* the timeline's; HYPTRACE_UNKNOWN: nothing bounds the guest's offset */
	const char *machine; /* the guest's name, or "host"; else the NAME of "trace-NAME.dat" */
	const char *buffer;  /* "": the top buffer; "hyp": the hypervisor's */
	const char *system;  /* "sched"; NULL: the file has no format for it */
	const char *name;    /* "sched_switch"; NULL likewise */
	const char *comm;    /* the task's name; NULL: unknown */
	const void *data;    /* the record's bytes; NULL: no event, only a loss at a CPU's end */
	size_t data_size;    /* bytes */
	unsigned int file;   /* index of its path */
	unsigned int cpu;
	unsigned int id; /* the event's, in its file */
	int pid;	 /* of the task; -1: unknown */
	int64_t lost;	 /* events lost before it on this CPU; -1: an unknown number */
};

/*
 * hyptrace_next - the next event of all files by time
 *
 * Returns 1 and fills *@event, 0 at the end, or -errno. Damaged places in a file do not
 * end it: what is missing counts as lost, and in hyptrace_damaged.
 */
int hyptrace_next(struct hyptrace *h, struct hyptrace_event *event);
/* Damaged places met so far. */
uint64_t hyptrace_damaged(const struct hyptrace *h);

/*
 * hyptrace_seek - iterate from a time, earlier or later than where iteration is
 * @time: ns of the host's clock, as hyptrace_event has it; 0: from the first event
 *
 * The next hyptrace_next gives the first event at or after that time, the next hyptrace_next_span
 * the first span that ends at or after it. Losses before it are not reported. Pages of earlier times
 * are not read where the file's pages allow that.
 */
int hyptrace_seek(struct hyptrace *h, uint64_t time);

/*
 * hyptrace_filter - give only events that match, as `hyptrace report -F` does
 * @filter: "EVENT,...[: EXPRESSION]", hyptrace-report(1); copied. NULL: all events
 * @error: at most @error_size bytes of text when -EINVAL is returned; may be NULL
 *
 * Replaces the filter before it, and holds from the next event on. A file that has none of its events gives
 * none. Losses are given with the next event that matches, and at a CPU's end. Stack
 * traces are events of their own. -EINVAL: it is no filter, or no file has its events; the filter before it
 * stays. Loads event formats.
 */
int hyptrace_filter(struct hyptrace *h, const char *filter, char *error, size_t error_size);

enum hyptrace_kind {
	HYPTRACE_UNSIGNED, /* number */
	HYPTRACE_SIGNED,   /* (int64_t)number */
	HYPTRACE_STRING,   /* data, data_size without the NUL, which may be missing */
	HYPTRACE_BYTES,	   /* data: an array */
};

/* A field of an event; pointers as in struct hyptrace_event. */
struct hyptrace_field {
	size_t size;
	const char *name;
	enum hyptrace_kind kind;
	uint64_t number;
	const void *data;
	size_t data_size; /* bytes */
	size_t item_size; /* of an array: bytes of each item */
};

/*
 * A field of the event that hyptrace_next gave last, by name or by its place in the
 * event's format, from 0. -ENOENT: there is none; -EBADMSG: the record ends before it.
 */
int hyptrace_field(struct hyptrace *h, const char *name, struct hyptrace_field *field);
int hyptrace_field_at(struct hyptrace *h, size_t index, struct hyptrace_field *field);
/* That event's fields as `hyptrace report` prints them; NULL: out of memory, or no event. */
const char *hyptrace_text(struct hyptrace *h);

/* ---- spans ------------------------------------------------------------------------------ */

enum hyptrace_span_kind {
	HYPTRACE_VISIT, /* of a CPU to the hypervisor: from hyp_enter to its hyp_exit */
	HYPTRACE_EXIT,	/* of a guest: from kvm_exit to the next kvm_entry of the same thread */
};

enum hyptrace_span_end {
	HYPTRACE_PAIRED, /* begin and end are known */
	HYPTRACE_LOST,	 /* its end is missing, since events were lost or times go back: end is its begin */
	HYPTRACE_UNFINISHED, /* the recording ended first: end is its begin */
	HYPTRACE_NO_BEGIN,   /* its begin is missing: begin is its end */
};

/* A span of time. Pointers are valid until the next call of hyptrace_next_span, _seek, _sync or _close. */
struct hyptrace_span {
	size_t size;
	enum hyptrace_span_kind kind;
	enum hyptrace_span_end how;
	uint64_t begin, end; /* ns of the host's clock; ticks where the clock has no ns */
	uint64_t number;     /* of the reason, in its kernel; HYPTRACE_UNKNOWN: not recorded */
	const char *reason;  /* "guest_exit", "TRAP", of Android's visits the event; NULL: no name is known */
	const char *esr_class; /* of an arm64 exit by a trap: "DABT_LOW"; else NULL */
	const char *machine;   /* as hyptrace_event's */
	const char *guest;     /* the name of the guest whose vCPU it was; NULL: not recorded */
	unsigned int vcpu;     /* its vCPU, if guest is not NULL */
	int vcpu_thread;       /* the vCPU's thread on the machine; 0: not recorded */
	unsigned int file;     /* index of its path */
	unsigned int cpu;      /* of its begin */
	int pid;	       /* of the task of its begin; -1: unknown */
};

/*
 * hyptrace_next_span - the next span of all files, in the order in which they end
 *
 * Returns 1 and fills *@span, 0 at the end, or -errno. Unfinished ones come last. Iterates apart from
 * hyptrace_next; hyptrace_filter does not apply.
 */
int hyptrace_next_span(struct hyptrace *h, struct hyptrace_span *span);

/* ---- offsets of guests' clocks ------------------------------------------------------- */

/*
 * hyptrace_sync - compute the offset of each guest's clock, as `hyptrace sync` does
 *
 * The host's file is the one that names the first as a guest's, else the first. A
 * guest whose offset can be computed gets it in place of what its file says, also with
 * HYPTRACE_RAW_TIMES; iteration begins anew, at hyptrace_seek's time, with times and
 * bounds by it.
 */
int hyptrace_sync(struct hyptrace *h);

/* host time = guest time + offset, in ns; in ticks where clocks count these */
struct hyptrace_offset {
	size_t size;
	int64_t offset;
	uint64_t bound;		/* half width, ns if times are; HYPTRACE_UNKNOWN */
	const char *class_name; /* "hard": a proof, "soft", "ping", "none"; "": the file does not say */
	const char *method;	/* "hyp windows", "kvm windows" ...; "": the file does not say */
};

/*
 * hyptrace_offset - a guest's offset at a time of its own clock
 * @file: index of its path
 *
 * By hyptrace_sync, else as its file has it. The words are valid until hyptrace_close or
 * hyptrace_sync. -ENODATA: neither has an offset.
 */
int hyptrace_offset(const struct hyptrace *h, unsigned int file, uint64_t time,
		    struct hyptrace_offset *offset);

/* ---- recording ----------------------------------------------------------------------- */

/* The sources, events and options of a recording. */
struct hyptrace_plan;

/*
 * hyptrace_plan_parse - a plan from arguments as hyptrace-record(1) has them
 * @argv: @argc of them, [0] is the command's name; copied
 * @error: at most @error_size bytes of text when -EINVAL is returned; may be NULL
 */
int hyptrace_plan_parse(struct hyptrace_plan **out, int argc, const char *const *argv, char *error,
			size_t error_size);
void hyptrace_plan_free(struct hyptrace_plan *plan);

struct hyptrace_record_opts {
	size_t size;
	int stop_fd;		 /* recording ends when it becomes readable; -1: with its command only */
	const char *tracing_dir; /* NULL: where tracefs is mounted */
	hyptrace_log_fn *log;
	void *log_ctx;
};

struct hyptrace_summary {
	size_t size;
	/*
	 * Of all buffers. lost: at least, since some losses have no number; bad: records or pages
	 * that made no sense.
	 */
	uint64_t events, lost, bad;
	uint64_t file_bytes;
	double seconds;	    /* tracing was on; 0 after a recovery, which does not count events either */
	int guests_lost;    /* before the end; what they sent is kept */
	int not_restored;   /* entries of tracefs that could not be put back */
	int command_status; /* of the plan's command, as waitpid(2) has it; -1: there was none */
	char output[4096];  /* the host's file */
	char kept[4096];    /* the spool, when no file could be made of it: for hyptrace_recover */
};

/*
 * hyptrace_record - carry out a plan: returns when its command has ended or stop_fd says so
 * hyptrace_recover - make a file of the spool of a recorder that was killed
 * @output: NULL for where the recording was to go
 * @summary: may be NULL
 *
 * -errno: nothing was recorded, or (summary->kept) what was lies in the spool.
 */
int hyptrace_record(const struct hyptrace_plan *plan, const struct hyptrace_record_opts *opts,
		    struct hyptrace_summary *summary);
int hyptrace_recover(const char *spool, const char *output, const struct hyptrace_record_opts *opts,
		     struct hyptrace_summary *summary);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
