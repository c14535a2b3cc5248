/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PFTRACE_PRIV_H
#define HYPTRACE_PFTRACE_PRIV_H

#include "base/decode/perfetto-events.h"
#include "base/map.h"
#include "base/protobuf.h"
#include "convert/import/import.h"
#include "record/marks/ring.h"

/*
 * Shared by pftrace.c, pftrace-*.c, and lib/convert/import/qemu*.c, whose events are those of a source that
 * describes them: protos/perfetto/trace of Perfetto's tree, as of v58, defines its messages.
 */

#define PFT_MACHINES	64	    /* in one trace */
#define PFT_SOURCES	16	    /* data sources of ftrace on a machine */
#define PFT_VALUES	64	    /* fields of an event */
#define PFT_KINDS	2048	    /* kinds of events of a machine */
#define PFT_PAGE	4096	    /* bytes, of the file's pages */
#define PFT_PACKET_MAX	(64u << 20) /* bytes, unpacked; Perfetto's own are below 1 MiB */
#define PFT_BUNDLE_MAX	(1u << 20)  /* events of a bundle; Perfetto's have some thousand */
#define PFT_TASK_BLOCKS 4096	    /* of 1024 tasks: PID_MAX_LIMIT */
#define PFT_SYMBOLS_MAX (32u << 20) /* bytes of symbols' names */

enum { PFT_SCHED_SWITCH = 4, PFT_SCHED_WAKING = 20 }; /* in FtraceEvent */

/* ---- events as records: pftrace-kind.c, pftrace-event.c ----- */

/* A field as a packet has it: of a message by its number, of a generic event by its name. */
struct pft_value {
	uint32_t number;
	const char *name; /* NULL: by number */
	size_t name_len;
	bool is_text, is_signed; /* is_signed: of a generic event's number */
	uint64_t v;
	const uint8_t *text;
	size_t len;
};

/* An event of a bundle. */
struct pft_item {
	uint64_t ts;
	uint32_t number, flags;
	int32_t pid;
	bool compact;
	size_t index;	     /* in the bundle; compact: in its arrays */
	const uint8_t *data; /* the event's message */
	size_t len;
};

/* A field of a record. */
struct pft_column {
	enum pft_how { PFT_NUMBER, PFT_CHARS, PFT_TEXT, PFT_REST } how;
	char type[32], name[64]; /* as a format file has them, but for [] of PFT_CHARS and PFT_REST */
	uint32_t number;	 /* in Perfetto's message; 0: none */
	unsigned int offset, size;
	bool is_signed, is_symbol;
};

/* A kind of event: what its records look like. */
struct pft_kind {
	char *system, *name;
	unsigned int id;
	bool is_hyp, is_switch;
	struct pft_column *v;
	size_t n;
	unsigned int size; /* of a record without its texts */
	struct {
		unsigned int comm, pid;
	} tasks[2]; /* columns */
	size_t n_tasks;
	char *print_fmt;
};

struct pft_kinds {
	struct pft_kind **v; /* v[i]->id is i + 1 */
	size_t n;
	struct map by_name;
	struct pft_kind *by_number[1024];
};

struct pft; /* one import */
struct pft_machine;

/*
 * The kind of events with these values, made if it is the first: by the format that --formats has, else by
 * the kernel's as the table knows it, if Perfetto kept all fields of that; else as a list of what it kept.
 * row: NULL if there is none. name: of a generic event. NULL: none can be made (*ret 0), or *ret is -errno.
 */
struct pft_kind *pft_kind(struct pft *p, struct pft_machine *m, const struct perfetto_event *row,
			  const char *name, size_t len, const struct pft_value *v, size_t n, int *ret);
/* The column of a value in the kind's records; NULL: none. */
const struct pft_column *pft_column(const struct pft_kind *k, const struct pft_value *v);
void pft_kinds_release(struct pft_kinds *k);
/* Appends the kind's format file. */
void pft_kind_text(const struct pft_kind *k, struct buf *out);

struct pft_source;
/*
 * A bundle's event into its buffer. v: its values, NULL: they are in the item. lost: whether events before
 * it were, of the host's [0] and of the hypervisor's [1]; false when the file has it. 0, also when it is left
 * out; -EBADMSG: it makes no sense; -errno.
 */
int pft_event(struct pft *p, struct pft_machine *m, struct pft_source *s, unsigned int cpu,
	      const struct pft_item *item, const struct pft_value *v, size_t n, bool lost[2]);

/* ---- bundles: pftrace-bundle.c ---------------------------------------------------------- */

/* -EBADMSG: it makes no sense. */
int pft_bundle(struct pft *p, struct pft_machine *m, struct pft_source *s, struct cursor c);

/* ---- machines: pftrace-machine.c --------------------------------------------------------- */

/* A CPU of a buffer. */
struct pft_cpu {
	struct page_writer w;
	struct pft_buffer *buffer;
	unsigned int cpu;
	uint64_t last; /* time of the last record, ns */
	/* the task since the last sched_switch of compact_sched; pid -1: unknown */
	int32_t pid, prio;
	char comm[16];
};

struct pft_buffer {
	struct pft_machine *machine;
	size_t number; /* in the spool */
	struct pft_cpu *cpus[PERFETTO_CPUS];
};

/* A data source, whose packets have a sequence of their own. */
struct pft_source {
	uint32_t sequence;
	uint64_t symbols;	     /* base of its symbols' numbers */
	struct perfetto_event *rows; /* of events that it describes itself; their texts are its own */
	size_t n_rows;
	bool is_hyp;		   /* it had events of the hypervisor */
	struct pft_buffer *buffer; /* of its others; NULL: it had none */
	struct pft_stats *stats;   /* by CPU; NULL: it had none */
};

