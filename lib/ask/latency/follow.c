// SPDX-License-Identifier: LGPL-2.1-or-later
/* Follows chains through the records: finds points and their keys on every core, joins them in order. */
#include "ask/latency/latency-priv.h"

/* A record as one point; or a CPU that begins or ceases to lose events. */
struct latency_hit {
	struct chain_step step;
	struct latency_key row;
	uint32_t stream;
	uint16_t term;
	enum { HIT_POINT, HIT_LOSES, HIT_LOST, HIT_BEGIN, HIT_END } kind;
	uint64_t raw;
};

/* A run's, for one of those that share a reading. */
struct latency_run {
	struct buf hits;
	size_t points;	   /* events of so many were looked at; of the others none can be in a chain yet */
	bool ready;	   /* events of the last of those came: the next ones can be */
	bool paused, lost; /* there were such places */
	struct latency_count counts[LATENCY_TERMS_MAX];
};

struct latency_runs {
	size_t n;
	struct latency_run v[];
};

void latency_runs_free(void *own)
{
	struct latency_runs *runs = own;

	for (size_t i = 0; runs && i < runs->n; i++)
		buf_release(&runs->v[i].hits);
	free(runs);
}

/* Sets the keys of different kinds apart. */
static void latency_set_kind(struct latency_key *key, unsigned int kind)
{
	if (key->scope != CHAIN_CARRIED && key->scope != CHAIN_CARRIED_SCOPE)
		key->scope |= (uint64_t)kind << 40;
}

static int latency_hit(const struct latency *l, const struct merge_stream *at, const struct merge_record *m,
		       const struct latency_source *s, struct latency_run *r)
{
	const struct filter_record rec = { m->data, m->len, s->id, at->cpu };
	const struct latency_term *term = &l->plan->terms[s->term];
	const struct input *in = &l->in->v[at->input];
	struct latency_hit *h;
	struct chain_step *step;
	uint64_t next = 0;

	r->counts[s->term].seen++;
	if (s->filter && !filter_match(s->filter, &rec))
		return 0;
	r->counts[s->term].passed++;
	h = buf_room(&r->hits, sizeof(*h));
	if (!h)
		return -ENOMEM;
	*h = (struct latency_hit){ .term = (uint16_t)s->term };
	step = &h->step;
	if (!latency_take(&s->look, l->vcpus, m, at->cpu, &step->look) ||
	    !latency_take(&s->next, l->vcpus, m, at->cpu, &step->next) ||
	    !latency_take(&s->carry, l->vcpus, m, at->cpu, &step->carry) ||
	    !latency_take(&s->at, l->vcpus, m, at->cpu, &step->at) ||
	    !latency_take(&s->row, l->vcpus, m, at->cpu, &h->row)) {
		r->counts[s->term].keyless++;
		return 0;
	}
	step->point = term->point;
	step->event = (struct chain_event){ m->ts, 0, (uint32_t)at->input, at->cpu, -1 };
	if (term->look.field && !strcmp(term->look.field, "next_pid") &&
	    field_load_number(&s->look.field, m->data, m->len, &next))
		step->event.pid = (int32_t)next;
	else
		step->event.pid = timeline_pid(&in->known[s->id].pid, m);
	if (l->reach && in->guest)
		step->event.bound = filetime_bound(&in->time, m->raw);
	if (s->row.by == BY_NOTHING)
		h->row = term->point == l->plan->recalls ? step->next : step->look;
	if (s->at.by == BY_NOTHING)
		step->at = (struct latency_key){ 0 };
	step->shares = term->shares;
	latency_set_kind(&step->look, term->kind);
	latency_set_kind(&step->next, term->kind);
	latency_set_kind(&step->carry, term->kind);
	r->hits.len += sizeof(*h);
	r->ready |= !term->cancels && term->point + 1 == r->points && r->points < l->plan->n_points;
	return 0;
}

