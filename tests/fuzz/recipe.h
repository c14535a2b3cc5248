/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_FUZZ_RECIPE_H
#define TESTS_FUZZ_RECIPE_H

/*
 * An input that a grammar can be kept in: steps "K ARG LEN\n" and LEN bytes. K is
 * a letter that the target knows, ARG a number of its own. What is cut or
 * makes no sense ends the recipe.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct recipe_step {
	char key;
	uint64_t arg;
	const uint8_t *data;
	size_t len;
};

static inline bool recipe_next(const uint8_t **at, size_t *left, struct recipe_step *s)
{
	const uint8_t *end = *left ? memchr(*at, '\n', *left) : NULL;
	char head[48], *p;
	size_t n = end ? (size_t)(end - *at) : 0;

	if (n < 5 || n >= sizeof(head))
		return false;
	memcpy(head, *at, n);
	head[n] = 0;
	s->key = head[0];
	s->arg = strtoull(head + 1, &p, 0);
	s->len = strtoul(p, NULL, 0);
	*at = end + 1;
	*left -= n + 1;
	if (s->len > *left)
		s->len = *left;
	s->data = *at;
	*at += s->len;
	*left -= s->len;
	return true;
}

/* What the commands print goes nowhere, what the sanitisers print does not: they write to 2 itself. */
static inline int quiet_begin(void)
{
	static int null = -1;
	int saved = dup(STDOUT_FILENO);

	if (null < 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		stderr = fopen("/dev/null", "w");
	}
	if (saved < 0 || null < 0 || !stderr || dup2(null, STDOUT_FILENO) < 0)
		abort();
	return saved;
}

static inline void quiet_end(int saved)
{
	fflush(stdout);
	if (dup2(saved, STDOUT_FILENO) < 0)
		abort();
	close(saved);
}

/* A directory of the process, removed at its end. */
static char scratch[64];

static inline int scratch_unlink(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return at->level ? remove(path) : 0;
}

/* Empties it. */
static inline void scratch_clear(void)
{
	if (nftw(scratch, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS))
		abort();
}

static inline void scratch_remove(void)
{
	scratch_clear();
	rmdir(scratch);
}

static inline const char *scratch_dir(void)
{
	if (!*scratch) {
		snprintf(scratch, sizeof(scratch), "%s/hyptrace-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		if (!mkdtemp(scratch) || atexit(scratch_remove))
			abort();
	}
	return scratch;
}

#endif
