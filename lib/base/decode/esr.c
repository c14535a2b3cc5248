// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arm's exception syndromes in words, and names of its system registers and instructions. */
#include "base/decode/esr.h"
#include "base/array.h"

#include <stdarg.h>

enum {
	EC_WFX = 0x01,
	EC_CP15_32 = 0x03,
	EC_CP15_64 = 0x04,
	EC_CP14_MR = 0x05,
	EC_CP14_LS = 0x06,
	EC_CP14_64 = 0x0c,
	EC_SVC32 = 0x11,
	EC_SMC32 = 0x13,
	EC_SVC64 = 0x15,
	EC_SMC64 = 0x17,
	EC_ERET = 0x1a,
	EC_IABT_LOW = 0x20,
	EC_IABT_CUR = 0x21,
	EC_DABT_LOW = 0x24,
	EC_DABT_CUR = 0x25,
	EC_WATCHPT_LOW = 0x34,
	EC_WATCHPT_CUR = 0x35,
	EC_BRK64 = 0x3c,
};

static const char *const ec_names[64] = {
	[0x00] = "UNKNOWN",	[0x01] = "WFx",		[0x03] = "CP15_32",	[0x04] = "CP15_64",
	[0x05] = "CP14_MR",	[0x06] = "CP14_LS",	[0x07] = "FP_ASIMD",	[0x08] = "CP10_ID",
	[0x09] = "PAC",		[0x0a] = "OTHER",	[0x0c] = "CP14_64",	[0x0d] = "BTI",
	[0x0e] = "ILL",		[0x11] = "SVC32",	[0x12] = "HVC32",	[0x13] = "SMC32",
	[0x15] = "SVC64",	[0x16] = "HVC64",	[0x17] = "SMC64",	[0x18] = "SYS64",
	[0x19] = "SVE",		[0x1a] = "ERET",	[0x1c] = "FPAC",	[0x1d] = "SME",
	[0x1f] = "IMP_DEF",	[0x20] = "IABT_LOW",	[0x21] = "IABT_CUR",	[0x22] = "PC_ALIGN",
	[0x24] = "DABT_LOW",	[0x25] = "DABT_CUR",	[0x26] = "SP_ALIGN",	[0x27] = "MOPS",
	[0x28] = "FP_EXC32",	[0x2c] = "FP_EXC64",	[0x2d] = "GCS",		[0x2f] = "SERROR",
	[0x30] = "BREAKPT_LOW", [0x31] = "BREAKPT_CUR", [0x32] = "SOFTSTP_LOW", [0x33] = "SOFTSTP_CUR",
	[0x34] = "WATCHPT_LOW", [0x35] = "WATCHPT_CUR", [0x38] = "BKPT32",	[0x3a] = "VECTOR32",
	[0x3c] = "BRK64",
};

#define LEVELS(at, fault)                                                                                    \
	[at] = "level 0 " fault, [at + 1] = "level 1 " fault, [at + 2] = "level 2 " fault,                   \
	[at + 3] = "level 3 " fault
#define WALK " (translation table walk)"

static const char *const faults[64] = {
	LEVELS(0x00, "address size fault"),
	LEVELS(0x04, "translation fault"),
	LEVELS(0x08, "access flag fault"),
	LEVELS(0x0c, "permission fault"),
	[0x10] = "synchronous external abort",
	[0x11] = "synchronous tag check fault",
	[0x12] = "level -2 synchronous external abort" WALK,
	[0x13] = "level -1 synchronous external abort" WALK,
	LEVELS(0x14, "synchronous external abort" WALK),
	[0x18] = "synchronous parity or ECC error",
	[0x1b] = "level -1 synchronous parity error" WALK,
	LEVELS(0x1c, "synchronous parity error" WALK),
	[0x21] = "alignment fault",
	[0x22] = "level -2 granule protection fault" WALK,
	[0x23] = "level -1 granule protection fault" WALK,
	LEVELS(0x24, "granule protection fault" WALK),
	[0x28] = "granule protection fault",
	[0x29] = "level -1 address size fault",
	[0x2a] = "level -2 translation fault",
	[0x2b] = "level -1 translation fault",
	[0x2c] = "level -2 address size fault",
	[0x30] = "TLB conflict abort",
	[0x31] = "unsupported atomic hardware update fault",
	[0x34] = "implementation fault (lockdown abort)",
	[0x35] = "implementation fault (unsupported exclusive)",
};

