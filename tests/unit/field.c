// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fields of records whose bytes and offsets cannot be trusted. */
#include "base/field.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "plugin-rig.h"

static struct rig_event event = {
	.sys = "test",
	.name = "thing",
	.fields = "u64 big; s64 low; int small; u8 byte; __data_loc char[] text; char tail[]",
	.packed = true,
	.id = 300,
};

struct fixture {
	struct rig rig;
	struct tep_event *event;
	struct buf rec;
};

static int setup(void **state)
{
	/* the text lies behind the fixed fields: at 37, "late" and its NUL */
	const uint64_t values[] = { UINT64_MAX, (uint64_t)-2, (uint32_t)-3, 0xfe, 5u << 16 | 37, 0 };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->rig.tep = tep_alloc();
	assert_non_null(f->rig.tep);
	f->event = rig_add(&f->rig, &event);
	assert_int_equal(event.len, 33);
	rig_record(&event, values, "abc\0late", 9, &f->rec);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tep_free(f->rig.tep);
	buf_release(&f->rec);
	free(f);
	return 0;
}

static uint64_t number(struct fixture *f, const char *name)
{
	const struct tep_format_field *field = tep_find_field(f->event, name);
	uint64_t v;

	assert_true(field_is_number(field));
	assert_true(field_number(field, f->rec.data, f->rec.len, &v));
	return v;
}

static void test_numbers(void **state)
{
	struct fixture *f = *state;
	uint64_t v = 1;

	assert_int_equal(number(f, "big"), UINT64_MAX);
	assert_int_equal(number(f, "low"), -2);
	assert_int_equal(number(f, "small"), -3);
	assert_int_equal(number(f, "byte"), 0xfe);
	/* one byte too few */
	assert_false(field_number(tep_find_field(f->event, "byte"), f->rec.data, 28, &v));
	assert_int_equal(v, 0);
	assert_false(field_is_number(tep_find_field(f->event, "text")));
	assert_false(field_is_number(NULL));
}

static void test_bytes(void **state)
{
	struct fixture *f = *state;
	const struct tep_format_field *text = tep_find_field(f->event, "text");
	const struct tep_format_field *tail = tep_find_field(f->event, "tail");
	const uint8_t *data;
	size_t n;

	assert_int_equal(field_bytes(text, f->rec.data, f->rec.len, &data, &n), 1);
	assert_int_equal(n, 5);
	assert_memory_equal(data, "late", 5);
	/* to the end of the record */
	assert_int_equal(field_bytes(tail, f->rec.data, f->rec.len, &data, &n), 1);
	assert_int_equal(n, 9);
	assert_memory_equal(data, "abc\0late", 9);
	assert_int_equal(field_bytes(tep_find_field(f->event, "byte"), f->rec.data, f->rec.len, &data, &n),
			 0);
	assert_int_equal(field_bytes(NULL, f->rec.data, f->rec.len, &data, &n), 0);
}

static void test_short(void **state)
{
	struct fixture *f = *state;
	const struct tep_format_field *text = tep_find_field(f->event, "text");
	const uint8_t *data;
	size_t n;

	/* the record ends within the text, then before where it says that it is */
	assert_int_equal(field_bytes(text, f->rec.data, f->rec.len - 1, &data, &n), -EBADMSG);
	assert_int_equal(n, 0);
	assert_string_equal((const char *)data, "");
	assert_int_equal(field_bytes(text, f->rec.data, 32, &data, &n), -EBADMSG);
	assert_int_equal(field_bytes(text, NULL, 0, &data, &n), -EBADMSG);
}

/* What is not there reads as zeros, one byte after the other. */
static void test_padded(void **state)
{
	struct fixture *f = *state;
	const struct field_load low = field_load(tep_find_field(f->event, "low"));
	const struct field_load text = field_load_word(tep_find_field(f->event, "text"));
	uint8_t *cut;

	assert_int_equal(low.kind, FIELD_NUMBER);
	assert_int_equal(field_load_padded(&low, f->rec.data, f->rec.len), -2);
	for (size_t n = 0; n < 8; n++) {
		size_t len = low.offset + n;
		uint64_t want = n ? UINT64_MAX >> (64 - 8 * n) & (uint64_t)-2 : 0;

		cut = malloc(len); /* whatever is read behind it is found */
		assert_non_null(cut);
		memcpy(cut, f->rec.data, len);
		assert_int_equal(field_load_padded(&low, cut, len), want);
		free(cut);
	}
	assert_int_equal(field_load_padded(&low, NULL, 0), 0);
	/* a place as a number */
	assert_int_equal(text.kind, FIELD_NUMBER);
	assert_int_equal(field_load_padded(&text, f->rec.data, f->rec.len), 5u << 16 | 37);
	assert_int_equal(field_load_word(tep_find_field(f->event, "tail")).kind, FIELD_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_padded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
