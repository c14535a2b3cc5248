// SPDX-License-Identifier: GPL-2.0-only
/* The two streams that commands print on, the user's pager, and errors of writing. */
#include <signal.h>
#include <sys/wait.h>

#include "cmd.h"

#define NOT_RUN 126 /* what a shell exits with that cannot run a command, or more */

static pid_t pager;

static const char *pager_command(void)
{
	return getenv("HYPTRACE_PAGER") ?: getenv("PAGER") ?: "less";
}

/* Quitting the pager ends the program: the rest need not be read. */
static void pager_gone(int sig)
{
	siginfo_t info = { 0 };

	if (!waitid(P_PID, (id_t)pager, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pager &&
	    !(info.si_code == CLD_EXITED && info.si_status >= NOT_RUN))
		_exit(EXIT_SUCCESS);
}

static bool pager_wanted;

void pager_want(bool wanted)
{
	pager_wanted = wanted;
}

bool pager_start(void)
{
	const char *command = pager_command();
	bool terminal = isatty(STDOUT_FILENO), wanted = pager_wanted;
	struct sigaction gone = { .sa_handler = pager_gone, .sa_flags = SA_NOCLDSTOP | SA_RESTART };
	int fds[2];

	pager_wanted = false;
	if (!wanted || !terminal || !*command || !strcmp(command, "cat") || pipe2(fds, O_CLOEXEC) < 0)
		return terminal;
	sigaction(SIGCHLD, &gone, NULL);
	pager = fork();
	if (!pager) {
		setenv("LESS", "FRX", 0);
		setenv("LV", "-c", 0);
		dup2(fds[0], STDIN_FILENO);
		execlp("sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (pager > 0) {
		dup2(fds[1], STDOUT_FILENO);
		/* the pager decides what ^C means */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		pager_gone(SIGCHLD); /* before its number was known */
	}
	close(fds[0]);
	close(fds[1]);
	return terminal;
}

/* Waits for it, with no more output. 0: there was none; -ENOEXEC: it could not be run; 1: it has ended. */
static int pager_end(void)
{
	int status = 0;

	if (pager <= 0)
		return 0;
	signal(SIGCHLD, SIG_DFL);
	/* its end of file */
	close(STDOUT_FILENO);
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) >= NOT_RUN ? -ENOEXEC : 1;
}

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

/* True: the character or code at p is incomplete. */
static bool cut_off(const uint8_t *p, size_t left)
{
	if (!*p)
		return left < 2;
	for (size_t i = 1; i < left; i++)
		if ((p[i] & 0xc0) != 0x80)
			return false;
	return *p >= 0xc2 && *p <= 0xf4 && left < (*p < 0xe0 ? 2u : *p < 0xf0 ? 3u : 4u);
}

static void screen_show_all(struct screen *s, const uint8_t *p, size_t len)
{
	for (size_t done = 0, taken; done < len; done += taken, p += taken) {
		const char *show;
		char room[ESCAPE_MAX];
		size_t n;

		if (len - done > 1 && !p[0] && p[1] < ARRAY_SIZE(codes)) {
			show = codes[p[1]];
			n = strlen(show);
			taken = 2;
		} else {
			taken = escape_run(p, len - done, &show, &n, room);
		}
		fwrite_unlocked(show, 1, n, s->raw);
	}
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
	if (s == &screen_out)
		pager_start();
	errno = EIO;
	/* completes the bytes kept from before */
	for (; s->n_kept && len && cut_off(s->kept, s->n_kept); len--)
		s->kept[s->n_kept++] = *p++;
	if (s->n_kept && !cut_off(s->kept, s->n_kept)) {
		screen_show_all(s, s->kept, s->n_kept);
		s->n_kept = 0;
	}
	/* the bytes at the end that wait for more */
	for (n = len < 3 ? len : 3; n && !cut_off(p + len - n, n);)
		n--;
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

/* Unlike SIG_IGN it does not pass to programs that are run. */
static void reader_gone(int sig)
{
}

int terminal_open(void)
{
	static char room[OUTPUT_BUFFER];
	int fd, ret;

	/* a stream that the caller has closed must not become a file that is opened next, which would be
	 * printed into */
	do
		fd = open("/dev/null", O_RDONLY); /* to write there stays an error */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	ret = close(fd) ?: screen_open(&screen_err, &stderr) ?: screen_open(&screen_out, &stdout);
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
	int error = screen_end(&screen_out, stdout), paged = pager_end();

	if (paged < 0) {
		fprintf(stderr,
			"hyptrace: the pager '%s' cannot be run: try hyptrace --no-pager COMMAND, or set "
			"HYPTRACE_PAGER\n",
			pager_command());
		status = EXIT_FAILED;
	} else if (error == EPIPE && !paged) {
		terminal_reader_gone();
	} else if (error && error != EPIPE) {
		fprintf(stderr, "hyptrace: cannot write the output: %s\n", strerror(error));
		status = EXIT_FAILED;
	}
	screen_end(&screen_err, stderr);
	return status;
}
