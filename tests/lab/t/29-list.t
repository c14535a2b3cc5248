#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace list on the pKVM host: its guests, their vCPU threads in each way to
# find them, whether an agent listens, and the hypervisor's buffer.
. "$(dirname "$0")/lib.sh"
# as 31-guests.t, which goes on with these guests and ends them
shared=1 vm_up -c 2,4 -g 2 -m protected -a "sh -c 'hyptrace-agent -v -D -p 824; exec trace-cmd agent'"

# Decodes the JSON in $output and prints what the Perl expression says of $j.
json() {
	perl -MJSON::PP -0777 -ne '$j = JSON::PP->new->utf8->decode($_); print '"$1" <<<"$output"
}
guests='map { my $g = $_; join(" ", (map { $g->{$_} // "-" } qw(name vmm cid agent)),
	join ",", map { "$_->{cpu}:$_->{how}" } @{$g->{vcpus}}) . "\n" } @{$j->{guests}}'
threads='map { my $g = $_; map { "$g->{pid} $_->{pid} $_->{cpu}\n" } @{$g->{vcpus}} } @{$j->{guests}}'

# on a slow machine an agent that has just begun may end a connection at once
run 'both() { hyptrace list --guests --probe --json >/tmp/both && [ "$(grep -o "\"listens\"" /tmp/both | wc -l)" = 2 ]; }
	within 60 both && cat /tmp/both'
recorded "list --guests works, and says nothing else"
is "$stderr" "" "silently"
is "$(json "$guests")" "\
Guest QEMU 3 listens 0:name,1:name
Guest2 QEMU 4 listens 0:name,1:name,2:name,3:name" "names, CIDs, agents and vCPUs of two guests"
is "$(json "$threads" | while read -r pid tid _; do echo "cat /proc/$pid/task/$tid/comm; "; done | xargs -0 -I{} "$lab" exec "$vm" {})" "\
CPU 0/KVM
CPU 1/KVM
CPU 0/KVM
CPU 1/KVM
CPU 2/KVM
CPU 3/KVM" "the threads are the vCPUs'"

run 'hyptrace list --guests --probe=825 --json'
is "$(json 'map { "$_->{agent}\n" } @{$j->{guests}}')" $'refused\nrefused' "nothing listens on another port"
run 'for i in 1 2 3; do hyptrace list --guests --probe >/dev/null; done; hyptrace list --guests --probe --json'
is "$(json 'map { "$_->{agent}\n" } @{$j->{guests}}')" $'listens\nlistens' "the agents have survived the probes"

# ---- a third guest whose threads have no names: QMP knows them, and the kernel ----

run 'qemu-system-aarch64 -M virt,gic-version=3 -cpu host -accel kvm -smp 2 -m 192 \
	-kernel /mnt/boot/Image -initrd /mnt/run/l2.cpio -append "quiet panic=-1" \
	-display none -monitor none -serial null -nic none -name Third -daemonize -pidfile /run/third.pid \
	-chardev socket,id=q,path=/run/third.qmp,server=on,wait=off -mon chardev=q,mode=control'
recorded "a guest whose threads have no names"
run 'hyptrace list --guests --json'
is "$(json "$guests" | tail -n 1)" "Third QEMU - - 0:qmp,1:qmp" "QMP tells its threads"
by_qmp=$(json "$threads" | tail -n 2)

# within() waits: a vCPU that computes is not seen in KVM_RUN, one that idles is
run 'mv /run/third.qmp /run/third.away
	both() { hyptrace list --guests --json >/tmp/third && [ "$(grep -c "\"how\": \"syscall\"" /tmp/third)" = 2 ]; }
	within 60 both; cat /tmp/third'
is "$(json "$guests" | tail -n 1)" "Third QEMU - - 0:syscall,1:syscall" "without it, threads are seen in KVM_RUN"
is "$(json "$threads" | tail -n 2)" "$by_qmp" "and are the same"
run 'kill $(cat /run/third.pid); within 20 gone $(cat /run/third.pid)'

# ---- what can be recorded ----

run 'hyptrace doctor'
recorded "hyptrace doctor"
is "$(grep -c '^  no ' <<<"$output")" 0 "everything can be recorded in the lab" || diag "$output"
is "$(tail -n 1 <<<"$output")" "next: hyptrace record -B hyp -e kvm -e sched -A Guest@3 -e sched -e irq -A Guest2@4 -e sched -e irq" \
	"the line that records it"
run 'cd /tmp && eval "$(hyptrace doctor | sed -n "s/^next: //p") -- sleep 2" && ls trace.dat trace-Guest.dat trace-Guest2.dat'
is "$output" $'trace-Guest.dat\ntrace-Guest2.dat\ntrace.dat' "which does" || diag "$stderr"
run 'rm -f /tmp/trace*.dat'

# ---- what else there is ----

run 'hyptrace list --json'
is "$(json 'join " ", map { $j->{buffers}[0]{$_} } qw(kind path layout clock cpus events_on)')" \
	"hypervisor remotes/hypervisor text boot 2 0" "the hypervisor's buffer"
is "$(json 'scalar @{$j->{guests}}')" 2 "the third guest is gone"
run 'hyptrace list --events "hyp_*"'
is "$output" $'hypervisor  hypervisor:hyp_enter\nhypervisor  hypervisor:hyp_exit' "the hypervisor's events"
run 'cat $hyp/tracing_on $hyp/events/enable $t/tracing_on; ls $t/instances'
is "$output" $'0\n0\n1' "nothing is changed by looking"

done_testing
