#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What hyptrace's analyses say of the live pKVM host and its guest: the exit table against perf's, of the same
# exits; and chains across host, hypervisor and guest.
. "$(dirname "$0")/lib.sh"

hyptrace=$build/hyptrace
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# ---- perf kvm stat -----------------------------------------------------------------

# The guest stands still when either of the two begins and ends: both see the same exits.
run 'guest="/mnt/tests/lab/l1/guest monitor 1"
	$guest stop; sleep 1
	perf kvm stat record -a -o perf.data sleep 120 >perf.log 2>&1 & perf=$!
	within 20 test -s perf.data; sleep 2
	hyptrace record -e kvm:kvm_entry -e kvm:kvm_exit -b 4096 -o perf.dat -- \
		sh -c "sleep 0.5; $guest cont; sleep 1; $guest stop; sleep 0.5"
	status=$?
	kill -INT $perf; wait $perf
	perf kvm -i perf.data stat report >/mnt/out/perf-table 2>&1
	cp perf.dat /mnt/out; $guest cont; exit $status'
recorded "recorded beside perf kvm stat"
samples=$(sed -n 's/^Total Samples:\([0-9]*\).*/\1/p' "$out/perf-table")
at_least "$samples" 20 "perf saw exits" || diag "$(cat "$out/perf-table")"
# each stamps an exit by itself, and a busy machine may stop the emulator in between
is "$(O=$build tests/tools/perf-kvm-stat -g -t 100 "$out/perf-table" "$out/perf.dat")" "" \
	"the exit table is perf's: $samples samples"

# ---- chains -------------------------------------------------------------------------

run 'hyptrace record -B hyp -b 4096 -e kvm -e sched -e irq -e timer -b 4096 -A Guest@3 -e sched -e irq -e timer -b 4096 \
	-o all.dat -- sleep 1 && cp all.dat all-Guest.dat /mnt/out'
recorded "recorded host, hypervisor and guest"
both=("$out/all.dat" "$out/all-Guest.dat")
for preset in irq timer; do
	"$hyptrace" latency -q --csv --preset "$preset" "${both[@]}" >"$tmp/$preset"
	ok $? "latency --preset $preset" || diag "$(cat "$tmp/$preset")"
	at_least "$(perl -F, -ane '$at{$F[$_]} //= $_ for 0 .. $#F; $n += $F[$at{complete}] if exists $at{complete} and $F[$at{complete}] =~ /^\d+$/; END { print $n + 0 }' "$tmp/$preset")" \
		10 "... has complete chains from host to guest"
done
is "$("$hyptrace" stat -q --csv --show vcpus "${both[@]}" | perl -F, -ane 'chomp @F;
	if ($F[1] eq "vcpu" or $F[2] eq "vcpu") { @name = @F; next }
	my ($sum, $wall) = (0, 0);
	for (0 .. $#F) { $sum += $F[$_] if $name[$_] =~ /_ns$/ and $name[$_] ne "wall_ns" and $name[$_] ne "undecided_ns"; $wall = $F[$_] if $name[$_] eq "wall_ns" }
	print "@F: $sum\n" if $wall and $sum != $wall')" "" "states of vCPUs sum to the wall time"
"$hyptrace" path -q --at sched_switch@Guest --nth 20 "${both[@]}" >"$tmp/path" 2>&1
ok $? "path" || diag "$(cat "$tmp/path")"
diag "$(cat "$tmp/path")"

done_testing
