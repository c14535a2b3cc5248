#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace export --parquet DIR --tables: the rows of hyptrace sql's tables, as a strict reader finds them, and DuckDB
# where it can be had (tests/tools/duckdb).
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build
derived="clocks findings hyp_calls kvm_exits latency lost recordings spans steal thread_states threads vcpu_states"
all=$(printf '%s\n' $derived args cpus events pkvm_hypervisor_events slices vcpus | sort | xargs)

tables() { # DIR TABLES FILE...
	local dir=$1 tables=$2
	shift 2

	rm -rf "$dir"
	"$hyptrace" export -q --parquet "$dir" --tables "$tables" "$@"
}

# All rows of a tree, each behind its file's directory
rows() { # DIR
	(cd "$1" && find * -name '*.parquet' -print0 | sort -z | xargs -0 "$build/tests/tools/parquetread")
}

# The same by queries: numbers are of 64 bits, which the reader prints as strings. A number comes after its column's
# name; quotes in a text come after a backslash.
queries() { # TABLES FILE...
	local table tables=$1
	shift

	for table in $tables; do
		"$hyptrace" sql -q --json "$@" "SELECT * FROM $table" |
			perl -ne 'next if !s/^    (\{.*\}),?$/$1/; s/(?<!\\)":\K(-?\d+)/"$1"/g; print "table='"$table"' $_"'
	done
}

# Visits have no order in the files: they come last, sorted.
settled() {
	perl -e 'push @{/^table=(hyp_calls|pkvm_hypervisor_events|slices) / ? \@visits : \@others}, $_ for <>;
		print @others, sort @visits' "$@"
}

duckdb=$(tests/tools/duckdb ready)
duckdb_there=$?

# compare NAME FILE...: all tables
compare() {
	local name=$1
	shift

	tables "$tmp/out" "${all// /,}" "$@"
	is "$? $(find "$tmp/out" -name '*.parquet' | wc -l)" "0 $(wc -w <<<"$all")" "$name: a file for each table"
	queries "$all" "$@" | settled >"$tmp/queries"
	rows "$tmp/out" | settled >"$tmp/rows"
	same "$tmp/rows" "$tmp/queries" "... whose $(wc -l <"$tmp/queries") rows are sql's"
	if [ $duckdb_there = 0 ]; then
		tests/tools/duckdb rows "$tmp/out" | sed 's/\x7f/\\u007f/g' | settled >"$tmp/theirs"
		same "$tmp/theirs" "$tmp/queries" "... by DuckDB, too"
	else
		skip 1 "$duckdb"
	fi
}

is "$("$hyptrace" sql tests/data/lab-nvhe.dat .schema | sed -n '/HIDDEN/d; s/^CREATE TABLE \([a-z_]*\).*/\1/p' | sort | xargs)" "$all" \
	"these are sql's tables"
# Documentation/tables.md: each table's columns and types, as sql and the files have them, and the version
tables "$tmp/schemas" "${all// /,}" tests/data/guest/trace.dat
perl -ne '$t = $1 if /^## (\w+)$/; print "$t $1 $2\n" if /^\| (\w+) \| (integer|text) \| [^|]*\| [^|]+\| [^|]*\|$/' Documentation/tables.md >"$tmp/page"
is "$(cut -d' ' -f1 "$tmp/page" | sort -u | xargs)" "$all" "Documentation/tables.md has these tables"
is "$(cut -d' ' -f1 "$tmp/page" | uniq | head -12 | xargs)" "$derived" "... first those of all, in order"
is "$(grep -c '^| [a-z0-9_]* |' Documentation/tables.md)" $(($(wc -l <"$tmp/page") + $(wc -w <<<"$all"))) "... and each of its lines is a column's"
same <(for table in $(cut -d' ' -f1 "$tmp/page" | uniq); do
	"$hyptrace" sql -q --csv tests/data/guest/trace.dat "PRAGMA table_info = $table" |
		perl -F, -ane 'print "'$table' $F[2] \L$F[3]\n" if /^rows,\d/'
done) "$tmp/page" "... with sql's columns, and their types"
same <(cd "$tmp/schemas" && for table in $(cut -d' ' -f1 "$tmp/page" | uniq); do
	"$build/tests/tools/parquetread" -s table=$table/*.parquet | sed -n "/^version/!s/^/$table /p"
done) "$tmp/page" "... which the files have"
is "$("$build/tests/tools/parquetread" -s "$tmp/schemas"/*/*.parquet | grep '^version' | sort -u)" \
	"$(sed -n 's/^The version of these tables is \([0-9]*\)\..*/version \1/p' Documentation/tables.md)" "... and its version"

