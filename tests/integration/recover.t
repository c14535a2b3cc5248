#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `hyptrace recover`: what a spool claims is bounded before anything is made of it, it does not
# choose what is taken for tracefs, and nothing goes that was not carried out.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
# built with ASan, where there is one: it sees a read beyond the summary
sanitised=$build-san/hyptrace
. tests/integration/spool.sh

export HYPTRACE_TRACING_DIR=$tree
bare_machine

# without_tracefs COMMAND...: with the variable of tests unset, on a machine that has none
without_tracefs() {
	unshare -rm sh -c 'mount -t tmpfs none /sys && unset HYPTRACE_TRACING_DIR && exec "$@"' - "$@"
}

[ -x "$sanitised" ] || diag "no $sanitised (make SAN=1): the plain one does all"

# ---- tests -------------------------------------------------------------------

new_spool 64 1
recover
is "$status" 0 "64 buffers: exit status" || diag "$(<"$tmp/err")"
[ -s "$dat" ] && [ ! -e "$spool" ]
ok $? "64 buffers: the file is there, the spool is gone"

# beyond NAME PATTERN: refused, with nothing read beyond the summary
beyond() {
	local hyptrace=$hyptrace

	[ -x "$sanitised" ] && hyptrace=$sanitised
	refused "$1" "$2"
	unlike "$(<"$tmp/err")" 'Sanitizer' "$1: no read beyond the summary"
}

new_spool 65 1
beyond "65 buffers" 'more than 64 buffers'
new_spool 1025 1
beyond "1025 buffers" 'more than 64 buffers'
new_spool 1 65536
beyond "65536 CPUs" 'buffers/0.*8192 CPUs'

# a number of CPUs that a recorder may write, but whose pages are not there
new_spool 2 8192
new_pages 0 1 2
(
	ulimit -n 256
	recover
	exit "$status"
)
is "$?" 0 "8192 CPUs, pages of 3: exit status" || diag "$(<"$tmp/err")"
[ -s "$dat" ] && [ ! -e "$spool" ]
ok $? "8192 CPUs, pages of 3: the file is there, the spool is gone"
is "$("$hyptrace" report -i "$dat" 2>/dev/null | sed -n 's/^cpus=//p')" 3 \
	"8192 CPUs, pages of 3: the file has 3 CPUs"

new_spool 1 1
new_pages 0
truncate -s 257M "$spool/texts/kallsyms"
refused "a text of 257 MB" "texts/kallsyms: File too large"
new_spool 1 1
truncate -s 2M "$spool/session"
refused "a session file of 2 MB" "File too large"

# ---- which tracefs ---------------------------------------------------------------------

# named_by_spool STATE: the spool says where tracefs is, as those of earlier builds did
named_by_spool() {
	local name="tracing_dir in the spool, $1"

	new_spool 1 1
	new_pages 0
	victim
	this_boots "$1"
	printf 'tracing_dir\t%s\n' "$tmp/victim" >>"$spool/session"
	sed -i 's/^path.*/path\t./' "$spool/buffers/0"
	printf 'write\tfile\thacked\n' >"$spool/undo"
	before=$(contents "$spool")
	without_tracefs timeout 60 "$hyptrace" recover "$spool" 2>"$tmp/err"
	is "$?" 1 "$name: exit status"
	victim_stays "$name"
	like "$(<"$tmp/err")" "tracefs is not mounted" "$name: this machine's is looked for"
	is "$(contents "$spool")" "$before" "$name: the spool stays as it was"
}

if without_tracefs true 2>/dev/null; then
	named_by_spool drained
	named_by_spool armed
else
	skip 8 "no mount namespace to hide tracefs in"
fi

# a buffer is where tracefs has it
for name in new.dat session pages/0.7 pages/new; do
	new_spool 1 1
	new_pages 0
	before=$(contents "$spool")
	"$hyptrace" recover "$spool" -o "$spool/$name" 2>"$tmp/err"
	is "$?" 1 "-o into the spool, $name: exit status"
	is "$(<"$tmp/err")" \
		"hyptrace: '$spool/$name' is in the spool, which is removed in the end: name another file with -o" \
		"... the message"
	is "$(contents "$spool")" "$before" "... the spool stays as it was"
done

