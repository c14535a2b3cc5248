#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace flame --speedscope and --pprof: the stacks and weights of its folded text; in speedscope itself and in
# go tool pprof where these can be had.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/flame || diag "cannot make $1"
}

flame() { # ARGUMENTS: standard output
	"$hyptrace" flame -q "$@"
}

# Profile N of speedscope's JSON as folded text
speedscope_folded() { # N
	jq -r ".shared.frames as \$f | .profiles[$1] | [.samples, .weights] | transpose[] |
		\"\\(.[0] | map(\$f[.].name) | join(\";\")) \\(.[1])\""
}

# pprof's message as folded text, all values of a stack behind it; its types of values go first, each "# TYPE/UNIT",
# then its comment.
pprof_folded() {
	protoc --decode=Profile -I tests/integration pprof.proto | perl -e '
		use strict;
		use warnings;
		my (@open, %at, @strings, %function, %location, @samples, @types, @comments);
		while (<STDIN>) {
			if (/^\s*(\w+) \{$/) {
				push @open, $1;
				%at = () if @open == 1;
			} elsif (/^\s*\}$/) {
				my $of = pop @open;
				push @samples, [@at{qw(location_id value)}] if $of eq "sample";
				push @types, [map { $_->[0] } @at{qw(type unit)}] if $of eq "sample_type";
				$function{ $at{id}[0] } = $at{name}[0] if $of eq "function";
				$location{ $at{id}[0] } = $at{function_id}[0] if $of eq "location";
			} elsif (/^string_table: "(.*)"$/) {
				push @strings, $1 =~ s/\\([0-7]{3}|.)/length $1 == 3 ? chr oct $1 : $1/ger;
			} elsif (/^comment: (\d+)$/) {
				push @comments, $1;
			} elsif (/^\s*(\w+): (\d+)$/) {
				push @{ $at{$1} }, $2;
			}
		}
		$strings[0] eq "" or die "string 0 is text";
		print "# $strings[$_->[0]]/$strings[$_->[1]]\n" for @types;
		print "# $strings[$_]\n" for @comments;
		for (@samples) {
			my ($locations, $values) = @$_;
			@$values == @types or die "values without a type";
			print join(";", map { $strings[$function{ $location{$_} }] } reverse @$locations), " @$values\n";
		}'
}

# profiles NAME UNIT TYPE ARGUMENT...: both have what the text has
profiles() {
	local name=$1 unit=$2 type=$3
	shift 3

	flame --speedscope "$tmp/speedscope.json" --pprof "$tmp/pprof" -o "$tmp/text" "$@"
	is "$?$([ -s "$tmp/text" ] || echo ' without stacks')" 0 "$name"
	flame "$@" >"$tmp/alone"
	speedscope_folded 0 <"$tmp/speedscope.json" >"$tmp/speedscope.text"
	cmp -s "$tmp/alone" "$tmp/text" && same "$tmp/speedscope.text" "$tmp/text" "... for speedscope: $(wc -l <"$tmp/text") stacks"
	is "$(jq -c '.profiles[0] | [.unit, .startValue, .endValue]' "$tmp/speedscope.json")" \
		"[\"$unit\",0,$(awk '{ sum += $NF } END { printf "%d", sum }' "$tmp/text")]" "... their unit and sum"
	pprof_folded <"$tmp/pprof" >"$tmp/pprof.text"
	is "$(head -n 1 "$tmp/pprof.text")" "# $type" "... for pprof: what is counted"
	is "$(sed -n 2p "$tmp/pprof.text")" "# $(jq -r .name "$tmp/speedscope.json")" "... of which files"
	same <(grep -v '^#' "$tmp/pprof.text") "$tmp/text" "... its stacks"
}

