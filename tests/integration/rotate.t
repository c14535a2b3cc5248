#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Long recordings: --rotate, --keep, -m, --max-size and --flight, on a FAKE tree (fake-android.c) whose pages
# carry numbers. Each number is in one of a rotated recording's files, once; what only the newest is wanted
# of has the newest without a gap. The same on a real kernel, with a guest: tests/lab/t/18-rotate.t.
# shellcheck disable=SC2016,SC2317 # perl has its own $; called by wait_for
[ ! -w /dev/shm ] || export TMPDIR="${TMPDIR:-/dev/shm}"
. tests/integration/lib.sh

hyptrace=$build/hyptrace
tree=$tmp/tracefs
out=$tmp/out
export HYPTRACE_TRACING_DIR=$tree
bare_machine

# new_tree: each CPU's pages come through a FIFO
new_tree() {
	local raw

	rm -rf "$tree" "$out" "$tmp/fed"
	mkdir "$out"
	"$build/tests/integration/fake-android" "$tree" android16
	for raw in "$tree"/per_cpu/cpu*/trace_pipe_raw; do
		rm "$raw"
		mkfifo "$raw"
	done
}

# feed: pages of ten kvm_entry each, numbered by CPU, until it is killed; how many CPU 0 got so far in $tmp/fed
feed() {
	perl -e '
		use Fcntl;
		my ($tree, $fed) = @ARGV;
		my @fd;
		for my $cpu (0 .. 2) { sysopen $fd[$cpu], "$tree/per_cpu/cpu$cpu/trace_pipe_raw", O_RDWR or die }
		for (my $page = 0;; $page++) {
			for my $cpu (0 .. 2) {
				my $events = join "", map {
					pack("L S C C l Q", 4 | 100 << 5, 2, 0, 0, 7, $cpu << 32 | $page * 10 + $_)
				} 0 .. 9;
				syswrite $fd[$cpu], pack("Q Q a4080", 1e9 + $page * 1e6, length $events, $events);
			}
			open my $f, ">", "$fed.new"; print $f $page; close $f; rename "$fed.new", $fed;
			select undef, undef, undef, 0.002;
		}' "$tree" "$tmp/fed" &
	feeder=$!
}

# start OPTION...: a recorder in the background, fed
start() {
	new_tree
	feed
	"$hyptrace" record -o "$out/t.dat" -e kvm "$@" >"$tmp/said" 2>&1 &
	recorder=$!
}

# stop [SIGNAL]: the recorder's end, in $status
stop() {
	kill -s "${1-INT}" "$recorder"
	wait "$recorder"
	status=$?
	kill "$feeder"
	wait "$feeder" 2>/dev/null
}

files() {
	[ "$(find "$out" -name 't*.dat' | wc -l)" -ge "$1" ]
}

# numbers FILE...: of each event, "CPU N"
numbers() {
	local file

	for file; do
		"$hyptrace" report -i "$file" 2>"$tmp/report.err" || echo "damaged: $(<"$tmp/report.err")"
	done | perl -ne 'print $1 >> 0 ? "" : "", join(" ", hex($1) >> 32, hex($1) & 0xffffffff), "\n" if /PC: 0x([0-9a-f]+)/; print if /damaged/'
}

# gapless FIRST NAME: the numbers in $tmp/numbers of each CPU come once each, one after the other; from 0 if FIRST
gapless() {
	is "$(sort -n -k1,1 -k2,2 "$tmp/numbers" | awk -v first="$1" '
		$1 "" != cpu { cpu = $1 ""; last = first ? -1 : $2 - 1; seen++ }
		$2 != last + 1 { print "CPU " cpu ": " last " is followed by " $2 }
		{ last = $2 }
		END { print seen + 0 " CPUs" }' | head -5)" "3 CPUs" "$2"
}

nothing_left() {
	is "$(find "$out" -mindepth 1 ! -name 't*.dat')" "" "$1: no spool is left"
}

# ---- by time ------------------------------------------------------------------------------

start --rotate 1s
wait_for files 2
is "$("$hyptrace" report --follow "$out/t.dat" 2>&1)" "hyptrace: its recorder throws pages away as it goes on (--rotate, -m, --flight): read its files, or see \`hyptrace top\`
hyptrace: cannot follow '$out/t.dat': Operation not supported" "--rotate 1s: report --follow is refused"
like "$("$hyptrace" top --once "$out/t.dat" 2>&1)" '^- +3 +[1-9][0-9]+ +0 ' "... top sees the events of what counts, and no loss"
wait_for files 3
stop
is "$status" 0 "--rotate 1s: exit status" || diag "$(<"$tmp/said")"
nothing_left "--rotate 1s"
mapfile -t dats < <(find "$out" -name 't*.dat' | sort)
is "${dats[0]##*/} ${dats[1]##*/} ${dats[2]##*/}" "t.001.dat t.002.dat t.003.dat" "... the files' names"
is "$(for file in "${dats[@]}"; do trace-cmd dump --kallsyms "$file" 2>&1 | grep -c ' T _text$'; done | sort -u)" 1 \
	"... each has the kernel's symbols"
