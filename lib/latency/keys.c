// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keys of events by hash. */
#include "latency/keys.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

#define ROOM_MIN 64

/* Where in the table it is, or would be. */
static size_t latency_keys_place(const struct latency_keys *k, const struct latency_key *key)
{
	uint64_t h = key->scope * 0x9e3779b97f4a7c15ull;
	size_t i;

	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull + key->value;
	h = (h ^ h >> 32) * 0x94d049bb133111ebull;
	for (i = (h ^ h >> 29) & (k->room - 1); k->table[i]; i = (i + 1) & (k->room - 1)) {
		const struct latency_key *at = &k->v[k->table[i] - 1];

		if (at->value == key->value && at->scope == key->scope)
			break;
	}
	return i;
}

size_t latency_keys_find(const struct latency_keys *k, const struct latency_key *key)
{
	uint32_t at = k->room ? k->table[latency_keys_place(k, key)] : 0;

	return at ? at - 1 : SIZE_MAX;
}

static int latency_keys_grow(struct latency_keys *k)
{
	size_t room = k->room ? 2 * k->room : ROOM_MIN;
	uint32_t *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	free(k->table);
	k->table = table;
	k->room = room;
	for (size_t i = 0; i < k->n; i++)
		table[latency_keys_place(k, &k->v[i])] = (uint32_t)i + 1;
	return 0;
}

int latency_keys_add(struct latency_keys *k, const struct latency_key *key)
{
	int ret = 2 * (k->n + 1) > k->room ? latency_keys_grow(k) : 0;
	size_t at;

	if (ret)
		return ret;
	at = latency_keys_place(k, key);
	ret = array_push(&k->v, &k->n, key, sizeof(*key));
	if (!ret)
		k->table[at] = (uint32_t)k->n;
	return ret;
}

void latency_keys_release(struct latency_keys *k)
{
	free(k->v);
	free(k->table);
	*k = (struct latency_keys){ 0 };
}
