// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command and appends what it took to RESULT, a line of five figures: wall time (s), CPU
 * time (s), the most memory that was resident (MiB), what it asked the kernel to read (MiB),
 * and with -1 the time until its first line was there (s; else 0), behind which nobody reads on.
 * usage: measure [-1] RESULT COMMAND [ARGUMENT...]
 * Exits as the command did, of which a reader that has gone is no failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void die(const char *what)
{
	fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
	exit(125);
}

static pid_t run(char **argv, const int *out)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	if (out && dup2(out[1], STDOUT_FILENO) < 0)
		die("dup2");
	execvp(argv[0], argv);
	die(argv[0]);
	return -1;
}

/* Returns when it was there, or the output ended. */
static double first_line(int fd)
{
	char piece[4096];
	ssize_t n;

	do
		n = read(fd, piece, sizeof(piece));
	while (n > 0 && !memchr(piece, '\n', (size_t)n));
	return now();
}

/* Of a process that has ended and is not waited for yet, its threads included; bytes. */
static double bytes_read(pid_t pid)
{
	unsigned long long n = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "rchar: %llu", &n) != 1)
		die(path);
	fclose(f);
	return (double)n;
}

int main(int argc, char **argv)
{
	bool first = argc > 1 && !strcmp(argv[1], "-1");
	double begin = now(), line = 0, end, bytes;
	struct rusage used;
	siginfo_t info;
	int out[2], status;
	FILE *result;
	pid_t pid;

	argv += 1 + first;
	if (argc - first < 3) {
		fputs("usage: measure [-1] RESULT COMMAND [ARGUMENT...]\n", stderr);
		return 125;
	}
	result = fopen(argv[0], "ae");
	if (!result)
		die(argv[0]);
	if (first && pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	pid = run(argv + 1, first ? out : NULL);
	if (first) {
		close(out[1]);
		line = first_line(out[0]) - begin;
		close(out[0]);
	}
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
		die("wait");
	end = now();
	bytes = bytes_read(pid);
	if (wait4(pid, &status, 0, &used) < 0)
		die("wait");
	fprintf(result, "%.4f %.4f %.1f %.2f %.4f\n", end - begin,
		seconds(used.ru_utime) + seconds(used.ru_stime), (double)used.ru_maxrss / 1024,
		bytes / (1 << 20), line);
	if (fclose(result))
		die(argv[0]);
	if (WIFSIGNALED(status))
		return first && WTERMSIG(status) == SIGPIPE ? 0 : 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}
