#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The time of day: by the samples that record keeps in a host's file, with a bound, in sql, export --parquet and
# report --wall; by DATE of stock's files; unknown without. its options are tested by tests/unit/wall.c.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}

sql() {
	"$hyptrace" sql -q --csv "$@" | tail -n +2 | cut -d, -f2-
}

# The host's clock is set by 1 us between its samples, 10 s apart; the guest's is 250 ns wrong at most.
host=$tmp/trace.dat guest=$tmp/trace-vm.dat
make_trace "$host" <<'E'
clock boot
id 11
guest vm 22 0:100
wall 1000000000 1800000000000000000 100 2000000 500000 37
wall 11000000000 1800000010000001000 300 3000000 600000 37
1000000000 0 100 kvm_entry 0x10
6000000000 0 100 kvm_exit 2 36 0x10
11000000001 0 100 print	0	late
E
make_trace "$guest" <<'E'
id 22
shift 11 500 250
3000000000 0 9 print	0	in the guest
E
is "$(sql "$host" "$guest" "SELECT ts, utc_ns, utc_bound FROM events")" '1000000000,1800000000000000000,2001300
3000000500,1800000002000000700,3001550
6000000000,1800000005000000500,4501300
11000000001,1800000010000001001,' "events: on a line between both samples, with a bound; after the last one without"
is "$(sql "$host" "$guest" "SELECT ts, utc_ns, utc_bound FROM vcpu_states WHERE ts = 6000000000")" \
	"6000000000,1800000005000000500,4501300" "states of vCPUs"
is "$(sql "$host" "SELECT name, utc_max_error, utc_est_error, tai_offset FROM machines")" "host,3000000,600000,37
vm,,," "machines: what the kernel stated last"
for table in events lost hyp_calls kvm_exits slices vcpu_states thread_states; do
	like "$("$hyptrace" sql -q "$host" ".schema $table")" 'utc_ns INTEGER, utc_bound INTEGER\)' "$table has both columns"
done
"$hyptrace" export -q --parquet "$tmp/parquet" "$host" "$guest"
is "$(cd "$tmp/parquet" && find * -name '*.parquet' | sort | xargs "$build/tests/tools/parquetread" | sed 's/.*"ts":\("[0-9]*"\).*"utc_ns":\([^,]*\),"utc_bound":\([^,}]*\).*/\1 \2 \3/' | sort -V)" \
	'"1000000000" "1800000000000000000" "2001300"
"3000000500" "1800000002000000700" "3001550"
"6000000000" "1800000005000000500" "4501300"
"11000000001" "1800000010000001001" null' "export --parquet has them, too"

report() {
	"$hyptrace" report --wall "$@" 2>&1 | sed -n 's/.*] *\([^ ]*Z\): \([a-z_]*\):.*/\1 \2/p'
}
is "$(report "$host" "$guest")" '2027-01-15T08:00:00.000000Z kvm_entry
2027-01-15T08:00:02.000001Z print
2027-01-15T08:00:05.000001Z kvm_exit
2027-01-15T08:00:10.000001Z print' "report --wall"
is "$(report --no-guests -t "$host" | head -n 2 | tail -n 1)" '2027-01-15T08:00:05.000000500Z kvm_exit' "... with all digits"
is "$("$hyptrace" report --wall --no-guests "$host" 2>&1 >/dev/null)" "hyptrace: $host: the time of day is within 2.001ms" "... and its bound"
is "$(report -i "$host" --ts-offset 1s | head -n 1)" '2027-01-15T08:00:00.000000Z kvm_entry' "an offset of the shown times changes no time of day"

# nothing held the system's clock; only the first sample, of a recorder that was killed
sed 's/^wall \(.*\) [0-9]* [0-9]* 37$/wall \1 -1 -1 0/' <<'E' >"$tmp/script"
clock boot
wall 1000000000 1800000000000000000 100 2000000 500000 37
wall 11000000000 1800000010000000000 300 3000000 600000 37
2000000000 0 100 kvm_entry 0x10
E
make_trace "$tmp/unheld.dat" <"$tmp/script"
is "$(sql "$tmp/unheld.dat" "SELECT utc_ns, utc_bound FROM events") $(sql "$tmp/unheld.dat" "SELECT utc_max_error, tai_offset FROM machines")" \
	"1800000001000000000, ," "a clock that nothing synchronised: a time without a bound"
like "$("$hyptrace" report --wall "$tmp/unheld.dat" 2>&1 >/dev/null)" "the time of day is not bounded: nothing synchronised the system's clock" \
	"... as report says"