/* The record is the first, or the last, of its CPU; or from it on, or until it, events are lost there. */
static int latency_edge(const struct latency *l, const struct merge_stream *at, const struct merge_record *m,
			int kind, struct latency_run *r)
{
	const struct known_event *e = m->data ? input_event(&l->in->v[at->input], timeline_id(m)) : NULL;
	bool loss = kind == HIT_LOSES || kind == HIT_LOST;
	struct latency_hit h = { .kind = kind, .stream = m->stream, .raw = loss ? m->raw : m->ts };

	/* a buffer holds either the kernel's events or the hypervisor's */
	if (kind == HIT_LOSES && e && !l->v[at->input].wanted[e->hyp])
		return 0;
	buf_add(&r->hits, &h, sizeof(h));
	return buf_status(&r->hits);
}

static int latency_record(const struct latency *l, const struct merge_stream *at,
			  const struct merge_record *m, struct latency_run *r)
{
	const struct latency_input *v = &l->v[at->input];
	unsigned int id = timeline_id(m), kind = 0;
	size_t last = SIZE_MAX, n = r->hits.len;
	int ret = 0;

	r->paused |= m->paused;
	r->lost |= m->missed != 0;
	if (m->paused || (m->missed && m->data))
		ret = latency_edge(l, at, m, HIT_LOST, r);
	/* as each of its points; of a point with several events it is one of them */
	for (size_t k = id < v->n_ids && v->first[id] ? v->first[id] - 1 : v->n;
	     k < v->n && v->v[k].id == id && !ret; k++) {
		const struct latency_term *term = &l->plan->terms[v->v[k].term];

		if (term->point >= r->points ||
		    (!term->cancels && term->point == last && term->kind == kind && r->hits.len > n))
			continue;
		n = r->hits.len;
		last = term->point;
		kind = term->kind;
		ret = latency_hit(l, at, m, &v->v[k], r);
	}
	if (m->gap && !ret)
		ret = latency_edge(l, at, m, HIT_LOSES, r);
	if (m->end && !ret)
		ret = latency_edge(l, at, m, HIT_END, r);
	return ret;
}

/* For those of l->group from `from` on and before `to`. */
static int latency_look(const struct latency *l, size_t from, size_t to, const struct merge_run *records,
			struct latency_runs *runs)
{
	uint32_t all = (uint32_t)((1ull << to) - (1ull << from)), wants;
	const struct merge_stream *at = NULL;
	const struct latency_input *v = NULL;
	uint32_t stream = 0;
	int ret = 0;

	for (size_t k = from; k < to; k++) {
		runs->v[k].hits.len = 0;
		runs->v[k].points = __atomic_load_n(&l->group[k]->points, __ATOMIC_RELAXED);
		runs->v[k].ready = false;
	}
	for (const struct merge_record *m = records->v; m < records->v + records->n && !ret; m++) {
		unsigned int id = timeline_id(m);

		if (!at || m->stream != stream) {
			stream = m->stream;
			at = merge_stream(l->t->merge, m);
			v = &l->v[at->input];
			for (size_t k = from; k < to && !ret; k++)
				if (!__atomic_load_n(&l->group[k]->started[stream], __ATOMIC_RELAXED))
					ret = latency_edge(l->group[k], at, m, HIT_BEGIN, &runs->v[k]);
		}
		wants = m->paused || m->missed || m->gap || m->end ? all
			: id < v->n_ids				   ? v->wants[id] & all
								   : 0;
		for (; wants && !ret; wants &= wants - 1) {
			size_t k = (size_t)__builtin_ctz(wants);

			ret = latency_record(l->group[k], at, m, &runs->v[k]);
		}
	}
	return ret;
}

int latency_work(void *ctx, struct pass_run *run)
{
	const struct latency *l = ctx;
	struct latency_runs *runs = run->own;

	if (!runs) {
		runs = run->own = calloc(1, sizeof(*runs) + l->n_group * sizeof(*runs->v));
		if (!runs)
			return -ENOMEM;
		runs->n = l->n_group;
	}
	return latency_look(l, 0, l->n_group, run->records, runs);
}

/* ---- stretches of lost events by place: a machine, or a CPU ------------------------------------- */

#define LOSSES_KEPT 64

/* Several CPUs may share a place: a stretch lasts until none of them loses events. */
struct losses_place {
	size_t open; /* CPUs that are losing; the last stretch has no end then */
	size_t n;
	struct {
		uint64_t from, to;
	} v[LOSSES_KEPT]; /* apart from each other, the oldest first */
};

