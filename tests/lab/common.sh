# SPDX-License-Identifier: GPL-2.0-only
# Shared by the scripts of the lab: names, steps with progress, private apt.
# shellcheck shell=bash

lab_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Read by the scripts which source this file.
# shellcheck disable=SC2034
lab_top=$(cd "$lab_dir/../.." && pwd)
lab_cache=${HYPTRACE_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hyptrace-lab}

# In the order in which they need each other: vsock to oneself.
# shellcheck disable=SC2034
debian_modules="vsock vmw_vsock_virtio_transport_common vsock_loopback"

lab_say() { printf 'lab: %s\n' "$*" >&2; }
lab_die() { lab_say "$*"; exit 1; }

# One build at a time: a second one waits here, then finds the work done.
lab_lock() {
	mkdir -p "$lab_cache"
	exec 9>"$lab_cache/lock"
	flock -n 9 || { lab_say "waiting for another build in $lab_cache"; flock 9; }
}

# step NAME KEY FUNCTION: run FUNCTION unless it was already done for KEY.
# The stamp is written last and by rename, so an interrupted step is redone.
lab_step() {
	local name=$1 key=$2 stamp=$lab_cache/stamps/$1 start=$SECONDS alive status
	shift 2
	[ "$(cat "$stamp" 2>/dev/null)" != "$key" ] || return 0
	rm -f "$stamp"
	mkdir -p "$lab_cache/stamps" "$lab_cache/log"
	lab_say "$name ..."
	# Say now and then what the step is at, so that nobody thinks it hangs.
	( while sleep 20 >/dev/null 2>&1; do
		lab_say "$name ... $((SECONDS - start)) s, $(lab_progress "$name" "$lab_cache/log/$name")"
	  done ) 9>&- &
	alive=$!
	# Not as the condition of an `if`: in there set -e means nothing.
	set +e
	( set -eu; "$@" ) >"$lab_cache/log/$name" 2>&1 9>&-
	status=$?
	set -e
	kill "$alive"; wait "$alive" 2>/dev/null || :
	if [ "$status" != 0 ]; then
		tail -n 20 "$lab_cache/log/$name" >&2
		lab_die "$name failed; the whole log is $lab_cache/log/$name"
	fi
	printf '%s\n' "$key" >"$stamp.new"
	mv "$stamp.new" "$stamp"
	lab_say "$name done in $((SECONDS - start)) s"
}

# What a step is at: its own word for it, or the last line of its log.
lab_progress() {
	local own=progress_${1//-/_}
	if declare -F "$own" >/dev/null; then "$own" "$2"; else lab_last_line "$2"; fi
}

lab_last_line() { tail -n 1 "$1" 2>/dev/null | tr -d '\r' | cut -c 1-60; }

# A step's key: what its result depends on.
lab_key() { printf '%s\n' "$@" | sha256sum | cut -d ' ' -f 1; }

# The Debian mirror which this machine's own apt uses.
lab_mirror() {
	local uri
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/*$') ||
		lab_die "a mirror of Debian is needed: this machine's apt has none among its sources (its URI ends in /debian)"
	printf '%s\n' "${uri%/}"
}

# lab_apt ARCH SUITE COMMAND...: apt-get or apt-cache with lists, cache and
# status file of its own, so that the machine's packages are neither read nor
# touched. The machine's apt.conf (a proxy, say) still holds.
lab_apt() {
	local arch=$1 suite=$2 dir=$lab_cache/apt/$1-$2 command=$3 mirror
	shift 3
	mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/empty"
	[ -f "$dir/status" ] || : >"$dir/status"
	[ -f "$dir/sources.list" ] || {
		mirror=$(lab_mirror) || return
		# backports stand on their suite
		printf "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror %s main\n" \
			"$suite" ${suite%-backports} | sort -u >"$dir/sources.list"
	}
	"$command" -q -o APT::Architecture="$arch" -o APT::Architectures::="$arch" \
		-o Dir::State="$dir" -o Dir::State::lists="$dir/lists" -o Dir::State::status="$dir/status" \
		-o Dir::Cache="$dir" -o Dir::Cache::archives="$dir/archives" \
		-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts="$dir/empty" \
		-o Dir::Etc::preferencesparts="$dir/empty" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none \
		-o APT::Update::Post-Invoke-Success::= -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@"
}

# lab_unpack ARCH SUITE DIR PATTERNS PACKAGE...: unpack PACKAGEs and all they
# depend on, less those named as -PACKAGE, into DIR, without maintainer scripts
# and without the files that match PATTERNS (tar's, blank-separated).
lab_unpack() {
	local arch=$1 suite=$2 to=$3 patterns=$4 archives=$lab_cache/apt/$1-$2/archives deb p
	local -a drop=() want=()
	shift 4
	local skip=" "
	for p; do
		case $p in
		-*) skip="$skip${p#-} " ;;
		*) want+=("$p") ;;
		esac
	done
	for p in $patterns; do drop+=("--exclude=$p"); done
	lab_apt "$arch" "$suite" apt-get update
	rm -rf "$to.new"
	mkdir -p "$to.new"
	rm -f "$archives"/*.deb
	lab_apt "$arch" "$suite" apt-get install -y -t "$suite" --no-install-recommends --download-only "${want[@]}"
	for deb in "$archives"/*.deb; do
		p=${deb##*/}
		case $skip in *" ${p%%_*} "*) continue ;; esac
		echo "unpacking ${deb##*/}"
		dpkg-deb --fsys-tarfile "$deb" | tar -x --no-same-owner -C "$to.new" "${drop[@]}"
	done
	rm -f "$archives"/*.deb
	rm -rf "$to"
	mv "$to.new" "$to"
}

# lab_headers ARCH VERSION DIR: what modules for Debian 12's kernel VERSION are built with, as DIR/headers.
lab_headers() {
	local arch=$1 version=$2 dir=$3 own p
	own=$(dpkg --print-architecture)
	lab_apt "$own" bookworm apt-get update
	mkdir -p "$dir/deb"
	( cd "$dir/deb" && lab_apt "$arch" bookworm apt-get download \
		"linux-headers-$version" "linux-headers-${version%%-[a-z]*}-common" &&
		lab_apt "$own" bookworm apt-get download "linux-kbuild-${version%.*}" )
	for p in "$dir"/deb/*.deb; do dpkg-deb -x "$p" "$dir"; done
	rm -rf "${dir:?}/deb" "${dir:?}/usr/share"
	ln -s "usr/src/linux-headers-$version" "$dir/headers"
	sed -i "s,include /usr/src,include $dir/usr/src," "$dir/headers/Makefile"
}
