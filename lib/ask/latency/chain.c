// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds pairs and chains of events by key, as far as clocks and losses leave them certain. */
#include "ask/latency/chain.h"

#define HELD_MAX (1u << 14)

/* The latest time that an event of a machine may have come at. */
struct chain_until {
	uint64_t ts;
	uint32_t input; /* + 1; 0: none */
};

/* State of one key at one point. */
struct chain_slot {
	uint32_t point, row;
	bool waiting; /* a chain does, whose events are at chain->events */
	bool unclear; /* its order is not certain */
	bool maybe;   /* none waits, but one may: it was not certain that it went */
	bool cut;     /* the last one that waited was cancelled */
	uint32_t id;  /* of the chain */
	struct latency_key carry;
	struct latency_key at;	     /* `look` of the event with which the chain came here */
	bool shared;		     /* chains of several rows came since the last that continued */
	bool looked;		     /* an event of this point came: ... */
	struct chain_event last;     /* ... the last one, ... */
	struct latency_key onward;   /* ... and its `next` */
	struct chain_until until[2]; /* the two latest, of different machines */
	uint64_t held;		     /* 1 + number of the last that is held and went from here; 0: none */
};

/* A chain that continued, or is complete: an event to come may make that doubtful. */
struct chain_held {
	uint64_t before; /* the one before in its slot, as chain_slot.held */
	uint32_t id;
	uint32_t row;
	bool unclear;
	size_t n;	       /* complete: events; else 0 */
	struct chain_event at; /* with which it went */
	struct chain_event v[CHAIN_POINTS_MAX];
};

struct chain {
	struct chain_results to;
	size_t n_points;
	uint64_t reach;
	struct chain_slot *slots;
	struct chain_event *events; /* n_points - 1 for each slot */
	size_t n_slots, n_events;   /* there is room for */
	struct latency_keys keys;   /* of the slots, by their numbers */
	struct chain_held *held;    /* a ring of HELD_MAX */
	uint64_t first, end;	    /* numbers of those held */
	/* by id: whether the chain continued in doubt. Reusing an id too early may report a false doubt */
	bool *doubts;
	uint32_t *spare; /* ids of chains that ended */
	size_t n_ids, n_spare, spare_room;
};

static uint32_t latency_key_hash(const struct latency_key *key)
{
	return map_hash(key->scope * 0xbf58476d1ce4e5b9ull ^ key->value);
}

static bool latency_key_same(const void *keys, size_t index, const void *wanted)
{
	const struct latency_key *at = (const struct latency_key *)keys + index, *key = wanted;

	return at->value == key->value && at->scope == key->scope;
}

size_t latency_keys_find(const struct latency_keys *k, const struct latency_key *key)
{
	return map_find(&k->map, latency_key_hash(key), latency_key_same, k->v, key);
}

int latency_keys_reach(struct latency_keys *k, const struct latency_key *key, size_t *i)
{
	return map_reach(&k->map, latency_key_hash(key), latency_key_same, &k->v, &k->n, key, sizeof(*key),
			 i);
}

int latency_keys_add(struct latency_keys *k, const struct latency_key *key)
{
	return map_push(&k->map, latency_key_hash(key), &k->v, &k->n, key, sizeof(*key));
}

void latency_keys_release(struct latency_keys *k)
{
	free(k->v);
	map_release(&k->map);
	*k = (struct latency_keys){ 0 };
}

/* Of the key at that point. */
static struct latency_key chain_key(const struct latency_key *key, size_t point)
{
	return (struct latency_key){ key->scope ^ (uint64_t)point << 56, key->value };
}

static struct chain_slot *chain_find(const struct chain *c, const struct latency_key *key, size_t point)
{
	struct latency_key at = chain_key(key, point);
	size_t i = latency_keys_find(&c->keys, &at);

	return i == MAP_NONE ? NULL : &c->slots[i];
}

/* *out NULL: there are too many. */
static int chain_slot(struct chain *c, const struct latency_key *key, size_t point, struct chain_slot **out)
{
	struct latency_key at = chain_key(key, point);
	size_t n = c->keys.n;

	*out = chain_find(c, key, point);
	if (*out || n == CHAIN_KEYS_MAX)
		return 0;
	if (array_reach(&c->slots, &c->n_slots, n + 1, sizeof(*c->slots)) ||
	    array_reach(&c->events, &c->n_events, n + 1, (c->n_points - 1) * sizeof(*c->events)) ||
	    latency_keys_add(&c->keys, &at))
		return -ENOMEM;
	*out = &c->slots[n];
	**out = (struct chain_slot){ .point = (uint32_t)point };
	return 0;
}

