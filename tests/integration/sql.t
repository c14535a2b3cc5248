#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace sql: its answers against what trace-cmd prints of the same files, and, with
# TRACE_PROCESSOR=/path/to/trace_processor_shell, against Perfetto's own of our traces.
# shellcheck disable=SC2016 # perl has its own $
. tests/integration/lib.sh

hyptrace=$build/hyptrace
data=tests/data
mainline=$data/lab-protected.dat
android=$data/raw-arm64.dat

if "$hyptrace" sql "$mainline" "SELECT 1;" 2>&1 | grep -q 'built without'; then
	skip_all "built without libsqlite3"
fi

# ---- helpers ---------------------------------------------------------------------

# sql FILE... QUERY: the rows as CSV, without the table's key and the heading
sql() {
	"$hyptrace" sql -q --csv "$@" 2>"$tmp/err" | sed -n '/^note/d; s/^rows,//p' | tail -n +2
}

# stock FILE: "EVENT CPU NS TEXT" by trace-cmd, in its order; plugins= stock FILE: with plugins
stock() {
	trace-cmd report -t ${plugins--N} "$1" 2>/dev/null |
		perl -ne 'print "$4 $1 $2$3 $5\n" if /\[(\d{3,})\](?: [^ ]{4,6})? *(\d+)\.?(\d{9}): +(\w+): *(.*)/' |
		sed -E 's/^([^ ]+) 0*([0-9])/\1 \2/'
}

# times FILE: "REASON COUNT NS" of the times in the hypervisor, by what trace-cmd prints, slowly: an event
# of Android's in between tells the reason, else hyp_enter does; -1 where the recording ended meanwhile.
times() {
	stock "$1" | perl -ne '
		my ($event, $cpu, $ns, $text) = /^(\S+) (\d+) (\d+) (.*)/ or next;
		if ($event eq "hyp_enter") {
			$since{$cpu} = $ns;
			$reason{$cpu} = $text =~ /reason=(\w+)/ ? $1 : "";
		} elsif ($event =~ /^host_(hcall|smc|mem_abort)$/ && defined $since{$cpu}) {
			$reason{$cpu} = $event;
		} elsif ($event eq "hyp_exit" && defined $since{$cpu}) {
			$n{$reason{$cpu}}++;
			$sum{$reason{$cpu}} += $ns - delete $since{$cpu};
		}
		END { # without those that are unfinished
			print "$_,$n{$_},$sum{$_}\n" for sort keys %n;
		}'
}

# exits FILE: "CLASS COUNT NS NS-OF-THE-GUEST" of what trace-cmd prints of arm64's kvm_exit and kvm_entry:
# what lies between two of a thread
exits() {
	trace-cmd report -t -N "$1" 2>/dev/null | perl -ne '
		%exit = %entry = () if /EVENTS DROPPED/;
		s/(\d+)\.(\d{9}:)/$1$2/;
		my ($pid, $ns, $event, $reason, $class) =
			/-(\d+) +\[\d+\](?: [^ ]{4,6})? *(\d+): +kvm_(exit|entry): *(\w+):(?:.*\((\w+)\))?/ or next;
		if ($event eq "entry") {
			my $e = delete $exit{$pid};
			if ($e) { $n{$e->[1]}++; $sum{$e->[1]} += $ns - $e->[0] }
			$entry{$pid} = $ns;
		} else {
			$class = $reason if $reason ne "TRAP";
			$guest{$class} += $ns - $entry{$pid} if $entry{$pid};
			delete $entry{$pid};
			$exit{$pid} = [$ns, $class];
		}
		END { print "$_,$n{$_},$sum{$_},$guest{$_}\n" for sort keys %n }'
}

# fails STATUS MESSAGE NAME ARGUMENT...: of hyptrace sql
fails() {
	local status=$1 message=$2 name=$3

	shift 3
	"$hyptrace" sql "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	is $? "$status" "$name: exit status"
	like "$(cat "$tmp/err")" "$message" "$name: message"
}

# the Android seed's queries, to the letter
longest='SELECT IMPORT("pkvm.hypervisor");

SELECT
  cpu,
  reason,
  ts,
  dur
