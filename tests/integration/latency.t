#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace latency: pairs and presets, on made-up files whose numbers are known, on the listings
# of a talk, and on real captures against a reference that reads hyptrace export --json.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home
arm=tests/data/formats-arm64.dat x86=tests/data/formats-x86.dat hyp=tests/data/lab-protected.dat

make_trace() { # FORMATS FILE, script on standard input
	"$build/tests/integration/make-trace" "$2" tests/integration/events/latency "$1" || diag "cannot make $2"
}

latency() {
	"$hyptrace" latency "$@" 2>&1
}

# The lines of one table as CSV, without its name and head; columns by number.
table() { # NAME COLUMNS OPTION...
	local name=$1 columns=$2

	shift 2
	"$hyptrace" latency --csv "$@" 2>"$tmp/err" | grep "^$name," | sed 1d | cut -d , -f "$columns"
}

fails() { # STATUS PATTERN NAME OPTION...
	local status=$1 pattern=$2 name=$3 err
	shift 3
	err=$("$hyptrace" latency "$@" 2>&1 >/dev/null)
	is "$?" "$status" "$name: status"
	like "$err" "$pattern" "$name: message"
}

# ---- the talk ------------------------------------------------------------------------------

# "Debugging Tools and Techniques for Virtualized Automotive Systems", H. Ishii: the two listings of
# "Tracing Interruption Between Host and Guest", line by line and by hand, without the probe
# kp_tun_get_user and sched_stat_runtime, which no pair needs.
standard=$tmp/standard.dat vhost=$tmp/vhost.dat
# This one has the formats of all events.
"$build/tests/integration/make-trace" "$standard" $arm - <<'E'
cpus 8
task 1353 qemu-system-aar
task 1361 qemu-system-aar
7593.923907 6 1361 kvm_exit ret=2 esr_ec=0x24 vcpu_pc=0xfffffff00872cd74
7593.923908 6 1361 kvm_guest_fault ipa=0xa003000 hsr=0x93810046 hxfar=0xfffffff009675a50 vcpu_pc=0xfffffff00872cd74
7593.923910 6 1361 kvm_mmio type=2 len=4 gpa=0xa003a50 val=1
7593.923919 6 1361 sched_waking comm=qemu-system-aar pid=1353 prio=120 target_cpu=7
7593.923926 6 1361 sched_wakeup comm=qemu-system-aar pid=1353 prio=120 target_cpu=7
7593.923934 6 1361 kvm_entry vcpu_pc=0xfffffff00872cd78
7593.923936 7 0 sched_switch prev_comm=swapper/7 prev_prio=120 next_comm=qemu-system-aar next_pid=1353 next_prio=120
7593.923971 6 1361 kvm_exit ret=2 esr_ec=1 vcpu_pc=0xfffffff008be07e8
7593.923972 6 1361 kvm_wfx_arm64
7593.923977 6 1361 kvm_get_timer_map direct_vtimer=1 direct_ptimer=-1
7593.923990 6 1361 sched_switch prev_comm=qemu-system-aar prev_pid=1361 prev_prio=120 prev_state=1 next_comm=swapper/6 next_prio=120
7593.923994 6 1361 kvm_get_timer_map direct_vtimer=1 direct_ptimer=-1
7593.923996 6 1361 kvm_timer_save_state ctl=1 cval=0xf6643c1 timer_idx=1
7593.923997 6 1361 kvm_get_timer_map direct_vtimer=1 direct_ptimer=-1
7593.924377 7 1353 kvm_irq_line type=1 irq_num=77 level=1
7593.924379 7 1353 vgic_update_irq_pending irq=77 level=1
7593.924386 7 1353 sched_waking comm=qemu-system-aar pid=1361 prio=120 target_cpu=6
7593.924392 7 1353 sched_wakeup comm=qemu-system-aar pid=1361 prio=120 target_cpu=6
7593.924402 6 0 sched_switch prev_comm=swapper/6 prev_prio=120 next_comm=qemu-system-aar next_pid=1361 next_prio=120
7593.924417 6 1361 kvm_get_timer_map direct_vtimer=1 direct_ptimer=-1
7593.924419 6 1361 kvm_timer_update_irq irq=27
7593.924420 6 1361 vgic_update_irq_pending irq=27
7593.924431 6 1361 kvm_timer_restore_state ctl=1 cval=0xf6643c1 timer_idx=1
7593.924432 6 1361 kvm_timer_emulate
7593.924440 6 1361 kvm_halt_poll_ns new=10000
7593.924441 6 1361 kvm_vcpu_wakeup ns=462722 waited=1 valid=1
7593.924478 6 1361 kvm_mmio type=0 len=4 gpa=0xa003a60
E
make_trace $arm "$vhost" <<'E'
task 1781 qemu-system-aar
task 1793 vhost-1781
task 1795 qemu-system-aar
83328.209495 5 1795 kvm_exit ret=2 esr_ec=0x24 vcpu_pc=0xffffffc00872cd74
83328.209496 5 1795 kvm_guest_fault ipa=0xa003000 hsr=0x93810046 hxfar=0xffffffc009675a50 vcpu_pc=0xffffffc00872cd74
83328.209498 5 1795 kvm_mmio type=2 len=4 gpa=0xa003a50 val=1
83328.209512 5 1795 sched_waking comm=vhost-1781 pid=1793 prio=120 target_cpu=1
83328.209522 1 0 sched_wakeup comm=vhost-1781 pid=1793 prio=120 target_cpu=1
83328.209525 5 1795 kvm_entry vcpu_pc=0xffffffc00872cd78
83328.209525 1 0 sched_switch prev_comm=swapper/1 prev_prio=120 next_comm=vhost-1781 next_pid=1793 next_prio=120
83328.209568 1 1793 sched_waking comm=qemu-system-aar pid=1781 prio=120 target_cpu=4
83328.209574 1 1793 sched_switch prev_comm=vhost-1781 prev_pid=1793 prev_prio=120 prev_state=1 next_comm=swapper/1 next_prio=120
83328.209577 4 0 sched_wakeup comm=qemu-system-aar pid=1781 prio=120 target_cpu=4
83328.209584 4 0 sched_switch prev_comm=swapper/4 prev_prio=120 next_comm=qemu-system-aar next_pid=1781 next_prio=120
83328.209649 4 1781 kvm_irq_line type=1 irq_num=77 level=1
83328.209651 4 1781 vgic_update_irq_pending irq=77 level=1
83328.209666 5 1795 kvm_exit ret=0 vcpu_pc=0xffffffc0080f3298
83328.209672 5 1795 kvm_entry vcpu_pc=0xffffffc0080f3298
83328.209685 5 1795 kvm_mmio type=0 len=4 gpa=0xa003a60
E

