#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace why on captures: what it prints, and what it says where there is no tail, or no chain.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
stock="tests/data/stock/trace.dat tests/data/stock/trace-Guest.dat"

# why_of ARG...: its output; $status
why_of() {
	"$hyptrace" why -q "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	cat "$tmp/out" "$tmp/err"
}

# ---- a tail ---------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
why_of --preset abort --tail 85 $stock >/dev/null
is "$status" 0 "a preset with a tail: status 0"
like "$(<"$tmp/out")" '^p85 - p50 = 255\.5us: 100 % exit handling \(DABT_LOW\)$' "the first line names the causes"
like "$(<"$tmp/out")" '^exit handling \(DABT_LOW\) +324\.2us +808\.8us +100\.0% ' "... the table has the means"
# the commands of the examples, as they are typed
n=0
while read -r line; do
	PATH=$build:$PATH bash -c "$line -q" >"$tmp/shown" 2>&1 && [ -s "$tmp/shown" ]
	ok $? "an example: $line" || diag "$(<"$tmp/shown")"
	n=$((n + 1))
done < <(sed -n 's/^   hyptrace/hyptrace/p' "$tmp/out")
is "$n" 2 "each example has two commands"
like "$(<"$tmp/shown")" 'kvm_exit.*DABT_LOW' "... and these show what it is about"

# shellcheck disable=SC2086
is "$(why_of --preset irq --tail 95 $stock)" "$(why_of --preset irq --tail 95 $stock)" "the same at each call"
# shellcheck disable=SC2086
is "$(why_of --preset irq --tail 95 --csv $stock | grep -c '^causes,')" \
	"$(($("$hyptrace" why -q --preset irq --tail 95 --json $stock | grep -c '"cause":') + 1))" "CSV and JSON have the same causes"

# shellcheck disable=SC2086
like "$(why_of --from kvm_exit --to kvm_entry --key vcpu $stock)" '^p99 - p50 = 9\.122ms: 97 % halted$' "pairs of events"
# shellcheck disable=SC2086
like "$(why_of --from sched_waking@host --to sched_switch@host --key pid=next_pid --tail 95 $stock)" '^waking .* 87\.4% ' \
	"... of the host's tasks: the one that the end is about"

# shellcheck disable=SC2086
like "$(why_of --task init@Guest --tail 60 $stock)" '^guest +364\.8us ' "a guest's task: what it waits for from its wake-up until it runs"
# shellcheck disable=SC2086
is "$("$hyptrace" why -q --task init@Guest --tail 60 --json $stock)" \
	"$("$hyptrace" why -q --from 'sched_waking@Guest/comm=="init"' --to 'sched_switch@Guest/next_comm=="init"' --key pid=next_pid --tail 60 --json $stock)" \
	"... as by its events"

like "$(why_of --preset virtio --tail 90 tests/data/vhost/vhost.dat tests/data/vhost/vhost-Guest.dat)" \
	'^p90 - p50 = 5\.122ms: 28 % waking, ' "a worker whose CPU was idle wakes up"
like "$(why_of --preset timer --tail 85 tests/data/raw/trace.dat tests/data/raw/trace-Guest.dat)" \
	'^p85 - p50 = 922\.1us: 52 % guest task hyptrace-agent-130, ' "a timer counts since it fired"

# ---- spans that programs mark ------------------------------------------------------------------------------

# 20 of a host's thread, each 100 us; hog has its CPU for 900 us of the last three
for ((i = 0, at = 1000000; i < 20; i++, at += 2000000)); do
	echo "$at 0 50 print	0	$i App Enter: draw"
	[ "$i" -lt 17 ] || printf '%s\n' "$((at + 50000)) 0 50 sched_switch	app	50	120	0	hog	99	120" \
		"$((at + 950000)) 0 99 sched_switch	hog	99	120	0	app	50	120"
	end=$((at + (i < 17 ? 100000 : 1000000)))
	printf '%s\n' "$end 0 50 print	0	$i App Exit: draw" "$((end + 10)) 0 50 sched_switch	app	50	120	1	swapper/0	0	120" \
		"$((end + 900000)) 0 0 sched_switch	swapper/0	0	120	0	app	50	120"
done | sort -n -s -k 1,1 >"$tmp/events"
"$build/tests/integration/make-trace" "$tmp/spans.dat" tests/integration/events/kernel <"$tmp/events"
like "$(why_of --span draw --tail 85 "$tmp/spans.dat")" '^p85 - p50 = 900\.0us: 100 % preempted by hog-99 on CPU 0$' \
	"spans of a host's thread"
why_of --span nosuch "$tmp/spans.dat" >"$tmp/said"
is "$status $(<"$tmp/said")" "1 hyptrace: no span is called 'nosuch': hyptrace stat --show spans lists them" "... of a name that none has"

