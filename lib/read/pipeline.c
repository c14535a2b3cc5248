// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs of records on every core: taken in order, worked on side by side, given back in order. */
#include "read/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "util/workers.h"

#define WORKERS_MAX 16

struct slot {
	struct pipeline_run run;
	bool done; /* waits to be given back */
	int ret;
};

struct pipeline {
	struct timeline *t;
	const struct pipeline_job *job;
	void *ctx;
	/* who holds it takes the next run */
	pthread_mutex_t taking;
	uint64_t taken; /* runs */
	/* the rest */
	pthread_mutex_t lock;
	pthread_cond_t given_back;
	uint64_t given;	 /* runs */
	bool giving;	 /* somebody is */
	bool over;	 /* no more are taken */
	int ret, result; /* of what was taken last; of the whole */
	size_t n;
	struct slot slots[];
};

size_t pipeline_workers(void)
{
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);

	return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (size_t)n;
}

/* The slot of the next run once the run that it had is given back; NULL: no more are taken. */
static struct slot *slot_wait(struct pipeline *p)
{
	bool over;

	pthread_mutex_lock(&p->lock);
	while (p->taken - p->given == p->n && !p->over)
		pthread_cond_wait(&p->given_back, &p->lock);
	over = p->over;
	pthread_mutex_unlock(&p->lock);
	return over ? NULL : &p->slots[p->taken % p->n];
}

static void pipeline_end(struct pipeline *p, int ret)
{
	pthread_mutex_lock(&p->lock);
	p->over = true;
	p->ret = ret;
	pthread_mutex_unlock(&p->lock);
}

static int fill(struct pipeline *p, struct pipeline_run *run, bool *more)
{
	int ret = timeline_take(p->t, &run->records);

	*more = ret == 1;
	run->out.len = 0;
	return ret == 1 && p->job->before ? p->job->before(p->ctx, run) : ret < 0 ? ret : 0;
}

/* NULL: there are no more. */
static struct slot *take(struct pipeline *p)
{
	struct slot *s;
	bool more;
	int ret;

	pthread_mutex_lock(&p->taking);
	s = slot_wait(p);
	if (s) {
		ret = fill(p, &s->run, &more);
		if (ret || !more) {
			pipeline_end(p, ret);
			s = NULL;
		} else {
			p->taken++;
		}
	}
	pthread_mutex_unlock(&p->taking);
	return s;
}

/* With the lock held, which it lets go of meanwhile. */
static void give_one(struct pipeline *p, struct slot *s)
{
	int ret = s->ret;

	pthread_mutex_unlock(&p->lock);
	if (!ret)
		ret = p->job->after(p->ctx, &s->run);
	pthread_mutex_lock(&p->lock);
	s->done = false;
	p->given++;
	if (ret) {
		p->result = ret;
		p->over = true;
	}
	pthread_cond_broadcast(&p->given_back);
}

/* This one is done: all that are done and whose turn it is are given back, unless somebody is at it. */
static void give(struct pipeline *p, struct slot *s, int ret)
{
	pthread_mutex_lock(&p->lock);
	s->ret = ret;
	s->done = true;
	while (!p->giving && !p->result) {
		struct slot *next = &p->slots[p->given % p->n];

		if (!next->done)
			break;
		p->giving = true;
		give_one(p, next);
		p->giving = false;
	}
	pthread_mutex_unlock(&p->lock);
}

static void work(void *ctx, size_t worker)
{
	struct pipeline *p = ctx;
	struct slot *s;

	while ((s = take(p))) {
		s->run.worker = worker;
		give(p, s, p->job->work(p->ctx, &s->run));
	}
}

static struct pipeline *pipeline_new(struct timeline *t, const struct pipeline_job *job, void *ctx, size_t n)
{
	struct pipeline *p = calloc(1, sizeof(*p) + n * sizeof(p->slots[0]));

	if (!p)
		return NULL;
	p->t = t;
	p->job = job;
	p->ctx = ctx;
	p->n = n;
	pthread_mutex_init(&p->taking, NULL);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->given_back, NULL);
	return p;
}

static void pipeline_free(struct pipeline *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct pipeline_run *run = &p->slots[i].run;

		merge_run_release(&run->records);
		buf_release(&run->out);
		if (run->own)
			p->job->release(run->own);
	}
	pthread_cond_destroy(&p->given_back);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->taking);
	free(p);
}

int pipeline_work(struct timeline *t, const struct pipeline_job *job, void *ctx)
{
	size_t n = pipeline_workers();
	struct pipeline *p = pipeline_new(t, job, ctx, 2 * n);
	int ret;

	if (!p)
		return -ENOMEM;
	workers_share(n, work, p);
	ret = p->result ? p->result : p->ret;
	pipeline_free(p);
	return ret;
}
