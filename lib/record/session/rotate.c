// SPDX-License-Identifier: LGPL-2.1-or-later
/* A long recording's files: their time, their writing, pages that no longer count, and requests for one. */
#include "record/session/session-priv.h"

/* One CPU of one buffer. */
struct rotate_stream {
	struct spool *spool;
	size_t buffer;
	unsigned int cpu;
	uint32_t page_size;
	const struct drain_stats *stats;
};

/* A spool: the host's is the first one, guests' follow. */
struct rotate_piece {
	struct spool *spool;
	size_t first, n; /* of the streams */
	size_t guest;	 /* its number; of the host's: not used */
};

struct rotate_mark {
	double time; /* session_now() */
	uint64_t *at;
};

struct rotate {
	struct session *s;
	struct rotate_piece *pieces;
	size_t n_pieces;
	struct rotate_stream *streams;
	size_t n_streams;
	/* bytes of each stream: where what counts begins; where the file being written ends; scratch */
	uint64_t *from, *to, *now;
	struct spool_range *ranges; /* scratch, as many as streams */
	struct rotate_mark *marks;  /* --flight: where the streams were, the oldest first */
	size_t n_marks;
	uint64_t number; /* of the next file; 0: there is only one */
	double began, cut_at;
	uint64_t ended, flushed_from; /* boot ns */
	uint64_t lost;		      /* up to the last cut */
	struct workers *writer;
	bool writing, symbols, asked;
	atomic_bool written, ending;
	int error; /* of the writer */

	struct record_plan dump_plan; /* one buffer, of --dump-on */
	struct instance *dump_on;     /* NULL: none */
	int dump_on_fd;
};

#define READS_MAX 16

int rotate_prepare(struct session *s)
{
	const struct trigger_plan *t = &s->plan->dump_on;
	struct instance_opts io = { .log = s->log };
	struct buffer_plan *b;
	struct event_plan *e;
	struct rotate *r;

	if (!record_plan_numbered(s->plan) && !s->plan->max_cpu_kb)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	s->rotate = r;
	r->s = s;
	r->dump_on_fd = -1;
	if (!t->event)
		return 0;
	/* an instance for this event only, without a region's triggers */
	io.plan = &r->dump_plan;
	b = record_plan_add_buffer(&r->dump_plan, "hyptrace-dump");
	e = b ? buffer_plan_add_event(b, t->event, false) : NULL;
	if (!e)
		return -ENOMEM;
	event_name_colon(e->name);
	if (t->filter && str_take(&e->filter, strdup(t->filter)))
		return -ENOMEM;
	return instance_open(&r->dump_on, s->undo, b, &io) ?: instance_setup(r->dump_on);
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
	if (r->dump_on_fd < 0)
		return log_fail_errno(s->log, -errno, "cannot open %s", path);
	return instance_start(r->dump_on);
}

int rotate_fd(const struct session *s)
{
	return s->rotate && !s->rotate->writing ? s->rotate->dump_on_fd : -1;
}

