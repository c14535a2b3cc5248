// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finishes what a killed recorder left: drains the buffers, puts tracefs back, writes the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/collect.h"
#include "record/sanitize.h"
#include "spool/range.h"
#include "session/session-priv.h"
#include "tracefs/dir.h"

static int reopen_host(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret = undo_lock(s->undo, b->path);

	if (!ret)
		ret = host_open(&t->host, undo_dirfd(s->undo), b->name, b->path, b->clock, s->log);
	if (!ret)
		t->source = host_source(t->host);
	return ret;
}

static int reopen_remote(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret;

	if (s->remote) /* a recorder makes one */
		return -EBADMSG;
	ret = remote_reopen(&s->remote, s->undo, b, s->spool, s->log);
	if (ret)
		return ret;
	t->source = remote_source(s->remote);
	return 0;
}

static int reopen_profile(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret = s->profile ? -EBADMSG : profile_reopen(&s->profile, b->n_cpus, b->page_size);

	if (!ret)
		t->source = profile_source(s->profile);
	return ret;
}

/*
 * A path that leads out of tracefs, or a source that writes pages of another size than
 * the spool holds, cannot be the same buffer.
 */
static int reopen_track(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret;

	if (strcmp(b->path, ".") && !tracefs_path_ok(b->path))
		return -EBADMSG;
	if (!strcmp(b->kind, "profile"))
		ret = reopen_profile(s, b, t);
	else
		ret = strncmp(b->kind, "hyp-", 4) ? reopen_host(s, b, t) : reopen_remote(s, b, t);
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

/* --start-on's triggers would switch the buffers on again. */
static void session_region_forget(struct session *s)
{
	const char *event = spool_get(s->spool, "start_on");

	for (size_t i = 0; event && tracefs_path_ok(event) && i < s->n_tracks; i++)
		if (s->tracks[i].host)
			instance_forget_region(s->undo, s->tracks[i].source->path, event);
}

static int begin_drain(struct session *s)
{
	struct recorder_opts ro = { .log = s->log };
	int ret = reopen_tracks(s);

	if (ret)
		return ret;
	session_region_forget(s);
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
	int ret = begin_drain(s), lost;

	if (!s->recorder)
		return ret;
	if (session_drain(s) && !ret)
		ret = -EIO;
	session_region_keep(s);
	session_sum(s);
	lost = session_keep_stats(s) ?: session_keep_names(s) ?: collect_symbols(s->spool, s->o->root, s->log);
	if (lost)
		log_warn(s->log, "names and statistics are incomplete: %s", errno_text(lost));
	return ret;
}

/* Before tracefs is put back, which would empty them. */
static int drain_buffers(struct session *s)
{
	int ret;

	s->failure = drain_rest(s);
	if (s->failure)
		log_err(s->log, "the last of the buffers could not be read; what is on disk is kept");
	spool_free_reserve(s->spool);
	ret = spool_set(s->spool, "state", "drained");
	if (ret)
		log_err(s->log, "%s/session: %s", spool_dir(s->spool), errno_text(ret));
	return ret;
}

/* Bytes of a CPU's pages; 0 also when they cannot be seen. */
static uint64_t pages_size(const struct spool *spool, size_t buffer, unsigned int cpu)
{
	struct spool_range range;
	int fd = spool_pages_open(spool, buffer, cpu, &range);

	if (fd < 0)
		return 0;
	close(fd);
	return range.to - range.from;
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

/* The machine still runs as the recorder left it. On error nothing is changed. */
static int open_tracefs(struct session *s)
{
	int ret;

	s->tracing_dir = tracefs_dir(s->o->tracing_dir, s->log);
	ret = s->tracing_dir ? undo_load(&s->undo, s->tracing_dir, spool_dirfd(s->spool), "undo", s->log)
			     : -ENOENT;
	if (ret)
		log_err(s->log,
			"tracefs cannot be put back: nothing is done; run `hyptrace recover %s` again"
			" when it can, or remove %s/undo to leave it as it is",
			spool_dir(s->spool), spool_dir(s->spool));
	return ret;
}

/* Whether there are changes of this boot; a guest's spool has no journal. */
static int has_journal(struct session *s, bool *has)
{
	int ret = spool_is_this_boot(s->spool, has);

	if (!ret && !*has)
		log_info(s->log, "the machine was rebooted since: there is nothing to put back in tracefs");
	if (!ret && *has && faccessat(spool_dirfd(s->spool), "undo", F_OK, 0) < 0) {
		*has = false;
		ret = errno == ENOENT ? 0 : -errno;
	}
	if (ret)
		log_err(s->log, "cannot tell whether tracefs is to be put back: %s", errno_text(ret));
	return ret;
}

static int recover_tracefs(struct session *s, bool armed)
{
	bool has;
	int ret = has_journal(s, &has);

	if (ret || !has)
		return ret;
	ret = open_tracefs(s);
	if (!ret && armed)
		ret = drain_buffers(s);
	if (!ret)
		session_restore(s);
	return ret;
}

/* They come before the pages, a guest's too. */
static bool has_formats(const struct spool *spool)
{
	struct buf text = { 0 };
	int ret = spool_get_text(spool, "formats", &text);

	buf_release(&text);
	return ret != -ENOENT;
}

/* Whether the output would go with the spool when that is removed. */
static bool output_in_spool(const struct session *s, const char *output)
{
	const char *slash = strrchr(output, '/');
	struct stat spool, at;
	bool in = false;

	for (int up = 0; up < 2 && !in && !fstat(spool_dirfd(s->spool), &spool); up++) {
		char *dir =
			str_printf("%.*s%s", slash ? (int)(slash - output + 1) : 0, output, up ? ".." : ".");

		in = dir && !stat(dir, &at) && at.st_dev == spool.st_dev && at.st_ino == spool.st_ino;
		free(dir);
	}
	if (in)
		log_err(s->log,
			"'%s' is in the spool, which is removed in the end: name another file with -o",
			output);
	return in;
}

static int recover_recording(struct session *s, const char *output)
{
	const char *state = spool_get(s->spool, "state");
	bool armed = state && !strcmp(state, "armed"), drained = state && !strcmp(state, "drained");
	char *path = output ? strdup(output) : spool_output(s->spool);
	int ret = path && output_in_spool(s, path) ? -EINVAL : recover_tracefs(s, armed);

	free(path);
	if (ret)
		return ret;
	spool_remove_part(s->spool); /* all that is in it is in the whole */
	if ((armed || drained) && has_formats(s->spool)) {
		spool_drop_missing_cpus(s->spool);
		sum_spool(s);
		ret = sanitize_spool(s->spool, s->log) ?: session_write(s, output);
	} else {
		log_info(s->log, "there is nothing to recover");
	}
	if (!ret)
		session_remove_spool(s);
	return ret ?: s->summary->not_restored ? -EIO : s->failure;
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
	else if (ret == -EPERM)
		log_err(o->log,
			"'%s' is left alone: a spool must belong to who recovers it, and to nobody else",
			dir);
	else if (ret)
		log_err(o->log, "'%s' is no recording of hyptrace: %s", dir, errno_text(ret));
	else
		ret = recover_recording(&s, output);
	session_release(&s);
	return ret;
}