FROM pkvm_hypervisor_events
JOIN (
  SELECT
    MAX(dur) as dur2,
    cpu as cpu2,
    reason as reason2
  FROM pkvm_hypervisor_events
  GROUP BY 2, 3) AS sc
ON
  cpu = sc.cpu2
  AND dur = sc.dur2
  AND (reason = sc.reason2 OR (reason IS NULL AND sc.reason2 IS NULL))
ORDER BY dur desc;'
aborts="SELECT
  hyp.dur as dur,
  hyp.ts as ts,
  EXTRACT_ARG(slices.arg_set_id, 'esr') as esr,
  EXTRACT_ARG(slices.arg_set_id, 'addr') as addr
FROM pkvm_hypervisor_events as hyp
JOIN slices
ON hyp.slice_id = slices.id
WHERE hyp.reason = 'host_mem_abort'
ORDER BY dur desc
LIMIT 10;"

# ---- counts, durations ----------------------------------------------------------------

if command -v trace-cmd >/dev/null; then
	for file in "$data"/*.dat "$data"/*/*.dat; do
		expected=$(stock "$file" | cut -d ' ' -f 1 | sort | uniq -c | awk '{ print $2 "," $1 }')
		is "$(sql --no-guests "$file" "SELECT name, count(*) FROM events WHERE name IS NOT NULL GROUP BY name")" "$expected" \
			"$file: as many of each event as trace-cmd report prints"
	done
	for file in "$mainline" "$data/lab-nvhe.dat" "$android" "$data/guest/trace.dat" "$data/functions/trace.dat"; do
		is "$(sql "$file" "SELECT reason, count(*), sum(dur) FROM pkvm_hypervisor_events GROUP BY reason")" \
			"$(times "$file")" "$file: as many times in the hypervisor, as long, as trace-cmd's text tells"
	done
	for file in "$mainline" "$data/lab-nvhe.dat" "$data/lab-stock-arm64.dat" "$data/guest/trace.dat" "$data/functions/trace.dat"; do
		is "$(sql "$file" "SELECT coalesce(esr_class, reason), count(dur), sum(dur), sum(guest_dur) FROM kvm_exits GROUP BY 1 HAVING count(dur)")" \
			"$(exits "$file")" "$file: as many exits, as long, as trace-cmd's text tells"
	done
	is "$(sql "$mainline" "SELECT name || ' ' || cpu || ' ' || ts || ' ' || text FROM events WHERE name LIKE 'hyp_%'")" \
		"$(TRACEEVENT_PLUGIN_DIR=$build/plugins plugins='' stock "$mainline" | grep '^hyp_')" "events: time, CPU and text as trace-cmd has them"
else
	skip 1 "no trace-cmd to compare with"
fi

# ---- the seed's queries ------------------------------------------------------------------

is "$("$hyptrace" sql "$android" "$longest")" \
"cpu  reason                  ts     dur
  1  host_hcall      4331986552  549095
  2  host_mem_abort  4064918156  237890
  0  host_mem_abort  4219567562  130885
  1  host_mem_abort  4156888910  115706
  3  host_mem_abort  4421340807   65993
  3  host_hcall      4420959556   29675
  2  host_hcall      4386711946   22942" "the longest by reason, Android's events"
is "$("$hyptrace" sql "$android" "$aborts")" \
"   dur          ts         esr        addr
237890  4064918156  2478866439  1118507008
130885  4219567562  2449473607  1125498880
115706  4156888910  2478866439  1123110912
107541  4348461680  2449473607  1125679104
 92783  5441466847  2449473607  1117913088
 83425  3912841314  2478866439  1096601600
 78006  4503027397  2449473543  1117908992
 73207  4304093474  2449473607  1125584896
 68498  4117004525  2449473607  1119559680
 65993  4421340807  2480111687  1103724544" "aborts, Android's events"
is "$("$hyptrace" sql "$mainline" "$longest" | head -n 5)" \
"cpu  reason               ts       dur
  1  hvc         25217456000  26774000
  2  hvc         25088089000   4431000
  3  guest_exit  24648574000    770000
  1  guest_exit  24639996000    577000" "the longest by reason, mainline's"
