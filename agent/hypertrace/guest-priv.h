/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPERTRACE_GUEST_PRIV_H
#define HYPERTRACE_GUEST_PRIV_H

#include "area.h"
#include "hypertrace-guest.h"

/* A way out of the guest. */
struct hypertrace_way {
	const char *name;
	/* at: what follows the name's colon, or NULL. 0 or -errno. */
	int (*open)(const char *at);
	void (*close)(void);
	/* arg: hypertrace_num_args() of them. From any thread. */
	void (*emit)(uint32_t client, const uint64_t *arg);
};

extern const struct hypertrace_way hypertrace_ivshmem, hypertrace_vmcall, hypertrace_marker;

/* Limits of the chosen way, set by its open(); defaults before. */
struct hypertrace_shape {
	uint32_t clients, args;
};

extern struct hypertrace_shape hypertrace_shape;

#define HYPERTRACE_VMCALL 0x68797074 /* "hypt": no number of KVM's (include/uapi/linux/kvm_para.h) */

#endif
