// SPDX-License-Identifier: LGPL-2.1-or-later
/* Protobuf messages as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/protobuf.h"

static void expect(struct buf *b, const void *bytes, size_t n)
{
	assert_int_equal(b->len, n);
	assert_memory_equal(b->data, bytes, n);
	buf_release(b);
}

static void test_numbers(void **state)
{
	struct buf b = { 0 };

	pb_number(&b, 1, 0);
	pb_number(&b, 15, 127);
	pb_number(&b, 16, 128);
	expect(&b, "\x08\x00\x78\x7f\x80\x01\x80\x01", 8);
	pb_number(&b, 1, UINT64_MAX);
	expect(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	pb_number(&b, 536870911, (uint64_t)-2ll);
	expect(&b, "\xf8\xff\xff\xff\x0f\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15);
}

static void test_texts(void **state)
{
	struct buf b = { 0 };

	pb_text(&b, 2, "abc", 3);
	pb_text(&b, 2, "abc", 2);
	pb_text(&b, 2, "a\0c", 3);
	pb_text(&b, 2, "", 0);
	expect(&b,
	       "\x12\x03"
	       "abc\x12\x02"
	       "ab\x12\x01"
	       "a\x12\x00",
	       14);
	/* no UTF-8, a half of it, and some that is */
	pb_text(&b, 2, "a\xff\xc3\xc3\xa4\0x", 7);
	expect(&b,
	       "\x12\x09"
	       "a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4",
	       11);
}

/* The length in front of a message takes as many bytes as it needs. */
static void test_messages(void **state)
{
	static const size_t lens[] = { 0, 127, 128, 16383, 16384 };
	static const size_t heads[] = { 2, 2, 3, 3, 4 };
	char text[16384];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct buf b = { 0 }, same = { 0 };
		size_t message = pb_open(&b, 3);

		buf_add(&b, text, lens[i]);
		pb_close(&b, message);
		assert_int_equal(b.len, heads[i] + lens[i]);
		pb_bytes(&same, 3, text, lens[i]);
		expect(&b, same.data, same.len);
		buf_release(&same);
	}
}

static void test_nested(void **state)
{
	struct buf b = { 0 };
	size_t outer = pb_open(&b, 1), inner = pb_open(&b, 2);

	pb_number(&b, 1, 5);
	pb_close(&b, inner);
	pb_number(&b, 3, 6);
	pb_close(&b, outer);
	expect(&b, "\x0a\x06\x12\x02\x08\x05\x18\x06", 8);
}

static void test_no_memory(void **state)
{
	struct buf b = { .bad = true };
	size_t message = pb_open(&b, 1);

	pb_number(&b, 1, 5);
	pb_text(&b, 1, "\xff", 1);
	pb_close(&b, message);
	assert_true(b.bad);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	  cmocka_unit_test(test_texts),
		cmocka_unit_test(test_messages),  cmocka_unit_test(test_nested),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
