#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace stat: the same counts, exits and hypervisor's time as slow references find with trace-cmd's
# own library; what made-up recordings are known to hold; tables, options, damaged files.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}

stat() {
	"$hyptrace" stat "$@" 2>"$tmp/err"
}

# Rows of a table in CSV, the named columns with tabs between them: TABLE COLUMN,... [OPTION...] FILE...
rows() {
	local table=$1 columns=$2
	shift 2
	stat --csv --show "$table" "$@" | perl -F, -lane 'BEGIN { @want = split /,/, shift }
		if ($F[1] eq "machine") { %at = map { $F[$_] => $_ } 0..$#F }
		elsif ($F[0] ne "note") { print join "\t", map { $F[$at{$_}] } @want }' "$columns"
}

# ---- events, as stock counts them ------------------------------------------------------

# by_stock FILE: how many events of each name trace-cmd report prints
by_stock() {
	trace-cmd report -i "$1" 2>/dev/null |
		perl -ne '$n{$1}++ if /^.*?-\d+\s+\[\d+\]\s*\d[\d.]*: (\w+): /; END { print "$_\t$n{$_}\n" for sort keys %n }'
}

# by_buffer FILE: and how many of each buffer its library reads
by_buffer() {
	"$build/tests/tools/datdump" "$1" 2>/dev/null |
		perl -ne '$n{"$1\t$2"}++ if /^(\S+) \d+ \d+ (\w+): /; END { print "$_\t$n{$_}\n" for sort keys %n }'
}

captures=(tests/data/*.dat tests/data/*/*.dat)
for file in "${captures[@]}"; do
	[ "$file" != tests/data/sync/trace-Guest.dat ] || continue # it has no formats
	rows events event,events --no-guests "$file" | perl -lane '$n{$F[0]} += $F[1]; END { print "$_\t$n{$_}" for sort keys %n }' >"$tmp/ours"
	by_stock "$file" >"$tmp/stock"
	[ -s "$tmp/stock" ]
	ok $? "$file: trace-cmd report prints events"
	same "$tmp/ours" "$tmp/stock" "$file: as many events of each name as trace-cmd report prints"
	rows events buffer,event,events --no-guests "$file" | sed 's/^\t/-\t/' | sort >"$tmp/ours"
	by_buffer "$file" | sort >"$tmp/stock"
	same "$tmp/ours" "$tmp/stock" "$file: and in each buffer"
done

# Those of several files together are those of each.
for file in tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat; do
	rows events machine,event,events --no-guests "$file"
done | sort >"$tmp/alone"
rows events machine,event,events tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat | sort >"$tmp/both"
same "$tmp/both" "$tmp/alone" "events of each machine"

# ---- exits and the hypervisor's time, computed slowly --------------------------------------

# the reference takes ticks for ns
as_ns=(--ts2secs 1000000000)

# ours FILE: the tables as tests/tools/slow-stat prints them
ours() {
	local table

	for table in exits guest mmio ioport; do
		rows $table what,count,total_ns,min_ns,max_ns "${as_ns[@]}" "$1" | sed "s/^/$table\t/"
	done
	rows firmware back_for,count,total_ns,min_ns,max_ns "${as_ns[@]}" "$1" | sed "s/^/firmware\t/"
	rows hyp reason,count,total_ns,min_ns,max_ns "${as_ns[@]}" "$1" | sed "s/^/hyp\t/"
}

slow() { # FILE [OPTION]
	"$build/tests/tools/datdump" -p "$1" 2>/dev/null | tests/tools/slow-stat ${2:+"$2"}
}

found=0
for file in "${captures[@]}"; do
	[ "$file" != tests/data/regions.dat ] || continue # the reference knows no pauses; region.t looks at these
	ours "$file" | sort >"$tmp/ours"
	slow "$file" | sort >"$tmp/slow"
	same "$tmp/ours" "$tmp/slow" "$file: exits, guests', MMIO's and the hypervisor's times as the slow reference's"
	grep -q '^exits' "$tmp/slow" || continue # perf knows no hypervisor
	found=$((found + 1))
	slow "$file" -p >"$tmp/perf"
	is "$(O=$build tests/tools/perf-kvm-stat "$tmp/perf" "$file" 2>/dev/null)" "" \
		"$file: as perf kvm stat report would print them"
done
[ "$found" -ge 12 ]
ok $? "the slow reference finds exits in $found captures"
slow tests/data/lab-protected.dat -p | sed 's/ 106 / 107 /' >"$tmp/other"
is "$(O=$build tests/tools/perf-kvm-stat "$tmp/other" tests/data/lab-protected.dat)" "WFx: samples: perf 107, ours 106" \
	"perf-kvm-stat tells what differs"
O=$build tests/tools/perf-kvm-stat -n 1 "$tmp/other" tests/data/lab-protected.dat
is $? 0 "... unless it may"

# What perf itself printed in the lab of the guest that this recording has: it stamps an exit by itself.
is "$(O=$build tests/tools/perf-kvm-stat -g -t 3 tests/data/perf/table tests/data/perf/trace.dat)" "" \
	"as perf kvm stat report printed it in the lab"

# What --per cuts apart is the whole.
for per in guest vcpu; do
	rows exits what,count,total_ns --per $per tests/data/guest/trace.dat |
		perl -lane '$n{$F[0]} += $F[1]; $t{$F[0]} += $F[2]; END { print "$_\t$n{$_}\t$t{$_}" for sort keys %n }' >"$tmp/sum"
	rows exits what,count,total_ns tests/data/guest/trace.dat | sort >"$tmp/all"
	same "$tmp/sum" "$tmp/all" "--per $per: the sum is the whole"
done
is "$(rows sysreg vcpu,pid,what,count --per vcpu tests/data/guest/trace.dat)" \
	"Guest:0	113	ICC_SGI1R_EL1 write	1
Guest:1	114	ICC_SGI1R_EL1 write	3" "which vCPU wrote which register"
is "$(rows sysreg what,count,total_ns tests/data/lab-stock-arm64.dat)" "ICC_SGI1R_EL1 write	1	116928" \
	"a register that two events tell of is counted once"

# ---- what is known of made-up recordings -----------------------------------------------------

make_trace "$tmp/exits.dat" <<'E'
id 1
guest Guest 2 0:7 1:8
900 0 7 kvm_exit	0	0	1
1000 0 7 kvm_entry	1
1500 0 7 kvm_exit	2	0x16	2
1600 0 7 kvm_hvc_arm64	2	0x84000001
2500 1 7 kvm_entry	2
2600 0 8 kvm_exit	0	0	2
2700 0 8 kvm_entry	2
4500 1 7 kvm_exit	2	0x18	3
4600 1 7 kvm_sys_access	1	3	0	12	11	5
4800 1 7 kvm_entry	3
4900 1 7 kvm_exit	1	0	3
4950 1 7 kvm_pio	1	0x3f8
5000 1 7 kvm_entry	3
5100 1 7 kvm_exit	7	0	3
5110 1 7 kvm_msr	0	0x830
5120 1 7 kvm_hypercall	9
5200 1 7 kvm_entry	3
5700 0 8 kvm_exit	0	0	3
lost 0 3
5800 0 8 kvm_entry	4
5900 0 8 kvm_exit	0	0	4
buffer hyp
10000 0 0 hypervisor:hyp_enter	1	0
E
is "$(stat --show lost,exits,guest,mmio,ioport,sysreg,hypercall --per vcpu "$tmp/exits.dat")" 'Lost events
buffer  CPU  lost
-         0     3

Exits: from kvm_exit to kvm_entry
vCPU     VM-EXIT   Samples  Time%      Min      Max      Avg    +-
Guest:0  HVC64           1  66.7%  1.000us  1.000us  1.000us  0.0%
Guest:0  SYS64           1  20.0%    300ns    300ns    300ns  0.0%
Guest:0  SERROR          1   6.7%    100ns    100ns    100ns  0.0%
Guest:0  exit 0x7        1   6.7%    100ns    100ns    100ns  0.0%
exits: 4 samples, 1.500us in total
exits, guest: 2 stretches in which events were lost are unknown, and left out

Guest: from kvm_entry to the kvm_exit
vCPU     VM-EXIT   Samples  Time%      Min      Max      Avg     +-
Guest:0  SYS64           1  34.5%  2.000us  2.000us  2.000us   0.0%
Guest:0  HVC64           1   8.6%    500ns    500ns    500ns   0.0%
Guest:0  SERROR          1   1.7%    100ns    100ns    100ns   0.0%
Guest:0  exit 0x7        1   1.7%    100ns    100ns    100ns   0.0%
Guest:1  IRQ             2  53.4%    100ns  3.000us  1.550us  93.5%
guest: 6 samples, 5.800us in total
mmio: the files have no kvm_mmio in a vCPU'"'"'s exit

I/O port accesses
vCPU     IO Port Access  Samples   Time%   Min   Max   Avg    +-
Guest:0  0x3f8:POUT            1  100.0%  50ns  50ns  50ns  0.0%
ioport: 1 samples, 50ns in total

Exits for system registers
vCPU     register             Samples  Time%    Min    Max    Avg    +-
Guest:0  ICC_SGI1R_EL1 write        1  75.0%  300ns  300ns  300ns  0.0%
Guest:0  MSR 0x830 read             1  25.0%  100ns  100ns  100ns  0.0%
sysreg: 2 samples, 400ns in total

Exits for hypercalls
vCPU     hypercall               Samples  Time%      Min      Max      Avg    +-
Guest:0  PSCI_CPU_SUSPEND SMC32        1  90.9%  1.000us  1.000us  1.000us  0.0%
Guest:0  9                             1   9.1%    100ns    100ns    100ns  0.0%
hypercall: 2 samples, 1.100us in total' "exits of each vCPU, also of a thread that moves, and none across lost events"

# Four faults on two pages, one of them on a page that may only be read; the exit for a device has a kvm_guest_fault, too, and is none of them.
"$build/tests/integration/make-trace" "$tmp/faults.dat" tests/integration/events/latency tests/data/formats-arm64.dat - <<'E'
id 1
guest Guest 2 0:7
1.000001 0 7 kvm_entry
1.000002 0 7 kvm_exit ret=2 esr_ec=0x24
1.000003 0 7 kvm_guest_fault ipa=0x40000123
1.000102 0 7 kvm_entry
1.000200 0 7 kvm_exit ret=2 esr_ec=0x24
1.000210 0 7 kvm_guest_fault ipa=0x9000000
1.000220 0 7 kvm_mmio type=2 gpa=0x9000000
1.000300 0 7 kvm_entry
1.000400 0 7 kvm_exit ret=2 esr_ec=0x20
1.000410 0 7 kvm_guest_fault ipa=0x40001000
1.000450 0 7 kvm_entry
1.000500 0 7 kvm_exit ret=2 esr_ec=0x24
1.000510 0 7 kvm_guest_fault ipa=0x40000fff hsr=0x92000007
1.000700 0 7 kvm_entry
1.000800 0 7 kvm_exit ret=2 esr_ec=0x24
1.000810 0 7 kvm_guest_fault ipa=0x40001000 hsr=0x9200004f
1.000830 0 7 kvm_entry
E
is "$(rows faults what,count,total_ns "$tmp/faults.dat")" \
	$'0x40000000\t2\t300000\n0x40001000\t1\t50000\n0x40001000 (permission)\t1\t30000' "stage-2 faults, by page"
unlike "$(stat "$tmp/faults.dat")" 'stage-2' "... only if they are asked for"

# While events are missing on one CPU nothing is known of others' threads: they may have been there.
make_trace "$tmp/gap.dat" <<'E'
1000 0 7 kvm_entry	1
1000 1 8 kvm_entry	1
1100 0 7 kvm_exit	0	0	1
1200 1 8 kvm_exit	0	0	1
1300 0 7 kvm_entry	1
1400 1 8 kvm_entry	1
1450 0 7 kvm_exit	1	0	1
1500 1 8 kvm_exit	1	0	1
1550 0 7 kvm_entry	1
lost 1 3
1700 1 8 kvm_entry	1
1800 0 7 kvm_exit	1	0	1
1900 0 7 kvm_entry	1
2000 1 8 kvm_exit	1	0	1
2050 1 8 kvm_entry	1
E
is "$(stat --show exits "$tmp/gap.dat")" 'Exits: from kvm_exit to kvm_entry
VM-EXIT  Samples  Samples%  Time%    Min    Max    Avg     +-
IRQ            2     50.0%  72.7%  200ns  200ns  200ns   0.0%
SERROR         2     50.0%  27.3%   50ns  100ns   75ns  33.3%
exits: 4 samples, 550ns in total
exits, guest: 3 stretches in which events were lost are unknown, and left out' "exits beside lost events"
ours "$tmp/gap.dat" | sort >"$tmp/ours"
slow "$tmp/gap.dat" | sort >"$tmp/slow"
same "$tmp/ours" "$tmp/slow" "... as the slow reference's"
# More threads than are kept: said, and bounded.
perl -e 'for my $pid (1 .. 4100) { print "1000 0 $pid kvm_entry\t1\n2000 0 $pid kvm_exit\t0\t0\t1\n3000 0 $pid kvm_entry\t1\n" }' |
	make_trace "$tmp/many.dat"
is "$(stat --show exits "$tmp/many.dat" | tail -n 2)" "exits: 4096 samples, 4.096ms in total
exits: there are too many vCPUs, the last are left out" "too many vCPUs"

make_trace "$tmp/hyp.dat" <<'E'
buffer hyp
1000 0 0 hypervisor:hyp_enter	1	0
1400 0 0 hypervisor:hyp_exit	6	0
2000 0 0 hypervisor:hyp_enter	5	7
2300 0 0 hypervisor:hyp_exit	0	0
2900 0 0 hypervisor:hyp_enter	0	0
3000 0 0 hypervisor:hyp_exit	0	0
9000 0 0 hypervisor:hyp_enter	3	0
9100 0 0 hypervisor:hyp_exit	3	0
9200 0 0 hypervisor:hyp_enter	1	0
lost 0 2
9900 0 0 hypervisor:hyp_exit	6	0
9950 0 0 hypervisor:hyp_enter	1	0
500 1 0 hypervisor:hyp_exit	6	0
600 1 0 hypervisor:hyp_enter	9	0
700 1 0 hypervisor:hyp_exit	6	0
E
is "$(stat --show hyp,firmware,longest --top 3 "$tmp/hyp.dat")" \
'Hypervisor: from hyp_enter to hyp_exit, by reason
reason      count  total  share    avg    p50    p99  p99.9    max
hvc             1  400ns  40.0%  400ns  400ns  400ns  400ns  400ns
guest_exit      1  300ns  30.0%  300ns  300ns  300ns  300ns  300ns
psci            1  100ns  10.0%  100ns  100ns  100ns  100ns  100ns
reason 9        1  100ns  10.0%  100ns  100ns  100ns  100ns  100ns
smc             1  100ns  10.0%  100ns  100ns  100ns  100ns  100ns
hyp: 5 visits, 1.000us in total: 10.93% of 9.150us recorded CPU time
hyp: 2 hyp_enter and 2 hyp_exit without the other are left out: events were lost, or the recording begins or ends there

Firmware (EL3): from hyp_exit for smc until the hypervisor is entered again
back_for  count    total  share      avg      p50      p99    p99.9      max
psci          1  6.000us  90.9%  6.000us  6.000us  6.000us  6.000us  6.000us
smc           1    600ns   9.1%    600ns    600ns    600ns    600ns    600ns

The longest exits and visits to the hypervisor
what  reason       took           at  CPU  vCPU
hyp   hvc         400ns  0.000001000    0  -
hyp   guest_exit  300ns  0.000002000    0  7
hyp   reason 9    100ns  0.000000600    1  -' "the hypervisor's time, the firmware's, the longest"
slow "$tmp/hyp.dat" | sed 's/\t0x9\t/\treason 9\t/' | sort >"$tmp/slow"
ours "$tmp/hyp.dat" | sort >"$tmp/ours"
same "$tmp/ours" "$tmp/slow" "... as the slow reference's, with lost events"

# Android's events have no reason: what lies between them says it
make_trace "$tmp/android.dat" <<'E'
buffer hyp
1000 0 0 hyp:hyp_enter
1100 0 0 hyp:host_mem_abort	0x92000045	0x1000
1300 0 0 hyp:hyp_exit
2000 0 0 hyp:hyp_enter
2300 0 0 hyp:hyp_exit
3000 0 0 hyp:hyp_enter
3200 0 0 hyp:host_mem_abort	0x92000045	0x1000
3900 0 0 hyp:hyp_exit
E
is "$(rows hyp reason,count,total_ns "$tmp/android.dat")" 'host_mem_abort	2	1200
	1	300' "the reason of Android's stays is the event in between"

make_trace "$tmp/spans.dat" <<'E'
1000 0 50 print	0	503 VirtioFs Enter: release - (inode: 42)
1100 0 50 print	0	504 VirtioFs Enter: release - (inode: 43)
1500 0 50 print	0	503 VirtioFs Exit: release
1600 1 51 print	0	503 VirtioFs Enter: open
1800 1 50 print	0	504 VirtioFs Exit: release
1900 0 50 print	0	999 VirtioFs Exit: release
2000 0 60 print	0	guest_hypertrace cpu=0x1  arg1=1
2500 0 60 print	0	guest_hypertrace cpu=0x1  arg1=2
2600 0 60 print	0	guest_hypertrace cpu=0x1  arg1=3
2700 0 60 print	0	words
3000 0 60 print	0	guest_hypertrace cpu=0x1  arg1=1
lost 0 1
3050 1 60 print	0	guest_hypertrace cpu=0x1  arg1=1
3060 1 60 print	0	guest_hypertrace cpu=0x1  arg1=2
3070 1 61 print	0	600 VirtioFs Enter: read
3100 0 60 print	0	guest_hypertrace cpu=0x1  arg1=2
3170 1 61 print	0	600 VirtioFs Exit: read
E
printf '1 frame_start\n2 frame_end\n3 tick\n' >"$tmp/desc"
is "$(stat --show spans --hypertrace-desc "$tmp/desc" "$tmp/spans.dat")" 'Spans in trace_marker
kind        name     count    total  share    min    avg    p50    p99    max
crosvm      release      2  1.200us  66.7%  500ns  600ns  501ns  699ns  700ns
hypertrace  frame        1    500ns  27.8%  500ns  500ns  500ns  500ns  500ns
crosvm      read         1    100ns   5.6%  100ns  100ns  100ns  100ns  100ns
spans: 3 begins and 3 ends without the other, and 0 lines of too many threads or names, are left out' \
	"spans of crosvm and hypertrace"

# clients of guests, whose programs go from vCPU to vCPU: an event of its own, in a buffer of its own
make_trace "$tmp/marks.dat" <<'E'
buffer hypertrace
1000 0 50 hypertrace:guest_hypertrace	0	0	1	7	one
1100 1 51 hypertrace:guest_hypertrace	1	1	1	7	one
1200 0 52 hypertrace:guest_hypertrace	0	0	1	7	two
1300 1 51 hypertrace:guest_hypertrace	0	1	2	7	one
1500 0 50 hypertrace:guest_hypertrace	1	0	2	7	one
1600 0 50 hypertrace:guest_hypertrace	1	0	3	7	one
1900 1 53 hypertrace:guest_hypertrace	0	1	2	7	two
2000 1 53 hypertrace:guest_hypertrace	0	1	2	7	two
E
is "$(rows spans kind,name,count,total_ns,max_ns --hypertrace-desc "$tmp/desc" "$tmp/marks.dat" 2>&1)" \
	'hypertrace	frame	3	1400	700' "spans of guests' clients"
is "$("$hyptrace" latency --csv --from 'guest_hypertrace/arg1==1' --to 'guest_hypertrace/arg1==2' --key client \
	"$tmp/marks.dat" 2>&1 | grep '^latency,1')" "latency,1,1,400,400,400,400,400,400,400" "latency between a client's marks"

# ---- where time went: lib/ask/states/states.h has its own truths --------------------------------------------

make_trace "$tmp/steal.dat" <<'E'
id 1
guest Guest 2 0:7
task 7 CPU 0/KVM
task 99 hog
1000 0 7 kvm_entry	1
2000 0 7 kvm_exit	0	0	1
2100 0 7 sched_switch	CPU 0/KVM	7	120	0	hog	99	120
2600 0 99 sched_switch	hog	99	120	1	CPU 0/KVM	7	120
2700 0 7 kvm_entry	1
3000 0 7 kvm_exit	0	0	1
E
make_trace "$tmp/stolen.dat" <<'E'
id 2
shift 1 0
task 3 work
1500 0 3 sched_switch	work	3	120	1	idle	0	120
1700 0 0 sched_switch	idle	0	120	0	work	3	120
2900 0 3 sched_switch	work	3	120	1	idle	0	120
E
is "$(rows vcpus vcpu,pid,wall_ns,guest_ns,preempted_ns "$tmp/steal.dat" "$tmp/stolen.dat")" \
	"Guest:0	7	2000	1300	500" "where a vCPU's time went"
is "$(rows tasks machine,task,wall_ns,running_ns,stolen_ns,sleeping_ns "$tmp/steal.dat" "$tmp/stolen.dat")" \
	"Guest	work-3	1400	500	700	200" "where the time of a guest's task went"
is "$(rows steal kind,from,by,thief,count,total_ns "$tmp/steal.dat" "$tmp/stolen.dat" | grep hog)" \
	"vcpu	Guest:0	preempted	hog-99	1	500
task	work-3	preempted	hog-99	1	500" "who took it"
is "$(stat --show vcpus "$tmp/steal.dat" | sed -n 2,3p | cut -c 1-29)" \
	'vcpu     guest  host  preempt
Guest:0  65.0%  5.0%    25.0%' "people get shares"
is "$(stat --show tasks "$tmp/steal.dat" "$tmp/stolen.dat" | tail -1)" \
	"tasks: of the 1.400us that all its buffers cover; the files have 2.000us" "... of what its guest's buffers and the host's cover"
# a hypervisor's buffer that begins before the host's and goes on after it
make_trace "$tmp/long.dat" <<'E'
task 7 CPU 0/KVM
10000 0 7 kvm_entry	1
11000 0 7 kvm_exit	0	0	1
12000 0 7 kvm_entry	1
buffer hyp
1000 0 7 hyp_enter	1
1100 0 7 hyp_exit	1
90000 0 7 hyp_enter	1
90100 0 7 hyp_exit	1
E
is "$(rows vcpus wall_ns "$tmp/long.dat")" 2000 "a buffer that is longer than another's adds no time to the whole"
like "$(stat --show vcpus "$tmp/long.dat")" '^vcpus: of the 2.000us that all its buffers cover; the files have 89.10us' "... which is said"
make_trace "$tmp/apart.dat" <<'E'
task 7 CPU 0/KVM
10000 0 7 kvm_entry	1
11000 0 7 kvm_exit	0	0	1
buffer hyp
20000 0 7 hyp_enter	1
20100 0 7 hyp_exit	1
E
is "$(stat --show vcpus "$tmp/apart.dat")" "vcpus: the buffers that show it have no time in common" "buffers one after the other"
make_trace "$tmp/waking.dat" <<'E'
task 7 CPU 0/KVM
1000 0 7 kvm_entry	1
2000 0 7 kvm_exit	0	0	1
2100 0 7 sched_switch	CPU 0/KVM	7	120	0	idle	0	120
2600 0 0 sched_switch	idle	0	120	0	CPU 0/KVM	7	120
2700 0 7 kvm_entry	1
3000 0 7 kvm_exit	0	0	1
E
is "$(rows vcpus preempted_ns,waking_ns "$tmp/waking.dat")" "0	500" "a vCPU that waits for an idle CPU is waking, not preempted"
is "$(rows steal from "$tmp/waking.dat")" "" "... and nobody took its CPU"
for table in vcpus tasks; do
	stat --csv --show buffers,$table tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat |
		perl -F, -lane 'chomp @F; @k = @F, next if $F[1] eq "machine"; my %c; @c{@k} = @F;
			if ($F[0] eq "buffers") {
				$first = $c{first} if !defined $first or $c{first} < $first;
				$last = $c{last} if !defined $last or $c{last} > $last;
			} elsif ($F[0] ne "note") {
				my $sum = 0;
				$sum += $c{$_} for grep { /_ns$/ && !/^wall|^undecided/ } @k;
				print "$sum $c{wall_ns} ", sprintf "%.0f", 1e9 * ($last - $first);
			}' >"$tmp/sums"
	is "$(awk 'NF == 3 && $1 == $2 && $2 < $3 && $2 > .9 * $3' "$tmp/sums" | wc -l)" "$(wc -l <"$tmp/sums")" \
		"$table: states sum to the wall time, which is what all buffers cover"
	[ -s "$tmp/sums" ]
	ok $? "... of all of them"
done

# ---- by slices of time ------------------------------------------------------------------------------

is "$(rows hyp,firmware reason --by 2us "$tmp/hyp.dat" >/dev/null; stat --show firmware --csv --by 2us "$tmp/hyp.dat" | grep ^slices)" \
'slices,machine,at,what,reason,count,total_ns
slices,host,0.000000500,hyp,hvc,1,400
slices,host,0.000000500,hyp,guest_exit,1,300
slices,host,0.000000500,hyp,reason 9,1,100
slices,host,0.000002500,hyp,smc,1,100
slices,host,0.000008500,hyp,psci,1,100' "slices, for programs"
is "$(stat --show exits --by 500ns "$tmp/exits.dat" | sed -n '/^By/,$p')" \
'By slices of 500ns: time in each, @ as long as the longest of its line
                             0.000000900
exit HVC64            500ns | #@:     |
exit SYS64            300ns |       @ |
exit SERROR           100ns |        @|
exit exit 0x7         100ns |        @|' "slices, for people"
for file in lab-protected x86/trace; do
	for what in exit hyp; do
		table=${what/exit/exits}
		stat --csv --show buffers --by 7ms "${as_ns[@]}" tests/data/$file.dat | grep ^slices |
			perl -F, -lane 'BEGIN { $what = shift } $t{$F[4]} += $F[6], $n{$F[4]} += $F[5] if $F[3] eq $what;
				END { print "$_\t$n{$_}\t$t{$_}" for sort keys %n }' $what >"$tmp/slices"
		case $what in
		exit) rows exits what,count,total_ns "${as_ns[@]}" tests/data/$file.dat ;;
		hyp) rows hyp reason,count,total_ns "${as_ns[@]}" tests/data/$file.dat ;;
		esac | sort >"$tmp/whole"
		same "$tmp/slices" "$tmp/whole" "$file: slices add up to table $table"
	done
