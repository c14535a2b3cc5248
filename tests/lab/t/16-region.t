#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Regions (--start-on, --stop-on) around a marked piece of work: nothing else is in the host's buffers, nor in
# a guest's; how late the hypervisor's buffer follows; however it ends, triggers and tracing_on are as before.
. "$(dirname "$0")/lib.sh"
shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

# Work whose programs have names: "in" runs between "on" and "off", "out" elsewhere.
cat >"$out/work.sh" <<'END'
mkdir -p /tmp/w
for n in on off in out; do printf '#!/bin/sh\n' >/tmp/w/$n; chmod +x /tmp/w/$n; done
# so PROGRAM: so often, and time goes by
so() { for i in 1 2 3; do /tmp/w/$1; sleep ${nap:-0.2}; done; }
region() { so out; /tmp/w/on; so in; /tmp/w/off; so out; }
END
start='--start-on '\''sched:sched_process_exec/filename ~ "*/w/on"'\'
stop='--stop-on '\''sched:sched_process_exit/comm == "off"'\'

# programs FILE [BUFFER]: those of the work that began, by the file
programs() {
	datdump "$out/$1" | awk -v buffer="${2:--}" '$1 == buffer && $4 == "sched_process_exec:"' |
		grep -Eo '/tmp/w/[a-z]+' | sed 's#.*/##' | xargs
}

# across FILE: from a program's begin to the next one's, how often a pause between regions lies in between
across() {
	"$build/hyptrace" latency --csv --key none --from sched:sched_process_exec --to sched:sched_process_exec "$out/$1" \
		2>/dev/null | awk -F , '$1 == "events" && $2 != "key" { print $7 }'
}

# What a recording changes here, and whether it is off.
run 'cat >/tmp/settings <<"END2"
	cd /sys/kernel/tracing
	grep -Hs "" tracing_on dynamic_events remotes/hypervisor/tracing_on events/sched/*/enable events/sched/*/trigger
	grep -v "^#" set_event
	ls instances
END2
	echo "traceoff:3 if prio > 500" >$t/events/sched/sched_waking/trigger
	sh /tmp/settings'
recorded "tracefs with a trigger of somebody's"
before=$output
unchanged() {
	is "$(l1 'sh /tmp/settings')" "$before" "triggers and tracing_on are as before: $1"
}

# ---- the host's, and the hypervisor's -------------------------------------------------

run ". /mnt/out/work.sh
	mkdir \$t/instances/judge && cd \$t/instances/judge &&
	echo boot >trace_clock && echo 8192 >buffer_size_kb &&
	echo 1 >events/sched/sched_process_exec/enable && echo 1 >events/sched/sched_process_exit/enable || exit
	cd /tmp
	hyptrace record -o host.dat $start $stop -e sched -B small -e sched:sched_process_exec -B hyp \
		-- sh -c '. /mnt/out/work.sh; region; region; region' || exit
	cp host.dat /mnt/out
	cat \$t/instances/judge/trace
	rmdir \$t/instances/judge"
recorded "host, an instance and the hypervisor, three regions"
truth=$output
diag "$stderr"
unchanged "a recording"
is "$(programs host.dat) / $(programs host.dat small)" \
	"in in in off in in in off in in in off / in in in off in in in off in in in off" \
	"both buffers of the host have what ran in the regions, and nothing else"
at_least "$(grep -c '/tmp/w/out' <<<"$truth")" 18 "(there was more: $(grep -c '/tmp/w/' <<<"$truth") programs)"

at_least "$(across host.dat)" 2 "the file tells of the pauses between them"

# By the clock: a region is from "on" by the other instance to the end of "off" in the file itself.
followed=$(sed -nE 's/^hyptrace: hyp: switched on in ([0-9]+) regions, at most ([0-9.]+) ms after their begin, and off at most ([0-9.]+) ms after their end$/\1 \2 \3/p' <<<"$stderr")
read -r regions late_on late_off <<<"$followed"
is "${regions:-none}" 3 "the hypervisor's buffer followed three regions: on $late_on ms late at most, off $late_off ms"
sed -nE 's#.* ([0-9]+)\.([0-9]{6}): sched_process_exec: filename=/tmp/w/on .*#on \1\2000#p' <<<"$truth" >"$tmp/on"
datdump "$out/host.dat" >"$tmp/dump"
awk '$1 == "-" && $4 == "sched_process_exit:" && / comm=off / { print "off", $3 }' "$tmp/dump" >"$tmp/off"
# outside BUFFER OFF-NS: records before a region, or so long after its end; the first and last of each, in us
outside() {
	awk -v buffer="$1" -v late="$2" '
		FILENAME == ARGV[1] { on[++n] = $2; next }
		FILENAME == ARGV[2] { off[++m] = $2; next }
		$1 != buffer { next }
		{
			all++
			for (r = n; r > 1 && $3 < on[r] - 1000; r--)
				;
			if ($3 < on[r] - 1000 || $3 > off[r] + late)
				outside++
			if (!(r in first) || $3 < first[r])
				first[r] = $3
			if ($3 > last[r])
				last[r] = $3
		}
		END {
			printf "%d %d", outside, all
			for (r = 1; r <= n; r++)
				printf "; %.0f us after its begin to %.0f us after its end", (first[r] - on[r]) / 1000, (last[r] - off[r]) / 1000
			print ""
		}' "$tmp/on" "$tmp/off" "$tmp/dump"
}
# The trigger acts while its event is recorded; but an emulated CPU may stand still in the middle of that.
read -r n all which <<<"$(outside - 100000000)"
is "$n" 0 "host: 0 of ${all%;} events are out of the regions: $which"
read -r n all which <<<"$(outside hyp "$(awk "BEGIN { printf \"%.0f\", ${late_off:-0} * 1e6 }")")"
is "$n" 0 "hypervisor: 0 of ${all%;} events are out of the regions by more than was said: $which"
at_least "${all%;}" 100 "and it has some"

