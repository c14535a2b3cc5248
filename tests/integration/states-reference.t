#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
# thread_states and the stolen time of vcpu_states on real captures, span by span against a slow reference on the
# text that stock's trace-cmd report prints of the host: no time has another state there, and hardly any is unknown.
# STATES_DIRS: other captures ("dir dir", each with trace.dat and trace-Guest.dat).
use strict;
use warnings;

my $build = $ENV{O} // 'build';
my @dirs = split / /, $ENV{STATES_DIRS} // 'tests/data/stock tests/data/steal tests/data/guest';
my ($tests, $failed) = (0, 0);

sub ok { my ($good, $name) = @_; $tests++; $failed += !$good; print $good ? '' : 'not ', "ok $tests - $name\n" }

# ---- stock's text -------------------------------------------------------------------------------

# By task: [state, from, to]; what two switches of a CPU contradict each other about is in none.
sub reference {
	my (%open, %on, %spans);
	my $begin = sub {
		my ($task, $state, $t) = @_;
		my $o = $open{$task};

		push @{ $spans{$task} }, [ @$o, $t ] if $o && $o->[0] ne 'lost' && $t > $o->[1];
		$open{$task} = [ $state, $t ];
	};

	open my $f, '-|', "trace-cmd report -l -t $_[0] 2>/dev/null" or die;
	while (<$f>) {
		my ($cpu, $s, $ns, $event, $text) = /-\d+\s+(\d+)\S{4,6}\s+(\d+)\.(\d{9}): (\w+):\s*(.*)/ or next;
		my $t = $s * 1_000_000_000 + $ns;

		next if /^hyp:/;
		if ($event eq 'sched_switch') {
			my ($from, $state, $to) = $text =~ /:(\d+) \[\d+\] (\S+) ==> .*:(\d+) \[/ or die $text;
			my $before = $on{$cpu};

			if (defined $before && $before != $from) {
				$open{$_} = [ 'lost', $t ] for $before, $from;
			}
			$begin->($from, $state =~ /^R/ ? 'runnable' : $state =~ /^[XZ]/ ? 'ended' : 'sleeping', $t) if $from;
			$begin->($to, 'running', $t) if $to;
			$on{$cpu} = $to;
		} elsif ($event =~ /^sched_wak(ing|eup|eup_new)$/) {
			my ($task) = $text =~ /\bpid=(\d+)/ ? $1 : $text =~ /:(\d+) \[/ or die $text;

			$begin->($task, 'runnable', $t) if !$open{$task} || $open{$task}[0] eq 'sleeping';
		}
	}
	return \%spans;
}

# ---- hyptrace against it ----------------------------------------------------------------------------------

# The same of a table, and its time in all; spans that follow each other in one state are one
sub ours {
	my ($dir, $query) = @_;
	my (%spans, $last);

	open my $f, '-|', "$build/hyptrace sql -q --csv $dir/trace.dat $dir/trace-Guest.dat \"$query\"" or die;
	while (<$f>) {
		my ($task, $state, $from, $to) = /^rows,(\d+),([^,]+),(\d+),(\d+)$/ or next;

		$last = $spans{$task}[-1];
		if ($last && $last->[0] eq $state && $last->[2] == $from) { $last->[2] = $to }
		else { push @{ $spans{$task} }, [ $state, $from, $to ] }
	}
	return \%spans;
}

# How many ns of the one are in another state in the other (but for unknown), and how many are the same
sub compare {
	my ($of, $in, $allowed) = @_;
	my ($wrong, $same) = (0, 0);

	for my $task (keys %$of) {
		my @others = @{ $in->{$task} // [] }; # in order of their begins, as those of $of are

		for my $x (@{ $of->{$task} }) {
			shift @others while @others && $others[0][2] <= $x->[1];
			for my $y (@others) {
				last if $y->[1] >= $x->[2];
				my $from = $x->[1] > $y->[1] ? $x->[1] : $y->[1];
				my $to = $x->[2] < $y->[2] ? $x->[2] : $y->[2];

				next if $from >= $to || $y->[0] eq 'lost';
				if ($allowed->($x->[0], $y->[0])) { $same += $to - $from; next }
				$wrong += $to - $from;
				print "# $task: @$x, not @$y\n";
			}
		}
	}
	return ($wrong, $same);
}

sub total { my $v = shift; my $ns = 0; $ns += $_->[2] - $_->[1] for map { @$_ } values %$v; $ns }

for my $dir (@dirs) {
	my $reference = reference("$dir/trace.dat");
	my $tasks = ours($dir, "SELECT tid, state, ts, ts + dur FROM thread_states WHERE machine = 'host' ORDER BY tid, ts");
	my ($wrong, $same) = compare($reference, $tasks, sub { $_[0] eq $_[1] });
	my $all = total($reference);

	ok($all && !$wrong && $same > .9 * $all, sprintf "$dir: tasks' states: %d of %d us are stock's, %d wrong", $same / 1000, $all / 1000, $wrong);

	# a vCPU's thread that could run and did not: its guest's time is stolen
	my $vcpus = ours($dir, "SELECT tid, state, ts, ts + dur FROM vcpu_states WHERE tid IS NOT NULL ORDER BY tid, ts");
	my %threads = map { $_ => $reference->{$_} } grep { $reference->{$_} } keys %$vcpus;
	($wrong, $same) = compare(\%threads, $vcpus, sub {
		my ($stock, $state) = @_;

		return ($state =~ /^(preempted|waking)$/) == ($stock eq 'runnable');
	});
	$all = total(\%threads);
	my $stolen = total({ map { $_ => [ grep { $_->[0] eq 'runnable' } @{ $threads{$_} } ] } keys %threads });
	ok(%threads && $wrong == 0 && $same > .8 * $all,
		sprintf "$dir: stolen time: %d us, as stock's text has it; %d of %d us are compared, %d wrong", $stolen / 1000,
		$same / 1000, $all / 1000, $wrong);
}
print "1..$tests\n";
exit($failed > 0);
