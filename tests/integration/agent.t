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
use Cwd qw(abs_path);
use FindBin;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use File::Find;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(:sys_wait_h mkfifo);
use Errno;
use Socket qw(SOCK_STREAM SOL_SOCKET SO_ERROR);
use Time::HiRes qw(time sleep);
use lib $FindBin::Bin;
use Hostile;

chdir "$FindBin::Bin/../..";
my $O    = $ENV{O} // 'build';
my ($tests, $failed, $agent) = (0, 0, 0);
my ($top, $tree, $agent_log, $uds, $asan);
my $said = ""; # by agents that have ended
$SIG{PIPE} = 'IGNORE';
# the whole of it, for a test that hangs says nothing
$SIG{ALRM} = sub { print "Bail out! the test itself hangs\n"; kill 'KILL', $agent if $agent; exit 1 };
alarm 400;

sub diag { print STDERR map { "# $_\n" } split /\n/, join '', @_ }

# the prototype: a match that fails is false, not no argument at all
sub ok($$;$) {
	my ($good, $name, $more) = @_;
	$tests++;
	$failed++ unless $good;
	print $good ? "ok" : "not ok", " $tests - ", $asan ? 'ASan: ' : '', "$name\n";
	diag($more // '') unless $good;
	return $good;
}

sub skip {
	my ($n, $why) = @_;
	$tests++, print "ok $tests # SKIP $why\n" for 1 .. $n;
}

# ---- the fake tree ------------------------------------------------------------------

sub put {
	my ($path, $text) = @_;
	(my $dir = "$tree/$path") =~ s{/[^/]*$}{};
	make_path($dir);
	open my $f, '>', "$tree/$path" or die "$path: $!";
	print $f $text;
	close $f;
}

sub slurp {
	my ($path) = @_;
	open my $f, '<', $path or return '';
	local $/;
	return scalar <$f> // '';
}

sub make_tree {
	put($_, '') for qw(trace set_event set_event_pid set_event_notrace_pid error_log);
	put('tracing_on',        "0\n");
	put('current_tracer',    "nop\n");
	put('available_tracers', "function nop\n");
	put('trace_clock',       "mono\n");
	put('buffer_size_kb',    "1408\n");
	put('saved_cmdlines',    "1 init\n2 kthreadd\n");
	put('printk_formats',    "0xffff : \"hello\"\n");
	put('options/stacktrace', "0\n");
	put('events/header_event', "# compressed entry header\n");
	put('events/header_page', <<'END');
	field: u64 timestamp;	offset:0;	size:8;	signed:0;
	field: local_t commit;	offset:8;	size:8;	signed:1;
	field: int overwrite;	offset:8;	size:1;	signed:1;
	field: char data;	offset:16;	size:4080;	signed:1;
END
	my $id = 0;
	for my $e (qw(ftrace/function sched/sched_switch sched/sched_waking irq/irq_handler_entry)) {
		my ($name) = $e =~ m{/(.*)};
		put("events/$e/format", "name: $name\nID: " . ++$id . "\nformat:\n");
		next if $e =~ /^ftrace/;
		put("events/$e/enable", "0\n");
		put("events/$e/filter", "none\n");
	}
	put("events/$_/enable", "0\n") for qw(sched irq);
	for my $cpu (0 .. 3) {
		put("per_cpu/cpu$cpu/stats", "entries: 5\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n");
		mkfifo("$tree/per_cpu/cpu$cpu/trace_pipe_raw", 0600);
	}
	make_path("$tree/instances");
}

# All files, but for the events' own switches: that set_event puts them back is
# the kernel's doing.
sub state {
	my $text = '';
	find({ no_chdir => 1, wanted => sub {
		return if -p $_ || m{/events/.*/enable$} || m{/set_event};
		$text .= -d $_ ? "$_\n" : "$_: " . slurp($_) . "\n";
	} }, $tree);
	return join "\n", sort split /\n/, $text;
}

# ---- the agent ------------------------------------------------------------------------

sub start {
	my @args = @_;
	$said .= slurp($agent_log);
	unlink $agent_log;
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	if (!$pid) {
		open STDERR, '>>', $agent_log;
		$ENV{HYPTRACE_TRACING_DIR} = $tree;
		$ENV{ASAN_OPTIONS} = 'detect_leaks=1:exitcode=99';
		my $dir = $asan ? "$O-san" : $O;
		exec abs_path("$dir/hyptrace-agent"), '--journal', "$top/journal", '--timeout', 1, '-v', @args;
		die "exec: $!";
	}
	$agent = $pid;
	for (1 .. 1000) {
		return 1 if slurp($agent_log) =~ /listening on.*capabilities dropped/s;
		last if waitpid($pid, WNOHANG) == $pid;
		sleep 0.02;
	}
	diag("no agent: ", slurp($agent_log));
	return 0;
}

# Ends it; its exit status, or "signal N".
sub stop {
	my ($signal) = @_;
	kill $signal // 'TERM', $agent;
	for (1 .. 500) {
		if (waitpid($agent, WNOHANG) == $agent) {
			$agent = 0;
			return WIFSIGNALED($?) ? 'signal ' . WTERMSIG($?) : WEXITSTATUS($?);
		}
		sleep 0.02;
	}
	kill 'KILL', $agent;
	waitpid $agent, 0;
	$agent = 0;
	return 'hung';
}

sub alive { return $agent && waitpid($agent, WNOHANG) == 0 }

sub rss { return slurp("/proc/$agent/status") =~ /VmRSS:\s+(\d+)/ ? $1 : 0 }

# ---- a recorder -------------------------------------------------------------------------

$Hostile::dial = sub { return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $uds) };

