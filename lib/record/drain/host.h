/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HOST_H
#define HYPTRACE_HOST_H

#include "record/drain/source.h"

/*
 * A host buffer (the top one or an instance) as a source: how it is started,
 * stopped, drained and counted. Setting it up is instance.h's business, so that
 * `recover` can drain one whose setting up died with its recorder.
 */
struct host;

/*
 * path: relative to the tracing directory, "." for the top buffer. The strings must
 * live as long as the host, which is freed with host_free(). 0 or -errno.
 */
int host_open(struct host **out, int tracing_dirfd, const char *name, const char *path, const char *clock,
	      const struct log *log);
void host_free(struct host *h); /* takes NULL */
/* The host's; lives as long. */
struct source *host_source(struct host *h);
/* source_ops.stat of sources that the kernel does not count: by what was drained. */
int source_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out);

#endif
