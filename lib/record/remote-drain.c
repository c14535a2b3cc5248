// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the hypervisor's buffer, text or raw, and writes full records to the spool. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/rawpipe.h"
#include "record/remote-priv.h"

/* More than the kernel's trace_seq holds: a read never leaves a rest behind it. */
#define TEXT_CHUNK 65536
/* As nvhe.h has it: what steps back by less is jitter. */
#define STEP_BACK_NS 1000000
/* A read that took as long found the buffer empty. */
#define BLOCKED_NS 1000000
/* How long the kernel keeps records back: it looks every 100 ms, later when it is busy. */
#define POLL_NS 1000000000

static int put_page(struct remote_reader *x, const void *page, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n =
			pwrite(x->d->out, (const uint8_t *)page + done, size - done, x->offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static int emit_page(void *ctx, const void *page, size_t size)
{
	struct remote_reader *x = ctx;
	int ret = put_page(x, page, size);

	if (ret)
		return ret;
	x->offset += (off_t)size;
	x->d->stats->bytes += size;
	return 0;
}

/* The page that is being filled goes to the file too: a kill -9 then costs nothing that was read. */
static int sync_page(struct remote_reader *x)
{
	const void *page = page_writer_peek(&x->w);

	return page ? put_page(x, page, x->w.size) : 0;
}

/* ---- records -------------------------------------------------------------------- */

static int vcpu_of(const struct hypevent *e, const struct hyprecord *rec)
{
	int32_t vcpu = 0;

	if (e && e->vcpu_offset >= 0 && (size_t)e->vcpu_offset + 4 <= rec->len)
		memcpy(&vcpu, rec->data + e->vcpu_offset, 4);
	return vcpu;
}

static const char *reason_of(const struct remote *r, const struct hypevent *e, const struct hyprecord *rec)
{
	const struct event_field *f = e ? event_format_field(&e->fmt, "reason") : NULL;
	size_t at = f ? f->offset - 2 + HYP_HEADER_SIZE : 0;

	if (!f || f->size != 1 || at >= rec->len)
		return NULL;
	if (rec->data[at] < hyp_reasons_n)
		return hyp_reasons[rec->data[at]];
	at = (size_t)rec->data[at] - HYP_REASON_EXTRA;
	return at < r->events.extra_reasons.n ? r->events.extra_reasons.v[at] : NULL;
}

static const struct hypevent *event_of(const struct remote *r, const struct hyprecord *rec)
{
	uint16_t id;

	memcpy(&id, rec->data, 2);
	return id >= r->first_id && id - r->first_id < r->events.n ? &r->events.v[id - r->first_id] : NULL;
}

/* CNTVOFF has been seen. The record comes before the one that showed it. */
static void on_step(void *ctx, const struct nvhe_step *s)
{
	struct remote_reader *x = ctx;
	uint8_t rec[64];
	size_t len;

	x->repaired = true;
	len = remote_cntvoff_record(x->r, s, rec, sizeof(rec));
	if (len && !x->error)
		x->error = page_write(&x->w, s->ts > x->last_ts ? s->ts : x->last_ts, rec, len);
}

static void note_vcpu(struct remote_reader *x, int vcpu)
{
	struct cntvoff *v;

	if (!vcpu || vcpu == x->last_vcpu)
		return;
	v = remote_vcpu(x->r, vcpu);
	if (!v)
		return;
	x->last_vcpu = vcpu;
	/* what other CPUs have seen of it */
	if (x->hold && v->high != UINT64_MAX)
		hold_known(x->hold, vcpu, (int64_t)v->low, (int64_t)v->high);
}

static int write_record(struct remote_reader *x, const struct hyprecord *rec, uint64_t ts)
{
	int ret = 0;

	if (rec->lost) {
		x->d->stats->lost += rec->lost;
		ret = page_write_lost(&x->w, rec->lost);
	}
	if (!ret)
		ret = page_write(&x->w, ts, rec->data, rec->len);
	if (ret == -EMSGSIZE) {
		x->d->stats->bad++;
		return 0;
	}
	x->d->stats->events++;
	return ret;
}

/*
 * Repaired times are right to within the bracket of CNTVOFF, which narrows as
 * the recording goes on: a step back of less than that is no step.
 */
static int write_repaired(void *ctx, const struct hyprecord *rec)
{
	struct remote_reader *x = ctx;
	uint64_t ts = rec->ts;

	if (x->repaired && ts < x->last_ts && x->last_ts - ts < STEP_BACK_NS)
		ts = x->last_ts;
	x->last_ts = ts;
	return x->error ? x->error : write_record(x, rec, ts);
}

int remote_reader_record(void *ctx, const struct hyprecord *rec)
{
	struct remote_reader *x = ctx;
	const struct hypevent *e = event_of(x->r, rec);
	int vcpu = vcpu_of(e, rec);

	note_vcpu(x, vcpu);
	if (!x->hold)
		return write_record(x, rec, rec->ts);
	return hold_add(x->hold, rec, reason_of(x->r, e, rec), vcpu);
}

int remote_reader_settle(struct remote_reader *x)
{
	return x->hold ? hold_release(x->hold, false) : 0;
}

static int settle_last(struct remote_reader *x)
{
	int ret = 0;

	pthread_mutex_lock(&x->r->lock);
	if (x->hold)
		ret = hold_release(x->hold, true);
	pthread_mutex_unlock(&x->r->lock);
	return ret;
}

/* ---- one CPU ---------------------------------------------------------------------- */

int remote_reader_open(struct remote_reader *x, struct remote *r, unsigned int cpu, struct drain *d)
{
	int ret;

	*x = (struct remote_reader){ .r = r, .cpu = cpu, .d = d };
	x->offset = lseek(d->out, 0, SEEK_CUR);
	if (x->offset < 0)
		return -errno;
	ret = page_writer_init(&x->w, r->source.page_size, emit_page, x);
	if (ret)
		return ret;
	if (r->raw) /* Android traces in protected mode only, where times need no repair */
		return 0;
	x->hold = hold_new(cpu, on_step, write_repaired, x);
	if (!x->hold)
		return -ENOMEM;
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->n_cntvoffs; i++)
		if (r->cntvoffs[i].high != UINT64_MAX)
			hold_known(x->hold, r->cntvoffs[i].vcpu, (int64_t)r->cntvoffs[i].low,
				   (int64_t)r->cntvoffs[i].high);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

int remote_reader_close(struct remote_reader *x, int ret)
{
	if (!ret)
		ret = settle_last(x);
	if (!ret)
		ret = page_flush(&x->w, true);
	page_writer_release(&x->w);
	hold_free(x->hold);
	return ret;
}

static int open_pipe(struct remote *r, unsigned int cpu, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/%s", cpu, name);
	fd = openat(r->dirfd, path, O_RDONLY | O_CLOEXEC | flags);
	if (fd >= 0)
		return fd;
	if (errno != ENODEV && errno != ENXIO)
		log_err(r->log, "cannot open %s/%s: %s", r->path, path, strerror(errno));
	return -errno;
}

/* New reasons go to the spool before a page that uses them can be the last one. Under the lock. */
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

/* ---- mainline's text ------------------------------------------------------------------ */

/* A vCPU running there is put when another thread comes in between, and loaded after. */
static void interrupt_cpu(unsigned int cpu)
{
	cpu_set_t old, one;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(old), &old) < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (!sched_setaffinity(0, sizeof(one), &one)) /* comes back running there */
		sched_setaffinity(0, sizeof(old), &old);
}

static int feed(struct remote_reader *x, struct hyptext *t, const void *data, size_t len)
{
	uint64_t bad = hyptext_bad_lines(t);
	bool unsure;
	int ret;

	hold_bounds(x->hold, x->from, boot_ns());
	pthread_mutex_lock(&x->r->lock);
	ret = hyptext_feed(t, data, len, remote_reader_record, x);
	if (!ret)
		ret = remote_reader_settle(x);
	if (!ret)
		ret = remote_save_reasons(x->r);
	pthread_mutex_unlock(&x->r->lock);
	x->d->stats->bad += hyptext_bad_lines(t) - bad;
	if (ret)
		return ret;
	unsure = hold_unsure(x->hold);
	if (unsure && !x->asked)
		interrupt_cpu(x->cpu);
	x->asked = unsure;
	return sync_page(x);
}

/*
 * trace_pipe has no poll and knows no O_NONBLOCK: a read sleeps until there is
 * text or a signal comes. With tracing off, an interrupted read means empty: the
 * kernel looks for data before it looks for signals.
 */
static int read_text(struct remote_reader *x, struct hyptext *t, int fd, void *chunk)
{
	for (;;) {
		uint64_t began = boot_ns();
		ssize_t n = read(fd, chunk, TEXT_CHUNK);
		int ret;

		if (!x->from)
			x->from = atomic_load(&x->r->on_since);
		if (x->from && boot_ns() - began > BLOCKED_NS && began - POLL_NS > x->from)
			x->from = began - POLL_NS;

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n <= 0) {
			if (atomic_load(x->d->stopping))
				return 0;
			if (!n || errno == EAGAIN)
				rawpipe_wait(-1, x->d);
			continue;
		}
		ret = feed(x, t, chunk, (size_t)n);
		if (ret)
			return ret;
	}
}

