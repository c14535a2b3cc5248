#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Marks of a guest's programs on the host's timeline, with stock QEMU and its ivshmem-plain device: the example of
# QEMU's hypertrace patches, four clients at full speed, a recorder that is killed. HYPERTRACE_EVENTS=250000 gives
# the run of four clients a million events.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/marks.sh"

each=${HYPERTRACE_EVENTS-5000}
# seconds, for the run of so many on a busy machine
limit=$((300 + each / 100))
bin=${HYPTRACE_LAB_BIN-build-arm64}
export HYPTRACE_LAB_L2_OVERLAY=$tmp/overlay
export HYPTRACE_LAB_GUEST_ARGS='-object memory-backend-file,id=ht,share=on,mem-path=/tmp/ht,size=1M -device ivshmem-plain,memdev=ht'
mkdir -p "$tmp/overlay/marks"
for program in tests/data/hypertrace/my-hypertrace.c tests/lab/l2/marks.c; do
	aarch64-linux-gnu-gcc -static -O2 -Iagent/hypertrace -o "$tmp/overlay/marks/$(basename "$program" .c)" \
		"$program" "$bin/libhypertrace-guest.a" -lpthread >"$tmp/log" 2>&1
	ok $? "$program is built for the guest" || diag "$(cat "$tmp/log")"
done
vm_up -m protected -g 1 -w 0 -a 'hyptrace-agent -D'

in_guest="/mnt/tests/lab/l1/guest exec 1 $limit"
l1_timeout=$limit

# said WORD...: "EVENTS LOST" of the last recording
said() {
	sed -nE 's/^hyptrace: .*hypertrace: Guest: ([0-9]+) events(, ([0-9]+) lost)?.*/\1 \3/p' <<<"$stderr" | sed 's/ $/ 0/'
}

# ---- the example ---------------------------------------------------------------------

capture example.dat "hyptrace record --hypertrace -e kvm:kvm_entry -e kvm:kvm_exit -B hyp -o /tmp/t.dat -- $in_guest /marks/my-hypertrace &&
	cp /tmp/t.dat /mnt/out/example.dat"
recorded "the example of QEMU's patches, unchanged"
like "$output" 'Some computation' "... ran"
is "$(marks Guest "$out/example.dat")" "0 0x1 0xcafe 0xdead 0xbeef
0 0x0 0xcafe 0xdead 0xbeef" "... its two events, by stock report"
is "$(in_exits "$out/example.dat")" "2 2" "... at times when their vCPU had left the guest, before it came back"
is "$(l1 'ls /sys/kernel/tracing/instances')" "" "tracefs is as it was"

# ---- full speed -----------------------------------------------------------------------

run "cat >/tmp/run.sh <<-X
		$in_guest /marks/marks 4 $each
		cat /sys/kernel/tracing/instances/hypertrace/events/kvm/kvm_mmio/filter
	X
	hyptrace record --hypertrace -o /tmp/t.dat -- sh /tmp/run.sh && cp /tmp/t.dat /mnt/out/fast.dat"
recorded "four clients at full speed"
diag "$output"$'\n'"$stderr"
like "$output" 'gpa == 0x[0-9a-f]+' "the kernel filters by the doorbell's address"
read -r events lost <<<"$(said)"
is "$((events + lost))" "$((4 * each))" "emitted = recorded + counted lost ($lost)"
marks Guest "$out/fast.dat" >"$tmp/marks"
is "$(wc -l <"$tmp/marks")" "$events" "... recorded are as many as stock report shows"
is "$(out_of_order <"$tmp/marks")" 0 "each client's are in its order, with its arguments"

# ---- what an event costs ----------------------------------------------------------------

run "dir=\$($in_guest 'grep -l 0x1110 /sys/bus/pci/devices/*/device' | sed 's,/device\$,,')
	way() { $in_guest \"\$1 /marks/marks 1 1000 \$2\"; }
	way '' \$dir/resource0; way; way HYPERTRACE=marker; way HYPERTRACE=none
	hyptrace record --hypertrace -o /tmp/t.dat -- $in_guest /marks/marks 1 1000"
recorded "plain MMIO, rings, trace_marker, nothing; and rings while they are recorded"
diag "$output"

# ---- kill -9 -----------------------------------------------------------------------------

run "cd /tmp; hyptrace record --hypertrace -o k.dat & pid=\$!
	began() { grep -q hypertrace_from k.dat.spool/session; }
	within 60 began || exit
	$in_guest /marks/marks 2 100
	seen() { [ \$(stat -c %s k.dat.spool/texts/hypertrace.rings) -ge 8000 ]; }
	within 60 seen || exit
	kill -9 \$pid; wait \$pid
	$in_guest /marks/my-hypertrace
	hyptrace recover k.dat.spool && cp k.dat /mnt/out"
recorded "a recorder is killed, recover"
is "$(marks Guest "$out/k.dat" | wc -l)" 200 "... all that it had seen are joined"
like "$stderr" '2 doorbells had no event' "... those after it are counted"
is "$(l1 'ls /sys/kernel/tracing/instances')" "" "tracefs is as it was"

# ---- files that are none --------------------------------------------------------------------

run "head -c 1M /dev/urandom >/tmp/nonsense; hyptrace record --hypertrace=Guest=/tmp/nonsense -o /tmp/t.dat -- $in_guest /marks/my-hypertrace"
recorded "a memory with nonsense"
like "$stderr" "Guest, '/tmp/nonsense': it is not hypertrace's" "... is reported"
run "hyptrace record --hypertrace=Guest=/tmp -o /tmp/t.dat -- true"
refused 'no regular file' "a memory that is none"

# ---- QEMU's own events, of an emulated guest ----------------------------------------------

aarch64-linux-gnu-gcc -nostdlib -static -Wl,-Ttext=0x40080000 -o "$out/doorbell" tests/data/qemu/doorbell.S
ok $? "a guest of two marks is built"
run "timeout 100 qemu-system-aarch64 -M virt,highmem=off,gic-version=3 -m 64 -nographic -nodefaults -accel tcg -cpu cortex-a57 \\
		-object memory-backend-file,id=ht,share=on,mem-path=/tmp/two,size=1M -device ivshmem-plain,memdev=ht,addr=1 \\
		-kernel /mnt/out/doorbell -trace 'memory_region_ops_*' -msg timestamp=on -D /tmp/qemu.log && cp /tmp/qemu.log /mnt/out"
recorded "QEMU's log of it"
"$build/hyptrace" import -q --qemu-log "$out/qemu.log" -o "$out/qemu.dat"
is "$(report "$out/qemu.dat" | sed -nE 's/.* doorbell: +(client=.*[^ ]) *$/\1/p')" "client=3 seq=1 vcpu=0
client=3 seq=2 vcpu=0" "... has its marks"

done_testing
