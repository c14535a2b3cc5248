#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hyptrace watch on a FAKE of tracefs: its histograms are texts of the lab's (Linux 7.3, QEMU), and what is
# written is seen in the journal. What a kernel makes of it: tests/lab/t/78-watch.t.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
"$hyptrace" watch --once --journal none 2>&1 </dev/null | grep -q 'built without libtracefs' &&
	skip_all "built without libtracefs"
tree=$tmp/tracing proc=$tmp/machine/proc journal=$tmp/journal
export HYPTRACE_TRACING_DIR=$tree HYPTRACE_ROOT=$tmp/machine
bare_machine

# ---- the fake ---------------------------------------------------------------------------------

# format NAME ID FIELD...: of an event, with its own fields only; FIELD: "TYPE NAME:SIZE:SIGNED"
format() {
	local name=$1 id=$2 at=8 field

	shift 2
	printf 'name: %s\nID: %d\nformat:\n' "$name" "$id"
	printf '\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n' 'unsigned short common_type' 0 2 0 \
		'unsigned char common_flags' 2 1 0 'unsigned char common_preempt_count' 3 1 0 'int common_pid' 4 4 1
	echo
	for field; do
		printf '\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n' "${field%%:*}" $at \
			"$(cut -d : -f 2 <<<"$field")" "$(cut -d : -f 3 <<<"$field")"
		at=$((at + $(cut -d : -f 2 <<<"$field")))
	done
	printf '\nprint fmt: "%s"\n' "$name"
}

# event SYSTEM/NAME: standard input is its format
event() {
	mkdir -p "$tree/events/$1" "$instance/events/$1"
	cat >"$tree/events/$1/format"
	: >"$instance/events/$1/trigger"
	: >"$instance/events/$1/hist"
}

# fresh: a tracefs whose instance was prepared, and no journal
fresh() {
	rm -rf "$tree" "$journal"
	instance=$tree/instances/hyptrace-watch
	mkdir -p "$instance" "$tree/events"
	cp tests/data/formats/header_* "$tree/events/"
	echo 1410 >"$instance/buffer_size_kb"
	: >"$tree/dynamic_events"
	echo 'trace(<synthetic_event>,param list)' >"$tree/README"
	for name in sched/sched_switch kvm/kvm_exit kvm/kvm_entry; do
		event $name <"tests/data/formats/${name#*/}"
	done
	format sched_waking 245 'char comm[16]:16:0' 'pid_t pid:4:1' 'int prio:4:1' | event sched/sched_waking
	format hyptrace_stolen 2000 'pid_t pid:4:1' 'u64 lat:8:0' 'char by[16]:16:0' | event synthetic/hyptrace_stolen
	format hyptrace_wakeup 2001 'pid_t pid:4:1' 'u64 lat:8:0' 'char by[16]:16:0' 'pid_t prev:4:1' | event synthetic/hyptrace_wakeup
	format hyptrace_exit 2002 's32 pid:4:1' 'u64 lat:8:0' 's32 ret:4:1' 'u32 ec:4:0' | event synthetic/hyptrace_exit
}

# entry KEYS HITS LAT
entry() {
	printf '{ %s } hitcount: %10d  lat: %10d\n' "$@"
}

# by PID NAME HITS LAT, as the kernel pads a name
by() {
	entry "$(printf 'pid: %10d, by: %-50s' "$1" "$2")" "$3" "$4"
}

# totals ENTRIES DROPPED
totals() {
	printf '\nTotals:\n    Hits: 1\n    Entries: %d\n    Dropped: %d\n' "$@"
}

histograms() {
	{
		by 112 $'"a\\\n} lat: 99' 1 1000000
		by 112 hog 89 1598159623
		by 112 kworker/u18:1 1 376289
		by 112 kworker/1:1 1 753805
		by 999 hog 1 5
		totals 5 3
		entry 'pid:        112, lat: ~ 2^30' 105 1600289717
		totals 1 0
	} >"$instance/events/synthetic/hyptrace_stolen/hist"
	{
		entry 'pid:        112, lat: ~ 2^17' 1 108924
		entry 'pid:        112, lat: ~ 2^25' 2 44065517
		totals 2 0
		by 112 hog 2 40000000
		totals 1 0
		echo '# trigger info: hist:keys=pid,lat.log2:vals=hitcount,lat:sort=hitcount:size=2048 if prev != 0 [active]'
		entry 'pid:        112, lat: ~ 2^25' 2 40000000
		totals 1 0
	} >"$instance/events/synthetic/hyptrace_wakeup/hist"
	{
		entry 'pid:        113, ec:          1, lat: ~ 2^17' 1 110439
		entry 'pid:        112, ec:         24, lat: ~ 2^9 ' 7 1400
		totals 2 0
		entry 'pid:        112, ret:          0, lat: ~ 2^34' 1 10737418240
		totals 1 0
	} >"$instance/events/synthetic/hyptrace_exit/hist"
}

