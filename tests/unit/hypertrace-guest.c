// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's library of hypertrace marks. Its device is a fake one here: a directory
 * with the BARs as plain files of the same sizes, as a guest finds them in sysfs. What a real doorbell
 * does is seen in the lab.
 */
#include "base/array.h"
#include "base/buf.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../agent/hypertrace/qemu-hypertrace.h"
#include "base/decode/mark-lines.h"
#include "file/wire/hypertrace-ring.h"

#define SIZE (1u << 20)

static char dir[64], way[96];
static struct hypertrace_area *area;
static uint32_t *registers;

static void *map_file(const char *name, size_t size)
{
	char path[128];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

static int setup(void **state)
{
	unsetenv("HYPERTRACE");
	strcpy(dir, "/tmp/hyptrace-device-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(way, sizeof(way), "ivshmem:%s", dir);
	registers = map_file("resource0", 256);
	area = map_file("resource2", SIZE);
	return 0;
}

static int teardown(void **state)
{
	static const char *const files[] = { "resource", "resource0", "resource2", "marker" };
	char path[128];

	hypertrace_fini();
	munmap(registers, 256);
	munmap(area, SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static const struct hypertrace_client *client_of(uint32_t c)
{
	return (const struct hypertrace_client *)(area + 1) + c;
}

static const struct hypertrace_slot *slot_of(uint32_t c, uint64_t seq)
{
	uint64_t n = (uint64_t)c * area->slots + (seq - 1) % area->slots;

	return (const void *)((const uint8_t *)area + area->rings_at + n * hypertrace_slot_size(area->args));
}

/* The original's example: its calls, its numbers. */
static void emit_as_the_original(const char *base)
{
	uint64_t client = 0, *data;

	assert_int_equal(qemu_hypertrace_init(base), 0);
	data = qemu_hypertrace_data(client);
	data[0] = 0xcafe;
	data[1] = 0xdead;
	data[2] = 0xbeef;
	qemu_hypertrace(client, 1);
	qemu_hypertrace(client, 0);
}

/* Where the doorbell is for the guest's CPUs: the host's filter. Another program joins after a reboot. */
static void test_doorbell_address(void **state)
{
	char path[128];
	FILE *f;

	assert_int_equal(hypertrace_init(way), 0);
	assert_true(area->doorbell == 0); /* sysfs does not say */
	hypertrace_fini();
	snprintf(path, sizeof(path), "%s/resource", dir);
	f = fopen(path, "w");
	fputs("0x0000000010041000 0x00000000100410ff 0x0000000000040200\n"
	      "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
	      f);
	fclose(f);
	assert_int_equal(hypertrace_init(way), 0);
	assert_true(area->doorbell == 0x1004100c);
}

static void test_rings(void **state)
{
	const struct hypertrace_slot *s;

	emit_as_the_original(way);
	assert_string_equal(hypertrace_where(), "ivshmem");
	assert_int_equal(qemu_hypertrace_max_clients(), 16);
	assert_int_equal(qemu_hypertrace_num_args(), 4);
	assert_true(area->magic == HYPERTRACE_AREA_MAGIC);
	assert_int_equal(area->rings_at, 4096);
	assert_int_equal(area->slots, 1024); /* 16 * 1024 * 48 bytes; twice as many do not fit */
	assert_int_equal(client_of(0)->next, 2);
	for (uint64_t seq = 1; seq <= 2; seq++) {
		s = slot_of(0, seq);
		assert_int_equal(s->seq, seq);
		assert_true(s->time > 0);
		assert_int_equal(s->arg[0], 2 - seq);
		assert_int_equal(s->arg[1], 0xcafe);
		assert_int_equal(s->arg[2], 0xdead);
		assert_int_equal(s->arg[3], 0xbeef);
	}
	assert_true(slot_of(0, 2)->time >= slot_of(0, 1)->time);
	assert_int_equal(registers[3], 2);
	hypertrace_emit(5, 7);
	assert_int_equal(registers[3], 5 << 16 | 1);
	assert_int_equal(registers[0] | registers[1] | registers[2] | registers[4], 0);
}

/* Another program of the same guest goes on where the first is. */
static void test_programs(void **state)
{
	int status;
	pid_t pid;

	emit_as_the_original(way);
	assert_int_equal(hypertrace_fini(), 0);
	pid = fork();
	if (!pid) {
		int ret = hypertrace_init(way);

		hypertrace_emit(0, 3);
		_exit(ret ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(client_of(0)->next, 3);
	assert_int_equal(slot_of(0, 3)->seq, 3);
	assert_int_equal(slot_of(0, 3)->arg[0], 3);
	assert_int_equal(slot_of(0, 1)->arg[1], 0xcafe);
}

#define EACH	20000
#define THREADS 4

static void *emit_many(void *arg)
{
	uint64_t own = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 1; i <= EACH; i++) {
		hypertrace_emit(own, i);
		hypertrace_emit(0, own);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t t[THREADS];

	assert_int_equal(hypertrace_init(way), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, emit_many, (void *)(i + 1)), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(client_of(0)->next, THREADS * EACH);
	for (uint32_t c = 1; c <= THREADS; c++) {
		assert_int_equal(client_of(c)->next, EACH);
		for (uint64_t seq = EACH - area->slots + 1; seq <= EACH; seq++) {
			assert_int_equal(slot_of(c, seq)->seq, seq);
			assert_int_equal(slot_of(c, seq)->arg[0], seq);
		}
	}
}

static void test_marker(void **state)
{
	char path[128], base[160];
	struct mark_event e;
	struct buf b = { 0 };

	snprintf(path, sizeof(path), "%s/marker", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(base, sizeof(base), "marker:%s", path);
	emit_as_the_original(base);
	assert_string_equal(hypertrace_where(), "marker");
	assert_int_equal(read_file(path, 4096, &b), 0);
	assert_string_equal(buf_str(&b),
			    "guest_hypertrace client=0 arg1=0x1 arg2=0xcafe arg3=0xdead arg4=0xbeef\n"
			    "guest_hypertrace client=0 arg1=0x0 arg2=0xcafe arg3=0xdead arg4=0xbeef\n");
	assert_true(mark_event_parse(buf_str(&b), strcspn(buf_str(&b), "\n"), &e));
	assert_int_equal(e.n_args, 4);
	assert_int_equal(e.arg[3], 0xbeef);
	buf_release(&b);
}

static void test_choice(void **state)
{
	assert_null(hypertrace_data(0)); /* and no crash: */
	hypertrace_emit(0, 1);
	setenv("HYPERTRACE", "none", 1);
	assert_int_equal(hypertrace_init(way), 0);
	assert_string_equal(hypertrace_where(), "none");
	hypertrace_emit(0, 1);
	assert_int_equal(hypertrace_init(way), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(hypertrace_fini(), 0);
	assert_int_equal(hypertrace_fini(), -1);
	setenv("HYPERTRACE", "telepathy", 1);
	assert_int_equal(hypertrace_init(NULL), -1);
	assert_int_equal(errno, EINVAL);
	setenv("HYPERTRACE", way, 1);
	assert_int_equal(hypertrace_init("/tmp/hypertrace"), 0); /* the original's path for qemu-user */
	assert_string_equal(hypertrace_where(), "ivshmem");
	assert_null(hypertrace_data(16));
	hypertrace_emit(16, 1);
	assert_int_equal(registers[3], 0);
}

/* The memory is the host's too: what it says is checked before it is believed. */
static void test_foreign_memory(void **state)
{
	static const struct {
		uint64_t magic;
		uint32_t clients, args, slots, rings_at;
	} bad[] = {
		{ HYPERTRACE_AREA_SETTING, 16, 4, 1024, 4096 },
		{ 77, 16, 4, 1024, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 0, 4, 1024, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 70000, 4, 1, 4485120 },
		{ HYPERTRACE_AREA_MAGIC, 16, 0, 1024, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 16, 33, 2, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 16, 4, 0, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 16, 4, 1000, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 16, 4, 2048, 4096 },
		{ HYPERTRACE_AREA_MAGIC, 16, 4, 1024, 0 },
		{ HYPERTRACE_AREA_MAGIC, 16, 4, 1u << 31, 4096 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		*area = (struct hypertrace_area){ .magic = bad[i].magic,
						  .clients = bad[i].clients,
						  .args = bad[i].args,
						  .slots = bad[i].slots,
						  .rings_at = bad[i].rings_at };
		assert_int_equal(hypertrace_init(way), -1);
		assert_int_equal(errno, EBADMSG);
	}
}

static void test_small_memory(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/resource2", dir);
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(hypertrace_init(way), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(truncate(path, 32), 0);
	assert_int_equal(hypertrace_init(way), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(truncate(path, SIZE), 0);
	assert_int_equal(hypertrace_init(way), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_rings),	T(test_doorbell_address), T(test_programs),	  T(test_threads),
		T(test_marker), T(test_choice),		  T(test_foreign_memory), T(test_small_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