static bool bit(uint64_t v, unsigned int n)
{
	return v >> n & 1;
}

static unsigned int bits(uint64_t v, unsigned int high, unsigned int low)
{
	return (unsigned int)(v >> low) & ((1u << (high - low + 1)) - 1);
}

const char *esr_ec_name(unsigned int ec)
{
	return ec < ARRAY_SIZE(ec_names) ? ec_names[ec] : NULL;
}

const char *esr_fault(unsigned int fsc)
{
	return fsc < ARRAY_SIZE(faults) ? faults[fsc] : NULL;
}

struct line {
	char *p;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void esr_put(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->p, l->left, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= l->left)
		n = l->left ? (int)l->left - 1 : 0;
	l->p += n;
	l->left -= (size_t)n;
}

static void esr_put_reg(struct line *l, bool wide, unsigned int reg)
{
	if (reg == 31)
		esr_put(l, wide ? "xzr" : "wzr");
	else
		esr_put(l, "%c%u", wide ? 'x' : 'w', reg);
}

/* A trapped MSR, MRS or system instruction. */
static void sys64_text(struct line *l, uint64_t esr)
{
	const struct sysreg r = {
		.op0 = (uint8_t)bits(esr, 21, 20),
		.op2 = (uint8_t)bits(esr, 19, 17),
		.op1 = (uint8_t)bits(esr, 16, 14),
		.crn = (uint8_t)bits(esr, 13, 10),
		.crm = (uint8_t)bits(esr, 4, 1),
	};
	unsigned int rt = bits(esr, 9, 5);
	bool read = bit(esr, 0);
	char name[SYSREG_NAME_MAX];

	sysreg_text(&r, name, sizeof(name));
	if (r.op0 < 2) { /* an instruction, with a register or none */
		esr_put(l, "%s", name);
		if (rt == 31)
			return;
		esr_put(l, ", ");
	} else {
		esr_put(l, "%s %s %s ", read ? "read" : "write", name, read ? "to" : "from");
	}
	esr_put_reg(l, true, rt);
}

static void other_text(struct line *l, uint64_t esr)
{
	static const char *const wf[] = { "wfi", "wfe", "wfit", "wfet" };
	static const char *const eret[] = { "eret", "eret", "eretaa", "eretab" };
	unsigned int ec = esr_ec(esr);

	if (ec == EC_WFX)
		esr_put(l, "%s", wf[bits(esr, 1, 0)]);
	else if (ec == EC_ERET)
		esr_put(l, "%s", eret[bits(esr, 1, 0)]);
	else if ((ec >= EC_SVC64 && ec <= EC_SMC64) || (ec >= EC_SVC32 && ec < EC_SMC32))
		esr_put(l, "#%u", bits(esr, 15, 0));
	else if (ec == EC_BRK64)
		esr_put(l, "#0x%x", bits(esr, 15, 0));
	else if (ec == EC_CP15_32 || ec == EC_CP14_MR)
		esr_put(l, "%s p%u, %u, r%u, c%u, c%u, %u", bit(esr, 0) ? "mrc" : "mcr",
			ec == EC_CP15_32 ? 15 : 14, bits(esr, 16, 14), bits(esr, 9, 5), bits(esr, 13, 10),
			bits(esr, 4, 1), bits(esr, 19, 17));
	else if (ec == EC_CP15_64 || ec == EC_CP14_64)
		esr_put(l, "%s p%u, %u, r%u, r%u, c%u", bit(esr, 0) ? "mrrc" : "mcrr",
			ec == EC_CP15_64 ? 15 : 14, bits(esr, 19, 16), bits(esr, 9, 5), bits(esr, 14, 10),
			bits(esr, 4, 1));
	else if (ec == EC_WATCHPT_LOW || ec == EC_WATCHPT_CUR)
		esr_put(l, "%s", bit(esr, 6) ? "write" : "read");
}

