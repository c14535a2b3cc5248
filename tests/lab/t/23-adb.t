#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace adb from this machine to L1: hypervisor, host and a guest, all real. Only adb is a
# FAKE: a script that copies files through L1's shared directory and has l1/fake-adbd run the
# shell's lines there.
. "$(dirname "$0")/lib.sh"

file=$build/hyptrace-arm64
[ -f "$file" ] || { make -s -j"$(nproc)" O="$build" static >"$tmp/make" 2>&1 || diag "$(cat "$tmp/make")"; }

shared=1 vm_up -m protected -g 1 -a 'hyptrace-agent -D -v'

mkdir "$out/adb" "$tmp/bin" "$tmp/pc"
export FAKE=$out/adb
cat >"$tmp/bin/adb" <<'ADB'
#!/bin/bash
echo "$*" >>"$FAKE/log"
[ "$1 $2" = "-s LAB" ] || { echo "adb: device '$2' not found" >&2; exit 1; }
shift 2
id=$(basename "$(mktemp "$FAKE/XXXXXX")")

# shell LINE: its output comes while it runs, its status is the phone's
shell() {
	: >"$FAKE/$id.out" >"$FAKE/$id.err"
	printf '%s\n' "$*" >"$FAKE/$id"
	mv "$FAKE/$id" "$FAKE/$id.cmd"
	( until [ -e "$FAKE/$id.status" ]; do sleep 0.05; done ) & waiter=$!
	tail -s 0.1 --pid=$waiter -c +1 -f "$FAKE/$id.out" &
	tail -s 0.1 --pid=$waiter -c +1 -f "$FAKE/$id.err" >&2 &
	wait
	return "$(cat "$FAKE/$id.status")"
}

case $1 in
shell) shift; shell "$*" ;;
push) cp "$2" "$FAKE/$id.file" && shell "cp /mnt/out/adb/$id.file '$3'" && echo "$2: 1 file pushed" ;;
pull) shell "cp '$2' /mnt/out/adb/$id.file" && cp "$FAKE/$id.file" "$3" && echo "$2: 1 file pulled" ;;
esac
ADB
chmod 755 "$tmp/bin/adb"
PATH=$tmp/bin:$PATH

# The size to which the kernel expands the top buffer with its first use; room where a phone has it.
run 'echo 1408 >$t/buffer_size_kb
	mkdir -p /data && mount -t tmpfs data /data && mkdir -p /data/local/tmp
	setsid /mnt/tests/lab/l1/fake-adbd /mnt/out/adb >/dev/null 2>&1 &'
recorded "L1 is the phone"

# What a recording changes of tracefs (all of it: t/13-restore.t)
settings() {
	l1 'ls $t/instances; cd $t && cat tracing_on trace_clock current_tracer buffer_size_kb set_event
		cd $hyp && cat tracing_on buffer_size_kb events/*/*/enable'
}
settings >"$tmp/before"

# adb ARG...: hyptrace adb; what it printed is in $output, what it said in $stderr, its end in $status
adb() {
	output=$("$build/hyptrace" adb -s LAB "$@" 2>"$tmp/stderr")
	status=$?
	stderr=$(cat "$tmp/stderr")
}

# left NAME: nothing there, and tracefs as it was
left() {
	is "$(l1 'ls /data/local/tmp')" "" "$1: nothing is left there"
	settings >"$tmp/now"
	same "$tmp/now" "$tmp/before" "$1: tracefs is as before"
}

adb list
recorded "list"
like "$output" '^ *Guest +QEMU +[0-9]+ +3 ' "... shows L1's guest" || diag "$output"
like "$output" 'hypervisor' "... and the hypervisor's buffer"

# ---- hypervisor, host and guest by one line ----

adb record -o "$tmp/pc/t.dat" -B hyp -e kvm -e sched -A Guest@3 -e sched -- sh -c 'sleep 2; echo "it'"'"'s $0"' done
recorded "a recording of hypervisor, host and guest"
is "$output" "it's done" "the command ran there"
is "$(ls "$tmp/pc")" $'t-Guest.dat\nt.dat' "the files are here"
like "$stderr" 'guest Guest: clock offset known to .*\(hard, .*; 0 of [0-9]+ events outside' "the guest's clock is known" ||
	diag "$stderr"
