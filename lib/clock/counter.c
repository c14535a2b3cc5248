// SPDX-License-Identifier: LGPL-2.1-or-later
/* The machine's counter, and snapshots that tie it to a trace clock. */
#include "clock/counter.h"

#include <errno.h>

#include "util/array.h"

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

int counter_shoot(struct clock_marks *marks, struct counter_shot *out)
{
	uint64_t before[COUNTER_MARKS], after[COUNTER_MARKS];

	if (!counter_there())
		return -ENOTSUP;
	clock_marks_clear(marks);
	for (size_t i = 0; i < COUNTER_MARKS; i++) {
		before[i] = counter_read();
		clock_marks_set(marks, i);
		after[i] = counter_read();
	}
	clock_marks_collect(marks);
	*out = (struct counter_shot){ .slack = UINT64_MAX };
	for (size_t i = 0; i < COUNTER_MARKS; i++) {
		int64_t clock = clock_marks_get(marks, i);
		uint64_t slack = (after[i] - before[i] + 1) / 2;

		/* a thread that moved to a CPU whose counter is behind: no bracket */
		if (clock <= 0 || after[i] < before[i] || slack >= out->slack)
			continue;
		*out = (struct counter_shot){ before[i] + (after[i] - before[i]) / 2, slack,
					      (uint64_t)clock };
	}
	return out->slack == UINT64_MAX ? -ENODATA : 0;
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
