#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace import --perfetto: traces of Perfetto's own recorder (tests/data/README.md), traces that
# hyptrace export made of captures, and packets by hand. Judged by stock report.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tools=$build/tests/tools
export HOME=$tmp # no plugins but the distribution's
unset TRACEEVENT_PLUGIN_DIR KERNELSHARK_PLUGIN_DIR
command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"
data=tests/data

# import ARGUMENT...: sets status; messages are in $tmp/err
import() {
	"$hyptrace" import "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

report() {
	trace-cmd report -t -N "$1" 2>/dev/null | sed -E 's/^ *//; s/  +/ /g; s/ +$//'
}

# refused STATUS MESSAGE NAME: and there is no file, no spool
refused() {
	is "$status" "$1" "$3: exit status"
	like "$(cat "$tmp/err")" "$2" "$3: message"
	is "$(ls -d "$tmp"/no* 2>/dev/null)" "" "$3: nothing is left"
}

# Packets by hand: n FIELD NUMBER, b FIELD BYTES..., p FIELD NUMBER... (packed), packet PARTS...
cat >"$tmp/wire.pm" <<'END'
use strict;
use warnings;
use Compress::Zlib;
sub varint { my ($v, $out) = (@_, ''); while ($v >= 128) { $out .= chr($v & 127 | 128); $v >>= 7 } return $out . chr $v }
sub n { return varint($_[0] << 3) . varint($_[1]) }
sub b { my ($field, @parts) = @_; my $bytes = join '', @parts; return varint($field << 3 | 2) . varint(length $bytes) . $bytes }
sub p { my ($field, @v) = @_; return b($field, map { varint($_) } @v) }
sub packet { return b(1, @_) }
sub source { my ($sequence, @parts) = @_; return packet(@parts, n(10, $sequence)) }
sub bundle { my ($cpu, @parts) = @_; return b(1, n(1, $cpu), @parts) }
sub event { my ($ts, $pid, $number, @fields) = @_; return b(2, n(1, $ts), defined $pid ? n(2, $pid) : (), b($number, @fields)) }
binmode STDOUT;
1;
END
wire() { # script on standard input
	perl -I"$tmp" -Mwire -e "$(cat)"
}

# ---- packets by hand -----------------------------------------------------------------

wire >"$tmp/hand.pftrace" <<'END'
print packet(b(45, b(1, b(1, 'Linux'), b(2, '#1 SMP'), b(3, '6.6.0-android15'), b(4, 'aarch64')))),
	source(7, bundle(2, n(3, 0),
		event(1_000_000_300, 0, 376, n(1, 0xffff0010)), # kvm_entry
		event(1_000_000_900, 11, 377, n(1, 0x18), n(2, 2), n(3, 0xffff0014)),
		b(4, b(5, 'swapper/2'), b(5, 'crosvm_vcpu0'), b(5, 'rcu'), # compact_sched
			p(1, 1_000_000_100, 200, 1_000), p(2, 0, 0, 1), p(3, 0, 11, 0), p(4, 120, 110, 120), p(6, 0, 1, 0),
			p(7, 1_000_000_200, 800), p(8, 11, 15), p(9, 2, 0), p(10, 110, 98), p(11, 1, 2), p(12, 0, 1)))),
	# what was lost, nobody counted
	source(7, bundle(2, event(1_000_005_000, 0, 13, n(1, 1), n(2, 2)), n(3, 1))),
	# of both of Android's generations; no pids
	source(8, bundle(2, event(1_000_000_310, undef, 584), event(1_000_000_890, undef, 588),
		event(1_000_000_891, undef, 582, n(1, 16), n(2, 0)))),
	source(8, bundle(1, event(1_000_001_000, undef, 476), event(1_000_001_001, undef, 480, n(1, 0x9200004f), n(2, 0x8000)),
		event(1_000_001_002, undef, 477))),
	# a packet of packets
	packet(b(50, compress(
		source(7, bundle(0, event(1_000_002_000, 4711, 3, n(1, 0), b(2, "B|4711|frame\n")))) .
		packet(b(2, b(1, n(1, 4711), n(2, 1), b(3, '/system/bin/surfaceflinger'))))))),
	# numbers of symbols, whose names come later
	source(7, bundle(0, event(1_000_003_000, 15, 58, n(1, 0xffffff8000), n(2, 1)))),
	source(7, b(12, b(26, n(1, 1), b(2, 'vmstat_update')))),
	# by names; one that tells what it is made of; one that nobody knows; on a CPU that no machine has
	source(7, bundle(0, event(1_000_004_000, 15, 327, b(1, 'sched_stat_runtime'),
		b(2, b(1, 'comm'), b(3, 'rcu')), b(2, b(1, 'pid'), n(4, 15)), b(2, b(1, 'runtime'), n(5, 99))))),
	source(7, bundle(0, event(1_000_004_100, 15, 65536, n(1, 5), b(2, 'x')),
		b(11, n(1, 65536), b(3, 'vendor'), b(2, b(1, 'mine'),
			b(2, b(1, 'count'), n(3, 1), n(5, 3)), b(2, b(1, 'word'), n(3, 2), n(5, 9)))))),
	source(7, bundle(0, event(1_000_004_200, 15, 50, n(1, 5)))),
	source(7, bundle(1 << 31, event(1_000_004_300, 15, 3, b(2, 'x')))),
	# another data source of the same CPU
	source(9, bundle(0, event(1_000_002_500, 15, 36, n(1, 12), b(2, 'kvm guest vtimer')))),
	# another machine
	packet(b(45, b(17, 'vm1')), n(98, 5)),
	packet(bundle(0, event(2_000, 3, 24, n(1, 9))), n(10, 7), n(98, 5));
END
import --perfetto "$tmp/hand.pftrace" -o "$tmp/hand.dat"
is "$status" 0 "by hand: exit status" || diag "$(cat "$tmp/err")"
is "$(sed "s|$tmp/||" "$tmp/err")" "hyptrace: warning: events that are not known are left out: number 50 (1)
hyptrace: warning: 1 packets or events made no sense
hyptrace: warning: 2 events are left out
hyptrace: hand.dat
hyptrace: hand-vm1.dat
hyptrace: warning: events were lost at 1 places; the trace does not have how many
hyptrace: 20 events, hyp 6 of them" "by hand: what is said"
is "$(report "$tmp/hand.dat")" "cpus=3
<...>--1 [002] 1.000000100: sched_switch: prev_comm=<...> prev_pid=-1 prev_prio=-1 prev_state=R ==> next_comm=swapper/2 next_pid=0 next_prio=120
<idle>-0 [002] 1.000000200: sched_waking: comm=crosvm_vcpu0 pid=11 prio=110 target_cpu=002
<idle>-0 [002] 1.000000300: kvm_entry: PC: 0x00000000ffff0010
<idle>-0 [002] 1.000000300: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=crosvm_vcpu0 next_pid=11 next_prio=110
hyp: crosvm_vcpu0-11 [002] 1.000000310: hyp_exit:
hyp: crosvm_vcpu0-11 [002] 1.000000890: hyp_enter:
hyp: crosvm_vcpu0-11 [002] 1.000000891: host_hcall: id=16 invalid=0
crosvm_vcpu0-11 [002] 1.000000900: kvm_exit: TRAP: HSR_EC: 0x0018 (SYS64), PC: 0x00000000ffff0014
crosvm_vcpu0-11 [002] 1.000001000: sched_waking: comm=rcu pid=15 prio=98 target_cpu=000
hyp: <idle>-0 [001] 1.000001000: hyp_enter:
hyp: <idle>-0 [001] 1.000001001: host_mem_abort: esr=0x9200004f addr=0x8000
hyp: <idle>-0 [001] 1.000001002: hyp_exit:
crosvm_vcpu0-11 [002] 1.000001300: sched_switch: prev_comm=crosvm_vcpu0 prev_pid=11 prev_prio=110 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
surfaceflinger-4711 [000] 1.000002000: print: B|4711|frame
ftrace-2: rcu-15 [000] 1.000002500: irq_handler_entry: irq=12 name=kvm guest vtimer
rcu-15 [000] 1.000003000: workqueue_execute_start: work struct 0xffffff8000: function vmstat_update
rcu-15 [000] 1.000004000: sched_stat_runtime: comm=rcu pid=15 runtime=99
rcu-15 [000] 1.000004100: mine: count=5 word=x
CPU:2 [EVENTS DROPPED]
<idle>-0 [002] 1.000005000: cpu_idle: state=1 cpu_id=2" "by hand: the events, in one order"
is "$(report "$tmp/hand-vm1.dat")" "cpus=1
<...>-3 [000] 0.000002000: softirq_entry: vec=9 [action=RCU]" "by hand: the other machine's"
is "$(ls -d "$tmp"/hand*spool 2>/dev/null)" "" "by hand: no spool is left"

# With a copy of the kernel's events: a field that they lack here, and a name that they have
mkdir -p "$tmp/events/sched/sched_stat_runtime" "$tmp/events/irq/softirq_entry"
cat >"$tmp/events/sched/sched_stat_runtime/format" <<'END'
name: sched_stat_runtime
ID: 300
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] comm;	offset:8;	size:4;	signed:0;
	field:pid_t pid;	offset:12;	size:4;	signed:1;
	field:u64 runtime;	offset:16;	size:8;	signed:0;

