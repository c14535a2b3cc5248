#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The plugin in the real KernelShark, on a screen in memory: what is drawn where, as
# its colours in the picture tell, and what a double click does.
. tests/integration/lib.sh

plugin=$build/plugins/kernelshark/plugin-hyptrace.so

for program in kernelshark Xvfb xdotool; do
	command -v $program >/dev/null || skip_all "no $program: tests/deps check"
done
[ -e "$plugin" ] || skip_all "no $plugin: make said what it needs"

# KernelShark warns root in a dialog, and then waits: nobody runs it, and must find its files.
as_nobody=()
[ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
mkdir -p "$tmp/home" "$tmp/screen" "$tmp/plugins"
cp "$build"/plugins/*.so "$plugin" "$tmp/plugins"
chmod -R a+rX "$tmp"
[ "$(id -u)" != 0 ] || chown 65534 "$tmp/home"

# ---- a screen, and how it is read ------------------------------------------------------

mkfifo "$tmp/display"
exec 7<>"$tmp/display"
Xvfb -displayfd 7 -noreset -screen 0 1440x2040x24 -fbdir "$tmp/screen" -nolisten tcp >"$tmp/xvfb" 2>&1 &
xvfb=$!
read -r -t 60 display <&7 || skip_all "Xvfb does not start: $(tail -n 1 "$tmp/xvfb")"
export DISPLAY=:$display

# drawn.pl FILE [place | marks X10 X95]: the strips with colours of ours from top to bottom,
# each colour's places in them in ms of the trace, "hvc 10-20, ...", once those of two boxes
# are known, and the legend before them, "legend: hvc ..."; the place of a box; or the marks too.
# "colours": all there are. "black": how many graphs have their line.
cat >"$tmp/drawn.pl" <<'E2'
use strict;
my %name = ("240 228 66" => "smc", "86 180 233" => "hvc", "204 121 167" => "sys",
	"178 132 240" => "psci", "244 140 60" => "host_abort", "60 200 130" => "guest_exit",
	"170 170 170" => "unknown", "120 205 205" => "crosvm", "174 225 225" => "nested",
	"250 180 195" => "hypertrace", "230 130 30" => "exit", "150 160 175" => "halt", "0 128 0" => "mark-A", "0 128 128" => "mark-B");
my ($file, $what, $x10, $x95) = @ARGV;
open(my $f, "<:raw", $file) or exit 1;
read($f, my $head, 100) == 100 or exit 1;
my @h = unpack("N25", $head);
my ($size, $width, $height, $stride, $colours) = @h[0, 4, 5, 12, 19];
seek($f, $size + 12 * $colours, 0);
%name = map { pack("C3", reverse split / /) => $name{$_} } keys %name; # as the pixels' bytes are
my $ours = join "|", map { quotemeta } keys %name;
my (@strips, $open, $black, %mark, %seen);
my ($above, $line, @shown) = ("", 0); # the row before: has it a graph's line, our colours in it
for my $y (0 .. $height - 1) {
	read($f, my $row, $stride) == $stride or exit 1;
	my %runs;
	if ($row eq $above) { # as most are: what it shows is known
		$black++ if $line;
		$strips[-1]{rows}[0]++ if $open;
		$seen{$_}++ for @shown;
		next;
	}
	$above = $row;
	@shown = ();
	$line = $row =~ /(?<=\xff{3}.)(?:\0{3}.){400,}\xff{3}./s; # so it is looked for where there is black
	$black++ if $line;
	next if $what eq "black";
	if ($row !~ /$ours/o) { $open = 0; next }
	my $pixels = substr($row, 0, 4 * $width);
	while ($pixels =~ /\G(...)(.)(?:\1\2)*/gs) { # those side by side that are alike
		my $n = $name{$1} or next;
		my ($from, $x) = ($-[0] / 4, $+[0] / 4);
		push @shown, $n;
		push @{$runs{$n}}, [$from, $x] if $n =~ /mark/ || $x - $from > 2;
	}
	$seen{$_}++ for @shown;
	for my $n ("mark-A", "mark-B") { # through all strips
		my $run = delete $runs{$n};
		$mark{$n} //= $run->[0][0] if $run && $run->[0][1] - $run->[0][0] < 4;
	}
	if (!%runs) { $open = 0; next }
	push @strips, { rows => [0] } if !$open;
	$open = 1;
	$strips[-1]{rows}[0]++;
	# of each colour the row that shows most of it: others have text over it
	for my $n (keys %runs) {
		my $sum = 0;
		$sum += $_->[1] - $_->[0] for @{$runs{$n}};
		my $best = $strips[-1]{$n};
		$strips[-1]{$n} = [$sum, $runs{$n}, $y] if !$best || $sum > $best->[0];
	}
}
if ($what eq "black") {
	print $black || 0;
	exit 0;
}
if ($what eq "colours") {
	print join " ", sort grep { $seen{$_} > 20 } keys %seen;
	exit 0;
}
@strips = grep { $_->{rows}[0] > 5 } @strips; # the window has lines of our grey
delete $_->{rows} for @strips;
my $legend = "";
if (@strips && !grep { $_->[0] != 8 } values %{$strips[0]}) { # boxes of 8 pixels and nothing else
	my $strip = shift @strips;
	$legend = join(" ", "legend:", sort { $strip->{$a}[1][0][0] <=> $strip->{$b}[1][0][0] } keys %$strip) . "\n";
}
my ($first) = grep { $_->{hvc} && $_->{unknown} } @strips;
exit 0 if !$first && !$x95;
($x10, $x95) = ($first->{hvc}[1][0][0], $first->{unknown}[1][-1][1]) if !$x95;
my $ms = sub { int(10 + ($_[0] - $x10) * 85 / ($x95 - $x10) + .5) };
if ($what eq "place") { # x and y of host_abort's box, x of 10 and 95 ms
	my ($run, $y) = ($first->{host_abort}[1][0], $first->{host_abort}[2]);
	printf "%d %d %d %d\n", ($run->[0] + $run->[1]) / 2, $y + 8, $x10, $x95;
	exit 0;
}
print $legend;
for my $strip (@strips) {
	my @out;
	for my $n (sort { $strip->{$a}[1][0][0] <=> $strip->{$b}[1][0][0] } keys %$strip) {
		my $runs = $strip->{$n}[1];
		push @out, sprintf("%s %d-%d", $n, $ms->($runs->[0][0]), $ms->($runs->[-1][1]));
	}
	print join(", ", @out), "\n";
}
print join(" ", map { $_ . " " . $ms->($mark{$_}) } sort keys %mark), "\n" if $what eq "marks";
E2
drawn() {
	perl "$tmp/drawn.pl" "$tmp/screen/Xvfb_screen0" "${@:-}"
}

