// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs that are run: for what they print, and the command that is traced. */
#include "base/program.h"
#include "base/clock.h"
#include "base/files.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

/* ---- the command that is traced ---------------------------------------------------------- */

const struct command command_none = { .pid = -1, .go = -1, .exec_error = -1, .end_fd = -1 };

int command_fork(struct command *c, char **argv, const char *user)
{
	const struct passwd *pw = user ? getpwnam(user) : NULL;
	int go[2], tell[2];

	*c = command_none;
	if (user && !pw)
		return -ENOENT;
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(tell, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return -errno;
	}
	c->pid = fork();
	if (!c->pid) {
		sigset_t none;
		char byte;
		int ret = 0;

		close(go[1]);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (read_all(go[0], &byte, 1) != 1)
			_exit(127); /* never let go */
		if (pw && (initgroups(pw->pw_name, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 ||
			   setuid(pw->pw_uid) < 0))
			ret = -errno;
		if (pw) {
			setenv("HOME", pw->pw_dir, 1);
			setenv("USER", pw->pw_name, 1);
			setenv("LOGNAME", pw->pw_name, 1);
		}
		ret = ret ?: execvp(argv[0], argv) < 0 ? -errno : 0;
		write_all(tell[1], &ret, sizeof(ret));
		_exit(127);
	}
	close(go[0]);
	close(tell[1]);
	c->go = go[1];
	c->exec_error = tell[0];
	if (c->pid > 0) /* of Linux 5.3 */
		c->end_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pid < 0 ? -errno : 0;
}

int command_go(struct command *c)
{
	int error = 0;
	int ret = write_all(c->go, "x", 1);

	fd_close(&c->go);
	/* the pipe closes by itself at exec */
	if (!ret && read_all(c->exec_error, &error, sizeof(error)) == sizeof(error))
		ret = error;
	fd_close(&c->exec_error);
	return ret;
}

bool command_ended(struct command *c)
{
	if (!c->ended && c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

void command_release(struct command *c)
{
	bool held = c->go >= 0;

	fd_close(&c->go); /* the child reads end-of-file and leaves */
	fd_close(&c->exec_error);
	fd_close(&c->end_fd);
	if (held && c->pid > 0 && !c->ended)
		waitpid(c->pid, &c->status, 0);
}