for dir in guest functions steal; do
	compare "$dir" tests/data/$dir/trace.dat tests/data/$dir/trace-Guest.dat
done
for file in tests/data/lab-nvhe.dat tests/data/x86/trace.dat; do
	compare "${file#tests/data/}" "$file"
done

# more than one row group; names of all kinds; losses
perl -e 'print "id 11\nguest v\"m 22 0:100\ntask 100 CPU 0/KVM\ntask 7 a\\xffb\\x01\n";
	for my $i (0 .. 69999) {
		printf "%d 0 7 hyp:hyp_enter\n", 1000000000 + $i * 1000;
		printf "lost 0 %d\n", $i / 17 if $i % 10000 == 17;
		printf "%d 0 7 hyp:hyp_exit\n", 1000000500 + $i * 1000;
	}' | "$build/tests/integration/make-trace" "$tmp/many.dat" tests/integration/events/kernel
all="hyp_calls lost threads"
compare "made-up visits" "$tmp/many.dat"
is "$(grep -c '^table=hyp_calls .*"ended":"exit"' "$tmp/rows") $(grep -c '^table=lost' "$tmp/rows")" "69993 7" "... known by number"

# ---- the same figures as other commands' -----------------------------------------------------------

# ns FILE ARGUMENT...: a command's JSON; ticks, which x86 has, under the names of ns
ns() {
	local file=$1
	shift
	"$hyptrace" "$@" -q --json "$file" 2>/dev/null | sed 's/_ticks"/_ns"/g'
}

for dir in guest raw stock steal x86; do
	file=tests/data/$dir/trace.dat
	for preset in wakeup irq virtio timer hypercall abort; do
		ns $file latency --rows 0 --preset $preset |
			jq -r --arg p $preset '.latency[] | select((.until == "total" or .until == "answer") and .count > 0) | [$p, .count, .total_ns, .max_ns] | join(" ")'
	done | sort >"$tmp/latency"
	is "$("$hyptrace" sql -q --json $file "SELECT preset, count(*) AS n, sum(dur) AS ns, max(dur) AS most FROM latency GROUP BY preset, guest, vcpu, queue" |
		jq -r '.rows[] | [.preset, .n, .ns, .most] | join(" ")' | sort)" "$(cat "$tmp/latency")" "$dir: latency has the chains of hyptrace latency's $(wc -l <"$tmp/latency") rows"
	is "$("$hyptrace" sql -q --json $file "SELECT what, lost, stretches, ts FROM findings LIMIT 10" |
		jq -c '.rows[] | [.what, .lost, .stretches, .ts]')" \
		"$(ns $file why | jq -c '.findings[] | [.what, .lost_ns, .count, (.from // null | if . then (tostring | gsub("\\."; "") | tonumber) else null end)]')" \
		"... findings are those of hyptrace why"
	is "$("$hyptrace" sql -q --json $file "SELECT machine, tid, by, other_tid, count(*) AS n, sum(dur) AS ns FROM steal WHERE by <> 'preempted' OR other_tid IS NOT NULL GROUP BY 1, 2, 3, iif(by = 'preempted', other_tid, 0)" |
		jq -r '.rows[] | [.machine, .tid, .by, .n, .ns] | join(" ")' | sort)" \
		"$(ns $file stat --rows 0 --show steal | jq -r '.steal[] | select(.by != "preempted" or .thief_pid != null) | [.machine, .pid, .by, .count, .total_ns] | join(" ")' | sort)" \
		"... steal is that of hyptrace stat"
