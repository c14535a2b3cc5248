#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace adb with a FAKE adb: a script that runs the "phone's" shell and copies files on
# this machine, with a FAKE tracefs of Android's (fake-android.c). As with the real one, its
# end does not end what it started, and the shell gets its words as one line.
# shellcheck disable=SC2016 # the phone's shell has its own $
. tests/integration/lib.sh

hyptrace=$build/hyptrace
feed=$build/tests/integration/feed-android
tree=$tmp/tracefs
phone=$tmp/phone
export HYPTRACE_TRACING_DIR=$tree FAKE=$tmp/fake
bare_machine
mkdir -p "$tmp/bin" "$FAKE" "$phone" "$tmp/pc"

cat >"$tmp/bin/adb" <<'END'
#!/bin/bash
printf '%s\n' "adb $*" >>"$FAKE/log"
[ ! -e "$FAKE/unplugged" ] || { echo "error: no devices/emulators found" >&2; exit 1; }
[ "$1" != -s ] || shift 2
case $1 in
shell)
	shift
	PATH=$FAKE:$PATH setsid -w sh -c "$*" </dev/null
	status=$?
	[ ! -e "$FAKE/old" ] || exit 0 # before Android 7 no status came through
	exit "$status"
	;;
push) cp "$2" "$3" && echo "$2: 1 file pushed" ;;
pull)
	[ ! -e "$FAKE/full" ] || { echo "adb: error: cannot write" >&2; exit 1; }
	cp "$2" "$3" && echo "$2: 1 file pulled"
	;;
esac
END
printf '#!/bin/sh\ncat "$FAKE/uid"\n' >"$FAKE/id"
printf '#!/bin/sh\ncat "$FAKE/machine"\n' >"$FAKE/uname"
chmod 755 "$tmp/bin/adb" "$FAKE/id" "$FAKE/uname"
echo 0 >"$FAKE/uid"
echo aarch64 >"$FAKE/machine"
path=$tmp/bin:$PATH

