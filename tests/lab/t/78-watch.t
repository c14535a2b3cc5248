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
# long enough to be seen in recorded times. Both, and RCU's thread, run on the other CPU: where two tasks
# after each other take a vCPU's time, the kernel's histogram gives it all to the first, stat to each its own.
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
	for n in 0 1; do taskset -p -c $((1 - n)) $(thread "CPU $n/KVM") >/dev/null; done
	taskset -p -c 0 $(pgrep rcu_sched) >/dev/null
	export qemu=$(pidof qemu-system-aarch64)
	kill -STOP $qemu
	taskset -c 0 hyptrace record -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch -e sched:sched_waking -b 8192 \
		-o /tmp/all.dat -- bash /mnt/out/inside; s=$?
	kill -CONT $qemu
	state | diff /tmp/before - >/mnt/out/after; s=$((s + $?))
	cp /tmp/all.dat /mnt/out; exit $s'
recorded "a watch while all is recorded; afterwards tracefs is as before" || diag "$(cat "$out/after")"

"$build/hyptrace" stat -q --no-guests --show steal --rows 0 --json "$out/all.dat" >"$tmp/steal.json"
recorded_ns=$(jq '[.steal[] | select(.from | startswith("CPU 0/KVM")) | select(.thief and (.thief | startswith("hog-"))).total_ns] | add' "$tmp/steal.json")
watched=$(sed -n 's/^hyptrace_vcpu_stolen_seconds_total{vm="Guest",vcpu="0",by="hog"} //p' "$out/w.prom")
at_least "$recorded_ns" 500000000 "the hog took much of vCPU 0"
awk -v a="$watched" -v b="$recorded_ns" 'BEGIN { b /= 1e9; exit !(a > b * 0.95 && a < b * 1.05) }'
ok $? "the hog's seconds by its name are within 5 % of the recording's: $watched, $recorded_ns ns"

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

# ---- a limit that is exceeded: the flight recorder's seconds before it ----
# The hog begins when both have run for a while, and marks when. The recorder's time is longer than the machine has run.
run "$state"'
	mkdir /tmp/dumps
	for n in 0 1; do taskset -p -c $((1 - n)) $(thread "CPU $n/KVM") >/dev/null; done
	hyptrace record -o /tmp/dumps/ring.dat --flight 1h --ring -b 16384 -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch \
		-e sched:sched_waking -B hyp -b 16384 -A g1@3 -e sched 2>/tmp/ring.err & ring=$!
	within 100 test -e /dev/shm/hyptrace-ring.dat.spool/range
	within 100 grep -q 1 $t/tracing_on
	hyptrace watch --interval 1s --journal none --metrics /tmp/w.prom --dump-when "stolen > 30% for 2s" --dump-dir /tmp/dumps \
		2>/tmp/watch.err & watch=$!
	within 60 test -e /tmp/w.prom; sleep 4
	before=$(sed -n "s/^hyptrace_watch_breaches_total //p" /tmp/w.prom)
	echo "hog begins" >$t/trace_marker
	taskset -c 1 /tmp/hog -c "while :; do :; done" & hog=$!
	within 120 grep -q "hyptrace_watch_dumps_total 1" /tmp/w.prom
	kill $hog
	within 200 test -s /tmp/dumps/ring.001.dat.why.txt
	# why has the lowest priority: beside a guest that is busy on both CPUs it takes minutes
	kill -STOP $(pidof qemu-system-aarch64)
	within 100 sh -c "! pgrep -x -f \"hyptrace why .*\" >/dev/null"
	kill -CONT $(pidof qemu-system-aarch64)
	kill $watch; wait $watch
	kill -INT $ring; wait $ring; s=$?
	cp /tmp/dumps/* /mnt/out
	echo "before $before"; cat /tmp/watch.err /tmp/ring.err >&2; exit $s'
recorded "a ring recorder, and a watch with a limit"
diag "$stderr"
is "$output" "before 0" "nothing is beyond the limit at first"
like "$stderr" "^hyptrace: Guest:0 [0-9.]+ %: 'stolen > 30% for 2s' holds, /tmp/dumps/ring.001.dat will have the seconds before" "the hog is, on vCPU 0"
"$build/hyptrace" report -q "$out/ring.001.dat" "$out/ring-g1.001.dat" >"$tmp/dump" 2>"$tmp/dump.err"
times() { sed -nE 's/.*\[[0-9]+\] +([0-9]+\.[0-9]+): .*/\1/p'; }
began=$(grep 'print:.*hog begins' "$tmp/dump" | times)
first=$(grep -v 'print:' "$tmp/dump" | times | head -n 1) last=$(times <"$tmp/dump" | tail -n 1)
awk -v first="$first" -v began="$began" -v last="$last" 'BEGIN { exit !(began && first < began - 2 && last > began + 2) }'
ok $? "the dump has the seconds before the hog, and those until the limit: from $first to $last, $began" || diag "$(<"$tmp/dump.err")"
for what in 'hyp: .*hyp_enter' 'ring-g1\.001\.dat: .*sched_switch' 'ring\.001\.dat: .*sched_switch.*\bhog'; do
	at_least "$(grep -Ec "$what" "$tmp/dump")" 10 "... with $what"