done
stat --show exits --by 500ns --svg "$tmp/map.svg" "$tmp/exits.dat" >/dev/null
is "$(grep -c '<rect x' "$tmp/map.svg") $(grep -o '<title>[^<]*' "$tmp/map.svg" | head -2 | tr '\n' ' ')" \
	"6 <title>0.000001400: 400ns <title>0.000001900: 500ns " "slices as a picture"
perl -0777 -ne 'my @open; while (/<(\/?)(\w+)[^>]*?(\/?)>/g) { if ($1) { exit 1 if pop @open ne $2 } elsif (!$3) { push @open, $2 } } exit @open' \
	"$tmp/map.svg"
is $? 0 "... whose elements are closed"
is "$(picture_names "$tmp/map.svg")" "exits.dat: when does time go to exits and the hypervisor?
time since 0.000000900 s
kind and reason" "... with a title and axes"
like "$(cat "$tmp/map.svg")" '>500ns</text>.*|>1.000us</text>' "... a scale"
like "$(cat "$tmp/map.svg")" '>as much as the longest slice of the row</text>' "... and a legend"
cp "$tmp/exits.dat" "$tmp/input.dat"
stat --by 500ns --svg "$tmp/input.dat" "$tmp/input.dat" >/dev/null
is "$? $(cat "$tmp/err")" "1 hyptrace: '$tmp/input.dat' is to be read, not to be written" "--svg: an input"
same "$tmp/input.dat" "$tmp/exits.dat" "... is as it was"
stat --by 1ns --svg "$tmp/none.svg" "$tmp/exits.dat" >/dev/null
is "$? $(cat "$tmp/err")" "1 hyptrace: --svg: 4301 slices are more than the 4096 that a picture has: --by a longer time" \
	"a picture of too many slices"
