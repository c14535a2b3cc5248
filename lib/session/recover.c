// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finishes what a killed recorder left: drains the buffers, puts tracefs back, writes the file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/collect.h"
#include "record/sanitize.h"
#include "session/session-priv.h"

static int reopen_host(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret = host_open(&t->host, undo_dirfd(s->undo), b->name, b->path, b->clock, s->log);

	if (!ret)
		t->source = host_source(t->host);
	return ret;
}

static int reopen_remote(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret;

	if (s->remote) /* a recorder makes one */
		return -EBADMSG;
	ret = remote_reopen(&s->remote, s->tracing_dir, b, s->spool, s->log);
	if (ret)
		return ret;
	t->source = remote_source(s->remote);
	return 0;
}

/* A source that writes pages of another size than the spool holds cannot be the same buffer. */
static int reopen_track(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret = strncmp(b->kind, "hyp-", 4) ? reopen_host(s, b, t) : reopen_remote(s, b, t);

	if (ret)
		return ret;
	return t->source->page_size == b->page_size && t->source->n_cpus == b->n_cpus ? 0 : -ESTALE;
}

static int reopen_tracks(struct session *s)
{
	for (size_t i = 0; i < spool_n_buffers(s->spool); i++) {
		const struct spool_buffer *b = spool_buffer(s->spool, i);
		struct session_track *t = &s->tracks[s->n_tracks++];
		int ret = reopen_track(s, b, t);

		if (ret) {
			log_err(s->log, "cannot open %s again: %s", b->path, errno_text(ret));
			return ret;
		}
		t->started = true;
	}
	return 0;
}

static int begin_drain(struct session *s)
{
	struct recorder_opts ro = { .log = s->log };
	int ret = reopen_tracks(s);

	if (ret)
		return ret;
	/* off first: a buffer that still traces never runs empty */
	for (size_t i = 0; i < s->n_tracks; i++) {
		ret = s->tracks[i].source->ops->stop(s->tracks[i].source);
		if (ret)
			return ret;
	}
	ret = recorder_new(&s->recorder, &ro);
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		ret = recorder_add(s->recorder, s->tracks[i].source, s->spool, i);
	return ret;
}

static int drain_rest(struct session *s)
{
	int ret = begin_drain(s);

	if (!s->recorder)
		return ret;
	if (session_drain(s) && !ret)
		ret = -EIO;
	session_sum(s);
	session_keep_stats(s);
	session_keep_names(s);
	collect_symbols(s->spool, s->o->root, s->log);
	return ret;
}

/* The machine still runs as the recorder left it. */
static int restore_tracefs(struct session *s, bool armed)
{
	char *journal = spool_path(s->spool, "undo");
	int ret = journal ? undo_load(&s->undo, s->tracing_dir, journal, s->log) : -ENOMEM;

	free(journal);
	if (ret == -ENOENT)
		return 0;
	if (ret) {
		log_err(s->log, "%s/undo: %s", spool_dir(s->spool), errno_text(ret));
		return ret;
	}
	if (armed && drain_rest(s))
		log_err(s->log, "the last of the buffers could not be read; what is on disk is kept");
	ret = spool_set(s->spool, "state", armed ? "drained" : "prepared");
	return session_restore(s) ? -EIO : ret;
}

/* Bytes of a CPU's pages; 0 also when they cannot be seen. */
static uint64_t pages_size(const struct spool *spool, size_t buffer, unsigned int cpu)
{
	int fd = spool_pages_fd(spool, buffer, cpu);
	struct stat st;
	uint64_t size;

	if (fd < 0)
		return 0;
	size = fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
	close(fd);
	return size;
}

/* The spool's buffers count for a summary even when nothing is drained. */
static void sum_spool(struct session *s)
{
	s->summary->n_buffers = spool_n_buffers(s->spool);
	for (size_t i = 0; i < s->summary->n_buffers; i++) {
		const struct spool_buffer *b = spool_buffer(s->spool, i);
		struct session_buffer *out = &s->summary->buffers[i];

		snprintf(out->name, sizeof(out->name), "%s", b->name);
		out->bytes = 0;
		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++)
			out->bytes += pages_size(s->spool, i, cpu);
	}
}

/* As session_guests_write() does it. */
static int sanitize_guests(struct session *s)
{
	for (size_t i = 0; i < spool_n_buffers(s->spool); i++) {
		struct sanitized m;
		int ret;

		if (strcmp(spool_buffer(s->spool, i)->kind, "guest"))
			continue;
		ret = sanitize_buffer(s->spool, i, &m);
		if (ret) {
			log_err(s->log, "the guest's pages cannot be gone through: %s", errno_text(ret));
			return ret;
		}
		if (m.bad)
			log_warn(s->log,
				 "%" PRIu64 " of the guest's pages made no sense: their events are lost",
				 m.bad);
	}
	return 0;
}

static int recover_tracefs(struct session *s, bool armed)
{
	const char *dir = s->o->tracing_dir ? s->o->tracing_dir : spool_get(s->spool, "tracing_dir");

	if (!spool_is_this_boot(s->spool)) {
		log_info(s->log, "the machine was rebooted since: there is nothing to put back in tracefs");
		return 0;
	}
	if (!dir)
		return 0;
	s->tracing_dir = strdup(dir);
	return s->tracing_dir ? restore_tracefs(s, armed) : -ENOMEM;
}

/* They come before the pages, a guest's too. */
static bool has_formats(const struct spool *spool)
{
	struct buf text = { 0 };
	int ret = spool_get_text(spool, "formats", &text);

	buf_release(&text);
	return ret != -ENOENT;
}

static int recover_recording(struct session *s, const char *output)
{
	const char *state = spool_get(s->spool, "state");
	bool armed = state && !strcmp(state, "armed"), drained = state && !strcmp(state, "drained");
	int ret = recover_tracefs(s, armed);

	if (ret)
		return ret;
	if ((!armed && !drained) || !has_formats(s->spool)) {
		log_info(s->log, "nothing had been recorded yet; tracefs is as it was before");
		ret = spool_remove(s->spool);
		s->spool = NULL;
		return ret;
	}
	spool_drop_missing_cpus(s->spool);
	sum_spool(s);
	return sanitize_guests(s) ?: session_write(s, output) ?: session_remove_spool(s);
}

int session_recover(const char *dir, const char *output, const struct session_opts *o,
		    struct session_summary *summary)
{
	static const struct record_plan no_plan;
	struct session s = { .plan = &no_plan,
			     .o = o,
			     .log = o->log,
			     .summary = summary,
			     .fail_fd = -1,
			     .command = command_none };
	int ret;

	*summary = (struct session_summary){ 0 };
	ret = spool_open(&s.spool, dir, o->log);
	if (ret == -EBUSY)
		log_err(o->log, "the recorder of '%s' is still running", dir);
	else if (ret)
		log_err(o->log, "'%s' is no recording of hyptrace: %s", dir, errno_text(ret));
	else
		ret = recover_recording(&s, output);
	session_release(&s);
	return ret;
}
