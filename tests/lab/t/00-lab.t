#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The lab itself: what it runs, passes through, and leaves behind.
. "$(dirname "$0")/lib.sh"

# try COMMAND...: its output in $output, its messages in $stderr, its end in $status
try() {
	output=$("$@" 2>"$tmp/stderr")
	status=$?
	stderr=$(cat "$tmp/stderr")
}

# processes NAME: how many belong to that VM
processes() {
	ps -eo args | grep -c -e "[-]name lab $1 " -e "[s]upervise [^ ]*/$1 "
}

# without SECONDS NAME: wait until none is left
without() {
	local end=$((SECONDS + $1))
	while [ "$(processes "$2")" != 0 ] && [ "$SECONDS" -lt "$end" ]; do sleep 0.2; done
	processes "$2"
}

# ---- run -------------------------------------------------------------------------

try lab run -o "$out" -- 'cat /sys/kernel/tracing/remotes/hypervisor/trace_clock; dmesg | grep "mode initialized"
	echo to-stderr >&2; echo "from L1" >/mnt/out/file; touch /mnt/bin/x /mnt/tests/x; exit 7'
is "$status" 7 "the exit status of a command in L1 is that of lab run"
like "$output" '^\[boot\]' "a protected host has the hypervisor's trace instance"
like "$output" 'Protected hVHE mode initialized' "it says it is protected"
like "$stderr" '^to-stderr$' "standard error is apart"
is "$(cat "$out/file")" "from L1" "what L1 writes to /mnt/out is in the directory"
like "$stderr" '/mnt/bin/x.*Read-only' "/mnt/bin is read-only"
like "$stderr" '/mnt/tests/x.*Read-only' "/mnt/tests is read-only"

try lab run -m nvhe -- 'ls -d /sys/kernel/tracing/remotes/hypervisor; dmesg | grep "mode initialized"'
is "$status" 0 "an nVHE host comes up"
like "$output" '^/sys/kernel/tracing/remotes/hypervisor$' "it too has the hypervisor's trace instance"
like "$output" 'Hyp nVHE mode initialized' "it says it is nVHE"

# ---- failing to come up -----------------------------------------------------------

HYPTRACE_LAB_APPEND='kvm-arm.mode=none' try lab run true
is "$status" 125 "without KVM the exit status is 125"
like "$stderr" 'no /dev/kvm' "and it is said"

HYPTRACE_LAB_APPEND='init=/nothing' try lab run true
is "$status" 125 "when the kernel panics the exit status is 125"
like "$stderr" 'Kernel panic' "and the end of the console is shown"

try lab exec nobody true
is "$status" 125 "there is no lab which was not brought up"

# ---- two at once, one with a guest ----------------------------------------------------

one=test-$$-one two=test-$$-two
trap 'lab down "$one" 2>/dev/null; lab down "$two" 2>/dev/null; cleanup' EXIT
# In the background the parent is a shell that ends with `lab up`.
lab up -g 1 --die-with $$ "$one" 2>"$tmp/one" & waiting=$!
lab up "$two"
is $? 0 "a lab comes up"
wait "$waiting"
is $? 0 "another one, with a guest, at the same time" || diag "$(cat "$tmp/one")"

try lab up "$two"
is "$status" 125 "a name is used once"
try lab ps
like "$output" "^$one.*protected.*1 guests" "lab ps has the one"
like "$output" "^$two.*protected.*0 guests" "lab ps has the other"

lab exec "$one" 'echo one >/tmp/who; sync'
try lab exec "$two" 'cat /tmp/who'
is "$status" 1 "the one does not see what the other writes"
try lab exec "$one" 'cat /tmp/who'
is "$output" one "and keeps what it wrote itself"

try lab exec "$one" 'seq 100000; seq 30000 >&2; exit 3'
is "$status" 3 "a long output's exit status"
is "$(md5sum <<<"$output")" "$(seq 100000 | md5sum)" "all of a long standard output, 589 kB"
is "$(md5sum <<<"$stderr")" "$(seq 30000 | md5sum)" "all of a long standard error"
lab exec "$one" 'head -c 300000 /mnt/boot/Image' | cmp - <(lab exec "$one" 'head -c 300000 /mnt/boot/Image; exit 9')
is $? 0 "output that is not text"
try lab exec "$one" 'echo said >/dev/stderr; echo more >&2; cat'
is "$stderr" "said
more" "a command may open /dev/stderr, and has no input"

try lab exec -t 2 "$one" 'echo begun; sleep 1000; echo ended'
is "$status $output" "124 begun" "a command that takes too long is ended"
try lab exec "$one" 'ps ax | grep -c "[s]leep 1000"'
is "$output" 0 "and is gone in L1"
try lab exec -t 2 "$one" 'trap "" TERM; while :; do sleep 0.1; done'
is "$status" 124 "one that will not be terminated too"

try lab guest "$one" 1 'hostname; echo to-stderr >&2; exit 4'
is "$status/$output/$stderr" "4/guest/to-stderr" "a command in the guest: status, output, errors"
try lab guest -t 2 "$one" 1 'sleep 1000'
is "$status" 124 "a command in the guest that takes too long"
try lab guest "$one" 1 'seq 30000'
is "$(md5sum <<<"$output")" "$(seq 30000 | md5sum)" "all of a long output of the guest"
try lab guest "$one" 2 true
is "$status" 125 "there is no second guest"
try lab exec "$one" '/mnt/tests/lab/l1/tracepoints-ok && ls /sys/kernel/tracing/instances'
is "$status/$output" "0/" "kvm_entry and kvm_exit deliver, and the check leaves nothing"
try lab exec "$one" 'cat /proc/[0-9]*/task/*/comm | grep KVM | sort'
is "$output" "CPU 0/KVM
CPU 1/KVM" "the guest's threads have names"

# ---- the end ----------------------------------------------------------------------------

try lab exec "$two" 'sync; poweroff -f; sleep 100'
is "$status" 125 "a command during which L1 powers off"
like "$stderr" 'L1 is gone' "and it is said"
try lab exec "$two" true
is "$status" 125 "a command after that"

lab down "$one"
is $? 0 "down"
is "$(processes "$one")" 0 "leaves no process"
lab down "$two"
is "$(processes "$two")" 0 "nor does down of one that is dead"
try lab ps
unlike "$output" "test-$$" "lab ps has neither"

# A test script that is killed: its VM ends too.
export -f lab
export lab lab_home
bash -c 'lab up "$1" && echo up && exec sleep 1000' - "$one" >"$tmp/up" & script=$!
while [ ! -s "$tmp/up" ] && kill -0 $script 2>/dev/null; do sleep 0.2; done
like "$(processes "$one")" '^[1-9]' "the VM of a script"
kill -KILL $script
wait $script 2>/dev/null
is "$(without 10 "$one")" 0 "ends with the script, even if that is killed"

HOME=$lab_home setsid "$lab" run -o "$out" 'touch /mnt/out/begun; sleep 1000' & run=$!
while [ ! -e "$out/begun" ] && kill -0 $run 2>/dev/null; do sleep 0.2; done
kill -TERM $run
wait $run
is $? 143 "a lab run that is interrupted ends"
is "$(ps -eo args | grep -c '[n]ame lab run.* $out,')" 0 "with its VM"

done_testing
