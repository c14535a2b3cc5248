#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
# Presets of hyptrace latency on made-up machines: each chain that is printed is a true one, and at least 95 % of
# those that the clocks and the files let decide are found. LATENCY_WORLDS: so many machines (6; make fuzz: 80).
use strict;
use warnings;
use JSON::PP;
use File::Temp 'tempdir';

my $build = $ENV{O} // 'build';
my $worlds = $ENV{LATENCY_WORLDS} // 6;
my $seed = $ENV{LATENCY_SEED} // 1;
my $tmp = $ENV{LATENCY_DIR} // tempdir(CLEANUP => 1);
my ($H, $G) = (0, 1);      # host, guest
my $LANES = 2;             # of two vCPUs each, which have nothing to do with each other
my (@ev, %truth, $bound, $error, @now, $pid, %started);

sub rnd { int rand shift }
sub chance { rand() < shift }

# Records: true time, machine, CPU, pid, text; the time that hyptrace shows
sub event {
	my ($lane, $machine, $cpu, $task, $text, $gap) = @_;

	$now[$lane] += $gap // 200 + (chance(.25) ? rnd(3 * $bound) : 5 * $bound + rnd(20_000));
	my $e = { t => $now[$lane], m => $machine, cpu => $cpu, task => $task, text => $text };
	$e->{shown} = $e->{t} + ($machine == $G ? $error : 0);
	push @ev, $e;
	return $e;
}

sub thread { 100 + $_[0] }
sub host { my ($lane, $v, $text, @gap) = @_; event($lane, $H, $v, thread($v), $text, @gap) }
sub guest { my ($lane, $v, $task, $text, @gap) = @_; event($lane, $G, $v, $task, $text, @gap) }
sub true_chain { my ($preset, $key, @events) = @_; push @{ $truth{$preset} }, { key => $key, v => \@events } }
sub enter { my ($lane, $v) = @_; host($lane, $v, 'kvm_entry') }
sub leave { my ($lane, $v, $ec) = @_; host($lane, $v, "kvm_exit ret=2 esr_ec=$ec") }

# Interrupts that no chain is about: an IPI, or a device's whose injection KVM has no event for
sub noise {
	my ($lane, $v) = @_;

	guest($lane, $v, 0, 'irq_handler_entry irq=9 name=virtio9-input.0') if chance(.15);
	guest($lane, $v, 0, 'irq_handler_entry irq=3 name=IPI') if chance(.15);
}

# ---- wake-ups ---------------------------------------------------------------------------------

sub wake_vcpu {
	my ($lane, $a, $b, $flags, $halted) = @_;
	my ($i, $w);

	leave($lane, $a, '0x18');
	$i = host($lane, $a, "sched_waking common_flags=$flags pid=" . thread($b));
	enter($lane, $a) if chance(.5);
	$w = host($lane, $b, 'kvm_vcpu_wakeup waited=1') if $halted;
	host($lane, $b, "vgic_update_irq_pending vcpu_id=$b irq=27 level=1"),
		host($lane, $b, "vgic_update_irq_pending vcpu_id=$b irq=27 level=0") if chance(.2);
	return ($i, $w, enter($lane, $b));
}