print fmt: "comm=%s pid=%d runtime=%Lu [ns]", __get_str(comm), REC->pid, (unsigned long long)REC->runtime
END
import -q --perfetto "$tmp/hand.pftrace" --formats "$tmp/events" -o "$tmp/formats.dat"
like "$(report "$tmp/formats.dat")" 'sched_stat_runtime: comm=rcu pid=15 runtime=99 \[ns\]' "--formats: the kernel's format"
is "$(report "$tmp/formats.dat" | grep -v runtime)" "$(report "$tmp/hand.dat" | grep -v runtime)" "--formats: nothing else changes"

# x86's kvm events have none of the fields that Perfetto has for arm64's: they say nothing, not 0. Another clock.
wire >"$tmp/x86.pftrace" <<'END'
print source(1, bundle(0, n(5, 3), event(1_000, 1, 376), event(2_000, 1, 377), event(3_000, 1, 399, n(1, 6))));
END
import --perfetto "$tmp/x86.pftrace" -o "$tmp/x86.dat"
is "$(report "$tmp/x86.dat" | sed -nE 's/.*: (kvm_)/\1/p')" "kvm_entry:
kvm_exit:
kvm_userspace_exit: reason=6" "what Perfetto did not keep is not made up"
like "$(cat "$tmp/err")" 'warning: the clock of .*x86.dat is local, not boot' "another clock: a warning"

