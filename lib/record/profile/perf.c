// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel's perf events of all CPUs: opened, switched, closed, and their rings. For a recorder and an
 * agent. */
#include "record/profile/profile.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "record/clock/counter.h"

#define RING_BYTES (256u << 10) /* of records: less than any user may lock (perf_event_mlock_kb) */

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

static void perf_ring_close(struct perf_ring *r)
{
	if (!r)
		return;
	if (r->head)
		munmap(r->head, r->mapped);
	fd_close(&r->fd);
	free(r);
}

static int perf_ring_open(struct perf_ring **out, unsigned int cpu, const struct profile_opts *o, int clockid)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_ring *r = calloc(1, sizeof(*r));
	int ret = -ENOENT;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	/* kernels before 5.12 have no build ids, and refuse the attribute */
	for (size_t i = o->by_clock ? 2 : 0; r->fd < 0 && i < 2 * ARRAY_SIZE(perf_bys); i++) {
		const struct perf_by *by = &perf_bys[i / 2];
		struct perf_event_attr a = {
			.size = sizeof(a),
			.type = by->type,
			.config = by->config,
			.freq = 1,
			.sample_freq = o->hz,
			.sample_type = PERF_RING_SAMPLE,
			.sample_id_all = 1,
			.disabled = 1,
			/* else a vCPU with a PMU stops and restarts its timer each time it runs */
			.pinned = by->type == PERF_TYPE_SOFTWARE,
			.mmap = 1,
			.mmap2 = 1,
			.comm = 1,
			.comm_exec = 1,
			.task = 1,
			.build_id = !(i % 2),
			.use_clockid = 1,
			.clockid = clockid,
			.watermark = 1,
			.wakeup_watermark = RING_BYTES / 2,
		};

		r->by = by->name;
		r->fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		ret = r->fd < 0 ? -errno : 0;
	}
	if (ret)
		goto fail;
	r->mapped = page + RING_BYTES;
	r->head = mmap(NULL, r->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->head == MAP_FAILED) {
		ret = -errno;
		r->head = NULL;
		goto fail;
	}
	r->data = (const uint8_t *)r->head + page;
	*out = r;
	return 0;
fail:
	perf_ring_close(r);
	return ret;
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

/* A number of /proc/sys/kernel; otherwise: it has none. */
static long long profile_sysctl(const char *name, long long otherwise)
{
	char n[32];

	return read_line_at(AT_FDCWD, n, sizeof(n), "/proc/sys/kernel/%s", name) || !*n
		       ? otherwise
		       : strtoll(n, NULL, 10);
}

static void profile_explain(const struct log *log, unsigned int hz, int error)
{
	long long most = profile_sysctl("perf_event_max_sample_rate", -1);

	if (error == -ENOSYS || most < 0)
		log_err(log, "--profile: this kernel has no perf events (CONFIG_PERF_EVENTS)");
	else if (error == -EACCES || error == -EPERM)
		log_err(log,
			"--profile: perf events of all CPUs are refused: %s; kernel.perf_event_paranoid is "
			"%lld (root or CAP_PERFMON is needed, and a kernel that is not locked down)",
			errno_text(error), profile_sysctl("perf_event_paranoid", 2));
	else if (error == -EINVAL && hz > most)
		log_err(log,
			"--profile %u: this kernel takes at most %lld (kernel.perf_event_max_sample_rate)",
			hz, most);
	else
		log_err(log, "--profile: no perf events: %s", errno_text(error));
}

static struct profile *profile_new(unsigned int n_cpus, uint32_t page_size, const char *clock)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->source = (struct source){ .name = SOURCE_PROFILE,
				     .path = SOURCE_PROFILE,
				     .clock = clock,
				     .page_size = page_size,
				     .n_cpus = n_cpus };
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

int profile_open(struct profile **out, const struct profile_opts *o)
{
	int clockid = clock_marker_system(o->clock), ret;
	const char *by = NULL;
	struct profile *p;

	if (clockid < 0)
		return log_fail(o->log, -EINVAL,
				"--profile: samples have no clock '%s': use -C boot, mono, mono_raw or tai",
				o->clock);
	p = profile_new(o->n_cpus, page_layout_default.size, o->clock);
	if (!p)
		return -ENOMEM;
	p->log = o->log;
	p->first_id = o->first_id;
	p->rings = calloc(o->n_cpus + 1, sizeof(*p->rings));
	ret = p->rings ? 0 : -ENOMEM;
	for (; p->n_rings < o->n_cpus && !ret; p->n_rings += !ret) {
		ret = perf_ring_open(&p->rings[p->n_rings], p->n_rings, o, clockid);
		if (!ret && !by)
			by = p->rings[p->n_rings]->by;
		if (ret == -ENODEV || (ret == -EINVAL && by)) /* settings that work on one CPU work on all */
			ret = 0;
	}
	if (!ret && !by)
		ret = -ENODEV;
	if (!ret && o->by_clock && o->hz <= UINT16_MAX)
		p->hz = (uint16_t)o->hz;
	if (!ret)
		log_info(p->log, "profile: %u samples a second of each CPU, by %s", o->hz, by);
	else if (ret != -ENOMEM)
		profile_explain(p->log, o->hz, ret);
	if (ret)
		profile_close(p);
	else
		*out = p;
	return ret;
}

int profile_reopen(struct profile **out, unsigned int n_cpus, uint32_t page_size)
{
	*out = profile_new(n_cpus, page_size, "");
	return *out ? 0 : -ENOMEM;
}

void profile_close(struct profile *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->n_rings; i++)
		perf_ring_close(p->rings[i]);
	pthread_mutex_destroy(&p->lock);
	free(p->tasks);
	free(p->rings);
	free(p);
}

int profile_switch(struct profile *p, bool on)
{
	int ret = 0;

	for (unsigned int i = 0; i < p->n_rings; i++)
		if (p->rings[i] &&
		    ioctl(p->rings[i]->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 &&
		    !ret)
			ret = -errno;
	return ret ? log_fail_errno(p->log, ret, "--profile: cannot be switched %s", on ? "on" : "off") : 0;
}

int profile_fd(const struct profile *p, unsigned int cpu)
{
	return cpu < p->n_rings && p->rings[cpu] ? p->rings[cpu]->fd : -1;
}
