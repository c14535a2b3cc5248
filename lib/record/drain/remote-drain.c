// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes what is or was read from a hypervisor's buffer, text or raw, as full records to the spool. */
#include "record/hyp/nvhe.h"
#include "record/drain/remote.h"
#include "record/drain/spool-to-dat.h"

/* More than the kernel's trace_seq holds: one read takes a whole trace_seq. */
#define TEXT_CHUNK 65536
/* Smaller steps back, and times before the recording by less, come from fitting the clock. */
#define STEP_BACK_NS 1000000
#define OLDER_NS     1000000000

/* One CPU being read, from its pipe or from what was read before. */
struct remote_reader {
	struct remote *r;
	unsigned int cpu;
	struct drain *d;
	struct drain_writer out;
	uint64_t last_ts; /* of the last record; 0: none */
	int last_vcpu;	  /* the one seen last, which need not be looked up again */
	struct hyptext *text;
	uint8_t *record; /* room for one, of raw pages */
	size_t record_size;
	int fd;			   /* the pipe; -1: of one that was read before */
	bool as_text;		   /* the pipe gives text */
	bool began;		   /* it has given a page */
	bool fresh;		   /* no hyp_enter or hyp_exit came yet of what was read last */
	unsigned int turn;	   /* id of the last one of them; 0: not known */
	unsigned int enter, leave; /* their ids */
};

/* The vCPUs' threads are named in the file. */
static int note_vcpu(struct remote_reader *x, int vcpu)
{
	struct remote *r = x->r;

	if (!vcpu || vcpu == x->last_vcpu)
		return 0;
	x->last_vcpu = vcpu;
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i] == vcpu)
			return 0;
	return array_push(&r->vcpus, &r->n_vcpus, &vcpu, sizeof(vcpu));
}

/* A plain-nVHE host's times step back as a vCPU is loaded, or one was loaded all the time. */
static int note_early(struct remote_reader *x, uint64_t ts)
{
	const uint64_t from = atomic_load(&x->r->on_since);
	bool early = (x->last_ts && nvhe_diff(ts, x->last_ts) < -STEP_BACK_NS) ||
		     (from && nvhe_diff(ts, from) < -OLDER_NS);

	x->last_ts = ts;
	/*
	 * Android traces in protected mode only, where times need no repair; what is no hypervisor has
	 * no vCPUs
	 */
	if (!early || x->r->raw || !x->r->hyp || !x->r->spool || atomic_exchange(&x->r->early, true))
		return 0;
	return spool_want_repair(x->r->spool);
}

/*
 * hyp_enter and hyp_exit take turns on a CPU. Two of a kind with the end of a read, but no loss, between
 * them: another reader has what was there. Android's kernels let any number read at a time.
 */
static int note_turn(struct remote_reader *x, const struct hyprecord *rec)
{
	uint16_t id;
	bool taken;

	memcpy(&id, rec->data, sizeof(id));
	if (!x->r->turns || (id != x->enter && id != x->leave))
		return 0;
	taken = x->fresh && id == x->turn && !rec->lost;
	x->fresh = false;
	x->turn = id;
	if (!taken)
		return 0;
	x->d->stats->taken++;
	if (!atomic_exchange(&x->r->shared, true))
		log_warn(x->r->log,
			 "hyp: cpu %u: events are missing that the kernel does not count as lost: somebody "
			 "else reads %s/trace_pipe or per_cpu/cpu*/trace_pipe*, and takes them",
			 x->cpu, x->r->path);
	return page_write_lost(&x->out.w, 0);
}

/* Writes one record, ctx being the reader, with its time as the kernel gave it. Under the lock. */
static int remote_reader_record(void *ctx, const struct hyprecord *rec)
{
	struct remote_reader *x = ctx;
	int ret = note_vcpu(x, hyp_record_vcpu(&x->r->events, rec->data, rec->len));

	ret = ret ?: note_early(x, rec->ts) ?: note_turn(x, rec);
	if (!ret && rec->lost) {
		x->d->stats->lost += rec->lost;
		ret = page_write_lost(&x->out.w, rec->lost);
	}
	if (ret)
		return ret;
	ret = page_write(&x->out.w, rec->ts, rec->data, rec->len);
	if (ret == -EMSGSIZE) {
		x->d->stats->bad++;
		return 0;
	}
	x->d->stats->events++;
	return ret;
}

