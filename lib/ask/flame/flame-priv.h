/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_PRIV_H
#define HYPTRACE_FLAME_PRIV_H

#include "ask/flame/flame.h"
#include "ask/states/reading.h"
#include "read/filter.h"

/*
 * Names of functions in a file's stacks: by its kallsyms, with their modules, which libtraceevent does not
 * keep. By several threads at a time.
 */
struct flame_symbols {
	struct flame_symbol {
		uint64_t addr;
		const char *name;     /* the reader's, not NUL-ended */
		uint32_t len, module; /* of "[module]" behind it; 0: none */
	} * v;			      /* by address */
	size_t n;
};

/* info outlives it. Lines that make no sense are left out. -ENOMEM; it is to be released in any case. */
int flame_symbols_read(struct flame_symbols *s, const struct reader_info *info);
void flame_symbols_release(struct flame_symbols *s);

/*
 * The function that begins at or below the address, at most 1 MiB below: an index of v, or n: none.
 * Of several at one place it is the first in the file.
 */
size_t flame_symbols_find(const struct flame_symbols *s, uint64_t addr);
/* "func" or "func [module]" */
void flame_symbol_text(const struct flame_symbols *s, size_t symbol, struct buf *out);

/*
 * A file that processes ran, and the names of its functions: where this machine has the file at that path
 * with that build id, or debuginfod has it (DEBUGINFOD_URLS), and hyptrace was built with libdw.
 */
struct flame_elf;

struct flame_elf_key {
	const char *path;
	const uint8_t *id; /* its build id */
	size_t path_len, id_len;
};

struct flame_elf *flame_elf_new(const struct flame_elf_key *key); /* copies the key; NULL: out of memory */
void flame_elf_free(struct flame_elf *e);
bool flame_elf_is(const struct flame_elf *e, const struct flame_elf_key *key);
/* Appends "function", else "name+0x1234". offset: in the file, bytes. */
void flame_elf_text(struct flame_elf *e, uint64_t offset, struct buf *out);

/* Mappings of processes over time: a file's hyptrace:map records (record --profile), and its PROCMAPS. */
struct flame_maps {
	struct flame_mapped {
		uint64_t from, to, ts; /* ts: 0 of PROCMAPS */
		uint64_t offset;       /* in the file, of from; of PROCMAPS from its first mapping on */
		int32_t pid;
		struct flame_elf *elf; /* of all that are it; it is the maps' own */
	} * v;			       /* by pid, from, ts */
	size_t n;
	struct flame_elf **elves;
	size_t n_elves;
};

/* Adds a file's PROCMAPS. Lines that make no sense are left out. -ENOMEM. */
int flame_procmaps_read(struct flame_maps *m, const struct reader_info *info);
/* Of all inputs, which are loaded, into as many maps. -ENOMEM; they are to be released in any case. */
int flame_maps_read(struct flame_maps *v, const struct inputs *in);
void flame_maps_release(struct flame_maps *m);
/*
 * Appends what an address of a process is: by what was mapped there last before ts, else first after it, for
 * a sample may come before the maps were read. "function", where the file with that build id is found, else
 * "file+0x1234" with the offset in the file. False: nothing is known.
 */
bool flame_maps_text(const struct flame_maps *m, int64_t pid, uint64_t ts, uint64_t addr, struct buf *out);

/* Shared by the files of hyptrace flame: items are made of records on every core, then taken in order. */
enum flame_kind {
	FLAME_NONE,
	FLAME_KERNEL_STACK,
	FLAME_USER_STACK,
	FLAME_ARRAY,	/* a stack in an event's own field */
	FLAME_SAMPLE,	/* of record --profile */
	FLAME_ENTRY,	/* function_graph */
	FLAME_EXIT,	/* likewise */
	FLAME_FUNCTION, /* function, func_repeats */
	FLAME_HYP_FUNC,
	FLAME_HYP_RET,
	FLAME_TAIL /* the last record of a stream in the run, for what comes first in the next one */
};

struct flame_event {
	enum flame_kind kind;
	struct field_load pid, where; /* where: of the first address */
	struct field_load number;     /* callers, tgid, depth, or how often */
	struct field_load second;   /* another address: the function that was called; a sample's user stack */
	struct field_load from, to; /* of a call, ns */
	struct field_load mode, hz, comm; /* of a sample */
};

struct flame_address {
	uint64_t addr;
	uint32_t symbol; /* of the file's; UINT32_MAX: none */
};

#define FLAME_NO_TIME UINT64_MAX

struct flame_item {
	uint64_t ts, ns;   /* ns: of the call; FLAME_NO_TIME: unknown; a sample's period; 0: not fixed */
	uint64_t number;   /* depth, how often, or a sample's mode */
	uint32_t at;	   /* the record in the run */
	uint32_t first, n; /* addresses */
	uint32_t stream, cpu;
	int32_t pid, tgid;
	uint16_t input;
	uint8_t kind; /* flame_kind */
	bool cut;
	uint32_t before;  /* 1 + the record before in its stream, or the one that it describes; 0: not in this
			     run */
	bool after_stack; /* that one is a kernel's stack */
};

/* A run's. */
struct flame_items {
	struct flame_item *v;
	size_t n, room;
	struct flame_address *addresses;
	size_t n_addresses, room_addresses;
	uint32_t *last; /* by stream: 1 + the record before; 0: none in this run */
};

