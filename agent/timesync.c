// SPDX-License-Identifier: GPL-2.0-only
/* The guest's side of time synchronisation. */
#include "agent.h"

#include <sched.h>
#include <sys/eventfd.h>

#include "record/clock/counter.h"

/*
 * Stock takes 339 probes per CPU, one CPU after the other; the best of these is
 * as good for all that can be measured, and the recorder waits far less.
 */
#define PROBES 64

struct sync {
	const struct serving *serving;
	pthread_t thread;
	bool running;
	int finish_fd; /* readable: the recording is over, do not wait for long */
	int fd;
	uint32_t series;
	struct clock_marker *clock; /* of each probe: sent, and back */
	struct msg_reader reader;
	struct msg_ptp_probes seen; /* by the host's clock */
};

const char *sync_protocol(const struct strlist *offered)
{
	if (counter_there() && strlist_has(offered, MSG_SYNC_COUNTER))
		return MSG_SYNC_COUNTER;
	return strlist_has(offered, MSG_SYNC_PTP) ? MSG_SYNC_PTP : "";
}

/*
 * ts (guest's) of the probe with the shortest way, and the offset: the middle of
 * what all probes leave of it. false: none is good.
 */
static bool sync_choose(const struct sync *s, int64_t *ts, int64_t *offset)
{
	int64_t low = INT64_MIN, high = INT64_MAX, shortest = INT64_MAX;

	for (uint32_t i = 0; i < PROBES; i++) {
		int64_t sent = s->clock->ts[2 * i], back = s->clock->ts[2 * i + 1], way = back - sent;
		int64_t seen = s->seen.ids[i] == i + 1 ? s->seen.ts[i] : 0;

		if (!sent || !back || !seen || way < 0)
			continue;
		if (way < shortest) {
			shortest = way;
			*ts = sent + way / 2;
		}
		/* after it was sent and before it was back: each limit by the probe that was best there */
		low = seen - back > low ? seen - back : low;
		high = seen - sent < high ? seen - sent : high;
	}
	if (shortest == INT64_MAX)
		return false;
	*offset = low + (high - low) / 2;
	/* a recorder drops a sample with 0 in it, and with it the whole guest's */
	if (!*offset)
		*offset = 1;
	return true;
}

static int sync_send(struct sync *s, struct buf *b)
{
	struct msg_wait w = serving_wait(s->serving);

	return msg_send_buf(s->fd, b, &w);
}

static int sync_receive(struct sync *s, uint32_t id, struct msg_sync *sync)
{
	struct msg_wait w = serving_wait(s->serving);
	struct msg m;
	int ret = msg_recv(s->fd, &s->reader, &w, &m);

	if (ret)
		return ret;
	ret = msg_get_sync(&m, sync);
	return ret ? ret : msg_sync_is(sync, MSG_SYNC_PTP, id) ? 0 : -EPROTO;
}

/* The host's times come at the end; the numbers in there count from 1. */
static int sync_pass(struct sync *s)
{
	struct buf b = { 0 };
	struct msg_sync sync;
	uint32_t got = 0;
	int ret;

	clock_marker_clear(s->clock);
	msg_add_ptp_start(&b, ++s->series, MSG_PTP_FASTEST | MSG_PTP_MARKER);
	ret = sync_send(s, &b) ?: sync_receive(s, MSG_PTP_START, &sync);
	for (uint32_t i = 0; i < PROBES && !ret; i++) {
		b = (struct buf){ 0 };
		msg_add_sync_number(&b, MSG_SYNC_PTP, MSG_PTP_PROBE, i + 1);
		clock_marker_set(s->clock, 2 * i);
		ret = sync_send(s, &b) ?: sync_receive(s, MSG_PTP_PROBE, &sync);
		clock_marker_set(s->clock, 2 * i + 1);
		ret = ret ?: msg_get_sync_number(&sync, &got) ?: got == i + 1 ? 0 : -EPROTO;
	}
	if (ret)
		return ret;
	b = (struct buf){ 0 };
	msg_add_sync(&b, MSG_SYNC_PTP, MSG_PTP_END, NULL, 0);
	ret = sync_send(s, &b) ?: sync_receive(s, MSG_PTP_PROBES, &sync) ?:
	      msg_get_ptp_probes(&sync, &s->seen);
	if (!ret)
		clock_marker_collect(s->clock);
	return ret;
}

