#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --profile on the live pKVM host: samples of the host and of its guest, by our agent; an agent that
# knows nothing of them; loops in guest, hypervisor and host, whose samples are to stand there; and what a killed
# recorder had.
. "$(dirname "$0")/lib.sh"

hyptrace=$build/hyptrace
hz=50
all_symbols=1 shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# count FILE PATTERN: samples that match in what stock's report prints
count() {
	trace-cmd report "$1" 2>/dev/null | grep ' sample: ' | grep -cE "$2"
}

# ---- host, hypervisor and guest -----------------------------------------------------

# A program of the guest's that never sleeps, and is the only one of its name; busybox calls its own "exe" at times.
run "hyptrace record --profile $hz -B hyp -b 4096 -A Guest@3 -e sched:sched_process_exit --profile $hz -o p.dat -- \
	/mnt/tests/lab/l1/guest exec 1 60 'ln -s /bin/busybox /tmp/yes; timeout 4 /tmp/yes >/dev/null'
	status=\$?; cp p.dat p-Guest.dat /mnt/out; exit \$status"
[ "$status" = 0 ] || [ "$status" = 143 ]
ok $? "recorded" || diag "$stderr"
host=$out/p.dat guest=$out/p-Guest.dat
seconds=$(sed -n 's/^hyptrace: \([0-9.]*\) s: .*/\1/p' <<<"$stderr")
diag "$seconds s: $stderr"

# an emulator has no time for some of them
for machine in host:4 guest:2; do
	file=${machine%:*} all=$(perl -e 'printf "%d", $ARGV[0] * $ARGV[1] * $ARGV[2]' "$seconds" $hz "${machine#*:}")
	n=$(count "${!file}" .)
	((n * 100 > all * 40 && n * 100 < all * 115))
	ok $? "stock reads about as many samples of the $file as were asked for" || diag "$n of $all"
done
at_least "$(count "$host" 'comm=CPU [01]/KVM .* mode=guest_(user|kernel)')" 60 "vCPUs are seen to run the guest"
at_least "$(count "$guest" 'comm=yes .* mode=(user|kernel)')" 20 "the guest sees which of its programs that was" ||
	diag "$(trace-cmd report "$guest" 2>/dev/null | grep -o ' sample: comm=[^ ]*\|sched_process_exit.*' | sort | uniq -c | sort -rn | head -n 20)"
"$hyptrace" flame -q -o "$tmp/folded" "$host" "$guest"
ok $? "flame of both"
at_least "$(perl -ne '$n += $1 if /^host;CPU [01]\/KVM;\[guest\] (\d+)$/; END { print $n + 0 }' "$tmp/folded")" 60 \
	"... has the guest below its vCPUs"
at_least "$(perl -ne '$n += $1 if /^guest:Guest;yes;.* (\d+)$/; END { print $n + 0 }' "$tmp/folded")" 20 \
	"... and below the guest its program" || diag "$(grep '^guest' "$tmp/folded")"
like "$(cat "$tmp/folded")" '^guest:Guest;yes;.*busybox\+0x[0-9a-f]+' "... by the maps that it made"
like "$(cat "$tmp/folded")" '^guest:Guest;.*;el0_svc;.*;(ksys|vfs|__arm64_sys)_' "... with what it did in its kernel"

# ---- the place of a loop: guest, hypervisor (by HVCs), or host ---------------------------------------

"${CROSS_COMPILE:-aarch64-linux-gnu-}gcc" -static -O2 -o "$out/spin" tests/lab/spin.c || diag "spin does not build"
run "hyptrace record -q --profile 199 -B hyp -b 8192 -e sched:sched_switch -o spin.dat -- \
	sh -c 'for p in \"host 3\" \"guest 9\" \"hvc 9\"; do /mnt/out/spin \$p || exit; done' && cp spin.dat /mnt/out"
recorded "loops are recorded"

