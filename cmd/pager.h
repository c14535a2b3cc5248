/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_PAGER_H
#define HYPTRACE_CMD_PAGER_H

#include <stdbool.h>

/*
 * Output a page at a time, as git has it: when stdout is a terminal, it goes
 * through $HYPTRACE_PAGER, $PAGER or less; "cat" or an empty one means none.
 * LESS=FRX and LV=-c unless they are set.
 */
const char *pager_command(void);

/*
 * True: stdout is a terminal, perhaps behind the pager now. Without a pager there
 * is none: output goes where it went. When the pager is quit, the program ends.
 */
bool pager_start(bool wanted);
/* Waits for it, with no more output. 0: there was none; -ENOEXEC: it could not be run; 1: it has ended. */
int pager_end(void);

#endif
