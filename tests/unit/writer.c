// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * lib/file/dat/writer.c, judged by the programs that are to read its files: trace-cmd,
 * and through tests/tools libtracecmd and libkshark.
 */
#include "dat-fixture.h"

/* Host and hypervisor around two runs of a guest, a third buffer without events. */
static void make_small(struct fixture *x)
{
	struct pages *top = add_buffer(x, "", 4096, 2), *hyp;

	add_switch(&top[0], 1000001000, "bash", 101, "CPU 0/KVM", 87);
	add_entry(&top[0], 1000010500, 87);
	add_exit(&top[0], 1000022000, 87);
	add_entry(&top[0], 1000030700, 87);
	add_exit(&top[0], 1000045000, 87);
	add_switch(&top[1], 1000005000, "swapper/1", 0, "bash", 101);
	hyp = add_buffer(x, "hyp", 4096, 2);
	add_hyp(&hyp[0], 1000011000, HYP_EXIT, ERET_GUEST, 87);
	add_hyp(&hyp[0], 1000021000, HYP_ENTER, GUEST_EXIT, 87);
	add_hyp(&hyp[0], 1000030000, HYP_EXIT, ERET_GUEST, 87); /* cut: 30.7 us in truth */
	add_hyp(&hyp[0], 1000040000, HYP_ENTER, GUEST_EXIT, 87);
	add_buffer(x, "empty", 4096, 2);
	dat_options_add_tsc2nsec(&x->options, 1, 0, 0);
	dat_options_add_clock(&x->options, "boot");
	dat_from_spool(x);
}

// clang-format off

/* What trace-cmd report -N prints of it. Times are sec.usec, for all that the clock is boot. */
static const char small_report[] =
	"cpus=2\n"
	"                   bash-101   [000]     1.000001: sched_switch:         prev_comm=bash prev_pid=101 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=87 next_prio=120\n"
	"                 <idle>-0     [001]     1.000005: sched_switch:         prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=bash next_pid=101 next_prio=120\n"
	"              CPU 0/KVM-87    [000]     1.000011: kvm_entry:            PC: 0xffff800080028df0\n"
	"  hyp:        CPU 0/KVM-87    [000]     1.000011: hyp_exit:             reason=eret_guest vcpu=87\n"
	"  hyp:        CPU 0/KVM-87    [000]     1.000021: hyp_enter:            reason=guest_exit vcpu=87\n"
	"              CPU 0/KVM-87    [000]     1.000022: kvm_exit:             TRAP: HSR_EC: 0x0018 (SYS64), PC: 0xffff800080028df4\n"
	"  hyp:        CPU 0/KVM-87    [000]     1.000030: hyp_exit:             reason=eret_guest vcpu=87\n"
	"              CPU 0/KVM-87    [000]     1.000031: kvm_entry:            PC: 0xffff800080028df0\n"
	"  hyp:        CPU 0/KVM-87    [000]     1.000040: hyp_enter:            reason=guest_exit vcpu=87\n"
	"              CPU 0/KVM-87    [000]     1.000045: kvm_exit:             TRAP: HSR_EC: 0x0018 (SYS64), PC: 0xffff800080028df4\n";

static const char small_dump[] =
	"- 0 101 1000001000 sched_switch: prev_comm=bash prev_pid=101 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=87 next_prio=120\n"
	"- 1 0 1000005000 sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=bash next_pid=101 next_prio=120\n"
	"- 0 87 1000010500 kvm_entry: PC: 0xffff800080028df0\n"
	"- 0 87 1000022000 kvm_exit: TRAP: HSR_EC: 0x0018 (SYS64), PC: 0xffff800080028df4\n"
	"- 0 87 1000030700 kvm_entry: PC: 0xffff800080028df0\n"
	"- 0 87 1000045000 kvm_exit: TRAP: HSR_EC: 0x0018 (SYS64), PC: 0xffff800080028df4\n"
	"hyp 0 87 1000011000 hyp_exit: reason=eret_guest vcpu=87\n"
	"hyp 0 87 1000021000 hyp_enter: reason=guest_exit vcpu=87\n"
	"hyp 0 87 1000030000 hyp_exit: reason=eret_guest vcpu=87\n"
	"hyp 0 87 1000040000 hyp_enter: reason=guest_exit vcpu=87\n";

