// SPDX-License-Identifier: LGPL-2.1-or-later
/* The solver: from a guest's events and its host's windows to offsets with bounds. */
#include "sync/solver.h"
#include "sync/sync.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define BACK_OFF    2	 /* slices */
#define CUT_TAU	    3	 /* events */
#define CUT_BURSTS  6	 /* windows' full of them, where that many can be missing */
#define PART_BURSTS 24	 /* ... where a third segment lies between two */
#define CUT_PART    0.01 /* of the events outside: then they can */
#define CUT_BACK    3	 /* slices */
#define CUT_FAR	    10
#define JUMP_GAP    6 /* slices between two segments: more is a third one's */

struct verdict {
	uint64_t time;
	bool in_a, in_b;
	double duty;
};

/* A segment's offset near its end. */
struct segment_end {
	uint64_t t;
	int64_t y;
	double slope;
};

/* From slice k, which surely is the segment's, and one further inside. */
static struct segment_end end_of(const struct problem *p, size_t k, size_t inner)
{
	const struct slice *s = &p->slices[k], *far = &p->slices[inner];
	struct segment_end e = { s->mid, slice_middle(s), 0 };

	if (k != inner)
		e.slope = (double)(slice_middle(far) - e.y) / (double)(int64_t)(far->mid - s->mid);
	if (fabs(e.slope) > p->rate)
		e.slope = 0;
	return e;
}

static uint64_t end_apply(const struct segment_end *e, uint64_t t)
{
	return t + (uint64_t)(e->y + llround(e->slope * (double)(int64_t)(t - e->t)));
}

/* Between which events the fewest fall outside, and between which nearly so few. */
static void place_jump(struct segment *a, struct segment *b, const struct verdict *v, size_t n, int64_t tau)
{
	int64_t score = 0, best = 0;

	for (size_t i = 0; i < n; i++) {
		score += (int)v[i].in_a - (int)v[i].in_b;
		best = score > best ? score : best;
	}
	score = 0;
	a->t1 = b->from = 0;
	for (size_t i = 0; i < n; i++) {
		score += (int)v[i].in_a - (int)v[i].in_b;
		if (score < best - tau)
			continue;
		a->t1 = a->t1 ? a->t1 : v[i].time + 1;
		if (score == best)
			a->to = b->from = v[i].time + 1;
		b->t0 = i + 1 < n ? v[i + 1].time : v[i].time + 1;
	}
	if (!a->t1)
		a->t1 = a->to = b->from = b->t0 = n ? v[0].time : b->t0;
	else if (!b->from)
		a->to = b->from = a->t1;
}

/* Events in neither, at the best of jumps: more than usual? */
static bool something_between(const struct problem *p, const struct verdict *v, size_t n)
{
	double expect = p->least * (double)n;
	size_t out_a = 0, out_b = 0, best;

	for (size_t i = 0; i < n; i++)
		out_b += !v[i].in_b;
	best = out_b;
	for (size_t i = 0; i < n; i++) {
		out_a += !v[i].in_a;
		out_b -= !v[i].in_b;
		best = out_a + out_b < best ? out_a + out_b : best;
	}
	return (double)best > 1.3 * expect + 8 + 6 * sqrt(p->burst * expect);
}

/*
 * There is a third segment between the two, that was not found: each ends by
 * itself, and no further out than it was followed.
 */
