// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records by their numbers. Each stream has a reader that goes on from where it is, so that asking for
 * one after the other, as joins do, reads the file once; who asks for an earlier one begins anew.
 */
#include <errno.h>
#include <stdlib.h>

#include "sql/sql-priv.h"

struct sql_reader {
	struct sql_scan scan;
	struct merge_run run;
	uint64_t base; /* number of the run's first record */
};

static void sql_reader_close(struct sql_reader *r)
{
	merge_run_release(&r->run);
	if (r->scan.t)
		sql_scan_close(&r->scan);
	*r = (struct sql_reader){ 0 };
}

static int sql_reader_seek(struct sql *s, struct sql_reader *r, size_t stream, uint64_t record)
{
	if (r->scan.t && record < r->base)
		sql_reader_close(r);
	if (!r->scan.t) {
		int ret = sql_scan_one(&r->scan, s, stream);

		if (ret)
			return ret;
		if (r->scan.one == r->scan.n)
			return 0;
	}
	while (record - r->base >= r->run.n) {
		int ret;

		r->base += r->run.n;
		r->run.n = 0;
		ret = sql_scan_take(&r->scan, r->scan.one, &r->run);
		if (ret != 1) { /* what is there now is of no use for anybody */
			sql_reader_close(r);
			return ret;
		}
	}
	return 1;
}

int sql_record(struct sql *s, size_t stream, uint64_t record, const struct merge_record **m,
	       const struct timeline **t)
{
	struct sql_reader *r;
	int ret;

	if (stream >= s->n_streams)
		return 0;
	if (!s->readers)
		s->readers = calloc(s->n_streams, sizeof(*s->readers));
	if (!s->readers)
		return -ENOMEM;
	r = &s->readers[stream];
	ret = sql_reader_seek(s, r, stream, record);
	if (ret == 1) {
		*m = &r->run.v[record - r->base];
		*t = r->scan.t;
	}
	return ret;
}

void sql_records_release(struct sql *s)
{
	for (size_t i = 0; s->readers && i < s->n_streams; i++)
		sql_reader_close(&s->readers[i]);
	free(s->readers);
	s->readers = NULL;
}