for path in "$tmp/victim" ../victim instances/../../victim; do
	new_spool 1 1
	new_pages 0
	mkdir -p "$tree/instances"
	victim
	this_boots armed
	sed -i "s#^path.*#path\t$path#" "$spool/buffers/0"
	: >"$spool/undo"
	recover
	is "$status" 1 "a buffer's path leads out of tracefs: exit status"
	victim_stays "a buffer's path leads out of tracefs"
done

# ---- nothing goes that was not carried out ---------------------------------------------

# journal LINE...: a spool of this boot, drained, with these changes to put back
journal() {
	rm -rf "$tree"
	mkdir -p "$tree/instances"
	echo new >"$tree/trace_clock"
	echo new >"$tree/buffer_size_kb"
	new_spool 1 1
	new_pages 0
	this_boots drained
	printf '%s\n' "$@" >"$spool/undo"
}

name="no tracing directory"
journal $'write\ttrace_clock\told'
mv "$tree" "$tree.away"
refused "$name" "cannot open '$tree'"
like "$(<"$tmp/err")" "run .hyptrace recover $spool. again" "$name: what to do"
mv "$tree.away" "$tree"
recover
is "$status" 0 "$name: once it is there" || diag "$(<"$tmp/err")"
is "$(<"$tree/trace_clock")" old "$name: it is put back"
[ -s "$dat" ] && [ ! -e "$spool" ]
ok $? "$name: the file is there, the spool is gone"

name="a journal that makes no sense"
journal $'write\ttrace_clock\told' $'write\t../victim\t1'
refused "$name" "undo' makes no sense at line 2"
is "$(<"$tree/trace_clock")" new "$name: nothing is put back"

name="an entry cannot be put back"
journal $'write\ttrace_clock\told' $'write\tgone\told' $'write\tbuffer_size_kb\told'
recover
is "$status" 1 "$name: exit status"
like "$(<"$tmp/err")" "cannot put 'gone' back" "$name: which"
like "$(<"$tmp/err")" "run .hyptrace recover $spool." "$name: what to do"
is "$(<"$tree/trace_clock") $(<"$tree/buffer_size_kb")" "old old" "$name: the others are"
[ -s "$dat" ]
ok $? "$name: the file is there"
like "$(<"$spool/undo")" $'^write\tgone\told' "$name: the journal keeps it"
[ -s "$spool/pages/0.0" ]
ok $? "$name: and the spool its pages"
recover
is "$status" 1 "$name: again: exit status"
echo new >"$tree/gone"
rm -f "$dat"
recover
is "$status" 0 "$name: once it can be: exit status" || diag "$(<"$tmp/err")"
is "$(<"$tree/gone")" old "$name: it is put back"
[ -s "$dat" ] && [ ! -e "$spool" ]
ok $? "$name: the file is there, the spool is gone"

name="killed while the spool was being removed"
journal
: >"$spool/undo"
rm "$spool/pages/0.0"
printf 'state\tremoved\n' >>"$spool/session"
echo whole >"$dat"
recover
is "$status" 0 "$name: exit status" || diag "$(<"$tmp/err")"
is "$(<"$dat")" whole "$name: the file stays as it was written"
[ ! -e "$spool" ]
ok $? "$name: the spool is gone"

name="another boot's spool"
journal $'write\ttrace_clock\told'
printf 'boot_id\tanother\n' >>"$spool/session"
recover
is "$status" 0 "$name: exit status" || diag "$(<"$tmp/err")"
is "$(<"$tree/trace_clock")" new "$name: tracefs is left alone"
[ -s "$dat" ] && [ ! -e "$spool" ]
ok $? "$name: the file is there, the spool is gone"

# lost_ends: CPUs of which events are lost behind the last one
lost_ends() {
	"$hyptrace" report -i "$dat" 2>/dev/null | grep -o '^CPU:[0-9] \[EVENTS DROPPED\]' | xargs
}
is "$(lost_ends)" "" "$name, all of it on disk: no end is lost"

name="another boot's spool, of a recorder that the end of that boot killed"
new_spool 1 2
new_pages 0 1
printf 'state\tarmed\nboot_id\tanother\n' >>"$spool/session"
recover
is "$status" 0 "$name: exit status" || diag "$(<"$tmp/err")"
is "$(lost_ends)" "CPU:0 [EVENTS DROPPED] CPU:1 [EVENTS DROPPED]" "$name: of each CPU with pages the end is lost"

