// SPDX-License-Identifier: LGPL-2.1-or-later
/* The command that is traced: forked and held back, let go, ended. */
#include "base/command.h"
#include "base/files.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

const struct command command_none = { .pid = -1, .go = -1, .exec_error = -1, .end_fd = -1 };

static int become_user(const struct passwd *pw)
{
	if (initgroups(pw->pw_name, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
		return -errno;
	setenv("HOME", pw->pw_dir, 1);
	setenv("USER", pw->pw_name, 1);
	setenv("LOGNAME", pw->pw_name, 1);
	return 0;
}

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
		int ret;

		close(go[1]);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (read_all(go[0], &byte, 1) != 1)
			_exit(127); /* never let go */
		ret = pw ? become_user(pw) : 0;
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
