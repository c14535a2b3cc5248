// SPDX-License-Identifier: LGPL-2.1-or-later
/* The directory that a command writes: made beside its end, put in place whole. */
#include "base/outdir.h"
#include "base/files.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTDIR_DEEP 8 /* levels of directories that are removed */

static int outdir_refuse(const struct outdir *o, int error, const char *why)
{
	log_err(o->log, "cannot write '%s': %s", o->path, why ? why : errno_text(error));
	return error;
}

static void outdir_release(struct outdir *o)
{
	fd_close(&o->fd);
	fd_close(&o->parent);
	free(o->name);
	free(o->part);
	o->name = o->part = NULL;
}

/* ---- what is removed ----------------------------------------------------------------- */

static int outdir_empty(int fd, unsigned int deep);

static int outdir_remove(int fd, const char *name, unsigned int deep)
{
	int below, ret;

	if (!unlinkat(fd, name, 0))
		return 0;
	if (errno != EISDIR || !deep)
		return -errno;
	below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return -errno;
	ret = outdir_empty(below, deep - 1);
	close(below);
	return ret || !unlinkat(fd, name, AT_REMOVEDIR) ? ret : -errno;
}

static int outdir_empty(int fd, unsigned int deep)
{
	struct strlist names = { 0 };
	int ret = read_dir_at(fd, ".", &names);

	for (size_t i = 0; !ret && i < names.n; i++)
		ret = outdir_remove(fd, names.v[i], deep);
	strlist_release(&names);
	return ret;
}

/* ---- where it is ---------------------------------------------------------------------- */

/* o->parent, and o->name in it: "a/b/" is b in a. */
static int outdir_split(struct outdir *o)
{
	size_t end = strlen(o->path), at;
	char *parent;

	while (end > 1 && o->path[end - 1] == '/')
		end--;
	for (at = end; at && o->path[at - 1] != '/';)
		at--;
	o->name = strndup(o->path + at, end - at);
	parent = at ? strndup(o->path, at) : strdup(".");
	if (o->name && parent)
		o->parent = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(parent);
	if (!o->name || !parent)
		return -ENOMEM;
	if (o->parent < 0)
		return -errno;
	if (!*o->name || !strcmp(o->name, ".") || !strcmp(o->name, "..") || !strcmp(o->name, "/"))
		return -EEXIST;
	return (o->part = str_printf(".%s.part", o->name)) ? 0 : -ENOMEM;
}

int outdir_open(struct outdir *o, const char *path, const struct log *log)
{
	struct stat st;
	int ret;

	*o = (struct outdir){ .fd = -1, .parent = -1, .path = path, .log = log };
	ret = outdir_split(o);
	if (!ret && (!fstatat(o->parent, o->name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT))
		ret = -EEXIST;
	if (ret)
		outdir_refuse(o, ret, ret == -EEXIST ? "it is there already" : NULL);
	else if (mkdirat(o->parent, o->part, 0755) < 0 && errno != EEXIST)
		ret = outdir_refuse(o, -errno, NULL);
	if (!ret) {
		o->fd = openat(o->parent, o->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (o->fd < 0 || fstat(o->fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 022)
			ret = outdir_refuse(o, -EEXIST,
					    "its .part is there, and no directory of yours alone");
		else if (flock(o->fd, LOCK_EX | LOCK_NB) < 0)
			ret = outdir_refuse(o, -EBUSY, "another run writes it, too");
	}
	if (!ret) {
		ret = outdir_empty(o->fd, OUTDIR_DEEP);
		if (ret)
			outdir_refuse(o, ret, "what was left in its .part cannot be removed");
	}
	if (ret)
		outdir_release(o);
	return ret;
}

/* ---- in place ------------------------------------------------------------------------------ */

/* Is what is called .NAME.part still what is written? */
static bool outdir_is_own(const struct outdir *o)
{
	struct stat part, own;

	return !fstatat(o->parent, o->part, &part, AT_SYMLINK_NOFOLLOW) && !fstat(o->fd, &own) &&
	       same_file(&part, &own);
}

static int outdir_put_in_place(struct outdir *o)
{
	struct stat st;

	if (syncfs(o->fd) < 0)
		return -errno;
	if (!outdir_is_own(o))
		return -ESTALE;
	if (!fstatat(o->parent, o->name, &st, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return renameat(o->parent, o->part, o->parent, o->name) < 0 ? -errno : 0;
}

int outdir_close(struct outdir *o, int ret)
{
	if (!ret)
		ret = outdir_put_in_place(o);
	if (ret && outdir_is_own(o) && !outdir_empty(o->fd, OUTDIR_DEEP))
		unlinkat(o->parent, o->part, AT_REMOVEDIR);
	if (ret)
		outdir_refuse(o, ret, ret == -EEXIST ? "it is there already" : NULL);
	outdir_release(o);
	return ret;
}
