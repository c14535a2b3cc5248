#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace export --anonymize: no name of a capture is left in its tables, nor an address; counts, sums and joins are
# those of the tables with names.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home O=$build
tables=all,args,events,slices,pkvm_hypervisor_events

umask 077
printf 'a key of 32 bytes, made for here' >"$tmp/key"
printf 'a key of 32 bytes, made for what' >"$tmp/other"

# export_both KEY DIR FILE...: events to DIR/events, tables to DIR/tables; KEY none: with names
export_both() {
	local key=$1 dir=$2
	shift 2

	mkdir -p "$dir"
	set -- ${key:+--anonymize "$key"} "$@"
	"$hyptrace" export -q --parquet "$dir/events" "$@" 2>"$dir/err" &&
		"$hyptrace" export -q --parquet "$dir/tables" --tables "$tables" "$@" 2>>"$dir/err"
}

# All rows of a tree, each behind its file's directory
rows() { # DIR
	(cd "$1" && find * -name '*.parquet' -print0 | sort -z | xargs -0 "$build/tests/tools/parquetread")
}

# Names of machines, files, nodes and tasks, but those that every machine has; a line each
names() { # FILE...
	local query

	for query in "SELECT name FROM threads" "SELECT name FROM machines" "SELECT path FROM machines" "SELECT node FROM recordings"; do
		"$hyptrace" sql -q --json "$@" "$query"
	done | jq -r '.rows[][] // empty' | grep -vxE 'host|<idle>|swapper/[0-9]+' | sort -u
}

