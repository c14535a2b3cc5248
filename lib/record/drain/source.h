/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SOURCE_H
#define HYPTRACE_SOURCE_H

#include <stdatomic.h>

#include "record/spool/spool.h"

/*
 * A buffer of per-CPU pages that can be started, stopped and drained: the recorder's view of a host
 * instance, the hypervisor's remote and a guest's agent.
 */

#define SOURCE_PROFILE "profile" /* the name of a buffer with samples, the host's or a guest's */

/* One CPU's drain, kept by the recorder and read by others while it runs. */
struct drain_stats {
	_Atomic uint64_t bytes;	  /* of pages in the spool */
	_Atomic uint64_t events;  /* 0 where pages are moved unread */
	_Atomic uint64_t lost;	  /* reported in the data; host pages: see source_ops.count */
	_Atomic uint64_t unknown; /* of them reports without a number, each counted as one */
	_Atomic uint64_t taken;	  /* places where another reader took events, which nothing reports */
	_Atomic uint64_t bad;	  /* lines, pages or records that made no sense */
};

/* The same of several. */
struct drain_totals {
	uint64_t bytes, events, lost, unknown, taken, bad;
};

/* recorder.c: adds a CPU's. */
void drain_totals_add(struct drain_totals *sum, const struct drain_stats *st);

struct drain {
	int out;		     /* the spool's page file, at its end */
	int stop_fd;		     /* readable once stopping */
	const atomic_bool *stopping; /* drain what is there and return */
	uint64_t sleep_us;	     /* between reads; 0 = as data comes */
	bool ring;		     /* nothing is read before it is asked for */
	/* recorder_flush(): raised to ask, and then to be stored in `flushed` (drain_asked()) */
	atomic_uint flush, flushed;
	struct drain_stats *stats;
	const struct log *log;
};

/* True if pages are wanted too that are filled in part; `*mark` goes into d->flushed once they are moved. */
static inline bool drain_asked(const struct drain *d, unsigned int *mark)
{
	*mark = atomic_load(&d->flush);
	return *mark != atomic_load(&d->flushed);
}

/* Of a ring: nobody asks for its pages now. */
static inline bool drain_rests(const struct drain *d)
{
	unsigned int mark;

	return d->ring && !drain_asked(d, &mark) && !atomic_load(d->stopping);
}

struct source;

struct source_ops {
	const char *kind; /* spool_buffer.kind */
	/* tracing_on; start may block (the hypervisor's takes >= 100 ms) */
	int (*start)(struct source *s);
	int (*stop)(struct source *s);
	/*
	 * Runs in a thread of its own per CPU: moves pages to d->out until stopping
	 * and empty. A signal (RECORDER_SIGNAL, no SA_RESTART) interrupts a blocking
	 * read. 0, or -errno: the disk (-ENOSPC) or the source failed.
	 */
	int (*drain)(struct source *s, unsigned int cpu, struct drain *d);
	/* Events read and lost of a CPU, where the kernel counts them; NULL: drain_stats has them. */
	int (*count)(struct source *s, unsigned int cpu, uint64_t *events, uint64_t *lost);
	/* Appends the CPUSTAT text of a CPU to out; NULL: the source has none. */
	int (*stat)(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out);
	/* Frees it; NULL: another object owns the source. */
	void (*close)(struct source *s);
};

struct source {
	const struct source_ops *ops;
	const char *name; /* of the buffer; "" = top */
	const char *path; /* relative to the tracing directory */
	const char *clock;
	uint32_t page_size; /* bytes */
	unsigned int n_cpus;
};

/* source_ops.stat of sources that the kernel does not count: by what was drained. */
int source_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out);

/*
 * A host buffer (the main buffer or an instance) as a source: how it is started, stopped, drained and
 * counted. instance.h sets it up, so that `recover` can drain one whose setting up died with its recorder.
 * path: relative to the tracing directory, "." for the main buffer. The strings must live as long as the
 * source, which its ops->close() frees. 0 or -errno.
 */
int host_open(struct source **out, int tracing_dirfd, const char *name, const char *path, const char *clock,
	      const struct log *log);

/* ---- splice.c: how sources move their pages ---- */

/*
 * Moves pages from a descriptor to the spool, by splice: they never come through user space. Where the kernel
 * or the spool's file system cannot splice, they are copied.
 */