is "$(latency --from kvm_mmio/type==2 --to kvm_mmio/type==0 "$standard")" \
'From kvm_mmio/type==2 to kvm_mmio/type==0
vcpu        count    total      min      avg      p50      p99    p99.9      max
thread ...      1  568.0us  568.0us  568.0us  568.0us  568.0us  568.0us  568.0us

Events, and how many of them are pairs
vcpu         from  to  pairs  undecided  lost  from only  to only  bound
thread 1361     1   1      1          0     0          0        0    0ns
percentiles are within 0.8 % of their value; the rest is exact
paired by vcpu, which these events have in common; --key none: by machine' \
	"the talk, standard virtio: 568 us from the write to the read"
like "$(latency --from kvm_mmio/type==2 --to kvm_mmio/type==0 --key pid "$vhost")" '^1795 +1  187.0us  187.0us' \
	"the talk, vhost-net: 187 us"
is "$(latency --preset virtio "$standard" | head -6)" \
"virtio: each stage since the one before, from 'notification' on
queue        until         count      min      avg      p50      p99      max
0xa003a50:1  worker woken      1  9.000us  9.000us  9.000us  9.000us  9.000us
0xa003a50:1  worker runs       1  17.00us  17.00us  17.00us  17.00us  17.00us
0xa003a50:1  interrupt         1  443.0us  443.0us  443.0us  443.0us  443.0us
0xa003a50:1  total             1  469.0us  469.0us  469.0us  469.0us  469.0us" \
	"... its stages: QEMU does the work"
is "$(table latency 2-5 --preset virtio "$vhost")" \
'0xa003a50:1,worker woken,1,14000
0xa003a50:1,worker runs,1,13000
0xa003a50:1,interrupt,1,126000
0xa003a50:1,total,1,153000' "... with vhost the thread vhost-1781, and 1781 itself, which it works for"
like "$(latency --preset virtio "$vhost")" "^there is no guest's file: the steps after 'interrupt' are not known" \
	"... and what the guest does then is not guessed"
is "$(table latency 2-5 --preset abort "$vhost")" \
'thread 1795,fault handled,1,1000
thread 1795,entry,1,29000
thread 1795,total,1,30000' "the abort of the talk"

# ---- pairs: how they are counted ---------------------------------------------------------------

pairs=$tmp/pairs.dat
make_trace $arm "$pairs" <<'E'
task 7 seven
1.000000 0 7 kvm_exit ret=2
1.000010 0 7 kvm_entry
1.000020 0 7 kvm_entry
1.000030 1 7 kvm_exit ret=0
1.000040 1 7 kvm_exit ret=2
1.000045 0 8 kvm_exit ret=2
1.000100 1 7 kvm_entry
1.000200 0 7 kvm_exit ret=2
1.000300 0 8 kvm_entry
E
is "$(table events 2-8 --from kvm_exit --to kvm_entry --key pid "$pairs")" \
'8,1,1,1,0,0,0
7,4,3,2,0,0,2' "of two begins the later counts, and each end has one; the rest is counted"
is "$(table latency 2-4,5,6 --from kvm_exit --to kvm_entry --key pid "$pairs")" \
'8,1,255000,255000,255000
7,2,70000,10000,35000
(all),3,325000,10000,108333' "... count, total, min, avg"
is "$(table latency 2-4 --from kvm_exit --to kvm_entry --key none "$pairs")" 'host,3,165000' "--key none: any event of the machine"
is "$(table latency 2-4 --from kvm_exit --to kvm_entry --key machine "$pairs")" 'host,3,165000' "... or machine, as its table calls it"
is "$(table latency 2-4 --from kvm_exit --to kvm_entry "$pairs")" $'thread 8,1,255000\nthread 7,2,70000\n(all),3,325000' \
	"without a key KVM's events have the vCPU in common"
is "$(table latency 2-4 --from sched_waking --to sched_switch "$vhost")" $'1781,1,16000\n1793,1,13000\n(all),2,29000' \
	"... sched's the task that is woken and comes"
like "$(latency --from sched_waking --to sched_switch "$vhost")" '^paired by pid, which' "... which is said"
is "$(table latency 2-4 --from sched_switch --to sched_waking "$standard")" '1361,1,396000' "... a sleep begins with a task that leaves"
is "$(table latency 2-4 --from sched_switch --to sched_switch "$standard")" '6,1,412000' "... from one switch to the next it is the CPU"
is "$(table latency 2-4 --from kvm_mmio/type==2 --to sched_waking "$vhost")" 'host,1,14000' "events with no key in common"
like "$(latency --from kvm_mmio --to sched_waking "$vhost")" '^paired by machine, whatever .* specify one: --key KEY$' "... which is said"
is "$(table latency 2 --from vgic_update_irq_pending --to kvm_entry "$vhost")" 'host' \
	"an interrupt of another thread's making has the vCPU only by its field, in a file that names guests"
is "$(table latency 2-4 --from kvm_exit --to kvm_entry --key cpu "$pairs")" $'0,2,110000\n1,1,60000\n(all),3,170000' "by CPU"
is "$(table latency 2-4 --from kvm:kvm_exit@host/ret==2 --to kvm:kvm_entry --key common_pid "$pairs")" \
	$'8,1,255000\n7,2,70000\n(all),3,325000' "SYSTEM:, @host, a filter, a field"
is "$(table latency 2-4 --from kvm_entry --to kvm_entry --key pid "$pairs")" '7,2,90000' \
	"an event to itself: the time between two of them"
is "$(table latency 2-4 --from sched_waking --to sched_switch --key pid=next_pid "$vhost")" \
	$'1781,1,16000\n1793,1,13000\n(all),2,29000' "fields of different names"
