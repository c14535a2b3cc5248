/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef AGENT_SERVING_STATE_H
#define AGENT_SERVING_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "agent.h"
#include "record/profile/profile.h"
#include "record/tracefs/instance.h"
#include "file/wire/transport.h"

/* One recording, from the request to tracefs as it was. */
struct serving {
	struct agent *agent;
	const struct log *log;
	pthread_t thread;
	int fd; /* control */
	struct transport_addr peer;
	int done_fd;
	int cancel_fd; /* readable: cancels every wait */
	int failed_fd; /* readable: a CPU's connection is over */
	int ready_fd;  /* the number of CPUs whose connections are made is added up here */
	struct msg_reader reader;
	struct msg_trace_req req;
	uint64_t trace_id;

	/* set by serving_prepare */
	struct record_plan plan;
	struct buffer_plan *buffer; /* the one of the plan that is recorded */
	struct undo *undo;
	bool boot; /* the buffer holds a boot trace: it has been on for long */
	struct instance *inst;
	char *clock;
	struct watch watch; /* of regions */
	uint32_t page_size;
	uint32_t n_cpus;
	struct profile *profile; /* samples are asked for, and to be had; NULL: not */
	uint32_t n_streams;	 /* of the CPUs, then of their samples */

	struct ports *_Atomic ports;
	struct streams *streams;
	struct sync *sync;
	const char *proto;
	struct msg_sent sent; /* for the end: what was sent */
	struct buf pauses;    /* likewise: between regions, as the file has them */
	atomic_bool ending;
};

/* For what the recorder is to do now: connect, answer, take a page. */
static inline struct msg_wait serving_wait(const struct serving *s)
{
	return (struct msg_wait){ .deadline = msg_now() + s->agent->timeout_ms, .stop_fd = s->cancel_fd };
}

/* A descriptor of the trace.dat without its pages, at offset 0; or -errno. */
int meta_make(const struct serving *s);

/*
 * The ports of one session, for the data of each CPU and for time
 * synchronisation. vsock, TCP: a listening socket each. UNIX: numbers, whose
 * connections come through the agent's own socket (CONNECT).
 */
struct ports;

/* For connections from peer's machine to local's address. */
int ports_open(struct ports **out, const struct transport_addr *local, const struct transport_addr *peer,
	       size_t n);
void ports_free(struct ports *p);
uint32_t ports_number(const struct ports *p, size_t i);
/* Waits for the one connection of a port, then closes the port. fd or -errno. */
int ports_accept(struct ports *p, size_t i, const struct msg_wait *w);
/* UNIX: gives it the connection; false: no such port, or it has one. */
bool ports_offer(struct ports *p, uint32_t number, int fd);

/*
 * Carries the pages of one buffer to the recorder, a thread and a connection
 * per CPU: whole sub-buffers by splice, from trace_pipe_raw through a pipe to
 * the socket, copied where the kernel cannot splice.
 */
struct streams;

/*
 * By s, which outlives them: adds 1 to its ready_fd for each CPU that can send,
 * and to its failed_fd when a CPU's connection is over.
 */
int streams_start(struct streams **out, const struct serving *s);
/*
 * After tracing was switched off: sends what is left, the last page filled up
 * with zeros, ends the streams and waits for the threads. 0, or the first error.
 */
int streams_finish(struct streams *s);
/* Bytes sent in a stream, below n_streams; and what was lost in one of samples. */
uint64_t streams_bytes(const struct streams *s, uint32_t cpu);
uint64_t streams_samples_lost(const struct streams *s, uint32_t cpu);
bool streams_spliced(const struct streams *s); /* whether all went by splice */
void streams_free(struct streams *s);

/* ASan's frames need more. */
#ifdef __SANITIZE_ADDRESS__
#define THREAD_STACK (1u << 20)
#else
#define THREAD_STACK (192u << 10)
#endif

/* A thread with a small stack: there may be hundreds of CPUs. 0 or -errno. */
static inline int thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	ret = pthread_create(t, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return -ret;
}

/*
 * The guest's side of time synchronisation: answers the recorder's requests on a connection and in a
 * thread of its own, until STOP, or the end of the connection.
 *
 * hyptrace's recorder asks for the counter (msg.h). In stock's "ptp" the guest probes, chooses and
 * reports the offset. Nothing better than its probes can go in there: KVM's PTP call gives the guest
 * the host's CLOCK_REALTIME, and of the host's trace clock a guest knows no more than when it saw
 * each probe.
 */
struct sync;

/* The protocol to be used with a recorder that offers these; "": none. */
const char *sync_protocol(const struct strlist *offered);
/*
 * Runs on the port after those of the CPUs, by s, which outlives it. The clock is read by
 * trace_marker_raw, in an instance of its own, unless it is one of the system's.
 */
int sync_start(struct sync **out, const struct serving *s);
/* Waits for the recorder's last pass, at most the agent's timeout without a message. */
void sync_finish(struct sync *s);
void sync_free(struct sync *s);

#endif
