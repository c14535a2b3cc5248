/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PERFETTO_PRIV_H
#define HYPTRACE_PERFETTO_PRIV_H

#include "ask/states/pass.h"
#include "ask/states/states.h"
#include "base/arena.h"
#include "base/decode/perfetto-events.h"
#include "base/protobuf.h"
#include "base/workers.h"
#include "convert/export/export.h"
#include "spans/marks.h"

/*
 * Shared by perfetto.c and perfetto-*.c. What is out of memory sets `bad`, of struct
 * perfetto or of the buf or arena, which perfetto.c looks at.
 */

struct perfetto;

/* ---- events: perfetto-event.c --------------------------------------------------------- */

/* The part of the exporter that takes it, besides perfetto-ftrace.c. */
enum pf_role {
	PF_PLAIN,
	PF_PRINT,
	PF_MARK, /* hypertrace:guest_hypertrace */
	PF_KVM_EXIT,
	PF_KVM_FAULT,
	PF_OF_HYP /* the hypervisor's */
};

/* A text of slices, written by its number in its machine's packets; 0: in full. Both 0: there is none. */
struct pf_label {
	uint32_t number;
	const char *text; /* good while the record is taken */
};

/* A field in the event's format, and how it is written. */
struct pf_field {
	const struct tep_format_field *format;
	struct field_load load;
	const char *name; /* UTF-8 */
	size_t name_len;
	struct pf_label arg;	/* "EVENT.FIELD", of the hypervisor's */
	bool is_code;		/* an address in the kernel's text, shown by name */
	bool is_hex;		/* is read in hexadecimal */
	unsigned int number;	/* in Perfetto's message of the event; 0: that has none */
	enum pf_type { PF_TEXT, PF_64, PF_INT32, PF_UINT32 } to; /* there */
};

/* An event by a file's format, and its form in the trace: found once. */
struct pf_event {
	struct tep_event *event;
	const char *name; /* UTF-8 */
	enum pf_role role;
	unsigned int number; /* of its message in FtraceEvent; 0: Perfetto has no message for it */
	/* fields that the parts look for; FIELD_NONE: it has none */
	struct field_load pc, esr, address, call, text;
	const struct marks_fields *marks; /* PF_MARK's; NULL: no memory */
	struct pf_field *fields;
	size_t n_fields;
	const struct pf_field **known; /* those that the message has, by number */
	size_t n_known;
};

/* The event with the id of that input; NULL: it has no format, or bad. */
const struct pf_event *pf_event(struct perfetto *pf, size_t input, unsigned int id);

/* ---- records, and what they become: perfetto-ftrace.c ------------------------------------ */

enum pf_how {
	PF_KNOWN,   /* as Perfetto has the event, if it does */
	PF_GENERIC, /* as names and values */
	PF_LEFT_OUT /* not at all: only a loss, or it waits for what comes next */
};

struct pf_record {
	uint64_t ts;
	const uint8_t *data;
	size_t len, input;
	const struct pf_event *event; /* NULL: no format has its id */
	unsigned int id, cpu;
	uint32_t stream;
	int pid; /* -1: none */
	enum pf_how how;
	bool lost;		/* events, before it on its CPU */
	struct pf_record *next; /* perfetto-ftrace.c: of its CPU */
};

/* A CPU's records. */
struct pf_queue {
	struct pf_record *first, *last;
};

/* A run of records on its way into the trace. Zero-initialised = none. */
struct pf_chunk {
	/* records from earlier on that waited (their bytes are in `kept`); then the run's */
	struct pf_record *late, *v;
	size_t n_late, n, cap;
	struct arena kept;
	struct pf_queue *queues; /* by input and CPU */
	struct step_batch steps;
	/* begins and ends of slices, and moments: packets when the chunk is finished; their arguments */
	struct pf_slice *slices;
	size_t n_slices, slices_room;
	struct buf args;
	struct buf packets; /* of tracks and labels */
};

/* A thread's memory for a chunk that is finished. */
struct pf_writer {
	OWN_LINE struct buf packets; /* not yet compressed */
	void *zip;		     /* ISA-L's memory */
};

/* Makes it empty, with room for n records. False: no memory. */
bool pf_chunk_begin(struct pf_chunk *c, size_t n_cpus, size_t n);
/* Adds a record that waited, with a copy of its bytes. */
void pf_chunk_late(struct pf_chunk *c, const struct pf_record *r);
/* Takes NULL. */
void pf_chunk_free(void *chunk);
/* Appends the packets, compressed, to *out. -ENOMEM. */
int pf_writer_zip(struct pf_writer *w, struct buf *out);

