#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Clocks of guests without bounds are aligned while a command reads the files: on captures of stock trace-cmd.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins
host=$tmp/trace.dat
guest=$tmp/trace-Guest.dat
line="hyptrace: Guest's clock aligned: within"

# as trace-cmd wrote them
"$build/tests/integration/datcut" -s tests/data/stock/trace.dat "$host" 0 1e9 kvm_vcpu_ioctl
"$build/tests/integration/datcut" -s tests/data/stock/trace-Guest.dat "$guest" 0 1e9
sums=$(cksum "$host" "$guest")

# complete OPTION...: complete chains of vCPUs
complete() {
	"$hyptrace" latency -q --json --preset irq "$@" |
		perl -MJSON::PP -0777 -ne '$n += $_->{complete} for @{decode_json($_)->{chains}}; print $n'
}

# ---- chains that were undecided ------------------------------------------------------------------------------

is "$(complete --no-sync "$host" "$guest")" 0 "no interrupt is complete without bounds"
like "$("$hyptrace" latency --no-sync --preset irq "$host" "$guest" 2>&1)" "has no bounds for its clock" "... which is said"
is "$(complete "$host" "$guest")" 302 "all 302 are, once the clock is aligned"
is "$(complete "$guest" "$host")" 302 "... in any order of the files"
is "$("$hyptrace" latency --preset irq "$host" "$guest" 2>&1 >/dev/null)" \
	"$line 82.27us (hyptrace sync --write keeps it)" "one line has the bound"
is "$("$hyptrace" latency -q --preset irq "$host" "$guest" 2>&1 >/dev/null)" "" "... not with -q"
"$hyptrace" latency -q --json --preset irq "$host" "$guest" >"$tmp/aligned"
is "$(cksum "$host" "$guest")" "$sums" "the files are as they were"

# ---- each command that reads files ---------------------------------------------------------------------------

# aligned WORD...: how many lines report an aligned clock
aligned() {
	"$hyptrace" "$@" 2>&1 >/dev/null </dev/null | grep -c "^$line"
}

while read -ra words; do
	words=("${words[@]/HOST/$host}")
	words=("${words[@]/GUEST/$guest}")
	is "$(aligned "${words[@]}")" 1 "aligned: ${words[0]}"
	is "$(aligned "${words[0]}" --no-sync "${words[@]:1}")" 0 "... not with --no-sync"
done <<'E'
stat HOST GUEST
path --at irq_handler_entry@Guest HOST GUEST
flame --weight count HOST GUEST
export --json HOST GUEST
report HOST GUEST
diff --no-guests HOST,GUEST HOST
E
is "$(aligned sql "$host" "$guest" 'select 1')" 1 "aligned: sql"
is "$(aligned sql --no-sync "$host" "$guest" 'select 1')" 0 "... not with --no-sync"
for option in --raw-ts '--ts-offset 5' --uname; do
	# shellcheck disable=SC2086
	is "$(aligned report -i "$host" -i "$guest" $option)" 0 "not: report $option"
done
is "$("$hyptrace" stat "$guest" 2>&1 >/dev/null)" "" "not: a guest without its host's file"
is "$("$hyptrace" stat --no-guests "$host" 2>&1 >/dev/null)" "" "not: a host"
is "$("$hyptrace" stat --json --show vcpus "$host" "$guest" 2>/dev/null | grep -o '"vcpu":"[^"]*"' | sort | tr '\n' ' ')" \
	'"vcpu":"Guest:0" "vcpu":"Guest:1" ' "threads become vCPUs, which the host's file does not name"

# ---- the same as hyptrace sync --write ---------------------------------------------------------------------

mkdir "$tmp/kept"
cp "$host" "$guest" "$tmp/kept"
"$hyptrace" sync -q --write "$tmp/kept/trace.dat" "$tmp/kept/trace-Guest.dat" >"$tmp/out" 2>&1
"$hyptrace" latency --json --preset irq "$tmp/kept/trace.dat" "$tmp/kept/trace-Guest.dat" >"$tmp/written" 2>"$tmp/err"
is "$(cat "$tmp/aligned")" "$(cat "$tmp/written")" "the answer is that of files that sync --write corrected"
is "$(cat "$tmp/err")" "" "... whose offsets are not touched"

# ---- clocks of ticks -------------------------------------------------------------------------------------------

ticks=(tests/data/x86/trace.dat tests/data/x86/trace-Guest.dat)
like "$("$hyptrace" stat "${ticks[@]}" 2>&1)" "^$line 72212 ticks \(hyptrace sync --write keeps it\)" "a bound in ticks"
like "$("$hyptrace" stat --ts2secs 2500000000 "${ticks[@]}" 2>&1)" "^$line 28.88us \(hyptrace" "... of a known rate"
is "$("$hyptrace" export -q --json --ts2secs 2500000000 "${ticks[@]}" | grep -o -m1 '"guest":"Guest".*"time":[0-9]*')" \
	'"guest":"Guest","buffer":"","cpu":0,"time":57818184334' "... by which a guest's times are the host's ns"

# ---- nothing to align by -----------------------------------------------------------------------------------------

make() { "$build/tests/integration/make-trace" "$1" tests/integration/events/latency tests/data/formats-arm64.dat -; }
make "$tmp/h.dat" <<'E'
id 10
guest vm 11 0:50 1:51
1000 0 50 sched_switch 50 0 0 0
E
make "$tmp/g.dat" <<'E'
id 11
1000 0 7 sched_switch 7 0 0 0
E
is "$("$hyptrace" stat "$tmp/h.dat" "$tmp/g.dat" 2>&1 >/dev/null)" \
	"hyptrace: warning: vm's clock is not aligned: $tmp/h.dat has no kvm_entry and kvm_exit events (record -e kvm)" \
	"a host without kvm events"
make "$tmp/h.dat" <<'E'
id 10
guest vm 11 0:50 1:51
1000 0 50 kvm_entry
2000 0 50 kvm_exit
E
is "$("$hyptrace" stat "$tmp/h.dat" "$tmp/g.dat" 2>&1 >/dev/null)" \
	"hyptrace: warning: vm's clock is not aligned: too few of its events lie between kvm_entry and kvm_exit" \
	"a guest of one event"
# holes behind the end
truncate -s 513M "$guest"
is "$("$hyptrace" stat "$host" "$guest" 2>&1 >/dev/null)" \
	"hyptrace: warning: clocks of guests are not aligned with $host: files above 512 MiB are left to hyptrace sync --write" \
	"large files"
done_testing
