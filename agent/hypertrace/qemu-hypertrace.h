/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef QEMU_HYPERTRACE_H
#define QEMU_HYPERTRACE_H

/* The names of QEMU's hypertrace patches (2016), for programs written to them. */

#include "hypertrace-guest.h"

static inline int qemu_hypertrace_init(const char *base)
{
	return hypertrace_init(base);
}

static inline int qemu_hypertrace_fini(void)
{
	return hypertrace_fini();
}

static inline uint64_t qemu_hypertrace_max_clients(void)
{
	return hypertrace_max_clients();
}

static inline uint64_t qemu_hypertrace_num_args(void)
{
	return hypertrace_num_args();
}

static inline uint64_t *qemu_hypertrace_data(uint64_t client)
{
	return hypertrace_data(client);
}

static inline void qemu_hypertrace(uint64_t client, uint64_t arg1)
{
	hypertrace_emit(client, arg1);
}

#endif
