#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace-agent in guests, and stock `trace-cmd record -A` on a protected-mode
# host, over vsock: recordings, what is put back, time synchronisation, and what
# a guest did before anybody asked.
export minutes=5
. "$(dirname "$0")/lib.sh"

# ---- guests that start the agent before everything else -------------------------

# The agent is the first thing that the guest's init starts; with events of its
# own unless the kernel's command line has some.
overlay=$tmp/overlay
mkdir -p "$overlay"
cp tests/lab/l2/init "$overlay/init.lab"
cat >"$overlay/init" <<'END'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tracefs tracefs /sys/kernel/tracing
early='--early sched:sched_process_exec'
busybox grep -q trace_event= /proc/cmdline && early=
hyptrace-agent -D -v --timeout 120 $early
exec /init.lab
END
chmod +x "$overlay/init"
export HYPTRACE_LAB_L2_OVERLAY=$overlay
vm_up -m protected -g 1 -a true

agent_log() { guest 'dmesg | grep hyptrace-agent:'; }
agent_log2() { l1 "/mnt/tests/lab/l1/guest exec 2 60 'dmesg | grep hyptrace-agent:'"; }

# same_bytes LOG: of the recording just made
same_bytes() {
	local received sent lost

	received=$(sed -nE 's/^ +([0-9]+) bytes in size$/\1/p' <<<"$output"$'\n'"$stderr" | awk '{ sum += $1 } END { print sum + 0 }')
	read -r sent lost < <("$1" | sed -nE 's/.*sent ([0-9]+) bytes by splice, ([0-9]+) events lost.*/\1 \2/p' | tail -n 1)
	[ "${sent:-0}" -gt 0 ] && [ "$received" = "$sent" ]
	ok $? "bytes received are bytes sent, all by splice ($sent, $lost events lost)"
	[ "$received" = "$sent" ] || diag "the recorder said:"$'\n'"$output$stderr"$'\n'"the agent said:"$'\n'"$("$1" | tail -n 20)"
}

# stock NAME OPTIONS: a recording by trace-cmd, files in $out/NAME*. When it fails: how long it took, what
# it left and what the agents say; recorded() tells what the recorder said.
#
# Stock's recorder waits 5 s for an answer, and says "reading client -110": a guest that is
# emulated on a busy machine may take longer, and is asked again.
stock() {
	local name=$1

	shift
	for _ in 1 2 3; do
		stock_once "$name" "$@"
		[[ $status != 0 && $output$stderr = *'reading client -110'* ]] || break
	done
	[ "$status" = 0 ] || diag "agents:"$'\n'"$(agent_log | tail -n 10)"$'\n'"$(agent_log2 2>/dev/null | tail -n 10)"
}

stock_once() {
	local name=$1

	shift
	run "cd /tmp && rm -f $name* && timeout 250 trace-cmd record -o $name.dat $* &&
		cp $name*.dat /mnt/out/
		s=\$?
		[ \$s = 0 ] || echo \"after \$SECONDS s: \$(ls -l $name* | sed 's/^[^ ]* *[^ ]* //')\" >&2
		exit \$s"
}

# Stock's ptp takes seconds for each CPU, more where each of its messages makes events: only those recordings have it
# that are about it.
unsynced='--tsync-interval -1'

# The guest's tracefs, as far as a recording could change it.
guest_state() {
	guest 'cd /sys/kernel/tracing; for f in tracing_on current_tracer trace_clock buffer_size_kb \
		set_event set_event_pid tracing_cpumask trace_options events/enable; do
		echo "$f: $(cat $f)"; done; ls instances'
}

# ---- --early ----------------------------------------------------------------------

guest_state >"$tmp/early.state"
grep -q 'set_event: sched:sched_process_exec' "$tmp/early.state"
ok $? "--early: the event is on before any recorder has come"
stock early $unsynced -C boot -A Guest@3:823 $unsynced -e irq -- sleep 1
recorded "stock trace-cmd record takes over what --early recorded"
report -i "$out/early-Guest.dat" >"$tmp/early.txt"
grep -q 'sched_process_exec: *filename=/init.lab' "$tmp/early.txt"
ok $? "the trace begins before the guest's init proper" || diag "$(head "$tmp/early.txt")"
grep -q ' irq_handler_entry: ' "$tmp/early.txt"
ok $? "... and has the events of the request too"
is "$(guest_state | grep -E '^(set_event|tracing_on|trace_clock):')" "tracing_on: 1
trace_clock: [local] global counter uptime perf mono mono_raw boot tai
set_event: " "--early is put back after it"

# ---- a recording of host and guest ---------------------------------------------------

guest_state >"$tmp/before"
stock both -C boot -e kvm -e sched -A Guest@3:823 -e sched -e irq -- sleep 2
recorded "stock trace-cmd record -A with hyptrace-agent"
grep -q 'Negotiated ptp' <<<"$output$stderr"
ok $? "time synchronisation: ptp"
guest_state >"$tmp/after"
is "$(cat "$tmp/after")" "$(cat "$tmp/before")" "the guest's tracefs is as it was"

