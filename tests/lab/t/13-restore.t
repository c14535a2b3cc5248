#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# However a recording ends, tracefs is afterwards as it was before, and that was
# not the state after boot but one that somebody had set up.
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# What the kernel itself cannot undo is done first: the top buffer gets its full
# size at the first use of an event and keeps it.
run '
	echo 1 >$t/events/sched/sched_switch/enable
	echo 0 >$t/events/sched/sched_switch/enable
	set -e
	cd $t
	echo mono >trace_clock
	echo 500 >buffer_size_kb
	echo 300 >per_cpu/cpu1/buffer_size_kb
	echo 3 >tracing_cpumask
	echo 0 >options/overwrite
	echo 1 >options/sym-offset
	echo 300 >saved_cmdlines_size
	echo 4 >max_graph_depth
	echo "vfs_read vfs_write" >set_ftrace_filter
	echo "ksys_*" >set_ftrace_notrace
	echo do_sys_openat2 >set_graph_function
	echo 1 >set_ftrace_pid
	echo 1 >set_event_pid
	echo "prio < 100" >events/sched/sched_wakeup/filter
	echo 1 >events/sched/sched_wakeup/enable
	echo "traceoff:3 if prio > 500" >events/sched/sched_waking/trigger
	echo 1 >events/irq/enable
	mkdir instances/mine
	cd instances/mine
	echo "do_sys_open*" >set_ftrace_filter
	echo function >current_tracer
	echo 1 >events/timer/enable
	echo boot >trace_clock
	cd $hyp
	echo 16 >buffer_size_kb
	echo 1 >events/hypervisor/hyp_enter/enable'
recorded "tracefs as somebody may have left it"
l1 state >"$tmp/before"
at_least "$(wc -l <"$tmp/before")" 10000 "its state has more than 10000 lines ($(wc -l <"$tmp/before"))"
l1 state >"$tmp/now"
same "$tmp/now" "$tmp/before" "and does not change by being looked at"

unchanged() {
	l1 state >"$tmp/now"
	same "$tmp/now" "$tmp/before" "tracefs is as before: $1"
}

# ---- recordings that end well --------------------------------------------------------

run '
	hyptrace record -o many.dat -C boot -b 1000 -M 2 -O nosym-offset -O overwrite -T \
		--cmdlines-size 1000 --max-graph-depth 2 \
		-p function -l "vfs_*" -n vfs_write \
		-e sched:sched_switch -f "prev_pid != 1" -e sched:sched_waking -R traceon \
		-B mine -p function_graph -g ksys_read -b 400 \
		-B fresh -e timer -e "task:*" --subbuf-size 8 \
		-B hyp -b 512 -v -e hyp_enter \
		-- taskset -c 1 ls -R /sys/class >/dev/null || exit
	cp many.dat /mnt/out'
recorded "a recording with many options"
datdump "$out/many.dat" | sed -E 's/^([^ ]+) [0-9]+ [0-9]+ ([a-z_]+).*/\1 \2/' | sort | uniq -c | sort -rn >"$tmp/events"
for event in '- function' '- sched_switch' 'mine funcgraph_entry' 'fresh [a-z_]*' 'hyp hyp_exit'; do
	like "$(cat "$tmp/events")" "^ *[0-9]+ $event$" "which recorded $event"
done
unlike "$(cat "$tmp/events")" "hyp hyp_enter" "... and not the event that was left out"
unchanged "many options, three host buffers and the hypervisor's"

run 'hyptrace record -o pids.dat -P 1 -c -e sched -e raw_syscalls -- true && hyptrace record -o f.dat -F -c -e sched -B hyp -- ls >/dev/null'
recorded "recordings with -P and -F"
unchanged "-P, -F and -c"

for signal in INT TERM HUP; do
	run "begin sig.dat -e kvm -e sched -B mine -p function -l 'vfs_*' -B hyp || exit; finish $signal && cp sig.dat /mnt/out"
	recorded "a recording that SIG$signal ends"
	reports "$out/sig.dat" '^ *hyp: .* hyp_enter: ' "its file is readable"
	unchanged "SIG$signal"
done

# ---- kill -9 ------------------------------------------------------------------------------

