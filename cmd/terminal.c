// SPDX-License-Identifier: GPL-2.0-only
/* The two streams that commands print on, and what becomes of what they could not print. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "pager.h"
#include "util/visible.h"

#define OUTPUT_BUFFER (256u << 10)

/* Ours among the bytes of others: a NUL, which is in no string, and the code. */
static const char *const codes[] = {
	[CODE_PLAIN] = "\033[m", [CODE_LABEL] = "\033[36m",  [CODE_TIME] = "\033[33m",
	[CODE_NAME] = "\033[1m", [CODE_LOST] = "\033[1;31m", [CODE_WIPE] = "\r\033[K"
};

struct screen {
	FILE *raw;
	uint8_t kept[4]; /* the begin of a character or a code: its end comes with the next write */
	size_t n_kept;
	int error; /* the first errno */
};

static struct screen screen_out, screen_err;

void terminal_code(FILE *out, enum terminal_code code)
{
	const char bytes[] = { 0, (char)code };

	fwrite_unlocked(bytes, 1, sizeof(bytes), out);
}

/* Does more have to come before it is known what begins at p? */
static bool cut_off(const uint8_t *p, size_t left)
{
	if (!*p)
		return left < 2;
	for (size_t i = 1; i < left; i++)
		if ((p[i] & 0xc0) != 0x80)
			return false;
	return *p >= 0xc2 && *p <= 0xf4 && left < (*p < 0xe0 ? 2u : *p < 0xf0 ? 3u : 4u);
}

/* Returns how many bytes at p were shown, one piece of them or one code. */
static size_t screen_show(struct screen *s, const uint8_t *p, size_t left)
{
	const char *show;
	char room[VISIBLE_ESC];
	size_t n, len;

	if (left > 1 && !p[0] && p[1] < ARRAY_SIZE(codes)) {
		show = codes[p[1]];
		n = strlen(show);
		len = 2;
	} else {
		len = visible_piece(p, left, &show, &n, room);
	}
	fwrite_unlocked(show, 1, n, s->raw);
	return len;
}

/* The bytes at the end that wait for more. */
static size_t screen_tail(const uint8_t *p, size_t len)
{
	for (size_t n = len < 3 ? len : 3; n; n--)
		if (cut_off(p + len - n, n))
			return n;
	return 0;
}

static void screen_show_all(struct screen *s, const uint8_t *p, size_t len)
{
	for (size_t done = 0; done < len;)
		done += screen_show(s, p + done, len - done);
}

/* What was kept, with as many of the next bytes as it takes; returns how many. */
static size_t screen_join(struct screen *s, const uint8_t *p, size_t len)
{
	size_t n = 0;

	while (s->n_kept && n < len && cut_off(s->kept, s->n_kept))
		s->kept[s->n_kept++] = p[n++];
	if (s->n_kept && !cut_off(s->kept, s->n_kept)) {
		screen_show_all(s, s->kept, s->n_kept);
		s->n_kept = 0;
	}
	return n;
}

/* 0 or errno, which writing has left */
static int screen_flush(struct screen *s)
{
	return fflush_unlocked(s->raw) || ferror_unlocked(s->raw) ? errno : 0;
}

static ssize_t screen_write(void *cookie, const char *data, size_t size)
{
	struct screen *s = cookie;
	const uint8_t *p = (const uint8_t *)data;
	size_t len = size, n;

	if (s->error)
		return 0;
	errno = EIO;
	n = screen_join(s, p, len);
	p += n;
	len -= n;
	n = screen_tail(p, len);
	screen_show_all(s, p, len - n);
	if (n) {
		memcpy(s->kept, p + len - n, n);
		s->n_kept = n;
	}
	s->error = screen_flush(s);
	return s->error ? 0 : (ssize_t)size;
}

/* The stream in front of *stream, in its place. */
static int screen_open(struct screen *s, FILE **stream)
{
	FILE *f = fopencookie(s, "w", (cookie_io_functions_t){ .write = screen_write });

	if (!f)
		return -ENOMEM;
	s->raw = *stream;
	setvbuf(s->raw, NULL, _IOFBF, 0);
	*stream = f;
	return 0;
}

/* One that the caller has closed must not become a file that is opened next, which would be printed into. */
static int open_missing(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY); /* to write there stays an error */
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -errno : close(fd);
}

/* Unlike SIG_IGN it does not pass to programs that are run. */
static void reader_gone(int sig)
{
}

int terminal_open(void)
{
	static char room[OUTPUT_BUFFER];
	int ret = open_missing() ?: screen_open(&screen_err, &stderr) ?: screen_open(&screen_out, &stdout);

	if (ret)
		return ret;
	setvbuf(stderr, NULL, _IONBF, 0);
	setvbuf(stdout, room, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof(room));
	signal(SIGPIPE, reader_gone);
	return 0;
}

void terminal_reader_gone(void)
{
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
	_exit(EXIT_FAILED); /* it is blocked */
}

/* All that was printed, as far as it goes; returns errno, or 0. */
static int screen_end(struct screen *s, FILE *stream)
{
	fflush(stream);
	if (!s->error) {
		errno = EIO;
		screen_show_all(s, s->kept, s->n_kept);
		s->n_kept = 0;
		s->error = screen_flush(s);
	}
	return s->error;
}

int terminal_end(int status)
{
	int error = screen_end(&screen_out, stdout), pager = pager_end();

	if (pager < 0) {
		fprintf(stderr, "hyptrace: the pager '%s' cannot be run: try --no-pager\n", pager_command());
		status = EXIT_FAILED;
	} else if (error == EPIPE && !pager) {
		terminal_reader_gone();
	} else if (error && error != EPIPE) {
		fprintf(stderr, "hyptrace: cannot write the output: %s\n", strerror(error));
		status = EXIT_FAILED;
	}
	screen_end(&screen_err, stderr);
	return status;
}