# graphs N: waits until that many are there
graphs() {
	local i

	for ((i = 0; i < 240; i++)); do
		[ "$(drawn black)" -ge "$1" ] && return
		sleep 0.5
		alive
	done
}

# shows EXPECTED: waits until that is drawn. The window grows when the graphs are there,
# not while a file is being loaded.
shows() {
	local i

	graphs 2
	for ((i = 0; i < 60; i++)); do
		((i % 5)) || resize $((2000 - i % 2))
		sleep 0.5
		[ "$(drawn)" = "$1" ] && return
		alive
	done
}

# The window; what it shows while it loads a file may be gone by then.
resize() {
	local window

	for window in $(xdotool search --onlyvisible --name 'Kernel *Shark'); do
		xdotool windowmove "$window" 0 0 windowsize "$window" 1400 "$1"
	done 2>/dev/null
}

# KernelShark 2.4 dies now and then in kshark_match_cpu(), without our plugin too, and more often with several
# threads: it is started again, twice in all.
deaths=0
alive() {
	kill -0 $kernelshark 2>/dev/null || [ $((deaths++)) -ge 2 ] || {
		diag "KernelShark died, and is started again"
		show "${shown[@]}"
	}
}

show() {
	shown=("$@")
	rm -rf "$tmp/home"/.[a-z]*
	"${as_nobody[@]}" env HOME="$tmp/home" XDG_RUNTIME_DIR="$tmp/home" QT_QPA_PLATFORM=xcb OMP_NUM_THREADS=1 \
		LIBGL_ALWAYS_SOFTWARE=1 TRACEEVENT_PLUGIN_DIR="$tmp/plugins" \
		kernelshark "$@" >"$tmp/log" 2>&1 &
	kernelshark=$!
}