# vmm PID NAME TID...: a QEMU with these threads of vCPUs
vmm() {
	local pid=$1 name=$2 cpu=0 tid

	shift 2
	mkdir -p "$proc/$pid/fd" "$proc/$pid/task/$pid"
	ln -s /usr/bin/qemu-system-aarch64 "$proc/$pid/exe"
	ln -s / "$proc/$pid/root"
	printf 'qemu-system-aarch64\0-name\0%s\0' "$name" >"$proc/$pid/cmdline"
	for tid in "$pid" "$@"; do
		mkdir -p "$proc/$pid/task/$tid"
		printf 'Name:\tx\nNSpid:\t%s\n' "$tid" >"$proc/$pid/task/$tid/status"
		echo running >"$proc/$pid/task/$tid/syscall"
		echo qemu-system-aar >"$proc/$pid/task/$tid/comm"
	done
	for tid; do
		echo "CPU $cpu/KVM" >"$proc/$pid/task/$tid/comm"
		cpu=$((cpu + 1))
	done
}

# watch OPTION...: one look; $status, $out and $err
watch() {
	"$hyptrace" watch --interval 100ms --journal "$journal" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(<"$tmp/out") err=$(<"$tmp/err")
}

# ---- one look ---------------------------------------------------------------------------------

fresh
histograms
vmm 107 Guest 112 113
watch --once --metrics "$tmp/w.prom" --json
is "$status $err" "0 hyptrace: watches 2 vCPUs of 1 VMs" "one look" || diag "$err"
is "$(grep -v '^#\|_bucket\|_cpu_seconds' "$tmp/w.prom")" 'hyptrace_vcpu_stolen_seconds_total{vm="Guest",vcpu="0",by="(others)"} 0.000000000
hyptrace_vcpu_stolen_seconds_total{vm="Guest",vcpu="0",by="\"a\\?} lat: 99"} 0.001000000
hyptrace_vcpu_stolen_seconds_total{vm="Guest",vcpu="0",by="hog"} 1.638159623
hyptrace_vcpu_stolen_seconds_total{vm="Guest",vcpu="0",by="kworker"} 0.001130094
hyptrace_vcpu_exits_total{vm="Guest",vcpu="0",reason="SYS64"} 7
hyptrace_vcpu_exits_total{vm="Guest",vcpu="0",reason="IRQ"} 1
hyptrace_vcpu_exits_total{vm="Guest",vcpu="1",reason="WFx"} 1
hyptrace_vcpu_wakeup_seconds_sum{vm="Guest",vcpu="0"} 0.044174441
hyptrace_vcpu_wakeup_seconds_count{vm="Guest",vcpu="0"} 3
hyptrace_vcpu_exit_seconds_sum{vm="Guest",vcpu="0",reason="SYS64"} 0.000001400
hyptrace_vcpu_exit_seconds_count{vm="Guest",vcpu="0",reason="SYS64"} 7
hyptrace_vcpu_exit_seconds_sum{vm="Guest",vcpu="0",reason="IRQ"} 10.737418240
hyptrace_vcpu_exit_seconds_count{vm="Guest",vcpu="0",reason="IRQ"} 1
hyptrace_vcpu_exit_seconds_sum{vm="Guest",vcpu="1",reason="WFx"} 0.000110439
hyptrace_vcpu_exit_seconds_count{vm="Guest",vcpu="1",reason="WFx"} 1
hyptrace_hyp_windows_total 0
hyptrace_hyp_missed_windows_total 0
hyptrace_watch_vcpus 2
hyptrace_watch_dropped_total 3
hyptrace_watch_left_out_series 0
hyptrace_watch_breaches_total 0
hyptrace_watch_dumps_total 0' "metrics: vCPUs by their names, reasons by theirs, hostile names escaped, others' threads left out"
is "$(sed -n 's/^hyptrace_vcpu_wakeup_seconds_bucket.*le="\(.*\)"} /\1 /p' "$tmp/w.prom" | tr '\n' ';')" \
	"0.000001024 0;0.000004096 0;0.000016384 0;0.000065536 0;0.000262144 1;0.001048576 1;0.004194304 1;0.016777216 1;0.067108864 3;0.268435456 3;1.073741824 3;4.294967296 3;+Inf 3;" \
	"buckets of a histogram, each with those below"