struct flame_call {
	uint64_t func, begin; /* begin: ns, when it was seen to begin */
	uint64_t inside;      /* ns that are not its own */
	uint32_t frame, depth;
};

/* A task; pid 0 on each CPU; or a CPU's hypervisor. */
struct flame_task {
	int64_t key;
	uint32_t input, frame, epoch;
	bool skip, idle;
	struct flame_task *host; /* the hypervisor's: the task that it works for */
	uint32_t cpu;		 /* likewise */
	struct visit visit;
	struct flame_places *places; /* of its samples */
	uint32_t within, stream;     /* of the visit: the frame above its reason; 0: it is not wanted */
	bool switched;		     /* the hypervisor's CPU: a sched_switch names the task that runs */
	int32_t runs;		     /* that task */
	uint32_t runs_by;	     /* the stream of that sched_switch */
	uint64_t away;		     /* ns, since when it does not run; 0: it does */
	const char *name; /* steps_comm() when its frame was made; another pointer: it is renamed */
	char comm[16];	  /* by its last sample; "": none since it was renamed */
	struct flame_call *calls;
	size_t n;
};

struct flame_stream {
	bool stack, match; /* of its last record */
	bool over;	   /* that was all */
	/* a kernel's stack that waits for the user's */
	bool waits, waits_match;
	struct flame_item item;
	uint32_t *names; /* from the outermost on */
	size_t n, room;
};

struct flame_input {
	const struct input *in;
	struct flame_symbols symbols;
	uint32_t *symbol_names;	    /* by symbol; 0: not asked for */
	struct flame_event *events; /* by id */
	size_t n_events;
	struct filter *filter;
	bool no_match;	/* none of its events passes the filter */
	uint32_t frame; /* of the machine */
	uint32_t epoch; /* goes up when events are lost */
	size_t side;
	bool skip, hyp_functions, switches, graph;
	bool switches_end; /* nothing comes any longer of the buffer with sched_switch */
	uint16_t switch_buffer;
};

struct flame {
	const struct timeline *t;
	const struct steps *steps;
	const struct log *log;
	struct flame_opts opts;
	struct flame_input *v;
	size_t n, n_streams;
	struct flame_stream *streams;
	const struct merge_run *run; /* the run of the items */
	uint64_t now;		     /* of the item that is taken */
	struct flame_maps *maps;     /* by input */
	struct flame_tree *tree;
	struct flame_task **tasks; /* each stays where it is */
	size_t n_tasks;
	struct map by_key; /* of the tasks */
	uint32_t *names;   /* of a stack, from the outermost on */
	struct buf text;
	struct flame_counts counts;
	const struct markers *spans; /* the reading's; NULL: they are not asked for */
	const struct states *states; /* likewise */
	struct state_totals totals;
};

/* items.c: finds the events of a file that have stacks. -ENOMEM. */
int flame_events_open(struct flame_input *in);
/* The part's work() and release(). */
int flame_items_work(void *ctx, struct pass_run *run);
void flame_items_free(void *own);

/* The task that has the frames, as it is called at ts. NULL: out of memory. flame_task_find makes none, NULL:
 * there is none. */
struct flame_task *flame_task_get(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu, uint64_t ts);
/* From ts on it is called that. -ENOMEM. */
int flame_task_called(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu, uint64_t ts,
		      const char comm[16]);
struct flame_task *flame_task_find(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu);
struct flame_task *flame_task_hyp(struct flame *f, uint32_t input, uint32_t cpu);
/* True if a name is wanted: none is listed, or a wildcard of the list has it. */
bool flame_listed(const struct strlist *l, const char *name);
/* Adds to a frame of a task, or to what is left out of idle ones. */
void flame_count(struct flame *f, const struct flame_task *t, uint32_t frame, enum flame_weight w,
		 uint64_t n);

/* The name of an address; pid: whose maps. -ENOMEM. */
int flame_name_of(struct flame *f, uint32_t input, int64_t pid, const struct flame_address *a, uint32_t *out);

/* A markers_listener, of a struct flame: a program's span. */
int flame_span(void *flame, const struct markers_span *span);

/* Place of a CPU when a sample came due. */
enum flame_place {
	PLACE_UNKNOWN, /* no visits, or no fixed rate: where perf books it */
	PLACE_HYP,
	PLACE_GUEST,
	PLACE_HOST,
	PLACE_UNDECIDED /* too close to a visit's edge, or events were lost */
};

/* The last visits of a CPU, and when its samples were taken. */
struct flame_places;

int flame_places_open(struct flame_task *t); /* once; -ENOMEM */
/* t: the CPU's hypervisor, whose places are open. *visit: the one that it was in, or came from last; not of
 * PLACE_UNKNOWN. */
enum flame_place flame_place(const struct flame *f, const struct flame_item *i, struct flame_task *t,
			     const struct span **visit);
/* Keeps a visit of the CPU that is over. -ENOMEM. */
int flame_visit_keep(struct flame_task *t, const struct span *visit);
void flame_visits_forget(struct flame_task *t);

/* calls.c. -ENOMEM. */
int flame_call_entry(struct flame *f, const struct flame_item *i, const struct flame_address *func);
int flame_call_exit(struct flame *f, const struct flame_item *i, const struct flame_address *func);
int flame_hyp_func(struct flame *f, const struct flame_item *i, const struct flame_address *func);
int flame_hyp_ret(struct flame *f, const struct flame_item *i, const struct flame_address *func);
int flame_call_step(struct flame *f, const struct step *s);

#endif
