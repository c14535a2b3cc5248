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

# ---- --allow ------------------------------------------------------------------------

# With --allow the agent serves from an instance of its own, by its pid. A fake one has to be there
# before it is made, and does not go: plain files do not come and go with their directory.
sub start_allow {
	$prepare = sub { make_buffer("instances/hyptrace-agent-$$/") };
	start('--listen', "unix:$uds", @_);
	$prepare = sub { };
	$buffer = "instances/hyptrace-agent-$agent/";
}

sub end_allow {
	stop();
	system('rm', '-rf', "$tree/$buffer");
	$buffer = '';
	make_tree();
	$clean = state();
}

sub refused_tests {
	my $way = qr/only events are allowed here, no tracer/;
	try_all(
		Hostile::refused('--allow: another event', qr/none of these events is allowed/, '-e', 'irq'),
		Hostile::refused('--allow: a region by another event', qr/this event is not allowed/, @plain,
			'--start-on', 'irq:irq_handler_entry'),
		Hostile::refused('--allow: ... or until one', qr/this event is not allowed/, @plain,
			'--stop-on', 'irq:irq_handler_entry/irq == 1'),
		Hostile::refused('--allow: a tracer', $way, '-p', 'function', @plain),
		Hostile::refused('--allow: a tracer without events', $way, '-p', 'function'),
		Hostile::refused('--allow: a tracer without events, in an instance', $way, '-B', 'x', '-p', 'function'),
		Hostile::refused('--allow: a probe', qr/only an agent with --probes makes it/, '-e', 'p:a/b schedule'),
		Hostile::refused('--allow: a preset', qr/only events that are there are allowed here, no probe/,
			'--preset', 'virtio'),
		Hostile::refused('--allow: functions without a tracer', $way, '-l', 'schedule', @plain),
		Hostile::refused('--allow: a trigger that enables events', qr/trigger/, '-e', 'sched',
			'-R', 'enable_event:irq:irq_handler_entry'),
		(map { Hostile::refused("--allow: -O $_", qr/option is not allowed/, @plain, '-O', $_) }
			qw(copy_trace_marker trace_printk_dest userstacktrace nofunc_stack_trace)));
}

# Of this machine, where its kernel lets us. The answer has twice the streams: some pages come in each of the
# second half, with records of the two events.
sub sample_tests {
	my $s = dial();
	my $r = ask($s, args(@plain) . Hostile::protos('profile:199'));
	return ok(0, 'samples: a request', $r) unless ref $r;
	return ok(1, "samples # SKIP this machine has none for us: $1")
		if !$r->{flags} && slurp($agent_log) =~ /(--profile: .*)/;
	ok($r->{flags} == 1 << 31 && $r->{cpus} == 8, '--allow hyptrace:sample: samples are announced');
	metadata($s);
	my @d = map { dial_port($_) } @{ $r->{ports} };
	sleep 0.5;
	give($s, message(0, '', ''));
	my $all = '';
	for (@d[4 .. 7]) {
		while (take($_, 4096, \my $page)) { $all .= $page }
	}
	my $n = () = $all =~ /\x00\x7d\0\0/g; # the id of a sample, 32000, no flags
	ok($n >= 5, '... and come', "$n");
	close $_ for $s, @d;
}

