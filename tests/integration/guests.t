#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recording guests whose agents are FAKES (fake-agent.c): good ones, and broken or
# hostile ones against our recorder. Whatever they do it ends by itself, names the
# guest and the step, puts tracefs back, and what the host and the other guests
# recorded is there. The host's tracefs is fake-android's tree. Recorded alone, with
# the plain build, a broken guest ends the recording; beside others, with that of
# ASan, the recording goes on. Recorders that hang are ended after $limit seconds;
# that and all timeouts are long, so that a busy machine makes no difference.
# shellcheck disable=SC2016,SC2317,SC1083,SC2093 # awk and sh have their own $; exec {fd}
# thousands of small files
[ ! -w /dev/shm ] || export TMPDIR="${TMPDIR:-/dev/shm}"
# shellcheck source=tests/integration/lib.sh
. tests/integration/lib.sh

hyptrace=$build/hyptrace
sanitised=$build-san/hyptrace
make_tree=$build/tests/integration/fake-android
fake_agent=$build/tests/integration/fake-agent
tree=$tmp/tracefs
dat=$tmp/out/trace.dat
export HYPTRACE_TRACING_DIR=$tree
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=1:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1
ulimit -Sn 256 # descriptors; cpus-1024 wants more
patient=20 impatient=2 # --guest-timeout where an answer comes, and where none does
limit=60
bare_machine
all_ticks=4200 # of a good guest: 2 CPUs, 21 pages of 100

command -v trace-cmd >/dev/null || skip_all "no trace-cmd to read the files with"

# ---- helpers -----------------------------------------------------------------

# The host's buffers only: nobody here asks for the hypervisor's.
state() {
	control_files "$tree" "$tree/hypervisor/*"
}

new_tree() {
	rm -rf "$tree" "$tmp/out"
	mkdir "$tmp/out"
	pages_once "$tree"
	"$make_tree" "$tree" android16
	state >"$tmp/before"
}

untouched() {
	state >"$tmp/after"
	same "$tmp/after" "$tmp/before" "$1: tracefs is as before"
}

agents=()

# agent SCENARIO NAME [CPUS [TRACE-ID]]: one at $tmp/NAME, its log in $tmp/NAME.log
agent() {
	local name=$2

	: >"$tmp/$name.log"
	"$fake_agent" "$1" "${where:-$tmp/$name}" "$tmp/$name.log" "${@:3}" 2>"$tmp/$name.err" &
	agents+=($!)
	wait_for logged "$name" listening
}

logged() { # NAME TEXT
	[[ $(<"$tmp/$1.log") == *"$2"* ]]
}

end_agents() {
	kill -KILL "${agents[@]}" 2>/dev/null
	wait "${agents[@]}" 2>/dev/null
	agents=()
}

# record OPTION...: sets status and ms; messages are in $tmp/err
record() {
	local start=${EPOCHREALTIME/./}

	: >"$tmp/err"
	timeout -s KILL $limit "$hyptrace" record --guest-timeout "$patience" -o "$dat" "$@" >"$tmp/out.txt" 2>>"$tmp/err"
	status=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	messages=$(<"$tmp/err")
}

files() {
	local files=("$tmp/out"/*)

	echo "${files[@]##*/}"
}

# bounded NAME: it has not waited for ever, and is whole itself
bounded() {
	[ "$status" -lt 124 ]
	ok $? "$1: ends" || diag "exit status $status after $ms ms: $messages"
	if [[ $messages == *Sanitizer* || $messages == *"runtime error"* ]]; then
		ok 1 "$1: sanitisers"
		diag "$messages"
	fi
}

