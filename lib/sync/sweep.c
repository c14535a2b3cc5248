// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each event c and each window [a, b] that it may lie in give a range [a - c, b - c] of the offset. The end
 * points, sorted, show how many events are inside at each offset.
 */
#include "sync/solver.h"

#define TAU_MIN	    3
#define TAU_PART    1000	     /* 0.1 % of the events */
#define TAU_CHANCE  3		     /* and the root of the number outside */
#define RADIX_MIN   96		     /* fewer sort faster by comparing */
#define WIDTH_LIMIT (UINT32_MAX - 1) /* end points are kept in 32 bits */

static int sweeper_grow(struct sweeper *w)
{
	size_t cap = w->cap ? w->cap * 2 : 4096;
	uint32_t **all[] = { &w->lows, &w->highs, &w->scratch };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		uint32_t *v = realloc(*all[i], cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		*all[i] = v;
	}
	w->cap = cap;
	return 0;
}

static void sort_few(uint32_t *v, size_t n)
{
	for (size_t gap = n / 2; gap; gap /= 2)
		for (size_t i = gap; i < n; i++) {
			uint32_t x = v[i];
			size_t j = i;

			for (; j >= gap && v[j - gap] > x; j -= gap)
				v[j] = v[j - gap];
			v[j] = x;
		}
}

static void sort_u32(uint32_t *v, uint32_t *tmp, size_t n, uint32_t max)
{
	uint32_t *from = v, *to = tmp;

	if (n < RADIX_MIN) {
		sort_few(v, n);
		return;
	}
	for (unsigned int shift = 0; shift < 32 && max >> shift; shift += 8) {
		size_t at[257] = { 0 };
		uint32_t *swap;

		for (size_t i = 0; i < n; i++)
			at[((from[i] >> shift) & 255) + 1]++;
		for (size_t i = 1; i < 256; i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < n; i++)
			to[at[(from[i] >> shift) & 255]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
}

size_t cpu_lower(const struct sync_cpu *c, uint64_t time)
{
	return array_lower_bound(c->times, c->n, sizeof(*c->times), u64_below, &time);
}

uint64_t slice_events(const struct problem *p, uint64_t t0, uint64_t t1)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->in->n_cpus; i++)
		n += cpu_lower(&p->in->cpus[i], t1) - cpu_lower(&p->in->cpus[i], t0);
	return n;
}

double events_by_chance(const struct problem *p, const int *map, uint64_t t0, uint64_t t1, double *n)
{
	double outside = 0;

	*n = 0;
	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct sync_cpu *c = &p->in->cpus[i];
		double events = (double)(cpu_lower(c, t1) - cpu_lower(c, t0));

		if (map[i] < 0)
			continue;
		*n += events;
		outside += events * (1 - p->threads[map[i]].duty);
	}
	return outside;
}

/* Scope of one sweep: `width` offsets from `low` on. */
struct scope {
	struct sweeper *w;
	const struct problem *p;
	struct slice *s;
	int64_t low; /* against the line */
	int64_t width;
};

static int sweep_range(struct sweeper *w, int64_t low, int64_t high)
{
	if (w->n == w->cap && sweeper_grow(w))
		return -ENOMEM;
	w->lows[w->n] = (uint32_t)low;
	w->highs[w->n++] = (uint32_t)high;
	return 0;
}

/*
 * The ranges of one event, which would be at host time `at` with the line and
 * the lowest offset; `play`: what the line may be off by then.
 */
static int sweep_event(const struct scope *o, const struct thread *t, size_t k, uint64_t at, int64_t play)
{
	int64_t low = -1, high = -1; /* the range so far; overlapping ones count once */

	for (; k < t->n; k++) {
		int64_t a = (int64_t)(t->v[k].a - at) - play;
		int64_t b = (int64_t)((uint64_t)t->v[k].b - at) + play;

		if (a > o->width)
			break;
		if (b < 0)
			continue;
		a = a < 0 ? 0 : a;
		b = b > o->width ? o->width : b;
		if (high >= 0 && a > high) {
			if (sweep_range(o->w, low, high))
				return -ENOMEM;
			high = -1;
		}
		if (high < 0)
			low = a;
		high = b > high ? b : high;
	}
	if (high < 0)
		return 0;
	if (low || high < o->width)
		return sweep_range(o->w, low, high);
	o->w->full++;
	return 0;
}

