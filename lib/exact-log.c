// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "exact.h"

int counter_log_shot(struct counter_log *l, const struct counter_shot *s)
{
	struct counter_shot *v = grown(l->shots, l->n_shots, sizeof(*v));

	if (!v)
		return -ENOMEM;
	l->shots = v;
	v[l->n_shots++] = *s;
	return 0;
}

int counter_log_ping(struct counter_log *l, const struct counter_ping *p)
{
	struct counter_ping *v = grown(l->pings, l->n_pings, sizeof(*v));

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

/* The VM's span that holds or precedes the time; *last: nothing of it comes after. */
static struct voff_span *span_before(const struct voff_log *l, int32_t vm, uint64_t time, bool *last)
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

int voff_log_load(struct voff_log *l, uint64_t time, int32_t vm, uint64_t voff, bool lost)
{
	bool last;
	struct voff_span *before = span_before(l, vm, time, &last), *v;
	bool vague = before && (lost || before->lossy);

	if (before && before->voff == voff && time >= before->last) {
		before->last = time;
		before->lossy = false;
	}
	/* one that another CPU kept back tells nothing new */
	if (!last || (before && before->voff == voff))
		return 0;
	v = grown(l->spans, l->n_spans, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->spans = v;
	v[l->n_spans++] = (struct voff_span){ .vm = vm, .voff = voff, .first = time, .last = time,
					      .vague = vague };
	return 0;
}

void voff_log_lost(struct voff_log *l)
{
	for (size_t i = 0; i < l->n_spans; i++)
		l->spans[i].lossy = true;
}

int voff_log_vcpu(struct voff_log *l, int32_t vm, int32_t pid, unsigned int id)
{
	struct voff_vcpu *v;

	for (size_t i = 0; i < l->n_vcpus; i++)
		if (l->vcpus[i].vm == vm && l->vcpus[i].id == id) {
			l->vcpus[i].pid = pid;
			return 0;
		}
	v = grown(l->vcpus, l->n_vcpus, sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->vcpus = v;
	v[l->n_vcpus++] = (struct voff_vcpu){ vm, pid, id };
	return 0;
}

void voff_log_release(struct voff_log *l)
{
	free(l->spans);
	free(l->vcpus);
	*l = (struct voff_log){ 0 };
}
