#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which kernel `make lab` prepares: one that is built, which takes long, or one
# that is given. The build itself is a FAKE here.
# shellcheck disable=SC2016 # bash -c has its own $
. tests/integration/lib.sh

export HYPTRACE_LAB_CACHE=$tmp/cache
mkdir -p "$HYPTRACE_LAB_CACHE/boot"
echo first >"$tmp/first image"
echo second >"$tmp/second"

# prepare [KERNEL]: which one there is then, and what was said
prepare() {
	HYPTRACE_LAB_KERNEL=${1-} bash -euc '
		. tests/lab/common.sh
		. tests/lab/kernel.sh
		build_kernel() {
			mkdir -p "$lab_cache/kernel"
			echo build >>"$lab_cache/builds"
			echo "built $(wc -l <"$lab_cache/builds")" >"$lab_cache/kernel/Image"
		}
		prepare_kernel' 2>"$tmp/said"
	echo "status $?: $(cat "$HYPTRACE_LAB_CACHE/boot/Image")"
}

is "$(prepare)" "status 0: built 1" "with nothing said and nothing there it is built"
is "$(prepare; cat "$tmp/said")" "status 0: built 1" "and not again"
is "$(prepare "$tmp/first image")" "status 0: first" "one that is given is taken"
is "$(prepare; cat "$tmp/said")" "status 0: first
lab: the kernel stays $tmp/first image, as given before (HYPTRACE_LAB_KERNEL=build builds one)" \
	"and kept, with a word about it, when nothing is said"
rm "$tmp/first image"
is "$(prepare)" "status 0: first" "also when its file has gone"
is "$(prepare "$tmp/second")" "status 0: second" "until another is given"
is "$(prepare build)" "status 0: built 1" "or the built one is asked for"
is "$(prepare; cat "$tmp/said")" "status 0: built 1" "which then stays"
is "$(prepare "$tmp/none"; cat "$tmp/said")" "status 1: built 1
lab: no file $tmp/none" "a file that is not there"
rm -r "$tmp"/cache/stamps "$tmp"/cache/boot/*
is "$(prepare "$tmp/second")" "status 0: second" "a ready one first of all"
is "$(prepare)" "status 0: second" "stays"
is "$(wc -l <"$HYPTRACE_LAB_CACHE/builds")" 1 "in all that it was built once"

# ---- the build itself: its compiler, and what is said meanwhile ------------------------------------

# kernel WORDS: of kernel.sh, with no programs but those and a make that tells how it is called
mkdir "$tmp/bin"
printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' >"$tmp/bin/make"
chmod +x "$tmp/bin/make"
kernel() {
	bash -euc '. tests/lab/common.sh; . tests/lab/kernel.sh; PATH=$0; "$@"' "$tmp/bin" "$@"
}
like "$(kernel kernel_make Image)" "<CROSS_COMPILE=aarch64-linux-gnu-><Image>" "without ccache the compiler builds it"
cp "$tmp/bin/make" "$tmp/bin/ccache"
like "$(kernel kernel_make Image)" "<CC=ccache aarch64-linux-gnu-gcc><HOSTCC=ccache gcc><Image>" "with ccache, ccache"

# said OBJECTS SECONDS: while so many are compiled, and so long
for program in date grep sed tail tr cut; do
	ln -s "$(command -v $program)" "$tmp/bin/"
done
said() {
	{
		echo "compiling since $(($(date +%s) - $2))"
		yes '  CC      a.o' | head -n "$1"
	} >"$tmp/log"
	kernel progress_kernel_build "$tmp/log"
}
is "$(said 0 0 | sed 's/[0-9]*$//')" "compiling since " "before the first object: the last line"
is "$(said 129 55)" "129 of about 1290 objects, some 9 minutes more" "what remains is said in minutes"
is "$(said 1300 600)" "1300 of about 1290 objects, some 0 minutes more" "more objects than thought"

# ---- packages come from this machine's mirror, or from nowhere -------------------------------------

# fetch SOURCE...: the lab's first use of apt on a machine with those, and the sources that it then has
fetch() {
	printf '#!/bin/sh\n[ "$1" != indextargets ] || printf "%%s\\n" %s\n' "$*" >"$tmp/bin/apt-get"
	chmod +x "$tmp/bin/apt-get"
	rm -rf "$HYPTRACE_LAB_CACHE/apt"
	PATH=$tmp/bin:$PATH bash -uc '. tests/lab/common.sh; lab_apt arm64 bookworm apt-get update' 2>&1
	echo "status $?: $(cut -d " " -f 3- "$HYPTRACE_LAB_CACHE"/apt/*/sources.list 2>/dev/null)"
}
is "$(fetch http://security.test/debian-security/ http://mirror.test/debian/)" \
	"status 0: http://mirror.test/debian bookworm main" "the lab takes the machine's own mirror of Debian"
is "$(fetch http://security.test/debian-security/ | sed 's/ is needed: .*/ is needed/')" \
	"lab: a mirror of Debian is needed
status 1: " "without one nothing is fetched, and that is said"

done_testing