same_bytes agent_log

report -i "$out/both.dat" -i "$out/both-Guest.dat" >"$tmp/both.txt"
for pattern in 'both.dat:.* kvm_entry: ' 'both-Guest.dat:.* sched_switch: ' 'both-Guest.dat:.* irq_handler_entry: '; do
	n=$(grep -c "$pattern" "$tmp/both.txt")
	at_least "$n" 20 "report -i -i merges: $n lines $pattern"
done
trace-cmd dump --options -i "$out/both-Guest.dat" >"$tmp/options" 2>&1
grep -q 'Option TimeShift' "$tmp/options" && grep -q "2 \[samples count for CPU 1\]" "$tmp/options"
ok $? "TIME_SHIFT has two samples for each CPU" || diag "$(cat "$tmp/options")"
grep -q hyptrace-agent "$tmp/options"
ok $? "VERSION names the agent"

kb=$(guest 'grep VmHWM /proc/$(pidof hyptrace-agent)/status' | tr -dc 0-9)
[ "${kb:-99999}" -le 4096 ]
ok $? "$kb KiB resident at most"

# ---- a clock that programs cannot read --------------------------------------------------

stock local -C local -e sched -A Guest@3:823 -e sched -- sleep 1
recorded "clock local: times come from trace_marker_raw"
trace-cmd dump --options -i "$out/local-Guest.dat" 2>&1 | grep -q 'Option TimeShift'
ok $? "... and make a TIME_SHIFT"
is "$(guest_state)" "$(cat "$tmp/before")" "... and the guest's tracefs is as it was"

# ---- without, and refusals -----------------------------------------------------------------

stock nosync $unsynced -C boot -A Guest@3:823 $unsynced -e sched -- sleep 1
recorded "without time synchronisation"
run 'timeout 60 trace-cmd record -o no.dat -C boot -A Guest@3:823 -e nonsense -- true'
[ "$status" != 0 ] && [ "$status" -lt 124 ]
ok $? "a refusal ends stock's recorder without a crash (status $status)" || diag "$output$stderr"
guest "$(symbols 'grep sched /proc/kallsyms')"
stock functions $unsynced -C boot -A Guest@3:823 $unsynced -p function -l '*sched*' -b 2000 -- sleep 1
recorded "the function tracer"
report -i "$out/functions-Guest.dat" | grep -q 'function: .*sched'
ok $? "... names its functions by kallsyms"
stock instance $unsynced -C boot -A Guest@3:823 $unsynced -B mine -e sched -- sleep 1
recorded "a buffer of the guest's own (-B)"
is "$(guest_state)" "$(cat "$tmp/before")" "the guest's tracefs is as it was"

# ---- the kernel's boot trace -----------------------------------------------------------------

run 'sed -e "s/panic=-1/panic=-1 trace_event=sched:sched_process_exec trace_clock=boot/" \
	-e "s/seq \"\$2\"/seq 2 2/" -e "s#^here=.*#here=/mnt/tests/lab/l1#" \
	/mnt/tests/lab/l1/guest >/tmp/guest2 && bash /tmp/guest2 start 2 4'
recorded "a second guest, with trace_event= on its command line"
l1 "/mnt/tests/lab/l1/guest exec 2 60 '$(symbols 'echo ffff800080000000 T _text')'"
stock boot $unsynced -C boot -A Guest2@4:823 $unsynced -e irq -- sleep 1
recorded "its boot trace is recorded"
report -i "$out/boot-Guest2.dat" >"$tmp/boot.txt"
grep -q 'sched_process_exec: *filename=/init ' "$tmp/boot.txt"
ok $? "it begins before its init's first command" || diag "$(head "$tmp/boot.txt")"

# ---- everything, on four CPUs ----------------------------------------------------------------

stock load $unsynced -C boot -A Guest2@4:823 $unsynced -e all -b 2048 -- sleep 2
recorded "all events of four CPUs"
same_bytes agent_log2
kb=$(l1 "/mnt/tests/lab/l1/guest exec 2 60 'grep VmHWM /proc/\$(pidof hyptrace-agent)/status'" | tr -dc 0-9)
[ "${kb:-99999}" -le 4096 ]
ok $? "$kb KiB resident at most"

# ---- kill -9 -----------------------------------------------------------------------------

run '(timeout 60 trace-cmd record -o killed.dat --tsync-interval -1 -C boot -A Guest@3:823 --tsync-interval -1 \
	-e sched -- sleep 20 >/dev/null 2>&1 &)'
guest 'n=0; until grep -q sched_switch /sys/kernel/tracing/set_event || [ $n = 300 ]; do sleep 0.1; n=$((n + 1)); done
	kill -9 $(pidof hyptrace-agent)'
[ "$(guest_state)" != "$(cat "$tmp/before")" ]
ok $? "kill -9 in mid-capture leaves tracefs as it was set up"
guest 'hyptrace-agent -D'
is "$(guest_state)" "$(cat "$tmp/before")" "... and the agent's next start puts it back"

done_testing