# ticks FILE: how many guest_tick it shows; by stock itself, whose flags are not looked at
ticks() {
	PATH=${PATH#*:} trace-cmd report -i "$tmp/out/$1" 2>/dev/null | grep -c 'guest_tick: *n='
}

# last_line NAME: of a guest's file
last_line() {
	"$hyptrace" report -i "$tmp/out/trace-$1.dat" 2>"$tmp/report.err" | tail -n 1
}

host_is_there() {
	like "$(trace-cmd report -N -i "$dat" 2>&1)" 'kvm_entry: *PC: 0x0*80081234' "$1: the host's file"
}

options() {
	trace-cmd dump --options "$tmp/out/$1" 2>/dev/null
}

asked() {
	sed -n 's/^asked [0-9]*: //p' "$tmp/$1.log"
}

# ---- what broken ones do ----------------------------------------------------------

# STATUS|SCENARIO...|MESSAGE: 1 when it cannot be recorded, 3 when it is lost on the way
scenarios='
1|never-accepts connect-silent|connecting to its agent: silent for 2 s \(--guest-timeout\)$
1|accept-close|connecting to its agent: (Connection refused|the agent closed the connection)
1|connect-refused connect-noise|connecting to its agent: Connection refused
1|connect-long|connecting to its agent: Protocol error
1|silent head-half size-stall|waiting for the answer to the request: silent for 2 s \(--guest-timeout\)$
1|size-trickle|waiting for the answer to the request: not done after 10 s \(5 times --guest-timeout\)$
1|request-close head-half-close|waiting for the answer to the request: the agent closed the connection
1|size-0 size-11 size-8193 size-max fixed-beyond fixed-max|waiting for the answer to the request: the answer makes no sense
1|fixed-short cpus-0 cpus-more cpus-max page-0 page-3 page-512 page-max ports-none|the answer to the request: the answer makes no sense
1|ports-short ports-words ports-no-end ports-range|the answer to the request: the answer makes no sense
1|other-data|the answer to the request: SEND_DATA: the answer makes no sense
1|other-fin|the answer to the request: FIN_DATA: the answer makes no sense
1|other-close|the answer to the request: CLOSE_RESP: the answer makes no sense
1|other-unknown|the answer to the request: unknown: the answer makes no sense
1|refused|its agent refuses the request$
1|refused-why|its agent refuses the request: no .\[31msuch.event$
1|cpus-1024|cannot take the data of its 1024 CPUs: Too many open files
1|metadata-close metadata-half metadata-no-fin|waiting for its event formats: the agent closed the connection
1|metadata-stall|waiting for its event formats: silent for 2 s \(--guest-timeout\)$
1|metadata-dribble|waiting for its event formats: not done after 10 s \(5 times --guest-timeout\)$
1|metadata-endless|(waiting for )?its event formats: (File too large|not done after 10 s)
1|metadata-other|waiting for its event formats: TRACE_RESP: the answer makes no sense
1|metadata-empty metadata-noise metadata-no-dat metadata-cut metadata-bent metadata-bomb|its event formats: the answer makes no sense
1|metadata-no-headers metadata-formats metadata-ring metadata-system metadata-option|its event formats: the answer makes no sense
1|ports-close|connecting to the data of its CPU [01]: (Connection refused|the agent closed the connection)
1|data-nobody|connecting to the data of its CPU 0: Connection refused
1|data-never data-silent|connecting to the data of its CPU 0: silent for 2 s \(--guest-timeout\)$
3|data-close lost-all lost-data|the data of its CPU [01]: the agent closed the connection
3|lost-control lost-control-endless|telling it to stop: the agent closed the connection
3|lost-cpu|the data of its CPU 0: the agent closed the connection
3|close-stall|the data of its CPU [01]: silent for 2 s \(--guest-timeout\)$
3|close-endless close-dribble|the data of its CPU [01]: not done after 10 s \(5 times --guest-timeout\)$
3|close-flood|the data of its CPU 0: more than 66 MiB came after the end, which its buffers cannot hold; if they are larger, give their size with -A bad -b KIB$
3|tells-more|its agent sent 90112 bytes of CPU 0, and 86016 came
0|cpu-offline|its agent has nothing of some of its 2 CPUs
0|pages-noise pages-commit pages-events control-noise page-part close-gone no-close-resp never-close-resp tells tells-half|'

# Alone and with no --best-effort: nothing is recorded.
alone() {
	local name="$label$1, alone"

	new_tree
	agent "$1" bad
	record -e kvm -A "bad@unix:$tmp/bad" -- true
	end_agents
	is "$status" 1 "$name: exit status" || diag "$messages"
	like "$messages" "^hyptrace: guest bad( \(unix:.*\))?: $2" "$name: message"
	bounded "$name"
	is "$(files)" '*' "$name: no file, no spool"
	untouched "$name"
}

# Those of which something is said while the recording goes on: it goes on until then.
seen_at_once() {
	case $1 in
	cpu-offline | data-close | lost-all | lost-data | lost-cpu) ;;
	*) return 1 ;;
	esac
}

