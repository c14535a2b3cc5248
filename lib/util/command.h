/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COMMAND_H
#define HYPTRACE_COMMAND_H

#include "util/base.h"

/* The command that is traced: forked early, so that its pid can go into filters, run later. */
struct command {
	pid_t pid;
	int go;		/* pipe that holds it back; -1 once it runs */
	int exec_error; /* pipe that tells what execvp said; -1 once read */
	int end_fd;	/* readable once it has ended; -1: this kernel cannot tell */
	bool ended;
	int status; /* of waitpid, when ended */
};

extern const struct command command_none;

/* user: name to run as, or NULL. -ENOENT: no such user. */
int command_fork(struct command *c, char **argv, const char *user);
/* Lets it run; returns what execvp said (-ENOENT: not found), 0 when it runs. */
int command_go(struct command *c);
/* Whether it has ended; does not wait. */
bool command_ended(struct command *c);
/* Closes what is open; a command that was never let go is killed. */
void command_release(struct command *c);

#endif
