/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_WHO_H
#define HYPTRACE_LATENCY_WHO_H

#include "read/inputs.h"

/* Whose vCPUs host threads are, over all files: guests have numbers from 0 on. */
struct who; /* opaque */

#define WHO_NOBODY UINT32_MAX

/* in: loaded, and outlives it. -ENOMEM. who_close takes NULL. */
int who_open(struct who **out, const struct inputs *in);
void who_close(struct who *w);
size_t who_guests(const struct who *w);
/* "" when the file that names it has no name for it. */
const char *who_name(const struct who *w, uint32_t guest);
/* The guest whose file that is; WHO_NOBODY: it is a host's. */
uint32_t who_of_input(const struct who *w, size_t input);
/* The one guest that a host's file names; WHO_NOBODY: none, or several. */
uint32_t who_lone(const struct who *w, size_t input);
/* The guest whose vCPU a host's thread is, and which; WHO_NOBODY: none's. */
uint32_t who_vcpu(const struct who *w, size_t input, int64_t tid, uint32_t *vcpu);
/* The process that a kernel thread called vhost-PID works for; other threads stand for themselves. */
int64_t who_works_for(const struct who *w, size_t input, int64_t tid);

#endif
