// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace top: stat's tables of the last second of a running recording, again and again. */
#include <poll.h>

#include "cmd.h"
#include "ask/live/live.h"
#include "stat-priv.h"
#include "base/clock.h"
#include "base/signals.h"

#ifdef HYPTRACE_NCURSES
#include <curses.h>
#endif

struct top {
	struct files_opts f;
	uint64_t window; /* ms */
	bool once;
	const struct log *log;
	struct live *live;
	uint64_t newest;
	/*
	 * Changed by the keys of the screen. Without ncurses, or where there is no terminal, each text is
	 * printed behind the one before, and there are no keys.
	 */
	bool by_time; /* else by number */
	bool vcpus;   /* else guests */
	bool paused, quit;
};

static const struct opt top_rows[] = {
	OPT_DURATION('w', "window", "of so much of the past (1s), which is also the pause between looks",
		     UNIT_MS, UNIT_MS, .off = offsetof(struct top, window), .min = 1, .max = 60000),
	OPT(0, "once", NULL, "one look, a window after the start; then exit", opts_set_flag,
	    .off = offsetof(struct top, once)),
	OPT_JSON("for programs: all rows, times in ns; needs --once", FILES(form)),
	OPT_CSV("the same; each line begins with its table", FILES(form)),
	OPT_QUIET(FILES(quiet)),
	OPT_HELP,
};

const struct opts_table top_table = {
	.command = "top",
	.usage = "usage: hyptrace top [OPTION...] [FILE]\n\n"
		 "Shows exits of guests, the hypervisor's time, where the time of vCPUs goes and what was\n"
		 "lost, of the last second of the recording that `hyptrace record -o FILE` makes now\n"
		 "(trace.dat). Keys: p pauses, s sorts by time or by number, v takes guests or vCPUs, q\n"
		 "ends.\n\n",
	OPT_ROWS(top_rows),
};

static void top_clock(void *ctx, const char *guest, int64_t offset, uint64_t bound)
{
	answer_row(ctx, (struct answer_cell[]){ CELL_WORD(guest), CELL_N((uint64_t)offset), CELL_N(bound) });
}

/* Appended to *text. */
static int top_look(struct top *t, struct buf *text, bool *ended)
{
	static const struct answer_column window[] = {
		{ "window_ns", "last", ANSWER_DURATION },
		{ "until", "until", ANSWER_TIME },
		{ "now", "now", ANSWER_TIME },
		{ "recording", "recording", ANSWER_WORD },
	};
	static const struct answer_column clocks[] = {
		{ "guest", "guest", ANSWER_WORD },
		{ "offset_ns", "offset/ns", ANSWER_SIGNED },
		{ "bound_ns", "bound", ANSWER_DURATION },
	};
	struct stat_look look = { .tables = "exits,vcpus,steal,hyp,firmware,lost,buffers",
				  .per = t->vcpus ? STAT_VCPU : STAT_GUEST,
				  .by_count = !t->by_time,
				  .rows = t->f.form == ANSWER_TEXT ? 10 : 0 };
	struct answer answer;
	int ret = live_look(t->live, ended);

	ret = ret < 0 ? ret : live_cut(t->live, t->window * 1000000, &t->newest);
	ret = ret ?: live_write(t->live, &look.path, t->log);
	if (ret)
		return ret;
	answer_begin(&answer, t->f.form, text);
	answer_table(&answer, "window", NULL, window, ARRAY_SIZE(window));
	answer_row(&answer,
		   (struct answer_cell[]){ CELL_N(t->window * 1000000), CELL_N(t->newest), CELL_N(boot_ns()),
					   CELL_WORD(*ended ? "ended" : "runs") });
	answer_table_end(&answer);
	/* of the guests that are recorded */
	answer_table(&answer, "clocks", "Clocks of guests: what to add for the host's, so far", clocks,
		     ARRAY_SIZE(clocks));
	live_each_clock(t->live, top_clock, &answer);
	answer_table_end(&answer);
	ret = stat_look(&look, &answer, t->log);
	if (live_is_early(t->live))
		answer_note(&answer,
			    "the hypervisor's times are those of the kernel: this plain-nVHE host's are "
			    "early, until the file is written");
	answer_end(&answer);
	return ret ?: buf_status(text);
}

