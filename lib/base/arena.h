/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ARENA_H
#define HYPTRACE_ARENA_H

#include "base/std.h"

/* Memory for many small things that are all given up at once. Zero-initialised = empty. */
struct arena {
	struct arena_chunk *chunks; /* the newest first */
	size_t used;		    /* bytes handed out */
	bool bad;		    /* an allocation failed; until the next reset */
};

/* n bytes of zeros, aligned for anything; NULL and bad: out of memory. */
void *arena_alloc(struct arena *a, size_t n);
/*
 * The text of at most n bytes up to its first NUL, as UTF-8: each byte that is
 * none becomes U+FFFD. "" when out of memory, and bad.
 */
char *arena_text(struct arena *a, const void *text, size_t n);
/* The same of a printed text. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* All that was handed out is void; one chunk is kept for what comes next. */
void arena_reset(struct arena *a);
/* Frees all of it: empty again. */
void arena_release(struct arena *a);

#endif
