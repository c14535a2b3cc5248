// SPDX-License-Identifier: GPL-2.0-only
/*
 * Speed of the synchronisation: N events and windows of 4 vCPUs, made up.
 * usage: sync [-d] N    (-d: 10 % of the windows lost, 1 % of the events displaced)
 * Prints: events + windows, CPU seconds, MB beside the input, class, bound in ns.
 */
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "../unit/sync-gen.h"

#define EVERY	19.3e3 /* ns from one event or window of a vCPU to the next */
#define N_VCPUS 4

/* The most memory since the last fresh start. */
static void forget_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	malloc_trim(0);
	if (!f || fputs("5", f) < 0 || fclose(f))
		fputs("cannot tell the memory: it includes the input's making\n", stderr);
}

static long peak_kb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

static void fill(struct gen *g, double n, bool dirty)
{
	*g = (struct gen){ .state = 1,
			   .n_vcpus = N_VCPUS,
			   .run = 100e3,
			   .gap = 40e3,
			   .idle = 1e6,
			   .every = 12e3,
			   .first = 1500,
			   .last = 1500 };
	g->length = n / N_VCPUS * EVERY;
	g->lost_windows = dirty ? 0.1 : 0;
	g->displaced = dirty ? 0.01 : 0;
	gen_clocks(g, 20, 0, 0);
	gen_make(g);
}

int main(int argc, char **argv)
{
	bool dirty = argc == 3 && !strcmp(argv[1], "-d");
	double n = argc > 1 ? atof(argv[argc - 1]) : 0;
	struct sync_result r;
	size_t total;
	struct gen g;
	clock_t start;
	long before;

	if (n < 1000 || n > 1e8) {
		fputs("usage: sync [-d] N\n", stderr);
		return 2;
	}
	fill(&g, n, dirty);
	total = g.windows.n;
	for (unsigned int i = 0; i < g.n_vcpus; i++)
		total += g.in.cpus[i].n;
	free(g.points);
	g.points = NULL;
	forget_peak();
	before = peak_kb();
	start = clock();
	if (sync_solve(&g.in, &r))
		return 1;
	printf("%zu %.3f %.1f %s %llu\n", total, (double)(clock() - start) / CLOCKS_PER_SEC,
	       (double)(peak_kb() - before) / 1024, sync_class_name(r.class),
	       (unsigned long long)sync_median_bound(&r));
	sync_result_release(&r);
	gen_release(&g);
	return 0;
}
