/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_PRESETS_H
#define HYPTRACE_LATENCY_PRESETS_H

#include "latency/latency.h"

/* Chains that have a name. */
struct latency_preset {
	const char *name, *summary;
	const char *row;			    /* what a row is of: "vCPU" */
	const char *const points[CHAIN_POINTS_MAX]; /* their names */
	size_t n_points;
	size_t least; /* without the guest's file its points at the end are left out, as far as so many stay
		       */
	const struct latency_term *terms;
	size_t n_terms;
};

/* NULL: none is called so. */
const struct latency_preset *latency_preset(const char *name);
/* In turn from 0 on; NULL: there are no more. */
const struct latency_preset *latency_preset_at(size_t i);
/* The preset's plan as far as these files can have it; *plan's worst stays. */
void latency_preset_plan(const struct latency_preset *p, const struct inputs *in, struct latency_plan *plan);

#endif
