#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recordings that overlap, on a FAKE of tracefs (fake-android.c): one of each buffer
# at a time is let in, and whichever ends first, tracefs is as before. All orders
# of begin, end, kill and recover are in tests/unit/locks.c, by the calls; here
# are whole processes, and in tests/lab/t/13-restore.t those of a real tracefs.
# shellcheck disable=SC2016,SC2317 # awk has its own $; called by wait_for
[ ! -w /dev/shm ] || export TMPDIR="${TMPDIR:-/dev/shm}"
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tree=$tmp/tracefs
export HYPTRACE_TRACING_DIR=$tree
bare_machine

# ---- helpers -----------------------------------------------------------------

# Two instances that were there before; no pages in any buffer.
"$build/tests/integration/fake-android" "$tree" android16
for instance in mine other; do
	mkdir "$tree/instances/$instance"
	(cd "$tree" && cp -r events per_cpu options set_* trac* current_tracer buffer_* "instances/$instance")
done
find "$tree" -name trace_pipe_raw >"$tmp/pipes"
while read -r pipe; do
	rm "$pipe"
	mkfifo "$pipe"
	exec {fd}<>"$pipe"
done <"$tmp/pipes"
echo 128 >"$tree/saved_cmdlines_size"
control_files "$tree" "*/events/*/enable" >"$tmp/before"

untouched() {
	control_files "$tree" "*/events/*/enable" >"$tmp/after"
	same "$tmp/after" "$tmp/before" "$1: tracefs is as before"
}

# The options of a recording of each buffer.
options() {
	case $1 in
	top) echo "-C mono -b 500 -e kvm" ;;
	mine | other) echo "-B $1 -C mono -b 500 -e kvm" ;;
	shared) echo "-B mine -e kvm --cmdlines-size 500" ;;
	hyp) echo "-B hyp -b 500" ;;
	esac
}

declare -A pids statuses

recording_or_gone() {
	grep -qs "^state	armed" "$tmp/$1.dat.spool/session" || ! kill -0 "${pids[$1]}" 2>/dev/null
}

# begin NAME BUFFER: returns when it records, or has failed
begin() {
	# shellcheck disable=SC2046
	"$hyptrace" record -o "$tmp/$1.dat" $(options "$2") >"$tmp/$1.err" 2>&1 &
	pids[$1]=$!
	wait_for recording_or_gone "$1"
}

finish() {
	kill -s "${2:-INT}" "${pids[$1]}" 2>/dev/null
	wait "${pids[$1]}" 2>/dev/null
	statuses[$1]=$?
}

recover() {
	"$hyptrace" recover "$tmp/$1.dat.spool" >"$tmp/$1.err" 2>&1
	statuses[$1]=$?
}

said() {
	cat "$tmp/$1.err"
}

# ---- two of one buffer -------------------------------------------------------------

for buffer in top mine hyp; do
	case $buffer in
	top) names="the top buffer" ;;
	mine) names="the buffer 'mine'" ;;
	hyp) names="the hypervisor's buffer" ;;
	esac
	for order in "a b" "b a"; do
		begin a $buffer
		begin b $buffer
		for name in $order; do
			finish "$name"
		done
		is "${statuses[a]} ${statuses[b]}" "0 1" "two of $buffer, ended $order: the second is refused" ||
			diag "$(said a; said b)"
		like "$(said b)" "another hyptrace \\(pid ${pids[a]}\\) records $names: wait for its end" \
			"... and told which buffer, who records it and what to do"
		is "$(ls -d "$tmp"/b.dat* 2>/dev/null)" "" "... no file, no spool"
		untouched "two of $buffer, ended $order"
	done
done

# ---- of different buffers ----------------------------------------------------------

for pair in "top mine" "mine other" "top hyp" "mine hyp"; do
	read -r first second <<<"$pair"
	for order in "a b" "b a"; do
		begin a "$first"
		begin b "$second"
		for name in $order; do
			finish "$name"
		done
		is "${statuses[a]} ${statuses[b]}" "0 0" "$first and $second, ended $order" || diag "$(said a; said b)"
		untouched "$first and $second, ended $order"
	done
done

