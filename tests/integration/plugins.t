#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The libtraceevent plugins in the stock trace-cmd: nothing left undecoded, the
# lines as they should be, whatever the order of loading.
. tests/integration/lib.sh

plugins=$build/plugins
lab=tests/data/lab-stock-arm64.dat

command -v trace-cmd >/dev/null || skip_all "no trace-cmd"
[ -e "$plugins/hyp.so" ] || skip_all "no $plugins/hyp.so: make"
export HOME=$tmp/home
mkdir "$HOME"

# report FILE [OPTION...]: what stock prints with our plugins, warnings too
report() {
	local file=$1
	shift
	TRACEEVENT_PLUGIN_DIR=$plugins trace-cmd report -i "$file" "$@" 2>&1
}

undecoded() {
	grep -E "CAN.?T FIND FIELD|FAILED TO PARSE|wf>c<" <<<"$1"
}

# ---- a capture that stock tools made on a pKVM host --------------------------------

bare=$(trace-cmd report -i $lab 2>&1)
like "$(undecoded "$bare")" "CANT FIND FIELD" "without the plugins kvm_exit is not decoded"
all=$(report $lab)
echo "$all" >"$tmp/report"
is "$(undecoded "$all")" "" "nothing is left undecoded"
is "$(grep -c . <<<"$all")" "$(grep -c . <<<"$bare")" "as many lines as without"
exits=$(grep -c ' kvm_exit: ' <<<"$all")
is "$exits/$(grep -cE ' kvm_exit: +(IRQ|TRAP|SERROR): HSR_EC: 0x[0-9a-f]{4} \([A-Za-z0-9_]+\), PC: 0x[0-9a-f]{16}$' <<<"$all")" \
	"37/37" "every kvm_exit"
is "$(grep -cE ' kvm_entry: +PC: 0x[0-9a-f]{16}$' <<<"$all")" 37 "every kvm_entry"
same <(grep -v ' kvm_\| vgic_' <<<"$all") <(grep -v ' kvm_\| vgic_' <<<"$bare") "other events are as they were"
# the first of each event
golden=$(sed -n 's/^ *CPU \(.*\)-[0-9]* *\[.*\] *65\.6\([0-9]*\): \(kvm_[a-z_0-9]*\|vgic_[a-z_]*\): */\3: /p' "$tmp/report" |
	sort -u -t: -k1,1)
is "$golden" "kvm_entry: PC: 0xffff8000802f0768
kvm_exit: IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffff8000802f0768
kvm_get_timer_map: VCPU: 0, dv: 1, dp: -1, ev: -1, ep: 0 (direct vtimer, emulated ptimer)
kvm_guest_fault: ipa 0x48355000, hsr 0x8200000f, hxfar 0xffff81a37c00, pc 0x00ffff81a37c00 (IABT_LOW fetch, level 3 permission fault)
kvm_handle_sys_reg: HSR 0x623a3016 (SYS64 write ICC_SGI1R_EL1 from x0)
kvm_irq_line: Inject VGIC SPI interrupt (1), vcpu->idx: 0, num: 33, level: 0
kvm_mmio: mmio unsatisfied-read len 2 gpa 0x9000018 val 0x0
kvm_sys_access: PC: ffff8000805595ac ICC_SGI1R_EL1 (3,0,12,11,5) write
kvm_timer_emulate: arch_timer_ctx_index: 0 (should_fire: 0) (ptimer)
kvm_timer_restore_state: CTL: 0x000005 CVAL:       0xc0b32e46 arch_timer_ctx_index: 1 (vtimer enabled, condition met)
kvm_timer_save_state: CTL: 0x000005 CVAL:       0xc0b32e46 arch_timer_ctx_index: 1 (vtimer enabled, condition met)
kvm_timer_update_irq: VCPU: 0, IRQ 27, level 1 (PPI 11, virtual timer)
kvm_userspace_exit: reason KVM_EXIT_MMIO (6)
kvm_wfx_arm64: guest executed wfi at: 0xffff8000807f6a9c
vgic_update_irq_pending: VCPU: 0, IRQ 23, level: 0 (PPI 7, PMU)" "the kernel's own words, and what they mean"

plain=$(report $lab -O kvm-arm64:plain)
same <(grep ' vgic_\| kvm_mmio\| kvm_timer\| kvm_irq' <<<"$plain") <(grep ' vgic_\| kvm_mmio\| kvm_timer\| kvm_irq' <<<"$bare") \
	"plain: what stock could print is the same to the byte"

