#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# packaging/rpm/hyptrace.spec with the last commit's source: built by this machine's rpmbuild (on Debian too, which
# has no macros of systemd), and its packages looked into. Part of make check-packages.
mkdir -p "${O:-build}"
. tests/integration/lib.sh

command -v rpmbuild >/dev/null || skip_all "no rpmbuild: apt-get install rpm"
git rev-parse HEAD >/dev/null 2>&1 || skip_all "make dist needs the repository"
version=$(sed -n 's/^VERSION := //p' Makefile)
spec=packaging/rpm/hyptrace.spec
is "$(sed -n 's/^Version: //p' $spec)" "$version" "its version is the Makefile's"

env -u MAKEFLAGS make -s dist O="$tmp" >"$tmp/log" 2>&1
ok $? "make dist" || diag "$(cat "$tmp/log")"
is "$(tar tf "$tmp/hyptrace_$version.orig.tar.gz" | grep -cE "^hyptrace-$version/(Makefile|debian/.*)$")" 1 "the source, without debian/"

PATH=/usr/lib/ccache:$PATH nice rpmbuild -bb --nodeps --define "_sourcedir $tmp" --define "_topdir $tmp/rpm" \
	--define "_unitdir /usr/lib/systemd/system" $spec >"$tmp/log" 2>&1
ok $? "rpmbuild" || diag "$(tail -n 30 "$tmp/log")"
is "$(find "$tmp/rpm/RPMS" -name '*.rpm' -printf '%f\n' | grep -v debug | sed "s/-$version.*//" | sort | paste -sd ' ')" \
	"hypertrace-guest-devel hyptrace hyptrace-agent hyptrace-devel hyptrace-libs hyptrace-plugins" "its packages"

mkdir "$tmp/root"
for package in "$tmp"/rpm/RPMS/*/*.rpm; do
	rpm2cpio "$package" | (cd "$tmp/root" && cpio -idm --quiet)
done
file=tests/data/lab-protected.dat
is "$(env -i "$tmp/root/usr/bin/hyptrace" report $file 2>&1 | md5sum)" "$("$build/hyptrace" report $file 2>&1 | md5sum)" \
	"the program reads a file"
is "$(grep -h '^ExecStart=' "$tmp/root/usr/lib/systemd/system/hyptrace-agent.service")" \
	"ExecStart=/usr/bin/hyptrace-agent \$OPTIONS" "the agent's unit names the program's place"
done_testing
