/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_TOP_SCREEN_H
#define HYPTRACE_CMD_TOP_SCREEN_H

#include <stdbool.h>

/*
 * The screen of top, and what its keys change. Without ncurses, or where there is no terminal, each
 * text is printed behind the one before, and there are no keys.
 */
struct top_view {
	bool by_time; /* else by number */
	bool vcpus;   /* else guests */
	bool paused, quit;
};

void top_screen_open(void);
void top_screen_close(void);
/* False: nobody reads it any more. */
bool top_screen_show(const struct top_view *v, const char *text);
/* Waits for a key, or until stop_fd is readable (quit), so many ms at most. */
void top_screen_keys(struct top_view *v, int stop_fd, int ms);

#endif
