// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rows of exit tables, found by what they are of. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/exits-priv.h"
#include "util/array.h"

static size_t exits_map_hash(const struct exits_row *r)
{
	uint64_t h = r->key * 0x9e3779b97f4a7c15;

	h ^= (h >> 32) ^ ((uint64_t)r->vcpu << 20 | (uint64_t)r->info << 3 | r->table);
	return (size_t)(h * 0x9e3779b97f4a7c15 >> 32);
}

static bool exits_map_same(const struct exits_row *a, const struct exits_row *b)
{
	return a->key == b->key && a->info == b->info && a->vcpu == b->vcpu && a->table == b->table;
}

static uint32_t *exits_map_slot(const struct exits_map *m, const struct exits_row *like)
{
	size_t i = exits_map_hash(like) & (m->room - 1);

	while (m->slots[i] && !exits_map_same(&m->v[m->slots[i] - 1], like))
		i = (i + 1) & (m->room - 1);
	return &m->slots[i];
}

static int exits_map_grow(struct exits_map *m)
{
	size_t room = m->room ? 2 * m->room : 256;
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(m->slots);
	m->slots = slots;
	m->room = room;
	for (size_t i = 0; i < m->n; i++)
		*exits_map_slot(m, &m->v[i]) = (uint32_t)i + 1;
	return 0;
}

int exits_map_row(struct exits_map *m, const struct exits_row *like, size_t *index)
{
	uint32_t *slot;

	*index = EXITS_NO_ROW;
	if (2 * m->n >= m->room && exits_map_grow(m))
		return -ENOMEM;
	slot = exits_map_slot(m, like);
	if (!*slot && m->n == EXITS_ROWS_MAX)
		return 0;
	if (!*slot) {
		if (array_push(&m->v, &m->n, like, sizeof(*like)))
			return -ENOMEM;
		*slot = (uint32_t)m->n;
	}
	*index = *slot - 1;
	return 0;
}

void exits_map_release(struct exits_map *m)
{
	free(m->v);
	free(m->slots);
	*m = (struct exits_map){ 0 };
}
