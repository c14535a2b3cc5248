// SPDX-License-Identifier: GPL-2.0-only
/* One recording of a recorder: the buffer is made ready, the answer, the metadata, the pages, the end. */
#include "agent.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "base/clock.h"
#include "record/clock/counter.h"

/*
 * The guest's side of time synchronisation: answers the recorder's requests on a connection and in a
 * thread of its own, until STOP, or the end of the connection.
 *
 * hyptrace's recorder asks for the counter (msg.h). In stock's "ptp" the guest probes, chooses and reports
 * the offset. Nothing better than its probes can go in there: KVM's PTP call gives the guest the host's
 * CLOCK_REALTIME, and of the host's trace clock a guest knows no more than when it saw each probe.
 */

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

/* The protocol to be used with a recorder that offers these; "": none. */
static const char *sync_protocol(const struct strlist *offered)
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
	/* a recorder drops a sample with 0 in it, and with it the whole guest's */
	*offset = (low + (high - low) / 2) ?: 1;
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
	int ret = msg_recv(s->fd, &s->reader, &w, &m) ?: msg_get_sync(&m, sync);

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
	int ret = 0;

	s->fd = ports_accept(s->serving->ports, s->serving->n_streams, &w);
	if (s->fd < 0)
		return s->fd;
	while (!ret) {
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
	}
	return ret;
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

/* Waits for the recorder's last pass, at most the agent's timeout without a message. */
static void sync_free(struct sync *s)
{
	if (!s)
		return;
	if (s->running) {
		eventfd_write(s->finish_fd, 1);
		pthread_join(s->thread, NULL);
	}
	clock_marker_free(s->clock);
	fd_close(&s->finish_fd);
	free(s);
}

/*
 * Runs on the port after those of the CPUs, by the serving, which outlives it. The clock is read by
 * trace_marker_raw, in an instance of its own, unless it is one of the system's.
 */
static int sync_start(struct sync **out, const struct serving *serving)
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
	ret = ret ?: thread_start(&s->thread, sync_thread, s);
	s->running = !ret;
	if (ret)
		sync_free(s);
	else
		*out = s;
	return ret;
}

/* ---- a recording ---- */

static int serving_open_undo(struct serving *s)
{
	struct agent *a = s->agent;

	/* --early has begun one, which is to be ended with this recording, unless the request is refused */
	if (s->boot && a->boot.early) {
		s->undo = a->boot.early;
		return 0;
	}
	/* it switched on what only a recorder of the top buffer can take over */
	if (!s->boot && a->boot.early) {
		log_warn(s->log, "the recording of --early is dropped for another buffer");
		boot_end_early(a);
	}
	return agent_undo_open(a, &s->undo);
}

/* tracefs as it was before; the instance is gone then. */
static void serving_put_back(struct serving *s)
{
	instance_free(s->inst);
	s->inst = NULL;
	agent_undo_end(s->agent, s->undo);
	s->undo = NULL;
}

/* The recording continues without samples: the answer lacks them. */
static void serving_open_profile(struct serving *s)
{
	struct profile_opts o = {
		.n_cpus = s->n_cpus, .clock = s->clock, .first_id = MSG_PROFILE_ID, .log = s->log
	};
	uint64_t hz = 0;

	for (size_t i = 0; i < s->req.protos.n; i++)
		if (!strncmp(s->req.protos.v[i], MSG_PROFILE, strlen(MSG_PROFILE)) &&
		    parse_u64(s->req.protos.v[i] + strlen(MSG_PROFILE), &hz))
			hz = 0;
	o.hz = hz < UINT32_MAX ? (unsigned int)hz : 0;
	s->n_streams = s->n_cpus;
	if (!o.hz)
		return;
	if (!allow_samples(&s->agent->allow)) {
		log_warn(s->log,
			 "--profile is refused: --allow " PROFILE_SYSTEM ":" PROFILE_SAMPLE " would do");
		return;
	}
	if (s->n_cpus > MSG_CPUS_MAX / 2 || profile_open(&s->profile, &o)) {
		log_warn(s->log, "no samples are taken");
		return;
	}
	s->n_streams = 2 * s->n_cpus;
}

