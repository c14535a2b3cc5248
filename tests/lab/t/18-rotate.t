#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Long recordings of a protected-mode host with a guest: files one after the other without a seam, a flight
# recorder that an event and a signal ask, and what a kill leaves. Writers of numbered marks run on the host
# and in the guest; the hypervisor's entries and exits take turns by themselves.
# shellcheck disable=SC2016 # L1 and awk have their own $
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# marks: on the host, until it is killed ($marks)
marks='marks() {
	( exec 3>$t/trace_marker; i=0
	  while :; do echo "seq $i" >&3 2>/dev/null; i=$((i + 1)); [ $((i % 20)) != 0 ] || sleep 0.01; done ) & marks=$!
}
# the oldest pages of the flight recorder are thrown away: the range of a CPU begins later than at 0
trimmed() { od -v -A n -t u8 -j 16 -w16 -N 128 /dev/shm/hyptrace-f.dat.spool/range | awk "\$1 { found = 1 } END { exit !found }"; }
# the recorder has said so: a kill before that has it written once more, under the same number
written() { grep -q "$1: " said || gone "$pid"; }
size() { echo "$(ls /proc/$pid/fd | wc -l) $(sed -n "s/^VmRSS:[\t ]*\([0-9]*\) kB/\1/p" /proc/$pid/status)"; }'
guest 'cd /sys/kernel/tracing; (i=0; while :; do echo "seq $i" >trace_marker; i=$((i + 1)); done) >/dev/null 2>&1 &
	echo $! >/tmp/marks'

# each_once WHAT: the numbers in $tmp/marks are all that there are between the first and the last, once each
each_once() {
	at_least "$(wc -l <"$tmp/marks")" 50 "$1: $(wc -l <"$tmp/marks") marks"
	is "$(awk 'NR > 1 && $1 != last + 1 { print last " is followed by " $1 } { last = $1 }' "$tmp/marks" | head -5)" \
		"" "$1: each is there, once"
}

# to_marks: of a report, in the order of numbers
to_marks() {
	sed -nE 's/.* seq ([0-9]+)$/\1/p' | sort -n >"$tmp/marks"
}

# once WHAT FILE...: the marks in all of these files
once() {
	local file

	for file in "${@:2}"; do hyptrace_report "$file"; done | to_marks
	each_once "$1, $(($# - 1)) files"
}

# dumped WHAT FILE [END]: the marks of a dump since all of its CPUs have begun, and, without END, while none has ended.
# A dump has whole pages of each CPU: the oldest one began at another time than others' did, and of guests' CPUs, or of
# those that are flushed one after the other, the newest one ends at another time.
dumped() {
	hyptrace_report "$2" >"$tmp/report"
	to_marks <"$tmp/report"
	is "$(uniq -d "$tmp/marks" | head -5)" "" "$1: no mark is there twice"
	awk -v end="${3-}" '
		/^hyp:/ { next }
		match($0, /\[[0-9]+\] +[0-9]+\.[0-9]+: /) {
			cpu = substr($0, RSTART + 1, 3)
			if (!(cpu in last)) from = NR
			last[cpu] = NR
		}
		{ line[NR] = $0 }
		END {
			to = NR
			for (cpu in last) if (end == "" && last[cpu] < to) to = last[cpu]
			while (from <= to) print line[from++]
		}' "$tmp/report" | to_marks
	each_once "$1"
}

hyptrace_report() {
	"$build/hyptrace" report --no-guests -i "$out/$1" 2>"$tmp/hyptrace.err"
	[ ! -s "$tmp/hyptrace.err" ] || diag "$1: $(<"$tmp/hyptrace.err")"
}

# turns FILE...: on each CPU hyp_enter and hyp_exit take turns
turns() {
	local file

	for file; do hyptrace_report "$file"; done | awk '
		match($0, /hyp_(enter|exit):/) {
			kind = substr($0, RSTART, RLENGTH)
			match($0, /\[[0-9]+\]/)
			cpu = substr($0, RSTART, RLENGTH)
			if (last[cpu] == kind) wrong++
			last[cpu] = kind
			n++
		}
		END { print n + 0, wrong + 0 }'
}

# ---- one file after the other --------------------------------------------------------------

run "$marks"'
	marks
	hyptrace record --guest-timeout 60 -o r.dat --rotate 2s -e kvm -e sched -B hyp -b 8192 -A g1@3 -e sched 2>said &
	pid=$!
	within 100 written r.002.dat; first=$(size)
	within 100 written r.003.dat; last=$(size)
	kill -INT $pid; wait $pid; echo "status $?"
	kill $marks
	echo "size $first, $last"
	cp r*.dat /mnt/out; ls r*; cat said >&2'