# read_by_kernel COUNT...: a killed recorder's spool of this boot, with three events of each CPU, of which the
# kernel (here: a fake one) says that so many were read
read_by_kernel() {
	local cpu=0 count

	rm -rf "$tree"
	mkdir -p "$tree/instances/0"
	echo 1 >"$tree/instances/0/tracing_on"
	new_spool 1 $#
	for count; do
		mkdir -p "$tree/instances/0/per_cpu/cpu$cpu"
		: >"$tree/instances/0/per_cpu/cpu$cpu/trace_pipe_raw"
		printf 'entries: 0\nread events: %d\n' "$count" >"$tree/instances/0/per_cpu/cpu$cpu/stats"
		perl -e 'print pack("Q<Q<", 5000, 24), pack("L<L<", 10 << 5 | 1, 0) x 3, "\0" x (4096 - 40)' >"$spool/pages/0.$cpu"
		cpu=$((cpu + 1))
	done
	this_boots armed
	: >"$spool/undo"
	recover
}

name="the kernel counts what was read"
read_by_kernel 3 5
is "$status" 0 "$name: exit status" || diag "$(<"$tmp/err")"
is "$(lost_ends)" "CPU:1 [EVENTS DROPPED]" "$name: 2 of CPU 1 are lost, none of CPU 0"
like "$(<"$tmp/err")" 'host: cpu 1: 2 events are lost: the killed recorder had read them, but not written them' "$name: ... says recover"
unlike "$(<"$tmp/err")" 'cpu 0|may be missing' "$name: ... and nothing else"

name="tracing was off before"
new_tree
echo 0 >"$tree/tracing_on"
"$hyptrace" record -o "$dat" -e kvm 2>"$tmp/err" &
pid=$!
wait_for grep -q 1 "$tree/tracing_on"
kill -KILL $pid
wait $pid 2>/dev/null
rm "$spool/buffers/0" # so that the journal alone can know
recover
is "$(head -n 1 "$tree/tracing_on")" 0 "$name: it is off again" || diag "$(<"$tmp/err")"

name="a guest's spool"
new_spool 1 1
new_pages 0
this_boots armed
sed -i 's/^kind.*/kind\tguest/' "$spool/buffers/0"
rm -rf "$tree"
recover
is "$status" 0 "$name: no tracefs is needed" || diag "$(<"$tmp/err")"
is "$(lost_ends)" "CPU:0 [EVENTS DROPPED]" "$name: what its agent had not sent is lost"

# ---- record, too --------------------------------------------------------------------------

name="record cannot put an entry back"
new_tree
"$hyptrace" record -o "$dat" -e kvm -C mono -- sh -c "mv $tree/trace_clock $tree/moved; mkdir $tree/trace_clock" 2>"$tmp/err"
is "$?" 1 "$name: exit status"
like "$(<"$tmp/err")" "run .hyptrace recover $spool." "$name: what to do"
[ -s "$dat" ] && [ -s "$spool/undo" ]
ok $? "$name: the file is there, and the journal"
rmdir "$tree/trace_clock"
mv "$tree/moved" "$tree/trace_clock"
is "$(head -n 1 "$tree/trace_clock")" mono "$name: it was not put back"
recover
is "$status" 0 "$name: recover: exit status" || diag "$(<"$tmp/err")"
is "$(head -n 1 "$tree/trace_clock")" local "$name: recover puts it back"
[ ! -e "$spool" ]
ok $? "$name: recover: the spool is gone"

name="record -k"
new_tree
"$hyptrace" record -k -o "$dat" -e kvm -- true 2>"$tmp/err"
is "$?" 0 "$name: exit status" || diag "$(<"$tmp/err")"
"$hyptrace" record -o "$dat" -B hyp -- sh -c 'until [ -e "$1" ]; do sleep 0.01; done' - "$tmp/go" 2>"$tmp/err" &
wait_for test -s "$spool/undo"
"$hyptrace" record -o "$tmp/other.dat" -e kvm -- true 2>"$tmp/err2"
is "$?" 0 "$name: what it left is not taken for a killed recording's" || diag "$(<"$tmp/err2")"
touch "$tmp/go"
wait $!
is "$?" 0 "$name: a recording beside" || diag "$(<"$tmp/err")"

done_testing
