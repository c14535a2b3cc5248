#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Other VMMs, each with a guest of its own: kvmtool; QEMU with vhost-device-vsock, whose vsock is
# a UNIX socket of the host; libvirt, which chooses the CID and renames its domain. They are listed,
# recorded by name, and one is stopped while it is recorded. What is not there is skipped:
#	HYPTRACE_LAB_LKVM	kvmtool for arm64, which Debian has not; a program, or packed as .zst
#	vhost-device-vsock	in the image of L1, if Debian's sid could be had when that was made
. "$(dirname "$0")/lib.sh"

mkdir "$out/bin"
case ${HYPTRACE_LAB_LKVM-} in
*.zst) zstd -dqf "$HYPTRACE_LAB_LKVM" -o "$out/bin/lkvm" ;;
?*) cp "$HYPTRACE_LAB_LKVM" "$out/bin/lkvm" ;;
esac && chmod 755 "$out"/bin/* 2>/dev/null

vm_up -w 0.5 -a "sh -c 'echo ffff800080000000 T _text >/tmp/k; mount --bind /tmp/k /proc/kallsyms
	exec hyptrace-agent -D -v'"

# shellcheck disable=SC2016 # L1's PATH
vmm='PATH=/mnt/out/bin:$PATH /mnt/tests/lab/l1/vmm'
names=() # of the guests that are there, beside libvirt's

has() {
	[[ " ${names[*]} " = *" $1 "* ]]
}

# Decodes the JSON in $output and prints what the Perl expression says of $j.
json() {
	perl -MJSON::PP -0777 -ne '$j = JSON::PP->new->utf8->decode($_); print '"$1" <<<"$output"
}
guests='map { my $g = $_; join(" ", (map { $g->{$_} // "-" } qw(name vmm cid socket)), join("+", @{$g->{sources}}),
	join ",", map { "$_->{cpu}:$_->{how}" } @{$g->{vcpus}}) . "\n" } sort { $a->{name} cmp $b->{name} } @{$j->{guests}}'

# guest_of FILE GUEST NAME: it has events, and its clock is tied to the host's as well as the counter allows
guest_of() {
	like "$stderr" "guest $2: clock offset known to \\+- [0-9.]+ us \\(hard, counter; 0 of [0-9]+ events outside" \
		"$3: its clock is tied to the host's"
	at_least "$(summary_of "$2" events)" 50 "$3: events"
	is "$(summary_of "$2" lost)" 0 "$3: none lost"
	reports "$out/$1-$2.dat" sched_switch "$3: stock report reads its file"
}

# ---- started, all at a time ----

if [ -x "$out/bin/lkvm" ]; then
	run "$vmm kvmtool kt 9"
	recorded "kvmtool runs a guest"
	names+=(kt)
else
	skip 6 "no kvmtool: HYPTRACE_LAB_LKVM names none"
fi
run 'vhost-device-vsock --version'
if [ "$status" = 0 ]; then
	diag "$output"
	run "$vmm vhost-user vu 7"
	recorded "QEMU runs a guest with vhost-device-vsock"
	names+=(vu)
else
	skip 6 "no vhost-device-vsock in L1: $stderr"
fi

# Without its guest's first instruction it has all that is listed.
run "$vmm libvirtd && $vmm define web && virsh -q 'start --paused web; dumpxml web'"
recorded "libvirt runs a domain" || run 'cat /run/libvirtd.log /var/log/libvirt/qemu/*.log' || diag "$output"
cid=$(sed -nE "s/.*<cid auto='yes' address='([0-9]+)'.*/\1/p" <<<"$output")
unlike "$cid" '^(7|9|)$' "libvirt chose its CID: $cid"

# ---- listed ----

run 'hyptrace list --guests --json'
is "$(json "$guests")" "$(has kt && echo "kt kvmtool 9 - proc 0:name,1:name"
	has vu && echo "vu QEMU 7 /run/vu.vsock proc 0:name,1:name"
	echo "web QEMU $cid - proc+libvirt 0:name,1:name")" "each is there once, with its name, CID and vCPUs"
if has kt; then
	threads=$(json 'map { my $g = $_; map { "/proc/$g->{pid}/task/$_->{pid}/comm " } @{$g->{vcpus}} }
		grep { $_->{name} eq "kt" } @{$j->{guests}}')
	is "$(l1 "cat $threads")" $'kvm-vcpu-0\nkvm-vcpu-1' "kvmtool's threads are the vCPUs'"
fi

# ---- renamed, and recorded by name, all in one ----

run "virsh -q 'destroy web; domrename web shop; start shop' && $vmm up web ${names[*]}"
recorded "the domain has another name; the guests' agents are there"
run 'hyptrace record -e kvm -A web -e sched -o /mnt/out/no.dat -- true'
refused "no VM is named 'web' here; there are: .*shop" "its old name is nobody's"

args=$(printf -- ' -A %s -e sched' "${names[@]}" shop)
# three guests on two emulated CPUs take a while to their first events
capture all.dat "hyptrace record --guest-timeout 100s -B hyp -e kvm -o /mnt/out/all.dat$args -- sleep 5"
recorded "they are recorded by their names"
diag "$stderr"
has kt && guest_of all kt "kvmtool"
has vu && guest_of all vu "vhost-device-vsock"
guest_of all shop "libvirt"

# ---- stopped by libvirt while it is recorded; beside it the socket by its path ----

if has vu; then beside='-A unix:/run/vu.vsock -e sched'; else beside=; fi
run "begin /mnt/out/stop.dat -e kvm:kvm_entry -A shop -e sched $beside && within 60 pages_of /mnt/out/stop-shop.dat 4096 &&
	virsh -q destroy shop && finish"
is "$status" 3 "a domain that is stopped while it is recorded: status 3"
like "$stderr" '^hyptrace: guest shop was lost before the end' "it is said"
at_least "$(summary_of shop events)" 1 "what it sent is there"
if has vu; then
	at_least "$(summary_of vu events)" 1 "the guest behind unix:/run/vu.vsock goes on, by its VM's name"
else
	skip 1 "no vhost-device-vsock for -A unix:"
fi
run 'cat $hyp/tracing_on $hyp/events/enable; ls $t/instances'
is "$output" $'0\n0' "tracefs is as before"

done_testing
