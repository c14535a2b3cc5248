// SPDX-License-Identifier: LGPL-2.1-or-later
/* SMC and HVC function ids in words: who is called, and what it is called. */
#include "base/decode/esr.h"
#include "base/array.h"

#define FAST	      (1u << 31)
#define SMC64	      (1u << 30)
#define SVE_HINT      (1u << 16)
#define OWNER(n)      ((uint32_t)(n) << 24)
#define OWNER_MAX     63
#define OWNER_STD     4
#define OWNER_STD_HYP 5
#define OWNER_HYP     6

/* A run of ids of one owner; holes are NULL. */
struct range {
	uint32_t first; /* without SMC64 */
	const char *const *names;
	size_t n;
};

/* clang-format off */
static const char *const psci[] = {
	"PSCI_VERSION", "PSCI_CPU_SUSPEND", "PSCI_CPU_OFF", "PSCI_CPU_ON", "PSCI_AFFINITY_INFO",
	"PSCI_MIGRATE", "PSCI_MIGRATE_INFO_TYPE", "PSCI_MIGRATE_INFO_UP_CPU", "PSCI_SYSTEM_OFF",
	"PSCI_SYSTEM_RESET", "PSCI_FEATURES", "PSCI_CPU_FREEZE", "PSCI_CPU_DEFAULT_SUSPEND",
	"PSCI_NODE_HW_STATE", "PSCI_SYSTEM_SUSPEND", "PSCI_SET_SUSPEND_MODE", "PSCI_STAT_RESIDENCY",
	"PSCI_STAT_COUNT", "PSCI_SYSTEM_RESET2", "PSCI_MEM_PROTECT", "PSCI_MEM_PROTECT_CHECK_RANGE",
	"PSCI_SYSTEM_OFF2",
};

static const char *const sdei[] = {
	"SDEI_VERSION", "SDEI_EVENT_REGISTER", "SDEI_EVENT_ENABLE", "SDEI_EVENT_DISABLE",
	"SDEI_EVENT_CONTEXT", "SDEI_EVENT_COMPLETE", "SDEI_EVENT_COMPLETE_AND_RESUME",
	"SDEI_EVENT_UNREGISTER", "SDEI_EVENT_STATUS", "SDEI_EVENT_GET_INFO",
	"SDEI_EVENT_ROUTING_SET", "SDEI_PE_MASK", "SDEI_PE_UNMASK", "SDEI_INTERRUPT_BIND",
	"SDEI_INTERRUPT_RELEASE", "SDEI_EVENT_SIGNAL", NULL, "SDEI_PRIVATE_RESET",
	"SDEI_SHARED_RESET",
};

static const char *const trng[] = {
	"TRNG_VERSION", "TRNG_FEATURES", "TRNG_GET_UUID", "TRNG_RND",
};

/* from 0x60 */
static const char *const ffa[] = {
	"FFA_ERROR", "FFA_SUCCESS", "FFA_INTERRUPT", "FFA_VERSION", "FFA_FEATURES",
	"FFA_RX_RELEASE", "FFA_RXTX_MAP", "FFA_RXTX_UNMAP", "FFA_PARTITION_INFO_GET", "FFA_ID_GET",
	"FFA_MSG_POLL", "FFA_MSG_WAIT", "FFA_YIELD", "FFA_RUN", "FFA_MSG_SEND",
	"FFA_MSG_SEND_DIRECT_REQ", "FFA_MSG_SEND_DIRECT_RESP", "FFA_MEM_DONATE", "FFA_MEM_LEND",
	"FFA_MEM_SHARE", "FFA_MEM_RETRIEVE_REQ", "FFA_MEM_RETRIEVE_RESP", "FFA_MEM_RELINQUISH",
	"FFA_MEM_RECLAIM", "FFA_MEM_OP_PAUSE", "FFA_MEM_OP_RESUME", "FFA_MEM_FRAG_RX",
	"FFA_MEM_FRAG_TX", "FFA_NORMAL_WORLD_RESUME", "FFA_NOTIFICATION_BITMAP_CREATE",
	"FFA_NOTIFICATION_BITMAP_DESTROY", "FFA_NOTIFICATION_BIND", "FFA_NOTIFICATION_UNBIND",
	"FFA_NOTIFICATION_SET", "FFA_NOTIFICATION_GET", "FFA_NOTIFICATION_INFO_GET",
	"FFA_RX_ACQUIRE", "FFA_SPM_ID_GET", "FFA_MSG_SEND2", "FFA_SECONDARY_EP_REGISTER",
	"FFA_MEM_PERM_GET", "FFA_MEM_PERM_SET", "FFA_CONSOLE_LOG", "FFA_PARTITION_INFO_GET_REGS",
	"FFA_EL3_INTR_HANDLE", "FFA_MSG_SEND_DIRECT_REQ2", "FFA_MSG_SEND_DIRECT_RESP2",
};
/* clang-format on */

