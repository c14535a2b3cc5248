#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace-agent on arm64 under its filter of system calls, in a kernel that has
# them (Debian's own; not the lab's): all it does works, and not one call is
# refused, though every refusal is seen.
cd "$(dirname "$0")/../../.." || exit 1
. tests/integration/lib.sh

home=$(getent passwd "$(id -u)" | cut -d : -f 6)
HOME=$home tests/lab/debian tests/lab/l2/seccomp >"$tmp/out" 2>"$tmp/err"
ok $? "ran to its end" || diag "$(cat "$tmp/out" "$tmp/err")"

# said KEY: what came after it
said() {
	sed -n "s/^$1: //p" "$tmp/out"
}

for agent in unix vsock tcp; do
	is "$(said "$agent filter")" "NoNewPrivs: 1 Seccomp: 2 " "$agent: filtered"
	like "$(said "$agent says")" 'capabilities dropped: yes; no new privileges: yes; system calls filtered: yes' \
		"$agent: and it says so"
done
# Not over vsock: there stock's recorder was at work, which leaves things behind.
for agent in unix tcp; do
	is "$(said "$agent leaves")" "0 lines changed" "$agent: tracefs is as before"
done
is "$(said 'unix exit') $(said 'vsock daemon') $(said 'tcp exit')" "0 0 0" "they end well, and -D goes to the background"

for file in one-a two-a stock-b ours-b early-c later-c; do
	[ "$(said "$file.dat status")" = 0 ] && [ "$(said "$file.dat events")" -ge 5 ]
	ok $? "$file: $(said "$file.dat events") events"
done
is "$(said 'one-a.dat marks')" 2 "marks that others make are in a buffer that others write to"
is "$(said 'early-c.dat marks') $(said 'later-c.dat marks')" "0 0" "... with --allow in none, before and while it is recorded"
like "$(said 'tcp says')" 'without asking: kernel symbols' "... and it is said what goes out all the same"
is "$(said 'busy status') $(said 'refused status')" "1 1" "two recorders are refused"
like "$(cat "$tmp/out")" 'refuses the request: busy: another recorder is at work' "... one as the agent is busy"
like "$(cat "$tmp/out")" 'none of these events is allowed here' "... one by --allow"
is "$(grep -Ec ' says: (.* )?sent [0-9]+ bytes by splice, ' "$tmp/out")" 6 "all six by splice"
is "$(said refused)" "rmdir 35 -1" "the only refused call is the one that shows that they are seen"

done_testing
