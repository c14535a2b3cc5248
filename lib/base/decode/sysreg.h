/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYSREG_H
#define HYPTRACE_SYSREG_H

#include <stddef.h>
#include <stdint.h>

/* Names of arm64 system registers and system instructions. Pure tables. */

struct sysreg {
	uint8_t op0, op1, crn, crm, op2;
};

#define SYSREG_NAME_MAX 32 /* bytes that any name needs, with the NUL */

/* "SCTLR_EL1", "DC CIVAC", "TLBI VAE1IS"; NULL: not a known one. */
const char *sysreg_name(const struct sysreg *r);
/*
 * The name, or the generic one of the architecture (S3_0_C15_C2_0, or
 * "sys 1,0,C7,C8,0" for an instruction). Returns out, always NUL-ended.
 */
const char *sysreg_text(const struct sysreg *r, char *out, size_t size);

#endif
