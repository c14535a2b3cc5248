// SPDX-License-Identifier: LGPL-2.1-or-later
/* The threads that drain sources into the spool: how they start, count and end. */
#include "record/drain/source.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#include "file/wire/msg.h"

#define NUDGE_NS   5000000 /* between signals to a thread that is to stop */
#define GIVE_UP_MS 5000	   /* for those of a source that cannot be drained */

struct track;

struct worker {
	struct track *track;
	unsigned int cpu;
	pthread_t thread;
	bool running;
	atomic_bool done;
	int error;
	struct drain drain;
	struct drain_stats stats;
};

/* One source. */
struct track {
	struct recorder *rec;
	struct source *s;
	atomic_bool stopping;
	int stop_fd;
	struct worker *workers;
	struct track *next;
};

struct recorder {
	struct recorder_opts o;
	struct track *tracks;
	atomic_bool failed; /* that was reported */
};

static void on_nudge(int sig)
{
}

int recorder_new(struct recorder **out, const struct recorder_opts *o)
{
	struct sigaction sa = { .sa_handler = on_nudge }; /* no SA_RESTART: reads return */
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->o = *o;
	sigaction(RECORDER_SIGNAL, &sa, NULL);
	*out = r;
	return 0;
}

int recorder_describe(struct spool *spool, const struct source *s)
{
	struct spool_buffer b = { .name = s->name,
				  .clock = s->clock,
				  .path = s->path,
				  .kind = s->ops->kind,
				  .page_size = s->page_size,
				  .n_cpus = s->n_cpus };

	return spool_add_buffer(spool, &b);
}

static void *drain_thread(void *arg)
{
	struct worker *w = arg;
	struct recorder *r = w->track->rec;
	struct sched_param p = { .sched_priority = r->o.rt_prio };
	int ret = r->o.rt_prio ? pthread_setschedparam(pthread_self(), SCHED_FIFO, &p) : 0;

	if (ret)
		log_warn(r->o.log, "cannot set real-time priority %d: %s", r->o.rt_prio, strerror(ret));
	w->error = w->track->s->ops->drain(w->track->s, w->cpu, &w->drain);
	if (w->error && !atomic_exchange(&r->failed, true) && r->o.failed)
		r->o.failed(r->o.ctx, w->track->s, w->cpu, w->error);
	atomic_store(&w->done, true);
	return NULL;
}

