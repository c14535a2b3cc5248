// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the events of the files that are points of chains, reads the files for the chains, and keeps their
 * results; counts what is in virtio's queues. */
#include "ask/latency/latency-priv.h"

#define QUEUES_MAX 256 /* further ones share a row */

/* A field called NAME, or NAME0, NAME1 ... False: the event has none. */
static bool queue_field(struct tep_event *e, const struct merge_record *m, const char *name, int i,
			uint64_t *v)
{
	const struct tep_format_field *f;
	char numbered[24];

	snprintf(numbered, sizeof(numbered), "%s%d", name, i);
	f = tep_find_field(e, i < 0 ? name : numbered);
	*v = 0;
	return f && field_number(f, m->data, m->len, v);
}

/*
 * Adds the bytes of the descriptors [from, to), or of lists of one descriptor. False: the event does not
 * carry all of them.
 */
static bool queue_bytes(struct tep_event *e, const struct merge_record *m, uint64_t from, uint64_t to,
			uint64_t *bytes)
{
	uint64_t sum = 0, len, end;

	for (uint64_t i = from; i < to; i++) {
		/* SG_END of include/linux/scatterlist.h, in the lowest byte of page_link: a list ends */
		if (i > INT8_MAX || !queue_field(e, m, "len", (int)i, &len) ||
		    (queue_field(e, m, "end", (int)i, &end) && !(end & 2)))
			return false;
		sum += len;
	}
	*bytes += sum;
	return true;
}

static int queue_add(struct queues *q, struct tep_event *e, size_t input, const struct merge_record *m)
{
	const struct queue others = { .device = -1, .others = true };
	struct queue key = { .input = input }, *to;
	uint64_t out, in, device;
	const uint8_t *name;
	size_t n, i = 0;

	key.device = queue_field(e, m, "device", -1, &device) ? (int64_t)device : -1;
	field_bytes(tep_find_field(e, "queue"), m->data, m->len, &name, &n);
	snprintf(key.name, sizeof(key.name), "%.*s", (int)(n < sizeof(key.name) ? n : sizeof(key.name)),
		 name);
	while (i < q->n && !q->v[i].others &&
	       (q->v[i].input != input || q->v[i].device != key.device ||
		strcmp(q->v[i].name, key.name) != 0))
		i++;
	if (i == q->n && array_push(&q->v, &q->n, i < QUEUES_MAX ? &key : &others, sizeof(key)))
		return -ENOMEM;
	to = &q->v[i];
	queue_field(e, m, "out", -1, &out);
	queue_field(e, m, "in", -1, &in);
	to->buffers++;
	to->out += out;
	to->in += in;
	if (!queue_bytes(e, m, 0, out, &to->out_bytes) || !queue_bytes(e, m, out, out + in, &to->in_bytes))
		to->unknown++;
	return 0;
}

/* A part of a pass; ctx is the struct latency. */
static int queues_after(void *ctx, struct pass_run *run)
{
	struct latency *l = ctx;
	int ret = 0;

	for (size_t i = 0; i < run->records->n && !ret; i++) {
		const struct merge_record *m = &run->records->v[i];
		size_t input = merge_stream(l->t->merge, m)->input;
		const struct known_event *e = m->data ? input_event(&l->in->v[input], timeline_id(m)) : NULL;

		if (e && !strcmp(e->event->system, "virtio") && !strncmp(e->event->name, "add", 3))
			ret = queue_add(&l->queues, e->event, input, m);
	}
	return ret;
}

#define WHY_MAX 1200

