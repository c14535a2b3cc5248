#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# debian/ and packaging/rpm, as far as they can be tried without a build: versions, exports, files that they name.
# The builds: make check-packages.
. tests/integration/lib.sh

version=$(sed -n 's/^VERSION := //p' Makefile)
is "$(sed -n '1s/^hyptrace (\(.*\)-[0-9]*) .*/\1/p' debian/changelog)" "$version" "Debian's version, with a revision"
is "$(sed -n 's/^Version: //p' packaging/rpm/hyptrace.spec)" "$version" "the spec's version"
is "$(cat debian/source/format)" "3.0 (quilt)" "Debian's source is not native"

if [ -e "$build/libhyptrace.so" ]; then
	is "$(sed -n '1!s/^ \(.*\)@Base .*/\1/p' debian/libhyptrace0.symbols | sort)" \
		"$(nm -D --defined-only "$build/libhyptrace.so" | awk '{ print $3 }' | sort)" "symbols file: what the library exports"
	env -u MAKEFLAGS make -s install O="$build" DESTDIR="$tmp/root" prefix=/usr libdir=/usr/lib/any STRIP= >"$tmp/log" 2>&1
	ok $? "make install" || diag "$(tail "$tmp/log")"
	# as dh_missing: each file is in a package or in not-installed, and each pattern finds something
	cat debian/*.install debian/not-installed | grep -v '^#' | sort -u >"$tmp/patterns"
	is "$(cd "$tmp/root" && while read -r pattern; do
		compgen -G "$pattern" >/dev/null || echo "$pattern"
	done <"$tmp/patterns" | grep -v kernelshark)" "" "each pattern of debian/*.install names a file"
	is "$(cd "$tmp/root" && find . -type f -o -type l | sed 's,^\./,,' | while read -r file; do
		while read -r pattern; do
			# shellcheck disable=SC2254 # it is a pattern
			case $file in $pattern | $pattern/*) continue 2 ;; esac
		done <"$tmp/patterns"
		echo "$file"
	done)" "" "each file is in a package"
else
	skip 4 "not sanitised: libraries are not installed then"
fi

if git rev-parse HEAD >/dev/null 2>&1 && command -v dpkg-source >/dev/null; then
	env -u MAKEFLAGS make -s dist O="$tmp" >"$tmp/log" 2>&1 && tar xf "$tmp/hyptrace_$version.orig.tar.gz" -C "$tmp"
	ok $? "make dist" || diag "$(cat "$tmp/log")"
	[ ! -e "$tmp/hyptrace-$version/debian" ] && [ -e "$tmp/hyptrace-$version/Makefile" ]
	ok $? "it is the source without debian/"
	cp -r debian "$tmp/hyptrace-$version/"
	(cd "$tmp" && dpkg-source -b "hyptrace-$version") >"$tmp/log" 2>&1
	ok $? "dpkg-source takes it with debian/ beside it" || diag "$(cat "$tmp/log")"
else
	skip 3 "no repository or no dpkg-source"
fi
done_testing
