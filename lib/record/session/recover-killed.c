// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finishes what a killed recorder left: drains the buffers, puts tracefs back, writes the file. */
#include "record/session/session-priv.h"

/* A path that leads out of tracefs cannot be the same buffer. */
static int reopen_track(struct session *s, const struct spool_buffer *b, struct session_track *t)
{
	int ret;

	if (strcmp(b->path, ".") && !tracefs_path_ok(b->path))
		return -EBADMSG;
	if (!strcmp(b->kind, "profile")) {
		ret = s->profile ? -EBADMSG : profile_reopen(&s->profile, b->n_cpus, b->page_size);
		if (!ret)
			t->source = profile_source(s->profile);
	} else if (!strncmp(b->kind, "hyp-", 4)) { /* a recorder makes one at most */
		ret = s->remote ? -EBADMSG : remote_reopen(&s->remote, s->undo, b, s->spool, s->log);
		if (!ret)
			t->source = &s->remote->source;
	} else {
		ret = undo_lock(s->undo, b->path)
			      ?: host_open(&t->source, undo_dirfd(s->undo), b->name, b->path, b->clock,
					   s->log);
	}
	return ret;
}

/* False also of a source that writes pages of another size than the spool holds: it is stopped only. */
static bool is_buffer(const struct session_track *t, const struct spool_buffer *b)
{
	return t->source && t->source->page_size == b->page_size && t->source->n_cpus == b->n_cpus;
}

struct counter {
	struct page_layout layout;
	uint64_t events;
};

static int count_page_events(void *counter, void *page, size_t size)
{
	struct counter *c = counter;
	uint64_t last;

	c->events += page_count(&c->layout, page, &last);
	return 0;
}

/*
 * Marks each CPU of which a killed recorder may have read events that it had not written yet. The kernel
 * counts what is read of a host's buffer: as many events must be in the spool.
 */
static int recover_mark_gone(struct session *s, size_t buffer)
{
	struct source *source = s->tracks[buffer].source;
	const char *name = *source->name ? source->name : "host";
	struct counter c = { .layout = page_layout_default };
	int ret = spool_page_layout(s->spool, &c.layout);
	bool uncounted = false;

	c.layout.size = source->page_size;
	for (unsigned int cpu = 0; cpu < source->n_cpus && !ret; cpu++) {
		uint64_t read, lost;

		c.events = 0;
		if (source->ops->count && !spool_has_ranges(s->spool) &&
		    !source->ops->count(source, cpu, &read, &lost)) {
			ret = spool_pages_walk(s->spool, buffer, cpu, 0, count_page_events, &c);
			if (ret || c.events >= read)
				continue;
			log_warn(s->log,
				 "%s: cpu %u: %" PRIu64
				 " events are lost: the killed recorder had read them, but not written them",
				 name, cpu, read - c.events);
		} else {
			uncounted = true;
		}
		ret = spool_mark_cut(s->spool, buffer, cpu);
	}
	if (!ret && uncounted)
		log_info(s->log,
			 "%s: events may be missing where the recorder was killed: the file shows a loss "
			 "there",
			 name);
	return ret;
}

/* Takes what is left in the buffers, also when some of them are gone. */
static int recover_drain(struct session *s)
{
	struct recorder_opts ro = { .log = s->log };
	const char *event;
	int ret = 0, gone = 0, error;

	for (size_t i = 0; i < spool_n_buffers(s->spool); i++) {
		const struct spool_buffer *b = spool_buffer(s->spool, i);
		struct session_track *t = &s->tracks[s->n_tracks++];

		error = reopen_track(s, b, t) ?: is_buffer(t, b) ? 0 : -ESTALE;
		if (error)
			gone = log_fail_errno(s->log, error, "cannot open %s again", b->path);
		t->started = t->source;
	}
	/* --start-on's triggers would switch the buffers on again. */
	event = spool_get(s->spool, "start_on");
	for (size_t i = 0; event && tracefs_path_ok(event) && i < s->n_tracks; i++)
		if (s->tracks[i].source && !strcmp(s->tracks[i].source->ops->kind, "host"))
			instance_forget_region(s->undo, s->tracks[i].source->path, event);
	/* off first: a buffer that still traces never runs empty */
	for (size_t i = 0; i < s->n_tracks; i++) {
		error = s->tracks[i].source ? s->tracks[i].source->ops->stop(s->tracks[i].source) : 0;
		ret = ret ?: error;
	}
	ret = ret ?: recorder_new(&s->recorder, &ro);
	if (ret)
		return ret;
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (is_buffer(&s->tracks[i], spool_buffer(s->spool, i)))
			ret = recover_mark_gone(s, i)
				      ?: recorder_add(s->recorder, s->tracks[i].source, s->spool, i);
	if (session_drain(s) && !ret)
		ret = -EIO;
	session_region_keep(s);
	session_sum(s);
	kernel_symbols_read(&s->symbols, s->spool);
	session_keep_texts(s);
	return ret ?: gone;
}

