/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RINGS_H
#define HYPTRACE_RINGS_H

#include "guest/guest.h"
#include "spool/spool.h"
#include "tracefs/undo.h"

/*
 * The guests' rings while a recording runs (record --hypertrace): a thread copies what is new into the spool,
 * and has the kernel filter kvm_mmio of the buffer "hypertrace" by the doorbells' addresses. What the spool
 * has of them afterwards:
 *
 *   texts/hypertrace        lines "guest<TAB>NAME", behind each "vcpu<TAB>CPU<TAB>TID" of its vCPUs
 *   texts/hypertrace.rings  struct ring_block, each with its events behind it
 *   hypertrace_from, _to    keys: tracing was on between them (boot clock, ns)
 */
struct rings;

#define RINGS_BUFFER "hypertrace"
#define RINGS_GUESTS "hypertrace"
#define RINGS_EVENTS "hypertrace.rings"

struct rings_opts {
	const struct strlist *named; /* "GUEST=FILE" */
	const char *root;	     /* as in struct guest_opts */
	struct spool *spool;
	struct undo *undo; /* the caller's, who puts the filter back by it */
	const struct log *log;
};

/* Finds the guests that run here and opens their memory. -ENOENT: none has any; errors are logged. */
int rings_open(struct rings **out, const struct rings_opts *o);
/*
 * Before tracing is on; what is there by now was before. failed is called once, from the thread: it ended. 0
 * or -errno.
 */
int rings_start(struct rings *r, void (*failed)(void *ctx, int error), void *ctx);
/* Says when tracing was on; off: before it is switched off. r may be NULL, here and below. */
void rings_tracing(struct rings *r, bool on);
/* After tracing is off: takes the rest, says what made no sense. The first error of the thread's. */
int rings_stop(struct rings *r);
void rings_close(struct rings *r);

#endif
