#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace doctor, and record without options, on FAKE trees: a /proc with VMs, a VMM's
# vsock socket as a script, and tracefs as plain files. The real thing: tests/lab/t/29-list.t.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
root=$tmp/root
tracing=$tmp/tracing
export HYPTRACE_ROOT=$root HYPTRACE_TRACING_DIR=$tracing
mkdir -p "$root/proc" "$tracing/events"

# process PID EXE 'ARG|ARG...' [COMM OF A SECOND THREAD]
process() {
	mkdir -p "$root/proc/$1/fd" "$root/proc/$1/task/$1" "$root/proc/$1/task/${1}1"
	ln -s "$2" "$root/proc/$1/exe"
	ln -s / "$root/proc/$1/root"
	printf '%s|' "$3" | tr '|' '\0' >"$root/proc/$1/cmdline"
	basename "$2" >"$root/proc/$1/task/$1/comm"
	echo "${4:-worker}" >"$root/proc/$1/task/${1}1/comm"
}

# of FILE: "what can" a line
states() {
	perl -MJSON::PP -0777 -ne '$j = JSON::PP->new->utf8->decode($_);
		print map { "$_->{what}: " . ($_->{can} ? "yes" : "no") . "\n" } @{$j->{host}}, @{$j->{guests}}' "$1"
}

# ---- a bare kernel ------------------------------------------------------------------

"$hyptrace" doctor >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 " "a bare kernel: looked at, silently"
is "$(grep -c '^  yes' "$tmp/out") $(sed -n '2p' "$tmp/out")" "1   yes  tracing" "there is tracefs and nothing else"
is "$(grep -c '^  no ' "$tmp/out")" "$(grep -c '^       -> ' "$tmp/out")" "each thing that is missing has its remedy"
like "$(cat "$tmp/out")" '^       no hypervisor buffer: ' "why there is no hypervisor"
is "$(tail -n 2 "$tmp/out")" "guests: none
next: hyptrace record" "there is nothing to record"
is "$(awk 'length > 100' "$tmp/out")" "" "lines are short"

# vsock_fix: the remedy for guests' vsock
vsock_fix() {
	"$hyptrace" doctor | sed -n "/guests' vsock/,/->/s/.*-> //p"
}
modules=$root/lib/modules/$(uname -r)
mkdir -p "$modules"
echo 'kernel/drivers/net/veth.ko.xz:' >"$modules/modules.dep"
is "$(vsock_fix)" "a kernel with CONFIG_VHOST_VSOCK: this one has no module vhost_vsock; TCP and VMMs' sockets need none" \
	"no modprobe where the kernel has no such module"
echo 'kernel/drivers/vhost/vhost-vsock.ko.xz: kernel/drivers/vhost/vhost.ko.xz' >>"$modules/modules.dep"
is "$(vsock_fix)" "modprobe vhost_vsock; TCP and VMMs' sockets need none" "modprobe where it has"
echo 'kernel/drivers/vhost/vhost_vsock.ko' >"$modules/modules.builtin"
like "$(vsock_fix)" '^vhost_vsock is built into this kernel: see dmesg' "... and not where it is built in"
# clocks_fix: the remedy for guests' exact clocks, on x86
clocks_fix() {
	"$hyptrace" doctor | sed -n "/guests' exact clocks/,/->/s/.*-> //p"
}
if [ "$(uname -m)" = x86_64 ]; then
	is "$(clocks_fix)" "mount -t debugfs debugfs /sys/kernel/debug; until then exits bound them" "debugfs is not mounted"
	mkdir -p "$root/sys/kernel/debug/tracing"
	is "$(clocks_fix)" "a kernel with CONFIG_KVM: this one has no module kvm_intel; on AMD's processors kvm_amd; until then exits bound them" \
		"it is, and the kernel has no KVM"
	echo 'kernel/arch/x86/kvm/kvm-intel.ko.xz:' >>"$modules/modules.dep"
	is "$(clocks_fix)" "modprobe kvm_intel; on AMD's processors kvm_amd; until then exits bound them" "... and KVM is not loaded"
	rm -r "$root/sys/kernel/debug"
else
	skip 3 "not x86"
fi
"$hyptrace" doctor --check tracing >/dev/null
is $? 0 "--check of what is there"
"$hyptrace" doctor --check tracing kvm >/dev/null
is $? 1 "--check of what is missing"
"$hyptrace" doctor --check >/dev/null
is $? 1 "--check of everything, something missing"
"$hyptrace" doctor --check tracing nosuch >/dev/null 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 hyptrace: doctor --check: there is no 'nosuch' here" "--check of what there is not"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$tmp"
	chmod 700 "$tracing"
	like "$(setpriv --reuid 65534 --clear-groups "$hyptrace" doctor 2>&1)" '^       -> as root: hyptrace doctor$' "no mount where it is a matter of rights"
	chmod 755 "$tracing"
else
	skip 1 "only root can become another user"
fi

# ---- all of it there -----------------------------------------------------------------

mkdir -p "$tracing"/events/{kvm,sched} "$tracing/hypervisor/per_cpu/cpu0" "$root"/{dev,sys/kernel/{btf,debug/kvm},proc/sys/kernel}
touch "$tracing/available_filter_functions" "$tracing/dynamic_events" "$root/dev/vhost-vsock" "$root/sys/kernel/btf/vmlinux" \
	"$root/proc/sys/kernel/perf_event_paranoid"
