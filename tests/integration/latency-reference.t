#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
# Presets of hyptrace latency on real captures, chain by chain against a slow reference on the text that stock's
# trace-cmd report prints of them.
use strict;
use warnings;
use JSON::PP;
use File::Copy 'copy';
use File::Temp 'tempdir';

my $build = $ENV{O} // 'build';
my $tmp = tempdir(CLEANUP => 1);
my ($tests, $failed) = (0, 0);

sub ok { my ($good, $name) = @_; $tests++; $failed += !$good; print $good ? '' : 'not ', "ok $tests - $name\n" }

# ---- stock's text -------------------------------------------------------------------------------

sub ns { my ($s, $ns) = split /\./, shift; $s * 1_000_000_000 + $ns }

# Records in their order: guest or not, CPU, flags, pid, time, event, text
sub records {
	my @v;

	open my $f, '-|', "trace-cmd report -l -t -i $_[0] -i $_[1] 2>/dev/null" or die;
	while (<$f>) {
		my ($file, $pid, $cpu, $flags, $ts, $event, $text) =
			/^\s*(\S+):\s+.*?-(\d+)\s+(\d+)(\S{4,6})\s+(\d+\.\d{9}): (\w+):\s*(.*)/ or next;

		push @v, { guest => scalar($file =~ /Guest/), pid => $pid, cpu => $cpu, flags => $flags, t => ns($ts),
			event => $event, text => $text };
	}
	return \@v;
}

