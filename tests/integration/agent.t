#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Recorders that are broken, hostile or just unlucky against hyptrace-agent:
# whatever they do, it neither crashes nor hangs, and tracefs is afterwards what
# it was before. The tracing directory is a fake, of plain files: what the kernel
# does with them is for tests/lab. Runs twice: the static agent, and the one built
# with ASan when that is there.
use strict;
use warnings;
use FindBin;
use IO::Select;
use IO::Socket::INET;
use Errno;
use Socket qw(SOCK_STREAM SOL_SOCKET SO_ERROR);
use Time::HiRes qw(time sleep);
use lib $FindBin::Bin;
use AgentTest;
use Hostile;

chdir "$FindBin::Bin/../..";

# ---- tests ----------------------------------------------------------------------------------

sub connect_tests {
	try_all(Hostile::garbage('a CONNECT without an end', 'CONNECT ' . '1' x 100),
		Hostile::garbage('CONNECT to no port', "CONNECT 12345\n"));
}

sub recording_tests {
	try('a recording', sub { record() });
	try('another one', sub { record() });
}

# All CPUs at once, faster than anybody reads.
sub stream_test {
	my ($s, @d) = Hostile::begun();
	my $got = 0;
	my $page = pack('Q2', 1000, 16) . ("\0" x 4080);
	for (1 .. 50000) {
		last if $got >= 8 << 20;
		feed($_, $page x 16) for 0 .. $#d;
		for my $d (IO::Select->new(@d)->can_read(0.01)) {
			$got += sysread($d, my $bytes, 1 << 18) // 0;
		}
	}
	my ($kb) = slurp("/proc/$agent/status") =~ /VmHWM:\s+(\d+)/;
	ok($got >= 8 << 20, '8 MiB of four CPUs', "$got bytes");
	ok($asan || $kb <= 4096, "$kb KiB resident at most");
	close $_ for $s, @d;
	afterwards('... and back to where it was');
}

sub sync_test {
	try('time synchronisation', sub {
		my ($s, $r, $t) = Hostile::begin_sync();
		my (@ts, $bytes);
		give($t, $Hostile::probe_cpu);
		while (my ($cmd, $fixed, $data) = receive($t)) {
			my ($proto, $id) = unpack 'Z16N', $fixed;
			give($t, message($cmd, $fixed, $data)) if $id == 1 || $id == 2;
			push @ts, int(time * 1e9) if $id == 2;
			if ($id == 5) {
				my $i = 0;
				my @all = map { pack 'q>N', $_, ++$i } @ts;
				$bytes = join('', @all) . "\0" x (12 * (678 - @all));
				give($t, message(9, pack('a16N', 'ptp', 3), pack('N2', 1, scalar @ts) . $bytes));
			}
			if ($id == 4) {
				my ($ts, $offset) = unpack 'q>q>', $data;
				return 'no offset' unless $ts && $offset;
				my $want = time - now();
				return "offset $offset, not $want s" if abs($offset / 1e9 - $want) > 0.1;
				close $s;
				return '';
			}
		}
		return 'it ended';
	});
	# Half of the probes wait 8 ms on one way, half on the other: each alone is 4 ms off.
	try('time synchronisation over slow ways', sub {
		my ($s, $r, $t) = Hostile::begin_sync();
		give($t, $Hostile::probe_cpu);
		my @ts;
		while (my ($cmd, $fixed, $data) = receive($t)) {
			my ($proto, $id) = unpack 'Z16N', $fixed;
			if ($id == 2) {
				sleep 0.008 if @ts % 2;
				push @ts, int(Time::HiRes::clock_gettime(7) * 1e9); # CLOCK_BOOTTIME, the agent's too
				sleep 0.008 if @ts % 2;
			}
			give($t, message($cmd, $fixed, $data)) if $id == 1 || $id == 2;
			if ($id == 5) {
				my $i = 0;
				my $bytes = join('', map { pack 'q>N', $_, ++$i } @ts) . "\0" x (12 * (678 - @ts));
				give($t, message(9, pack('a16N', 'ptp', 3), pack('N2', 1, scalar @ts) . $bytes));
			}
			if ($id == 4) {
				my ($ts, $offset) = unpack 'q>q>', $data;
				close $s;
				return abs($offset) < 3e6 ? '' : "offset $offset";
			}
		}
		return 'it ended';
	});
	try("the guest's counter, for hyptrace's recorder", sub {
		my $s = dial();
		my $r = ask($s, args(@plain) . protos('counter', 'ptp'));
		return '' if ref $r && $r->{proto} eq 'ptp'; # no counter that programs read
		my $t = dial_port($r->{tsync});
		my $last = 0;
		for my $n (7, 8) {
			give($t, message(9, pack('a16N', 'counter', 1), pack('N', $n)));
			my ($cmd, $fixed, $data) = receive($t);
			my ($proto, $id) = unpack 'Z16N', $fixed;
			return 'not an answer' unless $cmd == 9 && $proto eq 'counter' && $id == 2 && length $data == 48;
			my ($number, $first, $end, $counter, $slack, $clock) = unpack 'Q>6', $data;
			return "number $number" if $number != $n;
			return "order $last $first $counter $end" unless $last < $first && $first <= $counter && $counter <= $end;
			return "slack $slack" unless $slack <= $end - $first;
			my $now = Time::HiRes::clock_gettime(7) * 1e9;
			return "clock $clock at $now" if $clock > $now || $clock < $now - 60e9;
			$last = $end;
		}
		give($t, message(9, pack('a16N', 'none', 2), ''));
		close $s;
		return closed($t) ? '' : 'not closed';
	});
	try('a question about the counter that is cut off', sub {
		my $s = dial();
		my $r = ask($s, args(@plain) . protos('counter', 'ptp'));
		my $t = dial_port($r->{tsync});
		give($t, message(9, pack('a16N', 'counter', 1), 'x'));
		return closed($t) ? '' : 'not closed';
	});
}

