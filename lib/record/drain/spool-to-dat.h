/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_TO_DAT_H
#define HYPTRACE_SPOOL_TO_DAT_H

#include "file/dat/reader.h"
#include "record/hyp/hypevents.h"
#include "record/spool/spool.h"

/*
 * From a spool to a trace.dat: the last step of a recording, and also taken by `hyptrace recover`.
 *
 * Keys of the session file used here:
 *   output         where the file goes (a path, made absolute by the session); a number: spool_output()
 *   version, compression, clock, traceid, uname, date_offset_us
 *   page_size      of the machine that recorded, when it is not this one
 *   clock_name     of a guest, whose TRACECLOCK is among its options
 *   sched_buffer   number of the host buffer with complete sched_switch records
 */

struct dat_from_spool_opts {
	const char *output; /* NULL: the session's own */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	struct kernel_symbols *symbols; /* NULL, or go into the spool when all else is written */
	const struct log *log;
};

/*
 * The text "options" holds further options as they stand in the file: u16 id, u32 length, bytes.
 *
 * Writes the output (base/outfile.h). Existing texts "stat.N.C" give CPUSTAT. A spool that needs it is
 * repaired before (repair.c, below). On error there is no output, and nothing is lost of the spool.
 */
int dat_from_spool(struct spool *spool, const struct dat_from_spool_opts *o);

/*
 * A file as dat_from_spool() would write it now, or (o: NULL) without compression, for readers of a running
 * recording (live.h), who choose the pages. The spool must outlive it. -ENOENT: formats, or files of pages,
 * are still to be made.
 */
struct dat_job;
int dat_job_open(struct dat_job **out, struct spool *spool, const struct dat_from_spool_opts *o,
		 const struct log *log);
struct dat_file *dat_job_file(struct dat_job *j);
/* dat_options_add to its options. */
int dat_job_add_option(struct dat_job *j, uint16_t id, const void *data, size_t len);
void dat_job_close(struct dat_job *j);

/*
 * The event formats of a spool as its file will have them: the texts of tracefs
 * (system-metadata.c, below), then the hypervisor's, rewritten (below).
 */
struct spool_formats {
	struct dat_system *systems; /* "ftrace" first, when there */
	size_t n_systems;
	struct dat_text *texts; /* all of them; the systems point into it */
	size_t n_texts;

	/* private */
	struct buf kept;
	struct buf *fixed; /* one for each text of tracefs: what it became; most are empty */
	size_t n_fixed, n_plain;
	struct buf *hyp_texts;
	size_t n_hyp_texts;
	struct hypevents hyp;
};

/*
 * *f is to be released also after an error. -ENOENT: none were kept; -EBADMSG. The log names formats
 * that are left out, because they are longer or deeper than any kernel's.
 */
int spool_formats_load(struct spool_formats *f, const struct spool *spool, const struct log *log);
void spool_formats_release(struct spool_formats *f);

/*
 * The hypervisor's events as the spool keeps them, in two texts:
 *   hyp_formats   "FIRST_ID SYSTEM raw|text", then for each event a line with the
 *                 length of its format file in bytes, and the file
 *   hyp_reasons   reasons beyond the canonical ones, a line each, as they were met
 */

/* Adds an event's format to those for remote_events_save. */
void remote_events_add(struct buf *formats, const struct buf *format);
int remote_events_save(struct spool *spool, unsigned int first_id, const char *system, bool raw,
		       const struct buf *formats);
/* The events with the reasons met, numbered. Free with hypevents_release. -ENOENT: none kept; -EBADMSG. */
int remote_events_load(struct hypevents *e, const struct spool *spool);

/*
 * Format texts for the file: the hypervisor's events, hyp_unknown, and hyp_cntvoff,
 * our own record of what a plain-nVHE host shows of a vCPU's CNTVOFF (repair.c):
 * "vcpu=87 offset=9947588488 low=9947373488 high=9947588488" (ns).
 */
size_t remote_n_formats(const struct hypevents *e);

/* A hyp_cntvoff record, packed as in its format. */
struct __attribute__((packed)) cntvoff_record {
	uint16_t type; /* remote_cntvoff_id */
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t vcpu; /* pid of its thread */
	int64_t offset;
	uint64_t low, high;
};
uint16_t remote_cntvoff_id(const struct hypevents *e);

/* ---- hyp-pids.c -------------------------------------------------------------------------------- */

/*
 * The host tasks that ran on a CPU, by time: from the sched_switch records of a recorded host
 * buffer. Used to fill in the pid of hypervisor records, which carry none of their own.
 *
 * One CPU's pages are walked once, front to back, in step with the records to fill in; memory is
 * constant however long the recording.
 */
struct tasks;

struct tasks_format {
	unsigned int id;		 /* of sched_switch in the file */
	unsigned int prev_pid, next_pid; /* offsets in the record, bytes */
};

/* From the text of events/sched/sched_switch/format. -EBADMSG when a field is missing. */
int tasks_format_parse(const char *text, size_t len, struct tasks_format *out);

/* Reads pages of page_size bytes from fd, offset from on; fd is closed by it, also after an error. */
int tasks_new(struct tasks **out, int fd, uint64_t from, uint32_t page_size, const struct tasks_format *f);
void tasks_free(struct tasks *t);
/*
 * Pid of the task that ran at ts (ns, the buffer's clock); -1: not known (no switch on this CPU, or events
 * were lost around it). Ask with times that do not go back by much: the walk is forward only, and an earlier
 * time gets the answer of where the walk stands.
 */
