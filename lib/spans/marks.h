/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPANS_MARKS_H
#define HYPTRACE_SPANS_MARKS_H

#include "base/decode/mark-lines.h"
#include "base/field.h"
#include "base/map.h"
#include "spans/spans.h"

/*
 * Spans that programs mark. crosvm's last from Enter to Exit of the same id, which is unique in its process
 * (cros_tracing): an Exit belongs to its own thread's Enter, else to another thread's of the same id and
 * name. hypertrace's have names only, and last from the begin to the end of a name in a thread or a guest's
 * client: a loss in the buffer ends what is open, for its end may be lost. Of a source that marks in several
 * buffers the first one counts: they all have the same lines.
 */
#define MARKS_OPEN    16   /* spans that a source has open at a time */
#define MARKS_SOURCES 4096 /* events of more are left out */
#define MARK_NO_ID    UINT64_MAX

/* A begin or an end. */
struct mark {
	uint64_t ts, row;
	uint64_t source; /* a thread, or mark_client_source() */
	uint64_t name;	 /* the same number for the same name */
	uint64_t id;	 /* crosvm's; MARK_NO_ID: hypertrace's */
	uint64_t tag;	 /* the caller's, who may change that of an open one */
	uint32_t machine, buffer, cpu;
	int32_t pid;
	bool begins;
};

struct mark_source {
	uint64_t source;
	uint32_t machine, buffer;
	uint32_t is_open; /* a bit for each lane */
	struct mark open[MARKS_OPEN];
};

/* Zero-initialised = before the first mark. */
struct marks {
	struct mark_source *v;
	size_t n;
	struct map by_source;
};

#define MARKS_NO_SOURCE SIZE_MAX

/* Place of a mark: the index of its source, and its lane there. */
struct mark_place {
	size_t source;
	unsigned int lane;
};

/*
 * 1: *done is over by that mark: its `why` is the name, its `detail` the begin's tag. 0: none is. -ENOMEM.
 * *at: of the begin; an end without one has the source's first free lane. MARKS_NO_SOURCE: it is left out.
 */
int marks_take(struct marks *m, const struct mark *p, struct mark_place *at, struct span *done);
/* That buffer lost events: true: *done has no end, and is the next one like that. *at: at first zero. */
bool marks_lost(struct marks *m, uint32_t buffer, struct mark_place *at, struct span *done);
/* No more marks: likewise. */
bool marks_finish(struct marks *m, struct mark_place *at, struct span *done);
void marks_release(struct marks *m);

/* A hash of a name, as its number. */
uint64_t mark_name(const char *name, size_t len);

enum mark_kind { MARK_NONE, MARK_CROSVM, MARK_GUEST };

struct mark_text {
	struct crosvm_line crosvm;
	struct mark_event event;
};

/* Reads a line of trace_marker, up to its NUL or line feed. */
enum mark_kind mark_line(const char *text, size_t len, struct mark_text *out);

/*
 * A guest's mark as an event of its own, hypertrace:guest_hypertrace: fields client, arg1, arg2, ... and the
 * guest's name. Its common_pid is a vCPU's thread, which a guest's program changes: its source is the client.
 */
struct marks_fields {
	struct field_load client, guest, arg[MARK_ARGS_MAX];
	size_t n_args;
};

/* e: an event guest_hypertrace. */
struct marks_fields marks_fields(struct tep_event *e);
/*
 * False: the record is too short, or the event has no arguments. *guest: in the record, *guest_len bytes;
 * 0: the record does not name it.
 */
bool marks_load(const struct marks_fields *f, const void *record, size_t len, struct mark_event *out,
		const char **guest, size_t *guest_len);

#endif
