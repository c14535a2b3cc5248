// SPDX-License-Identifier: LGPL-2.1-or-later
/* Estimates the rates of clocks that count ticks from events that carry ns, and gives them to files. */
#include <math.h>

#include "read/inputs.h"

#define SAMPLES_LEAST 8
#define SAMPLES_MOST  100000
#define RATIO_NEAR                                                                                           \
	0.05 /* of the median: what differs by more is a timer of another clock, or a task that slept */

/* Rates of clocks that count ticks, x86-tsc say, estimated from events that carry ns. */
struct tick_rate {
	double hz;
	double error;	   /* relative */
	const char *event; /* that it is by */
};

/* Two events of a CPU: ticks and ns that lie between them. */
struct tick_sample {
	double ticks, ns;
};

/* An event that carries ns, and what else ends or begins a stretch of time. */
struct tick_source {
	const char *event;
	bool sums; /* ns are since the event before; else they are a clock's time */
	int id;
	struct field_load ns, pid;
};

struct tick_samples {
	struct tick_sample *v;
	size_t n;
	int switches; /* id of sched_switch; -1: none */
};

static bool source_find(struct tick_source *s, struct tep_handle *tep, const char *system, const char *ns,
			const char *pid)
{
	struct tep_event *e = tep_find_event_by_name(tep, system, s->event);

	if (!e)
		return false;
	s->id = e->id;
	s->ns = field_load(tep_find_field(e, ns));
	s->pid = pid ? field_load(tep_find_field(e, pid)) : (struct field_load){ 0 };
	return s->ns.kind == FIELD_NUMBER && (!pid || s->pid.kind == FIELD_NUMBER);
}

/* Of a CPU's events in order: `begin` is the event of the source that the next one's ns are counted from. */
static int samples_add_cpu(struct tick_samples *all, const struct tick_source *s, const struct input *in,
			   size_t buffer, size_t cpu)
{
	const struct reader_info *info = reader_info(in->reader);
	struct page_layout layout = info->layout;
	struct {
		bool valid;
		uint64_t ts, ns, pid;
	} begin = { 0 };
	struct reader_pages *pages;
	struct page_reader r;
	struct page_event ev;
	const uint8_t *page;
	int ret = reader_pages_open(&pages, in->reader, buffer, cpu);

	if (ret)
		return ret;
	layout.size = info->buffers[buffer].page_size;
	while (all->n < SAMPLES_MOST && (ret = reader_pages_next(pages, &page)) == 1) {
		if (page_reader_init(&r, &layout, page, layout.size))
			continue;
		begin.valid = begin.valid && !r.missed;
		while (page_next(&r, &ev) == 1) {
			int id = (int)page_event_id(ev.data, ev.len);
			struct tick_sample one;
			uint64_t ns, pid;

			if (s->sums && id == all->switches)
				begin.valid = false;
			if (id != s->id)
				continue;
			ns = field_load_padded(&s->ns, ev.data, ev.len);
			pid = s->sums ? field_load_padded(&s->pid, ev.data, ev.len) : 0;
			/* timers that one interrupt finds expired carry the same time */
			if (!s->sums && begin.valid && ns == begin.ns)
				continue;
			one.ticks = (double)(ev.ts - begin.ts);
			one.ns = s->sums ? (double)ns : (double)(int64_t)(ns - begin.ns);
			if (begin.valid && pid == begin.pid && ev.ts > begin.ts && one.ns > 0 &&
			    array_push(&all->v, &all->n, &one, sizeof(one))) {
				reader_pages_close(pages);
				return -ENOMEM;
			}
			begin.valid = true;
			begin.ts = ev.ts;
			begin.ns = ns;
			begin.pid = pid;
		}
	}
	reader_pages_close(pages);
	return ret < 0 ? ret : 0;
}

static int by_ratio(const void *a, const void *b)
{
	const struct tick_sample *x = a, *y = b;
	double left = x->ns * y->ticks, right = y->ns * x->ticks;

	return ORDER(left, right);
}

/* The ratio below which that part of all ticks lies. */
static double samples_quantile(const struct tick_samples *all, double part)
{
	double total = 0, below = 0;
	size_t i = 0;

	for (size_t k = 0; k < all->n; k++)
		total += all->v[k].ticks;
	while (i + 1 < all->n && (below += all->v[i].ticks) < part * total)
		i++;
	return all->v[i].ns / all->v[i].ticks;
}