static void part_them(const struct problem *p, struct segment *a, struct segment *b, const struct verdict *v,
		      size_t n)
{
	size_t last = a->unseen - 1, first = b->seen;
	uint64_t end, begin;
	double chance = 0, c, sum = 0, best = 0, margin;

	/* inside half-way between what is usual and what is chance: as far as a segment goes */
	for (size_t i = 0; i < n; i++)
		chance += v[i].duty / (double)n;
	c = (fmax(1 - p->least, chance) + chance) / 2;
	/* as at an end without a neighbour, the last slices may be another's */
	last = last - a->seen > BACK_OFF ? last - BACK_OFF : a->seen;
	first = b->unseen - first > BACK_OFF + 1 ? first + BACK_OFF : b->unseen - 1;
	end = p->slices[last].t1;
	begin = p->slices[first].t0;
	/* some windows' full of another segment's events are inside by chance */
	margin = (CUT_TAU + PART_BURSTS * p->burst) * (1 - c);
	for (size_t i = 0; i < n; i++) {
		sum += v[i].in_a - c;
		best = fmax(best, sum);
	}
	a->t1 = v[0].time;
	sum = 0;
	for (size_t i = 0; i < n && sum < best - margin; i++) {
		sum += v[i].in_a - c;
		a->t1 = v[i].time + 1;
	}
	sum = best = 0;
	for (size_t i = n; i-- > 0;) {
		sum += v[i].in_b - c;
		best = fmax(best, sum);
	}
	b->t0 = v[n - 1].time;
	sum = 0;
	for (size_t i = n; i-- > 0 && sum < best - margin;) {
		sum += v[i].in_b - c;
		b->t0 = v[i].time;
	}
	a->t1 = a->t1 < end ? a->t1 : end;
	b->t0 = b->t0 > begin ? b->t0 : begin;
	if (b->t0 < a->t1)
		b->t0 = a->t1;
	a->to = b->from = b->t0;
}

/* Places the jump between two segments where the fewest events are outside. 0 or -ENOMEM. */
static int place_jump_between(struct problem *p, struct segment *a, struct segment *b)
{
	/* the jump may have been followed for a few slices before it showed */
	size_t x = a->last - a->first > CUT_BACK ? a->last - 1 - CUT_BACK : a->first;
	size_t y = b->last - b->first > CUT_BACK ? b->first + CUT_BACK : b->last - 1;
	struct segment_end in_a = end_of(p, x, x - a->first > CUT_FAR ? x - CUT_FAR : a->first);
	struct segment_end in_b = end_of(p, y, b->last - y > CUT_FAR ? y + CUT_FAR : b->last - 1);
	uint64_t t0 = p->slices[x].t0, t1 = p->slices[y].t1, n = 0;
	struct verdict *v = malloc((slice_events(p, t0, t1) + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct sync_cpu *c = &p->in->cpus[i];
		size_t end = cpu_lower(c, t1);

		if (p->map[i] < 0)
			continue;
		for (size_t k = cpu_lower(c, t0); k < end; k++) {
			const struct thread *t = &p->threads[p->map[i]];
			uint64_t at = c->times[k];

			v[n].time = at;
			v[n].duty = t->duty;
			v[n].in_a = !thread_distance(t, end_apply(&in_a, at));
			v[n++].in_b = !thread_distance(t, end_apply(&in_b, at));
		}
	}
	qsort(v, n, sizeof(*v), compare_u64);
	if (n && (b->seen > a->unseen + JUMP_GAP || something_between(p, v, n)))
		part_them(p, a, b, v, n);
	else
		/*
		 * The events outside at the true jump: all of a lost window are outside together, and the
		 * other offset has most of them inside by chance.
		 */
		place_jump(a, b, v, n,
			   CUT_TAU + (int64_t)(CUT_BURSTS * p->burst * fmin(p->least / CUT_PART, 1)));
	free(v);
	while (a->last < p->n_slices && p->slices[a->last].t0 < a->t1)
		a->last++;
	while (b->first && p->slices[b->first - 1].t1 > b->t0)
		b->first--;
	return 0;
}

/* Documentation/clock-sync.md has the reason for each number. */
#define PART_FIRST     0.01 /* of the events outside, before any were looked at */
#define BURST_MAX      50   /* events in a window, for deviations */
#define SEGMENT_EVENTS 1000 /* in a segment that shows what is usual */
#define TRIM	       2    /* slices at an end that may be another's */
#define MEET	       3    /* slices that show where a segment ends or begins */
#define TIME_MAX       (1ull << 62)
#define RATE_MAX       5e-4 /* what a kernel's clock can be slewed by */
#define STEADY_RATE    1e-6 /* the two kernels may round the counter's rate differently */
#define STEADY_BEND    1e-7

static void set_host_range(struct problem *p)
{
	p->host0 = UINT64_MAX;
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct thread *t = &p->threads[i];

		if (!t->n)
			continue;
		p->host0 = t->v[0].a < p->host0 ? t->v[0].a : p->host0;
		p->host1 = t->v[t->n - 1].b > p->host1 ? t->v[t->n - 1].b : p->host1;
	}
	if (p->in->end) {
		p->host0 = p->in->begin;
		p->host1 = p->in->end;
	}
	for (size_t i = 0; i < p->n_threads; i++) {
		struct thread *t = &p->threads[i];
		uint64_t sum = 0;

		for (size_t k = 0; k < t->n; k++) {
			uint64_t a = t->v[k].a < p->host0 ? p->host0 : t->v[k].a;
			uint64_t b = t->v[k].b > p->host1 ? p->host1 : t->v[k].b;

			sum += b > a ? b - a : 0;
		}
		t->duty = p->host1 > p->host0 ? (double)sum / (double)(p->host1 - p->host0) : 1;
	}
}

