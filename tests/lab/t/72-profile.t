#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --profile on the live pKVM host: samples of the host and of its guest, by our agent; an agent that
# knows nothing of them; and what a killed recorder had.
. "$(dirname "$0")/lib.sh"

hyptrace=$build/hyptrace
hz=50
all_symbols=1 vm_up -m protected -g 1 -a "sh -c 'hyptrace-agent -v -D -p 824; exec trace-cmd agent'"

# count FILE PATTERN: samples that match in what stock's report prints
count() {
	trace-cmd report "$1" 2>/dev/null | grep ' sample: ' | grep -cE "$2"
}

# ---- host, hypervisor and guest -----------------------------------------------------

# a program of the guest's that never sleeps, and is the only one of its name
run "hyptrace record --profile $hz -B hyp -b 4096 -A Guest@3:824 -e sched:sched_process_exit --profile $hz -o p.dat -- \
	/mnt/tests/lab/l1/guest exec 1 60 'timeout 4 yes >/dev/null'
	status=\$?; cp p.dat p-Guest.dat /mnt/out; exit \$status"
[ "$status" = 0 ] || [ "$status" = 143 ]
ok $? "recorded" || diag "$stderr"
host=$out/p.dat guest=$out/p-Guest.dat
seconds=$(sed -n 's/^hyptrace: \([0-9.]*\) s: .*/\1/p' <<<"$stderr")
diag "$seconds s: $stderr"

# an emulator has no time for some of them
for machine in host:4 guest:2; do
	file=${machine%:*} all=$(perl -e 'printf "%d", $ARGV[0] * $ARGV[1] * $ARGV[2]' "$seconds" $hz "${machine#*:}")
	n=$(count "${!file}" .)
	((n * 100 > all * 40 && n * 100 < all * 115))
	ok $? "stock reads about as many samples of the $file as were asked for" || diag "$n of $all"
done
at_least "$(count "$host" 'comm=CPU [01]/KVM .* mode=guest_(user|kernel)')" 60 "vCPUs are seen to run the guest"
at_least "$(count "$guest" 'comm=yes .* mode=(user|kernel)')" 20 "the guest sees which of its programs that was"
"$hyptrace" flame -q -o "$tmp/folded" "$host" "$guest"
ok $? "flame of both"
at_least "$(perl -ne '$n += $1 if /^host;CPU [01]\/KVM;\[guest\] (\d+)$/; END { print $n + 0 }' "$tmp/folded")" 60 \
	"... has the guest below its vCPUs"
at_least "$(perl -ne '$n += $1 if /^guest:Guest;yes;.* (\d+)$/; END { print $n + 0 }' "$tmp/folded")" 20 \
	"... and below the guest its program" || diag "$(grep '^guest' "$tmp/folded")"
like "$(cat "$tmp/folded")" '^guest:Guest;yes;.*busybox\+0x[0-9a-f]+' "... by the maps that it made"
like "$(cat "$tmp/folded")" '^guest:Guest;.*;el0_svc;.*;(ksys|vfs|__arm64_sys)_' "... with what it did in its kernel"

# ---- an agent that does not know it ------------------------------------------------------

run "hyptrace record --profile $hz -A Guest@3:823 -e sched --profile $hz -o stock.dat -- sleep 1"
is "$status" 0 "trace-cmd's agent is recorded without"
like "$stderr" '^hyptrace: warning: guest Guest: no samples: its agent does not know --profile' "... which is said"

# ---- kill -9 ------------------------------------------------------------------------

run "begin killed.dat --profile $hz && slay && hyptrace recover killed.dat.spool && cp killed.dat /mnt/out"
is "$status" 0 "recovered after kill -9" || diag "$stderr"
at_least "$(count "$out/killed.dat" .)" 5 "... with what had been read"

done_testing