numbers "${dats[@]}" >"$tmp/numbers"
gapless 1 "... each event is in one of ${#dats[@]} files, once"
"$hyptrace" merge -q -o "$tmp/merged.dat" "${dats[@]}" >"$tmp/merge.err" 2>&1
ok $? "... and hyptrace merge joins them" || diag "$(<"$tmp/merge.err")"
numbers "$tmp/merged.dat" | sort >"$tmp/joined"
is "$(sort "$tmp/numbers" | diff - "$tmp/joined" | head -n 3)" "" "... with each event of them"
like "$(<"$tmp/said")" "t.001.dat: [0-9.]+ s, [0-9]+ KiB of pages, 0 events lost" "... and each file is told"

# ---- by size, the newest two of them ---------------------------------------------------------

start --rotate 512K --keep 2
wait_for test -e "$out/t.004.dat"
stop
is "$status" 0 "--rotate 512K --keep 2: exit status" || diag "$(<"$tmp/said")"
is "$(find "$out" -name 't*.dat' | wc -l)" 2 "... two files"
numbers "$out"/t*.dat >"$tmp/numbers"
gapless "" "... of which the second goes on where the first one ends"

# ---- kill -9 ---------------------------------------------------------------------------------

start --rotate 1s
wait_for files 2
stop KILL
"$hyptrace" recover "$out/t.dat.spool" >"$tmp/said" 2>&1
is "$?" 0 "recover: exit status" || diag "$(<"$tmp/said")"
nothing_left "recover"
# what was on its way in the FIFOs when the recorder died is the next one's: FIFOs have no memory of it
numbers "$out"/t*.dat >"$tmp/numbers"
gapless 1 "... each event up to the kill is in one file, once"

# ---- the newest only ----------------------------------------------------------------------------

# newest NAME: the last numbers fed are there and the first ones are not
newest() {
	nothing_left "$1"
	gapless "" "$1: without a gap"
	is "$(awk '$2 < 100' "$tmp/numbers")" "" "$1: what is old is gone"
}

fed() {
	[ "$(cat "$tmp/fed" 2>/dev/null || echo 0)" -ge "$1" ]
}

start -m 400
wait_for fed 1000
stop
is "$status" 0 "-m 400: exit status" || diag "$(<"$tmp/said")"
numbers "$out/t.dat" >"$tmp/numbers"
newest "-m 400"
# half a second more than that is in it at most
for cpu in 0 1 2; do
	n=$(grep -c "^$cpu " "$tmp/numbers")
	[ "$n" -ge 1000 ]
	ok $? "-m 400: CPU $cpu has its 100 pages ($n events)"
done

# sub-buffers of 128 KiB, four of them on CPU 0
new_tree
echo 128 >"$tree/buffer_subbuf_size_kb"
"$hyptrace" record -o "$out/t.dat" -e kvm -m 64 >"$tmp/said" 2>&1 &
recorder=$!
wait_for test -e "$out/t.dat.spool/range"
perl -e '
	use Fcntl;
	sysopen my $fd, "$ARGV[0]/per_cpu/cpu0/trace_pipe_raw", O_RDWR or die;
	fcntl $fd, 1031, 1 << 20 or die; # F_SETPIPE_SZ
	for my $page (0 .. 3) {
		my $events = join "", map { pack("L S C C l Q", 4 | 100 << 5, 2, 0, 0, 7, $page * 10 + $_) } 0 .. 9;
		syswrite $fd, pack("Q Q a131056", 1e9 + $page * 1e6, length $events, $events);
	}
	sleep 60' "$tree" &
feeder=$!
wait_for sh -c '[ "$(stat -c %s "$1"/pages/0.0)" = 524288 ]' - "$out/t.dat.spool"
sleep 1.5 # it looks twice a second
stop
is "$status $(numbers "$out/t.dat" | xargs)" "0 0 30 0 31 0 32 0 33 0 34 0 35 0 36 0 37 0 38 0 39" "-m below a page: the newest page"

# ---- no more than that ------------------------------------------------------------------------

