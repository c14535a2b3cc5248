#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Known causes on a protected-mode host: hyptrace why, without a question, must name each of them first.
# shellcheck disable=SC2016 # L1 and awk have their own $
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# thread NAME: of the guest's VMM
threads='thread() { grep -lx "$1" /proc/[0-9]*/task/*/comm | head -n 1 | cut -d / -f 5; }
cp /bin/bash /tmp/hog
events="-e kvm -b 4096 -e sched -b 4096 -B hyp -b 4096 -A Guest@3 -e sched -e irq"'

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
	for n in 0 1; do taskset -p -c $((n + 1)) $(thread "CPU $n/KVM") >/dev/null; done
	taskset -c 1 /tmp/hog -c "while :; do :; done" & hog=$!
	hyptrace record $events -o /tmp/hog.dat -- sleep 3; s=$?
	kill $hog; cp /tmp/hog*.dat /mnt/out; exit $s'
recorded "a program that wants the CPU of vCPU 0"
named hog 'preempted by hog-[0-9]+' "... is named first"
like "$(why -q "$out/hog.dat" | head -n 1)" ' of Guest:0$' "... and whose vCPU it took"

# ---- two vCPUs on one CPU ----
run "$threads"'
	for n in 0 1; do taskset -p -c 1 $(thread "CPU $n/KVM") >/dev/null; done
	hyptrace record $events -o /tmp/over.dat -- sleep 3; s=$?
	cp /tmp/over*.dat /mnt/out; exit $s'
recorded "two vCPUs that compute, on one CPU"
named over 'preempted by Guest:[01], overcommit' "... are named first"

# ---- neither: exits, which are slow in an emulated machine, remain ----
guest 'kill $(cat /tmp/busy)'
run "$threads"'
	for n in 0 1; do taskset -p -c 0-3 $(thread "CPU $n/KVM") >/dev/null; done
	hyptrace record $events -o /tmp/calm.dat -- sleep 3; s=$?
	cp /tmp/calm*.dat /mnt/out; exit $s'
recorded "a guest that does a little work"
unlike "$(why -q "$out/calm.dat" | grep -E ' [2-9][0-9]\.[0-9] %')" 'preempted' "... and no preemption of 20 %" || diag "$(why "$out/calm.dat")"

done_testing
