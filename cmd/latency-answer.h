/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_LATENCY_ANSWER_H
#define HYPTRACE_CMD_LATENCY_ANSWER_H

#include "ask/latency/latency.h"

/* The chains that a command line asks for. */
struct latency_question {
	const char *from, *to, *key, *preset;
	/* what they make */
	bool by_default; /* no key was given: the events' meaning chooses it; key NULL: none is common to both
			  */
	const struct latency_preset *found; /* NULL: --from, --to */
	char *fields[2];		    /* of --key FIELD=FIELD */
	struct event_words words[2];
	struct latency_term terms[2];
	struct latency_plan plan;
};

/* -EINVAL: a message was printed; -ENOMEM. To be released in any case. */
int latency_question_check(struct latency_question *o);
/* The plan for these files. */
void latency_question_open(struct latency_question *o, const struct inputs *in);
void latency_question_release(struct latency_question *o);

/* Question and result of hyptrace latency. */
struct latency_answer {
	const struct inputs *in;
	const struct latency_question *q;
	size_t rows; /* at most, for people */
	struct latency_result found;
	struct between *between; /* of each of the worst */
	struct histogram all;	 /* of all rows, whole chains */
};

#define LATENCY_ROW_NAME 128
/* The row's key as tables show it, in out. */
const char *latency_row_name(const struct latency_answer *l, const struct latency_row *row,
			     char out[LATENCY_ROW_NAME]);

struct log;
/* True, logged: of one point no event came at all, or (of --from and --to) is known: there are no chains. */
bool latency_answer_missing(const struct latency_answer *l, const struct log *log);
/* -ENOMEM: of what was kept for it. */
int latency_answer_tables(const struct latency_answer *l, struct answer *a);

#endif