sub next_pid { $_[0]{text} =~ /==> .*:(\d+) \[/ ? $1 : -1 }
sub pid_of { $_[0]{text} =~ /\bpid=(\d+)/ ? $1 : -1 }

# ---- chains, by looking at all records for each ------------------------------------------------------

# Backwards from each switch to a task
sub wakeups {
	my ($v, $vcpu) = @_;
	my %thread = reverse %$vcpu;
	my @chains;

	for my $end (0 .. $#$v) {
		my $t = $v->[$end];
		next if !$t->{guest} || $t->{event} ne 'sched_switch';
		my ($task, $w) = (next_pid($t), undef);
		for (my $i = $end - 1; $task && $i >= 0 && !defined $w; $i--) {
			my $e = $v->[$i];
			next if !$e->{guest};
			last if $e->{event} eq 'sched_switch' && next_pid($e) == $task;
			$w = $i if $e->{event} eq 'sched_waking' && pid_of($e) == $task;
		}
		next if !defined $w;
		my ($waker, $woken) = ($v->[$w]{cpu}, $t->{cpu});
		my @chain = ($v->[$w]);
		for my $e (@$v[$w + 1 .. $end - 1]) {
			my $n = @chain;
			my $of = $e->{guest} ? $e->{cpu} : $vcpu->{ $e->{pid} } // -1;

			if ($n == 1) {
				last if $e->{guest} && $of == $waker && $e->{event} =~ /^sched_(waking|switch)$/;
				push @chain, $e if !$e->{guest} && $of == $waker && $e->{event} eq 'sched_waking' &&
					substr($e->{flags}, 2, 1) eq '.' && $thread{$woken} == pid_of($e);
			} elsif ($of == $woken) {
				last if $n < 5 && $e->{event} eq 'sched_switch' && $e->{guest};
				last if $n == 2 && $e->{event} eq 'kvm_entry';
				push @chain, $e if $n == 2 && $e->{event} eq 'kvm_vcpu_wakeup' && $e->{text} =~ /^wait/;
				push @chain, $e if $n == 3 && $e->{event} eq 'kvm_entry';
				push @chain, $e if $n == 4 && $e->{event} eq 'irq_handler_entry' && $e->{text} =~ /name=IPI$/;
			}
		}
		push @chains, [ $woken, @chain, $t ] if @chain == 5;
	}
	return @chains;
}

# By vCPU: the interrupt that is pending, and the one with which it was entered
sub interrupts {
	my ($v, $vcpu, $raised, $handler) = @_;
	my (%pending, %entered, @chains);

	for my $e (@$v) {
		if (!$e->{guest} && $e->{event} eq $raised && $e->{text} =~ /^VCPU: (\d+), IRQ 27, level:? (\d)/) {
			$pending{$1} = $2 ? $e : undef;
			$entered{$1} = undef if !$2;
		} elsif (!$e->{guest} && $e->{event} eq 'kvm_entry') {
			my $of = $vcpu->{ $e->{pid} };
			$entered{$of} = [ $pending{$of}, $e ] if $pending{$of};
			$pending{$of} = undef;
		} elsif ($e->{guest} && $handler->($e) && $entered{ $e->{cpu} }) {
			push @chains, [ $e->{cpu}, @{ $entered{ $e->{cpu} } }, $e ];
			$entered{ $e->{cpu} } = undef;
		}
	}
	return @chains;
}

sub irqs {
	return interrupts(@_, 'vgic_update_irq_pending',
		sub { $_[0]{event} eq 'irq_handler_entry' && $_[0]{text} =~ /name=arch_timer$/ });
}

sub timers {
	my ($v, $vcpu) = @_;
	my (%start, @whole);

	my @chains = interrupts($v, $vcpu, 'kvm_timer_update_irq', sub { $_[0]{event} eq 'hrtimer_expire_entry' });
	for my $c (@chains) {
		my ($timer) = $c->[-1]{text} =~ /hrtimer=(\S+)/;
		my $start;

		for my $e (@$v) {
			last if $e == $c->[-1];
			next if !$e->{guest} || $e->{text} !~ /^hrtimer=\Q$timer\E( |$)/;
			$start = $e if $e->{event} eq 'hrtimer_start';
			$start = undef if $e->{event} eq 'hrtimer_cancel';
		}
		push @whole, [ $c->[0], $start, @$c[1 .. 3] ] if $start && $start->{t} < $c->[1]{t};
	}
	return @whole;
}

# ---- hyptrace against it ----------------------------------------------------------------------------------

sub compare {
	my ($dir, $preset, $vcpu, $chains) = @_;
	my $v = records("$tmp/trace.dat", "$tmp/trace-Guest.dat");
	my $j = decode_json(scalar `$build/hyptrace latency -q --json --worst 100 --preset $preset $tmp/trace.dat $tmp/trace-Guest.dat`);
	my @theirs = $chains->($v, $vcpu);
	my (%of, %total, %n);

	for my $c (@theirs) {
		my ($from, $to) = map { $_->{t} } @$c[ 1, -1 ];

		$of{"Guest $c->[0] $from $to"} = 1;
		$n{"Guest $c->[0]"}++;
		$total{"Guest $c->[0]"}[ $_ - 2 ] += $c->[$_]{t} - $c->[ $_ - 1 ]{t} for 2 .. $#$c;
	}
	my @others = grep { !$of{"$_->{key} " . ns($_->{from}) . ' ' . ns($_->{to})} } @{ $j->{worst} };
	print "# not the reference's: $_->{key} $_->{from} $_->{to}\n" for @others;
	ok(@{ $j->{worst} } && !@others, "$preset of $dir: the longest " . @{ $j->{worst} } . ' are the reference\'s');
	my (%ours, $differ);
	push @{ $ours{ $_->{key} } }, $_->{until} eq 'total' ? $_->{count} : $_->{total_ns} for @{ $j->{latency} };
	for my $row (@{ $j->{chains} }) {
		my $key = $row->{key};
		my $missing = ($n{$key} // 0) - $row->{complete};
		my $said = $row->{undecided} + $row->{lost} + $row->{not_recorded};

		next if $missing > 0 && $missing <= $said || !$missing && !$n{$key};
		next if !$missing && "@{ $ours{$key} }" eq "@{ $total{$key} } $n{$key}";
		$differ = 1;
		print "# $key: @{ $ours{$key} // [] }, reference: @{ $total{$key} } $n{$key}\n";
	}
	ok(!$differ, '... and all ' . @theirs . ', stage by stage, but for those that are undecided or not recorded');
}

sub capture {
	my $dir = shift;

	unlink glob "$tmp/*.orig"; # of another recording: refused
	copy("tests/data/$dir/$_", "$tmp/$_") or die "$_: $!" for 'trace.dat', 'trace-Guest.dat';
	system("$build/hyptrace sync -q --write $tmp/trace.dat $tmp/trace-Guest.dat >$tmp/sync 2>&1");
}

capture('stock');
compare('stock', 'wakeup', { 100 => 0, 102 => 1 }, \&wakeups);
compare('stock', 'irq', { 100 => 0, 102 => 1 }, \&irqs);
capture('guest');
compare('guest', $_->[0], { 113 => 0, 114 => 1 }, $_->[1]) for [ 'wakeup', \&wakeups ], [ 'irq', \&irqs ], [ 'timer', \&timers ];
print "1..$tests\n";
exit($failed > 0);
