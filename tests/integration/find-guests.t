#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files of guests next to their host's are read without being named: by their trace ids, never by their names alone.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins
dir="$tmp/a [dir]*"
mkdir "$dir"
cp tests/data/functions/*.dat "$dir"
cd "$dir" || exit 1
said="hyptrace: guests' files are read too:"

# found WORD...: the files that are found
found() {
	"$hyptrace" "$@" 2>&1 >/dev/null </dev/null | sed -n "s/^$said \(.*\) (--no-guests leaves them out)\$/\1/p"
}

# ---- each command -----------------------------------------------------------------------

while read -ra words; do
	"$hyptrace" "${words[@]}" trace.dat trace-Guest.dat >"$tmp/want" 2>"$tmp/err"
	unlike "$(cat "$tmp/err")" "^$said" "${words[0]}: nothing is to be found where all are named"
	"$hyptrace" "${words[@]}" trace.dat >"$tmp/got" 2>"$tmp/err"
	is "$(grep "^$said" "$tmp/err")" "$said trace-Guest.dat (--no-guests leaves them out)" "${words[0]}: a guest is found"
	[ -s "$tmp/want" ]
	same "$tmp/got" "$tmp/want" "... and read as if it was named"
	is "$(found "${words[0]}" --no-guests "${words[@]:1}" trace.dat)$(found "${words[0]}" -q "${words[@]:1}" trace.dat)" "" \
		"... not with --no-guests, and silently with -q"
done <<'E2'
stat
report
latency --from kvm_exit --to kvm_entry
path --at 63.5655 --guest Guest --cpu 1
flame --weight count
export --json
sync
E2
is "$("$hyptrace" sql --csv -q trace.dat 'SELECT count(*) FROM machines')" "$(printf 'rows,count(*)\nrows,2')" "sql"
is "$("$hyptrace" sql --csv -q --no-guests trace.dat 'SELECT count(*) FROM machines')" "$(printf 'rows,count(*)\nrows,1')" "... and without"
cp "$OLDPWD"/tests/data/vhost/*.dat .
"$hyptrace" flame -q --diff standard.dat standard-Guest.dat vhost.dat vhost-Guest.dat >"$tmp/want"
"$hyptrace" flame -q --diff standard.dat vhost.dat >"$tmp/got"
same "$tmp/got" "$tmp/want" "flame --diff: each recording with its own"
is "$("$hyptrace" diff -q --csv standard.dat vhost.dat | sed 1,3d)" \
	"$("$hyptrace" diff -q --csv standard.dat standard-Guest.dat vhost.dat vhost-Guest.dat | sed 1,3d)" "diff, likewise"

for option in --raw-ts "--ts-offset 5" "-F sched_switch" "--pid 115" --uname --no-guests; do
	# shellcheck disable=SC2086
	is "$(found report -i trace.dat $option)" "" "report $option: only what is named"
done
mkdir "$tmp/link"
ln -s "$hyptrace" "$tmp/link/trace-cmd"
"$tmp/link/trace-cmd" report trace.dat >"$tmp/got" 2>&1
"$hyptrace" report --no-guests trace.dat >"$tmp/want"
same "$tmp/got" "$tmp/want" "the trace-cmd link: report of one file is that file"
is "$("$tmp/link/trace-cmd" stat trace.dat 2>&1)" "$("$hyptrace" stat --no-guests trace.dat)" "... and so is stat"

# ---- which files ----------------------------------------------------------------------

cp "$OLDPWD/tests/data/guest/trace-Guest.dat" trace-Another.dat
mkfifo trace-fifo.dat
mkdir trace-dir.dat
echo nonsense >trace-text.dat
is "$(timeout 20 "$hyptrace" stat trace.dat 2>&1 >/dev/null)" "$said trace-Guest.dat (--no-guests leaves them out)" \
	"another recording's guest, a FIFO, a directory and a text are passed over"
cp trace-Guest.dat trace-Copy.dat
is "$(found stat trace.dat)" trace-Guest.dat "of copies the one that has the guest's name"
rm trace-Guest.dat
is "$(found stat trace.dat)" trace-Copy.dat "... without it the other one"
is "$(found stat "$dir/trace.dat")" "$dir/trace-Copy.dat" "by a whole path"
is "$(found stat trace.dat trace.dat)" trace-Copy.dat "a host that is named twice: its guest once"
is "$(found stat trace-Copy.dat)" "" "a guest's file names none"
mv trace-Copy.dat Guest.dat
is "$(found stat trace.dat)" "" "other names are not looked at"
"$hyptrace" report trace.dat >"$tmp/want"
head -c 3000 Guest.dat >trace-Guest.dat
"$hyptrace" report -q trace.dat >"$tmp/got" 2>"$tmp/err"
is "$?, $(wc -c <"$tmp/got")" "1, 0" "a guest's file that is damaged is not passed over"
is "$(sed 1d "$tmp/err")" "hyptrace: cannot read 'trace-Guest.dat': it is damaged, or not in the expected format
hyptrace: --no-guests leaves guests' files out" "... which is said"
"$hyptrace" report --no-guests trace.dat >"$tmp/got" 2>&1
same "$tmp/got" "$tmp/want" "... --no-guests reads the host's alone"
mv Guest.dat trace-Guest.dat

# ---- pieces, and what is written -----------------------------------------------------------

"$hyptrace" cut -q --per 5ms -o p.dat trace.dat
ok $? "cut"
is "$(ls p*)" $'p-Guest.001.dat\np-Guest.002.dat\np-Guest.003.dat\np.001.dat\np.002.dat\np.003.dat' \
	"... writes guests' pieces, too"
is "$(found stat p.002.dat)" p-Guest.002.dat "a piece has its own"
"$hyptrace" merge -q -o whole.dat p.00?.dat
ok $? "merge"
"$hyptrace" report -q whole.dat | sed 's/whole/trace/' >"$tmp/got"
"$hyptrace" report -q trace.dat >"$tmp/want"
same "$tmp/got" "$tmp/want" "... joins them as well"
cp "$OLDPWD"/tests/data/x86/*.dat .
"$hyptrace" sync -q --write trace.dat
is "$? $(ls ./*.orig)" $'0 ./trace-Guest.dat.orig\n./trace.dat.orig' "sync --write"
done_testing
