#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The decoders in the program itself: no plugins are installed, others' are added, and files of ours change nothing.
. tests/integration/lib.sh

mkdir "$tmp/bin" "$tmp/home" "$tmp/plugins"
cp "$build/hyptrace" "$tmp/bin/"
lab=tests/data/lab-stock-arm64.dat
# without AddressSanitizer's complaint about a module that a plugin of libtraceevent leaves loaded
export HOME=$tmp/home ASAN_OPTIONS=detect_leaks=0
unset TRACEEVENT_PLUGIN_DIR

# alone COMMAND...: hyptrace with no environment, copied away from the tree's plugins
alone() {
	env -i ASAN_OPTIONS=detect_leaks=0 "$tmp/bin/hyptrace" "$@" 2>&1
}

# beside COMMAND...: with the plugins of $1
beside() {
	local dir=$1
	shift
	TRACEEVENT_PLUGIN_DIR=$dir "$build/hyptrace" "$@" 2>&1
}

# ---- nothing is installed -------------------------------------------------------------

like "$(alone report $lab)" ' kvm_exit: +IRQ: HSR_EC: 0x0000 \(UNKNOWN\), PC: 0xffff8000802f0768$' "kvm_exit is decoded"
unlike "$(alone report -q $lab)" "CANT FIND FIELD" "nothing else is left undecoded"
like "$(alone report -N $lab | grep -m 1 kvm_sys_access)" "FAILED TO PARSE" "report -N does without"
functions="tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat"
for files in tests/data/lab-protected.dat tests/data/lab-nvhe.dat $lab "$functions"; do
	name=${files##*/}
	# shellcheck disable=SC2086
	if command -v trace-cmd >/dev/null; then
		same <(alone report $files) <(TRACEEVENT_PLUGIN_DIR=$build/plugins trace-cmd report ${files//tests\//-i tests/} 2>&1) \
			"report $name: the same as stock with our plugins"
	else
		skip 1 "no trace-cmd"
	fi
	for command in "stat" "export --json" "latency --preset wakeup" "report --json"; do
		# shellcheck disable=SC2086
		same <(alone $command $files) <(beside "$build/plugins" $command $files) "$command $name: the same with them"
	done
	if alone help | grep -q '^ *sql '; then
		query='SELECT name, text FROM events ORDER BY time, cpu, name, text LIMIT 20000'
		# shellcheck disable=SC2086
		same <(alone sql $files "$query") <(beside "$build/plugins" sql $files "$query") "sql $name: the same with them"
	fi
done

like "$(alone report -E tests/data/hypertrace/example.dat)" "^ftrace:print$" "report -E lists the file's events"
same <(alone report -E tests/data/hypertrace/example.dat) <(alone report -E -N tests/data/hypertrace/example.dat) \
	"and none that a decoder makes for itself"

# ---- files that libtraceevent finds -----------------------------------------------------

# plugin NAME TEXT OURS: prints TEXT for each hyp_enter; its option "text" replaces TEXT
plugin() {
	cat >"$tmp/plugin.c" <<E2
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>
struct tep_plugin_option tep_plugin_options[] = { { .name = "text", .plugin_alias = "foreign", .value = "$2" }, { 0 } };
const char tep_plugin_alias[] = "foreign";
static int print(struct trace_seq *s, struct tep_record *record, struct tep_event *event, void *context)
{
	return trace_seq_printf(s, "%s", tep_plugin_options->value) < 0;
}
int tep_plugin_loader(struct tep_handle *tep)
{
	return tep_register_event_handler(tep, -1, "hypervisor", "hyp_enter", print, 0);
}
void tep_plugin_unloader(struct tep_handle *tep)
{
	tep_unregister_event_handler(tep, -1, "hypervisor", "hyp_enter", print, 0);
}
$3
E2
	# shellcheck disable=SC2046
	gcc -shared -fPIC -o "$tmp/plugins/$1.so" "$tmp/plugin.c" $(pkg-config --cflags libtraceevent)
}

hyp=tests/data/lab-protected.dat
alone report $hyp >"$tmp/alone"
if command -v gcc >/dev/null; then
	plugin old "an old one of ours" "int hyptrace_plugin_text(void) { return 0; }"
	same <(beside "$tmp/plugins" report $hyp) "$tmp/alone" "a file of ours, of another version, is passed over"
	plugin old foreign ""
	is "$(beside "$tmp/plugins" report $hyp | grep -c ' hyp_enter: *foreign$')" "$(grep -c ' hyp_enter: ' "$tmp/alone")" \
		"another's decodes what it registers for"
	same <(beside "$tmp/plugins" report $hyp | grep -v ' hyp_enter: ') <(grep -v ' hyp_enter: ' "$tmp/alone") \
		"and nothing else"
	is "$(beside "$tmp/plugins" report -O foreign:text=chosen $hyp | grep -c ' hyp_enter: *chosen$')" \
		"$(grep -c ' hyp_enter: ' "$tmp/alone")" "its options are given to it"
	is "$(beside "$tmp/plugins" report -N $hyp | grep -c ' hyp_enter: *foreign$')" 0 "report -N does without it"
	echo 'int nothing;' | gcc -shared -fPIC -x c -o "$tmp/plugins/old.so" -
	out=$(beside "$tmp/plugins" report $hyp)
	like "$out" "^hyptrace: warning: left out a plugin: $tmp/plugins/old.so: undefined symbol: tep_plugin_loader$" "a library is named"
	same <(grep -v '^hyptrace: ' <<<"$out") "$tmp/alone" "and left out"
	rm "$tmp/plugins/old.so"
else
	skip 7 "no gcc"
fi
echo garbage >"$tmp/plugins/garbage.so"
out=$(beside "$tmp/plugins" report $hyp)
like "$out" "^hyptrace: warning: left out a plugin: $tmp/plugins/garbage.so: " "a damaged file is named"
same <(grep -v '^hyptrace: ' <<<"$out") "$tmp/alone" "and left out"
same <(beside "$tmp/plugins" stat $hyp) <(alone stat $hyp) "a command that prints no events loads none"
done_testing