# What it says it has given up, and what the kernel says.
sub privilege_tests {
	my $status = slurp("/proc/$agent/status");
	my ($said_caps, $said_privs, $said_calls) = slurp($agent_log) =~
		/capabilities dropped: (.*); no new privileges: (.*); system calls filtered: (.*)/;
	my ($caps) = $status =~ /CapEff:\s+([0-9a-f]+)/;
	my ($more) = $status =~ /CapBnd:\s+([0-9a-f]+)/;
	my $kept = 1 << 34 | 1 << 38; # CAP_SYSLOG; CAP_PERFMON, for samples
	no warnings 'portable'; # 64 bits
	ok($said_caps eq 'yes' && !(hex($caps) & ~$kept), "capabilities are dropped, and it says so: $said_caps, $caps");
	ok($> || !(hex($more) & ~$kept), "... for good: $more");
	ok($said_privs eq 'yes' && $status =~ /NoNewPrivs:\s+1/, 'no new privileges, and it says so');
	return skip(1, 'no seccomp in this kernel') if $status !~ /Seccomp:/;
	my $filtered = $status =~ /Seccomp:\s+2/;
	ok($asan ? $said_calls eq 'Operation not supported' && !$filtered : $said_calls eq 'yes' && $filtered,
		"system calls are filtered, or it says why not: $said_calls");
}

sub size_test {
	return if $asan;
	my $file = "$top/stripped";
	my $strip = system('strip', '-o', $file, "$O/hyptrace-agent");
	my $size = -s $file // 0;
	ok($strip == 0 && $size && $size <= 1_200_000, "$size bytes stripped");
	ok(`readelf -lW $file` !~ /INTERP|DYNAMIC/, 'a static file');
}

sub option_tests {
	refuses('a CID that is no number', qr/--cid x: not a number/, '--cid', 'x');
	refuses('17 CIDs', qr/--cid 25: too many/, map { ('--cid', $_) } 10 .. 26);
	refuses('a host by name', qr/tcp:localhost: not an address/, '--listen', 'tcp:localhost');
	refuses('another kind of address', qr/udp:1: not an address/, '--listen', 'udp:1');
	refuses('a port beyond all', qr/-p 4294967295: must be at most 4294967294/, '--port', '4294967295');
	refuses('an option without its argument', qr/option '--allow' needs an argument/, '--allow');
	refuses('an option that is none', qr/unknown or ambiguous option '--run'/, '--run', 'x');
}

sub signal_tests {
	my $busy = sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		for (1 .. 2000) { last if slurp("$tree/tracing_on") =~ /1/; sleep 0.01 }
		return ($s, @d);
	};
	my @all = $busy->();
	ok(slurp("$tree/tracing_on") =~ /1/ && state() ne $clean, 'it records');
	my $status = stop('TERM');
	ok($status eq '0', 'SIGTERM ends it', "status $status\n" . slurp($agent_log));
	ok(state() eq $clean && !-e "$top/journal", '... and puts all back');
	start('--listen', "unix:$uds");
	@all = $busy->();
	stop('KILL');
	ok(state() ne $clean && -s "$top/journal", 'kill -9 leaves a journal');
	my $refused = `HYPTRACE_TRACING_DIR=$tree timeout 60 $O/hyptrace record -o $top/other.dat -e sched -- true 2>&1`;
	ok($? >> 8 == 1 && $refused =~ /killed .*\Q$top\E\/journal/, '... that a recorder of the same buffer finds', $refused);
	start('--listen', "unix:$uds");
	ok(state() eq $clean && !-e "$top/journal", '... by which the next one puts all back');
	my $bad = record();
	ok($bad eq '', '... and serves', $bad);
	my $kb = rss();
	ok($asan || $kb <= 4096, "$kb KiB resident");
	stop();
	open my $f, '>', "$top/journal";
	print $f "write\t../../../etc/passwd\tx\n";
	close $f;
	start('--listen', "unix:$uds");
	ok(alive() && !-e "$top/journal", 'a journal that makes no sense changes nothing');
	stop();
}

