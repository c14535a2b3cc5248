/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WATCHER_H
#define HYPTRACE_WATCHER_H

#include "base/buf.h"
#include "base/strings.h"
#include "record/watch/vcpu-hists.h"

/* Follows the VMs of this machine, and what the kernel counts of their vCPUs. */

struct watcher_opts {
	struct vcpu_hists_opts hists;
	size_t top;	     /* names with series of their own, of each vCPU */
	uint64_t max_series; /* of metrics */
};

struct watcher {
	const struct watcher_opts *o;
	struct vcpu_hists *hists;
	struct watch_sums sums;
	struct strlist vms; /* names */
	struct watch_vcpu *vcpus;
	size_t n_vcpus;
	uint64_t dropped;  /* events without room */
	uint64_t emptied;  /* ... in histograms before they were emptied */
	uint64_t left_out; /* series of the last metrics */
	bool part;	   /* something cannot be watched here */
};

/* 0 or -errno, logged: nothing is left then. Found VMs are watched from here on. */
int watcher_open(struct watcher **out, const struct watcher_opts *o);
/* Reads the histograms, then looks for VMs that came and went. 0 or -errno, logged. */
int watcher_look(struct watcher *w);
/* Puts back what was changed. 0 or -errno, logged. NULL: 0. */
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

#endif