# of a guest's program, which marks while another program has its vCPU's CPU now and then
like "$(why_of --span draw --tail 80 tests/data/spans/spans.dat tests/data/spans/spans-Guest.dat)" \
	'^p80 - p50 = 10\.12ms: 83 % preempted by hog-164 on CPU 1, 13 % guest task sh-82$' "... of a guest's, on the vCPU on which they end"
printf '1 computation_start\n0 computation_end\n' >"$tmp/desc"
marks=tests/data/hypertrace/example.dat
is "$("$hyptrace" why -q --span computation --hypertrace-desc "$tmp/desc" --csv $marks | awk -F , '$2 == "total" { print $3 }')" \
	"$("$hyptrace" sql -q --csv $marks "SELECT max(ts) - min(ts) FROM events WHERE name = 'guest_hypertrace'" | sed -n 's/^rows,\([0-9]*\)$/\1/p')" \
	"... by hypertrace, with the names of a description: from the first mark to the second"

# what why says of an instance is what path shows of it
steal="tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat"
# shellcheck disable=SC2086
like "$(why_of --task rcu_preempt@Guest --tail 90 $steal)" '^1\. 8\.058ms of 22\.34ms: preempted by hog-178 on CPU 0$' "an example"
# shellcheck disable=SC2086
is "$("$hyptrace" path -q --csv --at 40.273251618 --guest Guest --cpu 1 $steal | perl -F, -ane '
	$all += $F[2], $by{$F[8]} += $F[2] if $F[0] eq "path" && $F[1] =~ /^\d/; END { printf "%.3f of %.2f", $by{"hog-178"} / 1e6, $all / 1e6 }')" \
	"8.058 of 22.34" "... as the path back from it"

# ---- none ---------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
like "$(why_of --preset abort $stock)" '^30 instances are too few for a tail at p99: --tail 90 has enough$' "too few for a tail"
# shellcheck disable=SC2086
why_of --preset abort $stock >/dev/null
is "$status" 0 "... is an answer"
like "$(<"$tmp/out")" '^Mean of 30 instances, by cause$' "... of all of them"
# shellcheck disable=SC2086
like "$(why_of --preset hypercall $stock)" '^none is complete' "no chain at all"
# shellcheck disable=SC2086
why_of --preset hypercall $stock >/dev/null
is "$status" 1 "... is no answer"
# shellcheck disable=SC2086
why_of --task bogus@Guest $steal >/dev/null
is "$status $(cat "$tmp/out" "$tmp/err")" "1 no wake-up of task bogus@Guest leads to its run" "a task that is not there"
# shellcheck disable=SC2086
why_of --preset timer $stock >/dev/null
like "$(<"$tmp/err")" 'the files have no hrtimer_start@guest: record -A GUEST -e timer gives it' "events that are missing"
[ "$status" = 1 ] && [ ! -s "$tmp/out" ]
ok $? "... are no answer"

# ---- without a question -----------------------------------------------------------------------------------------

# shellcheck disable=SC2086
is "$(why_of tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat | head -n 2)" \
	"1. preempted by hog-178, most of it from the guest's task hyptrace-agent-99: 3.586s in 1002 stretches, 37.9 % of Guest:0
   hyptrace stat --show steal tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat" \
	"a hog that wants the vCPUs' CPU comes first, with the command that shows more"
like "$(<"$tmp/out")" '^2\. preempted by Guest:1, overcommit, .* of Guest:0$' "two vCPUs on one CPU are overcommit"
is "$("$hyptrace" sql -q --csv tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat \
	"SELECT count(*), round(sum(dur) / 1e9, 3) FROM vcpu_states WHERE state = 'preempted' AND other_tid = 178" 2>&1 | tail -n 1)" \
	"rows,1002,3.586" "... for as long as SQL says"
is "$("$hyptrace" why -q --json tests/data/steal/trace.dat | jq -r '.findings[0] | "rows,\(.from),\(.to)"')" \
	"$("$hyptrace" sql -q --csv tests/data/steal/trace.dat "SELECT printf('%d.%09d', ts / 1000000000, ts % 1000000000),
	printf('%d.%09d', (ts + dur) / 1000000000, (ts + dur) % 1000000000) FROM vcpu_states
	WHERE state = 'preempted' AND other_tid = 178 AND vcpu = 0 ORDER BY dur DESC LIMIT 1" | tail -n 1)" "... and the longest one is its longest"
{
	echo $'guest Guest b1 0:100\n1000000000 0 100 kvm_entry\t1\n1000001000 0 100 kvm_exit\t0\t0\t1'
	for i in {1..15}; do
		hog=hog$i at=$((1000000000 + i * 25000000))
		[ "$i" != 15 ] || hog=hyptrace
		printf '%s\n' "$at 0 100 sched_switch	vcpu	100	120	0	$hog	$((200 + i))	120" \
			"$((at + i * 1000000)) 0 $((200 + i)) sched_switch	$hog	$((200 + i))	120	0	vcpu	100	120"
	done
	echo $'1400000000 0 100 kvm_entry\t1\n1400001000 0 100 kvm_exit\t0\t0\t1'
} | "$build/tests/integration/make-trace" "$tmp/hogs.dat" tests/integration/events/kernel
is "$(why_of "$tmp/hogs.dat" | grep '^[0-9]*\. ' | sed -n '3p;$p;$=')" "3. preempted by hog14-214: 14.00ms in 1 stretches, 3.5 % of Guest:0
10. preempted by hog7-207: 7.000ms in 1 stretches, 1.7 % of Guest:0
10" "ten findings at most"
is "$(tail -n 1 "$tmp/out")" "preempted by hyptrace-215, which recorded: 15.00ms in 1 stretches, 3.7 % of Guest:0" \
	"the recorder's own time is context"
