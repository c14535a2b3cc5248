/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_H
#define HYPTRACE_FLAME_H

#include "ask/flame/tree.h"
#include "ask/states/pass.h"

/*
 * The stacks of recordings: those that were recorded (kernel_stack and user_stack behind an event, arrays
 * that an event prints by __get_stacktrace), functions with the time that is their own (function_graph, and
 * the hypervisor's func and func_ret, without these its time by reason), and the function tracer's records.
 * Frames are machine, task, then functions from the outermost on; the hypervisor's come below
 * FLAME_HYP where the host called it.
 */
struct flame; /* opaque */

struct flame_opts {
	bool idle;			    /* of pid 0, too */
	bool pids;			    /* tasks as "name-pid" */
	bool spans;			    /* of programs (markers.h), and nothing else */
	bool states;			    /* of vCPUs (states.h), and nothing else */
	const struct hypertrace_desc *desc; /* the names of hypertrace's; NULL: none; outlives it */
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

/* in: loaded; it, the timeline and the steps outlive it. -EINVAL: the filter (logged);
 * -ENOMEM. */
int flame_open(struct flame **out, const struct inputs *in, const struct timeline *t,
	       const struct steps *steps, const struct flame_opts *opts, const struct log *log);
void flame_close(struct flame *f);
/* The part for pass_read(). */
struct pass_part flame_part(struct flame *f);
/* When all is read. -ENOMEM. */
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
