#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Event formats as a hostile guest or file has them: every command that reads them ends, in little memory,
# says what it refuses, and shows the rest. Which ones are refused: tests/unit/print-format.c.
. tests/integration/lib.sh

hyptrace=$build/hyptrace
export HOME=$tmp TRACEEVENT_PLUGIN_DIR=$build/plugins
bad=$tmp/bad.dat

# under COMMAND...: in 2 GB and two minutes; sanitised programs reserve more than they use
under() {
	(
		[ "$build" != "${build%-san}" ] || ulimit -v 2000000
		exec timeout 120 "$@"
	)
}

# run COMMAND...: sets status
run() {
	under "$hyptrace" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# times STRING N
times() {
	perl -e 'print $ARGV[0] x $ARGV[1]' -- "$1" "$2"
}

# make_file COUNT PRINTK: of events e0, e1, ... whose print formats are the lines of standard input, with one record
# each, whose numbers are all ones. COUNT: so many more events without records. PRINTK: a line of its printk_formats.
make_file() {
	perl -e 'my ($count, $printk) = @ARGV;
		my $n = 0;
		sub event {
			print "event kvm:e$n u32 n; u8 mac[6]; __data_loc char[] str\@20; char tail[]\@60000 | $_[0]\n";
		}
		print "cpus 1\nclock mono\ncompression zstd\nkallsyms x\ntask x\n", $printk eq "" ? "" : "printk $printk\n";
		while (<STDIN>) {
			chomp;
			event($_);
			print 1000 * ++$n, " 0 7 e", $n - 1, " =", "\\xff" x 16, "\n";
		}
		for (; $count; $count--, $n++) { event("\"%d\", REC->n") }' "$1" "$2" |
		"$build/tests/integration/make-trace" "$bad"
}

# ---- reading -------------------------------------------------------------------------

{
	echo '"%d", REC->n / (REC->n - REC->n)'
	echo '"%d", 1 / 0'
	echo "\"%d\", $(times '(' 40000)1"
	echo '"%2000000000d", REC->n'
	echo '"%*d|", REC->n, 3'
	echo '"%s", __print_hex(REC->mac, REC->n)'
	echo '"%d", REC->mac[1000000]'
	echo '"%d", REC->mac[REC->n]'
	echo '"%s", REC->tail'
	echo '"%d", REC->n ? 1 : 2 = 3'
	echo '"%s", __print_flags(REC->none, "|", { 1, "a" })'
	echo '"n=%d", REC->n'
} | make_file 0 "0x1000"
run report -i "$bad"
is "$status" 0 "report: exit status"
is "$(cat "$tmp/err")" "hyptrace: warning: the print format of kvm:e0 divides by what may be 0: its fields are shown
hyptrace: warning: the print format of kvm:e1 divides by what may be 0: its fields are shown
hyptrace: warning: the print format of kvm:e2 is nested deeper than any kernel's: its fields are shown
hyptrace: warning: the print format of kvm:e3 has too many arguments or too great a width: its fields are shown" \
	"report: which are refused, once, and why"
is "$(grep -c '<\.\.\.>-7 ' "$tmp/out")" 12 "report: all records are there"
fields='\[FAILED TO PARSE\] n=4294967295 mac=ARRAY\[ff, ff, ff, ff, ff, ff\]'
is "$(grep -cE " e[0-9]+: +$fields" "$tmp/out")" 6 "report: those refused, and those that it cannot read, with their fields"
like "$(cat "$tmp/out")" ' e11: +n=-1$' "report: the last as ever"
for command in "export --json" "report -R" "report -l" "report --check-events" "report --events" "report -F e"; do
	# shellcheck disable=SC2086
	run ${command% *} ${command##* } -i "$bad"
	[ "$status" -le 1 ]
	ok $? "$command ends" || diag "$status $(head -5 "$tmp/err")"
done
run export --json "$bad"
is "$status $(grep -c '"event":"e' "$tmp/out")" "0 12" "export: all records are there"

# ---- many ----------------------------------------------------------------------------

# sanitised programs copy all that libtraceevent knows for each of them
many=$([ "$build" = "${build%-san}" ] && echo 60000 || echo 6000)
echo '"n=%d", REC->n' | make_file "$many" ""
run report -i "$bad"
is "$status" 0 "$many formats: report"
like "$(cat "$tmp/out")" ' e0: +n=-1$' "$many formats: its record"

# refused by the thousand: a few messages
times $'"%d", 1 / 0\n' 1000 | make_file 0 ""
run report -i "$bad"
is "$status $(wc -l <"$tmp/err") $(tail -n 1 "$tmp/err")" "0 9 hyptrace: warning: more event formats are refused" "1,000 refused: a few messages"

# ---- writing ---------------------------------------------------------------------------

elvis=$(times '(' 40)REC-\>n$(times ' ?: 1)' 40)
{
	echo "\"%d\", $elvis"
	echo "\"%d\", $(times 'str_yes_no(' 90000)"
	echo "\"%d\", $(times '(' 300)1"
	echo '"%d %s", REC->n ?: 7, str_on_off(REC->n)'
	echo '"n=%d", REC->n'
} | make_file 0 ""
echo '[000]   0.000001: hyp_enter reason=smc vcpu=1' >"$tmp/text"
run import --hyp "$tmp/text" -i "$bad" -o "$tmp/whole.dat"
is "$status" 0 "import: exit status" || diag "$(cat "$tmp/err")"
is "$(grep 'print format' "$tmp/err")" "hyptrace: warning: the print format of kvm:e0 grows beyond any kernel's: it is left out
hyptrace: warning: the print format of kvm:e1 is longer than any kernel's: it is left out
hyptrace: warning: the print format of kvm:e2 is nested deeper than any kernel's: it is left out" "import: which are left out, and why"
run report -i "$tmp/whole.dat"
is "$(grep -o ' e[0-9]: .*' "$tmp/out" | sed -E 's/: +/: /; s/mac=.*//')" " e0: [FAILED TO PARSE] n=4294967295 
 e1: [FAILED TO PARSE] n=4294967295 
 e2: [FAILED TO PARSE] n=4294967295 
 e3: -1 on
 e4: n=-1" "import: what the file has"
is "$(cat "$tmp/err")" "" "... which is nothing to warn of"

done_testing
