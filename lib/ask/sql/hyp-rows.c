// SPDX-License-Identifier: LGPL-2.1-or-later
/* Visits of the hypervisor as rows, with their reasons as words of one byte. */
#include "ask/sql/sql-priv.h"

uint8_t sql_hyp_word(const struct sql_hyp *h, const char *word)
{
	for (size_t i = 1; i <= h->n_words; i++)
		if (!strcmp(h->words[i], word))
			return (uint8_t)i;
	return 0;
}

/* 0: there are too many. */
static int sql_hyp_learn(struct sql_hyp *h, const char *word, uint8_t *to)
{
	*to = sql_hyp_word(h, word);
	if (*to || h->n_words == ARRAY_SIZE(h->words) - 1)
		return 0;
	h->words[h->n_words + 1] = strdup(word);
	if (!h->words[h->n_words + 1])
		return -ENOMEM;
	*to = (uint8_t)++h->n_words;
	return 0;
}

int sql_hyp_open(struct sql *s)
{
	int ret = 0;

	if (s->hyp)
		return 0;
	s->hyp = calloc(1, sizeof(*s->hyp));
	if (!s->hyp)
		return -ENOMEM;
	s->hyp->why = inputs_table(s->in, SPAN_REASONS, sizeof(**s->hyp->why));
	s->hyp->left = inputs_table(s->in, SPAN_REASONS, sizeof(**s->hyp->left));
	if (!s->hyp->why || !s->hyp->left)
		return -ENOMEM;
	for (size_t input = 0; input < s->in->n && !ret; input++) {
		const struct input *in = &s->in->v[input];

		for (unsigned int i = 0; i < SPAN_REASONS + in->n_known && !ret; i++) {
			bool other = i < SPAN_REASONS ||
				     steps_kind(s->steps, input, i - SPAN_REASONS) == STEP_HYP_OTHER;
			const char *word = other ? steps_why(s->steps, in, input, i) : NULL;

			ret = word ? sql_hyp_learn(s->hyp, word, &s->hyp->why[input][i]) : 0;
		}
		for (unsigned int i = 0; i < SPAN_REASONS && !ret; i++) {
			const char *word = steps_reason(s->steps, input, STEP_HYP_EXIT, i);

			ret = word ? sql_hyp_learn(s->hyp, word, &s->hyp->left[input][i]) : 0;
		}
	}
	return ret;
}

void sql_hyp_close(struct sql *s)
{
	struct sql_hyp *h = s->hyp;

	if (!h)
		return;
	free(h->why);
	free(h->left);
	for (size_t i = 1; i <= h->n_words; i++)
		free(h->words[i]);
	free(h);
	s->hyp = NULL;
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
	k->input = run->n ? merge_stream(t->merge, run->v)->input : 0;
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