# ---- load orders --------------------------------------------------------------------

stock=$(pkg-config --variable=pluginsdir libtraceevent 2>/dev/null)
[ -n "$stock" ] || stock=$(pkg-config --variable=libdir libtraceevent 2>/dev/null)/traceevent/plugins
if [ -e "$stock/plugin_kvm.so" ]; then
	last=$HOME/.local/lib/traceevent/plugins # loaded after TRACEEVENT_PLUGIN_DIR
	mkdir -p "$last" "$tmp/stock"
	cp "$stock/plugin_kvm.so" "$last/"
	cp "$stock/plugin_kvm.so" "$tmp/stock/"
	same <(report $lab) "$tmp/report" "stock's kvm plugin loaded before and after ours"
	rm "$last/plugin_kvm.so"
	cp "$plugins"/*.so "$last/"
	same <(TRACEEVENT_PLUGIN_DIR=$tmp/stock trace-cmd report -i $lab 2>&1) "$tmp/report" "ours last"
	same <(report $lab) "$tmp/report" "ours twice"
	rm -r "$last"
else
	skip 3 "stock's plugins are not in $stock"
fi

# ---- the seeds' lines, and every event of the hypervisor ---------------------------------

"$build/tests/integration/make-trace" "$tmp/made.dat" tests/integration/events/hypervisor - tests/integration/events/hypervisor-each <<'EOF'
1000001000 0 100 print	0xffff800080001000	fuse server: handle_message: in_header=InHeader { len: 64, opcode: 18, unique: 814, nodeid: 42, uid: 0, gid: 0, pid: 0, padding: 0 }\x0a
1000002000 0 100 print	0xffff800080001000	503 VirtioFs Enter: release - (self.tag: "mtdroot")(inode: 42)(handle: 35)\x0a
1000003000 0 100 print	0xffff800080001000	503 VirtioFs Exit: release\x0a
1000004000 0 100 print	0xffff800080001000	Hello world.\x0a
1000005000 0 100 print	0xffff800080001000	512 VirtioFs Enter: process_fs_queue - (slot: 0)\x0a
1000006000 0 100 print	0xffff800080001000	512 VirtioFs Exit: process_fs_queue\x0a
1000007000 0 100 print	0xffff800080001000	guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef\x0a
1000008000 0 100 print	0xffff800080001000	guest_hypertrace cpu=0x5602e1f49c10  arg1=0 arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef\x0a
EOF
ok $? "a file with trace_marker lines and the hypervisor's events"

cat >"$tmp/hcalls" <<'EOF'
# Linux 7.2
9 __kvm_vcpu_run
EOF
cat >"$tmp/desc" <<'EOF'
0 stop  a:hex b:u16
1 start a:hex b:u16
EOF
out=$(report "$tmp/made.dat" -O "hyp:hcalls=$tmp/hcalls" -O "hypertrace:desc=$tmp/desc" |
	sed -n 's/.*1\.0000[0-9]*: //p' | sed 's/: */: /; s/ *$//')
is "$out" 'print: tracing_mark_write: fuse server: handle_message: in_header=InHeader { len: 64, opcode: 18, unique: 814, nodeid: 42, uid: 0, gid: 0, pid: 0, padding: 0 }
print: crosvm 503 VirtioFs enter release self.tag="mtdroot", inode=42, handle=35
print: crosvm 503 VirtioFs exit release
print: tracing_mark_write: Hello world.
print: crosvm 512 VirtioFs enter process_fs_queue slot=0
print: crosvm 512 VirtioFs exit process_fs_queue
print: guest_hypertrace cpu=0x5602e1f49c10 start(a=0xcafe, b=57005) arg4=0xbeef
print: guest_hypertrace cpu=0x5602e1f49c10 stop(a=0xcafe, b=57005) arg4=0xbeef
hyp_enter: reason=guest_exit vcpu=100 (CPU 0/KVM)
host_hcall: id=9 invalid=0 (__kvm_vcpu_run)
host_smc: id=3288334339 forwarded=1 (0xc4000003 PSCI_CPU_ON SMC64)
host_mem_abort: esr=0x93c08047 addr=0x40001000 (DABT_LOW write of 8 bytes from x0, level 3 translation fault, ipa 0x40001000)
host_ffa_call: ffa_func=0x84000073 a1=0x1 a2=0x2 a3=0x3 a4=1a handled=1 err=0 (0x84000073 FFA_MEM_SHARE SMC32)
psci_mem_protect: count=2 was=1
iommu_idmap: from=0x40000000 to=0x40004000 prot=0x7 (16 KiB)
iommu_idmap_complete: map=1 (mapped)
vcpu_illegal_trap: esr_el2=62300069 (SYS64 read ID_AA64PFR0_EL1 to x3)
power_lock: vm=100 device=0x1000 lock=1 ret=0 (CPU 0/KVM)
func: 0x1000 <- 0x2000
__hyp_printk: fmt_id=3 args=0x1 0x2 0x3 0x4
selftest: id=7
vendor_thing: what=8
hyp_exit: reason=eret_guest vcpu=100 (CPU 0/KVM)
hyp_enter:
hyp_exit:' "crosvm's and QEMU's lines, and the hypervisor's events"

