#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recording from a FAKE of Android's hypervisor buffers: a tree of plain files and
# FIFOs (fake-android.c) into which a helper (feed-android.c) writes raw pages.
# What the stock tools show of the result is compared with what was fed. The real
# thing differs where plain files cannot follow each other; see control_files() of lib.sh.
# shellcheck disable=SC2016 # awk has its own $
. tests/integration/lib.sh

hyptrace=$build/hyptrace
make_tree=$build/tests/integration/fake-android
feed=$build/tests/integration/feed-android
tree=$tmp/tracefs
dat=$tmp/trace.dat
export HYPTRACE_TRACING_DIR=$tree
bare_machine

command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"

# ---- helpers -----------------------------------------------------------------

# new_tree LAYOUT: sets hyp (the instance) and hyp_events, notes the tree's state
new_tree() {
	case $1 in
	android15) hyp=hyp ;;
	android16) hyp=hypervisor ;;
	esac
	hyp_events=$tree/$hyp/events/$hyp
	rm -rf "$tree" "$dat" "$dat.spool"
	[ -z "${once-}" ] || pages_once "$tree"
	"$make_tree" "$tree" "$1"
	state >"$tmp/before"
}

state() {
	control_files "$tree" "$tree/$hyp/set_ftrace_notrace"
}

untouched() {
	state >"$tmp/after"
	same "$tmp/after" "$tmp/before" "$1"
}

