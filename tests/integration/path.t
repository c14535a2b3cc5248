#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace path on made-up recordings, whose chains are known, and on real ones.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
root=$PWD

# host FILE, guest FILE BOUND: recordings of lines on standard input; vCPUs 0 and 1 are threads 100 and 101
make_trace() { "$build/tests/integration/make-trace" "$1" tests/integration/events/path -; }
host() { { printf 'id 1\nguest Guest 2 0:100 1:101\n'; cat; } | make_trace "$1"; }
guest() { { printf 'id 2\nshift 1 0 %s\n' "${2#-}"; cat; } | make_trace "$1"; }
# path ARG...: stdout in $out, stderr in $err, $status
path() {
	out=$("$hyptrace" path "$@" 2>"$tmp/err")
	status=$?
	err=$(<"$tmp/err")
}
files=("$tmp/trace.dat" "$tmp/trace-Guest.dat")

# ---- a chain across guest and host -----------------------------------------------------------

# net's interrupt wakes vhost, which raises an interrupt of the halted vCPU 1; its handler wakes the guest's disk,
# that the shell on vCPU 0; a hog takes the CPU from vCPU 0.
cat >"$tmp/host" <<'E'
1000000000 0 0 sched_switch 0 0 100
1000000000 1 0 sched_switch 0 0 101
1000000000 2 0 sched_switch 0 0 40
1001000000 0 100 kvm_entry 0
1001000000 1 101 kvm_entry 0
1002000000 1 101 kvm_exit 2 1 0
1002010000 1 101 sched_switch 101 1 0
1003000000 2 40h irq_handler_entry 7 eth0
1003010000 2 40h sched_waking 110
1003015000 2 40h irq_handler_exit 7 1
1003100000 2 40 sched_switch 40 0 110
1003140000 2 110 vgic_update_irq_pending 1 55 1
1003150000 2 110 sched_waking 101
1003180000 1 0 sched_switch 0 0 101
1003190000 1 101 kvm_vcpu_wakeup 1170000
1003200000 1 101 kvm_entry 0
1003300000 0 100 kvm_exit 0 0 0
1003310000 0 100 sched_switch 100 0 120
1005310000 0 120 sched_switch 120 0 100
1005320000 0 100 kvm_entry 0
1006000000 2 110 sched_switch 110 1 40
E
cat >"$tmp/guest" <<'E'
1001500000 0 30 sched_switch 30 1 20
1001600000 1 10 sched_switch 10 1 0
1003220000 1 0h irq_handler_entry 40 virtio0
1003230000 1 0h sched_waking 10
1003240000 1 0h irq_handler_exit 40 1
1003250000 1 0 sched_switch 0 0 10
1003270000 1 10 sched_waking 30
1005400000 0 20 sched_switch 20 0 30
1006000000 1 0 sched_waking 5
E
host "$tmp/trace.dat" <"$tmp/host"
guest "$tmp/trace-Guest.dat" 500 <"$tmp/guest"
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
is "$status:$err" "0:" "a chain is told"
is "$out" "shell-30 of Guest on CPU 0 at 1.005400000: why then
hop     took  bound  machine  cpu  task          state        by
  1  90.00us  500ns  Guest      0  shell-30      runnable     net-20
  2  2.000ms      -  host       0  Guest:0       runnable     hog-120
  3  40.00us  500ns  Guest      0  shell-30      runnable     net-20
  4  20.00us      -  Guest      1  disk-10       runs         -
  5  20.00us      -  Guest      1  disk-10       runnable     <idle>
  6  50.00us  500ns  Guest      1  <idle>        irq pending  irq 55
  7  30.00us      -  host       1  Guest:1       runnable     <idle>
  8  10.00us      -  host       1  Guest:1       asleep       vhost-99-110
  9  40.00us      -  host       2  vhost-99-110  runs         -
 10  90.00us      -  host       2  vhost-99-110  runnable     batch-40