/* True if there was anything to read; takes it, but of an event that comes all the time only some. */
static bool take_all(int fd)
{
	char text[65536];
	int n = 0;

	while (fd >= 0 && n < READS_MAX && read(fd, text, sizeof(text)) > 0)
		n++;
	return n;
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

/* Present end of each stream, in whole pages. */
static void rotate_positions(const struct rotate *r, uint64_t *out)
{
	for (size_t i = 0; i < r->n_streams; i++)
		out[i] = r->streams[i].stats->bytes / r->streams[i].page_size * r->streams[i].page_size;
}

/* Notes in that spool (its own, or a part) that a piece's pages count from r->from to `to` (NULL: open). */
static int rotate_set_ranges(struct rotate *r, const struct rotate_piece *p, struct spool *spool,
			     const uint64_t *to)
{
	for (size_t k = 0; k < p->n; k++)
		r->ranges[k] =
			(struct spool_range){ r->from[p->first + k], to ? to[p->first + k] : UINT64_MAX };
	return spool_set_ranges(spool, r->number, r->ranges);
}

/* The log of the host's clocks (0) or of a guest's (1 ...), which grows; NULL: no log. */
static struct counter_log *rotate_log(const struct rotate *r, size_t i)
{
	const struct session_guests *g = &r->s->guests;

	if (!i)
		return g->clocks ? &g->clocks->host : NULL;
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

/*
 * Moves a range's start to the page in which `since` lies, or to the first one after a loss since then: what
 * a reader leaves of its last page is older than all that was overwritten. *begin: the later of itself and of
 * the time at which such a loss ended.
 */
static int ring_start(int fd, size_t size, uint64_t since, struct spool_range *r, uint64_t *begin)
{
	struct {
		uint64_t ts;
		uint32_t commit;
	} head = { 0 };
	uint64_t at = r->to, ts = since;
	bool lost = false;

	while (at > r->from && ts >= since) {
		ssize_t n = pread_all(fd, &head, sizeof(head), at - size);

		if (n < 0)
			return (int)n;
		if (lost && head.ts < since)
			break;
		at -= size;
		ts = head.ts;
		lost = head.commit & PAGE_MISSED_EVENTS;
	}
	r->from = at;
	if (lost && ts > since && ts > *begin)
		*begin = ts;
	return 0;
}

/*
 * --flight --ring: of buffers that overwrote themselves until they were drained, only what was not over so
 * long before `to`, boot ns, as --flight has it is to count in a spool's buffers of the host and the
 * hypervisor, where that is their clock. number: as spool_set_ranges().
 */
static int ring_trim(const struct session *s, struct spool *spool, uint64_t number, uint64_t to)
{
	const uint64_t flight = s->plan->flight_ms * UNIT_MS;
	const uint64_t since = to > flight ? to - flight : 0; /* the machine may have begun since */
	struct spool_range *ranges = NULL;
	uint64_t begin = 0;
	size_t n = 0;
	int ret = 0;

	if (!s->plan->ring)
		return 0;
	for (size_t i = 0; i < spool_n_buffers(spool); i++) {
		const struct spool_buffer *b = spool_buffer(spool, i);
		const bool hyp = !strncmp(b->kind, "hyp-", 4);
		/* of the clock that can be compared with ours, and right already */
		const bool times = (hyp ? !spool_wants_repair(spool) : !strcmp(b->kind, "host")) &&
				   !strcmp(b->clock, "boot");

		for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++) {
			struct spool_range r;
			int fd = spool_pages_open(spool, i, cpu, &r);

			ret = fd < 0 ? fd : 0;
			if (!ret && times)
				ret = ring_start(fd, b->page_size, since, &r, &begin);
			fd_close(&fd);
			ret = ret ?: array_push(&ranges, &n, &r, sizeof(r));
		}
	}
	ret = ret ?: spool_set_ranges(spool, number, ranges);
	free(ranges);
	if (ret)
		log_err(s->log, "cannot find the last seconds: %s", errno_text(ret));
	else if (begin)
		log_warn(s->log,
			 "the buffers are too small: a CPU's begins %.1f s late; make them larger with -b",
			 (double)(begin - since) / 1e9);
	return ret;
}

#define SAMPLE_WAIT_NS 50000000
#define SAMPLE_WAITS   60 /* 3 s in total */

/* Until all clocks were sampled after the cut: an offset is not stretched beyond its samples. */
static int await_samples(struct rotate *r)
{
	const struct timespec pause = { .tv_nsec = SAMPLE_WAIT_NS };
	const size_t n = r->s->guests.n + 1;
	size_t *shots = calloc(n, sizeof(*shots));
	bool sampled = false;

	if (!shots)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		shots[i] = rotate_log(r, i) ? counter_log_shots(rotate_log(r, i)) : 0;
	for (int wait = 0; wait <= SAMPLE_WAITS && !atomic_load(&r->ending) && !sampled; wait++) {
		if (wait)
			nanosleep(&pause, NULL);
		sampled = true;
		for (size_t i = 0; i < n; i++) {
			struct counter_log *l = rotate_log(r, i);

			sampled &= !l || !shots[i] || counter_log_shots(l) >= shots[i] + 2;
		}
	}
	free(shots);
	return 0;
}

/* The guests that take part, each with its part of the pages and what its clock showed so far. */
static int part_take_guests(struct rotate *r, struct spool *const *spools, struct session_guests *g)
{
	int ret = 0;

	*g = r->s->guests;
	g->part = true;
	g->cut_at = r->flushed_from;
	g->v = calloc(g->n + 1, sizeof(*g->v));
	if (!g->v) {
		g->n = 0;
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->n; i++) {
		g->v[i] = r->s->guests.v[i];
		g->v[i].spool = NULL;
		g->v[i].clock = (struct sync_result){ 0 };
		g->v[i].so_far = (struct counter_log){ 0 };
	}
	for (size_t i = 1; i < r->n_pieces; i++)
		g->v[r->pieces[i].guest].spool = spools[i];
	if (g->clocks)
		ret = counter_log_copy(&g->host_so_far, rotate_log(r, 0))
			      ?: clock_sampler_copy_cntvoff(g->clocks, &g->cntvoff_so_far);
	for (size_t i = 0; i < g->n && !ret; i++)
		if (rotate_log(r, 1 + i))
			ret = counter_log_copy(&g->v[i].so_far, rotate_log(r, 1 + i));
	return ret;
}

/* By the writer's thread: the files of what lies between r->from and r->to. */
static void rotate_write(void *rotate, size_t job)
{
	struct rotate *r = rotate;
	struct spool **spools = calloc(r->n_pieces, sizeof(*spools)); /* a part of each piece */
	struct session_guests guests = { 0 };
	int ret = spools ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->n_pieces && !ret; i++)
		ret = spool_part(&spools[i], r->pieces[i].spool, r->s->log)
			      ?: rotate_set_ranges(r, &r->pieces[i], spools[i], r->to);
	ret = ret ?: ring_trim(r->s, spools[0], r->number, boot_ns());
	if (!ret && !r->symbols) /* once: they do not change much */
		kernel_symbols_read(&r->s->symbols, r->s->spool);
	r->symbols |= !ret;
	ret = ret ?: await_samples(r) ?: part_take_guests(r, spools, &guests);
	ret = ret ?: spool_repair(spools[0], r->s->log) ?: session_guests_align_clocks(&guests, spools[0]);
	if (!ret) {
		struct dat_from_spool_opts fo = { .symbols = &r->s->symbols, .log = r->s->log };

		/* the host's last: when it is there, all are; a guest that failed at its begin has none */
		for (size_t i = r->n_pieces; i-- && !ret;)
			if (i ? session_guest_takes_part(&guests.v[r->pieces[i].guest]) : r->s->n_tracks)
				ret = (i ? sanitize_spool(spools[i], fo.log) : 0)
					      ?: dat_from_spool(spools[i], &fo);
	}
	for (size_t i = 0; spools && i < r->n_pieces; i++)
		if (spools[i])
			spool_remove(spools[i]);
	for (size_t i = 0; i < guests.n; i++) {
		sync_result_release(&guests.v[i].clock);
		counter_log_release(&guests.v[i].so_far);
	}
	counter_log_release(&guests.host_so_far);
	cntvoff_log_release(&guests.cntvoff_so_far);
	free(guests.v);
	free(spools);
	r->error = ret;
	atomic_store(&r->written, true);
}

