// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events in rings of shared memory, each announced by a write to the device's doorbell. */
#include "guest-priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wire/hypertrace-ring.h"

#define DEVICES	      "/sys/bus/pci/devices"
#define PATH_SIZE     300
#define PAGE	      4096
#define SETTING_TRIES 100000 /* of another program that sets the memory up */

static struct {
	struct hypertrace_area *area;
	struct hypertrace_client *clients;
	uint8_t *rings;
	uint64_t size; /* bytes of area */
	uint32_t slots;
	volatile uint32_t *doorbell; /* in page */
	uint8_t *page;
} mem;

/* ---- the device ----------------------------------------------------------------------------- */

static uint64_t device_number(const char *dir, const char *file)
{
	char path[PATH_SIZE], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return strtoull(text, NULL, 0);
}

static int device_find(char dir[PATH_SIZE])
{
	DIR *d = opendir(DEVICES);
	int ret = -ENODEV;

	if (!d)
		return -errno;
	for (struct dirent *e; ret && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(dir, PATH_SIZE, DEVICES "/%s", e->d_name);
		if (device_number(dir, "vendor") == HYPERTRACE_IVSHMEM_VENDOR &&
		    device_number(dir, "device") == HYPERTRACE_IVSHMEM_DEVICE)
			ret = 0;
	}
	closedir(d);
	return ret;
}

/*
 * A BAR of the device; size: of the mapping, 0: all of it, which is put there. That of BAR 0's 256 bytes is
 * the page which they lie in.
 */
static int device_map(const char *dir, const char *file, uint64_t *size, void **out)
{
	char path[PATH_SIZE + 16];
	struct stat st;
	void *p;
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!*size)
		*size = (uint64_t)st.st_size;
	if (!ret && (uint64_t)st.st_size <= HYPERTRACE_IVSHMEM_DOORBELL)
		ret = -EINVAL;
	if (!ret) {
		p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		ret = p == MAP_FAILED ? -errno : 0;
		if (!ret)
			*out = p;
	}
	close(fd);
	return ret;
}

/* ---- the memory ------------------------------------------------------------------------------ */

static uint32_t rings_at(uint32_t clients)
{
	uint64_t end = sizeof(struct hypertrace_area) + (uint64_t)clients * sizeof(struct hypertrace_client);

	return (uint32_t)((end + PAGE - 1) / PAGE * PAGE);
}

/* As many slots as there is room for. */
static uint32_t slots_of(uint64_t size, uint32_t clients, uint32_t args)
{
	uint64_t from = rings_at(clients), each, slots = 1;

	if (size <= from)
		return 0;
	each = (size - from) / clients / hypertrace_slot_size(args);
	while (slots * 2 <= each && slots < 1u << 20)
		slots *= 2;
	return each ? (uint32_t)slots : 0;
}