/* The place whose chains a loss there can concern: all machines, one, or a CPU. */
static struct latency_key latency_place(const struct latency *l, size_t input, unsigned int cpu)
{
	bool apart = l->plan->apart, by_cpu = l->plan->terms[0].next.by == BY_CPU;

	return (struct latency_key){ apart ? (uint64_t)(input + 1) << 32 | (by_cpu ? cpu + 1 : 0) : 0, 0 };
}

/* The earliest or latest possible host time. */
static uint64_t latency_time(const struct latency *l, const struct merge_stream *at, uint64_t raw, bool late)
{
	const struct filetime *t = &l->in->v[at->input].time;
	uint64_t ts = filetime_apply(t, at->cpu, raw);
	uint64_t bound = l->reach && l->in->v[at->input].guest ? filetime_bound(t, raw) : 0;

	if (bound > l->reach)
		bound = l->reach;
	if (late)
		return bound > UINT64_MAX - ts ? UINT64_MAX : ts + bound;
	return bound > ts ? 0 : ts - bound;
}

/* Events of the stream are lost from that time on. */
static int latency_loses(struct latency *l, uint32_t stream, uint64_t from)
{
	const struct merge_stream *at = merge_stream_at(l->t->merge, stream);
	struct latency_key place = latency_place(l, at->input, at->cpu);
	struct losses_place *p;
	size_t i;

	if (l->losing[stream])
		return 0;
	l->losing[stream] = true;
	if (latency_keys_reach(&l->losses.places, &place, &i) ||
	    array_reach(&l->losses.v, &l->losses.n, i + 1, sizeof(*l->losses.v)))
		return -ENOMEM;
	p = &l->losses.v[i];
	if (p->open++)
		return 0;
	if (p->n && from <= p->v[p->n - 1].to) {
		p->v[p->n - 1].to = UINT64_MAX;
		return 0;
	}
	if (p->n == LOSSES_KEPT) { /* the two oldest become one */
		p->v[1].from = p->v[0].from;
		memmove(&p->v[0], &p->v[1], --p->n * sizeof(p->v[0]));
	}
	p->v[p->n].from = from;
	p->v[p->n++].to = UINT64_MAX;
	return 0;
}

/* The losses before the first records. */
int latency_losses_begin(struct latency *l)
{
	size_t n = merge_streams(l->t->merge);
	int ret = 0;

	l->losing = calloc(n + 1, sizeof(*l->losing));
	l->started = calloc(n + 1, sizeof(*l->started));
	if (!l->losing || !l->started)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !ret; i++)
		if (merge_stream_at(l->t->merge, i)->gap)
			ret = latency_loses(l, i, 0);
	return ret;
}

/* Of what is long ago perhaps too often. */
bool latency_lost(void *ctx, const struct chain_event *v, size_t n)
{
	const struct latency *l = ctx;
	struct latency_key place = latency_place(l, v[0].input, v[0].cpu);
	size_t at = latency_keys_find(&l->losses.places, &place);
	const struct losses_place *p = at == MAP_NONE ? NULL : &l->losses.v[at];
	uint64_t from = UINT64_MAX, to = 0;

	if (!p)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t bound = v[i].bound < l->reach ? v[i].bound : l->reach;
		uint64_t early = bound > v[i].ts ? 0 : v[i].ts - bound, late = v[i].ts + bound;

		from = early < from ? early : from;
		to = late > to ? late : to;
	}
	for (size_t i = p->n; i-- > 0 && p->v[i].to >= from;)
		if (p->v[i].from <= to)
			return true;
	return false;
}

#define LINES_MAX   256
#define HANDLER_MAX 16
#define WINDOWS_MIN 3

struct line {
	uint64_t scope, value;
	uint64_t windows; /* from an injection to the next with handlers in between */
	uint32_t of;	  /* settled: the guest's number; 0: unknown */
	bool known, full; /* full: of more handlers than are kept */
	size_t n;
	struct {
		uint64_t windows, times;
		uint32_t irq;
		bool now; /* in this window */
	} v[HANDLER_MAX];
};

static struct line *lines_find(const struct lines *l, uint64_t scope, uint64_t value)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].scope == scope && l->v[i].value == value)
			return &l->v[i];
	return NULL;
}

