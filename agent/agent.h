/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_H
#define HYPTRACE_AGENT_H

#include <pthread.h>

#include "record/profile/profile.h"
#include "file/wire/transport.h"
#include "record/tracefs/instance.h"

/* hyptrace-agent: what its parts share. */

/* ---- boot.c: recordings from before the first request --------------------------- */

/*
 * Events that were switched on before the first recorder came: by --early, or by the kernel's command line.
 * The first request for that buffer that is not refused takes what is in it; later ones begin anew.
 */
struct boot {
	struct undo *early;	  /* --early: puts back what it changed; NULL: not used, or taken */
	bool top;		  /* the top buffer (a->own, if there is one) holds a boot trace */
	struct strlist instances; /* made by boot parameters, not yet taken */
};

struct agent;
/*
 * Begins the trace of --early, in the top buffer or a->own: events, as boot
 * parameters name them. 0 or -errno, which is logged.
 */
int boot_early(struct agent *a, const char *events);
/* Looks for what boot parameters have begun to trace, and keeps it in a->boot. */
void boot_find(struct agent *a);
/* True if the buffer ("": the top one, or a->own) holds a boot trace. */
bool boot_holds(const struct agent *a, const char *buffer);
/* Of one that does: afterwards it is an ordinary one, and a->boot.early is the caller's. */
void boot_take(struct agent *a, const char *buffer);
/* Puts back what --early changed. */
void boot_end_early(struct agent *a);

/* An undo with the agent's journal, or in memory where that has no place. 0 or -errno, -EEXIST. */
int agent_undo_open(struct agent *a, struct undo **u);
/* tracefs as it was before; the journal is kept when it could not be. */
void agent_undo_end(struct agent *a, struct undo *u);
/* Undoes the changes of a journal, if there is one, and removes it. -EBUSY: its agent lives. */
int agent_recover(struct agent *a, const char *journal);

/* ---- the agent ---------------------------------------------------------------- */

/* Its working directory is the tracing directory. */
struct agent {
	struct log log;
	int proc_fd;
	const char *journal;	    /* NULL: in memory only */
	struct transport_addr addr; /* to listen on */
	struct transport_addr peer; /* TCP: who may connect */
	uint32_t cids[16];	    /* vsock: who may connect */
	size_t n_cids;
	struct strlist allow;
	bool probes;	    /* events that a recorder defines are made */
	char own[48];	    /* with --allow: "instances/" and the one that serves every request; else "" */
	int64_t timeout_ms; /* for every wait on a peer */
	int listen_fd;
	bool given;    /* listen_fd belongs to the program that started us */
	int signal_fd; /* readable: the agent is to end */
	struct boot boot;
};

/* ---- serve.c ---------------------------------------------------------------------- */

/* Serves until a->signal_fd ends the agent. 0 or -errno. */
int serve(struct agent *a);

/* ---- serving.c ---------------------------------------------------------------------- */

struct serving;

/*
 * Begins to serve a request in a thread of its own. fd and what req owns are the
 * serving's then. done_fd gets a byte when it has ended.
 */
int serving_start(struct serving **out, struct agent *a, int fd, const struct transport_addr *peer,
		  struct msg_trace_req *req, int done_fd);
/* Sends the recorder the reason why it is not served. 0 or -errno. */
int agent_refuse(const struct agent *a, int fd, const char *why, struct msg_wait w);
void serving_cancel(struct serving *s);
/* Waits for its end and frees it. */
void serving_join(struct serving *s);

/* ---- request.c --------------------------------------------------------------- */

/*
 * The command line of a request, strictly: what trace-cmd record takes and what
 * makes sense in a guest. -EINVAL with *why (malloc'ed) for everything else.
 */
int request_parse(struct record_plan *plan, const struct strlist *args, const struct log *log, char **why);
/* The one buffer that is to be recorded; NULL: more than one is asked for. */
struct buffer_plan *request_buffer(struct record_plan *plan);
/* True if samples may be taken: hyptrace:sample is allowed, as an event. */
bool allow_samples(const struct strlist *allow);
/* True if the event of --start-on or --stop-on may be traced. */
bool allow_trigger(const struct strlist *allow, const struct trigger_plan *t);
/* Narrows the request to events that are allowed. -EACCES with *why: nothing is left, or it asks for more. */
int allow_apply(const struct strlist *allow, int tracing_dirfd, struct buffer_plan *b, const struct log *log,
		char **why);

/* ---- inside a serving: meta.c, stream.c ---------------------------------------- */

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
	struct sync *sync; /* of time: serving.c */
	const char *proto;
	struct msg_sent sent; /* for the end: what was sent */
	struct buf pauses;    /* likewise: between regions, as the file has them */
	atomic_bool ending;   /* nothing but its end is left to come: it may be joined at once */
};

/* For what the recorder is to do now: connect, answer, take a page. */
static inline struct msg_wait serving_wait(const struct serving *s)
{
	return (struct msg_wait){ .deadline = msg_now() + s->agent->timeout_ms, .stop_fd = s->cancel_fd };
}

/* A descriptor of the trace.dat without its pages, at offset 0; or -errno. */
int meta_make(const struct serving *s);

/*
 * The ports of one session, for the data of each CPU and for time synchronisation. vsock, TCP: a listening
 * socket each. UNIX: numbers, whose connections come through the agent's own socket (CONNECT).
 */
struct ports;

/* For connections from peer's machine to local's address. */
int ports_open(struct ports **out, const struct transport_addr *local, const struct transport_addr *peer,
	       size_t n);
void ports_free(struct ports *p);
uint32_t ports_number(const struct ports *p, size_t i);
/* Waits for the one connection of a port, then closes the port. fd or -errno. */
int ports_accept(struct ports *p, size_t i, const struct msg_wait *w);
/*
 * UNIX: gives it the connection, which came through the agent's own socket; false: no such port, or it has
 * one. p may be NULL.
 */
bool ports_offer(struct ports *p, uint32_t number, int fd);

/*
 * Carries the pages of one buffer to the recorder, a thread and a connection per CPU: whole sub-buffers by
 * splice, from trace_pipe_raw through a pipe to the socket, copied where the kernel cannot splice.
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
/* Counts and logs what was sent and lost, of each stream, into sent. -ENOMEM: it stays empty. */
int streams_account(const struct streams *s, struct msg_sent *sent);
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

#endif