#define FLUSH_MS   5000 /* of a source; a machine at its limit needs more than one, and a whole buffer many */
#define MARKS	   64	/* in the seconds of --flight */
#define SHOTS_KEPT 1024 /* of clocks, before what counts: four minutes of them */

/* Since when what counts is recorded. */
static double rotate_since(const struct rotate *r)
{
	return r->n_marks ? r->marks[0].time : r->began;
}

/* Bytes of all streams between two positions. */
static uint64_t rotate_sum(const struct rotate *r, const uint64_t *from, const uint64_t *to)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		sum += to[i] - from[i];
	return sum;
}

uint64_t rotate_bytes(const struct session *s)
{
	if (!s->rotate)
		return recorder_bytes(s->recorder);
	rotate_positions(s->rotate, s->rotate->now);
	return rotate_sum(s->rotate, s->rotate->from, s->rotate->now);
}

/* The spools' ranges begin at r->from. */
static int rotate_note(struct rotate *r)
{
	int ret = 0;

	for (size_t i = 0; i < r->n_pieces && !ret; i++)
		ret = rotate_set_ranges(r, &r->pieces[i], r->pieces[i].spool, NULL);
	return ret;
}

/* Records the new start before discarding, for crash safety. */
static int rotate_advance(struct rotate *r, const uint64_t *from)
{
	const struct record_plan *plan = r->s->plan;
	double ms;
	int ret;

	memcpy(r->from, from, r->n_streams * sizeof(*from));
	ret = rotate_note(r);
	for (size_t i = 0; i < r->n_streams && !ret; i++) {
		const struct rotate_stream *t = &r->streams[i];

		/* the page before is evidence about clocks still */
		if (from[i] > t->page_size)
			ret = spool_forget(t->spool, t->buffer, t->cpu, from[i] - t->page_size);
	}
	/* samples of clocks that no file needs any more; with -m it is not known what that is */
	ms = (session_now() - rotate_since(r)) * 1e3;
	for (size_t i = 0; i <= r->s->guests.n && !plan->max_cpu_kb && plan->tsync_interval_ms > 0; i++)
		if (rotate_log(r, i))
			counter_log_forget(rotate_log(r, i),
					   SHOTS_KEPT + (size_t)(ms / (double)plan->tsync_interval_ms));
	return ret;
}

