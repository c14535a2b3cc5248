// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the libtraceevent plugins share: fields of records, warnings. */
#include "plugin.h"

#include <stdio.h>
#include <string.h>

#include "util/field.h"

static size_t view_len(const struct view *v)
{
	return v->record->size > 0 ? (size_t)v->record->size : 0;
}

bool view_has(const struct view *v, const char *field)
{
	return field_is_number(tep_find_any_field(v->event, field));
}

uint64_t view_u64(struct view *v, const char *field)
{
	struct tep_format_field *f = tep_find_any_field(v->event, field);
	uint64_t value = 0;

	if (field_is_number(f) && !field_number(f, v->record->data, view_len(v), &value))
		v->bad = true;
	return value;
}

bool view_bytes(struct view *v, const char *field, const uint8_t **data, size_t *len)
{
	const struct tep_format_field *f = tep_find_any_field(v->event, field);
	int ret = field_bytes(f, v->record->data, view_len(v), data, len);

	if (ret < 0)
		v->bad = true;
	return ret;
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
