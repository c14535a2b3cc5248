/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VCPU_MAP_H
#define HYPTRACE_VCPU_MAP_H

#include "read/inputs.h"

/* Guests' vCPUs by host threads, over all files: guests have numbers from 0 on. */
struct vcpu_map; /* opaque */

#define VCPU_MAP_NOBODY UINT32_MAX

/* in: loaded, and outlives it. -ENOMEM. vcpu_map_close takes NULL. */
int vcpu_map_open(struct vcpu_map **out, const struct inputs *in);
void vcpu_map_close(struct vcpu_map *w);
size_t vcpu_map_guests(const struct vcpu_map *w);
/* "" when the file that names it has no name for it. */
const char *vcpu_map_name(const struct vcpu_map *w, uint32_t guest);
/* The guest whose file that is; VCPU_MAP_NOBODY: it is a host's. */
uint32_t vcpu_map_of_input(const struct vcpu_map *w, size_t input);
/* The one guest that a host's file names; VCPU_MAP_NOBODY: none, or several. */
uint32_t vcpu_map_lone(const struct vcpu_map *w, size_t input);
/* The guest whose vCPU a host's thread is, and which; VCPU_MAP_NOBODY: none's. */
uint32_t vcpu_map_vcpu(const struct vcpu_map *w, size_t input, int64_t tid, uint32_t *vcpu);
/* The process that a kernel thread called vhost-PID works for; other threads stand for themselves. */
int64_t vcpu_map_works_for(const struct vcpu_map *w, size_t input, int64_t tid);

#endif