#ifdef HYPTRACE_NCURSES
#define ON_TERMINAL (stdscr && !isendwin())
#else
#define ON_TERMINAL false
#endif

/* To the descriptor: stdout is a stream in front of it, which has none and shows what steers (terminal.c). */
static void top_screen_open(void)
{
#ifdef HYPTRACE_NCURSES
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
#endif
}

/* False: nobody reads it any more. */
static bool top_screen_show(const struct top *t, const char *text)
{
#ifdef HYPTRACE_NCURSES
	int row = 1;

	if (ON_TERMINAL) {
		erase();
		mvprintw(0, 0, "hyptrace top%s   p pause  s by %s  v by %s  q quit",
			 t->paused ? " (paused)" : "", t->by_time ? "number" : "time",
			 t->vcpus ? "guest" : "vCPU");
		while (*text && row < LINES) {
			int len = (int)strcspn(text, "\n");

			mvaddnstr(row++, 0, text, len < COLS ? len : COLS);
			text += len + (text[len] == '\n');
		}
		refresh();
		return true;
	}
#endif
	fputs(text, stdout);
	fputc('\n', stdout);
	fflush(stdout);
	return !ferror(stdout);
}

/* Waits for a key, if there are any, or until stop_fd is readable (quit), so many ms at most. */
static void top_screen_keys(struct top *t, int stop_fd, int ms)
{
	struct pollfd p[] = { { .fd = stop_fd, .events = POLLIN },
			      { .fd = ON_TERMINAL ? STDIN_FILENO : -1, .events = POLLIN } };

	t->quit |= poll(p, 2, ms) > 0 && p[0].revents;
#ifdef HYPTRACE_NCURSES
	if (!ON_TERMINAL)
		return;
	timeout(0); /* without a key it may still be a new size */
	switch (getch()) {
	case 'p':
	case ' ':
		t->paused = !t->paused;
		break;
	case 's':
		t->by_time = !t->by_time;
		break;
	case 'v':
		t->vcpus = !t->vcpus;
		break;
	case 'q':
		t->quit = true;
	}
#endif
}

static int top_screens(struct top *t)
{
	struct buf text = { 0 };
	int ret = 0, stop_fd = stop_signals(); /* Ctrl-C ends it like q */
	bool ended = false;

	if (stop_fd < 0)
		return stop_fd;
	top_screen_open();
	while (!ret && !ended && !t->quit) {
		if (!t->paused) {
			text.len = 0;
			ret = top_look(t, &text, &ended);
		}
		if (!ret && !top_screen_show(t, buf_str(&text) ?: ""))
			ret = -EPIPE;
		if (!ended && !ret)
			top_screen_keys(t, stop_fd, (int)t->window);
	}
#ifdef HYPTRACE_NCURSES
	if (ON_TERMINAL)
		endwin();
#endif
	close(stop_fd);
	if (!ret && ended)
		log_info(t->log, "'%s' has ended", t->f.files.v[0]);
	buf_release(&text);
	return ret;
}

static int top_run(void *opts, const struct log *log)
{
	struct top *t = opts;
	struct buf text = { 0 };
	bool ended;
	int ret = live_wait(&t->live, t->f.files.v[0], log);

	if (ret)
		return ret;
	t->log = log;
	ret = live_name(t->live, getenv("HYPTRACE_ROOT"), log);
	if (!ret && t->once) {
		usleep((useconds_t)t->window * 1000);
		ret = top_look(t, &text, &ended) ?: print_answer(&text, log);
		buf_release(&text);
	} else if (!ret) {
		ret = top_screens(t);
	}
	live_close(t->live);
	return ret;
}

static bool top_check(void *opts)
{
	const struct top *t = opts;
	const char *wrong = t->f.files.n > 1			   ? "one recording at a time"
			    : !t->once && t->f.form != ANSWER_TEXT ? "--json and --csv need --once"
								   : NULL;

	return options_good("hyptrace: top", wrong);
}

int cmd_top(int argc, char **argv)
{
	struct top t = { .window = 1000, .by_time = true, .vcpus = true };

	return command_read(&top_table, argc, argv, &t, top_check, top_run);
}
