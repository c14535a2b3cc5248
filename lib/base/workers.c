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

/* Places of errands that nobody has begun yet. The thread that takes one out of its place does it. */
#define PLACES 64
static struct errand *_Atomic places[PLACES];
static atomic_uint waiting; /* of them */
static pthread_mutex_t errands_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t errands_done = PTHREAD_COND_INITIALIZER;

static bool errand_take(struct errand *e, size_t place)
{
	bool mine = atomic_compare_exchange_strong(&places[place], &(struct errand *){ e }, NULL);

	waiting -= mine;
	return mine;
}

void errand_begin(struct errand *e, void (*job)(void *ctx), void *ctx)
{
	e->job = job;
	e->ctx = ctx;
	e->state = ERRAND_BEGUN;
	waiting++;
	for (e->place = 0; e->place < PLACES; e->place++)
		if (!places[e->place] &&
		    atomic_compare_exchange_strong(&places[e->place], &(struct errand *){ NULL }, e))
			return;
	waiting--; /* it is left for errand_finish() */
}

static bool errand_take_back(struct errand *e)
{
	bool mine = e->state && (e->place == PLACES || errand_take(e, e->place));

	if (mine)
		e->state = ERRAND_NONE;
	return mine;
}

/* Waits for the thread that does it. */
static void errand_await(struct errand *e)
{
	if (!e->state)
		return;
	pthread_mutex_lock(&errands_lock);
	if (atomic_compare_exchange_strong(&e->state, &(enum errand_state){ ERRAND_BEGUN }, ERRAND_AWAITED))
		while (e->state)
			pthread_cond_wait(&errands_done, &errands_lock);
	pthread_mutex_unlock(&errands_lock);
}

void errand_finish(struct errand *e)
{
	if (errand_take_back(e))
		e->job(e->ctx);
	else
		errand_await(e);
}

void errand_drop(struct errand *e)
{
	if (!errand_take_back(e))
		errand_await(e);
}

bool errands_help(void)
{
	for (size_t i = 0; i < PLACES && waiting; i++) {
		struct errand *e = places[i];

		if (!e || !errand_take(e, i))
			continue;
		e->job(e->ctx);
		if (atomic_exchange(&e->state, ERRAND_NONE) == ERRAND_AWAITED) {
			pthread_mutex_lock(&errands_lock);
			pthread_cond_broadcast(&errands_done);
			pthread_mutex_unlock(&errands_lock);
		}
		return true;
	}
	return false;
}

bool errands_wait(void)
{
	return waiting;
}

/* Of this thread. */
static size_t pool_first(void)
{
	static atomic_size_t threads;
	static _Thread_local size_t number;

	if (!number)
		number = ++threads;
	return number;
}

void *pool_take(struct pool *p)
{
	size_t first = pool_first();
	void *thing = NULL;

	for (size_t i = 0; i < POOL_MAX && !thing; i++)
		thing = atomic_exchange(&p->v[(first + i) % POOL_MAX], NULL);
	return thing;
}

void *pool_put(struct pool *p, void *thing)
{
	size_t first = pool_first();

	for (size_t i = 0; i < POOL_MAX && thing; i++)
		thing = atomic_exchange(&p->v[(first + i) % POOL_MAX], thing);
	return thing;
}

void *cache_lines_new(size_t n, size_t size)
{
	size_t bytes = (n * size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *v = aligned_alloc(CACHE_LINE, bytes);

	return v ? memset(v, 0, bytes) : NULL;
}
