#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Large files: the same text as stock's with every number of cores, memory that does not grow with
# the file, an end as soon as nobody reads on, and progress on a terminal.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
grow=$build/tests/bench/grow
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp
protected=tests/data/lab-protected.dat

# ---- the same text -----------------------------------------------------------------------

core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/') # the first that there is

mkdir "$tmp/pair"
"$grow" 50000 tests/data/guest/trace.dat "$tmp/pair/trace.dat" tests/data/guest/trace-Guest.dat \
	"$tmp/pair/trace-Guest.dat" >/dev/null
"$grow" 100000 $protected "$tmp/zipped.dat" >/dev/null
"$grow" -c none 100000 tests/data/lab-stock-arm64.dat "$tmp/plain.dat" >/dev/null
for files in "zipped.dat" "plain.dat" "pair/trace.dat pair/trace-Guest.dat"; do
	mine=() stocks=()
	for file in $files; do
		mine+=("$tmp/$file")
		stocks+=(-i "$tmp/$file")
	done
	"$hyptrace" report --no-sync "${mine[@]}" >"$tmp/out" 2>/dev/null
	[ "$(wc -l <"$tmp/out")" -gt 50000 ]
	ok $? "$files: all lines are there"
	if command -v trace-cmd >/dev/null; then
		TRACEEVENT_PLUGIN_DIR=$build/plugins trace-cmd report "${stocks[@]}" >"$tmp/stock" 2>/dev/null
		cmp -s "$tmp/out" "$tmp/stock"
		ok $? "... as stock has them" || diag "$(cmp "$tmp/out" "$tmp/stock" 2>&1)"
	else
		skip 1 "no trace-cmd"
	fi
	taskset -c "$core" "$hyptrace" report --no-sync "${mine[@]}" 2>/dev/null | cmp -s "$tmp/out"
	ok $? "... and on one core"
done

# ---- a file that is damaged ---------------------------------------------------------------

# the lengths of some pages, which lie at multiples of 4096
"$grow" -v 6 100000 $protected "$tmp/plain.dat" >/dev/null
"$hyptrace" report "$tmp/plain.dat" | sort >"$tmp/all"
perl -e 'open F, "+<", $ARGV[0] or die; for (0.5, 0.6, 0.9) { sysseek F, 4096 * int($_ * (-s F) / 4096) + 8, 0; syswrite F, "\xff\xff" }' \
	"$tmp/plain.dat"
"$hyptrace" report "$tmp/plain.dat" >"$tmp/out" 2>"$tmp/err"
is $? 1 "damaged: status 1"
like "$(cat "$tmp/err")" "^hyptrace: warning: .*: records are missing$" "... and what is missing"
lost=$(grep -c ' \[EVENTS DROPPED\]$' "$tmp/out")
is "$lost" 3 "... the places are told"
is "$(sort "$tmp/out" | comm -12 - "$tmp/all" | wc -l)" "$(($(wc -l <"$tmp/out") - lost))" "... the other lines are the file's"
[ "$(wc -l <"$tmp/out")" -gt 95000 ]
ok $? "... nearly all of them" || diag "$(wc -l <"$tmp/out")"
taskset -c "$core" "$hyptrace" report "$tmp/plain.dat" 2>/dev/null | cmp -s "$tmp/out"
ok $? "... and on one core"

# ---- memory ------------------------------------------------------------------------------

# took FIGURE COMMAND...: memory, read; MiB
took() {
	local figure=$1 wall cpu memory read line
	shift
	rm -f "$tmp/figures"
	"$build/tests/bench/measure" "$tmp/figures" "$@" >/dev/null 2>"$tmp/err" || diag "$* failed: $(cat "$tmp/err")"
	# shellcheck disable=SC2034
	read -r wall cpu memory read line <"$tmp/figures"
	echo "${!figure}"
}

# below A B: as numbers
below() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

"$grow" -c none 300000 $protected "$tmp/small.dat" >/dev/null
"$grow" -c none 1000000 $protected "$tmp/big.dat" >/dev/null
for how in "report" "export -q --json" "export -q --perfetto -"; do
	# shellcheck disable=SC2086
	small=$(took memory "$hyptrace" $how "$tmp/small.dat")
	# shellcheck disable=SC2086
	big=$(took memory "$hyptrace" $how "$tmp/big.dat")
	below "$big" 200
	ok $? "$how of a million events: below 200 MiB" || diag "$big MiB"
	below "$big" "$(awk -v a="$small" 'BEGIN { print a + 16 }')"
	ok $? "... and no more than of 300,000" || diag "$small MiB, $big MiB"
done

# ---- nobody reads on -------------------------------------------------------------------------

size=$(($(stat -c %s "$tmp/big.dat") >> 20))
all=$(took read "$hyptrace" report "$tmp/big.dat")
below $((size * 9 / 10)) "$all"
ok $? "all of a file is read for all of its events" || diag "$all of $size MiB"
for how in "report" "export -q --json"; do
	rm -f "$tmp/figures"
	# shellcheck disable=SC2086
	"$build/tests/bench/measure" -1 "$tmp/figures" "$hyptrace" $how "$tmp/big.dat" 2>"$tmp/err"
	is "$?: $(cat "$tmp/err")" "0: " "$how | head -n 1: ends without a word"
	part=$(cut -d' ' -f4 "$tmp/figures")
	below "$part" $((size / 3))
	ok $? "... having read little of the file" || diag "$part of $size MiB"
done

# ---- progress ------------------------------------------------------------------------------

# on_terminal COMMAND: of a shell; what comes there, and "wiped" in place of what wipes a line
on_terminal() {
	TERM=xterm timeout 60 script -qec "$1" /dev/null </dev/null | sed 's/\r\x1b\[K/wiped\n/g' | grep -v '^hyptrace: next: '
}

if command -v script >/dev/null; then
	ways=("export --perfetto '$tmp/out' '$tmp/zipped.dat'" "export --json -o '$tmp/out' '$tmp/zipped.dat'"
		"export --json '$tmp/zipped.dat' >'$tmp/out'"
		"sync '$tmp/pair/trace.dat' '$tmp/pair/trace-Guest.dat' >'$tmp/out'")
	for way in "${ways[@]}"; do
		on_terminal "'$hyptrace' $way" >"$tmp/shown"
		name=${way//"$tmp/"/}
		is "$(sed 's/^\(writing\|reading\): [0-9]*%wiped/N%/' "$tmp/shown" | sort -u)" $'N%\nwiped' "$name: nothing but progress, wiped in the end"
		sed -n 's/^[a-z]*ing: \([0-9]*\)%.*/\1/p' "$tmp/shown" >"$tmp/percents"
		is "$(sort -nu "$tmp/percents")" "$(cat "$tmp/percents")" "... each step once, upwards"
		[ "$(wc -l <"$tmp/percents")" -gt 10 ]
		ok $? "... in steps" || diag "$(cat "$tmp/percents")"
	done
	is "$(on_terminal "'$hyptrace' export -q --perfetto '$tmp/out' '$tmp/zipped.dat'")" "" "-q: no progress"
	is "$(on_terminal "'$hyptrace' export --json '$tmp/zipped.dat' | cat >/dev/null")" "" "nor into a pipe"
	is "$(on_terminal "'$hyptrace' export --json '$tmp/zipped.dat' >'$tmp/out' 2>'$tmp/err'")$(cat "$tmp/err")" "" \
		"nor where no terminal is"
else
	skip 15 "no script(1)"
fi
done_testing
