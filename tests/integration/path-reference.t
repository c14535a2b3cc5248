#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace path at random moments of a host's capture, against a slow reference on the text that stock's trace-cmd
# report prints of it: which task had the CPU, since when, since when it had been runnable, and who woke it.
# PATH_FILES: other captures ("a.dat b.dat"); PATH_MOMENTS, PATH_SEED: of each so many (40), by this seed (1).
use strict;
use warnings;
use JSON::PP;

my $build = $ENV{O} // 'build';
my @files = split / /, $ENV{PATH_FILES} // 'tests/data/stock/trace.dat tests/data/guest/trace.dat';
my $moments = $ENV{PATH_MOMENTS} // 40;
my ($tests, $failed) = (0, 0);

sub ok { my ($good, $name) = @_; $tests++; $failed += !$good; print $good ? '' : 'not ', "ok $tests - $name\n" }
sub ns { my ($s, $ns) = split /\./, shift; $s * 1_000_000_000 + $ns }

# ---- stock's text -------------------------------------------------------------------------------

sub records {
	my @v;

	open my $f, '-|', "trace-cmd report -l -t $_[0] 2>/dev/null" or die;
	while (<$f>) {
		die "events were lost\n" if /DROPPED|MISSED|LOST/;
		next if /^hyp:/;
		my ($pid, $cpu, $flags, $ts, $event, $text) =
			/-(\d+)\s+(\d+)(\S{4,6})\s+(\d+\.\d{9}): (\w+):\s*(.*)/ or next;
		my $e = { pid => $pid, cpu => $cpu, flags => $flags, t => ns($ts), event => $event };

		@$e{qw(prev state next)} = $text =~ /:(\d+) \[\d+\] (\S+) ==> .*:(\d+) \[/ if $event eq 'sched_switch';
		($e->{woken}) = $text =~ /\bpid=(\d+)/ if $event =~ /^sched_(waking|wakeup_new)$/;
		push @v, $e;
	}
	return \@v;
}

# The last record until then for which a condition holds
sub last_of {
	my ($v, $until, $fits) = @_;

	for my $e (reverse @$v) {
		return $e if $e->{t} <= $until && $fits->($e);
	}
	return undef;
}

# [task, since, runnable since, preempted or its waker]; what the capture does not have is undef
sub expected {
	my ($v, $t, $cpu) = @_;
	my $in = last_of($v, $t, sub { $_[0]{event} eq 'sched_switch' && $_[0]{cpu} == $cpu }) or return;
	my ($task, $waking) = ($in->{next}, undef);
	my $out = last_of($v, $in->{t} - 1, sub { $_[0]{event} eq 'sched_switch' && $_[0]{prev} == $task });

	return [ $task, $in->{t} ] if !$task || !$out;
	return [ $task, $in->{t}, $out->{t}, 'preempted' ] if $out->{state} =~ /^R/;
	for my $e (@$v) {
		$waking //= $e if $e->{t} >= $out->{t} && $e->{t} <= $in->{t} && ($e->{woken} // 0) == $task;
	}
	return [ $task, $in->{t} ] if !$waking;
	return [ $task, $in->{t}, $waking->{t}, $waking->{flags} =~ /^..h/i ? 'interrupt' : $waking->{pid} ];
}

# ---- hyptrace against it ----------------------------------------------------------------------------------

# What of the answer differs; '': nothing
sub differs {
	my ($file, $t, $cpu, $x) = @_;
	my $at = sprintf '%d.%09d', $t / 1e9, $t % 1_000_000_000;
	my $j = decode_json(scalar(`$build/hyptrace path -q --no-guests --json --within 100 --at $at --cpu $cpu $file 2>&1` =~ s/^[^{].*//r) || '{}');
	my @hops = @{ $j->{path} // [] };
	my $end = $j->{end}[0]{end} // 'none';
	my $first = shift @hops;

	return $end eq 'idle' && !$first ? '' : "idle, not $end" if !$x->[0];
	return "task $x->[0], not the end $end" if !$first;
	return "task $x->[0], not $first->{task}" if $first->{pid} != $x->[0] || $first->{state} ne 'runs';
	return "since $x->[1], not $first->{from}" if ns($first->{from}) != $x->[1];
	return '' if !defined $x->[2];
	my $since = $x->[1];
	while (@hops && $hops[0]{state} eq 'runnable' && $hops[0]{pid} == $x->[0] && $since > $x->[2]) {
		$since = ns(shift(@hops)->{from});
	}
	return "runnable since $x->[2], not $since ($end)" if $since != $x->[2];
	return $x->[3] =~ /\D/ ? "$x->[3], not $end" : '' if !@hops && $end ne $x->[3] && $end !~ /^(own|unknown)$/;
	return "$x->[3], not $end" if !@hops && $x->[3] =~ /\D/ && $end ne $x->[3];
	return "woken by $x->[3], not $hops[0]{task}" if @hops && $x->[3] !~ /\D/ && $hops[0]{pid} != $x->[3];
	return '';
}

srand($ENV{PATH_SEED} // 1);
for my $file (@files) {
	my $v = records($file);
	die "$file has no such lines\n" if !@$v;
	my ($from, $to) = ($v->[0]{t}, $v->[-1]{t});
	my %cpus = map { $_->{cpu} => 1 } @$v;
	my @cpus = sort keys %cpus;
	my %n = (of => 0, wrong => 0, idle => 0, waits => 0);

	for (my $i = 0; $i < $moments; $i++) {
		# half of them just after a switch, where the kernel still acts as the task that left
		my $e = $v->[ rand @$v ];
		my $t = $i % 2 && $e->{event} eq 'sched_switch' ? $e->{t} + int rand 200_000 : $from + int rand($to - $from);
		my $cpu = $i % 2 ? $e->{cpu} : $cpus[ rand @cpus ];
		my $x = $t < $to ? expected($v, $t, $cpu) : undef;

		next if !$x;
		my $wrong = differs($file, $t, $cpu, $x);
		$n{of}++;
		$n{idle}++ if !$x->[0];
		$n{waits}++ if defined $x->[2];
		$n{wrong}++ if $wrong;
		print "# $file $t CPU $cpu: $wrong\n" if $wrong;
	}
	ok($n{of} > $moments / 3 && $n{idle} && $n{waits} && !$n{wrong},
		"$file: $n{of} moments, $n{idle} of them idle, $n{waits} with a wait: $n{wrong} wrong");
}
# KVM saves a vCPU's timers after the sched_switch that ends its thread's time, as that thread
my @answers = map { scalar `$build/hyptrace path -q --no-guests --at kvm_timer_save_state --nth $_ tests/data/stock/trace.dat` } 5, 20, 30;
ok((grep { /^  1 +\S+ +\S+ +\S+ +\d+  Guest:\d +runs/m && !/contradict/ } @answers) == 3,
	'what a thread does between its sched_switch and the switch is no contradiction');
print "1..$tests\n";
exit($failed > 0);
