/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MARK_FIELDS_H
#define HYPTRACE_MARK_FIELDS_H

#include "decode/hypertrace.h"
#include "util/field.h"

/*
 * A guest's mark as an event of its own, hypertrace:guest_hypertrace: fields client, arg1, arg2, ... and the
 * guest's name. Its common_pid is a vCPU's thread, which a guest's program changes: who marks is the client.
 */
#define MARKS_SYSTEM "hypertrace"

struct marks_fields {
	struct field_load client, guest, arg[HYPERTRACE_ARGS_MAX];
	size_t n_args;
};

/* e: an event guest_hypertrace. */
struct marks_fields marks_fields(struct tep_event *e);
/*
 * False: the record is too short, or the event has no arguments. *guest: in the record, *guest_len bytes,
 * 0: it is not told.
 */
bool marks_load(const struct marks_fields *f, const void *record, size_t len, struct hypertrace_event *out,
		const char **guest, size_t *guest_len);

#endif
