// SPDX-License-Identifier: LGPL-2.1-or-later
/* Foreign bytes, growing buffers, lists and numbers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/base.h"

static void test_cursor(void **state)
{
	static const uint8_t data[] = { 1, 2, 0, 3, 0, 0, 0, 'a', 'b', 0, 'c' };
	struct cursor c = cursor_at(data, sizeof(data));

	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 2);
	assert_int_equal(cursor_u32(&c), 3);
	assert_string_equal(cursor_str(&c), "ab");
	assert_false(c.bad);
	assert_null(cursor_str(&c)); /* no NUL any more */
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0); /* bad stays bad, also where bytes are left */
	assert_int_equal(cursor_left(&c), 1);
}

static void test_cursor_end(void **state)
{
	struct cursor c = cursor_at("1234567", 7);

	assert_int_equal(cursor_u64(&c), 0);
	assert_true(c.bad);
	c = cursor_at("1234567", 7);
	assert_null(cursor_take(&c, SIZE_MAX));
	assert_true(c.bad);
	c = cursor_at("", 0);
	assert_non_null(cursor_take(&c, 0));
	assert_false(c.bad);
}

static void test_lines(void **state)
{
	struct cursor c = cursor_at("one\n\nlast", 9);
	const char *line;
	size_t len;

	assert_true(cursor_line(&c, &line, &len));
	assert_int_equal(len, 3);
	assert_memory_equal(line, "one", 3);
	assert_true(cursor_line(&c, &line, &len));
	assert_int_equal(len, 0);
	assert_true(cursor_line(&c, &line, &len));
	assert_memory_equal(line, "last", 4);
	assert_false(cursor_line(&c, &line, &len));
}

static void test_buf(void **state)
{
	struct buf b = { 0 };

	assert_string_equal(buf_str(&b), "");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%d,", i);
	assert_int_equal(b.len, 3890);
	buf_addstr(&b, "end");
	assert_string_equal(buf_str(&b) + b.len - 7, "999,end");
	assert_int_equal(buf_status(&b), 0);
	buf_release(&b);
	assert_int_equal(b.len, 0);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t value;
	} rows[] = {
		{ "0", 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "0x1F", 0, 31 },
		{ "0x", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1k", -EINVAL, 0 },
		{ "0x-1", -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 0;

		assert_int_equal(parse_u64(rows[i].text, &v), rows[i].ret);
		assert_int_equal(v, rows[i].value);
	}
}

static void test_strlist(void **state)
{
	struct strlist l = { 0 };

	assert_int_equal(strlist_add(&l, "kvm"), 0);
	assert_int_equal(strlist_add(&l, "sched"), 0);
	assert_true(strlist_has(&l, "sched"));
	assert_false(strlist_has(&l, "sch"));
	strlist_release(&l);
	assert_int_equal(l.n, 0);
}

static void test_files(void **state)
{
	char dir[] = "/tmp/hyptrace-base-XXXXXX", path[64];
	struct buf b = { 0 };
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(write_file_at(fd, "x", "12345", 5), 0);
	assert_int_equal(read_file_at(fd, "x", 4, &b), -EFBIG);
	buf_release(&b);
	assert_int_equal(read_file_at(fd, "x", 5, &b), 0);
	assert_string_equal(buf_str(&b), "12345");
	buf_release(&b);
	assert_int_equal(read_file_at(fd, "none", 5, &b), -ENOENT);
	assert_int_equal(unlinkat(fd, "x", 0), 0);
	close(fd);
	strcpy(path, dir);
	assert_int_equal(rmdir(path), 0);
	fd = open("/dev/full", O_WRONLY);
	assert_int_equal(write_all(fd, "x", 1), -ENOSPC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cursor),	cmocka_unit_test(test_cursor_end),
		cmocka_unit_test(test_lines),	cmocka_unit_test(test_buf),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_strlist),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
