// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a killed recorder left behind: drained, tracefs put back, made into a file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/collect.h"
#include "record/sanitize.h"
#include "session/session-priv.h"

static int reopen(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int dirfd, ret;

	if (!strncmp(b->kind, "hyp-", 4)) {
		ret = remote_reopen(&s->remote, s->tracing_dir, b, s->spool, s->log);
		if (ret)
			return ret;
		remote_set_spool(s->remote, s->spool);
		t->source = remote_source(s->remote);
		return 0;
	}
	dirfd = open(s->tracing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return -errno;
	ret = host_open(&t->host, dirfd, b->name, b->path, b->clock, s->log);
	close(dirfd);
	if (!ret)
		t->source = host_source(t->host);
	return ret;
}

/* A source that writes pages of another size than the spool holds cannot be the same buffer. */
static int reopen_all(struct session *s)
{
	for (size_t i = 0; i < spool_n_buffers(s->spool) && i < SESSION_BUFFERS_MAX; i++) {
		const struct spool_buffer *b = spool_buffer(s->spool, i);
		int ret = reopen(s, b, &s->tracks[i]);

		if (!ret && (s->tracks[i].source->page_size != b->page_size ||
			     s->tracks[i].source->n_cpus != b->n_cpus))
			ret = -ESTALE;
		if (ret) {
			log_err(s->log, "cannot open %s again: %s", b->path, errno_text(ret));
			return ret;
		}
		s->tracks[i].started = true;
		s->n_tracks++;
	}
	return 0;
}

static int drain_rest(struct session *s)
{
	struct recorder_opts ro = { .log = s->log };
	int ret = reopen_all(s);

	/* off first: a buffer that still traces never runs empty */
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		ret = s->tracks[i].source->ops->stop(s->tracks[i].source);
	if (!ret)
		ret = recorder_new(&s->recorder, &ro);
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		ret = recorder_add(s->recorder, s->tracks[i].source, s->spool, i);
	if (!s->recorder)
		return ret;
	if (session_drain(s) && !ret)
		ret = -EIO;
	session_sum(s);
	session_keep_stats(s);
	session_keep_names(s);
	collect_symbols(s->spool, s->log);
	return ret;
}

/* The machine still runs as the recorder left it. */
static int put_back(struct session *s, bool armed)
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

/* The spool's buffers count for a summary even when nothing is drained. */
static void sum_spool(struct session *s)
{
	s->summary->n_buffers = spool_n_buffers(s->spool);
	for (size_t i = 0; i < s->summary->n_buffers && i < SESSION_BUFFERS_MAX; i++) {
		const struct spool_buffer *b = spool_buffer(s->spool, i);
		struct session_buffer *out = &s->summary->buffers[i];

		strncpy(out->name, b->name, sizeof(out->name) - 1);
		out->bytes = 0;
		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++) {
			int fd = spool_pages_fd(s->spool, i, cpu);
			struct stat st;

			if (fd >= 0 && !fstat(fd, &st))
				out->bytes += (uint64_t)st.st_size;
			if (fd >= 0)
				close(fd);
		}
	}
}

/* A guest's pages as well as session_guests_write has them. */
static int mend(struct session *s)
{
	struct sanitized m;
	int ret = 0;

	for (size_t i = 0; i < spool_n_buffers(s->spool) && !ret; i++) {
		if (strcmp(spool_buffer(s->spool, i)->kind, "guest"))
			continue;
		ret = sanitize_buffer(s->spool, i, &m);
		if (ret)
			log_err(s->log, "the guest's pages cannot be gone through: %s", errno_text(ret));
		else if (m.bad)
			log_warn(s->log,
				 "%" PRIu64 " of the guest's pages made no sense: their events are lost",
				 m.bad);
	}
	return ret;
}

static int recover(struct session *s, const char *output)
{
	const char *state = spool_get(s->spool, "state");
	bool armed = state && !strcmp(state, "armed"), drained = state && !strcmp(state, "drained");
	const char *dir = s->o->tracing_dir ? s->o->tracing_dir : spool_get(s->spool, "tracing_dir");
	int ret = 0;

	if (!spool_is_this_boot(s->spool)) {
		log_info(s->log, "the machine was rebooted since: there is nothing to put back in tracefs");
	} else if (dir) {
		s->tracing_dir = strdup(dir);
		ret = s->tracing_dir ? put_back(s, armed) : -ENOMEM;
	}
	if (ret)
		return ret;
	if (!armed && !drained) {
		log_info(s->log, "nothing had been recorded yet; tracefs is as it was before");
		ret = spool_remove(s->spool);
		s->spool = NULL;
		return ret;
	}
	sum_spool(s);
	ret = mend(s);
	return ret ? ret : session_write(s, output) ?: session_remove_spool(s);
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
		ret = recover(&s, output);
	session_release(&s);
	return ret;
}