close_it() {
	kill $kernelshark
	wait $kernelshark 2>/dev/null
}

# ---- one of each, the hypervisor as a buffer, a guest appended ------------------------------

{
	cat <<'E2'
top 0 0 0 print start
hyp 0 100 10000 hyp_enter 1 0
hyp 0 100 20000 hyp_exit 6 0
hyp 0 100 25000 hyp_enter 0 0
hyp 0 100 35000 hyp_exit 6 0
hyp 0 100 40000 hyp_enter 2 0
hyp 0 100 45000 hyp_exit 6 0
hyp 0 100 50000 hyp_enter 3 0
hyp 0 100 55000 hyp_exit 6 0
hyp 0 100 60000 hyp_enter 4 0
hyp 0 100 69000 host_mem_abort 0x93c08047 0x40001000
hyp 0 100 70000 hyp_exit 6 0
hyp 0 200 75000 hyp_enter 5 200
hyp 0 200 85000 hyp_exit 6 0
top 0 200 86000 kvm_exit 2 0x24 0xffff800080028df4
top 0 200 86100 kvm_guest_fault 0xffff800080028df4 0x93c08007 0xffff0000 0x9000018
top 0 200 87000 kvm_entry 0xffff800080028df4
hyp 0 100 90000 hyp_enter 8 0
hyp 0 100 95000 hyp_exit 6 0
top 1 300 10000 print 512 VirtioFs Enter: process_fs_queue - (slot: 0)
top 1 300 20000 print 503 VirtioFs Enter: release - (self.tag: "mtdroot")(inode: 42)
top 1 300 40000 print 503 VirtioFs Exit: release
top 1 300 60000 print 512 VirtioFs Exit: process_fs_queue
top 1 300 65000 print guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe
top 1 300 80000 print guest_hypertrace cpu=0x5602e1f49c10  arg1=0 arg2=0x000000000000cafe
top 1 300 82000 guest_hypertrace 7 1 One
top 1 300 85000 guest_hypertrace 7 1 Two
top 1 300 88000 guest_hypertrace 7 0 Two
top 1 300 92000 guest_hypertrace 7 0 One
E2
	# every 100 us, for 50 us
	for ((us = 20000; us < 60000; us += 100)); do
		echo "hyp 1 100 $us hyp_enter 1 0"
		echo "hyp 1 100 $((us + 50)) hyp_exit 6 0"
	done
	# every 100 us, for 30 us and for 10 us
	for ((us = 70000; us < 90000; us += 100)); do
		echo "hyp 1 100 $us hyp_enter 1 0"
		echo "hyp 1 100 $((us + 30)) hyp_exit 6 0"
		echo "hyp 1 100 $((us + 50)) hyp_enter 0 0"
		echo "hyp 1 100 $((us + 60)) hyp_exit 6 0"
	done
	# a CPU without events of the host
	echo "hyp 2 100 30000 hyp_enter 3 0"
	echo "hyp 2 100 50000 hyp_exit 6 0"
	echo "top 0 0 100000 print end"
} | "$build/tests/integration/timeline" "$tmp/host.dat" 0x1111 0x2222 Guest 200
ok $? "a host's file"
printf 'top 0 0 0 print start\ntop 0 0 100000 print end\n' |
	"$build/tests/integration/timeline" "$tmp/guest.dat" 0x2222
