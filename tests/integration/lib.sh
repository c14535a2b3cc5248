# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# TAP for test scripts in bash, run through prove from the root of the tree:
#
#   . tests/integration/lib.sh
#   is "$(cat "$tmp/out")" "expected" "what it is about"
#   done_testing
#
# $tmp is a directory of the test's own, removed at its end; $build the absolute
# path of the build directory (O).

set -u
export LC_ALL=C
PATH=$PWD/tests/stock:$PATH

tests_run=0
tests_failed=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hyptrace-test.XXXXXX") || exit 1
# shellcheck disable=SC2034
build=$(cd "${O:-build}" && pwd) || exit 1

# What the test has started in the background ends with it, also when it is interrupted.
cleanup() {
	local pid

	for pid in $(jobs -pr); do
		kill -KILL "$pid"
	done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

diag() {
	printf '%s\n' "$*" | sed 's/^/# /' >&2
}

# ok STATUS NAME: 0 passes. A NAME with "# TODO WHY" may fail.
ok() {
	tests_run=$((tests_run + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tests_run - $2"
		return 0
	fi
	echo "not ok $tests_run - $2"
	[[ $2 == *'# TODO '* ]] && return
	tests_failed=$((tests_failed + 1))
	diag "Failed test '$2' of $0" # prove prints no line of those that run side by side
	return 1
}

# is GOT EXPECTED NAME: the same text; tells the difference when it is not
is() {
	[ "$1" = "$2" ]
	ok $? "$3" || { diag "$(diff -u --label expected <(echo "$2") --label got <(echo "$1") | head -40)"; false; }
}

# What of the JSON on standard input is not as Documentation/json.schema.json says of that command.
json_differs() { # COMMAND
	tests/tools/json-schema Documentation/json.schema.json "$1"
}

# The title of an SVG, then the names of its axes.
picture_names() { # FILE
	sed -n 's/.*<text class="\(title\|axis\)"[^>]*>\([^<]*\)<.*/\2/p' "$1"
}

# matches TEXT PATTERN: as grep -E finds it in a line; without a process where the text is short
matches() {
	local rest=$1$'\n'

	while [[ -n $rest && ${#1} -lt 4096 && $2 != *$'\n'* ]]; do
		[[ ${rest%%$'\n'*} =~ $2 ]]
		case $? in
		0) return 0 ;;
		1) rest=${rest#*$'\n'} ;;
		*) break ;; # grep knows more patterns
		esac
	done
	[ -n "$rest" ] && grep -Eq -e "$2" <<<"$1"
}

# like GOT PATTERN NAME: an extended regular expression of grep matches a line
like() {
	matches "$1" "$2"
	ok $? "$3" || { diag "no line matches '$2' in:"$'\n'"$1"; false; }
}

unlike() {
	! matches "$1" "$2"
	ok $? "$3" || { diag "a line matches '$2' in:"$'\n'"$1"; false; }
}

# same GOT-FILE EXPECTED-FILE NAME
same() {
	cmp -s "$1" "$2"
	ok $? "$3" || { diag "$(diff -u "$2" "$1" | head -40)"; false; }
}

# skip N REASON: instead of N tests
skip() {
	local i

	for ((i = 0; i < $1; i++)); do
		tests_run=$((tests_run + 1))
		echo "ok $tests_run # SKIP $2"
	done
}

skip_all() {
	echo "1..0 # SKIP $*"
	exit 0
}

# wait_for COMMAND...: until it succeeds, 10 s at most
wait_for() {
	local i

	for ((i = 0; i < 1000; i++)); do
		"$@" && return 0
		sleep 0.01
	done
	diag "waited in vain for: $*"
	return 1
}

# bare_machine: recordings find no guests' processes and one symbol. The machine's own /proc/kallsyms
# has 5 MB, which each of hundreds of recordings would copy, compress and write.
bare_machine() {
	export HYPTRACE_ROOT=$tmp/machine
	mkdir -p "$HYPTRACE_ROOT/proc"
	echo "ffff800080000000 T _text" >"$HYPTRACE_ROOT/proc/kallsyms"
}

# pages_once TREE: FIFOs that stay open, for a fake tracefs (fake-android.c) to be made around, so that its pages
# come once. Plain files are always readable: a recorder that waits for more would do so in circles.
declare -A page_fifos
pages_once() {
	local raw fd raws=("$1"/per_cpu/cpu{0,1,2}/trace_pipe_raw)

	mkdir -p "${raws[@]%/*}"
	mkfifo "${raws[@]}"
	for raw in "${raws[@]}"; do
		fd=${page_fifos[$raw]-}
		[ -z "$fd" ] || exec {fd}>&-
		exec {fd}<>"$raw"
		page_fifos[$raw]=$fd
	done
}

# control_files TREE [PATTERN]: names of all files of a fake tracefs, and the text of its control files. A plain
# file keeps the tail of a longer text written before, so the first line counts; of a choice the bracketed one; of
# a size the number. Left out: traces, which a recording may clear, the host's events, which clearing set_event
# would switch off, and what matches the pattern.
control_files() {
	local file files=()

	shopt -s globstar dotglob
	set -- "$1" "${2-}" "$1"/**
	shopt -u globstar dotglob
	printf '%s\n' "${@:3}"
	for file in "${@:3}"; do
		case ${file#"$1"/} in
		trace | */trace | *trace_pipe_raw | set_event | */set_event | events/*/enable) continue ;;
		esac
		# shellcheck disable=SC2053 # a pattern
		[[ ! -f $file || $file == $2 ]] || files+=("$file")
	done
	awk 'FNR == 1 { many = FILENAME ~ /\/(set_[a-z_]*|format|trigger|header_[a-z]*)$/ }
		FNR > 1 && !many { nextfile }
		FILENAME ~ /trace_clock$/ && match($0, /\[[a-z]*\]/) { $0 = substr($0, RSTART + 1, RLENGTH - 2) }
		FILENAME ~ /buffer_size_kb$/ && /expanded/ { gsub(/.*: |\)/, "") }
		FILENAME ~ /buffer_size_kb$/ { $0 = $1 }
		{ print FILENAME ": " $0 }' "${files[@]}"
}

done_testing() {
	echo "1..$tests_run"
	[ "$tests_failed" -eq 0 ]
	exit
}