# ---- a guest's ------------------------------------------------------------------------

guest "cat >/tmp/work.sh <<'END2'
$(cat "$out/work.sh")
END2"
run "begin guest.dat -e sched:sched_switch -A Guest@3 -e sched $start $stop || exit
	/mnt/tests/lab/l1/guest exec 1 100 '$(cat "$out/work.sh" | sed "s/'/'\\\\''/g")
		region; region' || exit
	finish || exit
	cp guest*.dat /mnt/out"
recorded "a guest's regions, by its agent"
is "$(programs guest-Guest.dat)" "in in in off in in in off" "the guest's buffer has what ran in them"
is "$(across guest-Guest.dat)" 1 "its file tells of the pause between them"
at_least "$(datdump "$out/guest.dat" | wc -l)" 100 "the host's is not switched by them"
unchanged "a guest's regions"
is "$(guest 'cat /sys/kernel/tracing/events/sched/sched_process_*/trigger | grep -v "^#"')" "" "no trigger is left in the guest"

# ---- other ends -----------------------------------------------------------------------

for end in INT KILL; do
	run ". /mnt/out/work.sh
		nap=0
		hyptrace record -o end.dat $start $stop -e sched -B small -e sched:sched_process_exec -B hyp 2>/tmp/said &
		pid=\$! said=/tmp/said
		within 60 grep -q ^traceon \$t/instances/small/events/sched/sched_process_exec/trigger || exit
		region; so out; /tmp/w/on; /tmp/w/in
		case $end in
		INT) finish || exit ;;
		KILL)	slay; cat \$t/tracing_on
			hyptrace recover end.dat.spool || exit ;;
		esac
		cp end.dat /mnt/out"
	recorded "a recording that SIG$end ends in a region"
	is "$(programs end.dat | sed 's/ sleep//g')" "in in in off in" "what it has is its regions'"
	at_least "$(across end.dat)" 1 "and the pause between them"
	unchanged "SIG$end"
done
is "$output" 1 "(the kill left tracing on)"

run "$(cat "$out/work.sh")
	nap=0
	hyptrace record -o stop.dat -e sched $stop 2>/tmp/said & pid=\$!
	on() { grep -q ^traceoff \$t/events/sched/sched_process_exit/trigger && grep -q 1 \$t/tracing_on; }
	within 60 on && so in && /tmp/w/off && within 60 gone \$pid || exit
	wait \$pid || exit
	cp stop.dat /mnt/out"
recorded "--stop-on alone, and no command: the recording ends by itself"
like "$(programs stop.dat)" '^in in in off$' "there"
unchanged "--stop-on"

# ---- refused ----------------------------------------------------------------------------

run "hyptrace record -o no.dat -e sched --start-on 'sched:sched_switch/nosuch == 1' -- true"
refused 'nosuch == 1.*Field not found' "a filter that the kernel refuses"
run "hyptrace record -o no.dat -e sched --start-on sched:nosuch -- true"
refused 'no event sched/nosuch with triggers' "an event that is not there"
run "hyptrace record -o no.dat -e sched --start-on sched:sched_waking -- true"
refused "events/sched/sched_waking/trigger' has a traceon or traceoff of somebody else's" "an event with somebody's trigger"
unchanged "refused"

# ---- one event for both --------------------------------------------------------------------

# It needs CONFIG_EPROBE_EVENTS, which Debian's kernel has.
cat >"$tmp/script" <<END
cat >/work.sh <<'END2'
$(cat "$out/work.sh")
END2
nap=0
export nap
hyptrace record -o one.dat -e sched:sched_process_exec \
	--start-on 'sched:sched_process_exec/filename ~ "*/w/on"' \
	--stop-on 'sched:sched_process_exec/filename ~ "*/w/off"' -- sh -c '. /work.sh; region; region' >/tmp/said 2>&1
echo "status: \$?"
sed 's/^/said: /' /tmp/said
hyptrace report one.dat | grep -o '/tmp/w/[a-z]*' | sed 's#.*/#program: #'
echo "left: \$(cat /sys/kernel/tracing/dynamic_events)"
END
HOME=$lab_home tests/lab/debian -t 120 "$tmp/script" >"$tmp/one" 2>&1
is "$(sed -n 's/^program: //p' "$tmp/one" | xargs) $(grep left: "$tmp/one")" "in in in off in in in off left: " \
	"start and stop by one event: an eprobe does it, and goes" || diag "$(tail -n 20 "$tmp/one")"

done_testing
