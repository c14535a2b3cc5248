// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest's pages: the good ones stay as they are, the bad ones spoil nothing; a missing end is marked. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/drain/spool-to-dat.h"
#include "file/dat/page.h"
#include "base/files.h"

#define PAGE   4096u
#define PAGES  4
#define EVENTS 10 /* of a page; each has 12 bytes with its header */
#define MISSED PAGE_MISSED_EVENTS
#define LATER  77u /* ns, of a page's last event */

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

struct fixture {
	char base[64], dir[80];
	struct spool *s;
	struct sanitized m;
	uint8_t sent[PAGES][PAGE], kept[PAGES][PAGE];
};

static int setup(void **state)
{
	static const struct spool_buffer b = {
		.name = "", .clock = "boot", .path = ".", .kind = "guest", .page_size = PAGE, .n_cpus = 2
	};
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->base, "/tmp/hyptrace-mend-XXXXXX");
	assert_non_null(mkdtemp(f->base));
	snprintf(f->dir, sizeof(f->dir), "%s/t.spool", f->base);
	assert_int_equal(spool_create(&f->s, f->dir, NULL), 0);
	assert_int_equal(spool_put_text(f->s, "header_page", header_page, sizeof(header_page) - 1), 0);
	assert_int_equal(spool_add_buffer(f->s, &b), 0);
	for (unsigned int i = 0; i < PAGES; i++) {
		uint64_t ts = 1000 * (i + 1), commit = EVENTS * 12;

		memcpy(f->sent[i], &ts, 8);
		memcpy(f->sent[i] + 8, &commit, 8);
		for (unsigned int n = 0; n < EVENTS; n++) {
			uint32_t head = 10u << 5 | 2;

			memcpy(f->sent[i] + 16 + 12 * n, &head, 4);
		}
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(spool_remove(f->s), 0);
	assert_int_equal(rmdir(f->base), 0);
	free(f);
	return 0;
}

static uint32_t commit_of(const uint8_t *page)
{
	uint32_t commit;

	memcpy(&commit, page + 8, 4);
	return commit;
}

static uint64_t ts_of(const uint8_t *page)
{
	uint64_t ts;

	memcpy(&ts, page, 8);
	return ts;
}

static void set_commit(uint8_t *page, uint64_t commit)
{
	memcpy(page + 8, &commit, 8);
}

/* Spools what was sent (and `more` bytes of another page) for CPU 1, mends it, reads it again. */
static void mend(struct fixture *f, size_t more)
{
	int fd = spool_pages_fd(f->s, 0, 1);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, f->sent, sizeof(f->sent)), 0);
	assert_int_equal(write_all(fd, f->sent, more), 0);
	assert_int_equal(sanitize_buffer(f->s, 0, &f->m), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), sizeof(f->sent));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(read_all(fd, f->kept, sizeof(f->kept)), sizeof(f->kept));
	close(fd);
}

static void assert_unchanged(const struct fixture *f, unsigned int from, unsigned int to)
{
	assert_memory_equal(f->kept[from], f->sent[from], (to - from) * PAGE);
}

static void assert_empty(const uint8_t *page, uint64_t ts)
{
	assert_int_equal(ts_of(page), ts);
	for (unsigned int i = 8; i < PAGE; i++)
		assert_int_equal(page[i], 0);
}

static void test_good(void **state)
{
	struct fixture *f = *state;
	uint64_t n = 7;

	set_commit(f->sent[1], EVENTS * 12 | MISSED);
	set_commit(f->sent[2], EVENTS * 12 | MISSED | PAGE_MISSED_STORED);
	memcpy(f->sent[2] + 16 + EVENTS * 12, &n, 8);
	set_commit(f->sent[3], 0);
	mend(f, 0);
	assert_unchanged(f, 0, PAGES);
	assert_int_equal(f->m.events, 3 * EVENTS);
	assert_int_equal(f->m.lost, 8);
	assert_int_equal(f->m.unknown, 1);
	assert_int_equal(f->m.bad, 0);
}

