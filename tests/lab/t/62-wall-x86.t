#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Two hosts whose clocks are set apart by a known amount, one 30 ms fast and one 50 ms slow, each within what its kernel
# states: utc_ns of both is no further from the true time than utc_bound. One machine is both hosts, one after the
# other, so that its boot clock tells the true time.
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"

hyptrace=$build/hyptrace
copy_hyptrace "$tmp/out/own"
"${CC:-cc}" -static -O2 -o "$tmp/out/set-clock" tests/lab/set-clock.c
ok $? "set-clock is built"
x86 run -n -o "$tmp/out" -- '
	record="own/ld.so --library-path own own/hyptrace record -q -C boot -e sched:sched_switch"
	true=$(./set-clock); echo "$true"
	./set-clock $((true + 30000000)) 40000 && $record -o fast.dat -- sleep 2 &&
	./set-clock $((true - 50000000)) 60000 && $record -o slow.dat -- sleep 2 &&
	./set-clock $((true - 50000000)) 20000 && $record -o wrong.dat -- sleep 1' >"$tmp/true" 2>"$tmp/err"
ok $? "recorded with three clocks" || diag "$(<"$tmp/err")"

# errors FILE: the number of events, the least and the greatest error and the greatest bound in ms, how many are outside
errors() {
	"$hyptrace" sql -q --csv "$tmp/out/$1.dat" "SELECT count(*), CAST(round(min(e) / 1e6) AS INTEGER),
		CAST(round(max(e) / 1e6) AS INTEGER), CAST(max(b) / 1e6 AS INTEGER), sum(abs(e) > b)
		FROM (SELECT utc_ns - ts - $(<"$tmp/true") AS e, utc_bound AS b FROM events WHERE utc_ns IS NOT NULL)" |
		tail -n 1 | cut -d, -f 2-
}
# check FILE HOST ERROR BOUND
check() {
	local events low high bound outside

	IFS=, read -r events low high bound outside <<<"$(errors "$1")"
	((events >= 20))
	ok $? "$2: events with a time of day: $events"
	# an emulated machine takes a while to set its clock
	((low >= $3 - 3 && high <= $3 + 3 && outside == 0))
	ok $? "... wrong by $low to $high ms, and never by more than utc_bound"
	((bound >= $4 && bound < $4 + 10))
	ok $? "... which is what its kernel states: $bound ms"
}
check fast "a host that is fast" 30 40
check slow "a host that is slow" -50 60
IFS=, read -r events _ _ bound outside <<<"$(errors wrong)"
((events >= 10 && outside == events))
ok $? "a kernel that states too little is believed: all of its $events events are outside $bound ms" || diag "$outside"

done_testing
