#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `hyptrace record --hypertrace` on a FAKE of tracefs (fake-android.c) with a fake of a guest's device: rings are
# read, nobody rings. What a kernel and a guest do is in tests/lab/t/74-hypertrace.t; a spool of that, which a
# killed recorder left, is made into its file here.
. tests/integration/lib.sh

[ "$build" != "${build%-san}" ] && skip_all "not sanitised: the guest's library is for programs that are not"
hyptrace=$build/hyptrace
. tests/integration/spool.sh
export HYPTRACE_TRACING_DIR=$tree
bare_machine
instance=$tree/instances/hypertrace kvm_mmio=$tree/instances/hypertrace/events/kvm/kvm_mmio

"$build/tests/integration/fake-android" "$tree" android16
mkdir -p "$tree/events/kvm/kvm_mmio"
{
	sed -n '1,/^$/p' "$formats/kvm_entry" | sed 's/^name: .*/name: kvm_mmio/; s/^ID: .*/ID: 4711/'
	printf '\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:0;\n' 'u32 type' 8 4 'u32 len' 12 4 'u64 gpa' 16 8 'u64 val' 24 8
	printf '\nprint fmt: "gpa=%%llx", REC->gpa\n'
} >"$tree/events/kvm/kvm_mmio/format"
echo 0 >"$tree/events/kvm/kvm_mmio/enable"
echo none >"$tree/events/kvm/kvm_mmio/filter"
mkdir "$instance"
(cd "$tree" && cp -r events per_cpu options set_* trac* current_tracer buffer_* "$instance")

mkdir "$tmp/dev"
truncate -s 1M "$tmp/dev/resource2"
truncate -s 256 "$tmp/dev/resource0"
echo 0x0000000010041000 0x00000000100410ff 0x0000000000040200 >"$tmp/dev/resource"
gcc -O2 -Iagent/hypertrace -o "$tmp/example" tests/data/hypertrace/my-hypertrace.c "$build/libhypertrace-guest.a" >"$tmp/log" 2>&1
ok $? "the example of QEMU's patches is built, unchanged" || diag "$(cat "$tmp/log")"

cat >"$tmp/run" <<-EOF
	cat $kvm_mmio/filter >$tmp/filter.before
	sleep 0.3 # what comes before the first look (2 ms) may have been there before the recording
	HYPERTRACE=ivshmem:$tmp/dev $tmp/example
	for i in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.1
		grep -q gpa $kvm_mmio/filter && break
	done
	cat $kvm_mmio/filter >$tmp/filter.after
EOF
"$hyptrace" record --hypertrace="a guest=$tmp/dev/resource2" -o "$dat" -- sh "$tmp/run" >"$tmp/out" 2>"$tmp/err"
ok $? "a recording" || diag "$(cat "$tmp/err")"
is "$(head -n 1 "$tmp/filter.before")" "type == 2 && len == 4" "no guest has said its address: all doorbells' like"
is "$(head -n 1 "$tmp/filter.after")" "type == 2 && len == 4 && (gpa == 0x1004100c)" "then by its address"
is "$(head -n 1 "$kvm_mmio/filter")" 0 "the filter is put back"
like "$(cat "$tmp/err")" 'hypertrace: a guest: 0 events, 2 lost: 0 overwritten .* 2 without their doorbell' "events that nobody rang for are none"
like "$(trace-cmd dump --events -i "$dat" 2>/dev/null)" '^name: guest_hypertrace' "the file has the event's format"

# refused PATTERN OPTION...
refuses() {
	local pattern=$1
	shift
	"$hyptrace" record -o "$tmp/no.dat" "$@" -- true >"$tmp/out" 2>"$tmp/err"
	is "$?" 1 "$*: refused"
	like "$(cat "$tmp/err")" "$pattern" "... with a message"
	[ ! -e "$tmp/no.dat" ] && [ ! -e "$tmp/no.dat.spool" ]
	ok $? "... and nothing is left"
}
refuses 'name it: --hypertrace=GUEST=FILE' --hypertrace
refuses "memory of x, '/no/such': No such file" --hypertrace=x=/no/such
refuses "memory of x, '/dev/zero': no regular file" --hypertrace=x=/dev/zero

# ---- captures of the lab ---------------------------------------------------------------

# marks FILE: by stock report, without times
marks() {
	trace-cmd report -i "$1" 2>/dev/null | sed -nE 's/.*guest_hypertrace: +//p'
}

example=tests/data/hypertrace/example.dat
is "$(marks $example)" "client=0 arg1=0x1 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=Guest vcpu=0
client=0 arg1=0x0 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=Guest vcpu=0" "the example's two events, by stock report"
is "$("$hyptrace" report $example 2>/dev/null | sed -nE 's/.*-([0-9]+) +\[[0-9]+\].* (kvm_entry|kvm_exit|guest_hypertrace):.*/\1 \2/p' |
	awk '$2 == "guest_hypertrace" { n++; open[$1] = last[$1] == "kvm_exit"; next }
		open[$1] { good += $2 == "kvm_entry"; open[$1] = 0 }
		{ last[$1] = $2 }
		END { print n, good }')" "2 2" "... when their vCPU had left the guest, before it came back"

# Two clients, 300 events each, of which the recorder had 452 doorbells on disk when it was killed.
tar -C "$tmp" -xzf tests/data/hypertrace/killed.tar.gz
chmod -R go= "$tmp/killed.spool"
"$hyptrace" recover -o "$tmp/killed.dat" "$tmp/killed.spool" >"$tmp/out" 2>"$tmp/err"
is "$?" 0 "what a killed recorder left"
like "$(cat "$tmp/err")" 'Guest: 452 events, 148 lost: 0 overwritten .*, 148 without their doorbell; 0 doorbells' "... the rest is said to be lost"
marks "$tmp/killed.dat" >"$tmp/marks"
is "$(wc -l <"$tmp/marks")" 452 "... as many are in the file"
is "$(perl -ne '/client=(\d) arg1=0x(\w+) arg2=0x(\w+) / and $1 == hex $2 and hex $3 > $last[$1]++ or print; $last[$1] = hex $3' "$tmp/marks")" \
	"" "... each client's in order, with its arguments"

done_testing
