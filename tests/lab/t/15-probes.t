#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Events that are made for a recording: -e 'p:...', --preset virtio and qemu, on the host and
# in a guest; and that none of them stays.
. "$(dirname "$0")/lib.sh"

shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'
guest 'hyptrace-agent -D -p 825 --probes'

# What is in dynamic_events and which events are on, in L1 and in the guest.
l1_state='{ cat $t/dynamic_events; cat $t/set_event; }'
before=$(l1 "$l1_state"; guest 'cat /sys/kernel/tracing/dynamic_events')

run "hyptrace record --guest-timeout 60 -o probes.dat -e 'p:hv/read vfs_read count=\$arg3:u64' -f 'count > 0' \
		-e 'f:hv/open do_sys_openat2' -e sched_switch -B own -e 'r:hv/ret vfs_read ret=\$retval:s64' \
		-A Guest@3:825 -e 'p:hv/inside do_sys_openat2 dfd=\$arg1:s32' -- \
		sh -c 'for i in 1 2 3 4; do cat /proc/uptime; sleep 0.5; done' >/dev/null &&
	cp probes*.dat /mnt/out && $l1_state"
recorded "probes on the host, in an instance and in the guest"
is "$(grep -c hv <<<"$output")" 0 "the host has none left"
is "$(guest 'cat /sys/kernel/tracing/dynamic_events')" "" "nor has the guest"
reports "$out/probes.dat" 'hv:read|read: .*count=' "kprobe"
reports "$out/probes.dat" ' open: ' "fprobe"
reports "$out/probes.dat" '^ *own: .* ret: .*ret=[0-9]+' "in an instance"
reports "$out/probes-Guest.dat" ' inside: .*dfd=-100' "the guest's"
n=$(trace-cmd report "$out/probes.dat" 2>/dev/null | grep -c ' read: .*count=0 *$')
is "$n" 0 "its filter holds"

run "hyptrace record --guest-timeout 60 -o no.dat -A Guest@3 -e 'p:hv/inside vfs_read' -- true"
refused 'a probe reads any memory: only an agent with --probes makes it' "an agent makes none by itself"
run "hyptrace record -o no.dat -e 'p:hv/x no_such_function' -- true; s=\$?; $l1_state; exit \$s"
refused "cannot write 'p:hv/x no_such_function' to 'dynamic_events'" "a function that is not there"
run "echo 'p:hv/mine vfs_read' >>\$t/dynamic_events
	hyptrace record -o no.dat -e 'p:hv/mine vfs_write' -- true; s=\$?; cat \$t/dynamic_events; echo '-:hv/mine' >>\$t/dynamic_events; exit \$s"
refused "there is an event hv:mine already" "a name that is taken"
is "$output" "p:hv/mine vfs_read" "what is somebody's stays"

# ---- a program's own static probe, by perf's line --------------------------------------------

aarch64-linux-gnu-gcc -O1 -static -o "$out/usdt" tests/lab/l1/usdt.c
ok $? "a program with a static probe is built"
run 'cp /mnt/out/usdt /tmp; export HOME=/tmp; perf buildid-cache --add /tmp/usdt && line=$(perf probe -D sdt_qemu:virtio_queue_notify) &&
	echo "$line" && hyptrace record -o usdt.dat -e "$line" -- /tmp/usdt && cp usdt.dat /mnt/out &&'" $l1_state"
recorded "a static probe"
like "$output" '^p:sdt_qemu/virtio_queue_notify /tmp/usdt:0x[0-9a-f]+\(0x[0-9a-f]+\) arg1=' "... with its semaphore, as perf tells"
is "$(grep -c sdt_ <<<"$(tail -n +2 <<<"$output")")" 0 "... none is left"
notified() {
	report "$1" | sed -nE 's/.* virtio_queue_notify: .*arg1=(\w+) arg2=(\S+).*/\1 \2/p' | paste -s -d ,
}
is "$(notified "$out/usdt.dat")" "0 -1,1 -1,2 -1,3 -1,4 -1" "... each of its events, with their arguments"

# ---- the preset of those: L1's QEMU, Debian's, has none; the program is taken for one that has one ------

run "hyptrace record -o no.dat --preset qemu -- true; s=\$?; $l1_state; ls -d /tmp/hyptrace-perf*; exit \$s"
refused 'qemu-system-aarch64 has none of the probes: .* dtrace' "--preset qemu where no QEMU has its probes"
is "$(grep -cE 'sdt_|perf' <<<"$output")" 0 "... leaves nothing"
run "unset HOME; cp /tmp/usdt /tmp/qemu-system-usdt; /tmp/qemu-system-usdt -name Probed & pid=\$!
	found() { hyptrace list -g | grep -q Probed; }
	within 20 found && hyptrace record -o qemu.dat --preset qemu -- sh -c 'kill -USR1 \$0; exec tail --pid=\$0 -f /dev/null' \$pid &&
	cp qemu.dat /mnt/out && $l1_state"
recorded "--preset qemu while one runs that has one of them"
like "$stderr" '/tmp/qemu-system-usdt: sdt_qemu:virtio_queue_notify$' "... which it names"
is "$(grep -c sdt_ <<<"$output")" 0 "... none is left"
is "$(notified "$out/qemu.dat")" "0 -1,1 -1,2 -1,3 -1,4 -1" "... each of its events"

# ---- the preset: vsock's queues carry what the guest's agent sends ----------------------------

run "hyptrace record --guest-timeout 60 -o queues.dat --preset virtio -e kvm -e sched -A Guest@3 --preset virtio -e sched -- sleep 2 &&
	cp queues*.dat /mnt/out && $l1_state"
recorded "--preset virtio on both sides"
is "$(grep -c virtio <<<"$output")" 0 "none is left"
reports "$out/queues-Guest.dat" ' kick: .*queue="[a-z.0-9]+"' "the guest's driver kicks a queue with a name"
reports "$out/queues-Guest.dat" ' add(_in|_out)?: .*device=[0-9]+ queue="[a-z.0-9]+".* len0=[1-9]' "and what it puts in"
reports "$out/queues-Guest.dat" ' interrupt: .*queue="[a-z.0-9]+"' "and is told"
reports "$out/queues.dat" ' doorbell: .*addr=0x' "KVM takes the kick"
reports "$out/queues.dat" ' signal: ' "vhost tells the guest"

# ---- kill -9 ------------------------------------------------------------------------------------

run "begin kill.dat -e 'p:hv/read vfs_read' || exit
	grep -c hv/read \$t/dynamic_events
	slay
	hyptrace recover kill.dat.spool && $l1_state"
is "$(head -n 1 <<<"$output")" 1 "the event is there while it is recorded"
is "$(tail -n +2 <<<"$output" | grep -c hv/)" 0 "recover removes it"

is "$(l1 "$l1_state"; guest 'cat /sys/kernel/tracing/dynamic_events')" "$before" "all is as it was before"
guest 'kill $(pgrep -f -- --probes)'
done_testing
