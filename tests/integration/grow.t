#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tests/bench/grow, which makes large files of small ones: they are sound, and say the same again
# and again, later.
. tests/integration/lib.sh

grow=$build/tests/bench/grow
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp

# lines FILE...: what stock reports, or ours, without the first lines, which count CPUs
if command -v trace-cmd >/dev/null; then
	lines() {
		local file files=()
		for file; do
			files+=(-i "$file")
		done
		trace-cmd report -t "${files[@]}" 2>/dev/null | sed '/cpus=[0-9]*$/d'
	}
else
	diag "no trace-cmd: read by ours"
	lines() {
		"$build/hyptrace" report -t "$@" | sed '/cpus=[0-9]*$/d'
	}
fi

times() {
	sed -E 's/.*\] *([0-9.]+): .*/\1/' | tr -d .
}

# Tasks by number: their names are learned on the way.
texts() {
	sed -E 's/.{16}-([0-9]+ +\[[0-9]+\]) *[0-9.]+: / \1 /'
}

# grown_is COUNT NAME ORIGINAL... -- GROWN...: of COUNT times the original, each as much later
grown_is() {
	local count=$1 name=$2 i originals=()
	shift 2
	while [ "$1" != -- ]; do
		originals+=("$1")
		shift
	done
	shift
	lines "${originals[@]}" >"$tmp/once"
	lines "$@" >"$tmp/many"
	for ((i = 0; i < count; i++)); do
		texts <"$tmp/once"
	done >"$tmp/expected"
	texts <"$tmp/many" >"$tmp/got"
	same "$tmp/got" "$tmp/expected" "$name: the same lines $count times"
	# to a microsecond: a guest's time shift has another slope behind its last offset
	is "$(times <"$tmp/many" | awk -v n="$(wc -l <"$tmp/once")" '
		{ t[NR] = $1 }
		NR > n { by = t[NR] - t[NR - n]; if (by < min || !min) min = by; if (by > max) max = by }
		END { print max - min < 1000 }')" 1 "... each as much later as the others"
}

for file in lab-protected lab-stock-arm64 x86/trace; do
	is "$("$grow" 1 tests/data/$file.dat "$tmp/grown.dat" | sed 's/.*, //; s/ times.*//')" 1 "$file: once at least"
	events=$(lines tests/data/$file.dat | wc -l)
	is "$("$grow" $((2 * events + 1)) tests/data/$file.dat "$tmp/grown.dat")" "$((3 * events)) events, 3 times $events" \
		"$file: as often as it takes"
	grown_is 3 "$file" tests/data/$file.dat -- "$tmp/grown.dat"
done
for how in "-c none" "-c zstd" "-v 6"; do
	# shellcheck disable=SC2086
	"$grow" $how 10000 tests/data/lab-nvhe.dat "$tmp/grown.dat" >/dev/null
	grown_is 3 "$how" tests/data/lab-nvhe.dat -- "$tmp/grown.dat"
done
unlike "$("$build/hyptrace" report --stat "$tmp/grown.dat" 2>&1)" "^entries: " "counts of another file's records are left out"

# a guest's file stays beside its host's
mkdir "$tmp/pair"
"$grow" 1500 tests/data/guest/trace.dat "$tmp/pair/trace.dat" tests/data/guest/trace-Guest.dat "$tmp/pair/trace-Guest.dat" >/dev/null
grown_is 2 "a host's and a guest's" tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat -- \
	"$tmp/pair/trace.dat" "$tmp/pair/trace-Guest.dat"

# An absolute time inside a page, in place of a long way from the record before.
"$build/tests/integration/make-trace" "$tmp/far.dat" tests/integration/events/report <<'EOF'
1000000000 0 100 sched_wakeup 101 50 1
2000000000 0 100 sched_wakeup 101 50 1
EOF
"$grow" -c none 1 "$tmp/far.dat" "$tmp/absolute.dat" >/dev/null
perl -0777 -pi -e 'sub at { pack "VV", ($_[1] & 0x7ffffff) << 5 | $_[0], $_[1] >> 27 }
	my ($delta, $stamp) = (quotemeta at(30, 1000000000), at(31, 2000000000)); s/$delta/$stamp/ or die' "$tmp/absolute.dat"
is "$(lines "$tmp/absolute.dat" | times)" "1000000000
2000000000" "an absolute time"
"$grow" 4 "$tmp/absolute.dat" "$tmp/grown.dat" >/dev/null
is "$(lines "$tmp/grown.dat" | times)" "1000000000
2000000000
2000000001
3000000001" "... is moved"

head -c 9000 tests/data/lab-nvhe.dat >"$tmp/cut.dat"
"$grow" 1 "$tmp/cut.dat" "$tmp/grown.dat" >"$tmp/out" 2>&1
is "$?" 1 "a file that is not whole is refused"
done_testing
