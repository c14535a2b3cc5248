#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Documentation/fleet.md's queries on a cluster of Dask's distributed, in a chroot of Debian sid (make check-fleet):
# the answers are those that are known, and DuckDB's. Needs root and a mirror of Debian.
mkdir -p "${O:-build}"
. tests/integration/lib.sh
. tests/integration/fleet-hosts.sh

needs="python3-distributed python3-pyarrow python3-pandas"
out=$tmp/out
export TRACEEVENT_PLUGIN_DIR=$build/plugins
mkdir "$out"
tests/chroot/enter sid "$needs" "$out" true 2>"$tmp/why" || skip_all "$(tail -n 1 "$tmp/why")"
duckdb=$(tests/tools/duckdb ready)
duckdb_there=$?

# dask DIR ANSWER...: the guide's blocks of those names on a cluster; rows go to DIR/ANSWER.json
dask() {
	local dir=$1 name
	shift

	{
		guide_block "python dask"
		for name; do
			guide_block "python $name"
			printf '%s.to_json("%s.json", orient="records", lines=True)\n' "$name" "$name"
		done
	} >"$out/$dir/blocks.py"
	timeout 1200 tests/chroot/enter sid "$needs" "$out" sh -c 'cd "/out/$0" && exec /src/tests/chroot/dask-cluster blocks.py' "$dir" \
		>"$tmp/said" 2>"$tmp/why" || diag "$(tail -n 40 "$tmp/why")"
}

# rows COLUMN...: those of JSON lines, sorted
rows() {
	jq -r "[$(printf '.%s,' "$@" | sed 's/,$//')] | map(tostring) | @tsv" | sort
}

# known DIR KIND: those lines, without the word
known() {
	sed -n "s/^$2 //p" "$out/$1/known"
}

# judge ANSWER COLUMNS KNOWN NAME: Dask's rows and DuckDB's, without the guide's LIMIT
judge() {
	is "$(rows $2 <"$out/100/$1.json")" "$3" "$4, by Dask"
	if [ $duckdb_there = 0 ]; then
		is "$(cd "$out/100" && guide_block "sql $1" | sed 's/^LIMIT 5;/;/' | "$OLDPWD/tests/tools/duckdb" query | rows $2)" \
			"$(rows $2 <"$out/100/$1.json")" "... and by DuckDB"
	else
		skip 1 "$duckdb"
	fi
}

mkdir "$out/100"
fleet_hosts "$out/100" 100 200 20
(cd "$out/100" && PATH=$build:$PATH && bash -euc "$(guide_block sh)" && bash -euc "$(guide_block 'sh tables')")
start=$SECONDS
dask 100 visits preempted kernels counts
diag "100 hosts, four answers: $((SECONDS - start)) s with the cluster's start"
sums="n total_ns max_ns p99_ns"
judge visits "host reason $sums" "$(known 100 visit | sed "$fleet_words" | fleet_sums | tr ' ' '\t')" "visits by host and reason"
judge preempted "preempted_by hosts $sums" "$(known 100 preempted | sed 's/^[^ ]* //; s/ [^ ]*\t/\t/' | fleet_sums |
	while IFS=$'\t' read -r task rest; do
		printf '%s\t%d\t%s\n' "$task" "$(known 100 preempted | grep " $task " | cut -d ' ' -f 1 | sort -u | wc -l)" "$rest"
	done)" "preempted time by task"
judge kernels "preempted_by kernel $sums" "$(known 100 preempted | sed 's/^[^ ]* //' | fleet_sums | tr ' ' '\t')" "... by task and kernel"
judge counts "host event n" "$(cd "$out/100/fleet" && find * -name '*.parquet' -print0 | xargs -0 "$build/tests/tools/parquetread" |
	sed 's,^host=\([^/]*\)/.*/event=\([^ ]*\) .*,\1\t\2,' | sort | uniq -c | awk -v OFS='\t' '{ print $2, $3, $1 }')" "all events"

done_testing
