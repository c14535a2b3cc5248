// SPDX-License-Identifier: LGPL-2.1-or-later
/* The spool: what is put in comes out again, also for a second process after a kill. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/spool/spool.h"
#include "spool-fixture.h"
#include "base/array.h"
#include "base/files.h"

/* What another user does to a directory as soon as it is made, in a place of theirs; NULL: nothing */
static void (*swap)(const char *path);

int mkdir(const char *path, mode_t mode)
{
	int ret = mkdirat(AT_FDCWD, path, mode);

	if (!ret && swap)
		swap(path);
	return ret;
}

/* As another process finds it: closed without a word, opened again. */
static int reopen(struct fixture *f)
{
	spool_close(f->s);
	f->s = NULL;
	return spool_open(&f->s, f->dir, NULL);
}

static void overwrite(struct fixture *f, const char *name, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void test_keys(void **state)
{
	struct fixture *f = *state;

	assert_null(spool_get(f->s, "output"));
	assert_int_equal(spool_set(f->s, "output", "/a b/trace.dat"), 0);
	assert_int_equal(spool_set(f->s, "state", "armed"), 0);
	assert_int_equal(spool_set(f->s, "state", "drained"), 0);
	assert_int_equal(spool_set(f->s, "bad", "two\nlines"), -EINVAL);
	assert_int_equal(reopen(f), 0);
	assert_string_equal(spool_get(f->s, "output"), "/a b/trace.dat");
	assert_string_equal(spool_get(f->s, "state"), "drained");
	assert_null(spool_get(f->s, "bad"));
}

static void test_texts(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };

	assert_int_equal(spool_get_text(f->s, "kallsyms", &b), -ENOENT);
	assert_int_equal(spool_put_text(f->s, "kallsyms", "a\0b", 3), 0);
	assert_int_equal(spool_append_text(f->s, "kallsyms", "c", 1), 0);
	assert_int_equal(spool_get_text(f->s, "kallsyms", &b), 0);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "a\0bc", 4);
	assert_int_equal(spool_put_text(f->s, "../session", "x", 1), -EINVAL);
	assert_int_equal(spool_put_text(f->s, ".x", "x", 1), -EINVAL);
	buf_release(&b);
}

static const struct spool_buffer hyp = { .name = "hyp",
					 .clock = "boot",
					 .path = "remotes/hypervisor",
					 .kind = "hyp-text",
					 .page_size = 4096,
					 .n_cpus = 4 };

static void test_buffers(void **state)
{
	struct fixture *f = *state;
	struct spool_buffer top = hyp;
	int fd;

	top.name = "";
	top.path = ".";
	assert_int_equal(spool_add_buffer(f->s, &top), 0);
	assert_int_equal(spool_add_buffer(f->s, &hyp), 0);
	fd = spool_pages_fd(f->s, 1, 2);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "torn", 4, 2 * 4096), 4);
	close(fd);
	assert_int_equal(reopen(f), 0);
	assert_int_equal(spool_n_buffers(f->s), 2);
	assert_string_equal(spool_buffer(f->s, 0)->name, "");
	assert_string_equal(spool_buffer(f->s, 1)->path, "remotes/hypervisor");
	assert_int_equal(spool_buffer(f->s, 1)->n_cpus, 4);
	assert_null(spool_buffer(f->s, 2));
	fd = spool_pages_fd(f->s, 1, 2);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 2 * 4096); /* behind the last whole page */
	close(fd);
}

static void test_live_one_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct spool *second = NULL;

	assert_int_equal(spool_open(&second, f->dir, NULL), -EBUSY);
	assert_int_equal(spool_create(&second, f->dir, NULL), -EEXIST);
	assert_int_equal(reopen(f), 0);
}

static char *beside(const char *path, const char *name)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s%s", path, name);
	return text;
}

static void swap_for_link(const char *path)
{
	assert_int_equal(rename(path, beside(path, ".theirs")), 0);
	assert_int_equal(symlink(beside(path, ".theirs"), path), 0);
}

static void swap_for_open_one(const char *path)
{
	assert_int_equal(chmod(path, 0777), 0);
}

static void swap_for_foreign_one(const char *path)
{
	assert_int_equal(chown(path, 65534, 65534), 0);
}

static void swap_for_trap(const char *path)
{
	assert_int_equal(symlink("/dev/null", beside(path, "/session")), 0);
}

static void swap_for_older_one(const char *path)
{
	assert_int_equal(write_file_at(AT_FDCWD, beside(path, "/session"), "spool\t1\n", 8), 0);
}