static int serving_setup(struct serving *s)
{
	struct instance_opts o = { .plan = &s->plan, .log = s->log };
	struct page_layout layout = { 0 };
	char path[INSTANCE_PATH], *kb = NULL;
	uint64_t n = 0;
	int ret = instance_make_events(s->undo, s->buffer, s->log)
			  ?: instance_make_region(s->undo, &s->plan, s->log)
			  ?: instance_open(&s->inst, s->undo, s->buffer, &o);

	if (ret)
		return ret;
	/* a boot trace's buffer keeps its clock and its size; the request's events come on top */
	if (s->boot)
		log_info(s->log, "the buffer holds a boot trace: it is not cleared");
	ret = s->boot ? instance_join(s->inst) : instance_setup(s->inst);
	if (!ret && !s->boot && s->plan.pids.n)
		ret = instance_set_pids(s->inst, &s->plan.pids, 0);
	ret = ret ?: undo_read(s->undo, instance_file(s->inst, path, "trace_clock"), &s->clock);
	if (ret)
		return ret;
	/* the instance's own sub-buffer size, where the kernel has one; else header_page's */
	if (!undo_read(s->undo, instance_file(s->inst, path, "buffer_subbuf_size_kb"), &kb) &&
	    !parse_u64(kb, &n) && n && n <= 1024)
		s->page_size = (uint32_t)n * 1024;
	else
		ret = page_layout_read(undo_dirfd(s->undo), "events/header_page", &layout);
	free(kb);
	if (!ret && !s->page_size)
		s->page_size = layout.size;
	ret = ret ?: tracefs_cpus(undo_dirfd(s->undo), instance_file(s->inst, path, "per_cpu"), &s->n_cpus);
	if (ret)
		return ret;
	if (s->n_cpus > MSG_CPUS_MAX)
		s->n_cpus = MSG_CPUS_MAX;
	return s->n_cpus ? 0 : -ENODEV;
}

/*
 * From the request to a buffer that is ready to start. On failure *why (may stay NULL) holds the
 * reason for the recorder; serving_put_back() undoes the changes.
 */
static int serving_prepare(struct serving *s, char **why)
{
	struct agent *a = s->agent;
	size_t mark = a->boot.early ? undo_mark(a->boot.early) : 0;
	const char *booted; /* as boot_holds() has the buffer */
	int unwatched, ret = request_parse(&s->plan, &s->req.args, s->log, why);

	if (ret)
		return ret;
	s->buffer = request_buffer(&s->plan);
	if (!s->buffer) {
		*why = strdup("only one buffer of a guest can be recorded");
		return -EINVAL;
	}
	for (size_t i = 0; i < s->buffer->n_events && !a->probes; i++) {
		const struct event_plan *e = &s->buffer->events[i];

		if (!e->define || e->optional) /* a preset's are not meant */
			continue;
		*why = strdup("a probe reads any memory: only an agent with --probes makes it");
		return -EACCES;
	}
	if (!allow_trigger(&a->allow, &s->plan.start_on) || !allow_trigger(&a->allow, &s->plan.stop_on)) {
		*why = strdup("--start-on, --stop-on: this event is not allowed here");
		return -EACCES;
	}
	booted = *a->own ? "" : s->buffer->name;
	s->boot = boot_holds(a, booted);
	/*
	 * --allow: a buffer that only the agent writes to has nothing from before the request (but what
	 * --early names), no mark and no trace_printk. The recorder sees no name of it.
	 */
	ret = *a->own ? str_take(&s->buffer->name, strdup(basename(a->own))) : 0;
	ret = ret ?: serving_open_undo(s);
	ret = ret ?: allow_apply(&a->allow, undo_dirfd(s->undo), s->buffer, s->log, why) ?: serving_setup(s);
	if (ret)
		goto out;
	unwatched = s->plan.start_on.event ? watch_open(&s->watch, s->undo, &s->plan, s->clock) : 0;
	if (unwatched)
		log_warn(s->log, "the pauses between regions will not be reported: %s", strerror(-unwatched));
	serving_open_profile(s);
out:
	if (!ret && s->boot) {
		boot_take(a, booted);
	} else if (s->undo && s->undo == a->boot.early) { /* of --early, for the next request */
		instance_free(s->inst);
		s->inst = NULL;
		undo_to(s->undo, mark);
		s->undo = NULL;
	}
	if (ret && !*why)
		*why = str_printf("cannot set up tracing: %s (see the agent's log)", strerror(-ret));
	return ret;
}

/* Number of unexpected messages that are answered before the peer is dropped. */
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

