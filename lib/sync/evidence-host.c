// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A host's evidence: windows out of the pages of its buffers. Kept are 16 bytes for
 * each entry or exit; pages pass one at a time. A window is the guest's time between an entry and an exit,
 * the gap between two spans of lib/spans, by raw times of clocks that are not yet aligned.
 */
#include "base/array.h"
#include "base/field.h"
#include "file/dat/format.h"
#include "sync/evidence.h"

#define HYP_SLACK 1000 /* ns: the kernel refits the hypervisor's clock and warns above this */

/*
 * Windows of a hypervisor whose hyp_enter and hyp_exit have no reasons (Android's). The
 * windows follow from their order on a CPU. From kvm_entry to kvm_exit come
 *
 *	hyp_enter (the host's call), hyp_exit (into the guest), hyp_enter (out of it) ... hyp_exit
 *
 * and the last one goes back to the host. What lies between may be the guest again, or
 * the host: that stretch is unknown.
 */
enum host_what {
	KVM_ENTRY,
	KVM_EXIT,
	HYP_ENTER,
	HYP_EXIT,
	HOST_EVENTS,
	BLIND_LOST = HOST_EVENTS, /* from here events are missing, kvm's or the hypervisor's */
	BLIND_FOUND,		  /* to here */
};

struct blind_point {
	uint64_t time;
	int32_t pid; /* the thread's, of kvm's */
	uint32_t nr; /* order among equal times */
	uint16_t cpu;
	uint8_t what;
};

struct blind {
	struct blind_point *v; /* freed by the owner */
	size_t n;
	uint64_t begin; /* from when hyp_enter and hyp_exit are both there */
	uint64_t end;	/* of the hypervisor's events */
	uint64_t step;	/* as sync_windows_pair's */
	/* Runs of vCPUs between those without a loss; of them those with another order, which are unknown. */
	uint64_t checked, stray;
	size_t windows; /* that are known */
};

/* 0 or -ENOMEM. Each CPU's events of a buffer in order. */
static int blind_add(struct blind *b, uint64_t time, unsigned int cpu, int32_t pid, enum host_what what)
{
	const struct blind_point one = { time, pid, (uint32_t)b->n, (uint16_t)cpu, (uint8_t)what };

	return array_push(&b->v, &b->n, &one, sizeof(one));
}

static int compare_blind(const void *a, const void *b)
{
	const struct blind_point *x = a, *y = b;

	return ORDER(x->cpu, y->cpu) ?: ORDER(x->time, y->time) ?: ORDER(x->nr, y->nr);
}

/* A vCPU's run: from its kvm_entry to its kvm_exit. */
struct blind_run {
	int32_t pid;		 /* 0: none is seen */
	uint64_t from;		 /* its begin, or the end of what hides it */
	bool whole;		 /* hyp_enter and hyp_exit took turns so far */
	size_t n;		 /* of them */
	uint64_t in, left, last; /* the first hyp_exit, the second hyp_enter, the last one */
};

/* A CPU. */
struct blind_cpu {
	struct blind *b;
	struct sync_windows *out;
	struct blind_run run;
	unsigned int lost; /* buffers that miss events here */
	uint64_t lost_from;
};

static int blind_put(struct blind_cpu *c, uint64_t a, uint64_t b, int32_t pid, bool unknown)
{
	const struct sync_window w = { a > HYP_SLACK ? a - HYP_SLACK : 0, b + HYP_SLACK + c->b->step, pid,
				       SYNC_HYP, unknown };

	return a <= b ? array_push(&c->out->v, &c->out->n, &w, sizeof(w)) : 0;
}

/* Ends the known part of the run; begins the next. */
static int blind_cut(struct blind_cpu *c, uint64_t at, int32_t pid)
{
	const struct blind_run r = c->run;

	c->run = (struct blind_run){ .from = at };
	return pid ? blind_put(c, r.from, at, pid, true) : 0;
}

