/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEXT_H
#define HYPTRACE_TEXT_H

#include <traceevent/trace-seq.h>

#include "base/workers.h"
#include "read/tepfile.h"

/*
 * An event's text as a program: made once out of the tree that libtraceevent has parsed of
 * the print format, it writes the same bytes as tep_print_event(..., "%s",
 * TEP_PRINT_INFO) would, without libtraceevent, without allocating, by several threads at a time.
 */
struct text_program; /* opaque */

/* A task that printing a record makes known to libtraceevent: stock's sched_switch plugin does that. */
struct text_task {
	const struct tep_format_field *pid, *comm;
};

/* Memory of one printing thread. Zero-initialised = empty. */
struct text_scratch {
	OWN_LINE struct padded room;
	struct trace_seq seq;
};

int text_scratch_init(struct text_scratch *s); /* -ENOMEM */
void text_scratch_release(struct text_scratch *s);

#define TEXT_WHY_MAX 96

/*
 * 0: *out, for text_free; -ENOTSUP: libtraceevent has to print this event, why says what does not compile,
 * or whose handler it has ("%pI", "handler of plugin_function.so"); -ENOMEM. What traces of machines hardly
 * have does not compile: addresses of networks and of hardware, bytes, arrays' items, fields as numbers.
 * Everything that records are read with is loaded by then: formats, symbols, plugins. The event must outlive
 * it.
 */
int text_compile(struct text_program **out, struct tep_event *event, char why[TEXT_WHY_MAX]);
void text_free(struct text_program *p);
/*
 * Appended to *out. What a record of len bytes does not have reads as zeros, as in a padded
 * record (tepfile.h). comm: the name of text_named's task, as tep_data_comm_from_pid knows it when the
 * records before are read; NULL where there is none.
 */
void text_print(const struct text_program *p, const void *data, size_t len, const char *comm,
		struct text_scratch *s, struct buf *out);
/* The pid of the task that the text names; NULL: it names none. */
const struct tep_format_field *text_named(const struct text_program *p);
/* The tasks that printing would register (tep_register_comm), in order; their number. */
size_t text_tasks(const struct text_program *p, const struct text_task **v);

#endif
