// SPDX-License-Identifier: LGPL-2.1-or-later
/* The machine's counter, moments by a trace clock, and snapshots that tie the two. */
#include "record/clock/counter.h"

#include <sys/timex.h>

#include "base/clock.h"

#define PATH_LEN 96 /* of a file of the instance, which has a pid in its name */
#define MARK_TAG 0x63797368u
#define CPUS_MAX 1024
#define PAGE_MAX (64u << 10)
#define SIZE_KB	 "16" /* per CPU; a pass of stock's length takes 20 */
/* Of a raw_data record: the common header (8 bytes), then what was written. */
#define MARK_AT 8

int clock_marker_system(const char *clock)
{
	static const struct {
		const char *name;
		int id;
	} clocks[] = {
		{ "boot", CLOCK_BOOTTIME },
		{ "mono", CLOCK_MONOTONIC },
		{ "mono_raw", CLOCK_MONOTONIC_RAW },
		{ "tai", CLOCK_TAI },
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(clock, clocks[i].name))
			return clocks[i].id;
	return -1;
}

int clock_marker_open(struct clock_marker **out, struct undo *u, const char *clock, size_t n)
{
	struct clock_marker *c = calloc(1, sizeof(*c) + n * sizeof(c->ts[0]));
	char marker[PATH_LEN];
	int ret = 0;

	if (!c)
		return -ENOMEM;
	c->n = n;
	c->undo = u;
	c->marker = -1;
	c->system = clock_marker_system(clock);
	if (c->system >= 0) {
		*out = c;
		return 0;
	}
	snprintf(c->instance, sizeof(c->instance), "instances/hyptrace-sync-%d", (int)getpid());
	snprintf(marker, sizeof(marker), "%s/trace_marker_raw", c->instance);
	ret = undo_mkdir(u, c->instance) ?: undo_poke_in(u, c->instance, "buffer_size_kb", SIZE_KB) ?:
	      undo_poke_in(u, c->instance, "trace_clock", clock) ?:
	      page_layout_read(undo_dirfd(u), "events/header_page", &c->layout);
	if (!ret && c->layout.size > PAGE_MAX)
		ret = -EMSGSIZE;
	c->page = ret ? NULL : malloc(c->layout.size);
	ret = ret ?: c->page ? 0 : -ENOMEM;
	c->marker = ret ? -1 : openat(undo_dirfd(u), marker, O_WRONLY | O_CLOEXEC);
	if (!ret && c->marker < 0)
		ret = -errno;
	if (ret)
		clock_marker_free(c);
	else
		*out = c;
	return ret;
}

void clock_marker_free(struct clock_marker *c)
{
	if (!c)
		return;
	fd_close(&c->marker);
	free(c->page);
	free(c);
}

void clock_marker_clear(struct clock_marker *c)
{
	memset(c->ts, 0, c->n * sizeof(c->ts[0]));
	if (c->system < 0)
		undo_poke_in(c->undo, c->instance, "trace", "");
}

void clock_marker_set(struct clock_marker *c, size_t i)
{
	uint32_t mark[2] = { MARK_TAG, (uint32_t)i };

	if (c->system < 0) {
		/* one that is lost is a probe less */
		if (write(c->marker, mark, sizeof(mark)) < 0)
			return;
	} else {
		c->ts[i] = (int64_t)clock_now(c->system);
	}
}

void clock_marker_collect(struct clock_marker *c)
{
	char path[PATH_LEN];
	ssize_t n;
	int fd;

	for (unsigned int cpu = 0; c->system < 0 && cpu < CPUS_MAX; cpu++) {
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", c->instance, cpu);
		fd = openat(undo_dirfd(c->undo), path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			return;
		if (fd < 0)
			continue;
		while ((n = read(fd, c->page, c->layout.size)) > 0) {
			struct page_reader r;
			struct page_event e;
			uint32_t mark[2];

			if (page_reader_init(&r, &c->layout, c->page, (size_t)n))
				continue;
			while (page_next(&r, &e) == 1) {
				if (e.len < MARK_AT + sizeof(mark))
					continue;
				memcpy(mark, e.data + MARK_AT, sizeof(mark));
				if (mark[0] == MARK_TAG && mark[1] < c->n)
					c->ts[mark[1]] = (int64_t)e.ts;
			}
		}
		close(fd);
	}
}

#if defined(__aarch64__)

uint64_t counter_read(void)
{
	uint64_t n;

	/* without the barriers the read drifts past the clock's */
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(n) : : "memory");
	return n;
}

