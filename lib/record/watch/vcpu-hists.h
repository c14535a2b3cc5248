/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VCPU_HISTS_H
#define HYPTRACE_VCPU_HISTS_H

#include "base/log.h"
#include "record/watch/watch-sums.h"

/*
 * Synthetic events and histograms of vCPUs' threads, in the instance hyptrace-watch: the kernel counts, and
 * nothing is recorded. All is in a journal first (record/tracefs/undo.h).
 */
struct vcpu_hists;

struct vcpu_hists_opts {
	const char *tracing_dir;
	const char *journal; /* NULL: in memory */
	const char *root;    /* prefix of /sys, "" */
	bool no_exits;	     /* do without them: they cost guests most */
	const struct log *log;
};

/* Puts back what a killed watcher has left in the journal; 0 too without one. -EBUSY: another one runs. */
int vcpu_hists_restore(const struct vcpu_hists_opts *o);
/* After that: makes events and histograms. *part: something cannot be watched here, which was logged. 0 or
 * -errno, logged: nothing can be, and nothing is left. The options' strings must outlive it. */
int vcpu_hists_open(struct vcpu_hists **out, const struct vcpu_hists_opts *o, bool *part);
/* Watches these vCPUs and no others. 0 or -errno, logged. */
int vcpu_hists_follow(struct vcpu_hists *h, const struct watch_vcpu *v, size_t n);
/* Adds all histograms to the sums; totals are those of all. 0 or -errno, logged. */
int vcpu_hists_read(struct vcpu_hists *h, struct watch_sums *sums, struct hist_totals *totals);
/* Empties them. */
int vcpu_hists_empty(struct vcpu_hists *h);
/* Name of the reason of a WATCH_EXIT; returns out. */
const char *vcpu_hists_reason(struct vcpu_hists *h, const struct watch_sum *s, char out[32]);
/* Puts all back. 0 or -EIO, logged: the journal has the rest. */
int vcpu_hists_close(struct vcpu_hists *h);

/* Entries of a histogram (the kernel's default): empty it before. */
#define VCPU_HISTS_SIZE 2048

#endif
