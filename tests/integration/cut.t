#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace cut and merge: pieces are files that stock reads, and that are the recording again when joined.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

report() { "$hyptrace" report -t --no-sync --no-guests "$@" 2>"$tmp/err" | grep -v ^cpus=; }
# Without names of tasks, which stock learns from events that came before.
stock() { trace-cmd report -t "$@" 2>/dev/null | grep -v ^cpus= | perl -pe 's/^(\w+: )?.*-(\d+ +\[\d+\])/$2/'; }

captures=(tests/data/*.dat tests/data/*/*.dat)
cut=0
for file in "${captures[@]}"; do
	report "$file" >"$tmp/all"
	[ -s "$tmp/all" ] || continue
	mkdir "$tmp/pieces"
	length=$("$hyptrace" sql --no-guests --csv "$file" 'SELECT (max(ts) - min(ts)) / 4 + 1 FROM events' 2>/dev/null | sed -n '$s/^rows,//p')
	unit=ns
	! "$hyptrace" report --no-guests "$file" 2>&1 | grep -q 'times are ticks' || unit=
	"$hyptrace" cut -q --no-guests --per "$length$unit" -o "$tmp/pieces/p.dat" "$file" 2>"$tmp/err" ||
		diag "$(cat "$tmp/err")"
	n=0
	for piece in "$tmp"/pieces/p.*.dat; do
		n=$((n + 1))
		stock "$piece"
	done | sort >"$tmp/pieces/stock"
	stock "$file" | sort >"$tmp/stock"
	same "$tmp/pieces/stock" "$tmp/stock" "$file: stock reads all its events from the pieces"
	"$hyptrace" merge -q -o "$tmp/pieces/whole.dat" $(ls -r "$tmp"/pieces/p.*.dat) 2>"$tmp/err" ||
		diag "$(cat "$tmp/err")"
	report "$tmp/pieces/whole.dat" >"$tmp/joined"
	same "$tmp/joined" "$tmp/all" "$file: pieces joined again are the recording"
	cut=$((cut + 1))
	rm -r "$tmp/pieces"
done
[ $cut -gt 20 ]
ok $? "$cut recordings were cut"
# ---- host and guest, losses, what is refused ----------------------------------------------

guest=tests/data/guest
"$hyptrace" cut --no-sync --time 46.3,46.32 -o "$tmp/c.dat" $guest/trace.dat $guest/trace-Guest.dat 2>"$tmp/err"
ok $? "a part of host and guest"
sed "s,$tmp/,," "$tmp/err" >"$tmp/got"
printf 'hyptrace: c.dat\nhyptrace: c-Guest.dat\n' >"$tmp/want"
same "$tmp/got" "$tmp/want" "... is two files, which are named"
"$hyptrace" report -t --no-sync --time 46.3,46.32 $guest/trace.dat $guest/trace-Guest.dat 2>/dev/null | sed 's/^trace//' >"$tmp/want"
"$hyptrace" report -t --no-sync "$tmp/c.dat" "$tmp/c-Guest.dat" 2>/dev/null | sed 's/^c//' >"$tmp/got"
[ "$(wc -l <"$tmp/got")" -gt 20 ]
ok $? "... with events"
grep -v cpus= "$tmp/want" | sed 's/^[^:]*: *//' >"$tmp/a"
grep -v cpus= "$tmp/got" | sed 's/^[^:]*: *//' >"$tmp/b"
same "$tmp/b" "$tmp/a" "... those that report --time has"
options() { "$hyptrace" sql --csv "$@" "SELECT * FROM machines" 2>/dev/null | cut -d, -f2-3; }
is "$(options "$tmp/c.dat" "$tmp/c-Guest.dat" | sed 's/,c$/,trace/')" "$(options $guest/trace.dat $guest/trace-Guest.dat)" \
	"... and still host and guest"

"$build/tests/integration/make-trace" "$tmp/lost.dat" tests/integration/events/report <<'END'
1000 0 100 sched_wakeup 101 50 1
lost 0 5
2000 0 100 sched_wakeup 102 50 1
2500 0 100 sched_wakeup 103 50 1
3500 1 101 sched_wakeup 104 50 1
lost 0 0
lost 1 7
4000 0 100 sched_wakeup 105 50 1
5200 1 101 sched_wakeup 106 50 1
lost 1 3
END
report "$tmp/lost.dat" >"$tmp/all"
[ "$(grep -c DROPPED "$tmp/all")" -ge 3 ]
ok $? "a recording with losses"
"$hyptrace" cut -q --per 1us -o "$tmp/l.dat" "$tmp/lost.dat" && "$hyptrace" merge -q -o "$tmp/l.dat" "$tmp"/l.[0-9]*.dat
ok $? "... cut and joined"
report "$tmp/l.dat" >"$tmp/joined"
same "$tmp/joined" "$tmp/all" "... has them all"

# ---- a piece that is missing ----------------------------------------------------------------

