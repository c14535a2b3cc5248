#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The documents and the program say the same: commands, options, examples, make
# targets. Man pages are clean.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
pages=(Documentation/*.1)
texts=("${pages[@]}" Documentation/*.md README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md)

# Nothing of this machine is touched: there is no tracefs.
export HYPTRACE_TRACING_DIR=$tmp/no-tracefs

# ---- helpers -----------------------------------------------------------------

# The part of a page between one .SH and the next, roff's escapes undone.
section() { # PAGE NAME
	sed -n "/^\.SH $2\$/,/^\.SH /p" "$1" | sed '1d; $ { /^\.SH /d }; s/\\-/-/g; s/\\(aq/'\''/g; s/\\f[A-Z]//g'
}

# Options that a section's tags name: each .TP's next line.
tagged() { # PAGE NAME
	section "$1" "$2" | awk 'tag { print; tag = 0 } /^\.T[PQ]/ { tag = 1 }' |
		grep -oE -e '(^|[ ",])--?[a-zA-Z][a-z0-9-]*' | tr -d ' ",' | sort
}

# Options that -h lists
listed() { # COMMAND
	{ if [ "$1" = agent ]; then "$build/hyptrace-agent" -h; else "$hyptrace" "$1" -h; fi; } |
		sed -nE '/^  (    )?-/ { s/^ +//; s/  .*//; p }' |
		grep -oE -e '(^| )--?[a-zA-Z][a-z0-9-]*' | tr -d ' ' | sort
}

# The command lines of a page's examples, of a Markdown file's code blocks.
all_examples() {
	case $1 in
	*.md) sed -n '/^```/,/^```/p; s/^    \([a-z]\)/\1/p' "$1" | sed 's/^[#$] //' ;;
	*) section "$1" EXAMPLES | sed -n 's/^[#$] //p' ;;
	esac
}

# Those of hyptrace itself, which are run here: but for adb, which has no phone, and imports of what is not here.
examples() {
	all_examples "$1" | grep -E "^(timeout [-a-zA-Z0-9 ]+ )?hyptrace ($(tr '\n' '|' <<<"$commands")hyptrace)( |$)" |
		grep -vE 'hyptrace (adb|import --hyp)'
}

# ---- man pages ------------------------------------------------------------------

for page in "${pages[@]}"; do
	if command -v groff >/dev/null; then
		is "$(groff -man -ww -z -Tutf8 "$page" 2>&1)" "" "$page: groff has nothing to say"
	else
		skip 1 "no groff"
	fi
	if command -v mandoc >/dev/null; then
		# which other pages this machine has is not the page's fault
		is "$(mandoc -Tlint -Wwarning "$page" 2>&1 | grep -v 'referenced manual not found\|outdated mandoc.db')" "" \
			"$page: mandoc has nothing to say"
	fi
	is "$(man -l -E UTF-8 "$page" 2>&1 >/dev/null)" "" "$page: man shows it"
	name=$(basename "$page" .1)
	like "$(sed -n '/^\.SH NAME/{n;p}' "$page")" "^$name .- " "$page: its NAME is $name"
done

