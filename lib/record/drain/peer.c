// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A guest's agent as a source for the recorder: the conversation up to the start (the request, its answer,
 * the metadata), then its pages, its stop and its report.
 */
#include "base/clock.h"
#include "base/cursor.h"
#include "record/drain/peer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "record/drain/spool-to-dat.h"

#define PIECE	   (1u << 20) /* bytes, where the stream is copied */
#define PAUSES_MAX (16u << 20)
#define LAST_MS	   1000 /* at least, for what is there already */
/* Limits of the bytes after CLOSE: the guest's buffers, and what is recorded and under way until the agent
 * has it. */
#define BUFFER_KB    1408 /* of a CPU, where nothing else is asked for: the kernel's TRACE_BUF_SIZE_DEFAULT */
#define REST_MARGIN  (64u << 20) /* bytes */
#define METADATA_MAX (256u << 20)

/* Those that we write ourselves would be there twice. */
static bool is_ours(uint16_t id)
{
	return id == DAT_TIME_SHIFT || id == DAT_GUEST || id == DAT_CPUCOUNT || id == DAT_CPUSTAT ||
	       id == DAT_TRACEID || id == DAT_VERSION;
}

int64_t peer_patience_ms(const struct peer *p)
{
	return p->o.timeout_ms * PEER_PATIENCE;
}

/* The time to wait: in the step that has begun, and in a new one. */
static struct msg_wait peer_wait(const struct peer *p)
{
	return (struct msg_wait){ .deadline = p->step_end,
				  .quiet_ms = p->o.timeout_ms,
				  .stop_fd = p->o.stop_fd };
}

static struct msg_wait peer_step(struct peer *p)
{
	p->step_end = msg_now() + peer_patience_ms(p);
	return peer_wait(p);
}

static const char *peer_reason(const struct peer *p, int error, char text[160])
{
	switch (error) {
	case -ETIMEDOUT:
		snprintf(text, 160, "silent for %g s (--guest-timeout)", (double)p->o.timeout_ms / 1e3);
		return text;
	case -ETIME:
		snprintf(text, 160, "not done after %g s (%d times --guest-timeout)",
			 (double)peer_patience_ms(p) / 1e3, PEER_PATIENCE);
		return text;
	case -EOVERFLOW:
		snprintf(text, 160,
			 "more than %llu MiB came after the end, which its buffers cannot hold; if they are "
			 "larger, give their size with -A %s -b KIB",
			 (unsigned long long)p->rest_max >> 20, p->o.name);
		return text;
	case -ENODATA:
	case -ECONNRESET:
	case -EPIPE:
		return "the agent closed the connection";
	case -EBADMSG:
		return "the answer makes no sense";
	}
	return errno_text(error);
}

static int peer_failed(const struct peer *p, const char *step, int error)
{
	char addr[128], text[160];

	log_err(p->o.log, "guest %s (%s): %s: %s", p->o.name, transport_text(&p->o.addr, addr, sizeof(addr)),
		step, peer_reason(p, error, text));
	return error;
}

/* Argument of that option (-C) in args, the last one counting; NULL: none. */
static const char *peer_option(const struct strlist *args, const char *option)
{
	const char *value = NULL;

	for (size_t i = 0; i + 1 < args->n; i++)
		if (!strcmp(args->v[i], option))
			value = args->v[i + 1];
	return value;
}

static int send_request(struct peer *p)
{
	struct msg_trace_req req = { .trace_id = p->o.trace_id };
	struct msg_wait w = peer_step(p);
	struct buf out = { 0 };
	int ret = 0;

	if (!peer_option(p->o.args, "-C") && p->o.clock)
		ret = strlist_add(&req.args, "-C") ?: strlist_add(&req.args, p->o.clock);
	for (size_t i = 0; i < p->o.args->n && !ret; i++)
		ret = strlist_add(&req.args, p->o.args->v[i]);
	if (!ret && p->o.counter)
		ret = strlist_add(&req.protos, MSG_SYNC_COUNTER);
	if (!ret && p->o.profile_hz)
		ret = strlist_take(&req.protos, str_printf(MSG_PROFILE "%" PRIu64, p->o.profile_hz));
	if (!ret)
		msg_add_trace_req(&out, &req);
	msg_trace_req_release(&req);
	ret = out.bad ? -E2BIG : ret ?: msg_send_buf(p->control, &out, &w);
	buf_release(&out);
	return ret ? peer_failed(p, "sending the request", ret) : 0;
}

