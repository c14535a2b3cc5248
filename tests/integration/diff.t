#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace diff: two recordings whose rates are known, recordings of the lab against themselves, and
# what cannot be compared.
. tests/integration/lib.sh

hyptrace=$build/hyptrace

# vcpu STEP EXITS HANDLED: 64 steps of STEP ms of a vCPU's thread; in each the guest is left EXITS times for a
# wfi, for HANDLED ms
vcpu() {
	local ms=1000000 at=1000000000 i k

	echo 'id a1'
	echo 'guest Guest b1 0:100'
	echo "$at 0 100 kvm_entry"$'\t'4096
	for ((i = 0; i < 64; i++)); do
		for ((k = 1; k <= $2; k++)); do
			echo "$((at + k * $1 * ms / ($2 + 1))) 0 100 kvm_exit"$'\t2\t1\t4096'
			echo "$((at + k * $1 * ms / ($2 + 1) + $3 * ms)) 0 100 kvm_entry"$'\t'4096
		done
		at=$((at + $1 * ms))
	done
	echo "$at 1 7 print"$'\t0\tend'
}

make_trace() { "$build/tests/integration/make-trace" "$1" tests/integration/events/kernel; }

vcpu 100 1 2 | make_trace "$tmp/a.dat"
vcpu 50 1 4 | make_trace "$tmp/b.dat"

cd "$tmp" || exit
is "$("$hyptrace" diff a.dat b.dat 2>&1)" "$(cat <<'END'
   files    took  lost
A  a.dat  6.400s     0
B  b.dat  3.200s     0

Events a second
machine  event                A        B  change   B has
host     kvm:kvm_entry     10.2     20.3  +100.0%  more
host     kvm:kvm_exit        10       20  +100.0%  more
events: 1 the same within the noise (--all shows them)

Exits a second
machine  reason        A        B  change   B has
host     WFx          10       20  +100.0%  more

Time of handling exits, of one CPU's
machine  reason        A        B  change   B has    A p50    B p50
host     WFx          2%       8%  +300.0%  more   2.000ms  4.000ms

Time of vCPUs and stolen time, of one CPU's
machine  state                      A        B  change   B has
Guest    vCPU 0 guest             98%      92%  -6.1%    less
Guest    vCPU 0 not recorded       2%       8%  +300.0%  more
END
)" "twice as many exits that take twice as long"
cd "$OLDPWD" || exit

# A halt of 20 ms in slices of 8 ms
lab=tests/data/lab-protected.dat
is "$("$hyptrace" diff -q --json --all $lab $lab | sed -nE 's/.*"name":"(WFx|hvc)","a":(0\.[0-9]{4}).*"a_p50.*/\1 \2/p')" \
	"$("$hyptrace" sql -q --csv $lab "SELECT reason || ' ' || substr(sum(dur) * 1.0 / (SELECT max(ts) - min(ts) FROM events), 1, 6)
		FROM (SELECT esr_class AS reason, dur FROM kvm_exits WHERE esr_class = 'WFx' UNION ALL
		SELECT reason, dur FROM hyp_calls WHERE reason = 'hvc') GROUP BY reason ORDER BY reason;" |
		sed '1d; s/^[^,]*,//; s/"//g')" "what lasts several slices has all of its time"

# of each exit: as many, which take twice as long
"$hyptrace" diff --all --per kvm_exit "$tmp/a.dat" "$tmp/b.dat" | sed '1,/^$/d; /^host     ftrace:print/d' >"$tmp/out"
is "$(cat "$tmp/out")" "$(cat <<'END'
Events for each kvm_exit
machine  event                A        B  change  B has
host     kvm:kvm_entry     1.02     1.02  +0.0%   same
host     kvm:kvm_exit         1        1  +0.0%   same

Exits for each kvm_exit
machine  reason        A        B  change  B has
host     WFx           1        1  +0.0%   same

Time of handling exits for each kvm_exit
machine  reason        A        B  change   B has    A p50    B p50
host     WFx     2.000ms  4.000ms  +100.0%  more   2.000ms  4.000ms

