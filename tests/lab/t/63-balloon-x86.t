#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A guest whose balloon takes memory that it has used, and gives it back: its faults are those of pages that the host
# had taken back, and `why` names them first. Before that it works as much, and they are no finding.
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"

hyptrace=$build/hyptrace
copy_hyptrace "$tmp/out/own"
HYPTRACE_LAB_GUEST_ARGS="-smp 1 -device virtio-balloon-pci" x86 run -a tests/lab/l2/refill -o "$tmp/out" -- '
	cp -r own /tmp/own; cd /tmp
	record() { # NAME COMMAND
		own/ld.so --library-path own own/hyptrace record --guest-timeout 60 -o "$1.dat" -b 16384 \
			-e kvm:kvm_entry -e kvm:kvm_exit -e kvm:kvm_page_fault -e kvm:kvm_userspace_exit -e sched:sched_switch \
			-e sched:sched_waking -A Guest@3:823 -e sched:sched_switch -b 4096 -- sh -c "$2" || exit
		cp $1*.dat /mnt/out
	}
	sleep 3
	record calm "sleep 3"
	record balloon "sleep 2; echo balloon 150 >/run/mon.in; sleep 6; echo balloon 256 >/run/mon.in; sleep 6"' >"$tmp/log" 2>&1
ok $? "recorded" || diag "$(tail -n 30 "$tmp/log")"

why() {
	"$hyptrace" why "$@" "$tmp/out/$name.dat" "$tmp/out/$name-Guest.dat" 2>&1
}
name=balloon
like "$(why -q | head -n 1)" '^1\. exits for stage-2 faults: .* [0-9]+ % on one that the host had taken back' \
	"a balloon: the faults of pages that the host had taken back are named first" || diag "$(why)"
name=calm
unlike "$(why)" 'taken back' "without one there are none" || diag "$(why)"
done_testing
