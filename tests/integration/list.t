#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace list on FAKE trees: a /proc with one VM of each VMM, Android's `vm`
# tool as a script, and tracefs as plain files. QEMU's and kvmtool's shapes were captured
# on the arm64 pKVM host of the lab (Linux 7.2, QEMU 7.2); the others' are written by
# their sources. The real thing: tests/lab/t/29-list.t and 41-vmm.t.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
root=$tmp/root
proc=$root/proc
tracing=$tmp/tracing
export HYPTRACE_ROOT=$root HYPTRACE_TRACING_DIR=$tracing

# ---- the fake tree -------------------------------------------------------------

# process PID EXE 'ARG|ARG...'
process() {
	mkdir -p "$proc/$1/fd" "$proc/$1/task"
	[ -z "$2" ] || ln -s "$2" "$proc/$1/exe"
	ln -s / "$proc/$1/root"
	printf '%s|' "$3" | tr '|' '\0' >"$proc/$1/cmdline"
	: >"$proc/$1/syscall"
	thread "$1" "$1" "$(basename "$2" | cut -c 1-15)"
}

# thread PID TID COMM [SYSCALL]
thread() {
	mkdir -p "$proc/$1/task/$2"
	echo "$3" >"$proc/$1/task/$2/comm"
	printf 'Name:\t%s\nNSpid:\t%s\n' "$3" "$2" >"$proc/$1/task/$2/status"
	echo "${4:-running}" >"$proc/$1/task/$2/syscall"
}

# fd PID N TARGET
fd() {
	ln -s "$3" "$proc/$1/fd/$2"
}

kvm_run() {
	echo "29 $1 0xae80 0x0 0xffffa39fdf10 0x0 0xfffffff8 0xffffa39fde90 0xffffbe043c10"
}

mkdir -p "$proc"

# not VMs: a kernel thread, a shell, a VMM's image tool
process 2 '' ''
: >"$proc/2/cmdline"
process 50 /bin/bash '-bash'
thread 50 51 vcpu0
process 60 /usr/bin/qemu-img 'qemu-img|create|-name|x'

# QEMU, as captured
process 107 /usr/bin/qemu-system-aarch64 'qemu-system-aarch64|-M|virt,gic-version=3|-cpu|host|-accel|kvm|-smp|2|-m|192|-kernel|/mnt/boot/Image|-initrd|/mnt/run/l2.cpio|-append|console=ttyAMA0 quiet panic=-1|-display|none|-monitor|none|-serial|file:/run/guest1/console|-no-reboot|-nic|none|-name|Guest,debug-threads=on|-pidfile|/run/guest1/pid|-device|vhost-vsock-pci,guest-cid=3|-device|virtio-serial-pci|-chardev|pipe,id=lab,path=/run/guest1/ctl|-device|virtserialport,chardev=lab,name=lab|-fsdev|local,id=run,path=/run/guest1/x,security_model=none|-device|virtio-9p-pci,fsdev=run,mount_tag=run'
thread 107 115 qemu-system-aar '98 0xaaaac245e1a0 0x0 0xffffffff 0x0 0x0 0x0 0xffffbd28df80 0xffffbe047c28'
thread 107 122 'CPU 0/KVM' "$(kvm_run 0xd)"
thread 107 123 'CPU 1/KVM' "$(kvm_run 0xe)"
thread 107 126 vhost-107 '0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0'
thread 107 128 worker
fd 107 10 /dev/kvm
fd 107 11 anon_inode:kvm-vm
fd 107 13 anon_inode:kvm-vcpu:0
fd 107 14 anon_inode:kvm-vcpu:1
fd 107 15 anon_inode:kvm-arm-vgic-v3
fd 107 17 /dev/vhost-vsock

