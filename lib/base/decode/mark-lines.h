/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DECODE_MARKS_H
#define HYPTRACE_DECODE_MARKS_H

#include "base/buf.h"

/*
 * hypertrace: events that a guest's code raises through QEMU (or by our own
 * library), each a few 64-bit numbers, arg1 the number of the event. And the
 * user's description of them, which gives the numbers names and types.
 */

#define MARK_ARGS_MAX 32
#define MARK_SYSTEM   "hypertrace"
#define MARK_EVENT    "guest_hypertrace"

struct mark_event {
	bool has_cpu, has_client;
	uint64_t cpu, client;
	uint64_t arg[MARK_ARGS_MAX]; /* arg1 is [0] */
	size_t n_args;
};

/*
 * "guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe", with or
 * without the "TID@SEC.USEC:" of QEMU's log. False: some other text.
 */
bool mark_event_parse(const char *line, size_t len, struct mark_event *out);

/* The source of a mark: a number for each client of each guest, above those of threads. */
uint64_t mark_client_source(uint64_t client, const char *guest, size_t len);

/*
 * The description, one event a line; '#' starts a comment:
 *
 *   NUMBER NAME [ARG:TYPE]...
 *   1  frame_start  width:u32 height:u32 buffer:hex
 *   2  state        what:enum(0=idle,1=busy)
 *
 * The arguments are arg2, arg3, ... TYPE: u8 u16 u32 u64 s8 s16 s32 s64 (the low
 * bits), hex, bool, char, f64, enum(NUMBER=WORD,...).
 */
struct mark_desc; /* opaque */

/* -EBADMSG with *line the number of the line that makes no sense; -ENOMEM. */
int mark_desc_parse(const void *data, size_t len, struct mark_desc **out, unsigned int *line);
void mark_desc_free(struct mark_desc *d);

/*
 * Appends "guest_hypertrace frame_start(width=640, height=480)" when d describes the event, else
 * "guest_hypertrace arg1=1 arg2=0xcafe"; what a description does not name follows as argN=. d may be NULL.
 */
void mark_event_text(const struct mark_desc *d, const struct mark_event *e, struct buf *out);

/* The event's name in the description (which owns it); NULL: it is not described, or d is NULL. */
const char *mark_event_name(const struct mark_desc *d, const struct mark_event *e);
/*
 * Length of X in such a name "X_start", which begins a span (*way 1), or "X_end", which ends it (-1), also
 * _begin, _enter, _stop and _exit. Of another name the whole (0).
 */
size_t mark_span_name(const char *name, int *way);
/*
 * Appends the value of e->arg[i], 1 <= i < n_args, as mark_event_text has it.
 * Returns the argument's name in the description (which owns it) or NULL.
 */
const char *mark_event_arg(const struct mark_desc *d, const struct mark_event *e, size_t i, struct buf *out);

/* ---- crosvm-lines.c ------------------------------------------------------------------------------- */

/*
 * The lines that crosvm's trace_marker backend writes (cros_tracing):
 *
 *   503 VirtioFs Enter: release - (self.tag: "mtdroot")(inode: 42)
 *   503 VirtioFs Exit: release
 *
 * Older ones leave the category out of Exit. The id is unique in its process: a pair is (tgid, id).
 */

struct crosvm_part {
	const char *p; /* in the line; NULL: absent */
	size_t len;
};

struct crosvm_line {
	uint64_t id;
	bool enter; /* else exit */
	struct crosvm_part category, name;
	struct crosvm_part args; /* all of them, with their parentheses; for crosvm_arg */
};

/* False: some other text. The line needs no NUL. */
bool crosvm_line_parse(const char *line, size_t len, struct crosvm_line *out);
/*
 * Takes the next "(expression: value)" off args, which must be those of a parsed
 * line or what is left of them. The value may hold parentheses and quotes.
 */
bool crosvm_arg(struct crosvm_part *args, struct crosvm_part *expr, struct crosvm_part *value);

#endif
