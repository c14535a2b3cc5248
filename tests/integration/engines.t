#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Three engines, one answer: hyptrace sql, DuckDB over export --parquet (tests/tools/duckdb) and, with
# TRACE_PROCESSOR=/path/to/trace_processor_shell, Perfetto's own over export --perfetto. Each question is asked
# of two engines at least; where all three have the data, of all.
. tests/integration/lib.sh

hyptrace=$build/hyptrace root=$PWD
export O=$build

if "$hyptrace" sql tests/data/lab-protected.dat "SELECT 1;" 2>&1 | grep -q 'built without'; then
	skip_all "built without libsqlite3"
fi
duckdb=$(tests/tools/duckdb ready) && duckdb='' || duckdb=${duckdb:-it does not work}
perfetto=''
[ -x "${TRACE_PROCESSOR:-}" ] || perfetto='no TRACE_PROCESSOR'
[ -z "$perfetto" ] && ! "$hyptrace" export -q --perfetto "$tmp/some" tests/data/lab-protected.dat 2>/dev/null &&
	perfetto='export --perfetto was left out of this build'
if [ "$duckdb" ] && [ "$perfetto" ]; then
	skip_all "no other engine: $duckdb; $perfetto"
fi

[ -z "${TRACE_PROCESSOR-}" ] || [ -x "$TRACE_PROCESSOR" ]
ok $? "TRACE_PROCESSOR, where it is given, is a program that tests see (they have a /tmp of their own)"

# ---- questions --------------------------------------------------------------------------------------

# ask NAME SQL DUCKDB: SQL is for hyptrace and Perfetto, and either has one column, r. DUCKDB: -: its tables lack
# the answer. ASK_PERFETTO replaces SQL for Perfetto, and - says that its tables lack the answer.
ask() {
	names+=("$1") ours+=("$2") theirs+=("${ASK_PERFETTO:-$2}") ducks+=("$3")
}

# Perfetto's statements before the questions of a set, DuckDB's
common="CREATE PERFETTO VIEW run AS SELECT ts, dur, utid, ucpu FROM sched WHERE dur > 0;
CREATE PERFETTO TABLE woken(ts TIMESTAMP, dur DURATION, utid JOINID(thread.utid)) AS SELECT ts, dur, utid FROM thread_state WHERE state = 'R' AND waker_utid IS NOT NULL AND dur > 0;
CREATE VIRTUAL TABLE waits USING SPAN_JOIN(woken PARTITIONED utid, states PARTITIONED utid);"
common_first="CREATE VIEW states AS SELECT ts, dur, utid, state FROM thread_state WHERE dur > 0;"
duck_sched="CREATE VIEW sw AS SELECT mid, ucpu, ts, fields.next_pid AS tid, fields.next_prio AS prio,
	lead(ts) OVER w AS e, lead(fields.prev_pid) OVER w AS prev, lead(fields.prev_state) OVER w AS state
	FROM sched_switch WINDOW w AS (PARTITION BY ucpu ORDER BY ts);
CREATE VIEW run AS SELECT mid, ucpu, ts, tid, prio, e - ts AS dur, CASE WHEN state = 0 THEN 'R' WHEN state = 256 THEN 'R+'
	WHEN state % 256 = 1 THEN 'S' WHEN state % 256 = 2 THEN 'D' WHEN state % 256 = 128 THEN 'I' WHEN state % 256 = 32 THEN 'Z'
	WHEN state % 256 = 16 THEN 'X' ELSE '?' END AS state FROM sw WHERE prev = tid;"
duck_hyp="CREATE VIEW seq AS SELECT *, lead(ts) OVER w AS t1, lead(ts, 2) OVER w AS t2, lead(event) OVER w AS e1, lead(event, 2) OVER w AS e2
	FROM ev WHERE system = 'hypervisor' WINDOW w AS (PARTITION BY ucpu ORDER BY ts);
CREATE VIEW hyp AS SELECT ucpu, ts, CASE WHEN e1 = 'hyp_exit' THEN t1 WHEN e2 = 'hyp_exit' THEN t2 END - ts AS dur,
	CASE WHEN e1 LIKE 'host_%' THEN e1 END AS reason FROM seq WHERE event = 'hyp_enter' AND (e1 = 'hyp_exit' OR e2 = 'hyp_exit');"

