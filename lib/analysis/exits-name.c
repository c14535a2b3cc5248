// SPDX-License-Identifier: LGPL-2.1-or-later
/* What exits, and what was asked for in them, are called. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/exits-priv.h"
#include "decode/esr.h"
#include "decode/smccc.h"

#define NAME(...) snprintf(out, EXITS_NAME_MAX, __VA_ARGS__)

/* As perf: a trap by its class, all else by its reason. */
static void exits_reason_name(const struct exits *e, size_t input, uint64_t key, uint32_t info, char *out)
{
	const char *word = NULL;

	if (info >= EXITS_CLASS) {
		word = esr_ec_name(info - EXITS_CLASS);
		if (!word)
			NAME("TRAP 0x%02x", info - EXITS_CLASS);
	} else {
		if (info == EXITS_ARM64)
			word = kvm_exit_arm_name((uint32_t)key);
		if (!word)
			word = steps_reason(e->steps, input, STEP_KVM_EXIT, key);
		if (!word)
			NAME("exit 0x%" PRIx32, (uint32_t)key);
	}
	if (word)
		NAME("%s", word);
}

static void exits_sysreg_name(uint64_t key, uint32_t info, char *out)
{
	const struct sysreg r = { .op0 = key >> 20 & 3,
				  .op1 = key >> 14 & 7,
				  .crn = key >> 10 & 15,
				  .crm = key >> 1 & 15,
				  .op2 = key >> 17 & 7 };
	const char *how = info & EXITS_WRITE ? "write" : "read";
	char name[SYSREG_NAME_MAX];

	if (info & EXITS_MSR)
		NAME("MSR 0x%" PRIx64 " %s", key, how);
	else
		NAME("%s %s", sysreg_text(&r, name, sizeof(name)), how);
}

const char *exits_name(const struct exits *e, size_t input, enum exits_table table, uint64_t key,
		       uint32_t info, char out[EXITS_NAME_MAX])
{
	char call[SMCCC_TEXT_MAX];

	switch (table) {
	case EXITS_MMIO:
		NAME("0x%" PRIx64 ":%c", key, info & EXITS_WRITE ? 'W' : 'R');
		break;
	case EXITS_IOPORT:
		NAME("0x%" PRIx64 ":%s", key, info & EXITS_WRITE ? "POUT" : "PIN");
		break;
	case EXITS_SYSREG:
		exits_sysreg_name(key, info, out);
		break;
	case EXITS_HYPERCALL:
		if (info & EXITS_SMCCC)
			NAME("%s", smccc_text((uint32_t)key, call, sizeof(call)));
		else
			NAME("%" PRIu64, key);
		break;
	default:
		exits_reason_name(e, input, key, info, out);
	}
	return out;
}

const char *exits_stay_name(const struct exits *e, const struct stay *stay, char out[EXITS_NAME_MAX])
{
	return exits_name(e, stay->input, EXITS_REASON, stay->kind & 0xffffffffff,
			  (uint32_t)(stay->kind >> 40), out);
}
