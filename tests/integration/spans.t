#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Visits to the hypervisor, exits of guests and marks of programs: sql, stat, export, flame, path and KernelShark's plugin
# have the same ones, with the same reasons, and those that a slow reference finds in trace-cmd's lines; vCPUs' states
# begin and end with them.
. tests/integration/lib.sh
. tests/integration/packets.sh

hyptrace=$build/hyptrace
export TRACEEVENT_PLUGIN_DIR=$build/plugins HOME=$tmp/home

# ---- each as lines: hyp CPU FROM TO REASON, exit THREAD FROM TO REASON; TO is "-" where no end was seen --------

slow() { # FILE
	"$build/tests/tools/datdump" -p "$1" 2>/dev/null | tests/tools/slow-stat -s
}

query() { # FILE QUERY...: of one column
	"$hyptrace" sql -q --csv "$@" | sed '1d; s/^[^,]*,//; s/"//g'
}

tables() { # FILE
	query "$1" "SELECT 'hyp ' || cpu || ' ' || ts || ' ' || coalesce(ts + dur, '-') || ' ' || coalesce(reason, '-') FROM hyp_calls
		UNION ALL SELECT 'exit ' || tid || ' ' || ts || ' ' || (ts + dur) || ' ' || coalesce(esr_class, reason) FROM kvm_exits
		WHERE dur IS NOT NULL;" | sort
}

tracks_hyp() { # FILE
	"$hyptrace" export -q --perfetto "$tmp/out" "$1" 2>/dev/null && packets "$tmp/out" | tracks | perl -ne '
		my ($cpu, $type, $ts, $name) = /^Hypervisor \(EL2\) > CPU (\d+) \| (\w+) (\d+)(?: (\S+))?/ or next;
		print "hyp $cpu $ts - ", $name eq "hyp" ? "-" : $name, "\n" if $type eq "instant";
		$open{$cpu} = [$ts, $name eq "hyp" ? "-" : $name] if $type eq "begin";
		if ($type eq "end") { $v = delete $open{$cpu}; print "hyp $cpu $v->[0] $ts $v->[1]\n" }
		END { print "hyp $_ $open{$_}[0] begun $open{$_}[1]\n" for sort keys %open }' | sort
}

