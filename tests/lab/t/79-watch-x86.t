#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace watch on an x86-64 host with Debian 12's stock kernel, whose KVM is AMD's: names of reasons, who stole.
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"

ldd "$build/hyptrace" | grep -q libtracefs || skip_all "built without libtracefs"
copy_hyptrace "$tmp/out/own"
x86 run -o "$tmp/out" -- '
	state() { (cd /sys/kernel/tracing && cat dynamic_events events/sched/*/trigger events/kvm/*/trigger && ls instances); }
	cp -r own /tmp/own; cp /bin/bash /tmp/hog; cd /tmp
	watch="own/ld.so --library-path own own/hyptrace watch"
	state >before
	/tmp/hog -c "while :; do :; done" & hog=$!
	$watch --once --interval 5s --json --metrics w.prom >watch.json || exit
	$watch --interval 100ms >/dev/null & pid=$!
	sleep 4; kill -KILL $pid; wait $pid
	$watch --restore || exit
	kill $hog; cp w.prom watch.json /mnt/out
	state | diff before -' >"$tmp/log" 2>&1
ok $? "a watch, and one that is killed: tracefs is as before" || diag "$(tail -n 20 "$tmp/log")"
like "$(jq -r '.exits[].reason' "$tmp/out/watch.json")" '^(hlt|interrupt|msr|npf|io|vintr)$' "reasons have SVM's names" ||
	diag "$(cat "$tmp/out/watch.json")"
at_least() {
	[ "${1:-0}" -ge "$2" ]
	ok $? "$3" || diag "got '$1'"
}
at_least "$(jq '[.stolen[] | select(.by == "hog").total_ns] | add' "$tmp/out/watch.json")" 200000000 "the hog stole from the vCPU"
if command -v promtool >/dev/null; then
	is "$(grep -c "^hyptrace_vcpu" "$tmp/out/w.prom" | grep -v "^0") $(promtool check metrics <"$tmp/out/w.prom" 2>&1)" \
		"$(grep -c "^hyptrace_vcpu" "$tmp/out/w.prom") " "promtool finds nothing in its metrics"
else
	skip 1 "no promtool (Debian: prometheus)"
fi
done_testing
