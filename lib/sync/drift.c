// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One segment without a jump. The slices' bands, each spread by what the clocks' rates can differ, leave a
 * corridor; a line with few points stays inside it. Along that line the rates differ by far less, so the
 * slices are swept again, and the corridor narrows.
 */
#include "sync/solver.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define BISECTIONS 20
#define VIEW	   150 /* slices on each side that are looked at together */

#define FIT_FAR 1e18 /* ns: no limit */

struct node {
	struct slice s;
	double low, high;	    /* the corridor at the slice's mid, against the fit's base */
	double seen_low, seen_high; /* ... as the other nodes narrow it */
	double y;		    /* the line there */
	double slope;		    /* the likeliest */
	double near, bent;	    /* a bend near by, and all up to here */
	bool point;
	bool unsure; /* far more events are outside than usual: no bound */
};

struct fit {
	struct problem *p;
	struct node *v; /* the segment's slices; the first and the last have no length */
	size_t n;
	int64_t base;
	double bend; /* what the rate may change by besides the bends found */
	bool hard;   /* no event is outside */
	size_t conflicts;
};

static double fit_dist(const struct node *a, const struct node *b)
{
	return (double)(int64_t)(b->s.mid - a->s.mid);
}

static size_t fit_next_point(const struct fit *f, size_t i)
{
	for (i++; i < f->n && !f->v[i].point; i++)
		;
	return i;
}

/*
 * The slices as node i sees them: with its rate s and offset y there, the truth at slice j lies in y + s *
 * d[j], give or take what the rate may change on the way. Those limits, d and play included, are low and
 * high. All pairs of an offset and a rate that suit every slice in view form a convex set, whose extents
 * narrow the corridor.
 */
struct view {
	double d[2 * VIEW + 1], low[2 * VIEW + 1], high[2 * VIEW + 1];
	size_t n;
	double rate; /* |s| at most */
};

/* The rates that offset y leaves; false: none. */
static bool rates_of(const struct view *v, double y, double *least, double *most)
{
	double a = -v->rate, b = v->rate;

	for (size_t j = 0; j < v->n; j++) {
		double d = v->d[j], low = v->low[j] - y, high = v->high[j] - y, least_by, most_by;

		if (d == 0) {
			if (low > 0 || high < 0)
				return false;
			continue;
		}
		low /= d;
		high /= d;
		least_by = d > 0 ? low : high;
		most_by = d > 0 ? high : low;
		a = least_by > a ? least_by : a;
		b = most_by < b ? most_by : b;
	}
	*least = a;
	*most = b;
	return a <= b;
}

/* The offsets that rate s leaves. */
static bool offsets_of(const struct view *v, double s, double *least, double *most)
{
	double a = -FIT_FAR, b = FIT_FAR;

	for (size_t j = 0; j < v->n; j++) {
		double low = v->low[j] - s * v->d[j], high = v->high[j] - s * v->d[j];

		a = low > a ? low : a;
		b = high < b ? high : b;
	}
	*least = a;
	*most = b;
	return a <= b;
}

typedef bool (*leaves_fn)(const struct view *v, double x, double *least, double *most);

/* Farthest possible point from x, which is possible, towards `end`: the set is convex. */
static double view_reach(const struct view *v, leaves_fn leaves, double x, double end)
{
	double a, b;

	if (leaves(v, end, &a, &b))
		return end;
	for (int i = 0; i < BISECTIONS; i++) {
		double mid = (x + end) / 2;

		if (leaves(v, mid, &a, &b))
			x = mid;
		else
			end = mid;
	}
	return end;
}

/* A possible rate: the guess, or where the offsets' range is widest, for it is concave. */
static bool some_rate(const struct view *v, double guess, double *s)
{
	double a = -v->rate, b = v->rate, least, most;

	*s = guess;
	if (fabs(guess) <= v->rate && offsets_of(v, guess, &least, &most))
		return true;
	for (int i = 0; i < 2 * BISECTIONS; i++) {
		double x = a + (b - a) / 3, y = b - (b - a) / 3, wx, wy;

		offsets_of(v, x, &least, &most);
		wx = most - least;
		offsets_of(v, y, &least, &most);
		wy = most - least;
		if (wx < wy)
			a = x;
		else
			b = y;
	}
	*s = (a + b) / 2;
	return offsets_of(v, *s, &least, &most);
}

