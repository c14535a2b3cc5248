#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What every command writes: full and closed outputs, readers that close early, and -o
# onto devices, FIFOs, directories, links, other people's files and full disks. What was
# there stays whatever it is unless all of the new file is.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home
unset HYPTRACE_PAGER PAGER
bare_machine
data=tests/data
protected=$data/lab-protected.dat
sync=("$data/x86/trace.dat" "$data/x86/trace-Guest.dat")
gzip -dc "$data/import-protected.gz" >"$tmp/hyp.txt"

# ---- all that is printed -------------------------------------------------------------

printed=("" "-h" "--version" "report -h" "record -h" "list -h" "sync -h" "export -h" "import -h" "recover -h"
	"list --guests" "list --json" "report $protected" "report -e $protected" "report --events $protected"
	"report -f $protected" "sync ${sync[*]}" "sync --json ${sync[*]}" "export --json $protected"
	"export --perfetto - $protected")

mkdir -p "$tmp/tracing/instances"
touch "$tmp/tracing/trace"
export HYPTRACE_TRACING_DIR=$tmp/tracing

for command in "${printed[@]:1}"; do
	# shellcheck disable=SC2086
	timeout 60 "$hyptrace" $command >/dev/full 2>"$tmp/err"
	is "$? $(cat "$tmp/err")" "1 hyptrace: cannot write the output: No space left on device" "$command: onto a full device"
	# shellcheck disable=SC2086
	timeout 60 "$hyptrace" $command >&- 2>"$tmp/err"
	is "$? $(cat "$tmp/err")" "1 hyptrace: cannot write the output: Bad file descriptor" "$command: closed"
	# shellcheck disable=SC2086
	timeout 60 perl -e 'pipe(my $in, my $out); close $in; open(STDOUT, ">&", $out); exec @ARGV' \
		"$hyptrace" $command 2>"$tmp/err"
	is "$? $(cat "$tmp/err")" "141 " "$command: nobody reads it: SIGPIPE's status, no noise"
done
set -o pipefail
"$hyptrace" report "$protected" 2>"$tmp/err" | head -n 1 >"$tmp/out"
is "$? $(cat "$tmp/out" "$tmp/err")" "141 cpus=4" "report | head -n 1"
set +o pipefail
# shellcheck disable=SC2016
timeout 60 perl -e '$SIG{PIPE} = "IGNORE"; pipe(my $in, my $out); close $in; open(STDOUT, ">&", $out); exec @ARGV' \
	"$hyptrace" report "$protected" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "141 " "... the same where the caller ignores SIGPIPE"
cp "${sync[@]}" "$tmp"
timeout 60 "$hyptrace" sync --write --quiet --plot "$tmp/s.svg" "$tmp/trace.dat" "$tmp/trace-Guest.dat" >&- 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 " "a closed output that is not needed"
cmp -s "$tmp/trace.dat.orig" "${sync[0]}" && "$hyptrace" report -e "$tmp/trace.dat" >/dev/null
ok $? "... and nothing is printed into the files"

# ---- the pager -------------------------------------------------------------------------

on_tty() { # COMMAND...: as on a terminal
	TERM=xterm timeout 60 script -qec "$(printf '%q ' "$@"); echo \$?" /dev/null </dev/null | tr -d '\r'
}

if command -v script >/dev/null; then
	export HYPTRACE_PAGER=true
	is "$(on_tty "$hyptrace" report "$protected")" 0 "a pager that is quit: no noise, status 0"
	mkfifo "$tmp/symbols"
	is "$(on_tty "$hyptrace" report --kallsyms "$tmp/symbols" "$protected")" 0 \
		"... also while there is nothing to show yet: no hang"
	HYPTRACE_PAGER=/nonexistent/pager
	is "$(on_tty "$hyptrace" report "$protected" | tail -n 2)" \
		"hyptrace: the pager '/nonexistent/pager' cannot be run: try hyptrace --no-pager COMMAND, or set HYPTRACE_PAGER
1" "a pager that is not there: a message, status 1"
	unset HYPTRACE_PAGER
else
	skip 3 "no script(1)"
fi