# Shares of each loop's time by the visits and switches alone, with what samples cost and without, for no sample shows
# that: the exit of a guest that had run for long, in other loops the host's time from a sample to the next visit.
cat >"$tmp/shares.pl" <<'E'
my (%cpu, %all, %less, %samples);
while (<>) {
	/\[(\d+)\] +(\d+)\.(\d{6})\d*: +(\w+): +(.*)/ or next;
	my ($c, $now, $event, $text) = ($cpu{$1} //= { ran => 0, open => [] }, $2 * 1e6 + $3, $4, $5);
	my ($place, $for) = ($c->{place} // "", $now - ($c->{since} // $now));
	$c->{since} = $now;
	$all{ $c->{task} }{$place} += $for if $c->{task} && $place;
	push @{ $c->{open} }, [ $c->{task}, $place, $for ] if $c->{task} && $place && !$c->{cost};
	$c->{ran} = $for if $place eq "guest";
	if ($event eq "sample") {
		$c->{cost} = $c->{ran} > 100 ? "eret_guest" : "hyp_enter";
		@{ $c->{open} } = () if $c->{ran} > 100;
	}
	$c->{cost} = "" if $c->{cost} && "$event $text" =~ /$c->{cost}/;
	if ($event eq "sched_switch" || $event eq "hyp_enter" && $place eq "guest") {
		$less{ $_->[0] }{ $_->[1] } += $_->[2] for splice @{ $c->{open} };
		$c->{ran} = 0 if $event eq "sched_switch";
	}
	$c->{task} = $1 if $event eq "sched_switch" && $text =~ /==> (.*?):\d+ \[/;
	$c->{place} = "hyp" if $event eq "hyp_enter";
	$c->{place} = $text =~ /eret_guest/ ? "guest" : "host" if $event eq "hyp_exit";
}
open my $f, "<", $ENV{FOLDED} or die;
while (<$f>) {
	/^host;(spin-\w+);(?:\[(\w+)\])?.* (\d+)$/ and ($2 // "") ne "undecided" or next;
	$samples{$1}{ $2 // "host" } += $3;
}
sub share { my ($of, $place) = @_; my $n = 0; $n += $_ for values %$of; 100 * ($of->{$place} // 0) / ($n || 1) }
# 3 points, and 2 for chance: a share of some 1800 samples has a standard error of 1.1
for my $loop (qw(spin-guest spin-hvc spin-host)) {
	for my $place (qw(guest hyp host)) {
		my ($is, @time) = map { share($_->{$loop}, $place) } \(%samples, %all, %less);
		@time = (0, 0) if $loop eq "spin-host" && $place ne "host";
		@time = sort { $a <=> $b } $loop eq "spin-host" && $place eq "host" ? (100, 100) : @time;
		printf "$loop $place %s: %.1f %%, of the time %.1f to %.1f %%\n",
			$is > $time[0] - 5 && $is < $time[1] + 5 ? "fits" : "is wrong", $is, @time;
	}
}
E
"$hyptrace" flame -q -o "$tmp/folded" "$out/spin.dat"
trace-cmd report "$out/spin.dat" >"$tmp/lines" 2>/dev/null
FOLDED=$tmp/folded perl "$tmp/shares.pl" "$tmp/lines" >"$tmp/shares"
is "$(grep -c ' fits: ' "$tmp/shares")" 9 "the samples of loops in guest, hypervisor and host stand there"
diag "$(cat "$tmp/shares")"
at_least "$(perl -ne '$n += $1 if /^host;spin-hvc;\[hyp\];.* (\d+)$/; END { print $n }' "$tmp/folded")" 300 \
	"... of which perf books none to the hypervisor" || diag "$(grep '^host;spin-hvc;' "$tmp/folded")"

# A guest with a PMU has the kernel stop and start perf events with its vCPUs: the times at which samples are due (199 a
# second) stay where they are.
cat >"$tmp/apart.pl" <<'E'
my (%n, %part);
while (<>) {
	/\[(\d+)\] +(\d+)\.(\d{6})\d*: +sample: / or next;
	$n{$1}++;
	$part{$1}[ ($2 * 1e6 + $3) * 199 / 1e6 * 20 % 20 ]++;
}
for my $cpu (sort keys %n) {
	my $most = 0;
	for my $from (0 .. 19) {
		my $in = 0;
		$in += $part{$cpu}[ ($from + $_) % 20 ] // 0 for 0 .. 3;
		$most = $in if $in > $most;
	}
	printf "%d\n", 100 * $most / $n{$cpu};
}
E
apart=$(perl "$tmp/apart.pl" "$tmp/lines" | sort -n)
at_least "$(head -n 1 <<<"$apart")" 55 "most samples of each CPU come in the same fifth of a period"
diag "of each CPU's samples come in one fifth of a period: $(paste -sd ' ' <<<"$apart") %"

# ---- an agent that does not know it ------------------------------------------------------

guest 'trace-cmd agent -D -p 826'
run "hyptrace record --profile $hz -A Guest@3:826 -e sched --profile $hz -o stock.dat -- sleep 1"
is "$status" 0 "trace-cmd's agent is recorded without" || diag "$stderr"
like "$stderr" '^hyptrace: warning: guest Guest: no samples: its agent does not know --profile' "... which is said"
guest 'killall trace-cmd'

# ---- kill -9 ------------------------------------------------------------------------

run "begin killed.dat --profile $hz && slay && hyptrace recover killed.dat.spool && cp killed.dat /mnt/out"
is "$status" 0 "recovered after kill -9" || diag "$stderr"
at_least "$(count "$out/killed.dat" .)" 5 "... with what had been read"

done_testing