struct splice {
	int in;
	int out;
	int pipe[2];
	size_t room; /* of the pipe, bytes */
	uint8_t *page;
	size_t size;  /* of page, bytes */
	bool padded;  /* in gives pages that may be filled in part: each is written in full */
	bool copying; /* splice is not possible here, or not wanted */
	struct drain_stats *stats;
};

/*
 * From `in`, which stays the caller's, to d->out. size: bytes of a page, which are padded with zeros to it,
 * or (padded false) of a piece of a stream. 0 or -errno; to be closed in either case.
 */
int splice_open(struct splice *m, int in, size_t size, bool padded, const struct drain *d);
void splice_close(struct splice *m);
/* Bytes moved, 0: the end, -EAGAIN, -EINTR or another -errno. Counts stats->bytes. */
ssize_t splice_move(struct splice *m);
/* The same, but always by copying one page: also one that is filled in part, which is not spliced. */
ssize_t splice_copy(struct splice *m);

/* Pages of records that are made here: into d->out from its end on, counted in d->stats. */
struct drain_writer {
	struct page_writer w;
	struct drain *d;
	uint64_t at; /* in the spool's file, of the page that is filled */
};

/* 0 or -errno; w is to be released (page_writer_release()) in either case. */
int drain_writer_open(struct drain_writer *o, size_t page_size, struct drain *d);
/* Writes the page that is being filled, too: a kill -9 then costs nothing that was read. */
int drain_writer_sync(struct drain_writer *o);

/*
 * Waits d->sleep_us (of a ring: for a signal), or when that is 0 until fd is readable or 250 ms have passed
 * (the kernel wakes no reader of a buffer that is filled below its mark); ends at
 * once when d is stopping. 0 or -errno.
 */
int rawpipe_wait(int fd, const struct drain *d);

/* ---- recorder.c ---- */

/*
 * Drains sources into the spool: one thread per source and CPU. Signal
 * RECORDER_SIGNAL (SIGURG, whose default is to be ignored) gets a handler that
 * does nothing, so that a thread asleep in a read comes back when it is to stop.
 */
struct recorder;

#define RECORDER_SIGNAL SIGURG

struct recorder_opts {
	uint64_t sleep_us; /* -s */
	int rt_prio;	   /* -r: SCHED_FIFO priority; 0 = none */
	bool ring;	   /* buffers of the host and the hypervisor are drained by recorder_flush() only */
	/* Called once, from the thread that failed first; the recording should then be ended. */
	void (*failed)(void *ctx, const struct source *s, unsigned int cpu, int error);
	void *ctx;
	const struct log *log;
};

/* Free with recorder_free(). 0 or -ENOMEM. */
int recorder_new(struct recorder **out, const struct recorder_opts *o);
/* Adds a buffer for the source to the spool, after its last one. 0 or -errno. */
int recorder_describe(struct spool *spool, const struct source *s);
/*
 * Starts the threads that drain s into buffer number `buffer` of the spool. The source must live until
 * recorder_free(). -EMFILE: too many CPUs for the limit of open files; or another -errno.
 */
int recorder_add(struct recorder *r, struct source *s, struct spool *spool, size_t buffer);
/*
 * The source's tracing is off: drains what is left of it and joins its threads. Returns the first error of
 * one of them. -ETIMEDOUT: a buffer did not run empty within timeout_ms, and its threads are abandoned.
 */
int recorder_finish(struct recorder *r, const struct source *s, unsigned int timeout_ms);
/*
 * Moves all that a running source has by now into the spool, also pages that are filled in part (only for a
 * host's buffer and the hypervisor's). Waits at most timeout_ms: later records lie in later pages.
 */
void recorder_flush(struct recorder *r, const struct source *s, unsigned int timeout_ms);
/* Totals of one source so far. */
struct drain_totals recorder_totals(const struct recorder *r, const struct source *s);
/* Of one CPU, the recorder's; NULL: the source was not added. */
const struct drain_stats *recorder_stats(const struct recorder *r, const struct source *s, unsigned int cpu);
/* Bytes of pages of all sources so far. */
uint64_t recorder_bytes(const struct recorder *r);
/* After recorder_finish() of each source; memory that an abandoned thread uses is not freed. Takes NULL. */
void recorder_free(struct recorder *r);

#endif
