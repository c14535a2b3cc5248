#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace import --qemu-log: a log of QEMU 7.2 (tests/data/README.md), lines as other versions have them, and files
# of the simple back end, which Debian's QEMU lacks: made here by its description, not by QEMU.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp # no plugins but the distribution's
unset TRACEEVENT_PLUGIN_DIR
command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"

# import FILE: sets status; messages are in $tmp/err
import() {
	rm -f "$tmp/out.dat"
	"$hyptrace" import --qemu-log "$1" -o "$tmp/out.dat" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# What stock report shows of the file, as TASK TIME: EVENT: TEXT
stock() {
	trace-cmd report -i "$tmp/out.dat" 2>/dev/null |
		sed -nE 's/^ *([^ ]+) +\[000\] +([0-9.]+: [a-z_]+:) *(.*[^ ]) *$/\1 \2 \3/p'
}

# refused MESSAGE NAME
refused() {
	is "$status" 1 "$2: exit status"
	like "$(cat "$tmp/err")" "$1" "$2: message"
	is "$(ls -d "$tmp/out.dat"* 2>/dev/null)" "" "$2: nothing is left"
}

# ---- a log ---------------------------------------------------------------------------

import tests/data/qemu/log.txt
is "$status" 0 "QEMU's log" || diag "$(cat "$tmp/err")"
is "$(cat "$tmp/err")" "hyptrace: 13 events, 2 of them doorbells, clock realtime: $tmp/out.dat" "... is told of"
is "$(stock)" "qemu-25476 1795407657.670605: print: pci_update_mappings_add ivshmem-plain 00:01.0 0,0x0+0x100
qemu-25476 1795407657.670748: print: pci_update_mappings_add ivshmem-plain 00:01.0 2,0x0+0x100000
qemu-25476 1795407657.679520: print: pci_update_mappings_del ivshmem-plain 00:01.0 0,0x0+0x100
qemu-25476 1795407657.679636: print: pci_update_mappings_del ivshmem-plain 00:01.0 2,0x0+0x100000
qemu-25478 1795407657.698211: memory_region_ops_write: cpu=0 mr=0x55c12614abd0 addr=0x8010 value=0x10000000 size=4 name=pcie-mmcfg-mmio
qemu-25478 1795407657.698243: print: pci_cfg_write ivshmem-plain 00:01.0 @0x10 <- 0x10000000
qemu-25478 1795407657.698254: memory_region_ops_write: cpu=0 mr=0x55c12614abd0 addr=0x8004 value=0x2 size=2 name=pcie-mmcfg-mmio
qemu-25478 1795407657.698257: print: pci_cfg_write ivshmem-plain 00:01.0 @0x4 <- 0x2
qemu-25478 1795407657.698259: print: pci_update_mappings_add ivshmem-plain 00:01.0 0,0x10000000+0x100
qemu-25478 1795407657.698486: print: pci_update_mappings_add ivshmem-plain 00:01.0 2,0x0+0x100000
qemu-25478 1795407657.698611: memory_region_ops_read: cpu=0 mr=0x55c1267f93b0 addr=0x10000008 value=0x0 size=4 name=ivshmem-mmio
qemu-25478 1795407657.698615: doorbell: client=3 seq=1 vcpu=0
qemu-25478 1795407657.698618: doorbell: client=3 seq=2 vcpu=0" "... by stock report"
is "$("$hyptrace" report -N "$tmp/out.dat" 2>/dev/null | sed 1d | tr -s ' ')" \
	"$(trace-cmd report -i "$tmp/out.dat" 2>/dev/null | sed 1d | tr -s ' ')" "... and by ours"
like "$("$hyptrace" stat --csv "$tmp/out.dat" 2>/dev/null)" ',hypertrace,doorbell,2,' "doorbells are events of hypertrace"

# the marks' arguments, out of the guest's memory: client 3 had 65,538 events, of which it holds the last four
perl -e 'print pack("QLLLLQx32", 0x31656361727470, 4, 4, 4, 64 + 4 * 64, 0);
	print pack("Qx56", $_) for 0, 0, 0, 65538;
	print "\0" x (3 * 4 * 48);
	print pack("Q6", $_, 1000 + $_, 7, $_ == 65538 ? (8, 9, 10) : (0xcafe, 0xdead, 0xbeef)) for 65537, 65538, 65535, 0' >"$tmp/memory"
"$hyptrace" import --qemu-log tests/data/qemu/log.txt --hypertrace vm="$tmp/memory" -o "$tmp/out.dat" 2>"$tmp/err"
is "$?,$(cat "$tmp/err")" "0,hyptrace: 2 of 2 doorbells have their mark's arguments
hyptrace: 13 events, 2 of them doorbells, clock realtime: $tmp/out.dat" "with the guest's memory"
is "$(stock | tail -2)" "qemu-25478 1795407657.698615: guest_hypertrace: client=3 vcpu=0 guest_time=0x103e9 arg1=0x7 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=vm
qemu-25478 1795407657.698618: guest_hypertrace: client=3 vcpu=0 guest_time=0x103ea arg1=0x7 arg2=0x8 arg3=0x9 arg4=0xa guest=vm" \
	"... each doorbell is the mark of its number"
truncate -s 8 "$tmp/memory"
"$hyptrace" import --qemu-log tests/data/qemu/log.txt --hypertrace vm="$tmp/memory" -o "$tmp/out.dat" 2>"$tmp/err"
like "$(cat "$tmp/err")" "the memory of vm, '$tmp/memory': the file is shorter than what it should hold" "a memory that is cut off"
like "$(cat "$tmp/err")" "0 of 2 doorbells" "... has no mark"
"$hyptrace" import --perfetto x --hypertrace vm=y -o z 2>"$tmp/err"
is "$?,$(cat "$tmp/err")" "2,hyptrace import: --hypertrace is for --qemu-log: GUEST=FILE" "--hypertrace without a log"

# QEMU 11's head; what else there is on standard error; threads that wrote past each other; the hypertrace patches'
cat >"$tmp/log" <<'L'
VNC server running on ::1:5900
2016-09-05T17:28:05.745999Z memory_region_ops_write cpu 1 mr 0x55d8da19b120 addr 0x1000000c value 0x10000ffff size 4 name 'ivshmem-mmio'
23071@1473096485.744211:guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef
23072@1473096485.744210:memory_region_ops_read cpu -1 mr (nil) addr 0x3 value 0x30001 size 4
23071@1473096485.745763:guest_mem_before_trans cpu=0x5602e1f49c10 info=19
23071@1473096485.745770:guest_mem_before_exec cpu=0x5602e1f49c10 vaddr=0x00007fff12340000 info=0x13
23071@1473096485.745771:guest_cpu_enter cpu=0x5602e1f49c10 
23071@1473096485.745772:kvm_run_exit cpu_index 0, reason 6
23071@1473096485.745773:kvm_run_exit cpu_index 0, reason six
23071@1473096485.745774:virtio_queue_notify vdev 0x1 n 2 vq 0x3 and more
23071@1473096485.74577:virtio_notify vdev 0x1 vq 0x3
memory_region_ops_write cpu 1 mr 0x55d8da19b120 addr 0x1000000c value 0x30001 size 4 name 'ivshmem-mmio'
L
import "$tmp/log"
is "$(cat "$tmp/err")" "hyptrace: 3 lines are no events with a time: they were passed over
hyptrace: 9 events, 1 of them doorbells, clock realtime: $tmp/out.dat" "other lines are counted"
is "$(stock)" "qemu-23072 1473096485.744210: memory_region_ops_read: cpu=-1 mr=0x0 addr=0x3 value=0x30001 size=4 name=
qemu-23071 1473096485.744211: guest_hypertrace: cpu=0x5602e1f49c10 arg1=0x1 arg2=0xcafe arg3=0xdead arg4=0xbeef
qemu-23071 1473096485.745763: guest_mem_before_trans: cpu=0x5602e1f49c10 info=19
qemu-23071 1473096485.745770: guest_mem_before_exec: cpu=0x5602e1f49c10 vaddr=0x7fff12340000 info=19
qemu-23071 1473096485.745771: guest_cpu_enter: cpu=0x5602e1f49c10
qemu-23071 1473096485.745772: kvm_run_exit: cpu_index=0 reason=6
qemu-23071 1473096485.745773: print: kvm_run_exit cpu_index 0, reason six
qemu-23071 1473096485.745774: print: virtio_queue_notify vdev 0x1 n 2 vq 0x3 and more
<...>--1 1473096485.745999: doorbell: client=0 seq=65535 vcpu=1" \
	"both heads, in the order of time; what does not read as its event is a text"

grep '^memory' "$tmp/log" >"$tmp/timeless"
import "$tmp/timeless"
refused 'have no times: start QEMU with -msg timestamp=on' "a log without times"
import tests/data/README.md
refused "'tests/data/README.md' has no trace events of QEMU" "no log"
import "$tmp/none"
refused "cannot read '$tmp/none'" "no file"
cp tests/data/qemu/log.txt "$tmp/out.dat"
"$hyptrace" import --qemu-log "$tmp/out.dat" -o "$tmp/out.dat" 2>"$tmp/err"
is "$?" 1 "the input as the output: exit status"
ok "$(cmp -s tests/data/qemu/log.txt "$tmp/out.dat"; echo $?)" "... it is as it was"
for wrong in "-i x" "--perfetto x" "--hyp x" "--formats x"; do
	# shellcheck disable=SC2086
	"$hyptrace" import --qemu-log tests/data/qemu/log.txt $wrong -o "$tmp/no.dat" 2>"$tmp/err"
	is "$?" 2 "with $wrong"
done

# ---- the simple back end -------------------------------------------------------------

# simple STEP...: "v N" the header, "m ID NAME", "e ID NS PID ARGUMENT..." (numbers, or texts after a quote), as
# trace/simple.c writes them; "x HEX": these bytes
cat >"$tmp/simple" <<'P'
for (@ARGV) {
	my ($what, @w) = split;
	print pack("Q<3", ~0, 0xf2b177cb0aa429b4, $w[0]) if $what eq "v";
	print pack("Q<2 L</a", 0, @w) if $what eq "m";
	print pack("H*", $w[0]) if $what eq "x";
	next if $what ne "e";
	my ($id, $ns, $pid, @args) = @w;
	my $args = join "", map { /^'(.*)/ ? pack("L</a", $1) : pack("Q<", oct $_) } @args;
	print pack("Q< Q< Q< L< L<", 1, $id < 0 ? ~0 - 1 : $id, $ns, 24 + length $args, $pid), $args;
}
P
simple() {
	perl "$tmp/simple" "$@" >"$tmp/trace-1"
}
names=("m 0 memory_region_ops_write" "m 1 guest_mem_before_exec" "m 2 guest_cpu_enter" "m 3 load_file")
events=("e 0 5000123000 77 0xffffffffffffffff 0x55d8 0x1000000c 0x20005 0x4 'ivshmem-mmio"
	"e 0 5000100000 77 0x1 0x55d8 0x100 0x7 0x1 'uart" "e 2 5000200000 77 0x5602"
	"e 1 5000300000 77 0x5602 0x7fff12340000 0x13" "e 3 5000400000 77 'pc" "e -1 5000500000 77 0x7"
	"e 3 5000600000 77 0x1 0x2")

simple "v 4" "${names[@]}" "${events[@]}"
cp "$tmp/trace-1" "$tmp/whole"
import "$tmp/whole"
is "$status" 0 "the simple back end's file" || diag "$(cat "$tmp/err")"
is "$(cat "$tmp/err")" "hyptrace: warning: 7 events were lost: QEMU wrote slower than they came
hyptrace: 6 events, 1 of them doorbells, clock mono: $tmp/out.dat" "... is told of, with what QEMU lost"
is "$(stock)" "qemu-77 5.000100: memory_region_ops_write: cpu=1 mr=0x55d8 addr=0x100 value=0x7 size=1 name=uart
qemu-77 5.000123: doorbell: client=2 seq=5 vcpu=-1
qemu-77 5.000200: guest_cpu_enter: cpu=0x5602
qemu-77 5.000300: guest_mem_before_exec: cpu=0x5602 vaddr=0x7fff12340000 info=19
qemu-77 5.000400: print: load_file 020000007063
qemu-77 5.000600: print: load_file 0x1 0x2" "... by stock report; arguments that are not known are numbers"
like "$("$hyptrace" report "$tmp/out.dat" 2>/dev/null)" '7 EVENTS DROPPED' "... the lost ones at their place"

simple "v 4" "${names[@]}" "${events[0]}" "e 9 5000600000 77 0x1" "e 1 5000700000 77 0x1" "x 0100"
import "$tmp/trace-1"
is "$(cat "$tmp/err")" "hyptrace: warning: '$tmp/trace-1' ends with what is no whole record: what is before it was read
hyptrace: warning: 1 records are of events without a name
hyptrace: 2 events, 1 of them doorbells, clock mono: $tmp/out.dat" "what makes no sense is counted"
is "$(stock | tail -n 1)" "qemu-77 5.000700: print: guest_mem_before_exec 0x1" "an event with other arguments is a text"
simple "v 3" "${names[@]}" "${events[0]}"
import "$tmp/trace-1"
refused 'is version 3 of QEMU.s simple back end: only 4 can be read' "another version"
simple "v 4" "${names[@]}"
import "$tmp/trace-1"
refused 'has no trace events of QEMU' "no events"

done_testing
