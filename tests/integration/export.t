#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace export: lines of JSON, and traces for Perfetto, whose packets protoc
# takes apart. With TRACE_PROCESSOR=/path/to/trace_processor_shell, Perfetto itself
# reads them too.
. tests/integration/lib.sh
. tests/integration/packets.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home
host=$tmp/host.dat guest=$tmp/guest.dat

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}

json() {
	"$hyptrace" export --json "$@" 2>/dev/null
}

perfetto() { # [OPTION...] FILE...
	"$hyptrace" export -q --perfetto "$tmp/out" "$@" && packets "$tmp/out"
}

# The events of ftrace bundles, one a line: MACHINE CPU EVENT, machines and CPUs in order
events() {
	perl -ne 'next unless /ftrace_events \{ cpu: (\d+)/; my $cpu = $1;
		my $machine = /machine_id: (\d+)/ ? $1 : 0;
		print "$machine $cpu $1\n" while /event \{ (timestamp: (?:[^{}]|(\{(?:[^{}]|(?2))*\}))*) \}/g' |
		sort -s -n -k1,1 -k2,2
}

fails() { # STATUS PATTERN NAME COMMAND...
	local status=$1 pattern=$2 name=$3 err
	shift 3
	err=$("$@" 2>&1 >/dev/null)
	is "$?" "$status" "$name: status"
	like "$err" "$pattern" "$name: message"
}

# ---- JSON ---------------------------------------------------------------------------

make_trace "$host" <<'E'
id 11
guest vm 22 0:100 1:101
uname Linux box 7.1.0 #1 SMP PREEMPT aarch64
task 100 CPU 0/KVM
task 7 a "b\c
process 300 /usr/bin/vmm
1000000000 0 7 sched_switch	a "b\x01c	7	120	1	CPU 0/KVM	100	120
1000002000 0 100 kvm_entry	0xffff800080001000
1000009000 0 100 kvm_exit	2	0x24	0xffff800080001004
1000010000 1 7 irq_handler_entry	27	arch\xfftimer
1000011000 1 7 irq_handler_exit	27	1
1000012000 1 7 thing	1	-3	18446744073709551615	40 41 42	late\x00text
raw 1000013000 1 ff 7f 00 00 07 00 00 00 2a
lost 1 3
1000014000 1 7 print	0	hello world\x0a
buffer hyp
1000001000 0 100 hypervisor:hyp_enter	5	100
E
make_trace "$guest" <<'E'
id 22
shift 11 500
1000002000 0 9 print	0	in the guest
E

out=$(json "$host")
# what "info" is for sched_switch depends on the libtraceevent plugins there are
is "$(head -3 <<<"$out" | sed '1s/,"info":.*/}/')" '{"file":"host.dat","guest":null,"buffer":"","cpu":0,"time":1000000000,"pid":7,"comm":"a \"b\\c","system":"sched","event":"sched_switch","fields":{"prev_comm":"a \"b\u0001c","prev_pid":7,"prev_prio":120,"prev_state":"1","next_comm":"CPU 0/KVM","next_pid":100,"next_prio":120}}
{"file":"host.dat","guest":null,"buffer":"hyp","cpu":0,"time":1000001000,"pid":100,"comm":"CPU 0/KVM","system":"hypervisor","event":"hyp_enter","fields":{"reason":5,"vcpu":100},"info":"reason=guest_exit vcpu=100 (CPU 0/KVM)"}
{"file":"host.dat","guest":null,"buffer":"","cpu":0,"time":1000002000,"pid":100,"comm":"CPU 0/KVM","system":"kvm","event":"kvm_entry","fields":{"vcpu_pc":"18446603338368684032"},"info":"PC: 0xffff800080001000"}' \
	"JSON: a record a line, buffers merged"
like "$out" '"fields":\{"flag":true,"small":-3,"big":"18446744073709551615","list":\[40,41,42\],"text":"late"\}' \
	"JSON: fields have types"
like "$out" $'"name":"arch\xef\xbf\xbdtimer"' "JSON: what is no UTF-8 is replaced"
like "$out" '"time":1000013000,"pid":null,"comm":null,"system":null,"event":null,"id":32767,"data":\[255,127,0,0,7,0,0,0,42' \
	"JSON: a record of an unknown event as bytes"
like "$out" '"cpu":1,"lost":3,"time":1000014000.*"buf":"hello world\\n"' "JSON: losses are told with the next record"
is "$(perl -MJSON::PP -ne 'JSON::PP->new->utf8->decode($_); $n++; END { print $n }' <<<"$out")" "9" \
	"JSON: nine records, every line valid"
