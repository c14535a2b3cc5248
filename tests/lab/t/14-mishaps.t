#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A recorder that is killed, a disk that is full, a buffer that is somebody else's.
. "$(dirname "$0")/lib.sh"
all_symbols=1 shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# ---- somebody else's buffer -----------------------------------------------------------

run '
	begin first.dat -B hyp -e sched || exit
	cd $(mktemp -d)
	hyptrace record -B hyp -o second.dat -- true
	s=$?
	ls
	cd /tmp
	finish && cp first.dat /mnt/out && exit $s'
refused "another hyptrace .pid [0-9]+. records the hypervisor's buffer" "a second recorder is refused"
is "$output" "" "it leaves no file and no spool"
is "$(report "$out/first.dat" | grep -c 'hyp_enter: .*reason=hvc vcpu=0$' | sed 's/^[1-9].*/some/')" "some" \
	"the first one is unharmed"

run '
	cat $hyp/trace_pipe >/dev/null & reader=$!
	within 10 sh -c "ls -l /proc/$reader/fd | grep -q trace_pipe"
	hyptrace record -B hyp -o held.dat -- true
	s=$?
	kill $reader; wait
	ls -d held.dat*
	exit $s'
refused "the hypervisor's buffer is in use: somebody reads .*/trace_pipe" "a reader of trace_pipe is in the way, and that is said"
is "$output" "" "no file, no spool"

run '
	echo 1 >$hyp/tracing_on
	hyptrace record -B hyp -o on.dat -- true
	s=$?
	cat $hyp/tracing_on
	echo 0 >$hyp/tracing_on; echo 0 >$hyp/trace
	exit $s'
refused "the hypervisor's buffer is in use: .*/tracing_on is 1" "somebody else's tracing is left alone, and that is said"
is "$output" 1 "it is still on"

run 'cd $(mktemp -d) && chmod 777 . && setpriv --reuid 65534 --clear-groups hyptrace record -B hyp -o user.dat -- true
	s=$?; ls; exit $s'
refused "cannot open '/sys/kernel/tracing': Permission denied \(root is needed\)" "only root can: that is said"
is "$output" "" "no file, no spool"

# ---- kill -9 ------------------------------------------------------------------------------

run '
	begin kill.dat -b 8192 -e sched -e kvm -B hyp -b 8192 || exit
	hyptrace recover kill.dat.spool
	[ $? = 1 ] && kill -0 $pid || exit
	within 30 both_have kill.dat 32768
	slay
	cut -d " " -f 1 /proc/uptime
	within 30 lines $hyp/per_cpu/cpu0/trace $(($(wc -l <$hyp/per_cpu/cpu0/trace) + 150))
	cut -d " " -f 1 /proc/uptime
	hyptrace record -B hyp -o kill.dat -- true
	[ $? = 1 ] || exit
	hyptrace recover kill.dat.spool || exit
	ls -d kill.dat*
	cp kill.dat /mnt/out
	hyptrace recover kill.dat.spool'
refused "'kill.dat.spool' is no recording of hyptrace: No such file" "recovering twice is refused"
like "$stderr" "the recorder of 'kill.dat.spool' is still running" "and so was recovering from a live recorder"
like "$stderr" "'kill.dat.spool' is there already: run .hyptrace recover kill.dat.spool" \
	"a new recording to that file does not overwrite the spool"
{ read -r killed; read -r later; read -r files; } <<<"$output"
is "$files" kill.dat "recover writes the file and removes the spool"
reports "$out/kill.dat" 'kvm_exit: ' "report reads it"
datdump "$out/kill.dat" >"$tmp/kill.dump"
# events BUFFER FROM TO: how many between these times of the boot clock
events() {
	awk -v b="$1" -v from="$2" -v to="$3" '$1 == b && $3 > from * 1e9 && $3 < to * 1e9 && !/lost\]$/ { n++ } END { print n + 0 }' "$tmp/kill.dump"
}
for buffer in hyp -; do
	n=$(events $buffer 0 "$killed")
	at_least "$n" 200 "buffer $buffer: it has what the recorder had read ($n)"
	n=$(events $buffer "$killed" "$later")
	at_least "$n" 100 "buffer $buffer: and what lay in the kernel's buffers ($n)"
done
is "$(grep -c 'lost\]$' "$tmp/kill.dump")" 0 "nothing is marked as lost"
is "$(loadkshark "$out/kill.dat" >"$tmp/kshark"; echo $?)" 0 "libkshark reads it" || diag "$(cat "$tmp/kshark")"

# ---- disk full -------------------------------------------------------------------------------

# full SIZE OPTIONS: recording onto a disk of that size, and what is there afterwards
full() {
	run "
		mkdir -p small
		mount -t tmpfs -o size=$1 small small || exit
		hyptrace record -o small/full.dat -B hyp -e sched -e kvm ${2-} -- sleep 60
		s=\$?
		ls small
		rm -f full.dat
		if [ -d small/full.dat.spool ]; then
			hyptrace recover small/full.dat.spool -o full.dat || exit 3
			ls small >&2
		else
			cp small/full.dat .
		fi
		cp full.dat /mnt/out
		umount small
		exit \$s"
}
full 4500k
refused "the disk is full: the recording ends here" "a disk that runs full ends the recording, and that is said"
is "$output" full.dat "the file is there and no spool"
reports "$out/full.dat" 'hyp_enter: ' "report reads it"
n=$(datdump "$out/full.dat" | wc -l)
at_least "$n" 1000 "what was recorded until then is in it ($n events)"

full 5m '--compression none'
refused "what was recorded is kept in .*small/full.dat.spool" "a disk too small for the file: that is said"
is "$output" full.dat.spool "the spool is kept, and nothing else"
reports "$out/full.dat" 'hyp_enter: ' "recover -o elsewhere makes a file of it"

full 2m
refused "no space left" "a disk too small to begin with: that is said"
is "$output" "" "and nothing is left on it"

done_testing