static int blind_exit(struct blind_cpu *c, const struct blind_point *at)
{
	const struct blind_run r = c->run;
	struct blind *b = c->b;
	bool right = r.whole && r.n >= 4 && !(r.n & 1);

	if (r.pid && !c->lost && r.from >= b->begin && at->time <= b->end) {
		b->checked++;
		b->stray += !right;
	}
	if (!r.pid || !right)
		return blind_cut(c, at->time, at->pid);
	b->windows++;
	c->run = (struct blind_run){ .from = at->time };
	if (r.last > r.left && blind_put(c, r.left, r.last, r.pid, true))
		return -ENOMEM;
	return blind_put(c, r.in, r.left, r.pid, false);
}

static int blind_found(struct blind_cpu *c, uint64_t at)
{
	if (!c->lost || --c->lost)
		return 0;
	/* any task may have run there */
	return blind_cut(c, at, c->run.pid) ?: blind_put(c, c->lost_from, at, 0, true);
}

static int blind_point(struct blind_cpu *c, const struct blind_point *at)
{
	const bool enter = at->what == HYP_ENTER;
	struct blind_run *r = &c->run;
	int ret;

	switch (at->what) {
	case BLIND_LOST:
		ret = blind_cut(c, at->time, c->run.pid);
		if (!c->lost++)
			c->lost_from = at->time;
		return ret;
	case BLIND_FOUND:
		return blind_found(c, at->time);
	case KVM_ENTRY:
		ret = blind_cut(c, at->time, c->run.pid);
		c->run.pid = at->pid;
		c->run.whole = !c->lost;
		return ret;
	case KVM_EXIT:
		return blind_exit(c, at);
	default: /* hyp_enter and hyp_exit take turns */
		r->whole &= enter == !(r->n & 1);
		if (r->n == 1)
			r->in = at->time;
		if (r->n == 2)
			r->left = at->time;
		if (enter)
			r->last = at->time;
		r->n++;
		return 0;
	}
}

static int blind_end(struct blind_cpu *c)
{
	c->lost = c->lost > 0;
	return blind_cut(c, c->b->end, c->run.pid) ?: blind_found(c, c->b->end);
}

#define TEXT_STEP  1000 /* ns: the resolution of the hypervisor's text */
#define STRAY_PART 100	/* 1 in so many hyp windows outside of kvm's: the clocks do not agree */

/* Place of a number; size 0: there is none, or it does not fit 8 bytes. */
static struct field_load host_field(const struct event_format *f, const char *name)
{
	const struct event_field *v = event_format_field(f, name);

	return v && v->size <= 8 ? (struct field_load){ FIELD_NUMBER, v->offset, (uint32_t)v->size, 0, 0 }
				 : (struct field_load){ 0 };
}

struct host_event {
	unsigned int id;
	bool there, enter;
	bool blind; /* the hypervisor's without a reason: sync/evidence.h */
	uint8_t kind;
	struct field_load pid, reason, vcpu;
	uint64_t want; /* the reason that counts */
};

/* The number before a symbol: `{ 7, "eret_guest" }`; our own numbering without one. */
static uint64_t reason_number(const struct event_format *f, const char *symbol, uint64_t ours)
{
	char quoted[32];
	const char *p;

	snprintf(quoted, sizeof(quoted), "\"%s\"", symbol);
	p = strstr(f->print_fmt, quoted);
	while (p && p > f->print_fmt && *p != '{')
		p--;
	return !p || *p != '{' ? ours : strtoull(p + 1, NULL, 0);
}

/* Our own numbering of the hypervisor's reasons */
#define OUR_GUEST_EXIT 5
#define OUR_ERET_GUEST 7

