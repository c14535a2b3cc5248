// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Visits of the hypervisor as rows, with their reasons as words of one byte, and their source: memory, which
 * all streams are read into side by side when the first query asks for all, or, where there are more than
 * fit, out of the files each time.
 */
#include "ask/sql/sql-priv.h"
#include "base/workers.h"

uint8_t sql_hyp_word(const struct sql_hyp *h, const char *word)
{
	for (size_t i = 1; i <= h->n_words; i++)
		if (!strcmp(h->words[i], word))
			return (uint8_t)i;
	return 0;
}

/* The word's number, a new one for a new word; 0: NULL, or there are too many. */
static uint8_t sql_hyp_learn(struct sql_hyp *h, const char *word)
{
	uint8_t known = word ? sql_hyp_word(h, word) : 0;

	if (!word || known || h->n_words == ARRAY_SIZE(h->words) - 1)
		return known;
	h->words[++h->n_words] = word;
	return (uint8_t)h->n_words;
}

int sql_hyp_open(struct sql *s)
{
	struct sql_hyp *h = s->hyp;

	if (h)
		return 0;
	h = s->hyp = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->why = inputs_table(s->in, SPAN_REASONS, sizeof(**h->why));
	h->left = inputs_table(s->in, SPAN_REASONS, sizeof(**h->left));
	if (!h->why || !h->left) {
		sql_hyp_close(s);
		return -ENOMEM;
	}
	for (size_t input = 0; input < s->in->n; input++) {
		const struct input *in = &s->in->v[input];

		for (unsigned int i = 0; i < SPAN_REASONS + in->n_known; i++)
			if (i < SPAN_REASONS ||
			    steps_kind(s->steps, input, i - SPAN_REASONS) == STEP_HYP_OTHER)
				h->why[input][i] = sql_hyp_learn(h, steps_why(s->steps, in, input, i));
		for (unsigned int i = 0; i < SPAN_REASONS; i++)
			h->left[input][i] = sql_hyp_learn(h, steps_reason(s->steps, input, STEP_HYP_EXIT, i));
	}
	return 0;
}

static void sql_span_of(const struct sql *s, const struct span *v, struct sql_span *out)
{
	const uint8_t *why = s->hyp->why[v->machine];
	bool paired = v->end == SPAN_PAIRED && v->to - v->from <= INT64_MAX;

	*out = (struct sql_span){
		.ts = v->from,
		.dur = paired			? (int64_t)(v->to - v->from)
		       : v->end == SPAN_UNENDED ? SPAN_DUR_OPEN
						: SPAN_DUR_LOST,
		.record = sql_id_record((int64_t)v->first),
		.vcpu = v->vcpu,
		.reason = v->why == SPAN_UNKNOWN ? 0 : why[v->why],
		.left = paired && v->left < SPAN_REASONS ? s->hyp->left[v->machine][v->left] : 0,
		.event = v->event == SPAN_NO_EVENT ? 0 : why[SPAN_REASONS + v->event],
	};
}

void sql_spans_feed(struct sql_span_maker *k, const struct timeline *t, const struct merge_run *run,
		    size_t from, size_t to)
{
	k->run = run;
	k->i = from;
	k->n = to;
	k->input = from < to ? merge_stream(t->merge, &run->v[from])->input : 0;
}

bool sql_spans_next(const struct sql *s, struct sql_span_maker *k, struct sql_span *out)
{
	const struct span_point lost = { .kind = POINT_LOST };
	struct span_point p;
	struct span done;

	while (k->i < k->n) {
		const struct merge_record *m = &k->run->v[k->i++];
		bool over = (m->missed || m->paused) && visit_take(&k->visit, &lost, &done);
		uint64_t at = 0;

		if (steps_hyp_point(s->steps, k->input, m, 0, &p) &&
		    (p.kind != POINT_HYP_EXIT || k->visit.open)) {
			if (p.kind == POINT_HYP_ENTER && merge_run_place(k->run, m, &k->block, &at))
				p.row = sql_id_record((int64_t)(at / 4));
			over |= visit_take(&k->visit, &p, &done);
		}
		if (over) {
			sql_span_of(s, &done, out);
			return true;
		}
	}
	return false;
}

bool sql_span_last(const struct sql *s, struct sql_span_maker *k, struct sql_span *out)
{
	struct span done;

	if (!visit_finish(&k->visit, &done))
		return false;
	sql_span_of(s, &done, out);
	return true;
}

#define PIECE_SPANS 8192

struct sql_piece {
	size_t n;
	int64_t least, most; /* of their times */
	struct sql_span v[PIECE_SPANS];
};

/* Of a stream. */
struct sql_pieces {
	struct sql_piece **v;
	size_t n;
};

static void sql_store_free(struct sql_pieces *streams, size_t n)
{
	for (size_t i = 0; streams && i < n; i++) {
		for (size_t k = 0; k < streams[i].n; k++)
			free(streams[i].v[k]);
		free(streams[i].v);
	}
	free(streams);
}

