#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One vocabulary on all command lines: help, versions, mistyped words.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HYPTRACE_TRACING_DIR=$tmp/no-tracefs

# ---- help, and what is mistyped ----------------------------------------------------------------

commands=$("$hyptrace" -h | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
for command in $commands; do
	is "$("$hyptrace" help "$command" 2>&1)" "$("$hyptrace" "$command" -h 2>&1)" "help $command is $command -h"
done
is "$("$hyptrace" help)" "$("$hyptrace" -h)" "help alone lists the commands"
is "$("$hyptrace" -V)" "$("$hyptrace" --version)" "-V is --version"
is "$("$build/hyptrace-agent" -V)" "$("$build/hyptrace-agent" --version)" "... of the agent, too"

# WORDS|the message, status 2
while IFS='|' read -r words expected; do
	# shellcheck disable=SC2086
	err=$("$hyptrace" $words 2>&1 >"$tmp/out")
	is "$? $err" "2 $expected" "hyptrace $words"
done <<'E2'
stta|hyptrace: no command 'stta': did you mean 'stat'? (hyptrace -h lists all)
help lattency|hyptrace: no command 'lattency': did you mean 'latency'? (hyptrace -h lists all)
nothing|hyptrace: no command 'nothing' (hyptrace -h lists all)
report --nosuch|hyptrace report: unknown or ambiguous option '--nosuch' (see hyptrace report -h)
stat --jsno|hyptrace stat: unknown or ambiguous option '--jsno': did you mean '--json'? (see hyptrace stat -h)
top -w 0|hyptrace top: -w 0: must be at least 1ms
top -w 2min|hyptrace top: -w 2min: must be at most 1min
stat --by 0.1ns|hyptrace stat: -b 0.1ns: must be at least 1ns
path --within 10 ms|hyptrace path: specify --at TIME or --at EVENT
path --within 10xs|hyptrace path: -w 10xs: not a duration such as 250us, 10ms, 2s
record -b 8Q|hyptrace record: -b 8Q: not a size such as 64K, 8M, 2G
record --flight 10ms|hyptrace record: --flight 10ms: must be at least 1s
record --guest-timeuot 3|hyptrace record: unknown or ambiguous option '--guest-timeuot': did you mean '--guest-timeout'? (see hyptrace record -h)
E2

# ---- fixed words: each that a shell completes is taken ---------------------------------------------

while read -r command option rest; do
	for word in $("$hyptrace" --complete "$command" "$option" ""); do
		# shellcheck disable=SC2086
		err=$("$hyptrace" "$command" "$option" "$word" $rest 2>&1)
		[[ $? != 2 && $err != *"not one of"* ]]
		ok $? "$command $option $word" || diag "$err"
	done
done <<'E2'
stat --show tests/data/guest/trace.dat
latency --preset tests/data/guest/trace.dat
record --tsync -e kvm
record --compression -e kvm
record --preset -e kvm
E2

files=(tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat)
is "$("$hyptrace" flame -q --guest Guest "${files[@]}" | sha1sum)" "$("$hyptrace" flame -q --machine Guest "${files[@]}" | sha1sum)" \
	"flame --guest is --machine"
like "$("$hyptrace" flame -q --guest host "${files[@]}")" '^host;' "... host is the host"

# ---- the pager: of all that answer at length ----------------------------------------------------

on_tty() { # COMMAND...
	TERM=xterm timeout 60 script -qec "$(printf '%q ' "$@")" /dev/null </dev/null 2>&1 | tr -d '\r' | sed 's/.*\x1b\[K//' # progress, wiped
}
if command -v script >/dev/null; then
	files=(tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat)
	while read -r words; do
		# shellcheck disable=SC2086
		is "$(HYPTRACE_PAGER='sed s/^/P:/' on_tty "$hyptrace" $words "${files[@]}" | grep -vcE '^(P|hyptrace):')" 0 "$words: by the pager"
		# shellcheck disable=SC2086
		is "$(HYPTRACE_PAGER='sed s/^/P:/' on_tty "$hyptrace" --no-pager $words "${files[@]}" | grep -c ^P:)" 0 \
			"... and not with --no-pager"
	done <<'E2'
report -q
stat -q
stat -h
latency -q --preset irq
path -q --at sched_switch
diff -q
sync
flame -q
E2
	is "$(HYPTRACE_PAGER='sed s/^/P:/' on_tty "$hyptrace" sql -q "${files[@]}" "SELECT 7 AS a" | paste -sd' ')" "P:a P:7" \
		"sql with a query, too"
else
	skip 17 "no script(1)"
fi

done_testing
