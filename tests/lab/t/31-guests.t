#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Guests of a protected-mode host over vsock: each recorder with each agent, two
# guests at once, their vCPUs in KernelShark, one that traces all it can, and
# guests that are lost in mid-capture.
export minutes=7
. "$(dirname "$0")/lib.sh"

# Both agents in each guest: trace-cmd's at its port, ours beside it.
# check-lab sorts by this line's text, so that 28-sync.t and 29-list.t, which have the same, come first.
stock=823 ours=824
shared=1 vm_up -c 2,4 -g 2 -m protected -a "sh -c 'hyptrace-agent -v -D -p 824; exec trace-cmd agent'"

# guest2 COMMAND-LINE: in the second guest
guest2() {
	lab guest -t 60 "$vm" 2 "$*"
}

# threads GUEST: those of QEMU that run its vCPUs, in their order
threads() {
	l1 "cd /proc/\$(cat /run/guest$1/pid)/task && grep -H '^CPU ' */comm" |
		sed -nE 's#^([0-9]+)/comm:CPU ([0-9]+)/KVM$#\2 \1#p' | sort -n | cut -d ' ' -f 2 | xargs
}

# merges HOST GUEST...: stock report puts the files' events in one order
merges() {
	local file args=() n last

	for file; do args+=(-i "$out/$file.dat"); done
	report "${args[@]}" >"$tmp/merged"
	is "$(sed -nE 's/^.* ([0-9]+\.[0-9]{6}): .*/\1/p' "$tmp/merged" | sort -n -c 2>&1)" "" \
		"$*: report -i -i has them in order"
	for file; do
		n=$(grep -Ec "^ *$file.dat: .* (kvm_entry|sched_switch): " "$tmp/merged")
		at_least "$n" 50 "$*: $n lines of $file"
	done
	# interleaved: between the first and the last event of each guest there are the host's
	for file in "${@:2}"; do
		last=$(awk -v host="$1.dat:" -v guest="$file.dat:" '$1 == guest { n += since; since = 0; seen = 1 }
			$1 == host && seen { since++ } END { print n + 0 }' "$tmp/merged")
		at_least "$last" 50 "$*: $last of the host's lines are among those of $file"
	done
}

has_shift() {
	trace-cmd dump --options -i "$out/$1.dat" 2>&1 | grep -q 'Option TimeShift'
	ok $? "$1: the file has a TIME_SHIFT"
}

# sent GUEST-COMMAND: "BYTES LOST" of our agent's last recording
sent() {
	"$1" 'dmesg | grep hyptrace-agent:' |
		sed -nE 's/.*: sent ([0-9]+) bytes.*, ([0-9]+) events lost$/\1 \2/p' | tail -n 1
}

# pages FILE: bytes of all CPUs' pages in an uncompressed file
pages() {
	trace-cmd dump --options -i "$out/$1.dat" |
		awk '/\[CPUs\]/ { n = $1; next } n > 0 { sum += $3; n-- } END { print sum + 0 }'
}

real1=$(threads 1) real2=$(threads 2)
is "$(wc -w <<<"$real1") $(wc -w <<<"$real2")" "2 4" "vCPU threads in /proc"

# ---- by the name of trace-cmd, as it is typed ------------------------------------------

run 'mkdir /run/typed && cd /run/typed || exit
	said=$PWD/said
	PATH=$(hyptrace --shim-dir):$PATH
	trace-cmd record -B hyp -e kvm -A guest@3 2>"$said" &
	pid=$!
	# the host may be traced while the guest is still being connected: its control and two CPUs
	connected() { [ "$(ls -l /proc/$pid/fd | grep -c socket:)" -ge 3 ]; }
	within 100 both_have trace.dat 4096 && within 100 connected || { kill -9 $pid; cat "$said" >&2; exit 1; }
	sleep 2
	finish || exit
	cp trace.dat /mnt/out/typed.dat
	cp trace-guest.dat /mnt/out/typed-guest.dat
	trace-cmd report trace.dat trace-guest.dat >report && trace-cmd stat -q --show buffers trace.dat &&
		trace-cmd record -e hypervisor:* -e kvm:* -o slashes.dat true &&
		trace-cmd report slashes.dat | grep -c -m 1 hyp_enter: &&
		trace-cmd list -t | grep -c -m 1 nop'
recorded "typed: record -B hyp -e kvm -A guest@3, and then report, stat, other spellings, and what is trace-cmd's"
like "$output" '^hyp +[0-9]+ +[1-9]' "typed: stat of the file"
is "$(tail -n 2 <<<"$output")" $'1\n1' "typed: -e hypervisor:* without -B, and list -t of the real trace-cmd"
reports "$out/typed.dat" ' kvm_entry: ' "typed: the host's file"
reports "$out/typed.dat" '^ *hyp: .* hyp_enter: ' "typed: with the hypervisor's buffer"
is "$(report "$out/typed-guest.dat" | head -n 1)" "cpus=2" "typed: the guest's file"

# ---- each recorder with each agent --------------------------------------------------

declare -A took skew

# pair RECORDER OPTIONS AGENT: records, and says how long all of it took beside the command
pair() {
	local name=$1-$3 port=${!3}

	run "from=\$EPOCHREALTIME
		timeout 280 $1 record -o $name.dat $2 -e kvm -e sched -A Guest@3:$port -e sched -- sleep 2 || exit
		to=\$EPOCHREALTIME
		cp $name.dat $name-Guest.dat /mnt/out
		echo seconds \$(((\${to/./} - \${from/./}) / 1000 - 2000))"
	recorded "recorder $1, agent $3"
	skew[$name]=$(sed -nE 's/^hyptrace: .*(started (at most|within) [0-9.]+ ms).*/\1/p' <<<"$stderr")
	took[$name]=$(awk '$1 == "seconds" { printf "%.1f", $2 / 1000 }' <<<"$output")
	has_shift "$name-Guest"
	merges "$name" "$name-Guest"
}

# kvm_combo FILE...: the conditions of KernelShark's plugin
kvm_combo() {
	local plugin files=() file

	for file; do files+=("$out/$file.dat"); done
	plugin=$(ls /usr/lib/*/kernelshark/plugins/plugin-kvm_combo.so 2>/dev/null | head -n 1)
	loadkshark -g ${plugin:+-p "$plugin"} "${files[@]}" >"$tmp/kshark" 2>"$tmp/kshark.err"
	ok $? "$1: KernelShark takes it${plugin:+, and its KVM Combo does}" ||
		diag "$(cat "$tmp/kshark" "$tmp/kshark.err")"
	guests=$(sed -nE 's/^guest ([^:]*): .*, threads (.*)$/\1 \2/p' "$tmp/kshark")
}

for agent in stock ours; do
	pair hyptrace "--guest-timeout 60" $agent
	kvm_combo hyptrace-$agent hyptrace-$agent-Guest
	is "$guests" "Guest $real1" "recorder hyptrace, agent $agent: GUEST's pids are the vCPU threads"
	pair trace-cmd "-C boot" $agent
done
diag "seconds beyond the command: hyptrace ${took[hyptrace-stock]} with stock's agent, ${took[hyptrace-ours]} with ours;" \
	"trace-cmd ${took[trace-cmd-stock]} and ${took[trace-cmd-ours]}"
diag "hyptrace: with stock's agent ${skew[hyptrace-stock]} before the host, with ours ${skew[hyptrace-ours]} of each other"
diag "trace-cmd / hyptrace, both with stock's agent: $(
	awk "BEGIN { print ${took[trace-cmd-stock]:-0} / (${took[hyptrace-stock]:-0} + 0.001) }")"

# ---- two guests at once ------------------------------------------------------------------

# Ends what keeps the guests busy, before the recording ends: that would take longer beside it.
quiet='sh -c "for i in 1 2; do /mnt/tests/lab/l1/guest exec \$i 60 rm -f /tmp/busy & done; wait"'

# so that both have more to show than idle guests do in a second
busy='touch /tmp/busy; (while [ -e /tmp/busy ]; do sleep 0.05; done) >/dev/null 2>&1 </dev/null &'
guest "$busy"
guest2 "$busy"
run "hyptrace record --guest-timeout 60 -o two.dat -B hyp -e kvm -e sched -A g1@3:$ours -A g2@4:$ours -- \
	sh -c 'sleep 1; $quiet' && cp two*.dat /mnt/out"
recorded "two guests, host and hypervisor at once"
has_shift two-g1
has_shift two-g2
merges two two-g1 two-g2
kvm_combo two two-g1 two-g2
is "$guests" "g1 $real1
g2 $real2" "GUEST's pids are the vCPU threads of both, four of them in the second"

# How far apart all began is said, and it is what the first events tell: not before, and
# not long after; a guest on a busy machine may take seconds to its first event.
began=$(sed -nE 's/^hyptrace: (started within [0-9.]+ ms of each other: host 0, g1 [-+][0-9.]+ ms, g2 [-+][0-9.]+ ms)$/\1/p' <<<"$stderr")
[ -n "$began" ]
ok $? "$began" || diag "$stderr"
first() {
	sed -nE "s/^ *$1\.dat: .* ([0-9]+\.[0-9]{6}): .*/\1/p;T;q" "$tmp/merged"
}
for g in g1 g2; do
	said=$(sed -nE "s/.* $g ([-+][0-9.]+) ms.*/\1/p" <<<"$began")
	seen=$(awk "BEGIN { print ($(first two-$g) - $(first two)) * 1000 }")
	awk "BEGIN { d = $seen - ($said); exit !(d < 10000 && d > -1000) }"
	ok $? "$g: $said ms after the host by what is said, $seen ms by the first events"
done

# ---- one recorder at a time -----------------------------------------------------------------

run "begin busy.dat --guest-timeout 60 -e sched -A Guest@3:$ours || exit
	hyptrace record --guest-timeout 60 -o second.dat -e sched -A Guest@3:$ours -- true
	s=\$?
	finish || exit
	for i in 1 2; do hyptrace record --guest-timeout 60 -o after.dat -e sched -A Guest@3:$ours -- true || exit; done
	exit \$s"
refused 'guest Guest: its agent refuses the request: busy: another recorder is at work' \
	"a second recorder is told that the agent is busy, and later ones are served"

# From within: the loopback's CID is not the host's.
inside=$(guest "trace-cmd record -o /tmp/x.dat -A me@1:$ours -e sched true" 2>&1)
[ $? != 0 ]
ok $? "a recorder in the guest itself is not served: its connection is closed" || diag "$inside"
like "$(guest 'dmesg | grep hyptrace-agent:')" 'vsock:1:[0-9]+ may not connect' "and why is said"

# ---- all that four CPUs can do -----------------------------------------------------------------

# So small a buffer that it runs over.
guest2 'touch /tmp/busy; for i in 1 2 3 4; do while [ -e /tmp/busy ]; do ls -R /proc/self; done >/dev/null 2>&1 & done'
run "timeout 280 hyptrace record --guest-timeout 60 -o load.dat --compression none -A g2@4:$ours -e all -b 8 -- \
	sh -c 'sleep 1; $quiet' && cp load*.dat /mnt/out"
recorded "everything that a guest with four CPUs does in a second"
read -r sent lost < <(sent guest2)
is "$(pages load-g2)" "$sent" "the file has all bytes that were sent: $sent"
is "$(summary_of g2 lost)" "$lost" "as many events lost as the guest's kernel has counted: $lost" ||
	diag "the recorder said:"$'\n'"$stderr"
at_least "$lost" 1 "and some were"
# What the pages themselves say; where a page had no room for the number they only say that.
read -r numbered unknown < <(datdump "$out/load-g2.dat" |
	sed -nE 's/.* \[([0-9]+ )?events lost\]$/\1/p' | awk '{ NF ? sum += $1 : unknown++ } END { print sum + 0, unknown + 0 }')
[ "$((numbered + unknown))" -le "$lost" ] && { [ "$unknown" -gt 0 ] || [ "$numbered" = "$lost" ]; }
ok $? "the pages say so too: $numbered, and $unknown gaps of unknown size"

# ---- guests that are lost ---------------------------------------------------------------------------

cat >"$out/lost.sh" <<'END2'
# What is waited for in vain: so long.
waiting='--guest-timeout 10'
# sending FILE GUEST BYTES: so much of the guest's has come
sending() { pages_of "$1-$2.dat" "$3"; }
# more FILE GUEST: it sends on
more() { sending "$1" "$2" $(($(cat "$1-$2.dat.spool"/pages/* | wc -c) + 16384)); }
END2

# The kernel's own limit for a connection over vsock is 2 s.
run '. /mnt/out/lost.sh
	kill -STOP $(cat /run/guest2/pid)
	hyptrace record $waiting -o asleep.dat -e sched -A g2@4:824 -- true & pid=$!
	sleep 5
	kill -CONT $(cat /run/guest2/pid)
	wait $pid'
recorded "a guest that is stopped for 5 s when it is asked is waited for"

lost_one() { # NAME LOST KEPT...
	local name=$1 lost=$2 g n

	is "$status" 3 "$name: exit status"
	like "$stderr" "^hyptrace: guest $lost was lost before the end: what it sent is in its file" "$name: that is said"
	for g in "${@:2}"; do
		n=$(report "$out/$name-$g.dat" | grep -c 'sched_switch: ')
		at_least "$n" 10 "$name: $n events of $g are kept"
	done
	unlike "$stderr" "guest ${3:-nobody} was lost" "$name: no other is"
}

run '. /mnt/out/lost.sh
	begin paused.dat $waiting -e sched -A g1@3:824 -A g2@4:824 || exit
	within 100 sending paused g1 16384 && within 100 sending paused g2 16384 || exit
	kill -STOP $(cat /run/guest2/pid)
	within 100 more paused g1 || exit
	finish
	s=$?
	hyptrace record $waiting -o silent.dat -e sched -A g2@4:824 -- true
	[ $? = 1 ] || exit
	kill -CONT $(cat /run/guest2/pid)
	cp paused*.dat /mnt/out
	served() { hyptrace record $waiting -o served.dat -e sched -A g2@4:824 -- true >/dev/null 2>&1; }
	within 60 served || exit
	exit $s'
lost_one paused g2 g1
like "$stderr" '^hyptrace: guest g2 \(vsock:4:824\): the data of its CPU [0-3]: silent for 10 s \(--guest-timeout\)' \
	"paused: where it was waited for"
like "$stderr" '^hyptrace: guest g2 \(vsock:4:824\): (connecting to its agent|waiting for the answer to the request): silent for 10 s \(--guest-timeout\)' \
	"a guest that is silent from the start is given up"

run '. /mnt/out/lost.sh
	begin killed.dat $waiting -e sched -A g1@3:824 -A g2@4:824 || exit
	within 100 sending killed g1 16384 && within 100 sending killed g2 16384 || exit
	kill -KILL $(cat /run/guest2/pid)
	within 100 more killed g1 || exit
	finish
	s=$?
	cp killed*.dat /mnt/out
	exit $s'
lost_one killed g2 g1

run '. /mnt/out/lost.sh
	begin rebooted.dat $waiting -e sched -A g1@3:824 || exit
	within 100 sending rebooted g1 16384 || exit
	/mnt/tests/lab/l1/guest exec 1 20 "reboot -f" >/dev/null 2>&1
	finish
	s=$?
	cp rebooted*.dat /mnt/out
	exit $s'
lost_one rebooted g1
like "$(report "$out/rebooted.dat")" 'sched_switch: ' "rebooted: the host's file is whole"

done_testing