// clang-format on

static void test_report(void **state)
{
	struct fixture *x = *state;

	make_small(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output(small_report, 0, "trace-cmd report -N %s", x->path);
		expect_output(small_dump, 0, "%s/datdump -p %s", tools(), x->path);
		unlink(x->path);
	}
}

static void test_kernelshark(void **state)
{
	struct fixture *x = *state;

	make_small(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output("FILE -: 6 entries, 3 kinds of event, 3 tasks\n"
			      "FILE hyp: 4 entries, 2 kinds of event, 1 tasks\n"
			      "FILE empty: 0 entries, 0 kinds of event, 0 tasks\n",
			      0, "%s/loadkshark -e empty %s | sed 's|^/[^ ]*|FILE|'", tools(), x->path);
		free(run(1, "%s/loadkshark %s", tools(), x->path));
		unlink(x->path);
	}
}

static void test_dump(void **state)
{
	struct fixture *x = *state;

	make_small(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		expect_output("File FILE is a valid trace-cmd file\n", 0,
			      "trace-cmd dump --validate -i %s | sed 's|/tmp/[^ ]*|FILE|'", x->path);
		expect_output("[Kallsyms, 53 bytes]\n[Trace printk, 25 bytes]\n"
			      "[Saved command lines, 22 bytes]\n",
			      0,
			      "trace-cmd dump --summary -i %s |"
			      " sed -n 's/^\t//; /Kallsyms\\|printk\\|command lines/p' |"
			      " sort -t, -rnk2",
			      x->path);
		unlink(x->path);
	}
}

/* Stock can turn the file into its other version, and the events stay. */
static void test_convert(void **state)
{
	struct fixture *x = *state;

	make_small(x);
	assert_int_equal(write_dat(x), 0);
	free(run(0, "trace-cmd convert -i %s -o %s.v6.dat --file-version 6", x->path, x->path));
	expect_output(small_report, 0, "trace-cmd report -N %s.v6.dat", x->path);
	free(run(0, "rm %s.v6.dat", x->path));
}

/* ---- pages --------------------------------------------------------------------- */

static void test_page_sizes(void **state)
{
	static const uint32_t sizes[][2] = {
		{ 4096, 4096 }, { 4096, 16384 }, { 4096, 65536 }, { 16384, 65536 }, { 65536, 4096 }
	};
	struct fixture *x = *state;

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		for (unsigned int n = 1; n <= 5; n++) {
			struct pages *top = add_buffer(x, "", sizes[s][0], 2), *hyp;

			add_pages(&top[0], 1000000, n);
			add_pages(&top[1], 1000500, n / 3);
			hyp = add_buffer(x, "hyp", sizes[s][1], 2);
			add_pages(&hyp[0], 1000100, 3);
			add_pages(&hyp[1], 1000200, 13);
			dat_from_spool(x);
			x->f.compression = n & 1 ? "zstd" : "none";
			assert_int_equal(write_dat(x), 0);
			expect_events(x, "-", n + n / 3, true);
			expect_events(x, "hyp", 16, true);
			drop_buffers(x);
		}
	}
}

/* The same with every number of pages that can come before, compressed. */
static void test_page_sizes_zstd(void **state)
{
	struct fixture *x = *state;

	for (unsigned int n = 0; n <= 4; n++) {
		struct pages *top = add_buffer(x, "", 4096, 1), *hyp;

		add_pages(top, 1000000, n);
		hyp = add_buffer(x, "hyp", 16384, 1);
		add_pages(hyp, 1000100, 12);
		dat_from_spool(x);
		assert_int_equal(write_dat(x), 0);
		expect_events(x, "hyp", 12, n);
		drop_buffers(x);
	}
}

