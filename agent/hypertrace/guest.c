// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events of a guest's programs: the ways out of the guest, the choice of one, and the calls. */
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

#include "area.h"
#include "hypertrace-guest.h"

/* A way out of the guest. */
struct hypertrace_way {
	const char *name;
	/* at: what follows the name's colon, or NULL. 0 or -errno. */
	int (*open)(const char *at);
	void (*close)(void);
	/* arg: hypertrace_num_args() of them. From any thread. */
	void (*emit)(uint32_t client, const uint64_t *arg);
};

/* Limits of the chosen way, set by its open(); defaults before. */
static struct hypertrace_shape {
	uint32_t clients, args;
} hypertrace_shape = { HYPERTRACE_CLIENTS, HYPERTRACE_ARGS };

/* ---- ivshmem: rings in shared memory, each event announced by a write to the device's doorbell ---- */

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

static const struct hypertrace_way hypertrace_ivshmem = {
	.name = "ivshmem",
	.open = ivshmem_open,
	.close = ivshmem_close,
	.emit = ivshmem_emit,
};

/* ---- marker: lines of trace_marker, as QEMU's ftrace back end would write them ----------------- */

#define LINE_MAX (64 + HYPERTRACE_ARGS_LIMIT * 32)

static int marker_fd = -1;

static int marker_open(const char *at)
{
	static const char *const files[] = { "/sys/kernel/tracing/trace_marker",
					     "/sys/kernel/debug/tracing/trace_marker" };
	const int flags = O_WRONLY | O_APPEND | O_CLOEXEC;
	int ret;

	marker_fd = open(at ? at : files[0], flags);
	ret = marker_fd < 0 ? -errno : 0;
	if (ret && !at) {
		marker_fd = open(files[1], flags);
		ret = marker_fd < 0 ? ret : 0;
	}
	return ret;
}

static void marker_close(void)
{
	close(marker_fd);
	marker_fd = -1;
}

/* One write is one event; a trace that is off refuses it, which is not an error. */
static void marker_emit(uint32_t client, const uint64_t *arg)
{
	char line[LINE_MAX];
	int len = snprintf(line, sizeof(line), "guest_hypertrace client=%u", client);

	for (uint32_t i = 0; i < hypertrace_shape.args; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " arg%u=0x%llx", i + 1,
				(unsigned long long)arg[i]);
	line[len++] = '\n';
	if (write(marker_fd, line, (size_t)len) < 0)
		return;
}

static const struct hypertrace_way hypertrace_marker = {
	.name = "marker",
	.open = marker_open,
	.close = marker_close,
	.emit = marker_emit,
};

/*
 * ---- vmcall: hypercalls of x86. KVM's kvm_hypercall event has all five numbers, and is there
 * before KVM refuses the call to a program (arch/x86/kvm/x86.c, ____kvm_emulate_hypercall()).
 */
#if defined(__x86_64__)
#include <cpuid.h>

#define HYPERTRACE_VMCALL 0x68797074 /* "hypt": no number of KVM's (include/uapi/linux/kvm_para.h) */

static int amd;

/* Without KVM below the instruction would end the program. */
static int vmcall_open(const char *at)
{
	unsigned int eax, ebx, ecx, edx, text[3];

	(void)at;
	__cpuid(1, eax, ebx, ecx, edx);
	if (!(ecx >> 31))
		return -ENODEV;
	__cpuid(0x40000000, eax, text[0], text[1], text[2]);
	if (memcmp(text, "KVMKVMKVM\0\0", sizeof(text)))
		return -ENODEV;
	__cpuid(0, eax, text[0], text[2], text[1]);
	amd = !memcmp(text, "AuthenticAMD", sizeof(text)) || !memcmp(text, "HygonGenuine", sizeof(text));
	return 0;
}

