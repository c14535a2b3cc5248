// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who ran when, from sched_switch records. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "file/dat/page.h"
#include "record/drain/spool-to-dat.h"

#define SWITCH_ID 318

static const struct tasks_format format = { .id = SWITCH_ID, .prev_pid = 24, .next_pid = 56 };

struct fixture {
	FILE *file;
	struct page_writer w;
	struct tasks *t;
};

static int to_file(void *ctx, const void *page, size_t size)
{
	struct fixture *f = ctx;

	return fwrite(page, 1, size, f->file) == size ? 0 : -EIO;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->file = tmpfile();
	assert_int_equal(page_writer_init(&f->w, 4096, to_file, f), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tasks_free(f->t);
	page_writer_release(&f->w);
	fclose(f->file);
	free(f);
	return 0;
}

static void put(struct fixture *f, uint64_t ts, uint16_t id, int32_t prev, int32_t next)
{
	uint8_t rec[64] = { 0 };

	memcpy(rec, &id, 2);
	memcpy(rec + format.prev_pid, &prev, 4);
	memcpy(rec + format.next_pid, &next, 4);
	assert_int_equal(page_write(&f->w, ts, rec, sizeof(rec)), 0);
}

static void begin(struct fixture *f)
{
	assert_int_equal(page_flush(&f->w, true), 0);
	fflush(f->file);
	assert_int_equal(tasks_new(&f->t, dup(fileno(f->file)), 0, 4096, &format), 0);
}

static void test_walk(void **state)
{
	struct fixture *f = *state;

	put(f, 1000, SWITCH_ID, 10, 20);
	put(f, 1500, 7, 99, 99); /* some other event */
	put(f, 2000, SWITCH_ID, 20, 0);
	put(f, 3000, SWITCH_ID, 0, 30);
	begin(f);
	assert_int_equal(tasks_pid(f->t, 500), 10); /* before the first: who was switched away from */
	assert_int_equal(tasks_pid(f->t, 999), 10);
	assert_int_equal(tasks_pid(f->t, 1000), 20);
	assert_int_equal(tasks_pid(f->t, 1999), 20);
	assert_int_equal(tasks_pid(f->t, 2500), 0);
	assert_int_equal(tasks_pid(f->t, 9000), 30);
	assert_int_equal(tasks_pid(f->t, 8999), 30);
}

static void test_across_pages(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 1000; i++)
		put(f, 1000 * (uint64_t)(i + 1), SWITCH_ID, i, i + 1);
	begin(f);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(tasks_pid(f->t, 1000 * (uint64_t)(i + 1) + 5), i + 1);
}

static void test_nothing_known(void **state)
{
	struct fixture *f = *state;

	put(f, 1000, 7, 1, 2);
	begin(f);
	assert_int_equal(tasks_pid(f->t, 2000), -1);
}

/* Switches were lost between 2000 and 5000: nobody can say who ran. */
static void test_loss(void **state)
{
	struct fixture *f = *state;

	put(f, 1000, SWITCH_ID, 10, 20);
	put(f, 2000, SWITCH_ID, 20, 30);
	assert_int_equal(page_write_lost(&f->w, 3), 0);
	put(f, 5000, SWITCH_ID, 40, 50);
	begin(f);
	assert_int_equal(tasks_pid(f->t, 1500), 20);
	assert_int_equal(tasks_pid(f->t, 3000), -1);
	assert_int_equal(tasks_pid(f->t, 6000), 50);
}

static void test_corrupt_page(void **state)
{
	struct fixture *f = *state;
	uint8_t junk[4096];

	memset(junk, 0xff, sizeof(junk));
	put(f, 1000, SWITCH_ID, 10, 20);
	assert_int_equal(page_flush(&f->w, false), 0);
	assert_int_equal(to_file(f, junk, sizeof(junk)), 0);
	put(f, 5000, SWITCH_ID, 40, 50);
	begin(f);
	assert_int_equal(tasks_pid(f->t, 500), 10);
	assert_int_equal(tasks_pid(f->t, 3000), -1);
	assert_int_equal(tasks_pid(f->t, 5000), 50);
}

static void test_format(void **state)
{
	static const char text[] = "name: sched_switch\nID: 318\nformat:\n"
				   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
				   "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
				   "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\n"
				   "print fmt: \"\"\n";
	struct tasks_format out;
	char *bad = strdup(text);

	assert_int_equal(tasks_format_parse(text, strlen(text), &out), 0);
	assert_int_equal(out.id, 318);
	assert_int_equal(out.prev_pid, 24);
	assert_int_equal(out.next_pid, 56);
	memcpy(strstr(bad, "next_pid"), "xxxx", 4);
	assert_int_equal(tasks_format_parse(bad, strlen(bad), &out), -EBADMSG);
	free(bad);
}

/* A file that cannot be read is no end of the switches. */
static void test_unreadable(void **state)
{
	struct tasks *t;
	int fd = open("/", O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	assert_int_equal(tasks_new(&t, fd, 0, 4096, &format), 0);
	assert_int_equal(tasks_error(t), 0);
	assert_int_equal(tasks_pid(t, 1000), -1);
	assert_int_equal(tasks_error(t), -EISDIR);
	tasks_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_across_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(test_corrupt_page, setup, teardown),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
