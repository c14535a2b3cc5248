// SPDX-License-Identifier: GPL-2.0-only
/* Outputs: where they go, what is refused, and that what was there stays when writing fails. */
#include "base/outfile.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

/* In place of libc's: one call fails. */
static int failing_fsync, failing_close;

int fsync(int fd)
{
	errno = failing_fsync;
	return failing_fsync ? -1 : 0;
}

int close(int fd)
{
	struct stat st;
	int error = failing_close && !fstat(fd, &st) && S_ISREG(st.st_mode) ? failing_close : 0;

	syscall(SYS_close, fd);
	errno = error;
	return error ? -1 : 0;
}

static char said[8192];

static void keep_message(void *ctx, enum log_level level, const char *msg)
{
	snprintf(said, sizeof(said), "%s", msg);
}

static const struct log log_kept = { keep_message, NULL };

static int make_dir(void **state)
{
	char name[] = "/tmp/outfile.XXXXXX";

	*said = 0;
	failing_fsync = failing_close = 0;
	umask(022);
	return mkdtemp(name) && !chdir(name) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char cwd[64], command[128];

	failing_close = 0;
	snprintf(command, sizeof(command), "rm -rf '%s'", getcwd(cwd, sizeof(cwd)));
	return chdir("/") || system(command);
}

static void put(const char *path, const char *text)
{
	assert_int_equal(write_file_at(AT_FDCWD, path, text, strlen(text)), 0);
}

static void assert_file(const char *path, const char *text)
{
	struct buf b = { 0 };

	assert_int_equal(read_file(path, 1 << 20, &b), 0);
	assert_string_equal(buf_str(&b), text);
	buf_release(&b);
}

static void assert_gone(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), -1);
	assert_int_equal(errno, ENOENT);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

/* "new" into path; returns what closing it said. */
static int write_new(const char *path, int failed)
{
	struct outfile o;
	int ret = outfile_open(&o, path, false, &log_kept);

	if (ret)
		return ret;
	assert_int_equal(write_all(o.fd, "new", 3), 0);
	return outfile_close(&o, failed);
}

static void test_new_and_replaced(void **state)
{
	assert_int_equal(write_new("a", 0), 0);
	assert_file("a", "new");
	assert_int_equal(mode_of("a"), S_IFREG | 0644);
	put("b", "old and longer");
	assert_int_equal(chmod("b", 0600), 0);
	assert_int_equal(write_new("b", 0), 0);
	assert_file("b", "new");
	assert_int_equal(mode_of("b"), S_IFREG | 0600);
	assert_gone("b.part");
	assert_string_equal(said, "");
}

static void assert_kept(int want, int got, const char *why)
{
	assert_int_equal(got, want);
	assert_string_equal(said, why);
	assert_file("a", "old");
	assert_gone("a.part");
}

static void test_failures_leave_the_old(void **state)
{
	put("a", "old");
	assert_kept(-ENOSPC, write_new("a", -ENOSPC), "cannot write 'a': No space left on device");
	failing_fsync = EIO;
	assert_kept(-EIO, write_new("a", 0), "cannot write 'a': Input/output error");
	failing_fsync = 0;
	failing_close = EDQUOT;
	assert_kept(-EDQUOT, write_new("a", 0), "cannot write 'a': Disk quota exceeded");
}

static void test_links(void **state)
{
	assert_int_equal(mkdir("d", 0755) | mkdir("d/e", 0755), 0);
	put("d/real", "old");
	assert_int_equal(symlink("../real", "d/e/second") | symlink("d/e/second", "first"), 0);
	assert_int_equal(write_new("first", 0), 0);
	assert_file("d/real", "new");
	assert_true(S_ISLNK(mode_of("first")) && S_ISLNK(mode_of("d/e/second")));
	assert_int_equal(symlink("d/none", "dangling"), 0);
	assert_int_equal(write_new("dangling", 0), 0);
	assert_file("d/none", "new");
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(write_new("loop", 0), -ELOOP);
	assert_true(S_ISLNK(mode_of("loop")));
}

