// SPDX-License-Identifier: GPL-2.0-only
/* The screen of hyptrace top: a text that fills the terminal, and keys. */
#include "top-screen.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef HYPTRACE_NCURSES
#include <curses.h>
#endif

static bool top_print(const char *text)
{
	fputs(text, stdout);
	fputc('\n', stdout);
	fflush(stdout);
	return !ferror(stdout);
}

/* keys_fd: -1: no keys */
static void top_wait(struct top_view *v, int keys_fd, int stop_fd, int ms)
{
	struct pollfd p[] = { { .fd = stop_fd, .events = POLLIN }, { .fd = keys_fd, .events = POLLIN } };

	v->quit |= poll(p, 2, ms) > 0 && p[0].revents;
}

#ifdef HYPTRACE_NCURSES

static bool top_on_terminal(void)
{
	return stdscr && !isendwin();
}

/* To the descriptor: stdout is a stream in front of it, which has none and shows what steers (terminal.h). */
void top_screen_open(void)
{
	int fd = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? dup(STDOUT_FILENO) : -1;
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	SCREEN *s = out ? newterm(NULL, out, stdin) : NULL;

	if (!s && out)
		fclose(out);
	if (!s)
		return;
	set_term(s);
	cbreak();
	noecho();
	curs_set(0);
}

void top_screen_close(void)
{
	if (top_on_terminal())
		endwin();
}

bool top_screen_show(const struct top_view *v, const char *text)
{
	int row = 1;

	if (!top_on_terminal())
		return top_print(text);
	erase();
	mvprintw(0, 0, "hyptrace top%s   p pause  s by %s  v by %s  q quit", v->paused ? " (paused)" : "",
		 v->by_time ? "number" : "time", v->vcpus ? "guest" : "vCPU");
	while (*text && row < LINES) {
		int len = (int)strcspn(text, "\n");

		mvaddnstr(row++, 0, text, len < COLS ? len : COLS);
		text += len + (text[len] == '\n');
	}
	refresh();
	return true;
}

void top_screen_keys(struct top_view *v, int stop_fd, int ms)
{
	top_wait(v, top_on_terminal() ? STDIN_FILENO : -1, stop_fd, ms);
	if (!top_on_terminal())
		return;
	timeout(0); /* without a key it may still be a new size */
	switch (getch()) {
	case 'p':
	case ' ':
		v->paused = !v->paused;
		break;
	case 's':
		v->by_time = !v->by_time;
		break;
	case 'v':
		v->vcpus = !v->vcpus;
		break;
	case 'q':
		v->quit = true;
	}
}

#else

void top_screen_open(void)
{
}

void top_screen_close(void)
{
}

bool top_screen_show(const struct top_view *v, const char *text)
{
	return top_print(text);
}

void top_screen_keys(struct top_view *v, int stop_fd, int ms)
{
	top_wait(v, -1, stop_fd, ms);
}

#endif
