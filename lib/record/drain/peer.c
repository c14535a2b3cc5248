// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest's agent as a source for the recorder: its start, its pages, its stop and its report. */
#include "record/drain/peer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "record/drain/splice.h"

#define PIECE	   (1u << 20) /* bytes, where the stream is copied */
#define PAUSES_MAX (16u << 20)
#define LAST_MS	   1000 /* at least, for what is there already */
/* Limits of the bytes after CLOSE: the guest's buffers, and what is recorded and under way until the agent
 * has it. */
#define BUFFER_KB   1408 /* of a CPU, where nothing else is asked for: the kernel's TRACE_BUF_SIZE_DEFAULT */
#define REST_MARGIN (64u << 20) /* bytes */

static struct peer *peer_of(struct source *s)
{
	return (struct peer *)s; /* its first member */
}

/* Connects to the data of its CPUs. */
static int peer_start(struct source *s)
{
	struct peer *p = peer_of(s);
	int ret = 0;

	peer_step(p);
	for (unsigned int i = 0; i < p->n_data && !ret; i++) {
		struct transport_addr a = p->o.addr;
		struct msg_wait w = peer_wait(p);
		char step[48];

		a.port = p->ports[i];
		p->data[i] = transport_connect(&a, &w);
		snprintf(step, sizeof(step), "connecting to the data of its CPU %u", i % p->source.n_cpus);
		ret = p->data[i] < 0 ? peer_failed(p, step, p->data[i]) : 0;
	}
	p->started = !ret;
	/* its threads may have lost it already */
	if (ret)
		p->lost = ret;
	else
		eventfd_write(p->start_fd, 1);
	return ret;
}

static int peer_stop(struct source *s)
{
	struct peer *p = peer_of(s);
	const char *size = peer_option(p->o.args, "-b");
	struct msg_wait w = peer_step(p);
	struct buf out = { 0 };
	uint64_t kb;
	int ret;

	if (!size || parse_u64(size, &kb) || kb > UINT32_MAX)
		kb = BUFFER_KB;
	p->rest_max = REST_MARGIN + p->n_data * kb * 1024;
	atomic_store(&p->heard, msg_now());
	atomic_store(&p->closing, true);
	/* its loss was logged; or nothing was begun, and the agent sees the connection end */
	if (p->lost || !p->started) {
		p->step_end = msg_now() + LAST_MS;
		return 0;
	}
	w.stop_fd = -1;
	msg_add(&out, MSG_CLOSE, NULL, 0);
	ret = msg_send_buf(p->control, &out, &w);
	buf_release(&out);
	if (!ret)
		return 0;
	/* an agent that did not get CLOSE sends on: only what has arrived is taken */
	p->step_end = msg_now() + LAST_MS;
	p->lost = ret;
	return peer_failed(p, "telling it to stop", ret);
}

/*
 * Until the agent ends the stream. After CLOSE (which all guests get before the first is waited for) it may
 * take its time, but silence of all CPUs ends it, and so do more pages than its buffers can hold.
 */
static int take_pages(struct peer *p, struct splice *m, const struct drain *d)
{
	for (;;) {
		struct pollfd pfd = { .fd = m->in, .events = POLLIN };
		ssize_t n = splice_move(m);
		if (!n && atomic_load(&p->closing))
			return 0;
		if (!n) {
			/*
			 * An end before CLOSE is a loss. But a CPU that was never online has no buffer in the
			 * kernel (ring_buffer_wait: -ENODEV), and trace-cmd's agent then ends its stream at
			 * once.
			 */
			unsigned int unused =
				d->stats->bytes ? p->n_data : atomic_fetch_add(&p->n_unused, 1) + 1;

			if (unused == 1 && p->n_data > 1) /* there may be hundreds */
				log_info(p->o.log,
					 "guest %s: its agent has nothing of some of its %u CPUs (offline?)",
					 p->o.name, p->source.n_cpus);
			return unused < p->n_data ? 0 : -ECONNRESET;
		}
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return (int)n;
		if (atomic_load(&p->closing)) {
			if (n > 0) {
				atomic_store(&p->heard, msg_now());
				if (atomic_fetch_add(&p->rest, (uint64_t)n) + (uint64_t)n > p->rest_max)
					return -EOVERFLOW;
			}
			if (msg_now() > p->step_end)
				return -ETIME;
			if (msg_now() > atomic_load(&p->heard) + p->o.timeout_ms)
				return -ETIMEDOUT;
		}
		if (n <= 0)
			poll(&pfd, 1, 100);
	}
}

