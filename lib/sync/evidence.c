// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sync/evidence.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VTIMER	      27	   /* the virtual timer's interrupt: 16 + 11, Arm BSA's private peripherals */
#define HANDLER	      "arch_timer" /* drivers/clocksource/arm_arch_timer.c */
#define IDLE_EXIT     UINT32_MAX   /* PWR_EVENT_EXIT, include/trace/events/power.h */
#define LOC_MASK      0xffff	   /* of a __data_loc: its offset; the rest is the length */
#define PTP_CALL      0x86000001   /* ARM_SMCCC_VENDOR_HYP_KVM_PTP_FUNC_ID, include/linux/arm-smccc.h */
#define IOC_TYPE(cmd) ((cmd) >> 8 & 0xff) /* _IOC_TYPE, include/uapi/asm-generic/ioctl.h */
#define PTP_MAGIC     '='		  /* PTP_CLK_MAGIC, include/uapi/linux/ptp_clock.h */
#define CLOCK_FD      3			  /* CLOCKFD of a dynamic clock, include/linux/posix-timers_types.h */

/* KVM_TRACE_MMIO_*, include/trace/events/kvm.h */
#define MMIO_ASKED 0
#define MMIO_READ  1
#define MMIO_WRITE 2
#define MMIO_PAGE  0xfff /* the smallest page: in it a virtual address and an IPA agree */

/* enum trace_flag_type, include/linux/trace_events.h */
#define FLAGS_NOT_CLEAR (0x01 | 0x02 | 0x08 | 0x40) /* irqs off, not told, hardirq, NMI */

enum {
	HOST_WFX,
	HOST_WAKEUP,
	HOST_TIMER,
	HOST_HVC,
	HOST_VIRQ,
	HOST_MMIO,
	GUEST_IDLE,
	GUEST_IRQ,
	GUEST_VECTOR,
	GUEST_IOCTL,
	GUEST_IOCTL_END,
	GUEST_GETTIME,
	GUEST_GETTIME_END,
	GUEST_READ,
	GUEST_READ_END,
	GUEST_WRITE,
	GUEST_WRITE_END,
};

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

	return v && v->size <= 8 ? (struct event_place){ v->offset, v->size } : (struct event_place){ 0 };
}

/* Without the fields that are named it tells nothing. */
struct wanted {
	const char *name;
	uint8_t what;
	const char *field[MARK_FIELDS];
};

static const struct mark_event *mark_event_of(const struct marks *m, unsigned int id)
{
	for (size_t i = 0; i < m->n_known; i++)
		if (m->known[i].id == id)
			return &m->known[i];
	return NULL;
}

static void know_event(struct marks *m, const struct event_format *f, const struct wanted *w)
{
	struct mark_event *k = &m->known[m->n_known];

	if (m->n_known == MARKS_MAX || mark_event_of(m, f->id))
		return;
	*k = (struct mark_event){ .id = f->id, .what = w->what };
	k->pid = event_place_of(f, "common_pid");
	for (size_t i = 0; i < MARK_FIELDS; i++) {
		if (!w->field[i])
			continue;
		k->field[i] = event_place_of(f, w->field[i]);
		if (!k->field[i].size)
			return;
	}
	m->n_known++;
}

static int learn(struct marks *m, const struct dat_text *text, const struct wanted *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(all[i].name);
		struct event_format f;
		int ret;

		if (text->len < len || memcmp(text->data, all[i].name, len))
			continue;
		ret = event_format_parse(text->data, text->len, &f);
		if (ret)
			return ret == -ENOMEM ? ret : 0;
		know_event(m, &f, &all[i]);
		event_format_release(&f);
	}
	return 0;
}

int marks_learn_host(struct marks *m, const struct dat_text *formats, size_t n)
{
	static const struct wanted all[] = {
		{ "name: kvm_wfx_arm64\n", HOST_WFX, { "is_wfe" } },
		{ "name: kvm_vcpu_wakeup\n", HOST_WAKEUP, { NULL } },
		{ "name: kvm_timer_update_irq\n", HOST_TIMER, { "irq", "level" } },
		{ "name: kvm_hvc_arm64\n", HOST_HVC, { "r0" } },
		{ "name: kvm_mmio\n", HOST_MMIO, { "type", "len", "gpa", "val" } },
		/* the second: before Linux 6.0 */
		{ "name: kvm_inj_virq\n", HOST_VIRQ, { "vector", "reinjected" } },
		{ "name: kvm_inj_virq\n", HOST_VIRQ, { "irq" } },
	};
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = learn(m, &formats[i], all, ARRAY_SIZE(all));
	return ret;
}