static int find_host_event(const struct dat_text *text, struct host_event *all)
{
	static const char *const names[HOST_EVENTS] = { "name: kvm_entry\n", "name: kvm_exit\n",
							"name: hyp_enter\n", "name: hyp_exit\n" };
	struct event_format f;
	struct host_event *k;
	int i = 0, ret;

	while (i < HOST_EVENTS &&
	       (text->len < strlen(names[i]) || memcmp(text->data, names[i], strlen(names[i]))))
		i++;
	if (i == HOST_EVENTS || all[i].there)
		return 0;
	ret = event_format_parse(text->data, text->len, &f);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	k = &all[i];
	*k = (struct host_event){ .id = f.id,
				  .there = true,
				  .enter = i == KVM_ENTRY || i == HYP_EXIT,
				  .kind = i <= KVM_EXIT ? SYNC_KVM : SYNC_HYP,
				  .pid = host_field(&f, "common_pid"),
				  .reason = host_field(&f, "reason"),
				  .vcpu = host_field(&f, "vcpu") };
	if (i == HYP_ENTER)
		k->want = reason_number(&f, "guest_exit", OUR_GUEST_EXIT);
	if (i == HYP_EXIT)
		k->want = reason_number(&f, "eret_guest", OUR_ERET_GUEST);
	k->blind = k->kind == SYNC_HYP && !k->reason.size;
	event_format_release(&f);
	return 0;
}

struct gap {
	uint64_t a, b;
};

struct points {
	struct host_event known[HOST_EVENTS];
	struct sync_point *v;
	size_t n;
	struct gap *gaps;
	size_t n_gaps;
	size_t n_paused; /* of them, without a loss that is known */
	const struct page_layout *layout;
	uint64_t begin, end;
	uint64_t last;	   /* of the CPU at hand */
	size_t next_pause; /* there */
	const struct pauses *pauses;
	uint64_t live[HOST_EVENTS]; /* first of each kind of event */
	size_t n_kind[2];
	struct gap covered[2]; /* by the buffer that has this kind */
	bool coarse;
	uint64_t step; /* of the hypervisor's times */
	struct blind blind;
	unsigned int cpu; /* at hand */
	bool other_kvm;	  /* an earlier buffer has kvm's events */
	size_t n_turns;	  /* hyp_enter and hyp_exit without a reason, of the buffer at hand */
};

static bool points_blind(const struct points *p)
{
	return p->known[HYP_ENTER].blind && p->known[HYP_EXIT].blind;
}

/* Takes an event for the windows by order, for hypervisor events without reasons. */
static int take_blind(struct points *p, const struct page_event *ev, int i, int32_t pid)
{
	if (!points_blind(p) || (i <= KVM_EXIT ? p->other_kvm : p->blind.end))
		return 0;
	p->n_turns += p->known[i].blind;
	return blind_add(&p->blind, ev->ts, p->cpu, pid, (enum host_what)i);
}

static int take_host_event(struct points *p, const struct page_event *ev)
{
	uint16_t type;

	if (ev->len < sizeof(type))
		return 0;
	memcpy(&type, ev->data, sizeof(type));
	for (int i = 0; i < HOST_EVENTS; i++) {
		const struct host_event *k = &p->known[i];
		struct sync_point one = { .time = ev->ts, .kind = k->kind, .enter = k->enter };
		uint64_t reason, pid;

		if (!k->there || k->id != type)
			continue;
		if (k->kind == SYNC_HYP && ev->ts % TEXT_STEP)
			p->coarse = false;
		/* 0 beyond the event's end */
		field_load_number(&k->reason, ev->data, ev->len, &reason);
		if (k->kind == SYNC_HYP && !k->blind && reason != k->want)
			return 0;
		p->live[i] = ev->ts < p->live[i] ? ev->ts : p->live[i];
		if (k->blind)
			return take_blind(p, ev, i, 0);
		field_load_number(k->kind == SYNC_HYP ? &k->vcpu : &k->pid, ev->data, ev->len, &pid);
		if (!(int32_t)pid)
			field_load_number(&k->pid, ev->data, ev->len, &pid);
		one.pid = (int32_t)pid;
		if (one.pid <= 0)
			return 0;
		p->n_kind[one.kind]++;
		if (one.kind == SYNC_KVM && take_blind(p, ev, i, one.pid))
			return -ENOMEM;
		return array_push(&p->v, &p->n, &one, sizeof(one));
	}
	return 0;
}