like "$(stat --by 1us --show lost tests/data/lab-protected.dat)" '^slices: [0-9]+ stretches are left out: beyond 65536 slices' \
	"too many slices are said to be"
unlike "$(stat --by 1ns --show lost tests/data/functions/trace.dat)" 'neither exits nor visits' "... also where all are left out"
stat --by 1ns --svg "$tmp/none.svg" tests/data/functions/trace.dat >/dev/null
is "$? $(grep -v 'guests. files' "$tmp/err") $(ls "$tmp/none.svg" 2>&1 | grep -c 'No such')" \
	"1 hyptrace: --svg: all lies beyond 65536 slices: --by a longer time 1" "... and a picture of none is not drawn"

# ---- where in the file: what is found is at that time on that CPU --------------------------------------

while IFS=$'\t' read -r what at cpu; do
	"$hyptrace" report --cpu "$cpu" -t tests/data/lab-protected.dat 2>/dev/null | grep -q " $at: ${what/exit/kvm_exit}"
	ok $? "the longest $what is at $at on CPU $cpu"
done < <(rows longest what,at,cpu --top 1 tests/data/lab-protected.dat | sed 's/^hyp\t/hyp_enter\t/')

# ---- tables -------------------------------------------------------------------------------------------------

is "$(stat --rows 2 --show events tests/data/lab-protected.dat)" 'Events
buffer  system      event      events  share
hyp     hypervisor  hyp_enter    1596  38.5%
hyp     hypervisor  hyp_exit     1596  38.5%
... and 3 more rows: --rows 0 shows them all' "--rows"
is "$(rows events event --rows 2 tests/data/lab-protected.dat | wc -l)" 5 "programs get all rows"
for file in tests/data/*.dat tests/data/*/trace.dat; do
	stat --per vcpu --by 100ms "$file" | awk 'length > 80' | grep -v '^[a-z, ]*: ' >"$tmp/wide"
	is "$(cat "$tmp/wide")" "" "$file: 80 columns"
	stat --json --by 100ms "$file" | perl -MJSON::PP -0777 -ne 'decode_json($_)->{events}[0]{events} > 0 or exit 1'
	is $? 0 "$file: JSON"
