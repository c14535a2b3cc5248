#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Documentation/fleet.md: its commands and its query for DuckDB, over a hundred generated recordings whose
# answer is known.
. tests/integration/lib.sh

hosts=100 spans=200
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build
root=$PWD

# block KIND: the guide's code block behind ```KIND
block() {
	sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$root/Documentation/fleet.md" | grep -v '^```'
}

# The script of host I for make-trace: times in the hypervisor on two CPUs; of every tenth host events
# were lost in one. Some visits begin as the one before ends, some end as they begin. Of every tenth host the kernel
# is Android's. The times that are known go to standard error: HOST REASON NS
host_script() { # I
	perl -e 'my ($i, $spans) = @ARGV;
		my $host = sprintf "web%03d", $i;
		my @reasons = (1, 4, 5);
		print "id 11\nguest vm1 22 0:100\ntask 100 CPU 0/KVM\n";
		print "1000000000 0 7 sched_switch\ta\t7\t120\t1\tCPU 0/KVM\t100\t120\n";
		print "1000000100 1 7 irq_handler_entry\t27\ttimer\n";
		print "lost 1 5\n1000000900 1 7 irq_handler_exit\t27\t1\n";	# of another buffer
		print "buffer hyp\n";
		my @ts = (1000001000, 1000001500);
		for my $k (0 .. $spans - 1) {
			my ($cpu, $reason) = ($k % 2, $reasons[($i + $k) % 3]);
			my $ns = $k % 17 == 4 ? 0 : 100 + ($i * 7919 + $k * 104729) % 50000;
			my ($system, $fields) = $i % 10 == 5 ? ("hyp", "") : ("hypervisor", "\t$reason\t100");
			my $lost = $i % 10 == 0 && $k == 10;
			printf "%d %d 100 $system:hyp_enter$fields\n", $ts[$cpu], $cpu;
			print "lost $cpu 2\n" if $lost;
			printf "%d %d 100 $system:hyp_exit%s\n", $ts[$cpu] + $ns, $cpu, $fields && "\t6\t100";
			$ts[$cpu] += $ns + ($k % 5 == 2 && $ns ? 0 : 1000);
			$reason = "null" if !$fields;
			print STDERR "$host $reason $ns\n" if !$lost;
		}
		print "lost 0 7\n";' "$1" $spans
}

start=$SECONDS
for ((i = 1; i <= hosts; i++)); do
	dir=$(printf '%s/recordings/web%03d' "$tmp" $i)
	mkdir -p "$dir"
	host_script $i 2>>"$tmp/known" | "$build/tests/integration/make-trace" "$dir/trace.dat" tests/integration/events/kernel
	[ $((i % 4)) = 0 ] && printf 'id 22\nshift 11 500\n1000002000 0 9 print\t0\tin the guest\n' |
		"$build/tests/integration/make-trace" "$dir/trace-vm1.dat" tests/integration/events/kernel
done
is "$(ls -d "$tmp"/recordings/*/*.dat | wc -l)" $((hosts + hosts / 4)) "$hosts hosts have recordings, some with a guest's"

start=$SECONDS
(cd "$tmp" && PATH=$build:$PATH bash -euc "$(block sh)") >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "the guide's commands export them"
echo "# $hosts exports: $((SECONDS - start)) s, $(du -sk "$tmp/recordings" | cut -f1) KiB of recordings, $(du -sk --apparent-size "$tmp/fleet" | cut -f1) KiB of tables in $(find "$tmp/fleet" -type f | wc -l) files"
is "$(ls -A "$tmp/fleet")" "$(printf 'host=web%03d\n' $(seq $hosts))" "each host has a directory, and nothing else is there"
files=$(find "$tmp/fleet" -name '*.parquet' | sort)
"$build/tests/tools/parquetread" $files >"$tmp/rows"
is "$?" 0 "every file is sound"
# 2 * spans, 3 of the top buffer, one loss at the end, the guests'
is "$(wc -l <"$tmp/rows")" $((hosts * (2 * spans + 4) + hosts / 4)) "all events are there"

