// SPDX-License-Identifier: LGPL-2.1-or-later
/* The event formats of a spool as its file has them: rewritten, left out, left alone; nothing is leaked. */
#include <string.h>

#include "spool-fixture.h"

#include "record/drain/spool-to-dat.h"

#define HEAD                                                                                                 \
	"name: e\nID: 700\nformat:\n"                                                                        \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"                             \
	"\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: "

static void add_format(struct buf *all, const char *print_fmt)
{
	buf_printf(all, "kvm %zu\n%s%s", strlen(HEAD) + strlen(print_fmt), HEAD, print_fmt);
}

static void keep_message(void *ctx, enum log_level level, const char *msg)
{
	snprintf(ctx, 256, "%s", msg);
}

static void test_mended(void **state)
{
	static const char *const want[] = {
		HEAD "\"%d\", REC->a ? 1 : 2\n", /* looked at, and as it was */
		HEAD "\"%d\", REC->a ? REC->a : 3\n",
		HEAD "\"%d\", REC->a ? 2 : 1\n",
		HEAD "\n",
	};
	struct fixture *f = *state;
	struct buf all = { 0 }, deep = { 0 };
	struct spool_formats formats = { 0 };
	char said[256] = "";
	struct log log = { keep_message, said };

	add_format(&all, "\"%d\", REC->a ? 1 : 2\n");
	add_format(&all, "\"%d\", REC->a ?: 3\n");
	add_format(&all, "\"%d\", REC->a ? 2 : 1\n");
	buf_addstr(&deep, "\"%d\", ");
	for (int i = 0; i < 1000; i++)
		buf_addstr(&deep, "(");
	add_format(&all, buf_str(&deep));
	assert_int_equal(spool_put_text(f->s, "formats", all.data, all.len), 0);
	assert_int_equal(spool_formats_load(&formats, f->s, &log), 0);
	assert_int_equal(formats.n_texts, 4);
	for (size_t i = 0; i < formats.n_texts; i++) {
		assert_int_equal(formats.texts[i].len, strlen(want[i]));
		assert_memory_equal(formats.texts[i].data, want[i], strlen(want[i]));
	}
	assert_string_equal(said,
			    "the print format of kvm:e is nested deeper than any kernel's: it is left out");
	spool_formats_release(&formats);
	buf_release(&deep);
	buf_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mended, spool_setup, spool_teardown),
	};

	return cmocka_run_group_tests_name("spool-formats", tests, NULL, NULL);
}
