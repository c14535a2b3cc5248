// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events by counts alone. A query that uses only columns which are the same for all events of one kind on one
 * CPU (name, machine, ...) and has no conditions, such as SELECT name, count(*) FROM events GROUP BY name,
 * needs no record: the kinds are counted on every core, and each is returned as many times, in the order that
 * the query groups by.
 */
#include "ask/sql/sql-priv.h"

int sql_counted_order(const struct sql *s, const struct sql_table *t, const sqlite3_index_info *info,
		      bool *ordered)
{
	int order = ORDER_COUNTED;

	*ordered = info->nOrderBy > 0 && info->nOrderBy <= COUNTED_ORDERS;
	if (!t->counted || s->numbers || s->copying || info->colUsed & ~t->counted)
		return ORDER_ANY;
	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_LIMIT &&
		    info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_OFFSET)
			return ORDER_ANY;
	for (int i = 0; i < info->nOrderBy; i++) {
		int column = info->aOrderBy[i].iColumn;

		if (column < 0)
			return ORDER_ANY;
		if (*ordered)
			order |= (column + 1) << (8 + COUNTED_BITS * i) |
				 info->aOrderBy[i].desc << (7 + COUNTED_BITS * (i + 1));
	}
	return order;
}

/* Counts by stream of s->streams and by event; the last ones are those of events that are unknown. */
struct sql_counting {
	struct sql_scan scan;
	atomic_uint_least64_t **n;
};

static int sql_count_run(void *ctx, const struct merge_run *run, size_t worker)
{
	struct sql_counting *c = ctx;
	size_t stream = c->scan.map[run->v[0].stream];
	unsigned int n_known = sql_input(c->scan.sql, stream)->n_known;

	for (size_t i = 0; i < run->n; i++) {
		unsigned int id = timeline_id(&run->v[i]);

		if (run->v[i].data)
			atomic_fetch_add_explicit(&c->n[stream][id < n_known ? id : n_known], 1,
						  memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&c->scan.sql->records, run->n, memory_order_relaxed);
	return sql_stopped(c->scan.sql) ? -EINTR : 0;
}

static int sql_kinds_compare(const void *a, const void *b, void *ctx)
{
	const struct sql_kinds *c = ctx;
	int order = 0;

	for (int by = c->order >> 8; by && !order; by >>= COUNTED_BITS) {
		int column = (by & ((1 << (COUNTED_BITS - 1)) - 1)) - 1;
		struct cell x = c->cell(c->sql, a, column), y = c->cell(c->sql, b, column);

		if (x.kind != y.kind || x.kind == CELL_NULL)
			order = ORDER(x.kind, y.kind); /* NULL comes first */
		else
			order = x.kind == CELL_NUMBER ? ORDER(x.number, y.number) : strcmp(x.text, y.text);
		order = by & 1 << (COUNTED_BITS - 1) ? -order : order;
	}
	return order;
}

int sql_kinds_read(struct sql_kinds *c, struct sql *s, int order, sql_kinds_cell *cell)
{
	struct sql_counting job = { 0 };
	int ret = sql_scan_open(&job.scan, s, NULL, PART_ALL);

	*c = (struct sql_kinds){ .sql = s, .order = order, .cell = cell };
	job.n = ret ? NULL : calloc(s->n_streams + 1, sizeof(*job.n));
	for (size_t i = 0; job.n && i < s->n_streams && !ret; i++) {
		job.n[i] = calloc(sql_input(s, i)->n_known + 1, sizeof(**job.n));
		ret = job.n[i] ? 0 : -ENOMEM;
	}
	ret = ret ?: job.n ? streams_work(job.scan.t, sql_count_run, &job) : -ENOMEM;
	for (size_t i = 0; job.n && i < s->n_streams; i++) {
		for (unsigned int id = 0; job.n[i] && id <= sql_input(s, i)->n_known && !ret; id++) {
			struct sql_counted one = { i, id, atomic_load(&job.n[i][id]) };

			ret = one.n ? array_push(&c->v, &c->n, &one, sizeof(one)) : 0;
		}
		free(job.n[i]);
	}
	free(job.n);
	sql_scan_close(&job.scan);
	if (order >> 8 && c->n)
		qsort_r(c->v, c->n, sizeof(*c->v), sql_kinds_compare, c);
	return ret;
}
