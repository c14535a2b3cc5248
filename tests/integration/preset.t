#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --preset qemu on a FAKE of tracefs (fake-android.c) and of /proc, with a script for perf that prints lines
# of perf 6.1: which lines become events, and what is said. Probes that are hit are in tests/lab/t/15-probes.t.
# shellcheck disable=SC2016 # scripts have their own $
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tree=$tmp/tracefs proc=$tmp/machine/proc
export HYPTRACE_TRACING_DIR=$tree TMPDIR=$tmp/cache
bare_machine
pages_once "$tree"
"$build/tests/integration/fake-android" "$tree" android16
mkfifo "$tree/dynamic_events"
exec 8<>"$tree/dynamic_events"
mkdir "$tmp/bin" "$tmp/cache" "$tmp/vmm"

# vmm PID EXE: a process of a VMM with a name
vmm() {
	mkdir -p "$proc/$1/fd" "$proc/$1/task/$1"
	ln -s "$2" "$proc/$1/exe"
	ln -s / "$proc/$1/root"
	printf '%s\0-name\0Guest%s\0' "${2##*/}" "$1" >"$proc/$1/cmdline"
	echo qemu >"$proc/$1/task/$1/comm"
}

# perf -x EXE of the script: as perf 6.1 prints them, two places of one name with the same one
cat >"$tmp/bin/perf" <<-'EOF'
	#!/bin/sh
	echo "$*" >>"$0.log"
	[ "$1" = --buildid-dir ] && [ -d "$2" ] || exit 129
	touch "$2/something"
	shift 2
	case "$*" in
	"buildid-cache --add "*/broken/*) exit 1 ;;
	"buildid-cache --add "*) exit 0 ;;
	"probe -x "*/qemu-system-plain" -D sdt_qemu:"*) ;;
	"probe -x "*" -D sdt_qemu:virtio_queue_notify")
		echo "p:sdt_qemu/virtio_queue_notify $3:0x10(0x99) arg1=%ax:u64"
		echo "p:sdt_qemu/virtio_queue_notify $3:0x20(0x99) arg1=%di:u64"
		exit 0
		;;
	"probe -x "*" -D sdt_qemu:kvm_run_exit")
		echo "p:sdt_qemu/kvm_run_exit $3:0x30 arg1=%ax:s32"
		exit 0
		;;
	esac
	echo "  Error: Failed to add events." >&2
	exit 254
EOF
chmod +x "$tmp/bin/perf"
path=$tmp/bin:$PATH

# record OPTION...: sets status and err; what was written to dynamic_events is in $tmp/events
record() {
	local line

	rm -f "$tmp/bin/perf.log" "$tmp/trace.dat"
	err=$(env PATH="$path" "$hyptrace" record -o "$tmp/trace.dat" "$@" -- true 2>&1 >/dev/null 8>&-)
	status=$?
	echo end >&8
	while read -r line <&8 && [ "$line" != end ]; do
		echo "$line"
	done >"$tmp/events"
}

# refuses PATTERN NAME OPTION...
refuses() {
	local pattern=$1 name=$2

	shift 2
	record "$@"
	is "$status" 1 "$name"
	like "$err" "$pattern" "... with a message"
	[ ! -e "$tmp/trace.dat" ] && [ ! -e "$tmp/trace.dat.spool" ] && [ ! -s "$tmp/events" ]
	ok $? "... and nothing is left"
}

refuses 'preset qemu: no QEMU runs here that can be probed' "no QEMU runs" --preset qemu

a=$tmp/vmm/qemu-system-aarch64 b=$tmp/vmm/qemu-kvm
touch "$a" "$b" "$tmp/vmm/qemu-system-plain"
vmm 100 "$a"
record --preset qemu -e sched
is "$status" 0 "a QEMU with some of the probes" || diag "$err"
is "$(grep ^p "$tmp/events")" "p:sdt_qemu/kvm_run_exit $a:0x30 arg1=%ax:s32
p:sdt_qemu/virtio_queue_notify $a:0x10(0x99) arg1=%ax:u64
p:sdt_qemu/virtio_queue_notify_1 $a:0x20(0x99) arg1=%di:u64" "an event for each place of those that it has"
is "$(grep -v ^p "$tmp/events")" "-:sdt_qemu/virtio_queue_notify_1
-:sdt_qemu/virtio_queue_notify
-:sdt_qemu/kvm_run_exit" "... which are removed in the end"
like "$err" "preset qemu: $a: sdt_qemu:kvm_run_exit sdt_qemu:virtio_queue_notify$" "... and it says which it has"
is "$(grep -c ' -D ' "$tmp/bin/perf.log")" 9 "nine probes are asked for"
is "$(ls "$tmp/cache")" "" "perf's cache is removed"

vmm 101 "$a" # the same
vmm 102 "$b"
vmm 103 "$tmp/vmm/qemu-system-plain"
vmm 104 "$tmp/vmm/qemu-system-gone (deleted)"
touch "$tmp/vmm/qemu-system-with blank" "$tmp/vmm/crosvm"
vmm 105 "$tmp/vmm/qemu-system-with blank"
vmm 106 "$tmp/vmm/crosvm"
record --preset qemu
is "$status" 0 "several QEMUs" || diag "$err"
is "$(sed -n 's/ arg.*//p' "$tmp/events")" "p:sdt_qemu/kvm_run_exit $a:0x30
p:sdt_qemu/virtio_queue_notify $a:0x10(0x99)
p:sdt_qemu/virtio_queue_notify_1 $a:0x20(0x99)
p:sdt_qemu/kvm_run_exit_1 $b:0x30
p:sdt_qemu/virtio_queue_notify_2 $b:0x10(0x99)
p:sdt_qemu/virtio_queue_notify_3 $b:0x20(0x99)" "each executable once, with names of its own"
like "$err" 'qemu-system-plain has none of the probes: .* dtrace; hyptrace import --qemu-log' "one without is said to be"
like "$err" "process 104 .* left out: its file is not to be seen" "... one whose file is gone"
like "$err" "process 105 .* left out: a probe takes no path with blanks" "... one that a line cannot name"
is "$(grep -c crosvm "$tmp/bin/perf.log")" 0 "other VMMs are none of it"

record -B hyp --preset qemu
is "$status" 0 "given for the hypervisor's buffer" || diag "$err"
is "$(grep -c '^p:' "$tmp/events")" 6 "... they are made, too"
like "$err" "not events of the hypervisor, so recorded in the host's buffer:.* sdt_qemu:kvm_run_exit" "... for the host's"

rm -r "$proc"/10?
vmm 103 "$tmp/vmm/qemu-system-plain"
refuses 'preset qemu: no QEMU that runs here has them' "none has any" --preset qemu -e sched
mkdir "$tmp/vmm/broken"
touch "$tmp/vmm/broken/qemu-kvm"
vmm 104 "$tmp/vmm/broken/qemu-kvm"
refuses "'perf buildid-cache --add .*/broken/qemu-kvm' fails" "a file that perf does not read" --preset qemu
rm "$tmp/bin/perf"
path=$tmp/bin
refuses 'perf, which finds the probes, is not installed' "no perf" --preset qemu
done_testing
