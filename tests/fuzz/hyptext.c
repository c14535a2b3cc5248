// SPDX-License-Identifier: LGPL-2.1-or-later
/* trace_pipe of any content: the same records whether it comes in one piece or in many. */
#include "hyp-events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
	uint64_t hash, records;
};

static void mix(struct sum *s, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		s->hash = (s->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
}

static int add(void *ctx, const struct hyprecord *r)
{
	struct sum *s = ctx;

	if (r->len < HYP_HEADER_SIZE || r->len > 4064 || r->cpu > 65535)
		abort();
	mix(s, &r->ts, sizeof(r->ts));
	mix(s, &r->cpu, sizeof(r->cpu));
	mix(s, &r->lost, sizeof(r->lost));
	mix(s, r->data, r->len);
	s->records++;
	return 0;
}

static struct sum feed(const uint8_t *data, size_t size, size_t chunk)
{
	struct sum s = { 0 };
	struct hypevents e;
	struct hyptext *t;
	uint64_t bad, lost;

	hyp_events_init(&e, false);
	t = hyptext_new(&e);
	for (size_t at = 0; at < size; at += chunk)
		if (hyptext_feed(t, data + at, size - at < chunk ? size - at : chunk, add, &s))
			abort();
	bad = hyptext_bad_lines(t);
	mix(&s, &bad, sizeof(bad));
	for (unsigned int cpu = 0; cpu < 256; cpu++) {
		lost = hyptext_pending_lost(t, cpu);
		mix(&s, &lost, sizeof(lost));
	}
	hyptext_free(t);
	hypevents_release(&e);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole = feed(data, size, size + 1);
	struct sum parts = feed(data, size, size ? data[0] % 64 + 1 : 1);

	if (whole.hash != parts.hash || whole.records != parts.records)
		abort();
	return 0;
}
