#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Guests' clocks against the truth, which KVM's PTP call tells (clockshots.c):
# guests with 2 and 4 vCPUs, on both kinds of host, plainly, stopped half-way by
# QEMU's monitor and, in protected mode, by a signal and with all of the host's CPUs busy; by the
# counter method and by the hypervisor's windows. Stock's ptp is measured beside it.
# A long recording, stopped half-way, is synchronised by the counters and then from its
# files, by the windows alone.
# HYPTRACE_LAB_SECONDS: of each recording (3; with 60 it takes half an hour);
# HYPTRACE_LAB_LONG: of the long one, in protected mode (20; 0: none).
# HYPTRACE_LAB_MODES, HYPTRACE_LAB_ACTS: some of them only.
# The hosts are those of 11-nvhe.t, before it, and of 29-list.t and 31-guests.t, after it.
# shellcheck disable=SC2154 # $output and friends come from lib.sh
export minutes=9
. "$(dirname "$0")/lib.sh"
seconds=${HYPTRACE_LAB_SECONDS:-3}
truth=$build/tests/integration/truth
table=$tmp/table

"${CROSS_COMPILE:-aarch64-linux-gnu-}gcc" -static -O2 -o "$tmp/clockshots" tests/lab/clockshots.c || {
	echo "Bail out! clockshots does not build"
	exit 1
}

guest_n() {
	lab guest -t 60 "$vm" "$@"
}

begin_shots() {
	cp "$tmp/clockshots" "$out/"
	l1 'for n in 1 2; do cp /mnt/out/clockshots /run/guest$n/x/; done
		/mnt/out/clockshots host 3000 >/tmp/host.shots 2>&1 &'
	for n in 1 2; do
		guest_n $n 'cp /run/host/clockshots /tmp && (/tmp/clockshots guest 3000 >/tmp/shots 2>&1 &)
			(while sleep 0.3; do ls /proc; done >/dev/null 2>&1 & echo $! >/tmp/more)'
	done
}

end_shots() {
	l1 'killall clockshots; cp /tmp/host.shots /mnt/out/'
	for n in 1 2; do guest_n $n 'kill $(cat /tmp/more); killall clockshots; cat /tmp/shots' >"$out/guest$n.shots"; done
}

# What is done while a recording runs, of $seconds in all.
guests='for i in 1 2; do'
act() {
	local half=$((seconds / 2 > 0 ? seconds / 2 : 1))

	case $1 in
	plain) echo "sleep $seconds" ;;
	stop) echo "sleep $half; $guests \$g monitor \$i stop; done; sleep 1; $guests \$g monitor \$i cont; done; sleep $half" ;;
	signal) echo "sleep $half; $guests kill -STOP \$(cat /run/guest\$i/pid); done; sleep 1
		$guests kill -CONT \$(cat /run/guest\$i/pid); done; sleep $half" ;;
	busy) echo "for i in 1 2 3 4 5 6; do timeout $((seconds + 1)) sh -c 'while :; do :; done' & done; sleep $seconds" ;;
	esac
}

# one NAME METHOD ACT: a recording of both guests
one() {
	act "$3" >"$out/act.sh"
	l1_timeout=$((3 * seconds + 320))
	run "export g=/mnt/tests/lab/l1/guest; timeout $((3 * seconds + 300)) hyptrace record --guest-timeout 60 --tsync $2 -B hyp -e kvm -b 4096 \
		-o $1.dat -A Guest@3:824 -A Guest2@4:824 -- bash /mnt/out/act.sh && cp $1*.dat /mnt/out && rm -f $1*.dat"
	unset l1_timeout
	recorded "$mode: $1"
	grep -E 'clock offset|warning' <<<"$stderr" >"$tmp/said.$1"
	diag "$(cat "$tmp/said.$1")"
}

value() {
	sed -nE "s/.*\\b$2 (-?[0-9]+)\\b.*/\\1/p" <<<"$1"
}

# judge NAME METHOD CLASSES: both guests' files
judge() {
	local n name line host=("$out/$1.dat")

	[ "$1" != long ] || host=() # truth looks at each window for each event
	for n in 1 2; do
		name=Guest
		[ $n = 1 ] || name=Guest2
		line=$("$truth" "$out/$1-$name.dat" "$out/host.shots" "$out/guest$n.shots" "${host[@]}" 2>&1)
		printf '%-9s %d vCPUs  %-12s %s\n' "$mode" $((2 * n)) "$1" "$line" >>"$table"
		like "$line" "^method .* outside 0 " \
			"$mode, $((2 * n)) vCPUs, $1: the truth is within every bound that is given"
		like "$line" "^method $2 class ($3) .* vouched (9[5-9]|100)%\$" \
			"... which is given by $2, $3, for nearly all events"
		[[ $line == "method $2 "* ]] || diag "the recorder said:"$'\n'"$(cat "$tmp/said.$1")"
		[ "$1" = long ] ||
			echo "$(value "$line" median) $(value "$line" room) $(value "$line" truth)" >>"$tmp/bounds.$2"
	done
}

