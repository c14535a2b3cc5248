#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace export --parquet: tables whose rows are the lines of --json, as a strict reader finds them, and
# DuckDB where it can be had (tests/tools/duckdb).
. tests/integration/lib.sh

hyptrace=$build/hyptrace here=$PWD
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}

parquet() { # DIR FILE...
	local dir=$1

	shift
	rm -rf "$dir"
	"$hyptrace" export -q --parquet "$dir" "$@" 2>/dev/null
}

# Rows, each behind its file's directory and its event, of which it has the fields as `fields`
by_event() {
	perl -pe 's/^(\S+) (.*"utc_bound":(?:null|"\d+")),"event":"((?:[^"\\]|\\.)*)"(?:,"\3_*":)?/"$1\/event=$3 $2" . (substr($_, $+[0], 1) eq "{" ? ",\"fields\":" : "")/e'
}

# The rows of a tree; the files of a directory in their order
rows() { # DIR
	(cd "$1" && find * -name '*.parquet' -print0 | sort -zV | xargs -0 "$build/tests/tools/parquetread") | by_event
}

# The same made of JSON's lines, in their order for each directory
lines() { # FILE...
	"$hyptrace" export -q --json "$@" 2>/dev/null | perl -ne '
		my ($guest, $buffer, $cpu) = /^\{"file":"[^"]*","guest":(?:null|"(.*?)"),"buffer":("[^"]*"),"cpu":(\d+)/ or die $_;
		my $lost = /^[^{]*\{"file":"[^"]*","guest":(?:null|".*?"),"buffer":"[^"]*","cpu":\d+,"lost":(\w+)/ ? $1 : "null";
		$lost = $lost eq "true" ? "\"-1\"" : $lost =~ /\d/ ? "\"$lost\"" : $lost;
		my ($ts, $pid, $comm, $system, $event) = ("-", "null", "null", undef, "lost");
		my $fields = "";
		if (/"time":(\d+),"pid":(null|\d+),"comm":(null|"(?:[^"\\]|\\.)*"),"system":(null|"[^"]*"),"event":(null|"[^"]*"),(.*)/s) {
			($ts, $pid, $comm, $system, $event, my $rest) = ($1, $2, $3, $4, $5, $6);
			$rest =~ s/^"id":(\d+),"data":(\[.*?\]).*/"fields":{"id":$1,"data":$2},"info":"/s and $event = "unknown";
			$rest =~ /^"fields":(\{.*?\}),"info":"/s or die $_;
			$fields = $1 eq "{}" ? "" : ",\"fields\":$1";
			$system = undef if $system eq "null";
			tr/"//d for grep { defined } $system, $event;
		}
		printf "machine=%s/system=%s/event=%s {\"ts\":\"%s\",\"cpu\":%s,\"pid\":%s,\"comm\":%s,\"buffer\":%s,\"lost\":%s%s}\n",
			$guest // "host", $system // "__HIVE_DEFAULT_PARTITION__", $event, $ts, $cpu, $pid, $comm, $buffer, $lost, $fields'
}

# Both sorted by directory, without what JSON does not tell
compare() { # DIR FILE...
	local dir=$1

	shift
	lines "$@" | sort -s -k1,1 >"$tmp/lines"
	rows "$dir" | sed -E 's/"bound":(null|"[0-9]+"),"utc_ns":null,"utc_bound":null,?//; s/,\}$/}/; /event=lost /s/"ts":"[0-9]*"/"ts":"-"/' |
		sort -s -k1,1 >"$tmp/rows"
	same "$tmp/rows" "$tmp/lines" "${*#"$tmp/"} as tables: $(wc -l <"$tmp/lines") rows are JSON's lines"
}

fails() { # STATUS PATTERN NAME COMMAND...
	local status=$1 pattern=$2 name=$3 err
	shift 3
	err=$("$@" 2>&1 >/dev/null)
	is "$?" "$status" "$name: status"
	like "$err" "$pattern" "$name: message"
}

# ---- a table ---------------------------------------------------------------------------

make_trace "$tmp/host.dat" <<'E'
id 11
guest vm 22 0:100 1:101
task 100 CPU 0/KVM
task 7 a "b\c
1000000000 0 7 sched_switch	a "b\x01c	7	120	1	CPU 0/KVM	100	120
1000002000 0 100 kvm_entry	0xffff800080001000
1000009000 0 100 kvm_exit	2	0x24	0xffff800080001004
1000010000 1 7 irq_handler_entry	27	arch\xfftimer
1000012000 1 7 thing	1	-3	18446744073709551615	40 41 42	late\x00text
1000012500 1 7 thing	0	127	0	65535 65536 65537	\xc3\xa4\xe2\x82\xac"
1000012600 1 7 wide	-9223372036854775808	18446744073709551615 0	4294967295
raw 1000013000 1 ff 7f 00 00 07 00 00 00 2a
lost 1 3
1000014000 1 7 print	0	hello world\x0a
lost 2 0
1000015000 2 7 hyp:hyp_enter
1000016000 3 7 irq_handler_exit	27	1
lost 3 9
buffer hyp
1000001000 0 100 hypervisor:hyp_enter	5	100
E
make_trace "$tmp/guest.dat" <<'E'
id 22
shift 11 500
1000002000 0 9 print	0	in the guest
E

parquet "$tmp/out" "$tmp/host.dat" "$tmp/guest.dat"
is "$?" 0 "tables are made"
is "$(rows "$tmp/out" | LC_ALL=C sort -s -k1,1)" 'machine=host/system=__HIVE_DEFAULT_PARTITION__/event=lost {"ts":"1000016000","cpu":3,"pid":null,"comm":null,"buffer":"","lost":"9","bound":"0","utc_ns":null,"utc_bound":null}
machine=host/system=__HIVE_DEFAULT_PARTITION__/event=unknown {"ts":"1000013000","cpu":1,"pid":null,"comm":null,"buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"id":32767,"data":[255,127,0,0,7,0,0,0,42,0,0,0]}}
machine=host/system=ftrace/event=print {"ts":"1000014000","cpu":1,"pid":7,"comm":"a \"b\\c","buffer":"","lost":"3","bound":"0","utc_ns":null,"utc_bound":null,"fields":{"ip":"0","buf":"hello world\n"}}
machine=host/system=hyp/event=hyp_enter {"ts":"1000015000","cpu":2,"pid":7,"comm":"a \"b\\c","buffer":"","lost":"-1","bound":"0","utc_ns":null,"utc_bound":null}
machine=host/system=hypervisor/event=hyp_enter {"ts":"1000001000","cpu":0,"pid":100,"comm":"CPU 0/KVM","buffer":"hyp","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"reason":5,"vcpu":100}}
machine=host/system=irq/event=irq_handler_entry {"ts":"1000010000","cpu":1,"pid":7,"comm":"a \"b\\c","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"irq":27,"name":"arch'$'\xef\xbf\xbd''timer"}}
machine=host/system=irq/event=irq_handler_exit {"ts":"1000016000","cpu":3,"pid":7,"comm":"a \"b\\c","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"irq":27,"ret":1}}
machine=host/system=kvm/event=kvm_entry {"ts":"1000002000","cpu":0,"pid":100,"comm":"CPU 0/KVM","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"vcpu_pc":"18446603338368684032"}}
machine=host/system=kvm/event=kvm_exit {"ts":"1000009000","cpu":0,"pid":100,"comm":"CPU 0/KVM","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"ret":2,"esr_ec":36,"vcpu_pc":"18446603338368684036"}}
machine=host/system=sched/event=sched_switch {"ts":"1000000000","cpu":0,"pid":7,"comm":"a \"b\\c","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"prev_comm":"a \"b\u0001c","prev_pid":7,"prev_prio":120,"prev_state":"1","next_comm":"CPU 0/KVM","next_pid":100,"next_prio":120}}
machine=host/system=vendor/event=thing {"ts":"1000012000","cpu":1,"pid":7,"comm":"a \"b\\c","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"flag":true,"small":-3,"big":"18446744073709551615","list":[40,41,42],"text":"late"}}
machine=host/system=vendor/event=thing {"ts":"1000012500","cpu":1,"pid":7,"comm":"a \"b\\c","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"flag":false,"small":127,"big":"0","list":[65535,0,1],"text":"ä€\""}}
machine=host/system=vendor/event=wide {"ts":"1000012600","cpu":1,"pid":7,"comm":"a \"b\\c","buffer":"","lost":null,"bound":"0","utc_ns":null,"utc_bound":null,"fields":{"below":"-9223372036854775808","pair":["18446744073709551615","0"],"small":4294967295}}
machine=vm/system=ftrace/event=print {"ts":"1000002500","cpu":0,"pid":9,"comm":null,"buffer":"","lost":null,"bound":null,"utc_ns":null,"utc_bound":null,"fields":{"ip":"0","buf":"in the guest"}}' \
	"a row for each record, by machine and event, with typed fields"
compare "$tmp/out" "$tmp/host.dat" "$tmp/guest.dat"
is "$(cd "$tmp/out" && find * -name '*.parquet' | sed 's,/part-[0-9]*.parquet,,' | sort | uniq -c | xargs -n2)" '1 machine=host/system=__HIVE_DEFAULT_PARTITION__
1 machine=host/system=ftrace
1 machine=host/system=hyp
1 machine=host/system=hypervisor
1 machine=host/system=irq
1 machine=host/system=kvm
1 machine=host/system=sched
1 machine=host/system=vendor
1 machine=vm/system=ftrace' "... in a file for each machine and system"
is "$("$build/tests/tools/parquetread" "$tmp/out/machine=host/system=irq/"*.parquet | sed 's/.*"event"/"event"/')" '"event":"irq_handler_entry","irq_handler_entry":{"irq":27,"name":"arch'$'\xef\xbf\xbd''timer"}}
"event":"irq_handler_exit","irq_handler_exit":{"irq":27,"ret":1}}' "... whose events have their fields in structures of their own"

# ---- captures ---------------------------------------------------------------------------

duckdb=$(tests/tools/duckdb ready)
duckdb_there=$?

# DuckDB reads what the strict reader reads.
duckdb_reads() { # DIR NAME
	if [ $duckdb_there != 0 ]; then
		skip 1 "$duckdb"
		return
	fi
	rows "$1" | sort -s -k1,1 >"$tmp/rows"
	tests/tools/duckdb rows "$1" | sed 's/\x7f/\\u007f/g' | by_event | sort -s -k1,1 >"$tmp/theirs"
	same "$tmp/theirs" "$tmp/rows" "$2: DuckDB reads the same"
}

duckdb_reads "$tmp/out" "made-up records"
mkdir "$tmp/all"
for dir in guest functions x86 sync; do
	parquet "$tmp/all/$dir" tests/data/$dir/trace.dat tests/data/$dir/trace-Guest.dat
	compare "$tmp/all/$dir" tests/data/$dir/trace.dat tests/data/$dir/trace-Guest.dat
done
for file in tests/data/*.dat; do
	parquet "$tmp/all/${file##*/}" "$file"
	compare "$tmp/all/${file##*/}" "$file"
done
duckdb_reads "$tmp/all" "all captures"

# ---- what files may think of --------------------------------------------------------------

# of each a record of the bytes ABC...
long=$(printf 'a_long_name_of_twenty%.0s' {1..10})
n=0
while read -r event; do
	echo "event $event | \"x\""
	name=${event#*:} name=${name%% *} bytes=ABCDEFGHIJKLMNOP
	[ "$name" != short ] || bytes=
	echo "$((1000 + n)) 0 7 ${event%%:*}:$name =$bytes"
	n=$((n + 1))
done <<'E' | sed "s/LONG/$long/g; 1i cpus 1\ntask 7 task" | "$build/tests/integration/make-trace" "$tmp/odd.dat"
..:up
a/../../b:slash
k=v:equals
%41:percent
x\x20y'"*:blank
\x1b[31m\x0a:terminal
\xff:bytes
\xc3\xa4:letters
__HIVE_DEFAULT_PARTITION__:null
LONG1:LONG1
LONG2:LONG1
s:LONG1
s:LONG2
f:same u8 n; u8 N; u8 n_; u8 n
f:own u8 ts; u8 fields
f:beyond u64 n@20; char s[16]@12; u16 v[40]@8
f:no_nul char s[8]; char end[]
f:pieces u32 v[3]@8:11; u64 none[]@24
f:place __data_loc char[] s; __data_loc u8[] v
f:structs struct thing t@8:12; u8 n@8
f:short u32 n
E
parquet "$tmp/out" "$tmp/odd.dat"
is "$?" 0 "odd names and fields"
is "$(cd "$tmp/out" && find * -name '*.parquet' | sed -E 's,(a_long_name_of_twenty)+,LONG,g; s,/part-[0-9]*.parquet,,' | sort)" \
	"machine=host/system=%1B%5B31m%0A
machine=host/system=%2541
machine=host/system=%5F_HIVE_DEFAULT_PARTITION__
machine=host/system=..
machine=host/system=LONGa_long_name%7E109
machine=host/system=LONGa_long_name%7E110
machine=host/system=a%2F..%2F..%2Fb
machine=host/system=f
machine=host/system=k%3Dv
machine=host/system=s
machine=host/system=x%20y%27%22%2A
machine=host/system="$'\xc3\xa4'"
machine=host/system="$'\xef\xbf\xbd'"" "names that could lead elsewhere, or mean something else, are escaped, long ones cut and told apart"
is "$(rows "$tmp/out" | sed -n 's/.*event=\([a-z_]*\) .*"bound":"0","utc_ns":null,"utc_bound":null,"fields":/\1 /p' | sort)" 'beyond {"n":null,"s":null,"v":null}}
no_nul {"s":"ABCDEFGH","end":"IJKLMNOP"}}
own {"ts":65,"fields":66}}
pieces {"v":[65,66,67,68,69,70,71,72,73,74,75],"none":[]}}
place {"s":null,"v":null}}
same {"n":65,"N_":66,"n__":67,"n___":68}}
short {"n":null}}
structs {"n":65}}' "fields beyond the record are null, names of fields told apart"
duckdb_reads "$tmp/out" "odd names and fields"
if [ $duckdb_there = 0 ]; then
	is "$(tests/tools/duckdb query <<<"select string_agg(concat_ws(':', system, event), ' ' order by ts) as names
		from read_parquet('$tmp/out/**/*.parquet', hive_partitioning = true)
		where event not like 'a_long%' and system <> 'f';")" \
		'{"names":"..:up a/../../b:slash k=v:equals %41:percent x y'\''\"*:blank \u001b[31m\n:terminal '$'\xef\xbf\xbd:bytes \xc3\xa4:letters'' __HIVE_DEFAULT_PARTITION__:null"}' \
		"DuckDB has the names as they were"
