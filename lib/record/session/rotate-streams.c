// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams of a long recording and their progress; requests for a dump. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/session/rotate-priv.h"
#include "base/files.h"

#define READS_MAX 16

/* An instance for this event only, without a region's triggers. */
static int open_dump_on(struct rotate *r)
{
	const struct trigger_plan *t = &r->s->plan->dump_on;
	struct instance_opts io = { .plan = &r->dump_plan, .log = r->s->log };
	struct buffer_plan *b = record_plan_add_buffer(&r->dump_plan, "hyptrace-dump");
	struct event_plan *e = b ? buffer_plan_add_event(b, t->event, false) : NULL;

	if (!e)
		return -ENOMEM;
	event_name_colon(e->name);
	e->filter = t->filter ? strdup(t->filter) : NULL;
	if (t->filter && !e->filter)
		return -ENOMEM;
	return instance_open(&r->dump_on, r->s->undo, b, &io) ?: instance_setup(r->dump_on);
}

int rotate_prepare(struct session *s)
{
	struct rotate *r;

	if (!record_plan_numbered(s->plan) && !s->plan->max_cpu_kb)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	s->rotate = r;
	r->s = s;
	r->dump_on_fd = -1;
	return s->plan->dump_on.event ? open_dump_on(r) : 0;
}

struct instance *rotate_instance(const struct session *s)
{
	return s->rotate ? s->rotate->dump_on : NULL;
}

int rotate_started(struct session *s)
{
	struct rotate *r = s->rotate;
	char path[INSTANCE_PATH];

	if (r)
		r->began = s->started_at;
	if (!r || !r->dump_on)
		return 0;
	instance_file(r->dump_on, path, "trace_pipe");
	r->dump_on_fd = openat(undo_dirfd(s->undo), path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (r->dump_on_fd < 0) {
		int ret = -errno;

		return log_fail_errno(s->log, ret, "cannot open %s", path);
	}
	return instance_start(r->dump_on);
}

int rotate_fd(const struct session *s)
{
	return s->rotate && !s->rotate->writing ? s->rotate->dump_on_fd : -1;
}

/* Whether there was anything to read; takes it, but of an event that comes all the time only some. */
static bool take_all(int fd)
{
	char text[65536];
	int n = 0;

	while (fd >= 0 && n < READS_MAX && read(fd, text, sizeof(text)) > 0)
		n++;
	return n;
}

bool rotate_is_asked(struct rotate *r)
{
	bool by_signal = take_all(r->s->o->dump_fd);

	return take_all(r->dump_on_fd) || by_signal;
}

static int add_streams(struct rotate *r, struct spool *spool, size_t buffer, const struct source *source)
{
	struct rotate_piece *p = &r->pieces[r->n_pieces - 1];

	for (unsigned int cpu = 0; cpu < source->n_cpus; cpu++) {
		const struct rotate_stream t = { spool, buffer, cpu, source->page_size,
						 recorder_stats(r->s->recorder, source, cpu) };

		if (!t.stats)
			return -EINVAL;
		if (array_push(&r->streams, &r->n_streams, &t, sizeof(t)))
			return -ENOMEM;
		p->n++;
	}
	return 0;
}

static int add_piece(struct rotate *r, struct spool *spool, size_t guest)
{
	const struct rotate_piece p = { .spool = spool, .first = r->n_streams, .guest = guest };

	return array_push(&r->pieces, &r->n_pieces, &p, sizeof(p));
}

int rotate_open(struct rotate *r)
{
	struct session *s = r->s;
	int ret = add_piece(r, s->spool, 0);

	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		ret = add_streams(r, s->spool, i, s->tracks[i].source);
	for (size_t i = 0; i < s->guests.n && !ret; i++) {
		struct session_guest *g = &s->guests.v[i];

		if (!session_guest_takes_part(g) || g->not_added)
			continue;
		ret = add_piece(r, g->spool, i) ?: add_streams(r, g->spool, 0, &g->peer->source);
		if (!ret && peer_profile(g->peer))
			ret = add_streams(r, g->spool, 1, peer_profile(g->peer));
	}
	if (ret)
		return ret;
	r->from = calloc(r->n_streams + 1, sizeof(*r->from));
	r->to = calloc(r->n_streams + 1, sizeof(*r->to));
	r->now = calloc(r->n_streams + 1, sizeof(*r->now));
	r->ranges = calloc(r->n_streams + 1, sizeof(*r->ranges));
	return r->from && r->to && r->now && r->ranges ? workers_new(&r->writer, 1) : -ENOMEM;
}

void rotate_positions(const struct rotate *r, uint64_t *out)
{
	for (size_t i = 0; i < r->n_streams; i++)
		out[i] = r->streams[i].stats->bytes / r->streams[i].page_size * r->streams[i].page_size;
}

int rotate_set_ranges(struct rotate *r, const struct rotate_piece *p, struct spool *spool, const uint64_t *to)
{
	for (size_t k = 0; k < p->n; k++)
		r->ranges[k] =
			(struct spool_range){ r->from[p->first + k], to ? to[p->first + k] : UINT64_MAX };
	return spool_set_ranges(spool, r->number, r->ranges);
}

struct counter_log *rotate_log(const struct rotate *r, size_t i)
{
	const struct session_guests *g = &r->s->guests;

	if (!i)
		return g->clocks ? clock_sampler_host(g->clocks) : NULL;
	return session_guest_takes_part(&g->v[i - 1]) ? peer_counter_growing(g->v[i - 1].peer) : NULL;
}

void rotate_free(struct rotate *r)
{
	if (!r)
		return;
	instance_free(r->dump_on);
	record_plan_release(&r->dump_plan);
	fd_close(&r->dump_on_fd);
	workers_free(r->writer);
	for (size_t i = 0; i < r->n_marks; i++)
		free(r->marks[i].at);
	free(r->marks);
	free(r->pieces);
	free(r->streams);
	free(r->from);
	free(r->to);
	free(r->now);
	free(r->ranges);
	free(r);
}