int marks_learn_guest(struct marks *m, const struct dat_text *formats, size_t n)
{
	static const struct wanted all[] = {
		{ "name: cpu_idle\n", GUEST_IDLE, { "state" } },
		{ "name: irq_handler_entry\n", GUEST_IRQ, { "name" } },
		{ "name: local_timer_entry\n", GUEST_VECTOR, { "vector" } },
		{ "name: reschedule_entry\n", GUEST_VECTOR, { "vector" } },
		{ "name: call_function_entry\n", GUEST_VECTOR, { "vector" } },
		{ "name: call_function_single_entry\n", GUEST_VECTOR, { "vector" } },
		{ "name: irq_work_entry\n", GUEST_VECTOR, { "vector" } },
		{ "name: sys_enter_ioctl\n", GUEST_IOCTL, { "cmd" } },
		{ "name: sys_exit_ioctl\n", GUEST_IOCTL_END, { NULL } },
		{ "name: sys_enter_clock_gettime\n", GUEST_GETTIME, { "which_clock" } },
		{ "name: sys_exit_clock_gettime\n", GUEST_GETTIME_END, { NULL } },
		{ "name: rwmmio_read\n", GUEST_READ, { "addr", "width" } },
		{ "name: rwmmio_post_read\n", GUEST_READ_END, { "addr", "width" } },
		{ "name: rwmmio_write\n", GUEST_WRITE, { "addr", "width", "val" } },
		{ "name: rwmmio_post_write\n", GUEST_WRITE_END, { "addr", "width", "val" } },
	};
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = learn(m, &formats[i], all, ARRAY_SIZE(all));
	return ret;
}

static const struct mark_event *event_of(const struct marks *m, const struct page_event *ev)
{
	uint16_t type;

	if (!m->n_known || ev->len < sizeof(type))
		return NULL;
	memcpy(&type, ev->data, sizeof(type));
	return mark_event_of(m, type);
}

static int put_mark(struct marks *m, const struct mark *one)
{
	struct mark *v = array_grow(m->v, m->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	m->v = v;
	v[m->n++] = *one;
	return 0;
}

static int put_raise(struct marks *m, const struct sync_raise *one)
{
	struct sync_raise *v = array_grow(m->raises, m->n_raises, sizeof(*v));

	if (!v)
		return -ENOMEM;
	m->raises = v;
	v[m->n_raises++] = *one;
	return 0;
}

static int put_tick(struct marks *m, const struct sync_tick *one)
{
	struct sync_tick *v = array_grow(m->ticks, m->n_ticks, sizeof(*v));

	if (!v)
		return -ENOMEM;
	m->ticks = v;
	v[m->n_ticks++] = *one;
	return 0;
}

/* ---- gaps -------------------------------------------------------------------------------- */

int marks_gap(struct marks *m, uint64_t a, uint64_t b)
{
	struct sync_gap *v;

	if (!m->n_known)
		return 0;
	v = array_grow(m->gaps, m->n_gaps, sizeof(*v));
	if (!v)
		return -ENOMEM;
	m->gaps = v;
	v[m->n_gaps++] = (struct sync_gap){ a, b };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct sync_gap *x = a, *y = b;

	return x->a < y->a ? -1 : x->a > y->a;
}

static void join_gaps(struct marks *m)
{
	struct sync_gap *v = m->gaps;
	size_t kept = 0;

	if (m->n_gaps)
		qsort(v, m->n_gaps, sizeof(*v), by_start);
	for (size_t i = 0; i < m->n_gaps; i++) {
		if (!kept || v[i].a > v[kept - 1].b)
			v[kept++] = v[i];
		else if (v[i].b > v[kept - 1].b)
			v[kept - 1].b = v[i].b;
	}
	m->n_gaps = kept;
}

bool sync_gap_between(const struct sync_gap *v, size_t n, uint64_t a, uint64_t b)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v[mid].b < a)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && v[low].a <= b;
}

/* ---- deeds ------------------------------------------------------------------------------- */

static int by_owner(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	if (x->who != y->who)
		return x->who < y->who ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (int)y->enter - (int)x->enter;
}

static bool same_owner(const struct mark *x, const struct mark *y)
{
	return x->call == y->call && x->who == y->who && x->key == y->key;
}