is "$("$hyptrace" sql "$mainline" "INCLUDE PERFETTO MODULE pkvm.hypervisor;"$'\n'"$aborts" | sed 3,10d)" \
"   dur           ts  esr  addr
147000  25179698000  -    -
  8000  24614828000  -    -
host: this kernel has no event host_mem_abort: rows are those that its hyp_enter calls host_abort, without the event's arguments" \
	"aborts, mainline's: what it tells, and that is said"
# import declares host_mem_abort, which this kernel has not
zcat "$data/import-protected.gz" >"$tmp/hyp.txt"
"$hyptrace" import -q --hyp "$tmp/hyp.txt" -i "$data/import-protected.dat" -o "$tmp/imported.dat"
is "$("$hyptrace" sql -q --csv "$tmp/imported.dat" "${aborts/LIMIT 10/}" | sed '1d; s/^[^,]*,//' | grep -v "host: this" | cut -d, -f1,2 | tr -d '"' | sort)" \
	"$(perl -ne '/^\[(\d+)\]\s+(\d+)\.(\d+): hyp_(enter|exit) reason=(\w+)/ or next;
		if ($4 eq "enter") { $since[$1] = ["$2$3" * 1000, $5]; next }
		my $v = delete $since[$1] or next;
		print "$2$3" * 1000 - $v->[0], ",$v->[0]\n" if $v->[1] eq "host_abort"' "$tmp/hyp.txt" | sort)" \
	"aborts, mainline's, of an imported file"
like "$("$hyptrace" sql "$tmp/imported.dat" "$aborts")" '^host: this kernel has no event host_mem_abort: rows are those' "... and that is said"

# ---- Perfetto -------------------------------------------------------------------------------

# perfetto FILE QUERY: what trace_processor finds in our trace of it
perfetto() {
	"$hyptrace" export -q --perfetto "$tmp/pftrace" "$1" 2>/dev/null
	printf 'INCLUDE PERFETTO MODULE pkvm.hypervisor;\n%s\n' "$2" >"$tmp/query"
	"$TRACE_PROCESSOR" -q "$tmp/query" "$tmp/pftrace" 2>/dev/null | sed '/^$/d' | tail -n +2 |
		sed -e 's/"\[NULL\]"//g' -e 's/"//g'
}

if [ -x "${TRACE_PROCESSOR:-}" ]; then
	for file in "$mainline" "$android" "$data/lab-nvhe.dat" "$data/guest/trace.dat"; do
		for query in "SELECT cpu, count(*), sum(dur), min(ts), max(dur) FROM pkvm_hypervisor_events GROUP BY cpu;" \
			"SELECT name, count(*), sum(dur) FROM slice WHERE category = 'hyp' AND extract_arg(arg_set_id, 'debug.end') IS NULL GROUP BY name;" \
			"SELECT name, count(*) FROM ftrace_event WHERE name LIKE 'kvm%' OR name LIKE 'sched%' GROUP BY name;"; do
			is "$(sql "$file" "$query")" "$(perfetto "$file" "$query")" "$file, as trace_processor: $query"
		done
	done
	for query in "${longest#*;}" "$aborts"; do
		is "$(sql "$android" "$query")" "$(perfetto "$android" "$query")" "$android, as trace_processor: $(tr -s ' \n' ' ' <<<"$query")"
	done
else
	skip 1 "no TRACE_PROCESSOR"
fi

# ---- guests ---------------------------------------------------------------------------------

guest=("$data/functions/trace.dat" "$data/functions/trace-Guest.dat")
is "$(sql "${guest[@]}" "SELECT id, name, guest FROM machines; ")" $'0,host,0\n1,Guest,1' "machines"
is "$(sql "${guest[@]}" "SELECT guest, vcpu, tid FROM vcpus")" "$(sql "${guest[@]}" "SELECT DISTINCT guest, vcpu, tid FROM kvm_exits WHERE guest = 'Guest' ORDER BY vcpu")" \
	"vcpus are those that exit"
is "$(sql "${guest[@]}" "SELECT machine, count(*), max(bound) > 0 FROM events GROUP BY machine ORDER BY 1")" \
	"$(for m in Guest host; do echo "$m,$(sql "${guest[@]}" "SELECT count(*), max(bound) > 0 FROM events WHERE machine = '$m'")"; done)" \
	"events by machine"
