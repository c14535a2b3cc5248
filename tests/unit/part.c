// SPDX-License-Identifier: LGPL-2.1-or-later
/* Begin and end of recordings: the first record and the last pages of each CPU, all pages if that does not
 * do. */
#include "dat-fixture.h"

#include "read/inputs.h"

#define PAGES 45 /* five compressed chunks */

struct extent {
	uint64_t first, last, damaged;
};

/* cpu: of the only buffer; NULL: all. */
static struct extent extent_of(struct fixture *x, const size_t *cpu, uint64_t from, uint64_t to, int want)
{
	struct extent e = { .first = UINT64_MAX };
	char *path = x->path;
	struct inputs in;
	int ret;

	assert_int_equal(inputs_open(&in, &path, 1, 0, NULL), 0);
	ret = cpu ? part_extent_cpu(in.v, 0, *cpu, from, to, &e.first, &e.last, &e.damaged)
		  : part_extent(in.v, in.n, from, to, &e.first, &e.last, &e.damaged);
	assert_int_equal(ret, want);
	inputs_release(&in);
	return e;
}

/* Overwrites the begin of a compressed chunk of the first CPU. */
static void damage_chunk(struct fixture *x, unsigned int n)
{
	char *path = x->path;
	struct inputs in;
	uint64_t at;
	uint32_t size;
	int fd;

	assert_int_equal(inputs_open(&in, &path, 1, 0, NULL), 0);
	at = reader_info(in.v->reader)->buffers[0].cpus[0].offset + sizeof(size);
	inputs_release(&in);
	fd = open(x->path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (; n; n--, at += size + 8)
		assert_int_equal(pread(fd, &size, sizeof(size), (off_t)at), sizeof(size));
	assert_int_equal(pwrite(fd, "damage", 6, (off_t)at + 8), 6);
	close(fd);
}

static void make_file(struct fixture *x)
{
	struct pages *top = add_buffer(x, "", 4096, 3);

	add_pages(&top[0], 5000, PAGES);
	add_pages(&top[1], 4000, 1);
	dat_from_spool(x); /* CPU 2 has no pages */
}

static void test_extent(void **state)
{
	const size_t cpus[] = { 0, 1, 2 };
	struct fixture *x = *state;
	struct extent e;

	make_file(x);
	for_each_form(x, form)
	{
		assert_int_equal(write_dat(x), 0);
		e = extent_of(x, NULL, 0, 0, 0);
		assert_int_equal(e.first, 4000);
		assert_int_equal(e.last, 5000 + (PAGES - 1) * 1000);
		e = extent_of(x, &cpus[0], 0, 0, 0);
		assert_int_equal(e.first, 5000);
		e = extent_of(x, &cpus[1], 0, 0, 0);
		assert_int_equal(e.first, 4000);
		assert_int_equal(e.last, 4000);
		e = extent_of(x, &cpus[2], 0, 0, 0);
		assert_true(e.first > e.last);
		/* of a part of the time, in the middle of the pages and where no records are */
		e = extent_of(x, &cpus[0], 12500, 20000, 0);
		assert_int_equal(e.first, 13000);
		assert_int_equal(e.last, 19000);
		extent_of(x, NULL, 12100, 12900, -ENODATA);
		assert_int_equal(e.damaged, 0);
	}
}

static void test_damage(void **state)
{
	struct fixture *x = *state;
	struct extent e;

	make_file(x);
	/* a place that neither the begin nor the end needs */
	assert_int_equal(write_dat(x), 0);
	damage_chunk(x, 2);
	e = extent_of(x, NULL, 0, 0, 0);
	assert_int_equal(e.first, 4000);
	assert_int_equal(e.last, 5000 + (PAGES - 1) * 1000);
	assert_int_equal(e.damaged, 0);
	/* the end: what is before it is read, and the place counts once */
	assert_int_equal(write_dat(x), 0);
	damage_chunk(x, 4);
	e = extent_of(x, NULL, 0, 0, 0);
	assert_int_equal(e.first, 4000);
	assert_int_equal(e.last, 5000 + 39 * 1000);
	assert_int_equal(e.damaged, 1);
	/* the begin: nothing behind it can be found */
	assert_int_equal(write_dat(x), 0);
	damage_chunk(x, 0);
	e = extent_of(x, NULL, 0, 0, 0);
	assert_int_equal(e.last, 4000);
	assert_int_equal(e.damaged, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_extent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
