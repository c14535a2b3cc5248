#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace export --parquet DIR --tables: the rows of hyptrace sql's tables, as a strict reader finds them, and DuckDB
# where it can be had (tests/tools/duckdb).
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build
all="args clocks cpus events hyp_calls kvm_exits lost machines pkvm_hypervisor_events slices thread_states threads vcpu_states vcpus"

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

# The same by queries: numbers are of 64 bits, which the reader prints as strings
queries() { # TABLES FILE...
	local table tables=$1
	shift

	for table in $tables; do
		"$hyptrace" sql -q --json "$@" "SELECT * FROM $table" | sed -n 's/^    \({.*}\),\?$/\1/p' |
			perl -pe 's/("(?:[^"\\]|\\.)*")|(-?\d+)/defined $2 ? "\"$2\"" : $1/ge; s/^/table='"$table"' /'
	done
}

duckdb=$(tests/tools/duckdb ready)
duckdb_there=$?

# compare NAME FILE...: all tables
compare() {
	local name=$1
	shift

	tables "$tmp/out" "${all// /,}" "$@"
	is "$? $(find "$tmp/out" -name '*.parquet' | wc -l)" "0 $(wc -w <<<"$all")" "$name: a file for each table"
	queries "$all" "$@" >"$tmp/queries"
	rows "$tmp/out" >"$tmp/rows"
	same "$tmp/rows" "$tmp/queries" "... whose $(wc -l <"$tmp/queries") rows are sql's"
	if [ $duckdb_there = 0 ]; then
		tests/tools/duckdb rows "$tmp/out" | sed 's/\x7f/\\u007f/g' >"$tmp/theirs"
		same "$tmp/theirs" "$tmp/queries" "... by DuckDB, too"
	else
		skip 1 "$duckdb"
	fi
}

is "$("$hyptrace" sql tests/data/lab-nvhe.dat .schema | sed -n '/HIDDEN/d; s/^CREATE TABLE \([a-z_]*\).*/\1/p' | xargs)" "$all" \
	"these are sql's tables"
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

# ---- options ------------------------------------------------------------------------------------

tables "$tmp/some" lost,machines,lost tests/data/lab-nvhe.dat
is "$? $(ls "$tmp/some" | xargs)" "0 table=lost table=machines" "a table that is named twice is one"
"$hyptrace" export -q --parquet "$tmp/twice" --tables clocks --tables lost tests/data/lab-nvhe.dat
is "$? $(ls "$tmp/twice" | xargs)" "0 table=clocks table=lost" "--tables may be given twice"
tables "$tmp/none" hyp_calls,calls tests/data/lab-nvhe.dat 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 hyptrace: no table 'calls': --tables takes some of args, clocks, cpus, events, hyp_calls, kvm_exits, lost, machines, pkvm_hypervisor_events, slices, thread_states, threads, vcpu_states, vcpus" \
	"a table that is none"
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
