/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WATCHER_H
#define HYPTRACE_WATCHER_H

#include "base/log.h"
#include "file/wire/transport.h"
#include "record/watch/watch-sums.h"

/*
 * The hypervisor's share of the CPUs' time by reason, sampled: its events take no histograms, so its buffer
 * is switched on for a short window now and then. The last windows are kept, for the error of their mean.
 */

#define HYP_WINDOWS 60
#define HYP_REASONS 16 /* as in our files, and one for all that are not canonical */

struct hyp_windows {
	uint64_t n;	 /* windows so far */
	uint64_t missed; /* ... that could not be taken: the buffer was in use, or times were wrong */
	double shares[HYP_REASONS][HYP_WINDOWS]; /* the newest at (n - 1) % HYP_WINDOWS; of all CPUs' time */
};

/*
 * Takes a window of that length, which blocks for some 0.3 s more. Changes are in the journal first (NULL: in
 * memory), and put back. root: as struct watcher_opts. 0 too where the window is missed; -ENOENT: this
 * machine's hypervisor cannot be sampled (logged), another -errno (logged).
 */
int hyp_window_take(struct hyp_windows *h, const char *tracing_dir, const char *journal, uint64_t ns,
		    const struct log *log);
/* Of one window's text of all CPUs (remotes/hypervisor/trace_pipe), between two times of the boot clock. */
struct hypevents;
int hyp_window_add(struct hyp_windows *h, struct hypevents *events, const void *text, size_t len,
		   unsigned int n_cpus, uint64_t from, uint64_t to);
const char *hyp_windows_reason(size_t reason);
/* Mean of a reason over the windows kept, and its standard error; false: there are not two of them. */
bool hyp_windows_mean(const struct hyp_windows *h, size_t reason, double *mean, double *error);

/*
 * Watches the vCPUs of this machine's VMs by synthetic events and histograms in the instance hyptrace-watch:
 * the kernel counts, and nothing is recorded. All is in a journal first (record/tracefs/undo.h).
 */

struct watcher_opts {
	const char *tracing_dir;
	const char *journal; /* NULL: in memory */
	const char *root;    /* prefix of /sys and /proc, "" */
	bool no_exits;	     /* do without them: they cost guests most */
	uint64_t hyp_window; /* ns of each look in which the hypervisor is sampled; 0: it is not */
	size_t top;	     /* names with series of their own, of each vCPU */
	uint64_t max_series; /* of metrics */
	const struct log *log;
};

struct watcher {
	const struct watcher_opts *o;
	struct watch_sums sums;
	struct strlist vms; /* names */
	struct watch_vcpu *vcpus;
	size_t n_vcpus;
	uint64_t dropped;  /* events without room */
	uint64_t emptied;  /* ... in histograms before they were emptied */
	uint64_t left_out; /* series of the last metrics */
	uint64_t interval; /* ns that the last look ended */
	uint64_t looked;   /* mono ns */
	struct hyp_windows hyp;
	uint64_t breaches, dumps; /* the caller's, for metrics */
	bool no_hyp;		  /* it cannot be sampled here */
	bool part;		  /* something cannot be watched here */
	/* vcpu-hists.c */
	struct undo *undo;
	struct tep_handle *tep;
	const struct watch_pair *pairs[3]; /* NULL: not watched */
	size_t mark;			   /* in the journal, of what follows vCPUs */
	bool amd;			   /* x86: reasons are SVM's */
};

#define WATCH_HYP_JOURNAL ".hyp" /* at the end of the journal's name: of the hypervisor's windows */

/* Puts back what a killed watcher has left in its journals; 0 too without one. -EBUSY: another one runs. */
int watcher_restore(const struct watcher_opts *o);
/* After that. 0 or -errno, logged: nothing is left then. Found VMs are watched from here on. */
int watcher_open(struct watcher **out, const struct watcher_opts *o);
/* Reads the histograms, then looks for VMs that came and went. 0 or -errno, logged. */
int watcher_look(struct watcher *w);
/* Puts back what was changed. 0 or -errno, logged: the journal has the rest. NULL: 0. */
int watcher_close(struct watcher *w);