static int add_host_gap(struct points *p, uint64_t a, uint64_t b)
{
	const struct gap gap = { a, b };

	if (points_blind(p) && (blind_add(&p->blind, a, p->cpu, 0, BLIND_LOST) ||
				(b != UINT64_MAX && blind_add(&p->blind, b, p->cpu, 0, BLIND_FOUND))))
		return -ENOMEM;
	return array_push(&p->gaps, &p->n_gaps, &gap, sizeof(gap));
}

static int take_host_page(void *to, unsigned int number, const void *data, size_t len)
{
	struct points *p = to;
	struct page_reader r;
	struct page_event ev;
	bool first = true;

	if (page_reader_init(&r, p->layout, data, len))
		return add_host_gap(p, p->last, UINT64_MAX);
	for (; page_next(&r, &ev) == 1; first = false) {
		bool paused = p->last && pauses_between(p->pauses, p->last, ev.ts, &p->next_pause);

		if (((first && r.missed) || paused) && add_host_gap(p, p->last, ev.ts))
			return -ENOMEM;
		p->n_paused += paused;
		p->begin = ev.ts < p->begin ? ev.ts : p->begin;
		p->end = ev.ts > p->end ? ev.ts : p->end;
		p->last = ev.ts;
		if (take_host_event(p, &ev))
			return -ENOMEM;
	}
	return 0;
}

static int read_points(struct points *p, const struct sync_source *s, size_t buffer, const bool *have)
{
	const struct sync_buffer *b = &s->buffers[buffer];
	const size_t blind = p->blind.n;

	p->other_kvm = have[SYNC_KVM];
	p->layout = &b->layout;
	p->n = p->n_gaps = p->n_paused = p->n_turns = 0;
	p->n_kind[0] = p->n_kind[1] = 0;
	p->begin = UINT64_MAX;
	p->end = 0;
	p->coarse = true;
	memset(p->live, 0xff, sizeof(p->live));
	for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++) {
		int ret;

		p->last = p->next_pause = 0;
		p->cpu = cpu;
		ret = s->walk(s, buffer, cpu, take_host_page, p);
		if (!ret && s->whole_to)
			ret = add_host_gap(p, s->whole_to, UINT64_MAX);
		if (ret)
			return ret;
	}
	if (!p->n_turns && (p->other_kvm || !p->n_kind[SYNC_KVM]))
		p->blind.n = blind; /* other events' losses */
	if (p->n_turns) {
		p->blind.begin =
			p->live[HYP_ENTER] > p->live[HYP_EXIT] ? p->live[HYP_ENTER] : p->live[HYP_EXIT];
		p->blind.end = p->end;
		p->blind.step = p->coarse ? TEXT_STEP : 0;
	}
	/* the same events in a second buffer add nothing */
	for (size_t i = 0; i < p->n && (have[0] || have[1]);)
		if (have[p->v[i].kind])
			p->v[i] = p->v[--p->n];
		else
			i++;
	return 0;
}

/* Makes windows from the order of kvm's and the hypervisor's events, once all buffers are read. */
static int pair_blind(struct sync_host *h, struct points *p, bool *have, const struct log *log)
{
	struct blind *b = &p->blind;
	struct blind_cpu c = { .b = b, .out = &h->windows, .run.from = b->begin };
	size_t before = h->windows.n;
	int ret = 0;

	if (have[SYNC_HYP] || !b->end || !have[SYNC_KVM])
		return 0;
	qsort(b->v, b->n, sizeof(*b->v), compare_blind);
	for (size_t i = 0; i < b->n && !ret; i++) {
		if (i && b->v[i].cpu != b->v[i - 1].cpu) {
			ret = blind_end(&c);
			c = (struct blind_cpu){ .b = b, .out = &h->windows, .run.from = b->begin };
		}
		ret = ret ?: blind_point(&c, &b->v[i]);
	}
	ret = ret ?: blind_end(&c);
	if (ret)
		return ret;
	if (!b->windows || b->stray > b->checked / STRAY_PART) {
		if (b->stray)
			log_warn(log,
				 "in %llu of %llu runs of a vCPU the hypervisor's events have another order "
				 "than a run has: its clock is not the host's, its windows are left out",
				 (unsigned long long)b->stray, (unsigned long long)b->checked);
		h->windows.n = before;
		return 0;
	}
	h->n_hyp = b->windows;
	p->step = b->step;
	have[SYNC_HYP] = true;
	p->covered[SYNC_HYP] = (struct gap){ b->begin, b->end };
	return 0;
}

