// SPDX-License-Identifier: LGPL-2.1-or-later
/* A profile as a source for the recorder: what drains it, and what its file has beside the pages. */
#include <errno.h>
#include <unistd.h>

#include "profile/profile-priv.h"
#include "record/rawpipe.h"

static struct profile *profile_of(struct source *s)
{
	return (struct profile *)s; /* its first member */
}

/* ---- switching ---------------------------------------------------------------------------- */

static int profile_start(struct source *s)
{
	return profile_switch(profile_of(s), true);
}

static int profile_stop(struct source *s)
{
	return profile_switch(profile_of(s), false);
}

/* ---- draining ------------------------------------------------------------------------------ */

struct profile_out {
	struct drain *d;
	uint64_t at; /* in the spool's file, of the page that is filled */
};

static int profile_emit(void *ctx, const void *page, size_t size)
{
	struct profile_out *o = ctx;
	int ret = pwrite_all(o->d->out, page, size, o->at);

	if (ret)
		return ret;
	o->at += size;
	o->d->stats->bytes += size;
	return 0;
}

/* Also the page that is being filled: a kill -9 then costs nothing that was read. */
static int profile_pass(struct profile *p, unsigned int cpu, struct page_writer *w, struct profile_out *o)
{
	uint64_t events = o->d->stats->events;
	int ret = profile_read(p, cpu, w, o->d->stats);
	const void *page = ret || events == o->d->stats->events ? NULL : page_writer_peek(w);

	return page ? pwrite_all(o->d->out, page, w->size, o->at) : ret;
}

static int profile_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct profile *p = profile_of(s);
	int fd = profile_fd(p, cpu), ret;
	off_t end = lseek(d->out, 0, SEEK_CUR);
	struct profile_out o = { .d = d, .at = (uint64_t)end };
	struct page_writer w;
	bool last;

	if (fd < 0)
		return 0;
	ret = end < 0 ? -errno : page_writer_init(&w, s->page_size, profile_emit, &o);
	if (ret)
		return ret;
	do {
		last = atomic_load(d->stopping);
		ret = profile_pass(p, cpu, &w, &o);
		if (!ret && !last)
			ret = rawpipe_wait(fd, d);
	} while (!ret && !last);
	ret = ret ?: page_flush(&w, true);
	page_writer_release(&w);
	return ret;
}

static int profile_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	buf_printf(out,
		   "CPU: %u\nentries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\n"
		   "dropped events: 0\nread events: %llu\n",
		   cpu, (unsigned long long)st->lost, (unsigned long long)st->events);
	return buf_status(out);
}

static const struct source_ops profile_ops = {
	.kind = "profile",
	.start = profile_start,
	.stop = profile_stop,
	.drain = profile_drain,
	.stat = profile_stat,
};

/* ---- around the recording ---------------------------------------------------------------------- */

int profile_keep_formats(unsigned int first_id, struct spool *spool)
{
	struct buf formats = { 0 }, one = { 0 };
	int ret;

	for (size_t i = 0; i < PROFILE_EVENTS; i++) {
		one.len = 0;
		profile_format(i, first_id, &one);
		buf_printf(&formats, "%s %zu\n", PROFILE_SYSTEM, one.len);
		buf_add(&formats, one.data, one.len);
		formats.bad |= one.bad;
	}
	ret = buf_status(&formats) ?: spool_append_text(spool, "formats", formats.data, formats.len);
	buf_release(&formats);
	buf_release(&one);
	return ret;
}

int profile_collect_names(const struct profile *p, struct spool *spool)
{
	struct buf names = { 0 };
	int ret;

	profile_tasks_list(p->tasks, &names);
	ret = buf_status(&names);
	if (!ret && names.len)
		ret = spool_append_text(spool, "saved_cmdlines", names.data, names.len);
	buf_release(&names);
	return ret;
}

struct source *profile_source(struct profile *p)
{
	p->source.ops = &profile_ops;
	return &p->source;
}
