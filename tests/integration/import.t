#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace import: captures of the lab's trace_pipe beside stock recordings of the
# host (tests/data/README.md), judged by the peers' own tools; raw pages of a FAKE
# Android device (fake-android.c, feed-android.c).
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
	trace-cmd report -t -N "$1" 2>/dev/null
}

# The hypervisor's events as the text had them, with repaired times left out.
as_text() {
	report "$1" | sed -nE 's/^hyp: .* (\[[0-9]+\]) +[0-9.]+: +(hyp_enter|hyp_exit): +(.*[^ ]) *$/\1 \2 \3/p'
}

# Stock shows the boot clock as whole nanoseconds unless TSC2NSEC tells what it is: ours does.
host_events() {
	grep -v '^hyp:' | sed -E 's/^ *//; s/ +/ /g; s/ ([0-9]+)\.([0-9]{9}):/ \1\2:/'
}

# refused STATUS MESSAGE NAME: and there is no file, no spool
refused() {
	is "$status" "$1" "$3: exit status"
	like "$(cat "$tmp/err")" "$2" "$3: message"
	is "$(ls -d "$tmp"/no* 2>/dev/null)" "" "$3: nothing is left"
}

# ---- text -------------------------------------------------------------------------

# whole NAME PAIRS: the pair of captures of that name
whole() {
	local dat=$tmp/$1.dat text=$tmp/$1.txt

	gzip -dc "$data/import-$1.gz" >"$text"
	import --hyp "$text" -i "$data/import-$1.dat" -o "$dat"
	is "$status" 0 "$1: exit status" || diag "$(cat "$tmp/err")"
	is "$(cat "$tmp/err")" "hyptrace: hyp $(wc -l <"$text") events (0 lost): $dat" "$1: all lines are taken, without a warning"
	is "$("$tools/hyporder" "$dat" | head -n 1)" "pairs checked $2, violations 0, within the microsecond cut 0" \
		"$1: kvm_entry <= eret_guest <= guest_exit <= kvm_exit"
	is "$(report "$dat" | host_events)" "$(report "$data/import-$1.dat" | host_events)" \
		"$1: the host's events are as they were"
	is "$(as_text "$dat" | sort | md5sum)" "$(sed -E 's/^(\[[0-9]+\])[^:]*: /\1 /' "$text" | sort | md5sum)" \
		"$1: the hypervisor's are those of the text"
	is "$(report "$dat" | grep -Eo ' [0-9]+\.[0-9]{9}: ' | tr -d ' :' | sort -c -s -n 2>&1)" "" "$1: in one order"
	like "$("$tools/loadkshark" "$dat" 2>&1)" '(^| )hyp: [0-9]{4} entries' "$1: libkshark loads it"
	is "$(ls -d "$dat".* 2>/dev/null)" "" "$1: no spool is left"
}

whole protected 209
is "$(report "$tmp/protected.dat" | sed -nE 's/^hyp: .* ([0-9.]+): hyp_.*/\1/p' | sort -n | sed -n '1p;$p')" \
	"$(sed -nE 's/.*	 *([0-9.]+): .*/\1000/p' "$tmp/protected.txt" | sort -n | sed -n '1p;$p')" \
	"protected: times are the text's"

# What a panic dumps of the buffer stands among the kernel's messages. No kernel of the lab has
# dump_on_panic: these are the capture's lines, as printk and a serial console would show them.
console() {
	printf '%s\r\n' '[   24.000001] Kernel panic - not syncing: sysrq triggered crash' \
		'[   24.000002][    T1] CPU: 1 UID: 0 PID: 87 Comm: sh Not tainted' '[   24.000003] [003] is no event'
	sed -e "s/^/$1/" -e 's/$/\r/' "$tmp/protected.txt"
	printf '%s\r\n' '<0>[   24.000004] CPU:2 [LOST 7 EVENTS]' '[   24.000005] ---[ end Kernel panic ]---'
}
for prefix in '[   24.000003] ' '<0>[   24.000003][    T1] ' '[   24.000003][ T112@C3] '; do
	console "$prefix" >"$tmp/console.txt"
	import --hyp "$tmp/console.txt" -i "$data/import-protected.dat" -o "$tmp/console.dat"
	is "$status $(cat "$tmp/err")" "0 hyptrace: hyp $(wc -l <"$tmp/protected.txt") events (7 lost): $tmp/console.dat" \
		"a console's log, '$prefix': all of its trace, and no more"
	is "$(as_text "$tmp/console.dat" | md5sum)" "$(as_text "$tmp/protected.dat" | md5sum)" \
		"a console's log, '$prefix': the same events"
