#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Documentation/fleet.md's queries on a cluster of Dask's distributed, in a chroot of Debian sid (make check-fleet):
# the answers are the known ones, and DuckDB's. Then one query over more and more hosts, with time and memory.
# Needs root and a mirror of Debian.
# usage: [HOSTS="10 100 1000"] dask.t
mkdir -p "${O:-build}"
. tests/integration/lib.sh
. tests/integration/fleet-hosts.sh

sizes=${HOSTS:-10 100 1000}
needs="python3-distributed python3-pyarrow python3-pandas"
out=$tmp/out
export TRACEEVENT_PLUGIN_DIR=$build/plugins
mkdir "$out"
tests/chroot/enter sid "$needs" "$out" true 2>"$tmp/why" || skip_all "$(tail -n 1 "$tmp/why")"
duckdb=$(tests/tools/duckdb ready)
duckdb_there=$?

# dask DIR ANSWER...: runs the guide's blocks of those names on a cluster. Rows go to DIR/ANSWER.json; the last
# block's time, the workers' tasks and the memory to $tmp/said
dask() {
	local dir=$1 name
	shift

	{
		echo 'import time'
		guide_block "python dask"
		for name; do
			printf '\nstart = time.monotonic()\n'
			guide_block "python $name"
			printf 'seconds = time.monotonic() - start\n%s.to_json("%s.json", orient="records", lines=True)\n' "$name" "$name"
		done
		echo 'print(f"SECONDS {seconds:.1f}")'
		echo 'print("TASKS", *client.run(lambda dask_worker: dask_worker.state.executed_count).values())'
	} >"$out/$dir/blocks.py"
	tests/chroot/enter sid "$needs" "$out" sh -c 'cd "/out/$0" && exec /src/tests/chroot/dask-cluster blocks.py' "$dir" \
		>"$tmp/said" 2>"$tmp/why" || diag "$(tail -n 40 "$tmp/why")"
}

# rows COLUMN...: these columns of JSON lines, sorted
rows() {
	jq -r "[$(printf '.%s,' "$@" | sed 's/,$//')] | map(tostring) | @tsv" | sort
}

# known DIR KIND: the known lines of that kind, without the word
known() {
	sed -n "s/^$2 //p" "$out/$1/known"
}

# known_kernels DIR: known sums of preempted time by task and kernel
known_kernels() {
	known "$1" preempted | sed 's/^[^ ]* //' | fleet_sums | tr ' ' '\t'
}

# judge ANSWER COLUMNS KNOWN NAME: compares Dask's rows and DuckDB's, without the guide's LIMIT
judge() {
	local views=

	[ "$1" != query ] || views=$(guide_block "sql duckdb")
	is "$(rows $2 <"$out/100/$1.json")" "$3" "$4, by Dask"
	if [ $duckdb_there = 0 ]; then
		is "$(cd "$out/100" && { echo "$views"; guide_block "sql $1" | sed 's/^LIMIT 5;/;/'; } | "$OLDPWD/tests/tools/duckdb" query | rows $2)" \
			"$(rows $2 <"$out/100/$1.json")" "... and by DuckDB"
	else
		skip 1 "$duckdb"
	fi
}

mkdir "$out/100"
fleet_hosts "$out/100" 100 200 20
(cd "$out/100" && PATH=$build:$PATH && bash -euc "$(guide_block sh)" && bash -euc "$(guide_block 'sh tables')")
start=$SECONDS
dask 100 visits preempted kernels counts query
diag "100 hosts, five answers: $((SECONDS - start)) s with the cluster's start"
like "$(<"$tmp/said")" '^TASKS [1-9][0-9]* [1-9][0-9]*$' "two workers answer"
sums="n total_ns max_ns p99_ns"
judge visits "host reason $sums" "$(known 100 visit | sed "$fleet_words" | fleet_sums | tr ' ' '\t')" "visits by host and reason"
judge preempted "preempted_by hosts $sums" "$(known 100 preempted | sed 's/^[^ ]* //; s/ [^ ]*\t/\t/' | fleet_sums |
	while IFS=$'\t' read -r task rest; do
		printf '%s\t%d\t%s\n' "$task" "$(known 100 preempted | grep " $task " | cut -d ' ' -f 1 | sort -u | wc -l)" "$rest"
	done)" "preempted time by task"
judge kernels "preempted_by kernel $sums" "$(known_kernels 100)" "... by task and kernel"
judge counts "host event n" "$(cd "$out/100/fleet" && find * -name '*.parquet' -print0 | xargs -0 "$build/tests/tools/parquetread" |
	sed -E 's,^host=([^/]*)/.*"event":"([^"]*)".*,\1\t\2,' | sort | uniq -c | awk -v OFS='\t' '{ print $2, $3, $1 }')" "all events"

judge query "host reason n total_ns max_ns" "$(known 100 visit | fleet_sums | cut -f 1-4 | tr ' ' '\t')" "visits by events"

# The same query over more and more hosts
most=$(printf '%s\n' $sizes | sort -n | tail -n 1)
mkdir "$out/most"
start=$SECONDS
fleet_hosts "$out/most" "$most" 2 1000
(cd "$out/most" && PATH=$build:$PATH bash -euc "$(guide_block 'sh tables')")
diag "$most hosts recorded and exported: $((SECONDS - start)) s"
diag "                          DuckDB            Dask, two workers of a thread"
diag "hosts  preemptions  MiB   seconds  MiB   seconds  MiB: scheduler, workers"
for size in $sizes; do
	dir=grow-$size
	mkdir -p "$out/$dir/tables"
	(cd "$out/most/tables" && cp -al $(printf 'host=web%03d\n' $(seq "$size")) "$out/$dir/tables")
	awk -v size="$size" 'substr($2, 4) + 0 <= size' "$out/most/known" >"$out/$dir/known"
	dask "$dir" kernels
	is "$(rows preempted_by kernel $sums <"$out/$dir/kernels.json")" "$(known_kernels "$dir")" "$size hosts, by Dask"
	if [ $duckdb_there = 0 ]; then
		is "$(cd "$out/$dir" && guide_block "sql kernels" | "$OLDPWD/tests/tools/duckdb" cost 2>"$tmp/cost" | rows preempted_by kernel $sums)" \
			"$(known_kernels "$dir")" "... and by DuckDB"
	else
		skip 1 "$duckdb"
		echo "- -" >"$tmp/cost"
	fi
	diag "$(printf '%5d %12d %4d %9s %4s %9s  %s' "$size" "$(known "$dir" preempted | wc -l)" "$(du -sm --apparent-size "$out/$dir/tables" | cut -f 1)" \
		$(cat "$tmp/cost") "$(sed -n 's/^SECONDS //p' "$tmp/said")" "$(sed -n 's/^MEMORY //p' "$tmp/said")")"
done
done_testing
