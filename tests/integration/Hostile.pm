# SPDX-License-Identifier: GPL-2.0-only
#
# Recorders that are broken, hostile or just unlucky, as scripts to be run against
# an agent: ours in agent.t, stock trace-cmd's by tests/lab/hostile-stock. Only
# what perl-base has, for that runs where there is no more.
package Hostile;
use strict;
use warnings;
use IO::Select;
use Exporter 'import';
use Socket qw(MSG_NOSIGNAL SOL_SOCKET SO_RCVBUF);

our @EXPORT = qw(ask args closed dial dial_port feed give message metadata nap now protos receive
	request take @plain);

# How to reach the agent, and one of its data ports; how to make its CPU have data.
our $dial      = sub { die 'no way to the agent' };
our $dial_port = sub { die 'no way to its ports' };
our $feed      = sub { };
# Whether it has to refuse in the words that ours has; else any end will do.
our $in_our_words = 1;
# Seconds that an agent has for what it should do.
our $patience = 20;

sub dial      { return $dial->(@_) }
sub dial_port { return $dial_port->(@_) }
sub feed      { return $feed->(@_) }

# ---- time -----------------------------------------------------------------------------

sub now {
	open my $f, '<', '/proc/uptime' or die "/proc/uptime: $!";
	return (split ' ', <$f>)[0];
}

sub nap { select undef, undef, undef, $_[0] }

# ---- bytes ----------------------------------------------------------------------------

sub give { my ($s, $bytes) = @_; return defined send($s, $bytes, MSG_NOSIGNAL) }

