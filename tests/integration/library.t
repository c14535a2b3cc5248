#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The library as programs of others find it: installed, through pkg-config. The
# example of hyptrace(3) in C and C++, and what hyptrace.h promises.
. tests/integration/lib.sh

[ "$build" != "${build%-san}" ] && skip_all "not sanitised: the library is for programs that are not"
command -v pkg-config >/dev/null || skip_all "no pkg-config"

page=Documentation/hyptrace.3
data=tests/data/guest
root=$tmp/root
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

# ---- installation -------------------------------------------------------------------

env -u MAKEFLAGS make -s install O="$build" DESTDIR="$root" prefix=/usr plugindir=/usr/lib/plugins \
	ksharkdir=/usr/lib/kshark >"$tmp/install" 2>&1
ok $? "make install" || diag "$(tail "$tmp/install")"
for file in include/hyptrace.h lib/pkgconfig/hyptrace.pc share/man/man3/hyptrace.3 bin/hyptrace; do
	[ -s "$root/usr/$file" ]
	ok $? "$file is installed"
done
is "$(cd "$root/usr/include" && echo *.h)" "hypertrace-guest.h hyptrace.h qemu-hypertrace.h" "its header is, and the guest library's are"
is "$(readlink -f "$root/usr/lib/libhyptrace.so" | sed 's,.*/,,')" \
	"libhyptrace.so.$(sed -n 's/^Version: //p' "$root/usr/lib/pkgconfig/hyptrace.pc")" "libhyptrace.so leads to the library"
[ -e "$root/usr/lib/libhyptrace.so.0" ]
ok $? "so does libhyptrace.so.0"
is "$(readelf -d "$root/usr/lib/libhyptrace.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" libhyptrace.so.0 "its SONAME"
is "$(nm -D --defined-only "$root/usr/lib/libhyptrace.so" | sed 's/.* //' | grep -v '^hyptrace_')" \
	tep_plugin_kvm_get_func "it exports hyptrace_*, and what libtraceevent's plugins call"
is "$(nm -D --defined-only "$root/usr/lib/libhyptrace.so" | sed 's/.* //' | grep '^hyptrace_' | sort)" \
	"$(grep -v typedef include/hyptrace.h | grep -oE '\bhyptrace_[a-z_]+\(' | tr -d '(' | sort -u)" "it exports what the header has"

if command -v groff >/dev/null; then
	is "$(groff -man -ww -z -Tutf8 "$page" 2>&1)" "" "groff has nothing to say about the man page"
else
	skip 1 "no groff"
fi
is "$(man -l -E UTF-8 "$page" 2>&1 >/dev/null)" "" "man shows it"
for call in $(grep -v typedef include/hyptrace.h | grep -oE '\bhyptrace_[a-z_]+\(' | tr -d '('); do
	grep -q "^\.BI \".* \**$call(" "$page"
	ok $? "its SYNOPSIS has $call" || diag "$(grep -n "$call" "$page")"
done

is "$(sed -n 's/^#define HYPTRACE_VERSION_[MP][AIL].* //p' include/hyptrace.h | paste -sd. )" \
	"$(sed -n 's/^Version: //p' "$root/usr/lib/pkgconfig/hyptrace.pc")" "the header's version is the package's"

# ---- the example --------------------------------------------------------------------

sed -n '/^\.EX/,/^\.EE/p' "$page" | sed '/^\.E[XE]/d; /^\$/d; s/\\-/-/g; s/\\e/\\/g' >"$tmp/events.c"
like "$(cat "$tmp/events.c")" '^int main' "the page has a program"
lines=$(grep -c . "$tmp/events.c")
[ "$lines" -le 42 ]
ok $? "it is short ($lines lines)"

flags() {
	PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root/usr/lib/pkgconfig pkg-config "$@" hyptrace
}

compile() { # OUT COMPILER... FILE
	local out=$1
	shift
	# shellcheck disable=SC2046
	"$@" -o "$tmp/$out" $(flags --cflags --libs) >"$tmp/log" 2>&1
	ok $? "$*" || diag "$(head -20 "$tmp/log")"
}

