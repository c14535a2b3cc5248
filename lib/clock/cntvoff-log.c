// SPDX-License-Identifier: LGPL-2.1-or-later
/* What CNTVOFF each VM had when, merged into spans as the loads of vCPUs come in. */
#include <errno.h>
#include <stdlib.h>

#include "clock/cntvoff-log.h"
#include "util/base.h"
#include "util/array.h"

/* The VM's span that holds or precedes the time; *last: nothing of it comes after. */
static struct cntvoff_span *span_before(const struct cntvoff_log *l, int32_t vm, uint64_t time, bool *last)
{
	*last = true;
	for (size_t i = l->n_spans; i--;) {
		if (l->spans[i].vm != vm)
			continue;
		if (l->spans[i].first <= time)
			return &l->spans[i];
		*last = false;
	}
	return NULL;
}

int cntvoff_log_load(struct cntvoff_log *l, uint64_t time, int32_t vm, uint64_t cntvoff, bool lost)
{
	bool last;
	struct cntvoff_span *before = span_before(l, vm, time, &last);
	const struct cntvoff_span one = { .vm = vm,
					  .cntvoff = cntvoff,
					  .first = time,
					  .last = time,
					  .vague = before && (lost || before->lossy) };

	if (before && before->cntvoff == cntvoff && time >= before->last) {
		before->last = time;
		before->lossy = false;
	}
	/* one that another CPU kept back is older than what is there */
	if (!last || (before && before->cntvoff == cntvoff))
		return 0;
	return array_push(&l->spans, &l->n_spans, &one, sizeof(one));
}

void cntvoff_log_lost(struct cntvoff_log *l)
{
	for (size_t i = 0; i < l->n_spans; i++)
		l->spans[i].lossy = true;
}

int cntvoff_log_vcpu(struct cntvoff_log *l, int32_t vm, int32_t pid, unsigned int id)
{
	const struct cntvoff_vcpu one = { vm, pid, id };

	for (size_t i = 0; i < l->n_vcpus; i++)
		if (l->vcpus[i].vm == vm && l->vcpus[i].id == id) {
			l->vcpus[i].pid = pid;
			return 0;
		}
	return array_push(&l->vcpus, &l->n_vcpus, &one, sizeof(one));
}

void cntvoff_log_release(struct cntvoff_log *l)
{
	free(l->spans);
	free(l->vcpus);
	*l = (struct cntvoff_log){ 0 };
}
