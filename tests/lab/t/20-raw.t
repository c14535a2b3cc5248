#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A real kernel whose hypervisor's buffer gives raw pages, as Android's kernels do: what it
# does otherwise than mainline's, and the bugs that some of these kernels had.
. "$(dirname "$0")/lib.sh"
raw_vm_up '' -m protected -g 1 -a 'hyptrace-agent -D -v'

untold='somebody else reads'

# ---- a guest by the hypervisor's windows --------------------------------------------------

capture guest.dat '
	cat $hyp/buffer_size_kb
	hyptrace record -B hyp -e kvm -e sched -A Guest@3 -o guest.dat -- sleep 3 || exit
	cat $hyp/buffer_size_kb
	cp guest*.dat /mnt/out'
recorded "three seconds of host, hypervisor and guest"
is "$output" "7 (unloaded)"$'\n'"7 (unloaded)" "the buffer is as it was, and so is its size"
like "$stderr" 'guest Guest: clock offset known to .*\((hard|soft), hyp windows; 0 of [0-9]+ events outside' \
	"its offset comes from the hypervisor's windows too" || diag "$stderr"
unlike "$stderr" "$untold" "nobody else reads"
like "$stderr" ' hyp [0-9]+ events, [^;]* \(0 lost\)' "nothing is lost"
reports "$out/guest.dat" '^ *hyp: .* host_hcall: +id=[0-9]+ invalid=0$' "stock shows its events"
reports "$out/guest.dat" '^ *hyp: .* hyp_enter: *$' "and those without fields"

# ---- a buffer that somebody left loaded --------------------------------------------------------

# It keeps its size: 7 KiB do not hold what comes while the recorder stands still, 2 MiB do.
stand_still='
	kill -STOP $pid
	for i in 1 2 3 4 5 6 7 8; do ls -R /sys/class; done >/dev/null
	sleep 2
	kill -CONT $pid
	finish'
run '
	echo 1 >$hyp/events/hypervisor/hyp_enter/enable
	echo 1 >$hyp/tracing_on
	within 10 grep -q "(loaded)" $hyp/buffer_size_kb
	echo 0 >$hyp/tracing_on
	echo 0 >$hyp/events/hypervisor/hyp_enter/enable
	cat $hyp/buffer_size_kb
	begin loaded.dat -B hyp || exit'"$stand_still"'
	s=$?; cat $hyp/buffer_size_kb; exit $s'
recorded "a recording where unread events were left"
is "$output" "7 (loaded)"$'\n'"7 (unloaded)" "the buffer was loaded, and is not any more"
like "$stderr" 'hyp: hypervisor held events that nobody had read: they are cleared' "what was in it is told"
is "$(summary_of hyp lost)" 0 "and its size is the one asked for: nothing is lost while nobody reads" || diag "$stderr"

run '
	begin killed.dat -B hyp -e kvm || exit
	slay
	cat $hyp/buffer_size_kb
	hyptrace recover killed.dat.spool || exit
	cat $hyp/buffer_size_kb
	cp killed.dat /mnt/out'
recorded "a recorder that is killed, and recovered"
is "$output" "2048 (loaded)"$'\n'"7 (unloaded)" "the buffer it left is gone again"
reports "$out/killed.dat" '^ *hyp: .* hyp_exit: *$' "its file is readable"

# ---- losses without a number ---------------------------------------------------------------------

# a loss has no number where its page has no room for one, which is as it comes
for _ in 1 2 3 4 5; do
	run '
		begin lost.dat -B hyp -b 7 || exit'"$stand_still"' || exit
		cp lost.dat /mnt/out'
	[[ $stderr != *"at least "* ]] || break
done
recorded "the same in 7 KiB"
like "$stderr" ' hyp [0-9]+ events, [^;]* \(at least [0-9]+ lost\)' "it lost more than it can count" || diag "$stderr"
like "$stderr" '^hyptrace: hyp: at least [0-9]+ events LOST' "and says so"
like "$(report --stat "$out/lost.dat")" '^ *losses without a number: [1-9]' "the file's statistics too"
reports "$out/lost.dat" 'EVENTS DROPPED' "stock shows where"

