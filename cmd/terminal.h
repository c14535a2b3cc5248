/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_TERMINAL_H
#define HYPTRACE_CMD_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Standard output and standard error of every command. Whatever is printed, by
 * libtraceevent too, goes through here: what a terminal would obey is shown
 * instead (base/escape.h), but for our own codes.
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
/*
 * Output a page at a time, as git has it: when stdout is a terminal, it goes through $HYPTRACE_PAGER, $PAGER
 * or less; "cat" or an empty one means none. LESS=FRX and LV=-c unless they are set. It starts with the first
 * output after pager_want(true), or by pager_start(), which returns whether stdout is a terminal, perhaps
 * through the pager now. When the pager is quit, the program ends.
 */
void pager_want(bool wanted);
bool pager_start(void);
/* Ends the program as SIGPIPE does, without a message, when the reader of our output is gone. */
void terminal_reader_gone(void) __attribute__((noreturn));

#endif