/* Narrows node i by all others; its line becomes the middle of what is left. */
static void see_node(struct fit *f, size_t i, struct view *v)
{
	size_t a = i ? i - 1 : 0, b = i + 1 < f->n ? i + 1 : i;
	size_t from = i > VIEW ? i - VIEW : 0, to = i + VIEW < f->n ? i + VIEW + 1 : f->n;
	double guess = (f->v[b].y - f->v[a].y) / fit_dist(&f->v[a], &f->v[b]);
	double s, least, most, slow, shigh, y;
	struct node *node = &f->v[i];

	/* allows for the change of the clocks' rate between nodes, bends that were found included */
	v->n = 0;
	v->rate = f->p->rate;
	for (size_t j = from; j < to; j++) {
		double d = fit_dist(node, &f->v[j]);
		double bend = fabs(f->v[j].bent - node->bent) + f->bend;
		double play = fmin(bend, 2 * v->rate) * fabs(d);

		v->d[v->n] = d;
		v->low[v->n] = f->v[j].low - play;
		v->high[v->n++] = f->v[j].high + play;
	}
	node->seen_low = node->low;
	node->seen_high = node->high;
	if (!some_rate(v, guess, &s)) {
		f->conflicts++;
		node->slope = 0;
		node->s.rate = f->p->rate;
		return;
	}
	offsets_of(v, s, &least, &most);
	y = (least + most) / 2;
	node->seen_low = view_reach(v, rates_of, y, node->low);
	node->seen_high = view_reach(v, rates_of, y, node->high);
	slow = view_reach(v, offsets_of, s, -v->rate);
	shigh = view_reach(v, offsets_of, s, v->rate);
	node->slope = (slow + shigh) / 2;
	node->s.rate = fmin((shigh - slow) / 2 + f->bend + node->near, 2 * v->rate);
}

/* Finds where the line must bend, and by how much; the true bend may be a little earlier or later. */
static void fit_find_bends(struct fit *f)
{
	double before = 0, sum = 0;
	size_t last = 0;

	for (size_t i = 0; i < f->n; i++)
		f->v[i].near = 0;
	for (size_t a = 0, b; a + 1 < f->n; a = b) {
		double slope, bend, width = f->v[a].high - f->v[a].low;

		b = fit_next_point(f, a);
		slope = (f->v[b].y - f->v[a].y) / fit_dist(&f->v[a], &f->v[b]);
		bend = a ? 1.5 * fabs(slope - before) + f->bend : 0;
		before = slope;
		for (size_t i = a;
		     bend > 0 && i < f->n && (i < a + 2 || fit_dist(&f->v[a], &f->v[i]) < 2 * width / bend);
		     i++)
			f->v[i].near = fmax(f->v[i].near, bend);
		for (size_t i = a;
		     bend > 0 && i-- > 0 && (i + 2 > a || fit_dist(&f->v[i], &f->v[a]) < 2 * width / bend);)
			f->v[i].near = fmax(f->v[i].near, bend);
	}
	for (size_t i = 0; i < f->n; i++) {
		sum += f->v[i].near;
		f->v[i].bent = sum;
		last = f->v[i].near > 0 ? i : last;
	}
	if (last) /* these clocks are being slewed */
		f->bend = fmax(f->bend, sum / (double)f->n);
}

/* Documentation/clock-sync.md has the reason for each number. */
#define PASSES	     5
#define SPLITS	     8
#define BEND	     5e-6  /* what a rate changes by unseen, when nothing is said */
#define LINK_MAX     50e9  /* ns between points: stock multiplies in 64 bits */
#define DOUBT_PART   0.05  /* of a slice's events at most, and ... */
#define DOUBT_CHANCE 3	   /* ... one in so many of those that chance would leave outside */
#define ROOM_BEND    0.5   /* part of the corridor, on each side of its middle, to find bends ... */
#define ROOM_LAST    0.125 /* ... and for the result */

