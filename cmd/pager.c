// SPDX-License-Identifier: GPL-2.0-only
/* Shows what a command prints through the user's pager. */
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_RUN 126 /* what a shell exits with that cannot run a command, or more */

static pid_t pager;

const char *pager_command(void)
{
	const char *command = getenv("HYPTRACE_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	return command;
}

static void run_pager(const char *command, int in)
{
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	dup2(in, STDIN_FILENO);
	execlp("sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Who quits it has seen enough: nobody waits for what is still to be read. */
static void pager_gone(int sig)
{
	siginfo_t info = { 0 };

	if (!waitid(P_PID, (id_t)pager, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pager &&
	    !(info.si_code == CLD_EXITED && info.si_status >= NOT_RUN))
		_exit(EXIT_SUCCESS);
}

bool pager_start(bool wanted)
{
	const char *command = pager_command();
	bool terminal = isatty(STDOUT_FILENO);
	struct sigaction gone = { .sa_handler = pager_gone, .sa_flags = SA_NOCLDSTOP | SA_RESTART };
	int fds[2];

	if (!wanted || !terminal || !*command || !strcmp(command, "cat") || pipe2(fds, O_CLOEXEC) < 0)
		return terminal;
	fflush(stdout);
	sigaction(SIGCHLD, &gone, NULL);
	pager = fork();
	if (!pager)
		run_pager(command, fds[0]);
	if (pager > 0) {
		dup2(fds[1], STDOUT_FILENO);
		/* the pager decides what ^C means */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		pager_gone(SIGCHLD); /* before its number was known */
	}
	close(fds[0]);
	close(fds[1]);
	return terminal;
}

int pager_end(void)
{
	int status = 0;

	if (pager <= 0)
		return 0;
	signal(SIGCHLD, SIG_DFL);
	/* its end of file */
	close(STDOUT_FILENO);
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) >= NOT_RUN ? -ENOEXEC : 1;
}
