/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPEVENTS_H
#define HYPTRACE_HYPEVENTS_H

#include <sys/types.h>

#include "base/strings.h"
#include "file/dat/format.h"

/*
 * The hypervisor's events, as in its own format files, and as we write them: with the host's common
 * header in front, ids above the host's, and a print format that libtraceevent can parse. Stock
 * tools then need no plugin.
 *
 * A record as written: u16 type, u8 flags, u8 preempt_count, s32 pid, then the hypervisor's own
 * packed fields as they were (their offset - 2 + 8).
 */

#define HYP_HEADER_SIZE 8
#define HYP_PID_OFFSET	4

struct hypevent {
	unsigned int id;	 /* in the file; valid after hypevents_number */
	struct event_format fmt; /* as the kernel gave it, with the id in the hypervisor's own space */
	size_t body_len;	 /* bytes after the header that a record of this event must have */
	int vcpu_offset;	 /* in the written record, of `pid_t vcpu`; -1: no such field */
	/* private: the print format taken apart, NULL when it is not understood */
	struct hyptext_pattern *pattern;
	bool from_text; /* its fields follow from its text */
	bool as_text;	/* it does not, and text is what comes: the record is one string */
};

struct hypevents {
	char *system; /* "hypervisor" or "hyp": the events directory's name */
	/*
	 * Records come raw (hypraw_record), not as text (hyptext): set it after hypevents_init and before the
	 * first hypevents_add. It decides what the written records and formats look like: no event is kept as
	 * text, fields that no text shows are there, reasons stay the kernel's own numbers.
	 */
	bool raw;
	struct hypevent *v; /* sorted by fmt.id */
	size_t n;
	/* reasons that are not in the canonical table, numbered from HYP_REASON_EXTRA */
	struct strlist extra_reasons;
	unsigned int unknown_id; /* id of the synthetic event for records of unknown ids */
};

/*
 * Canonical numbers of hyp_enter/hyp_exit reasons in our files, in this order
 * from 0: the strings of mainline 7.1 (arch/arm64/include/asm/kvm_hypevents.h).
 * The kernel's own numbers differ between versions, so only the text is believed.
 */
#define HYP_REASON_EXTRA 128 /* further strings get numbers from here */
extern const char *const hyp_reasons[];
extern const size_t hyp_reasons_n;
/*
 * Number of a reason's text, adding it when unknown. -EINVAL: not one word of
 * letters, digits and _, at most 63 of them; -ENOSPC beyond 255; -ENOMEM.
 */
int hypevents_reason(struct hypevents *e, const char *s, size_t len);

/* system: copied; see the struct. -ENOMEM. Release it in any case. */
int hypevents_init(struct hypevents *e, const char *system);
void hypevents_release(struct hypevents *e);
/*
 * Adds an event from the text of its `format` file. -EBADMSG, -EEXIST (same id
 * or name), -ENOMEM. Pointers to events are good until the next one is added.
 */
int hypevents_add(struct hypevents *e, const char *format_text, size_t len);
/*
 * Gives every event (and the synthetic one) its id in the file, from first_id
 * on. -ERANGE when that goes beyond 32767 (KernelShark keeps ids in an int16).
 */
int hypevents_number(struct hypevents *e, unsigned int first_id);
const struct hypevent *hypevents_by_hyp_id(const struct hypevents *e, unsigned int hyp_id);
const struct hypevent *hypevents_by_name(const struct hypevents *e, const char *name, size_t len);
/*
 * Appends the rewritten format text of event i (0 <= i < n), as a format file would hold it; i == n gives the
 * synthetic `hyp_unknown` event. Call it after the recording: reasons seen meanwhile are in the text.
 * Unparsable print formats are made parseable: __hyp_enter_exit_reason_str() becomes __print_symbolic(); an
 * event whose text could only be kept as text gets one string field `text`; a raw one gets a plain list of
 * its fields.
 *
 * hyp_unknown is {int id; __data_loc char[] text; __data_loc u8[] data}: the
 * hypervisor's id (-1: not known), the line of text, the raw body.
 */
void hypevents_format(const struct hypevents *e, size_t i, struct buf *out);
/* Appends a format's beginning, up to the common fields, as the kernel prints it for its own events. */
void hypevents_format_head(const char *name, unsigned int id, struct buf *out);

/* ---- transcoding ------------------------------------------------------------ */

/* Of a written record: pid of the vCPU's thread that it names (0: none), text of its reason (NULL). */
int hyp_record_vcpu(const struct hypevents *e, const uint8_t *data, size_t len);
const char *hyp_record_reason(const struct hypevents *e, const uint8_t *data, size_t len);

/* Room that a written record needs beyond the hypervisor's own one. */
#define HYP_RECORD_EXTRA 32

/* A record in the written form; common_pid holds the vCPU pid when there is one, else 0. */
struct hyprecord {
	uint64_t ts;	     /* ns, as the kernel gave it */
	unsigned int cpu;    /* of the text line; not used for raw pages */
	const uint8_t *data; /* owned by the decoder until its next call */
	size_t len;
	uint64_t lost; /* events lost before this record (text: from LOST lines) */
};

/*
 * Mainline's trace_pipe text, fed in chunks of any length. In raw mode a text without an event's fields, such
 * as a reason's number, becomes a hyp_unknown record. Line: "[%03d]\t%5llu.%06lu: name args"; losses: "CPU:%d
 * [LOST %lu EVENTS]"; unknown ids: "UNKNOWN id=%d" (kernel/trace/trace_remote.c).
 */
struct hyptext;
struct hyptext *hyptext_new(struct hypevents *e); /* e must outlive it; NULL: out of memory */
void hyptext_free(struct hyptext *t);
/*
 * Takes all bytes; calls rec for each record; stops at and returns what rec returns if < 0 (the rest of data
 * is dropped then). -ENOMEM. New reasons are added to the events: with several readers, feed under a lock.
 */
int hyptext_feed(struct hyptext *t, const void *data, size_t len,
		 int (*rec)(void *ctx, const struct hyprecord *r), void *ctx);
/*
 * Lines that were not understood so far. Each is also kept as a hyp_unknown
 * record when it has a CPU and a time, the text cut where a record must end.
 */
uint64_t hyptext_bad_lines(const struct hyptext *t);
/* Lost events of a CPU reported after its last record, not yet carried by one. */
uint64_t hyptext_pending_lost(const struct hyptext *t, unsigned int cpu);

/*
 * Android's raw records: u16 id, packed fields. Turns one record of a page (data, len: as page_next gives
 * them) into the written form in out (at least len + HYP_RECORD_EXTRA bytes, else -EMSGSIZE). Returns the
 * length. Ids without a format become hyp_unknown records. -EBADMSG: shorter than its format.
 */
ssize_t hypraw_record(const struct hypevents *e, const void *data, size_t len, uint8_t *out, size_t size);

#endif