make_trace "$tmp/host.dat" <<'E'
id 11
symbol ffff800080001000 do_idle
symbol ffff800080002000 el0_svc
symbol ffff800080003000 ksys_read
symbol ffff800080004000 end
task 7 a;b "\xc3\xa4"\x1b[1m\\
1000 0 7 sched_waking 8
1001 0 7 kernel_stack 2 @ksys_read @el0_svc
2000 0 7 sched_waking 8
2001 0 7 kernel_stack 1 @el0_svc
3000 1 8 sched_waking 7
3001 1 8 kernel_stack 2 @ksys_read @el0_svc
3100 1 8 sched_waking 7
3101 1 8 kernel_stack 2 @ksys_read @el0_svc
E
make_trace "$tmp/after.dat" <<'E'
symbol ffff800080002000 el0_svc
symbol ffff800080003000 ksys_read
symbol ffff800080004000 end
1000 1 8 sched_waking 7
1001 1 8 kernel_stack 2 @ksys_read @el0_svc
1100 1 8 sched_waking 7
1101 1 8 kernel_stack 1 @ksys_read
E

profiles "recorded stacks, with names of all kinds" none samples/count "$tmp/host.dat"
is "$(cat "$tmp/text")" 'host;[unknown]-8;el0_svc;ksys_read 2
host;a:b "ä"?[1m\\;el0_svc 1
host;a:b "ä"?[1m\\;el0_svc;ksys_read 1' "... which are these"
profiles "samples of host and guest" none samples/count tests/data/profile/trace.dat
make_trace "$tmp/places.dat" <<'E'
task 7 CPU 0/KVM
buffer profile
998000000 0 8 sample 8 2 1000 user
999000000 0 8 sample 8 2 1000 user
1000012000 0 7 sample 7 1 1000 CPU\x200/KVM
1001030000 0 7 sample 7 4 1000 CPU\x200/KVM
buffer hyp
999990000 0 0 hyp_enter 1 0
1000009000 0 0 hyp_exit 7 7
1000990000 0 0 hyp_enter 5 7
1001020000 0 0 hyp_exit 6 0
E
profiles "samples in the hypervisor" none samples/count "$tmp/places.dat"
is "$(grep '^host;CPU' "$tmp/text")" 'host;CPU 0/KVM;[guest] 1
host;CPU 0/KVM;[hyp];hvc 1' "... which are these"
profiles "functions of the hypervisor and the kernel" nanoseconds time/nanoseconds tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat
profiles "their calls" none calls/count --weight count tests/data/functions/trace.dat
profiles "time in the hypervisor by reason" nanoseconds time/nanoseconds tests/data/lab-nvhe.dat
make_trace "$tmp/entries.dat" <<'E'
symbol ffff800080001000 outer
symbol ffff800080002000 inner
symbol ffff800080003000 end
1000 0 7 function @outer @inner
E
profiles "the function tracer's records" none entries/count "$tmp/entries.dat"

"$build/tests/integration/make-trace" "$tmp/spans.dat" tests/integration/events/kernel <<'E'
task 7 crosvm
1000 0 7 print	0	1 1 Enter: read
1400 0 7 print	0	1 1 Exit: read
E
profiles "programs' spans" nanoseconds time/nanoseconds --spans "$tmp/spans.dat"
"$build/tests/integration/make-trace" "$tmp/ticks.dat" tests/integration/events/kernel <<'E'
clock x86-tsc
task 7 crosvm
1000 0 7 print	0	1 1 Enter: read
1400 0 7 print	0	1 1 Exit: read
E
profiles "spans of a clock whose rate is not known" none time/ticks --spans "$tmp/ticks.dat"

# States of vCPUs: stat's sums, of each vCPU and state
for files in tests/data/{guest,functions,raw,steal,x86,profile}/trace.dat tests/data/vhost/standard.dat tests/data/lab-{nvhe,protected,stock-arm64}.dat; do
	"$hyptrace" stat -q --show vcpus --json "$files" | jq -r '.vcpus[] | (.vcpu | if test(":") then sub(".*:"; "vCPU ") else "thread" end) as $v |
		to_entries[] | select(.key | test("_(ns|ticks)$") and (test("^(wall|undecided)") | not)) | select(.value > 0) |
		"\($v);\(.key | sub("_(ns|ticks)$"; "")) \(.value)"' >"$tmp/stat"
	flame --states "$files" | sed 's/^[^;]*;//; s/^thread [0-9]*/thread/; s/not recorded/not_recorded/; s/VMM/vmm/' |
		perl -ne '/^([^;]*;[^;]*?)(?:;.*)? (\d+)$/ or die; $n{$1} += $2; END { print "$_ $n{$_}\n" for keys %n }' | sort >"$tmp/states"
	same "$tmp/states" <(perl -ne '/(.*) (\d+)/; $n{$1} += $2; END { print "$_ $n{$_}\n" for keys %n }' "$tmp/stat" | sort) \
		"--states of $files: $(wc -l <"$tmp/stat") sums are stat's"
done
profiles "states of vCPUs" nanoseconds time/nanoseconds --states tests/data/guest/trace.dat tests/data/guest/trace-Guest.dat
is "$(grep -c '^guest:Guest;vCPU [01];' "$tmp/text") $(grep -E 'hypervisor;(hvc|guest_exit) ' "$tmp/text" | wc -l)" "$(wc -l <"$tmp/text") 4" "... by vCPU, state and reason"
profiles "how many states" none calls/count --states -w count tests/data/steal/trace.dat
is "$(flame --states -m nobody tests/data/steal/trace.dat 2>&1) $?" "hyptrace: nothing in these files is what the options ask for: --event, --spans, --states, --machine, --task, --time 1" "--states of another machine"
is "$(flame --states --diff tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat | awk '$(NF - 1) != $NF')" "" \
	"--states --diff of a recording with itself: all alike"
is "$(flame --states --spans "$tmp/host.dat" 2>&1) $?" "hyptrace: --states shows vCPUs: without --spans and --task 2" "--states --spans"

flame --diff --speedscope "$tmp/diff.json" --pprof "$tmp/diff.pprof" "$tmp/host.dat" "$tmp/after.dat"
is "$(speedscope_folded 0 <"$tmp/diff.json")" "$(flame "$tmp/host.dat")" "--diff: speedscope has the first recording"
is "$(speedscope_folded 1 <"$tmp/diff.json")" "$(flame "$tmp/after.dat" | sed 's/^after/host/')" "... and the second"
is "$(jq -c '[.profiles[] | [.name, .endValue]]' "$tmp/diff.json")" '[["before",4],["after",2]]' "... by these names"
is "$(pprof_folded <"$tmp/diff.pprof")" '# before/count
# after/count
# host.dat, after.dat: what became more and less?
host;[unknown]-8;el0_svc;ksys_read 2 1
host;[unknown]-8;ksys_read 0 1
host;a:b "ä"?[1m\\;el0_svc 1 0
host;a:b "ä"?[1m\\;el0_svc;ksys_read 1 0' "... pprof has two values of each stack"

flame --pprof "$tmp/file" "$tmp/host.dat"
is "$(flame --pprof - "$tmp/host.dat" | cksum)" "$(cksum <"$tmp/file")" "- is standard output, and no text comes with it"
like "$("$hyptrace" flame --speedscope "$tmp/none/x" "$tmp/host.dat" 2>&1)" "none/x.*: No such file or directory" "an output that cannot be made"
like "$("$hyptrace" flame --pprof /dev/full "$tmp/host.dat" 2>&1)" "/dev/full.*: No space left on device" "... or not written"

# more than one write
{
	echo "symbol ffff800080001000 outer"
	echo "symbol ffff800080009000 end"
	for ((i = 0; i < 6000; i++)); do
		echo "$((i * 10 + 1000)) 0 7 sched_waking 8"
		echo "$((i * 10 + 1001)) 0 7 kernel_stack 3 0x$((i + 5000)) @outer 0x$((i + 20000))"
	done
} >"$tmp/script"
make_trace "$tmp/many.dat" <"$tmp/script"
profiles "many stacks" none samples/count "$tmp/many.dat"

# ---- in the tools themselves ---------------------------------------------------------------

flame --speedscope "$tmp/lab.json" --pprof "$tmp/lab.pprof" tests/data/lab-nvhe.dat
opened=$(tests/tools/speedscope "$tmp/lab.json")
case $? in
77) skip 2 "$opened" ;;
*)
	is "$(head -n 1 <<<"$opened")" "lab-nvhe.dat: time in the hypervisor - speedscope" "speedscope opens it"
	is "$(grep -E ' (host|hvc|guest_exit)$' <<<"$opened" | sort)" "147.66ms (96%) 147.66ms (96%) hvc
153.28ms (100%) 0.00ns (<0.01%) host
5.62ms (3.7%) 5.62ms (3.7%) guest_exit" "... and has its times"
	;;
esac
if command -v go >/dev/null; then
	is "$(go tool pprof -raw "$tmp/lab.pprof" 2>/dev/null | awk '/^Samples/ { on = 1; next } /^Locations/ { on = 0 }
		on && !/: / { print } on && /: / { sum += $1; n++ } END { printf "%d in %d\n", sum, n }')" \
		"time/nanoseconds
$(flame tests/data/lab-nvhe.dat | awk '{ sum += $NF } END { printf "%d in %d\n", sum, NR }')" "go tool pprof reads it"
	is "$(go tool pprof -top -unit=ns "$tmp/lab.pprof" 2>/dev/null | awk '/hvc$/ { print $1, $4 }')" \
		"$(flame tests/data/lab-nvhe.dat | awk '/;hvc / { sum += $NF } END { printf "%dns %dns\n", sum, sum }')" "... and sums a function up"
	is "$(go tool pprof -top -sample_index=after "$tmp/diff.pprof" 2>/dev/null | awk '/ksys_read$/ { print $1 }')" 2 "... and has both recordings"
else
	skip 3 "no go"
fi
done_testing