sub wakeup {
	my ($lane, $a, $b) = @_;
	my $kind = rnd(9);
	my $p = ++$pid;
	my $waker = ++$pid;
	my $sleeps = sub { guest($lane, $_[0], $_[1], "sched_switch prev_pid=$_[1] next_pid=0") };
	my $runs = sub { guest($lane, $_[0], 0, "sched_switch prev_pid=0 next_pid=$_[1]") };
	my ($w, @host, $h, $t);

	guest($lane, $a, $waker, "sched_waking pid=999 target_cpu=$a") if chance(.2);
	$w = guest($lane, $a, $waker, "sched_waking pid=$p target_cpu=" . ($kind == 8 || chance(.1) ? $a : $b));
	if ($kind == 0) { # by itself
		$runs->($a, $p);
		$sleeps->($a, $p);
	} elsif ($kind == 1) { # its CPU runs
		$runs->($b, $p);
		$sleeps->($b, $p);
	} elsif ($kind == 2) { # another CPU takes it first; later it is woken where it was expected
		wake_vcpu($lane, $a, $b, 0, 1);
		$runs->($a, $p) if chance(.5);
		guest($lane, $b, 0, 'irq_handler_entry irq=1 name=IPI');
		$runs->($a, $p);
		$sleeps->($a, $p);
		guest($lane, $b, 0, "sched_waking pid=$p target_cpu=$b") if chance(.7);
		$runs->($b, $p);
		$sleeps->($b, $p);
	} elsif ($kind == 3) { # in the waker's thread, but by an interrupt of the host
		wake_vcpu($lane, $a, $b, chance(.5) ? 8 : 16, 1);
		guest($lane, $b, 0, 'irq_handler_entry irq=11 name=arch_timer');
		guest($lane, $b, 0, 'irq_handler_entry irq=1 name=IPI') if chance(.3);
		$runs->($b, $p);
		$sleeps->($b, $p);
	} elsif ($kind == 4) { # the vCPU waited for something else
		wake_vcpu($lane, $a, $b, 0, 0);
		guest($lane, $b, 0, 'irq_handler_entry irq=1 name=IPI');
		$runs->($b, $p);
		$sleeps->($b, $p);
	} else {
		@host = wake_vcpu($lane, $a, $b, 0, 1);
		guest($lane, $a, $waker, "sched_waking pid=" . ($p + 1_000_000) . " target_cpu=$b") if $kind == 5;
		guest($lane, $b, 0, 'irq_handler_entry irq=11 name=arch_timer') if chance(.2);
		$h = guest($lane, $b, 0, 'irq_handler_entry irq=' . (1 + rnd(2)) . ' name=IPI');
		if ($kind == 6) { # another comes first
			$runs->($b, 998);
			$sleeps->($b, 998);
		}
		$t = $runs->($b, $p);
		true_chain('wakeup', "vm $b", $w, @host, $h, $t);
		$sleeps->($b, $p);
		if ($kind == 5) {
			$runs->($b, $p + 1_000_000);
			$sleeps->($b, $p + 1_000_000);
		}
	}
	guest($lane, $a, $waker, "sched_switch prev_pid=$waker next_pid=0");
}

# ---- timers ---------------------------------------------------------------------------------------

sub timer {
	my ($lane, $v) = @_;
	my $of = $started{$v} //= {};
	my @fire = (0);
	my ($i, $f, $r, $h);

	for (1 .. 1 + rnd(3)) {
		my $timer = sprintf '0x%x', 0xffff0000 + $v * 16 + rnd(6);

		$of->{$timer} = guest($lane, $v, 0, "hrtimer_start hrtimer=$timer expires=0");
		delete $of->{$timer}, guest($lane, $v, 0, "hrtimer_cancel hrtimer=$timer") if chance(.2);
	}
	leave($lane, $v, '0x1');
	if (chance(.1)) { # it is taken back
		host($lane, $v, "kvm_timer_update_irq vcpu_id=$v irq=27 level=1");
		host($lane, $v, "vgic_update_irq_pending vcpu_id=$v irq=27 level=1");
		enter($lane, $v) if chance(.5);
		host($lane, $v, "kvm_timer_update_irq vcpu_id=$v irq=27 level=0");
		host($lane, $v, "vgic_update_irq_pending vcpu_id=$v irq=27 level=0");
	}
	for (0 .. chance(.3)) { # again as the vCPU's thread comes back: the last counts
		$f = host($lane, $v, "kvm_timer_update_irq vcpu_id=$v irq=27 level=1");
		$i = host($lane, $v, "vgic_update_irq_pending vcpu_id=$v irq=27 level=1");
		$r = enter($lane, $v);
		leave($lane, $v, '0x1'), $r = $r if chance(.1);
	}
	host($lane, $v, "kvm_timer_update_irq vcpu_id=$v irq=30 level=1") if chance(.1);
	enter($lane, $v) if chance(.1);
	noise($lane, $v);
	$h = guest($lane, $v, 0, 'irq_handler_entry irq=11 name=arch_timer');
	true_chain('irq', "vm $v", $i, $r, $h);
	my $first = 1;
	for my $timer ((sort { $of->{$a}{t} <=> $of->{$b}{t} } keys %$of)[0 .. rnd(2)]) {
		next if !defined $timer;
		my $e = guest($lane, $v, 0, "hrtimer_expire_entry hrtimer=$timer");

		true_chain('timer', "vm $v", delete $of->{$timer}, $f, $r, $e) if $first;
		$first = 0;
	}
}