is "$(grep -c 'reason="IRQ",le=.*} 0$' "$tmp/w.prom")" 12 "what lasts longer than all bounds is in +Inf only"
is "$(cd "$tmp" && ls w.prom*)" "w.prom" "the file has its name, and no part of it is left"
is "$(json_differs watch <"$tmp/out" 2>&1)" "" "JSON as the schema says"
is "$(jq -c '.stolen[2], .exits[2], .watch.dropped' <"$tmp/out")" '{"vcpu":"Guest:0","by":"hog","total_ns":1638159623}
{"vcpu":"Guest:1","reason":"WFx","count":1,"total_ns":110439,"p99_below_ns":262144}
3' "... with the same sums"
[ ! -e "$journal" ] && [ "$(<"$instance/buffer_size_kb")" = 1410 ]
ok $? "all is put back"

# ---- Debian's Prometheus, by node_exporter's textfile collector ----
cp "$tmp/w.prom" "$tmp/first.prom"
if command -v promtool >/dev/null; then
	is "$(promtool check metrics <"$tmp/w.prom" 2>&1)" "" "promtool check metrics finds nothing"
else
	skip 1 "no promtool (Debian: prometheus)"
fi

free_port() {
	perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1)->sockport'
}
asked() { # QUERY PATTERN
	promtool query instant "http://127.0.0.1:$port" "$1" 2>/dev/null | grep -q "$2"
}
# A watch that serves, with the file of another one for node_exporter. The fake is never emptied, so that what it
# serves grows at each look.
served=$(free_port)
"$hyptrace" watch --interval 100ms --journal "$journal" -q --listen "127.0.0.1:$served" --metrics "$tmp/served.prom" \
	2>"$tmp/serve.err" &
server_pid=$!
if command -v prometheus >/dev/null && command -v prometheus-node-exporter >/dev/null; then
	exporter=$(free_port) port=$(free_port)
	mkdir "$tmp/textfiles"
	cp "$tmp/first.prom" "$tmp/textfiles/hyptrace.prom"
	prometheus-node-exporter --collector.disable-defaults --collector.textfile \
		--collector.textfile.directory="$tmp/textfiles" --web.listen-address="127.0.0.1:$exporter" 2>"$tmp/exporter.log" &
	exporter_pid=$!
	echo 'scrape_configs:' >"$tmp/prometheus.yml"
	for target in "file $exporter" "served $served"; do
		printf -- '- job_name: %s\n  scrape_interval: 1s\n  static_configs:\n  - targets: ["127.0.0.1:%s"]\n' $target
	done >>"$tmp/prometheus.yml"
	prometheus --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/tsdb" \
		--web.listen-address="127.0.0.1:$port" 2>"$tmp/prometheus.log" &
	prometheus_pid=$!
	wait_for asked 'topk(1, hyptrace_vcpu_stolen_seconds_total{job="file"})' 'by="hog".*vcpu="0", vm="Guest"} => 1.638159623'
	ok $? "Prometheus names who stole most" || diag "$(tail -n 3 "$tmp/exporter.log" "$tmp/prometheus.log")"
	asked 'histogram_quantile(0.5, hyptrace_vcpu_wakeup_seconds_bucket)' ' => 0.0[0-9]*'
	ok $? "... and a quantile of the wake-ups"
	asked node_textfile_scrape_error ' => 0 '
	ok $? "... and node_exporter found no error"
	if [ -s "$tmp/serve.err" ]; then
		skip 1 "built without libmicrohttpd"
	else
		wait_for asked 'topk(1, hyptrace_vcpu_stolen_seconds_total{job="served"})' 'by="hog".*vcpu="0", vm="Guest"} => [1-9]'
		ok $? "... from --listen, too" || diag "$(tail -n 3 "$tmp/prometheus.log")"
	fi
	kill $exporter_pid $prometheus_pid
	wait $exporter_pid $prometheus_pid