# Beside the host and a guest that is fine.
beside() {
	local name="$label$1, beside another" expected=$2 command=(true)

	[ "$2" != 1 ] || expected=0
	! seen_at_once "$1" || command=(sh -c 'until grep -qE "$2" "$1"; do sleep 0.01; done' - "$tmp/err" "^hyptrace: guest bad.*: $3")
	new_tree
	agent "$1" bad
	agent good fine
	record -e kvm --best-effort -A "bad@unix:$tmp/bad" -A "fine@unix:$tmp/fine" -- "${command[@]}"
	end_agents
	is "$status" "$expected" "$name: exit status" || diag "$messages"
	[ -z "$3" ] || like "$messages" "^hyptrace: guest bad( \(unix:.*\))?: $3" "$name: message"
	case $2 in
	1) like "$messages" '^hyptrace: warning: going on without guest bad' "$name: goes on" ;;
	3) like "$messages" '^hyptrace: guest bad was lost before the end' "$name: summary" ;;
	esac
	bounded "$name"
	host_is_there "$name"
	is "$(ticks trace-fine.dat)" "$all_ticks" "$name: the other guest's file"
	is "$(files)" "$([ "$2" = 1 ] || printf 'trace-bad.dat ')trace-fine.dat trace.dat" "$name: no spool is left"
	untouched "$name"
}

# What a guest that was lost had sent is kept.
kept() {
	case $1 in
	lost-all | lost-data | lost-cpu | lost-control)
		[ "$(ticks trace-bad.dat)" -ge 1000 ]
		ok $? "$label$1: what it sent is in its file"
		is "$(last_line bad | cut -c 6-) $(last_line fine | grep -c DROPPED)" " [EVENTS DROPPED] 0" \
			"$label$1: ... and that its end is lost, but not the other's" ;;
	close-stall | close-gone | no-close-resp | page-part | control-noise)
		[ "$(ticks trace-bad.dat)" -ge 4000 ]
		ok $? "$label$1: what it sent is in its file" ;;
	close-flood)
		# 70 MiB have 1,792,000
		[ "$(sed -n 's/.* bad \([0-9]*\) events.*/\1/p' <<<"$messages")" -lt 1800000 ]
		ok $? "$label$1: it is cut off, and what it sent is in its file" || diag "$messages" ;;
	# of 21 pages of its first CPU the last is good, and all of its second
	pages-noise | pages-commit)
		is "$(ticks trace-bad.dat)" 200 "$label$1: the good pages are in its file" ;;
	cpu-offline)
		is "$(ticks trace-bad.dat)" 2100 "$label$1: its other CPU's events are in its file" ;;
	# 99 events of each of the 20
	pages-events)
		is "$(ticks trace-bad.dat)" 2180 "$label$1: the good events are in its file" ;;
	esac
	case $1 in
	pages-*) like "$messages" '^hyptrace: guest bad: 20 pages made no sense: ' "$label$1: and that is said" ;;
	page-part) like "$messages" '^hyptrace: guest bad: 2 pages made no sense: ' "$label$1: and that is said" ;;
	esac
	case $1 in
	no-close-resp | never-close-resp | tells-half)
		like "$messages" '^hyptrace: warning: guest bad: its agent does not confirm its end: ' "$label$1: is said" ;;
	tells)
		like "$messages" 'bad 4200 events, .* \(7 lost\)' "$label$1: what its kernel has lost is in the summary" ;;
	esac
}

# broken fast|slow PART PARTS STATUS...: of all scenarios that end so, one in PARTS;
# with those that are waited for in vain, or without
broken() {
	local scenario names expected message speed i=0

	while IFS='|' read -r expected names message; do
		speed=fast
		[[ $message != *' silent for '* && $message != *'not done after'* ]] || speed=slow
		[ $speed = "$1" ] && [[ " ${*:4} " == *" $expected "* ]] || continue
		for scenario in $names; do
			[ $((i++ % $3)) -eq "$2" ] || continue
			if [ "$how" = alone ]; then
				alone "$scenario" "$message"
			else
				beside "$scenario" "$expected" "$message"
				kept "$scenario"
			fi
		done
	done <<<"$scenarios"
}

