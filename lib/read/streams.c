// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs of records on every core, in no order: each thread takes from a CPU that no other one takes from. */
#include "read/streams.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "read/pipeline.h"
#include "util/workers.h"

struct streams {
	struct timeline *t;
	streams_job *work;
	void *ctx;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int result;
	size_t n, left; /* streams; those that have records left */
	enum { STREAM_FREE, STREAM_TAKEN, STREAM_OVER } state[];
};

/* A stream that is free, the same as before if it can be; n: there are none left. */
static size_t streams_lend(struct streams *s, size_t before)
{
	size_t found = s->n;

	pthread_mutex_lock(&s->lock);
	while (s->left && !s->result && found == s->n) {
		for (size_t i = 0; i < s->n && found == s->n; i++)
			if (s->state[(before + i) % s->n] == STREAM_FREE)
				found = (before + i) % s->n;
		if (found == s->n)
			pthread_cond_wait(&s->changed, &s->lock);
	}
	if (found < s->n)
		s->state[found] = STREAM_TAKEN;
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* ret: what taking from it said, or the work. */
static void streams_back(struct streams *s, size_t stream, int ret)
{
	pthread_mutex_lock(&s->lock);
	s->state[stream] = ret == 1 ? STREAM_FREE : STREAM_OVER;
	s->left -= ret != 1;
	if (ret < 0)
		s->result = ret;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void streams_end(struct streams *s, int ret)
{
	pthread_mutex_lock(&s->lock);
	s->result = ret;
	pthread_mutex_unlock(&s->lock);
}

static void streams_worker(void *ctx, size_t worker)
{
	struct streams *s = ctx;
	struct merge_run run = { 0 };
	size_t stream = worker;

	while ((stream = streams_lend(s, stream)) < s->n) {
		int ret = timeline_take_stream(s->t, stream, &run);

		streams_back(s, stream, ret);
		ret = ret == 1 ? s->work(s->ctx, &run, worker) : 0;
		if (ret)
			streams_end(s, ret);
	}
	merge_run_release(&run);
}

int streams_work(struct timeline *t, streams_job *work, void *ctx)
{
	size_t n = timeline_streams(t);
	struct streams *s = calloc(1, sizeof(*s) + n * sizeof(s->state[0]));
	int ret;

	if (!s)
		return -ENOMEM;
	*s = (struct streams){ .t = t, .work = work, .ctx = ctx, .n = n, .left = n };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	workers_share(pipeline_workers(), streams_worker, s);
	ret = s->result;
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return ret;
}