done
is "$(stat --json --show exits,hyp "$tmp/spans.dat")" '{
  "schema": 1,
  "exits": [],
  "hyp": [],
  "notes": []
}' "programs get empty tables"
is "$(stat --show exits,hyp "$tmp/spans.dat")" 'exits: the files have no kvm_entry with a kvm_exit
hyp: the files have no hyp_enter with a hyp_exit' "people are told why"

# ---- the manual -----------------------------------------------------------------------------------------------------

mkdir "$tmp/cwd"
cp tests/data/guest/trace.dat "$tmp/cwd/trace.dat"
cp tests/data/guest/trace-Guest.dat "$tmp/cwd/trace-guest.dat"
while read -r line; do
	if [[ $line == *jq* ]] && ! command -v jq >/dev/null; then
		skip 1 "no jq"
		continue
	fi
	(cd "$tmp/cwd" && PATH=$build:$PATH bash -o pipefail -c "$line") >"$tmp/out" 2>"$tmp/err"
	[ $? = 0 ] && [ -s "$tmp/out" ] && ! grep -vE "guests' files are read too|'s clock aligned: within" "$tmp/err"
	ok $? "an example of the manual: $line" || diag "$(cat "$tmp/err")"
done < <(sed -n '/^\.SH EXAMPLES/,$ s/^# //p' Documentation/hyptrace-stat.1 | sed 's/\\-/-/g')
[ -s "$tmp/cwd/exits.svg" ]
ok $? "... which made a picture"

