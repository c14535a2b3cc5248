/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEST_NVHE_SIM_H
#define HYPTRACE_TEST_NVHE_SIM_H

/* A physical CPU of a plain-nVHE host that runs guests: records, and the truth about them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/hyp/nvhe.h"

#define USEC 1000ll
#define MSEC 1000000ll
#define SEC  1000000000ll
#define MASK ((1ull << 59) - 1)

/* A simulated hypercall takes at most 6 us, and text is cut to 1 us on both sides of it. */
#define ERROR_MAX (8 * USEC)

/* ---- a simulated CPU ------------------------------------------------------------------ */

struct record {
	int64_t truth;
	uint64_t ts; /* as recorded */
	const char *reason;
	int vcpu;
	bool lost;
};

struct sim {
	int64_t now, offset; /* true time, CNTVOFF loaded */
	uint64_t written;    /* time as the ring buffer tells it */
	uint64_t seed;
	bool text;	    /* cut to microseconds */
	bool long_runs;	    /* a guest may run for longer than its CNTVOFF */
	int64_t interrupt;  /* one hypercall in ten takes up to that much longer */
	bool busy;	    /* the host is never idle for seconds */
	bool enters, exits; /* which events are on */
	struct record *v;
	size_t n, cap;
};

static inline uint64_t rnd(struct sim *s)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed;
}

static inline void pass(struct sim *s, int64_t most)
{
	s->now += 1000 + (int64_t)(rnd(s) % (uint64_t)most);
}

static inline void sim_init(struct sim *s, uint64_t seed)
{
	*s = (struct sim){
		.now = 117 * SEC, .seed = seed * 0x9e3779b97f4a7c15, .enters = true, .exits = true
	};
	s->written = (uint64_t)s->now;
}

static inline void sim_record(struct sim *s, const char *reason, int vcpu)
{
	uint64_t raw = (uint64_t)(s->now - s->offset);
	bool enter = !strcmp(reason, "hvc") || !strcmp(reason, "guest_exit") || !strcmp(reason, "host_abort");

	if (!(enter ? s->enters : s->exits))
		return;
	/* a delta of 59 bits in a page, the whole time at its start */
	s->written = s->n % 37 ? s->written + ((raw - s->written) & MASK) : raw;
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 1024;
		s->v = realloc(s->v, s->cap * sizeof(*s->v));
	}
	s->v[s->n++] = (struct record){ .truth = s->now,
					.ts = s->text ? s->written / 1000 * 1000 : s->written,
					.reason = reason,
					.vcpu = vcpu };
}

/* A hypercall of the host that leaves another CNTVOFF behind. */
static inline void sim_hypercall(struct sim *s, int64_t offset)
{
	sim_record(s, "hvc", 0);
	pass(s, 2 * USEC);
	if (s->interrupt && !(rnd(s) % 10))
		pass(s, s->interrupt);
	s->offset = offset;
	pass(s, 2 * USEC);
	sim_record(s, "eret_host", 0);
	pass(s, 30 * USEC);
}

static inline void sim_run(struct sim *s, int vcpu)
{
	sim_record(s, "hvc", 0);
	pass(s, 5 * USEC);
	for (uint64_t i = rnd(s) % 3 + 1; i--;) {
		sim_record(s, "eret_guest", vcpu);
		pass(s, s->long_runs && !(rnd(s) % 100) ? 30 * SEC : 4 * MSEC);
		sim_record(s, "guest_exit", vcpu);
		pass(s, 5 * USEC);
	}
	sim_record(s, "eret_host", 0);
	pass(s, 50 * USEC);
}

static inline void sim_runs(struct sim *s, int vcpu)
{
	for (uint64_t i = rnd(s) % 6 + 1; i--;)
		sim_run(s, vcpu);
}

static inline void sim_span(struct sim *s, int vcpu, int64_t cntvoff)
{
	sim_hypercall(s, cntvoff);
	sim_runs(s, vcpu);
	sim_hypercall(s, 0);
}

/* The host alone: idle for up to 20 s, now and then. */
static inline void sim_host(struct sim *s)
{
	for (uint64_t i = rnd(s) % 4; i--;) {
		pass(s, s->busy || rnd(s) % 4 ? 3 * MSEC : 20 * SEC);
		sim_record(s, "host_abort", 0);
		pass(s, 3 * USEC);
		sim_record(s, "eret_host", 0);
		if (rnd(s) % 2) {
			pass(s, 3 * MSEC);
			sim_hypercall(s, s->offset);
		}
	}
	pass(s, 3 * MSEC);
}

/* Two vCPUs of each VM, the first two with pids 87 and 88, in any order. */
static inline void sim_guests(struct sim *s, const int64_t *cntvoff, size_t n_vms, int spans)
{
	for (int i = 0; i < spans; i++) {
		size_t vm = rnd(s) % n_vms;

		sim_host(s);
		sim_span(s, 87 + (int)(vm * 2 + rnd(s) % 2), cntvoff[vm]);
	}
	sim_host(s);
}

static inline void sim_free(struct sim *s)
{
	free(s->v);
}

/* When tracing was switched on and off is known, or not. */
#define UNBOUNDED false
#define BOUNDED	  true

/* One pass. Returns the largest error from record `from` on, and how many are off by more than ERROR_MAX. */
static inline int64_t sim_pass(const struct sim *s, struct nvhe *n, size_t from, size_t *wrong)
{
	int64_t max = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct record *r = &s->v[i];
		int64_t error;

		if (r->lost)
			nvhe_lost(n);
		error = llabs((int64_t)nvhe_time(n, r->ts, r->reason, r->vcpu) - r->truth);
		if (i >= from && error > max)
			max = error;
		if (wrong && i >= from)
			*wrong += error > ERROR_MAX;
	}
	return max;
}

/* n, which it frees, and another that has learnt from it: all passes but the last. */
static inline struct nvhe *sim_learn(const struct sim *s, struct nvhe *n, bool bounded,
				     void (*step)(void *ctx, const struct nvhe_step *s), void *ctx)
{
	if (bounded)
		nvhe_bounds(n, (uint64_t)s->v[0].truth, (uint64_t)s->v[s->n - 1].truth);
	for (int pass = 0; pass < 2; pass++) {
		struct nvhe *next;

		sim_pass(s, n, 0, NULL);
		next = nvhe_again(n, pass ? step : NULL, ctx);
		nvhe_free(n);
		n = next;
	}
	return n;
}

/* Repairs all of it. Returns the largest error from record `from` on. */
static inline int64_t worst(const struct sim *s, size_t from, bool bounded)
{
	struct nvhe *n = sim_learn(s, nvhe_new(NULL, NULL), bounded, NULL, NULL);
	int64_t max = sim_pass(s, n, from, NULL);

	nvhe_free(n);
	return max;
}

/* Cuts [from, to) out and marks the next record. */
static inline void sim_lose(struct sim *s, size_t from, size_t to)
{
	memmove(s->v + from, s->v + to, (s->n - to) * sizeof(*s->v));
	s->n -= to - from;
	if (from < s->n)
		s->v[from].lost = true;
}

#endif
