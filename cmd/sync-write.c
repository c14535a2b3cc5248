// SPDX-License-Identifier: GPL-2.0-only
#include "sync/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/options.h"
#include "sync-priv.h"

static int add_buf(struct dat_options *o, uint16_t id, struct buf *b)
{
	int ret = buf_status(b);

	if (!ret)
		ret = dat_options_add(o, id, b->data, b->len);
	buf_release(b);
	return ret;
}

/* All options of the file but those for which drop says so. */
static int keep_options(const struct reader *r, struct dat_options *o,
			bool (*drop)(const struct sync_job *job, const struct reader_option *one),
			const struct sync_job *job)
{
	const struct reader_info *info = reader_info(r);
	int ret = 0;

	for (size_t i = 0; i < info->n_options && !ret; i++) {
		const struct reader_option *one = &info->options[i];

		if (!dat_writes_option(one->id) && !drop(job, one))
			ret = dat_options_add(o, one->id, one->data.data, one->data.len);
	}
	return ret;
}

static bool drop_shift(const struct sync_job *job, const struct reader_option *o)
{
	return o->id == DAT_TIME_SHIFT;
}

static bool has_offset(const struct guest_file *g)
{
	return g->result.n_knots > 0;
}

static int write_guest(const struct sync_job *job, const struct guest_file *g)
{
	struct dat_options o = { 0 };
	struct offset_shift shift = { 0 };
	struct buf bytes = { 0 };
	int ret = sync_time_shift(&g->result, job->host.id, (uint32_t)g->events.n_cpus, &shift);

	if (!ret)
		ret = keep_options(g->file.reader, &o, drop_shift, job);
	if (!ret) {
		offset_shift_encode(&shift, &bytes);
		ret = add_buf(&o, DAT_TIME_SHIFT, &bytes);
	}
	if (!ret)
		ret = sync_rewrite(g->file.reader, g->file.path, o.v, o.n, job->log);
	if (!ret)
		log_info(job->log, "%s: offsets written, the original is %s.orig", g->file.path,
			 g->file.path);
	offset_shift_release(&shift);
	dat_options_release(&o);
	return ret;
}

/* GUEST options of guests that get new ones. */
static bool drop_guest(const struct sync_job *job, const struct reader_option *o)
{
	struct offset_guest g;
	bool drop = false;

	if (o->id != DAT_GUEST || offset_guest_decode(o->data.data, o->data.len, &g))
		return false;
	for (size_t i = 0; i < job->n_guests; i++)
		drop = drop || (has_offset(&job->guests[i]) && job->guests[i].file.id == g.trace_id);
	offset_guest_release(&g);
	return drop;
}

static int write_host(const struct sync_job *job)
{
	struct dat_options o = { 0 };
	int ret = keep_options(job->host.reader, &o, drop_guest, job);

	for (size_t i = 0; i < job->n_guests && !ret; i++) {
		const struct guest_file *g = &job->guests[i];
		struct offset_guest option = { 0 };
		struct buf bytes = { 0 };

		if (!has_offset(g) || !g->file.id)
			continue;
		ret = sync_guest_option(&g->result, g->name, g->file.id, &option);
		if (!ret) {
			offset_guest_encode(&option, &bytes);
			ret = add_buf(&o, DAT_GUEST, &bytes);
		}
		offset_guest_release(&option);
	}
	if (!ret)
		ret = sync_rewrite(job->host.reader, job->host.path, o.v, o.n, job->log);
	if (!ret)
		log_info(job->log, "%s: vCPU threads written, the original is %s.orig", job->host.path,
			 job->host.path);
	dat_options_release(&o);
	return ret;
}

int write_files(struct sync_job *job)
{
	bool any = false;
	int ret = 0;

	for (size_t i = 0; i < job->n_guests && !ret; i++) {
		const struct guest_file *g = &job->guests[i];

		if (!has_offset(g)) {
			log_warn(job->log, "%s: no offset was found, it stays as it is", g->file.path);
			continue;
		}
		any = true;
		ret = write_guest(job, g);
	}
	return ret || !any ? ret : write_host(job);
}
