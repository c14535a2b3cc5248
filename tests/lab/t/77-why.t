#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Known causes on a protected-mode host: hyptrace why, without a question, must name each of them first.
# shellcheck disable=SC2016 # L1 and awk have their own $
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# thread NAME: of the guest's VMM
threads='thread() { grep -lx "$1" /proc/[0-9]*/task/*/comm | head -n 1 | cut -d / -f 5; }
cp /bin/bash /tmp/hog
events="--guest-timeout 100s -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch -e sched:sched_waking -b 8192 -A Guest@3 -e sched:sched_switch -b 8192"'

why() {
	"$build/hyptrace" why "$@"
}

# named FILE PATTERN NAME: the first finding; it is at least 5 % of a vCPU
named() {
	like "$(why -q "$out/$1.dat" | head -n 1)" "^1\. $2: .* (([5-9]|[0-9]{2,})\.[0-9]) % of Guest:[01]$" "$3" ||
		diag "$(why "$out/$1.dat" 2>&1)"
}

# ---- another program has the CPU of a vCPU ----
guest 'for i in 1 2; do (while :; do :; done) & echo $!; done >/tmp/busy 2>/dev/null'
run "$threads"'
	for n in 0 1; do taskset -p -c $((1 - n)) $(thread "CPU $n/KVM") >/dev/null; done
	taskset -c 1 /tmp/hog -c "while :; do :; done" & hog=$!
	hyptrace record $events -o /tmp/hog.dat -- sleep 3; s=$?
	kill $hog; cp /tmp/hog*.dat /mnt/out; exit $s'
recorded "a program that wants the CPU of vCPU 0"
named hog 'preempted by hog-[0-9]+.*' "... is named first"
like "$(why -q "$out/hog.dat" | head -n 1)" ' of Guest:0$' "... and whose vCPU it took"

# ---- two vCPUs on one CPU ----
run "$threads"'
	for n in 0 1; do taskset -p -c 1 $(thread "CPU $n/KVM") >/dev/null; done
	hyptrace record $events -o /tmp/over.dat -- sleep 3; s=$?
	cp /tmp/over*.dat /mnt/out; exit $s'
recorded "two vCPUs that compute, on one CPU"
named over 'preempted by Guest:[01], overcommit.*' "... are named first"

# ---- neither: exits, which are slow in an emulated machine, have their ordinary price ----
guest 'kill $(cat /tmp/busy)'
run "$threads"'
	for n in 0 1; do taskset -p -c 0-3 $(thread "CPU $n/KVM") >/dev/null; done
	hyptrace record $events -o /tmp/calm.dat -- sleep 3; s=$?
	cp /tmp/calm*.dat /mnt/out; exit $s'
recorded "a guest that does a little work"
like "$(why -q "$out/calm.dat" | head -n 1)" '^nothing stands out' "... in which nothing stands out" || diag "$(why "$out/calm.dat")"

# ---- memory that the guest touches for the first time ----
guest 'mkdir -p /tmp/mem && mount -t tmpfs -o size=90m none /tmp/mem
	dd if=/dev/zero of=/tmp/mem/all bs=64k count=1280 >/dev/null 2>&1 </dev/null & echo $! >/tmp/busy'
run "$threads"'
	hyptrace record -e kvm:kvm_guest_fault ${events/ -A / -B hyp -b 8192 -A } -o /tmp/touch.dat -- sleep 3; s=$?
	cp /tmp/touch*.dat /mnt/out; exit $s'
recorded "a guest that writes to memory it never had"
named touch "exits for stage-2 faults: (9[0-9]|100) % a page.s first, of [0-9]+ pages.*, (9[0-9]|100) % a share or donation by the hypervisor, most of it from the guest.s task dd-[0-9]+(, [0-9]+ a second)?" \
	"... is named first, and that its pages are shared with it"
guest 'kill $(cat /tmp/busy); until umount /tmp/mem; do sleep 0.2; done'

# ---- a guest whose task holds a lock and spins, while another one on its CPU waits for it ----
guest 'cat >/tmp/spin <<"END"
while :; do
	until mkdir /tmp/lock; do :; done
	n=0; while [ $n -lt $1 ]; do n=$((n + 1)); done
	rmdir /tmp/lock
done
END
	taskset 1 sh /tmp/spin 20000 >/dev/null 2>&1 </dev/null & echo $! >/tmp/busy
	taskset 1 sh /tmp/spin 10 >/dev/null 2>&1 </dev/null & echo $! >>/tmp/busy'
run "$threads"'
	hyptrace record $events -o /tmp/lock.dat -- sleep 3; s=$?
	cp /tmp/lock*.dat /mnt/out; exit $s'
recorded "a guest's task that spins with a lock, and has the CPU of one that wants it"
named lock "the guest.s task sh-$(guest 'head -n 1 /tmp/busy') has a CPU while another one waits for it" "... is named first"
guest 'kill $(cat /tmp/busy)'

# ---- a VMM that is stopped again and again, while its guest works ----
guest 'while :; do ls /proc; done >/dev/null 2>&1 </dev/null & echo $! >/tmp/busy'
run "$threads"'
	qemu=$(pidof qemu-system-aarch64)
	(while sleep 0.3; do kill -STOP $qemu; sleep 0.3; kill -CONT $qemu; done) & stops=$!
	hyptrace record $events -o /tmp/stops.dat -- sleep 3; s=$?
	kill $stops; sleep 0.5; kill -CONT $qemu
	cp /tmp/stops*.dat /mnt/out; exit $s'
recorded "a VMM that is stopped for 0.3 s, again and again"
named stops 'blocked: .*' "... is named first"
guest 'kill $(cat /tmp/busy)'

# ---- spans that a guest's program marks ----
guest 'cat >/tmp/draw <<"END"
i=0
while :; do
	for t in /sys/kernel/tracing/trace_marker /sys/kernel/tracing/instances/*/trace_marker; do
		[ ! -e "$t" ] || echo "$i App Enter: draw" >"$t"
	done
	n=0; while [ $n -lt 300 ]; do n=$((n + 1)); done
	for t in /sys/kernel/tracing/trace_marker /sys/kernel/tracing/instances/*/trace_marker; do
		[ ! -e "$t" ] || echo "$i App Exit: draw" >"$t"
	done
	i=$((i + 1))
done
END
taskset 1 sh /tmp/draw >/dev/null 2>&1 </dev/null &'
run "$threads"'
	for n in 0 1; do taskset -p -c $((1 - n)) $(thread "CPU $n/KVM") >/dev/null; done
	mkfifo /tmp/pause
	nice -n -19 taskset -c 1 /tmp/hog -c "exec 3<>/tmp/pause; while :; do end=\$((\${EPOCHREALTIME/./} + 150000))
		while [ \${EPOCHREALTIME/./} -lt \$end ]; do :; done; read -t 0.2 -u 3; done" & hog=$!
	hyptrace record $events -o /tmp/spans.dat -- sleep 4; s=$?
	kill $hog; cp /tmp/spans*.dat /mnt/out; exit $s'
recorded "a guest whose program marks spans; another program wants its CPU now and then"
like "$(why -q --span draw --tail 60 "$out/spans.dat")" '^preempted by hog-[0-9]+ on CPU 1 +[0-9]' \
	"... it is one of what they waited for" || diag "$(why --span draw --tail 60 "$out/spans.dat" 2>&1)"

done_testing
