#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Documentation/fleet.md: its commands and its query for DuckDB, over a hundred generated recordings whose
# answer is known.
. tests/integration/lib.sh

. tests/integration/fleet-hosts.sh

hosts=100 visits=200 preemptions=20
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build
root=$PWD

fleet_hosts "$tmp" $hosts $visits $preemptions
is "$(ls -d "$tmp"/recordings/*/*.dat | wc -l)" $((hosts + hosts / 4)) "$hosts hosts have recordings, some with a guest's"

start=$SECONDS
(cd "$tmp" && PATH=$build:$PATH bash -euc "$(guide_block sh)") >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "the guide's commands export them"
echo "# $hosts exports: $((SECONDS - start)) s, $(du -sk "$tmp/recordings" | cut -f1) KiB of recordings, $(du -sk --apparent-size "$tmp/fleet" | cut -f1) KiB of tables in $(find "$tmp/fleet" -type f | wc -l) files"
is "$(ls -A "$tmp/fleet")" "$(printf 'host=web%03d\n' $(seq $hosts))" "each host has a directory, and nothing else is there"
files=$(find "$tmp/fleet" -name '*.parquet' | sort)
"$build/tests/tools/parquetread" $files >"$tmp/rows"
is "$?" 0 "every file is sound"
# two of each, 4 more of the top buffer, one loss at the end, the guests'
is "$(wc -l <"$tmp/rows")" $((hosts * (2 * (visits + preemptions) + 5) + hosts / 4)) "all events are there"

# known KIND: those lines, without the word
known() {
	sed -n "s/^$1 //p" "$tmp/known"
}

expected=$(known visit | fleet_sums | sort -t$'\t' -k4,4nr -k1,1 | head -n 5 | jq -Rc 'split("\t") as [$key, $n, $sum, $max] |
	($key | split(" ")) as [$host, $reason] | { $host, reason: ($reason | fromjson), $n, total_ns: $sum, max_ns: $max }')
(cd "$tmp" && PATH=$build:$PATH bash -euc "$(guide_block 'sh tables')") >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "the guide's commands export the tables of visits and states"
is "$(find "$tmp/tables" -type f | wc -l)" $((3 * hosts)) "... three files for each host"
# a recording of a real host, whose answer is sql's
steal="tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat"
"$build/hyptrace" export -q --parquet "$tmp/tables/host=steal" --tables vcpu_states,recordings $steal
"$build/hyptrace" sql -q --json $steal "SELECT other_name, dur FROM vcpu_states WHERE state = 'preempted'" |
	jq -r '.rows[] | "preempted steal \(.other_name) 6.1.0-50-amd64\t\(.dur)"' >>"$tmp/known"
duckdb=$(tests/tools/duckdb ready)
if [ $? != 0 ]; then
	skip 10 "$duckdb"
	done_testing
	exit
fi

# query SQL...: all of it in the directory above fleet/
query() {
	(cd "$tmp" && printf '%s\n' "$@" | "$root/tests/tools/duckdb" query)
}

like "$expected" '^\{"host":"web[0-9]*","reason":[145],"n":"6[67]",' "an answer is known"
start=$SECONDS
is "$(query "$(guide_block 'sql duckdb')" "$(guide_block 'sql query')")" "$expected" "the guide's query gives it, losses left out"
echo "# the query: $((SECONDS - start)) s"
is "$(query "$(guide_block 'sql duckdb')" "$(guide_block 'sql query' | sed 's/^LIMIT 5;/;/')" |
	perl -ne '$n += $1 if /"n":"(\d+)"/; END { print $n }')" "$(known visit | wc -l)" \
	"... of every time that is known, and of no other"
is "$(query "$(guide_block 'sql duckdb')" "$(guide_block 'sql query' | sed 's/^LIMIT 5;/;/')" |
	perl -ne '$n += $1 if /"total_ns":"(\d+)"/; END { print $n }')" "$(known visit | awk '{ n += $3 } END { print n }')" \
	"... with visits that touch, and that take no time"

# The same by the table of visits, whose reasons are words (the events have none for 4): of all hosts
is "$(query "$(guide_block 'sql visits' | sed 's/^LIMIT 5;/;/')" | jq -r '["\(.host) \(.reason)", .n, .total_ns, .max_ns, .p99_ns] | @tsv' | sort)" \
	"$(known visit | sed "$fleet_words" | fleet_sums)" "the query over the tables of visits gives every host's, and their 99th percentile"
is "$(query "$(guide_block 'sql visits')" | jq -c '[.host, .n, .total_ns, .max_ns]')" "$(jq -c '[.host, .n, .total_ns, .max_ns]' <<<"$expected")" \
	"... and the longest are those of the events"
is "$(query "$(guide_block 'sql preempted')" | jq -r '["\(.preempted_by)", .n, .total_ns, .max_ns, .p99_ns] | @tsv' | sort)" \
	"$(known preempted | sed 's/^[^ ]* //; s/ [^ ]*\t/\t/' | fleet_sums)" "... and who preempted vCPUs"
is "$(query "$(guide_block 'sql preempted')" | jq -r '"\(.hosts) \(.preempted_by)"' | sort)" \
	"$(known preempted | sed 's/ [^ ]*\t.*//' | sort -u | sed 's/^[^ ]* //' | sort | uniq -c | sed 's/^ *//' | sort)" "... on how many hosts"
is "$(query "$(guide_block 'sql kernels')" | jq -r '["\(.preempted_by) \(.kernel)", .n, .total_ns, .max_ns, .p99_ns] | @tsv' | sort)" \
	"$(known preempted | sed 's/^[^ ]* //' | fleet_sums)" "... by kernel version, too"
is "$(query "$(guide_block 'sql counts')" | wc -l)" "$("$build/tests/tools/parquetread" $files >/dev/null; for f in $files; do dirname "${f#*host=}" | sed 's,/.*/, ,'; done | sort -u | wc -l)" \
	"the query over all events has each host and event"
done_testing
