# SPDX-License-Identifier: GPL-2.0-only
# Functions for the tests' command lines in L1 (bash, root).

t=/sys/kernel/tracing
hyp=$t/remotes/hypervisor
[ -d $hyp ] || hyp=$t/hypervisor # Android's
cd /tmp || exit 1

# within SECONDS COMMAND...: wait until it succeeds
within() {
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || {
			echo "waited in vain for: $*" >&2
			return 1
		}
		sleep 0.05
	done
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

pages_of() {
	local n

	n=$(cat "$1".spool/pages/* 2>/dev/null | wc -c)
	[ "$n" -ge "$2" ]
}

# begin FILE OPTION...: a recorder in the background, up and running; its pid is
# in $pid, what it says in $said
begin() {
	local file=$1

	shift
	said=/tmp/said.$$
	hyptrace record -o "$file" "$@" 2>"$said" &
	pid=$!
	if ! within 60 pages_of "$file" 4096; then
		cat "$said" >&2
		kill -9 "$pid"
		return 1
	fi
}

# finish [SIGNAL]: end it, and have its status
finish() {
	kill -s "${1:-INT}" "$pid"
	wait "$pid"
	local status=$?
	cat "$said" >&2
	return "$status"
}

# slay: kill -9
slay() {
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	cat "$said" >&2
	return 0
}

# lines FILE N: it has that many
lines() {
	local n

	n=$(wc -l <"$1")
	[ "$n" -ge "$2" ]
}

# state: the names and modes of all files of tracefs, and what the control files
# say. Left out are
#   trace, trace_pipe*, snapshot*		the recorded data; reading consumes or blocks
#   stats, *_profile			counters
#   saved_cmdlines, touched_functions	what the kernel has seen; only ever grows
#   format, id, hist, available_filter_*	the same from boot on, and slow to read
#   events/*/ of the host and its instances	where set_event and show_event_* list all that is set there
state() (
	local dir listed=()

	cd $t || exit
	for dir in . ./instances/*; do
		[ ! -r "$dir/show_event_triggers" ] || listed+=(! -path "$dir/events/*/*")
	done
	find . -printf '%y %m %p\n' -type f -perm -u+r ! -name trace ! -name 'trace_pipe*' ! -name 'snapshot*' \
		! -name stats ! -name '*_profile' ! -name saved_cmdlines ! -name touched_functions \
		! -name format ! -name id ! -name hist ! -name 'available_filter_*' "${listed[@]}" -fprint0 /tmp/state.files | sort
	sort -z /tmp/state.files | xargs -0 grep -Hs ''
)

# both_have FILE BYTES: the recorder has read as much of the host and of the hypervisor
both_have() {
	local buffer n

	for buffer in 0 1; do
		n=$(cat "$1".spool/pages/$buffer.* 2>/dev/null | wc -c)
		[ "$n" -ge "$2" ] || return 1
	done
}
