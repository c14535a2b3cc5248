#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `hyptrace recover` of spools that no recorder of ours left: what they claim is
# bounded before anything is made of it.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
# built with ASan, where there is one: it sees a read beyond the summary
sanitised=$build-san/hyptrace
spool=$tmp/trace.dat.spool
formats=tests/data/formats

# ---- helpers -----------------------------------------------------------------

# new_spool N CPUS: of another boot (no boot_id), drained, with N buffers of so many CPUs
new_spool() {
	local i

	rm -rf "$spool" "$tmp/trace.dat"
	mkdir -p "$spool/texts" "$spool/buffers" "$spool/pages"
	printf 'spool\t1\noutput\t%s\ntraceid\t7\nclock\tboot\nstate\tdrained\n' "$tmp/trace.dat" \
		>"$spool/session"
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

recover() {
	timeout 60 "$hyptrace" recover "$spool" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# A list of all that is in the spool, with its contents
contents() {
	(cd "$spool" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

[ -x "$sanitised" ] || diag "no $sanitised (make SAN=1): the plain one does all"

# ---- tests -------------------------------------------------------------------

new_spool 64 1
recover
is "$status" 0 "64 buffers: exit status" || diag "$(<"$tmp/err")"
[ -s "$tmp/trace.dat" ] && [ ! -e "$spool" ]
ok $? "64 buffers: the file is there, the spool is gone"

# refused NAME PATTERN: nothing is made, read or removed
refused() {
	local before hyptrace=$hyptrace

	[ -x "$sanitised" ] && hyptrace=$sanitised

	before=$(contents)
	recover
	is "$status" 1 "$1: exit status" || diag "$(<"$tmp/err")"
	like "$(<"$tmp/err")" "$2" "$1: the message"
	unlike "$(<"$tmp/err")" 'Sanitizer' "$1: no read beyond the summary"
	is "$(contents)" "$before" "$1: the spool stays as it was"
	[ ! -e "$tmp/trace.dat" ]
	ok $? "$1: no file"
}

new_spool 65 1
refused "65 buffers" 'more than 64 buffers'
new_spool 1025 1
refused "1025 buffers" 'more than 64 buffers'
new_spool 1 65536
refused "65536 CPUs" 'buffers/0.*8192 CPUs'

# a number of CPUs that a recorder may write, but whose pages are not there
new_spool 2 8192
new_pages 0 1 2
(
	ulimit -n 256
	recover
	exit "$status"
)
is "$?" 0 "8192 CPUs, pages of 3: exit status" || diag "$(<"$tmp/err")"
[ -s "$tmp/trace.dat" ] && [ ! -e "$spool" ]
ok $? "8192 CPUs, pages of 3: the file is there, the spool is gone"
is "$("$hyptrace" report -i "$tmp/trace.dat" 2>/dev/null | sed -n 's/^cpus=//p')" 3 \
	"8192 CPUs, pages of 3: the file has 3 CPUs"

done_testing
