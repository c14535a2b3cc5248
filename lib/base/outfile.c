// SPDX-License-Identifier: LGPL-2.1-or-later
/* The file or directory that a command writes: found safely, written beside its end, put in place whole. */
#include "base/outfile.h"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>

#define LINKS_MAX   40 /* as in the kernel */
#define OUTDIR_DEEP 8  /* levels of directories that are removed */

static int outfile_refuse(const struct outfile *o, int error, const char *why)
{
	log_err(o->log, "cannot write '%s': %s", o->path, why ? why : errno_text(error));
	return error;
}

static void outfile_release(struct outfile *o)
{
	fd_close(&o->fd);
	fd_close(&o->dir);
	free(o->name);
	free(o->part);
	o->name = o->part = NULL;
}

/* Takes the path apart into o->dir and o->name. */
static int outfile_split(struct outfile *o, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	int ret;

	fd_close(&o->dir);
	free(o->name);
	o->name = strdup(slash ? slash + 1 : path);
	if (dir && o->name)
		o->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ret = !dir || !o->name						     ? -ENOMEM
	      : !*path							     ? -ENOENT
	      : o->dir < 0						     ? -errno
	      : !*o->name || !strcmp(o->name, ".") || !strcmp(o->name, "..") ? -EISDIR
									     : 0;
	free(dir);
	return ret;
}

/* Target of a link that was itself opened. */
static char *link_target(int fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char target[4096];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	if (n <= 0 || n == sizeof(target))
		return NULL;
	return str_printf("%.*s%.*s", *target == '/' || !slash ? 0 : (int)(slash - path + 1), path, (int)n,
			  target);
}

static bool is_pipe(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
}

/* Follows the link that was itself opened. */
static int outfile_follow(const struct outfile *o, int link, struct stat *st)
{
	struct statfs fs;
	struct stat open;

	/* /dev/stdout, /dev/fd/63: what this process has open */
	if (!fstatfs(link, &fs) && fs.f_type == PROC_SUPER_MAGIC && !fstatat(o->dir, o->name, &open, 0)) {
		if (is_pipe(&open)) { /* needs no name */
			*st = open;
			return 0;
		}
		if (!open.st_nlink)
			return outfile_refuse(o, -ENOENT, "it is open, and was removed");
	}
	if (st->st_uid && st->st_uid != geteuid())
		return outfile_refuse(o, -EPERM, "it is a symbolic link of another user");
	return 1;
}

/* 1: the path was a link, and *path is now its target; 0: *st describes the file, st_mode 0: there is
 * none. */
