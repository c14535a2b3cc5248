// SPDX-License-Identifier: GPL-2.0-only
/* One recording of a recorder: the answer, the metadata, the pages, the end. */
#include "agent.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clock/marks.h"
#include "serving-state.h"
#include "stream.h"
#include "thread.h"
#include "timesync.h"

/* So many messages that make no sense here are answered before the peer is given up. */
#define STRAY_MAX    8
#define LAST_MS	     1000
#define SEND_AT_ONCE 61440 /* bytes: with one more message, what a vsock packet carries */

/* For what comes last: the next recorder may be waiting for this one. */
static struct msg_wait serving_last_wait(const struct serving *s)
{
	return (struct msg_wait){ .deadline = msg_now() + LAST_MS, .stop_fd = s->cancel_fd };
}

int agent_refuse(const struct agent *a, int fd, const char *why, struct msg_wait w)
{
	struct buf b = { 0 };

	log_warn(&a->log, "refused: %s", why);
	msg_add_refusal(&b, why);
	return msg_send_buf(fd, &b, &w);
}

/* ---- the answer ---------------------------------------------------------------- */

static int serving_open_ports(struct serving *s)
{
	struct transport_addr local;
	struct ports *p;
	int ret = transport_local(s->fd, &local);

	if (!ret)
		ret = ports_open(&p, &local, &s->peer, s->n_streams + 1);
	if (ret) {
		log_err(s->log, "cannot open the ports for the data: %s", strerror(-ret));
		return ret;
	}
	atomic_store(&s->ports, p);
	return 0;
}

static int serving_open_sync(struct serving *s)
{
	int ret;

	s->proto = sync_protocol(&s->req.protos);
	if (!*s->proto)
		return 0;
	ret = sync_start(&s->sync, s);
	if (ret) {
		log_warn(s->log, "no time synchronisation: %s", strerror(-ret));
		s->proto = "";
	}
	return 0;
}

static int serving_answer(struct serving *s)
{
	struct msg_trace_resp r = { .flags = s->profile ? MSG_WITH_PROFILE : 0,
				    .cpus = s->n_streams,
				    .page_size = s->page_size,
				    .trace_id = s->trace_id };
	struct msg_wait w = serving_wait(s);
	struct buf b = { 0 };

	r.ports = calloc(s->n_streams, sizeof(*r.ports));
	if (!r.ports)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_streams; i++)
		r.ports[i] = ports_number(s->ports, i);
	strcpy(r.proto, s->proto);
	if (*s->proto)
		r.tsync_port = ports_number(s->ports, s->n_streams);
	msg_add_trace_resp(&b, &r);
	free(r.ports);
	return msg_send_buf(s->fd, &b, &w);
}

/* ---- the metadata ---------------------------------------------------------------- */

/* One message more. 1, 0: there is no more data, or -errno. */
static int add_data(struct buf *out, int fd)
{
	uint8_t bytes[MSG_DATA_MAX];
	ssize_t n = read_all(fd, bytes, sizeof(bytes));

	if (n > 0)
		msg_add(out, MSG_SEND_DATA, bytes, (size_t)n);
	return n > 0 ? 1 : (int)n;
}

/* vsock wakes the other side up for each send, which takes longer than what is sent. */
static int send_file(struct serving *s, int fd)
{
	int more = 1, ret = 0;

	while (!ret && more > 0) {
		struct msg_wait w = serving_wait(s);
		struct buf b = { 0 };

		while ((more = add_data(&b, fd)) > 0 && b.len < SEND_AT_ONCE)
			;
		if (!more)
			msg_add(&b, MSG_FIN_DATA, NULL, 0);
		ret = more < 0 ? more : msg_send_buf(s->fd, &b, &w);
		buf_release(&b);
	}
	return ret;
}

static int send_meta(struct serving *s)
{
	int fd = meta_make(s), ret;

	if (fd < 0)
		return fd;
	ret = send_file(s, fd);
	close(fd);
	return ret;
}

/* ---- regions ------------------------------------------------------------------ */

