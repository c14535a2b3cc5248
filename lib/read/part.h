/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PART_H
#define HYPTRACE_PART_H

#include "base/std.h"

struct input;
struct inputs;
struct log;

/*
 * A part of the time of recordings, "FROM,TO": seconds as report prints them ("63.5"), "+2s" from the begin
 * and "-1s" from the end of all files together; an omitted one is the begin or the end. Units are
 * duration_units; a number without one is seconds, or ticks where the files' times are ticks.
 */
struct part_end {
	enum { PART_OPEN, PART_AT, PART_AFTER_BEGIN, PART_BEFORE_END } anchor;
	uint64_t ns, ticks; /* ticks: of a number without a unit */
	bool has_unit;
};

struct time_part {
	struct part_end from, to; /* zero-initialised: everything */
};

/* 0; -EINVAL: no "FROM,TO". */
int part_parse(const char *text, struct time_part *w);

/*
 * Times of the first and the last record of all files at from <= time < to (to 0: all), corrected; adds to
 * *damaged the damaged places that are met. -ENODATA: no records; -ENOMEM.
 */
int part_extent(const struct input *in, size_t n, uint64_t from, uint64_t to, uint64_t *first, uint64_t *last,
		uint64_t *damaged);
/* The same of one CPU, as numbered in the buffer's list: widens both. */
int part_extent_cpu(const struct input *in, size_t buffer, size_t cpu, uint64_t from, uint64_t to,
		    uint64_t *first, uint64_t *last, uint64_t *damaged);
/*
 * Sets the part of the inputs' time that their timelines read. Reads the files for their first and last
 * times. -EINVAL (logged): no record can lie in it; -ENOMEM.
 */
int part_resolve(const struct time_part *w, struct inputs *in, const struct log *log);

#endif
