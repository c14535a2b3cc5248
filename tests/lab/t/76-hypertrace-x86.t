#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hypertrace on x86-64: what a KVM guest's programs mark, by ring and doorbell and by hypercall, is in the host's
# recording. 74-hypertrace.t has the whole of it, on arm64.
# HYPERTRACE_EVENTS: of each of the four clients at full speed (500).
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"

each=${HYPERTRACE_EVENTS-500}
copy_hyptrace "$tmp/out/bin"
mkdir "$tmp/out/guest"
for program in tests/data/hypertrace/my-hypertrace.c tests/lab/l2/marks.c; do
	cc -static -O2 -Iagent/hypertrace -o "$tmp/out/guest/$(basename "$program" .c)" "$program" "$build/libhypertrace-guest.a"
	ok $? "$(basename "$program") is built"
done

x86 run -o "$tmp/out" -- "EVENTS=$each; $(cat tests/lab/x86-hypertrace)" >"$tmp/said" 2>"$tmp/err"
ok $? "recorded"
diag "$(cat "$tmp/said" "$tmp/err")"
is "$(grep -c ': status 0$' "$tmp/said")" 3 "recorder and programs: status"
is "$(cat "$tmp/out/after")" "$(cat "$tmp/out/before")" "tracefs is as it was"

# ---- the example ---------------------------------------------------------------------

report() { trace-cmd report -i "$tmp/out/$1" 2>/dev/null; }
marks() {
	report "$1" | sed -nE 's/.*guest_hypertrace: +client=([0-9]+) arg1=(\w+) arg2=(\w+) arg3=(\w+) arg4=(\w+) guest=Marks vcpu=[01]$/\1 \2 \3 \4 \5/p'
}
is "$(marks example.dat)" "0 0x1 0xcafe 0xdead 0xbeef
0 0x0 0xcafe 0xdead 0xbeef" "the example of QEMU's patches, unchanged: its two events, by stock report"
# each after an exit of its vCPU's thread, before that one's next entry
is "$("$build/hyptrace" report "$tmp/out/example.dat" 2>/dev/null |
	sed -nE 's/.*-([0-9]+) +\[[0-9]+\].* (kvm_entry|kvm_exit|guest_hypertrace):.*/\1 \2/p' |
	awk '$2 == "guest_hypertrace" { n++; open[$1] = last[$1] == "kvm_exit"; next }
		open[$1] { good += $2 == "kvm_entry"; open[$1] = 0 }
		{ last[$1] = $2 }
		END { print n, good }')" "2 2" "... at times when their vCPU had left the guest, before it came back"

# ---- full speed -----------------------------------------------------------------------

read -r events lost <<<"$(sed -nE 's/^hyptrace: .*hypertrace: Marks: ([0-9]+) events(, ([0-9]+) lost)?.*/\1 \3/p' "$tmp/err" | sed 's/ $/ 0/' | tail -n 1)"
is "$((events + lost))" "$((4 * each))" "four clients: emitted = recorded + counted lost ($lost)"
marks fast.dat >"$tmp/marks"
is "$(wc -l <"$tmp/marks")" "$events" "... recorded are as many as stock report shows"
is "$(perl -ane '$bad++ if hex $F[1] != $F[0] || hex $F[2] <= ($last[$F[0]] // 0); $last[$F[0]] = hex $F[2]; END { print $bad // 0 }' "$tmp/marks")" \
	0 "... each client's in its order, with its arguments"

# ---- hypercalls -----------------------------------------------------------------------

is "$(report vmcall.dat | sed -nE 's/.* kvm_hypercall: +nr 0x68797074 a0 (\w+) a1 (\w+) a2 (\w+) a3 (\w+).*/\1 \2 \3 \4/p')" \
	"0x0 0x1 0xcafe 0xdead
0x0 0x0 0xcafe 0xdead" "by hypercalls: client, and three arguments"

done_testing