static void test_no_top(void **state)
{
	struct fixture *x = *state;

	for_each_form(x, form)
	{
		add_pages(add_buffer(x, "hyp", form->version == 6 ? 4096 : 16384, 1), 1000000, 12);
		dat_from_spool(x);
		assert_int_equal(write_dat(x), 0);
		expect_output("12\n", 0, "trace-cmd report %s 2>/dev/null | grep -c kvm_entry", x->path);
		expect_events(x, "hyp", 12, false);
		drop_buffers(x);
	}
}

/* A guest's or hypervisor's buffer with other CPUs than the host's. */
static void test_cpu_numbers(void **state)
{
	struct fixture *x = *state;

	for_each_form(x, form)
	{
		for (uint32_t n = 1; n <= MAX_CPUS; n++) {
			struct pages *top = add_buffer(x, "", 4096, n);
			struct pages *hyp = add_buffer(x, "hyp", 4096, MAX_CPUS + 1 - n);

			add_pages(&top[n - 1], 1000000, 2);
			add_pages(&hyp[MAX_CPUS - n], 1000000, 3);
			dat_from_spool(x);
			assert_int_equal(write_dat(x), 0);
			expect_events(x, "-", 2, true);
			expect_events(x, "hyp", 3, true);
			drop_buffers(x);
		}
	}
}

static void note_progress(void *ctx, uint64_t done, uint64_t total)
{
	uint64_t *seen = ctx;

	assert_true(done > seen[0] && done <= total);
	seen[0] = done;
	seen[1] = total;
}

static void test_chunks(void **state)
{
	static uint64_t seen[2];
	struct fixture *x = *state;

	x->f.progress = note_progress;
	x->f.progress_ctx = seen;
	for_each_form(x, form)
	{
		struct pages *top = add_buffer(x, "", 4096, 3);

		add_pages(&top[0], 1000000, 10);
		add_pages(&top[2], 1000001, 25);
		dat_from_spool(x);
		seen[0] = 0;
		assert_int_equal(write_dat(x), 0);
		assert_int_equal(seen[0], 35 * 4096);
		assert_int_equal(seen[1], 35 * 4096);
		expect_events(x, "-", 35, true);
		expect_output("- 2 1024001 kvm_entry: PC: 0xffff800080028df0\n", 0, "%s/datdump %s | tail -1",
			      tools(), x->path);
		drop_buffers(x);
	}
}

static void test_lost(void **state)
{
	struct fixture *x = *state;

	for_each_form(x, form)
	{
		struct pages *top = add_buffer(x, "", 4096, 1);

		add_entry(top, 1000000, 87);
		pages_cut(top);
		top->lost = 17;
		add_exit(top, 2000000, 87);
		pages_cut(top);
		top->lost = -1;
		add_entry(top, 3000000, 87);
		dat_from_spool(x);
		assert_int_equal(write_dat(x), 0);
		expect_output("- 0 1000000 kvm_entry: PC: 0xffff800080028df0\n"
			      "- 0 2000000 [17 events lost]\n"
			      "- 0 2000000 kvm_exit: TRAP: HSR_EC: 0x0018 (SYS64), PC: "
			      "0xffff800080028df4\n"
			      "- 0 3000000 [events lost]\n"
			      "- 0 3000000 kvm_entry: PC: 0xffff800080028df0\n",
			      0, "%s/datdump %s", tools(), x->path);
		expect_output("CPU:0 [17 EVENTS DROPPED]\nCPU:0 [EVENTS DROPPED]\n", 0,
			      "trace-cmd report -N %s | grep DROPPED", x->path);
		drop_buffers(x);
	}
}

struct fixes {
	unsigned int n[MAX_CPUS];
	int ret;
};

/* One millisecond later, as a clock's offset would have it. */
static int fix(void *ctx, unsigned int cpu, void *page, size_t size)
{
	struct fixes *f = ctx;
	uint64_t ts;

	assert_int_equal(size, 4096);
	memcpy(&ts, page, 8);
	ts += 1000000;
	memcpy(page, &ts, 8);
	f->n[cpu]++;
	return f->ret;
}