else
	skip 1 "$duckdb"
fi

# A host, and guests that are called like others
for name in host ../up a%2fb; do
	make_trace "$tmp/h.dat" <<E
id 11
guest $name 22 0:100
1000000000 0 7 irq_handler_exit	27	1
E
	parquet "$tmp/out" "$tmp/h.dat" "$tmp/guest.dat"
	ls "$tmp/out"
done >"$tmp/machines"
is "$(cat "$tmp/machines")" 'machine=host
machine=host%7E2
machine=..%2Fup
machine=host
machine=a%252fb
machine=host' "machines are told apart, and lead nowhere"

# ---- much ------------------------------------------------------------------------------------

# rows for which there is no room become row groups, whose metadata soon finds no room either
# many FILE EVENTS RECORDS SIZE: records of that many events in turn, with a field n
many() {
	awk -v events="$2" -v records="$3" -v size="$4" 'BEGIN {
		print "cpus 1\ntask 7 task\nsize " size
		for (i = 0; i < events; i++) print "event many:e" i " u32 n | \"x\""
		for (i = 0; i < records; i++) print 1000 + i, 0, 7, "e" i % events, i + 1 }' |
		"$build/tests/integration/make-trace" "$1"
}
# numbers DIR PROGRAM: Perl for each row, with its $event and $n
numbers() {
	(cd "$1" && find * -name '*.parquet' -print0 | sort -zV | xargs -0 "$build/tests/tools/parquetread") |
		perl -ne '/"event":"(e\d+)".*"n":(\d+)/ or die $_; my ($event, $n) = ($1, $2); '"$2"
}
many "$tmp/many.dat" 2000 800000 24
rm -rf "$tmp/out"
(ulimit -n 40; exec "$hyptrace" export -q --parquet "$tmp/out" "$tmp/many.dat")
is "$?" 0 "2,000 events of a system, of 256 fields in a file, need no descriptors of their own"
[ "$(find "$tmp/out" -name '*.parquet' | wc -l)" -gt 8 ]
ok $? "... and are more files than these 8 where memory is short"
is "$(numbers "$tmp/out" '$n{$event}++; $sum += $n; END { printf "%d %d %.0f\n", scalar keys %n, scalar(grep { $_ != 400 } values %n), $sum }')" \
	"2000 0 320000400000" "... that lose no row"
