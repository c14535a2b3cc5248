# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Takes traces for Perfetto apart with protoc: sourced by tests after lib.sh.

# What is inside of packets that are nothing but compressed ones.
inflate() { # FILE
	perl -MCompress::Zlib -0777 -ne 'my $at = 0;
		sub varint { my ($v, $n) = (0, 0); while (1) { my $b = ord substr $_, $at++, 1;
			$v |= ($b & 127) << 7 * $n++; return $v if $b < 128 } }
		while ($at < length) {
			die "no packet" if varint() != 10; varint();
			die "no compressed packets" if varint() != 402;
			my $n = varint();
			print uncompress(substr $_, $at, $n) // die "not compressed";
			$at += $n;
		}' "$1"
}

# A packet a line, without what every track's packet has.
packets() { # FILE
	inflate "$1" | protoc --decode=perfetto.protos.Trace -I tests tests/integration/perfetto.proto | tr -s '\n ' '  ' |
		sed 's/ *packet {/\n&/g' |
		sed 's/^ *packet { *//; s/ *} *$//; s/trusted_packet_sequence_id: [0-9]* //; s/child_ordering: 3 //' |
		grep .
}

# Track events, as a user sees them: PARENT > TRACK | TYPE TIME NAME (ARG=VALUE...)
tracks() {
	perl -ne 'if (/track_descriptor \{ uuid: (\d+) name: "(.*?)"(?: parent_uuid: (\d+))?/) {
			$name{$1} = defined $3 ? "$name{$3} > $2" : $2;
		} elsif (/timestamp: (\d+) .*track_event \{(.*)type: (\d) track_uuid: (\d+)(.*)/) {
			my ($ts, $args, $type, $track, $rest) = ($1, $2, $3, $4, $5);
			my $name = $rest =~ /name: "(.*?)"/ ? " $1" : "";
			my @args;
			push @args, "$2=$1" while $args =~ /\{ \w+: ("(?:[^"\\]|\\.)*"|\S+) name: "(.*?)" \}/g;
			print "$name{$track} | ", (qw(? begin end instant))[$type], " $ts$name",
				@args ? " (@args)" : "", "\n";
		}'
}
