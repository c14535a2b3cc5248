#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace view: the data of its pages is what sql has; in a browser, where Chromium is installed, the page's own
# sums are, too, and hostile names stay text.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp/home
mkdir -p "$HOME"

view() { # FILE ARG...: makes $tmp/page.html; $status
	"$hyptrace" view -o "$tmp/page.html" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

data() { # ARG...: of the page
	tests/tools/view-data "$@" "$tmp/page.html"
}

# The query of columns as one, separated by tabs; unknown ones are empty.
columns() { # "COLUMN ..." "FROM ..."
	echo "SELECT coalesce(${1// /, \'\') || char(9) || coalesce(}, '') FROM $2"
}

rows() { # QUERY ARG...
	"$hyptrace" sql -q --csv "${@:2}" "$1" | sed '1d; s/^rows,//'
}

# What the page of these files has to hold, in the form of view-data.
expected() { # ARG...
	rows "$(columns "'vcpu' machine vcpu ts dur state '' reason esr_class '' 0 other_name coalesce(other_tid,0) coarse ts_bound end_bound cpu" vcpu_states)
	UNION ALL $(columns "'cpu' machine cpu ts dur state by reason '-' name coalesce(tid,0) other_name coalesce(other_tid,0) coarse ts_bound end_bound ''" \
		"thread_states WHERE state IN ('running', 'stolen')")
	UNION ALL $(columns "'task' machine '' ts dur state by reason '-' name coalesce(tid,0) other_name coalesce(other_tid,0) coarse ts_bound end_bound ''" \
		"thread_states WHERE state IN ('runnable', 'sleeping') AND machine != 'host'")
	UNION ALL $(columns "'hyp' machine cpu ts dur 'hypervisor' '' reason '' '-' '-' '' 0 0 0 0 ''" "hyp_calls WHERE dur > 0")" "$@" 2>/dev/null
}

# sql has no class of the exit of tasks' states, no task of visits, and names by the files' tables only.
comparable() {
	perl -F'\t' -lane '$F[8] = "-" if $F[0] =~ /cpu|task/ and $F[0] ne "vcpu"; $F[10] = "-" if $F[0] eq "hyp"; @F[9, 11] = ("-", "-");
		$#F = 16; print join "\t", map { $_ // "" } @F' | sort
}

# ---- the data ------------------------------------------------------------------------------------------------

for file in stock/trace steal/trace raw/trace guest/trace guest/trace-Guest x86/trace x86/trace-Guest lab-protected lab-nvhe lab-stock-arm64 raw-arm64; do
	path=tests/data/$file.dat
	view -q "$path"
	is "$status" 0 "$file: a page"
	expected "$path" | comparable >"$tmp/expected.${file//\//-}"
	data | comparable >"$tmp/got"
	[ -s "$tmp/got" ]
	ok $? "$file: it is not empty"
	same "$tmp/got" "$tmp/expected.${file//\//-}" "$file: its spans are those of sql"
done

# ---- chains and events ----------------------------------------------------------------------------------------

# Of each chain of the page whether path has the same of that wait; for every fourth, because each takes a reading.
for file in steal/trace guest/trace x86/trace steal/trace-Guest; do
	view -q tests/data/$file.dat
	data --head >"$tmp/head"
	jq -r '. as $head | .cases[] | select(.answer) | $head.machines[.machine] as $m | (($head.origin | tonumber) + .to - 1) as $at |
		[if $m.guest == 1 then $m.name else "host" end, .pid,
		 if $head.ticks == 1 then $at else "\($at / 1000000000 | floor).\($at % 1000000000 + 1000000000 | tostring[1:])" end] | @tsv' \
		"$tmp/head" >"$tmp/waits"
	jq -cS '[.cases[].answer | values] | to_entries[] | select(.key % 4 == 0).value' "$tmp/head" >"$tmp/chains"
	awk 'NR % 4 == 1' "$tmp/waits" | while IFS=$'\t' read -r machine pid at; do
		"$hyptrace" path -q --json --at "$at" --task "$pid" --guest "$machine" tests/data/$file.dat
	done | jq -cS . >"$tmp/paths"
	[ "$(wc -l <"$tmp/waits")" -gt 10 ]
	ok $? "$file: the page has chains of the longest waits"
	same "$tmp/chains" "$tmp/paths" "... those that path --json has"
done

view -q tests/data/steal/trace.dat
data --head >"$tmp/head"
jq -r '.origin as $o | .machines as $m | .cases[].events[] | [$m[.[0]].name, .[1], ($o | tonumber) + .[2], .[4], .[5]] | @tsv' "$tmp/head" >"$tmp/events"
[ "$(wc -l <"$tmp/events")" -gt 500 ]
ok $? "the page has events of the longest cases"
"$hyptrace" report -q -t tests/data/steal/trace.dat |
	perl -ne 'print $1 ? "Guest" : "host", "\t", $2 + 0, "\t$3$4\t$5\t$6\n" if /trace(-Guest)?\.dat: .*?\[(\d+)\] +(\d+)\.(\d{9}): (\w+): +(.*)$/' |
	sort >"$tmp/report"
is "$(sed -E 's/\t +/\t/g' "$tmp/events" | sort -u | comm -23 - "$tmp/report")" "" "... those that report prints, with its text"

# ---- parts, titles, outputs -----------------------------------------------------------------------------------

"$hyptrace" view -q -o "$tmp/page.html" --time 55.1,55.2 tests/data/stock/trace.dat
expected --time 55.1,55.2 tests/data/stock/trace.dat | comparable >"$tmp/expected"
data | comparable >"$tmp/got"
same "$tmp/got" "$tmp/expected" "--time: those of that part"
is "$(data --head | jq -c '[.length <= 100000000, .length > 90000000]')" "[true,true]" "... whose length the head has"

view -q tests/data/steal/trace.dat
data --head >"$tmp/head"
is "$(jq -S .findings "$tmp/head")" "$("$hyptrace" why -q --json tests/data/steal/trace.dat | jq -S .)" "its findings are those of why"
is "$(jq -c '[.machines[].command]' "$tmp/head")" "[null,null]" "files of others have no command line"
bucket="((ts - $(jq -r .origin "$tmp/head")) / $(jq .bucket "$tmp/head"))"
is "$(jq -r '.machines as $m | .rates | to_entries[] | .key as $i | .value | to_entries[] |
	select(.value > 0) | "\($m[$i].name) \(.key) \(.value)"' "$tmp/head" | sort)" \
	"$(rows "SELECT machine || ' ' || $bucket || ' ' || count(*) FROM events GROUP BY machine, $bucket" tests/data/steal/trace.dat | sort)" \
	"events of each machine by bucket are those that sql counts"
is "$(jq -S .tables "$tmp/head")" "$("$hyptrace" stat -q --json tests/data/steal/trace.dat | jq -S .)" "its tables are those of stat"
is "$(jq -r .title "$tmp/head")" "trace.dat, trace-Guest.dat: what ran where, and when?" "its title names the files"
data --hashes >"$tmp/hashes"
is "$(sed -n 1p "$tmp/hashes")" "$(sed -n 2p "$tmp/hashes")" "the policy has the hashes of script and style"
unlike "$(cat "$tmp/page.html")" '(https?:|src=|href=|@import|url\()' "nothing is fetched"

# a clock of 2 ticks a ns, with a bound of 1,000 ticks
printf '%s\n' 'id 1' 'clock x86-tsc' 'tsc 1 1' 'guest vm 2 0:7' '2000 0 7 kvm_entry' '4000 0 7 kvm_exit' |
	"$build/tests/integration/make-trace" "$tmp/host.dat" tests/data/formats-x86.dat -
printf '%s\n' 'id 2' 'clock x86-tsc' 'tsc 1 1' 'shift 1 0 1000' '2500 0 9 sched_waking pid=10' '3500 0 9 sched_waking pid=10' |
	"$build/tests/integration/make-trace" "$tmp/guest.dat" tests/data/formats-x86.dat -
view -q "$tmp/host.dat" "$tmp/guest.dat"
is "$(data --head | jq -c '[.machines[].bound]')" "[0,500]" "a bound in ticks is in ns, as all else"

# spans that programs mark: crosvm's, a client's, and one within another by a description
"$build/tests/integration/make-trace" "$tmp/marks.dat" <<'T'
clock boot
command hyptrace record -o 'a b.dat' -e kvm
task 7 crosvm
event ftrace:print unsigned long ip; char buf[] | "%s", REC->buf
1000 0 7 print	0	503 VirtioFs Enter: read
1300 1 7 print	0	503 VirtioFs Exit: read
2000 0 60 print	0	guest_hypertrace arg1=3
2010 0 60 print	0	guest_hypertrace arg1=1
2020 0 60 print	0	guest_hypertrace arg1=2
2300 0 60 print	0	guest_hypertrace arg1=4
T
printf '1 frame_start\n2 frame_end\n3 draw_start\n4 draw_end\n' >"$tmp/desc"
view -q --hypertrace-desc "$tmp/desc" "$tmp/marks.dat"
is "$(data | cut -f 1-6,10,11)" "mark	host	0	1000	300	read	crosvm	7
mark	host	0	2000	300	draw		60
mark	host	1	2010	10	frame		60" "spans that programs mark, by thread and how many are around"
is "$(data --head | jq -S .tables)" "$("$hyptrace" stat -q --json --hypertrace-desc "$tmp/desc" "$tmp/marks.dat" | jq -S .)" "... in the tables, too"
is "$(data --head | jq -r '.machines[].command')" "hyptrace record -o 'a b.dat' -e kvm" "the command line that recorded"

# one page that cannot be: all that is read once reports it once
"$build/tests/integration/make-trace" "$tmp/damaged.dat" <<'T'
event ftrace:print unsigned long ip; char buf[] | "%s", REC->buf
1000000000 0 7 print	0	good
1000000000 1 7 print	0	PAGE-OF-CPU-1
T
perl -0777 -pi -e 'my $at = index($_, "PAGE-OF-CPU-1"); $at -= $at % 4096; substr($_, $at + 8, 4) = "\xff\xff\xff\x0f"' "$tmp/damaged.dat"
view "$tmp/damaged.dat"
is "$status $(sed "s|$tmp/||" "$tmp/err")" "1 hyptrace: warning: damaged.dat: CPU 1 has a damaged page (it is damaged, or not in the expected format): records are missing
hyptrace: the files are damaged in 1 places: what lay there is missing" "a damaged page is reported once"

for file in functions/trace profile/trace raw/trace; do
	view -q tests/data/$file.dat
	"$hyptrace" flame -q --json tests/data/$file.dat | jq -S . >"$tmp/flame"
	weight=$(jq -r 'to_entries[] | select(.value | type == "array") | .key | select(. != "notes")' "$tmp/flame")
	least=$(jq "[.$weight[].$weight] | add * 0.0002 | floor" "$tmp/flame")
	is "$(data --head | jq -S .flame)" "$(jq -S "([.$weight[] | select(.$weight < $least).$weight] | add // 0) as \$light |
		.$weight = [.$weight[] | select(.$weight >= $least)] + if \$light > 0 then [{ stack: \"[others]\", $weight: \$light }] else [] end" "$tmp/flame")" \
		"$file: its stacks are those of flame, the light ones together"
done

view -q --diff tests/data/vhost/standard.dat tests/data/vhost/vhost.dat
is "$status" 0 "--diff: a page of two recordings"
is "$(data --part 0 --head | jq -S .diff)" "$("$hyptrace" diff -q --json tests/data/vhost/standard.dat tests/data/vhost/vhost.dat | jq -S .)" \
	"... with the answer of diff"
for part in 1 2; do
	data --part $part --head | jq -S .tables >"$tmp/tables$part"
	data --part $part >"$tmp/spans$part"
done
is "$(cat "$tmp"/tables[12])" "$(for file in standard vhost; do "$hyptrace" stat -q --json tests/data/vhost/$file.dat | jq -S .; done)" "... and each one's tables"
view -q tests/data/vhost/vhost.dat
is "$(data)" "$(<"$tmp/spans2")" "... and spans"
view --diff tests/data/vhost/vhost.dat
is "$status" 2 "... one is too few: status 2"
like "$(<"$tmp/err")" "two recordings are needed" "... and why"

view -q tests/data/regions.dat
like "$(data --head | jq -c '.losses[]')" ',1\]$' "pauses are no losses, and said to be none"

view -q --title 'Night </script><b> "run"' tests/data/steal/trace.dat
is "$(data --head | jq -r .title)" 'Night </script><b> "run"' "--title"
"$hyptrace" view -q -o - tests/data/steal/trace.dat >"$tmp/page.html"
is "$?" 0 "-o -: standard output"
[ "$(data | wc -l)" -gt 100 ]
ok $? "... gets the page"
(cd "$tmp" && "$hyptrace" view -q "$OLDPWD/tests/data/steal/trace.dat") && [ -s "$tmp/trace.html" ]
ok $? "without -o it is trace.html"

"$build/tests/integration/make-trace" "$tmp/empty.dat" <<<'clock boot'
view -q "$tmp/empty.dat"
is "$status $(data | wc -l)" "0 0" "no records: a page without spans"

mkdir "$tmp/bin"
printf '#!/bin/sh\necho "$*" >"%s"\nexit ${FAKE_STATUS:-0}\n' "$tmp/opened" >"$tmp/bin/xdg-open"
chmod +x "$tmp/bin/xdg-open"
PATH=$tmp/bin:$PATH view -q --open tests/data/steal/trace.dat
is "$status $(cat "$tmp/opened")" "0 $tmp/page.html" "--open: xdg-open gets the page (a FAKE of it)"
FAKE_STATUS=3 PATH=$tmp/bin:$PATH view -q --open tests/data/steal/trace.dat
like "$status $(cat "$tmp/err")" "^1 .*xdg-open did not open '$tmp/page.html'" "... and when it fails, that is said"

# latencies of presets, by row: count, p50, p99 in ns
for file in raw/trace stock/trace vhost/vhost; do
	view -q tests/data/$file.dat
	data --head | jq -r '.latency[] | .preset as $p | .rows[] | [$p, .key, ([.buckets[][2]] | add), .p50, .p99] | @tsv' | sort >"$tmp/got"
	for preset in wakeup irq virtio timer hypercall abort; do
		"$hyptrace" latency -q --json --preset $preset tests/data/$file.dat 2>/dev/null |
			jq -r --arg p $preset '.latency | group_by(.key)[] | .[-1] | select(.count > 0) | [$p, .key, .count, .p50_ns, .p99_ns] | @tsv'
	done | sort >"$tmp/expected"
	[ -s "$tmp/expected" ]
	ok $? "$file: it feeds presets"
	same "$tmp/got" "$tmp/expected" "... whose latencies the page has"
done

# ---- errors ----------------------------------------------------------------------------------------------------

view "$tmp/nothing.dat"
is "$status" 1 "a file that is not there: status 1"
like "$(<"$tmp/err")" "cannot open '.*nothing.dat'" "... and why"
view --time 1,2 tests/data/stock/trace.dat
is "$status" 1 "a part without records: status 1"
"$hyptrace" view -o "$tmp/no/page.html" tests/data/steal/trace.dat 2>"$tmp/err"
is "$?" 1 "an output that cannot be: status 1"
like "$(<"$tmp/err")" "no/page.html" "... and which"
cp tests/data/regions.dat "$tmp/trace.dat"
"$hyptrace" view -o "$tmp/trace.dat" "$tmp/trace.dat" 2>/dev/null
is "$?" 1 "not over what is read"
"$hyptrace" view --nothing 2>/dev/null
is "$?" 2 "a wrong option: status 2"

# ---- more spans than a page keeps ------------------------------------------------------------------------------

perl -e '
	print "clock boot\nevent sched:sched_switch char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state; char next_comm[16]; pid_t next_pid; int next_prio | \"%s\", REC->prev_comm\n";
	my ($ts, $pid) = (1_000_000_000, 1);
	for my $i (0 .. 310_000) {
		my $next = $pid == 1 ? 2 : 1;
		print "$ts 0 $pid sched_switch\tt$pid\t$pid\t120\t0\tt$next\t$next\t120\n";
		$ts += 1000 + $i % 997 + ($i == 1000 ? 5_000_000 : 0);
		$pid = $next;
	}' | "$build/tests/integration/make-trace" "$tmp/many.dat" || diag "cannot make it"
view -q "$tmp/many.dat"
is "$status" 0 "310,000 spans: a page"
data >"$tmp/spans"
data --cells >"$tmp/cells"
[ "$(wc -l <"$tmp/spans")" -le 300000 ]
ok $? "... with at most 300,000"
grep -Eq $'^cpu\t[a-z]*\t0\t[0-9]*\t5001003\trunning' "$tmp/spans"
ok $? "... the longest among them"
all=$(rows "$(columns "sum(dur) count(*)" "thread_states WHERE state = 'running'")" "$tmp/many.dat")
is "$(awk -F'\t' '{ ns += $5; n += NF < 12 ? $6 : 1 } END { printf "%d\t%d", ns, n }' "$tmp/spans" "$tmp/cells")" "$all" "... and sums that make all of it"
[ "$(data --head | jq .summed)" -gt 0 ]
ok $? "... the page says so"
view -q --full "$tmp/many.dat"
is "$(data | awk -F'\t' '{ ns += $5; n++ } END { printf "%d\t%d", ns, n }')" "$all" "--full: every span"

perl -e 'print "clock boot\nevent kvm:kvm_userspace_exit __u32 reason | \"%u\", REC->reason\n";
	print 1000 + $_, " 0 1 kvm_userspace_exit\t1\n" for 0 .. 1_000_000' | "$build/tests/integration/make-trace" "$tmp/million.dat"
view -q "$tmp/million.dat"
is "$(data --head | jq -c 'has("latency")')" "false" "more than a million records: without latencies"
view -q --full "$tmp/million.dat"
is "$(data --head | jq -c .latency)" "[]" "... with --full they are looked for"

# ---- sums of windows ----------------------------------------------------------------------------------------

# Sums of windows by lane and meaning, and how much of each the clocks leave undecided: of sql's rows.
window_sums() { # WINDOWS FILE
	perl -MList::Util=min,max -F'\t' -lane '
		BEGIN { @windows = map { [split /,/] } split / /, shift }
		for my $w (@windows) {
			my ($from, $to) = (max($F[3], $w->[0]), min($F[3] + $F[4], $w->[1]));
			next if $to <= $from;
			my $key = join "\t", $w->[0], @F[0, 1, 2, 5, 6, 7], $F[0] =~ /^(cpu|task)/ ? $F[10] : "";
			my $certain = $F[14] eq "" || $F[15] eq "" ? 0 : max(0, min($to, $F[3] + $F[4] - $F[15]) - max($from, $F[3] + $F[14]));
			$ns{$key} += $to - $from;
			$undecided{$key} += $to - $from - $certain;
		}
		END { print "$_\t$ns{$_}\t$undecided{$_}" for sort keys %ns }' "$@"
}

# 30 windows of the page's time.
windows() {
	data --head | jq -r '"\(.origin) \(.length)"' | perl -lane 'my ($origin, $length) = @F; srand 7;
		print join " ", map { my $from = int rand $length; my $ns = 1 + int rand($length - $from) / (1 + int rand 50);
			($origin + $from) . "," . ($origin + $from + $ns) } 1 .. 30'
}

# A script that adds the page's sums of windows to `said`.
windows_script() { # WINDOWS
	cat <<-END
		for (const part of '$1'.split(' ')) {
			const [from, to] = part.split(',').map((time) => Number(BigInt(time) - data.origin)), byKey = new Map();

			for (const row of sums(from, to)) {
				const pid = /^(cpu|task)/.test(row.kind) ? row.task.replace(/.*-/, '') : '';
				const key = [part.split(',')[0], row.kind, row.machine, row.number ?? '', row.state, row.by, row.reason, pid].join('\t');

				const [ns, undecided] = byKey.get(key) || [0, 0];

				byKey.set(key, [ns + row.ns, undecided + row.undecided]);
			}
			for (const [key, [ns, undecided]] of byKey)
				said.push(key + '\t' + ns + '\t' + undecided);
		}
	END
}

# stat --time begins without knowing a state: of each it has no more than the page has of that window, and what it lacks
# is unknown to it, or lies before its first record or after its last.
view -q tests/data/steal/trace.dat
data >"$tmp/spans"
for window in $(windows); do
	from=${window%,*} to=${window#*,}
	echo "\"$from $to\""
	"$hyptrace" stat -q --json --show vcpus --time "$(printf '%d.%09d,%d.%09d' $((from / 1000000000)) $((from % 1000000000)) $((to / 1000000000)) $((to % 1000000000)))" \
		tests/data/steal/trace.dat 2>/dev/null
done | jq -r 'if type == "string" then . else .vcpus[] | .vcpu as $v | to_entries[] |
	select(.key | test("^(guest|host|vmm|preempted|waking|halted|blocked|not_recorded|lost|wall)_ns$")) | "\($v) \(.key[:-3]) \(.value)" end' |
	perl -MList::Util=min,max -lane '
		BEGIN { open my $in, "<", shift; @spans = grep { $_->[0] eq "vcpu" } map { [split /\t/] } <$in> }
		sub compare {
			my (%page, $n);
			for (@spans) { my $ns = min($_->[3] + $_->[4], $to) - max($_->[3], $from); $page{"Guest:$_->[2] " . lc $_->[5]} += $ns if $ns > 0 }
			for my $v (keys %stat) { my $s = $stat{$v}; my ($wall, $lost, $less) = (delete $s->{wall}, delete($s->{lost}) + delete $s->{not_recorded}, 0);
				for (keys %$s) { my $more = ($page{"$v $_"} // 0) - $s->{$_}; print "$v $_ $from,$to: $more" if $more < 0; $less += $more }
				$n++; print "$v $from,$to: $less of $lost" if $less > $lost + $to - $from - $wall }
			print "none" if !$n;
		}
		if (@F == 3) { $stat{$F[0]}{$F[1]} = $F[2]; next }
		compare() if $to;
		($from, $to, %stat) = @F;
		END { compare() }' "$tmp/spans" >"$tmp/differ"
is "$(grep -vc none "$tmp/differ") $(($(grep -c none "$tmp/differ") < 10))" "0 1" "in 30 windows stat --time agrees" || diag "$(head "$tmp/differ")"

# ---- in Firefox, under the page's policy ------------------------------------------------------------------------

firefox=$(command -v firefox-esr || command -v firefox)
if [ -n "$firefox" ]; then
	view -q tests/data/stock/trace.dat
	windows=$(windows)
	mkdir "$tmp/firefox"
	tests/tools/firefox-ask "$firefox" "$tmp/firefox" "$tmp/page.html" "const { data, sums } = page.hyptrace, said = [];
		$(windows_script "$windows")
		return said.join('\n');" | grep . | sort >"$tmp/page-sums"
	window_sums "$windows" "$tmp/expected.stock-trace" | sort >"$tmp/sums.sorted"
	[ "$(wc -l <"$tmp/sums.sorted")" -gt 100 ] && cmp -s "$tmp/page-sums" "$tmp/sums.sorted"
	ok $? "Firefox: in 30 windows the page's sums are those of sql" || diag "$(diff "$tmp/sums.sorted" "$tmp/page-sums" | head)"
else
	skip 1 "no firefox"
fi

# ---- in a browser ------------------------------------------------------------------------------------------------

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$chromium" ]; then
	skip 25 "no chromium"
	done_testing
fi

# One browser for all pages, but for those whose requests are looked at.
mkdir "$tmp/browser"
mkfifo "$tmp/ask" "$tmp/answer"
tests/tools/chromium-ask "$chromium" "$tmp/browser" <"$tmp/ask" >"$tmp/answer" 2>"$tmp/browser.err" &
exec {ask}>"$tmp/ask" {answer}<"$tmp/answer"

browse() { # PAGE[#PLACE] [SCRIPT]: what that returns; else the document as it is in the end
	local said=

	printf '%s\t%s\0' "$1" "${2-await new Promise((done) => setTimeout(done, 300)); return document.documentElement.outerHTML;}" >&"$ask"
	IFS= read -r -d '' said <&"$answer" || diag "no answer: $(<"$tmp/browser.err")"
	printf '%s\n' "$said"
}

# What CODE adds to `said` in the page, once that has its data.
asked() { # CODE
	asked_of_two "const { data, timeline, search, choose, sums } = window.hyptrace; $1"
}
asked_of_two() { # CODE
	browse "$tmp/page.html" "const said = []; $1
		return said.join('\n');"
}

for file in stock/trace lab-protected steal/trace; do
	view -q tests/data/$file.dat
	windows=$(windows)
	asked "$(windows_script "$windows")" | grep . | sort >"$tmp/page-sums"
	window_sums "$windows" "$tmp/expected.${file//\//-}" | sort >"$tmp/sums.sorted"
	[ "$(wc -l <"$tmp/sums.sorted")" -gt 100 ] && cmp -s "$tmp/page-sums" "$tmp/sums.sorted"
	ok $? "$file: in 30 windows the page's sums are those of sql" || diag "$(diff "$tmp/sums.sorted" "$tmp/page-sums" | head)"
done

dom=$(browse "$tmp/page.html#s=40.1,40.2")
like "$dom" '<h2>Sums from 40\.100000000 to 40\.200000000: 100\.000ms</h2>' "under its policy the page runs, and a link selects a part"
like "$dom" '<td class="number">[0-9.]+ms</td>' "... whose sums are shown"

# A guest that names itself and its tasks for the browser.
"$build/tests/integration/make-trace" "$tmp/hostile.dat" <<'T'
clock boot
event sched:sched_switch char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state; char next_comm[16]; pid_t next_pid; int next_prio | "%s", REC->prev_comm
1000 0 1 sched_switch	</script><b>	1	120	1	<img onerror=1>	2	120
2000 0 2 sched_switch	<img onerror=1>	2	120	1	\xe2\x80\xaetxet	3	120
3000 0 3 sched_switch	\xe2\x80\xaetxet	3	120	1	'"]]>\xff\x1b	4	120
9000 0 4 sched_switch	'"]]>\xff\x1b	4	120	1	</script><b>	1	120
T
view -q --title '</title><script>document.title="ran"</script>' "$tmp/hostile.dat"
dom=$(browse "$tmp/page.html#s=0.000001000,0.000009000")
like "$dom" '<td>\\u202etxet-3</td>' "marks that turn the direction of text are shown by their numbers"
unlike "$dom" '<(b|img)[ >]' "hostile names are no elements"
like "$dom" '<td>&lt;img onerror=1&gt;-2</td>' "... but text"
like "$dom" '<title>&lt;/title&gt;&lt;script&gt;document' "... as is the title"

# The requests that a page makes, less Chromium's own.
requests() { # PAGE
	timeout 120 "$chromium" --log-net-log="$tmp/net.json" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$tmp/browser.net" --virtual-time-budget=5000 --dump-dom "file://$1" >/dev/null 2>"$tmp/browser.err"
	grep -o '"url":"http[^"]*"' "$tmp/net.json" | grep -vE '//[^/]*(google|googleapis|gvt1)\.com/' | sort -u
}

printf '<img src="http://attacker.invalid/1"><script src="http://attacker.invalid/2"></script>' >"$tmp/bad.html"
is "$(requests "$tmp/bad.html" | wc -l)" 2 "the judge sees a page's requests"
is "$(requests "$tmp/page.html")" "" "no request leaves the page"

# A name of 1 MB, marks that turn text around, addresses, in all places of a recording that have text.
long=$(perl -e 'print "<img/src=http://attacker.invalid/1/onerror=alert(1)>\\xe2\\x80\\xae</script>" x 14000')
{
	printf 'clock boot\ncommand %s\nid 1\nguest %s 2 0:7\ntask 7 %s\n' "$long" "$long" "$long"
	cat <<'T'
event ftrace:print unsigned long ip; char buf[] | "%s", REC->buf
event kvm:kvm_entry unsigned int vcpu_id | "%u", REC->vcpu_id
event kvm:kvm_exit unsigned int exit_reason; unsigned int isa | "%s", __print_symbolic(REC->exit_reason, { 1, "<img src=http://attacker.invalid/2 onerror=alert(2)>" })
1000 0 7 kvm_entry	0
2000 0 7 kvm_exit	1	1
2100 0 7 print	0	503 X Enter: <img src=http://attacker.invalid/3 onerror=alert(3)>\xe2\x80\xae</script>
2500 0 7 print	0	503 X Exit: <img src=http://attacker.invalid/3 onerror=alert(3)>\xe2\x80\xae</script>
3000 0 7 kvm_entry	0
4000 0 7 kvm_exit	1	1
T
} | "$build/tests/integration/make-trace" "$tmp/long.dat" || diag "cannot make it"
view -q "$tmp/long.dat"
is "$status $(requests "$tmp/page.html")" "0 " "1 MB of text in each name: no request"
dom=$(browse "$tmp/page.html#s=0.000001000,0.000004000" | sed '1,/^<body/d')
unlike "$dom" '<(b|img)[ />]' "... no elements"
like "$dom" '&lt;img src=http://attacker.invalid/3 onerror=alert\(3\)&gt;\\u202e&lt;/script&gt;' \
	"... but text: a program's span"
like "$dom" '&lt;img src=http://attacker.invalid/2 onerror=alert\(2\)&gt;' "... a reason"
[ "$(data --head | jq '.machines[0].command | length')" -gt 600000 ] && [ ${#dom} -lt 1000000 ]
ok $? "... and cut where it is shown"

view -q "$tmp/hostile.dat"
is "$(asked '
	said.push(search.find("onerror"), search.step(1), timeline.chosen.i);
	said.push(search.find(""), search.step(1));
	timeline.show(-5, 1e12);
	said.push([timeline.from, timeline.to].join());
	timeline.zoom(0.5);
	said.push([timeline.from, timeline.to].join());
	timeline.move(10);
	said.push([timeline.from, timeline.to].join());')" "1 spans
1 of 1
0


0,8000
2000,6000
4000,8000" "search, zoom and move"

# By what a reader does; a pointer of a script's cannot be captured.
view -q tests/data/stock/trace.dat
halted=$(data | grep -c halted)
is "$(asked '
	const canvas = timeline.canvas, byId = (id) => document.getElementById(id);
	function pointer(type, x, at, shiftKey) {
		const box = canvas.getBoundingClientRect();

		canvas.dispatchEvent(new PointerEvent(type, { clientX: box.left + x, clientY: box.top + at, pointerId: 1, shiftKey, bubbles: true }));
	}
	function key(name) { document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true })); }
	canvas.setPointerCapture = () => {};
	said.push(byId("sums").querySelector("h2").textContent);
	canvas.dispatchEvent(new WheelEvent("wheel", { clientX: canvas.getBoundingClientRect().left + LEFT, deltaY: -100, cancelable: true }));
	said.push(timeline.from === 0 && timeline.to < data.length);
	key("0");
	said.push(timeline.to === data.length);
	pointer("pointerdown", LEFT, 5); pointer("pointermove", LEFT + timeline.plotWidth / 2, 5); pointer("pointerup", LEFT + timeline.plotWidth / 2, 5);
	said.push(Math.round(timeline.selection.to / data.length * 100), sums(0, timeline.selection.to).length === byId("sums").querySelectorAll("tbody tr").length);
	key("Escape");
	said.push(timeline.selection);
	byId("search").value = "halted";
	byId("search").dispatchEvent(new Event("input"));
	said.push(byId("found").textContent);
	key("n");
	said.push(byId("found").textContent, byId("span").textContent.includes("statehalted"));
	const { lane: at, i } = timeline.chosen;
	key("f");
	pointer("pointermove", (timeline.x(at.spans.from[i]) + timeline.x(at.spans.to[i])) / 2, timeline.laneTop(data.lanes.indexOf(at)) + 8);
	said.push(byId("hover").textContent.split("\n")[1], byId("hover").hidden);
	key("?");
	said.push(byId("keys").open);
	const longest = [...document.querySelectorAll("#tables details")].find((one) => one.textContent.startsWith("Longest"));
	const exits = [...document.querySelectorAll("#tables details")].find((one) => one.textContent.startsWith("Exits of"));
	said.push([...exits.querySelectorAll("tr")].slice(0, 2).map((line) => [...line.children].slice(1, 5).map((one) => one.textContent).join()).join(" | "));
	longest.querySelector("th").click();
	longest.querySelector("tbody tr").click();
	said.push(timeline.to - timeline.from < data.length);')" "Sums from 54.900029392 to 55.581404000: 681.375ms
true
true
50
true

$halted spans
1 of $halted
true
state: halted (the files show no finer one)
false
true
what,count,count share,total | WFx,262,44.0%,764.621ms
true" "what a reader does: wheel, keys, selection, search, hover, help, tables"

# The picture of a chain, by what the canvas is given: lanes and begins of its boxes, the first cause first.
view -q tests/data/steal/trace.dat
data --head >"$tmp/head"
wait=$(jq '[.cases[] | select(.answer) | (.answer.path | length) > 5 and any(.answer.path[]; .machine == "Guest")] | index(true)' "$tmp/head")
at=$(jq -r ".origin as \$o | [.cases[] | select(.answer)][$wait] | (\$o | tonumber) + .to - 1 | \"\(. / 1000000000 | floor).\(. % 1000000000 + 1000000000 | tostring[1:])\"" "$tmp/head")
"$hyptrace" path -q --json --at "$at" --task "$(jq "[.cases[] | select(.answer)][$wait].pid" "$tmp/head")" tests/data/steal/trace.dat |
	jq -r '.path[] | "\(.machine) CPU \(.cpu)\t\(.from)"' >"$tmp/path"
asked "
	const chain = data.chains[$wait], lane = data.lanes.find((one) => one.kind === 'vcpu' && one.pid === chain.pid);
	choose({ lane, i: [...lane.spans.from].indexOf(chain.from) });
	document.getElementById('why').click();
	Path2D.prototype.rect = (x, y) => said.push(timeline.laneAt(y).title + '\t' + timeText(data, timeline.time(x)));
	timeline.draw();" | grep . >"$tmp/drawn"
[ "$(wc -l <"$tmp/path")" -gt 5 ]
ok $? "a wait has a chain of more than five causes"
same "$tmp/drawn" "$tmp/path" "... which the page draws where path has them"

data | awk -F'\t' '$1 == "vcpu" && $3 == 0 && $6 == "preempted" { print $5 }' | sort -n >"$tmp/durations"
is "$(asked '
	const row = sums(0, data.length).filter((one) => one.lane === "Guest vCPU 0" && one.state === "preempted");
	const all = { count: row.reduce((n, one) => n + one.count, 0), durations: row.flatMap((one) => one.durations) };
	said.push(percentile(all, 0.5), percentile(all, 0.99));
	said.push(timeline.lanes.filter((one) => one.kind === "task").length);
	const guest = data.lanes.find((one) => one.unfolds);
	choose({ lane: guest, title: true });
	const tasks = timeline.lanes.filter((one) => one.kind === "task");
	said.push(data.lanes.filter((one) => one.kind === "task").length === tasks.length);
	said.push([...new Set(tasks.flatMap((task) => [...task.spans.label].map((label) => data.labels[label].state)))].sort().join());
	choose({ lane: guest, title: true });
	said.push(timeline.lanes.filter((one) => one.kind === "task").length);
	choose({ event: eventsOfSpan(data, { lane: data.lanes.find((one) => one.pid === data.chains[0].pid), i: 0 })[0] || [...data.byCpu.values()][0][0] });
	said.push(document.getElementById("span").textContent.includes("error of the time"));')" \
	"$(awk '{ v[NR] = $1 } END { n = NR / 2; m = NR * 99 / 100; print v[int(n) + (n > int(n))]; print v[int(m) + (m > int(m))] }' "$tmp/durations")
0
true
runnable,running,sleeping,stolen
0
true" "percentiles, a guest's tasks unfolded and folded, an event"

# Figures: bars are the page's sums; a heat map has each span once; a distribution's parts are shares of its key.
view -q tests/data/raw/trace.dat
is "$(asked '
	const rows = timeRows(data, 0, data.length), vcpu = rows.find((row) => row.title === "Guest vCPU 0");
	const sum = (state) => sums(0, data.length).filter((one) => one.lane === "Guest vCPU 0" && one.state === state).reduce((ns, one) => ns + one.ns, 0);
	said.push(vcpu.parts.length > 4, vcpu.parts.every((part) => Math.round(part.share * data.length) === sum(part.name)));
	for (const section of document.querySelectorAll("#questions details"))
		section.open = true;
	await new Promise((done) => setTimeout(done, 100));
	said.push(document.querySelectorAll("#questions .bar").length === rows.length);
	said.push([...document.querySelectorAll("#questions summary")].map((one) => one.textContent).join());
	const visits = durationKinds(data).find((kind) => kind.name === "visits to the hypervisor");
	said.push([...visits.byLane.values()].flat().length === data.lanes.filter((lane) => lane.kind === "hyp").reduce((n, lane) => n + lane.spans.n, 0));
	said.push([...document.querySelectorAll("figcaption")].map((one) => one.textContent).filter((text) => /irq|heat|When/.test(text)).join(" | "));
	const irq = [...document.querySelectorAll("figure")].find((one) => one.textContent.startsWith("How long? irq"));
	said.push(irq.querySelector(".legend").textContent, irq.querySelector("canvas").getAttribute("aria-label"));
	const texts = [], text = CanvasRenderingContext2D.prototype.fillText;
	CanvasRenderingContext2D.prototype.fillText = function (word) { texts.push(word); };
	addHistogram(document.body, "", data.latency[0].rows.map((row) => ({ name: row.key, buckets: row.buckets })), false);
	said.push(texts.includes("duration (logarithmic)"), texts.includes("share of a key\u0027s durations, % per 8th of a decade"), texts.includes("1.000ms"));')" "true
true
true
Where time went,Durations: distribution and heat map,Flame graph of stacks,Latencies
true
When, and how long? visits to the hypervisor | How long? irq: an interrupt from KVM to the guest's handler
Guest 0: 18, p50 407.6us, p99 8.978msGuest 1: 18, p50 626.7us, p99 11.730ms
How long? irq: an interrupt from KVM to the guest's handler
true
true
true" "figures: bars, distributions and a heat map, with names and units on their axes"

# Findings lead to their examples; events of a window; lanes of marks.
view -q tests/data/steal/trace.dat
is "$(asked '
	const { events } = window.hyptrace, list = document.querySelectorAll("#findings li");
	said.push(list.length === data.findings.findings.length, list[0].querySelector("code").textContent);
	list[0].querySelector("button").click();
	const { lane, i } = timeline.chosen, first = data.findings.findings[0];
	said.push(lane.title, data.labels[lane.spans.label[i]].other);
	said.push(timeText(data, lane.spans.from[i]) === first.from, timeText(data, lane.spans.to[i]) === first.to);
	said.push(timeline.from < lane.spans.from[i] && lane.spans.to[i] < timeline.to && timeline.to - timeline.from < 3 * (lane.spans.to[i] - lane.spans.from[i]));
	said.push(events(0, data.length).map((one) => one.machine + " " + one.n).join());
	said.push(JSON.stringify(events(5 * data.bucket, 9 * data.bucket).map((one) => one.n)) === JSON.stringify(data.rates.map((all) => all.slice(5, 9).reduce((a, b) => a + b))));
	const rate = timeline.lanes.find((one) => one.kind === "rate"), bucket = rate.counts.indexOf(rate.most);
	said.push(placeText(data, { lane: rate, bucket }).includes(rate.most + " events in "));')" "true
hyptrace stat --show steal tests/data/steal/trace.dat
Guest vCPU 0
hog-178
true
true
true
host $("$hyptrace" sql -q --csv tests/data/steal/trace.dat "SELECT count(*) FROM events WHERE machine = 'host'" | sed '1d; s/.*,//'),Guest $("$hyptrace" sql -q --csv tests/data/steal/trace.dat "SELECT count(*) FROM events WHERE machine = 'Guest'" | sed '1d; s/.*,//')
true
true" "findings lead to their longest stretch; events of a window"

# The flame graph's frames are as wide as flame's sums of stacks that begin with them.
view -q tests/data/functions/trace.dat
asked '
	for (const section of document.querySelectorAll("#questions details"))
		section.open = true;
	await new Promise((done) => setTimeout(done, 100));
	const width = document.querySelector(".flame").clientWidth;
	for (const one of document.querySelectorAll(".flame button"))
		if (one.style.top === "18px" || one.style.top === "36px")
			said.push(one.textContent + " " + (parseFloat(one.style.width)).toFixed(3));' | grep . | sort >"$tmp/got"
"$hyptrace" flame -q tests/data/functions/trace.dat | perl -ne 'my ($stack, $n) = /^(.*) (\d+)$/ or next; $all += $n; my @f = split /;/, $stack; $sum{"1 $f[0]"} += $n; $sum{"2 $f[0];$f[1]"} += $n if $f[1];
	END { printf "%s %.3f\n", /([^;]*)$/ && $1 =~ s/^1 //r, $sum{$_} / $all * 100 for grep { $sum{$_} / $all >= 0.0005 } keys %sum }' | sort >"$tmp/expected"
[ -s "$tmp/expected" ] && same "$tmp/got" "$tmp/expected" "the flame graph's frames have the widths of flame's stacks"

# Two recordings: a comparison, and each recording in a place of its own, whose keys are its own.
view -q --diff tests/data/vhost/standard.dat tests/data/vhost/vhost.dat
is "$(asked_of_two '
	const { comparison, sides } = window.hyptrace, byId = (id) => document.getElementById(id);
	said.push(document.title, sides.map((one) => byId("about" + one.data.suffix).querySelectorAll("tr").length).join());
	for (const [name, rows] of Object.entries(comparison.diff).filter(([name]) => name in DIFF_TABLES && comparison.diff[name].length))
		said.push(name + " " + rows.filter((row) => /more|less/.test(row.verdict)).length);
	said.push([...document.querySelectorAll("#comparison tbody")].map((one) => one.children.length).join(" "));
	said.push(document.querySelector("#comparison tbody tr").children[4].textContent);
	const before = sides.map((one) => one.timeline.to);
	byId("recording-b").dispatchEvent(new PointerEvent("pointerdown"));
	document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "w", bubbles: true }));
	said.push(sides.map((one, i) => one.timeline.to < before[i]).join());
	const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
	said.push(ids.length === new Set(ids).size, document.documentElement.scrollWidth <= window.innerWidth);
	await new Promise((done) => setTimeout(done, 2000));
	said.push(/^#t-a=[0-9.,]+&t-b=[0-9.,]+$/.test(location.hash));')" "What differs from recording A to recording B?
3,3
$("$hyptrace" diff -q --json tests/data/vhost/standard.dat tests/data/vhost/vhost.dat | jq -r 'to_entries[] | select((.value | type) == "array" and (.key | IN("recordings", "notes") | not)) |
	"\(.key) \([.value[] | select(.verdict | IN("more", "less"))] | length)"')
$("$hyptrace" diff -q --json tests/data/vhost/standard.dat tests/data/vhost/vhost.dat | jq -r '[to_entries[] | select((.value | type) == "array" and (.key | IN("recordings", "notes") | not)) |
	[.value[] | select(.verdict | IN("more", "less"))] | length] | join(" ")')
▲ more
false,true
true
true
true" "two recordings, side by side, with diff's verdicts"

# Of every capture here, and of parts of them, the page shows what there is, and says what there is not.
echo 'const blocks = {};' >"$tmp/blocks.js"
for path in tests/data/*.dat tests/data/*/*.dat; do
	view -q --no-guests "$path"
	[ "$status" = 0 ] || diag "$path: $(<"$tmp/err")"
	sed -n "s|.*id=\"data\">\([^<]*\)<.*|blocks[\"$path\"] = \"\1\";|p" "$tmp/page.html" >>"$tmp/blocks.js"
	echo "\"$path\""
	data --head
done >"$tmp/heads"
jq -r 'if type == "string" then . else ([.lanes[][0]] | unique) as $kinds | ([.rates[][]] | add // 0) as $events |
	[$events, (if $events > 0 then empty else "No events:" end), (({ "2": "vCPUs", "1": "hypervisor", "0": "tasks" } | to_entries[] |
		select(.key | tonumber | IN($kinds[]) | not) | "No \(.value):")),
		(.machines[] | select(.guest == 1 and (.bound // 0) == 0) | "The clock of \(.name) has no bound:")] | map(tostring) | join(" ") end' "$tmp/heads" |
	paste -d ' ' - - >"$tmp/expected"
BLOCKS=$tmp/blocks.js perl -0777 -pi -e 'BEGIN { open my $in, "<", $ENV{BLOCKS} or die; local $/; $blocks = <$in> }
	s/<meta http-equiv="Content-Security-Policy"[^>]*>//; s{</body>}{"<script>$blocks</script></body>"}e' "$tmp/page.html"
asked '
	for (const [path, block] of Object.entries(blocks)) {
		const one = await readData(block, "");

		document.getElementById("about").replaceChildren();
		showHead(one);
		const missing = [...document.querySelectorAll("#about p")].map((line) => line.textContent).filter((text) => /^No |has no bound/.test(text));
		said.push([path, one.rates.flat().reduce((a, b) => a + b, 0), ...missing.map((text) => text.replace(/:.*/, ":"))].join(" "));
	}' | grep . >"$tmp/got"
[ "$(wc -l <"$tmp/expected")" -gt 25 ] && same "$tmp/got" "$tmp/expected" "every capture gives a page that shows its events and says what is missing"

# The commands that the page offers where it has no chain, and for all events of a span: one of each state.
for dir in steal x86; do
	view -q tests/data/$dir/trace.dat
	asked '
		const seen = new Set();

		for (const lane of data.lanes)
			for (let i = 5; i < lane.spans.n - 1; i++) {
				const place = { lane, i }, key = lane.kind + data.labels[lane.spans.label[i]].state, waiter = waiterOf(data, place);

				if (!waiter || chainOf(data, waiter) || seen.has(key))
					continue;
				seen.add(key);
				said.push(chainCommand(data, waiter), reportCommand(data, place));
			}' | grep . >"$tmp/commands"
	failed=
	while read -r command; do
		(cd tests/data/$dir && PATH=$(realpath "$build"):$PATH && bash -c "$command" >"$tmp/out" 2>"$tmp/err" && [ -s "$tmp/out" ]) ||
			failed+="$command: $(<"$tmp/err")"$'\n'
	done <"$tmp/commands"
	[ "$(wc -l <"$tmp/commands")" -gt 3 ] && [ -z "$failed" ]
	ok $? "$dir: the commands that the page offers work as they stand" || diag "$failed"
done
exec {ask}>&-
wait
done_testing
