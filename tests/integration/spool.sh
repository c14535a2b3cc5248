# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # tmp and hyptrace are the script's
# Spools made by hand, for tests of `hyptrace recover`, and what they must not touch; sourced
# behind lib.sh.
umask 077

formats=tests/data/formats
spool=$tmp/trace.dat.spool
# shellcheck disable=SC2034
dat=$tmp/trace.dat
tree=$tmp/tracefs

# new_spool N CPUS: of another boot (no boot_id), drained, with N buffers of so many CPUs
new_spool() {
	local i

	rm -rf "$spool" "$dat"
	mkdir -p "$spool/texts" "$spool/buffers" "$spool/pages"
	printf 'spool\t1\noutput\t%s\ntraceid\t7\nclock\tboot\nstate\tdrained\n' "$dat" >"$spool/session"
	cp "$formats/header_page" "$formats/header_event" "$spool/texts"
	{
		echo "sched $(wc -c <"$formats/sched_switch")"
		cat "$formats/sched_switch"
	} >"$spool/texts/formats"
	for ((i = 0; i < $1; i++)); do
		printf 'name\t%s\nclock\tboot\npath\t%s\nkind\thost\npage_size\t4096\ncpus\t%s\n' \
			"${i/#0/}" "instances/$i" "$2" >"$spool/buffers/$i"
	done
}

# an empty page for each of these CPUs of buffer 0
new_pages() {
	local cpu

	for cpu; do
		head -c 4096 /dev/zero >"$spool/pages/0.$cpu"
	done
}

# this_boots STATE: as a recorder leaves it that was killed since this machine's boot
this_boots() {
	printf 'boot_id\t%s\nstate\t%s\n' "$(</proc/sys/kernel/random/boot_id)" "$1" >>"$spool/session"
}

# Sets status; messages are in $tmp/err
recover() {
	timeout 60 "$hyptrace" recover "$spool" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# All that is below a directory: kinds, owners, modes, contents
contents() {
	(
		cd "$1" && find . -printf '%p %y %l %U %m %n\n' | sort
		find . -type f -print0 | sort -z | xargs -0 -r b2sum
	)
}

# What an attack is after: files that are nobody's business
victim() {
	chmod -R u+rwx "$tmp/victim" 2>/dev/null
	rm -rf "$tmp/victim"
	mkdir -p "$tmp/victim/per_cpu"
	echo precious >"$tmp/victim/file"
	echo 1 >"$tmp/victim/tracing_on"
	contents "$tmp/victim" >"$tmp/victim-before"
}

victim_stays() {
	is "$(contents "$tmp/victim")" "$(<"$tmp/victim-before")" "$1: what it points to stays as it was"
}

# refused NAME PATTERN: nothing is made, changed or removed
refused() {
	local before

	before=$(contents "$spool")
	recover
	is "$status" 1 "$1: exit status" || diag "$(<"$tmp/err")"
	like "$(<"$tmp/err")" "$2" "$1: the message"
	is "$(contents "$spool")" "$before" "$1: the spool stays as it was"
	[ ! -e "$dat" ]
	ok $? "$1: no file"
}

# new_tree: a fake tracefs in $tree, whose pages come once
new_tree() {
	rm -rf "$tree" "$dat" "$spool"
	pages_once "$tree"
	"$build/tests/integration/fake-android" "$tree" android16
}