/* Of changes of this boot; a guest's spool has no journal. */
static int recover_tracefs(struct session *s, bool armed)
{
	bool has;
	int ret = spool_is_this_boot(s->spool, &has);

	if (!ret && !has)
		log_info(s->log, "the machine was rebooted since: there is nothing to put back in tracefs");
	if (!ret && has && faccessat(spool_dirfd(s->spool), "undo", F_OK, 0) < 0) {
		has = false;
		ret = errno == ENOENT ? 0 : -errno;
	}
	if (ret)
		log_err(s->log, "cannot find out whether tracefs must be put back: %s", errno_text(ret));
	if (ret || !has)
		return ret;
	/* the machine still runs as the recorder left it; on error nothing is changed */
	s->tracing_dir = tracefs_dir(s->o->tracing_dir, s->log);
	ret = s->tracing_dir ? undo_load(&s->undo, s->tracing_dir, spool_dirfd(s->spool), "undo", s->log)
			     : -ENOENT;
	if (ret)
		log_err(s->log,
			"tracefs cannot be put back: nothing is done; run `hyptrace recover %s` again when "
			"it can, or remove %s/undo to leave it as it is",
			spool_dir(s->spool), spool_dir(s->spool));
	if (!ret && armed) {
		/* before tracefs is put back, which would empty them */
		s->failure = recover_drain(s);
		if (s->failure)
			log_err(s->log, "the last of the buffers could not be read; what is on disk is kept");
		spool_free_reserve(s->spool);
		ret = spool_set(s->spool, "state", "drained");
		if (ret)
			log_err(s->log, "%s/session: %s", spool_dir(s->spool), errno_text(ret));
	}
	if (!ret)
		session_restore(s);
	return ret;
}

/* True if the output would go with the spool when that is removed. */
static bool output_in_spool(const struct spool *of, const char *output, const struct log *log)
{
	const char *slash = strrchr(output, '/');
	struct stat spool, at;
	bool in = false;

	for (int up = 0; up < 2 && !in && !fstat(spool_dirfd(of), &spool); up++) {
		char *dir =
			str_printf("%.*s%s", slash ? (int)(slash - output + 1) : 0, output, up ? ".." : ".");

		in = dir && !stat(dir, &at) && same_file(&at, &spool);
		free(dir);
	}
	if (in)
		log_err(log, "'%s' is in the spool, which is removed in the end: name another file with -o",
			output);
	return in;
}

/* True: the spool has pages that a file can be made of. */
static bool has_recording(const struct spool *spool)
{
	const char *state = spool_get(spool, "state");
	struct buf formats = { 0 };
	bool has;

	if (!state || (strcmp(state, "armed") && strcmp(state, "drained")))
		return false;
	/* they come before the pages, a guest's too */
	has = spool_get_text(spool, "formats", &formats) != -ENOENT;
	buf_release(&formats);
	return has;
}

/* Makes the spool's pages ready to be written, and adds its buffers to the summary, which counts them. */
static int recover_pages(struct session *s, struct spool *spool)
{
	const char *guest = spool_get(spool, "guest");
	int ret;

	spool_drop_missing_cpus(spool);
	for (size_t i = 0; i < spool_n_buffers(spool) && s->summary->n_buffers < SESSION_BUFFERS_MAX; i++) {
		const struct spool_buffer *b = spool_buffer(spool, i);
		struct session_buffer *out = &s->summary->buffers[s->summary->n_buffers++];

		snprintf(out->name, sizeof(out->name), "%s%s%s", guest ?: "", guest && *b->name ? " " : "",
			 b->name);
		out->bytes = 0;
		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++) {
			struct spool_range range;
			int fd = spool_pages_open(spool, i, cpu, &range);

			if (fd < 0) /* they cannot be seen */
				continue;
			close(fd);
			out->bytes += range.to - range.from;
		}
	}
	ret = sanitize_spool(spool, s->log);
	/* the last pages were a guest's, or went with another boot */
	if (!ret && !strcmp(spool_get(spool, "state"), "armed"))
		ret = spool_mark_all_cut(spool) ?: spool_set(spool, "state", "drained");
	return ret;
}

/* output: of the host's file, where another is asked for; else NULL. */
static int recover_add_guest(struct session *s, const char *dir, const char *output)
{
	struct session_guest g = { .recovered = true };
	int ret = spool_open(&g.spool, dir, NULL);
	const char *name = ret ? NULL : spool_get(g.spool, "guest");
	size_t stem = output ? path_stem(output) : 0;

	if (ret)
		log_warn(s->log, "'%s' is left as it is: %s", dir, errno_text(ret));
	if (!name || spool_get_number(g.spool, "host_traceid", 0) != s->guests.host_trace_id) {
		spool_close(g.spool); /* another recording's */
		return 0;
	}
	g.spec.name = strdup(name);
	g.output = output ? str_printf("%.*s-%s%s", (int)stem, output, name, output + stem)
			  : spool_output(g.spool);
	if (!g.spec.name || !g.output)
		ret = -ENOMEM;
	else if (output_in_spool(g.spool, g.output, s->log))
		ret = -EINVAL;
	ret = ret ?: array_push(&s->guests.v, &s->guests.n, &g, sizeof(g));
	if (ret) {
		spool_close(g.spool);
		free(g.spec.name);
		free(g.output);
	}
	return ret;
}