like "$(why_of tests/data/x86/trace.dat tests/data/x86/trace-Guest.dat)" '^1\. out of the guest: only sched_switch shows more: record -e sched: ' \
	"what was not recorded is one, with what to record"
is "$(why_of tests/data/formats-arm64.dat)" "the files have no entries and exits of vCPUs: record -e kvm -e sched" "no vCPUs"
for form in "" --json --csv; do
	# shellcheck disable=SC2086
	why_of $form tests/data/formats-arm64.dat >/dev/null
	is "$status" 1 "... is no answer, $form"
done
like "$(why_of --csv tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat)" '^findings,1,"preempted by hog-178, most of it from the guest.s task hyptrace-agent-99",[0-9]+,1002,Guest:0,0.37' \
	"for programs"

# A vCPU and its guest for 1.44 s, each 12 ms: a fault of 300 us, of 100 pages, of which 20 have a second one; a write
# to a device, 400 us; an interrupt, of 40 us from the vCPU's own CPU, and of 1,240 us from another; the last four
# come 9 ms late. A task of the guest waits while another one runs, less the 1 ms that is stolen from that one.
world() {
	perl -we '
		use strict;
		my (@host, @guest, @hyp);
		sub host { my ($us, $cpu, $pid, $text) = @_; push @host, [ $us, "$cpu $pid $text" ] }
		sub guest { my ($us, $pid, $text) = @_; push @guest, [ $us, "0 $pid $text" ] }
		sub around { my ($from, $to) = @_; host($from, 0, 100, "kvm_exit ret=2 esr_ec=0x24"); host($to, 0, 100, "kvm_entry") }
		host(0, 0, 0, "sched_switch prev_comm=swapper prev_pid=0 prev_state=0 next_comm=vcpu next_pid=100");
		host(1, 0, 100, "kvm_exit ret=0");
		host(2, 0, 100, "kvm_entry");
		guest(10, 0, "sched_switch prev_comm=swapper prev_pid=0 prev_state=0 next_comm=work next_pid=300");
		for my $n (0 .. 119) {
			my ($at, $page) = (1000 + 12000 * $n, 0x40000000 + 4096 * ($n < 100 ? $n : $n - 100));
			my $other = $n % 3 == 0;
			my $late = ($other ? 1240 : 40) + ($n >= 116 ? 9000 : 0);

			around($at, $at + 300);
			# 100 pages, ten of which the host takes back, and ten that may only be read
			host($at + 1, 0, 100, sprintf "kvm_guest_fault ipa=%d hsr=%d", $page, $n < 110 ? 0x92000007 : 0x9200004f);
			# a call of the hypervisor: while some of six are handled; others are no hypercall, or come after it
			my ($called, $why) = $n % 6 < ($ARGV[2] || 0) ? (50, 1) : $n % 2 ? (50, 0) : (350, 1);
			push @hyp, [ $at + $called, "0 100 hypervisor:hyp_enter reason=$why vcpu=0" ],
				[ $at + $called + 9, "0 100 hypervisor:hyp_exit reason=6 vcpu=0" ];
			around($at + 400, $at + 810);
			host($at + 401, 0, 100, "kvm_guest_fault ipa=0x9000000");
			host($at + 410, 0, 100, "kvm_mmio type=2 gpa=0x9000000");
			host($at + 1000, $other ? (6, 50) : (0, 100), "vgic_update_irq_pending vcpu_id=0 irq=27 level=1") if $other;
			host($at + 1005, 0, 100, "kvm_exit ret=0");
			host($at + 1000 + 6, 0, 100, "vgic_update_irq_pending vcpu_id=0 irq=27 level=1") if !$other;
			host($at + 1000 + $late - 8, 0, 100, "kvm_entry");
			guest($at + 1000 + $late, 300, "irq_handler_entry irq=11 name=arch_timer");
			guest($at + 1000 + $late + 1, 300, "sched_waking comm=wait pid=301 target_cpu=0");
			host($at + 9500, 0, 100, "kvm_exit ret=0") if $n < 116;
			host($at + 10500, 0, 100, "kvm_entry") if $n < 116;
			for my $cheap (0 .. 9) { # what an exit costs on this machine
				host($at + 11510 + 40 * $cheap, 0, 100, "kvm_exit ret=2 esr_ec=0x18");
				host($at + 11512 + 40 * $cheap, 0, 100, "kvm_entry");
			}
			guest($at + 11400, 300, "sched_switch prev_comm=work prev_pid=300 prev_state=0 next_comm=wait next_pid=301");
			guest($at + 11500, 301, "sched_switch prev_comm=wait prev_pid=301 prev_state=1 next_comm=work next_pid=300");
		}
		host(1000 + 12000 * 120, 0, 100, "kvm_exit ret=0");
		for my $f ([ "host.dat", "guest/trace.dat", "id 11\nguest vm 22 0:100\n", \@host ],
			[ "guest.dat", "formats-arm64.dat", "id 22\nshift 11 0 0\n", \@guest ]) {
			open my $to, "|-", "$ARGV[0]/tests/integration/make-trace", "$ARGV[1]/$f->[0]", "tests/data/$f->[1]", "-" or die;
			print $to "cpus 8\nclock mono\n$f->[2]";
			printf $to "%d.%06d000 %s\n", 1 + $_->[0] / 1e6, $_->[0] % 1e6, $_->[1] for sort { $a->[0] <=> $b->[0] } @{ $f->[3] };
			print $to "buffer hyp\n" if $ARGV[2] && $f->[0] eq "host.dat";
			printf $to "%d.%06d000 %s\n", 1 + $_->[0] / 1e6, $_->[0] % 1e6, $_->[1] for $ARGV[2] && $f->[0] eq "host.dat" ? @hyp : ();
			close $to or die;
		}' "$build" "$tmp" "${1-}"
}
world
why_of "$tmp/host.dat" "$tmp/guest.dat" >/dev/null
task="most of it from the guest's task work-300"
while read -r line; do
	is "$(grep -cxF "${line%%|*}" "$tmp/out")" 1 "${line##*|}" || diag "$(<"$tmp/out")"