sub allow_tests {
	start_allow('--allow', 'sched:sched_sw*');
	$clean = state();
	like_log('says what goes out all the same', qr/a recorder gets the events that --allow names, and without asking: kernel symbols/);
	refused_tests();
	try('--allow: of a system, what is allowed', sub {
		my $s = dial();
		my $r = ask($s, args('-e', 'sched'));
		return $r unless ref $r;
		my $on = join '', map { slurp("$tree/${buffer}events/sched/$_/enable") } qw(sched_switch sched_waking);
		close $s;
		put("${buffer}events/sched/sched_switch/enable", "0\n");
		return $on eq "1\n0\n" ? '' : "enabled: $on";
	});
	# what is in the top buffer, and what others put there meanwhile
	for (['top', @plain], ['an instance that is there', '-B', 'mine', @plain], ['nothing', '-p', 'nop']) {
		my ($name, @args) = @$_;
		put('trace', "from before\n");
		put('set_event', "irq:irq_handler_entry\n");
		make_buffer('instances/mine/');
		$clean = state();
		try("--allow: $name asked for, the agent's own instance is served", sub {
			my $s = dial();
			my $r = ask($s, args(@args));
			return $r unless ref $r;
			my $own = slurp("$tree/${buffer}trace");
			return 'another buffer is touched' if slurp("$tree/trace") ne "from before\n" ||
				slurp("$tree/set_event") ne "irq:irq_handler_entry\n" || slurp("$tree/instances/mine/set_event");
			metadata($s);
			my @d = map { dial_port($_) } @{ $r->{ports} };
				for (1 .. 1000) { last if feed(1, "\1" x 4096); sleep 0.02 }
			take($d[1], 4096, \my $got) or return 'no pages of its own buffer';
			return Hostile::finish($s, @d);
		});
	}
	try('--allow: a whole recording', sub { record() });
	end_allow();
	start_allow('--allow', 'sched:sched_sw*'); # anew: an agent that has said much says no more for a while
	$clean = state();
	no warnings 'portable'; # 64 bits
	my ($caps) = slurp("/proc/$agent/status") =~ /CapEff:\s+([0-9a-f]+)/;
	ok(!(hex($caps) & ~(1 << 34)), "--allow without samples: CAP_PERFMON is not kept: $caps");
	try('--allow: samples are refused, the rest is recorded', sub {
		my $s = dial();
		my $r = ask($s, args(@plain) . Hostile::protos('profile:99'));
		return $r unless ref $r;
		close $s;
		return $r->{flags} == 0 && $r->{cpus} == 4 ? '' : "flags $r->{flags}, $r->{cpus} streams";
	});
	like_log('... which is said', qr/--profile is refused: --allow hyptrace:sample would do/);
	end_allow();
	start_allow('--allow', 'hyptrace:sample', '--allow', 'sched:sched_sw*');
	$clean = state();
	sample_tests();
	end_allow();
}

sub like_log {
	my ($name, $pattern) = @_;
	ok(slurp($agent_log) =~ $pattern, $name, slurp($agent_log));
}

# ---- --early -------------------------------------------------------------------------

sub early_tests {
	put('trace', "kept\n");
	put('trace_clock', "boot\n");
	$clean = state();
	start('--listen', "unix:$uds", '--early', 'sched:sched_switch');
	ok(slurp("$tree/set_event") =~ /sched:sched_switch/ && slurp("$tree/tracing_on") =~ /1/,
		'--early: it records at once');
	put('events/sched/sched_switch/enable', "1\n"); # as the kernel's set_event does
	my $early = state();
	my $s = dial();
	my $r = ask($s, args('-e', 'sched', '-e', 'nosuch'));
	ok(!ref $r && $r =~ /cannot set up tracing/, '--early: a request is refused', $r);
	closed($s);
	ok(state() eq $early && slurp("$tree/set_event") eq "sched:sched_switch\n", '... which leaves all as it was', slurp("$tree/set_event"));
	$s = dial();
	$r = ask($s, args(@plain));
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

sub early_allow_tests {
	start_allow('--early', 'irq:irq_handler_entry', '--allow', 'sched:*');
	ok(slurp("$tree/${buffer}set_event") =~ /irq_handler_entry/ && slurp("$tree/set_event") eq '',
		"--early and --allow: in the agent's own instance", slurp($agent_log));
	my $s = dial();
	my $r = ask($s, args('-e', 'irq'));
	ok(!ref $r && slurp("$tree/${buffer}tracing_on") =~ /1/, '... a request that is refused leaves it on', $r);
	closed($s);
	$s = dial();
	$r = ask($s, args(@plain));
	ok(ref $r && slurp($agent_log) =~ /holds a boot trace/, '... which the first recorder gets', slurp($agent_log));
	close $s;
	end_allow();
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

# Ticks of the CPU that the agent has used.
sub cpu { my @stat = split ' ', slurp("/proc/$agent/stat"); return $stat[13] + $stat[14] }

# By the real limit of the real kernel.
sub full_tests {
	start('--listen', "unix:$uds");
	try('a recorder that comes when the agent can open nothing more waits', sub {
		my $free = 0;
		$free++ while -l "/proc/$agent/fd/$free";
		my ($limit) = slurp("/proc/$agent/limits") =~ /^Max open files +(\d+)/m;
		system('prlimit', "--pid=$agent", "--nofile=$free:$limit") and return 'no prlimit';
		my $s = dial();
		my $said = qr/cannot accept a connection: Too many open files/;
		for (1 .. 500) { last if slurp($agent_log) =~ $said; sleep 0.01 }
		my $before = cpu();
		sleep 2.5;
		my $ticks = cpu() - $before;
		system('prlimit', "--pid=$agent", "--nofile=$limit:$limit");
		my $times = () = slurp($agent_log) =~ /$said/g;
		return "said $times times" if $times != 1;
		return "$ticks ticks of the CPU" if $ticks > 50;
		return record($s);
	});
	stop();
}

test_builds(sub {
	allow_tests();
	early_tests();
	early_allow_tests();
	idle_tests();
	full_tests();
});
