// SPDX-License-Identifier: LGPL-2.1-or-later
/* The event formats of a spool as its file has them: rewritten, left out, left alone; nothing is leaked. And
 * the kernel's symbols. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "spool-fixture.h"

#include "base/files.h"
#include "file/dat/reader.h"
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

/* Reads the kernel's symbols of the file that the spool makes; late: they are read while it is written. */
static void expect_symbols(struct fixture *f, const char *version, const char *compression,
			   struct kernel_symbols *late, const struct buf *want)
{
	char path[128];
	struct dat_from_spool_opts o = { .output = path, .symbols = late };
	struct dat_text text;
	struct reader *r;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.%s.dat", f->base, version, compression);
	assert_int_equal(spool_set(f->s, "version", version), 0);
	assert_int_equal(spool_set(f->s, "compression", compression), 0);
	assert_int_equal(dat_from_spool(f->s, &o), 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(reader_open(&r, fd, NULL), 0);
	assert_int_equal(reader_symbols(reader_info(r), &text), 0);
	assert_int_equal(text.len, want->len);
	if (want->len)
		assert_memory_equal(text.data, want->data, want->len);
	reader_close(r);
	close(fd);
}

/* Symbols are kept compressed: the file has them as they were, compressed or not; a damaged text makes none.
 */
static void test_symbols(void **state)
{
	static const char page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				   "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				   "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
	static const struct {
		const char *version, *compression;
	} files[] = { { "7", "zstd" }, { "7", "none" }, { "6", "none" } };
	struct fixture *f = *state;
	struct kernel_symbols late = { .root = f->base };
	struct buf symbols = { 0 }, kept = { 0 }, none = { 0 };
	char path[128];

	for (unsigned int i = 0; i < 20000; i++)
		buf_printf(&symbols, "ffff8000%08x T function_%u\n", i * 64, i * i);
	snprintf(path, sizeof(path), "mkdir %s/proc", f->base);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/proc/kallsyms", f->base);
	assert_int_equal(write_file_at(AT_FDCWD, path, symbols.data, symbols.len), 0);
	assert_int_equal(spool_put_text(f->s, "header_page", page, strlen(page)), 0);
	assert_int_equal(spool_put_text(f->s, "header_event", "x", 1), 0);
	assert_int_equal(spool_put_text(f->s, "formats", "", 0), 0);
	expect_symbols(f, "7", "zstd", &late, &none); /* nobody reads them */
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		unlinkat(spool_dirfd(f->s), "texts/kallsyms.zst", 0);
		kernel_symbols_read(&late, f->s);
		expect_symbols(f, files[i].version, files[i].compression, &late, &symbols);
	}
	assert_int_equal(spool_get_text(f->s, "kallsyms.zst", &kept), 0);
	assert_true(kept.len < symbols.len / 2);
	for (size_t len = kept.len - 1; len; len /= 2) {
		assert_int_equal(spool_put_text(f->s, "kallsyms.zst", kept.data, len), 0);
		expect_symbols(f, "7", "zstd", NULL, &none);
	}
	buf_release(&symbols);
	buf_release(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mended, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_symbols, spool_setup, spool_teardown),
	};

	return cmocka_run_group_tests_name("spool-formats", tests, NULL, NULL);
}