# ---- options, files ---------------------------------------------------------------------------------------------

# wrong MESSAGE OPTION...
wrong() {
	local message=$1
	shift
	stat "$@" >"$tmp/out"
	is "$? $(cat "$tmp/out" "$tmp/err")" "2 $message" "refused: $*"
}
wrong "hyptrace stat: -s exit: not one of buffers lost events exits guest mmio ioport sysreg hypercall faults hyp firmware vcpus tasks steal cpu spans longest" --show exit
wrong "hyptrace stat: -s exits,: not one of buffers lost events exits guest mmio ioport sysreg hypercall faults hyp firmware vcpus tasks steal cpu spans longest" --show exits,
wrong "hyptrace stat: -p cpu: neither guest nor vcpu" --per cpu
wrong "hyptrace stat: -b 10: not a duration such as 250us, 10ms, 2s" --by 10
wrong "hyptrace stat: -b -1ms: not a duration such as 250us, 10ms, 2s" --by -1ms
wrong "hyptrace: --svg needs --by TIME" --svg x
wrong "hyptrace stat: specify either --json or --csv" --json --csv
"$hyptrace" stat tests/data/lab-protected.dat 2>"$tmp/err" >/dev/full
is "$? $(cat "$tmp/err")" "1 hyptrace: cannot write the output: No space left on device" "a full disk"
(cd "$tmp" && "$hyptrace" stat) 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 hyptrace: cannot open 'trace.dat': No such file or directory" "no file"
make_trace "$tmp/bad.dat" <<'E'
1000 0 7 kvm_entry	1
2000 0 7 kvm_exit	0	0	1
3000 0 7 kvm_entry	1
1000 1 7 print	0	PAGE-OF-CPU-1
E
perl -0777 -pi -e 'my $at = index($_, "PAGE-OF-CPU-1"); $at -= $at % 4096; substr($_, $at + 8, 4) = "\xff\xff\xff\x0f"' \
	"$tmp/bad.dat"
