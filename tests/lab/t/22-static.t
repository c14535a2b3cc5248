#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The static file (make static) on a pKVM host that has nothing else: busybox alone,
# a root that nobody can write to, /data of memory, no /tmp and no /run.
cd "$(dirname "$0")/../../.." || exit 1
. tests/integration/lib.sh

file=$build/hyptrace-arm64
home=$(getent passwd "$(id -u)" | cut -d : -f 6)
export TRACEEVENT_PLUGIN_DIR=$build/plugins
[ -f "$file" ] || { make -s -j"$(nproc)" O="$build" static >"$tmp/make" 2>&1 || diag "$(cat "$tmp/make")"; }

size=$(stat -c %s "$file")
diag "$file has $size bytes"
[ "$size" -le $((4 << 20)) ]
ok $? "the file has 4 MiB at most"
like "$(readelf -l "$file" | grep -c 'INTERP\|DYNAMIC')" '^0$' "it asks for no loader and no library"

# Other recordings, to be read there by the plugins in the file.
captures="formats-arm64.dat lab-protected.dat raw-arm64.dat lab-stock-arm64.dat guest/trace.dat x86/trace.dat"
out=$tmp/captures
mkdir -p "$out"/{guest,x86}
for dat in $captures; do cp "tests/data/$dat" "$out/$dat"; done

HOME=$home tests/lab/bare "$file" "$out" tests/lab/l1/static >"$tmp/out" 2>"$tmp/err"
ok $? "ran to its end" || diag "$(cat "$tmp/out" "$tmp/err")"

# said KEY: what came after it
said() {
	sed -n "s/^$1: //p" "$tmp/out"
}

is "$(said root)" "bin data dev init out proc script sys " "there is no library, no /tmp and no /run"
is "$(said writable)" no "... and / cannot be written to"
is "$(said 'record status')" 0 "hypervisor and host are recorded" || diag "$(said 'record says')"
like "$(said 'record says')" ' host [1-9][0-9]* events.* \(0 lost\); hyp [1-9][0-9]* events.* \(0 lost\)' \
	"... without a loss: $(said 'record says' | tail -n 1)"
is "$(said 'report status') $(said 'report says')" "0 " "report reads it"
is "$(said 'stat status') $(said 'stat says')" "0 " "stat reads it"

for dat in t.dat $captures; do
	HOME=/nowhere "$build/hyptrace" report -L "$out/$dat" >"$tmp/report" 2>/dev/null
	same "$out/$dat.report" "$tmp/report" "$dat: report as here, with our plugins: $(wc -l <"$tmp/report") lines"
	"$build/hyptrace" stat "$out/$dat" >"$tmp/stat" 2>/dev/null
	same <(sed "s,^/out/,," "$out/$dat.stat") <(sed "s,^$out/,," "$tmp/stat") "$dat: stat as here"
done
like "$(trace-cmd report -i "$out/t.dat" 2>/dev/null)" 'hyp_enter' "trace-cmd reads what was recorded there"

is "$(said 'interrupted status')" 0 "SIGINT ends a recording"
[ "$(said 'interrupted events')" -gt 0 ]
ok $? "... whose file is whole: $(said 'interrupted events') hyp_enter and sched_switch"
is "$(said 'second status')" 1 "after kill -9 nobody records over what was left"
like "$(said 'second says')" 'a killed recording still holds .*run: hyptrace recover .*/data/k.dat.spool' "... and says why, without a /run"
is "$(said 'recover status') $(said 'recovered report status')" "0 0" "recover puts it back and writes the file"
is "$(said 'agent status' | tr '\n' ' ')" "0 0 " "the agent is in the file, as a command and by its name" ||
	diag "$(said 'agent says')"
is "$(said 'agent events' | grep -c '^[1-9]')" 2 "... and serves: $(said 'agent events' | tr '\n' ' ')events"
is "$(said 'user status') $(said 'user says')" "1 hyptrace: no such user: 'shell'" "--user is refused"
is "$(said 'list status')" 0 "list works"
like "$(said version)" 'static file: .* without others and libvirt' "--version says what it lacks"
is "$(said changed)" 0 "tracefs is as before"
is "$(said left)" "" "no spool and no link is left"

done_testing
