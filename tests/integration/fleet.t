#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Documentation/fleet.md: its commands and its query for DuckDB, over a hundred generated recordings whose
# answer is known.
. tests/integration/lib.sh

. tests/integration/fleet-hosts.sh

hosts=100 visits=200 preemptions=20
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build
root=$PWD

# ---- collecting ---------------------------------------------------------------------------------

mkdir -p "$tmp/units" "$tmp/host" "$tmp/store/recordings"
for unit in hyptrace-ship.path hyptrace-ship.service; do
	guide_block "ini $unit" >"$tmp/units/$unit"
done
send=$(sed -n 's/^ExecStart=//p' "$tmp/units/hyptrace-ship.service")
like "$send" '^/usr/bin/rsync .* /var/lib/hyptrace/ traces@store:/srv/traces/recordings/%H/$' "the unit sends to the store"
# of a machine without rsync, too
sed -i "s,=/usr/bin/rsync,=$(command -v rsync || command -v true)," "$tmp/units/hyptrace-ship.service"
if command -v systemd-analyze >/dev/null; then
	is "$(systemd-analyze verify --man=no "$tmp/units"/hyptrace-ship.* 2>&1 | grep hyptrace)" "" "the units that send recordings are valid"
else
	skip 1 "no systemd-analyze"
fi
for guest in "" -Guest; do
	cp "tests/data/guest/trace$guest.dat" "$tmp/host/flight-20261126-101112$guest.001.dat"
done
touch "$tmp/host/flight-20261126-101112.002.dat.part"
if command -v rsync >/dev/null; then
	send=${send//%H/web01}
	send=${send/\/var\/lib\/hyptrace\//$tmp/host/}
	(set -f; ${send/traces@store:\/srv\/traces/$tmp/store})
	is "$? $(cd "$tmp" && find host store -type f | sort | xargs)" "0 host/flight-20261126-101112.002.dat.part store/recordings/web01/flight-20261126-101112-Guest.001.dat store/recordings/web01/flight-20261126-101112.001.dat" \
		"... complete ones, which leave the host"
else
	skip 1 "no rsync"
	mkdir "$tmp/store/recordings/web01"
	mv "$tmp"/host/*.dat "$tmp/store/recordings/web01"
fi
for time in first second; do
	(cd "$tmp/store" && PATH=$build:$PATH bash -euc "$(guide_block 'sh collected')") >"$tmp/out" 2>&1
	is "$? $(cat "$tmp/out") $(cd "$tmp/store" && "$build/tests/tools/parquetread" tables/*/*/*/table=recordings/*.parquet | sed 's/ .*//' | uniq -c)" \
		"0        2 tables/host=web01/date=2026-11-26/run=20261126-101112.001/table=recordings" "their tables by host and day, with the guest's file, the $time time"
done
if command -v systemd-tmpfiles >/dev/null; then
	guide_block "tmpfiles hyptrace.conf" | sed 's/[0-9]*d$/0/' >"$tmp/hyptrace.conf"
	mkdir -p "$tmp/root/srv" "$tmp/root/var/lib/hyptrace/flight.dat.spool"
	cp -r "$tmp/store" "$tmp/root/srv/traces"
	touch "$tmp/root/var/lib/hyptrace"/flight.dat{,.spool/buffers}
	systemd-tmpfiles --root="$tmp/root" --clean "$tmp/hyptrace.conf" 2>"$tmp/err"
	is "$? $(cat "$tmp/err") $(cd "$tmp/root" && find * -type f)" "0  var/lib/hyptrace/flight.dat.spool/buffers" \
		"what is old is removed, on the host and in the store, but for a recording that runs"
else
	skip 1 "no systemd-tmpfiles"
fi

# ---- a hundred hosts -----------------------------------------------------------------------------

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

# known KIND: the known lines of that kind, without the word
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
is "$(query "$(guide_block 'sql counts')" | wc -l)" "$(sed -E 's,.*/host=([^/]*)/.*"event":"([^"]*)".*,\1 \2,' "$tmp/rows" | sort -u | wc -l)" \
	"the query over all events has each host and event"
done_testing
