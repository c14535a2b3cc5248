#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# However many guests are recorded, the host's pages are read once for their clocks.
# Recorder and agents run on one machine; their tracefs are FAKES (fake-android.c).
. tests/integration/lib.sh

preload=$build/tests/tools/countopens.so
nm -D "$build/hyptrace" | grep -q __asan_ && skip_all "ASan wants to be the first preload"

for side in host one two; do "$build/tests/integration/fake-android" "$tmp/$side" android16; done
for side in one two; do
	: >"$tmp/$side.log"
	HYPTRACE_TRACING_DIR=$tmp/$side "$build/hyptrace-agent" --listen "unix:$tmp/$side.sock" --journal none \
		2>"$tmp/$side.log" &
	wait_for grep -q listening "$tmp/$side.log"
done

# opens GUEST...: sets count to how often a recording with these guests opens the host's first pages
opens() {
	local args=() g

	for g in "$@"; do args+=(-A "$g@unix:$tmp/$g.sock" -e sched); done
	rm -f "$tmp/opens" "$tmp"/*.dat
	OPENS=$tmp/opens LD_PRELOAD=$preload HYPTRACE_TRACING_DIR=$tmp/host \
		timeout 100 "$build/hyptrace" record --guest-timeout 60 -o "$tmp/trace.dat" -e sched "${args[@]}" -- true 2>"$tmp/err"
	is $? 0 "records with $*" || diag "$(cat "$tmp/err")"
	count=$(grep -c '/trace.dat[^/]*/pages/0\.0$' "$tmp/opens")
}

opens one
with_one=$count
[ "$with_one" -ge 2 ]
ok $? "the host's pages are written and read ($with_one opens)"
opens one two
is "$count" "$with_one" "... and opened as often for two guests"
done_testing