static int peer_unexpected(const struct peer *p, const char *step, const struct msg *m)
{
	char text[96];

	snprintf(text, sizeof(text), "%s: %s", step, msg_name(m->cmd));
	return peer_failed(p, text, -EBADMSG);
}

static int take_answer(struct peer *p, struct msg_trace_resp *resp)
{
	struct msg_wait w = peer_step(p);
	struct msg m;
	int ret = msg_recv(p->control, &p->reader, &w, &m);

	if (ret)
		return peer_failed(p, "waiting for the answer to the request", ret);
	if (m.cmd == MSG_NOT_SUPP) {
		char *reason = msg_get_reason(&m);

		log_err(p->o.log, "guest %s: its agent refuses the request%s%s", p->o.name,
			reason ? ": " : "", reason ? reason : "");
		free(reason);
		return -ENOTSUP;
	}
	if (m.cmd != MSG_TRACE_RESP)
		return peer_unexpected(p, "the answer to the request", &m);
	ret = msg_get_trace_resp(&m, resp);
	if (ret)
		return peer_failed(p, "the answer to the request", ret);
	if (resp->page_size < 4096 || resp->page_size > (1u << 20) ||
	    (resp->page_size & (resp->page_size - 1)) || !resp->cpus ||
	    (resp->flags & MSG_WITH_PROFILE && (!p->o.profile_hz || resp->cpus % 2))) {
		msg_trace_resp_release(resp);
		return peer_failed(p, "the answer to the request", -EBADMSG);
	}
	return 0;
}

/* One of SEND_DATA ... FIN_DATA: headers and options of a trace.dat. */
static int take_metadata(struct peer *p)
{
	struct msg_wait w = peer_wait(p);
	struct msg m;
	/* one that is there already is not asked for its time */
	int ret = msg_now() > p->step_end ? -ETIME : msg_recv(p->control, &p->reader, &w, &m);

	if (ret)
		return peer_failed(p, "waiting for its event formats", ret);
	if (m.cmd == MSG_FIN_DATA) {
		p->metadata_whole = true;
		p->ready = boot_ns();
		return buf_status(&p->metadata);
	}
	if (m.cmd != MSG_SEND_DATA)
		return peer_unexpected(p, "waiting for its event formats", &m);
	if (m.data_len > METADATA_MAX - p->metadata.len)
		return peer_failed(p, "its event formats", -EFBIG);
	buf_add(&p->metadata, m.data, m.data_len);
	return 0;
}

int peer_await(struct peer *p)
{
	peer_step(p);
	return take_metadata(p);
}

int peer_receive(struct peer *p)
{
	int ret = 0;

	while (!ret && !p->metadata_whole)
		ret = take_metadata(p);
	return ret;
}

/*
 * An agent's metadata is a trace.dat that ends before its buffers, of version 6 or 7, compressed or
 * not. -EBADMSG: no file can be made from it.
 */
int peer_keep(struct peer *p, struct spool *spool)
{
	int fd = memfd_create("metadata", MFD_CLOEXEC);
	struct spool_formats formats = { 0 };
	struct buf event = { 0 }, kept = { 0 };
	struct page_layout layout;
	struct reader *r = NULL;
	struct cursor c;
	int ret = fd < 0 ? -errno : write_all(fd, p->metadata.data, p->metadata.len);

	ret = ret ?: reader_open(&r, fd, p->o.log) ?: spool_keep_info(spool, reader_info(r), is_ours);
	if (ret)
		goto out;
	/* texts that are missing, or do not fit its pages, spoil the file when it is written: later is too
	 * late */
	ret = spool_page_layout(spool, &layout) ?: spool_get_text(spool, "header_event", &event);
	if (!ret)
		ret = layout.data_offset >= p->source.page_size ? -EBADMSG
								: spool_formats_load(&formats, spool, NULL);
	ret = ret == -ENOENT ? -EBADMSG : ret ?: spool_get_text(spool, "options", &kept);
	/* so do options that no agent has to give, but for those that are left out (is_ours) */
	c = cursor_at(kept.data, kept.len);
	while (!ret && cursor_left(&c)) {
		uint16_t id = cursor_u16(&c);

		cursor_take(&c, cursor_u32(&c));
		if (c.bad || dat_writes_option(id))
			ret = -EBADMSG;
	}
out:
	spool_formats_release(&formats);
	buf_release(&event);
	buf_release(&kept);
	reader_close(r);
	fd_close(&fd);
	buf_release(&p->metadata);
	return ret ? peer_failed(p, "its event formats", ret) : 0;
}

