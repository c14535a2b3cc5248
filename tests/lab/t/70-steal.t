#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A program that wants the same CPU as a guest, on an x86-64 host: what it steals against the
# guest's own steal clock.
# shellcheck source=tests/lab/t/x86.sh
. "$(dirname "$0")/x86.sh"
. tests/integration/steal.sh

hyptrace=$build/hyptrace
mkdir "$tmp/out"
copy_hyptrace "$tmp/out/own"
x86 run -a tests/lab/l2/steal -o "$tmp/out" -- "$(cat tests/lab/x86-steal)" >"$tmp/log" 2>&1
ok $? "recorded" || diag "$(cat "$tmp/log")"
check_steal "$tmp/out/trace.dat" "$tmp/out/trace-Guest.dat"

done_testing
