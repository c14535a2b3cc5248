/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MSG_H
#define HYPTRACE_MSG_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/strings.h"

/*
 * The protocol between a recorder and the agent in a guest, as trace-cmd 3.1.6 to 3.4 speak it: the
 * contents of the messages in both directions. Callers decide when to send and how long to wait.
 *
 * A message: be32 size (of all of it, at most 8192), be32 command, be32 size of the fixed part; the
 * fixed part; the data. Big-endian unless stated otherwise. There is no version field: a longer
 * fixed part than expected is read as far as it is known.
 *
 * Source of the numbers: in lib/trace-cmd of trace-cmd, trace-msg (messages), trace-timesync
 * (TIME_SYNC "none") and trace-timesync-ptp ("ptp").
 */

#define MSG_MAX	     8192u
#define MSG_HEAD     12u
#define MSG_DATA_MAX (MSG_MAX - MSG_HEAD) /* of a SEND_DATA */
#define MSG_PORT     823		  /* vsock; stock uses the same number for TCP */

enum msg_cmd {
	MSG_CLOSE = 0,
	MSG_TINIT = 1, /* 1, 2: the old `trace-cmd listen` only */
	MSG_RINIT = 2,
	MSG_SEND_DATA = 3,
	MSG_FIN_DATA = 4,
	MSG_NOT_SUPP = 5,
	MSG_TRACE_REQ = 6,
	MSG_TRACE_RESP = 7,
	MSG_CLOSE_RESP = 8,
	MSG_TIME_SYNC = 9,
	MSG_TRACE_PROXY = 10, /* 10, 11: a proxy's only */
	MSG_CONT = 11,
};

const char *msg_name(uint32_t cmd); /* "TRACE_REQ", or "unknown" */

/*
 * The msg_add calls append a message; buf_status() reports a lack of memory, or a message that is
 * too long. The msg_get calls parse one: 0, or -EBADMSG for another message, or one that is too
 * short or contradicts itself; -ENOMEM where something is allocated.
 */

/* Points into the bytes it was read from. */
struct msg {
	uint32_t cmd;
	const uint8_t *fixed;
	size_t fixed_len;
	const uint8_t *data;
	size_t data_len;
};

/* Its size by its first MSG_HEAD bytes; -EBADMSG when that cannot be. */
ssize_t msg_size(const void *head);
/* A whole message. -EBADMSG: the sizes do not agree with len or with each other. */
int msg_parse(struct msg *m, const void *bytes, size_t len);

/* Deadline of a wait, and a descriptor that ends it early. */
struct msg_wait {
	int64_t deadline; /* msg_now() + ms; INT64_MAX: for ever */
	int64_t quiet_ms; /* the peer may be silent for so long; 0: until the deadline */
	int stop_fd;	  /* readable: the wait ends with -ECANCELED; -1: none */
};

int64_t msg_now(void); /* ms, CLOCK_MONOTONIC */
/* msg_now() at which it is over for a peer that is silent from now on. */
int64_t msg_wait_end(const struct msg_wait *w);
/*
 * Waits for the poll events on fd. 0, -ETIMEDOUT, -ECANCELED or -errno. With
 * quiet_ms -ETIMEDOUT means silence, and -ETIME that the deadline came before.
 */
int msg_poll(int fd, short events, const struct msg_wait *w);

/* Collects one message; zero-initialised = empty. Costs no more than its own size. */
struct msg_reader {
	size_t have;
	uint8_t bytes[MSG_MAX];
};

/*
 * Reads what is there now, at most the rest of one message. 1: *m is a whole message, valid until the next
 * call; 0: not yet. -ENODATA: the peer closed between messages; -ECONNRESET: in the middle of one; -EBADMSG:
 * the header makes no sense (nothing after it can be trusted); or -errno.
 */