/* ---- one export ------------------------------------------------------------------- */

/* Arguments of a slice. Zero-initialised = none. */
struct pf_args {
	struct buf bytes;
	size_t n; /* beyond 32 they are left out */
};

/* Kinds of numbers that are kept by the number of a thing of an input: uuids of tracks, and others. */
enum pf_kept_kind {
	/* Tracks that hold others; in this order on a machine. The numbers are the caller's. */
	PF_HYP,
	PF_GUEST,
	PF_STOLEN,
	PF_CROSVM,
	PF_GUEST_MARK,
	/* perfetto-state.c: tracks, by the owner's index and by a guest's CPU; 1 + the index in exits, by
	   thread */
	PF_VCPU,
	PF_GUEST_CPU,
	PF_EXIT,
	/* numbers of labels, pf_named(): of an ESR and of its class, of a call, pf_reason(), of a visit's
	   `why` as the name of its slice, and pf_state() likewise */
	PF_ESR,
	PF_CLASS,
	PF_CALL,
	PF_REASON,
	PF_WHY,
	PF_STATE,
};

/* Labels that every machine has from its first packet on, by number: categories, and names of arguments. */
enum pf_word {
	PF_WORD_HYP = 1, PF_WORD_VCPUS, PF_WORD_STOLEN, PF_WORD_CROSVM, PF_WORD_HYPERTRACE, PF_WORD_ADDR,
	PF_WORD_BOUND, PF_WORD_BY, PF_WORD_CALL, PF_WORD_CATEGORY, PF_WORD_CLASS, PF_WORD_CLIENT,
	PF_WORD_COARSE, PF_WORD_CPU, PF_WORD_END, PF_WORD_ESR, PF_WORD_ID, PF_WORD_LEFT_FOR, PF_WORD_PC,
	PF_WORD_REASON, PF_WORD_SYNDROME, PF_WORD_TASK, PF_WORD_VCPU, PF_WORD_WOKEN_BY, PF_WORDS
};

/* Texts of an input that have numbers, 1 + the index. */
struct pf_labels {
	struct pf_text *v;
	size_t n;
	struct map map;
};

/* Shared by all parts. */
struct perfetto {
	struct pf_chunk *chunk; /* the one that is filled */
	struct pf_writer *writers; /* by thread */
	uint64_t last_uuid;	/* of a track */
	struct export_job *job;
	uint32_t *machines; /* by input; 0 is the host */
	const struct mark_desc *desc;
	struct arena arena;	   /* for one record */
	struct pf_args args;	   /* pf_args() */
	struct buf name;	   /* of a state's slice, of a task */
	struct arena kept;	   /* for all of the export */
	struct pf_event ***events; /* by input and id */
	size_t n_cpus;		   /* PERFETTO_CPUS of each input */
	bool begun, bad;
	struct pf_cpu **cpus;	 /* perfetto.c: by input and CPU; NULL: the hypervisor was not seen there */
	struct pf_kept *numbers; /* pf_kept(), by numbers_map */
	size_t n_numbers;
	struct map numbers_map;
	struct pf_exit *exits; /* perfetto-state.c */
	size_t n_exits;
	struct pf_labels *labels; /* perfetto-track.c: by input */
	struct steps *meanings;
	struct states *states;
	struct gaps gaps;
	struct marks marks; /* perfetto-event.c: and by source */
	struct pf_marker *markers;
	size_t n_markers;
};

/* The end of each packet: which machine it is of. */
static inline void pf_machine(const struct perfetto *pf, struct buf *packet, size_t input)
{
	if (pf->machines[input])
		pb_number(packet, PACKET_MACHINE_ID, pf->machines[input]);
}

static inline bool pf_number(const struct field_load *f, const struct pf_record *r, uint64_t *out)
{
	*out = 0;
	return f->kind == FIELD_NUMBER && field_load_number(f, r->data, r->len, out);
}

/* ---- the kernels' events: perfetto-ftrace.c ----------------------------------------- */

/*
 * Appends the chunk's records in bundles of their machine and CPU. Events that Perfetto has are
 * written as it has them; others as names and values. By any thread.
 */
void pf_ftrace_write(const struct perfetto *pf, const struct pf_chunk *c, struct buf *packets);

/* ---- tracks: perfetto-track.c ------------------------------------------------------- */

