// SPDX-License-Identifier: LGPL-2.1-or-later
#include "record/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/collect.h"
#include "dat/page.h"
#include "record/peer-clock.h"
#include "record/peer-meta.h"
#include "record/spool-formats.h"

#define PIPE_WANTED  (1u << 20)
#define METADATA_MAX (256u << 20)
#define LAST_MS	     1000 /* at least, for what is there already */

struct peer {
	struct source source;
	struct peer_opts o;
	char *name, *clock;
	int control;
	int *data;	     /* one per vCPU, -1 until start() */
	uint32_t *ports;     /* theirs */
	uint32_t clock_port; /* of its counter; 0: the agent has none for us */
	int start_fd;	     /* readable once start() is through */
	bool started;
	uint64_t trace_id;
	uint64_t ready;		       /* CLOCK_BOOTTIME, ns */
	atomic_bool closing;	       /* CLOSE was sent: an end of the stream is no loss */
	int64_t closed;		       /* msg_now() then */
	_Atomic unsigned int n_unused; /* CPUs whose data ended before it began */
	_Atomic int lost;
	struct peer_clock *clock_link; /* NULL: it is not asked for its counter */
	struct msg_reader reader;
	struct buf metadata;
	bool metadata_whole;
	int64_t metadata_end; /* msg_now() by which it must be there */
	struct msg_sent told; /* by the agent, at its end */
};

static struct peer *peer_of(struct source *s)
{
	return (struct peer *)s; /* its first member */
}

static struct msg_wait wait_for(const struct peer *p)
{
	return (struct msg_wait){ .deadline = msg_now() + p->o.timeout_ms, .stop_fd = p->o.stop_fd };
}

/* The next answer of a step that has to end at `end`. */
static struct msg_wait wait_until(const struct peer *p, int64_t end)
{
	struct msg_wait w = wait_for(p);

	w.deadline = w.deadline < end ? w.deadline : end;
	return w;
}

static int64_t patience(const struct peer *p)
{
	return msg_now() + (int64_t)p->o.timeout_ms * PEER_PATIENCE;
}

static const char *reason(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "no answer in time";
	case -ENODATA:
	case -ECONNRESET:
	case -EPIPE:
		return "the agent closed the connection";
	case -EBADMSG:
		return "the answer makes no sense";
	}
	return errno_text(error);
}