# ---- good ones -----------------------------------------------------------------------

# The host's events at 99.999990, .999995 and .999999 stand among the guest's.
good() {
	local name="$label$1" id=1234567890123456789

	new_tree
	agent "$1" fine 3 $id
	record -e kvm -e sched -A "vm@unix:$tmp/fine" -- true
	wait_for logged fine gone
	end_agents
	is "$status" 0 "$name: exit status" || diag "$messages"
	bounded "$name"
	like "$messages" 'host 3 events,.*; vm 6300 events, .* \(0 lost\)' "$name: summary"
	is "$(cat "$tmp/fine.err")$(tail -n 3 "$tmp/fine.log")" "data
close
gone" "$name: the agent was asked in order"
	is "$(asked fine)" "-C|boot|-i|-e|sched|-e|irq|-e|ipi|-e|timer" "$name: default events"
	is "$(files)" "trace-vm.dat trace.dat" "$name: files"
	is "$(ticks trace-vm.dat)" 6300 "$name: its events"
	trace-cmd report -N -t -i "$dat" -i "$tmp/out/trace-vm.dat" >"$tmp/report" 2>&1
	is "$(awk '/: (sched_switch|kvm_entry|kvm_exit|guest_tick):/ { sub(/:.*/, "", $1)
			sub(/^.*trace/, "trace", $1); print $1 }' "$tmp/report" | uniq -c | awk '{ print $1, $2 }' | head -n 5)" \
		"1 trace.dat
12 trace-vm.dat
1 trace.dat
12 trace-vm.dat
1 trace.dat" "$name: the merged report"
	like "$(options trace.dat)" '^vm \[Guest name\]' "$name: GUEST names it"
	like "$(options trace.dat)" "^0x$(printf %X $id) \\[trace id\\]" "$name: GUEST has its trace id"
	is "$(options trace-vm.dat | grep -A 1 'Option TRACEID' | tail -n 1)" "0x$(printf %X $id)" "$name: TRACEID"
	is "$(printf %u "$(options trace.dat | grep -A 1 'Option TRACEID' | tail -n 1)")" \
		"$(sed -n 's/^asked \([0-9]*\):.*/\1/p' "$tmp/fine.log")" "$name: the host's TRACEID was told"
	like "$(options trace-vm.dat)" '^Linux guest 6.12.0' "$name: the guest's own options"
	untouched "$name"
}

over_tcp() {
	local name="${label}over TCP"

	new_tree
	where=tcp agent good fine
	record -e kvm -A "vm@127.0.0.1:$(sed -n 's/^listening //p' "$tmp/fine.log")" -- true
	end_agents
	is "$status" 0 "$name: exit status" || diag "$messages"
	is "$(ticks trace-vm.dat)" $all_ticks "$name: its events"
	for scenario in silent data-nobody; do
		new_tree
		where=tcp agent $scenario bad
		patience=$impatient record -e kvm -A "vm@127.0.0.1:$(sed -n 's/^listening //p' "$tmp/bad.log")" -- true
		end_agents
		is "$status" 1 "$name, $scenario: exit status"
		like "$messages" 'guest vm \(tcp:127.0.0.1:[0-9]+\): .*(silent for 2 s \(--guest-timeout\)|CPU 0: Connection refused)' \
			"$name, $scenario: message"
		bounded "$name, $scenario"
		is "$(files)" '*' "$name, $scenario: nothing is left"
	done
	record -e kvm -A "vm@127.0.0.1:1" -- true
	like "$messages" 'guest vm \(tcp:127.0.0.1:1\): connecting to its agent: Connection refused' "$name, nobody there"
}

