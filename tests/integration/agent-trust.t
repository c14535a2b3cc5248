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
}

test_builds(sub {
	early_tests();
	idle_tests();
});