struct pft_machine {
	uint32_t id;
	char *name; /* NULL: unknown */
	char *uname;
	const char *clock;
	struct spool *spool;
	struct pft_kinds kinds;
	struct pft_source sources[PFT_SOURCES];
	struct pft_buffer *top, *hyp; /* hyp: NULL until it has events */
	size_t n_sources, n_hosts, n_buffers;
	char (*tasks[PFT_TASK_BLOCKS])[16]; /* names of 1024 each */
	struct buf symbols;
	uint64_t n_symbols;    /* restarts of their numbers */
	uint64_t sched_buffer; /* the one with sched_switch */
	uint64_t events;
};

/* The machine with that number; the source of that sequence on it. NULL: *ret is -errno, which was logged. */
struct pft_machine *pft_machine(struct pft *p, uint32_t id, int *ret);
struct pft_source *pft_source(struct pft *p, struct pft_machine *m, uint32_t sequence, int *ret);
/* The CPU in the source's buffer, or in the hypervisor's. */
struct pft_cpu *pft_cpu(struct pft_machine *m, struct pft_source *s, bool hyp, unsigned int cpu, int *ret);
/* Marks a loss after the last record of each of the source's CPUs. */
int pft_source_lost(struct pft *p, struct pft_machine *m, struct pft_source *s);
/* An FtraceStats: the kernel's statistics of each CPU, as the trace began or ended. -EBADMSG, -ENOMEM. */
int pft_source_stats(struct pft_source *s, struct cursor c);
/* Symbols get other numbers from here on. */
void pft_source_symbols(struct pft_machine *m, struct pft_source *s);
/* A GenericEventDescriptor: an event that Perfetto had no message for. -EBADMSG, -ENOMEM. */
int pft_describe(struct pft_source *s, struct cursor c);
/* Of one whose texts are malloc'ed. */
void pft_row_free(struct perfetto_event *row);
/* The event with that number, by the table or by the source. */
const struct perfetto_event *pft_row_of(const struct pft_source *s, uint32_t number);
/* A task's name. weak: only if it has none. -ENOMEM. */
int pft_task_name(struct pft_machine *m, uint64_t pid, const void *name, size_t len, bool weak);
/* A symbol of the kernel by its number. */
void pft_symbol(struct pft_machine *m, const struct pft_source *s, uint64_t number, const void *name,
		size_t len);
/* The machine's file. */
int pft_machine_finish(struct pft *p, struct pft_machine *m, const char *output);
void pft_machine_free(struct pft_machine *m);

/* ---- one import: pftrace.c --------------------------------------------------------------- */

struct pft_left_out {
	char name[64]; /* or its number */
	uint64_t n;
};

struct pft {
	const struct pftrace_opts *o;
	const char *clock; /* of its machines; NULL: the trace has it */
	struct pftrace_result *result;
	struct strlist systems; /* of o->formats */
	struct pft_machine *machines[PFT_MACHINES];
	size_t n_machines;
	struct pft_left_out left_out[32];
	size_t n_left_out;
	struct pft_item *items; /* of one bundle */
	size_t room;
};

/* ---- what all imports share: import-capture.c, guess.c ----------------------------------------- */

#define IMPORT_PAGE 4096

/* A new trace id, and 64-bit kernels' description of records and of pages of IMPORT_PAGE bytes. */
int import_begin(struct spool *spool);

/* The print format of an event that hypervisors are known to have; NULL: it is not known. */
const char *import_known_print(const char *name);

/*
 * The begin of a trace's text in a line of *len bytes, and its length without the line's end in *len:
 * behind printk's "[   80.929138] ", if that is there. NULL: a message of the kernel.
 */
const char *import_trace_line(const char *line, size_t *len);

/* ---- QEMU's events: qemu.c, qemu-event.c ------------------------------------------------ */

/* The first words of the simple back end's file. */
#define SIMPLE_HEADER UINT64_MAX
#define SIMPLE_MAGIC  UINT64_C(0xf2b177cb0aa429b4)

/* An event, where it lies in the file. */
struct qemu_event {
	uint64_t ts; /* ns */
	const char *name;
	const uint8_t *args; /* text, or the simple back end's arguments */
	size_t name_len, args_len;
	uint32_t pid;  /* thread, or of the simple back end the process; 0: unknown */
	uint64_t lost; /* not 0: it is no event, but so many were lost here */
	uint64_t mark; /* of a doorbell: its client's number; 0: unknown, or no doorbell */
};

/* Describes the known events to the source. -ENOMEM. */
int qemu_describe(struct pft_source *s);
/* One of these, or NULL. */
const struct qemu_kind *qemu_kind_of(const char *name, size_t len);
/*
 * The item's number and values, at most PFT_VALUES of them in v: of a known event, of an ivshmem device's
 * doorbell, else of ftrace:print with all of the text (which is in buf, the caller's). simple: by the back
 * end. Returns how many values; 0: out of memory.
 */
size_t qemu_values(const struct qemu_event *e, bool simple, struct pft_item *item, struct pft_value *v,
		   struct buf *buf);
/* True if that is the doorbell. */
bool qemu_is_doorbell(const struct pft_item *item);
/* Values of a doorbell. */
enum { DOORBELL_CLIENT, DOORBELL_SEQ, DOORBELL_VCPU };
/* Makes the doorbell the mark that it announced, with all values. Returns how many. */
size_t qemu_mark_values(const struct ring_event *mark, const char *guest, struct pft_item *item,
			struct pft_value *v);

#endif