recorded "--rotate 2s with the hypervisor and a guest"
like "$output" '^status 0$' "... ends well"
diag "$(grep '^size' <<<"$output")"$'\n'"$stderr"
mapfile -t hosts < <(cd "$out" && ls r.???.dat)
mapfile -t guests < <(cd "$out" && ls r-g1.???.dat)
at_least "${#hosts[@]}" 4 "... files of the host: ${hosts[*]}"
is "${#guests[@]}" "${#hosts[@]}" "... and as many of the guest"
is "$(grep -Ec 'r\.[0-9]+\.dat: .* 0 events lost' <<<"$stderr")" "$((${#hosts[@]} - 1))" "... nothing was lost"
once "the host's marks" "${hosts[@]}"
once "the guest's marks" "${guests[@]}"
read -r n wrong <<<"$(turns "${hosts[@]}")"
at_least "$n" 1000 "the hypervisor: $n entries and exits"
is "$wrong" 0 "... take turns over all files"
for file in "${hosts[1]}" "${guests[1]}"; do
	report -i "$out/$file" >"$tmp/report"
	at_least "$(grep -c ': sched_switch: ' "$tmp/report")" 10 "$file: stock report reads it"
done
is "$(grep -c 'guest g1: clock offset known to .* (hard, ' <<<"$stderr")" "${#guests[@]}" "each file of the guest has its clock's offset, by the counters"
diag "bounds, us: $(sed -nE 's/.*known to \+- ([0-9.]+) us.*/\1/p' <<<"$stderr" | xargs)"

# the newest of host and guest
run "$marks"'
	hyptrace record --guest-timeout 60 -o k.dat --rotate 1s --keep 2 -e kvm -A g1@3 -e sched 2>said &
	pid=$!
	within 100 written k.003.dat
	kill -INT $pid; wait $pid; echo "status $?"
	ls k*; cat said >&2'
recorded "--keep 2, with a guest"
is "$(grep -c '^k\.[0-9]*\.dat$' <<<"$output") $(grep -c '^k-g1\.[0-9]*\.dat$' <<<"$output") $(grep -c '^k-\?[g1]*\.00[12]\.dat$' <<<"$output")" \
	"2 2 0" "... leaves two files of each, the newest" || diag "$output"$'\n'"$stderr"

# ---- a flight recorder -------------------------------------------------------------------------

# what the kernel keeps from a first recording on is there by now
run "$marks"'
	state >before; marks
	hyptrace record --guest-timeout 60 -o f.dat --flight 2 --dump-on "sched:sched_process_exec/filename ~ \"*uname*\"" \
		-e kvm -e sched -B hyp -b 8192 -A g1@3 -e sched 2>said &
	pid=$!
	within 100 test -s /dev/shm/hyptrace-f.dat.spool/range
	until trimmed; do gone "$pid" && break; sleep 0.2; done
	/bin/uname -a
	within 60 written f.001.dat
	kill -USR1 $pid
	within 60 written f.002.dat
	echo "size $(size)"
	kill -KILL $pid; wait $pid; echo "status $?"
	kill $marks
	for spool in /dev/shm/*.spool; do hyptrace recover $spool 2>>said; echo "recover $?"; done
	ls -A /dev/shm | sed "s/^/left /"
	state >after; diff before after >&2 && echo "tracefs is as before"
	cp f*.dat /mnt/out; cat said >&2'
recorded "--flight 2 --dump-on: an event, a signal, a kill"
diag "$output"$'\n'"$stderr"
like "$output" '^tracefs is as before$' "... and tracefs is as before"
is "$(grep -c '^recover 0$' <<<"$output")" 2 "... both spools are recovered"
is "$(grep '^left' <<<"$output")" "" "... and nothing of them is left"
for i in 1 2; do
	dumped "host, dump $i" "f.00$i.dat"
	dumped "guest, dump $i" "f-g1.00$i.dat"
done
# recover has emptied the host's buffers; what the agent had not sent is lost, and the file says so
dumped "host, dump 3" f.003.dat all
dumped "guest, dump 3" f-g1.003.dat
is "$(awk '
	/^CPU:[01] \[EVENTS DROPPED\]$/ { ended[substr($0, 5, 1)] = 1 }
	match($0, /\[00[01]\] /) { ended[substr($0, RSTART + 3, 1)] = 0 }
	END { print ended[0], ended[1] }' "$tmp/report")" "1 1" "... and says that the end of each CPU is lost"
hyptrace_report f.001.dat | grep -q 'sched_process_exec:.*uname'
ok $? "the event that asked for the first dump is in it"
like "$stderr" 'f\.001\.dat: [2-9]\.[0-9] s,' "... with some two seconds, though it ran for longer"

guest 'kill $(cat /tmp/marks)'

done_testing
