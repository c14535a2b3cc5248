/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_H
#define HYPTRACE_LATENCY_H

#include "ask/states/histogram.h"
#include "ask/states/pass.h"
#include "ask/latency/chain.h"
#include "read/filter.h"

/*
 * Selects records by a word of a command line:
 *
 *	[SYSTEM:]EVENT[@MACHINE][/FILTER]
 *
 * The first '/' begins the filter, whose form is that of report -F after the colon. MACHINE is "host",
 * "guest" (any) or a guest's name; without it records of all machines count.
 */
struct event_words {
	char *text;			     /* that of all of these */
	const char *system, *name, *machine; /* NULL: any; name is never NULL */
	const char *filter;		     /* NULL: none */
};

/* -EINVAL: why has a line; -ENOMEM. *e must be released in any case. */
int event_words_parse(struct event_words *e, const char *text, char *why, size_t size);
void event_words_release(struct event_words *e);
bool event_words_machine(const struct event_words *e, const struct input *in);

/* The same in one file. */
struct event_match {
	size_t n;
	struct event_id {
		unsigned int id;
		struct tep_event *event;
		struct filter *filter; /* NULL: none */
		bool hyp;	       /* of the hypervisor's own events */
	} * v;
};

/*
 * n 0: the file has no such event. -EINVAL: the filter does not fit the event, why has a line; -ENOMEM.
 * The input outlives it. *m must be released in any case.
 */
int event_match_open(struct event_match *m, const struct event_words *e, const struct input *in, char *why,
		     size_t size);
void event_match_release(struct event_match *m);

/* Guests' vCPUs by host threads, over all files: guests have numbers from 0 on. */
struct vcpu_map; /* opaque */

#define VCPU_MAP_NOBODY UINT32_MAX

/* in: loaded, and outlives it. *out is to be closed in any case. -ENOMEM. */
int vcpu_map_open(struct vcpu_map **out, const struct inputs *in);
void vcpu_map_close(struct vcpu_map *w);
/* The guest whose file that is; VCPU_MAP_NOBODY: it is a host's. */
uint32_t vcpu_map_of_input(const struct vcpu_map *w, size_t input);
/* The guest whose vCPU a host's thread is, and which; VCPU_MAP_NOBODY: none's. */
uint32_t vcpu_map_vcpu(const struct vcpu_map *w, size_t input, int64_t tid, uint32_t *vcpu);

/* Part of a record that is its key. */
enum latency_by {
	BY_NOTHING,
	BY_MACHINE, /* all records of one machine */
	BY_PID,	    /* common_pid */
	BY_CPU,
	BY_FIELD,
	BY_GUEST,	/* a guest's records, and those of its vCPUs' threads */
	BY_VCPU,	/* a guest's CPU, and the records of its thread */
	BY_VCPU_FIELD,	/* the vCPU that the field numbers, of the thread's guest */
	BY_LONE_FIELD,	/* ... of the only guest, for the thread may be anybody's */
	BY_VCPU_TID,	/* the vCPU whose thread the field names */
	BY_GUEST_FIELD, /* the field's value, of the guest */
	BY_VCPU_LINE,  /* a vCPU and an interrupt's number: fields of the host's, CPU and field of the guest's
			*/
	BY_WORKER,     /* the process that the thread works for */
	BY_WORKER_TID, /* the process that the thread which the field names works for; none of a vCPU's */
	BY_PAIR,       /* two fields, of the guest */
	BY_CARRIED,    /* what the chain carries */
	BY_CARRIED_FIELD, /* the field's value, in the scope that the chain carries */
};

struct latency_key_of {
	enum latency_by by;
	const char *field, *second;
};

/* Kinds of a key's scope, with the number of a guest or an input. */
enum latency_scope {
	SCOPE_ALL, /* of all machines */
	SCOPE_INPUT,
	SCOPE_GUEST,
	SCOPE_VCPU,   /* value: which */
	SCOPE_THREAD, /* a vCPU that no file names; value: its thread */
	SCOPE_PAIR,   /* two values of 32 bits at most, the first shifted by 16 */
};

static inline uint64_t latency_scope(enum latency_scope scope, size_t number)
{
	return (uint64_t)scope << 32 | (uint32_t)number;
}

/* The same for the records of an event of an input. */
struct latency_taker {
	enum latency_by by;
	size_t input;
	uint32_t guest;		/* it is this one's file */
	bool apart;		/* each machine has its own keys */
	bool kvm;		/* its thread is a vCPU's, named or not */
	struct field_load pid;	/* common_pid */
	struct field_load vcpu; /* of the hypervisor's events; FIELD_NONE: it has none */
	struct field_load field, second;
};

