# SPDX-License-Identifier: GPL-2.0-only
# What a guest's own steal clock says against what hyptrace makes of the trace: made by tests/lab/x86-steal.
# shellcheck shell=bash

# stolen_by_clock HOST GUEST CPU: ns between the guest's first and last look at its clock, and their times
stolen_by_clock() {
	"$hyptrace" export -q --json "$1" "$2" | perl -ne '
		BEGIN { $cpu = shift }
		next unless /"event":"print"/ and /cpu$cpu (?:\d+ ){7}(\d+)/;
		$steal = $1; ($time) = /"time":(\d+)/;
		($s0, $t0) = ($steal, $time) unless defined $s0;
		END { printf "%d %d %d\n", ($steal - $s0) * 10_000_000, $t0, $time }' "$3"
}

# stolen_by_us HOST GUEST CPU FROM TO: ns for which its vCPU could have run and did not
stolen_by_us() {
	"$hyptrace" sql -q --csv "$1" "$2" "SELECT sum(min(ts + dur, $5) - max(ts, $4)) AS ns FROM vcpu_states
		WHERE vcpu = $3 AND state = 'preempted' AND ts < $5 AND ts + dur > $4" | tail -n 1 | cut -d, -f 2
}

# check_steal HOST GUEST: both vCPUs, and who the thief is
check_steal() {
	local cpu clock from to ours

	for cpu in 0 1; do
		read -r clock from to < <(stolen_by_clock "$1" "$2" "$cpu")
		ours=$(stolen_by_us "$1" "$2" "$cpu" "$from" "$to")
		diag "vCPU $cpu: the guest's clock $((clock / 1000000)) ms, ours $((ours / 1000000)) ms"
		[ "$clock" -gt 500000000 ] && [ $((clock > ours ? clock - ours : ours - clock)) -le $((clock / 20)) ]
		ok $? "vCPU $cpu: what the guest's own clock says was stolen, within 5 %"
	done
	like "$("$hyptrace" stat -q --show steal "$1" "$2" | sed -n '3p')" '^.* vcpu +Guest:0 +preempted +hog-[0-9]+ ' \
		"the program that wants the same CPU is the first thief"
	like "$("$hyptrace" stat -q --show steal "$1" "$2")" '^Guest +task .* preempted +hog-[0-9]+ ' \
		"... of the guest's task, too"
}
