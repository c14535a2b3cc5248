/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ARRAY_H
#define HYPTRACE_ARRAY_H

#include "base/std.h"

/* Arrays that grow by one, and sorted ones that are searched. */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* For qsort: the order of two numbers of one type. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/*
 * Room for one more behind n entries of `size` bytes, in an array that grows by this call only. The result
 * replaces v and is freed by the caller; NULL: out of memory, v is as it was.
 */
void *array_grow(void *v, size_t n, size_t size);

/*
 * The entry behind n entries of `size` bytes, zeroed, for who counts it. array: address of the pointer to
 * them, in which array_grow makes room. NULL: out of memory, all is as it was.
 */
void *array_next(void *array, size_t n, size_t size);

/* Appends a copy of the entry, and counts it in *n. 0, or -ENOMEM: all is as it was. */
int array_push(void *array, size_t *n, const void *entry, size_t size);
/* The same at a place among them: those from there on move up. */
int array_insert(void *array, size_t *n, size_t at, const void *entry, size_t size);

/*
 * Room for n entries of `size` bytes in an array that has *room, whose content need not outlive the call.
 * array: address of the pointer to them. 0, or -ENOMEM: all is as it was.
 */
int array_room(void *array, size_t *room, size_t n, size_t size);

/*
 * Makes an array of *room entries of `size` bytes have at least n, by doubling; new ones are zeroed. array:
 * address of the pointer to them. 0, or -ENOMEM: all is as it was.
 */
int array_reach_more(void *array, size_t *room, size_t n, size_t size); /* for array_reach alone */
static inline int array_reach(void *array, size_t *room, size_t n, size_t size)
{
	return n <= *room ? 0 : array_reach_more(array, room, n, size);
}

/*
 * array_push for an array that is emptied and filled again, which keeps its *room. 0, or -ENOMEM: all is as
 * it was.
 */
int array_push_kept(void *array, size_t *room, size_t *n, const void *entry, size_t size);

/* qsort, which takes long for what is sorted already. */
static inline void array_sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	size_t i = 1;

	while (i < n && compare((char *)v + (i - 1) * size, (char *)v + i * size) <= 0)
		i++;
	if (i < n)
		qsort(v, n, size, compare);
}

/*
 * Index of the first of n entries that is not before the key, in an array sorted
 * so that those before it come first; n when all are. before(entry, key) compares.
 */
static inline size_t array_lower_bound(const void *v, size_t n, size_t size,
				       bool (*before)(const void *entry, const void *key), const void *key)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (before((const char *)v + mid * size, key))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* For array_lower_bound, of entries that are a uint64_t or begin with one, as the key is. */
static inline bool u64_below(const void *entry, const void *key)
{
	return *(const uint64_t *)entry < *(const uint64_t *)key;
}

static inline bool u64_not_above(const void *entry, const void *key)
{
	return *(const uint64_t *)entry <= *(const uint64_t *)key;
}

/* For qsort, of such entries, ascending. */
static inline int compare_u64(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int compare_double(const void *a, const void *b)
{
	return ORDER(*(const double *)a, *(const double *)b);
}

#endif
