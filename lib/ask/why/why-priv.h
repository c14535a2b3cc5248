/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WHY_PRIV_H
#define HYPTRACE_WHY_PRIV_H

#include "ask/why/why.h"

/* The part of an instance from one of its points to the next. */
struct why_stage {
	uint64_t from, to, from_bound, to_bound; /* from: the first, for compare_u64 */
	uint32_t instance;
	bool pending; /* an interrupt is: the vCPU's guest does not know of it */
};

/*
 * Stages that wait for spans of one vCPU, task, or CPU of a guest. Spans come in order; stages that begin
 * before the last one's end are active.
 */
struct why_lane {
	struct why_stage *v; /* by begin */
	size_t n, next;
	struct why_stage *active;
	size_t n_active;
};

struct why {
	const struct inputs *in;
	const struct latency_preset *preset;
	const struct vcpu_map *vcpus;
	struct reading own;
	const struct steps *steps; /* of that reading or of another one; NULL: of none yet */
	uint64_t *widest;	   /* bound of each input; UINT64_MAX: it has none */
	struct why_instance *v;
	size_t n;
	uint64_t seen, stride; /* every stride-th was kept */
	size_t n_stretches;
	struct why_cause *causes;
	size_t n_causes;
	struct map by_cause;
	struct why_met {
		struct why_cause is;
		uint32_t cause;
	} met[256];		  /* by a hash: causes that were asked for */
	struct latency_keys keys; /* of lanes */
	struct why_lane *lanes;
	size_t n_lanes;
	uint32_t scopes; /* of their keys, a bit each */
};

/* Puts the instance's stages into the lanes of their subjects, to be sorted when all are placed. -ENOMEM. */
int why_stages_place(struct why *w, uint32_t instance);
void why_lanes_release(struct why *w);
/* A state_listener; ctx: struct why. -E2BIG, -ENOMEM. */
int why_stages_span(void *ctx, const struct state_span *s);

/* Reads the files once for the spans of owners (STATES_VCPUS ...). -ENOMEM, -errno, the listener's result. */
int why_states(struct why *w, unsigned int owners, state_listener *span, void *ctx);

/* Numbers of causes that are always there. */
enum { CAUSE_OTHERS, CAUSE_UNKNOWN, CAUSE_UNDECIDED, CAUSE_LOST };
/* Its number; beyond WHY_CAUSES_MAX that of others; UINT32_MAX: no memory. */
uint32_t why_cause_of(struct why *w, const struct why_cause *c);
/* A cause without further members. */
void why_cause_plain(struct why_cause *c, unsigned int kind);
void why_cause_span(const struct why *w, const struct state_span *s, bool pending, struct why_cause *out);

/* ---- findings ------------------------------------------------------------------------------------- */

#define FINDING_LEAST 0.01 /* of a vCPU's time */

/* Keeps the longer one. */
static inline void finding_stretch_take(struct finding_stretch *s, uint64_t from, uint64_t to)
{
	if (to - from > s->to - s->from)
		*s = (struct finding_stretch){ from, to };
}

struct finding_part {
	uint64_t ns, n; /* stretches, or exits */
	struct finding_stretch longest;
};

static inline void finding_part_add(struct finding_part *p, uint64_t from, uint64_t to)
{
	p->ns += to - from;
	p->n++;
	finding_stretch_take(&p->longest, from, to);
}

#define FINDING_RAN 256 /* a wait in which more spans of tasks began is counted in part */

/* A vCPU's time by cause; of STATE_HOST whole exits, with their time in the hypervisor and the firmware. */
struct finding_vcpu {
	struct state_owner owner;
	bool known;    /* at any time */
	uint64_t from; /* what came before does not count */
	uint64_t wall;
	struct finding_exit_open {
		uint64_t ns;	/* in the kernel and below since it left its guest, or woke up */
		uint32_t cause; /* its reason; 0: none yet */
		uint64_t vmm;	/* ns */
		bool halted;	/* the guest */
	} exit;
	struct finding_part open[2]; /* not known since it last was: nothing was lost, or events were */
	struct finding_part by[WHY_CAUSES_MAX];
	struct finding_part ordinary; /* of exits in no finding */
	struct finding_part part;     /* of what is summed up */
	struct finding_part moves;    /* to another CPU, with the waits for it */
	uint64_t waits;		      /* ns that it has waited for a CPU since it last ran */
	uint64_t since;		      /* the begin of these waits */
	uint32_t cpu;		      /* on which it ran */
	struct finding_ran {
		uint64_t from, to;
		uint64_t counted; /* until then of waits */
		int32_t pid;
	} ran[FINDING_RAN]; /* the guest's tasks that ran on it last */
	size_t n_ran;	    /* ever */
};

/* Time that a guest's task lost by a cause; of FINDING_WAITS: that it ran on CPU `other` while another one
 * waited. */
#define FINDING_WAITS UINT32_MAX
struct finding_task {
	uint32_t cause;
	uint32_t input; /* the guest's */
	int32_t pid, other;
	struct finding_part of;
};

struct finding_job {
	struct why *why;
	struct finding_vcpu *v;
	size_t n;
	size_t *places; /* of owners, by their index: 1 + that in v */
	size_t n_places;
	struct finding_task *tasks;
	size_t n_tasks;
	struct map by_task;
	const struct states *states;
	struct exits *exits;	    /* of what is covered */
	bool halts[WHY_CAUSES_MAX]; /* exits of that reason */
	/* exits that the kernel handles, and those after which the guest halts */
	struct histogram exits_of[2];
	struct finding_part vmm; /* its parts of exits */
	uint64_t price[2];	 /* ns of one: the median */
	struct tail *tails;
	struct findings *to;
};

/* The vCPU that is that CPU of the guest's file, and has known time; NULL: there is none. */
struct finding_vcpu *finding_vcpu_of(const struct finding_job *j, uint32_t guest, uint32_t cpu);
/* The vCPU of that thread in the host's file, likewise. */
struct finding_vcpu *finding_thread_of(const struct finding_job *j, uint32_t input, int32_t pid);
/*
 * Adds the vCPUs' parts up in f: what is beyond the price of those that are dear, and of a storm all. It is
 * on the vCPU that lost the greatest share of its time; share 0: none lost any. The parts are empty then.
 */
void finding_sum(const struct finding_job *j, struct finding *f, enum finding_class class);
/* Adds f, if its share is FINDING_LEAST, with these words, which are released. -ENOMEM. */
int finding_push(const struct finding_job *j, struct finding *f, struct buf *what);

/* Chains of presets from the host into a guest, read by a pass of the caller's. */
#define TAILS_MAX 4
struct tail; /* opaque, TAILS_MAX of them */

/* Those that the files have all events for. -ENOMEM. tails_close takes NULL. */
int tails_open(struct tail **out, struct reading *r);
void tails_close(struct tail *t);
/* After the pass: their findings. -ENOMEM. */
int tails_find(struct tail *t, const struct finding_job *j);

#endif