sub tcp_tests {
	start('-p', 0, '--listen', 'tcp:127.0.0.1');
	my ($n) = slurp($agent_log) =~ /listening on tcp:127.0.0.1:(\d+)/;
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $n // 0);
	my $r = $s && ask($s);
	ok(ref $r, 'TCP: the address that was named is served');
	my $d = ref $r && IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $r->{ports}[0]);
	ok($d, 'TCP: a data port');
	close $s if $s;
	stop();
	start('-p', 0, '--listen', 'tcp:192.0.2.1');
	($n) = slurp($agent_log) =~ /listening on tcp:.*:(\d+)/;
	$s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $n // 0);
	ok($s && closed($s) && slurp($agent_log) =~ /tcp:127.0.0.1:\d+ may not connect/,
		'TCP: another address is not', slurp($agent_log));
	stop();
	ok(state() eq $clean, 'TCP: all is put back');
}

# As systemd starts it (Accept=no): the socket is descriptor 3.
sub passed_tests {
	local $^F = 9; # no close-on-exec, should it be 3
	my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1');
	my $pass = sub {
		my ($n) = @_;
		return sub { POSIX::dup2(fileno $l, 3); @ENV{qw(LISTEN_PID LISTEN_FDS)} = ($$, $n) };
	};
	$prepare = $pass->(1);
	start('--listen', 'tcp:127.0.0.1');
	my $n = $l->sockport;
	ok(slurp($agent_log) =~ /listening on tcp:127.0.0.1:$n$/m, 'a socket that was passed', slurp($agent_log));
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $n);
	ok($s && ref ask($s), 'a passed socket is served');
	close $s if $s;
	stop();
	for (['--listen', "unix:$uds"], ['--listen', 'tcp:127.0.0.1']) {
		$prepare = $pass->($_->[1] =~ /unix/ ? 1 : 2);
		ok(!start(@$_) && slurp($agent_log) =~ /not one listening socket of the kind/, 'another one is not',
			slurp($agent_log));
	}
	$prepare = sub { };
}

# vsock's sockaddr: family, reserved, port, CID, flags and zeros
sub vsock_dial {
	my ($to) = @_;
	socket(my $s, 40, SOCK_STREAM, 0) or return;
	$s->blocking(0);
	return $s if connect $s, pack('S2L2x4', 40, 0, $to, 1);
	return unless $!{EINPROGRESS} && IO::Select->new($s)->can_write(1);
	return unless unpack('i', getsockopt $s, SOL_SOCKET, SO_ERROR) == 0;
	$s->blocking(1);
	return $s;
}

# Over the loopback everybody is CID 1.
sub vsock_tests {
	socket(my $any, 40, SOCK_STREAM, 0) or return skip(3, 'no vsock in this kernel');
	my $n = 20000 + $$ % 10000;
	start('-p', $n);
	my $log = slurp($agent_log);
	ok($log =~ /listening on vsock:$n$/m, 'vsock is the default', $log);
	my $s = vsock_dial($n);
	if (!$s) {
		stop();
		return skip(2, 'no vsock loopback in this kernel');
	}
	ok(closed($s) && slurp($agent_log) =~ /vsock:1:\d+ may not connect/, 'vsock: only the host may connect',
		slurp($agent_log));
	stop();
	start('-p', $n, '--cid', 7, '--cid', 1);
	$s = vsock_dial($n);
	my $r = $s ? ask($s) : 'no connection';
	ok(ref $r, '--cid: one that is named may too', $r);
	close $s if $s;
	stop();
}

sub all {
	size_test();
	option_tests();
	start('--listen', "unix:$uds") or do { ok(0, 'the agent starts'); return };
	privilege_tests();
	try_all(Hostile::scripts());
	connect_tests();
	recording_tests();
	stream_test();
	signal_tests();
	# not about waits that end: on a busy machine each of hundreds of answers may take its second
	start('--listen', "unix:$uds", '--timeout', 60);
	sync_test();
	stop();
	tcp_tests();
	passed_tests();
	vsock_tests();
}

test_builds(\&all);
