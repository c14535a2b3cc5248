/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CREW_H
#define HYPTRACE_CREW_H

#include <stddef.h>

/*
 * Threads for things of a kind, one for each, that are worked on at a time (the
 * guests of a recording). They live as long as the crew: those who must know of
 * every thread, such as a pid filter, ask once.
 */
struct crew;

typedef void crew_job(void *ctx, size_t i);

/* 0, -ENOMEM, -EAGAIN: no more threads. */
int crew_new(struct crew **out, size_t n);
/* Ends the threads; waits for a job that is being done. Takes NULL. */
void crew_free(struct crew *c);

/* Lets each thread do the job and returns at once. The job before must have been waited for. */
void crew_begin(struct crew *c, crew_job *job, void *ctx);
/* In the job, by thread i: it is so far. Stages count from 1. */
void crew_reach(struct crew *c, size_t i, int stage);
/* Until each of them is so far, or through. */
void crew_await(struct crew *c, int stage);
/* Until all are through. */
void crew_finish(struct crew *c);

#endif
