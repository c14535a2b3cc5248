// SPDX-License-Identifier: LGPL-2.1-or-later
/* A bundle of a CPU's events, with those of compact_sched, in the order of time. */
#include "convert/import/pftrace-priv.h"

enum {
	SWITCH_TIMESTAMP = 1,
	SWITCH_PREV_STATE,
	SWITCH_NEXT_PID,
	SWITCH_NEXT_PRIO,
	INTERN_TABLE,
	SWITCH_NEXT_COMM,
	WAKING_TIMESTAMP,
	WAKING_PID,
	WAKING_TARGET_CPU,
	WAKING_PRIO,
	WAKING_COMM,
	WAKING_FLAGS,
	COMPACT_END
};

/* A list of compact_sched: numbers, or the places of texts. */
struct compact_list {
	uint64_t *v;
	size_t n;
};

struct bundle {
	struct pft *p;
	struct pft_machine *m;
	struct pft_source *s;
	uint64_t cpu;
	bool lost[2]; /* of the host's events, and of the hypervisor's */
	uint64_t clock;
	size_t n; /* items */
	struct compact_list lists[COMPACT_END];
	struct wire_field *texts; /* compact_sched's table of names */
	size_t n_texts;
};

static struct pft_item *bundle_add(struct bundle *b)
{
	struct pft *p = b->p;

	if (b->n == PFT_BUNDLE_MAX || array_reach(&p->items, &p->room, b->n + 1, sizeof(*p->items)))
		return NULL;
	p->items[b->n] = (struct pft_item){ .index = b->n };
	return &p->items[b->n++];
}

static int take_event(struct bundle *b, struct cursor c)
{
	struct pft_item *item = bundle_add(b);
	struct wire_field f;
	int ret;

	if (!item)
		return b->n >= PFT_BUNDLE_MAX ? -EBADMSG : -ENOMEM;
	while ((ret = wire_next(&c, &f)) == 1) {
		if (f.is_bytes) {
			item->number = f.number;
			item->data = f.data;
			item->len = f.len;
		} else if (f.number == EVENT_TIMESTAMP) {
			item->ts = f.v;
		} else if (f.number == EVENT_PID) {
			item->pid = (int32_t)f.v;
		} else if (f.number == EVENT_FLAGS) {
			item->flags = (uint32_t)f.v;
		}
	}
	return ret;
}

static int list_add(struct compact_list *l, uint64_t v)
{
	return l->n < PFT_BUNDLE_MAX ? array_push(&l->v, &l->n, &v, sizeof(v)) : -EBADMSG;
}

/* Numbers, packed or one by one. */
static int take_numbers(struct compact_list *l, const struct wire_field *f)
{
	struct cursor c = wire_message(f);
	int ret = 0;

	if (!f->is_bytes)
		return list_add(l, f->v);
	while (cursor_left(&c) && !ret) {
		uint64_t v = wire_varint(&c);

		ret = c.bad ? -EBADMSG : list_add(l, v);
	}
	return ret;
}

static int take_compact(struct bundle *b, struct cursor c)
{
	struct wire_field f;
	int ret = 0;

	while (ret >= 0 && (ret = wire_next(&c, &f)) == 1) {
		if (f.number == INTERN_TABLE)
			ret = f.is_bytes && b->n_texts < PFT_BUNDLE_MAX
				      ? array_push(&b->texts, &b->n_texts, &f, sizeof(f))
				      : -EBADMSG;
		else if (f.number < COMPACT_END)
			ret = take_numbers(&b->lists[f.number], &f);
	}
	return ret;
}

/* Lists from first to last, of times and what was there then: all of one length. */
static int add_compact(struct bundle *b, unsigned int times, unsigned int last, uint32_t number)
{
	uint64_t ts = 0;

	for (unsigned int i = times; i <= last; i++)
		if (i != INTERN_TABLE && b->lists[i].n != b->lists[times].n &&
		    (i != WAKING_FLAGS || b->lists[i].n)) /* flags came with Android 13 */
			return -EBADMSG;
	for (size_t i = 0; i < b->lists[times].n; i++) {
		struct pft_item *item = bundle_add(b);

		if (!item)
			return b->n >= PFT_BUNDLE_MAX ? -EBADMSG : -ENOMEM;
		ts += b->lists[times].v[i];
		item->ts = ts;
		item->number = number;
		item->compact = true;
		item->index = i;
	}
	return 0;
}

static int bundle_take(struct bundle *b, struct cursor c)
{
	struct wire_field f;
	int ret = 0;

	while (ret >= 0 && (ret = wire_next(&c, &f)) == 1) {
		if (f.number == BUNDLE_EVENT && f.is_bytes)
			ret = take_event(b, wire_message(&f));
		else if (f.number == BUNDLE_COMPACT && f.is_bytes)
			ret = take_compact(b, wire_message(&f));
		else if (f.number == BUNDLE_DESCRIBED && f.is_bytes)
			ret = pft_describe(b->s, wire_message(&f));
		else if (f.number == BUNDLE_CPU && !f.is_bytes)
			b->cpu = f.v;
		else if (f.number == BUNDLE_CLOCK && !f.is_bytes)
			b->clock = f.v;
		else if ((f.number == BUNDLE_LOST && f.v) || f.number == BUNDLE_ERROR)
			b->lost[0] = true;
	}
	b->lost[1] = b->lost[0];
	return ret ?: add_compact(b, SWITCH_TIMESTAMP, SWITCH_NEXT_COMM, PFT_SCHED_SWITCH) ?:
		      add_compact(b, WAKING_TIMESTAMP, WAKING_FLAGS, PFT_SCHED_WAKING);
}