names_and_options() {
	local dat=$tmp/out/x.y.z name="${label}names and options"

	new_tree
	agent good one
	agent good two 1 7
	record -e kvm -A "a@unix:$tmp/one" --name first -C mono -e net -f 'len > 9' -b 99 \
		-A "unix:$tmp/two" -e net -v -e foo -- true
	end_agents
	is "$status" 0 "$name: exit status" || diag "$messages"
	is "$(files)" "x.y-first.z x.y-two.z x.y.z" "$name: -o shapes all names"
	is "$(asked one)" "-C|mono|-e|net|-f|len > 9|-b|99" "$name: the first one's, with its own -C"
	is "$(asked two)" "-C|boot|-e|net|-v|-e|foo" "$name: the second one's"
	is "$(head -qn 1 "$tree"/events/{kvm,sched}/enable | tr '\n' ' ')" "1 0 " "$name: the host's"
	is "$(ticks x.y-first.z) $(ticks x.y-two.z)" "4200 2100" "$name: events of both"
	is "$(trace-cmd dump --options "$dat" | grep -B 1 '\[trace id\]' | grep -c 'Guest name')" 2 "$name: GUEST of both"
	like "$messages" 'first 4200 events, .*; two 2100 events, ' "$name: summary"
	untouched "$name"
}

refusals() {
	local name="${label}two of one name"

	new_tree
	agent good one
	record -e kvm -A "a@unix:$tmp/one" -A "b@unix:$tmp/one" --name a -- true
	is "$status" 1 "$name: exit status"
	like "$messages" "^hyptrace: two guests are called 'a': name one of them with --name" "$name: message"
	is "$(files)" '*' "$name: nothing is left"
	untouched "$name"
	end_agents

	name="${label}options longer than a message"
	agent good one
	record -e kvm -A "a@unix:$tmp/one" -e x -f "$(printf %09000d 0)" -- true
	end_agents
	is "$status" 1 "$name: exit status"
	like "$messages" 'guest a \(.*\): sending the request: Argument list too long' "$name: message"
	is "$(files)" '*' "$name: nothing is left"

	name="${label}an address by name"
	record -e kvm -A a@localhost:1 -- true
	is "$status" 1 "$name: exit status"
	like "$messages" "^hyptrace: guest a: 'localhost' is no numeric address" "$name: message"

	name="${label}a path that is too long"
	record -e kvm -A "a@unix:/$(printf %0600d 0)" -- true
	is "$status" 1 "$name: exit status"
	like "$messages" '^hyptrace: guest a: its address is too long' "$name: message"
	is "$(files)" '*' "$name: nothing is left"

	name="${label}a clock that the kernel has not"
	new_tree
	echo '[local] boot mono' >"$tree/trace_clock"
	state >"$tmp/before"
	record -e kvm -C bot -A "a@unix:$tmp/nobody" -- true
	is "$status" 1 "$name: exit status"
	is "$messages" "hyptrace: -C bot: no clock of this kernel (there are: [local] boot mono)" "$name: the guest is not asked"
	is "$(files)" '*' "$name: nothing is left"
	untouched "$name"

	name="${label}a guest alone"
	new_tree
	agent good one
	record -A "a@unix:$tmp/one" -- true
	end_agents
	is "$status" 0 "$name: exit status" || diag "$messages"
	is "$(files) $(ticks trace-a.dat)" "trace-a.dat $all_ticks" "$name: its file"
	untouched "$name"
}

# A VM in a /proc of our own: vCPU 2 comes and goes while it runs, 1 goes, and 3 comes
# last of all. All four ran in the recording.
hot_plug() {
	local name="${label}vCPUs plugged in" root=$tmp/root task=$tmp/root/proc/900/task tid

	new_tree
	rm -rf "$root"
	mkdir -p "$root/run" "$root/proc/900/fd" "$task"/{900,902,903} "$root"/coming/{904,905}
	ln -s /usr/bin/cloud-hypervisor "$root/proc/900/exe"
	ln -s / "$root/proc/900/root"
	printf '%s\0' cloud-hypervisor --vsock cid=3,socket=/run/vsock >"$root/proc/900/cmdline"
	for tid in 902 903; do echo "vcpu$((tid - 902))" >"$task/$tid/comm"; done
	for tid in 904 905; do echo "vcpu$((tid - 902))" >"$root/coming/$tid/comm"; done
	echo cloud-hyperviso >"$task/900/comm"
	where=$root/run/vsock agent good fine 4
	HYPTRACE_ROOT=$root record -e kvm -A "vm@unix:$root/run/vsock" -- sh -c '
		mv "$1/coming/904" "$2"
		while kill -0 $PPID && ! grep -q "^hyptrace: guest vm: found 1 more vCPU thread" "$3"; do sleep 0.01; done
		rm -r "$2/903" "$2/904"
		mv "$1/coming/905" "$2"' - "$root" "$task" "$tmp/err"
	end_agents
	is "$status" 0 "$name: exit status" || diag "$messages"
	is "$(options trace.dat | sed -n 's/ *\([0-9]* [0-9]*\) \[guest cpu, host pid\]/\1/p')" "0 902
1 903
2 904
3 905" "$name: GUEST has all threads"
	is "$("$build/tests/tools/loadkshark" -g "$dat" "$tmp/out/trace-vm.dat" | sed -n 's/^guest .*, threads //p')" \
		"902 903 904 905" "$name: KernelShark reads them"
	is "$(ticks trace-vm.dat)" 8400 "$name: its events"
	untouched "$name"
}