static int problem_init(struct problem *p, const struct sync_input *in)
{
	size_t spans = 0, events = 0;
	int ret;

	*p = (struct problem){ .in = in,
			       .rate = in->max_rate > 0 ? in->max_rate : RATE_MAX,
			       .part = PART_FIRST };
	p->map = calloc(in->n_cpus, sizeof(*p->map));
	if (!p->map)
		return -ENOMEM;
	ret = windows_threads(p);
	if (ret)
		return ret;
	set_host_range(p);
	p->guest0 = UINT64_MAX;
	for (size_t i = 0; i < in->n_cpus; i++) {
		const struct sync_cpu *c = &in->cpus[i];

		events += c->n;
		if (!c->n)
			continue;
		p->guest0 = c->times[0] < p->guest0 ? c->times[0] : p->guest0;
		p->guest1 = c->times[c->n - 1] > p->guest1 ? c->times[c->n - 1] : p->guest1;
	}
	for (size_t i = 0; i < p->n_threads; i++)
		spans += p->threads[i].n;
	p->burst = spans ? (double)events / (double)spans : 1;
	p->burst = fmin(fmax(p->burst, 1), BURST_MAX);
	/* times come from files: what no clock shows is not worth a try */
	if (p->guest0 > p->guest1 || p->guest1 >= TIME_MAX || p->host0 > p->host1 || p->host1 >= TIME_MAX)
		return 0;
	return tracks_slices(p);
}

static int compare_segments(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return ORDER(x->first, y->first);
}

/* The narrowest of a few slices: in one with a jump in it the offset may be anything. */
static const struct slice *sharpest(const struct problem *p, size_t from, size_t to)
{
	const struct slice *best = &p->slices[from];

	for (size_t i = from; i < to; i++)
		if (p->slices[i].high - p->slices[i].low < best->high - best->low)
			best = &p->slices[i];
	return best;
}

/* True if they meet without a jump. */
static bool segments_meet(const struct problem *p, const struct segment *a, const struct segment *b)
{
	const struct slice *x = sharpest(p, a->last - a->first > MEET ? a->last - MEET : a->first, a->last);
	const struct slice *y = sharpest(p, b->first, b->last - b->first > MEET ? b->first + MEET : b->last);
	int64_t play = (int64_t)(p->rate * (double)(y->mid - x->mid)) + 1000;

	return x->low - play <= y->high && y->low <= x->high + play;
}

/* The least part of the events outside that any segment of some length has, or nearly. */
static double least_part(const struct problem *p, const struct segments *all)
{
	double least = p->part;

	for (size_t i = 0; i < all->n; i++) {
		size_t a = all->v[i].seen, b = all->v[i].unseen;
		double n = 0, outside = 0;

		/* its ends can be another's */
		if (b - a > 4 * TRIM) {
			a += TRIM;
			b -= TRIM;
		}
		for (size_t k = a; k < b; k++) {
			n += p->slices[k].n;
			outside += p->slices[k].n - p->slices[k].best;
		}
		if (n >= SEGMENT_EVENTS)
			least = fmin(least, (outside + sqrt(2 * p->burst * outside)) / n);
	}
	return least;
}

