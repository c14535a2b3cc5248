// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sync-marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VTIMER	  27 /* the virtual timer's interrupt: 16 + 11, Arm BSA's private peripherals */
#define HANDLER	  "arch_timer" /* drivers/clocksource/arm_arch_timer.c */
#define IDLE_EXIT UINT32_MAX   /* PWR_EVENT_EXIT, include/trace/events/power.h */
#define LOC_MASK  0xffff       /* of a __data_loc: its offset; the rest is the length */

/* enum trace_flag_type, include/linux/trace_events.h */
#define FLAGS_NOT_CLEAR (0x01 | 0x02 | 0x08 | 0x40) /* irqs off, not told, hardirq, NMI */

enum { HOST_WFX, HOST_WAKEUP, HOST_TIMER };
enum { GUEST_IDLE, GUEST_IRQ };

/* ---- events --------------------------------------------------------------------------- */

uint64_t event_get(const struct page_event *ev, struct event_place p)
{
	uint64_t v = 0;

	if (ev->len >= p.size && p.offset <= ev->len - p.size)
		memcpy(&v, ev->data + p.offset, p.size);
	return v;
}

struct event_place event_place_of(const struct event_format *f, const char *name)
{
	const struct event_field *v = event_format_field(f, name);

	return v && v->size <= 8 ? (struct event_place){ v->offset, v->size }
				 : (struct event_place){ 0 };
}

static struct event_place place_if(const struct event_format *f, const char *name)
{
	return name ? event_place_of(f, name) : (struct event_place){ 0 };
}

struct wanted {
	const char *name, *field, *other;
};

static int learn(struct marks *m, const struct dat_text *text, const struct wanted *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(all[i].name);
		struct event_format f;
		int ret;

		if (m->known[i].id || text->len < len || memcmp(text->data, all[i].name, len))
			continue;
		ret = event_format_parse(text->data, text->len, &f);
		if (ret)
			return ret == -ENOMEM ? ret : 0;
		m->known[i] = (struct mark_event){ f.id, place_if(&f, all[i].field),
						   place_if(&f, all[i].other),
						   event_place_of(&f, "common_pid") };
		/* without what it is about it tells nothing */
		if ((all[i].field && !m->known[i].field.size) ||
		    (all[i].other && !m->known[i].other.size))
			m->known[i].id = 0;
		m->any = m->any || m->known[i].id;
		event_format_release(&f);
	}
	return 0;
}

int marks_learn_host(struct marks *m, const struct dat_text *formats, size_t n)
{
	static const struct wanted all[] = {
		[HOST_WFX] = { "name: kvm_wfx_arm64\n", "is_wfe", NULL },
		[HOST_WAKEUP] = { "name: kvm_vcpu_wakeup\n", NULL, NULL },
		[HOST_TIMER] = { "name: kvm_timer_update_irq\n", "irq", "level" },
	};
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = learn(m, &formats[i], all, ARRAY_SIZE(all));
	return ret;
}

int marks_learn_guest(struct marks *m, const struct dat_text *formats, size_t n)
{
	static const struct wanted all[] = {
		[GUEST_IDLE] = { "name: cpu_idle\n", "state", NULL },
		[GUEST_IRQ] = { "name: irq_handler_entry\n", "name", NULL },
	};
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = learn(m, &formats[i], all, ARRAY_SIZE(all));
	return ret;
}

static bool is_event(const struct mark_event *k, const struct page_event *ev)
{
	uint16_t type;

	if (!k->id || ev->len < sizeof(type))
		return false;
	memcpy(&type, ev->data, sizeof(type));
	return type == k->id;
}

