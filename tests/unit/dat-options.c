// SPDX-License-Identifier: LGPL-2.1-or-later
/* lib/file/dat/options.c, and what stock makes of the options in a file. */
#include "dat-fixture.h"

static void test_options(void **state)
{
	static const char maps[] =
		"aaaab000-aaaac000 r-xp 00000000 fe:00 42      /usr/bin/qemu-system-aarch64\n"
		"aaaad000-aaaae000 rw-p 00000000 00:00 0       [heap]\n"
		"ffff0000-ffff1000 r--p 00001000 fe:00 43      /usr/lib/libc.so.6\n"
		"ffff2000-ffff3000 rw-p 00000000 00:00 0 \n";
	struct fixture *x = *state;
	struct dat_options *o = &x->options;

	add_pages(add_buffer(x, "", 4096, 1), 1000000, 1);
	dat_options_add_tsc2nsec(o, 1, 0, 0);
	dat_options_add_clock(o, "local global [boot] tai\n");
	dat_options_add_text(o, DAT_VERSION, "hyptrace 0");
	dat_options_add_traceid(o, 0xE94985DD0673130C);
	dat_options_add_procmaps(o, 87, "/usr/bin/qemu-system-aarch64", maps, sizeof(maps) - 1);
	dat_options_add_procmaps(o, 88, "nothing", "", 0);
	assert_int_equal(o->n, 5);
	dat_from_spool(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output("\t\t[Option TSC2NSEC, 16 bytes]\n"
			      "1 0 0 [multiplier, shift, offset]\n"
			      "\t\t[Option TRACECLOCK, 25 bytes]\n"
			      "local global [boot] tai\n\n"
			      "\t\t[Option VERSION, 11 bytes]\n"
			      "hyptrace 0\n"
			      "\t\t[Option TRACEID, 8 bytes]\n"
			      "0xE94985DD0673130C\n"
			      "\t\t[Option PROCMAPS, 119 bytes]\n"
			      "57 2 /usr/bin/qemu-system-aarch64\n"
			      "aaaab000 aaaac000 /usr/bin/qemu-system-aarch64\n"
			      "ffff0000 ffff1000 /usr/lib/libc.so.6\n",
			      0, "trace-cmd dump --options -i %s | sed -n '/TSC2NSEC/,/libc/p'", x->path);
		unlink(x->path);
	}
}

static void test_date(void **state)
{
	struct fixture *x = *state;

	add_pages(add_buffer(x, "", 4096, 1), 5000000000, 1);
	dat_options_add_uname(&x->options);
	dat_options_add_date(&x->options, 2000000);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	expect_output("- 0 7000000000 kvm_entry: PC: 0xffff800080028df0\n", 0, "%s/datdump %s", tools(),
		      x->path);
	free(run(0, "trace-cmd report --uname %s | grep -F \"$(uname -srm | cut -d' ' -f2)\"", x->path));
	unlink(x->path);
	dat_options_add_date(&x->options, -4000000);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	expect_output("- 0 3000000000 kvm_entry: PC: 0xffff800080028df0\n", 0, "%s/datdump %s", tools(),
		      x->path);
}

/* Without TSC2NSEC stock prints the numbers of clock boot as they are. */
static void test_raw_clock(void **state)
{
	struct fixture *x = *state;

	add_pages(add_buffer(x, "", 4096, 1), 1234567, 1);
	dat_options_add_clock(&x->options, "boot");
	dat_from_spool(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output("       CPU 0/KVM-87    [000]     1234567: kvm_entry:            PC: "
			      "0xffff800080028df0\n",
			      0, "trace-cmd report -N %s | tail -1", x->path);
		unlink(x->path);
	}
}

/* TSC2NSEC multiplies: no time may lose digits by it. */
static void test_large_times(void **state)
{
	struct fixture *x = *state;

	add_pages(add_buffer(x, "", 4096, 1), 123456789012345678, 1);
	dat_options_add_tsc2nsec(&x->options, 1, 0, 0);
	dat_options_add_clock(&x->options, "boot");
	dat_from_spool(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output("- 0 123456789012345678 kvm_entry: PC: 0xffff800080028df0\n", 0,
			      "%s/datdump %s", tools(), x->path);
		expect_output("123456789.012346\n", 0,
			      "trace-cmd report -N %s | sed -n 's/.*\\] *\\(.*\\): kvm_entry.*/\\1/p'",
			      x->path);
		unlink(x->path);
	}
}

static void test_stats(void **state)
{
	struct fixture *x = *state;

	add_pages(add_buffer(x, "", 4096, 1), 1000000, 1);
	add_pages(add_buffer(x, "hyp", 4096, 1), 1000000, 1);
	dat_from_spool(x);
	x->cpus[0][0].stat = "CPU: 0\nentries: 0\noverrun: 3\n";
	x->cpus[1][0].stat = "CPU: 0\nentries: 0\noverrun: 4\n";
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output("CPU: 0\nentries: 0\noverrun: 3\n\n\nBuffer: hyp\n\n\n"
			      "CPU: 0\nentries: 0\noverrun: 4\n",
			      0, "trace-cmd report --stat %s | sed -n '/^CPU: 0/,/overrun: 4/p'", x->path);
		unlink(x->path);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_options), T(test_date), T(test_raw_clock), T(test_large_times), T(test_stats),
	};

	return cmocka_run_group_tests_name("dat-options", tests, NULL, NULL);
}
