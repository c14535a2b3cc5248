// SPDX-License-Identifier: LGPL-2.1-or-later
/* Indices of an array's entries by a hash. */
#include "base/map.h"

static void map_put(struct map *m, const struct map_slot *new)
{
	size_t i = new->hash &(m->room - 1);

	while (m->slots[i].index)
		i = (i + 1) & (m->room - 1);
	m->slots[i] = *new;
	m->n++;
}

int map_insert(struct map *m, uint32_t hash, size_t index)
{
	const struct map_slot new = { hash, (uint32_t)index + 1 };

	if (2 * m->n >= m->room) {
		struct map bigger = { .room = m->room ? 2 * m->room : 64 };

		bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
		if (!bigger.slots)
			return -ENOMEM;
		for (size_t i = 0; i < m->room; i++)
			if (m->slots[i].index)
				map_put(&bigger, &m->slots[i]);
		map_release(m);
		*m = bigger;
	}
	map_put(m, &new);
	return 0;
}

int map_push(struct map *m, uint32_t hash, void *array, size_t *n, const void *entry, size_t size)
{
	int ret = array_push(array, n, entry, size);

	if (ret)
		return ret;
	ret = map_insert(m, hash, *n - 1);
	if (ret)
		--*n;
	return ret;
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}
