#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Buffers that run already are taken over: what the kernel's command line or a shell
# has switched on is read from its beginning, and goes on afterwards.
. "$(dirname "$0")/lib.sh"

# first FILE PATTERN: the time of the first line of that kind, in seconds since the boot
first() {
	report -t "$1" | grep -E -m 1 -e "$2" | sed -E 's/^.*\[[0-9]+\] +([0-9]+\.[0-9]+):.*/\1/'
}

# before GOT LIMIT NAME
before() {
	awk -v got="$1" -v limit="$2" 'BEGIN { exit !(got != "" && got + 0 < limit + 0) }'
	ok $? "$3" || diag "expected less than $2, got '$1'"
}

unchanged() {
	l1 state >"$tmp/now"
	same "$tmp/now" "$tmp/before" "tracefs is as before: $1"
}

# ---- switched on by a shell: mainline's text ------------------------------------------

vm_up -m protected -g 1 -a 'hyptrace-agent -D -v --early sched'
run '
	set -e
	cd $t
	echo boot >trace_clock
	echo 4096 >buffer_size_kb
	echo 1 >events/kvm/kvm_entry/enable
	echo 1 >events/kvm/kvm_exit/enable
	mkdir instances/mine
	echo boot >instances/mine/trace_clock
	echo 1 >instances/mine/events/sched/sched_switch/enable
	cd $hyp
	echo 512 >buffer_size_kb
	echo 1 >events/hypervisor/hyp_exit/enable
	echo 1 >tracing_on'
recorded "mainline: tracing that a shell switched on"
l1 state >"$tmp/before"

run 'hyptrace record -o no.dat -B hyp -e all -e nosuch --take-over -- true'
is "$status" 1 "a recording that is refused beside it"
run 'cut -d " " -f 1 /proc/uptime
	hyptrace record -o boot.dat --take-over -B mine -B hyp -e hyp_enter -A Guest@3:823 -e sched -- sleep 1 || exit
	cp boot.dat boot-Guest.dat /mnt/out'
recorded "all of it is taken over" && diag "$stderr"
started=$output
like "$stderr" 'hyp: remotes/hypervisor is taken over, running, 2 events on, 512 KiB per CPU, text' \
	"which says how the hypervisor's was found"
unlike "$stderr" 'guest Guest: (no offset|clock.*unknown)' "the guest has a clock"
before "$(first "$out/boot.dat" '^ *hyp: .* hyp_exit: ')" "$started" \
	"the hypervisor's events from before the recording are in the file"
before "$(first "$out/boot.dat" '^ *mine: .* sched_switch: ')" "$started" "an instance's"
before "$(first "$out/boot.dat" '\] .* kvm_entry: ')" "$started" "the top buffer's"
before "$(first "$out/boot-Guest.dat" 'sched_switch: ')" "$started" "and the guest's --early ones, in the host's time"
reports "$out/boot.dat" '^ *hyp: .* hyp_enter: ' "an event of -e is recorded on top"
unchanged "a recording that took it over"

run 'begin kill.dat --take-over -B mine -B hyp -e hyp_enter || exit; slay
	hyptrace recover kill.dat.spool && cp kill.dat /mnt/out'
recorded "one that is killed, and recovered"
before "$(first "$out/kill.dat" '^ *hyp: ')" "$(l1 'cut -d " " -f 1 /proc/uptime')" "its file is readable"
unchanged "kill -9 and recover"

run 'hyptrace record -o no.dat -B hyp -- true'
refused 'tracing_on is 1 .*--take-over' "without --take-over it is refused"

# Off, with what was traced before still in it; and nothing at all.
run 'echo 0 >$hyp/tracing_on; cat $hyp/buffer_size_kb; wc -l <$hyp/trace
	hyptrace record -o left.dat --take-over -B hyp -e hyp_exit -- true || exit
	cat $hyp/tracing_on $hyp/buffer_size_kb; cp left.dat /mnt/out'
recorded "a buffer that is off and holds something" && diag "$output"
like "$stderr" 'is taken over, with what is in it' "is taken over"
at_least "$(summary_of hyp events)" "$(sed -n 2p <<<"$output")" "with what is in it"
is "$(tail -n 2 <<<"$output")" "0
512 (unloaded)" "and is off and empty then"
run 'hyptrace record -o idle.dat --take-over -B hyp -b 256 -- true; cat $hyp/buffer_size_kb'
recorded "an idle one is recorded as ever"
like "$stderr" '256 KiB per CPU' "with the size of -b"

# ---- by the kernel's command line: raw pages --------------------------------------------

raw_vm_up 'hyp_event=host_mem_abort,host_smc trace_event=sched:sched_switch,kvm:kvm_entry,kvm:kvm_exit \
	trace_clock=boot trace_buf_size=8M' -m protected -g 1 -a 'hyptrace-agent -D -v --early sched'
l1 state >"$tmp/before"
run 'cut -d " " -f 1 /proc/uptime
	hyptrace record -o raw.dat --take-over -B hyp -e hyp_enter -e hyp_exit -A Guest@3:823 -e sched -- sleep 1 || exit
	cp raw.dat raw-Guest.dat /mnt/out'
recorded "raw pages: a boot that hyp_event= and trace_event= recorded" && diag "$stderr"
started=$output
# 7 KiB per CPU: with hyp_enter on before somebody reads, all that was there would be written over
before "$(first "$out/raw.dat" '^ *hyp: .* host_mem_abort: ')" "$(first "$out/raw.dat" '^ *hyp: .* hyp_enter: ')" \
	"the hypervisor's events from before those of -e are in the file"
before "$(first "$out/raw.dat" '\] .* sched_switch: ')" 3 "the host's"
before "$(first "$out/raw-Guest.dat" 'sched_switch: ')" "$started" "and the guest's, in the host's time"
reports "$out/raw.dat" '^ *hyp: .* hyp_exit: ' "events of -e are recorded on top"
unchanged "the boot goes on being recorded"
run 'hyptrace record -o again.dat --take-over -B hyp -- true'
recorded "and can be taken over once more"
at_least "$(summary_of host events)" 100 "with what came since"
unchanged "twice"

# Its 7 KiB per CPU are soon written over: the boot itself is there as long as no guest runs.
raw_vm_up 'hyp_event=host_mem_abort trace_event=sched:sched_switch trace_clock=boot' -m protected
run 'hyptrace record -o early.dat --take-over -B hyp -- true && cp early.dat /mnt/out'
recorded "raw pages: at once after the boot" && diag "$stderr"
before "$(first "$out/early.dat" '^ *hyp: .* host_mem_abort: ')" 5 "the hypervisor's boot is in the file"
before "$(first "$out/early.dat" '\] .* sched_switch: ')" 3 "beside the host's"

done_testing