done
# A host that panicked has no file.
import --hyp "$tmp/console.txt" -o "$tmp/alone.dat"
is "$status $(cat "$tmp/err")" "0 hyptrace: hyp $(wc -l <"$tmp/protected.txt") events (7 lost): $tmp/alone.dat" \
	"a console's log without the host's file"
is "$(as_text "$tmp/alone.dat" | md5sum)" "$(as_text "$tmp/protected.dat" | md5sum)" "... the same events"
is "$(report "$tmp/alone.dat" | grep -cv '^hyp:')" 1 "... and no others"
like "$("$tools/loadkshark" "$tmp/alone.dat" 2>&1)" '(^| )hyp: [0-9]{4} entries' "... libkshark loads it"
whole nvhe 157
like "$(grep -c '	[0-9]{9,}\.' -E "$tmp/nvhe.txt")" '^[1-9][0-9]+$' "nvhe: the text has times of hundreds of years"
is "$(report "$tmp/nvhe.dat" | awk '/^hyp:/ { for (i = 1; i < NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/ && ($i + 0 < 29 || $i + 0 > 31)) print }' | head -3)" \
	"" "nvhe: none is left"
like "$(report "$tmp/nvhe.dat")" 'hyp_cntvoff: +vcpu=113 offset=99944[0-9]{5} ' "nvhe: CNTVOFF is told"
is "$(report "$tmp/nvhe.dat" | sed -nE 's/.*hyp_cntvoff:.* low=([0-9]+) high=([0-9]+).*/\1 \2/p' | awk '$2 - $1 > 5000')" "" \
	"nvhe: ... from the start on as well as at the end: all times are right to within 5 us"

# In pieces: CPU after CPU, as of per_cpu/cpuN/trace_pipe
for cpu in 000 001 002 003; do grep -F "[$cpu]" "$tmp/protected.txt"; done >"$tmp/by-cpu.txt"
import --hyp "$tmp/by-cpu.txt" -i "$data/import-protected.dat" -o "$tmp/by-cpu.dat"
is "$(report "$tmp/by-cpu.dat" | md5sum)" "$(report "$tmp/protected.dat" | md5sum)" "the files of single CPUs in a row are as good"

# Losses, events and lines that nobody knows
{
	sed -n '1,100p' "$tmp/protected.txt"
	printf 'CPU:3 [LOST 12 EVENTS]\n[003]\t   20.500000: hyp_exit reason=eret_host vcpu=0\n'
	printf '[001]\t   20.500001: brand_new a=1\n$ echo 0 > tracing_on\n'
} >"$tmp/odd.txt"
import --hyp "$tmp/odd.txt" -i "$data/import-protected.dat" -o "$tmp/odd.dat"
is "$status" 0 "odd lines: exit status"
like "$(cat "$tmp/err")" 'warning: 2 lines made no sense.*; --events DIR has' "odd lines: a warning, and what would help"
like "$(cat "$tmp/err")" 'hyp 102 events \(12 lost\)' "odd lines: losses are counted"
like "$(report "$tmp/odd.dat")" 'hyp_unknown: .*brand_new a=1' "odd lines: an unknown event is kept as text"
like "$(report "$tmp/odd.dat")" 'CPU:3 \[12 EVENTS DROPPED\]' "odd lines: trace-cmd shows the loss"