int rotate_begin(struct session *s)
{
	struct rotate *r = s->rotate;
	int ret;

	if (!r)
		return 0;
	r->number = record_plan_numbered(s->plan);
	r->began = session_now();
	/* all pieces with their streams, and the writer */
	ret = add_piece(r, s->spool, 0);
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
	ret = r->from && r->to && r->now && r->ranges ? workers_new(&r->writer, 1) : -ENOMEM;
	return ret ?: rotate_note(r);
}

/* --flight: up to the last mark that is old enough. */
static int trim_old(struct rotate *r)
{
	const double seconds = (double)r->s->plan->flight_ms / 1e3, now = session_now();
	bool more = false;
	int ret = 0;

	if (!r->n_marks || now - r->marks[r->n_marks - 1].time >= seconds / MARKS) {
		struct rotate_mark m = { now, malloc((r->n_streams + 1) * sizeof(*m.at)) };

		if (m.at)
			memcpy(m.at, r->now, r->n_streams * sizeof(*m.at));
		ret = m.at ? array_push(&r->marks, &r->n_marks, &m, sizeof(m)) : -ENOMEM;
		if (ret)
			free(m.at);
	}
	for (; !ret && r->n_marks > 1 && r->marks[1].time <= now - seconds; more = true) {
		free(r->marks[0].at);
		memmove(r->marks, r->marks + 1, --r->n_marks * sizeof(*r->marks));
	}
	return more ? rotate_advance(r, r->marks[0].at) : ret;
}

/* -m: of each CPU by itself. */
static int trim_cpus(struct rotate *r)
{
	bool more = false;

	for (size_t i = 0; i < r->n_streams; i++) {
		uint64_t size = r->streams[i].page_size, max = r->s->plan->max_cpu_kb << 10;

		max = max < size ? size : max - max % size;
		r->to[i] = r->now[i] - r->from[i] > max ? r->now[i] - max : r->from[i];
		more |= r->to[i] > r->from[i];
	}
	return more ? rotate_advance(r, r->to) : 0;
}

