// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the hypervisor's buffer, text or raw, and writes full records to the spool. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hyp/nvhe.h"
#include "record/rawpipe.h"
#include "record/remote-priv.h"
#include "record/repair.h"
#include "util/array.h"

/* More than the kernel's trace_seq holds: a read never leaves a rest behind it. */
#define TEXT_CHUNK 65536
/* What steps back by less is the clock being fitted; what is older than the recording by less as well. */
#define STEP_BACK_NS 1000000
#define OLDER_NS     1000000000

static int drain_emit(void *ctx, const void *page, size_t size)
{
	struct remote_reader *x = ctx;
	int ret = pwrite_all(x->d->out, page, size, x->offset);

	if (ret)
		return ret;
	x->offset += size;
	x->d->stats->bytes += size;
	return 0;
}

/* The page that is being filled goes to the file too: a kill -9 then costs nothing that was read. */
static int drain_sync(struct remote_reader *x)
{
	const void *page = page_writer_peek(&x->w);

	return page ? pwrite_all(x->d->out, page, x->w.size, x->offset) : 0;
}

/* ---- records -------------------------------------------------------------------- */

/* The vCPUs' threads are named in the file. */
static int note_vcpu(struct remote_reader *x, int vcpu)
{
	struct remote *r = x->r;
	int *v;

	if (!vcpu || vcpu == x->last_vcpu)
		return 0;
	x->last_vcpu = vcpu;
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i] == vcpu)
			return 0;
	v = array_grow(r->vcpus, r->n_vcpus, sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->vcpus = v;
	v[r->n_vcpus++] = vcpu;
	return 0;
}

/* A plain-nVHE host's times step back as a vCPU is loaded, or one was loaded all the time. */
static int note_early(struct remote_reader *x, uint64_t ts)
{
	const uint64_t from = atomic_load(&x->r->on_since);
	bool early = (x->last_ts && nvhe_diff(ts, x->last_ts) < -STEP_BACK_NS) ||
		     (from && nvhe_diff(ts, from) < -OLDER_NS);

	x->last_ts = ts;
	/* Android traces in protected mode only, where times need no repair */
	if (!early || x->r->raw || !x->r->spool || atomic_exchange(&x->r->early, true))
		return 0;
	return spool_want_repair(x->r->spool);
}

static int write_record(struct remote_reader *x, const struct hyprecord *rec)
{
	int ret;

	if (rec->lost) {
		x->d->stats->lost += rec->lost;
		ret = page_write_lost(&x->w, rec->lost);
		if (ret)
			return ret;
	}
	ret = page_write(&x->w, rec->ts, rec->data, rec->len);
	if (ret == -EMSGSIZE) {
		x->d->stats->bad++;
		return 0;
	}
	x->d->stats->events++;
	return ret;
}

int remote_reader_record(void *ctx, const struct hyprecord *rec)
{
	struct remote_reader *x = ctx;
	int ret = note_vcpu(x, hyp_record_vcpu(&x->r->events, rec->data, rec->len));

	if (ret)
		return ret;
	ret = note_early(x, rec->ts);
	return ret ? ret : write_record(x, rec);
}

/* ---- one CPU ---------------------------------------------------------------------- */

int remote_reader_open(struct remote_reader *x, struct remote *r, unsigned int cpu, struct drain *d)
{
	off_t end = lseek(d->out, 0, SEEK_CUR);
	int ret;

	*x = (struct remote_reader){ .r = r, .cpu = cpu, .d = d, .offset = (uint64_t)end };
	x->text = hyptext_new(&r->events);
	x->record_size = r->source.page_size + HYP_RECORD_EXTRA;
	x->record = malloc(x->record_size);
	if (end < 0)
		ret = -errno;
	else if (!x->text || !x->record)
		ret = -ENOMEM;
	else
		ret = page_writer_init(&x->w, r->source.page_size, drain_emit, x);
	return ret ? remote_reader_close(x, ret) : 0;
}

int remote_reader_close(struct remote_reader *x, int ret)
{
	if (!ret)
		ret = page_flush(&x->w, true);
	page_writer_release(&x->w);
	hyptext_free(x->text);
	free(x->record);
	return ret;
}

/* Before a page that uses them can be the last one. */
int remote_save_reasons(struct remote *r)
{
	int ret = 0;

	while (r->saved_reasons < r->events.extra_reasons.n && r->spool && !ret) {
		char *line = str_printf("%s\n", r->events.extra_reasons.v[r->saved_reasons]);

		ret = line ? spool_append_text(r->spool, "hyp_reasons", line, strlen(line)) : -ENOMEM;
		free(line);
		r->saved_reasons++;
	}
	return ret;
}

