#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The OpenEmbedded layer, as far as it can be tried without bitbake: the recipe's own functions run in a shell
# with its variables as bitbake would give them, on what is built here; each file that they install is in a
# package; what it depends on is what the Makefile looks for; the kernel's options are the lab kernel's.
# shellcheck disable=SC2034,SC2154 # variables are the recipe's
. tests/integration/lib.sh

layer=packaging/openembedded
recipe=$layer/recipes-devtools/hyptrace/hyptrace_git.bb
kernel=$layer/recipes-kernel/linux
# shellcheck disable=SC2016 # bitbake's, not the shell's
joined=$(grep -v 'd.getVar' $recipe | sed -e ':a' -e '/\\$/ { N; s/\\\n *//; ba }')

# bitbake's expansion, which comes before any shell's
expand() { perl -pe 's/\$\{([\w-]+)\}/$ENV{$1} \/\/ die "no $1"/ge'; }
# value NAME: of a variable, whose name has no ${}
value() {
	expand <<<"$joined" | perl -ne 'BEGIN { $name = shift } print "$1\n" if /^\Q$name\E *(?:[?+]*=|=\+) *"(.*)"$/' -- "$1"
}
body() { sed -n "/^$1() {/,/^}/p" <<<"$joined" | sed '1d;$d' | expand; }

# ---- it builds and installs --------------------------------------------------------------

export PN=hyptrace S=$PWD B=$build D=$tmp/image
export CC=cc CXX=c++ AR=ar OBJCOPY=objcopy
export prefix=/usr bindir=/usr/bin libdir=/usr/lib64 nonarch_libdir=/usr/lib includedir=/usr/include
export datadir=/usr/share mandir=/usr/share/man systemd_system_unitdir=/usr/lib/systemd/system
oe_runmake() {
	eval "make $(value EXTRA_OEMAKE) $(printf '%q ' "$@")" >"$tmp/log" 2>&1
}
# O names this very build: the compiler has nothing to do, but make sees each name
( eval "$(body do_compile)" )
ok $? "do_compile" || diag "$(tail "$tmp/log")"
( set -e; eval "$(body do_install)" )
ok $? "do_install" || diag "$(tail "$tmp/log")"
like "$("$D/usr/bin/hyptrace" --version)" "^hyptrace $(value PV)" "the program, of the recipe's version"
[ -x "$D/usr/lib/hyptrace/shim/trace-cmd" ] && [ -e "$D/usr/lib64/traceevent/plugins/hyp.so" ] &&
	[ -e "$D/usr/lib/systemd/system/$(value SYSTEMD_SERVICE:hyptrace-agent)" ]
ok $? "the trace-cmd link, the plugins and the service" || diag "$(find "$D")"

# what bitbake's defaults put into packages, and what the recipe does
packaged="$(value FILES:hyptrace) $(value FILES:hyptrace-agent) $(value FILES:hyptrace-plugins) $(value FILES:hyptrace-dev)
	$bindir/* $libdir/lib*.so.* $libdir/lib*.so $libdir/lib*.a $libdir/pkgconfig $includedir $mandir"
is "$(set -f; cd "$D" && find . -type f -o -type l | sed 's/^\.//' | grep -v '/plugin-hyptrace.so$' | while read -r file; do
	in=
	for pattern in $packaged; do
		# shellcheck disable=SC2254 # it is a pattern
		case $file in $pattern | $pattern/*) in=1 ;; esac
	done
	[ -n "$in" ] || echo "$file"
done)" "" "each file is in a package"

while read -r file sum; do
	is "$(md5sum <"$file" | cut -d ' ' -f 1)" "$sum" "$file is the licence that the recipe knows"
done < <(value LIC_FILES_CHKSUM | tr ' ' '\n' | sed -n 's,^file://\(.*\);md5=,\1 ,p')
cmp -s "$(LAYERDIR=$layer && export LAYERDIR && sed -n 's/^HYPTRACE_TREE := "\(.*\)"/\1/p' $layer/conf/layer.conf | expand)/Makefile" Makefile
ok $? "the layer's tree is this one"

# ---- it depends on what the Makefile looks for ----------------------------------------------

# the recipes of OpenEmbedded that have these
declare -A recipes=([libzstd]=zstd [ncursesw]=ncurses [libdw]=elfutils [libelf]=elfutils [libisal]=isa-l)
wanted=$(sed -nE 's/^PACKAGES \+?:?= *(.*)/\1/p; s/^MICROHTTPD := .*--exists ([^ ]*) .*/\1/p' Makefile | tr ' ' '\n' | sort -u)
depends=" $(value DEPENDS) $(sed -nE 's/^PACKAGECONFIG\[.*\] = ",,(.*)"/\1/p' <<<"$joined" | xargs) "
is "$(for p in $wanted; do [[ $depends = *" ${recipes[$p]:-$p} "* ]] || echo "$p"; done)" "" "every library of the Makefile's is named: $(xargs <<<"$wanted")"
at_most=$(for p in $depends; do case $p in *-native) continue ;; esac
	for w in $wanted; do [ "${recipes[$w]:-$w}" = "$p" ] && continue 2; done; echo "$p"; done)
is "$at_most" "" "... and none that it does not look for"

# ---- the kernel's options ---------------------------------------------------------------------

for part in host guest el2; do
	[ -s $kernel/hyptrace/$part.cfg ]
	ok $? "$part.cfg is there"
	is "$(grep -vE '^#' $kernel/hyptrace/$part.cfg | grep -vxFf tests/lab/kernel.config)" "" "$part.cfg: options of the kernel that the lab boots and records"
done
like "$(cat "$kernel/linux-yocto_%.bbappend")" 'file://%s.cfg' "the kernel's recipe takes them by name"

done_testing
