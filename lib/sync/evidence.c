// SPDX-License-Identifier: LGPL-2.1-or-later
/* The solver's input from a host's evidence and a guest's, and its vCPU map. */
#include "sync/evidence.h"

#include <errno.h>
#include <stdlib.h>

int sync_input_make(struct sync_input *in, const struct sync_evidence *e, int32_t **pids)
{
	const struct sync_host *h = e->host;
	const struct sync_guest *g = e->guest;

	*pids = calloc(g->n_cpus + 1, sizeof(**pids));
	if (!*pids)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_cpus; i++)
		for (size_t k = 0; k < e->n_vcpus && !(*pids)[i]; k++)
			if (e->vcpus[k].cpu == g->cpus[i].cpu)
				(*pids)[i] = (int32_t)e->vcpus[k].pid;
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

int sync_solve_evidence(const struct sync_evidence *e, const struct sync_prior *prior, struct sync_result *out,
			const struct log *log)
{
	struct sync_input in;
	int32_t *pids;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!e->guest->n_cpus)
		return 0;
	ret = sync_input_make(&in, e, &pids);
	if (ret)
		return ret;
	if (prior)
		in.prior = *prior;
	ret = sync_solve(&in, out, log);
	free(pids);
	return ret;
}
