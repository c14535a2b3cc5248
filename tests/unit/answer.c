// SPDX-License-Identifier: LGPL-2.1-or-later
/* Answers in their three forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/answer.h"
#include "base/array.h"

static const struct answer_column columns[] = {
	{ "reason", "reason", ANSWER_WORD },  { "count", "count", ANSWER_COUNT },
	{ "diff", "diff", ANSWER_SIGNED },    { "esr", "ESR", ANSWER_HEX },
	{ "max_ns", "max", ANSWER_DURATION }, { "at", "at", ANSWER_TIME },
	{ "share", "share", ANSWER_SHARE },
};

static void write_answer(enum answer_form form, struct buf *out)
{
	const struct answer_cell full[] = { CELL_WORD("say \"hi\",\x1b[1m"),
					    CELL_N(12),
					    CELL_N((uint64_t)-3),
					    CELL_N(0x56000046),
					    CELL_N(187312),
					    CELL_N(65000000001),
					    CELL_SHARE(0.1234) };
	const struct answer_cell none[ARRAY_SIZE(columns)] = { CELL_NONE };
	struct answer a;

	answer_begin(&a, form, out);
	answer_table(&a, "exits", "Exits", columns, ARRAY_SIZE(columns));
	answer_row(&a, full);
	answer_row(&a, none);
	answer_table_end(&a);
	answer_table(&a, "empty", NULL, columns, 1);
	answer_table_end(&a);
	answer_note(&a, "%d events were lost", 3);
	answer_end(&a);
}

static void test_forms(void **state)
{
	static const char *const want[] = {
		[ANSWER_TEXT] = "Exits\n"
				"reason            count  diff         ESR      max            at  share\n"
				"say \"hi\",\\x1b[1m     12    -3  0x56000046  187.3us  65.000000001  12.3%\n"
				"-                     -     -           -        -             -      -\n"
				"\n"
				"reason\n"
				"3 events were lost\n",
		[ANSWER_JSON] =
			"{\n"
			"  \"schema\": 1,\n"
			"  \"exits\": [\n"
			"    {\"reason\":\"say \\\"hi\\\",\\u001b[1m\",\"count\":12,\"diff\":-3,"
			"\"esr\":\"0x56000046\",\"max_ns\":187312,\"at\":\"65.000000001\",\"share\":0.1234},"
			"\n"
			"    {\"reason\":null,\"count\":null,\"diff\":null,\"esr\":null,\"max_ns\":null,"
			"\"at\":null,\"share\":null}\n"
			"  ],\n"
			"  \"empty\": [],\n"
			"  \"notes\": [\n"
			"    \"3 events were lost\"\n"
			"  ]\n"
			"}\n",
		[ANSWER_CSV] =
			"exits,reason,count,diff,esr,max_ns,at,share\n"
			"exits,\"say \"\"hi\"\",\\x1b[1m\",12,-3,0x56000046,187312,65.000000001,0.1234\n"
			"exits,,,,,,,\n"
			"empty,reason\n"
			"note,3 events were lost\n",
	};

	for (size_t form = 0; form < ARRAY_SIZE(want); form++) {
		struct buf out = { 0 };

		write_answer(form, &out);
		assert_string_equal(buf_str(&out), want[form]);
		buf_release(&out);
	}
}

/* The widest word is cut, numbers are not. */
static void test_width(void **state)
{
	static const struct answer_column cols[] = { { "a", "a", ANSWER_WORD },
						     { "n", "n", ANSWER_COUNT },
						     { "b", "b", ANSWER_WORD } };
	char word[101] = { 0 };
	const struct answer_cell cells[] = { CELL_WORD(word), CELL_N(UINT64_MAX), CELL_WORD("short") };
	struct buf out = { 0 };
	struct answer a;
	const char *line;

	memset(word, 'x', 100);
	answer_begin(&a, ANSWER_TEXT, &out);
	answer_table(&a, "t", NULL, cols, ARRAY_SIZE(cols));
	for (size_t i = 0; i < 2500; i++)
		answer_row(&a, cells);
	answer_table_end(&a);
	answer_end(&a);
	line = buf_str(&out);
	for (size_t i = 0; i < 2501; i++) {
		size_t n = strcspn(line, "\n");

		assert_true(n <= ANSWER_WIDTH);
		if (i)
			assert_non_null(strstr(line, "xxx...  18446744073709551615  short\n"));
		line += n + 1;
	}
	assert_string_equal(line, "");
	buf_release(&out);
}

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} want[] = {
		{ 0, "0ns" },
		{ 999, "999ns" },
		{ 1000, "1.000us" },
		{ 187312, "187.3us" },
		{ 999949, "999.9us" },
		{ 999950, "1.000ms" },
		{ 12345678, "12.35ms" },
		{ 999950000, "1.000s" },
		{ 61000000000, "61.00s" },
		{ 86400000000000, "86400.0s" },
	};
	char out[16];

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(duration_text(want[i].ns, out), want[i].text);
	assert_string_equal(duration_text(UINT64_MAX, out), "18446744073.7s");
}

