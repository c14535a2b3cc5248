#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `hyptrace report --follow` and `hyptrace top`: a spool that grows as they look at it. The recorder is
# this script, which holds the spool's lock and appends pages.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
. tests/integration/spool.sh
bare_machine

# page CPU TIME:PID...: a page with a sched_switch to each PID, at ns
page() {
	local cpu=$1

	shift
	perl -e 'my ($start) = $ARGV[0] =~ /(\d+)/; my ($last, $data) = ($start, "");
		for (@ARGV) {
			my ($ts, $pid) = split /:/;
			my $delta = $ts - $last;
			$data .= pack "LL", ($delta & 0x7ffffff) << 5 | 30, $delta >> 27 if $delta >> 27;
			$data .= pack "L", ($delta >> 27 ? 0 : $delta) << 5 | 16;
			$data .= pack "SCClZ16llqZ16ll", 244, 0, 0, 0, "swapper", 0, 120, 0, "task", $pid, 120;
			$last = $ts;
		}
		print pack "a4096", pack("QQ", $start, length $data) . $data' "$@" >>"$spool/pages/0.$cpu"
}

# record CPUS: a recording begins, with no pages
record() {
	new_spool 1 "$1"
	for ((i = 0; i < $1; i++)); do
		: >"$spool/pages/0.$i"
	done
	exec 8<>"$spool/session"
	flock 8
	printf 'state\tarmed\n' >>"$spool/session"
}

# ended STATE: the recorder is gone
ended() {
	printf 'state\t%s\n' "$1" >>"$spool/session"
	exec 8>&-
}

follow() {
	"$hyptrace" report --follow "$dat" >"$tmp/followed" 2>"$tmp/err" 8>&- &
	pid=$!
}

printed() {
	[ "$(shown)" = "$1" ]
}

# the PIDs that were printed
shown() {
	echo $(sed -n 's/.*next_pid=//p; s/.*==> task:\([0-9]*\).*/\1/p' "$tmp/followed" | sed 's/ .*//')
}

# ---- report --follow ---------------------------------------------------------

record 2
before=$(contents "$spool")
follow
page 0 1000000000:1 2000000000:2
page 1 1500000000:3
wait_for printed "1 3 2"
ok $? "CPUs are merged, and what is held comes when nothing else does" || diag "$(cat "$tmp/followed" "$tmp/err")"
is "$(<"$tmp/err")" "" "nothing is late"

page 0 4000000000:4
wait_for printed "1 3 2 4"
ok $? "a page that came later"
page 1 3000000000:5
wait_for printed "1 3 2 4 5"
ok $? "a page that comes late is printed all the same"
wait_for grep -q '1 events are printed out of order' "$tmp/err"
ok $? "... and said to be" || diag "$(<"$tmp/err")"

page 0 5000000000:6 6000000000:7
ended drained
wait "$pid"
is "$?" 0 "it ends with the recording" || diag "$(<"$tmp/err")" || diag "$(<"$tmp/err")"
is "$(shown)" "1 3 2 4 5 6 7" "with the last page at once"
recover
is "$status" 0 "the spool is as recover wants it" || diag "$(<"$tmp/err")"
"$hyptrace" report "$dat" >"$tmp/report" 2>"$tmp/err"
is "$(sort "$tmp/followed")" "$(sort "$tmp/report")" "the same lines as of the finished file" || diag "$(cat "$tmp/err")"

record 1
before=$(contents "$spool")
follow
wait_for grep -q '^cpus=1' "$tmp/followed"
is "$(contents "$spool")" "$before" "nothing in the spool changes"
page 0 1000000000:1
rm -r "$spool"
exec 8>&-
wait "$pid"
is "$?" 0 "the spool is removed meanwhile: exit status" || diag "$(<"$tmp/err")"
is "$(shown)" "1" "... and what was in it is printed"

"$hyptrace" report --follow a.dat b.dat 2>"$tmp/err"
is "$?" 2 "two recordings are refused"
"$hyptrace" report --follow "$tmp/none.dat" 2>"$tmp/err"
is "$?" 1 "no recording: exit status"
like "$(<"$tmp/err")" "is not being recorded: start .hyptrace record" "... and what to do"

# ---- top -----------------------------------------------------------------------

# value EXPRESSION: of the answer, $j
value() {
	perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); print eval $ARGV[0] // "none"' "$1" <"$tmp/top"
}