done <<E2
1. the guest's task work-300 has a CPU while another one waits for it: 1.043s in 236 stretches, 72.4 % of vm:0|a guest's task that waits for another one
3. exits for MMIO at 0x9000000:W: 47.76ms in 120 stretches, 3.3 % of vm:0|a device's address
4. exits for stage-2 faults: 83 % a page's first, of 100 pages, 8 % on one that the host had taken back, 8 % for a permission, $task: 36.00ms in 120 stretches, 2.5 % of vm:0|stage-2 faults, by their causes
5. irq tail: the slowest 3 of 120 take 9.034ms or more, the median 34.00us: 28.21ms in 3 stretches, 2.0 % of vm:0|a tail
E2
is "$("$hyptrace" why -q --json "$tmp/host.dat" "$tmp/guest.dat" | jq -r '.findings[] | "\(.from) \(.to) \(.what[0:30])"')" \
	"1.014041000 1.022500000 the guest's task work-300 has 
2.406005000 2.416232000 exit handling (IRQ), most of i
1.001410000 1.001810000 exits for MMIO at 0x9000000:W
1.001000000 1.001300000 exits for stage-2 faults: 83 %
2.406000000 2.416240000 irq tail: the slowest 3 of 120" "for programs: the longest stretch of each"

world 4
like "$(why_of "$tmp/host.dat" "$tmp/guest.dat")" '. exits for stage-2 faults: [^:]* for a permission, 67 % a share or donation by the hypervisor, ' \
	"faults in which the host called the hypervisor" || diag "$(<"$tmp/out")"
world 2
unlike "$(why_of "$tmp/host.dat" "$tmp/guest.dat")" 'share or donation' "a host that seldom calls it has no pKVM"
like "$(why_of tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat)" \
	"^1\. exits for stage-2 faults: 100 % a page's first, of 10 pages, 100 % a share or donation by the hypervisor, " "... all of a pKVM host's" ||
	diag "$(<"$tmp/out")"