is "$(table latency 2 --from kvm_exit --to kvm_entry --key vcpu "$pairs")" $'thread 8\nthread 7\n(all)' \
	"vCPUs that no file names are threads"

# ---- losses -----------------------------------------------------------------------------------------

make_trace $hyp "$tmp/lost.dat" <<'E'
1.000000 0 7 kvm_exit
1.000010 0 7 kvm_entry
1.000015 1 9 sched_switch
1.000020 0 7 kvm_exit
1.000030 0 7 kvm_entry
lost 1 3
1.000040 1 9 sched_switch
1.000050 0 7 kvm_exit
1.000060 0 7 kvm_entry
buffer hyp
1.000001 0 7 hyp_enter
lost 0 2
1.000053 0 7 hyp_exit
1.000054 0 7 hyp_enter
1.000055 0 7 hyp_exit
E
is "$(table events 2-9 --from kvm_exit --to kvm_entry --key pid "$tmp/lost.dat")" '7,3,3,2,0,1,0,0' \
	"pairs with lost events in between are left out, also where the loss is told behind them"
is "$(table events 2-9 --from hyp_enter --to hyp_exit "$tmp/lost.dat")" '0,2,2,1,0,1,0,0' "the hypervisor's have the CPU"
is "$(table events 2-9 --from hyp_enter --to hyp_exit --key cpu "$tmp/lost.dat")" '0,2,2,1,0,1,0,0' \
	"... the hypervisor's and the kernel's each by their own"
is "$(table events 2-9 --from kvm_exit --to kvm_entry --key cpu "$tmp/lost.dat")" '0,3,3,3,0,0,0,0' \
	"... by CPU, those of that CPU"
like "$(latency --from kvm_exit --to kvm_entry --key pid "$tmp/lost.dat")" '^1 pairs are left out: events were lost in between' \
	"... which is said"

# ---- two machines ---------------------------------------------------------------------------------------

host=$tmp/host.dat guest=$tmp/guest.dat
make_trace $arm "$host" <<'E'
id 11
guest vm 22 0:100 1:101
1.000000 0 100 kvm_entry
1.000100 0 100 kvm_exit
1.000200 0 100 kvm_entry
1.000300 1 101 kvm_entry
1.000400 1 50 kvm_entry
1.000500 1 50 sched_switch
E
guest_lines() {
	cat <<'E'
id 22
1.000503 0 9 irq_handler_entry irq=5 name=virtio0
1.000750 0 9 irq_handler_entry irq=5 name=virtio0
1.000801 1 9 irq_handler_entry irq=6 name=virtio1
E
}
{ guest_lines; echo "shift 11 -500000 2000"; } | make_trace $arm "$guest"
cross=(--from kvm_entry@host --to irq_handler_entry@guest --key vcpu "$host" "$guest")
is "$(table latency 2-4 "${cross[@]}")" 'vm 0,2,53000' "host and guest meet on the vCPU"
is "$(table events 2-10 "${cross[@]}")" \
$'vm 0,2,2,2,0,0,0,0,2000\nvm 1,1,1,0,1,0,0,0,0\nthread 50,1,0,0,0,0,1,0,0' \
	"... nearer than the bound: undecided; the bound of those that count"
like "$(latency "${cross[@]}")" "^1 pairs are undecided: their events are nearer than the clocks' bounds" "... which is said"
is "$(table latency 2-4 --from kvm_entry@host --to irq_handler_entry@vm --key guest "$host" "$guest")" 'vm,2,53000' "by guest"
is "$(table latency 2-4 --from kvm_exit@host --to irq_handler_entry@guest --key none "$host" "$guest")" 'all,1,150000' \
	"two machines that are named meet without a key"
is "$(table latency 2-4 --from kvm_entry@host --to irq_handler_entry@guest "$host" "$guest")" 'vm 0,2,53000' \
	"... by default KVM's and the guest's on the vCPU"
is "$(table events 2-4 --from kvm_entry --to irq_handler_entry "$host" "$guest")" $'host,4,0\nvm,0,3' \
	"... others are told apart"
{ guest_lines; echo "shift 11 -500000"; } | make_trace $arm "$guest"
is "$(table events 2-8 "${cross[@]}")" $'vm 0,2,2,0,2,0,0\nvm 1,1,1,0,1,0,0\nthread 50,1,0,0,0,0,1' "no bound: nothing is certain"
like "$(latency "${cross[@]}")" "guest.dat has no bounds for its clock \(hyptrace sync\)" "... which is said"

# ---- presets ----------------------------------------------------------------------------------------------

