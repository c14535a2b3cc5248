// SPDX-License-Identifier: LGPL-2.1-or-later
/* The time of day at a time of the trace clock, with its bound. */
#include "file/dat/wall.h"

#include "base/array.h"
#include "base/cursor.h"

/* Times from 2116 on, and errors of years, make no sense; no sum of those below overflows. */
#define TIMES_MAX  (1ULL << 62)
#define ERRORS_MAX (1ULL << 60)
/* The kernel lets its clock drift by 500 ppm at most, and its maxerror grow by that (kernel/time/ntp.c). */
#define DRIFT_DIVISOR 2000

int wall_decode(const void *data, size_t len, struct wall *out)
{
	struct cursor c = cursor_at(data, len);
	const void *samples = cursor_take(&c, len);

	*out = (struct wall){ .n = len / sizeof(out->v[0]) };
	if (len % sizeof(out->v[0]) || !out->n || out->n > ARRAY_SIZE(out->v))
		goto bad;
	memcpy(out->v, samples, len);
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].trace >= TIMES_MAX || out->v[i].utc >= TIMES_MAX ||
		    out->v[i].slack >= ERRORS_MAX)
			goto bad;
	if (out->v[out->n - 1].trace >= out->v[0].trace)
		return 0;
bad:
	*out = (struct wall){ 0 };
	return -EBADMSG;
}

static uint64_t wall_error(const struct wall_sample *s, uint64_t distance)
{
	return s->max_error < ERRORS_MAX ? s->max_error + distance / DRIFT_DIVISOR : WALL_NO_ERROR;
}

uint64_t wall_at(const struct wall *w, uint64_t trace, uint64_t *bound)
{
	const struct wall_sample *a = &w->v[0], *b = &w->v[w->n - 1];
	int64_t first = (int64_t)(a->utc - a->trace), last = (int64_t)(b->utc - b->trace);
	uint64_t from_a, from_b, span = b->trace - a->trace;
	/* a clock that was set between the samples may have been so at any time */
	uint64_t moved = (uint64_t)(first > last ? first - last : last - first);

	*bound = UINT64_MAX;
	if (trace < a->trace || trace > b->trace)
		return trace + (uint64_t)(trace < a->trace ? first : last);
	from_a = wall_error(a, trace - a->trace);
	from_b = wall_error(b, b->trace - trace);
	if (w->n > 1 && (from_a != WALL_NO_ERROR || from_b != WALL_NO_ERROR))
		*bound = (a->slack > b->slack ? a->slack : b->slack) + moved +
			 (from_a < from_b ? from_a : from_b);
	if (span)
		first += (int64_t)((__int128)(last - first) * (int64_t)(trace - a->trace) / (int64_t)span);
	return trace + (uint64_t)first;
}
