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

#define DEVICES	  "/sys/bus/pci/devices"
#define PATH_SIZE 300
#define PAGE	  4096

static struct {
	struct area area;
	uint64_t size;		     /* bytes of its memory */
	volatile uint32_t *doorbell; /* in page */
	uint8_t *page;
} mem;

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

static void ivshmem_close(void)
{
	if (mem.page)
		munmap(mem.page, PAGE);
	if (mem.area.at)
		munmap(mem.area.at, mem.size);
	memset(&mem, 0, sizeof(mem));
}

static void ivshmem_rest(void)
{
	sched_yield();
}

static int ivshmem_open(const char *at)
{
	char dir[PATH_SIZE];
	uint64_t page = PAGE, bar;
	void *area = NULL, *registers = NULL;
	int ret = at ? snprintf(dir, sizeof(dir), "%s", at) >= (int)sizeof(dir) ? -ENAMETOOLONG : 0
		     : device_find(dir);

	ret = ret ?: device_map(dir, "resource2", &mem.size, &area);
	mem.area.at = area;
	ret = ret ?: device_map(dir, "resource0", &page, &registers);
	mem.page = registers;
	/* its first line: BAR 0 as the host's kvm_mmio shows it; 0: not known */
	bar = ret ? 0 : device_number(dir, "resource");
	if (!ret)
		ret = area_open(&mem.area, mem.size, bar ? bar + HYPERTRACE_IVSHMEM_DOORBELL : 0,
				ivshmem_rest);
	if (ret) {
		ivshmem_close();
		return ret;
	}
	hypertrace_shape = (struct hypertrace_shape){ mem.area.clients, mem.area.args };
	mem.doorbell = (volatile uint32_t *)(mem.page + bar % PAGE + HYPERTRACE_IVSHMEM_DOORBELL);
	return 0;
}

/* Earlier writes are visible to the host when it sees the doorbell. */
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
	struct timespec t;
	uint32_t bell;

	clock_gettime(CLOCK_BOOTTIME, &t);
	bell = area_put(&mem.area, client, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec, arg);
	memory_before_device();
	*mem.doorbell = bell;
}

const struct hypertrace_way hypertrace_ivshmem = {
	.name = "ivshmem",
	.open = ivshmem_open,
	.close = ivshmem_close,
	.emit = ivshmem_emit,
};
