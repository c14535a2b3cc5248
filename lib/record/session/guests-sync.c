// SPDX-License-Identifier: LGPL-2.1-or-later
/* The clocks of a recording's guests against the host's: by which method, and the options of both files. */
#include "record/session/guests.h"

/*
 * A recording's pages as a source of evidence (sync/evidence.h): once all is
 * drained, before the files are written.
 */
struct spool_source {
	struct sync_source source;
	struct spool_formats formats;
};

struct spool_walk {
	sync_page_fn take;
	void *to;
	unsigned int cpu;
	const struct page_layout *layout;
	bool cut; /* what comes before the page is not known */
};

static int walk_page(void *walk, void *page, size_t size)
{
	struct spool_walk *w = walk;

	if (w->cut)
		page_mark_missed(w->layout, page);
	w->cut = false;
	return w->take(w->to, w->cpu, page, size);
}

/* A part's pages, and the one before each CPU's, which may have events of this part's time. */
static int walk_spool(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn take,
		      void *to)
{
	struct spool_walk w = { take, to, cpu, &s->buffers[buffer].layout,
				spool_pages_from(s->from, buffer, cpu) > 0 };

	return spool_pages_walk(s->from, buffer, cpu, 1, walk_page, &w);
}

static void spool_source_close(struct spool_source *s)
{
	free(s->source.buffers);
	pauses_release(&s->source.pauses);
	spool_formats_release(&s->formats);
	*s = (struct spool_source){ 0 };
}

/* The spool must outlive it. 0, -ENOMEM, or an error of reading it; close it in any case. */
static int spool_source_open(struct spool_source *s, const struct spool *spool)
{
	struct sync_source *source = &s->source;
	struct page_layout layout;
	struct buf body = { 0 };
	int ret;

	*s = (struct spool_source){ .source = { .walk = walk_spool, .from = spool } };
	ret = spool_formats_load(&s->formats, spool, NULL) ?: spool_page_layout(spool, &layout);
	if (ret)
		goto out;
	source->formats = s->formats.texts;
	source->n_formats = s->formats.n_texts;
	source->n_buffers = spool_n_buffers(spool);
	source->buffers = calloc(source->n_buffers + 1, sizeof(*source->buffers));
	ret = source->buffers ? 0 : -ENOMEM;
	for (size_t i = 0; i < source->n_buffers && !ret; i++) {
		const struct spool_buffer *b = spool_buffer(spool, i);
		bool ours = !strncmp(b->kind, "hyp-", 4) || !strcmp(b->kind, "profile"); /* our own pages */

		source->buffers[i] = (struct sync_buffer){ ours ? page_layout_default : layout, b->n_cpus };
		source->buffers[i].layout.size = b->page_size;
	}
	ret = ret ?: spool_get_text(spool, "pauses", &body);
	if (!ret && body.len)
		ret = pauses_decode(body.data, body.len, &source->pauses);
	buf_release(&body);
	if (ret == -ENOENT || ret == -EBADMSG) /* malformed pauses are ignored */
		ret = 0;
out:
	if (ret)
		spool_source_close(s);
	return ret;
}

#define VCPUS_MAX   1024
#define DOUBT_PARTS 100 /* one event of so many outside: the counters contradict the events */

static int put_option(struct spool *spool, uint16_t id, const struct buf *body)
{
	struct buf out = { 0 };
	int ret;

	dat_add_option(&out, id, body->data, (uint32_t)body->len);
	ret = body->bad ? -ENOMEM : buf_status(&out);
	ret = ret ?: spool_append_text(spool, "options", out.data, out.len);
	buf_release(&out);
	return ret;
}

/* The vCPU threads that the VMM named. */
static size_t vmm_vcpus(const struct session_guest *g, struct offset_vcpu *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; g->vm && i < g->vm->n_vcpus && n < max; i++)
		if (g->vm->vcpus[i].tid)
			out[n++] = (struct offset_vcpu){ g->vm->vcpus[i].cpu, (uint32_t)g->vm->vcpus[i].tid };
	return n;
}

