// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads a guest's rings. A slot is valid if its number is right and it was not overwritten. */
#include "record/marks/ring.h"

#include <stdatomic.h>

#include "file/wire/hypertrace-ring.h"
#include "base/clock.h"
#include "base/files.h"

#define RING_ARGS_MAX 32	  /* the guest's library has that limit */
#define CHUNK	      16384	  /* bytes of slots read at once */
#define LOOK_MAX      (64u << 20) /* bytes of slots read in one look */
#define JUMP_MAX      UINT32_MAX  /* no guest has so many events between two looks */

struct ring_place {
	uint64_t last; /* number of the last event that was taken, or passed over */
	uint64_t from; /* a time at which there was none after it */
};

struct ring {
	int fd;
	struct hypertrace_area area; /* checked; clients 0: not set up yet */
	struct ring_place *places;   /* by client */
	uint64_t before;	     /* the look before this one; 0: none */
	uint32_t turn;		     /* the client to begin with */
	bool given_up;
	const char *why;
	/* of one look */
	uint8_t *head; /* area and clients */
	uint64_t left; /* bytes, of LOOK_MAX */
	uint64_t now;
	bool last;
	ring_take *take;
	void *ctx;
	uint8_t chunk[CHUNK];
	struct ring_event events[CHUNK / sizeof(struct hypertrace_slot)];
};

static int ring_give_up(struct ring *r, const char *why)
{
	r->why = why;
	r->given_up = true;
	return -EBADMSG;
}

static int ring_read(struct ring *r, void *to, size_t len, uint64_t at)
{
	ssize_t n = pread(r->fd, to, len, (off_t)at);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : ring_give_up(r, "the file is shorter than what it should hold");
}

static const char *ring_wrong(const struct hypertrace_area *a, uint64_t size)
{
	uint64_t slot = hypertrace_slot_size(a->args), heads;

	if (a->magic != HYPERTRACE_AREA_MAGIC)
		return "it is not hypertrace's";
	if (!a->clients || a->clients > HYPERTRACE_CLIENTS_MAX)
		return "its number of clients makes no sense";
	if (!a->args || a->args > RING_ARGS_MAX)
		return "its number of arguments makes no sense";
	heads = sizeof(*a) + (uint64_t)a->clients * sizeof(struct hypertrace_client);
	if (!a->slots || a->slots & (a->slots - 1) || a->rings_at < heads || a->rings_at > size ||
	    slot * a->clients > (size - a->rings_at) / a->slots)
		return "its rings do not lie in the memory";
	return NULL;
}

/* clients stays 0 until the guest has set it up. */
static int ring_set_up(struct ring *r)
{
	struct hypertrace_area a;
	struct stat st;
	int ret = fstat(r->fd, &st) ? -errno : ring_read(r, &a, sizeof(a), 0);

	if (ret || !a.magic || a.magic == HYPERTRACE_AREA_SETTING)
		return ret;
	r->why = ring_wrong(&a, (uint64_t)st.st_size);
	if (r->why)
		return ring_give_up(r, r->why);
	r->places = calloc(a.clients, sizeof(*r->places));
	r->head = malloc(sizeof(a) + a.clients * sizeof(struct hypertrace_client));
	if (!r->places || !r->head)
		return -ENOMEM;
	for (uint32_t c = 0; c < a.clients; c++)
		r->places[c].from = r->before;
	r->area = a;
	return 0;
}

/* The shape holds as it was checked; only the doorbell may move: the guest was rebooted. */
static int ring_read_head(struct ring *r)
{
	size_t len = sizeof(r->area) + r->area.clients * sizeof(struct hypertrace_client);
	struct hypertrace_area a;
	int ret = ring_read(r, r->head, len, 0);

	if (ret)
		return ret;
	memcpy(&a, r->head, sizeof(a));
	if (memcmp(&a, &r->area, offsetof(struct hypertrace_area, doorbell)))
		return ring_give_up(r, "it was set up anew");
	r->area.doorbell = a.doorbell;
	return 0;
}

enum slot { SLOT_GOOD, SLOT_GONE, SLOT_OPEN };

/*
 * next: of the client, read after the slot. An open one is waited for, as its event may be between its number
 * and its doorbell; but not for ever: its thread may have been killed there.
 */
static enum slot ring_slot(const struct ring *r, const uint8_t *slot, uint64_t number, uint64_t next)
{
	uint64_t behind = next - number, slots = r->area.slots, seq;

	memcpy(&seq, slot, sizeof(seq));
	if (behind >= slots)
		return SLOT_GONE;
	if (seq == number)
		return SLOT_GOOD;
	return r->last || behind >= slots / 2 ? SLOT_GONE : SLOT_OPEN;
}

static int ring_give(struct ring *r, uint32_t client, uint64_t count, bool events)
{
	struct ring_place *p = &r->places[client];
	struct ring_block b = { .from = p->from,
				.seen = boot_ns(),
				.first = p->last + 1,
				.count = count,
				.doorbell = r->area.doorbell,
				.client = client,
				.events = events ? (uint32_t)count : 0 };

	p->last += count;
	return r->take(r->ctx, &b, r->events);
}

