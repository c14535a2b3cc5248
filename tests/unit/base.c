// SPDX-License-Identifier: LGPL-2.1-or-later
/* Foreign bytes, growing buffers, lists and numbers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cursor.h"
#include "base/files.h"
#include "base/strings.h"

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

static void test_amounts(void **state)
{
	static const struct {
		const char *text;
		const struct unit *units;
		uint64_t plain;
		int ret;
		uint64_t value;
	} rows[] = {
		{ "250us", duration_units, 0, 0, 250000 },
		{ "1.5s", duration_units, UNIT_MS, 0, 1500000000 },
		{ "0.000000001s", duration_units, 0, 0, 1 },
		{ "2min", duration_units, 0, 0, 120 * UNIT_S },
		{ "1d", duration_units, 0, 0, 86400 * UNIT_S },
		{ "7", duration_units, UNIT_MS, 0, 7000000 },
		{ "0x10", size_units, UNIT_KIB, 0, 16384 },
		{ "0.5", duration_units, UNIT_S, 0, 500000000 },
		{ "7", duration_units, 0, -EINVAL, 0 },
		{ "7sec", duration_units, UNIT_S, -EINVAL, 0 },
		{ "-1s", duration_units, UNIT_S, -EINVAL, 0 },
		{ "s", duration_units, UNIT_S, -EINVAL, 0 },
		{ "", duration_units, UNIT_S, -EINVAL, 0 },
		{ "1.s", duration_units, UNIT_S, -EINVAL, 0 },
		{ "1e3", duration_units, UNIT_S, -EINVAL, 0 },
		{ "213504d", duration_units, 0, -ERANGE, 0 },
		{ "18446744073709551616ns", duration_units, 0, -ERANGE, 0 },
		{ "18446744073709551615", size_units, UNIT_KIB, -ERANGE, 0 },
		{ "512B", size_units, 0, 0, 512 },
		{ "64K", size_units, UNIT_KIB, 0, 65536 },
		{ "1.5G", size_units, 0, 0, 3ull << 29 },
		{ "8m", size_units, UNIT_KIB, -EINVAL, 0 },
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 0;

		assert_int_equal(parse_amount(rows[i].text, rows[i].units, rows[i].plain, &v), rows[i].ret);
		if (!rows[i].ret)
			assert_int_equal(v, rows[i].value);
	}
	assert_string_equal(amount_text(90 * UNIT_S, duration_units, text), "90s");
	assert_string_equal(amount_text(3600 * UNIT_S, duration_units, text), "1h");
	assert_string_equal(amount_text(65536, size_units, text), "64K");
	assert_string_equal(amount_text(0, size_units, text), "0B");
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

static void test_str_take(void **state)
{
	char *text = NULL;

	assert_int_equal(str_take(&text, strdup("kvm")), 0);
	assert_int_equal(str_take(&text, strdup("sched")), 0); /* ASan: the first one was freed */
	assert_int_equal(str_take(&text, NULL), -ENOMEM);
	assert_string_equal(text, "sched");
	free(text);
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

static void test_files_at_offset(void **state)
{
	char got[8] = "";
	int fd = memfd_create("offset", MFD_CLOEXEC), dir = open("/", O_RDONLY | O_DIRECTORY);

	assert_int_equal(pwrite_all(fd, "abcdef", 6, 2), 0);
	assert_int_equal(pread_all(fd, got, 4, 3), 4);
	assert_string_equal(got, "bcde");
	assert_int_equal(pread_all(fd, got, sizeof(got), 6), 2); /* short at the end */
	assert_int_equal(pread_all(fd, got, 1, 100), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0); /* its place has not moved */
	assert_int_equal(pread_all(dir, got, 1, 0), -EISDIR);
	assert_int_equal(pwrite_all(dir, got, 1, 0), -EBADF);
	close(fd);
	close(dir);
}

/* The clock of a trace_clock file, of TRACECLOCK without an end, and where there is none. */
static void test_chosen_word(void **state)
{
	const char *text = "local [boot] mono";
	size_t n;

	assert_ptr_equal(chosen_word(text, strlen(text), &n), text + 7);
	assert_int_equal(n, 4);
	assert_null(chosen_word(text, 11, &n));
	assert_null(chosen_word("local", 5, &n));
	assert_null(chosen_word(NULL, 0, &n));
}