/* Between mkdir and open it was renamed, and another put in its place. */
static void test_swapped(void **state)
{
	static const struct {
		void (*swap)(const char *path);
		int ret;
		const char *left; /* beside the name of the spool; NULL: nothing */
	} cases[] = {
		{ swap_for_link, -ENOTDIR, "" },
		{ swap_for_open_one, -EPERM, NULL },
		{ swap_for_foreign_one, -EPERM, NULL },
		{ swap_for_trap, -EPERM, "/session" },
		{ swap_for_older_one, -EEXIST, "/session" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spool *s = NULL;
		struct stat st;
		char dir[128], cmd[160];

		if (cases[i].swap == swap_for_foreign_one && geteuid())
			continue;
		snprintf(dir, sizeof(dir), "%s/swap.spool", f->base);
		swap = cases[i].swap;
		assert_int_equal(spool_create(&s, dir, NULL), cases[i].ret);
		swap = NULL;
		assert_null(s);
		if (cases[i].left)
			assert_int_equal(lstat(beside(dir, cases[i].left), &st), 0);
		else
			assert_int_equal(access(dir, F_OK), -1);
		snprintf(cmd, sizeof(cmd), "rm -rf %s*", dir);
		assert_int_equal(system(cmd), 0);
	}
}

/* A directory that is there is never taken, whatever it holds. */
static void test_taken(void **state)
{
	struct fixture *f = *state;
	struct spool *s = NULL;
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/taken.spool", f->base);
	assert_int_equal(mkdirat(AT_FDCWD, dir, 0700), 0);
	assert_int_equal(spool_create(&s, dir, NULL), -EEXIST);
	assert_int_equal(access(dir, F_OK), 0);
}

static void test_hostile(void **state)
{
	static const char *const buffers[] = {
		"name\thyp\nclock\tboot\n",
		"name\thyp\nclock\tboot\npath\tp\nkind\tk\npage_size\t4096\ncpus\t99999999\n",
		"name\thyp\nclock\tboot\npath\tp\nkind\tk\npage_size\t5000\ncpus\t4\n",
		"name\thyp\nclock\tboot\npath\tp\nkind\tk\npage_size\t-1\ncpus\t4\n",
		"no tab\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++) {
		overwrite(f, "buffers/0", buffers[i]);
		assert_int_equal(reopen(f), -EBADMSG);
	}
	overwrite(f, "buffers/0", "name\thyp\nclock\tboot\npath\tp\nkind\tk\npage_size\t4096\ncpus\t4\n");
	assert_int_equal(reopen(f), 0);
	overwrite(f, "session", "spool\t7\n");
	assert_int_equal(reopen(f), -EBADMSG);
	overwrite(f, "session", "spool\t1\noutp");
	assert_int_equal(reopen(f), 0); /* a last line that a kill cut off */
	overwrite(f, "session", "garbage\n");
	assert_int_equal(reopen(f), -EBADMSG);
}

/* What no recorder writes is refused when it is opened: at most so many buffers and CPUs. */
static void test_limits(void **state)
{
	static const char one[] = "name\thyp\nclock\tboot\npath\tp\nkind\tk\npage_size\t4096\ncpus\t%u\n";
	struct fixture *f = *state;
	char name[32], text[128];

	snprintf(text, sizeof(text), one, SPOOL_CPUS_MAX);
	for (unsigned int i = 0; i < SPOOL_BUFFERS_MAX; i++) {
		snprintf(name, sizeof(name), "buffers/%u", i);
		overwrite(f, name, text);
	}
	assert_int_equal(reopen(f), 0);
	assert_int_equal(spool_n_buffers(f->s), SPOOL_BUFFERS_MAX);
	snprintf(name, sizeof(name), "buffers/%u", SPOOL_BUFFERS_MAX);
	overwrite(f, name, text);
	assert_int_equal(reopen(f), -EBADMSG);
	snprintf(text, sizeof(text), "%s/%s", f->dir, name);
	assert_int_equal(unlink(text), 0);
	snprintf(text, sizeof(text), one, SPOOL_CPUS_MAX + 1);
	overwrite(f, "buffers/3", text);
	assert_int_equal(reopen(f), -EBADMSG);
}

/* CPUs count as far as their files go, and no file is made for the others. */
static void test_missing_cpus(void **state)
{
	struct spool_buffer many = hyp;
	struct fixture *f = *state;
	char path[128];

	many.n_cpus = SPOOL_CPUS_MAX;
	assert_int_equal(spool_add_buffer(f->s, &many), 0);
	assert_int_equal(spool_add_buffer(f->s, &many), 0);
	for (unsigned int cpu = 0; cpu < 3; cpu++)
		close(spool_pages_fd(f->s, 0, cpu));
	spool_drop_missing_cpus(f->s);
	assert_int_equal(spool_buffer(f->s, 0)->n_cpus, 3);
	assert_int_equal(spool_buffer(f->s, 1)->n_cpus, 1);
	snprintf(path, sizeof(path), "%s/pages/0.3", f->dir);
	assert_int_equal(access(path, F_OK), -1);
	many.n_cpus = 2;
	assert_int_equal(spool_add_buffer(f->s, &many), 0);
	for (unsigned int cpu = 0; cpu < 3; cpu++)
		close(spool_pages_fd(f->s, 2, cpu));
	spool_drop_missing_cpus(f->s);
	assert_int_equal(spool_buffer(f->s, 2)->n_cpus, 2);
}

static void test_reserve(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/reserve", f->dir);
	assert_int_equal(spool_reserve(f->s, 0), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size >= 1 << 20);
	assert_int_equal(spool_reserve(f->s, 100u << 20), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size >= 25 << 20);
	spool_free_reserve(f->s);
	assert_int_equal(stat(path, &st), -1);
}

static void check_pages(struct fixture *f, const char *want)
{
	int fd = spool_pages_fd(f->s, 0, 1);
	char have[16] = "";

	assert_true(pread(fd, have, sizeof(have) - 1, 0) >= 0);
	assert_string_equal(have, want);
	close(fd);
}

/* New pages take the place of the old ones at once, and once; a kill falls before that or after it. */
static void test_rewrite(void **state)
{
	struct fixture *f = *state;
	char path[128];
	int fd;

	assert_int_equal(spool_add_buffer(f->s, &hyp), 0);
	overwrite(f, "pages/0.1", "old");
	assert_int_equal(spool_rewrite_begin(f->s), 0);
	fd = spool_rewrite_fd(f->s, 0, 1);
	assert_int_equal(write(fd, "new", 3), 3);
	close(fd);
	assert_int_equal(reopen(f), 0); /* killed before */
	assert_false(spool_is_rewritten(f->s, SPOOL_REPAIRED));
	check_pages(f, "old");

	assert_int_equal(spool_rewrite_begin(f->s), 0); /* drops what was left */
	snprintf(path, sizeof(path), "%s/pages.new/0.1", f->dir);
	assert_int_equal(access(path, F_OK), -1);
	overwrite(f, "pages.new/0.1", "newer");
	assert_int_equal(spool_rewrite_end(f->s, SPOOL_REPAIRED), 0);
	assert_true(spool_is_rewritten(f->s, SPOOL_REPAIRED));
	check_pages(f, "newer");
	assert_int_equal(reopen(f), 0);
	assert_true(spool_is_rewritten(f->s, SPOOL_REPAIRED));
	check_pages(f, "newer");
}

static void test_boot_id(void **state)
{
	struct fixture *f = *state;
	bool same;

	assert_int_equal(spool_is_this_boot(f->s, &same), 0);
	assert_false(same);
	assert_int_equal(spool_set_boot_id(f->s), 0);
	assert_int_equal(reopen(f), 0);
	assert_int_equal(spool_is_this_boot(f->s, &same), 0);
	assert_true(same);
	assert_int_equal(spool_set(f->s, "boot_id", "another"), 0);
	assert_int_equal(spool_is_this_boot(f->s, &same), 0);
	assert_false(same);
}

static void test_remove(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(spool_put_text(f->s, "x", "y", 1), 0);
	assert_int_equal(spool_add_buffer(f->s, &hyp), 0);
	close(spool_pages_fd(f->s, 0, 0));
	assert_int_equal(spool_reserve(f->s, 0), 0);
	assert_int_equal(spool_rewrite_begin(f->s), 0);
	close(spool_rewrite_fd(f->s, 0, 0));
	assert_int_equal(spool_remove(f->s), 0);
	f->s = NULL;
	assert_int_equal(access(f->dir, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_texts, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_buffers, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_live_one_is_left_alone, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_swapped, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_taken, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_hostile, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_limits, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_missing_cpus, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_reserve, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_rewrite, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_boot_id, spool_setup, spool_teardown),
		cmocka_unit_test_setup_teardown(test_remove, spool_setup, spool_teardown),
	};

	return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