static struct chain_event *chain_events(const struct chain *c, const struct chain_slot *s)
{
	return c->events + (size_t)(s - c->slots) * (c->n_points - 1);
}

/* Events without a bound use the widest known bound, next to other chains. */
static uint64_t chain_bound(const struct chain *c, const struct chain_event *e)
{
	return e->bound == UINT64_MAX ? c->reach : e->bound;
}

static uint64_t chain_latest(const struct chain *c, const struct chain_event *e)
{
	uint64_t bound = chain_bound(c, e);

	return bound > UINT64_MAX - e->ts ? UINT64_MAX : e->ts + bound;
}

static uint64_t chain_earliest(const struct chain *c, const struct chain_event *e)
{
	uint64_t bound = chain_bound(c, e);

	return bound > e->ts ? 0 : e->ts - bound;
}

/* Earlier than that by so many of the widest bounds. */
static uint64_t chain_since(const struct chain *c, const struct chain_event *e, uint64_t reaches)
{
	uint64_t ts = chain_earliest(c, e);

	return c->reach * reaches > ts ? 0 : ts - c->reach * reaches;
}

static void slot_note(const struct chain *c, struct chain_slot *s, const struct chain_event *e)
{
	struct chain_until now = { chain_latest(c, e), e->input + 1 }, *u = s->until;
	int at = u[0].input == now.input ? 0 : 1;

	if (u[at].input == now.input ? now.ts > u[at].ts : !u[0].input || !u[1].input || now.ts > u[1].ts)
		u[u[0].input ? at : 0] = now;
	if (u[1].input && u[1].ts > u[0].ts) {
		now = u[0];
		u[0] = u[1];
		u[1] = now;
	}
}

/* True if an event of another machine that came before may have come after this one. */
static bool slot_doubts(const struct chain *c, const struct chain_slot *s, const struct chain_event *e)
{
	const struct chain_until *u = &s->until[s->until[0].input == e->input + 1];

	return u->input && u->ts >= chain_earliest(c, e);
}

/* An event at the slot makes those chains doubtful that went from there and that it may have come before. */
static void slot_doubt_held(struct chain *c, const struct chain_slot *s, const struct chain_event *e)
{
	uint64_t from = chain_earliest(c, e);

	for (uint64_t at = s->held; at > c->first; at = c->held[(at - 1) % HELD_MAX].before) {
		struct chain_held *h = &c->held[(at - 1) % HELD_MAX];

		if (h->at.input != e->input && chain_latest(c, &h->at) >= from)
			h->unclear = true;
		else if (h->at.ts < from && from - h->at.ts > c->reach)
			break;
	}
}

static int chain_new(struct chain *c, uint32_t *id)
{
	size_t n = c->n_ids;

	*id = 0;
	if (!c->reach)
		return 0;
	if (!c->n_spare && (array_reach(&c->doubts, &c->n_ids, n + 1, sizeof(*c->doubts)) ||
			    array_reach(&c->spare, &c->spare_room, c->n_ids, sizeof(*c->spare))))
		return -ENOMEM;
	for (; n < c->n_ids; n++)
		c->spare[c->n_spare++] = (uint32_t)n;
	*id = c->spare[--c->n_spare];
	c->doubts[*id] = false;
	return 0;
}

static void chain_over(struct chain *c, uint32_t id)
{
	if (c->reach)
		c->spare[c->n_spare++] = id;
}

static int chain_result(struct chain *c, uint32_t row, const struct chain_event *v, size_t n, bool unclear)
{
	enum chain_fate fate = unclear ? CHAIN_UNDECIDED : CHAIN_DONE;

	if (c->to.lost && c->to.lost(c->to.ctx, v, n))
		fate = CHAIN_LOST;
	return c->to.add(c->to.ctx, fate, row, v, n);
}

/* Lets go of the oldest; those before it have been. */
static int chain_let_go(struct chain *c, bool unclear)
{
	struct chain_held *h = &c->held[c->first++ % HELD_MAX];

	unclear |= h->unclear;
	if (!h->n) {
		c->doubts[h->id] |= unclear;
		return 0;
	}
	unclear |= c->doubts[h->id];
	chain_over(c, h->id);
	return chain_result(c, h->row, h->v, h->n, unclear);
}

/*
 * Lets go of chains that no later event can make doubtful: one that may have come before, or after an event
 * that may have come after another that may have (chain_perhaps).
 */
static int chain_settle(struct chain *c, uint64_t now)
{
	int ret = 0;

	while (c->first < c->end && !ret) {
		uint64_t ts = c->held[c->first % HELD_MAX].at.ts;

		if (now < ts || (now - ts) / 4 <= c->reach)
			break;
		ret = chain_let_go(c, false);
	}
	return ret;
}