static int sweep_cpu(const struct scope *o, const struct sync_cpu *c, const struct thread *t)
{
	struct slice *s = o->s;
	size_t end = cpu_lower(c, s->t1), k = SIZE_MAX;

	for (size_t i = cpu_lower(c, s->t0); i < end; i++) {
		double dt = (double)(int64_t)(c->times[i] - s->mid);
		int64_t play = (int64_t)ceil(fabs(dt) * s->rate);
		uint64_t at = c->times[i] + (uint64_t)(s->offset + llround(dt * s->slope) + o->low);

		/* nothing was recorded beyond the host's capture */
		if ((int64_t)(at - o->p->host0) < 0 || (int64_t)(o->p->host1 - at - (uint64_t)o->width) < 0)
			continue;
		if (k == SIZE_MAX)
			k = thread_span_at(t, at > (uint64_t)play ? at - (uint64_t)play : 0);
		while (k < t->n && t->v[k].b + (uint64_t)play < at)
			k++;
		s->n++;
		if (sweep_event(o, t, k, at, play))
			return -ENOMEM;
	}
	return 0;
}

/* The hull of where at least `need` are inside. */
static void sweep_hull(const struct sweeper *w, size_t need, uint32_t width, uint32_t *low, uint32_t *high)
{
	size_t now = w->full, i = 0, j = 0;

	*low = 0;
	*high = width;
	if (now >= need)
		return;
	while (i < w->n) {
		if (w->lows[i] > w->highs[j]) {
			now--;
			j++;
			continue;
		}
		*low = w->lows[i++];
		if (++now >= need)
			break;
	}
	now = w->full;
	i = w->n;
	j = w->n;
	while (j) {
		if (i && w->lows[i - 1] > w->highs[j - 1]) {
			now--;
			i--;
			continue;
		}
		*high = w->highs[--j];
		if (++now >= need)
			break;
	}
}

static void sweep_profile(const struct scope *o)
{
	struct sweeper *w = o->w;
	struct slice *s = o->s;
	uint32_t width = (uint32_t)o->width, low, high;
	size_t tau, chance, now = w->full, best = now;

	sort_u32(w->lows, w->scratch, w->n, width);
	sort_u32(w->highs, w->scratch, w->n, width);
	/* most events inside at once */
	for (size_t i = 0, j = 0; i < w->n;) {
		if (w->lows[i] <= w->highs[j]) {
			now++;
			i++;
			best = now > best ? now : best;
		} else {
			now--;
			j++;
		}
	}
	tau = s->n / TAU_PART > TAU_MIN ? s->n / TAU_PART : TAU_MIN;
	/* those outside come in by chance as well */
	chance = s->n > best ? (size_t)sqrt((double)(s->n - best)) + TAU_CHANCE : 0;
	tau = chance > tau ? chance : tau;
	s->best = (uint32_t)best;
	sweep_hull(w, best > tau ? best - tau : 0, width, &low, &high);
	s->low = s->offset + o->low + low;
	s->high = s->offset + o->low + high;
	sweep_hull(w, best, width, &low, &high);
	s->low0 = s->offset + o->low + low;
	s->high0 = s->offset + o->low + high;
	s->valid = s->n > 0;
}

int sweep_slice(struct problem *p, struct slice *s, int64_t low, int64_t high)
{
	struct scope o = { .w = &p->sweeper, .p = p, .s = s, .low = low - s->offset, .width = high - low };

	if (high < low || (uint64_t)(high - low) > WIDTH_LIMIT)
		return -ERANGE;
	p->sweeper.n = p->sweeper.full = 0;
	s->n = 0;
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->map[i] >= 0 && sweep_cpu(&o, &p->in->cpus[i], &p->threads[p->map[i]]))
			return -ENOMEM;
	sweep_profile(&o);
	return 0;
}