# ---- a word by itself, of two files, and of three ------------------------------------------------

guest=tests/data/functions/trace-Guest.dat
for files in tests/data/functions/trace.dat "tests/data/functions/trace.dat $guest" "tests/data/functions/trace.dat $guest tests/data/lab-protected.dat"; do
	# shellcheck disable=SC2086
	is "$("$build/hyptrace" report -q $files -O hyp:plain -O kvm-arm64:plain | grep -cE '(hyp_enter: .*|vgic_update_irq_pending: .*)\(')" 0 \
		"plain text of $files"
	# shellcheck disable=SC2086
	like "$("$build/hyptrace" report -q $files -O hyp:plain)" 'vgic_update_irq_pending: .*\(PPI' "... and kvm-arm64's where only hyp's is plain"
done

# ---- options that cannot be used ------------------------------------------------------------

err=$(report "$tmp/made.dat" -O "hyp:hcalls=$tmp/none" -O "hypertrace:desc=$tmp/hcalls")
like "$err" "^hyptrace hyp: cannot use hcalls .*/none: No such file" "a file that is not there: said, once"
is "$(grep -c 'cannot use' <<<"$err")" 1 "once"
like "$err" "host_hcall: +id=9 invalid=0\$" "and the number is printed"
printf '# two names\n1 a b\n' >"$tmp/bad"
like "$(report "$tmp/made.dat" -O "hyp:hcalls=$tmp/bad")" "^hyptrace hyp: cannot use hcalls $tmp/bad: line 2 is not understood$" "the line that makes no sense"
: >"$tmp/bad"
like "$(report "$tmp/made.dat" -O "hyp:hcalls=$tmp/bad")" "cannot use hcalls $tmp/bad: it is damaged, or not in the expected format$" "an empty file"
printf 'one two\n' >"$tmp/bad"
like "$(report "$tmp/made.dat" -O "hyp:printk=$tmp/bad")" "^hyptrace hyp: cannot use printk $tmp/bad: line 1 is not understood$" "... of formats"
err=$(report "$tmp/made.dat" -O "hypertrace:desc=$tmp/bad")
like "$err" "^hyptrace hypertrace: $tmp/bad:1: not understood" "a description that makes no sense"

# ---- hyptrace's own files --------------------------------------------------------------------

for host in protected nvhe; do
	all=$(report tests/data/lab-$host.dat)
	is "$(undecoded "$all")" "" "a $host host's file: nothing is left undecoded"
	hyp=$(grep -cE ' hyp_(enter|exit): ' <<<"$all")
	is "$(grep -cE ' hyp_(enter|exit): +reason=[a-z_]+ vcpu=[0-9]+( \(.*\))?$' <<<"$all")" "$hyp" \
		"every hyp event of $hyp"
	exits=$(grep -cE ' kvm_(exit|entry): ' <<<"$all")
	is "$(grep -cE ' kvm_exit: +(IRQ|TRAP|SERROR): HSR_EC: 0x[0-9a-f]{4} \([A-Za-z0-9_]+\), PC: 0x[0-9a-f]{16}$| kvm_entry: +PC: 0x[0-9a-f]{16}$' <<<"$all")" \
		"$exits" "every kvm_exit and kvm_entry of $exits"
	[ "$hyp" -gt 1000 ] && [ "$exits" -gt 100 ]
	ok $? "there are many"
done

# ---- installation ---------------------------------------------------------------------------------

is "$(for so in hyp kvm-arm64 crosvm hypertrace; do nm -D --defined-only "$plugins/$so.so" | awk '{ print $3 }'; done | sort | uniq -c | awk '{ print $1, $2 }')" \
	"4 hyptrace_plugin_text
4 tep_plugin_loader
4 tep_plugin_unloader" "the plugins export what libtraceevent and hyptrace look for, no more"
done_testing