static void serving_keep_pauses(struct serving *s)
{
	struct pauses p = { 0 };
	bool whole = true;

	if (!*s->watch.path)
		return;
	watch_read(&s->watch, s->undo, &p, &whole);
	if (!whole)
		log_warn(s->log, "when tracing was off between regions is not known of all of them");
	if (p.n)
		pauses_encode(&p, s->clock, &s->pauses);
	pauses_release(&p);
}

/* Before CLOSE_RESP, where a recorder that does not know them lets them pass. */
static void serving_add_pauses(struct buf *out, const struct buf *pauses)
{
	for (size_t at = 0; at < pauses->len && !pauses->bad; at += MSG_DATA_MAX) {
		size_t left = pauses->len - at;

		msg_add(out, MSG_SEND_DATA, pauses->data + at, left < MSG_DATA_MAX ? left : MSG_DATA_MAX);
	}
}

/* ---- recording ---------------------------------------------------------------- */

/*
 * Once the recorder has connected to all CPUs, which it does to all of its guests
 * at a time: so they begin together, however long each took to be set up.
 */
static int start_tracing(struct serving *s, eventfd_t *connected)
{
	int clock = clock_marks_system(s->clock);
	struct timespec now;
	eventfd_t more;

	if (eventfd_read(s->ready_fd, &more) < 0)
		return 0;
	*connected += more;
	if (*connected < s->n_streams)
		return 0;
	if (clock >= 0 && !s->boot && !clock_gettime(clock, &now))
		s->sent.started = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return s->profile && profile_switch(s->profile, true) ? -EIO : instance_start(s->inst);
}

/* 1: the recorder says that it is enough; 0: go on; else it is over. */
static int take_message(struct serving *s, unsigned int *stray)
{
	struct msg m;
	int ret = msg_reader_step(&s->reader, s->fd, &m);

	if (ret <= 0)
		return ret;
	if (m.cmd == MSG_CLOSE)
		return 1;
	if (m.cmd == MSG_NOT_SUPP)
		return 0;
	if (++*stray > STRAY_MAX)
		return -EPROTO;
	return agent_refuse(s->agent, s->fd, "only CLOSE makes sense now", serving_last_wait(s));
}