# ---- a recording whose messages nobody reads -----------------------------------------------

tree=$tmp/tree
new_tree() {
	rm -rf "$tree"
	pages_once "$tree"
	"$build/tests/integration/fake-android" "$tree" android16
	export HYPTRACE_TRACING_DIR=$tree
}

new_tree
timeout 60 perl -e 'pipe(my $in, my $out); close $in; open(STDERR, ">&", $out); exec @ARGV' \
	"$hyptrace" record -o "$tmp/unread.dat" -e sched -- true >"$tmp/out"
is "$?" 0 "record: nobody reads its messages: status"
"$hyptrace" report "$tmp/unread.dat" >/dev/null
ok $? "... the file is there"
is "$(ls -d "$tmp"/unread.dat.* 2>/dev/null)" "" "... no spool is left"

# ---- where -o leads: every command that writes ------------------------------------------------

mkdir "$tmp/o"

# Each writes one file with -o or the like; the name comes last.
import_to() { timeout 60 "$hyptrace" import -q --hyp "$tmp/hyp.txt" -i "$data/import-protected.dat" -o "$1"; }
json_to() { timeout 60 "$hyptrace" export -q --json "$protected" -o "$1"; }
perfetto_to() { timeout 60 "$hyptrace" export -q "$protected" --perfetto "$1"; }
plot_to() { timeout 60 "$hyptrace" sync -q "${sync[@]}" --plot "$1"; }
record_to() {
	new_tree
	timeout 60 "$hyptrace" record -q -e sched -o "$1" -- true
}
recover_to() {
	local spool=$tmp/r.dat.spool

	rm -rf "$spool"
	mkdir -p -m 700 "$spool/texts" "$spool/buffers" "$spool/pages"
	printf 'spool\t1\noutput\t%s\ntraceid\t7\nclock\tboot\nstate\tdrained\n' "$tmp/r.dat" >"$spool/session"
	cp "$data"/formats/header_page "$data"/formats/header_event "$spool/texts"
	(cd "$data/formats" && echo "sched $(wc -c <sched_switch)" && cat sched_switch) >"$spool/texts/formats"
	printf 'name\t\nclock\tboot\npath\t.\nkind\thost\npage_size\t4096\ncpus\t1\n' >"$spool/buffers/0"
	timeout 60 "$hyptrace" recover -q "$spool" -o "$1"
}

# What there is in o, but for sizes and times
listing() {
	(cd "$tmp/o" && find . -mindepth 1 -printf '%P %y %m %l\n' | sort | sed 's/ $//')
}

