// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads that do a job side by side, each for one thing. */
#include "base/workers.h"

#include <limits.h>
#include <pthread.h>

#define THROUGH INT_MAX /* the stage of one that has nothing to do */

struct member {
	struct workers *workers;
	pthread_t thread;
	int stage;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	workers_job *job;
	void *ctx;
	bool over;
	size_t n;
	struct member v[];
};

static void *worker_main(void *arg)
{
	struct member *m = arg;
	struct workers *c = m->workers;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		workers_job *job;
		void *ctx;

		while (m->stage == THROUGH && !c->over)
			pthread_cond_wait(&c->changed, &c->lock);
		if (m->stage == THROUGH)
			break;
		job = c->job;
		ctx = c->ctx;
		pthread_mutex_unlock(&c->lock);
		job(ctx, (size_t)(m - c->v));
		pthread_mutex_lock(&c->lock);
		m->stage = THROUGH;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int workers_new(struct workers **out, size_t n)
{
	struct workers *c = calloc(1, sizeof(*c) + n * sizeof(c->v[0]));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	for (; c->n < n; c->n++) {
		struct member *m = &c->v[c->n];
		int error;

		*m = (struct member){ .workers = c, .stage = THROUGH };
		error = pthread_create(&m->thread, NULL, worker_main, m);
		if (error) {
			workers_free(c);
			return -error;
		}
	}
	*out = c;
	return 0;
}

void workers_free(struct workers *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < c->n; i++)
		pthread_join(c->v[i].thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void workers_begin(struct workers *c, workers_job *job, void *ctx)
{
	pthread_mutex_lock(&c->lock);
	c->job = job;
	c->ctx = ctx;
	for (size_t i = 0; i < c->n; i++)
		c->v[i].stage = 0;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void workers_reach(struct workers *c, size_t i, int stage)
{
	pthread_mutex_lock(&c->lock);
	c->v[i].stage = stage;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void workers_await(struct workers *c, int stage)
{
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n; i++)
		while (c->v[i].stage < stage)
			pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void workers_finish(struct workers *c)
{
	workers_await(c, THROUGH);
}

void workers_share(size_t n, workers_job *job, void *ctx)
{
	struct workers *others = NULL;

	if (n > 1 && !workers_new(&others, n - 1))
		workers_begin(others, job, ctx);
	job(ctx, n - 1);
	if (others)
		workers_finish(others);
	workers_free(others);
}

struct workers *workers_beside(workers_job *job, void *ctx)
{
	struct workers *c = NULL;

	if (workers_new(&c, 1))
		job(ctx, 0);
	else
		workers_begin(c, job, ctx);
	return c;
}

static pthread_mutex_t errands_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t errands_changed = PTHREAD_COND_INITIALIZER;
static struct errand *errands; /* those that wait */

void errand_begin(struct errand *e, void (*job)(void *ctx), void *ctx)
{
	pthread_mutex_lock(&errands_lock);
	*e = (struct errand){ job, ctx, errands, ERRAND_WAITS };
	__atomic_store_n(&errands, e, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&errands_lock);
}

/* With the lock; e waits. */
static void errand_do(struct errand *e)
{
	struct errand **at = &errands;

	while (*at != e)
		at = &(*at)->next;
	__atomic_store_n(at, e->next, __ATOMIC_RELAXED);
	e->state = ERRAND_RUNS;
	pthread_mutex_unlock(&errands_lock);
	e->job(e->ctx);
	pthread_mutex_lock(&errands_lock);
	e->state = ERRAND_NONE;
	pthread_cond_broadcast(&errands_changed);
}

void errand_finish(struct errand *e)
{
	pthread_mutex_lock(&errands_lock);
	if (e->state == ERRAND_WAITS)
		errand_do(e);
	while (e->state == ERRAND_RUNS)
		pthread_cond_wait(&errands_changed, &errands_lock);
	pthread_mutex_unlock(&errands_lock);
}

bool errands_help(void)
{
	bool any = __atomic_load_n(&errands, __ATOMIC_RELAXED);

	if (!any)
		return false;
	pthread_mutex_lock(&errands_lock);
	any = errands;
	if (any)
		errand_do(errands);
	pthread_mutex_unlock(&errands_lock);
	return any;
}

void *cache_lines_new(size_t n, size_t size)
{
	size_t bytes = (n * size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *v = aligned_alloc(CACHE_LINE, bytes);

	return v ? memset(v, 0, bytes) : NULL;
}
