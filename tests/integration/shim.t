#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace by the name of trace-cmd: which lines are served, what the real trace-cmd gets of the others (a
# FAKE that tells what it was given, then Debian's), and its own completion beside the link.
# HYPTRACE_TRACE_CMD_ROOT=DIR: once more with the trace-cmd, the libraries and the completion that a
# distribution's packages have, unpacked into DIR (dpkg-deb -x): sid's 3.4, say.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
# Nothing of this machine is touched: there is no tracefs.
export HYPTRACE_TRACING_DIR=$tmp/no-tracefs
cp tests/data/guest/trace.dat "$tmp"
mkdir "$tmp/real" "$tmp/empty"
cat >"$tmp/real/trace-cmd" <<'E2'
#!/bin/bash
echo "real $$"
case ${1-} in wait) exec sleep 100 ;; cat) exec cat ;; esac
for tty in 0 1 2; do test -t $tty && echo "terminal $tty"; done
printf '<%s>\n' "$@"
exit 42
E2
chmod +x "$tmp/real/trace-cmd"

shim=$("$hyptrace" --shim-dir)
is "$shim" "$build/shim" "--shim-dir of a build"
system=$PATH
PATH=$shim:$tmp/real:$PATH

# ---- who serves -----------------------------------------------------------------------------

# who WORD...: of `trace-cmd WORD...`
who() {
	(cd "$tmp" && timeout 60 trace-cmd "$@") >"$tmp/out" 2>&1 </dev/null
	if grep -q '^real ' "$tmp/out"; then echo real; else echo ours; fi
}

while read -r expected line; do
	# shellcheck disable=SC2086
	is "$(who $line)" "$expected" "$expected: trace-cmd $line" || diag "$(cat "$tmp/out")"
done <<'E2'
ours record -B hyp -e kvm -A guest@3
ours record -e sched:* ls -m
ours record -B hyp -m 100
ours record -m 100 -Bhyp
ours record -B remote:tz --temp /tmp
ours record -m 100 -e kvm
real record -N 127.0.0.1:1 -e kvm
real record -p wakeup
real record --compression zlib -e kvm
real record -B hypothesis -m 100
real record -e
real record -h
real record --new-option
ours report trace.dat
ours report
ours report -i trace.dat -F kvm_entry -t
real report --profile
real report -h
real report --cpu x
ours stat trace.dat
ours stat -i trace.dat --show events
real stat
real stat -B hyp
real stat -t
ours list --guests
ours list --events *:hyp_*
real list
real list -e
real list -e sched
real list -h
real list -F --full
ours agent --version
real agent -N 127.0.0.1
real agent -p 823 -P 2
real agent -h
real start -e kvm
real sync trace.dat
real --version
real --help
E2
is "$(who)" real "real: trace-cmd"
is "$(cd "$tmp" && trace-cmd report)" "$("$hyptrace" report "$tmp/trace.dat")" "report prints what hyptrace report prints"
is "$(trace-cmd stat "$tmp/trace.dat")" "$("$hyptrace" stat "$tmp/trace.dat")" "and stat what hyptrace stat prints"

# ---- what the real one gets --------------------------------------------------------------------

is "$(trace-cmd start -e 'a b' '' '*' -- --x=$'\n' | sed 1d)" \
	$'<start>\n<-e>\n<a b>\n<>\n<*>\n<-->\n<--x=\n>' "its arguments as they were"
trace-cmd start >/dev/null
is $? 42 "its exit status"
is "$(echo in | trace-cmd cat | sed 1d)" in "its input"

trace-cmd wait >"$tmp/out" &
pid=$!
wait_for grep -q "^real $pid\$" "$tmp/out"
ok $? "it is the process that was started"
kill -TERM $pid
wait $pid
is $? 143 "which signals reach and end"

if command -v script >/dev/null; then
	is "$(TERM=xterm timeout 60 script -qec "trace-cmd show" /dev/null </dev/null | grep -c '^terminal [012]')" 3 \
		"its terminal"
else
	skip 1 "no script(1)"
fi

# ---- where it is ----------------------------------------------------------------------------------

for command in "start -e kvm" "record -m 100" "list"; do
	# shellcheck disable=SC2086
	(PATH=$shim:$tmp/empty exec -a trace-cmd "$hyptrace" $command) >"$tmp/out" 2>"$tmp/err"
	is "$?:$(cat "$tmp/out" "$tmp/err")" "127:hyptrace: this command line is for the real trace-cmd \
(hyptrace(1), THE TRACE-CMD LINK), and PATH has none beyond hyptrace's link" "no real one: trace-cmd $command"
done
like "$(PATH=$shim:$tmp/empty; trace-cmd agent -P 3 2>&1)" "unknown or ambiguous option '-P'" \
	"no real one: the agent says what it does not know"

