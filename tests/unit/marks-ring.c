// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's rings as the host reads them: what honest guests write, twenty that are hostile, and one that
 * writes while it is read. The file is a plain one, as a VMM's mem-path is.
 */
#include "record/marks/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "file/wire/hypertrace-ring.h"
#include "base/array.h"
#include "base/clock.h"

#define SIZE	(1u << 20)
#define SLOTS	8
#define AT	4096
#define CLIENTS 2
#define ARGS	4

static char path[64];
static uint8_t *mem;
static struct ring *ring;
static uint64_t now_ns;

/* What was taken. */
static struct {
	uint64_t events, missed, blocks;
	uint64_t last[64]; /* by client */
	bool order, wrong;
	struct ring_block b; /* the last */
	struct ring_event ev;
} got;

static int take(void *ctx, struct ring_block *b, const struct ring_event *v)
{
	got.blocks++;
	got.b = *b;
	got.order &= b->first == got.last[b->client % 64] + 1 && b->from <= b->seen;
	got.last[b->client % 64] = b->first + b->count - 1;
	got.events += b->events;
	got.missed += b->events ? 0 : b->count;
	for (uint32_t i = 0; i < b->events; i++) {
		got.ev = v[i];
		got.wrong |= v[i].arg[0] != b->client || v[i].arg[1] != b->first + i;
	}
	return 0;
}

static struct hypertrace_area *area(void)
{
	return (struct hypertrace_area *)mem;
}

static struct hypertrace_client *client(uint32_t c)
{
	return (struct hypertrace_client *)(mem + sizeof(struct hypertrace_area)) + c;
}

static struct hypertrace_slot *slot(uint32_t c, uint64_t number)
{
	return (struct hypertrace_slot *)(mem + AT +
					  (c * SLOTS + (number - 1) % SLOTS) * hypertrace_slot_size(ARGS));
}

static void set_up(void)
{
	*area() = (struct hypertrace_area){ HYPERTRACE_AREA_MAGIC, CLIENTS, ARGS, SLOTS, AT, 0x1000c, { 0 } };
}

/* As the guest's library does it. */
static void emit(uint32_t c)
{
	uint64_t number = atomic_fetch_add((_Atomic uint64_t *)&client(c)->next, 1) + 1;
	struct hypertrace_slot *s = slot(c, number);

	atomic_store((_Atomic uint64_t *)&s->seq, 0);
	s->time = 1000 + number;
	s->arg[0] = c;
	s->arg[1] = number;
	atomic_store((_Atomic uint64_t *)&s->seq, number);
}

static void look(bool last)
{
	assert_int_equal(ring_look(ring, ++now_ns, last, take, NULL), 0);
}