expected=$(perl -ane '$n{"$F[0] $F[1]"}++; $sum{"$F[0] $F[1]"} += $F[2];
	$max{"$F[0] $F[1]"} = $F[2] if $F[2] > ($max{"$F[0] $F[1]"} // 0);
	END {
		my @keys = sort { $max{$b} <=> $max{$a} || $a cmp $b } keys %n;
		printf "{\"host\":\"%s\",\"reason\":%s,\"n\":\"%d\",\"total_ns\":\"%d\",\"max_ns\":\"%d\"}\n",
			split(/ /), $n{$_}, $sum{$_}, $max{$_} for @keys[0 .. 4];
	}' "$tmp/known")
(cd "$tmp" && PATH=$build:$PATH bash -euc "$(block 'sh tables')") >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "0 " "the guide's commands export the tables of visits and states"
is "$(find "$tmp/tables" -type f | wc -l)" $((3 * hosts)) "... three files for each host"
# a recording with preempted vCPUs, next to those without
"$build/hyptrace" export -q --parquet "$tmp/tables/host=steal" --tables vcpu_states tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat
duckdb=$(tests/tools/duckdb ready)
if [ $? != 0 ]; then
	skip 8 "$duckdb"
	done_testing
	exit
fi

# query SQL...: all of it in the directory above fleet/
query() {
	(cd "$tmp" && printf '%s\n' "$@" | "$root/tests/tools/duckdb" query)
}

like "$expected" '^\{"host":"web[0-9]*","reason":[145],"n":"6[67]",' "an answer is known"
start=$SECONDS
is "$(query "$(block 'sql duckdb')" "$(block 'sql query')")" "$expected" "the guide's query gives it, losses left out"
echo "# the query: $((SECONDS - start)) s"
is "$(query "$(block 'sql duckdb')" "$(block 'sql query' | sed 's/^LIMIT 5;/;/')" |
	perl -ne '$n += $1 if /"n":"(\d+)"/; END { print $n }')" "$(wc -l <"$tmp/known")" \
	"... of every time that is known, and of no other"
is "$(query "$(block 'sql duckdb')" "$(block 'sql query' | sed 's/^LIMIT 5;/;/')" |
	perl -ne '$n += $1 if /"total_ns":"(\d+)"/; END { print $n }')" "$(perl -ane '$n += $F[2]; END { print $n }' "$tmp/known")" \
	"... with visits that touch, and that take no time"

# The same by the table of visits, whose reasons are words (the events have none for 4): of all hosts
visits=$(perl -ane 'BEGIN { %word = (1 => "hvc", 4 => "null", 5 => "guest_exit", null => "null") }
	push @{ $ns{"$F[0] $word{$F[1]}"} }, $F[2];
	END {
		for (sort keys %ns) {
			my @ns = sort { $a <=> $b } @{ $ns{$_} };
			my ($sum, $at) = (0, int(0.99 * @ns));
			$sum += $_ for @ns;
			$at-- if $at == 0.99 * @ns;
			printf "%s %d %d %d %d\n", $_, scalar @ns, $sum, $ns[-1], $ns[$at];
		}
	}' "$tmp/known")
is "$(query "$(block 'sql visits' | sed 's/^LIMIT 5;/;/')" | jq -r '[.host, .reason // "null", .n, .total_ns, .max_ns, .p99_ns] | join(" ")' | sort)" \
	"$visits" "the query over the tables of visits gives every host's, and their 99th percentile"
is "$(query "$(block 'sql visits')" | jq -c '[.host, .n, .total_ns, .max_ns]')" "$(jq -c '[.host, .n, .total_ns, .max_ns]' <<<"$expected")" \
	"... and the longest are those of the events"
is "$(query "$(block 'sql preempted')" | jq -r '[.preempted_by // "null", .hosts, .n, .total_ns] | join(" ")')" \
	"$("$build/hyptrace" sql -q --json tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat "SELECT other_name, COUNT(*) AS n, SUM(dur) AS ns
		FROM vcpu_states WHERE state = 'preempted' GROUP BY 1 ORDER BY 3 DESC, 1" | jq -r '.rows[] | [.other_name // "null", 1, .n, .ns] | join(" ")')" \
	"... and who preempted vCPUs is sql's answer"
is "$(query "$(block 'sql all')" | wc -l)" "$("$build/tests/tools/parquetread" $files >/dev/null; for f in $files; do dirname "${f#*host=}" | sed 's,/.*/, ,'; done | sort -u | wc -l)" \
	"the query over all events has each host and event"
done_testing