is "$(sql "${guest[@]}" "SELECT count(*) FROM events WHERE machine = 'Guest' AND bound IS NULL")" 0 "a guest's events have a bound"
is "$(sql "${guest[@]}" "SELECT DISTINCT machine, method IS NOT NULL, bound >= 0 FROM clocks")" "Guest,1,1" "clocks"
like "$(sql "${guest[@]}" "SELECT reason, esr_class, count(*), min(dur) > 0, min(guest_dur) > 0 FROM kvm_exits GROUP BY 1, 2")" \
	'^TRAP,[A-Z0-9a-z_]+,[0-9]+,1,1$' "kvm_exits by reason and class"
is "$(sql "$data/x86/trace.dat" "SELECT count(*) FROM kvm_exits")" "$(sql "$data/x86/trace.dat" "SELECT count(*) FROM events WHERE name = 'kvm_exit'")" \
	"each kvm_exit is one, x86"
like "$(sql "$data/x86/trace.dat" "SELECT reason FROM kvm_exits GROUP BY 1")" '^(EPT_VIOLATION|npf|io|hlt|[A-Za-z_]+)$' "... with its reason's name"

# where time goes: all of it, of each vCPU; what a guest's tasks lost to what their vCPUs did
is "$(sql "${guest[@]}" "SELECT count(*), count(DISTINCT d) FROM (SELECT sum(dur) AS d FROM vcpu_states GROUP BY vcpu)")" 2,1 \
	"vcpu_states: as long for each vCPU"
# of a thread whose events are all within the time that stat counts
is "$(sql tests/data/regions.dat "SELECT sum(dur) FROM vcpu_states WHERE tid = 114 AND state IN ('guest', 'hypervisor', 'not recorded') GROUP BY state ORDER BY state" |
	xargs)" "$("$hyptrace" stat -q --csv --show vcpus tests/data/regions.dat | awk -F, '$4 == 114 { print $6, $7, $15 }')" \
	"... and no state lasts over a pause between regions"
is "$(sql "${guest[@]}" "SELECT (SELECT max(ts + dur) - min(ts) FROM vcpu_states), sum(dur) FROM vcpu_states WHERE vcpu = 0" | tr , '\n' | uniq | wc -l)" 1 \
	"... from the recording's begin to its end"
is "$(sql "${guest[@]}" "SELECT count(*) FROM hyp_calls AS h JOIN vcpu_states AS v ON v.state = 'hypervisor' AND v.ts = h.ts AND v.dur = h.dur AND v.tid = h.tid")" \
	"$(sql "${guest[@]}" "SELECT count(*) FROM vcpu_states WHERE state = 'hypervisor' AND tid IN (SELECT tid FROM hyp_calls WHERE hyp_calls.ts = vcpu_states.ts)")" \
	"... its times in the hypervisor are those of hyp_calls"
like "$(sql "${guest[@]}" "SELECT machine, state, by, sum(dur) FROM thread_states GROUP BY 1, 2, 3")" '^Guest,stolen,host,[0-9]+$' \
	"thread_states: what is stolen of a guest's tasks, and by what"

# as slices: none where events were lost; the exit's reason, too, where what came after it was not recorded
for set in "$data/sync/trace.dat" "$data/steal/trace.dat $data/steal/trace-Guest.dat"; do
	# shellcheck disable=SC2086 # a list of files
	is "$(sql $set "SELECT name, count(*), sum(dur) FROM slice WHERE category = 'vcpu' GROUP BY name ORDER BY name")" \
		"$(sql $set "SELECT CASE WHEN state IN ('hypervisor', 'host', 'not recorded') AND reason IS NOT NULL
			THEN state || ' ' || reason || iif(reason = 'TRAP', ' ' || esr_class, '') ELSE state END AS name, count(*), sum(dur)
			FROM vcpu_states WHERE state <> 'lost' GROUP BY 1 ORDER BY 1")" "$set: slices of vCPUs' states"
done

