#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What is the same in every command: -q, --json, colours, and the line that says what to do next. Each
# is run once in each way, on a terminal of script(1)'s. FAKE: tracefs, the spools and adb.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
. tests/integration/spool.sh
bare_machine
export TRACEEVENT_PLUGIN_DIR=$build/plugins HYPTRACE_TRACING_DIR=$tree HYPTRACE_PAGER=cat
unset NO_COLOR
here=$PWD

command -v script >/dev/null || skip_all "no script(1)"

# ---- a command line of each ----------------------------------------------------------

# NAME | HOW ITS JSON IS TOLD | ITS NEXT STEP | WORDS. No JSON: it answers nothing, it makes a file.
# doctor's next step is part of what it prints; what top and export print are spools and files of here.
table=(
	"adb|-|hyptrace adb record|--dir $tmp/phone --file $hyptrace list --buffers"
	"cut|-|hyptrace report $tmp/cut.dat|--time +0,+5ms -o $tmp/cut.dat trace.dat"
	"diff|--json|hyptrace stat --show longest|standard.dat vhost.dat"
	"doctor|--json|hyptrace record -B hyp|"
	"export|--json|open $tmp/out.pftrace in|--perfetto $tmp/out.pftrace trace.dat"
	"flame|--json|hyptrace flame --svg flame.svg trace.dat|trace.dat"
	"import|-|hyptrace report $tmp/out.dat|--hyp $tmp/hyp.txt -i import.dat -o $tmp/out.dat"
	"latency|--json|hyptrace path --at SECONDS --cpu CPU trace.dat,|--from kvm_exit --to kvm_entry trace.dat"
	"list|--json|hyptrace doctor|"
	"merge|-|hyptrace report $tmp/merged.dat|-o $tmp/merged.dat a.dat b.dat"
	"path|--json|hyptrace report trace.dat trace-Guest.dat,|--at 63.5655 --guest Guest --cpu 1 trace.dat trace-Guest.dat"
	"record|-|hyptrace view $tmp/made.dat|-o $tmp/made.dat -e sched -- true"
	"recover|-|hyptrace report $dat|$spool"
	"report|--json|hyptrace stat trace.dat|trace.dat"
	"sql|--json|hyptrace-sql|trace.dat 'SELECT 1;'"
	"stat|--json|hyptrace path --at SECONDS --cpu CPU trace.dat,|trace.dat"
	"sync|--json|hyptrace sync --write x86.dat x86-Guest.dat|x86.dat x86-Guest.dat"
	"top|--json|hyptrace stat $dat|--once -w 10 $dat"
	"view|-|open $tmp/view.html in a browser|-o $tmp/view.html trace.dat"
	"watch|-|hyptrace record -e kvm -e sched|--restore --journal $tmp/no-journal"
	"why|--json|hyptrace why --preset wakeup trace.dat,|trace.dat"
)