# Every event of the exported tables as a view of its name, with its fields as `fields`, and all of them as ev
duck_views() { # DIR
	local event fields list='' columns='ts, cpu, pid, machine, system, event, mid, ucpu'

	while read -r event fields; do
		echo "CREATE TABLE \"$event\" AS SELECT ts, cpu, pid, comm, machine, system, event, ${fields:+\"$event\" AS fields, }CASE machine WHEN 'host' THEN 0 ELSE 1 END AS mid, (CASE machine WHEN 'host' THEN 0 ELSE 4096 END) + cpu AS ucpu FROM read_parquet('$1/machine=*/system=*/*.parquet', hive_partitioning = true, union_by_name = true) WHERE event = '$event';"
		list+="${list:+ UNION ALL }SELECT $columns FROM \"$event\""
	done < <(find "$1" -name '*.parquet' -print0 | xargs -0 "$build/tests/tools/parquetread" |
		sed -nE 's/.*"utc_bound":[^,]*,"event":"(\w+)"(,"\w+":)?.*/\1 \2/p' | sort -u | grep -v '^\(lost\|unknown\) ')
	echo "CREATE TABLE ev AS $list;"
}

# answers SET FILE...: asks all, compares, forgets them
answers() {
	local set=$1 i engine

	shift
	rm -rf "$tmp/pq"
	: >"$tmp/duckdb"
	: >"$tmp/perfetto"
	{
		echo "$common_first$common"
		for i in "${!names[@]}"; do echo "SELECT '$i' AS q, r FROM (${ours[i]});"; done
	} | "$hyptrace" sql -q --csv "$@" 2>"$tmp/err" | grep -v '^rows[0-9]*,q,r$' | sed 's/^rows[0-9]*,//; s/"//g' | sort >"$tmp/hyptrace"
	is "$(cat "$tmp/err")" "" "$set: hyptrace sql answers"
	if [ -z "$perfetto" ]; then
		"$hyptrace" export -q --perfetto "$tmp/pftrace" "$@"
		{
			echo "$common_first$common"
			for i in "${!names[@]}"; do
				[ "${theirs[i]}" = - ] || echo "SELECT '$i' AS q, CAST(r AS TEXT) AS r FROM (${theirs[i]}) UNION ALL"
			done
			echo "SELECT 'end', '';"
		} >"$tmp/query"
		"$TRACE_PROCESSOR" -q "$tmp/query" "$tmp/pftrace" 2>"$tmp/err" | grep '^"[0-9]' | sed 's/"//g' | sort >"$tmp/perfetto"
		is "$(grep -i 'error:\|no such' "$tmp/err")" "" "$set: trace_processor answers"
	fi
	if [ -z "$duckdb" ]; then
		"$hyptrace" export -q --parquet "$tmp/pq" "$@"
		{
			duck_views "$tmp/pq"
			[ -d "$tmp/pq/machine=host/system=sched" ] && echo "$duck_sched"
			[ -d "$tmp/pq/machine=host/system=hypervisor" ] && echo "$duck_hyp"
			for i in "${!names[@]}"; do
				[ "${ducks[i]}" = - ] || echo "SELECT '$i' AS q, r::VARCHAR AS r FROM (${ducks[i]});"
			done
		} | "$root/tests/tools/duckdb" query 2>"$tmp/err" | perl -ne 'print "$1,$2\n" if /"q":"(\d+)","r":"?(.*?)"?\}$/' | sort >"$tmp/duckdb"
		is "$(cat "$tmp/err")" "" "$set: DuckDB answers"
	fi
	for i in "${!names[@]}"; do
		local rows engines='' missing=''

		rows=$(grep "^$i," "$tmp/hyptrace")
		for engine in perfetto duckdb; do
			[ $engine = perfetto ] && [ "${theirs[i]}" = - ] && continue
			[ $engine = duckdb ] && [ "${ducks[i]}" = - ] && continue
			if [ "${!engine}" ]; then
				missing+="${missing:+; }${!engine}"
				continue
			fi
			engines+=" $engine"
			is "$(grep "^$i," "$tmp/$engine")" "$rows" "$set: ${names[i]}: $(grep -c . <<<"$rows") rows, as $engine"
		done
		like "$rows" . "$set: ${names[i]}: there is an answer"
		[ "$engines" ] || skip 1 "$set: ${names[i]}: $missing"
		asked=$((asked + 1))
		[ "$engines" = ' perfetto duckdb' ] && three=$((three + 1))
	done
	names=() ours=() theirs=() ducks=()
}