int msg_reader_step(struct msg_reader *r, int fd, struct msg *m);
/* Waits for a whole message. 0, or an error of the two above. */
int msg_recv(int fd, struct msg_reader *r, const struct msg_wait *w, struct msg *m);
/*
 * Bytes that are given to a socket at once. From Linux 6.17 on a guest's packet above 32 KiB with its headers
 * lies in several descriptors (virtio_vsock_alloc_skb in include/linux/virtio_vsock.h), and then
 * vhost-device-vsock 0.3, and cloud-hypervisor until February 2026, drop it without a word.
 */
#define MSG_SEND_MAX (28u << 10)

/* Sends bytes on a socket, without SIGPIPE. 0, -ETIMEDOUT, -ECANCELED or -errno. */
int msg_send(int fd, const void *bytes, size_t len, const struct msg_wait *w);
/* Sends what the msg_add calls put into b, and releases b. */
int msg_send_buf(int fd, struct buf *b, const struct msg_wait *w);

/* CLOSE, FIN_DATA, NOT_SUPP, SEND_DATA have no fixed part. */
/* len: at most MSG_DATA_MAX, else the buffer turns bad. */
void msg_add(struct buf *out, enum msg_cmd cmd, const void *data, size_t len);
/*
 * NOT_SUPP with a reason, which stock does not show. It is not left out for stock's sake: its recorder frees
 * an uninitialised pointer when the answer to its request is a message without data.
 */
void msg_add_refusal(struct buf *out, const char *reason);
/* The reason, malloc'ed and made printable; NULL: none was given. */
char *msg_get_reason(const struct msg *m);

/*
 * Totals of what an agent has sent. Ours puts them into the data of CLOSE_RESP: "hyptrace", be64
 * started, and for each CPU be64 bytes, be64 lost. Stock sends no data there, and reads over it.
 */
struct msg_sent {
	uint64_t started; /* ns of the guest's trace clock, when tracing was switched on; 0: not known */
	uint32_t n_cpus;
	struct msg_sent_cpu {
		uint64_t bytes; /* of pages */
		uint64_t lost;	/* events that its kernel has counted as lost */
	} * cpus;
};

/* For more CPUs than a message has room for (510) it has no figures. */
void msg_add_close_resp(struct buf *out, const struct msg_sent *s);
/* 0; -ENODATA: it has no figures; -EBADMSG or -ENOMEM. */
int msg_get_close_resp(const struct msg *m, struct msg_sent *s);
void msg_sent_release(struct msg_sent *s);

struct msg_trace_req {
	uint32_t flags;
	uint64_t trace_id;
	struct strlist args;   /* of the command line; stock's agent needs at least one */
	struct strlist protos; /* of time synchronisation, best first */
};

/* Appends the request, as the others do. */
void msg_add_trace_req(struct buf *out, const struct msg_trace_req *r);
/* -EBADMSG or -ENOMEM; what r owns is the caller's to release on success only. */
int msg_get_trace_req(const struct msg *m, struct msg_trace_req *r);
void msg_trace_req_release(struct msg_trace_req *r);

#define MSG_PROTO_LEN 16
#define MSG_CPUS_MAX  1024u

struct msg_trace_resp {
	uint32_t flags;
	uint32_t cpus;
	uint32_t page_size; /* bytes */
	uint64_t trace_id;
	char proto[MSG_PROTO_LEN + 1]; /* "": no time synchronisation */
	uint32_t tsync_port;
	uint32_t *ports; /* one per CPU, for its data */
};

/* The answer; msg_get: as msg_get_trace_req(). */
void msg_add_trace_resp(struct buf *out, const struct msg_trace_resp *r);
int msg_get_trace_resp(const struct msg *m, struct msg_trace_resp *r);
void msg_trace_resp_release(struct msg_trace_resp *r);

#define MSG_SYNC_NONE "none" /* the protocol's name in requests */
#define MSG_SYNC_PTP  "ptp"
/*
 * Only ours: a recorder that offers it gets the guest's counter. Stock does not know the name, so
 * its agents choose another protocol or none, and its recorders never offer it.
 */