each hop began with
hop  machine  cpu         time  event                    text
  1  host       0  1.005310000  sched_switch             120 [0] R ==> 100 [0]
  2  host       0  1.003310000  sched_switch             100 [0] R ==> 120 [0]
  3  Guest      1  1.003270000  sched_waking             pid=30
  4  Guest      1  1.003250000  sched_switch             0 [0] R ==> 10 [0]
  5  Guest      1  1.003230000  sched_waking             pid=10
  6  host       1  1.003180000  sched_switch             0 [0] R ==> 101 [0]
  7  host       2  1.003150000  sched_waking             pid=101
  8  host       2  1.003140000  vgic_update_irq_pending  VCPU: 1, IRQ 55, lev...
  9  host       2  1.003100000  sched_switch             40 [0] R ==> 110 [0]
 10  host       2  1.003010000  sched_waking             pid=110
 11  host       2  1.003000000  irq_handler_entry        irq=7 name=eth0

interrupt after 2.390ms: interrupt 7 on CPU 2" "... hop by hop, with the events that prove it"
whole=$out

path --at 1.003 --guest Guest --task shell "${files[@]}"
is "$out" "$whole" "a task at a time when it sleeps: as soon as it runs again"
path --at 1.003 --guest Guest --task 30 "${files[@]}"
is "$out" "$whole" "... by its number"
path --at 'sched_switch/next_pid==30' --guest Guest --nth 1 "${files[@]}"
is "$out" "$whole" "the guest's events alone"
path --at 'sched_switch@Guest/next_pid==30' --within 0.0045 "${files[@]}"
is "$out" "$whole" "as much as there is within"

path --at 1.0053 --task Guest:0 "${files[@]}"
is "$(sed 3q <<<"$out" | tail -n 1)" "  1  2.000ms      -  host       0  Guest:0  runnable  hog-120" "a vCPU's thread as answers name it"
path --at 1.00545 --guest Guest --cpu 0 --hops 2 "${files[@]}"
is "$(sed -n '1,4p;$p' <<<"$out")" "shell-30 of Guest on CPU 0 at 1.005450000: why then
hop     took  bound  machine  cpu  task      state     by
  1  50.00us      -  Guest      0  shell-30  runs      -
  2  90.00us  500ns  Guest      0  shell-30  runnable  net-20
long after 140.0us: that are 2 hops, --hops has more" "the task on a CPU at a time, and no more hops than are wanted"
path --at 1.0025 --cpu 1 "${files[@]}"
is "$(sed 1q <<<"$out") ... $(tail -n 1 <<<"$out")" \
	"<idle> of host on CPU 1 at 1.002500000: why then ... idle after 0ns: CPU 1 was idle" "an idle CPU"

path --at 1.0055 --cpu 1 "${files[@]}"
is "$(sed 1q <<<"$out")" "Guest:1 of host on CPU 1 at 1.005500000: why then" "a CPU behind its last event"

# ---- programs -----------------------------------------------------------------------------------

path --at 'sched_switch@Guest/next_pid==30' --csv "${files[@]}"
is "$(sed -n '1,3p;12,13p;24,$p' <<<"$out")" \
	"path,hop,duration_ns,bound_ns,machine,cpu,task,state,by,from,to,exits,outside_ns,pid
path,1,90000,500,Guest,0,shell-30,runnable,net-20,1.005310000,1.005400000,0,10000,30
path,2,2000000,,host,0,Guest:0,runnable,hog-120,1.003310000,1.005310000,,,100
events,hop,machine,cpu,time,event,text
events,1,host,0,1.005310000,sched_switch,120 [0] R ==> 100 [0]
end,end,why,hops,duration_ns
end,interrupt,interrupt 7 on CPU 2,10,2390000" "CSV"
path --at 'sched_switch@Guest/next_pid==30' --json "${files[@]}"
is "$(jq -c '.path[5], .events[2], .end, .notes' <<<"$out")" \
	'{"hop":6,"duration_ns":50000,"bound_ns":500,"machine":"Guest","cpu":1,"task":"<idle>","state":"irq pending","by":"irq 55","from":"1.003180000","to":"1.003230000","exits":0,"outside_ns":20000,"pid":0}
{"hop":3,"machine":"Guest","cpu":1,"time":"1.003270000","event":"sched_waking","text":"pid=30"}
[{"end":"interrupt","why":"interrupt 7 on CPU 2","hops":10,"duration_ns":2390000}]
[]' "JSON"
is "$(jq -c '[([.path[].duration_ns] | add), .end[0].duration_ns]' <<<"$out")" "[2390000,2390000]" "hops make up the whole"