static int pair_buffer(struct sync_host *h, struct points *p, bool *have)
{
	bool hyp = p->n_kind[SYNC_HYP] && !have[SYNC_HYP];
	uint64_t step = hyp && p->coarse ? TEXT_STEP : 0;
	uint8_t kind = hyp ? SYNC_HYP : SYNC_KVM;
	bool kvm = p->n_kind[SYNC_KVM] && !have[SYNC_KVM];
	const uint64_t *live = &p->live[kvm ? KVM_ENTRY : HYP_ENTER];
	uint64_t from = live[0] > live[1] ? live[0] : live[1];
	size_t before = h->windows.n;

	if (!p->n)
		return 0;
	/*
	 * The time in which the host's kvm events exclude anything: from when both were
	 * enabled. The hypervisor's, which is traced longer, only counts without them.
	 */
	if (kvm || !have[SYNC_KVM]) {
		h->begin = from < p->end ? from : p->begin;
		h->end = p->end;
	}
	if (sync_windows_pair(&h->windows, p->v, p->n, p->begin, p->end, hyp ? HYP_SLACK : 0, step))
		return -ENOMEM;
	have[kind] = true;
	p->covered[kind] = (struct gap){ p->begin, p->end };
	if (hyp) {
		h->n_hyp = h->windows.n - before;
		p->step = step;
	}
	/* lost events of a buffer hide entries and exits of every thread */
	for (size_t i = 0; i < p->n_gaps; i++) {
		struct sync_window w = { p->gaps[i].a, p->gaps[i].b, 0, kind, true };

		w.a = w.a < h->begin ? h->begin : w.a;
		w.b = w.b > h->end ? h->end : w.b;
		if (w.a <= w.b && array_push(&h->windows.v, &h->windows.n, &w, sizeof(w)))
			return -ENOMEM;
	}
	h->lost += p->n_gaps - p->n_paused;
	return 0;
}

static int compare_windows(const void *a, const void *b)
{
	const struct sync_window *x = a, *y = b;

	return ORDER(x->pid, y->pid) ?: ORDER(x->a, y->a);
}

/* The thread's kvm window that hyp window i should be part of: the first it meets, or the last. */
static const struct sync_window *kvm_around(const struct sync_windows *w, size_t i)
{
	const struct sync_window *hyp = &w->v[i], *last = NULL;
	size_t k = i;

	while (k-- > 0 && w->v[k].pid == hyp->pid && !last)
		if (w->v[k].kind == SYNC_KVM)
			last = &w->v[k];
	if (last && last->b >= hyp->a + HYP_SLACK)
		return last;
	for (k = i + 1; k < w->n && w->v[k].pid == hyp->pid && w->v[k].a <= hyp->b; k++)
		if (w->v[k].kind == SYNC_KVM)
			return &w->v[k];
	return last;
}

/*
 * True if a..b overlaps one of n gaps of a kind, which are sorted by their begins; until[i]: the latest end
 * of those up to i, of each kind.
 */
static bool meets_gap(uint64_t a, uint64_t b, uint8_t kind, const struct sync_window *gaps,
		      uint64_t (*until)[2], size_t n)
{
	size_t before = array_lower_bound(gaps, n, sizeof(*gaps), u64_below, &b);

	return before && until[before - 1][kind] > a;
}

/*
 * kvm_entry <= eret_guest <= guest_exit <= kvm_exit, else the hypervisor's
 * clock is not the host's, and its windows are of no use. Beside a gap, entry and exit need not be a pair. 0
 * or -ENOMEM.
 */
