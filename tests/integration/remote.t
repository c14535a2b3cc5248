#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# -B remote:NAME, for a remote that is not the hypervisor: a FAKE of a firmware's, of
# plain files and FIFOs, with the files of the kernel's trace_remote.c and some that
# no kernel has yet. No kernel of the lab has a second remote.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tree=$tmp/tracefs
fw=$tree/remotes/fw
dat=$tmp/trace.dat
export HYPTRACE_TRACING_DIR=$tree
bare_machine

command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"

# event NAME ID PRINT-FORMAT FIELD-LINE...
event() {
	local dir=$fw/events/fw/$1

	mkdir -p "$dir"
	echo 0 >"$dir/enable"
	echo "$2" >"$dir/id"
	{
		printf 'name: %s\nID: %s\nformat:\n' "$1" "$2"
		printf '\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n'
		[ $# = 3 ] || printf '\tfield:%s\n' "${@:4}" ''
		printf 'print fmt: %s\n' "$3"
	} | sed '/^\tfield:$/s/.*//' >"$dir/format"
}

new_tree() {
	local cpu

	rm -rf "$tree" "$dat"*
	"$build/tests/integration/fake-android" "$tree" android16
	rm -r "$tree/hypervisor"
	for cpu in 0 1; do
		mkdir -p "$fw/per_cpu/cpu$cpu"
		mkfifo "$fw/per_cpu/cpu$cpu/trace_pipe"
	done
	echo 0 >"$fw/tracing_on"
	echo '7 (unloaded)' >"$fw/buffer_size_kb"
	: >"$fw/trace"
	echo '0 sleeping' >"$fw/dmesg"
	echo 1 >"$fw/dump_on_panic"
	event boot_stage 0 '"stage=%u status=%d", REC->stage, REC->status' \
		$'u8 stage;\toffset:2;\tsize:1;\tsigned:0;' $'int status;\toffset:3;\tsize:4;\tsigned:1;'
	event mailbox 1 '"to %s: %d bytes", mailbox_name(REC->to), REC->len' \
		$'u8 to;\toffset:2;\tsize:1;\tsigned:0;' $'int len;\toffset:3;\tsize:4;\tsigned:1;'
	state >"$tmp/before"
}

# The first word of the first line of each file of the remote
state() {
	(cd "$tree/remotes" && find . -type f ! -name trace | sort | while read -r f; do
		echo "$f $(head -n 1 "$f" | cut -d ' ' -f 1)"
	done)
}

untouched() {
	state >"$tmp/after"
	same "$tmp/after" "$tmp/before" "$1"
}

# feed: what the firmware has to say; the recorder has opened the pipes by then
feed() {
	printf '[000]\t   10.000001: boot_stage stage=3 status=-2\nCPU:0 [LOST 4 EVENTS]\n[000]\t   10.000004: boot_stage stage=4 status=0\n' \
		>"$fw/per_cpu/cpu0/trace_pipe"
	printf '[001]\t   10.000002: mailbox to scp: 12 bytes\n[001]\t   10.000003: UNKNOWN id=9\n' \
		>"$fw/per_cpu/cpu1/trace_pipe"
}

# drained [BUFFER]: both CPUs are in the spool: a loss begins a second page.
drained() {
	[ "$(cat "$dat".spool/pages/"${1-0}".0 2>/dev/null | wc -c)" -ge 8192 ] &&
		[ "$(cat "$dat".spool/pages/"${1-0}".1 2>/dev/null | wc -c)" -ge 4096 ]
}

record() {
	timeout 20 "$hyptrace" record -o "$dat" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

refused() {
	is "$status" 1 "$2: exit status"
	like "$(cat "$tmp/err")" "$1" "$2"
	untouched "$2: its files are as before"
}

# ---- recorded -----------------------------------------------------------------------------

new_tree
"$hyptrace" record -o "$dat" -B remote:fw 2>"$tmp/err" &
pid=$!
feed
wait_for drained
during=$(state)
kill -INT $pid
wait $pid
is "$?" 0 "a firmware's remote: exit status" || diag "$(cat "$tmp/err")"
like "$(cat "$tmp/err")" 'remote:fw: remotes/fw, 2 events, 2048 KiB per CPU, text' "what is recorded"
like "$(cat "$tmp/err")" 'remotes/fw has no readable trace_clock: its times are taken as boot.s' "by which clock"
is "$(trace-cmd report -N "$dat" 2>&1 | sed -E 's/^ +//; s/  +/ /g; s/ +$//; /^cpus=/d; s/<idle>-0 //; s/^remote:fw: //')" \
	"[000] 10.000001: boot_stage: stage=3 status=-2
[001] 10.000002: mailbox: to scp: 12 bytes
[001] 10.000003: hyp_unknown: id=9
CPU:0 [4 EVENTS DROPPED]
[000] 10.000004: boot_stage: stage=4 status=0" "formats are read, text that is not understood is kept"
like "$(trace-cmd dump --events "$dat" 2>/dev/null)" 'field:int status;	offset:9;	size:4;	signed:1;' \
	"fields are fields"
is "$(grep -E 'enable|tracing_on' <<<"$during" | cut -d ' ' -f 2 | sort -u)" 1 "it was on"
untouched "it is off, files of later kernels too are as before"

new_tree
record -B remote:fw -e mailbox -- cat "$fw/events/fw/boot_stage/enable" "$fw/events/fw/mailbox/enable"
is "$(tr '\n' ' ' <"$tmp/out")" "0 1 " "-e names its events"
untouched "and they are put back"

new_tree
echo 'local [mono] boot' >"$fw/trace_clock"
state >"$tmp/before"
record -B remote:fw -- true
unlike "$(cat "$tmp/err")" 'has no readable trace_clock' "a clock that it tells"
untouched "and is as before"

# ---- killed -------------------------------------------------------------------------------

new_tree
"$hyptrace" record -o "$dat" -B remote:fw 2>"$tmp/err" &
pid=$!
feed
wait_for drained
kill -KILL $pid
wait $pid 2>/dev/null
# unlike the kernel's, a pipe without a writer would keep the recovery waiting
exec {hold}<>"$fw/per_cpu/cpu0/trace_pipe" {hold2}<>"$fw/per_cpu/cpu1/trace_pipe"
"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
is "$?" 0 "kill -9: recover's exit status" || diag "$(cat "$tmp/err")"
like "$(trace-cmd report -N "$dat" 2>&1)" 'remote:fw:.* mailbox: +to scp: 12 bytes' "kill -9: what was read"
untouched "kill -9: recover puts it back"

# ---- vanished -----------------------------------------------------------------------------

new_tree
"$hyptrace" record -o "$dat" -B remote:fw 2>"$tmp/err" &
pid=$!
feed
wait_for drained
rm -r "$fw"
kill -INT $pid
wait $pid
is "$?" 1 "a remote that vanishes: exit status"
like "$(cat "$tmp/err")" 'remotes/fw has vanished while it was recorded: what was read is kept' "a remote that vanishes: said"
unlike "$(cat "$tmp/err")" 'cannot|tracefs could not be put back' "what went with it needs no putting back"
like "$(trace-cmd report -N "$dat" 2>&1)" 'remote:fw:.* mailbox: +to scp: 12 bytes' "what was read is in the file"
is "$(ls -d "$dat"*)" "$dat" "and no spool is left"

# killed, then vanished: the host's buffer is drained all the same
new_tree
for cpu in 0 1 2; do
	rm "$tree/per_cpu/cpu$cpu/trace_pipe_raw"
	mkfifo "$tree/per_cpu/cpu$cpu/trace_pipe_raw"
done
exec {page}<>"$tree/per_cpu/cpu0/trace_pipe_raw"
"$hyptrace" record -o "$dat" -e kvm -B remote:fw 2>"$tmp/err" &
pid=$!
feed
wait_for drained 1
kill -KILL $pid
wait $pid 2>/dev/null
rm -r "$fw"
perl -e 'print pack("Q Q L S C C l Q x4060", 1e10, 20, 4 | 100 << 5, 2, 0, 0, 7, 0x2a)' >&$page
timeout 20 "$hyptrace" recover "$dat.spool" 2>"$tmp/err"
is "$?" 1 "kill -9, and a remote that vanishes: recover's exit status"
like "$(cat "$tmp/err")" 'cannot open remotes/fw again' "... which it says"
like "$(trace-cmd report -N "$dat" 2>&1)" ' kvm_entry: +PC: 0x0*2a$' "... what the host's buffer held is in the file"
like "$(trace-cmd report -N "$dat" 2>&1)" 'remote:fw:.* mailbox: +to scp: 12 bytes' "... and what was read before"

# ---- the command line is in the file ----------------------------------------------------------

new_tree
"$hyptrace" record -q -o "$dat" -e sched -- sh -c $'exit\n0' it\'s
is "$("$hyptrace" report --command "$dat" | tail -n 1)" \
	"hyptrace record -q -o $dat -e sched -- sh -c 'exit 0' 'it'\\''s'" "report --command: the command line, for a shell"
gzip -dc tests/data/import-protected.gz >"$tmp/text"
"$hyptrace" import -q --hyp "$tmp/text" -i "$dat" -o "$tmp/imported.dat" 2>"$tmp/err"
is "$("$hyptrace" report --command "$tmp/imported.dat" | tail -n 1)" "$("$hyptrace" report --command "$dat" | tail -n 1)" \
	"... which import keeps" || diag "$(<"$tmp/err")"
like "$("$hyptrace" report --command tests/data/steal/trace.dat)" '^ command was not recorded in this file$' "... which others' files do not have"
trace-cmd report -i "$dat" >"$tmp/out" 2>"$tmp/err"
is "$? $(wc -l <"$tmp/out") $(cat "$tmp/err")" "0 $("$hyptrace" report "$dat" | wc -l) " "trace-cmd passes over it"
[ ! -x "$build/tests/tools/loadkshark" ] || like "$("$build/tests/tools/loadkshark" "$dat" 2>&1)" '^[^ ]*trace.dat -: [0-9]+ entries' "... and KernelShark's library"
"$hyptrace" record -q -o "$dat" -e sched -- true "$(printf %05000d 0)"
is "$("$hyptrace" report --command "$dat" | tail -n 1 | sed -E 's/.*(0 \.\.\.)$/\1/') $("$hyptrace" report --command "$dat" | tail -n 1 | wc -c)" \
	"0 ... 4005" "a long one is cut at 4,000 bytes"

# ---- not there ------------------------------------------------------------------------------

new_tree
record -B remote:scp -- true
refused "no remote 'scp' in tracefs: there are fw" "a name that is not there"
rm "$fw/tracing_on"
state >"$tmp/before"
record -B remote:fw -- true
refused 'remotes/fw has no tracing_on' "a remote that cannot be switched on"
rm -r "$tree/remotes"
record -B remote:fw -- true
is "$status" 1 "no remotes: exit status"
like "$(cat "$tmp/err")" "no remote 'fw' in tracefs: it has none" "no remotes"

done_testing
