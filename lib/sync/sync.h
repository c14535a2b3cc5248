/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_H
#define HYPTRACE_SYNC_H

#include "dat/offset.h"

/*
 * Clock synchronisation of a guest with its host from causality: a guest's
 * event can only happen while its vCPU's host thread runs the guest.
 * Documentation/clock-sync.md has the maths.
 *
 *	host time = guest time + sync_offset(result, guest time)
 *
 * Times are ns, or ticks when both files use a counter clock. Nothing here is
 * global; results are plain data.
 */

enum sync_class {
	SYNC_NONE, /* nothing can be said */
	SYNC_PING, /* a message's round trip: +- RTT/2 */
	SYNC_SOFT, /* nearly all events inside */
	SYNC_HARD, /* every event inside, nothing lost unseen */
};

const char *sync_class_name(enum sync_class c); /* "none", "ping", "soft", "hard" */

/* ---- what goes in ------------------------------------------------------------ */

enum sync_kind {
	SYNC_KVM, /* kvm_entry .. kvm_exit */
	SYNC_HYP, /* the hypervisor's eret_guest .. guest_exit */
};

/* One guest CPU's events; times ascend. */
struct sync_cpu {
	unsigned int cpu;
	uint64_t *times;
	size_t n;
};

/*
 * A stretch of host time in which a thread can have run its guest. Any order;
 * they may overlap. `unknown`: events were lost here, so it may have; with pid
 * 0 that holds for every thread.
 */
struct sync_window {
	uint64_t a, b;
	int32_t pid;
	uint8_t kind; /* enum sync_kind */
	bool unknown;
};

struct sync_windows {
	struct sync_window *v;
	size_t n;
};

/* An entry into the guest or an exit from it. */
struct sync_point {
	uint64_t time;
	int32_t pid;
	uint8_t kind;
	bool enter;
};

int sync_windows_add(struct sync_windows *w, const struct sync_window *one);
/*
 * Pairs entries with exits (sorts v). What lacks its other half becomes
 * unknown. begin, end: of the host's capture. slack: widens each window on both
 * sides (ns), for the clock's error; step: of the time stamps, which are cut off.
 */
int sync_windows_pair(struct sync_windows *w, struct sync_point *v, size_t n, uint64_t begin, uint64_t end,
		      uint64_t slack, uint64_t step);

/* What is known beforehand: |host - guest - offset| <= bound around `time`. */
struct sync_prior {
	bool valid;
	uint64_t time;
	int64_t offset;
	uint64_t bound;
};

struct sync_input {
	struct sync_cpu *cpus;
	size_t n_cpus;
	struct sync_window *windows; /* sorted by the solver */
	size_t n_windows;
	uint64_t begin, end; /* of the host's capture; events beyond it tell nothing. 0, 0: of the
				windows */
	/* Host thread of each of cpus[], 0 = not known; NULL: none is. Checked, and replaced when
	 * wrong. */
	const int32_t *pids;
	struct sync_prior prior;
	double max_rate; /* of the clocks against each other; 0 = 5e-4 */
	/*
	 * What this rate may change by within a piece without being seen: 0 = 5e-6, for
	 * clocks that NTP steers; 1e-7 for those that it leaves alone; more where it slews hard.
	 */
	double max_bend;
};

/* ---- what comes out ------------------------------------------------------------ */

struct sync_knot {
	uint64_t time;	/* guest */
	int64_t offset; /* host = guest + offset */
	uint64_t bound; /* half width: the truth lies in offset +- bound; between two knots the
			   larger one holds, UINT64_MAX: nothing is known */
	enum sync_class class;
};

struct sync_vcpu {
	unsigned int cpu;
	int32_t pid; /* 0: not found */
	uint64_t events, outside;
};

/* For plots: what the offset may be at a guest time. */
struct sync_band {
	uint64_t time;
	int64_t low, high;
};

struct sync_result {
	enum sync_class class; /* the worst of the knots' */
	const char *method;    /* "hyp windows", "kvm windows", "ping", "none" */
	struct sync_knot *knots;
	size_t n_knots;
	size_t *cuts; /* knots that begin a new piece: the offset jumps there */
	size_t n_cuts;
	struct sync_vcpu *vcpus;
	size_t n_vcpus;
	struct sync_band *bands;
	size_t n_bands;
	uint64_t events;  /* that could be checked */
	uint64_t outside; /* of them, in no window with this offset */
	uint64_t unsure;  /* of them, where nothing was known */
	bool map_changed; /* the given vCPU map was wrong */
};

/* 0 (also for class none), -ENOMEM, -EINVAL: no CPUs. */
int sync_solve(const struct sync_input *in, struct sync_result *out, const struct log *log);
void sync_result_release(struct sync_result *r);

