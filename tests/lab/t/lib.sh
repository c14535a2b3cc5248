# SPDX-License-Identifier: GPL-2.0-only
# For the tests on the live pKVM host: the TAP of the integration tests, and one
# VM per test file, which ends with it, or one of several (shared=1).
#
#   . "$(dirname "$0")/lib.sh"
#   vm_up -m nvhe -g 1
#   l1 'hyptrace record ... -- sleep 3'        in L1, with l1.sh's functions
#   guest 'ls /'                               in its first guest
#
# $out is a directory that L1 sees as /mnt/out.

cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
. tests/integration/lib.sh

# HYPTRACE_LAB_UNTIL, in seconds since 1970: a test that may not end by then is skipped. It has three times the
# minutes that it usually takes: a machine may be that slow.
[ "${HYPTRACE_LAB_UNTIL:-$((1 << 40))}" -ge $((EPOCHSECONDS + ${minutes:-3} * 180)) ] ||
	skip_all "no time left (HYPTRACE_LAB_UNTIL)"

# Stock report: nobody's plugins but those of the distribution.
export HOME=$tmp/home
unset TRACEEVENT_PLUGIN_DIR KERNELSHARK_PLUGIN_DIR
mkdir "$HOME"

lab=tests/lab/lab
vm=test-$$
out=$tmp/out
mkdir "$out"

# The lab's cache and the user's home are where they were.
lab() {
	HOME=$lab_home "$lab" "$@"
}
lab_home=$(getent passwd "$(id -u)" | cut -d : -f 6)

# symbols COMMANDS: what L1 or a guest shows as the kernel's symbols: all, or what the commands write
symbols() {
	echo "umount /proc/kallsyms 2>/dev/null; ${1:+$1 >/tmp/k; mount --bind /tmp/k /proc/kallsyms;} :"
}