asked=0 three=0 names=() ours=() theirs=() ducks=()

# ---- a host and a guest: scheduling and exits -----------------------------------------------------------

ask "events by machine" "SELECT e.name || ' ' || c.machine_id || ' ' || count(*) AS r FROM ftrace_event e JOIN cpu c USING (ucpu) GROUP BY e.name, c.machine_id" \
	"SELECT event || ' ' || mid || ' ' || count(*) AS r FROM ev GROUP BY event, mid"
ask "events by CPU" "SELECT ucpu || ' ' || count(*) || ' ' || min(ts) || ' ' || max(ts) AS r FROM ftrace_event GROUP BY ucpu" \
	"SELECT ucpu || ' ' || count(*) || ' ' || min(ts) || ' ' || max(ts) AS r FROM ev GROUP BY ucpu"
ask "bounds" "SELECT start_ts || ' ' || end_ts AS r FROM trace_bounds" "SELECT min(ts) || ' ' || max(ts) AS r FROM ev"
ask "length" "SELECT trace_end() - trace_start() AS r" "SELECT max(ts) - min(ts) AS r FROM ev"
ask "switches by machine" "SELECT t.machine_id || ' ' || count(*) AS r FROM sched JOIN thread t USING (utid) GROUP BY t.machine_id" \
	"SELECT mid || ' ' || count(*) AS r FROM sched_switch GROUP BY mid"
ask "run time by task" "SELECT t.machine_id || ' ' || t.tid || ' ' || count(*) || ' ' || sum(s.dur) AS r FROM sched s JOIN thread t USING (utid) WHERE s.dur >= 0 GROUP BY t.machine_id, t.tid" \
	"SELECT mid || ' ' || tid || ' ' || count(*) || ' ' || sum(dur) AS r FROM run GROUP BY mid, tid"
ask "ends of runs" "SELECT end_state || ' ' || count(*) || ' ' || sum(dur) AS r FROM sched WHERE end_state IS NOT NULL GROUP BY end_state" \
	"SELECT state || ' ' || count(*) || ' ' || sum(dur) AS r FROM run GROUP BY state"
ask "runs without an end" "SELECT count(*) AS r FROM sched_slice WHERE dur = -1" "SELECT count(*) AS r FROM sw WHERE prev IS NULL OR prev <> tid"
ask "priorities" "SELECT priority || ' ' || count(*) AS r FROM sched_slice GROUP BY priority" \
	"SELECT prio || ' ' || count(*) AS r FROM sw GROUP BY prio"
ask "the ten longest runs" "SELECT ts || ' ' || dur || ' ' || ucpu || ' ' || end_state AS r FROM (SELECT * FROM sched WHERE dur > 0 ORDER BY dur DESC, ts LIMIT 10)" \
	"SELECT ts || ' ' || dur || ' ' || ucpu || ' ' || state AS r FROM (SELECT * FROM run ORDER BY dur DESC, ts LIMIT 10)"
ask "busy time by CPU" "SELECT s.ucpu || ' ' || sum(s.dur) AS r FROM sched s JOIN thread t USING (utid) WHERE s.dur >= 0 AND NOT t.is_idle GROUP BY s.ucpu" \
	"SELECT ucpu || ' ' || sum(dur) AS r FROM run WHERE tid <> 0 GROUP BY ucpu"
ask "idle time by CPU" "SELECT s.ucpu || ' ' || sum(s.dur) AS r FROM sched s JOIN thread t USING (utid) WHERE s.dur >= 0 AND t.is_idle GROUP BY s.ucpu" \
	"SELECT ucpu || ' ' || sum(dur) AS r FROM run WHERE tid = 0 GROUP BY ucpu"
ask "states of tasks" "SELECT t.machine_id || ' ' || t.tid || ' ' || s.state || ' ' || count(*) || ' ' || sum(s.dur) AS r FROM thread_state s JOIN thread t USING (utid) GROUP BY t.machine_id, t.tid, s.state" -
ask "wakings by CPU" "SELECT ucpu || ' ' || count(*) AS r FROM ftrace_event WHERE name = 'sched_waking' GROUP BY ucpu" \
	"SELECT ucpu || ' ' || count(*) AS r FROM sched_waking GROUP BY ucpu"