/* The offset at a guest time, rounded as stock rounds; 0 without knots. */
int64_t sync_offset(const struct sync_result *r, uint64_t time);
/* Its half width; UINT64_MAX: nothing is known there. */
uint64_t sync_bound(const struct sync_result *r, uint64_t time);
/* Mean drift over the whole, cuts left out, in ppm. */
double sync_drift_ppm(const struct sync_result *r);
/* Events inside / events, 0..1. */
double sync_coverage(const struct sync_result *r);
/* Half width at the middle of all knots that have one, sorted; UINT64_MAX without. */
uint64_t sync_median_bound(const struct sync_result *r);

/*
 * What any offsets (of the file itself, say) do to causality: for each event
 * outside of its windows, the least shift that would bring it in.
 */
struct sync_check {
	uint64_t events, outside;
	uint64_t worst; /* ns beyond the nearest window */
};
int sync_check(const struct sync_input *in, const struct sync_result *map, const struct offset_shift *shift,
	       struct sync_check *out);

/* ---- files --------------------------------------------------------------------------- */

#include "dat/page.h"
#include "dat/writer.h"

struct reader;

/* One buffer whose pages can be walked, whatever holds them. */
struct sync_buffer {
	struct page_layout layout; /* with this buffer's page size */
	unsigned int n_cpus;
	/*
	 * Walks the pages at index cpu of the buffer: calls `page` for each in order,
	 * with the CPU's number. What it returns, if not 0, ends the walk.
	 */
	int (*walk)(void *ctx, unsigned int cpu,
		    int (*page)(void *to, unsigned int number, const void *data, size_t len), void *to);
	void *ctx;
};

/* A file, or what will be one. */
struct sync_source {
	struct sync_buffer *buffers;
	size_t n_buffers;
	const struct dat_text *formats; /* of all events */
	size_t n_formats;
	const char *cmdlines; /* "PID NAME" lines, or NULL: vCPU threads are known by name */
	size_t cmdlines_len;
	bool steady; /* NTP leaves its clock alone, and host and guest read the same counter */
	void *own;   /* sync_source_reader's; NULL in one that the caller fills */
};

/* Makes one of a trace.dat. The reader must outlive it. */
int sync_source_reader(struct sync_source *s, const struct reader *r);
void sync_source_release(struct sync_source *s);

/* Everything that the host's file tells, good for several guests. */
struct sync_host {
	struct sync_windows windows;
	uint64_t begin, end; /* where its events exclude anything */
	uint64_t lost;	     /* stretches with lost events */
	size_t n_hyp;	     /* hyp windows; 0 also when they were of no use */
	/* kvm_entry <= eret_guest <= guest_exit <= kvm_exit: */
	uint64_t hyp_checked;	   /* hyp windows that could be */
	uint64_t hyp_worst;	   /* how far one lies outside of kvm's, ns */
	uint64_t hyp_stray;	   /* of them further than the clock's error: 1 us */
	struct offset_vcpu *names; /* vCPU threads by their names: "CPU 0/KVM" */
	size_t n_names;
};
int sync_host_read(struct sync_host *h, const struct sync_source *s, const struct log *log);
void sync_host_release(struct sync_host *h);

/* The events of a guest: of its first buffer, the one that a TIME_SHIFT shifts. */
struct sync_guest {
	struct sync_cpu *cpus;
	size_t n_cpus;
	uint64_t first, last;
};
int sync_guest_read(struct sync_guest *g, const struct sync_source *s, const struct log *log);
void sync_guest_release(struct sync_guest *g);

/* Input of both; *pids (malloc'ed, n_cpus long) is the map known: given ones, else by name. */
int sync_input_make(struct sync_input *in, const struct sync_host *h, const struct sync_guest *g,
		    const struct offset_vcpu *vcpus, size_t n_vcpus, int32_t **pids);
/* Steady clocks hardly drift: narrower limits for the solver. */
void sync_input_steady(struct sync_input *in);
/* Takes both clocks as steady, and if all is not well then, tries it without. As sync_solve. */
int sync_solve_steady(const struct sync_input *in, struct sync_result *out, const struct log *log);

/*
 * All in one, for a recording's end: the guest's offsets against the host.
 * vcpus: the known map, or NULL. prior: may be NULL.
 */
int sync_files(const struct sync_source *host, const struct sync_source *guest,
	       const struct offset_vcpu *vcpus, size_t n_vcpus, const struct sync_prior *prior,
	       struct sync_result *out, const struct log *log);

/*
 * The result as a TIME_SHIFT of n_cpus CPUs for the guest's file, and as a GUEST
 * option for the host's. -ENODATA: there is no offset to write.
 */
int sync_time_shift(const struct sync_result *r, uint64_t host_id, uint32_t n_cpus, struct offset_shift *out);
int sync_guest_option(const struct sync_result *r, const char *name, uint64_t guest_id,
		      struct offset_guest *out);

#endif