# two machines of one name
mkdir -p "$tmp/a" "$tmp/b"
cp "$mainline" "$tmp/a/trace.dat"
cp "$data/lab-nvhe.dat" "$tmp/b/trace.dat"
for query in "SELECT category, count(*), sum(dur) FROM slice GROUP BY 1" "SELECT count(DISTINCT utid), count(*), sum(dur) FROM sched"; do
	is "$(sql "$tmp/a/trace.dat" "$tmp/b/trace.dat" "$query")" \
		"$(cp "$tmp/b/trace.dat" "$tmp/b/other.dat"; sql "$tmp/a/trace.dat" "$tmp/b/other.dat" "$query")" "two files of one name: $query"
done

# a loss: nothing is known of what lies across it
"$build/tests/integration/make-trace" "$tmp/lost.dat" tests/integration/events/kernel <<'E'
task 7 a
task 9 b
1000 0 7 sched_switch	a	7	120	1	b	9	120
1500 0 9 sched_switch	b	9	120	0	a	7	120
lost 0 3
2000 0 9 sched_switch	a	7	120	2	b	9	120
2600 0 9 sched_switch	b	9	120	256	a	7	120
1000 1 0 sched_switch	swapper/1	0	120	0	c	11	120
2500 1 11 sched_switch	c	11	120	1	swapper/1	0	120
E
is "$(sql "$tmp/lost.dat" "SELECT ts, dur, cpu, utid, end_state FROM sched ORDER BY cpu, ts")" \
	$'1000,500,0,9,R\n1500,-1,0,7,\n2000,600,0,9,R+\n2600,-1,0,7,\n1000,1500,1,11,S\n2500,-1,1,0,' \
	"sched: a run that events were lost in has no end, those of other CPUs do"
is "$(sql "$tmp/lost.dat" "SELECT ts, dur, utid, state FROM thread_state ORDER BY utid, ts")" \
	$'1000,500,7,S\n1500,-1,7,Running\n2000,600,7,D\n2600,-1,7,Running\n1000,500,9,Running\n1500,-1,9,R\n2000,600,9,Running\n2600,-1,9,R+\n1000,-1,11,Running\n2500,-1,11,S' \
	"thread_state: of no task is known what it did meanwhile"
is "$(sql "$tmp/lost.dat" "SELECT name, idx, value FROM stats WHERE severity = 'data_loss'")" \
	$'ftrace_cpu_has_data_loss,0,1\nftrace_cpu_overrun_delta,0,3' "stats: the loss"

# ---- forms --------------------------------------------------------------------------------------

is "$("$hyptrace" sql --json "$mainline" "SELECT cpu, ts, ts, dur / 2.0 AS half, reason FROM hyp_calls LIMIT 1; SELECT NULL AS x;")" \
'{
  "schema": 1,
  "rows": [
    {"cpu":3,"ts":24613032000,"ts:1":24613032000,"half":46000,"reason":"host_abort"}
  ],
  "rows2": [
    {"x":null}
  ],
  "notes": []
}' "--json"
is "$("$hyptrace" sql --csv "$mainline" "SELECT 1 AS a, 'x,\"y\"' AS b; SELECT 2 AS c")" \
	$'rows,a,b\nrows,1,"x,""y"""\nrows2,c\nrows2,2' "--csv"
is "$("$hyptrace" sql "$mainline" "SELECT char(27) || '[31m' || char(7) AS x;")" $'x\n\\x1b[31m\\x07' \
	"what a terminal would obey is shown"
is "$("$hyptrace" sql "$mainline" "WITH RECURSIVE x(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM x WHERE n < 1003) SELECT n, CASE WHEN n < 1002 THEN 'a' ELSE replace(hex(zeroblob(n * 45 - 45060)), '0', 'b') || 'host' END AS w, 1 AS c FROM x;" | tail -n 2)" \
$'1002  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbhost  1\n1003  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...  1' \
	"a word that is wider than the first thousand takes what is left of the line"
is "$("$hyptrace" sql "$mainline" "SELECT 1 AS a WHERE 0;")" "a" "no rows: the heading"

# ---- the prompt -----------------------------------------------------------------------------------

