#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# An x86-64 host with Debian's stock kernel, recorded by stock trace-cmd, then by
# hyptrace with its own agent: the offset by kvm windows alone, and that by the
# counter method, hold the true one, which KVM tells (tsc-offset).
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"

# What L1 does after tests/lab/x86-record, whose offsets() it uses.
own_recordings() {
	cat <<-'END'
		stock=$?
		cp -r /mnt/out/own /tmp/own
		for clock in x86-tsc boot; do
			own/ld.so --library-path own own/hyptrace record --guest-timeout 60 --tsync counter -C $clock -o own-$clock.dat \
				-e kvm:kvm_entry -e kvm:kvm_exit -A Guest@3:824 -e sched:sched_switch -e irq:irq_handler_entry \
				-- sleep 2 2>/mnt/out/own-$clock.err
			echo "status $?" >>/mnt/out/own-$clock.err
			for file in own-$clock own-$clock-Guest; do
				trace-cmd report $file.dat >report
				grep -oE ' (kvm_entry|kvm_exit|sched_switch): ' report | sort | uniq -c >/mnt/out/$file.events
			done
			trace-cmd dump --options -i own-$clock-Guest.dat >/mnt/out/own-$clock.options
		done
		offsets >>tsc-offset
		cp tsc-offset own-*.dat /mnt/out/
		exit $stock
	END
}

record() {
	rm -rf "$tmp/out"
	copy_hyptrace "$tmp/out/own"
	x86 run -a "$build/hyptrace-agent" -o "$tmp/out" -- \
		"$(cat tests/lab/x86-record; own_recordings)" >"$tmp/log" 2>&1
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

# ---- hyptrace and its agent ------------------------------------------------------

for clock in x86-tsc boot; do
	file=$tmp/out/own-$clock
	[ $clock = boot ] && unit=us || unit=ticks
	said=$(cat "$file.err")
	like "$said" '^status 0$' "$clock: recorded by hyptrace"
	like "$said" ' host [1-9][0-9]* events, .* \(0 lost\); Guest [1-9][0-9]* events, .* \(0 lost\): ' \
		"$clock: events of host and guest, none lost"
	like "$said" "clock offset known to \\+- [0-9.]+ $unit \\(hard, counter; 0 of [1-9][0-9]* events outside\\)" \
		"$clock: counter, hard, in $unit, and no event is outside"
	diag "$(grep 'clock offset' <<<"$said")"
	like "$(cat "$file.events")" '[1-9][0-9]* +kvm_entry:' "$clock: stock reports the host's kvm_entry"
	like "$(cat "$file.events")" '[1-9][0-9]* +kvm_exit:' "... and its kvm_exit"
	like "$(cat "$file-Guest.events")" '[1-9][0-9]* +sched_switch:' "... and the guest's events"
done

# TIME_SHIFT as stock shows it: OFFSET SCALING FRACTION TIME, as many knots for every
# CPU; those of the last one, which nobody has, are the bounds (Documentation/clock-sync.md).
is "$(awk -v truth="$truth" -F '[\t @[]+' '
	/samples count for CPU 0/ { knots = $1 + 0 }
	/offset \* scaling/ { v[++n] = $2 }
	END {
		for (i = 1; i <= knots; i++) {
			bound = v[n - knots + i]
			if (truth < v[i] - bound || truth > v[i] + bound) print "offset", v[i], "bound", bound
		}
		if (knots < 4 || n < 2 * knots) print knots + 0, "knots in", n + 0, "lines"
	}' "$tmp/out/own-x86-tsc.options")" "" "tsc-offset lies inside the counter method's bound at every knot"
done_testing