void sql_hyp_close(struct sql *s)
{
	if (!s->hyp)
		return;
	sql_store_free(s->hyp->store, s->n_streams);
	free(s->hyp->why);
	free(s->hyp->left);
	free(s->hyp);
	s->hyp = NULL;
}

struct sql_load {
	struct sql *sql;
	struct sql_scan scan;
	struct sql_pieces *store;
	atomic_size_t next;   /* stream */
	atomic_size_t pieces; /* of all */
	atomic_int ret;
};

static int sql_store_add(struct sql_load *l, struct sql_pieces *p, const struct sql_span *span)
{
	struct sql_piece *last = p->n ? p->v[p->n - 1] : NULL;

	if (!last || last->n == PIECE_SPANS) {
		if (atomic_fetch_add(&l->pieces, 1) >= l->sql->store_room / sizeof(*last))
			return -ENOBUFS;
		last = malloc(sizeof(*last));
		if (!last || array_push(&p->v, &p->n, &last, sizeof(last))) {
			free(last);
			return -ENOMEM;
		}
		last->n = 0;
		last->least = INT64_MAX;
		last->most = INT64_MIN;
	}
	last->v[last->n++] = *span;
	last->least = sql_ts(span->ts) < last->least ? sql_ts(span->ts) : last->least;
	last->most = sql_ts(span->ts) > last->most ? sql_ts(span->ts) : last->most;
	return 0;
}

static void sql_store_worker(void *ctx, size_t worker)
{
	struct sql_load *l = ctx;
	struct merge_run run = { 0 };
	size_t i;

	while ((i = atomic_fetch_add(&l->next, 1)) < l->scan.n && !atomic_load(&l->ret)) {
		struct sql_pieces *p = &l->store[l->scan.map[i]];
		struct sql_span_maker k = { 0 };
		struct sql_span span;
		int ret;

		while ((ret = sql_scan_take(&l->scan, i, &run)) == 1 && !atomic_load(&l->ret)) {
			sql_spans_feed(&k, l->scan.t, &run, 0, run.n);
			ret = 0;
			while (!ret && sql_spans_next(l->sql, &k, &span))
				ret = sql_store_add(l, p, &span);
			if (ret)
				break;
		}
		if (!ret && sql_span_last(l->sql, &k, &span))
			ret = sql_store_add(l, p, &span);
		if (ret < 0)
			atomic_store(&l->ret, ret);
	}
	merge_run_release(&run);
}

int sql_hyp_load(struct sql *s)
{
	struct sql_load l = { .sql = s };
	int ret;

	if (s->hyp->store || s->hyp->too_many)
		return 0;
	l.store = calloc(s->n_streams + 1, sizeof(*l.store));
	if (!l.store)
		return -ENOMEM;
	ret = sql_scan_open(&l.scan, s, NULL, PART_HYP);
	if (!ret) {
		workers_share(pipeline_workers(), sql_store_worker, &l);
		ret = atomic_load(&l.ret);
		sql_scan_close(&l.scan);
	}
	if (!ret) {
		s->hyp->store = l.store;
		return 0;
	}
	sql_store_free(l.store, s->n_streams);
	s->hyp->too_many = ret == -ENOBUFS;
	return ret == -ENOBUFS ? 0 : ret;
}

void sql_feed_begin(struct sql_feed *f, struct sql *s, size_t stream)
{
	sql_scan_close(&f->scan);
	*f = (struct sql_feed){ .sql = s, .stream = stream, .room = f->room };
}

int sql_feed_more(struct sql_feed *f, const struct sql_want *w)
{
	const struct sql_pieces *p = f->sql->hyp->store ? &f->sql->hyp->store[f->stream] : NULL;
	const struct merge_run *run = &f->scan.run;
	int ret;

	f->i = f->n = 0;
	while (p && f->piece < p->n) {
		const struct sql_piece *piece = p->v[f->piece++];

		if (piece->most < w->ts.from || piece->least > w->ts.to)
			continue;
		f->v = piece->v;
		f->n = piece->n;
		return 1;
	}
	if (p)
		return 0;
	/* out of the file */
	if (!f->room)
		f->room = malloc((MERGE_RUN_MAX + 1) * sizeof(*f->room));
	if (!f->room)
		return -ENOMEM;
	ret = f->scan.t ? 0 : sql_scan_one(&f->scan, f->sql, f->stream);
	if (ret)
		return ret;
	sql_scan_from(&f->scan, w);
	f->v = f->room;
	while (!f->n && !f->over) {
		ret = sql_scan_run(&f->scan);
		if (ret < 0)
			return ret;
		if (ret)
			sql_spans_feed(&f->maker, f->scan.t, run, 0, run->n);
		while (ret && sql_spans_next(f->sql, &f->maker, &f->room[f->n]))
			f->n++;
		/* a span that begins in time ends with the next exit, at the latest with the next enter */
		f->over =
			!ret || (!f->maker.visit.open && run->n && sql_ts(run->v[run->n - 1].ts) > w->ts.to);
		if (!ret)
			f->n += sql_span_last(f->sql, &f->maker, &f->room[f->n]);
	}
	return f->n > 0;
}
