#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the kernel gave is what is in the file, and what it could not give is told.
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# ---- event for event ---------------------------------------------------------------
#
# `trace` shows a buffer without consuming it. So: a recorder is killed, events
# gather, tracing is switched off, the text is kept, and `recover` then drains
# the same buffers. The file's last records must be those of the text.
#
# The hypervisor's buffer is cleared once after the kill: the kernel's walk
# through a buffer of which whole pages have been consumed already shows them
# again.

run '
	begin eq.dat -B hyp -b 4096 -B eq -b 4096 -e sched -e kvm || exit
	slay
	echo 0 >$hyp/tracing_on
	echo 0 >$hyp/trace
	echo 1 >$hyp/tracing_on
	within 30 lines $t/instances/eq/per_cpu/cpu0/trace 500
	within 30 lines $hyp/trace 2000
	echo 0 >$hyp/tracing_on
	echo 0 >$t/instances/eq/tracing_on
	for dir in $hyp/per_cpu/cpu*; do
		cpu=${dir##*cpu}
		cat $dir/trace >/mnt/out/hyp.$cpu
		cat $t/instances/eq/per_cpu/cpu$cpu/trace >/mnt/out/eq.$cpu
	done
	hyptrace recover eq.dat.spool && cp eq.dat /mnt/out'
recorded "a recorder killed, its buffers drained by recover"

datdump -c -p "$out/eq.dat" >"$tmp/eq.dump"

# kernel_text: "CPU TIME PID EVENT: FIELDS" out of the kernel's text; pid "-" for the hypervisor
hyp_kernel_text() {
	sed -nE 's/^\[0*([0-9]+)\]\t *([0-9]+\.[0-9]{6}): ([a-z_]+) (.*)/\1 \2 - \3: \4/p' "$@"
}
eq_kernel_text() {
	sed -nE 's/^ *.*-([0-9]+) +\[0*([0-9]+)\] [^ ]+ +([0-9]+\.[0-9]{6}): ([a-z_0-9]+): (.*)/\2 \3 \1 \4: \5/p' "$@"
}

# file_text BUFFER CPU: the same out of the file; the text of the hypervisor is
# cut to microseconds, that of the host rounded
file_text() {
	awk -v buffer="$1" -v cpu="$2" '$1 == buffer && $2 == cpu && match($0, /^[^ ]+ [0-9]+ [0-9]+ [0-9]+ /) {
		us = int(($4 + (buffer == "hyp" ? 0 : 500)) / 1000)
		printf "%d %d.%06d %s %s\n", cpu, int(us / 1000000), us % 1000000,
			buffer == "hyp" ? "-" : $3, substr($0, RLENGTH + 1) }' "$tmp/eq.dump"
}

# Two print formats which libtraceevent cannot follow (%c; `?:` without its
# middle): their events are compared by time, pid and name.
#
# A zero printed by %#08x is 0x000000 with the kernel and 00000000 with C.
without_odd_text() {
	sed -E 's/ (kvm_wfx_arm64|kvm_sys_access): .*/ \1/; s/\b0x(0+)\b/00\1/g'
}

for buffer in hyp eq; do
	total=0
	: >"$tmp/want" >"$tmp/got"
	for cpu in $(ls "$out" | sed -n "s/^$buffer\.\([0-9]*\)$/\1/p"); do
		"${buffer}_kernel_text" "$out/$buffer.$cpu" | without_odd_text >"$tmp/cpu"
		n=$(wc -l <"$tmp/cpu")
		is "$n" "$(grep -vc '^#' "$out/$buffer.$cpu")" "$buffer, cpu $cpu: each line of the kernel's text is understood" ||
			diag "$(head -n 20 "$out/$buffer.$cpu")"
		cat "$tmp/cpu" >>"$tmp/want"
		file_text "$buffer" "$cpu" | without_odd_text | tail -n "$n" >>"$tmp/got"
		total=$((total + n))
	done
	at_least "$total" 1000 "$buffer: $total events to compare"
	same "$tmp/got" "$tmp/want" "$buffer: the file's records are the kernel's, event for event"
done

# ---- a busy guest -----------------------------------------------------------------

guest 'setsid sh -c "while :; do ls -R /proc/sys; date; done" >/dev/ttyAMA0 2>&1 </dev/null & echo $! >/tmp/busy'
ok $? "a guest that is busy and writes to its console"

run 'hyptrace record -B hyp -o busy.dat -- sleep 10 && cp busy.dat /mnt/out'
recorded "ten seconds of it, with the default buffer"
diag "$(tail -n 1 <<<"$stderr")"
at_least "$(summary_of hyp events)" 20000 "more than 20000 events of the hypervisor ($(summary_of hyp events))"
is "$(summary_of hyp lost)" 0 "none was lost"
unlike "$stderr" "LOST|not understood" "and no line was not understood"
datdump "$out/busy.dat" >"$tmp/busy.dump"
is "$(grep -c . "$tmp/busy.dump")" "$(summary_of hyp events)" "all are in the file"
is "$(grep -c 'lost\]$' "$tmp/busy.dump")" 0 "where none is marked as lost"

# ---- a loss ------------------------------------------------------------------------

run 'hyptrace record -B hyp -b 8 -o lost.dat -- sleep 3 && cp lost.dat /mnt/out'
recorded "a busy guest and a buffer of 8 KiB"
lost=$(summary_of hyp lost)
at_least "$lost" 100 "events were lost ($lost)"
like "$stderr" "^hyptrace: hyp: $lost events LOST; a larger buffer would help: -B hyp -b 32 \(KiB per CPU; it was 8\)$" \
	"which is said, and what would help"
datdump "$out/lost.dat" >"$tmp/lost.dump"
is "$(sed -nE 's/.* \[([0-9]+) events lost\]$/\1/p' "$tmp/lost.dump" | awk '{ n += $1 } END { print n + 0 }')" "$lost" \
	"the file marks the places: in all as many"
is "$(report --stat "$out/lost.dat" | awk '/^overrun:/ { n += $2 } END { print n + 0 }')" "$lost" \
	"and its statistics say as many"
is "$(grep -vc 'lost\]$' "$tmp/lost.dump")" "$(summary_of hyp events)" "what was not lost is in the file"

guest 'kill -9 -$(cat /tmp/busy)'
done_testing
