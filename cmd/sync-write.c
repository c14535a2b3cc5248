// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sync --write: the offsets into the guests' files, the vCPU threads into the host's. */
#include "sync/write.h"

#include <stdlib.h>
#include <string.h>

#include "dat/options.h"
#include "sync-priv.h"

static int add_encoded(struct dat_options *o, uint16_t id, struct buf *b)
{
	int ret = buf_status(b);

	if (!ret)
		ret = dat_options_add(o, id, b->data, b->len);
	buf_release(b);
	return ret;
}

/* Whether a GUEST option is of a guest that gets a new one. */
static bool has_new_map(const struct sync_job *job, const struct reader_option *o)
{
	struct offset_guest g;
	bool renewed = false;

	if (offset_guest_decode(o->data.data, o->data.len, &g))
		return false;
	for (size_t i = 0; i < job->found.n_guests; i++)
		renewed = renewed || (job->found.guests[i].result.n_knots &&
				      job->found.guests[i].file->trace_id == g.trace_id);
	offset_guest_release(&g);
	return renewed;
}

static bool is_renewed(const struct sync_job *job, const struct input *in, const struct reader_option *o)
{
	if (in == job->found.host)
		return o->id == DAT_GUEST && has_new_map(job, o);
	return o->id == DAT_TIME_SHIFT || o->id == DAT_TSC2NSEC;
}

/* All options of the file but those that are written anew. */
static int keep_options(const struct sync_job *job, const struct input *in, struct dat_options *o)
{
	const struct reader_info *info = reader_info(in->reader);
	int ret = 0;

	for (size_t i = 0; i < info->n_options && !ret; i++) {
		const struct reader_option *one = &info->options[i];

		if (!is_renewed(job, in, one) && !dat_writes_option(one->id))
			ret = dat_options_add(o, one->id, one->data.data, one->data.len);
	}
	return ret;
}

static int write_file(const struct sync_job *job, const struct input *in, const struct dat_options *o,
		      const char *what)
{
	int ret = sync_rewrite(in->reader, in->path, o->v, o->n, job->log);

	if (!ret)
		log_info(job->log, "%s: %s written, the original is %s.orig", in->path, what, in->path);
	return ret;
}

/* The guest's times, shifted, are the host's: shown in seconds if those are, by the same rate. */
static int add_rate(const struct sync_job *job, struct dat_options *o)
{
	struct filetime host;
	int ret = filetime_read(&host, job->found.host->reader, 0, NULL);

	if (ret)
		return ret;
	if (host.seconds)
		ret = dat_options_add_tsc2nsec(o, host.mult ? host.mult : 1, host.tsc_shift, 0);
	filetime_release(&host);
	return ret;
}

static int write_guest_file(const struct sync_job *job, const struct offsets_guest *g)
{
	struct dat_options o = { 0 };
	struct buf bytes = { 0 };
	int ret = keep_options(job, g->file, &o);

	if (ret)
		goto out;
	offset_shift_encode(&g->file->time.shift, &bytes); /* handle_sync's */
	ret = add_encoded(&o, DAT_TIME_SHIFT, &bytes);
	if (ret)
		goto out;
	ret = add_rate(job, &o);
	if (ret)
		goto out;
	ret = write_file(job, g->file, &o, "offsets");
out:
	dat_options_release(&o);
	return ret;
}

/* The guest's vCPU threads. */
static int add_guest(struct dat_options *o, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;
	struct buf bytes = { 0 };
	uint32_t n = 0;

	if (!g->result.n_knots || !g->file->trace_id)
		return 0;
	for (size_t i = 0; i < r->n_vcpus; i++)
		n = r->vcpus[i].cpu >= n ? r->vcpus[i].cpu + 1 : n;
	if (sync_guest_option(r, NULL, 0, n, g->name, g->file->trace_id, &bytes))
		bytes.bad = true;
	return add_encoded(o, DAT_GUEST, &bytes);
}

static int write_host_file(const struct sync_job *job)
{
	struct dat_options o = { 0 };
	int ret = keep_options(job, job->found.host, &o);

	for (size_t i = 0; i < job->found.n_guests && !ret; i++)
		ret = add_guest(&o, &job->found.guests[i]);
	if (!ret)
		ret = write_file(job, job->found.host, &o, "vCPU threads");
	dat_options_release(&o);
	return ret;
}

int write_files(struct sync_job *job)
{
	bool any = false;

	for (size_t i = 0; i < job->found.n_guests; i++) {
		const struct offsets_guest *g = &job->found.guests[i];
		int ret;

		if (!g->result.n_knots) {
			log_warn(job->log, "%s: no offset was found, it stays as it is", g->file->path);
			continue;
		}
		any = true;
		ret = write_guest_file(job, g);
		if (ret)
			return ret;
	}
	return any ? write_host_file(job) : 0;
}
