#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Debian's packages: built and judged by lintian in a chroot that has no more than debian/control asks for,
# then installed, used and purged in a clean one. Needs root and a mirror of Debian (make check-packages).
mkdir -p "${O:-build}"
. tests/integration/lib.sh

suite=${SUITE:-bookworm}
here=tests/chroot/enter
needs=$(sed -n '/^Build-Depends:/,/^$/p' debian/control | sed -n 's/^ \([a-z0-9+.-]*\).*/\1/p' |
	sed 's/-compat$//' | tr '\n' ' ')
mkdir "$tmp/debs"

"$here" "$suite" "build-essential ccache lintian $needs" "$tmp/debs" sh -c '
	cd /src && nice dpkg-buildpackage -us -uc -b -j"$(nproc)" >/out/log 2>&1 && cp ../*.deb /out &&
	lintian --allow-root --fail-on error ../*.changes >/out/lintian 2>&1' 2>"$tmp/why"
status=$?
[ $status != 77 ] || skip_all "$(tail -n 1 "$tmp/why")"
is "$(cd "$tmp/debs" && ls -- *.deb | sed 's/_.*//' | grep -v dbgsym | sort | paste -sd ' ')" \
	"hypertrace-dkms hyptrace hyptrace-agent hyptrace-plugins libhypertrace-guest-dev libhyptrace-dev libhyptrace0" \
	"dpkg-buildpackage builds them" || diag "$(tail -n 30 "$tmp/debs/log" "$tmp/why")"
is $status 0 "lintian finds no error" || diag "$(cat "$tmp/debs/lintian")"
rm -f "$tmp"/debs/*dbgsym*

cat >"$tmp/debs/use" <<'E2'
exec 2>&1
files() { find / -xdev \( -path /proc -o -path /tmp -o -path /out -o -path /run -o -path /src -o -path /var/cache -o -path /var/lib/dpkg \
	-o -path /var/lib/apt -o -path /var/log \) -prune -o -print | sort; }
install() { apt-get install -y -q --no-install-recommends "$@" >/tmp/log 2>&1 || { tail -n 20 /tmp/log; exit 1; }; }
apt-get update -q >/tmp/log || { cat /tmp/log; exit 1; }
install dkms trace-cmd gcc libc6-dev pkg-config systemd libtraceevent-dev libzstd-dev zlib1g-dev \
	libbabeltrace2-0 libdw1 libedit2 libisal2 libsqlite3-0 libncursesw6
files >/tmp/before
cd /out
install ./*.deb
hyptrace --version
hyptrace-agent --version
for test in read units libraries; do (cd /src && debian/tests/$test); done
ls /usr/src/hypertrace-*/dkms.conf
ls /usr/share/man/man1/hyptrace-record.1.gz /usr/share/man/man3/hyptrace.3.gz
dpkg --purge $(dpkg-query -W -f '${Package} ' '*hyptrace*' '*hypertrace*') >/tmp/log || cat /tmp/log
files | diff /tmp/before - && echo "purged: nothing left"
E2
version=$(sed -n 's/^VERSION := //p' Makefile)
is "$("$here" "$suite" "" "$tmp/debs" sh /out/use 2>"$tmp/why")" "hyptrace $version
hyptrace-agent $version
read: fine
units: fine
libraries: fine
/usr/src/hypertrace-$version/dkms.conf
/usr/share/man/man1/hyptrace-record.1.gz
/usr/share/man/man3/hyptrace.3.gz
purged: nothing left" "installed, used and purged" || diag "$(cat "$tmp/why")"
done_testing
