#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What is for Android's tree, as far as it can be tried without one: the sources and
# flags of Android.bp make an agent, what it and the .rc name is there, and the
# README's service lines are options that the agent has.
. tests/integration/lib.sh

dir=agent/microdroid
bp=$dir/Android.bp

# The strings of a list in Android.bp
strings() {
	sed -n "/^ *$1: \[.*\]/ { p; d }; /^ *$1: \[/,/\]/p" $bp | sed 's@^ *//.*@@' | grep -oE '"([^"\\]|\\.)*"' | sed 's/^"//; s/"$//; s/\\"/"/g'
}

mapfile -t patterns < <(strings srcs)
mapfile -t flags < <(strings cflags)
# shellcheck disable=SC2206 # its patterns are to be expanded
sources=(${patterns[@]})
cc -o "$tmp/agent" -O0 -std=gnu11 -pthread -Ilib "${flags[@]}" "${sources[@]}" >"$tmp/cc" 2>&1
ok $? "its sources and flags make an agent" || diag "$(head -20 "$tmp/cc")"
is "$("$tmp/agent" --version)" "$("$build/hyptrace-agent" --version)" "... of this version"
for file in $(strings init_rc) $(strings license_text); do
	[ -e "$file" ]
	ok $? "$file, which it names, is there"
done

# each "service NAME PATH ARG..." with its options
while read -r _ _ path args; do
	is "$path" /system/bin/hyptrace-agent "a service's path"
	# --version ends it after its options were understood
	# shellcheck disable=SC2086 # words
	"$tmp/agent" $args --version >/dev/null 2>"$tmp/err"
	ok $? "... and its options: '$args'" || diag "$(cat "$tmp/err")"
done < <(grep -hE '^ *service ' $dir/*.rc $dir/README.md)
like "$(grep -A 12 '^service' $dir/hyptrace-agent.rc)" '^ *seclabel u:r:hyptrace_agent:s0$' "the service has the domain ..."
like "$(cat $dir/README.md)" '^ *type hyptrace_agent, domain' "... that the README defines"

done_testing