static void test_fix_page(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 2);
	struct fixes f = { 0 };

	add_pages(&top[0], 1000000, 11);
	add_pages(&top[1], 5000000, 1);
	x->buffers[0].fix_page = fix;
	x->buffers[0].fix_ctx = &f;
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	assert_int_equal(f.n[0], 11);
	assert_int_equal(f.n[1], 1);
	expect_output("- 1 6000000 kvm_entry: PC: 0xffff800080028df0\n", 0, "%s/datdump %s | tail -1",
		      tools(), x->path);
	unlink(x->path);
	f.ret = -EBADMSG;
	assert_int_equal(write_dat(x), -EBADMSG);
}

/* A source's pages need not begin at 0, and must not end early. */
static void test_source(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 1);

	add_pages(top, 1000000, 4);
	dat_from_spool(x);
	x->cpus[0][0].offset = 4096;
	x->cpus[0][0].size = 2 * 4096;
	assert_int_equal(write_dat(x), 0);
	expect_output("- 0 1001000 kvm_entry: PC: 0xffff800080028df0\n"
		      "- 0 1002000 kvm_entry: PC: 0xffff800080028df0\n",
		      0, "%s/datdump %s", tools(), x->path);
	unlink(x->path);
	x->cpus[0][0].size = 4 * 4096;
	assert_int_equal(write_dat(x), -EIO);
}

/* ---- what must fail ------------------------------------------------------------------- */

static void test_bad_args(void **state)
{
	struct fixture *x = *state;
	const struct dat_option own = { .id = DAT_CPUCOUNT, .data = "1234", .len = 4 };
	struct dat_file good;

	make_small(x);
	good = x->f;
#define expect(ret, ...)                                                                                     \
	do {                                                                                                 \
		__VA_ARGS__;                                                                                 \
		assert_int_equal(write_dat(x), ret);                                                         \
		unlink(x->path);                                                                             \
		x->f = good;                                                                                 \
	} while (0)
	expect(-ENOTSUP, x->f.version = 5);
	expect(-ENOTSUP, x->f.version = 8);
	expect(-ENOTSUP, x->f.compression = "zlib");
	expect(-EINVAL, x->f.page_size = 0);
	expect(-EINVAL, x->f.page_size = 6000);
	expect(-EINVAL, x->f.header_page.len = 0);
	expect(-EINVAL, x->f.kallsyms.len = (size_t)1 << 31);
	expect(-EINVAL, x->f.buffers = NULL);
	expect(-EINVAL, x->f.options = &own; x->f.n_options = 1);
	expect(-EINVAL, x->cpus[0][0].size--);
	x->cpus[0][0].size++;
	expect(-EINVAL, x->buffers[0].page_size = 2048);
	expect(-EINVAL, x->buffers[0].page_size = 12288);
	expect(-EINVAL, x->buffers[0].page_size = 2 << 20);
	x->buffers[0].page_size = 4096;
	expect(-EINVAL, x->buffers[1].name = "");
	expect(-EINVAL, x->buffers[1].name = "empty");
	x->buffers[1].name = "hyp";
	/* version 6 has but one page size */
	expect(-ENOTSUP, x->f.version = 6; x->buffers[2].page_size = 16384);
#undef expect
}

static int write_to(struct fixture *x, int fd)
{
	int ret;

	assert_true(fd >= 0);
	ret = dat_write(&x->f, fd, NULL);
	close(fd);
	return ret;
}

static void test_full_disk(void **state)
{
	struct fixture *x = *state;
	struct rlimit old, limit;

	make_small(x);
	assert_int_equal(write_to(x, open("/dev/full", O_RDWR)), -ENOSPC);
	assert_int_equal(write_to(x, open("/dev/null", O_RDONLY)), -EBADF);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	for_each_form(x, form)
	{
		int ret;

		limit = old;
		limit.rlim_cur = 10000;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		ret = write_dat(x);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(ret, -EFBIG);
		unlink(x->path);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_report),	  T(test_kernelshark), T(test_dump),
		T(test_convert),  T(test_page_sizes),  T(test_page_sizes_zstd),
		T(test_no_top),	  T(test_cpu_numbers), T(test_chunks),
		T(test_lost),	  T(test_fix_page),    T(test_source),
		T(test_bad_args), T(test_full_disk),
	};

	return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