/* Losses behind the last record. */
static int end_text(struct remote_reader *x, struct hyptext *t)
{
	uint64_t lost = hyptext_pending_lost(t);
	int ret = settle_last(x);

	if (ret || !lost)
		return ret;
	x->d->stats->lost += lost;
	return page_write_lost(&x->w, lost);
}

static int drain_text(struct source *s, unsigned int cpu, struct drain *d)
{
	struct remote *r = remote_of(s);
	struct hyptext *t = hyptext_new(&r->events);
	void *chunk = malloc(TEXT_CHUNK);
	int fd = open_pipe(r, cpu, "trace_pipe", 0);
	struct remote_reader x;
	int ret;

	if (fd < 0 || !t || !chunk) {
		ret = !t || !chunk ? -ENOMEM : fd == -ENODEV || fd == -ENXIO ? 0 : fd;
	} else {
		ret = remote_reader_open(&x, r, cpu, d);
		if (!ret)
			ret = read_text(&x, t, fd, chunk);
		if (!ret)
			ret = end_text(&x, t);
		ret = remote_reader_close(&x, ret);
	}
	if (fd >= 0)
		close(fd);
	free(chunk);
	hyptext_free(t);
	return ret;
}

/* ---- Android's raw pages ------------------------------------------------------------------ */