is "$(rows events event,events "$tmp/bad.dat")" "kvm_entry	2
kvm_exit	1" "of a damaged file what is readable is told"
is "$(rows exits what,count "$tmp/bad.dat")" "" "... but no exits, which may be in what is not"
stat --show lost "$tmp/bad.dat" >"$tmp/out"
is "$? $(tail -n 1 "$tmp/out") / $(tail -n 1 "$tmp/err")" \
	"1 -         1     -                1 / hyptrace: the files are damaged in 1 places: what lay there is missing" \
	"... and the status and a message say that some is not"

# ---- CPU use by samples --------------------------------------------------------------------------------

is "$(stat --show cpu tests/data/profile/trace.dat)" 'CPU use by samples, in shares of the machine'"'"'s
task       samples  share    sys   usr  guest sys  guest usr
<idle>          12  40.0%  40.0%  0.0%       0.0%       0.0%
hyptrace         8  26.7%  23.3%  3.3%       0.0%       0.0%
CPU 0/KVM        4  13.3%   0.0%  0.0%      13.3%       0.0%
CPU 1/KVM        4  13.3%   3.3%  0.0%       0.0%      10.0%
sleep            2   6.7%   6.7%  0.0%       0.0%       0.0%' "--show cpu"
is "$(stat --csv --show cpu tests/data/profile/trace.dat | awk -F, '$1 == "cpu" && NR > 1 { n += $4; s += $5 } END { print n, s }')" \
	"$("$hyptrace" report tests/data/profile/trace.dat | grep -c ' sample: ') 1" "... has all samples that report prints"
is "$(stat --show cpu tests/data/lab-protected.dat)" 'cpu: the files have no samples: record with --profile 99' "... without samples"

# ---- without reasons: a guest's event shows that its vCPU ran ----------------------------------------

raw=(tests/data/raw/trace.dat tests/data/raw/trace-Guest.dat)
# of_raw SQL: one number
of_raw() { "$hyptrace" sql -q --csv "${raw[@]}" "$1" | tail -n 1 | cut -d, -f 2; }
bound=$(of_raw 'SELECT max(bound) FROM clocks')
inside="SELECT count(DISTINCT s.ts || ':' || s.vcpu) FROM vcpu_states s JOIN events e
	ON e.machine = 'Guest' AND e.cpu = s.vcpu AND e.ts > s.ts + $bound AND e.ts < s.ts + s.dur - $bound"
is "$(of_raw "$inside AND s.state = 'lost'")" 0 "no lost time of a vCPU has events of its guest surely inside"
[ "$(of_raw "$inside AND s.state = 'guest'")" -gt 20 ]
ok $? "... but time of the guest has"

done_testing