make_trace $arm "$host" <<'E'
id 11
guest vm 22 0:100 1:101
task 100 vcpu
# vCPU 1's timer fires, and is handled
1.000000 1 101 kvm_exit ret=2 esr_ec=1
1.001000 1 101 kvm_timer_update_irq vcpu_id=1 irq=27 level=1
1.001001 1 101 vgic_update_irq_pending vcpu_id=1 irq=27 level=1
1.001020 1 101 kvm_entry
# a task of vCPU 0 wakes one on vCPU 1, which sleeps
1.002000 1 101 kvm_exit ret=2 esr_ec=1
1.002100 0 100 sched_waking pid=101 target_cpu=1
1.002130 1 101 kvm_vcpu_wakeup ns=1130000 waited=1 valid=1
1.002150 1 101 kvm_entry
# a hypercall
1.003000 0 100 kvm_exit ret=2 esr_ec=0x16
1.003001 0 100 kvm_hvc_arm64 r0=0x84000000
1.003007 0 100 kvm_entry
# a notification of a busy worker wakes nobody; then one that does
1.004000 0 100 kvm_mmio type=2 gpa=0x1000 val=2
1.004005 0 100 kvm_entry
1.004010 0 100 sched_waking pid=60 target_cpu=2
1.004020 0 100 kvm_mmio type=2 gpa=0x1000 val=3
1.004030 0 100 sched_waking pid=60 target_cpu=2
1.004035 0 100 kvm_entry
1.004040 2 0 sched_switch next_pid=60
1.004060 2 60 vgic_update_irq_pending vcpu_id=1 irq=50 level=1
1.004070 1 101 kvm_entry
E
make_trace $arm "$guest" <<'E'
id 22
shift 11 0 1000
1.000010 1 0 hrtimer_start hrtimer=0xabc
1.000015 1 0 hrtimer_start hrtimer=0xdef
1.001030 1 0 irq_handler_entry irq=3 name=arch_timer
1.001032 1 0 hrtimer_expire_entry hrtimer=0xabc
1.002090 0 70 sched_waking pid=71 target_cpu=1
1.002110 0 70 sched_waking pid=72
1.002115 0 70 sched_switch prev_pid=70 next_pid=72
1.002160 1 0 ipi_entry
1.002190 1 0 sched_switch next_pid=71
1.004080 1 71 irq_handler_entry irq=9 name=virtio1
E
is "$(table latency 2-5,11 --preset timer "$host" "$guest")" \
'vm 1,fired,1,990000,990000
vm 1,vCPU runs,1,20000,20000
vm 1,handler,1,12000,12000
vm 1,total,1,1022000,1022000' "timer"
is "$(table latency 2-5 --preset wakeup "$host" "$guest")" \
'vm 1,injection,1,10000
vm 1,vCPU wakes,1,30000
vm 1,vCPU runs,1,20000
vm 1,handler,1,10000
vm 1,task runs,1,30000
vm 1,total,1,100000' "wakeup"
is "$(table stopped 2-4 --preset wakeup "$host" "$guest")" \
$'injection,1,0\nvCPU wakes,0,0\nvCPU runs,0,0\nhandler,0,0\ntask runs,0,0' "... a wake-up without an injection is none"
is "$(table latency 2-5 --preset irq "$host" "$guest")" \
'vm 1,vCPU runs,1,19000
vm 1,handler,1,10000
vm 1,total,1,29000' "irq: the timer's; of a device's, a single one shows nothing"
is "$(table latency 2-5 --preset virtio "$host" "$guest")" \
'0x1000:3,worker woken,1,10000
0x1000:3,worker runs,1,10000
0x1000:3,interrupt,1,20000
0x1000:3,handler,1,20000
0x1000:3,total,1,60000' "virtio, by queue"
is "$(table queues 1- --preset virtio "$host" "$guest")" "" "... what is in its queues was not recorded: there is no table"
make_trace tests/integration/events/kernel "$tmp/queues.dat" <<'E'
event virtio:add int device; u32 out; u32 in; u32 len0; u8 end0; u32 len1; u8 end1; u32 len2; u8 end2; __data_loc char[] queue | "add"
event virtio:add_out int device; u32 out; u32 len0; u32 len1; __data_loc char[] queue | "add"
event virtio:add_in_ctx int device; u32 in; u32 len0; u32 len1; __data_loc char[] queue | "add"
id 22
shift 11 0 1000
1.000000 0 70 virtio:add 3 1 2 16 2 4096 0x82 1 2 req.0
1.000001 0 70 virtio:add 3 2 1 16 2 4096 0x82 1 2 req.0
1.000002 1 70 virtio:add 3 1 2 16 2 4096 0x40 1 2 req.0
1.000003 1 70 virtio:add_out 4 2 54 1460 output.0
1.000004 0 70 virtio:add_out 4 1 60 999 output.0
1.000005 0 70 virtio:add_out 4 3 54 1460 output.0
1.000006 0 70 virtio:add_in_ctx 4 1 1536 0 input.0
1.004080 1 71 irq_handler_entry irq=9 name=virtio1
E
is "$(table queues 2- --preset virtio "$host" "$tmp/queues.dat")" \
'vm virtio3 req.0,3,4,4144,5,4098
vm virtio4 output.0,3,6,1574,0,0
vm virtio4 input.0,1,0,0,1,1536' "... descriptors and bytes of each queue"
like "$(latency --preset virtio "$host" "$tmp/queues.dat")" \
	'^bytes of 2 buffers are left out: they have more descriptors than their events carry' "... those that no event carries"
"$hyptrace" latency --json --preset virtio "$host" "$tmp/queues.dat" >"$tmp/json" 2>&1
is "$(json_differs latency <"$tmp/json" 2>&1)" "" "... and as JSON by the schema"
# an MSI that KVM's ITS delivers has no event: it is seen where it wakes the vCPU. Others that the worker wakes, and
# a vCPU that another thread wakes, are none
make_trace $arm "$tmp/msi.dat" <<'E'
id 11
guest vm 22 0:100 1:101
task 50 qemu-system-aar
task 60 vhost-50
1.000000 0 100 kvm_mmio type=2 gpa=0x1000 val=1
1.000010 0 100 sched_waking pid=60 target_cpu=2
1.000015 0 100 kvm_entry
1.000020 2 0 sched_switch next_pid=60
1.000030 3 61 sched_waking pid=101 target_cpu=1
1.000040 2 60 sched_waking pid=62 target_cpu=3
1.000050 2 60 sched_waking pid=101 target_cpu=1
1.000060 1 101 kvm_entry
E
make_trace $arm "$tmp/msig.dat" <<'E'
id 22
shift 11 0 1000
0.900000 1 71 irq_handler_entry irq=1 name=IPI
1.000080 1 71 irq_handler_entry irq=9 name=virtio4-input.0
E
is "$(table latency 2-5 --preset virtio "$tmp/msi.dat" "$tmp/msig.dat")" \
'0x1000:1,worker woken,1,10000
0x1000:1,worker runs,1,10000
0x1000:1,interrupt,1,30000
0x1000:1,handler,1,30000
0x1000:1,total,1,80000' "virtio on arm64, whose MSIs have no event"
make_trace $x86 "$tmp/serial.dat" <<'E'
task 60 qemu
1.000000 0 100 kvm_pio rw=1 port=0x3f8 size=1 count=1 val=65
1.000002 0 100 sched_waking comm=qemu pid=60 target_cpu=3
1.000010 3 0 sched_switch prev_comm=idle next_comm=qemu next_pid=60
1.000020 0 100 kvm_pio rw=1 port=0xc050 size=2 count=1 val=1
1.000022 0 100 sched_waking comm=qemu pid=60 target_cpu=3
1.000030 3 0 sched_switch prev_comm=idle next_comm=qemu next_pid=60
1.000040 3 60 kvm_apic_accept_irq apicid=0 vec=40
E
is "$(table chains 2,3 --preset virtio "$tmp/serial.dat")" '0xc050:1,1' "a serial port is no queue"
is "$(latency --preset virtio "$tmp/msi.dat" "$tmp/msig.dat" | grep 'left out')" "" "... others that are woken are passed over in silence"
is "$(table latency 2-5 --preset hypercall "$host" "$guest")" 'vm 0,answer,1,7000' "hypercall"
make_trace $x86 "$tmp/x.dat" <<'E'
id 11
guest vm 22 0:100
1.000000 0 100 kvm_exit exit_reason=18 isa=1
1.000002 0 100 kvm_entry
1.000010 0 100 kvm_exit exit_reason=0x400 isa=2
1.000011 0 100 kvm_page_fault
1.000014 0 100 kvm_entry
1.000018 0 100 kvm_exit exit_reason=48 isa=2
1.000019 0 100 kvm_entry
1.000020 3 60 kvm_apic_accept_irq apicid=0 vec=236
1.000030 0 100 kvm_entry
E
make_trace $x86 "$tmp/xg.dat" <<'E'
id 22
shift 11 0 100
1.000001 0 5 hrtimer_start
1.000040 0 5 local_timer_entry vector=236
1.000042 0 5 hrtimer_expire_entry
E
is "$(for p in hypercall abort irq timer; do table latency 2-5 --preset $p "$tmp/x.dat" "$tmp/xg.dat"; done)" \
'vm 0,answer,1,2000
vm 0,fault handled,1,1000
vm 0,entry,1,3000
vm 0,total,1,4000
vm 0,vCPU runs,1,10000
vm 0,handler,1,10000
vm 0,total,1,20000
vm 0,fired,1,19000
vm 0,vCPU runs,1,10000
vm 0,handler,1,12000
vm 0,total,1,41000' "the same on x86"

