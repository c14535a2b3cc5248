// SPDX-License-Identifier: GPL-2.0-only
/* report --follow: which records of a recording that goes on are printed at which look. */
#include <string.h>

#include "live/live.h"
#include "report-priv.h"
#include "util/array.h"

bool follow_is_first(const struct follow *f)
{
	return f->first;
}

static struct follow_cpu *follow_cpu(struct follow *f, const char *buffer, unsigned int cpu)
{
	struct follow_cpu c = { .buffer = buffer, .cpu = cpu };

	for (size_t i = 0; i < f->n; i++)
		if (f->cpus[i].cpu == cpu && !strcmp(f->cpus[i].buffer, buffer))
			return &f->cpus[i];
	c.before = live_taken(f->live, buffer, cpu);
	f->no_memory = f->no_memory || array_push(&f->cpus, &f->n, &c, sizeof(c));
	return f->no_memory ? NULL : &f->cpus[f->n - 1];
}

bool follow_takes(struct follow *f, const char *buffer, unsigned int cpu, const struct merge_record *m)
{
	struct follow_cpu *c = follow_cpu(f, buffer, cpu);

	if (!c)
		return false;
	if (!m->data) /* what was lost behind the last record stands before the next one as well */
		return f->last;
	if (c->seen++ < c->before)
		return false;
	f->newest = m->ts > f->newest ? m->ts : f->newest;
	c->holds = c->holds || (!f->last && m->ts > f->horizon);
	f->held += c->holds;
	if (c->holds)
		return false;
	c->taken++;
	f->late += m->ts < f->from;
	return true;
}