# Two that hang do so at the same time, and Ctrl-C ends the waiting.
waiting() {
	local name="${label}two that hang" start

	new_tree
	agent close-stall bad
	agent close-stall worse
	patience=10 record -e kvm -A "a@unix:$tmp/bad" -A "b@unix:$tmp/worse" -- true
	end_agents
	is "$status" 3 "$name: exit status"
	[ "$ms" -lt 20000 ] # or it would be one after the other
	ok $? "$name: at the same time" || diag "$ms ms"
	is "$(ticks trace-a.dat) $(ticks trace-b.dat)" "4000 4000" "$name: what they sent"

	name="${label}Ctrl-C while one is silent"
	new_tree
	agent silent bad
	start=${EPOCHREALTIME/./}
	"$hyptrace" record -o "$dat" -e kvm -A "a@unix:$tmp/bad" 2>"$tmp/err" &
	wait_for logged bad asked
	kill -INT $!
	wait $!
	is "$?" 1 "$name: exit status"
	[ $(((${EPOCHREALTIME/./} - start) / 1000)) -lt 20000 ]
	ok $? "$name: ends at once"
	end_agents
	is "$(files)" '*' "$name: nothing is left"
	untouched "$name"
}

# A guest that is never silent for long is waited for, though one answer takes longer than that.
slow() {
	local name scenario

	for scenario in good-slow-formats good-slow-end; do
		name="$label$scenario, slower than --guest-timeout"
		new_tree
		agent $scenario fine
		patience=4 record -e kvm -A "vm@unix:$tmp/fine" -- true
		end_agents
		is "$status" 0 "$name: exit status" || diag "$messages"
		[ "$ms" -ge 6000 ]
		ok $? "$name: $ms ms"
		is "$(ticks trace-vm.dat)" $all_ticks "$name: its events"
	done
}

# Print formats that cost whoever reads them: they are left out, and Ctrl-C ends it in the middle.
costly_formats() {
	local name scenario why

	for scenario in "print-elvis grows beyond" "print-calls is longer than" "print-fields names its fields more often than"; do
		read -r scenario why <<<"$scenario"
		name="$label$scenario"
		new_tree
		agent "$scenario" fine
		record -e kvm -A "vm@unix:$tmp/fine" -- true
		end_agents
		is "$status" 0 "$name: exit status" || diag "$messages"
		bounded "$name"
		like "$messages" "^hyptrace: warning: the print format of fake:costly0 $why any kernel's: it is left out\$" \
			"$name: is said"
		[ "$(wc -l <<<"$messages")" -lt 20 ]
		ok $? "$name: a few messages"
		is "$(ticks trace-vm.dat)" $all_ticks "$name: its events"
		untouched "$name"

		new_tree
		agent "$scenario" fine
		timeout -s KILL $limit "$hyptrace" record -o "$dat" -e kvm -A "vm@unix:$tmp/fine" 2>"$tmp/err" &
		wait_for logged fine asked
		kill -INT "$(ps -o pid= --ppid $!)"
		wait $!
		[ $? -le 1 ]
		ok $? "$name: Ctrl-C ends it" || diag "$(<"$tmp/err")"
		end_agents
		untouched "$name, Ctrl-C"
	done
}

# hold_up FILE: what writes to it is held up until somebody reads it.
hold_up() {
	rm "$tree/$1"
	mkfifo "$tree/$1"
}