commands=$("$hyptrace" -h | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
like "$commands" '^record$' "hyptrace -h lists the commands"
for command in $commands; do
	[ -f "Documentation/hyptrace-$command.1" ]
	ok $? "$command has a man page"
	like "$(section Documentation/hyptrace.1 COMMANDS)" "^\.B $command\$" "hyptrace(1) names $command"
done

for command in $commands agent; do
	is "$(tagged "Documentation/hyptrace-$command.1" OPTIONS)" "$(listed "$command")" \
		"hyptrace-$command(1) has the options that $command -h has"
done

# ---- options of trace-cmd ---------------------------------------------------------

for command in record report; do
	refused=$(tagged "Documentation/hyptrace-$command.1" 'OPTIONS THAT ARE REFUSED')
	wrong=
	for option in $refused; do
		"$hyptrace" $command "$option" x -e sched >"$tmp/out" 2>"$tmp/err"
		[ $? = 2 ] && grep -q 'is not served: ' "$tmp/err" || wrong="$wrong $option"
	done
	is "$wrong" "" "what the page of $command calls refused is refused, with advice"

	if command -v trace-cmd >/dev/null; then
		theirs=$(trace-cmd $command -h 2>&1 | sed -nE 's/^          (--?[a-zA-Z][a-z0-9-]*)[ [].*/\1/p' | sort -u)
		ours=$( (listed $command; echo "$refused") | sort -u)
		is "$(comm -23 <(echo "$theirs") <(echo "$ours"))" "" "each option of trace-cmd $command -h is served or refused"
	else
		skip 1 "no trace-cmd"
	fi
done

# ---- examples -----------------------------------------------------------------------

mkdir "$tmp/cwd"
cp tests/data/perfetto/hyp.pftrace "$tmp/cwd/avf.pftrace"
cp tests/data/qemu/log.txt "$tmp/cwd/qemu.log"
for text in "${texts[@]}"; do
	while read -r line; do
		# as far as the missing tracefs: status 1; a wrong command line is 2. top waits for a recording
		[[ $line != "hyptrace top"* ]] || line="timeout 1 $line"
		( cd "$tmp/cwd" && PATH=$build:$PATH bash -c "$line" ) >"$tmp/out" 2>&1 </dev/null
		[ $? != 2 ] && ! grep -q 'usage:\|not found\|failed to run\|unknown or ambiguous' "$tmp/out"
		ok $? "$text: $line" || diag "$(cat "$tmp/out")"
	done < <(examples "$text")
done

like "$("$hyptrace" report "$tmp/cwd/avf.dat" 2>&1)" 'hyp_enter:' "the example of import --perfetto makes its file"
like "$("$hyptrace" report "$tmp/cwd/qemu.dat" 2>&1)" 'doorbell:' "... and that of import --qemu-log"

# stock's filters crash on files with a hypervisor buffer, and -n kvm is worse than our plugins (stock.t)
is "$(for text in "${texts[@]}"; do all_examples "$text"; done | grep -E 'trace-cmd report.* (-F|-n kvm|--pid|--comm)( |$)')" "" \
	"no example has stock filter events or leave the kvm plugins out"

# ---- README ---------------------------------------------------------------------------

[ "$(wc -l <README.md)" -le 150 ]
ok $? "the README has at most 150 lines"
targets=$(grep -oE '\bmake [a-z-]+' README.md | grep -v 'make -C' | cut -d ' ' -f 2 | sort -u)
like "$targets" '^demo$' "the README names make demo"
for target in $targets; do
	grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile
	ok $? "make $target of the README is there"
done
# its lines of report
sample=$(awk '/^[$] hyptrace report/ { on = 1; next } /^```$/ { on = 0 } on' README.md)
if command -v trace-cmd >/dev/null; then
	printed=$(cd tests/data/functions && TRACEEVENT_PLUGIN_DIR=$build/plugins trace-cmd report -i trace.dat -i trace-Guest.dat 2>&1)
	[ -n "$sample" ]
	ok $? "the README has lines of report"
	is "$(grep -vxF "$printed" <<<"$sample")" "" "... which trace-cmd prints as well, with our plugins"
else
	skip 2 "no trace-cmd"
fi
# newer plugins of libtraceevent print an idle task's state as I
idle='s/\] I ==>/] W ==>/'
# blocks_are DIR NAME: each block of standard input, a command and all that it prints, is what it prints in DIR
blocks_are() {
	local block command n=0

	while IFS= read -r -d $'\1' block; do
		[[ $block == "$ "* ]] || continue
		command=$(sed -n 's/^[$] //p' <<<"$block")
		is "$(cd "$1" && env -i PATH="$build:/usr/bin:/bin" bash -c "${command:-false}" 2>&1 | sed "$idle")" \
			"$(sed '/^[$] /d' <<<"$block" | sed '/./,$!d')" \
			"$2: $command"
		n=$((n + 1))
	done
	[ $n -gt 0 ]
	ok $? "$2 has such blocks"
}
# of Markdown; of a page's EXAMPLES those whose command has the pattern
markdown_blocks() { awk '/^```$/ { if (open) printf "\1"; open = !open; next } open'; }
page_blocks() { # PAGE PATTERN
	section "$1" EXAMPLES | awk -v want="$2" '/^\.EX/ { text = ""; next } /^\.EE/ { if (text ~ want) printf "%s\1", text; next } { text = text $0 "\n" }'
}
blocks_are tests/data/steal "the README's first" < <(sed '/^## /q' README.md | markdown_blocks)
blocks_are tests/data/functions "the README's" < <(sed '1,/^## /d' README.md | markdown_blocks)
blocks_are tests/data/functions "pkvm-host.md's" < <(markdown_blocks <Documentation/pkvm-host.md)
blocks_are tests/data/functions "viewers.md's" < <(markdown_blocks <Documentation/viewers.md)
blocks_are tests/data/steal "x86-host.md's" < <(sed '/^## Files/q' Documentation/x86-host.md | markdown_blocks)
blocks_are tests/data/x86 "x86-host.md's of stock's files" < <(sed -n '/^## Files/,$p' Documentation/x86-host.md | markdown_blocks)
blocks_are tests/data/vhost "virtio-or-vhost.md's" < <(sed -n '/^## /,$p' Documentation/virtio-or-vhost.md | markdown_blocks)
blocks_are tests/data/steal "why.md's of the hog" < <(sed '/^## Why are some/q' Documentation/why.md | markdown_blocks)
blocks_are tests/data/vhost "why.md's of the device" < <(sed -n '/^## Why are some/,/^## Why does/p' Documentation/why.md | markdown_blocks)
blocks_are tests/data/spans "why.md's of the spans" < <(sed -n '/^## Why does/,$p' Documentation/why.md | markdown_blocks)
for page in diff latency; do
	blocks_are tests/data/vhost "hyptrace-$page(1)'s" < <(page_blocks Documentation/hyptrace-$page.1 '^[$] [^\n]* standard[.]dat')
done
wrong=$(grep -oE '\]\([^)#]+\)' README.md | tr -d '])(' | grep -v '^http' | while read -r file; do
	[ -e "$file" ] || echo "$file"
done)
is "$wrong" "" "the files that the README links to are there"

# ---- the code -------------------------------------------------------------------------

# What stands in backquotes in the documents for developers is in the tree, the tests that show a promise too.
for text in Documentation/architecture.md CONTRIBUTING.md SECURITY.md; do
	wrong=$(grep -oE '`[a-z][a-z0-9_./-]*/[a-z0-9_.-]+`' "$text" | tr -d '`' | grep -vE '^(build|remotes|instances)' | sort -u |
		while read -r name; do
			ls -d "$name" "lib/$name" "$name".[ch] "lib/$name".[ch] 2>/dev/null | grep -q . || echo "$name"
		done)
	is "$wrong" "" "$text names files that are there"
	wrong=$(grep -oE '`[a-z_0-9]+\(\)`' "$text" | tr -d '`()' | sort -u | while read -r name; do
		grep -qrE "^[a-z].*\b$name\(" lib cmd agent plugins || echo "$name"
	done)
	is "$wrong" "" "$text names functions that are there"
	wrong=$(grep -oE '\]\([^)#]+\)' "$text" | tr -d '])(' | while read -r file; do
		[ -e "$(dirname "$text")/$file" ] || echo "$file"
	done)
	is "$wrong" "" "the files that $text links to are there"
done
# where the history is whole
if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ]; then
	wrong=$(grep -oE 'commit [0-9a-f]{7,}' CONTRIBUTING.md | cut -d ' ' -f 2 | while read -r commit; do
		git merge-base --is-ancestor "$commit" HEAD 2>/dev/null || echo "$commit"
	done)
	is "$wrong" "" "the commits that CONTRIBUTING.md names are there"