many "$tmp/few.dat" 2 300001 24
parquet "$tmp/out" "$tmp/few.dat"
is "$(numbers "$tmp/out" '$rows{$event} .= "$event $n\n"; END { print @rows{sort keys %rows} }' | md5sum)" \
	"$( (seq 1 2 300001 | sed 's/^/e0 /'; seq 2 2 300000 | sed 's/^/e1 /') | md5sum)" "row groups follow on each other in order"
rm -rf "$tmp/one"
taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')" "$hyptrace" export -q --parquet "$tmp/one" "$tmp/few.dat"
diff -r "$tmp/one" "$tmp/out" >"$tmp/diff"
is "$?" 0 "on one core the files are the same"
duckdb_reads "$tmp/out" "row groups"

# ---- the man page's example ----------------------------------------------------------------------

sql=$(sed -n 's/^> \(select machine, system.*\)/\1/p' Documentation/hyptrace-export.1)
if [ $duckdb_there = 0 ]; then
	parquet "$tmp/tables" tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat
	is "$(cd "$tmp" && "$here/tests/tools/duckdb" query <<<"$sql" | sort)" \
		"$(lines tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat | perl -ne '
			$n{"\"machine\":\"$1\",\"system\":\"$2\",\"event\":\"$3\""}++ if m{^machine=(.*)/system=(.*)/event=(\S+)};
			END { print "{$_,\"count_star()\":\"$n{$_}\"}\n" for sort keys %n }')" "how often which event came, by machine"