export LD_LIBRARY_PATH=$root/usr/lib
compile example gcc -std=c11 -Wall -Werror -pedantic "$tmp/events.c"
"$tmp/example" $data/trace.dat $data/trace-Guest.dat >"$tmp/c" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 " "it runs"
if command -v g++ >/dev/null; then
	compile example++ g++ -std=c++17 -Wall -Werror -x c++ "$tmp/events.c"
	"$tmp/example++" $data/trace.dat $data/trace-Guest.dat >"$tmp/c++" 2>&1
	same "$tmp/c++" "$tmp/c" "so does the one in C++"
else
	skip 2 "no g++"
fi

# What hyptrace report makes of the files once they have the same offsets.
cp $data/*.dat "$tmp" && "$build/hyptrace" sync -q -w "$tmp/trace.dat" "$tmp/trace-Guest.dat"
"$build/hyptrace" report -q -t "$tmp/trace.dat" "$tmp/trace-Guest.dat" | grep -v 'cpus=\|EVENTS DROPPED' |
	tr -s ' ' |
	sed -E 's/^ *([^ ]+): .*\[0*([0-9]+)\] +([0-9.]+): ([^ ]+): */\3 [\2] \4: /' >"$tmp/report"
tr -s ' ' <"$tmp/c" | sed -E 's/^([0-9.]+) .* (\[[0-9]+\] [^ ]+: )/\1 \2/' | grep -v 'events lost' >"$tmp/events"
same "$tmp/events" "$tmp/report" "events, times and fields are those of hyptrace report"
like "$(cat "$tmp/c")" '^46\.[0-9]{9} \+- 0 host hyp \[[0-9]\] hyp_e' "the hypervisor's events are in it"
like "$(cat "$tmp/c")" '^46\.[0-9]{9} \+- [0-9]+ Guest top \[[0-9]\] [a-z_]+: ' "so are the guest's, with bounds"
like "$("$tmp/example" tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat 2>&1)" \
	'kvm_entry: PC: 0xffff8000805daf34 \(vp_notify\+0x14\)$' "functions of guests are in the text"
"$tmp/example" "$tmp/none.dat" >"$tmp/err" 2>&1
is "$? $(sed 's,^.*/,,' "$tmp/err")" "1 none.dat': No such file or directory
example: No such file or directory" "it says what is wrong"

# ---- what the header promises ---------------------------------------------------------

compile check gcc -std=c11 -Wall -Wextra -Werror -pedantic -pthread tests/integration/installed/check.c
is "$("$tmp/check" $data/trace.dat $data/trace-Guest.dat 2>&1)" "$(cat <<'E2'
version 0.1.0: the header's
missing file: No such file or directory
cannot open '/no/such/file': No such file or directory
no trace.dat: Bad message
a directory: Is a directory
older options: fine
older event: 1 Guest, 0 bytes behind it touched
event without a size: Invalid argument
newer options: fine
newer options, used: Argument list too long
field of no event: No such file or directory
sched_switch of sched: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=0 next_comm=CPU 1/KVM next_pid=114 next_prio=120
swapper/2:0 [120] R ==> CPU 1/KVM:114 [120]
next_pid: fine
no_such: No such file or directory
from the middle, whose event counts: the rest
seek back: there, all after it
seek past the end: 0
filter: fine, 4 events
filter 'sched_switch:': Invalid argument, a field is missing at its end
filter 'no_such_event': Invalid argument, no event found
the filter before stays: 4 events
without a filter: all
visits: 122 paired, 0 lost, 0 unfinished, 0 without a begin, 122 with a reason
exits: 29 paired, 0 lost, 0 unfinished, 0 without a begin, 29 with a reason
0 in a wrong order, 96 of the guest's vCPUs
spans from a time on: the rest
span without a size: Invalid argument
host's offset: No data available
third file's offset: Invalid argument
the file's: 19945779431 +- 18446744073709551615, -, by -
sync: fine
computed: 19945758679 +- 32218, hard, by hyp windows
long before: unknown
guest event: Guest +- 32218
sync of one file: Invalid argument
plan: fine
wrong plan: Invalid argument, with a reason
no spool: No such file or directory
threads: fine, the same
E2
)" "answers"

done_testing
