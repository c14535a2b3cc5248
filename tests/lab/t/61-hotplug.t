#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A guest with room for a third vCPU, under KVM on x86-64 (QEMU's arm64 machine takes
# none): recorded while it has two, and while the third is plugged in.
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"

bin=$tmp/out/bin
copy_hyptrace "$bin"
cp "$build/hyptrace-agent" "$bin/"

x86 run -n -o "$tmp/out" -- "$(cat tests/lab/x86-hotplug)" >"$tmp/said" 2>"$tmp/err"
ok $? "recorded" || diag "$(cat "$tmp/said" "$tmp/err")"

# guest_cpus FILE: "CPU THREAD" of its GUEST
guest_cpus() {
	trace-cmd dump --options -i "$tmp/out/$1" 2>/dev/null | sed -n 's/^ *\([0-9]* [0-9]*\) \[guest cpu, host pid\]$/\1/p'
}

is "$(sed -n 's/^stock: //p' "$tmp/said")" 0 "trace-cmd's agent, with a CPU that was never online: status"
like "$(cat "$tmp/err")" 'guest Plug: its agent has nothing of some of its 3 CPUs' "... and that is said"
is "$(guest_cpus stock.dat)" "$(sed -n '1,2p' "$tmp/out/threads"; echo 2 0)" "... and GUEST has two threads"

is "$(sed -n 's/^plug: //p' "$tmp/said")" 0 "a vCPU plugged in while it records: status"
is "$(wc -l <"$tmp/out/threads")" 3 "QEMU has three threads then"
is "$(guest_cpus plug.dat)" "$(cat "$tmp/out/threads")" "GUEST has all three"
is "$("$build/tests/tools/loadkshark" -g "$tmp/out/plug.dat" "$tmp/out/plug-Plug.dat" | sed -nE 's/^guest Plug: .*, threads (.*)$/\1/p')" \
	"$(cut -d ' ' -f 2 "$tmp/out/threads" | xargs)" "KernelShark reads them"
[ "$(trace-cmd report -i "$tmp/out/plug-Plug.dat" 2>/dev/null | grep -c '\[002\].* sched_')" -ge 1 ]
ok $? "what the third did is in the guest's file"
done_testing