for order in "a b c" "a c b" "b a c" "b c a" "c a b" "c b a"; do
	begin a top
	begin b mine
	begin c hyp
	begin d top
	for name in $order d; do
		finish "$name"
	done
	is "${statuses[a]} ${statuses[b]} ${statuses[c]} ${statuses[d]}" "0 0 0 1" \
		"top, mine and hyp, ended $order; a second one of top is refused" || diag "$(said a; said b; said c)"
	untouched "top, mine and hyp, ended $order"
done

# ---- what buffers share ------------------------------------------------------------

begin a top
begin b shared
finish a
finish b
is "${statuses[a]} ${statuses[b]}" "0 1" "a file of the top buffer, asked for by an instance's recording"
like "$(said b)" "records the top buffer, which 'saved_cmdlines_size' is part of" "... it is said which"
untouched "a file of the top buffer"
begin a shared
begin b top
finish a
finish b
is "${statuses[a]} ${statuses[b]}" "0 1" "... and the other way round" || diag "$(said a; said b)"
untouched "... and the other way round"

# ---- kill -9 -----------------------------------------------------------------------

begin a top
finish a KILL
begin b top
finish b
if [ -w /run ]; then
	is "${statuses[b]}" 1 "killed: another is not begun before it is put back"
	like "$(said b)" "a killed recording still holds the top buffer; run: hyptrace recover $tmp/a.dat.spool$" \
		"... and told which one to recover"
else
	skip 2 "/run cannot be written to: nobody notes who has died"
fi
begin c mine
recover a
finish c
is "${statuses[a]} ${statuses[c]}" "0 0" "killed, and recovered beside a recording of another buffer" ||
	diag "$(said a; said c)"
untouched "killed, and recovered beside a recording of another buffer"
begin b top
finish b
is "${statuses[b]}" 0 "... then the next is begun"
untouched "... and ended"

begin a top
finish a KILL
mv "$tmp/a.dat.spool" "$tmp/moved.dat.spool"
begin b top
recover moved
is "${statuses[moved]}" 1 "recovered beside a recording of the same buffer: refused"
like "$(said moved)" "another hyptrace \\(pid ${pids[b]}\\) records the top buffer" "... and told who records it"
[ -s "$tmp/moved.dat.spool/undo" ]
ok $? "... its journal is kept"
finish b
recover moved
is "${statuses[b]} ${statuses[moved]}" "0 0" "... and works after its end" || diag "$(said b; said moved)"
untouched "... and after its end"

# The command of a recorder that is killed lives on.
mkfifo "$tmp/go"
"$hyptrace" record -o "$tmp/a.dat" -e kvm -- sh -c "echo \$\$ >$tmp/child; read x <$tmp/go" 2>"$tmp/a.err" &
pids[a]=$!
wait_for test -s "$tmp/child"
finish a KILL
kill -0 "$(<"$tmp/child")"
ok $? "a killed recorder's command lives on"
recover a
is "${statuses[a]}" 0 "... and holds no lock" || diag "$(said a)"
echo >"$tmp/go"
untouched "killed while its command ran"

# ---- the agent -----------------------------------------------------------------------

daemon() {
	pgrep -f -- "--listen unix:$tmp/agent"
}

no_daemon() {
	! daemon >/dev/null
}

"$build/hyptrace-agent" -D --listen "unix:$tmp/agent" --early kvm:kvm_exit --journal "$tmp/journal" 2>"$tmp/agent.err"
is "$?" 0 "an agent that records from the start, in the background" || diag "$(cat "$tmp/agent.err")"
begin a top
finish a
is "${statuses[a]}" 1 "... keeps the top buffer"
like "$(said a)" "another hyptrace \\(pid $(daemon)\\) records the top buffer" "... by its own pid"
kill "$(daemon)"
wait_for no_daemon
begin a top
finish a
is "${statuses[a]}" 0 "... until it ends"
"$build/hyptrace-agent" -D --listen "unix:$tmp/no/agent" --early kvm:kvm_exit --journal "$tmp/journal" 2>"$tmp/agent.err"
is "$?" 1 "one that cannot listen says so, in the background too"
like "$(cat "$tmp/agent.err")" "cannot listen on unix:$tmp/no/agent" "... and why"
untouched "agents that ended"

done_testing
