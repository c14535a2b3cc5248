// SPDX-License-Identifier: LGPL-2.1-or-later
/* The solver's input from a host's evidence and a guest's, and its vCPU map. */
#include "sync/evidence.h"

#include <errno.h>
#include <stdlib.h>

static int32_t pid_by_map(const struct offset_vcpu *v, size_t n, unsigned int cpu)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].cpu == cpu && v[i].pid)
			return (int32_t)v[i].pid;
	return 0;
}

int sync_input_make(struct sync_input *in, const struct sync_host *h, const struct sync_guest *g,
		    const struct offset_vcpu *vcpus, size_t n_vcpus, int32_t **pids)
{
	*pids = calloc(g->n_cpus + 1, sizeof(**pids));
	if (!*pids)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_cpus; i++)
		(*pids)[i] = pid_by_map(vcpus, n_vcpus, g->cpus[i].cpu);
	*in = (struct sync_input){ .cpus = g->cpus,
				   .n_cpus = g->n_cpus,
				   .windows = h->windows.v,
				   .n_windows = h->windows.n,
				   .begin = h->begin,
				   .end = h->end,
				   .pids = *pids,
				   .steady = h->steady && g->steady };
	return 0;
}

int sync_solve_evidence(const struct sync_host *h, const struct sync_guest *g,
			const struct offset_vcpu *vcpus, size_t n_vcpus, const struct sync_prior *prior,
			struct sync_result *out, const struct log *log)
{
	struct sync_input in;
	int32_t *pids;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!g->n_cpus)
		return 0;
	ret = sync_input_make(&in, h, g, vcpus, n_vcpus, &pids);
	if (ret)
		return ret;
	if (prior)
		in.prior = *prior;
	ret = sync_solve(&in, out, log);
	free(pids);
	return ret;
}
