/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WATCH_SUMS_H
#define HYPTRACE_WATCH_SUMS_H

#include "base/map.h"

/*
 * Text of an event's `hist` file (kernel/trace/trace_events_hist.c), whose histograms have the keys pid,
 * perhaps one more, perhaps lat.log2, and the value lat:
 *   { pid:        112, by: sh (50 bytes), lat: ~ 2^24 } hitcount:          1  lat:   13640495
 */

#define HIST_WORD 16 /* TASK_COMM_LEN */

struct hist_entry {
	uint64_t pid;
	char key[8];	      /* of the key after pid: "by", "ec"; "": none */
	char word[HIST_WORD]; /* value of "by": valid UTF-8 without controls; all workers are "kworker" */
	uint64_t number;      /* value of another key */
	int log2;	    /* lat lies above 2^(log2 - 1) and is at most 2^log2, 0 to 64; -1: no such key */
	uint64_t hits, lat; /* lat: the sum */
	bool filtered;	    /* its histogram has a filter */
};

struct hist_totals {
	uint64_t entries; /* of the fullest histogram */
	uint64_t dropped; /* events without room, of all histograms */
	uint64_t bad;	  /* entries of another form, which were skipped */
};

/* Gives each entry to `take`, and adds to the totals. 0 or the first error of take. A task's name cannot
 * forge an entry. */
int hist_text_read(const void *text, size_t len, int (*take)(void *ctx, const struct hist_entry *e),
		   void *ctx, struct hist_totals *totals);

/* Sums of the kernel's histograms of each vCPU's thread, since the first look. */

enum watch_kind {
	WATCH_STOLEN, /* time in which a vCPU could run and another task had its CPU */
	WATCH_BY,     /* ... and the part of one name */
	WATCH_WAKEUP, /* from the wake-up of a vCPU until it runs */
	WATCH_EXIT,   /* from kvm_exit to kvm_entry, by reason */
};

/* Upper bounds of the buckets are 2^10 ns, 2^12 ns ... 2^32 ns (1.02 us to 4.29 s); the last has none. */
#define WATCH_BUCKETS	       13
#define WATCH_BOUND_NS(bucket) (1ull << (10 + 2 * (bucket)))

/* Name of all that have no series of their own. */
#define WATCH_OTHERS "(others)"

struct watch_counts {
	uint64_t n, ns;
	uint64_t buckets[WATCH_BUCKETS]; /* not of WATCH_BY */
};

struct watch_sum {
	enum watch_kind kind;
	int32_t pid;
	char word[HIST_WORD]; /* WATCH_BY: the name; WATCH_EXIT: the key that code is of */
	uint64_t code;
	struct watch_counts all;
	struct watch_counts emptied; /* the part of `all` that histograms had before they were emptied */
	struct watch_counts seen;    /* `all` at the last look */
	struct watch_counts last;    /* ... and what came in the interval that it ended */
	/* A counter may not fall. So a name that gets a series of its own has in it what follows, and the
	 * time of a name that loses its series is not given to the others afterwards. */
	bool shown;    /* WATCH_BY: it has a series of its own */
	uint64_t from; /* WATCH_BY: ns when it got that; WATCH_STOLEN: ns in series that are gone */
	uint64_t rest; /* WATCH_STOLEN: ns of all without a series */
};

/* A vCPU by its thread. */
struct watch_vcpu {
	int32_t pid;
	unsigned int cpu;
	const char *vm; /* no other VM has the same */
};

/* In an array in the order of pid; NULL: it is none. */
const struct watch_vcpu *watch_vcpu_find(const struct watch_vcpu *v, size_t n, int32_t pid);

struct watch_sums {
	struct watch_sum *v; /* after watch_sums_settle: in the order of pid, kind, word, code */
	size_t n;
	struct map map;
	uint64_t no_room; /* entries of this look */
};

/* Before the entries of one look. */
void watch_sums_begin(struct watch_sums *s);
/* Adds an entry. -ENOMEM. What has no room is counted. */
int watch_sums_add(struct watch_sums *s, enum watch_kind kind, const struct hist_entry *e);
/*
 * After the entries of one look: forgets threads that are none of these, and gives the `top` names
 * that took most from a vCPU since the last look series of their own. -ENOMEM.
 */
int watch_sums_settle(struct watch_sums *s, const struct watch_vcpu *vcpus, size_t n, size_t top);
/* The histograms are emptied after this look. */
void watch_sums_emptied(struct watch_sums *s);
void watch_sums_release(struct watch_sums *s);

#endif
