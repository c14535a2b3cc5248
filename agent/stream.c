// SPDX-License-Identifier: GPL-2.0-only
/* Carries the pages of each CPU to the recorder, over the port that the recorder connects to for it. */
#include "agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

/* ---- ports: one for the data of each CPU, and the connections that come to them ----------------- */

struct port {
	uint32_t number;
	int wake;  /* readable: a connection is there */
	int given; /* UNIX: the connection, or -1 */
};

struct ports {
	struct transport_addr peer;
	pthread_mutex_t lock; /* of given */
	size_t n;
	struct port v[];
};

int ports_open(struct ports **out, const struct transport_addr *local, const struct transport_addr *peer,
	       size_t n)
{
	struct ports *p = calloc(1, sizeof(*p) + n * sizeof(p->v[0]));
	uint32_t base = 0;
	int ret = 0;

	if (!p)
		return -ENOMEM;
	p->peer = *peer;
	pthread_mutex_init(&p->lock, NULL);
	/* so that a late connection to an earlier session finds nothing */
	if (getrandom(&base, sizeof(base), 0) != sizeof(base))
		base = (uint32_t)msg_now();
	base = 0x10000 + (base & 0x3fffff00);
	for (; p->n < n && !ret; p->n += !ret) {
		struct port *port = &p->v[p->n];
		struct transport_addr a = *local;

		port->given = -1;
		port->number = base + (uint32_t)p->n;
		a.port = TRANSPORT_PORT_ANY;
		if (a.kind == TRANSPORT_VSOCK)
			a.cid = TRANSPORT_CID_ANY;
		port->wake = a.kind == TRANSPORT_UNIX ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
						      : transport_listen(&a, 4, &port->number);
		if (port->wake < 0)
			ret = a.kind == TRANSPORT_UNIX ? -errno : port->wake;
	}
	if (ret)
		ports_free(p);
	else
		*out = p;
	return ret;
}

void ports_free(struct ports *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		fd_close(&p->v[i].wake);
		fd_close(&p->v[i].given);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

uint32_t ports_number(const struct ports *p, size_t i)
{
	return p->v[i].number;
}

int ports_accept(struct ports *p, size_t i, const struct msg_wait *w)
{
	struct port *port = &p->v[i];
	struct transport_addr peer;
	int ret;

	for (;;) {
		ret = msg_poll(port->wake, POLLIN, w);
		if (ret)
			return ret;
		if (p->peer.kind == TRANSPORT_UNIX) {
			int fd;

			pthread_mutex_lock(&p->lock);
			fd = port->given;
			port->given = -1;
			port->number = 0;
			pthread_mutex_unlock(&p->lock);
			ret = fd < 0 ? -EAGAIN : fd;
			break;
		}
		ret = transport_accept(port->wake, &peer);
		if (ret >= 0 && transport_same_host(&peer, &p->peer))
			break;
		if (ret >= 0)
			close(ret);
		else if (ret != -EAGAIN && ret != -ECONNABORTED)
			return ret;
	}
	fd_close(&port->wake);
	return ret;
}

bool ports_offer(struct ports *p, uint32_t number, int fd)
{
	bool taken = false;

	if (!p)
		return false;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n && number && !taken; i++) {
		if (p->v[i].number != number || p->v[i].given >= 0)
			continue;
		p->v[i].given = fd;
		taken = eventfd_write(p->v[i].wake, 1) == 0;
		if (!taken)
			p->v[i].given = -1;
	}
	pthread_mutex_unlock(&p->lock);
	return taken;
}

/* A reader of trace_pipe_raw is not woken below the buffer's wake-up mark. */
#define WAIT_MS 100

struct stream {
	struct streams *all;
	pthread_t thread;
	uint32_t cpu; /* from n_cpus on: of samples */
	int sock, raw, pipe[2];
	uint8_t *page;
	bool no_splice_in;  /* sub-buffers that no pipe takes */
	bool no_splice_out; /* a socket that no pipe empties into */
	uint64_t bytes;
	struct drain_stats samples; /* of a stream of samples */
	int ret;
};

struct streams {
	const struct serving *serving;
	int finish_fd; /* readable: tracing is off */
	atomic_bool finishing;
	uint32_t n; /* those that have a thread */
	struct stream v[];
};

/* A page_writer's callback, too. */
static int stream_copy(void *stream, const void *data, size_t len)
{
	struct stream *s = stream;
	struct msg_wait w = serving_wait(s->all->serving);
	int ret = msg_send(s->sock, data, len, &w);

	if (!ret)
		s->bytes += len;
	return ret;
}