for buffer in host hyp Guest; do
	at_least "$(summary_of $buffer events)" 100 "$buffer: events"
	is "$(summary_of $buffer lost)" 0 "$buffer: none lost"
done
reports "$tmp/pc/t.dat" '^ *hyp: .* hyp_enter: ' "stock report shows the hypervisor's"
reports "$tmp/pc/t.dat" ' kvm_entry: ' "the host's"
reports "$tmp/pc/t-Guest.dat" ' sched_switch: ' "and the guest's"
"$build/hyptrace" report "$tmp/pc/t.dat" "$tmp/pc/t-Guest.dat" >"$tmp/report" 2>"$tmp/stderr"
is "$?" 0 "hyptrace report reads them" || diag "$(cat "$tmp/stderr")"
is "$(grep -o 'hyp_enter\|kvm_entry\|Guest.* sched_switch' "$tmp/report" | sed 's/.* //' | sort -u | xargs)" \
	"hyp_enter kvm_entry sched_switch" "... as one timeline" || diag "$(head -n 20 "$tmp/report")"
left "a recording"

# ---- Ctrl-C ----

setsid "$build/hyptrace" adb -s LAB record -o "$tmp/pc/c.dat" -B hyp -e kvm 2>"$tmp/stderr" & pid=$!
run 'begun() { local c n=0; for c in /data/local/tmp/hyptrace.*/out/c.dat.spool/pages/[01].*; do
		[ ! -s "$c" ] || n=$((n + 1)); done; [ $n -ge 2 ]; }
	within 60 begun'
recorded "a recording without an end" || diag "$(cat "$tmp/stderr")"
# as a terminal does, to the whole group
kill -INT -- "-$pid"
wait "$pid"
is "$?" 0 "Ctrl-C here ends it there" || diag "$(cat "$tmp/stderr")"
stderr=$(cat "$tmp/stderr")
at_least "$(summary_of hyp events)" 10 "with the hypervisor's events"
reports "$tmp/pc/c.dat" '^ *hyp: .* hyp_exit: ' "the file is here and whole"
left "Ctrl-C"

# ---- a configuration of Perfetto's ----

cat >"$tmp/c.pbtx" <<'PBTX'
duration_ms: 1000
buffers { size_kb: 1024 }
data_sources { config { name: "linux.ftrace" ftrace_config {
	ftrace_events: "sched/sched_switch"
	ftrace_events: "hyp/hyp_enter"
	ftrace_events: "hyp/hyp_exit"
} } }
PBTX
adb record -o "$tmp/pc/p.dat" --config "$tmp/c.pbtx"
recorded "Perfetto's text configuration: its duration ends the recording"
reports "$tmp/pc/p.dat" '^ *hyp: .* hyp_enter: ' "hyp/hyp_enter is the hypervisor's"
reports "$tmp/pc/p.dat" ' sched_switch: ' "the others are the host's"
left "a configuration"

# ---- kill -9 there ----

setsid "$build/hyptrace" adb -s LAB record -o "$tmp/pc/k.dat" -B hyp -e kvm 2>"$tmp/stderr" & pid=$!
run 'started() { grep -q 1 $hyp/tracing_on; }
	within 60 started && kill -9 "$(cat /data/local/tmp/hyptrace.*/pid)"'
wait "$pid"
is "$?" 137 "a recorder that is killed there: its status"
stderr=$(cat "$tmp/stderr")
dir=$(sed -nE 's/.* on the phone, in ([^;]*);.*/\1/p' <<<"$stderr")
like "$stderr" "'hyptrace adb recover' finishes a spool" "... and what to do, in $dir" || diag "$stderr"
adb recover "$dir/k.dat.spool"
recorded "recover finishes it there"
settings >"$tmp/now"
same "$tmp/now" "$tmp/before" "... and puts tracefs back"
"$tmp/bin/adb" -s LAB pull "$dir/k.dat" "$tmp/pc/k.dat" >"$tmp/out.pull"
reports "$tmp/pc/k.dat" '^ *hyp: .* hyp_enter: ' "... its file is to be fetched"
l1 'pkill -f fake-adbd; umount /data'

done_testing