# The names that the values of rows have, as words. Recorders and states of a vCPU have words of their own, and no
# name is a number.
named() { # NAMES ROWS
	perl -e 'open my $n, "<", shift; chomp(my @names = <$n>);
		while (<>) {
			$seen{$1} = 1 if m{machine=([^/ ]*)};
			$seen{$_} = 1 for /(?<!"program)(?<!"state)(?<!"by)":"(?!-?\d+")((?:[^"\\]++|\\.)*+)"/g;
		}
		my $all = join "\n", keys %seen;
		for my $name (@names) {
			print "$name\n" if $all =~ /(?<!\w)\Q$name\E(?!\w)/;
		}' "$@"
}

# Values of fields that hold addresses, by their names and nothing else
addresses() { # ROWS
	perl -ne 'print "$1\n" while /"(?:ip|parent_ip|caller_ip|vcpu_pc|guest_rip|rip|pc|ipa|gpa|hva|hxfar|far|addr|address|hrtimer|timer|work|function|callsite|callback|call_site|ptr)":"?(\d{6,})/g' "$1" | sort -u
}

# Tasks by name: how many states, and for how long; a join of two tables
sums() { # DIR
	"$build/tests/tools/parquetread" "$1/tables/table=thread_states/"*.parquet | sed 's/^[^{]*//' >"$tmp/states"
	"$build/tests/tools/parquetread" "$1/tables/table=threads/"*.parquet | sed 's/^[^{]*//' >"$tmp/threads"
	jq -nc --slurpfile threads "$tmp/threads" --slurpfile states "$tmp/states" '
		($threads | map({ key: "\(.machine) \(.tid) \(.machine_id)", value: .name }) | from_entries) as $name |
		[$states[] | { machine, name: $name["\(.machine) \(.tid) \(.machine_id)"], same: (.name == $name["\(.machine) \(.tid) \(.machine_id)"]), dur: (.dur // "0" | tonumber) }] |
		group_by([.machine, .name]) | map([length, (map(.dur) | add), (map(select(.same)) | length)]) | sort'
}

# Numbers that stay, of 64 bits and fewer
counts='"(runtime|dur|utc_ns|ns|prev_state|exit_reason|esr_ec|pid|prio|irq)":"?[0-9]+'

# check NAME FILE...
check() {
	local name=$1
	shift

	rm -rf "$tmp/plain" "$tmp/hidden"
	export_both "" "$tmp/plain" "$@" && export_both "$tmp/key" "$tmp/hidden" "$@"
	is $? 0 "$name: both are written"
	for dir in plain hidden; do
		{ rows "$tmp/$dir/events"; rows "$tmp/$dir/tables"; } >"$tmp/$dir/rows"
	done
	names "$@" >"$tmp/names"
	is "$(named "$tmp/names" "$tmp/plain/rows" | wc -l)" "$(wc -l <"$tmp/names")" "... with names: all $(wc -l <"$tmp/names") are there"
	is "$(named "$tmp/names" "$tmp/hidden/rows")" "" "... hashed: none is in the values or directories"
	is "$(grep -E '.{6}' "$tmp/names" | grep -v '^hyptrace' >"$tmp/long"; find "$tmp/hidden/events" "$tmp/hidden/tables" -type f -exec grep -alFf "$tmp/long" {} +)" "" \
		"... nor in the files' bytes"
	addresses "$tmp/plain/rows" >"$tmp/addresses"
	is "$(grep -oE '[0-9]{6,}' "$tmp/hidden/rows" | sort -u | comm -12 - "$tmp/addresses" | wc -l)" 0 "... nor one of $(wc -l <"$tmp/addresses") addresses"
	is "$(wc -l <"$tmp/hidden/rows")" "$(wc -l <"$tmp/plain/rows")" "... as many rows"
	is "$(grep -oE "$counts" "$tmp/hidden/rows" | sort | md5sum)" "$(grep -oE "$counts" "$tmp/plain/rows" | sort | md5sum)" "... with the same $(grep -cE "$counts" "$tmp/plain/rows") numbers"
	is "$(sums "$tmp/hidden")" "$(sums "$tmp/plain")" "... joined tasks have the same counts and sums"
}

for dir in guest x86 steal functions stock; do
	check "$dir" tests/data/$dir/trace.dat tests/data/$dir/trace-Guest.dat
done
for file in tests/data/lab-*.dat tests/data/raw-arm64.dat tests/data/regions.dat; do
	check "${file##*/}" "$file"
done

# ---- what captures do not have ---------------------------------------------------------------------

printf 'event net:seen unsigned int saddr; int port | "%%u", REC->saddr
id 11\nguest vault 22 0:100\ntask 100 CPU 0/KVM\ntask 7 ledger
1000000000 0 7 sched_switch\tledger\t7\t120\t1\tswapper/0\t0\t120
1000000500 0 7 print\t0\topen the vault
1000001000 0 7 print\t0\t40 blk Enter: payroll
1000002000 0 7 print\t0\t40 blk Exit: payroll
1000012000 1 7 thing\t1\t-3\t18446603338368684036\t4041 42 43\tpassword
1000012500 1 7 seen\t3232235777\t80
raw 1000013000 1 ff 7f 00 00 07 00 00 00 2a
buffer vaultbuffer
1000014000 0 7 print\t0\tmore
' | "$build/tests/integration/make-trace" "$tmp/made.dat" tests/integration/events/kernel
export_both "$tmp/key" "$tmp/made" "$tmp/made.dat"
{ rows "$tmp/made/events"; rows "$tmp/made/tables"; } >"$tmp/rows"
# Hashes are set aside: that of a path with mktemp's letters has any four digits now and then
is "$(sed 's/\<[0-9a-f]\{16\}\>/HASH/g' "$tmp/rows" | grep -oE 'ledger|vault|payroll|password|more|4041|3232235777|made.dat|KVM')" "" "spans, texts, buffers, guests and lists are hidden"
is "$(grep -c '"comm":"[0-9a-f]\{16\}"' "$tmp/rows") $(grep -c '"next_comm":"swapper/0"' "$tmp/rows")" "15 1" "... hashed; the idle task is everybody's"
is "$(grep -o '"event":"\(thing\|unknown\|seen\)",.*' "$tmp/rows" | sed 's/[0-9a-f]\{16\}/HASH/')" \
	'"event":"unknown","unknown":{"id":32767,"data":null}}
"event":"seen","seen":{"saddr":null,"port":80}}
"event":"thing","thing":{"flag":true,"small":-3,"big":null,"list":null,"text":"HASH"}}' "numbers stay, but what may be an address; bytes of unknown events do not"

# a guest whose name is no UTF-8: one hash in directories and tables
printf 'id 11\nguest v\\xffm 22 0:100\n1000000000 0 7 print\t0\topen\n' | "$build/tests/integration/make-trace" "$tmp/u.dat" tests/integration/events/kernel
printf 'id 22\n1000002000 0 9 print\t0\tin\n' | "$build/tests/integration/make-trace" "$tmp/ug.dat" tests/integration/events/kernel
export_both "$tmp/key" "$tmp/bytes" "$tmp/u.dat" "$tmp/ug.dat"
is "$(cd "$tmp/bytes/events" && ls -d machine=* | sed 's/machine=//' | grep -v host)" \
	"$(rows "$tmp/bytes/tables" | sed -n 's/^table=recordings .*"machine_id":"1","machine":"\([0-9a-f]\{16\}\)".*/\1/p')" \
	"a guest's name that is no UTF-8 has one hash in directories and tables"

# ---- keys ------------------------------------------------------------------------------------------

# The tasks' hashes; those of two captures that are named alike
hashes() { # KEY DIR
	"$hyptrace" export -q --parquet "$tmp/$2.$1" --tables threads ${3:+--anonymize "$3"} "tests/data/$2/trace.dat"
	rows "$tmp/$2.$1" | grep -o '"name":"[^"]*"' | grep -v 'swapper\|<idle>' | sort -u
}

shared=$(comm -12 <(hashes plain guest) <(hashes plain steal) | wc -l)
is "$(comm -12 <(hashes one guest "$tmp/key") <(hashes one steal "$tmp/key") | wc -l)" "$shared" "one key: $shared tasks of two recordings have the same hashes"
is "$((shared > 3)) $(comm -12 <(hashes one2 guest "$tmp/key") <(hashes other steal "$tmp/other") | wc -l)" "1 0" "... another key shares none"
is "$(comm -12 <(rows "$tmp/hidden/events" | grep -o '"next_comm":"[^"]*"' | sed s/next_comm/name/ | sort -u) <(rows "$tmp/hidden/tables" | grep '^table=threads ' | grep -o '"name":"[^"]*"' | sort -u) | wc -l)" \
	"$(comm -12 <(rows "$tmp/plain/events" | grep -o '"next_comm":"[^"]*"' | sed s/next_comm/name/ | sort -u) <(rows "$tmp/plain/tables" | grep '^table=threads ' | grep -o '"name":"[^"]*"' | sort -u) | wc -l)" \
	"events' tasks are those of the tables"

# ---- refused ---------------------------------------------------------------------------------------

# refused STATUS PATTERN NAME ARGUMENT...: nothing is written
refused() {
	local status=$1 pattern=$2 name=$3
	shift 3
	rm -rf "$tmp/out"
	"$hyptrace" export -q "$@" tests/data/lab-nvhe.dat >"$tmp/stdout" 2>"$tmp/err"
	like "$? $(cat "$tmp/err")" "^$status hyptrace: $pattern" "$name"
	is "$(find "$tmp/out" "$tmp/stdout" -size +0 2>/dev/null)" "" "... nothing is written"
}

for form in --perfetto "$tmp/out" --ctf "$tmp/out"; do
	case $form in --*) option=$form; continue ;; esac
	refused 2 "--anonymize is for --parquet" "$option --anonymize" $option "$form" --anonymize "$tmp/key"
done
refused 2 "--anonymize is for --parquet" "--json --anonymize" --json --anonymize "$tmp/key"
printf 'fifteen bytes..' >"$tmp/short"
refused 1 "the key '.*/short' has fewer than 16 bytes; make one: head -c 32 /dev/urandom > " "a short key" --parquet "$tmp/out" --anonymize "$tmp/short"
cp "$tmp/key" "$tmp/open" && chmod 640 "$tmp/open"
refused 1 "the key '.*/open' is no secret: others may open it; run: chmod 600 " "a key that others may read" --parquet "$tmp/out" --tables all --anonymize "$tmp/open"
refused 1 "cannot read the key '.*/none': No such file" "no key" --parquet "$tmp/out" --anonymize "$tmp/none"
done_testing
