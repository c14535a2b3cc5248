// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens what several answers share, once, and reads the files for all of them. */
#include "ask/states/reading.h"

int reading_open(struct reading *r, const struct inputs *in, const struct mark_desc *desc,
		 const struct log *log)
{
	*r = (struct reading){ .in = in, .desc = desc };
	return timeline_open(&r->timeline, in, NULL, NULL, log) ?: steps_open(&r->steps, in);
}

void reading_close(struct reading *r)
{
	states_close(r->states);
	exits_close(r->exits);
	markers_close(r->markers);
	steps_close(r->steps);
	timeline_close(r->timeline);
}

void reading_add(struct reading *r, struct pass_part part)
{
	if (r->n < PASS_PARTS_MAX)
		r->parts[r->n] = part;
	r->n++;
}

int reading_states(struct reading *r, unsigned int owners, state_listener *span, void *ctx)
{
	int ret;

	if (r->states)
		return states_listen(r->states, owners, span, ctx);
	ret = states_open(&r->states, r->in, r->timeline, r->steps, owners, span, ctx);
	if (!ret)
		reading_add(r, states_part(r->states));
	return ret;
}

int reading_exits(struct reading *r, struct tally *to)
{
	if (r->exits)
		return 0;
	if (exits_open(&r->exits, r->in, r->timeline, r->steps, NULL, to))
		return -ENOMEM;
	reading_add(r, exits_part(r->exits));
	return 0;
}

int reading_markers(struct reading *r)
{
	if (r->markers)
		return 0;
	if (markers_open(&r->markers, r->in, r->timeline, r->desc))
		return -ENOMEM;
	reading_add(r, markers_part(r->markers));
	return 0;
}

int reading_run(struct reading *r)
{
	int ret = pass_read(r->timeline, r->steps, r->parts, r->n);

	if (!ret && r->markers)
		markers_finish(r->markers);
	return !ret && r->states ? states_end(r->states) : ret;
}

uint64_t reading_damaged(const struct reading *r)
{
	return r->timeline ? merge_damaged(r->timeline->merge) : 0;
}