# ---- devices ------------------------------------------------------------------------------------------

sub device {
	my ($lane, $a, $b) = @_;
	my $worker = 60 + $lane;
	my ($gpa, $line, $cpu) = (0x1000 * (1 + $lane), 40 + $lane, 6 + $lane);
	my ($n, $w, $s, $i, $r, $h);

	if (chance(.3)) { # the UART, which the VMM emulates
		my @abort = (leave($lane, $a, '0x24'), host($lane, $a, 'kvm_guest_fault'));
		host($lane, $a, 'kvm_mmio type=2 len=2 gpa=0x9000000 val=' . (32 + rnd(90)));
		host($lane, $a, 'kvm_userspace_exit reason=6');
		host($lane, $a, "sched_waking pid=$worker") if chance(.3);
		true_chain('abort', "vm $a", @abort, enter($lane, $a));
		return;
	}
	leave($lane, $a, '0x24');
	$n = host($lane, $a, sprintf 'kvm_mmio type=2 len=2 gpa=0x%x val=1', $gpa);
	if (chance(.2)) { # the worker is busy
		enter($lane, $a);
		return;
	}
	$w = host($lane, $a, "sched_waking pid=$worker target_cpu=$cpu");
	enter($lane, $a);
	$s = event($lane, $H, $cpu, 0, "sched_switch prev_pid=0 next_pid=$worker");
	$i = event($lane, $H, $cpu, $worker, "vgic_update_irq_pending vcpu_id=$b irq=$line level=1");
	$r = enter($lane, $b);
	guest($lane, $b, 0, 'irq_handler_entry irq=3 name=IPI') if chance(.2);
	guest($lane, $b, 0, 'irq_handler_entry irq=11 name=arch_timer') if chance(.2);
	$h = guest($lane, $b, 0, 'irq_handler_entry irq=' . (20 + $lane) . " name=virtio$lane-input.0");
	true_chain('irq', "vm $b", $i, $r, $h);
	true_chain('virtio', sprintf('0x%x:1', $gpa), $n, $w, $s, $i, $h);
	event($lane, $H, $cpu, $worker, "sched_switch prev_pid=$worker next_pid=0");
}

# ---- exits -----------------------------------------------------------------------------------------------

sub exits {
	my ($lane, $v) = @_;
	my $kind = rnd(4);
	my $x = leave($lane, $v, (qw(0x16 0x17 0x24 0x20))[$kind]);
	my $f;

	if ($kind > 1 && chance(.7)) {
		$f = host($lane, $v, 'kvm_guest_fault');
	}
	host($lane, $v, 'kvm_userspace_exit reason=3') if chance(.2);
	my $r = enter($lane, $v);
	true_chain('hypercall', "vm $v", $x, $r) if $kind < 2;
	true_chain('abort', "vm $v", $x, $f, $r) if $f;
}

# ---- a world, and what is asked of it -----------------------------------------------------------------------

sub stamp { sprintf '%d.%09d', $_[0] / 1e9, $_[0] % 1e9 }

