/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_H
#define HYPTRACE_FLAME_H

#include "ask/states/pass.h"

/* Stacks as frames below frames, each with what was counted right there, of one or two recordings. */
enum flame_weight {
	FLAME_SAMPLES, /* stacks that were recorded */
	FLAME_NS,      /* time of functions themselves */
	FLAME_CALLS,   /* of those functions */
	FLAME_ENTRIES, /* records of the function tracer */
	FLAME_WEIGHTS
};

#define FLAME_SIDES 2
/* Frames and names of a tree at most: some 170 MiB. */
#define FLAME_FRAMES_MAX (1u << 20)
/* Of a stack; those further in are one, FLAME_DEEPER. */
#define FLAME_DEPTH_MAX 512
#define FLAME_DEEPER	"[deeper]"
#define FLAME_OTHERS	"[others]"
#define FLAME_UNKNOWN	"[unknown]"
#define FLAME_HYP	"[hyp]"
#define FLAME_IN_GUEST	"[guest]" /* in a host's sample of a vCPU that runs its guest */
#define FLAME_IN_HOST	"[host]"  /* in one that perf books to the guest */
#define FLAME_UNDECIDED "[undecided]"
#define FLAME_GUEST	"guest:" /* before the names of guests, the first frames of their stacks */

struct flame_tree; /* opaque */

/* Number of the frame that has no name, which all stacks begin below. */
#define FLAME_ROOT 0

/* frames_max: how many frames it takes. -ENOMEM. flame_tree_free takes NULL. */
int flame_tree_new(struct flame_tree **out, size_t frames_max);
void flame_tree_free(struct flame_tree *t);

/*
 * The number of a name: names that are equal when cleaned have one. Of n bytes at most; ';' becomes ':', what
 * a terminal obeys and what is no UTF-8 '?', blanks at both ends go, no name at all is FLAME_UNKNOWN; what is
 * longer than 255 bytes is cut. 0: the tree takes no more. -ENOMEM.
 */
int flame_tree_name(struct flame_tree *t, const char *name, size_t n, uint32_t *out);
/*
 * The frame of that name below a frame. When the tree takes no more it is FLAME_OTHERS, the first of a stack
 * that all beyond share. -ENOMEM.
 */
int flame_tree_child(struct flame_tree *t, uint32_t parent, uint32_t name, uint32_t *out);
/* The same by the name's text. */
int flame_tree_named(struct flame_tree *t, uint32_t parent, const char *name, uint32_t *out);
void flame_tree_add(struct flame_tree *t, uint32_t frame, size_t side, enum flame_weight w, uint64_t n);
/* Returns one more than the largest number of a name; the smallest is 1. */
uint32_t flame_tree_names(const struct flame_tree *t);
/* The text of a number, as it was cleaned; "" of 0. */
const char *flame_tree_text(const struct flame_tree *t, uint32_t name);
/* All of it; and of that what stands in FLAME_OTHERS. */
uint64_t flame_tree_total(const struct flame_tree *t, size_t side, enum flame_weight w);
uint64_t flame_tree_others(const struct flame_tree *t, size_t side, enum flame_weight w);

/* ---- once it is complete: in the order of names, whatever the order they came in -------- */

struct flame_frame {
	const char *name;
	size_t depth;	       /* 1: the first of a stack */
	const uint32_t *stack; /* depth numbers of names, from the outermost to this one */
	uint64_t self[FLAME_SIDES], total[FLAME_SIDES];
};

/*
 * Each frame in which something weighs, before those below it. begin: of each side, how far from the
 * left it begins when frames are drawn side by side, each with its own share first and then those below
 * it. A result of visit that is not 0 ends it. -ENOMEM.
 */
typedef int flame_visit(void *ctx, const struct flame_frame *f, const uint64_t *begin);
int flame_tree_walk(const struct flame_tree *t, enum flame_weight w, flame_visit *visit, void *ctx);

/*
 * Stacks as folded text, "a;b;c 12", which flamegraph.pl and speedscope read: each in which something is
 * counted once, in the order of names. A result of line that is not 0 ends it. -ENOMEM.
 */
