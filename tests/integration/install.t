#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# make install: nothing outside of prefix, with DESTDIR too; symbols; what pkg-config, systemd and dkms find.
. tests/integration/lib.sh

[ "$build" != "${build%-san}" ] && skip_all "not sanitised: libraries are not installed then"
bare_machine

# install_to LOG VARIABLE...: as a user who may write into $tmp only, where this is root
install_to() {
	local log=$1 as=()
	shift
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	env -u MAKEFLAGS -u STRIP "${as[@]}" make -s install O="$build" "$@" >"$log" 2>&1
}

sections() {
	readelf -WS "$1" | grep -oE ' \.(debug_info|symtab) ' | paste -sd ' '
}

chmod 755 "$tmp"
mkdir -m 777 "$tmp/prefix" "$tmp/dest" "$tmp/symbols"
root=$tmp/prefix
install_to "$tmp/log" prefix="$root"
ok $? "prefix=DIR: nothing is written elsewhere" || diag "$(tail "$tmp/log")"
install_to "$tmp/log" prefix=/opt/it DESTDIR="$tmp/dest"
ok $? "DESTDIR=DIR: nor then" || diag "$(tail "$tmp/log")"
is "$(find "$tmp/dest" -mindepth 1 ! -path "$tmp/dest/opt" ! -path "$tmp/dest/opt/it*")" "" "and all of it is below prefix"
is "$(cd "$tmp/dest/opt/it" && find . | sort)" "$(cd "$root" && find . | sort)" "the same files"
is "$(cd "$root" && find lib -name '*.so' ! -name 'lib*' ! -name plugin-hyptrace.so | sort)" \
	"lib/traceevent/plugins/crosvm.so
lib/traceevent/plugins/hyp.so
lib/traceevent/plugins/hypertrace.so
lib/traceevent/plugins/kvm-arm64.so" "stock's plugins follow prefix"
file=tests/data/lab-protected.dat
is "$(env -i "$root/bin/hyptrace" report $file | md5sum)" "$("$build/hyptrace" report $file | md5sum)" "it reads a file"
if command -v trace-cmd >/dev/null; then
	is "$(TRACEEVENT_PLUGIN_DIR=$root/lib/traceevent/plugins trace-cmd report $file 2>&1 | grep -c 'hyp_exit: *reason=eret_host')" \
		"$("$build/hyptrace" report $file | grep -c 'hyp_exit: *reason=eret_host')" "stock takes them from there"
else
	skip 1 "no trace-cmd"
fi

# ---- symbols ----------------------------------------------------------------------------

for program in bin/hyptrace bin/hyptrace-agent lib/libhyptrace.so lib/libhypertrace-guest.so.0 lib/traceevent/plugins/hyp.so; do
	is "$(sections "$root/$program")" "" "$program is stripped"
done
install_to "$tmp/log" prefix="$tmp/symbols" STRIP=
ok $? "STRIP=" || diag "$(tail "$tmp/log")"
for program in bin/hyptrace bin/hyptrace-agent lib/libhyptrace.so lib/libhypertrace-guest.so.0 lib/traceevent/plugins/hyp.so; do
	is "$(sections "$tmp/symbols/$program")" " .debug_info   .symtab " "$program keeps its symbols"
done

# ---- pkg-config, dkms ---------------------------------------------------------------------

if command -v pkg-config >/dev/null && command -v gcc >/dev/null; then
	printf '#include <hypertrace-guest.h>\nint main(void) { return !hypertrace_init; }\n' >"$tmp/a.c"
	# shellcheck disable=SC2046
	gcc -o "$tmp/a" "$tmp/a.c" $(PKG_CONFIG_PATH=$root/lib/pkgconfig pkg-config --cflags --libs hypertrace-guest) &&
		LD_LIBRARY_PATH=$root/lib "$tmp/a"
	ok $? "pkg-config hypertrace-guest"
else
	skip 1 "no pkg-config or gcc"
fi
version=$(sed -n 's/^VERSION := //p' Makefile)
# shellcheck disable=SC1090,SC1091,SC2034
is "$(kernel_source_dir='' dkms_tree='' && . "$root/src/hypertrace-$version/dkms.conf" && echo "$PACKAGE_NAME-$PACKAGE_VERSION ${BUILT_MODULE_NAME[0]}")" \
	"hypertrace-$version hypertrace" "dkms.conf"

# ---- units ---------------------------------------------------------------------------------

units=$root/lib/systemd/system
if command -v systemd-analyze >/dev/null; then
	is "$(systemd-analyze verify --man=no "$units"/hyptrace-* 2>&1 | grep hyptrace)" "" "systemd-analyze verify"
else
	skip 1 "no systemd-analyze"
fi

# exec_line UNIT SETTING: a command of a unit, for sh, with the specifiers and dollars that systemd replaces
exec_line() {
	sed -n "s/^$2=//p" "$units/$1" | sed 's/%%/%/g; s/\$\$/$/g'
}

# OPTIONS of a unit
options() {
	sed -n 's/^Environment="OPTIONS=\(.*\)"$/\1/p' "$units/$1"
}

export OPTIONS HYPTRACE_TRACING_DIR=$tmp/tracefs
pages_once "$HYPTRACE_TRACING_DIR"
"$build/tests/integration/fake-android" "$HYPTRACE_TRACING_DIR" android16
OPTIONS="$(options hyptrace-agent.service) --listen unix:$tmp/agent"
sh -fc "exec $(exec_line hyptrace-agent.service ExecStart)" >"$tmp/agent.log" 2>&1 &
agent=$!
wait_for test -S "$tmp/agent"
ok $? "the agent takes its unit's options" || diag "$(cat "$tmp/agent.log")"
kill "$agent"
wait "$agent"
like "$(cat "$tmp/agent.log")" "a recorder gets the events that --allow names" "and serves the allowed events only"

mkdir "$tmp/state"
tracing() {
	[ "$(cat "$HYPTRACE_TRACING_DIR/tracing_on")" = 1 ] && compgen -G "/dev/shm/hyptrace-$unit-*.spool" >/dev/null
}
spools() {
	find /dev/shm "$tmp/state" -name "*$unit-*.spool"
}

MAINPID=
# flight SETTING: a command of its unit, where that runs it
flight() {
	export MAINPID
	cd "$tmp/state" && eval "exec $(exec_line "hyptrace-$unit.service" "$1")"
}

for unit in flight ring; do
	OPTIONS=$(options hyptrace-$unit.service)
	[ -w /dev/shm ] || { skip 6 "no /dev/shm"; continue; }
	flight ExecStart >"$tmp/flight.log" 2>&1 &
	recorder=$!
	wait_for tracing
	ok $? "$unit: the recorder takes its unit's options" || diag "$(cat "$tmp/flight.log")"
	MAINPID=$recorder flight ExecReload &
	wait $!
	wait_for grep -q "/$unit-2.*\.001\.dat: " "$tmp/flight.log"
	ok $? "$unit: reload writes a file"
	kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	is "$(spools | wc -l)" 1 "$unit: killed, it leaves a spool"
	out=$(flight ExecStartPre 2>&1)
	is "$? $(spools)" "0 " "the next start recovers that first" || diag "$out"
	like "$out" "$tmp/state/$unit-2[0-9-]*\.00[12]\.dat, " "into a file named by the time of the start"
	out=$(flight ExecStartPre 2>&1)
	is "$? $out" "0 " "there is nothing to recover after that"
done
done_testing
