#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files whose clock counts ticks: the rate by the file, by the events, by --ts2secs, and what is shown without one.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins
rate=2400000000

# lines FILE: events of a recording whose clock counts ns as lines for make-trace, as a clock of that rate has them
lines() {
	echo 'event sched:sched_switch pid_t prev_pid; long prev_state; pid_t next_pid | "%d", REC->next_pid'
	echo 'event sched:sched_stat_runtime pid_t pid; u64 runtime | "%d %llu", REC->pid, REC->runtime'
	echo 'event timer:hrtimer_expire_entry u64 now | "%llu", REC->now'
	"$hyptrace" export -q --no-guests --json "$1" | jq -r '
		{ sched_switch: "prev_pid=\(.fields.prev_pid) prev_state=\(.fields.prev_state) next_pid=\(.fields.next_pid)",
			sched_stat_runtime: "pid=\(.fields.pid) runtime=\(.fields.runtime)",
			hrtimer_expire_entry: "now=\(.fields.now)" }[.event // ""] as $values |
		select($values) | "\(.time * 2.4 | floor) \(.cpu) \(.pid) \(.event) \($values)"'
}

make() { "$build/tests/integration/make-trace" "$1" - || diag "cannot make $1"; }

# estimated FILE: "EVENT yes" when the true rate lies within the error that is reported
estimated() {
	"$hyptrace" stat "$1" 2>&1 >/dev/null | perl -ne '
		/: the clock x86-tsc runs at ([\d.]+) MHz \+- (\S+) % by (\w+) \(--ts2secs HZ if it is known\)$/ or next;
		print "$3 ", abs($1 / 2400 - 1) * 100 <= $2 && $2 < 1 ? "yes" : "no: $1 +- $2"'
}

# ---- an estimate ---------------------------------------------------------------------------------------------

lines tests/data/stock/trace.dat >"$tmp/lines"
{ echo 'clock x86-tsc'; cat "$tmp/lines"; } | make "$tmp/run.dat"
is "$(estimated "$tmp/run.dat")" "sched_stat_runtime yes" "by the time that tasks ran: the truth is within the error"
lines tests/data/guest/trace-Guest.dat >"$tmp/timers"
{ echo 'clock x86-tsc'; cat "$tmp/timers"; } | make "$tmp/timers.dat"
is "$(estimated "$tmp/timers.dat")" "hrtimer_expire_entry yes" "by timers"
grep -v 'sched_stat_runtime pid' "$tmp/lines" >"$tmp/switches"
{ echo 'clock x86-tsc'; cat "$tmp/switches"; } | make "$tmp/none.dat"
warning="hyptrace: warning: $tmp/none.dat: times are ticks of the clock x86-tsc, not ns (--ts2secs HZ converts them)"
is "$("$hyptrace" stat "$tmp/none.dat" 2>&1 >/dev/null)" "$warning" "neither: ticks"
{ echo 'clock x86-tsc'; sed 's/runtime=.*/runtime=1000/' "$tmp/lines"; } | make "$tmp/odd.dat"
like "$("$hyptrace" stat "$tmp/odd.dat" 2>&1 >/dev/null)" ': times are ticks of ' "runtimes that contradict each other: ticks"
{ echo 'clock counter'; cat "$tmp/lines"; } | make "$tmp/counter.dat"
is "$("$hyptrace" stat "$tmp/counter.dat" 2>&1 >/dev/null)" \
	"hyptrace: warning: $tmp/counter.dat: times are ticks of the clock counter, not ns" "a clock that counts events"
{ echo 'clock x86-tsc'; echo "tsc 5 1"; cat "$tmp/lines"; } | make "$tmp/tsc.dat"
is "$("$hyptrace" stat "$tmp/tsc.dat" 2>&1 >/dev/null)" "" "the file's TSC2NSEC comes first"

# ---- the same in all commands -------------------------------------------------------------------------------

span() { # FILE OPTION...: ns from the first record to the last, as export has them
	"$hyptrace" export -q --json "$@" 2>/dev/null | grep -o '"time":[0-9]*' | perl -ne '/(\d+)/; $from //= $1; $to = $1;
		END { printf "%d", ($to - $from) / 1e6 + 0.5 }'
}

is "$(span --ts2secs $rate "$tmp/run.dat") $(span "$tmp/tsc.dat") $(span "$tmp/none.dat")" "681 4086 1634" \
	"ms of a recording: by --ts2secs, by TSC2NSEC, and 10^6 ticks"
for words in 'stat' 'latency --from sched_switch --to sched_stat_runtime' 'flame --weight count' 'export --json' 'report' \
	'path --at sched_switch'; do
	# shellcheck disable=SC2086
	like "$("$hyptrace" $words "$tmp/run.dat" 2>&1 >/dev/null)" 'the clock x86-tsc runs at 24' "an estimate: $words"
	# shellcheck disable=SC2086
	unlike "$("$hyptrace" $words --ts2secs $rate "$tmp/run.dat" 2>&1 >/dev/null)" 'x86-tsc' "... not with --ts2secs"
done
at=$(grep -om 1 '^[0-9]* [0-9]* [0-9]* sched_switch' "$tmp/switches")
like "$("$hyptrace" path -q --at "${at%% *}" --cpu "$(cut -d ' ' -f 2 <<<"$at")" "$tmp/none.dat" 2>&1)" "at ${at%% *}: why then" "path: a moment in ticks"
like "$("$hyptrace" path -q --at "${at%% *}ms" --cpu 0 "$tmp/none.dat" 2>&1)" "give --at in ticks, without a unit" "... without a unit"
like "$("$hyptrace" path -q --at 18446744073709551615 --cpu 0 "$tmp/run.dat" 2>&1)" "host is not recorded at 18446744073709551615: it is from" \
	"... and seconds beyond all ns are later than a recording"
x86=tests/data/x86/trace.dat options="--no-guests --no-sync"
for rated in "" "--ts2secs $rate "; do
	# shellcheck disable=SC2086
	"$hyptrace" why -q $rated$options --from sched_switch --to sched_switch --key next_pid=prev_pid --tail 95 "$tmp/none.dat" 2>/dev/null |
		sed -n 's/^   hyptrace/hyptrace/p' >"$tmp/commands"
	n=0
	while read -r line; do
		PATH=$build:$PATH bash -c "$line -q" >"$tmp/shown" 2>&1 && [ -s "$tmp/shown" ]
		ok $? "an example of why $rated in ticks: $line" || diag "$(<"$tmp/shown")"
		n=$((n + 1))
	done <"$tmp/commands"
	[ "$n" -ge 2 ]
	ok $? "... each has two commands"
	is "$(grep -c -- " $rated$options $tmp/none.dat$" "$tmp/commands")" "$n" "... with the options by which why read the file"
done
# HZ|--time|--time of the command of a finding
while IFS='|' read -r hz part shown; do
	given=${hz:+--ts2secs $hz }
	# shellcheck disable=SC2086
	is "$("$hyptrace" why -q $given--no-guests --time "$part" $x86 2>/dev/null | sed -n 's/^   //p')" \
		"hyptrace stat --show vcpus $given--no-guests --time $shown $x86" "a finding of --time $part: the same part"
done <<END
3000000000|49.2,50.1|49.200000000,50.100000000
|,146000000000|0,146000000000
|146000000000,|146000000000,
END
like "$("$hyptrace" sql "$tmp/none.dat" 'select 1' 2>&1)" "${warning//[()]/.}" "ticks: sql warns"
like "$("$hyptrace" diff "$tmp/none.dat" "$tmp/none.dat" 2>&1)" "${warning//[()]/.}" "... diff warns"
is "$("$hyptrace" report --ts2secs $rate "$tmp/run.dat" 2>/dev/null | awk 'NR == 2 { print $3 }')" 54.900384: "report: seconds"
like "$("$hyptrace" report --raw-ts "$tmp/run.dat" 2>&1)" "\[000\] *131760922752: sched_stat_runtime:" "... ticks with --raw-ts"
"$hyptrace" export -q --perfetto "$tmp/o.pftrace" "$tmp/run.dat"
is $? 0 "an estimate is enough for Perfetto"
like "$("$hyptrace" export --perfetto "$tmp/o.pftrace" "$tmp/none.dat" 2>&1)" \
	'Perfetto and CTF take ns; --ts2secs HZ sets the rate, --json keeps ticks$' "... ticks are refused"
"$hyptrace" export --perfetto "$tmp/o.pftrace" --ts2secs $rate "$tmp/none.dat"
is $? 0 "... with --ts2secs they are taken"

# ---- ticks are called ticks ----------------------------------------------------------------------------------

pairs=(latency --from sched_switch/next_pid==100 --to sched_switch/prev_pid==100 --key cpu)
like "$("$hyptrace" "${pairs[@]}" --json "$tmp/none.dat" 2>/dev/null)" '"total_ticks":[0-9]+,"min_ticks":' "JSON"
unlike "$("$hyptrace" "${pairs[@]}" --json "$tmp/none.dat" 2>/dev/null)" '_ns"' "... and no ns"
like "$("$hyptrace" "${pairs[@]}" --csv "$tmp/none.dat" 2>/dev/null)" ',total_ticks,min_ticks,' "CSV"
like "$("$hyptrace" "${pairs[@]}" "$tmp/none.dat" 2>/dev/null)" '^times and durations are ticks, not ns$' "for people"
unlike "$("$hyptrace" "${pairs[@]}" "$tmp/none.dat" 2>/dev/null)" '[0-9](ns|us|ms|s)( |$)' "... without units of time"
like "$("$hyptrace" "${pairs[@]}" --json --ts2secs $rate "$tmp/none.dat" 2>/dev/null)" '"total_ns":[0-9]+,' "ns with --ts2secs"
x86=(tests/data/x86/trace.dat tests/data/x86/trace-Guest.dat)
like "$("$hyptrace" stat --show exits "${x86[@]}" 2>/dev/null)" '^exits: 4321 samples, [0-9]+ ticks in total$' \
	"a real capture of x86-tsc"
like "$("$hyptrace" stat --show exits --ts2secs 1000000000 "${x86[@]}" 2>/dev/null)" '^exits: 4321 samples, 22.02s in total$' \
	"... and with a rate"

# ---- host and guest count alike ------------------------------------------------------------------------------

{ echo 'clock x86-tsc'; echo 'id 10'; echo 'guest vm 11 0:100'; cat "$tmp/switches"; } | make "$tmp/h.dat"
{ echo 'clock x86-tsc'; echo 'id 11'; echo 'shift 10 0 100'; cat "$tmp/lines"; } | make "$tmp/g.dat"
like "$("$hyptrace" stat "$tmp/h.dat" "$tmp/g.dat" 2>&1)" "^hyptrace: $tmp/g.dat: the clock x86-tsc runs at" "by the guest's events"
unlike "$("$hyptrace" stat "$tmp/h.dat" "$tmp/g.dat" 2>&1)" "ticks" "... for its host, too"
is "$("$hyptrace" export -q --json --ts2secs $rate "$tmp/h.dat" "$tmp/g.dat" | grep -o '"time":[0-9]*' | sort | uniq -c |
	awk '$1 > 1' | wc -l)" 516 "... whose times are the same"
done_testing
