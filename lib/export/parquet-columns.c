// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which columns an event's rows have: those that every event has, and its fields by its format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/parquet-priv.h"

#define PARQUET_FIELDS_MAX 256 /* a format's others are left out */

static const struct parquet_column parquet_own[PARQUET_OWN] = {
	{ "ts", PARQUET_TS, PARQUET_INT64, .bits = 64 },
	{ "cpu", PARQUET_CPU, PARQUET_INT32, .bits = 32 },
	{ "pid", PARQUET_PID, PARQUET_INT32, .bits = 32, .optional = true },
	{ "comm", PARQUET_COMM, PARQUET_BYTES, .optional = true },
	{ "buffer", PARQUET_BUFFER, PARQUET_BYTES, .optional = false },
	{ "lost", PARQUET_LOST, PARQUET_INT64, .bits = 64, .optional = true },
	{ "bound", PARQUET_BOUND, PARQUET_INT64, .bits = 64, .optional = true },
};

/* Engines take Name and name for the same. */
static bool parquet_column_is_taken(const struct parquet_column *v, size_t n, const char *name)
{
	for (size_t i = PARQUET_OWN; i < n; i++)
		if (!strcasecmp(v[i].name, name))
			return true;
	return false;
}

/* As UTF-8 and unlike those before: _ is appended until it is. */
static const char *parquet_column_name(const struct parquet_column *v, size_t n, const char *name,
				       struct arena *kept)
{
	const char *own = arena_text(kept, name, strlen(name));

	if (!*own)
		own = "_";
	while (!kept->bad && parquet_column_is_taken(v, n, own))
		own = arena_printf(kept, "%s_", own);
	return own;
}

/* Of the numbers, or the items of an array, that l loads. */
static void parquet_column_integer(struct parquet_column *c, size_t size, bool is_signed)
{
	c->type = size == 8 ? PARQUET_INT64 : PARQUET_INT32;
	c->bits = (uint8_t)(8 * size);
	c->is_unsigned = !is_signed;
}

/* False: it has no value, as a struct has none. */
static bool parquet_column_of_field(struct parquet_column *c, const struct tep_format_field *f)
{
	bool is_signed = f->flags & TEP_FIELD_IS_SIGNED;

	*c = (struct parquet_column){ .optional = true, .load = field_load(f) };
	if (c->load.kind == FIELD_NONE)
		return false;
	if (c->load.kind == FIELD_NUMBER) {
		c->what = PARQUET_NUMBER;
		parquet_column_integer(c, c->load.size, is_signed);
		if (!strcmp(f->type, "bool") || !strcmp(f->type, "_Bool"))
			c->type = PARQUET_BOOL;
	} else if (f->flags & TEP_FIELD_IS_STRING) {
		c->what = PARQUET_TEXT;
		c->type = PARQUET_BYTES;
	} else {
		c->what = PARQUET_LIST;
		c->item = field_load_item(f);
		parquet_column_integer(c, c->item.size, is_signed);
	}
	return true;
}

static struct parquet_column *parquet_columns_new(size_t n_fields)
{
	struct parquet_column *v = calloc(PARQUET_OWN + n_fields, sizeof(*v));

	if (v)
		memcpy(v, parquet_own, sizeof(parquet_own));
	return v;
}

int parquet_columns(struct parquet_column **out, size_t *n, const struct tep_event *e, struct arena *kept)
{
	const struct tep_format_field *f = e ? e->format.fields : NULL;
	struct parquet_column *v = parquet_columns_new(PARQUET_FIELDS_MAX);

	if (!v)
		return -ENOMEM;
	*n = PARQUET_OWN;
	for (; f && *n < PARQUET_OWN + PARQUET_FIELDS_MAX; f = f->next) {
		if (!parquet_column_of_field(&v[*n], f))
			continue;
		v[*n].name = parquet_column_name(v, *n, f->name, kept);
		++*n;
	}
	*out = reallocarray(v, *n, sizeof(*v)) ?: v;
	return kept->bad ? -ENOMEM : 0;
}

int parquet_columns_unknown(struct parquet_column **out, size_t *n)
{
	static const struct parquet_column own[] = {
		{ "id", PARQUET_NUMBER, PARQUET_INT32, true, true, 16, .load = { FIELD_NUMBER, 0, 2 } },
		{ "data", PARQUET_LIST, PARQUET_INT32, true, true, 8, .load = { FIELD_BYTES, 0, 0 },
		  .item = { FIELD_NUMBER, 0, 1 } },
	};

	*out = parquet_columns_new(ARRAY_SIZE(own));
	if (!*out)
		return -ENOMEM;
	memcpy(*out + PARQUET_OWN, own, sizeof(own));
	*n = PARQUET_OWN + ARRAY_SIZE(own);
	return 0;
}
