/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_PRIV_H
#define HYPTRACE_LATENCY_PRIV_H

#include "latency/latency.h"
#include "latency/losses.h"

/* A term in an input. */
struct latency_source {
	unsigned int id; /* of the event */
	size_t term;
	const struct filter *filter; /* NULL: none */
	struct latency_taker look, next, carry, row;
};

struct latency_input {
	struct event_match *matches; /* by term; they own the filters */
	struct latency_source *v;    /* by event; later points first */
	size_t n;
	uint32_t *first; /* by the event's id: 1 + index of its first; 0: none */
	size_t n_ids;
	bool wanted[2]; /* events of the kernel, of the hypervisor: which losses matter */
};

/* What became of chains. */
struct latency_rows {
	struct latency_keys keys; /* of v, but for the one of others */
	struct latency_row *v;
	size_t n;
	size_t others; /* index, or SIZE_MAX */
	struct latency_worst *worst;
	size_t n_worst;
};

struct latency {
	const struct inputs *in;
	const struct latency_plan *plan;
	struct who *who;
	struct event_words words[LATENCY_TERMS_MAX];
	struct latency_input *v;
	struct latency_count counts[LATENCY_TERMS_MAX];
	uint64_t reach;	       /* see chain_open; 0: bounds do not matter */
	const char *unbounded; /* see latency_unbounded */
	struct timeline *t;
	struct chain *chain;
	struct latency_rows rows;
	struct losses losses;
	bool paused, lost; /* see latency_why_lost */
	bool *losing;	   /* by stream: events are lost there, in l->losses */
};

/* The terms in each input. -EINVAL (logged), -ENOMEM. */
int latency_terms_open(struct latency *l, const struct log *log);
void latency_terms_close(struct latency *l);

/* The row's number. -ENOMEM. */
int latency_row_of(struct latency_rows *r, const struct latency_key *key, uint32_t *row);
/* As chain_told.tell; ctx is the struct latency. */
int latency_row_tell(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v, size_t n);
/* Empty again. */
void latency_rows_release(struct latency_rows *r);
/* The worst first. */
void latency_rows_sort(struct latency_rows *r);

#endif
