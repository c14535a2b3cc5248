#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What each command prints with --json is what Documentation/json.schema.json says (list, doctor and top on
# fakes: list.t, doctor.t and live.t).
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HYPTRACE_TRACING_DIR=$tmp/no-tracefs HYPTRACE_ROOT=$tmp/root

mkdir -p "$tmp/root/proc"

# ---- the checker ------------------------------------------------------------------------------------

# JSON|what differs
while IFS='|' read -r text expected; do
	is "$(json_differs stat <<<"$text")" "$expected" "the checker: $text"
done <<'E2'
{"schema":1,"buffers":[{"machine":"host","lost":null,"wall_ns":7}],"notes":["x"]}|
{"schema":2}|stat: schema is not 1
{"notes":[]}|stat: has no schema
{"notes":|stat: is no JSON
{"schema":1,"buffers":[{"nosuch":1}]}|stat.buffers[0]: nosuch is not in the schema
{"schema":1,"buffers":[{"count":"7"}]}|stat.buffers[0].count: is string, not integer
{"schema":1,"hyp":[{"max_ns":1.5}]}|stat.hyp[0].max_ns: is number, not integer or null
{"schema":1,"hyp":{}}|stat.hyp: is object, not array
E2

# ---- commands ---------------------------------------------------------------------------------------

for command in $("$hyptrace" -h | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p'); do
	"$hyptrace" "$command" -h | grep -q -e '--json' || continue
	case $command in export|report) continue ;; esac # a line for each event, with its own fields
	json_differs "$command" <<<'{}' >/dev/null 2>"$tmp/err"
	[ ! -s "$tmp/err" ]
	ok $? "the schema has $command" || diag "$(<"$tmp/err")"
	grep -q "hyptrace-$command(1)" Documentation/json.md
	ok $? "... and json.md"
done

data=tests/data
checked() { # COMMAND ARG...
	local command=$1

	shift
	"$hyptrace" "$command" --json "$@" >"$tmp/json" 2>"$tmp/err"
	is "$(if [ -s "$tmp/json" ]; then json_differs "$command" <"$tmp/json" 2>&1 | head -5; else cat "$tmp/err"; fi)" "" \
		"$command --json $*"
}
all=$("$hyptrace" stat -h | sed -n '/--show/,/--per/{//d; s/^ *//p}' | xargs | tr ' ' ,)
like "$all" '^buffers,lost,.*,faults,.*,longest$' "the tables of stat"
for files in $data/functions/trace.dat,$data/functions/trace-Guest.dat $data/vhost/vhost.dat,$data/vhost/vhost-Guest.dat \
	$data/x86/trace.dat $data/lab-protected.dat; do
	IFS=, read -ra files <<<"$files"
	checked stat --show $all --by 10ms "${files[@]}"
	checked stat --per vcpu "${files[@]}"
	checked path --at kvm_exit "${files[@]}"
	checked latency --from kvm_exit --to kvm_exit --key vcpu --worst 2 "${files[@]}"
done
checked stat --show cpu $data/profile/trace.dat
checked stat $data/sync/trace.dat # events without a format
checked latency --preset virtio --worst 2 $data/vhost/vhost.dat $data/vhost/vhost-Guest.dat
checked why --preset virtio --tail 90 $data/vhost/vhost.dat $data/vhost/vhost-Guest.dat
checked why $data/vhost/vhost.dat $data/vhost/vhost-Guest.dat
checked why --preset hypercall $data/x86/trace.dat $data/x86/trace-Guest.dat
checked sync $data/vhost/vhost.dat $data/vhost/vhost-Guest.dat
checked diff $data/vhost/standard.dat $data/vhost/standard-Guest.dat $data/vhost/vhost.dat $data/vhost/vhost-Guest.dat
checked diff --per kvm_exit $data/vhost/standard.dat $data/vhost/vhost.dat
checked flame $data/functions/trace.dat $data/functions/trace-Guest.dat
checked flame --states $data/x86/trace.dat
checked flame --states --diff $data/x86/trace.dat $data/x86/trace.dat
checked why --diff $data/vhost/standard.dat $data/vhost/vhost.dat
checked flame --diff $data/functions/trace.dat $data/lab-protected.dat
checked sql $data/lab-protected.dat "SELECT 1 AS a, 'x' AS b, 1.5 AS c, NULL AS d; SELECT 2;"
checked sql $data/lab-protected.dat .tables
checked doctor
checked list

done_testing
