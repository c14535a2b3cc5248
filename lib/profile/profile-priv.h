/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROFILE_PRIV_H
#define HYPTRACE_PROFILE_PRIV_H

#include "profile/comms.h"
#include "profile/profile.h"

/* Shared by profile.c (records), open.c and source.c (draining). */
struct profile {
	struct source source;
	struct perf_ring **rings; /* by CPU; NULL: that CPU is off */
	unsigned int n_rings;
	unsigned int first_id;
	struct profile_tasks *tasks;
	const struct log *log;
};

#endif