# ---- presets: events that belong to others ----------------------------------------------------------------

# made HOST GUEST: scripts on descriptors 3 and 4, into $host and $guest
made() {
	make_trace $arm "$host" <&3
	make_trace $arm "$guest" <&4
}

# A task whose CPU is asleep is woken, and runs elsewhere; later it is woken on that CPU by its own. Then vCPU 0
# wakes vCPU 1's thread in an interrupt, while that waits for something else than the guest, and for the IPI's.
made 3<<'E' 4<<'G'
id 11
guest vm 22 0:100 1:101
1.001100 0 100 sched_waking pid=101
1.001130 1 101 kvm_vcpu_wakeup waited=1
1.001150 1 101 kvm_entry
1.010100 0 100 sched_waking common_flags=8 pid=101
1.010130 1 101 kvm_vcpu_wakeup waited=1
1.010150 1 101 kvm_entry
1.020100 0 100 sched_waking pid=101
1.020150 1 101 kvm_entry
1.030100 0 100 sched_waking pid=101
1.030130 1 101 kvm_vcpu_wakeup waited=1
1.030150 1 101 kvm_entry
E
id 22
shift 11 0 1000
1.001090 0 70 sched_waking pid=71 target_cpu=1
1.001120 0 70 sched_switch prev_pid=70 next_pid=71
1.001160 1 0 irq_handler_entry irq=1 name=IPI
1.001170 1 0 sched_waking pid=71 target_cpu=1
1.001190 1 0 sched_switch next_pid=71
1.010090 0 70 sched_waking pid=72 target_cpu=1
1.010160 1 0 irq_handler_entry irq=1 name=IPI
1.010190 1 0 sched_switch next_pid=72
1.020090 0 70 sched_waking pid=73 target_cpu=1
1.020160 1 0 irq_handler_entry irq=1 name=IPI
1.020190 1 0 sched_switch next_pid=73
1.030090 0 70 sched_waking pid=74 target_cpu=0
1.030155 1 0 irq_handler_entry irq=11 name=arch_timer
1.030160 1 0 irq_handler_entry irq=1 name=IPI
1.030190 1 0 sched_switch next_pid=74
G
is "$(table latency 2-5 --preset wakeup "$host" "$guest" | sed -n '4,$ p')" \
$'vm 1,handler,1,10000\nvm 1,task runs,1,30000\nvm 1,total,1,100000' \
	"wakeup: of four the one whose IPI wakes the vCPU, and whose task runs there first"

# The timer's interrupt, and a device's, while IPIs and another device's are handled; a device whose handler is
# unknown; interrupts before the guest's file begins, and after its end
made 3<<'E' 4<<'G'
id 11
guest vm 22 0:100 1:101
1.000000 0 100 vgic_update_irq_pending vcpu_id=0 irq=27 level=1
1.000010 0 100 kvm_entry
1.010000 0 100 vgic_update_irq_pending vcpu_id=0 irq=27 level=1
1.010010 0 100 kvm_entry
1.020000 0 100 vgic_update_irq_pending vcpu_id=0 irq=40 level=1
1.020010 0 100 kvm_entry
1.030000 0 100 vgic_update_irq_pending vcpu_id=0 irq=40 level=1
1.030010 0 100 kvm_entry
1.035000 0 100 vgic_update_irq_pending vcpu_id=0 irq=40 level=1
1.035010 0 100 kvm_entry
1.040000 0 100 vgic_update_irq_pending vcpu_id=0 irq=27 level=1
1.040010 0 100 vgic_update_irq_pending vcpu_id=0 irq=27 level=0
1.040020 0 100 kvm_entry
1.070000 0 100 vgic_update_irq_pending vcpu_id=0 irq=27 level=1
1.070010 0 100 kvm_entry
1.080000 1 101 vgic_update_irq_pending vcpu_id=1 irq=41 level=1
1.080010 1 101 kvm_entry
E
id 22
shift 11 0 1000
1.005000 0 1 sched_switch next_pid=7
1.010020 0 7 irq_handler_entry irq=1 name=IPI
1.010030 0 7 irq_handler_entry irq=9 name=virtio1-input.0
1.010040 0 7 irq_handler_entry irq=11 name=arch_timer
1.020020 0 7 irq_handler_entry irq=9 name=virtio1-input.0
1.020030 0 7 irq_handler_entry irq=5 name=uart
1.030020 0 7 irq_handler_entry irq=5 name=uart
1.035020 0 7 irq_handler_entry irq=5 name=uart
1.050000 0 7 irq_handler_entry irq=11 name=arch_timer
1.060000 0 7 irq_handler_entry irq=1 name=IPI
G
is "$(table latency 2-5 --preset irq "$host" "$guest")" \
$'vm 0,vCPU runs,4,40000\nvm 0,handler,4,70000\nvm 0,total,4,110000' \
	"irq: the timer's handler for the timer's, a device's own for a device's"