/* For the guest's file. A result without points has no offset to write. */
static int note_shift(const struct session_guests *all, const struct session_guest *g)
{
	const struct sync_result *r = &g->clock;
	const struct spool_buffer *b = spool_buffer(g->spool, 0);
	bool ticks = clock_in_ticks(b->clock);
	double unit = ticks ? 1 : 1e3;
	char by[64] = "";
	struct offset_shift shift;
	struct buf body = { 0 };
	int ret = sync_time_shift(r, all->host_trace_id, b->n_cpus, &shift);

	if (ret)
		return ret == -ENODATA ? 0 : ret;
	offset_shift_encode(&shift, &body);
	offset_shift_release(&shift);
	ret = put_option(g->spool, DAT_TIME_SHIFT, &body);
	buf_release(&body);
	if (ret)
		return ret;
	if (r->outside)
		snprintf(by, sizeof(by), " by up to %.*f %s", !ticks, (double)r->worst / unit,
			 ticks ? "ticks" : "us");
	log_info(all->log,
		 "guest %s: clock offset known to +- %.*f %s (%s, %s; %llu of %llu events outside%s)",
		 g->spec.name, !ticks, (double)sync_median_bound(r) / unit, ticks ? "ticks" : "us",
		 sync_class_name(r->class), r->method, (unsigned long long)r->outside,
		 (unsigned long long)r->events, by);
	return 0;
}

/* Alignment of all guests with one host, whose pages are read once. */
struct aligning {
	struct session_guests *all;
	const struct sync_host *host; /* NULL: no windows, or not wanted */
	bool hyp;		      /* the hypervisor was recorded */
	int error;		      /* of reading the host */
};

/* One guest's clock. */
struct guest_clock {
	struct session_guests *all;
	struct session_guest *g;
	struct sync_evidence e; /* host: NULL: no windows, or not wanted */
	bool hyp;
	const struct counter_log *host_counter, *counter; /* NULL: not to be had */
	const struct cntvoff_log *cntvoff;
};

/* Checks an offset of another source by the events. */
static int check_by_events(const struct guest_clock *c, struct sync_result *r)
{
	const struct sync_guest *g = c->e.guest;
	struct offset_shift shift = { 0 };
	struct sync_check found = { 0 };
	struct sync_input in;
	int32_t *pids = NULL;
	int ret;

	r->events = r->outside = r->worst = 0;
	if (!c->e.host || !c->e.host->windows.n || !g->n_cpus)
		return 0;
	ret = sync_input_make(&in, &c->e, &pids);
	/* Threads that the probe did not see. */
	for (size_t i = 0; !ret && i < in.n_cpus; i++) {
		const struct sync_vcpu one = { .cpu = in.cpus[i].cpu, .pid = in.pids[i] };
		bool there = !one.pid;

		for (size_t k = 0; k < r->n_vcpus && !there; k++)
			there = r->vcpus[k].cpu == one.cpu;
		if (!there)
			ret = array_push(&r->vcpus, &r->n_vcpus, &one, sizeof(one));
	}
	ret = ret ?: sync_time_shift(r, 0, g->cpus[g->n_cpus - 1].cpu + 1, &shift) ?:
		     sync_check(&in, r, r, &shift, &found);
	r->events = found.events;
	r->outside = found.outside;
	r->worst = found.worst;
	offset_shift_release(&shift);
	free(pids);
	return ret;
}

/* The counter method. */
static int by_counter(const struct guest_clock *c, struct sync_result *out)
{
	int ret;

	c->g->clock_why = !c->host_counter ? "this machine's counter cannot be read"
					   : "its agent does not report its counter";
	if (!c->host_counter || !c->counter)
		return -ENODATA;
	ret = counter_solve(c->host_counter, c->counter, c->cntvoff, c->e.vcpus, c->e.n_vcpus, out,
			    &c->g->clock_why);
	if (ret)
		return ret;
	ret = check_by_events(c, out);
	/* of a part of a recording, the host's pages may begin later than the guest's */
	if (!ret && out->outside > out->events / DOUBT_PARTS && !spool_has_ranges(c->g->spool)) {
		log_warn(c->all->log,
			 "guest %s: by the counters %llu of %llu events are where it did not run",
			 c->g->spec.name, (unsigned long long)out->outside, (unsigned long long)out->events);
		c->g->clock_why = "the counters contradict the events";
		ret = -ENODATA;
	}
	if (ret)
		sync_result_release(out);
	return ret;
}