else
	skip 4 "no prometheus or no prometheus-node-exporter"
fi

# get PATH [OPTION...]: what curl says of the watch that serves: status, then its type
get() {
	curl -s -m 20 -o "$tmp/got" -w '%{http_code} %{content_type}' "${@:2}" "http://127.0.0.1:$served$1"
}
if [ -s "$tmp/serve.err" ]; then
	like "$(<"$tmp/serve.err")" 'built without libmicrohttpd, .* --metrics FILE$' "without libmicrohttpd: the reason, and what to do"
elif ! command -v curl >/dev/null; then
	skip 10 "no curl"
else
	got='200 text/plain; version=0.0.4; charset=utf-8'
	is "$(get /metrics)" "$got" "--listen: GET /metrics"
	is "$(grep '^# ' "$tmp/got")" "$(grep '^# ' "$tmp/served.prom")" "... are the metrics"
	is "$(get /) $(get /metrics/x)" "${got/200/404} ${got/200/404}" "... and nothing else is there"
	is "$(get /metrics -d x) $(get /metrics -X DELETE)" "${got/200/405} ${got/200/405}" "... and nothing is taken"
	# as many as are admitted: some say nothing, some ask and do not read
	perl -MIO::Socket::INET -e '
		my @held = map { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]") or die } 1 .. 8;
		print { $held[$_] } "GET /metrics HTTP/1.1\r\n", $_ % 4 ? "Host: x\r\n\r\n" : "" for 4 .. 7;
		$_->flush for @held;
		print "held\n"; STDOUT->flush;
		sleep 60' "$served" >"$tmp/held" &
	held=$!
	wait_for grep -q held "$tmp/held"
	rm "$tmp/served.prom"
	wait_for test -e "$tmp/served.prom"
	ok $? "readers that hang: the looks go on"
	is "$(get /metrics)" "$got" "... and another reader gets its answer, once they are dropped"
	kill $held
	is "$(timeout 10 "$hyptrace" watch --once --journal none --listen "127.0.0.1:$served" 2>&1)" \
		"hyptrace: cannot listen on tcp:127.0.0.1:$served: Address already in use" "a port in use: the reason"
	kill $server_pid
	wait $server_pid
	"$hyptrace" watch --interval 100ms --journal "$journal" -q --listen "unix:$tmp/socket" 2>"$tmp/serve.err" &
	server_pid=$!
	wait_for test -S "$tmp/socket"
	is "$(get /metrics --unix-socket "$tmp/socket") $(stat -c %a "$tmp/socket")" \
		"$got 600" "--listen unix:PATH, for its own user"
	for address in "0.0.0.0:1" "192.0.2.1:80" "[::]:80" "localhost:80" 127.0.0.1 unix:; do
		watch --once --listen "$address"
		echo "$status $err"
	done >"$tmp/refused"
	is "$(grep -vc "^2 hyptrace watch: --listen .*: not unix:PATH, 127.0.0.1:PORT or \[::1\]:PORT$" "$tmp/refused")" 0 \
		"addresses that another machine could reach are refused" || diag "$(<"$tmp/refused")"
fi
kill $server_pid 2>/dev/null
wait $server_pid
[ ! -e "$tmp/socket" ]
ok $? "the socket goes with it"

watch --once --top 1
like "$out" '^Guest:0  \(others\)  2\.130ms$' "text: --top 1 leaves one name, the rest is in one sum"
like "$out" '^Guest:0  hog  +1\.638s$' "... the one that took most"
watch --once --metrics "$tmp/w.prom" --max-series 6
is "$(grep -c '^hyptrace_vcpu' "$tmp/w.prom") $(sed -n 's/^hyptrace_watch_left_out_series //p' "$tmp/w.prom")" "6 61" "--max-series"
like "$err" '^hyptrace: warning: 61 series are left out; raise --max-series$' "... is reported"

watch --once --no-exits --metrics "$tmp/w.prom"
is "$status $(grep -c '^hyptrace_vcpu_exit' "$tmp/w.prom") $(grep -c '^hyptrace_vcpu_wakeup' "$tmp/w.prom")" "0 0 15" "--no-exits"