sub write_file {
	my ($name, $machine, $head, $lost) = @_;
	my $base = $machine == $G ? $error - 7_000_000 : 0; # the guest's clock
	my %gap;

	open my $f, '|-', "$build/tests/integration/make-trace", "$tmp/$name", 'tests/integration/events/latency', 'tests/data/formats-arm64.dat' or die;
	print $f $head;
	for my $e (grep { $_->{m} == $machine && !$_->{out} } @ev) {
		if ($e->{lost}) {
			$gap{ $e->{cpu} }++;
			next;
		}
		my $n = delete $gap{ $e->{cpu} };
		print $f "lost $e->{cpu} $n\n" if $n;
		print $f stamp($e->{t} + ($machine == $G ? 7_000_000 : 0)), " $e->{cpu} $e->{task} $e->{text}\n";
	}
	close $f or die "cannot make $name";
}

# What is lost, by CPU, and what is before the guest's file or behind it
sub spoil {
	my @of = ($ev[0]{t}, $ev[-1]{t});
	my ($from, $to) = ($of[0], $of[1]);

	if (chance(.4)) {
		$from += rnd(($of[1] - $of[0]) / 5);
		$to -= rnd(($of[1] - $of[0]) / 5);
	}
	$_->{out} = 1 for grep { $_->{m} == $G && ($_->{t} < $from || $_->{t} > $to) } @ev;
	return if chance(.5);
	for (1 .. 1 + rnd(3)) {
		my $at = $ev[ rnd($#ev) ];
		my $n = 1 + rnd(10);

		for my $e (grep { $_->{m} == $at->{m} && $_->{cpu} == $at->{cpu} && $_->{t} >= $at->{t} } @ev) {
			last if !$n--;
			$e->{lost} = 1 if !$e->{out};
		}
	}
}

# Certain in any order that the bounds allow, all there, and nothing lost meanwhile
sub decidable {
	my ($c, $device) = @_;
	my @v = @{ $c->{v} };

	return 0 if grep { $_->{lost} || $_->{out} } @v;
	for my $i (1 .. $#v) {
		return 0 if $v[$i]{m} != $v[ $i - 1 ]{m} && $v[$i]{t} - $v[ $i - 1 ]{t} <= 4 * $bound;
	}
	my ($from, $to) = ($v[0]{t} - 4 * $bound, $v[-1]{t} + 4 * $bound);
	# a loss lasts from the record before to the one behind
	my %last;
	for my $e (@ev) {
		next if $e->{out};
		my $cpu = "$e->{m} $e->{cpu}";
		if ($e->{lost}) {
			$last{$cpu}{open} = 1;
			next;
		}
		return 0 if $last{$cpu}{open} && ($last{$cpu}{t} // 0) <= $to && $e->{t} >= $from;
		$last{$cpu} = { t => $e->{t} };
	}
	return 0 if grep { $_->{open} && ($_->{t} // 0) <= $to } values %last;
	# nothing else of its vCPUs so near that it may have come in between
	for my $e (@ev) {
		next if $e->{out} || $e->{lost};
		for my $v (@v) {
			return 0 if $e->{m} != $v->{m} && abs($e->{t} - $v->{t}) <= 4 * $bound &&
				int($e->{cpu} % 6 / 2) == int($v->{cpu} % 6 / 2);
		}
	}
	return 1;
}

my (%n, @wrong);

sub judge {
	my ($preset, $world) = @_;
	my $json = `$build/hyptrace latency -q --json --worst 100 --preset $preset $tmp/host.dat $tmp/guest.dat 2>$tmp/err`;
	my %true = map { ("$_->{key} " . stamp($_->{v}[0]{shown}) . ' ' . stamp($_->{v}[-1]{shown}) => $_) } @{ $truth{$preset} };
	my (%sums, %found);

	$n{$preset}{decidable} += 0;
	for my $c (values %true) {
		$c->{decidable} = decidable($c);
		$n{$preset}{true}++;
		$n{$preset}{decidable} += $c->{decidable};
	}
	if (!$json) {
		open my $f, '<', "$tmp/err" or die;
		my $err = join '', <$f>;
		push @wrong, "$preset of $world: $err" if $err !~ /so the chain of/;
		return;
	}
	my $j = decode_json($json);
	for my $w (@{ $j->{worst} }) {
		my $c = $true{"$w->{key} $w->{from} $w->{to}"};

		$n{$preset}{printed}++;
		if (!$c) {
			push @wrong, "$preset of $world: $w->{key} $w->{from} $w->{to}";
			next;
		}
		$n{$preset}{found} += $c->{decidable};
		for my $i (1 .. $#{ $c->{v} }) {
			$sums{ $w->{key} }[ $i - 1 ] += $c->{v}[$i]{shown} - $c->{v}[ $i - 1 ]{shown};
		}
	}
	my %row;
	push @{ $row{ $_->{key} } }, $_->{total_ns} for grep { $_->{until} ne 'total' } @{ $j->{latency} };
	for my $key (keys %sums) {
		my ($ours, $theirs) = ("@{ $row{$key} }", "@{ $sums{$key} }");

		push @wrong, "$preset of $world, $key: stages $ours instead of $theirs" if $ours ne $theirs;
	}
	for my $c (@{ $j->{chains} }) {
		$n{$preset}{$_} += $c->{$_} for qw(undecided lost stopped not_recorded);
		push @wrong, "$preset of $world: more than a hundred chains" if @{ $j->{worst} } == 100;
	}
}

for my $world ($seed .. $seed + $worlds - 1) {
	srand $world;
	$bound = (0, 100, 1_000, 20_000)[ $world % 4 ];
	$error = $bound ? rnd(2 * $bound + 1) - $bound : 0;
	(@ev, %truth, %started) = ();
	$pid = 1000;
	for my $lane (0 .. $LANES - 1) {
		my ($a, $b) = (2 * $lane, 2 * $lane + 1);

		$now[$lane] = 1_000_000_000 + rnd(1_000_000);
		for (1 .. 100) {
			($a, $b) = ($b, $a) if chance(.5);
			(sub { wakeup($lane, $a, $b) }, sub { timer($lane, $b) }, sub { device($lane, 2 * $lane, 2 * $lane + 1) },
				sub { exits($lane, $a) })[ rnd(4) ]->();
			$now[$lane] += 10 * $bound + rnd(100_000);
		}
	}
	@ev = sort { $a->{t} <=> $b->{t} } @ev;
	spoil();
	write_file('host.dat', $H, "id 11\nguest vm 22" . join('', map { " $_:" . thread($_) } 0 .. 2 * $LANES - 1) . "\n");
	write_file('guest.dat', $G, "id 22\nshift 11 " . ($error - 7_000_000) . " $bound\n");
	judge($_, $world) for qw(wakeup irq virtio timer hypercall abort);
}

my $tests = 0;
my $failed = 0;
sub ok { my ($good, $name) = @_; $tests++; $failed += !$good; print $good ? '' : 'not ', "ok $tests - $name\n" }

my $printed = 0;
for my $preset (sort keys %n) {
	my $c = $n{$preset};

	$printed += $c->{printed} // 0;
	printf "# %s: %s\n", $preset, join ', ', map { "$_ " . ($c->{$_} // 0) } qw(true decidable found printed undecided lost stopped not_recorded);
	ok(($c->{found} // 0) >= .95 * $c->{decidable} && $c->{decidable} > $worlds,
		"$preset: at least 95 % of those that can be decided are found");
}
print STDERR map { "# $_\n" } @wrong[0 .. ($#wrong < 20 ? $#wrong : 20)] if @wrong;
ok(!@wrong, "of $printed chains that are printed " . @wrong . ' are wrong');
print "1..$tests\n";
exit($failed > 0);