/* apart: for BY_MACHINE to BY_FIELD. -EINVAL: the event has no such number, why has a line. */
int latency_taker_init(struct latency_taker *t, const struct latency_key_of *how, const struct vcpu_map *w,
		       const struct inputs *in, size_t input, const struct tep_event *event, bool hyp,
		       bool apart, char *why, size_t size);
/* False: the record has no such key: it is of another thread, or too short. Any thread. */
bool latency_take(const struct latency_taker *t, const struct vcpu_map *w, const struct merge_record *m,
		  unsigned int cpu, struct latency_key *key);

/* A key for people: "Guest 0", "host 42". */
void latency_key_text(const struct latency_key *key, enum latency_by by, const struct vcpu_map *w,
		      const struct inputs *in, bool named, struct buf *out);

/*
 * The time from one event to the next: chains (chain.h) of the records of files, by key, with losses and the
 * clocks' bounds.
 */
#define LATENCY_TERMS_MAX 32
#define LATENCY_ROWS_MAX  1000 /* further keys share a row */

/* An event that is a point; a point may have several. */
struct latency_term {
	const char *event; /* as event_words_parse has it */
	size_t point;
	bool cancels; /* no point, but ends the chain that waits for the point below `look` */
	struct latency_key_of look, next, carry;
	struct latency_key_of at;  /* see chain_step */
	struct latency_key_of row; /* row in which it counts from here on; at first BY_NOTHING: as `next` */
	const char *record;	   /* options of record that give it; NULL */
	unsigned int kind;	   /* chains of different kinds do not meet */
	bool line;		   /* BY_VCPU_LINE is its key: see struct lines */
	bool shares;		   /* see chain_step */
};

struct latency_worst;
struct latency_plan {
	const struct latency_term *terms;
	size_t n_terms, n_points;
	bool strays; /* the last point without the others counts, in the row of its `look` */
	bool apart;  /* each machine has its own keys */
	/* Point 0 is the last event with the key (`carry`) that the last point has; chains begin with
	 * point 1. */
	bool recalls;
	bool lines;	    /* some terms have `line`: files are read twice */
	bool without_lines; /* these terms are left out */
	bool queues;	    /* counts what is in virtio's queues, too */
	bool lenient;	    /* leaves out events that lack a field of the plan */
	bool uncounted;	    /* no latency_count is wanted: events that can be in no chain are passed over */
	size_t worst;	    /* so many are kept */
	/* Called with each chain that counts, and its row's key; NULL: nobody wants them. Not 0: the reading
	 * ends with that. */
	int (*each)(void *ctx, const struct latency_worst *chain, const struct latency_key *row,
		    size_t n_points);
	bool (*stopped)(void *ctx); /* whether the reading is to end, with -EINTR; NULL: not */
	void *ctx;
};

struct latency_row {
	struct latency_key key;
	bool others;		  /* of all keys beyond LATENCY_ROWS_MAX */
	uint64_t undecided, lost; /* see enum chain_fate */
	uint64_t refused;
	uint64_t strays, doubtful;	       /* last points that no chain waited for, surely and perhaps */
	uint64_t stopped[CHAIN_POINTS_MAX];    /* by how many points came */
	uint64_t unrecorded[CHAIN_POINTS_MAX]; /* likewise: no file had the next one's machine at that time */
	uint64_t bound;			       /* the greatest of a chain that counts, ns; UINT64_MAX: none */
	struct histogram stages[CHAIN_POINTS_MAX]; /* [n_points - 1]: the whole; before that each stage */
};

struct latency_worst {
	uint64_t took; /* ns */
	uint32_t row;
	struct chain_event v[CHAIN_POINTS_MAX];
};

/* A queue of virtio, by the events that its driver makes when it adds buffers. */
struct queue {
	size_t input;
	int64_t device; /* virtio's number; -1: unknown */
	char name[32];	/* "input.0" */
	bool others;	/* of all further queues */
	uint64_t buffers, out, in, out_bytes, in_bytes;
	uint64_t unknown; /* buffers whose bytes, one way at least, no event carries */
};

struct latency; /* opaque */

/*
 * in: loaded, and outlives it, as does the plan with its texts. *out is to be closed in any case. -EINVAL: an
 * event or field is not there (logged); -ENOMEM.
 */
int latency_open(struct latency **out, const struct inputs *in, const struct latency_plan *plan,
		 const struct log *log);