static int latency_add_term(struct latency *l, size_t input, size_t term, const struct log *log)
{
	const struct input *in = &l->in->v[input];
	const struct latency_term *of = &l->plan->terms[term];
	const struct latency_key_of *keys[] = { &of->look, &of->next, &of->carry, &of->at, &of->row };
	struct latency_input *v = &l->v[input];
	const struct event_match *m = &v->matches[term];
	char why[WHY_MAX] = "";
	int ret = of->line && l->plan->without_lines
			  ? 0
			  : event_match_open(&v->matches[term], &l->words[term], in, why, sizeof(why));

	for (size_t i = 0; i < m->n && !ret; i++) {
		struct latency_source s = { .id = m->v[i].id, .term = term, .filter = m->v[i].filter };
		struct latency_taker *takers[] = { &s.look, &s.next, &s.carry, &s.at, &s.row };

		for (size_t k = 0; k < ARRAY_SIZE(keys) && !ret; k++)
			ret = latency_taker_init(takers[k], keys[k], l->vcpus, l->in, input, m->v[i].event,
						 m->v[i].hyp, l->plan->apart, why, WHY_MAX);
		ret = ret ?: array_push(&v->v, &v->n, &s, sizeof(s));
		if (ret)
			break;
		l->counts[term].known = true;
		if (of->cancels)
			continue;
		v->wanted[m->v[i].hyp] = true;
		v->points |= 1u << of->point;
	}
	if (ret == -EINVAL && l->plan->lenient)
		return 0;
	if (ret == -EINVAL)
		log_err(log, "%s: '%s': %s", in->path, of->event, why);
	return ret;
}

/* By event; of one event ends before begins: a record may be both. */
static int latency_compare(const void *a, const void *b)
{
	const struct latency_source *x = a, *y = b;

	return ORDER(x->id, y->id) ?: ORDER(y->term, x->term);
}