if command -v zstd >/dev/null; then
	zstd -q -f "$tmp/hand.pftrace" -o "$tmp/packed"
	wire >"$tmp/zstd.pftrace" <<<'local $/; open my $in, "<", "'"$tmp"'/packed"; binmode $in; print packet(b(133, <$in>))'
	import -q --perfetto "$tmp/zstd.pftrace" -o "$tmp/zstd.dat"
	# a packet of packets in one of packets is refused
	is "$(report "$tmp/zstd.dat")" "$(report "$tmp/hand.dat" | grep -v print:)" "packets that zstd has compressed"
else
	skip 1 "no zstd"
fi

# ... and one that no record can hold
{
	printf 'name: irq_handler_entry\nID: 9\nformat:\n\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\n'
	printf '\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:char name[40000];\toffset:12;\tsize:40000;\tsigned:0;\n'
	printf '\nprint fmt: "%%d", REC->irq\n'
} >"$tmp/large"
mkdir -p "$tmp/events/irq/irq_handler_entry" && mv "$tmp/large" "$tmp/events/irq/irq_handler_entry/format"
import -q --perfetto "$tmp/hand.pftrace" --formats "$tmp/events" -o "$tmp/large.dat"
like "$(report "$tmp/large.dat")" 'irq_handler_entry: irq=12 name=kvm guest vtimer$' "--formats: a record larger than any is not believed"

