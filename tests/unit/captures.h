/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_CAPTURES_H
#define TESTS_CAPTURES_H

/* Our captures as a timeline, for the tests that read all of them. */
#include "dat-fixture.h"

#include "read/timeline.h"

static char *const captures[] = { "tests/data/lab-protected.dat", "tests/data/lab-stock-arm64.dat",
				  "tests/data/x86/trace.dat", "tests/data/functions/trace.dat",
				  "tests/data/sync/trace.dat" };

struct opened {
	struct inputs in;
	struct timeline *t;
};

static inline void open_captures(struct opened *o, size_t first, size_t n)
{
	assert_int_equal(inputs_open(&o->in, captures + first, n, 0, NULL), 0);
	assert_int_equal(inputs_load(&o->in, NULL), 0);
	assert_int_equal(timeline_open(&o->t, &o->in, NULL, NULL, NULL), 0);
}

static inline void close_captures(struct opened *o)
{
	timeline_close(o->t);
	inputs_release(&o->in);
}

#endif