#define MSG_SYNC_COUNTER "counter"

/*
 * Only ours, too: among the protocols of a request "profile:99" asks for samples, 99 a second of
 * each CPU. The answer has MSG_WITH_PROFILE in its flags, and then as many ports for these after
 * those of the CPUs, counted in cpus; else there are no samples. Their pages have records of
 * record/profile/profile.h, the ids from MSG_PROFILE_ID on, which is above any kernel's.
 */
#define MSG_PROFILE	 "profile:"
#define MSG_WITH_PROFILE (1u << 31)
#define MSG_PROFILE_ID	 32000

enum msg_sync_id {
	MSG_SYNC_PROBE = 1, /* protocol "none": synchronise one CPU now */
	MSG_SYNC_STOP = 2,
	MSG_PTP_START = 1,
	MSG_PTP_PROBE = 2,
	MSG_PTP_PROBES = 3,
	MSG_PTP_OFFSET = 4,
	MSG_PTP_END = 5,
	MSG_COUNTER_ASK = 1,
	MSG_COUNTER_SHOT = 2,
};

struct msg_sync {
	char proto[MSG_PROTO_LEN + 1];
	uint32_t id;
	const uint8_t *payload; /* inside the message */
	size_t len;
};

/* A message of time synchronisation; msg_get: -EBADMSG, and *s points into m. */
void msg_add_sync(struct buf *out, const char *proto, uint32_t id, const void *payload, size_t len);
int msg_get_sync(const struct msg *m, struct msg_sync *s);
/* True if s is that message of that protocol. */
bool msg_sync_is(const struct msg_sync *s, const char *proto, uint32_t id);

/* "none" PROBE: a u16 in native byte order. */
int msg_get_sync_probe(const struct msg_sync *s, uint16_t *cpu);

/*
 * A message that holds a number, and whose answer holds it again: "ptp" PROBE,
 * numbered from 1; "counter" ASK, a number of the recorder's choice.
 */
void msg_add_sync_number(struct buf *out, const char *proto, uint32_t id, uint32_t number);
int msg_get_sync_number(const struct msg_sync *s, uint32_t *number);

#define MSG_PTP_LOOPS	339 /* most probes of one pass */
#define MSG_PTP_SAMPLES (2 * MSG_PTP_LOOPS)
#define MSG_PTP_FASTEST 1u /* take the probe with the shortest way */
#define MSG_PTP_MARKER	2u /* times come from trace_marker_raw, else CLOCK_MONOTONIC_RAW */

/* START: its answer is the same message again. */
void msg_add_ptp_start(struct buf *out, uint32_t series, uint32_t flags);

/* PROBES: when the host saw each probe. ids[i] 0: nothing in this place. */
struct msg_ptp_probes {
	uint32_t series;
	uint32_t count;
	int64_t ts[MSG_PTP_SAMPLES];
	uint32_t ids[MSG_PTP_SAMPLES];
};

/* The probes of a PTP message, in host byte order. -EBADMSG. */
int msg_get_ptp_probes(const struct msg_sync *s, struct msg_ptp_probes *p);

/* SHOT: the guest's counter when it took the question and when it answers, and a snapshot between. */
struct msg_counter_shot {
	uint32_t number;
	uint64_t first, last;	 /* counter */
	uint64_t counter, slack; /* at counter +- slack ... */
	uint64_t clock;		 /* ... the trace clock showed this, ns; 0: it could not be read */
};
void msg_add_counter_shot(struct buf *out, const struct msg_counter_shot *shot);
int msg_get_counter_shot(const struct msg_sync *s, struct msg_counter_shot *shot);

/* OFFSET: ns of the guest's clock, and what to add to it to have the host's. */
void msg_add_ptp_offset(struct buf *out, int64_t ts, int64_t offset);

#endif
