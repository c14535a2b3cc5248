/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_STREAM_H
#define HYPTRACE_AGENT_STREAM_H

#include "serving-state.h"

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

#endif