static int area_set_up(struct hypertrace_area *a, uint64_t size)
{
	mem.slots = slots_of(size, hypertrace_shape.clients, hypertrace_shape.args);
	if (!mem.slots) {
		__atomic_store_n(&a->magic, 0, __ATOMIC_RELEASE);
		return -ENOSPC;
	}
	a->clients = hypertrace_shape.clients;
	a->args = hypertrace_shape.args;
	a->slots = mem.slots;
	a->rings_at = rings_at(a->clients);
	/* not memset(): it may use what faults on a device's memory, as this is mapped (arm64: dc zva) */
	for (uint64_t i = sizeof(*a) / sizeof(uint64_t); i < size / sizeof(uint64_t); i++)
		((volatile uint64_t *)a)[i] = 0;
	__atomic_store_n(&a->magic, HYPERTRACE_AREA_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Set up by another program of this guest, maybe just now. The host may write there too: read once. */
static int area_join(const struct hypertrace_area *a, uint64_t size)
{
	uint64_t magic = HYPERTRACE_AREA_SETTING;
	struct hypertrace_area h;

	for (int i = 0; i < SETTING_TRIES && magic == HYPERTRACE_AREA_SETTING; i++) {
		magic = __atomic_load_n(&a->magic, __ATOMIC_ACQUIRE);
		if (magic == HYPERTRACE_AREA_SETTING)
			sched_yield();
	}
	memcpy(&h, a, sizeof(h));
	if (magic != HYPERTRACE_AREA_MAGIC || !h.clients || h.clients > HYPERTRACE_CLIENTS_MAX || !h.args ||
	    h.args > HYPERTRACE_ARGS_LIMIT || h.rings_at != rings_at(h.clients) || !h.slots ||
	    h.slots & (h.slots - 1) || h.slots > slots_of(size, h.clients, h.args))
		return -EBADMSG;
	hypertrace_shape = (struct hypertrace_shape){ h.clients, h.args };
	mem.slots = h.slots;
	return 0;
}

static int area_open(struct hypertrace_area *a, uint64_t size)
{
	uint64_t nobody = 0;

	if (__atomic_compare_exchange_n(&a->magic, &nobody, HYPERTRACE_AREA_SETTING, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return area_set_up(a, size);
	return area_join(a, size);
}

/* ---- the way --------------------------------------------------------------------------------- */

static void ivshmem_close(void)
{
	if (mem.page)
		munmap(mem.page, PAGE);
	if (mem.area)
		munmap(mem.area, mem.size);
	memset(&mem, 0, sizeof(mem));
}

static int ivshmem_open(const char *at)
{
	char dir[PATH_SIZE];
	uint64_t page = PAGE, bar;
	void *area = NULL, *registers = NULL;
	int ret = at ? snprintf(dir, sizeof(dir), "%s", at) >= (int)sizeof(dir) ? -ENAMETOOLONG : 0
		     : device_find(dir);

	if (!ret)
		ret = device_map(dir, "resource2", &mem.size, &area);
	mem.area = area;
	if (!ret && mem.size < sizeof(*mem.area))
		ret = -ENOSPC;
	if (!ret)
		ret = device_map(dir, "resource0", &page, &registers);
	mem.page = registers;
	if (!ret)
		ret = area_open(mem.area, mem.size);
	if (ret) {
		ivshmem_close();
		return ret;
	}
	bar = device_number(
		dir, "resource"); /* its first line: BAR 0 as the host's kvm_mmio shows it; 0: not known */
	__atomic_store_n(&mem.area->doorbell, bar ? bar + HYPERTRACE_IVSHMEM_DOORBELL : 0, __ATOMIC_RELAXED);
	mem.clients = (struct hypertrace_client *)(mem.area + 1);
	mem.rings = (uint8_t *)mem.area + rings_at(hypertrace_shape.clients);
	mem.doorbell = (volatile uint32_t *)(mem.page + bar % PAGE + HYPERTRACE_IVSHMEM_DOORBELL);
	return 0;
}

/* What was written before is there for the host when it sees the doorbell. */
static inline void memory_before_device(void)
{
#if defined(__aarch64__)
	asm volatile("dsb st" : : : "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void ivshmem_emit(uint32_t client, const uint64_t *arg)
{
	uint64_t seq = __atomic_add_fetch(&mem.clients[client].next, 1, __ATOMIC_RELAXED);
	uint64_t at = ((uint64_t)client * mem.slots + ((seq - 1) & (mem.slots - 1))) *
		      hypertrace_slot_size(hypertrace_shape.args);
	struct hypertrace_slot *s = (struct hypertrace_slot *)(mem.rings + at);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	s->time = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	for (uint32_t i = 0; i < hypertrace_shape.args; i++)
		s->arg[i] = arg[i];
	__atomic_store_n(&s->seq, seq, __ATOMIC_RELEASE);
	memory_before_device();
	*mem.doorbell = hypertrace_doorbell(client, seq);
}

const struct hypertrace_way hypertrace_ivshmem = {
	.name = "ivshmem",
	.open = ivshmem_open,
	.close = ivshmem_close,
	.emit = ivshmem_emit,
};