echo 0 >"$tracing/hypervisor/tracing_on"
"$hyptrace" doctor --json >"$tmp/json"
is "$? $(states "$tmp/json" | grep -c ': yes$') $(states "$tmp/json" | grep ': no$')" "0 9 " "all can be recorded"
"$hyptrace" doctor --check --json >/dev/null
is $? 0 "... and --check agrees"
is "$("$hyptrace" doctor | tail -n 1)" "next: hyptrace record -B hyp -e kvm -e sched" "and how"
echo 1 >"$tracing/hypervisor/tracing_on"
"$hyptrace" doctor --json >"$tmp/json"
is "$(states "$tmp/json" | grep ': no$')" "hypervisor: -B hyp: no" "a hypervisor's buffer that runs"
like "$("$hyptrace" doctor)" '^       -> record --take-over' "... can be taken over"

# ---- guests ---------------------------------------------------------------------------------

process 10 /usr/bin/qemu-system-aarch64 'qemu-system-aarch64|-accel|kvm|-name|bare' 'CPU 0/KVM'
process 20 /usr/bin/firecracker 'firecracker|--id|fc|--config-file|/fc.json' 'fc_vcpu 0'
process 30 /usr/bin/firecracker 'firecracker|--id|off|--config-file|/off.json' 'fc_vcpu 0'
for name in fc off; do
	echo "{\"vsock\": {\"guest_cid\": 3, \"uds_path\": \"$tmp/$name.sock\"}}" >"$root/$name.json"
	rm "$root/proc"/[23]0/root
	ln -s ../.. "$root/proc/20/root"
	ln -s ../.. "$root/proc/30/root"
done
# the sockets are looked for below the process's root
mkdir -p "$root$tmp"
perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5) or die; print "up\n"; close STDOUT;
	while ($c = $s->accept) { <$c>; print $c "OK 1073741824\n"; <$c> if !-e $ARGV[1]; close $c }' \
	"$root$tmp/fc.sock" "$tmp/busy" >"$tmp/up" &
for ((i = 0; i < 100; i++)); do [ -s "$tmp/up" ] && break; sleep 0.1; done

"$hyptrace" doctor --json >"$tmp/json"
is "$(json_differs doctor <"$tmp/json" 2>&1)" "" "JSON as the schema says"
is "$("$hyptrace" doctor --csv | grep -e ^guests -e ,hyp,)" "\
host,hyp,hypervisor: -B hyp,false,somebody has switched it on already,\"record --take-over, which reads it from where it is\"
guests,key,what,can,why,fix
guests,bare,\"bare, QEMU\",false,it has no vsock,\"QEMU: -device vhost-vsock-pci,guest-cid=3\"
guests,fc,\"fc, Firecracker\",true,its agent listens,
guests,off,\"off, Firecracker\",false,its vsock is not reached,see guests' vsock above; is its VMM's socket there?" "... and as CSV"
is "$(states "$tmp/json" | tail -n 3)" "\
bare, QEMU: no
fc, Firecracker: yes
off, Firecracker: no" "which guests can be recorded"
like "$("$hyptrace" doctor)" '^       -> QEMU: -device vhost-vsock-pci,guest-cid=3$' "a guest without vsock: what gives it one"
is "$("$hyptrace" doctor | tail -n 1)" \
	"next: hyptrace record -B hyp -e kvm -e sched -A fc@unix:$root/proc/20/root$tmp/fc.sock -e sched -e irq" "the one that answers is in the line"
echo other >"$root/proc/10/task/101/comm"
mkdir -p "$root/proc/10/fd"
ln -s anon_inode:kvm-vcpu:0 "$root/proc/10/fd/13"
like "$("$hyptrace" doctor)" "^       0 of its 1 vCPUs' threads are known" "a vCPU whose thread is not known"
: >"$tmp/busy"
like "$("$hyptrace" doctor)" "^       its agent closes the connection at once$" "an agent that serves another recorder"
kill %1

# ---- what goes wrong ------------------------------------------------------------------------

HYPTRACE_TRACING_DIR=$tmp/none "$hyptrace" doctor >"$tmp/out" 2>"$tmp/err"
is "$? $(sed -n 2p "$tmp/out") $(cat "$tmp/err")" "1   no   tracing " "without tracefs: status 1"
like "$(cat "$tmp/out")" "^       cannot open '$tmp/none'" "... with its reason among the rest"
unlike "$(cat "$tmp/out")" '^next:' "... and nothing to go on with"
"$hyptrace" doctor nonsense >"$tmp/out" 2>&1
is $? 2 "an argument that is none"
"$hyptrace" doctor --port x >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "2 hyptrace doctor: -p x: not a port" "a port that is none"
"$hyptrace" doctor >/dev/full 2>"$tmp/err"
is $? 1 "a full disk is noticed"

# ---- record without options --------------------------------------------------------------------

rm -rf "$root/proc"/[123]0 "$tracing"
"$build/tests/integration/fake-android" "$tracing" android16
cd "$tmp" || exit 1
"$hyptrace" record 2>"$tmp/err" >"$tmp/out"
is $? 2 "record alone, without a terminal: wrong usage"
like "$(cat "$tmp/err")" 'nothing to record: give events' "... as before"
if command -v script >/dev/null; then
	timeout -s INT 60 script -qec "timeout -s INT 3 '$hyptrace' record" /dev/null </dev/null >"$tmp/out" 2>&1
	like "$(tr -d '\r' <"$tmp/out")" '^hyptrace: nothing is named, so this is recorded: hyptrace record -B hyp ' "on a terminal: what there is, and it is said"
else
	skip 1 "no script(1)"
fi

done_testing
