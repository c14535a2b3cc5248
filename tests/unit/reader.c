// SPDX-License-Identifier: LGPL-2.1-or-later
/* What dat_write writes comes back; what is cut off or bent is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "file/dat/reader.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/workers.h"

#define PAGE  4096
#define PAGES 25 /* two chunks and a half */

#define TEXT(s)                                                                                              \
	{                                                                                                    \
		s, sizeof(s) - 1                                                                             \
	}

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static int pages_file(uint8_t seed)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);
	uint8_t page[PAGE];

	for (int i = 0; i < PAGES; i++) {
		memset(page, seed + i, sizeof(page));
		assert_int_equal(write_all(fd, page, sizeof(page)), 0);
	}
	return fd;
}

/* A file with a top buffer of two CPUs, the second empty, and an instance. */
static int make(int version, const char *compression)
{
	static const struct dat_text ftrace[] = { TEXT("name: function\nID: 1\n") };
	static const struct dat_text kvm[] = { TEXT("name: kvm_entry\nID: 400\n"),
					       TEXT("name: kvm_exit\nID: 401\n") };
	static const struct dat_system systems[] = { { "kvm", 2, kvm } };
	static const struct dat_option options[] = { { DAT_UNAME, "Linux", 6 },
						     { DAT_TRACEID, "12345678", 8 } };
	struct dat_cpu top[] = { { .fd = pages_file(1), .size = PAGES * PAGE }, { .fd = -1 } };
	struct dat_cpu hyp[] = { { .fd = -1 }, { .fd = pages_file(100), .size = PAGES * PAGE } };
	struct dat_buffer buffers[] = {
		{ .name = "", .clock = "boot", .page_size = PAGE, .n_cpus = 2, .cpus = top },
		{ .name = "hyp", .clock = "boot", .page_size = PAGE, .n_cpus = 2, .cpus = hyp },
	};
	struct dat_file f = {
		.version = version,
		.compression = compression,
		.page_size = PAGE,
		.header_page = TEXT(header_page),
		.header_event = TEXT("# compressed entry header\n"),
		.ftrace = ftrace,
		.n_ftrace = 1,
		.systems = systems,
		.n_systems = 1,
		.kallsyms = TEXT("ffff800080000000 T _text\n"),
		.printk = TEXT("0x1 : \"x\"\n"),
		.cmdlines = TEXT("112 CPU 0/KVM\n"),
		.buffers = buffers,
		.n_buffers = 2,
		.options = options,
		.n_options = 2,
	};
	int fd = memfd_create("trace.dat", MFD_CLOEXEC);

	f.header_page.len = sizeof(header_page) - 1;
	assert_int_equal(dat_write(&f, fd, NULL), 0);
	close(top[0].fd);
	close(hyp[1].fd);
	return fd;
}

static void assert_text(struct dat_text t, const char *expected)
{
	assert_int_equal(t.len, strlen(expected));
	assert_memory_equal(t.data, expected, t.len);
}

/* Number of pages whose bytes all are seed, seed + 1 ... */
static int count_pages(const struct reader *r, size_t buffer, size_t cpu, uint8_t seed)
{
	struct reader_pages *p;
	const uint8_t *page;
	int n = 0, ret;

	assert_int_equal(reader_pages_open(&p, r, buffer, cpu), 0);
	while ((ret = reader_pages_next(p, &page)) == 1) {
		for (int i = 0; i < PAGE; i++)
			assert_int_equal(page[i], (uint8_t)(seed + n));
		n++;
	}
	assert_int_equal(ret, 0);
	reader_pages_close(p);
	return n;
}

