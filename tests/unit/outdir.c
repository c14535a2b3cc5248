// SPDX-License-Identifier: GPL-2.0-only
/* Directories as output: in place whole or not at all, what is refused, and what a killed run has left. */
#include "base/outfile.h"
#include "base/array.h"
#include "base/files.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char said[8192];

static void keep_message(void *ctx, enum log_level level, const char *msg)
{
	snprintf(said, sizeof(said), "%s", msg);
}

static const struct log log_kept = { keep_message, NULL };

static int make_dir(void **state)
{
	char name[] = "/tmp/outdir.XXXXXX";

	*said = 0;
	umask(022);
	return mkdtemp(name) && !chdir(name) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char cwd[64], command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", getcwd(cwd, sizeof(cwd)));
	return chdir("/") || system(command);
}

static void write_into(struct outfile *o)
{
	assert_int_equal(mkdirat(o->fd, "a=1", 0755), 0);
	assert_int_equal(mkdirat(o->fd, "a=1/b=2", 0755), 0);
	assert_int_equal(write_file_at(o->fd, "a=1/b=2/file", "text", 4), 0);
}

static void assert_names(const char *path, const char *names)
{
	struct strlist l = { 0 };
	char all[256] = "";

	assert_int_equal(read_dir_at(AT_FDCWD, path, &l), 0);
	for (size_t i = 0; i < l.n; i++)
		snprintf(strchr(all, 0), 64, "%s ", l.v[i]);
	assert_string_equal(all, names);
	strlist_release(&l);
}

static void assert_refused(const char *path, int error, const char *why)
{
	struct outfile o;

	*said = 0;
	assert_int_equal(outdir_open(&o, path, &log_kept), error);
	if (!strstr(said, why))
		fail_msg("'%s' and not '%s'", said, why);
}

static void a_directory_is_in_place_at_the_end(void **state)
{
	static const char *const paths[] = { "out", "out/", "./out", "out//" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct outfile o;

		assert_int_equal(outdir_open(&o, paths[i], &log_kept), 0);
		write_into(&o);
		assert_int_equal(access("out", F_OK), -1);
		assert_int_equal(access(".out.part/a=1/b=2/file", F_OK), 0);
		assert_int_equal(outdir_close(&o, 0), 0);
		assert_int_equal(access("out/a=1/b=2/file", F_OK), 0);
		assert_int_equal(access(".out.part", F_OK), -1);
		assert_int_equal(stat("out", &st), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0755);
		assert_int_equal(system("rm -r out"), 0);
	}
}

static void of_a_failure_nothing_is_left(void **state)
{
	struct outfile o;

	assert_int_equal(outdir_open(&o, "out", &log_kept), 0);
	write_into(&o);
	assert_int_equal(outdir_close(&o, -ENOSPC), -ENOSPC);
	assert_string_equal(said, "cannot write 'out': No space left on device");
	assert_int_equal(access(".out.part", F_OK), -1);
	assert_names(".", "");
}

static void what_is_there_is_refused(void **state)
{
	assert_int_equal(mkdir("empty", 0755), 0);
	assert_int_equal(write_file_at(AT_FDCWD, "file", "", 0), 0);
	assert_int_equal(symlink("nowhere", "link"), 0);
	assert_refused("empty", -EEXIST, "cannot write 'empty': it is there already");
	assert_refused("file", -EEXIST, "cannot write 'file': it is there already");
	assert_refused("link", -EEXIST, "cannot write 'link': it is there already");
	assert_refused("/", -EEXIST, "it is there already");
	assert_refused(".", -EEXIST, "it is there already");
	assert_refused("empty/..", -EEXIST, "it is there already");
	assert_refused("", -EEXIST, "it is there already");
	assert_refused("none/out", -ENOENT, "No such file");
	assert_refused("file/out", -ENOTDIR, "Not a directory");
	assert_names(".", "empty file link ");
}

static void what_came_meanwhile_stays(void **state)
{
	struct outfile o;

	assert_int_equal(outdir_open(&o, "out", &log_kept), 0);
	write_into(&o);
	assert_int_equal(write_file_at(AT_FDCWD, "out", "mine", 4), 0);
	assert_int_equal(outdir_close(&o, 0), -EEXIST);
	assert_int_equal(access(".out.part", F_OK), -1);
	assert_names(".", "out ");
}

static void what_a_killed_run_left_is_removed(void **state)
{
	struct outfile o;

	assert_int_equal(
		system("mkdir -p .out.part/x=1/y=2 outside && touch .out.part/x=1/y=2/old outside/kept && "
		       "ln -s ../outside .out.part/link"),
		0);
	assert_int_equal(outdir_open(&o, "out", &log_kept), 0);
	write_into(&o);
	assert_int_equal(outdir_close(&o, 0), 0);
	assert_names("out", "a=1 ");
	assert_names("outside", "kept ");
}

static void a_part_of_others_is_refused(void **state)
{
	struct outfile o, other;

	assert_int_equal(mkdir("elsewhere", 0755), 0);
	assert_int_equal(symlink("elsewhere", ".link.part"), 0);
	assert_refused("link", -EEXIST, "its .part is there, and no directory of yours alone");
	assert_int_equal(write_file_at(AT_FDCWD, ".file.part", "", 0), 0);
	assert_refused("file", -EEXIST, "no directory of yours alone");
	assert_int_equal(mkdir(".open.part", 0755) || chmod(".open.part", 0777), 0);
	assert_refused("open", -EEXIST, "no directory of yours alone");
	if (!geteuid()) {
		assert_int_equal(mkdir(".foreign.part", 0755) || chown(".foreign.part", 1234, 1234), 0);
		assert_refused("foreign", -EEXIST, "no directory of yours alone");
	}
	assert_int_equal(outdir_open(&o, "out", &log_kept), 0);
	assert_int_equal(outdir_open(&other, "out", &log_kept), -EBUSY);
	assert_string_equal(said, "cannot write 'out': another run writes it, too");
	assert_int_equal(outdir_close(&o, 0), 0);
}

static void a_part_that_was_replaced_is_not_put_in_place(void **state)
{
	struct outfile o;

	assert_int_equal(outdir_open(&o, "out", &log_kept), 0);
	assert_int_equal(rename(".out.part", "gone"), 0);
	assert_int_equal(mkdir(".out.part", 0755), 0);
	assert_int_equal(outdir_close(&o, 0), -ESTALE);
	assert_int_equal(access(".out.part", F_OK), 0);
	assert_names(".", "gone ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
	static const struct CMUnitTest tests[] = {
		TEST(a_directory_is_in_place_at_the_end),
		TEST(of_a_failure_nothing_is_left),
		TEST(what_is_there_is_refused),
		TEST(what_came_meanwhile_stays),
		TEST(what_a_killed_run_left_is_removed),
		TEST(a_part_of_others_is_refused),
		TEST(a_part_that_was_replaced_is_not_put_in_place),
	};

	return cmocka_run_group_tests_name("outdir", tests, NULL, NULL);
}