longest() { # FILE: of those that ended
	"$hyptrace" stat -q --json --top 1000 --show longest "$1" | perl -ne '
		next unless /"what":"(\w+)","reason":(?:null|"(.*?)"),"duration_ns":(\d+),"at":"(\d+)\.(\d+)","cpu":(\d+),.*"pid":(\w+)/;
		my $from = "$4$5" + 0;
		print join(" ", $1, $1 eq "hyp" ? $6 : $7, $from, $from + $3, $2 // "-"), "\n"' | sort
}

# REASON COUNT SUM
sums() {
	awk '$1 == "hyp" && $4 != "-" { n[$5]++; sum[$5] += $4 - $3 } END { for (r in n) printf "%s %d %.0f\n", r, n[r], sum[r] }' | sort
}

stat_sums() { # FILE
	"$hyptrace" stat -q --json --show hyp "$1" |
		perl -ne 'print $1 // "-", " $2 $3\n" if /"reason":(?:null|"(.*?)"),"count":(\d+),"total_ns":(\d+)/' | sort
}

view_sums() { # FILE TABLE NAME
	query "$1" "SELECT coalesce($3, '-') || ' ' || count(*) || ' ' || sum(dur) FROM $2 GROUP BY $3;" | sort
}

flame_sums() { # FILE
	"$hyptrace" flame -q --idle -w ns "$1" |
		perl -ne '$n{$1 // "-"} += $2 if /;\[hyp\](?:;([^; ]+))? (\d+)$/; END { print "$_ $n{$_}\n" for sort keys %n }'
}

# The visits are in $tmp/hyp; KernelShark's have mainline's words for reasons.
plugin() { # FILE NAME
	"$build/tests/tools/loadkshark" -s "$1" 2>"$tmp/kshark" | grep ^hyp | sort >"$tmp/drawn"
	sed -n 's/host_hcall$/hvc/; s/host_smc$/smc/; s/host_mem_abort$/host_abort/; s/iommu_idmap$/-/; / - [^ ]*$/!p' \
		"$tmp/hyp" | sort >"$tmp/ended"
	same "$tmp/drawn" "$tmp/ended" "$2: KernelShark's plugin has those that ended"
}

agree() { # FILE NAME
	tables "$1" >"$tmp/tables"
	tracks_hyp "$1" >"$tmp/tracks"
	grep ^hyp "$tmp/tables" >"$tmp/hyp"
	same "$tmp/tracks" "$tmp/hyp" "$2: export --perfetto has sql's visits"
	case $1 in
	*/regions.dat) ;; # libkshark knows no pauses
	*) plugin "$1" "$2" ;;
	esac
	is "$(stat_sums "$1")" "$(sums <"$tmp/hyp")" "$2: stat's counts and sums are sql's"
	is "$(view_sums "$1" slices name | sed 's/^hyp /- /' | sort)" "$(sums <"$tmp/hyp")" "$2: so are those of slices"
	is "$(view_sums "$1" pkvm_hypervisor_events reason | awk '{ n += $2; sum += $3 } END { print n + 0, sum + 0 }')" \
		"$(sums <"$tmp/hyp" | awk '{ n += $2; sum += $3 } END { print n + 0, sum + 0 }')" \
		"$2: and those of pkvm_hypervisor_events"
	[ "$(grep -c ^hyp "$tmp/tables")" -gt 1000 ] || [ "$(grep -c ^exit "$tmp/tables")" -gt 1000 ] || {
		longest "$1" >"$tmp/longest"
		slow "$1" | sed -n 's/^early/exit/p' >"$tmp/early"
		grep -v ' - [^ ]*$' "$tmp/tables" | grep -vxFf "$tmp/early" >"$tmp/ended"
		same "$tmp/longest" "$tmp/ended" "$2: stat's longest are sql's"
	}
}