is "$(printf 'SELECT count(*) AS n\nFROM lost;\n.schema lost\n.quit\nSELECT 1;\n' | "$hyptrace" sql "$mainline")" \
$'n\n0\nCREATE TABLE lost(ts INTEGER, machine TEXT, buffer TEXT, cpu INTEGER, events INTEGER, machine_id INTEGER, utc_ns INTEGER, utc_bound INTEGER);' "queries from standard input"
tables=$(echo .tables | "$hyptrace" sql "$mainline")
unlike "$tables" '^_|^$' ".tables leaves out what only views use"
is "$(printf 'CREATE PERFETTO TABLE mine2 AS SELECT 1 AS a;\nCREATE TEMP TABLE "my own"(b INT);\n.tables\n' | "$hyptrace" sql "$mainline" | grep '^m.*[ 0-9]')" \
	$'my own\nmine2' "... and has those of a query"
for table in events args slices machines cpus threads vcpus vcpu_states thread_states kvm_exits hyp_calls clocks lost slice slices thread process cpu machine \
	pkvm_hypervisor_events thread_state sched sched_slice thread_track process_track track counter counter_track cpu_counter_track \
	thread_slice trace_bounds stats metadata ftrace_event raw ancestor_slice descendant_slice; do
	like "$tables" "^$table\$" ".tables has $table"
	sql "$mainline" "SELECT * FROM $table LIMIT 2" >/dev/null
	is "$(cat "$tmp/err")" "" "... which can be asked"
done
is "$(cd "$tmp" && cp "$OLDPWD/$mainline" trace.dat && "$hyptrace" sql "SELECT count(*) AS n FROM machines;")" $'n\n1' "trace.dat unless files are named"
echo "SELEC 1; SELECT 2;" | "$hyptrace" sql "$mainline" >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/out" "$tmp/err")" '1 hyptrace: near "SELEC": syntax error' "a script ends at an error"

is "$(sql "$mainline" .tables)" "$(tail -n +2 <<<"rows,name
$tables" | grep -v 'mine2\|my own')" ".tables as a query, as CSV"
is "$("$hyptrace" sql "$mainline" ".schema lost")" \
	'CREATE TABLE lost(ts INTEGER, machine TEXT, buffer TEXT, cpu INTEGER, events INTEGER, machine_id INTEGER, utc_ns INTEGER, utc_bound INTEGER);' ".schema TABLE"
is "$("$hyptrace" sql --json "$mainline" ".tables" | jq -r '.rows[].name' 2>&1)" "$tables" "... as JSON"
is "$("$hyptrace" sql "$mainline" .nothing 2>&1; echo $?)" "hyptrace: no command '.nothing' (.help lists them)
1" "a command that is none"
is "$(printf '.nothing\nSELECT 1;\n' | "$hyptrace" sql "$mainline" 2>&1; echo $?)" "hyptrace: no command '.nothing' (.help lists them)
1" "... ends a script"
is "$(printf '\n\nSELECT 1 AS a;\n' | "$hyptrace" sql "$mainline")" $'a\n1' "empty lines"

tty() { tmux -L sql -f /dev/null "$@"; }
screen() { tty capture-pane -p; }
seen() { screen | grep -Eq -e "$1"; }
if command -v tmux >/dev/null && ldd "$hyptrace" | grep -q libedit; then
	export TMUX_TMPDIR=$tmp
	tty new-session -d -x 90 -y 30 "TERM=screen '$hyptrace' sql '$mainline'; echo \"status \$?\"; exec sleep 60"
	wait_for seen '^hyptrace>'
	tty send-keys 'SELECT 40+2' Enter
	wait_for seen '^   \.\.\.>'
	tty send-keys 'AS a\;' Enter
	wait_for seen '^42'
	ok $? "a query at the prompt, in two lines" || diag "$(screen)"
	tty send-keys Up Up 1 Enter
	tty send-keys 'AS a\;' Enter
	wait_for seen '^61'
	ok $? "lines come back by Up, and can be edited" || diag "$(screen)"
	tty send-keys C-d
	wait_for seen '^status 0'
	ok $? "^D ends" || diag "$(screen)"
	tty kill-server
else
	skip 3 "no tmux, or built without libedit"
fi

# ---- what cannot be --------------------------------------------------------------------------------

