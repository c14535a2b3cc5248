// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the guest's windows by the order of the hypervisor's events, for events without reasons. */
#include "sync/evidence.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

int blind_add(struct blind *b, uint64_t time, unsigned int cpu, int32_t pid, enum blind_what what)
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
	const uint64_t slack = c->b->slack;
	const struct sync_window w = { a > slack ? a - slack : 0, b + slack + c->b->step, pid, SYNC_HYP,
				       unknown };

	return a <= b ? sync_windows_add(c->out, &w) : 0;
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
	const bool enter = at->what == BLIND_HYP_ENTER;
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
	case BLIND_KVM_ENTRY:
		ret = blind_cut(c, at->time, c->run.pid);
		c->run.pid = at->pid;
		c->run.whole = !c->lost;
		return ret;
	case BLIND_KVM_EXIT:
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
	while (c->lost > 1)
		c->lost--;
	return blind_cut(c, c->b->end, c->run.pid) ?: blind_found(c, c->b->end);
}

int blind_pair(struct blind *b, struct sync_windows *w)
{
	struct blind_cpu c = { .b = b, .out = w, .run.from = b->begin };
	int ret = 0;

	qsort(b->v, b->n, sizeof(*b->v), compare_blind);
	for (size_t i = 0; i < b->n && !ret; i++) {
		if (i && b->v[i].cpu != b->v[i - 1].cpu) {
			ret = blind_end(&c);
			c = (struct blind_cpu){ .b = b, .out = w, .run.from = b->begin };
		}
		ret = ret ?: blind_point(&c, &b->v[i]);
	}
	return ret ?: blind_end(&c);
}
