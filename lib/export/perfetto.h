/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PERFETTO_H
#define HYPTRACE_PERFETTO_H

#include "read/timeline.h"
#include "decode/hypertrace.h"

/*
 * A trace in Perfetto's format: the kernels' events by machine and CPU, the
 * hypervisor's time in slices that Perfetto's pkvm_hypervisor_events finds, and
 * tracks of our own for the hypervisor, vCPUs, crosvm and hypertrace. Written
 * as the records come, in memory that depends on CPUs and threads alone.
 */
struct perfetto; /* opaque */

/* There with HYPTRACE_PERFETTO only, when libprotobuf-c was there at build time. */

/*
 * Writes to fd; fd, in and desc (NULL: none) stay the caller's and must outlive
 * it. -ERANGE: a CPU number that Perfetto refuses (the log says which); -ENOMEM.
 */
int perfetto_new(struct perfetto **out, int fd, const struct inputs *in, const struct hypertrace_desc *desc,
		 const struct log *log);
void perfetto_free(struct perfetto *p);
/* Takes the next record; ctx is the struct perfetto. -ENOMEM, -errno from the file. */
int perfetto_record(void *ctx, const struct timeline_record *r);
/* Writes what is held back; no records after it. */
int perfetto_finish(struct perfetto *p);

#endif
