#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Captures of a protected-mode host with one guest, judged by the peers' own tools.
. "$(dirname "$0")/lib.sh"
all_symbols=1 shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# ---- three seconds: one timeline -----------------------------------------------

capture all.dat '
	cat /proc/uptime
	hyptrace record -B hyp -e kvm -e sched -o all.dat -- sleep 3 || exit
	cat /proc/uptime
	cp all.dat /mnt/out'
recorded "three seconds of hypervisor, kvm and sched"
diag "$(tail -n 1 <<<"$stderr")"
report "$out/all.dat" >"$tmp/all.txt"
is "$(cat "$tmp/report.err")" "" "trace-cmd report, stock, has nothing to complain about"
read -r before _ <<<"$(head -n 1 <<<"$output")"
read -r after _ <<<"$(tail -n 1 <<<"$output")"

hyp_lines=$(grep -c '^hyp: ' "$tmp/all.txt")
at_least "$hyp_lines" 1000 "more than 1000 lines of the hypervisor in the report ($hyp_lines)"
for event in kvm_entry kvm_exit sched_switch; do
	n=$(grep -c "^ .*: $event: " "$tmp/all.txt")
	at_least "$n" 100 "more than 100 lines $event in the report ($n)"
done

is "$(grep '^hyp: ' "$tmp/all.txt" | grep -Evc 'hyp_(enter|exit): +reason=[a-z_]+ vcpu=[0-9]+$')" 0 \
	"every line of the hypervisor reads hyp_enter: reason=hvc vcpu=0" ||
	diag "$(grep '^hyp: ' "$tmp/all.txt" | grep -Ev 'reason=[a-z_]+ vcpu=[0-9]+$' | head -5)"

# (the kernel's own print fmt of kvm_sys_access cannot be parsed: the file's can)
is "$(grep 'FAILED TO PARSE' "$tmp/all.txt" | head -5)" "" "no FAILED TO PARSE"
is "$(grep -m 5 -e '<\.\.\.>' "$tmp/all.txt")" "" "every task has its name"

times() {
	grep -Eo ' [0-9]+\.[0-9]{6}: ' "$1" | tr -d ' :'
}
times "$tmp/all.txt" >"$tmp/all.times"
is "$(wc -l <"$tmp/all.times")" "$(grep -vc '^cpus=' "$tmp/all.txt")" "every line has a time of the form sec.usec"
unsorted=$(LC_ALL=C sort -c -s -n "$tmp/all.times" 2>&1)
is "$unsorted" "" "the lines are in order of time"
is "$(awk -v from="$before" -v to="$after" '$1 < from - 0.02 || $1 > to + 0.02' "$tmp/all.times" | head -3)" "" \
	"the times are the boot clock's: between $before and $after"
turns=$(awk 'NR > 2 && ($1 == "hyp:") != was { n++ } { was = ($1 == "hyp:") } END { print n + 0 }' "$tmp/all.txt")
at_least "$turns" 100 "host and hypervisor alternate ($turns times)"

# ---- the order around every run of the guest -----------------------------------

is "$order_status" 0 "hyporder finds all in order"
diag "$order"
checked=$(sed -nE 's/^pairs checked ([0-9]+), violations 0, .*/\1/p' <<<"$order")
at_least "$checked" 100 "no violations in more than 100 pairs"

# ---- KernelShark ------------------------------------------------------------------

datdump -p "$out/all.dat" >"$tmp/all.dump"
n_of() {
	grep -c "^$1 [0-9]* [0-9]* [0-9]* [^\[]" "$tmp/all.dump"
}
is "$(loadkshark "$out/all.dat" | sed -E 's/^.*\/([^/]*) (.*) entries, .*/\1 \2/')" \
	"all.dat -: $(n_of -)"$'\n'"all.dat hyp: $(n_of hyp)" "libkshark loads every record of both buffers"
is "$(n_of hyp)" "$(summary_of hyp events)" "hyptrace counted as many of the hypervisor"
is "$(n_of -)" "$(summary_of host events)" "hyptrace counted as many of the host"
is "$(summary_of hyp lost), $(summary_of host lost)" "0, 0" "none was lost"

# ---- who ran -------------------------------------------------------------------------

# datdump -p in: records whose pid is not the vcpu's, nor, in host context, that
# of the task which the CPU's sched_switch records tell.
wrong_pids() {
	sort -s -k 2,2n -k 4,4n -k 1,1 "$1" | awk '
	function wrong(line, want) {
		print line ", expected pid " want
	}
	$5 == "sched_switch:" {
		match($0, / prev_pid=[0-9]+/); prev = substr($0, RSTART + 10, RLENGTH - 10)
		match($0, / next_pid=[0-9]+/); next_pid[$2] = substr($0, RSTART + 10, RLENGTH - 10)
		for (i = 0; i < waiting[$2]; i++)
			if (wait_pid[$2, i] != prev) wrong(wait_line[$2, i], prev)
		waiting[$2] = 0
		next
	}
	$1 != "hyp" { next }
	{ vcpu = $NF; sub(/vcpu=/, "", vcpu) }
	vcpu != 0 {
		if ($3 != vcpu) wrong($0, vcpu)
		next
	}
	$2 in next_pid {
		if ($3 != next_pid[$2]) wrong($0, next_pid[$2])
		host++
		next
	}
	{ i = waiting[$2]++; wait_pid[$2, i] = $3; wait_line[$2, i] = $0; host++ }
	END { if (host < 100) print "only " host + 0 " records in host context" }'
}
is "$(wrong_pids "$tmp/all.dump" | head -5)" "" \
	"each record of the hypervisor has the pid of the vCPU, else that of the running task"

run 'hyptrace record -B hyp -o alone.dat -- sleep 1 && cp alone.dat /mnt/out'
recorded "the hypervisor alone"
datdump -p "$out/alone.dat" >"$tmp/alone.dump"
at_least "$(wc -l <"$tmp/alone.dump")" 200 "it has records ($(wc -l <"$tmp/alone.dump"))"
is "$(awk '"vcpu=" $3 != $NF' "$tmp/alone.dump" | head -5)" "" "without sched a record has the vCPU's pid, else 0"

# ---- other kinds of file -------------------------------------------------------------

# shape FILE: what a report consists of, whatever was going on
shape() {
	report "$1" | awk 'NR > 1 {
		sub(/^hyp: /, "hyp:"); sub(/^ +/, "")
		sub(/^.* \[[0-9]+\] +[0-9.]+: /, $1 ~ /^hyp:/ ? "hyp " : "host "); print $1, $2 }' | sort -u
}
for kind in '--compression none' '--file-version 6'; do
	run "hyptrace record -B hyp -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch $kind -o kind.dat -- sleep 1 &&
		cp kind.dat /mnt/out"
	recorded "a recording with $kind"
	is "$(shape "$out/kind.dat")" "host kvm_entry:
host kvm_exit:
host sched_switch:
hyp hyp_enter:
hyp hyp_exit:" "its report has the events asked for"
	is "$(report "$out/kind.dat" | grep -c -e 'FAILED TO PARSE' -e '<\.\.\.>')" 0 "and each is readable"
	is "$(loadkshark "$out/kind.dat" >"$tmp/kshark"; echo $?)" 0 "and libkshark reads it" || diag "$(cat "$tmp/kshark")"
done
is "$(od -An -c -N 3 -j 10 "$out/kind.dat" | tr -d ' ')" '6\0\0' "the last one is a file of version 6" ||
	diag "$(head -c 20 "$out/kind.dat" | od -c)"

done_testing
