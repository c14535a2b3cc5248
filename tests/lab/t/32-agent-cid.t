#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Who may connect to hyptrace-agent over vsock: in L1, over the loopback, where
# everybody is CID 1, with stock's recorder.
. "$(dirname "$0")/lib.sh"
vm_up -m protected

# with_agent OPTIONS: an agent with those, and a recorder of a buffer of its own
with_agent() {
	run "hyptrace-agent --timeout 20 $1 2>/tmp/agent.log & agent=\$!
		within 20 grep -q 'capabilities dropped' /tmp/agent.log || exit
		timeout 30 trace-cmd record -o self.dat -C boot -A self@1:823 -B mine -e sched -- sleep 1 >/tmp/said 2>&1
		status=\$?
		kill \$agent
		wait \$agent
		cat /tmp/said /tmp/agent.log >&2
		cp self*.dat /mnt/out/ 2>/dev/null
		exit \$status"
}

with_agent ''
[ "$status" != 0 ]
ok $? "a CID that is not the host's is not served"
like "$stderr" 'warning: vsock:1:[0-9]+ may not connect' "... and the log says whose it is"

with_agent '--cid 9 --cid 1'
recorded "--cid: one that is named is"
reports "$out/self-self.dat" ' sched_switch: ' "... with what it asked for"

with_agent '--cid 1 --allow irq:*'
[ "$status" != 0 ] && grep -q 'none of these events is allowed' <<<"$stderr"
ok $? "--allow holds over vsock too" || diag "$stderr"

done_testing
