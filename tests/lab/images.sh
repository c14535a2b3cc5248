# SPDX-License-Identifier: GPL-2.0-only
# The emulator, the L1 image and the L2 initramfs. Sourced by `build`.
# shellcheck shell=bash

# Bump an image's number to have it made again after a change below.
l1_recipe=2
l2_recipe=4

# What nothing in the lab opens.
junk="./usr/share/doc ./usr/share/man ./usr/share/locale ./usr/share/info ./usr/share/lintian ./usr/share/bug
	./usr/share/icons ./usr/share/fonts ./usr/share/alsa ./usr/share/X11 ./usr/share/zsh ./usr/share/bash-completion
	./usr/share/mime ./usr/share/applications ./usr/share/perl5 ./usr/lib/systemd ./lib/systemd ./lib/udev
	./usr/lib/udev ./usr/include ./usr/share/i18n ./usr/lib/*/gconv ./usr/lib/*/perl-base ./usr/share/qemu-efi*
	./usr/share/AAVMF ./usr/share/qemu/*.dtb ./usr/share/qemu/*.bin ./usr/share/qemu/*.lid ./usr/share/qemu/*.img
	./usr/share/qemu/opensbi* ./usr/share/qemu/openbios* ./usr/share/qemu/u-boot* ./usr/share/qemu/palcode*"

l1_packages="qemu-system-arm trace-cmd libtracefs1 libtraceevent1 libtracecmd1 libzstd1 libsqlite3-0 libcmocka0
	linux-perf busybox-static bash dash coreutils util-linux procps diffutils grep sed mawk findutils gawk
	libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients"
# Only asked for by maintainer scripts, or by scripts of perf's.
l1_skip="-perl -perl-modules-5.36 -python3 -python3-minimal -python3.11 -python3.11-minimal -libpython3-stdlib
	-libpython3.11-stdlib -libpython3.11-minimal -media-types -debconf -perl-base -adduser -passwd -dpkg -init-system-helpers -sysvinit-utils -systemd -udev"

l2_packages="busybox-static trace-cmd"
l2_skip="-debconf -perl-base -dpkg"

# /init must be in the image; all else of it comes from the shared tests, so
# that an edit there needs no new image.
l1_first='#!/bin/busybox sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev 2>/dev/null
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro tests /mnt/tests
exec busybox sh /mnt/tests/lab/l1/init
echo "lab: no /mnt/tests"
busybox poweroff -f'

make_l1() {
	local root=$lab_cache/l1.root size
	# shellcheck disable=SC2086
	lab_unpack arm64 bookworm "$root" "$junk" $l1_packages $l1_skip
	mkdir -p "$root"/{proc,sys,dev,run,tmp,root,etc,mnt/{bin,boot,out,run,tests}}
	printf '%s\n' "$l1_first" >"$root/init"
	chmod 755 "$root/init"
	printf 'root:x:0:0:root:/root:/bin/bash\n' >"$root/etc/passwd"
	printf 'root:x:0:\n' >"$root/etc/group"
	ln -sfn /proc/mounts "$root/etc/mtab"
	add_vhost_device "$root" || echo "no vhost-device-vsock: its tests will be skipped"
	# hyptrace would load it for each list and guest: ./l1/vmm puts it back.
	mkdir "$root/usr/lib/libvirt.away"
	mv "$root"/usr/lib/*/libvirt.so.0* "$root/usr/lib/libvirt.away/"
	[ -e "$root/usr/bin/awk" ] || ln -s gawk "$root/usr/bin/awk"
	# Room to write in; the file is sparse and each VM's changes are its own.
	size=$(($(du -sm "$root" | cut -f 1) * 5 / 4 + 200))
	rm -f "$lab_cache/boot/l1.new"
	mke2fs -q -t ext4 -O ^has_journal -m 0 -E root_owner=0:0 -d "$root" "$lab_cache/boot/l1.new" "${size}M"
	rm -rf "$root"
	mv "$lab_cache/boot/l1.new" "$lab_cache/boot/l1.img"
}

