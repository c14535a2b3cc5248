/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_EVIDENCE_H
#define HYPTRACE_SYNC_EVIDENCE_H

#include "file/dat/page.h"
#include "file/dat/options.h"
#include "record/clock/cntvoff.h"
#include "sync/sync.h"

/* Evidence about clocks, read from the pages of a host and of a guest. */

/* ---- evidence.c: sources */

/* Source of evidence: a trace.dat, or the spool of one. */

struct reader;

/* Takes a page of CPU `number`; a value other than 0 ends the walk. */
typedef int (*sync_page_fn)(void *to, unsigned int number, const void *data, size_t len);

struct sync_buffer {
	struct page_layout layout; /* with this buffer's page size */
	unsigned int n_cpus;
};

/* Progress of reading, in bytes of files. */
struct sync_progress {
	void (*report)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	uint64_t done, total;
};

struct sync_source {
	struct sync_buffer *buffers;
	size_t n_buffers;
	/* Calls `page` for each page of a buffer and CPU (indices), in order. */
	int (*walk)(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn page,
		    void *to);
	const void *from;	  /* what holds the pages: walk's */
	struct dat_text *formats; /* of all events */
	size_t n_formats;
	struct pauses pauses; /* owned */
	bool steady;	      /* NTP leaves its clock alone, and host and guest read the same counter */
	uint64_t whole_to;    /* up to this time it has the events of all CPUs; 0: up to its end */
	struct sync_progress *progress; /* NULL: not wanted */
};

/* Makes one of a trace.dat. The reader must outlive it. 0 or -ENOMEM. */
int sync_source_reader(struct sync_source *s, const struct reader *r);
/* Frees what sync_source_reader made. */
void sync_source_release(struct sync_source *s);

/* ---- evidence-host.c; a guest's is in evidence.c */

/* A host's: read once, it serves any number of guests, in several threads at a time. */
struct sync_host {
	struct sync_windows windows;
	uint64_t begin, end; /* ns; where its events exclude anything */
	uint64_t lost;	     /* stretches with lost events */
	size_t n_hyp;	     /* hyp windows; 0 also when they were of no use */
	/* kvm_entry <= eret_guest <= guest_exit <= kvm_exit: */
	uint64_t hyp_checked; /* hyp windows that could be checked */
	uint64_t hyp_worst;   /* how far one lies outside of kvm's, ns */
	uint64_t hyp_stray;   /* of them further than the clock's error: 1 us */
	bool steady;	      /* as struct sync_source's */
};
/* One pass over all pages. 0, -ENOMEM, or what a walk returned: then *h is empty. */
int sync_host_read(struct sync_host *h, const struct sync_source *s, const struct log *log);
void sync_host_release(struct sync_host *h);

/* The events of a guest: of its first buffer, the one that a TIME_SHIFT shifts. Of millions an even part. */
struct sync_guest {
	struct sync_cpu *cpus;
	size_t n_cpus;
	uint64_t first, last; /* times */
	bool steady;
};
/* As sync_host_read. A source without buffers is a guest without CPUs. */
int sync_guest_read(struct sync_guest *g, const struct sync_source *s);
void sync_guest_release(struct sync_guest *g);

/* ---- evidence.c: sources */

/* Both, and the guest's vCPU threads as far as they are known. */
struct sync_evidence {
	const struct sync_host *host;
	const struct sync_guest *guest;
	const struct offset_vcpu *vcpus;
	size_t n_vcpus;
};

/*
 * Input of it, which it borrows. *pids (a thread for each CPU, 0: not known) is to be
 * freed by the caller. 0 or -ENOMEM.
 */
int sync_input_make(struct sync_input *in, const struct sync_evidence *e, int32_t **pids);

/* prior: may be NULL. As sync_solve; a guest without CPUs has class none. */
int sync_solve_evidence(const struct sync_evidence *e, const struct sync_prior *prior,
			struct sync_result *out);

/* ---- counter-method.c ---- */

/*
 * The counter method: a guest's counter is the host's less CNTVOFF, without any
 * drift; snapshots on both sides tie the trace clocks to their counters. Pure:
 * logs in, a sync_result out. Documentation/clock-sync.md has the maths.
 */

/*
 * The guest's offset. The VM is the one whose CNTVOFF fits the pings; where several
 * do, the one that has one of the n vCPU threads; where none does, an offset of 0 that fits them is taken:
 * protected VMs have that, and no other by chance. -ENODATA with *why: it cannot be had; -ENOMEM. out->class
 * is SYNC_HARD, or SYNC_SOFT where records of CNTVOFF were lost.
 */
int counter_solve(const struct counter_log *host, const struct counter_log *guest,
		  const struct cntvoff_log *cntvoff, const struct offset_vcpu *vcpus, size_t n,
		  struct sync_result *out, const char **why);

/*
 * Without CNTVOFF, but with events: the windows (sync.h) bound it, all of a recording together, since it does
 * not drift; where the pings show that the VM was stopped, all before and all after. -ENODATA: they do not,
 * or it was stopped and no ping shows that; sync_solve_evidence may still find something.
 */
int counter_solve_windows(const struct counter_log *host, const struct counter_log *guest,
			  const struct sync_evidence *events, struct sync_result *out);

/*
 * Without CNTVOFF: it does not change, so the pings alone bound it, all of them
 * together. out->class is SYNC_PING.
 */
int counter_solve_pings(const struct counter_log *host, const struct counter_log *guest,
			struct sync_result *out, const char **why);

#endif
