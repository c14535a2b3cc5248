// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether a spool is its caller's alone: else another user could lead reads and writes elsewhere. */
#include "spool/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trust {
	int dirfd;
	const char *dir;
	const struct log *log;
};

static int trust_entries(const struct trust *t, const char *path);

/* path: below t->dir; "": that itself, a directory and open. */
static int trust_path(const struct trust *t, const char *path)
{
	struct stat st;
	const char *why;

	if (fstatat(t->dirfd, path, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return errno == ENOENT ? 0 : -errno; /* a live recorder removes files */
	why = file_distrust(&st);
	if (!why && S_ISDIR(st.st_mode) && strchr(path, '/'))
		why = "it is a directory where none belongs";
	if (!why)
		return S_ISDIR(st.st_mode) ? trust_entries(t, path) : 0;
	log_err(t->log, "'%s%s%s' is not trusted: %s", t->dir, *path ? "/" : "", path, why);
	return -EPERM;
}

static int trust_entries(const struct trust *t, const char *path)
{
	struct strlist names = { 0 };
	int ret = read_dir_at(t->dirfd, *path ? path : ".", &names);

	for (size_t i = 0; i < names.n && !ret; i++) {
		char *below = str_printf("%s%s%s", path, *path ? "/" : "", names.v[i]);

		ret = below ? trust_path(t, below) : -ENOMEM;
		free(below);
	}
	strlist_release(&names);
	return ret;
}

int spool_trust(int dirfd, const char *dir, const struct log *log)
{
	struct trust t = { dirfd, dir, log };

	return trust_path(&t, "");
}