is "$(table chains 2-8 --preset irq "$host" "$guest")" $'vm 0,7,4,0,0,1,2\nvm 1,1,0,1,0,0,0' \
	"... those outside of the guest's file are not recorded, one whose handler nothing shows is undecided"
is "$(table stopped 2-4 --preset irq "$host" "$guest")" $'vCPU runs,1,0\nhandler,0,2' "... and where they were not"
like "$(latency --preset irq "$host" "$guest")" '^vCPU +began +complete +undecided +lost +stopped +not recorded +bound$' "... in a column of its own"
is "$("$hyptrace" latency --json --preset irq "$host" "$guest" | perl -MJSON::PP -0777 -ne \
	'$j = JSON::PP->new->utf8->decode($_); print join ",", map { "$_->{until}:$_->{not_recorded}" } @{ $j->{stopped} }')" \
	"vCPU runs:0,handler:2" "... for programs, too"

# Two hrtimers of a vCPU: each ends with the interrupt in which it expires; one is programmed anew, one cancelled
made 3<<'E' 4<<'G'
id 11
guest vm 22 0:100
1.010000 0 100 kvm_timer_update_irq vcpu_id=0 irq=27 level=1
1.010010 0 100 kvm_entry
1.015000 0 100 kvm_timer_update_irq vcpu_id=0 irq=30 level=1
1.020000 0 100 kvm_timer_update_irq vcpu_id=0 irq=27 level=1
1.020010 0 100 kvm_entry
1.030000 0 100 kvm_timer_update_irq vcpu_id=0 irq=27 level=1
1.030010 0 100 kvm_entry
E
id 22
shift 11 0 1000
1.001000 0 7 hrtimer_start hrtimer=0xa0
1.002000 0 7 hrtimer_start hrtimer=0xb0
1.003000 0 7 hrtimer_start hrtimer=0xb0
1.010030 0 7 hrtimer_expire_entry hrtimer=0xb0
1.011000 0 7 hrtimer_start hrtimer=0xc0
1.020040 0 7 hrtimer_expire_entry hrtimer=0xa0
1.025000 0 7 hrtimer_cancel hrtimer=0xc0
1.030040 0 7 hrtimer_expire_entry hrtimer=0xc0
G
is "$(table latency 2-5 --preset timer "$host" "$guest")" \
$'vm 0,fired,2,26000000\nvm 0,vCPU runs,2,20000\nvm 0,handler,2,50000\nvm 0,total,2,26070000' \
	"timer: from the last programming of the hrtimer that expires"

# A queue is what wakes a worker in the kernel; what user space emulates is none. Of two queues that one worker has
# at a time, which one an interrupt is for nothing shows
made 3<<'E' 4<<'G'
id 11
guest vm 22 0:100 1:101
1.000000 0 100 kvm_mmio type=2 len=2 gpa=0x9000000 val=108
1.000010 0 100 kvm_userspace_exit reason=6
1.000020 0 100 sched_waking pid=60
1.000030 0 100 kvm_entry
1.000040 2 0 sched_switch next_pid=60
1.000060 2 60 vgic_update_irq_pending vcpu_id=1 irq=50 level=1
1.010000 0 100 kvm_mmio type=2 gpa=0x1000 val=3
1.010010 0 100 sched_waking pid=60
1.010020 1 101 kvm_mmio type=2 gpa=0x2000 val=4
1.010030 1 101 sched_waking pid=60
1.010040 2 0 sched_switch next_pid=60
1.010060 2 60 vgic_update_irq_pending vcpu_id=1 irq=50 level=1
E
id 22
shift 11 0 1000
0.900000 1 71 irq_handler_entry irq=1 name=IPI
1.000080 1 71 irq_handler_entry irq=9 name=virtio1
1.010080 1 71 irq_handler_entry irq=9 name=virtio1
G
is "$(table chains 2-8 --preset virtio "$host" "$guest")" $'0x1000:3,1,0,0,0,1,0\n0x2000:4,1,0,1,0,0,0' \
	"virtio: no characters of a UART, and no queue that may be another"

# ---- presets: what is missing -----------------------------------------------------------------------------

fails 1 'the files have no sched_waking@guest: record -A GUEST -e sched gives it' "a preset without its events" --preset wakeup "$vhost"
fails 1 'no ipi_entry@guest: record -A GUEST -e irq -e ipi \(x86: -e irq -e irq_vectors\) gives it' "... on x86 the events are others" \
	--preset wakeup tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat
like "$(latency --preset timer "$vhost")" "^hyptrace: so preset 'timer' has no complete chain" "... which is all that is said"

# ---- the longest ---------------------------------------------------------------------------------------------

err=$("$hyptrace" latency --preset irq tests/data/x86/trace.dat tests/data/x86/trace-Guest.dat 2>&1)
like "$err" 'have no kvm_apic_accept_irq@host: record -e kvm gives it' "on x86 an event of x86 is advised"
is "$(grep -c vgic <<<"$err")" 0 "... none that only arm64 has"
is "$(latency --from kvm_mmio/type==2 --to kvm_mmio/type==0 --worst 1 "$vhost" | sed -n '/^The longest/,/ meanwhile/p')" \
'The longest
n  key             took             from               to  on      to      bound
1  thread 1795  187.0us  83328.209498000  83328.209685000  host 5  host 5    0ns