static void test_lexing(void **state)
{
	struct cursor c = cursor_at(" \t\r\n{x", 6);
	struct buf b = { 0 };

	cursor_blanks(&c);
	assert_false(cursor_accept(&c, 'x'));
	assert_int_equal(cursor_peek(&c), '{');
	assert_true(cursor_accept(&c, '{'));
	assert_true(cursor_accept(&c, 'x'));
	assert_int_equal(cursor_peek(&c), -1);
	assert_false(cursor_accept(&c, 'x'));
	cursor_blanks(&c);
	assert_false(c.bad);
	assert_int_equal(hex_value('0'), 0);
	assert_int_equal(hex_value('a'), 10);
	assert_int_equal(hex_value('F'), 15);
	assert_int_equal(hex_value('g'), -1);
	assert_int_equal(hex_value('@'), -1);
	buf_add_utf8(&b, 'a');
	buf_add_utf8(&b, 0xe4);
	buf_add_utf8(&b, 0x20ac);
	buf_add_utf8(&b, 0x1f600);
	assert_string_equal(buf_str(&b), "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	buf_release(&b);
}

static void test_decimal(void **state)
{
	struct buf b = { 0 };

	buf_add_u64(&b, 0);
	buf_add(&b, " ", 1);
	buf_add_u64(&b, 1000000009);
	buf_add(&b, " ", 1);
	buf_add_u64(&b, UINT64_MAX);
	buf_add(&b, " ", 1);
	buf_add_i64(&b, -1);
	buf_add(&b, " ", 1);
	buf_add_i64(&b, INT64_MIN);
	assert_string_equal(buf_str(&b), "0 1000000009 18446744073709551615 -1 -9223372036854775808");
	/* each number of digits, its least and most */
	for (uint64_t most = 9; most; most = most == UINT64_MAX	      ? 0
					     : most > UINT64_MAX / 10 ? UINT64_MAX
								      : most * 10 + 9)
		for (int width = 0; width < 24; width++)
			for (uint64_t v = most - 1; v - most + 1 < 3; v++) {
				char want[32], got[64];

				b.len = 0;
				buf_add_digits(&b, v, (size_t)width);
				snprintf(want, sizeof(want), "%0*" PRIu64, width, v);
				assert_string_equal(buf_str(&b), want);
				*put_decimal(got, v, (size_t)width, ' ') = 0;
				snprintf(want, sizeof(want), "%*" PRIu64, width, v);
				assert_string_equal(got, want);
			}
	buf_release(&b);
}

static bool below(const void *entry, const void *key)
{
	return *(const int *)entry < *(const int *)key;
}

static void test_array(void **state)
{
	int *v = NULL;

	for (int i = 0; i < 100; i++) {
		v = array_grow(v, (size_t)i, sizeof(*v));
		assert_non_null(v);
		v[i] = 2 * i;
	}
	for (int key = -1; key <= 200; key++) {
		size_t at = array_lower_bound(v, 100, sizeof(*v), below, &key);

		assert_true(at == 100 || v[at] >= key);
		assert_true(at == 0 || v[at - 1] < key);
	}
	assert_int_equal(array_lower_bound(NULL, 0, sizeof(*v), below, &(int){ 1 }), 0);
	free(v);
}

/* Opening a FIFO would end its writer's wait, opening a device may set it going: neither is opened. */
static void test_open_regular(void **state)
{
	char dir[] = "/tmp/test-base-XXXXXX", fifo[64], file[64], link[64], seen[512];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;

	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(write_file_at(AT_FDCWD, file, "text", 4), 0);
	assert_int_equal(symlink(file, link), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	assert_int_equal(open_regular(fifo), -EINVAL);
	assert_int_equal(open_regular("/dev/ptmx"), -EINVAL);
	assert_int_equal(open_regular(dir), -EINVAL);
	assert_int_equal(read(watch, seen, sizeof(seen)), -1);
	assert_int_equal(open_regular("/no/such/file"), -ENOENT);
	fd = open_regular(link);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, seen, sizeof(seen)), 4);
	assert_int_equal(write(fd, "x", 1), -1);
	close(fd);
	close(watch);
	unlink(link);
	unlink(file);
	unlink(fifo);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen_word),	cmocka_unit_test(test_str_take),
		cmocka_unit_test(test_cursor),		cmocka_unit_test(test_cursor_end),
		cmocka_unit_test(test_lines),		cmocka_unit_test(test_buf),
		cmocka_unit_test(test_numbers),		cmocka_unit_test(test_strlist),
		cmocka_unit_test(test_amounts),		cmocka_unit_test(test_files),
		cmocka_unit_test(test_files_at_offset), cmocka_unit_test(test_lexing),
		cmocka_unit_test(test_decimal),		cmocka_unit_test(test_array),
		cmocka_unit_test(test_open_regular),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
