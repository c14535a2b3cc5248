/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef AGENT_SERVING_STATE_H
#define AGENT_SERVING_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent.h"
#include "ports.h"
#include "profile/profile.h"
#include "tracefs/instance.h"
#include "tracefs/watch.h"

/* One recording, from the request to tracefs as it was. */
struct serving {
	struct agent *agent;
	const struct log *log;
	pthread_t thread;
	int fd; /* control */
	struct transport_addr peer;
	int done_fd;
	int cancel_fd; /* readable: give up every wait */
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

/*
 * From the request to a buffer that is ready to start. On failure *why (may
 * stay NULL) says to the recorder what was wrong; what was changed is for
 * serving_put_back.
 */
int serving_prepare(struct serving *s, char **why);
/* A descriptor of the trace.dat without its pages, at offset 0; or -errno. */
int meta_make(const struct serving *s);
/* tracefs as it was before; the instance is gone then. */
void serving_put_back(struct serving *s);
void serving_free(struct serving *s);

#endif