static void test_refused(void **state)
{
	static const struct {
		const char *path;
		int ret;
		const char *says;
	} rows[] = {
		{ "d", -EISDIR, "cannot write 'd': Is a directory" },
		{ "d/", -EISDIR, "cannot write 'd/': Is a directory" },
		{ "d/..", -EISDIR, "cannot write 'd/..': Is a directory" },
		{ "", -ENOENT, "cannot write '': No such file or directory" },
		{ "fifo", -EINVAL, "cannot write 'fifo': it is no regular file" },
		{ "to-fifo", -EINVAL, "cannot write 'to-fifo': it is no regular file" },
		{ "/dev/null", -EINVAL, "cannot write '/dev/null': it is no regular file" },
		{ "none/a", -ENOENT, "cannot write 'none/a': No such file or directory" },
		{ "file/a", -ENOTDIR, "cannot write 'file/a': Not a directory" },
		{ "a", -EEXIST, "cannot write 'a': its .part is there, and no file of yours" },
		{ "b", -EEXIST, "cannot write 'b': its .part is there, and no file of yours" },
	};
	struct outfile o;

	assert_int_equal(mkdir("d", 0755) | mkfifo("fifo", 0600) | symlink("fifo", "to-fifo"), 0);
	assert_int_equal(symlink("file", "a.part") | mkfifo("b.part", 0600), 0);
	put("file", "precious");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(outfile_check(rows[i].path, &log_kept), rows[i].ret);
		assert_string_equal(said, rows[i].says);
		assert_int_equal(outfile_open(&o, rows[i].path, false, NULL), rows[i].ret);
	}
	assert_int_equal(mode_of("fifo"), S_IFIFO | 0600);
	assert_true(S_ISLNK(mode_of("a.part")));
	assert_file("file", "precious");
}

static void test_streams_go_into_devices(void **state)
{
	struct outfile o;

	assert_int_equal(symlink("/dev/full", "full"), 0);
	assert_int_equal(outfile_open(&o, "full", true, &log_kept), 0);
	assert_int_equal(outfile_close(&o, write_all(o.fd, "x", 1)), -ENOSPC);
	assert_string_equal(said, "cannot write 'full': No space left on device");
	assert_true(S_ISLNK(mode_of("full")));
	assert_gone("full.part");
}

static void test_stale_part(void **state)
{
	put("a.part", "half of a recording that was killed");
	assert_int_equal(write_new("a", 0), 0);
	assert_file("a", "new");
	assert_gone("a.part");
}

/* The first finds its part taken for a stale one: it must not put the second's half in place. */
static void test_two_at_once(void **state)
{
	struct outfile first, second;

	assert_int_equal(outfile_open(&first, "a", false, &log_kept), 0);
	assert_int_equal(outfile_open(&second, "a", false, &log_kept), 0);
	assert_int_equal(write_all(first.fd, "1", 1) | write_all(second.fd, "2", 1), 0);
	assert_int_equal(outfile_close(&first, 0), -ESTALE);
	assert_string_equal(said, "cannot write 'a': another run writes it, too");
	assert_int_equal(outfile_close(&second, 0), 0);
	assert_file("a", "2");
}

/* What other users may have laid out. */
static void test_of_others(void **state)
{
	struct stat st;

	if (geteuid())
		skip(); /* only root can make files of others */
	put("file", "precious");
	assert_int_equal(symlink("file", "link") | lchown("link", 65534, 65534), 0);
	assert_int_equal(write_new("link", 0), -EPERM);
	assert_string_equal(said, "cannot write 'link': it is a symbolic link of another user");
	assert_file("file", "precious");

	put("b.part", "x");
	assert_int_equal(chown("b.part", 65534, 65534), 0);
	assert_int_equal(write_new("b", 0), -EEXIST);

	put("theirs", "old");
	assert_int_equal(chown("theirs", 65534, 65534), 0);
	assert_int_equal(write_new("theirs", 0), 0);
	assert_int_equal(stat("theirs", &st), 0);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(chmod(".", 01777), 0);
	assert_int_equal(write_new("theirs", 0), -EPERM);
	assert_string_equal(
		said,
		"cannot write 'theirs': it belongs to another user, in a directory that all may write to");
	assert_int_equal(write_new("ours", 0), 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(test_new_and_replaced),
		IN_DIR(test_failures_leave_the_old),
		IN_DIR(test_links),
		IN_DIR(test_refused),
		IN_DIR(test_streams_go_into_devices),
		IN_DIR(test_stale_part),
		IN_DIR(test_two_at_once),
		IN_DIR(test_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
