#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What stock trace-cmd 3.1 does with files that have the hypervisor's buffer, as
# hyptrace-report(1) and format-notes.md say, and that what they advise works.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
file=tests/data/lab-protected.dat # ends with kvm events
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins

version=$(trace-cmd 2>&1 | sed -n 's/^trace-cmd version \([0-9.]*\).*/\1/p')
[[ $version == 3.1* ]] || skip_all "no trace-cmd 3.1, but '$version'"

# ---- filters ---------------------------------------------------------------------------

trace-cmd report $file >"$tmp/all" 2>/dev/null
for filter in "-F kvm_exit" "-v -F kvm_exit" "--pid 109" "--comm hyptrace"; do
	# shellcheck disable=SC2086
	status=$({ trace-cmd report $filter $file >"$tmp/stock"; echo $?; } 2>/dev/null)
	[ "$status" -ge 128 ]
	ok $? "stock crashes: report $filter"
	# shellcheck disable=SC2086
	"$hyptrace" report $filter $file >"$tmp/ours" 2>"$tmp/err"
	is "$? $(cat "$tmp/err")" "0 " "... ours does not"
	is "$(grep -vxFf "$tmp/all" "$tmp/ours")" "" "... shows lines of stock's without a filter"
	[ "$(wc -c <"$tmp/ours")" -ge "$(wc -c <"$tmp/stock")" ] && [ "$(wc -l <"$tmp/ours")" -gt 1 ]
	ok $? "... all that stock did, and what it lost" || diag "$(wc "$tmp/ours" "$tmp/stock")"
done
is "$("$hyptrace" report -F kvm_exit $file | sed 1d)" "$(grep ' kvm_exit: ' "$tmp/all")" "hyptrace report -F: all of them"

# ---- split and profiles ------------------------------------------------------------------

like "$(trace-cmd report --profile $file 2>&1; echo "status $?")" 'Handle not found?' "stock does not profile such a file"
trace-cmd split -i $file -o "$tmp/top" >"$tmp/out" 2>&1
is "$?" 0 "stock splits it"
trace-cmd report "$tmp/top.1" 2>/dev/null >"$tmp/top"
is "$(grep -c '^hyp:' "$tmp/top")/$(grep -c '^hyp:' "$tmp/all")/$(grep -c hyp "$tmp/out")" "0/3192/0" "... without the hypervisor's buffer, and no message about it"
like "$(trace-cmd report --profile -i "$tmp/top.1" 2>&1)" '^task: CPU 0/KVM-109$' "... and profiles what is left, as our pages advise"
like "$("$hyptrace" report --profile 2>&1)" 'use trace-cmd split and trace-cmd report --profile$' "so does report --profile"

# ---- the kvm plugin left out ---------------------------------------------------------------

like "$(trace-cmd report -n kvm tests/data/lab-stock-arm64.dat 2>/dev/null)" 'kvm_wfx_arm64: +guest executed wf>c< at: 0x0000000000000000$' \
	"-n kvm: wf>c< and PC 0"
like "$(trace-cmd report tests/data/lab-stock-arm64.dat 2>/dev/null)" 'kvm_wfx_arm64: +guest executed wfi at: 0xffff8000807f6a9c$' \
	"our plugins instead: right"
done_testing