# 100 timers and wake-ups on a vCPU, 2 ms apart; the last three fire 5 ms late
late() {
	perl -we '
		use strict;
		my (@host, @guest);
		for my $n (0 .. 99) {
			my ($from, $late) = (1000 + 10000 * $n, $n >= 97 ? 5000 : 0);
			push @guest, [ $from, "0 0 hrtimer_start hrtimer=7" ], [ $from + 1, "1 9 sched_waking comm=wait pid=301 target_cpu=0" ];
			push @host, [ $from, "0 100 kvm_exit ret=2 esr_ec=1" ], [ $from + 2, "1 101 sched_waking pid=100 target_cpu=0" ],
				[ $from + 100, "0 100 kvm_timer_update_irq vcpu_id=0 irq=27 level=1" ], [ $from + 105 + $late, "0 100 kvm_vcpu_wakeup waited=1" ],
				[ $from + 110 + $late, "0 100 kvm_entry" ];
			push @guest, [ $from + 120 + $late, "0 0 ipi_entry" ], [ $from + 121 + $late, "0 0 hrtimer_expire_entry hrtimer=7" ],
				[ $from + 130 + $late, "0 0 sched_switch prev_comm=swapper prev_pid=0 prev_state=0 next_comm=wait next_pid=301" ],
				[ $from + 140 + $late, "0 301 sched_switch prev_comm=wait prev_pid=301 prev_state=1 next_comm=swapper next_pid=0" ];
		}
		unshift @host, [ 10, "0 0 sched_switch prev_comm=swapper prev_pid=0 prev_state=0 next_comm=vcpu next_pid=100" ], [ 20, "0 100 kvm_exit ret=0" ],
			[ 30, "0 100 kvm_entry" ];
		for my $f ([ "host.dat", "id 11\nguest vm 22 0:100 1:101\n", \@host ], [ "guest.dat", "id 22\nshift 11 0 0\n", \@guest ]) {
			open my $to, "|-", "$ARGV[0]/tests/integration/make-trace", "$ARGV[1]/$f->[0]", "tests/integration/events/latency",
				"tests/data/formats-arm64.dat", "-" or die;
			print $to $f->[1];
			printf $to "%d.%06d000 %s\n", 1 + $_->[0] / 1e6, $_->[0] % 1e6, $_->[1] for sort { $a->[0] <=> $b->[0] } @{ $f->[2] };
			close $to or die;
		}' "$build" "$tmp"
}
late
like "$(why_of "$tmp/host.dat" "$tmp/guest.dat")" '^[0-9]\. timer tail: the slowest 3 of 100 take 5\.021ms or more, the median 21\.00us: 15\.00ms in 3 stretches, 1\.5 % of vm:0$' \
	"a tail of timers, since they fired" || diag "$(<"$tmp/out")"
like "$(<"$tmp/out")" '^[0-9]\. wakeup tail: the slowest 3 of 100 take 5\.129ms or more, the median 129.0us: 15\.00ms ' "... of wake-ups"

# interrupts CPU EXIT: 100 of a device in 1 s, on that CPU of the host, while a vCPU of another VM runs there; the device's
# vCPU is in its guest on CPU 0 and exits at EXIT us, for 300 us; its timer's exits are as long
interrupts() {
	perl -we '
		use strict;
		my ($cpu, $exit) = @ARGV;
		my @lines = ([ 1, "0 100 kvm_exit ret=0" ], [ 2, "0 100 kvm_entry" ]);
		for my $n (1 .. 100) {
			my $at = 10000 * $n;
			my $inside = $exit < 0 ? 100 : 50;
			push @lines, [ $at, "$cpu ${inside}h irq_handler_entry irq=45 name=vfio-\\x1bmsi" ],
				[ $at + 2, "$cpu ${inside}h vgic_update_irq_pending vcpu_id=0 irq=40 level=1" ],
				[ $at + 3, "$cpu $inside irq_handler_exit irq=45 ret=1" ],
				[ $at + $exit, "0 100 kvm_exit ret=0" ], [ $at + $exit + 300, "0 100 kvm_entry" ],
				# another exit, and a timer of the guest that ends in KVM: neither is for the device
				[ $at + 5000, "0 100 kvm_exit ret=2 esr_ec=1" ], [ $at + 5010, "0 100 kvm_entry" ],
				[ $at + 6000, "$cpu ${inside}h irq_handler_entry irq=46 name=disk" ],
				[ $at + 6003, "$cpu ${inside}h irq_handler_exit irq=46 ret=1" ],
				[ $at + 6004, "$cpu $inside vgic_update_irq_pending vcpu_id=0 irq=41 level=1" ],
				[ $at + 6010, "0 100 kvm_exit ret=0" ], [ $at + 6020, "0 100 kvm_entry" ];
		}
		print "cpus 8\nid 11\nguest vm 22 0:100\n";
		printf "%d.%06d000 %s\n", 1 + $_->[0] / 1e6, $_->[0] % 1e6, $_->[1] for sort { $a->[0] <=> $b->[0] } @lines;
	' -- "$@" | "$build/tests/integration/make-trace" "$tmp/irqs.dat" tests/integration/events/latency tests/data/formats-arm64.dat -
	why_of "$tmp/irqs.dat"
}
interrupts 3 7 >/dev/null
is "$(grep -A1 'interrupt ' "$tmp/out" | cut -c 4-)" "interrupt 45 (vfio-\\x1bmsi) on CPU 3 is for a vCPU on CPU 0, and costs an IPI and an exit: /proc/irq/45/smp_affinity_list sets its CPU: 30.00ms in 100 stretches, 3.0 % of vm:0
hyptrace latency --preset kick $tmp/irqs.dat" "a device's interrupts on another CPU than the vCPU's" || diag "$(<"$tmp/out")"
is "$("$hyptrace" latency -q --csv --preset kick "$tmp/irqs.dat" | grep -E '^(latency|chains),' | cut -d , -f 1-5)" "latency,key,until,count,total_ns
latency,45,injection,100,200000
latency,45,exit,100,500000
latency,45,entry,100,30000000
latency,45,total,100,30700000
chains,key,began,complete,undecided
chains,45,100,100,0" "... as the preset of its next command has them, and no other interrupt"
like "$(why_of --preset kick "$tmp/irqs.dat")" '^injection +5\.000us$' "... whose instances begin with the injection"
interrupts 0 -1 >/dev/null
is "$(grep 'interrupt ' "$tmp/out")" "" "... on the vCPU's: nothing"