# What the states of vCPUs have otherwise than the spans: they are derived without pairs (ask/states/states-events.c).
# In the hypervisor is a visit, or a part of one that other events cut; in the guest is what lies between two exits
# (with the hypervisor's events: nothing of an exit); but next to what is unknown. Then how many are such as a whole.
edges() { # FILE; the spans are in $tmp/tables
	query "$1" "SELECT 'state ' || tid || ' ' || cpu || ' ' || ts || ' ' || (ts + dur) || ' ' || state FROM vcpu_states
		WHERE tid IS NOT NULL;
		SELECT 'ran ' || tid || ' ' || (ts - guest_dur) || ' ' || ts FROM kvm_exits WHERE guest_dur IS NOT NULL;" |
		cat "$tmp/tables" - | perl -ne '
		my ($what, @v) = split;
		push @{ $visits{$v[0]} }, [@v[1, 2]] if $what eq "hyp" && $v[2] ne "-";
		push @{ $exits{$v[0]} }, [@v[1, 2]] if $what eq "exit";
		$ran{"@v"} = 1 if $what eq "ran";
		push @{ $states{$v[0]} }, [@v[1 .. 4]] if $what eq "state";
		END {
			sub covers { # the first of them that ends after FROM
				my ($v, $from) = @_;
				my ($low, $high) = (0, scalar @$v);
				while ($low < $high) {
					my $i = int(($low + $high) / 2);
					if ($v->[$i][1] <= $from) { $low = $i + 1 } else { $high = $i }
				}
				return $v->[$low] // ["inf", "inf"];
			}
			@$_ = sort { $a->[0] <=> $b->[0] } @$_ for values %visits, values %exits;
			for my $tid (sort keys %states) {
				my @s = sort { $a->[1] <=> $b->[1] } @{ $states{$tid} };
				for my $i (1 .. $#s - 1) {
					my ($cpu, $from, $to, $state) = @{ $s[$i] };
					next unless $state =~ /^(?:guest|hypervisor)$/;
					next if $s[$i - 1][3] eq "unknown" || $s[$i + 1][3] eq "unknown";
					my $v = covers($state eq "guest" ? $exits{$tid} // [] : $visits{$cpu} // [], $from);
					if ($state eq "hypervisor") {
						print "no visit: $tid @{ $s[$i] }\n" if $v->[0] > $from || $v->[1] < $to;
						$n++ if $v->[0] == $from && $v->[1] == $to;
						next;
					}
					$n++;
					print "in an exit: $tid @{ $s[$i] }\n" if $v->[0] < $to;
					print "no exits: $tid @{ $s[$i] }\n" if !%visits && !$ran{"$tid $from $to"};
				}
			}
			print $n // 0, "\n";
		}'
}

flames() { # FILE NAME
	is "$(flame_sums "$1")" "$(sums <"$tmp/hyp" | awk '{ print $1, $3 }')" "$2: flame's times are sql's"
}

# ---- captures ------------------------------------------------------------------------------

found=0 states=0
while read -r file golden; do
	agree "$file" "$file"
	is "$(awk '{ n[$1]++; if ($4 != "-") s[$1] += $4 - $3 } END { for (k in n) printf "%s %d %.0f ", k, n[k], s[k] }' <"$tmp/tables" |
		xargs -n3 | sort | xargs) $(md5sum <"$tmp/tables" | cut -c1-8)" "$golden" "$file: what is there"
	case $file in
	*/regions.dat) ;; # datdump knows no pauses
	*)
		slow "$file" | sed 's/^early/exit/' | sort >"$tmp/slow"
		same "$tmp/tables" "$tmp/slow" "$file: sql has the slow reference's"
		found=$((found + 1))
		;;
	esac
	edges "$file" >"$tmp/edges"
	is "$(sed '$d' "$tmp/edges")" '' "$file: states of vCPUs begin and end with these"
	states=$((states + $(tail -n 1 "$tmp/edges")))
	case $file in
	*/functions/*) ;; # flame has the functions
	*) flames "$file" "$file" ;;
	esac
done <tests/integration/spans.golden
[ "$found" -gt 5 ]
ok $? "$found captures have been compared"
[ "$states" -gt 20000 ]
ok $? "$states states of vCPUs have been compared"

# ---- path ------------------------------------------------------------------------------------

# What path counts in a guest's hops is what the spans have there: of visits where they show the guest's exits, else of
# exits. Prints hops that differ, and how many exits there were.
hops() { # GUEST FILE...
	local guest=$1 n
	shift
	for n in $(seq 5 5 100); do
		"$hyptrace" path -q --json --at sched_switch -n $n "$@" 2>/dev/null |
			sed -nE 's/.*"machine":"'"$guest"'","cpu":([0-9]+),.*"from":"([0-9]+)\.([0-9]+)","to":"([0-9]+)\.([0-9]+)","exits":([0-9]+),"outside_ns":([0-9]+).*/hop \1 \2\3 \4\5 \6 \7/p'
	done >"$tmp/hops"
	query "$@" "SELECT 'left ' || vcpu || ' ' || ts FROM hyp_calls WHERE reason = 'guest_exit' AND vcpu IS NOT NULL;
		SELECT 'in ' || vcpu || ' ' || (ts + dur) FROM hyp_calls WHERE left_for = 'eret_guest' AND vcpu IS NOT NULL;
		SELECT 'kvm ' || vcpu || ' ' || ts || ' ' || (ts + dur) FROM kvm_exits WHERE dur IS NOT NULL AND vcpu IS NOT NULL;" |
		cat - "$tmp/hops" | perl -ne '
		my ($what, $cpu, @v) = split;
		push @{ $out{$cpu} }, [@v] if $what eq "kvm";
		push @{ $edge{$cpu} }, [$v[0], $what] if $what eq "left" || $what eq "in";
		push @hops, [$cpu, map { $_ + 0 } @v] if $what eq "hop";
		END {
			for my $cpu (keys %edge) {
				my $since;
				$out{$cpu} = [];
				for (sort { $a->[0] <=> $b->[0] } @{ $edge{$cpu} }) {
					push @{ $out{$cpu} }, [$since, $_->[0]] if $_->[1] eq "in" && $since;
					$since = $_->[1] eq "left" ? $_->[0] : undef;
				}
			}
			for my $h (@hops) {
				my ($cpu, $from, $to, $exits, $outside) = @$h;
				my ($n, $ns) = (0, 0);
				for (@{ $out{$cpu} }) {
					my ($a, $b) = @$_;
					$n++ if $a >= $from && $a < $to;
					$a = $from if $a < $from;
					$b = $to if $b > $to;
					$ns += $b - $a if $b > $a;
				}
				$all += $n;
				print "@$h: $n $ns\n" if $n != $exits || $ns != $outside;
			}
			print $all // 0, "\n";
		}'
}

