/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_MSG_HOST_H
#define TESTS_MSG_HOST_H

/* The half of "ptp" and "none" that only stock's recorder speaks. */
#include <endian.h>
#include <errno.h>

#include "file/wire/msg.h"
#include "base/cursor.h"

static inline void msg_add_sync_probe(struct buf *out, uint16_t cpu)
{
	msg_add_sync(out, MSG_SYNC_NONE, MSG_SYNC_PROBE, &cpu, sizeof(cpu));
}

/* Always all places, as stock does. */
static inline void msg_add_ptp_probes(struct buf *out, const struct msg_ptp_probes *p)
{
	uint32_t head[2] = { htobe32(p->series), htobe32(p->count) };
	struct buf b = { 0 };

	buf_add(&b, head, sizeof(head));
	for (size_t i = 0; i < MSG_PTP_SAMPLES; i++) {
		uint64_t ts = htobe64((uint64_t)p->ts[i]);
		uint32_t id = htobe32(p->ids[i]);

		buf_add(&b, &ts, sizeof(ts));
		buf_add(&b, &id, sizeof(id));
	}
	out->bad |= b.bad;
	msg_add_sync(out, MSG_SYNC_PTP, MSG_PTP_PROBES, b.data, b.len);
	buf_release(&b);
}

static inline int msg_get_ptp_start(const struct msg_sync *s, uint32_t *series, uint32_t *flags)
{
	struct cursor c = cursor_at(s->payload, s->len);

	*series = be32toh(cursor_u32(&c));
	*flags = be32toh(cursor_u32(&c));
	return c.bad ? -EBADMSG : 0;
}

static inline int msg_get_ptp_offset(const struct msg_sync *s, int64_t *ts, int64_t *offset)
{
	struct cursor c = cursor_at(s->payload, s->len);

	*ts = (int64_t)be64toh(cursor_u64(&c));
	*offset = (int64_t)be64toh(cursor_u64(&c));
	return c.bad ? -EBADMSG : 0;
}

#endif
