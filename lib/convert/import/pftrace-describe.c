// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events that a trace describes itself: those that Perfetto has no message for, as of its version 50. */
#include "convert/import/pftrace-priv.h"

enum { DESCRIBED_NUMBER = 1, DESCRIBED_MESSAGE = 2, DESCRIBED_GROUP = 3 };
/* DescriptorProto and FieldDescriptorProto of Google's descriptor.proto */
enum { MESSAGE_NAME = 1, MESSAGE_FIELD = 2 };
enum { MEMBER_NAME = 1, MEMBER_NUMBER = 3, MEMBER_TYPE = 5 };
enum { TYPE_INT64 = 3, TYPE_INT32 = 5, TYPE_STRING = 9, TYPE_SFIXED32 = 15, TYPE_SINT64 = 18 };

/* Numbers below these are Perfetto's own. */
#define DESCRIBED_FIRST 65536

/* Words of a format file, which the text of a row's fields can hold. */
static char *described_word(const struct wire_field *f)
{
	const char *text = (const char *)f->data;

	return is_word(text, f->len) ? strndup(text, f->len) : NULL;
}

/* Appends "s64 NAME=NUMBER;". */
static int describe_member(struct buf *fields, struct cursor c)
{
	struct wire_field f, name = { 0 };
	uint64_t number = 0, type = 0;
	char *word;
	int ret;

	while ((ret = wire_next(&c, &f)) == 1) {
		if (f.number == MEMBER_NAME && f.is_bytes)
			name = f;
		else if (f.number == MEMBER_NUMBER)
			number = f.v;
		else if (f.number == MEMBER_TYPE)
			type = f.v;
	}
	if (ret || !number || number > UINT32_MAX)
		return -EBADMSG;
	word = described_word(&name);
	if (word)
		buf_printf(fields, "%s %s=%u;",
			   type == TYPE_STRING ? "text"
			   : type == TYPE_INT64 || type == TYPE_INT32 ||
					   (type >= TYPE_SFIXED32 && type <= TYPE_SINT64)
				   ? "s64"
				   : "u64",
			   word, (unsigned int)number);
	free(word);
	return 0;
}

static int describe_message(struct perfetto_event *row, struct buf *fields, struct cursor c)
{
	struct wire_field f;
	int ret = 0;

	while (ret >= 0 && (ret = wire_next(&c, &f)) == 1) {
		if (f.number == MESSAGE_NAME && f.is_bytes && !row->name)
			row->name = described_word(&f);
		else if (f.number == MESSAGE_FIELD && f.is_bytes)
			ret = describe_member(fields, wire_message(&f));
	}
	return ret;
}

void pft_row_free(struct perfetto_event *row)
{
	free((char *)(uintptr_t)row->name);
	free((char *)(uintptr_t)row->system);
	free((char *)(uintptr_t)row->fields);
	free((char *)(uintptr_t)row->print_fmt);
}

int pft_describe(struct pft_source *s, struct cursor c)
{
	struct perfetto_event row = { 0 };
	struct buf fields = { 0 };
	struct wire_field f;
	int ret = 0;

	while (ret >= 0 && (ret = wire_next(&c, &f)) == 1) {
		if (f.number == DESCRIBED_NUMBER && !f.is_bytes)
			row.number = (uint32_t)f.v;
		else if (f.number == DESCRIBED_GROUP && f.is_bytes && !row.system)
			row.system = described_word(&f);
		else if (f.number == DESCRIBED_MESSAGE && f.is_bytes)
			ret = describe_message(&row, &fields, wire_message(&f));
	}
	row.system = row.system ?: strdup("perfetto");
	row.fields = ret ? NULL : strdup(buf_str(&fields) ?: "");
	ret = ret ?: !row.name || row.number < DESCRIBED_FIRST ? -EBADMSG : 0;
	ret = ret ?: buf_status(&fields) ?: !row.system || !row.fields ? -ENOMEM : 0;
	buf_release(&fields);
	/* each bundle repeats them */
	if (!ret && !pft_row_of(s, row.number) && s->n_rows < PFT_KINDS)
		ret = array_push(&s->rows, &s->n_rows, &row, sizeof(row)) ?: 1;
	if (ret != 1)
		pft_row_free(&row);
	return ret < 0 ? ret : 0;
}

const struct perfetto_event *pft_row_of(const struct pft_source *s, uint32_t number)
{
	if (number < DESCRIBED_FIRST)
		return perfetto_event_numbered(number);
	for (size_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].number == number)
			return &s->rows[i];
	return NULL;
}