/* Flushes, unless ret is an error, which is returned. */
static int remote_reader_close(struct remote_reader *x, int ret)
{
	ret = ret ?: page_flush(&x->out.w, true);
	page_writer_release(&x->out.w);
	hyptext_free(x->text);
	free(x->record);
	return ret;
}

static int remote_reader_open(struct remote_reader *x, struct remote *r, unsigned int cpu, struct drain *d)
{
	int ret;

	*x = (struct remote_reader){ .r = r, .cpu = cpu, .d = d, .fd = -1, .as_text = !r->raw };
	if (r->turns) {
		x->enter = hypevents_by_name(&r->events, "hyp_enter", 9)->id;
		x->leave = hypevents_by_name(&r->events, "hyp_exit", 8)->id;
	}
	x->text = hyptext_new(&r->events);
	x->record_size = r->source.page_size + HYP_RECORD_EXTRA;
	x->record = malloc(x->record_size);
	ret = x->text && x->record ? drain_writer_open(&x->out, r->source.page_size, d) : -ENOMEM;
	return ret ? remote_reader_close(x, ret) : 0;
}

/* Before a page that uses them can be the last one. */
static int remote_save_reasons(struct remote *r)
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

static int drain_text(struct remote_reader *x, const void *data, size_t len)
{
	uint64_t bad = hyptext_bad_lines(x->text);
	int ret;

	x->fresh = true;
	pthread_mutex_lock(&x->r->lock);
	ret = hyptext_feed(x->text, data, len, remote_reader_record, x) ?: remote_save_reasons(x->r);
	pthread_mutex_unlock(&x->r->lock);
	x->d->stats->bad += hyptext_bad_lines(x->text) - bad;
	return ret ? ret : drain_writer_sync(&x->out);
}

static bool is_text(const void *page, size_t len)
{
	return len > 4 && (!memcmp(page, "CPU:", 4) ||
			   (*(const char *)page == '[' && isdigit(((const uint8_t *)page)[1])));
}

/* number: 0: not known. */
static int drain_lost(struct remote_reader *x, uint64_t number)
{
	x->turn = 0;
	x->d->stats->lost += number ?: 1;
	x->d->stats->unknown += !number;
	return page_write_lost(&x->out.w, number);
}

/* A page, or the rest of one, that makes no sense. */
static int drain_bad(struct remote_reader *x)
{
	x->turn = 0;
	x->d->stats->bad++;
	return page_write_lost(&x->out.w, 0);
}

static int remote_reader_page(struct remote_reader *x, const void *page, size_t len)
{
	struct page_reader pr;
	struct page_event ev;
	int more = 0, ret = page_reader_init(&pr, &x->r->layout, page, len);

	if (ret && is_text(page, len))
		return log_fail(x->r->log, -EPROTO,
				"%s: these are lines of trace_pipe, not pages of trace_pipe_raw", x->r->path);
	if (ret) /* builds between two Android fixes hand out such pages: count, go on */
		return drain_bad(x);
	x->fresh = true; /* the losses before it: a full page has no space for their number */
	if (pr.missed)
		ret = drain_lost(x, pr.missed_count);
	while (!ret && (more = page_next(&pr, &ev)) == 1) { /* Android's records */
		ssize_t n = hypraw_record(&x->r->events, ev.data, ev.len, x->record, x->record_size);
		struct hyprecord rec = { .ts = ev.ts, .cpu = x->cpu, .data = x->record, .len = (size_t)n };

		if (n < 0) {
			x->d->stats->bad++;
			continue;
		}
		pthread_mutex_lock(&x->r->lock);
		ret = remote_reader_record(x, &rec);
		pthread_mutex_unlock(&x->r->lock);
	}
	if (!ret && more < 0)
		ret = drain_bad(x);
	return ret ? ret : drain_writer_sync(&x->out);
}

