#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# truth.c, the judge of the lab's offsets: what it says of a capture whose offset is known to
# lie from 32502753376 to 32502914640 ns (tests/data/sync/README.md), with made-up shots of
# its middle and of offsets beside it.
# shellcheck source=tests/integration/lib.sh
. tests/integration/lib.sh

cp tests/data/sync/*.dat "$tmp"
"$build/hyptrace" sync --write "$tmp/trace.dat" "$tmp/trace-Guest.dat" >"$tmp/said" 2>&1
ok $? "the capture is synchronised" || diag "$(cat "$tmp/said")"

# judged OFFSET: by shots that tell that one
judged() {
	local t

	for ((t = 20000000000; t <= 25000000000; t += 200000000)); do
		echo "guest $t $((t + $1 + 1000000000000)) 100"
		echo "host $((t + $1)) 1000000000000 100"
	done >"$tmp/shots"
	"$build/tests/integration/truth" "$tmp/trace-Guest.dat" "$tmp/shots" "$tmp/shots" "$tmp/trace.dat"
}

like "$(judged 32502834008)" ' outside 0 .* room 80632 vouched 100%$' "the middle: inside, and the room is half of what is known"
bound=$(judged 32502834008 | sed -nE 's/.* median ([0-9]+) .*/\1/p')
[ "${bound:-0}" -ge 80632 ] && [ "$bound" -le 161264 ]
ok $? "the windows' bound, $bound ns, is not below the room, nor twice as much"
like "$(judged 32502934008)" ' outside [1-9]' "100 us beside it: outside"
done_testing
