// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload that makes one allocation of a program fail: number FAILMALLOC_AT,
 * counted from 1. With FAILMALLOC_COUNT=FILE their number is written there when
 * the program ends. For glibc, and for programs without ASan.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static unsigned long made, fail_at;

__attribute__((constructor)) static void failmalloc_begin(void)
{
	const char *at = getenv("FAILMALLOC_AT");

	made = 0;
	fail_at = at ? strtoul(at, NULL, 10) : 0;
}

__attribute__((destructor)) static void failmalloc_end(void)
{
	const char *path = getenv("FAILMALLOC_COUNT");
	unsigned long n = made;
	FILE *out = path ? fopen(path, "w") : NULL;

	if (out) {
		fprintf(out, "%lu\n", n);
		fclose(out);
	}
}

static int fails(void)
{
	if (__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED) != fail_at)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}