Time of vCPUs and stolen time for each kvm_exit
machine  state                      A        B  change   B has
Guest    vCPU 0 guest         98.00ms  46.00ms  -53.1%   less
Guest    vCPU 0 not recorded  2.000ms  4.000ms  +100.0%  more
END
)" "--per"
for event in kvm:kvm_exit kvm_exit@host kvm:kvm_exit@host; do
	"$hyptrace" diff --all --per $event "$tmp/a.dat" "$tmp/b.dat" | sed "1,/^$/d; /^host     ftrace:print/d; s/ for each $event/ for each kvm_exit/" | cmp -s - "$tmp/out"
	ok $? "--per $event: the same"
done

# tasks VHOST-PID QEMU-MS VHOST-MS: 64 turns of 100 ms of a CPU: QEMU, its vhost thread, kworkers, a vCPU
tasks() {
	local ms=1000000 at=1000000000 i
	local -A names=([0]=swapper [77]=qemu [90]=kworker/0:0 [91]=kworker/0:1 [8]='CPU 0/KVM' ["$1"]=vhost-77)

	switch() {
		printf '%s 0 %s sched_switch\t%s\t%s\t120\t1\t%s\t%s\t120\n' "$1" "$2" "${names[$2]}" "$2" \
			"${names[$3]}" "$3"
	}
	printf 'task %s\n' "$1 vhost-77" '77 qemu' '90 kworker/0:0' '91 kworker/0:1' '8 CPU 0/KVM'
	for ((i = 0; i < 64; i++)); do
		switch $at 0 77
		switch $((at + $2 * ms)) 77 "$1"
		switch $((at + ($2 + $3) * ms)) "$1" 90
		switch $((at + ($2 + $3 + 1) * ms)) 90 91
		switch $((at + ($2 + $3 + 2) * ms)) 91 8
		switch $((at + ($2 + $3 + 4) * ms)) 8 0
		at=$((at + 100 * ms))
	done
	printf '%s 0 0 print\t0\tend\n' $at
}
tasks 70 30 5 | make_trace "$tmp/standard.dat"
tasks 71 10 20 | make_trace "$tmp/vhost.dat"
is "$("$hyptrace" diff --all "$tmp/standard.dat" "$tmp/vhost.dat" | sed -n '/^Time of the host/,/^$/p')" \
"Time of the host's tasks, of one CPU's
machine  task             A        B  change   B has
host     qemu           30%      10%  -66.7%   less
host     vhost           5%      20%  +300.0%  more
host     CPU 0/KVM       2%       2%  +0.0%    same
host     kworker         2%       2%  +0.0%    same" \
	"the host's tasks by name: vhost threads whatever their VMM's pid, a kernel's threads of each CPU together"

"$hyptrace" diff --json "$tmp/a.dat" "$tmp/b.dat" >"$tmp/json"
is "$(perl -MJSON::PP -0777 -ne '$d = decode_json($_); for (@{ $d->{exits} }, @{ $d->{exit_time} }) {
	printf "%s %s %.4g %.4g [%.4g %.4g] %s\n", @$_{qw(machine name a b low high verdict)} }' "$tmp/json")" \
	"host WFx 10 20 [10 10] more
host WFx 0.02 0.08 [0.06 0.06] more" "for programs: the interval of each difference"
like "$("$hyptrace" diff --csv "$tmp/a.dat" "$tmp/b.dat")" '^exits,host,WFx,' "... as CSV"

# hyptrace-diff(1), EXAMPLES
is "$("$hyptrace" diff --csv "$tmp/a.dat" "$tmp/b.dat" | grep '^exits,.*,more$' | cut -d, -f 3)" WFx \
	"the reasons of exits that became more"

