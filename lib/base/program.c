// SPDX-License-Identifier: LGPL-2.1-or-later
/* A program that is run for what it prints. */
#include "base/program.h"
#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A recorder blocks the signals that it waits for: the program is to get them. */
int program_spawn(const char *const *argv, int out, bool quiet, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int ret;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&files, out, 1);
	if (quiet)
		posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	ret = -posix_spawnp(pid, argv[0], &files, &attr, (char **)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return ret;
}

static int program_read(int fd, struct buf *out, size_t max, int timeout_ms)
{
	const uint64_t end = mono_ns() + (uint64_t)timeout_ms * 1000000;
	char chunk[4096];
	ssize_t n = 1;

	while (n > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = (int64_t)(end - mono_ns()) / 1000000;

		if (left <= 0)
			return -ETIMEDOUT;
		if (out->len > max)
			return -EFBIG;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			buf_add(out, chunk, (size_t)n);
	}
	return n < 0 ? -errno : buf_status(out);
}

int program_output(const char *const *argv, struct buf *out, size_t max, int timeout_ms)
{
	int ends[2], status, ret;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ret = program_spawn(argv, ends[1], true, &pid);
	close(ends[1]);
	if (ret) {
		close(ends[0]);
		return ret;
	}
	ret = program_read(ends[0], out, max, timeout_ms);
	close(ends[0]);
	if (ret)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return ret ?: WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}