both_written() {
	[ -e "$dat" ] && [ -e "$tmp/out/trace-vm.dat" ] && [ ! -e "$tmp/out/trace-vm.dat.spool" ]
}

# In which order things are done shows by who waits for whom: the other way round these hang.
order() {
	local name="${label}a guest is asked while the host is set up" pid

	new_tree
	hold_up trace
	agent good fine
	"$hyptrace" record -o "$dat" -e kvm -A "vm@unix:$tmp/fine" -- true 2>"$tmp/err" &
	pid=$!
	wait_for logged fine asked
	ok $? "$name: before the host's buffer is even cleared"
	cat "$tree/trace"
	wait $pid
	is "$?" 0 "$name: exit status" || diag "$(<"$tmp/err")"
	is "$(ticks trace-vm.dat)" $all_ticks "$name: its events"
	end_agents

	name="${label}an error of the host's ends the asking"
	new_tree
	agent silent bad
	record -e nonsense -A "vm@unix:$tmp/bad" -- true
	is "$status" 1 "$name: exit status"
	like "$messages" "^hyptrace: -e nonsense: no such event" "$name: message"
	unlike "$messages" "guest vm" "$name: the guest is not blamed"
	end_agents
	is "$(files)" '*' "$name: nothing is left"
	untouched "$name"

	name="${label}a guest that traces by itself"
	new_tree
	agent good-data-after-host fine
	record -e kvm -A "vm@unix:$tmp/fine" -- true
	end_agents
	is "$status" 0 "$name: the host does not wait until it is connected" || diag "$messages"
	is "$(ticks trace-vm.dat)" $all_ticks "$name: its events"
	new_tree
	agent good-rest-after-hyp fine
	record -e kvm -B hyp -A "vm@unix:$tmp/fine" -- true
	end_agents
	is "$status" 0 "$name: the hypervisor does not wait until it is ready" || diag "$messages"
	is "$(ticks trace-vm.dat)" $all_ticks "$name: its events"

	name="${label}what is to be put back takes long"
	new_tree
	agent good fine
	"$hyptrace" record -o "$dat" -e kvm -A "vm@unix:$tmp/fine" 2>"$tmp/err" &
	pid=$!
	wait_for logged fine data
	cp "$tree/trace_clock" "$tmp/clock"
	hold_up trace_clock
	kill -INT $pid
	wait_for both_written
	ok $? "$name: the files are written meanwhile"
	is "$(files)" "trace-vm.dat trace.dat trace.dat.spool" "$name: the journal is kept until it is done"
	cat "$tree/trace_clock" >"$tmp/put-back"
	wait $pid
	is "$?" 0 "$name: exit status" || diag "$(<"$tmp/err")"
	is "$(<"$tmp/put-back")" local "$name: it is put back"
	is "$(files)" "trace-vm.dat trace.dat" "$name: no spool is left"
	end_agents
}

# A recorder is killed once it has all that the agent sends before CLOSE: 20 pages of each CPU.
kill_recorder() {
	new_tree
	agent good fine
	"$hyptrace" record -o "$dat" -e kvm -A "vm@unix:$tmp/fine" 2>"$tmp/err" &
	wait_for sh -c '[ "$(cat "$1"/pages/0.* 2>/dev/null | wc -c)" -eq 163840 ]' - "$tmp/out/trace-vm.dat.spool"
	kill -KILL $!
	wait $! 2>/dev/null
	end_agents
}

killed_together() {
	local name="${label}kill -9, recovered together"

	kill_recorder
	cp -r "$tmp/out/trace-vm.dat.spool" "$tmp/out/trace-other.dat.spool"
	printf 'host_traceid\t1\n' >>"$tmp/out/trace-other.dat.spool/session"
	"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
	is "$?" 0 "$name: exit status" || diag "$(<"$tmp/err")"
	like "$(<"$tmp/err")" "^hyptrace: guest vm: $tmp/out/trace-vm.dat$" "$name: names the guest's file"
	like "$(<"$tmp/err")" "^hyptrace: host [0-9.]*[BK]; vm 160K: $dat, " "$name: ... and its buffer in the summary"
	host_is_there "$name"
	is "$(ticks trace-vm.dat)" 4000 "$name: the guest's file"
	like "$(<"$tmp/err")" "^hyptrace: warning: guest vm: its clock could not be tied to the host's: " \
		"$name: its clock was compared, which these few events do not bound"
	like "$(options trace.dat)" '^vm \[Guest name\]' "$name: GUEST names it"
	is "$(files)" "trace-other.dat.spool trace-vm.dat trace.dat" "$name: no spool is left but another recording's"
	untouched "$name"

	kill_recorder
	"$hyptrace" recover -o "$tmp/out/new.dat" "$dat.spool" 2>"$tmp/err"
	is "$? $(files)" "0 new-vm.dat new.dat" "$name, -o: both files are named for it"
}

