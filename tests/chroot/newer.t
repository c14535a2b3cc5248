#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The build, without a warning, and the tests with a newer Debian's compiler, libtracefs, libtraceevent and
# trace-cmd, in a chroot (make check-newer). Needs root and a mirror of Debian.
# usage: [SUITE=trixie] [UNITS=1] newer.t	(UNITS: leaves the scripts of tests/integration out)
mkdir -p "${O:-build}"
. tests/integration/lib.sh

suite=${SUITE:-trixie}
deps="$(tests/deps list) git ccache"
mkdir "$tmp/out"
tests/chroot/enter "$suite" "$deps" "$tmp/out" true 2>"$tmp/why" || skip_all "$(tail -n 1 "$tmp/why")"

cat >"$tmp/out/run" <<'E2'
cd /src
export O=build CMOCKA_MESSAGE_OUTPUT=TAP
make -j"$(nproc)" WERROR=1 all units tools integration benches >/out/make 2>&1 || exit 1
touch /out/built
# faults.t and the lab's kernel know nothing of these libraries
prove --exec '' $(ls tests/unit/*.c | sed 's,.*,build/&,; s,\.c$,,') >/out/units 2>&1; echo $? >/out/units-status
[ "${1-}" != units ] || exit 0
prove $(ls tests/integration/*.t | grep -v '/faults.t\|/lab-kernel.t') >/out/scripts 2>&1; echo $? >/out/scripts-status
E2
tests/chroot/enter "$suite" "$deps" "$tmp/out" nice bash /out/run "${UNITS:+units}" 2>"$tmp/why"
[ -e "$tmp/out/built" ]
ok $? "$suite: builds without a warning" || diag "$(tail -n 20 "$tmp/out/make" "$tmp/why")"
judged() { # NAME
	[ "$(cat "$tmp/out/$1-status" 2>/dev/null)" = 0 ]
	ok $? "$suite: $1" || diag "$(sed -n '/^Test Summary/,$p' "$tmp/out/$1" 2>/dev/null)"
}
judged units
[ -n "${UNITS:-}" ] || judged scripts
done_testing
