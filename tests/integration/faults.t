#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Every call that can fail does so, one at a time, in every command and in the agent, and the
# recorder and `recover` are killed at every step that they take (tests/tools/faults.c). Whatever
# fails: no crash, no hang, a message with a status that is not 0, status 0 only with the right
# output, old files whole, what was recorded kept, and tracefs (a FAKE, fake-android.c) as it was,
# or as it was after `recover`.
#
#   make faults                   all of them, with the numbers
#   FAULTS_EVERY=K                every Kth call of all classes, not a sample of each
#   FAULTS_OFFSET=N               others of the sample: those that leave N
#   FAULTS_ONLY=record,report     these commands
#   FAULTS_CLASS=alloc,before     these classes; before and after: of killing it at a step
#   FAULTS_TRY=read:5,read:6      these calls; where they were and what was said is shown
#   FAULTS_TIMES=100              each of them so often: threads do not come in one order
use strict;
use warnings;
use Cwd qw(abs_path);
use Errno;
use File::Find;
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use FindBin;
use IO::Socket::UNIX;
use POSIX qw(:sys_wait_h mkfifo);
use Socket qw(SOCK_STREAM);
use Time::HiRes qw(time sleep);
use lib $FindBin::Bin;
use Hostile;

chdir "$FindBin::Bin/../..";
my $build  = abs_path($ENV{O} // 'build');
my $root   = abs_path('.');
my $every  = $ENV{FAULTS_EVERY} // 0;
my $offset = $ENV{FAULTS_OFFSET} // 0;
my $try    = $ENV{FAULTS_TRY};
my $times  = $ENV{FAULTS_TIMES} // 1;
my $sample = 4;    # calls of each class, where nothing says how many
my $limit  = 30;   # seconds for a run that takes less than one
my %only   = map { $_ => 1 } split /,/, $ENV{FAULTS_ONLY} // '';
my %class  = map { $_ => 1 } split /,/, $ENV{FAULTS_CLASS} // '';
my $preload  = "$build/tests/tools/faults.so";
my $hyptrace = "$build/hyptrace";
my $tools    = "$build/tests/integration";
my $top = tempdir('hyptrace-faults.XXXXXX', DIR => -w '/dev/shm' ? '/dev/shm' : '/tmp', CLEANUP => 1);
my ($tests, $failed) = (0, 0);
$SIG{PIPE} = 'IGNORE';

if (`nm -D $hyptrace` =~ /__asan_/) {
	print "1..0 # SKIP ASan has an allocator of its own\n";
	exit;
}

sub ok($$;$) {
	my ($good, $name, $more) = @_;
	$tests++;
	$failed++ unless $good;
	print $good ? 'ok' : 'not ok', " $tests - $name\n";
	print STDERR map { "# $_\n" } split /\n/, $more // '' unless $good;
}

# ---- files ------------------------------------------------------------------------------

sub slurp {
	my ($path) = @_;
	open my $f, '<', $path or return;
	local $/;
	return <$f> // '';
}

sub put {
	my ($path, $text) = @_;
	open my $f, '>', $path or die "$path: $!";
	print $f $text;
	close $f or die "$path: $!";
}

sub copy_tree { my ($from, $to) = @_; remove_tree($to); system('cp', '-a', $from, $to) and die "cp $from" }

# ---- tracefs -----------------------------------------------------------------------------

# What a control file says: of a plain file that keeps the tail of a longer text the first line, of
# a choice the bracketed one, of a size the number. Left out: as in android.t, what plain files
# cannot do.
sub control {
	my ($path, $text) = @_;
	my ($line) = $text =~ /^(.*)/;
	return "$1" if $path =~ /trace_clock$/ && $line =~ /\[([a-z]*)\]/;
	$line =~ s/.*: |\)//g if $path =~ /buffer_size_kb$/ && $line =~ /expanded/;
	return $line =~ s/ .*//r if $path =~ /buffer_size_kb$/;
	return $line;
}