exits=0
for name in guest raw steal stock; do
	dir=tests/data/$name
	hops Guest "$dir/trace.dat" "$dir/trace-Guest.dat" >"$tmp/differ"
	is "$(sed '$d' "$tmp/differ")" '' "$dir: path counts the exits of the spans"
	exits=$((exits + $(tail -n 1 "$tmp/differ")))
done
[ "$exits" -gt 10 ]
ok $? "$exits exits have been compared"

# ---- made up ---------------------------------------------------------------------------------

make_trace() { # FILE, script on standard input
	"$build/tests/integration/make-trace" "$1" tests/integration/events/kernel || diag "cannot make $1"
}

# Android's order of events within a visit: the trap's own event comes last (nvhe/hyp-main.c, nvhe/mem_protect.c)
make_trace "$tmp/android.dat" <<'E2'
id 1
buffer hyp
1000 0 0 hyp:hyp_enter
1100 0 0 hyp:host_ffa_call	0x84000070	1	0
1200 0 0 hyp:host_smc	0x84000070	0
1300 0 0 hyp:hyp_exit
2000 0 0 hyp:hyp_enter
2100 0 0 hyp:iommu_idmap	0x1000	0x2000	3
2200 0 0 hyp:host_mem_abort	0x92000045	0x1000
2400 0 0 hyp:hyp_exit
3000 0 0 hyp:hyp_enter
3100 0 0 hyp:host_hcall	12	0
3200 0 0 hyp:func	0x1000
3250 0 0 hyp:__hyp_printk	3
3600 0 0 hyp:hyp_exit
4000 0 0 hyp:hyp_enter
4050 0 0 hyp:func	0x1000
4700 0 0 hyp:hyp_exit
5000 0 0 hyp:hyp_enter
5100 0 0 hyp:iommu_idmap	0x1000	0x2000	3
5800 0 0 hyp:hyp_exit
50 1 0 hyp:hyp_exit
100 1 0 hyp:hyp_enter
200 1 0 hyp:host_hcall	1	0
300 1 0 hyp:hyp_enter
400 1 0 hyp:hyp_exit
500 1 0 hyp:hyp_enter
lost 1 3
600 1 0 hyp:hyp_exit
700 1 0 hyp:hyp_enter
800 1 0 hyp:host_mem_abort	0x92000045	0x1000
E2
agree "$tmp/android.dat" "Android"
is "$(<"$tmp/tables")" 'hyp 0 1000 1300 host_smc
hyp 0 2000 2400 host_mem_abort
hyp 0 3000 3600 host_hcall
hyp 0 4000 4700 -
hyp 0 5000 5800 iommu_idmap
hyp 1 100 - host_hcall
hyp 1 300 400 -
hyp 1 500 - -
hyp 1 700 - host_mem_abort' "Android: the last event in a visit is its reason, but for functions and printk's"
slow "$tmp/android.dat" >"$tmp/slow"
same "$tmp/tables" "$tmp/slow" "Android: the slow reference's"
is "$("$hyptrace" stat --show hyp "$tmp/android.dat" 2>/dev/null | grep without)" \
	'hyp: 3 hyp_enter and 2 hyp_exit without the other are left out: events were lost, or the recording begins or ends there' \
	"Android: stat counts the unfinished ones"

