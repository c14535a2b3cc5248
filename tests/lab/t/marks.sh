# SPDX-License-Identifier: GPL-2.0-only
# For the tests of hypertrace: what recordings have of guests' marks.

# marks GUEST FILE: "CLIENT ARG1 ARG2 ARG3 ARG4" of each event that stock report shows
marks() {
	trace-cmd report -i "$2" 2>/dev/null |
		sed -nE 's/.*guest_hypertrace: +client=([0-9]+) arg1=(\w+) arg2=(\w+) arg3=(\w+) arg4=(\w+) guest='"$1"' vcpu=[01]$/\1 \2 \3 \4 \5/p'
}

# in_exits FILE: how many marks there are, and how many of them come after an exit of their vCPU's thread and
# before that one's next entry
in_exits() {
	"$build/hyptrace" report "$1" 2>/dev/null |
		sed -nE 's/.*-([0-9]+) +\[[0-9]+\].* (kvm_entry|kvm_exit|guest_hypertrace):.*/\1 \2/p' |
		awk '$2 == "guest_hypertrace" { n++; open[$1] = last[$1] == "kvm_exit"; next }
			open[$1] { good += $2 == "kvm_entry"; open[$1] = 0 }
			{ last[$1] = $2 }
			END { print n, good }'
}

# Of lines as marks prints them: how many are out of their client's order, or another client's. arg1 is the
# client and arg2 the number (l2/marks.c).
out_of_order() {
	perl -ane '$bad++ if hex $F[1] != $F[0] || hex $F[2] <= ($last[$F[0]] // 0); $last[$F[0]] = hex $F[2]; END { print $bad // 0 }'
}

# kernel_module LAB [PREFIX]: the module for a guest's kernel in $tmp/module, built with the headers of the Debian
# kernel that the lab's $cache has in LAB and the compiler's PREFIX
cache=${HYPTRACE_LAB_CACHE:-${XDG_CACHE_HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)/.cache}/hyptrace-lab}
kernel_module() {
	mkdir -p "$tmp/module/file/wire"
	cp agent/hypertrace/kernel/{Kbuild,*.c} agent/hypertrace/{area,hypertrace-guest}.h "$tmp/module/"
	cp lib/file/wire/hypertrace-ring.h "$tmp/module/file/wire/"
	make -C "$cache/$1/headers" M="$tmp/module" CROSS_COMPILE="${2-}" >"$tmp/log" 2>&1
	ok $? "the module is built with Debian's headers" || diag "$(cat "$tmp/log")"
	"${2-}strip" -g "$tmp/module"/*.ko
}
