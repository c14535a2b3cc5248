// SPDX-License-Identifier: GPL-2.0-only
/* Destinations of the agent's messages: stderr, syslog or the kernel's log, with a limited rate. */
#include "agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A flood of connections must not become a flood of lines. */
#define LINES_MAX     40
#define LINES_SECONDS 10

static int sink = STDERR_FILENO;
static bool priorities; /* the sink wants "<6>" */
static bool verbose;

void log_verbose(void)
{
	verbose = true;
}

void log_to_system(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		fd = open("/dev/kmsg", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	sink = fd;
	priorities = true;
}

static void log_line(enum log_level level, const char *msg)
{
	/* facility daemon (3), severities err, warning, info, debug */
	static const int severity[] = { 3, 4, 6, 7 };
	char line[512];
	int n;

	if (priorities)
		n = snprintf(line, sizeof(line), "<%d>hyptrace-agent: %s\n", 3 << 3 | severity[level], msg);
	else
		n = snprintf(line, sizeof(line), "hyptrace-agent: %s%s\n",
			     level == LOG_ERROR ? "error: " : "", msg);
	if (n <= 0)
		return;
	if ((size_t)n >= sizeof(line))
		n = sizeof(line) - 1;
	line[n - 1] = '\n';
	/* one write: lines of several threads do not mix */
	if (write(sink, line, (size_t)n) < 0)
		return;
}

void agent_log(void *ctx, enum log_level level, const char *msg)
{
	static _Atomic int64_t window;
	static _Atomic int lines, dropped;
	int64_t now = msg_now() / 1000;
	char text[64];

	if (level == LOG_DEBUG && !verbose)
		return;
	if (now - window < LINES_SECONDS) {
		if (++lines > LINES_MAX) {
			dropped++;
			return;
		}
	} else {
		int n = dropped;

		window = now;
		lines = 0;
		dropped = 0;
		snprintf(text, sizeof(text), "%d lines left out", n);
		if (n)
			log_line(LOG_WARN, text);
	}
	log_line(level, msg);
}