/* Opens the spools beside the host's that are of its guests: "k-vm.dat.spool" beside "k.dat.spool". */
static int recover_find_guests(struct session *s, const char *output)
{
	const char *dir = spool_dir(s->spool), *slash = strrchr(dir, '/'), *base = slash ? slash + 1 : dir;
	size_t stem, len = strlen(base);
	struct strlist names = { 0 };
	char *file;
	int ret;

	if (len < 7 || strcmp(base + len - 6, ".spool"))
		return 0;
	file = strndup(base, len - 6);
	if (!file)
		return -ENOMEM;
	stem = path_stem(file);
	ret = read_dir_at(spool_dirfd(s->spool), "..", &names);
	for (size_t i = 0; i < names.n && !ret; i++) {
		const char *name = names.v[i], *end = name + strlen(name) - strlen(base + stem);
		char *path;

		if (end <= name + stem || strncmp(name, file, stem) || name[stem] != '-' ||
		    strcmp(end, base + stem))
			continue;
		path = str_printf("%.*s%s", (int)(base - dir), dir, name);
		ret = path ? recover_add_guest(s, path, output) : -ENOMEM;
		free(path);
	}
	strlist_release(&names);
	free(file);
	return ret;
}

/* Writes the guests' files and removes their spools. One that fails keeps its spool; the first error. */
static int recover_guests(struct session *s, bool align)
{
	struct session_guests *all = &s->guests;
	int ret = 0, error;

	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];

		g->error = has_recording(g->spool) ? recover_pages(s, g->spool) : -ENODATA;
	}
	/*
	 * The guests' clocks by the host's windows: what else the recorder knew of them is gone. Those that
	 * it has aligned itself, before it was killed, take no part.
	 */
	for (size_t i = 0; i < all->n; i++)
		all->v[i].recovered = !spool_get(all->v[i].spool, SPOOL_ALIGNED);
	error = align && all->n ? spool_repair(s->spool, s->log) ?: workers_new(&all->workers, all->n) ?:
					  session_guests_align_clocks(all, s->spool)
				: 0;
	workers_free(all->workers);
	all->workers = NULL;
	if (error)
		log_warn(s->log, "the guests' clocks are not aligned: %s", errno_text(error));
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];
		struct dat_from_spool_opts fo = { .output = g->output, .log = s->log };

		g->error = g->error ?: dat_from_spool(g->spool, &fo);
		if (!g->error)
			log_info(s->log, "guest %s: %s", g->spec.name, g->output);
		if (g->error && g->error != -ENODATA) {
			snprintf(s->summary->kept, sizeof(s->summary->kept), "%s", spool_dir(g->spool));
			ret = ret ?: g->error;
			continue;
		}
		spool_remove(g->spool);
		g->spool = NULL;
	}
	return ret;
}

int session_recover(const char *dir, const char *output, const struct session_opts *o,
		    struct session_summary *summary)
{
	static const struct record_plan no_plan;
	struct session s = session_new(&no_plan, o, summary);
	const char *state;
	char *path;
	int ret = spool_open(&s.spool, dir, o->log);

	if (ret == -EBUSY)
		log_err(o->log, "the recorder of '%s' is still running", dir);
	else if (ret == -EPERM)
		log_err(o->log,
			"'%s' is not recovered: a spool must belong to the user who recovers it, and to no "
			"other",
			dir);
	else if (ret)
		log_err(o->log, "'%s' is no recording of hyptrace: %s", dir, errno_text(ret));
	if (ret)
		goto out;
	state = spool_get(s.spool, "state");
	path = output ? strdup(output) : spool_output(s.spool);
	ret = path && output_in_spool(s.spool, path, o->log)
		      ? -EINVAL
		      : recover_tracefs(&s, state && !strcmp(state, "armed"));
	free(path);
	summary->n_buffers = 0; /* of those that were drained again: all that are there are summed up */
	s.guests.host_trace_id = spool_get_number(s.spool, "traceid", 0);
	if (!ret && !spool_get(s.spool, "guest"))
		ret = recover_find_guests(&s, output);
	if (ret)
		goto out;
	spool_remove_part(s.spool); /* all that is in it is in the whole */
	if (has_recording(s.spool))
		ret = recover_pages(&s, s.spool) ?: recover_guests(&s, true) ?: session_write(&s, output);
	else if (s.guests.n)
		ret = recover_guests(&s, false);
	else
		log_info(o->log, "there is nothing to recover");
	if (!ret)
		session_remove_spool(&s);
	ret = ret ?: summary->not_restored ? -EIO : s.failure;
out:
	session_release(&s);
	return ret;
}
