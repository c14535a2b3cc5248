/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SMCCC_H
#define HYPTRACE_SMCCC_H

#include "base/std.h"

/*
 * Function ids of SMC and HVC calls (Arm DEN0028): who is called, and the names of PSCI (DEN0022), SDEI
 * (DEN0054), FF-A (DEN0077), TRNG (DEN0098), the architecture's and KVM's own calls. Pure tables.
 */

#define SMCCC_TEXT_MAX 64

/* "PSCI_CPU_ON SMC64", "SiP 0x0012 SMC32", "TOS 0x0001 SMC32 yielding". Returns out. */
const char *smccc_text(uint32_t id, char *out, size_t size);

/* FF-A's error codes: "DENIED" for -6; NULL: not one. */
const char *ffa_error_name(int err);

#endif