ok $? "its guest's"
chmod a+r "$tmp"/*.dat

cpu0="hvc 10-20, smc 25-35, sys 40-45, psci 50-55, host_abort 60-70, guest_exit 75-85, unknown 90-95"
expected="legend: smc hvc sys psci host_abort guest_exit unknown crosvm hypertrace
$cpu0
hvc 20-90, smc 70-90
guest_exit 75-85
crosvm 10-60, nested 20-40, hypertrace 65-92
psci 30-50
guest_exit 75-85"
show -p "$tmp/plugins/plugin-hyptrace.so" -i "$tmp/host.dat" -a "$tmp/guest.dat" --cpu 0,1 --pid 200,300
shows "$expected"
is "$(drawn)" "$expected" \
	"a legend, host CPUs, a vCPU's thread, crosvm's thread, a CPU that only the hypervisor's buffer has, the guest's CPU" ||
	diag "$(cat "$tmp/log")"
unlike "$(cat "$tmp/log")" "\"hyptrace\" failed|cannot load|out of memory" "KernelShark does not complain"

# ---- a double click ----------------------------------------------------------------------------

read -r x y x10 x95 <<<"$(drawn place)"
xdotool mousemove "$x" "$y"
xdotool click --repeat 2 --delay 60 1
marks() {
	drawn marks "$x10" "$x95" | tail -n 1
}
for ((i = 0; i < 60; i++)); do
	[ "$(marks)" = "mark-A 60 mark-B 70" ] && break
	sleep 0.5
done
is "$(marks)" "mark-A 60 mark-B 70" "a double click marks its begin and end"
# the label has the room of the boxes at its side; of sys's it leaves a part where the window is wider
is "$(drawn marks "$x10" "$x95" | sed -n '2s/, sys 40-4[0-4]//; 2p')" \
	"hvc 10-20, smc 25-35, host_abort 60-70" "and shows its label over its neighbours"
close_it

# ---- what is drawn is ours -----------------------------------------------------------------------

show -i "$tmp/host.dat" --cpu 0,1 --pid 200,300
graphs 2
resize 2000
graphs 7
[ "$(drawn black)" -ge 7 ]
ok $? "KernelShark draws its graphs"
is "$(drawn)" "" "without the plugin none of it is there"
close_it

# ---- captures of the lab ------------------------------------------------------------------------------

for host in protected nvhe; do
	cp tests/data/lab-$host.dat "$tmp"
	chmod a+r "$tmp/lab-$host.dat"
	show -p "$tmp/plugins/plugin-hyptrace.so" -i "$tmp/lab-$host.dat"
	graphs 2
	for ((i = 0; i < 60; i++)); do
		((i % 5)) || resize 2000 # all graphs, whatever the window begins with
		[[ "$(drawn colours)" != *guest_exit*hvc* ]] || break
		sleep 0.5
	done
	like "$(drawn colours)" "guest_exit .*hvc" "a $host host's hypervisor time"
	unlike "$(cat "$tmp/log")" "\"hyptrace\" failed|cannot load|out of memory" "and no complaint"
	close_it
done

# ---- exits of an x86 guest --------------------------------------------------------------------------

cp tests/data/x86/trace.dat "$tmp/x86.dat"
chmod a+r "$tmp/x86.dat"
show -p "$tmp/plugins/plugin-hyptrace.so" -i "$tmp/x86.dat" --cpu 0 --pid 118,120
graphs 2
for ((i = 0; i < 60; i++)); do
	((i % 5)) || resize 2000
	[[ "$(drawn colours)" != *exit*halt* ]] || break
	sleep 0.5
done
like "$(drawn colours)" "exit halt" "exits and halts of an x86 host's vCPUs"
unlike "$(cat "$tmp/log")" "\"hyptrace\" failed|cannot load|out of memory" "and no complaint"
close_it

# ---- installation ------------------------------------------------------------------------------------

dir=$(sed -n 's/^#define KS_PLUGIN_INSTALL_PREFIX "\(.*\)"/\1/p' \
	"$(pkg-config --variable=includedir libkshark)/KsCmakeDef.hpp")
like "$(make -n O="$build" install DESTDIR=/nowhere libdir="${dir%/kernelshark/plugins}")" "/nowhere$dir .*plugin-hyptrace.so" \
	"make install with KernelShark's libdir puts it where KernelShark looks"
kill $xvfb
wait $xvfb
done_testing
