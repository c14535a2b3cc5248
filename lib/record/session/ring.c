// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeps the last seconds of buffers that overwrote themselves until they were drained (--flight --ring). */

#include "record/drain/repair.h"
#include "record/session/session-priv.h"

/* Only times of the boot clock can be compared with ours, and only those that are right already. */
static bool ring_has_times(const struct spool *spool, const struct spool_buffer *b)
{
	const bool hyp = !strncmp(b->kind, "hyp-", 4);

	return (hyp ? !spool_wants_repair(spool) : !strcmp(b->kind, "host")) && !strcmp(b->clock, "boot");
}

/*
 * Moves a range's start to the page in which `since` lies, or to the first one after a loss since then: what
 * a reader leaves of its last page is older than all that was overwritten. *begin: the later of itself and of
 * the time at which such a loss ended.
 */
static int ring_start(int fd, size_t size, uint64_t since, struct spool_range *r, uint64_t *begin)
{
	struct {
		uint64_t ts;
		uint32_t commit;
	} head = { 0 };
	uint64_t at = r->to, ts = since;
	bool lost = false;

	while (at > r->from && ts >= since) {
		ssize_t n = pread_all(fd, &head, sizeof(head), at - size);

		if (n < 0)
			return (int)n;
		if (lost && head.ts < since)
			break;
		at -= size;
		ts = head.ts;
		lost = head.commit & PAGE_MISSED_EVENTS;
	}
	r->from = at;
	if (lost && ts > since && ts > *begin)
		*begin = ts;
	return 0;
}

int ring_trim(const struct session *s, struct spool *spool, uint64_t number, uint64_t to)
{
	const uint64_t since = to - s->plan->flight_ms * UNIT_MS;
	struct spool_range *ranges = NULL;
	uint64_t begin = 0;
	size_t n = 0;
	int ret = 0;

	if (!s->plan->ring)
		return 0;
	for (size_t i = 0; i < spool_n_buffers(spool); i++) {
		const struct spool_buffer *b = spool_buffer(spool, i);

		for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++) {
			struct spool_range r;
			int fd = spool_pages_open(spool, i, cpu, &r);

			ret = fd < 0 ? fd : 0;
			if (!ret && ring_has_times(spool, b))
				ret = ring_start(fd, b->page_size, since, &r, &begin);
			fd_close(&fd);
			ret = ret ?: array_push(&ranges, &n, &r, sizeof(r));
		}
	}
	ret = ret ?: spool_set_ranges(spool, number, ranges);
	free(ranges);
	if (ret)
		log_err(s->log, "cannot find the last seconds: %s", errno_text(ret));
	else if (begin)
		log_warn(s->log,
			 "the buffers are too small: a CPU's begins %.1f s late; make them larger with -b",
			 (double)(begin - since) / 1e9);
	return ret;
}