/* Mainline's text. */
static int drain_text(struct remote_reader *x, const void *data, size_t len)
{
	uint64_t bad = hyptext_bad_lines(x->text);
	int ret;

	pthread_mutex_lock(&x->r->lock);
	ret = hyptext_feed(x->text, data, len, remote_reader_record, x) ?: remote_save_reasons(x->r);
	pthread_mutex_unlock(&x->r->lock);
	x->d->stats->bad += hyptext_bad_lines(x->text) - bad;
	return ret ? ret : drain_sync(x);
}

static bool is_text(const void *page, size_t len)
{
	return len > 4 && (!memcmp(page, "CPU:", 4) ||
			   (*(const char *)page == '[' && isdigit(((const uint8_t *)page)[1])));
}

/* A record of Android's raw pages. */
static int drain_raw_record(struct remote_reader *x, const struct page_event *ev)
{
	ssize_t n = hypraw_record(&x->r->events, ev->data, ev->len, x->record, x->record_size);
	struct hyprecord rec = { .ts = ev->ts, .cpu = x->cpu, .data = x->record, .len = (size_t)n };
	int ret;

	if (n < 0) {
		x->d->stats->bad++;
		return 0;
	}
	pthread_mutex_lock(&x->r->lock);
	ret = remote_reader_record(x, &rec);
	pthread_mutex_unlock(&x->r->lock);
	return ret;
}

int remote_reader_page(struct remote_reader *x, const void *page, size_t len)
{
	struct page_reader pr;
	struct page_event ev;
	int more = 0, ret = page_reader_init(&pr, &x->r->layout, page, len);

	if (ret && is_text(page, len)) {
		log_err(x->r->log,
			"%s: trace_pipe_raw of this kernel gives text (Android 6.12 before July "
			"2025): a newer kernel is needed",
			x->r->path);
		return -EPROTO;
	}
	if (ret) { /* builds between two Android fixes hand out such pages: count, go on */
		x->d->stats->bad++;
		return page_write_lost(&x->w, 0);
	}
	if (pr.missed) {
		ret = page_write_lost(&x->w, pr.missed_count);
		x->d->stats->lost += pr.missed_count ? pr.missed_count : 1;
	}
	while (!ret && (more = page_next(&pr, &ev)) == 1)
		ret = drain_raw_record(x, &ev);
	if (!ret && more < 0) {
		x->d->stats->bad++;
		ret = page_write_lost(&x->w, 0);
	}
	return ret ? ret : drain_sync(x);
}

/*
 * trace_pipe has no poll and knows no O_NONBLOCK: a read sleeps until there is
 * text or a signal comes. With tracing off, an interrupted read means empty: the
 * kernel looks for data before it looks for signals.
 */
static int drain_pipe(struct remote_reader *x, int fd, void *chunk, size_t size)
{
	const bool raw = x->r->raw;

	for (;;) {
		ssize_t n = read(fd, chunk, size);
		int ret = 0;

		if (n > 0)
			ret = (raw ? remote_reader_page : drain_text)(x, chunk, (size_t)n);
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		else if (atomic_load(x->d->stopping))
			return 0;
		else if (!n || errno == EAGAIN)
			ret = rawpipe_wait(raw ? fd : -1, x->d);
		if (ret)
			return ret;
	}
}

/* Losses behind the last record. */
static int end_text(struct remote_reader *x)
{
	uint64_t lost = hyptext_pending_lost(x->text);

	x->d->stats->lost += lost;
	return lost ? page_write_lost(&x->w, lost) : 0;
}

static int drain_fd(struct remote *r, unsigned int cpu, struct drain *d, int fd)
{
	const size_t size = r->raw ? r->source.page_size : TEXT_CHUNK;
	void *chunk = malloc(size);
	struct remote_reader x;
	int ret = chunk ? remote_reader_open(&x, r, cpu, d) : -ENOMEM;

	if (!ret)
		ret = remote_reader_close(&x, drain_pipe(&x, fd, chunk, size) ?: end_text(&x));
	free(chunk);
	return ret;
}

int remote_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct remote *r = remote_of(s);
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/%s", cpu, r->raw ? "trace_pipe_raw" : "trace_pipe");
	fd = openat(r->dirfd, path, O_RDONLY | O_CLOEXEC | (r->raw ? O_NONBLOCK : 0));
	if (fd < 0 && (errno == ENODEV || errno == ENXIO)) /* a CPU that is off has no buffer to be read */
		return 0;
	if (fd < 0) {
		ret = -errno;
		log_err(r->log, "cannot open %s/%s: %s", r->path, path, errno_text(ret));
		return ret;
	}
	ret = drain_fd(r, cpu, d, fd);
	close(fd);
	return ret;
}

/* ---- statistics --------------------------------------------------------------------------- */

int remote_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	buf_printf(out,
		   "CPU: %u\nentries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\n"
		   "dropped events: 0\nread events: %llu\n",
		   cpu, (unsigned long long)st->lost, (unsigned long long)st->events);
	return buf_status(out);
}