# ---- what a look costs: with all processes of this machine -----------------------------------
HYPTRACE_ROOT= "$hyptrace" watch --interval 100ms --journal none --json -q >"$tmp/looks.json" &
pid=$!
looks() { [ "$(cat "$tmp/looks.json" 2>/dev/null | grep -c cpu_ns)" -ge "$1" ]; }
wait_for looks 11
kill $pid
wait $pid
ms=$(jq -s 'map(.watch.cpu_ns) | (last - first) / (length - 1) / 1e6 | floor' "$tmp/looks.json")
[ "$ms" -lt 100 ]
ok $? "a look takes less than 1 % of the CPU of its 10 s: $ms ms"

# ---- dumps ------------------------------------------------------------------------------------

# limit LIMIT: what a watch of some looks says of it; the metrics are in $tmp/w.prom
limit() {
	rm -f "$tmp/w.prom"
	"$hyptrace" watch --interval 100ms --journal none --dump-when "$1" --dump-dir "$tmp/dumps" --metrics "$tmp/w.prom" "${@:2}" \
		2>"$tmp/limit.err" &
	pid=$!
	wait_for grep -qs '^hyptrace_watch_vcpus' "$tmp/w.prom"
}
limited() {
	kill $pid
	wait $pid
}
mkdir "$tmp/dumps"
limit 'wakeup_p99 > 60ms'
wait_for grep -q '^hyptrace_watch_breaches_total [1-9]' "$tmp/w.prom"
limited
is "$(grep holds "$tmp/limit.err")" "hyptrace: Guest:0 66.354 ms: 'wakeup_p99 > 60ms' holds, no dump into '$tmp/dumps': no flight recorder writes there; start one: systemctl start hyptrace-ring" \
	"--dump-when without a flight recorder: the value, and what to do, once"
limit 'wakeup_p99 > 70ms'
limited
limit 'stolen_p99 > 1s'
wait_for grep -q '^hyptrace_watch_breaches_total [1-9]' "$tmp/w.prom"
limited
like "$(<"$tmp/limit.err")" "^hyptrace: Guest:0 10[0-9]+\.[0-9]+ ms: 'stolen_p99 > 1s' holds" "--dump-when stolen_p99, from its buckets"
limit 'stolen_p99 > 1100ms'
limited
limit 'stolen > 10% for 1h'
limited
is "$(sed -n 's/^hyptrace_watch_breaches_total //p' "$tmp/w.prom") $(grep -c holds "$tmp/limit.err")" "0 0" "... neither what is less nor what lasts less long"
for wrong in 'stolen > 5ms' 'wakeup_p99 > 5%' 'wakeup_p99 > 5' 'stolen < 5%' 'x > 5%' 'stolen > 5% for' 'stolen > 5% for 1s and'; do
	watch --once --dump-when "$wrong"
	echo "$status"
done >"$tmp/wrong"
watch --once --dump-when 'hyp > 5%'
is "$status $err" "2 hyptrace: --dump-when hyp needs --hyp-window" "a limit of what is not measured is refused"
is "$(sort -u "$tmp/wrong")" 2 "limits that make no sense are refused"

# a flight recorder, on a tracefs of its own
if [ -w /dev/shm ]; then
	pages_once "$tmp/tracefs"
	"$build/tests/integration/fake-android" "$tmp/tracefs" android16
	HYPTRACE_TRACING_DIR=$tmp/tracefs "$hyptrace" record -o "$tmp/dumps/watched-$$.dat" -e kvm --flight 5 --ring 2>"$tmp/flight.err" &
	recorder=$!
	wait_for test -e "/dev/shm/hyptrace-watched-$$.dat.spool/range"
	limit 'stolen > 10%' --dump-max 1
	wait_for test -s "$tmp/dumps/watched-$$.001.dat.why.txt"
	wait_for grep -q 'as many as --dump-max' "$tmp/limit.err"
	limited
	is "$(sed -n 's/^hyptrace_watch_dumps_total //p' "$tmp/w.prom")" 1 "--dump-max: there is one dump"
	is "$(find "$tmp/dumps" -name 'watched-*' -printf '%f\n' | sort)" "watched-$$.001.dat
