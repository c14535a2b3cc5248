// SPDX-License-Identifier: LGPL-2.1-or-later
/* A hypervisor's buffer that somebody has switched on before: seen, and read from where it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/remote-priv.h"

/* A file that says "1". */
static bool remote_file_on(const struct remote *r, const char *name)
{
	struct buf text = { 0 };
	bool on = !read_file_at(r->dirfd, name, 4096, &text) && text.len && text.data[0] == '1';

	buf_release(&text);
	return on;
}

bool remote_is_loaded(const struct remote *r)
{
	struct buf text = { 0 };
	bool loaded = !read_file_at(r->dirfd, "buffer_size_kb", 4096, &text) && buf_str(&text) &&
		      strstr(buf_str(&text), "(loaded)");

	buf_release(&text);
	return loaded;
}

bool remote_is_joined(const struct remote *r)
{
	return r->joined;
}

bool remote_runs(const struct remote *r)
{
	return remote_file_on(r, "tracing_on") || remote_is_loaded(r);
}

/* Size and tracing_on: the one is told, the other is what it is to be again at the end. */
static int note_state(struct remote *r)
{
	char *on = str_printf("%s/tracing_on", r->path), *size = str_printf("%s/buffer_size_kb", r->path);
	char *kb = NULL;
	int ret = on && size ? undo_save(r->undo, on) ?: undo_read(r->undo, size, &kb) : -ENOMEM;

	if (!ret && parse_u64(kb, &r->size_kb))
		r->size_kb = 0;
	if (ret)
		log_err(r->log, "cannot read the state of %s: %s", r->path, errno_text(ret));
	free(kb);
	free(on);
	free(size);
	return ret;
}

/* How many are on then. */
static int join_events(struct remote *r, const struct buffer_plan *b, size_t *n_on)
{
	*n_on = 0;
	for (size_t i = 0; i < r->events.n; i++) {
		const char *event = r->events.v[i].name;
		int want = remote_is_func(b, event) ? 1 : remote_wants(r, b, event, -1), ret = 0;
		char name[300];

		if (want >= 0)
			ret = remote_switch(r, event, want);
		if (ret)
			return ret;
		snprintf(name, sizeof(name), "events/%s/%s/enable", r->events.system, event);
		*n_on += remote_file_on(r, name);
	}
	return 0;
}

int remote_join(struct remote *r, const struct buffer_plan *b)
{
	size_t n_on;
	int ret = note_state(r) ?: join_events(r, b, &n_on);

	if (ret)
		return ret;
	r->joined = true;
	r->was_on = remote_file_on(r, "tracing_on");
	if (b->funcs.n || b->notrace.n)
		log_warn(r->log, "-l and -n: the functions of %s stay as they are while it runs", r->path);
	if (b->size_kb && b->size_kb != r->size_kb)
		log_warn(r->log, "-b %llu: the size of %s cannot be changed while it runs",
			 (unsigned long long)b->size_kb, r->path);
	log_info(r->log, "%s: %s is taken over, %s, %zu events on, %llu KiB per CPU, %s", r->name, r->path,
		 r->was_on ? "running" : "with what is in it", n_on, (unsigned long long)r->size_kb,
		 r->raw ? "raw pages" : "text");
	return 0;
}