# Both a field and events: the field wins, and Perfetto's view has Perfetto's name
make_trace "$tmp/both.dat" <<'E2'
id 1
buffer hyp
1000 0 0 hypervisor:hyp_enter	1	0
1100 0 0 hypervisor:host_smc	1	0
1300 0 0 hypervisor:hyp_exit	6	0
2000 0 0 hypervisor:hyp_enter	5	7
2100 0 0 hypervisor:host_mem_abort	0x92000045	0x1000
2400 0 0 hypervisor:hyp_exit	6	0
3000 0 0 hypervisor:hyp_enter	1	0
3500 0 0 hypervisor:hyp_exit	6	0
4000 0 0 hypervisor:hyp_enter	3	0
4500 0 0 hypervisor:hyp_exit	6	0
E2
agree "$tmp/both.dat" "field and events"
is "$(<"$tmp/tables")" 'hyp 0 1000 1300 hvc
hyp 0 2000 2400 guest_exit
hyp 0 3000 3500 hvc
hyp 0 4000 4500 psci' "hyp_enter's own reason comes first"
is "$(query "$tmp/both.dat" "SELECT ts || ' ' || reason FROM pkvm_hypervisor_events;")" '1000 host_smc
2000 host_mem_abort
3000 hvc
4000 psci' "pkvm_hypervisor_events calls visits by the event in them, where there is one"

# While events are missing on any CPU of the buffer, nothing is known of any thread
make_trace "$tmp/lossy.dat" <<'E2'
id 1
task 7 vcpu
task 8 vcpu
1000 0 7 kvm_exit	0	0	1
1100 0 7 kvm_entry	1
1200 1 8 kvm_entry	1
1300 0 7 kvm_exit	2	0x24	1
1500 0 7 kvm_entry	1
1600 0 7 kvm_exit	2	1	1
1700 1 8 kvm_exit	0	0	1
lost 0 4
1750 1 8 kvm_entry	1
1800 1 8 kvm_exit	0	0	1
1900 0 7 kvm_entry	1
1950 1 8 kvm_entry	1
2000 1 8 kvm_exit	2	0x24	1
2100 1 8 kvm_exit	0	0	1
2300 1 8 kvm_entry	1
2400 0 7 kvm_exit	0	0	1
E2
agree "$tmp/lossy.dat" "lost events"
is "$(<"$tmp/tables")" 'exit 7 1000 1100 IRQ
exit 7 1300 1500 DABT_LOW
exit 8 2100 2300 IRQ' "lost events: what is known"
slow "$tmp/lossy.dat" | sed 's/^early/exit/' | sort >"$tmp/slow"
same "$tmp/tables" "$tmp/slow" "lost events: the slow reference's"
is "$(query "$tmp/lossy.dat" "SELECT count(*) || ' ' || count(dur) FROM kvm_exits;")" '8 3' "lost events: each kvm_exit is a row"

# ---- marks ---------------------------------------------------------------------------------

# An Exit of another thread of crosvm's process, names that overlap, lanes that are free again, and a loss
make_trace "$tmp/marks.dat" <<'E2'
id 1
task 7 crosvm
1000 0 7 print	0	503 VirtioFs Enter: read
1100 0 8 print	0	504 VirtioFs Enter: write
1300 1 9 print	0	503 VirtioFs Exit: read
1350 1 9 print	0	505 VirtioFs Exit: read
2000 0 60 print	0	guest_hypertrace arg1=3
2010 0 60 print	0	guest_hypertrace arg1=1
2020 0 60 print	0	guest_hypertrace arg1=4
2030 0 60 print	0	guest_hypertrace arg1=1
2100 0 60 print	0	guest_hypertrace arg1=2
2300 0 60 print	0	guest_hypertrace arg1=2
2400 0 60 print	0	guest_hypertrace arg1=1
lost 0 3
2500 1 60 print	0	guest_hypertrace arg1=1
2600 1 60 print	0	guest_hypertrace arg1=2
2700 0 60 print	0	guest_hypertrace arg1=2
2800 0 8 print	0	504 VirtioFs Exit: write
E2
printf '1 frame_start\n2 frame_end\n3 draw_start\n4 draw_end\n' >"$tmp/desc"
is "$("$hyptrace" stat -q --csv --show spans --hypertrace-desc "$tmp/desc" "$tmp/marks.dat" | tail -n +2 |
	grep -v ' ' | cut -d, -f3-6 | sort)" 'crosvm,read,1,300