# 40 moves of a vCPU in 1.6 s; it waits 10 ms before each
moves() {
	local i at=10000000000 cpu

	echo 'guest Guest b1 0:100'
	for ((i = 0; i < 41; i++, at += 40000000)); do
		cpu=$((i % 2))
		printf '%s\n' "$at $cpu 100 kvm_entry	1" "$((at + 1000000)) $cpu 100 kvm_exit	0	0	1" \
			"$((at + 1001000)) $cpu 100 kvm_entry	1" "$((at + 29998000)) $cpu 100 kvm_exit	0	0	1" \
			"$((at + 29999000)) $cpu 100 sched_switch	vcpu	100	120	0	hog	$((200 + i % 2))	120" \
			"$((at + 39999000)) $((1 - cpu)) $((200 + i % 2)) sched_switch	hog	$((200 + i % 2))	120	0	vcpu	100	120"
	done
}
moves | "$build/tests/integration/make-trace" "$tmp/moves.dat" tests/integration/events/kernel
like "$(why_of "$tmp/moves.dat")" '^[12]\. moves to another CPU, 24 a second, and waits before them: 400\.0ms in 40 stretches, 24\.[0-9] % of Guest:0$' \
	"a vCPU that moves between CPUs, and how long it waited before"
is "$("$hyptrace" why -q --json "$tmp/moves.dat" | jq -r '.findings[] | select(.what | test("moves")) | "\(.from) \(.to)"')" \
	"10.029999000 10.039999000" "... with the longest such wait"
like "$(<"$tmp/out")" '^[12]\. preempted by hog: 4[01]0\.0ms in 4[01] stretches, ' "tasks of one name are one cause"

# what is not recorded before a vCPU's first event and after its last is no finding, nor of its time
hogged() { # SECONDS: so long before and after it another buffer has events
	local ms=1000000 at=10000000000 i

	echo 'guest Guest b1 0:100'
	echo "$at 0 0 sched_switch"$'\tswapper\t0\t120\t0\tvcpu\t100\t120'
	for ((i = 0; i < 10; i++)); do
		echo "$((at + ms)) 0 100 kvm_exit"$'\t2\t1\t4096'
		echo "$((at + 2 * ms)) 0 100 sched_switch"$'\tvcpu\t100\t120\t0\tburner\t200\t120'
		echo "$((at + 42 * ms)) 0 200 sched_switch"$'\tburner\t200\t120\t0\tvcpu\t100\t120'
		echo "$((at + 43 * ms)) 0 100 kvm_entry"$'\t4096'
		at=$((at + 100 * ms))
	done
	echo "$((at + ms)) 0 100 kvm_exit"$'\t2\t1\t4096'
	[ "$1" = 0 ] || printf 'buffer other\n%d 1 7 print\t0\tbegin\n%d 1 7 print\t0\tend\n' \
		$((at - 2000 * $1 * ms)) $((at + 1000 * $1 * ms))
}
for seconds in 0 5; do
	hogged $seconds | "$build/tests/integration/make-trace" "$tmp/hog.dat" tests/integration/events/kernel
	is "$(why_of "$tmp/hog.dat" | grep -v '^  ')" "1. preempted by burner-200: 400.0ms in 10 stretches, 40.0 % of Guest:0
exits at their ordinary price, 2.000ms each: 20.00ms in 10 stretches, 2.0 % of Guest:0" "a hog, with $seconds s of other events around it"
done

