#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The listings that people show of arm64 guests, with the plugins: the same numbers
# put into records come out as the lines of the listing, without what stock could
# not decode, and then with what they mean. The lines are those of the talk on
# virtualised automotive systems (trace-cmd's on QEMU guests with standard virtio
# and vhost-net), of crosvm's document on tracing, and of QEMU's on hypertrace.
. tests/integration/lib.sh

command -v trace-cmd >/dev/null || skip_all "no trace-cmd"
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins

# report OPTION...: without task, CPU and time
report() {
	trace-cmd report -i "$tmp/trace.dat" "$@" 2>&1 |
		sed -E -n 's/^.*\] +[0-9.]+: ([a-z_0-9]+): +/\1: /p' | sed 's/ *$//'
}

# ---- the talk ---------------------------------------------------------------------------

# BUFFER CPU PID US EVENT VALUES: the listing's numbers, the fields' order
"$build/tests/integration/timeline" "$tmp/trace.dat" 1 <<'E2'
top 0 1361 3907 kvm_exit 2 0x24 0xffffffc00872cd74
top 0 1361 3908 kvm_guest_fault 0xffffffc00872cd74 0x93810046 0xffffffc009675a50 0xa003000
top 0 1361 3910 kvm_mmio 2 4 0xa003a50 1
top 0 1361 3934 kvm_entry 0xffffffc00872cd78
top 0 1361 3971 kvm_exit 2 0x01 0xffffffc008be07e8
top 0 1361 3972 kvm_wfx_arm64 0 0
top 0 1361 3977 kvm_get_timer_map 0 1 -1 0
top 0 1361 3996 kvm_timer_save_state 1 0xf6643c1 1
top 0 1353 4377 kvm_irq_line 1 0 77 1
top 0 1353 4379 vgic_update_irq_pending 0 77 1
top 0 1361 4419 kvm_timer_update_irq 0 27 0
top 0 1795 9666 kvm_exit 0 0 0xffffffc0080f3298
top 0 1795 9672 kvm_entry 0xffffffc0080f3298
top 0 1795 9685 kvm_mmio 0 4 0xa003a60 0
E2
ok $? "a file with the talk's numbers"

# The listing's lines, of which stock spoilt two: kvm_exit began with <CANT FIND FIELD
# exit_reason>, and kvm_wfx_arm64 said wf>c<. (The slides' typing of WFx is not the kernel's.)
is "$(report -O kvm-arm64:plain)" 'kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffffffc00872cd74
kvm_guest_fault: ipa 0xa003000, hsr 0x93810046, hxfar 0xffffffc009675a50, pc 0xffffffc00872cd74
kvm_mmio: mmio write len 4 gpa 0xa003a50 val 0x1
kvm_entry: PC: 0xffffffc00872cd78
kvm_exit: TRAP: HSR_EC: 0x0001 (WFx), PC: 0xffffffc008be07e8
kvm_wfx_arm64: guest executed wfi at: 0x0000000000000000
kvm_get_timer_map: VCPU: 0, dv: 1, dp: -1, ep: 0
kvm_timer_save_state: CTL: 0x000001 CVAL:        0xf6643c1 arch_timer_ctx_index: 1
kvm_irq_line: Inject VGIC SPI interrupt (1), vcpu->idx: 0, num: 77, level: 1
vgic_update_irq_pending: VCPU: 0, IRQ 77, level: 1
kvm_timer_update_irq: VCPU: 0, IRQ 27, level 0
kvm_exit: IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffffffc0080f3298
kvm_entry: PC: 0xffffffc0080f3298
kvm_mmio: mmio unsatisfied-read len 4 gpa 0xa003a60 val 0x0' "the talk's lines, whole"

# what the numbers mean: ESR 0x93810046 is a write of 4 bytes (SAS 2) from w1 (SRT 1) that a
# level 2 translation fault (FSC 6) stopped; PPIs 16-31 are interrupts of one CPU, SPIs from 32
is "$(report | grep -E 'guest_fault|pending|update_irq|save_state')" 'kvm_guest_fault: ipa 0xa003000, hsr 0x93810046, hxfar 0xffffffc009675a50, pc 0xffffffc00872cd74 (DABT_LOW write of 4 bytes from w1, level 2 translation fault)
kvm_timer_save_state: CTL: 0x000001 CVAL:        0xf6643c1 arch_timer_ctx_index: 1 (vtimer enabled)
vgic_update_irq_pending: VCPU: 0, IRQ 77, level: 1 (SPI 45)
kvm_timer_update_irq: VCPU: 0, IRQ 27, level 0 (PPI 11, virtual timer)' "and what they mean"

bare=$(TRACEEVENT_PLUGIN_DIR=/nonexistent trace-cmd report "$tmp/trace.dat" 2>&1)
like "$bare" "CANT FIND FIELD exit_reason" "stock alone still prints what the talk shows"

# ---- crosvm and hypertrace -------------------------------------------------------------------

"$build/tests/integration/timeline" "$tmp/trace.dat" 1 <<'E2'
top 0 300 1 print fuse server: handle_message: in_header=InHeader { len: 64, opcode: 18, unique: 814, nodeid: 42, uid: 0, gid: 0, pid: 0, padding: 0 }
top 0 300 2 print 503 VirtioFs Enter: release - (self.tag: "mtdroot")(inode: 42)(handle: 35)
top 0 300 3 print 503 VirtioFs Exit: release
top 0 300 4 print Hello world.
top 0 300 5 print 512 VirtioFs Enter: process_fs_queue - (slot: 0)
top 0 300 6 print 512 VirtioFs Exit: process_fs_queue
top 0 300 7 print 23071@1473096085.744211:guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef
top 0 300 8 print 23071@1473096085.745763:guest_mem_before_trans cpu=0x5602e1f49c10 info=19
top 0 300 9 print guest_hypertrace cpu=0x5602e1f49c10  arg1=0 arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef
E2
ok $? "a file with crosvm's and QEMU's lines"
# the listing's program: event 1 starts, event 0 stops
printf '0 stop a:hex b:hex c:hex\n1 start a:hex b:hex c:hex\n' >"$tmp/desc"
is "$(report -O "hypertrace:desc=$tmp/desc" | sed 's/0x0: //')" 'print: fuse server: handle_message: in_header=InHeader { len: 64, opcode: 18, unique: 814, nodeid: 42, uid: 0, gid: 0, pid: 0, padding: 0 }
print: crosvm 503 VirtioFs enter release self.tag="mtdroot", inode=42, handle=35
print: crosvm 503 VirtioFs exit release
print: Hello world.
print: crosvm 512 VirtioFs enter process_fs_queue slot=0
print: crosvm 512 VirtioFs exit process_fs_queue
print: guest_hypertrace cpu=0x5602e1f49c10 start(a=0xcafe, b=0xdead, c=0xbeef)
print: 23071@1473096085.745763:guest_mem_before_trans cpu=0x5602e1f49c10 info=19
print: guest_hypertrace cpu=0x5602e1f49c10 stop(a=0xcafe, b=0xdead, c=0xbeef)' "each line of them, and those of others as they are"
done_testing