static int outfile_step(struct outfile *o, char **path, struct stat *st)
{
	int ret = outfile_split(o, *path), fd;
	char *next;

	if (ret)
		return outfile_refuse(o, ret, NULL);
	fd = openat(o->dir, o->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	*st = (struct stat){ 0 };
	if (fd < 0 ? errno != ENOENT : fstat(fd, st) < 0)
		ret = outfile_refuse(o, -errno, NULL);
	else
		ret = S_ISLNK(st->st_mode) ? outfile_follow(o, fd, st) : 0;
	next = ret == 1 ? link_target(fd, *path) : NULL;
	if (ret == 1 && !next)
		ret = outfile_refuse(o, -ENOMEM, NULL);
	fd_close(&fd);
	if (next) {
		free(*path);
		*path = next;
	}
	return ret;
}

static int outfile_find(struct outfile *o, bool stream, struct stat *st)
{
	char *path = strdup(o->path);
	struct stat dir;
	int ret = path ? 1 : -ENOMEM;

	for (int i = 0; ret == 1 && i <= LINKS_MAX; i++)
		ret = outfile_step(o, &path, st);
	free(path);
	if (ret)
		return ret < 0 ? ret : outfile_refuse(o, -ELOOP, NULL);
	if (S_ISDIR(st->st_mode))
		return outfile_refuse(o, -EISDIR, NULL);
	if (st->st_mode && !S_ISREG(st->st_mode) && !(stream && is_pipe(st)))
		return outfile_refuse(o, -EINVAL, "it is no regular file");
	/* in a directory like /tmp; the kernel's fs.protected_regular and _fifos */
	if (st->st_mode && st->st_uid != geteuid() && !fstat(o->dir, &dir) && dir.st_mode & S_ISVTX &&
	    dir.st_mode & S_IWOTH)
		return outfile_refuse(o, -EPERM,
				      "it belongs to another user, in a directory that all may write to");
	return 0;
}

static int part_name(struct outfile *o)
{
	struct stat st;

	o->part = str_printf("%s.part", o->name);
	if (!o->part)
		return outfile_refuse(o, -ENOMEM, NULL);
	/* a file of yours is one that a killed run has left */
	if (!fstatat(o->dir, o->part, &st, AT_SYMLINK_NOFOLLOW) &&
	    (!S_ISREG(st.st_mode) || st.st_uid != geteuid()))
		return outfile_refuse(o, -EEXIST, "its .part is there, and no file of yours");
	return 0;
}

static int part_create(struct outfile *o, const struct stat *old)
{
	mode_t mode = old->st_mode ? old->st_mode & 0777 : 0644;

	if (unlinkat(o->dir, o->part, 0) < 0 && errno != ENOENT)
		return outfile_refuse(o, -errno, NULL);
	o->fd = openat(o->dir, o->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (o->fd < 0)
		return outfile_refuse(o, -errno, NULL);
	if (!old->st_mode)
		return 0;
	/* the owner's, as far as this is allowed */
	if (fchown(o->fd, old->st_uid, old->st_gid) < 0 && fchown(o->fd, (uid_t)-1, old->st_gid) < 0)
		mode &= 0707;
	return fchmod(o->fd, mode) < 0 ? outfile_refuse(o, -errno, NULL) : 0;
}

/* False: another run took the part for one that was left, and has its own there now. */
static bool outfile_is_own(const struct outfile *o)
{
	struct stat part, own;

	return !fstatat(o->dir, o->part, &part, AT_SYMLINK_NOFOLLOW) && !fstat(o->fd, &own) &&
	       same_file(&part, &own);
}

int outfile_open(struct outfile *o, const char *path, bool stream, const struct log *log)
{
	struct stat st;
	int ret;

	*o = (struct outfile){ .fd = -1, .dir = -1, .path = path, .log = log };
	ret = outfile_find(o, stream, &st);
	if (!ret && is_pipe(&st)) {
		o->fd = openat(o->dir, o->name, O_WRONLY | O_NOCTTY | O_CLOEXEC);
		if (o->fd < 0 || fstat(o->fd, &st) < 0)
			ret = outfile_refuse(o, -errno, NULL);
		else if (!is_pipe(&st))
			ret = outfile_refuse(o, -ESTALE, NULL);
	} else if (!ret) {
		ret = part_name(o) ?: part_create(o, &st);
	}
	if (ret && o->part && o->fd >= 0)
		unlinkat(o->dir, o->part, 0);
	if (ret)
		outfile_release(o);
	return ret;
}

int outfile_check(const char *path, const struct log *log)
{
	struct outfile o = { .fd = -1, .dir = -1, .path = path, .log = log };
	struct stat st;
	int ret = outfile_find(&o, false, &st) ?: part_name(&o);

	outfile_release(&o);
	return ret;
}

int outfile_close(struct outfile *o, int ret)
{
	bool own = o->part && outfile_is_own(o);

	if (!ret && o->part && fsync(o->fd) < 0)
		ret = -errno;
	if (!ret && o->part && !outfile_is_own(o))
		ret = -ESTALE;
	if (!ret) {
		ret = close(o->fd) < 0 ? -errno : 0;
		o->fd = -1;
	}
	if (!ret && o->part && renameat(o->dir, o->part, o->dir, o->name) < 0)
		ret = -errno;
	if (ret && own)
		unlinkat(o->dir, o->part, 0);
	if (ret && ret != -EINVAL && ret != -ENOTSUP && ret != -EBADMSG)
		outfile_refuse(o, ret, ret == -ESTALE ? "another run writes it, too" : NULL);
	outfile_release(o);
	return ret;
}

static int outdir_empty(int fd, unsigned int deep)
{
	struct strlist names = { 0 };
	int ret = read_dir_at(fd, ".", &names);

	for (size_t i = 0; !ret && i < names.n; i++) {
		int below;

		if (!unlinkat(fd, names.v[i], 0))
			continue;
		below = errno == EISDIR && deep
				? openat(fd, names.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				: -1;
		ret = below < 0 ? -errno : outdir_empty(below, deep - 1);
		fd_close(&below);
		if (!ret && unlinkat(fd, names.v[i], AT_REMOVEDIR) < 0)
			ret = -errno;
	}
	strlist_release(&names);
	return ret;
}

/* o->dir, and o->name in it: "a/b/" is b in a. */
static int outdir_split(struct outfile *o)
{
	size_t end = strlen(o->path);
	char *path;
	int ret;

	while (end > 1 && o->path[end - 1] == '/')
		end--;
	path = strndup(o->path, end);
	ret = path ? outfile_split(o, path) : -ENOMEM;
	free(path);
	if (ret)
		return ret == -EISDIR || !*o->path ? -EEXIST : ret;
	return (o->part = str_printf(".%s.part", o->name)) ? 0 : -ENOMEM;
}

int outdir_open(struct outfile *o, const char *path, const struct log *log)
{
	struct stat st;
	int ret;

	*o = (struct outfile){ .fd = -1, .dir = -1, .path = path, .log = log };
	ret = outdir_split(o);
	if (!ret && (!fstatat(o->dir, o->name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT))
		ret = -EEXIST;
	if (ret)
		outfile_refuse(o, ret, ret == -EEXIST ? "it is there already" : NULL);
	else if (mkdirat(o->dir, o->part, 0755) < 0 && errno != EEXIST)
		ret = outfile_refuse(o, -errno, NULL);
	if (!ret) {
		o->fd = openat(o->dir, o->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (o->fd < 0 || fstat(o->fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 022)
			ret = outfile_refuse(o, -EEXIST,
					     "its .part is there, and no directory of yours alone");
		else if (flock(o->fd, LOCK_EX | LOCK_NB) < 0)
			ret = outfile_refuse(o, -EBUSY, "another run writes it, too");
	}
	if (!ret) {
		ret = outdir_empty(o->fd, OUTDIR_DEEP);
		if (ret)
			outfile_refuse(o, ret, "what was left in its .part cannot be removed");
	}
	if (ret)
		outfile_release(o);
	return ret;
}

int outdir_close(struct outfile *o, int ret)
{
	struct stat st;

	if (!ret && syncfs(o->fd) < 0)
		ret = -errno;
	if (!ret && !outfile_is_own(o))
		ret = -ESTALE;
	if (!ret && !fstatat(o->dir, o->name, &st, AT_SYMLINK_NOFOLLOW))
		ret = -EEXIST;
	if (!ret && renameat(o->dir, o->part, o->dir, o->name) < 0)
		ret = -errno;
	if (ret && outfile_is_own(o) && !outdir_empty(o->fd, OUTDIR_DEEP))
		unlinkat(o->dir, o->part, AT_REMOVEDIR);
	if (ret)
		outfile_refuse(o, ret, ret == -EEXIST ? "it is there already" : NULL);
	outfile_release(o);
	return ret;
}