/* One line that says which guest, which step and why. */
static int failed(const struct peer *p, const char *step, int error)
{
	char addr[128];

	log_err(p->o.log, "guest %s (%s): %s: %s", p->name, transport_text(&p->o.addr, addr, sizeof(addr)),
		step, reason(error));
	return error;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* The clock that the args name, the last one counting; NULL: they leave it to us. */
static const char *own_clock(const struct strlist *args)
{
	const char *clock = NULL;

	for (size_t i = 0; i + 1 < args->n; i++)
		if (!strcmp(args->v[i], "-C"))
			clock = args->v[i + 1];
	return clock;
}

static int fill_request(const struct peer *p, struct msg_trace_req *req)
{
	int ret = 0;

	if (!own_clock(p->o.args) && p->o.clock)
		ret = strlist_add(&req->args, "-C") ?: strlist_add(&req->args, p->o.clock);
	for (size_t i = 0; i < p->o.args->n && !ret; i++)
		ret = strlist_add(&req->args, p->o.args->v[i]);
	req->trace_id = p->o.trace_id;
	if (!ret && p->o.counter)
		ret = strlist_add(&req->protos, MSG_SYNC_COUNTER);
	return ret;
}

static int ask(struct peer *p)
{
	struct msg_trace_req req = { 0 };
	struct msg_wait w = wait_for(p);
	struct buf out = { 0 };
	int ret = fill_request(p, &req);

	if (!ret)
		msg_add_trace_req(&out, &req);
	msg_trace_req_release(&req);
	if (out.bad)
		ret = -E2BIG;
	if (!ret)
		ret = msg_send_buf(p->control, &out, &w);
	buf_release(&out);
	return ret ? failed(p, "sending the request", ret) : 0;
}

static int refused(const struct peer *p, const struct msg *m)
{
	char *reason = msg_get_reason(m);

	log_err(p->o.log, "guest %s: its agent refuses the request%s%s", p->name, reason ? ": " : "",
		reason ? reason : "");
	free(reason);
	return -ENOTSUP;
}

static int unexpected(const struct peer *p, const char *step, const struct msg *m)
{
	char text[96];

	snprintf(text, sizeof(text), "%s: %s", step, msg_name(m->cmd));
	return failed(p, text, -EBADMSG);
}

static int answer(struct peer *p, struct msg_trace_resp *resp)
{
	struct msg_wait w = wait_for(p);
	struct msg m;
	int ret = msg_recv(p->control, &p->reader, &w, &m);

	if (ret)
		return failed(p, "waiting for the answer to the request", ret);
	if (m.cmd == MSG_NOT_SUPP)
		return refused(p, &m);
	if (m.cmd != MSG_TRACE_RESP)
		return unexpected(p, "the answer to the request", &m);
	ret = msg_get_trace_resp(&m, resp);
	if (ret)
		return failed(p, "the answer to the request", ret);
	if (resp->page_size < 4096 || resp->page_size > (1u << 20) ||
	    (resp->page_size & (resp->page_size - 1)) || !resp->cpus) {
		msg_trace_resp_release(resp);
		return failed(p, "the answer to the request", -EBADMSG);
	}
	return 0;
}

/* One of SEND_DATA ... FIN_DATA: headers and options of a trace.dat. */
static int take_metadata(struct peer *p)
{
	struct msg_wait w = wait_until(p, p->metadata_end);
	struct msg m;
	/* one that is there already is not asked for its time */
	int ret = msg_now() > p->metadata_end ? -ETIMEDOUT : msg_recv(p->control, &p->reader, &w, &m);

	if (ret)
		return failed(p, "waiting for its event formats", ret);
	if (m.cmd == MSG_FIN_DATA) {
		p->metadata_whole = true;
		p->ready = boot_ns();
		return buf_status(&p->metadata);
	}
	if (m.cmd != MSG_SEND_DATA)
		return unexpected(p, "waiting for its event formats", &m);
	if (m.data_len > METADATA_MAX - p->metadata.len)
		return failed(p, "its event formats", -EFBIG);
	buf_add(&p->metadata, m.data, m.data_len);
	return 0;
}

int peer_await(struct peer *p)
{
	p->metadata_end = patience(p);
	return take_metadata(p);
}

int peer_receive(struct peer *p)
{
	int ret = 0;

	while (!ret && !p->metadata_whole)
		ret = take_metadata(p);
	return ret;
}

/* Options that no agent has to give spoil the file when it is written: later is too late. */
static int check_options(const struct spool *spool)
{
	struct buf kept = { 0 };
	int ret = spool_get_text(spool, "options", &kept);
	struct cursor c = cursor_at(kept.data, kept.len);

	while (!ret && cursor_left(&c)) {
		uint16_t id = cursor_u16(&c);

		cursor_take(&c, cursor_u32(&c));
		if (c.bad || id == DAT_DONE || id == DAT_BUFFER ||
		    (id >= DAT_STRINGS && id <= DAT_BUFFER_TEXT))
			ret = -EBADMSG;
	}
	buf_release(&kept);
	return ret;
}

/* So do texts that are missing, or do not fit its pages. */
static int check_texts(const struct spool *spool, uint32_t page_size)
{
	struct page_layout layout;
	struct spool_formats formats = { 0 };
	struct buf page = { 0 }, event = { 0 };
	int ret =
		spool_get_text(spool, "header_page", &page) ?: spool_get_text(spool, "header_event", &event);

	ret = ret ?: page_layout_parse((char *)page.data, page.len, &layout);
	if (!ret && layout.data_offset >= page_size)
		ret = -EBADMSG;
	ret = ret ?: spool_formats_load(&formats, spool);
	spool_formats_release(&formats);
	buf_release(&page);
	buf_release(&event);
	return ret == -ENOENT ? -EBADMSG : ret;
}

int peer_keep(struct peer *p, struct spool *spool)
{
	int ret = peer_meta_keep(spool, &p->metadata, p->o.log) ?:
		  check_texts(spool, p->source.page_size) ?: check_options(spool);

	buf_release(&p->metadata);
	return ret ? failed(p, "its event formats", ret) : 0;
}

/* Before the metadata, as stock has it: what the guest records lies between the first answer and the last. */
void peer_counter_begin(struct peer *p)
{
	struct transport_addr a = p->o.addr;
	struct msg_wait w = wait_for(p);
	int fd, ret;

	if (!p->clock_port)
		return;
	a.port = p->clock_port;
	fd = transport_connect(&a, &w);
	ret = fd < 0 ? fd : peer_clock_start(&p->clock_link, fd, p->o.counter_interval_ms);
	if (ret)
		log_warn(p->o.log, "guest %s: its counter cannot be asked for: %s", p->name, errno_text(ret));
}

/* Its CPUs are known, their ports are for start(). */
static int take_ports(struct peer *p, struct msg_trace_resp *resp)
{
	p->data = malloc(resp->cpus * sizeof(*p->data));
	if (!p->data)
		return -ENOMEM;
	memset(p->data, -1, resp->cpus * sizeof(*p->data));
	p->ports = resp->ports;
	resp->ports = NULL;
	p->source.n_cpus = resp->cpus;
	p->source.page_size = resp->page_size;
	return 0;
}

static int converse(struct peer *p)
{
	struct msg_wait w = wait_for(p);
	struct msg_trace_resp resp;
	int ret;

	p->control = transport_connect(&p->o.addr, &w);
	if (p->control < 0)
		return failed(p, "connecting to its agent", p->control);
	ret = ask(p);
	if (!ret)
		ret = answer(p, &resp);
	if (ret)
		return ret;
	p->trace_id = resp.trace_id;
	if (!strcmp(resp.proto, MSG_SYNC_COUNTER))
		p->clock_port = resp.tsync_port;
	ret = take_ports(p, &resp);
	msg_trace_resp_release(&resp);
	return ret;
}

/* ---- a source ---------------------------------------------------------------------------------- */

static int connect_data(struct peer *p)
{
	int64_t end = patience(p);

	for (unsigned int i = 0; i < p->source.n_cpus; i++) {
		struct transport_addr a = p->o.addr;
		struct msg_wait w = wait_until(p, end);
		char step[48];

		a.port = p->ports[i];
		p->data[i] = transport_connect(&a, &w);
		if (p->data[i] < 0) {
			snprintf(step, sizeof(step), "connecting to the data of its CPU %u", i);
			return failed(p, step, p->data[i]);
		}
	}
	return 0;
}

static int start(struct source *s)
{
	struct peer *p = peer_of(s);
	int ret = connect_data(p);

	p->started = !ret;
	if (ret)
		p->lost = ret;
	else
		eventfd_write(p->start_fd, 1);
	return ret;
}

static int stop(struct source *s)
{
	struct peer *p = peer_of(s);
	struct msg_wait w = wait_for(p);
	struct buf out = { 0 };
	int ret;

	atomic_store(&p->closing, true);
	/* said already; or nothing was begun, and the end of the connection says it */
	if (p->lost || !p->started)
		return 0;
	p->closed = msg_now();
	w.stop_fd = -1;
	msg_add(&out, MSG_CLOSE, NULL, 0);
	ret = msg_send_buf(p->control, &out, &w);
	buf_release(&out);
	if (!ret)
		return 0;
	p->lost = ret;
	return failed(p, "telling it to stop", ret);
}

struct stream {
	struct peer *p;
	int fd, out;
	int pipe[2];
	bool copying;
	uint8_t *page;
	struct drain *d;
};

static int stream_open(struct stream *x, struct peer *p, unsigned int cpu, struct drain *d)
{
	*x = (struct stream){ .p = p, .fd = p->data[cpu], .out = d->out, .pipe = { -1, -1 }, .d = d };
	x->page = malloc(PIPE_WANTED);
	if (!x->page)
		return -ENOMEM;
	if (pipe2(x->pipe, O_CLOEXEC) < 0)
		return -errno;
	fcntl(x->pipe[1], F_SETPIPE_SZ, PIPE_WANTED);
	return 0;
}

static void stream_close(struct stream *x)
{
	if (x->pipe[0] >= 0)
		close(x->pipe[0]);
	if (x->pipe[1] >= 0)
		close(x->pipe[1]);
	free(x->page);
}

/* Bytes moved; 0: the end of the stream; -EAGAIN. */
static ssize_t move_copied(struct stream *x)
{
	ssize_t n = read(x->fd, x->page, PIPE_WANTED);
	int ret;

	if (n <= 0)
		return n ? -errno : 0;
	ret = write_all(x->out, x->page, (size_t)n);
	return ret ? ret : n;
}

static ssize_t move_spliced(struct stream *x)
{
	ssize_t left,
		n = splice(x->fd, NULL, x->pipe[1], NULL, PIPE_WANTED, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0 && errno == EINVAL) {
		x->copying = true;
		return move_copied(x);
	}
	if (n <= 0)
		return n ? -errno : 0;
	for (left = n; left > 0;) {
		ssize_t w = splice(x->pipe[0], NULL, x->out, NULL, (size_t)left, SPLICE_F_MOVE);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w ? -errno : -EIO;
		left -= w;
	}
	return n;
}

/*
 * An end before CLOSE is a loss. But a CPU that was never online has no buffer in
 * the kernel (ring_buffer_wait: -ENODEV), and trace-cmd's agent then ends its stream at once.
 */
static int early_end(struct stream *x)
{
	struct peer *p = x->p;
	unsigned int n = x->d->stats->bytes ? p->source.n_cpus : atomic_fetch_add(&p->n_unused, 1) + 1;

	if (n >= p->source.n_cpus)
		return -ECONNRESET;
	if (n == 1) /* there may be hundreds */
		log_info(p->o.log, "guest %s: its agent has nothing of some of its %u CPUs (offline?)",
			 p->name, p->source.n_cpus);
	return 0;
}

/*
 * Until the agent ends the stream. After CLOSE (which all guests get before the
 * first is waited for) it may take its time, but a pause or endless pages end it.
 */
static int run(struct stream *x)
{
	int64_t quiet = INT64_MAX, end = INT64_MAX;

	for (;;) {
		struct pollfd pfd = { .fd = x->fd, .events = POLLIN };
		ssize_t n = x->copying ? move_copied(x) : move_spliced(x);

		if (!n)
			return atomic_load(&x->p->closing) ? 0 : early_end(x);
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return (int)n;
		if (n > 0) {
			x->d->stats->bytes += (size_t)n;
			quiet = INT64_MAX;
		}
		if (atomic_load(&x->p->closing)) {
			end = end < INT64_MAX ? end : patience(x->p);
			quiet = quiet < INT64_MAX ? quiet : msg_now() + x->p->o.timeout_ms;
			if (msg_now() > quiet || msg_now() > end)
				return -ETIMEDOUT;
		}
		if (n <= 0)
			poll(&pfd, 1, 100);
	}
}

/* Until start() is through. false: the end came before. */
static bool wait_start(const struct peer *p, const struct drain *d)
{
	struct pollfd pfd[2] = { { .fd = p->start_fd, .events = POLLIN },
				 { .fd = d->stop_fd, .events = POLLIN } };

	while (poll(pfd, 2, -1) < 0 && errno == EINTR && !atomic_load(d->stopping))
		;
	return pfd[0].revents;
}

static int drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct peer *p = peer_of(s);
	struct stream x;
	char step[48];
	int ret;

	if (!wait_start(p, d))
		return 0;
	ret = stream_open(&x, p, cpu, d);

	if (!ret)
		ret = run(&x);
	stream_close(&x);
	if (ret == -ENOSPC || !ret)
		return ret;
	/* the guest died, was paused or lies: what it sent is kept, the others go on */
	if (!atomic_exchange(&p->lost, ret)) {
		snprintf(step, sizeof(step), "the data of its CPU %u", cpu);
		failed(p, step, ret);
	}
	return 0;
}