fi
# a journey: file after file, at most five
is "$(awk '/^### /{ n = 0 } /^\| [0-9] \| `/ && ++n > 5' Documentation/architecture.md)" "" "no journey opens more than five files"
while read -r file function; do
	grep -qE "^[a-z].*\b$function\(" "$file"
	ok $? "$file has $function()"
done < <(sed -nE 's/^\| [0-9] \| `([^`]*)` \| `([a-z_0-9]+)\(\)`.*/\1 \2/p' Documentation/architecture.md)

# ---- hostile peers -------------------------------------------------------------------------

for side in recorder agent; do
	wrong=
	names=$(O=$build tests/lab/hostile-stock list $side)
	while read -r name; do
		grep -qF -e "$name" Documentation/hostile-peers.md || wrong="$wrong $name,"
	done <<<"$names"
	is "$wrong" "" "hostile-peers.md has all scripts for the $side"
	[ "$(wc -l <<<"$names")" -ge 40 ]
	ok $? "... which are 40 or more"
done

# A guest that lies may keep a recorder waiting (lib/record/drain/peer.h): the others' agents wait for longer.
record=$("$build/hyptrace" record -h | sed -n 's/.*--guest-timeout.*(\([0-9]*\)s).*/\1/p')
agent=$("$build/hyptrace-agent" -h | sed -n 's/.*--timeout.*(\([0-9]*\)s).*/\1/p')
times=$(sed -n 's/^#define PEER_PATIENCE //p' lib/record/drain/peer.h)
[ -n "$record$agent" ] && [ "$agent" -gt $((record * times)) ]
ok $? "agents wait for longer than recorders do for another guest ($agent > $times x $record)"

# ---- places -------------------------------------------------------------------------------

is "$(grep -nE '(^|[^a-z])/(work|tmp|root|home|workspace)(/|\b)' "${texts[@]}")" "" "no path of one machine in the documents"
done_testing