static int put_deed(struct sync_deed **v, size_t *n, const struct mark *of, uint64_t a, uint64_t b,
		    int32_t pid)
{
	struct sync_deed *more = array_grow(*v, *n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*v = more;
	more[(*n)++] = (struct sync_deed){ a, b, of->key, pid, of->kind };
	return 0;
}

struct access {
	bool write;
	uint64_t address, bytes, value;
};

/*
 * What both sides know of it. Of the value only what there is room for: two with one key
 * may be the same, two with different keys never are.
 */
static uint64_t access_key(const struct access *a)
{
	uint64_t small = (a->address & MMIO_PAGE) << 5 | (a->bytes & 15) << 1 | a->write;
	uint64_t value = a->bytes < 8 ? a->value & ((1ull << 8 * a->bytes) - 1) : a->value;

	/* 2^64 divided by the golden ratio spreads it over the upper bits */
	return a->write ? value * 0x9e3779b97f4a7c15ull >> 17 << 17 | small : small;
}

/* ---- the host ---------------------------------------------------------------------------- */

static int take_mmio(struct marks *m, const struct mark_event *k, const struct page_event *ev,
		     struct mark *one)
{
	uint64_t type = event_get(ev, k->field[0]);
	struct access a = { .write = type == MMIO_WRITE,
			    .bytes = event_get(ev, k->field[1]),
			    .address = event_get(ev, k->field[2]),
			    .value = event_get(ev, k->field[3]) };

	if (type > MMIO_WRITE)
		return 0;
	one->kind = SYNC_MMIO;
	one->key = access_key(&a);
	one->enter = type != MMIO_READ;
	return put_mark(m, one);
}

int marks_take_host(struct marks *m, const struct page_event *ev)
{
	const struct mark_event *k = event_of(m, ev);
	struct mark one = { .time = ev->ts, .kind = SYNC_SLEEP };
	uint64_t v;

	if (!k)
		return 0;
	v = event_get(ev, k->field[0]);
	one.who = (int32_t)event_get(ev, k->pid);
	one.call = k->what;
	one.enter = true;
	switch (k->what) {
	case HOST_WFX:
		return v ? 0 : put_mark(m, &one);
	case HOST_WAKEUP:
		one.call = HOST_WFX;
		one.enter = false;
		return put_mark(m, &one);
	case HOST_TIMER:
		if (v != VTIMER || !event_get(ev, k->field[1]))
			return 0;
		return put_raise(m, &(struct sync_raise){ ev->ts, one.who, VTIMER });
	case HOST_VIRQ:
		if (event_get(ev, k->field[1]))
			return 0;
		return put_raise(m, &(struct sync_raise){ ev->ts, one.who, (uint32_t)v });
	case HOST_MMIO:
		return take_mmio(m, k, ev, &one);
	case HOST_HVC:
		one.kind = SYNC_PTP;
		return (uint32_t)v == PTP_CALL ? put_mark(m, &one) : 0;
	}
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct sync_raise *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

void sync_raises_sort(struct sync_raise *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), by_thread);
}

/* From one mark to the end that follows; alone where none does. */
static int pair_host(const struct marks *m, struct sync_host *h)
{
	int ret = 0;

	for (size_t i = 0; i < m->n && !ret; i++) {
		const struct mark *v = &m->v[i], *end = v + 1;

		if (!v->enter)
			continue;
		if (i + 1 == m->n || end->enter || !same_owner(v, end) ||
		    sync_gap_between(m->gaps, m->n_gaps, v->time, end->time))
			end = v;
		ret = put_deed(&h->deeds, &h->n_deeds, v, v->time, end->time, v->who);
	}
	return ret;
}

int marks_finish_host(struct marks *m, struct sync_host *h)
{
	join_gaps(m);
	sync_raises_sort(m->raises, m->n_raises);
	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_owner);
	h->raises = m->raises;
	h->n_raises = m->n_raises;
	m->raises = NULL;
	h->gaps = m->gaps;
	h->n_gaps = m->n_gaps;
	m->gaps = NULL;
	return pair_host(m, h);
}

/* ---- the guest -------------------------------------------------------------------------- */

static bool is_handler(const struct mark_event *k, const struct page_event *ev)
{
	size_t at = event_get(ev, k->field[0]) & LOC_MASK, len = sizeof(HANDLER);

	return at < ev->len && ev->len - at >= len && !memcmp(ev->data + at, HANDLER, len);
}

/* The idle tasks of all CPUs have one number. */
static int32_t task_of(const struct mark_event *k, const struct page_event *ev, unsigned int cpu)
{
	int32_t pid = (int32_t)event_get(ev, k->pid);

	return pid ? pid : -1 - (int32_t)cpu;
}

/* A dynamic clock's number: a file descriptor's complement, and in three bits what it is. */
static bool is_clock_fd(uint64_t id)
{
	return (int32_t)id < 0 && (id & 7) == CLOCK_FD;
}

