// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes room in arrays. */
#include "base/array.h"

/* The entries of an array by the address of the pointer to them, of whatever type. */
static void *entries(const void *array)
{
	void *v;

	memcpy(&v, array, sizeof(v));
	return v;
}

static void entries_are(void *array, void *v)
{
	memcpy(array, &v, sizeof(v));
}

void *array_grow(void *v, size_t n, size_t size)
{
	return n & (n - 1) ? v : realloc(v, (n ? 2 * n : 1) * size);
}

void *array_next(void *array, size_t n, size_t size)
{
	void *v = array_grow(entries(array), n, size);

	if (!v)
		return NULL;
	entries_are(array, v);
	return memset((char *)v + n * size, 0, size);
}

int array_push(void *array, size_t *n, const void *entry, size_t size)
{
	void *next = array_next(array, *n, size);

	if (!next)
		return -ENOMEM;
	memcpy(next, entry, size);
	++*n;
	return 0;
}

int array_insert(void *array, size_t *n, size_t at, const void *entry, size_t size)
{
	int ret = array_push(array, n, entry, size);

	if (!ret) {
		char *place = (char *)entries(array) + at * size;

		memmove(place + size, place, (*n - 1 - at) * size);
		memcpy(place, entry, size);
	}
	return ret;
}

int array_room(void *array, size_t *room, size_t n, size_t size)
{
	void *v;

	if (n <= *room)
		return 0;
	v = realloc(entries(array), n * size);
	if (!v)
		return -ENOMEM;
	entries_are(array, v);
	*room = n;
	return 0;
}

int array_reach_more(void *array, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? *room : 8;
	void *v;

	while (more < n)
		more *= 2;
	v = realloc(entries(array), more * size);
	if (!v)
		return -ENOMEM;
	memset((char *)v + *room * size, 0, (more - *room) * size);
	entries_are(array, v);
	*room = more;
	return 0;
}

int array_push_kept(void *array, size_t *room, size_t *n, const void *entry, size_t size)
{
	if (array_reach(array, room, *n + 1, size))
		return -ENOMEM;
	memcpy((char *)entries(array) + (*n)++ * size, entry, size);
	return 0;
}
