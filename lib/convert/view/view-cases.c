// SPDX-License-Identifier: LGPL-2.1-or-later
/* The longest cases of each meaning: the causes of those that waited, and the events in all of them. */

#include "ask/path/path.h"
#include "convert/view/view-priv.h"

#define CASES_OF_A_KIND	   16
#define CASE_EVENTS	   12 /* at each end of a case */
#define CASE_ROWS	   (1u << 19)
#define CASE_ROWS_OF_A_RUN 65536 /* more than a run has */

struct view_found {
	struct view_case is;
	bool done, explained;
	struct path_moment moment;
	struct path path;
	struct path_row events[4 * CASE_EVENTS];
	size_t n_events;
};

#define CASES (VIEW_CASE_KINDS * CASES_OF_A_KIND)

struct view_cases {
	const struct view_job *job;
	struct path_reading *reading;
	struct view_found v[CASES];	 /* CASES_OF_A_KIND of each; of length 0: free */
	uint64_t least[VIEW_CASE_KINDS]; /* ns: shorter ones are not wanted */
	struct path_texts texts;
};

int view_cases_open(struct view_cases **out, const struct view_job *job)
{
	struct view_cases *c = calloc(1, sizeof(*c));
	struct reading *of = job->reading;
	int ret;

	*out = c;
	if (!c)
		return -ENOMEM;
	c->job = job;
	ret = path_reading_open(&c->reading, of->in, of->timeline, UNIT_S, CASE_ROWS);
	if (!ret)
		reading_add(of, path_reading_part(c->reading));
	return ret;
}

void view_cases_close(struct view_cases *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CASES; i++)
		path_release(&c->v[i].path);
	path_texts_release(&c->texts);
	path_reading_close(c->reading);
	free(c);
}

static uint64_t view_found_length(const struct view_found *f)
{
	return f->is.to - f->is.from;
}

void view_cases_add(struct view_cases *c, const struct view_case *one)
{
	struct view_found *v = c->v + one->kind * CASES_OF_A_KIND, *least = v;

	if (one->to - one->from <= c->least[one->kind])
		return;
	for (size_t i = 1; i < CASES_OF_A_KIND; i++)
		least = view_found_length(&v[i]) < view_found_length(least) ? &v[i] : least;
	c->least[one->kind] = view_found_length(least);
	if (one->to - one->from <= c->least[one->kind])
		return;
	path_release(&least->path);
	*least = (struct view_found){ .is = *one };
}

/* The next one that is there, after `f`; NULL: the first, and the end. */
static struct view_found *view_found_next(struct view_cases *c, const struct view_found *f)
{
	for (size_t i = f ? (size_t)(f - c->v) + 1 : 0; i < CASES; i++)
		if (view_found_length(&c->v[i]))
			return &c->v[i];
	return NULL;
}

/* The first and the last events of a CPU in the case. */
static void view_found_events(struct view_found *f, const struct path_window *w, uint32_t input, uint32_t cpu)
{
	struct path_window part = path_window_since(w, f->is.from);
	struct path_row *first = f->events + f->n_events, *last = first + CASE_EVENTS;
	size_t n = 0;

	for (const struct path_row *r = part.v; r < part.v + part.n && r->ts <= f->is.to; r++) {
		if (r->input != input || r->cpu != cpu || r->kind == STEP_LOST)
			continue;
		if (n < CASE_EVENTS)
			first[n] = *r;
		else
			last[(n - CASE_EVENTS) % CASE_EVENTS] = *r;
		n++;
	}
	f->n_events += n < 2 * CASE_EVENTS ? n : 2 * CASE_EVENTS;
}

int view_cases_fill(struct view_cases *c, bool end)
{
	const struct path_window *w = path_reading_window(c->reading);
	int ret = 0;

	for (struct view_found *f = NULL; w->n && !ret && (f = view_found_next(c, f));) {
		/* rows that the case needs are soon dropped */
		bool old = w->n + CASE_ROWS_OF_A_RUN >= CASE_ROWS || w->v[w->n - 1].ts - f->is.to >= UNIT_S;

		if (f->done || (!end && (!old || !path_reading_reached(c->reading, f->is.to))))
			continue;
		f->done = true;
		view_found_events(f, w, f->is.input, f->is.cpu);
		if (f->is.guest != UINT32_MAX)
			view_found_events(f, w, f->is.guest, f->is.vcpu);
		if (f->is.waits)
			ret = path_reading_find(c->reading, f->is.input, f->is.pid, f->is.to - 1, &f->moment,
						&f->path, &f->explained);
	}
	return ret;
}

int view_cases_texts(struct view_cases *c)
{
	const struct inputs *in = c->job->reading->in;
	struct timeline *t = NULL;
	int ret = timeline_open(&t, in, NULL, NULL, NULL);

	for (struct view_found *f = NULL; !ret && (f = view_found_next(c, f));) {
		ret = f->explained ? path_texts_want(&c->texts, &f->moment, &f->path) : 0;
		for (size_t k = 0; k < f->n_events && !ret; k++)
			ret = path_texts_add(&c->texts, f->events[k].nr);
	}
	ret = ret ?: path_texts(in, t, &c->texts);
	merge_damage_join(c->job->damaged, t ? merge_damaged(t->merge) : 0);
	timeline_close(t);
	return ret;
}

void view_cases_head(struct view_cases *c, uint64_t origin, struct json *j)
{
	const struct reading *of = c->job->reading;
	struct path_answer answer = { .in = of->in, .steps = of->steps, .texts = &c->texts };

	json_key_array(j, "cases");
	for (const struct view_found *f = NULL; (f = view_found_next(c, f));) {
		json_object(j);
		json_key_u64(j, "machine", f->is.input);
		json_key_u64(j, "pid", (uint64_t)f->is.pid);
		json_key_u64(j, "from", f->is.from - origin);
		json_key_u64(j, "to", f->is.to - origin);
		json_key_array(j, "events");
		for (const struct path_row *r = f->events; r < f->events + f->n_events; r++) {
			const struct path_text *text = path_texts_find(&c->texts, r->nr);

			if (!text || !text->name)
				continue;
			json_array(j);
			json_u64(j, r->input);
			json_u64(j, r->cpu);
			json_u64(j, r->ts - origin);
			json_u64(j, r->bound + 1u); /* 0: unknown */
			json_str(j, text->name);
			json_str(j, text->text);
			json_array_end(j);
		}
		json_array_end(j);
		if (f->explained) {
			answer.moment = &f->moment;
			answer.path = &f->path;
			json_key(j, "answer");
			path_answer_write(&answer, ANSWER_JSON, j->out);
			j->keyed = false;
		}
		json_object_end(j);
	}
	json_array_end(j);
}
