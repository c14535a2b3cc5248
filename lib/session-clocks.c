// SPDX-License-Identifier: LGPL-2.1-or-later
#include "session-clocks.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "voff.h"

#define DRAIN_MS 250 /* the probe's buffer holds that much */

struct session_clocks {
	struct clock_marks *marks;
	struct voff_probe *probe; /* NULL: this kernel has none */
	bool tsc;		  /* look into debugfs instead */
	struct counter_log host;
	struct voff_log voff;
	int64_t interval_ms;
	pthread_t thread;
	bool running;
	int stop_fd;
	int error; /* of the thread: what was logged before is good */
	const struct log *log;
};

static int shoot(struct session_clocks *c)
{
	struct counter_shot s;
	int ret = counter_shoot(c->marks, &s);

	if (!ret)
		ret = counter_log_shot(&c->host, &s);
	return !ret && c->tsc ? voff_tsc_read(VOFF_KVM_DIR, s.clock, &c->voff) : ret;
}

/* In a thread of its own: a recording's start and end block for longer than an interval. */
static void *watch(void *arg)
{
	struct session_clocks *c = arg;
	struct pollfd p = { .fd = c->stop_fd, .events = POLLIN };
	int64_t since = 0, wait = DRAIN_MS;
	int ret = 0, n;

	if (c->interval_ms > 0 && c->interval_ms < wait)
		wait = c->interval_ms;
	while (!ret && (n = poll(&p, 1, (int)wait)) <= 0) {
		if (n < 0)
			continue;
		since += wait;
		if (c->probe)
			ret = voff_probe_drain(c->probe, &c->voff);
		if (!ret && c->interval_ms > 0 && since >= c->interval_ms) {
			ret = shoot(c);
			since = 0;
		}
	}
	c->error = ret;
	return NULL;
}

static int start(struct session_clocks *c, struct undo *u, const char *clock, bool probe)
{
	int ret = clock_marks_open(&c->marks, u, clock, COUNTER_MARKS);

	if (ret)
		return ret;
	ret = probe ? voff_probe_open(&c->probe, u, clock) : 0;
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		log_debug(c->log, "no probe for CNTVOFF: %s", error_text(ret));
	c->tsc = probe && !c->probe;
	ret = shoot(c);
	if (ret)
		return ret;
	ret = pthread_create(&c->thread, NULL, watch, c);
	c->running = !ret;
	return -ret;
}

int session_clocks_start(struct session_clocks **out, struct undo *u, const char *clock,
			 int64_t interval_ms, bool probe, const struct log *log)
{
	struct session_clocks *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->interval_ms = interval_ms;
	c->log = log;
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = c->stop_fd < 0 ? -errno : !counter_there() ? -ENOTSUP : start(c, u, clock, probe);
	if (!ret) {
		*out = c;
		return 0;
	}
	voff_probe_free(c->probe);
	clock_marks_free(c->marks);
	c->marks = NULL;
	session_clocks_free(c);
	return ret;
}

void session_clocks_stop(struct session_clocks *c)
{
	if (!c || !c->marks)
		return;
	if (c->running) {
		eventfd_write(c->stop_fd, 1);
		pthread_join(c->thread, NULL);
		c->running = false;
	}
	if (c->probe && !c->error)
		c->error = voff_probe_drain(c->probe, &c->voff);
	if (!c->error)
		c->error = shoot(c);
	if (c->error)
		log_warn(c->log, "the host's counter was not read to the end: %s", error_text(c->error));
	voff_probe_free(c->probe);
	c->probe = NULL;
	clock_marks_free(c->marks);
	c->marks = NULL;
}

void session_clocks_free(struct session_clocks *c)
{
	if (!c)
		return;
	session_clocks_stop(c);
	counter_log_release(&c->host);
	voff_log_release(&c->voff);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	free(c);
}

const struct counter_log *session_clocks_host(const struct session_clocks *c)
{
	return &c->host;
}

const struct voff_log *session_clocks_voff(const struct session_clocks *c)
{
	return &c->voff;
}
