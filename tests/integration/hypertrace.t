#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's library as its programs find it: installed, static and shared, the
# example of hypertrace(7), and one with the names of QEMU's patches.
. tests/integration/lib.sh

[ "$build" != "${build%-san}" ] && skip_all "not sanitised: the library is for programs that are not"
root=$tmp/root
env -u MAKEFLAGS make -s install O="$build" DESTDIR="$root" prefix=/usr plugindir=/usr/lib/plugins \
	ksharkdir=/usr/lib/kshark >"$tmp/install" 2>&1
ok $? "make install" || diag "$(tail "$tmp/install")"

sed -n '/^#include <stdio/,/^}/p' Documentation/hypertrace.7 | sed 's/\\-/-/g' >"$tmp/example.c"
# the same by the old names
sed 's/hypertrace-guest/qemu-hypertrace/; s/hypertrace_emit/qemu_hypertrace/; s/\bhypertrace_/qemu_hypertrace_/' \
	"$tmp/example.c" >"$tmp/old.c"
events='guest_hypertrace client=0 arg1=0x1 arg2=0xcafe arg3=0xdead arg4=0xbeef
guest_hypertrace client=0 arg1=0x0 arg2=0xcafe arg3=0xdead arg4=0xbeef'

# marks PROGRAM NAME: what it writes into a file that stands for trace_marker
marks() {
	: >"$tmp/marker"
	HYPERTRACE=marker:$tmp/marker "$tmp/$1" >"$tmp/said" 2>&1
	is "$? $(cat "$tmp/said")" "0 Some computation..." "$2: runs"
	is "$(cat "$tmp/marker")" "$events" "$2: its marks"
}

for name in example old; do
	gcc -std=c11 -Wall -Wextra -Werror -pedantic -I"$root/usr/include" -o "$tmp/$name" "$tmp/$name.c" \
		"$root/usr/lib/libhypertrace-guest.a" >"$tmp/log" 2>&1
	ok $? "$name.c with the static library" || diag "$(cat "$tmp/log")"
	marks $name "$name, static"
done
gcc -std=c11 -Wall -Werror -I"$root/usr/include" -o "$tmp/shared" "$tmp/example.c" -L"$root/usr/lib" \
	-lhypertrace-guest >"$tmp/log" 2>&1
ok $? "with the shared library" || diag "$(cat "$tmp/log")"
LD_LIBRARY_PATH=$root/usr/lib marks shared shared
is "$(nm -D --defined-only "$root/usr/lib/libhypertrace-guest.so" | sed 's/.* //')" "$(
	grep -oE '\bhypertrace_[a-z_]+\(' agent/hypertrace/hypertrace-guest.h | tr -d '(' | sort -u)" "it exports what its header has"

HYPERTRACE=marker:$tmp/no/such "$tmp/example" >"$tmp/said" 2>&1
is "$? $(cat "$tmp/said")" "1 hypertrace_init: No such file or directory" "a marker that is not there"
HYPERTRACE=none "$tmp/example" >"$tmp/said" 2>&1
is "$? $(cat "$tmp/said")" "0 Some computation..." "none"

if command -v groff >/dev/null; then
	is "$(groff -man -ww -z -Tutf8 Documentation/hypertrace.7 2>&1)" "" "groff has nothing to say about the man page"
else
	skip 1 "no groff"
fi
done_testing