# vm_up OPTION...: a VM; its symbols are those of KVM alone, its guests' one, but for all_symbols=1 vm_up ...:
# reading all of them takes an emulated machine longer than what most recordings are about.
# shared=1 vm_up ...: tests with these options, which tests/check-lab runs one after the other, have the same VM, until
# one fails.
vm_up() {
	local start=$SECONDS few='grep -E " [tT] (kvm_|vhost_)" /proc/kallsyms' one='echo ffff800080000000 T _text'
	local with=(-o "$out") other

	# For writing tests: use a lab that is up, NAME:DIR, and leave it so.
	if [ -n "${HYPTRACE_LAB_TEST_VM-}" ]; then
		vm=${HYPTRACE_LAB_TEST_VM%%:*} out=${HYPTRACE_LAB_TEST_VM#*:}
		return
	fi

	trap 'lab down "$vm" 2>/dev/null; cleanup' EXIT
	vm_args=("$@")
	if [ -n "${shared-}" ] && [ -n "${HYPTRACE_LAB_OWNER-}" ]; then
		vm=shared-$HYPTRACE_LAB_OWNER-$(cksum <<<"$*" | tr ' ' -)
		out=${TMPDIR:-/tmp}/hyptrace-lab-$(id -u)/$vm/out
		with=(--die-with "$HYPTRACE_LAB_OWNER")
		trap '[ "$tests_failed" = 0 ] || lab down "$vm" 2>/dev/null; cleanup' EXIT
	fi
	# The one before with other options is nobody's any more.
	for other in "${TMPDIR:-/tmp}/hyptrace-lab-$(id -u)/shared-${HYPTRACE_LAB_OWNER-none}"-*; do
		[ ! -d "$other" ] || [ "${other##*/}" = "$vm" ] || lab down "${other##*/}"
	done
	if [ "$out" = "$tmp/out" ] || ! lab exec -t 60 "$vm" 'rm -rf /tmp/* /mnt/out/*' 2>/dev/null; then
		lab down "$vm" 2>/dev/null
		lab up "${with[@]}" "$@" "$vm" || {
			echo "Bail out! the lab did not come up"
			exit 1
		}
	fi
	[ -z "${all_symbols-}" ] || few='' one=''
	l1 "$(symbols "$few")"'; for dir in /run/guest[0-9]*/; do
		[ ! -d "$dir" ] ||
			/mnt/tests/lab/l1/guest exec "$(basename "${dir#/run/guest}")" 60 '"$(printf %q "$(symbols "$one")")"'; done'
	diag "L1 came up in $((SECONDS - start)) s: $*"
}

# raw_vm_up PARAMETERS OPTION...: the same with a kernel whose hypervisor's buffer gives
# raw pages, as Android's kernels do (HYPTRACE_LAB_RAW_KERNEL), and parameters of its
# command line. One after the other may be up. In L1, $hyp is its instance.
raw_vm_up() {
	local append=$1

	shift
	[ -n "${HYPTRACE_LAB_RAW_KERNEL-}" ] ||
		skip_all "no kernel with raw pages (HYPTRACE_LAB_RAW_KERNEL is not set)"
	lab down "$vm" 2>/dev/null
	# Its KVM does not know all that -cpu max has, and its guests die of it.
	export HYPTRACE_LAB_CPU=neoverse-n1 HYPTRACE_LAB_APPEND=$append
	vm_up -k "$HYPTRACE_LAB_RAW_KERNEL" "$@"
}

# l1 COMMAND-LINE...: output and status are those of L1's shell
l1() {
	lab exec -t "${l1_timeout:-300}" "$vm" ". /mnt/tests/lab/t/l1.sh; $*"
}

guest() {
	lab guest -t 120 "$vm" 1 "$*"
}

# run COMMAND-LINE: in L1, with what it printed in $output, what it said in
# $stderr and its end in $status. A wait in vain and a command that is missing are printed
# even where the test passes: each wait took all of its seconds.
run() {
	output=$(l1 "$*" 2>"$tmp/stderr")
	status=$?
	stderr=$(cat "$tmp/stderr")
	! grep -E '^waited in vain|command not found' "$tmp/stderr" >"$tmp/vain" || diag "$(<"$tmp/vain")"
}

# recorded NAME: the last run ended well
recorded() {
	[ "$status" = 0 ]
	ok $? "$1" || { diag "exit status $status, and it said:"$'\n'"$output"$'\n'"$stderr"; false; }
}

# refused PATTERN NAME: the last run ended with status 1 and a message like it
refused() {
	[ "$status" = 1 ] && grep -Eq -e "$1" <<<"$stderr"
	ok $? "$2" || { diag "expected: status 1 and '$1'; got: status $status and"$'\n'"$stderr"; false; }
}

# at_least GOT MINIMUM NAME
at_least() {
	[ "${1:-0}" -ge "$2" ] 2>/dev/null
	ok $? "$3" || { diag "expected at least $2, got '$1'"; false; }
}

# summary_of BUFFER WORD: "events" or "lost" out of hyptrace's summary line
summary_of() {
	case $2 in
	events) sed -nE "s/^hyptrace: .*\\b$1 ([0-9]+) events, .*/\\1/p" <<<"$stderr" ;;
	lost) sed -nE "s/^hyptrace: .*\\b$1 [0-9]+ events, [^ ]+ \\(([0-9]+) lost\\).*/\\1/p" <<<"$stderr" ;;
	esac
}

# reports FILE PATTERN NAME: stock trace-cmd shows such a line
reports() {
	report "$1" >"$tmp/report"
	grep -Eq -e "$2" "$tmp/report"
	ok $? "$3" || { diag "no line of $(wc -l <"$tmp/report") matches '$2', the first are:"$'\n'"$(head -n 10 "$tmp/report")"; false; }
}

report() {
	trace-cmd report "$@" 2>"$tmp/report.err"
}

datdump() {
	"$build/tests/tools/datdump" "$@"
}

hyporder() {
	"$build/tests/tools/hyporder" "$@"
}

loadkshark() {
	"$build/tests/tools/loadkshark" "$@"
}

# capture FILE COMMAND-LINE: a run that records kvm and hyp into $out/FILE, once
# more when a tracepoint delivered nothing (see tests/lab/README.md: QEMU 7.2) or
# the VM is lost (status 125)
capture() {
	local file=$1 try

	shift
	order="" order_status=
	for try in 1 2 3; do
		rm -f "$out/$file"
		run "$@"
		if [ "$status" = 125 ] && [ "$try" = 1 ]; then
			diag "try $try: the lab failed, once more in a new VM: $stderr"
			lab down "$vm" 2>/dev/null
			lab up -o "$out" "${vm_args[@]}" "$vm" || return
			continue
		fi
		[ "$status" = 0 ] || return 0
		order=$(hyporder "$out/$file")
		order_status=$?
		[ "$order_status" = 3 ] || return 0
		diag "try $try: the emulator lost a tracepoint, recording again:"$'\n'"$order"
	done
}

# As the tests of a capture want it: every line one record.
dump_sorted() {
	datdump -p "$1" | sort -s -n -k 4,4
}
