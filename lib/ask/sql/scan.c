// SPDX-License-Identifier: LGPL-2.1-or-later
/* The records that a table is made of: those of the CPUs and buffers that are wanted, until the wanted time
 * ends. */
#include "ask/sql/sql-priv.h"

int sql_streams_find(struct sql *s)
{
	struct sql_scan c = { 0 };
	struct merge_run run = { 0 };
	int ret;

	s->first = calloc(s->in->n + 1, sizeof(*s->first));
	if (!s->first)
		return -ENOMEM;
	for (size_t input = 0; input < s->in->n; input++) {
		const struct reader_info *info = reader_info(s->in->v[input].reader);

		s->first[input] = calloc(info->n_buffers + 1, sizeof(**s->first));
		if (!s->first[input])
			return -ENOMEM;
		for (size_t b = 0; b < info->n_buffers; b++) {
			s->first[input][b] = s->n_streams;
			for (size_t i = 0; i < info->buffers[b].n_cpus; i++) {
				struct sql_stream one = { input, b, i, info->buffers[b].cpus[i].cpu, false };

				if (array_push(&s->streams, &s->n_streams, &one, sizeof(one)))
					return -ENOMEM;
				s->bytes +=
					info->buffers[b].cpus[i].size * (*info->compression == 'z' ? 4 : 1);
			}
		}
	}
	if (s->n_streams > 1u << ID_STREAM_BITS)
		return log_fail(s->log, -E2BIG, "the files have more than %u CPUs and buffers",
				1u << ID_STREAM_BITS);
	/* a ring buffer is the hypervisor's or the host's, as is its first known event */
	ret = sql_scan_open(&c, s, NULL, PART_ALL);
	for (size_t i = 0; ret >= 0 && i < c.n; i++) {
		const struct known_event *e = NULL;
		unsigned int id;

		ret = sql_scan_take(&c, i, &run);
		for (size_t k = 0; ret == 1 && !e && k < run.n; k++)
			e = timeline_event(c.t, &run.v[k], &id);
		if (e)
			s->streams[c.map[i]].hyp = e->hyp;
	}
	merge_run_release(&run);
	sql_scan_close(&c);
	atomic_store(&s->records, 0);
	return ret < 0 ? ret : 0;
}

struct sql_scan_want {
	const struct sql *sql;
	const struct sql_want *want;
	enum sql_part part;
	size_t only; /* the one stream; SIZE_MAX: any */
};

static bool sql_scan_wants(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct sql_scan_want *w = ctx;
	const struct sql_stream *v = w->sql->streams;
	size_t at = w->sql->first[input][buffer];

	if (w->only != SIZE_MAX)
		return v[w->only].input == input && v[w->only].buffer == buffer && v[w->only].cpu == cpu;
	while (v[at].cpu != cpu)
		at++;
	if (w->part != PART_ALL && v[at].hyp != (w->part == PART_HYP))
		return false;
	if (!w->want)
		return true;
	return sql_in(&w->want->cpu, cpu) &&
	       (!w->want->by_machine ||
		(w->want->machine && !strcmp(w->want->machine, w->sql->in->v[input].machine)));
}

int sql_scan_join(struct sql_scan *c, struct sql *s, struct timeline *t)
{
	*c = (struct sql_scan){ .sql = s, .t = t, .joined = true, .n = merge_streams(t->merge) };
	c->map = calloc(c->n + 1, sizeof(*c->map));
	c->blocks = calloc(c->n + 1, sizeof(*c->blocks));
	if (!c->map || !c->blocks) {
		sql_scan_close(c);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n; i++) {
		const struct merge_stream *at = merge_stream_at(t->merge, i);

		c->map[i] = s->first[at->input][at->buffer] + at->index;
	}
	return 0;
}

static int sql_scan_begin(struct sql_scan *c, struct sql *s, struct sql_scan_want *w)
{
	struct timeline *t = NULL;
	int ret = timeline_open(&t, s->in, sql_scan_wants, w, &s->once) ?: sql_scan_join(c, s, t);

	c->joined = false;
	if (ret)
		timeline_close(t);
	return ret;
}

void sql_scan_from(struct sql_scan *c, const struct sql_want *want)
{
	if (want->ts.from > 0)
		merge_from(c->t->merge, (uint64_t)want->ts.from);
}

