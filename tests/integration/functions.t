#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Functions by name behind addresses: of a guest by its own file, in hyptrace report as in
# trace-cmd report, whose kvm plugin asks for them on x86 and ours on arm64; of the
# hypervisor and the host by the host's file.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins
host=tests/data/functions/trace.dat
guest=tests/data/functions/trace-Guest.dat

# report FILE|OPTION...: without file, task, CPU and time
report() {
	"$hyptrace" report "$@" 2>&1 | sed -nE 's/^.*\] *[0-9.]+: ([a-z_0-9]+): +/\1: /p'
}

# ---- x86: the kernel's address space is somewhere else in the guest (KASLR) -------------

cp tests/data/x86/*.dat "$tmp"
"$hyptrace" sync --write --quiet "$tmp/trace.dat" "$tmp/trace-Guest.dat" # names the vCPUs' threads
if command -v trace-cmd >/dev/null; then # and so libtraceevent's kvm plugin
	lines=$(report "$tmp/trace.dat" "$tmp/trace-Guest.dat")
	like "$lines" '^kvm_entry: vcpu 1 rip 0xffffffffa264e8cb schedule_hrtimeout\+0x9db$' "x86: kvm_entry has the guest's function"
	like "$lines" '^kvm_exit: reason EXIT_HLT rip 0xffffffffa264e8ca schedule_hrtimeout\+0x9da info 0 0$' "... kvm_exit too"
	"$hyptrace" report "$tmp/trace.dat" "$tmp/trace-Guest.dat" >"$tmp/ours"
	trace-cmd report -i "$tmp/trace.dat" -i "$tmp/trace-Guest.dat" >"$tmp/stock" 2>&1
	same "$tmp/ours" "$tmp/stock" "... byte by byte as stock"
else
	skip 3 "no trace-cmd"
fi

# ---- arm64: a guest of a protected host -----------------------------------------------

lines=$(report $host $guest)
is "$(grep -E '^kvm_(exit|entry)' <<<"$lines" | grep -cE 'PC: 0x[0-9a-f]{16} \([a-z_.0-9]+(\+0x[0-9a-f]+)?\)$')" \
	"$(grep -cE '^kvm_(exit|entry)' <<<"$lines")" "arm64: every kvm_exit and kvm_entry has the guest's function"
is "$(grep -E '^kvm_(exit|entry|guest_fault): .*vp_notify|^kvm_sys_access|skb_release' <<<"$lines" | sort -u)" \
	"kvm_entry: PC: 0xffff8000805daf34 (vp_notify+0x14)
kvm_entry: PC: 0xffff800080696190 (skb_release_head_state)
kvm_exit: IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffff800080696190 (skb_release_head_state)
kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffff8000805daf34 (vp_notify+0x14)
kvm_guest_fault: ipa 0x8000003000, hsr 0x93400044, hxfar 0xffff80008144d004, pc 0xffff8000805daf34 (DABT_LOW write of 2 bytes from w0, level 0 translation fault) (vp_notify+0x14)
kvm_sys_access: PC: ffff80008057352c ICC_SGI1R_EL1 (3,0,12,11,5) write (gic_ipi_send_mask+0x16c)" \
	"... faults and trapped registers as well"
if command -v trace-cmd >/dev/null; then
	"$hyptrace" report $host $guest >"$tmp/ours"
	trace-cmd report -i $host -i $guest >"$tmp/stock" 2>&1
	same "$tmp/ours" "$tmp/stock" "... and stock prints the same with our plugins"
else
	skip 1 "no trace-cmd"
fi
is "$(report $guest $host | grep kvm_ | sort)" "$(grep kvm_ <<<"$lines" | sort)" "the order of the files does not matter"
unlike "$(report -O kvm-arm64:plain=1 $host $guest)" '\+0x' "plain: the kernel's words alone"
unlike "$(report --no-guests $host)" '\+0x' "the host alone: its own functions do not name a guest's"
unlike "$(report --no-guests $host tests/data/guest/trace-Guest.dat)" '\+0x' "another's guest does not, either"

# ---- the hypervisor and the host -------------------------------------------------------

"$build/tests/integration/make-trace" "$tmp/hyp.dat" tests/integration/events/hypervisor{,-each} </dev/null
cat >"$tmp/kallsyms" <<'END'
0000000000000f00 t __kvm_nvhe_handle_trap
0000000000001100 t __kvm_nvhe_divide_handler
0000000000002000 t __kvm_nvhe___kvm_hyp_host_vector
0000000000003000 t kvm_arch_init
END
is "$(report --kallsyms "$tmp/kallsyms" "$tmp/hyp.dat" | grep ^func)" \
	'func: __kvm_nvhe_handle_trap+0x100 <- __kvm_nvhe___kvm_hyp_host_vector' "func: the hypervisor's, by the host's symbols"
"$build/tests/integration/make-trace" "$tmp/named.dat" tests/integration/events/hypervisor{,-each} <<'END'
symbol f00 __kvm_nvhe_handle_trap
symbol 2000 __kvm_nvhe___kvm_hyp_host_vector
END
is "$(report -F func "$tmp/named.dat")" \
	'func: __kvm_nvhe_handle_trap+0x100 <- __kvm_nvhe___kvm_hyp_host_vector' "... of the file itself as well"
perl -0777 -pe 'substr($_, rindex($_, "\x28\xb5\x2f\xfd"), 4) = "none"' "$tmp/named.dat" >"$tmp/damaged.dat"
"$hyptrace" stat "$tmp/damaged.dat" >"$tmp/out" 2>&1
is $? 0 "damaged symbols: stat needs none" || diag "$(<"$tmp/out")"
"$hyptrace" report -F func "$tmp/damaged.dat" >"$tmp/out" 2>&1
is $? 1 "... a report that names functions ends" || diag "$(<"$tmp/out")"
like "$(<"$tmp/out")" "$tmp/damaged.dat: cannot read the kernel's symbols: it is damaged" "... and says why"
cp tests/data/functions/trace.dat "$tmp/trace.dat"
perl -0777 -pe 'substr($_, 3800, 3) = "\xff\xff\xff"' tests/data/functions/trace-Guest.dat >"$tmp/trace-Guest.dat"
while read -ra words; do
	"$hyptrace" "${words[@]}" "$tmp/trace.dat" >"$tmp/out" 2>"$tmp/err" </dev/null
	is $? 1 "damaged symbols of a guest: ${words[*]} fails, too"
	like "$(<"$tmp/err")" "$tmp/trace-Guest.dat: cannot read the kernel's symbols" "... and says of which file"
	"$hyptrace" "${words[@]}" --no-guests "$tmp/trace.dat" >"$tmp/want" 2>&1 </dev/null
	is $? 0 "... not with --no-guests" || diag "$(<"$tmp/want")"
	[ "${words[0]}" = report ] || continue
	is "$(grep -c kvm_exit: "$tmp/out")" "$(grep -c kvm_exit: "$tmp/want")" "... and prints all of the host's exits"
done <<'E2'
report
export --json
latency --from kvm_exit --to kvm_entry --worst 2
path --at kvm_entry --nth 5
E2
"$hyptrace" sql "$tmp/trace.dat" 'SELECT text FROM events' >"$tmp/out" 2>&1
is $? 1 "... and sql, of texts" || diag "$(tail -3 "$tmp/out")"
"$hyptrace" export --parquet "$tmp/parquet" "$tmp/trace.dat" >"$tmp/out" 2>&1
is $? 0 "... not what shows no functions: export --parquet" || diag "$(<"$tmp/out")"
for form in "--json -o" --perfetto; do
	for out in "$tmp/form" -; do
		"$hyptrace" export $form "$out" "$tmp/damaged.dat" 2>"$tmp/out" >/dev/null
		is "$?, $(grep -c "kernel's symbols\|cannot write" "$tmp/out")" "1, 1" \
			"export $form ${out##*/} does, too, and blames no output" || diag "$(<"$tmp/out")"
	done
done
done_testing