static int slot_stop(struct chain *c, struct chain_slot *s)
{
	if (!s->waiting)
		return 0;
	s->waiting = false;
	chain_over(c, s->id);
	return c->to.add(c->to.ctx, CHAIN_STOPPED, s->row, chain_events(c, s), s->point);
}

/* Content of a chain on its way from slot to slot. */
struct chain_going {
	struct chain_event v[CHAIN_POINTS_MAX];
	struct latency_key carry;
	uint32_t id, row;
	bool unclear;
};

static struct latency_key chain_carried(struct latency_key key, const struct latency_key *carry)
{
	if (key.scope == CHAIN_CARRIED)
		return *carry;
	if (key.scope == CHAIN_CARRIED_SCOPE)
		key.scope = carry->scope;
	return key;
}

/*
 * In an order that is possible a chain continued from the slot at that time: the chain at the next slot may
 * have stopped there, and (far) those at later ones.
 */
static int chain_perhaps(struct chain *c, const struct chain_slot *from, struct latency_key carry,
			 uint64_t ts, bool far)
{
	size_t point = from->point;
	int ret = 0;

	while (++point < c->n_points && from->looked && !ret) {
		struct latency_key key = chain_carried(from->onward, &carry);
		struct chain_slot *s;

		ret = chain_slot(c, &key, point, &s);
		if (ret || !s)
			break;
		s->unclear |= s->waiting;
		s->maybe |= !s->waiting;
		if (!s->waiting)
			s->carry = carry;
		/* Chains that went from there since then are in doubt. */
		for (uint64_t at = s->held; at > c->first; at = c->held[(at - 1) % HELD_MAX].before) {
			struct chain_held *h = &c->held[(at - 1) % HELD_MAX];

			if (h->at.ts >= ts)
				h->unclear = true;
			else if (ts - h->at.ts > c->reach)
				break;
		}
		if (!far)
			break;
		from = s;
	}
	return ret;
}

/* With event number `point` it comes to wait for the next. */
static int chain_arrive(struct chain *c, const struct chain_step *step, const struct chain_going *g)
{
	const struct chain_event *e = &g->v[step->point];
	struct latency_key key = chain_carried(step->next, &g->carry);
	struct chain_slot *s;
	bool doubts;
	int ret;

	ret = chain_slot(c, &key, step->point + 1, &s);
	if (ret)
		return ret;
	if (!s) {
		chain_over(c, g->id);
		return c->to.add(c->to.ctx, CHAIN_REFUSED, g->row, g->v, step->point + 1);
	}
	s->shared = step->shares && ((s->waiting && s->row != g->row) || s->shared);
	ret = slot_stop(c, s);
	doubts = slot_doubts(c, s, e);
	s->unclear = g->unclear || doubts || s->shared;
	slot_doubt_held(c, s, e);
	slot_note(c, s, e);
	s->waiting = true;
	s->maybe = s->cut = false;
	s->id = g->id;
	s->row = g->row;
	s->carry = g->carry;
	s->at = step->look;
	memcpy(chain_events(c, s), g->v, (step->point + 1) * sizeof(*e));
	if (doubts && !ret)
		ret = chain_perhaps(c, s, g->carry, chain_since(c, e, 3), true);
	return ret;
}

/* No chain waits for the event. */
static int chain_stray(struct chain *c, const struct chain_slot *s, const struct chain_step *step)
{
	bool maybe = s && s->maybe;

	if (step->point + 1 < c->n_points)
		return maybe ? chain_perhaps(c, s, s->carry, chain_since(c, &step->event, 1), false) : 0;
	return c->to.add(c->to.ctx, maybe ? CHAIN_UNDECIDED : CHAIN_STRAY, step->row, &step->event, 1);
}

