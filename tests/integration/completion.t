#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What shells complete of hyptrace's command lines: options, and events, clocks, buffers, guests and fields of
# a FAKE system (fake-android.c, and a /proc with one QEMU) and of captures of the lab.
. tests/integration/lib.sh

tree=$tmp/tracefs
export HYPTRACE_TRACING_DIR=$tree HYPTRACE_ROOT=$tmp/root
"$build/tests/integration/fake-android" "$tree" android16
mkdir "$tree/instances/mine"
printf 'sched:sched_switch\nsched:sched_waking\nkvm:kvm_exit\nkvm:kvm_entry\n' >"$tree/available_events"
echo 'local [boot] mono' >"$tree/trace_clock"
echo 'function_graph function nop' >"$tree/available_tracers"
printf 'schedule\nscsi_init [scsi_mod]\n' >"$tree/available_filter_functions"
qemu=$HYPTRACE_ROOT/proc/107
mkdir -p "$qemu/fd" "$qemu/task/107"
ln -s /usr/bin/qemu-system-aarch64 "$qemu/exe"
ln -s / "$qemu/root"
printf 'qemu-system-aarch64\0-accel\0kvm\0-name\0Guest\0-device\0vhost-vsock-pci,guest-cid=3\0' >"$qemu/cmdline"
echo qemu-system-aar >"$qemu/task/107/comm"
printf 'Name:\tqemu\nNSpid:\t107\n' >"$qemu/task/107/status"
for file in "$qemu/syscall" "$qemu/task/107/syscall"; do echo running >"$file"; done
ln -s /dev/kvm "$qemu/fd/10"
ln -s anon_inode:kvm-vm "$qemu/fd/11"
mkdir "$tmp/cwd"
cp tests/data/guest/*.dat "$tmp/cwd"
cp tests/data/functions/trace.dat "$tmp/cwd/other.dat"
export PATH=$build:$PATH
cd "$tmp/cwd" || exit 1

# ---- bash ------------------------------------------------------------------------------------------

# bashed LINE: what COMPREPLY becomes, in one line
bashed() {
	# shellcheck disable=SC2016
	bash -c '. "$1"; COMP_LINE=$2 COMP_POINT=${#2}; _hyptrace && echo "${COMPREPLY[*]}"' _ "$OLDPWD/cmd/completion/hyptrace.bash" "$1"
}

# LINE|what it becomes
while IFS='|' read -r line expected; do
	is "$(bashed "$line")" "$expected" "$line<TAB>"
done <<'E2'
hyptrace re|record recover report
hyptrace --v|--version
hyptrace sync --wr|--write
hyptrace report --no|--no-guests --no-pager --no-sync --nodate
hyptrace report --p|--pid
hyptrace record -B |hyp mine
hyptrace record -B m|mine
hyptrace record -B hyp -e |hyp kvm sched
hyptrace record -e kvm_e|kvm_entry kvm_exit
hyptrace record -e kvm:kvm_en|kvm_entry
hyptrace record -e hyp:hyp_e|hyp_enter hyp_exit
hyptrace record -C |boot local mono
hyptrace record -p func|function function_graph
hyptrace record -l sc|schedule scsi_init
hyptrace record -A |Guest@3
hyptrace record -A Guest@|3
hyptrace record -e sched:sched_switch -f next_p|next_pid next_prio
hyptrace record -e kvm -o |
hyptrace record -e kvm ls -|
hyptrace record -- -|
hyptrace record --prese|--preset
hyptrace record --daemon|
hyptrace list -e kvm_ex|kvm_exit
hyptrace list --ev|--events
hyptrace report -B |hyp
hyptrace report -F kvm_ex|kvm_exit
hyptrace report -i other.dat -r sched_sw|sched_switch
hyptrace latency --from hyp_en|hyp_enter
hyptrace latency --from sched:sched_waki|sched_waking
hyptrace latency --from kvm_exit --to kvm_entry --key vc|vcpu vcpu_id vcpu_idx vcpu_pc
hyptrace path --guest |
hyptrace path trace.dat trace-Guest.dat --guest |Guest
hyptrace stat --per |guest vcpu
hyptrace stat --show v|vcpus
hyptrace stat --show exits,hyp|exits,hyp exits,hypercall
hyptrace export --tables findi|findings
hyptrace export --tables lost,lat|lost,latency
hyptrace latency --preset w|wakeup
hyptrace record --tsync |auto counter hyp kvm none ping
hyptrace record --preset |qemu virtio
hyptrace path --task |
hyptrace help st|stat
hyptrace stat nothing.dat --per v|vcpu
hyptrace nothing -|
hyptrace recover |
E2
is "$(bash -c '. "$1"; COMP_WORDBREAKS=" "; COMP_LINE="hyptrace record -e kvm:kvm_en" COMP_POINT=29; _hyptrace; echo "${COMPREPLY[*]}"' _ \
	"$OLDPWD/cmd/completion/hyptrace.bash")" kvm:kvm_entry "where a colon ends no word, the whole of it"
is "$(bash -c '. "$1"; complete -p hyptrace' _ "$OLDPWD/cmd/completion/hyptrace.bash")" \
	"complete -o default -F _hyptrace hyptrace" "files where hyptrace knows nothing"
is "$(cd / && HYPTRACE_TRACING_DIR=$tmp/none hyptrace --complete record -e k 2>&1; echo $?)" 0 "no tracefs: nothing, and no message"
is "$(cd / && hyptrace --complete report -F k 2>&1; echo $?)" 0 "nor without a recording"
head -c 3000 trace.dat >cut.dat
is "$(hyptrace --complete report -i cut.dat -F k 2>&1; echo $?)" 0 "nor of a broken one"
is "$(hyptrace --complete 2>&1; echo $?)" "$(hyptrace --complete '' 2>&1; echo $?)" "nothing typed: the commands"

# ---- the tables ----------------------------------------------------------------------------------------

for command in $(hyptrace --complete ''); do
	is "$(hyptrace --complete "$command" - | xargs)" \
		"$(hyptrace "$command" -h | sed -nE '/^  (    )?-/ { s/^ +//; s/  .*//; p }' |
			grep -oE -e '(^| )--?[a-zA-Z][a-z0-9-]*' | tr -d ' ' | sort | xargs)" "$command: each option that -h has"
