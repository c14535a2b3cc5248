/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REPAIR_H
#define HYPTRACE_REPAIR_H

#include "spool/spool.h"

/*
 * On a plain-nVHE host the kernel's times of hypervisor records are off by a vCPU's
 * CNTVOFF while it is loaded (nvhe.h). The spool keeps them as the kernel gave
 * them. Once all is drained they are repaired by what the whole recording shows, and
 * hyp_cntvoff records (remote-events.h) are put in.
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

#endif