is "$(json "$host" "$guest" | grep -E '"time":100000[12][0-9]{3},' | sed 's/"buffer.*"time"/"time"/; s/"pid.*//')" \
	'{"file":"host.dat","guest":null,"time":1000001000,
{"file":"host.dat","guest":null,"time":1000002000,
{"file":"guest.dat","guest":"vm","time":1000002500,' "JSON: a guest has its name and the host's time"
is "$(json -o "$tmp/lines" "$host"; cat "$tmp/lines")" "$out" "JSON: -o"
is "$(cd "$tmp" && cp host.dat trace.dat && "$hyptrace" export -j 2>/dev/null | sed 's/trace.dat/host.dat/')" \
	"$out" "JSON: trace.dat when nothing is named"

# jq 1.6 and JavaScript have 53 bits. By the field's size and not by its value: a filter
# that is right for one record is right for all.
make_trace "$tmp/wide.dat" <<'E'
1000 0 7 wide	-9223372036854775808	9007199254740993 9007199254740994	4294967295
2000 0 7 wide	-1	0 1	0
E
wide=$(json "$tmp/wide.dat")
is "$(sed 's/.*"fields"://; s/,"info".*//' <<<"$wide")" \
	'{"below":"-9223372036854775808","pair":["9007199254740993","9007199254740994"],"small":4294967295}
{"below":"-1","pair":["0","1"],"small":0}' "JSON: numbers of 64 bits are strings, whatever their value"
if command -v jq >/dev/null; then
	is "$(jq -r '.fields | [.below, .pair[], (.small | tostring)] | @tsv' <<<"$wide")" \
		$'-9223372036854775808\t9007199254740993\t9007199254740994\t4294967295\n-1\t0\t1\t0' \
		"... jq keeps every digit"
else
	skip 1 "no jq"
fi

# ---- what is refused ------------------------------------------------------------------

fails 2 'specify one of --perfetto OUT, --ctf DIR, --json and --parquet DIR' "no form" "$hyptrace" export "$host"
fails 2 'specify one of' "both forms" "$hyptrace" export --json --perfetto "$tmp/x" "$host"
fails 2 'o is for --json' "two outputs" "$hyptrace" export -o "$tmp/y" --perfetto "$tmp/x" "$host"
fails 2 'hypertrace-desc is for --perfetto' "a description for JSON" "$hyptrace" export --json --hypertrace-desc x "$host"
fails 1 "cannot open '.*/none.dat': No such file" "no such file" "$hyptrace" export --json "$tmp/none.dat"
fails 1 'is to be read, not to be written' "an input as output" "$hyptrace" export --json -o "$host" "$host"
is "$(json "$host")" "$out" "... which is as it was"
fails 1 "cannot write '/dev/full': No space left" "a full disk" "$hyptrace" export --json -o /dev/full "$host"
echo nonsense >"$tmp/nonsense.dat"
fails 1 "nonsense.dat': it is damaged" "no trace.dat" "$hyptrace" export --json "$tmp/nonsense.dat"
head -c 20000 "$host" >"$tmp/short.dat"
fails 1 "short.dat': it is damaged" "half a file" "$hyptrace" export --json -o "$tmp/half" "$tmp/short.dat"
[ ! -e "$tmp/half" ]
ok $? "... leaves no file"

# Ctrl-C, which is pending from the start here: of the output, a file or a directory, nothing is left
mkdir "$tmp/stopped"
interrupted() { # NAME OPTION...
	fails 1 "cannot write '$tmp/stopped/x': Operation canceled" "Ctrl-C, $1" perl -MPOSIX \
		-e 'sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGINT)); kill INT => $$; exec @ARGV' "$hyptrace" export "${@:2}" "$host"
	is "$(ls -A "$tmp/stopped")" "" "... and nothing is left"
}
interrupted JSON --json -o "$tmp/stopped/x"
interrupted Perfetto --perfetto "$tmp/stopped/x"
interrupted Parquet --parquet "$tmp/stopped/x"
[[ $("$hyptrace" export --ctf "$tmp/ctf" "$host" 2>&1) == *"built without"* ]] || interrupted CTF --ctf "$tmp/stopped/x"

# a page whose commit word cannot be: what is good comes out, and the status tells
make_trace "$tmp/damaged.dat" <<'E'
1000000000 0 7 print	0	good
1000000000 1 7 print	0	PAGE-OF-CPU-1
E
perl -0777 -pi -e 'my $at = index($_, "PAGE-OF-CPU-1"); $at -= $at % 4096; substr($_, $at + 8, 4) = "\xff\xff\xff\x0f"' \
	"$tmp/damaged.dat"
fails 1 'CPU 1 has a damaged page' "a damaged page" "$hyptrace" export --json "$tmp/damaged.dat"
damaged=$(json "$tmp/damaged.dat")
like "$damaged" '"buf":"good"' "... and the good one is there"
like "$damaged" '"cpu":1,"lost":true\}' "... and the loss"

# clocks that tick: ns only where the file says how long a tick is
for clock in counter x86-tsc ppc-tb; do
	make_trace "$tmp/ticks.dat" <<<"clock $clock"$'\n'"1000 0 7 print	0	x"
	fails 0 "warning: $tmp/ticks.dat: times are ticks of the clock $clock, not ns" "the clock $clock" \
		"$hyptrace" export --json "$tmp/ticks.dat"
done
like "$(json "$tmp/ticks.dat")" '"time":1000,' "... ticks are left as they are"
make_trace "$tmp/tsc.dat" <<<$'clock x86-tsc\ntsc 3 1\n1000 0 7 print\t0\tx'
is "$("$hyptrace" export --json -o "$tmp/lines" "$tmp/tsc.dat" 2>&1)" "" "x86-tsc with TSC2NSEC: no warning"
like "$(cat "$tmp/lines")" '"time":1500,' "... its times are ns"

# ---- Perfetto --------------------------------------------------------------------------

# the order of files does not matter
all=$(perfetto "$guest" "$host")
is "$(grep -v 'ftrace_events\|track_' <<<"$all")" 'sequence_flags: 1 system_info { utsname { sysname: "Linux" version: "#1 SMP PREEMPT" release: "7.1.0" machine: "aarch64" } machine_name: "host" } first_packet_on_sequence: true
clock_snapshot { clocks { clock_id: 6 timestamp: 1000000000 } primary_trace_clock: 6 }
process_tree { processes { pid: 300 cmdline: "/usr/bin/vmm" } }
timestamp: 1000000000 generic_kernel_task_rename_event { tid: 100 comm: "CPU 0/KVM" }
timestamp: 1000000000 generic_kernel_task_rename_event { tid: 7 comm: "a \"b\\c" }
sequence_flags: 1 system_info { machine_name: "vm" } first_packet_on_sequence: true machine_id: 1
machine_id: 1 remote_clock_sync { synced_clocks { client_clocks { clocks { clock_id: 6 timestamp: 1000000000 } } host_clocks { clocks { clock_id: 6 timestamp: 1000000000 } } } synced_clocks { client_clocks { clocks { clock_id: 6 timestamp: 1000000000 } } host_clocks { clocks { clock_id: 6 timestamp: 1000000000 } } } }' \
	"Perfetto: machines, their clocks and threads"
is "$(events <<<"$all" | grep -v hyp_)" '0 0 timestamp: 1000000000 pid: 7 sched_switch { prev_comm: "a \"b\001c" prev_pid: 7 prev_prio: 120 prev_state: 1 next_comm: "CPU 0/KVM" next_pid: 100 next_prio: 120 }
0 0 timestamp: 1000002000 pid: 100 kvm_entry { vcpu_pc: 18446603338368684032 }
0 0 timestamp: 1000009000 pid: 100 kvm_exit { esr_ec: 36 ret: 2 vcpu_pc: 18446603338368684036 }
0 1 timestamp: 1000010000 pid: 7 irq_handler_entry { irq: 27 name: "arch\357\277\275timer" }
0 1 timestamp: 1000011000 pid: 7 irq_handler_exit { irq: 27 ret: 1 }
0 1 timestamp: 1000012000 pid: 7 generic { event_name: "thing" field { name: "flag" uint_value: 1 } field { name: "small" int_value: -3 } field { name: "big" uint_value: 18446744073709551615 } field { name: "list" str_value: "40,41,42" } field { name: "text" str_value: "late" } }
0 1 timestamp: 1000013000 pid: 0 generic { event_name: "unknown event" field { name: "id" uint_value: 32767 } }
0 1 timestamp: 1000014000 pid: 7 print { ip: 0 buf: "hello world\n" }
1 0 timestamp: 1000002500 pid: 9 print { ip: 0 buf: "in the guest" }' \
	"Perfetto: known events, generic ones, guests on their machine"
is "$(grep 'lost_events: true' <<<"$all" | events | cut -d' ' -f1-6)" "0 1 timestamp: 1000014000 pid: 7" \
	"Perfetto: a bundle begins where events were lost"

# another architecture's fields: nothing of the event is left out
make_trace "$tmp/empty.dat" </dev/null
is "$(perfetto "$tmp/empty.dat" | tracks)$?" 0 "Perfetto: a file without a record"
make_trace "$tmp/kvm.dat" <<'E'
1000 0 7 kvm_mmio	2	9
E
is "$(perfetto "$tmp/kvm.dat" | events)" '0 0 timestamp: 1000 pid: 7 generic { event_name: "kvm_mmio" field { name: "type" uint_value: 2 } field { name: "other" uint_value: 9 } }' \
	"Perfetto: an event of KVM with fields that Perfetto does not know"
# the guest may have been left and entered meanwhile
make_trace "$tmp/lost.dat" <<'E'
1000 0 7 kvm_entry	1
lost 0 2
1500 0 7 kvm_exit	0	0	2
1700 0 7 kvm_entry	2
1900 0 7 kvm_exit	2	0x24	3
1950 0 7 kvm_entry	2
E
is "$(perfetto "$tmp/lost.dat" | tracks)" 'Guests > vCPU thread 7 | begin 1500 not recorded IRQ (reason="IRQ" pc=2)
Guests > vCPU thread 7 | end 1700
Guests > vCPU thread 7 | begin 1700 guest (coarse="true")
Guests > vCPU thread 7 | end 1900
Guests > vCPU thread 7 | begin 1900 not recorded TRAP DABT_LOW (reason="TRAP" class="DABT_LOW" pc=3)
Guests > vCPU thread 7 | end 1950' "Perfetto: what a vCPU did is not known where events were lost"
# only kvm_exit was recorded: the guest may have run all the time between two of them
printf '1000 0 7 kvm_exit\t2\t0x24\t1\n2000 0 7 kvm_exit\t0\t0\t2\n3000 0 7 print\t0\tx\n' | make_trace "$tmp/exits.dat"
is "$(perfetto "$tmp/exits.dat" | tracks)" '' "Perfetto: exits without entries tell no states"
printf '1500 1 8 kvm_entry\t3\n2500 1 8 kvm_entry\t4\n3000 1 7 print\t0\tx\n' | make_trace "$tmp/entries.dat"
is "$(perfetto "$tmp/entries.dat" | tracks)" '' "Perfetto: nor do entries without exits"

# Every hypervisor event of both generations, some without their counterpart.
make_trace "$tmp/hyp.dat" <<'E'
guest vm 22 0:100
task 100 CPU 0/KVM
1000 0 100 kvm_entry	0x1000
4000 0 100 kvm_exit	2	0x24	0x1004
6000 0 100 kvm_entry	0x1004
buffer hyp
500 0 100 hypervisor:hyp_enter	1	0
700 0 100 hypervisor:host_smc	0xc4000003	1
900 0 100 hypervisor:hyp_exit	6	0
1500 0 100 hypervisor:hyp_exit	7	100
2500 0 100 hypervisor:hyp_enter	5	100
2600 0 100 hypervisor:hyp_exit	7	100
3500 0 100 hypervisor:hyp_enter	5	100
3600 0 100 hypervisor:hyp_exit	6	0
100 1 0 hyp:hyp_enter
200 1 0 host_mem_abort	0x93c08047	0x40001000
300 1 0 hyp:hyp_exit
400 1 0 hyp:hyp_enter
500 1 0 hyp:hyp_enter
600 1 0 hyp:hyp_exit
100 2 0 hyp:hyp_enter
lost 2 5
200 2 0 hyp:hyp_exit
100 3 0 hyp:hyp_enter
E
all=$(perfetto "$tmp/hyp.dat")
is "$(events <<<"$all" | grep -v kvm)" '0 0 timestamp: 500 pid: 100 hypervisor_hyp_enter { }
0 0 timestamp: 700 pid: 100 hypervisor_host_smc { id: 3288334339 forwarded: 1 }
0 0 timestamp: 900 pid: 100 hypervisor_hyp_exit { }
0 0 timestamp: 1500 pid: 100 generic { event_name: "hyp_exit" field { name: "reason" uint_value: 7 } field { name: "vcpu" int_value: 100 } }
0 0 timestamp: 2500 pid: 100 hypervisor_hyp_enter { }
0 0 timestamp: 2600 pid: 100 hypervisor_hyp_exit { }
0 0 timestamp: 3500 pid: 100 hypervisor_hyp_enter { }
0 0 timestamp: 3600 pid: 100 hypervisor_hyp_exit { }
0 1 timestamp: 100 pid: 0 hyp_enter { }
0 1 timestamp: 200 pid: 0 host_mem_abort { esr: 2478866503 addr: 1073745920 }
0 1 timestamp: 300 pid: 0 hyp_exit { }
0 1 timestamp: 400 pid: 0 generic { event_name: "hyp_enter" }
0 1 timestamp: 500 pid: 0 hyp_enter { }
0 1 timestamp: 600 pid: 0 hyp_exit { }
0 2 timestamp: 100 pid: 0 generic { event_name: "hyp_enter" }
0 2 timestamp: 200 pid: 0 generic { event_name: "hyp_exit" }
0 3 timestamp: 100 pid: 0 generic { event_name: "hyp_enter" }' "Perfetto: only hyp_enter and hyp_exit that belong together make its slices"
is "$(tracks <<<"$all" | grep Hypervisor | sort -s -n -k5,5)" 'Hypervisor (EL2) > CPU 0 | begin 500 hvc (reason="hvc" host_smc.id=3288334339 host_smc.forwarded=1 call="PSCI_CPU_ON SMC64" left_for="eret_host")
Hypervisor (EL2) > CPU 0 | end 900
Hypervisor (EL2) > CPU 0 | begin 2500 guest_exit (reason="guest_exit" vcpu=100 left_for="eret_guest")
Hypervisor (EL2) > CPU 0 | end 2600
Hypervisor (EL2) > CPU 0 | begin 3500 guest_exit (reason="guest_exit" vcpu=100 left_for="eret_host")
Hypervisor (EL2) > CPU 0 | end 3600
Hypervisor (EL2) > CPU 1 | begin 100 host_mem_abort (host_mem_abort.esr=2478866503 host_mem_abort.addr=1073745920 syndrome="DABT_LOW write of 8 bytes from x0, level 3 translation fault")
Hypervisor (EL2) > CPU 1 | end 300
Hypervisor (EL2) > CPU 1 | instant 400 hyp (end="lost")
Hypervisor (EL2) > CPU 1 | begin 500 hyp
Hypervisor (EL2) > CPU 1 | end 600
Hypervisor (EL2) > CPU 2 | instant 100 hyp (end="lost")
Hypervisor (EL2) > CPU 3 | instant 100 hyp (end="open")' "Perfetto: the hypervisor's time with reasons and what they mean"
is "$(tracks <<<"$all" | grep Guest)" 'Guest vm > vCPU 0 | begin 1000 host (coarse="true")
Guest vm > vCPU 0 | end 1500
Guest vm > vCPU 0 | begin 1500 guest
Guest vm > vCPU 0 | end 2500
Guest vm > vCPU 0 | begin 2500 hypervisor guest_exit (reason="guest_exit")
Guest vm > vCPU 0 | end 2600
Guest vm > vCPU 0 | begin 2600 guest
Guest vm > vCPU 0 | end 3500
Guest vm > vCPU 0 | begin 3500 hypervisor guest_exit (reason="guest_exit")
Guest vm > vCPU 0 | end 3600
Guest vm > vCPU 0 | begin 4000 not recorded TRAP DABT_LOW (reason="TRAP" class="DABT_LOW" pc=4100)
Guest vm > vCPU 0 | end 6000' "Perfetto: what vCPUs do, by KVM and by the hypervisor"

# 16,384 texts of a machine have numbers in its packets; those of further syndromes are written in full
syndromes() { # FIRST LAST
	perl -e 'printf "%d 1 0 hyp:hyp_enter\n%d 1 0 host_mem_abort\t0x%x\t0\n%d 1 0 hyp:hyp_exit\n", 10 * $_, 10 * $_ + 1,
		0x62000000 + 2 * $_, 10 * $_ + 2 for $ARGV[0] .. $ARGV[1]' "$@" | sed '1i buffer hyp' | make_trace "$tmp/many.dat"
	perfetto "$tmp/many.dat" | tracks | grep -o 'syndrome="[^"]*"'
}
{ syndromes 1 8500 && syndromes 8501 17000; } >"$tmp/halves"
syndromes 1 17000 >"$tmp/whole"
same "$tmp/whole" "$tmp/halves" "Perfetto: more texts than have numbers"
is "$(sort -u "$tmp/whole" | wc -l) $(inflate "$tmp/out" | protoc --decode=perfetto.protos.Trace -I tests tests/integration/perfetto.proto |
	grep -c ' iid: ')" "17000 16384" "... each another, and so many have numbers"

# A task of the host that has a vCPU's CPU, a guest's task that is robbed of its time by it, and what an exit was for
make_trace "$tmp/states.dat" <<'E'
id 11
guest vm 22 0:100
task 100 CPU 0/KVM
1000 0 100 kvm_entry	1
3000 0 100 kvm_exit	2	0x24	0x1004
3100 0 100 kvm_guest_fault	0x1004	0x92000007	0x10	0x40000ff8
3500 0 100 sched_switch	CPU 0/KVM	100	120	0	hog	9	120
4500 0 9 sched_switch	hog	9	120	0	CPU 0/KVM	100	120
5000 0 100 kvm_entry	2
7000 0 100 kvm_exit	0	0	2
8000 0 100 kvm_entry	2
E
make_trace "$tmp/states-guest.dat" <<'E'
id 22
shift 11 0
task 5 victim
2000 0 0 sched_switch	swapper/0	0	120	0	victim	5	120
7500 0 5 sched_switch	victim	5	120	1	swapper/0	0	120
E
is "$(perfetto "$tmp/states.dat" "$tmp/states-guest.dat" | tracks)" 'Guest vm > vCPU 0 | begin 1000 guest (coarse="true")
Guest vm > vCPU 0 | end 3000
Guest vm > vCPU 0 | begin 3000 not recorded TRAP DABT_LOW (reason="TRAP" class="DABT_LOW" pc=4100 esr=2449473543 addr=1073745912 syndrome="DABT_LOW read, level 3 translation fault")
Guest vm > vCPU 0 | end 3500
Guest vm > vCPU 0 | begin 3500 preempted (reason="TRAP" class="DABT_LOW" task="hog 9")
Guest vm > vCPU 0 | end 4500
Stolen from tasks > CPU 0 | begin 3000 victim (reason="TRAP" class="DABT_LOW" by="not recorded" bound_ns="unknown")
Stolen from tasks > CPU 0 | end 3500
Guest vm > vCPU 0 | begin 4500 host TRAP DABT_LOW (reason="TRAP" class="DABT_LOW" coarse="true")
Guest vm > vCPU 0 | end 5000
Stolen from tasks > CPU 0 | begin 3500 victim (reason="TRAP" class="DABT_LOW" by="preempted" task="hog 9" bound_ns="unknown")
Stolen from tasks > CPU 0 | end 4500
Guest vm > vCPU 0 | begin 5000 guest (coarse="true")
Guest vm > vCPU 0 | end 7000
Stolen from tasks > CPU 0 | begin 4500 victim (reason="TRAP" class="DABT_LOW" by="host" bound_ns="unknown" coarse="true")
Stolen from tasks > CPU 0 | end 5000
Guest vm > vCPU 0 | begin 7000 host IRQ (reason="IRQ" pc=2 coarse="true")
Guest vm > vCPU 0 | end 8000
Stolen from tasks > CPU 0 | begin 7000 victim (reason="IRQ" by="host" bound_ns="unknown" coarse="true")
Stolen from tasks > CPU 0 | end 7500' "Perfetto: who has a vCPU's CPU, and whom of the guest that robs"

make_trace "$tmp/marker.dat" <<'E'
task 7 crosvm
1000 0 7 print	0	503 VirtioFs Enter: release - (self.tag: "mtd")(inode: 42)
1100 0 7 print	0	504 VirtioFs Enter: read
1200 0 7 print	0	503 VirtioFs Exit: release
1300 0 7 print	0	504 VirtioFs Exit: read
1400 0 7 print	0	999 VirtioFs Exit: lost
2000 0 8 print	0	guest_hypertrace cpu=0x55 arg1=1 arg2=0x280
2100 0 8 print	0	guest_hypertrace arg1=3 arg2=7
2200 0 8 print	0	guest_hypertrace arg1=2
2300 0 8 print	0	guest_hypertrace arg1=9 arg2=0xff
E
cat >"$tmp/desc" <<'E'
1 frame_start width:u32
2 frame_end
3 state what:enum(7=busy)
E
is "$(perfetto --hypertrace-desc "$tmp/desc" "$tmp/marker.dat" | tracks)" 'crosvm > crosvm 7 | begin 1000 release (category="VirtioFs" id=503 self.tag="\"mtd\"" inode="42")
crosvm > crosvm 7 | begin 1100 read (category="VirtioFs" id=504)
crosvm > crosvm 7 | end 1200
crosvm > crosvm 7 | end 1300
crosvm > crosvm 7 | instant 1400 lost (category="VirtioFs" id=999)
hypertrace > thread 8 | begin 2000 frame (cpu=85 width="640")
hypertrace > thread 8 | instant 2100 state (what="busy")
hypertrace > thread 8 | end 2200
hypertrace > thread 8 | instant 2300 9 (arg2="0xff")' "Perfetto: spans of crosvm and hypertrace"
make_trace "$tmp/marks.dat" <<'E'
buffer hypertrace
2000 0 8 hypertrace:guest_hypertrace	3	0	1	640	vm
2100 1 9 hypertrace:guest_hypertrace	3	1	3	7	vm
2150 1 9 hypertrace:guest_hypertrace	4	1	2	7	vm
2200 1 9 hypertrace:guest_hypertrace	3	1	2	0	vm
E
is "$(perfetto --hypertrace-desc "$tmp/desc" "$tmp/marks.dat" | tracks)" \
	'hypertrace > vm client 3 | begin 2000 frame (client=3 width="640")
hypertrace > vm client 3 | instant 2100 state (client=3 what="busy")
hypertrace > vm client 4 | instant 2150 frame_end (client=4 arg2="0x7")
hypertrace > vm client 3 | end 2200' "Perfetto: spans of a guest's clients, on whatever vCPU"
echo '1 x:' >"$tmp/desc"
fails 1 'desc: line 1 makes no sense' "a wrong description" "$hyptrace" export -p "$tmp/out" \
	--hypertrace-desc "$tmp/desc" "$tmp/marker.dat"

# Perfetto knows ns alone: ticks would be times that are wrong without a sign of it
for clock in counter x86-tsc ppc-tb; do
	make_trace "$tmp/ticks.dat" <<<"clock $clock"$'\n'"1000 0 7 print	0	x"
	rm -f "$tmp/ticks"
	fails 1 "$tmp/ticks.dat: times are ticks of the clock $clock, whose rate neither the file \(TSC2NSEC\) nor its events show: Perfetto and CTF take ns; --ts2secs HZ sets the rate, --json keeps ticks" \
		"Perfetto: the clock $clock" "$hyptrace" export --perfetto "$tmp/ticks" "$host" "$tmp/ticks.dat"
	[ ! -e "$tmp/ticks" ]
	ok $? "... leaves no file"
done
is "$(perfetto "$tmp/tsc.dat" | events)" '0 0 timestamp: 1500 pid: 7 print { ip: 0 buf: "x" }' \
	"Perfetto: ticks with TSC2NSEC are ns"

# ---- foreign bytes -----------------------------------------------------------------------

# Names that a guest, a program or another tool chose: no UTF-8, half of a sequence, controls
bad=$'\xff\xc3\x1b[2J\x01'
make_trace "$tmp/$bad.dat" <<E
id 11
guest vm$bad 22 0:100
uname Linux box$bad 7.1$bad #1$bad aarch64$bad
task 100 CPU$bad
task 7 crosvm$bad
process 300 /usr/bin/vmm$bad
1000 0 7 sched_switch	prev$bad	7	120	1	next$bad	100	120
1100 0 100 kvm_entry	1
1200 0 100 kvm_exit	2	0x24	2
1300 0 101 kvm_exit	0	0	2
1400 0 7 print	0	503 Virtio${bad}Fs Enter: re${bad}lease - (ta${bad}g: "m${bad}d")
1500 0 7 print	0	503 Virtio${bad}Fs Exit: re${bad}lease
1600 0 7 print	0	guest_hypertrace arg1=1 arg2=2
1700 0 7 thing	1	1	1	1 2 3	te${bad}xt
buffer in${bad}stance
1900 0 7 print	0	x$bad
E
printf '1 %065d%s_start x%s:u64\n' 0 "$bad" "$bad" >"$tmp/desc"
lines=$(json "$tmp/$bad.dat")
is "$(perl -MJSON::PP -ne 'JSON::PP->new->utf8->decode($_); die "control" if /[\0-\x09\x0b-\x1f\x7f]/; $n++; END { print $n }' <<<"$lines")" \
	9 "foreign bytes: every line of JSON is valid"
like "$lines" '^\{"file":"[^"]+\\u001b\[2J\\u0001.dat".*"comm":"[^"]+\\u001b\[2J' "... the file's name and the task's among them"
perfetto "$tmp/$bad.dat" >"$tmp/text"
is "$(perl -MEncode -ne 'while (/"((?:[^"\\]|\\.)*)"/g) { my $s = $1;
	$s =~ s/\\([0-7]{3})/chr oct $1/ge;
	eval { decode("UTF-8", $s, Encode::FB_CROAK); 1 } or print "$1\n" }' "$tmp/text")" "" \
	"foreign bytes: every text of a Perfetto trace is UTF-8"
is "$(for name in vm CPU crosvm vmm prev next re ta m te x 7.1 '#1' aarch64; do
	grep -qF "$name"'\357\277\275\357\277\275\033[2J\001' "$tmp/text" || echo "$name"
done)" "" "... and all those names are there"

# ---- long files --------------------------------------------------------------------------

# what waits for what comes next on its CPU, while thousands come on others
{
	printf '1000 0 7 hyp:hyp_enter\n1001 1 7 hyp:hyp_enter\n'
	awk 'BEGIN { for (i = 0; i < 9000; i++) printf "%d 3 7 print\t0\tx\n", 2000 + i }'
	printf 'lost 1 2\n20000 0 7 hyp:hyp_exit\n20001 1 7 hyp:hyp_exit\n'
} | make_trace "$tmp/wait.dat"
all=$(perfetto "$tmp/wait.dat")
is "$(events <<<"$all" | grep hyp_)" '0 0 timestamp: 1000 pid: 7 hyp_enter { }
0 0 timestamp: 20000 pid: 7 hyp_exit { }
0 1 timestamp: 1001 pid: 7 generic { event_name: "hyp_enter" }
0 1 timestamp: 20001 pid: 7 generic { event_name: "hyp_exit" }' \
	"Perfetto: a hyp_enter waits for its hyp_exit, however much comes in between"
is "$(tracks <<<"$all" | sort)" 'Hypervisor (EL2) > CPU 0 | begin 1000 hyp
Hypervisor (EL2) > CPU 0 | end 20000
Hypervisor (EL2) > CPU 1 | instant 1001 hyp (end="lost")' "... and so does its slice"

awk 'BEGIN { for (i = 0; i < 400000; i++) printf "%d %d 7 print\t0\tline %d\n", 1000 * i, i % 4, i }' |
	make_trace "$tmp/long.dat"
one=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
if [ "$(nproc)" -gt 1 ]; then
	for form in "--json -o" --perfetto; do
		unpack="cat"
		[ "$form" != --perfetto ] || unpack=inflate # ISA-L's bytes of one packet differ once in some 100,000
		# shellcheck disable=SC2086
		"$hyptrace" export $form "$tmp/many" "$tmp/long.dat" &&
			taskset -c "$one" "$hyptrace" export $form "$tmp/alone" "$tmp/long.dat" &&
			$unpack "$tmp/many" >"$tmp/many.plain" && $unpack "$tmp/alone" >"$tmp/alone.plain" &&
			[ -s "$tmp/many.plain" ] && cmp "$tmp/many.plain" "$tmp/alone.plain"
		ok $? "$form: one core and all of them write the same"
	done
else
	skip 2 "one core"
fi

# more than the process may have; in one arena: where no second one fits, each allocation is a mapping
if [[ $build == *-san ]]; then
	skip 3 "ASan needs the address space"
else
	for form in "--json -o" --perfetto; do
		# shellcheck disable=SC2086
		(ulimit -v 40000 && MALLOC_ARENA_MAX=1 "$hyptrace" export $form "$tmp/out" "$tmp/long.dat")
		is "$? $(($(stat -c %s "$tmp/out") > 1000000))" "0 1" "$form: 400,000 events in 40 MB of address space"
	done
	size=$(inflate "$tmp/out" | wc -c)
	[ "$((size > 3 * $(stat -c %s "$tmp/out")))" = 1 ]
	ok $? "--perfetto: a third of the size or less, $(stat -c %s "$tmp/out") bytes of $size"
fi

# ---- real captures ---------------------------------------------------------------------

for file in tests/data/lab-protected.dat tests/data/lab-nvhe.dat tests/data/lab-stock-arm64.dat; do
	records=$(env -u TRACEEVENT_PLUGIN_DIR trace-cmd report -i $file 2>/dev/null | grep -c '\]')
	is "$(json $file | wc -l)" "$records" "$file: JSON has stock's number of records"
	all=$(perfetto $file)
	is "$(events <<<"$all" | wc -l)" "$records" "$file: so has the Perfetto trace"
	unlike "$all" ' [0-9]+: | [0-9]+ \{' "$file: no field that its definition does not have"
done

# ---- Perfetto itself ------------------------------------------------------------------

if [ -x "${TRACE_PROCESSOR:-}" ]; then
	O=$build tests/tools/trace-processor tests/data/lab-protected.dat tests/data/lab-nvhe.dat >"$tmp/judged" 2>&1
	ok $? "Perfetto's trace_processor finds what was exported" || diag "$(cat "$tmp/judged")"
else
	skip 1 "no TRACE_PROCESSOR"
fi

done_testing