# what a command finds: its files are in this directory
mkdir "$tmp/cwd" "$tmp/bin" "$tmp/phone"
cp tests/data/functions/*.dat tests/data/vhost/{standard,vhost}.dat "$tmp/cwd"
cp tests/data/import-protected.dat "$tmp/cwd/import.dat"
cp tests/data/x86/trace.dat "$tmp/cwd/x86.dat"
cp tests/data/x86/trace-Guest.dat "$tmp/cwd/x86-Guest.dat"
"$hyptrace" cut -q --time ,63.56 -o "$tmp/cwd/a.dat" "$tmp/cwd/trace.dat" && "$hyptrace" cut -q --time 63.56, -o "$tmp/cwd/b.dat" "$tmp/cwd/trace.dat"
gzip -dc tests/data/import-protected.gz >"$tmp/hyp.txt"
cat >"$tmp/bin/adb" <<'END'
#!/bin/bash
case $1 in
shell) shift; sh -c "$*" | cat; exit "${PIPESTATUS[0]}" ;; # there is no terminal there
push) cp "$2" "$3" ;;
esac
END
printf '#!/bin/sh\necho aarch64\n' >"$tmp/bin/uname"
printf '#!/bin/sh\necho 0\n' >"$tmp/bin/id"
chmod 755 "$tmp"/bin/*
PATH=$tmp/bin:$PATH

exec 8>/dev/null
ready() { # COMMAND: what it takes away, and who records for top
	exec 8>&-
	case $1 in
	doctor | list | record | adb) new_tree ;;
	recover | top) new_spool 1 1 && new_pages 0 ;;
	esac
	[ "$1" != top ] || { exec 8<>"$spool/session" && flock 8 && printf 'state\tarmed\n' >>"$spool/session"; }
}

# on_tty COMMAND WORDS: in a terminal; sets status and out
on_tty() {
	ready "$1"
	out=$(cd "$tmp/cwd" && TERM=xterm timeout 60 script -qec "'$hyptrace' $1 $2" /dev/null </dev/null 8>&- | sed 's/.*\r\x1b\[K//' | tr -d '\r'
		exit "${PIPESTATUS[0]}")
	status=$?
}

# in_pipe COMMAND WORDS: sets status; stdout and stderr are $tmp/out and $tmp/err
in_pipe() {
	ready "$1"
	(cd "$tmp/cwd" && eval "timeout 60 '$hyptrace' $1 $2" >"$tmp/out" 2>"$tmp/err" </dev/null 8>&-)
	status=$?
}

json() { # of objects, one or a line each
	perl -MJSON::PP -0777 -ne '$j = JSON::PP->new; $j->incr_parse($_); $n++ while $j->incr_parse;
		$j->incr_text =~ /\S/ and die; END { print $n ? "json" : "nothing" }' <"$tmp/out" 2>&1
}

is "$(printf '%s\n' "${table[@]}" | cut -d '|' -f 1)" "$("$hyptrace" -h | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p')" \
	"the table has all commands"
for row in "${table[@]}"; do
	IFS='|' read -r name json next words <<<"$row"
	help=$("$hyptrace" "$name" -h)
	like "$help" '^ *-q, --quiet +errors only' "$name: -q"
	[ "$json" = - ] || like "$help" '^ *-j, --json ' "$name: --json"

	on_tty "$name" "$words"
	is "$status" 0 "$name: exit status" || diag "$out"
	like "$(tail -n 1 <<<"$out")" "^(hyptrace: )?next: $next" "$name: ends with what to do next"
	is "$(grep -c 'next: ' <<<"$out")" 1 "... said once"

	NO_COLOR=1 on_tty "$name" "$words"
	unlike "$out" $'\x1b\\[[0-9;]*m' "$name: no colours with NO_COLOR"

	on_tty "$name" "-q $words"
	is "$status" 0 "$name -q: exit status" || diag "$out"
	unlike "$out" 'next: ' "$name -q: no next step"

	in_pipe "$name" "-q $words"
	is "$status $(cat "$tmp/err")" "0 " "$name -q: not a word on stderr"
	in_pipe "$name" "$words"
	unlike "$(cat "$tmp/err")" 'next: ' "$name: nor a next step where no person reads"
	unlike "$(cat "$tmp/out" "$tmp/err")" $'\x1b' "... nor colours"

	[ "$json" != - ] || continue
	words=${words/--perfetto "$tmp/out.pftrace"/}
	in_pipe "$name" "$json $words"
	is "$status $(json)" "0 json" "$name --json: JSON, all of it" || diag "$(head "$tmp/out" "$tmp/err")"
	on_tty "$name" "$json $words"
	unlike "$out" '^(hyptrace: )?next: ' "... on a terminal, too"
done

# ---- the next step's files ------------------------------------------------------------

next() { # COMMAND WORDS: what it says
	on_tty "$1" "$2"
	sed -n 's/^hyptrace: next: //p' <<<"$out"
}
cd "$tmp" && cp "$here/tests/data/functions/trace.dat" "$tmp/cwd/it's a file.dat"
is "$(next sync "--write x86.dat x86-Guest.dat")" "hyptrace report x86.dat x86-Guest.dat" "sync --write: they are in the files"
is "$(next report "-i trace.dat -i trace-Guest.dat")" "hyptrace stat trace.dat trace-Guest.dat" "report -i"
is "$(next report "\"it's a file.dat\"")" "hyptrace stat 'it'\\''s a file.dat'" "a name that a shell takes apart is in quotes"
is "$(next record "-o $tmp/cwd/f.dat --rotate 100s -e sched -- true")" "hyptrace view $tmp/cwd/f.001.dat" "record --rotate: the first of its files"
is "$(next record "-o $tmp/cwd/g.dat --flight 10 -e sched -- true")" "hyptrace view $tmp/cwd/g.001.dat" "record --flight"
is "$(next cut "--per 5ms -o $tmp/cwd/p.dat trace.dat")" "hyptrace report $tmp/cwd/p.001.dat" "cut --per: the first of its files"
is "$(next flame "--svg $tmp/f.svg trace.dat")" "open $tmp/f.svg in a browser" "flame --svg"
cp "$here"/tests/data/spans/*.dat "$tmp/cwd"
for words in "--states trace.dat" "--spans spans.dat spans-Guest.dat" "--states --diff standard.dat vhost.dat"; do
	is "$(next flame "$words")" "hyptrace flame --svg flame.svg $words" "flame $words: of the same question"
done
# the time and the CPU as these commands print them
for words in "stat --show longest" "latency --from kvm_exit --to kvm_entry --worst 1" "why --preset abort" "why --from kvm_exit --to kvm_entry"; do
	read -r name rest <<<"$words"
	command=$(next "$name" "$rest trace.dat trace-Guest.dat")
	command=${command%%,*} command=${command/SECONDS/63.565213494} command=${command/CPU/1}
	(cd "$tmp/cwd" && eval "'$hyptrace' ${command#hyptrace } -q") >"$tmp/out" 2>&1
	is "$? $(grep -c 'why then' "$tmp/out")" "0 1" "$name: its next step works: $command" || diag "$(<"$tmp/out")"
done
is "$(next report -h)" "" "-h: none"
is "$(next report "none.dat")" "" "an error: none"
touch "$tmp/made-vm1.dat"
is "$(next record "-o $tmp/made.dat -e sched -- true")" "hyptrace view $tmp/made.dat" "record: files of guests that were not recorded are not named"
is "$(next record "-o $tmp/made.dat -e nonesuch -- true")" "" "a recording that fails: none"
cd "$here" || exit 1

# ---- report --json ----------------------------------------------------------------------

cd "$tmp/cwd" || exit 1
"$hyptrace" report --json trace.dat trace-Guest.dat >"$tmp/out"
"$hyptrace" export --json trace.dat trace-Guest.dat >"$tmp/export"
same "$tmp/out" "$tmp/export" "report --json: the lines of export --json"
# what the text shows, by options that choose: CPU, time, event of each line
for options in "--cpu 1" "-B hyp" "-F hyp_enter:reason==1" "--pid 115" "-I" "-v -F hyp_exit"; do
	# shellcheck disable=SC2086
	"$hyptrace" report -q -t $options trace.dat 2>/dev/null |
		sed -nE 's/.* \[0*([0-9]+)\] +([0-9]+)\.([0-9]{9}): ([^:]+):.*/\1 \2\3 \4/p' >"$tmp/text"
	# shellcheck disable=SC2086
	"$hyptrace" report --json $options trace.dat |
		perl -MJSON::PP -ne '$j = decode_json($_); print "$j->{cpu} $j->{time} $j->{event}\n" if $j->{event}' >"$tmp/out"
	same "$tmp/out" "$tmp/text" "report --json $options: the records that the text has"
	[ -s "$tmp/out" ]
	ok $? "... which are some"
done
for options in "-w" "-R" "-l" "--align-ts" "--ts-diff" "--events" "--cpus" "-T"; do
	"$hyptrace" report --json $options trace.dat >"$tmp/out" 2>"$tmp/err"
	is "$? $(wc -c <"$tmp/out")" "2 0" "report --json $options is refused"
done

# ---- commands that read recordings -----------------------------------------------------

for row in "${table[@]}"; do
	name=${row%%|*}
	case $name in adb|doctor|list|record|recover|top|watch) continue ;; esac
	grep -q "{ \"$name\", cmd_$name }" "$here/tests/fuzz/commands.c" || echo "$name: not in tests/fuzz/commands.c"
	grep -q "hyptrace, '$name'," "$here/tests/integration/faults.t" || echo "$name: not in faults.t"
done >"$tmp/missing"
is "$(<"$tmp/missing")" "" "each is fuzzed, and each of its calls fails once"
done_testing
