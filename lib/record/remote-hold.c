// SPDX-License-Identifier: LGPL-2.1-or-later
#include "record/remote-hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How much is held back, and how long, to learn a CNTVOFF. */
#define HELD_MAX (1u << 20)
#define HELD_NS	 1000000000

struct hold {
	struct nvhe *ahead; /* was fed what is held */
	struct nvhe *nvhe;  /* ... is going to be */
	hold_fn fn;
	void *ctx;
	struct buf held; /* struct held, then the record's data, each time */
	uint64_t from, to;
	uint64_t held_from; /* the bound when the first was held */
	uint64_t since;	    /* when that was, boot clock ns */
};

struct held {
	uint64_t ts, lost;
	const char *reason;
	size_t len;
	unsigned int cpu;
	int vcpu;
};

struct hold *hold_new(unsigned int cpu, void (*step)(void *ctx, const struct nvhe_step *s), hold_fn fn,
		      void *ctx)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->fn = fn;
	h->ctx = ctx;
	h->ahead = nvhe_new(cpu, NULL, NULL);
	h->nvhe = nvhe_new(cpu, step, ctx);
	if (h->ahead && h->nvhe)
		return h;
	hold_free(h);
	return NULL;
}

void hold_free(struct hold *h)
{
	if (!h)
		return;
	nvhe_free(h->ahead);
	nvhe_free(h->nvhe);
	buf_release(&h->held);
	free(h);
}

void hold_bounds(struct hold *h, uint64_t from, uint64_t to)
{
	h->from = from;
	h->to = to;
	nvhe_bounds(h->ahead, from, to);
}

void hold_known(struct hold *h, int vcpu_pid, int64_t low, int64_t high)
{
	nvhe_known(h->ahead, vcpu_pid, low, high);
	if (!h->held.len) /* what is held may be older, and the VM paused since */
		nvhe_known(h->nvhe, vcpu_pid, low, high);
}

static uint64_t repair(struct nvhe *n, uint64_t ts, uint64_t lost, const char *reason, int vcpu)
{
	if (lost)
		nvhe_lost(n);
	return nvhe_time(n, ts, reason, vcpu);
}

int hold_add(struct hold *h, const struct hyprecord *rec, const char *reason, int vcpu)
{
	struct held r = { .ts = rec->ts,
			  .lost = rec->lost,
			  .reason = reason,
			  .len = rec->len,
			  .cpu = rec->cpu,
			  .vcpu = vcpu };

	if (!h->held.len) {
		h->held_from = h->from;
		h->since = boot_ns();
	}
	repair(h->ahead, rec->ts, rec->lost, reason, vcpu);
	buf_add(&h->held, &r, sizeof(r));
	buf_add(&h->held, rec->data, rec->len);
	return buf_status(&h->held);
}

bool hold_unsure(const struct hold *h)
{
	return nvhe_unsure(h->ahead);
}

static int hand_on(struct hold *h, struct cursor *c)
{
	const void *p = cursor_take(c, sizeof(struct held));
	struct hyprecord rec;
	struct held r;

	memcpy(&r, p, sizeof(r));
	rec = (struct hyprecord){ .cpu = r.cpu, .len = r.len, .lost = r.lost };
	rec.data = cursor_take(c, r.len);
	rec.ts = repair(h->nvhe, r.ts, r.lost, r.reason, r.vcpu);
	return h->fn(h->ctx, &rec);
}

int hold_release(struct hold *h, bool end)
{
	struct cursor c = cursor_at(h->held.data, h->held.len);
	int ret = 0;

	if (!end && hold_unsure(h) && h->held.len < HELD_MAX && boot_ns() - h->since < HELD_NS)
		return 0;
	nvhe_learn(h->nvhe, h->ahead);
	nvhe_bounds(h->nvhe, h->held_from, h->to);
	while (!ret && cursor_left(&c))
		ret = hand_on(h, &c);
	h->held.len = 0;
	return ret;
}
