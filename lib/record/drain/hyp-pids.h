/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYP_PIDS_H
#define HYPTRACE_HYP_PIDS_H

#include "file/dat/writer.h"
#include "record/spool/spool.h"
#include <stddef.h>
#include <stdint.h>

/*
 * The host tasks that ran on a CPU, by time: from the sched_switch records of a recorded host
 * buffer. Used to fill in the pid of hypervisor records, which carry none of their own.
 *
 * One CPU's pages are walked once, front to back, in step with the records to fill in; memory is
 * constant however long the recording.
 */
struct tasks;

struct tasks_format {
	unsigned int id;		 /* of sched_switch in the file */
	unsigned int prev_pid, next_pid; /* offsets in the record, bytes */
};

/* From the text of events/sched/sched_switch/format. -EBADMSG when a field is missing. */
int tasks_format_parse(const char *text, size_t len, struct tasks_format *out);

/* Reads pages of page_size bytes from fd (not closed), offset from on. */
int tasks_new(struct tasks **out, int fd, uint64_t from, uint32_t page_size, const struct tasks_format *f);
void tasks_free(struct tasks *t);
/*
 * Pid of the task that ran at ts (ns, the buffer's clock); -1: not known (no
 * switch on this CPU, or events were lost around it). Ask with times that do
 * not go back by much: the walk is forward only, and an earlier time gets the
 * answer of where the walk stands.
 */
int tasks_pid(struct tasks *t, uint64_t ts);
/* -errno of the read at which the walk ended too early; 0: of none. */
int tasks_error(const struct tasks *t);

/*
 * Gives the hypervisor's records of a buffer, which have no pid of their own, those of the host's tasks: sets
 * b->fix_page. file: has the format of sched_switch. *out: to be closed, also after an error; NULL: the
 * host's switches were not recorded. It must live as long as b; the spool, too.
 */
struct hyp_pids;
int hyp_pids_open(struct hyp_pids **out, const struct spool *spool, const struct dat_file *file,
		  struct dat_buffer *b);
void hyp_pids_close(struct hyp_pids *p); /* takes NULL */

#endif