watched-$$.001.dat.why.txt" "... with its causes beside it"
	like "$(<"$tmp/limit.err")" "^hyptrace: Guest:0 [0-9.]+ %: 'stolen > 10%' holds, $tmp/dumps/watched-$$.001.dat will have the seconds before$" "... which is said"
	unlike "$(<"$tmp/dumps/watched-$$.001.dat.why.txt")" 'cannot read' "... and the dump can be read"
	limit 'stolen > 10%' --dump-gap 1h
	wait_for test -e "$tmp/dumps/watched-$$.002.dat.why.txt"
	wait_for grep -q 'not older than --dump-gap' "$tmp/limit.err"
	ok $? "--dump-gap"
	limited
	kill -INT $recorder
	wait $recorder
	is "$? $(grep -c 'watched-' "$tmp/flight.err")" "0 3" "the recorder goes on meanwhile" || diag "$(<"$tmp/flight.err")"
else
	skip 6 "no /dev/shm"
fi

# ---- what is changed, and a kill --------------------------------------------------------------

"$hyptrace" watch --interval 100ms --journal "$journal" --metrics "$tmp/w.prom" 2>"$tmp/err2" &
pid=$!
wait_for grep -qs 'hyptrace_stolen.*next_pid == 113' "$journal"
is "$(sed 's/__\([a-z]*\)_[0-9]*_[0-9]*/\1/g' "$journal")" "\
write	instances/hyptrace-watch/buffer_size_kb	1410
write	dynamic_events	-:hyptrace_stolen
write	instances/hyptrace-watch/events/synthetic/hyptrace_stolen/trigger	!hist:keys=pid,lat.log2:vals=lat
write	instances/hyptrace-watch/events/synthetic/hyptrace_stolen/trigger	!hist:keys=pid,by:vals=lat
write	dynamic_events	-:hyptrace_wakeup
write	instances/hyptrace-watch/events/synthetic/hyptrace_wakeup/trigger	!hist:keys=pid,lat.log2:vals=lat
write	instances/hyptrace-watch/events/synthetic/hyptrace_wakeup/trigger	!hist:keys=pid,lat.log2:vals=lat if prev != 0
write	instances/hyptrace-watch/events/synthetic/hyptrace_wakeup/trigger	!hist:keys=pid,by:vals=lat if prev != 0
write	dynamic_events	-:hyptrace_exit
write	instances/hyptrace-watch/events/synthetic/hyptrace_exit/trigger	!hist:keys=pid,ec,lat.log2:vals=lat if ret == 2
write	instances/hyptrace-watch/events/synthetic/hyptrace_exit/trigger	!hist:keys=pid,ret,lat.log2:vals=lat if ret != 2
write	instances/hyptrace-watch/events/kvm/kvm_exit/trigger	!hist:keys=common_pid:arg=common_timestamp,arg=ret,arg=esr_ec
write	instances/hyptrace-watch/events/kvm/kvm_entry/trigger	!hist:keys=common_pid:pid=common_pid,lat=common_timestamp-\$arg,ret=\$arg,ec=\$arg:onmatch(kvm.kvm_exit).trace(hyptrace_exit,\$pid,\$lat,\$ret,\$ec)
write	instances/hyptrace-watch/events/sched/sched_switch/trigger	!hist:keys=prev_pid:arg=common_timestamp,arg=next_comm if (prev_state == 256 || prev_state == 0) && (prev_pid == 112 || prev_pid == 113)
write	instances/hyptrace-watch/events/sched/sched_switch/trigger	!hist:keys=next_pid:pid=next_pid,lat=common_timestamp-\$arg,by=\$arg:onmatch(sched.sched_switch).trace(hyptrace_stolen,\$pid,\$lat,\$by) if next_pid == 112 || next_pid == 113
write	instances/hyptrace-watch/events/sched/sched_waking/trigger	!hist:keys=pid:arg=common_timestamp if pid == 112 || pid == 113
write	instances/hyptrace-watch/events/sched/sched_switch/trigger	!hist:keys=next_pid:pid=next_pid,lat=common_timestamp-\$arg,by=prev_comm,prev=prev_pid:onmatch(sched.sched_waking).trace(hyptrace_wakeup,\$pid,\$lat,\$by,\$prev) if next_pid == 112 || next_pid == 113" \
	"events, histograms and triggers are in the journal with what removes them"

