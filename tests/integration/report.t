#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace report: the same bytes as stock where stock is right, what is ours where
# it is not; colours, the pager, refusals, and files that are not whole.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp/home TRACEEVENT_PLUGIN_DIR=$build/plugins
unset PAGER HYPTRACE_PAGER LESS LV NO_COLOR
mkdir "$HOME"

nvhe=tests/data/lab-nvhe.dat
protected=tests/data/lab-protected.dat
stock_made=tests/data/lab-stock-arm64.dat
host=tests/data/guest/trace.dat
guest=tests/data/guest/trace-Guest.dat

# report [OPTION...]: what ours prints, messages too
report() {
	"$hyptrace" report --no-guests "$@" 2>&1
}

# fails STATUS PATTERN NAME [OPTION...]: ends with that status and says why
fails() {
	local status=$1 pattern=$2 name=$3 got
	shift 3
	"$hyptrace" report "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	[ "$got" = "$status" ] && grep -Eq -e "$pattern" "$tmp/err"
	ok $? "$name" || diag "status $got: $(head -5 "$tmp/err")"
}

# ---- a capture by hand: losses, a call graph, stacks, wakeups -----------------------------

"$build/tests/integration/make-trace" "$tmp/made.dat" tests/integration/events/report <<'EOF'
1000001000 0 100 funcgraph_entry 0xffff800080001000 0
1000002000 0 100 funcgraph_entry 0xffff800080002000 1
1000003000 0 100 funcgraph_exit 0xffff800080002000 1 0 1000002000 1000003000
1000004000 0 100 funcgraph_entry 0xffff800080002000 1
1000004500 1 101 funcgraph_entry 0xffff800080001000 0
1000018000 0 100 funcgraph_exit 0xffff800080002000 1 0 1000004000 1000018000
1000019000 1 101 funcgraph_exit 0xffff800080001000 0 0 1000004500 1000019000
1000020000 0 100 funcgraph_exit 0xffff800080001000 0 0 1000001000 9000000020000
1000020500 0 100 funcgraph_entry 0x1234 7
1000021000 0 100 sched_wakeup 101 50 1
1000021500 0 100 kernel_stack 3 0xffff800080001010 0xffff800080002020 0xffffffffffffffff
1000022000 0 100 sched_wakeup 102 120 0
lost 0 5
1000025000 0 100 sched_switch 100 101 50
lost 0 0
1000026000 0 -1 sched_wakeup 102 120 1
1000028123 0 102 sched_switch 101 102 120
1000029000 1 100000 sched_wakeup 100 99 1
EOF
ok $? "a file with losses, a call graph, stacks and wakeups"
is "$(report "$tmp/made.dat" -n 'sched.*' -w)" "cpus=2
       CPU 0/KVM-100   [000]     1.000001: funcgraph_entry:                   |  outer() {
       CPU 0/KVM-100   [000]     1.000002: funcgraph_entry:        1.000 us   |    inner();
       CPU 0/KVM-100   [000]     1.000004: funcgraph_entry:                   |    inner() {
            bash-101   [001]     1.000005: funcgraph_entry:                   |  outer() {
       CPU 0/KVM-100   [000]     1.000018: funcgraph_exit:       + 14.000 us  |    }
            bash-101   [001]     1.000019: funcgraph_exit:       + 14.500 us  |  }
       CPU 0/KVM-100   [000]     1.000020: funcgraph_exit:       \$ 8999000019 us |  }
       CPU 0/KVM-100   [000]     1.000021: funcgraph_entry:                   |                1234() {
       CPU 0/KVM-100   [000]     1.000021: sched_wakeup:         pid=101 prio=50
       CPU 0/KVM-100   [000]     1.000022: kernel_stack:         <stack trace >
=> outer (ffff800080001010)
=> inner (ffff800080002020)
       CPU 0/KVM-100   [000]     1.000022: sched_wakeup:         pid=102 prio=120
CPU:0 [5 EVENTS DROPPED]
       CPU 0/KVM-100   [000]     1.000025: sched_switch:         100 ==> 101 Latency: 4.000 usecs
CPU:0 [EVENTS DROPPED]
           <...>--1    [000]     1.000026: sched_wakeup:         pid=102 prio=120
a-very-long-name-102   [000]     1.000028: sched_switch:         101 ==> 102 Latency: 2.123 usecs
           <...>-100000 [001]     1.000029: sched_wakeup:         pid=100 prio=99

Average wakeup latency: 3.061 usecs
Maximum Latency: 4.000 usecs at timestamp: 1.000025
Minimum Latency: 2.123 usecs at timestamp: 1.000028

RT task timings:

Average wakeup latency: 4.000 usecs
Maximum Latency: 4.000 usecs at timestamp: 1.000025
Minimum Latency: 4.000 usecs at timestamp: 1.000025" "lines, call graph, losses, latencies"

# ---- beside stock -----------------------------------------------------------------------------

# compare FILES OPTIONS: the same bytes on both outputs, one row of a table below
compare() {
	local files=() options=() file
	read -ra options <<<"$2"
	for file in $1; do
		files+=(-i "$file")
	done
	trace-cmd report "${files[@]}" "${options[@]}" >"$tmp/theirs" 2>"$tmp/theirs.err"
	"$hyptrace" report --no-sync --no-guests "${files[@]}" "${options[@]}" >"$tmp/ours" 2>"$tmp/ours.err"
	[ "$(wc -l <"$tmp/ours")" -ge "${3:-1}" ] &&
		cmp -s "$tmp/ours" "$tmp/theirs" && cmp -s "$tmp/ours.err" "$tmp/theirs.err"
	ok $? "as stock: report $2 $1" ||
		diag "$(diff "$tmp/theirs" "$tmp/ours" | head -10; diff "$tmp/theirs.err" "$tmp/ours.err" | head -5)"
}

version=$(trace-cmd 2>&1 | sed -n 's/^trace-cmd version \([0-9.]*\).*/\1/p')
if [[ $version != 3.1* ]]; then
	skip 1 "no trace-cmd 3.1 (3.2 and later have other columns), but '$version'"
else
	# every layout, for every capture
	for files in "$stock_made" "$nvhe" "$protected" "$tmp/made.dat" "$host" "$guest" "$host $guest" \
		"$nvhe $stock_made $protected"; do
		while read -r options; do
			compare "$files" "$options" 2
		done <<-'EOF'

			-t
			-l
			-R
			-l -R
			-N
			-L
			-q
			--ts-diff
			--ts-diff -t
			--nodate
			-r kvm.* -r sched
			-n kvm_exit
			-O kvm-arm64:plain
			--uname
			--version
		EOF
	done

	# what concerns one file
	for file in "$stock_made" "$tmp/made.dat" "$guest"; do
		while read -r options; do
			compare "$file" "$options"
		done <<-'EOF'
			-w
			--align-ts
			--raw-ts
			--ts-check
			--ts2secs 1000000
			-I
			-S
			-e
			-p
			--cpus
			--first-event
			--last-event -t
			--kallsyms tests/data/README.md
		EOF
		# stock's list has formats of our plugins' own, too
		TRACEEVENT_PLUGIN_DIR=/nonexistent compare "$file" -E
	done
	# CPUs without data, which are not in the list of those that have some
	for file in tests/data/import-nvhe.dat tests/data/import-protected.dat; do
		compare "$file" ""
		compare "$file" --uname
	done
	compare "$nvhe" -f 1000
	compare "$nvhe" -P 90
	compare "$stock_made" "--cpu 1" 100
	compare "$stock_made" "--cpu 0:2-3" 100
	compare "$nvhe" --raw-ts 1000
	compare "$tmp/made.dat" --check-events 0
	compare "$tmp/made.dat" "-O fgraph:tailprint"
	compare "$tmp/made.dat" "-O fgraph:depth"
	compare "$tmp/made.dat" "-O depth -O tailprint"
	compare "$tmp/made.dat" "-n func.*"

	# in 3.1 a filter counts only in front of a lone file (read as the last word), and
	# behind one of several
	for filter in "-F kvm" "-F sched_switch:prev_pid==0" "-v -F kvm" "-F kvm -v -F kvm_exit" \
		"-F kvm_.*t -F sched_wakeup" "-F .*:COMM==\"<idle>\"" "-T -F sched_switch:prev_pid==0" \
		"--pid 100" "--pid 100,101" "--comm trace-cmd,rcu_sched"; do
		read -ra words <<<"$filter"
		same <(report "${words[@]}" $stock_made) <(trace-cmd report "${words[@]}" $stock_made 2>&1) \
			"as stock: report $filter"
	done
	same <(report -F sched_wakeup "$tmp/made.dat") <(trace-cmd report -F sched_wakeup "$tmp/made.dat" 2>&1) \
		"as stock: the stack trace of an event goes with it"
	same <(report --no-sync -i $host -i $guest -F sched -v -F sched_switch) \
		<(trace-cmd report -i $host -i $guest -F sched -v -F sched_switch 2>&1) "as stock: filters of one file"
	same <(report -i $host -i $guest --ts-offset -1500000) \
		<(trace-cmd report -i $host -i $guest --ts-offset -1500000 2>&1) "as stock: an offset for one file"

	# version 6, of which stock shows formats, too
	trace-cmd convert --file-version 6 -i $protected -o "$tmp/v6.dat" >/dev/null 2>&1
	compare "$tmp/v6.dat" "" 4000
	compare "$tmp/v6.dat" "--stat" 80
	compare "$tmp/v6.dat" "--event sched:.*" 100
	compare "$tmp/v6.dat" "--event kvm_exit" 10
fi

# ---- the layout of trace-cmd 3.3 and 3.4: what 3.4 prints --------------------------------------------

is "$(report --irq-info -N $host | head -n 4)" "cpus=4
               <idle>-0     [002] d.h4.    46.301992: sched_waking:         comm=CPU 1/KVM pid=114 prio=120 target_cpu=002
               <idle>-0     [002] dNh5.    46.302032: sched_wakeup:         comm=CPU 1/KVM pid=114 prio=120 target_cpu=002
               <idle>-0     [002] d..2.    46.302072: sched_switch:         prev_comm=swapper/2 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=CPU 1/KVM next_pid=114 next_prio=120" "--irq-info"
is "$(report --irq-info -N -R $host | sed -n 2p)" "               <idle>-0     [002]-0x9    46.301992: \
sched_waking:          comm=CPU 1/KVM pid=114 prio=120 target_cpu=002" "--irq-info -R"
same <(report --irq-info -l $host) <(report -l $host) "--irq-info -l"
root=${HYPTRACE_TRACE_CMD_ROOT-} # shim.t says what it is
if [ -n "$root" ]; then
	libs=("$root"/usr/lib/*-linux-gnu)
	loader=("${libs[0]}"/ld-linux*.so.*)
	# both with its libtraceevent, which tells flags that 1.7 does not know
	other() { "${loader[0]}" --library-path "${libs[0]}:/usr/lib/${libs[0]##*/}" "$@" 2>/dev/null; }
	for file in $nvhe $protected tests/data/x86/trace.dat; do
		for options in "" -t -R -l --ts-diff --raw-ts; do
			# shellcheck disable=SC2086
			same <(other "$hyptrace" report --no-guests --irq-info -N $options $file) <(other "$root/usr/bin/trace-cmd" report -N $options $file) \
				"as another trace-cmd: report $options $file"
		done
	done
else
	skip 18 "no other trace-cmd (HYPTRACE_TRACE_CMD_ROOT)"
fi

# ---- where it is ours -------------------------------------------------------------------------------

is "$(report $nvhe -t --align-ts | sed -n 2p)" \
	"hyp:        CPU 1/KVM-112   [002]     0.000000000: hyp_enter:            reason=hvc vcpu=0" \
	"--align-ts: the first event is an instance's"
out=$(report $nvhe --cpu 1)
is "$(sed 1d <<<"$out" | grep -vc ' \[001\] ')/$(grep -c '^hyp:.* hyp_enter: ' <<<"$out")" \
	"0/$(report $nvhe | grep -c '^hyp:.* \[001\] .* hyp_enter: ')" "--cpu: of the instances, too"
same <(report $nvhe -B hyp | sed 1d) <(report $nvhe | grep '^hyp: ') "-B: the events of one instance"
# plugins learn names by the way, of which this file has two for one task
same <(report $nvhe -B -) <(report $nvhe -B '') "-B -: the same, as tables call it"
same <(report $nvhe -B '' | sed '1d; s/.*\[/[/') <(report $nvhe | sed '1d; /^hyp: /d; s/.*\[/[/') "-B '': of the top buffer"
same <(report --no-sync -F kvm_exit $host $guest) <(report --no-sync $host $guest | grep -E 'cpus=| kvm_exit: ') \
	"a filter in front of all files is for all"
same <(report -i $protected -F kvm_exit) <(report -F kvm_exit $protected) "a filter behind a lone file"
is "$(report --events $protected | grep -c '^system: ')" "$(report -E $protected | cut -d: -f1 | sort -u | wc -l)" \
	"--events: of version 7"
is "$(report --event 'kvm:kvm_ex' $protected | grep '^name: ')" "name: kvm_exit" "--event SYSTEM:EVENT"
is "$(report --ts2secs 1000 --ts-offset 5 $nvhe)" "hyptrace report: --ts-offset must come after the -i of its file" \
	"--ts-offset needs a file"
is "$(report -i $guest --ts-offset 1000000000 -N | sed -n '2s/.*\] *\([0-9.]*\):.*/\1/p')" \
	"$(report -i $guest -N | sed -n '2s/.*\] *\([0-9.]*\):.*/\1/p' | awk -F. '{ print $1 + 1 "." $2 }')" \
	"--ts-offset of a lone file"
same <(report -T $nvhe) <(report $nvhe) "-T without a filter means nothing"
same <(report --comm trace-cmd-100 $stock_made) <(report --pid 100 $stock_made) "--comm NAME-PID, as it is printed"
is "$(report --comm nobody $stock_made)" "hyptrace: warning: $stock_made has no task named 'nobody'
cpus=4" "--comm of nobody: said, and nothing is shown"
"$build/tests/integration/make-trace" "$tmp/lost.dat" tests/integration/events/report <<'EOF'
1000001000 0 100 sched_wakeup 101 50 1
lost 0 0
buffer inst
1000002000 1 100 sched_wakeup 101 50 1
lost 1 7
1000003000 1 100 sched_wakeup 101 50 1
EOF
is "$(report -n sched.* "$tmp/lost.dat")" "cpus=2
             CPU 0/KVM-100   [000]     1.000001: sched_wakeup:         pid=101 prio=50
      CPU:0 [EVENTS DROPPED]
inst:        CPU 0/KVM-100   [001]     1.000002: sched_wakeup:         pid=101 prio=50
inst: CPU:1 [7 EVENTS DROPPED]
inst:        CPU 0/KVM-100   [001]     1.000003: sched_wakeup:         pid=101 prio=50" \
	"losses have their buffer in front, and those at the end are told"
"$build/tests/integration/make-trace" "$tmp/tasks.dat" tests/integration/events/kernel - <<EOF
cpus 65
clock mono
1000001000 0 7 kvm_entry 1
1000002000 0 7 sched_switch late 7 120 0 swapper/0 0 120
1000003000 0 7 kvm_entry 1
1000005000 0 8 kvm_entry 1
1000006000 0 7 kvm_entry 1
$(for cpu in {1..64}; do echo "1000004000 $cpu 7 kvm_entry 1"; done)
EOF
is "$(report "$tmp/tasks.dat" | sed -n 's/ *\([^ ]*-[78] *.0..\] *[^ ]*\).*/\1/p' | grep "\[000\|064")" "<...>-7     [000]     1.000001:
<...>-7     [000]     1.000002:
late-7     [000]     1.000003:
late-7     [064]     1.000004:
<...>-8     [000]     1.000005:
late-7     [000]     1.000006:" "a line has its own task and CPU, not those of another"
is "$(report tests/data/sync/trace-Guest.dat | sed -n 2p)" \
	"           <...>--1    [000]    52.861320: (NULL):               [UNKNOWN EVENT 61]" "an event without a format"

# ---- everything is decoded ------------------------------------------------------------------------------

for file in $stock_made $nvhe $protected $host $guest; do
	like "$(report "$file")" ' (kvm_entry|sched_switch): ' "$file: report"
	is "$(report "$file" | grep -E "CAN.?T FIND FIELD|FAILED TO PARSE|UNKNOWN EVENT")" "" "$file: nothing is left undecoded"
	if command -v trace-cmd >/dev/null; then
		is "$(trace-cmd report -i "$file" 2>&1 | grep -E "CAN.?T FIND FIELD|FAILED TO PARSE|UNKNOWN EVENT")" "" \
			"$file: nor by trace-cmd with our plugins"
	else
		skip 1 "no trace-cmd"
	fi
done

# ---- colours ------------------------------------------------------------------------------------------------

plain=$(report "$tmp/lost.dat")
colored=$(report --color "$tmp/lost.dat")
unlike "$plain" $'\033' "no colours in a pipe"
like "$colored" $'\033\\[1;31mCPU:1 \\[7 EVENTS DROPPED\\]\033\\[m$' "--color: losses stand out"
like "$colored" $'^\033\\[36minst: \033\\[m .*\033\\[33m *1.000002:\033\\[m \033\\[1msched_wakeup: \033\\[m' "buffer, time, event"
is "$(sed 's/\x1b\[[0-9;]*m//g' <<<"$colored")" "$plain" "... and nothing else changes"
is "$(NO_COLOR=1 report --color=always "$tmp/lost.dat")" "$colored" "an option wins over NO_COLOR"

# on_tty COMMAND...: as on a terminal; what it writes there, but for the next step (everyday.t)
on_tty() {
	TERM=xterm timeout 60 script -qec "$(printf '%q ' "$@")" /dev/null </dev/null | tr -d '\r' | grep -v '^hyptrace: next: '
}

if command -v script >/dev/null; then
	is "$(on_tty "$hyptrace" report --no-pager "$tmp/lost.dat")" "$colored" "colours on a terminal"
	is "$(NO_COLOR=1 on_tty "$hyptrace" report --no-pager "$tmp/lost.dat")" "$plain" "not with NO_COLOR"
	is "$(NO_COLOR='' on_tty "$hyptrace" report --no-pager "$tmp/lost.dat")" "$colored" "an empty one does not count"
	is "$(on_tty env TERM=dumb "$hyptrace" report --no-pager "$tmp/lost.dat")" "$plain" "nor on a dumb terminal"
	is "$(on_tty "$hyptrace" report --color=never --no-pager "$tmp/lost.dat")" "$plain" "--color=never"

	# ---- the pager

	is "$(PAGER='sed s/^/P:/' on_tty "$hyptrace" report "$tmp/lost.dat")" "$(sed 's/^/P:/' <<<"$colored")" \
		"PAGER, with colours"
	is "$(PAGER=false HYPTRACE_PAGER='sed s/^/H:/' on_tty "$hyptrace" report -e "$tmp/lost.dat")" \
		"H:$(report -e "$tmp/lost.dat")" "HYPTRACE_PAGER wins"
	is "$(PAGER='sed s/^/P:/' on_tty "$hyptrace" report --no-pager "$tmp/lost.dat")" "$colored" "--no-pager"
	is "$(HYPTRACE_PAGER='' PAGER='sed s/^/P:/' on_tty "$hyptrace" report "$tmp/lost.dat")" "$colored" "an empty pager: none"
	is "$(PAGER="cat" on_tty "$hyptrace" report "$tmp/lost.dat")" "$colored" "cat: none"
	# shellcheck disable=SC2016
	is "$(PAGER='cat >/dev/null; echo "$LESS $LV"' on_tty "$hyptrace" report "$tmp/lost.dat")" "FRX -c" "less gets its options"
	# shellcheck disable=SC2016
	is "$(LESS=S PAGER='cat >/dev/null; echo "$LESS"' on_tty "$hyptrace" report "$tmp/lost.dat")" "S" "... unless they are set"
	is "$(PAGER='head -n 1' on_tty bash -c "$hyptrace report -t $protected; echo \$?")" "cpus=4
0" "a pager that ends early is no failure"
	is "$(PAGER=/nonexistent/pager on_tty bash -c "$hyptrace report -e $protected; echo \$?" | tail -n 1)" "1" \
		"one that is not there is"
else
	skip 14 "no script(1)"
fi
is "$(PAGER='sed s/^/P:/' report "$tmp/lost.dat")" "$plain" "no pager in a pipe"

# ---- refusals --------------------------------------------------------------------------------------------

fails 2 '^hyptrace report: --profile is not served: .*use trace-cmd split and trace-cmd report --profile$' "--profile is refused with advice" --profile
fails 2 'not served: ' "-H" -H a,b/c,d
fails 2 'not served: messages have no levels' "-V" -V6
fails 2 "unknown or ambiguous option '--nonsense' \\(see hyptrace report -h\\)" "an unknown option" --nonsense
fails 2 "option '-F' needs an argument" "a missing argument" -F
fails 2 '^hyptrace report: --cpu 3-1: a range goes' "a wrong list of CPUs" --cpu 3-1
fails 2 'not a list of CPUs' "a wrong CPU" --cpu 1,x
fails 2 'not a list of numbers' "a wrong pid" --pid x
fails 2 '--color red: not auto' "a wrong colour" --color=red
fails 2 'not a frequency' "a wrong frequency" --ts2secs 0
fails 2 '-w needs one file' "-w with two files" -w $host $guest
fails 1 "cannot open 'trace.dat': No such file" "the default file" -q
fails 1 "filter 'nope': no event found" "a filter of no event" -F nope $nvhe
fails 1 "filter 'sched_switch: prev_pid ==': a value is missing" "a filter that ends too early" -F 'sched_switch: prev_pid ==' $nvhe
fails 1 "'\[' is not a regular expression" "-r" -r '[' $nvhe
fails 1 "'kvm:a\[' is not a regular expression" "--event" --event 'kvm:a[' $nvhe
fails 1 "no buffer 'nope' in $nvhe" "-B of no buffer" -B nope $nvhe
fails 1 "cannot read '/nonexistent': No such file" "--kallsyms" --kallsyms /nonexistent $nvhe

# ---- files that are not whole ------------------------------------------------------------------------------

fails 1 "cannot read '/dev/null': it is damaged" "an empty file" /dev/null
fails 1 'does not begin with the magic bytes' "another file" README.md
fails 1 '^hyptrace: a trace.dat must be a regular file, ' "a pipe" /dev/fd/3 3< <(cat tests/data/functions/trace.dat)
size=$(stat -c %s $protected)
bad=
for ((at = 1; at < size; at += 1 + size / 97)); do
	head -c "$at" $protected >"$tmp/cut.dat"
	timeout 60 "$hyptrace" report "$tmp/cut.dat" >"$tmp/out" 2>"$tmp/err"
	status=$?
	# from the last pages on all that counts is there
	[ $status = 1 ] && [ -s "$tmp/err" ] || bad="$bad $at($status)"
done
is "$bad" "" "cut off anywhere: status 1 and a message"
if cp "$tmp/v6.dat" "$tmp/bent.dat" 2>/dev/null; then
	offset=$(report --stat "$tmp/v6.dat" | sed -n 's/^CPU2 data recorded at offset=//p')
	printf '\377\377\0\0' | dd of="$tmp/bent.dat" bs=1 seek=$((offset + 8)) conv=notrunc status=none
	fails 1 "warning: .*bent.dat: CPU 2 has a damaged page .*: records are missing" "a damaged page" "$tmp/bent.dat"
	is "$(grep -c '^ *CPU:2 \[EVENTS DROPPED\]$' "$tmp/out")" 1 "... its place is told"
	same <(grep -v ' \[002\] \|CPU:2' "$tmp/out") <(report "$tmp/v6.dat" | grep -v ' \[002\] ') "... and everything else is shown"
	# its pages come last: those in front of where it ends are there
	head -c $((offset + 8)) "$tmp/v6.dat" >"$tmp/cut6.dat"
	fails 1 "warning: .*cut6.dat: CPU 2 has a damaged page .*: records are missing" "cut off in its pages" "$tmp/cut6.dat"
	same <(grep '^[^:]*-[0-9]* *\[00[01]\] ' "$tmp/out") <(report "$tmp/v6.dat" | grep '^[^:]*-[0-9]* *\[00[01]\] ') \
		"... what comes before is shown"
else
	skip 5 "no trace-cmd to make a file of version 6"
fi
# pages of the main buffer that are not compressed any more
perl -0777 -ne 'my @at; push @at, pos() - 4 while /\x28\xb5\x2f\xfd/g; my $all = $_; substr($all, $_, 4) = "none" for @at[-5 .. -1]; print $all' \
	$protected >"$tmp/bad.dat"
for option in --cpus --first-event --last-event; do
	fails 1 "damaged in [0-9]+ places" "$option of a damaged file" $option "$tmp/bad.dat" $nvhe
	is "$(grep -c '^List of CPUs' "$tmp/out")" 2 "... the next file is shown, too"
done
"$hyptrace" report $protected >/dev/full 2>"$tmp/err"
is "$?: $(cat "$tmp/err")" "1: hyptrace: cannot write the output: No space left on device" "a full disk"

done_testing