/* Ends a window, unless it has no handlers yet. */
static void line_close(struct line *line)
{
	bool any = false;

	for (size_t i = 0; i < line->n; i++) {
		line->v[i].windows += line->v[i].now;
		any |= line->v[i].now;
		line->v[i].now = false;
	}
	line->windows += any;
}

static void lines_handler(struct lines *l, uint64_t scope, uint64_t value)
{
	uint32_t irq = (uint32_t)(value >> 32);

	for (size_t i = 0; i < l->n; i++) {
		struct line *line = &l->v[i];
		size_t k = 0;

		if (line->scope != scope)
			continue;
		while (k < line->n && line->v[k].irq != irq)
			k++;
		if (k == HANDLER_MAX) {
			line->full = true;
			continue;
		}
		line->n += k == line->n;
		line->v[k].irq = irq;
		line->v[k].times++;
		line->v[k].now = true;
	}
}

void lines_settle(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct line *line = &l->v[i];
		size_t fit = 0;

		line_close(line);
		for (size_t k = 0; k < line->n; k++)
			if (line->v[k].windows * 10 >= line->windows * 9 &&
			    line->v[k].times * 9 <= line->windows * 10 + 9) {
				line->of = line->v[k].irq;
				fit++;
			}
		if (fit != 1 || line->full || line->windows < WINDOWS_MIN)
			line->of = 0;
	}
	for (size_t i = 0; i < l->n; i++) {
		struct line *a = &l->v[i];

		a->known = a->of;
		for (const struct line *b = l->v; b < l->v + l->n && a->known; b++)
			a->known = a->scope != b->scope || a->of != b->of || a->value >> 32 == b->value >> 32;
	}
}

/* An interrupt whose number means another one in the guest: see struct lines. False: it is of no chain. */
static bool latency_line(struct latency *l, struct latency_hit *h)
{
	struct latency_key *look = &h->step.look;
	const struct line *line;
	uint32_t number = 0;

	if (h->step.point) {
		for (line = l->lines.v; line < l->lines.v + l->lines.n; line++)
			if (line->known && line->scope == look->scope &&
			    line->of == (uint32_t)(look->value >> 32) &&
			    (uint32_t)line->value == (uint32_t)look->value) {
				number = (uint32_t)(line->value >> 32);
				break;
			}
		look->value = (uint32_t)look->value | (uint64_t)number << 32;
		return number;
	}
	line = lines_find(&l->lines, h->step.carry.scope, h->step.carry.value);
	if (line && line->known)
		return true;
	l->rows.v[h->step.row].undecided++;
	return false;
}

/* The row's number. -ENOMEM. */
static int latency_row_of(struct latency_rows *r, const struct latency_key *key, uint32_t *row)
{
	size_t at = latency_keys_find(&r->keys, key);
	struct latency_row *new;

	if (at != SIZE_MAX) {
		*row = (uint32_t)at;
		return 0;
	}
	if (r->n > LATENCY_ROWS_MAX) { /* the last one is the others' */
		*row = LATENCY_ROWS_MAX;
		return 0;
	}
	*row = (uint32_t)r->n;
	new = array_next(&r->v, r->n, sizeof(*new));
	if (!new || (r->n < LATENCY_ROWS_MAX && latency_keys_add(&r->keys, key)))
		return -ENOMEM;
	new->key = *key;
	new->others = r->n++ == LATENCY_ROWS_MAX;
	return 0;
}

