// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload that gives CPU 0 of a hypervisor's buffer its last page at a bad moment: a read of trace_pipe_raw
 * finds nothing; before it returns, the page that LATE_PAGE names comes, and tracing is off. For a tree of
 * FIFOs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Waits until the first byte of a file is this; at most 10 s. */
static void wait_for(const char *path, char wanted)
{
	char c = 0;

	for (int i = 0; i < 10000 && c != wanted; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || pread(fd, &c, 1, 0) != 1)
			c = 0;
		if (fd >= 0)
			close(fd);
		pause_ms(1);
	}
}

/* Writes the page into the FIFO. */
static void page_comes(const char *fifo)
{
	static char page[4096];
	int from = open(getenv("LATE_PAGE"), O_RDONLY | O_CLOEXEC),
	    to = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = from < 0 ? -1 : pread(from, page, sizeof(page), 0);

	if (n != sizeof(page) || to < 0 || write(to, page, sizeof(page)) != n)
		abort();
	close(from);
	close(to);
}

ssize_t read(int fd, void *to, size_t len)
{
	static bool came;
	ssize_t (*next)(int, void *, size_t) = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	ssize_t n = next(fd, to, len);
	char link[64], path[4096] = "", on[4096];
	char *end;

	if (n > 0 || came)
		return n;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		path[0] = '\0';
	end = strstr(path, "/per_cpu/cpu0/trace_pipe_raw");
	if (!end)
		return n;
	snprintf(on, sizeof(on), "%.*s/tracing_on", (int)(end - path), path);
	wait_for(on, '1');
	wait_for(on, '0');
	pause_ms(300); /* for the recorder to tell its threads to end */
	page_comes(path);
	came = true;
	errno = EAGAIN;
	return -1;
}
