// SPDX-License-Identifier: LGPL-2.1-or-later
/* One CPU's perf event and its ring. */
#include "profile/perf-ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_BYTES (256u << 10) /* of records: less than anybody may lock (perf_event_mlock_kb) */

struct perf_ring {
	int fd;
	const char *by;
	uint64_t tail; /* up to here it was read */
	struct perf_event_mmap_page *head;
	const uint8_t *data;
	size_t mapped;
	uint8_t record[UINT16_MAX] __attribute__((aligned(8))); /* perf_event_header.size is a u16 */
};

static const struct perf_by {
	const char *name;
	uint32_t type;
	uint64_t config;
} perf_bys[] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
};

static int perf_ring_event(unsigned int cpu, unsigned int hz, int clockid, const struct perf_by *by,
			   bool build_ids)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = by->type,
		.config = by->config,
		.freq = 1,
		.sample_freq = hz,
		.sample_type = PERF_RING_SAMPLE,
		.sample_id_all = 1,
		.disabled = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.build_id = build_ids,
		.use_clockid = 1,
		.clockid = clockid,
		.watermark = 1,
		.wakeup_watermark = RING_BYTES / 2,
	};
	long fd = syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Kernels before 5.12 tell no build ids, and refuse to be asked for them. */
static int perf_ring_try(struct perf_ring *r, unsigned int cpu, unsigned int hz, int clockid)
{
	int ret = -ENOENT;

	for (size_t i = 0; i < 2 * ARRAY_SIZE(perf_bys); i++) {
		const struct perf_by *by = &perf_bys[i / 2];

		ret = perf_ring_event(cpu, hz, clockid, by, !(i % 2));
		if (ret >= 0) {
			r->by = by->name;
			r->fd = ret;
			return 0;
		}
	}
	return ret;
}

int perf_ring_open(struct perf_ring **out, unsigned int cpu, unsigned int hz, int clockid)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_ring *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	ret = perf_ring_try(r, cpu, hz, clockid);
	if (ret) {
		free(r);
		return ret;
	}
	r->mapped = page + RING_BYTES;
	r->head = mmap(NULL, r->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->head == MAP_FAILED) {
		ret = -errno;
		r->head = NULL;
		perf_ring_close(r);
		return ret;
	}
	r->data = (const uint8_t *)r->head + page;
	*out = r;
	return 0;
}

void perf_ring_close(struct perf_ring *r)
{
	if (!r)
		return;
	if (r->head)
		munmap(r->head, r->mapped);
	close(r->fd);
	free(r);
}

int perf_ring_switch(struct perf_ring *r, bool on)
{
	return ioctl(r->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int perf_ring_fd(const struct perf_ring *r)
{
	return r->fd;
}

const char *perf_ring_by(const struct perf_ring *r)
{
	return r->by;
}

/* From the place in the stream of bytes on, of which the ring has the last ones. */
static void perf_ring_copy(const struct perf_ring *r, uint64_t from, uint8_t *to, size_t n)
{
	size_t at = from % RING_BYTES, first = RING_BYTES - at;

	first = first < n ? first : n;
	memcpy(to, r->data + at, first);
	memcpy(to + first, r->data, n - first);
}

const struct perf_event_header *perf_ring_next(struct perf_ring *r)
{
	uint64_t there = __atomic_load_n(&r->head->data_head, __ATOMIC_ACQUIRE) - r->tail;
	struct perf_event_header h;

	if (there < sizeof(h))
		return NULL;
	perf_ring_copy(r, r->tail, (uint8_t *)&h, sizeof(h));
	if (h.size < sizeof(h) || h.size > there) /* no kernel writes that: there is no way on */
		return NULL;
	perf_ring_copy(r, r->tail, r->record, h.size);
	r->tail += h.size;
	__atomic_store_n(&r->head->data_tail, r->tail, __ATOMIC_RELEASE);
	return (const struct perf_event_header *)r->record;
}