static const char *const arch[] = {
	[0] = "SMCCC_VERSION",
	[1] = "SMCCC_ARCH_FEATURES",
	[2] = "SMCCC_ARCH_SOC_ID",
};

static const char *const workaround_3[] = { "SMCCC_ARCH_WORKAROUND_3" };
static const char *const workaround_2_1[] = { "SMCCC_ARCH_WORKAROUND_2", "SMCCC_ARCH_WORKAROUND_1" };
static const char *const pv_time[] = { "PV_TIME_FEATURES", "PV_TIME_ST" };

static const char *const kvm[] = {
	[0] = "KVM_FEATURES",		[1] = "KVM_PTP",
	[2] = "KVM_HYP_MEMINFO",	[3] = "KVM_MEM_SHARE",
	[4] = "KVM_MEM_UNSHARE",	[7] = "KVM_MMIO_GUARD",
	[64] = "KVM_DISCOVER_IMPL_VER", [65] = "KVM_DISCOVER_IMPL_CPUS",
};

static const struct range ranges[] = {
	{ FAST | 0, arch, ARRAY_SIZE(arch) },
	{ FAST | 0x3fff, workaround_3, ARRAY_SIZE(workaround_3) },
	{ FAST | 0x7fff, workaround_2_1, ARRAY_SIZE(workaround_2_1) },
	{ FAST | OWNER(OWNER_STD) | 0, psci, ARRAY_SIZE(psci) },
	{ FAST | OWNER(OWNER_STD) | 0x20, sdei, ARRAY_SIZE(sdei) },
	{ FAST | OWNER(OWNER_STD) | 0x50, trng, ARRAY_SIZE(trng) },
	{ FAST | OWNER(OWNER_STD) | 0x60, ffa, ARRAY_SIZE(ffa) },
	{ FAST | OWNER(OWNER_STD_HYP) | 0x20, pv_time, ARRAY_SIZE(pv_time) },
	{ FAST | OWNER(OWNER_HYP) | 0, kvm, ARRAY_SIZE(kvm) },
};

/* Functions that every owner has. */
static const char *general(unsigned int func)
{
	static const char *const names[] = { "CALL_COUNT", "CALL_UID", NULL, "CALL_REVISION" };

	return func >= 0xff00 && func - 0xff00 < ARRAY_SIZE(names) ? names[func - 0xff00] : NULL;
}

static const char *smccc_owner_name(unsigned int owner)
{
	static const char *const names[] = { "Arch", "CPU", "SiP", "OEM", "Std", "StdHyp", "VendorHyp" };

	if (owner < ARRAY_SIZE(names))
		return names[owner];
	if (owner == 48 || owner == 49)
		return "TA";
	return owner >= 50 && owner <= OWNER_MAX ? "TOS" : "reserved";
}

static const char *smccc_name(uint32_t id)
{
	id &= ~(id & FAST ? SMC64 | SVE_HINT : SMC64);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (id >= ranges[i].first && id - ranges[i].first < ranges[i].n)
			return ranges[i].names[id - ranges[i].first];
	return NULL;
}

const char *smccc_text(uint32_t id, char *out, size_t size)
{
	const char *name = smccc_name(id), *owner = smccc_owner_name(id >> 24 & OWNER_MAX);
	const char *width = id & SMC64 ? "SMC64" : "SMC32";
	unsigned int func = id & 0xffff;
	bool fast = id & FAST;
	/* SMCCC 1.3: no live SVE state; not part of the number */
	const char *sve = fast && (id & SVE_HINT) ? " no-SVE" : "";

	if (name)
		snprintf(out, size, "%s %s%s", name, width, sve);
	else if (fast && general(func))
		snprintf(out, size, "%s %s %s%s", owner, general(func), width, sve);
	else
		snprintf(out, size, "%s 0x%04x %s%s%s", owner, func, width, fast ? "" : " yielding", sve);
	return out;
}

const char *ffa_error_name(int err)
{
	static const char *const names[] = { "NOT_SUPPORTED", "INVALID_PARAMETERS",
					     "NO_MEMORY",     "BUSY",
					     "INTERRUPTED",   "DENIED",
					     "RETRY",	      "ABORTED",
					     "NO_DATA" };

	return err < 0 && err >= -(int)ARRAY_SIZE(names) ? names[-err - 1] : NULL;
}
