#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Regions on a FAKE of Android's tracefs (fake-android.c), where this test switches tracing_on as the kernel's
# triggers would: what follows them, and what is left. Real triggers: tests/lab/t/16-region.t.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tree=$tmp/tracefs
dat=$tmp/trace.dat
export HYPTRACE_TRACING_DIR=$tree
bare_machine

start() {
	rm -rf "$tree" "$dat"*
	pages_once "$tree"
	"$build/tests/integration/fake-android" "$tree" android16
	"$hyptrace" record -o "$dat" "$@" 2>"$tmp/err" &
	pid=$!
}

# reads FILE TEXT: its first line is that
reads() {
	[ "$(head -n 1 "$tree/$1")" = "$2" ]
}

# region ON: what the kernel does by a trigger
region() {
	echo "$1" >"$tree/tracing_on"
	wait_for reads hypervisor/tracing_on "$1"
	ok $? "tracing_on $1: the hypervisor's follows"
}

armed() {
	grep -q traceon "$tree/events/sched/sched_switch/trigger"
}

regions=(--start-on 'sched:sched_switch/prev_pid == 1' --stop-on kvm:kvm_exit)

start -B hyp "${regions[@]}"
wait_for armed
is "$(cat "$tree/events/sched/sched_switch/trigger")" "traceon if prev_pid == 1" "the trigger that starts"
like "$(cat "$tree/events/kvm/kvm_exit/trigger")" '^traceoff$' "the trigger that stops"
reads tracing_on 0 && reads hypervisor/tracing_on 0
ok $? "nothing is on before a region"
region 1
region 0
region 1
region 0
kill -INT $pid
wait $pid
is "$?" 0 "exit status" || diag "$(cat "$tmp/err")"
like "$(cat "$tmp/err")" '^hyptrace: hyp: switched on in 2 regions, at most [0-9.]+ ms after their begin, and off at most [0-9.]+ ms after their end$' \
	"how late it was"
reads tracing_on 1 && reads hypervisor/tracing_on 0
ok $? "both are as before"

# In the middle of a region, which is not to go on while the rest is read.
start -e sched -B hyp "${regions[@]}"
wait_for armed
region 1
kill -KILL $pid
wait $pid 2>/dev/null
echo 0 >"$tree/events/sched/sched_switch/trigger"
"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
is "$?" 0 "kill -9: recover's exit status" || diag "$(cat "$tmp/err")"
like "$(cat "$tree/events/sched/sched_switch/trigger")" '!traceon' "kill -9: the trigger that starts is removed"
reads tracing_on 1 && reads hypervisor/tracing_on 0
ok $? "kill -9: both are as before"

# Text, whose times may need a repair: bounds of the whole recording, kept once each.
bounds() {
	cut -f 1 "$dat.spool/session" | grep '^hyp_' | xargs
}
rm -rf "$tree" "$dat"*
"$build/tests/integration/fake-android" "$tree" android16
for cpu in "$tree"/hypervisor/per_cpu/*; do
	rm -f "$cpu"/trace_pipe*
	mkfifo "$cpu/trace_pipe"
	exec {fd}<>"$cpu/trace_pipe"
done
"$hyptrace" record -o "$dat" -B hyp "${regions[@]}" 2>"$tmp/err" &
pid=$!
wait_for armed
for i in 1 2 3; do
	region 1
	region 0
done
is "$(bounds)" "hyp_from" "text: regions do not end the recording"
mkdir "$dat" # the file is not made, the spool stays
kill -INT $pid
wait $pid
is "$(bounds)" "hyp_from hyp_to" "text: its end does"
rmdir "$dat"
"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
is "$?" 0 "text: recover's exit status" || diag "$(cat "$tmp/err")"

start -e sched --stop-on kvm:kvm_exit
wait_for grep -q traceoff "$tree/events/kvm/kvm_exit/trigger"
wait_for reads tracing_on 1
echo 0 >"$tree/tracing_on"
wait $pid
is "$?" 0 "--stop-on alone, and no command: it ends by itself" || diag "$(cat "$tmp/err")"

start -e sched --start-on sched:nosuch
wait $pid
is "$? $(cat "$tmp/err")" "1 hyptrace: --start-on: no event sched/nosuch with triggers in this kernel (see trace-cmd list -e)" \
	"an event that is not there"
reads tracing_on 1
ok $? "... and nothing is changed"

# ---- what lies between regions: a real recording of three, with two pauses of 6.2 s and 4.8 s ----------------

regions=tests/data/regions.dat
exec=sched:sched_process_exec
is "$("$hyptrace" latency --csv --key none --from $exec --to $exec "$regions" 2>/dev/null | grep ^events,host)" \
	events,host,21,21,18,0,2,1,1,0 "latency: of 20 pairs the two across a pause are not known"
like "$("$hyptrace" latency --key none --from $exec --to $exec "$regions" 2>/dev/null)" '^2 pairs are left out: tracing was off in between' \
	"... which is said"
like "$("$hyptrace" stat --show hyp "$regions" 2>/dev/null)" 'hyp: 5826 visits, 872\.6ms in total' \
	"stat: no stay in the hypervisor lasts a pause (7 would: 5.8 s in all)"
is "$("$hyptrace" stat --csv --show buffers "$regions" 2>/dev/null | cut -d , -f 7 | sed 1d | sort -u)" 0 \
	"stat: no event counts as lost"
"$hyptrace" sql "$regions" "SELECT 1;" 2>&1 | grep -q 'built without' ||
	is "$("$hyptrace" sql -q --csv "$regions" 'SELECT count(*), max(dur) < 40000000 FROM hyp_calls WHERE dur >= 0' |
	grep ^rows,5)" "rows,5826,1" "sql: likewise"
is "$("$hyptrace" report "$regions" 2>/dev/null | md5sum)" "$(TRACEEVENT_PLUGIN_DIR=$build/plugins trace-cmd report "$regions" 2>/dev/null | md5sum)" \
	"stock reads it"

done_testing