static int latency_follow(struct latency *l, struct latency_hit *h)
{
	const struct latency_plan *plan = l->plan;
	const struct latency_term *term = &plan->terms[h->term];
	bool last = term->point + 1 == plan->n_points;
	const struct merge_stream *at = h->kind == HIT_POINT ? NULL : merge_stream_at(l->t->merge, h->stream);
	struct latency_input *v = at ? &l->v[at->input] : NULL;
	struct latency_key place;
	struct losses_place *p;
	uint64_t until;
	int ret = 0;

	switch (h->kind) {
	case HIT_LOSES:
		return latency_loses(l, h->stream, latency_time(l, at, h->raw, false));
	case HIT_LOST:
		if (!l->losing[h->stream])
			return 0;
		l->losing[h->stream] = false;
		place = latency_place(l, at->input, at->cpu);
		p = &l->losses.v[latency_keys_find(&l->losses.places, &place)];
		until = latency_time(l, at, h->raw, true);
		if (!--p->open)
			p->v[p->n - 1].to = until < p->v[p->n - 1].from ? p->v[p->n - 1].from : until;
		return 0;
	case HIT_BEGIN:
		if (l->started[h->stream])
			return 0;
		__atomic_store_n(&l->started[h->stream], 1, __ATOMIC_RELAXED);
		v->begun = h->raw < v->begun ? h->raw : v->begun;
		v->live++;
		return 0;
	case HIT_END:
		v->live--;
		return 0;
	case HIT_POINT:
		break;
	}
	if (plan->recalls && !term->point) {
		static const struct chain_event none = { .input = UINT32_MAX };
		size_t slot = latency_keys_find(&l->recalled, &h->step.carry);

		/* Point 0 of a plan that recalls it. */
		if (slot == MAP_NONE) {
			slot = l->n_recall;
			if (slot == CHAIN_KEYS_MAX)
				return 0;
			ret = array_push(&l->recall, &l->n_recall, &none, sizeof(none))
				      ?: latency_keys_add(&l->recalled, &h->step.carry);
		}
		if (!ret)
			l->recall[slot] = l->plan->terms[h->term].cancels ? none : h->step.event;
		return ret;
	}
	h->step.moves = term->point > plan->recalls && term->row.by != BY_NOTHING;
	if (term->point == plan->recalls || h->step.moves || (plan->strays && last))
		ret = latency_row_of(&l->rows, &h->row, &h->step.row);
	if (ret || (plan->lines && term->line && !latency_line(l, h)))
		return ret;
	h->step.point -= plan->recalls;
	if (plan->recalls && last) { /* the last point 0 of that key */
		size_t i = latency_keys_find(&l->recalled, &h->step.carry);

		if (i != MAP_NONE && l->recall[i].input != UINT32_MAX)
			h->step.before = &l->recall[i];
	}
	return term->cancels || (plan->recalls && last && !h->step.before) ? chain_cancel(l->chain, &h->step)
									   : chain_take(l->chain, &h->step);
}

/* Follows the run for leader->group[k]. */
static int latency_join_run(struct latency *leader, size_t k, const struct merge_run *records,
			    struct latency_runs *runs)
{
	struct latency *l = leader->group[k];
	struct latency_run *r = &runs->v[k];
	struct latency_hit *h;
	int ret = l->plan->stopped && l->plan->stopped(l->plan->ctx) ? -EINTR : 0;

	/* points that can come by now were passed over: work on it again */
	while (!ret && (r->ready || r->points < l->points)) {
		if (r->points == l->points)
			__atomic_store_n(&l->points, l->points + 1, __ATOMIC_RELAXED);
		ret = latency_look(leader, k, k + 1, records, runs);
	}
	h = (void *)r->hits.data;
	for (size_t n = r->hits.len / sizeof(*h); n && !ret; n--, h++) {
		if (!l->surveys)
			ret = latency_follow(l, h);
		else if (h->kind != HIT_POINT || !l->plan->terms[h->term].line)
			continue;
		else if (h->step.point)
			lines_handler(&l->lines, h->step.look.scope, h->step.look.value);
		else {
			struct line new = { .scope = h->step.carry.scope, .value = h->step.carry.value };
			struct line *line = lines_find(&l->lines, new.scope, new.value);

			if (line)
				line_close(line);
			else if (l->lines.n < LINES_MAX)
				ret = array_push(&l->lines.v, &l->lines.n, &new, sizeof(new));
		}
	}
	l->paused |= r->paused;
	l->lost |= r->lost;
	for (size_t i = 0; i < l->plan->n_terms && !l->surveys; i++) {
		l->counts[i].seen += r->counts[i].seen;
		l->counts[i].passed += r->counts[i].passed;
		l->counts[i].keyless += r->counts[i].keyless;
		r->counts[i] = (struct latency_count){ 0 };
	}
	return ret;
}

int latency_after(void *ctx, struct pass_run *run)
{
	struct latency *l = ctx;
	int ret = 0;

	for (size_t k = 0; k < l->n_group && !ret; k++)
		ret = latency_join_run(l, k, run->records, run->own);
	return ret;
}
