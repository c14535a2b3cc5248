/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_PAGER_H
#define HYPTRACE_CMD_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Output a page at a time, as git has it: when stdout is a terminal, it goes
 * through $HYPTRACE_PAGER, $PAGER or less; "cat" or an empty one means none.
 * LESS=FRX and LV=-c unless they are set.
 */
struct pager {
	pid_t pid;     /* 0: none was started */
	bool terminal; /* stdout is one, perhaps behind the pager */
};

/* Without a pager there is none: output goes where it went. */
void pager_start(struct pager *p, bool wanted);
/*
 * Ends the output: false when not all of it could be written. Someone who quits
 * the pager has seen enough: that is no failure.
 */
bool pager_finish(struct pager *p);

#endif
