#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The plugins on recordings of Android's two layouts (fakes, as in android.t): each
# event with what its numbers mean. The feeder's numbers are arbitrary; what they mean
# is worked out below from the Arm documents, not taken from the output.
. tests/integration/lib.sh

command -v trace-cmd >/dev/null || skip_all "no trace-cmd"
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins HYPTRACE_TRACING_DIR=$tmp/tracefs

# shown LAYOUT OPTION...: the hypervisor's events of a recording, without CPU and time
shown() {
	local layout=$1

	shift
	rm -rf "$tmp/tracefs" "$tmp"/trace.dat*
	"$build/tests/integration/fake-android" "$tmp/tracefs" "$layout"
	timeout 60 "$build/hyptrace" record -o "$tmp/trace.dat" -B hyp -- \
		"$build/tests/integration/feed-android" "$tmp/tracefs" events >/dev/null 2>"$tmp/err" ||
		diag "$(cat "$tmp/err")"
	trace-cmd report -i "$tmp/trace.dat" "$@" >"$tmp/report" 2>&1
	sed -E -n 's/^.*\] +[0-9.]+: ([a-z_0-9]+):/\1:/p' "$tmp/report" | sed -E 's/ +$//; s/: +/: /'
}

# ESR 0x80000041: class 0x20 is an instruction abort from below, status 1 an address size
# fault at level 1; 0x80000071's status 0x31 an unsupported atomic update. SMC ids with bit 31
# and owner 0 are fast calls to the architecture's services. IPAs are in bytes, ranges in KiB.
is "$(shown android15)" "hyp_enter:
hyp_exit:
host_hcall: id=2147483681 invalid=66
host_smc: id=1152921506754330673 forwarded=98 (0x80000031 Arch 0x0031 SMC32)
host_mem_abort: esr=0x1000000080000041 addr=0x2000000100000082 (IABT_LOW fetch, level 1 address size fault, ipa 0x2000000100000082)
__hyp_printk: fmt_id=81 args=0x20000001000000a2 0x30000001800000f3 0x4000000200000144 0x5000000280000195
host_ffa_call: ffa_func=0x1000000080000061 a1=0x20000001000000c2 a2=0x3000000180000123 a3=0x4000000200000184 a4=50000002800001e5 handled=582 err=-2147482969 (0x80000061 Arch 0x0061 SMC32)
psci_mem_protect: count=1152921506754330737 was=2305843013508661474
iommu_idmap: from=0x1000000080000081 to=0x2000000100000102 prot=0x3 (1125899908939776 KiB)
func: 0xfffffffffffff091 <- 0xfffffffffffff122
func_ret: 0xfffffffffffff0a1" "Android 14 and 15"
is "$(shown android16)" "hyp_enter:
hyp_exit:
host_hcall: id=2147483681 invalid=66
host_smc: id=1152921506754330673 forwarded=98 (0x80000031 Arch 0x0031 SMC32)
host_mem_abort: esr=0x1000000080000041 addr=0x2000000100000082 (IABT_LOW fetch, level 1 address size fault, ipa 0x2000000100000082)
__hyp_printk: fmt_id=81 args=0x20000001000000a2 0x30000001800000f3 0x4000000200000144 0x5000000280000195
psci_mem_protect: count=1152921506754330721 was=2305843013508661442
vcpu_illegal_trap: esr_el2=1000000080000071 (IABT_LOW fetch, unsupported atomic hardware update fault)
selftest:
iommu_idmap: from=0x1000000080000091 to=0x2000000100000122 prot=0x3 (1125899908939776 KiB)
iommu_idmap_complete: map=1 (mapped)
power_lock: vm=-2147483471 device=0x2000000100000162 lock=1 ret=708
func: 0xfffffffffffff0c1 <- 0xfffffffffffff182
func_ret: 0xfffffffffffff0d1" "Android 16"
unlike "$(cat "$tmp/report")" "CAN.?T FIND FIELD|FAILED TO PARSE" "nothing is left undecoded"

# symbols of that hypervisor, and its printk's formats
printf 'fffffffffffff0c0 t handle_trap\nfffffffffffff180 t __host_exit\n' >"$tmp/symbols"
printf '81 shared %%llx with %%llu\n' >"$tmp/printk"
named=$(shown android16 -O "hyp:symbols=$tmp/symbols" -O "hyp:printk=$tmp/printk")
is "$(grep -E '^(func|func_ret|__hyp_printk):' <<<"$named")" "__hyp_printk: shared 20000001000000a2 with 3458764520262992115
func: handle_trap+0x1 <- __host_exit+0x2
func_ret: handle_trap+0x11" "with what the options give"
done_testing