static int serving_open_ports(struct serving *s)
{
	struct transport_addr local;
	struct ports *p;
	int ret = transport_local(s->fd, &local);

	ret = ret ?: ports_open(&p, &local, &s->peer, s->n_streams + 1);
	if (ret)
		return log_fail(s->log, ret, "cannot open the ports for the data: %s", strerror(-ret));
	atomic_store(&s->ports, p);
	s->proto = sync_protocol(&s->req.protos);
	ret = *s->proto ? sync_start(&s->sync, s) : 0;
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

static int send_meta(struct serving *s)
{
	int fd = meta_make(s), ret = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	/* vsock wakes the other side up for each send, which takes longer than the send itself */
	while (!ret && n > 0) {
		struct msg_wait w = serving_wait(s);
		uint8_t bytes[MSG_DATA_MAX];
		struct buf b = { 0 };

		while (b.len < SEND_AT_ONCE && (n = read_all(fd, bytes, sizeof(bytes))) > 0)
			msg_add(&b, MSG_SEND_DATA, bytes, (size_t)n);
		if (!n)
			msg_add(&b, MSG_FIN_DATA, NULL, 0);
		ret = n < 0 ? (int)n : msg_send_buf(s->fd, &b, &w);
		buf_release(&b);
	}
	close(fd);
	return ret;
}

/*
 * Once the recorder has connected to all CPUs, which it does to all of its guests
 * at a time: so they begin together, however long each took to be set up.
 */
static int start_tracing(struct serving *s)
{
	int clock = clock_marker_system(s->clock);

	if (clock >= 0 && !s->boot)
		s->sent.started = clock_now(clock);
	return s->profile && profile_switch(s->profile, true) ? -EIO : instance_start(s->inst);
}

/* 1: the recorder ends the recording; 0: continue; else an error. */
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
	eventfd_t connected = 0, more;
	unsigned int stray = 0;

	for (;;) {
		int ret = 0;

		if (poll(p, 4, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			return -ECANCELED;
		if (p[3].revents && !eventfd_read(s->ready_fd, &more)) {
			connected += more;
			ret = connected < s->n_streams ? 0 : start_tracing(s);
		}
		if (!ret && p[0].revents)
			ret = take_message(s, &stray);
		if (ret)
			return ret < 0 ? ret : 0;
		if (p[2].revents)
			return -EPIPE;
	}
}

static int serving_record(struct serving *s)
{
	int ret = streams_start(&s->streams, s), ended;
	struct pauses p = { 0 };
	bool whole = true;

	ret = ret ?: trace_until_close(s);
	instance_stop(s->inst);
	if (*s->watch.path) {
		watch_read(&s->watch, s->undo, &p, &whole);
		if (!whole)
			log_warn(s->log, "when tracing was off between regions is not known of all of them");
		if (p.n)
			pauses_encode(&p, s->clock, &s->pauses);
		pauses_release(&p);
	}
	if (s->profile)
		profile_switch(s->profile, false);
	if (!s->streams)
		return ret;
	/* the rest is sent only to a recorder that still listens */
	if (ret)
		serving_cancel(s);
	ended = streams_finish(s->streams);
	streams_account(s->streams, &s->sent); /* without memory for it the recorder uses the pages */
	return ended && (!ret || ret == -EPIPE) ? ended : ret;
}

static void *serving_thread(void *arg)
{
	struct serving *s = arg;
	char *why = NULL;
	int ret = serving_prepare(s, &why);

	if (ret) {
		/* first, so that who tries again at once is served */
		serving_put_back(s);
		atomic_store(&s->ending, true);
		agent_refuse(s->agent, s->fd, why ? why : strerror(-ret), serving_last_wait(s));
		free(why);
	} else {
		ret = serving_open_ports(s) ?: serving_answer(s) ?: send_meta(s) ?: serving_record(s);
		if (ret) {
			atomic_store(&s->ending, true);
			serving_cancel(s);
		}
	}
	sync_free(s->sync);
	streams_free(s->streams);
	profile_close(s->profile);
	serving_put_back(s);
	atomic_store(&s->ending, true);
	if (!ret) {
		struct msg_wait w = serving_last_wait(s);
		struct buf b = { 0 };

		/* Before CLOSE_RESP, where a recorder that does not know them lets them pass. */
		for (size_t at = 0; at < s->pauses.len && !s->pauses.bad; at += MSG_DATA_MAX) {
			size_t left = s->pauses.len - at;

			msg_add(&b, MSG_SEND_DATA, s->pauses.data + at,
				left < MSG_DATA_MAX ? left : MSG_DATA_MAX);
		}
		msg_add_close_resp(&b, &s->sent);
		ret = msg_send_buf(s->fd, &b, &w);
	}
	if (ret)
		log_warn(s->log, "the recording ended early: %s",
			 ret == -ENODATA ? "the recorder went away" : strerror(-ret));
	else
		log_info(s->log, "the recording is complete");
	fd_close(&s->fd);
	eventfd_write(s->done_fd, 1);
	return NULL;
}

static void serving_free(struct serving *s)
{
	/* here, not in the thread: serve.c offers them connections */
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
	ret = ret ?: thread_start(&s->thread, serving_thread, s);
	if (!ret) {
		*out = s;
		return 0;
	}
	close(fd);
	serving_free(s);
	return ret;
}

void serving_cancel(struct serving *s)
{
	eventfd_write(s->cancel_fd, 1);
}

void serving_join(struct serving *s)
{
	pthread_join(s->thread, NULL);
	serving_free(s);
}
