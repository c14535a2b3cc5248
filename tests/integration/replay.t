#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Captures of the lab (tests/data/README.md), judged again by the peers' own
# tools: what the live tests check in minutes, anywhere and in seconds.
. tests/integration/lib.sh

tools=$build/tests/tools
export HOME=$tmp # no plugins but the distribution's
unset TRACEEVENT_PLUGIN_DIR KERNELSHARK_PLUGIN_DIR

# replay NAME PAIRS HOST HYP: pairs in order, entries of both buffers
replay() {
	local dat=tests/data/$1.dat
	is "$("$tools/hyporder" "$dat" | head -n 1)" \
		"pairs checked $2, violations 0, within the microsecond cut 0" "$1: order of pairs"
	is "$("$tools/loadkshark" "$dat" 2>&1 | sed -E 's/^[^ ]* ([^ ]*: [0-9]+ entries).*/\1/')" \
		"-: $3 entries
hyp: $4 entries" "$1: libkshark loads both buffers"
	trace-cmd report -i "$dat" >"$tmp/report" 2>/dev/null
	is "$(grep -c '\] *[0-9]*\.[0-9]\{6\}: ' "$tmp/report")" "$(($3 + $4))" "$1: every event in stock's report"
	is "$(grep -E 'FAILED TO PARSE|<\.\.\.>--1' "$tmp/report")" "" "$1: all parsed, all with a task"
	is "$(grep -Eo ' [0-9]+\.[0-9]{6}: ' "$tmp/report" | tr -d ' :' | LC_ALL=C sort -c -s -n 2>&1)" "" \
		"$1: in one order"
}

replay lab-protected 329 955 3192
replay lab-nvhe 231 985 2386
like "$(cat "$tmp/report")" 'hyp_cntvoff: +vcpu=[0-9]+ offset=[0-9]+ low=[0-9]+ high=[0-9]+' "lab-nvhe: CNTVOFF is kept"
done_testing