typedef int flame_line(void *ctx, const char *stack, const uint64_t self[FLAME_SIDES]);
int flame_fold(const struct flame_tree *t, enum flame_weight w, flame_line *line, void *ctx);
/*
 * Scales n of a recording that weighs `of` to one that weighs `to`, rounded down, as difffolded.pl -n makes
 * two recordings alike. of 0: 0.
 */
uint64_t flame_scaled(uint64_t n, uint64_t of, uint64_t to);

/*
 * The stacks of recordings: those that were recorded (kernel_stack and user_stack behind an event, arrays
 * that an event prints by __get_stacktrace), functions with the time that is their own (function_graph, and
 * the hypervisor's func and func_ret, without these its time by reason), and the function tracer's records.
 * Frames are machine, task, then functions from the outermost on; the hypervisor's come below
 * FLAME_HYP where the host called it.
 */
struct flame; /* opaque */
struct reading;

struct flame_opts {
	bool idle;		 /* of pid 0, too */
	bool pids;		 /* tasks as "name-pid" */
	bool spans;		 /* of programs (markers.h), and nothing else */
	bool states;		 /* of vCPUs (states.h), and nothing else */
	const char *behind;	 /* a filter: stacks behind such an event only; NULL: all. To be sound by
				  * filter_syntax() */
	struct strlist machines; /* wildcards; none: all */
	struct strlist tasks;	 /* names, wildcards, or pids; none: all */
	size_t frames_max;	 /* 0: FLAME_FRAMES_MAX */
	bool two_sides;		 /* from the second file on that is no guest's: side 1 */
};

/* Counts of what is not in the stacks. */
struct flame_counts {
	uint64_t idle[FLAME_WEIGHTS]; /* left out, of pid 0 */
	uint64_t visits;  /* ns in the hypervisor by reason, of what is shown; the rest is functions' */
	uint64_t asleep;  /* ns in which tasks did not run, left out of their functions' own time */
	uint64_t open;	  /* calls of which only the begin or the end is there */
	uint64_t lost;	  /* calls in which events were lost */
	uint64_t cut;	  /* stacks that are shorter than their records claim */
	uint64_t others;  /* spans of threads or names, or vCPUs, that are too many */
	uint64_t missed;  /* events of these files that were lost ... */
	bool missed_more; /* ... or more: some places have no number */
	bool graph_without_switches; /* functions have times, and no sched_switch shows when tasks slept */
};

/* Joins a reading, which outlives it. *out is to be closed always. -EINVAL: the filter (logged); -ENOMEM. */
int flame_join(struct flame **out, struct reading *r, const struct flame_opts *opts, const struct log *log);
void flame_close(struct flame *f);
/* After reading_run(). -ENOMEM. */
int flame_end(struct flame *f);
const struct flame_tree *flame_stacks(const struct flame *f);
const struct flame_counts *flame_counts(const struct flame *f);

/* A flame graph as one SVG: it needs nothing else, and with its script it zooms, searches and shows names. */

/* Frames that are narrower are left out: shares of the whole. */
#define FLAME_NARROWEST 0.0002

struct flame_picture {
	const struct flame_tree *tree;
	enum flame_weight weight;
	const char *title, *about; /* about: the line below it */
	/* Frames are as wide as the mean of their shares in both recordings, red where the second has more.
	 */
	bool diff;
};

/* *hidden: how many frames are too narrow. -ENOMEM. */
int flame_svg(const struct flame_picture *p, struct buf *out, uint64_t *hidden);

/* The tree of stacks as profiles that other tools open, each stack with its own weight. */
struct flame_profile {
	const struct flame_tree *tree;
	enum flame_weight weight;
	const char *title;
	bool ticks; /* FLAME_NS counts ticks */
	bool diff;  /* both sides: two profiles, or two values of each stack */
};

/* speedscope's JSON (https://www.speedscope.app/file-format-schema.json). -ENOMEM, -errno of fd. */
int profile_speedscope(const struct flame_profile *p, int fd);
/* pprof's Profile message (github.com/google/pprof, proto/profile.proto), not compressed. The same errors. */
int profile_pprof(const struct flame_profile *p, int fd);

#define PROFILE_FLUSH (1u << 16) /* bytes that are worth a write */
/* Writes and empties a buffer that holds at least so many bytes. The same errors. */
int profile_flush(struct buf *out, int fd, size_t least);

#endif