static int trace_until_close(struct serving *s)
{
	struct pollfd p[4] = { { .fd = s->fd, .events = POLLIN },
			       { .fd = s->cancel_fd, .events = POLLIN },
			       { .fd = s->failed_fd, .events = POLLIN },
			       { .fd = s->ready_fd, .events = POLLIN } };
	eventfd_t connected = 0;
	unsigned int stray = 0;

	for (;;) {
		int ret = 0;

		if (poll(p, 4, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			return -ECANCELED;
		if (p[3].revents)
			ret = start_tracing(s, &connected);
		if (!ret && p[0].revents)
			ret = take_message(s, &stray);
		if (ret)
			return ret < 0 ? ret : 0;
		if (p[2].revents)
			return -EPIPE;
	}
}

static void serving_sum(struct serving *s)
{
	uint64_t bytes = 0, lost = 0;

	s->sent.cpus = calloc(s->n_streams, sizeof(*s->sent.cpus));
	for (uint32_t i = 0; i < s->n_streams && s->sent.cpus; i++) {
		struct msg_sent_cpu *one = &s->sent.cpus[i];

		s->sent.n_cpus = i + 1;
		one->bytes = streams_bytes(s->streams, i);
		/* 0 when the kernel does not tell: then the recorder goes by the pages */
		if (i < s->n_cpus)
			instance_lost(s->inst, i, &one->lost);
		else
			one->lost = streams_samples_lost(s->streams, i);
		log_debug(s->log, "cpu %u%s: sent %" PRIu64 " bytes, %" PRIu64 " events lost", i % s->n_cpus,
			  i < s->n_cpus ? "" : ", samples", one->bytes, one->lost);
		bytes += one->bytes;
		lost += one->lost;
	}
	log_info(s->log, "sent %" PRIu64 " bytes%s, %" PRIu64 " events lost", bytes,
		 streams_spliced(s->streams) ? " by splice" : "", lost);
}

static int serving_record(struct serving *s)
{
	int ret = streams_start(&s->streams, s), ended;

	if (!ret)
		ret = trace_until_close(s);
	instance_stop(s->inst);
	serving_keep_pauses(s);
	if (s->profile)
		profile_switch(s->profile, false);
	if (!s->streams)
		return ret;
	/* what is left is for a recorder that listens still */
	if (ret)
		serving_cancel(s);
	ended = streams_finish(s->streams);
	serving_sum(s);
	return ended && (!ret || ret == -EPIPE) ? ended : ret;
}

/* ---- the whole ---------------------------------------------------------------- */

static int serving_run(struct serving *s)
{
	static int (*const steps[])(struct serving *) = {
		serving_open_ports, serving_open_sync, serving_answer, send_meta, serving_record,
	};
	char *why = NULL;
	int ret = serving_prepare(s, &why);

	if (ret) {
		/* first, so that who tries again at once is served */
		serving_put_back(s);
		atomic_store(&s->ending, true);
		agent_refuse(s->agent, s->fd, why ? why : strerror(-ret), serving_last_wait(s));
		free(why);
		return ret;
	}
	for (size_t i = 0; i < ARRAY_SIZE(steps) && !ret; i++)
		ret = steps[i](s);
	if (ret) {
		atomic_store(&s->ending, true);
		serving_cancel(s);
	}
	sync_finish(s->sync);
	return ret;
}

static int send_close_resp(struct serving *s)
{
	struct msg_wait w = serving_last_wait(s);
	struct buf b = { 0 };

	serving_add_pauses(&b, &s->pauses);
	msg_add_close_resp(&b, &s->sent);
	return msg_send_buf(s->fd, &b, &w);
}

static void *serving_thread(void *arg)
{
	struct serving *s = arg;
	int ret = serving_run(s);

	sync_free(s->sync);
	streams_free(s->streams);
	profile_close(s->profile);
	serving_put_back(s);
	atomic_store(&s->ending, true);
	if (!ret)
		ret = send_close_resp(s);
	if (ret)
		log_warn(s->log, "the recording ended early: %s",
			 ret == -ENODATA ? "the recorder went away" : strerror(-ret));
	else
		log_info(s->log, "the recording is complete");
	close(s->fd);
	s->fd = -1;
	eventfd_write(s->done_fd, 1);
	return NULL;
}

int serving_start(struct serving **out, struct agent *a, int fd, const struct transport_addr *peer,
		  struct msg_trace_req *req, int done_fd)
{
	struct serving *s = calloc(1, sizeof(*s));
	int ret = 0;

	if (!s) {
		msg_trace_req_release(req);
		close(fd);
		return -ENOMEM;
	}
	*s = (struct serving){ .agent = a,
			       .log = &a->log,
			       .fd = fd,
			       .peer = *peer,
			       .req = *req,
			       .done_fd = done_fd,
			       .proto = "" };
	s->cancel_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->failed_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->ready_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->cancel_fd < 0 || s->failed_fd < 0 || s->ready_fd < 0 ||
	    getrandom(&s->trace_id, sizeof(s->trace_id), 0) != sizeof(s->trace_id))
		ret = -errno;
	if (!ret)
		ret = thread_start(&s->thread, serving_thread, s);
	if (!ret) {
		*out = s;
		return 0;
	}
	close(fd);
	serving_free(s);
	return ret;
}

bool serving_offer(struct serving *s, uint32_t port, int fd)
{
	struct ports *p = atomic_load(&s->ports);

	return p && ports_offer(p, port, fd);
}

bool serving_ending(struct serving *s)
{
	return atomic_load(&s->ending);
}

void serving_cancel(struct serving *s)
{
	eventfd_write(s->cancel_fd, 1);
}

void serving_free(struct serving *s)
{
	/* here, not in the thread: serving_offer looks at them */
	ports_free(s->ports);
	msg_trace_req_release(&s->req);
	record_plan_release(&s->plan);
	fd_close(&s->cancel_fd);
	fd_close(&s->failed_fd);
	fd_close(&s->ready_fd);
	msg_sent_release(&s->sent);
	buf_release(&s->pauses);
	free(s->clock);
	free(s);
}

void serving_join(struct serving *s)
{
	pthread_join(s->thread, NULL);
	serving_free(s);
}