# The agent's port N behind its socket.
$Hostile::dial_port = sub {
	my ($n) = @_;
	my $s = dial() or return;
	give($s, "CONNECT $n\n");
	my $line = '';
	while (length $line < 40 && take($s, 1, \my $c)) {
		$line .= $c;
		return $line =~ /^OK/ ? $s : undef if $c eq "\n";
	}
	return;
};

# Feeds a CPU's fake trace_pipe_raw; the bytes come out at the recorder.
$Hostile::feed = sub {
	my ($cpu, $bytes) = @_;
	sysopen my $f, "$tree/per_cpu/cpu$cpu/trace_pipe_raw", POSIX::O_WRONLY() | POSIX::O_NONBLOCK()
		or return;
	return syswrite $f, $bytes;
};

# A whole recording. Returns what was wrong, or ''.
sub record {
	my ($s) = @_;
	$s //= dial() or return 'no connection';
	my $r = ask($s);
	return "answer: $r" unless ref $r;
	return "cpus $r->{cpus}" unless $r->{cpus} == 4 && @{ $r->{ports} } == 4 && $r->{page} == 4096;
	my $meta = metadata($s) // return 'no metadata';
	return "metadata" unless $meta =~ m{^\x17\x08Dtracing7\0} && $meta =~ m{name: function} &&
		$meta =~ m{2 kthreadd};
	my @data = map { dial_port($_) // return "no port $_" } @{ $r->{ports} };
	my $pages = join '', map { pack('Q2', 1000 * $_, 16) . ("\0" x 4080) } 1 .. 3;
	for (1 .. 1000) { last if feed(1, $pages); sleep 0.02 }
	take($data[1], length $pages, \my $got) or return 'no pages';
	return 'pages differ' unless $got eq $pages;
	give($s, message(0, '', ''));
	closed($_) or return 'no end of data' for @data;
	my ($cmd) = receive($s);
	return 'no CLOSE_RESP' unless ($cmd // -1) == 8;
	return '';
}

# ---- tests ----------------------------------------------------------------------------------

# After each of them the agent must live, serve the next one, and have put all back.
my $clean;
sub afterwards {
	my ($name, $bad, $seconds) = @_;
	my $wrong = $bad // '';
	my $state;
	$wrong ||= 'the agent is gone: ' . slurp($agent_log) unless alive();
	# the session before may just be ending
	for (1 .. 3000) {
		my $journal = -e "$top/journal";
		$state = state() . ($journal ? "\nthe journal" : '');
		last if $state eq $clean || !alive();
		sleep 0.02;
	}
	$wrong ||= "tracefs is not as it was:\n$state" if $state ne $clean;
	# of waits of 1 s, on a machine that may be busy
	$wrong ||= "took $seconds s" if ($seconds // 0) > 30;
	ok(!$wrong, $name, $wrong);
}

sub try {
	my ($name, $code) = @_;
	my $start = time;
	my $bad = eval { $code->() };
	$bad = $@ if $@;
	afterwards($name, $bad, time - $start);
}

sub try_all { try(@$_) for @_ }

sub connect_tests {
	try_all(Hostile::garbage('a CONNECT without an end', 'CONNECT ' . '1' x 100),
		Hostile::garbage('CONNECT to no port', "CONNECT 12345\n"));
}

sub recording_tests {
	try('a recording', sub { record() });
	try('another one', sub { record() });
	try('a recorder beside 6 that only look', sub {
		my @idle = map { dial() } 1 .. 6;
		return record();
	});
	try('a recorder beside 1,000 that only look', sub {
		my @idle = map { dial() } 1 .. 1000;
		return record();
	});
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
	my $syslog = 1 << 34;
	no warnings 'portable'; # 64 bits
	ok($said_caps eq 'yes' && !(hex($caps) & ~$syslog), "capabilities are dropped, and it says so: $said_caps, $caps");
	ok($> || !(hex($more) & ~$syslog), "... for good: $more");
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
	ok($strip == 0 && $size && $size <= 1 << 20, "$size bytes stripped");
	ok(`readelf -lW $file` !~ /INTERP|DYNAMIC/, 'a static file');
}

# Its exit status and what it said.
sub refuses {
	my ($name, $why, @args) = @_;
	my $pid = open my $f, '-|';
	die "fork: $!" unless defined $pid;
	if (!$pid) {
		open STDERR, '>&', \*STDOUT;
		$ENV{HYPTRACE_TRACING_DIR} = $tree;
		exec abs_path(($asan ? "$O-san" : $O) . '/hyptrace-agent'), '--journal', 'none', @args;
		die "exec: $!";
	}
	my $text = do { local $/; <$f> } // '';
	close $f;
	ok($? == 2 << 8 && $text =~ $why, "refuses $name", "status $?: $text");
}

sub option_tests {
	refuses('a CID that is no number', qr/--cid x: not a number/, '--cid', 'x');
	refuses('17 CIDs', qr/--cid 25: too many/, map { ('--cid', $_) } 10 .. 26);
	refuses('a host by name', qr/tcp:localhost: not an address/, '--listen', 'tcp:localhost');
	refuses('another kind of address', qr/udp:1: not an address/, '--listen', 'udp:1');
	refuses('a port beyond all', qr/-p 4294967295: must be at most 4294967294/, '--port', '4294967295');
	refuses('an option without its argument', qr/option '--allow' needs an argument/, '--allow');
	refuses('an option that is none', qr/option '--run' is unknown/, '--run', 'x');
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

sub allow_tests {
	start('--listen', "unix:$uds", '--allow', 'sched:sched_sw*');
	try_all(
		Hostile::refused('--allow: another event', qr/none of these events is allowed/, '-e', 'irq'),
		Hostile::refused('--allow: a tracer', qr/no tracer/, '-p', 'function'),
		Hostile::refused('--allow: a trigger that enables events', qr/trigger/, '-e', 'sched',
			'-R', 'enable_event:irq:irq_handler_entry'));
	try('--allow: of a system, what is allowed', sub {
		put("events/$_/enable", "0\n") for qw(sched/sched_switch sched/sched_waking);
		my $s = dial();
		my $r = ask($s, args('-e', 'sched'));
		return $r unless ref $r;
		my $on = slurp("$tree/events/sched/sched_switch/enable") . slurp("$tree/events/sched/sched_waking/enable");
		close $s;
		return $on eq "1\n0\n" ? '' : "enabled: $on";
	});
	stop();
}

sub early_tests {
	unlink $agent_log;
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
}

sub all {
	make_tree();
	unlink $agent_log;
	$uds = "$top/agent";
	$clean = state();
	size_test();
	option_tests();
	start('--listen', "unix:$uds") or do { ok(0, 'the agent starts'); return };
	privilege_tests();
	try_all(Hostile::scripts());
	connect_tests();
	recording_tests();
	sync_test();
	stream_test();
	signal_tests();
	tcp_tests();
	vsock_tests();
	allow_tests();
	early_tests();
	$said .= slurp($agent_log);
	ok($said !~ /AddressSanitizer|LeakSanitizer|runtime error/, "no sanitizer spoke", $said);
}

if (!-x "$O/hyptrace-agent") {
	print "1..0 # SKIP no $O/hyptrace-agent\n";
	exit;
}

# Most of the time is spent waiting: both builds wait at the same time. What each
# half prints is numbered anew.
$ENV{TMPDIR} //= '/dev/shm' if -w '/dev/shm'; # thousands of small files

sub half {
	my ($sanitised) = @_;
	my $pid = open my $out, '-|';
	die "fork: $!" unless defined $pid;
	return $out if $pid;
	$asan = $sanitised;
	$top = tempdir('hyptrace-agent.XXXXXX', TMPDIR => 1, CLEANUP => 1);
	($tree, $agent_log) = ("$top/tracing", "$top/log");
	$| = 1;
	all();
	exit $failed ? 1 : 0;
}

my @halves = (half(0));
if (-x "$O-san/hyptrace-agent") {
	push @halves, half(1);
} else {
	print "# no $O-san/hyptrace-agent: not tried with ASan (make SAN=1)\n";
}
for my $out (@halves) {
	while (<$out>) {
		$tests++ if s/^((?:not )?ok) \d+/"$1 " . ($tests + 1)/e;
		print;
	}
	close $out or $failed = 1;
}
print "1..$tests\n";
exit $failed ? 1 : 0;
