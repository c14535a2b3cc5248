// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run the commands which the outside asks for: in L1 for the machine outside, in a guest for L1.
 *
 * usage: serve PORT DIR SHELL
 *
 * PORT, a virtio port, carries lines; DIR, a shared directory, the bulk:
 *	in:  run ID SECONDS	DIR/ID.cmd holds the command line
 *	     kill ID
 *	     off
 *	out: up			ready
 *	     done ID STATUS	DIR/ID.out and DIR/ID.err hold the output
 *
 * It is one program, and not a script, because a command in an emulated guest then needs one new process and not
 * twelve. It sleeps between events: this machine is being traced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	JOBS = 64,
	GRACE_MS = 5000,	/* between SIGTERM and SIGKILL, and for the output of what a command leaves behind */
};

struct job {
	char id[64];
	pid_t pid;		/* 0: it has ended, with STATUS */
	int status;
	int from[2], to[2];	/* pipes' ends, -1: closed; and the files of stdout and stderr */
	long deadline;		/* ms of CLOCK_MONOTONIC; what is due then depends on the fields above */
	int late;		/* signals that it has had for being late: 0, 1 or 2 */
};

static struct job jobs[JOBS];
static const char *dir, *shell;
static int port;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* To the session of PID, or to PID alone before it has one. */
static void signal_session(pid_t pid, int signal)
{
	if (kill(-pid, signal))
		kill(pid, signal);
}

static void answer(const char *id, int status)
{
	dprintf(port, "done %s %d\n", id, status);
}

static int open_shared(const char *id, const char *suffix, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s.%s", dir, id, suffix);
	return open(path, flags | O_CLOEXEC, 0644);
}

/* The command line of ID; NULL: there is none. The caller frees it. */
static char *command_of(const char *id)
{
	int fd = open_shared(id, "cmd", O_RDONLY);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char *text = NULL;
	size_t size = 0;

	if (file && getdelim(&text, &size, '\0', file) < 0)
		text[0] = '\0';
	if (file)
		fclose(file);
	return text;
}

static void run(const char *id, long seconds)
{
	char *command = command_of(id);
	struct job *job = jobs;
	int out[2], err[2];

	while (job < jobs + JOBS && job->id[0])
		job++;
	if (!command || job == jobs + JOBS || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
		answer(id, 125);
		free(command);
		return;
	}
	*job = (struct job){
		.from = { out[0], err[0] },
		.to = { open_shared(id, "out", O_WRONLY | O_CREAT | O_TRUNC),
			open_shared(id, "err", O_WRONLY | O_CREAT | O_TRUNC) },
		.deadline = now_ms() + seconds * 1000,
	};
	snprintf(job->id, sizeof(job->id), "%s", id);
	job->pid = fork();
	if (!job->pid) {
		sigset_t none;

		/* a session of its own, so that all of it can be killed */
		setsid();
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		dup2(open("/dev/null", O_RDWR), 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		execlp(shell, shell, "-c", command, NULL);
		_exit(127);
	}
	if (job->pid < 0)
		*job = (struct job){ .from = { out[0], err[0] }, .status = 125 };
	close(out[1]);
	close(err[1]);
	free(command);
}

/* Copies bytes from a pipe to its file; closes both at the end of the pipe. */
static void copy(struct job *job, int which)
{
	char bytes[65536];
	ssize_t n = read(job->from[which], bytes, sizeof(bytes)), done = 0, written;

	while (done < n && (written = write(job->to[which], bytes + done, n - done)) > 0)
		done += written;
	if (n > 0)
		return;
	close(job->from[which]);
	close(job->to[which]);
	job->from[which] = -1;
}

static void reap(void)
{
	int status;

	for (struct job *job = jobs; job < jobs + JOBS; job++) {
		if (!job->pid || waitpid(job->pid, &status, WNOHANG) != job->pid)
			continue;
		job->status = job->late ? 124 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		job->pid = 0;
		job->deadline = now_ms() + GRACE_MS;
	}
}

/* Signals a job that is late, and answers for one that has ended: a process left behind may hold its pipes open. */
static void attend(struct job *job, long now)
{
	bool due = now >= job->deadline;

	if (job->pid && due) {
		signal_session(job->pid, job->late++ ? SIGKILL : SIGTERM);
		job->deadline = job->late < 2 ? now + GRACE_MS : LONG_MAX;
	}
	if (job->pid || (!due && (job->from[0] >= 0 || job->from[1] >= 0)))
		return;
	for (int i = 0; i < 2; i++) {
		if (job->from[i] < 0)
			continue;
		close(job->from[i]);
		close(job->to[i]);
	}
	answer(job->id, job->status);
	job->id[0] = '\0';
}

static void obey(char *line)
{
	char id[sizeof(jobs[0].id)];
	long seconds;

	if (sscanf(line, "run %63s %ld", id, &seconds) == 2) {
		run(id, seconds);
	} else if (sscanf(line, "kill %63s", id) == 1) {
		for (struct job *job = jobs; job < jobs + JOBS; job++) {
			if (job->pid && !strcmp(job->id, id))
				signal_session(job->pid, SIGTERM);
		}
	} else if (!strcmp(line, "off")) {
		sync();
		dprintf(port, "off\n");
		reboot(RB_POWER_OFF);
	}
}

/* Whole lines of what has come on the port. */
static void hear(void)
{
	static char text[4096];
	static size_t length;
	ssize_t n = read(port, text + length, sizeof(text) - 1 - length);
	char *line = text, *end;

	if (n <= 0) {
		/* nobody is at the other end */
		sleep(1);
		return;
	}
	text[length + n] = '\0';
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		obey(line);
		line = end + 1;
	}
	length = strlen(line);
	memmove(text, line, length);
}

int main(int argc, char **argv)
{
	sigset_t child;
	int children;

	if (argc != 4 || (port = open(argv[1], O_RDWR | O_CLOEXEC)) < 0)
		return 1;
	dir = argv[2];
	shell = argv[3];
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	dprintf(port, "up\n");
	for (;;) {
		struct pollfd ready[2 + 2 * JOBS] = { { .fd = port, .events = POLLIN },
						      { .fd = children, .events = POLLIN } };
		long now = now_ms(), next = LONG_MAX;
		struct signalfd_siginfo drained;

		for (int i = 0; i < JOBS; i++) {
			for (int which = 0; which < 2; which++)
				ready[2 + 2 * i + which] =
					(struct pollfd){ .fd = jobs[i].id[0] ? jobs[i].from[which] : -1, .events = POLLIN };
			if (jobs[i].id[0] && jobs[i].deadline < next)
				next = jobs[i].deadline;
		}
		if (poll(ready, 2 + 2 * JOBS, next == LONG_MAX ? -1 : next > now ? (int)(next - now) : 0) < 0 && errno != EINTR)
			return 1;
		for (int i = 0; i < 2 * JOBS; i++) {
			if (ready[2 + i].revents)
				copy(&jobs[i / 2], i % 2);
		}
		while (read(children, &drained, sizeof(drained)) > 0)
			;
		reap();
		now = now_ms();
		for (struct job *job = jobs; job < jobs + JOBS; job++) {
			if (job->id[0])
				attend(job, now);
		}
		if (ready[0].revents)
			hear();
	}
}