# rounds FROM TO KIND...: of 100 ms each from 10 s on, of a vCPU whose exits are faults, in which a burner takes 40 ms of 42
rounds() {
	perl -we '
		use strict;
		my ($from, $to, @kinds) = @ARGV;
		my @lines = map { { kvm => [ [ $from, 0.2, "0 100 kvm_entry\t4096" ] ],
			sched => [ [ $from, 0.1, "0 0 sched_switch\tswapper\t0\t120\t0\tvcpu\t100\t120" ],
				[ $to, 60, "1 300 sched_switch\ta\t300\t120\t1\tswapper\t0\t120" ] ],
			hyp => [] }->{$_}->@* } @kinds;
		for my $n ($from .. $to) {
			my %events = (
				kvm => [ [ $n, 1, "0 100 kvm_exit\t2\t36\t4096" ],
					[ $n, 1.1, sprintf "0 100 kvm_guest_fault\t4096\t%d\t0\t%d", 0x92000007, 1 << 20 | $n + 16 << 12 ],
					[ $n, 43, "0 100 kvm_entry\t4096" ] ],
				sched => [ [ $n, 2, "0 100 sched_switch\tvcpu\t100\t120\t0\tburner\t200\t120" ],
					[ $n, 42, "0 200 sched_switch\tburner\t200\t120\t0\tvcpu\t100\t120" ] ],
				hyp => [ [ $n, 0.9, "0 100 hypervisor:hyp_enter\t5\t100" ], [ $n, 0.95, "0 100 hypervisor:hyp_exit\t6\t0" ],
					[ $n, 43.1, "0 100 hypervisor:hyp_enter\t1\t0" ], [ $n, 43.2, "0 100 hypervisor:hyp_exit\t7\t100" ] ],
			);
			push @lines, @{ $events{$_} } for @kinds;
		}
		@lines = map { [ 1e10 + $_->[0] * 1e8 + $_->[1] * 1e6, $_->[2] ] } @lines;
		printf "%.0f %s\n", @$_ for sort { $a->[0] <=> $b->[0] } @lines;
	' -- "$@"
}
# of_rounds COMMANDS: the findings of the buffers that they print
of_rounds() {
	{
		echo 'guest Guest b1 0:100'
		eval "$1"
	} | "$build/tests/integration/make-trace" "$tmp/rounds.dat" tests/integration/events/kernel
	why_of "$tmp/rounds.dat"
}
while IFS='|' read -r lines name; do
	is "$(of_rounds "$lines" | sed -n 's/^[0-9]\(.*\), 4[1-5]\.[0-9] % of Guest:0$/\1/p')" \
		". exits for stage-2 faults: 100 % a page's first, of 10 pages: 420.0ms in 10 stretches
. preempted by burner-200: 400.0ms in 10 stretches" "$name"
done <<'E2'
rounds 0 9 kvm sched|one buffer
rounds 0 9 kvm sched; echo buffer hyp; rounds -5 19 hyp|a buffer that begins earlier and ends later
rounds -5 19 kvm; echo buffer other; rounds 0 9 sched|... with the exits: those that all buffers cover
rounds -5 19 sched; echo buffer other; rounds 0 9 kvm|... with the switches
E2
is "$(of_rounds 'rounds 0 4 kvm; echo buffer other; rounds 8 9 sched')" "the buffers that show vCPUs have no time in common" "no time in common"
of_rounds "rounds 0 9 kvm sched | sed 's/^10301000000/lost 0 7\n&/'" >/dev/null
like "$(<"$tmp/out")" '^[0-9]\. lost: events were lost; -b has larger buffers: ' "lost events are one, with what helps" || diag "$(<"$tmp/out")"

# ---- the ordinary price of exits --------------------------------------------------------------------------------

