// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records in the written form: vCPU and reason; made of a text, an unknown id or Android's raw pages. */
#include "record/hyp/text-pattern.h"

static const struct hypevent *written_event(const struct hypevents *e, const uint8_t *data, size_t len)
{
	const size_t first = e->unknown_id - e->n;
	uint16_t id;

	if (len < sizeof(id))
		return NULL;
	memcpy(&id, data, sizeof(id));
	return id >= first && id - first < e->n ? &e->v[id - first] : NULL;
}

int hyp_record_vcpu(const struct hypevents *e, const uint8_t *data, size_t len)
{
	const struct hypevent *ev = written_event(e, data, len);
	int32_t vcpu = 0;

	if (ev && ev->vcpu_offset >= 0 && (size_t)ev->vcpu_offset + sizeof(vcpu) <= len)
		memcpy(&vcpu, data + ev->vcpu_offset, sizeof(vcpu));
	return vcpu;
}

const char *hyp_record_reason(const struct hypevents *e, const uint8_t *data, size_t len)
{
	const struct hypevent *ev = written_event(e, data, len);
	const struct event_field *f = ev && !ev->as_text ? event_format_field(&ev->fmt, "reason") : NULL;
	size_t at = f ? hyp_written_offset(&ev->fmt, f) : 0, number;

	if (!f || f->size != 1 || at >= len)
		return NULL;
	number = data[at];
	if (number < hyp_reasons_n)
		return hyp_reasons[number];
	number -= HYP_REASON_EXTRA;
	return number < e->extra_reasons.n ? e->extra_reasons.v[number] : NULL;
}

/* __data_loc: length in the upper half, offset in the record in the lower. */
static uint32_t data_loc(size_t offset, size_t len)
{
	return (uint32_t)len << 16 | (uint32_t)offset;
}

/* The host's common header, of no task. */
static void put_header(uint8_t *out, unsigned int id)
{
	const uint16_t type = (uint16_t)id;

	memset(out, 0, HYP_HEADER_SIZE);
	memcpy(out, &type, sizeof(type));
}

/* A C string; NUL bytes in the text become '?'. */
static void put_text(uint8_t *at, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		at[i] = text[i] ? (uint8_t)text[i] : '?';
	at[len] = 0;
}

size_t hyp_put_unknown(const struct hypevents *e, int id, const char *text, size_t len, const void *data,
		       size_t data_len, uint8_t *out)
{
	const size_t text_at = HYP_HEADER_SIZE + 12, data_at = text_at + len + 1;
	const uint32_t body[] = { (uint32_t)id, data_loc(text_at, len + 1), data_loc(data_at, data_len) };

	put_header(out, e->unknown_id);
	memcpy(out + HYP_HEADER_SIZE, body, sizeof(body));
	put_text(out + text_at, text, len);
	if (data_len)
		memcpy(out + data_at, data, data_len);
	return data_at + data_len;
}

size_t hyp_put_text_event(const struct hypevent *ev, const char *text, size_t len, uint8_t *out)
{
	const size_t text_at = HYP_HEADER_SIZE + 4;
	const uint32_t loc = data_loc(text_at, len + 1);

	put_header(out, ev->id);
	memcpy(out + HYP_HEADER_SIZE, &loc, sizeof(loc));
	put_text(out + text_at, text, len);
	return text_at + len + 1;
}

static bool is_dynamic(const struct event_field *f)
{
	return !strncmp(f->type, "__data_loc", 10) && f->size == 4;
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
	if (ev) {
		size_t header = hyp_kernel_header(&ev->fmt), body = ev->body_len;

		if (len < header || len - header < body)
			return -EBADMSG;
		/* a record may be longer than its fields where one of them has no fixed size */
		for (size_t i = 0; i < ev->fmt.n_fields; i++)
			if (!ev->fmt.fields[i].size || is_dynamic(&ev->fmt.fields[i]))
				body = len - header;
		put_header(out, ev->id);
		memcpy(out + HYP_HEADER_SIZE, (const uint8_t *)data + header, body);
		if (ev->vcpu_offset >= 0)
			memcpy(out + HYP_PID_OFFSET, out + ev->vcpu_offset, 4);
		move_dynamic(&ev->fmt, out);
		return (ssize_t)(HYP_HEADER_SIZE + body);
	}
	return (ssize_t)hyp_put_unknown(e, id, "", 0, (const uint8_t *)data + 2, len - 2, out);
}