/* Trims the slices at an end without a neighbour: they may belong to a segment that was not found. */
static void trim_segments(const struct problem *p, struct segments *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct segment *v = &all->v[i];
		size_t first = v->first + (!i && v->first ? TRIM : 0);
		size_t last = v->last - (i + 1 == all->n && v->last < p->n_slices ? TRIM : 0);

		if (first >= last || last > v->last)
			continue;
		v->first = v->seen = first;
		v->last = v->unseen = last;
		v->t0 = v->from = p->slices[first].t0;
		v->t1 = v->to = p->slices[last - 1].t1;
		all->v[n++] = *v;
	}
	all->n = n;
}

static int join_segments(struct problem *p, struct segments *all)
{
	size_t n = 0;

	qsort(all->v, all->n, sizeof(*all->v), compare_segments);
	p->least = least_part(p, all);
	trim_segments(p, all);
	for (size_t i = 0; i < all->n; i++) {
		struct segment *last = n ? &all->v[n - 1] : NULL;

		if (last && segments_meet(p, last, &all->v[i])) {
			for (size_t k = last->last; k < all->v[i].first; k++)
				p->slices[k].valid = false;
			last->last = all->v[i].last;
			last->unseen = all->v[i].unseen;
			last->t1 = last->to = all->v[i].t1;
			continue;
		}
		if (last && place_jump_between(p, last, &all->v[i]))
			return -ENOMEM;
		all->v[n++] = all->v[i];
	}
	all->n = n;
	return 0;
}

static void forget_points(struct sync_result *r)
{
	r->n_points = r->n_jumps = r->n_bands = 0;
}

/* Of what is inside and outside with the result; without one the vCPUs are named alone. */
static int count_inside(struct problem *p, struct sync_result *r)
{
	free(r->vcpus);
	r->n_vcpus = 0;
	r->vcpus = calloc(p->in->n_cpus, sizeof(*r->vcpus));
	if (!r->vcpus)
		return -ENOMEM;
	r->n_vcpus = p->in->n_cpus;
	r->events = r->outside = r->worst = 0;
	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct thread *t = p->map[i] < 0 || !r->n_points ? NULL : &p->threads[p->map[i]];
		const struct sync_cpu *c = &p->in->cpus[i];

		r->vcpus[i] = (struct sync_vcpu){ .cpu = c->cpu, .pid = t ? t->pid : 0 };
		for (size_t k = 0; t && k < c->n; k++) {
			uint64_t at = c->times[k] + (uint64_t)sync_offset(r, c->times[k]);
			uint64_t bound = sync_bound(r, c->times[k]), far;

			if (at < p->host0 || at > p->host1 || bound == UINT64_MAX)
				continue;
			far = thread_distance(t, at);
			r->events++;
			r->outside += far > bound;
			r->worst = far > bound && far > r->worst ? far : r->worst;
		}
	}
	return 0;
}

/* Twice where the first result shows that the map was wrong. */
static int solve_segments(struct problem *p, struct sync_result *r)
{
	struct segments all = { 0 };
	int ret;

	/* the input's map */
	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct thread *t = p->in->pids ? windows_thread(p, p->in->pids[i]) : NULL;

		p->map[i] = t ? (int)(t - p->threads) : -1;
		all.mapped = all.mapped || t;
	}
	if (p->in->n_cpus == 1 && p->n_threads == 1) {
		p->map[0] = 0;
		all.mapped = true;
	}
	for (int round = 0; round < 2; round++) {
		ret = search_segments(p, &all, 0, p->n_slices) ?: join_segments(p, &all);
		if (ret)
			return ret;
		forget_points(r);
		for (size_t i = 0; i < all.n && !ret; i++)
			ret = drift_fit(p, &all.v[i], r);
		if (ret)
			return ret;
		if (!r->n_points || p->n_threads < 2 || !map_check(p, r))
			break;
		all = (struct segments){ .mapped = true };
	}
	/* doubtful points served to check the map; from here on they have no bound */
	for (size_t i = 0; i < r->n_points; i++)
		if (r->points[i].class == SYNC_NONE)
			r->points[i].bound = UINT64_MAX;
	for (size_t i = 0; i < p->in->n_cpus && p->in->pids; i++)
		r->map_changed = r->map_changed || (p->in->pids[i] && p->map[i] >= 0 &&
						    p->threads[p->map[i]].pid != p->in->pids[i]);
	return 0;
}

