/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_READING_H
#define HYPTRACE_READING_H

#include "ask/states/exit-sums.h"
#include "ask/states/markers.h"
#include "ask/states/states.h"

/* One pass for several answers: each adds its parts, and shares the models that others need, too. */
struct reading {
	const struct inputs *in;
	struct timeline *timeline;
	struct steps *steps;
	const struct mark_desc *desc; /* NULL: none */
	struct states *states;	      /* these three are opened by the first who asks for them */
	struct exits *exits;
	struct markers *markers;
	struct pass_part parts[PASS_PARTS_MAX];
	size_t n;
};

/* in: loaded; in and desc outlive it. -ENOMEM, -errno of the files. reading_close also in case of an error.
 */
int reading_open(struct reading *r, const struct inputs *in, const struct mark_desc *desc,
		 const struct log *log);
void reading_close(struct reading *r);
/* reading_run refuses more than PASS_PARTS_MAX. */
void reading_add(struct reading *r, struct pass_part part);
/* Sends the spans of these owners to the listener, as states_open does. -ENOMEM. */
int reading_states(struct reading *r, unsigned int owners, state_listener *span, void *ctx);
/* to: as of exits_open, of the first who asks. -ENOMEM. */
int reading_exits(struct reading *r, struct tally *to);
int reading_markers(struct reading *r);
/* Reads the files for all parts, and ends the models. As pass_read; the result of a listener. */
int reading_run(struct reading *r);
/* Damaged places that it met. */
uint64_t reading_damaged(const struct reading *r);

#endif