mkdir -p "$tmp/usr/bin" "$tmp/usr/lib/hyptrace/shim" "$tmp/noexec/trace-cmd"
cp "$hyptrace" "$tmp/usr/bin"
ln -s ../../../bin/hyptrace "$tmp/usr/lib/hyptrace/shim/trace-cmd"
other=$("$tmp/usr/bin/hyptrace" --shim-dir)
is "$other" "$tmp/usr/lib/hyptrace/shim" "--shim-dir of an installation"
like "$(make -n O="$build" install DESTDIR=/nowhere)" \
	"^ln .*/nowhere/usr/local/bin/hyptrace /nowhere/usr/local/lib/hyptrace/shim/trace-cmd" "make install makes the link there"
for path in "$shim:$other" "$other:$shim" "$shim:$other:$shim:$other" "$shim:$shim:/nowhere:$tmp/noexec:$other"; do
	is "$(PATH=$path:$tmp/real:$system timeout 10 trace-cmd start | sed 1d)" "<start>" \
		"two installations, as ${path//"$tmp"/T}: the real one beyond both"
	(PATH=$path:$tmp/empty; timeout 10 trace-cmd start >/dev/null 2>&1) 2>/dev/null
done
is "$(cd "$tmp/real" && PATH=$shim: trace-cmd start 2>&1 | sed 1d)" "<start>" "an empty part of PATH is the working directory"
mkdir "$tmp/lost"
cp "$hyptrace" "$tmp/lost"
like "$("$tmp/lost/hyptrace" --shim-dir 2>&1; echo $?)" "^hyptrace: the directory with the link is neither .*" "a missing link is an error that says so"

# ---- the completion of trace-cmd's package -----------------------------------------------------------

# What bash-completion has; here without it.
cat >"$tmp/words" <<'E2'
. /usr/share/bash-completion/bash_completion 2>/dev/null
declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
	cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=("${COMP_WORDS[@]}")
}
E2
# completed FILE WORD...: what it makes of them, with the PATH that is
completed() {
	# shellcheck disable=SC2016
	bash -c '. "$1"; . "$2"; shift 2; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_trace_cmd_complete 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' _ "$tmp/words" "$@"
}
# complete_all FILE LINE...: each is the same with the link and without, and not empty
complete_all() {
	local file=$1 line

	shift
	for line in "$@"; do
		# an empty last word
		IFS=' ' read -ra words <<<"$line"
		[[ $line != *' ' ]] || words+=("")
		completed "$file" "${words[@]}" >"$tmp/with"
		PATH=${PATH#"$shim:"} completed "$file" "${words[@]}" >"$tmp/without"
		same "$tmp/with" "$tmp/without" "$line<TAB>"
		[ "$(wc -w <"$tmp/with")" -gt 0 ]
		ok $? "... $(wc -w <"$tmp/with") words" || diag "$(cat "$tmp/with")"
	done
}
helps=("trace-cmd " "trace-cmd re" "trace-cmd record -" "trace-cmd record --" "trace-cmd report -" "trace-cmd list -"
	"trace-cmd stat -" "trace-cmd agent -" "trace-cmd start -")

completion=/usr/share/bash-completion/completions/trace-cmd.bash
if [ -e "$completion" ]; then
	# these would read this machine's tracefs: a FAKE answers
	cat >"$tmp/real/trace-cmd" <<-'E2'
		#!/bin/sh
		case "$*" in
		"list -e"*) printf 'sched:sched_switch\nsched:sched_waking\nkvm:kvm_exit\n' ;;
		"list -B") echo mine yours ;;
		"list -o") printf 'noirq-info\nstacktrace\n' ;;
		"list -p") echo function nop ;;
		"list -f"*) echo schedule ;;
		"list -c") echo zstd, 1.5 ;;
		"list -O") echo option:kvm:x ;;
		*) exit 1 ;;
		esac
	E2
	complete_all "$completion" "trace-cmd record -e sch" "trace-cmd record -B " "trace-cmd record -O " \
		"trace-cmd record -p f" "trace-cmd record -l s" "trace-cmd record --compression " "trace-cmd report -O " \
		"trace-cmd show -B m"
	PATH=$shim:$system
	complete_all "$completion" "${helps[@]}"
else
	skip 34 "no completion of trace-cmd's: $completion"
fi

# ---- another trace-cmd ---------------------------------------------------------------------------------

root=${HYPTRACE_TRACE_CMD_ROOT-}
if [ -n "$root" ]; then
	libs=("$root"/usr/lib/*-linux-gnu)
	loader=("${libs[0]}"/ld-linux*.so.*)
	cat >"$tmp/real/trace-cmd" <<-E2
		#!/bin/sh
		exec "${loader[0]}" --argv0 trace-cmd --library-path "${libs[0]}" "$root/usr/bin/trace-cmd" "\$@"
	E2
	PATH=$shim:$tmp/real:$system
	diag "with$(trace-cmd --version | grep version)"
	complete_all "$root/usr/share/bash-completion/completions/trace-cmd.bash" "${helps[@]}"
	like "$(trace-cmd report --help 2>&1)" "trace-cmd report " "its report -h"
else
	skip 19 "no other trace-cmd (HYPTRACE_TRACE_CMD_ROOT)"
fi
done_testing