crosvm,write,1,1700
hypertrace,draw,1,20
hypertrace,frame,2,360' "marks: stat"
"$hyptrace" export -q --hypertrace-desc "$tmp/desc" --perfetto "$tmp/out" "$tmp/marks.dat"
is "$(packets "$tmp/out" | tracks | grep '^hypertrace\|^crosvm' | sed 's/ (.*)//')" 'crosvm > crosvm 7 | begin 1000 read
crosvm > thread 8 | begin 1100 write
crosvm > crosvm 7 | end 1300
crosvm > thread 9 | instant 1350 read
hypertrace > thread 60 | begin 2000 draw
hypertrace > thread 60 | begin 2010 frame
hypertrace > thread 60 | end 2020
hypertrace > thread 60 | begin 2030 frame
hypertrace > thread 60 | end 2100
hypertrace > thread 60 | end 2300
hypertrace > thread 60 | begin 2400 frame
hypertrace > thread 60 | end 2400
hypertrace > thread 60 | instant 2500 frame_start
hypertrace > thread 60 | instant 2600 frame_end
hypertrace > thread 60 | instant 2700 frame_end
crosvm > thread 8 | end 2800' "marks: export --perfetto has the same, and ends at a loss what it hides the end of"
is "$("$hyptrace" flame -q --spans -w ns --hypertrace-desc "$tmp/desc" "$tmp/marks.dat")" 'host;[unknown]-60;draw 20
host;[unknown]-60;frame 220
host;[unknown]-60;frame;frame 70
host;[unknown]-8;write 1700
host;crosvm;read 300' "marks: flame has the same"

# KernelShark's plugin draws exits of x86's guests: SVM's of two captures, VMX's of a made one.
if [ -x "$build/tests/tools/loadkshark" ]; then
	"$build/tests/integration/make-trace" "$tmp/vmx.dat" <<'T'
clock boot
event kvm:kvm_entry unsigned int vcpu_id | "%u", REC->vcpu_id
event kvm:kvm_exit unsigned int exit_reason; unsigned int isa | "reason %s", __print_symbolic(REC->exit_reason, { 12, "HLT" }, { 30, "IO_INSTRUCTION" })
1000 0 7 kvm_entry	0
2000 0 7 kvm_exit	30	1
2500 0 7 kvm_entry	0
3000 0 7 kvm_exit	12	1
9000 1 7 kvm_entry	0
9500 1 7 kvm_exit	120	1
9600 1 7 kvm_entry	0
T
	for file in tests/data/x86/trace.dat tests/data/steal/trace.dat "$tmp/vmx.dat"; do
		"$build/tests/tools/loadkshark" -s "$file" 2>/dev/null | sort >"$tmp/drawn"
		query "$file" "SELECT 'exit ' || tid || ' ' || ts || ' ' || (ts + dur) || ' ' || iif(lower(reason) = 'hlt', 'halt', 'exit') FROM kvm_exits
			WHERE dur IS NOT NULL;" | sort >"$tmp/exits"
		[ -s "$tmp/exits" ] && same "$tmp/drawn" "$tmp/exits" "${file#tests/data/}: KernelShark's plugin has x86's exits"
	done
else
	skip 3 "no loadkshark: make tools said what it needs"
fi

done_testing