ask "woken tasks" "SELECT extract_arg(arg_set_id, 'pid') || ' ' || count(*) AS r FROM ftrace_event WHERE name = 'sched_waking' GROUP BY extract_arg(arg_set_id, 'pid')" \
	"SELECT fields.pid || ' ' || count(*) AS r FROM sched_waking GROUP BY fields.pid"
ask "who wakes whom" "SELECT w.tid || ' ' || t.tid || ' ' || t.machine_id || ' ' || count(*) || ' ' || sum(s.dur) AS r FROM thread_state s JOIN thread t USING (utid) JOIN thread w ON w.utid = s.waker_utid GROUP BY w.tid, t.tid, t.machine_id" -
ask "tasks by machine" "SELECT machine_id || ' ' || count(*) AS r FROM thread GROUP BY machine_id" -
ask "names of tasks" "SELECT machine_id || ' ' || tid || ' ' || name AS r FROM thread" -
ask "idle processes" "SELECT machine_id || ' ' || pid AS r FROM process WHERE pid = 0" -
ask "main threads" "SELECT machine_id || ' ' || tid || ' ' || (upid IS NOT NULL) AS r FROM thread WHERE is_main_thread" -
ask "exits by reason" "SELECT extract_arg(arg_set_id, 'exit_reason') || ' ' || count(*) AS r FROM ftrace_event WHERE name = 'kvm_exit' GROUP BY extract_arg(arg_set_id, 'exit_reason')" \
	"SELECT fields.exit_reason || ' ' || count(*) AS r FROM kvm_exit GROUP BY fields.exit_reason"
ask "what vCPUs do" "SELECT name || ' ' || count(*) || ' ' || sum(dur) AS r FROM slice WHERE category = 'vcpu' GROUP BY name" -
ask "vCPUs' tracks" "SELECT count(*) || ' ' || sum(n) AS r FROM (SELECT count(*) AS n FROM slice JOIN track ON track.id = slice.track_id WHERE category = 'vcpu' GROUP BY track.id)" -
ask "stolen time" "SELECT t.machine_id || ' ' || count(*) || ' ' || sum(s.dur) AS r FROM slice s JOIN track t ON t.id = s.track_id WHERE s.category = 'stolen' GROUP BY s.track_id" -
ask "span join of states with themselves" "SELECT state || ' ' || count(*) || ' ' || sum(dur) AS r FROM waits GROUP BY state" -
ask "switches that do not follow" "SELECT machine_id || ' ' || value AS r FROM stats WHERE name = 'mismatched_sched_switch_tids' AND value > 0" \
	"SELECT mid || ' ' || count(*) AS r FROM sw WHERE prev IS NOT NULL AND prev <> tid GROUP BY mid"
ask "systems" "SELECT machine_id || ' ' || name || ' ' || str_value AS r FROM metadata WHERE name IN ('system_name', 'system_release', 'system_machine')" -
answers steal tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat

# ---- the hypervisor, as Android has it --------------------------------------------------------------------

common_first+="INCLUDE PERFETTO MODULE pkvm.hypervisor; CREATE PERFETTO TABLE hyp AS SELECT h.ts, h.dur, h.cpu AS ucpu, h.reason FROM pkvm_hypervisor_events h WHERE h.dur > 0;"
common+="CREATE VIRTUAL TABLE hyp_run USING SPAN_JOIN(hyp PARTITIONED ucpu, run PARTITIONED ucpu);
CREATE VIRTUAL TABLE hyp_left USING SPAN_LEFT_JOIN(hyp PARTITIONED ucpu, run PARTITIONED ucpu);"
ask "visits by CPU" "SELECT cpu || ' ' || count(*) || ' ' || sum(dur) || ' ' || max(dur) AS r FROM pkvm_hypervisor_events WHERE dur >= 0 GROUP BY cpu" \
	"SELECT ucpu || ' ' || count(*) || ' ' || sum(dur) || ' ' || max(dur) AS r FROM hyp GROUP BY ucpu"
ask "visits by reason" "SELECT coalesce(reason, '-') || ' ' || count(*) || ' ' || sum(dur) AS r FROM pkvm_hypervisor_events WHERE dur >= 0 GROUP BY reason" \
	"SELECT coalesce(reason, '-') || ' ' || count(*) || ' ' || sum(dur) AS r FROM hyp GROUP BY reason"
ask "the ten longest visits" "SELECT ts || ' ' || dur AS r FROM (SELECT * FROM pkvm_hypervisor_events ORDER BY dur DESC, ts LIMIT 10)" \
	"SELECT ts || ' ' || dur AS r FROM (SELECT * FROM hyp ORDER BY dur DESC, ts LIMIT 10)"