void rotate_cut(struct session *s)
{
	struct rotate *r = s->rotate;

	/* all that the host and the hypervisor have done by now is to be in what is cut */
	r->flushed_from = boot_ns();
	for (size_t i = 0; i < s->n_tracks; i++)
		if (strcmp(s->tracks[i].source->ops->kind, "profile"))
			recorder_flush(s->recorder, s->tracks[i].source, FLUSH_MS * (s->plan->ring ? 12 : 1));
	rotate_positions(r, r->to);
	if (collect_wall(s->spool))
		log_warn(s->log, "the time of day is not noted in the file");
	r->cut_at = session_now();
	r->error = 0;
	atomic_store(&r->written, false);
	r->writing = true;
	workers_begin(r->writer, rotate_write, r);
}

/* --keep: removes the file that many numbers before the last, of the host and of each guest. */
static void rotate_keep(struct rotate *r)
{
	const uint64_t keep = r->s->plan->keep_files;

	for (size_t i = 0; i < r->n_pieces && keep && r->number > keep; i++) {
		char *path = spool_numbered(r->pieces[i].spool, r->number - keep);

		if (path && unlink(path) < 0 && errno != ENOENT)
			log_warn(r->s->log, "cannot remove '%s': %s", path, strerror(errno));
		free(path);
	}
}

void rotate_keep_last(struct session *s)
{
	if (s->rotate) {
		ring_trim(s, s->spool, s->rotate->number, s->rotate->ended);
		rotate_keep(s->rotate);
	}
}

/* Finishes a written file. A flight recorder continues with what it has. */
static int rotate_reap(struct rotate *r)
{
	const struct session_summary *sum = r->s->summary;
	uint64_t lost = 0;
	char *path;

	workers_finish(r->writer);
	r->writing = false;
	if (r->error)
		return log_fail_errno(r->s->log, r->error,
				      "a part of the recording cannot be written, which ends here");
	/* with guests only, the host has no file */
	path = spool_numbered(r->pieces[r->s->n_tracks ? 0 : r->n_pieces - 1].spool, r->number);
	for (size_t i = 0; i < sum->n_buffers; i++)
		lost += sum->buffers[i].lost;
	log_info(r->s->log, "%s: %.1f s, %" PRIu64 " KiB of pages, %" PRIu64 " events lost", path ?: "",
		 r->cut_at - rotate_since(r), rotate_sum(r, r->from, r->to) >> 10, lost - r->lost);
	r->lost = lost;
	free(path);
	rotate_keep(r);
	r->number++;
	if (r->s->plan->flight_ms)
		return rotate_note(r);
	r->began = r->cut_at;
	return rotate_advance(r, r->to);
}

int rotate_tick(struct session *s, bool *cut)
{
	const struct record_plan *plan = s->plan;
	struct rotate *r = s->rotate;
	int ret;

	*cut = false;
	if (!r)
		return 0;
	/* by signal, by event */
	r->asked |= take_all(s->o->dump_fd);
	r->asked |= take_all(r->dump_on_fd);
	if (r->writing && !atomic_load(&r->written))
		return 0;
	ret = r->writing ? rotate_reap(r) : 0;
	if (ret)
		return ret;
	rotate_positions(r, r->now);
	*cut = r->asked || (plan->rotate_ms && session_now() - r->began >= (double)plan->rotate_ms / 1e3) ||
	       (plan->rotate_bytes && rotate_sum(r, r->from, r->now) >= plan->rotate_bytes);
	r->asked = false;
	return *cut ? 0 : plan->flight_ms ? trim_old(r) : plan->max_cpu_kb ? trim_cpus(r) : 0;
}

bool rotate_is_writing(const struct session *s)
{
	return s->rotate && s->rotate->writing;
}

void rotate_end(struct session *s)
{
	struct rotate *r = s->rotate;

	if (!r)
		return;
	r->ended = boot_ns();
	atomic_store(&r->ending, true);
	if (r->writing)
		rotate_reap(r);
	if (r->dump_on_fd >= 0)
		instance_stop(r->dump_on);
	fd_close(&r->dump_on_fd);
}
