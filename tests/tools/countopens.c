// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload that lists the files that a program opens with openat(): a line DIR/PATH
 * for each, in the file that OPENS names. For glibc and programs with 64-bit file offsets.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
