#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace sync with each of its allocations failing in turn: it must end by itself,
# either with status 1 and a message or with the right output.
. tests/integration/lib.sh

preload=$build/tests/tools/failmalloc.so
nm -D "$build/hyptrace" | grep -q __asan_ && skip_all "ASan has an allocator of its own"

# sweep NAME OPTION...: tries each allocation of `hyptrace sync OPTION... HOST GUEST`
sweep() {
	local name=$1 n i status bad=
	shift

	FAILMALLOC_COUNT=$tmp/count LD_PRELOAD=$preload "$build/hyptrace" sync "$@" >"$tmp/right" 2>"$tmp/err"
	ok $? "$name: nothing fails"
	n=$(cat "$tmp/count")
	[ "${n:-0}" -gt 100 ]
	ok $? "$name: allocates ($n times)"
	for ((i = 1; i <= n; i++)); do
		# in a shell of its own, which says nothing of a crash
		(FAILMALLOC_AT=$i LD_PRELOAD=$preload exec "$build/hyptrace" sync "$@" >"$tmp/out" 2>"$tmp/err") 2>/dev/null
		status=$?
		case $status in
		0) cmp -s "$tmp/out" "$tmp/right" || bad+=" $i:output" ;;
		1) [ -s "$tmp/err" ] || bad+=" $i:silent" ;;
		*) bad+=" $i:$status" ;;
		esac
	done
	is "$bad" "" "$name: an allocation fails: the right output, or status 1 and a message"
}

sweep "--json" --json tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat
done_testing
