# SPDX-License-Identifier: GPL-2.0-only
SUMMARY = "Records the pKVM hypervisor, its host and guests on one timeline"
LICENSE = "GPL-2.0-only & LGPL-2.1-or-later"
LIC_FILES_CHKSUM = "file://LICENSES/GPL-2.0;md5=b234ee4d69f5fce4486a80fdaf4a4263 \
                    file://LICENSES/LGPL-2.1;md5=4fbd65380cdd255951079008b364516c"
PV = "0.1.0"

DEPENDS = "libtraceevent zstd zlib"

# the tree in which this layer lies
inherit externalsrc pkgconfig systemd
EXTERNALSRC = "${@os.path.realpath(d.getVar('HYPTRACE_TREE'))}"

# what the Makefile finds by pkg-config, and leaves out where it is not
PACKAGECONFIG ??= "sql screen functions"
PACKAGECONFIG[sql] = ",,sqlite3 libedit"
PACKAGECONFIG[screen] = ",,ncurses"
PACKAGECONFIG[functions] = ",,elfutils"
PACKAGECONFIG[isal] = ",,isa-l"
PACKAGECONFIG[ctf] = ",,babeltrace2"
PACKAGECONFIG[watch] = ",,libtracefs libmicrohttpd"

# CFLAGS, CPPFLAGS and LDFLAGS come by the environment, to which the Makefile adds
EXTRA_OEMAKE = "O='${B}' CC='${CC}' CXX='${CXX}' AR='${AR}' OBJCOPY='${OBJCOPY}' STRIP= \
    prefix='${prefix}' bindir='${bindir}' libdir='${libdir}' includedir='${includedir}' mandir='${mandir}' \
    bashcompdir='${datadir}/bash-completion/completions' zshcompdir='${datadir}/zsh/site-functions' \
    unitdir='${systemd_system_unitdir}'"

do_compile() {
    oe_runmake -C ${S} all
}

do_install() {
    oe_runmake -C ${S} install DESTDIR='${D}'
}

PACKAGES =+ "${PN}-agent ${PN}-plugins"
FILES:${PN}-agent = "${bindir}/hyptrace-agent ${systemd_system_unitdir}/hyptrace-agent.*"
FILES:${PN}-plugins = "${libdir}/traceevent/plugins"
FILES:${PN} += "${systemd_system_unitdir}/hyptrace-flight.service ${systemd_system_unitdir}/hyptrace-ring.service ${systemd_system_unitdir}/hyptrace-watch.service ${nonarch_libdir}/hyptrace ${datadir}/bash-completion ${datadir}/zsh"
FILES:${PN}-dev += "${prefix}/src"

# the agent lets the host in, the flight recorder takes memory: an image enables them
SYSTEMD_PACKAGES = "${PN} ${PN}-agent"
SYSTEMD_SERVICE:${PN} = "hyptrace-flight.service hyptrace-ring.service hyptrace-watch.service"
SYSTEMD_SERVICE:${PN}-agent = "hyptrace-agent.socket"
SYSTEMD_AUTO_ENABLE:${PN} = "disable"
SYSTEMD_AUTO_ENABLE:${PN}-agent = "disable"

COMPATIBLE_HOST = "(aarch64|x86_64).*-linux"
