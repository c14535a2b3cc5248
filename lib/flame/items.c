// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the stacks of a run's records hold, with the functions of their addresses: by every core. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "flame/flame-priv.h"

/* What stands for ftrace's own code in a stack (kernel/trace/trace.c). */
#define TRAMPOLINE INT_MAX
/* No address: newer kernels put the length before a synthetic event's stack. */
#define LENGTH_MAX 4096

/* ---- room -------------------------------------------------------------------------------- */

static int items_room(struct flame_items *own, size_t addresses)
{
	size_t more = own->n_addresses + addresses;

	if (own->n == own->room) {
		size_t room = own->room ? 2 * own->room : 256;
		struct flame_item *v = realloc(own->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		own->v = v;
		own->room = room;
	}
	if (more > own->room_addresses) {
		size_t room = 2 * more + 1024;
		struct flame_address *v = realloc(own->addresses, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		own->addresses = v;
		own->room_addresses = room;
	}
	return 0;
}

void flame_items_free(void *own)
{
	struct flame_items *o = own;

	free(o->v);
	free(o->addresses);
	free(o->last);
	free(o);
}

/* ---- addresses --------------------------------------------------------------------------- */

static void items_address(struct flame_items *own, const struct flame_symbols *symbols, uint64_t addr)
{
	size_t symbol = symbols ? flame_symbols_find(symbols, addr) : 0;

	own->addresses[own->n_addresses++] = (struct flame_address){
		addr, symbols && symbol < symbols->n && symbol < UINT32_MAX ? (uint32_t)symbol : UINT32_MAX
	};
}

/* Up to n addresses from data on; a 0, or all bits, is the end. */
static void items_stack(const struct flame_input *in, struct flame_items *own, const struct flame_item *item,
			const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++, data += 8) {
		uint64_t addr;

		memcpy(&addr, data, 8);
		if (!addr || addr == UINT64_MAX)
			return;
		if (item->kind == FLAME_KERNEL_STACK && addr == TRAMPOLINE)
			continue;
		if (item->kind == FLAME_ARRAY && addr < LENGTH_MAX && !i)
			continue;
		items_address(own, item->kind == FLAME_USER_STACK ? NULL : &in->symbols, addr);
	}
}

/* ---- records ------------------------------------------------------------------------------ */

static uint64_t item_number(const struct field_load *l, const struct merge_record *m, uint64_t none)
{
	uint64_t v;

	return l->kind == FIELD_NUMBER && field_load_number(l, m->data, m->len, &v) ? v : none;
}

/* kernel_stack holds more callers than its format says, user_stack as many; both may say more than there are.
 */
static int item_stack(const struct flame_input *in, const struct flame_event *e, const struct merge_record *m,
		      struct flame_items *own, struct flame_item *item)
{
	size_t n = m->len > e->where.offset ? (m->len - e->where.offset) / 8 : 0;
	uint64_t said = item->kind == FLAME_KERNEL_STACK ? item_number(&e->number, m, n) : n;

	item->cut = said > n;
	n = said < n ? (size_t)said : n;
	if (items_room(own, n))
		return -ENOMEM;
	items_stack(in, own, item, m->data + e->where.offset, n);
	return 0;
}

static int item_array(const struct flame_input *in, const struct flame_event *e, const struct merge_record *m,
		      struct flame_items *own, struct flame_item *item)
{
	const uint8_t *data;
	size_t n;

	item->cut = field_load_bytes(&e->where, m->data, m->len, &data, &n) != 1;
	if (items_room(own, n / 8))
		return -ENOMEM;
	items_stack(in, own, item, data, n / 8);
	return 0;
}

/* The kernel's stack, then the user's that it lies within. */
static int item_sample(const struct flame_input *in, const struct flame_event *e,
		       const struct merge_record *m, struct flame_items *own, struct flame_item *item)
{
	const uint8_t *kernel, *user;
	size_t n, n_user;

	item->cut = field_load_bytes(&e->where, m->data, m->len, &kernel, &n) != 1;
	item->cut |= field_load_bytes(&e->second, m->data, m->len, &user, &n_user) != 1;
	if (items_room(own, n / 8 + n_user / 8))
		return -ENOMEM;
	items_stack(in, own, item, kernel, n / 8);
	for (size_t i = 0; i < n_user / 8; i++) {
		uint64_t addr;

		memcpy(&addr, user + 8 * i, 8);
		items_address(own, NULL, addr);
	}
	return 0;
}

/* A record that ends before its addresses is none. */
static int item_call(const struct flame_input *in, const struct flame_event *e, const struct merge_record *m,
		     struct flame_items *own, struct flame_item *item)
{
	uint64_t from = item_number(&e->from, m, UINT64_MAX), to = item_number(&e->to, m, 0), addr;

	if (items_room(own, 2))
		return -ENOMEM;
	item->ns = from <= to ? to - from : FLAME_NO_TIME;
	if (!field_load_number(&e->where, m->data, m->len, &addr))
		return 0;
	items_address(own, &in->symbols, addr);
	if (e->second.kind == FIELD_NUMBER && field_load_number(&e->second, m->data, m->len, &addr))
		items_address(own, &in->symbols, addr);
	return 0;
}

static int item_fill(const struct flame_input *in, const struct flame_event *e, const struct merge_record *m,
		     struct flame_items *own, struct flame_item *item)
{
	item->pid = timeline_pid(&e->pid, m);
	item->number = item_number(&e->number, m, item->kind == FLAME_FUNCTION ? 1 : 0);
	item->tgid = item->kind == FLAME_USER_STACK ? (int32_t)item->number : item->pid;
	if (item->kind == FLAME_ARRAY)
		return item_array(in, e, m, own, item);
	if (item->kind == FLAME_SAMPLE) {
		item->tgid = (int32_t)item->number;
		item->number = item_number(&e->mode, m, 0);
		return item_sample(in, e, m, own, item);
	}
	if (item->kind <= FLAME_USER_STACK)
		return item_stack(in, e, m, own, item);
	return item_call(in, e, m, own, item);
}

/* ---- what comes before ---------------------------------------------------------------------- */

static bool item_is_stack(const struct flame *f, const struct merge_record *m)
{
	const struct flame_input *in = &f->v[timeline_stream(f->t, m)->input];
	unsigned int id = timeline_id(m);

	return id < in->n_events && in->events[id].kind == FLAME_KERNEL_STACK;
}

static int items_record(const struct flame *f, const struct merge_run *run, size_t i, struct flame_items *own)
{
	const struct merge_record *m = &run->v[i];
	const struct merge_stream *s = timeline_stream(f->t, m);
	const struct flame_input *in = &f->v[s->input];
	unsigned int id = timeline_id(m);
	const struct flame_event *e = id < in->n_events ? &in->events[id] : NULL;
	uint32_t before = own->last[m->stream];
	struct flame_item item = { .ts = m->ts,
				   .at = (uint32_t)i,
				   .first = (uint32_t)own->n_addresses,
				   .stream = m->stream,
				   .cpu = s->cpu,
				   .input = (uint16_t)s->input };
	int ret;

	own->last[m->stream] = (uint32_t)i + 1;
	if (in->skip || !e || e->kind == FLAME_NONE)
		return 0;
	item.kind = (uint8_t)e->kind;
	ret = item_fill(in, e, m, own, &item);
	if (ret)
		return ret;
	item.n = (uint32_t)(own->n_addresses - item.first);
	item.before = item.kind == FLAME_ARRAY || item.kind == FLAME_SAMPLE ? (uint32_t)i + 1 : before;
	item.after_stack = before && item_is_stack(f, &run->v[before - 1]);
	own->v[own->n++] = item;
	return 0;
}

/* The last record of each stream, and its place in `last` is 0 again. */
static int items_tails(const struct flame *f, const struct merge_run *run, struct flame_items *own)
{
	for (size_t i = run->n; i--;) {
		const struct merge_record *m = &run->v[i];
		struct flame_item item = { .at = (uint32_t)run->n,
					   .before = (uint32_t)i + 1,
					   .stream = m->stream,
					   .kind = FLAME_TAIL };

		if (!own->last[m->stream])
			continue;
		own->last[m->stream] = 0;
		if (items_room(own, 0))
			return -ENOMEM;
		item.after_stack = item_is_stack(f, m);
		own->v[own->n++] = item;
	}
	return 0;
}

static struct flame_items *items_own(const struct flame *f, struct pass_run *run)
{
	struct flame_items *own = run->own;

	if (own)
		return own;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->last = calloc(f->n_streams + 1, sizeof(*own->last));
	run->own = own;
	return own->last ? own : NULL;
}

int flame_items_work(void *ctx, struct pass_run *run)
{
	const struct flame *f = ctx;
	struct flame_items *own = items_own(f, run);
	int ret = own ? 0 : -ENOMEM;

	if (ret)
		return ret;
	own->n = own->n_addresses = 0;
	for (size_t i = 0; i < run->records->n && !ret; i++)
		ret = items_record(f, run->records, i, own);
	return ret ?: items_tails(f, run->records, own);
}