int tasks_pid(struct tasks *t, uint64_t ts);
/* -errno of the read at which the walk ended too early; 0: of none. */
int tasks_error(const struct tasks *t);

/*
 * Gives the hypervisor's records of a buffer, which have no pid of their own, those of the host's tasks: sets
 * b->fix_page. file: has the format of sched_switch. *out: to be closed, also after an error; NULL: the
 * host's switches were not recorded. It must live as long as b; the spool, too.
 */
struct hyp_pids;
int hyp_pids_open(struct hyp_pids **out, const struct spool *spool, const struct dat_file *file,
		  struct dat_buffer *b);
void hyp_pids_close(struct hyp_pids *p); /* takes NULL */

/* ---- system-metadata.c -------------------------------------------------------------------------- */

/*
 * Copies the texts that a trace.dat needs from tracefs and /proc to the spool.
 *
 * Before the recording: header_page, header_event, and "formats": for each event a line "SYSTEM LENGTH" and
 * the format text, the ftrace system first. After it: kallsyms.zst (u32 length, and the text as a zstd frame;
 * or kallsyms, of another trace.dat), printk_formats, saved_cmdlines.
 */

/* Adds an event's to the text "formats". */
void formats_add(struct buf *formats, const char *system, const void *format, size_t len);
/*
 * header_page, header_event and formats. systems: those with recorded events.
 * *max_id: the largest id among the formats. 0 or -errno, which is logged.
 */
int collect_formats(int tracing_dirfd, const struct strlist *systems, struct spool *spool,
		    unsigned int *max_id, const struct log *log);
/* printk_formats, saved_cmdlines. What cannot be read is left out with a warning; -ENOSPC: no room for it. */
int collect_names(int tracing_dirfd, struct spool *spool, const struct log *log);
/* The kernel's own symbols: printing them takes it longer than writing a short recording. */
struct kernel_symbols {
	const char *root; /* of proc/kallsyms; may be NULL */
	/* private */
	struct workers *reader;
	struct spool *spool;
	struct buf text;
	int error;
};
/* Begins to read them for that spool, beside what follows. */
void kernel_symbols_read(struct kernel_symbols *k, struct spool *spool);
/* If they are being read: waits for them and puts them into the spool, or says why they are left out. */
void kernel_symbols_keep(struct kernel_symbols *k, const struct log *log);
void kernel_symbols_release(struct kernel_symbols *k);
/* Appends "pid comm" lines from /proc for those pids that saved_cmdlines lacks. 0 or -errno. */
int collect_pids(struct spool *spool, const int *pids, size_t n);
/*
 * A sample of the time of day by the spool's clock (options.h) into its text "wall": the first one stays, the
 * next replaces the last one. Nothing where that clock is none of the system's. 0 or -errno.
 */
int collect_wall(struct spool *spool);

/*
 * The texts and options of a trace.dat into the spool, as dat_from_spool() takes them. Options are kept in
 * the text "options": for each u16 id, u32 length, bytes; not those that leave_out names. 0 or -errno.
 */
int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id));

/* ---- repair.c ----------------------------------------------------------------------------------- */

/*
 * On a plain-nVHE host the kernel's times of hypervisor records are off by a vCPU's CNTVOFF while it is
 * loaded (nvhe.h). The spool keeps them as the kernel gave them. Once all is drained they are repaired by
 * what the whole recording shows, and hyp_cntvoff records (above) are put in.
 *
 * Bounds of the recording, boot clock ns, are keys of the session file where they
 * are known: hyp_from (before tracing was switched on, first) and hyp_to (after it was switched off, last).
 */

/* Marks the spool: its hypervisor's times need repair. From any thread; 0 or -errno. */
int spool_want_repair(struct spool *spool);
bool spool_wants_repair(const struct spool *spool);
/*
 * Rewrites the pages of a marked spool's hypervisor, all or none (spool_rewrite_*).
 * Without effect on one that is not marked, or is repaired already. 0 or -errno: the
 * pages are as they were, and it can be tried again.
 */
int spool_repair(struct spool *spool, const struct log *log);

/* ---- sanitize.c --------------------------------------------------------------------------------- */

/*
 * Pages that came from a guest's agent are foreign, and one that contradicts
 * itself would spoil the file: trace-cmd and KernelShark refuse to read it at all.
 */

struct sanitized {
	uint64_t events;  /* that the file will show */
	uint64_t lost;	  /* by the pages; a loss of unknown number counts as 1 */
	uint64_t unknown; /* such losses */
	uint64_t bad;	  /* pages emptied, or cut short */
};

/*
 * Checks the pages of a spool's buffer, in place: a page with an impossible header is emptied, one
 * with an impossible event is cut before it, and the next page states that events were lost. A
 * partial page at the end is dropped. Safe to repeat, and to be killed half-way. 0 or -errno.
 */
int sanitize_buffer(const struct spool *s, size_t buffer, struct sanitized *out);
/* All buffers of a spool that a guest filled; logs how many pages made no sense, and errors. 0 or -errno. */
int sanitize_spool(const struct spool *s, const struct log *log);
/*
 * The last events of a CPU are missing: adds an empty page, if it has any, which states that events were lost
 * after them. 0 or -errno.
 */
int spool_mark_cut(const struct spool *s, size_t buffer, unsigned int cpu);
/* ... of all CPUs: the recording ended before its buffers were empty. */
int spool_mark_all_cut(const struct spool *s);

#endif
