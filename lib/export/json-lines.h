/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXPORT_JSON_H
#define HYPTRACE_EXPORT_JSON_H

#include "read/timeline.h"

/* One JSON object a line for each record; hyptrace-export(1) has the members. */
struct export_json; /* opaque */

/* Writes to fd, which stays the caller's. NULL: out of memory. */
struct export_json *export_json_new(int fd);
void export_json_free(struct export_json *j);
/* Writes the next record; ctx is the struct export_json. -ENOMEM, -errno from the file. */
int export_json_record(void *ctx, const struct timeline_record *r);
/* What is not written yet. */
int export_json_flush(struct export_json *j);

#endif
