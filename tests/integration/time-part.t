#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --time FROM,TO: each command has the events of that part of the time, and no others.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp/home

# answer FILE... QUERY: its only row, with blanks
answer() { "$hyptrace" sql --no-guests --csv "$@" 2>"$tmp/err" | sed '1d; s/^rows,//; s/,/ /g'; }

# thirds FILE...: times at which a test cuts, a third and two thirds of the way, in ns
thirds() { answer "$@" 'SELECT min(ts) + (max(ts) - min(ts)) / 3, min(ts) + (max(ts) - min(ts)) * 2 / 3 FROM events'; }

seconds() { printf '%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000)); }

# clipped FROM TO: lines of report -t with FROM <= time < TO, and marks of losses before them
clipped() {
	perl -ne 'BEGIN { ($from, $to) = splice @ARGV, 0, 2 } if (/DROPPED/) { $lost .= $_; next }
		if (/ (\d+)\.(\d{9}): /) { my $t = "$1$2"; print $lost, $_ if $t >= $from && $t < $to; $lost = "" }' "$1" "$2"
}

for file in tests/data/lab-nvhe.dat tests/data/guest/trace.dat tests/data/regions.dat tests/data/lab-protected.dat; do
	read -r from to < <(thirds "$file")
	"$hyptrace" report -t --no-guests "$file" 2>"$tmp/err" | clipped "$from" "$to" >"$tmp/want"
	"$hyptrace" report -t --no-guests --time "$(seconds "$from"),$(seconds "$to")" "$file" 2>"$tmp/err" |
		grep -v ^cpus= >"$tmp/got"
	[ -s "$tmp/want" ]
	ok $? "$file: events in its middle third"
	same "$tmp/got" "$tmp/want" "$file: report --time has these"
	is "$(answer --time "$(seconds "$from"),$(seconds "$to")" "$file" 'SELECT count(*) FROM events')" \
		"$(answer "$file" "SELECT count(*) FROM events WHERE ts >= $from AND ts < $to")" "$file: so has sql --time"
done

file=tests/data/lab-nvhe.dat
"$hyptrace" report -t --time ,20.2 "$file" 2>/dev/null >"$tmp/to"
"$hyptrace" report -t --time 20.2, "$file" 2>/dev/null | grep -v ^cpus= >"$tmp/from"
cat "$tmp/to" "$tmp/from" >"$tmp/both"
"$hyptrace" report -t "$file" 2>/dev/null >"$tmp/all"
same "$tmp/both" "$tmp/all" "two windows that meet have all events, once each"
"$hyptrace" report -t --time +94906672ns,-629.843ms "$file" >"$tmp/got" 2>&1
"$hyptrace" report -t --time 20.2,20.2002 "$file" >"$tmp/want" 2>&1
same "$tmp/got" "$tmp/want" "from the begin and from the end, with units"
is "$("$hyptrace" report --time -0, "$file" 2>/dev/null | grep -c hyp_)" 1 "-0, is the last event"

rows() { "$hyptrace" "$@" 2>"$tmp/err" | wc -l; }
fewer() { # WORD... of a command line: --time leaves some of its lines
	local all part
	all=$(rows "$@" "$file") part=$(rows "$1" --time 20.2,20.3 "${@:2}" "$file")
	[ "$part" -gt 1 ] && [ "$part" -lt "$all" ]
	ok $? "$1 --time: $part lines of $all"
}
fewer stat --csv --rows 0
fewer export --json
fewer flame
pairs() { "$hyptrace" latency --csv --key none --from kvm_exit --to kvm_entry "$@" "$file" 2>"$tmp/err" | sed -n 's/^latency,host,\([0-9]*\),.*/\1/p'; }
part=$(pairs --time 20.2,20.3)
[ "$part" -gt 1 ] && [ "$part" -lt "$(pairs)" ]
ok $? "latency --time: $part pairs of $(pairs)"
"$hyptrace" diff --time +0,-300ms "$file" tests/data/lab-protected.dat >"$tmp/got" 2>&1
ok $? "diff --time"
"$hyptrace" path --time 20.2, --at kvm_entry "$file" >"$tmp/got" 2>&1
ok $? "path --time"

# ---- bad ones ---------------------------------------------------------------------------

refused() { # STATUS TIME MESSAGE
	local got
	got=$("$hyptrace" stat --time "$2" "$file" 2>&1)
	is "$? $got" "$1 $3" "--time $2"
}
file=tests/data/x86/trace.dat
"$hyptrace" report --no-guests "$file" 2>/dev/null | perl -ne 'print if /\](\d+): / && $1 >= 150000000000 && $1 < 151000000000' >"$tmp/want"
"$hyptrace" report --no-guests --time 150000000000,151000000000 "$file" 2>/dev/null | grep -v ^cpus= >"$tmp/got"
same "$tmp/got" "$tmp/want" "$file: numbers are ticks where report prints ticks"
is "$("$hyptrace" report --time 70s, "$file" 2>&1 | tail -n 1)" \
	"hyptrace: times of these files are ticks, not seconds: give ticks, or their rate with --ts2secs HZ" "... and seconds are refused"
file=tests/data/lab-nvhe.dat

range="the recording is from 20.105093328 to 20.830043000"
refused 1 5,6 "hyptrace: no records in this part of time: $range"
refused 1 20.3,20.2 "hyptrace: the part of time ends at its begin or earlier: $range"
for bad in 5 5s 1x,2 ,, 1.2.3, '-,' ' 1,2' 99999999999999999999,; do
	"$hyptrace" stat --time "$bad" "$file" >"$tmp/got" 2>&1
	is "$? $(head -n 1 "$tmp/got")" "2 hyptrace stat: --time $bad: not FROM,TO, such as 63.5,64 or +2s,-500ms or 63.5," "--time '$bad'"
done

# the last page, which cannot be, is after the part: the recording's end is not known
{
	printf '%s\n' 'compression none' 'event ftrace:print unsigned long ip; char buf[] | "%s", REC->buf'
	for ((i = 1; i < 99; i++)); do
		printf '%d 0 7 print\t0\t%0100d\n' $((i * 1000000000)) "$i"
	done
} | "$build/tests/integration/make-trace" "$tmp/end.dat"
perl -0777 -pi -e 'my $at = index($_, sprintf "%0100d", 98); $at -= $at % 4096; substr($_, $at + 8, 4) = "\xff\xff\xff\x0f"' "$tmp/end.dat"
"$hyptrace" report --time ,2 "$tmp/end.dat" >"$tmp/got" 2>"$tmp/err"
is "$? $(grep -c print: "$tmp/got") $(<"$tmp/err")" "1 1 hyptrace: warning: the recording may begin earlier or end later: 1 pages there are damaged" \
	"--time: a damaged page at the end is reported"

done_testing