static int latency_terms_open(struct latency *l, const struct log *log)
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
	for (size_t i = 0; i < l->in->n && !ret; i++) {
		struct latency_input *v = &l->v[i];

		v->matches = calloc(l->plan->n_terms, sizeof(*v->matches));
		v->n_ids = l->in->v[i].n_known;
		v->first = calloc(v->n_ids + 1, sizeof(*v->first));
		v->wants = calloc(v->n_ids + 1, sizeof(*v->wants));
		if (!v->matches || !v->first || !v->wants)
			return -ENOMEM;
		for (size_t k = 0; k < l->plan->n_terms && !ret; k++)
			ret = latency_add_term(l, i, k, log);
		array_sort(v->v, v->n, sizeof(*v->v), latency_compare);
		for (size_t k = v->n; k-- > 0 && !ret;)
			v->first[v->v[k].id] = (uint32_t)k + 1;
		/* filters ask for tasks' names: libtraceevent sorts them when the first is asked for */
		tep_data_comm_from_pid(l->in->v[i].tep, 0);
	}
	if (!ret) {
		size_t machines = 0;
		uint64_t widest = 1;

		/* The widest bound counts if events of several machines meet below one key. */
		for (size_t i = 0; i < l->in->n; i++) {
			const struct input *in = &l->in->v[i];
			uint64_t bound = filetime_widest_bound(&in->time);

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
	return ret;
}

uint64_t latency_bound(const struct chain_event *a, const struct chain_event *b)
{
	if (a->input == b->input)
		return 0;
	return a->bound > UINT64_MAX - b->bound ? UINT64_MAX : a->bound + b->bound;
}

uint64_t latency_begun(const struct latency_row *r, size_t n_points)
{
	uint64_t n = r->stages[n_points - 1].n + r->undecided + r->lost + r->refused;

	for (size_t i = 0; i < n_points; i++)
		n += r->stopped[i] + r->unrecorded[i];
	return n;
}

static int latency_row_done(struct latency *l, uint32_t row, const struct chain_event *v, size_t n)
{
	struct latency_rows *all = &l->rows;
	struct latency_row *r = &all->v[row];
	struct latency_worst one = { .took = v[n - 1].ts - v[0].ts, .row = row };
	int ret = histogram_add(&r->stages[n - 1], one.took);
	size_t at = all->n_worst;

	for (size_t i = 0; i + 1 < n && !ret; i++) {
		uint64_t bound = latency_bound(&v[i], &v[i + 1]);

		r->bound = bound > r->bound ? bound : r->bound;
		if (n > 2)
			ret = histogram_add(&r->stages[i], v[i + 1].ts - v[i].ts);
	}
	memcpy(one.v, v, n * sizeof(*v));
	/* the longest, in their order; of equal ones the first */
	while (at && all->worst[at - 1].took < one.took)
		at--;
	if (at < l->plan->worst) {
		all->n_worst += all->n_worst < l->plan->worst;
		memmove(&all->worst[at + 1], &all->worst[at], (all->n_worst - 1 - at) * sizeof(one));
		all->worst[at] = one;
	}
	return ret || !l->plan->each ? ret : l->plan->each(l->plan->ctx, &one, &r->key, n);
}

/*
 * True if a file has the point's machine from that time until now. Chains of --from and --to count as stopped
 * in any case.
 */
static bool latency_recorded(const struct latency *l, const struct latency_row *r, size_t point,
			     uint64_t since)
{
	enum latency_scope scope = (enum latency_scope)(r->key.scope >> 32);
	bool of_guest = !r->others && (scope == SCOPE_VCPU || scope == SCOPE_PAIR);

	for (size_t i = 0; i < l->in->n; i++) {
		const struct latency_input *v = &l->v[i];

		if (!(v->points & 1u << point) || (l->in->v[i].guest && of_guest &&
						   vcpu_map_of_input(l->vcpus, i) != (uint32_t)r->key.scope))
			continue;
		if (v->live && v->begun <= since)
			return true;
	}
	return l->plan->strays;
}

/* As chain_results.add; ctx is the struct latency. */
static int latency_row_add(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v,
			   size_t n)
{
	struct latency *l = ctx;
	struct latency_row *r;
	size_t first = l->plan->recalls, came;

	if (n == 1 && (fate == CHAIN_STRAY || fate == CHAIN_UNDECIDED) && !l->plan->strays)
		return 0;
	r = &l->rows.v[row];
	/* an event of a complete chain whose machine's file began after the chain: another may have been
	 * before */
	for (came = first + 1;
	     came < n && !l->plan->strays && (fate == CHAIN_DONE || fate == CHAIN_UNDECIDED); came++) {
		uint64_t begun = l->v[v[came].input].begun;

		if (begun > v[first].ts || v[first].ts - begun < latency_bound(&v[first], &v[came])) {
			r->unrecorded[came]++;
			return 0;
		}
	}
	switch (fate) {
	case CHAIN_DONE:
		return latency_row_done(l, row, v, n);
	case CHAIN_UNDECIDED:
		*(n == 1 ? &r->doubtful : &r->undecided) += 1;
		break;
	case CHAIN_LOST:
		r->lost++;
		break;
	case CHAIN_STOPPED:
		came = n + l->plan->recalls;
		(latency_recorded(l, r, came, v[n - 1].ts) ? r->stopped : r->unrecorded)[came]++;
		break;
	case CHAIN_STRAY:
		r->strays++;
		break;
	case CHAIN_REFUSED:
		r->refused++;
		break;
	}
	return 0;
}

static bool latency_want(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct latency *l = ctx;

	return l->v[input].n || l->plan->queues;
}

/* Lets the part of l do the other's work, too. */
static void latency_join(struct latency *l, struct latency *other)
{
	for (size_t i = 0; i < l->in->n; i++)
		for (size_t id = 0; id < l->v[i].n_ids; id++)
			l->v[i].wants[id] |= (uint32_t)(other->v[i].first[id] != 0) << l->n_group;
	l->group[l->n_group++] = other;
}

struct pass_part latency_part(struct latency *l)
{
	return (struct pass_part){
		.ctx = l, .work = latency_work, .after = latency_after, .release = latency_runs_free
	};
}

static int latency_pass(struct latency *l)
{
	struct pass_part parts[] = { latency_part(l), { .ctx = l, .after = queues_after } };

	for (size_t i = 0; i < l->in->n && !l->plan->queues; i++)
		merge_events(l->t->merge, i, l->v[i].first, l->v[i].n_ids);
	return pass_read(l->t, NULL, parts, l->plan->queues ? 2 : 1);
}

int latency_survey(struct latency *l)
{
	int ret = l->plan->lines ? timeline_open(&l->t, l->in, latency_want, l, NULL) : 0;

	if (ret || !l->plan->lines)
		return ret;
	l->surveys = true;
	l->started = calloc(merge_streams(l->t->merge) + 1, sizeof(*l->started));
	ret = l->started ? latency_pass(l) : -ENOMEM;
	free(l->started);
	l->started = NULL;
	l->surveys = false;
	timeline_close(l->t);
	l->t = NULL;
	lines_settle(&l->lines);
	return ret;
}

static int latency_start(struct latency *l, struct timeline *t)
{
	const struct chain_results to = { latency_row_add, latency_lost, l };

	l->t = t;
	/* where events are in order */
	if (l->plan->uncounted && !l->reach && !l->plan->recalls)
		l->points = 1;
	for (size_t i = 0; i < l->in->n; i++)
		l->v[i].begun = UINT64_MAX;
	return latency_losses_begin(l)
		       ?: chain_open(&l->chain, l->plan->n_points - l->plan->recalls, l->reach, &to);
}

int latency_end(struct latency *l)
{
	return chain_end(l->chain);
}

int latency_read(struct latency *l, const struct log *log, uint64_t *damaged)
{
	struct timeline *t = NULL;
	int ret = latency_survey(l) ?: timeline_open(&t, l->in, latency_want, l, log);

	if (ret)
		return ret;
	ret = latency_start(l, t) ?: latency_pass(l) ?: latency_end(l);
	*damaged = merge_damaged(t->merge);
	timeline_close(t);
	l->t = NULL;
	return ret;
}

bool latency_fed(const struct latency *l)
{
	unsigned int points = 0;

	for (size_t i = 0; i < l->plan->n_terms; i++)
		if (!l->plan->terms[i].cancels && l->counts[i].known)
			points |= 1u << l->plan->terms[i].point;
	return points == (1u << l->plan->n_points) - 1;
}

struct latency_result latency_result(const struct latency *l)
{
	return (struct latency_result){ .rows = l->rows.v,
					.worst = l->rows.worst,
					.queues = l->queues.v,
					.counts = l->counts,
					.n_rows = l->rows.n,
					.n_worst = l->rows.n_worst,
					.n_queues = l->queues.n,
					.unbounded = l->unbounded,
					.why_lost = !l->paused ? "events were lost"
						    : l->lost  ? "events were lost, or tracing was off,"
							       : "tracing was off",
					.vcpus = l->vcpus };
}

int latency_open(struct latency **out, const struct inputs *in, const struct latency_plan *plan,
		 const struct log *log)
{
	struct latency *l = *out = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	l->in = in;
	l->plan = plan;
	l->points = SIZE_MAX;
	l->rows.worst = calloc(plan->worst + 1, sizeof(*l->rows.worst));
	ret = l->rows.worst ? vcpu_map_open(&l->vcpus, in) ?: latency_terms_open(l, log) : -ENOMEM;
	if (!ret)
		latency_join(l, l);
	return ret;
}

int latency_begin(struct latency **out, struct latency **first, const struct inputs *in,
		  const struct latency_plan *plan, struct timeline *t, const struct log *log)
{
	int ret = latency_open(out, in, plan, log);

	if (ret || !latency_fed(*out)) {
		latency_close(*out);
		*out = NULL;
		return ret;
	}
	if (*first)
		latency_join(*first, *out);
	*first = *first ?: *out;
	return latency_survey(*out) ?: latency_start(*out, t);
}

void latency_close(struct latency *l)
{
	if (!l)
		return;
	chain_close(l->chain);
	for (size_t i = 0; i < l->rows.n; i++)
		for (size_t k = 0; k < CHAIN_POINTS_MAX; k++)
			histogram_release(&l->rows.v[i].stages[k]);
	free(l->rows.v);
	free(l->rows.worst);
	latency_keys_release(&l->rows.keys);
	free(l->losing);
	free(l->started);
	free(l->recall);
	latency_keys_release(&l->recalled);
	free(l->lines.v);
	free(l->queues.v);
	free(l->losses.v);
	latency_keys_release(&l->losses.places);
	for (size_t i = 0; l->v && i < l->in->n; i++) {
		struct latency_input *v = &l->v[i];

		for (size_t k = 0; v->matches && k < l->plan->n_terms; k++)
			event_match_release(&v->matches[k]);
		free(v->matches);
		free(v->v);
		free(v->first);
		free(v->wants);
	}
	free(l->v);
	for (size_t i = 0; i < l->plan->n_terms; i++)
		event_words_release(&l->words[i]);
	vcpu_map_close(l->vcpus);
	free(l);
}
