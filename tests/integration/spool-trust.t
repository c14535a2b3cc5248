#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A spool that somebody else could have made or changed is not touched by `hyptrace
# recover`, and `hyptrace record` takes none that is there.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
. tests/integration/spool.sh
nobody=65534
export HYPTRACE_TRACING_DIR=$tree
bare_machine

# ---- helpers -----------------------------------------------------------------

# a spool with one of each file and directory that a recorder makes
full_spool() {
	new_spool 1 1
	new_pages 0
	mkdir "$spool/pages.new" "$spool/rewritten"
	cp "$spool/pages/0.0" "$spool/rewritten"
	echo kallsyms >"$spool/texts/kallsyms"
	echo >"$spool/reserve"
	: >"$spool/undo"
}

# ---- links, FIFOs, other things ---------------------------------------------------

directories='pages texts buffers pages.new rewritten'
files='session undo reserve buffers/0 pages/0.0 rewritten/0.0 texts/formats texts/kallsyms'

for name in $directories; do
	full_spool
	victim
	rm -r "${spool:?}/$name"
	ln -s "$tmp/victim" "$spool/$name"
	refused "$name is a symlink" "trace.dat.spool/$name'.* neither a file nor a directory"
	victim_stays "$name is a symlink"
done

for name in $files; do
	full_spool
	victim
	mv "$spool/$name" "$tmp/moved"
	ln -s "$tmp/victim/file" "$spool/$name"
	refused "$name is a symlink" "trace.dat.spool/$name'.* neither a file nor a directory"
	victim_stays "$name is a symlink"

	rm "$spool/$name"
	mkfifo "$spool/$name"
	refused "$name is a FIFO" "trace.dat.spool/$name'.* neither a file nor a directory"

	rm "$spool/$name"
	ln "$tmp/victim/file" "$spool/$name"
	contents "$tmp/victim" >"$tmp/victim-before"
	refused "$name is a hard link" "trace.dat.spool/$name'.* more than one name"
	victim_stays "$name is a hard link"
done

full_spool
mkdir "$spool/pages/0.1"
refused "a directory too deep" "trace.dat.spool/pages/0.1'.* a directory where none belongs"

new_spool 1 1
mv "$spool" "$tmp/elsewhere"
ln -s "$tmp/elsewhere" "$spool"
before=$(contents "$tmp/elsewhere")
recover
is "$status" 1 "the spool is a symlink: exit status"
is "$(contents "$tmp/elsewhere")" "$before" "the spool is a symlink: nothing is changed"
rm -rf "$spool" "$tmp/elsewhere"

# ---- whose it is -------------------------------------------------------------------

for name in . $directories $files; do
	for mode in g+w o+w; do
		full_spool
		chmod $mode "$spool/$name"
		refused "$name: $mode" "trace.dat.spool(/$name)?'.* others may write to it"
	done
done

if [ "$(id -u)" = 0 ]; then
	for name in . $directories $files; do
		full_spool
		chown $nobody "$spool/$name"
		refused "$name belongs to another user" "trace.dat.spool(/$name)?'.* belongs to another user"
	done

	full_spool
	victim
	printf 'output\t%s\n' "$tmp/victim/new" >>"$spool/session"
	chown -R $nobody "$spool"
	refused "another user's spool names the output" "belongs to another user"
	victim_stays "another user's spool names the output"
else
	skip 62 "only root can make another user's files"
fi

# ---- record makes its spool itself -------------------------------------------------------

# taken NAME: record refuses, and what is there stays
taken() {
	local before

	before=$(contents "$(dirname "$spool")" | grep "trace.dat.spool")
	victim
	timeout 60 "$hyptrace" record -o "$dat" -e kvm -- true >"$tmp/out" 2>"$tmp/err"
	is "$?" 1 "$1: exit status"
	like "$(<"$tmp/err")" "'$spool' is there already: .*hyptrace recover $spool" "$1: the message"
	is "$(contents "$(dirname "$spool")" | grep "trace.dat.spool")" "$before" "$1: it stays as it was"
	victim_stays "$1"
	[ ! -e "$dat" ]
	ok $? "$1: no file"
	rm -rf "$spool"
}

new_tree
mkdir -m 700 "$spool"
taken "an empty directory"
mkdir -m 777 "$spool"
[ "$(id -u)" != 0 ] || chown $nobody "$spool"
ln -s "$tmp/victim/file" "$spool/undo"
taken "a directory that others prepared"
ln -s "$tmp/victim" "$spool"
taken "a symlink to a directory"
ln -s "$tmp/victim/made" "$spool"
taken "a symlink to nowhere"
mkfifo "$spool"
taken "a FIFO"

done_testing
