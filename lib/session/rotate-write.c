// SPDX-License-Identifier: LGPL-2.1-or-later
/* The files of a part of a recording, host's and guests', while it goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/collect.h"
#include "record/finish.h"
#include "record/repair.h"
#include "record/sanitize.h"
#include "session/rotate-priv.h"

#define SAMPLE_WAIT_NS 50000000
#define SAMPLE_WAITS   60 /* 3 s in all */

/* The part of each piece, and the guests as they are in it. */
struct rotate_part {
	struct rotate *r;
	struct spool **spools; /* of each piece */
	struct session_guests guests;
};

static bool all_sampled(const struct rotate *r, const size_t *shots)
{
	for (size_t i = 0; i <= r->s->guests.n; i++) {
		struct counter_log *l = rotate_log(r, i);

		if (l && shots[i] && counter_log_shots(l) < shots[i] + 2)
			return false;
	}
	return true;
}

/* Until all clocks were sampled after the cut: an offset is not stretched beyond its samples. */
static int await_samples(struct rotate *r)
{
	const struct timespec pause = { .tv_nsec = SAMPLE_WAIT_NS };
	const size_t n = r->s->guests.n + 1;
	size_t *shots = calloc(n, sizeof(*shots));

	if (!shots)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		shots[i] = rotate_log(r, i) ? counter_log_shots(rotate_log(r, i)) : 0;
	for (int i = 0; i < SAMPLE_WAITS && !atomic_load(&r->ending) && !all_sampled(r, shots); i++)
		nanosleep(&pause, NULL);
	free(shots);
	return 0;
}

static int part_open(struct rotate_part *p)
{
	struct rotate *r = p->r;
	int ret = 0;

	p->spools = calloc(r->n_pieces, sizeof(*p->spools));
	if (!p->spools)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_pieces && !ret; i++) {
		const struct rotate_piece *piece = &r->pieces[i];

		ret = spool_part(&p->spools[i], piece->spool, r->s->log);
		ret = ret ?: rotate_set_ranges(r, piece, p->spools[i], r->to);
	}
	return ret;
}

/* The guests that take part, each with its part of the pages and what its clock showed so far. */
static int part_take_guests(struct rotate_part *p)
{
	struct rotate *r = p->r;
	struct session_guests *g = &p->guests;
	int ret = 0;

	*g = r->s->guests;
	g->part = true;
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
		g->v[r->pieces[i].guest].spool = p->spools[i];
	if (g->clocks)
		ret = counter_log_copy(&g->host_so_far, rotate_log(r, 0))
			      ?: clock_sampler_copy_cntvoff(g->clocks, &g->cntvoff_so_far);
	for (size_t i = 0; i < g->n && !ret; i++)
		if (rotate_log(r, 1 + i))
			ret = counter_log_copy(&g->v[i].so_far, rotate_log(r, 1 + i));
	return ret;
}

static void part_close(struct rotate_part *p)
{
	for (size_t i = 0; p->spools && i < p->r->n_pieces; i++)
		if (p->spools[i])
			spool_remove(p->spools[i]);
	for (size_t i = 0; i < p->guests.n; i++) {
		sync_result_release(&p->guests.v[i].clock);
		counter_log_release(&p->guests.v[i].so_far);
	}
	counter_log_release(&p->guests.host_so_far);
	cntvoff_log_release(&p->guests.cntvoff_so_far);
	free(p->guests.v);
	free(p->spools);
}

static int part_write(struct rotate_part *p)
{
	struct dat_from_spool_opts fo = { .log = p->r->s->log };
	int ret = 0;

	for (size_t i = 1; i < p->r->n_pieces && !ret; i++)
		ret = sanitize_spool(p->spools[i], fo.log);
	/* the host's last: when it is there, all are */
	for (size_t i = p->r->n_pieces; i-- && !ret;)
		if (i || p->r->s->n_tracks)
			ret = dat_from_spool(p->spools[i], &fo);
	return ret;
}

/* Once: they do not change much. */
static int keep_symbols(struct rotate *r)
{
	int ret = r->symbols ? 0 : collect_symbols(r->s->spool, r->s->o->root, r->s->log);

	r->symbols = true;
	return ret == -ENOSPC ? ret : 0;
}

static int write_part(struct rotate *r)
{
	struct rotate_part p = { .r = r };
	int ret = part_open(&p) ?: keep_symbols(r) ?: await_samples(r) ?: part_take_guests(&p);

	if (!ret)
		ret = spool_repair(p.spools[0], r->s->log);
	if (!ret)
		ret = session_guests_align_clocks(&p.guests, p.spools[0]);
	if (!ret)
		ret = part_write(&p);
	part_close(&p);
	return ret;
}

void rotate_write(void *rotate, size_t i)
{
	struct rotate *r = rotate;

	r->error = write_part(r);
	atomic_store(&r->written, true);
}
