#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A recording that goes on, looked at: hyptrace top against what the file has of the same window in the end, and
# hyptrace report --follow against the file's whole text.
# shellcheck disable=SC2154 # $output and friends come from lib.sh
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

run 'begin live.dat --guest-timeout 60 -B hyp -e all -e kvm -e sched -A g1@3 -e sched || exit
	hyptrace report --follow live.dat >/mnt/out/follow 2>follow.err & follow=$!
	# at first only the way of requests bounds it, which may take long here
	within 60 awk -F "\t" "\$3 > 0 && \$3 < 1000000 { n = 1 } END { exit !n }" live.dat.spool/texts/clocks
	hyptrace top --once --json -w 3000 live.dat >/mnt/out/top.json || exit
	finish INT || exit
	wait $follow; echo "follow $?"
	cat follow.err >&2
	cp live*.dat /mnt/out'
recorded "a recording that top and report --follow look at"
is "$output" "follow 0" "report --follow ends with it"
printf '%s\n' "$stderr" >"$tmp/said"

# value EXPRESSION: of what top said, $j
value() {
	perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); print join "\n", eval $ARGV[0]' "$1" <"$out/top.json"
}
is "$(value '$j->{window}[0]{recording}')" runs "top: the recording runs"

# What stock's report has between the first and the last event that top saw of a buffer: all but what lay in
# pages that the kernel had not handed over yet.
report -N -t -i "$out/live.dat" >"$tmp/report"
for buffer in hyp -; do
	read -r events first last <<<"$(value "map { \"\$_->{events} \$_->{first} \$_->{last}\" } grep { (\$_->{buffer} // '-') eq '$buffer' } @{\$j->{buffers}}")"
	there=$(awk -v hyp="$([ "$buffer" != hyp ] || echo 1)" -v from="$first" -v to="$last" '
		($1 == "hyp:") == (hyp + 0) && match($0, / [0-9]+\.[0-9]+:/) {
			at = substr($0, RSTART + 1, RLENGTH - 2)
			n += at >= from && at <= to
		}
		END { print n + 0 }' "$tmp/report")
	diag "buffer $buffer, $first to $last: top had $events events, the file has $there"
	[ "$events" -le "$there" ] && [ "$((events * 2))" -ge "$there" ]
	ok $? "top: the events of buffer $buffer"
done
at_least "$(value 'my $n = 0; $n += $_->{count} for @{$j->{exits}}; $n')" 10 "top: the guest's exits, by reason"
at_least "$(value 'my $n = 0; $n += $_->{count} for @{$j->{hyp}}; $n')" 100 "top: the hypervisor's time"
at_least "$(value 'scalar grep { $_->{guest_ns} && $_->{hypervisor_ns} } @{$j->{vcpus}}')" 2 "top: where the time of vCPUs goes"

# The clock so far: as far from what the file's events tell as both bounds allow.
read -r offset bound <<<"$(value 'map { "$_->{offset_ns} $_->{bound_ns}" } grep { $_->{guest} eq "g1" } @{$j->{clocks}}')"
"$build/hyptrace" sync --json "$out/live.dat" "$out/live-g1.dat" 2>/dev/null |
	perl -MJSON::PP -e 'local $/; my $g = decode_json(<STDIN>)->{guests}[0]; print "$g->{offset} $g->{bound}"' >"$tmp/sync"
read -r known known_bound <"$tmp/sync"
[ "${bound:-0}" -gt 0 ] && [ "$bound" -lt 1000000 ]
ok $? "top: the guest's clock, ${offset:-none} +- ${bound:-none} ns: to a millisecond"
far=$((${offset:-0} - ${known:-0}))
[ -n "$known" ] && [ "${far#-}" -le "$((${bound:-0} + known_bound))" ]
ok $? "... within its bound of what the file's events tell, ${known:-none} +- ${known_bound:-none} ns"

# ---- the text -------------------------------------------------------------------------------

# tasks' names may come later than their events
as_text() { sed -E 's/^( *hyp:)? +[^[]*\[/\1 [/; s/(vcpu=[0-9]+) \(.*\)$/\1/' "$1"; }
"$build/hyptrace" report --no-guests "$out/live.dat" >"$tmp/text" 2>/dev/null
at_least "$(wc -l <"$tmp/text")" 1000 "$(wc -l <"$tmp/text") lines are in the file"
as_text "$out/follow" >"$tmp/followed"
as_text "$tmp/text" >"$tmp/whole"
# on a busy machine a page may be handed over too late for its place, which is reported
if grep -q 'events are printed out of order' "$tmp/said"; then
	diag "$(<"$tmp/said")"
	sort -o "$tmp/followed" "$tmp/followed"
	sort -o "$tmp/whole" "$tmp/whole"
fi
diff "$tmp/followed" "$tmp/whole" >"$tmp/differs"
is "$(head -n 5 "$tmp/differs")" "" "... which report --follow has printed, too"

done_testing
