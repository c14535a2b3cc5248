#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The decode tables (lib/base/decode, the plugins') against the kernel's own headers: a
# program is made of the names in the headers, the compiler works out their
# values, and each is looked up in our tables.
#
# The headers: Debian's linux-headers-*-common (of any architecture: they hold
# arch/arm64), or HYPTRACE_KERNEL_SRC, a kernel's source tree. Every tree found is
# tested; what a kernel does not have yet is not.
. "$(dirname "$0")/lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)

trees=()
for dir in ${HYPTRACE_KERNEL_SRC:-} /usr/src/linux-headers-*-common /usr/src/linux-headers-*-common-rt; do
	[ -e "$dir/arch/arm64/include/asm/esr.h" ] && trees+=("$dir")
done
[ ${#trees[@]} -gt 0 ] || skip_all "no kernel headers with arch/arm64: apt-get install linux-headers-<version>-common"
command -v "${CC:=gcc}" >/dev/null || skip_all "no $CC"

# defines FILE PATTERN: names of macros without parameters that match
defines() {
	grep -ohP "^#define\s+\K$2(?=\s)" "$1" | sort -u
}

# Only the #define lines of a header, with what continues them: no inline functions.
macros() {
	sed -e ':a' -e '/\\$/{N;s/\\\n//;ba}' "$1" | grep -E '^#[[:space:]]*(define|undef)[[:space:]]'
}

# ---- one generated program per tree: prints "kind<TAB>kernel's name<TAB>value"

values() { # values KIND < NAMES: C statements
	sed "s/.*/	printf(\"$1\\\\t&\\\\t%llu\\\\n\", (unsigned long long)(&));/"
}

sysreg_names() {
	macros "$1" | grep -oP '^#define\s+\K(SYS|OP)_\w+(?=\s+(sys_reg|sys_insn|__SYS__|SYS_AM)\w*\()' | sort -u
}

# The definition of an enum, and its members; nothing when the header does not have it.
enumeration() { # enumeration NAME FILE
	[ ! -e "$2" ] || sed -n "/^enum $1 {/,/^};/p" "$2"
}

members() { # members NAME FILE
	enumeration "$1" "$2" | grep -oP '^\s+\K\w+' || true
}

generate() { # generate TREE
	local asm=$1/arch/arm64/include/asm inc=$1/include

	cat <<-'EOF'
		#include <stdio.h>
		#define UL(x) (x##UL)
		#define _AC(x, y) (x##y)
		#define BIT(n) (1UL << (n))
	EOF
	macros "$asm/sysreg.h"
	macros "$asm/esr.h"
	macros "$inc/linux/arm-smccc.h"
	macros "$inc/uapi/linux/psci.h"
	macros "$inc/uapi/linux/arm_sdei.h"
	macros "$inc/linux/arm_ffa.h"
	macros "$asm/kvm_asm.h" | grep -E 'ARM_EXCEPTION_(IRQ|EL1_SERROR|TRAP|IL|HYP_GONE)'
	macros "$asm/virt.h" | grep HVC_STUB_ERR
	macros "$inc/trace/events/kvm.h" | grep 'KVM_TRACE_MMIO_[A-Z_]* [0-9]'
	macros "$1/arch/arm64/include/uapi/asm/kvm.h" | grep KVM_ARM_IRQ_TYPE_
	enumeration kvm_arch_timers "$inc/kvm/arm_arch_timer.h"
	enumeration exception_type "$asm/kvm_emulate.h"
	enumeration hyp_enter_exit_reason "$asm/kvm_hypevents.h"
	echo 'int main(void) {'
	defines "$asm/esr.h" 'ESR_ELx_EC_\w+' | grep -vE '_(MAX|SHIFT|WIDTH|MASK)$' | values ec
	defines "$asm/esr.h" 'ESR_ELx_FSC_(EXTABT|MTE|SECC|EXCL_ATOMIC|ACCESS|FAULT|PERM|ADDRSZ)' | values fsc
	defines "$asm/kvm_asm.h" 'ARM_EXCEPTION_\w+' | values exit
	defines "$inc/linux/arm-smccc.h" 'ARM_SMCCC_OWNER_\w+' | grep -vE '_(MASK|SHIFT)$' | values owner
	defines "$inc/linux/arm-smccc.h" 'ARM_SMCCC_(ARCH|TRNG|HV_PV|VERSION_FUNC|VENDOR_HYP_KVM)_\w+' | values id
	defines "$inc/uapi/linux/psci.h" 'PSCI_[01]_[0-9]_FN(64)?_\w+' | grep -v BASE | values id
	defines "$inc/uapi/linux/arm_sdei.h" 'SDEI_1_0_FN_\w+' | grep -v BASE | values id
	defines "$inc/linux/arm_ffa.h" 'FFA_(?!RET_|VERSION_|FEAT|PAGE|MEM_(EXEC|NO|RW|RO|NORMAL|DEVICE|WRITE|NON|OUTER|INNER|CLEAR|RETRIEVE_(TYPE|ADDR|SELF))|DEV_|TIME|PARTITION_(?!INFO_GET)|M[AI]|PACK|FN_|SMC|1_0)\w+' | values id
	defines "$inc/linux/arm_ffa.h" 'FFA_RET_\w+' | values ffaerr
	sysreg_names "$asm/sysreg.h" | values sysreg
	members kvm_arch_timers "$inc/kvm/arm_arch_timer.h" | grep ^TIMER | values timer
	members exception_type "$asm/kvm_emulate.h" | values exception
	members hyp_enter_exit_reason "$asm/kvm_hypevents.h" | values reason
	defines "$inc/trace/events/kvm.h" 'KVM_TRACE_MMIO_\w+' | values mmio
	defines "$1/arch/arm64/include/uapi/asm/kvm.h" 'KVM_ARM_IRQ_TYPE_(CPU|SPI|PPI)' | values irqtype
	echo '	return 0; }'
}

# "Sysreg NAME op0 op1 crn crm op2" of kernels whose header is made from a list
listed() {
	[ -e "$1/arch/arm64/tools/sysreg" ] || return 0
	awk '$1 == "Sysreg" { printf "sysreg\tSYS_%s\t%d\n", $2, $3 * 524288 + $4 * 65536 + $5 * 4096 + $6 * 256 + $7 * 32 }' \
		"$1/arch/arm64/tools/sysreg"
}

# kvm_arm_exception_class: what the kernel prints for a class
printed() {
	grep -oP 'ECN\(\K\w+(?=\))' "$1/arch/arm64/include/asm/kvm_arm.h" | grep -v '^x$' | sort -u
}

# arm64's fault_info[] in order, in our words: only in a whole source tree. (Domain
# faults are of the 32-bit short descriptors: no hypervisor sees them.)
faults() {
	sed -n '/fault_info\[\] = {/,/^};/s/.*"\(.*\)".*/\1/p' "$1/arch/arm64/mm/fault.c" |
		sed -e 's/^ttbr /level 0 /' -e 's/^unknown .*/-/' -e 's/.* domain fault$/-/' -e 's/^Unsupported/unsupported/' \
			-e 's/^\(level -\?[0-9]\) (trans/\1 synchronous external abort (trans/'
}

# ---- ours: reads those lines, prints what we call each

cat >"$tmp/ours.c" <<'EOF'
#include <stdio.h>
#include <string.h>
#include "base/decode/esr.h"
#include "base/decode/smccc.c"
#include "hyp-reason.h"
#include "kvm-arm64.c"

#define entry(table, v) ((v) < ARRAY_SIZE(table) ? (table)[v] : NULL)

int main(void)
{
	char line[256], kind[32], name[128];
	unsigned long long v;

	while (fgets(line, sizeof(line), stdin)) {
		const char *ours = NULL;

		if (sscanf(line, "%31s %127s %llu", kind, name, &v) != 3)
			return 1;
		if (!strcmp(kind, "ec"))
			ours = esr_ec_name(v);
		else if (!strcmp(kind, "fsc"))
			ours = esr_fault(v);
		else if (!strcmp(kind, "exit"))
			ours = kvm_exit_arm_name(v);
		else if (!strcmp(kind, "owner"))
			ours = smccc_owner_name(v);
		else if (!strcmp(kind, "id"))
			ours = smccc_name(v);
		else if (!strcmp(kind, "ffaerr"))
			ours = ffa_error_name((int)v);
		else if (!strcmp(kind, "sysreg"))
			ours = sysreg_name(&(struct sysreg){ v >> 19 & 3, v >> 16 & 7, v >> 12 & 15,
							     v >> 8 & 15, v >> 5 & 7 });
		else if (!strcmp(kind, "timer"))
			ours = timer_name((int64_t)v);
		else if (!strcmp(kind, "exception"))
			ours = exception_name((int64_t)v);
		else if (!strcmp(kind, "reason"))
			ours = entry(hyp_reason_names, v);
		else if (!strcmp(kind, "mmio"))
			ours = entry(mmio_types, v);
		else if (!strcmp(kind, "irqtype"))
			ours = entry(irq_types, v);
		printf("%s\t%s\t%llu\t%s\n", kind, name, v, ours ? ours : "-");
	}
	return 0;
}
EOF
# shellcheck disable=SC2046 # several words
"$CC" -D_GNU_SOURCE -w -I"$root/lib" -I"$root/plugins" -o "$tmp/ours" "$tmp/ours.c" \
	"$root"/lib/base/{decode/esr,array,buf,cursor,escape,field,files,strings}.c "$root"/plugins/{plugin,relay,hyp-reason}.c \
	$(pkg-config --cflags --libs libtraceevent)
ok $? "our tables build alone"

# What the kernel's name should be with us: "kind<TAB>name<TAB>value<TAB>ours" -> expected
cat >"$tmp/judge.awk" <<'EOF'
BEGIN {
	FS = "\t"
	fsc["EXTABT"] = "synchronous external abort"
	fsc["MTE"] = "synchronous tag check fault"
	fsc["SECC"] = "synchronous parity or ECC error"
	fsc["EXCL_ATOMIC"] = "implementation fault (unsupported exclusive)"
	fsc["ACCESS"] = "level 0 access flag fault"
	fsc["FAULT"] = "level 0 translation fault"
	fsc["PERM"] = "level 0 permission fault"
	fsc["ADDRSZ"] = "level 0 address size fault"
	# one number, two registers or names; ours is on the right
	alias["DBGDTRRX_EL0"] = alias["DBGDTRTX_EL0"] = "DBGDTRTX/RX_EL0"
	alias["AMEVCNTR0_CORE_EL0"] = "AMEVCNTR00_EL0"
	alias["AMEVCNTR0_CONST_EL0"] = "AMEVCNTR01_EL0"
	alias["AMEVCNTR0_INST_RET_EL0"] = "AMEVCNTR02_EL0"
	alias["AMEVCNTR0_MEM_STALL"] = "AMEVCNTR03_EL0"
	alias["ICH_VSEIR_EL2"] = "ICH_HFGRTR_EL2" # GICv5 took the place
	mmio["KVM_TRACE_MMIO_READ_UNSATISFIED"] = "unsatisfied-read"
	mmio["KVM_TRACE_MMIO_READ"] = "read"; mmio["KVM_TRACE_MMIO_WRITE"] = "write"
	owner["ARCH"] = "Arch"; owner["CPU"] = "CPU"; owner["SIP"] = "SiP"; owner["OEM"] = "OEM"
	owner["STANDARD"] = "Std"; owner["STANDARD_HYP"] = "StdHyp"; owner["VENDOR_HYP"] = "VendorHyp"
	owner["TRUSTED_APP"] = owner["TRUSTED_APP_END"] = "TA"
	owner["TRUSTED_OS"] = owner["TRUSTED_OS_END"] = "TOS"
}
function id(n) {
	sub(/^PSCI_[01]_[0-9]_FN(64)?_(PSCI_)?/, "PSCI_", n)
	sub(/^SDEI_1_0_FN_/, "", n)
	sub(/^FFA_FN64_/, "FFA_", n)
	sub(/^ARM_SMCCC_VENDOR_HYP_/, "", n)
	sub(/^ARM_SMCCC_HV_/, "", n)
	sub(/^ARM_SMCCC_TRNG_RND(32|64)/, "TRNG_RND", n)
	sub(/^ARM_SMCCC_TRNG/, "TRNG", n)
	sub(/^ARM_/, "", n)
	sub(/_FUNC_ID$/, "", n)
	sub(/^SMCCC_ARCH_SOC_ID64$/, "SMCCC_ARCH_SOC_ID", n)
	return n
}
{
	want = $2
	if ($1 == "ec") sub(/^ESR_ELx_EC_/, "", want)
	if ($1 == "fsc") { sub(/^ESR_ELx_FSC_/, "", want); want = fsc[want] }
	if ($1 == "exit") { sub(/^ARM_EXCEPTION_(EL1_)?/, "", want) }
	if ($1 == "owner") { sub(/^ARM_SMCCC_OWNER_/, "", want); want = owner[want] }
	if ($1 == "id") want = id(want)
	if ($1 == "ffaerr") { sub(/^FFA_RET_/, "", want); if (want == "SUCCESS") want = "-" }
	if ($1 == "sysreg") {
		if (want ~ /^OP_/) { sub(/^OP_/, "", want); sub(/_/, " ", want) }
		sub(/^SYS_/, "", want)
		sub(/^DC_/, "DC ", want); sub(/^IC_/, "IC ", want)
		if (want in alias) want = alias[want]
		if ($3 < 524288) next	# the 32-bit guests' own
	}
	if ($1 == "timer") { sub(/^TIMER_/, "", want); want = tolower(want) }
	if ($1 == "exception") { sub(/^except_type_/, "", want); want = toupper(want) }
	if ($1 == "reason") { sub(/^HYP_REASON_/, "", want); want = tolower(want) }
	if ($1 == "mmio") want = mmio[want]
	if ($1 == "irqtype") { sub(/^KVM_ARM_IRQ_TYPE_/, "", want); if (want != "CPU") want = "VGIC " want }
	n[$1]++
	if (want == $4) good[$1]++
	else print "bad\t" $0 "\twanted " want
}
END {
	for (k in n) print "count\t" k "\t" good[k] + 0 "\t" n[k]
}
EOF

for tree in "${trees[@]}"; do
	name=$(basename "$tree")
	generate "$tree" >"$tmp/gen.c"
	"$CC" -w -o "$tmp/gen" "$tmp/gen.c" 2>"$tmp/err"
	ok $? "$name: the headers' values can be had" || { diag "$(head -20 "$tmp/err")"; continue; }
	{ "$tmp/gen"; listed "$tree"; } | sort -u | "$tmp/ours" | awk -f "$tmp/judge.awk" >"$tmp/report"
	is "$(grep '^bad' "$tmp/report" | cut -f2- | sort)" "" "$name: no number has another name with us"
	for kind in ec fsc exit owner id ffaerr sysreg timer exception mmio irqtype reason; do
		count=$(awk -F'\t' -v k=$kind '$1 == "count" && $2 == k { print $3 "/" $4 }' "$tmp/report")
		if [ -z "$count" ] && [ $kind = ffaerr ]; then
			skip 1 "$name has no FF-A error codes in its header"
			continue
		fi
		if [ $kind = reason ] && [ ! -e "$tree/arch/arm64/include/asm/kvm_hypevents.h" ]; then
			skip 1 "$name is older than the hypervisor's events (Linux 7.1)"
			continue
		fi
		[ -n "$count" ] && [ "${count%/*}" = "${count#*/}" ] && [ "${count%/*}" -gt 0 ]
		ok $? "$name: $kind: $count"
	done
	if [ -e "$tree/arch/arm64/mm/fault.c" ]; then
		seq 0 63 | sed 's/.*/fsc x &/' | "$tmp/ours" | cut -f4 >"$tmp/ours.faults"
		# those that Linux has no words for may have ours
		is "$(paste -d'|' <(faults "$tree") "$tmp/ours.faults" | awk -F'|' '$1 != "-" && $1 != $2')" \
			"" "$name: fault statuses in the kernel's words"
	fi
	want=$(printed "$tree" | sort)
	got=$("$tmp/gen" | "$tmp/ours" | awk -F'\t' '$1 == "ec" { print $4 }' | sort)
	is "$(comm -23 <(echo "$want") <(echo "$got"))" "" "$name: every class that kvm_exit prints is named so by us"
	[ "$(wc -l <<<"$want")" -gt 25 ]
	ok $? "$name: $(wc -l <<<"$want") classes that kvm_exit prints"
done
done_testing