static int put_point(struct sync_point **v, size_t *n, const struct sync_point *one)
{
	struct sync_point *more = grown(*v, *n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*v = more;
	more[(*n)++] = *one;
	return 0;
}

static int put_tick(struct marks *m, const struct sync_tick *one)
{
	struct sync_tick *v = grown(m->ticks, m->n_ticks, sizeof(*v));

	if (!v)
		return -ENOMEM;
	m->ticks = v;
	v[m->n_ticks++] = *one;
	return 0;
}

/* ---- the host ---------------------------------------------------------------------------- */

int marks_take_host(struct marks *m, const struct page_event *ev)
{
	const struct mark_event *k = m->known;
	struct sync_point one = { .time = ev->ts };

	if (is_event(&k[HOST_WFX], ev) && !event_get(ev, k[HOST_WFX].field)) {
		one.pid = (int32_t)event_get(ev, k[HOST_WFX].pid);
		one.enter = true;
		return put_point(&m->points, &m->n_points, &one);
	}
	if (is_event(&k[HOST_WAKEUP], ev)) {
		one.pid = (int32_t)event_get(ev, k[HOST_WAKEUP].pid);
		return put_point(&m->points, &m->n_points, &one);
	}
	if (is_event(&k[HOST_TIMER], ev) && event_get(ev, k[HOST_TIMER].field) == VTIMER &&
	    event_get(ev, k[HOST_TIMER].other)) {
		one.pid = (int32_t)event_get(ev, k[HOST_TIMER].pid);
		one.enter = true;
		return put_point(&m->raises, &m->n_raises, &one);
	}
	return 0;
}

/* A loss is of all threads: pid 0, handed out at the end. */
int marks_gap_host(struct marks *m, uint64_t a, uint64_t b)
{
	const struct sync_point from = { .time = a }, to = { .time = b };
	int ret = m->any ? put_point(&m->raises, &m->n_raises, &from) : 0;

	return ret || !m->any ? ret : put_point(&m->raises, &m->n_raises, &to);
}

static int by_thread(const void *a, const void *b)
{
	const struct sync_point *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

/* Was anything lost between? The losses stand first, in pairs. */
static bool lost_between(const struct sync_point *lost, size_t n, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		if (lost[i].time <= b && lost[i + 1].time >= a)
			return true;
	return false;
}

/* From a WFI to the wakeup that follows; alone where none does. */
static int put_sleeps(const struct marks *m, struct sync_host *h, size_t n_lost)
{
	const struct sync_point *v = m->points;
	int ret = 0;

	for (size_t i = 0; i < m->n_points && !ret; i++) {
		struct sync_window w = { v[i].time, v[i].time, v[i].pid, SYNC_KVM, false };

		if (!v[i].enter)
			continue;
		if (i + 1 < m->n_points && !v[i + 1].enter && v[i + 1].pid == v[i].pid &&
		    !lost_between(m->raises, n_lost, v[i].time, v[i + 1].time))
			w.b = v[i + 1].time;
		ret = sync_windows_add(&h->sleeps, &w);
	}
	return ret;
}

/* The first loss of each pair tells where raises end, the second where they go on. */
static int spread_losses(struct marks *m, size_t n_lost)
{
	size_t n = m->n_raises;
	int32_t last = 0;

	for (size_t i = n_lost; i < n; i++) {
		if (m->raises[i].pid == last)
			continue;
		last = m->raises[i].pid;
		for (size_t k = 0; k < n_lost; k++) {
			struct sync_point one = m->raises[k];
			int ret;

			one.pid = last;
			ret = put_point(&m->raises, &m->n_raises, &one);
			if (ret)
				return ret;
		}
	}
	if (m->n_raises)
		qsort(m->raises, m->n_raises, sizeof(*m->raises), by_thread);
	return 0;
}

int marks_finish_host(struct marks *m, struct sync_host *h)
{
	size_t n_lost = 0;
	int ret;

	/* losses come in pairs, and sorting by thread leaves them in order of time */
	if (m->n_raises)
		qsort(m->raises, m->n_raises, sizeof(*m->raises), by_thread);
	if (m->n_points)
		qsort(m->points, m->n_points, sizeof(*m->points), by_thread);
	while (n_lost < m->n_raises && !m->raises[n_lost].pid)
		n_lost++;
	ret = put_sleeps(m, h, n_lost);
	if (!ret)
		ret = spread_losses(m, n_lost);
	if (ret)
		return ret;
	h->raises = m->raises;
	h->n_raises = m->n_raises;
	m->raises = NULL;
	m->n_raises = 0;
	return 0;
}

/* ---- the guest -------------------------------------------------------------------------- */

static bool is_handler(const struct mark_event *k, const struct page_event *ev)
{
	size_t at = event_get(ev, k->field) & LOC_MASK, len = sizeof(HANDLER);

	return at < ev->len && ev->len - at >= len && !memcmp(ev->data + at, HANDLER, len);
}

int marks_take_guest(struct marks *m, const struct page_event *ev, unsigned int cpu)
{
	const struct mark_event *k = m->known;
	struct sync_point one = { .time = ev->ts, .pid = (int32_t)cpu + 1 };
	int ret = 0;

	if (!m->any || ev->len < 3)
		return 0;
	if (is_event(&k[GUEST_IDLE], ev)) {
		one.enter = (uint32_t)event_get(ev, k[GUEST_IDLE].field) != IDLE_EXIT;
		ret = put_point(&m->points, &m->n_points, &one);
	} else if (is_event(&k[GUEST_IRQ], ev) && is_handler(&k[GUEST_IRQ], ev)) {
		ret = put_tick(m, &(struct sync_tick){ ev->ts, m->clear, cpu });
	}
	if (!(ev->data[2] & FLAGS_NOT_CLEAR)) /* common_flags */
		m->clear = ev->ts;
	return ret;
}

/* It may have been idle all the time. */
int marks_gap_guest(struct marks *m, uint64_t a, uint64_t b, unsigned int cpu)
{
	const struct sync_point from = { a, (int32_t)cpu + 1, SYNC_KVM, true };
	const struct sync_point to = { b, (int32_t)cpu + 1, SYNC_KVM, false };
	int ret = m->any ? put_point(&m->points, &m->n_points, &from) : 0;

	return ret || !m->any ? ret : put_point(&m->points, &m->n_points, &to);
}

int marks_finish_guest(struct marks *m, struct sync_guest *g)
{
	int ret = m->n_points ? sync_windows_pair(&g->idles, m->points, m->n_points, g->first,
						  g->last, 0, 0)
			      : 0;

	g->ticks = m->ticks;
	g->n_ticks = m->n_ticks;
	m->ticks = NULL;
	m->n_ticks = 0;
	return ret;
}

void marks_release(struct marks *m)
{
	free(m->points);
	free(m->raises);
	free(m->ticks);
	*m = (struct marks){ 0 };
}