What happened on these CPUs meanwhile' "--worst: when, and where"
is "$(latency --from kvm_mmio/type==2 --to kvm_mmio/type==0 --worst 1 "$vhost" | grep '^1 .*qemu' | cut -c 1-50)" \
'1      0ns  host 5  qemu-system-aar-1795  kvm_mmio
1  14.00us  host 5  qemu-system-aar-1795  sched_wa
1  27.00us  host 5  qemu-system-aar-1795  kvm_entr
1  168.0us  host 5  qemu-system-aar-1795  kvm_exit
1  174.0us  host 5  qemu-system-aar-1795  kvm_entr
1  187.0us  host 5  qemu-system-aar-1795  kvm_mmio' "... and what happened meanwhile"
like "$(table between 2- --from kvm_mmio/type==2 --to kvm_mmio/type==0 --worst 1 "$standard")" '^1,,,,\.\.\. 4 more \.\.\.,$' \
	"... of many events the first and the last"
is "$(table worst 2-4 --from kvm_exit --to kvm_entry --key pid --worst 2 "$pairs")" $'1,8,255000\n2,7,60000' "... of all keys"

# ---- other forms -----------------------------------------------------------------------------------------------

is "$("$hyptrace" latency --json --from kvm_exit --to kvm_entry --key pid --worst 1 "$pairs" | perl -MJSON::PP -0777 -ne \
	'$j = JSON::PP->new->utf8->decode($_); print join ",", sort(keys %$j), map { "$_->{key}:$_->{max_ns}" } @{ $j->{latency} }')" \
	'between,events,latency,notes,schema,worst,8:255000,7:60000,(all):255000' "JSON"
(cd "$tmp" && cp pairs.dat trace.dat && "$hyptrace" latency -q --from kvm_exit --to kvm_entry --svg "$tmp/out.svg" >/dev/null)
is "$?" 0 "--svg, and trace.dat when no file is named"
is "$(perl -0777 -ne 'while (/<(\/?)(\w+)[^>]*?(\/?)>/g) { $1 ? (pop @s eq $2 || die "$2") : $3 || push @s, $2 } print @s ? "open: @s" : "closed"' \
	"$tmp/out.svg")" closed "... all its elements are closed"
like "$(cat "$tmp/out.svg")" '<title>.*us to .*us: 1</title>' "... with bars that tell their numbers"
is "$(picture_names "$tmp/out.svg")" "trace.dat: how long from kvm_exit to kvm_entry?
duration (logarithmic; units at the ticks)
durations per bar (count)" "... a title, and axes with names and units"
like "$(cat "$tmp/out.svg")" '>percentiles</text>' "... and a legend"
fails 1 'is to be read, not to be written' "a picture over an input" --from kvm_exit --to kvm_entry --svg "$pairs" "$pairs"

# ---- what is refused ------------------------------------------------------------------------------------------------

fails 2 'say --from and --to, or --preset' "nothing asked" "$pairs"
fails 2 'say --from and --to, or --preset' "both asked" --preset irq --from kvm_exit "$pairs"
fails 2 'from needs --to' "half a pair" --from kvm_exit "$pairs"
fails 2 'key is for --from and --to' "a key for a preset" --preset irq --key pid "$pairs"
fails 2 'either --json or --csv' "two forms" --json --csv --preset irq "$pairs"
fails 2 'there is no such preset; there are wakeup, irq, virtio' "a preset that is none" --preset x "$pairs"
fails 2 'it is \[SYSTEM:\]EVENT\[@MACHINE\]\[/FILTER\]' "no event" --from 'kvm exit' --to kvm_entry "$pairs"
fails 2 'no filter after the' "no filter" --from kvm_exit/ --to kvm_entry "$pairs"
fails 2 'no machine after the' "no machine" --from kvm_exit@ --to kvm_entry "$pairs"
fails 2 "^hyptrace: --from: " "a wrong filter" --from 'kvm_exit/ret==' --to kvm_entry "$pairs"
fails 2 'a field is missing' "half a key" --from kvm_exit --to kvm_entry --key =pid "$pairs"
fails 1 'the files have no event kvm_gone' "an event that is in no file" --from kvm_exit --to kvm_gone "$pairs"
fails 1 "kvm_entry has no field 'ret' that is a number" "a field that is not there" --from kvm_exit --to kvm_entry --key ret "$pairs"
like "$(latency --from kvm_exit/gone==1 --to kvm_entry "$pairs")" '^none of 5 records passes the filter of kvm_exit/gone==1$' \
	"a filter that nothing passes"
like "$(latency --from sched_waking --to kvm_entry "$pairs")" '^there are no records of sched_waking$' "an event that never came"
fails 1 "cannot open" "no such file" --preset irq "$tmp/none.dat"

# the page of CPU 1 has a length that is wrong: what is in the others is told
perl -0777 -pe 'my $at = index $_, pack("Q", 1_000_030_000); die if $at < 0;
	substr($_, $at + 8, 8) = pack("Q", 1 << 20)' "$pairs" >"$tmp/damaged.dat"
out=$("$hyptrace" latency --csv --from kvm_exit --to kvm_entry --key cpu "$tmp/damaged.dat" 2>"$tmp/err")
is "$?" 1 "a damaged file: status"
like "$out" '^latency,0,2,110000,' "... what can be read is told"
like "$(cat "$tmp/err")" 'the files are damaged in 1 places' "... and that there is more"

# ---- many keys, the manual -----------------------------------------------------------------------------------------

for ((i = 1; i <= 1100; i++)); do
	echo "1.$((100000 + 2 * i)) 0 $i kvm_exit"
	echo "1.$((100001 + 2 * i)) 0 $i kvm_entry"
done | make_trace $arm "$tmp/many.dat"
is "$(table latency 2-4 --from kvm_exit --to kvm_entry --key pid "$tmp/many.dat" | tail -3)" \
	$'999,1,1000\n1000,1,1000\n(all),1100,1100000' "a thousand rows ..."
is "$(table latency 2-4 --from kvm_exit --to kvm_entry --key pid "$tmp/many.dat" | head -1)" '(others),100,100000' "... and one of all others"
is "$(latency --from kvm_exit --to kvm_entry --key pid "$tmp/many.dat" | grep -c 1.000us)" 21 "people get 20, and their sum"
like "$(latency --from kvm_exit --to kvm_entry --key pid "$tmp/many.dat")" '^981 rows more: --rows 0$' "... which is said"
is "$(latency --rows 0 --from kvm_exit --to kvm_entry --key pid "$tmp/many.dat" | grep -c 1.000us)" 1002 "--rows 0: all"

