#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Captures of the lab (tests/data/README.md), judged again by the peers' own
# tools: what the live tests check in minutes, anywhere and in seconds.
. tests/integration/lib.sh

data=$PWD/tests/data
tools=$build/tests/tools

# Stock: nobody's plugins but those of the distribution.
export HOME=$tmp
unset TRACEEVENT_PLUGIN_DIR KERNELSHARK_PLUGIN_DIR

# kinds FILE: how many lines of what in trace-cmd's report
kinds() {
	trace-cmd report "$1" 2>&1 | awk '
		NR > 1 {
			buffer = sub(/^ *hyp: /, "") ? "hyp" : sub(/^ *eq: /, "") ? "eq" : "host"
			match($0, /\[[0-9]+\] +[0-9]+\.[0-9]+: [a-z_0-9]+:/)
			split(substr($0, RSTART, RLENGTH), w)
			print buffer, w[3]
		}' | sort | uniq -c | sed 's/^ *//'
}

in_order() {
	trace-cmd report "$1" 2>/dev/null | grep -Eo ' [0-9]+\.[0-9]{6}: ' | tr -d ' :' | LC_ALL=C sort -c -s -n 2>&1
}

entries() {
	"$tools/loadkshark" -e - "$1" | sed 's,^.*/,,'
}