static int fit_init(struct fit *f, struct problem *p, const struct segment *segment)
{
	*f = (struct fit){ .p = p, .bend = p->in->max_bend > 0 ? p->in->max_bend : BEND };
	f->v = calloc(segment->last - segment->first + 2, sizeof(*f->v));
	if (!f->v)
		return -ENOMEM;
	f->v[f->n++].s = (struct slice){ .t0 = segment->t0, .t1 = segment->t0, .mid = segment->t0 };
	for (size_t i = segment->first; i < segment->last; i++) {
		struct slice s = p->slices[i];
		bool cut = s.t0 < segment->t0 || s.t1 > segment->t1;

		s.valid = s.valid && !cut && i >= segment->seen && i < segment->unseen;
		s.t0 = s.t0 < segment->t0 ? segment->t0 : s.t0;
		s.t1 = s.t1 > segment->t1 ? segment->t1 : s.t1;
		if (s.t0 >= s.t1)
			continue;
		if (cut)
			s.mid = s.t0 + (s.t1 - s.t0) / 2;
		if (s.mid <= f->v[f->n - 1].s.mid)
			continue;
		f->base = f->n == 1 || s.valid ? s.low : f->base;
		f->v[f->n++].s = s;
	}
	if (segment->t1 - 1 > f->v[f->n - 1].s.mid)
		f->v[f->n++].s =
			(struct slice){ .t0 = segment->t1, .t1 = segment->t1, .mid = segment->t1 - 1 };
	for (size_t i = 0; i < f->n; i++) {
		f->v[i].s.rate = p->rate;
		f->v[i].s.offset = f->base;
		f->v[i].s.slope = 0;
	}
	return 0;
}

/* Narrows a node by what its neighbour allows. */
static void narrow_node(struct fit *f, struct node *a, const struct node *b)
{
	double play = f->p->rate * fabs(fit_dist(a, b));
	double low = b->low - play, high = b->high + play;

	if (low > a->high || high < a->low) {
		f->conflicts++;
		return;
	}
	a->low = low > a->low ? low : a->low;
	a->high = high < a->high ? high : a->high;
}

/* From point `a` as far as one line goes. Returns the next point. */
static size_t stab_one(struct fit *f, size_t a, double room)
{
	double least = -FIT_FAR, most = FIT_FAR, rise;
	size_t i;

	for (i = a + 1; i < f->n; i++) {
		double run = fit_dist(&f->v[a], &f->v[i]), mid = (f->v[i].low + f->v[i].high) / 2;
		double half = (f->v[i].high - f->v[i].low) * room;
		double low = (mid - half - f->v[a].y) / run, high = (mid + half - f->v[a].y) / run;

		if (low > most || high < least || (run > LINK_MAX && i > a + 1))
			break;
		least = low > least ? low : least;
		most = high < most ? high : most;
	}
	i--;
	f->v[i].y = f->v[a].y + (least + most) / 2 * fit_dist(&f->v[a], &f->v[i]);
	rise = f->v[i].y - f->v[a].y;
	for (size_t k = a + 1; k < i; k++)
		f->v[k].y = f->v[a].y + rise * fit_dist(&f->v[a], &f->v[k]) / fit_dist(&f->v[a], &f->v[i]);
	f->v[i].point = true;
	return i;
}

static void stab_all(struct fit *f, double room)
{
	for (size_t i = 0; i < f->n; i++)
		f->v[i].point = false;
	f->v[0].point = true;
	f->v[0].y = (f->v[0].low + f->v[0].high) / 2;
	for (size_t i = 0; i + 1 < f->n;)
		i = stab_one(f, i, room);
}

/* Corridor, bends, and all slices seen from each. */
static void narrow_all(struct fit *f, bool hard)
{
	struct view view;
	size_t before;

	f->conflicts = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct node *v = &f->v[i];

		v->low = v->s.valid ? (double)((hard ? v->s.low0 : v->s.low) - f->base) : -FIT_FAR;
		v->high = v->s.valid ? (double)((hard ? v->s.high0 : v->s.high) - f->base) : FIT_FAR;
	}
	for (size_t i = 1; i < f->n; i++)
		narrow_node(f, &f->v[i], &f->v[i - 1]);
	for (size_t i = f->n - 1; i-- > 0;)
		narrow_node(f, &f->v[i], &f->v[i + 1]);
	stab_all(f, ROOM_BEND);
	fit_find_bends(f);
	before = f->conflicts;
	/* each node by what all others allow, and the rates there */
	for (size_t i = 0; i < f->n; i++)
		see_node(f, i, &view);
	for (size_t i = 0; i < f->n; i++) {
		f->v[i].low = f->v[i].seen_low;
		f->v[i].high = f->v[i].seen_high;
	}
	if (f->conflicts > before)
		f->bend = fmin(f->bend * 4, f->p->rate);
}

