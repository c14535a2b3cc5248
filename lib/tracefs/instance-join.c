// SPDX-License-Identifier: LGPL-2.1-or-later
/* A buffer that somebody has switched on before (the kernel's command line, a shell): seen, and joined. */
#include "tracefs/instance-priv.h"

#include <stdio.h>
#include <string.h>

#define LIST_MAX (16u << 20)

bool instance_runs(int tracing_dirfd, const char *path)
{
	struct buf events = { 0 }, tracer = { 0 };
	char file[INSTANCE_PATH];
	bool runs;

	snprintf(file, sizeof(file), "%s/set_event", path);
	runs = !read_file_at(tracing_dirfd, file, LIST_MAX, &events) && events.len;
	snprintf(file, sizeof(file), "%s/current_tracer", path);
	if (!runs && !read_file_at(tracing_dirfd, file, 256, &tracer) && buf_str(&tracer))
		runs = tracer.len && strcmp(buf_str(&tracer), "nop\n") != 0;
	buf_release(&events);
	buf_release(&tracer);
	return runs;
}

/* What would change the buffer for whoever switched it on, or clear it. */
static bool wants_settings(const struct buffer_plan *b)
{
	return b->tracer || b->size_kb || b->subbuf_kb || b->cpumask || b->options.n || b->funcs.n ||
	       b->notrace.n || b->graph.n || b->max_graph_depth >= 0;
}

int instance_join(struct instance *i)
{
	char path[INSTANCE_PATH];
	int ret = undo_save(i->undo, instance_file(i, path, "tracing_on"));

	/* each event that is switched changes it */
	ret = ret ?: undo_keep_list(i->undo, instance_file(i, path, "set_event"));
	if (ret) {
		instance_complain(i, LOG_ERROR, path, "", ret, NULL);
		return ret;
	}
	if (wants_settings(i->buffer))
		log_warn(i->o.log, "%s%sthe buffer runs already: of what was asked only its events are added",
			 i->buffer->name, *i->buffer->name ? ": " : "");
	return instance_note_clock(i) ?: instance_setup_events(i);
}