ask "slices of visits" "SELECT name || ' ' || count(*) || ' ' || sum(dur) AS r FROM slice WHERE category = 'hyp' GROUP BY name" -
ask "aborts" "SELECT h.dur || ' ' || extract_arg(s.arg_set_id, 'esr') || ' ' || extract_arg(s.arg_set_id, 'addr') AS r FROM pkvm_hypervisor_events h JOIN slices s ON h.slice_id = s.id WHERE h.reason = 'host_mem_abort'" \
	"SELECT h.dur || ' ' || a.fields.esr || ' ' || a.fields.addr AS r FROM hyp h JOIN host_mem_abort a ON a.ucpu = h.ucpu AND a.ts BETWEEN h.ts AND h.ts + h.dur WHERE h.reason = 'host_mem_abort'"
ask "tasks behind visits" "SELECT t.machine_id || ' ' || t.tid || ' ' || h.reason || ' ' || count(*) || ' ' || sum(h.dur) AS r FROM hyp_run h JOIN thread t USING (utid) WHERE h.reason IS NOT NULL GROUP BY t.machine_id, t.tid, h.reason" \
	"SELECT r.mid || ' ' || r.tid || ' ' || h.reason || ' ' || count(*) || ' ' || sum(least(h.ts + h.dur, r.ts + r.dur) - greatest(h.ts, r.ts)) AS r FROM hyp h JOIN run r ON r.ucpu = h.ucpu AND h.ts < r.ts + r.dur AND r.ts < h.ts + h.dur WHERE h.reason IS NOT NULL GROUP BY r.mid, r.tid, h.reason"
ask "visits in all, by a left join" "SELECT sum(dur) AS r FROM hyp_left" "SELECT sum(dur) AS r FROM hyp"
ask "run time as the scheduler counts it" "SELECT extract_arg(arg_set_id, 'pid') || ' ' || sum(extract_arg(arg_set_id, 'runtime')) AS r FROM ftrace_event WHERE name = 'sched_stat_runtime' GROUP BY extract_arg(arg_set_id, 'pid')" \
	"SELECT fields.pid || ' ' || sum(fields.runtime) AS r FROM sched_stat_runtime GROUP BY fields.pid"
ask "migrations" "SELECT ts || ' ' || extract_arg(arg_set_id, 'pid') || ' ' || extract_arg(arg_set_id, 'dest_cpu') AS r FROM ftrace_event WHERE name = 'sched_migrate_task'" \
	"SELECT ts || ' ' || fields.pid || ' ' || fields.dest_cpu AS r FROM sched_migrate_task"
answers raw tests/data/raw/trace.dat tests/data/raw/trace-Guest.dat

# ---- counters, system calls --------------------------------------------------------------------------------

common='' common_first=''
ask "idle states by CPU" "SELECT t.cpu || ' ' || count(*) || ' ' || CAST(sum(c.value) AS INT) AS r FROM counter c JOIN cpu_counter_track t ON t.id = c.track_id WHERE t.type = 'cpu_idle' GROUP BY t.cpu" \
	"SELECT fields.cpu_id || ' ' || count(*) || ' ' || sum(fields.state) AS r FROM cpu_idle GROUP BY fields.cpu_id"
ask "time in idle state 1 by CPU" "SELECT cpu || ' ' || sum(e - ts) AS r FROM (SELECT t.cpu, c.ts, c.value, lead(c.ts) OVER (PARTITION BY t.cpu ORDER BY c.ts) AS e FROM counter c JOIN cpu_counter_track t ON t.id = c.track_id WHERE t.name = 'cpuidle') WHERE value = 1 GROUP BY cpu" \
	"SELECT cpu || ' ' || sum(e - ts) AS r FROM (SELECT fields.cpu_id AS cpu, ts, fields.state AS value, lead(ts) OVER (PARTITION BY fields.cpu_id ORDER BY ts) AS e FROM cpu_idle) WHERE value = 1 GROUP BY cpu"
ask "counters' tracks" "SELECT name || ' ' || type || ' ' || count(*) AS r FROM counter_track GROUP BY name, type" -
ask "system calls" "SELECT extract_arg(arg_set_id, 'id') || ' ' || count(*) AS r FROM ftrace_event WHERE name = 'sys_enter' GROUP BY extract_arg(arg_set_id, 'id')" \
	"SELECT fields.id || ' ' || count(*) AS r FROM sys_enter GROUP BY fields.id"