int sql_scan_open(struct sql_scan *c, struct sql *s, const struct sql_want *want, enum sql_part part)
{
	struct sql_scan_want w = { s, want, part, SIZE_MAX };
	int ret = sql_scan_begin(c, s, &w);

	if (!ret && want)
		sql_scan_from(c, want);
	return ret;
}

int sql_scan_one(struct sql_scan *c, struct sql *s, size_t stream)
{
	struct sql_scan_want w = { s, NULL, PART_ALL, stream };
	int ret = sql_scan_begin(c, s, &w);

	c->single = true;
	/* a buffer may list a CPU twice */
	while (!ret && c->one < c->n && c->map[c->one] != stream)
		c->one++;
	return ret;
}

void sql_scan_close(struct sql_scan *c)
{
	if (c->t && !c->joined) {
		merge_damage_join(&c->sql->damaged, merge_damaged(c->t->merge));
		merge_run_release(&c->run);
		timeline_close(c->t);
	}
	free(c->map);
	free(c->blocks);
	*c = (struct sql_scan){ 0 };
}

static int sql_scan_taken(struct sql_scan *c, const struct merge_run *run, int ret)
{
	if (sql_stopped(c->sql))
		return -EINTR;
	if (ret == 1)
		atomic_fetch_add_explicit(&c->sql->records, run->n, memory_order_relaxed);
	return ret;
}

int sql_scan_take(struct sql_scan *c, size_t i, struct merge_run *run)
{
	return sql_scan_taken(c, run, merge_take_stream(c->t->merge, i, run));
}

int sql_scan_run(struct sql_scan *c)
{
	int ret = 0;

	if (!c->single)
		ret = merge_take(c->t->merge, &c->run);
	else if (c->one < c->n)
		ret = merge_take_stream(c->t->merge, c->one, &c->run);
	return sql_scan_taken(c, &c->run, ret);
}

uint64_t sql_scan_record(const struct sql_scan *c)
{
	uint64_t at;

	return sql_id_record(merge_run_place(&c->run, c->m, &c->blocks[c->m->stream], &at) ? (int64_t)(at / 4)
											   : -1);
}

int sql_scan_next(struct sql_scan *c)
{
	while (c->at == c->run.n) {
		int ret = sql_scan_run(c);

		c->at = 0;
		if (ret != 1) {
			c->run.n = 0;
			return ret;
		}
	}
	c->m = &c->run.v[c->at++];
	c->stream = c->map[c->m->stream];
	return 1;
}

/* ---- a record by its place: out of the run that was read last, or from its page on ------------------- */

/* True if the run has the record at that place: it is c->m. Else c->at is the first one after it. */
static bool sql_record_find(struct sql_scan *c, uint64_t record)
{
	size_t from = 0, to = c->run.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		c->m = &c->run.v[middle];
		if (sql_scan_record(c) < record)
			from = middle + 1;
		else
			to = middle;
	}
	c->at = from;
	if (from == c->run.n)
		return false;
	c->m = &c->run.v[from];
	if (!c->m->data || sql_scan_record(c) != record)
		return false;
	c->at++;
	return true;
}

int sql_record(struct sql *s, size_t stream, uint64_t record, struct sql_scan **out)
{
	struct sql_scan *c;
	int ret;

	if (stream >= s->n_streams)
		return 0;
	if (!s->readers)
		s->readers = calloc(s->n_streams, sizeof(*s->readers));
	if (!s->readers)
		return -ENOMEM;
	c = *out = &s->readers[stream];
	ret = c->t ? 0 : sql_scan_one(c, s, stream);
	if (ret || c->one == c->n || sql_record_find(c, record))
		return ret ? ret : c->one < c->n;
	/* most ask for one of the next run */
	if (c->at == c->run.n && sql_scan_next(c) == 1 && sql_record_find(c, record))
		return 1;
	ret = merge_seek(c->t->merge, c->one, record * 4);
	c->at = c->run.n = 0;
	while (ret == 1 && (ret = sql_scan_next(c)) == 1) {
		if (sql_record_find(c, record))
			return 1;
		if (c->at < c->run.n)
			return 0;
	}
	return ret;
}