record 2
before=$(contents "$spool")
page 0 1000000000:1 3000000000:2
page 0 3200000000:3 3900000000:4
page 1 3500000000:5
page 1 4000000000:6 7000000000:9
truncate -s -1 "$spool/pages/0.1" # a page that is half there is none
printf '%s\n' $'vm1\t-5000000123\t81000' $'g\e[2J\t7\t9' vm2 $'vm2\tx\t1' $'vm2\t1' $'vm2\t1\t-1' $'vm2\t1\t' >"$spool/texts/clocks"
before=$(contents "$spool")
"$hyptrace" top --once --json -w 500ms "$dat" >"$tmp/top" 2>"$tmp/err"
is "$?" 0 "top: exit status" || diag "$(<"$tmp/err")"
is "$(json_differs top <"$tmp/top" 2>&1)" "" "its JSON is what the schema says"
is "$("$hyptrace" top --once --csv -w 500ms "$dat" 2>/dev/null | grep -c '^"\?\(window\|clocks\|buffers\)"\?,')" \
	"$(($(value '1 + @{$j->{clocks}} + @{$j->{buffers}} + 3')))" "--csv: a line for each row, and for each table's head"
is "$(value '$j->{window}[0]{until}')" 3.900000000 "until the newest record"
is "$(value '$j->{window}[0]{recording}')" runs "it says that the recording runs"
is "$(value 'join ",", map { join " ", map { $_ // "-" } @$_{qw(guest offset_ns bound_ns)} } @{$j->{clocks}}')" \
	$'vm1 -5000000123 81000,g\e[2J 7 9' "clocks of guests with their bounds, and nothing of lines that make no sense" || diag "$(<"$tmp/top")"
is "$(value '$j->{buffers}[0]{machine}')" host "the host is called so, not by the number of a descriptor"
is "$(value '$j->{buffers}[0]{events}')" 2 "the events of the window only" || diag "$(<"$tmp/top")"
is "$(value '$j->{buffers}[0]{first}')" 3.500000000 "... from that record on"
truncate -s 4096 "$spool/pages/0.1"
is "$(contents "$spool" | grep -v 'pages/0')" "$(grep -v 'pages/0' <<<"$before")" "nothing in the spool changes"

"$hyptrace" top "$dat" >"$tmp/top" 2>"$tmp/err" </dev/null &
pid=$!
wait_for grep -qs 'runs$' "$tmp/top"
ok $? "without a terminal it prints table behind table" || diag "$(cat "$tmp/top" "$tmp/err")"
kill -INT "$pid"
wait "$pid"
is "$?" 0 "Ctrl-C ends it as q does"
rm "$tmp/top" # what the first one said
"$hyptrace" top "$dat" >"$tmp/top" 2>"$tmp/err" </dev/null &
pid=$!
wait_for grep -qs 'runs$' "$tmp/top"
ended drained
wait "$pid"
is "$?" 0 "it ends with the recording" || diag "$(<"$tmp/err")"
like "$(<"$tmp/top")" 'ended$' "... and says so" || diag "$(<"$tmp/top")"

# ---- its keys, on a terminal ------------------------------------------------------

tty() { tmux -L top -f /dev/null "$@"; }
screen() { tty capture-pane -p; }
seen() { screen | grep -Eq -e "$1"; }
if command -v tmux >/dev/null && ldd "$hyptrace" | grep -q ncurses; then
	export TMUX_TMPDIR=$tmp
	record 2
	page 0 1000000000:1 3900000000:4
	printf '%s\n' $'vm1\t-5000000123\t81000' >"$spool/texts/clocks"
	tty new-session -d -x 100 -y 40 "TERM=screen '$hyptrace' top -w 200 '$dat'; echo \"status \$?\"; exec sleep 60" 8>&-
	wait_for seen '^hyptrace top   p pause  s by number  v by guest  q quit'
	ok $? "on a terminal: the keys" || diag "$(screen)"
	wait_for seen '^vm1 +-5000000123 +81.00us'
	ok $? "... and the tables" || diag "$(screen)"
	tty send-keys s
	wait_for seen 'p pause  s by time  v by guest'
	ok $? "s: sorted by number" || diag "$(screen)"
	tty send-keys v
	wait_for seen 's by time  v by vCPU'
	ok $? "v: of guests" || diag "$(screen)"
	tty send-keys p
	wait_for seen '^hyptrace top \(paused\)'
	ok $? "p: paused" || diag "$(screen)"
	printf '%s\n' $'vm1\t6\t81000' >"$spool/texts/clocks"
	tty send-keys v
	wait_for seen '\(paused\).* v by guest'
	seen '^vm1 +-5000000123 '
	ok $? "... its figures stay while keys are taken" || diag "$(screen)"
	tty send-keys Space
	wait_for seen '^vm1 +6 '
	ok $? "space: it goes on, with what came" || diag "$(screen)"
	tty send-keys q
	wait_for seen '^status 0'
	ok $? "q: ends, with the terminal as it was" || diag "$(screen)"
	grep -q armed "$spool/session" && flock -n 8
	ok $? "... and the recording goes on"
	tty kill-server
	ended drained
else
	skip 9 "no tmux, or built without ncurses"
fi

"$hyptrace" top --json "$dat" 2>"$tmp/err"
is "$?" 2 "--json without --once is refused"
"$hyptrace" top --csv "$dat" 2>"$tmp/err"
is "$? $(<"$tmp/err")" "2 hyptrace: top: --json and --csv need --once" "so is --csv"

done_testing