/* Before the metadata, as stock has it: what the guest records lies between the first answer and the last. */
void peer_counter_begin(struct peer *p)
{
	struct transport_addr a = p->o.addr;
	struct msg_wait w = peer_step(p);
	int fd, ret;

	if (!p->clock_port)
		return;
	a.port = p->clock_port;
	fd = transport_connect(&a, &w);
	ret = fd < 0 ? fd : peer_clock_start(&p->clock_link, fd, p->o.counter_interval_ms);
	if (ret)
		log_warn(p->o.log, "guest %s: its counter cannot be asked for: %s", p->o.name,
			 errno_text(ret));
}

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
	struct peer *p = (struct peer *)((char *)s - offsetof(struct peer, profile));

	return peer_drain_data(p, p->source.n_cpus + cpu, d);
}

static const struct source_ops peer_profile_ops = {
	.kind = "guest",
	.drain = peer_profile_drain,
};

static int peer_converse(struct peer *p)
{
	struct msg_wait w = peer_step(p);
	struct msg_trace_resp resp;
	int ret;

	p->control = transport_connect(&p->o.addr, &w);
	if (p->control < 0)
		return peer_failed(p, "connecting to its agent", p->control);
	ret = send_request(p) ?: take_answer(p, &resp);
	if (ret)
		return ret;
	p->trace_id = resp.trace_id;
	if (!strcmp(resp.proto, MSG_SYNC_COUNTER))
		p->clock_port = resp.tsync_port; /* its CPUs are known, their ports are for start() */
	p->data = malloc(resp.cpus * sizeof(*p->data));
	if (!p->data) {
		msg_trace_resp_release(&resp);
		return -ENOMEM;
	}
	memset(p->data, -1, resp.cpus * sizeof(*p->data));
	p->ports = resp.ports;
	resp.ports = NULL;
	p->n_data = p->source.n_cpus = resp.cpus;
	p->source.page_size = resp.page_size;
	/* as many ports for samples as for the CPUs, or none */
	if (resp.flags & MSG_WITH_PROFILE) {
		p->source.n_cpus = p->n_data / 2;
		p->profile.n_cpus = p->source.n_cpus;
		p->profile.page_size = p->source.page_size;
	} else if (p->o.profile_hz) {
		log_warn(p->o.log,
			 "guest %s: no samples: its agent does not know --profile (trace-cmd's, an older "
			 "one), does not allow it, or its kernel cannot (the agent's log says which)",
			 p->o.name);
	}
	msg_trace_resp_release(&resp);
	return 0;
}

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
	p->profile = (struct source){
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

struct counter_log *peer_counter_growing(const struct peer *p)
{
	return p->clock_link ? &p->clock_link->log : NULL;
}

const struct msg_sent *peer_finish(struct peer *p)
{
	struct msg_wait w = peer_wait(p);
	struct msg m = { .cmd = MSG_CLOSE };
	char text[160];
	int ret = 0;

	if (p->lost || !p->started)
		return NULL;
	w.stop_fd = -1;
	if (w.deadline < msg_now() + LAST_MS)
		w.deadline = msg_now() + LAST_MS;
	/* CLOSE_RESP, after what may come before it */
	while (!ret && m.cmd != MSG_CLOSE_RESP) {
		ret = msg_now() > w.deadline ? -ETIME : msg_recv(p->control, &p->reader, &w, &m);
		if (!ret && m.cmd == MSG_SEND_DATA && p->pauses.len < PAUSES_MAX)
			buf_add(&p->pauses, m.data, m.data_len);
	}
	if (!ret) {
		ret = msg_get_close_resp(&m, &p->sent);
		if (ret == -ENODATA) /* it does not report what it sent */
			return NULL;
		ret = ret || p->sent.n_cpus == p->n_data ? ret : -EBADMSG;
	}
	if (ret)
		log_warn(p->o.log, "guest %s: its agent does not confirm its end: %s", p->o.name,
			 peer_reason(p, ret, text));
	return ret ? NULL : &p->sent;
}
