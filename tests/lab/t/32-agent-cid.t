#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Who may connect to hyptrace-agent over vsock: in L1, over the loopback, where
# everybody is CID 1, with stock's recorder. (It reads the same buffer as the agent:
# what is in the files is not looked at.)
. "$(dirname "$0")/lib.sh"
vm_up -m protected

# with_agent OPTIONS: an agent with those, and a recorder
with_agent() {
	run "rm -f /tmp/agent.log
		hyptrace-agent --timeout 60 $1 2>/tmp/agent.log & agent=\$!
		within 20 grep -q 'capabilities dropped' /tmp/agent.log || exit
		timeout 100 trace-cmd record -o self.dat -C boot -A self@1:823 -e sched -- sleep 1 >/tmp/said 2>&1
		status=\$?
		kill \$agent
		wait \$agent
		cat /tmp/said /tmp/agent.log >&2
		exit \$status"
}

with_agent ''
[ "$status" != 0 ]
ok $? "a CID that is not the host's is not served"
like "$stderr" 'vsock:1:[0-9]+ may not connect' "... and the log says whose it is"

with_agent '--cid 9 --cid 1'
recorded "--cid: one that is named is"
like "$stderr" 'a recorder from vsock:1:' "... as the log says"

with_agent '--cid 1 --allow irq:*'
[ "$status" != 0 ] && grep -q 'none of these events is allowed' <<<"$stderr"
ok $? "--allow holds over vsock too" || diag "$stderr"

done_testing
