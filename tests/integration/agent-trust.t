#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# What hyptrace-agent lets out of a guest, and that nobody keeps a recorder from
# it: --allow, --early, connections that say nothing. On a fake tracing directory
# (AgentTest.pm), but tests/lab/t/33-seccomp.t has the same on a real kernel.
use strict;
use warnings;
use FindBin;
use IO::Select;
use Time::HiRes qw(time sleep);
use lib $FindBin::Bin;
use AgentTest;
use Hostile;

chdir "$FindBin::Bin/../..";

# ---- --early -------------------------------------------------------------------------

sub early_tests {
	put('trace', "kept\n");
	put('trace_clock', "boot\n");
	$clean = state();
	start('--listen', "unix:$uds", '--early', 'sched:sched_switch');
	ok(slurp("$tree/set_event") =~ /sched:sched_switch/ && slurp("$tree/tracing_on") =~ /1/,
		'--early: it records at once');
	my $s = dial();
	my $r = ask($s, args(@plain));
	ok(ref $r && slurp("$tree/trace") eq "kept\n", '--early: the first recorder gets what is there', slurp($agent_log));
	close $s;
	afterwards('--early: put back after the first recorder');
	$s = dial();
	$r = ask($s, args(@plain));
	ok(ref $r && slurp("$tree/trace") eq '', '--early: the second one begins anew');
	close $s;
	stop();
	make_tree();
	$clean = state();
}

# ---- connections that say nothing ------------------------------------------------------

sub idle_tests {
	start('--listen', "unix:$uds");
	try('a recorder beside 6 that only look', sub {
		my @idle = map { dial() } 1 .. 6;
		return record();
	});
	try('a recorder beside 1,000 that only look', sub {
		my @idle = map { dial() } 1 .. 1000;
		return record();
	});
	stop();
	# the recorder's own waits are not what this is about
	start('--listen', "unix:$uds", '--timeout', 60);
	try('a recorder that is followed by 60 before it is looked at', sub {
		kill 'STOP', $agent;
		my $s = dial();
		my @idle = map { dial() } 1 .. 60;
		kill 'CONT', $agent;
		return record($s);
	});
	try('a recorder beside 100 that come again whenever they are dropped', sub {
		my $pid = fork // die "fork: $!";
		if (!$pid) {
			my @idle = map { dial() } 1 .. 100;
			for (;;) {
				my $select = IO::Select->new(grep { $_ } @idle);
				my %gone = map { $_ => 1 } $select->can_read(0.1);
				@idle = map { $_ && !$gone{$_} ? $_ : dial() } @idle;
			}
		}
		for (1 .. 1000) { last if (() = glob "/proc/$agent/fd/*") > 90; sleep 0.01 }
		my $bad = '';
		$bad ||= record() for 1 .. 5;
		kill 'KILL', $pid;
		waitpid $pid, 0;
		return $bad;
	});
	stop();
}

test_builds(sub {
	early_tests();
	idle_tests();
});