# A loss with no event of its CPU after it
{
	head -n 50 "$tmp/protected.txt"
	printf 'CPU:1 [LOST 5 EVENTS]\n'
} >"$tmp/end.txt"
import --hyp "$tmp/end.txt" -o "$tmp/end.dat"
like "$(cat "$tmp/err")" 'hyp 50 events \(5 lost\)' "a loss at a CPU's end is counted"
is "$("$hyptrace" sql --csv "$tmp/end.dat" 'SELECT cpu, events FROM lost' 2>/dev/null | tail -n 1)" "rows,1,5" "... and in the file"

# The same with the kernel's formats, and version 6
mkdir -p "$tmp/events/hypervisor/brand_new"
printf 'name: brand_new\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\tfield:int a;\toffset:2;\tsize:4;\tsigned:1;\n\nprint fmt: "a=%%d", REC->a\n' \
	>"$tmp/events/hypervisor/brand_new/format"
import --hyp "$tmp/odd.txt" --events "$tmp/events" -i "$data/import-protected.dat" -o "$tmp/events.dat"
like "$(report "$tmp/events.dat")" 'brand_new: +a=1' "--events: the kernel's formats are used"
trace-cmd convert --file-version 6 -i "$data/import-protected.dat" -o "$tmp/six-in.dat" >/dev/null 2>&1
import --hyp "$tmp/protected.txt" -i "$tmp/six-in.dat" -o "$tmp/six.dat"
is "$(report "$tmp/six.dat" | host_events)" "$(report "$tmp/six-in.dat" | host_events)" "version 6: the host's events"
is "$(as_text "$tmp/six.dat" | md5sum)" "$(as_text "$tmp/protected.dat" | md5sum)" "version 6: the hypervisor's"

# ---- raw pages ------------------------------------------------------------------------

"$build/tests/integration/fake-android" "$tmp/tree" android16
mkdir "$tmp/raw"
for cpu in 0 1 2; do cat "$tmp/tree/hypervisor/per_cpu/cpu$cpu/trace_pipe_raw" >"$tmp/raw/cpu$cpu" & done
"$build/tests/integration/feed-android" "$tmp/tree" events >"$tmp/fed"
wait
import --hyp-raw "$tmp/raw" --events "$tmp/tree/hypervisor/events" -i "$data/import-protected.dat" -o "$tmp/raw.dat"
is "$status" 0 "raw: exit status" || diag "$(cat "$tmp/err")"
report "$tmp/raw.dat" | sed -nE 's/^hyp: *[^ ]+ +(\[)/\1/p' | sed -e 's/  */ /g' -e 's/ *$//' >"$tmp/raw.shown"
like "$(wc -l <"$tmp/fed")" '^[1-9][0-9]' "raw: something was fed"
same "$tmp/raw.shown" "$tmp/fed" "raw: trace-cmd report shows what was fed"
head -c 6000 "$tmp/raw/cpu0" >"$tmp/raw/cpu1"
import --hyp-raw "$tmp/raw" --events "$tmp/tree/hypervisor/events" -i "$data/import-protected.dat" -o "$tmp/raw.dat"
like "$(cat "$tmp/err")" "warning: .*its last page is cut off" "raw: a page that is cut off is told"

import --hyp-raw "$data/raw/lost" --events "$data/raw/events" -i "$data/import-protected.dat" -o "$tmp/lost.dat"
is "$status" 0 "real pages, with a loss whose number the kernel had no room for: exit status"
like "$(cat "$tmp/err")" '^hyptrace: hyp 700 events \(at least 1 lost\)' "... told as such"
is "$(report "$tmp/lost.dat" | grep 'DROPPED')" "hyp: CPU:0 [EVENTS DROPPED]" "... and marked without a number"

# ---- what cannot be ------------------------------------------------------------------------

