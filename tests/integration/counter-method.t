#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recorder and agent tie their clocks by the machine's counter. Here both run on
# one machine, so that CNTVOFF is 0, as in a protected VM, both clocks are the same
# and the true offset is 0. Their tracefs are FAKES (fake-android.c).
. tests/integration/lib.sh

hyptrace=$build/hyptrace
dat=$tmp/trace.dat
command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"
case $(uname -m) in
x86_64 | aarch64) ;;
*) skip_all "no counter that hyptrace reads on $(uname -m)" ;;
esac

for side in host guest; do
	pages_once "$tmp/$side"
	"$build/tests/integration/fake-android" "$tmp/$side" android16
done
: >"$tmp/agent.log"
HYPTRACE_TRACING_DIR=$tmp/guest "$build/hyptrace-agent" --listen "unix:$tmp/sock" --journal none 2>"$tmp/agent.log" &
agent=$!
wait_for grep -q listening "$tmp/agent.log"

command=(sleep 1)

# record OPTION...: sets status; messages are in $tmp/err
record() {
	rm -f "$tmp"/trace*.dat
	HYPTRACE_TRACING_DIR=$tmp/host timeout 200 "$hyptrace" record --guest-timeout 60 -o "$dat" "$@" \
		-e sched -A "vm@unix:$tmp/sock" -e sched -- "${command[@]}" 2>"$tmp/err"
	status=$?
	# OFFSET TIME lines, knots after knots for each CPU; the last one's offsets are the bounds
	trace-cmd dump --options -i "$tmp/trace-vm.dat" 2>"$tmp/dump.err" |
		sed -n '/TimeShift/,/Option/p' >"$tmp/shift"
	knots=$(sed -nE 's/^([0-9]+) \[samples count for CPU 0\]/\1/p' "$tmp/shift")
	sed -nE 's/^\t(-?[0-9]+) [0-9]+ 0 ([0-9]+)\[.*/\1 \2/p' "$tmp/shift" >"$tmp/knots"
}

# "outside N widest N": knots whose offset is more than their bound away from 0
judge() {
	head -n "$knots" "$tmp/knots" | paste -d ' ' - <(tail -n "$knots" "$tmp/knots") |
		awk '{ e = $1 < 0 ? -$1 : $1; n += e > $3; w = $3 > w ? $3 : w } END { print "outside", n + 0, "widest", w + 0 }'
}

record
is "$status" 0 "recording ends well" || diag "$(cat "$tmp/err" "$tmp/agent.log")"
like "$(cat "$tmp/err")" 'guest vm: clock offset known to \+- [0-9.]+ us \(hard, counter; 0 of 0 events outside\)' "by the counter method"
like "$(judge)" '^outside 0 widest [1-9][0-9]*$' "the true offset, 0, is within each bound"
bare_machine
[ "${knots:-0}" -ge 4 ]
ok $? "looks at the clocks a few times a second ($knots knots)"
is "$(cat "$tmp/dump.err")" "" "trace-cmd dump reads TIME_SHIFT with its bounds"
is "$(awk '/samples count/ { print $1 }' "$tmp/shift" | sort -u)" "$knots" "as many knots for every CPU, which stock wants"
is "$(trace-cmd report -i "$dat" -i "$tmp/trace-vm.dat" 2>&1 >"$tmp/report")" "" "trace-cmd report takes both files"
like "$(cat "$tmp/report")" 'trace-vm.dat: .*sched_' "... and shows the guest's events"

HYPTRACE_TRACING_DIR=$tmp/host timeout 200 "$hyptrace" record --guest-timeout 60 -q -o "$tmp/other.dat" \
	-C boot -e sched -A "vm@unix:$tmp/sock" -e sched -C mono -- true
is "$(trace-cmd dump --options -i "$tmp/other-vm.dat" | sed -nE 's/^"(.*)" \[clock\]$/\1/p')" mono \
	"-C after -A: the guest's file names the guest's clock, not the host's"

# what top shows meanwhile: by the same method. Answers alone would have a bound that grows by 500 us a second
command=(sh -c 'for i in $(seq 600); do [ ! -s "$0" ] || [ "$i" -lt 38 ] || break; sleep 0.1; done; cat "$0"' "$dat.spool/texts/clocks")
now=$(record --tsync-interval 1000)
read -r name offset bound <<<"$now"
is "$name" vm "while it is recorded the clock is known: $now"
[ "${bound:-0}" -gt 0 ] && [ "$bound" -lt 100000 ] && [ "${offset#-}" -le "$bound" ]
ok $? "... by the counter method, not by the age of an answer"
command=(sleep 1)

record --tsync-interval 0
is "$knots" 4 "--tsync-interval 0: at the start and the end alone, and as far as the host's go"
like "$(judge)" '^outside 0 widest [1-9][0-9]*$' "... 0 is within their bounds"

record --tsync ping
like "$(cat "$tmp/err")" '\(ping, ping; ' "--tsync ping"
like "$(judge)" '^outside 0 widest [1-9][0-9]*$' "... 0 is within the bounds"

record --tsync none
is "$status" 0 "--tsync none: exit status"
unlike "$(cat "$tmp/err" "$tmp/shift")" 'offset|clock could not|TimeShift' "... no offsets, and no word about them"

record --tsync hyp
is "$status" 0 "--tsync hyp without the hypervisor: exit status"
like "$(cat "$tmp/err")" 'warning: guest vm: its clock could not be tied to the host.s: the hypervisor was not recorded' "... a warning says why"
is "$(cat "$tmp/shift")" "" "... no TIME_SHIFT"

# the recorder's threads that ask for clocks are hidden from the trace, as all of its are;
# those that have ended may be seen for a moment
# shellcheck disable=SC2016 # the command's own $
command=(sh -c 'for try in $(seq 100); do
		shown=$(ls "/proc/$PPID/task" | grep -vxFf "$0") || break
		sleep 0.1
	done
	[ ! -s "$0" ] || echo "shown: $shown"' "$tmp/host/set_event_notrace_pid")
is "$(record)" "shown: " "set_event_notrace_pid has every thread of the recorder"

kill "$agent"
wait "$agent"
done_testing
