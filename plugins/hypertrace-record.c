// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments of a hypertrace event that is a record of its own, not a line of text. */
#include "hypertrace-record.h"

#include <stdio.h>

static void read_args(struct view *v, struct hypertrace_event *e)
{
	const uint8_t *data;
	char name[16];
	size_t len;

	while (e->n_args < HYPERTRACE_ARGS_MAX) {
		snprintf(name, sizeof(name), "arg%zu", e->n_args + 1);
		if (!view_has(v, name))
			break;
		e->arg[e->n_args++] = view_u64(v, name);
	}
	if (e->n_args || !view_bytes(v, "args", &data, &len))
		return;
	for (; len >= 8 && e->n_args < HYPERTRACE_ARGS_MAX; data += 8, len -= 8)
		e->arg[e->n_args++] = tep_read_number(v->event->tep, data, 8);
}

bool hypertrace_record(struct view *v, struct hypertrace_event *e)
{
	*e = (struct hypertrace_event){ .has_cpu = view_has(v, "cpu"), .has_client = view_has(v, "client") };
	e->cpu = view_u64(v, "cpu");
	e->client = view_u64(v, "client");
	read_args(v, e);
	return e->n_args || v->bad;
}
