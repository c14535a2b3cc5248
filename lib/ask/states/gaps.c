// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeps on how many CPUs of each buffer events are missing. */
#include "ask/states/gaps.h"

int gaps_open(struct gaps *g, const struct timeline *t)
{
	size_t n = merge_streams(t->merge), first = 0;
	const struct merge_stream *before = NULL;

	g->v = calloc(n + 1, sizeof(*g->v));
	if (!g->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct merge_stream *s = merge_stream_at(t->merge, i);

		if (before && (before->input != s->input || before->buffer != s->buffer))
			first = i;
		before = s;
		g->v[i].of = s;
		g->v[i].buffer = (uint32_t)first;
		if (s->gap)
			gaps_start(g, (uint32_t)i);
	}
	return 0;
}

void gaps_release(struct gaps *g)
{
	free(g->v);
	g->v = NULL;
}

void gaps_start(struct gaps *g, uint32_t stream)
{
	struct gaps_stream *s = &g->v[stream];

	g->v[s->buffer].n += !s->open;
	s->open = true;
}

void gaps_stop(struct gaps *g, uint32_t stream)
{
	struct gaps_stream *s = &g->v[stream];

	g->v[s->buffer].n -= s->open;
	s->open = false;
}
