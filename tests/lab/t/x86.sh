# SPDX-License-Identifier: GPL-2.0-only
# For the tests on the x86-64 host (tests/lab/x86): the TAP of the integration tests,
# and the parts of that lab, built when they are not there.
#
#   . "$(dirname "$0")/x86.sh"
#   x86 run -o "$tmp/out" -- 'command line in L1'
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
# shellcheck source=tests/integration/lib.sh
. tests/integration/lib.sh

# The lab's cache is in the user's home.
home=$(getent passwd "$(id -u)" | cut -d : -f 6)
x86() {
	HOME=$home tests/lab/x86 "$@"
}

x86 build || {
	echo "Bail out! the x86 lab cannot be built"
	exit 1
}

# copy_hyptrace DIR: with the libraries that it was linked with, as L1's are Debian 12's:
# DIR/ld.so --library-path DIR DIR/hyptrace runs it.
copy_hyptrace() {
	mkdir -p "$1"
	cp "$build/hyptrace" "$1/"
	ldd "$build/hyptrace" | sed -nE 's#.*=> (/[^ ]*) .*#\1#p' | xargs -I {} cp -L {} "$1/"
	cp -L "$(ldd "$build/hyptrace" | sed -nE 's#^\s*(/[^ ]*/ld-linux[^ ]*) .*#\1#p')" "$1/ld.so"
}
