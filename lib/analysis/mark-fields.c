// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the fields of hypertrace:guest_hypertrace. */
#include "analysis/mark-fields.h"

#include <stdio.h>

/* What is no number is not read. */
static struct field_load marks_number(struct tep_event *e, const char *name)
{
	struct field_load l = field_load(tep_find_field(e, name));

	return l.kind == FIELD_NUMBER ? l : (struct field_load){ 0 };
}

struct marks_fields marks_fields(struct tep_event *e)
{
	struct marks_fields f = { .client = marks_number(e, "client"),
				  .guest = field_load(tep_find_field(e, "guest")) };
	char name[16];

	for (; f.n_args < HYPERTRACE_ARGS_MAX; f.n_args++) {
		snprintf(name, sizeof(name), "arg%zu", f.n_args + 1);
		f.arg[f.n_args] = marks_number(e, name);
		if (f.arg[f.n_args].kind != FIELD_NUMBER)
			break;
	}
	return f;
}

bool marks_load(const struct marks_fields *f, const void *record, size_t len, struct hypertrace_event *out,
		const char **guest, size_t *guest_len)
{
	const uint8_t *text;

	*out = (struct hypertrace_event){ .has_client = f->client.kind == FIELD_NUMBER, .n_args = f->n_args };
	if (out->has_client && !field_load_number(&f->client, record, len, &out->client))
		return false;
	for (size_t i = 0; i < f->n_args; i++)
		if (!field_load_number(&f->arg[i], record, len, &out->arg[i]))
			return false;
	field_load_bytes(&f->guest, record, len, &text, guest_len);
	*guest = (const char *)text;
	*guest_len = strnlen(*guest, *guest_len);
	return f->n_args > 0;
}
