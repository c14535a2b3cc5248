#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What others have named, on its way to a terminal, a log, a drawing or a file's name:
# control bytes are shown, names make no lines of their own, our own colours still work.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home
unset HYPTRACE_PAGER PAGER NO_COLOR
host=$tmp/host.dat guest=$tmp/guest.dat

# controls: the bytes of standard input that a terminal would obey, a line each: C0 but newline and
# tab, DEL, C1 alone and as UTF-8, bidi overrides
controls() {
	perl -0777 -ne 'while (/\G((?:[\x20-\x7e\n\t]|[\xc3-\xdf][\x80-\xbf]|\xc2[\xa0-\xbf]|
			(?!\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9])[\xe0-\xef][\x80-\xbf]{2}|
			[\xf0-\xf4][\x80-\xbf]{3}|[\xa0-\xff])*)(.)?/sgx) {
		last unless defined $2;
		printf "%02x\n", ord $2;
	}'
}

is "$(printf 'a\tb\n\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\xe9' | controls)" "" "the judge lets text pass"
is "$(printf '\x1b[2J\x9b\xc2\x9b\x7f\xe2\x80\xae\x00\r' | controls | tr '\n' ' ' | sed 's/ $//')" "1b 9b 9b 7f 80 00 0d" \
	"... and finds controls"

# shown COMMAND...: sets out, err and status; there is no control byte in either
shown() {
	local name=$1
	shift
	timeout 60 "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(tr -d '\0' <"$tmp/out")
	err=$(tr -d '\0' <"$tmp/err")
	is "$(cat "$tmp/out" "$tmp/err" | controls)" "" "$name: nothing that a terminal obeys"
}

# ---- a file with hostile names ------------------------------------------------------