static int by_ping(const struct guest_clock *c, struct sync_result *out)
{
	c->g->clock_why = "its agent does not report its counter";
	if (!c->host_counter || !c->counter)
		return -ENODATA;
	return counter_solve_pings(c->host_counter, c->counter, out, &c->g->clock_why);
}

/* With the counters' help where they can be had. prior: may be NULL. */
static int by_windows(const struct guest_clock *c, const struct sync_prior *prior, struct sync_result *out)
{
	int ret;

	c->g->clock_why = "record -e kvm (or -B hyp) with it";
	if (c->all->tsync == TSYNC_HYP && !c->hyp)
		c->g->clock_why = "the hypervisor was not recorded";
	if (!c->e.host)
		return -ENODATA;
	if (c->host_counter && c->counter) {
		ret = counter_solve_windows(c->host_counter, c->counter, &c->e, out);
		if (ret != -ENODATA)
			return ret;
		log_debug(c->all->log, "guest %s: the windows without the counters", c->g->spec.name);
	}
	return sync_solve_evidence(&c->e, prior, out);
}

/* The counter method, then the events, then only the answers. */
static int by_best(const struct guest_clock *c, struct sync_result *out)
{
	struct sync_result ping = { 0 };
	struct sync_prior prior = { 0 };
	int ret = by_counter(c, out);

	if (ret != -ENODATA)
		return ret;
	log_debug(c->all->log, "guest %s: not exactly: %s", c->g->spec.name, c->g->clock_why);
	ret = by_ping(c, &ping);
	if (ret && ret != -ENODATA)
		return ret;
	if (ping.n_points && !ping.n_jumps) { /* its offset in mid-recording */
		const struct sync_offset_point *k = &ping.points[ping.n_points / 2];

		prior = (struct sync_prior){ true, k->time, k->offset, k->bound };
	}
	ret = by_windows(c, &prior, out);
	if (ret == -ENODATA || (!ret && out->class == SYNC_NONE)) {
		sync_result_release(out);
		*out = ping;
		return ping.n_points ? 0 : -ENODATA;
	}
	sync_result_release(&ping);
	return ret;
}

#define SHOTS_NOW 1024 /* newest that count: four minutes of them */

static int copy_newest(struct counter_log *to, struct counter_log *from)
{
	int ret = from ? counter_log_copy(to, from) : -ENODATA;

	if (!ret)
		counter_log_forget(to, SHOTS_NOW);
	return ret;
}

bool session_guest_clock_now(const struct session_guests *all, const struct session_guest *g, int64_t *offset,
			     uint64_t *bound)
{
	struct counter_log host = { 0 }, guest = { 0 };
	struct offset_vcpu vcpus[VCPUS_MAX];
	struct cntvoff_log cntvoff = { 0 };
	struct sync_result r = { 0 };
	const char *why;
	bool known;
	int ret = all->clocks ? clock_sampler_copy_cntvoff(all->clocks, &cntvoff) : -ENODATA;

	ret = ret ?: copy_newest(&host, &all->clocks->host) ?:
		     copy_newest(&guest, peer_counter_growing(g->peer));
	ret = ret ?: counter_solve(&host, &guest, &cntvoff, vcpus, vmm_vcpus(g, vcpus, VCPUS_MAX), &r, &why);
	if (ret == -ENODATA && guest.n_shots)
		ret = counter_solve_pings(&host, &guest, &r, &why);
	known = !ret && r.n_points && r.points[r.n_points - 1].bound != UINT64_MAX;
	if (known) {
		*offset = r.points[r.n_points - 1].offset;
		*bound = r.points[r.n_points - 1].bound;
	}
	sync_result_release(&r);
	counter_log_release(&host);
	counter_log_release(&guest);
	cntvoff_log_release(&cntvoff);
	return known;
}