/* i: of data */
static int peer_drain_data(struct peer *p, unsigned int i, struct drain *d)
{
	struct pollfd pfd[2] = { { .fd = p->start_fd, .events = POLLIN },
				 { .fd = d->stop_fd, .events = POLLIN } };
	char step[48];
	struct splice m;
	int ret = 0;

	/* until start() is through, or the end comes before */
	while (!ret && poll(pfd, 2, -1) < 0 && !atomic_load(d->stopping))
		ret = errno == EINTR ? 0 : -errno;
	if (!ret && !pfd[0].revents)
		return 0;
	if (!ret) {
		ret = splice_open(&m, p->data[i], PIECE, false, d) ?: take_pages(p, &m, d);
		splice_close(&m);
	}
	if (ret == -ENOSPC || !ret)
		return ret;
	/* the guest died, was paused or lies: what it sent is kept, the others go on */
	if (!atomic_exchange(&p->lost, ret)) {
		snprintf(step, sizeof(step), "the data of its CPU %u", i % p->source.n_cpus);
		peer_failed(p, step, ret);
	}
	return 0;
}

static int peer_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	return peer_drain_data(peer_of(s), cpu, d);
}

static const struct source_ops peer_ops = {
	.kind = "guest",
	.start = peer_start,
	.stop = peer_stop,
	.drain = peer_drain,
};

static int peer_profile_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct peer *p = ((struct peer_profile *)s)->peer; /* s is its first member */

	return peer_drain_data(p, p->source.n_cpus + cpu, d);
}

static const struct source_ops peer_profile_ops = {
	.kind = "guest",
	.drain = peer_profile_drain,
};

int peer_open(struct peer **out, const struct peer_opts *o)
{
	struct peer *p = calloc(1, sizeof(*p));
	const char *clock = peer_option(o->args, "-C") ?: o->clock;
	int ret;

	if (!p)
		return -ENOMEM;
	p->o = *o;
	p->control = -1;
	p->source = (struct source){ .ops = &peer_ops, .name = "", .path = ".", .clock = clock ?: "local" };
	p->profile.peer = p;
	p->profile.source = (struct source){
		.ops = &peer_profile_ops, .name = SOURCE_PROFILE, .path = ".", .clock = p->source.clock
	};
	p->start_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = p->start_fd < 0 ? -errno : peer_converse(p);
	if (ret)
		peer_free(p);
	else
		*out = p;
	return ret;
}

void peer_free(struct peer *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->n_data; i++)
		fd_close(&p->data[i]);
	fd_close(&p->control);
	fd_close(&p->start_fd);
	msg_sent_release(&p->sent);
	buf_release(&p->pauses);
	buf_release(&p->metadata);
	peer_clock_free(p->clock_link);
	free(p->data);
	free(p->ports);
	free(p);
}

/* Only our agent has the counter's protocol; an agent without it may be trace-cmd's. */
bool peer_begins_itself(const struct peer *p)
{
	return !p->clock_port;
}

void peer_counter_end(struct peer *p)
{
	if (p->clock_link)
		peer_clock_end(p->clock_link);
}

const struct counter_log *peer_counter(const struct peer *p)
{
	return p->clock_link ? peer_clock_log(p->clock_link) : NULL;
}

struct counter_log *peer_counter_growing(const struct peer *p)
{
	return p->clock_link ? &p->clock_link->log : NULL;
}

/* CLOSE_RESP, after what may come before it. 1: it does not report what it sent. */
static int take_sent(struct peer *p)
{
	struct msg_wait w = peer_wait(p);
	struct msg m = { .cmd = MSG_CLOSE };
	int ret;

	w.stop_fd = -1;
	if (w.deadline < msg_now() + LAST_MS)
		w.deadline = msg_now() + LAST_MS;
	while (m.cmd != MSG_CLOSE_RESP) {
		ret = msg_now() > w.deadline ? -ETIME : msg_recv(p->control, &p->reader, &w, &m);
		if (ret)
			return ret;
		if (m.cmd == MSG_SEND_DATA && p->pauses.len < PAUSES_MAX)
			buf_add(&p->pauses, m.data, m.data_len);
	}
	ret = msg_get_close_resp(&m, &p->sent);
	if (ret == -ENODATA)
		return 1;
	return ret || p->sent.n_cpus == p->n_data ? ret : -EBADMSG;
}

const struct msg_sent *peer_finish(struct peer *p)
{
	char text[160];
	int ret;

	if (p->lost || !p->started)
		return NULL;
	ret = take_sent(p);
	if (ret < 0)
		log_warn(p->o.log, "guest %s: its agent does not confirm its end: %s", p->o.name,
			 peer_reason(p, ret, text));
	return ret ? NULL : &p->sent;
}