static void vmcall_emit(uint32_t client, const uint64_t *arg)
{
	uint64_t nr = HYPERTRACE_VMCALL, a2 = hypertrace_shape.args > 1 ? arg[1] : 0,
		 a3 = hypertrace_shape.args > 2 ? arg[2] : 0;

	if (amd)
		asm volatile("vmmcall"
			     : "+a"(nr)
			     : "b"((uint64_t)client), "c"(arg[0]), "d"(a2), "S"(a3)
			     : "memory");
	else
		asm volatile("vmcall"
			     : "+a"(nr)
			     : "b"((uint64_t)client), "c"(arg[0]), "d"(a2), "S"(a3)
			     : "memory");
}
#else
static int vmcall_open(const char *at)
{
	(void)at;
	return -ENOTSUP;
}

static void vmcall_emit(uint32_t client, const uint64_t *arg)
{
	(void)client;
	(void)arg;
}
#endif

static const struct hypertrace_way hypertrace_vmcall = {
	.name = "vmcall",
	.open = vmcall_open,
	.emit = vmcall_emit,
};

/* ---- the choice of a way, and the calls ---------------------------------------------------------- */

static const struct hypertrace_way none = { .name = "none" };
static const struct hypertrace_way *way = &none;
static uint64_t *data; /* args of each client, arg1 of no use */

static const struct hypertrace_way *const ways[] = { &hypertrace_ivshmem, &hypertrace_marker,
						     &hypertrace_vmcall, &none };
#define N_WAYS	(sizeof(ways) / sizeof(ways[0]))
#define N_FOUND 2 /* the first so many are tried without being asked for */

static int way_open(const struct hypertrace_way *w, const char *at)
{
	int ret;

	hypertrace_shape = (struct hypertrace_shape){ HYPERTRACE_CLIENTS, HYPERTRACE_ARGS };
	ret = w->open ? w->open(at) : 0;
	if (!ret)
		way = w;
	return ret;
}

static int way_find(const char *where)
{
	const char *env = getenv("HYPERTRACE"), *named = env && *env ? env : where;
	int ret = -EINVAL;

	for (size_t i = 0; named && i < N_WAYS; i++) {
		size_t len = strlen(ways[i]->name);

		if (!strncmp(named, ways[i]->name, len) && (!named[len] || named[len] == ':'))
			return way_open(ways[i], named[len] ? named + len + 1 : NULL);
	}
	if (env && *env)
		return -EINVAL;
	for (size_t i = 0; i < N_FOUND && ret; i++)
		ret = way_open(ways[i], NULL);
	return ret;
}

int hypertrace_init(const char *where)
{
	int ret = data ? -EBUSY : way_find(where);

	if (!ret) {
		data = calloc((size_t)hypertrace_shape.clients * hypertrace_shape.args, sizeof(*data));
		if (!data) {
			if (way->close)
				way->close();
			way = &none;
			ret = -ENOMEM;
		}
	}
	if (ret)
		errno = -ret;
	return ret ? -1 : 0;
}

int hypertrace_fini(void)
{
	if (!data) {
		errno = EINVAL;
		return -1;
	}
	if (way->close)
		way->close();
	way = &none;
	free(data);
	data = NULL;
	return 0;
}

uint64_t hypertrace_max_clients(void)
{
	return hypertrace_shape.clients;
}

uint64_t hypertrace_num_args(void)
{
	return hypertrace_shape.args;
}

static uint64_t *client_args(uint64_t client)
{
	return data && client < hypertrace_shape.clients ? data + client * hypertrace_shape.args : NULL;
}

uint64_t *hypertrace_data(uint64_t client)
{
	uint64_t *args = client_args(client);

	return args ? args + 1 : NULL;
}

void hypertrace_emit(uint64_t client, uint64_t arg1)
{
	const uint64_t *kept = client_args(client);
	uint64_t arg[HYPERTRACE_ARGS_LIMIT];

	if (!kept || !way->emit)
		return;
	arg[0] = arg1;
	for (uint32_t i = 1; i < hypertrace_shape.args; i++)
		arg[i] = kept[i];
	way->emit((uint32_t)client, arg);
}

const char *hypertrace_where(void)
{
	return way->name;
}
