/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VIEW_PRIV_H
#define HYPTRACE_VIEW_PRIV_H

#include "base/arena.h"
#include "base/json.h"
#include "convert/view/view.h"

/* Shared by the files of lib/convert/view. */

/*
 * Lanes: what runs on a CPU, the hypervisor's visits on a CPU, the states of a vCPU, waits of a guest's task,
 * spans that a program marks.
 */
enum view_kind { VIEW_CPU, VIEW_HYP, VIEW_VCPU, VIEW_TASK, VIEW_MARK };

struct view_lane {
	uint32_t kind;
	uint32_t input;	 /* its machine; of a vCPU the host */
	uint32_t number; /* of the CPU or the vCPU; UINT32_MAX: unknown; of marks: how many are around */
	uint32_t guest;	 /* of a vCPU: index of its guest's file; UINT32_MAX: not among the files */
	int32_t pid;	 /* of a vCPU and of marks: the thread; of a task: it; else 0 */
	uint32_t name;	 /* of a vCPU: its guest's name, a word; of marks: their client's */
	uint32_t spans, cells; /* their numbers, after the last one */
};

/* Meaning of a span; words are indices of view.words, 0: none. Spans of the same meaning share a label. */
struct view_label {
	uint32_t state, by, reason, class, task, other;
	int32_t pid, other_pid;
	uint32_t coarse;
};

/* A bound that is not known, and the greatest that is kept. */
#define VIEW_NO_BOUND  UINT32_MAX
#define VIEW_BOUND_MAX (UINT32_MAX - 1)

struct view_span {
	uint64_t from, to;
	uint32_t lane, label;
	uint32_t from_bound, to_bound; /* ns */
	uint32_t cpu;		       /* of a vCPU: its thread's; UINT32_MAX: unknown */
};

/* Sum of the spans of a label in a bucket that are too short to be kept. */
struct view_cell {
	uint32_t lane, bucket, label;
	uint32_t n;  /* spans that begin there */
	uint64_t ns; /* of their time what lies in the bucket */
};

#define VIEW_BUCKETS 1024

/* A stretch in which events of a buffer are missing on a CPU. */
struct view_loss {
	uint64_t from, to;
	uint64_t events;		     /* UINT64_MAX: some; 0: tracing was off */
	uint32_t input, buffer, cpu, stream; /* buffer: its name, a word */
	bool hyp;			     /* the hypervisor's events */
};

#define VIEW_LOSSES_MAX 20000 /* in a page */

#define VIEW_SEEN 256

/* All that the page shows. Zero-initialised = empty. */
struct view {
	bool full, bad;
	uint64_t from, to; /* of the records, ns of the host's clock */
	uint64_t width;	   /* of a bucket, ns */
	bool folded;	   /* spans up to `least` ns are summed */
	uint64_t least;
	uint64_t records;  /* that were read */
	uint32_t *rates;   /* records of each input in each bucket */
	uint64_t left_out; /* vCPUs and tasks beyond those that can be followed */
	struct arena texts;
	char **words; /* words[0]: "" */
	struct view_seen {
		const char *text;
		uint32_t word;
	} seen[VIEW_SEEN]; /* texts by their address */
	struct view_lane *lanes;
	struct view_label *labels;
	struct view_span *spans;
	struct view_cell *cells;
	struct view_loss *losses;
	size_t n_words, n_lanes, n_labels, n_spans, n_cells, n_losses;
	size_t spans_room;
	struct map by_word, by_lane, by_label, by_cell;
};

/* Collecting: view-spans.c. Calls return 0 or -ENOMEM. */

void view_release(struct view *v);
/* The bucket of a time. */
uint64_t view_bucket(const struct view *v, uint64_t ts);
/* The index of a word. Without memory v->bad, and view_add() fails. */
uint32_t view_word_of(struct view *v, const char *text);
/* The same of one that keeps its address and its text until the end; NULL: 0. */
uint32_t view_word(struct view *v, const char *text);
/* Adds a span of that lane and label, whose own indices are filled here. */
int view_add(struct view *v, const struct view_lane *lane, const struct view_label *label,
	     struct view_span span);
/* After the last span: orders all of it, and keeps VIEW_SPANS spans. */
int view_finish(struct view *v);

/* ---- the longest of each meaning: view-cases.c. Calls return 0 or -ENOMEM. */

/* A vCPU's or a guest's task's by its state; visits to the hypervisor are one more kind. */
enum { VIEW_CASE_TASK = STATES, VIEW_CASE_VISIT = 2 * STATES, VIEW_CASE_KINDS };

struct view_case {
	uint32_t kind;	      /* a state, of a task VIEW_CASE_TASK more */
	uint32_t input, cpu;  /* events there belong to it ... */
	uint32_t guest, vcpu; /* ... and there; UINT32_MAX: none */
	int32_t pid;
	bool waits; /* for a CPU: there is a chain of causes */
	uint64_t from, to;
};

struct view_cases; /* opaque */

/* Adds a part to the job's reading, after those that call view_cases_add(). view_cases_close takes NULL. */
int view_cases_open(struct view_cases **out, const struct view_job *job);
void view_cases_close(struct view_cases *c);
void view_cases_add(struct view_cases *c, const struct view_case *one);
/* After each run, and at the end: fills those whose events are all read. */
int view_cases_fill(struct view_cases *c, bool end);
/* Reads the files once more, for their events as text. */
int view_cases_texts(struct view_cases *c);
/* Writes "cases" of the page's head; times since the origin. */
void view_cases_head(struct view_cases *c, uint64_t origin, struct json *j);

/* The head and the columns: view-page.c. -ENOMEM. */
int view_columns_and_head(const struct view *v, const struct view_job *job, struct view_cases *cases,
			  struct buf *out);

#endif
