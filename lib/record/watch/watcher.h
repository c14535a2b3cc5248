/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WATCHER_H
#define HYPTRACE_WATCHER_H

#include "base/buf.h"
#include "base/strings.h"
#include "record/watch/hyp-windows.h"
#include "record/watch/watch-sums.h"

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
#define BREACH_FORMS "stolen > 10%, wakeup_p99 > 5ms, hyp > 2%, each perhaps with: for 30s"

/* -EINVAL: none of BREACH_FORMS. */
int breach_parse(struct breach *b, const char *text);
/* After each look: whether it has held for its time. worst: text of the value now, "Guest:0 84.2 %". */
bool breach_holds(struct breach *b, const struct watcher *w, uint64_t now, char worst[300]);

/* ---- vcpu-hists.c: 0 or -errno, logged ---- */

/* Makes events and histograms. After a failure, too, vcpu_hists_close puts all back. */
int vcpu_hists_open(struct watcher *w);
int vcpu_hists_close(struct watcher *w);
/* Watches the watcher's vCPUs and no others. */
int vcpu_hists_follow(struct watcher *w);
/* Adds all histograms to the sums; totals are those of all. */
int vcpu_hists_read(struct watcher *w, struct hist_totals *totals);
int vcpu_hists_empty(struct watcher *w);
/* Entries of a histogram (the kernel's default): empty it before. */
#define VCPU_HISTS_SIZE 2048
/* Name of the reason of a WATCH_EXIT; returns out. */
const char *vcpu_hists_reason(struct watcher *w, const struct watch_sum *s, char out[32]);

#endif