sub tree_state {
	my ($tree) = @_;
	my @all;
	find({ no_chdir => 1, wanted => sub {
		my $name = substr $_, length $tree;
		push @all, "$name/" if -d $_;
		return if !-f $_ || $name =~ m{/trace$|/trace_pipe_raw$|^/events/.*/enable$|/set_event$|/format$};
		push @all, "$name: " . control($name, slurp($_) // '');
	} }, $tree);
	return join "\n", sort @all;
}

# A tree whose trace_pipe_raw, of the host and of the hypervisor, are files with pages.
sub make_tree {
	my ($tree) = @_;
	system("$tools/fake-android", $tree, 'android16') and die 'fake-android';
	for (glob "$tree/hypervisor/per_cpu/cpu*/trace_pipe_raw") {
		unlink $_;
		put($_, '');
	}
	system("$tools/feed-android $tree events >/dev/null") and die 'feed-android';
}

# Those files as FIFOs, whose pages come once; the descriptors keep them open.
sub fifos {
	my ($tree) = @_;
	my @fds;
	for my $path (glob("$tree/per_cpu/cpu*/trace_pipe_raw"), glob("$tree/hypervisor/per_cpu/cpu*/trace_pipe_raw")) {
		my $pages = slurp($path);
		unlink $path;
		mkfifo($path, 0600) or die "mkfifo $path: $!";
		open my $f, '+<', $path or die "$path: $!";
		push @fds, $f;
		syswrite $f, $pages;
	}
	return @fds;
}

# ---- a program ---------------------------------------------------------------------------

sub start_program {
	my ($dir, $env, @cmd) = @_;
	s/DIR/$dir/ for @cmd;
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	return $pid if $pid;
	chdir $dir or die "$dir: $!";
	open STDIN,  '<', '/dev/null';
	open STDOUT, '>', "$dir/stdout";
	open STDERR, '>', "$dir/stderr";
	@ENV{keys %$env} = values %$env;
	exec { $cmd[0] } @cmd or POSIX::_exit(126);
}

# How it ended: a status, "signal N" or "hung".
sub await {
	my ($pid) = @_;
	my $how;
	eval {
		local $SIG{ALRM} = sub { die "alarm\n" };
		alarm $limit;
		waitpid $pid, 0;
		$how = WIFSIGNALED($?) ? 'signal ' . WTERMSIG($?) : WEXITSTATUS($?);
		alarm 0;
	};
	return $how if defined $how;
	kill 'KILL', $pid;
	waitpid $pid, 0;
	return 'hung';
}

sub program { return await(start_program(@_)) }

sub report_of {
	my ($dir, @files) = @_;
	return '' unless @files;
	my $status = program($dir, { TRACEEVENT_PLUGIN_DIR => '/nonexistent' }, $hyptrace, 'report', '-t', '--no-guests', @files);
	return "status $status\n" . slurp("$dir/stdout");
}

# ---- the commands --------------------------------------------------------------------------

# Each: {cmd} what is run in a directory of its own; {reset} makes all that it needs there anew, and
# {ready} what the run before did not touch, once. {result}: what it has made, as text that a good
# run makes too. {old}: a file that it replaces, or leaves. {env}. {known}: calls whose failing once did
# harm, which are tried always.
my $data = "$root/tests/data";
my %quiet = (TRACEEVENT_PLUGIN_DIR => '/nonexistent', HOME => '/nonexistent');
my %plugins = (TRACEEVENT_PLUGIN_DIR => "$build/plugins", HOME => '/nonexistent');

sub stdout_of { my ($dir) = @_; return slurp("$dir/stdout") }

# partly: what it says where it has written what it could read, in the place of what was there.
sub written_to {
	my ($file) = @_;
	return (partly => qr/what lay there is missing/, old => $file, result => sub { my ($dir) = @_; return slurp("$dir/$file") // 'none' }, 
		reset => sub { my ($dir) = @_; put("$dir/$file", "old\n") });
}

my @guest = ("$data/guest/trace.dat", "$data/guest/trace-Guest.dat");

my @commands = (
	{ name => 'report', env => \%plugins, result => \&stdout_of,
		cmd => [ $hyptrace, 'report', '-i', 'small.dat' ],
		ready => \&small_dat },
	{ name => 'report-guest', env => \%quiet, result => \&stdout_of,
		cmd => [ $hyptrace, 'report', map { ('-i', $_) } @guest ] },
	{ name => 'json', env => \%plugins, written_to('out.json'),
		cmd => [ $hyptrace, 'export', '--json', '-o', 'out.json', 'small.dat' ],
		ready => \&small_dat },
	{ name => 'perfetto', env => \%plugins, written_to('out.pftrace'),
		cmd => [ $hyptrace, 'export', '--perfetto', 'out.pftrace', 'small.dat' ],
		ready => \&small_dat },
	{ name => 'flame', env => \%plugins, written_to('out.svg'),
		cmd => [ $hyptrace, 'flame', '--svg', 'out.svg', "$data/profile/trace.dat" ] },
	{ name => 'view', env => \%plugins, written_to('out.html'),
		cmd => [ $hyptrace, 'view', '-o', 'out.html', 'small.dat' ], ready => \&small_dat },
	{ name => 'stat', env => \%plugins, result => \&stdout_of, cmd => [ $hyptrace, 'stat', '--json', 'small.dat' ],
		ready => \&small_dat },
	{ name => 'latency', env => \%plugins, result => \&stdout_of,
		cmd => [ $hyptrace, 'latency', '--json', '--from', 'kvm_entry', '--to', 'kvm_exit', '--key', 'pid', 'small.dat' ],
		ready => \&small_dat },
	{ name => 'path', env => \%plugins, result => \&stdout_of,
		cmd => [ $hyptrace, 'path', '--json', '--at', 'sched_switch@host', @guest ] },
	{ name => 'why', env => \%plugins, result => \&stdout_of, cmd => [ $hyptrace, 'why', '--json', @guest ] },
	{ name => 'cut', env => \%quiet, written_to('out.dat'),
		cmd => [ $hyptrace, 'cut', '-q', '--time', '+0,+1', '--no-guests', '-o', 'out.dat', $guest[0] ] },
	{ name => 'merge', env => \%quiet, written_to('out.dat'),
		cmd => [ $hyptrace, 'merge', '-q', '--no-guests', '-o', 'out.dat', 'piece.001.dat', 'piece.002.dat' ],
		ready => sub { my ($dir) = @_; system("$hyptrace cut -q --per 5ms --no-guests -o $dir/piece.dat $guest[0]") } },
	{ name => 'diff', env => \%plugins, result => \&stdout_of,
		cmd => [ $hyptrace, 'diff', '--json', 'small.dat', "$data/perf/trace.dat" ], ready => \&small_dat },
	{ name => 'sql', env => \%plugins, result => \&stdout_of,
		cmd => [ $hyptrace, 'sql', '--json', 'small.dat', 'SELECT name, count(*) AS n, sum(ts) AS ts FROM events GROUP BY name' ],
		ready => \&small_dat },
	{ name => 'parquet', env => \%plugins, partly => qr/what lay there is missing/, result => \&tables,
		cmd => [ $hyptrace, 'export', '--parquet', 'out', 'small.dat' ],
		ready => \&small_dat, reset => sub { my ($dir) = @_; remove_tree("$dir/out", "$dir/.out.part") } },
	{ name => 'sync', env => \%quiet, result => \&stdout_of, cmd => [ $hyptrace, 'sync', '--json', @guest ] },
	{ name => 'sync-write', env => \%quiet, written_to('guest.dat'),
		cmd => [ $hyptrace, 'sync', '--write', 'host.dat', 'guest.dat' ],
		reset => sub { my ($dir) = @_; copy_tree($guest[0], "$dir/host.dat"); copy_tree($guest[1], "$dir/guest.dat") } },
	{ name => 'import', env => \%quiet, written_to('out.dat'),
		cmd => [ $hyptrace, 'import', '--hyp', 'hyp.txt', '-i', "$data/import-nvhe.dat", '-o', 'out.dat' ],
		result => sub { my ($dir) = @_; return slurp("$dir/out.dat") eq "old\n" ? 'none' : report_of($dir, 'out.dat') },
		ready => sub { my ($dir) = @_; system("gzip -dc $data/import-nvhe.gz 2>/dev/null | head -n 400 >$dir/hyp.txt") } },
	{ name => 'import-perfetto', env => \%quiet, written_to('out.dat'),
		cmd => [ $hyptrace, 'import', '--perfetto', "$data/perfetto/hyp.pftrace", '-o', 'out.dat' ],
		result => sub { my ($dir) = @_; return slurp("$dir/out.dat") eq "old\n" ? 'none' : report_of($dir, 'out.dat') } },
	{ name => 'list', result => \&stdout_of, tree => 1, ready => \&tree_once,
		cmd => [ $hyptrace, 'list', '--json' ], reset => sub {} },
	{ name => 'record', tree => 1, steps => 1, ready => \&tree_once, reset => \&record_reset, peer => \&guest_begin,
		old => 'trace.dat', result => \&recorded, 
		cmd => [ $hyptrace, 'record', '-q', '--guest-timeout', 2, '-o', 'trace.dat', '-e', 'kvm', '-e', 'sched', '-B', 'hyp',
			'-A', 'vm@unix:guest', '--', 'touch', 'ran' ],
		# that a poll of a guest's CPUs fails, and of the clock's sampler always
		known => [ 'poll:1+', map { "poll:$_" } 12 .. 18 ] },
	{ name => 'recover', tree => 1, steps => 1, ready => \&spool_once, reset => \&recover_reset,
		old => 'trace.dat', result => \&recorded, cmd => [ $hyptrace, 'recover', '-q', 'trace.dat.spool' ] },
	{ name => 'agent', tree => 1, ready => \&tree_once, reset => \&agent_reset, talk => \&agent_talk,
		result => sub { my ($dir) = @_; return slurp("$dir/got") // '' },
		cmd => [ "$build/tests/hyptrace-agent", '--journal', 'DIR/journal', '--timeout', 1, '--listen',
			'unix:DIR/agent' ], journal => 'journal' },
);
@commands = grep { $only{ $_->{name} } } @commands if %only;

# The files of the directory that an export has made.
sub tables {
	my ($dir) = @_;
	my @files = sort map { glob "$dir/$_/machine=*/system=*/*" } 'out', '.out.part';
	return @files ? join '', map { "$_\n" . slurp($_) } @files : 'none';
}

# A file of few events, formats and symbols: thousands of runs read it.
sub small_dat {
	my ($dir) = @_;
	tree_once($dir);
	my @fds = record_reset($dir);
	my $status = program($dir, { environment($dir, {}) }, $hyptrace, 'record', '-q', '-o', 'small.dat', '-e', 'kvm',
		'-e', 'sched', '-B', 'hyp', '--', 'true');
	die "small.dat: $status " . slurp("$dir/stderr") if $status;
}

# ---- record ----

sub environment {
	my ($dir, $more) = @_;
	return (HYPTRACE_TRACING_DIR => "$dir/tracing", HYPTRACE_ROOT => "$dir/machine", %quiet, %$more);
}

sub tree_once {
	my ($dir) = @_;
	make_path("$dir/machine/proc");
	put("$dir/machine/proc/kallsyms", "ffff800080000000 T _text\n");
	make_tree("$dir/fresh");
	copy_tree("$dir/fresh", "$dir/tracing");
}

sub record_reset {
	my ($dir) = @_;
	remove_tree(glob "$dir/*.spool");
	unlink "$dir/ran", "$dir/guest", glob "$dir/trace*.dat";
	copy_tree("$dir/fresh", "$dir/tracing");
	put("$dir/trace.dat", "old\n");
	return fifos("$dir/tracing");
}

# A guest of fake-agent.c, the good one; what ends it is returned.
sub guest_begin {
	my ($dir, $mode) = @_;
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	if (!$pid) {
		chdir $dir;
		open STDERR, '>', '/dev/null';
		exec "$tools/fake-agent", $mode // 'good', 'guest', 'guest.log' or POSIX::_exit(126);
	}
	until (-S "$dir/guest") { sleep 0.002 }
	return sub { kill 'KILL', $pid; waitpid $pid, 0 };
}

# What a recording has left, as text.
sub recorded {
	my ($dir) = @_;
	my @files = map { s{.*/}{}r } grep { slurp($_) ne "old\n" } sort glob "$dir/trace*.dat";
	return @files ? join '', map { "$_\n" . report_of($dir, $_) } @files : 'none';
}

# ---- recover: after a recorder that was killed when it had read all ----

sub until_true { my ($what) = @_; for (1 .. 5000) { return 1 if $what->(); sleep 0.002 } die 'waited in vain' }

sub unread {
	my ($f) = @_;
	my $n = pack 'i', 0;
	ioctl $f, 0x541b, $n or die "FIONREAD: $!";
	return unpack 'i', $n;
}

sub spool_once {
	my ($dir) = @_;
	tree_once($dir);
	my @fds = record_reset($dir);
	my $pid = start_program($dir, { environment($dir, {}) }, $hyptrace, 'record', '-q', '-o', 'trace.dat', '-e', 'kvm',
		'-e', 'sched', '-B', 'hyp', '--', 'sh', '-c', 'until [ -e stop ] || [ ! -e "$PWD" ]; do sleep 0.1; done');
	until_true(sub { !grep { unread($_) } @fds and -s "$dir/trace.dat.spool/pages/0.0" });
	kill 'KILL', $pid;
	waitpid $pid, 0;
	put("$dir/stop", '');
	copy_tree("$dir/trace.dat.spool", "$dir/left.spool-as-it-was");
	copy_tree("$dir/tracing", "$dir/left.tracing");
}

sub recover_reset {
	my ($dir) = @_;
	my @fds = record_reset($dir);
	copy_tree("$dir/left.spool-as-it-was", "$dir/trace.dat.spool");
	copy_tree("$dir/left.tracing", "$dir/tracing");
	return @fds;
}

# ---- the agent ----

sub agent_reset {
	my ($dir) = @_;
	unlink "$dir/agent", "$dir/got", "$dir/journal";
	copy_tree("$dir/fresh", "$dir/tracing");
	return fifos("$dir/tracing");
}

# A recording by it, and its end.
sub agent_talk {
	my ($dir, $pid) = @_;
	$Hostile::patience = 5;
	$Hostile::dial = sub { return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => "$dir/agent") };
	$Hostile::dial_port = sub {
		my ($n) = @_;
		my $s = dial() or return;
		give($s, "CONNECT $n\n");
		for (my $line = ''; take($s, 1, \my $c); $line .= $c) {
			return $line =~ /^OK/ ? $s : undef if $c eq "\n";
		}
		return;
	};
	my $s;
	for (1 .. 2000) {
		last if ($s = dial()) || kill(0, $pid) && waitpid($pid, WNOHANG) == $pid;
		sleep 0.005;
	}
	my $got = $s ? agent_record($s) : "no connection\n";
	print STDERR "got $got" if $ENV{FAULTS_SHOW};
	put("$dir/got", $got);
	kill 'TERM', $pid;
}

sub agent_record {
	my ($s) = @_;
	my $r = ask($s, args('-C', 'boot', '-e', 'sched', '-e', 'kvm'));
	return "no answer\n" unless ref $r;
	my $meta = metadata($s) // return "no metadata\n";
	my @data = map { dial_port($_) // return "no port\n" } @{ $r->{ports} };
	take($data[0], 4096, \my $page) or return "no page\n";
	give($s, message(0, '', ''));
	closed($_) or return "no end\n" for @data;
	my ($cmd) = receive($s);
	return ($cmd // -1) == 8 ? length($meta) . ' ' . unpack('%32C*', $page) . "\n" : "no CLOSE_RESP\n";
}

# ---- one run -----------------------------------------------------------------------------

my $counts_size = 32;

sub counts_in {
	my ($file) = @_;
	return unpack '(Z24Q)*', slurp($file);
}

# Runs a command with FAULTS in its directory: how it ended, the counts and what it has made.
sub run {
	my ($c, $dir, $faults, %more) = @_;
	my @held = $c->{reset} ? $c->{reset}->($dir) : ();
	my $peer = $c->{peer} ? $c->{peer}->($dir) : sub {};
	my $r = { dir => $dir, files => { map { $_ => 1 } glob "$dir/*" } };
	$r->{before} = tree_state("$dir/fresh") if $c->{tree};
	put("$dir/counts", '');
	my $pid = start_program($dir, { environment($dir, $c->{env} // {}), LD_PRELOAD => $preload,
		FAULTS_COUNT => "$dir/counts", FAULTS_UNDER => $dir, $faults ? (FAULTS => $faults) : (), %more }, @{ $c->{cmd} });
	$c->{talk}->($dir, $pid) if $c->{talk};
	$r->{how} = await($pid);
	$peer->();
	$r->{said} = slurp("$dir/stderr");
	$r->{counts} = { counts_in("$dir/counts") };
	$r->{tree} = tree_state("$dir/tracing") if $c->{tree};
	$r->{result} = $c->{result}->($dir);
	$r->{more} = join ' ', grep { !$r->{files}{$_} } glob "$dir/*";
	return $r;
}

# What it said of those that have pages; the others' recorders had not begun, or removed them.
sub recover_all {
	my ($dir) = @_;
	my @said;
	for my $spool (glob "$dir/*.spool") {
		my $pages = -e "$spool/session" && grep { -s $_ } glob "$spool/pages/* $spool/rewritten/*";
		my $status = program($dir, { environment($dir, {}) }, $hyptrace, 'recover', '-q', $spool);
		push @said, "recover: $status " . slurp("$dir/stderr") if $status && $pages;
	}
	return @said;
}

# What a good run does not say, nor an agent that starts.
sub said_more {
	my ($r, $good) = @_;
	my %good = map { $_ => 1 } split /\n/, $good->{said} =~ s{/\d/}{/}gr;
	return join "\n", grep { !$good{s{/\d/}{/}gr} } split /\n/, $r->{said};
}

# All lines of one text in the other: some of what was recorded. Whose task a hypervisor's record is
# the host's records tell, which may be lost.
sub part_of {
	my ($some, $all) = map { s/^(hyp:) +\S+-\d+ +/$1 /mgr } @_;
	my %all = map { $_ => 1 } split /\n/, $all;
	return 0 if $some eq '';
	return !grep { !$all{$_} && !/^(cpus=|hyp:.*EVENTS DROPPED|CPU.*EVENTS DROPPED)/ } split /\n/, $some;
}

# What was wrong, as [KIND, TEXT].
sub judge {
	my ($c, $what, $r, $good) = @_;
	my ($dir, $how) = @$r{qw(dir how)};
	my @bad;
	push @bad, ['crash', $how] if $how =~ /signal/;
	push @bad, ['hang', ''] if $how eq 'hung';
	my $right = $r->{result} eq $good->{result};
	my $said = said_more($r, $good);
	# what fails in the agent its recorder sees
	my $refused = $c->{talk} && $r->{result} =~ /^no /;
	# who cannot write says nothing, and a connection that ends is nobody's fault
	my $mute = $what =~ /^write:\d+\+/ || $refused && $what =~ /^(send|recv):/;
	push @bad, ['silent', "status $how $r->{result}"] if ($how =~ /^[1-9]/ || $refused) && $said eq '' && !$mute;
	push @bad, ['wrong', $said] if $how eq '0' && !$right && !$refused;
	my $old = $c->{old} && $how ne '0' ? slurp("$dir/$c->{old}") // 'gone' : '';
	my $partly = $right ? 1 : $c->{partly} ? $said =~ $c->{partly} : part_of($r->{result}, $good->{result});
	push @bad, ['lost', "the old $c->{old}: " . substr $old, 0, 40]
		if $c->{old} && $how ne '0' && !$partly && $old ne $c->{kept}->($dir);
	my @more = grep { !$good->{names}{s{.*/}{}r} && !/\.spool$|\/journal$/ } split / /, $r->{more};
	@more = () if $said =~ /out of memory/; # as after a kill
	push @bad, ['litter', "@more"] if @more && $what !~ /^(unlink|stat)/; # then nobody can know
	return @bad unless $c->{tree};
	# where all is in the files already, what is left of a spool that cannot be removed is of no use
	my @kept = $right && $r->{tree} eq $r->{before} ? () : glob "$dir/*.spool";
	if ($r->{tree} ne $r->{before} && ($c->{journal} ? -e "$dir/$c->{journal}" : @kept)) {
		$c->{journal} ? again($c, $dir) : push @bad, map { ['recover', $_] } recover_all($dir);
		$r->{tree} = tree_state("$dir/tracing");
	} elsif (@kept) {
		push @bad, map { ['recover', $_] } recover_all($dir);
	}
	push @bad, ['tracefs', difference($r->{before}, $r->{tree})] if $r->{tree} ne $r->{before};
	if (-e "$dir/ran" && !$right) {
		my $result = $c->{result}->($dir);
		push @bad, ['lost', "what was recorded: $how $r->{said}"] if $result eq 'none';
		push @bad, ['recover', 'other events'] if $how ne '0' && !part_of($result, $good->{result});
	}
	return @bad;
}

# ---- killed -------------------------------------------------------------------------------

# Events in a page of a ring buffer.
sub events_in_page {
	my ($page) = @_;
	my ($at, $end, $n) = (16, 16 + (unpack('Q', substr $page, 8, 8) & 0xfffff), 0);
	while ($at < $end) {
		my ($type, $size) = (unpack('L', substr $page, $at, 4) & 31, unpack('L', substr $page, $at + 4, 4));
		last if $type == 29 && unpack('L', substr $page, $at, 4) == 29;
		$n++ if $type < 29;
		$at += 4 + ($type == 0 || $type == 29 ? $size : $type > 29 ? 4 : 4 * $type);
	}
	return $n;
}

# Events in the whole pages of the spools, and in files that are there already: no fewer may be left.
sub events_kept {
	my ($dir, $result) = @_;
	my $n = 0;
	for my $spool (glob "$dir/*.spool") {
		my $file = $spool =~ s{.*/}{}r =~ s/\.spool$//r;
		next if $result =~ /^\Q$file\E$/m;
		my $pages = -d "$spool/rewritten" ? 'rewritten' : 'pages';
		for (glob "$spool/$pages/*") {
			my $all = slurp($_);
			$n += events_in_page(substr $all, 4096 * $_, 4096) for 0 .. length($all) / 4096 - 1;
		}
	}
	return $n + events_of($result);
}

sub events_of { my ($report) = @_; return scalar grep { /\[\d+\]/ } split /\n/, $report }

# After it was killed and recovered.
sub judge_killed {
	my ($c, $r, $good) = @_;
	my $dir = $r->{dir};
	my $kept = events_kept($dir, $r->{result});
	my @bad = $r->{how} =~ /^(0|signal 9)$/ ? () : ['crash', $r->{how}];
	my @said = recover_all($dir);
	my ($tree, $result) = (tree_state("$dir/tracing"), $c->{result}->($dir));
	push @bad, map { ['recover', $_] } @said;
	push @bad, ['tracefs', difference($r->{before}, $tree)] if $tree ne $r->{before};
	push @bad, ['lost', events_of($result) . " of $kept events"] if events_of($result) < $kept;
	push @bad, ['recover', "other events: $result"] unless $result eq 'none' || part_of($result, $good->{result});
	return @bad;
}

sub difference {
	my ($from, $to) = @_;
	my %from = map { $_ => 1 } split /\n/, $from;
	return join '; ', grep { !$from{$_} } split /\n/, $to;
}

# The agent once more, whose journal says what to put back.
sub again {
	my ($c, $dir) = @_;
	unlink "$dir/stderr";
	my $pid = start_program($dir, { environment($dir, {}) }, @{ $c->{cmd} });
	until_true(sub { (slurp("$dir/stderr") // '') =~ /listening/ || waitpid($pid, WNOHANG) == $pid });
	kill 'TERM', $pid;
	await($pid);
}

# The command's process, before it is let go, does not keep what a killed recorder held.
sub held_back {
	my $dir = "$top/held-back";
	tree_once($dir);
	my @fds = record_reset($dir);
	my ($before, $end) = (tree_state("$dir/tracing"), guest_begin($dir, 'silent'));
	my $pid = start_program($dir, { environment($dir, {}) }, $hyptrace, 'record', '-q', '-o', 'trace.dat', '-e', 'kvm',
		'-B', 'hyp', '-A', 'vm@unix:guest', '--', 'touch', 'ran');
	until_true(sub { -s "$dir/guest.log" && tree_state("$dir/tracing") ne $before });
	my ($child) = grep { (slurp("/proc/$_/stat") // '') =~ /\) \w $pid / } map { m{(\d+)} } glob '/proc/[0-9]*';
	kill 'STOP', $child;
	kill 'KILL', $pid;
	waitpid $pid, 0;
	my $status = program($dir, { environment($dir, {}) }, $hyptrace, 'recover', '-q', "$dir/trace.dat.spool");
	ok(!$status && tree_state("$dir/tracing") eq $before, 'recover: the command of a killed recorder is still held back',
		"$status " . slurp("$dir/stderr"));
	kill 'KILL', $child;
	$end->();
}

# ---- all of them ----------------------------------------------------------------------------

sub good_run {
	my ($c, $dir) = @_;
	remove_tree($dir);
	make_path($dir);
	$c->{ready}->($dir) if $c->{ready};
	my $r = run($c, $dir, '');
	$r->{names} = { map { s{.*/}{}r => 1 } glob "$dir/*" };
	my $old = $c->{old};
	$c->{reset}->($dir) if $c->{reset};
	my $text = $old ? slurp("$dir/$old") : '';
	$c->{kept} = sub { $text };
	return $r;
}

# Every how many of n calls.
sub step_of { my ($n) = @_; return $every || int(($n + $sample - 1) / $sample) || 1 }

# What to try of a class of n calls: [FAULTS...].
sub faults_of {
	my ($class, $n) = @_;
	my $step = step_of($n);
	my @n = grep { $_ % $step == $offset % $step } 1 .. $n;
	return map { ("$class:$_", $every ? "$class:$_+" : ()) } @n if $every || $step == 1;
	return map { $_ / $step % 2 || $class =~ /before|after/ ? "$class:$_" : "$class:$_+" } @n;
}

sub jobs_of {
	my ($c, $good) = @_;
	my @jobs = $try ? split /,/, $try : ();
	for my $class (sort keys %{ $good->{counts} }) {
		next if $try || $class =~ /^(step|hit)$/ || %class && !$class{$class};
		push @jobs, faults_of($class, $good->{counts}{$class});
	}
	return @jobs if $try;
	push @jobs, grep { !%class || $class{s/:.*//r} } @{ $c->{known} // [] } unless $every;
	return @jobs unless $c->{steps};
	push @jobs, grep { !/\+$/ } faults_of($_, $good->{counts}{step}) for grep { !%class || $class{$_} } qw(before after);
	return @jobs;
}

# Every so many of the jobs; a line to $out for each thing that is wrong, and one for each class.
sub work {
	my ($c, $w, $workers, $jobs, $top, $out) = @_;
	my $dir = "$top/$w/$c->{name}";
	my $good = good_run($c, $dir);
	my %n;
	for (my $i = $w; $i < @$jobs; $i += $workers) {
		my $r = run($c, $dir, $jobs->[$i], $try ? (FAULTS_WHERE => 1) : ());
		print STDERR "$jobs->[$i]: $r->{how}: $r->{said}$r->{result}" if $try;
		my ($class) = $jobs->[$i] =~ /(\w+)/;
		$n{$class}++;
		# fewer calls than in the good run
		next if !$r->{counts}{hit} && $r->{how} eq '0' && $class !~ /before|after/;
		for ($class =~ /before|after/ ? judge_killed($c, $r, $good) : judge($c, $jobs->[$i], $r, $good)) {
			my ($kind, $text) = @$_;
			print $out join("\t", $c->{name}, $jobs->[$i], $kind, substr($text, 0, 300) =~ s/\s+/ /gr), "\n";
		}
	}
	print $out join("\t", $c->{name}, $_, 'runs', $n{$_}), "\n" for keys %n;
}

my $workers = 2;
my $began = time;
my (%bad, %runs);

for my $c (@commands) {
	my $good = good_run($c, "$top/0/$c->{name}");
	ok($good->{how} eq '0' && $good->{result} ne '' && $good->{result} ne 'none' && (!$c->{tree} || $good->{tree} eq $good->{before}),
		"$c->{name}: nothing fails", "$good->{how} $good->{said} $good->{result}" . ($c->{tree} ? difference($good->{before}, $good->{tree}) : ''))
		or next;
	my @jobs = (jobs_of($c, $good)) x $times;
	my @outs;
	for my $w (0 .. $workers - 1) {
		my $pid = open my $f, '-|';
		die "fork: $!" unless defined $pid;
		if (!$pid) {
			work($c, $w, $workers, \@jobs, $top, \*STDOUT);
			close STDOUT;
			POSIX::_exit(0);
		}
		push @outs, $f;
	}
	my @wrong;
	for my $f (@outs) {
		while (<$f>) {
			chomp;
			my ($name, $what, $kind, $text) = split /\t/, $_, 4;
			if ($kind eq 'runs') { $runs{$name}{$what} += $text } else { push @wrong, "$what: $kind: $text"; $bad{$name}{$what =~ s/:.*//r}{$kind}++ }
		}
		close $f;
	}
	my $n = 0;
	$n += $_ for values %{ $runs{ $c->{name} } };
	ok(!@wrong, "$c->{name}: $n calls that fail", join "\n", @wrong);
	my %of = %{ $good->{counts} };
	printf STDERR "# %s: %d runs, %.0f s; FAULTS_OFFSET=%d, every Kth of N calls: %s\n", $c->{name}, $n, time - $began, $offset,
		join ', ', map { "$_ " . step_of($of{$_}) . "/$of{$_}" } grep { $_ ne 'hit' && $of{$_} } sort keys %of;
}
held_back() if !%only || $only{recover};
table() if $every;
print "1..$tests\n";
exit $failed ? 1 : 0;

# What was tried, and what was wrong.
sub table {
	my @kinds = qw(crash hang wrong silent tracefs lost recover litter);
	my %all = (runs => 0, map { $_ => 0 } @kinds);
	printf "# %-14s %-10s" . ' %7s' x (1 + @kinds) . "\n", 'command', 'class', 'runs', @kinds;
	for my $name (map { $_->{name} } @commands) {
		for my $class (sort keys %{ $runs{$name} }) {
			my $n = $bad{$name}{$class} // {};
			printf "# %-14s %-10s" . ' %7d' x (1 + @kinds) . "\n", $name, $class, $runs{$name}{$class}, map { $n->{$_} // 0 } @kinds;
			$all{runs} += $runs{$name}{$class};
			$all{$_} += $n->{$_} // 0 for @kinds;
		}
	}
	printf "# %-25s" . ' %7d' x (1 + @kinds) . "\n", 'all', @all{ 'runs', @kinds };
}
