// SPDX-License-Identifier: LGPL-2.1-or-later
/* The records that a table is made of: those of the CPUs and buffers that are wanted, until the wanted time
 * ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sql/sql-priv.h"
#include "util/array.h"

/* ---- streams -------------------------------------------------------------------------------- */

const char *sql_buffer_name(const struct sql *s, size_t stream)
{
	return reader_info(sql_input(s, stream)->reader)->buffers[s->streams[stream].buffer].name;
}

/* A ring buffer is the hypervisor's or the host's: the first event that is known tells. */
static int sql_stream_look(struct sql *s, struct sql_scan *c, size_t i, struct merge_run *run)
{
	int ret = sql_scan_take(c, i, run);

	for (size_t k = 0; ret == 1 && k < run->n; k++) {
		unsigned int id;
		const struct known_event *e = timeline_event(c->t, &run->v[k], &id);

		if (e) {
			s->streams[c->map[i]].hyp = e->hyp;
			return 0;
		}
	}
	return ret < 0 ? ret : 0;
}

static int sql_streams_look(struct sql *s)
{
	struct sql_scan c = { 0 };
	struct merge_run run = { 0 };
	int ret = sql_scan_open(&c, s, NULL, PART_ALL);

	for (size_t i = 0; !ret && i < c.n; i++)
		ret = sql_stream_look(s, &c, i, &run);
	merge_run_release(&run);
	sql_scan_close(&c);
	atomic_store(&s->records, 0);
	return ret;
}

static int sql_streams_list(struct sql *s, size_t input)
{
	const struct reader_info *info = reader_info(s->in->v[input].reader);

	s->first[input] = calloc(info->n_buffers + 1, sizeof(**s->first));
	if (!s->first[input])
		return -ENOMEM;
	for (size_t b = 0; b < info->n_buffers; b++) {
		s->first[input][b] = s->n_streams;
		for (size_t i = 0; i < info->buffers[b].n_cpus; i++) {
			struct sql_stream one = { input, b, i, info->buffers[b].cpus[i].cpu, false };
			int ret = array_push(&s->streams, &s->n_streams, &one, sizeof(one));

			if (ret)
				return ret;
			s->bytes += info->buffers[b].cpus[i].size * (*info->compression == 'z' ? 4 : 1);
		}
	}
	return 0;
}

int sql_streams_find(struct sql *s)
{
	s->first = calloc(s->in->n + 1, sizeof(*s->first));
	if (!s->first)
		return -ENOMEM;
	for (size_t i = 0; i < s->in->n; i++) {
		int ret = sql_streams_list(s, i);

		if (ret)
			return ret;
	}
	if (s->n_streams > 1u << ID_STREAM_BITS) {
		log_err(s->log, "the files have more than %u CPUs and buffers", 1u << ID_STREAM_BITS);
		return -E2BIG;
	}
	return sql_streams_look(s);
}

/* ---- which are wanted --------------------------------------------------------------------------- */

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

/* ---- reading -------------------------------------------------------------------------------------- */

static int sql_scan_begin(struct sql_scan *c, struct sql *s, struct sql_scan_want *w)
{
	int ret;

	*c = (struct sql_scan){ .sql = s };
	ret = timeline_open(&c->t, s->in, sql_scan_wants, w, &s->once);
	if (ret)
		return ret;
	c->n = timeline_streams(c->t);
	c->map = calloc(c->n + 1, sizeof(*c->map));
	c->count = calloc(c->n + 1, sizeof(*c->count));
	if (!c->map || !c->count) {
		sql_scan_close(c);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n; i++) {
		const struct merge_record any = { .stream = (uint32_t)i };
		const struct merge_stream *at = timeline_stream(c->t, &any);

		c->map[i] = s->first[at->input][at->buffer] + at->index;
	}
	return 0;
}

void sql_scan_from(struct sql_scan *c, const struct sql_want *want)
{
	if (want->ts.from > 0 && !want->numbered)
		timeline_from(c->t, (uint64_t)want->ts.from);
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

	/* a buffer may say twice that it has a CPU */
	while (!ret && c->one < c->n && c->map[c->one] != stream)
		c->one++;
	return ret;
}

void sql_scan_close(struct sql_scan *c)
{
	uint64_t damaged = c->t ? timeline_damaged(c->t) : 0;

	if (damaged > c->sql->damaged)
		c->sql->damaged = damaged;
	merge_run_release(&c->run);
	timeline_close(c->t);
	free(c->map);
	free(c->count);
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
	return sql_scan_taken(c, run, timeline_take_stream(c->t, i, run));
}

int sql_scan_run(struct sql_scan *c)
{
	return sql_scan_taken(c, &c->run, timeline_take(c->t, &c->run));
}

int sql_scan_next(struct sql_scan *c)
{
	size_t i;

	while (c->at == c->run.n) {
		int ret = sql_scan_run(c);

		c->at = 0;
		if (ret != 1)
			return ret;
	}
	c->m = &c->run.v[c->at++];
	i = c->m->stream;
	c->stream = c->map[i];
	c->record = c->count[i]++;
	return 1;
}