static int setup(void **state)
{
	int fd;

	strcpy(path, "/tmp/hyptrace-ring-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	close(fd);
	memset(&got, 0, sizeof(got));
	got.order = true;
	now_ns = boot_ns();
	return ring_open(&ring, path);
}

static int teardown(void **state)
{
	ring_close(ring);
	munmap(mem, SIZE);
	return unlink(path);
}

static void test_open(void **state)
{
	struct ring *r;

	assert_int_equal(ring_open(&r, "/no/such/file"), -ENOENT);
	assert_int_equal(ring_open(&r, "/tmp"), -EINVAL);
	assert_int_equal(ring_open(&r, "/dev/null"), -EINVAL);
	ring_close(NULL);
}

/* Set up while it is looked at: all of it counts. */
static void test_late(void **state)
{
	uint64_t before;

	look(false);
	assert_int_equal(ring_doorbell(ring), 0);
	area()->magic = HYPERTRACE_AREA_SETTING;
	look(false);
	before = now_ns;
	set_up();
	for (int i = 0; i < 5; i++)
		emit(1);
	look(false);
	assert_int_equal(ring_doorbell(ring), 0x1000c);
	assert_int_equal(got.events, 5);
	assert_int_equal(got.b.client, 1);
	assert_int_equal(got.b.from, before);
	assert_int_equal(got.b.doorbell, 0x1000c);
	assert_int_equal(got.ev.time, 1005);
	look(true);
	assert_int_equal(got.events, 5);
	assert_true(got.order && !got.wrong);
	assert_null(ring_why(ring));
}

/* What was there at the first look is passed over, but it says how far the client is. */
static void test_before(void **state)
{
	set_up();
	for (int i = 0; i < 5; i++)
		emit(0);
	look(false);
	assert_int_equal(got.events, 0);
	assert_int_equal(got.missed, 5);
	assert_int_equal(got.b.from, 0);
	for (int i = 0; i < 3; i++)
		emit(0);
	look(false);
	assert_int_equal(got.events, 3);
	assert_int_equal(got.b.first, 6);
	assert_int_equal(got.b.from, now_ns - 1);
	assert_true(got.order && !got.wrong);
}

/* More than there are slots: the overwritten are counted. */
static void test_overwritten(void **state)
{
	set_up();
	look(false);
	for (int i = 0; i < 21; i++)
		emit(0);
	look(false);
	assert_int_equal(got.missed, 21 - SLOTS);
	assert_int_equal(got.events, SLOTS);
	assert_true(got.order && !got.wrong);
}

/* An event between its number and its slot is waited for, until its client is half a ring further. */
static void test_open_slot(void **state)
{
	set_up();
	look(false);
	emit(0);
	client(0)->next++;
	emit(0);
	look(false);
	assert_int_equal(got.events, 1);
	look(false);
	assert_int_equal(got.events + got.missed, 1);
	slot(0, 2)->time = 0;
	slot(0, 2)->arg[1] = 2;
	slot(0, 2)->seq = 2;
	look(false);
	assert_int_equal(got.events, 3);
	client(0)->next++; /* its thread is killed */
	for (int i = 0; i < 4; i++)
		emit(0);
	look(false);
	assert_int_equal(got.missed, 1);
	assert_int_equal(got.events, 7);
	client(0)->next++;
	look(true);
	assert_int_equal(got.missed, 2);
	assert_true(got.order && !got.wrong);
}

static int take_no_room(void *ctx, struct ring_block *b, const struct ring_event *v)
{
	return -ENOSPC;
}

static void test_taker_fails(void **state)
{
	set_up();
	look(false);
	emit(0);
	assert_int_equal(ring_look(ring, ++now_ns, false, take_no_room, NULL), -ENOSPC);
}

/* ---- hostile ------------------------------------------------------------------------------- */

static void h_magic(void)
{
	area()->magic = 1234;
}
static void h_no_clients(void)
{
	area()->clients = 0;
}
static void h_huge_clients(void)
{
	area()->clients = UINT32_MAX;
}
static void h_many_clients(void)
{
	area()->clients = HYPERTRACE_CLIENTS_MAX + 1;
}
static void h_no_room_for_clients(void)
{
	area()->clients = HYPERTRACE_CLIENTS_MAX;
}
static void h_no_args(void)
{
	area()->args = 0;
}
static void h_huge_args(void)
{
	area()->args = UINT32_MAX;
}
static void h_no_slots(void)
{
	area()->slots = 0;
}
static void h_huge_slots(void)
{
	area()->slots = UINT32_MAX;
}
static void h_huge_power(void)
{
	area()->slots = 1u << 31;
}
static void h_odd_slots(void)
{
	area()->slots = 7;
}
static void h_rings_in_head(void)
{
	area()->rings_at = 8;
}
static void h_rings_beyond(void)
{
	area()->rings_at = UINT32_MAX;
}
static void h_rings_at_end(void)
{
	area()->rings_at = SIZE - 8;
}
static void h_short(void)
{
	assert_int_equal(truncate(path, 100), 0);
}
static void h_empty(void)
{
	assert_int_equal(truncate(path, 0), 0);
}
static void h_back(void)
{
	client(0)->next = 0;
}
static void h_jump(void)
{
	client(0)->next = UINT64_MAX;
}
static void h_set_up_anew(void)
{
	area()->slots = 4;
}
static void h_rings_cut(void)
{
	assert_int_equal(truncate(path, AT + 8), 0);
	client(0)->next++;
}

/* Before the first look, or (later) after some events. All end with a message, and nothing more is taken. */
static const struct {
	const char *name;
	void (*make)(void);
	bool later;
} hostile[] = {
	{ "magic", h_magic, false },
	{ "no clients", h_no_clients, false },
	{ "2^32-1 clients", h_huge_clients, false },
	{ "65537 clients", h_many_clients, false },
	{ "65536 clients", h_no_room_for_clients, false },
	{ "no arguments", h_no_args, false },
	{ "2^32-1 arguments", h_huge_args, false },
	{ "no slots", h_no_slots, false },
	{ "2^32-1 slots", h_huge_slots, false },
	{ "2^31 slots", h_huge_power, false },
	{ "7 slots", h_odd_slots, false },
	{ "rings in the head", h_rings_in_head, false },
	{ "rings beyond", h_rings_beyond, false },
	{ "rings at the end", h_rings_at_end, false },
	{ "100 bytes", h_short, false },
	{ "no bytes", h_empty, false },
	{ "a client goes back", h_back, true },
	{ "a client jumps by 2^64", h_jump, true },
	{ "another shape", h_set_up_anew, true },
	{ "truncated", h_rings_cut, true },
};

static void test_hostile(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		if (i)
			assert_int_equal(setup(NULL), 0);
		set_up();
		if (hostile[i].later) {
			look(false);
			emit(0);
			look(false);
		}
		hostile[i].make();
		alarm(10);
		look(false);
		look(false);
		look(true);
		alarm(0);
		if (!ring_why(ring) || got.events != hostile[i].later || got.missed || got.wrong)
			fail_msg("%s: %s, %lu events", hostile[i].name, ring_why(ring),
				 (unsigned long)got.events);
		if (i + 1 < ARRAY_SIZE(hostile))
			teardown(NULL);
	}
}