merged() { # PIECE...: prints the messages, then the losses, of gap.dat
	"$hyptrace" merge --no-guests -o "$tmp/gap.dat" "$@" 2>&1 | sed "s,$tmp/,,g"
	"$hyptrace" sql --no-guests --csv "$tmp/gap.dat" "SELECT ts, cpu, events FROM lost ORDER BY cpu" 2>/dev/null | sed -n 's/^rows,\([^t]\)/\1/p'
}
may_miss() { # PIECE PIECE
	echo "hyptrace: warning: the numbers of '$1' and '$2' are not consecutive: a loss is marked between"
}
"$hyptrace" cut -q --no-guests --per 1s -o "$tmp/s.dat" tests/data/steal/trace.dat
is "$(merged "$tmp/s.003.dat" "$tmp/s.001.dat")" "$(may_miss s.001.dat s.003.dat)
hyptrace: gap.dat
41971722784,0," "a missing piece is a loss, and said"
is "$("$hyptrace" stat --no-guests --csv --show longest "$tmp/gap.dat" 2>/dev/null | awk -F, '$5 > 100000000 && NR > 1')" "" \
	"... over which no exit lasts"
is "$(merged "$tmp"/s.*.dat)" "hyptrace: gap.dat" "all pieces: no loss"

"$build/tests/integration/make-trace" "$tmp/few.dat" tests/integration/events/report <<'END'
1000 0 100 sched_wakeup 101 50 1
1500 1 100 sched_wakeup 101 50 1
2500 0 100 sched_wakeup 102 50 1
lost 0 5
5500 0 100 sched_wakeup 103 50 1
END
"$hyptrace" cut -q --per 1us -o "$tmp/f.dat" "$tmp/few.dat"
is "$(merged "$tmp"/f.*.dat)" "hyptrace: gap.dat
5500,0,5" "pieces without events are none that are missing"
is "$(merged "$tmp"/f.00[1345].dat)" "$(may_miss f.001.dat f.005.dat)
hyptrace: gap.dat
5500,0,
1500,1," "a CPU without events after it has a loss at its end, and a number that is known becomes unknown"
mv "$tmp/f.002.dat" "$tmp/second.dat"
is "$(merged "$tmp/f.001.dat" "$tmp/second.dat" | head -n 1)" "$(may_miss f.001.dat second.dat)" "names without numbers"

# each of rotated files has the names that its kernel knew at its end
for piece in 1 2; do
	"$build/tests/integration/make-trace" "$tmp/n.$piece.dat" tests/integration/events/report - <<-END
		task 200 name$piece
		task 20$piece only$piece
		${piece}000 0 200 sched_wakeup 101 50 1
		${piece}500 0 20$piece sched_wakeup 101 50 1
	END
done
"$hyptrace" merge -q -o "$tmp/names.dat" "$tmp/n.1.dat" "$tmp/n.2.dat"
ok $? "pieces with names of their own are joined"
is "$("$hyptrace" report "$tmp/names.dat" 2>/dev/null | grep -oE '[a-z0-9]+-20[0-9] ' | tr -d '\n')" \
	"name2-200 only1-201 name2-200 only2-202 " "... with all names, of a task the last one"

refused() { # STATUS MESSAGE COMMAND...
	local got want="$1 hyptrace$2"
	got=$("$hyptrace" "${@:3}" 2>&1)
	is "$? $(printf '%s\n' "$got" | sed "s,$tmp/,,g")" "$want" "$3: $2"
}
file=tests/data/lab-nvhe.dat
cp $file "$tmp/in.dat"
refused 2 " cut: -o is needed: the file to write" cut --time 20.2, $file
refused 2 " cut: --time or --per is needed: the part of time to write, or the length of pieces" cut -o "$tmp/o.dat" $file
refused 2 " cut: --per needs a duration, such as 10s or 500ms" cut --per 0s -o "$tmp/o.dat" $file
refused 1 ": --per 1ns makes more than 10000 pieces: give a longer one" cut --per 1ns -o "$tmp/o.dat" $file
refused 1 ": 'in.dat' is to be read, not to be written" cut --time 20.2, -o "$tmp/in.dat" "$tmp/in.dat"
echo old >"$tmp/two.dat"
refused 1 ": two machines would be written to 'two-Guest.dat': name files of one recording" \
	cut -q --time +1ms, -o "$tmp/two.dat" tests/data/functions/trace.dat tests/data/steal/trace.dat
is "$(cat "$tmp/two.dat")" old "... before anything is written"
cp $file "$tmp/q.002.dat"
refused 1 ": 'q.002.dat' is to be read, not to be written" cut --per 10ms -o "$tmp/q.dat" "$tmp/q.002.dat"
is "$(ls "$tmp"/q.*)" "$tmp/q.002.dat" "... of pieces, too"
echo old >"$tmp/m.dat"
refused 1 ": two machines would be written to 'm-Guest.dat': name files of one recording" \
	merge -q -o "$tmp/m.dat" tests/data/functions/trace.dat tests/data/steal/trace.dat
is "$(cat "$tmp/m.dat")" old "... before anything is written"
refused 2 " merge: two pieces or more are needed" merge -o "$tmp/o.dat" $file
refused 1 ": tests/data/lab-nvhe.dat overlaps the piece before it: CPU 0 goes back in time" merge -o "$tmp/o.dat" $file $file
perl -0777 -pe 'substr($_, rindex($_, "\x28\xb5\x2f\xfd"), 4) = "none"' tests/data/lab-protected.dat >"$tmp/bad.dat"
refused 1 ": bad.dat: CPU 3 has damaged pages" cut -q --time 0, -o "$tmp/o.dat" "$tmp/bad.dat"
"$hyptrace" merge -o "$tmp/o.dat" $file tests/data/lab-protected.dat >"$tmp/got" 2>&1
is "$(ls "$tmp" | grep -c '^o-lab-protected.dat$')" 1 "another recording's pieces are another machine"
is "$(ls "$tmp" | grep -c '[.]part\|[.]pages')" 0 "nothing half written is left"
done_testing
