#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hypertrace on x86-64: what a KVM guest's programs mark, by ring and doorbell and by hypercall, and its kernel's,
# is in the host's recording. 74-hypertrace.t has the whole of it, on arm64.
# HYPERTRACE_EVENTS: of each of the four clients at full speed (500).
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"
. "$(dirname "$0")/marks.sh"

each=${HYPERTRACE_EVENTS-500}
copy_hyptrace "$tmp/out/bin"
mkdir "$tmp/out/guest"
for program in tests/data/hypertrace/my-hypertrace.c tests/lab/l2/marks.c; do
	cc -static -O2 -Iagent/hypertrace -o "$tmp/out/guest/$(basename "$program" .c)" "$program" "$build/libhypertrace-guest.a"
	ok $? "$(basename "$program") is built"
done
kernel_module x86/kernel
cp "$tmp/module"/*.ko "$tmp/out/guest/"

x86 run -n -o "$tmp/out" -- "EVENTS=$each; $(cat tests/lab/x86-hypertrace)" >"$tmp/said" 2>"$tmp/err"
ok $? "recorded" || diag "$(cat "$tmp/said" "$tmp/err")"
is "$(grep -c ': status 0$' "$tmp/said")" 4 "recorder and programs: status"
like "$(cat "$tmp/out/before")" '^nop$' "what tracefs was like is known"
is "$(cat "$tmp/out/after")" "$(cat "$tmp/out/before")" "... it is as it was"

# ---- the example ---------------------------------------------------------------------

report() { trace-cmd report -i "$tmp/out/$1" 2>/dev/null; }
is "$(marks Marks "$tmp/out/example.dat")" "0 0x1 0xcafe 0xdead 0xbeef
0 0x0 0xcafe 0xdead 0xbeef" "the example of QEMU's patches, unchanged: its two events, by stock report"
is "$(in_exits "$tmp/out/example.dat")" "2 2" "... at times when their vCPU had left the guest, before it came back"

# ---- full speed -----------------------------------------------------------------------

read -r events lost <<<"$(sed -nE 's/^hyptrace: .*hypertrace: Marks: ([0-9]+) events(, ([0-9]+) lost)?.*/\1 \3/p' "$tmp/err" | sed -n '2s/ $/ 0/; 2p')"
is "$((events + lost))" "$((4 * each))" "four clients: emitted = recorded + counted lost ($lost)"
marks Marks "$tmp/out/fast.dat" >"$tmp/marks"
is "$(wc -l <"$tmp/marks")" "$events" "... recorded are as many as stock report shows"
is "$(out_of_order <"$tmp/marks")" 0 "... each client's in its order, with its arguments"

# ---- hypercalls -----------------------------------------------------------------------

is "$(report vmcall.dat | sed -nE 's/.* kvm_hypercall: +nr 0x68797074 a0 (\w+) a1 (\w+) a2 (\w+) a3 (\w+).*/\1 \2 \3 \4/p')" \
	"0x0 0x1 0xcafe 0xdead
0x0 0x0 0xcafe 0xdead" "by hypercalls: client, and three arguments"

# ---- the guest's kernel ---------------------------------------------------------------

is "$(marks Marks "$tmp/out/kernel.dat")" "1 0x1 0xcafe 0xdead 0xbeef
1 0x0 0xcafe 0xdead 0xbeef
0 0x1 0xcafe 0xdead 0xbeef
0 0x0 0xcafe 0xdead 0xbeef" "by the module: its events, and those of a program behind it in the same memory"

done_testing