# middle METHOD COLUMN: the median of what judge() has kept of all recordings
middle() {
	cut -d ' ' -f "$2" "$tmp/bounds.$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] + 0 }'
}

# bounded METHOD LIMIT: its bounds are below so many ns, by the median
bounded() {
	[ "$(middle "$1" 1)" -lt "$2" ]
	ok $? "the median bound by $1 is below $2 ns: $(middle "$1" 1)"
}

for mode in ${HYPTRACE_LAB_MODES:-nvhe protected}; do
	usual='plain stop signal busy' long=${HYPTRACE_LAB_LONG:-20}
	[ "$mode" = protected ] || usual='plain stop' long=0
	read -ra acts <<<"${HYPTRACE_LAB_ACTS:-$usual}"
	case $mode in
	nvhe) shared=after-11 vm_up -c 2,4 -g 2 -m nvhe -a "sh -c 'hyptrace-agent -v -D -p 824; exec trace-cmd agent'" ;;
	*)
		shared=1 vm_up -c 2,4 -g 2 -m protected -a "sh -c 'hyptrace-agent -v -D -p 824; exec trace-cmd agent'"
		;;
	esac
	begin_shots
	for a in "${acts[@]}"; do
		one "counter-$a" counter "$a"
		one "hyp-$a" hyp "$a"
	done
	if [ "$long" -gt 0 ]; then
		seconds=$long one long counter stop
	fi
	run "timeout 100 trace-cmd record -o ptp.dat -C boot -A Guest@3:824 -e sched -- sleep 1
		rmdir \$t/instances/clock_synch* # which stock leaves
		cp ptp*.dat /mnt/out"
	recorded "$mode: stock trace-cmd with hyptrace-agent, by ptp"
	end_shots

	# shellcheck disable=SC2016 # for L1's shell
	run 'echo "p:mine/wake wake_up_process" >>$t/dynamic_events
		begin k.dat --guest-timeout 60 -e kvm -A Guest@3:824 -e sched || exit
		grep -c kvm_timer_vcpu_load $t/dynamic_events
		slay
		hyptrace recover k.dat.spool
		cat $t/dynamic_events; ls $t/instances | grep hyptrace; echo "-:mine/wake" >>$t/dynamic_events'
	is "$output" "1
p:mine/wake wake_up_process" "$mode: kill -9 and recover take the probe away, and nobody else's" || diag "$stderr"
	for a in "${acts[@]}"; do
		judge "counter-$a" counter hard
		# by the events alone, not every one of them is sure about a jump
		judge "hyp-$a" 'hyp windows' 'hard|soft'
	done
	if [ "$long" -gt 0 ]; then
		judge long counter hard
		rm -f "$out"/long*.orig # of another host
		"$build/hyptrace" sync --write "$out/long.dat" "$out/long-Guest.dat" "$out/long-Guest2.dat" >"$tmp/sync" 2>&1
		ok $? "$mode: $long s: hyptrace sync --write" || diag "$(cat "$tmp/sync")"
		judge long 'hyp windows' 'hard|soft'
	fi
	line=$("$truth" "$out/ptp-Guest.dat" "$out/host.shots" "$out/guest1.shots" 2>&1)
	like "$line" '^method - .* error' "$mode: ptp's error is known"
	printf '%-9s %d vCPUs  %-12s %s\n' "$mode" 2 "stock ptp" "$line" >>"$table"
done

# Bounds are made of how long things take, which load widens. The counter's: what reading
# another clock takes, as KVM's PTP call did meanwhile. The windows': what they leave an
# offset (room), of which their bound is 1.03 times in tests/data/sync.
larger() { [ "$1" -gt "$2" ] && echo "$1" || echo "$2"; }
bounded counter "$(larger 1000 "$(middle counter 3)")"
bounded 'hyp windows' "$(larger 10000 $(($(middle 'hyp windows' 2) * 2)))"
diag "medians of bound, room in the windows, PTP's own width: counter $(for i in 1 2 3; do middle counter $i; done | xargs)," \
	"windows $(for i in 1 2 3; do middle 'hyp windows' $i; done | xargs)"
diag "all in ns; outside: knots where the truth (+- its own bound) is not within the file's bound
$(cat "$table")"
done_testing
