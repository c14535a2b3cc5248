// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload that lists the files that a program opens with openat(): a line DIR/PATH
 * for each, in the file that OPENS names; and that lets no holes be punched into files below the
 * directory NO_PUNCH, as 9p and NFS do not. For glibc and programs with 64-bit file offsets.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note_open(int dirfd, const char *path)
{
	const char *to = getenv("OPENS");
	char link[64], dir[4096];
	ssize_t n;
	int fd = to ? open(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	n = readlink(link, dir, sizeof(dir));
	dprintf(fd, "%.*s/%s\n", n > 0 ? (int)n : 0, dir, path);
	close(fd);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	int (*next)(int, const char *, int, ...) =
		(int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	note_open(dirfd, path);
	return next(dirfd, path, flags, mode);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
	int (*next)(int, int, off64_t, off64_t) =
		(int (*)(int, int, off64_t, off64_t))dlsym(RTLD_NEXT, "fallocate64");
	const char *below = getenv("NO_PUNCH");
	char link[64], path[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (below && readlink(link, path, sizeof(path) - 1) > 0 && !strncmp(path, below, strlen(below))) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return next(fd, mode, offset, len);
}