/* Of the same time: a waking before what else was there, a switch behind it. */
static int item_rank(const struct pft_item *i)
{
	return !i->compact ? 1 : i->number == PFT_SCHED_SWITCH ? 2 : 0;
}

static int item_order(const void *a, const void *b)
{
	const struct pft_item *x = a, *y = b;

	return ORDER(x->ts, y->ts) ?: item_rank(x) - item_rank(y) ?: ORDER(x->index, y->index);
}

static struct pft_value number_value(uint32_t number, int64_t v)
{
	return (struct pft_value){ .number = number, .v = (uint64_t)v };
}

static struct pft_value text_value(uint32_t number, const void *text, size_t len)
{
	return (struct pft_value){ .number = number, .is_text = true, .text = text, .len = len };
}

static int interned(const struct bundle *b, unsigned int list, size_t i, uint32_t number,
		    struct pft_value *out)
{
	uint64_t at = b->lists[list].v[i];

	if (at >= b->n_texts)
		return -EBADMSG;
	*out = text_value(number, b->texts[at].data, b->texts[at].len);
	return 0;
}

static int32_t listed(const struct bundle *b, unsigned int list, size_t i)
{
	return (int32_t)b->lists[list].v[i];
}

static int compact_switch(struct bundle *b, struct pft_cpu *c, struct pft_item *item)
{
	size_t i = item->index;
	char prev[16];
	struct pft_value v[] = {
		text_value(1, prev, strnlen(c->comm, sizeof(prev))),
		number_value(2, c->pid),
		number_value(3, c->prio),
		number_value(4, (int64_t)b->lists[SWITCH_PREV_STATE].v[i]),
		{ 0 },
		number_value(6, listed(b, SWITCH_NEXT_PID, i)),
		number_value(7, listed(b, SWITCH_NEXT_PRIO, i)),
	};
	int ret = interned(b, SWITCH_NEXT_COMM, i, 5, &v[4]);

	if (ret)
		return ret;
	memcpy(prev, c->comm, sizeof(prev));
	item->pid = c->pid;
	c->pid = (int32_t)v[5].v;
	c->prio = (int32_t)v[6].v;
	memset(c->comm, 0, sizeof(c->comm));
	memcpy(c->comm, v[4].text, v[4].len < sizeof(c->comm) ? v[4].len : sizeof(c->comm) - 1);
	return pft_event(b->p, b->m, b->s, c->cpu, item, v, ARRAY_SIZE(v), b->lost);
}

static int compact_waking(struct bundle *b, struct pft_cpu *c, struct pft_item *item)
{
	size_t i = item->index;
	struct pft_value v[] = {
		{ 0 },
		number_value(2, listed(b, WAKING_PID, i)),
		number_value(3, listed(b, WAKING_PRIO, i)),
		number_value(4, 1), /* success: of kernels that have it still */
		number_value(5, listed(b, WAKING_TARGET_CPU, i)),
	};
	int ret = interned(b, WAKING_COMM, i, 1, &v[0]);

	item->pid = c->pid;
	item->flags = b->lists[WAKING_FLAGS].n ? (uint32_t)b->lists[WAKING_FLAGS].v[i] : 0;
	return ret ?: pft_event(b->p, b->m, b->s, c->cpu, item, v, ARRAY_SIZE(v), b->lost);
}

static int compact_event(struct bundle *b, struct pft_item *item)
{
	int ret;
	struct pft_cpu *c = pft_cpu(b->m, b->s, false, (unsigned int)b->cpu, &ret);

	if (!c)
		return ret;
	if (b->lost[0])
		c->pid = -1;
	if (c->pid == -1) {
		strcpy(c->comm, "<...>");
		c->prio = -1;
	}
	return item->number == PFT_SCHED_SWITCH ? compact_switch(b, c, item) : compact_waking(b, c, item);
}

static int bundle_write(struct bundle *b)
{
	static const char *const clocks[] = { "boot", "", "global", "local", "mono_raw" };
	struct pft_item *v = b->p->items;
	struct pft_cpu *c;
	int ret = 0;

	if (b->cpu >= PERFETTO_CPUS) {
		b->p->result->left_out += b->n; /* no machine has such a CPU */
		return -EBADMSG;
	}
	if (b->n && (!b->m->clock || b->clock))
		b->m->clock = clocks[b->clock < ARRAY_SIZE(clocks) ? b->clock : 1];
	b->p->result->lost += b->lost[0];
	if (b->lost[0] && !b->n) { /* events that are to come on the CPU have lost some before them */
		c = pft_cpu(b->m, b->s, b->s->is_hyp && !b->s->buffer, (unsigned int)b->cpu, &ret);
		return c ? page_write_lost(&c->w, 0) : ret;
	}
	array_sort(v, b->n, sizeof(*v), item_order);
	for (size_t i = 0; i < b->n && !ret; i++) {
		ret = v[i].compact
			      ? compact_event(b, &v[i])
			      : pft_event(b->p, b->m, b->s, (unsigned int)b->cpu, &v[i], NULL, 0, b->lost);
		if (ret == -EBADMSG) {
			b->p->result->bad++;
			ret = 0;
		}
	}
	return ret;
}

int pft_bundle(struct pft *p, struct pft_machine *m, struct pft_source *s, struct cursor c)
{
	struct bundle b = { .p = p, .m = m, .s = s };
	int ret = bundle_take(&b, c) ?: bundle_write(&b);

	for (size_t i = 0; i < COMPACT_END; i++)
		free(b.lists[i].v);
	free(b.texts);
	return ret;
}