static bool is_text(const void *page, size_t len)
{
	return len > 4 && (!memcmp(page, "CPU:", 4) ||
			   (*(const char *)page == '[' && isdigit(((const uint8_t *)page)[1])));
}

int remote_reader_page(struct remote_reader *x, const void *page, size_t len, uint8_t *out, size_t out_size)
{
	struct page_reader pr;
	struct page_event ev;
	uint64_t lost = 0;
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
		lost = pr.missed_count;
		ret = page_write_lost(&x->w, lost);
		x->d->stats->lost += lost ? lost : 1;
	}
	while (!ret && (more = page_next(&pr, &ev)) == 1) {
		ssize_t n = hypraw_record(&x->r->events, ev.data, ev.len, out, out_size);
		struct hyprecord rec = { .ts = ev.ts, .cpu = x->cpu, .data = out, .len = (size_t)n };

		if (n < 0) {
			x->d->stats->bad++;
			continue;
		}
		pthread_mutex_lock(&x->r->lock);
		ret = remote_reader_record(x, &rec);
		pthread_mutex_unlock(&x->r->lock);
	}
	if (!ret && more < 0) {
		x->d->stats->bad++;
		ret = page_write_lost(&x->w, 0);
	}
	return ret ? ret : sync_page(x);
}

static int read_raw(struct remote_reader *x, int fd, uint8_t *page, uint8_t *out, size_t out_size)
{
	for (;;) {
		ssize_t n = read(fd, page, x->r->source.page_size);
		int ret;

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n <= 0) {
			if (atomic_load(x->d->stopping))
				return 0;
			ret = rawpipe_wait(fd, x->d);
		} else {
			ret = remote_reader_page(x, page, (size_t)n, out, out_size);
		}
		if (ret)
			return ret;
	}
}

static int drain_raw(struct source *s, unsigned int cpu, struct drain *d)
{
	struct remote *r = remote_of(s);
	size_t out_size = s->page_size + 64;
	uint8_t *page = malloc(s->page_size), *out = malloc(out_size);
	int fd = open_pipe(r, cpu, "trace_pipe_raw", O_NONBLOCK);
	struct remote_reader x;
	int ret;

	if (fd < 0 || !page || !out) {
		ret = !page || !out ? -ENOMEM : fd == -ENODEV || fd == -ENXIO ? 0 : fd;
	} else {
		ret = remote_reader_open(&x, r, cpu, d);
		if (!ret)
			ret = read_raw(&x, fd, page, out, out_size);
		ret = remote_reader_close(&x, ret);
	}
	if (fd >= 0)
		close(fd);
	free(page);
	free(out);
	return ret;
}

/* ---- */

static int stat_text(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	buf_printf(out,
		   "CPU: %u\nentries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\n"
		   "dropped events: 0\nread events: %llu\n",
		   cpu, (unsigned long long)st->lost, (unsigned long long)st->events);
	return buf_status(out);
}

const struct source_ops remote_text_ops = {
	.kind = "hyp-text",
	.start = remote_start,
	.stop = remote_stop,
	.drain = drain_text,
	.stat = stat_text,
};

const struct source_ops remote_raw_ops = {
	.kind = "hyp-raw",
	.start = remote_start,
	.stop = remote_stop,
	.drain = drain_raw,
	.stat = stat_text,
};
