/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROGRAM_H
#define HYPTRACE_PROGRAM_H

#include <sys/types.h>

#include "base/buf.h"

/*
 * Runs a program, which is looked for in PATH, and reads what it prints until it ends. No shell is between;
 * it gets no input, and what it says on stderr is dropped. argv ends with NULL.
 * Returns its exit status, or -errno: -ENOENT: there is no such program; -EINTR: a signal ended it;
 * -ETIMEDOUT, -EFBIG: it took longer or printed more than that, and was killed.
 */
int program_output(const char *const *argv, struct buf *out, size_t max, int timeout_ms);

/*
 * Starts one, in a process group of its own: a terminal's Ctrl-C is for us. Its stdout is out, -1: ours; what
 * it says on stderr is ours, or dropped (quiet). 0 and *pid, to be waited for, or -errno as above.
 */
int program_spawn(const char *const *argv, int out, bool quiet, pid_t *pid);

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
/* True if it has ended; does not wait. */
bool command_ended(struct command *c);
/* Closes what is open; a command that was never let go is killed. */
void command_release(struct command *c);

#endif
