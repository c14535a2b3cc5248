#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace sync on captures of stock trace-cmd: an arm64 host (tests/data/sync),
# and an x86 one whose true offset is known (tests/data/x86).
. tests/integration/lib.sh

arm="tests/data/sync/trace.dat tests/data/sync/trace-Guest.dat"
x86="tests/data/x86/trace.dat tests/data/x86/trace-Guest.dat"

sync() {
	"$build/hyptrace" sync "$@" 2>"$tmp/err"
}

# Knots that do not hold LOW..HIGH, of JSON on stdin; those that say nothing do
misses() {
	awk -v low="$1" -v high="$2" '
		/"knots"/ { in_knots = 1 }
		in_knots && /"offset":/ { offset = $2 + 0 }
		in_knots && /"bound":/ {
			n++
			if ($2 !~ /null/ && (offset - $2 > low || offset + $2 < high)) print
		}
		END { if (!n) print "no knots" }'
}

# ---- arm64, ptp: ranges in tests/data/sync/README.md
# shellcheck disable=SC2086
is "$(sync $arm)" "tests/data/sync/trace.dat: 13466 windows, 0 of them the hypervisor's
Guest
  hard, by kvm windows, 2 of 2 vCPUs matched
  vCPU threads: 0=100 1=102
  offset 32502833011 ns +- 82917 at 21912791912, drift +0.000 ppm
  coverage 100.000 %, 0 of 11646 events outside
  with the file's own offsets 3544 of 11646 events are outside, by up to 461511 ns" "arm64: the table"
# shellcheck disable=SC2086
sync --json $arm >"$tmp/arm.json"
is "$(misses 32502833996 32502833996 <"$tmp/arm.json")" "" "arm64: every knot holds the middle of what all events allow"
is "$(grep -A 3 file_time_shift "$tmp/arm.json" | tr -d ' \n')" \
	'"file_time_shift":{"outside":3544,"worst":461511},' "arm64: what ptp's offsets violate, as JSON"

# ---- x86: the truth is in tsc-offset
truth=$(($(sort -u tests/data/x86/tsc-offset) * -1))
is "$(sort -u tests/data/x86/tsc-offset | wc -l)" 1 "x86: KVM left the offset alone"
# shellcheck disable=SC2086
sync --json $x86 >"$tmp/x86.json"
is "$(misses "$truth" "$truth" <"$tmp/x86.json")" "" "x86: the true offset is inside the bound at every knot"
is "$(grep -E '"(class|unit|method)"' "$tmp/x86.json" | head -3 | tr -d ' \n')" \
	'"method":"kvmwindows","class":"hard","unit":"ticks",' "x86: hard, in ticks"
is "$(misses $((truth + 500000)) $((truth + 500000)) <"$tmp/x86.json" | head -n 1 | tr -d ' ' | cut -c 1-8)" '"bound":' \
	"x86: an offset off by 0.2 ms would be told"

# ---- writing
cp tests/data/x86/trace.dat "$tmp/trace.dat"
cp tests/data/x86/trace-Guest.dat "$tmp/trace-Guest.dat"
sync --write --quiet "$tmp/trace.dat" "$tmp/trace-Guest.dat"
ok $? "x86: --write"
same "$tmp/trace-Guest.dat.orig" tests/data/x86/trace-Guest.dat "... keeps the original"
sync --check --quiet "$tmp/trace.dat" "$tmp/trace-Guest.dat"
ok $? "... and --check is content with what was written"
like "$(trace-cmd dump --options -i "$tmp/trace-Guest.dat" 2>&1)" 'TimeShift' "... which stock reads"
# shellcheck disable=SC2086
sync --check --quiet $arm
is $? 1 "--check ends with 1 for ptp's offsets"

# ---- drawing
# shellcheck disable=SC2086
sync --quiet --plot "$tmp/arm.svg" $arm
is "$(grep -c -e 'class="band"' -e 'class="line"' -e 'class="own"' "$tmp/arm.svg" | awk '$1 > 3')" \
	"$(grep -c -e 'class="band"' -e 'class="line"' -e 'class="own"' "$tmp/arm.svg")" "--plot: bands, lines, samples"

# ---- bad input
sync tests/data/README.md tests/data/x86/trace-Guest.dat
is $? 1 "no trace.dat: status 1"
like "$(cat "$tmp/err")" "cannot read 'tests/data/README.md'" "... and said so"
sync tests/data/x86/trace-Guest.dat tests/data/x86/trace-Guest.dat >"$tmp/none"
like "$(cat "$tmp/none")" 'none: nothing tells the offset' "a host without kvm events: none"
sync --json tests/data/x86/trace-Guest.dat tests/data/x86/trace-Guest.dat >"$tmp/none"
like "$(cat "$tmp/none")" '"offset": null' "... and no number in JSON"
done_testing