#elif defined(__x86_64__)

#include <x86intrin.h>

uint64_t counter_read(void)
{
	uint64_t n;

	_mm_lfence();
	n = __rdtsc();
	_mm_lfence();
	return n;
}

#else

uint64_t counter_read(void)
{
	return 0;
}

#endif

bool counter_there(void)
{
	return counter_read() != 0;
}

int counter_shoot(struct clock_marker *marks, struct counter_shot *out)
{
	uint64_t before[COUNTER_MARKS], after[COUNTER_MARKS];

	if (!counter_there())
		return -ENOTSUP;
	clock_marker_clear(marks);
	for (size_t i = 0; i < COUNTER_MARKS; i++) {
		before[i] = counter_read();
		clock_marker_set(marks, i);
		after[i] = counter_read();
	}
	clock_marker_collect(marks);
	*out = (struct counter_shot){ .slack = UINT64_MAX };
	for (size_t i = 0; i < COUNTER_MARKS; i++) {
		int64_t clock = marks->ts[i];
		uint64_t slack = (after[i] - before[i] + 1) / 2;

		/* the thread moved to a CPU whose counter lags: no bracket */
		if (clock <= 0 || after[i] < before[i] || slack >= out->slack)
			continue;
		*out = (struct counter_shot){ before[i] + (after[i] - before[i]) / 2, slack,
					      (uint64_t)clock };
	}
	return out->slack == UINT64_MAX ? -ENODATA : 0;
}

void wall_shoot(int clock, struct wall_sample *out)
{
	struct timex kernel = { 0 };
	/* TIME_ERROR: nothing holds the clock; the unit is us (kernel/time/ntp.c) */
	bool held = adjtimex(&kernel) != TIME_ERROR;

	*out = (struct wall_sample){ .slack = UINT64_MAX };
	for (size_t i = 0; i < COUNTER_MARKS; i++) {
		uint64_t before = clock_now(clock), utc = clock_now(CLOCK_REALTIME), after = clock_now(clock);
		uint64_t slack = (after - before + 1) / 2;

		if (slack < out->slack)
			*out = (struct wall_sample){ .trace = before + (after - before) / 2,
						     .utc = utc,
						     .slack = slack };
	}
	out->max_error = held ? (uint64_t)kernel.maxerror * 1000 : WALL_NO_ERROR;
	out->est_error = held ? (uint64_t)kernel.esterror * 1000 : WALL_NO_ERROR;
	out->tai = (uint64_t)kernel.tai;
}

int counter_log_shot(struct counter_log *l, const struct counter_shot *s)
{
	int ret;

	pthread_mutex_lock(&l->lock);
	ret = array_push(&l->shots, &l->n_shots, s, sizeof(*s));
	pthread_mutex_unlock(&l->lock);
	return ret;
}

int counter_log_ping(struct counter_log *l, const struct counter_ping *p)
{
	int ret;

	pthread_mutex_lock(&l->lock);
	ret = array_push(&l->pings, &l->n_pings, p, sizeof(*p));
	pthread_mutex_unlock(&l->lock);
	return ret;
}

size_t counter_log_shots(struct counter_log *l)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->n_shots;
	pthread_mutex_unlock(&l->lock);
	return n;
}

int counter_log_copy(struct counter_log *to, struct counter_log *from)
{
	int ret = 0;

	pthread_mutex_lock(&from->lock);
	for (size_t i = 0; i < from->n_shots && !ret; i++)
		ret = counter_log_shot(to, &from->shots[i]);
	for (size_t i = 0; i < from->n_pings && !ret; i++)
		ret = counter_log_ping(to, &from->pings[i]);
	pthread_mutex_unlock(&from->lock);
	return ret;
}

static void drop_first(void *v, size_t *n, size_t keep, size_t size)
{
	if (*n <= keep)
		return;
	memmove(v, (char *)v + (*n - keep) * size, keep * size);
	*n = keep;
}

void counter_log_forget(struct counter_log *l, size_t keep)
{
	pthread_mutex_lock(&l->lock);
	if (l->n_shots > keep) {
		drop_first(l->pings, &l->n_pings, (l->n_pings / l->n_shots + 1) * keep, sizeof(*l->pings));
		drop_first(l->shots, &l->n_shots, keep, sizeof(*l->shots));
	}
	pthread_mutex_unlock(&l->lock);
}

void counter_log_release(struct counter_log *l)
{
	free(l->shots);
	free(l->pings);
	*l = (struct counter_log){ 0 };
}
