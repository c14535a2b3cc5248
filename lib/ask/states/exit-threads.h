/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXIT_THREADS_H
#define HYPTRACE_EXIT_THREADS_H

#include "ask/states/gaps.h"
#include "ask/states/steps.h"

/* A thread in a buffer. */
struct exit_thread {
	uint32_t buffer; /* as gaps_buffer() */
	int32_t pid;
	struct exit_side side;
};

/* Exits of all threads. A loss on any CPU of a buffer may be of any of its threads. */
struct exit_threads {
	struct gaps gaps;
	struct exit_thread *v;
	size_t n;
	struct map by_thread;
};

/* 1: *done is over by that step, row: its record as the caller counts; 0; -ENOMEM. Takes STEP_GAP, too. */
int exit_threads_step(struct exit_threads *e, const struct step *s, uint64_t row, struct span *done);
void exit_threads_release(struct exit_threads *e);

#endif
