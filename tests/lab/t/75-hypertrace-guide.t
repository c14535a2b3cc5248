#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hypertrace(7)'s guide, each of its commands as it stands there; and the module for a guest's kernel, in a guest
# that runs Debian's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/marks.sh"

# guide N: its Nth block of commands
guide() {
	sed -n '/^\.SH A REGION, FROM NOTHING/,/^\.SH /p' Documentation/hypertrace.7 |
		awk -v n="$1" '/^\.EX/ { on = ++i == n; next } /^\.EE/ { on = 0 } on' |
		sed 's/\\-/-/g; s/\\(aq/'\''/g; s/\\e/\\/g'
}

# What the guide calls by its usual places is this test's own.
export HOME=$lab_home O=$build dir=$tmp/guide
trap 'tests/lab/lab down marks 2>/dev/null; cleanup' EXIT

like "$(guide 1)" 'make lab' "it begins with make (which this test has behind it)"
guide 2 >"$tmp/2"
. "$tmp/2" >"$tmp/log" 2>&1
ok $? "a lab with the example in a guest" || diag "$(cat "$tmp/log")"
guide 3 >"$tmp/3"
. "$tmp/3" >"$tmp/all" 2>"$tmp/log"
is "$(grep -o ' client=0 arg1=.*' "$tmp/all")" \
	" client=0 arg1=1 arg2=0xcafe arg3=0xdead arg4=0xbeef
 client=0 arg1=0 arg2=0xcafe arg3=0xdead arg4=0xbeef" "its marks among the host's events" ||
	diag "$(tail -n 20 "$tmp/all" "$tmp/log")"
like "$(cat "$tmp/all")" 'kvm_(exit|entry):' "... which are there"
guide 4 >"$tmp/4"
. "$tmp/4" >"$tmp/region" 2>"$tmp/log"
ok $? "a region" || diag "$(cat "$tmp/log")"
# interrupts between the event and its trigger are recorded, too: some ten a tick, where the run's rest has hundreds
after=$(awk '/off: .*arg1=0x0/ { off = 1; n = 0; next } off { n++ } END { print n + 0 }' "$tmp/region")
[ "$after" -le 40 ]
ok $? "... ends with it: $after events later"
like "$(cat "$tmp/region")" 'off: .*arg1=0x0' "... and it is there"
is "$(grep -c 'my-hypertrace-.* sched_process_\(exec\|exit\): ' "$tmp/region")" 0 "... and none of its program's begin and end"
diag "$(cat "$tmp/region")"

# ---- a guest's kernel -----------------------------------------------------------------

kernel_module debian aarch64-linux-gnu-
mkdir -p "$tmp/tree/ht"
cp "$tmp/module"/*.ko "$dir/guest/my-hypertrace" "$tmp/tree/ht/"
cat >"$tmp/tree/ht/init" <<'END'
#!/bin/busybox sh
busybox mount -t sysfs sys /sys
busybox insmod /ht/hypertrace.ko
busybox insmod /ht/hypertrace-example.ko
/ht/my-hypertrace
busybox rmmod hypertrace_example && busybox rmmod hypertrace && echo unloaded
busybox poweroff -f
END
chmod 755 "$tmp/tree/ht/init"
(cd "$tmp/tree" && find . | cpio -o -H newc --quiet -R 0:0 | gzip -1) >"$dir/out/more"
cp "$cache/debian/vmlinuz" "$dir/out/"
vm=marks out=$dir/out
run 'cat /mnt/run/l2.cpio /mnt/out/more >initrd; cp /mnt/out/vmlinuz .; truncate -s 1M /tmp/kernel
	hyptrace record --hypertrace=Kernel=/tmp/kernel -o k.dat -- timeout 250 qemu-system-aarch64 -M virt,gic-version=3 \
		-cpu host -accel kvm -m 256 -kernel vmlinuz -initrd initrd -append "console=ttyAMA0 quiet nokaslr panic=-1 rdinit=/ht/init" \
		-display none -monitor none -serial file:console -no-reboot -nic none \
		-object memory-backend-file,id=ht,share=on,mem-path=/tmp/kernel,size=1M -device ivshmem-plain,memdev=ht
	status=$?; cp k.dat /mnt/out; cat console; exit $status'
recorded "a guest with Debian's kernel"
like "$output" 'unloaded' "... where the module is loaded, and unloaded" || diag "$output"
is "$(report "$out/k.dat" | grep -o 'client=.*')" "client=1 arg1=0x1 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=Kernel vcpu=-1
client=1 arg1=0x0 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=Kernel vcpu=-1
client=0 arg1=0x1 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=Kernel vcpu=-1
client=0 arg1=0x0 arg2=0xcafe arg3=0xdead arg4=0xbeef guest=Kernel vcpu=-1" \
	"its events, and those of a program behind it in the same memory"

guide 5 >"$tmp/5"
. "$tmp/5" >"$tmp/log" 2>&1
ok $? "the lab is put away"

done_testing