/* Along the lines in the middle of the corridor. */
static int sweep_again(struct fit *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct node *v = &f->v[i];
		double width = v->high - v->low, room = width / 8 + 2000;
		int64_t low = f->base + (int64_t)floor(v->low - room);
		int64_t high = f->base + (int64_t)ceil(v->high + room);
		int ret;

		v->s.offset = f->base + llround((v->low + v->high) / 2);
		v->s.slope = v->slope;
		if (v->s.t0 == v->s.t1)
			continue;
		v->s.valid = false;
		if (width > UINT32_MAX / 2)
			continue;
		ret = sweep_slice(f->p, &v->s, low, high);
		if (ret)
			return ret;
	}
	return 0;
}

static bool any_valid(const struct fit *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].s.valid)
			return true;
	return false;
}

/*
 * A quarter of the slices have no larger part of their events outside, and what is usual lies above that by
 * two thirds of a deviation: windows are lost with all that is in them. `v`: room for all.
 */
static double usual_part(const struct fit *f, double *v)
{
	double events = 0, part;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].s.valid && f->v[i].s.n) {
			v[n++] = (double)(f->v[i].s.n - f->v[i].s.best) / f->v[i].s.n;
			events += f->v[i].s.n;
		}
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare_double);
	part = v[n / 4];
	return part + 0.67 * sqrt(2 * f->p->burst * part * (double)n / events);
}

/*
 * A stretch with far more events outside than the segment has elsewhere was
 * followed by chance: a jump that was not seen, say. What is too much adds up.
 */
static int mark_doubtful(struct fit *f)
{
	double *v = calloc(f->n, sizeof(*v)), part, sum = 0, usual = 0, n;
	double outside = events_by_chance(f->p, f->p->map, 0, UINT64_MAX, &n);
	/* as many more outside than usual are no jump: a small part of what chance would leave there */
	double more = n > 0 ? fmin(DOUBT_PART, outside / n / DOUBT_CHANCE) : DOUBT_PART;
	size_t since = 0;

	if (!v)
		return -ENOMEM;
	part = fmin(usual_part(f, v), f->p->least);
	free(v);
	for (size_t i = 0; i < f->n; i++) {
		double expect = part * f->v[i].s.n;

		if (!f->v[i].s.valid)
			continue;
		sum += (double)(f->v[i].s.n - f->v[i].s.best) - 1.3 * expect - more * f->v[i].s.n;
		usual += expect;
		if (sum <= 0) {
			sum = usual = 0;
			since = i + 1;
		} else if (sum > 8 + 2 * f->p->burst + 6 * sqrt(f->p->burst * usual)) {
			for (size_t k = since ? since - 1 : 0; k <= i + 1 && k < f->n; k++)
				f->v[k].unsure = true;
		}
	}
	return 0;
}

/* Half width of the truth about the line, anywhere between the points a and b; *unsure: there is doubt. */
static double link_bound(const struct fit *f, size_t a, size_t b, bool *unsure)
{
	double bound = 0;

	for (size_t i = a; i <= b; i++) {
		double below = f->v[i].y - f->v[i].low, above = f->v[i].high - f->v[i].y;
		double play = 0;

		/* largest distance of the truth from the corridor between nodes: convex except for bends */
		if (i > a)
			play = (f->bend + f->v[i].near + f->v[i - 1].near) *
			       fit_dist(&f->v[i - 1], &f->v[i]) / 2;
		*unsure = *unsure || f->v[i].unsure;
		bound = fmax(bound, fmax(below, above) + play);
	}
	return bound + 1; /* stock rounds */
}