# ---- other readers ------------------------------------------------------------------------------------

run '
	cat $hyp/per_cpu/cpu1/trace_pipe >/dev/null & cat=$!
	within 10 grep -q "(loaded)" $hyp/buffer_size_kb
	hyptrace record -B hyp -o no.dat -- sleep 1
	s=$?; kill $cat; wait $cat 2>/dev/null; cat $hyp/buffer_size_kb; ls no.dat*; exit $s'
refused 'in use: somebody reads hypervisor/trace_pipe or trace' "refused: a buffer that somebody reads"
is "$output" "7 (unloaded)" "and it is left alone"

run '
	begin shared.dat -B hyp || exit
	for pipe in $hyp/per_cpu/cpu*/trace_pipe; do cat $pipe >$(mktemp /tmp/other.XXXXXX) & cats="$cats $!"; done
	within 60 grep -q "'"$untold"'" $said; told=$?
	enough() { [ "$(cat /tmp/other.* | wc -l)" -ge 10 ]; }
	within 60 enough
	finish; s=$?
	kill $cats; wait $cats 2>/dev/null
	cat /tmp/other.* | wc -l
	cp shared.dat /mnt/out
	exit $((s + told))'
recorded "a recording beside which another reader begins"
at_least "$output" 10 "that one took events ($output lines)"
like "$stderr" "warning: hyp: cpu [0-3]: events are missing that the kernel does not count as lost" "which is told at once"
like "$stderr" 'hyp: somebody else read the buffer too: events are missing at [0-9]+ places' "and counted at the end"
reports "$out/shared.dat" 'EVENTS DROPPED' "and marked in the file"

# ---- kernels whose raw files give something else -----------------------------------------------------------

# misread WHAT NAME: in the VM that is up
misread() {
	run '
		hyptrace record -B hyp -e kvm -e sched -A Guest@3 -o text.dat -- sleep 3 || exit
		cat $hyp/buffer_size_kb
		cp text.dat /mnt/out'
	recorded "$2: it is recorded all the same"
	like "$stderr" "trace_pipe_raw of this kernel gives $1.*: trace_pipe is read in its place" "$2: and named"
	is "$(grep -c 'trace_pipe_raw of' <<<"$stderr")" 1 "$2: once"
	at_least "$(summary_of hyp events)" 1000 "$2: with the hypervisor's events"
	like "$stderr" '^hyptrace: [3-9][0-9.]* s: ' "$2: as long as was asked for"
	unlike "$stderr" 'were not understood' "$2: all of it understood"
	unlike "$stderr" "$untold" "$2: nobody else reads"
	reports "$out/text.dat" '^ *hyp: .* host_hcall: +id=[0-9]+ invalid=0$' "$2: stock shows it"
	like "$stderr" 'guest Guest: clock offset known to .*\((hard|soft), hyp windows' "$2: hyp windows serve the clock"
	is "$output" "7 (unloaded)" "$2: tracefs is as it was"
}

raw_vm_up hyp_trace_raw=text -m protected -g 1 -a 'hyptrace-agent -D -v'
misread text "text in trace_pipe_raw"
raw_vm_up hyp_trace_raw=struct -m protected -g 1 -a 'hyptrace-agent -D -v'
misread "no pages, but a structure" "a structure in trace_pipe_raw"

# ---- no protected mode --------------------------------------------------------------------------------------

raw_vm_up '' -m nvhe
run 'hyptrace record -B hyp -o no.dat -- true'
refused 'kernel .*, kvm-arm.mode=nvhe: .* in protected mode only' "no buffer in nvhe mode: that is why"
unlike "$stderr" 'too old' "and not the kernel's age"

done_testing