for file in lab-protected.dat guest/trace.dat,tests/data/guest/trace-Guest.dat x86/trace.dat; do
	"$hyptrace" diff "tests/data/$file" "tests/data/$file" >"$tmp/out" 2>"$tmp/err"
	is "$? $(grep -c 'the same within the noise' "$tmp/out") $(grep -cE ' (more|less|gone|new)( |$)' "$tmp/out")" \
		"0 $(grep -c 'the same within' "$tmp/out") 0" "$file does not differ from itself"
	like "$(cat "$tmp/out")" 'events: [1-9][0-9]* the same' "... and was read"
done

# a protected host against plain nVHE, both with a guest: what only one of them does
"$hyptrace" diff tests/data/lab-protected.dat tests/data/lab-nvhe.dat >"$tmp/out"
like "$(cat "$tmp/out")" '^host +host_abort .* gone +less' "host aborts are of protected mode"
[ "$(wc -L <"$tmp/out")" -le 80 ]
ok $? "80 columns"

# the same packets by standard virtio and by vhost (Documentation/virtio-or-vhost.md): who does the work
both=(tests/data/vhost/standard.dat,tests/data/vhost/standard-Guest.dat tests/data/vhost/vhost.dat,tests/data/vhost/vhost-Guest.dat)
is "$("$hyptrace" diff --csv --per net:net_dev_xmit@Guest "${both[@]}" |
	awk -F, '/^tasks,host,(qemu-system-aar|vhost),/ || /^exits,host,DABT_LOW,/ { print $3, $8 }' | sort)" \
	"DABT_LOW same
qemu-system-aar less
vhost more" "vhost: its threads work in place of QEMU's, and data aborts are as many"

# ---- noise ---------------------------------------------------------------------------------------
# The statistics themselves: tests/unit/significance.c.

# process KIND SEED SECONDS FACTOR: prints in bursts of 150 ms with pauses of 250 ms, steadily, or ever more of them
process() {
	perl -e 'my ($kind, $seed, $seconds, $factor) = @ARGV;
		srand $seed;
		sub wait_for { -$_[0] * log(1 - rand) }
		my ($at, $on, $until) = (0, 1, wait_for(0.15));
		printf "id a1\n1000000000 0 7 print\t0\tbegin\n";
		while ($at < $seconds) {
			my $rate = $factor * ($kind eq "rising" ? 100 + 400 * $at / $seconds : 500);
			my $next = $at + wait_for(1 / $rate);
			if ($kind eq "bursts" && $next > $until) {
				($at, $on) = ($until, !$on);
				$until += wait_for($on ? 0.15 : 0.25);
				($at, $on, $until) = ($until, 1, $until + wait_for(0.15)) if !$on;
				next;
			}
			$at = $next;
			printf "%d 0 7 irq_handler_entry\t27\ttimer\n", 1e9 + 1e9 * $at if $at < $seconds;
		}
		printf "%d 0 7 print\t0\tend\n", 1e9 + 1e9 * $seconds;' "$@"
}

# verdict FILE FILE: of the generated event
verdict() { "$hyptrace" diff --csv "$1" "$2" | awk -F, '/^events,host,irq:irq_handler_entry,/ { print $NF }'; }

different=0
for ((i = 1; i <= 40; i++)); do
	process bursts $i 3 1 | make_trace "$tmp/one.dat"
	process bursts $((i + 1000)) 3 1 | make_trace "$tmp/other.dat"
	verdict "$tmp/one.dat" "$tmp/other.dat" >"$tmp/verdict"
	[ -s "$tmp/verdict" ] || break
	grep -Eq 'more|less' "$tmp/verdict" && different=$((different + 1))
done
is "$i" 41 "40 pairs of recordings of bursts have a verdict"
[ $different -le 2 ]
ok $? "... and are not called different: $different"
process steady 1 10 1 | make_trace "$tmp/steady.dat"
process steady 2 10 1 | make_trace "$tmp/alike.dat"
process steady 3 10 1.1 | make_trace "$tmp/tenth.dat"
process steady 4 3 0.7 | make_trace "$tmp/less.dat"
is "$(for file in alike tenth less; do verdict "$tmp/steady.dat" "$tmp/$file.dat"; done | xargs)" "same more less" \
	"a steady process, 10 % more and 30 % less in a shorter recording"
