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

# shellcheck disable=SC2086
is "$(sync --csv -q $arm | cut -d ';' -f 1-3)" "\
hyp,windows,checked,outside,worst
hyp,0,0,0,0
guests,name,method,class,unit,time,offset,bound,drift_ppm,coverage,events,outside,vcpus,file_time_shift,knots
guests,Guest,kvm windows,hard,ns,21912791912,32502833011,82917,0,1,11646,0,0:100;1:102,3544:461511,20359074608:32502833011:83817:hard;20789074608:32502833011:83817:hard" "arm64: the same as CSV"

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

# A guest's times become the host's, so they get its rate, or none, instead of their own.
# with_rate MULT SHIFT IN OUT: a TSC2NSEC takes most of the UNAME's place
with_rate() {
	MULT=$1 SHIFT=$2 perl -0777 -pe 's/\x05\0.\0\0\0(Linux [^\0]*\0+)/my $left = length($1) - 22;
		pack("v V V V Q v V a$left", 14, 16, $ENV{MULT}, $ENV{SHIFT}, 0, 5, $left, "Linux")/se' "$3" >"$4"
}
# units: of times of host and guest, as stock prints them and as we do
units() {
	local file

	for file in trace trace-Guest; do
		for tool in "trace-cmd report" "$build/hyptrace report --no-guests"; do
			$tool "$tmp/$file.dat" 2>/dev/null | sed -nE '2s/.*\] *[0-9]+(\.?)[0-9]*:.*/\1/p' |
				sed 's/^$/number/; s/^\.$/seconds/'
		done
	done | xargs
}
# rate: of the guest, as it was written
rate() {
	trace-cmd dump --options -i "$tmp/trace-Guest.dat" 2>/dev/null | sed -n 's/ 0 \[multiplier, shift, offset\]//p'
}
with_rate 5 3 tests/data/x86/trace.dat "$tmp/trace.dat"
cp tests/data/x86/trace-Guest.dat "$tmp"
is "$(units)" "seconds seconds number number" "a host whose file tells the rate of its clock, a guest's that does not"
sync -q -w "$tmp/trace.dat" "$tmp/trace-Guest.dat"
is "$(rate)" "5 3" "... --write gives it to the guest"
is "$(units)" "seconds seconds seconds seconds" "... and both are shown in seconds"
cp tests/data/x86/trace.dat "$tmp"
with_rate 1 0 tests/data/x86/trace-Guest.dat "$tmp/trace-Guest.dat"
is "$(units)" "number number seconds seconds" "a guest with a rate of its own, a host without"
sync -q -w "$tmp/trace.dat" "$tmp/trace-Guest.dat"
is "$(rate)" "" "... --write takes it away"
is "$(units)" "number number number number" "... and both are shown in ticks"
rm "$tmp"/*.orig # of another recording
cp tests/data/sync/trace.dat "$tmp"
cp tests/data/sync/trace-Guest.dat "$tmp"
sync -q -w "$tmp/trace.dat" "$tmp/trace-Guest.dat"
is "$(rate)" "1 0" "of a host whose clock is known for ns the guest gets that"

rm "$tmp"/*.orig
# A CPU without events is not in stock's list of them, and the numbers of the others are above its length.
perl -0777 -pe 's/\x01\0\0\0(\0\x30\0{6}\xf3\x03\0{6})/\x02\0\0\0$1/' tests/data/x86/trace-Guest.dat >"$tmp/trace-Guest.dat"
cp tests/data/x86/trace.dat "$tmp"
sync -q -w "$tmp/trace.dat" "$tmp/trace-Guest.dat"
# times CPU FILE
times() {
	trace-cmd report "$2" 2>/dev/null | sed -nE "s/.*\\[00$1\\] *([0-9]+): .*/\1/p"
}
is "$(paste <(times 1 tests/data/x86/trace-Guest.dat) <(times 2 "$tmp/trace-Guest.dat") | awk '{ printf "%.0f\n", $2 - $1 }' | sort -u)" \
	64212174818 "a guest with events on CPUs 0 and 2: CPU 2 is shifted, too"
# shellcheck disable=SC2086
sync --check --quiet $arm
is $? 1 "--check ends with 1 for ptp's offsets"
like "$(cat "$tmp/err")" '-Guest.dat: [1-9][0-9]* of [0-9]+ events lie where the guest did not run$' "... and says why"

# ---- drawing
# shellcheck disable=SC2086
sync --quiet --plot "$tmp/arm.svg" $arm
is "$(grep -c -e 'class="band"' -e 'class="line"' -e 'class="own"' "$tmp/arm.svg" | awk '$1 > 3')" \
	"$(grep -c -e 'class="band"' -e 'class="line"' -e 'class="own"' "$tmp/arm.svg")" "--plot: bands, lines, samples"
like "$(picture_names "$tmp/arm.svg" | xargs -d '\n' printf '%s|')" "^trace.dat, trace-Guest.dat: by how much is the host's clock ahead of [A-Za-z]*'s\?\|guest's time from its first event \(s\)\|host - guest, against the middle \(us\)\|" "... with a title, and axes with names and units"

# ---- bad input
sync tests/data/README.md tests/data/x86/trace-Guest.dat
is $? 1 "no trace.dat: status 1"
like "$(cat "$tmp/err")" "cannot read 'tests/data/README.md'" "... and said so"
sync tests/data/x86/trace-Guest.dat tests/data/x86/trace-Guest.dat >"$tmp/none"
is $? 1 "a host without kvm events: status 1, so that no next step is advised"
like "$(cat "$tmp/none")" 'none: no offset found' "... and it is said"
like "$(cat "$tmp/err")" '^hyptrace: no offset found: too few guest events between kvm_entry and kvm_exit of tests/data/x86/trace-Guest.dat$' "... with the reason"
sync --check --quiet tests/data/x86/trace-Guest.dat tests/data/x86/trace-Guest.dat
is $? 1 "--check with nothing to check: status 1"
like "$(cat "$tmp/err")" 'trace-Guest.dat: nothing can be checked: no event lies between kvm_entry and kvm_exit$' "... and said so"
sync tests/data/x86/no.dat
is "$? $(cat "$tmp/err")" "1 hyptrace: cannot open 'tests/data/x86/no.dat': No such file or directory" "no such file"
(cd "$tmp" && rm -f trace.dat && sync)
is "$? $(cat "$tmp/err")" "1 hyptrace: cannot open 'trace.dat': No such file or directory" "without files: trace.dat"
sync --no-guests tests/data/x86/trace.dat
is "$? $(cat "$tmp/err")" "1 hyptrace: tests/data/x86/trace.dat: no guest's file is named with it or lies next to it; run: hyptrace sync tests/data/x86/trace.dat GUEST.dat" \
	"a host alone"
# shellcheck disable=SC2086
is "$(sync tests/data/x86/trace.dat)" "$(sync $x86)" "a host whose guest's file lies next to it"
sync --json tests/data/steal/trace-Guest.dat tests/data/steal/trace.dat >"$tmp/guest-first"
sync --json tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat | cmp -s - "$tmp/guest-first"
ok $? "a guest's file before its host's, as *.dat names them"
sync --json -i tests/data/x86/trace.dat -i tests/data/x86/trace-Guest.dat >"$tmp/named"
is "$?" 0 "files by -i"
sync --json tests/data/x86/trace-Guest.dat tests/data/x86/trace-Guest.dat >"$tmp/none"
like "$(cat "$tmp/none")" '"offset": null' "... and no number in JSON"
done_testing
