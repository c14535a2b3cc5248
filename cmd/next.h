/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_NEXT_H
#define HYPTRACE_CMD_NEXT_H

#include <stdbool.h>

struct command_row;

/* Before the command, whose output may become a pager's: whether a person reads both streams on a terminal.
 */
bool next_wanted(void);
/*
 * After it has succeeded: "hyptrace: next: ..." on stderr, by the one table of all commands; nothing with
 * -q, -h, --json and --csv. argv: as the command got it, argv[0] its name; its order changes.
 */
void next_print(const struct command_row *row, int argc, char **argv);

#endif
