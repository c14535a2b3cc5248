/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYP_WINDOWS_H
#define HYPTRACE_HYP_WINDOWS_H

#include "base/log.h"
#include "base/std.h"

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

#endif
