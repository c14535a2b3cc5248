/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REPAIR_H
#define HYPTRACE_REPAIR_H

#include "record/spool/spool.h"

/*
 * On a plain-nVHE host the kernel's times of hypervisor records are off by a vCPU's CNTVOFF while it is
 * loaded (nvhe.h). The spool keeps them as the kernel gave them. Once all is drained they are repaired by
 * what the whole recording shows, and hyp_cntvoff records (spool-to-dat.h) are put in.
 *
 * Bounds of the recording, boot clock ns, are keys of the session file where they
 * are known: hyp_from (tracing was about to be switched on) and hyp_to (it was off).
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
