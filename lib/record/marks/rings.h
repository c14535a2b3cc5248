/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RINGS_H
#define HYPTRACE_RINGS_H

#include "base/decode/mark-lines.h"
#include "record/guest/guest.h"
#include "record/marks/ring.h"
#include "record/spool/spool.h"
#include "record/tracefs/undo.h"

/*
 * The guests' rings while a recording runs (record --hypertrace): a thread copies new events into
 * the spool, and has the kernel filter kvm_mmio of the buffer "hypertrace" by the doorbells'
 * addresses. The spool's content afterwards:
 *
 *   texts/hypertrace        lines "guest<TAB>NAME", after each "vcpu<TAB>CPU<TAB>TID" of its vCPUs
 *   texts/hypertrace.rings  struct ring_block, each followed by its events
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
/* Notes when tracing was on; off: before it is switched off. r may be NULL, here and below. */
void rings_tracing(struct rings *r, bool on);
/* After tracing is off: takes the rest, logs faults. Returns the thread's first error. */
int rings_stop(struct rings *r);
void rings_close(struct rings *r);

/*
 * Once all is drained: in a spool's buffer "hypertrace" the doorbells (kvm_mmio) become the events of the
 * guests' programs (below) at the same times, all or none (spool_rewrite_*). Those whose event is not there
 * are marked as lost; writes to other devices are left out. What was lost is logged. Without effect on a
 * spool that has no rings, or is joined. 0 or -errno: the pages are as they were, and it can be tried again.
 */
int marks_join(struct spool *spool, const struct log *log);

/*
 * hypertrace:guest_hypertrace, an event of a guest's program at the host's time of its doorbell: with the
 * common header and a print format that libtraceevent parses, so that stock tools read it.
 */
#define MARK_GUEST_MAX	200 /* bytes of a name that count */
#define MARK_RECORD_MAX 320 /* bytes */
/* Appends its format to those of the spool, and puts its id into the key hypertrace_id. 0 or -errno. */
int mark_keep_format(struct spool *spool, unsigned int id);
/*
 * Makes a record in out, of MARK_RECORD_MAX bytes, with the header of the doorbell's (8 bytes). vcpu: -1: not
 * known. Returns its length.
 */
size_t mark_put(uint8_t *out, unsigned int id, const uint8_t *head, const char *guest, int vcpu,
		uint32_t client, const struct ring_event *ev);

#endif
