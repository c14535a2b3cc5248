// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plugin.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The bytes [offset, offset + len) of the record, or NULL and bad. */
static const uint8_t *bytes(struct view *v, uint64_t offset, uint64_t len)
{
	uint64_t size = v->record->size > 0 ? (uint64_t)v->record->size : 0;

	if (!v->record->data || offset > size || len > size - offset) {
		v->bad = true;
		return NULL;
	}
	return (const uint8_t *)v->record->data + offset;
}

static bool is_int(const struct tep_format_field *f)
{
	return f && f->offset >= 0 && !(f->flags & (TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_ARRAY)) &&
	       (f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8);
}

bool view_has(const struct view *v, const char *field)
{
	return is_int(tep_find_any_field(v->event, field));
}

static uint64_t sign_extend(uint64_t value, int size)
{
	unsigned int shift = 64 - 8 * (unsigned int)size;

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

uint64_t view_u64(struct view *v, const char *field)
{
	struct tep_format_field *f = tep_find_any_field(v->event, field);
	const uint8_t *p;
	uint64_t value;

	if (!is_int(f))
		return 0;
	p = bytes(v, (uint64_t)f->offset, (uint64_t)f->size);
	if (!p)
		return 0;
	value = tep_read_number(v->event->tep, p, f->size);
	return f->flags & TEP_FIELD_IS_SIGNED ? sign_extend(value, f->size) : value;
}

/* __data_loc and __rel_loc: length in the upper half, place in the lower. */
static bool dynamic(struct view *v, const struct tep_format_field *f, uint64_t *offset,
		    uint64_t *len)
{
	const uint8_t *p = f->size == 4 ? bytes(v, (uint64_t)f->offset, 4) : NULL;
	uint32_t loc;

	if (!p)
		return false;
	loc = (uint32_t)tep_read_number(v->event->tep, p, 4);
	*offset = loc & 0xffff;
	*len = loc >> 16;
	if (f->flags & TEP_FIELD_IS_RELATIVE)
		*offset += (uint64_t)f->offset + 4;
	return true;
}

bool view_bytes(struct view *v, const char *field, const uint8_t **data, size_t *len)
{
	const struct tep_format_field *f = tep_find_any_field(v->event, field);
	uint64_t offset, n;

	*data = (const uint8_t *)"";
	*len = 0;
	if (!f || f->offset < 0 || f->size < 0)
		return false;
	offset = (uint64_t)f->offset;
	n = (uint64_t)f->size;
	if (f->flags & TEP_FIELD_IS_DYNAMIC) {
		if (!dynamic(v, f, &offset, &n))
			return true;
	} else if (!(f->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_STRING))) {
		return false;
	} else if (!n && v->record->size > f->offset) { /* to the end: "char buf[]" */
		n = (uint64_t)(v->record->size - f->offset);
	}
	if (bytes(v, offset, n)) {
		*data = bytes(v, offset, n);
		*len = n;
	}
	return true;
}

bool view_text(struct view *v, const char *field, const char **text, size_t *len)
{
	const uint8_t *data;

	if (!view_bytes(v, field, &data, len))
		return false;
	*text = (const char *)data;
	*len = strnlen(*text, *len);
	while (*len && ((*text)[*len - 1] == '\n' || (*text)[*len - 1] == '\r'))
		(*len)--;
	return true;
}

/* ---- events -------------------------------------------------------------------- */

int decode(struct trace_seq *s, struct tep_record *record, struct tep_event *event, void *context)
{
	const struct decoder *d = context;
	struct view v = { event, record, false };

	for (size_t i = 0; i < NEEDS_MAX && d->needs[i]; i++) {
		if (!view_has(&v, d->needs[i]))
			return -1;
		view_u64(&v, d->needs[i]);
	}
	if (v.bad)
		trace_seq_puts(s, "[record too short]");
	else
		d->print(s, &v);
	return 0;
}

void decoders_register(struct tep_handle *tep, const char *sys, const struct decoder *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tep_register_event_handler(tep, -1, sys, v[i].event, decode, (void *)&v[i]);
}

void decoders_unregister(struct tep_handle *tep, const char *sys, const struct decoder *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tep_unregister_event_handler(tep, -1, sys, v[i].event, decode, (void *)&v[i]);
}

/* ---- options ---------------------------------------------------------------------- */

void plugin_warn(const char *plugin, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "hyptrace %s: ", plugin);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}