static void test_header(void **state)
{
	struct fixture *f = *state;

	set_commit(f->sent[1], PAGE - 15);
	mend(f, 0);
	assert_unchanged(f, 0, 1);
	assert_empty(f->kept[1], 1000 + EVENTS * 10);
	assert_int_equal(commit_of(f->kept[2]), EVENTS * 12 | MISSED);
	assert_memory_equal(f->kept[2] + 16, f->sent[2] + 16, PAGE - 16);
	assert_unchanged(f, 3, PAGES);
	assert_int_equal(f->m.events, 3 * EVENTS);
	assert_int_equal(f->m.bad, 1);
}

static void test_event(void **state)
{
	struct fixture *f = *state;

	f->sent[1][16 + 12 * 3] = 0; /* its length is in the next word: 0 */
	set_commit(f->sent[2], EVENTS * 12 | MISSED);
	mend(f, 0);
	assert_int_equal(commit_of(f->kept[1]), 3 * 12);
	assert_int_equal(ts_of(f->kept[1]), 2000);
	assert_memory_equal(f->kept[1] + 16, f->sent[1] + 16, 3 * 12);
	/* said already */
	assert_unchanged(f, 2, PAGES);
	assert_int_equal(f->m.events, 3 * EVENTS + 3);
	assert_int_equal(f->m.lost, 1);
	assert_int_equal(f->m.bad, 1);
}

/* The first event is bad: nothing is left of the page, nor of its time. */
static void test_first_event(void **state)
{
	struct fixture *f = *state;

	f->sent[0][16] = 0;
	f->sent[1][16] = 0;
	mend(f, 0);
	assert_empty(f->kept[0], 0);
	assert_empty(f->kept[1], 0);
	assert_int_equal(commit_of(f->kept[2]), EVENTS * 12 | MISSED);
	assert_unchanged(f, 3, PAGES);
	assert_int_equal(f->m.bad, 2);
}

static void test_part(void **state)
{
	struct fixture *f = *state;

	mend(f, 100);
	assert_unchanged(f, 0, PAGES);
	assert_int_equal(f->m.events, PAGES * EVENTS);
	assert_int_equal(f->m.bad, 1);
}

/* What was mended is good. */
static void test_twice(void **state)
{
	struct fixture *f = *state;

	set_commit(f->sent[0], UINT32_MAX);
	f->sent[2][16 + 12] = 0;
	mend(f, 1);
	assert_int_equal(f->m.bad, 3);
	assert_int_equal(sanitize_buffer(f->s, 0, &f->m), 0);
	assert_int_equal(f->m.bad, 0);
	assert_int_equal(f->m.events, 2 * EVENTS + 1);
	assert_int_equal(f->m.lost, 2);
}

/* A page more for the CPU that has pages: events were lost after its last one. */
static void test_cut(void **state)
{
	struct fixture *f = *state;
	uint8_t last[PAGE];
	uint32_t head = LATER << 5 | 2;
	struct spool_range r;
	int fd;

	/* the last event has a time of its own */
	memcpy(f->sent[3] + 16 + 12 * (EVENTS - 1), &head, 4);
	mend(f, 100);
	assert_int_equal(spool_mark_all_cut(f->s), 0);
	fd = spool_pages_open(f->s, 0, 1, &r);
	assert_true(fd >= 0);
	assert_int_equal(r.to, sizeof(f->sent) + PAGE);
	assert_int_equal(pread_all(fd, f->kept, sizeof(f->kept), 0), sizeof(f->kept));
	assert_unchanged(f, 0, PAGES);
	assert_int_equal(pread_all(fd, last, PAGE, sizeof(f->sent)), PAGE);
	close(fd);
	assert_int_equal(commit_of(last), MISSED);
	set_commit(last, 0);
	assert_empty(last, ts_of(f->sent[3]) + 10 * (EVENTS - 1) + LATER);
	fd = spool_pages_open(f->s, 0, 0, &r);
	assert_true(fd >= 0);
	assert_int_equal(r.to, 0);
	close(fd);
}

static void test_no_such(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sanitize_buffer(f->s, 1, &f->m), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_such, setup, teardown),
	};

	return cmocka_run_group_tests_name("mend", tests, NULL, NULL);
}
