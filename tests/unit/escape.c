// SPDX-License-Identifier: GPL-2.0-only
/* What a terminal would obey is shown; all else stays. */
#include "base/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/log.h"

static void test_lines(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "", "" },
		{ "CPU 0/KVM ~", "CPU 0/KVM ~" },
		{ "a\tb", "a\tb" },
		{ "\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07" },
		{ "one\ntwo\r", "one\\x0atwo\\x0d" },
		{ "\x7f\b", "\\x7f\\x08" },
		{ "eight by\x1btes", "eight by\\x1btes" },
		{ "1234567\x7f", "1234567\\x7f" },
		{ "\x1f\x01", "\\x1f\\x01" },
		{ "\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b31m" }, /* CSI as UTF-8 */
		{ "\x9b"
		  "31m",
		  "\\x9b31m" },								  /* ... and alone */
		{ "\xe2\x9b", "\xe2\\x9b" },						  /* cut off */
		{ "\xe2\x9b\x84 gr\xc3\xbc\xc3\x9f", "\xe2\x9b\x84 gr\xc3\xbc\xc3\x9f" }, /* no C1 in there */
		{ "caf\xe9", "caf\xe9" },						  /* Latin 1 */
		{ "\xf0\x9f\x98\x80\xc2\xa0", "\xf0\x9f\x98\x80\xc2\xa0" },
		{ "a\xe2\x80\xaetxt.exe", "a\\xe2\\x80\\xaetxt.exe" }, /* U+202E */
		{ "\xe2\x81\xa6\xe2\x81\xa9", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9" },
		{ "\xe2\x80\x8f\xd8\x9c", "\\xe2\\x80\\x8f\\xd8\\x9c" },	  /* U+200F, U+061C */
		{ "\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9" }, /* separators of lines */
		{ "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xd8\x9b",
		  "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xd8\x9b" }, /* their neighbours */
	};
	char out[128];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(escape_line(out, sizeof(out), rows[i].text), rows[i].shown);
}

/* Never half of "\x1b", and always an end. */
static void test_cut(void **state)
{
	char out[16];

	assert_string_equal(escape_line(out, 6, "abcdefgh"), "abcde");
	assert_string_equal(escape_line(out, 6, "abc\x1b"), "abc");
	assert_string_equal(escape_line(out, 8, "abc\x1b"), "abc\\x1b");
	assert_string_equal(escape_line(out, 1, "abc"), "");
}

/* All pieces together are the text, whatever its bytes. */
static void test_pieces(void **state)
{
	uint8_t text[300];
	char room[ESCAPE_MAX];

	for (unsigned int seed = 0; seed < 2000; seed++) {
		srand(seed);
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = rand() % 4 ? (uint8_t)rand() : 'x';
		for (size_t at = 0, len, n; at < sizeof(text); at += len) {
			const char *show;

			len = escape_run(text + at, sizeof(text) - at, &show, &n, room);
			assert_in_range(len, 1, sizeof(text) - at);
			if (show != room) {
				assert_ptr_equal(show, text + at);
				assert_int_equal(n, len);
			} else {
				assert_int_equal(n, 4 * len);
			}
			for (size_t i = 0; i < n; i++)
				assert_true(((uint8_t)show[i] >= 0x20 && show[i] != 0x7f) ||
					    show[i] == '\n' || show[i] == '\t');
		}
	}
}

static void keep(void *ctx, enum log_level level, const char *msg)
{
	buf_addstr(ctx, msg);
}

static void test_messages_are_lines(void **state)
{
	struct buf got = { 0 };
	struct log log = { keep, &got };

	log_err(&log, "no guest '%s'", "x'\nhyptrace: all is well\x1b[A");
	assert_string_equal(buf_str(&got), "no guest 'x'\\x0ahyptrace: all is well\\x1b[A'");
	buf_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_messages_are_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