# crosvm with vCPU 1 unplugged, a thread that inherited a name, and a device's process
process 200 /apex/com.android.virt/bin/crosvm 'crosvm|--extended-status|run|--cid|2048|--cpus|3|/x/kernel'
thread 200 202 crosvm_vcpu0
thread 200 203 crosvm_vcpu2
thread 200 210 crosvm_vcpu0
process 201 /apex/com.android.virt/bin/crosvm 'crosvm|--extended-status|run|--cid|2048|--cpus|3|/x/kernel'
thread 201 201 pcivirtio-blk

# kvmtool; and its command that lists
process 300 /usr/bin/lkvm 'lkvm|run|-c|2|-m|192|-k|/mnt/boot/Image|-i|/mnt/run/l2.cpio|--vsock|5|--name|kt|--console|virtio|-n|mode=none|-p|console=hvc0 quiet panic=-1'
thread 300 301 kvm-ipc
thread 300 302 kvm-vcpu-0
thread 300 303 kvm-vcpu-1
process 310 /usr/bin/lkvm 'lkvm|list'

# cloud-hypervisor: vsock by a UNIX socket
process 400 /usr/bin/cloud-hypervisor 'cloud-hypervisor|--kernel|vmlinux|--vsock|cid=3,socket=/tmp/ch.vsock'
thread 400 402 vcpu0

# Firecracker in a jail, configured by a file there, its path relative
process 500 '/firecracker (deleted)' 'firecracker|--id|fc1|--config-file|/vm.json'
mkdir -p "$root/jail"
echo '{"vsock": {"guest_cid": 3, "uds_path": "/run/v.sock"}}' >"$root/jail/vm.json"
rm "$proc/500/root"
ln -s ../../jail "$proc/500/root"
thread 500 502 'fc_vcpu 0'

# a VMM that nobody knows, its threads without names: found in KVM_RUN, all but one
process 600 /opt/myvmm 'myvmm'
fd 600 5 anon_inode:kvm-vcpu:0
fd 600 6 anon_inode:kvm-vcpu:4
fd 600 7 anon_inode:kvm-vcpu:9
thread 600 602 myvmm "$(kvm_run 0x5)"
thread 600 603 myvmm "$(kvm_run 0x6)"

# QEMU by libvirt on x86, were its threads without names: the kernel tells
process 700 /usr/bin/qemu-system-x86_64 'qemu-system-x86_64|-name|guest=web,debug-threads=off|-device|{"driver":"vhost-vsock-pci","id":"vsock0","guest-cid":7,"vhostfd":"30"}'
fd 700 20 anon_inode:kvm-vcpu:0
fd 700 21 anon_inode:kvm-vcpu:2
thread 700 702 qemu-system-x86
thread 700 703 qemu-system-x86
mkdir -p "$root/sys/kernel/debug/kvm/700-19/vcpu0" "$root/sys/kernel/debug/kvm/700-19/vcpu2"
echo 702 >"$root/sys/kernel/debug/kvm/700-19/vcpu0/pid"
echo 703 >"$root/sys/kernel/debug/kvm/700-19/vcpu2/pid"

# QEMU whose vsock is vhost-device-vsock's
process 800 /usr/bin/qemu-kvm 'qemu-kvm|-name|vu|-chardev|socket,id=v,path=/run/v9.socket|-device|vhost-user-vsock-pci,chardev=v'
thread 800 802 'CPU 0/KVM'
process 801 /usr/bin/vhost-device-vsock 'vhost-device-vsock|--vm|guest-cid=9,socket=/run/v9.socket,uds-path=/run/v9.vsock'

# StratoVirt, with the options of QEMU
process 900 /usr/bin/stratovirt 'stratovirt|-name|sv|-machine|virt|-smp|2|-device|vhost-vsock-pci,id=vsock-0,guest-cid=10,bus=pcie.0,addr=0x3|-qmp|unix:/run/sv.sock,server,nowait'
thread 900 902 'CPU 0/KVM'
thread 900 903 'CPU 1/KVM'

