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

static const char *pager_command(void)
{
	const char *command = getenv("HYPTRACE_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	return *command && strcmp(command, "cat") ? command : NULL;
}

static void run_pager(const char *command, int in)
{
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	dup2(in, STDIN_FILENO);
	execlp("sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void pager_start(struct pager *p, bool wanted)
{
	const char *command = pager_command();
	int fds[2];

	*p = (struct pager){ .terminal = isatty(STDOUT_FILENO) };
	if (!wanted || !p->terminal || !command || pipe2(fds, O_CLOEXEC) < 0)
		return;
	fflush(stdout);
	p->pid = fork();
	if (!p->pid)
		run_pager(command, fds[0]);
	if (p->pid > 0) {
		dup2(fds[1], STDOUT_FILENO);
		/* the pager decides what ^C means, and a write tells when it is gone */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
	} else {
		p->pid = 0;
	}
	close(fds[0]);
	close(fds[1]);
}

bool pager_finish(struct pager *p)
{
	bool whole;

	errno = 0;
	whole = !fflush(stdout) && !ferror(stdout);
	if (!p->pid)
		return whole;
	/* its end of file */
	fclose(stdout);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	return true;
}