static void ring_copy_event(struct ring *r, size_t i, const uint8_t *slot)
{
	size_t args = r->area.args < RING_ARGS ? r->area.args : RING_ARGS;

	r->events[i] = (struct ring_event){ 0 };
	memcpy(&r->events[i].time, slot + offsetof(struct hypertrace_slot, time), sizeof(uint64_t));
	memcpy(r->events[i].arg, slot + sizeof(struct hypertrace_slot), args * sizeof(uint64_t));
}

/* Up to `most` slots of a client, as many of them as are alike. 1: some were taken; 0: wait; -errno. */
static int ring_take_some(struct ring *r, uint32_t client, uint64_t most)
{
	uint64_t number = r->places[client].last + 1, at = (number - 1) & (r->area.slots - 1), next;
	size_t size = hypertrace_slot_size(r->area.args), n = CHUNK / size, i = 0;
	enum slot kind;
	int ret;

	n = n < most ? n : most;
	n = n < r->area.slots - at ? n : r->area.slots - at;
	ret = ring_read(r, r->chunk, n * size,
			r->area.rings_at + ((uint64_t)client * r->area.slots + at) * size);
	atomic_thread_fence(memory_order_seq_cst);
	ret = ret
		      ?: ring_read(r, &next, sizeof(next),
				   sizeof(r->area) + client * sizeof(struct hypertrace_client));
	if (ret)
		return ret;
	r->left -= n * size < r->left ? n * size : r->left;
	kind = ring_slot(r, r->chunk, number, next);
	if (kind == SLOT_OPEN)
		return 0;
	for (; i < n && ring_slot(r, r->chunk + i * size, number + i, next) == kind; i++)
		ring_copy_event(r, i, r->chunk + i * size);
	return ring_give(r, client, i, kind == SLOT_GOOD) ?: 1;
}

static int ring_take_client(struct ring *r, uint32_t client, uint64_t next)
{
	struct ring_place *p = &r->places[client];
	int ret = 1;

	if (!r->before && next) {
		ret = ring_give(r, client, next, false) ?: 1; /* its earlier number, from 0 on */
	} else if (next < p->last || next - p->last > JUMP_MAX) {
		r->why = "a client's count of events jumps: it is followed from there";
		p->last = next;
	} else if (next - p->last > r->area.slots) {
		ret = ring_give(r, client, next - p->last - r->area.slots, false) ?: 1;
	}
	while (ret == 1 && p->last < next && r->left)
		ret = ring_take_some(r, client, next - p->last);
	if (p->last == next)
		p->from = r->now;
	return ret < 0 ? ret : 0;
}

int ring_look(struct ring *r, uint64_t now, bool last, ring_take *take, void *ctx)
{
	int ret = r->given_up || r->area.clients ? 0 : ring_set_up(r);

	r->now = now;
	r->last = last;
	r->take = take;
	r->ctx = ctx;
	if (!ret && r->area.clients && !r->given_up) {
		r->left = LOOK_MAX;
		ret = ring_read_head(r);
		for (uint32_t i = 0; i < r->area.clients && !ret && r->left; i++) {
			struct hypertrace_client c;

			memcpy(&c, r->head + sizeof(r->area) + r->turn * sizeof(c), sizeof(c));
			ret = ring_take_client(r, r->turn, c.next);
			r->turn = (r->turn + 1) % r->area.clients;
		}
	}
	r->before = now;
	return ret == -EBADMSG && r->given_up ? 0 : ret;
}

uint64_t ring_newest(struct ring *r, uint32_t client)
{
	uint64_t next;

	if ((!r->area.clients && ring_set_up(r)) || client >= r->area.clients ||
	    ring_read(r, &next, sizeof(next), sizeof(r->area) + client * sizeof(struct hypertrace_client)))
		return 0;
	return next;
}

bool ring_find(struct ring *r, uint32_t client, uint64_t number, struct ring_event *ev)
{
	size_t size = hypertrace_slot_size(r->area.args);
	uint64_t at = (number - 1) & (r->area.slots - 1), seq;

	if (!number || client >= r->area.clients ||
	    ring_read(r, r->chunk, size, r->area.rings_at + ((uint64_t)client * r->area.slots + at) * size))
		return false;
	memcpy(&seq, r->chunk, sizeof(seq));
	ring_copy_event(r, 0, r->chunk);
	*ev = r->events[0];
	return seq == number;
}

const char *ring_why(const struct ring *r)
{
	return r->why;
}

uint64_t ring_doorbell(const struct ring *r)
{
	return r->area.doorbell;
}

int ring_open(struct ring **out, const char *path)
{
	struct ring *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fd = open_regular(path);
	if (r->fd < 0) {
		int ret = r->fd;

		free(r);
		return ret;
	}
	*out = r;
	return 0;
}

void ring_close(struct ring *r)
{
	if (!r)
		return;
	fd_close(&r->fd);
	free(r->places);
	free(r->head);
	free(r);
}