# machine RATE:NS:EVENT[:WAKE]...: a vCPU for 2 s, whose guest exits so often a second, for so long; EVENT: an ESR class,
# halt (for 200 us, and WAKE ns until its CPU is awake), kernel or user (a write to a device, of the kernel or of the VMM)
machine() {
	perl -we '
		use strict;
		my @at;
		for my $kind (0 .. $#ARGV) {
			my ($rate) = split /:/, $ARGV[$kind];
			push @at, map { [ 1e9 + int(1e9 * ($_ + ($kind + 1) / (@ARGV + 2)) / $rate), split /:/, $ARGV[$kind] ] } 0 .. 2 * $rate - 1;
		}
		my $now = 1e9 - 10_000;
		my $print = sub { my ($pid, $text) = @_; printf "%d.%09d 0 $pid $text\n", $now / 1e9, $now % 1e9 };
		my $switch = sub { my ($from, $to, $state) = @_; $print->($from, "sched_switch prev_pid=$from prev_state=$state next_pid=$to") };
		print "cpus 2\nclock mono\nid 11\nguest vm 22 0:100\n";
		$switch->(0, 100, 0);
		$now += 1_000; $print->(100, "kvm_exit ret=0");
		$now += 1_000; $print->(100, "kvm_entry");
		for (sort { $a->[0] <=> $b->[0] } @at) {
			my ($at, undef, $ns, $event, $wake) = @$_;
			$now = $at if $now < $at;
			if ($event eq "halt") {
				$now += 500; $print->(100, "kvm_exit ret=2 esr_ec=1");
				$now += $ns; $switch->(100, 0, 1);
				$now += 200_000; $print->(0, "sched_waking pid=100 target_cpu=0");
				$now += $wake; $switch->(0, 100, 0);
			} elsif ($event =~ /kernel|user/) {
				$now += 500; $print->(100, "kvm_exit ret=2 esr_ec=0x24");
				$print->(100, sprintf "kvm_mmio type=2 gpa=%d", $event eq "user" ? 0x9000000 : 0xa000000);
				$now += 500;
				$print->(100, "kvm_userspace_exit reason=6") if $event eq "user";
			} else {
				$now += 500; $print->(100, "kvm_exit ret=2 esr_ec=$event");
			}
			$now += $ns; $print->(100, "kvm_entry");
			$now += 500;
		}
		' "$@" | "$build/tests/integration/make-trace" "$tmp/machine.dat" tests/data/formats-arm64.dat -
	why_of "$tmp/machine.dat" | grep -v '^  '
}
emulated="150:300000:halt:300000 200:30000:0x18 40:400000:kernel 1:400000:0x16"
while IFS='|' read -r machine name said; do
	# shellcheck disable=SC2086
	is "$(machine $machine)" "$(printf %b "$said")" "$name"
done <<E2
$emulated|an emulated machine that is calm|nothing stands out: nothing took 5 % of a vCPU's time\n1. exits for MMIO at 0xa000000:W: 29.63ms in 80 stretches, 1.5 % of vm:0\nexits at their ordinary price, 133.4us each: 104.5ms in 783 stretches, 5.2 % of vm:0
$emulated 90:900000:user|... whose VMM handles a device: its address|1. exits for MMIO at 0x9000000:W: 156.7ms in 180 stretches, 7.8 % of vm:0\nexits at their ordinary price, 139.3us each: 134.2ms in 963 stretches, 6.7 % of vm:0
30000:3000:0x18 100:3000:halt:5000|a storm of exits that cost what they always do|1. exit handling (SYS64), 30000 a second: 180.0ms in 60000 stretches, 9.0 % of vm:0
1000:2000:0x18 200:3000:halt:5000 800:80000:kernel|exits that are dear|1. exits for MMIO at 0xa000000:W: 125.6ms in 1600 stretches, 6.3 % of vm:0
1000:2000:0x18 800:3000:halt:80000|a CPU that takes long to wake up|1. waking: the CPU was idle, and had to wake up: 123.2ms in 1600 stretches, 6.2 % of vm:0
1500:3000:0x18 200:3000:halt:5000|a calm machine|nothing stands out: nothing took 5 % of a vCPU's time
E2
# recordings of calm machines, whose buffers begin and end at different times
for calm in lab-protected lab-nvhe stock/trace; do
	is "$(why_of tests/data/$calm.dat | grep -E '^[0-9]+\. ' | grep -vE '^[0-9]+\. out of the guest:' | grep -E '([5-9]|[0-9]{2,})\.[0-9] % of [^:]*(:[01])?$')" "" \
		"nothing takes 5 % in $calm.dat"
done

# ---- the command line -----------------------------------------------------------------------------------------

while IFS='|' read -r args message; do
	# shellcheck disable=SC2086
	is "$(why_of $args)" "hyptrace$message" "why $args"
	# shellcheck disable=SC2086
	why_of $args >/dev/null
	is "$status" 2 "... is a wrong command line"
done <<'E2'
--preset nosuch|: --preset: there is no such preset; there are wakeup, irq, virtio, timer, hypercall, kick, abort
--preset irq --tail 59| why: --tail: a PERCENTILE is a number from 60 to 99.999
--preset irq --tail 100| why: --tail: a PERCENTILE is a number from 60 to 99.999
--preset irq --tail x| why: --tail: a PERCENTILE is a number from 60 to 99.999
--tail 90| why: --tail needs --preset, --task, --span, or --from and --to
--span a --preset irq| why: --task, --span, --preset and --from exclude each other
--span a --task init@Guest| why: --task, --span, --preset and --from exclude each other
--hypertrace-desc FILE --preset irq| why: --hypertrace-desc is for --span
--from kvm_exit|: --from needs --to
--task init| why: --task: NAME@GUEST, or PID@GUEST
--task init@Guest --preset irq| why: --task, --span, --preset and --from exclude each other
--preset irq --key pid|: --key is for --from and --to; a preset has its own
E2
done_testing