import --hyp "$tmp/protected.txt" -i "$tmp/protected.dat" -o "$tmp/no.dat"
refused 1 'has a buffer of the hypervisor' "a second one"
import --hyp README.md -i "$data/import-protected.dat" -o "$tmp/no.dat"
refused 1 "has no line of a hypervisor's trace" "another text"
import --hyp "$tmp/no-such" -i "$data/import-protected.dat" -o "$tmp/no.dat"
refused 1 'no-such.*No such file' "no text"
import --hyp "$tmp/protected.txt" -i README.md -o "$tmp/no.dat"
refused 1 "cannot read 'README.md'" "no trace.dat"
cp "$data/import-protected.dat" "$tmp/same.dat"
import --hyp "$tmp/protected.txt" -i "$tmp/same.dat" -o "$tmp/../${tmp##*/}/same.dat"
refused 1 'is the input' "the input as output"
same "$tmp/same.dat" "$data/import-protected.dat" "the input is as it was"
cp "$tmp/protected.txt" "$tmp/same.txt"
import --hyp "$tmp/same.txt" -o "$tmp/same.txt"
refused 1 'is the input' "the text as output"
same "$tmp/same.txt" "$tmp/protected.txt" "the text is as it was"
import --hyp-raw "$data/raw/lost" --events "$data/raw/events" -o "$tmp/lost-alone.dat"
is "$(report "$tmp/lost-alone.dat" | grep '^hyp:' | cut -d ']' -f 2- | md5sum)" \
	"$(report "$tmp/lost.dat" | grep '^hyp:' | cut -d ']' -f 2- | md5sum)" "real pages without the host's file: the same events"

import --hyp-raw "$tmp/events" --events "$tmp/events" -i "$data/import-protected.dat" -o "$tmp/no.dat"
refused 1 'no files cpu0' "no raw pages"
import --hyp-raw "$tmp/raw" -i "$data/import-protected.dat" -o "$tmp/no.dat"
refused 2 'needs --events' "raw pages without formats"
import -i "$data/import-protected.dat" -o "$tmp/no.dat"
refused 2 'one of --hyp, --hyp-raw, --perfetto and --qemu-log' "nothing to add"
import --hyp "$tmp/protected.txt" -i "$data/lab-stock-arm64.dat" -o "$tmp/local.dat"
like "$(cat "$tmp/err")" "warning: the clock of .* is local, the hypervisor's is boot" "another clock: a warning"

# ---- other commands name the import --------------------------------------------------------

gunzip -c tests/data/import-nvhe.gz >"$tmp/trace_pipe.txt"
printf '# tracer: nop\n#\n' | cat - "$tmp/trace_pipe.txt" >"$tmp/trace.txt"
perl -e 'print pack "Q<Q<Q<", ~0, 0xf2b177cb0aa429b4, 4' >"$tmp/simple"
advised() { # OPTION FILE
	is "$("$build/hyptrace" stat "$2" 2>&1 | tail -n 1)" \
		"hyptrace: '$2' can be imported: hyptrace import --$1 $2 -o $2.dat" "$(basename "$2"): the message names import"
}
advised hyp "$tmp/trace_pipe.txt"
advised hyp "$tmp/trace.txt"
advised perfetto tests/data/perfetto/hyp.pftrace
advised qemu-log tests/data/qemu/log.txt
advised qemu-log "$tmp/simple"
cp tests/data/qemu/log.txt "$tmp/it's a log"
advice=$("$build/hyptrace" stat "$tmp/it's a log" 2>&1 | sed -n "s/.* can be imported: hyptrace //p")
is "$advice" "import --qemu-log '$tmp/it'\\''s a log' -o '$tmp/it'\\''s a log.dat'" "a name with blanks is quoted"
eval "\"$build/hyptrace\" $advice" 2>"$tmp/err" && "$build/hyptrace" report "$tmp/it's a log.dat" >"$tmp/null" 2>"$tmp/err"
ok $? "... so that a shell takes the line as it is"
printf '\n' >"$tmp/newline"
for file in README.md "$build/hyptrace" "$tmp/newline" tests/data/import-nvhe.gz; do
	unlike "$("$build/hyptrace" stat "$file" 2>&1)" 'can be imported' "$(basename "$file"): nothing to import"
done

done_testing
