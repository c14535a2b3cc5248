/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_STAT_PRIV_H
#define HYPTRACE_STAT_PRIV_H

#include "ask/states/reading.h"

/* Results of hyptrace stat, and the form to print them in: shared by stat.c and stat-*.c. */
struct stat_answer {
	const struct inputs *in;
	const struct steps *steps;
	const struct exits *exits; /* these three are the reading's */
	const struct markers *markers;
	struct states *states;
	struct counts counts;
	struct hyptime *hyp;
	struct samples samples;
	struct state_totals totals;
	struct tally tally;
	/* how */
	struct answer *out;
	size_t rows; /* of a table, at most */
	enum stat_per { STAT_ALL, STAT_GUEST, STAT_VCPU } per;
	bool by_count; /* rows of exits in the order of their number, not of their time */
	bool asked;    /* the table that is printed was named: it says why it is empty */
	int ret;       /* -ENOMEM */
};

/* ---- tables: columns are added one after the other ---------------------------------------- */

struct stat_table {
	struct stat_answer *of;
	struct answer_column columns[ANSWER_COLUMNS_MAX]; /* that are shown */
	bool shown[ANSWER_COLUMNS_MAX]; /* by column as it was added */
	size_t n, n_shown;
	size_t rows, left;   /* printed; not printed */
};

/* text: in text, too; else in JSON and CSV only. */
void stat_column(struct stat_table *t, const char *key, const char *title, enum answer_kind kind, bool text);
/* With a column for machines in front; people get it where the table has several. */
void stat_begin(struct stat_table *t, struct stat_answer *of, bool machines);
/*
 * Begins the table; false, and nothing is printed: it has no rows and was not asked for. why: what to say
 * when it was.
 */
bool stat_open(struct stat_table *t, const char *key, const char *title, size_t n_rows, const char *why);
/*
 * Prints a row, unless there are enough of them for people. cells: of all columns behind the machine's; those
 * for programs only are left out by themselves.
 */
void stat_row(struct stat_table *t, size_t input, const struct answer_cell *cells);
void stat_close(struct stat_table *t);

static inline bool stat_is_text(const struct stat_answer *s)
{
	return s->out->form == ANSWER_TEXT;
}

/* Print a table each; key: as --show names it. */
typedef void stat_print(struct stat_answer *s, const char *key);
stat_print stat_buffers, stat_lost, stat_events;			  /* stat-counts.c */
stat_print stat_exits, stat_hyp, stat_firmware, stat_spans, stat_longest; /* stat-times.c */
stat_print stat_vcpus, stat_tasks, stat_steal, stat_cpu;		  /* stat-states.c */

/* Kinds of spans, as tables name them. */
extern const char *const stat_whats[];
/* "Guest:0", "bash-7", in buf; NULL: no task. */
const char *stat_task_name(const struct stat_answer *s, size_t input, int32_t pid, char buf[STEPS_TASK_MAX]);

/* Tables of one file, as --show names them, into an answer. 0 or -errno, logged. */
struct stat_look {
	const char *path, *tables;
	enum stat_per per;
	bool by_count;
	size_t rows; /* 0: all */
};
int stat_look(const struct stat_look *look, struct answer *out, const struct log *log);

#endif
