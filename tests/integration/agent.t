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
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use File::Find;
use IO::Socket::INET;
use IO::Socket::UNIX;
use IO::Select;
use POSIX qw(:sys_wait_h mkfifo);
use Socket qw(MSG_NOSIGNAL SOL_SOCKET SO_RCVBUF SOCK_STREAM);
use Time::HiRes qw(time sleep);

chdir "$0/../../.." =~ s{[^/]+/\.\./}{}r;
my $O    = $ENV{O} // 'build';
my $top  = tempdir('hyptrace-agent.XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $tree = "$top/tracing";
my $port = 823;
my ($tests, $failed, $agent, $agent_log, $uds, $asan) = (0, 0, 0, "$top/log");
my $said = ""; # by agents that have ended
$SIG{PIPE} = 'IGNORE';
# the whole of it, for a test that hangs says nothing
$SIG{ALRM} = sub { print "Bail out! the test itself hangs\n"; kill 'KILL', $agent if $agent; exit 1 };
alarm 400;

sub diag { print STDERR map { "# $_\n" } split /\n/, join '', @_ }

sub ok {
	my ($good, $name, $more) = @_;
	$tests++;
	$failed++ unless $good;
	print $good ? "ok" : "not ok", " $tests - ", $asan ? 'ASan: ' : '', "$name\n";
	diag($more // '') unless $good;
	return $good;
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
	for (1 .. 200) {
		return 1 if slurp($agent_log) =~ /listening on/;
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

sub dial {
	my $s = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $uds) or return;
	return $s;
}

# The agent's port N behind its socket.
sub dial_port {
	my ($n) = @_;
	my $s = dial() or return;
	give($s, "CONNECT $n\n");
	my $line = '';
	while (length $line < 40 && take($s, 1, \my $c)) {
		$line .= $c;
		return $line =~ /^OK/ ? $s : undef if $c eq "\n";
	}
	return;
}

sub give { my ($s, $bytes) = @_; return defined send($s, $bytes, MSG_NOSIGNAL) }

# n bytes, within 8 s; false: end or nothing
sub take {
	my ($s, $n, $out, $limit) = @_;
	my $end = time + ($limit // 8);
	$$out = '';
	while (length $$out < $n) {
		my $left = $end - time;
		return if $left <= 0 || !IO::Select->new($s)->can_read($left);
		my $got = sysread $s, $$out, $n - length $$out, length $$out;
		return unless $got;
	}
	return 1;
}

sub message {
	my ($cmd, $fixed, $data) = @_;
	return pack('N3', 12 + length($fixed) + length($data), $cmd, length $fixed) . $fixed . $data;
}

# (cmd, fixed, data), or () at the end
sub receive {
	my ($s, $limit) = @_;
	take($s, 12, \my $head, $limit) or return;
	my ($size, $cmd, $fixed) = unpack 'N3', $head;
	take($s, $size - 12, \my $rest, $limit) or return if $size > 12;
	$rest //= '';
	return ($cmd, substr($rest, 0, $fixed), substr($rest, $fixed));
}

sub args { my $all = join '', map { "$_\0" } @_; return pack('N3', 0, 4 + length $all, scalar @_) . $all }
sub protos { my $all = join('', map { "$_\0" } @_) . "\0"; return pack('N2', 1, length $all) . $all }
sub request { return message(6, pack('NNQ>', 0, 0, 42), $_[0]) }

# True when the other side has closed within so many seconds.
sub closed {
	my ($s, $limit) = @_;
	my $end = time + ($limit // 6);
	while (time < $end) {
		next unless IO::Select->new($s)->can_read(0.2);
		my $got = sysread $s, my $bytes, 65536;
		return 1 unless $got;
	}
	return 0;
}

my @plain = ('-C', 'boot', '-e', 'sched:sched_switch');

# A request and its answer: {cpus, ports, proto, tsync} or the refusal's text.
sub ask {
	my ($s, @more) = @_;
	my ($params) = @more ? @more : args(@plain);
	give($s, request($params));
	my ($cmd, $fixed, $data) = receive($s);
	return 'nothing' unless defined $cmd;
	return $data =~ s/\0//r if $cmd == 5;
	return "command $cmd" if $cmd != 7;
	my (undef, $cpus, $page, $id, $proto, $tsync) = unpack 'NNNQ>Z16N', $fixed;
	return { cpus => $cpus, page => $page, id => $id, proto => $proto, tsync => $tsync,
		 ports => [ split /\0/, $data ] };
}

sub metadata {
	my ($s) = @_;
	my $all = '';
	while (my ($cmd, undef, $data) = receive($s)) {
		return $all if $cmd == 4;
		return unless $cmd == 3;
		$all .= $data;
	}
	return;
}

# Feeds a CPU's fake trace_pipe_raw; the bytes come out at the recorder.
sub feed {
	my ($cpu, $bytes) = @_;
	sysopen my $f, "$tree/per_cpu/cpu$cpu/trace_pipe_raw", POSIX::O_WRONLY() | POSIX::O_NONBLOCK()
		or return;
	return syswrite $f, $bytes;
}

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
	for (1 .. 100) { last if feed(1, $pages); sleep 0.02 }
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
	$wrong ||= 'the agent is gone: ' . slurp($agent_log) unless alive();
	# the session before may just be ending
	for (1 .. 400) {
		last if state() eq $clean && !-e "$top/journal";
		sleep 0.02;
	}
	$wrong ||= 'tracefs is not as it was' if state() ne $clean;
	$wrong ||= 'the journal was left' if -e "$top/journal";
	$wrong ||= "took $seconds s" if ($seconds // 0) > 8;
	ok(!$wrong, $name, $wrong);
}

sub try {
	my ($name, $code) = @_;
	my $start = time;
	my $bad = eval { $code->() };
	$bad = $@ if $@;
	afterwards($name, $bad, time - $start);
}

# Bytes after which the agent is to close, after an answer or without one.
sub garbage {
	my ($name, $bytes, $answer) = @_;
	try($name, sub {
		my $s = dial() or return 'no connection';
		give($s, $bytes);
		if ($answer) {
			my ($cmd, undef, $data) = receive($s);
			return 'no refusal' unless ($cmd // -1) == 5;
			return "refusal '$data'" unless $data =~ $answer;
		}
		return closed($s) ? '' : 'not closed';
	});
}

sub refused {
	my ($name, $why, @args) = @_;
	garbage($name, request(args(@args)), $why);
}

# Goes through a recording up to step n, then vanishes.
my @steps = (
	sub { my $c = shift; give($c->{s}, substr(request(args(@plain)), 0, 5)) },
	sub { my $c = shift; give($c->{s}, substr(request(args(@plain)), 5, 20)) },
	sub { my $c = shift; give($c->{s}, substr(request(args(@plain)), 25)) },
	sub { my $c = shift; ($c->{cmd}, undef, $c->{data}) = receive($c->{s}) },
	sub { my $c = shift; receive($c->{s}) },
	sub { my $c = shift; metadata($c->{s}) },
	sub { my $c = shift; my @p = split /\0/, $c->{data}; $c->{ports} = \@p; $c->{d}[0] = dial_port($p[0]) },
	sub { my $c = shift; push @{ $c->{d} }, map { dial_port($_) } @{ $c->{ports} }[1 .. 3] },
	sub { my $c = shift; give($c->{s}, message(0, '', '')) },
);

sub disconnect_after {
	my ($n) = @_;
	try("gone after step $n of " . @steps, sub {
		my %c = (s => dial());
		$_->(\%c) for @steps[0 .. $n - 1];
		close $_ for grep { $_ } $c{s}, @{ $c{d} // [] };
		return '';
	});
}

sub pending_tests {
	garbage('silent', '');
	garbage('half a header', pack('N', 28) . "\0\0");
	garbage('a header and half a request', substr(request(args(@plain)), 0, 30));
	garbage('size 0', pack('N3', 0, 6, 0) . "\0" x 32);
	garbage('size 11', pack('N3', 11, 6, 0));
	garbage('size 8193', pack('N3', 8193, 6, 16) . "\0" x 100);
	garbage('size 2^32-1', pack('N3', 0xffffffff, 6, 16) . "\0" x 100);
	garbage('cmd_size beyond size', pack('N3', 28, 6, 17) . "\0" x 16);
	garbage('cmd_size 2^32-1', pack('N3', 28, 6, 0xffffffff) . "\0" x 16);
	garbage('cmd_size too small for a request', message(6, "\0" x 15, ''), qr/makes no sense/);
	garbage('another protocol', "GET / HTTP/1.1\r\nHost: guest\r\n\r\n");
	garbage('an unknown command', message(77, '', 'x'), qr/only TRACE_REQ/);
	garbage('SEND_DATA first', message(3, '', 'x' x 8000), qr/only TRACE_REQ/);
	garbage('TRACE_RESP first', message(7, "\0" x 40, "1\0"), qr/only TRACE_REQ/);
	garbage('TIME_SYNC first', message(9, "\0" x 20, ''), qr/only TRACE_REQ/);
	garbage('TRACE_PROXY', message(10, "\0" x 24, args(@plain)), qr/only TRACE_REQ/);
	garbage('CLOSE first', message(0, '', ''));
	garbage('a CONNECT without an end', 'CONNECT ' . '1' x 100);
	garbage('CONNECT to no port', "CONNECT 12345\n");
	my $sense = qr/makes no sense/;
	garbage('argc 2^32-1', request(pack('N3', 0, 6, 0xffffffff) . "a\0"), $sense);
	garbage('argc 1000000', request(pack('N3', 0, 6, 1000000) . "a\0"), $sense);
	garbage('a string without end', request(pack('N3', 0, 6, 1) . 'ab'), $sense);
	garbage('a parameter beyond the message', request(pack('N3', 0, 600, 1) . "a\0"), $sense);
	garbage('a negative parameter length', request(pack('N3', 0, 0x80000000, 1) . "a\0"), $sense);
	garbage('half a parameter', request("\0\0\0\0\0"), $sense);
	garbage('protocols without end', request(args(@plain) . pack('N2', 1, 3) . 'ptp'), $sense);
}

sub request_tests {
	refused('a command', qr/nothing is run here/, @plain, 'reboot', '-f');
	refused('a command after --', qr/nothing is run here/, @plain, '--', 'reboot');
	refused('an output file', qr/-o/, '-o', '/etc/passwd', @plain);
	refused('an unknown option', qr/not known/, '--temp', '/etc', @plain);
	refused('a path as an event', qr/-e/, '-e', '../../../etc');
	refused('dots as an event', qr/-e/, '-e', 'sched:..');
	refused('a path as an option of ftrace', qr/-O/, '-O', '../tracing_on');
	refused('a path as a buffer', qr/-B/, '-B', '../../x', '-e', 'sched');
	refused('a line break in a filter', qr/-f/, '-e', 'sched', '-f', "a\nb");
	refused('an expression for functions', qr/-l/, '-p', 'function', '-l', '((a{1,200}){1,200}){1,200}');
	refused('two buffers', qr/one buffer/, '-B', 'a', '-e', 'sched', '-B', 'b', '-e', 'irq');
	refused('an event that is not there', qr/cannot set up/, '-e', 'nonsense');
	refused('a clock that is a path', qr/-C/, '-C', '/x');
	refused('an argument that is missing', qr/needs an argument/, '-e');
	refused('8,000 bytes of options', qr/not known/, ('-Z') x 2600);
}

sub recording_tests {
	try('a recording', sub { record() });
	try('another one', sub { record() });
	disconnect_after($_) for 1 .. @steps;
	try('never connects its data ports', sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		return closed($s) ? '' : 'not closed';
	});
	try('never reads the metadata', sub {
		my $s = dial();
		setsockopt $s, SOL_SOCKET, SO_RCVBUF, 2048;
		give($s, request(args(@plain)));
		sleep 2.5;
		return closed($s, 8) ? '' : 'not closed';
	});
	try('a slow reader', sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		my $end = time + 6;
		while (time < $end && !IO::Select->new($s)->can_read(0)) {
			feed(2, "\0" x 65536);
			sleep 0.01;
		}
		return closed($s) ? '' : 'not closed';
	});
	try('one data connection breaks', sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		close $d[3];
		return closed($s) ? '' : 'not closed';
	});
	try('a port connected twice', sub {
		my $s = dial();
		my $r = ask($s);
		my $one = dial_port($r->{ports}[0]);
		sleep 0.1;
		my $two = dial_port($r->{ports}[0]);
		return 'served twice' if $two && !closed($two, 1);
		close $s;
		return '';
	});
	try('messages in the wrong place', sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		for (1 .. 3) {
			give($s, message(6, "\0" x 16, ''));
			my ($cmd) = receive($s);
			return 'no NOT_SUPP' unless ($cmd // -1) == 5;
		}
		give($s, message(0, '', ''));
		closed($_) for @d;
		my ($cmd) = receive($s);
		return ($cmd // -1) == 8 ? '' : 'no CLOSE_RESP';
	});
	try('a flood of messages in the wrong place', sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		give($s, message(3, '', 'x' x 100)) for 1 .. 50;
		return closed($s) ? '' : 'not closed';
	});
	try('garbage instead of CLOSE', sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		give($s, "\xff" x 100);
		return closed($s) ? '' : 'not closed';
	});
	try('a second recorder while one is at work', sub {
		my $s = dial();
		my $r = ask($s);
		my $two = dial();
		my $no = ask($two);
		return 'the second: ' . (ref $no ? 'served' : $no) unless $no =~ /busy/;
		return 'not closed' unless closed($two);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		give($s, message(0, '', ''));
		closed($_) for @d;
		my ($cmd) = receive($s);
		return ($cmd // -1) == 8 ? '' : 'the first one was disturbed';
	});
	try('a recorder beside 6 that only look', sub {
		my @idle = map { dial() } 1 .. 6;
		return record();
	});
}

sub sync_tests {
	my $begin = sub {
		my $s = dial();
		my $r = ask($s, args(@plain) . protos('kvm', 'ptp'));
		return ($s, $r, ref $r && $r->{proto} eq 'ptp' ? dial_port($r->{tsync}) : undef);
	};
	my $probe_cpu = message(9, pack('a16N', 'none', 1), pack('S', 0));
	try('time synchronisation', sub {
		my ($s, $r, $t) = $begin->();
		return 'no ptp' unless $t;
		give($t, $probe_cpu);
		my (@ts, $bytes);
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
				my ($up) = split ' ', slurp('/proc/uptime');
				my $want = time - $up;
				return "offset $offset, not $want s" if abs($offset / 1e9 - $want) > 0.1;
				close $s;
				return '';
			}
		}
		return 'it ended';
	});
	# Half of the probes wait 8 ms on one way, half on the other: each alone is 4 ms off.
	try('time synchronisation over slow ways', sub {
		my ($s, $r, $t) = $begin->();
		give($t, $probe_cpu);
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
	try('time synchronisation that nobody connects', sub {
		my $s = dial();
		my $r = ask($s, args(@plain) . protos('ptp'));
		my $meta = metadata($s);
		close $s;
		return $meta ? '' : 'no metadata';
	});
	try('time synchronisation that stalls', sub {
		my ($s, $r, $t) = $begin->();
		give($t, $probe_cpu);
		return closed($t) ? '' : 'not closed';
	});
	try('time synchronisation with garbage', sub {
		my ($s, $r, $t) = $begin->();
		give($t, "\xff" x 64);
		return closed($t) ? '' : 'not closed';
	});
	try('time synchronisation, samples beyond their message', sub {
		my ($s, $r, $t) = $begin->();
		give($t, $probe_cpu);
		while (my ($cmd, $fixed, $data) = receive($t)) {
			my ($proto, $id) = unpack 'Z16N', $fixed;
			give($t, message($cmd, $fixed, $data)) if $id == 1 || $id == 2;
			give($t, message(9, pack('a16N', 'ptp', 3), pack('N2', 1, 0x7fffffff))) if $id == 5;
		}
		return '';
	});
	try('no protocol in common', sub {
		my $s = dial();
		my $r = ask($s, args(@plain) . protos('kvm'));
		close $s;
		return ref $r && $r->{proto} eq '' ? '' : 'a protocol';
	});
}

sub flood_tests {
	try('1,000 connections, one after the other', sub {
		for (1 .. 1000) { my $s = dial() or return 'no connection'; close $s }
		return record();
	});
	try('1,000 connections at once', sub {
		my @all;
		for (1 .. 1000) { my $s = dial(); push @all, $s if $s }
		my $kb = rss();
		return "$kb KiB" if !$asan && $kb > 4096;
		return record();
	});
}

sub signal_tests {
	my $busy = sub {
		my $s = dial();
		my $r = ask($s);
		metadata($s);
		my @d = map { dial_port($_) } @{ $r->{ports} };
		for (1 .. 200) { last if slurp("$tree/tracing_on") =~ /1/; sleep 0.01 }
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

sub allow_tests {
	start('--listen', "unix:$uds", '--allow', 'sched:sched_sw*');
	refused('--allow: another event', qr/none of these events is allowed/, '-e', 'irq');
	refused('--allow: a tracer', qr/no tracer/, '-p', 'function');
	refused('--allow: a trigger that enables events', qr/trigger/, '-e', 'sched',
		'-R', 'enable_event:irq:irq_handler_entry');
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
	put('trace', '') while state() =~ /nothing/;
	sleep 0.5;
	stop();
	make_tree();
}

sub all {
	make_tree();
	unlink $agent_log;
	$uds = "$top/agent";
	$clean = state();
	start('--listen', "unix:$uds") or do { ok(0, 'the agent starts'); return };
	pending_tests();
	request_tests();
	recording_tests();
	sync_tests();
	flood_tests();
	signal_tests();
	tcp_tests();
	allow_tests();
	early_tests();
	$said .= slurp($agent_log);
	ok($said !~ /AddressSanitizer|LeakSanitizer|runtime error/, "no sanitizer spoke", $said);
}

if (!-x "$O/hyptrace-agent") {
	print "1..0 # SKIP no $O/hyptrace-agent\n";
	exit;
}
all();
if (-x "$O-san/hyptrace-agent") {
	$asan = 1;
	all();
} else {
	print "# no $O-san/hyptrace-agent: not tried with ASan (make SAN=1)\n";
}
print "1..$tests\n";
exit $failed ? 1 : 0;