done
is "$("$hyptrace" sql -q --csv tests/data/guest/trace.dat "SELECT count(*) FROM latency WHERE preset = 'timer' AND stage1 + stage2 + stage3 = dur AND stage4 IS NULL AND bound > 0" | tail -1)" \
	"rows,12" "stages of a chain add up to it"
perl -e 'print "id 11\ntask 7 a\n"; my $t = 1000000000;
	for my $i (1 .. 20) {
		printf "%d 0 7 print\t0\t%d blk Enter: outer\n", $t, 2 * $i;
		printf "%d 0 7 print\t0\t%d blk Enter: inner\n", $t + 100, 2 * $i + 1;
		printf "%d 0 7 print\t0\t%d blk Exit: inner\n", $t + 100 + $i, 2 * $i + 1;
		printf "%d 0 7 print\t0\t%d blk Exit: outer\n", $t + 500, 2 * $i;
		$t += 1000;
	}' | "$build/tests/integration/make-trace" "$tmp/spans.dat" tests/integration/events/kernel
is "$("$hyptrace" sql -q --csv "$tmp/spans.dat" "SELECT name, parent, depth, count(*), sum(dur), sum(own_dur) FROM spans GROUP BY 1, 2, 3" | tail -n +2)" \
	"rows,inner,outer,1,20,210,210
rows,outer,,0,20,10000,9790" "spans: those of programs, with the ones around them"
is "$("$hyptrace" stat --show spans --csv "$tmp/spans.dat" | cut -d, -f4-6 | tail -n +2 | sort)" "inner,20,210
outer,20,10000" "... as hyptrace stat adds them up"

# ---- options ------------------------------------------------------------------------------------

tables "$tmp/some" lost,recordings,lost tests/data/lab-nvhe.dat
is "$? $(ls "$tmp/some" | xargs)" "0 table=lost table=recordings" "a table that is named twice is one"
"$hyptrace" export -q --parquet "$tmp/twice" --tables clocks --tables lost tests/data/lab-nvhe.dat
is "$? $(ls "$tmp/twice" | xargs)" "0 table=clocks table=lost" "--tables may be given twice"
tables "$tmp/all" all tests/data/lab-nvhe.dat
is "$? $(ls "$tmp/all" | sed 's/table=//' | xargs)" "0 $derived" "all: the derived ones"
tables "$tmp/presets" latency:timer,lost,latency:irq tests/data/guest/trace.dat
is "$(ls "$tmp/presets" | xargs) $(rows "$tmp/presets" | grep -o '"preset":"[a-z]*"' | sort | uniq -c | xargs)" \
	'table=latency table=lost 13 preset:irq 12 preset:timer' "latency:PRESET: these alone, in one file"
for wrong in hyp_calls,calls latency:nope '' latency:; do
	tables "$tmp/none" "$wrong" tests/data/lab-nvhe.dat 2>"$tmp/err"
	like "$? $(cat "$tmp/err")" "^2 hyptrace export: --tables .*: not one of all $derived args cpus events pkvm_hypervisor_events slices vcpus" \
		"'$wrong': a table that is none"
done
is "$(ls -A "$tmp" | grep none)" "" "... leaves nothing"
is "$("$hyptrace" export --json --tables lost tests/data/lab-nvhe.dat 2>&1) $?" "hyptrace: --tables is for --parquet 2" "--tables without --parquet"
like "$("$hyptrace" export --parquet "$tmp/some" --tables lost tests/data/lab-nvhe.dat 2>&1)" "it is there already" "a directory that is there"
tables "$tmp/part" hyp_calls --time +2ms,+3ms tests/data/lab-nvhe.dat
same <(rows "$tmp/part") <(queries hyp_calls --time +2ms,+3ms tests/data/lab-nvhe.dat) "--time: $(rows "$tmp/part" | wc -l) visits of that part"

# A signal in the middle: the directory does not come.
"$hyptrace" export -q --parquet "$tmp/stopped" --tables events,args,thread_states "$tmp/many.dat" 2>"$tmp/err" &
pid=$!
wait_for [ -d "$tmp/.stopped.part" ]
kill -TERM $pid
wait $pid
is "$? $(cd "$tmp" && ls -A | grep stopped)" "1 " "a signal ends it, and leaves nothing"
done_testing