# record OPTION...: sets status; messages are in $tmp/err, the command's output in $tmp/out
record() {
	timeout 20 "$hyptrace" record -o "$dat" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# start OPTION...: in the background; pid is hyptrace's own
start() {
	"$hyptrace" record -o "$dat" "$@" 2>"$tmp/err" &
	pid=$!
}

all_events() {
	find "$hyp_events" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort
}

messages() {
	cat "$tmp/err"
}

# The file as trace-cmd shows it in $tmp/report, and in $tmp/shown its events as
# "[CPU] SEC.NSEC: EVENT: TEXT", and losses. Without plugins (-N): those for x86
# print our kvm events with their own fields.
report() {
	trace-cmd report -t -N "$dat" >"$tmp/report" 2>&1
	sed -e '/^cpus=/d' -e 's/^hyp: *//' -e 's/^ *[^ ]*-[0-9]* *\[/[/' -e 's/  */ /g' \
		-e 's/ *$//' "$tmp/report" >"$tmp/shown"
}

texts() {
	sed -E 's/^(\[[0-9]+\]) [0-9.]+:/\1/' "$tmp/shown"
}

# fed_events NAME: the file holds what the feeder says, and nothing else
fed_events() {
	report
	[ -s "$tmp/out" ]
	ok $? "$1: something was fed"
	same "$tmp/shown" "$tmp/out" "$1: trace-cmd report shows it"
	unlike "$(cat "$tmp/report")" 'FAILED TO PARSE|<\.\.\.>--1|\[UNKNOWN' "$1: all of it is readable"
}

# "EVENT ID" of the file's formats, by id
ids() {
	trace-cmd dump --events "$dat" 2>/dev/null |
		awk '/^name: / { n = $2 } /^ID: / { print n, $2 }' | sort -n -k 2
}

# refused MESSAGE NAME: the recording failed, said so, and left nothing behind
refused() {
	is "$status" 1 "$2: exit status"
	like "$(messages)" "$1" "$2: message"
	untouched "$2: tracefs is as before"
	is "$(ls -d "$dat"* 2>/dev/null)" "" "$2: no file, no spool"
}

# ---- one of each event ---------------------------------------------------------

# shellcheck disable=SC2034 # used by name
android15_shows='[000] hyp_enter:
[001] hyp_exit:
[000] host_hcall: id=2147483681 invalid=66
[001] host_smc: id=1152921506754330673 forwarded=98
[000] host_mem_abort: esr=0x1000000080000041 addr=0x2000000100000082
[001] __hyp_printk: fmt_id=81 a=0x20000001000000a2 b=0x30000001800000f3 c=0x4000000200000144 d=0x5000000280000195
[000] host_ffa_call: ffa_func=0x1000000080000061 a1=0x20000001000000c2 a2=0x3000000180000123 a3=0x4000000200000184 a4=50000002800001e5 handled=582 err=-2147482969
[001] psci_mem_protect: count=1152921506754330737 was=2305843013508661474
[000] iommu_idmap: from=0x1000000080000081 to=0x2000000100000102 prot=0x3
[001] func: 0xfffffffffffff091 <- 0xfffffffffffff122
[000] func_ret: 0xfffffffffffff0a1'

# shellcheck disable=SC2034
android16_shows='[000] hyp_enter:
[001] hyp_exit:
[000] host_hcall: id=2147483681 invalid=66
[001] host_smc: id=1152921506754330673 forwarded=98
[000] host_mem_abort: esr=0x1000000080000041 addr=0x2000000100000082
[001] __hyp_printk: fmt_id=81 a=0x20000001000000a2 b=0x30000001800000f3 c=0x4000000200000144 d=0x5000000280000195
[000] psci_mem_protect: count=1152921506754330721 was=2305843013508661442
[001] vcpu_illegal_trap: esr_el2=1000000080000071
[000] selftest:
[001] iommu_idmap: from=0x1000000080000091 to=0x2000000100000122 prot=0x3
[000] iommu_idmap_complete: map=1
[001] power_lock: vm=-2147483471 device=0x2000000100000162 lock=1 ret=708
[000] func: 0xfffffffffffff0c1 <- 0xfffffffffffff182
[001] func_ret: 0xfffffffffffff0d1'

each_event() {
	local layout=$1 shows=${1}_shows name="$1, each event"

	new_tree "$layout"
	record -B hyp -- "$feed" "$tree" events
	is "$status" 0 "$name: exit status"
	fed_events "$name"
	is "$(texts)" "${!shows}" "$name: texts"
	like "$(messages)" "^hyptrace: hyp: $hyp, $(all_events | wc -l) events, 2048 KiB per CPU, raw pages\$" \
		"$name: it says what it records"
	like "$(messages)" " hyp $(wc -l <"$tmp/out") events, .* \\(0 lost\\)" "$name: summary"
	like "$(trace-cmd dump --kallsyms "$dat" 2>&1)" '^ffff800080000000 T _text$' "$name: the kernel's symbols"
	untouched "$name: tracefs is as before"
	# the kernel refuses anything but one digit and a newline; the fake began with the digit alone
	is "$(find "$hyp_events" -name enable -size -2c -o -name enable -size +2c)" "" \
		"$name: two bytes are written to each enable file"
	is "$(head -qn 1 "$hyp_events"/*/enable | sort -u)" 0 "$name: all events are off again"
}

# What comes between a read that finds nothing and the end: before tracing is off it is as good as any other.
last_page() {
	local name="$1, a page at the end" page=$tmp/late

	new_tree "$1"
	cat "$tree/$hyp/per_cpu/cpu0/trace_pipe_raw" >"$page" &
	for cpu in 1 2; do cat "$tree/$hyp/per_cpu/cpu$cpu/trace_pipe_raw" >/dev/null & done
	"$feed" "$tree" events | sed -n '/^\[000\]/p' >"$tmp/fed"
	wait
	LATE_PAGE=$page LD_PRELOAD=$build/tests/tools/latepage.so record -B hyp -- sleep 0.1
	cp "$tmp/fed" "$tmp/out"
	is "$status" 0 "$name: exit status" || diag "$(messages)"
	fed_events "$name"
	untouched "$name: tracefs is as before"
}

# ---- many pages -------------------------------------------------------------------

many_pages() {
	local name="$1, many pages"

	new_tree "$1"
	record -B hyp -b 512 -- "$feed" "$tree" bulk
	is "$status" 0 "$name: exit status"
	fed_events "$name"
	like "$(messages)" ' hyp 12000 events, .* \(0 lost\)' "$name: summary"
	like "$(messages)" ', 512 KiB per CPU' "$name: -b after -B hyp"
	record -B hyp --file-version 6 -- "$feed" "$tree" bulk
	fed_events "$name, file of version 6"
	untouched "$name: tracefs is as before"
}

# ---- without -B ------------------------------------------------------------------------

# As others name its events: they need no buffer.
spellings() {
	local events

	for events in 'hyp/hyp_enter' 'hypervisor:hyp_enter' 'hyp:hyp_ent*'; do
		once=1 new_tree "$1"
		record -e "$events" -e 'kvm:*' -- true
		is "$status" 0 "$1: -e $events -e kvm:*"
		like "$(messages)" "^hyptrace: hyp: $hyp, 1 events, .*" "$1: the one event of the hypervisor's buffer"
		like "$(messages)" "host [1-9][0-9]* events, " "$1: and the host's"
	done
}

# ---- pages and records that are wrong ------------------------------------------------

faults() {
	local name="$1, faults"

	new_tree "$1"
	record -B hyp -- "$feed" "$tree" faults
	is "$status" 0 "$name: exit status"
	fed_events "$name"
	is "$(texts)" "[000] host_hcall: id=1 invalid=2
[000] hyp_unknown: id=99 de ad be ef 42
[000] host_hcall: id=2 invalid=4
CPU:0 [42 EVENTS DROPPED]
[000] host_hcall: id=3 invalid=6
CPU:0 [EVENTS DROPPED]
[000] host_hcall: id=4 invalid=8
CPU:0 [EVENTS DROPPED]
[000] host_hcall: id=5 invalid=10
[000] host_hcall: id=6 invalid=12
[000] host_hcall: id=7 invalid=14
CPU:0 [EVENTS DROPPED]
[000] host_hcall: id=8 invalid=16
[000] host_hcall: id=9 invalid=18" "$name: what is good is kept"
	# 42 by count, and at least one where the page does not tell how many
	like "$(messages)" ' hyp 10 events, .* \(at least 43 lost\)' "$name: losses in the summary"
	like "$(trace-cmd report --stat "$dat" 2>&1)" '^ *overrun: 43$' "$name: losses in the file's statistics"
	like "$(trace-cmd report --stat "$dat" 2>&1)" '^ *losses without a number: 1$' "$name: ... and that there were more"
	like "$(messages)" '^hyptrace: hyp: at least 43 events LOST; .* -B hyp -b 8192 ' "$name: and what would help"
	# the page with a bad commit, the short record, the record over the end
	like "$(messages)" '^hyptrace: hyp: 3 records or pages were not understood' "$name: what is bad is counted"
	untouched "$name: tracefs is as before"

}

# Android 6.12 kernels had them; tests/lab/t/20-raw.t has the real thing.
raw_bugs() {
	local name="$1, text in trace_pipe_raw" bug

	new_tree "$1"
	record -B hyp -- "$feed" "$tree" text
	is "$status" 0 "$name: exit status"
	like "$(messages)" '^hyptrace: warning: .*trace_pipe_raw of this kernel gives text .*: trace_pipe is read in its place' \
		"$name: told"
	is "$(messages | grep -c 'trace_pipe_raw of')" 1 "$name: once"
	fed_events "$name"
	untouched "$name: tracefs is as before"

	name="$1, a structure in trace_pipe_raw"
	new_tree "$1"
	record -B hyp -- "$feed" "$tree" struct
	is "$status" 0 "$name: exit status"
	like "$(messages)" "gives no pages, but a structure of the kernel's own .*: trace_pipe is read in its place" \
		"$name: told"
	is "$(messages | grep -c 'trace_pipe_raw of')" 1 "$name: once"
	like "$(messages)" ' hyp 3 events, .* \(at least 1 lost\)' "$name: what was in the first page is lost"
	fed_events "$name"
	truncate -s 0 "$tree/$hyp/per_cpu/cpu0/trace_pipe"
	untouched "$name: tracefs is as before"

	name="$1, neither pages nor text"
	new_tree "$1"
	rm "$tree/$hyp"/per_cpu/cpu*/trace_pipe
	state >"$tmp/before"
	record -e kvm -B hyp -- "$feed" "$tree" struct
	is "$status" 3 "$name: exit status"
	like "$(messages)" "cannot open $hyp/per_cpu/cpu0/trace_pipe: No such file" "$name: told"
	like "$(messages)" "^hyptrace: hyp: neither its pages nor its text could be read" "$name: summary"
	report
	like "$(cat "$tmp/shown")" 'kvm_entry: PC: 0x0000000080081234' "$name: the host's events are there"
	untouched "$name: tracefs is as before"
}

# Somebody else reads too, which these kernels allow.
shared() {
	local name="$1, another reader"

	new_tree "$1"
	record -B hyp -- "$feed" "$tree" shared
	is "$status" 0 "$name: exit status"
	fed_events "$name"
	like "$(messages)" '^hyptrace: warning: hyp: cpu 0: events are missing that the kernel does not count' "$name: told"
	like "$(messages)" '^hyptrace: hyp: somebody else read the buffer too: events are missing at 1 places' "$name: counted"
	like "$(messages)" ' hyp 7 events, .* \(7 lost\)' "$name: and not taken for a loss"

	new_tree "$1"
	record -B hyp -e hyp_exit -e host_hcall -- "$feed" "$tree" shared
	unlike "$(messages)" 'somebody else' "$name: nothing is told by one of hyp_enter and hyp_exit alone"
	untouched "$name: tracefs is as before"

	new_tree "$1"
	echo '7 (loaded)' >"$tree/$hyp/buffer_size_kb"
	state >"$tmp/before"
	record -B hyp -- true
	refused "in use: somebody reads $hyp/trace_pipe or trace" "$name, there before"
}

# ---- with the host ------------------------------------------------------------------------

# The host's ids 2, 3 and 4 are used by the hypervisor too. Its sched_switch tells
# who runs on CPU 0 from 99.99999 s on.
with_host() {
	local name="$1, with the host"

	new_tree "$1"
	record -e kvm -e sched -B hyp -- "$feed" "$tree" events
	is "$status" 0 "$name: exit status"
	report
	is "$(head -n 3 "$tmp/shown")" "[000] 99.999990000: sched_switch: swapper/0:0 ==> vcpu-worker:4242
[000] 99.999995000: kvm_entry: PC: 0x0000000080081234
[000] 99.999999000: kvm_exit: ret 2 EC 0x0016 PC: 0x0000000080081238" "$name: its events"
	tail -n +4 "$tmp/shown" >"$tmp/shown.hyp"
	same "$tmp/shown.hyp" "$tmp/out" "$name: the hypervisor's"
	is "$(awk '/^hyp:/ { print $3, $2 }' "$tmp/report" | sort -u)" "[000] vcpu-worker-4242
[001] <idle>-0" "$name: the hypervisor's records have the task that ran"
	ids >"$tmp/ids"
	is "$(grep -E '^(kvm|sched)' "$tmp/ids" | tr '\n' ' ')" "kvm_entry 2 kvm_exit 3 sched_switch 4 " \
		"$name: the host keeps its ids"
	is "$(grep -Ev '^(kvm|sched)' "$tmp/ids" | head -n 1)" "hyp_enter 5" \
		"$name: the hypervisor's are above"
	is "$(cut -d ' ' -f 2 "$tmp/ids" | sort | uniq -d)" "" "$name: no id is there twice"
	is "$(head -qn 1 "$tree"/events/{kvm,sched}/enable | tr '\n' ' ')" "1 1 " \
		"$name: events were switched on"
	is "$(cat "$tree/set_event")" "" "$name: and off again, by clearing set_event"
	untouched "$name: tracefs is as before"
}

# ---- which events ---------------------------------------------------------------------------

# Files that were written to have their newline.
switched() {
	find "$hyp_events" -name enable -size 2c -printf '%h\n' | sed 's,.*/,,' | sort | tr '\n' ' '
}

choosing() {
	local name="$1, choosing events"

	new_tree "$1"
	record -B hyp -e hyp_enter -e "$hyp:func*" -- "$feed" "$tree" events
	is "$status" 0 "$name: exit status"
	is "$(switched)" "func func_ret hyp_enter " "$name: those, and no others"
	untouched "$name: tracefs is as before"

	new_tree "$1"
	record -B hyp -v -e host_smc -- "$feed" "$tree" events
	is "$(switched)" "$(all_events | grep -v host_smc | tr '\n' ' ')" "$name: all but -v -e"

	new_tree "$1"
	record -B hyp -e kvm -- "$feed" "$tree" events
	is "$status" 0 "$name, -e kvm after -B hyp: exit status"
	like "$(messages)" "not events of the hypervisor, so recorded in the host's buffer: kvm\$" \
		"$name, -e kvm after -B hyp: told"
	is "$(head -n 1 "$tree/events/kvm/enable")" 1 "$name, -e kvm after -B hyp: the host's top buffer"
	is "$(switched)" "$(all_events | tr '\n' ' ')" \
		"$name, -e kvm after -B hyp: all of the hypervisor's"
	report
	like "$(cat "$tmp/shown")" 'kvm_entry: PC: 0x0000000080081234' "$name, -e kvm after -B hyp: in the file"
	untouched "$name, -e kvm after -B hyp: tracefs is as before"
}

# ---- functions ------------------------------------------------------------------------------------

# The kernel's files act on each write; of plain ones the last write is seen.
functions() {
	local name="$1, functions" now

	new_tree "$1"
	# libtraceevent wants to see where a function ends
	printf '%s\n' "fffffffffffff000 t __kvm_nvhe_handle_trap" "ffffffffffffff00 t __kvm_nvhe_last" \
		>>"$HYPTRACE_ROOT/proc/kallsyms"
	start -B hyp -p function -l __kvm_nvhe_x -l __kvm_nvhe_y -n '__kvm_nvhe_z*' -e host_smc
	"$feed" "$tree" events >"$tmp/fed"
	now=$(head -qn 1 "$tree/$hyp"/set_ftrace_{filter,notrace} "$hyp_events"/{func,func_ret,host_smc,hyp_enter}/enable)
	kill -INT $pid
	wait $pid
	is "$?" 0 "$name: exit status"
	is "$(tr '\n' ' ' <<<"$now")" "__kvm_nvhe_y __kvm_nvhe_z* 1 1 1 0 " "$name: of -l and -n, with their events"
	report
	like "$(cat "$tmp/shown")" 'func: +__kvm_nvhe_handle_trap <- __kvm_nvhe_handle_trap$' "$name: are named by symbols"
	is "$(cat "$tree/$hyp/set_ftrace_notrace")" "*
kvm_nvhe_z*" "$name: all are switched off at the end"
	untouched "$name: and those that were on are on again"
	sed -i '/nvhe/d' "$HYPTRACE_ROOT/proc/kallsyms"

	new_tree "$1"
	record -B hyp -p function -v -e func_ret -- "$feed" "$tree" events
	is "$(switched)" "func func_ret " "$name: -p alone is these two events"
	untouched "$name: -p alone: tracefs is as before"

	new_tree "$1"
	rm -r "$hyp_events/func"
	state >"$tmp/before"
	record -B hyp -p function -- true
	refused '-p function: .* has no event func' "$name, of a kernel that has none"
}

# ---- refusals -----------------------------------------------------------------------------------

refusals() {
	local name=$1 other

	new_tree "$1"
	flock "$tree/$hyp" "$hyptrace" record -o "$dat" -B hyp -- true 2>"$tmp/err"
	status=$?
	refused "^hyptrace: another hyptrace \\(pid [0-9]+\\) records the hypervisor's buffer" \
		"$name, another recorder"

	# a second one beside the first, which goes on
	new_tree "$1"
	start -B hyp
	"$feed" "$tree" events >"$tmp/out"
	other=$("$hyptrace" record -B hyp -o "$tmp/other.dat" -- true 2>&1)
	is "$?" 1 "$name, a second recorder: exit status"
	like "$other" "another hyptrace .*records" "$name, a second recorder: message"
	kill -INT $pid
	wait $pid
	is "$?" 0 "$name, a second recorder: the first one's exit status"
	fed_events "$name, the first of two recorders"
	untouched "$name, a second recorder: tracefs is as before"

	new_tree "$1"
	echo 1 >"$tree/$hyp/tracing_on"
	state >"$tmp/before"
	record -B hyp -- true
	refused "in use: $hyp/tracing_on is 1" "$name, tracing is on"

	new_tree "$1"
	state >"$tmp/before"
	record -B hyp -e hyp_enter -f 'common_pid == 1' -- true
	refused "-e hyp_enter: the hypervisor's events take no filter" "$name, a filter"

	new_tree "$1"
	rm "$tree/$hyp/events/header_page"
	state >"$tmp/before"
	record -B hyp -- true
	refused "cannot use $hyp/events/header_page: No such file" "$name, no header_page"
	unlike "$(messages)" "no hypervisor buffer" "$name, no header_page: not said to be without a hypervisor"

	new_tree "$1"
	echo "field: of wheat" >"$tree/$hyp/events/header_page"
	state >"$tmp/before"
	record -B hyp -- true
	refused "cannot use $hyp/events/header_page" "$name, header_page is garbage"

	new_tree "$1"
	rm -r "$hyp_events"
	state >"$tmp/before"
	record -B hyp -- true
	refused "cannot open $hyp/events/$hyp: No such file" "$name, no events"

	new_tree "$1"
	head -c 5000 /dev/urandom >"$hyp_events/host_smc/format"
	state >"$tmp/before"
	record -B hyp -- true
	refused "cannot use $hyp/events/$hyp/host_smc/format" "$name, a format is garbage"

	new_tree "$1"
	rm -r "$tree/$hyp/per_cpu"
	state >"$tmp/before"
	record -B hyp -- true
	refused "$hyp/per_cpu has no CPUs" "$name, no CPUs"
}

# ---- buffers that run ---------------------------------------------------------------------------

# The fake's host always shows events in set_event, so its top buffer runs too.
running() {
	local name="$1, taken over" now

	new_tree "$1"
	echo 1 >"$tree/$hyp/tracing_on"
	echo 1 >"$hyp_events/func/enable"
	state >"$tmp/before"
	start --take-over -B hyp -e host_smc -b 64
	"$feed" "$tree" events >"$tmp/fed"
	now=$(head -qn 1 "$tree/$hyp/tracing_on" "$tree/$hyp/buffer_size_kb" "$hyp_events"/{func,host_smc,hyp_enter}/enable)
	kill -INT $pid
	wait $pid
	is "$?" 0 "$name: exit status"
	is "$(sed 's/ .*//' <<<"$now" | tr '\n' ' ')" "1 7 1 1 0 " \
		"$name: it runs on, with its size, its events, and that of -e"
	like "$(messages)" "hyp: $hyp is taken over, running, 2 events on, 7 KiB per CPU, raw pages" "$name: said"
	like "$(messages)" "-b 64: the size of $hyp cannot be changed while it runs" "$name: -b is not followed, and said"
	like "$(messages)" "this buffer's is local: .*trace_clock=boot" "$name: the host's clock stays, and what that means"
	report
	grep -Ev "kvm_|sched_" "$tmp/shown" >"$tmp/shown.hyp"
	same "$tmp/shown.hyp" "$tmp/fed" "$name: what was in it"
	like "$(cat "$tmp/shown")" 'kvm_entry: PC: 0x0000000080081234' "$name: the host's events, which nobody named"
	untouched "$name: tracefs is as before"

	new_tree "$1"
	echo 1 >"$tree/$hyp/tracing_on"
	state >"$tmp/before"
	start --take-over -B hyp
	"$feed" "$tree" bulk >/dev/null
	kill -KILL $pid
	wait $pid 2>/dev/null
	"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
	is "$?" 0 "$name, kill -9: recover's exit status"
	untouched "$name, kill -9: recover puts tracefs back, tracing on"

	new_tree "$1"
	echo 1 >"$tree/$hyp/tracing_on"
	state >"$tmp/before"
	record --take-over -B hyp -e hyp_enter -e no:such -- true
	refused "-e no:such: no such event" "$name, an event that is not there"
}

# ---- no hypervisor buffer ----------------------------------------------------------------------

no_hypervisor() {
	new_tree android16
	rm -r "$tree/hypervisor"
	state >"$tmp/before"
	record -B hyp -- true
	refused "no hypervisor buffer: none of remotes/hypervisor, hypervisor, hyp is in tracefs" "no hypervisor"
	if [ "$(uname -m)" = aarch64 ]; then
		like "$(messages)" 'CONFIG_NVHE_EL2_DEBUG|kvm-arm.mode|too old' "no hypervisor: why"
	else
		like "$(messages)" "this is a $(uname -m) machine: pKVM's hypervisor runs on arm64 only" \
			"no hypervisor: why"
	fi

	record -e kvm -B hyp --best-effort -- true
	is "$status" 0 "no hypervisor, --best-effort: exit status"
	like "$(messages)" 'going on without the hypervisor' "no hypervisor, --best-effort: told"
	report
	like "$(cat "$tmp/shown")" 'kvm_entry: PC: 0x0000000080081234' "no hypervisor, --best-effort: the host's events"
	untouched "no hypervisor, --best-effort: tracefs is as before"

	rm -f "$dat"
	record -B hyp -e kvm --best-effort -- true
	is "$status" 0 "no hypervisor, --best-effort, -e kvm after -B hyp"

	rm -f "$dat"
	HYPTRACE_TRACING_DIR=$tmp/none record -B hyp -- true
	refused "cannot open '.*/none'" "no tracefs"
}

# ---- ends of a recording ---------------------------------------------------------------------------

ends() {
	local sig name

	for sig in INT TERM HUP; do
		name="$1, SIG$sig"
		new_tree "$1"
		start -B hyp
		"$feed" "$tree" events >"$tmp/out"
		kill -$sig $pid
		wait $pid
		is "$?" 0 "$name: exit status"
		fed_events "$name"
		untouched "$name: tracefs is as before"
	done

	name="$1, kill -9"
	new_tree "$1"
	start -B hyp
	"$feed" "$tree" bulk >"$tmp/out"
	wait_for grep -q 1 "$tree/$hyp/tracing_on"
	kill -KILL $pid
	wait $pid 2>/dev/null
	is "$?" 137 "$name: exit status"
	is "$(head -n 1 "$tree/$hyp/tracing_on") $(head -n 1 "$tree/$hyp/buffer_size_kb")" "1 2048" \
		"$name: it was in the middle of it"
	"$hyptrace" record -B hyp -o "$dat" -- true 2>"$tmp/err"
	like "$(messages)" "is there already: run .hyptrace recover $dat.spool" \
		"$name: the spool is not overwritten"
	"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
	is "$?" 0 "$name: recover's exit status"
	fed_events "$name, recovered"
	untouched "$name: recover puts tracefs back"
	is "$(ls -d "$dat"*)" "$dat" "$name: the spool is gone"
}

for layout in android15 android16; do
	each_event $layout
	last_page $layout
	many_pages $layout
	spellings $layout
	faults $layout
	raw_bugs $layout
	shared $layout
	with_host $layout
	choosing $layout
	functions $layout
	refusals $layout
	running $layout
	ends $layout
done
no_hypervisor
done_testing
