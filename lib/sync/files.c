// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/problem.h"

static bool has_windows(const struct sync_host *h, uint32_t pid)
{
	for (size_t i = 0; i < h->windows.n; i++)
		if (h->windows.v[i].pid == (int32_t)pid)
			return true;
	return false;
}

/* The one thread of that number; 0 when there are several guests' or none. */
static int32_t by_name(const struct sync_host *h, unsigned int cpu)
{
	int32_t pid = 0;

	for (size_t i = 0; i < h->n_names; i++) {
		if (h->names[i].cpu != cpu || !has_windows(h, h->names[i].pid))
			continue;
		if (pid)
			return 0;
		pid = (int32_t)h->names[i].pid;
	}
	return pid;
}

static int32_t by_list(const struct offset_vcpu *v, size_t n, unsigned int cpu)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].cpu == cpu && v[i].pid)
			return (int32_t)v[i].pid;
	return 0;
}

int sync_input_make(struct sync_input *in, const struct sync_host *h, const struct sync_guest *g,
		    const struct offset_vcpu *vcpus, size_t n_vcpus, int32_t **pids)
{
	*in = (struct sync_input){ .cpus = g->cpus,
				   .n_cpus = g->n_cpus,
				   .windows = h->windows.v,
				   .n_windows = h->windows.n,
				   .begin = h->begin,
				   .end = h->end };
	*pids = calloc(g->n_cpus + 1, sizeof(**pids));
	if (!*pids)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_cpus; i++) {
		(*pids)[i] = by_list(vcpus, n_vcpus, g->cpus[i].cpu);
		if (!(*pids)[i])
			(*pids)[i] = by_name(h, g->cpus[i].cpu);
	}
	in->pids = *pids;
	return 0;
}

#define STEADY_RATE 1e-6 /* the two kernels may round the counter's rate differently */
#define STEADY_BEND 1e-7

void sync_input_steady(struct sync_input *in)
{
	in->max_rate = STEADY_RATE;
	in->max_bend = STEADY_BEND;
}

int sync_solve_steady(const struct sync_input *in, struct sync_result *out, const struct log *log)
{
	struct sync_input steady = *in;
	struct sync_result other;
	int ret;

	sync_input_steady(&steady);
	ret = sync_solve(&steady, out, log);
	if (ret || out->class == SYNC_HARD)
		return ret;
	/* not that steady after all? */
	ret = sync_solve(in, &other, log);
	if (!ret && other.class > out->class) {
		sync_result_release(out);
		*out = other;
	} else if (!ret) {
		sync_result_release(&other);
	} else {
		sync_result_release(out);
	}
	return ret;
}

int sync_files(const struct sync_source *host, const struct sync_source *guest,
	       const struct offset_vcpu *vcpus, size_t n_vcpus, const struct sync_prior *prior,
	       struct sync_result *out, const struct log *log)
{
	struct sync_host h = { 0 };
	struct sync_guest g = { 0 };
	struct sync_input in;
	int32_t *pids = NULL;
	int ret = sync_host_read(&h, host, log);

	*out = (struct sync_result){ .method = "none" };
	if (!ret)
		ret = sync_guest_read(&g, guest, log);
	if (!ret)
		ret = sync_input_make(&in, &h, &g, vcpus, n_vcpus, &pids);
	if (!ret && g.n_cpus) {
		if (prior)
			in.prior = *prior;
		ret = host->steady && guest->steady ? sync_solve_steady(&in, out, log)
						    : sync_solve(&in, out, log);
	}
	free(pids);
	sync_guest_release(&g);
	sync_host_release(&h);
	return ret;
}