static int stat_text(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	return -ENOTSUP; /* the protocol does not carry it */
}

static void free_source(struct source *s)
{
	peer_free(peer_of(s));
}

static const struct source_ops peer_ops = {
	.kind = "guest",
	.start = start,
	.stop = stop,
	.drain = drain,
	.stat = stat_text,
	.free = free_source,
};

int peer_open(struct peer **out, const struct peer_opts *o)
{
	const char *clock = own_clock(o->args) ?: o->clock;
	struct peer *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return -ENOMEM;
	p->o = *o;
	p->control = -1;
	if (!p->o.timeout_ms)
		p->o.timeout_ms = PEER_TIMEOUT_MS;
	p->name = strdup(o->name);
	p->clock = strdup(clock ? clock : "local");
	p->start_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!p->name || !p->clock || p->start_fd < 0) {
		ret = p->start_fd < 0 ? -errno : -ENOMEM;
		peer_free(p);
		return ret;
	}
	p->source = (struct source){ .ops = &peer_ops, .name = "", .path = ".", .clock = p->clock };
	ret = converse(p);
	if (ret) {
		peer_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

void peer_free(struct peer *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->source.n_cpus; i++)
		if (p->data[i] >= 0)
			close(p->data[i]);
	if (p->control >= 0)
		close(p->control);
	if (p->start_fd >= 0)
		close(p->start_fd);
	msg_sent_release(&p->told);
	buf_release(&p->metadata);
	peer_clock_free(p->clock_link);
	free(p->data);
	free(p->ports);
	free(p->name);
	free(p->clock);
	free(p);
}