# \x00\x04: what our own colours begin with, inside
"$build/tests/integration/make-trace" "$host" tests/integration/events/kernel <<'E' || diag "no $host"
id 11
guest g\x1b[2J\x0aforged 22 0:100 1:101
uname Linux\x1b]0;owned\x07\x0acpus=forged
task 7 \x1b[31mred\x9b1m
task 8 gr\xc3\xbc\xc3\x9f\xe2\x82\xac
1000000000 0 7 sched_switch	a\x1b[2Jb	7	120	1	\xc2\x9b31m	100	120
1000002000 0 8 irq_handler_entry	27	\xe2\x80\xaetimer\x7f
1000003000 0 8 print	0	one\x0d\x1b[Atwo\x0a
1000004000 1 8 print	0	lines:\x0a => more
1000005000 1 7 kvm_entry	0xffff800080001000
1000006000 1 7 kvm_exit	2	0x24	0xffff800080001004
buffer in\x1b[7mst\x0aforged
2000000000 0 7 irq_handler_exit	27	1
E
"$build/tests/integration/make-trace" "$guest" tests/integration/events/kernel <<'E' || diag "no $guest"
id 22
shift 11 5000
task 5 \x1b[31mred
1000001000 0 5 sched_switch	\x1b]0;t\x07	5	120	1	x	0	120
E

# ---- report ---------------------------------------------------------------------------

shown "report" "$hyptrace" report "$host"
is "$(sed -E 's/^ *//; s/ {2,}/  /g' <<<"$out")" 'cpus=4
\x1b[31mred\x9b1m-7  [000]  1.000000: sched_switch:  a\x1b[2Jb:7 [120] S ==> \xc2\x9b31m:100 [120]
grüß€-8  [000]  1.000002: irq_handler_entry:  irq=27 name=\xe2\x80\xaetimer\x7f
grüß€-8  [000]  1.000003: print:  one\x0d\x1b[Atwo
grüß€-8  [001]  1.000004: print:  lines:
=> more
\x1b[31mred\x9b1m-7  [001]  1.000005: kvm_entry:  PC: 0xffff800080001000
\x1b[31mred\x9b1m-7  [001]  1.000006: kvm_exit:  TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffff800080001004
in\x1b[7mst\x0aforged:  \x1b[31mred\x9b1m-7  [000]  2.000000: irq_handler_exit:  irq=27' \
	"report: tasks, fields and buffers are shown, UTF-8 and an event's own lines stay"
plain=$out
"$hyptrace" report --color=always "$host" >"$tmp/out"
is "$(sed 's/\x1b\[[0-9;]*m//g' "$tmp/out")" "$plain" "with colours: they are ours, all of them"
is "$(sed -E $'s/\x1b\\[(36|33|1|1;31)?m//g' "$tmp/out" | controls)" "" "... and nothing else is obeyed"
shown "report --uname" "$hyptrace" report --uname "$host"
is "$out" 'cpus=4
Linux\x1b]0;owned\x07\x0acpus=forged
 version was not recorded in this file' "uname is one line"
printf 'ffff800080001000 T a\x1b[2Jb\nffff800080002000 T c\n' >"$tmp/symbols"
shown "report -f: what libtraceevent prints" "$hyptrace" report -f --kallsyms "$tmp/symbols" "$host"
like "$out" 'a\\x1b\[2Jb' "... the symbol is shown"
shown "a filter" "$hyptrace" report -F $'x\x1b[2J\ny' "$host"
like "$err" "^hyptrace: filter 'x\\\\x1b\\[2J\\\\x0ay': " "... is shown in the message, as one line"
shown "a file's name" "$hyptrace" report $'x\x1b[2J\ny'
is "$err" "hyptrace: cannot open 'x\\x1b[2J\\x0ay': No such file or directory" "... is shown in the message, as one line"
cp "$host" "$tmp/"$'h\x1b[2J\nx.dat'
shown "a file's name as a label" "$hyptrace" report "$tmp/"$'h\x1b[2J\nx.dat' "$guest"
like "$out" '^ *h\\x1b\[2J\\x0ax.dat: cpus=4$' "... is shown, as one line"
shown "a file's name in a head" "$hyptrace" report --cpus "$tmp/"$'h\x1b[2J\nx.dat'
like "$out" '/h\\x1b\[2J\\x0ax.dat with data:$' "... is shown, as one line"
shown "an unknown option" "$hyptrace" report $'--x\x1b[2J\ny'
is "$err" "hyptrace report: unknown or ambiguous option '--x\\x1b[2J\\x0ay' (see hyptrace report -h)" "... is shown in the message, as one line"

# ---- sync, export ----------------------------------------------------------------------

shown "sync" "$hyptrace" sync "$host" "$guest"
is "$out" "$host"': 1 windows, 0 of them the hypervisor'"'"'s
g\x1b[2J\x0aforged
  none: no offset found
  the file'"'"'s own offsets cannot be checked' "sync: a guest's name is one line"
shown "sync --json" "$hyptrace" sync --json "$host" "$guest"
like "$out" '"name": "g\\u001b\[2J\\nforged",' "... has it as JSON does"
shown "export --json" "$hyptrace" export --json "$host"
like "$out" '"next_comm":"\\u009b31m"' "... has C1 as JSON does"
like "$out" '"comm":"\\u001b\[31mred'$'\xef\xbf\xbd''1m"' "... and what is no UTF-8 as U+FFFD"
is "$(perl -MJSON::PP -ne 'decode_json($_); $n++; END { print $n }' "$tmp/out" 2>&1)" 7 "... every line is JSON"

sed 's/.*/guest <\&"\\xff\\xc2\\x9b> 22/;q' <<<"" >"$tmp/script"
printf 'id 11\n%s\n1000000000 0 7 kvm_entry\t0\n' "$(<"$tmp/script")" | "$build/tests/integration/make-trace" "$tmp/svg.dat" tests/integration/events/kernel
"$hyptrace" sync --quiet --plot "$tmp/out.svg" "$tmp/svg.dat" "$guest"
like "$(cat "$tmp/out.svg")" $'>&lt;&amp;&quot;\xef\xbf\xbd\xef\xbf\xbd&gt;: none, none;' "sync --plot: a name is text to XML"
is "$(controls <"$tmp/out.svg")" "" "... without controls"

# ---- list --------------------------------------------------------------------------------

root=$tmp/root tracing=$tmp/tracing
vmm=$root/proc/107
mkdir -p "$vmm/fd" "$vmm/task/107" "$tracing/instances/"$'in\x1b[2J\nst' "$tracing/per_cpu/cpu0"
ln -s /usr/bin/qemu-system-aarch64 "$vmm/exe"
ln -s / "$vmm/root"
ln -s /dev/kvm "$vmm/fd/10"
printf 'qemu-system-aarch64\0-name\0g\x1b]0;owned\x07\nforged\0-device\0vhost-vsock-pci,guest-cid=3\0' >"$vmm/cmdline"
: >"$vmm/syscall"
echo qemu-system-aar >"$vmm/task/107/comm"
printf 'Name:\tqemu\nNSpid:\t107\n' >"$vmm/task/107/status"
echo running >"$vmm/task/107/syscall"
for dir in "$tracing" "$tracing"/instances/*; do
	printf 'local [bo\x1b[2Jot]\n' >"$dir/trace_clock"
	printf 'n\x1bcop\n' >"$dir/current_tracer"
done
printf 'sched:a\x1b[2Jb\n' >"$tracing/available_events"
export HYPTRACE_ROOT=$root HYPTRACE_TRACING_DIR=$tracing
shown "list" "$hyptrace" list --guests --buffers --events
like "$out" '^g\\x1b\]0;owned\\x07\\x0aforged +QEMU +107 +3 ' "list: a guest's name is one line"
like "$out" '^in\\x1b\[2J\\x0ast .* bo\\x1b\[2Jot +n\\x1bcop$' "... so is a buffer's; clock and tracer are shown"
like "$out" '^host +sched:a\\x1b\[2Jb$' "... an event's"
shown "list --json" "$hyptrace" list --json
is "$(perl -MJSON::PP -0777 -ne 'print decode_json($_)->{guests}[0]{name}' "$tmp/out")" $'g\x1b]0;owned\x07\nforged' "... is JSON"

# ---- record: names that become those of files --------------------------------------------------

shown "record -A" "$hyptrace" record -o "$tmp/no.dat" -A $'g\x1b[2J@3'
is "$status $err" "1 hyptrace: guest 'g\\x1b[2J@3': the name becomes a file's name: no '/', no leading '.' or '-', no control characters, at most 200 bytes" \
	"record -A: a name with controls is refused"
for name in $'g\x1b[2J' $'g\nx' ../x -x .x a/b ''; do
	shown "record --name" "$hyptrace" record -o "$tmp/no.dat" -A 3 --name "$name"
	like "$status $err" '^2 hyptrace record: --name .*: not a name for a guest$' "record --name: $(printf %q "$name") is refused"
done
shown "record -B" "$hyptrace" record -o "$tmp/no.dat" -B $'b\x1b[2J'
like "$status $err" '^2 hyptrace record: -B b\\x1b\[2J: not a name for a buffer$' "record -B: a name with controls is refused"
is "$(ls -d "$tmp"/no* 2>/dev/null)" "" "... and nothing is made"
shown "record -o" "$hyptrace" record -e sched -o "$tmp/none/"$'x\x1b[2J\ny.dat'
like "$err" "x\\\\x1b\\[2J\\\\x0ay.dat" "record -o: a file's name is shown, as one line"

# ---- recover: names that a spool has --------------------------------------------------------------

spool=$tmp/trace.dat.spool
mkdir -p -m 700 "$spool/texts" "$spool/buffers" "$spool/pages"
printf 'spool\t1\noutput\t%s\ntraceid\t7\nclock\tboot\nstate\tdrained\nuname\tL\x1b[2J\n' "$tmp/tr.dat" >"$spool/session"
cp tests/data/formats/header_page tests/data/formats/header_event "$spool/texts"
(cd tests/data/formats && echo "sched $(wc -c <sched_switch)" && cat sched_switch) >"$spool/texts/formats"
printf 'name\t\nclock\tboot\npath\t.\nkind\thost\npage_size\t4096\ncpus\t1\n' >"$spool/buffers/0"
printf 'name\tb\x1b[2J\nclock\tboot\npath\tinstances/b\nkind\thost\npage_size\t4096\ncpus\t1\n' >"$spool/buffers/1"
shown "recover" "$hyptrace" recover "$spool"
like "$err" '^hyptrace: host 0B; b\\x1b\[2J 0B: ' "recover: a buffer's name is shown in the summary"

# ---- our own codes on a terminal ------------------------------------------------------------------

if command -v script >/dev/null; then
	TERM=xterm timeout 60 script -qec "$(printf '%q ' "$hyptrace" report --no-pager "$host")" /dev/null </dev/null |
		tr -d '\r' | grep -v '^hyptrace: next: ' >"$tmp/out"
	is "$(sed 's/\x1b\[[0-9;]*m//g' "$tmp/out")" "$plain" "on a terminal: our colours only"
	like "$(cat "$tmp/out")" $'\x1b\\[1msched_switch: \x1b\\[m' "... and they are obeyed"
else
	skip 2 "no script(1)"
fi

done_testing
