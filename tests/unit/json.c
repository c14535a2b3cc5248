// SPDX-License-Identifier: GPL-2.0-only
/* JSON: what is written reads back, what is not JSON is refused. */
#include "base/json.h"
#include "base/array.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_strings(void **state)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
		{ "", "\"\"" },
		{ "vm \"one\" \\ /", "\"vm \\\"one\\\" \\\\ /\"" },
		{ "a\b\f\n\r\tz", "\"a\\b\\f\\n\\r\\tz\"" },
		{ "\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		  "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		{ "\xc2\x9b\xc2\x80\xc2\xa0", "\"\\u009b\\u0080\xc2\xa0\"" }, /* C1 */
		{ "\xe2\x80\xae\xe2\x81\xa6", "\"\\u202e\\u2066\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },	    /* no lead byte */
		{ "a\x80z", "\"a\xef\xbf\xbdz\"" }, /* a tail without a head */
		{ "\xc3", "\"\xef\xbf\xbd\"" },	    /* cut off */
		{ "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },			/* over-long */
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* a surrogate */
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf out = { 0 };
		struct json j = { .out = &out, .compact = true };

		json_str(&j, rows[i].text);
		assert_string_equal(buf_str(&out), rows[i].json);
		buf_release(&out);
	}
}

static void write_all_kinds(struct json *j)
{
	json_object(j);
	json_key(j, "a");
	json_array(j);
	json_u64(j, UINT64_MAX);
	json_i64(j, INT64_MIN);
	json_double(j, 0.5);
	json_double(j, NAN);
	json_double(j, INFINITY);
	json_array(j);
	json_array_end(j);
	json_object(j);
	json_object_end(j);
	json_array_end(j);
	json_key_str(j, "s", NULL);
	json_key(j, "t");
	json_bool(j, true);
	json_key(j, "f");
	json_bool(j, false);
	json_key_u64(j, "n", 3);
	json_key(j, "z");
	json_strn(j, "a\0b", 3);
	json_object_end(j);
}

static void test_layout(void **state)
{
	struct buf out = { 0 };
	struct json j = { .out = &out, .compact = true };

	write_all_kinds(&j);
	assert_string_equal(buf_str(&out),
			    "{\"a\":[18446744073709551615,-9223372036854775808,0.5,null,null,[],{}],"
			    "\"s\":null,\"t\":true,\"f\":false,\"n\":3,\"z\":\"a\\u0000b\"}");
	out.len = 0;
	j = (struct json){ .out = &out };
	write_all_kinds(&j);
	assert_string_equal(buf_str(&out), "{\n"
					   "  \"a\": [\n"
					   "    18446744073709551615,\n"
					   "    -9223372036854775808,\n"
					   "    0.5,\n"
					   "    null,\n"
					   "    null,\n"
					   "    [],\n"
					   "    {}\n"
					   "  ],\n"
					   "  \"s\": null,\n"
					   "  \"t\": true,\n"
					   "  \"f\": false,\n"
					   "  \"n\": 3,\n"
					   "  \"z\": \"a\\u0000b\"\n"
					   "}\n");
	buf_release(&out);
}

static void test_valid(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{ "0", true },
		{ " [ ] ", true },
		{ "{}", true },
		{ "-1.5e+3", true },
		{ "[1, 2 ,\n3]", true },
		{ "{\"a\": {\"b\": [true, false, null]}}", true },
		{ "\"\\u00e4\\ud83d\\ude00\\/\"", true },
		{ "", false },
		{ "[1,]", false },
		{ "[1 2]", false },
		{ "{\"a\"}", false },
		{ "{\"a\":1,}", false },
		{ "{a:1}", false },
		{ "01", false },
		{ "1.", false },
		{ "+1", false },
		{ "tru", false },
		{ "truee", false },
		{ "\"\n\"", false },
		{ "\"\\x\"", false },
		{ "\"\\u12g4\"", false },
		{ "\"open", false },
		{ "[[1]", false },
		{ "1 1", false },
	};
	struct json_value v;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (json_parse(rows[i].text, strlen(rows[i].text), &v) != (rows[i].ok ? 0 : -EBADMSG))
			fail_msg("'%s' is %staken", rows[i].text, rows[i].ok ? "not " : "");
}

static void test_depth(void **state)
{
	char deep[2001];
	struct json_value v;

	memset(deep, '[', 1000);
	memset(deep + 1000, ']', 1000);
	assert_int_equal(json_parse(deep, 2000, &v), -EBADMSG);
	assert_int_equal(json_parse(deep + 950, 100, &v), 0);
}

static void test_read(void **state)
{
	static const char text[] =
		"{\"x\": \"}\\\"{\", \"return\": [{\"n\": 7, \"s\": \"8\"}, 9, \"ten\", -1, 1.5],"
		" \"k\\u0065y\": \"\\ud83d\\ude00 \\ud83d \\u0041\", \"nul\": \"\\u0000\"}";
	struct json_value all, list, v, m;
	uint64_t n;
	size_t at = 0;
	char *s;

	assert_int_equal(json_parse(text, strlen(text), &all), 0);
	assert_false(json_member(all, "none", &v));
	assert_true(json_member(all, "return", &list));
	assert_false(json_member(list, "n", &v));
	assert_true(json_item(list, &at, &v));
	assert_true(json_member(v, "n", &m) && json_get_u64(m, &n) && n == 7);
	assert_true(json_member(v, "s", &m) && json_get_u64(m, &n) && n == 8);
	assert_true(json_item(list, &at, &v) && json_get_u64(v, &n) && n == 9);
	assert_true(json_item(list, &at, &v) && !json_get_u64(v, &n));
	s = json_get_str(v);
	assert_string_equal(s, "ten");
	free(s);
	assert_true(json_item(list, &at, &v) && !json_get_u64(v, &n) && !json_get_str(v));
	assert_true(json_item(list, &at, &v) && !json_get_u64(v, &n));
	assert_false(json_item(list, &at, &v));
	assert_true(json_member(all, "key", &v));
	s = json_get_str(v);
	assert_string_equal(s, "\xf0\x9f\x98\x80 \xef\xbf\xbd A");
	free(s);
	assert_true(json_member(all, "nul", &v));
	assert_null(json_get_str(v));
}

/* Long texts are looked at some bytes at a time: what is escaped may stand anywhere. */
static void test_escaped_anywhere(void **state)
{
	static const char odd[] = { '"', '\\', 0x1f, 0x7f };
	static const char *const escaped[] = { "\\\"", "\\\\", "\\u001f", "\\u007f" };

	for (size_t at = 0; at < 40; at++)
		for (size_t k = 0; k < ARRAY_SIZE(odd); k++) {
			struct buf out = { 0 }, expected = { 0 };
			char text[40];

			memset(text, 'x', sizeof(text));
			text[at] = odd[k];
			json_quoted(&out, text, sizeof(text));
			buf_printf(&expected, "\"%.*s%s%.*s\"", (int)at, text, escaped[k], (int)(39 - at),
				   text + at + 1);
			assert_string_equal(buf_str(&out), buf_str(&expected));
			buf_release(&out);
			buf_release(&expected);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escaped_anywhere),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
