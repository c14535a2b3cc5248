# SPDX-License-Identifier: GPL-2.0-only
# The lab's kernel: Debian's newest source package with the hypervisor's trace
# instance, cross-built with kernel.config. Sourced by `build`.
# shellcheck shell=bash

kernel_needs=7.1	# the first with remotes/hypervisor
kernel_objects=1290	# about how many are built, for the progress shown

# The options alone: a comment changed shall not cost a build.
kernel_config() { grep -v -e '^#' -e '^$' "$lab_dir/kernel.config"; }

# The newest source package in SUITE, if it is new enough.
kernel_package() {
	local newest
	newest=$(lab_apt arm64 "$1" apt-cache pkgnames linux-source- |
		grep -E '^linux-source-[0-9]+\.[0-9]+$' | sort -V | tail -n 1)
	[ "$(printf 'linux-source-%s\n%s\n' "$kernel_needs" "$newest" | sort -V | tail -n 1)" = "$newest" ] &&
		echo "$newest"
}

# Only what the build reads: most of the source is drivers and other
# architectures, of which only the Kconfig files are looked at.
kernel_unpack() {
	local deb=$1 tree=$2 top
	local -a drop=(--exclude='*/Documentation/*.rst' --exclude='*/Documentation/*.yaml' '--exclude=*/arch/*.dts'
		--exclude='*/tools/testing/*' --exclude='*/tools/perf/*')
	local d
	top=${deb##*/}
	top=${top%%_*}
	for d in drivers/gpu drivers/net/ethernet drivers/net/wireless drivers/media drivers/staging \
		drivers/infiniband drivers/scsi drivers/iio drivers/usb drivers/accel drivers/platform sound \
		fs/xfs fs/btrfs fs/bcachefs fs/ocfs2 fs/smb fs/nfs fs/f2fs \
		arch/alpha arch/arc arch/arm arch/csky arch/hexagon arch/loongarch arch/m68k arch/microblaze \
		arch/mips arch/nios2 arch/openrisc arch/parisc arch/powerpc arch/riscv arch/s390 arch/sh \
		arch/sparc arch/um arch/x86 arch/xtensa; do
		drop+=(--exclude="$top/$d/*.[chS]")
	done
	mkdir -p "$tree"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$top.tar.xz" |
		xz -dc -T0 | tar -x -C "$tree" --strip-components=1 "${drop[@]}"
}

# kernel_make ARGUMENTS: with ccache where there is one
kernel_make() {
	local -a compilers=()

	! command -v ccache >/dev/null || compilers=(CC="ccache aarch64-linux-gnu-gcc" HOSTCC="ccache gcc")
	make -C "$lab_cache/linux" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- "${compilers[@]}" "$@"
}

build_kernel() {
	local suite package='' tree=$lab_cache/linux out=$lab_cache/kernel option
	for suite in trixie-backports sid; do
		lab_apt arm64 "$suite" apt-get update
		if package=$(kernel_package "$suite"); then break; fi
	done
	[ -n "$package" ] || { echo "Debian has no linux-source >= $kernel_needs"; return 1; }

	rm -rf "$tree" "$lab_cache/kernel.deb"
	mkdir -p "$lab_cache/kernel.deb"
	echo "fetching $package from $suite"
	( cd "$lab_cache/kernel.deb" && lab_apt arm64 "$suite" apt-get download "$package" )
	echo "unpacking $package"
	kernel_unpack "$lab_cache/kernel.deb/$package"_*.deb "$tree"
	rm -rf "$lab_cache/kernel.deb"

	kernel_config >"$tree/lab.config"
	kernel_make -s KCONFIG_ALLCONFIG=lab.config allnoconfig
	# A name that is gone or unmet is dropped without a word.
	while read -r option; do
		case $option in
		*=n) ;;
		*) grep -q -x "$option" "$tree/.config" || echo "kernel.config: $option did not hold" ;;
		esac
	done <"$tree/lab.config"

	# Not -s: the lines tell how far it is.
	echo "compiling since $(date +%s)"
	kernel_make -j "$(nproc)" Image
	mkdir -p "$out"
	cp "$tree/arch/arm64/boot/Image" "$out/Image"
	cp "$tree/.config" "$out/config"
	kernel_make -s kernelrelease >"$out/version"
	[ -n "${HYPTRACE_LAB_KEEP:-}" ] || rm -rf "$tree"
}

# The line shown now and then.
progress_kernel_build() {
	local n since left
	n=$(grep -c -E '^  (CC|AS|HOSTCC) ' "$1") || :
	since=$(sed -n 's/^compiling since //p' "$1")
	if [ "$n" = 0 ] || [ -z "$since" ]; then
		lab_last_line "$1"
	else
		left=$((n < kernel_objects ? ($(date +%s) - since) * (kernel_objects - n) / n : 0))
		echo "$n of about $kernel_objects objects, some $(((left + 59) / 60)) minutes more"
	fi
}

given_kernel() {
	case $HYPTRACE_LAB_KERNEL in
	*.zst) zstd -q -d -f "$HYPTRACE_LAB_KERNEL" -o "$lab_cache/boot/Image.new" ;;
	*) cp "$HYPTRACE_LAB_KERNEL" "$lab_cache/boot/Image.new" ;;
	esac
	mv "$lab_cache/boot/Image.new" "$lab_cache/boot/Image"
}

built_kernel() {
	cp "$lab_cache/kernel/Image" "$lab_cache/boot/Image.new"
	mv "$lab_cache/boot/Image.new" "$lab_cache/boot/Image"
}

# A ready one that was given stays until another is asked for: nobody wants a build by surprise.
prepare_kernel() {
	local given=${HYPTRACE_LAB_KERNEL:-} now
	now=$(cat "$lab_cache/stamps/kernel" 2>/dev/null) || now=
	if [ -z "$given" ] && [ "${now#given }" != "$now" ]; then
		now=${now#given }
		lab_say "the kernel stays ${now% * *}, as given before (HYPTRACE_LAB_KERNEL=build builds one)"
	elif [ -z "$given" ] || [ "$given" = build ]; then
		lab_step kernel-build "$(lab_key 1 "$(kernel_config)")" build_kernel
		lab_step kernel "built $(cat "$lab_cache/stamps/kernel-build")" built_kernel
	else
		[ -f "$given" ] || lab_die "no file $given"
		lab_step kernel "given $given $(stat -c '%s %Y' "$given")" given_kernel
	fi
}