fails 2 'specify either --json or --csv' "two forms" --json --csv "$mainline" "SELECT 1;"
fails 2 'hyptrace sql: .*no-such' "no such option" --no-such "$mainline" "SELECT 1;"
fails 1 'no such column: x' "no such column" "$mainline" "SELECT x FROM events;"
fails 1 "no table 'android_logs': hyptrace has events" "a table that only Perfetto has" "$mainline" "SELECT * FROM android_logs;"
fails 1 "no function 'extract_metadata': hyptrace has the table metadata" "... that asks a table" "$mainline" "SELECT extract_metadata('system_name');"
fails 1 "no function 'str_split': hyptrace has SQLite's substr" "... of texts" "$mainline" "SELECT str_split('a-b', '-', 1);"
fails 1 "no table 'irq_counter_track': hyptrace has events" "... a table of interrupts" "$mainline" "SELECT * FROM irq_counter_track;"
fails 1 "no function 'to_realtime': hyptrace has clocks" "a function that only Perfetto has" "$mainline" "SELECT to_realtime(ts) FROM events;"
is "$("$hyptrace" sql "$mainline" "INCLUDE PERFETTO MODULE android.startup.startups; SELECT 1 AS x;")" \
$'x\n1\nno module \'android.startup.startups\': hyptrace has pkvm.hypervisor, slices.with_context and the tables of .tables' \
	"a module that only Perfetto has"
fails 1 'not authorized' "a table of the recording cannot be changed" "$mainline" "DELETE FROM recordings;"
fails 1 'not authorized' "ATTACH" "$mainline" "ATTACH '$tmp/x.db' AS x;"
fails 1 'authorization denied' "VACUUM INTO" "$mainline" "VACUUM INTO '$tmp/x.db';"
is "$(ls "$tmp/x.db" 2>&1)" "ls: cannot access '$tmp/x.db': No such file or directory" "nothing is written"
fails 1 "cannot open '.*none.dat': No such file" "no such file" "$tmp/none.dat" "SELECT 1;"
fails 1 'cannot read' "no trace.dat" "$0" "SELECT 1;"
fails 1 '40 are the most' "too many columns" "$mainline" "SELECT $(seq -s , 41);"

"$hyptrace" sql "$mainline" "SELECT * FROM events;" >/dev/full 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 hyptrace: cannot write the output: No space left on device" "a full disk is told once"
is "$("$hyptrace" sql "$mainline" "SELECT * FROM events;" 2>"$tmp/err" | head -n 1 | wc -l; cat "$tmp/err")" 1 "a reader that goes ends it"

# damaged: what is readable is answered
cp "$mainline" "$tmp/damaged.dat"
size=$(stat -c %s "$mainline")
printf 'xxxxxxxxxxxxxxxx' | dd of="$tmp/damaged.dat" bs=1 seek=$((size - 2000)) conv=notrunc 2>/dev/null
fails 1 'damaged' "damaged" "$tmp/damaged.dat" "SELECT count(*) AS n FROM events;"
like "$(cat "$tmp/out")" '^ *[0-9]{3,}$' "... the rest is counted"

# ---- the manual's examples -----------------------------------------------------------------------------

cp "$data/functions/trace.dat" "$tmp/trace.dat"
cp "$data/functions/trace-Guest.dat" "$tmp/trace-guest.dat"
while read -r line; do
	(cd "$tmp" && PATH=$build:$PATH bash -c "$line") >"$tmp/out" 2>"$tmp/err"
	is "$? $(grep -v "guests' files are read too" "$tmp/err")" "0 " "hyptrace-sql(1): $line"
done < <(sed -n '/^\.SH EXAMPLES/,$ s/^[$] //p' Documentation/hyptrace-sql.1 | sed 's/\\-/-/g')

# ---- Ctrl-C -----------------------------------------------------------------------------------------

for query in "WITH RECURSIVE x(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM x) SELECT n FROM x;" \
	"SELECT 1; SELECT count(*) FROM events AS a, events AS b, events AS c;"; do
	rm -f "$tmp/out"
	timeout -s KILL 60 "$hyptrace" sql --csv "$mainline" "$query" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	wait_for test -s "$tmp/out"
	kill -INT "$(ps -o pid= --ppid $pid)"
	wait $pid
	is "$? $(cat "$tmp/err")" "1 hyptrace: interrupted" "Ctrl-C ends a query without an end"
done

done_testing
