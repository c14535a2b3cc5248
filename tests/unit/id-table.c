// SPDX-License-Identifier: LGPL-2.1-or-later
/* Users' text files: their lines, and the names, formats and symbols that come out of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/decode/id-table.h"
#include "base/array.h"

/* Puts the lines together, each behind a '|'; stops at "stop". */
static int keep_line(void *ctx, char *line)
{
	if (!strcmp(line, "stop"))
		return -ECANCELED;
	buf_printf(ctx, "|%s", line);
	memset(line, 0, strlen(line)); /* it is the callee's to write into */
	return 0;
}

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		bool trailing;
		int ret;
		const char *lines;
		unsigned int number;
	} rows[] = {
#define ROW(text, ...) { text, sizeof(text) - 1, __VA_ARGS__ }
		ROW("", true, 0, "", 0),
		ROW("a\n\n# b\nc", true, 0, "|a|c", 4),
		ROW("a # b \t\r\n  c \n", true, 0, "|a|  c", 2),
		ROW("a # b \n# c\n", false, 0, "|a # b ", 2),
		ROW("   \n", true, 0, "", 1),
		ROW("a\nstop\nb", true, -ECANCELED, "|a", 2),
		ROW("a\nb\0c\n", true, -EBADMSG, "|a", 2),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf b = { 0 };
		unsigned int number = 99;

		assert_int_equal(
			text_lines(rows[i].text, rows[i].len, rows[i].trailing, keep_line, &b, &number),
			rows[i].ret);
		assert_string_equal(buf_str(&b), rows[i].lines);
		assert_int_equal(number, rows[i].number);
		buf_release(&b);
	}
}

static void test_numbered(void **state)
{
	struct id_table t = { 0 };

	assert_null(id_table_get(&t, 0));
	assert_int_equal(id_table_set(&t, 7, "seven"), 0);
	assert_int_equal(id_table_set(&t, 2, "two"), 0);
	assert_string_equal(id_table_get(&t, 7), "seven");
	assert_null(id_table_get(&t, 3));
	assert_null(id_table_get(&t, UINT64_MAX));
	assert_int_equal(id_table_set(&t, 7, "sieben"), 0);
	assert_string_equal(id_table_get(&t, 7), "sieben");
	id_table_release(&t);
	assert_int_equal(t.n, 0);
}

static int parse_hcalls(const char *text, struct id_table *out)
{
	unsigned int line;

	return hcall_names_parse(text, strlen(text), out, &line);
}

static void test_hcalls(void **state)
{
	static const char *const bad[] = { "",	      "# none\n", "1\n", "x name\n", "4096 name\n",
					   "1 a-b\n", "1 a b\n" };
	struct id_table h;

	assert_int_equal(parse_hcalls(" 0x3\tone # the first\n\n1 two \n", &h), 0);
	assert_string_equal(hcall_name(&h, 3), "one");
	assert_string_equal(hcall_name(&h, 0xc6000001), "two");
	assert_null(hcall_name(&h, 2));
	id_table_release(&h);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse_hcalls(bad[i], &h), -EBADMSG);
		assert_int_equal(h.n, 0);
	}
}

static void test_formats(void **state)
{
	static const char text[] = "# formats\n1 x=%d #%u \n0x10\t%#06x\n";
	static const char *const bad[] = { "1\n", "x %d\n", "65536 %d\n", " \n" };
	unsigned int line;
	struct id_table f;

	assert_int_equal(hyp_formats_parse(text, strlen(text), &f, &line), 0);
	assert_string_equal(id_table_get(&f, 1), "x=%d #%u "); /* nothing of it is a comment */
	assert_string_equal(id_table_get(&f, 16), "%#06x");
	assert_null(id_table_get(&f, 2));
	id_table_release(&f);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(hyp_formats_parse(bad[i], strlen(bad[i]), &f, &line), -EBADMSG);
}

static void test_symbols(void **state)
{
	static const char text[] = "FFFF0010 T b\nffff0000 t a [mod]\n\nffff0020 D c\n";
	static const char *const bad[] = { "x T a\n", "10 T\n", "10  a\n", "11112222333344445 T a\n",
					   "1 T  \n" };
	struct symbols s;
	uint64_t offset;

	assert_int_equal(symbols_parse(text, strlen(text), &s), 0);
	assert_null(symbols_find(&s, 0xfffeffff, &offset));
	assert_string_equal(symbols_find(&s, 0xffff0000, &offset), "a");
	assert_int_equal(offset, 0);
	assert_string_equal(symbols_find(&s, 0xffff001f, &offset), "b");
	assert_int_equal(offset, 15);
	assert_string_equal(symbols_find(&s, UINT64_MAX, &offset), "c");
	symbols_release(&s);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(symbols_parse(bad[i], strlen(bad[i]), &s), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	cmocka_unit_test(test_numbered),
		cmocka_unit_test(test_hcalls),	cmocka_unit_test(test_formats),
		cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests_name("id-table", tests, NULL, NULL);
}
