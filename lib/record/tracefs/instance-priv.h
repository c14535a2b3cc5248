/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_INSTANCE_PRIV_H
#define HYPTRACE_INSTANCE_PRIV_H

#include "record/tracefs/instance.h"

/* Shared by the files of instance. */

/* True if the kernel has this file; path: relative to the tracing directory. */
bool instance_has(const struct instance *i, const char *path);

/*
 * Logs that value could not be written to path, why (ret: -errno), and what the kernel's error log
 * has about it. choices: a file that lists what could be, or NULL.
 */
void instance_complain(const struct instance *i, enum log_level level, const char *path, const char *value,
		       int ret, const char *choices);
/* " (be root)" and the like, for a message about -errno; else "". */
const char *instance_hint(int ret);
/* undo_write to a path relative to the tracing directory, with the complaint. */
int instance_put(struct instance *i, const char *path, const char *value, const char *choices);
int instance_put_number(struct instance *i, const char *path, uint64_t n);

/* The same for one of its own files. */
int instance_put_file(struct instance *i, const char *file, const char *value);
/* undo_list likewise; clearing a list that this kernel does not have is no error. */
int instance_put_list(struct instance *i, const char *file, const char *lines);
/* A whole file of its own, at most max bytes. */
int instance_read(const struct instance *i, const char *file, size_t max, struct buf *out);

#define INSTANCE_EVENT 64 /* bytes: an event of INSTANCE_OWN_EVENTS */

/* The event that ends regions, "system/event", in name where it is the second one, and its filter or NULL;
 * NULL: none does. */
const char *instance_region_stop(const struct record_plan *plan, char name[INSTANCE_EVENT],
				 const char **filter);

#endif