/* True if the windows gave a result; with too many events outside it is none. */
static int solve_windows(struct problem *p, struct sync_result *r)
{
	bool bounded = false;
	int ret;

	if (!p->n_threads || !p->n_slices)
		return 0;
	ret = solve_segments(p, r);
	if (!ret && !map_any(p))
		forget_points(r);
	if (!ret && r->n_points)
		ret = count_inside(p, r);
	if (ret || !r->n_points)
		return ret;
	for (size_t i = 0; i < r->n_points; i++)
		bounded = bounded || r->points[i].class != SYNC_NONE;
	if (!bounded || (double)r->outside > OUTSIDE_MAX * (double)r->events)
		forget_points(r);
	return 0;
}

static int solve_once(const struct sync_input *in, struct sync_result *out)
{
	struct problem p;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	ret = problem_init(&p, in) ?: solve_windows(&p, out);
	if (ret)
		goto out;
	if (!out->n_points) {
		map_clear(&p);
		ret = count_inside(&p, out);
		goto out;
	}
	out->method = "kvm windows";
	for (size_t i = 0; i < in->n_cpus; i++)
		if (p.map[i] >= 0 && p.threads[p.map[i]].hyp)
			out->method = "hyp windows";
	/* with one event outside no point is hard */
	out->class = out->outside ? SYNC_SOFT : SYNC_HARD;
	for (size_t i = 0; i < out->n_points; i++) {
		enum sync_class *c = &out->points[i].class;

		*c = out->outside && *c == SYNC_HARD ? SYNC_SOFT : *c;
		out->class = *c != SYNC_NONE && *c < out->class ? *c : out->class;
	}
out:
	windows_release(&p);
	free(p.map);
	free(p.slices);
	free(p.sweeper.lows);
	free(p.sweeper.highs);
	free(p.sweeper.scratch);
	if (ret)
		sync_result_release(out);
	return ret;
}

int sync_solve(const struct sync_input *in, struct sync_result *out)
{
	struct sync_input steady = *in;
	struct sync_result other;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!in->n_cpus)
		return -EINVAL;
	if (!in->steady)
		return solve_once(in, out);
	steady.max_rate = STEADY_RATE;
	steady.max_bend = STEADY_BEND;
	ret = solve_once(&steady, out);
	if (ret || out->class == SYNC_HARD)
		return ret;
	/* not that steady after all? */
	ret = solve_once(in, &other);
	if (ret || other.class > out->class) {
		sync_result_release(out);
		*out = other;
	} else {
		sync_result_release(&other);
	}
	return ret;
}

int sync_check(const struct sync_input *in, const struct sync_result *map, const struct sync_result *bounds,
	       const struct offset_shift *shift, struct sync_check *out)
{
	struct problem p = { .in = in, .host0 = in->begin, .host1 = in->end ? in->end : UINT64_MAX };
	int ret = windows_threads(&p);

	*out = (struct sync_check){ 0 };
	for (size_t i = 0; i < in->n_cpus && !ret; i++) {
		const struct sync_cpu *c = &in->cpus[i];
		const struct thread *t = windows_thread(&p, sync_pid(map, c->cpu));

		for (size_t k = 0; t && k < c->n; k++) {
			uint64_t at = offset_shift_apply(shift, c->cpu, c->times[k]), far;

			if (at < p.host0 || at > p.host1)
				continue;
			far = thread_distance(t, at);
			out->events++;
			out->outside += far > (bounds ? sync_bound(bounds, c->times[k]) : 0);
			out->worst = far > out->worst ? far : out->worst;
		}
	}
	windows_release(&p);
	return ret;
}
