/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MAP_H
#define HYPTRACE_MAP_H

#include "base/array.h"

/*
 * Index of a growing array: finds an entry by its key, which the array holds. The map keeps indices by a hash
 * of the key, in open addressing, at most half full. Zero-initialised = empty. Entries cannot be removed; an
 * array whose entries move gets a new map. Of equal keys map_find returns the one inserted first.
 */
struct map {
	struct map_slot {
		uint32_t hash, index; /* 1 + the entry's index; 0: free */
	} * slots;
	size_t n, room;
};

#define MAP_NONE SIZE_MAX

/* True if that entry of the array has the wanted key. */
typedef bool map_same(const void *array, size_t index, const void *wanted);

/* Hashes of keys: of a number; of bytes, eight at a time; of more than one part, map_hash(a_hash ^ b). */
static inline uint32_t map_hash(uint64_t key)
{
	key = (key ^ key >> 32) * 0x9e3779b97f4a7c15;
	return (uint32_t)(key >> 32);
}

static inline uint32_t map_hash_bytes(const void *key, size_t len)
{
	uint64_t h = len, word;

	for (size_t i = 0; i < len; i += sizeof(word)) {
		word = 0;
		memcpy(&word, (const uint8_t *)key + i, len - i < sizeof(word) ? len - i : sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	return map_hash(h);
}

/* Returns the index of the entry; MAP_NONE: there is none. Inline, and with it `same`: it is called per
 * event. */
static inline size_t map_find(const struct map *m, uint32_t hash, map_same *same, const void *array,
			      const void *wanted)
{
	for (size_t i = hash; m->room; i++) {
		const struct map_slot *s = &m->slots[i & (m->room - 1)];

		if (!s->index)
			break;
		if (s->hash == hash && same(array, s->index - 1u, wanted))
			return s->index - 1u;
	}
	return MAP_NONE;
}

/* Adds the index of a new entry. -ENOMEM: the map is as it was. */
int map_insert(struct map *m, uint32_t hash, size_t index);
/* Appends a copy of the entry to the array (array_push) and its index, *n - 1, to the map. -ENOMEM: both are
 * as they were. */
int map_push(struct map *m, uint32_t hash, void *array, size_t *n, const void *entry, size_t size);
/* *index of the entry, which map_push appends if there is none with its key. -ENOMEM. Inline as map_find. */
static inline int map_reach(struct map *m, uint32_t hash, map_same *same, void *array, size_t *n,
			    const void *entry, size_t size, size_t *index)
{
	void *entries;

	memcpy(&entries, array, sizeof(entries));
	*index = map_find(m, hash, same, entries, entry);
	if (*index != MAP_NONE)
		return 0;
	*index = *n;
	return map_push(m, hash, array, n, entry, size);
}
void map_release(struct map *m);

#endif