static void check(int version, const char *compression)
{
	int fd = make(version, compression);
	const struct reader_info *i;
	struct dat_text symbols;
	struct reader *r;

	assert_int_equal(reader_open(&r, fd, NULL), 0);
	i = reader_info(r);
	assert_int_equal(i->version, version);
	assert_string_equal(i->compression, compression);
	assert_int_equal(i->layout.size, PAGE);
	assert_text(i->header_event, "# compressed entry header\n");
	for (int n = 0; n < 2; n++) {
		assert_int_equal(reader_symbols(i, &symbols), 0);
		assert_text(symbols, "ffff800080000000 T _text\n");
	}
	assert_text(i->printk, "0x1 : \"x\"\n");
	assert_text(i->cmdlines, "112 CPU 0/KVM\n");
	assert_int_equal(i->n_formats, 3);
	assert_string_equal(i->formats[0].system, "ftrace");
	assert_string_equal(i->formats[2].system, "kvm");
	assert_text(i->formats[2].text, "name: kvm_exit\nID: 401\n");
	assert_int_equal(reader_option(r, DAT_TRACEID)->data.len, 8);
	assert_string_equal(reader_option(r, DAT_UNAME)->data.data, "Linux");
	assert_null(reader_option(r, DAT_GUEST));
	assert_int_equal(i->n_buffers, 2);
	assert_string_equal(i->buffers[0].name, "");
	assert_string_equal(i->buffers[1].name, "hyp");
	assert_string_equal(i->buffers[1].clock, version == 7 ? "boot" : "");
	assert_int_equal(count_pages(r, 0, 0, 1), PAGES);
	assert_int_equal(count_pages(r, 0, 1, 1), 0);
	assert_int_equal(count_pages(r, 1, 1, 100), PAGES);
	reader_close(r);
	close(fd);
}

static void test_v7_zstd(void **state)
{
	check(7, "zstd");
}

static void test_v7_none(void **state)
{
	check(7, "none");
}

static void test_v6(void **state)
{
	check(6, "none");
}

static void test_beside(void **state)
{
	int fd = make(7, "zstd"), helped = 0, n = 0;
	struct reader_pages *p;
	struct reader *r;
	const uint8_t *page;

	assert_int_equal(reader_open(&r, fd, NULL), 0);
	assert_int_equal(reader_pages_open(&p, r, 0, 0), 0);
	reader_pages_beside(p);
	for (; helped += errands_help(), reader_pages_next(p, &page) == 1; n++) {
		assert_int_equal(page[0], n + 1);
		assert_int_equal(page[PAGE - 1], n + 1);
	}
	assert_int_equal(n, PAGES);
	assert_int_equal(helped, 4); /* three chunks, and the end */
	reader_pages_close(p);

	assert_int_equal(reader_pages_open(&p, r, 0, 0), 0);
	reader_pages_beside(p);
	assert_int_equal(reader_pages_next(p, &page), 1);
	assert_true(errands_help());
	assert_int_equal(reader_pages_seek(p, 11 * PAGE), 1); /* in the chunk that was unpacked beside */
	for (n = 11; n < PAGES; n++) {
		assert_int_equal(reader_pages_next(p, &page), 1);
		assert_int_equal(page[0], n + 1);
		assert_false(errands_help());
	}
	assert_int_equal(reader_pages_next(p, &page), 0);
	reader_pages_close(p);

	assert_int_equal(reader_pages_open(&p, r, 0, 0), 0);
	reader_pages_beside(p);
	reader_pages_close(p);
	assert_false(errands_help());
	reader_close(r);
	close(fd);
}

/* Reads all there is of a file that may be wrong anywhere: only the end matters. */
static int devour(int fd)
{
	struct reader *r;
	struct dat_text symbols;
	int ret = reader_open(&r, fd, NULL);

	if (ret)
		return ret;
	ret = reader_symbols(reader_info(r), &symbols);
	for (size_t b = 0; b < reader_info(r)->n_buffers && !ret; b++) {
		for (size_t c = 0; c < reader_info(r)->buffers[b].n_cpus && !ret; c++) {
			struct reader_pages *p;
			const uint8_t *page;

			ret = reader_pages_open(&p, r, b, c);
			if (ret)
				break;
			if (c % 2)
				reader_pages_beside(p);
			while (errands_help(), (ret = reader_pages_next(p, &page)) == 1)
				assert_true(reader_pages_done(p) <= reader_info(r)->buffers[b].cpus[c].size);
			reader_pages_close(p);
		}
	}
	reader_close(r);
	return ret;
}

