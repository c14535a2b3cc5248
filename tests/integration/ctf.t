#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace export --ctf, read back by babeltrace2: the same events and fields as export --json.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

"$hyptrace" export --ctf "$tmp/none" "$tmp/no.dat" 2>"$tmp/err"
grep -q 'built without' "$tmp/err" && skip_all "built without babeltrace2's library"
command -v babeltrace2 >/dev/null || skip_all "no babeltrace2"

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}

# TIME CPU PID EVENT FIELD=VALUE..., fields by name, sorted
from_ctf() { # DIR
	babeltrace2 --clock-cycles --no-delta "$1" 2>"$tmp/warnings" | perl -ne '/^\[0*(\d+)\] (\S+): \{ cpu_id = (\d+) \}, \{ pid = (-?\d+) \}(?:, \{ (.*) \})?$/ or print "? $_";
		my ($head, $rest, @fields) = ("$1 $3 $4 $2", $5 // "");
		while ($rest =~ /\G(?:, )?(\w+) = (\[ .*? \](?=, \w+ = |$)|"(?:[^"\\]|\\.)*"|-?\d+)/g) {
			my ($name, $v) = ($1, $2);
			next if $name =~ /^__\w+_len$/; # of an array that is not always as long
			$v =~ s/\[\d+\] = //g;
			$v =~ s/[ "]//g;
			push @fields, "$name=$v";
		}
		print join(" ", $head, sort @fields), "\n"' | LC_ALL=C sort
}

from_json() { # GUEST or - FILE...
	local guest=$1
	shift
	"$hyptrace" export --json "$@" 2>/dev/null | perl -MJSON::PP -e 'my $guest = shift;
		sub value { my $v = shift; return ref $v eq "ARRAY" ? "[" . join(",", @$v) . "]" : JSON::PP::is_bool($v) ? $v + 0 : $v }
		while (<STDIN>) {
			my $e = decode_json($_);
			next if ($e->{guest} // "-") ne $guest || !defined $e->{time};
			my $f = $e->{fields} // { data => $e->{data} };
			my $pid = $e->{event} ? $e->{pid} : -1;
			my @fields = map { (my $v = value($f->{$_})) =~ s/[ "\\]//g; "$_=$v" } grep { defined $f->{$_} } keys %$f;
			print join(" ", $e->{time}, $e->{cpu}, $pid, $e->{event} ? "$e->{system}:$e->{event}" : "raw", sort @fields), "\n";
		}' "$guest" | LC_ALL=C sort
}

# ---- real captures ---------------------------------------------------------------------------

for files in tests/data/lab-protected.dat tests/data/lab-nvhe.dat tests/data/lab-stock-arm64.dat \
	'tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat'; do
	rm -rf "$tmp/ctf"
	# shellcheck disable=SC2086
	"$hyptrace" export -q --ctf "$tmp/ctf" $files
	is "$?" 0 "$files: status"
	# shellcheck disable=SC2086
	from_json - $files >"$tmp/expected"
	from_ctf "$tmp/ctf/host" >"$tmp/got"
	same "$tmp/got" "$tmp/expected" "... the host's events and fields are those of --json"
	[ "$(wc -l <"$tmp/got")" -gt 100 ]
	ok $? "... more than a hundred"
	# shellcheck disable=SC2086
	is "$(babeltrace2 "$tmp/ctf" 2>/dev/null | wc -l)" "$("$hyptrace" export --json $files 2>/dev/null | grep -c '"time"')" \
		"... and all of them can be read together"
done
# shellcheck disable=SC2086
from_json Guest $files >"$tmp/expected"
from_ctf "$tmp/ctf/Guest" >"$tmp/got"
same "$tmp/got" "$tmp/expected" "a guest is a trace of its own, on the host's clock"
rm "$tmp/ctf/host/metadata"
is "$(ls "$tmp/ctf/host")" "$("$hyptrace" export --no-guests --json "${files%% *}" 2>/dev/null | perl -MJSON::PP -ne 'my $e = decode_json($_); $seen{ ($e->{buffer} || "top") . "-$e->{cpu}" } = 1;
	END { print "$_\n" for keys %seen }' | LC_ALL=C sort)" "a stream for each CPU of each buffer that has records"

# ---- made up -----------------------------------------------------------------------------------

make_trace "$tmp/odd.dat" <<'E'
task 7 a
1000000000 0 7 sched_switch	abc	7	120	1	next	-1	120
1000012000 1 7 thing	1	-3	18446744073709551615	40 41 42	late\x00text
1000012100 1 7 wide	-9223372036854775808	5 6	7
raw 1000013000 1 ff 7f 00 00 07 00 00 00 2a 00 00 00
raw 1000013500 1 65 00 00 00 07 00 00 00 2a 00 00 00
lost 1 3
1000014000 1 7 print	0	hello
1000015000 1 7 print	0	world
1000016000 1 7 print	0	again
lost 1 40
1000018000 1 7 print	0	later
lost 2 5
1000019000 2 7 print	0	first
E
rm -rf "$tmp/ctf"
said=$("$hyptrace" export --ctf "$tmp/ctf" "$tmp/odd.dat" 2>&1)
is "$?" 0 "odd records: status"
from_json - "$tmp/odd.dat" >"$tmp/expected"
from_ctf "$tmp/ctf/host" | sed 's/^1000013500 1 -1 raw .*/cut/' >"$tmp/got"
is "$(grep -v '^cut' "$tmp/got")" "$(grep -v '^1000013500' "$tmp/expected")" "odd records: bytes of what is unknown, numbers of all kinds"
is "$(grep -c '^cut' "$tmp/got")" 1 "... one that ends before its fields is written as its bytes"
like "$said" '1 of 10 records are of events without a format' "... which is said of unknown ones"
like "$said" '1 records end before one of their fields: they are written as bytes' "... and of short ones"
# "WARNING: Tracer discarded 3 events between [0.000000000] and [...] in trace ..."
is "$(grep -oE 'discarded [0-9]+ event.* between \[[^]]*\] and \[[^]]*\]' "$tmp/warnings" | sed -E 's/ between.*\.([0-9]+)\] and .*\.([0-9]+)\]/ \1-\2/' | sort)" \
	"discarded 3 events 000013500-000014000
discarded 40 events 000016000-000018000
discarded 5 events 000019000-000019000" "lost events are discarded ones, from the record before to the one behind"

# buffers whose streams would have one file, in two machines of one name
mkdir "$tmp/one" "$tmp/two"
make_trace "$tmp/one/like.dat" <<'E'
1000000000 0 7 print	0	main
1000003000 1 7 print	0	second
buffer top
1000001000 0 7 print	0	instance
1000002000 0 7 sched_switch	abc	7	120	1	next	8	120
E
make_trace "$tmp/two/like.dat" <<'E'
1000004000 0 7 print	0	other
E
rm -rf "$tmp/ctf"
"$hyptrace" export -q --ctf "$tmp/ctf" "$tmp/one/like.dat" "$tmp/two/like.dat"
is "$?" 0 "like names: status"
is "$(cd "$tmp/ctf" && find . -type f | LC_ALL=C sort | xargs)" \
	"./like-0/metadata ./like-0/top-0 ./like/metadata ./like/top-0 ./like/top-0-3 ./like/top-1" "... each stream has its file"
from_ctf "$tmp/ctf/like" | cut -d" " -f1,2,4 >"$tmp/got"
is "$(cat "$tmp/got")" "1000000000 0 ftrace:print
1000001000 0 ftrace:print
1000002000 0 sched:sched_switch
1000003000 1 ftrace:print" "... with its events"
is "$(from_ctf "$tmp/ctf/like-0" | cut -d" " -f1,2,4)" "1000004000 0 ftrace:print" "... of the other machine, too"
is "$(for block in trace stream event; do grep -c "^$block {" "$tmp/ctf/like/metadata"; done | xargs)" "1 2 3" \
	"... and metadata that says nothing twice"
taskset -c 0 "$hyptrace" export -q --ctf "$tmp/alone" "$tmp/one/like.dat" "$tmp/two/like.dat"
is "$?" 0 "one core: status"
is "$(grep -hv uuid "$tmp"/alone/*/metadata)" "$(grep -hv uuid "$tmp"/ctf/*/metadata)" "... and the same metadata"

make_trace "$tmp/ticks.dat" <<'E'
clock x86-tsc
1000000000 0 7 sched_switch	abc	7	120	1	next	8	120
E
"$hyptrace" export --ctf "$tmp/ticks" "$tmp/ticks.dat" 2>"$tmp/err"
is "$?" 1 "a clock of ticks: status"
like "$(cat "$tmp/err")" 'Perfetto and CTF take ns' "... and message"
[ ! -e "$tmp/ticks" ]
ok $? "... and nothing is made"

# ---- what cannot be --------------------------------------------------------------------------

is "$("$hyptrace" export --ctf "$tmp/ctf" "$tmp/odd.dat" 2>&1; echo $?)" "hyptrace: cannot write '$tmp/ctf': it is there already
1" "into a directory that is there"
is "$("$hyptrace" export --ctf "$tmp/x" --json "$tmp/odd.dat" 2>&1; echo $?)" "hyptrace: specify one of --perfetto OUT, --ctf DIR, --json and --parquet DIR
2" "two forms"
done_testing