ask "names by exec" "SELECT count(*) || ' ' || min(ts) AS r FROM raw WHERE name = 'sched_process_exec'" "SELECT count(*) || ' ' || min(ts) AS r FROM sched_process_exec"
ask "events of each kind" "SELECT name || ' ' || count(*) AS r FROM ftrace_event GROUP BY name" "SELECT event || ' ' || count(*) AS r FROM ev GROUP BY event"
answers formats tests/data/formats-arm64.dat

# ---- marks, processes ---------------------------------------------------------------------------------------

# 300 spans of four threads that nest up to six deep, some without a begin or an end
perl -e 'my (@open, %at); srand(4);
	print "task $_ worker $_\nprocess $_ /bin/worker$_\n" for 11 .. 14;
	for my $i (1 .. 700) {
		my ($tid, $cpu) = (11 + int rand 4, int rand 4);
		my $end = rand() < 0.5 || ($open[$tid] // 0) > 5;
		$open[$tid] = ($open[$tid] // 0) + ($end ? ($open[$tid] // 0) > 0 ? -1 : 0 : 1);
		printf "%d %d %d print\t0\t%s\\x0a\n", 1000 + 10 * $i, $cpu, $tid, $end ? rand() < 0.5 ? "E" : "E|$tid" : "B|$tid|work " . $i % 7;
	}' | "$build/tests/integration/make-trace" "$tmp/marks.dat" tests/integration/events/kernel
ask "slices of threads" "SELECT s.ts || ' ' || s.dur || ' ' || s.depth || ' ' || s.name || ' ' || t.tid || ' ' || t.name || ' ' || coalesce(p.ts, '-') AS r FROM slice s JOIN thread_track tt ON tt.id = s.track_id JOIN thread t USING (utid) LEFT JOIN slice p ON p.id = s.parent_id" -
ask "ancestors" "SELECT s.ts || ' ' || a.ts || ' ' || a.depth || ' ' || a.name AS r FROM (SELECT * FROM slice WHERE depth = 4 ORDER BY ts LIMIT 6) s, ancestor_slice(s.id) a" -
ask "descendants" "SELECT s.ts || ' ' || count(*) || ' ' || sum(d.dur) AS r FROM (SELECT * FROM slice WHERE depth = 1 ORDER BY dur DESC LIMIT 6) s, descendant_slice(s.id) d GROUP BY s.ts" -
longest='FROM slice WHERE depth = 1 ORDER BY dur DESC LIMIT 1'
ASK_PERFETTO="SELECT ts || ' ' || count(*) AS r FROM (SELECT ts FROM descendant_slice((SELECT id $longest)) UNION ALL SELECT ts FROM descendant_slice((SELECT parent_id $longest))) GROUP BY ts" \
	ask "descendants of either of two" "SELECT ts || ' ' || count(*) AS r FROM descendant_slice WHERE slice_id = (SELECT id $longest) OR slice_id = (SELECT parent_id $longest) GROUP BY ts" -
ask "slices with their threads" "SELECT name || ' ' || thread_name || ' ' || tid || ' ' || count(*) || ' ' || sum(dur) AS r FROM thread_slice WHERE dur > 0 GROUP BY name, thread_name, tid" -
ask "lines of trace_marker" "SELECT ts || ' ' || substr(extract_arg(arg_set_id, 'buf'), 1, 11) AS r FROM ftrace_event WHERE name = 'print' AND extract_arg(arg_set_id, 'buf') LIKE 'B%'" \
	"SELECT ts || ' ' || substr(fields.buf, 1, 11) AS r FROM print WHERE fields.buf LIKE 'B%'"
ask "processes" "SELECT pid || ' ' || cmdline AS r FROM process WHERE pid <> 0" -
common_first='INCLUDE PERFETTO MODULE slices.with_context;'
answers marks "$tmp/marks.dat"

# ---- all of it ------------------------------------------------------------------------------------------

is "$((asked >= 40))" 1 "at least forty questions were asked: $asked"
[ "$duckdb" ] && skip 1 "DuckDB: $duckdb"
[ "$perfetto" ] && skip 1 "trace_processor: $perfetto"
[ "$duckdb$perfetto" ] || is "$((three > asked / 2))" 1 "most of them of three engines: $three"

done_testing