/* taken: the counter when the question was. */
static int sync_answer_counter(struct sync *s, const struct msg_sync *question, uint64_t taken)
{
	struct msg_counter_shot shot = { .first = taken };
	struct counter_shot c = { 0 };
	struct buf b = { 0 };
	int ret = msg_get_sync_number(question, &shot.number);

	if (ret)
		return ret;
	counter_shoot(s->clock, &c);
	shot.counter = c.counter;
	shot.slack = c.slack;
	shot.clock = c.clock;
	shot.last = counter_read();
	msg_add_counter_shot(&b, &shot);
	return sync_send(s, &b);
}

static int serve_requests(struct sync *s)
{
	struct msg_wait w = serving_wait(s->serving);
	struct msg_sync sync;
	uint64_t taken;
	uint16_t cpu;
	struct msg m;
	int ret;

	s->fd = ports_accept(s->serving->ports, s->serving->n_streams, &w);
	if (s->fd < 0)
		return s->fd;
	for (;;) {
		int64_t ts = 0, offset = 0;
		struct buf b = { 0 };
		cpu_set_t set;

		/* as long as the recording, then a while */
		w = (struct msg_wait){ .deadline = INT64_MAX, .stop_fd = s->finish_fd };
		ret = msg_recv(s->fd, &s->reader, &w, &m);
		if (ret == -ECANCELED) {
			w = serving_wait(s->serving);
			ret = msg_recv(s->fd, &s->reader, &w, &m);
		}
		taken = counter_read();
		ret = ret ?: msg_get_sync(&m, &sync);
		if (ret)
			return ret == -ENODATA ? 0 : ret;
		if (msg_sync_is(&sync, MSG_SYNC_COUNTER, MSG_COUNTER_ASK)) {
			ret = sync_answer_counter(s, &sync, taken);
			if (ret)
				return ret;
			continue;
		}
		if (msg_sync_is(&sync, MSG_SYNC_NONE, MSG_SYNC_STOP))
			return 0;
		if (!msg_sync_is(&sync, MSG_SYNC_NONE, MSG_SYNC_PROBE) || msg_get_sync_probe(&sync, &cpu))
			return -EPROTO;
		CPU_ZERO(&set);
		if (cpu < CPU_SETSIZE)
			CPU_SET(cpu, &set);
		/* of a CPU that is offline, another one's clock is as good */
		sched_setaffinity(0, sizeof(set), &set);
		ret = sync_pass(s);
		if (ret)
			return ret;
		if (!sync_choose(s, &ts, &offset))
			log_warn(s->serving->log, "time synchronisation: no probe of CPU %u came back whole",
				 cpu);
		msg_add_ptp_offset(&b, ts, offset);
		ret = sync_send(s, &b);
		if (ret)
			return ret;
	}
}

static void *sync_thread(void *arg)
{
	struct sync *s = arg;
	int ret = serve_requests(s);

	if (ret && ret != -ECANCELED)
		log_warn(s->serving->log, "time synchronisation ended: %s", strerror(-ret));
	fd_close(&s->fd);
	return NULL;
}

int sync_start(struct sync **out, const struct serving *serving)
{
	struct sync *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->serving = serving;
	s->fd = -1;
	s->finish_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = s->finish_fd < 0 ? -errno
			       : clock_marker_open(&s->clock, serving->undo, serving->clock, 2 * PROBES);
	if (!ret) {
		ret = thread_start(&s->thread, sync_thread, s);
		s->running = !ret;
	}
	if (ret)
		sync_free(s);
	else
		*out = s;
	return ret;
}

void sync_finish(struct sync *s)
{
	if (!s || !s->running)
		return;
	eventfd_write(s->finish_fd, 1);
	pthread_join(s->thread, NULL);
	s->running = false;
}

void sync_free(struct sync *s)
{
	if (!s)
		return;
	sync_finish(s);
	clock_marker_free(s->clock);
	fd_close(&s->finish_fd);
	free(s);
}