path --at 1.003305 --guest Guest --cpu 0 --json "${files[@]}"
is "$(jq -c '.path[0] | [.task, .state, .duration_ns, .exits, .outside_ns]' <<<"$out")" \
	'["net-20","runs",1805000,1,5000]' "how often a guest was left, and for how long"

# ---- what is not told ------------------------------------------------------------------------------

# ends EXPECTED LINES NAME: how the chain ends
ends() { is "$(tail -n "$2" <<<"$out")" "$1" "$3"; }
blind="it is not known whether vCPUs ran: that needs the host's sched events, and a bound of the guest's clock"

sed 's/^1003100000 2/lost 2 12\n&/' "$tmp/host" | host "$tmp/trace.dat"
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
ends "unknown after 2.170ms: 12 events lost on CPU 2 of host" 1 "events that were lost end it"
like "$out" '^  6 +host +2 +1.003100000 +lost events +12$' "... and are shown"
host "$tmp/trace.dat" <"$tmp/host"
sed 's/^1003250000 1/lost 1 3\n&/' "$tmp/guest" | guest "$tmp/trace-Guest.dat" 500
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
ends "unknown after 2.150ms: 3 events lost on CPU 1 of Guest" 1 "... a guest's, too"
{ echo 1000500000 3 9 sched_waking 5; cat "$tmp/guest"; echo "lost 3 5
1007000000 3 9 sched_waking 5"; } | guest "$tmp/trace-Guest.dat" 500
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
ends "unknown after 0ns: 5 events lost on CPU 3 of Guest" 1 "... that are told of only behind the moment"

guest "$tmp/trace-Guest.dat" 500 < <(sed '/sched_waking/d' "$tmp/guest")
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
ends "unknown after 0ns: it needs sched_waking of Guest: record -e sched" 1 "events that nobody recorded"
guest "$tmp/trace-Guest.dat" 500 < <(sed '/irq_handler/d' "$tmp/guest")
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
ends "unknown after 2.170ms: which interrupt that was needs irq events: record -A Guest -e irq" 1 "... interrupts"
guest "$tmp/trace-Guest.dat" 500 <"$tmp/guest"
host "$tmp/trace.dat" < <(sed '/vgic/d' "$tmp/host")
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
is "$(sed -n '8,11p' <<<"$out")" "  6  50.00us  500ns  Guest      1  <idle>        irq pending  irq 40
  7  30.00us      -  host       1  Guest:1       runnable     <idle>
  8  50.00us      -  host       2  vhost-99-110  runs         -
  9  90.00us      -  host       2  vhost-99-110  runnable     batch-40" \
	"nobody is known to have raised it: whoever woke the halted vCPU did"
host "$tmp/trace.dat" < <(sed '/vgic/d; /vcpu_wakeup/d' "$tmp/host")
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
ends "unknown after 2.170ms: who raised it needs kvm events: record -e kvm" 1 "... if it had been halted"
host "$tmp/trace.dat" <"$tmp/host"

# a file that begins later than the others, or ends earlier, says nothing of the time outside of it
path --at 1.0055 --guest Guest --cpu 0 "${files[@]}"
is "$(sed -n 3p <<<"$out")" "  1  100.0us      -  Guest      0  shell-30      runs         -" "a guest that is recorded until later"
path --at 1.0055 --guest Guest --cpu 0 --within 0.00005 "${files[@]}"
ends "unknown after 0ns: whether its vCPU had a CPU lies further back than --within" 1 \
	"sched events that were recorded, but not within, are not called missing"
for cpu in 0 1; do
	path --at 1.0061 --guest Guest --cpu $cpu "${files[@]}"
	is "$status:$out:$err" "1::hyptrace: Guest is not recorded at 1.0061: it is from 1.001500000 to 1.006000000" \
		"nothing is told of vCPU $cpu after the end of the guest's file"
done
path --at 1.0061 --guest Guest --task 20 "${files[@]}"
is "$status:$out" "1:" "... nor of a task"
path --at 1.0014 --guest Guest --cpu 0 "${files[@]}"
is "$status:$err" "1:hyptrace: Guest is not recorded at 1.0014: it is from 1.001500000 to 1.006000000" "... nor before its begin"
host "$tmp/ended.dat" < <(sed '/^1005/,$d' "$tmp/host")
path --at 'sched_switch@Guest/next_pid==30' "$tmp/ended.dat" "${files[1]}"
ends "unknown after 0ns: host is recorded from 1.000000000 to 1.003310000, not after" 1 "a host's file that ends before the moment"
host "$tmp/begun.dat" < <(sed -n '/^100331/,$p' "$tmp/host")
path --at 'sched_switch@Guest/next_pid==30' "$tmp/begun.dat" "${files[1]}"
ends "unknown after 2.090ms: host is recorded from 1.003310000 on, not before" 1 "... and one that begins within the chain"

# ---- names -------------------------------------------------------------------------------------------

# the file's table has hog; it executes another program, and is renamed
sed '/^1005310000 0 120/i 1003400000 0 120 sched_process_exec /opt/bin/matrix-of-numbers 120\n1004000000 0 120 task_rename 120 sieve' \
	"$tmp/host" | host "$tmp/named.dat"
for at in 1.00335:hog 1.0035:matrix-of-numbe 1.0045:sieve; do
	path --at "${at%:*}" --cpu 0 "$tmp/named.dat" "${files[1]}"
	like "$out" "^${at#*:}-120 of host on CPU 0 at ${at%:*}0*: why then" \
		"a task's name at that time: ${at#*:}"
done
for task in sieve-120 matrix-of-numbe-120 120; do
	path --at 1.0045 --task "$task" "$tmp/named.dat" "${files[1]}"
	like "$out" "^sieve-120 of host on CPU 0 at 1.004500000: why then" "a task as it is printed: --task $task"
done
path --at 1.0045 --guest host --task sieve-120 "$tmp/named.dat" "${files[1]}"
like "$out" "^sieve-120 of host on CPU 0" "--guest host, as answers call it"
path --at 'sched_switch@Guest/next_pid==30' "$tmp/named.dat" "${files[1]}"
like "$out" '^  2 .* runnable +sieve-120$' "... of the one that had the CPU"
like "$("$hyptrace" stat -q --show steal "$tmp/named.dat" "${files[1]}")" ' preempted +sieve-120 ' "stat has the last one"
# switches before and after a renaming have the same name: the way back was not recorded
printf 'event task:task_rename int pid; char newcomm[16] | "%%d", REC->pid
1000000000 0 0 sched_switch\tswapper/0\t0\t120\t0\tmoth\t7\t120
1000001000 0 7 task_rename\t7\tlarva
1000002000 0 7 print\t0\tflies
1000003000 0 7 sched_switch\tmoth\t7\t120\t0\tswapper/0\t0\t120
1000004000 0 0 sched_switch\tswapper/0\t0\t120\t0\tmoth\t7\t120
1000009000 0 7 print\t0\tflies
' | "$build/tests/integration/make-trace" "$tmp/back.dat" tests/integration/events/kernel
for at in 1.0000015:larva 1.000005:moth; do
	path --at "${at%:*}" --cpu 0 "$tmp/back.dat"
	like "$out" "^${at#*:}-7 of host on CPU 0 at" "a name that came back: ${at#*:}"
done

# ---- clocks ------------------------------------------------------------------------------------------

host "$tmp/two.dat" < <(sed '/vgic/{p;s/55/56/}' "$tmp/host")
path --at 'sched_switch@Guest/next_pid==30' "$tmp/two.dat" "${files[1]}"
ends "undecided after 2.170ms: several interrupts were raised, and it is not known which one this was" 1 \
	"two interrupts, and one handler"
host "$tmp/trace.dat" < <(sed '/kvm_exit 2 1 0/i 1001100000 1 101 vgic_update_irq_pending 1 56 1' "$tmp/host")
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
is "$out" "$whole" "what was raised before the vCPU halted is not meant"
host "$tmp/trace.dat" <"$tmp/host"
host "$tmp/none.dat" < <(sed '/vgic/d' "$tmp/host")
guest "$tmp/trace-Guest.dat" 500 < <(sed '3i 1003210000 1 0h irq_handler_entry 1 IPI\n1003212000 1 0h irq_handler_exit 1 1' \
	"$tmp/guest")
path --at 'sched_switch@Guest/next_pid==30' "$tmp/none.dat" "${files[1]}"
ends "unknown after 2.170ms: who raised it needs kvm events: record -e kvm" 1 \
	"the vCPU was woken for an interrupt that was handled before"
rm "$tmp/none.dat"
# the guest's task kicks vhost, when it had just come to its CPU
cat >"$tmp/kicked" <<'E'
1000000000 0 0 sched_switch 0 0 100
1000000000 1 110 sched_switch 110 1 0
1001000000 0 100 kvm_entry 0
1002000000 0 100 kvm_exit 2 36 0
1002010000 0 100 sched_waking 110
1002050000 1 0 sched_switch 0 0 110
E
host "$tmp/kick.dat" <"$tmp/kicked"
cat >"$tmp/kicker" <<'E'
1000500000 0 10 sched_switch 10 1 20
1001500000 0 20 sched_switch 20 0 30
1001700000 0 30 sched_waking 10
1001999400 0 30 sched_switch 30 0 10
1003000000 1 0 sched_waking 5
E
guest "$tmp/trace-Guest.dat" 500 <"$tmp/kicker"
path --at 'sched_switch@host/next_pid==110' "$tmp/kick.dat" "${files[1]}"
is "$(sed -n '3,5p' <<<"$out")" "  1  40.00us      -  host       1  vhost-99-110  runnable  <idle>
  2  10.00us      -  host       0  Guest:0       handles   DABT_LOW
  3    600ns  500ns  Guest      0  disk-10       runs      -" "which task it was, further than the bound"
# it had come to its CPU as vhost fell asleep, nearer than the bound, and further
for bound in 500 100; do
	guest "$tmp/trace-Guest.dat" $bound < <(printf '%s\n' "999999000 0 10 sched_switch 10 0 20" \
		"999999800 0 20 sched_switch 20 0 10" "1003000000 0 10 sched_waking 5")
	path --at 'sched_switch@host/next_pid==110' "$tmp/kick.dat" "${files[1]}"
	told="${told-}$(tail -n 1 <<<"$out"), "
done
is "$told" "unknown after 2.050ms: host is recorded from 1.000000000 on, not before, own after 2.050ms: it was running as the wait began, " \
	"the first sleep bounds the chain, where the order is certain"
guest "$tmp/trace-Guest.dat" 500 <"$tmp/kicker"
host "$tmp/interrupted.dat" < <(sed 's/kvm_exit 2 36/kvm_exit 0 0/' <"$tmp/kicked")
path --at 'sched_switch@host/next_pid==110' "$tmp/interrupted.dat" "${files[1]}"
ends "interrupt after 40.00us: an interrupt on CPU 0 made the guest leave" 1 "an interrupt is not its guest's doing"
guest "$tmp/trace-Guest.dat" 500 < <(sed '3i 1001600000 0 30h irq_handler_entry 40 virtio0' "$tmp/kicker")
path --at 'sched_switch@host/next_pid==110' "$tmp/kick.dat" "${files[1]}"
ends "unknown after 50.00us: who raised it needs kvm events: record -e kvm" 1 "... and a guest's handler is not its task"
guest "$tmp/trace-Guest.dat" 601 <"$tmp/kicker"
path --at 'sched_switch@host/next_pid==110' "$tmp/kick.dat" "${files[1]}"
ends "undecided after 50.00us: which task of Guest that was is nearer than the bound" 1 "... and nearer"
guest "$tmp/trace-Guest.dat" - <"$tmp/guest"
path --at 'sched_switch@Guest/next_pid==30' "${files[@]}"
is "$(sed -n '2,5p' <<<"$out")" "hop     took  bound  machine  cpu  task      state     by
  1  2.130ms      -  Guest      0  shell-30  runnable  net-20
  2  20.00us      -  Guest      1  disk-10   runs      -
  3  20.00us      -  Guest      1  disk-10   runnable  <idle>" "a clock without a bound: the guest alone"
ends "undecided after 2.170ms: the clock of Guest has no bound: hyptrace sync
$blind" 2 "... as far as it goes"
path --at 'sched_switch/next_pid==30' "${files[1]}"
ends "unknown after 2.170ms: no file says which host's thread CPU 1 of Guest is
$blind" 2 "the guest's file alone"

# ---- other ends -----------------------------------------------------------------------------------------

host "$tmp/trace.dat" <<'E'
1000000000 0 0 sched_switch 0 0 20
1000000000 1 0 sched_switch 0 0 30
1000000000 2 0 sched_switch 0 0 40
1000100000 0 20 hrtimer_start 0xabc
1000500000 1 30 sched_switch 30 1 0
1001000000 0 20h irq_handler_entry 27 arch_timer
1001010000 0 20h hrtimer_expire_entry 0xabc
1001020000 0 20h softirq_raise 3
1001030000 0 20h irq_handler_exit 27 1
1001050000 0 20s softirq_entry 3
1001060000 0 20s sched_waking 30
1001070000 0 20s softirq_exit 3
1001100000 1 0 sched_switch 0 0 30
1001200000 1 30 sched_wakeup_new 50
1001250000 2 40 sched_switch 40 0 50
1001300000 2 50 sched_switch 50 0 40
1001400000 2 40 sched_switch 40 1 0
1001500000 0 20 sched_waking 40
1001550000 2 0 sched_switch 0 0 40
E
path --at 'sched_switch/next_pid==30' --nth 2 "$tmp/trace.dat"
is "$(sed "s/ expires=.*//" <<<"$out")" "shell-30 of host on CPU 1 at 1.001100000: why then
hop     took  bound  machine  cpu  task      state     by
  1  40.00us      -  host       1  shell-30  runnable  <idle>
  2  40.00us      -  host       0  net-20    softirq   softirq 3

each hop began with
hop  machine  cpu         time  event          text
  1  host       0  1.001060000  sched_waking   pid=30
  2  host       0  1.001020000  softirq_raise  vec=3
  3  host       0  1.000100000  hrtimer_start  hrtimer=0xabc

interrupt after 80.00us: a timer, set on CPU 0 at 1.000100000" "a softirq, raised by a timer"
path --at 'sched_switch/next_pid==30' --nth 2 --within 0.0005 "$tmp/trace.dat"
ends "interrupt after 80.00us: a timer on CPU 0" 1 "no further back than --within"
path --at 'sched_switch/next_pid==50' "$tmp/trace.dat"
ends "began after 50.00us: the task began" 1 "a task that began"
path --at 'sched_switch/next_pid==40' --nth 2 "$tmp/trace.dat"
ends "preempted after 50.00us: another took its CPU" 1 "one that was preempted"
path --at 'sched_switch/next_pid==40' --nth 3 "$tmp/trace.dat"
is "$(sed -n '3,4p;$p' <<<"$out")" "  1  50.00us      -  host       2  batch-40  runnable  <idle>
  2  100.0us      -  host       0  net-20    runs      -
own after 150.0us: it was running as the wait began" "one that waited for another, which ran all the time"
path --at 'sched_waking/pid==30' "$tmp/trace.dat"
ends "interrupt after 40.00us: a timer, set on CPU 0 at 1.000100000" 1 "an event in a softirq"
path --at 'sched_wakeup_new' "$tmp/trace.dat"
like "$out" '^  1  100.0us      -  host       1  shell-30  runs ' "what a task did"
path --at 1.00015 --cpu 0 "$tmp/trace.dat"
ends "unknown after 150.0us: what it had waited for lies before the recording's begin" 1 "the recording's begin"

host "$tmp/trace.dat" <<'E'
1000000000 0 0 sched_switch 0 0 20
1000000000 1 0 sched_switch 0 0 30
1000500000 1 30 sched_switch 30 1 0
1001000000 0 20h irq_work_entry 246
1001010000 0 20h sched_waking 30
1001020000 0 20h irq_work_exit 246
1001100000 1 0 sched_switch 0 0 30
1001200000 1 30 sched_switch 30 1 0
1001300000 0 20h sched_waking 30
1001400000 1 0 sched_switch 0 0 30
E
path --at 'sched_switch/next_pid==30' --nth 2 "$tmp/trace.dat"
ends "interrupt after 90.00us: interrupt 246 on CPU 0" 1 "x86's irq_work is an interrupt"
path --at 'sched_switch/next_pid==30' --nth 3 "$tmp/trace.dat"
ends "interrupt after 100.0us: an interrupt on CPU 0" 1 "... until its exit"

# ---- real recordings -----------------------------------------------------------------------------------------

# Each event of each chain is in the report, at its time; hops join, and make up the whole.
export TRACEEVENT_PLUGIN_DIR=$build/plugins
check_real() { # NAME HOST GUEST HOPS
	local n all="" wrong="" hops=0 chains=0 event end length joined

	"$hyptrace" report -t "$2" "$3" >"$tmp/report"
	for event in sched_switch@Guest sched_waking@Guest sched_switch@host sched_waking@host; do
		for ((n = 1; ; n++)); do
			path --at $event --nth $n --json "$2" "$3"
			[ $status = 0 ] || break
			chains=$((chains + 1))
			{
				IFS=$'\t' read -r end length joined
				all="$all ${end/ /-}"
				hops=$((hops + length))
				[ "$joined" = true ] || wrong="$wrong $event:$n:sum"
				while IFS=$'\t' read -r cpu time name text; do
					[ "$name" = "not recorded" ] && continue
					grep -F "[$(printf %03d "$cpu")]" "$tmp/report" | grep -F " $time: $name: " |
						grep -qF -e "$text" || wrong="$wrong $event:$n:$time"
				done
			} < <(jq -r '[.end[0].end, (.path | length), (([.path[].duration_ns] | add // 0) == .end[0].duration_ns and
				([.path[].to][1:] == [.path[].from][:-1]) and all(.path[]; .duration_ns > 0))],
				(.events[] | [.cpu, .time, .event, .text]) | @tsv' <<<"$out")
		done
	done
	is "$wrong" "" "$1: the events of $hops hops of $chains chains are in the report, and hops join"
	diag "$(tr ' ' '\n' <<<"$all" | sort | uniq -c | tr '\n' ' ')"
	[ $hops -gt "$4" ]
	ok $? "... enough of them"
}
check_real functions tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat 20
cp tests/data/guest/*.dat "$tmp"
"$hyptrace" sync -q --write "$tmp/trace.dat" "$tmp/trace-Guest.dat" >"$tmp/out"
ok $? "the offsets of a recording get bounds"
check_real guest "$tmp/trace.dat" "$tmp/trace-Guest.dat" 40
# one that the kernel's table of names lacks
path --at 63.5655 --guest Guest --task kworker/1:2 tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat
like "$status:$err:$out" "^0::kworker/1:2-102 of Guest on CPU 1" "a task by a name that only records have"

cd tests/data/functions || exit 1
path --at 'sched_switch@host/next_pid==116' trace.dat trace-Guest.dat
is "$(sed -n '1,10p;$p' <<<"$out")" "vhost-111-116 of host on CPU 3 at 63.568360239: why then
hop     took  bound  machine  cpu  task             state     by
  1  3.019ms      -  host       3  vhost-111-116    runnable  kworker/3:1-55
  2  128.0us      -  host       1  Guest:1          handles   DABT_LOW
  3  2.727ms      -  host       1  Guest:1          handles   guest_exit
  4  96.78us  573ns  Guest      1  kworker/1:2-102  runs      -
  5  212.4us      -  Guest      1  kworker/1:2-102  runnable  kworker/1:0-22
  6  281.3us      -  Guest      1  kworker/1:0-22   runs      out 12.00us
  7  2.895ms      -  Guest      1  kworker/1:0-22   runnable  hyptrace-agent-113
  8  97.08us      -  Guest      1  kworker/1:0-22   runnable  rcu_sched-14
preempted after 9.457ms: another took its CPU" "a vhost thread that a guest's task kicked, through the hypervisor"

# the man page's examples
while read -r line; do
	PATH=$build:$PATH bash -c "$line" >"$tmp/out" 2>"$tmp/err"
	is "$?:$(<"$tmp/err")" "0:" "man page: $line"
done < <(sed -n '/^\.SH EXAMPLES/,/^\.SH SEE/{s/\\-/-/g;s/\\(aq/'\''/g;s/^\$ //p}' "$root/Documentation/hyptrace-path.1")
cd "$root" || exit 1

# ---- what is wrong -----------------------------------------------------------------------------------------------

refused() { # STATUS MESSAGE ARG...
	local expected=$1 message=$2 program=hyptrace

	[ "$1" = 1 ] || program="hyptrace path"

	shift 2
	path "$@"
	is "$status:$err" "$expected:$program: $message" "refused: $message"
}
f=("${files[@]}")
refused 2 "specify --at TIME or --at EVENT" "${f[@]}"
refused 2 "a TIME needs one of --task and --cpu" --at 1.5 "${f[@]}"
refused 2 "a TIME needs one of --task and --cpu" --at 1.5 --task x --cpu 1 "${f[@]}"
refused 2 "--task and --cpu are for a TIME: an event has its own" --at sched_switch --cpu 1 "${f[@]}"
refused 2 "a TIME is a number of seconds" --at 1.2.3 --cpu 1 "${f[@]}"
refused 2 "-w 0: must be at least 1ns" --at sched_switch --within 0 "${f[@]}"
refused 2 "--nth is for an EVENT" --at 1 --cpu 1 --nth 2 "${f[@]}"
path --at sched_switch --json --csv "${f[@]}"
is "$status:$err" "2:hyptrace path: specify either --json or --csv" "two forms"
refused 1 "0 events match 'no_such_event'" --at no_such_event "${f[@]}"
refused 1 "none of the files is of a guest 'Other'" --at sched_switch --guest Other "${f[@]}"
refused 1 "$tmp/trace.dat has no task named 'nobody'" --at 46.31 --task nobody "${f[@]}"
refused 1 "no events say who ran at 46.31" --at 46.31 --cpu 77 "${f[@]}"
refused 1 "cannot open '$tmp/none.dat': No such file or directory" --at sched_switch "$tmp/none.dat"
path --at 'sched_switch/nofield==3' "${f[@]}"
is "$status" 1 "a filter with a field that the event does not have"
head -c $(($(stat -c %s tests/data/guest/trace.dat) * 3 / 4)) tests/data/guest/trace.dat >"$tmp/cut.dat"
path --at sched_switch "$tmp/cut.dat"
[ $status = 1 ] && [ -n "$err" ]
ok $? "a file that is cut off" || diag "$status: $err"
done_testing