start --max-size 2M
wait "$recorder"
status=$?
kill "$feeder"
is "$status" 0 "--max-size 2M: it ends by itself" || diag "$(<"$tmp/said")"
like "$(<"$tmp/said")" "--max-size is reached: the recording ends here" "... and says why"
nothing_left "--max-size 2M"
numbers "$out/t.dat" >"$tmp/numbers"
gapless 1 "... with all of it"
[ "$(wc -l <"$tmp/numbers")" -ge 5120 ]
ok $? "... which is not less than 512 pages"

# ---- regions ---------------------------------------------------------------------------------

start --rotate 1s --start-on kvm:kvm_exit
wait_for files 2
is "$(cat "$tree/events/kvm/kvm_exit/trigger")" "traceon" "--start-on: the trigger is there while files are written"
stop
is "$status" 0 "--rotate 1s --start-on: exit status" || diag "$(<"$tmp/said")"
numbers "$out"/t*.dat >"$tmp/numbers"
gapless 1 "... each event is there once"

# ---- a flight recorder -------------------------------------------------------------------------------

start --flight 1
wait_for fed 1000
kill -USR1 "$recorder"
wait_for test -e "$out/t.001.dat"
kill -USR1 "$recorder"
wait_for test -e "$out/t.002.dat"
[ ! -w /dev/shm ] || [ -d /dev/shm/hyptrace-t.dat.spool ]
ok $? "--flight 1: it keeps what it has in memory"
stop
is "$status" 0 "--flight 1: exit status" || diag "$(<"$tmp/said")"
for i in 1 2 3; do
	numbers "$out/t.00$i.dat" >"$tmp/numbers"
	newest "--flight 1, file $i"
done
[ ! -e /dev/shm/hyptrace-t.dat.spool ]
ok $? "... and leaves nothing there"

# ---- a ring ------------------------------------------------------------------------------------------

# feed_aged CPU:AGE...: a page each, of ten kvm_entry, that many seconds old; "!" at its end: events were lost before
feed_aged() {
	perl -MTime::HiRes=clock_gettime -e '
		use Fcntl;
		my ($tree, $fed, @pages) = @ARGV;
		my (@fd, @n);
		for my $cpu (0 .. 2) { sysopen $fd[$cpu], "$tree/per_cpu/cpu$cpu/trace_pipe_raw", O_RDWR or die }
		for (@pages) {
			my ($cpu, $age, $lost) = /^(\d):(\d+)(!?)$/ or die;
			my $events = join "", map {
				pack("L S C C l Q", 4 | 100 << 5, 2, 0, 0, 7, $cpu << 32 | $n[$cpu]++)
			} 0 .. 9;
			syswrite $fd[$cpu], pack("Q Q a4080", 1e9 * (clock_gettime(7) - $age), length($events) | ($lost ? 1 << 31 : 0), $events);
		}
		open my $f, ">", "$fed.new"; print $f scalar @pages; close $f; rename "$fed.new", $fed;
		sleep 60' "$tree" "$tmp/fed" "$@" &
	feeder=$!
}
spool=$out/t.dat.spool
[ ! -w /dev/shm ] || spool=/dev/shm/hyptrace-t.dat.spool

new_tree
mkdir -p "$tree/options"
echo 0 >"$tree/options/overwrite"
"$hyptrace" record -o "$out/t.dat" -e kvm -B hyp -e hyp_enter --flight 60 --ring >"$tmp/said" 2>&1 &
recorder=$!
wait_for test -e "$spool/range"
feed_aged 0:600 0:300 0:30! 0:20 0:10 1:600 1:300 1:30 1:20 2:10
wait_for fed 10
is "$(find "$spool/pages" -type f -size +0) $(<"$tree/options/overwrite")" " 1" "--ring: buffers overwrite themselves, and nothing is read of them"
kill -USR1 "$recorder"
wait_for test -e "$out/t.001.dat"
stop
is "$status $(<"$tree/options/overwrite")" "0 0" "--ring: exit status, and the option is put back" || diag "$(<"$tmp/said")"
for i in 1 2; do
	# with a page that the last minute begins in, unless events of that minute are missing after it
	is "$(numbers "$out/t.00$i.dat" | sort -n -k1,1 -k2,2 | awk '{ n[$1]++; if (!($1 in first)) first[$1] = $2 }
		END { for (cpu = 0; cpu < 3; cpu++) print first[cpu], n[cpu] }')" "20 30
10 30
0 10" "--ring, file $i: each CPU's last minute"
done
like "$(<"$tmp/said")" "warning: the buffers are too small: a CPU's begins (29|30)\.[0-9] s late; make them larger with -b$" \
	"... of one it is not all, which is said"