mkdir "$tmp/cwd" "$tmp/both"
cp tests/data/guest/*.dat "$tmp/both"
both=("$tmp/both/trace.dat" "$tmp/both/trace-Guest.dat")
"$hyptrace" sync --write "${both[@]}" >/dev/null 2>&1
cp "${both[0]}" "$tmp/cwd/trace.dat"
cp "${both[1]}" "$tmp/cwd/trace-guest.dat"
while read -r line; do
	if [[ $line == *jq* ]] && ! command -v jq >/dev/null; then
		skip 1 "no jq"
		continue
	fi
	(cd "$tmp/cwd" && PATH=$build:$PATH bash -o pipefail -c "$line") >"$tmp/out" 2>"$tmp/err"
	[ $? = 0 ] && [ -s "$tmp/out" ] && ! grep -v "guests' files are read too" "$tmp/err"
	ok $? "an example of the manual: $line" || diag "$(cat "$tmp/err")"
done < <(sed -n '/^\.SH EXAMPLES/,$ s/^# //p' Documentation/hyptrace-latency.1 | sed "s/\\\\-/-/g; s/\\\\(aq/'/g")
[ -s "$tmp/cwd/irq.svg" ]
ok $? "... which made a picture"

# ---- real captures, against a reference ------------------------------------------------------------------------------

# The last FROM before each TO by key over hyptrace export --json: count, total, min, max
reference() { # FROM TO KEY-OF-FROM KEY-OF-TO FILE...
	"$hyptrace" export -q --json "${@:5}" 2>/dev/null | jq -r --arg a "$3" --arg b "$4" '
		def key($k): if $k == "common_pid" then .pid elif $k == "common_cpu" then .cpu else .fields[$k] end;
		[.guest // "host", .buffer, .cpu, .lost, .time, .system, .event, key($a), key($b)] | @tsv' | perl -e '
		my ($from, $to) = @ARGV;
		my ($n, $sum, $min, $max) = (0, 0, "", "");
		my (%open, %last, @lost, @pairs);
		while (<STDIN>) {
			chomp;
			my ($m, $buffer, $of, $lost, $time, $system, $event, $a, $b) = split /\t/, $_, -1;
			my $cpu = "$m $buffer $of";
			push @lost, [ $m, $last{$cpu} // 0, $time || 1e18, $system =~ /^hyp/ ] if $lost;
			next if $event eq "";
			$last{$cpu} = $time;
			my $begin = $event eq $to ? delete $open{"$m $b"} : undef;
			push @pairs, [ $m, $begin, $time ] if defined $begin;
			$open{"$m $a"} = $time if $event eq $from;
		}
		my $hyp = $from =~ /^hyp/;
		for my $p (@pairs) {
			next if grep { $_->[0] eq $p->[0] && $_->[3] == $hyp && $_->[1] <= $p->[2] && $_->[2] >= $p->[1] } @lost;
			my $d = $p->[2] - $p->[1];
			$n++; $sum += $d;
			$min = $d if $min eq "" || $d < $min;
			$max = $d if $max eq "" || $d > $max;
		}
		print join ",", $n, $sum, $min, $max;' "$1" "$2"
}

compare() { # FROM TO KEY KEY-OF-FROM KEY-OF-TO FILE...
	local theirs ours

	theirs=$(reference "$1" "$2" "$4" "$5" "${@:6}")
	ours=$(table latency 3-5,10 --from "$1" --to "$2" --key "$3" "${@:6}" | tail -1)
	is "$ours" "$theirs" "$1 to $2 by $3: the reference over $(dirname "${6#tests/data/}")/$(basename "$6") has the same: $theirs"
}

compare kvm_exit kvm_entry pid common_pid common_pid tests/data/x86/trace.dat
compare kvm_entry kvm_exit pid common_pid common_pid tests/data/sync/trace.dat
compare hyp_enter hyp_exit cpu common_cpu common_cpu tests/data/lab-protected.dat
compare kvm_exit kvm_entry pid common_pid common_pid tests/data/lab-protected.dat
compare hyp_enter hyp_exit cpu common_cpu common_cpu tests/data/lab-nvhe.dat
compare sched_waking sched_switch pid=next_pid pid next_pid tests/data/lab-stock-arm64.dat
compare sched_waking sched_switch pid=next_pid pid next_pid tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat
compare irq_handler_entry irq_handler_exit irq irq irq tests/data/guest/trace-Guest.dat
compare kvm_exit kvm_entry cpu common_cpu common_cpu tests/data/functions/trace.dat

# two machines: the capture with offsets and bounds of hyptrace sync
theirs=$("$hyptrace" export -q --json "${both[@]}" 2>/dev/null | jq -r '[.guest, .event, .pid, .cpu, .time] | @tsv' | perl -e '
	my %vcpu = (113 => 0, 114 => 1);
	while (<STDIN>) {
		chomp;
		my ($guest, $event, $pid, $cpu, $time) = split /\t/;
		if (!$guest && $event eq "kvm_entry") {
			$open{$vcpu{$pid}} = $time;
		} elsif ($guest && $event eq "irq_handler_entry" && (my $t = delete $open{$cpu})) {
			my $d = $time - $t;
			$n++; $sum += $d;
			$min = $d if !defined $min || $d < $min;
			$max = $d if $d > $max;
		}
	}
	print join ",", $n, $sum, $min, $max;')
is "$(table latency 3-5,10 --from kvm_entry@host --to irq_handler_entry@guest --key vcpu "${both[@]}" | tail -1)" "$theirs" \
	"host to guest by vCPU: the reference has the same: $theirs"
like "$(table latency 2-4 --preset irq "${both[@]}")" '^Guest 0,total,8$' "irq on a real guest: all of vCPU 0's interrupts"
like "$(table latency 2-4 --preset wakeup "${both[@]}")" '^Guest 1,total,1$' "wakeup on a real guest"
like "$(table latency 2-4 --preset timer "${both[@]}")" '^Guest 0,total,7$' "timer on a real guest"
done_testing
