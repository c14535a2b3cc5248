/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_TERMINAL_H
#define HYPTRACE_CMD_TERMINAL_H

#include <stdio.h>

/*
 * Standard output and standard error of every command. Whatever is printed, by
 * libtraceevent too, goes through here: what a terminal would obey is shown
 * instead (util/visible.h), but for our own codes.
 */

/* Colours, and what wipes a line of progress. */
enum terminal_code { CODE_PLAIN, CODE_LABEL, CODE_TIME, CODE_NAME, CODE_LOST, CODE_WIPE };
void terminal_code(FILE *out, enum terminal_code code);

/*
 * From here on stdout and stderr are these streams, both descriptors are open, and a
 * reader that closes early is an error like others, no signal. 0 or -errno.
 */
int terminal_open(void);
/*
 * Ends the output, and the pager. Returns what to exit with: status, or EXIT_FAILED
 * with a message when not all could be written. Someone who quits the pager has
 * seen enough.
 */
int terminal_end(int status);
/* Whoever read our output has gone: ends the program as SIGPIPE does, without a word. */
void terminal_reader_gone(void) __attribute__((noreturn));

#endif