static int start_worker(struct track *t, struct spool *spool, size_t buffer, unsigned int cpu)
{
	struct worker *w = &t->workers[cpu];
	sigset_t all, old;
	int ret;

	*w = (struct worker){ .track = t, .cpu = cpu };
	w->drain = (struct drain){
		.out = spool_pages_fd(spool, buffer, cpu),
		.stop_fd = t->stop_fd,
		.stopping = &t->stopping,
		.sleep_us = t->rec->o.sleep_us,
		.ring = t->rec->o.ring && strcmp(t->s->ops->kind, "profile"), /* samples overwrite nothing */
		.stats = &w->stats,
		.log = t->rec->o.log,
	};
	if (w->drain.out < 0)
		return w->drain.out;
	/* signals are the main thread's business, but for the nudge */
	sigfillset(&all);
	sigdelset(&all, RECORDER_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&w->thread, NULL, drain_thread, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->running = !ret;
	return -ret;
}

static void track_free(struct track *t)
{
	for (unsigned int i = 0; t->workers && i < t->s->n_cpus; i++)
		if (t->workers[i].drain.out > 0)
			close(t->workers[i].drain.out);
	fd_close(&t->stop_fd);
	free(t->workers);
	free(t);
}

int recorder_add(struct recorder *r, struct source *s, struct spool *spool, size_t buffer)
{
	struct rlimit most;
	struct track *t;
	int ret = 0;

	/*
	 * Each worker opens a file of the spool and what it reads. Where there can be no room
	 * for all of them it is not tried: other threads would miss the descriptors meanwhile.
	 */
	if (!getrlimit(RLIMIT_NOFILE, &most) && s->n_cpus > most.rlim_cur / 2)
		return -EMFILE;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->rec = r;
	t->s = s;
	t->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->workers = calloc(s->n_cpus, sizeof(*t->workers));
	if (t->stop_fd < 0 || !t->workers) {
		ret = -errno;
		track_free(t);
		return ret;
	}
	t->next = r->tracks;
	r->tracks = t;
	for (unsigned int i = 0; i < s->n_cpus && !ret; i++)
		ret = start_worker(t, spool, buffer, i);
	/* its files are not to be missed elsewhere when there are too many of them */
	if (ret && recorder_finish(r, s, GIVE_UP_MS) != -ETIMEDOUT) {
		r->tracks = t->next;
		track_free(t);
	}
	return ret;
}

static struct track *track_of(const struct recorder *r, const struct source *s)
{
	struct track *t = r->tracks;

	while (t && t->s != s)
		t = t->next;
	return t;
}

/* Signals until it has come back: one may arrive just before the read goes to sleep. */
static int join_worker(struct worker *w, int64_t deadline)
{
	if (!w->running)
		return 0;
	while (!atomic_load(&w->done)) {
		if (msg_now() > deadline)
			return -ETIMEDOUT;
		pthread_kill(w->thread, RECORDER_SIGNAL);
		nanosleep(&(struct timespec){ .tv_nsec = NUDGE_NS }, NULL);
	}
	pthread_join(w->thread, NULL);
	w->running = false;
	return w->error;
}

int recorder_finish(struct recorder *r, const struct source *s, unsigned int timeout_ms)
{
	struct track *t = track_of(r, s);
	int64_t deadline = msg_now() + timeout_ms;
	int ret;

	if (!t)
		return 0;
	atomic_store(&t->stopping, true);
	ret = eventfd_write(t->stop_fd, 1) < 0 ? -errno : 0;
	for (unsigned int i = 0; i < s->n_cpus; i++) {
		int error = join_worker(&t->workers[i], deadline);

		ret = ret ?: error;
	}
	return ret;
}

void recorder_flush(struct recorder *r, const struct source *s, unsigned int timeout_ms)
{
	struct track *t = track_of(r, s);
	int64_t deadline = msg_now() + timeout_ms;
	unsigned int mark;

	for (unsigned int i = 0; t && i < s->n_cpus; i++)
		atomic_fetch_add(&t->workers[i].drain.flush, 1);
	for (unsigned int i = 0; t && i < s->n_cpus; i++) {
		struct worker *w = &t->workers[i];

		while (!atomic_load(&w->done) && drain_asked(&w->drain, &mark) && msg_now() < deadline) {
			pthread_kill(w->thread, RECORDER_SIGNAL);
			nanosleep(&(struct timespec){ .tv_nsec = NUDGE_NS }, NULL);
		}
	}
}

const struct drain_stats *recorder_stats(const struct recorder *r, const struct source *s, unsigned int cpu)
{
	struct track *t = track_of(r, s);

	return t ? &t->workers[cpu].stats : NULL;
}

void drain_totals_add(struct drain_totals *sum, const struct drain_stats *st)
{
	sum->bytes += st->bytes;
	sum->events += st->events;
	sum->lost += st->lost;
	sum->unknown += st->unknown;
	sum->taken += st->taken;
	sum->bad += st->bad;
}

struct drain_totals recorder_totals(const struct recorder *r, const struct source *s)
{
	struct track *t = track_of(r, s);
	struct drain_totals sum = { 0 };

	for (unsigned int i = 0; t && i < s->n_cpus; i++)
		drain_totals_add(&sum, &t->workers[i].stats);
	return sum;
}

uint64_t recorder_bytes(const struct recorder *r)
{
	uint64_t sum = 0;

	for (struct track *t = r->tracks; t; t = t->next)
		sum += recorder_totals(r, t->s).bytes;
	return sum;
}

void recorder_free(struct recorder *r)
{
	struct track *t, *next;

	if (!r)
		return;
	for (t = r->tracks; t; t = next) {
		bool busy = false;

		next = t->next;
		for (unsigned int i = 0; i < t->s->n_cpus; i++)
			busy |= t->workers[i].running;
		if (!busy) /* a thread that never came back still uses it */
			track_free(t);
	}
	free(r);
}