const char *esr_text(uint64_t esr, char *out, size_t size)
{
	unsigned int ec = esr_ec(esr);
	bool data = ec == EC_DABT_LOW || ec == EC_DABT_CUR;
	const char *name = esr_ec_name(ec);
	struct line l = { out, size };
	char *iss;

	if (name)
		esr_put(&l, "%s ", name);
	else
		esr_put(&l, "EC 0x%02x ", ec);
	iss = l.p;
	if (data || ec == EC_IABT_LOW || ec == EC_IABT_CUR) {
		unsigned int fsc = bits(esr, 5, 0), bytes = 1u << bits(esr, 23, 22);
		bool described = data && bit(esr, 24), write = data && bit(esr, 6);

		esr_put(&l, "%s", !data ? "fetch" : write ? "write" : "read");
		if (described) {
			esr_put(&l, " of %u byte%s %s ", bytes, bytes > 1 ? "s" : "", write ? "from" : "to");
			esr_put_reg(&l, bit(esr, 15), bits(esr, 20, 16));
		}
		if (esr_fault(fsc))
			esr_put(&l, ", %s", esr_fault(fsc));
		else
			esr_put(&l, ", fault status 0x%02x", fsc);
		if (bit(esr, 7))
			esr_put(&l, ", on a stage 1 walk");
		if (data && bit(esr, 8))
			esr_put(&l, ", cache maintenance");
		if (described && bit(esr, 21))
			esr_put(&l, ", sign-extended");
		if (described && bit(esr, 14))
			esr_put(&l, ", acquire/release");
		if (fsc == 0x10 && bit(esr, 10)) /* FnV: of external aborts only */
			esr_put(&l, ", FAR not valid");
	} else if (ec == ESR_SYS64)
		sys64_text(&l, esr);
	else
		other_text(&l, esr);
	if (l.p == iss && iss > out && iss[-1] == ' ') /* nothing more to say */
		iss[-1] = 0;
	return out;
}

const char *kvm_exit_arm_name(uint32_t ret)
{
	static const char *const names[] = { "IRQ", "SERROR", "TRAP", "IL" };

	if (ret == 0xbadca11) /* HVC_STUB_ERR */
		return "HYP_GONE";
	return ret < ARRAY_SIZE(names) ? names[ret] : NULL;
}

const char *pstate_mode_name(uint32_t spsr)
{
	static const char *const names[32] = {
		[0x00] = "EL0t",       [0x04] = "EL1t",	      [0x05] = "EL1h",	     [0x08] = "EL2t",
		[0x09] = "EL2h",       [0x0c] = "EL3t",	      [0x0d] = "EL3h",	     [0x10] = "32-bit USR",
		[0x11] = "32-bit FIQ", [0x12] = "32-bit IRQ", [0x13] = "32-bit SVC", [0x17] = "32-bit ABT",
		[0x1a] = "32-bit HYP", [0x1b] = "32-bit UND", [0x1f] = "32-bit SYS",
	};

	return names[spsr & 0x1f];
}

#define KEY(op0, op1, crn, crm, op2) ((uint16_t)((op0) << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2)))

struct entry {
	uint16_t key;
	const char *name;
};

#define R(op0, op1, crn, crm, op2, name) { KEY(op0, op1, crn, crm, op2), name },
static const struct entry table[] = {
#include "base/decode/sysreg-table.h"
};
#undef R

static bool key_below(const void *row, const void *key)
{
	return ((const struct entry *)row)->key < *(const uint16_t *)key;
}

const char *sysreg_name(const struct sysreg *r)
{
	uint16_t key = KEY(r->op0, r->op1, r->crn, r->crm, r->op2);
	size_t at = array_lower_bound(table, ARRAY_SIZE(table), sizeof(table[0]), key_below, &key);

	if (r->op0 > 3 || r->op1 > 7 || r->crn > 15 || r->crm > 15 || r->op2 > 7)
		return NULL;
	return at < ARRAY_SIZE(table) && table[at].key == key ? table[at].name : NULL;
}

const char *sysreg_text(const struct sysreg *r, char *out, size_t size)
{
	const char *name = sysreg_name(r);

	if (name)
		snprintf(out, size, "%s", name);
	else if (r->op0 >= 2)
		snprintf(out, size, "S%u_%u_C%u_C%u_%u", r->op0, r->op1, r->crn, r->crm, r->op2);
	else
		snprintf(out, size, "sys %u,%u,C%u,C%u,%u", r->op0, r->op1, r->crn, r->crm, r->op2);
	return out;
}
