// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which event of a ring a doorbell belongs to. It tells the client and the lower 16 bits of the number; the
 * upper ones follow from the times between which the host saw the client come that far.
 */
#include "hypertrace/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hypertrace/rings.h"
#include "util/array.h"

#define HALF 32768 /* of the numbers that a doorbell tells apart */

struct entry_block {
	uint64_t guest_client; /* the guest in the upper half */
	uint64_t from, seen, first, count, doorbell;
	size_t at;  /* of its events in the map; 0: it has none */
	size_t bit; /* of the first in `taken` */
};

/* ---- loading ------------------------------------------------------------------------------- */

static int entries_line(struct entries *e, char *line)
{
	struct entries_vcpu v = { .guest = e->n_guests - 1 };
	struct entries_guest g = { 0 };
	int ret;

	if (sscanf(line, "vcpu\t%d\t%d", &v.cpu, &v.tid) == 2 && e->n_guests) {
		e->guests[v.guest].has_vcpus = true;
		return array_push(&e->vcpus, &e->n_vcpus, &v, sizeof(v));
	}
	if (strncmp(line, "guest\t", 6))
		return -EBADMSG;
	g.name = strdup(line + 6);
	ret = g.name ? array_push(&e->guests, &e->n_guests, &g, sizeof(g)) : -ENOMEM;
	if (ret)
		free(g.name);
	return ret;
}

static int entries_load_guests(struct entries *e, const struct spool *spool)
{
	struct strlist lines = { 0 };
	struct buf text = { 0 };
	int ret = spool_get_text(spool, RINGS_GUESTS, &text);

	ret = ret ?: strlist_add_lines(&lines, text.data, text.len);
	for (size_t i = 0; i < lines.n && !ret; i++)
		ret = entries_line(e, lines.v[i]);
	strlist_release(&lines);
	buf_release(&text);
	return ret;
}

static int entries_map(struct entries *e, const struct spool *spool)
{
	int fd = openat(spool_dirfd(spool), "texts/" RINGS_EVENTS, O_RDONLY | O_CLOEXEC), ret = 0;
	struct stat st = { 0 };
	void *p;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : 0;
	if (!ret && st.st_size) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		ret = p == MAP_FAILED ? -errno : 0;
		if (!ret) {
			e->map = p;
			e->size = (size_t)st.st_size;
		}
	}
	close(fd);
	return ret;
}

