#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace watch on a protected-mode host, beside a full recording of the same seconds: who stole how much, and
# how many exits. Then ten kills at random moments.
# shellcheck disable=SC2016 # L1 and awk have their own $
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

l1 'hyptrace watch --once --interval 100ms --journal none 2>&1' | grep -q 'built without libtracefs' &&
	skip_all "built without libtracefs for arm64"

# what of tracefs a watch could leave
state='state() { (cd /sys/kernel/tracing && cat dynamic_events events/sched/*/trigger events/kvm/*/trigger trace_clock && ls instances); }
thread() { grep -lx "$1" /proc/[0-9]*/task/*/comm | head -n 1 | cut -d / -f 5; }
cp /bin/bash /tmp/hog'

# QEMU is stopped before both begin and before both end, and the hog lives in between: both see all of it. The
# recording begins first: a switch is then recorded before the watch counts it, which takes an emulated machine
# long enough to be seen in recorded times.
guest 'for i in 1 2; do (while :; do :; done) & echo $!; done >/tmp/busy 2>/dev/null'
cat >"$out/inside" <<-'END'
	next() { rm -f /tmp/w.prom; while [ ! -e /tmp/w.prom ]; do sleep 0.1; done; }
	hyptrace watch --interval 500ms --json --metrics /tmp/w.prom >/tmp/looks.json & watch=$!
	next
	kill -CONT $qemu
	taskset -c 1 /tmp/hog -c "while :; do :; done" & hog=$!
	sleep 5
	kill $hog; sleep 0.2; kill -STOP $qemu; sleep 0.2
	next
	cp /tmp/w.prom /tmp/looks.json /mnt/out
	kill $watch; wait $watch
END
run "$state"'
	state >/tmp/before
	for n in 0 1; do taskset -p -c $((n + 1)) $(thread "CPU $n/KVM") >/dev/null; done
	export qemu=$(pidof qemu-system-aarch64)
	kill -STOP $qemu
	hyptrace record -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch -e sched:sched_waking -b 8192 \
		-o /tmp/all.dat -- bash /mnt/out/inside; s=$?
	kill -CONT $qemu
	state | diff /tmp/before - >/mnt/out/after; s=$((s + $?))
	cp /tmp/all.dat /mnt/out; exit $s'
recorded "a watch while all is recorded; afterwards tracefs is as before" || diag "$(cat "$out/after")"

"$build/hyptrace" stat -q --no-guests --show steal --rows 0 --json "$out/all.dat" >"$tmp/steal.json"
recorded_ns=$(jq '[.steal[] | select(.from | startswith("CPU 0/KVM")) | select(.thief and (.thief | startswith("hog-"))).total_ns] | add' "$tmp/steal.json")
watched=$(sed -n 's/^hyptrace_vcpu_stolen_seconds_total{vm="Guest",vcpu="0",by="hog"} //p' "$out/w.prom")
at_least "$recorded_ns" 500000000 "the hog took much of vCPU 0"
# 3 to 6 % were seen: what an emulated machine takes from a switch's record to its histogram
awk -v a="$watched" -v b="$recorded_ns" 'BEGIN { b /= 1e9; exit !(a > b * 0.9 && a < b * 1.1) }'
ok $? "the hog's seconds by its name are within 10 % of the recording's: $watched, $recorded_ns ns"

# exits of a thread: those that were entered again, as the last one was not
exits() { # CPU
	"$build/hyptrace" report -q --no-guests "$out/all.dat" 2>/dev/null | grep "^ *CPU $1/KVM-.* kvm_exit:" | wc -l
}
for cpu in 0 1; do
	n=$(awk -F '[ }]' '/^hyptrace_vcpu_exits_total.*vcpu="'$cpu'"/ { n += $NF } END { print n + 0 }' "$out/w.prom")
	of=$(exits $cpu)
	[ "$n" -gt 100 ] && [ $((of - n)) -ge -1 ] && [ $((of - n)) -le 1 ]
	ok $? "exits of vCPU $cpu are those of the recording: $n, $of"
	is "$(sed -n 's/^hyptrace_vcpu_exit_seconds_count{vm="Guest",vcpu="'$cpu'",\(reason=.*\)/\1/p' "$out/w.prom")" \
		"$(sed -n 's/^hyptrace_vcpu_exits_total{vm="Guest",vcpu="'$cpu'",\(reason=.*\)/\1/p' "$out/w.prom")" \
		"... and the histograms count the same"
done
is "$(sed -n 's/^hyptrace_watch_dropped_total //p' "$out/w.prom")" 0 "nothing found no room"
diag "CPU time of the watch, $(jq -s 'length' "$out/looks.json") looks: $(sed -n 's/^hyptrace_watch_cpu_seconds_total //p' "$out/w.prom") s"

# ---- kills ----
run "$state"'
	state >/tmp/before
	for i in 1 2 3 4 5 6 7 8 9 10; do
		hyptrace watch --interval 100ms >/dev/null 2>&1 & watch=$!
		sleep $((RANDOM % 3)).$((RANDOM % 10))
		kill -KILL $watch; wait $watch
	done 2>/dev/null
	hyptrace watch --once --interval 100ms || exit
	state | diff /tmp/before -'
is "$status" 0 "ten kills at random moments: after the next watch tracefs is as it was" || diag "$output"$'\n'"$stderr"
done_testing