done

# ---- zsh -----------------------------------------------------------------------------------------------

zsh=${HYPTRACE_ZSH-$(command -v zsh)}
zshed() {
	# shellcheck disable=SC2016
	"$zsh" -f -c 'compadd() { shift; print -r -- "$@"; }; _files() { print files; }
		words=("${(@)argv[2,-1]}") CURRENT=$#words; . "$1"' _ "$OLDPWD/cmd/completion/_hyptrace" "$@"
}
if [ -n "$zsh" ]; then
	is "$(zshed hyptrace re)" "record recover report" "zsh: commands"
	is "$(zshed hyptrace record -e kvm:kvm_e)" "kvm:kvm_entry kvm:kvm_exit" "zsh: events"
	is "$(zshed hyptrace record -A '')" "Guest@3" "zsh: guests"
	is "$(zshed hyptrace recover '')" "files" "zsh: files where hyptrace knows nothing"
else
	skip 4 "no zsh (or HYPTRACE_ZSH=FILE)"
fi

# ---- installation ----------------------------------------------------------------------------------------

cd "$OLDPWD" || exit 1
install=$(make -n O="$build" install DESTDIR=/nowhere)
like "$install" "hyptrace.bash /nowhere/usr/local/share/bash-completion/completions/hyptrace\$" "make install: bash's"
like "$install" "/nowhere/usr/local/share/zsh/site-functions .*/_hyptrace\$" "zsh's"
done_testing
