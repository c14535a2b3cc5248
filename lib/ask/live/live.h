/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LIVE_H
#define HYPTRACE_LIVE_H

#include "base/std.h"
#include "base/log.h"

/*
 * A running recording, read from its spool again and again, each time as a small trace.dat of
 * some of its pages. A page is there once the kernel has filled it; a page of the hypervisor's
 * text, once the next page is begun.
 *
 * Times that plain nVHE makes early are not repaired here, which takes the whole recording,
 * and the hypervisor's records have no pid.
 */
struct live; /* opaque */

/*
 * output: the recording's file, whose spool is beside it, or a spool. -EAGAIN: it has not begun
 * yet; -ENOENT: there is none, or it has ended. Other errors are logged.
 */
int live_open(struct live **out, const char *output, const struct log *log);
void live_close(struct live *l);
/* True if its hypervisor's times need a repair. */
bool live_is_early(const struct live *l);

/* True if the recorder discards pages while it runs: live_look() drops them too, taken or not. */
bool live_forgets(const struct live *l);

/*
 * Reads the present state: 1, more came since the last look; 0: nothing new. *ended: nothing more will come.
 */
int live_look(struct live *l, bool *ended);
/* Pages that are there and not dropped, as a trace.dat in memory: its *path is good until the next call. */
int live_write(struct live *l, const char **path, const struct log *log);

/*
 * For reading each record once: the count of records taken from the begin of a CPU's pages, to which the
 * caller adds. Buffers are those of the file, by name. NULL: it has none of that name and CPU.
 */
uint64_t *live_taken(const struct live *l, const char *buffer, unsigned int cpu);
/* Drops the pages whose records are all taken. 0 or -errno of reading them. */
int live_drop_taken(struct live *l);

/*
 * For reading the last seconds: drops pages that end before `ns` before the newest page's
 * begin; each CPU keeps its last one. 1: some, 0: none, or -errno of reading them.
 */
int live_drop_older(struct live *l, uint64_t ns);
/*
 * ... exactly: live_write then writes only records of the `ns` before the newest one, and its time into
 * *newest, as recorded. 0 or -errno of reading the pages.
 */
int live_cut(struct live *l, uint64_t ns, uint64_t *newest);

/*
 * Calls each() with every guest whose clock is known so far: guest + offset = host +- bound, ns, by its
 * counter or its answers. Nothing, where the recorder has written nothing.
 */
void live_each_clock(const struct live *l,
		     void (*each)(void *ctx, const char *guest, int64_t offset, uint64_t bound), void *ctx);

/*
 * Adds to the file, as far as known now, what the recorder adds at the end: the guests that run here with
 * their vCPUs' threads, and the names of all tasks. Names of another boot are left out. -ENOMEM.
 */
int live_name(struct live *l, const char *root, const struct log *log);

#endif
