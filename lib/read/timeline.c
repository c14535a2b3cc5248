// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of several files with their events and tasks: one after the other in the order of time, or in runs
 * on every core, given back in order where that is wanted. */
#include "read/timeline.h"

#include <pthread.h>
#include <sched.h>

#include "base/workers.h"

const struct known_event *timeline_event(const struct timeline *t, const struct merge_record *m,
					 unsigned int *id)
{
	*id = timeline_id(m);
	return m->len < 2 ? NULL : input_event(&t->in->v[merge_stream(t->merge, m)->input], *id);
}

int timeline_pid(const struct field_load *pid, const struct merge_record *m)
{
	uint64_t v;

	return pid->kind == FIELD_NUMBER && field_load_number(pid, m->data, m->len, &v) ? (int)(int32_t)v
											: -1;
}

void timeline_fill(const struct timeline *t, const struct merge_record *m, struct padded *room,
		   struct timeline_record *r)
{
	const struct merge_stream *s = merge_stream(t->merge, m);
	const struct input *in = &t->in->v[s->input];
	const struct known_event *e;

	*r = (struct timeline_record){ .m = m,
				       .input = s->input,
				       .in = in,
				       .buffer = &reader_info(in->reader)->buffers[s->buffer],
				       .index = s->index,
				       .cpu = s->cpu,
				       .ts = m->ts,
				       .raw = m->raw,
				       .missed = m->missed };
	e = timeline_event(t, m, &r->id);
	r->pid = e ? timeline_pid(&e->pid, m) : -1;
	if (m->len) {
		r->tep = padded_record(room, m->data, m->len);
		r->tep.ts = m->ts;
		r->tep.missed_events = m->missed;
		r->tep.cpu = (int)s->cpu;
	}
	if (!e)
		return;
	r->event = e->event;
	r->hyp = e->hyp;
	if (r->tep.size < e->least)
		r->tep.size = e->least;
}

int timeline_next(struct timeline *t, struct timeline_record *r)
{
	if (t->next == t->run.n) {
		int ret = merge_take(t->merge, &t->run);

		t->next = 0;
		if (ret != 1)
			return ret;
	}
	timeline_fill(t, &t->run.v[t->next++], &t->room, r);
	return 1;
}

int timeline_ahead(const struct timeline *t, const struct merge_run *run, size_t i, struct merge_record *next)
{
	const struct merge_stream *s = merge_stream(t->merge, &run->v[i]);

	while (++i < run->n) {
		const struct merge_stream *other = merge_stream(t->merge, &run->v[i]);

		if (other->input == s->input && other->buffer == s->buffer) {
			*next = run->v[i];
			return 1;
		}
	}
	return merge_ahead(t->merge, s->input, s->buffer, next);
}

int timeline_open(struct timeline **out, const struct inputs *in, merge_want *want, void *ctx,
		  const struct log *log)
{
	struct timeline *t = calloc(1, sizeof(*t));
	int ret = -ENOMEM;

	if (!t)
		return ret;
	t->in = in;
	t->v = calloc(in->n + 1, sizeof(*t->v));
	if (!t->v || padded_init(&t->room))
		goto fail;
	for (size_t i = 0; i < in->n; i++)
		t->v[i] = (struct merge_input){ in->v[i].path, in->v[i].reader, in->v[i].time, in->from,
						in->to };
	ret = merge_open(&t->merge, t->v, in->n, want, ctx, log);
	if (ret)
		goto fail;
	merge_damage_known(t->merge, in->damaged);
	*out = t;
	return 0;
fail:
	timeline_close(t);
	return ret;
}

void timeline_close(struct timeline *t)
{
	if (!t)
		return;
	merge_run_release(&t->run);
	merge_close(t->merge);
	padded_release(&t->room);
	free(t->v);
	free(t);
}

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

/* NULL: there are no more. */
static struct slot *take(struct pipeline *p)
{
	struct slot *s;
	bool more;
	int ret;

	pthread_mutex_lock(&p->taking);
	/* until the run that the slot had is given back */
	pthread_mutex_lock(&p->lock);
	while (p->taken - p->given == p->n && !p->over)
		pthread_cond_wait(&p->given_back, &p->lock);
	s = p->over ? NULL : &p->slots[p->taken % p->n];
	pthread_mutex_unlock(&p->lock);
	if (s) {
		ret = merge_take(p->t->merge, &s->run.records);
		more = ret == 1;
		s->run.out.len = 0;
		if (more)
			ret = p->job->before ? p->job->before(p->ctx, &s->run) : 0;
		if (ret || !more) {
			pthread_mutex_lock(&p->lock);
			p->over = true;
			p->ret = ret;
			pthread_mutex_unlock(&p->lock);
			s = NULL;
		} else {
			p->taken++;
		}
	}
	pthread_mutex_unlock(&p->taking);
	return s;
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
		ret = next->ret;
		pthread_mutex_unlock(&p->lock);
		ret = ret ?: p->job->after(p->ctx, &next->run);
		pthread_mutex_lock(&p->lock);
		next->done = false;
		p->given++;
		if (ret) {
			p->result = ret;
			p->over = true;
		}
		pthread_cond_broadcast(&p->given_back);
		p->giving = false;
	}
	pthread_mutex_unlock(&p->lock);
}

static void pipeline_worker(void *ctx, size_t worker)
{
	struct pipeline *p = ctx;
	struct slot *s;

	while ((s = take(p))) {
		s->run.worker = worker;
		give(p, s, p->job->work(p->ctx, &s->run));
	}
}

int pipeline_work(struct timeline *t, const struct pipeline_job *job, void *ctx)
{
	size_t n = pipeline_workers();
	struct pipeline *p = calloc(1, sizeof(*p) + 2 * n * sizeof(p->slots[0]));
	int ret;

	if (!p)
		return -ENOMEM;
	p->t = t;
	p->job = job;
	p->ctx = ctx;
	p->n = 2 * n;
	pthread_mutex_init(&p->taking, NULL);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->given_back, NULL);
	workers_share(n, pipeline_worker, p);
	ret = p->result ? p->result : p->ret;
	for (size_t i = 0; i < p->n; i++) {
		struct pipeline_run *run = &p->slots[i].run;

		merge_run_release(&run->records);
		buf_release(&run->out);
		if (run->own)
			job->release(run->own);
	}
	pthread_cond_destroy(&p->given_back);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->taking);
	free(p);
	return ret;
}

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
static size_t streams_acquire(struct streams *s, size_t before)
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

static void streams_worker(void *ctx, size_t worker)
{
	struct streams *s = ctx;
	struct merge_run run = { 0 };
	size_t stream = worker;

	while ((stream = streams_acquire(s, stream)) < s->n) {
		int ret = merge_take_stream(s->t->merge, stream, &run);

		pthread_mutex_lock(&s->lock);
		s->state[stream] = ret == 1 ? STREAM_FREE : STREAM_OVER;
		s->left -= ret != 1;
		if (ret < 0)
			s->result = ret;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		ret = ret == 1 ? s->work(s->ctx, &run, worker) : 0;
		if (!ret)
			continue;
		pthread_mutex_lock(&s->lock);
		s->result = ret;
		pthread_mutex_unlock(&s->lock);
	}
	merge_run_release(&run);
}

int streams_work(struct timeline *t, streams_job *work, void *ctx)
{
	size_t n = merge_streams(t->merge);
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