/* Value kept by that number; 0: nothing. */
uint64_t pf_kept(const struct perfetto *pf, size_t input, uint64_t number, enum pf_kept_kind kind);
/* Keeps it where nothing is kept yet, and returns it. */
uint64_t pf_keep(struct perfetto *pf, size_t input, uint64_t number, enum pf_kept_kind kind, uint64_t value);
/* The track of that kind and number, made with this name when it is not there yet: its uuid. */
uint64_t pf_parent(struct perfetto *pf, size_t input, unsigned int number, enum pf_kept_kind kind,
		   const char *name);
/* A new track below parent (0: none), in the order of `rank`: its uuid. */
uint64_t pf_track(struct perfetto *pf, size_t input, uint64_t parent, const char *name, int rank);
/* Writes all pf_words, into a packet of that input. */
void pf_put_words(struct perfetto *pf, struct buf *packet, size_t input);
/* Uses of labels, by the numbers of InternedData. */
enum pf_label_kind { PF_LABEL_CATEGORY = 1, PF_LABEL_NAME = 2, PF_LABEL_ARG = 3, PF_LABEL_VALUE = 29 };
/* The label of that text, which is kept, and gets a number if there are not too many of them. */
struct pf_label pf_label(struct perfetto *pf, size_t input, enum pf_label_kind kind, const char *text);
/* The label of what that number is for: PF_ESR and the ones after it. Texts are made once. */
struct pf_label pf_named(struct perfetto *pf, size_t input, enum pf_kept_kind what, uint64_t number);
/* PF_REASON's number of a step's reason. */
#define PF_NO_REASON ((1ull << 56) - 1)
static inline uint64_t pf_reason(enum step_kind kind, uint64_t reason)
{
	return (uint64_t)kind << 56 | (reason < PF_NO_REASON ? reason : PF_NO_REASON);
}
/* PF_STATE's of a span: from the highest bits on the state, why, the class, the reason. */
#define PF_STATE_REASONS ((1ull << 47) - 1)
static inline uint64_t pf_state(const struct state_span *s)
{
	return (uint64_t)s->state << 60 | (uint64_t)s->why << 54 | (s->class < 64 ? s->class : 64) << 47 |
	       (s->reason < PF_STATE_REASONS ? s->reason : PF_STATE_REASONS);
}
#define PF_WORD(word) ((struct pf_label){ .number = PF_WORD_##word })
/* A text that comes once, or has no end of values. */
#define PF_FULL(s) ((struct pf_label){ .text = (s) })

/*
 * Begin of a slice, or a moment, by the numbers of TrackEvent.Type, which uses args up; end of a slice. They
 * wait in the chunk; pf_slices_write() appends those, by any thread.
 */
enum pf_point { PF_BEGIN = 1, PF_END = 2, PF_MOMENT = 3 };
void pf_put(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, enum pf_point type,
	    enum pf_word category, struct pf_label name, struct pf_args *args);
void pf_put_end(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts);
void pf_slices_write(const struct perfetto *pf, const struct pf_chunk *c, struct buf *packets);

/* Arguments for one slice, empty: pf's until the next call. */
static inline struct pf_args *pf_args(struct perfetto *pf)
{
	pf->args.n = pf->args.bytes.len = 0;
	return &pf->args;
}
/* Append an argument. */
enum pf_arg_kind { PF_ARG_UINT = 3, PF_ARG_INT = 4, PF_ARG_HEX = 7 }; /* fields of DebugAnnotation */
void pf_arg_number(struct pf_args *a, struct pf_label name, enum pf_arg_kind kind, uint64_t v);
void pf_arg_text(struct pf_args *a, struct pf_label name, const char *text, size_t len);
/* None where there is no label. */
void pf_arg_label(struct pf_args *a, struct pf_label name, struct pf_label text);
/* All of the event's fields, each called "EVENT.FIELD". */
void pf_arg_fields(struct pf_args *a, const struct pf_record *r);

/* ---- slices of them ------------------------------------------------------------ */

/* States of vCPUs and guests' tasks: perfetto-state.c. A state_listener. */
int pf_state_span(void *perfetto, const struct state_span *span);
/* Keeps the fields of kvm_exit and kvm_guest_fault. */
void pf_exit_record(struct perfetto *pf, const struct pf_record *r);

/* Marks of programs in trace_marker, of crosvm and hypertrace: perfetto-event.c. Only these two roles. */
void pf_marker_record(struct perfetto *pf, const struct pf_record *r);
/* Events are missing before that record, or after it. */
void pf_marker_lost(struct perfetto *pf, const struct merge_record *m);

#endif
