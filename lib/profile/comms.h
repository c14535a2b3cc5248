/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COMMS_H
#define HYPTRACE_COMMS_H

#include "util/base.h"

/*
 * What tasks are called while they are sampled, and whose maps are known: by what the kernel tells of them
 * as it happens, else by /proc. From any thread.
 */
struct profile_tasks;

struct profile_tasks *profile_tasks_new(void);	  /* NULL: out of memory */
void profile_tasks_free(struct profile_tasks *t); /* takes NULL */
/* It is called that from now on; exec: and is another program, whose maps the kernel tells. 0 or -ENOMEM. */
int profile_tasks_named(struct profile_tasks *t, int32_t tid, const char comm[16], bool exec);
/* A task began as another one was. */
int profile_tasks_forked(struct profile_tasks *t, int32_t tid, int32_t parent);
/* Its name; "" when it is gone and nobody knows. */
int profile_tasks_name(struct profile_tasks *t, int32_t tid, char comm[16]);
/* Whether a process's maps are still to be read from /proc: true once. */
bool profile_tasks_maps_due(struct profile_tasks *t, int32_t tgid);

/* "TID NAME" lines of all that are known. */
void profile_tasks_list(struct profile_tasks *t, struct buf *out);

/* The build id of an ELF file's notes (64 bit), at most 20 bytes; returns their number, 0: it has none. */
size_t build_id_read(int fd, uint8_t id[20]);

#endif
