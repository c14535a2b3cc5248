/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COMMAND_H
#define HYPTRACE_COMMAND_H

#include "base/std.h"
#include <sys/types.h>

/* The command that is traced: forked early, so that its pid can go into filters, run later. */
struct command {
	pid_t pid;
	int go;		/* pipe that holds it back; -1 once it runs */
	int exec_error; /* pipe that brings the error of execvp; -1 once read */
	int end_fd;	/* readable once it has ended; -1: this kernel has no pidfd */
	bool ended;
	int status; /* of waitpid, when ended */
};

extern const struct command command_none;

/* argv: NULL-ended, until command_go. user: name to run as, or NULL. -ENOENT: no such user; -errno of fork or
 * pipe. */
int command_fork(struct command *c, char **argv, const char *user);
/* Lets it run. 0 when it runs, else the error of execvp (-ENOENT: not found). */
int command_go(struct command *c);
/* Whether it has ended; does not wait. */
bool command_ended(struct command *c);
/* Closes what is open; a command that was never let go is killed. */
void command_release(struct command *c);

#endif
