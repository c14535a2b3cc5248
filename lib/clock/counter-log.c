// SPDX-License-Identifier: LGPL-2.1-or-later
/* Snapshots and pings of a recording, kept for the counter method. */
#include <errno.h>
#include <stdlib.h>

#include "clock/counter-log.h"
#include "util/array.h"

int counter_log_shot(struct counter_log *l, const struct counter_shot *s)
{
	struct counter_shot *v = array_grow(l->shots, l->n_shots, sizeof(*v));

	if (!v)
		return -ENOMEM;
	l->shots = v;
	v[l->n_shots++] = *s;
	return 0;
}

int counter_log_ping(struct counter_log *l, const struct counter_ping *p)
{
	struct counter_ping *v = array_grow(l->pings, l->n_pings, sizeof(*v));

	if (!v)
		return -ENOMEM;
	l->pings = v;
	v[l->n_pings++] = *p;
	return 0;
}

void counter_log_release(struct counter_log *l)
{
	free(l->shots);
	free(l->pings);
	*l = (struct counter_log){ 0 };
}
