/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TASKS_H
#define HYPTRACE_TASKS_H

#include "util/base.h"

/*
 * Which host task ran on a CPU when: from the sched_switch records of a
 * recorded host buffer. Used to fill in the pid of hypervisor records, which
 * carry none of their own.
 *
 * One CPU's pages are walked once, front to back, beside the records that ask;
 * memory is constant however long the recording.
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

#endif
