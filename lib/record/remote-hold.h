/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_HOLD_H
#define HYPTRACE_REMOTE_HOLD_H

#include "hyp/events.h"
#include "hyp/nvhe.h"

/*
 * The repair of one CPU's times with a view of what comes: a vCPU's CNTVOFF is known
 * when it is put, and its records came before. They are held till the end of what was
 * read, and longer while the last vCPU's CNTVOFF is open, to a limit of bytes and time.
 */
struct hold;

/* A record whose time is repaired, in order. Data is owned by the hold. */
typedef int (*hold_fn)(void *ctx, const struct hyprecord *rec);

/* step and fn get ctx. NULL: out of memory. */
struct hold *hold_new(unsigned int cpu, void (*step)(void *ctx, const struct nvhe_step *s), hold_fn fn,
		      void *ctx);
void hold_free(struct hold *h);
/* As nvhe.h has them. */
void hold_bounds(struct hold *h, uint64_t from, uint64_t to);
void hold_known(struct hold *h, int vcpu_pid, int64_t low, int64_t high);
/* Takes a copy. reason: of a text that lives as long as h; NULL: none. 0 or -ENOMEM. */
int hold_add(struct hold *h, const struct hyprecord *rec, const char *reason, int vcpu);
/* A CNTVOFF is still open: another put would help. */
bool hold_unsure(const struct hold *h);
/*
 * What was read ends here: hands on all that is held, unless it pays to wait for more.
 * end: there is no more. Returns what fn did when that was not 0.
 */
int hold_release(struct hold *h, bool end);

#endif
