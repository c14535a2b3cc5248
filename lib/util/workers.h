/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CREW_H
#define HYPTRACE_CREW_H

#include <stddef.h>

/*
 * Threads for things of a kind, one for each, that are worked on at a time (the
 * guests of a recording). They live as long as the workers: those who must know of
 * every thread, such as a pid filter, ask once.
 */
struct workers;

typedef void workers_job(void *ctx, size_t i);

/* 0, -ENOMEM, -EAGAIN: no more threads. */
int workers_new(struct workers **out, size_t n);
/* Ends the threads; waits for a job that is being done. Takes NULL. */
void workers_free(struct workers *c);

/* Lets each thread do the job and returns at once. The job before must have been waited for. */
void workers_begin(struct workers *c, workers_job *job, void *ctx);
/* In the job, by thread i: it is so far. Stages count from 1. */
void workers_reach(struct workers *c, size_t i, int stage);
/* Until each of them is so far, or through. */
void workers_await(struct workers *c, int stage);
/* Until all are through. */
void workers_finish(struct workers *c);

#endif
