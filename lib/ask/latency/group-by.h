/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_GROUP_BY_H
#define HYPTRACE_LATENCY_GROUP_BY_H

#include "ask/latency/chain.h"
#include "read/timeline.h"

/* Guests' vCPUs by host threads, over all files: guests have numbers from 0 on. */
struct vcpu_map; /* opaque */

#define VCPU_MAP_NOBODY UINT32_MAX

/* in: loaded, and outlives it. -ENOMEM. vcpu_map_close takes NULL. */
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

#endif
