/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_STREAM_H
#define HYPTRACE_AGENT_STREAM_H

#include "ports.h"

/*
 * Carries the pages of one buffer to the recorder, a thread and a connection
 * per CPU: whole sub-buffers by splice, from trace_pipe_raw through a pipe to
 * the socket, copied where the kernel cannot splice.
 */
struct streams;

struct streams_opts {
	int tracing_dirfd;
	const char *instance_path;
	uint32_t page_size;
	uint32_t n_cpus;
	struct ports *ports; /* port i is CPU i's */
	uint64_t sleep_us;   /* between reads; 0: as data comes */
	int64_t timeout_ms;  /* for the connection, and for each page to be taken */
	int cancel_fd;	     /* readable: give up at once */
	int failed_fd;	     /* an eventfd: readable once one CPU's connection is over */
	int ready_fd;	     /* an eventfd to which each CPU adds 1 when it can send */
	const struct log *log;
};

int streams_start(struct streams **out, const struct streams_opts *o);
/*
 * After tracing was switched off: sends what is left, the last page filled up
 * with zeros, ends the streams and waits for the threads. 0, or the first error.
 */
int streams_finish(struct streams *s);
/* Bytes sent for a CPU. */
uint64_t streams_bytes(const struct streams *s, uint32_t cpu);
bool streams_spliced(const struct streams *s); /* whether all went by splice */
void streams_free(struct streams *s);

#endif