# Android's tool knows the name of crosvm's VM, and one VM that we cannot see
mkdir -p "$root/apex/com.android.virt/bin"
cat >"$root/apex/com.android.virt/bin/vm" <<'END'
#!/bin/sh
[ "$*" = list ] || exit 1
echo 'Running VMs: [
    VirtualMachineDebugInfo {
        name: "microdroid",
        cid: 2048,
        temporaryDirectory: "/data/misc/virtualizationservice/2048",
        requesterUid: 10123,
        requesterPid: 4127,
        hostConsoleName: None,
    },
    VirtualMachineDebugInfo {
        name: "a \"far\" one",
        cid: 2049,
        temporaryDirectory: "/data/misc/virtualizationservice/2049",
        requesterUid: 10123,
        requesterPid: 4127,
        hostConsoleName: None,
    },
]'
END
chmod +x "$root/apex/com.android.virt/bin/vm"

# ---- what is found ---------------------------------------------------------------

# Decodes the JSON on stdin and prints what the Perl expression says of $j.
json() {
	perl -MJSON::PP -0777 -ne '$j = JSON::PP->new->utf8->decode($_); print '"$1"
}

vms='map { my $g = $_; join("|", (map { $g->{$_} // "-" } qw(name vmm pid cid socket)),
	join("+", @{$g->{sources}}),
	join(" ", map { $_->{cpu} . ":" . ($_->{pid} // "?") . ":" . $_->{how} } @{$g->{vcpus}})) . "\n" } @{$j->{guests}}'

"$hyptrace" list --guests --json >"$tmp/json" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 " "list --guests --json works, silently"
is "$(json_differs list <"$tmp/json" 2>&1)" "" "... as the schema says"
is "$(json "$vms" <"$tmp/json")" "\
Guest|QEMU|107|3|-|proc|0:122:name 1:123:name
microdroid|crosvm|200|2048|-|proc+vm list|0:202:name 2:203:name
kt|kvmtool|300|5|-|proc|0:302:name 1:303:name
-|cloud-hypervisor|400|3|$root/tmp/ch.vsock|proc|0:402:name
fc1|Firecracker|500|3|$root/proc/500/root/run/v.sock|proc|0:502:name
-|other|600|-|-|proc|0:602:syscall 4:603:syscall 9:?:none
web|QEMU|700|7|-|proc|0:702:debugfs 2:703:debugfs
vu|QEMU|800|9|$root/run/v9.vsock|proc|0:802:name
sv|StratoVirt|900|10|-|proc|0:902:name 1:903:name
a \"far\" one|AVF|-|2049|-|vm list|" "every VMM's VM with name, pid, CID and vCPU threads"

is "$("$hyptrace" list -g)" "\
NAME         VMM                  PID        CID  VCPU:THREAD
Guest        QEMU                 107          3  0:122 1:123
microdroid   crosvm               200       2048  0:202 2:203
kt           kvmtool              300          5  0:302 1:303
-            cloud-hypervisor     400          3  0:402
             vsock by unix:$root/tmp/ch.vsock
fc1          Firecracker          500          3  0:502
             vsock by unix:$root/proc/500/root/run/v.sock
-            other                600          -  0:602 4:603 9:?
web          QEMU                 700          7  0:702 2:703
vu           QEMU                 800          9  0:802
             vsock by unix:$root/run/v9.vsock
sv           StratoVirt           900         10  0:902 1:903
a \"far\" one  AVF                    -       2049  -" "the same as a table"

is "$("$hyptrace" list -g --csv | sed -n '1,3p;$p')" "\
guests,name,vmm,pid,cid,socket,sources,vcpus
guests,Guest,QEMU,107,3,,proc,0:122:name;1:123:name
guests,microdroid,crosvm,200,2048,,proc;vm list,0:202:name;2:203:name
guests,\"a \"\"far\"\" one\",AVF,,2049,,vm list," "... and as CSV"

is "$("$hyptrace" list -g --json --probe | json 'map { $_->{agent} // "-" , " " } @{$j->{guests}}[3..5]')" \
	"unreachable unreachable - " "--probe says that sockets are not there"

mv "$root/jail/vm.json" "$root/jail/kept"
mkfifo "$root/jail/vm.json"
is "$(timeout 20 "$hyptrace" list -g --csv | grep fc1)" "guests,fc1,Firecracker,500,,,proc,0:502:name" \
	"anybody's FIFO in place of a configuration is not waited for"
mv "$root/jail/kept" "$root/jail/vm.json"

# ---- each source without the others ------------------------------------------------

mv "$proc" "$proc.away"
is "$("$hyptrace" list -g --json | json "$vms")" "\
microdroid|AVF|-|2048|-|vm list|
a \"far\" one|AVF|-|2049|-|vm list|" "vm list alone, without a /proc"
mv "$proc.away" "$proc"
printf '#!/bin/sh\necho "Running VMs: [ VirtualMachineDebugInfo { cid: 2048, name: \\"cut"\n' \
	>"$root/apex/com.android.virt/bin/vm"
is "$("$hyptrace" list -g --json | json 'scalar @{$j->{guests}}')" 9 "an answer that ends in the middle adds nothing"
like "$("$hyptrace" list -g -v 2>&1 >"$tmp/null")" 'bin/vm list: ' "and -v says so"
rm -r "$root/apex"
is "$("$hyptrace" list -g --json | json 'scalar @{$j->{guests}}')" 9 "/proc alone"

# names that are no text
rm -rf "$proc"
process 10 /usr/bin/lkvm "$(printf 'lkvm|run|--name|a\377"\\\033[2J')"
thread 10 11 kvm-vcpu-0
is "$("$hyptrace" list -g --json | json 'map { sprintf "%vd\n", $_->{name} } @{$j->{guests}}')" \
	"97.65533.34.92.27.91.50.74" "JSON of a name that is not UTF-8"
unlike "$("$hyptrace" list -g)" $'\033' "a name cannot steer the terminal"
rm -rf "$proc"
is "$("$hyptrace" list --guests)" "guests: none" "no VM"
is "$("$hyptrace" list --guests --json | json '0 + @{$j->{guests}}')" 0 "no VM, as JSON"

# ---- buffers and events ----------------------------------------------------------------

# buffer DIR ON SIZE CLOCK
buffer() {
	mkdir -p "$1/per_cpu/cpu0" "$1/per_cpu/cpu1"
	echo "$2" >"$1/tracing_on"
	echo "$3" >"$1/buffer_size_kb"
	echo "$4" >"$1/trace_clock"
}

buffer "$tracing" 1 '7 (expanded: 1408)' '[local] global boot'
echo nop >"$tracing/current_tracer"
printf 'sched:sched_switch\nkvm:kvm_exit\n' >"$tracing/set_event"
printf 'sched:sched_switch\nsched:sched_waking\nkvm:kvm_exit\n' >"$tracing/available_events"
buffer "$tracing/instances/b" 0 X 'local [boot]'
echo function >"$tracing/instances/b/current_tracer"
buffer "$tracing/instances/a" 0 64 '[local]'
echo nop >"$tracing/instances/a/current_tracer"

is "$("$hyptrace" list --buffers 2>"$tmp/err")" "\
BUFFER               STATE SIZE/CPU CPUS  EVENTS  CLOCK      TRACER
(host)               on        7.0K    2       2  local      nop
a                    off        64K    2       0  local      nop
b                    off     varies    2       0  boot       function" "the host's buffers"
like "$(cat "$tmp/err")" 'no hypervisor buffer' "without a hypervisor's: why"

for layout in remotes/hypervisor hypervisor hyp; do
	rm -rf "$tracing/remotes" "$tracing/hypervisor" "$tracing/hyp"
	hyp=$tracing/$layout
	buffer "$hyp" 0 '2048 (unloaded)' '[boot]'
	for event in hyp_enter hyp_exit; do
		mkdir -p "$hyp/events/${layout##*/}/$event"
		echo 0 >"$hyp/events/${layout##*/}/$event/enable"
		: >"$hyp/events/${layout##*/}/$event/format"
	done
	echo 1 >"$hyp/events/${layout##*/}/hyp_exit/enable"
	kind=text
	[ "$layout" = remotes/hypervisor ] || {
		: >"$hyp/per_cpu/cpu0/trace_pipe_raw"
		kind='raw pages'
	}
	is "$("$hyptrace" list -b --json | json 'join ",", map { "$_=" . $j->{buffers}[0]{$_} } sort keys %{$j->{buffers}[0]}')" \
		"clock=boot,cpus=2,events_on=1,kind=hypervisor,layout=$kind,name=${layout##*/},on=0,path=$layout,size_kb=2048" \
		"the hypervisor's buffer as $layout"
done
is "$("$hyptrace" list -b --json | json 'join ",", map { ($_->{name} // "") . "=" . ($_->{size_kb} // "null") } @{$j->{buffers}}')" \
	"hyp=2048,=7,a=64,b=null" "hypervisor first, then the host's, sorted"

is "$("$hyptrace" list -b -e 'kvm:*' --csv)" "\
buffers,kind,name,path,layout,on,size_kb,cpus,events_on,clock,tracer
buffers,hypervisor,hyp,hyp,raw pages,false,2048,2,1,boot,
buffers,host,,.,,true,7,2,2,local,nop
buffers,host,a,instances/a,,false,64,2,0,local,nop
buffers,host,b,instances/b,,false,,2,0,boot,function
events,buffer,system,event
events,host,kvm,kvm_exit" "buffers and events as CSV"

is "$("$hyptrace" list --events)" "\
hypervisor  hyp:hyp_enter
hypervisor  hyp:hyp_exit
host        sched:sched_switch
host        sched:sched_waking
host        kvm:kvm_exit" "all events"
is "$("$hyptrace" list --events '*_exit')" "\
hypervisor  hyp:hyp_exit
host        kvm:kvm_exit" "events by a pattern"
is "$("$hyptrace" list --events=sched)" "\
host        sched:sched_switch
host        sched:sched_waking" "events of a system"
is "$("$hyptrace" list -e 'sched:*ing' --json | json_differs list; "$hyptrace" list -b --json | json_differs list)" "" "... as the schema says"
is "$("$hyptrace" list -e 'sched:*ing' --json | json 'map { "$_->{buffer} $_->{system} $_->{event}" } @{$j->{events}}')" \
	"host sched sched_waking" "events by system and pattern, as JSON"
is "$("$hyptrace" list --json | json 'join " ", sort(keys %$j), $j->{events_available}{hypervisor}, $j->{events_available}{host}')" \
	"buffers events_available guests schema 2 3" "list alone: everything short"
is "$("$hyptrace" list | sed -n '1p;$p')" "\
guests: none
events: 2 of the hypervisor, 3 of the host (list --events)" "and as text"

# ---- what goes wrong ---------------------------------------------------------------------

HYPTRACE_TRACING_DIR=$tmp/none "$hyptrace" list >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/out")" "1 guests: none" "without tracefs the guests are shown, and the status is 1"
like "$(cat "$tmp/err")" "cannot open '$tmp/none'" "and it says why"
HYPTRACE_TRACING_DIR=$tmp/none "$hyptrace" list --guests >"$tmp/out" 2>&1
is $? 0 "the guests alone need no tracefs"
"$hyptrace" list nonsense >"$tmp/out" 2>&1
is $? 2 "an argument that is none"
"$hyptrace" list --probe=x >"$tmp/out" 2>&1
is "$? $(cat "$tmp/out")" "2 hyptrace list: -p x: not a port" "a port that is none"
like "$("$hyptrace" list -h)" '^usage: hyptrace list' "-h"
"$hyptrace" list >/dev/full 2>"$tmp/err"
is $? 1 "a full disk is noticed"

done_testing
