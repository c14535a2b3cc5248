// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where and when events were lost. */
#include "latency/losses.h"

#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define LOSSES_KEPT 64

struct losses_place {
	size_t open; /* CPUs that are losing; the last stretch has no end then */
	size_t n;
	struct {
		uint64_t from, to;
	} v[LOSSES_KEPT]; /* apart from each other, the oldest first */
};

static struct losses_place *losses_find(const struct losses *l, uint64_t place)
{
	struct latency_key key = { place, 0 };
	size_t at = latency_keys_find(&l->places, &key);

	return at == SIZE_MAX ? NULL : &l->v[at];
}

static int losses_add(struct losses *l, uint64_t place, struct losses_place **out)
{
	static const struct losses_place none;
	struct latency_key key = { place, 0 };
	int ret = array_push(&l->v, &l->n, &none, sizeof(none));

	if (ret)
		return ret;
	ret = latency_keys_add(&l->places, &key);
	if (ret)
		l->n--;
	*out = &l->v[l->n - 1];
	return ret;
}

int losses_open(struct losses *l, uint64_t place, uint64_t ts)
{
	struct losses_place *p = losses_find(l, place);
	int ret = p ? 0 : losses_add(l, place, &p);

	if (ret || p->open++)
		return ret;
	if (p->n && ts <= p->v[p->n - 1].to) {
		p->v[p->n - 1].to = UINT64_MAX;
		return 0;
	}
	if (p->n == LOSSES_KEPT) { /* the two oldest become one */
		p->v[1].from = p->v[0].from;
		memmove(&p->v[0], &p->v[1], --p->n * sizeof(p->v[0]));
	}
	p->v[p->n].from = ts;
	p->v[p->n++].to = UINT64_MAX;
	return 0;
}

void losses_close(struct losses *l, uint64_t place, uint64_t ts)
{
	struct losses_place *p = losses_find(l, place);

	if (p && p->open && !--p->open)
		p->v[p->n - 1].to = ts < p->v[p->n - 1].from ? p->v[p->n - 1].from : ts;
}

bool losses_between(const struct losses *l, uint64_t place, uint64_t from, uint64_t to)
{
	const struct losses_place *p = l->n ? losses_find(l, place) : NULL;

	for (size_t i = p ? p->n : 0; i-- > 0 && p->v[i].to >= from;)
		if (p->v[i].from <= to)
			return true;
	return false;
}

void losses_release(struct losses *l)
{
	latency_keys_release(&l->places);
	free(l->v);
	*l = (struct losses){ 0 };
}
