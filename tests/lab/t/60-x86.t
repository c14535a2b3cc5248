#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# An x86-64 host with Debian's stock kernel, recorded by stock trace-cmd: the
# offset by kvm windows alone holds the true one, which KVM tells (tsc-offset).
cd "$(dirname "$0")/../../.." || exit 1
. tests/integration/lib.sh

home=$(getent passwd "$(id -u)" | cut -d : -f 6)
HOME=$home tests/lab/x86 build || {
	echo "Bail out! the x86 lab cannot be built"
	exit 1
}
record() {
	rm -rf "$tmp/out"
	HOME=$home tests/lab/x86 run -t 500 -o "$tmp/out" -- "$(cat tests/lab/x86-record)" >"$tmp/log" 2>&1
}

# On a busy machine the emulated guest can be too slow for stock's time limits.
record || {
	diag "once more in a new machine: $(tail -n 5 "$tmp/log")"
	record
}
ok $? "recorded by stock trace-cmd" || diag "$(cat "$tmp/log")"

is "$(sort -u "$tmp/out/tsc-offset" | wc -l)" 1 "KVM left the TSC offset alone"
truth=$(($(head -n 1 "$tmp/out/tsc-offset") * -1))
"$build/hyptrace" sync --json "$tmp/out/trace.dat" "$tmp/out/trace-Guest.dat" >"$tmp/json"
ok $? "synchronised"
like "$(cat "$tmp/json")" '"class": "(hard|soft)"' "a class with a bound"
like "$(cat "$tmp/json")" '"unit": "ticks"' "in ticks"
is "$(awk -v truth="$truth" '
	/"knots"/ { in_knots = 1 }
	in_knots && /"offset":/ { offset = $2 + 0 }
	in_knots && /"bound":/ {
		bound[++n] = $2 + 0
		if ($2 ~ /null/ || truth < offset - $2 || truth > offset + $2) print "offset", offset, "bound", $2
	}
	END { if (!n) print "no knots"; else print "median bound", bound[int((n + 1) / 2)] > "/dev/stderr" }' "$tmp/json")" "" \
	"tsc-offset lies inside the bound at every knot"
done_testing
