#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recording onto a disk of a few MB, or less: it works, or what is missing is said. On a FAKE
# tree (fake-android.c).
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tree=$tmp/tracefs
disk=$tmp/disk
export HYPTRACE_TRACING_DIR=$tree
bare_machine
mkdir "$disk"

# on_disk SIZE COMMAND...: with a disk of that size at $disk; what is on it afterwards in $tmp/left
on_disk() {
	unshare -rm sh -c 'mount -t tmpfs -o "size=$1" small "$2" && left=$3 && cd "$2" && shift 3 || exit
		"$@"
		status=$?
		ls >"$left"
		[ ! -e trace.dat ] || cp trace.dat ..
		exit $status' - "$1" "$disk" "$tmp/left" "${@:2}" 2>"$tmp/err"
}

on_disk 1m true || skip_all "no namespace to mount a small disk in"

new_tree() {
	rm -rf "$tree" "$tmp/trace.dat"
	pages_once "$tree"
	"$build/tests/integration/fake-android" "$tree" android16
}

# record SIZE COMMAND...: sets status
record() {
	new_tree
	on_disk "$1" timeout 60 "$hyptrace" record -o trace.dat -e kvm -- "${@:2}"
	status=$?
}

events() {
	"$hyptrace" report -i "$tmp/trace.dat" 2>/dev/null | grep -c "kvm_entry:"
}

name="5 MB, symbols of 6 MB when compressed"
head -c 6000000 /dev/urandom | base64 -w 60 | sed 's/^/ffff800080000000 T /' \
	>"$HYPTRACE_ROOT/proc/kallsyms"
record 5m true
is "$status" 0 "$name: exit status" || diag "$(<"$tmp/err")"
like "$(<"$tmp/err")" "warning: the kernel's symbols are left out: No space left" "$name: what is left out"
is "$(<"$tmp/left")" trace.dat "$name: the file is there and no spool"
is "$(events)" 1 "$name: its events"

name="5 MB, more pages than that"
new_tree
"$build/tests/integration/fake-android" "$tmp/plain" android16
mapfile -t pages < <(yes "$tmp/plain/per_cpu/cpu0/trace_pipe_raw" | head -n 4000)
cat "${pages[@]}" >"$tree/per_cpu/cpu0/trace_pipe_raw" 2>/dev/null &
on_disk 5m timeout 60 "$hyptrace" record -o trace.dat -e kvm
is "$?" 1 "$name: exit status"
kill $!
like "$(<"$tmp/err")" "the disk is full: the recording ends here" "$name: the message"
is "$(<"$tmp/left")" trace.dat "$name: the file is there and no spool"
[ "$(events)" -gt 100 ]
ok $? "$name: what was recorded until then is in it"

for size in 2m 1m 64k 32k 16k 8k 4k; do
	record $size true
	is "$status" 1 "$size: exit status"
	like "$(<"$tmp/err")" "no space left for a recording next to 'trace.dat'" "$size: the message"
	is "$(<"$tmp/left")" "" "$size: nothing is left on it"
done

done_testing
