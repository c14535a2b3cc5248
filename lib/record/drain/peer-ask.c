// SPDX-License-Identifier: LGPL-2.1-or-later
/* The conversation with a guest's agent up to the start: the request, its answer, the metadata. */
#include "base/clock.h"
#include "base/cursor.h"
#include "record/drain/peer.h"

#include <sys/mman.h>

#include "record/drain/spool-to-dat.h"
#include "record/drain/system-metadata.h"

/* Those that we write ourselves would be there twice. */
static bool is_ours(uint16_t id)
{
	return id == DAT_TIME_SHIFT || id == DAT_GUEST || id == DAT_CPUCOUNT || id == DAT_CPUSTAT ||
	       id == DAT_TRACEID || id == DAT_VERSION;
}

#define METADATA_MAX (256u << 20)

int64_t peer_patience_ms(const struct peer *p)
{
	return p->o.timeout_ms * PEER_PATIENCE;
}

struct msg_wait peer_wait(const struct peer *p)
{
	return (struct msg_wait){ .deadline = p->step_end,
				  .quiet_ms = p->o.timeout_ms,
				  .stop_fd = p->o.stop_fd };
}

struct msg_wait peer_step(struct peer *p)
{
	p->step_end = msg_now() + peer_patience_ms(p);
	return peer_wait(p);
}

const char *peer_reason(const struct peer *p, int error, char text[160])
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

int peer_failed(const struct peer *p, const char *step, int error)
{
	char addr[128], text[160];

	log_err(p->o.log, "guest %s (%s): %s: %s", p->o.name, transport_text(&p->o.addr, addr, sizeof(addr)),
		step, peer_reason(p, error, text));
	return error;
}

const char *peer_option(const struct strlist *args, const char *option)
{
	const char *value = NULL;

	for (size_t i = 0; i + 1 < args->n; i++)
		if (!strcmp(args->v[i], option))
			value = args->v[i + 1];
	return value;
}

static int send_request(struct peer *p)
{
	struct msg_trace_req req = { 0 };
	struct msg_wait w = peer_step(p);
	struct buf out = { 0 };
	char hz[32];
	int ret = 0;

	req.trace_id = p->o.trace_id;
	if (!peer_option(p->o.args, "-C") && p->o.clock)
		ret = strlist_add(&req.args, "-C") ?: strlist_add(&req.args, p->o.clock);
	for (size_t i = 0; i < p->o.args->n && !ret; i++)
		ret = strlist_add(&req.args, p->o.args->v[i]);
	if (!ret && p->o.counter)
		ret = strlist_add(&req.protos, MSG_SYNC_COUNTER);
	snprintf(hz, sizeof(hz), MSG_PROFILE "%llu", (unsigned long long)p->o.profile_hz);
	if (!ret && p->o.profile_hz)
		ret = strlist_add(&req.protos, hz);
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
	/* so do options that no agent has to give */
	c = cursor_at(kept.data, kept.len);
	while (!ret && cursor_left(&c)) {
		uint16_t id = cursor_u16(&c);

		cursor_take(&c, cursor_u32(&c));
		if (c.bad || id == DAT_DONE || id == DAT_BUFFER ||
		    (id >= DAT_STRINGS && id <= DAT_BUFFER_TEXT))
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

int peer_converse(struct peer *p)
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
		p->profile.source.n_cpus = p->source.n_cpus;
		p->profile.source.page_size = p->source.page_size;
	} else if (p->o.profile_hz) {
		log_warn(p->o.log,
			 "guest %s: no samples: its agent does not know --profile (trace-cmd's, an older "
			 "one), does not allow it, or its kernel cannot (the agent's log says which)",
			 p->o.name);
	}
	msg_trace_resp_release(&resp);
	return 0;
}