process rising 5 3 1 | make_trace "$tmp/rising.dat"
process rising 6 3 1.2 | make_trace "$tmp/higher.dat"
like "$("$hyptrace" diff "$tmp/rising.dat" "$tmp/higher.dat")" '^events: the recordings are too short to decide 1' \
	"what moves all the time cannot be told from a difference"
is "$("$hyptrace" diff --all "$tmp/rising.dat" "$tmp/higher.dat" | grep -c 'irq_handler_entry .* too short$')" 1 "... which --all shows"

# ---- what cannot be compared ---------------------------------------------------------------

fails() { # STATUS PATTERN NAME COMMAND...
	local want=$1 pattern=$2 name=$3

	shift 3
	"$@" >"$tmp/out" 2>"$tmp/err"
	is "$?" "$want" "$name: status"
	like "$(cat "$tmp/err")" "$pattern" "$name: message"
}

echo "1000 0 7 print"$'\t0\talone' | make_trace "$tmp/one.dat"
fails 1 "one.dat: there is nothing to compare" "a record alone" "$hyptrace" diff "$tmp/one.dat" "$tmp/a.dat"
fails 1 "none.dat" "no file" "$hyptrace" diff "$tmp/a.dat" "$tmp/none.dat"
for event in kvm_mmio vm:kvm_exit kvm_exit@Guest kvm_exi; do
	fails 1 "a.dat: there is no record of $event" "--per what is not there" "$hyptrace" diff --per $event "$tmp/a.dat" "$tmp/b.dat"
done
fails 2 "diff: two recordings are needed: hyptrace diff A" "one file" "$hyptrace" diff "$tmp/a.dat"
fails 2 "two recordings are needed" "three hosts" "$hyptrace" diff "$tmp/a.dat" "$tmp/b.dat" "$tmp/a.dat"

# ticks and ns, in either order; --ts2secs converts the ticks only
x86=tests/data/x86/trace.dat nvhe=tests/data/lab-nvhe.dat
for pair in "$x86 $nvhe" "$nvhe $x86"; do
	# shellcheck disable=SC2086
	fails 1 "^hyptrace: cannot compare ticks with ns: times of '$x86' are ticks, of '$nvhe' ns; --ts2secs HZ converts ticks$" \
		"ticks against ns" "$hyptrace" diff -q $pair
done
fails 1 "^hyptrace: cannot compare ticks with ns" "... in a page" "$hyptrace" view -q --diff -o "$tmp/view.html" $x86 $nvhe
took() { "$hyptrace" "$@" 2>/dev/null | sed -nE 's/^[AB] .* ([0-9.]+m?s) +[0-9]+$/\1/p' | xargs; }
is "$(took diff --ts2secs 3000000000 $x86 $nvhe)" "4.709s $(took diff $nvhe $nvhe | cut -d ' ' -f 1)" "--ts2secs: ns stay"
folded() { "$hyptrace" flame -q --diff "$@" $x86 tests/data/functions/trace.dat | grep '\[hyp\]'; }
is "$(folded --ts2secs 3000000000 2>&1)" "$(folded 2>&1)" "... in flame --diff, too"

v=tests/data/vhost
is "$("$hyptrace" diff -q $v/standard.dat $v/standard-Guest.dat $v/vhost.dat $v/vhost-Guest.dat)" \
	"$("$hyptrace" diff -q $v/standard.dat,$v/standard-Guest.dat $v/vhost.dat,$v/vhost-Guest.dat)" "guests as files of their own"
is "$("$hyptrace" diff -q -i $v/standard.dat $v/vhost.dat)" "$("$hyptrace" diff -q $v/standard.dat $v/vhost.dat)" "-i FILE"
fails 2 "either --json or --csv" "two forms" "$hyptrace" diff --json --csv "$tmp/a.dat" "$tmp/b.dat"