run '
	begin kill.dat -e kvm -e sched:sched_switch -f "prev_pid != 1" -p function -l "vfs_*" --cmdlines-size 999 \
		-B fresh -e irq -B hyp || exit
	slay
	cat $hyp/tracing_on
	hyptrace recover kill.dat.spool && cp kill.dat /mnt/out'
recorded "a recording that is killed, and recovered"
is "$output" 1 "(the kill left the hypervisor's tracing on)"
is "$(grep -o '[a-z]*: events may be missing where' <<<"$stderr")" "hyp: events may be missing where" \
	"the kernel counts what was read of the host's buffers, not of the hypervisor's" || diag "$stderr"
reports "$out/kill.dat" '^ *hyp: .* hyp_enter: ' "its file is readable"
unchanged "kill -9 and recover"

# ---- recordings that overlap -------------------------------------------------------------

run '
	begin one.dat -e kvm -C mono -b 700 || exit
	one=$pid
	hyptrace record -o two.dat -e sched -C boot -b 900 -- true
	echo $? $one
	begin three.dat -B mine -e kvm -b 300 || exit
	three=$pid
	begin four.dat -B hyp -b 256 || exit
	kill -INT $one; wait $one; echo $?
	finish; echo $?
	kill -INT $three; wait $three; echo $?'
{ read -r refused one; ends=$(cat); } <<<"$output"
is "$status $refused $ends" "0 1 0
0
0" "recordings of the top buffer, an instance and the hypervisor overlap; a second one of the top buffer is refused" ||
	diag "$output $stderr"
like "$stderr" "another hyptrace \(pid $one\) records the top buffer" "... and told who records it"
unchanged "overlapping recordings"

run '
	begin one.dat -e kvm -C mono -B mine -e kvm -- sleep 1000 || exit
	child=$(pgrep -f "^sleep 1000")
	slay
	hyptrace record -o two.dat -e kvm -- true
	echo $?
	begin three.dat -B hyp || exit
	hyptrace recover one.dat.spool
	echo $?
	finish
	kill -0 $child && echo its command lives
	kill $child'
is "$status $output" "0 1
0
its command lives" "a killed recording is recovered beside another, before its buffer is recorded again" || diag "$stderr"
like "$stderr" "a killed recording still holds the top buffer; run: hyptrace recover .*/one.dat.spool$" \
	"... for which it is waited"
unchanged "kill -9, an attempt to record, recover beside another"

# ---- recordings that do not begin --------------------------------------------------------------

# fails OPTIONS PATTERN [COMMAND]
fails() {
	local command=${3-true}

	run "hyptrace record -o no.dat -e sched $1 -B fresh -e irq -B hyp -- $command"
	refused "$2" "refused: $1 -- $command"
}
fails '-e nosuch' 'nosuch'
fails '-e sched:sched_switch -f "nosuch == 1"' 'nosuch == 1.*Field not found'
fails '-e sched:sched_switch -R "nosuch"' 'nosuch'
fails '-p nosuch' 'nosuch'
fails '-C nosuch' 'nosuch'
fails '-p function -l nosuch_function' 'nosuch_function'
run 'hyptrace record -o no.dat -B hyp -b 40000 -- true'
refused "tracing_on\\): Invalid argument: the buffer may be larger than this kernel can make it; try a smaller -b" \
	"refused: 40000 KiB per CPU for the hypervisor"
fails '' "cannot run '/nosuch/command': No such file or directory" /nosuch/command
# While a guest is being set up and CNTVOFF is probed for, which is to be put back too.
run 'hyptrace record -o no.dat -e nosuch -A Guest@3:823 -- true'
refused 'nosuch' "refused: -e nosuch beside a guest"
fails '--user nosuch' "no such user: 'nosuch'"
is "$(l1 'ls -d no.dat* 2>/dev/null')" "" "no file, no spool"
unchanged "recordings that do not begin"

# ---- disk full ------------------------------------------------------------------------------

run 'mkdir -p /tmp/small && mount -t tmpfs -o size=4m small /tmp/small &&
	hyptrace record -o small/full.dat -B hyp -e all -- sleep 60
	s=$?; umount /tmp/small; exit $s'
is "$status" 1 "a recording that fills the disk"
unchanged "disk full"

done_testing
