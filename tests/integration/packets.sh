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

# Puts a machine's interned texts where its numbers for them are.
interned() {
	perl -ne 'sub text { $text{$machine, $_[0], $_[1]} // die "no $_[0] $_[1] so far: $_" }
		$machine = /machine_id: (\d+)/ ? $1 : 0;
		$cleared{$machine} = 1 if /sequence_flags: 1 /;
		die "no state: $_" if /sequence_flags: 2\b/ && !$cleared{$machine};
		$state = s/ ?sequence_flags: 2\b//;
		$text{$machine, $1, $2} = $3 while /(\w+) \{ iid: (\d+) \w+: ("(?:[^"\\]|\\.)*") \}/g;
		s/interned_data \{ (\w+ \{ iid: \d+ \w+: "(?:[^"\\]|\\.)*" \} )*\} ?//;
		die "a state that is not needed: $_" if /_iids?: / && !$state;
		s/string_value_iid: (\d+)/"string_value: " . text("debug_annotation_string_values", $1)/ge;
		s/debug_annotations \{ name_iid: (\d+) /debug_annotations { name: @{[text("debug_annotation_names", $1)]} /g;
		s/debug_annotations \{ (name: "(?:[^"\\]|\\.)*") (\w+: (?:"(?:[^"\\]|\\.)*"|\S+)) \}/debug_annotations { $2 $1 }/g;
		$category = s/category_iids: (\d+) // ? "categories: " . text("event_categories", $1) . " " : "";
		$name = s/name_iid: (\d+) (track_uuid: \d+ )/$2/ ? "name: " . text("event_names", $1) . " " : "";
		s/(track_uuid: \d+ )/$1$category$name/ if $category;
		print if !/^(machine_id: \d+)?$/;'
}

# A packet a line, without what every track's packet has.
packets() { # FILE
	inflate "$1" | protoc --decode=perfetto.protos.Trace -I tests tests/integration/perfetto.proto | tr -s '\n ' '  ' |
		sed 's/ *packet {/\n&/g' |
		sed 's/^ *packet { *//; s/ *} *$//; s/trusted_packet_sequence_id: [0-9]* //; s/child_ordering: 3 //' |
		interned | grep .
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
