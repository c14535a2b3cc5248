/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_LIST_PRIV_H
#define HYPTRACE_LIST_PRIV_H

#include <stdio.h>

#include "cmd.h"
#include "util/json.h"

/* What `hyptrace list` shows, each as a table on out, or into json (then out is NULL). */
struct list {
	FILE *out;
	struct json *json;
	const char *root; /* prefix of /proc and the like, "" */
	int tracing;	  /* the tracing directory, or -1 */
	uint32_t probe;	  /* port on which to look for an agent; 0: do not */
	const struct log *log;
};

/* The tracing directory (HYPTRACE_TRACING_DIR, or where tracefs is); -1 with a message when it cannot be
 * opened. */
int list_open_tracing(const struct log *log);
/* The host's buffers and the hypervisor's, to l->out. 0 or -errno, which is logged. */
int list_all_buffers(struct list *l);
/* glob: NULL counts them only. Matches "event", "system" or "system:event". */
int list_events(struct list *l, const char *glob);
int list_guests(struct list *l);
/* The names of the events of the hypervisor's instance, path (remote_find()). */
int list_hyp_events(int tracing, const char *path, struct strlist *out);

#endif
