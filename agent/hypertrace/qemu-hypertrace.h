/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef QEMU_HYPERTRACE_H
#define QEMU_HYPERTRACE_H

/* The names of QEMU's hypertrace patches (2016), for programs written to them. */

#include "hypertrace-guest.h"

#define qemu_hypertrace_init	    hypertrace_init
#define qemu_hypertrace_fini	    hypertrace_fini
#define qemu_hypertrace_max_clients hypertrace_max_clients
#define qemu_hypertrace_num_args    hypertrace_num_args
#define qemu_hypertrace_data	    hypertrace_data
#define qemu_hypertrace		    hypertrace_emit

#endif
