# SPDX-License-Identifier: GPL-2.0-only
#
# What the tests of hyptrace-agent share: a fake tracing directory of plain files,
# the agent in it, a recorder (Hostile.pm), and judging by what it leaves behind.
package AgentTest;
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use File::Find;
use IO::Select;
use IO::Socket::UNIX;
use POSIX qw(:sys_wait_h mkfifo);
use Socket qw(SOCK_STREAM);
use Time::HiRes qw(time sleep);
use Exporter 'import';
use Hostile;

our @EXPORT = qw($agent $agent_log $asan $buffer $clean $failed $O $prepare $said $top $tests $tree $uds
	afterwards alive diag make_buffer make_tree ok put record refuses rss skip slurp start state stop test_builds
	try try_all);

our $O = $ENV{O} // 'build';
our ($tests, $failed, $agent) = (0, 0, 0);
our ($top, $tree, $agent_log, $uds, $asan);
our $buffer = ""; # that the agent reads: the top one, or "instances/NAME/"
our $prepare = sub { }; # in what becomes the agent
our $clean;     # the state that every test is to leave
our $said = ""; # by agents that have ended
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

my @events = qw(sched/sched_switch sched/sched_waking irq/irq_handler_entry);

# The top one: '', or "instances/NAME/".
sub make_buffer {
	my ($dir) = @_;
	put("$dir$_", '') for qw(trace set_event set_event_pid set_event_notrace_pid error_log);
	put("${dir}tracing_on",     "0\n");
	put("${dir}current_tracer", "nop\n");
	put("${dir}trace_clock",    "mono\n");
	put("${dir}buffer_size_kb", "1408\n");
	put("${dir}options/stacktrace", "0\n");
	for my $e (@events) {
		put("${dir}events/$e/enable", "0\n");
		put("${dir}events/$e/filter", "none\n");
	}
	put("${dir}events/$_/enable", "0\n") for qw(sched irq);
	for my $cpu (0 .. 3) {
		put("${dir}per_cpu/cpu$cpu/stats", "entries: 5\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n");
		mkfifo("$tree/${dir}per_cpu/cpu$cpu/trace_pipe_raw", 0600);
	}
}

sub make_tree {
	make_buffer('');
	put('available_tracers', "function nop\n");
	put('saved_cmdlines',    "1 init\n2 kthreadd\n");
	put('printk_formats',    "0xffff : \"hello\"\n");
	put('events/header_event', "# compressed entry header\n");
	put('events/header_page', <<'END');
	field: u64 timestamp;	offset:0;	size:8;	signed:0;
	field: local_t commit;	offset:8;	size:8;	signed:1;
	field: int overwrite;	offset:8;	size:1;	signed:1;
	field: char data;	offset:16;	size:4080;	signed:1;
END
	my $id = 0;
	for my $e ('ftrace/function', @events) {
		my ($name) = $e =~ m{/(.*)};
		put("events/$e/format", "name: $name\nID: " . ++$id . "\nformat:\n");
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

sub agent_path { return abs_path(($asan ? "$O-san" : $O) . '/hyptrace-agent') }

# Waits of 1 s on a peer, unless the options say --timeout.
sub start {
	my @args = @_;
	$said .= slurp($agent_log);
	unlink $agent_log;
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	if (!$pid) {
		$prepare->();
		open STDERR, '>>', $agent_log;
		$ENV{HYPTRACE_TRACING_DIR} = $tree;
		$ENV{ASAN_OPTIONS} = 'detect_leaks=1:exitcode=99';
		exec agent_path(), '--journal', "$top/journal", '--timeout', 1, '-v', @args;
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

# Feeds a CPU's fake trace_pipe_raw in $buffer; the bytes come out at the recorder.
$Hostile::feed = sub {
	my ($cpu, $bytes) = @_;
	sysopen my $f, "$tree/${buffer}per_cpu/cpu$cpu/trace_pipe_raw", POSIX::O_WRONLY() | POSIX::O_NONBLOCK()
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

# Its exit status and what it said.
sub refuses {
	my ($name, $why, @args) = @_;
	my $pid = open my $f, '-|';
	die "fork: $!" unless defined $pid;
	if (!$pid) {
		open STDERR, '>&', \*STDOUT;
		$ENV{HYPTRACE_TRACING_DIR} = $tree;
		exec agent_path(), '--journal', 'none', @args;
		die "exec: $!";
	}
	my $text = do { local $/; <$f> } // '';
	close $f;
	ok($? == 2 << 8 && $text =~ $why, "refuses $name", "status $?: $text");
}

# ---- judging ------------------------------------------------------------------------------

# After each of them the agent must live, serve the next one, and have put all back.
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

# ---- both builds ----------------------------------------------------------------------------

$ENV{TMPDIR} //= '/dev/shm' if -w '/dev/shm'; # thousands of small files

sub half {
	my ($sanitised, $all) = @_;
	my $pid = open my $out, '-|';
	die "fork: $!" unless defined $pid;
	return $out if $pid;
	$asan = $sanitised;
	$top = tempdir('hyptrace-agent.XXXXXX', TMPDIR => 1, CLEANUP => 1);
	($tree, $agent_log) = ("$top/tracing", "$top/log");
	$uds = "$top/agent";
	$| = 1;
	make_tree();
	$clean = state();
	$all->();
	$said .= slurp($agent_log);
	ok($said !~ /AddressSanitizer|LeakSanitizer|runtime error/, "no sanitizer spoke", $said);
	exit($failed ? 1 : 0);
}

# Runs the tests with the static agent, and the one built with ASan when that is there. Most of
# the time is spent waiting: both wait at the same time. What each half prints is numbered anew.
sub test_builds {
	my ($all) = @_;
	$| = 1;
	if (!-x "$O/hyptrace-agent") {
		print "1..0 # SKIP no $O/hyptrace-agent\n";
		exit;
	}
	my @halves = (half(0, $all));
	if (-x "$O-san/hyptrace-agent") {
		push @halves, half(1, $all);
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
	exit($failed ? 1 : 0);
}

1;