done
like "$(<"$out/ring.001.dat.why.txt")" '\bhog' "why names the hog"
diag "$(<"$out/ring.001.dat.why.txt")"

# ---- the hypervisor's share, sampled, and by a recording before and after ----
run 'hyptrace record -q -o /tmp/h1.dat -B hyp -b 8192 -- sleep 3
	hyptrace watch -q --interval 300ms --hyp-window 30ms --metrics /tmp/h.prom & watch=$!
	within 200 grep -qs "hyptrace_hyp_windows_total 4[0-9]" /tmp/h.prom
	kill $watch; wait $watch
	hyptrace record -q -o /tmp/h2.dat -B hyp -b 8192 -- sleep 3
	cp /tmp/h.prom /tmp/h?.dat /mnt/out'
recorded "windows of the hypervisor between two recordings" || diag "$output$stderr"
# shares FILE: of all CPUs' time, by reason
shares() {
	"$build/hyptrace" stat -q --show hyp --json "$out/$1" >"$tmp/h.json"
	jq -r '(.notes[] | capture("in total: (?<p>[0-9.]+)%").p | tonumber / 100) as $all | .hyp[] | "\(.reason) \(.share * $all)"' "$tmp/h.json"
}
for reason in hvc guest_exit; do
	of() { sed -n "s/^hyptrace_hyp_time_ratio$1{reason=\"$reason\"} //p" "$out/h.prom"; }
	read -r before after <<<"$(for file in h1 h2; do shares $file.dat | sed -n "s/^$reason //p"; done | xargs)"
	# the load is not the same all the time: the recordings' own difference is allowed for
	awk -v mean="$(of '')" -v error="$(of _error)" -v a="$before" -v b="$after" 'BEGIN {
		low = (a < b ? a : b) * 0.8; high = (a > b ? a : b) * 1.2
		exit !(error > 0 && error < mean && mean + 3 * error > low && mean - 3 * error < high) }'
	ok $? "$reason: the share of the windows is the recordings' within three standard errors: $(of '') +- $(of _error), $before and $after"
done
is "$(sed -n 's/^hyptrace_hyp_missed_windows_total //p' "$out/h.prom")" 0 "no window was missed"

# ---- cost: measured on demand, for Documentation/overhead.md, HYPTRACE_WATCH_COST=1 ----
# The CPU of its looks; tests/lab/watch-cost has what it costs a guest.
guest 'kill $(cat /tmp/busy)'
if [ -n "${HYPTRACE_WATCH_COST-}" ]; then
run 'hyptrace watch --interval 10s --json -q >/tmp/cost.json & watch=$!
	within 150 sh -c "[ \$(grep -c cpu_ns /tmp/cost.json) -ge 7 ]"
	kill $watch; wait $watch
	cp /tmp/cost.json /mnt/out'
recorded "seven looks of a watch"
looks=$(jq -s 'map(.watch.cpu_ns) | "\(length) \((last - first) / (length - 1) / 1e6)"' -r "$out/cost.json")
diag "looks, and ms of the emulated machine's CPU for each, of 10 s: $looks"

# ---- the cost of a flight recorder that waits: 10 s of its CPU time, by how it keeps them ----
run 'cpu() { awk "{ print (\$14 + \$15) * 10 }" /proc/$1/stat; }
	for how in "--flight 10 --ring" "--flight 10" ""; do
		hyptrace record -o /tmp/c.dat -e kvm -e sched -B hyp -b 8192 $how 2>/dev/null & pid=$!
		within 100 grep -q 1 $t/tracing_on; within 100 grep -q 1 $hyp/tracing_on; sleep 2
		from=$(cpu $pid); sleep 10; to=$(cpu $pid)
		kill -INT $pid; wait $pid; rm -f /tmp/c*.dat
		echo "$((to - from)) ${how:-a recording}"
	done'
recorded "recorders for 10 s each"
diag "ms of CPU in 10 s: $(tr '\n' ',' <<<"$output")"
cost() { sed -n "s/^\([0-9]*\) $1\$/\1/p" <<<"$output"; }
[ "$(($(cost '--flight 10 --ring') * 2))" -lt "$(cost '--flight 10')" ]
ok $? "a ring takes less than half of the CPU of a recorder that drains" || diag "$stderr"
fi

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