/* Sends the pipe's content, by copying if need be. Bytes, or -errno. */
static ssize_t stream_empty(struct stream *s, size_t left)
{
	struct msg_wait w = serving_wait(s->all->serving);
	ssize_t n;
	int ret;

	while (!s->no_splice_out) {
		n = splice(s->pipe[0], NULL, s->sock, NULL, left < MSG_SEND_MAX ? left : MSG_SEND_MAX,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n > 0) {
			s->bytes += (size_t)n;
			return n;
		}
		s->no_splice_out = n < 0 && (errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS);
		if (s->no_splice_out || (n < 0 && errno == EINTR))
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		ret = msg_poll(s->sock, POLLOUT, &w);
		if (ret)
			return ret;
	}
	n = read_all(s->pipe[0], s->page,
		     left < s->all->serving->page_size ? left : s->all->serving->page_size);
	if (n <= 0)
		return n ? n : -EIO;
	ret = stream_copy(s, s->page, (size_t)n);
	return ret ? ret : n;
}

/* Whole sub-buffers. Bytes moved, 0: none is full, or -errno. */
static ssize_t stream_full(struct stream *s)
{
	ssize_t n, left, done;

	if (s->no_splice_in)
		return 0;
	n = splice(s->raw, NULL, s->pipe[1], NULL, 1u << 16, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	s->no_splice_in = n < 0 && errno == EINVAL;
	if (n < 0)
		return s->no_splice_in || errno == EAGAIN || errno == EINTR || errno == ENODEV ? 0 : -errno;
	for (left = n; left; left -= done) {
		done = stream_empty(s, (size_t)left);
		if (done < 0)
			return done;
	}
	return n;
}

/* One sub-buffer by read(2), which also gives those that are filled in part. */
static ssize_t stream_any(struct stream *s)
{
	size_t size = s->all->serving->page_size;
	ssize_t n = read_all(s->raw, s->page, size);
	int ret;

	if (n == -EAGAIN || n == -ENODEV)
		return 0;
	if (n <= 0)
		return n;
	memset(s->page + n, 0, size - (size_t)n);
	ret = stream_copy(s, s->page, size);
	return ret ? ret : n;
}

/* Until there may be data, tracing is off, or the peer or the session are gone. */
static int stream_wait_data(struct stream *s)
{
	uint64_t sleep_us = s->all->serving->plan.sleep_us;
	struct pollfd p[4] = {
		{ .fd = s->all->finish_fd, .events = POLLIN },
		{ .fd = s->all->serving->cancel_fd, .events = POLLIN },
		{ .fd = s->sock },
		/* copying must not take every page before it is full */
		{ .fd = sleep_us || s->no_splice_in ? -1 : s->raw, .events = POLLIN },
	};
	int ms = sleep_us ? (int)(sleep_us / 1000) + 1 : WAIT_MS;

	if (poll(p, 4, ms) < 0 && errno != EINTR)
		return -errno;
	if (p[1].revents)
		return -ECANCELED;
	if (p[2].revents & (POLLERR | POLLHUP))
		return -EPIPE;
	/* an error condition on the buffer, or data that splice does not take, would spin */
	if (p[3].revents) {
		p[3].fd = -1;
		poll(p, 2, p[3].revents & POLLIN ? 10 : WAIT_MS);
	}
	return 0;
}

/* The ring is the profile's; it is waited for as a buffer is. */
static int stream_samples(struct stream *s)
{
	const struct serving *serving = s->all->serving;
	unsigned int cpu = s->cpu - serving->n_cpus;
	struct page_writer w;
	bool last = false;
	int ret = page_writer_init(&w, serving->page_size, stream_copy, s);

	if (ret)
		return ret;
	eventfd_write(serving->ready_fd, 1);
	s->raw = profile_fd(serving->profile, cpu);
	while (!ret && !last && s->raw >= 0) {
		last = atomic_load(&s->all->finishing);
		ret = profile_read(serving->profile, cpu, &w, &s->samples);
		if (!ret && !last)
			ret = stream_wait_data(s);
	}
	s->raw = -1;
	ret = ret ?: page_flush(&w, true);
	page_writer_release(&w);
	return ret;
}

static int stream_carry(struct stream *s)
{
	const struct serving *serving = s->all->serving;
	struct msg_wait w = serving_wait(serving);
	char path[INSTANCE_PATH];
	ssize_t n = 0;
	int fd;

	s->sock = ports_accept(serving->ports, s->cpu, &w);
	if (s->sock < 0)
		return s->sock;
	if (s->cpu >= serving->n_cpus)
		return stream_samples(s);
	s->page = malloc(serving->page_size);
	if (!s->page)
		return -ENOMEM;
	if (pipe2(s->pipe, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	fd = openat(undo_dirfd(serving->undo),
		    instance_file(serving->inst, path, "per_cpu/cpu%u/trace_pipe_raw", s->cpu),
		    O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	s->raw = fd < 0 ? -errno : fd;
	/* a CPU that is offline has no events */
	if (s->raw < 0 && s->raw != -ENODEV && s->raw != -ENXIO)
		return s->raw;
	eventfd_write(serving->ready_fd, 1);
	s->no_splice_in = serving->page_size != (uint32_t)sysconf(_SC_PAGESIZE);
	while (s->raw >= 0 && n >= 0 && !atomic_load(&s->all->finishing)) {
		n = s->no_splice_in ? stream_any(s) : stream_full(s);
		if (n <= 0 || s->no_splice_in)
			n = n < 0 ? n : stream_wait_data(s);
	}
	while (s->raw >= 0 && n >= 0 && (n = stream_full(s)) > 0)
		;
	while (s->raw >= 0 && n >= 0 && (n = stream_any(s)) > 0)
		;
	return (int)n;
}

static void *stream_thread(void *arg)
{
	struct stream *s = arg;

	s->ret = stream_carry(s);
	/* the buffer first: while it is read, the kernel changes no tracer */
	fd_close(&s->raw);
	fd_close(&s->pipe[0]);
	fd_close(&s->pipe[1]);
	if (s->sock >= 0)
		shutdown(s->sock, SHUT_WR);
	fd_close(&s->sock);
	free(s->page);
	s->page = NULL;
	if (s->ret)
		eventfd_write(s->all->serving->failed_fd, 1);
	return NULL;
}

int streams_start(struct streams **out, const struct serving *serving)
{
	struct streams *s = calloc(1, sizeof(*s) + serving->n_streams * sizeof(s->v[0]));
	int ret;

	if (!s)
		return -ENOMEM;
	s->serving = serving;
	s->finish_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = s->finish_fd < 0 ? -errno : 0;
	for (; s->n < serving->n_streams && !ret; s->n += !ret) {
		struct stream *one = &s->v[s->n];

		*one = (struct stream){ .all = s, .cpu = s->n, .sock = -1, .raw = -1, .pipe = { -1, -1 } };
		ret = thread_start(&one->thread, stream_thread, one);
	}
	*out = s;
	return ret;
}

int streams_finish(struct streams *s)
{
	int ret = 0;

	atomic_store(&s->finishing, true);
	eventfd_write(s->finish_fd, 1);
	for (uint32_t i = 0; i < s->n; i++) {
		pthread_join(s->v[i].thread, NULL);
		if (!s->v[i].ret)
			continue;
		log_debug(s->serving->log, "cpu %u: %s", i, strerror(-s->v[i].ret));
		ret = ret ?: s->v[i].ret;
	}
	return ret;
}

int streams_account(const struct streams *s, struct msg_sent *sent)
{
	const struct serving *serving = s->serving;
	uint64_t bytes = 0, lost = 0;
	bool spliced = true;

	sent->cpus = calloc(s->n, sizeof(*sent->cpus));
	if (!sent->cpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		struct msg_sent_cpu *one = &sent->cpus[i];
		bool samples = i >= serving->n_cpus;

		one->bytes = s->v[i].bytes;
		/* 0 if the kernel has no figure: then the recorder uses the pages */
		if (samples)
			one->lost = s->v[i].samples.lost;
		else
			instance_lost(serving->inst, i, &one->lost);
		log_debug(serving->log, "cpu %u%s: sent %" PRIu64 " bytes, %" PRIu64 " events lost",
			  i % serving->n_cpus, samples ? ", samples" : "", one->bytes, one->lost);
		bytes += one->bytes;
		lost += one->lost;
		spliced &= !s->v[i].no_splice_in && !s->v[i].no_splice_out;
	}
	sent->n_cpus = s->n;
	log_info(serving->log, "sent %" PRIu64 " bytes%s, %" PRIu64 " events lost", bytes,
		 spliced ? " by splice" : "", lost);
	return 0;
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	fd_close(&s->finish_fd);
	free(s);
}
