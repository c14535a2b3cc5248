// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events as lines of trace_marker, as QEMU's ftrace back end would write them. */
#include "guest-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_MAX (64 + HYPERTRACE_ARGS_LIMIT * 32)

static int marker_fd = -1;

static int marker_open(const char *at)
{
	static const char *const files[] = { "/sys/kernel/tracing/trace_marker",
					     "/sys/kernel/debug/tracing/trace_marker" };
	const int flags = O_WRONLY | O_APPEND | O_CLOEXEC;
	int ret;

	marker_fd = open(at ? at : files[0], flags);
	ret = marker_fd < 0 ? -errno : 0;
	if (ret && !at) {
		marker_fd = open(files[1], flags);
		ret = marker_fd < 0 ? ret : 0;
	}
	return ret;
}

static void marker_close(void)
{
	close(marker_fd);
	marker_fd = -1;
}

/* One write is one event; a trace that is off refuses it, which is not an error. */
static void marker_emit(uint32_t client, const uint64_t *arg)
{
	char line[LINE_MAX];
	int len = snprintf(line, sizeof(line), "guest_hypertrace client=%u", client);

	for (uint32_t i = 0; i < hypertrace_shape.args; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " arg%u=0x%llx", i + 1,
				(unsigned long long)arg[i]);
	line[len++] = '\n';
	if (write(marker_fd, line, (size_t)len) < 0)
		return;
}

const struct hypertrace_way hypertrace_marker = {
	.name = "marker",
	.open = marker_open,
	.close = marker_close,
	.emit = marker_emit,
};
