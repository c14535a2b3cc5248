// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of Android's raw pages: u16 id and packed fields. */
#include <errno.h>
#include <string.h>

#include "hyp/text-pattern.h"

static bool is_dynamic(const struct event_field *f)
{
	return !strncmp(f->type, "__data_loc", 10) && f->size == 4;
}

/* Whether a record may be longer than its fields. */
static bool has_tail(const struct event_format *f)
{
	for (size_t i = 0; i < f->n_fields; i++)
		if (!f->fields[i].size || is_dynamic(&f->fields[i]))
			return true;
	return false;
}

/* Offsets in __data_loc count from the record's start, which has moved. */
static void move_dynamic(const struct event_format *f, uint8_t *out)
{
	const uint32_t moved = HYP_HEADER_SIZE - hyp_kernel_header(f);

	for (size_t i = 0; i < f->n_fields; i++) {
		uint8_t *at = out + hyp_written_offset(f, &f->fields[i]);
		uint32_t loc;

		if (!is_dynamic(&f->fields[i]))
			continue;
		memcpy(&loc, at, sizeof(loc));
		loc = (loc & 0xffff0000) | ((loc + moved) & 0xffff);
		memcpy(at, &loc, sizeof(loc));
	}
}

static ssize_t raw_known(const struct hypevent *ev, const uint8_t *data, size_t len, uint8_t *out)
{
	const uint16_t type = (uint16_t)ev->id;
	size_t header = hyp_kernel_header(&ev->fmt), body;

	if (len < header || len - header < ev->body_len)
		return -EBADMSG;
	body = has_tail(&ev->fmt) ? len - header : ev->body_len;
	memset(out, 0, HYP_HEADER_SIZE);
	memcpy(out, &type, sizeof(type));
	memcpy(out + HYP_HEADER_SIZE, data + header, body);
	if (ev->vcpu_offset >= 0)
		memcpy(out + HYP_PID_OFFSET, out + ev->vcpu_offset, 4);
	move_dynamic(&ev->fmt, out);
	return (ssize_t)(HYP_HEADER_SIZE + body);
}

ssize_t hypraw_record(const struct hypevents *e, const void *data, size_t len, uint8_t *out, size_t size)
{
	const struct hypevent *ev;
	uint16_t id;

	if (len < sizeof(id))
		return -EBADMSG;
	if (size < HYP_RECORD_EXTRA || len > size - HYP_RECORD_EXTRA)
		return -EMSGSIZE;
	memcpy(&id, data, sizeof(id));
	ev = hypevents_by_hyp_id(e, id);
	if (ev)
		return raw_known(ev, data, len, out);
	return (ssize_t)hyp_put_unknown(e, id, "", 0, (const uint8_t *)data + 2, len - 2, out);
}