/* Interrupts are off from the vector on: this one was injected after the last that was taken. */
static int take_vector(struct marks *m, uint32_t vector, uint64_t time, unsigned int cpu)
{
	struct sync_tick one = { time, m->clear, cpu, vector, true };

	one.clear = m->taken > one.clear ? m->taken : one.clear;
	m->taken = time;
	return put_tick(m, &one);
}

/* Its width is in bits. */
static uint64_t guest_access(const struct mark_event *k, const struct page_event *ev)
{
	const struct access a = { .write = k->what >= GUEST_WRITE,
				  .address = event_get(ev, k->field[0]),
				  .bytes = event_get(ev, k->field[1]) / 8,
				  .value = event_get(ev, k->field[2]) };

	return access_key(&a);
}

/* Of what the one before it in the list begins. */
static bool is_end(uint8_t what)
{
	return what == GUEST_IOCTL_END || what == GUEST_GETTIME_END || what == GUEST_READ_END ||
	       what == GUEST_WRITE_END;
}

static int take_known(struct marks *m, const struct mark_event *k, const struct page_event *ev,
		      unsigned int cpu)
{
	uint64_t v = event_get(ev, k->field[0]);
	struct mark one = { .time = ev->ts, .kind = SYNC_PTP, .call = k->what, .enter = true };

	one.who = task_of(k, ev, cpu);
	switch (k->what) {
	case GUEST_IRQ:
		if (!is_handler(k, ev))
			return 0;
		return put_tick(m, &(struct sync_tick){ ev->ts, m->clear, cpu, VTIMER, false });
	case GUEST_VECTOR:
		return take_vector(m, (uint32_t)v, ev->ts, cpu);
	case GUEST_IDLE:
		one.kind = SYNC_SLEEP;
		one.key = cpu;
		one.who = 0;
		one.enter = (uint32_t)v != IDLE_EXIT;
		break;
	case GUEST_IOCTL:
		one.other = IOC_TYPE(v) != PTP_MAGIC;
		break;
	case GUEST_GETTIME:
		one.other = !is_clock_fd(v);
		break;
	case GUEST_READ:
	case GUEST_READ_END:
	case GUEST_WRITE:
	case GUEST_WRITE_END:
		one.kind = SYNC_MMIO;
		one.key = guest_access(k, ev);
		break;
	}
	if (is_end(k->what)) {
		one.call--;
		one.enter = false;
	}
	return put_mark(m, &one);
}

int marks_take_guest(struct marks *m, const struct page_event *ev, unsigned int cpu)
{
	const struct mark_event *k = event_of(m, ev);
	int ret = k ? take_known(m, k, ev, cpu) : 0;

	if (m->n_known && ev->len > 2 && !(ev->data[2] & FLAGS_NOT_CLEAR)) /* common_flags */
		m->clear = ev->ts;
	return ret;
}

void marks_next_cpu(struct marks *m)
{
	m->clear = m->taken = 0;
}

/* What lacks its end, or its beginning, lasts until the next mark of the same. */
static int pair_owner(const struct mark *v, size_t n, struct sync_guest *g)
{
	struct sync_deed **to = &g->deeds;
	int ret = 0;

	if (!v[0].enter)
		ret = put_deed(to, &g->n_deeds, v, g->first, v[0].time, 0);
	for (size_t i = 1; i < n && !ret; i++)
		if (v[i - 1].enter ? !v[i - 1].other : !v[i].enter)
			ret = put_deed(to, &g->n_deeds, v, v[i - 1].time, v[i].time, 0);
	if (!ret && v[n - 1].enter && !v[n - 1].other)
		ret = put_deed(to, &g->n_deeds, v, v[n - 1].time, g->last, 0);
	return ret;
}

int marks_finish_guest(struct marks *m, struct sync_guest *g)
{
	int ret = 0;

	join_gaps(m);
	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_owner);
	for (size_t i = 0, to; i < m->n && !ret; i = to) {
		for (to = i + 1; to < m->n && same_owner(&m->v[i], &m->v[to]); to++)
			;
		ret = pair_owner(m->v + i, to - i, g);
	}
	g->ticks = m->ticks;
	g->n_ticks = m->n_ticks;
	m->ticks = NULL;
	g->gaps = m->gaps;
	g->n_gaps = m->n_gaps;
	m->gaps = NULL;
	return ret;
}

void marks_release(struct marks *m)
{
	free(m->v);
	free(m->raises);
	free(m->ticks);
	free(m->gaps);
	*m = (struct marks){ 0 };
}
