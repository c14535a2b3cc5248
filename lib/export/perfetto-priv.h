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

/* ---- the kernels' events: perfetto-ftrace.c ----------------------------------------- */

/* Bundles of events by machine and CPU. */
struct pf_ftrace;

struct pf_ftrace *pf_ftrace_new(struct pf_out *out, const struct inputs *in,
				const uint32_t *machines); /* NULL: out of memory */
void pf_ftrace_free(struct pf_ftrace *f);
/*
 * Events that Perfetto knows are written as it knows them, unless `generic`;
 * others as names and values.
 */
int pf_ftrace_add(struct pf_ftrace *f, const struct timeline_record *r, bool generic);
/* Events were lost on the CPU before the next one. */
int pf_ftrace_lost(struct pf_ftrace *f, size_t input, unsigned int cpu);
int pf_ftrace_finish(struct pf_ftrace *f);

/* ---- tracks: perfetto-track.c ------------------------------------------------------- */

struct pf_tracks {
	struct pf_out *out;
	uint64_t last_uuid;
};

#define PF_ARGS_MAX 32

/* What a slice says beside its name; the texts are in the arena. */
struct pf_args {
	struct arena *arena;
	Perfetto__Protos__DebugAnnotation *v[PF_ARGS_MAX];
	size_t n; /* further ones are left out */
};

/* A new track below parent (0: none), in the order of `rank`; *uuid is its number. */
int pf_track(struct pf_tracks *t, uint32_t machine, uint64_t parent, const char *name, int rank,
	     uint64_t *uuid);
/* name and category are valid UTF-8. args may be NULL. */
int pf_begin(struct pf_tracks *t, uint32_t machine, uint64_t track, uint64_t ts, const char *category,
	     const char *name, const struct pf_args *args);
int pf_end(struct pf_tracks *t, uint32_t machine, uint64_t track, uint64_t ts);
int pf_instant(struct pf_tracks *t, uint32_t machine, uint64_t track, uint64_t ts, const char *category,
	       const char *name, const struct pf_args *args);

void pf_arg_u64(struct pf_args *a, const char *name, uint64_t v);
void pf_arg_i64(struct pf_args *a, const char *name, int64_t v);
void pf_arg_hex(struct pf_args *a, const char *name, uint64_t v);
void pf_arg_text(struct pf_args *a, const char *name, const char *text, size_t len);
/* All of the event's fields, each called "EVENT.FIELD". */
void pf_arg_fields(struct pf_args *a, const struct timeline_record *r);

/* ---- what is made of them ------------------------------------------------------------ */

/* What the parts share. */
struct pf {
	struct pf_out out;
	struct pf_tracks tracks;
	struct pf_ftrace *ftrace;
	const struct inputs *in;
	uint32_t *machines; /* by input; 0 is the host */
	struct arena arena; /* for one record */
};

/*
 * The hypervisor's time, by CPU: perfetto-hyp.c. Takes the events of the
 * hypervisor's instance and passes them on to pf_ftrace.
 */
struct pf_hyp;
struct pf_hyp *pf_hyp_new(struct pf *pf);
void pf_hyp_free(struct pf_hyp *h);
int pf_hyp_record(struct pf_hyp *h, const struct timeline_record *r);
int pf_hyp_lost(struct pf_hyp *h, size_t input, unsigned int cpu);
int pf_hyp_finish(struct pf_hyp *h);
/* Why the hypervisor was entered or left: "hvc", in the arena; NULL: the event does not say. */
const char *pf_hyp_reason(struct arena *a, const struct timeline_record *r);

/* vCPUs, by host thread: perfetto-vcpu.c. */
struct pf_vcpus;
struct pf_vcpus *pf_vcpus_new(struct pf *pf);
void pf_vcpus_free(struct pf_vcpus *v);
/* Any record; only those of kvm and of the hypervisor count. */
int pf_vcpus_record(struct pf_vcpus *v, const struct timeline_record *r);
/* Events of this file were lost: what was going on is unknown from there on. */
void pf_vcpus_lost(struct pf_vcpus *v, size_t input);

/* What programs write into trace_marker, crosvm and hypertrace: perfetto-marker.c. */
struct pf_marker;
struct pf_marker *pf_marker_new(struct pf *pf, const struct hypertrace_desc *desc);
void pf_marker_free(struct pf_marker *m);
int pf_marker_record(struct pf_marker *m, const struct timeline_record *r);

#endif