# ---- what is wrong with packets --------------------------------------------------------------------

for at in 1 2 3 17 100 333 500 700; do
	head -c $at "$tmp/hand.pftrace" >"$tmp/cut.pftrace"
	import --perfetto "$tmp/cut.pftrace" -o "$tmp/cut.dat"
	[ "$status" -lt 2 ] && [ -s "$tmp/err" ]
	ok $? "cut at $at: status $status, and it is said" || diag "$(cat "$tmp/err")"
done
like "$(cat "$tmp/err")" 'ends with what is no whole packet: what is before it was read' "cut: ... as what it is"

wire >"$tmp/odd.pftrace" <<'END'
my $good = event(5_000, 1, 24, n(1, 1));
print source(1, bundle(0, $good)),
	source(1, b(1, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),		# a number of 11 bytes
	source(1, bundle(0, "\x12\x7f")),						# an event longer than its bundle
	source(1, bundle(0, b(4, p(1, 1, 2), p(2, 0)))),				# lists of two lengths
	source(1, bundle(0, b(4, p(1, 6_000), p(2, 0), p(3, 1), p(4, 1), p(6, 9)))),	# a text that is not there
	packet(b(50, compress(packet(b(50, compress(source(1, bundle(0, $good)))))))),	# twice packed
	packet(b(50, 'nothing')),
	packet(b(50, compress("\0" x (80 << 20)))),					# 80 MiB
	source(1, bundle(0, event(4_000, 1, 24, n(1, 2)))),				# earlier
	source(1, bundle(0, event(18446744073709551615, 1, 24, n(1, 3)))),
	source(1, bundle(0, event(7_000, 1, 3, b(2, 'x' x 9000)))),
	source(1, bundle(0, event(8_000, 1, 327, b(1, 'a b'), b(2, b(1, 'c'), n(4, 1))))),
	source(1, n(42, 1), bundle(0, event(9_000, 1, 24, n(1, 4)))),
	# the hypervisor's: a dropped packet, a bundle of nothing but a loss
	source(2, bundle(0, event(1_000, undef, 588))), source(2, n(42, 1), bundle(0, event(2_000, undef, 584))),
	source(2, bundle(0, n(3, 1))), source(2, bundle(0, event(3_000, undef, 588)));
END
import --perfetto "$tmp/odd.pftrace" -o "$tmp/odd.dat"
is "$status" 0 "odd packets: exit status"
is "$(grep warning "$tmp/err")" "hyptrace: warning: events that are not known are left out: a b (1)
hyptrace: warning: 7 packets or events made no sense
hyptrace: warning: 1 events are left out
hyptrace: warning: 2 events are older than one ahead of them on their CPU
hyptrace: warning: 1 texts are cut, to what a record holds
hyptrace: warning: events were lost at 3 places; the trace does not have how many" "odd packets: what is said"
like "$(cat "$tmp/err")" ' 8 events, ' "odd packets: the others are there"
is "$("$hyptrace" report "$tmp/odd.dat" 2>/dev/null | grep -c 'DROPPED')" 3 "odd packets: a dropped packet is a loss"

# a million texts, and nothing that names them; a bundle of more events than any has
wire >"$tmp/many.pftrace" <<'END'
print source(1, bundle(0, b(4, b(5, 'task') x 1_000_000, p(1, 6_000), p(2, 0), p(3, 1), p(4, 1), p(6, 999_999)))),
	source(1, bundle(0, "\x12\0" x 1_100_000));
END
import --perfetto "$tmp/many.pftrace" -o "$tmp/many.dat"
is "$status:$(grep -c 'next_comm=task' <(report "$tmp/many.dat"))" 0:1 "a million interned texts"
like "$(cat "$tmp/err")" 'warning: 1 packets or events made no sense' "more than a million events in a bundle"

# ---- there and back --------------------------------------------------------------------------------------

# back FILE: what Perfetto's messages do not have is taken out of both
back() {
	local name=${1##*/}

	"$hyptrace" export -q --perfetto "$tmp/$name.pftrace" "$1"
	import --perfetto "$tmp/$name.pftrace" -o "$tmp/back-$name"
	is "$status" 0 "$1: exit status" || diag "$(cat "$tmp/err")"
	is "$(report "$tmp/back-$name" | wc -l)" "$(report "$1" | wc -l)" "$1: as many lines"
	is "$(report "$tmp/back-$name" | without | md5sum)" "$(report "$1" | without | md5sum)" \
		"$1: time, CPU, task, event and fields are the same" ||
		diag "$(diff <(report "$tmp/back-$name" | without) <(report "$1" | without) | head)"
}

# hyp_enter and hyp_exit have no fields in Perfetto; events without a message there are lists of values
without() {
	sed -E 's/(hyp_(enter|exit):).*/\1/
		s/((hrtimer_[a-z_]*|timer_[a-z_]*|workqueue_[a-z_]*|sched_stat_[a-z]*|kvm_get_timer_map|kvm_userspace_exit|kvm_sys_access|kvm_wfx_arm64|sched_process_exit|voff):).*/\1/'
}

back "$data/lab-protected.dat"
back "$data/lab-nvhe.dat"
back "$data/raw-arm64.dat"
back "$data/lab-stock-arm64.dat"
"$hyptrace" export -q --perfetto "$tmp/pair.pftrace" "$data/guest/trace.dat" "$data/guest/trace-Guest.dat"
import --perfetto "$tmp/pair.pftrace" -o "$tmp/pair.dat"
is "$(ls "$tmp"/pair*.dat | sed "s|$tmp/||")" "pair-Guest.dat
pair.dat" "a host and its guest: two files"
is "$(report "$tmp/pair-Guest.dat" | grep -c 'sched_switch:')" "$(report "$data/guest/trace-Guest.dat" | grep -c 'sched_switch:')" \
	"... with the guest's events"
like "$("$hyptrace" sync "$tmp/pair.dat" "$tmp/pair-Guest.dat" 2>&1)" 'hard, by hyp windows, 2 of 2 vCPUs matched' "... that sync puts on one timeline"
like "$("$hyptrace" stat "$tmp/pair.dat" 2>&1)" '^WFx +[0-9]' "... stat tells its exits"
like "$("$tools/loadkshark" "$tmp/pair.dat" 2>&1)" ' hyp: 244 entries' "... and libkshark loads it"

# ---- Perfetto's own -----------------------------------------------------------------------------------------

# events FILE: how many of each
events() {
	report "$1" | sed -nE 's/.* [0-9]+\.[0-9]{9}: ([a-z_0-9]+):.*/\1/p' | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)/\2 \1/'
}

# Numbers of trace_processor, which drops each CPU's first sched_switch, and the sched_waking before it
import --perfetto "$data/perfetto/hyp.pftrace" -o "$tmp/hyp.dat"
is "$status:$(grep -c warning "$tmp/err")" 0:0 "a host and its hypervisor: nothing is missing" || diag "$(cat "$tmp/err")"
is "$(events "$tmp/hyp.dat")" "host_mem_abort 136
hyp_enter 1942
hyp_exit 1943
irq_handler_entry 403
kvm_entry 119
kvm_exit 119
print 6
sched_process_exit 6
sched_stat_runtime 321
sched_switch 161
sched_waking 124
softirq_entry 345
task_newtask 7
task_rename 6
workqueue_execute_start 16" "... all events are there"
is "$(report "$tmp/hyp.dat" | grep -c '^hyp:')" 4021 "... the hypervisor's in a buffer of their own"
is "$(report "$tmp/hyp.dat" | grep -Eo ' [0-9]+\.[0-9]{9}: ' | tr -d ' :' | sort -c -s -n 2>&1)" "" "... in one order"
like "$(report "$tmp/hyp.dat")" '^CPU 0/KVM-111 \[000\] [0-9.]+: kvm_exit: TRAP: HSR_EC: 0x0018 \(SYS64\), PC: 0xffffffc080435a9c$' "... as the kernel prints them"
like "$(report "$tmp/hyp.dat")" 'workqueue_execute_start: work struct 0x[0-9a-f]+: function vmstat_update$' "... with names of symbols"
is "$(report "$tmp/hyp.dat" | grep -c 'hyp_.*<\.\.\.>')" 0 "... and of tasks"
like "$("$hyptrace" stat "$tmp/hyp.dat" 2>&1)" '^CPU 0/KVM-111 +[0-9.]+%' "... stat tells the vCPU's time"
like "$("$tools/loadkshark" "$tmp/hyp.dat" 2>&1)" ' hyp: 4021 entries' "... libkshark loads it"
# flame: the task of each visit by the last sched_switch of its CPU, while the host's events go on; else unknown
report "$tmp/hyp.dat" | perl -e 'my (%since, %runs, %ns, $last, @v);
	while (<STDIN>) {
		my ($hyp, $pid, $cpu, $s, $ns, $event, $rest) = /^(hyp: +)?.*?-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\w+):(.*)/ or next;
		push @v, [ $hyp ? 1 : 0, $cpu, $s * 1e9 + $ns, $event, $rest, $pid ];
		$last = $v[-1][2] if !$hyp;
	}
	for (@v) {
		my ($hyp, $cpu, $t, $event, $rest, $pid) = @$_;
		$runs{$cpu} = $1 if $event eq "sched_switch" && $rest =~ / next_pid=(\d+)/;
		$since{$cpu} = [ $t, $pid || ($t <= $last ? $runs{$cpu} // "?" : "?") ] if $event eq "hyp_enter";
		my $v = $event eq "hyp_exit" && delete $since{$cpu} or next;
		$ns{ $v->[1] eq "?" ? "[unknown]" : $v->[1] ? "tasks" : "swapper" } += $t - $v->[0];
	}
	print "$_ $ns{$_}\n" for sort keys %ns;' >"$tmp/slow"
"$hyptrace" flame -q --idle "$tmp/hyp.dat" | perl -ne '/;(\[unknown\]|swapper)?.*;\[hyp\].* (\d+)$/ or next; $ns{ $1 // "tasks" } += $2;
	END { print "$_ $ns{$_}\n" for sort keys %ns }' >"$tmp/ours"
same "$tmp/ours" "$tmp/slow" "flame: time in the hypervisor is idle only where sched_switch says so"
like "$("$hyptrace" flame --svg - "$tmp/hyp.dat" 2>/dev/null)" '>time in the hypervisor: ' "... and is not called functions' time"
import --perfetto "$data/perfetto/lost.pftrace" -o "$tmp/lost.dat"
like "$(cat "$tmp/err")" ' lost at 7 places; 4074 in total, by the kernel.s statistics' "losses: they are counted"
is "$(trace-cmd report --stat "$tmp/lost.dat" 2>/dev/null | grep '^overrun' | tr '\n' ' ')" 'overrun: 1067 overrun: 1595 overrun: 136 overrun: 1276 ' \
	"losses: by CPU, since the trace began, as trace_processor has ftrace_cpu_overrun_delta"
is "$("$hyptrace" stat --show buffers,lost "$tmp/lost.dat" | sed 's/ \+/ /g' | grep '^- ' | cut -d ' ' -f 1-5 | tr '\n' '|')" \
	'- 4 2956 - 7|- 0 - 2|- 1 - 3|- 2 - 1|- 3 - 1|' "losses: of unknown size are not 0 in stat"
"$hyptrace" sql "$tmp/lost.dat" "SELECT 1;" >"$tmp/out" 2>&1
grep -q 'built without' "$tmp/out" || is "$("$hyptrace" sql -q --csv "$tmp/lost.dat" "SELECT idx, value FROM stats WHERE name = 'ftrace_cpu_overrun_delta' ORDER BY 1;" | tr '\n' ' ')" \
	'rows,idx,value rows,0,1067 rows,1,1595 rows,2,136 rows,3,1276 ' "losses: ... and in sql's stats"
is "$(report "$tmp/lost.dat" | grep -c 'EVENTS DROPPED')" 7 "losses: they are in the file"
is "$(events "$tmp/lost.dat" | tr '\n' ' ')" "cpu_idle 248 hrtimer_expire_entry 104 hrtimer_start 225 ipi_entry 63 ipi_exit 63 ipi_raise 39 ipi_send_cpu 39 \
irq_handler_entry 172 irq_handler_exit 173 kvm_arm_clear_debug 82 kvm_arm_set_dreg32 164 kvm_arm_setup_debug 81 kvm_entry 82 \
kvm_exit 82 kvm_get_timer_map 130 kvm_handle_sys_reg 17 kvm_sys_access 15 kvm_timer_emulate 42 kvm_timer_restore_state 42 \
kvm_timer_save_state 40 kvm_timer_update_irq 50 kvm_vcpu_wakeup 41 kvm_wfx_arm64 41 print 1 sched_migrate_task 5 \
sched_process_free 1 sched_switch 121 sched_waking 52 softirq_entry 120 softirq_exit 120 softirq_raise 121 sys_enter 320 \
vgic_update_irq_pending 50 workqueue_execute_end 5 workqueue_execute_start 5 " "losses: all other events are there"

# ---- what cannot be ------------------------------------------------------------------------------------------

import --perfetto README.md -o "$tmp/no.dat"
refused 1 "'README.md' is no Perfetto trace" "another file"
: >"$tmp/empty"
import --perfetto "$tmp/empty" -o "$tmp/no.dat"
refused 1 "is no Perfetto trace" "an empty file"
wire >"$tmp/empty" <<<"print packet(n(8, 1))"
import --perfetto "$tmp/empty" -o "$tmp/no.dat"
refused 1 "has no events of a kernel or hypervisor" "a trace of other things"
import --perfetto "$tmp/no-such" -o "$tmp/no.dat"
refused 1 'no-such.*No such file' "no file"
import --perfetto "$tmp/hand.pftrace" --formats "$tmp/no-such" -o "$tmp/no.dat"
refused 1 'no-such.*No such file' "no formats"
import --perfetto "$tmp/hand.pftrace"
refused 2 '\-o is needed' "no output"
import --perfetto "$tmp/hand.pftrace" -i "$data/lab-nvhe.dat" -o "$tmp/no.dat"
refused 2 'perfetto is the only input' "another input beside it"
import --formats "$tmp" --hyp README.md -i "$data/lab-nvhe.dat" -o "$tmp/no.dat"
refused 2 'formats is for --perfetto' "--formats alone"
wire >"$tmp/machines" <<'END'
print packet(bundle(0, event(1, 1, 24, n(1, 1))), n(98, $_)) for 1 .. 65;
END
import --perfetto "$tmp/machines" -o "$tmp/no.dat"
refused 1 'more than 64 machines' "too many machines"
wire >"$tmp/nul" <<'END'
print packet(b(45, b(17, "\0")), n(98, 5)), packet(bundle(0, event(1, 1, 24, n(1, 1))), n(98, 5)),
	packet(bundle(0, event(1, 1, 24, n(1, 1))));
END
import --perfetto "$tmp/nul" -o "$tmp/nul.dat"
is "$status:$(cd "$tmp" && echo nul*.dat)" "0:nul-machine-5.dat nul.dat" "a machine whose name has a NUL has none"
cp "$tmp/hand.pftrace" "$tmp/same"
import --perfetto "$tmp/same" -o "$tmp/same"
is "$status" 1 "the input as output: exit status"
like "$(cat "$tmp/err")" 'is the input' "... message"
same "$tmp/same" "$tmp/hand.pftrace" "... and it is as it was"

done_testing