wait_for grep -q 'vals=lat:clear' "$instance/events/synthetic/hyptrace_stolen/trigger"
ok $? "a histogram that had no room is emptied"
watch --once
is "$status" 1 "a second watch is refused"
like "$err" "journal '$journal' belongs to .* still runs" "... with the reason"

vmm 207 Guest 212
wait_for grep -q '^hyptrace_watch_vcpus 3$' "$tmp/w.prom"
is "$? $(grep -c 'pid == 212' "$journal")" "0 4" "a VM that comes is watched"
entry 'pid:        212' 1 5 >>"$instance/events/synthetic/hyptrace_stolen/hist"
# the fake is never emptied, and counts again at each look
wait_for grep -q '{vm="Guest-207",vcpu="0",by="(others)"} 0\.0000.*[1-9]' "$tmp/w.prom"
ok $? "... by a name of its own"
rm -r "$proc/207"
wait_for grep -q '^hyptrace_watch_vcpus 2$' "$tmp/w.prom"
is "$? $(grep -c 'pid == 212' "$journal") $(grep -c Guest-207 "$tmp/w.prom")" "0 0 0" "a VM that goes leaves nothing"

# shellcheck disable=SC2046 # words
vmm 307 Big $(seq 1001 1070)
wait_for grep -q '^hyptrace_watch_vcpus 72$' "$tmp/w.prom"
is "$? $(grep -c 'prev_pid == ' "$journal") $(grep -o 'arg_[0-9_]*=common_timestamp' "$journal" | sort | uniq -d)" "0 2 " \
	"72 vCPUs are in two triggers, whose variables have names of their own"
rm -r "$proc/307"
wait_for grep -q '^hyptrace_watch_vcpus 2$' "$tmp/w.prom"

kill -KILL $pid
wait $pid 2>/dev/null
watch --restore
is "$status $err" "0 hyptrace: warning: a killed watch had left its histograms: removed" "--restore after a kill"
[ ! -e "$journal" ] && grep -q '^-:hyptrace_stolen' "$tree/dynamic_events" && [ "$(<"$instance/buffer_size_kb")" = 1410 ]
ok $? "... puts back what the journal has"
watch --restore
is "$status $err" "0 " "... once"

: >"$journal"
chmod 666 "$journal"
watch --once
is "$status" 1 "a journal that others may write is not believed"
like "$err" "journal '$journal' is not used: others may write to it" "... with the reason"
rm "$journal"

"$hyptrace" watch --interval 100ms --journal "$journal" -q --metrics "$tmp/t.prom" &
pid=$!
wait_for test -e "$tmp/t.prom"
kill -TERM $pid
wait $pid
is "$? $(ls "$journal" 2>/dev/null)" "0 " "SIGTERM ends it, and all is put back"

# ---- the unit, and the administrator's page -----------------------------------------------------

unit=packaging/systemd/hyptrace-watch.service.in
# shellcheck disable=SC2046 # words
watch --once $(sed -n 's/^Environment="OPTIONS=\(.*\)"$/\1/p' $unit | sed "s,/var/lib/prometheus/node-exporter,$tmp,")
is "$status $(grep -c '^hyptrace_watch_vcpus 2$' "$tmp/hyptrace.prom")" "0 1" "the unit's options are taken"
if command -v systemd-analyze >/dev/null; then
	sed "s,@bindir@,$build," $unit >"$tmp/hyptrace-watch.service"
	is "$(systemd-analyze verify --man=no "$tmp/hyptrace-watch.service" 2>&1 | grep hyptrace-watch)" "" "the unit is valid"
else
	skip 1 "no systemd-analyze"
fi
sed -n '/^```yaml/,/^```/{/^```/!p}' Documentation/watch.md >"$tmp/rules.yml"
if command -v promtool >/dev/null; then
	like "$(promtool check rules "$tmp/rules.yml" 2>&1)" '^ *SUCCESS: 3 rules found' "the page's alerts are valid"
else
	skip 1 "no promtool (Debian: prometheus)"
fi
is "$(grep -o 'hyptrace_[a-z_]*[a-z]' Documentation/watch.md | sed 's/_\(bucket\|sum\|count\)$//' | sort -u | comm -23 - \
	<(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$tmp/first.prom" | sort))" "" "the metrics that the page names are there"