/* trace-cmd convert notes sizes that are too small by the number of chunks. */
static void test_converted(void **state)
{
	int fd = open("tests/data/lab-stock-arm64.dat", O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(devour(fd), 0);
	close(fd);
}

static void cut(int version, const char *compression, int whole_from)
{
	int fd = make(version, compression);
	struct stat st;

	fstat(fd, &st);
	for (off_t size = st.st_size - 1; size > 0; size -= size > 3000 ? 97 : 1) {
		int ret;

		assert_int_equal(ftruncate(fd, size), 0);
		ret = devour(fd);
		assert_true(ret == -EBADMSG || ret == -ENOTSUP || (ret == 0 && size >= whole_from));
	}
	close(fd);
}

static void test_cut_off(void **state)
{
	/* v7 ends with the names of its sections, which nobody needs to read it */
	cut(7, "zstd", 1500);
	cut(7, "none", 2 * PAGES * PAGE);
	/* v6: the front alone is what an agent sends */
	cut(6, "none", 400);
}

static void test_bent(void **state)
{
	int fd = make(7, "zstd");
	struct stat st;
	uint8_t byte;

	fstat(fd, &st);
	for (off_t at = 0; at < st.st_size; at++) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x80;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_true(devour(fd) <= 0);
		byte ^= 0x80;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_int_equal(devour(fd), 0);
	close(fd);
}

/* ---- chains of options ---------------------------------------------------------------- */

#define FRONT	    "\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0"
#define FRONT_ZSTD  "\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zstd\0\0"
#define CHAIN_FIRST (sizeof(FRONT) - 1 + 8)

#define ADD(b, type, v) buf_add(b, &(type){ v }, sizeof(type))

static void add_section(struct buf *b, uint16_t id, uint64_t size)
{
	ADD(b, uint16_t, id);
	ADD(b, uint16_t, 0);
	ADD(b, uint32_t, 0);
	ADD(b, uint64_t, size);
}

/* A section of options: one, and where the next ones are (0: nowhere). */
static void add_options(struct buf *b, uint16_t id, const void *data, uint32_t len, uint64_t next)
{
	add_section(b, DAT_DONE, 6u + len + 6 + 8);
	ADD(b, uint16_t, id);
	ADD(b, uint32_t, len);
	buf_add(b, data, len);
	ADD(b, uint16_t, DAT_DONE);
	ADD(b, uint32_t, 8);
	ADD(b, uint64_t, next);
}

static uint64_t options_size(uint32_t len)
{
	return 16 + 6 + len + 6 + 8;
}

static void log_into(void *ctx, enum log_level level, const char *msg)
{
	snprintf(ctx, 128, "%s", msg);
}

/* Opens those bytes and drops them. */
static int open_bytes(struct buf *b, size_t *n_options, char said[128])
{
	struct log log = { .fn = log_into, .ctx = said };
	int fd = memfd_create("trace.dat", MFD_CLOEXEC), ret;
	struct reader *r;

	*said = 0;
	assert_int_equal(buf_status(b), 0);
	assert_int_equal(write_all(fd, b->data, b->len), 0);
	ret = reader_open(&r, fd, &log);
	if (!ret) {
		*n_options = reader_info(r)->n_options;
		reader_close(r);
	}
	buf_release(b);
	close(fd);
	return ret;
}

/* Three sections of options; the front leads to to[0], the first to to[1] ...; 0: nowhere. */
static int open_chain(const unsigned int to[4], size_t *n_options, char said[128])
{
	struct buf b = { 0 };

	buf_add(&b, FRONT, sizeof(FRONT) - 1);
	for (int i = 0; i < 4; i++) {
		uint64_t next = to[i] ? CHAIN_FIRST + options_size(4) * (to[i] - 1) : 0;

		if (i)
			add_options(&b, DAT_UNAME, "text", 4, next);
		else
			ADD(&b, uint64_t, next);
	}
	return open_bytes(&b, n_options, said);
}

/* Every step goes on in the file, or a ring would be walked for long. */
static void test_chain(void **state)
{
	static const unsigned int good[][4] = { { 1, 2, 3, 0 }, { 1, 3, 0, 0 }, { 0, 2, 3, 1 } };
	static const unsigned int bad[][4] = {
		{ 1, 1, 0, 0 }, { 1, 2, 3, 1 }, { 1, 2, 3, 3 }, { 2, 0, 1, 0 }
	};
	static const size_t lengths[] = { 3, 2, 0 };
	char said[128];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(open_chain(good[i], &n, said), 0);
		assert_int_equal(n, lengths[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(open_chain(bad[i], &n, said), -EBADMSG);
		assert_string_equal(said, "not a whole trace.dat: its options go backwards");
	}
}

/* One large section, named many times: each copy would cost memory. */
static void test_one_section_often(void **state)
{
	enum { SIZE = 40 << 20, TIMES = 100 };
	struct buf b = { 0 };
	uint64_t at = CHAIN_FIRST, next;
	char said[128], *nothing = calloc(1, SIZE);
	size_t n = 0;

	assert_non_null(nothing);
	buf_add(&b, FRONT, sizeof(FRONT) - 1);
	next = at + 16 + SIZE;
	ADD(&b, uint64_t, next);
	add_section(&b, DAT_PRINTK, SIZE);
	buf_add(&b, nothing, SIZE);
	free(nothing);
	for (int i = 0; i < TIMES; i++) {
		next += options_size(8);
		add_options(&b, DAT_PRINTK, &at, 8, i < TIMES - 1 ? next : 0);
	}
	assert_int_equal(open_bytes(&b, &n, said), -EBADMSG);
	assert_string_equal(said, "not a whole trace.dat: its sections are too large together");
}

/* ---- errors of the machine are not the file's ---------------------------------------- */

/* From now on reading fd fails with EISDIR, as a disk's EIO would. */
static void break_fd(int fd)
{
	int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(dir >= 0);
	assert_int_equal(dup2(dir, fd), fd);
	close(dir);
}

static void test_read_error(void **state)
{
	int fd = make(7, "none");
	char said[128] = "";
	struct log log = { .fn = log_into, .ctx = said };
	struct reader *r;

	break_fd(fd);
	assert_int_equal(reader_open(&r, fd, &log), -EISDIR);
	assert_string_equal(said, "");
	close(fd);
}

static void test_read_error_in_pages(void **state)
{
	static const char *const compressions[] = { "zstd", "none" };
	struct reader_pages *p;
	const uint8_t *page;
	struct reader *r;

	for (size_t i = 0; i < ARRAY_SIZE(compressions); i++) {
		int fd = make(7, compressions[i]);

		assert_int_equal(reader_open(&r, fd, NULL), 0);
		assert_int_equal(reader_pages_open(&p, r, 0, 0), 0);
		break_fd(fd);
		assert_int_equal(reader_pages_next(p, &page), -EISDIR);
		reader_pages_close(p);
		if (!strcmp(compressions[i], "zstd")) /* the number of chunks comes first */
			assert_int_equal(reader_pages_open(&p, r, 0, 0), -EISDIR);
		reader_close(r);
		close(fd);
	}
}

#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is larger than any limit */
/* A section that says it unpacks to 400 MiB, in a process that may have half of it. */
static void test_no_memory(void **state)
{
	struct rlimit before, few = { .rlim_cur = 200 << 20 };
	struct buf b = { 0 };
	char said[128];
	size_t n;
	int ret;

	buf_add(&b, FRONT_ZSTD, sizeof(FRONT_ZSTD) - 1);
	ADD(&b, uint64_t, sizeof(FRONT_ZSTD) - 1 + 8);
	ADD(&b, uint16_t, DAT_DONE);
	ADD(&b, uint16_t, 1); /* compressed */
	ADD(&b, uint32_t, 0);
	ADD(&b, uint64_t, 8 + 4);
	ADD(&b, uint32_t, 4);
	ADD(&b, uint32_t, 400u << 20);
	ADD(&b, uint32_t, 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &few), 0);
	ret = open_bytes(&b, &n, said);
	setrlimit(RLIMIT_AS, &before);
	assert_int_equal(ret, -ENOMEM);
	assert_string_equal(said, "");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v7_zstd),
		cmocka_unit_test(test_v7_none),
		cmocka_unit_test(test_v6),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_bent),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_one_section_often),
		cmocka_unit_test(test_converted),
		cmocka_unit_test(test_read_error),
		cmocka_unit_test(test_read_error_in_pages),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_no_memory),
#endif
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