static int check_hyp(struct sync_host *h, uint64_t step, const struct log *log)
{
	struct sync_windows *w = &h->windows;
	uint64_t from = UINT64_MAX, to = 0, (*until)[2];
	size_t kept = 0, gaps = 0;

	if (!h->n_hyp)
		return 0;
	/* the time that the host's kvm events cover: the hypervisor is traced a little longer */
	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i].kind != SYNC_KVM || w->v[i].unknown)
			continue;
		from = w->v[i].a < from ? w->v[i].a : from;
		to = w->v[i].b > to ? w->v[i].b : to;
	}
	array_sort(w->v, w->n, sizeof(*w->v), compare_windows);
	until = calloc(w->n + 1, sizeof(*until));
	if (!until)
		return -ENOMEM;
	/* those of any thread come first */
	for (; gaps < w->n && !w->v[gaps].pid; gaps++) {
		const struct sync_window *gap = &w->v[gaps];

		if (gaps)
			memcpy(until[gaps], until[gaps - 1], sizeof(*until));
		if (gap->b > until[gaps][gap->kind])
			until[gaps][gap->kind] = gap->b;
	}
	for (size_t i = gaps; i < w->n; i++) {
		const struct sync_window *hyp = &w->v[i], *kvm;
		uint64_t a, b, off;

		if (hyp->kind != SYNC_HYP || hyp->unknown || hyp->b < from || hyp->a > to)
			continue;
		/* the distance by which a hyp window leaves its kvm window, without its widening */
		a = hyp->a + HYP_SLACK;
		b = hyp->b - HYP_SLACK - step;
		kvm = kvm_around(w, i);
		if (!kvm || kvm->unknown || meets_gap(a, b, SYNC_HYP, w->v, until, gaps) ||
		    meets_gap(kvm->a, kvm->b, SYNC_KVM, w->v, until, gaps))
			continue;
		off = kvm->a > a ? kvm->a - a : 0;
		off = b > kvm->b && b - kvm->b > off ? b - kvm->b : off;
		h->hyp_checked++;
		h->hyp_stray += off > HYP_SLACK;
		h->hyp_worst = off > h->hyp_worst ? off : h->hyp_worst;
	}
	free(until);
	if (h->hyp_stray <= h->hyp_checked / STRAY_PART)
		return 0;
	log_warn(log,
		 "%llu of %llu hyp windows lie outside of kvm_entry..kvm_exit, by up to %llu ns: the "
		 "hypervisor's clock is not the host's, its windows are left out",
		 (unsigned long long)h->hyp_stray, (unsigned long long)h->hyp_checked,
		 (unsigned long long)h->hyp_worst);
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].kind == SYNC_KVM)
			w->v[kept++] = w->v[i];
	w->n = kept;
	h->n_hyp = 0;
	return 0;
}

int sync_host_read(struct sync_host *h, const struct sync_source *s, const struct log *log)
{
	struct points p = { .pauses = &s->pauses };
	bool have[2] = { false, false };
	int ret = 0;

	*h = (struct sync_host){ .steady = s->steady };
	for (size_t i = 0; i < s->n_formats && !ret; i++)
		ret = find_host_event(&s->formats[i], p.known);
	for (size_t i = 0; i < s->n_buffers && !ret; i++)
		ret = read_points(&p, s, i, have) ?: pair_buffer(h, &p, have);
	ret = ret ?: pair_blind(h, &p, have, log);
	/* the buffers do not begin and end together: before and after, the kind is not known */
	for (uint8_t kind = 0; kind < 2 && !ret; kind++) {
		const struct sync_window around[] = { { h->begin, p.covered[kind].a, 0, kind, true },
						      { p.covered[kind].b, h->end, 0, kind, true } };

		for (size_t i = 0; i < ARRAY_SIZE(around) && have[kind] && !ret; i++)
			if (around[i].a < around[i].b)
				ret = array_push(&h->windows.v, &h->windows.n, &around[i], sizeof(around[i]));
	}
	free(p.blind.v);
	free(p.v);
	free(p.gaps);
	ret = ret ?: check_hyp(h, p.step, log);
	if (ret)
		sync_host_release(h);
	return ret;
}

void sync_host_release(struct sync_host *h)
{
	free(h->windows.v);
	*h = (struct sync_host){ 0 };
}