for to in record import recover json perfetto plot; do
	write=${to}_to
	rm -rf "$tmp"/o/*
	mkfifo "$tmp/o/fifo"
	ln -s fifo "$tmp/o/to-fifo"
	mkdir "$tmp/o/dir"
	echo old >"$tmp/o/real"
	chmod 600 "$tmp/o/real"
	ln -s real "$tmp/o/link"
	ln -s none "$tmp/o/dangling"
	before=$(listing)

	$write "$tmp/o/dir" 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '$tmp/o/dir': Is a directory" "$to: onto a directory"
	case $to in
	record|import|recover)
		for name in fifo to-fifo; do
			$write "$tmp/o/$name" 2>"$tmp/err"
			is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '$tmp/o/$name': it is no regular file" "$to: onto $name"
		done
		if mknod "$tmp/o/null" c 1 3 2>/dev/null; then
			$write "$tmp/o/null" 2>"$tmp/err"
			is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '$tmp/o/null': it is no regular file" "$to: onto a device"
			[ -c "$tmp/o/null" ]
			ok $? "$to: ... which stays one"
			rm -f "$tmp/o/null"
		else
			skip 2 "not root: no device to be made"
		fi
		;;
	*)
		$write "$tmp/o/plain" 2>"$tmp/err"
		for name in fifo to-fifo; do
			cat "$tmp/o/$name" >"$tmp/o/read" &
			$write "$tmp/o/$name" 2>"$tmp/err"
			ok $? "$to: onto $name" || diag "$(cat "$tmp/err")"
			wait $!
			same "$tmp/o/read" "$tmp/o/plain" "$to: ... it goes through"
		done
		$write >(cat >"$tmp/o/read") 2>"$tmp/err"
		ok $? "$to: onto >(command)" || diag "$(cat "$tmp/err")"
		wait $!
		rm -f "$tmp/o/read" "$tmp/o/plain"
		$write /dev/full 2>"$tmp/err"
		is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '/dev/full': No space left on device" "$to: onto a full device"
		;;
	esac
	exec 7>"$tmp/o/gone"
	rm "$tmp/o/gone"
	$write /dev/fd/7 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '/dev/fd/7': it is open, and was removed" \
		"$to: onto an open file without a name"
	exec 7>&-
	is "$(listing)" "$before" "$to: all is as it was"

	$write "$tmp/o/link" 2>"$tmp/err"
	ok $? "$to: onto a link" || diag "$(cat "$tmp/err")"
	$write "$tmp/o/dangling" 2>"$tmp/err"
	ok $? "$to: onto a link to nothing" || diag "$(cat "$tmp/err")"
	is "$(listing)" "$(printf '%s\nnone f 644\n' "$before" | sort)" "$to: links stay, their ends are written, modes kept"
	[ "$(head -c 3 "$tmp/o/real")" != old ] && [ -s "$tmp/o/none" ]
	ok $? "$to: ... and nothing lies around"

	# what a killed run has left, and what others laid out
	echo half >"$tmp/o/new.part"
	$write "$tmp/o/new" 2>"$tmp/err"
	is "$? $(ls "$tmp"/o/new*)" "0 $tmp/o/new" "$to: a .part of a killed run is cleared away"
	echo precious >"$tmp/o/precious"
	ln -s precious "$tmp/o/trap.part"
	mkfifo "$tmp/o/wait.part"
	for name in trap wait; do
		$write "$tmp/o/$name" 2>"$tmp/err"
		is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '$tmp/o/$name': its .part is there, and no file of yours" \
			"$to: $name.part of others is refused"
	done
	is "$(cat "$tmp/o/precious") $(ls -d "$tmp"/o/trap* "$tmp"/o/wait* | tr '\n' ' ')" \
		"precious $tmp/o/trap.part $tmp/o/wait.part " "$to: ... and stays"
	if chown -h nobody "$tmp/o/link" 2>/dev/null; then
		was=$(sha256sum <"$tmp/o/real")
		$write "$tmp/o/link" 2>"$tmp/err"
		is "$? $(head -n 1 "$tmp/err")" "1 hyptrace: cannot write '$tmp/o/link': it is a symbolic link of another user" \
			"$to: a link of another user is refused"
		is "$(sha256sum <"$tmp/o/real")" "$was" "$to: ... its end stays"
	else
		skip 2 "not root: no link of others to be made"
	fi
	is "$(ls -d "$tmp"/o/*.spool 2>/dev/null)" "" "$to: no spool is left"
done

new_tree
timeout 60 "$hyptrace" record -q -e sched -o "$tmp/o/"$'two\nlines' -- true 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 hyptrace: cannot write '$tmp/o/two\\x0alines': its name has more than one line" \
	"record: a name of two lines, which no spool can keep, is refused"

# sync --write, whose output is its input
mkdir "$tmp/w"
cp "${sync[0]}" "$tmp/w/real.dat"
cp "${sync[1]}" "$tmp/w/guest.dat"
chmod 640 "$tmp/w/real.dat"
ln -s real.dat "$tmp/w/host.dat"
"$hyptrace" sync -q --write "$tmp/w/host.dat" "$tmp/w/guest.dat"
is "$? $(find "$tmp/w" -mindepth 1 -printf '%f %y %m\n' | sort | tr '\n' ' ')" \
	"0 guest.dat f 644 guest.dat.orig f 644 host.dat l 777 real.dat f 640 real.dat.orig f 640 " \
	"sync --write: a link stays, the original is kept beside its end"
cmp -s "$tmp/w/real.dat.orig" "${sync[0]}" && ! cmp -s "$tmp/w/real.dat" "${sync[0]}"
ok $? "... and the end is written"

for kind in "mkdir" "mkfifo" "ln -s none"; do
	cp "${sync[0]}" "$tmp/w/other.dat"
	$kind "$tmp/w/other.dat.orig"
	"$hyptrace" sync -q --write "$tmp/w/other.dat" "$tmp/w/guest.dat" 2>"$tmp/err"
	is "$? $(head -n 1 "$tmp/err")" \
		"1 hyptrace: '$tmp/w/other.dat.orig' is there, and not of this recording: nothing is written; move it away" \
		"sync --write: .orig made by $kind"
	cmp -s "$tmp/w/other.dat" "${sync[0]}"
	ok $? "... the file stays as it was"
	rm -r "$tmp/w/other.dat.orig"
done
cp "${sync[0]}" "$tmp/w/other.dat"
cp "${sync[1]}" "$tmp/w/og.dat"
cp tests/data/steal/trace.dat "$tmp/w/other.dat.orig"
"$hyptrace" sync -q --write "$tmp/w/other.dat" "$tmp/w/og.dat" 2>"$tmp/err"
is "$? $(head -n 1 "$tmp/err")" \
	"1 hyptrace: '$tmp/w/other.dat.orig' is there, and not of this recording: nothing is written; move it away" \
	"sync --write: .orig of another recording"
cmp -s "$tmp/w/other.dat" "${sync[0]}" && cmp -s "$tmp/w/og.dat" "${sync[1]}" &&
	cmp -s tests/data/steal/trace.dat "$tmp/w/other.dat.orig" && [ ! -e "$tmp/w/og.dat.orig" ]
ok $? "... no file is changed"
rm "$tmp/w/other.dat.orig"
for again in first second; do
	"$hyptrace" sync -q --write "$tmp/w/other.dat" "$tmp/w/og.dat" 2>"$tmp/err"
	is "$? $(cat "$tmp/err")" "0 " "... the $again time without it"
done
cmp -s "$tmp/w/other.dat.orig" "${sync[0]}" && cmp -s "$tmp/w/og.dat.orig" "${sync[1]}"
ok $? "... both originals are kept"

# ---- a full disk ---------------------------------------------------------------------------------

# on_small_disk FILES COMMAND...: in a directory on a disk that is full, where "a" is an
# old file; the sums of what there is afterwards are in $tmp/left
on_small_disk() {
	# shellcheck disable=SC2016
	unshare -Urm bash -c 'mount -t tmpfs -o size=2m none "$0/disk" && cd "$0/disk" || exit 99
		echo old >a; cp "$0/host.dat" "$0/guest.dat" .
		head -c 4M /dev/zero >rest 2>/dev/null
		"$@"; status=$?; rm rest; sha256sum * >"$0/left"; exit $status' "$tmp" "$@" 2>"$tmp/err"
}

full() { # NAME COMMAND...
	local name=$1
	shift
	on_small_disk "$@"
	is "$?" 1 "$name on a full disk: status"
	like "$(cat "$tmp/err")" '^hyptrace: cannot .*: No space left on device$' "... the message"
	is "$(cat "$tmp/left")" "$(cd "$tmp" && sha256sum a guest.dat host.dat)" "... all is as it was, nothing else is there"
}

mkdir "$tmp/disk"
cp "$data/sync/trace.dat" "$tmp/host.dat"
cp "$data/sync/trace-Guest.dat" "$tmp/guest.dat"
echo old >"$tmp/a"
if unshare -Urm mount -t tmpfs none "$tmp/disk" 2>/dev/null; then
	full "import" "$hyptrace" import -q --hyp "$tmp/hyp.txt" -i host.dat -o a
	full "export --json" "$hyptrace" export -q --json -o a host.dat
	full "export --perfetto" "$hyptrace" export -q --perfetto a host.dat
	full "export --parquet" "$hyptrace" export -q --parquet tables host.dat
	full "sync --plot" "$hyptrace" sync -q --plot a host.dat guest.dat
	full "sync --write" "$hyptrace" sync -q --write host.dat guest.dat
else
	skip 18 "no namespace to mount a small disk in"
fi

done_testing