static int put_points(const struct fit *f, struct sync_result *r)
{
	struct sync_offset_point *v = realloc(r->points, (r->n_points + f->n + 2) * sizeof(*v));
	double before = 0;
	bool unsure_before = false;

	if (!v)
		return -ENOMEM;
	r->points = v;
	for (size_t a = 0, b; a < f->n; a = b) {
		bool unsure = false;
		double after = 0, bound;

		b = fit_next_point(f, a);
		if (b < f->n)
			after = link_bound(f, a, b, &unsure);
		bound = ceil(fmax(before, after));
		v[r->n_points++] = (struct sync_offset_point){
			.time = f->v[a].s.mid,
			.offset = f->base + llround(f->v[a].y),
			.bound = bound < FIT_FAR / 2 ? (uint64_t)bound : UINT64_MAX,
			.class = bound >= FIT_FAR / 2 || unsure || unsure_before ? SYNC_NONE
				 : f->hard					 ? SYNC_HARD
										 : SYNC_SOFT,
		};
		before = after;
		unsure_before = unsure;
	}
	return 0;
}

/* Adds a point at `time` on the extended line through points `near` and `far`, without a bound. */
static void put_unsure(struct sync_result *r, size_t at, uint64_t time, size_t near, size_t far)
{
	const struct sync_offset_point *a = &r->points[near], *b = &r->points[far];
	double slope = (double)(b->offset - a->offset) / (double)(int64_t)(b->time - a->time);
	struct sync_offset_point k = { .time = time, .bound = UINT64_MAX };

	k.offset = a->offset + llround(slope * (double)(int64_t)(time - a->time));
	memmove(&r->points[at + 1], &r->points[at], (r->n_points - at) * sizeof(k));
	r->points[at] = k;
	r->n_points++;
}

static int put_bands(const struct fit *f, struct sync_result *r)
{
	struct sync_band *v = realloc(r->bands, (r->n_bands + f->n) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	r->bands = v;
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].high - f->v[i].low < FIT_FAR / 2)
			v[r->n_bands++] =
				(struct sync_band){ f->v[i].s.mid, f->base + (int64_t)floor(f->v[i].low),
						    f->base + (int64_t)ceil(f->v[i].high) };
	return 0;
}

int drift_fit(struct problem *p, const struct segment *segment, struct sync_result *out)
{
	struct fit f;
	size_t first = out->n_points, last;
	int ret = fit_init(&f, p, segment);

	if (ret || f.n < 2)
		goto out;
	for (int pass = 0; pass < PASSES && any_valid(&f); pass++) {
		narrow_all(&f, false);
		if (pass > 1 && !f.conflicts)
			break;
		ret = sweep_again(&f);
		if (ret)
			goto out;
	}
	if (!any_valid(&f))
		goto out;
	/* by all events where none is outside, else by the tau rule */
	f.hard = true;
	for (size_t i = 0; i < f.n; i++)
		f.hard = f.hard && (f.v[i].s.t0 >= f.v[i].s.t1 || f.v[i].s.best >= f.v[i].s.n);
	narrow_all(&f, f.hard);
	if (f.hard && f.conflicts) {
		f.hard = false;
		narrow_all(&f, false);
	}
	stab_all(&f, ROOM_LAST);
	/* more points on long lines: the bound differs along them */
	for (size_t a = 0, b; a + 1 < f.n; a = b) {
		size_t step;

		b = fit_next_point(&f, a);
		step = (b - a) / SPLITS + 1;
		for (size_t i = a + step; i < b; i += step)
			f.v[i].point = true;
	}
	ret = mark_doubtful(&f);
	if (!ret && first)
		ret = array_push(&out->jumps, &out->n_jumps, &first, sizeof(first));
	ret = ret ?: put_points(&f, out);
	if (ret)
		goto out;
	/* around a jump some events could lie on either side of it */
	last = out->n_points - 1;
	if (last > first && segment->to > segment->t1)
		put_unsure(out, last + 1, segment->to - 1, last, last - 1);
	if (last > first && segment->from < segment->t0)
		put_unsure(out, first, segment->from, first, first + 1);
	ret = put_bands(&f, out);
out:
	free(f.v);
	return ret;
}