killed() {
	local name="${label}kill -9" spool=$tmp/out/trace-vm.dat.spool

	kill_recorder
	agent good fine
	record -e kvm -A "vm@unix:$tmp/fine" -- true
	end_agents
	is "$status" 1 "$name: the spools are not overwritten"
	"$hyptrace" recover "$spool" 2>"$tmp/err"
	is "$?" 0 "$name: recover of the guest's: exit status"
	like "$(cat "$tmp/err")" "^hyptrace: vm 160K: $tmp/out/trace-vm.dat, " "$name: ... whose buffer has its name"
	unlike "$(cat "$tmp/err")" 'rebooted' "$name: recover knows that nobody has rebooted"
	is "$(ticks trace-vm.dat)" 4000 "$name: the guest's file"
	"$hyptrace" report -i "$tmp/out/trace-vm.dat" 2>"$tmp/err" >"$tmp/report"
	is "$(tail -n 4 "$tmp/report" | grep -o 'n=[0-9]*\|^CPU:.*')"$'\n'"$(grep -c DROPPED "$tmp/report")" \
		$'n=1999\nCPU:0 [EVENTS DROPPED]\nn=1999\nCPU:1 [EVENTS DROPPED]\n2' \
		"$name: ... says that what its agent had not sent is lost, of each CPU"
	"$hyptrace" recover "$dat.spool" 2>"$tmp/err"
	is "$?" 0 "$name: recover of the host's: exit status"
	host_is_there "$name"
	is "$(files)" "trace-vm.dat trace.dat" "$name: no spool is left"
	untouched "$name"
}

good_ones() {
	good good
	good good-v6
	good good-zipped
	over_tcp
	names_and_options
	refusals
	hot_plug
	costly_formats
	order
	killed
	killed_together
}

waited_for() {
	waiting
	slow
}

# job NAME BUILD COMMAND...: beside others, in a directory of its own; its tests are in $tmp/NAME.tap
job() {
	local name=$1

	label='' hyptrace=$2
	[ "$2" = "$build/hyptrace" ] || label='ASan: '
	(
		tmp=$tmp/$name tests_run=0 tests_failed=0
		tree=$tmp/tracefs dat=$tmp/out/trace.dat
		export HYPTRACE_TRACING_DIR=$tree
		mkdir "$tmp"
		"${@:3}"
	) >"$tmp/$name.tap" 2>"$tmp/$name.diag" &
}

# Much of the time is spent waiting: several wait at the same time.
patience=$patient
if [ ! -x "$sanitised" ]; then
	diag "no $sanitised (make SAN=1): the plain one does all"
	sanitised=$build/hyptrace
else
	job good-san "$sanitised" good_ones
	job waited-for-san "$sanitised" waited_for
fi
job good "$build/hyptrace" good_ones
job waited-for "$build/hyptrace" waited_for
how=alone
job alone "$build/hyptrace" broken fast 0 1 1
how=beside
job beside-0 "$sanitised" broken fast 0 2 0 1 3
job beside-1 "$sanitised" broken fast 1 2 0 1 3
patience=$impatient
for part in 0 1 2; do
	how=alone
	job slow-alone-$part "$build/hyptrace" broken slow $part 3 1
	how=beside
	job slow-beside-$part "$sanitised" broken slow $part 3 1 3
done
wait
cat "$tmp"/*.diag >&2
while read -r line; do
	tests_run=$((tests_run + 1))
	[ "${line%%ok *}" != "not " ] || tests_failed=$((tests_failed + 1))
	echo "${line%%ok *}ok $tests_run ${line#*ok * }"
done < <(cat "$tmp"/*.tap)
done_testing