struct source *peer_source(struct peer *p)
{
	return &p->source;
}

uint64_t peer_trace_id(const struct peer *p)
{
	return p->trace_id;
}

/* Only our agents know that protocol, and only then are they known. */
bool peer_begins_itself(const struct peer *p)
{
	return !p->clock_port;
}

uint64_t peer_ready(const struct peer *p)
{
	return p->ready;
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

int peer_lost(const struct peer *p)
{
	return p->lost;
}

const struct msg_sent *peer_finish(struct peer *p)
{
	struct msg_wait w = { .deadline = p->closed + p->o.timeout_ms, .stop_fd = -1 };
	struct msg m = { .cmd = MSG_CLOSE };
	int ret = 0;

	if (p->lost || !p->started)
		return NULL;
	if (w.deadline < msg_now() + LAST_MS)
		w.deadline = msg_now() + LAST_MS;
	while (!ret && m.cmd != MSG_CLOSE_RESP)
		ret = msg_now() > w.deadline ? -ETIMEDOUT : msg_recv(p->control, &p->reader, &w, &m);
	if (!ret) {
		ret = msg_get_close_resp(&m, &p->told);
		if (ret == -ENODATA)
			return NULL;
		if (!ret && p->told.n_cpus != p->source.n_cpus)
			ret = -EBADMSG;
	}
	if (!ret)
		return &p->told;
	log_warn(p->o.log, "guest %s: its agent does not say that it is done: %s", p->name, reason(ret));
	return NULL;
}
