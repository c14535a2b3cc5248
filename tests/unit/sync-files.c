// SPDX-License-Identifier: LGPL-2.1-or-later
/* A real capture, read, synchronised, written anew and read again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../cmd/cmd.h"
#include "sync-opened.h"
#include "base/files.h"

#define DATA "tests/data/sync/"

/* tests/data/sync/README.md */
#define LOW  32502753376
#define HIGH 32502914640

static void expect_right(const struct sync_result *r)
{
	assert_int_equal(r->class, SYNC_HARD);
	assert_string_equal(r->method, "kvm windows");
	assert_int_equal(r->events, 11646);
	assert_int_equal(r->outside, 0);
	assert_int_equal(r->n_vcpus, 2);
	assert_int_equal(r->vcpus[0].pid, 100);
	assert_int_equal(r->vcpus[1].pid, 102);
	for (size_t i = 0; i < r->n_points; i++) {
		assert_in_range(r->points[i].offset, LOW, HIGH);
		assert_true(r->points[i].bound < 90000);
	}
}

static int solve_files(const struct opened *host, const struct opened *guest, const struct offset_vcpu *vcpus,
		       size_t n_vcpus, const struct sync_prior *prior, struct sync_result *r,
		       const struct log *log)
{
	struct sync_host h;
	struct sync_guest g;
	int ret;

	assert_int_equal(sync_host_read(&h, &host->source, log), 0);
	assert_int_equal(sync_guest_read(&g, &guest->source), 0);
	ret = sync_solve_evidence(&(struct sync_evidence){ &h, &g, vcpus, n_vcpus }, prior, r);
	sync_guest_release(&g);
	sync_host_release(&h);
	return ret;
}

static void test_capture(void **state)
{
	const struct offset_vcpu right[] = { { 0, 100 }, { 1, 102 } }, wrong[] = { { 0, 102 }, { 1, 100 } };
	struct opened host, guest;
	struct sync_result r;

	open_one(&host, DATA "trace.dat");
	open_one(&guest, DATA "trace-Guest.dat");
	assert_true(host.source.steady && guest.source.steady);
	assert_int_equal(solve_files(&host, &guest, NULL, 0, NULL, &r, NULL), 0);
	expect_right(&r);
	sync_result_release(&r);
	assert_int_equal(solve_files(&host, &guest, right, 2, NULL, &r, NULL), 0);
	expect_right(&r);
	assert_false(r.map_changed);
	sync_result_release(&r);
	assert_int_equal(solve_files(&host, &guest, wrong, 2, NULL, &r, NULL), 0);
	expect_right(&r);
	assert_true(r.map_changed);
	sync_result_release(&r);
	/* without any windows: nothing */
	assert_int_equal(solve_files(&guest, &guest, NULL, 0, NULL, &r, NULL), 0);
	assert_int_equal(r.class, SYNC_NONE);
	assert_int_equal(r.n_points, 0);
	sync_result_release(&r);
	close_one(&host);
	close_one(&guest);
}

/* A hypervisor whose events have no reasons: their order tells when the guest ran. */
static void test_raw(void **state)
{
	struct opened host, guest;
	struct sync_result r;
	struct sync_host h;

	open_one(&host, "tests/data/raw/trace.dat");
	open_one(&guest, "tests/data/raw/trace-Guest.dat");
	assert_int_equal(sync_host_read(&h, &host.source, NULL), 0);
	assert_int_equal(h.n_hyp, 76); /* each kvm_entry..kvm_exit has one */
	assert_int_equal(h.hyp_checked, 76);
	assert_int_equal(h.hyp_stray, 0);
	sync_host_release(&h);
	assert_int_equal(solve_files(&host, &guest, NULL, 0, NULL, &r, NULL), 0);
	assert_int_equal(r.class, SYNC_HARD);
	assert_string_equal(r.method, "hyp windows");
	assert_int_equal(r.events, 670);
	assert_int_equal(r.outside, 0);
	for (size_t i = 0; i < r.n_points; i++)
		assert_true(r.points[i].bound < 100000);
	sync_result_release(&r);
	close_one(&host);
	close_one(&guest);
}

static void test_prior(void **state)
{
	const struct sync_prior prior = { true, 21900000000, 32502800000, 200000 };
	struct opened host, guest;
	struct sync_result r;

	open_one(&host, DATA "trace.dat");
	open_one(&guest, DATA "trace-Guest.dat");
	assert_int_equal(solve_files(&host, &guest, NULL, 0, &prior, &r, NULL), 0);
	expect_right(&r);
	sync_result_release(&r);
	host.source.n_formats = 0; /* no kvm events: whoever asked has the pings themselves */
	assert_int_equal(solve_files(&host, &guest, NULL, 0, &prior, &r, NULL), 0);
	assert_int_equal(r.class, SYNC_NONE);
	sync_result_release(&r);
	close_one(&host);
	close_one(&guest);
}

/* ---- the command ---------------------------------------------------------------------- */

static void copy(const char *from, const char *to)
{
	struct buf b = { 0 };

	assert_int_equal(read_file(from, 1 << 20, &b), 0);
	assert_int_equal(write_file_at(AT_FDCWD, to, b.data, b.len), 0);
	buf_release(&b);
}

static int run(const char *option)
{
	char *argv[] = { (char *)"sync",      (char *)"-q",    (char *)option,
			 (char *)"trace.dat", (char *)"g.dat", NULL };

	optind = 0;
	return cmd_sync(5, argv);
}

static void expect_written(void)
{
	const struct reader_option *o;
	struct offset_guest g;
	struct offset_shift s;
	struct opened one;

	open_one(&one, "g.dat");
	o = reader_option(one.reader, DAT_TIME_SHIFT);
	assert_non_null(o);
	assert_int_equal(offset_shift_decode(o->data.data, o->data.len, &s), 0);
	assert_int_equal(s.n_cpus, 2);
	assert_in_range(s.cpus[1].v[0].offset, LOW, HIGH);
	offset_shift_release(&s);
	close_one(&one);
	open_one(&one, "trace.dat");
	o = reader_option(one.reader, DAT_GUEST);
	assert_non_null(o);
	assert_int_equal(offset_guest_decode(o->data.data, o->data.len, &g), 0);
	assert_string_equal(g.name, "Guest");
	assert_int_equal(g.n, 2);
	assert_int_equal(g.vcpus[0].pid, 100);
	assert_int_equal(g.vcpus[1].pid, 102);
	offset_guest_release(&g);
	close_one(&one);
}

static void test_write(void **state)
{
	char dir[] = "/tmp/hyptrace-sync.XXXXXX", *home = getcwd(NULL, 0);
	char *guest = str_printf("%s/" DATA "trace-Guest.dat", home),
	     *same = str_printf("cmp -s g.dat.orig %s", guest);
	char *host = str_printf("%s/" DATA "trace.dat", home);

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	copy(host, "trace.dat");
	copy(guest, "g.dat");
	assert_int_equal(run("--check"), EXIT_FAILED); /* ptp's offsets */
	assert_int_equal(run("--write"), EXIT_OK);
	assert_int_equal(run("--check"), EXIT_OK);
	expect_written();
	/* again, from what was written: the first originals stay */
	assert_int_equal(run("--write"), EXIT_OK);
	assert_int_equal(system(same), 0);
	assert_int_equal(run("--plot=p.svg"), EXIT_OK);
	assert_int_equal(system("grep -q '</svg>' p.svg && rm *.dat *.orig p.svg"), 0);
	assert_int_equal(chdir(home), 0);
	assert_int_equal(rmdir(dir), 0);
	free(home);
	free(guest);
	free(host);
	free(same);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_prior),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