static void align_guest(void *ctx, size_t i)
{
	const struct aligning *t = ctx;
	struct session_guest *g = &t->all->v[i];
	struct offset_vcpu vcpus[VCPUS_MAX];
	struct sync_guest events = { 0 };
	struct guest_clock c = { .all = t->all,
				 .g = g,
				 .e = { t->host, &events, vcpus, vmm_vcpus(g, vcpus, VCPUS_MAX) },
				 .hyp = t->hyp };
	if (!session_guest_takes_part(g))
		return;
	if (c.all->part) { /* what there is of a part; all once they are over */
		c.host_counter = c.all->clocks ? &c.all->host_so_far : NULL;
		c.cntvoff = &c.all->cntvoff_so_far;
		c.counter = g->so_far.n_shots ? &g->so_far : NULL;
	} else {
		c.host_counter = c.all->clocks ? &c.all->clocks->host : NULL;
		c.cntvoff = c.all->clocks ? &c.all->clocks->cntvoff : NULL;
		c.counter = g->peer ? peer_clock_log(g->peer->clock_link) : NULL;
	}
	g->clock_why = "";
	g->clock_error = t->error;
	if (!g->clock_error && t->host) {
		struct spool_source s;

		g->clock_error = spool_source_open(&s, g->spool) ?: sync_guest_read(&events, &s.source);
		spool_source_close(&s);
	}
	if (!g->clock_error) { /* -ENODATA: no offset, for the reason in clock_why */
		enum tsync_method method = c.all->tsync;
		int ret = method == TSYNC_NONE	    ? -ENODATA
			  : method == TSYNC_AUTO    ? by_best(&c, &g->clock)
			  : method == TSYNC_COUNTER ? by_counter(&c, &g->clock)
			  : method == TSYNC_PING    ? by_ping(&c, &g->clock)
						    : by_windows(&c, NULL, &g->clock);

		g->clock_error = ret ?: g->clock.n_points ? 0 : -ENODATA;
	}
	sync_guest_release(&events);
}

int session_guests_align_clocks(struct session_guests *all, struct spool *host)
{
	struct sync_host evidence = { 0 };
	struct aligning t = { .all = all };
	int ret = 0;
	size_t n;
	struct spool_source s;

	if (!all->n)
		return 0;
	/* reads the host's pages once for all guests */
	n = spool_n_buffers(host);
	t.hyp = n && !strncmp(spool_buffer(host, n - 1)->kind, "hyp-", 4);
	if (n && all->tsync != TSYNC_NONE && all->tsync != TSYNC_PING && (all->tsync != TSYNC_HYP || t.hyp)) {
		ret = spool_source_open(&s, host);
		if (ret)
			return ret;
		if (!strcmp(spool_buffer(host, 0)->clock, "boot"))
			s.source.whole_to = all->cut_at;
		if (all->tsync == TSYNC_KVM && t.hyp)
			s.source.n_buffers--;
		t.error = sync_host_read(&evidence, &s.source, all->log);
		t.host = &evidence;
		spool_source_close(&s);
	}
	workers_begin(all->workers, align_guest, &t);
	workers_finish(all->workers);
	sync_host_release(&evidence);
	for (size_t i = 0; i < all->n && !ret; i++) { /* the options of both files */
		struct session_guest *g = &all->v[i];

		if (!session_guest_takes_part(g))
			continue;
		g->clock_error = g->clock_error ?: note_shift(all, g);
		if (g->clock_error && all->tsync != TSYNC_NONE)
			log_warn(all->log, "guest %s: its clock could not be tied to the host's: %s",
				 g->spec.name,
				 g->clock_error == -ENODATA ? g->clock_why : errno_text(g->clock_error));
		if (n) { /* the threads of its vCPUs: the trace's evidence wins over the VMM's answer */
			struct offset_vcpu known[VCPUS_MAX];
			struct buf body = { 0 };

			ret = sync_guest_option(&g->clock, known, vmm_vcpus(g, known, VCPUS_MAX),
						spool_buffer(g->spool, 0)->n_cpus, g->spec.name,
						spool_get_number(g->spool, "traceid", 0), &body);
			ret = ret ?: put_option(host, DAT_GUEST, &body);
			buf_release(&body);
		}
		ret = ret ?: spool_set(g->spool, SPOOL_ALIGNED, "1");
	}
	return ret;
}