/* Numbers of slots that are none of theirs are never events. */
static void test_wrong_numbers(void **state)
{
	set_up();
	look(false);
	client(0)->next = SLOTS;
	for (uint64_t i = 1; i <= SLOTS; i++)
		slot(0, i)->seq = i % 2 ? UINT64_MAX : i + SLOTS;
	look(false);
	look(true);
	assert_int_equal(got.events, 0);
	assert_int_equal(got.missed, SLOTS);
}

/* All that the memory can hold, at once: one look takes no more than its share. */
static void test_most_clients(void **state)
{
	uint32_t n = HYPERTRACE_CLIENTS_MAX;
	struct timespec from, to;

	assert_int_equal(truncate(path, 16 << 20), 0);
	munmap(mem, SIZE);
	mem = NULL;
	for (int fd = open(path, O_RDWR); !mem; close(fd))
		mem = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*area() = (struct hypertrace_area){ HYPERTRACE_AREA_MAGIC,
					    n,
					    1,
					    1,
					    sizeof(struct hypertrace_area) +
						    n * sizeof(struct hypertrace_client),
					    0,
					    { 0 } };
	look(false);
	for (uint32_t c = 0; c < n; c++)
		client(c)->next = UINT32_MAX;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	look(false);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_int_equal(got.events, 0);
	assert_int_equal(got.missed, (uint64_t)n * UINT32_MAX);
	assert_true(to.tv_sec - from.tv_sec < 10);
	munmap(mem + SIZE, (16 << 20) - SIZE);
}

/* ---- while it is read ------------------------------------------------------------------------ */

#define RACED 300000

static void *emitter(void *arg)
{
	for (int i = 0; i < RACED; i++)
		emit((uint32_t)(uintptr_t)arg);
	return NULL;
}

/* Two threads write into small rings: each event is there once and whole, or counted as missed. */
static void test_race(void **state)
{
	pthread_t t[CLIENTS];

	set_up();
	look(false);
	for (uintptr_t c = 0; c < CLIENTS; c++)
		assert_int_equal(pthread_create(&t[c], NULL, emitter, (void *)c), 0);
	while (client(0)->next < RACED || client(1)->next < RACED)
		look(false);
	for (size_t c = 0; c < CLIENTS; c++)
		pthread_join(t[c], NULL);
	look(true);
	assert_true(got.order);
	assert_false(got.wrong);
	assert_int_equal(got.events + got.missed, CLIENTS * RACED);
	assert_true(got.events >= CLIENTS * SLOTS);
	assert_null(ring_why(ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_slot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_taker_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_most_clients, setup, teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