else
	skip 1 "$duckdb"
fi

# ---- what is refused ---------------------------------------------------------------------------

fails 1 "cannot write '$tmp/out': it is there already" "a directory that is there" "$hyptrace" export --parquet "$tmp/out" "$tmp/host.dat"
fails 1 "cannot write '$tmp/none/out': No such file" "no directory above" "$hyptrace" export --parquet "$tmp/none/out" "$tmp/host.dat"
fails 2 'specify one of --perfetto OUT, --ctf DIR, --json and --parquet DIR' "two forms" "$hyptrace" export --json --parquet "$tmp/x" "$tmp/host.dat"
fails 2 'o is for --json' "two outputs" "$hyptrace" export -o "$tmp/y" --parquet "$tmp/x" "$tmp/host.dat"
fails 1 'No such file' "no recording" "$hyptrace" export --parquet "$tmp/x" "$tmp/none.dat"
is "$(ls -d "$tmp/x" "$tmp/.x.part" "$tmp/y" 2>/dev/null)" "" "nothing is made then"

# A page whose commit word cannot be
make_trace "$tmp/hurt.dat" <<'E'
1000000000 0 7 print	0	good
1000000000 1 7 print	0	PAGE-OF-CPU-1
E
perl -0777 -pi -e 'my $at = index($_, "PAGE-OF-CPU-1"); $at -= $at % 4096; substr($_, $at + 8, 4) = "\xff\xff\xff\x0f"' \
	"$tmp/hurt.dat"
rm -rf "$tmp/out"
fails 1 'damaged in 1 place' "a damaged page" "$hyptrace" export --parquet "$tmp/out" "$tmp/hurt.dat"
is "$(rows "$tmp/out" | sort | sed 's/ .*"lost":\([^,]*\),/ \1 /; s/"bound":"0","utc_ns":null,"utc_bound":null,*//')" \
	'machine=host/system=__HIVE_DEFAULT_PARTITION__/event=lost "-1" }
machine=host/system=ftrace/event=print null "fields":{"ip":"0","buf":"good"}}' "... and what is good is there, and the loss"

done_testing