# adb OPTION...: sets status; what it printed is in $tmp/out, what it said in $tmp/err
adb() {
	: >"$FAKE/log"
	timeout 60 env PATH="$path" "$hyptrace" adb --dir "$phone" --file "$hyptrace" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

new_tree() {
	rm -rf "$tree" "$tmp"/pc/*
	"$build/tests/integration/fake-android" "$tree" android16
}

said() {
	cat "$tmp/err"
}

# ---- record ------------------------------------------------------------------

new_tree
adb -s PHONE1 record -q -o "$tmp/pc/t.dat" -B hyp -- "$feed" "$tree" events
is "$status" 0 "a recording: exit status" || diag "$(said)"
is "$(said)" "" "-q goes to the phone, and nothing else is said"
[ -s "$tmp/out" ]
ok $? "what the command prints comes through"
is "$("$hyptrace" report "$tmp/pc/t.dat" 2>/dev/null | grep -c 'hyp_enter\|host_hcall')" 2 "the file is here"
is "$(grep -vc '^adb -s PHONE1 ' "$FAKE/log")" 0 "all of adb's calls are for that phone"
is "$(ls -A "$phone") $(ls "$tmp/pc")" " t.dat" "nothing is left there, and one file is here"

mkdir -p "$tmp/pc"
new_tree
args="$tmp/it's"
adb record -o "$tmp/pc/t.dat" -B hyp -- sh -c 'printf "%s|" "$@" >"$0"' "$args" 'a b' '$HOME' "it's" '' '*' '"' 'x;y&z' 'back\slash'
is "$status" 0 "a command with odd words: exit status" || diag "$(said)"
is "$(cat "$args")" "a b|\$HOME|it's||*|\"|x;y&z|back\\slash|" "each word arrives as it was"
like "$(said)" ' hyp 0 events' "what the recorder says is to be seen"

new_tree
adb record -o "$tmp/pc/t.dat" -B hyp -- sh -c 'exit 3'
first=$status
adb record -B nonsense/ -- true
is "$first $status" "$("$hyptrace" record -o "$tmp/x.dat" -B hyp -- sh -c 'exit 3' 2>/dev/null; echo $?) 2" \
	"exit statuses are those of record, a wrong word is told here"
is "$(cat "$FAKE/log")" "" "... before adb is asked"
adb record -o "$tmp/none/t.dat" -B hyp -- true
is "$status $(cat "$FAKE/log")" "1 " "a directory here that is not there: refused before adb is asked"
like "$(said)" "none" "... and named"

# a recording that fails there
new_tree
rm -rf "$tree/hypervisor"
adb record -o "$tmp/pc/t.dat" -B hyp -- true
is "$status" 1 "no hypervisor buffer on the phone: exit status"
like "$(said)" '^hyptrace: .*hypervisor' "... and the recorder's message"
is "$(ls -A "$phone" "$tmp/pc" | grep -v :)" "" "... and nothing is left, there or here"

# a phone that does not say how it ended
: >"$FAKE/old"
adb record -o "$tmp/pc/t.dat" -B hyp -- true
is "$status" 1 "no recording and no exit status: that is an error, too"
like "$(said)" 'the phone has no recording' "... and said"
rm "$FAKE/old"

# ---- Ctrl-C ------------------------------------------------------------------------

new_tree
: >"$FAKE/log"
PATH=$path setsid "$hyptrace" adb --dir "$phone" --file "$hyptrace" record -o "$tmp/pc/t.dat" -B hyp 2>"$tmp/err" &
pid=$!
wait_for grep -q 1 "$tree/hypervisor/tracing_on"
"$feed" "$tree" events >"$tmp/out"
# as a terminal does, to the whole group
kill -INT -- "-$pid"
wait "$pid"
is "$?" 0 "Ctrl-C: exit status" || diag "$(said)"
is "$("$hyptrace" report "$tmp/pc/t.dat" 2>/dev/null | grep -c 'hyp_enter\|host_hcall')" 2 "... the phone's recorder ends in order, and the file is fetched"
like "$(cat "$FAKE/log")" 'kill -INT' "... by a signal on the phone"
is "$(ls -A "$phone")" "" "... and nothing is left there"

# ---- kill -9 there ------------------------------------------------------------------

new_tree
PATH=$path "$hyptrace" adb --dir "$phone" --file "$hyptrace" record -o "$tmp/pc/k.dat" -B hyp 2>"$tmp/err" &
pid=$!
wait_for grep -q 1 "$tree/hypervisor/tracing_on"
kill -9 "$(cat "$phone"/hyptrace.*/pid)"
wait "$pid"
is "$?" 137 "a recorder that is killed there: its status"
dir=$(said | sed -nE 's/.* on the phone, in ([^;]*);.*/\1/p')
adb recover "$dir/k.dat.spool"
is "$status $(head -c 1 "$tree/hypervisor/tracing_on")" "0 0" "recover finishes there what it says is there" || diag "$(said)"
[ -s "$dir/k.dat" ]
ok $? "... the file is beside it"
rm -rf "${dir%/out}"
is "$(ls -A "$phone")" "" "... and nothing else is left"

# ---- list, config ------------------------------------------------------------

new_tree
adb list
is "$status" 0 "list: exit status" || diag "$(said)"
is "$(cat "$tmp/out")" "$("$hyptrace" list 2>/dev/null)" "... and what it prints"
adb report
is "$status" 2 "report is not run there"
like "$(said)" "'report' is not run on the phone" "... and that is said"

printf 'data_sources { config { name: "linux.ftrace" ftrace_config { ftrace_events: "hyp/hyp_enter" } } }\n' >"$tmp/c.pbtx"
new_tree
adb record -o "$tmp/pc/t.dat" --config "$tmp/c.pbtx" -- "$feed" "$tree" events
is "$status" 0 "--config: exit status" || diag "$(said)"
like "$(cat "$FAKE/log")" "push $tmp/c.pbtx " "... the file goes to the phone"

printf 'duration_ms: 300 data_sources { config { name: "x.y" ftrace_config { ftrace_events: "hyp/no_such" ftrace_events: "hyp/hyp_enter" atrace_apps: "*" } } }\n' >"$tmp/c.pbtx"
new_tree
adb record -o "$tmp/pc/t.dat" --config "$tmp/c.pbtx"
is "$status" 0 "its duration ends the recording" || diag "$(said)"
like "$(said)" "^hyptrace: --config: 'data_sources.config.ftrace_config.atrace_apps' is not recorded here" \
	"... what it asks for besides is named"
like "$(said)" "'x.y' is not recorded" "... other sources too"
like "$(said)" 'no_such' "... and an event that is not there"
printf 'buffers {\n' >"$tmp/c.pbtx"
adb record --config "$tmp/c.pbtx"
is "$status $(said | head -n 1 | grep -c 'line 2: a block without end')" "2 1" "a broken one is refused, by its line"

# ---- what can be wrong ---------------------------------------------------------------

echo 2000 >"$FAKE/uid"
adb record -B hyp -- true
is "$status" 1 "adb is not root: exit status"
like "$(said)" "'adb root' first" "... and what to do"
echo 0 >"$FAKE/uid"
echo x86_64 >"$FAKE/machine"
adb record -B hyp -- true
is "$status" 1 "another machine: exit status"
like "$(said)" "the phone is 'x86_64'" "... and what it is"
echo aarch64 >"$FAKE/machine"
: >"$FAKE/unplugged"
adb record -B hyp -- true
is "$status" 1 "no phone: exit status"
like "$(said)" 'no devices/emulators' "... with adb's own message"
rm "$FAKE/unplugged"
new_tree
: >"$FAKE/full"
adb record -o "$tmp/pc/t.dat" -B hyp -- true
is "$status" 1 "a file that cannot be fetched: exit status"
dir=$(said | sed -n 's/.*on the phone, in \(.*\);.*/\1/p')
[ -n "$dir" ] && [ -s "$dir/t.dat" ]
ok $? "... it stays there, and is said where" || diag "$(said)"
rm "$FAKE/full"
rm -rf "${dir%/out}"
is "$(ls -A "$phone")" "" "... and nowhere else"
path=$tmp/empty
adb record -B hyp -- true
is "$status" 1 "no adb: exit status"
like "$(said)" 'there is no adb' "... and what is missing"
path=$tmp/bin:$PATH
PATH=$path "$hyptrace" adb --file "$tmp/none" --dir "$phone" record -B hyp -- true 2>"$tmp/err"
is "$?" 1 "no static file: exit status"
like "$(said)" "cannot read '$tmp/none'" "... and it is named"

done_testing