/* Sums what is near the median: the latencies of timers cancel out from one to the next. */
static int samples_rate(struct tick_samples *all, const struct tick_source *s, struct tick_rate *out)
{
	double middle, spread, ticks = 0, ns = 0;
	size_t near = 0;

	if (all->n < SAMPLES_LEAST)
		return -ENODATA;
	qsort(all->v, all->n, sizeof(*all->v), by_ratio);
	middle = samples_quantile(all, 0.5);
	spread = (samples_quantile(all, 0.75) - samples_quantile(all, 0.25)) / middle;
	for (size_t i = 0; i < all->n; i++) {
		if (fabs(all->v[i].ns / all->v[i].ticks / middle - 1) > RATIO_NEAR)
			continue;
		ticks += all->v[i].ticks;
		ns += all->v[i].ns;
		near++;
	}
	if (spread > RATIO_NEAR || near < SAMPLES_LEAST)
		return -ENODATA;
	/* runtimes leave out interrupts: that is no chance, and does not cancel out */
	*out = (struct tick_rate){ .hz = ticks / ns * 1e9,
				   .error = s->sums ? spread : spread / sqrt((double)near),
				   .event = s->event };
	return 0;
}

/*
 * By the ns that pass between hrtimer_expire_entry events, or by the runtime of sched_stat_runtime. The input
 * is loaded. -ENODATA: it has too few of these events, or they contradict each other; -ENOMEM.
 */
static int tick_rate_estimate(const struct input *in, struct tick_rate *out)
{
	struct tick_source sources[] = { { .event = "hrtimer_expire_entry" },
					 { .event = "sched_stat_runtime", .sums = true } };
	struct tep_event *sched_switch = tep_find_event_by_name(in->tep, "sched", "sched_switch");
	const struct reader_info *info = reader_info(in->reader);
	bool found[] = { source_find(&sources[0], in->tep, "timer", "now", NULL),
			 source_find(&sources[1], in->tep, "sched", "runtime", "pid") && sched_switch };
	int ret = -ENODATA;

	for (size_t i = 0; i < ARRAY_SIZE(sources) && ret == -ENODATA; i++) {
		struct tick_samples all = { .switches = sched_switch ? sched_switch->id : -1 };

		ret = 0;
		for (size_t b = 0; found[i] && b < info->n_buffers; b++)
			for (size_t c = 0; c < info->buffers[b].n_cpus && ret != -ENOMEM; c++)
				ret = samples_add_cpu(&all, &sources[i], in, b, c);
		if (ret != -ENOMEM) /* damage is for those to report who read all */
			ret = samples_rate(&all, &sources[i], out);
		free(all.v);
	}
	return ret;
}

/* The file's own estimate, also for `other`, which counts alike; NULL: there is none. */
static int input_convert_ticks(struct input *in, struct input *other, const struct log *log)
{
	struct tick_rate rate;
	int ret = strcmp(in->time.clock, "counter") ? tick_rate_estimate(in, &rate) : -ENODATA;

	if (ret)
		return ret == -ENODATA ? 0 : ret;
	filetime_set_hz(&in->time, (uint64_t)(rate.hz + 0.5));
	if (other)
		filetime_take_rate(&other->time, &in->time);
	log_info(log, "%s: the clock %s runs at %.3f MHz +- %.2g %% by %s (--ts2secs HZ if it is known)",
		 in->path, in->time.clock, rate.hz / 1e6, rate.error * 100, rate.event);
	return 0;
}

int inputs_convert_ticks(struct inputs *all, const struct log *log)
{
	int ret = 0;

	/* a host's times are the timeline's */
	for (size_t i = 0; i < all->n && !ret; i++)
		if (filetime_in_ticks(&all->v[i].time) && !inputs_host(all, &all->v[i]))
			ret = input_convert_ticks(&all->v[i], NULL, log);
	for (size_t i = 0; i < all->n && !ret; i++) {
		struct input *in = &all->v[i], *host = (struct input *)inputs_host(all, in);

		if (!host || !filetime_in_ticks(&in->time))
			continue;
		if (clock_in_ticks(host->time.clock) && !filetime_in_ticks(&host->time))
			filetime_take_rate(&in->time, &host->time);
		else
			ret = input_convert_ticks(in, clock_in_ticks(host->time.clock) ? host : NULL, log);
	}
	for (size_t i = 0; i < all->n && !ret; i++)
		if (filetime_in_ticks(&all->v[i].time) && !inputs_host(all, &all->v[i]))
			log_warn(log, "%s: times are ticks of the clock %s, not ns%s", all->v[i].path,
				 all->v[i].time.clock,
				 strcmp(all->v[i].time.clock, "counter") ? " (--ts2secs HZ converts them)"
									 : "");
	return ret;
}
