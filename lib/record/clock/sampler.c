// SPDX-License-Identifier: LGPL-2.1-or-later
/* A thread that samples the host's counter and its VMs' CNTVOFF while a recording runs. */
#include "record/clock/cntvoff.h"

#include <poll.h>
#include <sys/eventfd.h>

#define DRAIN_MS 250 /* the probe's buffer holds that much */

static int take_sample(struct clock_sampler *c)
{
	struct counter_shot s;
	int ret = counter_shoot(c->marks, &s);

	if (ret)
		return ret;
	ret = counter_log_shot(&c->host, &s);
	if (ret || !c->tsc)
		return ret;
	pthread_mutex_lock(&c->lock);
	ret = cntvoff_tsc_read(CNTVOFF_KVM_DIR, s.clock, &c->cntvoff);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

/* In a thread of its own: a recording's start and end block for longer than an interval. */
static void *sample_thread(void *arg)
{
	struct clock_sampler *c = arg;
	struct pollfd p = { .fd = c->stop_fd, .events = POLLIN };
	int64_t since = 0, wait = DRAIN_MS;
	int ret = 0, n;

	if (c->interval_ms > 0 && c->interval_ms < wait)
		wait = c->interval_ms;
	while (!ret && (n = poll(&p, 1, (int)wait)) <= 0) {
		if (n < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		since += wait;
		if (c->probe) {
			pthread_mutex_lock(&c->lock);
			ret = cntvoff_probe_drain(c->probe, &c->cntvoff);
			pthread_mutex_unlock(&c->lock);
		}
		if (!ret && c->interval_ms > 0 && since >= c->interval_ms) {
			ret = take_sample(c);
			since = 0;
		}
	}
	c->error = ret;
	return NULL;
}

int clock_sampler_start(struct clock_sampler **out, struct undo *u, const char *clock, int64_t interval_ms,
			bool probe, const struct log *log)
{
	struct clock_sampler *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->interval_ms = interval_ms;
	c->log = log;
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = c->stop_fd < 0 ? -errno : !counter_there() ? -ENOTSUP : 0;
	ret = ret ?: clock_marker_open(&c->marks, u, clock, COUNTER_MARKS);
	if (!ret && probe) {
		ret = cntvoff_probe_open(&c->probe, u, clock);
		if (ret && ret != -ENOMEM) {
			log_debug(log, "no probe for CNTVOFF: %s", errno_text(ret));
			c->tsc = true;
			ret = 0;
		}
	}
	ret = ret ?: take_sample(c) ?: -pthread_create(&c->thread, NULL, sample_thread, c);
	c->running = !ret;
	if (!ret) {
		*out = c;
		return 0;
	}
	cntvoff_probe_free(c->probe);
	clock_marker_free(c->marks);
	c->marks = NULL;
	clock_sampler_free(c);
	return ret;
}

void clock_sampler_stop(struct clock_sampler *c)
{
	if (!c || !c->marks)
		return;
	if (c->running) {
		eventfd_write(c->stop_fd, 1);
		pthread_join(c->thread, NULL);
		c->running = false;
	}
	if (c->probe && !c->error)
		c->error = cntvoff_probe_drain(c->probe, &c->cntvoff);
	if (!c->error)
		c->error = take_sample(c);
	if (c->error)
		log_warn(c->log, "the host's counter was not read to the end: %s", errno_text(c->error));
	cntvoff_probe_free(c->probe);
	c->probe = NULL;
	clock_marker_free(c->marks);
	c->marks = NULL;
}

void clock_sampler_free(struct clock_sampler *c)
{
	if (!c)
		return;
	clock_sampler_stop(c);
	counter_log_release(&c->host);
	cntvoff_log_release(&c->cntvoff);
	fd_close(&c->stop_fd);
	free(c);
}

int clock_sampler_copy_cntvoff(struct clock_sampler *c, struct cntvoff_log *out)
{
	int ret;

	pthread_mutex_lock(&c->lock);
	ret = cntvoff_log_copy(out, &c->cntvoff);
	pthread_mutex_unlock(&c->lock);
	return ret;
}