/* The next sum of these kinds that has a series, and its vCPU; s NULL: the first. NULL: there is none. */
const struct watch_sum *watcher_next(const struct watcher *w, const struct watch_sum *s, enum watch_kind from,
				     enum watch_kind to, const struct watch_vcpu **vcpu);
/* Its name or reason, which may be in `out`. */
const char *watcher_label(struct watcher *w, const struct watch_sum *s, char out[32]);
uint64_t watcher_ns(const struct watch_sum *s);
/*
 * The sums as Prometheus' text (version 0.0.4, which node_exporter's textfile collector reads). Series beyond
 * max_series are left out, and counted; logged when there are more than before.
 */
void watcher_metrics(struct watcher *w, struct buf *out);

/* ---- breach.c ---- */

/* A limit that the last interval must not exceed: "METRIC > VALUE" or "METRIC > VALUE for TIME". */
struct breach {
	const struct breach_metric *metric; /* NULL: none was given */
	double limit;			    /* ns, or a share */
	bool of_hyp;			    /* it needs hyp_window */
	uint64_t lasts;			    /* ns for which it must hold */
	uint64_t since;			    /* mono ns; 0: it does not hold now */
};

/* For messages and -h: each metric with the form of its value. */
#define BREACH_FORMS                                                                                         \
	"stolen > 10%, stolen_p99 > 5ms, wakeup_p99 > 5ms, exit_p99 > 5ms, hyp > 2%, each perhaps with: "    \
	"for 30s"

/* -EINVAL: none of BREACH_FORMS. */
int breach_parse(struct breach *b, const char *text);
/* After each look: whether it has held for its time. worst: text of the value now, "Guest:0 84.2 %". */
bool breach_holds(struct breach *b, struct watcher *w, uint64_t now, char worst[300]);

/* ---- vcpu-hists.c: 0 or -errno, logged ---- */

/* Makes events and histograms. After a failure, too, vcpu_hists_close puts all back. */
int vcpu_hists_open(struct watcher *w);
int vcpu_hists_close(struct watcher *w);
/* Watches the watcher's vCPUs and no others. */
int vcpu_hists_follow(struct watcher *w);
/* Adds all histograms to the sums; totals are those of all. */
int vcpu_hists_read(struct watcher *w, struct hist_totals *totals);
/* Empties the histograms, of which the sums have all by now. */
int vcpu_hists_empty(struct watcher *w);
/* Entries of a histogram (the kernel's default): empty it before. */
#define VCPU_HISTS_SIZE 2048

/*
 * Serves one text over HTTP, GET /metrics, to this machine only. There is no thread: the caller polls. At
 * most eight readers have a connection, and one that stands still loses it after SERVE_IDLE_S.
 */
struct serve;

#define SERVE_IDLE_S 5

/* "unix:PATH", "127.0.0.1:PORT" or "[::1]:PORT". -EINVAL: another machine could reach it, or no address. */
int serve_parse(struct transport_addr *a, const char *text);
#ifdef HYPTRACE_MICROHTTPD
/* 0 or -errno, logged. serve_put() comes before the first serve_run(). */
int serve_open(struct serve **out, const struct transport_addr *a, const struct log *log);
/* Takes the place of the text so far, whose readers get the rest of it. -ENOMEM. */
int serve_put(struct serve *s, const struct buf *text);
/* Readable: serve_run() has something to do; it looks for idle readers, too. */
int serve_fd(const struct serve *s);
void serve_run(struct serve *s);
/* Takes NULL. */
void serve_close(struct serve *s);
#else
#define serve_open(out, a, log)                                                                              \
	log_fail(log, -ENOTSUP,                                                                              \
		 "this hyptrace was built without libmicrohttpd, which --listen needs; install "             \
		 "libmicrohttpd-dev and build it again, or write a file: --metrics FILE")
#define serve_put(s, text) 0
#define serve_fd(s)	   -1
#define serve_run(s)	   (void)0
#define serve_close(s)	   (void)0
#endif

#endif