nothing_left "--ring"

new_tree
feed
"$hyptrace" record -o "$out/t.dat" -e kvm --profile 997 --flight 60 --ring >"$tmp/said" 2>&1 &
recorder=$!
wait_for sh -c '[ -n "$(find "$1/pages" -type f -size +0)" ] || ! kill -0 $2' - "$spool" $recorder
if grep -q 'not permitted\|denied' "$tmp/said"; then
	stop
	skip 2 "$(<"$tmp/said")"
else
	is "$(find "$spool/pages" -type f -size +0 | sed 's,.*/,,; s,\..*,,' | sort -u)" 1 "--ring: samples are read all the time"
	stop
	is "$status" 0 "... exit status" || diag "$(<"$tmp/said")"
fi

new_tree
feed
"$hyptrace" record -o "$out/t.dat" -e kvm -B hyp --flight 60 --ring >"$tmp/said" 2>&1 &
recorder=$!
wait_for test -e "$spool/range"
mv "$tree/hypervisor/per_cpu/cpu1/trace_pipe_raw" "$tmp/gone"
kill -USR1 "$recorder"
wait_for sh -c '! kill -0 $1 2>/dev/null' - $recorder # ends by itself
stop 2>/dev/null
is "$status" 1 "--ring: a CPU that cannot be read any more ends the recording"
like "$(<"$tmp/said")" 'hyp: cpu 1: No such file or directory' "... which is said"

# ---- a guest that fails at its begin -------------------------------------------------------------------

"$build/tests/integration/fake-agent" metadata-noise "$tmp/bad" "$tmp/bad.log" &
agent=$!
wait_for test -S "$tmp/bad"
start --best-effort --rotate 1s -A "bad@unix:$tmp/bad"
wait_for files 3
is "$(find "$out" -name '*bad*.dat')" "" "--best-effort: a guest that fails at its begin has no files"
stop
kill $agent 2>/dev/null
like "$(<"$tmp/said")" "warning: going on without guest bad" "... the host's go on"
unlike "$(<"$tmp/said")" "ends here" "... up to the end"
"$hyptrace" report -i "$out/t.002.dat" 2>/dev/null | grep -q kvm_entry
ok $? "... with its events"

# ---- what does not go together ---------------------------------------------------------------------

refused() {
	is "$("$hyptrace" record -e kvm "${@:2}" 2>&1)" "hyptrace record: $1" "${*:2}"
}

one="--rotate, -m and --flight: each is another way, take one"
refused "$one" --rotate 1s -m 100
refused "$one" --rotate 1s --flight 5
joined="--hypertrace is joined with doorbells at the end of a recording: not with --rotate, -m or --flight"
refused "$joined" --hypertrace --rotate 1s
refused "$joined" --hypertrace -m 100
refused "$joined" --hypertrace --flight 5
refused "--keep goes with --rotate or --flight only" --keep 2
refused "--ring goes with --flight only" --ring
refused "--dump-on goes with --flight only" --dump-on kvm:kvm_exit
refused "--rotate 10: neither a size (64K, 100M, 2G) nor a duration (30s, 5min, 1h)" --rotate 10
refused "--max-size 10s: not a size such as 64K, 8M, 2G" --max-size 10s
refused "--dump-on hyp:hyp_enter: the hypervisor's events have no triggers" --flight 5 --dump-on hyp:hyp_enter
refused "--tsync-interval 0: each file needs looks at the guests' clocks of its own" \
	--rotate 1s --tsync-interval 0 -A 3

# A file system that cannot punch holes is found out before tracefs is opened.
preload=$build/tests/tools/countopens.so
if nm -D "$hyptrace" | grep -q __asan_; then
	skip 6 "ASan wants to be the first preload"
else
	for how in "--rotate 1s" "-m 100"; do
		new_tree
		# shellcheck disable=SC2086
		OPENS=$tmp/opens NO_PUNCH=$out LD_PRELOAD=$preload timeout 60 "$hyptrace" record -o "$out/t.dat" -e kvm $how -- true 2>"$tmp/said"
		is $? 1 "$how without holes: status"
		like "$(<"$tmp/said")" "^hyptrace: '$out/t.dat.spool': the file system cannot give back a part .*: Operation not supported; record into a directory that can: -o /[a-z/]*/trace.dat$" \
			"$how without holes: the reason, and a directory"
		is "$(grep -c "^$tree/" "$tmp/opens") $(ls -A "$out")" "0 " "$how without holes: nothing was set up, nothing is left"
	done
fi

done_testing
