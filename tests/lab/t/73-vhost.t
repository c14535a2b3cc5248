#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The question of a talk ("Debugging Tools and Techniques for Virtualized Automotive Systems", H. Ishii), on the
# live pKVM host: the same packets through network cards of a guest whose device is QEMU's or vhost's, and
# through one whose notifications QEMU handles in user space. What diff and latency say of them.
export minutes=5
. "$(dirname "$0")/lib.sh"

hyptrace=$build/hyptrace
packets=2400
cards=(standard vhost user)

card() { # NUMBER VHOST [OPTION]
	echo "-netdev tap,id=net$1,ifname=tap$1,script=no,downscript=no,vhost=$2" \
		"-device virtio-net-pci,romfile=,netdev=net$1${3-}"
}
export HYPTRACE_LAB_GUEST_ARGS
HYPTRACE_LAB_GUEST_ARGS="$(card 0 off) $(card 1 on) $(card 2 off ,ioeventfd=off)"
export HYPTRACE_LAB_CPUS=4 # for two vCPUs, so that none of QEMU's threads has to take one's
vm_up -m protected -g 1 -w 0 -a 'hyptrace-agent -D'

run 'for i in 0 1 2; do ip addr add 10.9.$i.1/24 dev tap$i && ip link set tap$i up || exit; done'
is "$status" 0 "the host's ends of the cards are up" || diag "$stderr"
guest 'for i in 0 1 2; do ip addr add 10.9.$i.2/24 dev eth$i; ip link set eth$i up; done
	for i in 0 1 2; do ping -A -q -c 5 -W 60 10.9.$i.1 || exit; done' >"$tmp/ping" 2>&1
is "$?" 0 "the guest reaches the host through each" || diag "$(cat "$tmp/ping")"

# Recorded is the middle of a stream: each packet is sent when the one before has come back.
# record_card NUMBER PACKETS
record_card() {
	local name=${cards[$1]}

	guest "ping -A -q -c 100000 -s 1400 10.9.$1.1 >/tmp/ping 2>&1 & echo \$! >/tmp/pid"
	run "came=/sys/class/net/tap$1/statistics/rx_packets
		have() { [ \$(cat \$came) -ge \$1 ]; }
		first=\$(cat \$came); within 60 have \$((first + 20)) || exit
		hyptrace record -e kvm:kvm_entry -e kvm:kvm_exit -e kvm:kvm_mmio -e kvm:kvm_userspace_exit -e sched:sched_switch \
			-e sched:sched_waking -e net:netif_receive_skb -b 8192 -B hyp -b 4096 \
			-A Guest@3 -e irq:irq_handler_entry -f 'name ~ \"virtio*\"' -e net:net_dev_xmit -b 4096 -o $name.dat -- \
			sh -c 'last=\$(cat '\$came'); until [ \$(cat '\$came') -ge \$((last + $2)) ]; do sleep 0.2; done' &&
			cp $name.dat $name-Guest.dat /mnt/out"
	recorded "recorded $2 packets there and back: $name"
	guest 'kill $(cat /tmp/pid)'
}
for i in 0 1 2; do record_card $i 600; done

both() { echo "$out/$1.dat,$out/$1-Guest.dat"; }

# ---- diff ----------------------------------------------------------------------------

# verdict A B TABLE NAME: what B has of it for each packet
verdict() {
	"$hyptrace" diff -q --csv --per net_dev_xmit@Guest "$(both "$1")" "$(both "$2")" |
		awk -F, -v t="$3" -v n="$4" '$1 == t && $3 == n { print $8 }'
}

# Where a recording's figures drift, diff calls it too short; on a busy machine its noise may hide the difference:
# then longer ones are recorded.
for packets in 2400 9600; do
	[[ "$(verdict standard vhost tasks vhost) $(verdict standard vhost tasks qemu-system-aar)" =~ ^(more|too short)" less"$ ]] && break
	for i in 0 1; do record_card $i $packets; done
done
diag "$("$hyptrace" diff --per net_dev_xmit@Guest "$(both standard)" "$(both vhost)" 2>&1)"
is "$(verdict standard vhost tasks qemu-system-aar)" less "with vhost QEMU runs less for each packet, beyond the noise"
# of what drifts as an emulated machine's load does, diff need not decide
like "$(verdict standard vhost tasks vhost)" '^(more|too short)$' "... and vhost's threads not less"
is "$(verdict user vhost events kvm:kvm_userspace_exit)" less "with vhost no notification is left to user space"

# workers NAME CARD: who hands that card's packets to the host's network (a guest asks for routers by each of its cards)
workers() {
	"$hyptrace" sql --csv --no-guests "$out/$1.dat" "SELECT comm FROM events
		WHERE name = 'netif_receive_skb' AND EXTRACT_ARG(arg_set_id, 'name') = '$2' GROUP BY comm" | sed 1d | cut -d , -f 2
}
is "$(workers standard tap0)" qemu-system-aar "standard virtio: QEMU hands over all packets"
like "$(workers vhost tap1)" '^vhost-[0-9]+$' "vhost: its thread does"

# ---- latency ----------------------------------------------------------------------------

# the card's queue is the one with a notification for each packet
for name in standard vhost; do
	"$hyptrace" latency -q --csv --preset virtio "$out/$name.dat" "$out/$name-Guest.dat" >"$tmp/latency"
	ok $? "latency --preset virtio: $name" || diag "$(cat "$tmp/latency")"
	diag "$("$hyptrace" latency --preset virtio "$out/$name.dat" "$out/$name-Guest.dat" 2>&1)"
	at_least "$(sort -t , -k 3,3nr "$tmp/latency" | awk -F, '$1 == "chains" { print $4; exit }')" 3 \
		"... has complete chains of the card's queue"
done

# ---- why ----------------------------------------------------------------------------------

found=$("$hyptrace" why -q "$out/user.dat")
# a share of the time that a packet takes, which is longer on a busy machine
like "$(grep -m 1 '^1\.' <<<"$found")" '^1\. exits for MMIO at 0x[0-9a-f]+:W: .* ([3-9]|[0-9]{2,})\.[0-9] % of Guest:[01]$' \
	"without ioeventfd why names the address to which notifications are written first" || diag "$found"

done_testing
