# SPDX-License-Identifier: GPL-2.0-only
# A fleet of generated hosts whose answers are known: for fleet.t and tests/chroot/dask.t.
# shellcheck shell=bash

fleet_guide=$PWD/Documentation/fleet.md

# The lines of the guide's code block: ```KIND
guide_block() { # KIND
	sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$fleet_guide" | grep -v '^```'
}

# Prints the script of a host for make-trace. CPUs 0 and 1 visit the hypervisor: every tenth host has lost events
# in one visit. Some visits begin as the one before ends, some end as they begin. Every tenth host has Android's
# kernel. On CPU 2 a vCPU is preempted again and again: every seventh host has lost events in one such time.
# Known times go to standard error, with a tab before NS: visit HOST REASON NS, preempted HOST TASK KERNEL NS
fleet_host() { # NUMBER VISITS PREEMPTIONS
	perl -e 'my ($i, $visits, $preemptions) = @ARGV;
		my $host = sprintf "web%03d", $i;
		my $kernel = $i % 10 == 5 ? "6.6.30-android15" : ("6.12.107", "7.2.12", "7.2.12-rt")[$i % 3];
		my @reasons = (1, 4, 5);
		my @tasks = (["hog", 200], ["ksoftirqd/2", 28], ["backup", 300 + $i]);
		print "uname Linux $host $kernel #1 SMP aarch64\n";
		print "id 11\nguest vm1 22 0:100 1:101\ntask 100 CPU 0/KVM\ntask 101 CPU 1/KVM\n";
		print "task $_->[1] $_->[0]\n" for @tasks;
		print "1000000000 0 7 sched_switch\ta\t7\t120\t1\tCPU 0/KVM\t100\t120\n";
		print "1000000100 1 7 irq_handler_entry\t27\ttimer\n";
		print "lost 1 5\n1000000900 1 7 irq_handler_exit\t27\t1\n";	# of another buffer
		my $ts = 1000002000;
		print "$ts 2 7 sched_switch\ta\t7\t120\t1\tCPU 1/KVM\t101\t120\n";
		for my $k (0 .. $preemptions - 1) {
			my ($task, $pid) = @{ $tasks[(int($i / 3) + $k * $k) % 3] };
			my $ns = 1000 + ($i * 104729 + $k * 7919) % 100000;
			my $lost = $i % 7 == 0 && $k == 3;
			$ts += 500;
			print "$ts 2 101 sched_switch\tCPU 1/KVM\t101\t120\t0\t$task\t$pid\t120\n";
			$ts += $ns;
			print "lost 2 4\n" if $lost;
			print "$ts 2 $pid sched_switch\t$task\t$pid\t120\t0\tCPU 1/KVM\t101\t120\n";
			print STDERR "preempted $host $task $kernel\t$ns\n" if !$lost;
		}
		print "buffer hyp\n";
		my @ts = (1000001000, 1000001500);
		for my $k (0 .. $visits - 1) {
			my ($cpu, $reason) = ($k % 2, $reasons[($i + $k) % 3]);
			my $ns = $k % 17 == 4 ? 0 : 100 + ($i * 7919 + $k * 104729) % 50000;
			my ($system, $fields) = $i % 10 == 5 ? ("hyp", "") : ("hypervisor", "\t$reason\t100");
			my $lost = $i % 10 == 0 && $k == 10;
			printf "%d %d 100 $system:hyp_enter$fields\n", $ts[$cpu], $cpu;
			print "lost $cpu 2\n" if $lost;
			printf "%d %d 100 $system:hyp_exit%s\n", $ts[$cpu] + $ns, $cpu, $fields && "\t6\t100";
			$ts[$cpu] += $ns + ($k % 5 == 2 && $ns ? 0 : 1000);
			$reason = "null" if !$fields;
			print STDERR "visit $host $reason\t$ns\n" if !$lost;
		}
		print "lost 0 7\n";' "$@"
}

# Replaces the known visits' reasons by the tables' words: events have none for 4
# shellcheck disable=SC2034
fleet_words='s/ 1\t/ hvc\t/; s/ 4\t/ null\t/; s/ 5\t/ guest_exit\t/'

# Writes DIR/recordings/webNNN/trace.dat, for every fourth host a guest's, too, and the known times in DIR/known
fleet_hosts() { # DIR HOSTS VISITS PREEMPTIONS
	local i dir make=$build/tests/integration/make-trace events=tests/integration/events/kernel

	for ((i = 1; i <= $2; i++)); do
		dir=$(printf '%s/recordings/web%03d' "$1" $i)
		mkdir -p "$dir"
		fleet_host $i "$3" "$4" 2>>"$1/known" | "$make" "$dir/trace.dat" "$events"
		[ $((i % 4)) != 0 ] || printf 'id 22\nshift 11 500\n1000002000 0 9 print\t0\tin the guest\n' |
			"$make" "$dir/trace-vm1.dat" "$events"
	done
}

# Sums lines KEY\tNS of standard input: KEY N SUM GREATEST P99 with tabs, sorted. P99 is the shortest time that 99 of
# 100 do not exceed
fleet_sums() {
	perl -F'\t' -lane 'push @{ $ns{$F[0]} }, $F[1];
	END {
		for (sort keys %ns) {
			my @ns = sort { $a <=> $b } @{ $ns{$_} };
			my $sum = 0;
			$sum += $_ for @ns;
			print join "\t", $_, scalar(@ns), $sum, $ns[-1], $ns[int((99 * @ns + 99) / 100) - 1];
		}
	}'
}