sed '/^wall 11/d' "$tmp/script" | make_trace "$tmp/killed.dat"
is "$(sql "$tmp/killed.dat" "SELECT utc_ns, utc_bound FROM events")" "1800000001000000000," "one sample: no bound"
like "$("$hyptrace" report --wall "$tmp/killed.dat" 2>&1 >/dev/null)" "the recorder did not end" "... as report says"

# stock's files
printf 'clock boot\ndate 1800000000000000\n5000000000 0 7 print\t0\tx\n' | make_trace "$tmp/date.dat"
is "$(sql "$tmp/date.dat" "SELECT ts, utc_ns, utc_bound FROM events")" "1800000005000000000,1800000005000000000," "DATE: the time of day, without a bound"
is "$(report --nodate "$tmp/date.dat")" "2027-01-15T08:00:05.000000Z print" "... also with --nodate"
printf 'clock boot\n5000000000 0 7 print\t0\tx\n' | make_trace "$tmp/none.dat"
is "$(sql "$tmp/none.dat" "SELECT utc_ns, utc_bound FROM events")" "," "a file that does not say it: NULL"
is "$("$hyptrace" report --wall "$tmp/none.dat" 2>&1); $?" \
	"hyptrace: $tmp/none.dat: it does not say the time of day; record it with -C boot, mono or tai; 1" "... report --wall refuses it"
is "$("$hyptrace" report --wall --raw-ts "$host" 2>&1) $?" \
	"hyptrace report: --wall prints events at their corrected times: without --align-ts and --raw-ts 2" "--wall --raw-ts"
{
	grep -v ^wall "$tmp/script"
	echo "wall 5 6 7 8 9 10"
	echo "wall 4 6 7 8 9 10"
} | make_trace "$tmp/bad.dat"
like "$("$hyptrace" report "$tmp/bad.dat" 2>&1)" "not a whole trace.dat: its time of day" "samples that go back"

# ---- a recording's own: both samples are right, and so is the recording that a killed recorder began -------

# check FILE: its samples, against the clocks of now
check() {
	perl -MTime::HiRes=clock_gettime -e '
		my ($before, $size) = @ARGV;
		my $offset = clock_gettime(0) - clock_gettime(7); # CLOCK_REALTIME, CLOCK_BOOTTIME
		local $/;
		my $data = <STDIN>;
		my $head = quotemeta pack "SL", 0x4872, $size;
		$data =~ /$head/ or die "no option of $size bytes\n";
		my @v = unpack "(Q6)*", substr $data, $+[0], $size;
		while (my ($trace, $utc, $slack) = splice @v, 0, 6) {
			$utc / 1e9 >= $before && $utc / 1e9 <= clock_gettime(0) or die "utc $utc\n";
			$slack < 1e7 or die "slack $slack\n";
			abs(($utc - $trace) / 1e9 - $offset) < 0.1 or die "trace $trace\n";
		}' "$@"
}

bare_machine
export HYPTRACE_TRACING_DIR=$tmp/tracefs
pages_once "$tmp/tracefs"
"$build/tests/integration/fake-android" "$tmp/tracefs" android16
now=$(date +%s)
"$hyptrace" record -q -o "$tmp/own.dat" -C boot -e kvm sleep 0.1
is "$? $(check "$now" 96 <"$tmp/own.dat" 2>&1)" "0 " "record keeps a sample of the begin and one of the end"
"$hyptrace" record -q -o "$tmp/local.dat" -C local -e kvm sleep 0.1
is "$? $(check "$now" 96 <"$tmp/local.dat" 2>&1)" "0 no option of 96 bytes" "... none by a clock that programs cannot read"
"$hyptrace" record -q -o "$tmp/dead.dat" -C boot -e kvm sleep 1000 2>/dev/null &
pid=$!
wait_for grep -qs armed "$tmp/dead.dat.spool/session"
wait_for pgrep -P $pid >/dev/null
cp "$tmp/dead.dat.spool/texts/wall" "$tmp/begin"
timeout 3 "$hyptrace" report --wall --follow "$tmp/dead.dat" >"$tmp/followed" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "124 " "report --wall --follow does not repeat the bound with each look"
pkill -P $pid
kill -KILL $pid
wait $pid 2>/dev/null
is "$(stat -c %s "$tmp/begin")" 48 "a recorder that runs has one"
"$hyptrace" recover -q "$tmp/dead.dat.spool" 2>/dev/null
is "$? $(check "$now" 96 <"$tmp/dead.dat" 2>&1)" "0 " "recover takes the second"
done_testing
