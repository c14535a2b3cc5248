#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recording mainline's text from a FAKE tree (fake-android.c's, with FIFOs for
# trace_pipe) as a plain-nVHE host writes it when a vCPU is loaded already: in the
# lab a recording begins so only by chance.
. tests/integration/lib.sh

tree=$tmp/tracefs
hyp=$tree/remotes/hypervisor
dat=$tmp/trace.dat
export HYPTRACE_TRACING_DIR=$tree

new_tree() {
	local event cpu

	rm -rf "$tree" "$dat"
	"$build/tests/integration/fake-android" "$tree" android16
	mkdir "$tree/remotes"
	mv "$tree/hypervisor" "$hyp"
	for event in "$hyp"/events/hypervisor/*/; do
		case $(basename "$event") in
		hyp_enter|hyp_exit) format "$(basename "$event")" >"$event/format" ;;
		*) rm -r "$event" ;;
		esac
	done
	for cpu in "$hyp"/per_cpu/*; do
		rm "$cpu/trace_pipe_raw" "$cpu/trace_pipe"
		mkfifo "$cpu/trace_pipe"
	done
}

# As linux 7.2 shows it
format() {
	cat <<-END
	name: $1
	ID: $([ "$1" = hyp_enter ]; echo $?)
	format:
		field:unsigned short common_type;	offset:0;	size:2;	signed:0;

		field:u8 reason;	offset:2;	size:1;	signed:0;
		field:pid_t vcpu;	offset:3;	size:4;	signed:1;

	print fmt: "reason=%s vcpu=%d", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu
	END
}

# within COMMAND...: wait until it succeeds, 20 s at most
within() {
	local end=$((SECONDS + 20))

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

is_on() {
	[ "$(head -n 1 "$hyp/tracing_on")" = 1 ]
}

# begin: a recorder, tracing; $now is a time of the boot clock after that, us
begin() {
	local up

	new_tree
	# Both ways: a reader waits for text, as the kernel's do, and sees no end.
	exec 3<>"$hyp/per_cpu/cpu0/trace_pipe" 4<>"$hyp/per_cpu/cpu1/trace_pipe" 5<>"$hyp/per_cpu/cpu2/trace_pipe"
	"$build/hyptrace" record -B hyp -o "$dat" 2>"$tmp/err" &
	pid=$!
	within is_on
	ok $? "the hypervisor's tracing is on" || diag "$(cat "$tmp/err")"
	sleep 0.3 # the recording is older than what it gets
	read -r up _ </proc/uptime
	now=$((10#${up/./} * 10000))
}

# say US TEXT: a line of the hypervisor at $now + US
say() {
	local t=$((now + $1))

	printf '[000]\t%5d.%06d: %s\n' $((t / 1000000)) $((t % 1000000)) "$2" >&3
}

# The recorder ends, the file's hyp events are in $tmp/shown as "US EVENT": us after $now
end() {
	kill -INT "$pid"
	wait "$pid"
	is $? 0 "it ends well"
	diag "$(cat "$tmp/err")"
	show
}

slay() {
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
}

# recovered: the file is made after the recorder was killed
recovered() {
	is "$(ls "$dat" 2>/dev/null)" "" "no file is there"
	"$build/hyptrace" recover "$dat.spool" 2>"$tmp/err"
	is $? 0 "it is recovered" || diag "$(cat "$tmp/err")"
	is "$(ls -d "$dat.spool" 2>/dev/null)" "" "the spool is gone"
	show
}

show() {
	"$build/tests/tools/datdump" -p "$dat" | awk -v now="$now" '$1 == "hyp" && / hyp_e/ {
		$3 = ""; printf "%d", $4 / 1000 - now; sub(/^.*hyp_/, " hyp_"); print }' >"$tmp/shown"
}

# held: what was said has been read
held() {
	[ "$(awk '$1 == "rchar:" { print $2 }' "/proc/$pid/io")" -gt "$1" ]
}
rchar() {
	awk '$1 == "rchar:" { print $2 }' "/proc/$pid/io"
}

# kept N: the spool has N records of CPU 0 in its first page, of 20 bytes each
kept() {
	local buffer

	buffer=$(grep -l hyp-text "$dat.spool"/buffers/* 2>/dev/null)
	[ "$(od -An -tu2 -j8 -N2 "$dat.spool/pages/$(basename "$buffer").0" 2>/dev/null || echo 0)" -ge $(($1 * 20)) ]
} 2>/dev/null

voff=5000000 # us

begin
before=$(rchar)
say -$voff "hyp_exit reason=eret_guest vcpu=4242"
say $((100 - voff)) "hyp_enter reason=guest_exit vcpu=4242"
say $((120 - voff)) "hyp_exit reason=eret_host vcpu=0"
within held $((before + 100))
ok $? "the first events are read"
say $((150 - voff)) "hyp_enter reason=hvc vcpu=0"
say 155 "hyp_exit reason=eret_host vcpu=0"
say 1000 "hyp_enter reason=hvc vcpu=0"
say 1010 "hyp_exit reason=eret_host vcpu=0"
end
is "$(awk '{ $1 = ""; print }' "$tmp/shown")" " hyp_exit: reason=eret_guest vcpu=4242
 hyp_enter: reason=guest_exit vcpu=4242
 hyp_exit: reason=eret_host vcpu=0
 hyp_enter: reason=hvc vcpu=0
 hyp_exit: reason=eret_host vcpu=0
 hyp_enter: reason=hvc vcpu=0
 hyp_exit: reason=eret_host vcpu=0" "a vCPU loaded since before: all its events are there"
is "$(awk '{ n = split("0 100 120 150 155 1000 1010", want); if ($1 - want[NR] > 10 || want[NR] - $1 > 10) print "want", want[NR], "got", $0 }
	END { print NR }' "$tmp/shown")" 7 "their times are right to 10 us, by the offset that its end shows"

begin
before=$(rchar)
say -$voff "hyp_exit reason=eret_guest vcpu=4242"
say $((100 - voff)) "hyp_enter reason=guest_exit vcpu=4242"
within held $((before + 80))
ok $? "the first events are read"
end
is "$(awk '{ $1 = ""; print }' "$tmp/shown")" " hyp_exit: reason=eret_guest vcpu=4242
 hyp_enter: reason=guest_exit vcpu=4242" "it ends before that: all its events are there"

# ---- kill -9: nothing that was written is lost -----------------------------------------

# A vCPU loaded since before, and not put when the kill comes: its CNTVOFF is not known.
begin
say -$voff "hyp_exit reason=eret_guest vcpu=4242"
say $((100 - voff)) "hyp_enter reason=guest_exit vcpu=4242"
within kept 2
ok $? "the first events are in the spool"
slay
recovered
is "$(awk '{ $1 = ""; print }' "$tmp/shown")" " hyp_exit: reason=eret_guest vcpu=4242
 hyp_enter: reason=guest_exit vcpu=4242" "killed while it is not known: all its events are there"

# The rest is read by recover: what that shows holds for what was read before, too. What was read and not yet
# written would be missing.
begin
say -$voff "hyp_exit reason=eret_guest vcpu=4242"
say $((100 - voff)) "hyp_enter reason=guest_exit vcpu=4242"
say $((150 - voff)) "hyp_enter reason=hvc vcpu=0"
within kept 3
ok $? "the first events are in the spool"
slay
say 155 "hyp_exit reason=eret_host vcpu=0"
say 1000 "hyp_enter reason=hvc vcpu=0"
recovered
is "$(awk '{ n = split("0 100 150 155 1000", want); if ($1 - want[NR] > 10 || want[NR] - $1 > 10) print "want", want[NR], "got", $0 }
	END { print NR }' "$tmp/shown")" 5 "killed before the put: all its events are there, their times right to 10 us"
is "$("$build/hyptrace" report -i "$dat" 2>/dev/null | sed -nE 's/.*(EVENTS DROPPED).*/\1/p; s/.*hyp_(enter|exit):.*/\1/p' | xargs)" \
	"exit enter enter EVENTS DROPPED exit enter" "... and a loss is shown where it was killed"

done_testing
