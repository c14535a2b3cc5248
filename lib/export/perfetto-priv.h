/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PERFETTO_PRIV_H
#define HYPTRACE_PERFETTO_PRIV_H

#include "util/arena.h"
#include "export/perfetto.h"
#include "perfetto.pb-c.h"

/* Shared by perfetto.c and perfetto-*.c. Calls return 0, -ENOMEM or -errno of the file. */

/* ---- packets ---------------------------------------------------------------------- */

typedef Perfetto__Protos__TracePacket pf_packet;
#define PF_PACKET_INIT PERFETTO__PROTOS__TRACE_PACKET__INIT

struct pf_out {
	int fd;
	struct buf bytes; /* not yet written */
	uint8_t *packed;  /* room for a packet */
	size_t packed_size;
};

/* Appends a packet of that machine; sets its machine_id. */
int pf_put(struct pf_out *o, uint32_t machine, pf_packet *p);
/* Writes what is not written yet. */
int pf_flush(struct pf_out *o);
void pf_out_release(struct pf_out *o);

/* ---- what is kept by CPU or thread: perfetto-map.c ----------------------------------- */

/* Objects of structs that begin with this, by input, number and kind. */
struct pf_item {
	struct pf_item *next;
	size_t input;
	unsigned int number; /* a CPU, or a thread's id */
	unsigned int kind;
};

#define PF_BUCKETS 256

/* Zero-initialised = empty. */
struct pf_map {
	struct pf_item *v[PF_BUCKETS];
	size_t n;
};

/* NULL: there is none. */
void *pf_map_find(const struct pf_map *m, size_t input, unsigned int number, unsigned int kind);
/* A new one of that many bytes, zeroed but for its keys; the map's. NULL: out of memory. */
void *pf_map_add(struct pf_map *m, size_t size, size_t input, unsigned int number, unsigned int kind);
/* Calls fn with each; what it returns, if not 0, ends that. */
int pf_map_each(const struct pf_map *m, int (*fn)(void *ctx, void *item), void *ctx);
/* Frees all, each after release (NULL: nothing to release in it). */
void pf_map_release(struct pf_map *m, void (*release)(void *item));

/* ---- one export ------------------------------------------------------------------- */

/* What all parts share; each keeps its own in maps, by the numbers that are named there. */
struct perfetto {
	struct pf_out out;
	uint64_t last_uuid; /* of a track */
	const struct inputs *in;
	uint32_t *machines; /* by input; 0 is the host */
	const struct hypertrace_desc *desc;
	struct arena arena; /* for one record */
	bool begun;
	struct pf_map bundles; /* perfetto-ftrace.c: CPU */
	struct pf_map plans;   /* ... event's id */
	struct pf_map cpus;    /* perfetto-hyp.c: CPU */
	struct pf_map vcpus;   /* perfetto-vcpu.c: thread */
	struct pf_map threads; /* perfetto-marker.c: thread, enum pf_parent */
	struct pf_map parents; /* perfetto-track.c: the caller's, enum pf_parent */
};

/* ---- the kernels' events: perfetto-ftrace.c ----------------------------------------- */

/*
 * Adds to a bundle of its machine and CPU. Events that Perfetto has are written as it
 * has them, unless `generic`; others as names and values.
 */
int pf_ftrace_add(struct perfetto *pf, const struct timeline_record *r, bool generic);
/* Events were lost on the CPU before the next one. */
int pf_ftrace_lost(struct perfetto *pf, size_t input, unsigned int cpu);
int pf_ftrace_finish(struct perfetto *pf);
void pf_ftrace_release(struct perfetto *pf);

/* ---- tracks: perfetto-track.c ------------------------------------------------------- */

#define PF_ARGS_MAX 32

/* What a slice says beside its name; the texts are in the arena. */
struct pf_args {
	struct arena *arena;
	Perfetto__Protos__DebugAnnotation *v[PF_ARGS_MAX];
	size_t n; /* further ones are left out */
};

/* Tracks that hold others; in this order on a machine. */
enum pf_parent { PF_HYP, PF_GUEST, PF_CROSVM, PF_HYPERTRACE };

/* The track of that kind and number, made with this name when it is not there yet. */
int pf_parent(struct perfetto *pf, size_t input, unsigned int number, enum pf_parent kind, const char *name,
	      uint64_t *uuid);
/* A new track below parent, in the order of `rank`; *uuid is its number. */
int pf_track(struct perfetto *pf, size_t input, uint64_t parent, const char *name, int rank, uint64_t *uuid);
/* Begin and end of a slice, or a moment. name and category are valid UTF-8; args may be NULL. */
int pf_begin(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, const char *category,
	     const char *name, const struct pf_args *args);
int pf_end(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts);
int pf_instant(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, const char *category,
	       const char *name, const struct pf_args *args);

/* Append an argument; name is kept as a pointer, text is copied. */
void pf_arg_u64(struct pf_args *a, const char *name, uint64_t v);
void pf_arg_i64(struct pf_args *a, const char *name, int64_t v);
void pf_arg_hex(struct pf_args *a, const char *name, uint64_t v);
void pf_arg_text(struct pf_args *a, const char *name, const char *text, size_t len);
/* All of the event's fields, each called "EVENT.FIELD". */
void pf_arg_fields(struct pf_args *a, const struct timeline_record *r);
/* The word behind key in the event's text, in the arena; NULL: it is not there. */
const char *pf_word(struct arena *a, const struct timeline_record *r, const char *key);

/* ---- what is made of them ------------------------------------------------------------ */

/*
 * The hypervisor's time, by CPU: perfetto-hyp.c. Takes the events of the
 * hypervisor's instance and passes them on to pf_ftrace_add.
 */
int pf_hyp_record(struct perfetto *pf, const struct timeline_record *r);
int pf_hyp_lost(struct perfetto *pf, size_t input, unsigned int cpu);
int pf_hyp_finish(struct perfetto *pf);
void pf_hyp_release(struct perfetto *pf);
/* Why the hypervisor was entered or left: "hvc", in the arena; NULL: the event does not say. */
const char *pf_hyp_reason(struct arena *a, const struct timeline_record *r);

/* vCPUs, by host thread: perfetto-vcpu.c. Any record; only those of kvm and the hypervisor count. */
int pf_vcpus_record(struct perfetto *pf, const struct timeline_record *r);
/* Events of this file were lost, or it ended: what was going on is unknown from there on. */
int pf_vcpus_lost(struct perfetto *pf, size_t input);

/* What programs write into trace_marker, crosvm and hypertrace: perfetto-marker.c. Any record. */
int pf_marker_record(struct perfetto *pf, const struct timeline_record *r);

#endif