/* Durations and times are plain numbers, and no key or text speaks of ns. */
static void test_ticks(void **state)
{
	static const struct {
		enum answer_form form;
		const char *text;
	} want[] = {
		{ ANSWER_TEXT, "of 187312 ticks from 65000000001\n\n"
			       "   max           at\n187312  65000000001\n"
			       "times and durations are ticks, not ns\n" },
		{ ANSWER_CSV, "note,of 187312 ticks from 65000000001\n"
			      "exits,max_ticks,at\nexits,187312,65000000001\n"
			      "note,\"times and durations are ticks, not ns\"\n" },
		{ ANSWER_JSON, "{\n  \"schema\": 1,\n  \"exits\": [\n    "
			       "{\"max_ticks\":187312,\"at\":65000000001}\n  ],\n  \"notes\": [\n"
			       "    \"of 187312 ticks from 65000000001\",\n"
			       "    \"times and durations are ticks, not ns\"\n  ]\n}\n" },
	};
	const struct answer_cell cells[] = { CELL_N(187312), CELL_N(65000000001) };
	char took[32], at[32];

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct buf out = { 0 };
		struct answer a;

		answer_begin(&a, want[i].form, &out);
		a.ticks = true;
		answer_note(&a, "of %s from %s", answer_duration(&a, 187312, took),
			    answer_time(&a, 65000000001, at));
		answer_table(&a, "exits", NULL, &columns[4], 2);
		answer_row(&a, cells);
		answer_table_end(&a);
		answer_end(&a);
		assert_string_equal(buf_str(&out), want[i].text);
		buf_release(&out);
	}
}

/* Tables for programs only: lists and one object; people get a text of their own. */
static void test_lists(void **state)
{
	static const char *const want[] = {
		[ANSWER_TEXT] = "two threads\n",
		[ANSWER_JSON] =
			"{\n  \"schema\": 1,\n  \"hyp\": {\n    \"on\": true\n  },\n  \"guests\": [\n    {\n"
			"      \"name\": \"a\",\n      \"vcpus\": [\n"
			"        {\n          \"cpu\": 0,\n          \"pid\": 7\n        },\n"
			"        {\n          \"cpu\": 1,\n          \"pid\": null\n        }\n      ],\n"
			"      \"sources\": [\n        \"proc\",\n        \"vm list\"\n      ],\n"
			"      \"shift\": {\n        \"cpu\": 0,\n        \"pid\": 7\n      }\n    }\n  "
			"]\n}\n",
		[ANSWER_CSV] = "hyp,on\nhyp,true\nguests,name,vcpus,sources,shift\n"
			       "guests,a,0:7;1:,proc;vm list,0:7\n",
	};
	static const struct answer_column vcpu[] = { { "cpu", NULL, ANSWER_COUNT },
						     { "pid", NULL, ANSWER_COUNT } };
	static const struct answer_column on[] = { { "on", NULL, ANSWER_BOOL } };
	static const struct answer_column source[] = { { "source", NULL, ANSWER_WORD } };
	static const struct answer_column guest[] = { { "name", NULL, ANSWER_WORD },
						      { "vcpus", NULL, ANSWER_LIST },
						      { "sources", NULL, ANSWER_LIST },
						      { "shift", NULL, ANSWER_LIST } };
	const struct answer_cell threads[] = { CELL_N(0), CELL_NOT_0(7), CELL_N(1), CELL_NOT_0(0) };
	const struct answer_cell words[] = { CELL_WORD("proc"), CELL_WORD("vm list") };
	const struct answer_list vcpus = { vcpu, 2, threads, 2, false },
				 sources = { source, 1, words, 2, false },
				 shift = { vcpu, 2, threads, 1, true };
	const struct answer_cell row[] = { CELL_WORD("a"), CELL_LIST(&vcpus), CELL_LIST(&sources),
					   CELL_LIST(&shift) };

	for (size_t form = 0; form < ARRAY_SIZE(want); form++) {
		struct buf out = { 0 };
		struct answer a;

		answer_begin(&a, form, &out);
		a.indented = true;
		answer_object(&a, "hyp", on, 1, (struct answer_cell[]){ CELL_N(1) });
		answer_table(&a, "guests", NULL, guest, ARRAY_SIZE(guest));
		answer_row(&a, row);
		answer_table_end(&a);
		answer_text(&a, "two threads\n");
		answer_end(&a);
		assert_string_equal(buf_str(&out), want[form]);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms), cmocka_unit_test(test_width), cmocka_unit_test(test_durations),
		cmocka_unit_test(test_ticks), cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