# n bytes, within so many seconds; false: end or nothing
sub take {
	my ($s, $n, $out, $limit) = @_;
	my $end = now() + ($limit // $patience);
	$$out = '';
	while (length $$out < $n) {
		my $left = $end - now();
		return if $left <= 0 || !IO::Select->new($s)->can_read($left);
		my $got = sysread $s, $$out, $n - length $$out, length $$out;
		return unless $got;
	}
	return 1;
}

# True when the other side closes within so many seconds.
sub closed {
	my ($s, $limit) = @_;
	my $end = now() + ($limit // $patience);
	while (now() < $end) {
		next unless IO::Select->new($s)->can_read(0.2);
		my $got = sysread $s, my $bytes, 65536;
		return 1 unless $got;
	}
	return 0;
}

# ---- messages ---------------------------------------------------------------------------

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

our @plain = ('-C', 'boot', '-e', 'sched:sched_switch');

# A request and its answer: {cpus, ports, proto, tsync} or the refusal's text.
sub ask {
	my ($s, @more) = @_;
	my ($params) = @more ? @more : args(@plain);
	give($s, request($params));
	my ($cmd, $fixed, $data) = receive($s);
	return 'nothing' unless defined $cmd;
	return $data =~ s/\0//r if $cmd == 5;
	return "command $cmd" if $cmd != 7;
	my ($flags, $cpus, $page, $id, $proto, $tsync) = unpack 'NNNQ>Z16N', $fixed;
	return { flags => $flags, cpus => $cpus, page => $page, id => $id, proto => $proto, tsync => $tsync,
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

# ---- scripts ------------------------------------------------------------------------------

# Each is [NAME, CODE]; CODE returns what the agent did wrong, or ''.

# Bytes after which the agent is to close, after an answer or without one.
sub garbage {
	my ($name, $bytes, $answer) = @_;
	return [$name, sub {
		my $s = dial() or return 'no connection';
		give($s, $bytes);
		if ($answer && $in_our_words) {
			my ($cmd, undef, $data) = receive($s);
			return 'no refusal' unless ($cmd // -1) == 5;
			return "refusal '$data'" unless $data =~ $answer;
		}
		return closed($s) ? '' : 'not closed';
	}];
}

sub refused {
	my ($name, $why, @args) = @_;
	return garbage($name, request(args(@args)), $why);
}

# Up to where the pages begin: the control connection, and those for the data.
sub begun {
	my $s = dial() or die "no connection\n";
	my $r = ask($s);
	ref $r or die "no answer: $r\n";
	defined metadata($s) or die "no metadata\n";
	return ($s, map { dial_port($_) // die "no port $_\n" } @{ $r->{ports} });
}

# It must end the recording by itself.
sub ends { my ($s) = @_; return closed($s) ? '' : 'not closed' }

sub finish {
	my ($s, @d) = @_;
	give($s, message(0, '', ''));
	closed($_) or return 'no end of data' for @d;
	my ($cmd) = receive($s);
	return ($cmd // -1) == 8 ? '' : 'no CLOSE_RESP';
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
	sub { my $c = shift; push @{ $c->{d} }, map { dial_port($_) } @{ $c->{ports} }[1 .. $#{ $c->{ports} }] },
	sub { my $c = shift; give($c->{s}, message(0, '', '')) },
);

sub gone_after {
	my ($n) = @_;
	return ["gone after step $n of " . @steps, sub {
		my %c = (s => dial());
		$_->(\%c) for @steps[0 .. $n - 1];
		close $_ for grep { $_ } $c{s}, @{ $c{d} // [] };
		return '';
	}];
}

sub pending {
	my $sense = qr/makes no sense/;
	my $first = qr/only TRACE_REQ/;
	return (
		garbage('silent', ''),
		garbage('half a header', pack('N', 28) . "\0\0"),
		garbage('a header and half a request', substr(request(args(@plain)), 0, 30)),
		garbage('size 0', pack('N3', 0, 6, 0) . "\0" x 32),
		garbage('size 11', pack('N3', 11, 6, 0)),
		garbage('size 8193', pack('N3', 8193, 6, 16) . "\0" x 100),
		garbage('size 2^32-1', pack('N3', 0xffffffff, 6, 16) . "\0" x 100),
		garbage('cmd_size beyond size', pack('N3', 28, 6, 17) . "\0" x 16),
		garbage('cmd_size 2^32-1', pack('N3', 28, 6, 0xffffffff) . "\0" x 16),
		garbage('cmd_size too small for a request', message(6, "\0" x 15, ''), $sense),
		garbage('another protocol', "GET / HTTP/1.1\r\nHost: guest\r\n\r\n"),
		garbage('an unknown command', message(77, '', 'x'), $first),
		garbage('NOT_SUPP first', message(5, '', ''), $first),
		garbage('SEND_DATA first', message(3, '', 'x' x 8000), $first),
		garbage('TRACE_RESP first', message(7, "\0" x 40, "1\0"), $first),
		garbage('TIME_SYNC first', message(9, "\0" x 20, ''), $first),
		garbage('TRACE_PROXY', message(10, "\0" x 24, args(@plain)), $first),
		garbage('CLOSE first', message(0, '', '')),
		garbage('argc 2^32-1', request(pack('N3', 0, 6, 0xffffffff) . "a\0"), $sense),
		garbage('argc 1000000', request(pack('N3', 0, 6, 1000000) . "a\0"), $sense),
		garbage('a string without end', request(pack('N3', 0, 6, 1) . 'ab'), $sense),
		garbage('a parameter beyond the message', request(pack('N3', 0, 600, 1) . "a\0"), $sense),
		garbage('a negative parameter length', request(pack('N3', 0, 0x80000000, 1) . "a\0"), $sense),
		garbage('half a parameter', request("\0\0\0\0\0"), $sense),
		garbage('protocols without end', request(args(@plain) . pack('N2', 1, 3) . 'ptp'), $sense),
	);
}

sub requests {
	return (
		refused('a command', qr/nothing is run here/, @plain, 'reboot', '-f'),
		refused('a command after --', qr/nothing is run here/, @plain, '--', 'reboot'),
		refused('an output file', qr/-o/, '-o', '/etc/passwd', @plain),
		refused('an unknown option', qr/not for a guest/, '--temp', '/etc', @plain),
		refused('a path as an event', qr/-e/, '-e', '../../../etc'),
		refused('dots as an event', qr/-e/, '-e', 'sched:..'),
		refused('a path as an option of ftrace', qr/-O/, '-O', '../tracing_on'),
		refused('a path as a buffer', qr/-B/, '-B', '../../x', '-e', 'sched'),
		refused('a line break in a filter', qr/-f/, '-e', 'sched', '-f', "a\nb"),
		refused('an expression for functions', qr/-l/, '-p', 'function', '-l', '((a{1,200}){1,200}){1,200}'),
		refused('two buffers', qr/one buffer/, '-B', 'a', '-e', 'sched', '-B', 'b', '-e', 'irq'),
		refused('an event that is not there', qr/cannot set up/, '-e', 'nonsense'),
		refused('a clock that is a path', qr/-C/, '-C', '/x'),
		refused('an argument that is missing', qr/needs an argument/, '-e'),
		refused('8,000 bytes of options', qr/not known/, ('-Z') x 2600),
	);
}

sub recordings {
	return (
		(map { gone_after($_) } 1 .. @steps),
		['never connects its data ports', sub {
			my $s = dial();
			my $r = ask($s);
			metadata($s);
			return ends($s);
		}],
		['never reads the metadata', sub {
			my $s = dial();
			setsockopt $s, SOL_SOCKET, SO_RCVBUF, 2048;
			give($s, request(args(@plain)));
			nap(2.5);
			return ends($s);
		}],
		['a slow reader', sub {
			my ($s, @d) = begun();
			my $end = now() + 6;
			while (now() < $end && !IO::Select->new($s)->can_read(0)) {
				feed($#d, "\0" x 65536);
				nap(0.01);
			}
			return ends($s);
		}],
		['one data connection breaks', sub {
			my ($s, @d) = begun();
			close $d[-1];
			return ends($s);
		}],
		['a port connected twice', sub {
			my $s = dial();
			my $r = ask($s);
			my $one = dial_port($r->{ports}[0]);
			nap(0.1);
			my $two = dial_port($r->{ports}[0]);
			return 'served twice' if $two && !closed($two, 2);
			close $s;
			return '';
		}],
		['messages in the wrong place', sub {
			my ($s, @d) = begun();
			for (1 .. 3) {
				give($s, message(6, "\0" x 16, ''));
				my ($cmd) = receive($s);
				return 'no NOT_SUPP' unless ($cmd // -1) == 5;
			}
			return finish($s, @d);
		}],
		['a flood of messages in the wrong place', sub {
			my ($s, @d) = begun();
			give($s, message(3, '', 'x' x 100)) for 1 .. 50;
			return ends($s);
		}],
		['garbage instead of CLOSE', sub {
			my ($s, @d) = begun();
			give($s, "\xff" x 100);
			return ends($s);
		}],
		['a second recorder while one is at work', sub {
			my $s = dial();
			my $r = ask($s);
			my $two = dial();
			my $no = ask($two);
			return 'the second: ' . (ref $no ? 'served' : $no) if ref $no || $in_our_words && $no !~ /busy/;
			return 'not closed' unless closed($two);
			metadata($s);
			return finish($s, map { dial_port($_) } @{ $r->{ports} });
		}],
	);
}

# A control connection, its answer, and the one for time synchronisation.
sub begin_sync {
	my $s = dial();
	my $r = ask($s, args(@plain) . protos('kvm', 'ptp'));
	my $t = ref $r && $r->{proto} eq 'ptp' ? dial_port($r->{tsync}) : undef;
	$t or die "no time synchronisation\n";
	return ($s, $r, $t);
}

our $probe_cpu = message(9, pack('a16N', 'none', 1), pack('S', 0));

sub syncs {
	return (
		['time synchronisation that nobody connects', sub {
			my $s = dial();
			ask($s, args(@plain) . protos('ptp'));
			my $meta = metadata($s);
			close $s;
			return $meta ? '' : 'no metadata';
		}],
		['time synchronisation that stalls', sub {
			my ($s, $r, $t) = begin_sync();
			give($t, $probe_cpu);
			return ends($t);
		}],
		['time synchronisation with garbage', sub {
			my ($s, $r, $t) = begin_sync();
			give($t, "\xff" x 64);
			return ends($t);
		}],
		['time synchronisation, samples beyond their message', sub {
			my ($s, $r, $t) = begin_sync();
			give($t, $probe_cpu);
			while (my ($cmd, $fixed, $data) = receive($t)) {
				my ($proto, $id) = unpack 'Z16N', $fixed;
				give($t, message($cmd, $fixed, $data)) if $id == 1 || $id == 2;
				give($t, message(9, pack('a16N', 'ptp', 3), pack('N2', 1, 0x7fffffff))) if $id == 5;
			}
			return '';
		}],
		['no protocol in common', sub {
			my $s = dial();
			my $r = ask($s, args(@plain) . protos('kvm'));
			close $s;
			return ref $r && $r->{proto} eq '' ? '' : 'a protocol';
		}],
	);
}

sub floods {
	return (
		['1,000 connections, one after the other', sub {
			for (1 .. 1000) { my $s = dial() or return 'no connection'; close $s }
			return '';
		}],
		['1,000 connections at once', sub {
			my @all;
			for (1 .. 1000) { my $s = dial(); push @all, $s if $s }
			return '';
		}],
	);
}

sub scripts { return (pending(), requests(), recordings(), syncs(), floods()) }

1;
