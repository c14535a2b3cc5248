#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Plain nVHE: the kernel's times of hypervisor records are early by the guest's
# CNTVOFF while a vCPU is loaded, and beyond all measure after the first step
# back. The recording has them right, and says what CNTVOFF is; so it does when the
# recorder is killed and `recover` makes the file.
. "$(dirname "$0")/lib.sh"
# 28-sync.t is next, which has the same
shared=1 vm_up -c 2,4 -g 2 -m nvhe -a "sh -c 'hyptrace-agent -v -D -p 824; exec trace-cmd agent'"

# check_times FILE: the last capture; its records are in $tmp/nvhe.dump
check_times() {
	local before after checked n

	read -r before _ <<<"$(head -n 1 <<<"$output")"
	read -r after _ <<<"$(tail -n 1 <<<"$output")"

	is "$order_status" 0 "$1: hyporder finds all in order"
	diag "$order"
	checked=$(sed -nE 's/^pairs checked ([0-9]+), violations 0, .*/\1/p' <<<"$order")
	at_least "$checked" 100 "no violations in more than 100 pairs"

	datdump -c -p "$out/$1" >"$tmp/nvhe.dump"
	sed -i '/\[events lost\]$/d' "$tmp/nvhe.dump"
	n=$(grep -c '^hyp .*hyp_enter' "$tmp/nvhe.dump")
	at_least "$n" 1000 "more than 1000 hyp_enter ($n)"
	is "$(awk -v from="$before" -v to="$after" '$1 == "hyp" && ($4 < (from - 0.02) * 1e9 || $4 > (to + 0.02) * 1e9)' "$tmp/nvhe.dump" | head -3)" "" \
		"all times of the hypervisor lie in the capture: between $before and $after"
	is "$(awk '$1 == "hyp" && $4 < last[$2] { print last[$2], "then", $0 } $1 == "hyp" { last[$2] = $4 }' "$tmp/nvhe.dump" | head -3)" "" \
		"on each CPU they never go back"
}

# check_cntvoff: what $tmp/nvhe.dump says of it, by the probe's truth
check_cntvoff() {
	local pid ns mine best

	# "PID NS": what the probe says of each vCPU's thread
	sed -nE 's/^- [0-9]+ ([0-9]+) [0-9]+ voff: .*voffset=([0-9]+) .*/\1 \2/p' "$tmp/nvhe.dump" |
		sort -u | awk '{ printf "%d %.0f\n", $1, $2 * 16 }' >"$tmp/truth"
	at_least "$(wc -l <"$tmp/truth")" 2 "the probe gives a CNTVOFF for two vCPUs or more"
	is "$(cut -d ' ' -f 1 "$tmp/truth" | sort | uniq -d)" "" "... and one for each" || diag "$(cat "$tmp/truth")"
	grep ' hyp_cntvoff: ' "$tmp/nvhe.dump" >"$tmp/cntvoff"
	at_least "$(wc -l <"$tmp/cntvoff")" 2 "the file has records of CNTVOFF"
	while read -r pid ns; do
		mine=$(grep "hyp_cntvoff: vcpu=$pid " "$tmp/cntvoff")
		like "$mine" . "for vCPU $pid too"
		is "$(awk -v ns="$ns" '{
			split($8, low, "="); split($9, high, "=")
			if (low[2] > ns + 0 || high[2] < ns + 0) print $0 }' <<<"$mine")" "" \
			"and the truth, $ns ns, is in each of its brackets"
		best=$(awk '{ split($8, low, "="); split($9, high, "="); print high[2] - low[2] }' <<<"$mine" | tail -n 1)
		[ "${best:-1000000}" -le 100000 ]
		ok $? "whose last is at most 100 us wide ($best ns)"
	done <"$tmp/truth"
}

# The truth is read by a probe at kvm_timer_vcpu_load: the offset in ticks of the
# counter, 62.5 MHz, of the vCPU that its thread loads.
capture nvhe.dat '
	echo "f:hv/voff kvm_timer_vcpu_load voffset=vcpu->kvm->arch.timer_data.voffset id=vcpu->vcpu_id" >$t/dynamic_events || exit
	cat /proc/uptime
	hyptrace record -B hyp -e kvm -e sched -e hv:voff -o nvhe.dat -- sleep 3 || exit
	cat /proc/uptime
	cp nvhe.dat /mnt/out'
recorded "three seconds on a plain-nVHE host"
diag "$(tail -n 1 <<<"$stderr")"
unlike "$stderr" "LOST|not understood" "nothing lost, nothing odd"
check_times nvhe.dat

report "$out/nvhe.dat" >"$tmp/nvhe.txt"
is "$(grep -Eo ' [0-9]+\.[0-9]{6}: ' "$tmp/nvhe.txt" | tr -d ' :' | sort -c -s -n 2>&1)" "" "the report is in order of time"
is "$(grep '^ *hyp: ' "$tmp/nvhe.txt" | grep -Evc 'hyp_(enter|exit): +reason=[a-z_]+ vcpu=[0-9]+$|hyp_cntvoff: +vcpu=[0-9]+ offset=[0-9]+ low=[0-9]+ high=[0-9]+$')" 0 \
	"every line of the hypervisor is readable"
is "$(grep -m 5 -e '<\.\.\.>' "$tmp/nvhe.txt")" "" "every task has its name"

check_cntvoff

# ---- kill -9 -----------------------------------------------------------------------------

capture killed.dat '
	[ -d $t/events/hv/voff ] ||
		echo "f:hv/voff kvm_timer_vcpu_load voffset=vcpu->kvm->arch.timer_data.voffset id=vcpu->vcpu_id" >$t/dynamic_events || exit
	cat /proc/uptime
	begin killed.dat -B hyp -e kvm -e sched -e hv:voff || exit
	sleep 2
	slay
	hyptrace recover killed.dat.spool || exit
	cat /proc/uptime
	cp killed.dat /mnt/out'
recorded "a recorder killed, its recording recovered"
check_times killed.dat
is "$("$build/hyptrace" report -i "$out/killed.dat" 2>/dev/null | grep -o '^hyp: CPU:. .EVENTS DROPPED' | sort)" \
	$'hyp: CPU:0 [EVENTS DROPPED\nhyp: CPU:1 [EVENTS DROPPED' "what it had read and not written may be missing, on both CPUs"
check_cntvoff
l1 'echo -:hv/voff >>$t/dynamic_events'

done_testing
