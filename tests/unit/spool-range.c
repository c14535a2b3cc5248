// SPDX-License-Identifier: GPL-2.0-only
/* Which of a spool's pages count, how their room is given back, and spools that are parts of others. */
#include "record/spool/spool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define PAGE 4096
#define FAR  (16 * PAGE) /* a hole that every file system makes */

struct fixture {
	char dir[64];
	struct spool *s;
};

/* Two buffers of 2 and 1 CPUs; CPU 1 of the first has 32 pages and a piece of one, each of its own number. */
static int setup(void **state)
{
	static struct fixture f;
	const struct spool_buffer b = { "", "boot", ".", "host", PAGE, 2 },
				  one = { "x", "boot", "x", "host", PAGE, 1 };
	char page[PAGE], path[96];
	int fd;

	strcpy(f.dir, "/tmp/hyptrace-range.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(path, sizeof(path), "%s/t.spool", f.dir);
	assert_int_equal(spool_create(&f.s, path, NULL), 0);
	assert_int_equal(spool_set(f.s, "output", "/tmp/a.b/trace.dat"), 0);
	assert_int_equal(spool_set(f.s, "state", "armed"), 0);
	assert_int_equal(spool_add_buffer(f.s, &b) + spool_add_buffer(f.s, &one), 0);
	fd = spool_pages_fd(f.s, 0, 1);
	assert_true(fd >= 0);
	for (int i = 0; i < 32; i++) {
		memset(page, i, sizeof(page));
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	}
	assert_int_equal(write(fd, page, 100), 100);
	close(fd);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	spool_remove(f->s);
	return rmdir(f->dir);
}

static void check_range(const struct spool *s, size_t buffer, unsigned int cpu, uint64_t from, uint64_t to)
{
	struct spool_range r;
	int fd = spool_pages_open(s, buffer, cpu, &r);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(r.from, from);
	assert_int_equal(r.to, to);
}

static void check_output(const struct spool *s, const char *want)
{
	char *output = spool_output(s);

	assert_string_equal(output, want);
	free(output);
}

static void test_ranges(void **state)
{
	struct fixture *f = *state;
	struct spool_range r[3] = { { 0, UINT64_MAX }, { 2 * PAGE, UINT64_MAX }, { 0, UINT64_MAX } };

	/* all there is, in whole pages */
	check_range(f->s, 0, 1, 0, 32 * PAGE);
	check_output(f->s, "/tmp/a.b/trace.dat");
	assert_int_equal(spool_set_ranges(f->s, 7, r), 0);
	check_range(f->s, 0, 0, 0, 0);
	check_range(f->s, 0, 1, 2 * PAGE, 32 * PAGE);
	check_range(f->s, 1, 0, 0, 0);
	check_output(f->s, "/tmp/a.b/trace.007.dat");
	/* what cannot be is nothing, or what there is */
	r[1] = (struct spool_range){ 99 * PAGE, UINT64_MAX };
	assert_int_equal(spool_set_ranges(f->s, 1000, r), 0);
	check_range(f->s, 0, 1, 32 * PAGE + 100, 32 * PAGE + 100);
	check_output(f->s, "/tmp/a.b/trace.1000.dat");
	assert_int_equal(spool_set(f->s, "output", "/tmp/a.b/trace"), 0);
	check_output(f->s, "/tmp/a.b/trace.1000");
}

/* What was rewritten counts, all of it; other buffers keep their ranges. */
static void test_rewritten(void **state)
{
	struct fixture *f = *state;
	const struct spool_range r[3] = { { 0, UINT64_MAX }, { 2 * PAGE, UINT64_MAX }, { 8, UINT64_MAX } };
	char page[PAGE] = "x";
	int fd;

	assert_int_equal(spool_set_ranges(f->s, 1, r) + spool_rewrite_begin(f->s), 0);
	fd = spool_rewrite_fd(f->s, 1, 0);
	assert_int_equal(write(fd, page, PAGE), PAGE);
	close(fd);
	assert_int_equal(spool_rewrite_end(f->s, SPOOL_REPAIRED), 0);
	check_range(f->s, 1, 0, 0, PAGE);
	check_range(f->s, 0, 1, 2 * PAGE, 32 * PAGE);
	assert_int_equal(spool_pages_from(f->s, 0, 1), 2 * PAGE);
}

static void test_forget(void **state)
{
	struct fixture *f = *state;
	struct stat before, after;
	char page[PAGE];
	int fd;

	if (spool_can_forget(spool_dirfd(f->s)) == -EOPNOTSUPP)
		skip();
	fd = spool_pages_fd(f->s, 0, 1);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(spool_forget(f->s, 0, 1, 0), 0);
	assert_int_equal(spool_forget(f->s, 0, 1, FAR), 0);
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_true(after.st_blocks <= before.st_blocks - FAR / 512);
	assert_int_equal(pread(fd, page, PAGE, FAR), PAGE);
	assert_int_equal(page[0], FAR / PAGE);
	close(fd);
}

static void test_part(void **state)
{
	struct fixture *f = *state;
	const struct spool_range r[3] = { { 0, PAGE }, { PAGE, 3 * PAGE }, { 0, 0 } };
	struct buf text = { 0 };
	struct page_layout layout;
	struct spool *part;

	assert_int_equal(spool_put_text(f->s, "formats", "f", 1) + spool_put_text(f->s, "options", "o", 1),
			 0);
	assert_int_equal(spool_part(&part, f->s, NULL), 0);
	assert_true(spool_is_part(part) && !spool_is_part(f->s));
	assert_int_equal(spool_set_ranges(part, 3, r), 0);
	check_range(part, 0, 1, PAGE, 3 * PAGE);
	check_range(f->s, 0, 1, 0, 32 * PAGE);
	check_output(part, "/tmp/a.b/trace.003.dat");
	check_output(f->s, "/tmp/a.b/trace.dat");
	/* recover is to leave it alone */
	assert_null(spool_get(part, "state"));
	/* texts: the whole's, but for what is put into the part */
	assert_int_equal(spool_get_text(part, "formats", &text), 0);
	assert_int_equal(spool_append_text(part, "options", "p", 1), 0);
	assert_int_equal(spool_get_text(part, "options", &text), 0);
	assert_int_equal(spool_get_text(f->s, "options", &text), 0);
	assert_string_equal(buf_str(&text), "fopo");
	buf_release(&text);
	assert_int_equal(spool_put_text(f->s, "header_page", "x", 1), 0);
	assert_int_not_equal(spool_page_layout(part, &layout), -ENOENT);
	/* one at a time; what a kill left goes */
	spool_close(part);
	assert_int_equal(spool_part(&part, f->s, NULL), -EEXIST);
	spool_remove_part(f->s);
	assert_int_equal(spool_part(&part, f->s, NULL), 0);
	assert_int_equal(spool_remove(part), 0);
	check_range(f->s, 0, 1, 0, 32 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rewritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_part, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