# a page whose commit word cannot be
{ vcpu 100 1 2 | sed '$d'; echo "7000000000 1 7 print"$'\t0\tPAGE-OF-CPU-1'; } | make_trace "$tmp/bad.dat"
perl -0777 -pi -e 'my $at = index($_, "PAGE-OF-CPU-1"); $at -= $at % 4096; substr($_, $at + 8, 4) = "\xff\xff\xff\x0f"' \
	"$tmp/bad.dat"
"$hyptrace" diff "$tmp/bad.dat" "$tmp/b.dat" >"$tmp/out" 2>"$tmp/err"
is "$? $(grep -c kvm_exit "$tmp/out")" "1 1" "a damaged file: what can be read"
like "$(cat "$tmp/err")" 'damaged in' "... and said"

# ---- causes ---------------------------------------------------------------------------------

# hogged MS: 64 steps of 100 ms of a vCPU's thread, which another task takes the CPU from for MS in each
hogged() {
	local ms=1000000 at=1000000000 i

	echo 'id a1'
	echo 'guest Guest b1 0:100'
	echo "$at 0 0 sched_switch"$'\tswapper\t0\t120\t0\tvcpu\t100\t120'
	for ((i = 0; i < 64; i++)); do
		echo "$((at + ms)) 0 100 kvm_exit"$'\t2\t1\t4096'
		if [ "$1" -gt 0 ]; then
			echo "$((at + 2 * ms)) 0 100 sched_switch"$'\tvcpu\t100\t120\t0\tburner\t200\t120'
			echo "$((at + (2 + $1) * ms)) 0 200 sched_switch"$'\tburner\t200\t120\t0\tvcpu\t100\t120'
		fi
		echo "$((at + (3 + $1) * ms)) 0 100 kvm_entry"$'\t4096'
		at=$((at + 100 * ms))
	done
	echo "$at 0 100 kvm_exit"$'\t2\t1\t4096'
}

hogged 0 | make_trace "$tmp/calm.dat"
hogged 14 | make_trace "$tmp/hog.dat"
is "$("$hyptrace" diff "$tmp/calm.dat" "$tmp/hog.dat" | sed -n '5,7p')" "$(cat <<'END'
Time that vCPUs lost, by cause, of one CPU's
machine  cause                             A        B  change  B has
Guest    vCPU 0 preempted by burner       0%      14%  new     more
END
)" "with a hog on a vCPU's CPU the first table names it"
"$hyptrace" why --diff "$tmp/calm.dat" "$tmp/hog.dat" >"$tmp/out"
is "$(sed -n '5,$p' "$tmp/out")" "$("$hyptrace" diff "$tmp/calm.dat" "$tmp/hog.dat" | sed -n '5,/^$/p' | sed '/^$/d')" "why --diff: that table alone"
is "$("$hyptrace" why --dif "$tmp/calm.dat" "$tmp/hog.dat")" "$(<"$tmp/out")" "... also if the option is shortened"
is "$("$hyptrace" diff --json "$tmp/calm.dat" "$tmp/hog.dat" | json_differs diff)" "" "... and the schema has it"

like "$("$hyptrace" diff -q --causes --all tests/data/steal/trace.dat tests/data/steal/trace.dat)" '^Guest +vCPU 0 preempted by Guest:1 +20' \
	"a vCPU's thread has the name that why gives it"

# ---- the same each time ---------------------------------------------------------------------

# Long enough that the workers' shares differ from run to run.
"$build/tests/bench/grow" 300000 tests/data/functions/trace.dat "$tmp/long.dat" \
	tests/data/functions/trace-Guest.dat "$tmp/long-Guest.dat" >"$tmp/grow" 2>&1
ok $? "a long recording" || diag "$(cat "$tmp/grow")"
is "$(for i in 1 2 3 4 5 6 7 8; do
	"$hyptrace" diff --json "$tmp/long.dat,$tmp/long-Guest.dat" tests/data/lab-protected.dat 2>/dev/null | cksum
done | sort -u | wc -l)" 1 "diff says the same each time"

done_testing
