/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ARRAY_H
#define HYPTRACE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Arrays that grow by one, and sorted ones that are searched. */

/*
 * Room for one more behind n entries of `size` bytes, in an array that grows by
 * this call only. The result replaces v and is freed by the caller; NULL: out of
 * memory, v is as it was.
 */
static inline void *array_grow(void *v, size_t n, size_t size)
{
	return n & (n - 1) ? v : realloc(v, (n ? 2 * n : 1) * size);
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

/* For qsort: uint64_t, ascending. */
static inline int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

#endif
