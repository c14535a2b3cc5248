// SPDX-License-Identifier: GPL-2.0-only
/* Runs Android's adb, which has no Ctrl-C of its own, and quotes for the phone's shell. */
#include "adb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/program.h"

#define WORDS_MAX  16
#define OUTPUT_MAX (64u << 10)
#define LOOK_MS	   50 /* how often it is asked whether adb has ended */

void adb_quote(struct buf *line, const char *word)
{
	buf_addstr(line, " '");
	for (; *word; word++)
		if (*word == '\'')
			buf_addstr(line, "'\\''");
		else
			buf_add(line, word, 1);
	buf_addstr(line, "'");
}

static int adb_spawn(const struct adb *a, const char *const *words, int out, pid_t *pid)
{
	const char *argv[WORDS_MAX + 4] = { "adb" };
	size_t n = 1;

	if (a->serial) {
		argv[n++] = "-s";
		argv[n++] = a->serial;
	}
	for (; *words && n < WORDS_MAX; words++)
		argv[n++] = *words;
	return program_spawn(argv, out, false, pid);
}

static void adb_stop(const struct adb *a, pid_t pid, const char *on_stop)
{
	struct signalfd_siginfo info;

	while (read(a->stop_fd, &info, sizeof(info)) > 0)
		;
	if (!on_stop)
		kill(pid, SIGTERM);
	else if (adb_shell(a, on_stop, NULL, NULL))
		log_err(a->log, "the recorder on the phone could not be stopped: Ctrl-C tries again");
}

/* False: there was nothing to read. */
static bool adb_read(int *fd, struct buf *out)
{
	char chunk[4096];
	ssize_t n = *fd < 0 ? -1 : read(*fd, chunk, sizeof(chunk));

	if (n > 0 && out->len < OUTPUT_MAX)
		buf_add(out, chunk, (size_t)n);
	if (n == 0)
		fd_close(fd);
	return n > 0;
}

static int adb_wait(const struct adb *a, pid_t pid, const char *on_stop, int *fd, struct buf *out)
{
	bool ended = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		struct pollfd p[2] = { { .fd = a->stop_fd, .events = POLLIN },
				       { .fd = *fd, .events = POLLIN } };

		if (poll(p, 2, LOOK_MS) <= 0)
			continue;
		if (p[1].revents)
			adb_read(fd, out);
		if (p[0].revents) {
			ended = !on_stop;
			adb_stop(a, pid, on_stop);
		}
	}
	while (adb_read(fd, out))
		;
	return ended ? -EINTR : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int adb_run(const struct adb *a, const char *const *words, const char *on_stop, struct buf *out)
{
	int p[2] = { -1, -1 };
	pid_t pid;
	int ret;

	if (out && pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	if (out) /* adb may leave a server behind that holds the other end */
		fcntl(p[0], F_SETFL, O_NONBLOCK);
	ret = adb_spawn(a, words, p[1], &pid);
	fd_close(&p[1]);
	if (!ret)
		ret = adb_wait(a, pid, on_stop, &p[0], out);
	fd_close(&p[0]);
	return ret;
}

int adb_shell(const struct adb *a, const char *line, const char *on_stop, struct buf *out)
{
	const char *words[] = { "shell", line, NULL };

	return adb_run(a, words, on_stop, out);
}
