#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Columns, by the bench that counts with them: as many events of each name, and of each value of a field, as
# trace-cmd report prints.
. tests/integration/lib.sh

count=$build/tests/bench/count

# by_text FILE FIELD: what stock prints of the fields as numbers, counted
by_text() {
	trace-cmd report -N -R -i "$1" 2>/dev/null | perl -ne '
		BEGIN { $field = shift }
		next unless /-(\d+)\s+\[\d+\]\s*[\d.]+: (\w+): *(.*)/;
		($pid, $name, $text) = ($1, $2, $3);
		$n{$name}++;
		$value = $field eq "common_pid" ? $pid : $text =~ /(?:^| )$field=(-?\w+)/ ? $1 : next;
		$n{"$name $field=" . ($value =~ /^0x/ ? hex $value : $value)}++;
		END { print "$_ $n{$_}\n" for keys %n }' "$2" | sort
}

# counts FILE FIELD
counts() {
	"$count" "$1" "$2" | sort >"$tmp/ours"
	by_text "$1" "$2" >"$tmp/stock"
	[ -s "$tmp/stock" ] && grep -q "=" "$tmp/stock"
	ok $? "$1 has $2"
	same "$tmp/ours" "$tmp/stock" "$1 by $2 as stock prints it"
}

for file in lab-protected lab-nvhe lab-stock-arm64 x86/trace guest/trace-Guest functions/trace sync/trace; do
	counts tests/data/$file.dat common_pid
done
counts tests/data/lab-protected.dat prev_pid
counts tests/data/lab-protected.dat reason
counts tests/data/lab-stock-arm64.dat next_prio

"$count" "$tmp/none.dat" >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/out" "$tmp/err")" "1 count: $tmp/none.dat: No such file or directory" "no file"

done_testing
