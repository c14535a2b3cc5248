/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_JOIN_H
#define HYPTRACE_JOIN_H

#include "spool/spool.h"

/*
 * Once all is drained: in a spool's buffer "hypertrace" the doorbells (kvm_mmio) become the events of the
 * guests' programs (mark.h) at the same times, all or none (spool_rewrite_*). Those whose event is not there
 * are marked as lost; writes to other devices are left out. What was lost is logged. Without effect on a
 * spool that has no rings, or is joined. 0 or -errno: the pages are as they were, and it can be tried again.
 */
int hypertrace_join(struct spool *spool, const struct log *log);

#endif