const char *remote_hint(const struct remote *r, int error)
{
	return error == EINVAL && !r->joined && r->size_kb > REMOTE_DEFAULT_KB
		       ? ": the buffer may be larger than this kernel can make it; try a smaller -b"
		       : "";
}

static int remote_open_cpu(const struct remote *r, unsigned int cpu, bool raw)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/%s", cpu, raw ? "trace_pipe_raw" : "trace_pipe");
	fd = openat(r->dirfd, path, O_RDONLY | O_CLOEXEC | (raw ? O_NONBLOCK : 0));
	fd = fd < 0 ? -errno : fd;
	if (fd < 0 && fd != -ENODEV && fd != -ENXIO) /* a CPU that is off has no buffer to be read */
		log_err(r->log, "cannot open %s/%s: %s%s", r->path, path, errno_text(fd),
			remote_hint(r, -fd));
	return fd;
}

/* From now on the CPU's text is read. */
static void drain_as_text(struct remote_reader *x)
{
	fd_close(&x->fd);
	x->as_text = true;
	x->fd = remote_open_cpu(x->r, x->cpu, false);
	if (x->fd < 0)
		atomic_store(&x->r->unread, true);
}

static int drain_chunk(struct remote_reader *x, const void *chunk, size_t len)
{
	struct page_reader pr;

	if (x->as_text)
		return drain_text(x, chunk, len);
	if (!x->began && page_reader_init(&pr, &x->r->layout, chunk, len)) {
		const bool text = is_text(chunk, len);

		/*
		 * The first that came is no page. Text is read on from where it comes: the rest of a
		 * line may follow.
		 */
		if (!atomic_exchange(&x->r->misread, true))
			log_warn(x->r->log,
				 "%s: trace_pipe_raw of this kernel gives %s (%s): trace_pipe is read in its "
				 "place, whose times are cut to microseconds; a newer kernel fixes this",
				 x->r->path, text ? "text" : "no pages, but a structure of the kernel's own",
				 text ? "Android 6.12 before July 2025" : "a bug of some Android kernels");
		if (text) {
			x->as_text = true;
			return drain_text(x, chunk, len);
		}
		drain_as_text(x);
		return drain_lost(x, 0);
	}
	x->began = true;
	return remote_reader_page(x, chunk, len);
}

/*
 * trace_pipe has no poll and knows no O_NONBLOCK: a read sleeps until there is text or a signal comes. With
 * tracing off, an interrupted read means empty: the kernel looks for data before it looks for signals.
 */
static int drain_pipe(struct remote_reader *x, void *chunk)
{
	while (x->fd >= 0) {
		const bool raw = x->r->raw && !x->as_text;
		bool stopping, asked;
		unsigned int mark;
		int ret = 0;
		ssize_t n;

		if (drain_rests(x->d)) {
			/* a ring, until it is read: without a reader the kernel does not look at the
			 * hypervisor's buffer, either */
			fd_close(&x->fd);
			while (!ret && drain_rests(x->d))
				ret = rawpipe_wait(-1, x->d);
			if (!ret)
				x->fd = remote_open_cpu(x->r, x->cpu, raw);
		}
		if (ret || x->fd < 0)
			return ret ?: x->fd == -ENODEV || x->fd == -ENXIO ? 0 : x->fd;
		/* asked before the read: what comes after an empty read is read by the next one */
		stopping = atomic_load(x->d->stopping);
		asked = drain_asked(x->d, &mark);
		n = read(x->fd, chunk, raw ? x->r->source.page_size : TEXT_CHUNK);
		if (n > 0)
			ret = drain_chunk(x, chunk, (size_t)n);
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		else if (stopping)
			return 0;
		else if (asked) {
			/* The next record begins another page. */
			ret = page_flush(&x->out.w, false);
			atomic_store(&x->d->flushed, mark);
		} else if (!n || errno == EAGAIN)
			ret = rawpipe_wait(raw ? x->fd : -1, x->d);
		if (ret)
			return ret;
		/* another CPU has found out: nothing was read here that would be lost */
		if (raw && !x->began && !x->as_text && atomic_load(&x->r->misread))
			drain_as_text(x);
	}
	return 0;
}

