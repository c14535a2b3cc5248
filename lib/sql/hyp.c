// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A CPU's times in the hypervisor: from hyp_enter to hyp_exit. Why it was entered is told by an event in
 * between, as Perfetto has it, or by hyp_enter's own field.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sql/sql-priv.h"

/* ---- words --------------------------------------------------------------------------------------- */

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

/* ---- events --------------------------------------------------------------------------------------- */

/* Those that Perfetto takes a reason from. */
static bool sql_hyp_is_reason(const char *name)
{
	static const char *const names[] = { "host_hcall", "host_mem_abort", "host_smc", "host_ffa_call",
					     "iommu_idmap" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* What the format calls the reason of each number. */
static int sql_hyp_reasons(struct sql *s, size_t input, struct sql_hyp_event *e)
{
	enum step_kind kind = e->role == SPAN_ENTER ? STEP_HYP_ENTER : STEP_HYP_EXIT;
	int ret = 0;

	e->words = calloc(256, 1);
	if (!e->words)
		return -ENOMEM;
	for (unsigned int i = 0; i < 256 && !ret; i++) {
		const char *word = steps_reason(s->steps, input, kind, i);

		ret = word ? sql_hyp_learn(s->hyp, word, &e->words[i]) : 0;
	}
	return ret;
}

static int sql_hyp_know(struct sql *s, size_t input, unsigned int id, const struct known_event *k)
{
	struct sql_hyp_event *e = &s->hyp->events[input][id];
	const char *name = k->event->name;

	if (sql_hyp_is_reason(name)) {
		e->role = SPAN_TELLS;
		return sql_hyp_learn(s->hyp, name, &e->word);
	}
	if (strcmp(name, "hyp_enter") != 0 && strcmp(name, "hyp_exit") != 0)
		return 0;
	e->role = strcmp(name, "hyp_enter") ? SPAN_EXIT : SPAN_ENTER;
	e->reason = field_load(tep_find_field(k->event, "reason"));
	e->vcpu = field_load(tep_find_field(k->event, "vcpu"));
	return sql_hyp_reasons(s, input, e);
}

int sql_hyp_open(struct sql *s)
{
	if (s->hyp)
		return 0;
	s->hyp = calloc(1, sizeof(*s->hyp));
	if (!s->hyp)
		return -ENOMEM;
	s->hyp->events = calloc(s->in->n + 1, sizeof(*s->hyp->events));
	for (size_t i = 0; s->hyp->events && i < s->in->n; i++) {
		const struct input *in = &s->in->v[i];
		int ret = 0;

		s->hyp->events[i] = calloc(in->n_known + 1, sizeof(**s->hyp->events));
		for (unsigned int id = 0; s->hyp->events[i] && id < in->n_known && !ret; id++) {
			const struct known_event *k = input_event(in, id);

			ret = k && k->hyp ? sql_hyp_know(s, i, id, k) : 0;
		}
		if (ret || !s->hyp->events[i])
			return -ENOMEM;
	}
	return s->hyp->events ? 0 : -ENOMEM;
}

void sql_hyp_close(struct sql *s)
{
	struct sql_hyp *h = s->hyp;

	if (!h)
		return;
	for (size_t i = 0; h->events && i < s->in->n; i++) {
		for (size_t id = 0; h->events[i] && id < s->in->v[i].n_known; id++)
			free(h->events[i][id].words);
		free(h->events[i]);
	}
	free(h->events);
	for (size_t i = 1; i <= h->n_words; i++)
		free(h->words[i]);
	free(h);
	s->hyp = NULL;
}

bool sql_hyp_tells(const struct sql *s, size_t input, uint8_t word)
{
	for (size_t id = 0; id < s->in->v[input].n_known; id++)
		if (s->hyp->events[input][id].role == SPAN_TELLS && s->hyp->events[input][id].word == word)
			return true;
	return false;
}

const struct sql_hyp_event *sql_hyp_event(const struct sql *s, size_t input, const struct merge_record *m)
{
	unsigned int id = timeline_id(m);

	return m->len >= 2 && id < s->in->v[input].n_known ? &s->hyp->events[input][id] : NULL;
}

/* ---- spans ---------------------------------------------------------------------------------------- */

static uint8_t sql_span_word(const struct sql_hyp_event *e, const struct merge_record *m)
{
	uint64_t v;

	return e->reason.kind == FIELD_NUMBER && field_load_number(&e->reason, m->data, m->len, &v) && v < 256
		       ? e->words[v]
		       : 0;
}

static void sql_span_begin(struct sql_span_maker *k, const struct sql_hyp_event *e,
			   const struct merge_record *m)
{
	uint64_t vcpu = 0;

	if (e->vcpu.kind == FIELD_NUMBER)
		field_load_number(&e->vcpu, m->data, m->len, &vcpu);
	k->open = true;
	k->span = (struct sql_span){ .ts = m->ts,
				     .record = (uint32_t)k->record,
				     .vcpu = (int32_t)vcpu,
				     .reason = sql_span_word(e, m) };
}

static bool sql_span_give(struct sql_span_maker *k, int64_t dur, struct sql_span *out)
{
	if (!k->open)
		return false;
	k->open = false;
	k->span.dur = dur;
	*out = k->span;
	return true;
}

bool sql_span_make(const struct sql *s, size_t input, struct sql_span_maker *k, const struct merge_record *m,
		   struct sql_span *out)
{
	const struct sql_hyp_event *e = sql_hyp_event(s, input, m);
	bool made = (m->missed || m->paused) && sql_span_give(k, SPAN_LOST, out);

	if (e && e->role == SPAN_ENTER) {
		made |= sql_span_give(k, SPAN_LOST, out);
		sql_span_begin(k, e, m);
	} else if (e && e->role == SPAN_EXIT && k->open) {
		bool back = m->ts < k->span.ts || m->ts - k->span.ts > INT64_MAX;

		k->span.left = back ? 0 : sql_span_word(e, m);
		made = sql_span_give(k, back ? SPAN_LOST : (int64_t)(m->ts - k->span.ts), out);
	} else if (e && e->role == SPAN_TELLS) {
		k->span.reason = e->word;
	}
	k->record++;
	return made;
}

bool sql_span_last(struct sql_span_maker *k, struct sql_span *out)
{
	return sql_span_give(k, SPAN_OPEN, out);
}
