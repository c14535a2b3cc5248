#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace flame: made-up captures with known stacks and calls, real ones against slow
# references; its picture in a browser where Chromium is installed.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/flame || diag "cannot make $1"
}

flame() { # ARGUMENTS: standard output
	"$hyptrace" flame -q "$@"
}

said() { # ARGUMENTS: what is said beside it
	"$hyptrace" flame -o /dev/null "$@" 2>&1
}

fails() { # STATUS PATTERN NAME ARGUMENT...
	local status=$1 pattern=$2 name=$3 err
	shift 3
	err=$("$hyptrace" flame "$@" 2>&1 >/dev/null)
	is "$?" "$status" "$name: status"
	like "$err" "$pattern" "$name: message"
}

# ---- stacks that were recorded -------------------------------------------------------

symbols='symbol ffff800080001000 do_idle
symbol ffff800080002000 el0_svc
symbol ffff800080003000 ksys_read
symbol ffff800080004000 schedule
symbol ffff800080005000 vhost_worker [vhost]
symbol ffff800080006000 kvm_vcpu_run
symbol ffff800080007000 __kvm_nvhe_handle_trap
symbol ffff800080008000 __kvm_nvhe_pkvm_map
symbol ffff800080009000 end'

host=$tmp/host.dat
make_trace "$host" <<E
id 11
guest Guest 22
$symbols
task 7 reader
task 8 a;b "c"\x1b[1m
maps 7 /usr/lib/libc.so.6 10000-20000 20000-30000
1000 0 7 sched_waking 8
1001 0 7 kernel_stack 2 @ksys_read+8 @el0_svc+4
1002 0 7 user_stack 7 0x10100 0x21200 0x7fff0000
2000 0 7 sched_switch 7 1 8
2001 0 7 kernel_stack 3 @schedule @ksys_read+8 @el0_svc+4
2500 1 9 sched_waking 7
2501 1 9 user_stack 9 0x10100
3000 1 8 sched_waking 7
3001 1 8 kernel_stack 1 @vhost_worker+12
4000 1 0 sched_switch 0 0 8
4001 1 0 kernel_stack 2 @schedule @do_idle
# another one's user stack: not of this event
5000 0 7 sched_waking 8
5001 0 7 kernel_stack 2 @ksys_read+9 @el0_svc+4
5002 0 8 user_stack 8 0x999
E
guest=$tmp/guest.dat
make_trace "$guest" <<E
id 22
shift 11
symbol ffffffc008001000 guest_main
symbol ffffffc008002000 guest_end
task 7 inner
3500 0 7 sched_waking 1
3501 0 7 kernel_stack 10 @guest_main 0xffffffc008000000 @guest_main+1 @guest_main @guest_main @guest_main @guest_main @guest_main @guest_main @guest_main
E

deep='guest_main;guest_main;guest_main;guest_main;guest_main;guest_main;guest_main;guest_main;0xffffffc008000000;guest_main'
is "$(flame "$host" "$guest")" "guest:Guest;inner;$deep 1
host;[unknown]-9;0x10100 1
host;a:b \"c\"?[1m;0x999 1
host;a:b \"c\"?[1m;vhost_worker [vhost] 1
host;reader;0x7fff0000;libc.so.6+0x11200;libc.so.6+0x100;el0_svc;ksys_read 1
host;reader;el0_svc;ksys_read 1
host;reader;el0_svc;ksys_read;schedule 1" "stacks: kernel and user of one event are one, guests have a name, the idle task is left out"
is "$(said "$host")" 'hyptrace: left out: 1 samples of the idle task (--idle)' "... which is said"
is "$(flame --idle --task swapper "$host")" 'host;swapper;do_idle;schedule 1' "--idle has it"
is "$(flame -m Guest "$host" "$guest" | cut -c1-17)" 'guest:Guest;inner' "--machine"
is "$(flame -m guest:Guest "$host" "$guest" | cut -c1-17)" 'guest:Guest;inner' "... as its frame is called"
is "$(flame -t reader-7 "$host")" "$(flame -t 7 "$host")" "--task as --pids prints it"
is "$(flame -t '[unknown]-9' "$host")" "host;[unknown]-9;0x10100 1" "--task: a name that would be a wildcard is a name, too"
is "$(flame -m 'h*' -t 8 "$host" "$guest")" 'host;a:b "c"?[1m;0x999 1
host;a:b "c"?[1m;vhost_worker [vhost] 1' "--task by pid, --machine by wildcard"
is "$(flame --task 're*' --pids "$host" "$guest" | cut -d';' -f2 | uniq)" 'reader-7' "--task by wildcard, --pids"
is "$(flame -e sched_switch "$host" "$guest")" 'host;reader;el0_svc;ksys_read;schedule 1' "--event: stacks behind such events"
is "$(flame -e 'sched_waking:pid==8' "$host")" 'host;reader;0x7fff0000;libc.so.6+0x11200;libc.so.6+0x100;el0_svc;ksys_read 1
host;reader;el0_svc;ksys_read 1' "--event with a filter"
is "$(flame --json "$guest")" "{
  \"schema\": 1,
  \"samples\": [
    {\"stack\":\"guest:guest;inner;$deep\",\"samples\":1}
  ],
  \"notes\": []
}" "--json"
is "$("$hyptrace" flame --csv -t 7 -m host "$host")" 'samples,stack,samples
samples,host;reader;0x7fff0000;libc.so.6+0x11200;libc.so.6+0x100;el0_svc;ksys_read,1
samples,host;reader;el0_svc;ksys_read,1
samples,host;reader;el0_svc;ksys_read;schedule,1' "--csv"

# All in one run, or many with an event at each end: the same.
{
	echo "$symbols"
	for ((i = 0; i < 3000; i++)); do
		echo "$((i * 10 + 1000)) $((i % 3)) 7 sched_waking 8"
		echo "$((i * 10 + 1001)) $((i % 3)) 7 kernel_stack 1 @schedule"
		echo "$((i * 10 + 1002)) $((i % 3)) 7 user_stack 7 0x10100"
	done
} >"$tmp/script"
make_trace "$tmp/many.dat" <"$tmp/script"
is "$(flame "$tmp/many.dat")" "host;[unknown]-7;0x10100;schedule 3000" "stacks over the ends of runs are joined"
is "$(flame -e sched_waking "$tmp/many.dat")" "host;[unknown]-7;0x10100;schedule 3000" "... and so are events and their stacks"
is "$(flame -e sched_switch "$tmp/many.dat" 2>/dev/null)" "" "... and there is none behind others"

make_trace "$tmp/synth.dat" <<E
$symbols
1000 0 7 slow 123 @schedule @ksys_read 0 @el0_svc
2000 0 7 slow 123 2 @schedule @ksys_read
3000 0 7 slow 123 0x5000
4000 0 7 slow 5
E
is "$(flame "$tmp/synth.dat")" 'host;[unknown]-7;0x5000 1
host;[unknown]-7;ksys_read;schedule 2' "stacks in fields of synthetic events, with their length before them or not"
is "$(flame -e 'slow:lat==123' "$tmp/synth.dat" | tail -1)" 'host;[unknown]-7;ksys_read;schedule 2' "... by a filter on the event itself"

make_trace "$tmp/names.dat" <<E
$symbols
1000 0 7 sched_switch 7 1 8 fleeting
1100 0 8 kernel_stack 1 @schedule
1200 0 9 kernel_stack 1 @schedule
E
is "$(flame "$tmp/names.dat")" 'host;[unknown]-9;schedule 1
host;fleeting;schedule 1' "a task that the file's table does not have is called as the switch to it says"

# longer than a run of records, of which the last name counts
busy() { # FROM
	echo "$(($1 - 1)) 0 7 kernel_stack 1 @do_idle"
	for ((i = $1; i < $1 + 3000; i++)); do
		echo "$i 1 7 sched_waking 8"
	done
}
{
	echo "$symbols"
	echo "task 8 old"
	echo "1000 0 8 kernel_stack 1 @schedule"
	busy 2000
	echo "6000 0 8 sched_process_exec 8 /usr/bin/new-by-its-exec-x"
	echo "6001 0 8 kernel_stack 1 @schedule"
	echo "6002 0 8 kernel_stack 1 @ksys_read"
	busy 7000
	echo "11000 0 7 sched_switch 7 1 8 switched"
	echo "11001 0 8 kernel_stack 1 @schedule"
} >"$tmp/script"
make_trace "$tmp/renamed.dat" <"$tmp/script"
is "$(flame -t 8 "$tmp/renamed.dat")" 'host;new-by-its-exec;ksys_read 1
host;new-by-its-exec;schedule 1
host;old;schedule 1
host;switched;schedule 1' "an exec renames a task, as a later switch to it does"
is "$(flame -t 'new*' "$tmp/renamed.dat" | wc -l)" 2 "... which --task sees"

# ---- functions' own time ---------------------------------------------------------------

make_trace "$tmp/graph.dat" <<E
$symbols
task 7 reader
task 8 other
# of this one the begin is not there, and what it called counts no less
900 0 8 funcgraph_entry @schedule 1
950 0 8 funcgraph_exit @schedule 1 0 900 940
990 0 8 funcgraph_exit @ksys_read 0 0 100 990
1000 0 7 funcgraph_entry @el0_svc 0
1100 0 7 funcgraph_entry @ksys_read 1
1200 0 7 funcgraph_entry @schedule 2
1300 0 7 sched_switch 7 1 8
1310 0 8 funcgraph_entry @el0_svc 0
1320 0 8 funcgraph_exit @el0_svc 0 0 1310 1320
1800 0 8 sched_switch 8 1 7
1900 0 7 funcgraph_exit @schedule 2 0 1200 1900
2000 0 7 funcgraph_entry @schedule 2
2050 1 7 funcgraph_exit @schedule 2 0 2000 2050
2100 1 7 funcgraph_exit @ksys_read 1 0 1100 2100
2500 1 7 funcgraph_exit @el0_svc 0 0 1000 2500
2600 2 0 funcgraph_entry @do_idle 0
2700 2 0 funcgraph_exit @do_idle 0 0 2600 2700
3000 0 7 funcgraph_entry @el0_svc 0
3100 0 7 funcgraph_entry @ksys_read 1
lost 0 4
3200 0 7 funcgraph_exit @ksys_read 1 0 3100 3200
3300 0 7 funcgraph_entry @vhost_worker 1
3400 0 7 funcgraph_exit @vhost_worker 1 0 3300 3400
4000 0 7 funcgraph_entry @el0_svc 0
E
is "$(flame "$tmp/graph.dat")" 'host;other;[unknown];schedule 40
host;other;el0_svc 10
host;reader;[unknown];vhost_worker [vhost] 100
host;reader;el0_svc 500
host;reader;el0_svc;ksys_read 250
host;reader;el0_svc;ksys_read;schedule 250' "function_graph: own times, without those asleep and those in which events were lost"
is "$(flame -w count "$tmp/graph.dat")" 'host;other;[unknown];schedule 1
host;other;el0_svc 1
host;reader;[unknown];vhost_worker [vhost] 1
host;reader;el0_svc 1
host;reader;el0_svc;ksys_read 1
host;reader;el0_svc;ksys_read;schedule 2' "... and calls"
is "$(said "$tmp/graph.dat")" 'hyptrace: left out: 100ns of the idle task (--idle)
hyptrace: left out: 500ns in which tasks did not run
hyptrace: left out: 3 calls of which only the begin or the end is there
hyptrace: left out: 2 calls in which events were lost
hyptrace: 4 events were lost: their stacks are missing' "... and it is said what is left out"

make_trace "$tmp/function.dat" <<E
$symbols
1000 0 7 function @ksys_read @el0_svc+4
1010 0 7 function @ksys_read @el0_svc+8
1020 0 7 func_repeats @ksys_read @el0_svc+8 40
1030 0 0 function @schedule @do_idle
E
is "$(flame "$tmp/function.dat")" 'host;[unknown]-7;el0_svc;ksys_read 42' "the function tracer's records"

# ---- the hypervisor ---------------------------------------------------------------------

make_trace "$tmp/hyp.dat" <<E
$symbols
task 7 CPU 0/KVM
1000 0 7 funcgraph_entry @kvm_vcpu_run 0
3000 0 7 funcgraph_exit @kvm_vcpu_run 0 0 1000 3000
buffer hyp
# the host's function calls the hypervisor, which runs the guest for 700 ns
1100 0 7 hyp_enter 1 0
1200 0 7 func @__kvm_nvhe_handle_trap
1210 0 7 func @__kvm_nvhe_pkvm_map
1260 0 7 func_ret @__kvm_nvhe_pkvm_map
1300 0 7 hyp_exit 7 0
2000 0 7 hyp_enter 5 0
2050 0 7 func_ret @__kvm_nvhe_handle_trap
E
is "$(flame "$tmp/hyp.dat")" 'host;CPU 0/KVM;kvm_vcpu_run 1150
host;CPU 0/KVM;kvm_vcpu_run;[hyp];__kvm_nvhe_handle_trap 100
host;CPU 0/KVM;kvm_vcpu_run;[hyp];__kvm_nvhe_handle_trap;__kvm_nvhe_pkvm_map 50' \
	"the hypervisor's functions stand on the host's that called it, without the guest's time"

make_trace "$tmp/reasons.dat" <<E
$symbols
1000 0 7 funcgraph_entry @kvm_vcpu_run 0
3000 0 7 funcgraph_exit @kvm_vcpu_run 0 0 1000 3000
buffer hyp
1100 0 7 hyp_enter 1 0
1300 0 7 hyp_exit 7 0
2000 0 7 hyp_enter 5 0
2050 0 7 hyp_exit 6 0
2060 0 7 hyp_exit 6 0
2100 0 7 hyp_enter 9 0
2110 0 7 hyp_enter 9 0
2120 0 7 hyp_exit 9 0
4000 1 0 hyp_enter 1 0
4500 1 0 hyp_exit 6 0
E
is "$(flame "$tmp/reasons.dat")" 'host;[unknown];[hyp];hvc 500
host;[unknown]-7;kvm_vcpu_run 1740
host;[unknown]-7;kvm_vcpu_run;[hyp] 10
host;[unknown]-7;kvm_vcpu_run;[hyp];guest_exit 50
host;[unknown]-7;kvm_vcpu_run;[hyp];hvc 200' "without functions, its time by reason; pid 0 alone is not idle"

make_trace "$tmp/idle.dat" <<E
1000 0 7 sched_switch 7 1 0
1000 1 7 sched_switch 7 1 0
2000 1 0 sched_switch 0 0 9
lost 0 4
5000 0 0 sched_switch 0 0 0
6000 1 9 sched_switch 9 1 0
buffer hyp
900 0 0 hyp_enter 1 0
910 0 0 hyp_exit 6 0
1100 0 0 hyp_enter 1 0
1200 0 0 hyp_exit 6 0
3000 1 0 hyp_enter 1 0
3007 1 0 hyp_exit 6 0
4000 0 0 hyp_enter 1 0
4020 0 0 hyp_exit 6 0
5500 0 0 hyp_enter 1 0
5503 0 0 hyp_exit 6 0
7000 0 0 hyp_enter 1 0
7040 0 0 hyp_exit 6 0
E
is "$(flame --idle "$tmp/idle.dat")" 'host;[unknown];[hyp];hvc 170
host;[unknown]-9;[hyp];hvc 7
host;swapper;[hyp];hvc 3' "idle, or another task, where sched_switch says so; unknown before it, around losses, and after the file"

like "$(flame --svg - "$tmp/idle.dat")" '>idle.dat: time in the hypervisor<' "... drawn with what its times are of"

# A slow reference: time from hyp_enter to the CPU's next hyp_exit, of real captures. Tasks are called as the last
# sched_switch or sched_process_exec has them.
by_reason() { # FILE
	"$hyptrace" export --json "$@" 2>/dev/null | jq -r 'select(.guest == null) | [.event, .time, .cpu, .pid, .comm, .info, .fields.next_pid, .fields.next_comm, .fields.prev_pid, .fields.prev_comm, .fields.filename] | @tsv' |
		perl -e 'my (%in, %sum, %runs, %called, $last);
		my @all = map { chomp; my %e; @e{qw(event time cpu pid comm info next_pid next_comm prev_pid prev_comm file)} = split /\t/, $_, -1; \%e } <>;
		$_->{event} && $_->{event} !~ /^hyp_/ and $last = $_->{time} for @all;
		for my $e (@all) {
			$runs{ $e->{cpu} } = $e->{next_pid} if $e->{event} eq "sched_switch";
			$called{ $e->{prev_pid} } = $e->{prev_comm} if length $e->{prev_comm};
			$called{ $e->{next_pid} } = $e->{next_comm} if length $e->{next_comm};
			$called{ $e->{pid} } = substr $e->{file} =~ s,.*/,,r, 0, 15 if $e->{event} eq "sched_process_exec";
			$e->{event} =~ /^hyp_(enter|exit)$/ or next;
			if ($1 eq "enter") {
				my ($reason) = $e->{info} =~ /reason=(\w+)/;
				my $machine = "host";
				my $task = $called{ $e->{pid} } || $e->{comm} || "[unknown]-$e->{pid}";
				my $idle = defined $runs{ $e->{cpu} } && !$runs{ $e->{cpu} } && $e->{time} <= $last;
				$task = "[unknown]" if !$e->{pid};
				$in{ $e->{cpu} } = [ $e->{pid} || !$idle ? "$machine;$task;[hyp];$reason" : undef, $e->{time} ];
			} elsif (my $i = delete $in{ $e->{cpu} }) {
				$sum{ $i->[0] } += $e->{time} - $i->[1] if defined $i->[0];
			}
		}
		print "$_ $sum{$_}\n" for sort keys %sum'
}
for file in tests/data/lab-protected.dat tests/data/lab-nvhe.dat tests/data/guest/trace.dat tests/data/functions/trace.dat; do
	expected=$(by_reason "$file")
	is "$(flame "$file" | LC_ALL=C sort)" "$expected" "$file: the hypervisor's time by reason is the reference's"
	[ "$(wc -l <<<"$expected")" -ge 4 ]
	ok $? "... which is more than a line or two"
done

# ---- the place of samples: the visits of their CPU ---------------------------------------------

# Samples of a timer of 1 kHz that is due at whole milliseconds, taken later. Those of the user's code show when.
{
	echo "$symbols"
	printf '%s\n' "task 7 CPU 0/KVM" "task 8 user" "buffer profile"
	for ((i = 1000; i < 1010; i++)); do echo "${i}000000 0 8 sample 8 2 1000 user @el0_svc"; done
	cat <<'E'
# due in hvc
1011012000 0 7 sample 7 1 1000 CPU\x200/KVM @kvm_vcpu_run
# in the guest, which it leaves at once
1012010000 0 7 sample 7 4 1000 CPU\x200/KVM
# in guest_exit
1013050000 0 7 sample 7 1 1000 CPU\x200/KVM @kvm_vcpu_run
# in the host, of a vCPU that is loaded
1014050000 0 7 sample 7 4 1000 CPU\x200/KVM
# at the edge of a visit
1015040000 0 7 sample 7 1 1000 CPU\x200/KVM @kvm_vcpu_run
# in the guest, which no longer has the CPU
1016030000 0 8 sample 8 1 1000 user @ksys_read
# in the host
1017000000 0 8 sample 8 2 1000 user @el0_svc
# where events were lost
1018000000 0 8 sample 8 2 1000 user @el0_svc
# in the host
1020000000 0 8 sample 8 1 1000 user @ksys_read
# of an event without a fixed rate
1021000000 0 8 sample 8 1 0 user @vhost_worker
# on a CPU without visits
1011012000 1 8 sample 8 4 1000 user
buffer hyp
1010998000 0 0 hyp_enter 1 0
1011009000 0 0 hyp_exit 7 7
1012002000 0 0 hyp_enter 5 7
1012006000 0 0 hyp_exit 6 0
1012900000 0 0 hyp_enter 1 0
1012910000 0 0 hyp_exit 7 7
1012980000 0 0 hyp_enter 5 7
1013020000 0 0 hyp_exit 6 0
1013950000 0 0 hyp_enter 1 0
1013970000 0 0 hyp_exit 6 0
1014980000 0 0 hyp_enter 1 0
1014999500 0 0 hyp_exit 7 7
1015010000 0 0 hyp_enter 5 7
1015030000 0 0 hyp_exit 6 0
1015900000 0 0 hyp_enter 1 0
1015910000 0 0 hyp_exit 7 7
1016005000 0 0 hyp_enter 5 7
1016010000 0 0 hyp_exit 6 0
1017500000 0 0 hyp_enter 1 0
1017600000 0 0 hyp_exit 6 0
lost 0 3
1019500000 0 0 hyp_enter 1 0
1019600000 0 0 hyp_exit 6 0
E
} >"$tmp/script"
make_trace "$tmp/places.dat" <"$tmp/script"
places='host;CPU 0/KVM;[guest] 2
host;CPU 0/KVM;[host] 1
host;CPU 0/KVM;[hyp];guest_exit 1
host;CPU 0/KVM;[hyp];hvc 1
host;CPU 0/KVM;[undecided] 1
host;user;[guest] 1
host;user;[undecided] 1
host;user;el0_svc 11
host;user;ksys_read 1
host;user;vhost_worker [vhost] 1'
is "$(flame "$tmp/places.dat")" "$places" "samples stand where their CPUs were as they came due"
is "$(awk '{ n += $NF } END { print n }' <<<"$places") $("$hyptrace" report "$tmp/places.dat" | grep -c ' sample: ')" "21 21" \
	"... none is lost, and none is added"

# A vCPU whose guest computes for a while and then does an HVC, for eight seconds, and a timer that interrupts it: at
# once in the guest, else when the host takes interrupts again. One in 50 is late by up to two periods.
perl -e 'srand 11;
	my ($now, $period, $due, @hyp, @samples, %truth) = (1e9, int 1e9 / 499, 1e9 + 123457);
	sub us { 1000 * int $_[0] / 1000 }
	sub through { # the time until then is spent there
		my ($to, $place) = @_;
		for (; $due < $to; $due += $period) { $truth{$place}++; push @samples, 1 }
		$now = $to;
	}
	while ($now < 9e9) {
		through($now + 15000 + rand 20000, "host");
		push @hyp, us($now) . " 0 0 hyp_enter 1 0";
		through($now + 20000 + rand 30000, "hvc");
		push @hyp, us($now) . " 0 0 hyp_exit 7 7";
		my $end = $now + 5000 + rand 60000;
		$end = $now + 500 if @samples;
		$end = $due + 700 if $due < $end;
		through($end, "guest");
		push @hyp, us($now) . " 0 0 hyp_enter 5 7";
		through($now + 20000 + rand 20000, "guest_exit");
		push @hyp, us($now) . " 0 0 hyp_exit 6 0";
		through($now + 4000 + rand 3000, "host");
		next if !@samples;
		$now += rand 50 < 1 ? rand 2 * $period : 3000 + rand 2000;
		print int($now), " 0 7 sample 7 4 499 CPU\\x200/KVM\n" for @samples;
		($now, @samples) = $now + 15000;
		while ($due < $now) { $due += $period } # the timer leaves out what it is late by
	}
	print "buffer hyp\n", map { "$_\n" } @hyp;
	print STDERR map { "$_ $truth{$_}\n" } sort keys %truth' >"$tmp/lines" 2>"$tmp/truth"
{
	printf '%s\n' "task 7 CPU 0/KVM" "buffer profile"
	cat "$tmp/lines"
} >"$tmp/script"
make_trace "$tmp/loop.dat" <"$tmp/script"
is "$(flame "$tmp/loop.dat" | perl -e 'my (%truth, %got);
	open my $f, "<", shift or die;
	while (<$f>) { /(\S+) (\d+)/ and $truth{$1} = $2 }
	while (<STDIN>) { /.*[;\[](\w+)\]? (\d+)/ and $got{$1} = $2 }
	my ($all, $of) = (0, 0);
	$all += $_ for values %truth;
	$of += $_ for values %got;
	for (sort keys %truth) {
		my ($is, $was) = (100 * ($got{$_} // 0) / $of, 100 * $truth{$_} / $all);
		print "$_ ", abs($is - $was) < 3 && $was > 10 ? "fits" : sprintf("%.2f %% of %.2f %%", $is, $was), "\n";
	}' "$tmp/truth")" 'guest fits
guest_exit fits
host fits
hvc fits' "a loop of HVCs stands in guest, hypervisor and host as long as it was there" || diag "$(cat "$tmp/truth"; flame "$tmp/loop.dat")"

# ---- function_graph against trace-cmd's text -----------------------------------------------

# Calls at random in tasks that run one after the other on three CPUs.
perl -e 'srand 7; my $now = 1000000;
	print "symbol ", sprintf("%x", 0xffff800080000000 + $_ * 4096), " f$_\n" for 1 .. 30;
	print "task ", 100 + $_, " task$_\n" for 0 .. 4;
	sub call {
		my ($cpu, $pid, $depth) = @_;
		my ($f, $begin) = ("\@f" . (1 + int rand 30), $now += 1 + int rand 900);
		print "$begin $cpu $pid funcgraph_entry $f $depth\n";
		if ($depth < 12) { call($cpu, $pid, $depth + 1) while rand() < 0.45 }
		$now += 1 + int rand 900;
		print "$now $cpu $pid funcgraph_exit $f $depth 0 $begin $now\n";
	}
	call(int rand 3, 100 + int rand 5, 0) for 1 .. 1500' >"$tmp/script"
make_trace "$tmp/calls.dat" <"$tmp/script"
if command -v trace-cmd >/dev/null; then
	# "task1-100 [000] 1.000000: funcgraph_entry:   0.123 us   |  f1();", or "|  f1() {", or "|  }" of an exit
	is "$(flame "$tmp/calls.dat" | LC_ALL=C sort)" "$(trace-cmd report -i "$tmp/calls.dat" 2>/dev/null | perl -e 'my (%stack, %sum);
		while (<>) {
			my ($task, $event, $us, $what) = /^\s*(\w+)-\d+ .*: funcgraph_(entry|exit): *(?:[+!#\$]? *([\d.]+) us *)?\| *(\w+\(\)|\})/ or next;
			my $ns = int(($us // 0) * 1000 + 0.5);
			my $s = $stack{$task} //= [];
			push @$s, [ substr($what, 0, -2), 0 ] if $event eq "entry";
			next if $event eq "entry" && !defined $us;
			my $path = join ";", "host", $task, map { $_->[0] } @$s;
			my $top = pop @$s;
			$sum{$path} += $ns - $top->[1];
			$s->[-1][1] += $ns if @$s;
		}
		print "$_ $sum{$_}\n" for sort grep { $sum{$_} } keys %sum')" \
		"function_graph: each own time is what a slow reader of trace-cmd's text finds"
	[ "$(flame "$tmp/calls.dat" | wc -l)" -gt 1000 ]
	ok $? "... of more than a thousand stacks"
else
	skip 2 "no trace-cmd"
fi
like "$(said "$tmp/calls.dat")" '^hyptrace: there is no sched_switch' "without sched_switch it is said that sleep counts"

# ---- spans that programs mark ----------------------------------------------------------

spans() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}
spans "$tmp/spans.dat" <<'E'
task 50 crosvm
task 60 app
1000 0 50 print	0	503 VirtioFs Enter: read - (inode: 42)
1100 0 50 print	0	504 Disk Enter: lookup
1200 0 50 print	0	505 Disk Enter: lookup
1350 0 50 print	0	505 Disk Exit: lookup
1500 1 50 print	0	504 Disk Exit: lookup
1600 0 50 print	0	506 Disk Enter: flush
1700 0 50 print	0	503 VirtioFs Exit: read
2000 0 50 print	0	506 Disk Exit: flush
2100 0 60 print	0	guest_hypertrace cpu=0x1  arg1=1
2200 0 60 print	0	guest_hypertrace cpu=0x1  arg1=4
2500 0 60 print	0	guest_hypertrace cpu=0x1  arg1=5
2900 0 60 print	0	guest_hypertrace cpu=0x1  arg1=2
3000 0 60 print	0	guest_hypertrace cpu=0x1  arg1=1
lost 0 1
3050 0 60 print	0	guest_hypertrace cpu=0x1  arg1=2
E
printf '1 frame_start\n2 frame_end\n4 draw_start\n5 draw_end\n' >"$tmp/desc"
is "$(flame --spans --hypertrace-desc "$tmp/desc" "$tmp/spans.dat")" 'host;app;frame 500
host;app;frame;draw 300
host;crosvm;flush 400
host;crosvm;read 300
host;crosvm;read;lookup 250
host;crosvm;read;lookup;lookup 150' "--spans: each has the time that is its own, below what is open around all of it"
is "$(said --spans --hypertrace-desc "$tmp/desc" "$tmp/spans.dat" | grep 'left out')" \
	"hyptrace: left out: 2 spans of which only the begin or the end is there" "... and a loss makes none"
is "$(flame --spans -t 'cr*' -w count "$tmp/spans.dat" | awk '{ print $NF }' | xargs)" "1 1 1 1" "... of some tasks, and how many"
like "$(flame --spans --svg - "$tmp/spans.dat")" "spans' own time: 1\.100us" "... drawn"

spans "$tmp/marks.dat" <<'E'
buffer hypertrace
1000 0 50 hypertrace:guest_hypertrace	0	0	1	7	one
1100 1 51 hypertrace:guest_hypertrace	1	1	1	7	one
1200 0 52 hypertrace:guest_hypertrace	0	0	1	7	two
1300 1 51 hypertrace:guest_hypertrace	0	1	2	7	one
1500 0 50 hypertrace:guest_hypertrace	1	0	2	7	one
1900 1 53 hypertrace:guest_hypertrace	0	1	2	7	two
E
is "$(flame --spans --hypertrace-desc "$tmp/desc" "$tmp/marks.dat")" 'host;one client 0;frame 300
host;one client 1;frame 400
host;two client 0;frame 700' "... of guests' clients"
is "$(flame --spans --hypertrace-desc "$tmp/desc" --diff "$tmp/marks.dat" "$tmp/marks.dat" | head -n 1)" \
	'host;one client 0;frame 300 300' "... and the difference of two recordings"
fails 2 'which spans and states have none of' "--spans and --event" --spans -e sched_switch "$tmp/spans.dat"
fails 2 'is for --spans' "names without --spans" --hypertrace-desc "$tmp/desc" "$tmp/spans.dat"
fails 1 'line 1 makes no sense' "a description that is none" --spans --hypertrace-desc "$hyptrace" "$tmp/spans.dat"

# ---- two recordings --------------------------------------------------------------------------

cp "$host" "$tmp/before.dat"
make_trace "$tmp/after.dat" <<E
$symbols
task 7 reader
1001 0 7 kernel_stack 2 @ksys_read+8 @el0_svc+4
1101 0 7 kernel_stack 2 @ksys_read+8 @el0_svc+4
2001 0 7 kernel_stack 2 @schedule @el0_svc+4
E
is "$(flame --diff -t reader "$tmp/before.dat" "$guest" "$tmp/after.dat")" 'host;reader;0x7fff0000;libc.so.6+0x11200;libc.so.6+0x100;el0_svc;ksys_read 1 0
host;reader;el0_svc;ksys_read 1 2
host;reader;el0_svc;ksys_read;schedule 1 0
host;reader;el0_svc;schedule 0 1' "--diff: stacks of both, as difffolded.pl prints them"
{
	echo "$symbols"
	echo "task 7 reader"
	echo "1001 0 7 kernel_stack 2 @ksys_read+8 @el0_svc+4"
	for i in 1 2 3 4; do
		echo "300$i 0 7 kernel_stack 2 @schedule @el0_svc+4"
	done
} >"$tmp/script"
make_trace "$tmp/before.dat" <"$tmp/script"
is "$(flame --diff "$tmp/before.dat" "$tmp/after.dat")" 'host;reader;el0_svc;ksys_read 0 2
host;reader;el0_svc;schedule 2 1' "... the first at the weight of the second, rounded down"
is "$(flame --diff --json "$tmp/before.dat" "$tmp/after.dat" | sed -n 4,5p)" \
	'    {"stack":"host;reader;el0_svc;ksys_read","a":1,"b":2},
    {"stack":"host;reader;el0_svc;schedule","a":4,"b":1}' "... but as it was counted in JSON"
fails 1 'needs two recordings' "--diff of a guest" --diff "$guest" "$host"
fails 2 'needs two recordings' "--diff of one" --diff "$host"
fails 1 "3 hosts' files" "--diff of three" --diff "$host" "$tmp/before.dat" "$tmp/after.dat"

# ---- what cannot be --------------------------------------------------------------------------

fails 2 'count or ns' "a wrong weight" -w bytes "$host"
fails 2 'either --json or --csv' "two forms" --json --csv "$host"
fails 2 '^hyptrace: ' "a filter that is none" -e 'sched_switch: pid ==' "$host"
fails 1 'no event found' "a filter on what is in no file" -e no_such "$host" "$guest"
fails 1 'to be read, not to be written' "over its input" -o "$host" "$host"
fails 1 'cannot open' "no file" "$tmp/no.dat"
nothing='^hyptrace: nothing in these files is what the options ask for: --event, --spans, --states, --machine, --task, --time$'
fails 1 "$nothing" "--event that no stack is behind" -e kvm_exit tests/data/functions/trace.dat
is "$("$hyptrace" flame -q -e kvm_exit tests/data/functions/trace.dat 2>/dev/null)" "" "... shows nothing else in place of it"
fails 1 "$nothing" "... nor their number" -e kvm_exit -w count tests/data/functions/trace.dat
fails 2 'does not show' "--event with --weight ns" -e kvm_exit -w ns "$host"
fails 1 "$nothing" "--task of none" -t nosuch "$host"
fails 1 "$nothing" "--machine of none" -m nosuch "$host"
fails 1 "$nothing" "--spans of none" --spans "$host"
fails 1 "$nothing" "--states of none" --states "$host"
fails 1 '^hyptrace: no stacks in these files; record with --profile 99 or -T$' "no stacks" tests/data/lab-stock-arm64.dat

# Stacks that say more than their records hold, that are deep, that go in circles, names of all kinds.
{
	# shellcheck disable=SC2028
	echo 'symbol ffff800080001000 \x3b;;\x09\xff'
	echo "symbol ffff800080002000 $(printf 'x%.0s' {1..290})"
	echo "kallsyms ffff8000800020zz t odd"
	# shellcheck disable=SC2028
	echo 'task 7 \x3b\x20\x07'
	echo 'task 8 '
	echo 'task x y'
	echo "1000 0 7 kernel_stack 4000000000 0xffff800080002000"
	echo "1100 0 7 kernel_stack 1000 $(printf '0xffff800080002000 %.0s' {1..440})0xffff800080001000"
	echo "1200 0 7 kernel_stack 0"
	echo "cut 12"
	echo "1300 0 7 kernel_stack 5 1 2 3"
	echo "cut 19"
	echo "1400 0 7 kernel_stack 5 1 2 3"
	echo "cut 18"
	echo "1500 0 7 slow 1 2 3 4"
	echo "cut 12"
	echo "1600 0 7 funcgraph_entry 1 2"
	echo "1700 0 7 funcgraph_entry 0xffff800080002000 0xffffffffffffffff"
	echo "1800 0 7 funcgraph_entry 0xffff800080002000 0xfffffff0"
	echo "1900 0 7 funcgraph_exit 0xffff800080002000 0xfffffff0 0 5 4"
	for ((i = 0; i < 2000; i++)); do
		echo "$((2000 + i)) 1 8 funcgraph_entry 0xffff800080002000 $i"
	done
	echo "5000 1 8 funcgraph_exit 0xffff800080002000 1 0 0 18446744073709551615"
	echo "5001 1 8 funcgraph_exit 0xffff800080002000 0 0 0 18446744073709551615"
	echo "6000 0 -1 kernel_stack 1 0xffffffffffffffff"
	echo "6000 0 -5 kernel_stack 1 0x1"
	echo "6100 0 7 sched_switch 7 1 18446744073709551615"
} >"$tmp/script"
make_trace "$tmp/hostile.dat" <"$tmp/script"
flame "$tmp/hostile.dat" >"$tmp/out"
is "$?" 0 "odd records: status"
is "$(cut -d';' -f 1,2 "$tmp/out" | sort -u)" 'host;: ?
host;[unknown]' "... and tasks"
is "$(grep -cvP '^[^;]+(;[^;]+)* [0-9]+$' "$tmp/out")" 0 "... and each line is folded text"
is "$(perl -ne 's/ \d+$//; chomp; print length, "\n" for split /;/' "$tmp/out" | sort -n | tail -1)" 255 "... with names of 255 bytes at most"
like "$(said "$tmp/hostile.dat")" '5 stacks are longer than their records' "... and it is said that stacks were cut"
for ((i = 0; i < 40; i++)); do
	cp "$tmp/hostile.dat" "$tmp/m.dat"
	perl -e 'srand $ARGV[0]; open my $f, "+<", $ARGV[1]; local $/; my $d = <$f>;
		substr($d, -1 - int rand length($d) - 1, 1) = chr int rand 256 for 1 .. 60; seek $f, 0, 0; print $f $d' "$i" "$tmp/m.dat"
	timeout 20 "$hyptrace" flame -q --svg /dev/null -o /dev/null "$tmp/m.dat" 2>/dev/null
	[ $? -le 1 ] || echo "seed $i"
done >"$tmp/out"
is "$(cat "$tmp/out")" "" "... and mutations of them end in 0 or 1"

# ---- the picture -------------------------------------------------------------------------------

flame --svg "$tmp/f.svg" "$host" "$guest"
is "$?" 0 "--svg"
flame --svg "$tmp/again.svg" "$host" "$guest"
same "$tmp/again.svg" "$tmp/f.svg" "... is the same each time"
is "$(flame --svg - "$host" "$guest" | cksum)" "$(cksum <"$tmp/f.svg")" "... and on standard output"
is "$(grep -oE '(href|src|url)[=(][^#]|https?://[^ "]*' "$tmp/f.svg" | sort -u)" 'http://www.w3.org/1999/xhtml
http://www.w3.org/2000/svg' "... and needs nothing from elsewhere"
is "$(grep -c '^<g class="f"' "$tmp/f.svg")" "$(flame "$host" "$guest" | perl -ne 's/ \d+$//; chomp; my @f = split /;/;
	$seen{ join ";", @f[0 .. $_] } = 1 for 0 .. $#f; END { print 1 + keys %seen }')" "... and has each frame once"
is "$(picture_names "$tmp/f.svg")" "$(basename "$host"), $(basename "$guest"): which functions ran?
share of all samples (%)
stack depth (frames)" "... whose title and axes have names"
flame --diff --svg "$tmp/diff.svg" "$tmp/before.dat" "$tmp/after.dat"
is "$(picture_names "$tmp/diff.svg")" "before.dat, after.dat: what became more and less?
mean share of both recordings (%)
stack depth (frames)" "... so has that of --diff"
like "$(cat "$tmp/diff.svg")" '^1 samples, 20.00 % before; 2 samples, 66.67 % after: \+46.67' "--diff --svg tells both"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$chromium" ]; then
	# By what a user does; what came of it is in an attribute.
	check='<script><![CDATA[
	window.addEventListener("load", function () {
		var f = [].slice.call(document.querySelectorAll("g.f")), said = [];
		function named(n) { return f.filter(function (g) { return g.querySelector("title").textContent.split("\n")[0] === n; })[0]; }
		function shown() { return f.filter(function (g) { return g.style.display !== "none"; }).length; }
		function click(node) { node.dispatchEvent(new MouseEvent("click", { bubbles: true })); }
		function width(n) { return Math.round(named(n).querySelector("rect").getAttribute("width")); }
		said.push("all " + shown() + "/" + f.length);
		click(named("reader").querySelector("rect"));
		said.push("reader " + width("reader") + " host " + width("host") + " " + named("host").classList.contains("bears")
			+ " schedule " + width("schedule") + " inner " + named("inner").style.display);
		click(document.getElementById("reset").querySelector("text"));
		said.push("reset " + width("reader") + " " + shown());
		var input = document.getElementById("input");
		function type(text) {
			input.value = text;
			input.dispatchEvent(new Event("input"));
			return document.getElementById("found").textContent;
		}
		said.push(type("^guest_main$"), type("KSYS"), type("[vh"), document.querySelectorAll("g.hit").length);
		named("schedule").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
		said.push(document.getElementById("hovered").textContent);
		window.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
		said.push("escape " + document.querySelectorAll("g.hit").length);
		document.documentElement.setAttribute("data-said", said.join("|"));
	});
	]]></script></svg>'
	CHECK=$check perl -pe 's{^</svg>}{$ENV{CHECK}}' "$tmp/f.svg" >"$tmp/checked.svg"
	mkdir -p "$HOME"
	is "$(timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/browser" --dump-dom \
		"file://$tmp/checked.svg" 2>/dev/null | grep -o 'data-said="[^"]*"')" \
		'data-said="all 28/28|reader 1136 host 1136 true schedule 378 inner none|reset 486 28|9 found, 14.29 %|2 found, 42.86 %|1 found, 14.29 %|1|schedule  1 samples, 14.29 %|escape 0"' \
		"in a browser it zooms by a click, goes back, searches by pattern and by text, and tells"
else
	skip 1 "no chromium"
fi
done_testing
