#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# make demo-replay: what it prints, and KernelShark where there is a display.
. tests/integration/lib.sh

unset DISPLAY WAYLAND_DISPLAY
files=(tests/data/functions/trace.dat tests/data/functions/trace-Guest.dat)
export TRACEEVENT_PLUGIN_DIR=$build/plugins
report=$("$build/hyptrace" report --cpu 1 "${files[@]}" | head -n 40)
stat=$("$build/hyptrace" stat -q --show exits,hyp,vcpus,longest --top 2 "${files[@]}")
unset TRACEEVENT_PLUGIN_DIR

printed=$(O=$build tests/demo-replay 2>"$tmp/err")
is "$?:$(cat "$tmp/err")" "0:" "it ends well, and complains of nothing"
[[ $printed == *$'\n'"$report"$'\n'* && $report == *hyp_enter:* && $report == *trace-Guest.dat:* ]]
ok $? "it prints a report of host, hypervisor and guest" || diag "$printed"
[[ $printed == *$'\n'"$stat"$'\n'* && $stat == *"Exits: "* ]]
ok $? "and where the time went" || diag "$printed"
like "$printed" "^demo: as a page: $build/hyptrace view ${files[*]}\$" "and the command that makes a page of it"
like "$printed" "^demo: there is no display for: kernelshark .*-i ${files[0]} -a ${files[1]}\$" "no display: so it says"

# each line that it shows can be typed
while read -r command; do
	is "$(bash -c "$command" >/dev/null 2>&1; echo $?)" 0 "\$ $command"
done < <(sed -n 's/^[$] //p' <<<"$printed")

mkdir "$tmp/bin"
printf '#!/bin/sh\necho "shark $* with $TRACEEVENT_PLUGIN_DIR"\n' >"$tmp/bin/kernelshark"
chmod +x "$tmp/bin/kernelshark"
like "$(PATH=$tmp/bin:$PATH DISPLAY=:1 O=$build tests/demo-replay 2>&1)" \
	"^shark (-p $build/plugins/kernelshark/plugin-hyptrace.so )?-i ${files[0]} -a ${files[1]} with $build/plugins\$" \
	"a display: KernelShark gets the files (a FAKE of it)"
like "$(mkdir "$tmp/none"; for p in bash dirname sed head cat; do ln -s "$(command -v $p)" "$tmp/none"; done
	PATH=$tmp/none DISPLAY=:1 O=$build "$BASH" tests/demo-replay 2>&1)" "^demo: there is no KernelShark " "no KernelShark: so it says"

unlike "$(make -n O="$build" demo-replay)" 'tests/lab|CROSS_COMPILE' "make demo-replay needs no lab"

if command -v Xvfb xdotool kernelshark setpriv >/dev/null && [ -e "$build/plugins/kernelshark/plugin-hyptrace.so" ]; then
	# as nobody: root gets a dialog first
	as_nobody=()
	[ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	cp -r --parents tests/demo-replay "${files[@]}" "$tmp"
	mkdir -p "$tmp/home" "$tmp/build/plugins"
	cp "$build/hyptrace" "$tmp/build"
	cp -r "$build"/plugins/*.so "$build/plugins/kernelshark" "$tmp/build/plugins"
	chmod -R a+rX "$tmp"
	chmod a+rwx "$tmp/home"
	mkfifo "$tmp/display"
	exec 7<>"$tmp/display"
	Xvfb -displayfd 7 -noreset -screen 0 1024x768x24 -nolisten tcp >/dev/null 2>&1 &
	xvfb=$!
	read -r -t 60 display <&7
	export DISPLAY=:$display
	"${as_nobody[@]}" env HOME="$tmp/home" XDG_RUNTIME_DIR="$tmp/home" QT_QPA_PLATFORM=xcb LIBGL_ALWAYS_SOFTWARE=1 \
		O=build "$tmp/tests/demo-replay" >"$tmp/out" 2>&1 &
	demo=$!
	opened() {
		sleep 0.1
		xdotool search --onlyvisible --name 'Kernel *Shark' >/dev/null 2>&1
	}
	wait_for opened
	ok $? "KernelShark itself opens" || diag "$(cat "$tmp/out")"
	unlike "$(cat "$tmp/out")" '"hyptrace" failed|cannot load' "with the plugin"
	kill $demo $xvfb
	wait 2>/dev/null
else
	skip 2 "no Xvfb, xdotool or KernelShark with the plugin: tests/deps check"
fi
done_testing
