// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of several files with their events and tasks: one after the other in the order of time, or in runs
 * on every core, given back in order where that is wanted. */
#include "read/timeline.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

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
	if (r->tep.size < e->least)
		r->tep.size = e->least;
}

int timeline_next(struct timeline *t, struct timeline_record *r)
{
	if (t->next == t->run.n) {
		int ret = padded_init(&t->room) ?: merge_take(t->merge, &t->run);

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
	if (!t->v)
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

size_t pipeline_workers(void)
{
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);

	return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (size_t)n;
}

/* A thread's runs, which it alone works on: what one core wrote costs another more to read than to make. */
struct worker {
	OWN_LINE struct slot {
		struct pipeline_run run;
		size_t number; /* of the run */
		size_t left;   /* calls of first() and finish() that must come before after() */
		int ret;       /* of work(), first() and finish() */
	} slots[PIPELINE_SLOTS];
	size_t first, begun, taken; /* slots from first to taken are in use; modulo the number of slots */
	/* a thread that found nothing to do rests until another wakes it for what it can do */
	OWN_LINE atomic_uint wakes;
	_Atomic enum rests { RESTS_NOT, RESTS_FULL, RESTS_FREE } rests; /* without or with a free slot */
	sem_t woken;
};

struct pipeline {
	struct timeline *t;
	const struct pipeline_job *job;
	void *ctx;
	atomic_uint idle;	 /* threads that rest */
	size_t taken;		 /* runs, by the thread that is taking */
	atomic_bool taking;	 /* somebody is */
	atomic_bool ended, over; /* no more are taken; nothing more is done */
	struct turn {
		OWN_LINE atomic_size_t run; /* whose turn it is */
	} firsts[PIPELINE_FIRSTS_MAX], after;
	int ret;					    /* of what was taken last */
	int result;					    /* of the whole */
	size_t slots;					    /* of a thread */
	size_t n;					    /* threads */
	atomic_size_t owners[WORKERS_MAX * PIPELINE_SLOTS]; /* the thread of a run, modulo their number */
	struct worker workers[];
};

/*
 * Waits until it is woken once more than that, or records can be taken. Nothing is missed: wakes are counted
 * before `rests` is read, and read before a thread looks for something to do.
 */
static void worker_rest(struct pipeline *p, struct worker *w, unsigned int wakes)
{
	bool full = w->taken - w->first == p->slots;

	p->idle++;
	w->rests = full ? RESTS_FULL : RESTS_FREE;
	if (w->wakes == wakes && (full || p->taking || p->ended))
		sem_wait(&w->woken); /* that may end early: the thread looks again */
	w->rests = RESTS_NOT;
	p->idle--;
}

static void worker_wake(struct worker *w)
{
	w->wakes++;
	if (atomic_exchange(&w->rests, RESTS_NOT))
		sem_post(&w->woken);
}

/* RESTS_FULL: wakes a thread that rests; RESTS_FREE: one that has a free slot; RESTS_NOT: all threads. */
static void pipeline_wake(struct pipeline *p, enum rests rests)
{
	for (size_t i = 0; i < p->n; i++) {
		if (rests > p->workers[i].rests)
			continue;
		worker_wake(&p->workers[i]);
		if (rests)
			break;
	}
}

/* Calls first() of that number, or after() (number: n_firsts), for the thread's runs whose turn it is. */
static bool worker_turn(struct pipeline *p, struct worker *w, size_t number)
{
	bool after = number == p->job->n_firsts, any = false;
	struct turn *t = after ? &p->after : &p->firsts[number];

	for (size_t i = w->first; i < w->begun && !p->over; i++) {
		struct slot *s = &w->slots[i % p->slots];
		int ret = s->ret;

		if (s->number != t->run || (after && s->left))
			continue;
		if (!ret)
			ret = after ? p->job->after(p->ctx, &s->run) : p->job->first(p->ctx, &s->run, number);
		s->ret = ret;
		s->left -= !after;
		w->first += after;
		if (after && ret) {
			p->result = ret;
			p->over = true;
			pipeline_wake(p, RESTS_NOT);
		}
		t->run = ret ? SIZE_MAX : t->run + 1; /* a turn that failed is over */
		any = true;
	}
	if (any) { /* gcc reads an atomic that is an index without order */
		size_t owner = p->owners[t->run % ARRAY_SIZE(p->owners)];

		worker_wake(&p->workers[owner]);
	}
	return any;
}

/* The same of after(), or of a first(). */
static bool worker_give(struct pipeline *p, struct worker *w)
{
	for (size_t i = p->job->n_firsts + 1; i-- > 0;)
		if (worker_turn(p, w, i))
			return true;
	return false;
}

/* Works on the next of its runs. */
static bool worker_begin(struct pipeline *p, struct worker *w, size_t worker)
{
	struct slot *s = &w->slots[w->begun % p->slots];

	if (w->begun == w->taken)
		return false;
	s->run.worker = worker;
	s->ret = p->job->work(p->ctx, &s->run);
	s->left = p->job->n_firsts + !!p->job->finish;
	w->begun++;
	return true;
}

/* Finishes one of its runs, which no other waits for. */
static bool worker_finish(struct pipeline *p, struct worker *w)
{
	for (size_t i = w->first; i < w->begun && p->job->finish; i++) {
		struct slot *s = &w->slots[i % p->slots];

		if (s->left != 1)
			continue;
		s->ret = s->ret ?: p->job->finish(p->ctx, &s->run);
		s->left = 0;
		return true;
	}
	return false;
}

/*
 * Takes runs into free slots, all of them if no thread rests: what the merge has goes from core to core with
 * each turn. False: none is free, or another thread is at it.
 */
static bool worker_take(struct pipeline *p, struct worker *w)
{
	if (w->taken - w->first == p->slots || p->ended || atomic_exchange(&p->taking, true))
		return false;
	while (w->taken - w->first < p->slots && !p->ended && !p->over) {
		struct slot *s = &w->slots[w->taken % p->slots];
		bool more;

		s->run.records.most = p->job->run;
		more = (p->ret = merge_take(p->t->merge, &s->run.records)) == 1;
		s->run.out.len = 0;
		if (more)
			p->ret = p->job->before ? p->job->before(p->ctx, &s->run) : 0;
		p->ended = !more || p->ret;
		if (p->ended)
			break;
		p->owners[p->taken % ARRAY_SIZE(p->owners)] = (size_t)(w - p->workers);
		s->number = p->taken++;
		w->taken++;
		if (p->idle) /* another thread has nothing to do: it may take the next */
			break;
	}
	p->taking = false;
	pipeline_wake(p, p->ended ? RESTS_NOT : RESTS_FREE);
	return true;
}

/* Does what is nearest to the end. */
static void pipeline_worker(void *ctx, size_t worker)
{
	struct pipeline *p = ctx;
	struct worker *w = &p->workers[worker];

	while (!p->over) {
		unsigned int wakes = w->wakes;

		if (p->ended && w->first == w->taken)
			break;
		if (!worker_give(p, w) && !worker_begin(p, w, worker) && !worker_finish(p, w) &&
		    !errands_help() && !worker_take(p, w))
			worker_rest(p, w, wakes);
		else if (p->idle && errands_wait())
			pipeline_wake(p, RESTS_FULL);
	}
}

int pipeline_work(struct timeline *t, const struct pipeline_job *job, void *ctx)
{
	size_t workers = pipeline_workers();
	struct pipeline *p = cache_lines_new(1, sizeof(*p) + workers * sizeof(p->workers[0]));
	int ret;

	if (!p)
		return -ENOMEM;
	p->t = t;
	p->job = job;
	p->ctx = ctx;
	p->n = workers;
	p->slots = workers > 1 ? PIPELINE_SLOTS : 1;
	for (size_t i = 0; i < workers; i++)
		sem_init(&p->workers[i].woken, 0, 0);
	if (workers > 1)
		merge_unpack_beside(t->merge);
	workers_share(workers, pipeline_worker, p);
	ret = p->result ?: p->ret;
	for (size_t i = 0; i < workers * PIPELINE_SLOTS; i++) {
		struct pipeline_run *run = &p->workers[i / PIPELINE_SLOTS].slots[i % PIPELINE_SLOTS].run;

		merge_run_release(&run->records);
		buf_release(&run->out);
		if (run->own)
			job->release(run->own);
	}
	for (size_t i = 0; i < workers; i++)
		sem_destroy(&p->workers[i].woken);
	free(p);
	return ret;
}

struct streams {
	struct timeline *t;
	streams_job *work;
	void *ctx;
	atomic_int result;
	size_t n;	    /* streams */
	atomic_size_t left; /* those that have records left */
	struct taking {
		pthread_mutex_t lock; /* a thread takes its records */
		atomic_bool over;     /* there are none left */
	} v[];
};

/* Takes runs of a stream as long as no other thread does; waits for one only where all are taken. */
static void streams_worker(void *ctx, size_t worker)
{
	struct streams *s = ctx;
	struct merge_run run = { 0 };

	for (size_t i = worker, passed = 0; s->left && !s->result;) {
		struct taking *v = &s->v[i % s->n];
		int ret = 0;

		if (v->over ||
		    (passed < s->n ? pthread_mutex_trylock(&v->lock) : pthread_mutex_lock(&v->lock))) {
			passed++;
			i++;
			continue;
		}
		passed = 0;
		if (!v->over) {
			ret = merge_take_stream(s->t->merge, i % s->n, &run);
			v->over = ret != 1;
			s->left -= v->over;
		}
		pthread_mutex_unlock(&v->lock);
		ret = ret == 1 ? s->work(s->ctx, &run, worker) : ret;
		if (ret)
			s->result = ret;
	}
	merge_run_release(&run);
}

int streams_work(struct timeline *t, streams_job *work, void *ctx)
{
	size_t n = merge_streams(t->merge);
	struct streams *s = calloc(1, sizeof(*s) + n * sizeof(s->v[0]));
	int ret;

	if (!s)
		return -ENOMEM;
	s->t = t;
	s->work = work;
	s->ctx = ctx;
	s->n = n;
	s->left = n;
	for (size_t i = 0; i < n; i++)
		pthread_mutex_init(&s->v[i].lock, NULL);
	workers_share(pipeline_workers(), streams_worker, s);
	ret = s->result;
	for (size_t i = 0; i < n; i++)
		pthread_mutex_destroy(&s->v[i].lock);
	free(s);
	return ret;
}
