/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_INSTANCE_PRIV_H
#define HYPTRACE_INSTANCE_PRIV_H

#include "tracefs/instance.h"

/* What the parts of instance share. */

struct instance {
	struct undo *undo;
	const struct buffer_plan *buffer;
	const struct record_plan *plan;
	const char *want_clock;
	const struct log *log;
	char *path;  /* "." or "instances/x" */
	char *clock; /* in use; NULL before setup */
};

/* The path of one of its files, relative to the tracing directory; NULL: out of memory. */
char *instance_file(const struct instance *i, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool instance_has(const struct instance *i, const char *path);

/*
 * Says that value could not be written to path, why (ret: -errno), and what the
 * kernel's error log has about it. choices: a file that lists what could be, or NULL.
 */
void instance_complain(const struct instance *i, enum log_level level, const char *path, const char *value,
		       int ret, const char *choices);
/* undo_write to a path relative to the tracing directory, with the complaint. */
int instance_put(struct instance *i, const char *path, const char *value, const char *choices);

/* The same for one of its own files. */
int instance_put_file(struct instance *i, const char *file, const char *value);
/* undo_list likewise; clearing a list that this kernel does not have is no error. */
int instance_put_list(struct instance *i, const char *file, const char *lines);

/* Steps of instance_setup. */
int instance_setup_functions(struct instance *i); /* instance-func.c */
int instance_setup_events(struct instance *i);	  /* instance-events.c */

#endif
