/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ESR_H
#define HYPTRACE_ESR_H

#include "base/std.h"

/*
 * The exception syndrome (ESR_EL2) and the reason of an arm64 kvm_exit. Pure:
 * no allocation, no I/O. The numbers are the Arm architecture's; where Linux has
 * a name for one (arch/arm64/include/asm/esr.h,
 * arch/arm64/include/asm/kvm_arm.h, arch/arm64/mm/fault.c), it is used.
 */

static inline unsigned int esr_ec(uint64_t esr)
{
	return (unsigned int)(esr >> 26) & 0x3f;
}

#define ESR_SYS64  0x18	     /* esr_ec() of a trapped access to a system register */
#define ESR_SYSREG 0x3ffc1eu /* then: Op0, Op2, Op1, CRn and CRm */

/* As kvm_exit prints it: "DABT_LOW", "SYS64"; NULL: unallocated. */
const char *esr_ec_name(unsigned int ec);

/* The fault status of an abort: "level 2 translation fault"; NULL: reserved. */
const char *esr_fault(unsigned int fsc);
/* Of an abort: the page is mapped, and does not permit the access. */
static inline bool esr_fault_is_permission(uint64_t esr)
{
	return (esr & 0x3c) == 0x0c;
}

#define ESR_TEXT_MAX 224 /* bytes that esr_text needs at most */

/*
 * One line: "DABT_LOW write of 4 bytes from w1, level 2 translation fault",
 * "SYS64 write ICC_SGI1R_EL1 from x1", "WFx wfi". Returns out.
 */
const char *esr_text(uint64_t esr, char *out, size_t size);

#define KVM_EXIT_ARM_TRAP 2 /* `ret`: only then does esr_ec mean anything */

/* Of the field `ret`: "IRQ", "SERROR", "TRAP", "IL", "HYP_GONE"; NULL otherwise. */
const char *kvm_exit_arm_name(uint32_t ret);

/* Mode of a saved program status, "EL1h", "32-bit USR"; NULL: reserved. */
const char *pstate_mode_name(uint32_t spsr);

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

/*
 * Function ids of SMC and HVC calls (Arm DEN0028): who is called, and the names of PSCI (DEN0022), SDEI
 * (DEN0054), FF-A (DEN0077), TRNG (DEN0098), the architecture's and KVM's own calls. Pure tables: smccc.c.
 */

#define SMCCC_TEXT_MAX 64

/* "PSCI_CPU_ON SMC64", "SiP 0x0012 SMC32", "TOS 0x0001 SMC32 yielding". Returns out. */
const char *smccc_text(uint32_t id, char *out, size_t size);

/* FF-A's error codes: "DENIED" for -6; NULL: not one. */
const char *ffa_error_name(int err);

#endif