void latency_close(struct latency *l);
/* True if each point has an event that the files can have. */
bool latency_fed(const struct latency *l);
/* Reads the files, once. *damaged: places in them. -ENOMEM, -errno from the files. */
int latency_read(struct latency *l, const struct log *log, uint64_t *damaged);
/* The reading that a plan with `lines` needs before the other one; latency_read and latency_begin do it. */
int latency_survey(struct latency *l);
/*
 * Opens a plan without `queues` for a pass of the caller's over all records of t, which outlives it. *out
 * stays NULL if latency_fed() is false. Up to LATENCY_GROUP_MAX look at each record together: *first, NULL
 * before the first of them, becomes the one whose latency_part() is for all. Errors as latency_open's and
 * latency_read's; what *out has is to be closed then, too.
 */
#define LATENCY_GROUP_MAX 32
int latency_begin(struct latency **out, struct latency **first, const struct inputs *in,
		  const struct latency_plan *plan, struct timeline *t, const struct log *log);
struct pass_part latency_part(struct latency *l);
int latency_end(struct latency *l);

/* Chains that began in the row. */
uint64_t latency_begun(const struct latency_row *r, size_t n_points);
/* Of a term: its events that came, those that passed its filter, and of these those without a key. */
struct latency_count {
	bool known; /* a file has a format of it */
	uint64_t seen, passed, keyless;
};
/* After reading. */
struct latency_result {
	const struct latency_row *rows;	    /* in the order in which their keys came */
	const struct latency_worst *worst;  /* the longest first */
	const struct queue *queues;	    /* of plan.queues */
	const struct latency_count *counts; /* by term */
	size_t n_rows, n_worst, n_queues;
	/* a guest whose clock has no bound, though order across machines is asked for; NULL: none */
	const char *unbounded;
	/* why there is nothing between some events: "events were lost", or pauses between regions */
	const char *why_lost;
	const struct vcpu_map *vcpus;
};
struct latency_result latency_result(const struct latency *l);
/* The bound between two events, ns: 0 on one machine; UINT64_MAX: unknown. */
uint64_t latency_bound(const struct chain_event *a, const struct chain_event *b);

/*
 * Keys that the two events have by their meaning (default-key.c): KVM's the vCPU, sched's the task, the
 * hypervisor's and interrupts' the CPU. Returns its word for --key; NULL: they have none in common.
 */
const char *latency_default_key(const struct inputs *in, const struct event_words *from,
				const struct event_words *to, struct latency_key_of *begin,
				struct latency_key_of *end);

/* Durations in ns as bars over a logarithmic axis of time, with percentiles: an SVG (chart.c). */
void latency_svg(const struct histogram *h, const char *title, struct buf *out);

/* ---- presets.c: chains that have a name ------------------------------------------------------------ */

struct latency_preset {
	const char *name, *summary;
	const char *doubt;			    /* a further reason for undecided chains; NULL: none */
	const char *row;			    /* subject of a row: "vCPU" */
	const char *const points[CHAIN_POINTS_MAX]; /* their names */
	size_t n_points;
	size_t least; /* without the guest's file its points at the end are left out, as far as so many stay
		       */
	bool evident; /* rows whose chains all stop before the second point are none */
	bool recalls, lines, queues; /* see latency_plan */
	const struct latency_term *terms;
	size_t n_terms;
};

/* NULL: none is called so. */
const struct latency_preset *latency_preset(const char *name);
/* In turn from 0 on; NULL: there are no more. */
const struct latency_preset *latency_preset_at(size_t i);
/* The preset's plan as far as these files can have it; *plan's worst stays. */
void latency_preset_plan(const struct latency_preset *p, const struct inputs *in, struct latency_plan *plan);

/* ---- between.c: the records on the CPUs of a chain's events, from its first to its last -------- */

#define BETWEEN_LINES 16 /* of a chain: the first half, and the last */

struct between_line {
	uint64_t ts;
	uint32_t input, cpu;
	char *task, *what; /* "vhost-1781-1793", "kvm_entry: PC: 0x..." */
};

struct between {
	uint64_t records; /* that there are */
	struct between_line v[BETWEEN_LINES];
	size_t n; /* in the order of time; where records is more, some are left out in the middle */
};

/* Reads the files once more: of each of the n, an entry in *out, for between_free. -ENOMEM, -errno. */
int between_read(struct between **out, const struct inputs *in, const struct latency_worst *worst, size_t n,
		 size_t n_points);
void between_free(struct between *b, size_t n);

#endif