# In no release yet; it needs no newer libraries than bookworm's.
add_vhost_device() {
	lab_apt arm64 sid apt-get update &&
		( cd "$1" && lab_apt arm64 sid apt-get download vhost-device-vsock ) &&
		dpkg-deb --fsys-tarfile "$1"/vhost-device-vsock_*.deb | tar -x -C "$1" ./usr/bin &&
		rm "$1"/vhost-device-vsock_*.deb
}

make_l2() {
	local root=$lab_cache/l2.root
	# shellcheck disable=SC2086
	lab_unpack arm64 bookworm "$root" "$junk ./usr/share ./etc" $l2_packages $l2_skip
	# All of it is unpacked at each boot, whose pages the host gives one by one: only what trace-cmd loads, and
	# libm for hyptrace (debian).
	find "$root"/lib/*/ -type f ! -name 'ld-*' ! -name 'lib[cm].so.6' ! -name 'libgcc_s.*' -delete
	rm -r "$root"/usr/lib/*/traceevent
	mkdir -p "$root"/{proc,sys,dev,run,tmp,bin,lab}
	ln -sfn busybox "$root/bin/sh"
	( cd "$root" && find . | cpio -o -H newc --quiet -R 0:0 | gzip -9 ) >"$lab_cache/boot/l2.new"
	rm -rf "$root"
	mv "$lab_cache/boot/l2.new" "$lab_cache/boot/l2.cpio.gz"
}

make_serve() {
	aarch64-linux-gnu-gcc -static -s -O2 -Wall -o "$lab_cache/boot/serve.new" "$lab_dir/serve.c"
	mv "$lab_cache/boot/serve.new" "$lab_cache/boot/serve"
}

# Debian's own kernel, for `debian`, and what modules for it are built with.
make_debian() {
	local dir=$lab_cache/debian package version m
	lab_apt arm64 bookworm apt-get update
	package=$(lab_apt arm64 bookworm apt-cache show linux-image-cloud-arm64 | sed -n 's/^Depends: \([^ ,]*\).*/\1/p')
	version=${package#linux-image-}
	rm -rf "$dir"
	mkdir -p "$dir/deb"
	( cd "$dir/deb" && lab_apt arm64 bookworm apt-get download "$package" )
	dpkg-deb -x "$dir"/deb/*.deb "$dir/deb"
	mv "$dir"/deb/boot/vmlinuz-* "$dir/vmlinuz"
	for m in $debian_modules; do find "$dir/deb/lib" -name "$m.ko" -exec mv {} "$dir/" \; ; done
	rm -rf "$dir/deb"
	lab_headers arm64 "$version" "$dir"
}

# Debian 12's QEMU, 7.2, with one thread per CPU, sometimes runs stale code
# after the kernel has patched a tracepoint in (README.md has figures); 8.1
# mended that, and 11 takes an eighth less time than 10. So: the machine's QEMU if it is new
# enough, else the one of trixie-backports with its libraries, unpacked here; failing both the
# machine's with one thread.
make_qemu() {
	local own=qemu-system-aarch64 dir=$lab_cache/qemu version arch libs ld
	rm -rf "$dir"
	version=$($own --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
	arch=$(dpkg --print-architecture)
	if [ "$(printf '8.1\n%s\n' "$version" | sort -V | head -n 1)" = 8.1 ]; then
		qemu_wrapper "exec $own -accel tcg,thread=multi"
	elif lab_unpack "$arch" trixie-backports "$dir" "$junk" qemu-system-arm && [ -x "$dir/usr/bin/$own" ]; then
		libs=$(echo "$dir"/usr/lib/*-linux-gnu)
		ld=$(echo "$libs"/ld-linux*.so.*)
		qemu_wrapper "QEMU_MODULE_DIR='$libs/qemu' exec '$ld' --library-path '$libs' '$dir/usr/bin/$own' -L '$dir/usr/share/qemu' -accel tcg,thread=multi"
		"$lab_cache/boot/qemu" --version
	else
		qemu_wrapper "exec $own -accel tcg,thread=single"
	fi
}

qemu_wrapper() {
	printf '#!/bin/sh\n%s "$@"\n' "$1" >"$lab_cache/boot/qemu.new"
	chmod 755 "$lab_cache/boot/qemu.new"
	mv "$lab_cache/boot/qemu.new" "$lab_cache/boot/qemu"
}