dashboard=packaging/grafana/hyptrace.json
jq -r '.. | .expr? // empty, (.query? | objects | .query)' $dashboard >"$tmp/queries"
is "$(grep -o 'hyptrace_[a-z_]*[a-z]' "$tmp/queries" | sed 's/_\(bucket\|sum\|count\)$//' | sort -u | comm -23 - \
	<(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$tmp/first.prom" | sort))" "" "the dashboard's metrics are there"
if command -v promtool >/dev/null; then
	# as rules, for which variables get values
	{
		echo 'groups: [{name: x, rules: ['
		jq -r '.. | .expr? // empty' $dashboard | sed "s/\\\$__rate_interval/1m/g; s/.*/expr: '&'},/" | cat -n | sed 's/^ *\([0-9]*\)/{record: "x\1",/'
		echo ']}]'
	} >"$tmp/dashboard.yml"
	like "$(promtool check rules "$tmp/dashboard.yml" 2>&1)" '^ *SUCCESS: [0-9]* rules found' "... which Prometheus understands"
else
	skip 1 "no promtool (Debian: prometheus)"
fi
is "$(sed -n 's/^\.B \(hyptrace_[a-z_]*\).*/\1/p' Documentation/hyptrace-watch.1 | grep -v '_\(stolen\|wakeup\|exit\)$' | sort)" \
	"$(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$tmp/first.prom" | sort)" "the manual has all metrics"

watch --once --hyp-window 10ms
is "$status" 3 "--hyp-window without a hypervisor: status 3"
like "$err" 'the hypervisor is not sampled: .* hyptrace doctor$' "... with the reason"
printf 'write\tinstances/hyptrace-watch/buffer_size_kb\t1410\n' >"$journal.hyp"
chmod 600 "$journal.hyp"
watch --restore
is "$status $err $(<"$instance/buffer_size_kb") $(ls "$journal"* 2>/dev/null)" \
	"0 hyptrace: warning: a killed watch had left the hypervisor's buffer in use: put back 1410 " "... after a kill in a window that is put back"

# ---- what is missing --------------------------------------------------------------------------

rm -r "$tree/events/kvm"
watch --once
is "$status" 3 "without KVM: the rest, and status 3"
like "$err" 'not watched: exits, for which the kernel lacks kvm:kvm_exit .*modprobe kvm' "... with the command"
like "$out" '^Guest:0  hog' "... stolen time is there"

fresh
rm "$instance/events/sched/sched_switch/hist"
watch --once
is "$status" 1 "without histograms"
like "$err" 'no histograms of events: one with CONFIG_HIST_TRIGGERS=y' "... with the reason"
[ ! -e "$journal" ]
ok $? "... and nothing is left"

fresh
rm -r "$proc/107"
watch --once
is "$status" 3 "without VMs: status 3"
like "$err" 'no VM.s vCPU runs here, .* hyptrace list --guests' "... with the reason"

watch --once --interval 99ms
is "$status" 2 "an interval that is too short is refused"

# ---- x86 --------------------------------------------------------------------------------------

fresh
trace-cmd dump --events -i tests/data/x86/trace.dat 2>/dev/null | awk '/^name: /{ on = $2 == "kvm_exit" } on' >"$tmp/kvm_exit"
event kvm/kvm_exit <"$tmp/kvm_exit"
format hyptrace_exit 2002 's32 pid:4:1' 'u64 lat:8:0' 'u32 reason:4:0' | event synthetic/hyptrace_exit
entry 'pid:        112, reason:         48, lat: ~ 2^17' 1 110439 >"$instance/events/synthetic/hyptrace_exit/hist"
entry 'pid:        112, reason:       9999, lat: ~ 2^17' 1 110439 >>"$instance/events/synthetic/hyptrace_exit/hist"
vmm 107 Guest 112
watch --once --json
is "$(jq -r '.exits[].reason' <"$tmp/out" 2>&1)" "EPT_VIOLATION
0x270f" "x86: reasons by the event's own table" || diag "$err"
mkdir -p "$tmp/machine/sys/module/kvm_amd"
entry 'pid:        112, reason:        120, lat: ~ 2^17' 1 110439 >"$instance/events/synthetic/hyptrace_exit/hist"
watch --once --json
is "$(jq -r '.exits[].reason' <"$tmp/out" 2>&1)" "hlt" "... of AMD"
done_testing