int remote_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct remote *r = remote_of(s);
	const size_t size = r->source.page_size > TEXT_CHUNK ? r->source.page_size : TEXT_CHUNK;
	void *chunk = malloc(size);
	struct remote_reader x;
	uint64_t lost;
	int ret = chunk ? remote_reader_open(&x, r, cpu, d) : -ENOMEM;

	if (ret)
		goto out;
	x.fd = remote_open_cpu(r, cpu, r->raw);
	ret = x.fd >= 0 ? drain_pipe(&x, chunk) : x.fd == -ENODEV || x.fd == -ENXIO ? 0 : x.fd;
	lost = ret ? 0 : hyptext_pending_lost(x.text, cpu); /* after the last record */
	d->stats->lost += lost;
	ret = ret || !lost ? ret : page_write_lost(&x.out.w, lost);
	fd_close(&x.fd);
	ret = remote_reader_close(&x, ret);
out:
	free(chunk);
	return ret;
}

struct feed_cpu {
	struct remote_reader reader;
	struct drain drain;
	struct drain_stats stats;
};

struct remote_feed {
	struct remote *r;
	struct feed_cpu *cpus; /* the text of all goes through the first one's reader */
	unsigned int n;	       /* of them opened */
	uint64_t bad;	       /* lines of CPUs beyond the known ones */
};

int remote_feed_open(struct remote_feed **out, struct remote *r, struct spool *spool, size_t buffer)
{
	struct remote_feed *f = calloc(1, sizeof(*f));
	struct drain_totals nothing;
	int ret;

	if (!f)
		return -ENOMEM;
	f->r = r;
	f->cpus = calloc(r->source.n_cpus, sizeof(*f->cpus));
	ret = f->cpus ? 0 : -ENOMEM;
	while (!ret && f->n < r->source.n_cpus) {
		struct feed_cpu *c = &f->cpus[f->n];

		c->drain = (struct drain){ .out = spool_pages_fd(spool, buffer, f->n), .stats = &c->stats };
		ret = c->drain.out < 0 ? c->drain.out : remote_reader_open(&c->reader, r, f->n, &c->drain);
		if (!ret)
			f->n++;
		else if (c->drain.out >= 0)
			close(c->drain.out);
	}
	if (ret)
		return remote_feed_close(f, ret, &nothing);
	*out = f;
	return 0;
}

static int feed_line(void *ctx, const struct hyprecord *rec)
{
	struct remote_feed *f = ctx;

	if (rec->cpu < f->n)
		return remote_reader_record(&f->cpus[rec->cpu].reader, rec);
	f->bad++;
	return 0;
}

int remote_feed_text(struct remote_feed *f, const void *text, size_t len)
{
	return hyptext_feed(f->cpus->reader.text, text, len, feed_line, f) ?: remote_save_reasons(f->r);
}

int remote_feed_page(struct remote_feed *f, unsigned int cpu, const void *page, size_t len)
{
	return cpu < f->n ? remote_reader_page(&f->cpus[cpu].reader, page, len) : -EINVAL;
}

int remote_feed_close(struct remote_feed *f, int ret, struct drain_totals *out)
{
	const struct hyptext *text = f->n ? f->cpus->reader.text : NULL;

	*out = (struct drain_totals){ .bad = f->bad };
	out->bad += text ? hyptext_bad_lines(text) : 0;
	for (unsigned int i = 0; i < f->n; i++) {
		uint64_t lost = hyptext_pending_lost(text, i); /* after the CPU's last record */

		out->lost += lost;
		ret = ret || !lost ? ret : page_write_lost(&f->cpus[i].reader.out.w, lost);
	}
	for (unsigned int i = 0; i < f->n; i++) {
		struct feed_cpu *c = &f->cpus[i];

		ret = remote_reader_close(&c->reader, ret);
		close(c->drain.out);
		drain_totals_add(out, &c->stats);
	}
	free(f->cpus);
	free(f);
	return ret;
}