/* The chain that waits in the slot continues. */
static int chain_go(struct chain *c, struct chain_slot *s, const struct chain_step *step, bool unclear)
{
	struct chain_going g;
	const struct chain_event *before = step->before, *last = &g.v[step->point - 1], *now = &step->event;
	bool complete = step->point + 1 == c->n_points;
	struct chain_event all[CHAIN_POINTS_MAX];
	size_t n = 0;
	int ret;

	g.carry = s->carry;
	g.id = s->id;
	g.row = step->moves ? step->row : s->row;
	memcpy(g.v, chain_events(c, s), step->point * sizeof(g.v[0]));
	g.v[step->point] = step->event;
	/* in order by these two events; slot_doubts knows of others */
	g.unclear = unclear || s->unclear || last->ts > now->ts ||
		    (last->input != now->input && (last->bound == UINT64_MAX || now->bound == UINT64_MAX));
	if (before) {
		if (before->ts > g.v[0].ts)
			return slot_stop(c, s);
		g.unclear |= before->input != g.v[0].input &&
			     chain_latest(c, before) >= chain_earliest(c, &g.v[0]);
		all[n++] = *before;
	}
	memcpy(all + n, g.v, (step->point + 1) * sizeof(all[0]));
	n = complete ? n + step->point + 1 : 0;
	s->waiting = s->shared = false;
	s->maybe = g.unclear;
	if (!c->reach) {
		ret = complete ? chain_result(c, g.row, all, n, g.unclear) : 0;
	} else { /* it goes from the slot, and is held: a later event may make it doubtful */
		struct chain_held h = { .before = s->held,
					.id = s->id,
					.row = g.row,
					.unclear = g.unclear,
					.n = n,
					.at = step->event };

		memcpy(h.v, all, n * sizeof(all[0]));
		/* of too many at a time the oldest is not waited for */
		ret = c->end - c->first == HELD_MAX ? chain_let_go(c, true) : 0;
		c->held[c->end % HELD_MAX] = h;
		s->held = ++c->end;
	}
	return ret || complete ? ret : chain_arrive(c, step, &g);
}

/*
 * Finds the slot of the step's event. unclear: it may have come before others there, so that in
 * another order others continued, and not then.
 */
static int chain_look(struct chain *c, const struct chain_step *step, struct chain_slot **out, bool *unclear)
{
	struct chain_slot *s = chain_find(c, &step->look, step->point);
	int ret = 0;

	if (!s && c->reach) /* one that comes later may have come before */
		ret = chain_slot(c, &step->look, step->point, &s);
	*out = s;
	if (ret || !s)
		return ret;
	*unclear = slot_doubts(c, s, &step->event);
	slot_doubt_held(c, s, &step->event);
	slot_note(c, s, &step->event);
	if (*unclear)
		ret = chain_perhaps(c, s, s->carry, chain_since(c, &step->event, 3), true);
	*out = chain_find(c, &step->look, step->point); /* slots may have moved */
	return ret;
}

int chain_take(struct chain *c, const struct chain_step *step)
{
	const struct chain_event *first;
	struct chain_slot *s;
	bool unclear, other;
	int ret = chain_settle(c, step->event.ts);

	if (!ret && !step->point) {
		struct chain_going g; /* no event is there yet but the first */

		g.v[0] = step->event;
		g.carry = step->carry;
		g.id = 0;
		g.row = step->row;
		g.unclear = false;
		return chain_new(c, &g.id) ?: chain_arrive(c, step, &g);
	}
	ret = ret ?: chain_look(c, step, &s, &unclear);
	if (ret || !s)
		return ret ? ret : chain_stray(c, NULL, step);
	first = chain_events(c, s);
	/* not of the chain that waits there: see chain_step.at */
	other = s->waiting && step->at.scope &&
		(step->at.scope != s->at.scope || step->at.value != s->at.value ||
		 (s->looked && s->last.input == first->input && s->last.ts >= first->ts));
	s->looked = true;
	s->last = step->event;
	s->onward = step->next;
	s->maybe |= s->cut && unclear; /* before it was cut, perhaps */
	if (other)
		return slot_stop(c, s);
	return s->waiting ? chain_go(c, s, step, unclear) : chain_stray(c, s, step);
}

int chain_cancel(struct chain *c, const struct chain_step *step)
{
	struct chain_slot *s;
	bool unclear;
	int ret = chain_settle(c, step->event.ts) ?: chain_look(c, step, &s, &unclear);

	if (ret || !s || !s->waiting)
		return ret;
	s->cut = !unclear;
	s->unclear |= unclear;
	return unclear ? 0 : slot_stop(c, s);
}

int chain_end(struct chain *c)
{
	int ret = 0;

	while (c->first < c->end && !ret)
		ret = chain_let_go(c, false);
	for (size_t i = 0; i < c->keys.n && !ret; i++)
		ret = slot_stop(c, &c->slots[i]);
	return ret;
}

int chain_open(struct chain **out, size_t n_points, uint64_t reach, const struct chain_results *to)
{
	struct chain *c = *out = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct chain){ .to = *to, .n_points = n_points, .reach = reach };
	if (reach)
		c->held = malloc(HELD_MAX * sizeof(*c->held));
	return reach && !c->held ? -ENOMEM : 0;
}

void chain_close(struct chain *c)
{
	if (!c)
		return;
	free(c->slots);
	free(c->events);
	latency_keys_release(&c->keys);
	free(c->held);
	free(c->doubts);
	free(c->spare);
	free(c);
}