static int entry_compare(const void *a, const void *b)
{
	const struct entry_block *x = a, *y = b;

	if (x->guest_client != y->guest_client)
		return x->guest_client < y->guest_client ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* A kill may have cut the last one off. */
static int entries_load_blocks(struct entries *e)
{
	struct cursor c = cursor_at(e->map, e->size);
	const struct ring_block *b;
	size_t bits = 0;

	while ((b = cursor_take(&c, sizeof(*b)))) {
		const uint8_t *events = cursor_take(&c, b->events * sizeof(struct ring_event));
		struct entry_block x = { .guest_client = (uint64_t)b->guest << 32 | b->client,
					 .from = b->from,
					 .seen = b->seen,
					 .first = b->first,
					 .count = b->count,
					 .doorbell = b->doorbell,
					 .bit = bits };

		if (!events)
			break;
		x.at = b->events ? (size_t)(events - e->map) : 0;
		if (b->guest >= e->n_guests || (b->events && b->events != b->count))
			return -EBADMSG;
		if (b->doorbell)
			e->guests[b->guest].doorbell = b->doorbell;
		bits += b->events;
		if (array_push(&e->blocks, &e->n_blocks, &x, sizeof(x)))
			return -ENOMEM;
	}
	array_sort(e->blocks, e->n_blocks, sizeof(*e->blocks), entry_compare);
	e->taken = calloc(bits / 8 + 1, 1);
	return e->taken ? 0 : -ENOMEM;
}

int entries_load(struct entries *e, const struct spool *spool)
{
	*e = (struct entries){ 0 };
	return entries_load_guests(e, spool) ?: entries_map(e, spool) ?: entries_load_blocks(e);
}

void entries_release(struct entries *e)
{
	for (size_t i = 0; i < e->n_guests; i++)
		free(e->guests[i].name);
	free(e->guests);
	free(e->vcpus);
	free(e->blocks);
	free(e->taken);
	if (e->map)
		munmap((void *)(uintptr_t)e->map, e->size);
	*e = (struct entries){ 0 };
}

/* ---- finding ------------------------------------------------------------------------------- */

/* By guest and client, then by the number at `offset`, which never falls within these. */
struct entry_key {
	uint64_t guest_client, value;
	size_t offset;
};

static bool entry_not_after(const void *entry, const void *key)
{
	const struct entry_block *x = entry;
	const struct entry_key *k = key;
	uint64_t v;

	if (x->guest_client != k->guest_client)
		return x->guest_client < k->guest_client;
	memcpy(&v, (const uint8_t *)x + k->offset, sizeof(v));
	return v <= k->value;
}

/* The client's last block whose number at `offset` is at most value, or NULL. */
static const struct entry_block *entry_last(const struct entries *e, uint64_t guest_client, size_t offset,
					    uint64_t value)
{
	struct entry_key k = { guest_client, value, offset };
	size_t i = array_lower_bound(e->blocks, e->n_blocks, sizeof(*e->blocks), entry_not_after, &k);

	return i && e->blocks[i - 1].guest_client == guest_client ? &e->blocks[i - 1] : NULL;
}

/* Whose thread it is; one that is no known vCPU's is of the guest without any. false: nobody's. */
static bool entries_guest_of(const struct entries *e, int tid, size_t *guest, int *vcpu)
{
	for (size_t i = 0; i < e->n_vcpus; i++) {
		*guest = e->vcpus[i].guest;
		*vcpu = e->vcpus[i].cpu;
		if (e->vcpus[i].tid == tid)
			return true;
	}
	*vcpu = -1;
	for (*guest = 0; *guest < e->n_guests; (*guest)++)
		if (!e->guests[*guest].has_vcpus)
			return true;
	return false;
}

static bool entry_take(struct entries *e, const struct entry_block *x, uint64_t number, struct ring_event *ev)
{
	size_t i = (size_t)(number - x->first), bit = x->bit + i;

	if (number - x->first >= x->count || !x->at || e->taken[bit / 8] & 1 << bit % 8)
		return false;
	e->taken[bit / 8] |= (uint8_t)(1 << bit % 8);
	memcpy(ev, e->map + x->at + i * sizeof(*ev), sizeof(*ev));
	return true;
}

/*
 * At that time the client had come as far as `low` for certain, and no further than `high`. Where these are
 * too far apart for 16 bits it is not known which event it is.
 */
static bool entry_number(const struct entry_block *seen, const struct entry_block *newest, uint32_t value,
			 uint64_t *number)
{
	uint64_t high = newest->first + newest->count - 1, low = seen ? seen->first + seen->count - 1 : 0;

	*number = high - ((high - value) & 0xffff);
	return high - low<HALF && * number <= high && * number + HALF> low;
}

enum entry_found entries_find(struct entries *e, const struct entry_bell *b, size_t *guest, int *vcpu,
			      uint32_t *client, struct ring_event *ev)
{
	const struct entry_block *newest, *x;
	uint64_t key, number;
	bool found = false;

	*client = b->value >> 16;
	if (!entries_guest_of(e, b->tid, guest, vcpu))
		return ENTRY_NO_BELL;
	key = (uint64_t)*guest << 32 | *client;
	newest = entry_last(e, key, offsetof(struct entry_block, from), b->ts);
	if (b->gpa != (newest && newest->doorbell ? newest->doorbell : e->guests[*guest].doorbell))
		return ENTRY_NO_BELL;
	if (newest && entry_number(entry_last(e, key, offsetof(struct entry_block, seen), b->ts), newest,
				   b->value, &number)) {
		x = entry_last(e, key, offsetof(struct entry_block, first), number);
		found = x && entry_take(e, x, number, ev);
	}
	e->guests[*guest].joined += found;
	e->guests[*guest].orphans += !found;
	return found ? ENTRY_JOINED : ENTRY_MISSING;
}

void entries_left(const struct entries *e, size_t guest, uint64_t from, uint64_t to, uint64_t *alone,
		  uint64_t *missed)
{
	*alone = *missed = 0;
	for (size_t i = 0; i < e->n_blocks; i++) {
		const struct entry_block *x = &e->blocks[i];

		if (x->guest_client >> 32 != guest || x->from < from || (to && x->seen > to))
			continue;
		*missed += x->at ? 0 : x->count;
		for (size_t k = x->bit; x->at && k < x->bit + x->count; k++)
			*alone += !(e->taken[k / 8] & 1 << k % 8);
	}
}
