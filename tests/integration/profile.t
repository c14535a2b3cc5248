#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --profile with this machine's perf events, beside a FAKE of tracefs (fake-android.c) that has no events
# of its own to give: what stock's report and flame say of a program that is known; damaged samples; a kill.
# shellcheck disable=SC2016 # perl has its own $
. tests/integration/lib.sh

hyptrace=$build/hyptrace
dat=$tmp/trace.dat
export HYPTRACE_TRACING_DIR=$tmp/tracefs
bare_machine
command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"
pages_once "$HYPTRACE_TRACING_DIR"
"$build/tests/integration/fake-android" "$HYPTRACE_TRACING_DIR" android16

# record OPTION...: sets status; messages are in $err
record() {
	err=$("$hyptrace" record -o "$dat" "$@" 2>&1 >/dev/null)
	status=$?
}

# samples PATTERN: those that match in what stock's report prints
samples() {
	trace-cmd report "$dat" 2>/dev/null | grep ' sample: ' | grep -cE "$1"
}

# at_least GOT WANTED NAME
at_least() {
	[ "$1" -ge "$2" ]
	ok $? "$3" || diag "$1, not $2"
}

# ---- a capture of the lab's ------------------------------------------------------------

# tests/data/README.md says of what
capture=tests/data/profile/trace.dat
TRACEEVENT_PLUGIN_DIR=$build/plugins "$hyptrace" flame -q --idle -m host "$capture" >"$tmp/folded"
ok $? "flame of the capture"
is "$(perl -ne '/ (\d+)$/ and $n += $1; END { print $n }' "$tmp/folded")" 30 "it has the 30 samples"
is "$(trace-cmd report "$capture" 2>/dev/null | grep -c ' sample: ')" 30 "... as stock's report has"
is "$(grep -F '[guest]' "$tmp/folded")" 'host;CPU 0/KVM;[guest] 4
host;CPU 1/KVM;[guest] 3' "... seven of them in the guest"
like "$(cat "$tmp/folded")" '^host;sleep;ld-linux-aarch64\.so\.1\+0x1ae54;.*;el0_da;do_mem_abort;do_page_fault;.* 1$' \
	"... with user and kernel in one stack"
like "$(trace-cmd report "$capture" 2>/dev/null)" \
	' map: +tgid=[0-9]+ from=0x[0-9a-f]+ len=0x[0-9a-f]+ offset=0x[0-9a-f]+ build_id=[0-9a-f]{40} path=/lib/aarch64-linux-gnu/libc\.so\.6$' \
	"stock's report shows the maps"

# ---- what cannot be ------------------------------------------------------------------

record --profile 99 -C local -e sched -- true
is "$status" 1 "samples have no clock 'local'"
like "$err" "^hyptrace: --profile: samples have no clock 'local': use -C boot, mono, mono_raw or tai$" "... which is said"
is "$(ls -d "$dat"* 2>/dev/null)" "" "... and nothing is left"

record --profile 99 -- true
if [ "$status" != 0 ]; then
	skip 14 "this machine gives no samples: $err"
	done_testing
fi
record --profile 1000000 -- true
if [ "$(cat /proc/sys/kernel/perf_event_max_sample_rate)" -lt 1000000 ]; then
	is "$status" 1 "more than the kernel takes"
	like "$err" '^hyptrace: --profile 1000000: this kernel takes at most [0-9]+ \(kernel.perf_event_max_sample_rate\)$' "... which is said"
else
	skip 2 "this kernel takes a million"
fi

# ---- a program -----------------------------------------------------------------------

cat >"$tmp/work" <<-'E'
	for ((i = 0; i < 30; i++)); do
		"$0" stat tests/data/lab-protected.dat >/dev/null
	done
	E
"$hyptrace" stat tests/data/lab-protected.dat >/dev/null || diag "no stat"
record --profile 997 --compression none -- bash -c "$(cat "$tmp/work")" "$hyptrace"
is "$status" 0 "recorded" || diag "$err"
like "$err" '^hyptrace: profile: 997 samples a second of each CPU, by cpu-clock$' "it says by what"
at_least "$(samples 'comm=hyptrace .* mode=(user|kernel)')" 3 "stock reads samples of the program"
at_least "$(trace-cmd report "$dat" | grep ' map: ' | grep -cE 'build_id=[0-9a-f]{8,} path=.*/hyptrace$')" 6 \
	"... and maps of its file with its build id"
id=$(readelf -n "$hyptrace" 2>/dev/null | sed -n 's/.*Build ID: //p')
[ -z "$id" ] || like "$(trace-cmd report "$dat" | grep ' map: ')" "build_id=$id " "... which is that"
"$hyptrace" flame -q -o "$tmp/folded" "$dat"
ok $? "flame"
is "$(perl -ne '$n += $1 if / (\d+)$/; END { print $n + 0 }' "$tmp/folded")" \
	"$(trace-cmd report "$dat" 2>/dev/null | grep ' sample: ' | grep -vc 'comm=swapper')" \
	"it has all samples but the idle task's"
if ldd "$hyptrace" | grep -q libdw; then
	own=$(nm "$hyptrace" | sed -n 's/^[0-9a-f]* [tT] //p' | sort -u)
	# the innermost frames of the program: functions, none of them an address in its file
	grep -oE '^host;hyptrace;.*;[^; ]+ [0-9]+$' "$tmp/folded" | sed 's/ [0-9]*$//; s/.*;//' | sort -u >"$tmp/inner"
	at_least "$(grep -cxFf <(echo "$own") "$tmp/inner")" 1 "functions of the program have names" || diag "$(cat "$tmp/inner")"
else
	skip 1 "built without libdw"
fi

# ---- damage --------------------------------------------------------------------------

whole=$(stat -c %s "$dat")
bad=0
for seed in 1 2 3 4; do
	perl -e 'my ($from, $to, $seed) = @ARGV; open my $f, "<:raw", $from; local $/; my $all = <$f>; srand $seed;
		my $at = index $all, "hyptrace\0\0\0\0"; # the comm of a sample, so in the pages
		substr($all, $at + int rand(length($all) - $at - 8), 4) = pack "L", int rand 2 ** 32 for 1 .. 300;
		open $f, ">:raw", $to; print $f $all' "$dat" "$tmp/bad.dat" "$seed"
	for command in flame report; do
		"$hyptrace" "$command" -q "$tmp/bad.dat" >/dev/null 2>&1
		[ $? -le 1 ] || bad=$((bad + 1))
	done
done
is "$bad" 0 "samples with wrong bytes are read to the end, or refused ($whole bytes)"

# ---- kill -9 -------------------------------------------------------------------------

"$hyptrace" record -q -o "$dat" --profile 499 2>/dev/null &
pid=$!
wait_for test -s "$dat.spool/pages/0.0"
sleep 0.3
kill -9 $pid
wait $pid 2>/dev/null
"$hyptrace" recover -q "$dat.spool"
ok $? "recovered after kill -9"
at_least "$(samples .)" 20 "... with what had been read"

done_testing
