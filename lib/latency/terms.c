// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which events of which files are points of a chain, and how their keys are found. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "latency/latency-priv.h"
#include "util/array.h"

#define WHY_MAX 1200

/* ---- a term in a file ------------------------------------------------------------------------ */

static int latency_takers(struct latency *l, size_t input, const struct event_id *id,
			  struct latency_source *s, char *why)
{
	const struct latency_plan *plan = l->plan;
	const struct latency_term *term = &plan->terms[s->term];
	const struct latency_by_how *hows[] = { &term->look, &term->next, &term->carry, &term->row };
	struct latency_taker *takers[] = { &s->look, &s->next, &s->carry, &s->row };

	for (size_t i = 0; i < ARRAY_SIZE(hows); i++) {
		int ret = latency_taker_init(takers[i], hows[i], l->who, l->in, input, id->event, id->hyp,
					     plan->apart, why, WHY_MAX);

		if (ret)
			return ret;
	}
	return 0;
}

static int latency_add_sources(struct latency *l, size_t input, size_t term, char *why)
{
	struct latency_input *v = &l->v[input];
	const struct event_match *m = &v->matches[term];

	for (size_t i = 0; i < m->n; i++) {
		struct latency_source s = { .id = m->v[i].id, .term = term, .filter = m->v[i].filter };
		int ret = latency_takers(l, input, &m->v[i], &s, why);

		ret = ret ? ret : array_push(&v->v, &v->n, &s, sizeof(s));
		if (ret)
			return ret;
		v->wanted[m->v[i].hyp] |= !l->plan->terms[term].cancels;
		l->counts[term].known = true;
	}
	return 0;
}

static int latency_add_term(struct latency *l, size_t input, size_t term, const struct log *log)
{
	const struct input *in = &l->in->v[input];
	char why[WHY_MAX] = "";
	int ret = event_match_open(&l->v[input].matches[term], &l->words[term], in, why, sizeof(why));

	ret = ret ? ret : latency_add_sources(l, input, term, why);
	if (ret == -EINVAL && l->plan->lenient)
		return 0;
	if (ret == -EINVAL)
		log_err(log, "%s: '%s': %s", in->path, l->plan->terms[term].event, why);
	return ret;
}

/* ---- a file ------------------------------------------------------------------------------------- */

/* By event; of one event the ends before the begins, which one record may be both of. */
static int latency_compare(const void *a, const void *b)
{
	const struct latency_source *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->term > y->term ? -1 : x->term < y->term;
}

static int latency_input_open(struct latency *l, size_t input, const struct log *log)
{
	struct latency_input *v = &l->v[input];
	int ret = 0;

	v->matches = calloc(l->plan->n_terms, sizeof(*v->matches));
	v->n_ids = l->in->v[input].n_known;
	v->first = calloc(v->n_ids + 1, sizeof(*v->first));
	if (!v->matches || !v->first)
		return -ENOMEM;
	for (size_t i = 0; i < l->plan->n_terms && !ret; i++)
		ret = latency_add_term(l, input, i, log);
	if (v->n)
		qsort(v->v, v->n, sizeof(*v->v), latency_compare);
	for (size_t i = v->n; i-- > 0 && !ret;)
		v->first[v->v[i].id] = (uint32_t)i + 1;
	/* filters ask for tasks' names: libtraceevent sorts them when the first is asked for */
	tep_data_comm_from_pid(l->in->v[input].tep, 0);
	return ret;
}

/* ---- clocks ----------------------------------------------------------------------------------------- */

static uint64_t latency_widest(const struct filetime *t)
{
	uint64_t widest = 0;

	for (uint32_t i = 0; i < t->shift.n_bounds; i++)
		if (t->shift.bounds[i] != UINT64_MAX && t->shift.bounds[i] > widest)
			widest = t->shift.bounds[i];
	return widest;
}

/* Where events of several machines meet below one key, the widest bound counts. */
static void latency_find_reach(struct latency *l)
{
	size_t machines = 0;
	uint64_t widest = 1;

	for (size_t i = 0; i < l->in->n; i++) {
		const struct input *in = &l->in->v[i];
		uint64_t bound = latency_widest(&in->time);

		if (!l->v[i].n)
			continue;
		machines++;
		if (in->guest && !in->time.shift.bounds) {
			l->unbounded = in->path;
			bound = UINT64_MAX / 4;
		}
		widest = bound > widest ? bound : widest;
	}
	l->reach = machines > 1 && !l->plan->apart ? widest : 0;
	if (!l->reach)
		l->unbounded = NULL;
}

/* ---- all of them -------------------------------------------------------------------------------------- */

int latency_terms_open(struct latency *l, const struct log *log)
{
	char why[WHY_MAX] = "";
	int ret = 0;

	for (size_t i = 0; i < l->plan->n_terms; i++) {
		ret = event_words_parse(&l->words[i], l->plan->terms[i].event, why, sizeof(why));
		if (ret == -EINVAL)
			log_err(log, "'%s': %s", l->plan->terms[i].event, why);
		if (ret)
			return ret;
	}
	l->v = calloc(l->in->n + 1, sizeof(*l->v));
	if (!l->v)
		return -ENOMEM;
	for (size_t i = 0; i < l->in->n && !ret; i++)
		ret = latency_input_open(l, i, log);
	if (!ret)
		latency_find_reach(l);
	return ret;
}

void latency_terms_close(struct latency *l)
{
	for (size_t i = 0; l->v && i < l->in->n; i++) {
		struct latency_input *v = &l->v[i];

		for (size_t k = 0; v->matches && k < l->plan->n_terms; k++)
			event_match_release(&v->matches[k]);
		free(v->matches);
		free(v->v);
		free(v->first);
	}
	free(l->v);
	for (size_t i = 0; i < l->plan->n_terms; i++)
		event_words_release(&l->words[i]);
}
